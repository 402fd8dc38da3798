//! Pair energies over a neighbour list.

// Kernels read lists and tables without checks.
#![allow(unsafe_code)]

use super::chunks::{Totals, each_chunk, each_chunk_of_two};
use super::order::{Order, Quantity, Single, Tangents, Values};
use super::pair_slopes::{self, Sizes};
use super::parameters::{ParameterTable, PreparedTable};
use super::term::{self, Beside, Entry, Law, ListNeed, PreparedSlopes, Reach, Sink, Sums, Term};
use super::view::{Frame, Grid, Neighborhood, Precision, View};
use crate::autodiff::Dual;
use crate::autodiff::lanes::{Element, Kernel, Lanes};
use crate::system::Cell;
use potentials::cutoff::{Ending, EndingConstants};
use potentials::{Both, Coefficient, Distance, Energy, Factor, Mask, PairEnergy, Record, Scalar, Vec3};
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;

/// What a kernel computes for some pairs: energy, and force over distance, in every lane.
pub trait Formula: Send + Sync + 'static {
    /// The energy whose parameters it has.
    type Energy: PairEnergy;
    /// Whether these are followed by the constants of an ending.
    const ENDED: bool = false;
    /// Whether there are forces. (What energies alone cost is for benchmarks.)
    const FORCES: bool = true;
    /// E and −2 dE/dr².
    fn pairs<V: Lanes>(r2: V, p: &Prepared<Self, V::Parameter>) -> (V, V);
    /// The same with tangents: derived, whoever has written the other.
    #[inline(always)]
    fn tangents<V: Lanes>(r2: Dual<V>, p: &Prepared<Self, V::Parameter>) -> (Dual<V>, Dual<V>) {
        derived::<Self::Energy, V, Dual<V>>(r2, p)
    }
}

/// The parameters of a formula.
pub type Prepared<F, T> = <<F as Formula>::Energy as Energy>::Prepared<T>;

/// An energy's text, differentiated by the number that it is called with.
pub struct Derived<E>(PhantomData<E>);

impl<E: PairEnergy> Formula for Derived<E> {
    type Energy = E;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &E::Prepared<V::Parameter>) -> (V, V) {
        derived::<E, V, V>(r2, p)
    }
}

#[inline(always)]
fn derived<E: PairEnergy, V: Lanes, X: Scalar>(r2: X, p: &E::Prepared<V::Parameter>) -> (X, X)
where
    V::Parameter: Coefficient<Dual<X>>,
{
    let e = E::energy::<Dual<X>, V::Parameter>(Distance::from_squared(seeded(r2)), p);
    (e.value, e.tangent)
}

/// A formula for an energy that is [`Cut`](potentials::cutoff::Cut). Which ending it has is seen when it runs: a kernel is
/// compiled once for all of them.
pub struct Ended<F>(PhantomData<F>);

impl<F: Formula> Formula for Ended<F> {
    type Energy = F::Energy;
    const ENDED: bool = true;
    const FORCES: bool = F::FORCES;
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &Prepared<F, V::Parameter>) -> (V, V) {
        F::pairs(r2, p)
    }
    #[inline(always)]
    fn tangents<V: Lanes>(r2: Dual<V>, p: &Prepared<F, V::Parameter>) -> (Dual<V>, Dual<V>) {
        F::tangents(r2, p)
    }
}

/// The seed −2 makes a tangent −2 dE/dr², which is the force over the distance.
#[inline(always)]
pub(super) fn seeded<X: Scalar>(r2: X) -> Dual<X> {
    Dual::new(r2, X::constant(-2.0))
}

