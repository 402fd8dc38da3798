//! The evaluators.

use super::pair::Joint;
use super::term::{ListNeed, Sink, Sums, Term};
use super::timings::{Clock, Timings};
use super::view::{Frame, Grid, Neighborhood, Precision, View};
use super::{ForceError, ForceSource, Forces};
use crate::autodiff::lanes::Isa;
use crate::autodiff::{Adjoints, Dual, Tape, Var};
use crate::neighbors::{Exclusions, VerletList};
use crate::system::{Atoms, Cell, Positions};
use potentials::{Scalar, Vec3};
use rayon::prelude::*;
use std::sync::Arc;

/// How forces are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// One tape, recorded op by op, and one backward pass for all forces.
    Tape,
    /// Each interaction differentiated by itself.
    #[default]
    Fused,
}

/// How forces are computed, and how exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Method {
    /// By which evaluator.
    pub kind: Kind,
    /// What [`Kind::Fused`] runs on.
    pub isa: Isa,
    /// What its sums are rounded to.
    pub grid: Grid,
    /// How precise it is.
    pub precision: Precision,
}

impl Default for Method {
    /// The fast way, with sums that depend on their order in the last digit.
    fn default() -> Self {
        Self { kind: Kind::Fused, isa: Isa::best(), grid: Grid::NONE, precision: Precision::Double }
    }
}

/// The charges as the user gave them: some numbers, and which of them each atom has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Charges {
    /// The numbers, in e.
    pub values: Vec<f64>,
    /// Their names, for derivatives.
    pub labels: Vec<String>,
    /// For each atom the index of its charge.
    pub of_atom: Vec<u32>,
}

impl Charges {
    /// Every atom has a charge of its own.
    pub fn of_atoms(charges: &[f64]) -> Self {
        Self {
            values: charges.to_vec(),
            labels: (1..=charges.len()).map(|k| format!("charge.{k}")).collect(),
            of_atom: (0..charges.len() as u32).collect(),
        }
    }
}

/// The range in nm of a list that nobody needs: of a term between whose types there is no interaction.
const SHORTEST: f64 = 1e-3;

/// What an [`Evaluator`] is made of.
pub struct Setup {
    /// The atoms.
    pub atoms: Arc<Atoms>,
    /// Their charges.
    pub charges: Charges,
    /// Pairs of atoms joined by 1, 2 and 3 bonds, as lists of pairs.
    pub joined: [Vec<(u32, u32)>; 3],
    /// The terms of the energy.
    pub terms: Vec<Box<dyn Term>>,
    /// Coulomb's constant in kJ/mol nm/e².
    pub coulomb: f64,
    /// Skin of the neighbour lists in nm.
    pub skin: f64,
    /// How forces are computed.
    pub method: Method,
    /// Pairs of energies that have a kernel of their own together.
    pub joints: Vec<Joint>,
}

/// The configuration, of fields that are borrowed one by one.
macro_rules! frame {
    ($self:ident, $cell:ident, $positions:ident) => {
        frame!($self, $cell, $positions, true)
    };
    ($self:ident, $cell:ident, $positions:ident, $sums:expr) => {
        Frame {
            atoms: &$self.atoms,
            cell: $cell,
            positions: $positions,
            lists: &$self.lists,
            charges: &$self.atom_charges,
            coulomb: $self.coulomb,
            grid: $self.method.grid,
            isa: $self.method.isa,
            precision: $self.method.precision,
            sums: $sums,
        }
    };
}

/// Computes energies and their derivatives.
pub struct Evaluator {
    /// How forces are computed.
    pub method: Method,
    atoms: Arc<Atoms>,
    charges: Charges,
    atom_charges: Vec<f64>,
    terms: Vec<Box<dyn Term>>,
    /// Which terms are computed together, and how: each term stands here at most once.
    together: Vec<(Joint, [usize; 2])>,
    lists: Vec<Neighborhood>,
    /// Forces in the order of each list's ranks.
    ranked: Vec<Vec<[f64; 3]>>,
    /// Energy and virial of each term.
    sums: Vec<Sums>,
    coulomb: f64,
    tape: Tape,
    adjoints: Adjoints,
    timings: Timings,
}

