//! Molecular dynamics in which every energy is written once and every derivative is automatic.

pub mod adjoint;
pub mod analysis;
pub mod autodiff;
pub mod catalog;
pub mod cli;
pub mod fit;
pub mod forces;
pub mod formats;
pub mod formula;
pub mod input;
pub mod integrate;
pub mod neighbors;
pub mod observe;
pub mod plot;
pub mod random;
pub mod response;
pub mod run;
pub mod system;
pub mod units;

pub use catalog::catalog;
pub use potentials;
