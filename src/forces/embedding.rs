//! Density → embedding energies, in two passes over the neighbours.

// Kernels read lists and tables without checks.
#![allow(unsafe_code)]

use super::chunks::{Totals, each_chunk, each_rank};
use super::order::{Order, Quantity, Single};
use super::pair::{Block, Blocks, Derived, Ended, Fields, Pull, TypePairs, TypeTable, seeded};
use super::parameters::{ParameterTable, PreparedTable};
use super::term::{Law, ListNeed, Prepared, Reach, Sink, Sums};
use super::view::{Frame, Grid, Neighborhood, View};
use crate::autodiff::Dual;
use crate::autodiff::lanes::{Kernel, Lanes};
use potentials::cutoff::{Ending, EndingConstants};
use potentials::{Both, Coefficient, Distance, EmbeddingEnergy, Energy, Mask, Scalar};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// What the kernels compute of an embedding energy.
pub trait Formula: Send + Sync + 'static {
    /// The energy whose parameters it has.
    type Energy: EmbeddingEnergy;
    /// Whether these are followed by the constants of an ending, of the pair energy and of the density.
    const ENDED: bool = false;
    /// Whether there are forces. (What energies alone cost is for benchmarks.)
    const FORCES: bool = true;
    /// F and dF/dρ.
    fn embedding(rho: f64, p: &Parameters<Self, f64>) -> Dual<f64>;
    /// φ and ρ of some pairs, with −2 d/dr² of both.
    fn pairs<V: Lanes>(r2: V, p: &Parameters<Self, V::Parameter>) -> [Dual<V>; 2];
    /// F and dF/dρ with tangents: derived, whoever has written the other.
    #[inline(always)]
    fn embedding_tangents(rho: Dual<f64>, p: &Parameters<Self, f64>) -> Dual<Dual<f64>> {
        embedding::<Self::Energy, _>(rho, p)
    }
    /// And so for pairs.
    #[inline(always)]
    fn tangents<V: Lanes>(r2: Dual<V>, p: &Parameters<Self, V::Parameter>) -> [Dual<Dual<V>>; 2] {
        derived::<Self::Energy, V, _>(r2, p)
    }
}

/// The parameters of a formula, and the constants that may follow.
pub type Parameters<F, T> = <<F as Formula>::Energy as Energy>::Prepared<T>;
type WithEndings<F, T> = Both<Parameters<F, T>, Both<EndingConstants<T>, EndingConstants<T>>>;

impl<E: EmbeddingEnergy> Formula for Derived<E> {
    type Energy = E;
    #[inline(always)]
    fn embedding(rho: f64, p: &E::Prepared<f64>) -> Dual<f64> {
        embedding::<E, _>(rho, p)
    }
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> [Dual<V>; 2] {
        derived::<E, V, _>(r2, p)
    }
}

#[inline(always)]
fn embedding<E: EmbeddingEnergy, Y: Scalar>(rho: Y, p: &E::Prepared<f64>) -> Dual<Y>
where
    f64: Coefficient<Dual<Y>>,
{
    E::embedding::<Dual<Y>, f64>(Dual::variable(rho), p)
}

#[inline(always)]
fn derived<E: EmbeddingEnergy, V: Lanes, X: Scalar>(r2: X, p: &E::Prepared<V::Parameter>) -> [Dual<X>; 2]
where
    V::Parameter: Coefficient<Dual<X>>,
{
    let r = Distance::from_squared(seeded(r2));
    [E::pair::<Dual<X>, V::Parameter>(r, p), E::density::<Dual<X>, V::Parameter>(r, p)]
}

impl<F: Formula> Formula for Ended<F> {
    type Energy = F::Energy;
    const ENDED: bool = true;
    const FORCES: bool = F::FORCES;
    #[inline(always)]
    fn embedding(rho: f64, p: &Parameters<F, f64>) -> Dual<f64> {
        F::embedding(rho, p)
    }
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Parameters<F, V::Parameter>) -> [Dual<V>; 2] {
        F::pairs(r2, p)
    }
    #[inline(always)]
    fn embedding_tangents(rho: Dual<f64>, p: &Parameters<F, f64>) -> Dual<Dual<f64>> {
        F::embedding_tangents(rho, p)
    }
    #[inline(always)]
    fn tangents<V: Lanes>(r2: Dual<V>, p: &Parameters<F, V::Parameter>) -> [Dual<Dual<V>>; 2] {
        F::tangents(r2, p)
    }
}

/// The densities that some neighbours bring.
#[inline(always)]
fn densities<F: Formula, V: Lanes, X: Quantity<V>>(fields: &Fields<V>, block: &Block<V, X>, r2: X) -> X {
    if F::ENDED {
        let p: WithEndings<F, V::Parameter> = fields.parameters(block);
        let rho = X::density::<F::Energy>(r2, &p.first);
        X::ended(fields.ending, rho, r2, &p.second.second)
    } else {
        X::density::<F::Energy>(r2, &fields.parameters(block))
    }
}

