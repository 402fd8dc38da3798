//! Minimisers of functions of a few numbers, within bounds: Levenberg–Marquardt for sums of squares, L-BFGS, and Adam where
//! only part of the sum is computed at a time.
//!
//! Each takes a step at a time and can be written to a file between two of them: what goes on from there takes the same steps.
//! Bounds are kept by projection: a coordinate at its bound whose slope pushes outward is left out of the step, all others may
//! run into theirs.
//!
//! ```
//! use md::fit::optimize::{Normal, Objective, Optimizer, Slope};
//!
//! /// ½ (x − 3)²
//! struct Parabola;
//! impl Objective for Parabola {
//!     type Error = std::convert::Infallible;
//!     fn value(&mut self, x: &[f64]) -> Result<f64, Self::Error> {
//!         Ok(0.5 * (x[0] - 3.0).powi(2))
//!     }
//!     fn slope(&mut self, x: &[f64]) -> Result<Slope, Self::Error> {
//!         Ok(Slope { value: self.value(x)?, gradient: vec![x[0] - 3.0] })
//!     }
//!     fn normal(&mut self, x: &[f64]) -> Result<Normal, Self::Error> {
//!         Ok(Normal { slope: self.slope(x)?, matrix: nalgebra::DMatrix::identity(1, 1) })
//!     }
//! }
//!
//! let mut optimizer = Optimizer::levenberg_marquardt(1e-12);
//! let mut x = vec![0.0];
//! while !optimizer.step(&mut x, &[[0.0, 2.0]], &mut Parabola)?.done {}
//! assert_eq!(x, [2.0]);
//! # Ok::<(), std::convert::Infallible>(())
//! ```

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// A value and its gradient.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slope {
    /// The value.
    pub value: f64,
    /// Its derivatives.
    pub gradient: Vec<f64>,
}

/// The same of ½ Σ r², with JᵀJ.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    /// Value and gradient Jᵀr.
    pub slope: Slope,
    /// JᵀJ, where J = ∂r/∂x.
    pub matrix: DMatrix<f64>,
}

/// What is minimised.
pub trait Objective {
    /// Why it cannot be computed.
    type Error;
    /// Its value; not a finite number where there is none, which is never accepted.
    ///
    /// # Errors
    /// What ends the minimisation.
    fn value(&mut self, x: &[f64]) -> Result<f64, Self::Error>;
    /// Value and gradient.
    ///
    /// # Errors
    /// What ends the minimisation.
    fn slope(&mut self, x: &[f64]) -> Result<Slope, Self::Error>;
    /// The same with the Gauss–Newton matrix.
    ///
    /// # Errors
    /// What ends the minimisation.
    fn normal(&mut self, x: &[f64]) -> Result<Normal, Self::Error>;
    /// An estimate of value and gradient from the part of the sum that belongs to this step.
    ///
    /// # Errors
    /// What ends the minimisation.
    fn part(&mut self, x: &[f64], _step: u64) -> Result<Slope, Self::Error> {
        self.slope(x)
    }
}

/// Where a step has led.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The value there (for Adam: the estimate before the step).
    pub value: f64,
    /// The largest component of the gradient that is free to be followed.
    pub gradient: f64,
    /// How far the farthest coordinate has gone.
    pub moved: f64,
    /// Whether that is all.
    pub done: bool,
}

/// A minimiser between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimizer {
    tolerance: f64,
    method: Method,
    /// At the present place; computed again where it is not known.
    #[serde(skip)]
    here: Option<Normal>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Method {
    LevenbergMarquardt { damping: f64, growth: f64, scale: Vec<f64> },
    Lbfgs { memory: usize, pairs: Vec<(Vec<f64>, Vec<f64>)>, free: Vec<bool> },
    Adam { rates: [f64; 2], steps: u64, step: u64, mean: Vec<f64>, square: Vec<f64> },
}

