//! The distance of two atoms: r² is at hand, the root is taken only when asked for.

use crate::scalar::{Fused, Scalar};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A distance, held as r².
#[derive(Clone, Copy, Debug)]
pub struct Distance<S> {
    r2: S,
}

impl<S: Scalar> Distance<S> {
    /// From r².
    #[inline(always)]
    pub fn from_squared(r2: S) -> Self {
        Self { r2 }
    }
    /// From r itself.
    #[inline(always)]
    pub fn new(r: S) -> Self {
        Self { r2: r.squared() }
    }
    /// r²
    #[inline(always)]
    pub fn squared(self) -> S {
        self.r2
    }
    /// r
    #[inline(always)]
    pub fn value(self) -> S {
        self.r2.sqrt()
    }
    /// 1/r
    #[inline(always)]
    pub fn recip(self) -> S {
        self.r2.rsqrt()
    }
    /// ln r, without a root. A power whose exponent is a parameter is (a/r)ⁿ = exp(n (ln a − ln r)).
    #[inline(always)]
    pub fn ln(self) -> S {
        self.r2.ln() * 0.5
    }
    /// rⁿ; even powers take no root.
    #[inline(always)]
    pub fn powi(self, n: i32) -> S {
        if n % 2 == 0 {
            self.r2.powi(n / 2)
        } else if n > 0 {
            self.r2.sqrt().powi(n)
        } else {
            self.r2.rsqrt().powi(-n)
        }
    }
    /// The same distance with its root taken once, for energies that use several odd powers.
    #[inline(always)]
    pub fn rooted(self) -> Rooted<S> {
        Rooted { r2: self.r2, inverse: self.r2.rsqrt() }
    }
}

/// A distance whose root is taken: all powers come from 1/r and r².
#[derive(Clone, Copy, Debug)]
pub struct Rooted<S> {
    r2: S,
    inverse: S,
}

impl<S: Scalar> Rooted<S> {
    /// r
    #[inline(always)]
    pub fn value(self) -> S {
        self.r2 * self.inverse
    }
    /// r²
    #[inline(always)]
    pub fn squared(self) -> S {
        self.r2
    }
    /// 1/r
    #[inline(always)]
    pub fn recip(self) -> S {
        self.powi(-1)
    }
    /// rⁿ
    #[inline(always)]
    pub fn powi(self, n: i32) -> S {
        if n < 0 {
            S::inverse_power(self.r2, self.inverse, -n)
        } else if n % 2 == 0 {
            self.r2.powi(n / 2)
        } else {
            self.value().powi(n)
        }
    }
}

/// `p / r`, not yet evaluated: its even powers never take a root.
#[derive(Clone, Copy, Debug)]
pub struct Ratio<S, P> {
    numerator: P,
    r2: S,
}

impl<S: Scalar, P> Ratio<S, P> {
    /// p / r
    #[inline(always)]
    pub fn new(numerator: P, r: Distance<S>) -> Self {
        Self { numerator, r2: r.r2 }
    }
}

impl<S: Scalar, P: Copy + Mul<S, Output = S>> Ratio<S, P> {
    /// p / r, evaluated.
    #[inline(always)]
    pub fn value(self) -> S {
        self.numerator * self.r2.rsqrt()
    }
}

impl<S: Scalar> Ratio<S, f64> {
    /// p / r, evaluated.
    #[doc(hidden)]
    #[inline(always)]
    pub fn scaled(self) -> S {
        self.r2.rsqrt() * self.numerator
    }
}

impl<S: Scalar, P: Scalar + Fused<S> + Mul<S, Output = S>> Ratio<S, P> {
    /// (p / r)ⁿ
    #[inline(always)]
    pub fn powi(self, n: i32) -> S {
        if n > 0 && n % 2 == 0 {
            self.numerator.over_distance(self.r2, n)
        } else {
            self.numerator.powi(n) * Distance { r2: self.r2 }.powi(-n)
        }
    }
}

// Anything else done to a distance or a ratio evaluates it first.
macro_rules! evaluate_first {
    ($($T:ident $f:ident),*) => { $(
        impl<S: Scalar + $T<R, Output = S>, R> $T<R> for Distance<S> {
            type Output = S;
            #[inline(always)]
            fn $f(self, o: R) -> S { <S as $T<R>>::$f(self.value(), o) }
        }
        impl<S: Scalar + $T<R, Output = S>, P: Copy + Mul<S, Output = S>, R> $T<R> for Ratio<S, P> {
            type Output = S;
            #[inline(always)]
            fn $f(self, o: R) -> S { <S as $T<R>>::$f(self.value(), o) }
        }
    )* };
}
evaluate_first!(Add add, Sub sub, Mul mul, Div div);

impl<S: Scalar> Neg for Distance<S> {
    type Output = S;
    #[inline(always)]
    fn neg(self) -> S {
        -self.value()
    }
}
