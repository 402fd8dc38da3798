//! Verlet's list: everything within the cut-off and a skin, in an order of its own.

// The search reads places without checks.
#![allow(unsafe_code)]

use super::{bins::Bins, exclusions::Exclusions};
use crate::autodiff::lanes::{Element, Isa, Kernel, Lanes};
use crate::system::{
    cell::Cell,
    positions::{INTEGERS, Positions, Snapshot},
};
use rayon::prelude::*;
use std::ops::Range;

/// The most neighbours an atom may be expected to have.
const MOST_NEIGHBORS: f64 = 100_000.0;
/// The most image vectors a list may need.
const MOST_IMAGES: f64 = 1_048_576.0;
/// The most atoms and images of atoms together.
const MOST_SLOTS: f64 = 1e8;
/// Atoms that one task treats: fixed, so that nothing depends on the number of threads.
pub const CHUNK: usize = 64;
/// Tasks that run before their rows are put together: fixed as well.
const WAVE: usize = 256;
/// Rows start at multiples of this, and are filled up to one: the most lanes that there are.
const LANES: usize = 16;
/// Atoms in a row of the order of places whose neighbours are looked for together.
const GROUP: usize = 6;

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

/// All ordered pairs (i, j, n) with |d| < cut-off + skin at the time the list was built (and perhaps a few that were
/// farther by a millionth), where
///
/// d = basis · (uⱼ₊ₙ − uᵢ)
///
/// and u are the rows that [`VerletList::refresh`] brings up to date, now as then: fractions of the basis, one row
/// for every *slot*. A slot is an atom, or an image of one that is in reach of the cell; slots are sorted by place,
/// so that neighbours stand close to each other in memory, and an image is a neighbour like any other. An atom's own
/// images are among its neighbours when the cell is that small. Slots are named by where their rows start, in numbers:
/// 0, 4, 8 ...
///
/// Atoms have a *rank* in the order of their slots. Row number k of the list holds the neighbours of the atom of
/// rank k, as slots, in no order that means anything: it changes from build to build (but see
/// [`VerletList::with_mirrors`]). The difference of two rows does
/// not: it is exact, and independent of the skin, of the age of the list and of wrapping. With (i, j, n) the list
/// holds (j, i, −n), unless these are as far apart as can be.
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
    /// The rows in double and in single precision, and how long a step of a coordinate is in the latter, nm.
    rows: Vec<Row>,
    single_rows: Vec<[f32; 4]>,
    unit: f64,
    builds: u64,
    tested: u64,
    // Memory that builds use again.
    fractions: Vec<[f64; 3]>,
    chunks: Vec<Chunk>,
}

/// A row in double precision. No row lies across the lines of a cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
struct Row([f64; 4]);

impl From<[f64; 4]> for Row {
    fn from(row: [f64; 4]) -> Row {
        Row(row)
    }
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
    near: Candidates,
}

/// What can be near some atoms: places as seen from the first of them, in nm, and slots. There are a few more, so far
/// away that registers can be read behind the last.
#[derive(Clone, Debug, Default)]
struct Candidates {
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    slots: Vec<u32>,
    /// How many of these are meant, a multiple of all lanes.
    count: usize,
}

impl Candidates {
    /// Looks for all that can be near the atoms in these slots.
    #[inline(always)]
    fn find<V: Lanes<Element = f32>>(&mut self, search: &Search, group: &[u32], origin: [f64; 3]) {
        let bins = search.bins;
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for &slot in group {
            let s = search.fractions[bins.owner(slot)];
            low = std::array::from_fn(|k| low[k].min(s[k]));
            high = std::array::from_fn(|k| high[k].max(s[k]));
        }
        let mut count = 0;
        bins.around(
            low,
            high,
            #[inline(always)]
            |run| {
                self.make_room(count + run.len() + LANES);
                let Self { x, y, z, slots, .. } = self;
                for k in (0..run.len()).step_by(V::WIDTH) {
                    // (whole registers: what is too much is written over)
                    for ((to, from), origin) in
                        [&mut *x, &mut *y, &mut *z].into_iter().zip(&bins.places).zip(origin)
                    {
                        // SAFETY: behind the last place there are as many numbers as there are lanes, and room has been
                        // made for a whole register behind the candidates
                        unsafe {
                            V::narrow(from.as_ptr().add(run.start + k), origin)
                                .store(to.as_mut_ptr().add(count + k))
                        };
                    }
                    for (lane, slot) in slots[count + k..count + k + V::WIDTH].iter_mut().enumerate() {
                        *slot = 4 * (run.start + k + lane) as u32;
                    }
                }
                count += run.len();
            },
        );
        let padded = count.next_multiple_of(LANES);
        self.make_room(padded);
        let Self { x, y, z, slots, .. } = self;
        const FAR: f32 = 1e18;
        [&mut *x, &mut *y, &mut *z].into_iter().for_each(|x| x[count..padded].fill(FAR));
        slots[count..padded].fill(0);
        self.count = padded;
    }

