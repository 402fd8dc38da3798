//! Energies of two atoms at a distance.

mod born_mayer_huggins;
mod buckingham;
mod coulomb;
mod coulomb_debye;
mod damped_shifted_force;
mod gaussian;
mod lennard_jones;
mod lj96;
mod mie;
mod morse;
mod reaction_field;
mod soft_cosine;
mod yukawa;
mod zbl;

pub use born_mayer_huggins::{BornMayerHuggins, BornMayerHugginsParams, BornMayerHugginsPrepared};
pub use buckingham::{Buckingham, BuckinghamParams, BuckinghamPrepared};
pub use coulomb::Coulomb;
pub use coulomb_debye::{CoulombDebye, CoulombDebyeParams};
pub use damped_shifted_force::{DampedShiftedForce, DampedShiftedForceParams, DampedShiftedForcePrepared};
pub use gaussian::{Gaussian, GaussianParams};
pub use lennard_jones::{C126, LennardJones, LennardJonesParams};
pub use lj96::{C96, Lj96, Lj96Params};
pub use mie::{Mie, MieParams, MiePrepared};
pub use morse::{Morse, MorseParams};
pub use reaction_field::{ReactionField, ReactionFieldParams, ReactionFieldPrepared};
pub use soft_cosine::{SoftCosine, SoftCosineParams, SoftCosinePrepared};
pub use yukawa::{Yukawa, YukawaParams};
pub use zbl::{Zbl, ZblParams};
