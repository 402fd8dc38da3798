//! Pair energies.

use crate::{Alone, Plain, Racer, System, Table, Way, table};
use md::autodiff::lanes::Lanes;
use md::forces::pair::{Derived, Formula, Joint, PairLaw, Special, TypePairs};
use md::forces::{Entry, Grid, Term};
use md::system::lattice::LatticeKind;
use potentials::pair::{LennardJones, LennardJonesParams, Morse, ReactionField};
use potentials::{About, Coefficient, Distance, Energy, PairEnergy, Scalar};
use std::marker::PhantomData;

/// A record of prepared parameters, a number a lane.
type Prepared<E, V> = <E as Energy>::Prepared<<V as Lanes>::Parameter>;

impl<E: PairEnergy> Formula for Plain<E> {
    type Energy = E;
    const FORCES: bool = false;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<E, V>) -> (V, V) {
        (E::energy::<V, V::Parameter>(Distance::from_squared(r2), p), V::constant(0.0))
    }
}

impl<F: Formula> Formula for Alone<F> {
    type Energy = F::Energy;
    const FORCES: bool = false;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<F::Energy, V>) -> (V, V) {
        F::pairs(r2, p)
    }
}

/// By hand, for its energy: E and −2 dE/dr².
struct ByHand<E>(PhantomData<E>);

/// E = c₁₂ r⁻¹² − c₆ r⁻⁶, −2 dE/dr² = (12 c₁₂ r⁻¹² − 6 c₆ r⁻⁶) r⁻².
impl Formula for ByHand<LennardJones> {
    type Energy = LennardJones;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<LennardJones, V>) -> (V, V) {
        lennard_jones(r2.recip(), numbers!(V; p.c6, p.c12))
    }
}

#[inline(always)]
fn lennard_jones<V: Lanes>(inverse2: V, [c6, c12]: [V; 2]) -> (V, V) {
    let x = inverse2 * inverse2 * inverse2;
    let repulsion = c12 * x;
    let e = x * (repulsion - c6);
    let g = (repulsion * 12.0 - c6 * 6.0) * (x * inverse2);
    (e, g)
}

/// E = D (x² − 2x), −2 dE/dr² = 2aD (x² − x)/r with x = e^(a (r₀ − r)).
impl Formula for ByHand<Morse> {
    type Energy = Morse;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<Morse, V>) -> (V, V) {
        let [d, a, r0] = numbers!(V; p.d, p.a, p.r0);
        let r = r2.sqrt();
        let x = (a * (r0 - r)).exp();
        let y = d * x;
        let e = y * (x - 2.0);
        let g = (y * x - y) * (a * 2.0 * r.recip());
        (e, g)
    }
}

/// By hand, where the root is needed anyway: r⁻² is the square of r⁻¹, which two energies share.
struct ByRoot<E>(PhantomData<E>);

/// As above.
impl Formula for ByRoot<LennardJones> {
    type Energy = LennardJones;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<LennardJones, V>) -> (V, V) {
        let inverse = r2.rsqrt();
        lennard_jones(inverse * inverse, numbers!(V; p.c6, p.c12))
    }
}

/// E = 1/r + k r² − c, −2 dE/dr² = r⁻³ − 2k.
impl Formula for ByRoot<ReactionField> {
    type Energy = ReactionField;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<ReactionField, V>) -> (V, V) {
        let [k, c] = numbers!(V; p.k, p.c);
        let inverse = r2.rsqrt();
        let e = inverse + (k * r2 - c);
        let g = inverse * inverse * inverse - k * 2.0;
        (e, g)
    }
}

/// Lennard-Jones as it stands in textbooks, in r and by its own parameters.
struct Textbook;

impl Energy for Textbook {
    const ABOUT: About = LennardJones::ABOUT;
    type Params<T: Copy> = LennardJonesParams<T>;
    type Prepared<T: Copy> = LennardJonesParams<T>;
    fn prepare<T: Scalar>(p: &LennardJonesParams<T>) -> LennardJonesParams<T> {
        *p
    }
}

