//! Learning a force field: parameters that make the energy agree with data.
//!
//! What is minimised is ½ Σ r², where the residuals r are energies, forces and stresses less those of the data, each over its
//! uncertainty, and free parameters less their priors. Everything is differentiated exactly:
//!
//! - The gradient takes one call of [`Evaluator::slopes`](crate::forces::Evaluator::slopes) a configuration, along the residual
//!   forces and stress, whatever the number of parameters: Σ r·∂F/∂θ for all of them at once.
//! - The Gauss–Newton matrix JᵀJ takes one of
//!   [`Evaluator::parameter_tangents`](crate::forces::Evaluator::parameter_tangents) a configuration and free parameter: a
//!   column ∂F/∂θ of J, forward over reverse.
//!
//! [`optimize`] works in coordinates that are near 1 or are logarithms ([`Free`]). Configurations are computed in parallel, and
//! summed in their order: the bits do not depend on threads.

pub mod averages;
pub mod data;
pub mod optimize;
mod parameters;
mod problem;
pub mod properties;
pub mod target;
pub mod trajectory;
mod uncertainty;

pub use parameters::{Free, Transform};
pub use problem::{Aim, Compared, Problem, Sample, System, Totals, Uncertainties, shuffled};
pub use uncertainty::Uncertainty;

use crate::adjoint::GradientError;
use crate::forces::ForceError;

/// Why parameters cannot be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Forces or their derivatives could not be computed.
    #[error(transparent)]
    Forces(#[from] ForceError),
    /// A file of data cannot be read.
    #[error(transparent)]
    Format(#[from] crate::formats::FormatError),
    /// There are no such numbers with these parameters.
    #[error("{0}")]
    Nowhere(String),
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The data do not fit the system, or the question makes no sense.
    #[error("{0}")]
    Senseless(String),
}

impl From<GradientError> for FitError {
    /// A simulation with parameters that are no good may do anything: the fit does not go there.
    fn from(error: GradientError) -> Self {
        match error {
            GradientError::Interrupted => FitError::Interrupted,
            GradientError::Senseless(message) => FitError::Senseless(message),
            e => FitError::Nowhere(e.to_string()),
        }
    }
}
