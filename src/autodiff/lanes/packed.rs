//! Lanes in a vector register.
//!
//! What a register does, [`Register`], is written for each kind of register; what a number does, [`Packed`], is
//! written once on top of it.

use super::math::{self, Format};
use super::{Element, Lanes};
use potentials::{Mask, Passive, Scalar, lane_operators, ratio_times};
use std::fmt::Debug;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// What a register's instructions do that differ in nothing but their names.
///
/// The instructions behind these functions must exist on the processor: whoever uses a register type runs inside
/// [`Isa`](super::Isa)'s dispatch.
pub(crate) trait Instructions: Copy + Debug + Send + Sync + 'static {
    /// What a lane holds.
    type Element: Format;
    /// How many lanes.
    const WIDTH: usize;

    /// x in every lane.
    fn splat(x: Self::Element) -> Self;
    /// self + o
    fn add(self, o: Self) -> Self;
    /// self − o
    fn sub(self, o: Self) -> Self;
    /// self × o
    fn mul(self, o: Self) -> Self;
    /// self / o
    fn div(self, o: Self) -> Self;
    /// √self
    fn sqrt(self) -> Self;
    /// self where it is larger than o, else o (so also where either is NaN).
    fn larger(self, o: Self) -> Self;
    /// self where it is smaller than o, else o (so also where either is NaN).
    fn smaller(self, o: Self) -> Self;

    /// Bits that both have.
    fn and(self, o: Self) -> Self;
    /// Bits that either has.
    fn or(self, o: Self) -> Self;
    /// Bits that one of them has.
    fn xor(self, o: Self) -> Self;
    /// The sum of the bits as integers, which wrap.
    fn plus(self, o: Self) -> Self;
    /// The difference of the bits as integers, which wrap.
    fn minus(self, o: Self) -> Self;
    /// The bits moved up; zeros follow.
    fn up(self, by: u32) -> Self;
    /// The bits moved down; zeros follow.
    fn down(self, by: u32) -> Self;

    /// `WIDTH` numbers from memory, of any alignment.
    ///
    /// # Safety
    /// They must be there.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Writes `WIDTH` numbers to memory, at any alignment.
    ///
    /// # Safety
    /// There must be room.
    unsafe fn store(self, to: *mut Self::Element);
}

/// The rest of what a register does. What is provided suits SSE2.
pub(crate) trait Register: Instructions {
    /// What comparisons give.
    type Mask: Mask + Send + Sync;
    /// Whether `fma` rounds once.
    const FUSED: bool;
    /// Whether 1/√x from the bits of x is faster than a root and a division (the benchmark `lanes` tells: 0.22 against
    /// 0.34 ns a number with AVX-512, but 1.39 against 1.33 with SSE2).
    const GUESSED_ROOT: bool;

    /// self × a + b
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        self.mul(a).add(b)
    }
    /// self < o
    fn lt(self, o: Self) -> Self::Mask;
    /// self ≤ o
    fn le(self, o: Self) -> Self::Mask;
    /// a where the mask holds, else b.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// The mask as bits, lane 0 the lowest.
    fn bits(mask: Self::Mask) -> u32;
    /// The lanes below `count`.
    fn first(count: usize) -> Self::Mask;
    /// The sum of all lanes, halves added to halves.
    fn sum(self) -> f64;
    /// A register of `f64`: one, or two of them, hold all lanes.
    type Double: Register<Element = f64>;
    /// See [`Lanes::add_to`].
    fn add_to(self, sums: &mut [Packed<Self::Double>; 2]);
    /// See [`Lanes::between`].
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        b.sub(a)
    }
    /// See [`Lanes::onto`].
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        if Self::FUSED {
            self.fma(x, sum)
        } else {
            sum.add(self.mul(x).or(Self::splat(Self::Element::from_bits(1))))
        }
    }
    /// See [`Lanes::since`].
    #[inline(always)]
    fn since(self, origin: Self) -> f64 {
        self.sub(origin).sum()
    }
    /// See [`Lanes::round`].
    #[inline(always)]
    fn round(self) -> Self {
        let big = Self::splat(Self::Element::nearest(Self::Element::SHIFTER));
        self.add(big).sub(big)
    }
    /// self × 2ⁿ for integers n of magnitude below 3/2 of the largest exponent, rounded once.
    #[inline(always)]
    fn scaled(self, n: Self) -> Self {
        math::scaled(self, n)
    }
    /// See [`Lanes::rows`].
    ///
    /// # Safety
    /// As there.
    unsafe fn rows(rows: *const [Self::Element; 4], slots: *const u32) -> [Self; 4];
    /// See [`Lanes::narrow`].
    ///
    /// # Safety
    /// As there.
    unsafe fn narrow(from: *const f64, origin: f64) -> Self;
    /// See [`Lanes::compress`].
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn compress(mask: Self::Mask, names: *const u32, to: *mut u32) -> usize {
        // SAFETY: so says the caller
        unsafe { super::compress(Self::bits(mask), Self::WIDTH, names, to) }
    }
}

