//! Which atoms are near which.
