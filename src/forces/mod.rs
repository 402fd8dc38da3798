//! Energy, forces and virial of a configuration.
//!
//! There are two evaluators and one truth. [`Kind::Tape`] records the whole energy op by op on one
//! [`Tape`](crate::autodiff::Tape) and takes a single backward pass for the forces on all 3N coordinates: it works
//! for any energy whatever and is the oracle of every test. [`Kind::Fused`] is the same reverse sweep with the
//! structure known: the energy is a sum of interactions, each differentiated by itself, and its adjoints go
//! straight to the atoms.
//!
//! Forces are a pure function of the positions' bits: neither the age of a neighbour list, nor its skin, nor
//! wrapping, nor the number of threads changes them.

mod chunks;
pub mod embedding;
mod evaluator;
pub mod field;
pub mod global;
pub mod neural;
mod order;
pub mod pair;
mod pair_slopes;
mod parameters;
mod shares;
pub mod site;
mod term;
mod timings;
pub mod triplet;
pub mod tuple;
mod view;

pub use evaluator::{Charges, Evaluator, Kind, Method, ParameterSlope, Setup, parameter_names};
pub use order::{Direction, Order, Quantity, Tangents, Values};
pub use parameters::{ParameterTable, PreparedTable, Slot};
pub use term::{
    Beside, Closest, Entry, Law, ListNeed, Prepared, PreparedSlopes, Reach, Sink, Sums, Term, TermSlopes,
};
pub use timings::Timings;
pub use view::{Frame, Grid, Neighborhood, Precision, View};

pub use crate::autodiff::lanes::Isa;

use crate::neighbors::{ExclusionError, NeighborError};
use crate::system::{Cell, Positions};

/// What an evaluation gives. The memory is used again from step to step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forces {
    /// The force on each atom, in kJ/mol/nm.
    pub forces: Vec<[f64; 3]>,
    /// The energy of each term, in kJ/mol; empty after [`ForceSource::forces_only`].
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
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ForceError {
    /// A force or energy is not a finite number.
    #[error("{}", not_finite(*.atom, .term, .closest))]
    NotFinite {
        /// The first such atom (from 0).
        atom: Option<usize>,
        /// The term it comes from.
        term: String,
        /// The two closest atoms of that term, if it is one of distances.
        closest: Option<Closest>,
    },
    /// There is no neighbour list.
    #[error(transparent)]
    Neighbors(#[from] NeighborError),
    /// The exclusions make no sense.
    #[error(transparent)]
    Exclusions(#[from] ExclusionError),
}

fn not_finite(atom: Option<usize>, term: &str, closest: &Option<Closest>) -> String {
    let what = match atom {
        Some(atom) => format!("the force of `{term}` on atom {} is not a finite number", atom + 1),
        None => format!("the energy of `{term}` is not a finite number"),
    };
    match closest {
        Some(c) => {
            let [a, b] = c.atoms;
            // (five digits, and no exponent)
            let distance: f64 = format!("{:.4e}", c.distance).parse().unwrap_or(c.distance);
            format!("{what}; its closest atoms are {} and {}, {} nm apart", a + 1, b + 1, distance)
        }
        None => what,
    }
}

/// Something that gives forces: an [`Evaluator`], or a toy in a test.
pub trait ForceSource {
    /// Computes energy, forces and virial at these positions.
    fn evaluate(&mut self, cell: &Cell, positions: &Positions, out: &mut Forces) -> Result<(), ForceError>;

    /// Computes the forces, the same to the last bit. Where that saves work, there are no energies then, and the
    /// virial is zero.
    fn forces_only(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        self.evaluate(cell, positions, out)
    }

    /// What forces are whole multiples of, in kJ/mol/nm: a power of two; 0 where they are not.
    fn force_step(&self) -> f64 {
        0.0
    }

    /// How many times neighbour lists were built; 0 where there are none.
    fn list_builds(&self) -> u64 {
        0
    }
}
