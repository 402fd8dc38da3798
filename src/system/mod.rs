//! Atoms, their cell, their positions and what joins them.

pub mod atoms;
pub mod cell;
pub mod lattice;
pub mod positions;
pub mod state;
pub mod topology;

pub use atoms::Atoms;
pub use cell::Cell;
pub use positions::Positions;
pub use state::State;
pub use topology::Topology;
