//! The radial distribution function.
//!
//! Around an atom, a shell from r₁ to r₂ holds as many others as in an ideal gas of the same density, times g:
//!
//! g = Σ_frames V · n(r₁, r₂) / (P · 4π/3 (r₂³ − r₁³) · frames),
//!
//! where n counts the ordered pairs (i, j), i ≠ j, at such distances and P is how many ordered pairs there are:
//! N(N − 1) among all atoms, |A| |B| − |A ∩ B| between two selections. With N − 1 (not N) an ideal gas has g = 1
//! exactly on average, whatever N. Volumes of shells are exact, not 4πr² dr.
//!
//! Source: M. P. Allen and D. J. Tildesley, Computer Simulation of Liquids, 2nd ed. (2017), section 8.2.

use super::AnalysisError;
use crate::system::{Cell, Positions};
use rayon::prelude::*;
use std::f64::consts::PI;

/// g(r) in one bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shell {
    /// The middle of the bin, nm.
    pub r: f64,
    /// g, without unit.
    pub g: f64,
    /// The coordination number: how many atoms (of the second selection) an atom (of the first) has within the
    /// *outer* edge of this bin, on average.
    pub coordination: f64,
}

/// A maximum of g(r).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Where, nm.
    pub r: f64,
    /// How high.
    pub g: f64,
}

/// Whose distances are counted.
#[derive(Clone, Debug, PartialEq)]
enum Pairs {
    All,
    Between(Vec<u32>, Vec<u32>),
}

/// Accumulates a radial distribution function over frames; see [the module](self).
///
/// Only nearest images are counted, which is exact for distances up to half the smallest height of the cell, in
/// any cell that is periodic along three axes; frames with a smaller cell are refused. Costs N² distances a frame
/// (half of it among all atoms), in parallel; counts are integers, so the result does not depend on threads.
///
/// ```
/// use md::{analysis::Rdf, system::{Cell, Positions}};
/// let cell = Cell::new([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]], [true; 3]).unwrap();
/// let two = Positions::from_cartesian(&cell, &[[0.1, 0.0, 0.0], [1.9, 0.0, 0.0]]).unwrap();
/// let mut rdf = Rdf::new(1.0, 10).unwrap();
/// rdf.add(&two, &cell).unwrap();
/// let g = rdf.finish();
/// assert!((g[2].r - 0.25).abs() < 1e-15 && g[2].coordination == 1.0); // 0.2 nm apart, across the boundary
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rdf {
    r_max: f64,
    pairs: Pairs,
    /// Ordered pairs in each bin, all frames together.
    counts: Vec<u64>,
    /// Σ_frames V/P · (ordered pairs in each bin), nm³.
    weighted: Vec<f64>,
    /// Atoms that have neighbours counted, all frames together.
    centres: u64,
    frames: u64,
}

/// Atoms i a task.
const CHUNK: usize = 32;

impl Rdf {
    /// Of all pairs of atoms, in bins of equal width from 0 to `r_max` (nm). Bin k holds k·w ≤ r < (k + 1)·w.
    ///
    /// # Errors
    /// A distance that is not positive and finite, no bins or more than 2³² − 1.
    pub fn new(r_max: f64, bins: usize) -> Result<Rdf, AnalysisError> {
        Rdf::of(r_max, bins, Pairs::All)
    }

    /// Of the atoms `b` around the atoms `a` (indices from 0; each once). Atoms that are in both do not count as
    /// their own neighbours.
    ///
    /// # Errors
    /// As [`Rdf::new`].
    pub fn between(r_max: f64, bins: usize, a: &[u32], b: &[u32]) -> Result<Rdf, AnalysisError> {
        let once = |s: &[u32]| {
            let mut s = s.to_vec();
            s.sort_unstable();
            s.dedup();
            s
        };
        Rdf::of(r_max, bins, Pairs::Between(once(a), once(b)))
    }

