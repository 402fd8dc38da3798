//! What is known of a system beside energies, forces and stresses of configurations.
//!
//! A [`Target`] gives numbers for the parameters of the energy and their derivatives in these; how it comes by them is its own
//! affair: by minimising the energy and the implicit function theorem ([`properties`](super::properties)), by a simulation in the
//! canonical ensemble and covariances ([`averages`](super::averages)), or by a simulation and the adjoint through time
//! ([`trajectory`](super::trajectory)).

use super::FitError;

/// A number that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// What it is called.
    pub name: String,
    /// The number, in the engine's units.
    pub value: f64,
    /// Its standard deviation.
    pub error: f64,
    /// The unit it is shown in.
    pub unit: &'static str,
    /// What one of the engine's units is in that.
    pub factor: f64,
    /// Where it stands in a curve of several, and the curve's number.
    pub place: Option<(usize, f64)>,
    /// For how many data it counts: it is the root of their mean square.
    pub count: usize,
}

/// Numbers as the energy gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The numbers.
    pub values: Vec<f64>,
    /// The derivatives of each in the numbers of the energy
    /// ([`Evaluator::parameter_names`](crate::forces::Evaluator::parameter_names)); none where they were not wanted.
    pub slopes: Vec<Vec<f64>>,
}

/// Numbers that follow from the parameters of an energy.
pub trait Target: Send {
    /// What is known of them.
    fn known(&self) -> &[Known];
    /// What the energy gives with these parameters, with derivatives if they are wanted.
    ///
    /// # Errors
    /// [`FitError::Nowhere`] where there are no such numbers; the fit does not go there.
    fn find(&mut self, numbers: &[f64], slopes: bool) -> Result<Found, FitError>;
    /// The numbers without each of the pieces of what they are averages over, as the jackknife wants them; nothing for what is no
    /// average.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    fn without(&mut self, _numbers: &[f64]) -> Result<Vec<Vec<f64>>, FitError> {
        Ok(Vec::new())
    }
    /// Whether a Gauss–Newton matrix can be made of its derivatives: not of those of a mean square.
    fn is_linear(&self) -> bool {
        true
    }
    /// What it goes on from in another process.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    /// Goes on from there.
    ///
    /// # Errors
    /// Bytes that are not what was saved.
    fn recall(&mut self, _saved: &[u8]) -> Result<(), FitError> {
        Ok(())
    }
    /// What there is to tell of it in the end.
    fn report(&self) -> Option<String> {
        None
    }
}
