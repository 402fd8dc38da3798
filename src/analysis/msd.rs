//! The mean-square displacement, and the diffusion coefficient from it.
//!
//! MSD(τ) = ⟨|rᵢ(t + τ) − rᵢ(t) − (R(t + τ) − R(t))|²⟩ over atoms i and time origins t,
//!
//! with R the centre of mass of all atoms, so that a drift of the whole does not count. (Among N independent walkers
//! this makes the MSD of equal masses smaller by the factor 1 − 1/N.) By Einstein's relation MSD → 6 D τ + c in
//! three dimensions; the constant c comes from the ballistic beginning, so a *line* is fitted and not a ratio taken.
//!
//! The mean is over every frame as an origin. Displacements from overlapping stretches of time are correlated, and
//! so are neighbouring lags: the scatter of the points around the line says nothing about the error of D. The error
//! comes from cutting the trajectory into blocks, each analysed by itself.
//!
//! In periodic systems D depends on the size L of a cubic cell: D(∞) ≈ D(L) + 2.837 k_B T/(6π η L) (I.-C. Yeh and
//! G. Hummer, J. Phys. Chem. B 108, 15873, 2004); nothing of that is corrected here.
//!
//! Sources: A. Einstein, Ann. Phys. 322, 549 (1905); M. P. Allen and D. J. Tildesley, Computer Simulation of
//! Liquids, 2nd ed. (2017), section 8.5.

use super::AnalysisError;
use crate::system::{Cell, Positions};
use rayon::prelude::*;

/// The mean-square displacement after one lag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The lag τ, ps.
    pub lag: f64,
    /// MSD(τ), nm².
    pub msd: f64,
    /// Time origins it is the mean over.
    pub origins: usize,
}

/// A diffusion coefficient.
#[derive(Clone, Debug, PartialEq)]
pub struct Diffusion {
    /// D in nm²/ps: the mean over blocks. 1 nm²/ps = 0.01 cm²/s.
    pub value: f64,
    /// Its standard error (1 σ) from the scatter of the blocks, nm²/ps.
    pub error: f64,
    /// c of the line 6 D τ + c, nm²: the mean over blocks.
    pub intercept: f64,
    /// D of each block, nm²/ps.
    pub blocks: Vec<f64>,
}

/// nm²/ps in cm²/s.
pub const CM2_PER_S: f64 = 0.01;

/// The tolerance of times of frames, relative to their interval.
const JITTER: f64 = 1e-3;

/// Collects frames and gives their mean-square displacement; see [the module](self). Keeps 24 bytes for every atom
/// selected and frame.
///
/// ```
/// use md::analysis::Msd;
/// let mut msd = Msd::new(&[1.0, 1.0]).unwrap();
/// for step in 0..11 {
///     let x = 0.1 * f64::from(step); // apart at ± 0.1 nm/ps
///     msd.add_unwrapped(f64::from(step), &[[x, 0.0, 0.0], [-x, 0.0, 0.0]]).unwrap();
/// }
/// let curve = msd.curve(10);
/// assert!((curve[2].msd - 0.04).abs() < 1e-12 && curve[2].origins == 9);
/// ```
#[derive(Clone, Debug)]
pub struct Msd {
    masses: Vec<f64>,
    total_mass: f64,
    atoms: Vec<u32>,
    first: f64,
    interval: f64,
    frames: Vec<Vec<[f64; 3]>>,
    /// Where unwrapping stands: positions of all atoms in the last frame, unwrapped.
    last: Vec<[f64; 3]>,
}

impl Msd {
    /// Of all atoms, with these masses (u; any unit will do).
    ///
    /// # Errors
    /// No atoms; masses that are negative, not finite or all zero.
    pub fn new(masses: &[f64]) -> Result<Msd, AnalysisError> {
        let atoms: Vec<u32> = (0..masses.len() as u32).collect();
        Msd::of(masses, &atoms)
    }

