//! Several numbers at once.
//!
//! A force kernel is written over [`Lanes`]: `f64` is one lane, the vector registers of a processor are more. What
//! an energy is called with follows from the lane type `V`:
//!
//! | wanted | number | parameters |
//! |---|---|---|
//! | energy | `V` | [`V::Parameter`](Lanes::Parameter) |
//! | energy and slope | `Dual<V>` | `V::Parameter` |
//! | all partial derivatives | [`StackVar<V, N>`](super::StackVar) | `V::Parameter` |
//! | Hessian products | `Dual<Dual<V>>`, `StackVar<Dual<V>, N>` | `V::Parameter` |
//! | derivatives in parameters | any of these | the number itself |
//!
//! ```
//! use md::autodiff::{Dual, Lanes};
//! use potentials::{Distance, PairEnergy};
//!
//! /// Energy and dE/dr² of a pair in every lane.
//! fn pair<V: Lanes, E: PairEnergy>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V) {
//!     let e = E::energy::<Dual<V>, V::Parameter>(Distance::from_squared(Dual::variable(r2)), p);
//!     (e.value, e.tangent)
//! }
//! ```
//!
//! Which registers there are is known when the program runs. A function over any lanes is a [`Kernel`], and an [`Isa`]
//! runs it with the registers it stands for:
//!
//! ```
//! use md::autodiff::lanes::{Isa, Kernel, Lanes};
//!
//! /// Σ eˣ
//! struct SumOfExponentials<'a>(&'a [f64]);
//! impl<T> Kernel<T> for SumOfExponentials<'_> {
//!     type Output = f64;
//!     #[inline(always)]
//!     fn run<V: Lanes<Element = T>>(self) -> f64 {
//!         let mut sum = V::constant(0.0);
//!         for x in self.0.chunks(V::WIDTH) {
//!             let values = V::gather(|k| *x.get(k).unwrap_or(&f64::NEG_INFINITY));
//!             sum = sum + values.exp();
//!         }
//!         sum.sum()
//!     }
//! }
//!
//! let sum = Isa::best().double(SumOfExponentials(&[0.0, 1.0, 2.0]));
//! assert!((sum - (1.0 + 1f64.exp() + 2f64.exp())).abs() < 1e-14);
//! ```
//!
//! The functions of lanes in registers ([`exp`](potentials::Scalar::exp) and the rest) are our own. They are right to
//! two units in the last place (`tanh` and `erfc` to three and a half), and the same to the bit on all processors that
//! have a fused multiply-add; only sines and cosines of angles beyond 2²⁰ (2¹³ in single precision) are the standard
//! library's, as are all functions of [`Isa::Portable`].

// Lanes read and write memory without checks: the one thing that keeps up with kernels written by hand.
#![allow(unsafe_code)]

#[cfg(test)]
mod accuracy;
mod isa;
#[cfg(target_arch = "x86_64")]
mod math;
#[cfg(target_arch = "x86_64")]
mod packed;
mod single;
mod two;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use isa::{Isa, Kernel};
#[cfg(test)]
pub(crate) use single::F32x1;
#[doc(hidden)]
pub use two::{Two, TwoMask};

use super::{Dual, InlineTape, Number, StackVar, Var};
use potentials::Coefficient;

/// What a lane holds: `f64` or `f32`.
pub trait Element: Copy + Default + PartialOrd + std::fmt::Debug + Send + Sync + 'static {
    /// Whether it is `f32`.
    const SINGLE: bool;
    /// The nearest number of this kind.
    fn nearest(x: f64) -> Self;
    /// The number, exactly.
    fn wide(self) -> f64;
    /// Of what is at hand in both precisions the one.
    fn either<'a>(double: &'a [f64], single: &'a [f32]) -> &'a [Self];
}

