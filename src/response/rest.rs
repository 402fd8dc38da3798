//! Bringing atoms, and the cell, to rest: where second derivatives are taken.

use super::elastic::Elastic;
use super::{Point, ResponseError, newton};
use crate::forces::Evaluator;
use crate::integrate::Motion;
use crate::integrate::minimize::{Ending, Lbfgs, Minimizer, Until};
use crate::system::State;
use std::ops::ControlFlow;

/// How a configuration is made the one at which derivatives are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    /// Whether the energy is minimised first.
    pub minimize: bool,
    /// The largest force component then, in kJ/mol/nm.
    pub force: f64,
    /// The pressure that the cell relaxes to, in kJ/mol/nm³; none for a cell that stays.
    pub pressure: Option<f64>,
    /// The largest force component at which Newton's method takes over from L-BFGS, in kJ/mol/nm: what energies cannot tell
    /// apart, forces can.
    pub near: f64,
    /// How far an atom goes in a step of L-BFGS, in nm.
    pub farthest: f64,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doing {
    /// After so many steps of a minimisation this is the largest force.
    Minimizing(u64, f64),
    /// So many strains have been tried.
    Straining(usize),
}

/// Is told what is being done; may want to stop.
pub type Watch<'a> = &'a mut dyn FnMut(Doing) -> ControlFlow<()>;

/// Steps of a minimisation, at most.
pub const STEPS: u64 = 200_000;
/// Changes of the cell, at most.
const CELLS: usize = 30;

impl Rest {
    /// Brings atoms, and the cell if asked, to rest.
    ///
    /// # Errors
    /// Where there is no rest, or somebody wanted to stop.
    pub fn settle(
        &self,
        evaluator: &mut Evaluator,
        state: &mut State,
        masses: &[f64],
        watch: Watch<'_>,
    ) -> Result<(), ResponseError> {
        if self.minimize {
            self.minimize(evaluator, state, masses, watch)?;
        }
        match self.pressure {
            Some(pressure) => self.relax_cell(evaluator, state, masses, pressure, watch),
            None => Ok(()),
        }
    }

    fn minimize(
        &self,
        evaluator: &mut Evaluator,
        state: &mut State,
        masses: &[f64],
        watch: Watch<'_>,
    ) -> Result<(), ResponseError> {
        let restless = |e: String| ResponseError::Restless(e);
        let mut minimizer = Lbfgs::new(20, self.farthest).map_err(|e| restless(e.to_string()))?;
        let mut forces = Default::default();
        let mut motion = Motion::start(state, masses, evaluator, &mut forces)
            .map_err(|e| restless(format!("forces cannot be computed: {e}")))?;
        let until = Until { force: self.force.max(self.near), steps: STEPS };
        let report = minimizer
            .minimize(&mut motion, &until, &mut |now| watch(Doing::Minimizing(now.step, now.force)))
            .map_err(|e| restless(format!("the energy cannot be minimised: {e}")))?;
        match report.ending {
            Ending::Stopped => Err(ResponseError::Interrupted),
            Ending::Steps => Err(restless(format!(
                "the energy is not minimised after {STEPS} steps: the largest force is {:.3}",
                report.last.force
            ))),
            Ending::Converged | Ending::Stalled => {
                // (a saddle stays what it is: what follows will say so)
                match newton(evaluator, state, masses, self.force) {
                    Ok(_) | Err(ResponseError::NoSolution(_)) => Ok(()),
                    Err(e) => Err(e),
                }
            }
        }
    }

    /// Strains the cell until its stress is a pressure: Newton's method with the elastic constants.
    fn relax_cell(
        &self,
        evaluator: &mut Evaluator,
        state: &mut State,
        masses: &[f64],
        pressure: f64,
        watch: Watch<'_>,
    ) -> Result<(), ResponseError> {
        let at_rest = vec![[0.0; 3]; masses.len()];
        for _ in 0..CELLS {
            let mut stopped = false;
            let mut point = Point::new(evaluator, state, masses);
            let elastic: Elastic =
                point.elastic(|done| stopped |= watch(Doing::Straining(done)).is_break())?;
            if stopped {
                return Err(ResponseError::Interrupted);
            }
            let scale = elastic.constants.amax();
            let left =
                std::array::from_fn::<f64, 6, _>(|k| elastic.stress[k] + if k < 3 { pressure } else { 0.0 });
            if left.iter().all(|s| s.abs() <= 1e-9 * scale) {
                return Ok(());
            }
            let strain = elastic.answer(left.map(|s| -s)).ok_or_else(|| {
                let message = "the cell cannot be relaxed: there is a strain that it does not resist";
                ResponseError::Restless(message.into())
            })?;
            // (no more than so much at a time)
            let most = strain.as_flattened().iter().fold(0.0, |m: f64, e| m.max(e.abs()));
            let by = (0.02 / most).min(1.0);
            *state = point.moved(&at_rest, strain, by)?;
            if self.minimize {
                self.minimize(evaluator, state, masses, watch)?;
            }
        }
        Err(ResponseError::Restless(format!("the cell is not relaxed after {CELLS} changes")))
    }
}
