//! Derivatives of equilibrium averages, by covariances.
//!
//! In the canonical ensemble ⟨A⟩ = ∫ A e^(−βH) / ∫ e^(−βH), so that
//!
//! - d⟨A⟩/dθ = ⟨∂A/∂θ⟩ − β (⟨A ∂U/∂θ⟩ − ⟨A⟩⟨∂U/∂θ⟩),
//! - d⟨A⟩/dT = (⟨A H⟩ − ⟨A⟩⟨H⟩) / k_B T².
//!
//! Nothing is carried through time, so that nothing grows; the price is noise, and that it is true of averages in
//! equilibrium only. [`reweighting`](super::reweighting) is the same with weights.
//!
//! Errors come from the jackknife: the run is cut into [`BLOCKS`] pieces, and everything computed again without each of them in
//! turn. They are right if a piece is longer than what the run remembers.

use super::{GradientError, Objective, Observable, Run, When};
use crate::forces::{Direction, Evaluator, Forces};
use crate::integrate::Motion;
use crate::system::State;
use std::time::{Duration, Instant};

/// Pieces of the jackknife.
pub const BLOCKS: usize = 20;

/// A number with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// A number made of averages, and its derivatives.
#[derive(Clone, Debug)]
pub struct Ensemble {
    /// The number.
    pub value: Estimate,
    /// The averages that it is made of.
    pub averages: Vec<Estimate>,
    /// In the parameters of the energy, and whether any interaction depends on these.
    pub parameters: Vec<(Estimate, bool)>,
    /// In the temperature.
    pub temperature: Estimate,
    /// How many configurations were seen.
    pub samples: usize,
    /// For each average, how many that are independent would have made the same error.
    pub effective: Vec<f64>,
    /// What it took.
    pub time: Duration,
}

/// What is seen of one state: the averages' values, U's derivatives, H, and what the values have by themselves.
pub(super) struct Sample {
    pub values: Vec<f64>,
    pub slopes: Vec<f64>,
    pub energy: f64,
    /// ∂A/∂θ for each average; empty where it is zero.
    pub explicit: Vec<Vec<f64>>,
}

impl Sample {
    /// Derivatives of the energy, and of what is made of energies, in its parameters; tells which matter.
    pub fn differentiate(
        &mut self,
        observables: &[&Observable],
        evaluator: &mut Evaluator,
        state: &State,
        known: &mut Vec<bool>,
    ) -> Result<(), GradientError> {
        let slopes = evaluator.slopes(&state.cell, &state.positions, None, true)?;
        known.resize(slopes.len(), false);
        known.iter_mut().zip(&slopes).for_each(|(known, (_, matters))| *known |= matters);
        self.slopes = slopes.iter().map(|(slope, _)| slope.value).collect();
        self.explicit = vec![Vec::new(); observables.len()];
        for (explicit, of) in self.explicit.iter_mut().zip(observables) {
            let seed = of.direct(&state.cell)?;
            if seed.energy != 0.0 {
                explicit.extend(self.slopes.iter().map(|slope| seed.energy * slope));
            }
            if seed.strain != [[0.0; 3]; 3] {
                let rest = vec![[0.0; 3]; state.positions.len()];
                let direction = Direction { moves: &rest, strain: seed.strain };
                let slopes = evaluator.slopes(&state.cell, &state.positions, Some(direction), true)?;
                explicit.resize(slopes.len(), 0.0);
                explicit.iter_mut().zip(slopes).for_each(|(to, (slope, _))| *to -= slope.tangent);
            }
        }
        Ok(())
    }
}

/// Sums of products over some samples.
#[derive(Clone)]
pub(super) struct Sums {
    count: f64,
    values: Vec<f64>,
    slopes: Vec<f64>,
    energy: f64,
    /// A ∂U/∂θ, and ∂A/∂θ.
    products: Vec<Vec<f64>>,
    explicit: Vec<Vec<f64>>,
    /// A H
    heat: Vec<f64>,
}

