//! Units, dimensions and physical constants.
