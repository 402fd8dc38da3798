//! Pair energies over a neighbour list.

// Kernels read lists and tables without checks.
#![allow(unsafe_code)]

use super::chunks::{add, each_rank, flush};
use super::parameters::{ParameterTable, PreparedTable};
use super::term::{Law, ListNeed, Prepared, Reach, Sink, Sums};
use super::view::{Frame, Grid, Neighborhood, View};
use crate::autodiff::Dual;
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::system::Cell;
use potentials::{Coefficient, Distance, Factor, Mask, PairEnergy, Record, Scalar, Vec3};
use std::marker::PhantomData;
use std::ops::Range;

/// What a kernel computes for some pairs: energy, and force over distance, in every lane.
pub trait Formula<E: PairEnergy>: Send + Sync + 'static {
    /// E and −2 dE/dr².
    fn pairs<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V);
}

/// An energy's text, differentiated by the number that it is called with.
pub struct Derived;

impl<E: PairEnergy> Formula<E> for Derived {
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V) {
        // the seed −2 makes the tangent −2 dE/dr², which is the force over the distance
        let r2 = Dual::new(r2, V::constant(-2.0));
        let e = E::energy::<Dual<V>, V::Parameter>(Distance::from_squared(r2), p);
        (e.value, e.tangent)
    }
}

