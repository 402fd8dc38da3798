//! Derivatives of equilibrium averages, by covariances.
//!
//! In the canonical ensemble ⟨A⟩ = ∫ A e^(−βH) / ∫ e^(−βH), so that
//!
//! - d⟨A⟩/dθ = ⟨∂A/∂θ⟩ − β (⟨A ∂U/∂θ⟩ − ⟨A⟩⟨∂U/∂θ⟩),
//! - d⟨A⟩/dT = (⟨A H⟩ − ⟨A⟩⟨H⟩) / k_B T².
//!
//! Nothing is carried through time, so that nothing grows; the price is noise, and that it is true of averages in
//! equilibrium only. This is the first step of reweighting (S. Thaler and J. Zavadlav, Nat. Commun. 12, 6884 (2021)), where every weight
//! is 1 still.
//!
//! Errors come from the jackknife: the run is cut into [`BLOCKS`] pieces, and everything computed again without each of them in
//! turn. They are right if a piece is longer than what the run remembers.

use super::{GradientError, Objective, Run};
use crate::forces::{Direction, Forces};
use crate::integrate::Motion;
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
struct Sample {
    values: Vec<f64>,
    slopes: Vec<f64>,
    energy: f64,
    /// ∂A/∂θ for each average.
    explicit: Vec<Vec<f64>>,
}

/// Sums of products over some samples.
#[derive(Clone)]
struct Sums {
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
    fn none(averages: usize, parameters: usize) -> Self {
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
    fn add(&mut self, s: &Sample) {
        self.count += 1.0;
        self.energy += s.energy;
        self.slopes.iter_mut().zip(&s.slopes).for_each(|(sum, x)| *sum += x);
        for (a, value) in s.values.iter().enumerate() {
            self.values[a] += value;
            self.heat[a] += value * s.energy;
            for (k, slope) in s.slopes.iter().enumerate() {
                self.products[a][k] += value * slope;
                self.explicit[a][k] += s.explicit[a][k];
            }
        }
    }
    /// Adds other sums so many times.
    fn add_sums(&mut self, o: &Sums, times: f64) {
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
    /// The number, the averages, the derivatives in parameters and temperature: one after the other.
    fn results(&self, objective: &Objective, kt: f64, boltzmann: f64) -> Vec<f64> {
        let n = self.count;
        let means: Vec<f64> = self.values.iter().map(|x| x / n).collect();
        let (value, weights) = objective.combined(&means);
        let mut all = vec![value];
        all.extend(&means);
        for k in 0..self.slopes.len() {
            let each = (0..means.len()).map(|a| {
                let covariance = self.products[a][k] / n - means[a] * self.slopes[k] / n;
                weights[a] * (self.explicit[a][k] / n - covariance / kt)
            });
            all.push(each.sum());
        }
        let heat = (0..means.len()).map(|a| weights[a] * (self.heat[a] / n - means[a] * self.energy / n));
        all.push(heat.sum::<f64>() * boltzmann / (kt * kt));
        all
    }
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
        let Run { evaluator, mut integrator, masses, mut start, steps, thermal } = self;
        objective.start(&start, thermal, steps)?;
        let (boltzmann, kt) = (thermal.boltzmann, thermal.boltzmann * temperature);
        if kt.is_nan() || kt <= 0.0 {
            return Err(GradientError::Senseless("there is no ensemble without a temperature".into()));
        }
        let names = if parameters { evaluator.parameter_names().len() } else { 0 };
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
        let mut forces = Forces::default();
        let mut blocks = vec![Sums::none(averages, names); BLOCKS];
        let (mut known, mut series) = (vec![false; names], vec![Vec::with_capacity(count); averages]);
        for step in 0..=steps {
            let seen = whens[0].number(step, steps);
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
            let Some(number) = seen else { continue };
            let values = objective.look(number, &start, masses, &forces)?;
            let mut sample = Sample {
                energy: forces.energy() + crate::integrate::kinetic_energy(masses, &start.velocities),
                values,
                slopes: vec![0.0; names],
                explicit: vec![vec![0.0; names]; averages],
            };
            if parameters {
                let slopes = evaluator.slopes(&start.cell, &start.positions, None, true)?;
                for (k, (slope, matters)) in slopes.iter().enumerate() {
                    sample.slopes[k] = slope.value;
                    known[k] |= matters;
                }
                for a in 0..averages {
                    let seed = objective.averages()[a].of.direct(&start.cell)?;
                    if seed.strain != [[0.0; 3]; 3] {
                        let rest = vec![[0.0; 3]; masses.len()];
                        let direction = Direction { moves: &rest, strain: seed.strain };
                        let slopes =
                            evaluator.slopes(&start.cell, &start.positions, Some(direction), true)?;
                        for (to, (slope, _)) in sample.explicit[a].iter_mut().zip(slopes) {
                            *to -= slope.tangent;
                        }
                    }
                    for (to, slope) in sample.explicit[a].iter_mut().zip(&sample.slopes) {
                        *to += seed.energy * slope;
                    }
                }
            }
            series.iter_mut().zip(&sample.values).for_each(|(all, x)| all.push(*x));
            blocks[number * BLOCKS / count].add(&sample);
            progress(step);
        }
        let mut whole = Sums::none(averages, names);
        blocks.iter().for_each(|b| whole.add_sums(b, 1.0));
        let results = whole.results(objective, kt, boltzmann);
        let without: Vec<Vec<f64>> = blocks
            .iter()
            .map(|block| {
                let mut rest = whole.clone();
                rest.add_sums(block, -1.0);
                rest.results(objective, kt, boltzmann)
            })
            .collect();
        let n = BLOCKS as f64;
        let estimate = |k: usize| {
            let mean = without.iter().map(|w| w[k]).sum::<f64>() / n;
            let squares = without.iter().map(|w| (w[k] - mean).powi(2)).sum::<f64>();
            Estimate { value: results[k], error: (squares * (n - 1.0) / n).sqrt() }
        };
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
}
