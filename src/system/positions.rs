//! The state's positions.
