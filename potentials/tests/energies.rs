//! What must hold for every energy of the catalogue: derivatives of first and second order in coordinates and
//! parameters against differences, symmetries, ends at the cut-off, and what the list says of itself.

mod support;

use potentials::catalog::{Visitor, standard};
use potentials::cutoff::{Cut, CutEmbedding, Ending, ForceShift, Shift, Switch, Treatment, Truncate};
use potentials::many_body::Neural;
use potentials::*;
use std::marker::PhantomData;
use support::{Function, Limits, Random, SMOOTH, check, curvature, slope, value};

/// Parameters to test an energy with, in nm and kJ/mol. What is the cut-off in the input is [`CUTOFF`] here.
fn sample<E: Energy>() -> Vec<f64> {
    let value = |p: &Param| if p.source == Source::Cutoff { CUTOFF } else { p.sample() };
    E::ABOUT.params.iter().map(value).collect()
}

fn record<T: Copy, R: Record<T>>(p: &[T]) -> R {
    assert_eq!(p.len(), R::LEN);
    R::from_fn(|k| p[k])
}
fn prepared<E: Energy, T: Scalar>(p: &[T]) -> E::Prepared<T> {
    E::prepare(&record::<T, E::Params<T>>(p))
}
fn points<S: Scalar>(x: &[S]) -> Vec<Vec3<S>> {
    x.chunks(3).map(|c| Vec3::new(c[0], c[1], c[2])).collect()
}

struct Of<E>(PhantomData<E>);
impl<E> Of<E> {
    const NEW: Self = Of(PhantomData);
}

macro_rules! functions {
    ($($Name:ident <$E:ident: $Bound:path> |$x:ident, $p:ident, $o:ident| $body:expr;)*) => { $(
        struct $Name<$E>(Of<$E>);
        impl<$E> $Name<$E> {
            const NEW: Self = Self(Of::NEW);
        }
        impl<$E: $Bound> Function for $Name<$E> {
            fn eval<S: Scalar, P: Coefficient<S>>(&self, $x: &[S], p: &[P]) -> S {
                let $p = &prepared::<$E, P>(p);
                $body
            }
        }
    )* };
}

functions! {
    PairFunction<E: PairEnergy> |x, p, o| E::energy(Distance::new(x[0]), p);
    ExcludedFunction<E: PairEnergy> |x, p, o| E::excluded(Distance::new(x[0]), p);
    OwnFunction<E: PairEnergy> |x, p, o| E::own(p).lift() + x[0] * 0.0;
    BondFunction<E: BondEnergy> |x, p, o| E::energy(Distance::new(x[0]), p);
    AngleFunction<E: AngleEnergy> |x, p, o| {
        let r = points(x);
        E::energy(Angle::between(r[0] - r[1], r[2] - r[1]), p)
    };
    DihedralFunction<E: DihedralEnergy> |x, p, o| {
        let r = points(x);
        E::energy(Dihedral::along(r[1] - r[0], r[2] - r[1], r[3] - r[2]), p)
    };
    FieldFunction<E: FieldEnergy> |x, p, o| E::energy(Vec3::new(x[0], x[1], x[2]), p);
    DensityFunction<E: EmbeddingEnergy> |x, p, o| E::density(Distance::new(x[0]), p);
    EamPairFunction<E: EmbeddingEnergy> |x, p, o| E::pair(Distance::new(x[0]), p);
    EmbeddingFunction<E: EmbeddingEnergy> |x, p, o| E::embedding(x[0], p);
    TripletPairFunction<E: TripletEnergy> |x, p, o| E::pair(Distance::new(x[0]), p);
    FeatureFunction<E: TripletEnergy> |x, p, o| E::feature(Distance::new(x[0]), p);
    TripletFunction<E: TripletEnergy> |x, p, o| E::triplet(x[0], x[1], x[2], p);
    SiteFunction<E: SiteEnergy> |x, p, o| {
        let neighbors: Vec<_> = points(x)
            .into_iter()
            .map(|vector| SiteNeighbor { vector, distance: vector.norm(), kind: 0 })
            .collect();
        E::energy(&neighbors, |_, _| p)
    };
    GlobalFunction<E: GlobalEnergy> |x, p, o| E::energy(&points(x), &MASSES[..x.len() / 3], p);
}

