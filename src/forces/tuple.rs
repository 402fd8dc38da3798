//! Energies of N bonded atoms: bonds, angles, dihedrals, and anything in N positions.

// Kernels read and write whole registers.
#![allow(unsafe_code)]

use super::chunks::{CHUNK, Totals, each_atom, each_chunk, spill};
use super::parameters::PreparedTable;
use super::term::{Law, Prepared, Sink, Sums};
use super::view::{Frame, View};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{Dual, StackTape, StackVar};
use potentials::{
    About, Angle, AngleEnergy, BondEnergy, Coefficient, Dihedral, DihedralEnergy, Distance, Energy, Scalar,
    TupleEnergy, Vec3,
};
use std::marker::PhantomData;

/// A bond energy as an energy of two positions.
pub struct OfBond<E>(PhantomData<E>);
/// An angle energy as an energy of three positions.
pub struct OfAngle<E>(PhantomData<E>);
/// A dihedral energy as an energy of four positions.
pub struct OfDihedral<E>(PhantomData<E>);

macro_rules! same_parameters {
    ($($Of:ident),*) => { $(
        impl<E: Energy> Energy for $Of<E> {
            const ABOUT: About = E::ABOUT;
            type Params<T: Copy> = E::Params<T>;
            type Prepared<T: Copy> = E::Prepared<T>;
            fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> { E::prepare(p) }
        }
    )* };
}
same_parameters!(OfBond, OfAngle, OfDihedral, OfPositions);

impl<E: BondEnergy> TupleEnergy<2> for OfBond<E> {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; 2], p: &E::Prepared<P>) -> S {
        E::energy(Distance::from_squared((r[1] - r[0]).norm_squared()), p)
    }
}
impl<E: AngleEnergy> TupleEnergy<3> for OfAngle<E> {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; 3], p: &E::Prepared<P>) -> S {
        E::energy(Angle::between(r[0] - r[1], r[2] - r[1]), p)
    }
}
impl<E: DihedralEnergy> TupleEnergy<4> for OfDihedral<E> {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; 4], p: &E::Prepared<P>) -> S {
        E::energy(Dihedral::along(r[1] - r[0], r[2] - r[1], r[3] - r[2]), p)
    }
}

/// An energy of N positions as such.
pub struct OfPositions<E>(PhantomData<E>);

impl<E: TupleEnergy<N>, const N: usize> TupleEnergy<N> for OfPositions<E> {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; N], p: &E::Prepared<P>) -> S {
        E::energy(r, p)
    }
}

/// What is measured of some tuples before their energies are asked: an angle, which any energy of angles shares. Its
/// derivatives are taken once for all of them.
pub trait Geometry<const N: usize>: Send + Sync + 'static {
    /// Sine and cosine of the angle, and the derivatives of each in the positions; the first position is the origin.
    /// Zeros where there is nothing to measure.
    fn measure<V: Lanes>(x: &[[V; 3]; N]) -> ([V; 2], [[[V; 3]; N]; 2]);
    /// Whether there is something to measure.
    const MEASURES: bool;
}

/// Nothing is measured.
pub struct Nothing;
impl<const N: usize> Geometry<N> for Nothing {
    const MEASURES: bool = false;
    #[inline(always)]
    fn measure<V: Lanes>(_: &[[V; 3]; N]) -> ([V; 2], [[[V; 3]; N]; 2]) {
        let zero = V::constant(0.0);
        ([zero; 2], [[[zero; 3]; N]; 2])
    }
}