/// Trials of a step, at most.
const TRIALS: usize = 40;
/// Of the decrease that the slope promises, what is asked for.
const ARMIJO: f64 = 1e-4;
/// How far a coordinate goes in a step, at most, and in the first one of L-BFGS, which knows no scale yet. (Where a parameter
/// becomes several times what it was, the slopes say little of what is there: other minima are.)
const LONGEST: f64 = 0.3;
const FIRST: f64 = 0.05;
/// How fast Adam forgets slopes and their squares. (The latter faster than usual: the slopes of a sum of squares fall by many
/// powers of ten, and steps would long be measured by the first of them.)
const FORGET: [f64; 2] = [0.9, 0.99];

impl Optimizer {
    /// The method of K. Levenberg, Q. Appl. Math. 2, 164 (1944) and D. W. Marquardt, J. SIAM 11, 431 (1963): steps of
    /// (JᵀJ + λ D) δ = −Jᵀr with D the largest diagonal of JᵀJ so far (J. J. Moré, Lect. Notes Math. 630, 105 (1978)) and λ
    /// after H. B. Nielsen (IMM-REP-1999-05, Technical University of Denmark). Done when no coordinate moves by more than the
    /// tolerance.
    pub fn levenberg_marquardt(tolerance: f64) -> Self {
        let method = Method::LevenbergMarquardt { damping: 1e-3, growth: 2.0, scale: Vec::new() };
        Self { tolerance, method, here: None }
    }
    /// Limited-memory BFGS (J. Nocedal, Math. Comp. 35, 773 (1980)) with backtracking, in the coordinates that are not at their
    /// bounds. Done when no coordinate moves by more than the tolerance.
    pub fn lbfgs(memory: usize, tolerance: f64) -> Self {
        let method = Method::Lbfgs { memory, pairs: Vec::new(), free: Vec::new() };
        Self { tolerance, method, here: None }
    }
    /// Adam (D. P. Kingma and J. Ba, ICLR 2015), whose rate falls from the first to the second geometrically in so many steps;
    /// done after these.
    pub fn adam(rates: [f64; 2], steps: u64) -> Self {
        let method = Method::Adam { rates, steps, step: 0, mean: Vec::new(), square: Vec::new() };
        Self { tolerance: 0.0, method, here: None }
    }

    /// Whether it asks for the Gauss–Newton matrix.
    pub fn wants_matrix(&self) -> bool {
        matches!(self.method, Method::LevenbergMarquardt { .. })
    }

    /// Takes a step.
    ///
    /// # Errors
    /// Those of the objective.
    pub fn step<F: Objective>(
        &mut self,
        x: &mut [f64],
        bounds: &[[f64; 2]],
        f: &mut F,
    ) -> Result<Progress, F::Error> {
        match self.method {
            Method::LevenbergMarquardt { .. } => self.levenberg(x, bounds, f),
            Method::Lbfgs { .. } => self.quasi_newton(x, bounds, f),
            Method::Adam { .. } => self.adaptive(x, bounds, f),
        }
    }

    fn levenberg<F: Objective>(
        &mut self,
        x: &mut [f64],
        bounds: &[[f64; 2]],
        f: &mut F,
    ) -> Result<Progress, F::Error> {
        let here = match self.here.take() {
            Some(here) => here,
            None => f.normal(x)?,
        };
        let Method::LevenbergMarquardt { damping, growth, scale } = &mut self.method else {
            return Ok(ended(&here.slope, x, bounds, true));
        };
        scale.resize(x.len(), 0.0);
        scale.iter_mut().zip(here.matrix.diagonal().iter()).for_each(|(s, d)| *s = s.max(*d));
        let gradient = &here.slope.gradient;
        let free = free(x, gradient, bounds);
        let chosen: Vec<usize> = (0..x.len()).filter(|&k| free[k]).collect();
        let mut trials = 0;
        while trials < TRIALS {
            let matrix = DMatrix::from_fn(chosen.len(), chosen.len(), |a, b| {
                let (a, b) = (chosen[a], chosen[b]);
                // (what nothing depends on stays where it is)
                let own = if scale[a] > 0.0 { *damping * scale[a] } else { 1.0 };
                here.matrix[(a, b)] + if a == b { own } else { 0.0 }
            });
            let right = DVector::from_iterator(chosen.len(), chosen.iter().map(|&k| -gradient[k]));
            let Some(step) = matrix.cholesky().map(|c| c.solve(&right)) else {
                *damping *= *growth;
                *growth *= 2.0;
                trials += 1;
                continue;
            };
            let mut there = x.to_vec();
            for (&k, d) in chosen.iter().zip(step.iter()) {
                there[k] = within(x[k] + d, bounds[k]);
            }
            let moves = DVector::from_iterator(x.len(), there.iter().zip(&*x).map(|(a, b)| a - b));
            let moved = moves.amax();
            if moved > LONGEST {
                *damping *= 1.5;
                continue;
            }
            trials += 1;
            let value = f.value(&there)?;
            let promised =
                -moves.dot(&DVector::from_column_slice(gradient)) - 0.5 * moves.dot(&(&here.matrix * &moves));
            let better = value < here.slope.value;
            if better {
                let ratio = (here.slope.value - value) / promised;
                *damping *= (1.0 - (2.0 * ratio - 1.0).powi(3)).max(1.0 / 3.0);
                *damping = damping.max(1e-15);
                *growth = 2.0;
                x.copy_from_slice(&there);
            }
            if better || moved <= self.tolerance {
                let done = moved <= self.tolerance;
                let normal = if better { f.normal(x)? } else { here };
                let progress = Progress { moved, ..ended(&normal.slope, x, bounds, done) };
                self.here = Some(normal);
                return Ok(progress);
            }
            *damping *= *growth;
            *growth *= 2.0;
        }
        let progress = ended(&here.slope, x, bounds, true);
        self.here = Some(here);
        Ok(progress)
    }