const MASSES: [f64; 5] = [12.0, 1.0, 16.0, 14.0, 32.0];

struct TupleFunction<E, const N: usize>(Of<E>);
impl<E: TupleEnergy<N>, const N: usize> Function for TupleFunction<E, N> {
    fn eval<S: Scalar, P: Coefficient<S>>(&self, x: &[S], p: &[P]) -> S {
        let r = points(x);
        // relative to the first, as the trait says
        E::energy(std::array::from_fn(|k| r[k] - r[0]), &prepared::<E, P>(p))
    }
}

/// A chain of n atoms with bonds of random length, angles of at least 0.4 from straight, and its kin: stretched and
/// nearly straight ones.
struct Chains {
    random: Random,
}

const NEARLY_STRAIGHT: Limits = Limits { step: 2e-6, first: 1e-6, second: 1e-4, scale: 100.0 };

impl Chains {
    fn new() -> Self {
        Chains { random: Random(17) }
    }
    fn chain(&mut self, n: usize, length: f64, clear_of_straight: f64) -> Vec<f64> {
        let mut x = vec![0.3, -0.2, 0.1];
        let mut last: Option<[f64; 3]> = None;
        for _ in 1..n {
            let d = loop {
                let d = self.random.direction();
                let ok = last.is_none_or(|l| {
                    let cos: f64 = l.iter().zip(d).map(|(a, b)| a * b).sum();
                    cos.abs() < clear_of_straight.cos()
                });
                if ok {
                    break d;
                }
            };
            let r = length * self.random.within(0.8, 1.2);
            let end = x.len() - 3;
            for c in 0..3 {
                x.push(x[end + c] + d[c] * r);
            }
            last = Some(d);
        }
        x
    }
    /// The last bond continues the one before but for an angle of `bend`.
    fn nearly_straight(&mut self, n: usize, bend: f64) -> Vec<f64> {
        let mut x = self.chain(n, 0.12, 0.5);
        let at = |k: usize, x: &[f64]| Vec3::new(x[3 * k], x[3 * k + 1], x[3 * k + 2]);
        let (a, b) = (at(n - 3, &x), at(n - 2, &x));
        let along = b - a;
        let aside = along.cross(Vec3::constant(self.random.direction()));
        let aside = aside.scale(bend * along.norm() / aside.norm());
        let c = b + along * 1.1 + aside;
        x.truncate(3 * (n - 1));
        x.extend([c.x, c.y, c.z]);
        x
    }
    fn each(&mut self, n: usize, mut f: impl FnMut(&[f64], Limits)) {
        for _ in 0..12 {
            f(&self.chain(n, 0.12, 0.4), SMOOTH);
        }
        for _ in 0..4 {
            f(&self.chain(n, 0.5, 0.4), SMOOTH);
        }
        for bend in [0.05, 1e-3] {
            f(&self.nearly_straight(n, bend), NEARLY_STRAIGHT);
        }
    }
}

/// The positions turned and shifted.
fn turned(x: &[f64]) -> Vec<f64> {
    let mut random = Random(5);
    let axis = random.direction();
    let (sin, cos) = 0.83_f64.sin_cos();
    let shift = [0.7, -0.4, 0.2];
    let axis = Vec3::constant(axis);
    points(x)
        .into_iter()
        .flat_map(|r| {
            let r = r * cos + axis.cross(r) * sin + axis * (axis.dot(r) * (1.0 - cos));
            [r.x + shift[0], r.y + shift[1], r.z + shift[2]]
        })
        .collect()
}

fn same(what: &str, a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-10 * a.abs().max(1e-3), "{what}: {a} and {b}");
}

/// Derivatives and symmetries of everything.
struct Truth;

