//! What changes in a run.

use super::cell::Cell;
use super::positions::Positions;
use serde::{Deserialize, Serialize};

/// The state of a system between two steps.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
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

// (derived, it would not use the memory that is there again)
impl Clone for State {
    fn clone(&self) -> Self {
        let Self { cell, positions, velocities, step, time } = self;
        let (cell, positions, velocities) = (cell.clone(), positions.clone(), velocities.clone());
        Self { cell, positions, velocities, step: *step, time: *time }
    }
    fn clone_from(&mut self, o: &Self) {
        self.cell.clone_from(&o.cell);
        self.positions.clone_from(&o.positions);
        self.velocities.clone_from(&o.velocities);
        (self.step, self.time) = (o.step, o.time);
    }
}
