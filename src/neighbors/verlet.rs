//! Verlet's list: everything within the cut-off and a skin, in an order of its own.

// The search reads places without checks.
#![allow(unsafe_code)]

use super::{bins::Bins, exclusions::Exclusions};
use crate::autodiff::lanes::{Isa, Kernel, Lanes};
use crate::system::{
    cell::Cell,
    positions::{Positions, Snapshot},
};
use rayon::prelude::*;
use std::ops::Range;

/// The most neighbours an atom may be expected to have.
const MOST_NEIGHBORS: f64 = 100_000.0;
/// The most image vectors a list may need.
const MOST_IMAGES: f64 = 1_048_576.0;
/// The most atoms and images of atoms together.
const MOST_SLOTS: f64 = 1e8;
/// Atoms that one task treats, and tasks that run before their rows are put together. Both are fixed, so
/// that nothing depends on the number of threads.
const CHUNK: usize = 64;
const WAVE: usize = 256;
/// Rows start at multiples of this, and are filled up to one: the most lanes that there are.
const LANES: usize = 16;

/// Why there is no neighbour list.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NeighborError {
    /// The cut-off is no positive number.
    #[error("the cut-off must be a positive number of nm, not {cutoff}")]
    Cutoff {
        /// As asked for, nm.
        cutoff: f64,
    },
    /// The skin is negative or no number.
    #[error("the skin of the neighbour list must be zero or a positive number of nm, not {skin}")]
    Skin {
        /// As asked for, nm.
        skin: f64,
    },
    /// Far too many neighbours.
    #[error(
        "within {radius} nm (cut-off and skin) an atom has about {neighbors:.0} neighbours; \
         100000 is the limit: is the cut-off too long or the cell too small?"
    )]
    TooManyNeighbors {
        /// Estimated or counted neighbours of an atom.
        neighbors: f64,
        /// Cut-off and skin, nm.
        radius: f64,
    },
    /// The cell is tiny relative to the cut-off.
    #[error(
        "within {radius} nm (cut-off and skin) there are about {images:.0} periodic images of the cell, \
         whose heights are {} nm; 1048576 is the limit",
        finite(.heights)
    )]
    TooManyImages {
        /// Number of image vectors.
        images: f64,
        /// Cut-off and skin, nm.
        radius: f64,
        /// Perpendicular heights of the cell, nm; infinite on free axes.
        heights: [f64; 3],
    },
    /// More entries, or atoms, than 32 bits can count.
    #[error("{count} {what} are more than a neighbour list can count (2³² − 1)")]
    TooLong {
        /// How many.
        count: usize,
        /// Of what.
        what: &'static str,
    },
    /// The positions were made for a cell with other periodic axes.
    #[error("the positions and the cell differ in which axes are periodic")]
    Periodicity,
}

fn finite(h: &[f64; 3]) -> String {
    let shown: Vec<String> = h.iter().filter(|h| h.is_finite()).map(|h| format!("{h:.4}")).collect();
    shown.join(", ")
}

/// A skin (nm) for a cut-off (nm), from a model and not from timings, so that it is the same everywhere.
///
/// `step` is how far the fastest kind of atom moves in a step, √(kT/m)·Δt in nm. Forces cost as many units
/// as the sphere of radius rc + s holds atoms, and building the list eight times that. The list lasts until
/// the fastest atom has moved s/2, which at four times the typical speed is s/(8 `step`) steps. So the cost
/// of a step is ∝ (1 + s/rc)³·(1 + a/s) with a = 64 `step`, which is least at
///
/// s = (√(a² + 3 a rc) − a) / 3,
///
/// which stays below rc/2, and at least 0.02 rc. Without a sensible `step` the skin is 0.12 rc.
///
/// ```
/// // Water at 300 K and 1 fs: hydrogen moves about 1.6e-3 nm a step.
/// let skin = md::neighbors::default_skin(1.0, 1.6e-3);
/// assert!((skin - 0.154).abs() < 1e-3);
/// ```
pub fn default_skin(cutoff: f64, step: f64) -> f64 {
    if !step.is_finite() || step <= 0.0 {
        return 0.12 * cutoff;
    }
    let a = 64.0 * step;
    // The same without cancellation, for a much larger than rc.
    let s = a * cutoff / ((a * a + 3.0 * a * cutoff).sqrt() + a);
    s.max(0.02 * cutoff)
}

