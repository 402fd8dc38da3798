//! Terms: an energy applied to the atoms of a system.
//!
//! A [`Law`] is the sum of one kind of energy over the system, written once for any number
//! ([`total`](Law::total), which the tape runs) and once with its structure known ([`fused`](Law::fused)).
//! Generic methods cannot be called through a pointer, so a law is erased once per term, as a
//! [`Term`].

use super::Forces;
use super::order::{Order, Quantity, Tangents, Values};
use super::parameters::{ParameterTable, PreparedTable};
use super::view::{Frame, Grid, Precision, View};
use crate::autodiff::{Differentiable, Dual, Number, Tape, Var};
use potentials::cutoff::Ending;
use potentials::{Coefficient, Energy, Record, Scalar, Vec3};
use rayon::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;

/// The prepared parameters of a law's energy.
pub type Prepared<L, P> = <<L as Law>::Energy as Energy>::Prepared<P>;

/// What a fused evaluation adds to.
pub struct Sink<'a> {
    /// Forces, one an atom.
    pub forces: &'a mut [[f64; 3]],
    /// Forces in the order of each neighbour list's ranks.
    pub ranked: &'a mut [Vec<[f64; 3]>],
    /// Energy and virial (xx yy zz xy xz yz) of this term.
    pub sums: Sums,
    /// Where forces go, if what is asked for is how they change and they are wanted as well.
    pub beside: Option<Beside<'a>>,
}

/// Forces that are wanted beside their tangents, the same to the bit as without them.
pub struct Beside<'a> {
    /// What they are rounded to.
    pub grid: Grid,
    /// As in a [`Sink`].
    pub forces: &'a mut [[f64; 3]],
    /// As in a [`Sink`].
    pub ranked: &'a mut [Vec<[f64; 3]>],
}

impl Beside<'_> {
    /// The configuration for a kernel that computes them by themselves.
    pub fn frame<'f>(&self, frame: &Frame<'f>) -> Frame<'f> {
        Frame { grid: self.grid, sums: false, direction: None, ..*frame }
    }
    /// The sink for such a kernel.
    pub fn sink(&mut self) -> Sink<'_> {
        let Self { forces, ranked, .. } = self;
        Sink { forces, ranked, sums: Sums::default(), beside: None }
    }
    /// Whether kernels that compute both have the bits of those that compute forces alone.
    pub fn fits(frame: &Frame) -> bool {
        frame.precision == Precision::Double && frame.isa.rarely_the_same()
    }
}

/// Energy and virial (xx yy zz xy xz yz), added up together: what is added is rounded to a grid, and rounding errors
/// of the sums are kept, so that the order of addition does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    high: [f64; 7],
    low: [f64; 7],
    origin: f64,
}

impl Sums {
    /// Nothing yet, on the grid with this [origin](super::Grid::energy_origin).
    pub fn on(origin: f64) -> Self {
        Self { origin, ..Self::default() }
    }
    /// What sums of the same grid start from.
    #[inline(always)]
    pub fn origin(&self) -> f64 {
        self.origin
    }
    /// Energy and virial.
    pub fn totals(&self) -> [f64; 7] {
        std::array::from_fn(|k| self.high[k] + self.low[k])
    }
    #[inline(always)]
    fn put(&mut self, k: usize, x: f64) {
        add_exactly(&mut self.high[k], &mut self.low[k], x);
    }
    /// Adds an energy (or its tangent).
    #[inline(always)]
    pub fn add_energy<Y: Quantity<f64>>(&mut self, e: Y) {
        self.put(0, (e.result() + self.origin) - self.origin);
    }
    /// Adds the virial d ⊗ f of a force f on an atom at d from its partner (or its tangent).
    #[inline(always)]
    pub fn add_virial<Y: Quantity<f64>>(&mut self, d: [Y; 3], f: [Y; 3]) {
        let w = [
            d[0] * f[0],
            d[1] * f[1],
            d[2] * f[2],
            (d[0] * f[1] + d[1] * f[0]) * 0.5,
            (d[0] * f[2] + d[2] * f[0]) * 0.5,
            (d[1] * f[2] + d[2] * f[1]) * 0.5,
        ];
        for (k, w) in w.into_iter().enumerate() {
            self.put(k + 1, (w.result() + self.origin) - self.origin);
        }
    }
    /// Adds numbers that are on the grid already.
    #[inline(always)]
    pub fn add_each(&mut self, x: [f64; 7]) {
        for (k, x) in x.into_iter().enumerate() {
            self.put(k, x);
        }
    }
    /// Adds other sums.
    pub fn add(&mut self, o: &Sums) {
        self.add_each(o.high);
        for (a, b) in self.low.iter_mut().zip(&o.low) {
            *a += b;
        }
    }
}

