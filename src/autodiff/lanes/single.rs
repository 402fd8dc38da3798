//! One number in single precision, in plain Rust.

use super::Lanes;
use potentials::{Passive, Scalar, lane_operators, ratio_times};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// One `f32` lane, on any processor. Its functions are those of `f64`, rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct F32x1(f32);

macro_rules! operators {
    ($($T:ident $f:ident),*) => { $(
        impl $T for F32x1 {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: Self) -> Self { F32x1($T::$f(self.0, o.0)) }
        }
        impl $T<f64> for F32x1 {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: f64) -> Self { $T::$f(self, Self::constant(o)) }
        }
        impl $T<F32x1> for f64 {
            type Output = F32x1;
            #[inline(always)]
            fn $f(self, o: F32x1) -> F32x1 { $T::$f(F32x1::constant(self), o) }
        }
    )* };
}
operators!(Add add, Sub sub, Mul mul, Div div);
lane_operators!(@lanes F32x1);
ratio_times!([] F32x1);

impl Neg for F32x1 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        F32x1(-self.0)
    }
}

macro_rules! functions {
    ($($f:ident),*) => { $(
        #[inline(always)]
        fn $f(self) -> Self { Self::constant(Scalar::$f(f64::from(self.0))) }
    )* };
}

impl Scalar for F32x1 {
    type Mask = bool;
    #[inline(always)]
    fn constant(x: f64) -> Self {
        F32x1(x as f32)
    }
    #[inline(always)]
    fn vanishes(self) -> bool {
        self.0 == 0.0
    }
    functions!(rsqrt, exp, ln, sin, cos, tanh, acos, erfc);
    #[inline(always)]
    fn recip(self) -> Self {
        F32x1(1.0 / self.0)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F32x1(self.0.sqrt())
    }
    #[inline(always)]
    fn atan2(self, x: Self) -> Self {
        Self::constant(f64::from(self.0).atan2(f64::from(x.0)))
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        Self::constant(f64::from(self.0).powf(p))
    }
    #[inline(always)]
    fn lt(self, o: Self) -> bool {
        self.0 < o.0
    }
    #[inline(always)]
    fn le(self, o: Self) -> bool {
        self.0 <= o.0
    }
    #[inline(always)]
    fn select(mask: bool, a: Self, b: Self) -> Self {
        if mask { a } else { b }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        F32x1(self.0.abs())
    }
}

impl Lanes for F32x1 {
    const WIDTH: usize = 1;
    type Element = f32;
    type Parameter = Passive<Self>;
    type Double = f64;
    #[inline(always)]
    fn all(x: f32) -> Self {
        F32x1(x)
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [f64; 2]) {
        sums[0] += f64::from(self.0).odd();
    }
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        F32x1(b.0.to_bits().wrapping_sub(a.0.to_bits()) as i32 as f32)
    }
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        let product = (self.0 * x.0).round_ties_even() as i32;
        F32x1(f32::from_bits(sum.0.to_bits().wrapping_add(product as u32)))
    }
    #[inline(always)]
    fn since(self, _: Self) -> f64 {
        f64::from(self.0.to_bits() as i32)
    }
    // (bit by bit: coordinates are integers)
    #[inline(always)]
    unsafe fn rows(rows: *const [f32; 4], slots: *const u32) -> [Self; 4] {
        // SAFETY: so says the caller
        unsafe { *rows.add(*slots as usize / 4) }.map(F32x1)
    }
    #[inline(always)]
    fn gather(mut f: impl FnMut(usize) -> f64) -> Self {
        Self::constant(f(0))
    }
    #[inline(always)]
    fn lane(self, k: usize) -> f64 {
        debug_assert_eq!(k, 0);
        f64::from(self.0)
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn parameter(self) -> Passive<Self> {
        Passive(self)
    }
    #[inline(always)]
    fn of_parameter(p: Passive<Self>) -> Self {
        p.0
    }
    #[inline(always)]
    fn bits(mask: bool) -> u32 {
        u32::from(mask)
    }
    #[inline(always)]
    fn round(self) -> Self {
        let big = 1.5 * (1u32 << 23) as f32;
        F32x1((self.0 + big) - big)
    }
    #[inline(always)]
    fn odd(self) -> Self {
        F32x1(f32::from_bits(self.0.to_bits() | 1))
    }
}
