//! Automatic differentiation: the numbers an energy, written once, is run with.

mod stack_tape;
mod tape;

pub use potentials::dual::{Differentiable, Dual};
pub use stack_tape::{StackTape, StackVar};
pub use tape::{Adjoints, Recorder, Tape, Var};
