//! Numbers that other programs, closed formulas and published tables give, through the whole engine.
//!
//! [`MANIFEST`] lists every case of the reference set with what becomes of it. Families that may be copied are read
//! from `tests/reference`; the others (nist, lammps_unittest, files, potentials, and large files of openmm) from the
//! folder that the environment variable `MD_REFERENCE` names, and are skipped where it is not set.
//!
//! Each case is built with the catalogue's terms, evaluated in every way that the engine has (one tape; each
//! interaction by itself; the same in two lanes), converted with the source's own constants, and compared within
//! the tolerance that its file demands.

mod reference_cases;

use reference_cases::manifest::{MANIFEST, Status};
use reference_cases::report::{Outcome, Report};
use reference_cases::{copied, in_place, locate, parts, run, split};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All files below a folder, as paths relative to it.
fn all_files(folder: &Path) -> BTreeSet<String> {
    fn visit(folder: &Path, top: &Path, out: &mut BTreeSet<String>) {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
                continue; // what readers leave beside a file
            } else if path.is_dir() {
                visit(&path, top, out);
            } else {
                let name = path.strip_prefix(top).expect("a path below");
                out.insert(name.to_str().expect("a readable name").replace('\\', "/"));
            }
        }
    }
    let mut out = BTreeSet::new();
    visit(folder, folder, &mut out);
    out.remove("README.md");
    out
}

/// Whether a file is a copy of another, or of a part of it.
fn copy(copy: &Path, of: &Path) -> bool {
    fn within(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::Object(part), Value::Object(whole)) => {
                part.iter().all(|(key, v)| whole.get(key).is_some_and(|w| within(v, w)))
            }
            // (a list may be a shorter one)
            (Value::Array(part), Value::Array(whole)) if part.len() < whole.len() => {
                part.iter().all(|v| whole.iter().any(|w| within(v, w)))
            }
            (Value::Array(part), Value::Array(whole)) => {
                part.len() == whole.len() && part.iter().zip(whole).all(|(v, w)| within(v, w))
            }
            _ => part == whole,
        }
    }
    let [a, b] = [copy, of].map(|path| std::fs::read(path).expect("a file"));
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    a == b || json(&a).zip(json(&b)).is_some_and(|(a, b)| within(&a, &b))
}