/// Adds x to a sum, and the rounding error of that to another (Knuth).
#[inline(always)]
pub(super) fn add_exactly(high: &mut f64, low: &mut f64, x: f64) {
    let (a, sum) = (*high, *high + x);
    let b = sum - a;
    *high = sum;
    *low += (a - (sum - b)) + (x - b);
}

/// Which neighbour list a law reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListNeed {
    /// How far it must reach, in nm.
    pub range: f64,
    /// Whether pairs 1-2, 1-3 and 1-4 bonds apart are left out.
    pub leave_out: [bool; 3],
    /// Whether the mirror of each entry must be known.
    pub mirrors: bool,
    /// Whether it is read in single precision where that will do.
    pub single: bool,
    /// Whether it is always read in double precision.
    pub double: bool,
}

/// The sum of one kind of energy over a system.
pub trait Law: Send + Sync + 'static {
    /// The energy.
    type Energy: Energy;

    /// The neighbour list it reads, if any.
    fn list_need(&self) -> Option<ListNeed> {
        None
    }
    /// Told which of the frame's lists that is.
    fn set_list(&mut self, _list: usize) {}
    /// Told the parameters, now and whenever they change (a cut-off, say).
    fn parameters_changed(&mut self, _parameters: &ParameterTable, _prepared: &PreparedTable) {}

    /// How many parts the energy is the sum of, in a system of so many atoms: one an atom, unless it says otherwise.
    fn items(&self, atoms: usize) -> usize {
        atoms
    }
    /// Whether charges are part of it.
    fn takes_charges(&self) -> bool {
        false
    }
    /// How it ends at its cut-off, if by one of the [endings](Ending).
    fn ending(&self) -> Option<Ending> {
        None
    }
    /// Whether an item is a sum of energies of two atoms, one of which they have in common.
    fn is_of_pairs(&self) -> bool {
        false
    }
    /// The energy of some of its [items](Law::items), step by step, in any number. `p` holds the rows of the parameter
    /// table, `charges` one an atom.
    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        charges: &[P],
        items: Range<usize>,
    ) -> S
    where
        Self: Sized;

    /// Energy, forces and virial, each interaction differentiated by itself; or their tangents, of atoms that move along
    /// the frame's [direction](Frame::direction).
    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink)
    where
        Self: Sized;

    /// Whether tangents come with [forces beside them](Sink::beside) where these are wanted.
    const BESIDE: bool = false;

    /// Derivatives in the prepared parameters, where there is a kernel for them; `None` where a tape must do.
    fn slopes_in_lanes(&mut self, _: &Frame, _: &PreparedTable) -> Option<PreparedSlopes> {
        None
    }

    /// Whether it is a function of vectors between atoms, so that moving all of them alike changes nothing. Where that
    /// is not so by construction, it may still be found out.
    fn translates(&self) -> bool {
        true
    }

    /// Which neighbours take part, for what is said about them outside the kernels.
    fn reach(&self) -> Option<Reach<'_>> {
        None
    }
}

/// The cut-offs of a law, and the list that its neighbours are found in.
#[derive(Clone, Copy, Debug)]
pub struct Reach<'a> {
    /// Which of the frame's lists.
    pub list: usize,
    /// How many types of atoms.
    pub types: usize,
    /// Squares of the cut-offs in nm², types × types; 0 where there is no interaction.
    pub cutoff2: &'a [f64],
}

