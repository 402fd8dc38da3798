//! How an interaction ends at its cut-off distance.
//!
//! | treatment | E(r) for r < rc | continuous at rc |
//! |---|---|---|
//! | [`Truncate`] | E(r) | nothing |
//! | [`Shift`] | E(r) − E(rc) | energy |
//! | [`ForceShift`] | E(r) − E(rc) − (r − rc) E′(rc) | energy, force |
//! | [`Switch`] | E(r) S(x), x = (r − rs)/(rc − rs), S = 1 − 10x³ + 15x⁴ − 6x⁵ beyond rs | energy, force, Hessian |
//!
//! [`Cut`] wraps any pair energy and [`CutEmbedding`] any embedding energy in one of them. What is subtracted or multiplied depends on the
//! parameters and on rc, and is differentiated with respect to them like everything else.

use crate::distance::Distance;
use crate::dual::Dual;
use crate::energy::{EmbeddingEnergy, Energy, Factor, PairEnergy};
use crate::param::About;
use crate::record;
use crate::record::{Both, Nothing, Record};
use crate::scalar::{Coefficient, Scalar};
use std::marker::PhantomData;

record!(
    /// Where an interaction ends.
    CutoffParams {
        /// rc: beyond it the energy is zero.
        cutoff,
        /// rs: where a switch begins (ignored by the others).
        inner
    }
);

/// A way to end an interaction.
pub trait Treatment: Send + Sync + 'static {
    /// The key in the input.
    const NAME: &'static str;
    /// What is continuous at the cut-off, in words.
    const CONTINUOUS: &'static str;
    /// How many derivatives of the energy are continuous at the cut-off; −1 where the energy itself jumps.
    const SMOOTHNESS: i32;
    /// What is subtracted from or multiplied to the energy.
    type Constants<T: Copy>: Record<T>;
    /// The constants for the radial function `f`.
    fn constants<T: Scalar>(
        at: &CutoffParams<T>,
        f: impl Fn(Distance<Dual<T>>) -> Dual<T>,
    ) -> Self::Constants<T>;
    /// The energy `e` at distance `r` after treatment.
    fn apply<S: Scalar, P: Coefficient<S>>(e: S, r: Distance<S>, k: &Self::Constants<P>) -> S;
}

/// The energy is cut and jumps to zero.
pub struct Truncate;
impl Treatment for Truncate {
    const NAME: &'static str = "truncate";
    const CONTINUOUS: &'static str = "nothing: the energy jumps";
    const SMOOTHNESS: i32 = -1;
    type Constants<T: Copy> = Nothing<T>;
    fn constants<T: Scalar>(
        _: &CutoffParams<T>,
        _: impl Fn(Distance<Dual<T>>) -> Dual<T>,
    ) -> Self::Constants<T> {
        Nothing::from_fn(|_| T::constant(0.0))
    }
    #[inline(always)]
    fn apply<S: Scalar, P: Coefficient<S>>(e: S, _: Distance<S>, _: &Self::Constants<P>) -> S {
        e
    }
}

record!(
    /// What [`Shift`] subtracts.
    ShiftConstants { energy }
);

/// A constant is subtracted so that the energy ends at zero; forces are those of the plain energy.
pub struct Shift;
impl Treatment for Shift {
    const NAME: &'static str = "shift";
    const CONTINUOUS: &'static str = "the energy; the force jumps";
    const SMOOTHNESS: i32 = 0;
    type Constants<T: Copy> = ShiftConstants<T>;
    fn constants<T: Scalar>(
        at: &CutoffParams<T>,
        f: impl Fn(Distance<Dual<T>>) -> Dual<T>,
    ) -> Self::Constants<T> {
        ShiftConstants { energy: f(Distance::new(Dual::passive(at.cutoff))).value }
    }
    #[inline(always)]
    fn apply<S: Scalar, P: Coefficient<S>>(e: S, _: Distance<S>, k: &Self::Constants<P>) -> S {
        e - k.energy
    }
}

record!(
    /// What [`ForceShift`] subtracts: a + b r.
    ForceShiftConstants { a, b }
);

/// A line is subtracted so that energy and force end at zero.
pub struct ForceShift;
impl Treatment for ForceShift {
    const NAME: &'static str = "force-shift";
    const CONTINUOUS: &'static str = "energy and force; Hessian products jump";
    const SMOOTHNESS: i32 = 1;
    type Constants<T: Copy> = ForceShiftConstants<T>;
    fn constants<T: Scalar>(
        at: &CutoffParams<T>,
        f: impl Fn(Distance<Dual<T>>) -> Dual<T>,
    ) -> Self::Constants<T> {
        let e = f(Distance::new(Dual::variable(at.cutoff)));
        ForceShiftConstants { a: e.value - e.tangent * at.cutoff, b: e.tangent }
    }
    #[inline(always)]
    fn apply<S: Scalar, P: Coefficient<S>>(e: S, r: Distance<S>, k: &Self::Constants<P>) -> S {
        e - k.a - k.b * r.value()
    }
}

