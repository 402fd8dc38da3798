//! Energies of N bonded atoms: bonds, angles, dihedrals, and anything in N positions.

// Kernels read and write whole registers.
#![allow(unsafe_code)]

use super::chunks::{CHUNK, LANES, Totals, each_atom, each_chunk, spill};
use super::order::{Order, Quantity};
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
use std::ops::Range;

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

/// The positions of a tuple as variables of a tape: the first is the origin.
#[inline(always)]
fn place<'t, X: Scalar, const N: usize>(
    tape: &'t StackTape<X, CAPACITY>,
    x: &[[X; 3]; N],
) -> [Vec3<StackVar<'t, X, CAPACITY>>; N] {
    let mut flat = [X::constant(0.0); 12];
    for a in 1..N {
        for c in 0..3 {
            flat[3 * a - 3 + c] = x[a][c];
        }
    }
    let v = tape.restart(flat);
    let zero = StackVar::<X, CAPACITY>::constant(0.0);
    let mut place = [Vec3::new(zero, zero, zero); N];
    for a in 1..N {
        place[a] = Vec3::new(v[3 * a - 3], v[3 * a - 2], v[3 * a - 1]);
    }
    place
}

/// The derivatives in all positions but the first.
#[inline(always)]
fn positions<X: Scalar, const N: usize>(gradient: [X; 12]) -> [[X; 3]; N] {
    let mut x = [[X::constant(0.0); 3]; N];
    for a in 1..N {
        for c in 0..3 {
            x[a][c] = gradient[3 * a - 3 + c];
        }
    }
    x
}

/// An energy of N bonded atoms, and how it is differentiated: in a distance, or in the positions.
pub trait Bonded<const N: usize>: TupleEnergy<N> + Sized {
    /// Whether there are forces. (What energies alone cost is for benchmarks.)
    const FORCES: bool = true;
    /// The energy, and its derivatives in the positions (but the first, which is the origin).
    fn gradient<V: Lanes>(x: &[[V; 3]; N], p: &Self::Prepared<V::Parameter>) -> (V, [[V; 3]; N]);
    /// The same with tangents: derived, whoever has written the other.
    #[inline(always)]
    fn tangents<V: Lanes>(
        x: &[[Dual<V>; 3]; N],
        p: &Self::Prepared<V::Parameter>,
    ) -> (Dual<V>, [[Dual<V>; 3]; N]) {
        in_positions::<Self, V, _, N>(x, p)
    }
}

impl<E: BondEnergy> Bonded<2> for OfBond<E> {
    #[inline(always)]
    fn gradient<V: Lanes>(x: &[[V; 3]; 2], p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; 2]) {
        in_distance::<E, V, V>(x, p)
    }
    #[inline(always)]
    fn tangents<V: Lanes>(
        x: &[[Dual<V>; 3]; 2],
        p: &E::Prepared<V::Parameter>,
    ) -> (Dual<V>, [[Dual<V>; 3]; 2]) {
        in_distance::<E, V, Dual<V>>(x, p)
    }
}

impl<E: TupleEnergy<N>, const N: usize> Bonded<N> for OfPositions<E> {
    #[inline(always)]
    fn gradient<V: Lanes>(x: &[[V; 3]; N], p: &E::Prepared<V::Parameter>) -> (V, [[V; 3]; N]) {
        in_positions::<E, V, V, N>(x, p)
    }
}

/// The energy of a bond, differentiated by its distance.
#[inline(always)]
fn in_distance<E: BondEnergy, V: Lanes, X: Quantity<V>>(
    x: &[[X; 3]; 2],
    p: &E::Prepared<V::Parameter>,
) -> (X, [[X; 3]; 2])
where
    V::Parameter: Coefficient<Dual<X>>,
{
    let [x, y, z] = x[1];
    // (the seed 2 makes the tangent 2 dE/dr²: by it and the vector the derivative in the position)
    let r2 = Dual::new(X::square_of([x, y, z]), X::constant(2.0));
    let e = E::energy::<Dual<X>, V::Parameter>(Distance::from_squared(r2), p);
    (e.value, [[X::constant(0.0); 3], [e.tangent * x, e.tangent * y, e.tangent * z]])
}

/// The energy of N positions, differentiated on a stack tape.
#[inline(always)]
fn in_positions<E: TupleEnergy<N>, V: Lanes, X: Scalar, const N: usize>(
    x: &[[X; 3]; N],
    p: &E::Prepared<V::Parameter>,
) -> (X, [[X; 3]; N])
where
    V::Parameter: for<'t> Coefficient<StackVar<'t, X, CAPACITY>>,
{
    let tape = StackTape::<X, CAPACITY>::new();
    let e = E::energy::<StackVar<X, CAPACITY>, V::Parameter>(place(&tape, x), p);
    (e.value(), positions(tape.gradient_in_registers(e)))
}

