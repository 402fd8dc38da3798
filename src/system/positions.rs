//! The state's positions, as integers on a grid of the cell.
//!
//! Along every axis of the cell's basis a coordinate is a multiple of 2⁻⁵² of the basis vector:
//!
//! - on a **periodic** axis the full range of 64 bits is one period and the low 12 bits are zero. The
//!   minimum image (in fractions) is then a wrapping subtraction, and nothing needs to be wrapped. A
//!   counter of 32 bits an axis says how many periods an atom is away from where it was first;
//! - on a **free** axis it is a signed integer that never wraps; beyond ±2⁶² an atom has [`Escaped`].
//!
//! Adding positions up is exact, so a trajectory does not depend on where the boundary of the cell is, and
//! an equal and opposite displacement undoes one bit by bit.

use crate::system::cell::Cell;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The grid: 2⁻⁵² of a basis vector.
const GRID: f64 = 1.0 / PERIOD as f64;
/// Grid points in one period.
const PERIOD: i64 = 1 << 52;
/// How far the grid is shifted in a periodic coordinate.
const SPARE: u32 = 12;
/// The bound of coordinates on free axes and of single steps.
const FAR: i64 = 1 << 62;
/// Atoms that one task of a parallel loop treats: fixed, so that nothing depends on the threads.
const CHUNK: usize = 2048;

/// 1.5·2⁵²: in its neighbourhood the doubles are the integers.
pub(crate) const INTEGERS: f64 = 6_755_399_441_055_744.0;

/// An atom has gone so far that its coordinate cannot be counted: 1024 times the frame on a free axis,
/// 2³¹ periods on a periodic one, or a displacement that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("atom {atom} has left all bounds along cell axis {}", ["a", "b", "c"].get(*.axis).unwrap_or(&"?"))]
pub struct Escaped {
    /// Which atom, counted from 0.
    pub atom: usize,
    /// 0, 1 or 2 for a, b or c.
    pub axis: usize,
}

/// Why coordinates are no positions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// A coordinate is not finite, or too far away for the grid.
    #[error(transparent)]
    Escaped(#[from] Escaped),
    /// Lists that should be equally long are not.
    #[error("{coordinates} coordinates but {images} image counts")]
    Lengths {
        /// Number of coordinates.
        coordinates: usize,
        /// Number of image counts.
        images: usize,
    },
    /// Stored raw coordinates are not on the grid.
    #[error("the stored coordinate of atom {atom} is not on the grid")]
    Grid {
        /// Which atom, counted from 0.
        atom: usize,
    },
}

/// Positions of all atoms on the grid of a [`Cell`].
///
/// The cell itself is passed to every method that deals in nm: with another cell of the same kind (a
/// strained one) the same fractions are other places.
///
/// ```
/// use md::system::{cell::Cell, positions::Positions};
/// let cell = Cell::new([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]], [true; 3]).unwrap();
/// let mut positions = Positions::from_cartesian(&cell, &[[0.25, 0.5, 1.0], [1.75, 0.5, 1.0]]).unwrap();
/// assert_eq!(positions.displacement(0, 1), [-0.25, 0.0, 0.0]);
/// positions.advance(&cell, 0, [-0.5, 0.0, 0.0]).unwrap();
/// assert_eq!(positions.cartesian(&cell, 0), [-0.25, 0.5, 1.0]);
/// assert_eq!(positions.wrapped(&cell, 0), [1.75, 0.5, 1.0]);
/// ```
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Positions {
    periodic: [bool; 3],
    raw: Vec<[i64; 3]>,
    images: Vec<[i32; 3]>,
}

