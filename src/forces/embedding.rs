//! Density → embedding energies, in two passes over the neighbours.

// Kernels read lists and tables without checks.
#![allow(unsafe_code)]

use super::chunks::{Totals, each_chunk, each_rank};
use super::pair::{Blocks, Derived, Fields, Pull, TypePairs, TypeTable};
use super::parameters::{ParameterTable, PreparedTable};
use super::term::{Law, ListNeed, Prepared, Reach, Sink, Sums};
use super::view::{Frame, Grid, Neighborhood, View};
use crate::autodiff::Dual;
use crate::autodiff::lanes::{Kernel, Lanes};
use potentials::{Coefficient, Distance, EmbeddingEnergy, Mask, Scalar};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// What the kernels compute of an embedding energy beside the density.
pub trait Formula<E: EmbeddingEnergy>: Send + Sync + 'static {
    /// Whether there are forces. (What energies alone cost is for benchmarks.)
    const FORCES: bool = true;
    /// F and dF/dρ.
    fn embedding(rho: f64, p: &E::Prepared<f64>) -> (f64, f64);
    /// φ, −2 dφ/dr² and −2 dρ/dr² of some pairs.
    fn pairs<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V, V);
}

impl<E: EmbeddingEnergy> Formula<E> for Derived {
    #[inline(always)]
    fn embedding(rho: f64, p: &E::Prepared<f64>) -> (f64, f64) {
        let e = E::embedding::<Dual<f64>, f64>(Dual::variable(rho), p);
        (e.value, e.tangent)
    }
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V, V) {
        let r = Distance::from_squared(Dual::new(r2, V::constant(-2.0)));
        let phi = E::pair::<Dual<V>, V::Parameter>(r, p);
        let rho = E::density::<Dual<V>, V::Parameter>(r, p);
        (phi.value, phi.tangent, rho.tangent)
    }
}

/// A pair energy, and the energy of each atom in the density of its neighbours. (Another formula than the derived
/// one is for benchmarks.)
pub struct EmbeddingLaw<E, F = Derived> {
    types: TypePairs,
    table: TypeTable,
    /// What sums of densities start from: their grid.
    origin: f64,
    list: usize,
    range: f64,
    /// dF/dρ of each rank, and of the atom in each slot.
    slopes: Vec<f64>,
    in_slots: Vec<f64>,
    partial: Vec<[Sums; 1]>,
    energy: PhantomData<(E, F)>,
}

impl<E: EmbeddingEnergy, F: Formula<E>> EmbeddingLaw<E, F> {
    /// For these types.
    pub fn new(types: TypePairs) -> Self {
        let range = types.range();
        Self {
            types,
            table: TypeTable::default(),
            origin: 0.0,
            list: 0,
            range,
            slopes: Vec::new(),
            in_slots: Vec::new(),
            partial: Vec::new(),
            energy: PhantomData,
        }
    }
}

impl<E: EmbeddingEnergy, F: Formula<E>> Law for EmbeddingLaw<E, F> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(ListNeed { range: self.range, leave_out: [false; 3], mirrors: false, single: false })
    }
    fn set_list(&mut self, list: usize) {
        self.list = list;
    }
    fn parameters_changed(&mut self, parameters: &ParameterTable, prepared: &PreparedTable) {
        self.types.follow(parameters, E::ABOUT.params.len());
        self.range = self.types.range();
        self.table = TypeTable::new(&self.types, prepared);
        // Densities have units of the energy's own: a step is 2⁻⁴² of what a near neighbour brings.
        let near = Distance::from_squared((0.4 * self.range).powi(2));
        let density = |row: usize| E::density::<f64, f64>(near, &prepared.row(row)).abs();
        let most = (0..parameters.rows()).map(density).filter(|d| d.is_finite()).fold(0.0, f64::max);
        let exponent = if most > 0.0 { most.log2().ceil().clamp(-200.0, 200.0) as i32 } else { 0 };
        self.origin = Grid::magic(exponent - 42);
    }

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], _: &[P]) -> S {
        let near = &view.frame.lists[self.list];
        let t = &view.frame.atoms.types;
        let row = |i: usize, j: usize| {
            &p[self.types.rows[t[i] as usize * self.types.types + t[j] as usize] as usize]
        };
        let mut total = S::constant(0.0);
        let mut density = vec![S::constant(0.0); t.len()];
        for i in 0..t.len() {
            for &n in near.row(i).iter().filter(|&&n| near.counts(i, n)) {
                let j = near.list.owner(n);
                let r2 = view.to_neighbor(i, n, near).norm_squared();
                let limit = self.types.cutoff2[t[i] as usize * self.types.types + t[j] as usize];
                if r2.lt(S::constant(limit)).decided() == Some(true) {
                    let r = Distance::from_squared(r2);
                    total = total + E::pair(r, row(i, j));
                    density[i] = density[i] + E::density(r, row(i, j));
                    density[j] = density[j] + E::density(r, row(j, i));
                }
            }
        }
        for (i, rho) in density.into_iter().enumerate() {
            if S::constant(0.0).lt(rho).decided() == Some(true) {
                total = total + E::embedding(rho, row(i, i));
            }
        }
        total
    }

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { types, table, origin, list, slopes, in_slots, partial, .. } = self;
        let (near, energy) = (&frame.lists[*list], PhantomData::<E>);
        let origin = if frame.grid == Grid::NONE { 0.0 } else { *origin };

        // first pass: densities, embedding energies and their slopes
        let n = near.list.len();
        slopes.resize(n, 0.0);
        each_chunk(n, slopes, 1, partial, [&mut sink.sums], &|ranks, slopes, [sums]| {
            let own = |kind: usize| types.rows[kind * (types.types + 1)] as usize;
            let densities =
                Densities { frame, near, table, origin, ranks: ranks.clone(), out: slopes, energy };
            frame.isa.double(densities);
            for (k, slope) in ranks.zip(slopes) {
                let density = std::mem::take(slope);
                if density > 0.0 {
                    let row: &E::Prepared<f64> = &p.row(own(frame.kind(near, k)));
                    let (e, tangent) = F::embedding(density, row);
                    *slope = tangent;
                    if frame.sums {
                        sums.add_energy(e);
                    }
                }
            }
        });
        if F::FORCES {
            let of_slot = |&atom: &u32| slopes[near.list.rank(atom as usize)];
            near.list.owners().par_iter().with_min_len(4096).map(of_slot).collect_into_vec(in_slots);
        }

        // second pass: dE/dr² = φ′ + (F′ᵢ + F′ⱼ) ρ′, each pair seen from both sides
        let energy = PhantomData::<(E, F)>;
        each_rank(sink, *list, partial, &|ranks, forces, [sums]| {
            let pulls = Pulls { frame, near, table, slopes, in_slots, ranks, forces, sums, energy };
            frame.isa.double(pulls);
        });
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.types.reach(self.list))
    }
}

