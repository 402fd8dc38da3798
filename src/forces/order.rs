//! Kernels are written once, over quantities: values, or values with their tangents.
//!
//! A kernel that is run in the order [`Values`] computes energies, forces and virial. The same text in the order [`Tangents`]
//! computes how they change when atoms move along a [`Direction`]: Hessian–vector products, and what a strain does
//! to forces and virial.

use super::chunks::{LANES, spill};
use super::embedding::{self, Parameters as Embedded};
use super::pair::{self, Prepared as Paired, Pull, seeded};
use super::site::site;
use super::triplet::{self, Parameters as Tripled, TypeTriples};
use super::tuple::Bonded;
use crate::autodiff::lanes::Lanes;
use crate::autodiff::{Dual, InlineTape, StackVar, Var};
use potentials::cutoff::{Ending, EndingConstants};
use potentials::{
    Distance, EmbeddingEnergy, Energy, FieldEnergy, GlobalEnergy, PairEnergy, Scalar, SiteEnergy,
    SiteNeighbor, Vec3,
};

/// Whether values are wanted, or their tangents.
pub trait Order: Send + Sync + 'static {
    /// Whether it is tangents.
    const TANGENTS: bool;
    /// What kernels compute with.
    type Quantity<V: Lanes>: Quantity<V, One = Self::One>;
    /// The same of one lane.
    type One: Single;
}

/// Energies, forces and virial.
pub struct Values;

/// Their derivatives along a direction.
pub struct Tangents;

impl Order for Values {
    const TANGENTS: bool = false;
    type Quantity<V: Lanes> = V;
    type One = f64;
}

impl Order for Tangents {
    const TANGENTS: bool = true;
    type Quantity<V: Lanes> = Dual<V>;
    type One = Dual<f64>;
}

/// How atoms move, and space is strained, in a unit of time.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    /// Velocities, one an atom: nm.
    pub moves: &'a [[f64; 3]],
    /// The rate of strain: a vector d between atoms changes by ε̇ d on top of what atoms do.
    pub strain: [[f64; 3]; 3],
}

impl Direction<'_> {
    /// Whether space is strained at all.
    pub fn strains(&self) -> bool {
        self.strain != [[0.0; 3]; 3]
    }
    /// ε̇ d
    #[inline]
    pub(super) fn stretch(&self, d: [f64; 3]) -> [f64; 3] {
        let along = |e: [f64; 3]| e[0] * d[0] + e[1] * d[1] + e[2] * d[2];
        [along(self.strain[0]), along(self.strain[1]), along(self.strain[2])]
    }
}

