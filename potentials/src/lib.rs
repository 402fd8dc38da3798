//! What an energy is.

pub mod param;
