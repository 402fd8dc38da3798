//! How fast a plan runs: its stages without files, and a clock.
//!
//! A [`Benchmark`] carries out all stages of a plan but the last, and then times steps of the last one, of which its
//! number of steps is no part. A step is that of a run: the integrator, the neighbour lists, the forces, energies and
//! virial where a row of them would be due, and the test of velocities. Rows, frames and restart files are left out.
//!
//! Neighbour lists cost nothing in most steps and much in some. Therefore a [`Sample`] ends with a step that builds one,
//! where the next begins: it holds a whole number of their lives, unless that takes too long (in a crystal lists may
//! live for ever).

use super::last_stage::{LastStage, broken};
use super::{RunError, breakdown, farthest, term_names, too_fast};
use crate::input::plan::Plan;
use crate::integrate::Motion;
use crate::observe::progress::Mode;
use std::time::{Duration, Instant};

/// A system whose steps are timed.
pub struct Benchmark {
    last: LastStage,
    names: Vec<String>,
    farthest: f64,
}

/// Steps that were timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// How many.
    pub steps: u64,
    /// What they took.
    pub time: Duration,
    /// What each phase of them took: neighbour lists, the positions that kernels read, each term of the energy
    /// by its name, integration, and the rest,
    /// with which they add up to the whole.
    pub phases: Vec<(String, Duration)>,
    /// How many neighbour lists were built.
    pub list_builds: u64,
}

impl Benchmark {
    /// Carries out all stages but the last, and begins that.
    ///
    /// # Errors
    /// A plan whose last stage is none that integrates, or whose earlier stages cannot be carried out.
    pub fn start(plan: Plan) -> Result<Self, RunError> {
        let names = term_names(&plan.setup.terms);
        let last = LastStage::reach(plan, Mode::Quiet)?;
        let farthest = farthest(&last.evaluator);
        Ok(Self { last, names, farthest })
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.last.atoms.len()
    }

    /// The time step in ps (or τ).
    pub fn time_step(&self) -> f64 {
        self.last.integrator.time_step()
    }

    /// Takes steps for that long, and then until a neighbour list is built, but not for more than twice as long.
    ///
    /// # Errors
    /// A system that breaks down.
    pub fn sample(&mut self, least: Duration) -> Result<Sample, RunError> {
        let Self { last, names, farthest } = self;
        let LastStage { atoms, state, forces, evaluator, stage, integrator, .. } = last;
        evaluator.timings_mut().reset();
        let mut motion = Motion::resume(state, &atoms.masses, evaluator, forces)
            .map_err(|error| broken(stage, 0, error))?;
        let first = motion.list_builds();
        let time_step = integrator.time_step();
        let (mut steps, mut stepping) = (0, Duration::ZERO);
        let begun = Instant::now();
        let time = loop {
            let before = motion.list_builds();
            let next = motion.state.step + 1;
            let row = next.is_multiple_of(stage.energies_every);
            motion.forces_only = !row;
            let clock = Instant::now();
            let stepped = integrator.step(&mut motion);
            stepping += clock.elapsed();
            stepped.map_err(|error| broken(stage, next - 1, error))?;
            if row {
                std::hint::black_box(motion.kinetic_energy());
            }
            if row || next.is_multiple_of(10) {
                too_fast(motion.state, time_step, *farthest).map_err(|fast| {
                    let what = format!("atom {} moves too far in one step", fast.atom + 1);
                    Box::new(breakdown::Breakdown::at_start(&stage.name, next, what))
                })?;
            }
            steps += 1;
            let time = begun.elapsed();
            if time >= least && (motion.list_builds() > before || time >= 2 * least) {
                break time;
            }
        };
        let list_builds = motion.list_builds() - first;
        let spent = evaluator.timings();
        let mut phases = vec![("neighbour lists".to_owned(), spent.lists)];
        phases.push(("positions for kernels".to_owned(), spent.rows));
        phases.extend(names.iter().cloned().zip(spent.terms.iter().copied()));
        phases.push(("integration".to_owned(), stepping.saturating_sub(spent.total())));
        let rest = time.saturating_sub(phases.iter().map(|(_, spent)| *spent).sum());
        phases.push(("rest".to_owned(), rest));
        Ok(Sample { steps, time, phases, list_builds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::reader::Document;

    /// The liquid that `md bench` times.
    const LIQUID: &str = include_str!("../cli/bench/lj.toml");
    const STAGES: &str = r#"
        [[stage]]
        name = "down"
        steps = 3
        minimizer.fire = {}
        [[stage]]
        name = "warm"
        steps = 5
        velocities = 1.5
        integrator.langevin = { time-step = 0.004, temperature = 1.2, friction = 1.0 }
        [[stage]]
        name = "timed"
        steps = 0
        integrator.velocity-verlet = { time-step = 0.004 }
    "#;

    /// A small one, with other stages.
    fn plan(stages: &str) -> Plan {
        let (system, _) = LIQUID.split_once("[[stage]]").unwrap();
        let (text, repeat) =
            (format!("{system}{stages}"), ("system.lattice.repeat".to_owned(), "[3, 3, 3]".to_owned()));
        Plan::of(&Document::parse("in.toml", &text, &[repeat]).unwrap(), &crate::catalog()).unwrap()
    }

    #[test]
    fn phases_add_up_and_steps_are_taken() {
        let mut benchmark = Benchmark::start(plan(STAGES)).unwrap();
        assert_eq!((benchmark.atoms(), benchmark.time_step()), (108, 0.004));
        assert_eq!(benchmark.last.state.step, 5, "the stage before the last one was carried out");
        let sample = benchmark.sample(Duration::from_millis(3)).unwrap();
        assert_eq!(benchmark.last.state.step, 5 + sample.steps);
        let names: Vec<&str> = sample.phases.iter().map(|(name, _)| &**name).collect();
        assert_eq!(
            names,
            ["neighbour lists", "positions for kernels", "lennard-jones", "integration", "rest"]
        );
        assert_eq!(sample.phases.iter().map(|(_, spent)| *spent).sum::<Duration>(), sample.time);
        assert!(sample.time >= Duration::from_millis(3));
        // (a sample of no time is a step, which the evaluator has seen)
        let step = benchmark.sample(Duration::ZERO).unwrap();
        assert_eq!((step.steps, benchmark.last.evaluator.timings().evaluations), (1, 1));
    }

    #[test]
    fn a_minimisation_has_no_speed() {
        let (text, _) = STAGES.split_once("[[stage]]\n        name = \"warm\"").unwrap();
        assert!(matches!(Benchmark::start(plan(text)), Err(RunError::NoDynamics { .. })));
    }
}
