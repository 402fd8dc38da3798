//! How fast something that should be conserved is not: a line through a correlated series.

use super::blocks::{self, average};
use super::{AnalysisError, check_series};

/// A line through a series, x(t) ≈ intercept + slope · t, with the error of its slope.
///
/// Slopes are per unit of time of the times given: per ps, until [`Drift::per_degree_of_freedom`] makes kT/ns of
/// them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The slope, by least squares.
    pub slope: f64,
    /// Its standard error (1 σ).
    pub error: f64,
    /// The value at time 0.
    pub intercept: f64,
    /// The standard deviation of the values from the line.
    pub scatter: f64,
    /// The statistical inefficiency of the values' deviations from the line; see [`blocks::Mean::inefficiency`].
    pub inefficiency: f64,
    /// Values in a block.
    pub block_size: usize,
    /// Blocks that the error comes from.
    pub blocks: usize,
    /// Whether blocks are long enough to be independent, and many enough. Otherwise the error is a lower bound.
    pub converged: bool,
}

/// The drift of a series of values at increasing times.
///
/// The slope is that of the ordinary least-squares line through all values. Its error takes correlations into
/// account: the deviations from the line go through [`blocks::mean`], which finds a length beyond which blocks are
/// independent; with m blocks, of mean times t_b and mean deviations e_b,
///
/// σ² = Σ e_b² / (m − 2) / Σ (t_b − t̄)².
///
/// For deviations of variance s² and a statistical inefficiency g this is 12 g s²/(n T²) over a time T: it falls as
/// T^−3/2.
///
/// # Errors
/// Lists of different lengths, fewer than three values, values that are not finite, times that are all the same or
/// do not increase.
///
/// ```
/// let t: Vec<f64> = (0..100).map(f64::from).collect();
/// let x: Vec<f64> = t.iter().map(|t| 3.0 + 0.5 * t).collect();
/// let line = md::analysis::drift::drift(&t, &x).unwrap();
/// assert!((line.slope - 0.5).abs() < 1e-14 && (line.intercept - 3.0).abs() < 1e-12);
/// ```
pub fn drift(times: &[f64], values: &[f64]) -> Result<Drift, AnalysisError> {
    if times.len() != values.len() {
        return Err(AnalysisError::Lengths { what: "values", count: values.len(), expected: times.len() });
    }
    check_series(times, 3)?;
    check_series(values, 3)?;
    if let Some(k) = times.windows(2).position(|t| t[1] <= t[0]) {
        return Err(AnalysisError::Times { frame: k + 1, time: times[k + 1], expected: times[k] });
    }
    let (t_mean, x_mean) = (average(times), average(values));
    let (mut tt, mut tx) = (0.0, 0.0);
    for (t, x) in times.iter().zip(values) {
        tt += (t - t_mean) * (t - t_mean);
        tx += (t - t_mean) * (x - x_mean);
    }
    let slope = tx / tt;
    let residuals: Vec<f64> =
        times.iter().zip(values).map(|(t, x)| (x - x_mean) - slope * (t - t_mean)).collect();
    let squares: f64 = residuals.iter().map(|e| e * e).sum();
    let blocking = blocks::mean(&residuals)?;
    let size = blocking.block_size.min(residuals.len() / 3).max(1);
    let (e, t): (Vec<f64>, Vec<f64>) = residuals
        .chunks_exact(size)
        .zip(times.chunks_exact(size))
        .map(|(e, t)| (average(e), average(t)))
        .unzip();
    let (m, centre) = (e.len(), average(&t));
    let spread: f64 = t.iter().map(|t| (t - centre) * (t - centre)).sum();
    let error = (e.iter().map(|e| e * e).sum::<f64>() / (m as f64 - 2.0) / spread).sqrt();
    Ok(Drift {
        slope,
        error,
        intercept: x_mean - slope * t_mean,
        scatter: (squares / (residuals.len() as f64 - 2.0)).sqrt(),
        inefficiency: blocking.inefficiency,
        block_size: size,
        blocks: m,
        converged: blocking.converged,
    })
}

impl Drift {
    /// |slope| + 2 σ: with 97.5 % confidence or more the drift is no larger.
    pub fn upper_bound(&self) -> f64 {
        self.slope.abs() + 2.0 * self.error
    }

    /// The drift of an energy in kT/ns per degree of freedom, from one in kJ/mol and ps: slopes and energies are
    /// divided by k_B T f, and slopes multiplied by the 1000 ps of a ns. Times of [`intercept`](Drift::intercept)
    /// are where they were.
    ///
    /// `boltzmann` in kJ/mol/K, `temperature` in K. In reduced units the result is per 1000 units of time.
    pub fn per_degree_of_freedom(
        &self,
        boltzmann: f64,
        temperature: f64,
        degrees_of_freedom: usize,
    ) -> Drift {
        let unit = boltzmann * temperature * degrees_of_freedom as f64;
        Drift {
            slope: 1000.0 * self.slope / unit,
            error: 1000.0 * self.error / unit,
            intercept: self.intercept / unit,
            scatter: self.scatter / unit,
            ..*self
        }
    }
}