impl Evaluator {
    /// An evaluator for a system.
    ///
    /// # Errors
    /// A cut-off or skin of which no neighbour list can be made.
    pub fn new(setup: Setup) -> Result<Self, ForceError> {
        let Setup { atoms, charges, joined, mut terms, coulomb, skin, method, joints } = setup;
        // terms that leave out the same pairs share a list
        let mut needs: Vec<ListNeed> = Vec::new();
        for term in &mut terms {
            let Some(need) = term.list_need() else { continue };
            let k = needs.iter().position(|n| n.leave_out == need.leave_out).unwrap_or_else(|| {
                // (a term that reaches nowhere reads a list too, if one with next to nothing in it)
                needs.push(ListNeed { range: SHORTEST, ..need });
                needs.len() - 1
            });
            let shared = &mut needs[k];
            shared.range = shared.range.max(need.range);
            shared.mirrors |= need.mirrors;
            shared.single |= need.single;
            shared.double |= need.double;
            term.set_list(k);
        }
        let list = |need: &ListNeed| -> Result<Neighborhood, ForceError> {
            let mut list = VerletList::new(need.range, skin)?;
            if need.mirrors {
                list = list.with_mirrors();
            }
            let pairs = (0..3).filter(|&k| need.leave_out[k]).flat_map(|k| joined[k].iter().copied());
            let pairs: Vec<_> = pairs.collect();
            let exclusions =
                (!pairs.is_empty()).then(|| Exclusions::from_pairs(atoms.len(), pairs)).transpose();
            let exclusions = exclusions.map_err(ForceError::Exclusions)?;
            Ok(Neighborhood::new(list, exclusions, need.single, need.double))
        };
        let lists = needs.iter().map(list).collect::<Result<Vec<_>, _>>()?;
        let ranked = vec![Vec::new(); lists.len()];
        let atom_charges = charges.of_atom.iter().map(|&k| charges.values[k as usize]).collect();
        let (tape, adjoints) = (Tape::new(), Adjoints::default());
        let (together, timings) = (together(&terms, &joints), Timings::of(terms.len()));
        Ok(Self {
            method,
            atoms,
            charges,
            atom_charges,
            terms,
            together,
            lists,
            ranked,
            sums: Vec::new(),
            coulomb,
            tape,
            adjoints,
            timings,
        })
    }

    /// The terms.
    pub fn terms(&self) -> &[Box<dyn Term>] {
        &self.terms
    }

    /// The terms, to change their parameters. (A cut-off cannot be raised beyond the neighbour list.)
    pub fn terms_mut(&mut self) -> &mut [Box<dyn Term>] {
        &mut self.terms
    }

    /// Sets the charges as the user gave them.
    pub fn set_charges(&mut self, values: &[f64]) {
        self.charges.values.copy_from_slice(values);
        self.atom_charges = self.charges.of_atom.iter().map(|&k| values[k as usize]).collect();
    }

    /// The charges as the user gave them.
    pub fn charges(&self) -> &Charges {
        &self.charges
    }

    /// Memory of the tape's last recording, in bytes.
    pub fn tape_bytes(&self) -> usize {
        self.tape.bytes()
    }

    /// Where the time of its evaluations went.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// The same, to begin anew.
    pub fn timings_mut(&mut self) -> &mut Timings {
        &mut self.timings
    }

    /// Brings the lists up to date.
    fn find_neighbors(&mut self, cell: &Cell, positions: &Positions) -> Result<(), ForceError> {
        for near in &mut self.lists {
            near.update(positions, cell, &self.atoms)?;
        }
        Ok(())
    }