/// A pair energy between all atoms of certain types that are near each other, computed by a formula with the same
/// parameters. (Another one than the derived one is for benchmarks.)
pub struct PairLaw<E: PairEnergy, F = Derived<E>> {
    types: TypePairs,
    table: TypeTable,
    list: usize,
    range: f64,
    special: Special,
    /// Sums of chunks, for two energies.
    both: Vec<[Sums; 2]>,
    /// The sizes of derivatives in parameters, as they were last.
    sizes: Sizes,
    /// Whether the formula is short enough for their kernel, once that is known.
    short: Option<bool>,
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

impl<E: PairEnergy, F: Formula> PairLaw<E, F> {
    /// A pair energy for these types and special pairs.
    pub fn new(types: TypePairs, special: Special) -> Self {
        let range = types.range();
        Self {
            types,
            table: TypeTable::default(),
            list: 0,
            range,
            special,
            both: Vec::new(),
            sizes: Sizes::default(),
            short: None,
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
    items: Range<usize>,
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
    let (mut total, n) = (S::constant(0.0), frame.atoms.len());
    for i in items.start..items.end.min(n) {
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
    for &(i, j, part) in &special.pairs[items.start.max(n) - n..items.end.max(n) - n] {
        let (i, j) = (i as usize, j as usize);
        if let Some(e) = one(view.nearest(i, j), i, j, part) {
            total = total + e;
        }
    }
    total
}

/// Runs a kernel as precisely as the frame says.
fn run<O: Order, A: Part, B: Part>(rows: Rows<O, A, B>) {
    // (what a constant rules out is not compiled)
    if O::TANGENTS || rows.frame.precision == Precision::Double {
        rows.frame.double::<O, _>(rows);
    } else if !O::TANGENTS {
        rows.frame.single(rows);
    }
}

impl<E: PairEnergy, F: Formula> PairLaw<E, F> {
    /// What is not in the list.
    fn specials<Y: Single>(&self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        if let Some(beside) = &mut sink.beside {
            let frame = beside.frame(frame);
            self.special::<f64>(&frame, p, &mut beside.sink());
        }
        self.special::<Y>(frame, p, sink);
    }
    fn special<Y: Single>(&self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let remainder = self.special.remainder;
        let pair = |r2: Y, row: usize, part: f64| {
            let [whole, excluded] = Y::special::<E>(r2, &p.row(row));
            let mut e = Dual::constant(0.0);
            if part != 0.0 {
                e = whole * part;
            }
            if remainder {
                e = e + excluded * (1.0 - part);
            }
            e
        };
        let own = |row: usize| E::own::<f64>(&p.row(row));
        special_pairs(frame, &self.types, &self.special, E::FACTOR, sink, &pair, &own);
    }
}

/// Two pair energies that one kernel computes: neighbours are looked up once for both.
#[derive(Clone, Copy)]
pub struct Joint {
    fits: fn(&dyn Term, &dyn Term) -> bool,
    fused: Jointly,
    tangents: Jointly,
}

type Jointly = fn(&mut dyn Term, &mut dyn Term, &Frame, &mut Sink, &mut Sums);

impl Joint {
    /// Of two energies with their formulas.
    pub fn of<A: PairEnergy, F: Formula, B: PairEnergy, G: Formula>() -> Self {
        Joint {
            fits: |a, b| match (law::<A, F>(a), law::<B, G>(b)) {
                (Some(a), Some(b)) => a.list == b.list,
                _ => false,
            },
            fused: fused_jointly::<Values, A, F, B, G>,
            tangents: fused_jointly::<Tangents, A, F, B, G>,
        }
    }
    /// Whether these are the two, and have their neighbours in one list.
    pub fn fits(&self, a: &dyn Term, b: &dyn Term) -> bool {
        (self.fits)(a, b)
    }
    /// Adds up both, or how they change along the frame's direction: the sink's sums are those of the first, `second` those of the second.
    pub fn fused(
        &self,
        a: &mut dyn Term,
        b: &mut dyn Term,
        frame: &Frame,
        sink: &mut Sink,
        second: &mut Sums,
    ) {
        if frame.direction.is_none() {
            return (self.fused)(a, b, frame, sink, second);
        }
        let mut apart = None;
        if !Beside::fits(frame)
            && let Some(mut beside) = sink.beside.take()
        {
            let sums = &mut Sums::default();
            (self.fused)(a, b, &beside.frame(frame), &mut beside.sink(), sums);
            apart = Some(beside);
        }
        (self.tangents)(a, b, frame, sink, second);
        if apart.is_some() {
            sink.beside = apart;
        }
    }
}

/// The law of a term, if it is this one.
fn law<E: PairEnergy, F: Formula>(term: &dyn Term) -> Option<&PairLaw<E, F>> {
    (term as &dyn Any).downcast_ref::<Entry<PairLaw<E, F>>>().map(Entry::law)
}

fn fused_jointly<O: Order, A: PairEnergy, F: Formula, B: PairEnergy, G: Formula>(
    a: &mut dyn Term,
    b: &mut dyn Term,
    frame: &Frame,
    sink: &mut Sink,
    second: &mut Sums,
) {
    let Some(a) = (a as &mut dyn Any).downcast_mut::<Entry<PairLaw<A, F>>>() else { return };
    let Some(b) = (b as &mut dyn Any).downcast_mut::<Entry<PairLaw<B, G>>>() else { return };
    // (energies alone have no tangents: those of forces are what is asked for)
    if O::TANGENTS && !F::FORCES {
        return;
    }
    let ((a, p), (b, q)) = (a.parts(), b.parts());
    let near = &frame.lists[a.list];
    let tables = [&a.table, &b.table];
    each_rank(frame, sink, second, a.list, &mut a.both, &|ranks, forces, beside, [first, second]| {
        let (endings, parts) = ([A::ENDING, B::ENDING], PhantomData::<(By<F>, By<G>)>);
        let (sums, order) = ([Some(first), Some(second)], PhantomData::<O>);
        run(Rows { frame, near, tables, endings, ranks, forces, beside, sums, order, parts });
    });
    a.specials::<O::One>(frame, p, sink);
    std::mem::swap(&mut sink.sums, second);
    b.specials::<O::One>(frame, q, sink);
    std::mem::swap(&mut sink.sums, second);
}

/// The forces of some ranks that are wanted beside their tangents, and what they are rounded to.
type OfRanks<'a> = (&'a mut [[f64; 3]], Grid);

/// Runs `body` over chunks of the ranks of a list: with the forces on their atoms, those beside them, and sums of two
/// energies.
fn each_rank(
    frame: &Frame,
    sink: &mut Sink,
    second: &mut Sums,
    list: usize,
    partial: &mut Vec<[Sums; 2]>,
    body: &(dyn Fn(Range<usize>, &mut [[f64; 3]], Option<OfRanks>, &mut [Sums; 2]) + Sync),
) {
    let n = frame.lists[list].list.len();
    let Sink { ranked, sums, beside, .. } = sink;
    let (forces, sums) = (&mut ranked[list][..], [sums, second]);
    match beside {
        None => each_chunk(n, forces, 1, partial, sums, &|ranks, forces, sums| {
            body(ranks, forces, None, sums);
        }),
        Some(beside) => {
            let (grid, both) = (beside.grid, [forces, &mut beside.ranked[list][..]]);
            each_chunk_of_two(n, both, partial, sums, &|ranks, [forces, beside], sums| {
                body(ranks, forces, Some((beside, grid)), sums);
            });
        }
    }
}

impl<E: PairEnergy, F: Formula> Law for PairLaw<E, F> {
    type Energy = E;
    const BESIDE: bool = true;

    fn list_need(&self) -> Option<ListNeed> {
        let leave_out = self.special.leave_out;
        Some(ListNeed { range: self.range, leave_out, mirrors: false, single: true, double: false })
    }
    fn set_list(&mut self, list: usize) {
        self.list = list;
    }
    fn parameters_changed(&mut self, parameters: &ParameterTable, prepared: &PreparedTable) {
        self.types.follow(parameters, E::ABOUT.params.len());
        self.range = self.types.range();
        self.table = TypeTable::new(&self.types, prepared);
    }

    fn items(&self, atoms: usize) -> usize {
        atoms + self.special.pairs.len()
    }
    fn takes_charges(&self) -> bool {
        E::FACTOR == Factor::Charge
    }
    fn is_of_pairs(&self) -> bool {
        true
    }
    fn ending(&self) -> Option<Ending> {
        // (what ends by its own formula is not ended)
        (F::ENDED && !E::ENDS_AT_CUTOFF && self.range.is_finite()).then_some(E::ENDING)
    }

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[term::Prepared<Self, P>],
        q: &[P],
        items: Range<usize>,
    ) -> S {
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
        sum_of_pairs(view, near, &self.types, &self.special, E::FACTOR, q, &pair, &own, items)
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        // (energies alone have no tangents: those of forces are what is asked for)
        if O::TANGENTS && !F::FORCES {
            return;
        }
        let Self { table, list, both, .. } = self;
        let near = &frame.lists[*list];
        let none = &mut Sums::default();
        each_rank(frame, sink, none, *list, both, &|ranks, forces, beside, [sums, _]| {
            let (tables, endings, sums) = ([&*table; 2], [E::ENDING; 2], [Some(sums), None]);
            let (order, parts) = (PhantomData::<O>, PhantomData::<(By<F>, Nobody)>);
            run(Rows { frame, near, tables, endings, ranks, forces, beside, sums, order, parts });
        });
        self.specials::<O::One>(frame, p, sink);
    }

    fn slopes_in_lanes(&mut self, frame: &Frame, p: &PreparedTable) -> Option<PreparedSlopes> {
        let Self { types, table, list, special, sizes, .. } = self;
        let short = *self.short.get_or_insert_with(pair_slopes::fits::<F>);
        if !short {
            return None;
        }
        let near = &frame.lists[*list];
        let mut slopes = pair_slopes::sum::<F>(frame, near, types, table, E::ENDING, p, sizes);
        let n = frame.atoms.len();
        slopes.rest = n..n + special.pairs.len();
        if special.remainder {
            pair_slopes::add_own::<E>(frame, types, p, &mut slopes);
        }
        Some(slopes)
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.types.reach(self.list))
    }
}

/// Forces of the special pairs, and the energies of atoms with themselves.
fn special_pairs<Y: Single>(
    frame: &Frame,
    types: &TypePairs,
    special: &Special,
    kind: Factor,
    sink: &mut Sink,
    pair: &dyn Fn(Y, usize, f64) -> Dual<Y>,
    own: &dyn Fn(usize) -> f64,
) {
    let (t, q) = (&frame.atoms.types, frame.charges);
    for &(i, j, part) in &special.pairs {
        let (i, j) = (i as usize, j as usize);
        let of = t[i] as usize * types.types + t[j] as usize;
        let d = frame.between::<Y>(i, j, frame.nearest(i, j));
        let r2 = Y::norm_squared(d);
        if r2.value() >= types.cutoff2[of] {
            continue;
        }
        let e = pair(r2, types.rows[of] as usize, part);
        let factor = factor(kind, frame.coulomb, q[i], q[j]).unwrap_or(1.0);
        let f = d.map(|d| (e.tangent * d * factor).rounded(frame.grid.force_origin()));
        for k in 0..3 {
            sink.forces[i][k] -= f[k].result();
            sink.forces[j][k] += f[k].result();
        }
        if frame.sums {
            sink.sums.add_energy(e.value * factor);
            sink.sums.add_virial(d, f);
        }
    }
    if !special.remainder || !frame.sums || frame.direction.is_some() {
        return;
    }
    for (i, &t) in t.iter().enumerate() {
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
    /// The same in single precision.
    single: Vec<f32>,
    /// Whether all pairs of types have the same.
    uniform: bool,
    /// Whether each first type interacts with any.
    interacts: Vec<bool>,
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
        let single = values.iter().map(|&x| x as f32).collect();
        let interacts = (0..n).map(|a| types.cutoff2[a * n..(a + 1) * n].iter().any(|&c| c > 0.0)).collect();
        Self { types: n, width, values, single, uniform: all, interacts, safe: types.range().powi(2) }
    }
    /// Whether atoms of this type interact with any.
    #[inline(always)]
    pub fn has(&self, kind: usize) -> bool {
        self.interacts[kind]
    }

    /// The numbers of a first type.
    #[inline(always)]
    fn of<T: Element>(&self, kind: usize) -> &[T] {
        let size = self.types * (self.width + 1);
        &T::either(&self.values, &self.single)[kind * size..(kind + 1) * size]
    }
}

/// What turns differences of coordinates into nm: the basis of the cell, or a unit.
struct Metric<V> {
    basis: [[V; 3]; 3],
    diagonal: bool,
    unit: V,
}

impl<V: Lanes> Metric<V> {
    #[inline(always)]
    fn of(cell: &Cell, unit: f64) -> Self {
        let b = cell.basis();
        let basis = std::array::from_fn(|k| std::array::from_fn(|c| V::constant(b[k][c])));
        Self { basis, diagonal: cell.is_orthorhombic(), unit: V::constant(unit) }
    }
    #[inline(always)]
    fn cartesian(&self, s: [V; 3]) -> [V; 3] {
        let b = &self.basis;
        // (the branches go the same way throughout a run)
        if V::Element::SINGLE {
            [s[0] * self.unit, s[1] * self.unit, s[2] * self.unit]
        } else if self.diagonal {
            [s[0] * b[0][0], s[1] * b[1][1], s[2] * b[2][2]]
        } else {
            let along = |c: usize| s[2].fma(b[2][c], s[1].fma(b[1][c], s[0] * b[0][c]));
            [along(0), along(1), along(2)]
        }
    }
}

/// The neighbours of an atom, some at a time.
pub(super) struct Blocks<'a, V: Lanes, X> {
    near: &'a Neighborhood,
    rows: &'a [[V::Element; 4]],
    metric: Metric<V>,
    /// Entries of the row at work, from and to.
    next: usize,
    end: usize,
    own: [V; 3],
    /// Where atoms are going: four numbers a slot.
    rates: &'a [V::Element],
    own_rate: [V; 3],
    strains: bool,
    strain: [[V; 3]; 3],
    quantity: PhantomData<X>,
}

