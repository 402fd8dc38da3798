//! The periodic cell: three lattice vectors, any of which may be periodic, and the frame that the
//! positions are counted in.
//!
//! A cell keeps two sets of vectors, both as rows and in nm:
//!
//! - the **given** vectors, exactly as they were written, for output and for the volume;
//! - the **basis**, which positions, lists and kernels use. On periodic axes it is the given lattice
//!   reduced (every vector as short as the others can make it, by a unimodular integer matrix `T`, so
//!   that basis = T · given), which makes strongly tilted but equivalent cells behave alike. On a free
//!   axis it is a *frame* vector: a unit vector orthogonal to the periodic ones, times a power of two.
//!
//! A point r with fractions s is r = s · basis, that is `r[b]` = Σₖ `s[k]·basis[k][b]`.

use serde::{Deserialize, Serialize};

/// A 3×3 matrix by rows.
type Matrix = [[f64; 3]; 3];

/// Lengths of lattice vectors that are taken for meant, nm.
const LENGTHS: std::ops::RangeInclusive<f64> = 1e-6..=1e9;

/// The smallest volume of a cell relative to the product of its vectors' lengths.
const FLATTEST: f64 = 1e-9;

/// Why three vectors are no cell.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    /// A component is infinite or not a number.
    #[error("cell vector {} has a component that is not a finite number", name(*.axis))]
    NotFinite {
        /// 0, 1 or 2 for a, b or c.
        axis: usize,
    },
    /// A vector is far too short or too long.
    #[error("cell vector {} is {length:e} nm long; lengths from 1e-6 to 1e9 nm are possible", name(*.axis))]
    Length {
        /// 0, 1 or 2 for a, b or c.
        axis: usize,
        /// Its length, nm.
        length: f64,
    },
    /// A periodic axis has no vector.
    #[error("the cell is periodic along {} but has no vector there", name(*.axis))]
    Missing {
        /// 0, 1 or 2 for a, b or c.
        axis: usize,
    },
    /// The vectors lie in a plane or on a line, or all but.
    #[error("the cell vectors are (nearly) in one plane: volume / product of lengths is {ratio:.1e}")]
    Flat {
        /// |det| divided by the product of the lengths.
        ratio: f64,
    },
    /// A point that the cell should enclose is not finite, or unbelievably far away.
    #[error("atom {index} has a coordinate that is not a finite number below 1e9 nm")]
    Point {
        /// Which point, counted from 0.
        index: usize,
    },
    /// The integer matrix of a stored cell is none that this program writes.
    #[error("the stored cell's lattice transformation is not unimodular")]
    Transformation,
}

/// A cell: orthorhombic or triclinic, periodic along any of its axes, or none.
///
/// ```
/// use md::system::cell::Cell;
/// let cell = Cell::new([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]], [true; 3]).unwrap();
/// assert_eq!(cell.volume(), Some(24.0));
/// assert_eq!(cell.cartesian([0.5, 0.5, 0.5]), [1.0, 1.5, 2.0]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Cell {
    /// As given; a zero row where there is none.
    vectors: Matrix,
    periodic: [bool; 3],
    /// T: basis = T · vectors on the periodic axes; rows and columns of the identity on the free ones.
    transformation: [[i64; 3]; 3],
    basis: Matrix,
    inverse: Matrix,
    /// The inverse of the given vectors, completed by the frame where there are none.
    given_inverse: Matrix,
    heights: [f64; 3],
    volume: Option<f64>,
    diagonal: bool,
}

/// What a stored cell consists of; the rest follows from it.
#[derive(Clone, Serialize, Deserialize)]
struct Stored {
    vectors: Matrix,
    periodic: [bool; 3],
    transformation: [[i64; 3]; 3],
    basis: Matrix,
}

impl From<Cell> for Stored {
    fn from(c: Cell) -> Stored {
        Stored { vectors: c.vectors, periodic: c.periodic, transformation: c.transformation, basis: c.basis }
    }
}

impl TryFrom<Stored> for Cell {
    type Error = CellError;