macro_rules! measured {
    ($(#[$doc:meta])* $Name:ident, $n:literal, |$r:ident| $angle:expr) => {
        $(#[$doc])*
        pub struct $Name;
        impl Geometry<$n> for $Name {
            const MEASURES: bool = true;
            #[inline(always)]
            fn measure<V: Lanes>(x: &[[V; 3]; $n]) -> ([V; 2], [[[V; 3]; $n]; 2]) {
                let tape = StackTape::<V, CAPACITY>::new();
                let $r = place(&tape, x);
                let angle = $angle;
                let (sin, cos) = (angle.sin(), angle.cos());
                let of_sin = positions(tape.gradient_in_registers(sin));
                let of_cos = positions(tape.gradient_in_registers(cos));
                ([sin.value(), cos.value()], [of_sin, of_cos])
            }
        }
    };
}
measured!(
    /// The angle at the middle one of three atoms.
    Bend, 3, |r| Angle::between(r[0] - r[1], r[2] - r[1])
);
measured!(
    /// The dihedral of four atoms.
    Twist, 4, |r| Dihedral::along(r[1] - r[0], r[2] - r[1], r[3] - r[2])
);

/// The positions of a tuple as variables of a tape: the first is the origin.
#[inline(always)]
fn place<'t, V: Lanes, const N: usize>(
    tape: &'t StackTape<V, CAPACITY>,
    x: &[[V; 3]; N],
) -> [Vec3<StackVar<'t, V, CAPACITY>>; N] {
    let mut flat = [V::constant(0.0); 12];
    for a in 1..N {
        for c in 0..3 {
            flat[3 * a - 3 + c] = x[a][c];
        }
    }
    let v = tape.restart(flat);
    let zero = StackVar::<V, CAPACITY>::constant(0.0);
    let mut place = [Vec3::new(zero, zero, zero); N];
    for a in 1..N {
        place[a] = Vec3::new(v[3 * a - 3], v[3 * a - 2], v[3 * a - 1]);
    }
    place
}

/// The derivatives in all positions but the first.
#[inline(always)]
fn positions<V: Lanes, const N: usize>(gradient: [V; 12]) -> [[V; 3]; N] {
    let mut x = [[V::constant(0.0); 3]; N];
    for a in 1..N {
        for c in 0..3 {
            x[a][c] = gradient[3 * a - 3 + c];
        }
    }
    x
}

/// Some tuples, one a lane: positions relative to the first atom, and what was measured of them.
pub struct Block<V, const N: usize> {
    /// The positions.
    pub x: [[V; 3]; N],
    angle: [V; 2],
    slopes: [[[V; 3]; N]; 2],
}

/// An energy of N bonded atoms, and how it is differentiated: through what is measured, or through the positions.
pub trait Bonded<const N: usize>: TupleEnergy<N> {
    /// Whether there are forces. (What energies alone cost is for benchmarks.)
    const FORCES: bool = true;
    /// What is measured.
    type Geometry: Geometry<N>;
    /// The energy, and its derivatives in the positions (but the first).
    fn gradient<V: Lanes>(block: &Block<V, N>, p: &Self::Prepared<V::Parameter>) -> (V, [[V; 3]; N]);
}

impl<E: BondEnergy> Bonded<2> for OfBond<E> {
    type Geometry = Nothing;
    #[inline(always)]
    fn gradient<V: Lanes>(block: &Block<V, 2>, p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; 2]) {
        let [x, y, z] = block.x[1];
        // (the seed 2 makes the tangent 2 dE/dr²: by it and the vector the derivative in the position)
        let r2 = Dual::new(x.fma(x, y.fma(y, z * z)), V::constant(2.0));
        let e = E::energy::<Dual<V>, V::Parameter>(Distance::from_squared(r2), p);
        (e.value, [[V::constant(0.0); 3], [e.tangent * x, e.tangent * y, e.tangent * z]])
    }
}

impl<V: Lanes, const N: usize> Block<V, N> {
    /// An energy of sine and cosine, and by the chain rule its derivatives in the positions. (Through both of them
    /// and not through the angle: where three atoms are nearly on a line, the sine of a dihedral is not as exact as
    /// the derivatives of its cosine.)
    #[inline(always)]
    fn chain(&self, energy: impl Fn([Dual<V>; 2]) -> Dual<V>) -> (V, [[V; 3]; N]) {
        let [sin, cos] = [Dual::passive(self.angle[0]), Dual::passive(self.angle[1])];
        let by_sin = energy([Dual::variable(sin.value), cos]);
        let by_cos = energy([sin, Dual::variable(cos.value)]);
        let [of_sin, of_cos] = &self.slopes;
        let mut slopes = [[V::constant(0.0); 3]; N];
        for a in 1..N {
            for c in 0..3 {
                slopes[a][c] = by_sin.tangent.fma(of_sin[a][c], by_cos.tangent * of_cos[a][c]);
            }
        }
        (by_cos.value, slopes)
    }
}

impl<E: AngleEnergy> Bonded<3> for OfAngle<E> {
    type Geometry = Bend;
    #[inline(always)]
    fn gradient<V: Lanes>(block: &Block<V, 3>, p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; 3]) {
        block.chain(
            #[inline(always)]
            |[sin, cos]| E::energy::<Dual<V>, V::Parameter>(Angle::from_sin_cos(sin, cos), p),
        )
    }
}

