//! Embedding energies, triplets and sites.

use crate::{Alone, Plain, Racer, System, Table, Way, table};
use md::autodiff::Dual;
use md::autodiff::lanes::Lanes;
use md::forces::embedding::{self, EmbeddingLaw};
use md::forces::pair::{Derived, TypePairs};
use md::forces::site::SiteLaw;
use md::forces::triplet::{self, TripletLaw, TypeTriples};
use md::forces::{Entry, Grid};
use md::system::lattice::LatticeKind;
use potentials::many_body::{StillingerWeber, StillingerWeberParams, StillingerWeberPrepared, SuttonChen};
use potentials::{
    About, Coefficient, Distance, EmbeddingEnergy, Energy, Scalar, SiteEnergy, SiteNeighbor, TripletEnergy,
    Vec3,
};
use std::marker::PhantomData;

/// A record of prepared parameters, a number a lane.
type Prepared<E, V> = <E as Energy>::Prepared<<V as Lanes>::Parameter>;

impl<E: EmbeddingEnergy> embedding::Formula for Plain<E> {
    type Energy = E;
    const FORCES: bool = false;
    #[inline(always)]
    fn embedding(rho: f64, p: &E::Prepared<f64>) -> Dual<f64> {
        Dual::passive(E::embedding::<f64, f64>(rho, p))
    }
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<E, V>) -> [Dual<V>; 2] {
        let phi = E::pair::<V, V::Parameter>(Distance::from_squared(r2), p);
        [Dual::passive(phi), Dual::passive(V::constant(0.0))]
    }
}

impl<F: embedding::Formula> embedding::Formula for Alone<F> {
    type Energy = F::Energy;
    const FORCES: bool = false;
    #[inline(always)]
    fn embedding(rho: f64, p: &<F::Energy as Energy>::Prepared<f64>) -> Dual<f64> {
        F::embedding(rho, p)
    }
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<F::Energy, V>) -> [Dual<V>; 2] {
        F::pairs(r2, p)
    }
}

impl<E: TripletEnergy> triplet::Formula for Plain<E> {
    type Energy = E;
    const FORCES: bool = false;
    #[inline(always)]
    fn neighbors<V: Lanes>(r2: V, p: &Prepared<E, V>) -> [Dual<V>; 2] {
        let r = Distance::from_squared(r2);
        let (e, feature) = (E::pair::<V, V::Parameter>(r, p), E::feature::<V, V::Parameter>(r, p));
        [Dual::passive(e), Dual::passive(feature)]
    }
    #[inline(always)]
    fn triplets<V: Lanes>([ax, ay, az, bx, by, bz, ga, gb]: [V; 8], p: &Prepared<E, V>) -> (V, [V; 8]) {
        let (a, b) = (Vec3::new(ax, ay, az), Vec3::new(bx, by, bz));
        let cos = a.dot(b) * (a.norm_squared() * b.norm_squared()).rsqrt();
        (E::triplet::<V, V::Parameter>(cos, ga, gb, p), [V::constant(0.0); 8])
    }
}

impl<F: triplet::Formula> triplet::Formula for Alone<F> {
    type Energy = F::Energy;
    const FORCES: bool = false;
    #[inline(always)]
    fn neighbors<V: Lanes>(r2: V, p: &Prepared<F::Energy, V>) -> [Dual<V>; 2] {
        F::neighbors(r2, p)
    }
    #[inline(always)]
    fn triplets<V: Lanes>(x: [V; 8], p: &Prepared<F::Energy, V>) -> (V, [V; 8]) {
        F::triplets(x, p)
    }
}

/// By hand, for its energy.
struct ByHand<E>(PhantomData<E>);