    fn quasi_newton<F: Objective>(
        &mut self,
        x: &mut [f64],
        bounds: &[[f64; 2]],
        f: &mut F,
    ) -> Result<Progress, F::Error> {
        let here = match self.here.take() {
            Some(here) => here.slope,
            None => f.slope(x)?,
        };
        let Method::Lbfgs { memory, pairs, free: known } = &mut self.method else {
            return Ok(ended(&here, x, bounds, true));
        };
        let free = free(x, &here.gradient, bounds);
        if free != *known {
            pairs.clear();
            known.clone_from(&free);
        }
        let keep = |v: &[f64]| -> Vec<f64> {
            v.iter().zip(&free).map(|(v, free)| if *free { *v } else { 0.0 }).collect()
        };
        let slope = keep(&here.gradient);
        if slope.iter().all(|g| *g == 0.0) {
            return Ok(ended(&here, x, bounds, true));
        }
        let mut direction: Vec<f64> = two_loops(pairs, &slope).into_iter().map(|d| -d).collect();
        if dot(&direction, &slope) >= 0.0 || direction.iter().any(|d| !d.is_finite()) {
            pairs.clear();
            direction = slope.iter().map(|g| -g).collect();
        }
        let farthest = largest(&direction);
        let limit = if pairs.is_empty() { FIRST } else { LONGEST };
        let mut length = (limit / farthest).min(if pairs.is_empty() { f64::INFINITY } else { 1.0 });
        for _ in 0..TRIALS {
            let there: Vec<f64> =
                (0..x.len()).map(|k| within(x[k] + length * direction[k], bounds[k])).collect();
            let s: Vec<f64> = there.iter().zip(&*x).map(|(a, b)| a - b).collect();
            let moved = largest(&s);
            let value = f.value(&there)?;
            if value <= here.value + ARMIJO * dot(&here.gradient, &s) && value < here.value {
                let next = f.slope(&there)?;
                let change: Vec<f64> = next.gradient.iter().zip(&here.gradient).map(|(a, b)| a - b).collect();
                let y = keep(&change);
                let (sy, yy) = (dot(&s, &y), dot(&y, &y));
                if sy > 1e-10 * (dot(&s, &s) * yy).sqrt() && *memory > 0 {
                    if pairs.len() >= *memory {
                        pairs.remove(0);
                    }
                    pairs.push((s, y));
                }
                x.copy_from_slice(&there);
                let done = moved <= self.tolerance;
                let progress = Progress { moved, ..ended(&next, x, bounds, done) };
                self.here = Some(Normal { slope: next, matrix: DMatrix::zeros(0, 0) });
                return Ok(progress);
            }
            if moved <= self.tolerance {
                break;
            }
            // the minimum of the parabola through both values and the slope
            let promised = -dot(&here.gradient, &s);
            let parabola = 0.5 * promised / (value - here.value + promised);
            length *= if parabola.is_finite() { parabola.clamp(0.1, 0.5) } else { 0.1 };
        }
        // (with a memory that leads nowhere, steepest descent is tried)
        let done = pairs.is_empty();
        pairs.clear();
        let progress = ended(&here, x, bounds, done);
        self.here = Some(Normal { slope: here, matrix: DMatrix::zeros(0, 0) });
        Ok(progress)
    }

