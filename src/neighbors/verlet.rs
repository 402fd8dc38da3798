//! Verlet's list: everything within the cut-off and a skin, in an order of its own.

use super::{
    bins::{Axis, Bins},
    exclusions::Exclusions,
};
use crate::system::{
    cell::Cell,
    positions::{Positions, Snapshot},
};
use rayon::prelude::*;

/// The most neighbours an atom may be expected to have.
const MOST_NEIGHBORS: f64 = 100_000.0;
/// The most image vectors a list may need.
const MOST_IMAGES: f64 = 1_048_576.0;
/// Atoms that one task treats, and tasks that run before their rows are put together. Both are fixed, so
/// that nothing depends on the number of threads.
const CHUNK: usize = 64;
const WAVE: usize = 256;

/// One entry of a row: atom j, in an image, is near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Neighbor {
    /// The other atom, counted from 0.
    pub j: u32,
    /// Which image: an index into [`VerletList::shifts`].
    pub shift: u32,
}

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
/// d = basis · ((uⱼ − uᵢ) + n)
///
/// and u are the rows that [`VerletList::rows`] gives, now as then. An atom's own images (j = i, n ≠ 0) are
/// in the list when the cell is that small.
///
/// The entries of an atom are sorted by (j, n). The n of one pair shift together when the list is built
/// anew, so what is within the cut-off comes in the same order for every skin and age of the list. With
/// (i, j, n) the list holds (j, i, −n).
///
/// ```
/// use md::{neighbors::VerletList, system::{cell::Cell, positions::Positions}};
/// let cell = Cell::new([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]], [true; 3]).unwrap();
/// let positions = Positions::from_cartesian(&cell, &[[0.1, 0.0, 0.0], [2.9, 0.0, 0.0]]).unwrap();
/// let mut list = VerletList::new(0.9, 0.1).unwrap();
/// assert!(list.update(&positions, &cell, None).unwrap());
/// let near = list.row(0)[0];
/// assert_eq!((near.j, list.shifts()[near.shift as usize]), (1, [-1, 0, 0]));
/// ```
#[derive(Clone, Debug)]
pub struct VerletList {
    cutoff: f64,
    skin: f64,
    /// The cell at the last build, if the list is valid.
    cell: Option<Cell>,
    snapshot: Snapshot,
    starts: Vec<u32>,
    entries: Vec<Neighbor>,
    shifts: Vec<[i32; 3]>,
    mirrored: bool,
    mirrors: Vec<u32>,
    builds: u64,
    tested: u64,
    // Memory that builds use again.
    rows: Vec<[f64; 4]>,
    bins: Bins,
    chunks: Vec<Chunk>,
}

/// The rows of a few atoms while a list is built.
#[derive(Clone, Debug, Default)]
struct Chunk {
    entries: Vec<Neighbor>,
    /// The length of each row.
    lengths: Vec<u32>,
    /// Room for (j, shift) of the row at work, and what is excluded from it.
    keys: Vec<u64>,
    excluded: Vec<u64>,
    tested: u64,
    /// The longest row, when it is too long to go on.
    too_long: Option<usize>,
}

