//! Results at rest: energies, lattice and elastic constants, frequencies, distances.

use super::target::{Found, Known, Target};
use super::{FitError, System};
use crate::forces::Evaluator;
use crate::response::rest::Rest;
use crate::response::sensitivity::Outcome;
use crate::response::{Point, ResponseError};
use crate::system::State;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Results of one system at rest. Their derivatives are those of [`Point::sensitivity`]: by the implicit function theorem, not
/// through the steps of the minimiser.
pub struct Properties {
    /// What computes the energy.
    pub evaluator: Evaluator,
    /// Where the way to rest begins.
    pub start: State,
    /// Of the atoms.
    pub masses: Vec<f64>,
    /// How they come to rest.
    pub rest: Rest,
    /// The results, each with a factor.
    pub of: Vec<(Outcome, f64)>,
    /// What is known of them, one for each.
    pub known: Vec<Known>,
    /// Whether somebody wants to stop.
    pub stop: Arc<AtomicBool>,
}

impl Target for Properties {
    fn known(&self) -> &[Known] {
        &self.known
    }
    fn find(&mut self, numbers: &[f64], slopes: bool) -> Result<Found, FitError> {
        System::set(std::slice::from_mut(&mut self.evaluator), numbers)?;
        // (from the same start, so that the results are functions of the parameters)
        let mut state = self.start.clone();
        let stop = &self.stop;
        let watch = &mut |_| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let failed = |e: ResponseError| match e {
            ResponseError::Interrupted => FitError::Interrupted,
            e => FitError::Nowhere(e.to_string()),
        };
        self.rest.settle(&mut self.evaluator, &mut state, &self.masses, watch).map_err(failed)?;
        let mut point = Point::new(&mut self.evaluator, &state, &self.masses);
        let mut found = Found::default();
        for (outcome, factor) in &self.of {
            let value = if slopes {
                let result = point.sensitivity(outcome).map_err(failed)?;
                found.slopes.push(result.slopes.iter().map(|s| factor * s.slope).collect());
                result.value
            } else {
                point.outcome(outcome).map_err(failed)?
            };
            found.values.push(factor * value);
        }
        Ok(found)
    }
}
