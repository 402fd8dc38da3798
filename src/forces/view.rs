//! Where the atoms are, as plain numbers and as numbers with derivatives.

use super::order::{Direction, Order, Quantity};
#[cfg(test)]
use crate::autodiff::lanes::F32x1;
use crate::autodiff::lanes::{Isa, Kernel};
use crate::neighbors::{Exclusions, NeighborError, VerletList};
use crate::system::{Atoms, Cell, Positions};
use potentials::{Scalar, Vec3};
use rayon::prelude::*;
use std::sync::OnceLock;

/// A neighbour list with what its kernels read.
#[derive(Debug)]
pub struct Neighborhood {
    /// The list.
    pub list: VerletList,
    /// The types of the atoms that its entries refer to; empty where all atoms are of one type.
    pub kinds: Vec<u16>,
    /// The pairs left out of it.
    pub exclusions: Option<Exclusions>,
    /// Whether there are terms that read it in single precision where that will do.
    pub single: bool,
    /// Whether there are terms that never do.
    pub double: bool,
    /// How the atom in each slot moves (three numbers, and one to fill the row), where somebody has asked.
    pub rates: Vec<[f64; 4]>,
    /// The rows of all atoms in an order of their own, once somebody has asked.
    ordered: OnceLock<Vec<Vec<u32>>>,
}

impl Neighborhood {
    /// Of a list, without the pairs that are left out of it, for terms that read it in single precision, never do so, or
    /// both.
    pub fn new(list: VerletList, exclusions: Option<Exclusions>, single: bool, double: bool) -> Self {
        let (kinds, rates, ordered) = (Vec::new(), Vec::new(), OnceLock::new());
        Self { list, kinds, exclusions, single, double, rates, ordered }
    }
    /// The neighbours of atom i, as slots, by atom and image: an order that does not change from list to list. (For
    /// what is not in a hurry: all rows are put in order when the first is asked for.)
    pub fn row(&self, i: usize) -> &[u32] {
        let ordered = |i: usize| {
            let mut row = self.list.row(self.list.rank(i)).to_vec();
            row.sort_unstable_by_key(|&slot| self.list.key(slot));
            row
        };
        &self.ordered.get_or_init(|| (0..self.list.len()).into_par_iter().map(ordered).collect())[i]
    }
    /// The vector from atom i to a neighbour of its, in nm.
    #[inline(always)]
    pub fn vector(&self, cell: &Cell, i: usize, slot: u32) -> [f64; 3] {
        let rows = self.list.rows::<f64>();
        let (a, b) = (&rows[self.list.slots()[self.list.rank(i)] as usize / 4], &rows[slot as usize / 4]);
        cell.cartesian([b[0] - a[0], b[1] - a[1], b[2] - a[2]])
    }
    /// Brings the list up to date.
    ///
    /// # Errors
    /// Where there can be no such list.
    pub fn update(&mut self, positions: &Positions, cell: &Cell, atoms: &Atoms) -> Result<(), NeighborError> {
        let Self { list, kinds, exclusions, ordered, .. } = self;
        if list.update(positions, cell, exclusions.as_ref())? {
            ordered.take();
            kinds.clear();
            if atoms.types.iter().any(|&kind| kind != 0) {
                let kind = |&slot: &u32| atoms.types[list.owner(slot)] as u16;
                list.entries().par_iter().map(kind).collect_into_vec(kinds);
            }
        }
        Ok(())
    }
    /// Brings the rows that are read in that precision up to date.
    pub fn refresh(&mut self, positions: &Positions, cell: &Cell, charges: &[f64], precision: Precision) {
        let mixed = precision == Precision::Mixed;
        if mixed && self.single {
            self.list.refresh_single(positions, cell, |atom| charges[atom]);
        }
        if !mixed || self.double {
            self.list.refresh(positions, cell, |atom| charges[atom]);
        }
    }
    /// Notes how the atom in each slot moves.
    pub fn follow(&mut self, direction: &Direction) {
        let rate = |&atom: &u32| {
            let [x, y, z] = direction.moves[atom as usize];
            [x, y, z, 0.0]
        };
        self.list.owners().par_iter().with_min_len(4096).map(rate).collect_into_vec(&mut self.rates);
    }
    /// Whether the entry stands for its pair where each pair is to be counted once: the one with j > i, and of an
    /// atom and its own images the lexicographically positive one.
    #[inline(always)]
    pub fn counts(&self, i: usize, slot: u32) -> bool {
        let j = self.list.owner(slot);
        j > i || (j == i && self.list.image(slot) > [0; 3])
    }
}

/// How precise the arithmetic of pairs is. Everything else is always in double precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// `f64`.
    #[default]
    Double,
    /// Distances, energies and forces of pairs in `f32`, their sums in `f64` or as integers.
    Mixed,
}

/// The grids that forces and energies are rounded to, so that sums do not depend on their order: each is given by a
/// number of 1.5 · 2⁵² of its steps, to which what is added is rounded. Zero for none.
///
/// Beyond 2⁵¹ steps, sums are as good as without a grid, but may depend on the order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grid {
    force: f64,
    energy: f64,
    single: f64,
}

