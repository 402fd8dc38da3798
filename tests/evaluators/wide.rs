//! Energies of bonded atoms in numbers twice as wide.
//!
//! Near a straight angle the force is so sensitive to positions that differences of an energy in `f64` are good to
//! 1e-8 of it at best, whatever the step. In double-double numbers (32 digits) rounding has no say.

use super::subjects::Subject;
use super::systems::System;
use md::catalog::EnergyKind;
use md::forces::ParameterTable;
use md::forces::tuple::{OfAngle, OfBond, OfDihedral};
use md::potentials::catalog::{Visitor, standard};
use md::potentials::{
    AngleEnergy, BondEnergy, DihedralEnergy, EmbeddingEnergy, FieldEnergy, GlobalEnergy, PairEnergy, Scalar,
    SiteEnergy, TripletEnergy, TupleEnergy, Vec3, lane_operators, ratio_times,
};
use md::system::{Cell, Positions};
use std::ops::{Add, Div, Mul, Neg, Sub};
use twofloat::TwoFloat;

/// A double-double number.
#[derive(Clone, Copy, Debug)]
pub struct Wide(pub TwoFloat);

macro_rules! operators {
    ($($T:ident $g:ident $f:ident),*) => { $(
        impl $T for Wide {
            type Output = Wide;
            fn $g(self, o: Wide) -> Wide { Wide(self.0.$f(o.0)) }
        }
        impl $T<f64> for Wide {
            type Output = Wide;
            fn $g(self, o: f64) -> Wide { Wide(self.0.$f(TwoFloat::from(o))) }
        }
        impl $T<Wide> for f64 {
            type Output = Wide;
            fn $g(self, o: Wide) -> Wide { Wide(TwoFloat::from(self).$f(o.0)) }
        }
    )* };
}
operators!(Add add add, Sub sub sub, Mul mul mul, Div div quotient);

/// A quotient with all digits: that of the crate (version 0.8.4) may have no more than half of them.
trait Quotient {
    fn quotient(self, o: Self) -> Self;
}
impl Quotient for TwoFloat {
    fn quotient(self, o: Self) -> Self {
        let q = self / o;
        q + (self - q * o) / o
    }
}
lane_operators!(Wide);
ratio_times!([] Wide);

impl Neg for Wide {
    type Output = Wide;
    fn neg(self) -> Wide {
        Wide(-self.0)
    }
}

impl Wide {
    fn plain(self) -> f64 {
        self.0.into()
    }
    /// The sum of xᵏ / (`first` ⋯ (`first` + k `by` − 1)) from k = 0 on.
    fn series(self, first: u32, by: u32) -> Self {
        let (mut term, mut sum, mut next) = (Self::constant(1.0), Self::constant(1.0), first);
        while term.plain().abs() > 1e-34 {
            for _ in 0..by {
                term = term / f64::from(next);
                next += 1;
            }
            term = term * self;
            sum = sum + term;
        }
        sum
    }
}

impl Scalar for Wide {
    type Mask = bool;
    fn constant(x: f64) -> Self {
        Wide(TwoFloat::from(x))
    }
    fn vanishes(self) -> bool {
        self.0 == TwoFloat::from(0.0)
    }
    fn recip(self) -> Self {
        1.0 / self
    }
    fn sqrt(self) -> Self {
        Wide(self.0.sqrt())
    }
    fn rsqrt(self) -> Self {
        1.0 / self.sqrt()
    }
    fn exp(self) -> Self {
        // e^x = (e^(x/2^10))^(2^10)
        (0..10).fold((self / 1024.0).series(1, 1), |e, _| e.squared())
    }
    fn ln(self) -> Self {
        // one step of Newton's from 16 digits
        let y = Self::constant(self.plain().ln());
        y + (self * (-y).exp() - 1.0)
    }
    fn sin(self) -> Self {
        self * (-self.squared()).series(2, 2)
    }
    fn cos(self) -> Self {
        (-self.squared()).series(1, 2)
    }
    fn tanh(self) -> Self {
        let e = (self * 2.0).exp();
        (e - 1.0) / (e + 1.0)
    }
    fn acos(self) -> Self {
        (1.0 - self.squared()).relu().sqrt().atan2(self)
    }
    fn atan2(self, x: Self) -> Self {
        // the point turned by 16 digits of its angle; what is left is small
        let angle = Self::constant(self.plain().atan2(x.plain()));
        angle + (self * angle.cos() - x * angle.sin()) / (self.squared() + x.squared()).sqrt()
    }
    fn erfc(self) -> Self {
        if self.plain() < 0.0 {
            return 2.0 - (-self).erfc();
        }
        let (square, root_of_pi) = (self.squared(), Self::constant(0.0).acos() * 2.0);
        let peak = (-square).exp() / root_of_pi.sqrt();
        if self.plain() < 3.0 {
            // erf x = 2x exp(−x²)/√π Σ (2x²)ⁿ / (1·3 ⋯ (2n + 1)), all of one sign
            let (mut term, mut sum, mut n) = (Self::constant(1.0), Self::constant(1.0), 1.0);
            while term.plain() > 1e-34 * sum.plain() {
                term = term * square * 2.0 / (2.0 * n + 1.0);
                sum = sum + term;
                n += 1.0;
            }
            return 1.0 - peak * self * sum * 2.0;
        }
        // exp(−x²)/√π / (x + ½/(x + 1/(x + 3/2/(x + ⋯))))
        let fraction = (1..400).rev().fold(self, |below, n| self + (0.5 * f64::from(n)) / below);
        peak / fraction
    }
    fn powf(self, p: f64) -> Self {
        (self.ln() * p).exp()
    }
    fn lt(self, o: Self) -> bool {
        self.0 < o.0
    }
    fn le(self, o: Self) -> bool {
        self.0 <= o.0
    }
    fn select(mask: bool, a: Self, b: Self) -> Self {
        if mask { a } else { b }
    }
}