impl Reach<'_> {
    /// Calls `visit(i, j, distance, cut-off)` for each list entry between types that interact.
    fn each(&self, frame: &Frame, mut visit: impl FnMut(usize, usize, f64, f64)) {
        let (near, t) = (&frame.lists[self.list], &frame.atoms.types);
        for i in 0..t.len() {
            for &n in near.row(i) {
                let j = near.list.owner(n);
                let cutoff2 = self.cutoff2[t[i] as usize * self.types + t[j] as usize];
                if cutoff2 > 0.0 {
                    let [x, y, z] = near.vector(frame.cell, i, n);
                    visit(i, j, (x * x + y * y + z * z).sqrt(), cutoff2.sqrt());
                }
            }
        }
    }

    /// The interaction of shortest distance.
    pub fn closest(&self, frame: &Frame) -> Option<Closest> {
        let mut best: Option<Closest> = None;
        self.each(frame, |i, j, distance, cutoff| {
            if distance < best.map_or(cutoff, |b| b.distance) {
                best = Some(Closest { atoms: [i, j], distance });
            }
        });
        best
    }

    /// Lowers each atom's entry to how far its distances are from a cut-off at least.
    pub fn clearance(&self, frame: &Frame, clearance: &mut [f64]) {
        self.each(frame, |i, _, distance, cutoff| {
            clearance[i] = clearance[i].min((distance - cutoff).abs());
        });
    }
}

/// Two atoms that are close.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closest {
    /// The atoms, from 0.
    pub atoms: [usize; 2],
    /// Their distance in nm.
    pub distance: f64,
}

/// What [`Term::slopes`] returns: derivatives of the energy with their change along a direction, and whether what they
/// are of takes part in anything.
pub struct TermSlopes {
    /// In each of the user's numbers.
    pub parameters: Vec<(Dual<f64>, bool)>,
    /// In the charges of the atoms; empty where there are none in it.
    pub charges: Vec<(Dual<f64>, bool)>,
}

/// What [`Law::slopes_in_lanes`] has: derivatives of the energy with their change along the frame's direction.
pub struct PreparedSlopes {
    /// In the fields of all rows of prepared parameters, row after row.
    pub prepared: Vec<Dual<f64>>,
    /// Which rows take part in anything.
    pub used: Vec<bool>,
    /// In the charges of all atoms, and whether they take part; empty where there are none.
    pub charges: Vec<(Dual<f64>, bool)>,
    /// Which items are not among these.
    pub rest: Range<usize>,
}

/// Of how many pieces sums of derivatives in parameters are made at most.
const PIECES: usize = 256;

/// A law whose type is forgotten.
pub trait Term: Any + Send + Sync {
    /// Its name: the energy's key in the input.
    fn name(&self) -> &str;
    /// The user's numbers.
    fn parameters(&self) -> &ParameterTable;
    /// Changes the user's numbers.
    fn set_parameters(&mut self, values: &[f64]);
    /// See [`Law::list_need`].
    fn list_need(&self) -> Option<ListNeed>;
    /// See [`Law::set_list`].
    fn set_list(&mut self, list: usize);
    /// The plain energy.
    fn energy(&self, view: &View<f64>) -> f64;
    /// The energy on a tape.
    fn record<'t>(&self, view: &View<Var<'t>>) -> Var<'t>;
    /// The same on a tape of dual numbers: forward over reverse. Parameters and charges are variables where given.
    fn record_nested<'t>(
        &self,
        view: &View<Var<'t, Dual<f64>>>,
        parameters: Option<&[Var<'t, Dual<f64>>]>,
        charges: Option<&[Var<'t, Dual<f64>>]>,
    ) -> Var<'t, Dual<f64>>;
    /// Energy, forces and virial.
    fn fused(&mut self, frame: &Frame, sink: &mut Sink);
    /// How they change along the frame's [direction](Frame::direction); and forces, if the sink takes them.
    fn tangents(&mut self, frame: &Frame, sink: &mut Sink);
    /// ∂E/∂θ of its parameters and ∂E/∂q of all atoms (with what follows for the charges that were given), and how they
    /// change along the frame's [direction](Frame::direction).
    fn slopes(&mut self, frame: &Frame) -> TermSlopes;
    /// Adds how energy, forces and virial change while its parameters change at these rates, and the charges of atoms at
    /// theirs. (Energies: one is appended.)
    fn responses(&self, frame: &Frame, parameters: &[f64], charges: &[f64], out: &mut Forces);
    /// Whether charges are part of it.
    fn takes_charges(&self) -> bool;
    /// Calls `visit` with sets of atoms whose second derivatives with each other may be other than zero.
    fn couples(&self, frame: &Frame, visit: &mut dyn FnMut(&[u32]));
    /// See [`Law::ending`].
    fn ending(&self) -> Option<Ending>;
    /// See [`Law::translates`].
    fn translates(&self) -> bool;
    /// See [`Law::reach`].
    fn reach(&self) -> Option<Reach<'_>>;
}

