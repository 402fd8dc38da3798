//! Two numbers side by side, in plain Rust.

use super::Lanes;
use potentials::{Mask, Passive, Scalar, lane_operators, ratio_times};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// Two `f64` lanes. Slow on purpose (nothing but arrays), it is the smallest number on which lanes can disagree:
/// whatever is right over `Two` and over `f64` is right over the vector registers of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Two(pub [f64; 2]);

/// What comparing [`Two`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoMask(pub [bool; 2]);

impl Mask for TwoMask {
    #[inline(always)]
    fn decided(self) -> Option<bool> {
        (self.0[0] == self.0[1]).then_some(self.0[0])
    }
}
impl BitAnd for TwoMask {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, o: Self) -> Self {
        TwoMask([self.0[0] & o.0[0], self.0[1] & o.0[1]])
    }
}
impl BitOr for TwoMask {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, o: Self) -> Self {
        TwoMask([self.0[0] | o.0[0], self.0[1] | o.0[1]])
    }
}
impl Not for TwoMask {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        TwoMask(self.0.map(|lane| !lane))
    }
}

macro_rules! operators {
    ($($T:ident $f:ident),*) => { $(
        impl $T for Two {
            type Output = Two;
            #[inline(always)]
            fn $f(self, o: Two) -> Two { Two([self.0[0].$f(o.0[0]), self.0[1].$f(o.0[1])]) }
        }
        impl $T<f64> for Two {
            type Output = Two;
            #[inline(always)]
            fn $f(self, o: f64) -> Two { Two(self.0.map(|lane| lane.$f(o))) }
        }
        impl $T<Two> for f64 {
            type Output = Two;
            #[inline(always)]
            fn $f(self, o: Two) -> Two { Two(o.0.map(|lane| self.$f(lane))) }
        }
    )* };
}
operators!(Add add, Sub sub, Mul mul, Div div);
lane_operators!(@lanes Two);
ratio_times!([] Two);

impl Neg for Two {
    type Output = Two;
    #[inline(always)]
    fn neg(self) -> Two {
        Two(self.0.map(|lane| -lane))
    }
}

macro_rules! functions {
    ($($f:ident),*) => { $(
        #[inline(always)]
        fn $f(self) -> Self { Two(self.0.map(Scalar::$f)) }
    )* };
}

impl Scalar for Two {
    type Mask = TwoMask;
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Two([x; 2])
    }
    #[inline(always)]
    fn vanishes(self) -> bool {
        self.0 == [0.0; 2]
    }
    functions!(recip, sqrt, rsqrt, exp, ln, sin, cos, tanh, acos, erfc);
    #[inline(always)]
    fn atan2(self, x: Self) -> Self {
        Two([self.0[0].atan2(x.0[0]), self.0[1].atan2(x.0[1])])
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        Two(self.0.map(|lane| lane.powf(p)))
    }
    #[inline(always)]
    fn lt(self, o: Self) -> TwoMask {
        TwoMask([self.0[0] < o.0[0], self.0[1] < o.0[1]])
    }
    #[inline(always)]
    fn le(self, o: Self) -> TwoMask {
        TwoMask([self.0[0] <= o.0[0], self.0[1] <= o.0[1]])
    }
    #[inline(always)]
    fn select(mask: TwoMask, a: Self, b: Self) -> Self {
        Two(std::array::from_fn(|k| if mask.0[k] { a.0[k] } else { b.0[k] }))
    }
}

impl Lanes for Two {
    const WIDTH: usize = 2;
    type Element = f64;
    type Parameter = Passive<Two>;
    type Double = Two;
    #[inline(always)]
    fn all(x: f64) -> Self {
        Two([x; 2])
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [Two; 2]) {
        sums[0] = sums[0] + self;
    }
    #[inline(always)]
    fn gather(f: impl FnMut(usize) -> f64) -> Self {
        Two(std::array::from_fn(f))
    }
    #[inline(always)]
    fn lane(self, k: usize) -> f64 {
        self.0[k]
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        self.0[0] + self.0[1]
    }
    #[inline(always)]
    fn parameter(self) -> Passive<Two> {
        Passive(self)
    }
    #[inline(always)]
    fn of_parameter(p: Passive<Two>) -> Self {
        p.0
    }
    #[inline(always)]
    fn bits(mask: TwoMask) -> u32 {
        u32::from(mask.0[0]) | u32::from(mask.0[1]) << 1
    }
    #[inline(always)]
    fn round(self) -> Two {
        Two(self.0.map(Lanes::round))
    }
    #[inline(always)]
    fn odd(self) -> Two {
        Two(self.0.map(Lanes::odd))
    }
}
