//! How an interaction ends at its cut-off distance.
//!
//! | treatment | E(r) for r < rc | continuous at rc |
//! |---|---|---|
//! | [`Truncate`](Ending::Truncate) | E(r) | nothing |
//! | [`Shift`](Ending::Shift) | E(r) − E(rc) | energy |
//! | [`ForceShift`](Ending::ForceShift) | E(r) − E(rc) − (r − rc) E′(rc) | energy, force |
//! | [`Switch`](Ending::Switch) | E(r) S(x), x = (r − rs)/(rc − rs), S = 1 − 10x³ + 15x⁴ − 6x⁵ beyond rs | energy, force, Hessian |
//!
//! [`Cut`] wraps any pair energy and [`CutEmbedding`] any embedding energy in one of them. What is subtracted or multiplied
//! depends on the parameters and on rc, and is differentiated with respect to them like everything else.

use crate::distance::Distance;
use crate::dual::Dual;
use crate::energy::{EmbeddingEnergy, Energy, Factor, PairEnergy};
use crate::param::About;
use crate::record;
use crate::record::{Both, Record};
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

record!(
    /// The two numbers of an [`Ending`]: nothing, what is subtracted (E(rc), 0), the line a + b r, or for a switch rs and
    /// 1/(rc − rs).
    EndingConstants { a, b }
);

/// How an interaction ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The energy is cut and jumps to zero.
    #[default]
    Truncate,
    /// A constant is subtracted so that the energy ends at zero; forces are those of the plain energy.
    Shift,
    /// A line is subtracted so that energy and force end at zero.
    ForceShift,
    /// The energy is multiplied by a quintic that falls from 1 at rs to 0 at rc with two continuous derivatives.
    Switch,
}

impl Ending {
    /// All of them.
    pub const ALL: [Ending; 4] = [Ending::Truncate, Ending::Shift, Ending::ForceShift, Ending::Switch];

    /// The key in the input.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Truncate => "truncate",
            Ending::Shift => "shift",
            Ending::ForceShift => "force-shift",
            Ending::Switch => "switch",
        }
    }
    /// What is continuous at the cut-off, in words.
    pub const fn continuous(self) -> &'static str {
        match self {
            Ending::Truncate => "nothing: the energy jumps",
            Ending::Shift => "the energy; the force jumps",
            Ending::ForceShift => "energy and force; Hessian products jump",
            Ending::Switch => "energy, force and Hessian products",
        }
    }
    /// How many derivatives of the energy are continuous at the cut-off; −1 where the energy itself jumps.
    pub const fn smoothness(self) -> i32 {
        match self {
            Ending::Truncate => -1,
            Ending::Shift => 0,
            Ending::ForceShift => 1,
            Ending::Switch => 2,
        }
    }

    /// The constants for the radial function `f`.
    pub fn constants<T: Scalar>(
        self,
        at: &CutoffParams<T>,
        f: impl Fn(Distance<Dual<T>>) -> Dual<T>,
    ) -> EndingConstants<T> {
        let zero = T::constant(0.0);
        match self {
            Ending::Truncate => EndingConstants { a: zero, b: zero },
            Ending::Shift => EndingConstants { a: f(Distance::new(Dual::passive(at.cutoff))).value, b: zero },
            Ending::ForceShift => {
                let e = f(Distance::new(Dual::variable(at.cutoff)));
                EndingConstants { a: e.value - e.tangent * at.cutoff, b: e.tangent }
            }
            Ending::Switch => EndingConstants { a: at.inner, b: (at.cutoff - at.inner).recip() },
        }
    }

    /// The energy `e` at distance `r` after treatment.
    #[inline(always)]
    pub fn apply<S: Scalar, P: Coefficient<S>>(self, e: S, r: Distance<S>, k: &EndingConstants<P>) -> S {
        match self {
            Ending::Truncate => e,
            Ending::Shift => e - k.a,
            Ending::ForceShift => e - k.a - k.b * r.value(),
            Ending::Switch => {
                // below rs, x is held at 0, where S = 1 and both derivatives vanish
                let x = ((r.value() - k.a) * k.b).relu();
                e * x.poly([1.0, 0.0, 0.0, -10.0, 15.0, -6.0])
            }
        }
    }
}

/// An ending as a type.
pub trait Treatment: Send + Sync + 'static {
    /// The ending.
    const ENDING: Ending;
}

macro_rules! treatments {
    ($($Name:ident),*) => { $(
        /// See [`Ending`].
        pub struct $Name;
        impl Treatment for $Name {
            const ENDING: Ending = Ending::$Name;
        }
    )* };
}
treatments!(Truncate, Shift, ForceShift, Switch);

/// The parameters of a cut energy: those of the energy, then the cut-off's.
pub type CutParams<E, T> = Both<<E as Energy>::Params<T>, CutoffParams<T>>;

/// A pair energy `E` ended by a treatment `C`.
pub struct Cut<E, C>(PhantomData<(E, C)>);

impl<E: PairEnergy, C: Treatment> Energy for Cut<E, C> {
    const ABOUT: About = E::ABOUT;
    type Params<T: Copy> = CutParams<E, T>;
    type Prepared<T: Copy> = Both<E::Prepared<T>, EndingConstants<T>>;
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> {
        let first = E::prepare(&p.first);
        let lifted: E::Prepared<Dual<T>> = first.convert(Dual::passive);
        let second = C::ENDING.constants(&p.second, |r| E::energy::<Dual<T>, Dual<T>>(r, &lifted));
        Both { first, second }
    }
}

impl<E: PairEnergy, C: Treatment> PairEnergy for Cut<E, C> {
    const FACTOR: Factor = E::FACTOR;
    const LEAVES_REMAINDER: bool = E::LEAVES_REMAINDER;
    const ENDS_AT_CUTOFF: bool = E::ENDS_AT_CUTOFF;
    const ENDING: Ending = C::ENDING;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        C::ENDING.apply(E::energy(r, &p.first), r, &p.second)
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
    type Prepared<T: Copy> = Both<E::Prepared<T>, Both<EndingConstants<T>, EndingConstants<T>>>;
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> {
        let first = E::prepare(&p.first);
        let lifted: E::Prepared<Dual<T>> = first.convert(Dual::passive);
        let pair = C::ENDING.constants(&p.second, |r| E::pair::<Dual<T>, Dual<T>>(r, &lifted));
        let density = C::ENDING.constants(&p.second, |r| E::density::<Dual<T>, Dual<T>>(r, &lifted));
        Both { first, second: Both { first: pair, second: density } }
    }
}

impl<E: EmbeddingEnergy, C: Treatment> EmbeddingEnergy for CutEmbedding<E, C> {
    const ENDING: Ending = C::ENDING;
    #[inline(always)]
    fn pair<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        C::ENDING.apply(E::pair(r, &p.first), r, &p.second.first)
    }
    #[inline(always)]
    fn density<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        C::ENDING.apply(E::density(r, &p.first), r, &p.second.second)
    }
    #[inline(always)]
    fn embedding<S: Scalar, P: Coefficient<S>>(rho: S, p: &Self::Prepared<P>) -> S {
        E::embedding(rho, &p.first)
    }
}