impl Element for f64 {
    const SINGLE: bool = false;
    #[inline(always)]
    fn nearest(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    #[inline(always)]
    fn either<'a>(double: &'a [f64], _: &'a [f32]) -> &'a [f64] {
        double
    }
}

impl Element for f32 {
    const SINGLE: bool = true;
    #[inline(always)]
    fn nearest(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn either<'a>(_: &'a [f64], single: &'a [f32]) -> &'a [f32] {
        single
    }
}

/// One number or several of them side by side.
///
/// What the provided methods do lane by lane, the registers of a processor do at once.
pub trait Lanes: Number + Send + Sync + 'static {
    /// How many numbers; at most 32.
    const WIDTH: usize;
    /// What they are in memory.
    type Element: Element;
    /// A parameter of an energy of which no derivative is wanted: one value a lane.
    type Parameter: Parameter<Self>;
    /// Lanes in double precision, of which one or two hold all of these.
    type Double: Lanes<Element = f64>;

    /// Lane `k` is `f(k)`; called in order.
    fn gather(f: impl FnMut(usize) -> f64) -> Self;
    /// Lane number `k`.
    fn lane(self, k: usize) -> f64;
    /// The sum of all lanes, always in the same order.
    fn sum(self) -> f64;
    /// The numbers as a parameter.
    fn parameter(self) -> Self::Parameter;
    /// The numbers of a parameter.
    fn of_parameter(p: Self::Parameter) -> Self;
    /// The same in every lane, bit by bit.
    fn all(x: Self::Element) -> Self;
    /// Adds the numbers to sums in double precision. Those in single precision are made [odd](Lanes::odd) there, so that
    /// one which is rounded to the grid of a sum is never a tie.
    fn add_to(self, sums: &mut [Self::Double; 2]);

    /// The lanes below `count`.
    #[inline(always)]
    fn first(count: usize) -> Self::Mask {
        Self::gather(|k| k as f64).lt(Self::constant(count as f64))
    }
    /// The mask as bits, lane 0 the lowest.
    fn bits(mask: Self::Mask) -> u32;
    /// The integer nearest to x, of two the even one; for |x| < 2⁵¹ (2²² in single precision).
    fn round(self) -> Self;
    /// x with the lowest bit of its significand set.
    fn odd(self) -> Self;

