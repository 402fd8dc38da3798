//! Energies of bonded atoms.

use crate::{Alone, Plain, Racer, System, Table, Way, table};
use md::autodiff::lanes::Lanes;
use md::forces::tuple::{Bonded, OfAngle, OfDihedral, OfPositions, TupleLaw};
use md::forces::{Entry, Grid};
use md::system::Cell;
use potentials::angle::HarmonicAngle;
use potentials::dihedral::PeriodicDihedral;
use potentials::{About, Coefficient, Energy, Scalar, TupleEnergy, Vec3};
use std::marker::PhantomData;

/// Energies of N positions and their derivatives.
trait Gradient<E: TupleEnergy<N>, const N: usize>: Send + Sync + 'static {
    /// Whether there are derivatives.
    const FORCES: bool = true;
    /// The energy, and its derivatives in the positions (but the first, which is the origin).
    fn gradient<V: Lanes>(x: [Vec3<V>; N], p: &E::Prepared<V::Parameter>) -> (V, [Vec3<V>; N]);
}

impl<E: TupleEnergy<N>, const N: usize> Gradient<E, N> for Plain<E> {
    const FORCES: bool = false;
    #[inline(always)]
    fn gradient<V: Lanes>(x: [Vec3<V>; N], p: &E::Prepared<V::Parameter>) -> (V, [Vec3<V>; N]) {
        (E::energy::<V, V::Parameter>(x, p), [Vec3::constant([0.0; 3]); N])
    }
}

impl<E: TupleEnergy<N>, G: Gradient<E, N>, const N: usize> Gradient<E, N> for Alone<G> {
    const FORCES: bool = false;
    #[inline(always)]
    fn gradient<V: Lanes>(x: [Vec3<V>; N], p: &E::Prepared<V::Parameter>) -> (V, [Vec3<V>; N]) {
        G::gradient(x, p)
    }
}

/// An energy differentiated by G.
struct By<E, G>(PhantomData<(E, G)>);

impl<E: Energy, G: Send + Sync + 'static> Energy for By<E, G> {
    const ABOUT: About = E::ABOUT;
    type Params<T: Copy> = E::Params<T>;
    type Prepared<T: Copy> = E::Prepared<T>;
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> {
        E::prepare(p)
    }
}

impl<E: TupleEnergy<N>, G: Send + Sync + 'static, const N: usize> TupleEnergy<N> for By<E, G> {
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; N], p: &E::Prepared<P>) -> S {
        E::energy(r, p)
    }
}

impl<E: TupleEnergy<N>, G: Gradient<E, N>, const N: usize> Bonded<N> for By<E, G> {
    const FORCES: bool = G::FORCES;
    #[inline(always)]
    fn gradient<V: Lanes>(x: &[[V; 3]; N], p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; N]) {
        // (loops, since the standard library's `from_fn` is not inlined)
        let (mut places, mut slopes) = ([Vec3::constant([0.0; 3]); N], [[V::constant(0.0); 3]; N]);
        for a in 1..N {
            places[a] = Vec3::new(x[a][0], x[a][1], x[a][2]);
        }
        let (e, g) = G::gradient(places, p);
        for a in 1..N {
            slopes[a] = [g[a].x, g[a].y, g[a].z];
        }
        (e, slopes)
    }
}

/// By hand.
struct ByHand;

type Angle = OfAngle<HarmonicAngle>;
type Dihedral = OfDihedral<PeriodicDihedral>;

/// With a, b from the middle atom to its partners: ∂θ/∂a = (cos θ a/|a|² − b/|a||b|)/sin θ, and so for b (M. P. Allen
/// and D. J. Tildesley, Computer Simulation of Liquids, 2nd ed., appendix C).
impl Gradient<Angle, 3> for ByHand {
    #[inline(always)]
    fn gradient<V: Lanes>(
        x: [Vec3<V>; 3],
        p: &<Angle as Energy>::Prepared<V::Parameter>,
    ) -> (V, [Vec3<V>; 3]) {
        let [k, theta0] = numbers!(V; p.k, p.theta0);
        let (a, b) = (-x[1], x[2] - x[1]);
        let (a2, b2) = (a.norm_squared(), b.norm_squared());
        let inverse = (a2 * b2).rsqrt();
        let cos = a.dot(b) * inverse;
        let sin = a.cross(b).norm_squared().sqrt() * inverse;
        let stretch = sin.atan2(cos) - theta0;
        let energy = k * stretch * stretch * 0.5;
        let slope = k * stretch / sin;
        let (across, along) = (slope * inverse, slope * cos * inverse * inverse);
        let of_a = a.scale(along * b2) - b.scale(across);
        let of_b = b.scale(along * a2) - a.scale(across);
        (energy, [of_a, -(of_a + of_b), of_b])
    }
}

