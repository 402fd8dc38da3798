//! The kinds of energy. An energy implements [`Energy`] (what it is called, what parameters it has) and the
//! trait of its kind (the formula, once).
//!
//! | kind | the formula is a function of | example |
//! |---|---|---|
//! | [`PairEnergy`] | the distance of two atoms | Lennard-Jones |
//! | [`BondEnergy`] | the distance of two bonded atoms | harmonic bond |
//! | [`AngleEnergy`] | the angle of three bonded atoms | harmonic angle |
//! | [`DihedralEnergy`] | the dihedral of four bonded atoms | periodic dihedral |
//! | [`TupleEnergy`] | the positions of N bonded atoms | Urey–Bradley angle, harmonic improper |
//! | [`FieldEnergy`] | the position of one atom | uniform electric field, position restraint |
//! | [`EmbeddingEnergy`] | distances, through a density at each atom | Sutton–Chen |
//! | [`TripletEnergy`] | features of two neighbours and the angle between them | Stillinger–Weber |
//! | [`SiteEnergy`] | all neighbours of an atom | Tersoff |
//! | [`Neural`](crate::many_body::Neural) | all neighbours of an atom, in a form that is data | the only one of its kind |
//! | [`GlobalEnergy`] | the positions of many atoms | radius of gyration |

use crate::cutoff::Ending;
use crate::distance::Distance;
use crate::geometry::{Angle, Dihedral, Vec3};
use crate::param::About;
use crate::record::Record;
use crate::scalar::{Coefficient, Scalar};

/// What every energy says of itself.
///
/// `Params` are the numbers the user writes, `Prepared` what the formula needs of them. `prepare` is
/// differentiable text like the formula, so that derivatives with respect to the user's numbers go through it.
pub trait Energy: Send + Sync + 'static {
    /// Name, formula, parameters, source.
    const ABOUT: About;
    /// The user's numbers, in the order of `ABOUT.params`.
    type Params<T: Copy>: Record<T>;
    /// What the formula is evaluated with.
    type Prepared<T: Copy>: Record<T>;
    /// From the one to the other; done once, not for every pair.
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T>;
}

/// What the formula is multiplied by for each pair or atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Nothing.
    One,
    /// Coulomb's constant times the charges: k qᵢ qⱼ of a pair; for one atom in a field its charge q alone.
    Charge,
}

/// An energy of two atoms at a distance.
///
/// The formula can be written as in a textbook: `r` is divided by, subtracted from and raised to powers like a
/// number. It takes no square root as long as only even powers are asked for.
///
/// ```
/// use potentials::{About, Coefficient, Dimension, Distance, Dual, Energy, PairEnergy, Param, Range, Scalar, record};
///
/// /// Lennard-Jones plus a spring.
/// struct Tethered;
///
/// record!(TetheredParams { epsilon, sigma, k, r0 });
///
/// impl Energy for Tethered {
///     const ABOUT: About = About {
///         name: "tethered",
///         summary: "Lennard-Jones plus a spring.",
///         formula: "E(r) = 4 epsilon [(sigma/r)^12 - (sigma/r)^6] + 1/2 k (r - r0)^2",
///         source: "this page",
///         params: &[
///             Param::new("epsilon", Dimension::ENERGY, "depth of the well").range(Range::NonNegative),
///             Param::new("sigma", Dimension::LENGTH, "where the energy is zero").range(Range::Positive),
///             Param::new("k", Dimension::STIFFNESS, "stiffness of the spring"),
///             Param::new("r0", Dimension::LENGTH, "its length at rest"),
///         ],
///     };
///     type Params<T: Copy> = TetheredParams<T>;
///     type Prepared<T: Copy> = TetheredParams<T>;
///     fn prepare<T: Scalar>(p: &TetheredParams<T>) -> TetheredParams<T> {
///         *p
///     }
/// }
///
/// impl PairEnergy for Tethered {
///     fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &TetheredParams<P>) -> S {
///         let s6 = (p.sigma / r).powi(6);
///         4.0 * p.epsilon * (s6 * s6 - s6) + 0.5 * p.k * (r - p.r0).squared()
///     }
/// }
///
/// // at r = σ the first term is 0 and falls with 24 ε/σ; the spring has ½·8·1² and pulls with 8·1
/// let p = TetheredParams { epsilon: 0.5, sigma: 2.0, k: 8.0, r0: 1.0 };
/// assert_eq!(Tethered::energy::<f64, f64>(Distance::new(2.0), &p), 4.0);
/// let e: Dual<f64> = Tethered::energy(Distance::new(Dual::variable(2.0)), &p);
/// assert_eq!(e.tangent, -24.0 * 0.5 / 2.0 + 8.0);
/// ```
pub trait PairEnergy: Energy {
    /// What the formula is multiplied by.
    const FACTOR: Factor = Factor::One;
    /// Whether [`excluded`](PairEnergy::excluded) and [`own`](PairEnergy::own) are other than zero.
    const LEAVES_REMAINDER: bool = false;
    /// Whether the energy already vanishes at the cut-off by its own formula, so that no cut-off treatment
    /// applies to it.
    const ENDS_AT_CUTOFF: bool = false;
    /// How it is ended at the cut-off, if by [`Cut`](crate::cutoff::Cut).
    const ENDING: Ending = Ending::Truncate;