impl Grid {
    /// No grid: sums as exact as they can be.
    pub const NONE: Grid = Grid { force: 0.0, energy: 0.0, single: 0.0 };
    /// For kJ/mol and nm: forces in steps of 2⁻²⁶ kJ/mol/nm, those of pairs in single precision in steps of 2⁻¹⁵
    /// kJ/mol/nm, energies in steps of 2⁻³⁶ kJ/mol.
    pub const METRIC: Grid = Grid::of(-26, -36, 15);
    /// For reduced units: forces in steps of 2⁻³⁰ ε/σ, those of pairs in single precision in steps of 2⁻¹⁷ ε/σ, energies
    /// in steps of 2⁻⁴⁴ ε.
    pub const REDUCED: Grid = Grid::of(-30, -44, 17);

    const fn of(force: i32, energy: i32, single: u32) -> Grid {
        Grid { force: Self::magic(force), energy: Self::magic(energy), single: (1u64 << single) as f64 }
    }
    /// 1.5 · 2⁵² steps of 2^exponent.
    pub(super) const fn magic(exponent: i32) -> f64 {
        f64::from_bits(((1023 + 52 + exponent) as u64) << 52 | 1 << 51)
    }
    /// For tangents of which the largest is about `size`, or some dozens of times that: steps of 2⁻⁴⁴ of it.
    pub(super) fn for_tangents(size: f64) -> Grid {
        let exponent = if size > 0.0 { size.log2().ceil().clamp(-200.0, 900.0) as i32 } else { 0 };
        let origin = Self::magic(exponent - 44);
        Grid { force: origin, energy: origin, single: 0.0 }
    }
    /// What sums of forces start from.
    #[inline(always)]
    pub fn force_origin(&self) -> f64 {
        self.force
    }
    /// What sums of energies and virials start from.
    #[inline(always)]
    pub fn energy_origin(&self) -> f64 {
        self.energy
    }
    /// The steps of forces; 0 without a grid. (Those of pairs in single precision are multiples of them.)
    pub fn force_step(&self) -> f64 {
        self.force / Self::magic(0)
    }
    /// How many steps a unit of force has where pairs are in single precision; 0 without a grid.
    #[inline(always)]
    pub fn single_steps(&self) -> f64 {
        self.single
    }
    /// A force, rounded.
    #[inline(always)]
    pub fn force(&self, f: [f64; 3]) -> [f64; 3] {
        f.map(|f| (f + self.force) - self.force)
    }
}

/// A configuration, ready for evaluation.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The atoms.
    pub atoms: &'a Atoms,
    /// The cell.
    pub cell: &'a Cell,
    /// The positions.
    pub positions: &'a Positions,
    /// Who is near whom.
    pub lists: &'a [Neighborhood],
    /// Charges in e, one an atom.
    pub charges: &'a [f64],
    /// Coulomb's constant.
    pub coulomb: f64,
    /// What sums are rounded to.
    pub grid: Grid,
    /// What kernels run on.
    pub isa: Isa,
    /// How precise the arithmetic of pairs is.
    pub precision: Precision,
    /// Whether energies and virial are wanted beside the forces.
    pub sums: bool,
    /// Where atoms are going, where that is what is asked for.
    pub direction: Option<Direction<'a>>,
}

/// Runs a kernel on a set of instructions. In unit tests it runs on one number at a time: the tests from outside run
/// every kernel on all instructions, and compiling them all twice would take minutes.
macro_rules! on {
    ($kernel:ident, $One:ty, $run:expr) => {{
        #[cfg(not(test))]
        return $run;
        #[cfg(test)]
        return $kernel.run::<$One>();
    }};
}