/// The most steps that the energy of one tuple may take on the stack tape. (Up to 64 of them dissolve into registers.)
const CAPACITY: usize = 512;

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

    fn items(&self, _: usize) -> usize {
        self.atoms.len()
    }

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        _: &[P],
        items: Range<usize>,
    ) -> S {
        self.atoms[items.clone()]
            .iter()
            .zip(&self.rows[items])
            .fold(S::constant(0.0), |total, (atoms, &row)| {
                total + E::energy(view.chain(atoms), &p[row as usize])
            })
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        // (energies alone have no tangents: those of forces are what is asked for)
        if O::TANGENTS && !E::FORCES {
            return;
        }
        let Self { atoms, rows, shares, .. } = self;
        let Shares { forces, partial, .. } = shares;
        each_chunk(atoms.len(), forces, N, partial, [&mut sink.sums], &|range, slots, [sums]| {
            let (atoms, rows) = (&atoms[range.clone()], &rows[range]);
            let (mut x, mut rates) = ([[[0.0; CHUNK]; 3]; N], [[[0.0; CHUNK]; 3]; N]);
            // (places without a tuple of their own repeat the first)
            for k in 0..atoms.len().next_multiple_of(LANES) {
                let atoms = &atoms[if k < atoms.len() { k } else { 0 }];
                let chain = frame.chain(atoms);
                for a in 1..N {
                    let d = frame.between::<O::One>(atoms[0] as usize, atoms[a] as usize, chain[a]);
                    for c in 0..3 {
                        x[a][c][k] = d[c].value();
                        if O::TANGENTS {
                            rates[a][c][k] = d[c].result();
                        }
                    }
                }
            }
            let of = PhantomData::<(O, E)>;
            frame.double::<O, _>(Tuples { frame, p, rows, x: &x, rates: &rates, slots, sums, of });
        });
        if E::FORCES {
            shares.collect(sink);
        }
    }
}

/// Some tuples.
struct Tuples<'a, O, E, const N: usize> {
    frame: &'a Frame<'a>,
    p: &'a PreparedTable,
    rows: &'a [u32],
    /// Their positions relative to the first atom.
    x: &'a [[[f64; CHUNK]; 3]; N],
    /// How these change, where that is asked for.
    rates: &'a [[[f64; CHUNK]; 3]; N],
    slots: &'a mut [[f64; 3]],
    sums: &'a mut Sums,
    of: PhantomData<(O, E)>,
}

impl<O: Order, E: Bonded<N>, const N: usize> Kernel<f64> for Tuples<'_, O, E, N> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Tuples { frame, p, rows, x: places, rates, slots, sums, .. } = self;
        let zero = O::Quantity::<V>::constant(0.0);
        let (grid, mut totals) = (V::constant(frame.grid.force_origin()), Totals::<V>::new(frame.grid));
        let blocks = rows.chunks(V::WIDTH).zip(slots.chunks_mut(V::WIDTH * N)).enumerate();
        for (block, (rows, slots)) in blocks {
            let q: E::Prepared<V::Parameter> =
                p.gather::<V, _>(|k| rows[if k < rows.len() { k } else { 0 }] as usize);
            let (at, mut x) = (block * V::WIDTH, [[zero; 3]; N]);
            assert!(at + V::WIDTH <= CHUNK);
            for a in 1..N {
                for c in 0..3 {
                    // SAFETY: there are as many numbers
                    let place = unsafe { V::load(places[a][c].as_ptr().add(at)) };
                    let mut rate = place;
                    if O::TANGENTS {
                        // SAFETY: as above
                        rate = unsafe { V::load(rates[a][c].as_ptr().add(at)) };
                    }
                    x[a][c] = O::Quantity::<V>::new(place, rate);
                }
            }
            let (energy, gradient) = O::Quantity::<V>::bonded::<E, N>(&x, &q);
            if !E::FORCES {
                totals.add_energy(V::first(rows.len()), energy);
                totals.flush_energy(sums);
                continue;
            }
            // forces, rounded to the grid
            let mut forces = [[zero; 3]; N];
            for a in 1..N {
                for c in 0..3 {
                    let f = (-gradient[a][c]).rounded(grid);
                    forces[a][c] = f;
                    forces[0][c] = forces[0][c] - f;
                }
            }
            for a in 0..N {
                let [x, y, z] = forces[a];
                let [x, y, z] = spill([x.result(), y.result(), z.result()]);
                for (k, slots) in slots.chunks_mut(N).enumerate() {
                    slots[a] = [x[k], y[k], z[k]];
                }
            }
            if frame.sums {
                let own = V::first(rows.len());
                for a in 1..N {
                    let e = if a == 1 { energy } else { zero };
                    totals.add(own, e, x[a], forces[a]);
                }
                totals.flush(sums);
            }
        }
    }
}
