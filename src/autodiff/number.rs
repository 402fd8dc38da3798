//! Numbers that functions of any kind can be written over.

use potentials::Coefficient;

// Bounds on other types follow from a trait only as bounds of an associated type of a supertrait; see `Coefficient`.
mod implied {
    pub trait Same<T> {
        type Is;
    }
    impl<T, U> Same<T> for U {
        type Is = T;
    }
    pub trait Implies<T>: Same<T, Is = T> {}
    impl<T, U> Implies<T> for U {}
}

/// A [`Scalar`](potentials::Scalar) that combines with itself and with plain numbers on either side (`2.0 * x` as
/// well as `x * 2.0`), and in which an energy's parameters may be `f64` or the number itself.
///
/// Every scalar of this crate is one; write `fn f<S: Number>(x: S) -> S` for a function of your own.
pub trait Number: Coefficient<Self> + implied::Implies<f64, Is: Coefficient<Self>> {}

impl<S: Coefficient<S>> Number for S where f64: Coefficient<S> {}
