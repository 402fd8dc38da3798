//! Minimisers.