/// Some neighbours.
pub(super) struct Block<V: Lanes, X> {
    /// From the atom to them.
    pub vector: [X; 3],
    /// Their distances squared.
    pub r2: X,
    /// The fourth number of their rows.
    pub fourth: V,
    /// The first of their entries.
    pub entry: usize,
    /// How many entries are left with it; lanes beyond are none.
    left: usize,
}

impl<V: Lanes, X: Quantity<V>> Block<V, X> {
    /// The same neighbours at rest.
    #[inline(always)]
    fn values(&self) -> Block<V, V> {
        let [x, y, z] = self.vector;
        let Block { fourth, entry, left, .. } = *self;
        Block { vector: [x.value(), y.value(), z.value()], r2: self.r2.value(), fourth, entry, left }
    }
}

impl<V: Lanes, X> Block<V, X> {
    /// The lanes that have an entry.
    #[inline(always)]
    pub fn own(&self) -> V::Mask {
        V::first(self.left.min(V::WIDTH))
    }
}

impl<'a, V: Lanes, X: Quantity<V>> Blocks<'a, V, X> {
    #[inline(always)]
    pub fn new(frame: &Frame, near: &'a Neighborhood) -> Self {
        let (metric, zero) = (Metric::of(frame.cell, near.list.unit()), V::constant(0.0));
        let mut strain = [[zero; 3]; 3];
        if let Some(direction) = &frame.direction {
            for a in 0..3 {
                for b in 0..3 {
                    strain[a][b] = V::constant(direction.strain[a][b]);
                }
            }
        }
        Self {
            near,
            rows: near.list.rows(),
            metric,
            next: 0,
            end: 0,
            own: [zero; 3],
            rates: V::Element::either(near.rates.as_flattened(), &[]),
            own_rate: [zero; 3],
            strains: frame.direction.is_some_and(|direction| direction.strains()),
            strain,
            quantity: PhantomData,
        }
    }