// (derived, it would not use the memory that is there again)
impl Clone for Positions {
    fn clone(&self) -> Self {
        Self { periodic: self.periodic, raw: self.raw.clone(), images: self.images.clone() }
    }
    fn clone_from(&mut self, o: &Self) {
        self.periodic = o.periodic;
        self.raw.clone_from(&o.raw);
        self.images.clone_from(&o.images);
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Stored {
    periodic: [bool; 3],
    raw: Vec<[i64; 3]>,
    images: Vec<[i32; 3]>,
}

impl From<Positions> for Stored {
    fn from(p: Positions) -> Stored {
        Stored { periodic: p.periodic, raw: p.raw, images: p.images }
    }
}

impl TryFrom<Stored> for Positions {
    type Error = PositionError;

    fn try_from(s: Stored) -> Result<Positions, PositionError> {
        Positions::from_raw(s.periodic, s.raw, s.images)
    }
}

/// The raw coordinates of all atoms at one moment, to measure from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    raw: Vec<[i64; 3]>,
}

impl Snapshot {
    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are no atoms.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }
}

/// Rounds x, half to even, to an integer; none if it is not below 2⁶² in magnitude.
#[inline]
fn round(x: f64) -> Option<i64> {
    if x.abs() < 2_251_799_813_685_248.0 {
        // Both are positive and of one binade, so their bits differ by the integer.
        return Some((x + INTEGERS).to_bits().wrapping_sub(INTEGERS.to_bits()) as i64);
    }
    (x.abs() < FAR as f64).then(|| x.round_ties_even() as i64)
}

/// The fraction that a raw coordinate stands for.
#[inline]
fn fraction(raw: i64, periodic: bool) -> f64 {
    if periodic { (raw as u64 >> SPARE) as f64 * GRID } else { raw as f64 * GRID }
}

/// The fraction from one raw coordinate to another.
#[inline]
fn between(from: i64, to: i64, periodic: bool) -> f64 {
    let d = to.wrapping_sub(from);
    if periodic { (d >> SPARE) as f64 * GRID } else { d as f64 * GRID }
}

/// A raw coordinate and its image count after `steps` grid steps.
#[inline]
fn moved(raw: i64, image: i32, steps: i64, periodic: bool) -> Option<(i64, i32)> {
    if periodic {
        let sum = ((raw as u64 >> SPARE) as i64).checked_add(steps)?;
        let image = i64::from(image) + (sum >> 52);
        Some((sum << SPARE, i32::try_from(image).ok()?))
    } else {
        let sum = raw.checked_add(steps)?;
        (-FAR < sum && sum < FAR).then_some((sum, image))
    }
}

/// One atom's coordinates after a displacement by fractions; on failure the axis.
#[inline]
fn advanced(
    raw: [i64; 3],
    images: [i32; 3],
    s: [f64; 3],
    periodic: [bool; 3],
) -> Result<([i64; 3], [i32; 3]), usize> {
    let (mut r, mut n) = (raw, images);
    for axis in 0..3 {
        let steps = round(s[axis] * PERIOD as f64).ok_or(axis)?;
        (r[axis], n[axis]) = moved(raw[axis], images[axis], steps, periodic[axis]).ok_or(axis)?;
    }
    Ok((r, n))
}

/// The raw coordinates and images of a Cartesian point; on failure the axis.
fn located(cell: &Cell, r: [f64; 3]) -> Result<([i64; 3], [i32; 3]), usize> {
    let s = cell.fraction(r);
    let (mut raw, mut images) = ([0; 3], [0; 3]);
    for axis in 0..3 {
        let whole = if cell.periodic()[axis] { s[axis].floor() } else { 0.0 };
        if !whole.is_finite() || whole.abs() > 2_147_483_000.0 {
            return Err(axis);
        }
        let steps = round((s[axis] - whole) * PERIOD as f64).ok_or(axis)?;
        (raw[axis], images[axis]) = moved(0, whole as i32, steps, cell.periodic()[axis]).ok_or(axis)?;
    }
    Ok((raw, images))
}

