//! What a run tells while it goes: files that grow, and a word now and then.

pub mod energies;
pub mod progress;
