//! Pair energies over a neighbour list.

use super::chunks::each_atom;
use super::parameters::{ParameterTable, PreparedTable};
use super::term::{Law, ListNeed, Prepared, Reach, Sink, Sums};
use super::view::{Frame, Neighborhood, View};
use crate::autodiff::Dual;
use crate::autodiff::lanes::Lanes;
use potentials::{Coefficient, Distance, Factor, Mask, PairEnergy, Scalar, Vec3};
use std::marker::PhantomData;

/// A pair energy between all atoms of certain types that are near each other.
pub struct PairLaw<E: PairEnergy> {
    types: TypePairs,
    list: usize,
    range: f64,
    special: Special,
    partial: Vec<Sums>,
    energy: PhantomData<E>,
}

/// For each pair of types, the row of its parameters and the square of its cut-off (0 for no interaction).
#[derive(Clone, Debug, Default)]
pub struct TypePairs {
    /// How many types.
    pub types: usize,
    /// Rows of the parameter table, types × types, symmetric.
    pub rows: Vec<u32>,
    /// Squares of the cut-offs in nm², types × types.
    pub cutoff2: Vec<f64>,
}

impl TypePairs {
    /// No interaction between any types.
    pub fn none(types: usize) -> Self {
        Self { types, rows: vec![0; types * types], cutoff2: vec![0.0; types * types] }
    }
    /// Sets the row and cut-off of two types.
    pub fn set(&mut self, a: usize, b: usize, row: usize, cutoff: f64) {
        for k in [a * self.types + b, b * self.types + a] {
            (self.rows[k], self.cutoff2[k]) = (row as u32, cutoff * cutoff);
        }
    }
    /// Takes the cut-offs of pairs that interact from their rows, where `cutoff` and `inner` follow the `own`
    /// parameters of the energy.
    pub(super) fn follow(&mut self, parameters: &ParameterTable, own: usize) {
        if parameters.width() != own + 2 {
            return;
        }
        for (cutoff2, &row) in self.cutoff2.iter_mut().zip(&self.rows).filter(|(c, _)| **c > 0.0) {
            *cutoff2 = parameters.field(row as usize, own).powi(2);
        }
    }
    /// The cut-offs, for neighbours from that list.
    pub(super) fn reach(&self, list: usize) -> Reach<'_> {
        Reach { list, types: self.types, cutoff2: &self.cutoff2 }
    }
    /// The largest cut-off.
    pub fn range(&self) -> f64 {
        self.cutoff2.iter().fold(0.0, |m: f64, &c| m.max(c)).sqrt()
    }
}

/// Pairs that are not in the list, or not in full: those joined by few bonds.
#[derive(Clone, Debug, Default)]
pub struct Special {
    /// Which pairs the list leaves out: those 1-2, 1-3, 1-4 bonds apart whose factor is not 1.
    pub leave_out: [bool; 3],
    /// Pairs that keep a part f of their interaction (nearest image): i, j, f. A pair with f = 0 stands here only
    /// if the energy leaves a remainder.
    pub pairs: Vec<(u32, u32, f64)>,
    /// Whether excluded pairs keep the energy's remainder, and atoms their energy with themselves.
    pub remainder: bool,
}

impl<E: PairEnergy> PairLaw<E> {
    /// A pair energy for these types and special pairs.
    pub fn new(types: TypePairs, special: Special) -> Self {
        let range = types.range();
        Self { types, list: 0, range, special, partial: Vec::new(), energy: PhantomData }
    }
}

/// The product k qᵢ qⱼ, or 1.
#[inline(always)]
fn factor<P: Scalar>(kind: Factor, coulomb: f64, qi: P, qj: P) -> Option<P> {
    match kind {
        Factor::One => None,
        Factor::Charge => Some(qi * qj * coulomb),
    }
}

#[inline(always)]
fn scaled<S: Scalar, P: Coefficient<S>>(e: S, factor: Option<P>) -> S {
    match factor {
        None => e,
        Some(f) => f * e,
    }
}

