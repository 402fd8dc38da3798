//! LAMMPS's fixes: eight steps of a molecule under various forces. The rows of one file are cases of their own.

use super::engine::*;
use super::json::*;
use super::lammps;
use super::report::{Outcome, Report};
use md::catalog::Catalog;
use md::forces::{ForceSource, Forces, Term};
use md::integrate::verlet::VelocityVerlet;
use md::integrate::{Integrator, Motion};
use std::path::Path;

/// The rows.
pub fn parts(path: &Path) -> Vec<String> {
    list(&read(path)["reference"]).iter().map(|r| text(r, "name").to_owned()).collect()
}

/// kcal/mol/Å of a charge of 1 in 1 V/Å, by LAMMPS.
const VOLT: f64 = 23.060549;

pub fn run(path: &Path, part: &str) -> Outcome {
    let case = read(path);
    let row = list(&case["reference"]).iter().find(|r| r["name"] == part).expect("the row");
    let mut system = System::read(&case);
    // group solute: molecules 1 and 2, the others solvent
    let molecules = list(&case["system"]["molecule"]);
    let solute: Vec<usize> = (0..system.len()).filter(|&i| count(&molecules[i]) <= 2).collect();
    let catalog = md::catalog();
    let only_solute = match part {
        "nve" => true,
        "spring_self" | "addforce_const" | "efield_const" => false,
        _ => return Outcome::Lacks(vec![part.to_owned()]),
    };
    if only_solute {
        // what no fix integrates stays where it is
        for i in (0..system.len()).filter(|i| !solute.contains(i)) {
            system.atoms.masses[i] = 1e30;
            system.velocities[i] = [0.0; 3];
        }
    }
    if part == "addforce_const" {
        // the deck has no charges in its energy: a charge of 1 in a field stands for the force
        system.atoms.charges.fill(1.0);
    }
    let field = |system: &System| field(part, &catalog, system, &solute);

    let deck = lammps::deck(&case, &system, path);
    assert!(deck.lacks.is_empty(), "{:?}", deck.lacks);
    let mut terms = deck.terms;
    terms.extend(field(&system));
    let (mut state, mut forces, mut evaluator) = (system.state(), Forces::default(), system.evaluator(terms));
    let mut motion =
        Motion::start(&mut state, &system.atoms.masses, &mut evaluator, &mut forces).expect("forces");
    let mut verlet = VelocityVerlet::new(0.25e-3).expect("a time step");
    for _ in 0..8 {
        verlet.step(&mut motion).expect("a step");
    }

    let (mut report, tolerance, units) = (Report::default(), &case["tolerance"], system.units);
    let found = |i: usize| {
        let (r, v) = (state.positions.cartesian(&state.cell, i), state.velocities[i]);
        (r.map(|x| x / units.length), v.map(|x| x * units.time / units.length))
    };
    let (positions, velocities) = (vectors(&row["positions"]), vectors(&row["velocities"]));
    for i in 0..system.len() {
        let (r, v) = found(i);
        for k in 0..3 {
            let limit = number(tolerance, "position_abs");
            report.number(&format!("coordinate {k} of atom {i}"), r[k], positions[i][k], limit);
            if !only_solute || solute.contains(&i) {
                let limit = number(tolerance, "velocity_abs");
                report.number(&format!("velocity {k} of atom {i}"), v[k], velocities[i][k], limit);
            }
        }
    }
    // energy and virial of the field itself, at the end
    if let Some(term) = field(&system) {
        let mut evaluator = system.evaluator(vec![term]);
        for way in ways() {
            let kind = title(way);
            evaluator.method = way;
            evaluator.evaluate(&state.cell, &state.positions, &mut forces).expect("forces");
            let e = number(row, "fix_scalar");
            report.energy(&format!("{kind}: {part}"), forces.energy() / units.energy, e, 1e-9);
            // (LAMMPS adds x f(y) without y f(x), so that only the diagonal can be compared)
            for (k, w) in numbers(&row["fix_virial"]).into_iter().enumerate().take(3) {
                let found = forces.virial[k] / units.energy;
                report.number(&format!("{kind}: virial {k}"), found, w, 1e-9 * w.abs().max(1e-3));
            }
        }
    }
    Outcome::Ran(report)
}

fn field(part: &str, catalog: &Catalog, system: &System, solute: &[usize]) -> Option<Box<dyn Term>> {
    let on = || solute.iter().copied();
    let uniform = |scale: f64| {
        field_term(catalog, system, "uniform-electric-field", &[0.0, -0.1, 0.1].map(|x| x * scale), on())
    };
    match part {
        "spring_self" => Some(field_term(catalog, system, "position-restraint", &[10.0], on())),
        "addforce_const" => Some(uniform(1.0)),
        "efield_const" => Some(uniform(VOLT)),
        _ => None,
    }
}
