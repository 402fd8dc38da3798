//! What can be learnt from the files that a run wrote, or from frames in memory; never from the run itself.
//!
//! ```text
//! energies.csv ──plot::Table──→ series ──→ blocks::mean   mean, its error, statistical inefficiency
//!                                     └──→ drift::drift   slope, its error, an upper bound
//! trajectory   ──frames──→ (Frame, Cell) ─→ Rdf           g(r), coordination numbers, first peak
//!                                     └──→ Msd           mean-square displacement, diffusion coefficient
//! ```
//!
//! Everything streams: frames are added one by one, so that a trajectory need not fit into memory for g(r).
//! Lengths are in nm and times in ps, or in reduced units throughout. Sums are taken in fixed pieces that are
//! joined in a fixed order, so results have the same bits for every number of threads.

pub mod blocks;
pub mod drift;
pub mod msd;
pub mod rdf;

pub use blocks::Mean;
pub use drift::Drift;
pub use msd::{Diffusion, Msd};
pub use rdf::Rdf;

use crate::formats::{self, Format, FormatError, Frame, FrameUnits};
use crate::plot::{PlotError, Table};
use crate::system::Cell;
use crate::system::cell::CellError;
use crate::system::positions::PositionError;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Why something cannot be analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A trajectory cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A table cannot be read, or lacks a column.
    #[error(transparent)]
    Table(#[from] PlotError),
    /// The cell of a frame is none.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// A coordinate is not a finite number, or unbelievably far away.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// An average over distances in a system without end needs a cell that repeats along all axes.
    #[error("the cell is not periodic along all three axes")]
    NotPeriodic,
    /// Beyond half the smallest height of the cell more than one image would count.
    #[error(
        "distances up to {r_max} nm were asked for, but half the smallest height of the cell is {limit} nm"
    )]
    Range {
        /// The largest distance asked for, nm.
        r_max: f64,
        /// Half the smallest height of the (reduced) cell, nm.
        limit: f64,
    },
    /// An argument that makes no sense.
    #[error("{name} is {value}, but should be {should}")]
    Argument {
        /// Which argument.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it should be.
        should: &'static str,
    },
    /// A selection names an atom that is not there.
    #[error("atom {atom} (from 0) was selected, but there are {count} atoms")]
    Selection {
        /// The atom, counted from 0.
        atom: usize,
        /// How many there are.
        count: usize,
    },
    /// A frame or series of another length than the one before or beside it.
    #[error("{count} {what}, where {expected} were expected")]
    Lengths {
        /// What there is another number of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Too little to say anything.
    #[error("{count} {what}, but at least {needed} are needed")]
    TooFew {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are needed.
        needed: usize,
    },
    /// A number is infinite or none.
    #[error("value {index} (from 0) is {value}")]
    NotFinite {
        /// Its index, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Frames must follow each other in equal steps of time.
    #[error("frame {frame} (from 0) is at {time} ps, where {expected} ps was expected")]
    Times {
        /// The frame's index, from 0.
        frame: usize,
        /// Its time, ps.
        time: f64,
        /// The time that the first two frames make one expect, ps.
        expected: f64,
    },
}

/// The frames of a trajectory file with their cells, one after the other; the first error is the last item.
///
/// The format is that of the path's ending. Units of files that do not say: see [`formats::frames`]. A frame with
/// a cell and no word about periodicity counts as periodic; one without a cell has an open one.
///
/// # Errors
/// A file that cannot be opened, or whose ending says no format.
pub fn frames(
    path: &Path,
    units: FrameUnits,
) -> Result<impl Iterator<Item = Result<(Frame, Cell), AnalysisError>>, AnalysisError> {
    let format = Format::from_path(path)?;
    let file =
        File::open(path).map_err(|e| FormatError::new(format!("cannot be read: {e}")).with_path(path))?;
    let owned = path.to_owned();
    Ok(formats::frames(BufReader::new(file), format, units).map(move |frame| {
        let frame = frame.map_err(|e| e.with_path(&owned))?;
        let periodic = frame.periodic.unwrap_or([frame.cell.is_some(); 3]);
        let cell = Cell::enclosing(frame.cell, periodic, &frame.positions)?;
        Ok((frame, cell))
    }))
}

/// The times (ps) and values of a column of `energies.csv`, in the run's units. Rows whose time or value is not a
/// finite number (an empty field) are left out.
///
/// # Errors
/// A column that is not there.
pub fn series(table: &Table, column: &str) -> Result<(Vec<f64>, Vec<f64>), AnalysisError> {
    let (times, values) = (table.require("time")?, table.require(column)?);
    Ok(times.iter().zip(values).filter(|(t, x)| t.is_finite() && x.is_finite()).unzip())
}

/// Refuses a series with a value that is not finite, or with fewer than `needed` values.
fn check_series(series: &[f64], needed: usize) -> Result<(), AnalysisError> {
    if series.len() < needed {
        return Err(AnalysisError::TooFew { what: "values", count: series.len(), needed });
    }
    match series.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(AnalysisError::NotFinite { index, value: series[index] }),
        None => Ok(()),
    }
}
