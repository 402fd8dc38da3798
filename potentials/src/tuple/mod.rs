//! Energies of the positions of a few bonded atoms.

mod harmonic_improper;
mod periodic_improper;
mod urey_bradley;

pub use harmonic_improper::HarmonicImproper;
pub use periodic_improper::PeriodicImproper;
pub use urey_bradley::{UreyBradley, UreyBradleyParams};

use crate::{Dihedral, Scalar, Vec3};

/// The dihedral of four atoms in the order given, whatever bonds there are between them.
#[inline(always)]
fn dihedral<S: Scalar>([a, b, c, d]: [Vec3<S>; 4]) -> Dihedral<S> {
    Dihedral::along(b - a, c - b, d - c)
}
