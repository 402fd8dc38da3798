//! A room of the house uses only what stands to its left (see ARCHITECTURE.md).

use std::path::Path;

/// For each room, the rooms it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("autodiff", &[]),
    ("units", &[]),
    ("random", &[]),
    ("formats", &["units"]),
    ("system", &["units"]),
    ("neighbors", &["autodiff", "system"]),
    ("formula", &[]),
    ("forces", &["autodiff", "formula", "neighbors", "system"]),
    ("catalog", &["forces"]),
    ("integrate", &["autodiff", "forces", "system", "random"]),
    ("adjoint", &["autodiff", "neighbors", "forces", "integrate", "system", "random"]),
    ("response", &["autodiff", "forces", "integrate", "system", "random"]),
    (
        "fit",
        &["autodiff", "forces", "integrate", "adjoint", "response", "system", "random", "units", "formats"],
    ),
    (
        "input",
        &[
            "units",
            "random",
            "formats",
            "formula",
            "system",
            "neighbors",
            "forces",
            "catalog",
            "integrate",
            "adjoint",
            "response",
            "fit",
        ],
    ),
    ("plot", &["units"]),
    ("analysis", &["units", "system", "formats", "plot"]),
    ("observe", &["units", "formats", "system", "forces", "integrate", "input"]),
    (
        "run",
        &[
            "units",
            "random",
            "formats",
            "system",
            "neighbors",
            "forces",
            "integrate",
            "input",
            "observe",
            "plot",
            "analysis",
        ],
    ),
];

fn sources(at: &Path, found: &mut Vec<std::path::PathBuf>) {
    if at.is_file() {
        found.push(at.to_owned());
        return;
    }
    let mut entries: Vec<_> = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries.iter().for_each(|e| sources(e, found));
}

/// The rooms named in `use crate::…` lines and `crate::…` paths outside comments and unit tests.
fn used(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    let mut rooms = Vec::new();
    for line in code {
        for (at, _) in line.match_indices("crate::") {
            if line[..at].ends_with('$') {
                continue;
            }
            let rest = &line[at + "crate::".len()..];
            let names = rest.strip_prefix('{').unwrap_or(rest);
            let name: String = names.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            rooms.push(name);
        }
    }
    rooms
}

#[test]
fn no_arrow_points_backward() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for (room, allowed) in MAY_USE {
        let folder = src.join(room);
        let at = if folder.is_dir() { folder } else { src.join(format!("{room}.rs")) };
        let mut files = Vec::new();
        sources(&at, &mut files);
        for file in files {
            for other in used(&std::fs::read_to_string(&file).unwrap()) {
                let known = MAY_USE.iter().any(|(r, _)| *r == other);
                let fine = other == *room || allowed.contains(&other.as_str());
                assert!(
                    !known || fine,
                    "{} uses `{other}`, which stands to the right of `{room}`",
                    file.display()
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "only {seen} arrows were found: the reader of `use` lines no longer works");
}

#[test]
fn every_room_has_its_place_in_the_list() {
    let lib = include_str!("../src/lib.rs");
    for line in lib.lines().filter_map(|l| l.strip_prefix("pub mod ")) {
        let room = line.trim_end_matches(';');
        assert!(room == "cli" || MAY_USE.iter().any(|(r, _)| *r == room), "`{room}` is in no list");
    }
}