    /// Turns to the atom of rank k; returns the fourth number of its row.
    #[inline(always)]
    pub fn turn(&mut self, k: usize) -> V {
        let list = &self.near.list;
        self.next = list.starts()[k] as usize;
        self.end = self.next + list.row(k).len();
        // (written out: the standard library's `map` is not inlined)
        let slot = list.slots()[k] as usize;
        let [x, y, z, fourth] = self.rows[slot / 4];
        self.own = [V::all(x), V::all(y), V::all(z)];
        if X::TANGENTS {
            let [x, y, z] = [self.rates[slot], self.rates[slot + 1], self.rates[slot + 2]];
            self.own_rate = [V::all(x), V::all(y), V::all(z)];
        }
        V::all(fourth)
    }

    /// The next neighbours.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Block<V, X>> {
        if self.next >= self.end {
            return None;
        }
        let (list, entry) = (&self.near.list, self.next);
        // SAFETY: rows of a list are filled up to a multiple of the lanes with slots, and there is a row a slot
        let [x, y, z, fourth] = unsafe { V::rows(self.rows.as_ptr(), list.entries().as_ptr().add(entry)) };
        let [a, b, c] = self.own;
        let [x, y, z] = self.metric.cartesian([V::between(a, x), V::between(b, y), V::between(c, z)]);
        let mut rate = [x, y, z];
        if X::TANGENTS {
            // SAFETY: as above
            let [u, v, w, _] =
                unsafe { V::rows(self.rates.as_ptr().cast(), list.entries().as_ptr().add(entry)) };
            let [a, b, c] = self.own_rate;
            rate = [u - a, v - b, w - c];
            // (the branch goes the same way throughout a run)
            if self.strains {
                for k in 0..3 {
                    let e = self.strain[k];
                    rate[k] = e[0].fma(x, e[1].fma(y, e[2].fma(z, rate[k])));
                }
            }
        }
        let vector = [X::new(x, rate[0]), X::new(y, rate[1]), X::new(z, rate[2])];
        self.next += V::WIDTH;
        Some(Block { vector, r2: X::square_of(vector), fourth, entry, left: self.end - entry })
    }
}