impl Sums {
    pub fn none(averages: usize, parameters: usize) -> Self {
        let table = vec![vec![0.0; parameters]; averages];
        Self {
            count: 0.0,
            values: vec![0.0; averages],
            slopes: vec![0.0; parameters],
            energy: 0.0,
            products: table.clone(),
            explicit: table,
            heat: vec![0.0; averages],
        }
    }
    /// Adds a sample so many times.
    pub fn add(&mut self, s: &Sample, times: f64) {
        let add =
            |a: &mut [f64], b: &[f64], times: f64| a.iter_mut().zip(b).for_each(|(a, b)| *a += times * b);
        self.count += times;
        self.energy += times * s.energy;
        add(&mut self.slopes, &s.slopes, times);
        for (a, value) in s.values.iter().enumerate() {
            self.values[a] += times * value;
            self.heat[a] += times * value * s.energy;
            add(&mut self.products[a], &s.slopes, times * value);
            if let Some(explicit) = s.explicit.get(a) {
                add(&mut self.explicit[a], explicit, times);
            }
        }
    }
    /// Adds other sums so many times.
    pub fn add_sums(&mut self, o: &Sums, times: f64) {
        let add = |a: &mut [f64], b: &[f64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += times * b);
        self.count += times * o.count;
        self.energy += times * o.energy;
        add(&mut self.values, &o.values);
        add(&mut self.slopes, &o.slopes);
        add(&mut self.heat, &o.heat);
        for a in 0..self.values.len() {
            add(&mut self.products[a], &o.products[a]);
            add(&mut self.explicit[a], &o.explicit[a]);
        }
    }
    /// The averages.
    pub fn means(&self) -> Vec<f64> {
        self.values.iter().map(|x| x / self.count).collect()
    }
    /// The derivative of each average in each parameter.
    pub fn slopes(&self, kt: f64) -> Vec<Vec<f64>> {
        let (n, means) = (self.count, self.means());
        let of = |a: usize, k: usize| {
            let covariance = self.products[a][k] / n - means[a] * self.slopes[k] / n;
            self.explicit[a][k] / n - covariance / kt
        };
        (0..means.len()).map(|a| (0..self.slopes.len()).map(|k| of(a, k)).collect()).collect()
    }
    /// The number, the averages, the derivatives in parameters and temperature: one after the other.
    fn results(&self, objective: &Objective, kt: f64, boltzmann: f64) -> Vec<f64> {
        let (n, means, slopes) = (self.count, self.means(), self.slopes(kt));
        let (value, weights) = objective.combined(&means);
        let mut all = vec![value];
        all.extend(&means);
        for k in 0..self.slopes.len() {
            all.push(weights.iter().zip(&slopes).map(|(w, row)| w * row[k]).sum());
        }
        let heat = (0..means.len()).map(|a| weights[a] * (self.heat[a] / n - means[a] * self.energy / n));
        all.push(heat.sum::<f64>() * boltzmann / (kt * kt));
        all
    }
}

/// All blocks together, and without each of them.
pub(super) fn leave_out(blocks: &[Sums]) -> (Sums, Vec<Sums>) {
    let mut whole = blocks[0].clone();
    blocks[1..].iter().for_each(|b| whole.add_sums(b, 1.0));
    let without = blocks.iter().map(|block| {
        let mut rest = whole.clone();
        rest.add_sums(block, -1.0);
        rest
    });
    let without = without.collect();
    (whole, without)
}

/// The standard error of a number that has these values without each block.
fn jackknife(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    (values.map(|x| (x - mean).powi(2)).sum::<f64>() * (n - 1.0) / n).sqrt()
}