impl PairEnergy for Textbook {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &LennardJonesParams<P>) -> S {
        let r = r.value();
        4.0 * p.epsilon * ((p.sigma / r).powi(12) - (p.sigma / r).powi(6))
    }
}

/// A liquid of Lennard-Jones density.
fn liquid(types: u32) -> System {
    let constant = (4.0f64 / 0.8442).cbrt();
    System::crystal(LatticeKind::Fcc, constant, 20, 0.09, types, Grid::REDUCED, 0.3)
}

/// The cut-off.
const CUTOFF: f64 = 2.5;

/// An energy between all pairs of types, whose parameters differ a little.
fn pair<F: Formula>(types: u32, params: &[f64]) -> Box<dyn Term> {
    let mut pairs = TypePairs::none(types as usize);
    let mut rows = Vec::new();
    for a in 0..types as usize {
        for b in 0..=a {
            pairs.set(a, b, rows.len(), CUTOFF);
            rows.push(params.iter().map(|x| x * (1.0 + 0.01 * (a + b) as f64)).collect());
        }
    }
    let law = PairLaw::<F::Energy, F>::new(pairs, Special::default());
    Entry::boxed(F::Energy::ABOUT.name, table(&rows), law)
}

fn one<F: Formula>(types: u32, params: &[f64]) -> Racer {
    (vec![pair::<F>(types, params)], Vec::new())
}

/// Lennard-Jones and a reaction field in one kernel.
fn with_charges<F: Formula<Energy = LennardJones>, G: Formula<Energy = ReactionField>>() -> Racer {
    let terms = vec![pair::<F>(1, &[1.0, 1.0]), pair::<G>(1, &[0.0, CUTOFF])];
    (terms, vec![Joint::of::<LennardJones, F, ReactionField, G>()])
}

pub fn compare(rows: &mut Table) {
    let (plain, mixture) = (liquid(1), liquid(3));
    for way in Way::all(true) {
        for (types, system) in [(1, &plain), (3, &mixture)] {
            let name = |name: &str| format!("{name}, {types} type(s)");
            let params = &[1.0, 1.0];
            let racers = [
                one::<ByHand<LennardJones>>(types, params),
                one::<Derived<LennardJones>>(types, params),
                one::<Alone<ByHand<LennardJones>>>(types, params),
                one::<Plain<LennardJones>>(types, params),
            ];
            rows.compare(&name("lennard-jones"), system, way, racers);
            let params = &[1.0, 5.0, 1.1];
            let racers = [
                one::<ByHand<Morse>>(types, params),
                one::<Derived<Morse>>(types, params),
                one::<Alone<ByHand<Morse>>>(types, params),
                one::<Plain<Morse>>(types, params),
            ];
            rows.compare(&name("morse"), system, way, racers);
        }
        let racers = [
            with_charges::<ByRoot<LennardJones>, ByRoot<ReactionField>>(),
            with_charges::<Derived<_>, Derived<_>>(),
            with_charges::<Alone<ByRoot<LennardJones>>, Alone<ByRoot<ReactionField>>>(),
            with_charges::<Plain<_>, Plain<_>>(),
        ];
        rows.compare("lennard-jones + reaction-field", &plain, way, racers);
        let params = &[1.0, 1.0];
        let racers = [
            one::<ByHand<LennardJones>>(1, params),
            one::<Derived<Textbook>>(1, params),
            one::<Alone<ByHand<LennardJones>>>(1, params),
            one::<Plain<Textbook>>(1, params),
        ];
        rows.compare("textbook lennard-jones", &plain, way, racers);
    }
}

pub fn reproducible(rows: &mut Table) {
    let liquid = liquid(1);
    for way in Way::all(true) {
        let alone = || one::<Derived<LennardJones>>(1, &[1.0, 1.0]);
        rows.reproducible("lennard-jones", &liquid, way, &alone);
        let charged = with_charges::<Derived<_>, Derived<_>>;
        rows.reproducible("lennard-jones + reaction-field", &liquid, way, &charged);
    }
}