    /// The formula.
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S;

    /// What remains between two atoms whose interaction is excluded (for energies that stand for a sum over
    /// more than the pair, such as a reaction field). A pair scaled by f has f·energy + (1−f)·excluded.
    #[inline(always)]
    fn excluded<S: Scalar, P: Coefficient<S>>(_r: Distance<S>, _p: &Self::Prepared<P>) -> S {
        S::constant(0.0)
    }

    /// The energy of an atom with itself, for a factor of k q².
    #[inline(always)]
    fn own<T: Scalar>(_p: &Self::Prepared<T>) -> T {
        T::constant(0.0)
    }
}

/// An energy of two bonded atoms.
pub trait BondEnergy: Energy {
    /// The formula.
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S;
}

/// An energy of the angle at the second of three bonded atoms.
pub trait AngleEnergy: Energy {
    /// The formula.
    fn energy<S: Scalar, P: Coefficient<S>>(theta: Angle<S>, p: &Self::Prepared<P>) -> S;
}

/// An energy of the dihedral of four atoms in a chain.
pub trait DihedralEnergy: Energy {
    /// The formula.
    fn energy<S: Scalar, P: Coefficient<S>>(phi: Dihedral<S>, p: &Self::Prepared<P>) -> S;
}

/// An energy of the positions of N bonded atoms. The positions are relative to the first, nearest images.
pub trait TupleEnergy<const N: usize>: Energy {
    /// The formula.
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; N], p: &Self::Prepared<P>) -> S;
}

/// Where a field measures positions from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The origin of space; atoms are followed through periodic images.
    Space,
    /// An anchor given for each atom (by default where it starts); nearest image.
    Anchor,
}

/// An energy of one atom at a place.
pub trait FieldEnergy: Energy {
    /// What the formula is multiplied by.
    const FACTOR: Factor = Factor::One;
    /// What `x` is measured from.
    const ORIGIN: Origin = Origin::Space;
    /// The formula.
    fn energy<S: Scalar, P: Coefficient<S>>(x: Vec3<S>, p: &Self::Prepared<P>) -> S;
}

/// A pair energy, and a density at every atom that its neighbours make and the atom is embedded in:
/// E = Σ_{i<j} φ(r) + Σᵢ F(ρᵢ), ρᵢ = Σⱼ ρ(r). Parameters belong to pairs of types; F takes those of a type
/// with itself.
pub trait EmbeddingEnergy: Energy {
    /// How it is ended at the cut-off, if by [`CutEmbedding`](crate::cutoff::CutEmbedding).
    const ENDING: Ending = Ending::Truncate;
    /// φ(r)
    fn pair<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S;
    /// What a neighbour at distance r adds to an atom's density.
    fn density<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S;
    /// F(ρ), for ρ > 0. (An atom without neighbours has F = 0.)
    fn embedding<S: Scalar, P: Coefficient<S>>(rho: S, p: &Self::Prepared<P>) -> S;
}

/// A pair energy, and an energy of every two neighbours j, k of an atom i that depends on one feature of each
/// neighbour and the angle between them. Parameters belong to triples of types (i, j, k); pairs and features
/// take those of (i, j, j).
pub trait TripletEnergy: Energy {
    /// The distance at which pair energy and feature end, both smoothly.
    fn reach<T: Scalar>(p: &Self::Prepared<T>) -> T;
    /// The pair energy (each pair counted once), for r below the reach.
    fn pair<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S;
    /// The feature of a neighbour at distance r, for r below the reach.
    fn feature<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S;
    /// The energy of two neighbours with features gj, gk seen under cos θ.
    fn triplet<S: Scalar, P: Coefficient<S>>(cos: S, gj: S, gk: S, p: &Self::Prepared<P>) -> S;
}

/// One neighbour of a site.
#[derive(Clone, Copy, Debug)]
pub struct SiteNeighbor<S> {
    /// From the atom to the neighbour.
    pub vector: Vec3<S>,
    /// Its distance.
    pub distance: S,
    /// Its type.
    pub kind: usize,
}

/// An energy of an atom in its neighbourhood, of any form.
pub trait SiteEnergy: Energy {
    /// The distance beyond which a neighbour plays no part.
    fn reach<T: Scalar>(p: &Self::Prepared<T>) -> T;
    /// The formula: `neighbors` are those within the list's range; `p(j, k)` gives the parameters of the triple
    /// (the atom, a neighbour of type j, another of type k).
    fn energy<'a, S: Scalar, P: Coefficient<S> + 'a>(
        neighbors: &[SiteNeighbor<S>],
        p: impl Fn(usize, usize) -> &'a Self::Prepared<P>,
    ) -> S
    where
        Self::Prepared<P>: 'a;
}

/// An energy of a whole group of atoms.
pub trait GlobalEnergy: Energy {
    /// The formula: positions (followed through periodic images) and masses of the group.
    fn energy<S: Scalar, P: Coefficient<S>>(x: &[Vec3<S>], masses: &[f64], p: &Self::Prepared<P>) -> S;
}
