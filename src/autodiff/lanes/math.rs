//! Elementary functions of lanes in registers.

use super::Element;
use super::packed::{Packed, Register};
use potentials::Scalar;

/// What the functions below need to know of a format of numbers.
pub(crate) trait Format: Element {
    /// Adding this number and taking it away rounds to integers; in between, the lowest bits are the integer.
    const SHIFTER: f64;
    /// The bit of the sign.
    const SIGN: u64;
    /// How many bits the significand has, without the hidden one.
    const SIGNIFICAND: u32;
    /// What is added to exponents.
    const BIAS: f64;
    /// The number with these bits, of which single precision takes the lower half.
    fn from_bits(bits: u64) -> Self;
}
impl Format for f64 {
    const SHIFTER: f64 = 1.5 * (1u64 << 52) as f64;
    const SIGN: u64 = 1 << 63;
    const SIGNIFICAND: u32 = 52;
    const BIAS: f64 = 1023.0;
    #[inline(always)]
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}
impl Format for f32 {
    const SHIFTER: f64 = 1.5 * (1u64 << 23) as f64;
    const SIGN: u64 = 1 << 31;
    const SIGNIFICAND: u32 = 23;
    const BIAS: f64 = 127.0;
    #[inline(always)]
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

/// 2ⁿ for integers n within the range of exponents.
#[inline(always)]
fn power_of_two<R: Register>(n: Packed<R>) -> Packed<R> {
    // (the bits of n stand at the bottom, and what is above them is shifted out)
    let bits = n + (R::Element::SHIFTER + R::Element::BIAS);
    Packed(bits.0.up(R::Element::SIGNIFICAND))
}

/// x × 2ⁿ in two steps, the first of which is exact.
#[inline(always)]
pub(super) fn scaled<R: Register>(x: R, n: R) -> R {
    let (x, n) = (Packed(x), Packed(n));
    let half = (n * 0.5 + R::Element::SHIFTER) - R::Element::SHIFTER;
    (x * power_of_two(half) * power_of_two(n - half)).0
}

macro_rules! lane_by_lane {
    ($($f:ident),*) => { $(
        #[inline(always)]
        pub(super) fn $f<R: Register>(x: Packed<R>) -> Packed<R> { x.each(|x| Scalar::$f(x)) }
    )* };
}
lane_by_lane!(rsqrt, exp, ln, sin, cos, tanh, acos, erfc);
#[inline(always)]
pub(super) fn atan2<R: Register>(y: Packed<R>, x: Packed<R>) -> Packed<R> {
    use super::Lanes;
    Packed::gather(|k| y.lane(k).atan2(x.lane(k)))
}
#[inline(always)]
pub(super) fn powf<R: Register>(x: Packed<R>, p: f64) -> Packed<R> {
    x.each(|x| x.powf(p))
}
