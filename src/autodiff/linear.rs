//! Linear systems, differentiated implicitly: one more solve, whatever the solver did.
//!
//! From A y = b follows Ȧ y + A ẏ = ḃ: forward mode solves with the same matrix and another right-hand side. Reverse
//! mode solves once with the transposed matrix, Aᵀ λ = ȳ, and then b̄ = λ and Ā = −λ yᵀ.

use super::operators::{Operand, Operator, OperatorError, product, transposed};
use std::sync::Arc;

/// A⁻¹ b of an n × n matrix by rows and, after it, a right-hand side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solve {
    pub size: usize,
}

impl Operator for Solve {
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let n = self.size;
        let (a, b) = x.split_at(n * n);
        let a = nalgebra::DMatrix::from_row_slice(n, n, a);
        let y = a.lu().solve(&nalgebra::DVector::from_column_slice(b));
        let y = y.filter(|y| y.iter().all(|y| y.is_finite()));
        y.map(|y| y.as_slice().to_vec()).ok_or(OperatorError::Singular { size: n })
    }
    fn pushforward<S: Operand>(&self, x: &[S], y: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        let n = self.size;
        let ((a, _), (da, db)) = (x.split_at(n * n), tangent.split_at(n * n));
        let moved = product(da, y, [n, n, 1]);
        let right: Vec<S> = db.iter().zip(moved).map(|(&db, m)| db - m).collect();
        S::apply(self, &[a, &right].concat())
    }
    fn pullback<S: Operand>(&self, x: &[S], y: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        let n = self.size;
        let lambda = S::apply(self, &[&transposed(&x[..n * n], n, n), adjoint].concat())?;
        let of_a = lambda.iter().flat_map(|&l| y.iter().map(move |&y| -(l * y)));
        Ok(of_a.chain(lambda.iter().copied()).collect())
    }
}

/// The solution of A y = b, for an n × n matrix given by rows (n is the length of b). One factorisation with pivots for
/// the value and one for each derivative.
///
/// # Errors
/// A singular matrix.
///
/// # Panics
/// If the matrix has not n² numbers.
///
/// ```
/// use md::autodiff::{Tape, linear::solve};
/// let tape = Tape::new();
/// let a = [2.0, 1.0, 1.0, 3.0].map(|x| tape.variable(x));
/// let b = [1.0, 2.0].map(|x| tape.variable(x));
/// let y = solve(&a, &b).unwrap();
/// let gradient = tape.gradient(y[0]);
/// // y = (1, 3)/5 and b̄ = A⁻ᵀ (1, 0) = (3, −1)/5, Ā = −b̄ yᵀ
/// let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-15);
/// close(gradient.of(b[0]), 0.6);
/// close(gradient.of(a[1]), -0.6 * 0.6);
/// ```
pub fn solve<S: Operand>(a: &[S], b: &[S]) -> Result<Vec<S>, OperatorError> {
    let n = b.len();
    assert_eq!(a.len(), n * n, "a square matrix for {n} equations");
    S::apply(&Solve { size: n }, &[a, b].concat())
}

/// Which entries of a square matrix are not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    size: usize,
    entries: Arc<[(usize, usize)]>,
}

impl Pattern {
    /// Of an n × n matrix; entries are (row, column). One that stands there twice is added up.
    ///
    /// # Panics
    /// If an entry is outside of the matrix.
    pub fn new(size: usize, entries: &[(usize, usize)]) -> Self {
        assert!(entries.iter().all(|&(r, c)| r < size && c < size), "an entry is outside of the matrix");
        Self { size, entries: entries.into() }
    }
    /// How many rows.
    pub fn size(&self) -> usize {
        self.size
    }
    /// The entries: (row, column).
    pub fn entries(&self) -> &[(usize, usize)] {
        &self.entries
    }
    /// The transposed pattern: entry for entry with row and column exchanged.
    fn transposed(&self) -> Self {
        Self { size: self.size, entries: self.entries.iter().map(|&(r, c)| (c, r)).collect() }
    }
}

/// A⁻¹ b of a sparse matrix: its entries, and after them a right-hand side.
#[derive(Clone, Debug)]
struct SolveSparse {
    pattern: Pattern,
}

impl Operator for SolveSparse {
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let (entries, b) = x.split_at(self.pattern.entries.len());
        let Pattern { size, entries: places } = &self.pattern;
        let (mut triplets, mut y) = (rsparse::data::Trpl::new(), b.to_vec());
        (triplets.m, triplets.n) = (*size, *size);
        places.iter().zip(entries).for_each(|(&(r, c), &x)| triplets.append(r, c, x));
        triplets.sum_dupl();
        let mut a = rsparse::data::Sprs::new();
        a.from_trpl(&triplets);
        // (in the order for LU of few new entries, which the library cannot find for a single row; with the largest pivots)
        let order = if *size > 2 { 1 } else { -1 };
        let solved = rsparse::lusol(&a, &mut y, order, 1.0).is_ok() && y.iter().all(|y| y.is_finite());
        if solved { Ok(y) } else { Err(OperatorError::Singular { size: *size }) }
    }
    fn pushforward<S: Operand>(&self, x: &[S], y: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        let entries = &self.pattern.entries;
        let (da, db) = tangent.split_at(entries.len());
        let mut right = db.to_vec();
        for (&(r, c), &da) in entries.iter().zip(da) {
            right[r] = right[r] - da * y[c];
        }
        S::apply(self, &[&x[..entries.len()], &right].concat())
    }
    fn pullback<S: Operand>(&self, x: &[S], y: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        let entries = &self.pattern.entries;
        let turned = SolveSparse { pattern: self.pattern.transposed() };
        let lambda = S::apply(&turned, &[&x[..entries.len()], adjoint].concat())?;
        let of_a = entries.iter().map(|&(r, c)| -(lambda[r] * y[c]));
        Ok(of_a.chain(lambda.iter().copied()).collect())
    }
}

/// The solution of A y = b for a sparse matrix with these entries, in the order of its pattern. Derivatives exist with
/// respect to the entries alone: zeros stay zeros.
///
/// # Errors
/// A singular matrix.
///
/// # Panics
/// If there are not as many entries as in the pattern, or not as many right-hand sides as rows.
pub fn solve_sparse<S: Operand>(pattern: &Pattern, a: &[S], b: &[S]) -> Result<Vec<S>, OperatorError> {
    assert_eq!(a.len(), pattern.entries.len(), "as many entries as in the pattern");
    assert_eq!(b.len(), pattern.size, "as many right-hand sides as rows");
    S::apply(&SolveSparse { pattern: pattern.clone() }, &[a, b].concat())
}
