//! A hundred steps at constant energy.

use super::engine::*;
use super::json::*;
use super::lammps;
use super::report::{Outcome, Report};
use md::forces::Forces;
use md::integrate::verlet::VelocityVerlet;
use md::integrate::{Integrator, Motion};
use std::path::Path;

pub fn run(path: &Path) -> Outcome {
    let case = read(path);
    let system = System::read(&case);
    let deck = lammps::deck(&case, &system, path);
    if !deck.lacks.is_empty() {
        return Outcome::Lacks(deck.lacks);
    }
    let mut report = Report::default();
    let mut evaluator = system.evaluator(deck.terms);
    for way in ways() {
        let kind = title(way);
        evaluator.method = way;
        let (mut state, mut forces) = (system.state(), Forces::default());
        let mut motion =
            Motion::start(&mut state, &system.atoms.masses, &mut evaluator, &mut forces).expect("forces");
        let mut verlet = VelocityVerlet::new(number(&case["integrator"], "dt")).expect("a time step");
        let steps = count(&case["integrator"]["steps"]);
        let (reference, by_step) = (&case["reference"], &case["tolerance"]["by_step"]);
        for step in 0..=steps {
            if step > 0 {
                verlet.step(&mut motion).expect("a step");
            }
            for row in list(&reference["energy_per_step"]) {
                let [at, potential, kinetic] = array(row);
                if at == step as f64 {
                    let what = format!("{kind}, step {step}");
                    report.energy(&what, motion.forces.energy(), potential, 1e-11);
                    report.energy(&what, motion.kinetic_energy(), kinetic, 1e-11);
                }
            }
            for snapshot in list(&reference["snapshots"]).iter().filter(|s| count(&s["step"]) == step) {
                let limit = number(by_step, &step.to_string());
                let positions = vectors(&snapshot["positions_unwrapped"]);
                let velocities = vectors(&snapshot["velocities"]);
                for (i, (r, v)) in positions.iter().zip(&velocities).enumerate() {
                    let (place, velocity) =
                        (motion.state.positions.cartesian(&motion.state.cell, i), motion.state.velocities[i]);
                    for k in 0..3 {
                        let what = format!("{kind}, step {step}, atom {i}, component {k}");
                        report.number(&what, place[k], r[k], limit);
                        // (velocities have no tolerance; a step of 0.004 gives a position the same digits)
                        report.number(&what, velocity[k], v[k], limit / 0.004);
                    }
                }
            }
        }
    }
    Outcome::Ran(report)
}