impl Run<'_> {
    /// The number of an objective and its derivatives, from a run at a temperature (K). Of the states that its averages see those
    /// of the first one count for all.
    ///
    /// # Errors
    /// A run that breaks down, or sees too few states.
    pub fn ensemble(
        self,
        objective: &mut Objective,
        temperature: f64,
        parameters: bool,
        mut progress: impl FnMut(usize),
    ) -> Result<Ensemble, GradientError> {
        let clock = Instant::now();
        let (masses, steps, thermal) = (self.masses, self.steps, self.thermal);
        objective.start(&self.start, thermal, steps)?;
        let (boltzmann, kt) = (thermal.boltzmann, thermal.boltzmann * temperature);
        if kt.is_nan() || kt <= 0.0 {
            return Err(GradientError::Senseless("there is no ensemble without a temperature".into()));
        }
        let names = if parameters { self.evaluator.parameter_names().len() } else { 0 };
        let averages = objective.averages().len();
        let whens: Vec<_> = objective.averages().iter().map(|a| a.when).collect();
        let count = whens.first().map_or(0, |w| w.count(steps));
        if whens.iter().any(|w| *w != whens[0]) {
            let message =
                "the averages of an ensemble are over the same states: give all the same `from` and `every`";
            return Err(GradientError::Senseless(message.into()));
        }
        if count < 2 * BLOCKS {
            let message = format!(
                "an ensemble of {count} states is too small for errors: at least {} are needed (more steps, or a smaller `every`)",
                2 * BLOCKS
            );
            return Err(GradientError::Senseless(message));
        }
        let mut blocks = vec![Sums::none(averages, names); BLOCKS];
        let (mut known, mut series) = (vec![false; names], vec![Vec::with_capacity(count); averages]);
        let observables: Vec<&Observable> = objective.averages().iter().map(|a| &a.of).collect();
        let mut look = |number: usize, evaluator: &mut Evaluator, state: &State, forces: &Forces| {
            let values = objective.look(number, state, masses, forces)?;
            series.iter_mut().zip(&values).for_each(|(all, x)| all.push(*x));
            let energy = forces.energy() + crate::integrate::kinetic_energy(masses, &state.velocities);
            let mut sample = Sample { energy, values, slopes: Vec::new(), explicit: Vec::new() };
            if parameters {
                sample.differentiate(&observables, evaluator, state, &mut known)?;
            }
            blocks[number * BLOCKS / count].add(&sample, 1.0);
            progress(whens[0].step(number, steps));
            Ok(())
        };
        self.visit(whens[0], &mut look)?;
        let (whole, without) = leave_out(&blocks);
        let results = whole.results(objective, kt, boltzmann);
        let without: Vec<Vec<f64>> =
            without.iter().map(|rest| rest.results(objective, kt, boltzmann)).collect();
        let estimate =
            |k: usize| Estimate { value: results[k], error: jackknife(without.iter().map(|w| w[k])) };
        let averages_found: Vec<Estimate> = (0..averages).map(|a| estimate(1 + a)).collect();
        let effective = series.iter().zip(&averages_found).map(|(all, found)| {
            let variance = all.iter().map(|x| (x - found.value).powi(2)).sum::<f64>() / (count - 1) as f64;
            (variance / (found.error * found.error)).clamp(1.0, count as f64)
        });
        Ok(Ensemble {
            value: estimate(0),
            effective: effective.collect(),
            averages: averages_found,
            parameters: (0..names).map(|k| (estimate(1 + averages + k), known[k])).collect(),
            temperature: estimate(1 + averages + names),
            samples: count,
            time: clock.elapsed(),
        })
    }

    /// Takes the steps and shows the states that are seen, with their energies and virial; where it ends.
    ///
    /// # Errors
    /// A run that breaks down; those of `look`.
    pub fn visit(
        self,
        when: When,
        look: &mut dyn FnMut(usize, &mut Evaluator, &State, &Forces) -> Result<(), GradientError>,
    ) -> Result<State, GradientError> {
        let Run { evaluator, mut integrator, masses, mut start, steps, .. } = self;
        let mut forces = Forces::default();
        for step in 0..=steps {
            let seen = when.number(step, steps);
            {
                let mut motion = match step {
                    0 => Motion::start(&mut start, masses, evaluator, &mut forces)?,
                    _ => Motion::resume(&mut start, masses, evaluator, &mut forces)?,
                };
                if step > 0 {
                    motion.forces_only = seen.is_none();
                    integrator.step(&mut motion)?;
                }
            }
            if let Some(number) = seen {
                look(number, evaluator, &start, &forces)?;
            }
        }
        Ok(start)
    }
}
