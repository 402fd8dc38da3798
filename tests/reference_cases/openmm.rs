//! Cases of OpenMM: whole force fields in nm and kJ/mol.

use super::engine::*;
use super::json::*;
use super::report::{Outcome, Report, Tolerance};
use md::catalog::{Catalog, Ending, EnergyKind};
use md::forces::Term;
use md::forces::pair::Special;
use serde_json::Value;
use std::f64::consts::PI;
use std::path::Path;

pub fn run(path: &Path) -> Outcome {
    let case = read(path);
    let (field, reference) = (&case["forcefield"]["terms"], &case["reference"]);
    let lacks = lacks(&case);
    if !lacks.is_empty() {
        return Outcome::Lacks(lacks);
    }
    let catalog = md::catalog();
    let mut system = System::read(&case);
    let nonbonded = list(field).iter().find(|t| t["kind"] == "nonbonded").expect("nonbonded");
    let kinds = types(&mut system, nonbonded);
    let limits = Tolerance::PLAIN;
    let mut report = Report::default();

    let mut everything = Vec::new();
    let mut expected = Expected { forces: Some(vectors(&reference["forces"])), ..Expected::default() };
    for (k, term) in list(field).iter().enumerate() {
        let made = || terms(&catalog, &system, k, term, &kinds);
        everything.extend(made());
        let key = |of: &Value| {
            let names = of.as_object().into_iter().flat_map(|o| o.keys());
            names.into_iter().find(|n| n.starts_with(&format!("{k}:"))).cloned()
        };
        let energies = &reference["energy"];
        if term["kind"] == "nonbonded" {
            let tail = tail(term, &system, &kinds);
            expected.energies.push(("lj".into(), number(energies, "nonbonded_lj") - tail));
            expected.energies.push(("coulomb".into(), number(energies, "nonbonded_coulomb")));
        } else if let Some(name) = key(energies) {
            expected.energies.push((k.to_string(), number(energies, &name)));
        }
        if let Some(name) = key(&reference["forces_by_term"]) {
            let mut evaluator = system.evaluator(made());
            let forces = Some(vectors(&reference["forces_by_term"][&name]));
            let expected = Expected { forces, ..Expected::default() };
            for (kind, found) in system.evaluate(&mut evaluator) {
                expected.compare(&mut report, &format!("{kind}: {name}"), &found, limits);
            }
        }
    }
    let mut evaluator = system.evaluator(everything);
    for (kind, found) in system.evaluate(&mut evaluator) {
        expected.compare(&mut report, &kind, &found, limits);
    }
    Outcome::Ran(report)
}

fn lacks(case: &Value) -> Vec<String> {
    let mut lacks = Vec::new();
    for term in list(&case["forcefield"]["terms"]) {
        match text(term, "kind") {
            "harmonic_bond" | "harmonic_angle" | "periodic_torsion" | "rb_torsion" => {}
            // coefficients of pairs of types, which we have
            "CustomNonbondedForce" => {}
            "CustomBondForce" => lacks.push("1-4 Lennard-Jones with parameters of its own".to_owned()),
            "nonbonded" => match text(term, "method") {
                "no_cutoff" | "cutoff_periodic_reaction_field" => {}
                method => lacks.push(format!("nonbonded {method}")),
            },
            kind => lacks.push(kind.to_owned()),
        }
    }
    if !list(&case["virtual_sites"]).is_empty() {
        lacks.push("virtual sites".into());
    }
    if !case["reference"]["snapshots"].is_null() {
        lacks.push("constraints".into());
    }
    lacks
}

/// Atoms with the same σ and ε are of one type.
fn types(system: &mut System, nonbonded: &Value) -> Vec<[f64; 2]> {
    let mut kinds: Vec<[f64; 2]> = Vec::new();
    for (i, row) in list(&nonbonded["rows"]).iter().enumerate() {
        let [charge, sigma, epsilon] = array(row);
        let kind = kinds.iter().position(|k| *k == [epsilon, sigma]).unwrap_or_else(|| {
            kinds.push([epsilon, sigma]);
            kinds.len() - 1
        });
        system.atoms.types[i] = kind as u32;
        system.atoms.charges[i] = charge;
    }
    system.atoms.type_names = (0..kinds.len()).map(|k| k.to_string()).collect();
    // the exceptions replace the pairs
    let pairs =
        list(&nonbonded["exceptions"]["rows"]).iter().map(|e| (count(&e[0]) as u32, count(&e[1]) as u32));
    system.joined[0] = pairs.collect();
    kinds
}

