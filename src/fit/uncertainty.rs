//! How well parameters are known after a fit.

use super::optimize::Normal;
use super::{Free, Problem};
use nalgebra::{DMatrix, SymmetricEigen};

/// Standard errors and correlations of fitted parameters: the inverse of the Gauss–Newton matrix at the minimum.
///
/// For data with independent errors of the given standard deviations C = (JᵀJ)⁻¹ is the covariance of the parameters. Where
/// only the deviations' ratios are known, C is scaled by χ² over the degrees of freedom. Averages over a simulation have noise of
/// their own, which is that of the whole curve and not of each point by itself: with G the covariance of the gradient that it
/// makes ([`Problem::noise`]), C G C is added (before the scaling).
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertainty {
    /// For each parameter its standard error; infinite where the data do not determine it, none at a bound.
    pub errors: Vec<Option<f64>>,
    /// Correlations of parameters; NaN where there is no error.
    pub correlations: DMatrix<f64>,
    /// χ² of the data over the degrees of freedom.
    pub reduced: f64,
    /// Sets of parameters that the data determine only together: directions along which nothing changes.
    pub undetermined: Vec<Vec<usize>>,
}

/// An eigenvalue of the matrix (scaled to a diagonal of ones) below which its direction changes nothing.
const FLAT: f64 = 1e-12;
/// What part of such a direction a parameter must be to be named.
const PART: f64 = 0.1;

impl Uncertainty {
    /// Of parameters whose errors were not computed.
    pub fn unknown(parameters: usize) -> Self {
        let errors = vec![Some(f64::NAN); parameters];
        Self { errors, correlations: DMatrix::zeros(0, 0), reduced: f64::NAN, undetermined: Vec::new() }
    }
    /// At a minimum `u`, with the matrix there and the [noise](Problem::noise); `squares` and `count` are χ² and the number of
    /// the data.
    pub fn new(
        problem: &Problem,
        u: &[f64],
        normal: &Normal,
        noise: &DMatrix<f64>,
        squares: f64,
        count: usize,
        scaled: bool,
    ) -> Self {
        let n = u.len();
        let inside = |(k, p): (usize, &Free)| {
            let [low, high] = p.limits();
            (u[k] > low && u[k] < high).then_some(k)
        };
        let chosen: Vec<usize> = problem.free.iter().enumerate().filter_map(inside).collect();
        let reduced = squares / count.saturating_sub(chosen.len()).max(1) as f64;
        let by = if scaled { reduced } else { 1.0 };
        let size: Vec<f64> = chosen.iter().map(|&k| normal.matrix[(k, k)].sqrt()).collect();
        let matrix = DMatrix::from_fn(chosen.len(), chosen.len(), |a, b| match size[a] * size[b] {
            0.0 => 0.0,
            product => normal.matrix[(chosen[a], chosen[b])] / product,
        });
        let eigen = SymmetricEigen::new(matrix);
        let mut covariance = DMatrix::<f64>::zeros(chosen.len(), chosen.len());
        let (mut undetermined, mut loose) = (Vec::new(), vec![false; chosen.len()]);
        for (k, &value) in eigen.eigenvalues.iter().enumerate() {
            let v = eigen.eigenvectors.column(k);
            if value > FLAT {
                covariance += v * v.transpose() / value;
            } else {
                let members: Vec<usize> = (0..chosen.len()).filter(|&a| v[a].abs() > PART).collect();
                members.iter().for_each(|&a| loose[a] = true);
                undetermined.push(members.iter().map(|&a| chosen[a]).collect());
            }
        }
        let noise = DMatrix::from_fn(chosen.len(), chosen.len(), |a, b| match size[a] * size[b] {
            0.0 => 0.0,
            product => noise[(chosen[a], chosen[b])] / product,
        });
        let covariance = &covariance * by + &covariance * noise * &covariance;
        let mut errors = vec![None; n];
        let mut correlations = DMatrix::from_element(n, n, f64::NAN);
        for (a, &k) in chosen.iter().enumerate() {
            let error = covariance[(a, a)].sqrt() / size[a] * problem.free[k].slope(u[k]);
            errors[k] = Some(if loose[a] { f64::INFINITY } else { error.abs() });
            for (b, &m) in chosen.iter().enumerate() {
                if !loose[a] && !loose[b] {
                    let root = (covariance[(a, a)] * covariance[(b, b)]).sqrt();
                    correlations[(k, m)] = covariance[(a, b)] / root;
                }
            }
        }
        Self { errors, correlations, reduced, undetermined }
    }
}
