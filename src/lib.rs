//! Molecular dynamics in which every energy is written once and every derivative is automatic.

pub mod cli;
pub mod formats;
pub mod input;
pub mod neighbors;
pub mod observe;
pub mod plot;
pub mod random;
pub mod system;
pub mod units;

pub use potentials;