/// Terms named by their number, those of nonbonded pairs `lj` and `coulomb`.
fn terms(
    catalog: &Catalog,
    system: &System,
    k: usize,
    term: &Value,
    kinds: &[[f64; 2]],
) -> Vec<Box<dyn Term>> {
    use EnergyKind::{Angle, Bond, Dihedral};
    let bonded = |energy, atoms: usize, order: &[usize]| {
        let tuples: Vec<_> = list(&term["rows"])
            .iter()
            .map(|row| {
                let who = (0..atoms).map(|a| count(&row[a]) as u32).collect();
                let row = numbers(row);
                (who, order.iter().map(|&c| row[atoms + c]).collect())
            })
            .collect();
        vec![tuple_term(catalog, system, &k.to_string(), energy, &tuples)]
    };
    match text(term, "kind") {
        "harmonic_bond" => bonded((Bond, "harmonic"), 2, &[1, 0]),
        "harmonic_angle" => bonded((Angle, "harmonic"), 3, &[1, 0]),
        "periodic_torsion" => bonded((Dihedral, "periodic"), 4, &[2, 0, 1]),
        "rb_torsion" => bonded((Dihedral, "ryckaert-bellemans"), 4, &[0, 1, 2, 3, 4, 5]),
        "nonbonded" => pairs(catalog, system, term, kinds),
        _ => unreachable!(),
    }
}

fn pairs(catalog: &Catalog, system: &System, term: &Value, kinds: &[[f64; 2]]) -> Vec<Box<dyn Term>> {
    // exceptions that keep a part of the pair: σ is the mixed one, ε and q q are parts of it
    let (mut lj, mut coulomb) = (Vec::new(), Vec::new());
    for row in list(&term["exceptions"]["rows"]) {
        let [i, j] = [count(&row[0]), count(&row[1])];
        let [_, _, qq, sigma, epsilon] = array(row);
        let pair = (i as u32, j as u32);
        if epsilon != 0.0 {
            let [a, b] = [i, j].map(|i| kinds[system.atoms.types[i] as usize]);
            assert!((sigma - 0.5 * (a[1] + b[1])).abs() < 1e-14, "an exception with a size of its own");
            lj.push((pair.0, pair.1, epsilon / (a[0] * b[0]).sqrt()));
        }
        if qq != 0.0 {
            coulomb.push((pair.0, pair.1, qq / (system.atoms.charges[i] * system.atoms.charges[j])));
        }
    }
    let special = |pairs| Special { leave_out: [true, false, false], pairs, remainder: false };
    let (far, field) = (1e3, &term["reaction_field"]);
    let cutoff = as_number(&term["cutoff_nm"]).unwrap_or(far);
    let switched = term["switching"]["on"] == true;
    let rows = kinds.iter().enumerate().map(|(k, p)| (Some((k, k)), p.to_vec(), cutoff));
    let lj = PairTerm {
        name: "lj",
        energy: "lennard-jones",
        ending: if switched { Ending::Switch } else { Ending::Truncate },
        rows: rows.collect(),
        inner: as_number(&term["switching"]["from_nm"]).unwrap_or(0.0),
        mix: Mix::Arithmetic,
        special: special(lj),
    };
    // here without what a reaction field does to excluded pairs and to each atom itself
    let (energy, values) = match as_number(&field["epsilon"]) {
        Some(epsilon) => ("reaction-field", vec![epsilon]),
        None => ("coulomb", vec![]),
    };
    let coulomb = PairTerm {
        name: "coulomb",
        energy,
        ending: Ending::Truncate,
        rows: vec![(None, values, cutoff)],
        inner: 0.0,
        mix: Mix::Arithmetic,
        special: special(coulomb),
    };
    vec![lj.build(catalog, system), coulomb.build(catalog, system)]
}

/// OpenMM's correction for dispersion beyond the cut-off, which the engine does not have yet: the mean over all
/// pairs of atoms, each with itself among them, times 8π N²/V.
fn tail(term: &Value, system: &System, kinds: &[[f64; 2]]) -> f64 {
    let (Some(volume), Some(cutoff)) = (system.cell.volume(), as_number(&term["cutoff_nm"])) else {
        return 0.0;
    };
    if term["dispersion_correction"] != true {
        return 0.0;
    }
    let of_kind = |k: usize| system.atoms.types.iter().filter(|&&t| t as usize == k).count() as f64;
    let n = system.len() as f64;
    let mut sum = 0.0;
    for (i, a) in kinds.iter().enumerate() {
        for (j, b) in kinds.iter().enumerate().skip(i) {
            let pairs = if i == j { 0.5 * of_kind(i) * (of_kind(i) + 1.0) } else { of_kind(i) * of_kind(j) };
            let (epsilon, sigma) = ((a[0] * b[0]).sqrt(), 0.5 * (a[1] + b[1]));
            sum += pairs * lennard_jones_tail(epsilon, sigma, cutoff);
        }
    }
    n * n / volume * sum / (0.5 * n * (n + 1.0))
}

/// 2π ∫ 4ε[(σ/r)¹² − (σ/r)⁶] r² dr from the cut-off on.
pub fn lennard_jones_tail(epsilon: f64, sigma: f64, cutoff: f64) -> f64 {
    8.0 * PI * epsilon * (sigma.powi(12) / (9.0 * cutoff.powi(9)) - sigma.powi(6) / (3.0 * cutoff.powi(3)))
}