/// A law with its name and parameters.
pub struct Entry<L: Law> {
    name: String,
    parameters: ParameterTable,
    prepared: PreparedTable,
    law: L,
}

impl<L: Law> Entry<L> {
    /// Erases a law.
    pub fn boxed(name: impl Into<String>, parameters: ParameterTable, mut law: L) -> Box<dyn Term> {
        let prepared = PreparedTable::of::<L::Energy>(&parameters);
        law.parameters_changed(&parameters, &prepared);
        Box::new(Entry { name: name.into(), parameters, prepared, law })
    }
    /// The law.
    pub fn law(&self) -> &L {
        &self.law
    }
    /// The law, and the parameters that it is evaluated with.
    pub fn parts(&mut self) -> (&mut L, &PreparedTable) {
        (&mut self.law, &self.prepared)
    }
    /// The energy, whose parameters and charges are variables where given.
    fn recorded<S: Number>(&self, view: &View<S>, parameters: Option<&[S]>, charges: Option<&[S]>) -> S {
        // (constants on a tape leave no trace, so that one compiled text serves both cases)
        let theta = or_constants(parameters, self.parameters.values());
        let charges = or_constants(charges, view.frame.charges);
        let prepared = self.parameters.prepared::<L::Energy, S>(&theta);
        self.law.total::<S, S>(view, &prepared, &charges, 0..self.law.items(view.frame.atoms.len()))
    }
}

