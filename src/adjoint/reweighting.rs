//! Averages of a canonical ensemble for parameters that it was not drawn with.
//!
//! States that were drawn with U₀ are those of U when each counts w ∝ e^(−β(U − U₀)) times, so that
//!
//! ⟨A⟩ = Σ w A / Σ w, d⟨A⟩/dθ = ⟨∂A/∂θ⟩ − β (⟨A ∂U/∂θ⟩ − ⟨A⟩⟨∂U/∂θ⟩)
//!
//! with weighted means (R. W. Zwanzig, J. Chem. Phys. 22, 1420 (1954); S. Thaler and J. Zavadlav, Nat. Commun. 12, 6884 (2021)).
//! How many states that leaves is e^(−Σ w ln w) with Σ w = 1: all of them while weights are equal, one where one outweighs the
//! rest. Below a part of them ([`Drawn::reweighted`]'s `least`) new ones must be drawn.

use super::ensemble::{BLOCKS, Sample, Sums, leave_out};
use super::observable::{Reference, values};
use super::{GradientError, Observable, Run, Thermal, When};
use crate::forces::{Evaluator, ForceSource, Forces};
use crate::system::State;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// States of a canonical ensemble.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Drawn {
    states: Vec<State>,
    /// The potential energy that each was drawn with, kJ/mol.
    energies: Vec<f64>,
    /// Values of observables in each.
    values: Vec<Vec<f64>>,
    /// Where the run ended.
    pub last: State,
}

/// Averages of an ensemble.
#[derive(Clone, Debug)]
pub struct Reweighted {
    /// The averages.
    pub values: Vec<f64>,
    /// The derivatives of each in each parameter of the energy, if they are wanted.
    pub slopes: Vec<Vec<f64>>,
    /// The averages without each of the [blocks](BLOCKS) of the run.
    pub without: Vec<Vec<f64>>,
    /// The part of the states that is left.
    pub effective: f64,
}

impl Run<'_> {
    /// Draws states: every so many steps from one on, unless somebody wants to stop.
    ///
    /// # Errors
    /// A run that breaks down, or of which too few states are seen.
    pub fn draw(
        self,
        observables: &[Observable],
        [from, every]: [usize; 2],
        stop: impl Fn() -> bool,
    ) -> Result<Drawn, GradientError> {
        let when = When::Every { from, every: every.max(1) };
        let (masses, steps, thermal) = (self.masses, self.steps, self.thermal);
        if when.count(steps) < 2 * BLOCKS {
            let message = format!(
                "{} states are too few for an average: at least {} are needed (more steps, or a smaller `every`)",
                when.count(steps),
                2 * BLOCKS
            );
            return Err(GradientError::Senseless(message));
        }
        let observables: Vec<&Observable> = observables.iter().collect();
        let (mut states, mut energies, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let reference = Reference::default();
        let last = self.visit(when, &mut |number, _, state, forces| {
            all.push(values(&observables, number, state, masses, forces, &reference, thermal)?);
            states.push(state.clone());
            energies.push(forces.energy());
            if stop() { Err(GradientError::Interrupted) } else { Ok(()) }
        })?;
        Ok(Drawn { states, energies, values: all, last })
    }
}

impl Drawn {
    /// How many states there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Averages with the energy of these evaluators (several of the same, for as many threads) at a temperature (K), and their
    /// derivatives in its parameters if they are wanted. Nothing where fewer than `least` of the states are left.
    ///
    /// # Errors
    /// Those of the evaluators; observables that the states do not have.
    #[allow(clippy::too_many_arguments)]
    pub fn reweighted(
        &self,
        evaluators: &mut [Evaluator],
        observables: &[Observable],
        masses: &[f64],
        thermal: Thermal,
        temperature: f64,
        least: f64,
        slopes: bool,
    ) -> Result<Option<Reweighted>, GradientError> {
        let kt = thermal.boltzmann * temperature;
        let observables: Vec<&Observable> = observables.iter().collect();
        let explicit: Vec<usize> =
            (0..observables.len()).filter(|&k| observables[k].wants_energies()).collect();
        let reference = Reference::default();
        let energies = self.each(evaluators, |evaluator, n| {
            let state = &self.states[n];
            let mut forces = Forces::default();
            evaluator.evaluate(&state.cell, &state.positions, &mut forces)?;
            let mut values = self.values[n].clone();
            for &k in &explicit {
                values[k] = observables[k].value(n, state, masses, &forces, &reference, thermal)?;
            }
            Ok(Sample { energy: forces.energy(), values, slopes: Vec::new(), explicit: Vec::new() })
        })?;
        let exponents = energies.iter().zip(&self.energies).map(|(s, before)| (before - s.energy) / kt);
        let exponents: Vec<f64> = exponents.collect();
        let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = exponents.iter().map(|x| (x - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
        let entropy: f64 = weights.iter().filter(|w| **w > 0.0).map(|w| -w * w.ln()).sum();
        let effective = entropy.exp() / self.len() as f64;
        // (what is no number is less than anything)
        if effective.is_nan() || effective < least {
            return Ok(None);
        }
        let samples = match slopes {
            false => energies,
            true => self.each(evaluators, |evaluator, n| {
                let Sample { energy, values, .. } = &energies[n];
                let mut sample = Sample {
                    energy: *energy,
                    values: values.clone(),
                    slopes: Vec::new(),
                    explicit: Vec::new(),
                };
                sample.differentiate(&observables, evaluator, &self.states[n], &mut Vec::new())?;
                Ok(sample)
            })?,
        };
        let parameters = samples.first().map_or(0, |s| s.slopes.len());
        let mut blocks = vec![Sums::none(observables.len(), parameters); BLOCKS];
        for (n, (sample, weight)) in samples.iter().zip(&weights).enumerate() {
            blocks[n * BLOCKS / self.len()].add(sample, *weight);
        }
        let (whole, without) = leave_out(&blocks);
        let values = whole.means();
        let slopes = if slopes { whole.slopes(kt) } else { Vec::new() };
        let without = without.iter().map(Sums::means).collect();
        Ok(Some(Reweighted { values, slopes, without, effective }))
    }

    /// Does something with each state, in parallel; what comes of it is in their order.
    fn each<T: Send>(
        &self,
        evaluators: &mut [Evaluator],
        body: impl Fn(&mut Evaluator, usize) -> Result<T, GradientError> + Sync,
    ) -> Result<Vec<T>, GradientError> {
        let threads = evaluators.len();
        let parts = evaluators.par_iter_mut().enumerate().map(|(t, evaluator)| {
            (t..self.len()).step_by(threads).map(|n| body(evaluator, n)).collect::<Result<Vec<T>, _>>()
        });
        let parts = parts.collect::<Result<Vec<Vec<T>>, _>>()?;
        let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
        Ok((0..self.len()).filter_map(|n| parts[n % threads].next()).collect())
    }
}
