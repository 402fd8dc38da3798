//! What second derivatives of the energy tell: vibrations, elasticity, and how results depend on parameters.
//!
//! Everything here follows from three products of an [`Evaluator`]: the tangents of forces and virial along a direction,
//! the derivatives in parameters, and how these change along a direction. No matrix is made where products will do, and
//! nothing is differentiated numerically unless it says so.
//!
//! Units are those of the engine: nm, ps, u, kJ/mol. An eigenvalue of the Hessian that is weighted by masses is the
//! square of an angular frequency in 1/ps.

pub mod eigen;
pub mod elastic;
pub mod hessian;
pub mod modes;
pub mod phonons;
pub mod rest;
mod rigid;
pub mod sensitivity;
mod solve;
pub mod thermal;

pub use rigid::{Rigid, RigidMotion};
pub use solve::{NoSolution, conjugate_gradients, newton};

use crate::forces::{Direction, Evaluator, ForceError, ForceSource, Forces, ParameterSlope};
use crate::system::State;

/// Why a derivative could not be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// Forces or their derivatives could not be computed.
    #[error(transparent)]
    Forces(#[from] ForceError),
    /// There is no answer of a system of equations.
    #[error(transparent)]
    NoSolution(#[from] NoSolution),
    /// The eigenvectors were not found.
    #[error(transparent)]
    Eigen(#[from] eigen::NotConverged),
    /// Atoms or cell do not come to rest.
    #[error("{0}")]
    Restless(String),
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The question makes no sense for this system.
    #[error("{0}")]
    Senseless(String),
}

/// A configuration at which derivatives are taken.
pub struct Point<'a> {
    /// What computes them.
    pub evaluator: &'a mut Evaluator,
    /// Where.
    pub state: &'a State,
    /// Of the atoms, in u.
    pub masses: &'a [f64],
}

impl<'a> Point<'a> {
    /// The configuration of a state.
    pub fn new(evaluator: &'a mut Evaluator, state: &'a State, masses: &'a [f64]) -> Self {
        Self { evaluator, state, masses }
    }
    /// How many atoms.
    pub fn atoms(&self) -> usize {
        self.masses.len()
    }

    /// Energy, forces and virial.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn forces(&mut self) -> Result<Forces, ForceError> {
        let mut out = Forces::default();
        self.evaluator.evaluate(&self.state.cell, &self.state.positions, &mut out)?;
        Ok(out)
    }

    /// How these change along a direction.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn tangents(&mut self, moves: &[[f64; 3]], strain: [[f64; 3]; 3]) -> Result<Forces, ForceError> {
        let mut out = Forces::default();
        let direction = Direction { moves, strain };
        self.evaluator.tangents(&self.state.cell, &self.state.positions, &direction, true, &mut out)?;
        Ok(out)
    }

    /// The Hessian–vector product, of 3 N numbers.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn product(&mut self, v: &[f64]) -> Result<Vec<f64>, ForceError> {
        let (vectors, _) = v.as_chunks();
        let product = self.evaluator.hessian_product(&self.state.cell, &self.state.positions, vectors)?;
        Ok(product.into_flattened())
    }

    /// The largest force where each atom goes its own way by 1 nm: what rounding errors of products are measured by.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn stiffness(&mut self) -> Result<f64, ForceError> {
        self.evaluator.stiffness(&self.state.cell, &self.state.positions)
    }

    /// The derivatives in all parameters, and how they change along a direction.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn slopes(
        &mut self,
        moves: &[[f64; 3]],
        strain: [[f64; 3]; 3],
    ) -> Result<Vec<ParameterSlope>, ForceError> {
        let direction = Direction { moves, strain };
        self.evaluator.parameter_slopes(&self.state.cell, &self.state.positions, Some(direction))
    }

    /// The same configuration after everything went some way along a direction. (Periods of time are given apart, so
    /// that differences are of exact positions.)
    ///
    /// # Errors
    /// A cell that collapses, or atoms that leave all bounds.
    pub fn moved(&self, moves: &[[f64; 3]], strain: [[f64; 3]; 3], by: f64) -> Result<State, ResponseError> {
        let senseless = |e: String| ResponseError::Senseless(format!("there is no such configuration: {e}"));
        let mut state = self.state.clone();
        let result = state.positions.advance_all(&state.cell, |i| moves[i].map(|x| x * by));
        result.map_err(|e| senseless(e.to_string()))?;
        if strain != [[0.0; 3]; 3] {
            // (rows of a cell are vectors)
            let rows = std::array::from_fn(|a| std::array::from_fn(|b| by * strain[b][a]));
            let cell = state.cell.strained(rows);
            state.cell = cell.map_err(|e| senseless(e.to_string()))?;
        }
        Ok(state)
    }
}

/// Σ aᵢ bᵢ
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