impl<L: Law> Term for Entry<L> {
    fn name(&self) -> &str {
        &self.name
    }
    fn parameters(&self) -> &ParameterTable {
        &self.parameters
    }
    fn set_parameters(&mut self, values: &[f64]) {
        self.parameters.set_values(values);
        self.prepared = PreparedTable::of::<L::Energy>(&self.parameters);
        self.law.parameters_changed(&self.parameters, &self.prepared);
    }
    fn list_need(&self) -> Option<ListNeed> {
        self.law.list_need()
    }
    fn set_list(&mut self, list: usize) {
        self.law.set_list(list);
    }
    fn energy(&self, view: &View<f64>) -> f64 {
        self.law.total::<f64, f64>(
            view,
            &self.prepared.rows(|x| x),
            view.frame.charges,
            0..self.law.items(view.frame.atoms.len()),
        )
    }
    fn record<'t>(&self, view: &View<Var<'t>>) -> Var<'t> {
        self.recorded(view, None, None)
    }
    fn record_nested<'t>(
        &self,
        view: &View<Var<'t, Dual<f64>>>,
        parameters: Option<&[Var<'t, Dual<f64>>]>,
        charges: Option<&[Var<'t, Dual<f64>>]>,
    ) -> Var<'t, Dual<f64>> {
        self.recorded(view, parameters, charges)
    }
    fn fused(&mut self, frame: &Frame, sink: &mut Sink) {
        self.law.fused::<Values>(frame, &self.prepared, sink);
    }
    fn tangents(&mut self, frame: &Frame, sink: &mut Sink) {
        let beside = match &mut sink.beside {
            Some(beside) if !L::BESIDE || !Beside::fits(frame) => {
                let frame = beside.frame(frame);
                self.law.fused::<Values>(&frame, &self.prepared, &mut beside.sink());
                sink.beside.take()
            }
            _ => None,
        };
        self.law.fused::<Tangents>(frame, &self.prepared, sink);
        if beside.is_some() {
            sink.beside = beside;
        }
    }
    fn slopes(&mut self, frame: &Frame) -> TermSlopes {
        let atoms = frame.atoms.len();
        let lanes = self.law.slopes_in_lanes(frame, &self.prepared);
        // Items are recorded some at a time: all of them on one tape would take as much memory as there is.
        let rest = lanes.as_ref().map_or(0..self.law.items(atoms), |lanes| lanes.rest.clone());
        let n = rest.len();
        let (values, q, charged) = (self.parameters.values(), frame.charges, self.law.takes_charges());
        let each = n.div_ceil(PIECES).max(64);
        let piece = |k: usize| -> TermSlopes {
            let tape = Tape::<Dual<f64>>::new();
            let variable = |x: &f64| tape.variable(Dual::passive(*x));
            let fixed = |x: &f64| <Var<Dual<f64>> as Scalar>::constant(*x);
            let theta: Vec<_> = values.iter().map(variable).collect();
            let charges: Vec<_> =
                if charged { q.iter().map(variable).collect() } else { q.iter().map(fixed).collect() };
            let rate = |x: f64| <Var<Dual<f64>> as Differentiable>::lifted(Dual::new(0.0, x));
            let moves = |i: usize| {
                let [x, y, z] = frame.direction.map_or([0.0; 3], |d| d.moves[i]).map(rate);
                Vec3::new(x, y, z)
            };
            let strain = frame.direction.filter(|d| d.strains()).map(|d| d.strain.map(|e| e.map(rate)));
            let view = View { frame, moves: Some(&moves), strain };
            let prepared = self.parameters.prepared::<L::Energy, Var<Dual<f64>>>(&theta);
            let items = rest.start + k * each..rest.start + ((k + 1) * each).min(n);
            let e = self.law.total::<Var<Dual<f64>>, Var<Dual<f64>>>(&view, &prepared, &charges, items);
            let (adjoints, known) = (tape.gradient(e), tape.dependencies(e));
            let slope = |x: &Var<Dual<f64>>| (adjoints.of(*x), known[x.node() as usize]);
            TermSlopes {
                parameters: theta.iter().map(slope).collect(),
                charges: if charged { charges.iter().map(slope).collect() } else { Vec::new() },
            }
        };
        let pieces: Vec<TermSlopes> = (0..n.div_ceil(each)).into_par_iter().map(piece).collect();
        let none = (Dual::constant(0.0), false);
        let mut sum = TermSlopes {
            parameters: vec![none; values.len()],
            charges: vec![none; if charged { atoms } else { 0 }],
        };
        let add = |(a, b): (&mut (Dual<f64>, bool), &(Dual<f64>, bool))| *a = (a.0 + b.0, a.1 | b.1);
        for piece in &pieces {
            sum.parameters.iter_mut().zip(&piece.parameters).for_each(add);
            sum.charges.iter_mut().zip(&piece.charges).for_each(add);
        }
        if let Some(lanes) = lanes {
            // from prepared parameters to the user's numbers
            let tape = Tape::<Dual<f64>>::new();
            let theta: Vec<_> = values.iter().map(|x| tape.variable(Dual::passive(*x))).collect();
            let prepared = self.parameters.prepared::<L::Energy, Var<Dual<f64>>>(&theta);
            let width = self.prepared.width();
            let mut total = Var::constant(0.0);
            for (row, p) in prepared.iter().enumerate().filter(|(row, _)| lanes.used[*row]) {
                for m in 0..width {
                    let slope = lanes.prepared[row * width + m];
                    total = total + p.field(m) * <Var<Dual<f64>> as Differentiable>::lifted(slope);
                }
            }
            let (adjoints, known) = (tape.gradient(total), tape.dependencies(total));
            let theta: Vec<_> = theta.iter().map(|x| (adjoints.of(*x), known[x.node() as usize])).collect();
            sum.parameters.iter_mut().zip(&theta).for_each(add);
            sum.charges.iter_mut().zip(&lanes.charges).for_each(add);
        }
        sum
    }
    fn responses(&self, frame: &Frame, parameters: &[f64], charges: &[f64], out: &mut Forces) {
        // (parameters are constants of the tape, whose values have tangents)
        let dual = |(&x, &rate): (&f64, &f64)| Var::lifted(Dual::new(x, rate));
        let values = self.parameters.values();
        let total: &Recorded = &|view, items| {
            let theta: Vec<Var<Dual<f64>>> = values.iter().zip(parameters).map(dual).collect();
            let charges: Vec<_> = frame.charges.iter().zip(charges).map(dual).collect();
            let prepared = self.parameters.prepared::<L::Energy, _>(&theta);
            self.law.total::<Var<Dual<f64>>, Var<Dual<f64>>>(view, &prepared, &charges, items)
        };
        respond(frame, self.law.items(frame.atoms.len()), total, out);
    }
    fn takes_charges(&self) -> bool {
        self.law.takes_charges()
    }
    fn couples(&self, frame: &Frame, visit: &mut dyn FnMut(&[u32])) {
        let rows = self.prepared.rows(|x| x);
        // which atoms an item is about is what it asks the places of
        let asked = RefCell::new(Vec::new());
        let moves = |i: usize| {
            asked.borrow_mut().push(i as u32);
            Vec3::constant([0.0; 3])
        };
        let view = View { frame, moves: Some(&moves), strain: None };
        for item in 0..self.law.items(frame.atoms.len()) {
            asked.borrow_mut().clear();
            self.law.total::<f64, f64>(&view, &rows, frame.charges, item..item + 1);
            let mut atoms = asked.borrow_mut();
            if self.law.is_of_pairs() {
                atoms.as_chunks::<2>().0.iter().for_each(|pair| visit(pair));
            } else {
                atoms.sort_unstable();
                atoms.dedup();
                visit(&atoms);
            }
        }
    }
    fn ending(&self) -> Option<Ending> {
        self.law.ending()
    }
    fn translates(&self) -> bool {
        self.law.translates()
    }
    fn reach(&self) -> Option<Reach<'_>> {
        self.law.reach()
    }
}