    fn try_from(s: Stored) -> Result<Cell, CellError> {
        check(&s.vectors, s.periodic)?;
        let t = s.transformation.map(|row| row.map(i128::from));
        let minor = |r: [usize; 2], c: [usize; 2]| {
            Some(t[r[0]][c[0]].checked_mul(t[r[1]][c[1]])? - t[r[0]][c[1]].checked_mul(t[r[1]][c[0]])?)
        };
        let determinant = || {
            let mut sum = 0i128;
            for (k, others) in [[1, 2], [2, 0], [0, 1]].into_iter().enumerate() {
                sum = sum.checked_add(t[0][k].checked_mul(minor([1, 2], others)?)?)?;
            }
            Some(sum)
        };
        let fixed = (0..3)
            .all(|k| s.periodic[k] || (0..3).all(|m| s.transformation[k][m] == i64::from(k == m)))
            && (0..3).all(|k| s.periodic[k] || (0..3).all(|m| s.transformation[m][k] == i64::from(k == m)));
        if !fixed || t.iter().flatten().any(|x| x.abs() > 1 << 40) || determinant() != Some(1) {
            return Err(CellError::Transformation);
        }
        Cell::assemble(s.vectors, s.periodic, s.transformation, s.basis)
    }
}

impl Cell {
    /// A cell from its vectors a, b, c (rows, nm) and which of them are periodic.
    ///
    /// A left-handed set is accepted. A zero row on a free axis means that no vector is given there; a
    /// vector given on a free axis counts for the volume and for output only. The frame on free axes is
    /// made for atoms within the length of the given vectors; [`Cell::enclosing`] looks at the atoms
    /// themselves and is to be preferred where there are free axes.
    ///
    /// # Errors
    /// Non-finite, missing, absurdly long or short vectors, and (nearly) coplanar ones: |det| less than
    /// 1e-9 of the product of the lengths.
    pub fn new(vectors: [[f64; 3]; 3], periodic: [bool; 3]) -> Result<Cell, CellError> {
        check(&vectors, periodic)?;
        let extent = (0..3).filter(|&k| !periodic[k]).map(|k| norm(vectors[k])).fold(0.0, f64::max);
        Cell::framed(vectors, periodic, |_| power_of_two(4.0 * extent))
    }

    /// No periodicity and no vectors, for atoms within `extent` nm (the frame is Cartesian, with the unit
    /// W, a power of two of at least 4 · `extent` and 1 nm).
    ///
    /// # Errors
    /// [`CellError::Length`] when `extent` is not a number from 0 to 1e9.
    pub fn open(extent: f64) -> Result<Cell, CellError> {
        if !(0.0..=*LENGTHS.end()).contains(&extent) {
            return Err(CellError::Length { axis: 0, length: extent });
        }
        Cell::framed([[0.0; 3]; 3], [false; 3], |_| power_of_two(4.0 * extent))
    }

    /// A cell for these atoms: as [`Cell::new`], with a frame on the free axes that suits `points`
    /// (Cartesian, nm). The frame's unit W is the smallest power of two that is at least 1 nm, four times
    /// the atoms' extent along any free axis, and the largest distance from the origin along one.
    ///
    /// # Errors
    /// As [`Cell::new`], and [`CellError::Point`] for a coordinate that is not finite or beyond 1e9 nm.
    pub fn enclosing(
        vectors: Option<[[f64; 3]; 3]>,
        periodic: [bool; 3],
        points: &[[f64; 3]],
    ) -> Result<Cell, CellError> {
        let vectors = vectors.unwrap_or([[0.0; 3]; 3]);
        check(&vectors, periodic)?;
        if let Some(index) = points.iter().position(|p| !p.iter().all(|x| x.abs() <= *LENGTHS.end())) {
            return Err(CellError::Point { index });
        }
        Cell::framed(vectors, periodic, |frame| {
            let mut needed: f64 = 0.0;
            for (k, &unit) in frame.iter().enumerate() {
                if !periodic[k] {
                    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
                    for &p in points {
                        let x = dot(unit, p);
                        (low, high) = (low.min(x), high.max(x));
                    }
                    if low <= high {
                        needed = needed.max(4.0 * (high - low)).max(high.abs()).max(low.abs());
                    }
                }
            }
            power_of_two(needed)
        })
    }

    /// Finds the frame, asks `unit` for its length W and reduces the lattice. `vectors` are checked.
    fn framed(
        vectors: Matrix,
        periodic: [bool; 3],
        unit: impl FnOnce(&Matrix) -> f64,
    ) -> Result<Cell, CellError> {
        let frame = frame(&vectors, periodic)?;
        let w = unit(&frame);
        let transformation = reduce(&vectors, periodic)?;
        let basis = std::array::from_fn(|k| match periodic[k] {
            true => combine(&transformation[k], &vectors),
            false => frame[k].map(|x| x * w),
        });
        Cell::assemble(vectors, periodic, transformation, basis)
    }

