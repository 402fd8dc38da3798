//! Energies of N bonded atoms: bonds, angles, dihedrals, and anything in N positions.

// Kernels read and write whole registers.
#![allow(unsafe_code)]

use super::chunks::{LANES, add, each_atom, each_chunk, flush, spill};
use super::parameters::PreparedTable;
use super::term::{Law, Prepared, Sink, Sums};
use super::view::{Frame, View};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{StackTape, StackVar};
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
same_parameters!(OfBond, OfAngle, OfDihedral);

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

/// The most steps that the energy of one tuple may take on the stack tape.
const CAPACITY: usize = 256;

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
    partial: Vec<Sums>,
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

impl<E: TupleEnergy<N>, const N: usize> TupleLaw<E, N> {
    /// For each tuple its atoms and the row of its parameters; `n` is the number of atoms of the system.
    pub fn new(n: usize, atoms: Vec<[u32; N]>, rows: Vec<u32>) -> Self {
        let shares = Shares::new(n, atoms.as_flattened());
        Self { atoms, rows, shares, energy: PhantomData }
    }
}

impl<E: TupleEnergy<N>, const N: usize> Law for TupleLaw<E, N> {
    type Energy = E;

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], _: &[P]) -> S {
        self.atoms.iter().zip(&self.rows).fold(S::constant(0.0), |total, (atoms, &row)| {
            total + E::energy(view.chain(atoms), &p[row as usize])
        })
    }

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { atoms, rows, shares, .. } = self;
        let Shares { forces, partial, .. } = shares;
        each_chunk(atoms.len(), forces, N, partial, &mut sink.sums, &|range, slots, sums| {
            let (atoms, rows, energy) = (&atoms[range.clone()], &rows[range], PhantomData::<E>);
            frame.isa.double(Tuples { frame, p, atoms, rows, slots, sums, energy });
        });
        shares.collect(sink);
    }
}

/// Some tuples.
struct Tuples<'a, E, const N: usize> {
    frame: &'a Frame<'a>,
    p: &'a PreparedTable,
    atoms: &'a [[u32; N]],
    rows: &'a [u32],
    slots: &'a mut [[f64; 3]],
    sums: &'a mut Sums,
    energy: PhantomData<E>,
}

impl<E: TupleEnergy<N>, const N: usize> Kernel<f64> for Tuples<'_, E, N> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Tuples { frame, p, atoms, rows, slots, sums, .. } = self;
        let tape = StackTape::<V, CAPACITY>::new();
        let origin = V::constant(frame.grid.energy_origin());
        let blocks = atoms.chunks(V::WIDTH).zip(rows.chunks(V::WIDTH)).zip(slots.chunks_mut(V::WIDTH * N));
        for ((atoms, rows), slots) in blocks {
            let mut totals = [origin; 7];
            block::<V, E, N>(&tape, frame, p, atoms, rows, slots, &mut totals);
            if frame.sums {
                flush(totals, origin, sums);
            }
        }
    }
}

/// One tuple a lane: the forces on its atoms, and what it adds to energy and virial.
#[inline(always)]
fn block<V: Lanes<Element = f64>, E: TupleEnergy<N>, const N: usize>(
    tape: &StackTape<V, CAPACITY>,
    frame: &Frame,
    p: &PreparedTable,
    atoms: &[[u32; N]],
    rows: &[u32],
    slots: &mut [[f64; 3]],
    totals: &mut [V; 7],
) {
    // the first atom is the origin; the others' coordinates are the variables. Lanes without a tuple of their own
    // repeat the first.
    let mut x = [[[0.0; LANES]; 3]; N];
    for k in 0..V::WIDTH {
        let chain = frame.chain(&atoms[if k < atoms.len() { k } else { 0 }]);
        for a in 1..N {
            for c in 0..3 {
                x[a][c][k] = chain[a][c];
            }
        }
    }
    let q: E::Prepared<V::Parameter> =
        p.gather::<V, _>(|k| rows[if k < rows.len() { k } else { 0 }] as usize);
    // SAFETY: there are at most `LANES` lanes
    let x: [[V; 3]; N] = x.map(|x| x.map(|x| unsafe { V::load(x.as_ptr()) }));
    let zero = StackVar::<V, CAPACITY>::constant(0.0);
    let mut place = [Vec3::new(zero, zero, zero); N];
    // (node 0 is passive, the variables are nodes 1 to 12)
    let (energy, adjoints) = {
        let flat: [V; 12] =
            std::array::from_fn(|m| if m / 3 + 1 < N { x[m / 3 + 1][m % 3] } else { V::constant(0.0) });
        let v = tape.restart(flat);
        for a in 1..N {
            place[a] = Vec3::new(v[3 * a - 3], v[3 * a - 2], v[3 * a - 1]);
        }
        let e = E::energy::<StackVar<V, CAPACITY>, V::Parameter>(place, &q);
        (e.value(), tape.adjoints(e))
    };
    // forces, rounded to the grid
    let grid = V::constant(frame.grid.force_origin());
    let mut forces = [[V::constant(0.0); 3]; N];
    for a in 1..N {
        for c in 0..3 {
            let f = (grid - adjoints[3 * (a - 1) + c + 1]) - grid;
            forces[a][c] = f;
            forces[0][c] = forces[0][c] - f;
        }
    }
    let columns = forces.map(|f| f.map(spill));
    for (k, slots) in slots.chunks_mut(N).enumerate() {
        for (a, slot) in slots.iter_mut().enumerate() {
            *slot = [columns[a][0][k], columns[a][1][k], columns[a][2][k]];
        }
    }
    if frame.sums {
        let own = V::first(atoms.len());
        for a in 1..N {
            add(totals, own, if a == 1 { energy } else { V::constant(0.0) }, x[a], forces[a]);
        }
    }
}
