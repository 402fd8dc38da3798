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

impl State {
    /// The kinetic energy ½ Σ m v² in kJ/mol.
    pub fn kinetic_energy(&self, masses: &[f64]) -> f64 {
        let terms = masses.iter().zip(&self.velocities);
        0.5 * terms.map(|(m, [x, y, z])| m * (x * x + y * y + z * z)).sum::<f64>()
    }
}
