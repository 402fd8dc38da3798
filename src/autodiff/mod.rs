#![doc = include_str!("guide.md")]

pub mod check;
pub mod checkpointing;
mod difference;
pub mod implicit;
pub mod jacobian;
pub mod lanes;
pub mod linear;
mod number;
pub mod ode;
pub mod operators;
mod stack_tape;
mod tape;
pub mod taylor;

pub use difference::{Cautious, Difference, Richardson, Slopes};
pub use lanes::Lanes;
pub use number::Number;
pub use potentials::dual::{Differentiable, Dual};
pub use stack_tape::{StackTape, StackVar};
pub(crate) use tape::written_out;
pub use tape::{Adjoints, InlineTape, Recorder, Tape, Var};
