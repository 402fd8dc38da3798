//! Eigenvectors and spectra of large symmetric matrices that are known by their products only.

use super::dot;
use crate::random::{Noise, Purpose};
use nalgebra::{DMatrix, DVector, SymmetricEigen};
use std::cell::Cell;

/// Why eigenvectors were not found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "after {products} products {converged} of {wanted} eigenvectors are found, the next with a residual of {residual:e}"
)]
pub struct NotConverged {
    /// How many products were formed.
    pub products: usize,
    /// How many eigenvectors are good.
    pub converged: usize,
    /// How many were wanted.
    pub wanted: usize,
    /// The residual of the first that is not.
    pub residual: f64,
}

/// Some eigenvectors.
#[derive(Clone, Debug)]
pub struct Eigenvectors {
    /// Ascending.
    pub values: Vec<f64>,
    /// Columns.
    pub vectors: DMatrix<f64>,
    /// ‖A v − λ v‖ of each.
    pub residuals: Vec<f64>,
    /// How many products it took.
    pub products: usize,
}

/// All eigenvectors of a matrix of `n` rows, by its products with unit vectors.
///
/// # Errors
/// Those of the products.
pub fn all<E>(n: usize, product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>) -> Result<Eigenvectors, E> {
    let matrix = matrix(n, product)?;
    let (values, vectors) = sorted(matrix.clone());
    let residuals = (0..n).map(|k| (&matrix * vectors.column(k) - vectors.column(k) * values[k]).norm());
    Ok(Eigenvectors { residuals: residuals.collect(), values, vectors, products: n })
}