    /// So many there may be.
    #[inline(always)]
    fn make_room(&mut self, count: usize) {
        if count > self.slots.len() {
            let room = count.next_power_of_two();
            [&mut self.x, &mut self.y, &mut self.z].into_iter().for_each(|x| x.resize(room, 0.0));
            self.slots.resize(room, 0);
        }
    }
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
            single_rows: Vec::new(),
            unit: 1.0,
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
        self.bins.owner(slot)
    }

    /// The atoms of all slots.
    pub fn owners(&self) -> &[u32] {
        &self.bins.owners
    }

    /// Which image of its atom stands in a slot: those of the atoms themselves are [0, 0, 0].
    #[inline(always)]
    pub fn image(&self, slot: u32) -> [i32; 3] {
        self.bins.image(slot)
    }

    /// The atom and image in a slot: an order of slots that does not change from build to build.
    pub fn key(&self, slot: u32) -> (usize, [i32; 3]) {
        self.bins.key(slot)
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
    /// [`VerletList::with_mirrors`]; its own where there is none.
    pub fn mirrors(&self) -> Option<&[u32]> {
        self.mirrored.then_some(&self.mirrors)
    }

    /// The coordinates when the list was built.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The rows of the slots: [coordinates](Lanes::between) (fractions of the basis, but see
    /// [`VerletList::refresh_single`]), and a number of the caller's.
    #[inline(always)]
    pub fn rows<T: Element>(&self) -> &[[T; 4]] {
        // SAFETY: a `Row` is four numbers and nothing else
        let double = unsafe { std::slice::from_raw_parts(self.rows.as_ptr().cast(), 4 * self.rows.len()) };
        T::either(double, self.single_rows.as_flattened()).as_chunks().0
    }

    /// What a difference of coordinates of rows in single precision is to be multiplied with to be in nm.
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// Brings the rows of all slots up to date in double precision; `fourth(atom)` stands at their end.
    pub fn refresh(&mut self, positions: &Positions, cell: &Cell, fourth: impl Fn(usize) -> f64 + Sync) {
        // Where images are many, there are not enough bits for all of them beside the fraction: the grid of
        // everything is made coarser by as much.
        let big = cell.heights().map(|height| {
            let bits = (0.5 * (0.75 + 1.5 * self.cutoff / height)).log2().ceil().max(0.0);
            (bits > 0.0).then(|| 1.5 * bits.exp2())
        });
        let Self { rows, bins, snapshot, .. } = self;
        let row = |atom: usize, image: [i32; 3]| {
            let s = positions.row(snapshot, atom);
            std::array::from_fn(|k| match big[k] {
                Some(big) => ((s[k] + big) - big) + f64::from(image[k]),
                None => s[k] + f64::from(image[k]),
            })
        };
        refresh(rows, bins, row, fourth);
    }

    /// The same in single precision. Coordinates are then Cartesian and integers modulo 2³², of which neighbours are less
    /// than 2³¹ apart, and as fine as that allows: the differences of neighbours, which alone mean something, have steps
    /// of about 2⁻³⁰ cut-offs however large the cell. (For a difference to be the same whatever images stand for two
    /// atoms, the basis is rounded to that grid, too.)
    pub fn refresh_single(
        &mut self,
        positions: &Positions,
        cell: &Cell,
        fourth: impl Fn(usize) -> f64 + Sync,
    ) {
        // (with the usual skins, of less than half a cut-off, the grid depends on the cut-off alone)
        let reach = (2.0 * self.cutoff).max(self.cutoff + 2.0 * self.skin);
        let steps = (31.0 - reach.log2().ceil()).exp2();
        self.unit = 1.0 / steps;
        let basis = cell.basis().map(|b| b.map(|x| whole(x * steps)));
        let Self { single_rows, bins, snapshot, .. } = self;
        // (rows of periodic axes are seen from the middle of the cell)
        let middle = cell.periodic().map(|periodic| if periodic { 0.5 } else { 0.0 });
        let row = |atom: usize, image: [i32; 3]| {
            let (s, centred) = (positions.fraction(atom), positions.row(snapshot, atom));
            let place = cell.cartesian(s).map(|x| whole(x * steps));
            let image: [u32; 3] = std::array::from_fn(|k| {
                let periods = whole(centred[k] + middle[k] - s[k]);
                periods.wrapping_add(image[k] as u32)
            });
            let moved = |c: usize| {
                let along = |k: usize| basis[k][c].wrapping_mul(image[k]);
                place[c].wrapping_add(along(0)).wrapping_add(along(1)).wrapping_add(along(2))
            };
            [moved(0), moved(1), moved(2)].map(f32::from_bits)
        };
        refresh(single_rows, bins, row, |atom| fourth(atom) as f32);
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
        self.slots.clear();
        self.ranks.resize(atoms, 0);
        for (k, (&image, &atom)) in self.bins.images.iter().zip(&self.bins.owners).enumerate() {
            if image == [0; 3] {
                self.ranks[atom as usize] = self.slots.len() as u32;
                self.slots.push(4 * k as u32);
            }
        }

        let search = Search {
            bins: &self.bins,
            slots: &self.slots,
            ranks: &self.ranks,
            fractions: &self.fractions,
            positions,
            cell,
            // a trifle more than exact, for rounding to single precision: points are less than two radii from the
            // first of their group
            radius_squared: radius * radius * (1.0 + 2e-6),
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
                Isa::best().single(Scan { search: &search, ranks: start..(start + CHUNK).min(atoms), chunk });
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
        // (nothing is kept for a piece)
        let mut pieces = vec![(); self.len().div_ceil(CHUNK)];
        self.each_piece(&mut mirrors, &mut pieces, &|ranks, out, ()| mirror(out, ranks, self));
        self.mirrors = mirrors;
    }

    /// Runs `body` over pieces of [`CHUNK`] ranks, in parallel and without allocating: it is given the ranks, what goes
    /// with their entries, of which `out` has one each, and what goes with the piece.
    pub fn each_piece<T: Send, U: Send>(&self, out: &mut [T], pieces: &mut [U], body: &PieceBody<T, U>) {
        self.halve(0..self.len(), out, pieces, body);
    }

    fn halve<T: Send, U: Send>(
        &self,
        ranks: Range<usize>,
        out: &mut [T],
        pieces: &mut [U],
        body: &PieceBody<T, U>,
    ) {
        match pieces {
            [] => {}
            [piece] => body(ranks, out, piece),
            _ => {
                let half = pieces.len() / 2;
                let middle = ranks.start + half * CHUNK;
                let (left, right) =
                    out.split_at_mut((self.starts[middle] - self.starts[ranks.start]) as usize);
                let (low, high) = pieces.split_at_mut(half);
                rayon::join(
                    || self.halve(ranks.start..middle, left, low, body),
                    || self.halve(middle..ranks.end, right, high, body),
                );
            }
        }
    }
}

/// The integer nearest to x, modulo 2³².
#[inline(always)]
fn whole(x: f64) -> u32 {
    (x + INTEGERS).to_bits() as u32
}

/// Fills the rows of all slots: the coordinates of an image of an atom, and one more number.
fn refresh<T: Element, R: From<[T; 4]> + Copy + Default + Send>(
    rows: &mut Vec<R>,
    bins: &Bins,
    row: impl Fn(usize, [i32; 3]) -> [T; 3] + Sync,
    fourth: impl Fn(usize) -> T + Sync,
) {
    rows.resize(bins.owners.len(), R::default());
    rows.par_iter_mut().zip(&bins.owners).zip(&bins.images).with_min_len(2048).for_each(
        |((out, &atom), image)| {
            let [x, y, z] = row(atom as usize, *image);
            *out = [x, y, z, fourth(atom as usize)].into();
        },
    );
}

/// What [`VerletList::each_piece`] runs.
pub type PieceBody<'a, T, U> = dyn Fn(Range<usize>, &mut [T], &mut U) + Sync + 'a;

/// Fills the mirrors of some rows.
fn mirror(out: &mut [u32], ranks: Range<usize>, list: &VerletList) {
    let first = list.starts[ranks.start] as usize;
    for k in ranks {
        let atom = list.owner(list.slots[k]);
        let out = &mut out[list.starts[k] as usize - first..];
        for ((&slot, out), entry) in list.row(k).iter().zip(out).zip(list.starts[k]..) {
            let (other, image) = (list.rank(list.owner(slot)), list.image(slot).map(|n| -n));
            let mirrors = |&back: &u32| list.key(back) == (atom, image);
            *out = match list.row(other).iter().position(mirrors) {
                Some(found) => list.starts[other] + found as u32,
                None => entry,
            };
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

impl Kernel<f32> for Scan<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f32>>(self) {
        let Scan { search, ranks, chunk } = self;
        let bins = search.bins;
        chunk.entries.clear();
        chunk.lengths.clear();
        chunk.tested = 0;
        chunk.too_long = None;
        let fractions = |slot: u32| search.fractions[bins.owner(slot)];
        let mut next = ranks.start;
        while next < ranks.end {
            // atoms of one column, next to each other
            let first = next;
            let column = bins.column(fractions(search.slots[first]));
            let origin = bins.place(search.slots[first]);
            let close = |slot: u32| {
                let place = bins.place(slot);
                let [x, y, z] = [0, 1, 2].map(|k| place[k] - origin[k]);
                x * x + y * y + z * z < search.radius_squared && bins.column(fractions(slot)) == column
            };
            next += 1;
            while next < ranks.end.min(first + GROUP) && close(search.slots[next]) {
                next += 1;
            }
            let group = &search.slots[first..next];
            chunk.near.find::<V>(search, group, origin);
            chunk.tested += (group.len() * chunk.near.count) as u64;
            for &slot in group {
                let start = chunk.entries.len();
                near_one::<V>(slot, bins.place(slot), origin, search.radius_squared, chunk);
                let length = chunk.entries.len() - start;
                if length as f64 > 4.0 * MOST_NEIGHBORS {
                    chunk.too_long = Some(length);
                    return;
                }
                search.exclude(slot, start, &mut chunk.entries);
                if search.in_order {
                    chunk.entries[start..].sort_unstable_by_key(|&slot| bins.key(slot));
                }
                let length = chunk.entries.len() - start;
                chunk.lengths.push(length as u32);
                chunk.entries.resize(start + length.next_multiple_of(LANES), slot);
            }
        }
    }
}

/// Appends what is near the atom in a slot, of the candidates, to the entries.
#[inline(always)]
fn near_one<V: Lanes<Element = f32>>(
    slot: u32,
    place: [f64; 3],
    origin: [f64; 3],
    limit: f64,
    chunk: &mut Chunk,
) {
    let Chunk { entries, near, .. } = chunk;
    let [x, y, z] = std::array::from_fn(|k| V::constant(place[k] - origin[k]));
    let limit = V::constant(limit);
    let count = near.count;
    assert!([&near.x, &near.y, &near.z].iter().all(|x| x.len() >= count) && near.slots.len() >= count);
    entries.reserve(count + LANES);
    let start = entries.len();
    let mut length = start;
    let out = entries.as_mut_ptr();
    for at in (0..count).step_by(V::WIDTH) {
        // SAFETY: there are multiples of all lanes of everything, and room for as many entries
        unsafe {
            let dx = V::load(near.x.as_ptr().add(at)) - x;
            let dy = V::load(near.y.as_ptr().add(at)) - y;
            let dz = V::load(near.z.as_ptr().add(at)) - z;
            let close = dx.fma(dx, dy.fma(dy, dz * dz)).lt(limit);
            length += V::compress(close, near.slots.as_ptr().add(at), out.add(length));
        }
    }
    // SAFETY: up to here all are written
    unsafe { entries.set_len(length) };
    // the atom itself was found, too
    if let Some(own) = entries[start..].iter().position(|&s| s == slot) {
        entries.remove(start + own);
    }
}

impl Search<'_> {
    /// Drops the nearest images of what is excluded from an atom.
    fn exclude(&self, slot: u32, start: usize, entries: &mut Vec<u32>) {
        let i = self.bins.owner(slot);
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
            let is = |&e: &u32| self.bins.key(e) == (j as usize, n);
            if let Some(found) = entries[start..].iter().position(is) {
                entries.swap_remove(start + found);
            }
        }
    }
}
