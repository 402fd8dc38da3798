//! A plan up to the beginning of its last stage, without files.

use super::{Method, RunError, begin, breakdown, conserves_momentum, freedom};
use crate::forces::{Evaluator, ForceSource, Forces};
use crate::input::plan::{Plan, Stage};
use crate::integrate::minimize::{self, Until};
use crate::integrate::{Integrator, Motion, StepError};
use crate::observe::progress::{Mode, Progress};
use crate::system::{Atoms, State};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What stands at the beginning of a stage that integrates.
pub struct LastStage {
    /// The atoms.
    pub atoms: Arc<Atoms>,
    /// Where they are.
    pub state: State,
    /// The forces there.
    pub forces: Forces,
    /// What computes them.
    pub evaluator: Evaluator,
    /// The stage.
    pub stage: Stage,
    /// What takes its steps.
    pub integrator: Box<dyn Integrator>,
    /// Degrees of freedom.
    pub freedom: usize,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl LastStage {
    /// Carries out all stages but the last, and begins that.
    ///
    /// # Errors
    /// A plan whose last stage is none that integrates, or whose earlier stages cannot be carried out.
    pub fn reach(plan: Plan, mode: Mode) -> Result<Self, RunError> {
        let Plan { atoms, mut state, setup, mut stages, boltzmann, seed, .. } = plan;
        let last = stages.pop().ok_or(RunError::NoStages)?;
        let Method::Dynamics(integrator) = Method::of(&last, boltzmann, seed)? else {
            return Err(RunError::NoDynamics { stage: last.name });
        };
        let mut evaluator = Evaluator::new(setup).map_err(RunError::Forces)?;
        let mut forces = Forces::default();
        let momentum = evaluator
            .evaluate(&state.cell, &state.positions, &mut forces)
            .and_then(|()| conserves_momentum(&mut evaluator, &state))
            .map_err(|error| broken(&last, 0, StepError::Forces { step: 0, error }))?;
        let masses = &atoms.masses;
        for (k, stage) in stages.iter().enumerate() {
            let freedom = freedom(stage, atoms.len(), momentum);
            begin(stage, k, &mut state, masses, boltzmann, seed, freedom)?;
            let mut progress = Progress::start(&stage.name, 0, stage.steps, mode);
            let mut motion = Motion::resume(&mut state, masses, &mut evaluator, &mut forces)
                .map_err(|error| broken(stage, 0, error))?;
            let carried_out = match Method::of(stage, boltzmann, seed)? {
                Method::Dynamics(mut integrator) => {
                    motion.forces_only = true;
                    (0..stage.steps).try_for_each(|step| {
                        progress.update(step, String::new);
                        integrator.step(&mut motion)
                    })
                }
                Method::Minimization(mut minimizer, force) => {
                    let until = Until { force, steps: stage.steps };
                    let watch = &mut |now: &minimize::Progress| {
                        progress.update(now.step, String::new);
                        ControlFlow::Continue(())
                    };
                    minimizer.go_on(&mut motion, &until, watch).map(drop)
                }
            };
            let carried_out = carried_out.and_then(|()| motion.complete());
            carried_out.map_err(|error| broken(stage, state.step, error))?;
        }
        let freedom = freedom(&last, atoms.len(), momentum);
        begin(&last, stages.len(), &mut state, masses, boltzmann, seed, freedom)?;
        Ok(Self { atoms, state, forces, evaluator, stage: last, integrator, freedom, seed })
    }
}

/// A stage that broke down after step `now`.
pub(super) fn broken(stage: &Stage, now: u64, error: StepError) -> RunError {
    let (step, what) = breakdown::in_words(&error, now);
    Box::new(breakdown::Breakdown::at_start(&stage.name, step, what)).into()
}
