//! The evaluators.

use super::order::Direction;
use super::pair::Joint;
use super::term::{Beside, ListNeed, Sink, Sums, Term, TermSlopes};
use super::timings::{Clock, Timings};
use super::view::{Frame, Grid, Neighborhood, Precision, View};
use super::{ForceError, ForceSource, Forces};
use crate::autodiff::lanes::Isa;
use crate::autodiff::{Adjoints, Differentiable, Dual, Tape, Var};
use crate::neighbors::{Exclusions, VerletList};
use crate::system::{Atoms, Cell, Positions};
use potentials::{Scalar, Vec3};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Duration;

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

/// How many times larger than a [held](Evaluator::hold_stiffness) stiffness tangents may be: their grid has room for more.
const HELD_FOR: f64 = 32.0;

/// The range in nm of a list that nobody needs: of a term between whose types there is no interaction.
const SHORTEST: f64 = 1e-3;

/// How the energy depends on a number in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSlope {
    /// The number: the term and its label, or the label of a charge.
    pub name: String,
    /// The number itself.
    pub at: f64,
    /// ∂E/∂θ.
    pub slope: f64,
    /// The derivative of that along a direction: −∂F/∂θ·v, and −∂W/∂θ:ε̇.
    pub along: f64,
    /// Whether there is any interaction that the number is part of. (If not, both derivatives are zero.)
    pub matters: bool,
}

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
        frame!($self, $cell, $positions, true, $self.method.grid, None)
    };
    ($self:ident, $cell:ident, $positions:ident, $sums:expr, $grid:expr, $direction:expr) => {
        Frame {
            atoms: &$self.atoms,
            cell: $cell,
            positions: $positions,
            lists: &$self.lists,
            charges: &$self.atom_charges,
            coulomb: $self.coulomb,
            grid: $grid,
            isa: $self.method.isa,
            precision: $self.method.precision,
            sums: $sums,
            direction: $direction,
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
    /// The same of forces that are wanted beside their tangents.
    beside: Vec<Vec<[f64; 3]>>,
    /// The direction that tangents are computed along, made small.
    unit: Vec<[f64; 3]>,
    /// Energy and virial of each term.
    sums: Vec<Sums>,
    coulomb: f64,
    tape: Tape,
    adjoints: Adjoints,
    timings: Timings,
    /// Of which configuration it was found, and what.
    stiffness: Option<(Cell, Positions, f64)>,
    /// What stands for it.
    held: Option<f64>,
}

impl Evaluator {
    /// An evaluator for a system.
    ///
    /// # Errors
    /// A cut-off or skin of which no neighbour list can be made.
    pub fn new(setup: Setup) -> Result<Self, ForceError> {
        let Setup { atoms, charges, joined, mut terms, coulomb, skin, method, joints } = setup;
        let (needs, lists) = needs(&terms);
        for (term, list) in terms.iter_mut().zip(lists) {
            list.into_iter().for_each(|k| term.set_list(k));
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
            beside: ranked.clone(),
            unit: Vec::new(),
            ranked,
            sums: Vec::new(),
            coulomb,
            tape,
            adjoints,
            timings,
            stiffness: None,
            held: None,
        })
    }

    /// The terms.
    pub fn terms(&self) -> &[Box<dyn Term>] {
        &self.terms
    }

    /// The terms, to change their parameters. (A cut-off cannot be raised beyond the neighbour list.)
    pub fn terms_mut(&mut self) -> &mut [Box<dyn Term>] {
        self.stiffness = None;
        &mut self.terms
    }

    /// Sets the charges as the user gave them.
    pub fn set_charges(&mut self, values: &[f64]) {
        self.stiffness = None;
        self.charges.values.copy_from_slice(values);
        self.atom_charges = self.charges.of_atom.iter().map(|&k| values[k as usize]).collect();
    }

    /// All the user's numbers: those of [`parameter_names`](Self::parameter_names).
    pub fn numbers(&self) -> Vec<f64> {
        self.parameter_names().into_iter().map(|(_, x)| x).collect()
    }

    /// Sets all the user's numbers, in the order of [`parameter_names`](Self::parameter_names). Neighbour lists follow where
    /// an interaction reaches farther now.
    ///
    /// # Errors
    /// A range of which no neighbour list can be made.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn set_parameters(&mut self, values: &[f64]) -> Result<(), ForceError> {
        let mut rest = values;
        for term in self.terms_mut() {
            let (own, others) = rest.split_at(term.parameters().values().len());
            if term.parameters().values() != own {
                term.set_parameters(own);
            }
            rest = others;
        }
        self.set_charges(rest);
        for (need, near) in needs(&self.terms).0.iter().zip(&mut self.lists) {
            if need.range > near.list.cutoff() {
                let list = VerletList::new(need.range, near.list.skin())?;
                near.list = if need.mirrors { list.with_mirrors() } else { list };
            }
        }
        Ok(())
    }

    /// The charge of each atom, in e.
    pub fn charges_of_atoms(&self) -> &[f64] {
        &self.atom_charges
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
        let moved = moves.map(|moves| move |i: usize| moves[i]);
        let moves = moved.as_ref().map(|moved| moved as &dyn Fn(usize) -> Vec3<f64>);
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

    /// The Hessian–vector product H v of the energy in the positions: minus the tangent of the forces.
    ///
    /// # Errors
    /// Where there is no neighbour list, or a result is not a finite number.
    pub fn hessian_product(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        v: &[[f64; 3]],
    ) -> Result<Vec<[f64; 3]>, ForceError> {
        let mut out = Forces::default();
        self.tangents(cell, positions, &Direction { moves: v, strain: [[0.0; 3]; 3] }, false, &mut out)?;
        out.forces.iter_mut().flatten().for_each(|f| *f = -*f);
        Ok(out.forces)
    }

    /// How energies, forces and virial change while atoms move, and space is strained, along a direction: the derivative of
    /// [`evaluate`](ForceSource::evaluate) by the time. Forces are those along fixed axes. With `sums` off there are no
    /// energies, and the virial is zero.
    ///
    /// Where a cut-off leaves the force without a kink but not the Hessian, this jumps as atoms cross it
    /// ([`smoothness`](potentials::cutoff::Ending::smoothness)).
    ///
    /// # Errors
    /// Where there is no neighbour list, or a result is not a finite number.
    pub fn tangents(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: &Direction,
        sums: bool,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        self.prepare(cell, positions)?;
        self.along(cell, positions, (direction, sums), None, out)
    }

    /// The [forces](ForceSource::forces_only), and their [tangents](Self::tangents) along a direction, in less time than one after
    /// the other. Where sums are on a grid, both are the same to the bit.
    ///
    /// # Errors
    /// As there.
    pub fn forces_and_tangents(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: &Direction,
        forces: &mut Forces,
        tangents: &mut Forces,
    ) -> Result<(), ForceError> {
        if self.method.kind == Kind::Tape {
            self.forces_only(cell, positions, forces)?;
            return self.tangents(cell, positions, direction, false, tangents);
        }
        self.prepare(cell, positions)?;
        if self.method.precision == Precision::Mixed {
            self.refresh_rows(cell, positions, Precision::Mixed);
        }
        self.along(cell, positions, (direction, false), Some(forces), tangents)?;
        match finite(forces) {
            true => Ok(()),
            false => Err(self.blame(cell, positions, forces)),
        }
    }

    /// Tangents, with rows up to date; and forces where they are wanted.
    fn along(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        (direction, sums): (&Direction, bool),
        mut forces: Option<&mut Forces>,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        let largest = direction.moves.as_flattened().iter().chain(direction.strain.as_flattened());
        let largest = largest.fold(0.0, |m: f64, x| m.max(x.abs()));
        match self.method.kind {
            Kind::Tape => self.tangents_on_tape(cell, positions, direction, out),
            Kind::Fused if self.method.grid == Grid::NONE || largest == 0.0 || !largest.is_finite() => {
                let asked = Asked { sums, grid: Grid::NONE, direction: Some(*direction), beside: forces };
                self.fused(cell, positions, asked, None, out);
            }
            Kind::Fused => {
                let scale = power_of_two(largest);
                let mut moves = std::mem::take(&mut self.unit);
                moves.clear();
                // (exactly: it is a power of two)
                let inverse = 1.0 / scale;
                moves.extend(direction.moves.iter().map(|v| v.map(|x| x * inverse)));
                let strain = direction.strain.map(|e| e.map(|x| x * inverse));
                let unit = Direction { moves: &moves, strain };
                // the grid is as fine as the largest of the results allows
                let mut stiffness = match self.held {
                    Some(held) => held,
                    None => self.stiffness(cell, positions)?,
                };
                loop {
                    let (grid, beside) = (Grid::for_tangents(stiffness), forces.take());
                    self.fused(
                        cell,
                        positions,
                        Asked { sums, grid, direction: Some(unit), beside },
                        None,
                        out,
                    );
                    let numbers = numbers(out).fold(0.0, |m: f64, x| m.max(x.abs()));
                    let own = self.held.is_none() || numbers <= HELD_FOR * stiffness;
                    if own || !numbers.is_finite() {
                        break;
                    }
                    stiffness = numbers.max(self.stiffness(cell, positions)?);
                }
                self.unit = moves;
                let all = out.forces.as_flattened_mut().iter_mut();
                all.chain(&mut out.energies).chain(&mut out.virial).for_each(|x| *x *= scale);
            }
        }
        if finite(out) {
            return Ok(());
        }
        let atom = out.forces.iter().position(|f| f.iter().any(|x| !x.is_finite()));
        Err(ForceError::NotFinite { atom, term: "total".into(), closest: None })
    }

    /// For each atom those with which it may have second derivatives other than zero, itself among them, ascending. (Some of
    /// these may be zero all the same: atoms in a list that are beyond a cut-off.)
    ///
    /// # Errors
    /// Where there is no neighbour list.
    pub fn coupled_atoms(&mut self, cell: &Cell, positions: &Positions) -> Result<Vec<Vec<u32>>, ForceError> {
        self.prepare(cell, positions)?;
        let frame = frame!(self, cell, positions);
        let mut coupled: Vec<Vec<u32>> = (0..frame.atoms.len() as u32).map(|i| vec![i]).collect();
        for term in &self.terms {
            term.couples(&frame, &mut |atoms| {
                for &i in atoms {
                    coupled[i as usize].extend(atoms);
                }
            });
        }
        for row in &mut coupled {
            row.sort_unstable();
            row.dedup();
        }
        Ok(coupled)
    }

    /// Lets tangents be rounded to the grid that follows from this [stiffness](Self::stiffness), until it is too small by far,
    /// so that it is not found anew in each of many configurations that are much alike. None: that of each configuration.
    pub fn hold_stiffness(&mut self, stiffness: Option<f64>) {
        self.held = stiffness;
    }

    /// The size of H v for atoms that move by 1 nm in some direction of their own: what decides on the grid of tangents,
    /// and a function of the positions alone.
    ///
    /// # Errors
    /// Where there is no neighbour list.
    pub fn stiffness(&mut self, cell: &Cell, positions: &Positions) -> Result<f64, ForceError> {
        if let Some((known, at, stiffness)) = &self.stiffness
            && known == cell
            && at == positions
        {
            return Ok(*stiffness);
        }
        self.prepare(cell, positions)?;
        // (signs without order; small, so that the sums stay on the grid of forces whatever the stiffness is)
        let small = 2f64.powi(-10);
        let sign = |i: u64| {
            let hash = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 == 0 { small } else { -small }
        };
        let moves: Vec<_> =
            (0..self.atoms.len() as u64).map(|i| [sign(3 * i), sign(3 * i + 1), sign(3 * i + 2)]).collect();
        let (direction, mut out) = (Direction { moves: &moves, strain: [[0.0; 3]; 3] }, Forces::default());
        let asked = Asked { sums: false, grid: self.method.grid, direction: Some(direction), beside: None };
        self.fused(cell, positions, asked, None, &mut out);
        let largest = out.forces.iter().flatten().fold(0.0, |m: f64, x| m.max(x.abs()));
        let stiffness = largest / small;
        self.stiffness = Some((cell.clone(), positions.clone(), stiffness));
        Ok(stiffness)
    }

    fn tangents_on_tape(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: &Direction,
        out: &mut Forces,
    ) {
        let frame = frame!(self, cell, positions);
        let tape = Tape::<Dual<f64>>::new();
        let variable = |x: f64| tape.variable(Dual::new(0.0, x));
        let moves: Vec<_> =
            direction.moves.iter().map(|v| v.map(variable)).map(|[x, y, z]| Vec3::new(x, y, z)).collect();
        let strain = direction.strain.map(|e| e.map(variable));
        let view = View { frame: &frame, moves: Some(&|i| moves[i]), strain: Some(strain) };
        let energies: Vec<_> = self.terms.iter().map(|t| t.record_nested(&view, None, None)).collect();
        let adjoints = tape.gradient(energies.iter().fold(Var::constant(0.0), |sum, &e| sum + e));
        out.energies.clear();
        out.energies.extend(energies.iter().map(|e| e.value().tangent));
        // (strain acts on moves here: so far these are forces on what is strained, and a virial of unstrained vectors)
        let (e, of_strain) = (direction.strain, strain.map(|e| e.map(|x| -adjoints.of(x))));
        out.forces.clear();
        out.forces.extend(moves.iter().map(|m| {
            let f = [m.x, m.y, m.z].map(|x| -adjoints.of(x));
            std::array::from_fn(|c| f[c].tangent - (0..3).map(|k| e[k][c] * f[k].value).sum::<f64>())
        }));
        let mut w = [[0.0; 3]; 3];
        for a in 0..3 {
            for b in 0..3 {
                w[a][b] =
                    of_strain[a][b].tangent + (0..3).map(|k| of_strain[a][k].value * e[b][k]).sum::<f64>();
            }
        }
        let w = |a: usize, b: usize| 0.5 * (w[a][b] + w[b][a]);
        out.virial = [w(0, 0), w(1, 1), w(2, 2), w(0, 1), w(0, 2), w(1, 2)];
    }

    /// ∂E/∂θ for every number the user wrote, and how it changes along a direction: those of each term by its label, then
    /// the charges.
    ///
    /// # Errors
    /// Where there is no neighbour list. Numbers that are not finite are returned as they are.
    pub fn parameter_slopes(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: Option<Direction>,
    ) -> Result<Vec<ParameterSlope>, ForceError> {
        let slopes = self.slopes(cell, positions, direction, true)?;
        let named = self.parameter_names().into_iter().zip(slopes);
        Ok(named
            .map(|((name, at), (slope, matters))| ParameterSlope {
                name,
                at,
                slope: slope.value,
                along: slope.tangent,
                matters,
            })
            .collect())
    }

    /// The names of the numbers in [`parameter_slopes`](Self::parameter_slopes), and the numbers.
    pub fn parameter_names(&self) -> Vec<(String, f64)> {
        parameter_names(&self.terms, &self.charges)
    }

    /// The derivatives in [`parameter_slopes`](Self::parameter_slopes) by themselves, with their changes along the
    /// direction, and whether there is any interaction that the number is part of. With `values` off only the changes are asked
    /// for, which saves work; derivatives may then be missing.
    ///
    /// # Errors
    /// Where there is no neighbour list. Numbers that are not finite are returned as they are.
    pub fn slopes(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: Option<Direction>,
        values: bool,
    ) -> Result<Vec<(Dual<f64>, bool)>, ForceError> {
        self.prepare(cell, positions)?;
        let at_rest = vec![[0.0; 3]; self.atoms.len()];
        let direction = direction.unwrap_or(Direction { moves: &at_rest, strain: [[0.0; 3]; 3] });
        Ok(match self.method.kind {
            Kind::Tape => self.slopes_on_tape(cell, positions, &direction),
            Kind::Fused => self.fused_slopes(cell, positions, &direction, values),
        })
    }

    /// How energies (one a term), forces and virial change while the user's numbers, in the order of
    /// [`parameter_names`](Self::parameter_names), change at these rates: ∂E/∂θ·t, ∂F/∂θ·t and ∂W/∂θ·t, exactly. What it
    /// costs are the terms whose numbers change.
    ///
    /// # Errors
    /// Where there is no neighbour list, or a result is not a finite number.
    ///
    /// # Panics
    /// If there are not as many rates as numbers.
    pub fn parameter_tangents(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        rates: &[f64],
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        self.prepare(cell, positions)?;
        let frame = frame!(self, cell, positions);
        clear(&mut out.forces, &mut [], frame.atoms.len());
        out.energies.clear();
        out.virial = [0.0; 6];
        let of_terms: usize = self.terms.iter().map(|t| t.parameters().values().len()).sum();
        let (mut rest, charges) = rates.split_at(of_terms);
        let of_atoms: Vec<f64> = self.charges.of_atom.iter().map(|&k| charges[k as usize]).collect();
        let charged = charges.iter().any(|&x| x != 0.0);
        for term in &self.terms {
            let (own, others) = rest.split_at(term.parameters().values().len());
            rest = others;
            if own.iter().any(|&x| x != 0.0) || (charged && term.takes_charges()) {
                term.responses(&frame, own, &of_atoms, out);
            } else {
                out.energies.push(0.0);
            }
        }
        let all = out.forces.as_flattened().iter().chain(&out.energies).chain(&out.virial);
        if all.into_iter().all(|x| x.is_finite()) {
            return Ok(());
        }
        Err(ForceError::NotFinite { atom: None, term: "total".into(), closest: None })
    }

    fn fused_slopes(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: &Direction,
        values: bool,
    ) -> Vec<(Dual<f64>, bool)> {
        self.lists.iter_mut().for_each(|near| near.follow(direction));
        let frame = frame!(self, cell, positions, values, self.method.grid, Some(*direction));
        let none = (Dual::constant(0.0), false);
        let mut charges = vec![none; self.charges.values.len()];
        let mut all = Vec::new();
        for term in &mut self.terms {
            let TermSlopes { parameters, charges: of_atoms } = term.slopes(&frame);
            all.extend(parameters);
            for (&k, (slope, matters)) in self.charges.of_atom.iter().zip(of_atoms) {
                let charge = &mut charges[k as usize];
                *charge = (charge.0 + slope, charge.1 | matters);
            }
        }
        all.extend(charges);
        all
    }

    fn slopes_on_tape(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        direction: &Direction,
    ) -> Vec<(Dual<f64>, bool)> {
        let frame = frame!(self, cell, positions);
        let tape = Tape::<Dual<f64>>::new();
        let variable = |x: &f64| tape.variable(Dual::passive(*x));
        let rate = |x: f64| <Var<Dual<f64>> as Differentiable>::lifted(Dual::new(0.0, x));
        let charges: Vec<_> = self.charges.values.iter().map(variable).collect();
        let of_atoms: Vec<_> = self.charges.of_atom.iter().map(|&k| charges[k as usize]).collect();
        let moves: Vec<_> =
            direction.moves.iter().map(|v| v.map(rate)).map(|[x, y, z]| Vec3::new(x, y, z)).collect();
        let view = View {
            frame: &frame,
            moves: Some(&|i| moves[i]),
            strain: Some(direction.strain.map(|e| e.map(rate))),
        };
        let (mut total, mut numbers) = (Var::constant(0.0), Vec::new());
        for term in &self.terms {
            let theta: Vec<_> = term.parameters().values().iter().map(variable).collect();
            total = total + term.record_nested(&view, Some(&theta), Some(&of_atoms));
            numbers.extend(theta);
        }
        numbers.extend(charges);
        let (adjoints, known) = (tape.gradient(total), tape.dependencies(total));
        numbers.into_iter().map(|x| (adjoints.of(x), known[x.node() as usize])).collect()
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
            Kind::Fused => {
                let asked = Asked { sums, grid: self.method.grid, direction: None, beside: None };
                self.fused(cell, positions, asked, Some(&mut clock), out);
            }
        }
        let finite = finite(out);
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
        let view = View { frame: &frame, moves: Some(&|i| moves[i]), strain: Some(strain) };
        clock.lap(&mut self.timings.rest);
        let mut energies = Vec::with_capacity(self.terms.len());
        for (term, spent) in self.terms.iter().zip(&mut self.timings.terms) {
            energies.push(term.record(&view));
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

    /// Energies, forces and virial, or how they change along a direction.
    fn fused(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        asked: Asked,
        mut clock: Option<&mut Clock>,
        out: &mut Forces,
    ) {
        let Asked { sums, grid, direction, mut beside } = asked;
        if let Some(direction) = &direction {
            self.lists.iter_mut().for_each(|near| near.follow(direction));
        }
        let frame = frame!(self, cell, positions, sums, grid, direction);
        clear(&mut out.forces, &mut self.ranked, frame.atoms.len());
        let none = Sums::on(grid.energy_origin());
        self.sums.clear();
        self.sums.resize(self.terms.len(), none);
        if let Some(beside) = &mut beside {
            clear(&mut beside.forces, &mut self.beside, frame.atoms.len());
            beside.energies.clear();
            beside.virial = [0.0; 6];
        }
        let (grid, ranked) = (self.method.grid, &mut self.beside);
        let wanted = beside.as_mut().map(|out| Beside { grid, forces: &mut out.forces, ranked });
        let mut sink = Sink { forces: &mut out.forces, ranked: &mut self.ranked, sums: none, beside: wanted };
        let mut lap = |spent: &mut Duration| {
            if let Some(clock) = &mut clock {
                clock.lap(spent);
            }
        };
        lap(&mut self.timings.rest);
        for (k, term) in self.terms.iter_mut().enumerate() {
            if self.together.iter().all(|(_, pair)| !pair.contains(&k)) {
                match direction {
                    None => term.fused(&frame, &mut sink),
                    Some(_) => term.tangents(&frame, &mut sink),
                }
                std::mem::swap(&mut sink.sums, &mut self.sums[k]);
                lap(&mut self.timings.terms[k]);
            }
        }
        for &(joint, [a, b]) in &self.together {
            if let Ok([first, second]) = self.terms.get_disjoint_mut([a, b]) {
                joint.fused(&mut **first, &mut **second, &frame, &mut sink, &mut self.sums[b]);
                std::mem::swap(&mut sink.sums, &mut self.sums[a]);
                // (the first stands for both)
                lap(&mut self.timings.terms[a]);
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
        if let Some(out) = beside {
            for (ranked, near) in self.beside.iter().zip(frame.lists) {
                add_ranked(ranked, near, &mut out.forces);
            }
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
            let sums = Sums::default();
            let mut sink = Sink { forces: &mut forces, ranked: &mut ranked, sums, beside: None };
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

/// The names of the user's numbers, and the numbers: those of each term by its label, then the charges.
pub fn parameter_names(terms: &[Box<dyn Term>], charges: &Charges) -> Vec<(String, f64)> {
    let mut named = Vec::new();
    for term in terms {
        let table = term.parameters();
        let numbers = table.labels().iter().zip(table.values());
        named.extend(numbers.map(|(label, &at)| (format!("{}.{label}", term.name()), at)));
    }
    named.extend(charges.labels.iter().cloned().zip(charges.values.iter().copied()));
    named
}

/// What kernels are asked for.
struct Asked<'a> {
    /// Energies and virial, too.
    sums: bool,
    /// What sums are rounded to.
    grid: Grid,
    /// How all of it changes along a direction, instead.
    direction: Option<Direction<'a>>,
    /// The forces beside that, on their own grid.
    beside: Option<&'a mut Forces>,
}

/// All numbers in it.
fn numbers(out: &Forces) -> impl Iterator<Item = &f64> {
    out.forces.as_flattened().iter().chain(&out.energies).chain(&out.virial)
}

/// Whether all of them are finite.
fn finite(out: &Forces) -> bool {
    numbers(out).all(|x| x.is_finite())
}

/// Which lists are needed, and which of them each term reads: terms that leave out the same pairs share one.
fn needs(terms: &[Box<dyn Term>]) -> (Vec<ListNeed>, Vec<Option<usize>>) {
    let mut needs: Vec<ListNeed> = Vec::new();
    let mut list = |term: &dyn Term| {
        let need = term.list_need()?;
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
        Some(k)
    };
    let lists = terms.iter().map(|term| list(&**term)).collect();
    (needs, lists)
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

/// Makes room for forces, none so far.
fn clear(forces: &mut Vec<[f64; 3]>, ranked: &mut [Vec<[f64; 3]>], n: usize) {
    for forces in ranked.iter_mut().chain([forces]) {
        forces.clear();
        forces.resize(n, [0.0; 3]);
    }
}

/// The largest power of two that is not larger.
fn power_of_two(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & (0x7ff << 52)).max(f64::MIN_POSITIVE)
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