    /// Brings what kernels in that precision read of the lists up to date.
    fn refresh_rows(&mut self, cell: &Cell, positions: &Positions, precision: Precision) {
        for near in &mut self.lists {
            near.refresh(positions, cell, &self.atom_charges, precision);
        }
    }

    /// Brings everything up to date for all that is not a kernel.
    fn prepare(&mut self, cell: &Cell, positions: &Positions) -> Result<(), ForceError> {
        self.find_neighbors(cell, positions)?;
        self.refresh_rows(cell, positions, Precision::Double);
        Ok(())
    }

    /// The energy by term with atoms moved by `moves` (one vector an atom, or none) and space strained by `strain`:
    /// what differences are taken of. The neighbour lists are those of the unmoved atoms, so that moves must stay
    /// well below the skin.
    ///
    /// # Errors
    /// Where there is no neighbour list. Numbers that are not finite are returned as they are.
    pub fn energies(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        moves: Option<&[Vec3<f64>]>,
        strain: Option<[[f64; 3]; 3]>,
    ) -> Result<Vec<f64>, ForceError> {
        self.prepare(cell, positions)?;
        let frame = frame!(self, cell, positions);
        let view = View { frame: &frame, moves, strain };
        Ok(self.terms.iter().map(|t| t.energy(&view)).collect())
    }

    /// For each atom how far, in nm, the distances to its neighbours are from a cut-off at least: within that, moving
    /// the atom crosses none. (An energy may jump or bend at its cut-off, which differences must not reach across.)
    ///
    /// # Errors
    /// Where there is no neighbour list.
    pub fn clearance(&mut self, cell: &Cell, positions: &Positions) -> Result<Vec<f64>, ForceError> {
        self.prepare(cell, positions)?;
        let frame = frame!(self, cell, positions);
        let mut clearance = vec![f64::INFINITY; frame.atoms.len()];
        self.terms.iter().filter_map(|t| t.reach()).for_each(|reach| reach.clearance(&frame, &mut clearance));
        Ok(clearance)
    }

    /// Gradient and Hessian–vector product H·v, forward over reverse on one tape.
    ///
    /// # Errors
    /// Where there is no neighbour list. Numbers that are not finite are returned as they are.
    pub fn hessian_product(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        v: &[[f64; 3]],
    ) -> Result<(Vec<[f64; 3]>, Vec<[f64; 3]>), ForceError> {
        self.prepare(cell, positions)?;
        let frame = frame!(self, cell, positions);
        let tape = Tape::<Dual<f64>>::new();
        let variable = |x: f64| tape.variable(Dual::new(0.0, x));
        let moves: Vec<_> =
            v.iter().map(|&[x, y, z]| Vec3::new(variable(x), variable(y), variable(z))).collect();
        let view = View { frame: &frame, moves: Some(&moves), strain: None };
        let total = self.terms.iter().fold(Var::constant(0.0), |e, t| e + t.record_nested(&view));
        let adjoints = tape.gradient(total);
        let split = |f: fn(Dual<f64>) -> f64| {
            moves.iter().map(|m| [m.x, m.y, m.z].map(|x| f(adjoints.of(x)))).collect::<Vec<_>>()
        };
        Ok((split(|d| d.value), split(|d| d.tangent)))
    }

    /// ∂E/∂θ for every number the user wrote: those of each term by its label, then the charges.
    ///
    /// # Errors
    /// Where there is no neighbour list. Numbers that are not finite are returned as they are.
    pub fn parameter_gradient(
        &mut self,
        cell: &Cell,
        positions: &Positions,
    ) -> Result<Vec<(String, f64)>, ForceError> {
        self.prepare(cell, positions)?;
        let frame = frame!(self, cell, positions);
        self.tape.reset();
        let tape = &self.tape;
        let charges: Vec<_> = self.charges.values.iter().map(|&q| tape.variable(q)).collect();
        let of_atoms: Vec<_> = self.charges.of_atom.iter().map(|&k| charges[k as usize]).collect();
        let view = View { frame: &frame, moves: None, strain: None };
        let (mut total, mut named) = (Var::constant(0.0), Vec::new());
        for term in &self.terms {
            let table = term.parameters();
            let theta: Vec<_> = table.values().iter().map(|&x| tape.variable(x)).collect();
            total = total + term.record(&view, Some(&theta), Some(&of_atoms));
            named.extend(table.labels().iter().map(|l| format!("{}.{l}", term.name())).zip(theta));
        }
        named.extend(self.charges.labels.iter().cloned().zip(charges));
        tape.backward(&[(total, 1.0)], &mut self.adjoints);
        Ok(named.into_iter().map(|(name, x)| (name, self.adjoints.of(x))).collect())
    }