impl Positions {
    /// The grid points nearest to Cartesian points (nm). Points outside of the cell get image counts, so
    /// that [`Positions::cartesian`] gives the points back.
    ///
    /// # Errors
    /// [`PositionError::Escaped`] for a coordinate that is not finite or beyond the grid.
    pub fn from_cartesian(cell: &Cell, points: &[[f64; 3]]) -> Result<Positions, PositionError> {
        let mut positions = Positions {
            periodic: cell.periodic(),
            raw: Vec::with_capacity(points.len()),
            images: Vec::with_capacity(points.len()),
        };
        for (atom, &point) in points.iter().enumerate() {
            let (raw, images) = located(cell, point).map_err(|axis| Escaped { atom, axis })?;
            positions.raw.push(raw);
            positions.images.push(images);
        }
        Ok(positions)
    }

    /// As [`Positions::from_cartesian`] for the points r + Σ `n[k]·vectors()[k]`, where the image counts n
    /// (one triple a point) are in the cell's *given* vectors, as files have them. Counts along free axes
    /// are ignored.
    ///
    /// # Errors
    /// As there, and [`PositionError::Lengths`] when there are not as many images as points.
    pub fn from_cartesian_with_images(
        cell: &Cell,
        points: &[[f64; 3]],
        images: &[[i32; 3]],
    ) -> Result<Positions, PositionError> {
        if points.len() != images.len() {
            return Err(PositionError::Lengths { coordinates: points.len(), images: images.len() });
        }
        let mut positions = Positions::from_cartesian(cell, points)?;
        for (atom, (have, &n)) in positions.images.iter_mut().zip(images).enumerate() {
            let n = std::array::from_fn(|k| if cell.periodic()[k] { n[k] } else { 0 });
            let add = cell.images_in_basis(n).ok_or(Escaped { atom, axis: 0 })?;
            for axis in 0..3 {
                have[axis] = have[axis].checked_add(add[axis]).ok_or(Escaped { atom, axis })?;
            }
        }
        Ok(positions)
    }

    /// Positions from raw coordinates and image counts, such as [`Positions::raw`] and
    /// [`Positions::images`] return.
    ///
    /// # Errors
    /// Different lengths, or coordinates that are not on the grid.
    pub fn from_raw(
        periodic: [bool; 3],
        raw: Vec<[i64; 3]>,
        images: Vec<[i32; 3]>,
    ) -> Result<Positions, PositionError> {
        if raw.len() != images.len() {
            return Err(PositionError::Lengths { coordinates: raw.len(), images: images.len() });
        }
        let good = |x: i64, axis: usize| match periodic[axis] {
            true => x & ((1 << SPARE) - 1) == 0,
            false => -FAR < x && x < FAR,
        };
        match raw.iter().position(|r| !(0..3).all(|axis| good(r[axis], axis))) {
            Some(atom) => Err(PositionError::Grid { atom }),
            None => Ok(Positions { periodic, raw, images }),
        }
    }

    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are no atoms.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Which axes are periodic: those of the cell that the positions were made for.
    pub fn periodic(&self) -> [bool; 3] {
        self.periodic
    }

    /// The raw coordinates: on a periodic axis the fraction times 2⁶⁴ (as bits; the low 12 are zero), on a
    /// free one the fraction times 2⁵².
    pub fn raw(&self) -> &[[i64; 3]] {
        &self.raw
    }

    /// How many basis vectors each atom is away from its fraction in [0, 1); zero on free axes.
    pub fn images(&self) -> &[[i32; 3]] {
        &self.images
    }

    /// The unwrapped position of atom i, Cartesian, nm.
    #[inline]
    pub fn cartesian(&self, cell: &Cell, i: usize) -> [f64; 3] {
        let (s, n) = (self.fraction(i), self.images[i]);
        cell.cartesian(std::array::from_fn(|k| s[k] + f64::from(n[k])))
    }

    /// The position of atom i wrapped into the cell of the basis, Cartesian, nm.
    /// [`Cell::wrap_given`] wraps into the given vectors.
    #[inline]
    pub fn wrapped(&self, cell: &Cell, i: usize) -> [f64; 3] {
        cell.cartesian(self.fraction(i))
    }