/// All ordered pairs (i, j, n) with |d| < cut-off + skin at the time the list was built, where
///
/// d = basis · (uⱼ₊ₙ − uᵢ)
///
/// and u are the rows that [`VerletList::refresh`] brings up to date, now as then: fractions of the basis, one row
/// for every *slot*. A slot is an atom, or an image of one that is in reach of the cell; slots are sorted by place,
/// so that neighbours stand close to each other in memory, and an image is a neighbour like any other. An atom's own
/// images are among its neighbours when the cell is that small.
///
/// Atoms have a *rank* in the order of their slots. Row number k of the list holds the neighbours of the atom of
/// rank k, as slots, in no order that means anything: it changes from build to build (but see
/// [`VerletList::with_mirrors`]). The difference of two rows does
/// not: it is exact, and independent of the skin, of the age of the list and of wrapping. With (i, j, n) the list
/// holds (j, i, −n).
///
/// ```
/// use md::{neighbors::VerletList, system::{cell::Cell, positions::Positions}};
/// let cell = Cell::new([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]], [true; 3]).unwrap();
/// let positions = Positions::from_cartesian(&cell, &[[0.1, 0.0, 0.0], [2.9, 0.0, 0.0]]).unwrap();
/// let mut list = VerletList::new(0.9, 0.1).unwrap();
/// assert!(list.update(&positions, &cell, None).unwrap());
/// let near = list.row(list.rank(0))[0];
/// assert_eq!((list.owner(near), list.image(near)), (1, [-1, 0, 0]));
/// ```
#[derive(Clone, Debug)]
pub struct VerletList {
    cutoff: f64,
    skin: f64,
    /// The cell at the last build, if the list is valid.
    cell: Option<Cell>,
    snapshot: Snapshot,
    bins: Bins,
    /// The slot of each rank, and the rank of each atom.
    slots: Vec<u32>,
    ranks: Vec<u32>,
    /// Where each rank's entries start, a multiple of `LANES`, and how many they are.
    starts: Vec<u32>,
    lengths: Vec<u32>,
    entries: Vec<u32>,
    mirrored: bool,
    mirrors: Vec<u32>,
    rows: Vec<[f64; 4]>,
    builds: u64,
    tested: u64,
    // Memory that builds use again.
    fractions: Vec<[f64; 3]>,
    chunks: Vec<Chunk>,
}

/// The rows of a few atoms while a list is built.
#[derive(Clone, Debug, Default)]
struct Chunk {
    entries: Vec<u32>,
    /// The length of each row.
    lengths: Vec<u32>,
    tested: u64,
    /// The longest row, when it is too long to go on.
    too_long: Option<usize>,
}

/// What every row needs to know.
struct Search<'a> {
    bins: &'a Bins,
    slots: &'a [u32],
    ranks: &'a [u32],
    fractions: &'a [[f64; 3]],
    positions: &'a Positions,
    cell: &'a Cell,
    radius_squared: f64,
    /// Whether rows are put into an order that does not change from build to build.
    in_order: bool,
    exclusions: Option<&'a Exclusions>,
}

impl VerletList {
    /// An empty list for a cut-off and a skin, both nm.
    ///
    /// # Errors
    /// A cut-off that is not positive and finite, a skin that is negative or not finite.
    pub fn new(cutoff: f64, skin: f64) -> Result<VerletList, NeighborError> {
        if !cutoff.is_finite() || cutoff <= 0.0 {
            return Err(NeighborError::Cutoff { cutoff });
        }
        if !skin.is_finite() || skin < 0.0 {
            return Err(NeighborError::Skin { skin });
        }
        Ok(VerletList {
            cutoff,
            skin,
            cell: None,
            snapshot: Snapshot::default(),
            bins: Bins::default(),
            slots: Vec::new(),
            ranks: Vec::new(),
            starts: vec![0],
            lengths: Vec::new(),
            entries: Vec::new(),
            mirrored: false,
            mirrors: Vec::new(),
            rows: Vec::new(),
            builds: 0,
            tested: 0,
            fractions: Vec::new(),
            chunks: Vec::new(),
        })
    }