impl Visitor for Truth {
    fn pair<E: PairEnergy>(&mut self) {
        let name = E::ABOUT.name;
        let p = sample::<E>();
        let mut random = Random(1);
        for _ in 0..20 {
            let x = [random.within(0.29, 0.96)];
            check(name, &PairFunction::<E>::NEW, &x, &p, SMOOTH);
            if E::LEAVES_REMAINDER {
                check(&format!("{name}, excluded"), &ExcludedFunction::<E>::NEW, &x, &p, SMOOTH);
                check(&format!("{name}, own"), &OwnFunction::<E>::NEW, &x, &p, SMOOTH);
            }
        }
    }
    fn bond<E: BondEnergy>(&mut self) {
        let p = sample::<E>();
        let mut random = Random(2);
        // (the repulsion of the finitely extensible bond ends at 0.561, where its second derivative jumps)
        for (a, b) in [(0.2, 0.54), (0.6, 1.0)] {
            for _ in 0..10 {
                check(E::ABOUT.name, &BondFunction::<E>::NEW, &[random.within(a, b)], &p, SMOOTH);
            }
        }
    }
    fn angle<E: AngleEnergy>(&mut self) {
        let p = sample::<E>();
        Chains::new().each(3, |x, limits| {
            let f = AngleFunction::<E>::NEW;
            check(E::ABOUT.name, &f, x, &p, limits);
            same("turned angle", value(&f, x, &p), value(&f, &turned(x), &p));
        });
    }
    fn dihedral<E: DihedralEnergy>(&mut self) {
        let p = sample::<E>();
        Chains::new().each(4, |x, limits| {
            let f = DihedralFunction::<E>::NEW;
            check(E::ABOUT.name, &f, x, &p, limits);
            if limits.step == SMOOTH.step {
                same("turned dihedral", value(&f, x, &p), value(&f, &turned(x), &p));
            }
        });
    }
    fn tuple<E: TupleEnergy<N>, const N: usize>(&mut self) {
        let p = sample::<E>();
        Chains::new().each(N, |x, limits| {
            let f = TupleFunction::<E, N>(Of::NEW);
            check(E::ABOUT.name, &f, x, &p, limits);
            if limits.step == SMOOTH.step {
                same("turned tuple", value(&f, x, &p), value(&f, &turned(x), &p));
            }
        });
    }
    fn field<E: FieldEnergy>(&mut self) {
        let p = sample::<E>();
        let mut random = Random(3);
        let mut kinks = 0;
        for _ in 0..20 {
            let d = random.direction();
            let r = random.within(0.05, 0.8);
            let x = d.map(|c| c * r);
            // not across the corner of the second derivative
            let wall = (x[0] - 2.0 * x[1] + 0.5 * x[2]) / 5.25_f64.sqrt() - 0.2;
            if wall.abs() < 0.02 || (r - 0.3).abs() < 0.02 {
                kinks += 1;
                continue;
            }
            check(E::ABOUT.name, &FieldFunction::<E>::NEW, &x, &p, SMOOTH);
        }
        assert!(kinks < 10);
    }
    fn embedding<E: EmbeddingEnergy>(&mut self) {
        let p = sample::<E>();
        let mut random = Random(4);
        for _ in 0..20 {
            let x = [random.within(0.2, 0.9)];
            check("pair of embedding", &EamPairFunction::<E>::NEW, &x, &p, SMOOTH);
            check("density", &DensityFunction::<E>::NEW, &x, &p, SMOOTH);
            check("embedding", &EmbeddingFunction::<E>::NEW, &[random.within(0.5, 30.0)], &p, SMOOTH);
        }
    }
    fn triplet<E: TripletEnergy>(&mut self) {
        let p = sample::<E>();
        let reach = E::reach(&prepared::<E, f64>(&p));
        let mut random = Random(6);
        let fine = Limits { step: 1e-3, ..SMOOTH };
        for _ in 0..20 {
            let x = [reach * random.within(0.5, 0.97)];
            check("pair of triplets", &TripletPairFunction::<E>::NEW, &x, &p, fine);
            check("feature", &FeatureFunction::<E>::NEW, &x, &p, fine);
            let x = [random.within(-1.0, 1.0), random.within(0.0, 0.5), random.within(0.0, 0.5)];
            check("triplet", &TripletFunction::<E>::NEW, &x, &p, fine);
        }
        // at the reach, a little before it, and beyond: zero in value and derivatives
        for d in [-1e-3, -1e-9, -1e-16, 0.0, 1e-16, 1e-3, 1e5] {
            let x = [reach * (1.0 + d)];
            for all in [
                value(&FeatureFunction::<E>::NEW, &x, &p),
                slope(&FeatureFunction::<E>::NEW, &x, &p, 0),
                curvature(&FeatureFunction::<E>::NEW, &x, &p, 0, 0),
                value(&TripletPairFunction::<E>::NEW, &x, &p),
                slope(&TripletPairFunction::<E>::NEW, &x, &p, 0),
                curvature(&TripletPairFunction::<E>::NEW, &x, &p, 0, 0),
            ] {
                assert!(all.abs() < 1e-200, "{all} at {} of the reach", 1.0 + d);
            }
        }
    }
    fn site<E: SiteEnergy>(&mut self) {
        let p = sample::<E>();
        let mut random = Random(7);
        let f = SiteFunction::<E>::NEW;
        for n in [1, 2, 3, 5] {
            for _ in 0..4 {
                // clear of the two corners of the second derivative, some between them, some beyond
                let x: Vec<f64> = (0..n)
                    .flat_map(|k| {
                        let r = match k {
                            0 => random.within(0.21, 0.27),
                            1 => random.within(0.285, 0.315),
                            4 => random.within(0.325, 0.4),
                            _ => random.within(0.21, 0.315),
                        };
                        let r = if (r - 0.28).abs() < 0.003 { 0.27 } else { r };
                        random.direction().map(|c| c * r)
                    })
                    .collect();
                check(
                    E::ABOUT.name,
                    &f,
                    &x,
                    &p,
                    Limits { step: 2e-4, first: 1e-7, second: 1e-7, scale: 0.0 },
                );
                let origin = turned(&[0.0; 3]);
                let rotated: Vec<f64> =
                    turned(&x).iter().enumerate().map(|(k, c)| c - origin[k % 3]).collect();
                same("turned site", value(&f, &x, &p), value(&f, &rotated, &p));
                let backward: Vec<f64> = x.chunks(3).rev().flatten().copied().collect();
                same("neighbours in another order", value(&f, &x, &p), value(&f, &backward, &p));
            }
        }
    }
    /// (its form is data: the evaluators' tests have some)
    fn neural(&mut self) {}
    fn global<E: GlobalEnergy>(&mut self) {
        let p = sample::<E>();
        let mut chains = Chains::new();
        let f = GlobalFunction::<E>::NEW;
        for _ in 0..10 {
            let x = chains.chain(5, 0.2, 0.3);
            check(E::ABOUT.name, &f, &x, &p, SMOOTH);
            same("turned group", value(&f, &x, &p), value(&f, &turned(&x), &p));
        }
    }
}