    /// Puts together what is known and checks that neither set of vectors is flat. The periodic rows of
    /// `basis` are worked out anew.
    fn assemble(
        vectors: Matrix,
        periodic: [bool; 3],
        transformation: [[i64; 3]; 3],
        mut basis: Matrix,
    ) -> Result<Cell, CellError> {
        for k in 0..3 {
            if periodic[k] {
                basis[k] = combine(&transformation[k], &vectors);
            }
        }
        let given = vectors.map(|v| v != [0.0; 3]);
        let completed = std::array::from_fn(|k| if given[k] { vectors[k] } else { basis[k] });
        for set in [&completed, &basis] {
            if let Some(axis) = set.iter().position(|v| !v.iter().all(|x| x.is_finite())) {
                return Err(CellError::NotFinite { axis });
            }
            let ratio = determinant(set).abs() / set.iter().map(|&v| norm(v)).product::<f64>();
            // Also refuses what is not a number.
            if !matches!(ratio.partial_cmp(&FLATTEST), Some(o) if o.is_ge()) {
                return Err(CellError::Flat { ratio });
            }
        }
        let inverse = invert(&basis);
        let heights = std::array::from_fn(|k| match periodic[k] {
            true => 1.0 / norm([inverse[0][k], inverse[1][k], inverse[2][k]]),
            false => f64::INFINITY,
        });
        Ok(Cell {
            vectors,
            periodic,
            transformation,
            basis,
            inverse,
            given_inverse: invert(&completed),
            heights,
            volume: (given == [true; 3]).then(|| determinant(&vectors).abs()),
            diagonal: is_diagonal(&basis),
        })
    }

    /// The vectors a, b, c as they were given, rows, nm; a zero row where there is none.
    pub fn vectors(&self) -> [[f64; 3]; 3] {
        self.vectors
    }

    /// The vectors that fractions refer to, rows, nm: the reduced lattice on periodic axes, the frame on
    /// free ones.
    pub fn basis(&self) -> [[f64; 3]; 3] {
        self.basis
    }

    /// The inverse M of the basis, 1/nm: `s[k]` = Σ `r[b]·M[b][k]`.
    pub fn inverse(&self) -> [[f64; 3]; 3] {
        self.inverse
    }

    /// Which axes are periodic.
    pub fn periodic(&self) -> [bool; 3] {
        self.periodic
    }

    /// Which vectors were given.
    pub fn given(&self) -> [bool; 3] {
        self.vectors.map(|v| v != [0.0; 3])
    }

    /// The integer matrix T (determinant 1) of the reduction: `basis[k]` = Σₘ `T[k][m]·vectors[m]` on
    /// periodic axes.
    pub fn transformation(&self) -> [[i64; 3]; 3] {
        self.transformation
    }

    /// The distances between opposite faces of the basis, nm; infinite on free axes.
    ///
    /// A displacement whose fraction along axis k is x has at least the length |x|·`heights()[k]`.
    pub fn heights(&self) -> [f64; 3] {
        self.heights
    }

    /// |det(a, b, c)| in nm³ when all three vectors were given, periodic or not.
    pub fn volume(&self) -> Option<f64> {
        self.volume
    }

    /// Whether the basis is diagonal: vector k lies along Cartesian axis k.
    pub fn is_orthorhombic(&self) -> bool {
        self.diagonal
    }

    /// The Cartesian vector of fractions s, nm: `s[0]·basis[0] + s[1]·basis[1] + s[2]·basis[2]`, added in
    /// this order and without fused operations.
    #[inline]
    pub fn cartesian(&self, s: [f64; 3]) -> [f64; 3] {
        let b = &self.basis;
        std::array::from_fn(|x| s[0] * b[0][x] + s[1] * b[1][x] + s[2] * b[2][x])
    }

    /// The fractions of a Cartesian vector r (nm) in the basis.
    #[inline]
    pub fn fraction(&self, r: [f64; 3]) -> [f64; 3] {
        times(r, &self.inverse)
    }

    /// Wraps a point (Cartesian, nm) into the cell of the *given* vectors, for output.
    ///
    /// Returns the wrapped point and images n with r = wrapped + Σ `n[k]·vectors()[k]`; n is zero on free
    /// axes, and saturates for points that are more than 2³¹ cells away.
    pub fn wrap_given(&self, r: [f64; 3]) -> ([f64; 3], [i32; 3]) {
        let mut images = [0i32; 3];
        let mut point = r;
        // The second pass catches what rounding left just outside.
        for _ in 0..2 {
            let s = times(point, &self.given_inverse);
            for k in 0..3 {
                if self.periodic[k] {
                    images[k] = images[k].saturating_add(s[k].floor() as i32);
                }
            }
            point = std::array::from_fn(|x| {
                (0..3).fold(r[x], |sum, k| sum - f64::from(images[k]) * self.vectors[k][x])
            });
        }
        (point, images)
    }