    /// `WIDTH` numbers from memory.
    ///
    /// # Safety
    /// As many must be there.
    #[inline(always)]
    unsafe fn load(from: *const Self::Element) -> Self {
        // SAFETY: so says the caller
        Self::gather(|k| unsafe { *from.add(k) }.wide())
    }
    /// Writes `WIDTH` numbers to memory.
    ///
    /// # Safety
    /// There must be room for them.
    #[inline(always)]
    unsafe fn store(self, to: *mut Self::Element) {
        for k in 0..Self::WIDTH {
            // SAFETY: so says the caller
            unsafe { *to.add(k) = Self::Element::nearest(self.lane(k)) };
        }
    }
    /// `WIDTH` numbers in double precision from memory, less one, rounded.
    ///
    /// # Safety
    /// As many must be there.
    #[inline(always)]
    unsafe fn narrow(from: *const f64, origin: f64) -> Self {
        // SAFETY: so says the caller
        Self::gather(|k| unsafe { *from.add(k) } - origin)
    }
    /// Rows of four, turned: component c of the row that starts at number `slots[k]`, a multiple of four, in lane k of the
    /// c-th result.
    ///
    /// # Safety
    /// `WIDTH` slots must be there, and a row for each.
    #[inline(always)]
    unsafe fn rows(rows: *const [Self::Element; 4], slots: *const u32) -> [Self; 4] {
        // SAFETY: so says the caller
        let start = |k: usize| unsafe { rows.cast::<Self::Element>().add(*slots.add(k) as usize) };
        std::array::from_fn(|c| Self::gather(|k| unsafe { *start(k).add(c) }.wide()))
    }
    /// Lane k is `table[index[k]]`.
    ///
    /// # Safety
    /// `WIDTH` indices must be there, and a number for each.
    #[inline(always)]
    unsafe fn lookup(table: *const Self::Element, index: *const u16) -> Self {
        // SAFETY: so says the caller
        Self::gather(|k| unsafe { *table.add(usize::from(*index.add(k))) }.wide())
    }
    /// Lane k is `table[slots[k] / 4]`: the number that goes with the row that starts there.
    ///
    /// # Safety
    /// `WIDTH` slots must be there, and a number for each.
    #[inline(always)]
    unsafe fn pick(table: *const Self::Element, slots: *const u32) -> Self {
        // SAFETY: so says the caller
        Self::gather(|k| unsafe { *table.add(*slots.add(k) as usize / 4) }.wide())
    }
    /// b − a of two coordinates. In double precision they are numbers. In single precision they are integers in the
    /// lanes' bits, whose difference (it wraps) is rounded once.
    #[inline(always)]
    fn between(a: Self, b: Self) -> Self {
        b - a
    }
    /// `sum` + `self` · x on a grid, so that the order of many does not matter.
    ///
    /// In double precision the grid is the sum's own, which stands so high that the product is rounded to it, in one
    /// rounding that is never a tie. With a fused operation that is so if `self` is [`odd`](Lanes::odd); without one the
    /// product is made odd. In single precision the grid are the integers and the sum is one in the lanes' bits, which
    /// wraps; products must be below 2³¹.
    #[inline(always)]
    fn onto(self, x: Self, sum: Self) -> Self {
        sum + (self * x).odd()
    }
    /// What has been added [`onto`](Lanes::onto) sums that started as `origin` (0 in single precision), of all lanes.
    #[inline(always)]
    fn since(self, origin: Self) -> f64 {
        (self - origin).sum()
    }
    /// Writes `names[k]` for each lane k of the mask, in order, and returns how many these are. What stands behind them is
    /// undefined.
    ///
    /// # Safety
    /// There must be `WIDTH` names, and room for as many, however many are written.
    #[inline(always)]
    unsafe fn compress(mask: Self::Mask, names: *const u32, to: *mut u32) -> usize {
        // SAFETY: so says the caller
        unsafe { compress(Self::bits(mask), Self::WIDTH, names, to) }
    }
}

/// See [`Lanes::compress`]: one by one.
#[inline(always)]
unsafe fn compress(bits: u32, width: usize, names: *const u32, to: *mut u32) -> usize {
    let mut count = 0;
    for k in 0..width {
        // SAFETY: so says the caller
        unsafe { *to.add(count) = *names.add(k) };
        count += (bits >> k & 1) as usize;
    }
    count
}

impl Lanes for f64 {
    const WIDTH: usize = 1;
    type Element = f64;
    type Parameter = f64;
    type Double = f64;
    #[inline(always)]
    fn gather(mut f: impl FnMut(usize) -> f64) -> f64 {
        f(0)
    }
    #[inline(always)]
    fn all(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn add_to(self, sums: &mut [f64; 2]) {
        sums[0] += self;
    }
    #[inline(always)]
    fn lane(self, k: usize) -> f64 {
        debug_assert_eq!(k, 0);
        self
    }
    #[inline(always)]
    fn sum(self) -> f64 {
        self
    }
    #[inline(always)]
    fn parameter(self) -> f64 {
        self
    }
    #[inline(always)]
    fn of_parameter(p: f64) -> f64 {
        p
    }
    #[inline(always)]
    fn bits(mask: bool) -> u32 {
        u32::from(mask)
    }
    #[inline(always)]
    fn round(self) -> f64 {
        // (a library call where the processor has no instruction for it, but a sum is one everywhere)
        let big = 1.5 * (1u64 << 52) as f64;
        (self + big) - big
    }
    #[inline(always)]
    fn odd(self) -> f64 {
        f64::from_bits(self.to_bits() | 1)
    }
}

/// A parameter that can stand beside variables of a stack tape of `N` nodes, and beside their tangents.
///
/// Every parameter type of [`Lanes`] is `OnStack<V, N>` for every N. Rust has no way to say "for every N" of a type
/// that is not known yet, so that [`Parameter`] promises it for the powers of two from 16 to 1024, and a kernel with
/// another capacity says `V: Lanes<Parameter: OnStack<V, 100>>`.
pub trait OnStack<V: Lanes, const N: usize>:
    for<'t> Coefficient<StackVar<'t, V, N>> + for<'t> Coefficient<StackVar<'t, Dual<V>, N>>
{
}
impl<V: Lanes, P, const N: usize> OnStack<V, N> for P where
    P: for<'t> Coefficient<StackVar<'t, V, N>> + for<'t> Coefficient<StackVar<'t, Dual<V>, N>>
{
}

/// What a parameter may be combined with: every number made of the lanes `V`.
pub trait Parameter<V: Lanes>:
    Send
    + Sync
    + 'static
    + Coefficient<V>
    + Coefficient<Dual<V>>
    + Coefficient<Dual<Dual<V>>>
    + for<'t> Coefficient<Var<'t, V>>
    + for<'t> Coefficient<Var<'t, V, InlineTape<V>>>
    + for<'t> Coefficient<Var<'t, Dual<V>>>
    + for<'t> Coefficient<Var<'t, Dual<V>, InlineTape<Dual<V>>>>
    + OnStack<V, 16>
    + OnStack<V, 32>
    + OnStack<V, 64>
    + OnStack<V, 128>
    + OnStack<V, 256>
    + OnStack<V, 512>
    + OnStack<V, 1024>
{
}
impl<V: Lanes, P> Parameter<V> for P where
    P: Send
        + Sync
        + 'static
        + Coefficient<V>
        + Coefficient<Dual<V>>
        + Coefficient<Dual<Dual<V>>>
        + for<'t> Coefficient<Var<'t, V>>
        + for<'t> Coefficient<Var<'t, V, InlineTape<V>>>
        + for<'t> Coefficient<Var<'t, Dual<V>>>
        + for<'t> Coefficient<Var<'t, Dual<V>, InlineTape<Dual<V>>>>
        + OnStack<V, 16>
        + OnStack<V, 32>
        + OnStack<V, 64>
        + OnStack<V, 128>
        + OnStack<V, 256>
        + OnStack<V, 512>
        + OnStack<V, 1024>
{
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::StackTape;
    use potentials::pair::LennardJones;
    use potentials::{Distance, Energy, PairEnergy, Record, Scalar, Vec3};

    type Pair<E, V> = <E as Energy>::Prepared<<V as Lanes>::Parameter>;

    fn slope<V: Lanes, E: PairEnergy>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V) {
        let e = E::energy::<Dual<V>, V::Parameter>(Distance::from_squared(Dual::variable(r2)), p);
        (e.value, e.tangent)
    }

