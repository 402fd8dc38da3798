//! What does not change in a run: the atoms, and what joins them.

use serde::{Deserialize, Serialize};

/// The atoms of a system, in the order of the input. Arrays run over atoms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Atoms {
    /// Names of the types.
    pub type_names: Vec<String>,
    /// The type of each atom.
    pub types: Vec<u32>,
    /// Masses in u.
    pub masses: Vec<f64>,
    /// Charges in e.
    pub charges: Vec<f64>,
    /// The molecule each atom belongs to.
    pub molecules: Vec<u32>,
    /// Names for structure files (an element or a label).
    pub names: Vec<String>,
}

impl Atoms {
    /// How many atoms.
    pub fn len(&self) -> usize {
        self.types.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}