    fn of(r_max: f64, bins: usize, pairs: Pairs) -> Result<Rdf, AnalysisError> {
        if !(r_max > 0.0 && r_max.is_finite()) {
            let should = "a positive number";
            return Err(AnalysisError::Argument { name: "the largest distance", value: r_max, should });
        }
        if bins == 0 || u32::try_from(bins).is_err() {
            let should = "from 1 to 4294967295";
            return Err(AnalysisError::Argument { name: "the number of bins", value: bins as f64, should });
        }
        Ok(Rdf { r_max, pairs, counts: vec![0; bins], weighted: vec![0.0; bins], centres: 0, frames: 0 })
    }

    /// The width of a bin, nm.
    pub fn width(&self) -> f64 {
        self.r_max / self.counts.len() as f64
    }

    /// How many frames were added.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Adds a frame. The cell may change from frame to frame.
    ///
    /// # Errors
    /// A cell that is not periodic along three axes or smaller than 2 `r_max` between any two faces; a selection
    /// of atoms that are not there; fewer than two atoms (or no pair between the selections). Nothing has changed
    /// then.
    pub fn add(&mut self, positions: &Positions, cell: &Cell) -> Result<(), AnalysisError> {
        let volume = match (cell.periodic(), cell.volume()) {
            ([true, true, true], Some(volume)) => volume,
            _ => return Err(AnalysisError::NotPeriodic),
        };
        let limit = 0.5 * cell.heights().into_iter().fold(f64::INFINITY, f64::min);
        if self.r_max > limit * (1.0 + 4.0 * f64::EPSILON) {
            return Err(AnalysisError::Range { r_max: self.r_max, limit });
        }
        let n = positions.len();
        let fractions = |s: &[u32]| s.iter().map(|&i| positions.fraction(i as usize)).collect::<Vec<_>>();
        let (counts, pairs, centres) = match &self.pairs {
            Pairs::All => {
                let all: Vec<_> = (0..n).map(|i| positions.fraction(i)).collect();
                let once = self.count(cell, n, |i| (all[i], &all[i + 1..]));
                let twice = once.into_iter().map(|c| 2 * c).collect();
                (twice, n as f64 * (n as f64 - 1.0), n)
            }
            Pairs::Between(a, b) => {
                if let Some(&atom) = a.iter().chain(b).find(|&&i| i as usize >= n) {
                    return Err(AnalysisError::Selection { atom: atom as usize, count: n });
                }
                let both = a.iter().filter(|i| b.binary_search(i).is_ok()).count();
                let (centres, others) = (fractions(a), fractions(b));
                let mut counts = self.count(cell, a.len(), |k| (centres[k], &others[..]));
                // an atom in both selections is 0 away from itself
                counts[0] -= both as u64;
                (counts, a.len() as f64 * b.len() as f64 - both as f64, a.len())
            }
        };
        if pairs <= 0.0 {
            return Err(AnalysisError::TooFew { what: "pairs of atoms", count: 0, needed: 1 });
        }
        for ((sum, weighted), count) in self.counts.iter_mut().zip(&mut self.weighted).zip(counts) {
            *sum += count;
            *weighted += count as f64 * (volume / pairs);
        }
        self.centres += centres as u64;
        self.frames += 1;
        Ok(())
    }

    /// Adds a frame of Cartesian positions (nm), wrapped or not.
    ///
    /// # Errors
    /// As [`Rdf::add`], and coordinates that are not finite.
    pub fn add_points(&mut self, points: &[[f64; 3]], cell: &Cell) -> Result<(), AnalysisError> {
        self.add(&Positions::from_cartesian(cell, points)?, cell)
    }