    /// The fractions of atom i: exact and in [0, 1) on periodic axes, on free ones rounded to 53 bits
    /// when two or more frame lengths away.
    #[inline]
    pub fn fraction(&self, i: usize) -> [f64; 3] {
        let r = self.raw[i];
        std::array::from_fn(|k| fraction(r[k], self.periodic[k]))
    }

    /// The fractions from atom i to atom j, exact; wrapped to [-½, ½) on periodic axes.
    ///
    /// [`Cell::nearest`] turns them into the shortest image.
    #[inline]
    pub fn displacement(&self, i: usize, j: usize) -> [f64; 3] {
        let (a, b) = (self.raw[i], self.raw[j]);
        std::array::from_fn(|k| between(a[k], b[k], self.periodic[k]))
    }

    /// Moves atom i by a Cartesian displacement (nm), rounded once to the grid (half to even), and keeps
    /// count of the images. Moving by `dr` and then by −`dr` leaves every bit as it was.
    ///
    /// # Errors
    /// [`Escaped`], and then nothing has changed.
    #[inline]
    pub fn advance(&mut self, cell: &Cell, i: usize, dr: [f64; 3]) -> Result<(), Escaped> {
        let (raw, images) = advanced(self.raw[i], self.images[i], cell.fraction(dr), self.periodic)
            .map_err(|axis| Escaped { atom: i, axis })?;
        (self.raw[i], self.images[i]) = (raw, images);
        Ok(())
    }

    /// Moves every atom i by `displacement(i)` (Cartesian, nm), in parallel; otherwise as
    /// [`Positions::advance`].
    ///
    /// # Errors
    /// The first atom that [`Escaped`]; it has not moved, the others may have.
    pub fn advance_all(
        &mut self,
        cell: &Cell,
        displacement: impl Fn(usize) -> [f64; 3] + Sync,
    ) -> Result<(), Escaped> {
        let periodic = self.periodic;
        let tasks = self.raw.par_chunks_mut(CHUNK).zip(self.images.par_chunks_mut(CHUNK)).enumerate();
        let escaped = tasks.map(|(chunk, (raw, images))| {
            let mut first = None;
            for (k, (r, n)) in raw.iter_mut().zip(images).enumerate() {
                let atom = chunk * CHUNK + k;
                match advanced(*r, *n, cell.fraction(displacement(atom)), periodic) {
                    Ok(new) => (*r, *n) = new,
                    Err(axis) => first = first.or(Some(Escaped { atom, axis })),
                }
            }
            first
        });
        let first = escaped.reduce(
            || None,
            |a, b| match (a, b) {
                (Some(a), Some(b)) => Some(if a.atom <= b.atom { a } else { b }),
                (a, b) => a.or(b),
            },
        );
        first.map_or(Ok(()), Err)
    }

    /// Moves atom i by whole steps of the grid (2⁻⁵² of the basis vectors).
    ///
    /// # Errors
    /// [`Escaped`], and then nothing has changed.
    pub fn shift(&mut self, i: usize, steps: [i64; 3]) -> Result<(), Escaped> {
        let (mut raw, mut images) = (self.raw[i], self.images[i]);
        for axis in 0..3 {
            (raw[axis], images[axis]) = moved(raw[axis], images[axis], steps[axis], self.periodic[axis])
                .ok_or(Escaped { atom: i, axis })?;
        }
        (self.raw[i], self.images[i]) = (raw, images);
        Ok(())
    }

    /// Puts atom i at the grid point nearest to an unwrapped Cartesian point (nm).
    ///
    /// # Errors
    /// [`Escaped`] for a coordinate that is not finite or beyond the grid; then nothing has changed.
    pub fn set_cartesian(&mut self, cell: &Cell, i: usize, r: [f64; 3]) -> Result<(), Escaped> {
        (self.raw[i], self.images[i]) = located(cell, r).map_err(|axis| Escaped { atom: i, axis })?;
        Ok(())
    }