/// The energy of some items of a law.
type Recorded<'a> = dyn for<'t> Fn(&View<Var<'t, Dual<f64>>>, Range<usize>) -> Var<'t, Dual<f64>> + Sync + 'a;

/// Adds the tangents of energy, forces and virial, whose values are differentiated on tapes: forward over reverse, some
/// items at a time, in an order that does not depend on threads.
fn respond(frame: &Frame, items: usize, total: &Recorded, out: &mut Forces) {
    let each = items.div_ceil(PIECES).max(64);
    type Piece = (f64, Vec<(u32, [f64; 3])>, [[f64; 3]; 3]);
    let piece = |k: usize| -> Piece {
        let tape = Tape::<Dual<f64>>::new();
        let zero = || tape.variable(Dual::passive(0.0));
        // (only atoms that are asked for are variables)
        let places = RefCell::new((vec![None; frame.atoms.len()], Vec::new()));
        let moves = |i: usize| {
            let (known, asked) = &mut *places.borrow_mut();
            *known[i].get_or_insert_with(|| {
                let place = Vec3::new(zero(), zero(), zero());
                asked.push((i as u32, place));
                place
            })
        };
        let strain = [(); 3].map(|()| [(); 3].map(|()| zero()));
        let view = View { frame, moves: Some(&moves), strain: Some(strain) };
        let e = total(&view, k * each..((k + 1) * each).min(items));
        let adjoints = tape.gradient(e);
        let rate = |x: Var<Dual<f64>>| -adjoints.of(x).tangent;
        let asked = places.borrow();
        let forces = asked.1.iter().map(|&(i, x)| (i, [rate(x.x), rate(x.y), rate(x.z)])).collect();
        (e.value().tangent, forces, strain.map(|row| row.map(rate)))
    };
    let pieces: Vec<Piece> = (0..items.div_ceil(each)).into_par_iter().map(piece).collect();
    let mut energy = 0.0;
    for (e, forces, w) in &pieces {
        energy += e;
        for (i, force) in forces {
            out.forces[*i as usize].iter_mut().zip(force).for_each(|(f, x)| *f += x);
        }
        let w = |a: usize, b: usize| 0.5 * (w[a][b] + w[b][a]);
        let w = [w(0, 0), w(1, 1), w(2, 2), w(0, 1), w(0, 2), w(1, 2)];
        out.virial.iter_mut().zip(w).for_each(|(a, b)| *a += b);
    }
    out.energies.push(energy);
}

/// The variables, or constants of these values.
fn or_constants<S: Scalar>(variables: Option<&[S]>, values: &[f64]) -> Vec<S> {
    match variables {
        Some(v) => v.to_vec(),
        None => values.iter().map(|&x| S::constant(x)).collect(),
    }
}
