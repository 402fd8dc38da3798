#![doc = include_str!("guide.md")]

pub mod check;
mod difference;
pub mod lanes;
mod number;
mod stack_tape;
mod tape;

pub use difference::{Cautious, Difference, Richardson, Slopes};
pub use lanes::Lanes;
pub use number::Number;
pub use potentials::dual::{Differentiable, Dual};
pub use stack_tape::{StackTape, StackVar};
pub use tape::{Adjoints, Recorder, Tape, Var};