record!(
    /// x = (r − inner) × inverse_width.
    SwitchConstants { inner, inverse_width }
);

/// The energy is multiplied by a quintic that falls from 1 at rs to 0 at rc with two continuous derivatives.
pub struct Switch;
impl Treatment for Switch {
    const NAME: &'static str = "switch";
    const CONTINUOUS: &'static str = "energy, force and Hessian products";
    const SMOOTHNESS: i32 = 2;
    type Constants<T: Copy> = SwitchConstants<T>;
    fn constants<T: Scalar>(
        at: &CutoffParams<T>,
        _: impl Fn(Distance<Dual<T>>) -> Dual<T>,
    ) -> Self::Constants<T> {
        SwitchConstants { inner: at.inner, inverse_width: (at.cutoff - at.inner).recip() }
    }
    #[inline(always)]
    fn apply<S: Scalar, P: Coefficient<S>>(e: S, r: Distance<S>, k: &Self::Constants<P>) -> S {
        // below rs, x is held at 0, where S = 1 and both derivatives vanish
        let x = ((r.value() - k.inner) * k.inverse_width).relu();
        e * x.poly([1.0, 0.0, 0.0, -10.0, 15.0, -6.0])
    }
}

/// The parameters of a cut energy: those of the energy, then the cut-off's.
pub type CutParams<E, T> = Both<<E as Energy>::Params<T>, CutoffParams<T>>;

/// A pair energy `E` ended by a treatment `C`.
pub struct Cut<E, C>(PhantomData<(E, C)>);

impl<E: PairEnergy, C: Treatment> Energy for Cut<E, C> {
    const ABOUT: About = E::ABOUT;
    type Params<T: Copy> = CutParams<E, T>;
    type Prepared<T: Copy> = Both<E::Prepared<T>, C::Constants<T>>;
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> {
        let first = E::prepare(&p.first);
        let lifted: E::Prepared<Dual<T>> = first.convert(Dual::passive);
        let second = C::constants(&p.second, |r| E::energy::<Dual<T>, Dual<T>>(r, &lifted));
        Both { first, second }
    }
}

impl<E: PairEnergy, C: Treatment> PairEnergy for Cut<E, C> {
    const FACTOR: Factor = E::FACTOR;
    const LEAVES_REMAINDER: bool = E::LEAVES_REMAINDER;
    const ENDS_AT_CUTOFF: bool = E::ENDS_AT_CUTOFF;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        C::apply(E::energy(r, &p.first), r, &p.second)
    }
    #[inline(always)]
    fn excluded<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        E::excluded(r, &p.first)
    }
    #[inline(always)]
    fn own<T: Scalar>(p: &Self::Prepared<T>) -> T {
        E::own(&p.first)
    }
}

/// An embedding energy `E` whose pair energy and density are ended by a treatment `C`.
pub struct CutEmbedding<E, C>(PhantomData<(E, C)>);

impl<E: EmbeddingEnergy, C: Treatment> Energy for CutEmbedding<E, C> {
    const ABOUT: About = E::ABOUT;
    type Params<T: Copy> = CutParams<E, T>;
    type Prepared<T: Copy> = Both<E::Prepared<T>, Both<C::Constants<T>, C::Constants<T>>>;
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> {
        let first = E::prepare(&p.first);
        let lifted: E::Prepared<Dual<T>> = first.convert(Dual::passive);
        let pair = C::constants(&p.second, |r| E::pair::<Dual<T>, Dual<T>>(r, &lifted));
        let density = C::constants(&p.second, |r| E::density::<Dual<T>, Dual<T>>(r, &lifted));
        Both { first, second: Both { first: pair, second: density } }
    }
}

impl<E: EmbeddingEnergy, C: Treatment> EmbeddingEnergy for CutEmbedding<E, C> {
    #[inline(always)]
    fn pair<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        C::apply(E::pair(r, &p.first), r, &p.second.first)
    }
    #[inline(always)]
    fn density<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        C::apply(E::density(r, &p.first), r, &p.second.second)
    }
    #[inline(always)]
    fn embedding<S: Scalar, P: Coefficient<S>>(rho: S, p: &Self::Prepared<P>) -> S {
        E::embedding(rho, &p.first)
    }
}