#[test]
fn derivatives_of_every_energy() {
    standard(&mut Truth);
}

/// Ends at the cut-off of every pair energy.
struct Ends;

const CUTOFF: f64 = 1.0;
const INNER: f64 = 0.8;

impl Ends {
    fn treated<E: PairEnergy, C: Treatment>() {
        let what = format!("{}, {}", E::ABOUT.name, C::ENDING.name());
        let mut p = sample::<E>();
        let plain = p.clone();
        p.extend([CUTOFF, INNER]);
        let f = PairFunction::<Cut<E, C>>::NEW;
        let bare = PairFunction::<E>::NEW;
        for x in [0.35, 0.52, 0.77, 0.85, 0.9, 0.96] {
            check(&what, &f, &[x], &p, SMOOTH);
        }
        let at = |x: f64| [value(&f, &[x], &p), slope(&f, &[x], &p, 0), curvature(&f, &[x], &p, 0, 0)];
        let untreated = |x: f64| {
            [value(&bare, &[x], &plain), slope(&bare, &[x], &plain, 0), curvature(&bare, &[x], &plain, 0, 0)]
        };
        let scale = untreated(CUTOFF).map(f64::abs).into_iter().sum::<f64>();
        for (order, d) in at(CUTOFF).into_iter().enumerate() {
            let ends = d.abs() <= 1e-11 * scale;
            assert_eq!(
                ends,
                order as i32 <= C::ENDING.smoothness(),
                "{what}: derivative {order} at the cut-off is {d}"
            );
        }
        if C::ENDING == Ending::Switch {
            // untouched up to where the switch begins, with two derivatives
            for x in [0.6, INNER] {
                for (a, b) in at(x).into_iter().zip(untreated(x)) {
                    same(&what, a, b);
                }
            }
        }
    }
    /// No NaN and no infinity where padding atoms are.
    fn padding<E: PairEnergy>(p: &[f64]) {
        let p = prepared::<E, f64>(p);
        for r2 in [1e4, 1e6, 1e10, 1e20, 1e30] {
            let r2: Dual<Dual<f64>> = Dual::new(Dual::variable(r2), Dual::passive(1.0));
            for e in [E::energy(Distance::from_squared(r2), &p), E::excluded(Distance::from_squared(r2), &p)]
            {
                for d in [e.value.value, e.value.tangent, e.tangent.value, e.tangent.tangent] {
                    assert!(d.is_finite(), "{}: {d} at r2 = {}", E::ABOUT.name, r2.value.value);
                }
            }
        }
    }
}

