//! Energies of the dihedral of four atoms in a chain.

mod harmonic;
mod opls;
mod periodic;
mod ryckaert_bellemans;

pub use harmonic::{HarmonicDihedral, HarmonicDihedralParams, HarmonicDihedralPrepared};
pub use opls::{OplsDihedral, OplsDihedralParams, OplsDihedralPrepared};
pub use periodic::{PeriodicDihedral, PeriodicDihedralParams, PeriodicDihedralPrepared};
pub use ryckaert_bellemans::{RyckaertBellemans, RyckaertBellemansParams};
