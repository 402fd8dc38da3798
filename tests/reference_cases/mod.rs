//! The parts of the suite in `tests/reference.rs`.

mod crystals;
mod engine;
mod fixes;
mod json;
mod lammps;
pub mod manifest;
mod nist;
mod openmm;
pub mod report;
mod smooth_zbl;
mod trajectory;

use report::{Outcome, Report};
use std::path::{Path, PathBuf};

/// The folder that the environment variable MD_REFERENCE names.
pub fn in_place() -> Option<PathBuf> {
    std::env::var_os("MD_REFERENCE").map(PathBuf::from)
}

/// The copies that stand in the repository.
pub fn copied() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference")
}

/// Where a file of the set is; `None` for one that is read in place while MD_REFERENCE is not set.
pub fn locate(file: &str) -> Option<PathBuf> {
    let places = [Some(copied()), in_place()];
    places.into_iter().flatten().map(|folder| folder.join(file)).find(|path| path.exists())
}

/// A case's file, and the part of it that it is, if its file holds several.
pub fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once('#').map_or((name, None), |(file, part)| (file, Some(part)))
}

/// The parts that a file holds, if it holds several.
pub fn parts(file: &str, path: &Path) -> Vec<String> {
    match file {
        "lammps_unittest/fixes.json" => fixes::parts(path),
        "analytic/lattice.json" => crystals::lattice_parts(path),
        "solids/solids.json" => crystals::solid_parts(path),
        _ => Vec::new(),
    }
}

/// Runs a case on the engine.
pub fn run(name: &str, path: &Path) -> Outcome {
    let (file, part) = split(name);
    let part = part.unwrap_or_default();
    match file.split('/').next().unwrap_or_default() {
        _ if file == "lammps_unittest/fixes.json" => fixes::run(path, part),
        _ if file == "analytic/lattice.json" => crystals::lattice(path, part),
        "lammps_unittest" | "lammps_own" | "manybody" | "longrange" => lammps::run(path),
        "nist" => nist::run(path),
        "openmm" => openmm::run(path),
        "solids" => crystals::solid(path, part),
        "trajectory" => trajectory::run(path),
        // (which formats are read, `tests/formats.rs` tests)
        "files" | "files_own" => match md::formats::Format::from_path(path) {
            Ok(_) => Outcome::Ran(Report::default()),
            Err(_) => {
                let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("these");
                Outcome::Lacks(vec![format!("{extension} files")])
            }
        },
        "statistics" => Outcome::Lacks(vec!["tests of ensembles".into()]),
        family => panic!("nothing runs the cases of {family}"),
    }
}
