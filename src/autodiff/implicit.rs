//! Numbers that are defined by an equation, differentiated by the implicit function theorem.
//!
//! Where F(y, θ) = 0 defines y(θ), F_y ẏ + F_θ θ̇ = 0. So the derivative is one linear solve at the solution, whatever
//! led there, and however well it began: no iteration is recorded or differentiated. In reverse mode, F_yᵀ λ = ȳ and
//! θ̄ = −F_θᵀ λ, where F_θᵀ λ is one backward pass through F.
//!
//! The equations are written once, over any number; F_y is made by forward mode, one column a pass, so that this is for
//! some hundred unknowns. The starting point has no derivative.

use super::linear::Solve;
use super::operators::{Operand, Operator, OperatorError};
use super::{Differentiable, Dual, Tape, Var};
use std::fmt::Debug;
use std::sync::Arc;

/// Equations for n unknowns y with parameters θ.
pub trait Equations: Clone + Debug + Send + 'static {
    /// As many numbers as there are unknowns: what should be zero ([`root`]), or what y should be ([`fixed_point`]).
    fn call<S: Operand>(&self, y: &[S], theta: &[S]) -> Vec<S>;
}

/// When an iteration ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// No step changes an unknown by more than this fraction of it (or of 1, if that is more).
    pub tolerance: f64,
    /// It has failed after so many iterations.
    pub iterations: usize,
}

impl Default for Until {
    /// As exact as rounding allows, or nearly.
    fn default() -> Self {
        Self { tolerance: 1e-13, iterations: 1000 }
    }
}

/// What is solved, and how.
#[derive(Clone, Debug)]
struct Implicit<F> {
    equations: F,
    start: Arc<[f64]>,
    until: Until,
    /// Whether y = G(y, θ) is iterated instead of Newton's method for F(y, θ) = 0.
    iterated: bool,
}

impl<F: Equations> Implicit<F> {
    /// What is zero at the solution.
    fn residual<S: Operand>(&self, y: &[S], theta: &[S]) -> Vec<S> {
        let f = self.equations.call(y, theta);
        assert_eq!(f.len(), y.len(), "as many equations as unknowns");
        match self.iterated {
            true => f.into_iter().zip(y).map(|(g, &y)| g - y).collect(),
            false => f,
        }
    }
    /// The Jacobian of the residual with respect to y, by rows.
    fn jacobian<S: Operand>(&self, y: &[S], theta: &[S]) -> Vec<S> {
        let n = y.len();
        let theta: Vec<_> = theta.iter().map(|&t| Dual::passive(t)).collect();
        let mut rows = vec![S::constant(0.0); n * n];
        let mut at: Vec<_> = y.iter().map(|&y| Dual::passive(y)).collect();
        for k in 0..n {
            at[k] = Dual::variable(y[k]);
            for (row, f) in self.residual(&at, &theta).into_iter().enumerate() {
                rows[row * n + k] = f.tangent;
            }
            at[k] = Dual::passive(y[k]);
        }
        rows
    }
    fn step(&self, y: &[f64], theta: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let residual = self.residual(y, theta);
        if self.iterated {
            return Ok(residual);
        }
        let jacobian = self.jacobian(y, theta);
        let step = Solve { size: y.len() }.value(&[&jacobian[..], &residual[..]].concat())?;
        Ok(step.into_iter().map(|s| -s).collect())
    }
}