    fn compute(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        sums: bool,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        let mut clock = Clock::start();
        self.find_neighbors(cell, positions)?;
        clock.lap(&mut self.timings.lists);
        let precision = match self.method.kind {
            Kind::Tape => Precision::Double,
            Kind::Fused => self.method.precision,
        };
        self.refresh_rows(cell, positions, precision);
        clock.lap(&mut self.timings.rows);
        match self.method.kind {
            Kind::Tape => self.on_tape(cell, positions, &mut clock, out),
            Kind::Fused => self.fused(cell, positions, sums, &mut clock, out),
        }
        let finite =
            out.forces.iter().flatten().chain(&out.energies).chain(&out.virial).all(|x| x.is_finite());
        clock.lap(&mut self.timings.rest);
        self.timings.evaluations += 1;
        if finite {
            return Ok(());
        }
        self.prepare(cell, positions)?;
        Err(self.blame(cell, positions, out))
    }

    fn on_tape(&mut self, cell: &Cell, positions: &Positions, clock: &mut Clock, out: &mut Forces) {
        let frame = frame!(self, cell, positions);
        self.tape.reset();
        let tape = &self.tape;
        let zero = || tape.variable(0.0);
        let moves: Vec<_> = (0..frame.atoms.len()).map(|_| Vec3::new(zero(), zero(), zero())).collect();
        let strain = [(); 3].map(|()| [(); 3].map(|()| zero()));
        let view = View { frame: &frame, moves: Some(&moves), strain: Some(strain) };
        clock.lap(&mut self.timings.rest);
        let mut energies = Vec::with_capacity(self.terms.len());
        for (term, spent) in self.terms.iter().zip(&mut self.timings.terms) {
            energies.push(term.record(&view, None, None));
            clock.lap(spent);
        }
        out.energies.clear();
        out.energies.extend(energies.iter().map(|e| e.value()));
        let total = tape.sum(&energies);
        tape.backward(&[(total, 1.0)], &mut self.adjoints);
        let force = |x: Var<f64>| -self.adjoints.of(x);
        out.forces.clear();
        out.forces.extend(moves.iter().map(|m| [force(m.x), force(m.y), force(m.z)]));
        let w = |a: usize, b: usize| 0.5 * (force(strain[a][b]) + force(strain[b][a]));
        out.virial = [w(0, 0), w(1, 1), w(2, 2), w(0, 1), w(0, 2), w(1, 2)];
    }