    /// The same list that also works out [`VerletList::mirrors`] at every build. Its rows are in the order of atoms
    /// and images: within the cut-off that order is always the same.
    pub fn with_mirrors(mut self) -> VerletList {
        self.mirrored = true;
        self.cell = None;
        self
    }

    /// The cut-off, nm.
    pub fn cutoff(&self) -> f64 {
        self.cutoff
    }

    /// The skin, nm.
    pub fn skin(&self) -> f64 {
        self.skin
    }

    /// Number of atoms in the list.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no atoms in the list.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The rank of an atom.
    #[inline(always)]
    pub fn rank(&self, atom: usize) -> usize {
        self.ranks[atom] as usize
    }

    /// The slot of each rank.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The atom that a slot, or an image in it, belongs to.
    #[inline(always)]
    pub fn owner(&self, slot: u32) -> usize {
        self.bins.owners[slot as usize] as usize
    }

    /// The atoms of all slots.
    pub fn owners(&self) -> &[u32] {
        &self.bins.owners
    }

    /// Which image of its atom stands in a slot: those of the atoms themselves are [0, 0, 0].
    #[inline(always)]
    pub fn image(&self, slot: u32) -> [i32; 3] {
        self.bins.images[slot as usize]
    }

    /// Where each rank's entries start in [`VerletList::entries`]: one number an atom and the end.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The entries of all ranks, one row after the other: slots. Rows are filled up with the atom's own slot.
    pub fn entries(&self) -> &[u32] {
        &self.entries
    }

    /// The neighbours of the atom of rank k, as slots; none for a rank beyond the last atom.
    #[inline(always)]
    pub fn row(&self, k: usize) -> &[u32] {
        match (self.starts.get(k), self.lengths.get(k)) {
            (Some(&start), Some(&length)) => &self.entries[start as usize..(start + length) as usize],
            _ => &[],
        }
    }

    /// For each entry (i, j, n) the index of the entry (j, i, −n), if asked for by
    /// [`VerletList::with_mirrors`].
    pub fn mirrors(&self) -> Option<&[u32]> {
        self.mirrored.then_some(&self.mirrors)
    }

    /// The coordinates when the list was built.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The rows of the slots: fractions of the basis, and a number of the caller's. See [`VerletList::refresh`].
    #[inline(always)]
    pub fn rows(&self) -> &[[f64; 4]] {
        &self.rows
    }

    /// Brings the rows of all slots up to date; `fourth(atom)` stands at their end.
    pub fn refresh(&mut self, positions: &Positions, cell: &Cell, fourth: impl Fn(usize) -> f64 + Sync) {
        let Self { rows, bins, snapshot, cutoff, .. } = self;
        rows.resize(bins.owners.len(), [0.0; 4]);
        // Where images are many, there are not enough bits for all of them beside the fraction: the grid of
        // everything is made coarser by as much.
        let big = cell.heights().map(|height| {
            let bits = (0.5 * (0.75 + 1.5 * *cutoff / height)).log2().ceil().max(0.0);
            (bits > 0.0).then(|| 1.5 * bits.exp2())
        });
        let tasks = rows.par_chunks_mut(2048).enumerate();
        let (owners, images) = (&bins.owners, &bins.images);
        tasks.for_each(|(chunk, rows)| {
            for (k, row) in rows.iter_mut().enumerate() {
                let slot = 2048 * chunk + k;
                let (atom, image) = (owners[slot] as usize, images[slot]);
                let mut s = positions.row(snapshot, atom);
                for axis in 0..3 {
                    if let Some(big) = big[axis] {
                        s[axis] = (s[axis] + big) - big;
                    }
                    s[axis] += f64::from(image[axis]);
                }
                *row = [s[0], s[1], s[2], fourth(atom)];
            }
        });
    }

    /// How often the list was built.
    pub fn builds(&self) -> u64 {
        self.builds
    }

    /// Distances that the last build looked at: its work.
    pub fn tested(&self) -> u64 {
        self.tested
    }

    /// Makes the next [`VerletList::update`] build the list, for instance because exclusions changed.
    pub fn invalidate(&mut self) {
        self.cell = None;
    }