/// One tuple's energy, by what the user wrote, the row and the positions.
type OfTuple = fn(&ParameterTable, usize, &[Vec3<Wide>]) -> Wide;

fn of_tuple<E: TupleEnergy<N>, const N: usize>() -> OfTuple {
    |table, row, r| {
        let theta: Vec<Wide> = table.values().iter().map(|&x| Wide::constant(x)).collect();
        E::energy::<Wide, Wide>(std::array::from_fn(|k| r[k]), &E::prepare(&table.params(&theta, row)))
    }
}

/// Looks for one energy of bonded atoms.
struct Search<'a> {
    kind: EnergyKind,
    name: &'a str,
    found: Option<OfTuple>,
}

impl Search<'_> {
    fn see<E: TupleEnergy<N>, const N: usize>(&mut self, kind: EnergyKind) {
        if (kind, E::ABOUT.name) == (self.kind, self.name) {
            self.found = Some(of_tuple::<E, N>());
        }
    }
}

impl Visitor for Search<'_> {
    fn pair<E: PairEnergy>(&mut self) {}
    fn bond<E: BondEnergy>(&mut self) {
        self.see::<OfBond<E>, 2>(EnergyKind::Bond);
    }
    fn angle<E: AngleEnergy>(&mut self) {
        self.see::<OfAngle<E>, 3>(EnergyKind::Angle);
    }
    fn dihedral<E: DihedralEnergy>(&mut self) {
        self.see::<OfDihedral<E>, 4>(EnergyKind::Dihedral);
    }
    fn tuple<E: TupleEnergy<N>, const N: usize>(&mut self) {
        for kind in [EnergyKind::Bond, EnergyKind::Angle, EnergyKind::Improper] {
            self.see::<E, N>(kind);
        }
    }
    fn field<E: FieldEnergy>(&mut self) {}
    fn embedding<E: EmbeddingEnergy>(&mut self) {}
    fn triplet<E: TripletEnergy>(&mut self) {}
    fn site<E: SiteEnergy>(&mut self) {}
    fn neural(&mut self) {}
    fn global<E: GlobalEnergy>(&mut self) {}
}

/// An energy of bonded atoms in a system, in wide numbers.
pub struct WideEnergy<'a> {
    of_tuple: OfTuple,
    table: ParameterTable,
    tuples: Vec<(&'a [u32], u32)>,
    cell: Cell,
    positions: Positions,
}

impl<'a> WideEnergy<'a> {
    /// A subject's, if it is one of bonded atoms.
    pub fn new(subject: &Subject, system: &'a System) -> Option<Self> {
        let (kind, name) = (subject.listed.kind, subject.listed.about.name);
        let mut search = Search { kind, name, found: None };
        standard(&mut search);
        let cell = system.cell();
        let positions = system.positions(&cell);
        let (table, tuples) = (subject.numbers(), subject.tuples(system).collect());
        search.found.map(|of_tuple| Self { of_tuple, table, tuples, cell, positions })
    }

