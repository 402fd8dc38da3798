//! Energies of one atom at a place.

mod anisotropic_restraint;
mod flat_bottom;
mod harmonic_wall;
mod position_restraint;
mod uniform_electric_field;

pub use anisotropic_restraint::{AnisotropicRestraint, AnisotropicRestraintParams};
pub use flat_bottom::{FlatBottom, FlatBottomParams};
pub use harmonic_wall::{HarmonicWall, HarmonicWallParams};
pub use position_restraint::{PositionRestraint, PositionRestraintParams};
pub use uniform_electric_field::{UniformElectricField, UniformElectricFieldParams};