/// The lanes of a register as a number.
///
/// Not for use outside of [`Isa`](super::Isa)'s dispatch: there the instructions exist, and become part of the kernel
/// instead of calls.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Packed<R>(pub(super) R);

/// A mask with all bits of a lane set where it holds.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Wide<R>(pub(super) R);

impl<R: Register<Mask = Self>> Mask for Wide<R> {
    #[inline(always)]
    fn decided(self) -> Option<bool> {
        match R::bits(self) {
            0 => Some(false),
            bits if bits == u32::MAX >> (32 - R::WIDTH) => Some(true),
            _ => None,
        }
    }
}
impl<R: Instructions> BitAnd for Wide<R> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, o: Self) -> Self {
        Wide(self.0.and(o.0))
    }
}
impl<R: Instructions> BitOr for Wide<R> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, o: Self) -> Self {
        Wide(self.0.or(o.0))
    }
}
impl<R: Instructions> Not for Wide<R> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Wide(self.0.xor(R::splat(R::Element::from_bits(u64::MAX))))
    }
}

/// A mask with one bit a lane.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Narrow<U>(pub(super) U);

impl<U> Mask for Narrow<U>
where
    U: Copy + Debug + Default + PartialEq + BitAnd<Output = U> + BitOr<Output = U> + Not<Output = U>,
{
    #[inline(always)]
    fn decided(self) -> Option<bool> {
        let none = U::default();
        if self.0 == none {
            return Some(false);
        }
        (self.0 == !none).then_some(true)
    }
}
impl<U: BitAnd<Output = U>> BitAnd for Narrow<U> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, o: Self) -> Self {
        Narrow(self.0 & o.0)
    }
}
impl<U: BitOr<Output = U>> BitOr for Narrow<U> {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, o: Self) -> Self {
        Narrow(self.0 | o.0)
    }
}
impl<U: Not<Output = U>> Not for Narrow<U> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Narrow(!self.0)
    }
}

macro_rules! operators {
    ($($T:ident $f:ident),*) => { $(
        impl<R: Register> $T for Packed<R> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: Self) -> Self { Packed(Instructions::$f(self.0, o.0)) }
        }
        impl<R: Register> $T<f64> for Packed<R> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: f64) -> Self { $T::$f(self, Self::constant(o)) }
        }
        impl<R: Register> $T<Packed<R>> for f64 {
            type Output = Packed<R>;
            #[inline(always)]
            fn $f(self, o: Packed<R>) -> Packed<R> { $T::$f(Packed::constant(self), o) }
        }
    )* };
}
operators!(Add add, Sub sub, Mul mul, Div div);
lane_operators!(@lanes [R: Register] Packed<R>);
ratio_times!([R: Register,] Packed<R>);

impl<R: Register> Neg for Packed<R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Packed(self.0.xor(Self::pattern(R::Element::SIGN).0))
    }
}

impl<R: Register> Packed<R> {
    /// The number with these bits in every lane.
    #[inline(always)]
    pub(super) fn pattern(bits: u64) -> Self {
        Packed(R::splat(R::Element::from_bits(bits)))
    }
    /// The lanes in memory.
    #[inline(always)]
    pub(super) fn spill(self) -> [R::Element; 32] {
        let mut lanes = [R::Element::default(); 32];
        // SAFETY: no register is wider than 32 lanes
        unsafe { self.0.store(lanes.as_mut_ptr()) };
        lanes
    }
    /// The lanes from memory.
    #[inline(always)]
    pub(super) fn restored(lanes: &[R::Element; 32]) -> Self {
        // SAFETY: as above
        Packed(unsafe { R::load(lanes.as_ptr()) })
    }
}