/// The sum over pairs for any energy: `pair(r², row, part)` is the formula, `own(row)` the energy of an atom with
/// itself. Compiled once for a kind of number, not for every energy.
#[inline(never)]
#[allow(clippy::too_many_arguments)]
fn sum_of_pairs<S: Scalar, P: Coefficient<S>>(
    view: &View<S>,
    near: &Neighborhood,
    types: &TypePairs,
    special: &Special,
    kind: Factor,
    q: &[P],
    pair: &dyn Fn(S, usize, f64) -> S,
    own: &dyn Fn(usize) -> P,
) -> S {
    let frame = view.frame;
    let t = &frame.atoms.types;
    let one = |d: Vec3<S>, i: usize, j: usize, part: f64| -> Option<S> {
        let of = t[i] as usize * types.types + t[j] as usize;
        let r2 = d.norm_squared();
        let inside = r2.lt(S::constant(types.cutoff2[of])).decided() == Some(true);
        inside
            .then(|| scaled(pair(r2, types.rows[of] as usize, part), factor(kind, frame.coulomb, q[i], q[j])))
    };
    let mut total = S::constant(0.0);
    for i in 0..frame.atoms.len() {
        for &n in near.list.row(i).iter().filter(|&&n| near.counts(i, n)) {
            if let Some(e) = one(view.to_neighbor(i, n, near), i, n.j as usize, 1.0) {
                total = total + e;
            }
        }
        let of = t[i] as usize * (types.types + 1);
        if special.remainder && types.cutoff2[of] > 0.0 {
            let own = own(types.rows[of] as usize);
            total = total + factor(kind, frame.coulomb, q[i], q[i]).map_or(own, |f| f * own).lift();
        }
    }
    for &(i, j, part) in &special.pairs {
        let (i, j) = (i as usize, j as usize);
        if let Some(e) = one(view.nearest(i, j), i, j, part) {
            total = total + e;
        }
    }
    total
}

impl<E: PairEnergy> Law for PairLaw<E> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(ListNeed { range: self.range, leave_out: self.special.leave_out, mirrors: false })
    }
    fn set_list(&mut self, list: usize) {
        self.list = list;
    }
    fn parameters_changed(&mut self, parameters: &ParameterTable, _: &PreparedTable) {
        self.types.follow(parameters, E::ABOUT.params.len());
        self.range = self.types.range();
    }

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], q: &[P]) -> S {
        let pair = |r2: S, row: usize, part: f64| {
            let (r, p) = (Distance::from_squared(r2), &p[row]);
            let mut e = if part == 0.0 { S::constant(0.0) } else { E::energy(r, p) * part };
            if self.special.remainder && part != 1.0 {
                e = e + E::excluded(r, p) * (1.0 - part);
            }
            e
        };
        let own = |row: usize| E::own::<P>(&p[row]);
        let near = &view.frame.lists[self.list];
        sum_of_pairs(view, near, &self.types, &self.special, E::FACTOR, q, &pair, &own)
    }

    fn fused<V: Lanes>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let near = &frame.lists[self.list];
        let types = &self.types;
        each_atom(sink, &mut self.partial, &|atoms, forces, sums| {
            let mut found = Vec::new();
            for (i, force) in atoms.zip(forces) {
                within(frame, near, types, i, &mut found);
                row::<V, E>(frame, p, i, &found, force, sums);
            }
        });
        let (remainder, special) = (self.special.remainder, &self.special);
        let pair = |r2: f64, row: usize, part: f64| {
            let (r, p) = (Distance::from_squared(Dual::new(r2, -2.0)), &p.row::<E::Prepared<f64>>(row));
            let mut e = Dual::constant(0.0);
            if part != 0.0 {
                e = E::energy::<Dual<f64>, f64>(r, p) * part;
            }
            if remainder {
                e = e + E::excluded::<Dual<f64>, f64>(r, p) * (1.0 - part);
            }
            e
        };
        let own = |row: usize| E::own::<f64>(&p.row(row));
        special_pairs(frame, types, special, E::FACTOR, sink, &pair, &own);
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.types.reach(self.list))
    }
}

/// Forces of the special pairs, and the energies of atoms with themselves.
fn special_pairs(
    frame: &Frame,
    types: &TypePairs,
    special: &Special,
    kind: Factor,
    sink: &mut Sink,
    pair: &dyn Fn(f64, usize, f64) -> Dual<f64>,
    own: &dyn Fn(usize) -> f64,
) {
    let (t, q) = (&frame.atoms.types, frame.charges);
    for &(i, j, part) in &special.pairs {
        let (i, j) = (i as usize, j as usize);
        let of = t[i] as usize * types.types + t[j] as usize;
        let d = frame.nearest(i, j);
        let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if r2 >= types.cutoff2[of] {
            continue;
        }
        let e = scaled(pair(r2, types.rows[of] as usize, part), factor(kind, frame.coulomb, q[i], q[j]));
        let f = d.map(|d| e.tangent * d);
        for k in 0..3 {
            sink.forces[i][k] -= f[k];
            sink.forces[j][k] += f[k];
        }
        sink.sums.add_energy(e.value);
        sink.sums.add_virial(d, f);
    }
    for (i, &t) in t.iter().enumerate().filter(|_| special.remainder) {
        let of = t as usize * (types.types + 1);
        if types.cutoff2[of] > 0.0 {
            let own = own(types.rows[of] as usize);
            sink.sums.add_energy(factor(kind, frame.coulomb, q[i], q[i]).map_or(own, |f| f * own));
        }
    }
}