/// The matrix itself, by its products with unit vectors.
///
/// # Errors
/// Those of the products.
pub fn matrix<E>(
    n: usize,
    mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<DMatrix<f64>, E> {
    let mut matrix = DMatrix::zeros(n, n);
    let mut unit = vec![0.0; n];
    for k in 0..n {
        unit[k] = 1.0;
        matrix.column_mut(k).copy_from_slice(&product(&unit)?);
        unit[k] = 0.0;
    }
    // (products are exact to rounding, and so is its symmetry)
    Ok((&matrix + matrix.transpose()) * 0.5)
}

/// Eigenvalues in order, and eigenvectors with them.
fn sorted(matrix: DMatrix<f64>) -> (Vec<f64>, DMatrix<f64>) {
    if matrix.is_empty() {
        return (Vec::new(), matrix);
    }
    let found = SymmetricEigen::new(matrix);
    let mut order: Vec<usize> = (0..found.eigenvalues.len()).collect();
    order.sort_by(|&a, &b| found.eigenvalues[a].total_cmp(&found.eigenvalues[b]));
    let columns: Vec<_> = order.iter().map(|&k| found.eigenvectors.column(k)).collect();
    let vectors = DMatrix::from_columns(&columns);
    (order.iter().map(|&k| found.eigenvalues[k]).collect(), vectors)
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Lowest {
    /// How many eigenvectors.
    pub count: usize,
    /// The largest residual, in units of the largest eigenvalue.
    pub tolerance: f64,
    /// At most so many products.
    pub products: usize,
}

impl Lowest {
    /// The eigenvectors of the lowest eigenvalues, by a block Krylov method: the space grows by the residuals of what has not
    /// converged, each smoothed by a Chebyshev polynomial that is about 1/A, and is restarted with the best of it when it
    /// is large (block Davidson; E. R. Davidson, J. Comput. Phys. 17, 87 (1975); Y. Saad, Numerical Methods for Large
    /// Eigenvalue Problems, ch. 8). Several at a time, so that equal eigenvalues are found as often as they are there.
    ///
    /// `told` is called with how many have converged.
    ///
    /// # Errors
    /// Those of the products, or that it takes too many.
    pub fn find<E: From<NotConverged>>(
        &self,
        n: usize,
        mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
        mut told: impl FnMut(usize),
    ) -> Result<Eigenvectors, E> {
        let count = self.count.min(n);
        if count == 0 {
            let (values, residuals) = (Vec::new(), Vec::new());
            return Ok(Eigenvectors { values, vectors: DMatrix::zeros(n, 0), residuals, products: 0 });
        }
        if n <= SMALL {
            let Eigenvectors { values, vectors, residuals, products } = all(n, product)?;
            let vectors = vectors.columns(0, count).into_owned();
            let (values, residuals) = (values[..count].to_vec(), residuals[..count].to_vec());
            return Ok(Eigenvectors { values, vectors, residuals, products });
        }
        let block = 8;
        let keep = (count + block).min(n);
        let room = (2 * keep + 12 * block).min(n);
        let products = Cell::new(0);
        let mut apply = |v: &[f64]| -> Result<Vec<f64>, E> {
            products.set(products.get() + 1);
            product(v)
        };
        let top = largest(n, &mut apply)?;
        // (what is below is what is wanted)
        let mut low = top / 300.0;
        let mut basis = DMatrix::<f64>::zeros(n, room);
        let mut images = DMatrix::<f64>::zeros(n, room);
        let mut size = 0;
        let mut new: Vec<Vec<f64>> = Vec::new();
        for k in 0..keep {
            new.push(smoothed(&random(n, 1 + k as u64), [low, top], &mut apply)?);
        }
        loop {
            for mut v in new.drain(..) {
                if size == room || !orthogonalize(&basis, size, &mut v) {
                    continue;
                }
                let image = apply(&v)?;
                basis.set_column(size, &DVector::from_vec(v));
                images.set_column(size, &DVector::from_vec(image));
                size += 1;
            }
            let projected = basis.columns(0, size).tr_mul(&images.columns(0, size));
            let (values, mixing) = sorted((&projected + projected.transpose()) * 0.5);
            let some = mixing.columns(0, keep.min(size));
            let vectors = basis.columns(0, size) * some;
            let mapped = images.columns(0, size) * some;
            let residual = |k: usize| mapped.column(k) - vectors.column(k) * values[k];
            let residuals: Vec<f64> = (0..count).map(|k| residual(k).norm()).collect();
            let good = |r: &f64| *r <= self.tolerance * top;
            let converged = residuals.iter().take_while(|r| good(r)).count();
            told(converged);
            low = (2.0 * values[count.min(size) - 1]).clamp(top / 2e4, top / 50.0);
            if converged == count || size == n {
                let vectors = vectors.columns(0, count).into_owned();
                let values = values[..count].to_vec();
                return Ok(Eigenvectors { values, vectors, residuals, products: products.get() });
            }
            let products = products.get();
            if products >= self.products {
                let residual = residuals[converged] / top;
                return Err(NotConverged { products, converged, wanted: count, residual }.into());
            }
            let worst: Vec<usize> = (0..count).filter(|&k| !good(&residuals[k])).take(block).collect();
            for k in worst {
                let r: Vec<f64> = residual(k).iter().copied().collect();
                new.push(smoothed(&r, [low, top], &mut apply)?);
            }
            if size + new.len() > room {
                size = some.ncols();
                basis.columns_mut(0, size).copy_from(&vectors);
                images.columns_mut(0, size).copy_from(&mapped);
            }
        }
    }
}

/// A vector of normal deviates.
pub fn random(n: usize, which: u64) -> Vec<f64> {
    let noise = Noise::new(1, Purpose::Vectors);
    (0..n).map(|k| noise.normals(which, k)[0]).collect()
}

/// Rows of a matrix that is small enough to be taken whole.
const SMALL: usize = 100;

/// Makes a vector orthogonal to the first columns of a basis, and of length 1; false if nothing is left of it.
fn orthogonalize(basis: &DMatrix<f64>, size: usize, v: &mut Vec<f64>) -> bool {
    let mut x = DVector::from_vec(std::mem::take(v));
    let before = x.norm();
    for _ in 0..3 {
        let basis = basis.columns(0, size);
        x -= basis * basis.tr_mul(&x);
    }
    let left = x.norm();
    if left.is_nan() || left <= 1e-12 * before {
        return false;
    }
    x /= left;
    *v = x.data.into();
    true
}

/// An upper bound of the largest eigenvalue (in magnitude), by some steps of Lanczos.
fn largest<E>(n: usize, apply: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>) -> Result<f64, E> {
    let recurrence = Recurrence::new(&random(n, 0), 24.min(n), apply)?;
    let (size, out) = (recurrence.diagonal.len(), recurrence.beside.last());
    let most = recurrence.matrix().symmetric_eigenvalues().amax();
    Ok(1.01 * most + out.copied().filter(|_| size < n).unwrap_or(0.0) * 0.5)
}

/// p(A) v with a polynomial that is about 1/A between two eigenvalues, the largest one of them: some steps of the Chebyshev
/// iteration for A x = v (Y. Saad, Iterative Methods for Sparse Linear Systems, alg. 12.1), more of them the farther these are
/// apart.
fn smoothed<E>(
    v: &[f64],
    [low, top]: [f64; 2],
    apply: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Vec<f64>, E> {
    if top <= 0.0 {
        return Ok(v.to_vec());
    }
    let steps = (0.7 * (top / low).sqrt()).clamp(8.0, 80.0) as usize;
    let (theta, delta) = (0.5 * (top + low), 0.5 * (top - low));
    let sigma = theta / delta;
    let mut rho = 1.0 / sigma;
    let mut r = v.to_vec();
    let mut d: Vec<f64> = r.iter().map(|x| x / theta).collect();
    let mut x = vec![0.0; v.len()];
    for step in 0..steps {
        x.iter_mut().zip(&d).for_each(|(x, d)| *x += d);
        if step + 1 == steps {
            break;
        }
        let image = apply(&d)?;
        r.iter_mut().zip(image).for_each(|(r, a)| *r -= a);
        let next = 1.0 / (2.0 * sigma - rho);
        d.iter_mut().zip(&r).for_each(|(d, r)| *d = next * rho * *d + 2.0 * next / delta * r);
        rho = next;
    }
    Ok(x)
}

/// The Lanczos recurrence of a matrix from a start: A v_k = β_{k−1} v_{k−1} + α_k v_k + β_k v_{k+1} (C. Lanczos, J. Res. Natl.
/// Bur. Stand. 45, 255 (1950)), with vectors that are made orthogonal to all before.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// α
    pub diagonal: Vec<f64>,
    /// β; the last one leads out of the space.
    pub beside: Vec<f64>,
    /// The square of the start's length.
    pub weight: f64,
}

impl Recurrence {
    /// So many steps from a start.
    ///
    /// # Errors
    /// Those of the products.
    pub fn new<E>(
        start: &[f64],
        steps: usize,
        mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    ) -> Result<Self, E> {
        let (n, weight) = (start.len(), dot(start, start));
        let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
        let mut basis = DMatrix::<f64>::zeros(n, steps);
        if weight == 0.0 || n == 0 {
            return Ok(Self { diagonal, beside, weight });
        }
        let mut v: Vec<f64> = start.iter().map(|x| x / weight.sqrt()).collect();
        for k in 0..steps.min(n) {
            let image = product(&v)?;
            diagonal.push(dot(&v, &image));
            basis.set_column(k, &DVector::from_vec(v));
            let before = image.iter().map(|x| x * x).sum::<f64>().sqrt();
            v = image;
            let known = basis.columns(0, k + 1);
            let mut rest = DVector::from_vec(std::mem::take(&mut v));
            for _ in 0..2 {
                rest -= known * known.tr_mul(&rest);
            }
            let left = rest.norm();
            beside.push(left);
            if left <= 1e-12 * before {
                break;
            }
            v = (rest / left).data.into();
        }
        Ok(Self { diagonal, beside, weight })
    }

    /// The tridiagonal matrix of α and β.
    fn matrix(&self) -> DMatrix<f64> {
        let n = self.diagonal.len();
        DMatrix::from_fn(n, n, |a, b| match a.abs_diff(b) {
            0 => self.diagonal[a],
            1 => self.beside[a.min(b)],
            _ => 0.0,
        })
    }

    /// Eigenvalues of the recurrence with their weights: Σ w f(λ) is start·f(A) start, exactly for polynomials of up to twice
    /// as many degrees as there are steps (Gauss quadrature; G. H. Golub and J. H. Welsch, Math. Comput. 23, 221
    /// (1969)).
    pub fn spectrum(&self) -> Vec<(f64, f64)> {
        let (values, vectors) = sorted(self.matrix());
        values.iter().enumerate().map(|(k, &x)| (x, self.weight * vectors[(0, k)].powi(2))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[derive(Debug)]
    enum Never {}
    impl From<NotConverged> for Never {
        fn from(e: NotConverged) -> Self {
            panic!("{e}")
        }
    }

    /// Springs between neighbours on a ring: eigenvalues 2 − 2 cos 2πk/n, all but one or two of them twice.
    fn ring(v: &[f64]) -> Vec<f64> {
        let n = v.len();
        (0..n).map(|k| 2.0 * v[k] - v[(k + 1) % n] - v[(k + n - 1) % n]).collect()
    }
    fn expected(n: usize) -> Vec<f64> {
        let mut all: Vec<f64> =
            (0..n).map(|k| 2.0 - 2.0 * (std::f64::consts::TAU * k as f64 / n as f64).cos()).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn the_lowest_are_found_as_often_as_they_are_there() {
        let n = 400;
        let lowest = Lowest { count: 9, tolerance: 1e-9, products: 100_000 };
        let found = lowest.find::<Never>(n, |v| Ok(ring(v)), |_| ()).unwrap_or_else(|e| match e {});
        for (a, b) in found.values.iter().zip(expected(n)) {
            assert!((a - b).abs() < 1e-11, "{a} {b}");
        }
        let overlaps = found.vectors.tr_mul(&found.vectors) - DMatrix::identity(9, 9);
        assert!(overlaps.amax() < 1e-10);
    }

    #[test]
    fn small_matrices_are_found_whole() {
        for n in [1, 2, 5] {
            let found = all::<Infallible>(n, |v| Ok(ring(v))).unwrap_or_else(|e| match e {});
            let lowest = Lowest { count: n, tolerance: 1e-9, products: 10_000 };
            let same = lowest.find::<Never>(n, |v| Ok(ring(v)), |_| ()).unwrap_or_else(|e| match e {});
            for ((a, b), c) in found.values.iter().zip(&same.values).zip(expected(n)) {
                assert!((a - c).abs() < 1e-12 && (b - c).abs() < 1e-9, "{n}: {a} {b} {c}");
            }
        }
    }

    #[test]
    fn moments_of_the_recurrence_are_exact() {
        let start: Vec<f64> = (0..30).map(|k| f64::from((k * k) % 7) - 3.0).collect();
        let found = Recurrence::new::<Infallible>(&start, 4, |v| Ok(ring(v))).unwrap_or_else(|e| match e {});
        let mut v = start.clone();
        for power in 0..8 {
            let moment: f64 = found.spectrum().iter().map(|(x, w)| w * x.powi(power)).sum();
            let exact = dot(&start, &v);
            assert!((moment - exact).abs() < 1e-11 * exact.abs(), "{power}: {moment} {exact}");
            v = ring(&v);
        }
    }
}