    /// The coordinates of this moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { raw: self.raw.clone() }
    }

    /// Puts the coordinates of this moment into a snapshot, whose memory is used again.
    pub fn snapshot_into(&self, snapshot: &mut Snapshot) {
        snapshot.raw.clone_from(&self.raw);
    }

    /// The square (nm²) of the farthest that any atom has moved since the snapshot, in this cell.
    ///
    /// Whole periods do not count: displacements are wrapped to [-½, ½) fractions, which is what
    /// [`Positions::row`] adds to the snapshot. Infinite for a snapshot of another number of atoms.
    pub fn max_displacement_squared(&self, since: &Snapshot, cell: &Cell) -> f64 {
        if since.len() != self.len() {
            return f64::INFINITY;
        }
        let chunk = |(now, then): (&[[i64; 3]], &[[i64; 3]])| {
            let mut most: f64 = 0.0;
            for (now, then) in now.iter().zip(then) {
                let s = std::array::from_fn(|k| between(then[k], now[k], self.periodic[k]));
                let d = cell.cartesian(s);
                most = most.max(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
            }
            most
        };
        self.raw.par_chunks(CHUNK).zip(since.raw.par_chunks(CHUNK)).map(chunk).reduce(|| 0.0, f64::max)
    }

    /// The fractions of atom i at a snapshot: in [-½, ½) on periodic axes. (Of a snapshot with fewer atoms the
    /// missing ones are taken from the present.)
    #[inline]
    pub fn centred(&self, since: &Snapshot, i: usize) -> [f64; 3] {
        let then = since.raw.get(i).unwrap_or(&self.raw[i]);
        std::array::from_fn(|k| {
            let s = fraction(then[k], self.periodic[k]);
            if self.periodic[k] { s - 0.5 } else { s }
        })
    }

    /// The fractions of atom i, continuous since a snapshot: on a periodic axis the snapshot's in [-½, ½) plus the
    /// displacement since, wrapped to [-½, ½): a multiple of 2⁻⁵² in [-1, 1). On a free axis the fraction itself.
    ///
    /// The difference of two of them is exact while below 2: its bits depend neither on the snapshot nor on wrapping.
    #[inline]
    pub fn row(&self, since: &Snapshot, i: usize) -> [f64; 3] {
        let now = &self.raw[i];
        let then = since.raw.get(i).unwrap_or(now);
        std::array::from_fn(|k| match self.periodic[k] {
            true => (fraction(then[k], true) - 0.5) + between(then[k], now[k], true),
            false => fraction(now[k], false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cube(l: f64) -> Cell {
        Cell::new([[l, 0.0, 0.0], [0.0, l, 0.0], [0.0, 0.0, l]], [true; 3]).unwrap()
    }

    fn cells() -> impl Strategy<Value = Cell> {
        (
            prop::array::uniform3(0.5..4.0f64),
            prop::array::uniform3(-3.0..3.0f64),
            prop::array::uniform3(any::<bool>()),
        )
            .prop_filter_map("flat", |(l, t, p)| {
                Cell::new([[l[0], 0.0, 0.0], [t[0], l[1], 0.0], [t[1], t[2], l[2]]], p).ok()
            })
    }

    #[test]
    fn rounding_is_half_to_even() {
        for (x, n) in
            [(0.5, 0), (1.5, 2), (-0.5, 0), (-1.5, -2), (2.4999, 2), (-1e15 - 0.5, -1_000_000_000_000_000)]
        {
            assert_eq!(round(x), Some(n));
        }
        assert_eq!(round(4e18), Some(4_000_000_000_000_000_000));
        assert_eq!((round(5e18), round(f64::NAN), round(f64::INFINITY)), (None, None, None));
    }

    #[test]
    fn crossing_a_boundary_counts_images() {
        let cell = cube(2.0);
        let mut p = Positions::from_cartesian(&cell, &[[1.75, -0.25, 4.5]]).unwrap();
        assert_eq!((p.fraction(0), p.images()[0]), ([0.875, 0.875, 0.25], [0, -1, 2]));
        p.advance(&cell, 0, [0.5, 0.5, -9.0]).unwrap();
        assert_eq!((p.fraction(0), p.images()[0]), ([0.125, 0.125, 0.75], [1, 0, -3]));
        assert_eq!(p.cartesian(&cell, 0), [2.25, 0.25, -4.5]);
        assert_eq!(p.wrapped(&cell, 0), [0.25, 0.25, 1.5]);
        // Just below a boundary rounds up to it.
        p.set_cartesian(&cell, 0, [-1e-30, 0.0, 0.0]).unwrap();
        assert_eq!((p.fraction(0), p.images()[0]), ([0.0; 3], [0; 3]));
    }

    #[test]
    fn images_of_files_are_in_the_given_vectors() {
        let cell = Cell::new([[2.0, 0.0, 0.0], [6.0, 2.0, 0.0], [0.0, 0.0, 2.0]], [true; 3]).unwrap();
        let p = Positions::from_cartesian_with_images(&cell, &[[0.5, 0.5, 0.5]], &[[1, 2, -1]]).unwrap();
        assert_eq!(p.cartesian(&cell, 0), [0.5 + 2.0 + 12.0, 0.5 + 4.0, 0.5 - 2.0]);
        assert_eq!(
            Positions::from_cartesian_with_images(&cell, &[[0.5; 3]], &[]),
            Err(PositionError::Lengths { coordinates: 1, images: 0 })
        );
    }

    #[test]
    fn atoms_escape_with_a_name() {
        let cell = Cell::open(0.1).unwrap(); // W = 1 nm
        let mut p = Positions::from_cartesian(&cell, &[[0.0; 3], [1000.0, 0.0, 0.0]]).unwrap();
        let before = p.clone();
        assert_eq!(p.advance(&cell, 1, [0.0, 0.0, 1e4]), Err(Escaped { atom: 1, axis: 2 }));
        assert_eq!(p.advance(&cell, 1, [50.0, 0.0, 0.0]), Err(Escaped { atom: 1, axis: 0 }));
        assert_eq!(p.advance(&cell, 0, [f64::NAN; 3]), Err(Escaped { atom: 0, axis: 0 }));
        assert_eq!(
            p.advance_all(&cell, |i| [if i == 1 { 50.0 } else { 0.0 }, 0.0, 0.0]),
            Err(Escaped { atom: 1, axis: 0 })
        );
        assert_eq!(p, before);
        assert!(Positions::from_cartesian(&cell, &[[f64::INFINITY, 0.0, 0.0]]).is_err());
        let cell = cube(1.0);
        assert!(Positions::from_cartesian(&cell, &[[0.0, 1e10, 0.0]]).is_err());
        let mut p = Positions::from_cartesian(&cell, &[[2e9, 0.0, 0.0]]).unwrap();
        for _ in 0..1_000_000 {
            if p.advance(&cell, 0, [500.0, 0.0, 0.0]).is_err() {
                return;
            }
        }
        panic!("should have run out of images");
    }

    #[test]
    fn raw_coordinates_are_checked_and_stored() {
        let cell = Cell::new([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0; 3]], [true, true, false]).unwrap();
        let p = Positions::from_cartesian(&cell, &[[1.9, -7.1, 3.3], [0.1, 0.2, -0.3]]).unwrap();
        let json = serde_json::to_string(&p).unwrap();
        assert_eq!(serde_json::from_str::<Positions>(&json).unwrap(), p);
        let bytes = postcard::to_stdvec(&p).unwrap();
        assert_eq!(postcard::from_bytes::<Positions>(&bytes).unwrap(), p);
        assert_eq!(
            Positions::from_raw([true; 3], vec![[0; 3], [0, 1, 0]], vec![[0; 3]; 2]),
            Err(PositionError::Grid { atom: 1 })
        );
        assert_eq!(
            Positions::from_raw([false; 3], vec![[i64::MAX, 0, 0]], vec![[0; 3]]),
            Err(PositionError::Grid { atom: 0 })
        );
    }

    proptest! {
        #[test]
        fn points_come_back(cell in cells(), r in prop::array::uniform3(-40.0..40.0f64)) {
            let p = Positions::from_cartesian(&cell, &[r]).unwrap();
            let back = p.cartesian(&cell, 0);
            for k in 0..3 {
                prop_assert!((back[k] - r[k]).abs() < 1e-12);
                prop_assert!(!cell.periodic()[k] || (0.0..1.0).contains(&p.fraction(0)[k]));
            }
        }

        #[test]
        fn walks_are_reversible_and_rows_continuous(
            cell in cells(),
            points in prop::collection::vec(prop::array::uniform3(-4.0..4.0f64), 2..6),
            steps in prop::collection::vec(prop::array::uniform3(-0.11..0.11f64), 1..20),
        ) {
            let start = Positions::from_cartesian(&cell, &points).unwrap();
            let (mut p, since) = (start.clone(), start.snapshot());
            let mut walked = [0i64; 3];
            for &dr in &steps {
                let before = p.raw()[0];
                p.advance(&cell, 0, dr).unwrap();
                for k in 0..3 {
                    walked[k] += (p.raw()[0][k].wrapping_sub(before[k])) >> if cell.periodic()[k] { 12 } else { 0 };
                }
            }
            let rows = [p.row(&since, 0), p.row(&since, 1)];
            let starts = [p.centred(&since, 0), p.centred(&since, 1)];
            for k in 0..3 {
                let (u, v) = (starts[0][k], starts[1][k]);
                let centre = if cell.periodic()[k] { 0.5 } else { 0.0 };
                prop_assert_eq!((u, v), (start.fraction(0)[k] - centre, start.fraction(1)[k] - centre));
                prop_assert_eq!(rows[1][k], v);
                // Whole periods walked do not count.
                let periods = (walked[k] as f64 * GRID + 0.5).floor();
                let whole = if cell.periodic()[k] { periods } else { 0.0 };
                prop_assert_eq!(rows[0][k], u + (walked[k] as f64 * GRID - whole));
                // The difference of rows is an image of the exact displacement.
                let n = (rows[1][k] - rows[0][k]) - p.displacement(0, 1)[k];
                prop_assert!(n == n.round() && (cell.periodic()[k] || n == 0.0));
            }
            let d = cell.cartesian(std::array::from_fn(|k| rows[0][k] - starts[0][k]));
            let expected = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            prop_assert_eq!(p.max_displacement_squared(&since, &cell), expected);
            for &dr in steps.iter().rev() {
                p.advance(&cell, 0, dr.map(|x| -x)).unwrap();
            }
            prop_assert_eq!(p, start);
        }

        #[test]
        fn displacements_are_antisymmetric_and_wrapped(cell in cells(), points in prop::collection::vec(prop::array::uniform3(-9.0..9.0f64), 2)) {
            let p = Positions::from_cartesian(&cell, &points).unwrap();
            let (ij, ji) = (p.displacement(0, 1), p.displacement(1, 0));
            for k in 0..3 {
                if cell.periodic()[k] {
                    prop_assert!((-0.5..0.5).contains(&ij[k]));
                    prop_assert!(ij[k] == -ji[k] || (ij[k] == -0.5 && ji[k] == -0.5));
                } else {
                    prop_assert_eq!(ij[k], p.fraction(1)[k] - p.fraction(0)[k]);
                }
            }
        }

        #[test]
        fn all_at_once_is_one_by_one(cell in cells(), dr in prop::array::uniform3(-1.0..1.0f64)) {
            let points: Vec<_> = (0..5000).map(|i| [f64::from(i) * 0.01, 0.3, 0.7]).collect();
            let mut a = Positions::from_cartesian(&cell, &points).unwrap();
            let mut b = a.clone();
            let step = |i: usize| dr.map(|x| x / (1.0 + i as f64));
            a.advance_all(&cell, step).unwrap();
            for i in 0..b.len() {
                b.advance(&cell, i, step(i)).unwrap();
            }
            prop_assert_eq!(a, b);
        }
    }
}
