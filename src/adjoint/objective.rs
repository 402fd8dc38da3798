//! What a run is asked for: a number made of averages over the states that are seen.

use super::observable::{Reference, Seed, values};
use super::{GradientError, Observable, Snapshot, Thermal};
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
    pub(super) fn number(self, step: usize, steps: usize) -> Option<usize> {
        match self {
            When::End => (step == steps).then_some(0),
            When::Every { from, every } => {
                let since = step.checked_sub(from)?;
                since.is_multiple_of(every).then_some(since / every)
            }
        }
    }
    /// The step of a state by its number.
    pub(super) fn step(self, number: usize, steps: usize) -> usize {
        match self {
            When::End => steps,
            When::Every { from, every } => from + number * every,
        }
    }
    /// How many states are seen.
    pub(super) fn count(self, steps: usize) -> usize {
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
    thermal: Thermal,
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
            thermal: Thermal { freedom: 0, boltzmann: 1.0 },
            value: 0.0,
            slopes: none,
        }
    }
    /// The averages that it is made of.
    pub fn averages(&self) -> &[Average] {
        &self.averages
    }
    /// The number that is made of these values of the averages, and its derivatives in them.
    pub fn combined(&self, values: &[f64]) -> (f64, Vec<f64>) {
        let tape = Tape::new();
        let x: Vec<Var> = values.iter().map(|&x| tape.variable(x)).collect();
        let value = (self.combine)(&x);
        let slopes = tape.gradient(value);
        (value.value(), x.iter().map(|&x| slopes.of(x)).collect())
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
    pub(super) fn start(
        &mut self,
        state: &State,
        thermal: Thermal,
        steps: usize,
    ) -> Result<(), GradientError> {
        (self.steps, self.thermal) = (steps, thermal);
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
        let atoms = state.positions.len();
        self.reference = Reference {
            start: (0..atoms).map(|i| state.positions.cartesian(&state.cell, i)).collect(),
            adjoint: vec![[0.0; 3]; atoms],
        };
        Ok(())
    }

    /// Whether energies and virial of the state after so many steps are looked at.
    pub(super) fn wants_energies(&self, step: usize) -> bool {
        let seen = |a: &Average| a.of.wants_energies() && a.when.number(step, self.steps).is_some();
        self.averages.iter().any(seen)
    }

    /// Whether it looks at the state after so many steps.
    pub(super) fn sees(&self, step: usize) -> bool {
        self.averages.iter().any(|a| a.when.number(step, self.steps).is_some())
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
                *sum += average.of.value(number, state, masses, forces, &self.reference, self.thermal)?;
            }
        }
        Ok(())
    }

    /// The run is over: the number, and how it depends on the averages.
    pub(super) fn finish(&mut self) -> Result<(), GradientError> {
        (self.value, self.slopes) = self.combined(&self.values());
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
                let reference = &mut self.reference;
                average.of.pull(seed, number, masses, at, reference, adjoint, forces, self.thermal)?;
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

    /// The values of all averages' observables in one state, which is the one of this number among those that are seen.
    pub(super) fn look(
        &self,
        number: usize,
        state: &State,
        masses: &[f64],
        forces: &Forces,
    ) -> Result<Vec<f64>, GradientError> {
        let observables: Vec<&Observable> = self.averages.iter().map(|a| &a.of).collect();
        values(&observables, number, state, masses, forces, &self.reference, self.thermal)
    }
}