    fn fused(&mut self, cell: &Cell, positions: &Positions, sums: bool, clock: &mut Clock, out: &mut Forces) {
        let frame = frame!(self, cell, positions, sums);
        let n = frame.atoms.len();
        out.forces.clear();
        out.forces.resize(n, [0.0; 3]);
        for ranked in &mut self.ranked {
            ranked.clear();
            ranked.resize(n, [0.0; 3]);
        }
        let none = Sums::on(frame.grid.energy_origin());
        self.sums.clear();
        self.sums.resize(self.terms.len(), none);
        let mut sink = Sink { forces: &mut out.forces, ranked: &mut self.ranked, sums: none };
        clock.lap(&mut self.timings.rest);
        for (k, term) in self.terms.iter_mut().enumerate() {
            if self.together.iter().all(|(_, pair)| !pair.contains(&k)) {
                term.fused(&frame, &mut sink);
                std::mem::swap(&mut sink.sums, &mut self.sums[k]);
                clock.lap(&mut self.timings.terms[k]);
            }
        }
        for &(joint, [a, b]) in &self.together {
            if let Ok([first, second]) = self.terms.get_disjoint_mut([a, b]) {
                joint.fused(&mut **first, &mut **second, &frame, &mut sink, &mut self.sums[b]);
                std::mem::swap(&mut sink.sums, &mut self.sums[a]);
                // (the first stands for both)
                clock.lap(&mut self.timings.terms[a]);
            }
        }
        out.energies.clear();
        let mut virial = Sums::default();
        if frame.sums {
            out.energies.extend(self.sums.iter().map(|sums| sums.totals()[0]));
            self.sums.iter().for_each(|sums| virial.add(sums));
        }
        let [_, virial @ ..] = virial.totals();
        out.virial = virial;
        for (ranked, near) in self.ranked.iter().zip(frame.lists) {
            add_ranked(ranked, near, &mut out.forces);
        }
    }

    /// Names the term and the atoms behind a force or energy that is not finite.
    fn blame(&mut self, cell: &Cell, positions: &Positions, out: &Forces) -> ForceError {
        let bad = |f: &[f64; 3]| f.iter().any(|x| !x.is_finite());
        let frame = frame!(self, cell, positions);
        let n = frame.atoms.len();
        for term in &mut self.terms {
            let mut forces = vec![[0.0; 3]; n];
            let mut ranked = vec![vec![[0.0; 3]; n]; frame.lists.len()];
            let mut sink = Sink { forces: &mut forces, ranked: &mut ranked, sums: Sums::default() };
            term.fused(&frame, &mut sink);
            let finite = sink.sums.totals().iter().all(|x| x.is_finite());
            ranked.iter().zip(frame.lists).for_each(|(ranked, near)| add_ranked(ranked, near, &mut forces));
            let atom = forces.iter().position(bad);
            if atom.is_some() || !finite {
                return ForceError::NotFinite {
                    atom,
                    term: term.name().into(),
                    closest: term.reach().and_then(|reach| reach.closest(&frame)),
                };
            }
        }
        ForceError::NotFinite { atom: out.forces.iter().position(bad), term: "total".into(), closest: None }
    }
}

/// Finds terms that are computed together.
fn together(terms: &[Box<dyn Term>], joints: &[Joint]) -> Vec<(Joint, [usize; 2])> {
    let mut found: Vec<(Joint, [usize; 2])> = Vec::new();
    for a in 0..terms.len() {
        for b in 0..terms.len() {
            let free = a != b && found.iter().all(|(_, pair)| !pair.contains(&a) && !pair.contains(&b));
            if let Some(joint) = joints.iter().find(|joint| free && joint.fits(&*terms[a], &*terms[b])) {
                found.push((*joint, [a, b]));
            }
        }
    }
    found
}

/// Adds forces in the order of a list's ranks to those in the order of the atoms.
fn add_ranked(ranked: &[[f64; 3]], near: &Neighborhood, forces: &mut [[f64; 3]]) {
    forces.par_iter_mut().enumerate().with_min_len(2048).for_each(|(i, force)| {
        for (f, r) in force.iter_mut().zip(ranked[near.list.rank(i)]) {
            *f += r;
        }
    });
}

impl ForceSource for Evaluator {
    fn evaluate(&mut self, cell: &Cell, positions: &Positions, out: &mut Forces) -> Result<(), ForceError> {
        self.compute(cell, positions, true, out)
    }
    fn forces_only(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        self.compute(cell, positions, false, out)
    }
    fn force_step(&self) -> f64 {
        match self.method.kind {
            Kind::Tape => 0.0,
            Kind::Fused => self.method.grid.force_step(),
        }
    }
    fn list_builds(&self) -> u64 {
        self.lists.iter().map(|near| near.list.builds()).sum()
    }
}