impl Visitor for Ends {
    fn pair<E: PairEnergy>(&mut self) {
        let mut p = sample::<E>();
        Self::padding::<E>(&p);
        if E::ENDS_AT_CUTOFF {
            let f = PairFunction::<E>::NEW;
            assert!(value(&f, &[CUTOFF], &p).abs() < 1e-12, "{} at its cut-off", E::ABOUT.name);
            return;
        }
        Self::treated::<E, Truncate>();
        Self::treated::<E, Shift>();
        Self::treated::<E, ForceShift>();
        Self::treated::<E, Switch>();
        p.extend([CUTOFF, INNER]);
        Self::padding::<Cut<E, Shift>>(&p);
        Self::padding::<Cut<E, ForceShift>>(&p);
        Self::padding::<Cut<E, Switch>>(&p);
    }
    fn bond<E: BondEnergy>(&mut self) {}
    fn angle<E: AngleEnergy>(&mut self) {}
    fn dihedral<E: DihedralEnergy>(&mut self) {}
    fn tuple<E: TupleEnergy<N>, const N: usize>(&mut self) {}
    fn field<E: FieldEnergy>(&mut self) {}
    fn embedding<E: EmbeddingEnergy>(&mut self) {
        fn ends<E: EmbeddingEnergy, C: Treatment>() {
            let mut p = sample::<E>();
            p.extend([CUTOFF, INNER]);
            let pair = EamPairFunction::<CutEmbedding<E, C>>::NEW;
            let density = DensityFunction::<CutEmbedding<E, C>>::NEW;
            for x in [0.3, 0.6, 0.85, 0.95] {
                check("cut pair", &pair, &[x], &p, SMOOTH);
                check("cut density", &density, &[x], &p, SMOOTH);
            }
            let x = [CUTOFF];
            let derivatives = [
                [value(&pair, &x, &p), value(&density, &x, &p)],
                [slope(&pair, &x, &p, 0), slope(&density, &x, &p, 0)],
                [curvature(&pair, &x, &p, 0, 0), curvature(&density, &x, &p, 0, 0)],
            ];
            for (order, [a, b]) in derivatives.into_iter().enumerate() {
                let ends = a.abs() < 1e-12 && b.abs() < 1e-12;
                assert_eq!(
                    ends,
                    order as i32 <= C::ENDING.smoothness(),
                    "{} {order}: {a} {b}",
                    C::ENDING.name()
                );
            }
        }
        ends::<E, Truncate>();
        ends::<E, Shift>();
        ends::<E, ForceShift>();
        ends::<E, Switch>();
    }
    fn triplet<E: TripletEnergy>(&mut self) {}
    fn site<E: SiteEnergy>(&mut self) {}
    fn neural(&mut self) {}
    fn global<E: GlobalEnergy>(&mut self) {}
}

