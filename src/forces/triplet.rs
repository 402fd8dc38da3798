//! Features → triplets energies (Stillinger–Weber).

// Kernels read and write whole registers.
#![allow(unsafe_code)]

use super::chunks::{LANES, Totals, spill};
use super::order::{Order, Quantity};
use super::pair::{Blocks, Derived, seeded};
use super::parameters::{ParameterTable, PreparedTable};
use super::shares::{Shares, Sight, Sites};
use super::term::{Law, ListNeed, Prepared, Reach, Sink};
use super::view::{Frame, View};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{Dual, StackTape, StackVar};
use potentials::{Coefficient, Distance, Energy, Mask, Record, Scalar, TripletEnergy, Vec3};
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;

/// For each triple of types (centre, neighbour, other neighbour) the row of its parameters, or `NO_ROW`.
#[derive(Clone, Debug, Default)]
pub struct TypeTriples {
    /// How many types.
    pub types: usize,
    /// Rows of the parameter table, types × types × types.
    pub rows: Vec<u32>,
}

/// No interaction.
pub const NO_ROW: u32 = u32::MAX;

impl TypeTriples {
    /// The row of a triple of types.
    #[inline(always)]
    pub fn row(&self, i: usize, j: usize, k: usize) -> Option<usize> {
        let row = self.rows[(i * self.types + j) * self.types + k];
        (row != NO_ROW).then_some(row as usize)
    }
}

/// What the kernel computes of a triplet energy.
pub trait Formula: Send + Sync + 'static {
    /// The energy whose parameters it has.
    type Energy: TripletEnergy;
    /// Whether there are forces. (What energies alone cost is for benchmarks.)
    const FORCES: bool = true;
    /// Pair energies and features of some neighbours, with −2 d/dr² of both.
    fn neighbors<V: Lanes>(r2: V, p: &Parameters<Self, V::Parameter>) -> [Dual<V>; 2];
    /// Energies of two neighbours, and the derivatives in the numbers given: the vectors to both, and their features.
    fn triplets<V: Lanes>(x: [V; 8], p: &Parameters<Self, V::Parameter>) -> (V, [V; 8]);
    /// The former with tangents: derived, whoever has written the other.
    #[inline(always)]
    fn tangents_of_neighbors<V: Lanes>(
        r2: Dual<V>,
        p: &Parameters<Self, V::Parameter>,
    ) -> [Dual<Dual<V>>; 2] {
        derived_neighbors::<Self::Energy, V, _>(r2, p)
    }
    /// And so for the latter.
    #[inline(always)]
    fn tangents_of_triplets<V: Lanes>(
        x: [Dual<V>; 8],
        p: &Parameters<Self, V::Parameter>,
    ) -> (Dual<V>, [Dual<V>; 8]) {
        derived_triplets::<Self::Energy, V, _>(x, p)
    }
}

/// The parameters of a formula.
pub type Parameters<F, T> = <<F as Formula>::Energy as Energy>::Prepared<T>;

impl<E: TripletEnergy> Formula for Derived<E> {
    type Energy = E;
    #[inline(always)]
    fn neighbors<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> [Dual<V>; 2] {
        derived_neighbors::<E, V, _>(r2, p)
    }
    #[inline(always)]
    fn triplets<V: Lanes>(x: [V; 8], p: &E::Prepared<V::Parameter>) -> (V, [V; 8]) {
        derived_triplets::<E, V, _>(x, p)
    }
}

#[inline(always)]
fn derived_neighbors<E: TripletEnergy, V: Lanes, X: Scalar>(
    r2: X,
    p: &E::Prepared<V::Parameter>,
) -> [Dual<X>; 2]
where
    V::Parameter: Coefficient<Dual<X>>,
{
    let r = Distance::from_squared(seeded(r2));
    [E::pair::<Dual<X>, V::Parameter>(r, p), E::feature::<Dual<X>, V::Parameter>(r, p)]
}

#[inline(always)]
fn derived_triplets<E: TripletEnergy, V: Lanes, X: Scalar>(
    x: [X; 8],
    p: &E::Prepared<V::Parameter>,
) -> (X, [X; 8])
where
    V::Parameter: for<'t> Coefficient<StackVar<'t, X, CAPACITY>>,
{
    // (a tape of these triplets only, so that it can dissolve into registers)
    let tape = StackTape::<X, CAPACITY>::new();
    let [ax, ay, az, bx, by, bz, ga, gb] = tape.restart(x);
    let cos = cosine(Vec3::new(ax, ay, az), Vec3::new(bx, by, bz));
    let e = E::triplet::<StackVar<X, CAPACITY>, V::Parameter>(cos, ga, gb, p);
    (e.value(), tape.gradient_in_registers(e))
}