    /// The energy of all tuples, or of those with this atom, where every atom is moved by what is said of it.
    fn energy(&self, table: &ParameterTable, of: Option<usize>, moves: &dyn Fn(usize) -> [f64; 3]) -> Wide {
        let mut energy = Wide::constant(0.0);
        let counts = |atoms: &[u32]| of.is_none_or(|i| atoms.contains(&(i as u32)));
        for &(atoms, row) in self.tuples.iter().filter(|(atoms, _)| counts(atoms)) {
            // (the vectors from atom to atom are those that the engine computes)
            let mut r = vec![Vec3::constant([0.0; 3])];
            for pair in atoms.windows(2) {
                let d = self.positions.displacement(pair[0] as usize, pair[1] as usize);
                let d = Vec3::constant(self.cell.cartesian(self.cell.nearest(d)));
                r.push(r[r.len() - 1] + d);
            }
            for (r, &atom) in r.iter_mut().zip(atoms) {
                *r = *r + Vec3::constant(moves(atom as usize));
            }
            energy = energy + (self.of_tuple)(table, row as usize, &r);
        }
        energy
    }

    /// How many numbers the parameters are.
    pub fn parameters(&self) -> usize {
        self.table.values().len()
    }

    /// By how much the energy changes where atom i is moved by h along an axis.
    pub fn change(&self, i: usize, axis: usize, h: f64) -> f64 {
        let step = |atom: usize| {
            let mut step = [0.0; 3];
            step[axis] = if atom == i { h } else { 0.0 };
            step
        };
        let energy = |moves: &dyn Fn(usize) -> [f64; 3]| self.energy(&self.table, Some(i), moves);
        (energy(&step) - energy(&|_| [0.0; 3])).plain()
    }

    /// H v of atom i along an axis, by a difference of differences.
    pub fn product(&self, i: usize, axis: usize, v: &[[f64; 3]]) -> f64 {
        let h = 1e-10;
        mixed(h, |s, t| {
            let moves = |atom: usize| {
                let mut moves = v[atom].map(|x| t * h * x);
                moves[axis] += if atom == i { s * h } else { 0.0 };
                moves
            };
            self.energy(&self.table, Some(i), &moves)
        })
    }

    /// θ ∂²E/∂θ∂v of a parameter, by a difference of differences.
    pub fn slope(&self, parameter: usize, v: &[[f64; 3]]) -> f64 {
        let (h, at) = (1e-10, self.table.values()[parameter]);
        let changed = |s: f64| at * (1.0 + s * h);
        // (the steps of θ are those after rounding)
        let steps = (changed(1.0) - changed(-1.0)) / (2.0 * h * at);
        mixed(h, |s, t| {
            let mut values = self.table.values().to_vec();
            values[parameter] = changed(s);
            let mut table = self.table.clone();
            table.set_values(&values);
            self.energy(&table, None, &|atom| v[atom].map(|x| t * h * x))
        }) / steps
    }
}

/// The mixed second derivative of f(s h, t h).
fn mixed(h: f64, f: impl Fn(f64, f64) -> Wide) -> f64 {
    let sum = (f(1.0, 1.0) - f(1.0, -1.0)) - (f(-1.0, 1.0) - f(-1.0, -1.0));
    (sum / (4.0 * h * h)).plain()
}

/// x, and erfc x as a sum of two, by mpmath.
const ERFC: [(f64, f64, f64); 7] = [
    (-1.5, 1.9661051464753108, -3.3867031441680696e-17),
    (0.25, 0.7236736098317631, -3.128407501007366e-17),
    (1.0, 0.15729920705028513, -2.954563826510312e-18),
    (2.875, 4.785483974377341e-05, 1.2868001298233825e-21),
    (3.0, 2.209049699858544e-05, 1.5563377960343457e-22),
    (5.0, 1.537459794428035e-12, -8.569418222079096e-29),
    (9.5, 3.7692144856548797e-41, 2.2773119745781305e-57),
];

/// To 24 digits.
#[test]
fn error_function_of_wide_numbers() {
    for (x, high, low) in ERFC {
        let error = (Wide::constant(x).erfc() - Wide(TwoFloat::new_add(high, low))) / high;
        assert!(error.plain().abs() < 1e-24, "{x}: {error:?}");
    }
}

/// What is used of the wide numbers, to 28 digits.
#[test]
fn functions_of_wide_numbers_undo_each_other() {
    let near = |a: Wide, b: Wide| {
        let error = (a - b).plain().abs();
        assert!(error < 1e-28, "{a:?} {b:?}: {error:e}");
    };
    for k in 1..200 {
        let x = Wide::constant(0.0457 * f64::from(k)) / 3.0;
        near(x.exp().ln(), x);
        near(x.sqrt().squared(), x);
        near(x.sin().squared() + x.cos().squared(), Wide::constant(1.0));
        near(x.sin().atan2(x.cos()), x);
        if x.plain() > 0.5 && x.plain() < 2.6 {
            near(x.cos().acos(), x);
        }
        near(x / Wide::constant(0.3) * 0.3, x);
    }
}