    fn adaptive<F: Objective>(
        &mut self,
        x: &mut [f64],
        bounds: &[[f64; 2]],
        f: &mut F,
    ) -> Result<Progress, F::Error> {
        let Method::Adam { rates, steps, step, mean, square } = &mut self.method else {
            return Ok(ended(&Slope::default(), x, bounds, true));
        };
        if *step >= *steps {
            return Ok(Progress { value: f64::NAN, gradient: f64::NAN, moved: 0.0, done: true });
        }
        let here = f.part(x, *step)?;
        mean.resize(x.len(), 0.0);
        square.resize(x.len(), 0.0);
        *step += 1;
        let part = (*step - 1) as f64 / (*steps).max(2).saturating_sub(1) as f64;
        let rate = rates[0] * (rates[1] / rates[0]).powf(part);
        let seen = FORGET.map(|b| 1.0 - b.powi((*step).min(1 << 30) as i32));
        let free = free(x, &here.gradient, bounds);
        let mut moved: f64 = 0.0;
        for k in 0..x.len() {
            let g = here.gradient[k];
            mean[k] = FORGET[0] * mean[k] + (1.0 - FORGET[0]) * g;
            square[k] = FORGET[1] * square[k] + (1.0 - FORGET[1]) * g * g;
            let size = (square[k] / seen[1]).sqrt();
            if size > 0.0 && free[k] {
                // (nothing is added to the root: sums of squares have no size of their own)
                let to = within(x[k] - rate * (mean[k] / seen[0]) / size, bounds[k]);
                moved = moved.max((to - x[k]).abs());
                x[k] = to;
            }
        }
        let done = *step >= *steps;
        Ok(Progress { moved, ..ended(&here, x, bounds, done) })
    }
}

fn within(x: f64, [low, high]: [f64; 2]) -> f64 {
    x.max(low).min(high)
}

/// Which coordinates are not held at a bound by their slopes.
fn free(x: &[f64], gradient: &[f64], bounds: &[[f64; 2]]) -> Vec<bool> {
    let held =
        |k: usize| x[k] <= bounds[k][0] && gradient[k] > 0.0 || x[k] >= bounds[k][1] && gradient[k] < 0.0;
    (0..x.len()).map(|k| !held(k)).collect()
}

/// Where nothing has moved.
fn ended(slope: &Slope, x: &[f64], bounds: &[[f64; 2]], done: bool) -> Progress {
    let free = if slope.gradient.len() == x.len() { free(x, &slope.gradient, bounds) } else { Vec::new() };
    let gradient = slope.gradient.iter().zip(free).filter(|(_, free)| *free);
    let gradient = gradient.fold(0.0, |m: f64, (g, _)| m.max(g.abs()));
    Progress { value: slope.value, gradient, moved: 0.0, done }
}

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// H g by the two-loop recursion; pairs of steps and changes of the gradient, from the oldest to the newest.
fn two_loops(pairs: &[(Vec<f64>, Vec<f64>)], g: &[f64]) -> Vec<f64> {
    let mut d = g.to_vec();
    let mut alphas = Vec::with_capacity(pairs.len());
    for (s, y) in pairs.iter().rev() {
        let alpha = dot(s, &d) / dot(s, y);
        d.iter_mut().zip(y).for_each(|(d, y)| *d -= alpha * y);
        alphas.push(alpha);
    }
    if let Some((s, y)) = pairs.last() {
        let scale = dot(s, y) / dot(y, y);
        d.iter_mut().for_each(|d| *d *= scale);
    }
    for ((s, y), alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
        let beta = dot(y, &d) / dot(s, y);
        d.iter_mut().zip(s).for_each(|(d, s)| *d += (alpha - beta) * s);
    }
    d
}