/// A triplet energy between atoms of certain types. (Another formula than the derived one is for benchmarks.)
pub struct TripletLaw<E: TripletEnergy, F = Derived<E>> {
    sight: Sight,
    shares: Shares<Vec<Known<f64>>>,
    energy: PhantomData<(E, F)>,
}

impl<E: TripletEnergy, F: Formula<Energy = E>> TripletLaw<E, F> {
    /// For these types.
    pub fn new(types: TypeTriples) -> Self {
        Self { sight: Sight::of(types), shares: Shares::default(), energy: PhantomData }
    }
}

/// The most steps that one triplet may take on the stack tape.
const CAPACITY: usize = 128;

/// One neighbour of an atom with its feature.
struct Feature<S> {
    vector: Vec3<S>,
    feature: S,
    kind: usize,
}

/// The same in plain numbers: feature, −2 d(feature)/dr², and what the triplets have asked of it so far.
#[derive(Clone, Copy, Debug)]
struct Known<Y> {
    entry: usize,
    kind: usize,
    vector: [Y; 3],
    r2: Y,
    feature: Y,
    slope: Y,
    adjoint: Y,
}

/// The cosine of the angle between two vectors.
#[inline(always)]
fn cosine<S: Scalar>(a: Vec3<S>, b: Vec3<S>) -> S {
    a.dot(b) * (a.norm_squared() * b.norm_squared()).rsqrt()
}

/// All (a, b) with a < b < n, b slowest.
struct PairsOf {
    n: usize,
    at: (usize, usize),
}
impl PairsOf {
    fn new(n: usize) -> Self {
        Self { n, at: (0, 1) }
    }
}
impl Iterator for PairsOf {
    type Item = (usize, usize);
    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        let (a, b) = self.at;
        if b >= self.n {
            return None;
        }
        self.at = if a + 1 < b { (a + 1, b) } else { (0, b + 1) };
        Some((a, b))
    }
}

/// Neighbours within reach, and the pair energies with them (half of each).
fn features<E: TripletEnergy, S: Scalar, P: Coefficient<S>>(
    sight: &Sight,
    kind: usize,
    neighbors: impl Iterator<Item = (usize, Vec3<S>)>,
    p: &[E::Prepared<P>],
    out: &mut Vec<Feature<S>>,
) -> S {
    let Sight { types, reach2, .. } = sight;
    let mut pairs = S::constant(0.0);
    out.clear();
    for (other, vector) in neighbors {
        let r2 = vector.norm_squared();
        let within = r2.lt(S::constant(reach2[kind * types.types + other])).decided() == Some(true);
        let Some(row) = types.row(kind, other, other).filter(|_| within) else { continue };
        let r = Distance::from_squared(r2);
        pairs = pairs + E::pair(r, &p[row]) * 0.5;
        out.push(Feature { vector, feature: E::feature(r, &p[row]), kind: other });
    }
    pairs
}

/// The energies of all pairs of neighbours of an atom.
fn triplets<E: TripletEnergy, S: Scalar, P: Coefficient<S>>(
    types: &TypeTriples,
    kind: usize,
    near: &[Feature<S>],
    p: &[E::Prepared<P>],
) -> S {
    let mut total = S::constant(0.0);
    for (k, b) in near.iter().enumerate() {
        for a in &near[..k] {
            if let Some(row) = types.row(kind, a.kind, b.kind) {
                total = total + E::triplet(cosine(a.vector, b.vector), a.feature, b.feature, &p[row]);
            }
        }
    }
    total
}

/// The squares of the reach of each pair of types.
fn reaches<R: Record<f64>>(types: &TypeTriples, p: &PreparedTable, reach: impl Fn(&R) -> f64) -> Vec<f64> {
    let n = types.types;
    let of = |k: usize| types.row(k / n, k % n, k % n).map_or(0.0, |row| reach(&p.row(row)).powi(2));
    (0..n * n).map(of).collect()
}