    /// Images n counted in the given vectors, as counts of the basis vectors: n · T⁻¹.
    ///
    /// None when they do not fit 32 bits.
    pub fn images_in_basis(&self, n: [i32; 3]) -> Option<[i32; 3]> {
        if n == [0; 3] {
            return Some(n);
        }
        // T has the determinant 1, so its inverse is its adjugate.
        let t = self.transformation.map(|row| row.map(i128::from));
        let mut out = [0; 3];
        for (k, out) in out.iter_mut().enumerate() {
            let mut sum = 0i128;
            for (m, &n) in n.iter().enumerate() {
                // T⁻¹[m][k] = cofactor of T[k][m]
                let (r0, r1, c0, c1) = ((k + 1) % 3, (k + 2) % 3, (m + 1) % 3, (m + 2) % 3);
                let cofactor = t[r0][c0] * t[r1][c1] - t[r0][c1] * t[r1][c0];
                sum = sum.checked_add(cofactor.checked_mul(i128::from(n))?)?;
            }
            *out = i32::try_from(sum).ok()?;
        }
        Some(out)
    }

    /// The cell with every vector v turned into v·(1 + ε), that is `v'[b]` = Σₐ `v[a]·(δ[a][b] + ε[a][b])`,
    /// with the same integer transformation, so that unchanged fractions move with the cell. Frame vectors
    /// of free axes are strained too: every point r becomes r·(1 + ε).
    ///
    /// # Errors
    /// When the result is no cell: not finite, or flat.
    pub fn strained(&self, epsilon: [[f64; 3]; 3]) -> Result<Cell, CellError> {
        let strain = |v: [f64; 3]| -> [f64; 3] {
            let change = times(v, &epsilon);
            std::array::from_fn(|b| v[b] + change[b])
        };
        let vectors = self.vectors.map(strain);
        check(&vectors, self.periodic)?;
        Cell::assemble(vectors, self.periodic, self.transformation, self.basis.map(strain))
    }

    /// The shortest image of a displacement.
    ///
    /// `s` are its fractions, already wrapped to [-½, ½] on periodic axes; the result differs from them by
    /// integers there. Of equally short images the one that was given wins, then the first in
    /// lexicographic order.
    pub fn nearest(&self, s: [f64; 3]) -> [f64; 3] {
        if self.diagonal {
            return s;
        }
        let squared = |s: [f64; 3]| {
            let d = self.cartesian(s);
            dot(d, d)
        };
        let mut shortest = squared(s);
        let half = 0.5 * self.heights.iter().copied().fold(f64::INFINITY, f64::min);
        if !matches!(shortest.partial_cmp(&(half * half)), Some(o) if o.is_gt()) {
            return s;
        }
        // A shorter image has |sₖ + nₖ| < |d|/heightₖ. Eight images are far more than a reduced cell needs.
        let length = shortest.sqrt();
        let range = |k: usize| match self.periodic[k] {
            true => {
                let reach = length / self.heights[k];
                ((-reach - s[k]).ceil().max(-8.0) as i32)..=((reach - s[k]).floor().min(8.0) as i32)
            }
            false => 0..=0,
        };
        let mut best = s;
        for a in range(0) {
            for b in range(1) {
                for c in range(2) {
                    let image = [s[0] + f64::from(a), s[1] + f64::from(b), s[2] + f64::from(c)];
                    let d = squared(image);
                    if d < shortest {
                        (shortest, best) = (d, image);
                    }
                }
            }
        }
        best
    }
}

fn name(axis: usize) -> &'static str {
    ["a", "b", "c"].get(axis).copied().unwrap_or("?")
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

fn unit(a: [f64; 3]) -> [f64; 3] {
    let n = norm(a);
    a.map(|x| x / n)
}

/// v · m for a row v.
#[inline]
fn times(v: [f64; 3], m: &Matrix) -> [f64; 3] {
    std::array::from_fn(|k| v[0] * m[0][k] + v[1] * m[1][k] + v[2] * m[2][k])
}

fn determinant(m: &Matrix) -> f64 {
    dot(m[0], cross(m[1], m[2]))
}