/// What the pairs of an atom and its neighbours have for parameters and cut-offs.
pub(super) struct Fields<'a, V: Lanes> {
    kinds: &'a [u16],
    table: &'a TypeTable,
    safe: V,
    /// The atom's type, and its numbers.
    kind: usize,
    of_type: *const V::Element,
    cutoff2: *const V::Element,
    /// How many types, which is how far apart fields are.
    types: usize,
    single: bool,
    /// How energies end at the cut-off, where they are cut.
    pub ending: Ending,
}

impl<'a, V: Lanes> Fields<'a, V> {
    #[inline(always)]
    pub fn new(near: &'a Neighborhood, table: &'a TypeTable, ending: Ending) -> Self {
        let (safe, single) = (V::constant(table.safe), table.uniform || near.kinds.is_empty());
        let nowhere = std::ptr::null();
        Self {
            kinds: &near.kinds,
            table,
            safe,
            kind: 0,
            of_type: nowhere,
            cutoff2: nowhere,
            types: table.types,
            single,
            ending,
        }
    }

    /// Turns to an atom of this type.
    #[inline(always)]
    pub fn turn(&mut self, kind: usize) {
        let numbers = self.table.of(kind);
        self.kind = kind;
        self.of_type = numbers.as_ptr();
        self.cutoff2 = numbers[self.types * self.table.width..].as_ptr();
    }

