//! Atoms, their cell, their positions and what joins them.

pub mod cell;
pub mod lattice;
pub mod positions;
