//! Energy, forces and virial of a configuration.

use crate::system::{Cell, Positions};

/// What an evaluation gives. The memory is used again from step to step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forces {
    /// The force on each atom, in kJ/mol/nm.
    pub forces: Vec<[f64; 3]>,
    /// The energy of each term, in kJ/mol.
    pub energies: Vec<f64>,
    /// W = −∂E/∂ε for a strain ε, in kJ/mol: xx yy zz xy xz yz. Positive means outward pressure.
    pub virial: [f64; 6],
}

impl Forces {
    /// The potential energy: the sum of the terms.
    pub fn energy(&self) -> f64 {
        self.energies.iter().sum()
    }
}

/// Why forces could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForceError {
    /// A force or energy is not a finite number.
    #[error("the force on atom {atom} is not finite")]
    NotFinite {
        /// The first such atom (from 0).
        atom: usize,
    },
}

/// Something that gives forces: an evaluator, or a toy in a test.
pub trait ForceSource {
    /// Computes energy, forces and virial at these positions.
    fn evaluate(&mut self, cell: &Cell, positions: &Positions, out: &mut Forces) -> Result<(), ForceError>;
}