    /// Which neighbours are within the cut-off.
    #[inline(always)]
    pub fn inside<X: Quantity<V>>(&self, block: &Block<V, X>) -> V::Mask {
        let inside = block.r2.value().lt(self.field(self.cutoff2, block.entry));
        if block.left < V::WIDTH { inside & V::first(block.left) } else { inside }
    }
    /// The squares of distances where the mask holds; elsewhere one at which nothing overflows.
    #[inline(always)]
    pub fn squares<X: Quantity<V>>(&self, inside: V::Mask, block: &Block<V, X>) -> X {
        X::select(inside, block.r2, X::new(self.safe, V::constant(0.0)))
    }

    /// A number of the pairs with the neighbours from this entry on.
    #[inline(always)]
    fn field(&self, field: *const V::Element, entry: usize) -> V {
        // SAFETY: the table has a number for each field (and the cut-off) and every type; there is a kind for every
        // entry, or only one type
        unsafe {
            match self.single {
                true => V::all(*field),
                false => V::lookup(field, self.kinds.as_ptr().add(entry)),
            }
        }
    }

    /// Number m of the parameters of the pairs with some neighbours.
    #[inline(always)]
    pub fn number<X>(&self, m: usize, block: &Block<V, X>) -> V {
        // SAFETY: so many fields there are
        self.field(unsafe { self.of_type.add(m * self.types) }, block.entry)
    }

    /// All parameters of the pairs with some neighbours.
    #[inline(always)]
    pub fn parameters<X, R: Record<V::Parameter>>(&self, block: &Block<V, X>) -> R {
        R::from_fn(
            #[inline(always)]
            |m| self.number(m, block).parameter(),
        )
    }
}

/// What takes part in a kernel: an energy, or none.
trait Part {
    /// Whether it is one.
    const IS: bool;
    /// Whether it has forces.
    const FORCES: bool;
    /// Energy and −2 dE/dr² of some pairs. `charge` is the atom's times Coulomb's constant.
    fn pairs<V: Lanes, X: Quantity<V>>(fields: &Fields<V>, block: &Block<V, X>, r2: X, charge: V) -> (X, X);
    /// Adds energies, and virials where there are forces g d.
    #[inline(always)]
    fn count<V: Lanes, X: Quantity<V>>(totals: &mut Totals<V>, inside: V::Mask, e: X, d: [X; 3], g: X) {
        if Self::FORCES { totals.add_pull(inside, e, d, g) } else { totals.add_energy(inside, e * 0.5) }
    }
}

/// No energy.
struct Nobody;
impl Part for Nobody {
    const IS: bool = false;
    const FORCES: bool = false;
    #[inline(always)]
    fn pairs<V: Lanes, X: Quantity<V>>(_: &Fields<V>, _: &Block<V, X>, r2: X, _: V) -> (X, X) {
        (r2, r2)
    }
}

/// An energy, by a formula.
struct By<F>(PhantomData<F>);
impl<F: Formula> Part for By<F> {
    const IS: bool = true;
    const FORCES: bool = F::FORCES;
    #[inline(always)]
    fn pairs<V: Lanes, X: Quantity<V>>(fields: &Fields<V>, block: &Block<V, X>, r2: X, charge: V) -> (X, X) {
        let (e, g) = if F::ENDED {
            let p: Both<Prepared<F, V::Parameter>, EndingConstants<V::Parameter>> = fields.parameters(block);
            let (e, g) = X::pairs::<F>(r2, &p.first);
            // (the branch goes the same way throughout a run)
            let e = X::ended_slope(fields.ending, Dual::new(e, g), r2, &p.second);
            (e.value, e.tangent)
        } else {
            X::pairs::<F>(r2, &fields.parameters(block))
        };
        match F::Energy::FACTOR {
            Factor::One => (e, g),
            Factor::Charge => {
                let qq = block.fourth * charge;
                (e.times(qq), g.times(qq))
            }
        }
    }
}

/// The rows of some ranks: energies, forces and virials of their atoms with their neighbours, by one energy or two.
struct Rows<'a, O, A, B> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    tables: [&'a TypeTable; 2],
    endings: [Ending; 2],
    ranks: Range<usize>,
    forces: &'a mut [[f64; 3]],
    beside: Option<OfRanks<'a>>,
    sums: [Option<&'a mut Sums>; 2],
    order: PhantomData<O>,
    parts: PhantomData<(A, B)>,
}