/// The densities at the atoms of some ranks.
struct Densities<'a, E> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    table: &'a TypeTable,
    origin: f64,
    ranks: Range<usize>,
    out: &'a mut [f64],
    energy: PhantomData<E>,
}

impl<E: EmbeddingEnergy> Kernel<f64> for Densities<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Densities { frame, near, table, origin, ranks, out, .. } = self;
        let (zero, origin) = (V::constant(0.0), V::constant(origin));
        let (mut blocks, mut fields) = (Blocks::<V>::new(frame, near), Fields::<V>::new(near, table));
        for (k, out) in ranks.zip(out) {
            blocks.turn(k);
            fields.turn(frame.kind(near, k));
            let mut density = origin;
            while let Some(block) = blocks.next() {
                let q: E::Prepared<V::Parameter> = fields.parameters(&block);
                let inside = fields.inside(&block);
                let r = Distance::from_squared(fields.squares(inside, &block));
                let rho = E::density::<V, V::Parameter>(r, &q);
                density = density + V::select(inside, rho.odd(), zero);
            }
            *out = (density - origin).sum();
        }
    }
}

/// The forces on the atoms of some ranks, and the energies of their pairs.
struct Pulls<'a, E, F> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    table: &'a TypeTable,
    slopes: &'a [f64],
    in_slots: &'a [f64],
    ranks: Range<usize>,
    forces: &'a mut [[f64; 3]],
    sums: &'a mut Sums,
    energy: PhantomData<(E, F)>,
}

impl<E: EmbeddingEnergy, F: Formula<E>> Kernel<f64> for Pulls<'_, E, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Pulls { frame, near, table, slopes, in_slots, ranks, forces, sums, .. } = self;
        let zero = V::constant(0.0);
        let (mut blocks, mut fields) = (Blocks::<V>::new(frame, near), Fields::<V>::new(near, table));
        for (k, force) in ranks.zip(forces) {
            blocks.turn(k);
            fields.turn(frame.kind(near, k));
            let own = V::constant(slopes[k]);
            let (mut pull, mut totals) = (Pull::new(frame.grid), Totals::<V>::new(frame.grid));
            while let Some(block) = blocks.next() {
                let q: E::Prepared<V::Parameter> = fields.parameters(&block);
                let inside = fields.inside(&block);
                let (e, of_phi, of_rho) = F::pairs(fields.squares(inside, &block), &q);
                if !F::FORCES {
                    totals.add_energy(inside, e * 0.5);
                    continue;
                }
                // SAFETY: an entry is a slot, and every slot has a slope
                let other =
                    unsafe { V::pick(in_slots.as_ptr(), near.list.entries().as_ptr().add(block.entry)) };
                let g = of_rho.fma(own + other, of_phi);
                let g = V::select(inside, g.odd(), zero);
                pull.add(block.vector, g, &mut None);
                if frame.sums {
                    totals.add_pull(inside, e, block.vector, g);
                }
            }
            pull.finish(force, None);
            if frame.sums {
                if F::FORCES { totals.flush(sums) } else { totals.flush_energy(sums) }
            }
        }
    }
}