/// With F = r₁ − r₂, G = r₂ − r₃, H = r₄ − r₃, A = F × G, B = H × G: sin φ = −|G| F·B/|A||B|, cos φ = A·B/|A||B|,
/// ∂φ/∂r₁ = −|G| A/A², ∂φ/∂r₄ = |G| B/B², and with T = F·G A/(A²|G|) − H·G B/(B²|G|) ∂φ/∂r₂ = T − ∂φ/∂r₁,
/// ∂φ/∂r₃ = −T − ∂φ/∂r₄ (A. Blondel and M. Karplus, J. Comput. Chem. 17, 1132 (1996), eq. 27). The energy is
/// P(cos φ) + sin φ Q(cos φ), so that dE/dφ = cos φ Q − sin φ (P′ + sin φ Q′).
impl Gradient<Dihedral, 4> for ByHand {
    #[inline(always)]
    fn gradient<V: Lanes>(
        x: [Vec3<V>; 4],
        p: &<Dihedral as Energy>::Prepared<V::Parameter>,
    ) -> (V, [Vec3<V>; 4]) {
        let (f, g, h) = (-x[1], x[1] - x[2], x[3] - x[2]);
        let (a, b) = (f.cross(g), h.cross(g));
        let (a2, b2, g2) = (a.norm_squared(), b.norm_squared(), g.norm_squared());
        let (inverse, inverse_g) = ((a2 * b2).rsqrt(), g2.rsqrt());
        let length = g2 * inverse_g;
        let cos = a.dot(b) * inverse;
        let sin = -(f.dot(b) * (length * inverse));
        let (even, even_slope) = polynomial(cos, numbers!(V; p.a0, p.a1, p.a2, p.a3, p.a4, p.a5, p.a6));
        let (odd, odd_slope) = polynomial(cos, numbers!(V; p.b0, p.b1, p.b2, p.b3, p.b4, p.b5));
        let energy = sin.fma(odd, even);
        let slope = cos * odd - sin * sin.fma(odd_slope, even_slope);
        let square = slope * inverse * inverse;
        // dE/dφ over A² and B²
        let (by_a, by_b) = (square * b2, square * a2);
        let (of_1, of_4) = (a.scale(-(length * by_a)), b.scale(length * by_b));
        let turn = a.scale(f.dot(g) * (by_a * inverse_g)) - b.scale(h.dot(g) * (by_b * inverse_g));
        (energy, [of_1, turn - of_1, -(turn + of_4), of_4])
    }
}

/// Σ cₖ xᵏ and its derivative, by Horner's rule.
#[inline(always)]
fn polynomial<V: Lanes, const N: usize>(x: V, c: [V; N]) -> (V, V) {
    let (mut value, mut slope) = (c[N - 1], V::constant(0.0));
    for k in (0..N - 1).rev() {
        slope = if k == N - 2 { value } else { slope.fma(x, value) };
        value = value.fma(x, c[k]);
    }
    (value, slope)
}

/// Atoms of a chain.
const LENGTH: usize = 100;
/// Chains.
const CHAINS: usize = 300;

/// Zigzag chains side by side, shaken.
fn chains() -> System {
    let edge = 0.128 * LENGTH as f64;
    let cell = Cell::new([[edge, 0.0, 0.0], [0.0, edge, 0.0], [0.0, 0.0, edge]], [true; 3]).unwrap();
    let at = |k: usize| {
        let (chain, along) = (k / LENGTH, k % LENGTH);
        let aside = 0.45 * (along as f64 * 1.3).sin().signum();
        [
            0.128 * along as f64,
            0.4 * (chain % 20) as f64 + 0.1 * aside,
            0.4 * (chain / 20) as f64 + 0.09 * ((along / 2 % 2) as f64),
        ]
    };
    System::new(cell, (0..CHAINS * LENGTH).map(at).collect(), 0.05, 1, Grid::METRIC, 0.1)
}

/// An energy of all N atoms in a row.
fn racer<E: Bonded<N>, const N: usize>(params: &[f64]) -> Racer {
    let starts = (0..CHAINS * LENGTH).filter(|k| k % LENGTH + N <= LENGTH);
    let tuples: Vec<[u32; N]> = starts.map(|k| std::array::from_fn(|a| (k + a) as u32)).collect();
    let rows = vec![0; tuples.len()];
    let law = TupleLaw::<E, N>::new(CHAINS * LENGTH, tuples, rows);
    (vec![Entry::boxed(E::ABOUT.name, table(&[params.to_vec()]), law)], Vec::new())
}

fn row<E: TupleEnergy<N>, const N: usize>(
    rows: &mut Table,
    name: &str,
    system: &System,
    way: Way,
    params: &[f64],
) where
    ByHand: Gradient<E, N>,
{
    let racers = [
        racer::<By<E, ByHand>, N>(params),
        racer::<OfPositions<E>, N>(params),
        racer::<By<E, Alone<ByHand>>, N>(params),
        racer::<By<E, Plain<E>>, N>(params),
    ];
    rows.compare(name, system, way, racers);
}

const ANGLE: [f64; 2] = [380.0, 1.911];
const DIHEDRAL: [f64; 3] = [7.0, 3.0, 0.6];

pub fn compare(rows: &mut Table) {
    let chains = chains();
    for way in Way::all(false) {
        row::<Angle, 3>(rows, "harmonic angle", &chains, way, &ANGLE);
        row::<Dihedral, 4>(rows, "periodic dihedral", &chains, way, &DIHEDRAL);
    }
}

pub fn reproducible(rows: &mut Table) {
    let chains = chains();
    for way in Way::all(false) {
        rows.reproducible("harmonic angle", &chains, way, &|| racer::<OfPositions<Angle>, 3>(&ANGLE));
        rows.reproducible("periodic dihedral", &chains, way, &|| {
            racer::<OfPositions<Dihedral>, 4>(&DIHEDRAL)
        });
    }
}