/// What every row needs to know.
struct Search<'a> {
    bins: &'a Bins,
    rows: &'a [[f64; 4]],
    positions: &'a Positions,
    cell: &'a Cell,
    basis: [[f64; 3]; 3],
    diagonal: bool,
    radius_squared: f64,
    images: [i32; 3],
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
            starts: vec![0],
            entries: Vec::new(),
            shifts: Vec::new(),
            mirrored: false,
            mirrors: Vec::new(),
            builds: 0,
            tested: 0,
            rows: Vec::new(),
            bins: Bins::default(),
            chunks: Vec::new(),
        })
    }

    /// The same list that also works out [`VerletList::mirrors`] at every build.
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
        self.starts.len() - 1
    }

    /// Whether there are no atoms in the list.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each atom's entries start in [`VerletList::entries`]: one number an atom and the end.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The entries of all atoms, one row after the other.
    pub fn entries(&self) -> &[Neighbor] {
        &self.entries
    }

    /// The entries of atom i; none for an index beyond the last atom.
    pub fn row(&self, i: usize) -> &[Neighbor] {
        match self.starts.get(i..).and_then(|s| s.get(..2)) {
            Some(&[start, end]) => &self.entries[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The image vectors n that entries refer to, in lexicographic order; the negative of the k-th is the
    /// k-th from the end.
    pub fn shifts(&self) -> &[[i32; 3]] {
        &self.shifts
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

    /// The rows [x, y, z, 0] of fractions that the list's images refer to: see [`Positions::rows`].
    pub fn rows(&self, positions: &Positions, out: &mut Vec<[f64; 4]>) {
        positions.rows(&self.snapshot, out);
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
        positions.rows(&self.snapshot, &mut self.rows);
        let volume = self.bins.choose(cell, &self.rows, radius);

        let neighbors = 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3) * atoms as f64 / volume;
        if neighbors > MOST_NEIGHBORS {
            return Err(NeighborError::TooManyNeighbors { neighbors, radius });
        }
        let images = self.bins.axes.map(|axis| axis.images());
        let count: f64 = images.iter().map(|m| 2.0 * m + 1.0).product();
        // Also refuses what is not a number.
        if !matches!(count.partial_cmp(&MOST_IMAGES), Some(o) if o.is_le()) {
            return Err(NeighborError::TooManyImages { images: count, radius, heights: cell.heights() });
        }
        let images = images.map(|m| m as i32);
        self.shifts.clear();
        for a in -images[0]..=images[0] {
            for b in -images[1]..=images[1] {
                self.shifts.extend((-images[2]..=images[2]).map(|c| [a, b, c]));
            }
        }
        self.bins.fill(&self.rows);

        let search = Search {
            bins: &self.bins,
            rows: &self.rows,
            positions,
            cell,
            basis: cell.basis(),
            diagonal: cell.is_orthorhombic(),
            radius_squared: radius * radius,
            images,
            exclusions,
        };
        self.starts.clear();
        self.starts.push(0);
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
                search.chunk(start..(start + CHUNK).min(atoms), chunk);
            });
            let mut end = self.entries.len();
            for chunk in chunks.iter() {
                if let Some(longest) = chunk.too_long {
                    return Err(NeighborError::TooManyNeighbors { neighbors: longest as f64, radius });
                }
                for &length in &chunk.lengths {
                    end += length as usize;
                    self.starts.push(end as u32);
                }
                self.tested += chunk.tested;
            }
            if end > u32::MAX as usize {
                return Err(NeighborError::TooLong { count: end, what: "neighbours" });
            }
            let done = self.entries.len();
            self.entries.resize(end, Neighbor::default());
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
        let last = self.shifts.len() as u32 - 1;
        let list = &*self;
        mirror(
            &mut mirrors,
            0..list.len(),
            &|i, entry| {
                let mirrored = Neighbor { j: i as u32, shift: last - entry.shift };
                let found = list.row(entry.j as usize).binary_search(&mirrored).unwrap_or_else(|k| k);
                list.starts[entry.j as usize] + found as u32
            },
            list,
        );
        self.mirrors = mirrors;
    }
}

/// Fills the mirrors of some rows, halving them among threads.
fn mirror(
    out: &mut [u32],
    rows: std::ops::Range<usize>,
    find: &(impl Fn(usize, Neighbor) -> u32 + Sync),
    list: &VerletList,
) {
    if rows.len() > CHUNK {
        let middle = rows.start + rows.len() / 2;
        let (left, right) = out.split_at_mut((list.starts[middle] - list.starts[rows.start]) as usize);
        rayon::join(
            || mirror(left, rows.start..middle, find, list),
            || mirror(right, middle..rows.end, find, list),
        );
        return;
    }
    let mut out = out.iter_mut();
    for i in rows {
        for (&entry, out) in list.row(i).iter().zip(&mut out) {
            *out = find(i, entry);
        }
    }
}