fn is_diagonal(m: &Matrix) -> bool {
    (0..3).all(|k| (0..3).all(|x| k == x || m[k][x] == 0.0))
}

fn invert(m: &Matrix) -> Matrix {
    if is_diagonal(m) {
        return std::array::from_fn(|k| std::array::from_fn(|x| if k == x { 1.0 / m[k][k] } else { 0.0 }));
    }
    let det = determinant(m);
    let columns = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])];
    std::array::from_fn(|b| std::array::from_fn(|k| columns[k][b] / det))
}

/// Σₘ t[m]·vectors[m].
fn combine(t: &[i64; 3], vectors: &Matrix) -> [f64; 3] {
    std::array::from_fn(|x| (0..3).map(|m| t[m] as f64 * vectors[m][x]).sum::<f64>() + 0.0)
}

/// The smallest power of two that is at least `x` and 1.
fn power_of_two(x: f64) -> f64 {
    let mut w = 1.0;
    while w < x && w < 1e300 {
        w *= 2.0;
    }
    w
}

/// Vectors are finite, present on periodic axes and of a believable length.
fn check(vectors: &Matrix, periodic: [bool; 3]) -> Result<(), CellError> {
    for (axis, &v) in vectors.iter().enumerate() {
        if !v.iter().all(|x| x.is_finite()) {
            return Err(CellError::NotFinite { axis });
        }
        if v == [0.0; 3] {
            if periodic[axis] {
                return Err(CellError::Missing { axis });
            }
        } else if !LENGTHS.contains(&norm(v)) {
            return Err(CellError::Length { axis, length: norm(v) });
        }
    }
    Ok(())
}

/// Unit vectors for the free axes, orthogonal to each other and to the periodic vectors; the rows of
/// periodic axes are not used.
fn frame(vectors: &Matrix, periodic: [bool; 3]) -> Result<Matrix, CellError> {
    let cartesian = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let given = vectors.map(|v| v != [0.0; 3]);
    let mut frame = cartesian;
    // The sign that a given vector asks for.
    let along = |k: usize, v: [f64; 3]| if given[k] && dot(v, vectors[k]) < 0.0 { v.map(|x| -x) } else { v };
    match periodic.iter().filter(|&&p| p).count() {
        2 => {
            let k = periodic.iter().position(|&p| !p).unwrap_or(2);
            let (a, b) = (vectors[(k + 1) % 3], vectors[(k + 2) % 3]);
            let normal = cross(a, b);
            let ratio = norm(normal) / (norm(a) * norm(b));
            if !matches!(ratio.partial_cmp(&FLATTEST), Some(o) if o.is_ge()) {
                return Err(CellError::Flat { ratio });
            }
            frame[k] = along(k, unit(normal).map(|x| x + 0.0));
        }
        1 => {
            let p = periodic.iter().position(|&p| p).unwrap_or(0);
            let (q, t) = ((p + 1) % 3, (p + 2) % 3);
            let axis = unit(vectors[p]);
            // What is left of v beside the axis.
            let beside = |v: [f64; 3]| -> Result<[f64; 3], CellError> {
                let (v, x) = (unit(v), dot(unit(v), axis));
                let rest: [f64; 3] = std::array::from_fn(|b| v[b] - x * axis[b]);
                let ratio = norm(rest);
                if !matches!(ratio.partial_cmp(&FLATTEST), Some(o) if o.is_ge()) {
                    return Err(CellError::Flat { ratio });
                }
                // Once more, for what cancellation left.
                let (v, x) = (unit(rest), dot(unit(rest), axis));
                Ok(unit(std::array::from_fn(|b| v[b] - x * axis[b])))
            };
            if given[q] || !given[t] {
                let seed = match given[q] {
                    true => vectors[q],
                    false if dot(cartesian[q], axis).abs() < 0.9 => cartesian[q],
                    false => cartesian[p],
                };
                frame[q] = beside(seed)?;
                frame[t] = along(t, cross(axis, frame[q]).map(|x| x + 0.0));
            } else {
                frame[t] = beside(vectors[t])?;
                frame[q] = cross(frame[t], axis).map(|x| x + 0.0);
            }
        }
        _ => {}
    }
    Ok(frame)
}