/// φ = ε (a/r)ⁿ, −2 dφ/dr² = n φ/r², ρ = (a/r)ᵐ, −2 dρ/dr² = m ρ/r², F = −εc √ρ, dF/dρ = −εc/2√ρ.
impl embedding::Formula for ByHand<SuttonChen> {
    type Energy = SuttonChen;
    #[inline(always)]
    fn embedding(rho: f64, p: &<SuttonChen as Energy>::Prepared<f64>) -> Dual<f64> {
        let root = rho.sqrt();
        Dual::new(p.strength * root, 0.5 * p.strength / root)
    }
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<SuttonChen, V>) -> [Dual<V>; 2] {
        let [epsilon, ln_a, n, m] = numbers!(V; p.epsilon, p.ln_a, p.n, p.m);
        let inverse2 = r2.recip();
        let l = ln_a - r2.ln() * 0.5;
        let phi = epsilon * (n * l).exp();
        let rho = (m * l).exp();
        [Dual::new(phi, n * phi * inverse2), Dual::new(rho, m * rho * inverse2)]
    }
}

/// With e_p = AεB (σ/r)^p e^(σ/(r−aσ)), e_q = −Aε (σ/r)^q e^(σ/(r−aσ)) and g = e^(γσ/(r−aσ)):
///
/// - E = e_p + e_q, −2 dE/dr² = [(p e_p + q e_q)/r + σ E/(aσ−r)²]/r,
/// - −2 dg/dr² = γσ g/(aσ−r)²/r,
/// - triples: λε gₐ g_b (cos θ − cos θ₀)², ∂ cos θ/∂a = b/|a||b| − cos θ a/|a|².
impl triplet::Formula for ByHand<StillingerWeber> {
    type Energy = StillingerWeber;
    #[inline(always)]
    fn neighbors<V: Lanes>(r2: V, of: &Prepared<StillingerWeber, V>) -> [Dual<V>; 2] {
        let [a_epsilon_b, a_epsilon, p, q] = numbers!(V; of.repulsion, of.attraction, of.p, of.q);
        let [ln_sigma, sigma, gamma_sigma, reach] =
            numbers!(V; of.ln_sigma, of.sigma, of.gamma_sigma, of.reach);
        let (zero, one) = (V::constant(0.0), V::constant(1.0));
        let r = r2.sqrt();
        let inverse = r.recip();
        let gap = reach - r;
        let within = zero.lt(gap);
        let beyond = V::select(within, gap, one).recip();
        let end = sigma * beyond;
        let l = ln_sigma - r2.ln() * 0.5;
        let repulsion = a_epsilon_b * (p * l - end).exp();
        let attraction = a_epsilon * (q * l - end).exp();
        let e = repulsion + attraction;
        let slope = ((p * repulsion + q * attraction) * inverse + end * beyond * e) * inverse;
        let feature = (-(gamma_sigma * beyond)).exp();
        let feature_slope = gamma_sigma * beyond * beyond * feature * inverse;
        let ended = |x: V| V::select(within, x, zero);
        [Dual::new(ended(e), ended(slope)), Dual::new(ended(feature), ended(feature_slope))]
    }
    #[inline(always)]
    fn triplets<V: Lanes>(
        [ax, ay, az, bx, by, bz, ga, gb]: [V; 8],
        p: &Prepared<StillingerWeber, V>,
    ) -> (V, [V; 8]) {
        let [strength, cos0] = numbers!(V; p.lambda_epsilon, p.cos_theta0);
        let (a, b) = (Vec3::new(ax, ay, az), Vec3::new(bx, by, bz));
        let (a2, b2) = (a.norm_squared(), b.norm_squared());
        let inverse = (a2 * b2).rsqrt();
        let cos = a.dot(b) * inverse;
        let bend = cos - cos0;
        let (of_a, of_b) = (strength * ga, strength * gb);
        let square = bend * bend;
        let of_cos = of_a * gb * bend * 2.0;
        let across = of_cos * inverse;
        let along = across * cos * inverse;
        let (da, db) = (b.scale(across) - a.scale(along * b2), a.scale(across) - b.scale(along * a2));
        (of_a * gb * square, [da.x, da.y, da.z, db.x, db.y, db.z, of_b * square, of_a * square])
    }
}

/// Stillinger–Weber as an energy of a site: the same text, without its structure.
struct Site;

impl Energy for Site {
    const ABOUT: About = StillingerWeber::ABOUT;
    type Params<T: Copy> = StillingerWeberParams<T>;
    type Prepared<T: Copy> = StillingerWeberPrepared<T>;
    fn prepare<T: Scalar>(p: &StillingerWeberParams<T>) -> StillingerWeberPrepared<T> {
        StillingerWeber::prepare(p)
    }
}