    /// Whether the list could now miss a pair within the cut-off: an atom has moved more than half of the
    /// skin, or the cell has changed too much.
    ///
    /// For a changed cell, let F be the deformation that takes the old basis to the new and σ its smallest
    /// stretch. A pair that was not listed is now at least σ·(cut-off + skin) − 2 · (farthest move, in the
    /// new cell and without the deformation) apart, and the list lasts while that is not below the cut-off.
    pub fn needs_rebuild(&self, positions: &Positions, cell: &Cell) -> bool {
        let Some(old) = &self.cell else { return true };
        if positions.len() != self.len() {
            return true;
        }
        let moved = positions.max_displacement_squared(&self.snapshot, cell);
        let radius = self.cutoff + self.skin;
        let mut slack = self.skin;
        if old != cell {
            if old.periodic() != cell.periodic() || old.transformation() != cell.transformation() {
                return true;
            }
            let matrix = |m: [[f64; 3]; 3]| nalgebra::Matrix3::from_fn(|r, c| m[r][c]);
            let deformation = matrix(old.inverse()) * matrix(cell.basis());
            // Of F·Fᵀ, whose eigenvalues are the squares of the stretches.
            let squares = (deformation * deformation.transpose()).symmetric_eigenvalues();
            slack = squares.min().max(0.0).sqrt() * radius - self.cutoff;
        } else if moved == 0.0 {
            return false;
        }
        // Early by a trifle, for rounding. Not a number means rebuild.
        let fine = 2.0 * moved.sqrt() <= slack - 1e-13 * radius;
        !fine
    }

    /// Builds the list if it is needed ([`VerletList::needs_rebuild`]) and says whether it was.
    ///
    /// `exclusions` are looked at only when the list is built; see [`VerletList::invalidate`].
    ///
    /// # Errors
    /// As [`VerletList::build`].
    pub fn update(
        &mut self,
        positions: &Positions,
        cell: &Cell,
        exclusions: Option<&Exclusions>,
    ) -> Result<bool, NeighborError> {
        let needed = self.needs_rebuild(positions, cell);
        if needed {
            self.build(positions, cell, exclusions)?;
        }
        Ok(needed)
    }

    /// Builds the list. Work and memory are linear in the number of atoms at a given density; memory is
    /// used again.
    ///
    /// # Errors
    /// Absurd sizes: about 100,000 neighbours an atom, a million periodic images, 2³² entries. The list is
    /// then empty and invalid.
    pub fn build(
        &mut self,
        positions: &Positions,
        cell: &Cell,
        exclusions: Option<&Exclusions>,
    ) -> Result<(), NeighborError> {
        self.cell = None;
        let result = self.try_build(positions, cell, exclusions);
        match result {
            Ok(()) => {
                self.builds += 1;
                self.cell = Some(cell.clone());
            }
            Err(_) => {
                self.slots.clear();
                self.lengths.clear();
                self.starts.clear();
                self.starts.push(0);
                self.entries.clear();
                self.mirrors.clear();
            }
        }
        result
    }

    fn try_build(
        &mut self,
        positions: &Positions,
        cell: &Cell,
        exclusions: Option<&Exclusions>,
    ) -> Result<(), NeighborError> {
        let atoms = positions.len();
        if atoms >= u32::MAX as usize {
            return Err(NeighborError::TooLong { count: atoms, what: "atoms" });
        }
        if positions.periodic() != cell.periodic() {
            return Err(NeighborError::Periodicity);
        }
        let radius = self.cutoff + self.skin;
        positions.snapshot_into(&mut self.snapshot);
        self.fractions.clear();
        self.fractions.extend((0..atoms).map(|i| positions.centred(&self.snapshot, i)));
        let volume = self.bins.choose(cell, &self.fractions, radius);

        let neighbors = 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3) * atoms as f64 / volume;
        if neighbors > MOST_NEIGHBORS {
            return Err(NeighborError::TooManyNeighbors { neighbors, radius });
        }
        let images: f64 = self.bins.most_images().iter().map(|m| 2.0 * m + 1.0).product();
        // Also refuses what is not a number.
        let few = images <= MOST_IMAGES && self.bins.expected() <= MOST_SLOTS;
        if !few {
            return Err(NeighborError::TooManyImages { images, radius, heights: cell.heights() });
        }
        self.bins.fill(cell, &self.fractions);
        let own = |&slot: &u32| self.bins.images[slot as usize] == [0; 3];
        self.slots.clear();
        self.slots.extend((0..self.bins.owners.len() as u32).filter(own));
        self.ranks.resize(atoms, 0);
        for (rank, &slot) in self.slots.iter().enumerate() {
            self.ranks[self.bins.owners[slot as usize] as usize] = rank as u32;
        }