    /// Of the atoms `atoms` (indices from 0) only. The centre of mass is still that of all, whose masses (u) and
    /// positions are given.
    ///
    /// # Errors
    /// As [`Msd::new`]; atoms that are not there.
    pub fn of(masses: &[f64], atoms: &[u32]) -> Result<Msd, AnalysisError> {
        let total_mass: f64 = masses.iter().sum();
        if let Some(&value) = masses.iter().find(|m| !(**m >= 0.0 && m.is_finite())) {
            let should = "zero or a positive number";
            return Err(AnalysisError::Argument { name: "a mass", value, should });
        }
        if atoms.is_empty() || total_mass <= 0.0 {
            return Err(AnalysisError::TooFew { what: "atoms with a mass", count: 0, needed: 1 });
        }
        if let Some(&atom) = atoms.iter().find(|&&i| i as usize >= masses.len()) {
            return Err(AnalysisError::Selection { atom: atom as usize, count: masses.len() });
        }
        Ok(Msd {
            masses: masses.to_vec(),
            total_mass,
            atoms: atoms.to_vec(),
            first: 0.0,
            interval: 0.0,
            frames: Vec::new(),
            last: Vec::new(),
        })
    }

    /// Adds a frame of unwrapped positions (Cartesian, nm) of all atoms at a time in ps.
    ///
    /// # Errors
    /// Another number of positions than of masses; positions that are not finite; a time that is not one interval
    /// (that of the first two frames) after the last frame's, to a thousandth of the interval.
    pub fn add_unwrapped(&mut self, time: f64, points: &[[f64; 3]]) -> Result<(), AnalysisError> {
        let (count, expected) = (points.len(), self.masses.len());
        if count != expected {
            return Err(AnalysisError::Lengths { what: "positions", count, expected });
        }
        if let Some(index) = points.iter().flatten().position(|x| !x.is_finite()) {
            return Err(AnalysisError::NotFinite { index, value: points[index / 3][index % 3] });
        }
        let frame = self.frames.len();
        match frame {
            0 => self.first = time,
            1 => self.interval = time - self.first,
            _ => {}
        }
        let due = self.first + frame as f64 * self.interval;
        let on_time = (time - due).abs() <= JITTER * self.interval;
        if !time.is_finite() || frame > 0 && !(self.interval > 0.0 && on_time) {
            return Err(AnalysisError::Times { frame, time, expected: due });
        }
        let mut centre = [0.0; 3];
        for (m, r) in self.masses.iter().zip(points) {
            (0..3).for_each(|k| centre[k] += m * r[k]);
        }
        let centre = centre.map(|x| x / self.total_mass);
        let relative = |&i: &u32| {
            let r = points[i as usize];
            [r[0] - centre[0], r[1] - centre[1], r[2] - centre[2]]
        };
        self.frames.push(self.atoms.iter().map(relative).collect());
        self.last.clear();
        self.last.extend_from_slice(points);
        Ok(())
    }

    /// Adds a frame of a run: positions that count their images, at a time in ps.
    ///
    /// Only in a constant cell: where the cell fluctuates, whole images fluctuate with it, and
    /// [`Msd::add_wrapped`] is to be preferred.
    ///
    /// # Errors
    /// As [`Msd::add_unwrapped`].
    pub fn add(&mut self, time: f64, positions: &Positions, cell: &Cell) -> Result<(), AnalysisError> {
        let points: Vec<_> = (0..positions.len()).map(|i| positions.cartesian(cell, i)).collect();
        self.add_unwrapped(time, &points)
    }

    /// Adds a frame of positions (Cartesian, nm) that may be wrapped into the cell: every atom goes on from the
    /// last frame to its nearest image.
    ///
    /// That is right while no atom moves half the smallest height of the cell from frame to frame, and then leaves
    /// unwrapped positions as they are. Farther moves go unnoticed and make the result too small: write frames
    /// often enough, or unwrapped ones. Cells may change: displacements are added up, each in the cell of its own
    /// frame, which is right at constant pressure too (S. von Bülow, J. T. Bullerjahn and G. Hummer, J. Chem.
    /// Phys. 153, 021101, 2020).
    ///
    /// # Errors
    /// As [`Msd::add_unwrapped`].
    pub fn add_wrapped(&mut self, time: f64, points: &[[f64; 3]], cell: &Cell) -> Result<(), AnalysisError> {
        let (count, expected) = (points.len(), self.masses.len());
        if count != expected {
            return Err(AnalysisError::Lengths { what: "positions", count, expected });
        }
        let unwrapped: Vec<[f64; 3]> = if self.frames.is_empty() {
            points.to_vec()
        } else {
            let periodic = cell.periodic();
            let follow = |(now, last): (&[f64; 3], &[f64; 3])| {
                let s = cell.fraction([now[0] - last[0], now[1] - last[1], now[2] - last[2]]);
                let wrapped = std::array::from_fn(|k| if periodic[k] { s[k] - s[k].round() } else { s[k] });
                let d = cell.cartesian(cell.nearest(wrapped));
                [last[0] + d[0], last[1] + d[1], last[2] + d[2]]
            };
            points.iter().zip(&self.last).map(follow).collect()
        };
        self.add_unwrapped(time, &unwrapped)
    }