    fn curvature<V: Lanes, E: PairEnergy>(r2: V, p: &E::Prepared<V::Parameter>) -> V {
        let x = Dual::new(Dual::variable(r2), Dual::constant(1.0));
        E::energy::<Dual<Dual<V>>, V::Parameter>(Distance::from_squared(x), p).tangent.tangent
    }

    fn partials<V: Lanes, E: PairEnergy>(d: [V; 3], p: &E::Prepared<V::Parameter>) -> [V; 3] {
        let tape = StackTape::<V, 32>::new();
        let [x, y, z] = tape.restart(d);
        let r2 = Vec3::new(x, y, z).norm_squared();
        let e = E::energy::<StackVar<V, 32>, V::Parameter>(Distance::from_squared(r2), p);
        tape.gradient(e)
    }

    /// Any capacity, with a bound that says so.
    fn of_capacity<V, E: PairEnergy, const N: usize>(r2: V, p: &E::Prepared<V::Parameter>) -> V
    where
        V: Lanes<Parameter: OnStack<V, N>>,
    {
        let tape = StackTape::<V, N>::new();
        let [x] = tape.restart([r2]);
        let [g] = tape.gradient(E::energy::<StackVar<V, N>, V::Parameter>(Distance::from_squared(x), p));
        g
    }

