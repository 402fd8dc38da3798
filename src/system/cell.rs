//! The periodic cell.