#[test]
fn the_manifest_names_every_case() {
    let mut wrong = Vec::new();
    let named: BTreeSet<String> = MANIFEST.iter().map(|(name, _)| split(name).0.to_owned()).collect();
    let rows: BTreeSet<&str> = MANIFEST.iter().map(|(name, _)| *name).collect();
    assert_eq!(rows.len(), MANIFEST.len(), "a case stands twice in the manifest");
    let own = all_files(&copied());
    let mut all = own.clone();
    match in_place() {
        Some(folder) => {
            all = all_files(&folder);
            for name in &own {
                if !all.contains(name) || !copy(&copied().join(name), &folder.join(name)) {
                    wrong.push(format!("tests/reference/{name} is no copy of a case"));
                }
            }
            wrong.extend(named.difference(&all).map(|name| format!("{name} does not exist")));
        }
        None => println!("MD_REFERENCE is not set: only the copies in tests/reference are looked at"),
    }
    wrong.extend(all.difference(&named).map(|name| format!("{name} is not in the manifest")));
    for name in &named {
        let Some(path) = locate(name) else { continue };
        let listed: BTreeSet<_> =
            rows.iter().map(|row| split(row)).filter(|(file, _)| file == name).collect();
        let held = parts(name, &path);
        let held: BTreeSet<_> = match held.is_empty() {
            true => [(name.as_str(), None)].into(),
            false => held.iter().map(|part| (name.as_str(), Some(part.as_str()))).collect(),
        };
        for (file, part) in listed.symmetric_difference(&held) {
            wrong.push(format!("{file}: part {part:?} stands only in the manifest or only in the file"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A case waits only for what is not there: an energy of a missing term's name in the catalogue ends the wait.
#[test]
fn what_is_missing_is_not_in_the_catalogue() {
    let catalog = md::catalog();
    for (name, status) in MANIFEST {
        let Status::Missing(what) = status else { continue };
        for what in what.split(", ") {
            // (LAMMPS calls many-body potentials pair styles)
            let (kind, term) = what.split_once(' ').unwrap_or(("", what));
            let term = term.replace('/', "-");
            let of_kind = |key: &str| match kind {
                "pair" => ["pair", "many-body"].contains(&key),
                "bond" | "angle" | "dihedral" | "improper" => kind == key,
                _ => true,
            };
            let mut entries = catalog.entries().iter();
            let entry = entries.find(|e| e.about.name == term && of_kind(e.kind.key()));
            assert!(
                entry.is_none(),
                "{name}: there is an energy {term} now; teach it to tests/reference_cases"
            );
        }
    }
}

#[test]
fn cases_of_other_tests_are_used_there() {
    let text = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{file}: {e}"))
    };
    for (name, status) in MANIFEST {
        let base = Path::new(name).file_name().and_then(|n| n.to_str()).expect("a name");
        match status {
            Status::Elsewhere(test) => {
                let test = text(test);
                // tests that run through a list of files name the list
                let listed = || {
                    let folder = name.split('/').next().unwrap_or_default();
                    let list = locate(&format!("{folder}/expected.json")).map(std::fs::read_to_string);
                    let list = list.and_then(Result::ok).is_none_or(|list| list.contains(base));
                    list && test.contains("expected.json") && md::formats::Format::from_path(base).is_ok()
                };
                assert!(test.contains(base) || listed(), "{name} is not used there");
            }
            Status::Data(case) => {
                assert!(MANIFEST.iter().any(|(name, _)| name == case), "{name}: there is no case {case}");
                if let Some(path) = locate(case) {
                    let case = std::fs::read_to_string(path).expect("the case");
                    assert!(case.contains(base), "{name} is not named there");
                }
            }
            _ => {}
        }
    }
}

/// Runs the cases of a family and holds them against the manifest.
fn family(family: &str) {
    let (mut wrong, mut total) = (Vec::new(), Report::default());
    let (mut passed, mut missing, mut elsewhere, mut skipped) = (0, 0, 0, 0);
    for (name, status) in MANIFEST.iter().filter(|(name, _)| name.split('/').next() == Some(family)) {
        let path: PathBuf = match (locate(split(name).0), status) {
            (_, Status::Elsewhere(_) | Status::Data(_)) => {
                elsewhere += 1;
                continue;
            }
            (Some(path), _) => path,
            (None, _) => {
                skipped += 1;
                continue;
            }
        };
        match (run(name, &path), status) {
            (Outcome::Ran(report), Status::Pass) => {
                println!("{name}: {}", report.worst());
                let complaints = report.wrong.len();
                wrong.extend(report.wrong.iter().take(5).map(|w| format!("{name}: {w}")));
                if complaints > 5 {
                    wrong.push(format!("{name}: … and {} more", complaints - 5));
                }
                if report.compared == 0 {
                    wrong.push(format!("{name}: nothing was compared"));
                }
                passed += 1;
                total.add(report);
            }
            (Outcome::Ran(_), _) => wrong.push(format!("{name}: nothing is missing any more")),
            (Outcome::Lacks(what), Status::Pass) => {
                wrong.push(format!("{name}: lacks {}", what.join(", ")));
            }
            (Outcome::Lacks(what), _) => {
                missing += 1;
                let (what, named) = (what.join(", "), format!("{status:?}"));
                if named != format!("Missing({what:?})") {
                    wrong.push(format!("{name}: lacks {what}, while the manifest says {named}"));
                }
            }
        }
    }
    println!("{family}: {passed} pass, {missing} miss a term, {elsewhere} in other tests; {}", total.worst());
    if skipped > 0 {
        println!(
            "{family}: {skipped} SKIPPED, since MD_REFERENCE does not name the folder they are read from"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! families {
    ($($family:ident),*) => {
        $(#[test] fn $family() { family(stringify!($family)); })*
        #[test]
        fn every_family_is_run() {
            for (name, _) in MANIFEST {
                let family = name.split('/').next().unwrap_or_default();
                assert!([$(stringify!($family)),*].contains(&family), "{family}");
            }
        }
    };
}
families!(
    analytic,
    files,
    files_own,
    lammps_own,
    lammps_unittest,
    longrange,
    manybody,
    nist,
    openmm,
    potentials,
    solids,
    statistics,
    trajectory
);