/// A pair energy between all atoms of certain types that are near each other. (Another formula than the derived one
/// is for benchmarks.)
pub struct PairLaw<E: PairEnergy, F = Derived> {
    types: TypePairs,
    table: TypeTable,
    list: usize,
    range: f64,
    special: Special,
    partial: Vec<Sums>,
    energy: PhantomData<(E, F)>,
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

impl<E: PairEnergy, F: Formula<E>> PairLaw<E, F> {
    /// A pair energy for these types and special pairs.
    pub fn new(types: TypePairs, special: Special) -> Self {
        let range = types.range();
        Self {
            types,
            table: TypeTable::default(),
            list: 0,
            range,
            special,
            partial: Vec::new(),
            energy: PhantomData,
        }
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
        for &n in near.row(i).iter().filter(|&&n| near.counts(i, n)) {
            if let Some(e) = one(view.to_neighbor(i, n, near), i, near.list.owner(n), 1.0) {
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

impl<E: PairEnergy, F: Formula<E>> Law for PairLaw<E, F> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(ListNeed { range: self.range, leave_out: self.special.leave_out, mirrors: false })
    }
    fn set_list(&mut self, list: usize) {
        self.list = list;
    }
    fn parameters_changed(&mut self, parameters: &ParameterTable, prepared: &PreparedTable) {
        self.types.follow(parameters, E::ABOUT.params.len());
        self.range = self.types.range();
        self.table = TypeTable::new(&self.types, prepared);
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

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { types, table, list, .. } = self;
        let near = &frame.lists[*list];
        each_rank(sink, *list, &mut self.partial, &|ranks, forces, sums| {
            let energy = PhantomData::<(E, F)>;
            frame.isa.double(Rows { frame, near, table, ranks, forces, sums, energy });
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
        let f = frame.grid.force(d.map(|d| e.tangent * d));
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

/// The parameters and cut-offs of all pairs of types, so laid out that lanes find theirs by the second type.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeTable {
    types: usize,
    /// How many fields a record of parameters has.
    width: usize,
    /// For each first type the fields, and the square of the cut-off: one number for every second type.
    values: Vec<f64>,
    /// Whether all pairs of types have the same.
    uniform: bool,
    /// A square of a distance at which nothing overflows: the largest of the cut-offs.
    safe: f64,
}

impl TypeTable {
    pub fn new(types: &TypePairs, p: &PreparedTable) -> Self {
        let (n, width) = (types.types, p.width());
        let mut values = Vec::with_capacity(n * n * (width + 1));
        for a in 0..n {
            let of = |b: usize| a * n + b;
            for m in 0..width {
                values.extend((0..n).map(|b| p.field(types.rows[of(b)] as usize, m)));
            }
            values.extend((0..n).map(|b| types.cutoff2[of(b)]));
        }
        let all = (0..n * n).all(|k| types.rows[k] == types.rows[0] && types.cutoff2[k] == types.cutoff2[0]);
        Self { types: n, width, values, uniform: all, safe: types.range().powi(2) }
    }

    /// The numbers of a first type.
    #[inline(always)]
    fn of(&self, kind: usize) -> &[f64] {
        let size = self.types * (self.width + 1);
        &self.values[kind * size..(kind + 1) * size]
    }
}

/// The basis of a cell, in lanes.
pub(super) struct Metric<V> {
    basis: [[V; 3]; 3],
    diagonal: bool,
}

impl<V: Lanes> Metric<V> {
    #[inline(always)]
    pub fn of(cell: &Cell) -> Self {
        let b = cell.basis();
        let basis = std::array::from_fn(|k| std::array::from_fn(|c| V::constant(b[k][c])));
        Self { basis, diagonal: cell.is_orthorhombic() }
    }
    /// A difference of rows in nm.
    #[inline(always)]
    pub fn cartesian(&self, s: [V; 3]) -> [V; 3] {
        let b = &self.basis;
        // (the branch goes the same way throughout a run)
        if self.diagonal {
            [s[0] * b[0][0], s[1] * b[1][1], s[2] * b[2][2]]
        } else {
            let along = |c: usize| s[2].fma(b[2][c], s[1].fma(b[1][c], s[0] * b[0][c]));
            [along(0), along(1), along(2)]
        }
    }
}

/// The neighbours of an atom, some at a time.
pub(super) struct Blocks<'a, V> {
    near: &'a Neighborhood,
    table: &'a TypeTable,
    metric: Metric<V>,
    safe: V,
    /// Entries of the row at work, from and to.
    next: usize,
    end: usize,
    own: [V; 3],
    /// The parameters of the atom's type.
    of_type: *const f64,
    single: bool,
}

/// Some neighbours.
pub(super) struct Block<V: Lanes> {
    /// From the atom to them.
    pub vector: [V; 3],
    /// Their distances squared, where they are within the cut-off.
    pub r2: V,
    /// The fourth number of their rows.
    pub fourth: V,
    /// Which lanes are neighbours within the cut-off.
    pub inside: V::Mask,
    /// The first of their entries.
    pub entry: usize,
}

impl<'a, V: Lanes<Element = f64>> Blocks<'a, V> {
    #[inline(always)]
    pub fn new(frame: &Frame, near: &'a Neighborhood, table: &'a TypeTable) -> Self {
        let zero = V::constant(0.0);
        Self {
            near,
            table,
            metric: Metric::of(frame.cell),
            safe: V::constant(table.safe),
            next: 0,
            end: 0,
            own: [zero; 3],
            of_type: table.values.as_ptr(),
            single: table.uniform || near.kinds.is_empty(),
        }
    }

    /// Turns to the atom of rank k, whose type this is; returns the fourth number of its row.
    #[inline(always)]
    pub fn turn(&mut self, k: usize, kind: usize) -> f64 {
        let list = &self.near.list;
        self.next = list.starts()[k] as usize;
        self.end = self.next + list.row(k).len();
        let own = &list.rows()[list.slots()[k] as usize];
        self.own = [0, 1, 2].map(|c| V::constant(own[c]));
        self.of_type = self.table.of(kind).as_ptr();
        own[3]
    }

    /// The next neighbours.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Block<V>> {
        if self.next >= self.end {
            return None;
        }
        let (list, entry) = (&self.near.list, self.next);
        // SAFETY: rows of a list are filled up to a multiple of the lanes with slots, and there is a row a slot
        let [x, y, z, fourth] = unsafe { V::rows(list.rows().as_ptr(), list.entries().as_ptr().add(entry)) };
        let [a, b, c] = self.own;
        let vector = self.metric.cartesian([x - a, y - b, z - c]);
        let [x, y, z] = vector;
        let r2 = x.fma(x, y.fma(y, z * z));
        let cutoff2 = self.parameter(self.table.width, entry);
        let mut inside = r2.lt(cutoff2);
        if self.end - entry < V::WIDTH {
            inside = inside & V::first(self.end - entry);
        }
        self.next += V::WIDTH;
        // (what is outside must not overflow)
        Some(Block { vector, r2: V::select(inside, r2, self.safe), fourth, inside, entry })
    }

    /// Parameter number m of the pairs with the neighbours from this entry on.
    #[inline(always)]
    pub fn parameter(&self, m: usize, entry: usize) -> V {
        // SAFETY: the table has a number for each field (and the cut-off) and every type; there is a kind for every
        // entry, or only one type
        unsafe {
            let field = self.of_type.add(m * self.table.types);
            match self.single {
                true => V::constant(*field),
                false => V::lookup(field, self.near.kinds.as_ptr().add(entry)),
            }
        }
    }

    /// All parameters of the pairs with some neighbours.
    #[inline(always)]
    pub fn parameters<R: Record<V::Parameter>>(&self, block: &Block<V>) -> R {
        R::from_fn(
            #[inline(always)]
            |m| self.parameter(m, block.entry).parameter(),
        )
    }
}

/// The rows of some ranks: energy, forces and virial of their atoms with their neighbours.
struct Rows<'a, E, F> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    table: &'a TypeTable,
    ranks: Range<usize>,
    forces: &'a mut [[f64; 3]],
    sums: &'a mut Sums,
    energy: PhantomData<(E, F)>,
}

impl<E: PairEnergy, F: Formula<E>> Kernel<f64> for Rows<'_, E, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Rows { frame, near, table, ranks, forces, sums, .. } = self;
        let zero = V::constant(0.0);
        let mut blocks = Blocks::<V>::new(frame, near, table);
        for (k, force) in ranks.zip(forces) {
            let charge = blocks.turn(k, frame.kind(near, k)) * frame.coulomb;
            let mut pull = Pull::new(frame.grid);
            while let Some(block) = blocks.next() {
                let q: E::Prepared<V::Parameter> = blocks.parameters(&block);
                let (mut e, mut g) = F::pairs(block.r2, &q);
                if E::FACTOR == Factor::Charge {
                    let qq = block.fourth * charge;
                    (e, g) = (e * qq, g * qq);
                }
                let g = V::select(block.inside, g.odd(), zero);
                pull.add(block.vector, g);
                if frame.sums {
                    pull.add_sums(block.inside, e, block.vector, g);
                }
            }
            pull.finish(force, frame.sums, sums);
        }
    }
}

/// The force on an atom, and the energy and virial of its neighbours' pulls g d along their vectors d, half of each
/// counted.
pub(super) struct Pull<V> {
    force: [V; 3],
    totals: [V; 7],
    origins: [V; 2],
}

impl<V: Lanes> Pull<V> {
    #[inline(always)]
    pub fn new(grid: Grid) -> Self {
        let (force, energy) = (V::constant(grid.force_origin()), V::constant(grid.energy_origin()));
        Self { force: [force; 3], totals: [energy; 7], origins: [force, energy] }
    }
    /// Adds some pulls. The factors g must be odd.
    #[inline(always)]
    pub fn add(&mut self, [x, y, z]: [V; 3], g: V) {
        // (a minus sign on g costs nothing; the force on the atom is against the pull on its neighbours)
        let (f, g) = (&mut self.force, -g);
        f[0] = g.onto(x, f[0]);
        f[1] = g.onto(y, f[1]);
        f[2] = g.onto(z, f[2]);
    }
    /// Adds the energies and virials of the pairs in a mask.
    #[inline(always)]
    pub fn add_sums(&mut self, inside: V::Mask, e: V, d: [V; 3], g: V) {
        let half = g * 0.5;
        add(&mut self.totals, inside, e * 0.5, d, [half * d[0], half * d[1], half * d[2]]);
    }
    #[inline(always)]
    pub fn finish(self, force: &mut [f64; 3], with_sums: bool, sums: &mut Sums) {
        let [origin, of_totals] = self.origins;
        for (force, f) in force.iter_mut().zip(self.force) {
            *force += (f - origin).sum();
        }
        if with_sums {
            flush(self.totals, of_totals, sums);
        }
    }
}