/// A neighbour within the cut-off.
#[derive(Clone, Copy, Default)]
pub(super) struct Near {
    /// From the atom to it.
    pub vector: [f64; 3],
    /// Its distance squared.
    pub r2: f64,
    /// Which atom it is.
    pub j: u32,
    /// The row of the pair's parameters.
    pub row: u32,
}

/// The neighbours of atom i within the cut-offs, in list order. Compiled once, not for every energy.
#[inline(never)]
pub(super) fn within(frame: &Frame, near: &Neighborhood, types: &TypePairs, i: usize, found: &mut Vec<Near>) {
    let t = &frame.atoms.types;
    let from = t[i] as usize * types.types;
    let (cutoff2, rows) = (&types.cutoff2[from..from + types.types], &types.rows[from..from + types.types]);
    let neighbors = near.list.row(i);
    found.resize(neighbors.len(), Near::default());
    let mut count = 0;
    for &n in neighbors {
        let kind = t[n.j as usize] as usize;
        let limit = cutoff2[kind];
        if limit == 0.0 {
            continue;
        }
        let vector = near.vector(frame.cell, i, n);
        let r2 = vector[0] * vector[0] + (vector[1] * vector[1] + vector[2] * vector[2]);
        // written in any case and kept by counting it: whether a neighbour is within is a coin toss to the processor
        found[count] = Near { vector, r2, j: n.j, row: rows[kind] };
        count += usize::from(r2 < limit);
    }
    found.truncate(count);
}

/// One value a lane, of a block of neighbours; lanes beyond its end repeat the last.
#[inline(always)]
pub(super) fn gather<V: Lanes>(block: &[Near], f: impl Fn(&Near) -> f64) -> V {
    let last = block.len() - 1;
    V::gather(|k| f(&block[k.min(last)]))
}

/// The lanes that stand for a neighbour.
#[inline(always)]
pub(super) fn full<V: Lanes>(block: &[Near]) -> V::Mask {
    V::constant(0.0).lt(V::gather(|k| if k < block.len() { 1.0 } else { 0.0 }))
}

/// The energy, force and virial of one atom with the neighbours found for it.
#[inline(always)]
fn row<V: Lanes, E: PairEnergy>(
    frame: &Frame,
    p: &PreparedTable,
    i: usize,
    found: &[Near],
    force: &mut [f64; 3],
    sums: &mut Sums,
) {
    let zero = V::constant(0.0);
    let charge = frame.charges[i] * frame.coulomb;
    let (mut pull, mut energy) = (Pull::new(), zero);
    for block in found.chunks(V::WIDTH) {
        let q: E::Prepared<V::Parameter> = p.gather::<V, _>(|k| block[k.min(block.len() - 1)].row as usize);
        // the seed −2 makes the tangent −2 dE/dr², which is the force over the distance
        let r2 = Dual::new(gather(block, |n| n.r2), V::constant(-2.0));
        let mut e = E::energy::<Dual<V>, V::Parameter>(Distance::from_squared(r2), &q);
        if E::FACTOR == Factor::Charge {
            let qq = gather::<V>(block, |n| frame.charges[n.j as usize]) * charge;
            e = Dual::new(e.value * qq, e.tangent * qq);
        }
        let inside = full::<V>(block);
        let g = V::select(inside, e.tangent, zero);
        energy = energy + V::select(inside, e.value, zero);
        pull.add([0, 1, 2].map(|c| gather(block, |n| n.vector[c])), g);
    }
    pull.finish(energy, force, sums);
}

/// The force on an atom and the virial of its neighbours' pulls g d along their vectors d, half of each counted.
pub(super) struct Pull<V> {
    force: [V; 3],
    virial: [V; 6],
}

impl<V: Lanes> Pull<V> {
    pub fn new() -> Self {
        Self { force: [V::constant(0.0); 3], virial: [V::constant(0.0); 6] }
    }
    #[inline(always)]
    pub fn add(&mut self, [x, y, z]: [V; 3], g: V) {
        let (gx, gy, gz) = (g * x, g * y, g * z);
        let (f, w) = (&mut self.force, &mut self.virial);
        f[0] = f[0] - gx;
        f[1] = f[1] - gy;
        f[2] = f[2] - gz;
        w[0] = x.fma(gx, w[0]);
        w[1] = y.fma(gy, w[1]);
        w[2] = z.fma(gz, w[2]);
        w[3] = x.fma(gy, w[3]);
        w[4] = x.fma(gz, w[4]);
        w[5] = y.fma(gz, w[5]);
    }
    #[inline(never)]
    pub fn finish(self, energy: V, force: &mut [f64; 3], sums: &mut Sums) {
        for (f, pull) in force.iter_mut().zip(self.force) {
            *f += pull.sum();
        }
        sums.0[0] += 0.5 * energy.sum();
        for (s, w) in sums.0[1..].iter_mut().zip(self.virial) {
            *s += 0.5 * w.sum();
        }
    }
}
