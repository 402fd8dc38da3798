//! Energies of the angle of three bonded atoms.

mod cosine;
mod cosine_squared;
mod harmonic;
mod periodic;
mod quartic;

pub use cosine::{CosineAngle, CosineAngleParams};
pub use cosine_squared::{CosineSquaredAngle, CosineSquaredAngleParams, CosineSquaredAnglePrepared};
pub use harmonic::{HarmonicAngle, HarmonicAngleParams};
pub use periodic::PeriodicAngle;
pub use quartic::{QuarticAngle, QuarticAngleParams};