/// The integer matrix that makes every periodic vector as short as the other periodic ones can.
///
/// Only multiples of one vector are added to another, so the order, the handedness and, where nothing can
/// be gained, the vectors themselves stay. At the end no vector v is longer than v ± u or v ± u ± w for
/// the other two u and w, which is Minkowski's condition in three dimensions.
fn reduce(vectors: &Matrix, periodic: [bool; 3]) -> Result<[[i64; 3]; 3], CellError> {
    let flat = CellError::Flat { ratio: 0.0 };
    let mut t: [[i64; 3]; 3] = std::array::from_fn(|k| std::array::from_fn(|m| i64::from(k == m)));
    let axes: Vec<usize> = (0..3).filter(|&k| periodic[k]).collect();
    let mut basis = *vectors;
    // Adds x·(row m) to row k if that makes it shorter by more than rounding could.
    let shorter = |t: &mut [[i64; 3]; 3], basis: &mut Matrix, k: usize, steps: [(usize, f64); 2]| {
        let mut row = t[k];
        for (m, x) in steps {
            if x.abs() > 1e12 {
                return Err(flat.clone());
            }
            for (row, &add) in row.iter_mut().zip(&t[m]) {
                *row = add
                    .checked_mul(x as i64)
                    .and_then(|y| row.checked_add(y))
                    .filter(|y| y.abs() < 1 << 40)
                    .ok_or_else(|| flat.clone())?;
            }
        }
        let candidate = combine(&row, vectors);
        let better = dot(candidate, candidate) < dot(basis[k], basis[k]) * (1.0 - 1e-9);
        if better {
            t[k] = row;
            basis[k] = candidate;
        }
        Ok(better)
    };
    for _ in 0..1000 {
        let mut changed = false;
        for &k in &axes {
            for &m in axes.iter().filter(|&&m| m != k) {
                let x = -(dot(basis[k], basis[m]) / dot(basis[m], basis[m])).round();
                if x != 0.0 {
                    changed |= shorter(&mut t, &mut basis, k, [(m, x), (m, 0.0)])?;
                }
            }
            if axes.len() == 3 {
                for (x, y) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
                    changed |= shorter(&mut t, &mut basis, k, [((k + 1) % 3, x), ((k + 2) % 3, y)])?;
                }
            }
        }
        if !changed {
            return Ok(t);
        }
    }
    Err(flat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: [f64; 3], b: [f64; 3], tolerance: f64) -> bool {
        (0..3).all(|k| (a[k] - b[k]).abs() <= tolerance)
    }

    /// The shortest image by trying many.
    fn shortest(cell: &Cell, s: [f64; 3]) -> f64 {
        let mut best = f64::INFINITY;
        let range = |k: usize| if cell.periodic()[k] { -4..=4 } else { 0..=0 };
        for a in range(0) {
            for b in range(1) {
                for c in range(2) {
                    let d = cell.cartesian([s[0] + f64::from(a), s[1] + f64::from(b), s[2] + f64::from(c)]);
                    best = best.min(norm(d));
                }
            }
        }
        best
    }

    #[test]
    fn a_box_is_itself() {
        let v = [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]];
        let cell = Cell::new(v, [true; 3]).unwrap();
        assert_eq!((cell.vectors(), cell.basis()), (v, v));
        assert_eq!(cell.heights(), [2.0, 3.0, 4.0]);
        assert!(cell.is_orthorhombic());
        assert_eq!(cell.fraction([1.0, 1.5, -1.0]), [0.5, 0.5, -0.25]);
        assert_eq!(cell.wrap_given([-0.5, 7.0, 4.0]), ([1.5, 1.0, 0.0], [-1, 2, 1]));
    }

    #[test]
    fn tilted_vectors_reduce_to_the_box_they_are() {
        // b + 7a, c - 3a + 5b: the same lattice as the 2 × 3 × 4 box.
        let cell =
            Cell::new([[2.0, 0.0, 0.0], [14.0, 3.0, 0.0], [-6.0 + 70.0, 15.0, 4.0]], [true; 3]).unwrap();
        assert_eq!(cell.basis(), [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]]);
        assert_eq!(cell.volume(), Some(24.0));
        // One image of the given b is 7 of the reduced a and one of the reduced b.
        assert_eq!(cell.images_in_basis([0, 1, 0]), Some([7, 1, 0]));
        assert_eq!(cell.images_in_basis([0, 0, 1]), Some([32, 5, 1]));
    }

    #[test]
    fn a_truncated_octahedron_stays_and_a_hexagonal_tie_stays() {
        let l = 3.0;
        let v = [
            [l, 0.0, 0.0],
            [l / 3.0, l * 8f64.sqrt() / 3.0, 0.0],
            [-l / 3.0, l * 2f64.sqrt() / 3.0, l * 6f64.sqrt() / 3.0],
        ];
        assert_eq!(Cell::new(v, [true; 3]).unwrap().basis(), v);
        let hexagonal = [[2.0, 0.0, 0.0], [1.0, 3f64.sqrt(), 0.0], [0.0, 0.0, 5.0]];
        assert_eq!(Cell::new(hexagonal, [true; 3]).unwrap().basis(), hexagonal);
    }

    #[test]
    fn what_is_no_cell_is_refused() {
        let e = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let with = |k: usize, v: [f64; 3]| {
            let mut m = e;
            m[k] = v;
            Cell::new(m, [true; 3])
        };
        assert_eq!(with(1, [f64::NAN, 0.0, 0.0]), Err(CellError::NotFinite { axis: 1 }));
        assert_eq!(with(2, [0.0; 3]), Err(CellError::Missing { axis: 2 }));
        assert!(matches!(with(2, [1.0, 1.0, 1e-12]), Err(CellError::Flat { .. })));
        assert!(matches!(with(2, [1.0, 1.0, 0.0]), Err(CellError::Flat { .. })));
        assert!(matches!(with(0, [1e300, 0.0, 0.0]), Err(CellError::Length { axis: 0, .. })));
        assert!(matches!(Cell::open(f64::NAN), Err(CellError::Length { .. })));
        assert!(Cell::enclosing(None, [true, false, false], &[]).is_err());
        assert_eq!(
            Cell::enclosing(None, [false; 3], &[[0.0; 3], [0.0, f64::INFINITY, 0.0]]),
            Err(CellError::Point { index: 1 })
        );
        assert!(
            Cell::new([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0; 3]], [true, true, false]).is_err(),
            "two parallel periodic vectors"
        );
        assert!(Cell::new([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0; 3]], [true, false, false]).is_err());
        // Left-handed is a cell.
        let left = Cell::new([e[1], e[0], e[2]], [true; 3]).unwrap();
        assert_eq!(left.volume(), Some(1.0));
    }

    #[test]
    fn frames_of_free_axes() {
        let open = Cell::enclosing(None, [false; 3], &[[0.0, 0.0, 0.0], [1.0, 0.5, 2.1]]).unwrap();
        assert_eq!(open.basis(), [[16.0, 0.0, 0.0], [0.0, 16.0, 0.0], [0.0, 0.0, 16.0]]);
        assert_eq!((open.volume(), open.heights()), (None, [f64::INFINITY; 3]));
        // A slab with a slanting third vector: kept for the volume, not for the frame.
        let v = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, 10.0]];
        let slab =
            Cell::enclosing(Some(v), [true, true, false], &[[0.0, 0.0, 3.0], [0.0, 0.0, 4.0]]).unwrap();
        assert_eq!(slab.volume(), Some(40.0));
        assert_eq!(slab.vectors(), v);
        assert_eq!(slab.basis()[2], [0.0, 0.0, 4.0]);
        assert_eq!(slab.heights(), [2.0, 2.0, f64::INFINITY]);
        let wire = Cell::new([[0.0; 3], [0.0, 0.0, 3.0], [0.0; 3]], [false, true, false]).unwrap();
        let b = wire.basis();
        assert!(
            dot(b[0], b[1]).abs() < 1e-15 && dot(b[2], b[1]).abs() < 1e-15 && dot(b[0], b[2]).abs() < 1e-15
        );
        assert_eq!(wire.volume(), None);
        assert!(determinant(&b) > 0.0);
        // Far from the origin the grid still has the resolution of the coordinates.
        let far = Cell::enclosing(None, [false; 3], &[[1000.0, 0.0, 0.0]]).unwrap();
        assert_eq!(far.basis()[0], [1024.0, 0.0, 0.0]);
    }

    #[test]
    fn strain_moves_every_vector() {
        let v = [[2.0, 0.0, 0.0], [5.0, 3.0, 0.0], [0.5, 0.25, 4.0]];
        let cell = Cell::new(v, [true; 3]).unwrap();
        let epsilon = [[0.01, 0.002, 0.0], [0.0, -0.02, 0.0], [0.0, 0.004, 0.0]];
        let strained = cell.strained(epsilon).unwrap();
        assert_eq!(strained.transformation(), cell.transformation());
        let s = [0.3, -0.2, 0.7];
        let r = cell.cartesian(s);
        let expected: [f64; 3] =
            std::array::from_fn(|b| r[b] + (0..3).map(|a| r[a] * epsilon[a][b]).sum::<f64>());
        assert!(near(strained.cartesian(s), expected, 1e-14));
        assert!(cell.strained([[-1.0, 0.0, 0.0], [0.0; 3], [0.0; 3]]).is_err());
        assert!(cell.strained([[f64::NAN; 3]; 3]).is_err());
    }

    #[test]
    fn a_stored_cell_comes_back_bit_by_bit() {
        let v = [[2.0, 0.1, 0.0], [5.0, 3.0, 0.3], [0.5, 0.25, 4.0]];
        for periodic in [[true; 3], [true, true, false], [false, true, false], [false; 3]] {
            let cell =
                Cell::new(v, periodic).unwrap().strained([[0.01, 0.003, 0.0], [0.0; 3], [0.0; 3]]).unwrap();
            let json = serde_json::to_string(&cell).unwrap();
            assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), cell);
        }
        let bad = r#"{"vectors":[[1,0,0],[0,1,0],[0,0,1]],"periodic":[true,true,true],
            "transformation":[[2,0,0],[0,1,0],[0,0,1]],"basis":[[1,0,0],[0,1,0],[0,0,1]]}"#;
        assert!(serde_json::from_str::<Cell>(bad).is_err());
    }

    fn lattice() -> impl Strategy<Value = Matrix> {
        (
            prop::array::uniform3(0.5..4.0f64),
            prop::array::uniform3(-9.0..9.0f64),
            prop::array::uniform3(-0.3..0.3),
        )
            .prop_map(|(l, tilt, turn): ([f64; 3], [f64; 3], [f64; 3])| {
                [[l[0], turn[0], turn[1]], [tilt[0], l[1], turn[2]], [tilt[1], tilt[2], l[2]]]
            })
    }

    proptest! {
        #[test]
        fn reduction_keeps_the_lattice(v in lattice(), p in prop::array::uniform3(any::<bool>())) {
            let Ok(cell) = Cell::new(v, p) else { return Ok(()) };
            // Minkowski: no periodic basis vector can be shortened by the others.
            let b = cell.basis();
            for k in 0..3 {
                for (x, y) in [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)] {
                    let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                    if !p[k] || (x != 0 && !p[i]) || (y != 0 && !p[j]) { continue }
                    let c: [f64; 3] = std::array::from_fn(|a| b[k][a] + f64::from(x) * b[i][a] + f64::from(y) * b[j][a]);
                    prop_assert!(norm(c) >= norm(b[k]) * (1.0 - 1e-8));
                }
                // Images counted in the given vectors name the same lattice points.
                let mut n = [0; 3];
                n[k] = i32::from(p[k]);
                let m = cell.images_in_basis(n).unwrap();
                let given = v[k].map(|x| x * f64::from(n[k]));
                prop_assert!(near(cell.cartesian(m.map(f64::from)), given, 1e-9));
                // Free frame vectors are orthogonal to everything else.
                for m in 0..3 {
                    if m != k && !p[k] {
                        prop_assert!(dot(b[k], b[m]).abs() < 1e-9 * norm(b[k]) * norm(b[m]));
                    }
                }
            }
        }

        #[test]
        fn fractions_and_wrapping_invert(v in lattice(), p in prop::array::uniform3(any::<bool>()), r in prop::array::uniform3(-50.0..50.0f64)) {
            let Ok(cell) = Cell::new(v, p) else { return Ok(()) };
            prop_assert!(near(cell.cartesian(cell.fraction(r)), r, 1e-9));
            let (w, n) = cell.wrap_given(r);
            let back: [f64; 3] = std::array::from_fn(|x| w[x] + (0..3).map(|k| f64::from(n[k]) * v[k][x]).sum::<f64>());
            prop_assert!(near(back, r, 1e-8));
            let s = times(w, &cell.given_inverse);
            for k in 0..3 {
                let inside = if p[k] { (-1e-9..1.0 + 1e-9).contains(&s[k]) } else { n[k] == 0 };
                prop_assert!(inside);
            }
        }

        #[test]
        fn nearest_is_the_shortest(v in lattice(), p in prop::array::uniform3(any::<bool>()), s in prop::array::uniform3(-0.5..0.5f64)) {
            let Ok(cell) = Cell::new(v, p) else { return Ok(()) };
            let found = cell.nearest(s);
            for k in 0..3 {
                let n = found[k] - s[k];
                prop_assert!((n - n.round()).abs() < 1e-12 && (p[k] || n == 0.0));
            }
            prop_assert!((norm(cell.cartesian(found)) - shortest(&cell, s)).abs() < 1e-9);
        }
    }
}
