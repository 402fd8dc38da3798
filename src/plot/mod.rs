//! Pictures made from the files a run wrote.
//!
//! ```text
//! energies.csv ──table──→ Table ──energies──→ Figure ──→ energies.svg, energies.png
//!                            └── Figure::columns ──┘
//! ```
//!
//! [`Figure`] stacks [`Panel`]s over a shared x axis and knows nothing of energies; anything with an x
//! and a y can be drawn with it. [`energies::figure`] is the picture every run leaves behind.

mod canvas;
pub mod energies;
mod figure;
mod sample;
pub mod scale;
pub mod style;
pub mod table;

use std::path::PathBuf;

pub use energies::{Stage, UnitLabels};
pub use figure::{Figure, Panel, Series};
pub use table::Table;

/// What can go wrong between a file and its picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The file could not be opened or read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a table.
    #[error("{name}, line {line}: {message}")]
    Malformed {
        /// The file.
        name: String,
        /// The line, counted from one.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// Too few rows to draw a curve.
    #[error("{name} has {}; a curve needs at least two", rows_in_words(*.rows))]
    TooShort {
        /// The file.
        name: String,
        /// How many rows it has.
        rows: usize,
    },
    /// A column was asked for that is not there.
    #[error("{name} has no column `{column}`; its columns are {}", .known.join(", "))]
    NoColumn {
        /// The file.
        name: String,
        /// The column asked for.
        column: String,
        /// The columns there are.
        known: Vec<String>,
    },
    /// None of the columns that the usual picture shows is there with a number in it.
    #[error(
        "{name} holds none of the usual columns of energies with a number in it; its columns are {}; draw some of \
         them with `--columns A,B`",
        .known.join(", ")
    )]
    NoEnergies {
        /// The file.
        name: String,
        /// The columns there are.
        known: Vec<String>,
    },
    /// Nothing in the columns can be drawn.
    #[error("{name}: nothing to draw, {what} holds no finite numbers")]
    NothingFinite {
        /// The file.
        name: String,
        /// The column or columns.
        what: String,
    },
    /// The picture has no panel, or none with a point in it.
    #[error("there is nothing to draw: no panel holds a finite point")]
    NothingToDraw,
    /// The name's ending tells no format.
    #[error("cannot tell the format of {}: its name must end in .svg or .png", .0.display())]
    Format(PathBuf),
    /// The drawing failed.
    #[error("cannot draw: {0}")]
    Draw(String),
    /// The picture could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The picture.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

fn rows_in_words(rows: usize) -> String {
    match rows {
        0 => "no rows".into(),
        1 => "one row".into(),
        n => format!("{n} rows"),
    }
}
