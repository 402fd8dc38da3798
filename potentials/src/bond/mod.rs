//! Energies of two bonded atoms.

mod fene;
mod g96;
mod harmonic;
mod morse;
mod quartic;

pub use fene::{Fene, FeneParams, FenePrepared};
pub use g96::{G96Bond, G96BondParams, G96BondPrepared};
pub use harmonic::{HarmonicBond, HarmonicBondParams};
pub use morse::{MorseBond, MorseBondParams};
pub use quartic::{QuarticBond, QuarticBondParams};