impl<E: TripletEnergy, F: Formula<Energy = E>> Law for TripletLaw<E, F> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(self.sight.need())
    }
    fn set_list(&mut self, list: usize) {
        self.sight.list = list;
    }
    fn parameters_changed(&mut self, _: &ParameterTable, p: &PreparedTable) {
        self.sight.reach2 = reaches::<E::Prepared<f64>>(&self.sight.types, p, E::reach::<f64>);
    }

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        _: &[P],
        items: Range<usize>,
    ) -> S {
        let near = &view.frame.lists[self.sight.list];
        let t = &view.frame.atoms.types;
        let (mut total, mut found) = (S::constant(0.0), Vec::new());
        for i in items {
            let row = near.row(i).iter();
            let neighbors = row.map(|&n| (t[near.list.owner(n)] as usize, view.to_neighbor(i, n, near)));
            let kind = t[i] as usize;
            let pairs = features::<E, S, P>(&self.sight, kind, neighbors, p, &mut found);
            total = total + pairs + triplets::<E, S, P>(&self.sight.types, kind, &found, p);
        }
        total
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        // (energies alone have no tangents: those of forces are what is asked for)
        if O::TANGENTS && !F::FORCES {
            return;
        }
        let Self { sight, shares, .. } = self;
        let body = &|sites: Sites, found: &mut Vec<Known<f64>>| {
            // (for values there is memory at hand)
            let mut fresh = Vec::new();
            let found = (found as &mut dyn Any).downcast_mut().unwrap_or(&mut fresh);
            frame.double::<O, _>(Triplets::<O, F> { sites, found, formula: PhantomData });
        };
        shares.each_site(frame, sight, p, sink, body);
        if F::FORCES {
            shares.collect(frame, sight, sink);
        }
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.sight.reach())
    }
}

/// The triplets around some atoms, as many at a time as there are lanes.
struct Triplets<'a, O: Order, F> {
    sites: Sites<'a>,
    /// Memory for the neighbours of an atom.
    found: &'a mut Vec<Known<O::One>>,
    formula: PhantomData<F>,
}