impl<E: DihedralEnergy> Bonded<4> for OfDihedral<E> {
    type Geometry = Twist;
    #[inline(always)]
    fn gradient<V: Lanes>(block: &Block<V, 4>, p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; 4]) {
        block.chain(
            #[inline(always)]
            |[sin, cos]| E::energy::<Dual<V>, V::Parameter>(Dihedral::from_sin_cos(sin, cos), p),
        )
    }
}

impl<E: TupleEnergy<N>, const N: usize> Bonded<N> for OfPositions<E> {
    type Geometry = Nothing;
    #[inline(always)]
    fn gradient<V: Lanes>(block: &Block<V, N>, p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; N]) {
        let tape = StackTape::<V, CAPACITY>::new();
        let e = E::energy::<StackVar<V, CAPACITY>, V::Parameter>(place(&tape, &block.x), p);
        (e.value(), positions(tape.gradient_in_registers(e)))
    }
}

/// The most steps that the energy of one tuple may take on the stack tape. (Up to 64 of them dissolve into registers.)
const CAPACITY: usize = 128;

/// An energy of certain tuples of atoms.
pub struct TupleLaw<E, const N: usize> {
    atoms: Vec<[u32; N]>,
    rows: Vec<u32>,
    shares: Shares,
    energy: PhantomData<E>,
}

/// The forces that tuples exert, and where each atom finds those on itself.
struct Shares {
    starts: Vec<u32>,
    places: Vec<u32>,
    forces: Vec<[f64; 3]>,
    partial: Vec<[Sums; 1]>,
}

impl Shares {
    /// `members` are the atoms of all tuples, one after the other; `n` the number of atoms of the system.
    fn new(n: usize, members: &[u32]) -> Self {
        let mut starts = vec![0; n + 1];
        for &a in members {
            starts[a as usize + 1] += 1;
        }
        for k in 0..n {
            starts[k + 1] += starts[k];
        }
        let (mut next, mut places) = (starts.clone(), vec![0; members.len()]);
        for (slot, &a) in members.iter().enumerate() {
            places[next[a as usize] as usize] = slot as u32;
            next[a as usize] += 1;
        }
        Self { starts, places, forces: vec![[0.0; 3]; members.len()], partial: Vec::new() }
    }
    /// Adds up, for every atom in order, what tuples hold for it.
    fn collect(&mut self, sink: &mut Sink) {
        let Self { starts, places, forces, partial } = self;
        each_atom(sink, partial, &|atoms, out, _| {
            for (i, force) in atoms.zip(out) {
                for &slot in &places[starts[i] as usize..starts[i + 1] as usize] {
                    for (f, s) in force.iter_mut().zip(forces[slot as usize]) {
                        *f += s;
                    }
                }
            }
        });
    }
}

impl<E: Bonded<N>, const N: usize> TupleLaw<E, N> {
    /// For each tuple its atoms and the row of its parameters; `n` is the number of atoms of the system.
    pub fn new(n: usize, atoms: Vec<[u32; N]>, rows: Vec<u32>) -> Self {
        let shares = Shares::new(n, atoms.as_flattened());
        Self { atoms, rows, shares, energy: PhantomData }
    }
}

impl<E: Bonded<N>, const N: usize> Law for TupleLaw<E, N> {
    type Energy = E;

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], _: &[P]) -> S {
        self.atoms.iter().zip(&self.rows).fold(S::constant(0.0), |total, (atoms, &row)| {
            total + E::energy(view.chain(atoms), &p[row as usize])
        })
    }

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { atoms, rows, shares, .. } = self;
        let Shares { forces, partial, .. } = shares;
        each_chunk(atoms.len(), forces, N, partial, [&mut sink.sums], &|range, slots, [sums]| {
            let (atoms, rows) = (&atoms[range.clone()], &rows[range]);
            let mut measured = Measured::<N>::new();
            let geometry = PhantomData::<E::Geometry>;
            frame.double(Measure { frame, atoms, measured: &mut measured, geometry });
            let (measured, energy) = (&measured, PhantomData::<E>);
            frame.double(Tuples { frame, p, rows, measured, slots, sums, energy });
        });
        if E::FORCES {
            shares.collect(sink);
        }
    }
}

/// The tuples of a chunk: positions relative to the first atom, sine and cosine of the angle and their derivatives.
struct Measured<const N: usize> {
    x: [[[f64; CHUNK]; 3]; N],
    angle: [[f64; CHUNK]; 2],
    slopes: [[[[f64; CHUNK]; 3]; N]; 2],
}