    /// Adds what another one has accumulated, as if its frames had been added here.
    ///
    /// # Errors
    /// Other bins or other selections.
    pub fn merge(&mut self, other: &Rdf) -> Result<(), AnalysisError> {
        let (count, expected) = (other.counts.len(), self.counts.len());
        if count != expected {
            return Err(AnalysisError::Lengths { what: "bins", count, expected });
        }
        if other.r_max != self.r_max || other.pairs != self.pairs {
            let should = "that of the one it is added to, with the same selections";
            return Err(AnalysisError::Argument { name: "the largest distance", value: other.r_max, should });
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.weighted.iter_mut().zip(&other.weighted).for_each(|(a, b)| *a += b);
        self.centres += other.centres;
        self.frames += other.frames;
        Ok(())
    }

    /// g(r) and coordination numbers of the frames so far, one for each bin; zeros without frames.
    pub fn finish(&self) -> Vec<Shell> {
        let width = self.width();
        let (frames, centres) = (self.frames.max(1) as f64, self.centres.max(1) as f64);
        let mut within = 0;
        let bins = self.counts.iter().zip(&self.weighted).enumerate();
        let shell = |(k, (count, weighted)): (usize, (&u64, &f64))| {
            let k = k as f64;
            // (k + 1)³ − k³
            let volume = 4.0 / 3.0 * PI * width.powi(3) * (3.0 * k * (k + 1.0) + 1.0);
            within += count;
            Shell {
                r: (k + 0.5) * width,
                g: weighted / (volume * frames),
                coordination: within as f64 / centres,
            }
        };
        bins.map(shell).collect()
    }

    /// Histograms over the neighbours of `rows` centres; `row` gives a centre and its candidates, in fractions.
    ///
    /// |d| is at least |s_k|·height_k for every fraction s_k, so what is nearer than half the smallest height has
    /// all fractions below ½: wrapping them gives the only image that can count, in oblique cells too.
    fn count<'a>(
        &self,
        cell: &Cell,
        rows: usize,
        row: impl Fn(usize) -> ([f64; 3], &'a [[f64; 3]]) + Sync,
    ) -> Vec<u64> {
        let bins = self.counts.len();
        let per_width = bins as f64 / self.r_max;
        let r_max_squared = self.r_max * self.r_max;
        let wrap = |s: f64| s - if s >= 0.5 { 1.0 } else { 0.0 } + if s < -0.5 { 1.0 } else { 0.0 };
        let chunks = rows.div_ceil(CHUNK);
        let chunk = |mut counts: Vec<u64>, chunk: usize| {
            for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(rows) {
                let (a, others) = row(i);
                for b in others {
                    let d = cell.cartesian([wrap(b[0] - a[0]), wrap(b[1] - a[1]), wrap(b[2] - a[2])]);
                    let r_squared = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                    if r_squared < r_max_squared {
                        counts[((r_squared.sqrt() * per_width) as usize).min(bins - 1)] += 1;
                    }
                }
            }
            counts
        };
        let add = |mut a: Vec<u64>, b: Vec<u64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        (0..chunks).into_par_iter().fold(|| vec![0; bins], chunk).reduce(|| vec![0; bins], add)
    }
}

/// The first peak of g(r): the first bin that is above 1 and the highest of its neighbours up to `reach` bins on
/// both sides, made finer by a parabola fitted to these 2 `reach` + 1 bins. A reach of 0.02 to 0.03 nm suits
/// simple liquids. `None` without such a bin, or if the parabola has no maximum among these bins.
pub fn first_peak(shells: &[Shell], reach: usize) -> Option<Peak> {
    let reach = reach.max(1);
    let top = (reach..shells.len().saturating_sub(reach)).find(|&k| {
        let g = shells[k].g;
        g > 1.0 && shells[k - reach..=k + reach].iter().all(|s| s.g <= g)
    })?;
    let near = &shells[top - reach..=top + reach];
    let width = near[1].r - near[0].r;
    // Least squares with x = −reach … reach: g = c + b x + a (x² − m2), in which the three are independent.
    let xs = || near.iter().zip(0..).map(|(s, k): (_, i32)| (f64::from(k) - reach as f64, s.g));
    let count = near.len() as f64;
    let m2 = xs().map(|(x, _)| x * x).sum::<f64>() / count;
    let c = xs().map(|(_, g)| g).sum::<f64>() / count;
    let b = xs().map(|(x, g)| x * g).sum::<f64>() / (m2 * count);
    let q = |x: f64| x * x - m2;
    let a = xs().map(|(x, g)| q(x) * g).sum::<f64>() / xs().map(|(x, _)| q(x) * q(x)).sum::<f64>();
    let x = -0.5 * b / a;
    (a < 0.0 && x.abs() <= reach as f64)
        .then(|| Peak { r: shells[top].r + x * width, g: c + b * x + a * q(x) })
}