    /// How many frames were added.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The time between frames, ps; 0 before there are two.
    pub fn interval(&self) -> f64 {
        self.interval
    }

    /// The mean-square displacement for the lags of 0 to `lags` frames (fewer where there are not as many frames).
    pub fn curve(&self, lags: usize) -> Vec<Point> {
        curve(&self.frames, self.interval, 0..=lags.min(self.frames.len().saturating_sub(1)))
    }

    /// The diffusion coefficient: in each of `blocks` consecutive pieces of the trajectory, of equal length, a
    /// least-squares line through MSD(τ) for lags from `window.0` to `window.1` (ps) has the slope 6 D. Time
    /// origins and ends are in the same piece; frames that remain at the end are left out.
    ///
    /// The window must begin beyond the ballistic motion and cages (1 to 2 ps in simple liquids), and end well
    /// within a piece. Pieces longer than all correlations are independent, and the standard error is their
    /// standard deviation divided by the root of their number.
    ///
    /// # Errors
    /// Fewer than two blocks, fewer than two lags in the window, pieces not longer than the window.
    pub fn diffusion(&self, window: (f64, f64), blocks: usize) -> Result<Diffusion, AnalysisError> {
        if blocks < 2 {
            return Err(AnalysisError::TooFew { what: "blocks", count: blocks, needed: 2 });
        }
        if self.frames.len() < 2 {
            return Err(AnalysisError::TooFew { what: "frames", count: self.frames.len(), needed: 2 });
        }
        let first = (window.0 / self.interval - JITTER).ceil().max(0.0) as usize;
        let last = (window.1 / self.interval + JITTER).floor().max(0.0) as usize;
        let count = (last + 1).saturating_sub(first);
        if count < 2 {
            return Err(AnalysisError::TooFew { what: "lags in the window of the fit", count, needed: 2 });
        }
        let size = self.frames.len() / blocks;
        if size < last + 2 {
            let what = "frames in a block";
            return Err(AnalysisError::TooFew { what, count: size, needed: last + 2 });
        }
        let lines: Vec<(f64, f64)> = (self.frames.chunks_exact(size).take(blocks))
            .map(|frames| line(&curve(frames, self.interval, first..=last)))
            .collect();
        let n = blocks as f64;
        let each: Vec<f64> = lines.iter().map(|(slope, _)| slope / 6.0).collect();
        let value = each.iter().sum::<f64>() / n;
        let squares: f64 = each.iter().map(|d| (d - value) * (d - value)).sum();
        Ok(Diffusion {
            value,
            error: (squares / (n * (n - 1.0))).sqrt(),
            intercept: lines.iter().map(|(_, c)| c).sum::<f64>() / n,
            blocks: each,
        })
    }
}

/// The MSD at lags (in frames); one task a lag, each summed in order.
fn curve(frames: &[Vec<[f64; 3]>], interval: f64, lags: std::ops::RangeInclusive<usize>) -> Vec<Point> {
    let lags: Vec<usize> = lags.filter(|&lag| lag < frames.len()).collect();
    let point = |&lag: &usize| {
        let origins = frames.len() - lag;
        let mut sum = 0.0;
        for (from, to) in frames.iter().zip(&frames[lag..]) {
            let squares = from.iter().zip(to).map(|(a, b)| {
                let d = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
                d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
            });
            sum += squares.sum::<f64>() / from.len() as f64;
        }
        Point { lag: lag as f64 * interval, msd: sum / origins as f64, origins }
    };
    lags.par_iter().map(point).collect()
}

/// Slope and intercept of the least-squares line.
fn line(points: &[Point]) -> (f64, f64) {
    let n = points.len() as f64;
    let x_mean = points.iter().map(|p| p.lag).sum::<f64>() / n;
    let y_mean = points.iter().map(|p| p.msd).sum::<f64>() / n;
    let (mut xx, mut xy) = (0.0, 0.0);
    for p in points {
        xx += (p.lag - x_mean) * (p.lag - x_mean);
        xy += (p.lag - x_mean) * (p.msd - y_mean);
    }
    let slope = xy / xx;
    (slope, y_mean - slope * x_mean)
}