impl Frame<'_> {
    /// Runs a kernel in double precision.
    #[inline]
    pub fn double<O: Order, K: Kernel<f64>>(&self, kernel: K) -> K::Output {
        // (what a constant rules out is not compiled)
        on!(kernel, f64, if O::TANGENTS { self.isa.double_rarely(kernel) } else { self.isa.double(kernel) })
    }
    /// Runs a kernel in single precision.
    #[inline]
    pub fn single<K: Kernel<f32>>(&self, kernel: K) -> K::Output {
        on!(kernel, F32x1, self.isa.single(kernel))
    }
    /// The type of the atom of rank k in a list.
    #[inline(always)]
    pub fn kind(&self, near: &Neighborhood, k: usize) -> usize {
        match near.kinds.is_empty() {
            true => 0,
            false => self.atoms.types[near.list.owner(near.list.slots()[k])] as usize,
        }
    }
    /// A vector from atom i to an image of atom j, which changes as they move.
    #[inline]
    pub fn between<Y: Quantity<f64>>(&self, i: usize, j: usize, d: [f64; 3]) -> [Y; 3] {
        let mut rate = [0.0; 3];
        if let Some(direction) = &self.direction {
            let (from, to) = (direction.moves[i], direction.moves[j]);
            rate = direction.stretch(d);
            for c in 0..3 {
                rate[c] += to[c] - from[c];
            }
        }
        [Y::new(d[0], rate[0]), Y::new(d[1], rate[1]), Y::new(d[2], rate[2])]
    }
    /// A place of atom i, which changes as it moves.
    #[inline]
    pub fn moving<Y: Quantity<f64>>(&self, i: usize, x: [f64; 3]) -> [Y; 3] {
        let mut rate = [0.0; 3];
        if let Some(direction) = &self.direction {
            rate = direction.stretch(x);
            for c in 0..3 {
                rate[c] += direction.moves[i][c];
            }
        }
        [Y::new(x[0], rate[0]), Y::new(x[1], rate[1]), Y::new(x[2], rate[2])]
    }
    /// The vector from atom i to the nearest image of atom j.
    #[inline]
    pub fn nearest(&self, i: usize, j: usize) -> [f64; 3] {
        self.cell.cartesian(self.cell.nearest(self.positions.displacement(i, j)))
    }
    /// The place of atom i, followed through periodic images.
    #[inline]
    pub fn place(&self, i: usize) -> [f64; 3] {
        self.positions.cartesian(self.cell, i)
    }
    /// The vector to atom i from a point given in fractions of the cell: its nearest image.
    #[inline]
    pub fn from_point(&self, point: [f64; 3], i: usize) -> [f64; 3] {
        let (s, periodic) = (self.positions.fraction(i), self.cell.periodic());
        let d = std::array::from_fn(|k| {
            let d = s[k] - point[k];
            if periodic[k] { d - d.round_ties_even() } else { d }
        });
        self.cell.cartesian(self.cell.nearest(d))
    }
}

/// A configuration whose atoms are moved by small displacements and whose space is strained, both in numbers `S`
/// that may carry derivatives: a vector d between atoms i and j becomes (1 + ε)(d + δⱼ − δᵢ).
///
/// The values are exactly those that the fast path computes, since the displacements are added to the same
/// plain vectors.
pub struct View<'a, S> {
    /// The configuration.
    pub frame: &'a Frame<'a>,
    /// δ of each atom; `None` for none.
    pub moves: Option<&'a dyn Fn(usize) -> Vec3<S>>,
    /// ε; `None` for none.
    pub strain: Option<[[S; 3]; 3]>,
}

impl<S: Scalar> View<'_, S> {
    #[inline]
    fn strained(&self, d: Vec3<S>) -> Vec3<S> {
        match &self.strain {
            None => d,
            Some(e) => {
                let row = |k: usize| e[k][0] * d.x + e[k][1] * d.y + e[k][2] * d.z;
                Vec3::new(d.x + row(0), d.y + row(1), d.z + row(2))
            }
        }
    }
    #[inline]
    fn between(&self, i: usize, j: usize, [x, y, z]: [f64; 3]) -> Vec3<S> {
        match self.moves {
            Some(m) if i != j => {
                let d = m(j) - m(i);
                self.strained(Vec3::new(d.x + x, d.y + y, d.z + z))
            }
            _ => self.strained(Vec3::constant([x, y, z])),
        }
    }
    #[inline]
    fn moved(&self, i: usize, [x, y, z]: [f64; 3]) -> Vec3<S> {
        match self.moves {
            Some(m) => {
                let d = m(i);
                self.strained(Vec3::new(d.x + x, d.y + y, d.z + z))
            }
            None => self.strained(Vec3::constant([x, y, z])),
        }
    }
    /// The vector from atom i to a neighbour in the list.
    #[inline]
    pub fn to_neighbor(&self, i: usize, slot: u32, near: &Neighborhood) -> Vec3<S> {
        self.between(i, near.list.owner(slot), near.vector(self.frame.cell, i, slot))
    }
    /// The vector from atom i to the nearest image of atom j.
    #[inline]
    pub fn nearest(&self, i: usize, j: usize) -> Vec3<S> {
        self.between(i, j, self.frame.nearest(i, j))
    }
    /// The positions of bonded atoms relative to the first, each nearest to the one before.
    #[inline]
    pub fn chain<const N: usize>(&self, atoms: &[u32; N]) -> [Vec3<S>; N] {
        let plain = self.frame.chain(atoms);
        std::array::from_fn(|k| self.between(atoms[0] as usize, atoms[k] as usize, plain[k]))
    }
    /// The place of atom i, followed through periodic images.
    #[inline]
    pub fn place(&self, i: usize) -> Vec3<S> {
        self.moved(i, self.frame.place(i))
    }
    /// The vector to atom i from a point given in fractions of the cell (which moves with the cell).
    #[inline]
    pub fn from_point(&self, point: [f64; 3], i: usize) -> Vec3<S> {
        self.moved(i, self.frame.from_point(point, i))
    }
}

impl Frame<'_> {
    /// The positions of bonded atoms relative to the first, each nearest to the one before.
    #[inline]
    pub fn chain<const N: usize>(&self, atoms: &[u32; N]) -> [[f64; 3]; N] {
        let mut r = [[0.0; 3]; N];
        for k in 1..N {
            let d = self.nearest(atoms[k - 1] as usize, atoms[k] as usize);
            r[k] = std::array::from_fn(|a| r[k - 1][a] + d[a]);
        }
        r
    }
}