impl SiteEnergy for Site {
    fn reach<T: Scalar>(p: &StillingerWeberPrepared<T>) -> T {
        StillingerWeber::reach(p)
    }
    #[inline(always)]
    fn energy<'a, S: Scalar, P: Coefficient<S> + 'a>(
        neighbors: &[SiteNeighbor<S>],
        p: impl Fn(usize, usize) -> &'a StillingerWeberPrepared<P>,
    ) -> S {
        let (mut energy, mut features) = (S::constant(0.0), Vec::with_capacity(neighbors.len()));
        for (k, b) in neighbors.iter().enumerate() {
            let (r, own) = (Distance::from_squared(b.vector.norm_squared()), p(b.kind, b.kind));
            energy = energy + StillingerWeber::pair(r, own) * 0.5;
            features.push(StillingerWeber::feature(r, own));
            for (a, &feature) in neighbors[..k].iter().zip(&features) {
                let cos = a.vector.dot(b.vector) / (a.distance * b.distance);
                energy = energy + StillingerWeber::triplet(cos, feature, features[k], p(a.kind, b.kind));
            }
        }
        energy
    }
}

/// Copper, cut off at two lattice constants.
fn copper() -> System {
    System::crystal(LatticeKind::Fcc, 0.361, 18, 0.06, 1, Grid::METRIC, 0.06)
}

fn eam<F: embedding::Formula<Energy = SuttonChen>>() -> Racer {
    let mut pairs = TypePairs::none(1);
    pairs.set(0, 0, 0, 0.722);
    let law = EmbeddingLaw::<SuttonChen, F>::new(pairs);
    (vec![Entry::boxed("eam", table(&[vec![1.1947, 0.361, 9.0, 6.0, 39.432]]), law)], Vec::new())
}

/// Silicon.
fn silicon() -> System {
    System::crystal(LatticeKind::Diamond, 0.5431, 14, 0.06, 1, Grid::METRIC, 0.06)
}

/// ε, σ, a, λ, γ, cos θ₀, A, B, p, q
const SILICON: [f64; 10] = [209.2, 0.20951, 1.8, 21.0, 1.2, -1.0 / 3.0, 7.049556277, 0.6022245584, 4.0, 0.0];

fn of_one_type() -> TypeTriples {
    TypeTriples { types: 1, rows: vec![0] }
}

fn triplets<F: triplet::Formula<Energy = StillingerWeber>>() -> Racer {
    let law = TripletLaw::<StillingerWeber, F>::new(of_one_type());
    (vec![Entry::boxed("sw", table(&[SILICON.to_vec()]), law)], Vec::new())
}

fn sites() -> Racer {
    (vec![Entry::boxed("site", table(&[SILICON.to_vec()]), SiteLaw::<Site>::new(of_one_type()))], Vec::new())
}

pub fn compare(rows: &mut Table) {
    let (copper, silicon) = (copper(), silicon());
    for way in Way::all(false) {
        let racers = [eam::<ByHand<_>>(), eam::<Derived<_>>(), eam::<Alone<ByHand<_>>>(), eam::<Plain<_>>()];
        rows.compare("eam (sutton-chen)", &copper, way, racers);
        let racers = |automatic: Racer| {
            [triplets::<ByHand<_>>(), automatic, triplets::<Alone<ByHand<_>>>(), triplets::<Plain<_>>()]
        };
        rows.compare("stillinger-weber", &silicon, way, racers(triplets::<Derived<_>>()));
        // (the energies alone are those of the triplets)
        rows.compare("stillinger-weber as a site", &silicon, way, racers(sites()));
    }
}

pub fn reproducible(rows: &mut Table) {
    let (copper, silicon) = (copper(), silicon());
    for way in Way::all(false) {
        rows.reproducible("eam (sutton-chen)", &copper, way, &eam::<Derived<_>>);
        rows.reproducible("stillinger-weber", &silicon, way, &triplets::<Derived<_>>);
    }
}
