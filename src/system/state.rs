//! What changes in a run.

use super::cell::Cell;
use super::positions::Positions;
use serde::{Deserialize, Serialize};

/// The state of a system between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The cell.
    pub cell: Cell,
    /// The positions, on the grid of the cell.
    pub positions: Positions,
    /// Velocities in nm/ps, one an atom.
    pub velocities: Vec<[f64; 3]>,
    /// Steps taken since the run began.
    pub step: u64,
    /// Time in ps since the run began.
    pub time: f64,
}