impl<T: Element, O: Order, A: Part, B: Part> Kernel<T> for Rows<'_, O, A, B> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = T>>(self) {
        let Rows { frame, near, tables: [a, b], endings, ranks, forces, mut beside, mut sums, .. } = self;
        let mut blocks = Blocks::<V, O::Quantity<V>>::new(frame, near);
        let mut of_a = Fields::<V>::new(near, a, endings[0]);
        let mut of_b = Fields::<V>::new(near, b, endings[1]);
        let longest = a.safe.max(b.safe).sqrt();
        let (mut totals, mut of_second) = (Totals::new(frame.grid), Totals::new(frame.grid));
        let with_forces = O::TANGENTS && beside.is_some();
        let of_forces = beside.as_ref().map_or(frame.grid, |(_, grid)| *grid);
        for (at, (k, force)) in ranks.zip(forces).enumerate() {
            let kind = frame.kind(near, k);
            of_a.turn(kind);
            // (conditions on constants come first: what they rule out is not compiled)
            if B::IS {
                of_b.turn(kind);
            }
            let mut careful = None;
            loop {
                // a loop for each case, without a branch in it
                let mut walk = Walk {
                    blocks: &mut blocks,
                    rank: k,
                    frame,
                    careful: &mut careful,
                    with_forces,
                    of_forces,
                };
                let [pull, of_values] = if !B::IS || !b.has(kind) {
                    walk.row::<A, Nobody>([&of_a, &of_b], [&mut totals, &mut of_second])
                } else if !a.has(kind) {
                    walk.row::<B, Nobody>([&of_b, &of_a], [&mut of_second, &mut totals])
                } else {
                    walk.row::<A, B>([&of_a, &of_b], [&mut totals, &mut of_second])
                };
                if O::TANGENTS
                    && let Some((forces, _)) = &mut beside
                {
                    of_values.finish(&mut forces[at], None);
                }
                let again = T::SINGLE && careful.is_none() && pull.may_overflow(longest);
                if again {
                    careful = Some([0.0; 3]);
                } else {
                    pull.finish(force, careful);
                }
                if frame.sums {
                    for (totals, sums) in [&mut totals, &mut of_second].into_iter().zip(&mut sums) {
                        match sums {
                            Some(sums) if !again && A::FORCES => totals.flush(sums),
                            Some(sums) if !again => totals.flush_energy(sums),
                            _ => totals.clear(),
                        }
                    }
                }
                if !again {
                    break;
                }
            }
        }
    }
}

/// What the pairs of an atom with some neighbours have.
struct Pairs<V: Lanes, X> {
    /// Of each energy: which of them are within its cut-off, E, and −2 dE/dr² there.
    each: [(V::Mask, X, X); 2],
    /// The sum of the latter, odd.
    pull: X,
}

impl<V: Lanes, X: Quantity<V>> Pairs<V, X> {
    #[inline(always)]
    fn of<A: Part, B: Part>([a, b]: [&Fields<V>; 2], block: &Block<V, X>, charge: V) -> Self {
        let (within, zero) = (a.inside(block), X::constant(0.0));
        if B::IS {
            let also = b.inside(block);
            let r2 = a.squares(within | also, block);
            let ((e, g), (f, h)) = (A::pairs(a, block, r2, charge), B::pairs(b, block, r2, charge));
            let (g, h) = (X::select(within, g, zero), X::select(also, h, zero));
            let pull = X::select(within | also, (g + h).odd(), zero);
            Self { each: [(within, e, g), (also, f, h)], pull }
        } else {
            let (e, g) = A::pairs(a, block, a.squares(within, block), charge);
            let g = X::select(within, g.odd(), zero);
            Self { each: [(within, e, g); 2], pull: g }
        }
    }
}

/// What a loop over the neighbours of an atom needs beside the energies.
struct Walk<'w, 'a, V: Lanes, X> {
    blocks: &'w mut Blocks<'a, V, X>,
    rank: usize,
    frame: &'w Frame<'a>,
    careful: &'w mut Option<[f64; 3]>,
    /// Whether forces are wanted beside tangents, and what they are rounded to.
    with_forces: bool,
    of_forces: Grid,
}

