//! Which instructions a kernel runs on.

use super::Lanes;
#[cfg(debug_assertions)]
use super::Two;

/// A piece of work that is written over lanes of `T`.
///
/// Mark [`run`](Kernel::run) and all that it calls in its loops `#[inline(always)]`: a function that is compiled by
/// itself is compiled for any processor.
pub trait Kernel<T> {
    /// What comes out of it.
    type Output;
    /// Does the work.
    fn run<V: Lanes<Element = T>>(self) -> Self::Output;
}

/// A set of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// One number at a time, on any processor.
    Portable,
    /// Two numbers side by side in plain Rust, for tests (only where debug assertions are on).
    #[doc(hidden)]
    #[cfg(debug_assertions)]
    Two,
}

impl Isa {
    /// The best that this processor has.
    pub fn best() -> Isa {
        Isa::Portable
    }
    /// All that this processor has.
    pub fn available() -> Vec<Isa> {
        vec![Isa::Portable]
    }
    /// Its name in the input.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            #[cfg(debug_assertions)]
            Isa::Two => "two",
        }
    }
    /// Runs a kernel in double precision.
    #[inline]
    pub fn double<K: Kernel<f64>>(self, kernel: K) -> K::Output {
        match self {
            Isa::Portable => kernel.run::<f64>(),
            #[cfg(debug_assertions)]
            Isa::Two => kernel.run::<Two>(),
        }
    }
}
