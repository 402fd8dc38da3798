//! Averages of a canonical ensemble: energies, pressure, structure.
//!
//! States are drawn by a simulation with the parameters as they are; for parameters nearby they are
//! [reweighted](crate::adjoint::reweighting), and drawn anew where too few would be left. The derivatives are covariances (S. Thaler
//! and J. Zavadlav, Nat. Commun. 12, 6884 (2021)): nothing is carried through time.

use super::target::{Found, Known, Target};
use super::{FitError, System};
use crate::adjoint::reweighting::{Drawn, Reweighted};
use crate::adjoint::{Observable, Run, Thermal};
use crate::forces::Evaluator;
use crate::integrate::Integrator;
use crate::system::State;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes what takes the steps of a simulation.
pub type MakeIntegrator = Box<dyn Fn() -> Box<dyn Integrator> + Send>;

/// How states are drawn.
pub struct Drawing {
    /// What takes the steps, at a constant temperature.
    pub integrator: MakeIntegrator,
    /// The temperature, K.
    pub temperature: f64,
    /// Degrees of freedom and k_B.
    pub thermal: Thermal,
    /// Of the atoms.
    pub masses: Vec<f64>,
    /// Steps that are not seen, each time.
    pub equilibrate: usize,
    /// Steps that follow.
    pub steps: usize,
    /// Steps from one state that is seen to the next.
    pub every: usize,
    /// The part of the states that must be left by reweighting.
    pub least: f64,
}

/// Averages that are known.
pub struct Averages {
    evaluators: Vec<Evaluator>,
    drawing: Drawing,
    observables: Vec<Observable>,
    known: Vec<Known>,
    stop: Arc<AtomicBool>,
    now: Pool,
}

/// States that were drawn lately, with the parameters that they were drawn with.
#[derive(Clone, Serialize, Deserialize)]
struct Pool {
    /// Where the next simulation begins.
    start: State,
    /// The latest that was of use comes last.
    drawn: Vec<(Vec<f64>, Drawn)>,
    simulations: usize,
}

/// How many are kept.
const KEPT: usize = 3;

impl Averages {
    /// Averages of observables, one for each number that is known, of a system that begins somewhere. Evaluators are several of
    /// the same, for as many threads.
    ///
    /// # Panics
    /// If there are not as many observables as numbers.
    pub fn new(
        evaluators: Vec<Evaluator>,
        drawing: Drawing,
        start: State,
        observables: Vec<Observable>,
        known: Vec<Known>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        assert_eq!(observables.len(), known.len());
        let now = Pool { start, drawn: Vec::new(), simulations: 0 };
        Self { evaluators, drawing, observables, known, stop, now }
    }

    /// The averages with these parameters: by states at hand if they will do, else by new ones.
    ///
    /// # Errors
    /// [`FitError::Nowhere`] where a simulation breaks down.
    pub fn reweighted(&mut self, numbers: &[f64], slopes: bool) -> Result<Reweighted, FitError> {
        System::set(&mut self.evaluators, numbers)?;
        for k in (0..self.now.drawn.len()).rev() {
            if let Some(found) = self.of(k, self.drawing.least, slopes)? {
                // (the order is by use)
                let used = self.now.drawn.remove(k);
                self.now.drawn.push(used);
                return Ok(found);
            }
        }
        let drawn = self.draw()?;
        self.now.start = drawn.last.clone();
        self.now.simulations += 1;
        if self.now.drawn.len() == KEPT {
            self.now.drawn.remove(0);
        }
        self.now.drawn.push((numbers.to_vec(), drawn));
        let last = self.now.drawn.len() - 1;
        self.of(last, 0.0, slopes)?.ok_or_else(|| FitError::Nowhere("an average is not a number".into()))
    }

    fn of(&mut self, k: usize, least: f64, slopes: bool) -> Result<Option<Reweighted>, FitError> {
        let Drawing { masses, thermal, temperature, .. } = &self.drawing;
        let (_, drawn) = &self.now.drawn[k];
        Ok(drawn.reweighted(
            &mut self.evaluators,
            &self.observables,
            masses,
            *thermal,
            *temperature,
            least,
            slopes,
        )?)
    }

    fn draw(&mut self) -> Result<Drawn, FitError> {
        let Drawing { integrator, masses, thermal, equilibrate, steps, every, .. } = &self.drawing;
        let run = Run {
            evaluator: &mut self.evaluators[0],
            integrator: integrator(),
            masses,
            start: self.now.start.clone(),
            steps: equilibrate + steps,
            thermal: *thermal,
        };
        let stop = self.stop.clone();
        let watch = move || stop.load(Ordering::Relaxed);
        Ok(run.draw(&self.observables, [*equilibrate, *every], watch)?)
    }
}

impl Target for Averages {
    fn known(&self) -> &[Known] {
        &self.known
    }
    fn find(&mut self, numbers: &[f64], slopes: bool) -> Result<Found, FitError> {
        let Reweighted { values, slopes, .. } = self.reweighted(numbers, slopes)?;
        Ok(Found { values, slopes })
    }
    fn without(&mut self, numbers: &[f64]) -> Result<Vec<Vec<f64>>, FitError> {
        Ok(self.reweighted(numbers, false)?.without)
    }
    fn save(&self) -> Vec<u8> {
        // (what is made of numbers can be written)
        postcard::to_stdvec(&self.now).unwrap_or_default()
    }
    fn recall(&mut self, saved: &[u8]) -> Result<(), FitError> {
        let bad = |_| FitError::Senseless("the states that averages were taken over cannot be read".into());
        self.now = postcard::from_bytes(saved).map_err(bad)?;
        Ok(())
    }
    fn report(&self) -> Option<String> {
        let states = self.now.drawn.last().map_or(0, |(_, d)| d.len());
        Some(format!("{} simulations of {states} states each", self.now.simulations))
    }
}
