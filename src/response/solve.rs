//! Systems of equations with the Hessian as their matrix.

use super::{Point, ResponseError, dot};
use crate::forces::{Evaluator, ForceError};
use crate::system::State;

/// Why H x = b was not solved.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoSolution {
    /// The Hessian is not positive: the configuration is no minimum.
    #[error(
        "the configuration is no minimum of the energy: there is a direction along which it does not rise (its curvature is \
         {curvature:e})"
    )]
    NotAMinimum {
        /// v·H v of a unit vector.
        curvature: f64,
    },
    /// The iteration did not end.
    #[error(
        "the equations of the Hessian were not solved: after {steps} products {left:e} of the right-hand side is left"
    )]
    NotConverged {
        /// How many products.
        steps: usize,
        /// The residual, relative to the right-hand side.
        left: f64,
    },
}

/// Solves A x = b for a symmetric positive matrix that is known by its products, within the space orthogonal to the
/// `fixed` vectors (orthonormal), by conjugate gradients (M. R. Hestenes and E. Stiefel, J. Res. Natl. Bur. Stand. 49, 409
/// (1952)), until the residual is `tolerance` of b.
///
/// # Errors
/// A matrix that is not positive, an iteration that does not end, or a product that fails.
pub fn conjugate_gradients<E: From<NoSolution>>(
    mut product: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    b: &[f64],
    fixed: &[Vec<f64>],
    tolerance: f64,
    most: usize,
) -> Result<Vec<f64>, E> {
    let project = |x: &mut [f64]| {
        for f in fixed {
            let along = dot(x, f);
            x.iter_mut().zip(f).for_each(|(x, f)| *x -= along * f);
        }
    };
    let mut x = vec![0.0; b.len()];
    let mut r = b.to_vec();
    project(&mut r);
    let size = dot(&r, &r).sqrt();
    // (what is left of a vector of fixed motions is rounding)
    if size <= 1e-13 * dot(b, b).sqrt() {
        return Ok(x);
    }
    let (mut p, mut rr) = (r.clone(), size * size);
    let mut best = (f64::INFINITY, x.clone(), 0);
    for step in 0..most {
        let mut ap = product(&p)?;
        project(&mut ap);
        let (curvature, pp) = (dot(&p, &ap), dot(&p, &p));
        if curvature.is_nan() || curvature <= 0.0 {
            return Err(NoSolution::NotAMinimum { curvature: curvature / pp }.into());
        }
        let by = rr / curvature;
        for k in 0..x.len() {
            x[k] += by * p[k];
            r[k] -= by * ap[k];
        }
        project(&mut r);
        let next = dot(&r, &r);
        let left = next.sqrt() / size;
        if left < best.0 {
            best = (left, x.clone(), step);
        }
        if left <= tolerance {
            return Ok(x);
        }
        // (rounding is reached where nothing has become better for long)
        if step > best.2 + 50 && best.0 <= 1e3 * tolerance {
            return Ok(best.1);
        }
        let ratio = next / rr;
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + ratio * *p);
        rr = next;
    }
    Err(NoSolution::NotConverged { steps: most, left: best.0 }.into())
}

/// Newton's method from near a minimum: atoms move by H⁻¹ F until no component of a force is larger than `force`, or
/// nothing becomes better. (Minimisers compare energies, whose rounding ends their way much earlier.) Returns the largest
/// component.
///
/// # Errors
/// A configuration that is not near a minimum; it stays as it was then.
pub fn newton(
    evaluator: &mut Evaluator,
    state: &mut State,
    masses: &[f64],
    force: f64,
) -> Result<f64, ResponseError> {
    let largest = |f: &[[f64; 3]]| f.as_flattened().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let mut forces = Point::new(evaluator, state, masses).forces()?.forces;
    for _ in 0..20 {
        let before = largest(&forces);
        if before <= force {
            break;
        }
        let mut point = Point::new(evaluator, state, masses);
        let moves = point.relaxation(&forces)?;
        let moved = point.moved(&moves, [[0.0; 3]; 3], 1.0)?;
        let found = Point::new(evaluator, &moved, masses).forces()?.forces;
        if largest(&found) >= before {
            break;
        }
        (*state, forces) = (moved, found);
    }
    Ok(largest(&forces))
}

impl Point<'_> {
    /// How atoms move to where they are in balance again, when forces on them change: H⁻¹ of that, rigid motions
    /// apart.
    ///
    /// # Errors
    /// A configuration that is no minimum.
    pub fn relaxation(&mut self, forces: &[[f64; 3]]) -> Result<Vec<[f64; 3]>, ResponseError> {
        // (rigid motions, in displacements and not weighted)
        let masses = vec![1.0; self.atoms()];
        let mut unweighted = Point::new(self.evaluator, self.state, &masses);
        let fixed: Vec<Vec<f64>> = unweighted.rigid_motions()?.into_iter().map(|r| r.vector).collect();
        let most = (30 * self.atoms()).clamp(300, 100_000);
        let product = |v: &[f64]| -> Result<Vec<f64>, ResponseError> {
            let product: Result<_, ForceError> = self.product(v);
            Ok(product?)
        };
        let x = conjugate_gradients(product, forces.as_flattened(), &fixed, 1e-11, most)?;
        Ok(x.as_chunks().0.to_vec())
    }
}