impl<const N: usize> Measured<N> {
    fn new() -> Self {
        let zero = [[[0.0; CHUNK]; 3]; N];
        Self { x: zero, angle: [[0.0; CHUNK]; 2], slopes: [zero; 2] }
    }
    /// The tuples from `at` on.
    #[inline(always)]
    fn block<V: Lanes<Element = f64>>(&self, at: usize) -> Block<V, N> {
        assert!(at + V::WIDTH <= CHUNK);
        // SAFETY: there are as many numbers
        let load = |x: &[f64; CHUNK]| unsafe { V::load(x.as_ptr().add(at)) };
        let zero = [[V::constant(0.0); 3]; N];
        let (mut x, mut slopes) = (zero, [zero; 2]);
        for a in 1..N {
            for c in 0..3 {
                x[a][c] = load(&self.x[a][c]);
                for k in 0..2 {
                    slopes[k][a][c] = load(&self.slopes[k][a][c]);
                }
            }
        }
        let [sin, cos] = [load(&self.angle[0]), load(&self.angle[1])];
        Block { x, angle: [sin, cos], slopes }
    }
}

/// Finds where the atoms of some tuples are, and measures.
struct Measure<'a, G, const N: usize> {
    frame: &'a Frame<'a>,
    atoms: &'a [[u32; N]],
    measured: &'a mut Measured<N>,
    geometry: PhantomData<G>,
}

impl<G: Geometry<N>, const N: usize> Kernel<f64> for Measure<'_, G, N> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Measure { frame, atoms, measured, .. } = self;
        // (places without a tuple of their own repeat the first)
        for k in 0..atoms.len().next_multiple_of(V::WIDTH) {
            let chain = frame.chain(&atoms[if k < atoms.len() { k } else { 0 }]);
            for a in 1..N {
                for c in 0..3 {
                    measured.x[a][c][k] = chain[a][c];
                }
            }
        }
        if !G::MEASURES {
            return;
        }
        for at in (0..atoms.len()).step_by(V::WIDTH) {
            let ([sin, cos], slopes) = G::measure(&measured.block::<V>(at).x);
            // SAFETY: the block that was read is written
            let store = |x: V, to: &mut [f64; CHUNK]| unsafe { x.store(to.as_mut_ptr().add(at)) };
            store(sin, &mut measured.angle[0]);
            store(cos, &mut measured.angle[1]);
            for (slopes, out) in slopes.iter().zip(&mut measured.slopes) {
                for a in 1..N {
                    for c in 0..3 {
                        store(slopes[a][c], &mut out[a][c]);
                    }
                }
            }
        }
    }
}

/// Some tuples.
struct Tuples<'a, E, const N: usize> {
    frame: &'a Frame<'a>,
    p: &'a PreparedTable,
    rows: &'a [u32],
    measured: &'a Measured<N>,
    slots: &'a mut [[f64; 3]],
    sums: &'a mut Sums,
    energy: PhantomData<E>,
}

impl<E: Bonded<N>, const N: usize> Kernel<f64> for Tuples<'_, E, N> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Tuples { frame, p, rows, measured, slots, sums, .. } = self;
        let (grid, mut totals) = (V::constant(frame.grid.force_origin()), Totals::<V>::new(frame.grid));
        let blocks = rows.chunks(V::WIDTH).zip(slots.chunks_mut(V::WIDTH * N)).enumerate();
        for (block, (rows, slots)) in blocks {
            let q: E::Prepared<V::Parameter> =
                p.gather::<V, _>(|k| rows[if k < rows.len() { k } else { 0 }] as usize);
            let block = measured.block::<V>(block * V::WIDTH);
            let (energy, gradient) = E::gradient(&block, &q);
            if !E::FORCES {
                let mut totals = Totals::<V>::new(frame.grid);
                totals.add_energy(V::first(rows.len()), energy);
                totals.flush_energy(sums);
                continue;
            }
            // forces, rounded to the grid
            let mut forces = [[V::constant(0.0); 3]; N];
            for a in 1..N {
                for c in 0..3 {
                    let f = (grid - gradient[a][c]) - grid;
                    forces[a][c] = f;
                    forces[0][c] = forces[0][c] - f;
                }
            }
            for a in 0..N {
                let [x, y, z] = spill(forces[a]);
                for (k, slots) in slots.chunks_mut(N).enumerate() {
                    slots[a] = [x[k], y[k], z[k]];
                }
            }
            if frame.sums {
                let own = V::first(rows.len());
                for a in 1..N {
                    let e = if a == 1 { energy } else { V::constant(0.0) };
                    totals.add(own, e, block.x[a], forces[a]);
                }
                totals.flush(sums);
            }
        }
    }
}