        let search = Search {
            bins: &self.bins,
            slots: &self.slots,
            ranks: &self.ranks,
            fractions: &self.fractions,
            positions,
            cell,
            // a trifle more than exact, for rounding
            radius_squared: radius * radius * (1.0 + 1e-12),
            in_order: self.mirrored,
            exclusions,
        };
        self.starts.clear();
        self.starts.push(0);
        self.lengths.clear();
        self.entries.clear();
        self.tested = 0;
        let tasks = atoms.div_ceil(CHUNK);
        if self.chunks.len() < tasks.min(WAVE) {
            self.chunks.resize_with(tasks.min(WAVE), Chunk::default);
        }
        for first in (0..tasks).step_by(WAVE) {
            let chunks = &mut self.chunks[..WAVE.min(tasks - first)];
            chunks.par_iter_mut().enumerate().for_each(|(k, chunk)| {
                let start = (first + k) * CHUNK;
                Isa::best().double(Scan { search: &search, ranks: start..(start + CHUNK).min(atoms), chunk });
            });
            let mut end = self.entries.len();
            for chunk in chunks.iter() {
                if let Some(longest) = chunk.too_long {
                    return Err(NeighborError::TooManyNeighbors { neighbors: longest as f64, radius });
                }
                for &length in &chunk.lengths {
                    end += (length as usize).next_multiple_of(LANES);
                    self.starts.push(end as u32);
                }
                self.lengths.extend(&chunk.lengths);
                self.tested += chunk.tested;
            }
            if end > u32::MAX as usize {
                return Err(NeighborError::TooLong { count: end, what: "neighbours" });
            }
            let done = self.entries.len();
            self.entries.resize(end, 0);
            gather(chunks, &mut self.entries[done..]);
        }
        if self.mirrored {
            self.find_mirrors();
        }
        Ok(())
    }

    fn find_mirrors(&mut self) {
        let mut mirrors = std::mem::take(&mut self.mirrors);
        mirrors.resize(self.entries.len(), 0);
        let list = &*self;
        mirror(&mut mirrors, 0..list.len(), list);
        self.mirrors = mirrors;
    }
}

/// Fills the mirrors of some rows, halving them among threads.
fn mirror(out: &mut [u32], ranks: Range<usize>, list: &VerletList) {
    if ranks.len() > CHUNK {
        let middle = ranks.start + ranks.len() / 2;
        let (left, right) = out.split_at_mut((list.starts[middle] - list.starts[ranks.start]) as usize);
        rayon::join(|| mirror(left, ranks.start..middle, list), || mirror(right, middle..ranks.end, list));
        return;
    }
    let first = list.starts[ranks.start] as usize;
    for k in ranks {
        let atom = list.owner(list.slots[k]);
        let out = &mut out[list.starts[k] as usize - first..];
        for (&slot, out) in list.row(k).iter().zip(out) {
            let (other, image) = (list.rank(list.owner(slot)), list.image(slot).map(|n| -n));
            let mirrors = |&back: &u32| list.owner(back) == atom && list.image(back) == image;
            let found = list.row(other).iter().position(mirrors).unwrap_or(0);
            *out = list.starts[other] + found as u32;
        }
    }
}

/// Copies the chunks' entries one after the other into `out`.
fn gather(chunks: &[Chunk], out: &mut [u32]) {
    match chunks {
        [] => {}
        [one] => out.copy_from_slice(&one.entries),
        many => {
            let (left, right) = many.split_at(many.len() / 2);
            let (first, second) = out.split_at_mut(left.iter().map(|c| c.entries.len()).sum());
            rayon::join(|| gather(left, first), || gather(right, second));
        }
    }
}

