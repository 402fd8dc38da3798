//! Parallel loops whose results do not depend on the number of threads: fixed chunks, added up in order.
//!
//! The loops take their bodies as `dyn Fn`, one call a chunk: the machinery of the thread pool is compiled once and
//! not for every energy, and what processor a body is compiled for is decided inside the task.

// Kernels read and write whole registers.
#![allow(unsafe_code)]

use super::order::Quantity;
use super::term::{Sink, Sums};
use super::view::Grid;
use crate::autodiff::lanes::Lanes;
use potentials::Scalar;
use rayon::prelude::*;
use std::ops::Range;

/// Atoms or interactions a task.
pub const CHUNK: usize = 64;

/// The body of a loop: the items of a chunk, what it owns of the output, its sums (of K terms).
pub type Body<'a, T, const K: usize = 1> = &'a (dyn Fn(Range<usize>, &mut [T], &mut [Sums; K]) + Sync);

/// Runs `body` over chunks of `n` items, each of which owns `per_item` elements of `out`; adds up the sums in order.
pub fn each_chunk<T: Send, const K: usize>(
    n: usize,
    out: &mut [T],
    per_item: usize,
    partial: &mut Vec<[Sums; K]>,
    mut totals: [&mut Sums; K],
    body: Body<T, K>,
) {
    start(n, partial, &totals);
    let tasks = out.par_chunks_mut(CHUNK * per_item).zip(partial.par_iter_mut()).enumerate();
    tasks.for_each(|(chunk, (out, sums))| body(range(chunk, n), out, sums));
    finish(partial, &mut totals);
}

/// The body of a loop with two outputs.
pub type BodyOfTwo<'a, T, const K: usize> = &'a (dyn Fn(Range<usize>, [&mut [T]; 2], &mut [Sums; K]) + Sync);

/// The same with two outputs, of each of which an item owns an element.
pub fn each_chunk_of_two<T: Send, const K: usize>(
    n: usize,
    [one, other]: [&mut [T]; 2],
    partial: &mut Vec<[Sums; K]>,
    mut totals: [&mut Sums; K],
    body: BodyOfTwo<T, K>,
) {
    start(n, partial, &totals);
    let out = one.par_chunks_mut(CHUNK).zip(other.par_chunks_mut(CHUNK));
    let tasks = out.zip(partial.par_iter_mut()).enumerate();
    tasks.for_each(|(chunk, ((one, other), sums))| body(range(chunk, n), [one, other], sums));
    finish(partial, &mut totals);
}

/// The items of a chunk.
fn range(chunk: usize, n: usize) -> Range<usize> {
    chunk * CHUNK..((chunk + 1) * CHUNK).min(n)
}

/// No sums yet, of every chunk.
fn start<const K: usize>(n: usize, partial: &mut Vec<[Sums; K]>, totals: &[&mut Sums; K]) {
    partial.clear();
    partial.resize(n.div_ceil(CHUNK), totals.each_ref().map(|total| Sums::on(total.origin())));
}

/// Adds up the sums of all chunks.
fn finish<const K: usize>(partial: &[[Sums; K]], totals: &mut [&mut Sums; K]) {
    for (total, k) in totals.iter_mut().zip(0..) {
        partial.iter().for_each(|sums| total.add(&sums[k]));
    }
}

/// Runs `body` over chunks of atoms, each of which owns the forces on its atoms.
pub fn each_atom(sink: &mut Sink, partial: &mut Vec<[Sums; 1]>, body: Body<[f64; 3]>) {
    each_chunk(sink.forces.len(), sink.forces, 1, partial, [&mut sink.sums], body);
}

/// Runs `body` over chunks of the ranks of a neighbour list, each of which owns the forces on its atoms.
pub fn each_rank(sink: &mut Sink, list: usize, partial: &mut Vec<[Sums; 1]>, body: Body<[f64; 3]>) {
    let forces = &mut sink.ranked[list];
    each_chunk(forces.len(), forces, 1, partial, [&mut sink.sums], body);
}

/// The most lanes that there are.
pub const LANES: usize = 8;

/// The lanes of some numbers in memory.
#[inline(always)]
pub fn spill<V: Lanes<Element = f64>, const N: usize>(x: [V; N]) -> [[f64; LANES]; N] {
    const { assert!(V::WIDTH <= LANES) };
    let mut out = [[0.0; LANES]; N];
    for k in 0..N {
        // SAFETY: there are at most `LANES` lanes
        unsafe { x[k].store(out[k].as_mut_ptr()) };
    }
    out
}

/// Energy and virial (xx yy zz xy xz yz), added up lane by lane on a grid, and in double precision.
pub struct Totals<V: Lanes> {
    sums: [[V::Double; 2]; 7],
    origin: V::Double,
}

impl<V: Lanes> Totals<V> {
    /// Nothing yet.
    #[inline(always)]
    pub fn new(grid: Grid) -> Self {
        let origin = V::Double::constant(grid.energy_origin());
        Self { sums: [[origin; 2]; 7], origin }
    }
    /// Adds the energies and the virials d ⊗ f of some lanes; odd, so that no rounding is a tie.
    #[inline(always)]
    pub fn add<X: Quantity<V>>(&mut self, own: V::Mask, e: X, [x, y, z]: [X; 3], [f, g, h]: [X; 3]) {
        let w = [e, x * f, y * g, z * h, (x * g + y * f) * 0.5, (x * h + z * f) * 0.5, (y * h + z * g) * 0.5];
        for (sums, w) in self.sums.iter_mut().zip(w) {
            V::select(own, w.result().odd(), V::constant(0.0)).add_to(sums);
        }
    }
    /// Adds half of the energies and virials of neighbours that pull by g d along their vectors d: their other halves are
    /// added where they are the atom.
    #[inline(always)]
    pub fn add_pull<X: Quantity<V>>(&mut self, inside: V::Mask, e: X, d: [X; 3], g: X) {
        let half = g * 0.5;
        self.add(inside, e * 0.5, d, [half * d[0], half * d[1], half * d[2]]);
    }
    /// Adds energies alone.
    #[inline(always)]
    pub fn add_energy<X: Quantity<V>>(&mut self, own: V::Mask, e: X) {
        V::select(own, e.result().odd(), V::constant(0.0)).add_to(&mut self.sums[0]);
    }
    /// Begins anew.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.sums = [[self.origin; 2]; 7];
    }
    /// Adds the totals to sums, and begins anew. (To be done often: totals leave their grid if they grow too large.)
    #[inline(always)]
    pub fn flush(&mut self, sums: &mut Sums) {
        sums.add_each(std::array::from_fn(
            #[inline(always)]
            |k| self.total(k),
        ));
        self.clear();
    }
    /// Adds the energy alone, and begins anew.
    #[inline(always)]
    pub fn flush_energy(&mut self, sums: &mut Sums) {
        sums.add_energy(self.total(0));
        self.clear();
    }
    #[inline(always)]
    fn total(&self, k: usize) -> f64 {
        let [a, b] = self.sums[k];
        ((a - self.origin) + (b - self.origin)).sum()
    }
}