    fn product<V: Lanes, E: PairEnergy>(r2: V, p: &E::Prepared<V::Parameter>) -> V {
        let tape = StackTape::<Dual<V>, 64>::new();
        let [x] = tape.restart([Dual::variable(r2)]);
        let [g] =
            tape.gradient(E::energy::<StackVar<Dual<V>, 64>, V::Parameter>(Distance::from_squared(x), p));
        g.tangent
    }

    /// ∂E/∂p of the prepared parameters, active.
    fn in_parameters<V: Lanes, E: PairEnergy>(r2: V, p: &E::Prepared<V>, k: usize) -> V {
        let active: E::Prepared<Dual<V>> =
            Record::from_fn(|n| Dual::new(p.field(n), V::constant(if n == k { 1.0 } else { 0.0 })));
        E::energy::<Dual<V>, Dual<V>>(Distance::from_squared(Dual::passive(r2)), &active).tangent
    }

    fn all<V: Lanes<Parameter: OnStack<V, 7>>>(r2: V) -> [V; 8] {
        let p = LennardJones::prepare(&Record::from_fn(|k| V::constant([0.8, 1.1][k])));
        let q: Pair<LennardJones, V> = p.convert(V::parameter);
        let (e, s) = slope::<V, LennardJones>(r2, &q);
        let c = curvature::<V, LennardJones>(r2, &q);
        let d = r2.sqrt();
        let [gx, gy, gz] = partials::<V, LennardJones>([d * 0.6, d * 0.0, d * 0.8], &q);
        assert!(gy.vanishes());
        let g = of_capacity::<V, LennardJones, 7>(r2, &q);
        let h = product::<V, LennardJones>(r2, &q);
        let dc6 = in_parameters::<V, LennardJones>(r2, &p, 1);
        [e, s, c, gx, gz, g, h, dc6]
    }

    #[test]
    fn kernels_over_lanes_agree_with_the_formula() {
        // in u = r²: E = a u⁻⁶ − b u⁻³, E′ = −6a u⁻⁷ + 3b u⁻⁴, E″ = 42a u⁻⁸ − 12b u⁻⁵
        let formula = |u: f64| {
            let b = 4.0 * 0.8 * 1.1f64.powi(6);
            let a = b * 1.1f64.powi(6);
            let slope = -6.0 * a * u.powi(-7) + 3.0 * b * u.powi(-4);
            let curvature = 42.0 * a * u.powi(-8) - 12.0 * b * u.powi(-5);
            let g = 2.0 * u.sqrt() * slope;
            [
                a * u.powi(-6) - b * u.powi(-3),
                slope,
                curvature,
                0.6 * g,
                0.8 * g,
                slope,
                curvature,
                -u.powi(-3),
            ]
        };
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-13 * b.abs(), "{a} {b}");
        for u in [1.3, 2.7] {
            all::<f64>(u).into_iter().zip(formula(u)).for_each(|(a, b)| close(a, b));
        }
        for (k, u) in [1.3, 2.7].into_iter().enumerate() {
            let lanes = all::<Two>(Two([1.3, 2.7]));
            lanes.into_iter().zip(formula(u)).for_each(|(a, b)| close(a.lane(k), b));
        }
    }

    #[test]
    fn lanes_are_gathered_and_summed_in_order() {
        let v = Two::gather(|k| 1.5 + k as f64);
        assert_eq!((v, v.lane(1), v.sum(), Two::WIDTH), (Two([1.5, 2.5]), 2.5, 4.0, 2));
        assert_eq!((f64::gather(|k| k as f64 + 3.0), 4.0f64.sum()), (3.0, 4.0));
        assert_eq!((2.0 / v).0, [2.0 / 1.5, 2.0 / 2.5]);
    }
}