impl<F: Equations> Operator for Implicit<F> {
    fn value(&self, theta: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let Until { tolerance, iterations } = self.until;
        let mut y = self.start.to_vec();
        let mut last = f64::INFINITY;
        for _ in 0..iterations {
            let step = self.step(&y, theta)?;
            last = y.iter().zip(&step).fold(0.0, |m: f64, (y, s)| m.max(s.abs() / y.abs().max(1.0)));
            y.iter_mut().zip(&step).for_each(|(y, s)| *y += s);
            if last <= tolerance {
                return Ok(y);
            }
            if !last.is_finite() {
                break;
            }
        }
        // (at the limit of rounding steps may go to and fro)
        if last <= 1e3 * tolerance {
            return Ok(y);
        }
        let residual = self
            .residual(&y, theta)
            .iter()
            .fold(0.0, |m: f64, f| if f.is_finite() { m.max(f.abs()) } else { f64::INFINITY });
        let what = if self.iterated { "a fixed point" } else { "a root by Newton's method" };
        Err(OperatorError::NotConverged { what, iterations, residual })
    }
    fn pushforward<S: Operand>(&self, theta: &[S], y: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        let moving: Vec<_> = theta.iter().zip(tangent).map(|(&x, &t)| Dual::new(x, t)).collect();
        let still: Vec<_> = y.iter().map(|&y| Dual::passive(y)).collect();
        let right = self.residual(&still, &moving).into_iter().map(|f| -f.tangent);
        let system: Vec<S> = self.jacobian(y, theta).into_iter().chain(right).collect();
        S::apply(&Solve { size: y.len() }, &system)
    }
    fn pullback<S: Operand>(&self, theta: &[S], y: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        let n = y.len();
        let transposed = super::operators::transposed(&self.jacobian(y, theta), n, n);
        let lambda = S::apply(&Solve { size: n }, &[&transposed[..], adjoint].concat())?;
        let tape = Tape::<S>::new();
        let theta: Vec<_> = theta.iter().map(|&x| tape.variable(x)).collect();
        let still: Vec<Var<S>> = y.iter().map(|&y| Differentiable::lifted(y)).collect();
        let f = self.residual(&still, &theta);
        let seeds: Vec<_> = f.into_iter().zip(lambda).map(|(f, l)| (f, -l)).collect();
        let mut adjoints = Default::default();
        tape.backward(&seeds, &mut adjoints);
        Ok(theta.into_iter().map(|x| adjoints.of(x)).collect())
    }
}

fn implicit<F: Equations, S: Operand>(
    equations: &F,
    start: &[f64],
    theta: &[S],
    until: Until,
    iterated: bool,
) -> Result<Vec<S>, OperatorError> {
    S::apply(&Implicit { equations: equations.clone(), start: start.into(), until, iterated }, theta)
}

/// y(θ) with F(y, θ) = 0 near a start, by Newton's method.
///
/// # Errors
/// Where it does not converge, or the Jacobian with respect to y is singular.
///
/// # Panics
/// If there are not as many equations as unknowns.
///
/// ```
/// use md::autodiff::{Dual, operators::Operand, implicit::{Equations, root}};
/// #[derive(Clone, Debug)]
/// struct Kepler;
/// impl Equations for Kepler {
///     // the eccentric anomaly E of the mean anomaly M and the eccentricity e
///     fn call<S: Operand>(&self, y: &[S], theta: &[S]) -> Vec<S> {
///         vec![y[0] - theta[1] * y[0].sin() - theta[0]]
///     }
/// }
/// let e = root(&Kepler, &[1.0], &[Dual::variable(1.0), Dual::passive(0.3)], Default::default()).unwrap()[0];
/// // dE/dM = 1/(1 − e cos E)
/// assert!((e.tangent - 1.0 / (1.0 - 0.3 * e.value.cos())).abs() < 1e-14);
/// ```
pub fn root<F: Equations, S: Operand>(
    equations: &F,
    start: &[f64],
    theta: &[S],
    until: Until,
) -> Result<Vec<S>, OperatorError> {
    implicit(equations, start, theta, until, false)
}

/// y(θ) with y = G(y, θ), by iterating it from a start. (Differentiated as the root of G − y: the iteration may be slow,
/// its derivative is not.)
///
/// # Errors
/// Where it does not converge.
///
/// # Panics
/// If there are not as many equations as unknowns.
pub fn fixed_point<F: Equations, S: Operand>(
    equations: &F,
    start: &[f64],
    theta: &[S],
    until: Until,
) -> Result<Vec<S>, OperatorError> {
    implicit(equations, start, theta, until, true)
}
