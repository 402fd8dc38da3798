//! From TOML to a validated plan of a run.
//!
//! [`reader`] walks a TOML document key by key, with units, defaults and ranges; [`report`] shows what is wrong
//! with it, line and caret included.

mod build;
pub mod plan;
mod raw;
pub mod reader;
pub mod report;
mod terms;

pub use raw::keys;
