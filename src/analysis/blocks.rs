//! The error of the mean of a correlated series, by blocking.
//!
//! Neighbouring values of a time series resemble each other, so the naive error s/√n of their mean is too small by
//! the square root of the statistical inefficiency
//!
//! g = 1 + 2 Σₖ (1 − k/n) ρₖ,
//!
//! with ρₖ the correlation k values apart. Means of ever longer blocks (1, 2, 4, … values) become independent: the
//! error worked out from them,
//!
//! error² = Σ_b (x̄_b − x̄)² / (m (m − 1)) for m blocks, itself known to one part in √(2(m − 1)),
//!
//! rises to a plateau, which is the error of the mean. Which length is taken: the shortest B with
//!
//! B³ > 2 n g(B)², where g(B) = error²(B)/error²(1),
//!
//! which balances what is left of correlations (a relative bias of g about g/B) against noise √(2B/n). A small but
//! slow part of a series can hide behind a large fast one and make a first, false plateau there: a longer block whose
//! error is larger by twice its own uncertainty is therefore taken instead, as long as there are sixteen.
//!
//! Sources: H. Flyvbjerg and H. G. Petersen, J. Chem. Phys. 91, 461 (1989), eqs. 26–28; the choice of the length:
//! U. Wolff, Comput. Phys. Commun. 156, 143 (2004) and R. M. Lee, G. J. Conduit, N. Nemec, P. López Ríos and
//! N. D. Drummond, Phys. Rev. E 83, 066706 (2011), appendix.

use super::{AnalysisError, check_series};

/// Blocks without which an error is not to be trusted.
pub const FEWEST_BLOCKS: usize = 16;

/// The error worked out from blocks of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Values in a block: a power of two.
    pub size: usize,
    /// How many whole blocks there are.
    pub blocks: usize,
    /// The standard error of the mean if blocks of this length are independent.
    pub error: f64,
    /// The standard error of `error`: error/√(2 (blocks − 1)).
    pub uncertainty: f64,
}

/// The mean of a series, with its error. Everything is in the units of the series.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// The mean of all values.
    pub value: f64,
    /// Its standard error (1 σ).
    pub error: f64,
    /// The standard error of `error`.
    pub uncertainty: f64,
    /// The statistical inefficiency g ≥ 1: how many neighbouring values are worth one independent one. With a time
    /// `dt` between values, the integrated correlation time is g·dt/2.
    pub inefficiency: f64,
    /// Values in the blocks that the error comes from.
    pub block_size: usize,
    /// Whether the plateau was reached with at least [`FEWEST_BLOCKS`] blocks. Otherwise the series is too short
    /// for its correlations, and `error` is the largest of all levels: a lower bound, more or less.
    pub converged: bool,
    /// The errors of all block lengths down to two blocks, shortest first.
    pub levels: Vec<Level>,
}

impl Mean {
    /// Whether `expected` is within `sigmas` errors of the mean.
    pub fn agrees(&self, expected: f64, sigmas: f64) -> bool {
        (self.value - expected).abs() <= sigmas * self.error
    }
}

/// The mean of a series that is correlated (or not) along its order.
///
/// # Errors
/// Fewer than two values; a value that is not finite.
///
/// ```
/// let alternating: Vec<f64> = (0..1000).map(|i| f64::from(i % 2)).collect();
/// assert_eq!(md::analysis::blocks::mean(&alternating).unwrap().value, 0.5);
/// ```
pub fn mean(series: &[f64]) -> Result<Mean, AnalysisError> {
    check_series(series, 2)?;
    let n = series.len();
    let value = average(series);
    let levels = levels(series, value);
    let naive = levels[0].error;
    let ratio = |level: &Level| if naive > 0.0 { (level.error / naive).powi(2) } else { 1.0 };
    let enough = |level: &&Level| {
        // correlations can only make the error larger, unless values avoid each other
        let g = ratio(level).max(1.0);
        (level.size as f64).powi(3) > 2.0 * n as f64 * g * g
    };
    let trusted = || levels.iter().filter(|l| l.blocks >= FEWEST_BLOCKS);
    let (level, converged) = match trusted().find(enough) {
        Some(first) => {
            let later = trusted().filter(|l| l.size > first.size);
            let higher = |best: Level, l: &Level| match l.error - 2.0 * l.uncertainty > best.error {
                true => *l,
                false => best,
            };
            (later.fold(*first, higher), true)
        }
        None => {
            let few = levels.iter().filter(|l| l.blocks >= FEWEST_BLOCKS.min(n));
            let largest = few.copied().reduce(|a, b| if b.error > a.error { b } else { a });
            (largest.unwrap_or(levels[0]), false)
        }
    };
    Ok(Mean {
        value,
        error: level.error,
        uncertainty: level.uncertainty,
        inefficiency: ratio(&level).max(1.0),
        block_size: level.size,
        converged,
        levels,
    })
}

/// The errors of all block lengths. Values that fill no whole block are left out at that length.
fn levels(series: &[f64], mean: f64) -> Vec<Level> {
    // deviations, so that squares keep their digits
    let mut blocks: Vec<f64> = series.iter().map(|x| x - mean).collect();
    let mut levels = Vec::new();
    let mut size = 1;
    while blocks.len() >= 2 {
        let m = blocks.len() as f64;
        let centre = average(&blocks);
        let squares: f64 = blocks.iter().map(|x| (x - centre) * (x - centre)).sum();
        let error = (squares / (m * (m - 1.0))).sqrt();
        let uncertainty = error / (2.0 * (m - 1.0)).sqrt();
        levels.push(Level { size, blocks: blocks.len(), error, uncertainty });
        blocks = blocks.chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        size *= 2;
    }
    levels
}

/// The mean, with its rounding errors removed once.
pub(super) fn average(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let rough = series.iter().sum::<f64>() / n;
    rough + series.iter().map(|x| x - rough).sum::<f64>() / n
}