/// Finds the rows of some ranks.
struct Scan<'a> {
    search: &'a Search<'a>,
    ranks: Range<usize>,
    chunk: &'a mut Chunk,
}

impl Kernel<f64> for Scan<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Scan { search, ranks, chunk } = self;
        chunk.entries.clear();
        chunk.lengths.clear();
        chunk.tested = 0;
        chunk.too_long = None;
        for k in ranks {
            let slot = search.slots[k];
            let start = chunk.entries.len();
            search.row::<V>(slot, chunk);
            let length = chunk.entries.len() - start;
            if length as f64 > 4.0 * MOST_NEIGHBORS {
                chunk.too_long = Some(length);
                return;
            }
            search.exclude(slot, start, &mut chunk.entries);
            if search.in_order {
                let Bins { owners, images, .. } = search.bins;
                chunk.entries[start..].sort_unstable_by_key(|&s| (owners[s as usize], images[s as usize]));
            }
            let length = chunk.entries.len() - start;
            chunk.lengths.push(length as u32);
            chunk.entries.resize(start + length.next_multiple_of(LANES), slot);
        }
    }
}

impl Search<'_> {
    /// Drops the nearest images of what is excluded from an atom.
    fn exclude(&self, slot: u32, start: usize, entries: &mut Vec<u32>) {
        let i = self.bins.owners[slot as usize] as usize;
        for &j in self.exclusions.map_or(&[][..], |e| e.of(i)) {
            if j as usize >= self.ranks.len() {
                continue;
            }
            // Asked for in one direction only, so that of two equally near images both atoms mean the same.
            let (low, high) = (i.min(j as usize), i.max(j as usize));
            let nearest = self.cell.nearest(self.positions.displacement(low, high));
            let sign = if low == i { 1.0 } else { -1.0 };
            let (from, to) = (self.fractions[i], self.fractions[j as usize]);
            let n: [i32; 3] = std::array::from_fn(|k| (sign * nearest[k] - (to[k] - from[k])).round() as i32);
            let is = |&e: &u32| self.bins.owners[e as usize] == j && self.bins.images[e as usize] == n;
            if let Some(found) = entries[start..].iter().position(is) {
                entries.swap_remove(start + found);
            }
        }
    }

    /// Appends what is near the atom in a slot to the chunk's entries.
    #[inline(always)]
    fn row<V: Lanes<Element = f64>>(&self, slot: u32, chunk: &mut Chunk) {
        let i = slot as usize;
        let Chunk { entries, tested, .. } = chunk;
        let [xs, ys, zs] = &self.bins.places;
        let [x, y, z] = [xs[i], ys[i], zs[i]].map(V::constant);
        let limit = V::constant(self.radius_squared);
        let around = self.bins.around(self.fractions[self.bins.owners[i] as usize]);
        for run in around {
            *tested += run.len() as u64;
            if entries.len() as f64 > 8.0 * MOST_NEIGHBORS + (CHUNK * LANES) as f64 {
                return;
            }
            entries.reserve(run.len() + V::WIDTH);
            let mut length = entries.len();
            let out = entries.as_mut_ptr();
            let mut at = run.start;
            while at < run.end {
                // SAFETY: behind the last slot there are as many numbers as there are lanes, and room has been made
                // for a whole register behind the entries
                unsafe {
                    let dx = V::load(xs.as_ptr().add(at)) - x;
                    let dy = V::load(ys.as_ptr().add(at)) - y;
                    let dz = V::load(zs.as_ptr().add(at)) - z;
                    let mut near = dx.fma(dx, dy.fma(dy, dz * dz)).lt(limit);
                    if run.end - at < V::WIDTH {
                        near = near & V::first(run.end - at);
                    }
                    let mut found = V::compress(near, at as u32, out.add(length));
                    // the atom itself was found, too
                    if i.wrapping_sub(at) < V::WIDTH {
                        let new = std::slice::from_raw_parts_mut(out.add(length), found);
                        if let Some(own) = new.iter().position(|&s| s == slot) {
                            new.copy_within(own + 1.., own);
                            found -= 1;
                        }
                    }
                    length += found;
                }
                at += V::WIDTH;
            }
            // SAFETY: up to here all are written
            unsafe { entries.set_len(length) };
        }
    }
}