/// A number in every lane, and perhaps its tangent. The last methods are how formulas are called with it.
pub trait Quantity<V: Lanes>: Scalar<Mask = V::Mask> + Send + Sync + 'static {
    /// Whether there is a tangent.
    const TANGENTS: bool;
    /// The same of one lane.
    type One: Single;

    /// A value; the tangent is dropped where there is none.
    fn new(value: V, tangent: V) -> Self;
    /// The value.
    fn value(self) -> V;
    /// What is wanted: the tangent, or the value where there is none.
    fn result(self) -> V;
    /// The product with a number that does not change.
    fn times(self, k: V) -> Self;
    /// With the lowest bits of its numbers set: see [`Lanes::odd`].
    fn odd(self) -> Self;
    /// With the result rounded to the grid of this origin.
    fn rounded(self, origin: V) -> Self;
    /// x² + y² + z².
    fn square_of(d: [Self; 3]) -> Self;
    /// Lane `k` is `f(k)`.
    fn gather(f: impl Fn(usize) -> Self::One) -> Self;
    /// The lanes of some quantities.
    fn spill<const N: usize>(x: [Self; N]) -> [[Self::One; LANES]; N]
    where
        V: Lanes<Element = f64>;
    /// Adds the pulls g d of some neighbours along their vectors d.
    fn pull(pull: &mut Pull<V>, d: [Self; 3], g: Self, careful: &mut Option<[f64; 3]>);

    /// E and −2 dE/dr².
    fn pairs<F: pair::Formula>(r2: Self, p: &Paired<F, V::Parameter>) -> (Self, Self);
    /// φ and ρ with −2 d/dr² of both.
    fn embedded<F: embedding::Formula>(r2: Self, p: &Embedded<F, V::Parameter>) -> [Dual<Self>; 2];
    /// Pair energies and features, with −2 d/dr² of both.
    fn neighbors<F: triplet::Formula>(r2: Self, p: &Tripled<F, V::Parameter>) -> [Dual<Self>; 2];
    /// Energies of two neighbours, and the derivatives in the numbers given.
    fn triplets<F: triplet::Formula>(x: [Self; 8], p: &Tripled<F, V::Parameter>) -> (Self, [Self; 8]);
    /// The energy, and its derivatives in the positions.
    fn bonded<E: Bonded<N>, const N: usize>(
        x: &[[Self; 3]; N],
        p: &<E as Energy>::Prepared<V::Parameter>,
    ) -> (Self, [[Self; 3]; N]);
    /// ρ
    fn density<E: EmbeddingEnergy>(r2: Self, p: &E::Prepared<V::Parameter>) -> Self;
    /// An energy after its treatment at the cut-off.
    fn ended(ending: Ending, e: Self, r2: Self, k: &EndingConstants<V::Parameter>) -> Self;
    /// The same with its slope −2 d/dr².
    fn ended_slope(ending: Ending, e: Dual<Self>, r2: Self, k: &EndingConstants<V::Parameter>) -> Dual<Self>;
    /// The energy of a site whose centre is of type `kind`.
    fn site<'t, E: SiteEnergy>(
        types: &TypeTriples,
        kind: usize,
        neighbors: &[SiteNeighbor<Var<'t, Self, InlineTape<Self>>>],
        p: &[E::Prepared<V::Parameter>],
    ) -> Var<'t, Self, InlineTape<Self>>;
    /// The energy of an atom at a place.
    fn field<'t, E: FieldEnergy>(
        place: Vec3<StackVar<'t, Self, 64>>,
        p: &E::Prepared<V::Parameter>,
    ) -> StackVar<'t, Self, 64>;
}

/// The calls that are the same text for values and tangents.
macro_rules! calls {
    () => {
        #[inline(always)]
        fn density<E: EmbeddingEnergy>(r2: Self, p: &E::Prepared<V::Parameter>) -> Self {
            E::density::<Self, V::Parameter>(Distance::from_squared(r2), p)
        }
        #[inline(always)]
        fn ended(ending: Ending, e: Self, r2: Self, k: &EndingConstants<V::Parameter>) -> Self {
            ending.apply(e, Distance::from_squared(r2), k)
        }
        #[inline(always)]
        fn ended_slope(
            ending: Ending,
            e: Dual<Self>,
            r2: Self,
            k: &EndingConstants<V::Parameter>,
        ) -> Dual<Self> {
            ending.apply(e, Distance::from_squared(seeded(r2)), k)
        }
        #[inline(always)]
        fn site<'t, E: SiteEnergy>(
            types: &TypeTriples,
            kind: usize,
            neighbors: &[SiteNeighbor<Var<'t, Self, InlineTape<Self>>>],
            p: &[E::Prepared<V::Parameter>],
        ) -> Var<'t, Self, InlineTape<Self>> {
            site::<E, _, V::Parameter>(types, kind, neighbors, p)
        }
        #[inline(always)]
        fn field<'t, E: FieldEnergy>(
            place: Vec3<StackVar<'t, Self, 64>>,
            p: &E::Prepared<V::Parameter>,
        ) -> StackVar<'t, Self, 64> {
            E::energy::<_, V::Parameter>(place, p)
        }
    };
}