impl<V: Lanes, X: Quantity<V>> Walk<'_, '_, V, X> {
    /// Adds up over the neighbours of the atom: the pulls of what is wanted, and of forces if they are wanted beside it.
    #[inline(always)]
    fn row<A: Part, B: Part>(
        &mut self,
        [a, b]: [&Fields<V>; 2],
        [first, second]: [&mut Totals<V>; 2],
    ) -> [Pull<V>; 2] {
        let Self { blocks, rank, frame, careful, with_forces, of_forces } = self;
        let (mut pull, mut of_values) = (Pull::new(frame.grid), Pull::new(*of_forces));
        let charge = blocks.turn(*rank) * frame.coulomb;
        if !a.table.has(a.kind) {
            return [pull, of_values];
        }
        while let Some(block) = blocks.next() {
            let pairs = Pairs::<V, X>::of::<A, B>([a, b], &block, charge);
            let d = block.vector;
            if A::FORCES {
                X::pull(&mut pull, d, pairs.pull, careful);
            }
            if frame.sums {
                let [(within, e, g), (also, f, h)] = pairs.each;
                A::count(first, within, e, d, g);
                if B::IS {
                    B::count(second, also, f, d, h);
                }
            }
            // (the branch goes the same way throughout a run)
            if X::TANGENTS && *with_forces {
                // The very text that computes forces alone, so that their bits are the same: what it has in common with
                // the one above is computed once.
                let block = block.values();
                let pairs = Pairs::<V, V>::of::<A, B>([a, b], &block, charge);
                V::pull(&mut of_values, block.vector, pairs.pull, &mut None);
            }
        }
        [pull, of_values]
    }
}

/// The force on an atom: the sum of its neighbours' pulls g d along their vectors d.
///
/// In single precision forces are added up as integers. These could overflow where atoms all but coincide: then
/// ([`may_overflow`](Pull::may_overflow)) the same integers are added up again with care, which is slow. (What is added
/// up so stands elsewhere: an address given away would keep all of this out of registers.)
pub struct Pull<V: Lanes> {
    force: [V; 3],
    origin: V,
    /// Minus what forces are multiplied with before they are rounded to integers.
    steps: f64,
    /// The sum of |g| · steps.
    size: V,
}

impl<V: Lanes> Pull<V> {
    /// None so far.
    #[inline(always)]
    pub fn new(grid: Grid) -> Self {
        let (zero, single) = (V::constant(0.0), V::Element::SINGLE);
        let origin = if single { zero } else { V::constant(grid.force_origin()) };
        let steps = if single { -grid.single_steps() } else { -1.0 };
        Self { force: [origin; 3], origin, steps, size: zero }
    }
    /// Adds some pulls, or adds them up with care. The factors g must be odd.
    #[inline(always)]
    pub fn add(&mut self, d: [V; 3], g: V, careful: &mut Option<[f64; 3]>) {
        // (the force on the atom is against the pull on its neighbours)
        let f = &mut self.force;
        if V::Element::SINGLE && self.steps != 0.0 {
            let g = g * self.steps;
            self.size = self.size + g.abs();
            match careful {
                None => {
                    for c in 0..3 {
                        f[c] = g.onto(d[c], f[c]);
                    }
                }
                Some(sums) => add_integers(sums, [g * d[0], g * d[1], g * d[2]]),
            }
        } else if V::Element::SINGLE {
            for c in 0..3 {
                f[c] = (-g).fma(d[c], f[c]);
            }
        } else {
            // (a minus sign on g costs nothing)
            for c in 0..3 {
                f[c] = (-g).onto(d[c], f[c]);
            }
        }
    }
    /// Whether integers may have overflowed in a lane, where no vector is longer than this.
    #[inline(always)]
    pub fn may_overflow(&self, longest: f64) -> bool {
        // (not a number is no small one)
        let small = self.size.lt(V::constant(2e9 / longest));
        self.steps != 0.0 && V::bits(small).count_ones() as usize != V::WIDTH
    }
    /// Adds the sum of all pulls to the force on the atom.
    #[inline(always)]
    pub fn finish(self, force: &mut [f64; 3], careful: Option<[f64; 3]>) {
        for (c, force) in force.iter_mut().enumerate() {
            *force += match careful {
                Some(exact) => exact[c] / -self.steps,
                None if V::Element::SINGLE && self.steps == 0.0 => self.force[c].sum(),
                None => self.force[c].since(self.origin) / -self.steps,
            };
        }
    }
}

/// Adds the integers next to some numbers.
#[cold]
#[inline(never)]
fn add_integers<V: Lanes>(sums: &mut [f64; 3], f: [V; 3]) {
    for (sum, f) in sums.iter_mut().zip(f) {
        *sum += (0..V::WIDTH).map(|k| f.lane(k).round_ties_even()).sum::<f64>();
    }
}