#[test]
fn every_pair_energy_ends_as_its_treatment_promises() {
    standard(&mut Ends);
}

#[test]
fn energies_with_an_end_of_their_own_keep_what_they_say() {
    let p = [2.4, 1.0];
    let dsf = PairFunction::<pair::DampedShiftedForce>::NEW;
    assert!(slope(&dsf, &[1.0], &p, 0).abs() < 1e-12);
    let soft = PairFunction::<pair::SoftCosine>::NEW;
    assert!(slope(&soft, &[1.0], &[20.0, 1.0], 0).abs() < 1e-12);
    // a conductor beyond the cut-off leaves no force there; a dielectric does
    let field = PairFunction::<pair::ReactionField>::NEW;
    assert!(slope(&field, &[1.0], &[0.0, 1.0], 0).abs() < 1e-15);
    assert!(slope(&field, &[1.0], &[61.0, 1.0], 0) < -0.01);
}

/// The list itself.
#[derive(Default)]
struct Names(Vec<(&'static str, &'static str)>);

impl Names {
    fn add<E: Energy>(&mut self, kind: &'static str) {
        let about = E::ABOUT;
        let kebab = |s: &str| {
            !s.is_empty()
                && s.split('-')
                    .all(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
        };
        assert!(kebab(about.name), "{}", about.name);
        assert!(!self.0.contains(&(kind, about.name)), "two {kind} energies called {}", about.name);
        self.0.push((kind, about.name));
        assert_eq!(about.params.len(), <E::Params<f64> as Record<f64>>::LEN, "{}", about.name);
        for text in [about.summary, about.formula, about.source] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", about.name);
        }
        assert!(about.summary.ends_with('.'), "{}", about.name);
        for (k, param) in about.params.iter().enumerate() {
            let what = format!("{} of {}", param.name, about.name);
            assert!(kebab(&param.name.to_lowercase()), "{what}");
            assert!(about.params[..k].iter().all(|p| p.name != param.name), "{what} twice");
            assert!(about.formula.contains(param.name), "{what} is not in the formula");
            assert!(!param.doc.is_empty() && !param.doc.ends_with('.'), "{what}");
            let x = param.sample();
            assert!(param.range.contains(x), "{what}: {x} is not allowed, give it an `.example(…)` that is");
            if let param::Source::Default(x) = param.source {
                assert!(param.range.contains(x), "{what}: the default {x} is not allowed");
            }
        }
    }
}

impl Visitor for Names {
    fn pair<E: PairEnergy>(&mut self) {
        self.add::<E>("pair");
    }
    fn bond<E: BondEnergy>(&mut self) {
        self.add::<E>("bond");
    }
    fn angle<E: AngleEnergy>(&mut self) {
        self.add::<E>("angle");
    }
    fn dihedral<E: DihedralEnergy>(&mut self) {
        self.add::<E>("dihedral");
    }
    fn tuple<E: TupleEnergy<N>, const N: usize>(&mut self) {
        self.add::<E>("tuple");
    }
    fn field<E: FieldEnergy>(&mut self) {
        self.add::<E>("field");
    }
    fn embedding<E: EmbeddingEnergy>(&mut self) {
        self.add::<E>("embedding");
    }
    fn triplet<E: TripletEnergy>(&mut self) {
        self.add::<E>("triplet");
    }
    fn site<E: SiteEnergy>(&mut self) {
        self.add::<E>("site");
    }
    fn neural(&mut self) {
        self.add::<Neural>("neural");
    }
    fn global<E: GlobalEnergy>(&mut self) {
        self.add::<E>("global");
    }
}

#[test]
fn the_list_is_in_order() {
    let mut names = Names::default();
    standard(&mut names);
    assert!(names.0.len() >= 39);
}