impl<V: Lanes> Quantity<V> for V {
    const TANGENTS: bool = false;
    type One = f64;
    #[inline(always)]
    fn new(value: V, _: V) -> V {
        value
    }
    #[inline(always)]
    fn value(self) -> V {
        self
    }
    #[inline(always)]
    fn result(self) -> V {
        self
    }
    #[inline(always)]
    fn times(self, k: V) -> V {
        self * k
    }
    #[inline(always)]
    fn odd(self) -> V {
        Lanes::odd(self)
    }
    #[inline(always)]
    fn rounded(self, origin: V) -> V {
        (self + origin) - origin
    }
    #[inline(always)]
    fn square_of([x, y, z]: [V; 3]) -> V {
        x.fma(x, y.fma(y, z * z))
    }
    #[inline(always)]
    fn gather(f: impl Fn(usize) -> f64) -> V {
        <V as Lanes>::gather(f)
    }
    #[inline(always)]
    fn spill<const N: usize>(x: [V; N]) -> [[f64; LANES]; N]
    where
        V: Lanes<Element = f64>,
    {
        spill(x)
    }
    #[inline(always)]
    fn pull(pull: &mut Pull<V>, d: [V; 3], g: V, careful: &mut Option<[f64; 3]>) {
        pull.add(d, g, careful);
    }
    #[inline(always)]
    fn pairs<F: pair::Formula>(r2: V, p: &Paired<F, V::Parameter>) -> (V, V) {
        F::pairs(r2, p)
    }
    #[inline(always)]
    fn embedded<F: embedding::Formula>(r2: V, p: &Embedded<F, V::Parameter>) -> [Dual<V>; 2] {
        F::pairs(r2, p)
    }
    #[inline(always)]
    fn neighbors<F: triplet::Formula>(r2: V, p: &Tripled<F, V::Parameter>) -> [Dual<V>; 2] {
        F::neighbors(r2, p)
    }
    #[inline(always)]
    fn triplets<F: triplet::Formula>(x: [V; 8], p: &Tripled<F, V::Parameter>) -> (V, [V; 8]) {
        F::triplets(x, p)
    }
    #[inline(always)]
    fn bonded<E: Bonded<N>, const N: usize>(
        x: &[[V; 3]; N],
        p: &<E as Energy>::Prepared<V::Parameter>,
    ) -> (V, [[V; 3]; N]) {
        E::gradient(x, p)
    }
    calls!();
}

