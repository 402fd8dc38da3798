//! Lennard-Jones configurations of NIST's Standard Reference Simulation Website.

use super::engine::*;
use super::json::*;
use super::openmm::lennard_jones_tail;
use super::report::{Outcome, Report, Tolerance};
use md::catalog::Ending;
use md::forces::pair::Special;
use std::f64::consts::PI;
use std::path::Path;

pub fn run(path: &Path) -> Outcome {
    let case = read(path);
    if !case["forcefield"]["coulomb"].is_null() {
        return Outcome::Lacks(vec![format!("coulomb {}", text(&case["forcefield"]["coulomb"], "style"))]);
    }
    if !case["rows"].is_null() {
        return Outcome::Lacks(vec!["averages of a run".into()]);
    }
    let (catalog, system, tolerance) = (md::catalog(), System::read(&case), &case["tolerance"]);
    let mut report = Report::default();
    for reference in list(&case["reference"]) {
        let cutoff = number(reference, "cutoff");
        let ending = match text(reference, "scheme") {
            "truncated+LRC" => Ending::Truncate,
            "linear_force_shift" => Ending::ForceShift,
            other => panic!("scheme {other}"),
        };
        let term = PairTerm {
            name: "vdwl",
            energy: "lennard-jones",
            ending,
            rows: vec![(None, vec![1.0, 1.0], cutoff)],
            inner: 0.0,
            mix: Mix::Arithmetic,
            special: Special::default(),
        };
        // the published corrections for what lies beyond the cut-off, which the engine does not have yet
        let (n, volume) = (system.len() as f64, system.cell.volume().expect("a volume"));
        let (u_tail, w_tail) = match ending {
            Ending::Truncate => {
                let slope = 2.0 / 3.0 * cutoff.powi(-9) - cutoff.powi(-3);
                (n * n / volume * lennard_jones_tail(1.0, 1.0, cutoff), 16.0 * PI * n * n / volume * slope)
            }
            _ => (0.0, 0.0),
        };
        let exact = number(tolerance, "recomputed_rel");
        let recomputed = &reference["recomputed"];
        let expected = Expected {
            energies: Vec::new(),
            forces: (!recomputed["forces"].is_null()).then(|| vectors(&recomputed["forces"])),
            virial: (!recomputed["virial"].is_null()).then(|| array(&recomputed["virial"])),
        };
        let limits = Tolerance { energy: exact, force: 1e-9, virial: exact };
        for (kind, found) in system.evaluate(&mut system.evaluator(vec![term.build(&catalog, &system)])) {
            let what = format!("{kind}, {} {cutoff}", text(reference, "scheme"));
            expected.compare(&mut report, &what, &found, limits);
            let trace = found.virial[..3].iter().sum();
            let published = number(tolerance, "published_rel");
            for (source, relative) in [("published", published), ("feasst", exact), ("recomputed", exact)] {
                let says = |key: &str| as_number(&reference[source][key]);
                if let Some(e) = says("U_pair").filter(|_| source != "published") {
                    report.energy(&format!("{what}, {source}"), found.energy(), e, relative);
                }
                let all =
                    [("U_pair", found.energy()), ("W_pair", trace), ("U_lrc", u_tail), ("W_lrc", w_tail)];
                for (key, x) in all {
                    if let Some(e) = says(key) {
                        report.number(&format!("{what}, {source}: {key}"), x, e, relative * e.abs());
                    }
                }
            }
        }
    }
    Outcome::Ran(report)
}