/// Copies the chunks' entries one after the other into `out`.
fn gather(chunks: &[Chunk], out: &mut [Neighbor]) {
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

impl Search<'_> {
    /// The index of an image vector in the list's shifts.
    #[inline(always)]
    fn shift(&self, n: [i32; 3]) -> u32 {
        let m = self.images;
        (((n[0] + m[0]) * (2 * m[1] + 1) + n[1] + m[1]) * (2 * m[2] + 1) + n[2] + m[2]) as u32
    }

    /// Finds the rows of some atoms.
    fn chunk(&self, atoms: std::ops::Range<usize>, chunk: &mut Chunk) {
        chunk.entries.clear();
        chunk.lengths.clear();
        chunk.tested = 0;
        chunk.too_long = None;
        for i in atoms {
            let length = if self.diagonal { self.row::<true>(i, chunk) } else { self.row::<false>(i, chunk) };
            if length as f64 > 4.0 * MOST_NEIGHBORS {
                chunk.too_long = Some(length);
                return;
            }
            let keys = &mut chunk.keys[..length];
            keys.sort_unstable();
            // The atom itself was found, too.
            let itself = (i as u64) << 32 | u64::from(self.shift([0; 3]));
            let (left, right) = keys.split_at(keys.partition_point(|&key| key < itself));
            let right = right.strip_prefix(&[itself]).unwrap_or(right);
            let keys = left.iter().chain(right);
            let before = chunk.entries.len();
            let entry = |&key: &u64| Neighbor { j: (key >> 32) as u32, shift: key as u32 };
            self.exclude(i, &mut chunk.excluded);
            if chunk.excluded.is_empty() {
                chunk.entries.extend(keys.map(entry));
            } else {
                let mut excluded = chunk.excluded.iter().copied().peekable();
                chunk.entries.extend(keys.filter_map(|key| {
                    while excluded.next_if(|&e| e < *key).is_some() {}
                    (excluded.peek() != Some(key)).then(|| entry(key))
                }));
            }
            chunk.lengths.push((chunk.entries.len() - before) as u32);
        }
    }

    /// The sorted keys of the nearest images of what is excluded from atom i.
    fn exclude(&self, i: usize, keys: &mut Vec<u64>) {
        keys.clear();
        let Some(exclusions) = self.exclusions else { return };
        for &j in exclusions.of(i) {
            let Some(to) = self.rows.get(j as usize) else { continue };
            // Asked for in one direction only, so that of two equally near images both atoms mean the same.
            let (low, high) = (i.min(j as usize), i.max(j as usize));
            let nearest = self.cell.nearest(self.positions.displacement(low, high));
            let sign = if low == i { 1.0 } else { -1.0 };
            let from = &self.rows[i];
            let n: [i32; 3] = std::array::from_fn(|k| (sign * nearest[k] - (to[k] - from[k])).round() as i32);
            if (0..3).all(|k| n[k].abs() <= self.images[k]) {
                keys.push(u64::from(j) << 32 | u64::from(self.shift(n)));
            }
        }
    }

    /// Puts what is near atom i into the chunk's keys, unsorted, and returns how many there are.
    fn row<const DIAGONAL: bool>(&self, i: usize, chunk: &mut Chunk) -> usize {
        let [x, y, z] = &self.bins.axes;
        let u = self.rows[i];
        let ends = |axis: &Axis, s: f64| (axis.place(s - axis.reach), axis.place(s + axis.reach));
        let mut length = 0;
        let ((mut px, x_last), (y_first, y_last)) = (ends(x, u[0]), ends(y, u[1]));
        let (z_first, z_last) = ends(z, u[2]);
        while px <= x_last {
            let mut py = y_first;
            while py <= y_last {
                let column = (px.1 * y.count + py.1) * z.count;
                for n in z_first.0..=z_last.0 {
                    let first = if n == z_first.0 { z_first.1 } else { 0 };
                    let last = if n == z_last.0 { z_last.1 } else { z.count - 1 };
                    let range = self.bins.starts[column + first] as usize
                        ..self.bins.starts[column + last + 1] as usize;
                    if !range.is_empty() {
                        chunk.tested += range.len() as u64;
                        let n = [px.0, py.0, n];
                        length = self.scan::<DIAGONAL>(range, u, n, &mut chunk.keys, length);
                    }
                }
                if length as f64 > 4.0 * MOST_NEIGHBORS {
                    return length;
                }
                py = if py.1 + 1 == y.count { (py.0 + 1, 0) } else { (py.0, py.1 + 1) };
            }
            px = if px.1 + 1 == x.count { (px.0 + 1, 0) } else { (px.0, px.1 + 1) };
        }
        length
    }

    /// Adds those of a range of sorted atoms that are near u in image n.
    #[inline(always)]
    fn scan<const DIAGONAL: bool>(
        &self,
        range: std::ops::Range<usize>,
        u: [f64; 4],
        n: [i32; 3],
        keys: &mut Vec<u64>,
        mut length: usize,
    ) -> usize {
        const BLOCK: usize = 16;
        if keys.len() < length + range.len() {
            keys.resize((length + range.len()).next_power_of_two(), 0);
        }
        let shift = u64::from(self.shift(n));
        let n = n.map(f64::from);
        let [xs, ys, zs] = &self.bins.fractions;
        let order = self.bins.order[range.clone()].chunks(BLOCK);
        let xs = xs[range.clone()].chunks(BLOCK);
        let ys = ys[range.clone()].chunks(BLOCK);
        let zs = zs[range].chunks(BLOCK);
        let b = &self.basis;
        for (((order, xs), ys), zs) in order.zip(xs).zip(ys).zip(zs) {
            let mut squared = [0.0; BLOCK];
            for (((out, x), y), z) in squared.iter_mut().zip(xs).zip(ys).zip(zs) {
                let s = [(x - u[0]) + n[0], (y - u[1]) + n[1], (z - u[2]) + n[2]];
                let d: [f64; 3] = if DIAGONAL {
                    [s[0] * b[0][0], s[1] * b[1][1], s[2] * b[2][2]]
                } else {
                    std::array::from_fn(|x| s[0] * b[0][x] + s[1] * b[1][x] + s[2] * b[2][x])
                };
                *out = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            }
            // Every key is written, and the place moves on for those that are near: no branches.
            for (&squared, &j) in squared.iter().zip(order) {
                keys[length] = j | shift;
                length += usize::from(squared < self.radius_squared);
            }
        }
        length
    }
}
