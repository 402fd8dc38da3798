//! Which atoms are near which.
//!
//! A [`VerletList`] holds, for every atom, all atoms within a cut-off plus a skin, every periodic image by
//! itself, and stays valid until an atom has moved half the skin. [`Exclusions`] name pairs of atoms that
//! do not see each other.

mod bins;
mod exclusions;
mod verlet;

#[cfg(test)]
mod tests;

pub use exclusions::{ExclusionError, Exclusions};
pub use verlet::{CHUNK, NeighborError, VerletList, default_skin};