/// φ and ρ of the pairs with some neighbours, with −2 d/dr² of both.
#[inline(always)]
fn pairs<F: Formula, V: Lanes, X: Quantity<V>>(
    fields: &Fields<V>,
    block: &Block<V, X>,
    r2: X,
) -> [Dual<X>; 2] {
    if F::ENDED {
        let p: WithEndings<F, V::Parameter> = fields.parameters(block);
        let [phi, rho] = X::embedded::<F>(r2, &p.first);
        let Both { first, second } = &p.second;
        [X::ended_slope(fields.ending, phi, r2, first), X::ended_slope(fields.ending, rho, r2, second)]
    } else {
        X::embedded::<F>(r2, &fields.parameters(block))
    }
}

/// A pair energy, and the energy of each atom in the density of its neighbours, computed by a formula with the same
/// parameters. (Another one than the derived one is for benchmarks.)
pub struct EmbeddingLaw<E, F = Derived<E>> {
    types: TypePairs,
    table: TypeTable,
    /// What sums of densities start from: their grid.
    origin: f64,
    list: usize,
    range: f64,
    /// dF/dρ of each rank (with its tangent, where that is wanted).
    slopes: Vec<f64>,
    /// The same of the atom in each slot, and its tangent.
    in_slots: [Vec<f64>; 2],
    partial: Vec<[Sums; 1]>,
    energy: PhantomData<(E, F)>,
}

impl<E: EmbeddingEnergy, F: Formula> EmbeddingLaw<E, F> {
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
            in_slots: [Vec::new(), Vec::new()],
            partial: Vec::new(),
            energy: PhantomData,
        }
    }
}

impl<E: EmbeddingEnergy, F: Formula> Law for EmbeddingLaw<E, F> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(ListNeed {
            range: self.range,
            leave_out: [false; 3],
            mirrors: false,
            single: false,
            double: true,
        })
    }
    fn ending(&self) -> Option<Ending> {
        F::ENDED.then_some(E::ENDING)
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

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        _: &[P],
        items: Range<usize>,
    ) -> S {
        let near = &view.frame.lists[self.list];
        let t = &view.frame.atoms.types;
        let of = |i: usize, j: usize| t[i] as usize * self.types.types + t[j] as usize;
        let row = |i: usize, j: usize| &p[self.types.rows[of(i, j)] as usize];
        let mut total = S::constant(0.0);
        for i in items {
            let mut density = S::constant(0.0);
            for &n in near.row(i) {
                let j = near.list.owner(n);
                let r2 = view.to_neighbor(i, n, near).norm_squared();
                if r2.lt(S::constant(self.types.cutoff2[of(i, j)])).decided() == Some(true) {
                    let r = Distance::from_squared(r2);
                    density = density + E::density(r, row(i, j));
                    if near.counts(i, n) {
                        total = total + E::pair(r, row(i, j));
                    }
                }
            }
            if S::constant(0.0).lt(density).decided() == Some(true) {
                total = total + E::embedding(density, row(i, i));
            }
        }
        total
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        // (energies alone have no tangents: those of forces are what is asked for)
        if O::TANGENTS && !F::FORCES {
            return;
        }
        let Self { types, table, origin, list, slopes, in_slots, partial, .. } = self;
        let (near, ending, formula) = (&frame.lists[*list], E::ENDING, PhantomData::<(O, F)>);
        let origin = if frame.grid == Grid::NONE { 0.0 } else { *origin };
        let parts = if O::TANGENTS { 2 } else { 1 };

        // first pass: densities, embedding energies and their slopes
        let n = near.list.len();
        slopes.resize(n * parts, 0.0);
        each_chunk(n, slopes, parts, partial, [&mut sink.sums], &|ranks, slopes, [sums]| {
            let own = |kind: usize| types.rows[kind * (types.types + 1)] as usize;
            let densities =
                Densities { frame, near, table, ending, origin, ranks: ranks.clone(), out: slopes, formula };
            frame.double::<O, _>(densities);
            for (k, slope) in ranks.zip(slopes.chunks_mut(parts)) {
                let density = O::One::new(slope[0], slope[parts - 1]);
                slope.fill(0.0);
                if density.value() > 0.0 {
                    // (what follows the formula's parameters in a row is not for it)
                    let e = Single::embedding::<F>(density, &p.row(own(frame.kind(near, k))));
                    (slope[0], slope[parts - 1]) = (e.tangent.value(), e.tangent.result());
                    if frame.sums {
                        sums.add_energy(e.value);
                    }
                }
            }
        });
        if F::FORCES {
            for (part, in_slots) in in_slots.iter_mut().enumerate().take(parts) {
                let of_slot = |&atom: &u32| slopes[near.list.rank(atom as usize) * parts + part];
                near.list.owners().par_iter().with_min_len(4096).map(of_slot).collect_into_vec(in_slots);
            }
        }

        // second pass: dE/dr² = φ′ + (F′ᵢ + F′ⱼ) ρ′, each pair seen from both sides
        each_rank(sink, *list, partial, &|ranks, forces, [sums]| {
            let pulls = Pulls { frame, near, table, ending, slopes, in_slots, ranks, forces, sums, formula };
            frame.double::<O, _>(pulls);
        });
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.types.reach(self.list))
    }
}