macro_rules! functions {
    ($($f:ident),*) => { $( #[inline(always)] fn $f(self) -> Self { math::$f(self) } )* };
}

impl<R: Register> Scalar for Packed<R> {
    type Mask = R::Mask;
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Packed(R::splat(R::Element::nearest(x)))
    }
    #[inline(always)]
    fn vanishes(self) -> bool {
        let zero = Self::constant(0.0);
        (self.le(zero) & zero.le(self)).decided() == Some(true)
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Self::constant(1.0) / self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Packed(self.0.sqrt())
    }
    functions!(rsqrt, exp, ln, sin, cos, tanh, acos, erfc);
    #[inline(always)]
    fn atan2(self, x: Self) -> Self {
        math::atan2(self, x)
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        math::powf(self, p)
    }
    #[inline(always)]
    fn lt(self, o: Self) -> R::Mask {
        self.0.lt(o.0)
    }
    #[inline(always)]
    fn le(self, o: Self) -> R::Mask {
        self.0.le(o.0)
    }
    #[inline(always)]
    fn select(mask: R::Mask, a: Self, b: Self) -> Self {
        Packed(R::select(mask, a.0, b.0))
    }
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        Packed(self.0.fma(a.0, b.0))
    }
    #[inline(always)]
    fn poly<const N: usize>(self, c: [f64; N]) -> Self {
        let Some((&last, rest)) = c.split_last() else { return Self::constant(0.0) };
        let mut q = Self::constant(last);
        for &c in rest.iter().rev() {
            q = q.fma(self, Self::constant(c));
        }
        q
    }
    #[inline(always)]
    fn poly_derivative<const N: usize>(self, c: [f64; N]) -> Self {
        let mut q = Self::constant(0.0);
        for k in (1..N).rev() {
            let c = Self::constant(c[k] * k as f64);
            q = if k + 1 == N { c } else { q.fma(self, c) };
        }
        q
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Packed(self.0.and(Self::pattern(!R::Element::SIGN).0))
    }
    // (the register's own order of arguments makes NaN and equal numbers follow the first, as promised)
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Packed(o.0.larger(self.0))
    }
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Packed(o.0.smaller(self.0))
    }
    #[inline(always)]
    fn relu(self) -> Self {
        Packed(self.0.larger(Self::constant(0.0).0))
    }
}

impl<R: Register> Lanes for Packed<R> {
    const WIDTH: usize = R::WIDTH;
    type Element = R::Element;
    type Parameter = Passive<Self>;
    type Double = Packed<R::Double>;
    #[inline(always)]
    fn gather(mut f: impl FnMut(usize) -> f64) -> Self {
        let mut lanes = [R::Element::default(); 32];
        for (k, lane) in lanes.iter_mut().enumerate().take(R::WIDTH) {
            *lane = R::Element::nearest(f(k));
        }
        Self::restored(&lanes)
    }
    #[inline(always)]
    fn lane(self, k: usize) -> f64 {
        debug_assert!(k < R::WIDTH);
        self.spill()[k].wide()
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        self.0.sum()
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
    fn first(count: usize) -> R::Mask {
        R::first(count)
    }
    #[inline(always)]
    fn bits(mask: R::Mask) -> u32 {
        R::bits(mask)
    }
    #[inline(always)]
    fn round(self) -> Self {
        Packed(self.0.round())
    }
    #[inline(always)]
    fn odd(self) -> Self {
        Packed(self.0.or(Self::pattern(1).0))
    }
    #[inline(always)]
    fn all(x: R::Element) -> Self {
        Packed(R::splat(x))
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [Self::Double; 2]) {
        self.0.add_to(sums);
    }
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        Packed(R::between(a.0, b.0))
    }
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        Packed(self.0.onto(x.0, sum.0))
    }
    #[inline(always)]
    fn since(self, origin: Self) -> f64 {
        self.0.since(origin.0)
    }
    // SAFETY, of all below: the caller's promise is the register's
    #[inline(always)]
    unsafe fn load(from: *const R::Element) -> Self {
        Packed(unsafe { R::load(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut R::Element) {
        unsafe { self.0.store(to) };
    }
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        Packed(unsafe { R::narrow(from, origin) })
    }
    #[inline(always)]
    unsafe fn rows(rows: *const [R::Element; 4], slots: *const u32) -> [Self; 4] {
        let [x, y, z, w] = unsafe { R::rows(rows, slots) };
        [Packed(x), Packed(y), Packed(z), Packed(w)]
    }
    // `lookup` stays as provided: what the compiler makes of it takes 0.22 ns a number with eight lanes, the
    // instruction that gathers 0.27 (Zen 5, benchmark `lanes`).
    #[inline(always)]
    unsafe fn compress(mask: R::Mask, names: *const u32, to: *mut u32) -> usize {
        unsafe { R::compress(mask, names, to) }
    }
}