impl<V: Lanes> Quantity<V> for Dual<V> {
    const TANGENTS: bool = true;
    type One = Dual<f64>;
    #[inline(always)]
    fn new(value: V, tangent: V) -> Self {
        Dual { value, tangent }
    }
    #[inline(always)]
    fn value(self) -> V {
        self.value
    }
    #[inline(always)]
    fn result(self) -> V {
        self.tangent
    }
    #[inline(always)]
    fn times(self, k: V) -> Self {
        Dual { value: self.value * k, tangent: self.tangent * k }
    }
    #[inline(always)]
    fn odd(self) -> Self {
        Dual { value: self.value.odd(), tangent: self.tangent.odd() }
    }
    #[inline(always)]
    fn rounded(self, origin: V) -> Self {
        Dual { value: self.value, tangent: (self.tangent + origin) - origin }
    }
    #[inline(always)]
    fn square_of([x, y, z]: [Self; 3]) -> Self {
        let along = x.value.fma(x.tangent, y.value.fma(y.tangent, z.value * z.tangent));
        Dual { value: V::square_of([x.value, y.value, z.value]), tangent: along + along }
    }
    #[inline(always)]
    fn gather(f: impl Fn(usize) -> Dual<f64>) -> Self {
        let value = <V as Lanes>::gather(
            #[inline(always)]
            |k| f(k).value,
        );
        let tangent = <V as Lanes>::gather(
            #[inline(always)]
            |k| f(k).tangent,
        );
        Dual { value, tangent }
    }
    #[inline(always)]
    fn spill<const N: usize>(x: [Self; N]) -> [[Dual<f64>; LANES]; N]
    where
        V: Lanes<Element = f64>,
    {
        let mut out = [[Dual { value: 0.0, tangent: 0.0 }; LANES]; N];
        for n in 0..N {
            let [values, tangents] = spill([x[n].value, x[n].tangent]);
            for k in 0..LANES {
                out[n][k] = Dual { value: values[k], tangent: tangents[k] };
            }
        }
        out
    }
    #[inline(always)]
    fn pull(pull: &mut Pull<V>, [x, y, z]: [Self; 3], g: Self, careful: &mut Option<[f64; 3]>) {
        // (g d)˙ = ġ d + g ḋ
        pull.add([x.value, y.value, z.value], g.tangent, careful);
        pull.add([x.tangent, y.tangent, z.tangent], g.value, careful);
    }
    #[inline(always)]
    fn pairs<F: pair::Formula>(r2: Self, p: &Paired<F, V::Parameter>) -> (Self, Self) {
        F::tangents(r2, p)
    }
    #[inline(always)]
    fn embedded<F: embedding::Formula>(r2: Self, p: &Embedded<F, V::Parameter>) -> [Dual<Self>; 2] {
        F::tangents(r2, p)
    }
    #[inline(always)]
    fn neighbors<F: triplet::Formula>(r2: Self, p: &Tripled<F, V::Parameter>) -> [Dual<Self>; 2] {
        F::tangents_of_neighbors(r2, p)
    }
    #[inline(always)]
    fn triplets<F: triplet::Formula>(x: [Self; 8], p: &Tripled<F, V::Parameter>) -> (Self, [Self; 8]) {
        F::tangents_of_triplets(x, p)
    }
    #[inline(always)]
    fn bonded<E: Bonded<N>, const N: usize>(
        x: &[[Self; 3]; N],
        p: &<E as Energy>::Prepared<V::Parameter>,
    ) -> (Self, [[Self; 3]; N]) {
        E::tangents(x, p)
    }
    calls!();
}

/// The same of a single number.
pub trait Single: Quantity<f64> {
    /// F and dF/dρ.
    fn embedding<F: embedding::Formula>(rho: Self, p: &Embedded<F, f64>) -> Dual<Self>;
    /// E and −2 dE/dr² of a pair, and what remains of it where it is excluded.
    fn special<E: PairEnergy>(r2: Self, p: &E::Prepared<f64>) -> [Dual<Self>; 2];
    /// The energy of a group of atoms.
    fn global<'t, E: GlobalEnergy>(
        places: &[Vec3<Var<'t, Self>>],
        masses: &[f64],
        p: &E::Prepared<f64>,
    ) -> Var<'t, Self>;
}

macro_rules! single_calls {
    () => {
        fn special<E: PairEnergy>(r2: Self, p: &E::Prepared<f64>) -> [Dual<Self>; 2] {
            let r = Distance::from_squared(seeded(r2));
            [E::energy::<Dual<Self>, f64>(r, p), E::excluded::<Dual<Self>, f64>(r, p)]
        }
        fn global<'t, E: GlobalEnergy>(
            places: &[Vec3<Var<'t, Self>>],
            masses: &[f64],
            p: &E::Prepared<f64>,
        ) -> Var<'t, Self> {
            E::energy::<Var<'t, Self>, f64>(places, masses, p)
        }
    };
}

impl Single for f64 {
    #[inline(always)]
    fn embedding<F: embedding::Formula>(rho: f64, p: &Embedded<F, f64>) -> Dual<f64> {
        F::embedding(rho, p)
    }
    single_calls!();
}

impl Single for Dual<f64> {
    #[inline(always)]
    fn embedding<F: embedding::Formula>(rho: Dual<f64>, p: &Embedded<F, f64>) -> Dual<Dual<f64>> {
        F::embedding_tangents(rho, p)
    }
    single_calls!();
}