/// The densities at the atoms of some ranks.
struct Densities<'a, O, F> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    table: &'a TypeTable,
    ending: Ending,
    origin: f64,
    ranks: Range<usize>,
    out: &'a mut [f64],
    formula: PhantomData<(O, F)>,
}

impl<O: Order, F: Formula> Kernel<f64> for Densities<'_, O, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Densities { frame, near, table, ending, origin, ranks, out, .. } = self;
        let zero = O::Quantity::<V>::constant(0.0);
        // (a density changes by much more than itself where an atom moves by one nm)
        let (origin, of_rates) = (V::constant(origin), V::constant(origin * 128.0));
        let mut blocks = Blocks::<V, O::Quantity<V>>::new(frame, near);
        let mut fields = Fields::<V>::new(near, table, ending);
        for (k, out) in ranks.zip(out.chunks_mut(if O::TANGENTS { 2 } else { 1 })) {
            blocks.turn(k);
            fields.turn(frame.kind(near, k));
            let (mut density, mut rate) = (origin, of_rates);
            while let Some(block) = blocks.next() {
                let inside = fields.inside(&block);
                let rho = densities::<F, V, _>(&fields, &block, fields.squares(inside, &block));
                let rho = O::Quantity::<V>::select(inside, rho.odd(), zero);
                density = density + rho.value();
                if O::TANGENTS {
                    rate = rate + rho.result();
                }
            }
            out[0] = (density - origin).sum();
            if O::TANGENTS {
                out[1] = (rate - of_rates).sum();
            }
        }
    }
}

/// The forces on the atoms of some ranks, and the energies of their pairs.
struct Pulls<'a, O, F> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    table: &'a TypeTable,
    ending: Ending,
    slopes: &'a [f64],
    in_slots: &'a [Vec<f64>; 2],
    ranks: Range<usize>,
    forces: &'a mut [[f64; 3]],
    sums: &'a mut Sums,
    formula: PhantomData<(O, F)>,
}

impl<O: Order, F: Formula> Kernel<f64> for Pulls<'_, O, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Pulls { frame, near, table, ending, slopes, in_slots, ranks, forces, sums, .. } = self;
        let (zero, parts) = (O::Quantity::<V>::constant(0.0), if O::TANGENTS { 2 } else { 1 });
        let mut blocks = Blocks::<V, O::Quantity<V>>::new(frame, near);
        let mut fields = Fields::<V>::new(near, table, ending);
        let mut totals = Totals::<V>::new(frame.grid);
        let entries = near.list.entries().as_ptr();
        for (k, force) in ranks.zip(forces) {
            blocks.turn(k);
            fields.turn(frame.kind(near, k));
            let slope = |part: usize| V::constant(slopes[k * parts + part]);
            let own = O::Quantity::<V>::new(slope(0), slope(parts - 1));
            let mut pull = Pull::new(frame.grid);
            while let Some(block) = blocks.next() {
                let inside = fields.inside(&block);
                let [phi, rho] =
                    pairs::<F, V, O::Quantity<V>>(&fields, &block, fields.squares(inside, &block));
                if !F::FORCES {
                    totals.add_energy(inside, phi.value * 0.5);
                    continue;
                }
                // SAFETY: an entry is a slot, and every slot has a slope
                let other = unsafe { V::pick(in_slots[0].as_ptr(), entries.add(block.entry)) };
                let mut rate = other;
                if O::TANGENTS {
                    // SAFETY: as above
                    rate = unsafe { V::pick(in_slots[1].as_ptr(), entries.add(block.entry)) };
                }
                let g = rho.tangent.fma(own + O::Quantity::<V>::new(other, rate), phi.tangent);
                let g = O::Quantity::<V>::select(inside, g.odd(), zero);
                O::Quantity::<V>::pull(&mut pull, block.vector, g, &mut None);
                if frame.sums {
                    totals.add_pull(inside, phi.value, block.vector, g);
                }
            }
            pull.finish(force, None);
            if frame.sums {
                if F::FORCES { totals.flush(sums) } else { totals.flush_energy(sums) }
            }
        }
    }
}
