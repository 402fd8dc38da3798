//! What a run is asked for: a number made of averages over the states that are seen.

use super::observable::{Reference, Seed};
use super::{GradientError, Observable, Snapshot};
use crate::autodiff::{Tape, Var};
use crate::forces::Forces;
use crate::integrate::Adjoint;
use crate::system::State;

/// Which states are seen, counted in steps from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The last one.
    End,
    /// Every so many steps from one on.
    Every {
        /// The first.
        from: usize,
        /// The distance in steps.
        every: usize,
    },
}

impl When {
    /// The number of the state after so many steps among those that are seen.
    fn number(self, step: usize, steps: usize) -> Option<usize> {
        match self {
            When::End => (step == steps).then_some(0),
            When::Every { from, every } => {
                let since = step.checked_sub(from)?;
                since.is_multiple_of(every).then_some(since / every)
            }
        }
    }
    /// How many states are seen.
    fn count(self, steps: usize) -> usize {
        match self {
            When::End => 1,
            When::Every { from, every } => steps.checked_sub(from).map_or(0, |rest| rest / every + 1),
        }
    }
}

/// The mean of an observable over the states that are seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Average {
    /// Of what.
    pub of: Observable,
    /// When.
    pub when: When,
}

/// A number made of averages.
pub type Combine = Box<dyn for<'t> Fn(&[Var<'t>]) -> Var<'t> + Send + Sync>;

/// A number that is made of averages.
pub struct Objective {
    averages: Vec<Average>,
    combine: Combine,
    steps: usize,
    sums: Vec<f64>,
    reference: Reference,
    value: f64,
    /// ∂L of each average.
    slopes: Vec<f64>,
}

impl Objective {
    /// Of averages, and of how the number is made of them.
    pub fn new(averages: Vec<Average>, combine: Combine) -> Self {
        let none = Vec::new();
        Self {
            averages,
            combine,
            steps: 0,
            sums: none.clone(),
            reference: Reference::default(),
            value: 0.0,
            slopes: none,
        }
    }
    /// An average by itself.
    pub fn of(average: Average) -> Self {
        Self::new(vec![average], Box::new(|x| x[0]))
    }
    /// The number, once the run is over.
    pub fn value(&self) -> f64 {
        self.value
    }
    /// The averages, once the run is over.
    pub fn values(&self) -> Vec<f64> {
        let count = |a: &Average| a.when.count(self.steps) as f64;
        self.sums.iter().zip(&self.averages).map(|(sum, a)| sum / count(a)).collect()
    }

    /// Begins anew.
    pub(super) fn start(&mut self, state: &State, masses: &[f64], steps: usize) -> Result<(), GradientError> {
        self.steps = steps;
        self.sums = vec![0.0; self.averages.len()];
        for average in &self.averages {
            if average.when.count(steps) == 0 {
                let message = format!("of the {steps} steps of the run none is seen by an average");
                return Err(GradientError::Senseless(message));
            }
            if let When::Every { every: 0, .. } = average.when {
                return Err(GradientError::Senseless("an average over every 0 steps".into()));
            }
        }
        let atoms = 0..masses.len();
        self.reference = Reference {
            start: atoms.map(|i| state.positions.cartesian(&state.cell, i)).collect(),
            adjoint: vec![[0.0; 3]; masses.len()],
        };
        Ok(())
    }

    /// Whether energies and virial of the state after so many steps are looked at.
    pub(super) fn wants_energies(&self, step: usize) -> bool {
        let seen = |a: &Average| a.of.wants_energies() && a.when.number(step, self.steps).is_some();
        self.averages.iter().any(seen)
    }

    /// Looks at the state after so many steps.
    pub(super) fn see(
        &mut self,
        step: usize,
        state: &State,
        masses: &[f64],
        forces: &Forces,
    ) -> Result<(), GradientError> {
        for (sum, average) in self.sums.iter_mut().zip(&self.averages) {
            if let Some(number) = average.when.number(step, self.steps) {
                *sum += average.of.value(number, state, masses, forces, &self.reference)?;
            }
        }
        Ok(())
    }

    /// The run is over: the number, and how it depends on the averages.
    pub(super) fn finish(&mut self) -> Result<(), GradientError> {
        let tape = Tape::new();
        let x: Vec<Var> = self.values().into_iter().map(|x| tape.variable(x)).collect();
        let value = (self.combine)(&x);
        self.value = value.value();
        let slopes = tape.gradient(value);
        self.slopes = x.iter().map(|&x| slopes.of(x)).collect();
        match self.value.is_finite() && self.slopes.iter().all(|x| x.is_finite()) {
            true => Ok(()),
            false => {
                let message = format!(
                    "the number that is to be differentiated is {}, and its derivatives in the averages are {:?}",
                    self.value, self.slopes
                );
                Err(GradientError::Senseless(message))
            }
        }
    }

    /// Hands on what depends on the state after so many steps.
    pub(super) fn pull(
        &mut self,
        step: usize,
        masses: &[f64],
        at: &Snapshot,
        adjoint: &mut Adjoint,
        forces: &mut Seed,
    ) -> Result<(), GradientError> {
        for (average, slope) in self.averages.iter().zip(&self.slopes) {
            if let Some(number) = average.when.number(step, self.steps) {
                let seed = slope / average.when.count(self.steps) as f64;
                average.of.pull(seed, number, masses, at, &mut self.reference, adjoint, forces)?;
            }
        }
        Ok(())
    }

    /// Hands on what depends on the first positions by being measured from them.
    pub(super) fn pull_reference(&self, adjoint: &mut Adjoint) {
        for (r, slope) in adjoint.positions.iter_mut().zip(&self.reference.adjoint) {
            for k in 0..3 {
                r[k] += slope[k];
            }
        }
    }
}
