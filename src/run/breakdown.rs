//! A run that cannot go on.

use crate::forces::ForceError;
use crate::integrate::StepError;
use std::fmt;

/// Where, how and why a run broke down, and what is left of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breakdown {
    /// The stage.
    pub stage: String,
    /// The step that could not be taken.
    pub step: u64,
    /// What went wrong: atoms, term, distance.
    pub what: String,
    /// What else is known.
    pub details: Vec<String>,
    /// Which files hold what.
    pub kept: Vec<String>,
}

impl std::error::Error for Breakdown {}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.stage.as_str() {
            "" => write!(f, "the run broke down at step {}: {}", self.step, self.what)?,
            stage => write!(f, "stage `{stage}` broke down at step {}: {}", self.step, self.what)?,
        }
        for detail in &self.details {
            write!(f, "\n  {detail}")?;
        }
        for kept in &self.kept {
            write!(f, "\n  kept: {kept}")?;
        }
        write!(f, "\n  help: {}", self.help())
    }
}

impl Breakdown {
    /// A run whose very first forces cannot be computed.
    pub fn at_start(stage: &str, step: u64, what: String) -> Self {
        Self { stage: stage.into(), step, what, ..Self::default() }
    }

    fn help(&self) -> &'static str {
        match self.kept.is_empty() {
            true => {
                "atoms may lie upon each other: look at the structure, or begin with a stage that minimises"
            }
            false => {
                "a shorter time step or a stage that minimises first often helps; `md check` tests the forces"
            }
        }
    }
}

/// The step that failed and what went wrong in it; `now` is the last step that was done.
pub(super) fn in_words(error: &StepError, now: u64) -> (u64, String) {
    match error {
        StepError::Escaped { step, escaped } => {
            let axis = ["a", "b", "c"].get(escaped.axis).unwrap_or(&"?");
            (*step, format!("atom {} has left all bounds along cell axis {axis}", escaped.atom + 1))
        }
        StepError::Forces { step, error } => (*step, error.to_string()),
        StepError::Energy { step, energy } => (*step, format!("the energy is {energy}")),
        StepError::Mass { atom, mass } => (now, format!("atom {} has the mass {mass}", atom + 1)),
        other => (now, other.to_string()),
    }
}

/// The atom in which it showed.
pub(super) fn atom_of(error: &StepError) -> Option<usize> {
    match error {
        StepError::Escaped { escaped, .. } => Some(escaped.atom),
        StepError::Forces { error: ForceError::NotFinite { atom, closest, .. }, .. } => {
            atom.or(closest.map(|c| c.atoms[0]))
        }
        _ => None,
    }
}
