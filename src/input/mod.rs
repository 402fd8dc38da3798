//! From TOML to a validated plan of a run.
//!
//! [`reader`] walks a TOML document key by key, with units, defaults and ranges; [`report`] shows what is wrong
//! with it, line and caret included. [`response`] are the sections of what second derivatives are asked for,
//! [`fit`] is that of what is learned from data.

mod build;
pub mod fit;
pub mod gradient;
mod neural;
pub mod plan;
mod raw;
pub mod reader;
pub mod report;
pub mod response;
mod terms;

pub use raw::keys;