impl<O: Order, F: Formula> Kernel<f64> for Triplets<'_, O, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Self { sites: Sites { frame, near, sight, p, ranks, shares, sums }, found, .. } = self;
        let types = &sight.types;
        let (list, t) = (&near.list, &frame.atoms.types);
        let (starts, mut blocks) = (list.starts(), Blocks::<V, O::Quantity<V>>::new(frame, near));
        let farthest = V::constant(sight.reach2.iter().fold(0.0, |m: f64, &r| m.max(r)));
        let grid = V::constant(frame.grid.force_origin());
        let (zero, nothing) = (O::Quantity::<V>::constant(0.0), O::One::constant(0.0));
        let first = starts[ranks.start] as usize;
        let mut totals = Totals::<V>::new(frame.grid);
        for rank in ranks {
            let shares = &mut shares[starts[rank] as usize - first..starts[rank + 1] as usize - first];
            let slot = list.slots()[rank];
            let kind = if near.kinds.is_empty() { 0 } else { t[list.owner(slot)] as usize };
            found.clear();
            blocks.turn(rank);
            let row = starts[rank] as usize;
            while let Some(block) = blocks.next() {
                // (few neighbours are in reach of such an energy)
                let mut close = V::bits(block.r2.value().lt(farthest) & block.own());
                if close == 0 {
                    continue;
                }
                let [x, y, z] = block.vector;
                let [x, y, z, r2] = O::Quantity::<V>::spill([x, y, z, block.r2]);
                while close != 0 {
                    let k = close.trailing_zeros() as usize;
                    close &= close - 1;
                    let other = if near.kinds.is_empty() { 0 } else { near.kinds[block.entry + k] as usize };
                    if sight.sees(kind, other, r2[k].value()) {
                        found.push(Known {
                            entry: block.entry + k - row,
                            kind: other,
                            vector: [x[k], y[k], z[k]],
                            r2: r2[k],
                            feature: nothing,
                            slope: nothing,
                            adjoint: nothing,
                        });
                    }
                }
            }
            // features, and the pair energies
            for block in found.chunks_mut(V::WIDTH) {
                let at = |k: usize| &block[if k < block.len() { k } else { 0 }];
                let r2 = O::Quantity::<V>::gather(
                    #[inline(always)]
                    |k| at(k).r2,
                );
                let row = |k: usize| types.row(kind, at(k).kind, at(k).kind).unwrap_or(0);
                let q: Parameters<F, V::Parameter> = p.gather::<V, _>(row);
                let [e, g] = O::Quantity::<V>::neighbors::<F>(r2, &q);
                if !F::FORCES {
                    totals.add_energy(V::first(block.len()), e.value * 0.5);
                    let [feature] = O::Quantity::<V>::spill([g.value]);
                    block.iter_mut().zip(feature).for_each(|(a, feature)| a.feature = feature);
                    continue;
                }
                let half = e.tangent * 0.5;
                let d = [
                    O::Quantity::<V>::gather(
                        #[inline(always)]
                        |k| at(k).vector[0],
                    ),
                    O::Quantity::<V>::gather(
                        #[inline(always)]
                        |k| at(k).vector[1],
                    ),
                    O::Quantity::<V>::gather(
                        #[inline(always)]
                        |k| at(k).vector[2],
                    ),
                ];
                let f =
                    [(half * d[0]).rounded(grid), (half * d[1]).rounded(grid), (half * d[2]).rounded(grid)];
                if frame.sums {
                    let own = V::first(block.len());
                    totals.add(own, e.value * 0.5, d, f);
                }
                let [feature, slope] = O::Quantity::<V>::spill([g.value, g.tangent]);
                let [x, y, z] = spill([f[0].result(), f[1].result(), f[2].result()]);
                for (k, a) in block.iter_mut().enumerate() {
                    (a.feature, a.slope) = (feature[k], slope[k]);
                    shares[a.entry] = [x[k], y[k], z[k]];
                }
            }
            // every pair of neighbours, some at a time
            let mut pairs = PairsOf::new(found.len());
            let mut block = [(0, 0, 0); LANES];
            loop {
                let mut filled = 0;
                while filled < V::WIDTH {
                    let Some((a, b)) = pairs.next() else { break };
                    if let Some(row) = types.row(kind, found[a].kind, found[b].kind) {
                        block[filled] = (a, b, row);
                        filled += 1;
                    }
                }
                if filled == 0 {
                    break;
                }
                let at = |k: usize| block[if k < filled { k } else { 0 }];
                let q: Parameters<F, V::Parameter> = p.gather::<V, _>(|k| at(k).2);
                let mut input = [[[0.0; LANES]; 8]; 2];
                for k in 0..V::WIDTH {
                    let (a, b) = (&found[at(k).0], &found[at(k).1]);
                    let [x, y, z] = a.vector;
                    let [u, v, w] = b.vector;
                    for (n, x) in [x, y, z, u, v, w, a.feature, b.feature].into_iter().enumerate() {
                        input[0][n][k] = x.value();
                        if O::TANGENTS {
                            input[1][n][k] = x.result();
                        }
                    }
                }
                let mut numbers = [zero; 8];
                for (n, number) in numbers.iter_mut().enumerate() {
                    // SAFETY: there are at most `LANES` lanes
                    let [value, tangent] =
                        unsafe { [V::load(input[0][n].as_ptr()), V::load(input[1][n].as_ptr())] };
                    *number = O::Quantity::<V>::new(value, tangent);
                }
                let input = numbers;
                let (e, g) = O::Quantity::<V>::triplets::<F>(input, &q);
                if !F::FORCES {
                    totals.add_energy(V::first(filled), e);
                    continue;
                }
                // (loops, since the standard library's `from_fn` and `map` are not inlined)
                let (mut f, mut results) = ([zero; 6], [V::constant(0.0); 6]);
                for c in 0..6 {
                    f[c] = (-g[c]).rounded(grid);
                    results[c] = f[c].result();
                }
                if frame.sums {
                    let own = V::first(filled);
                    let [ax, ay, az, bx, by, bz, ..] = input;
                    totals.add(own, e, [ax, ay, az], [f[0], f[1], f[2]]);
                    totals.add(own, zero, [bx, by, bz], [f[3], f[4], f[5]]);
                }
                let f = spill(results);
                let asked = O::Quantity::<V>::spill([g[6], g[7]]);
                for (k, &(a, b, _)) in block[..filled].iter().enumerate() {
                    for (x, first, asked) in [(a, 0, &asked[0]), (b, 3, &asked[1])] {
                        let x = &mut found[x];
                        x.adjoint = x.adjoint + asked[k];
                        let share = &mut shares[x.entry];
                        for c in 0..3 {
                            share[c] += f[first + c][k];
                        }
                    }
                }
            }
            if !F::FORCES {
                totals.flush_energy(sums);
                continue;
            }
            // what the triplets ask of the features goes on to the distances
            for a in found.iter() {
                let asked = a.adjoint * a.slope;
                let (origin, [x, y, z]) = (frame.grid.force_origin(), a.vector);
                let f =
                    [(asked * x).rounded(origin), (asked * y).rounded(origin), (asked * z).rounded(origin)];
                for c in 0..3 {
                    shares[a.entry][c] += f[c].result();
                }
                if frame.sums {
                    sums.add_virial(a.vector, f);
                }
            }
            if frame.sums {
                totals.flush(sums);
            }
        }
    }
}
