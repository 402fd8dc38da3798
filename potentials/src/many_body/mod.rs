//! Energies of more than a few bonded atoms.

pub mod neural;
mod radius_of_gyration;
mod stillinger_weber;
mod sutton_chen;
mod tersoff;

pub use neural::Neural;
pub use radius_of_gyration::{RadiusOfGyration, RadiusOfGyrationParams};
pub use stillinger_weber::{StillingerWeber, StillingerWeberParams, StillingerWeberPrepared};
pub use sutton_chen::{SuttonChen, SuttonChenParams, SuttonChenPrepared};
pub use tersoff::{Tersoff, TersoffParams, TersoffPrepared};
