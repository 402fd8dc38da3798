//! Where the time of evaluations goes.

use std::time::{Duration, Instant};

/// The time that an [`Evaluator`](super::Evaluator) has spent, by phase, summed over its evaluations. What differences
/// and gradients by parameters take is not in it.
///
/// A phase costs one reading of the clock, some 50 ns, whatever the number of atoms: that is always affordable, so
/// that there is no switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// How many evaluations.
    pub evaluations: u64,
    /// Neighbour lists: whether they are still good, and their builds.
    pub lists: Duration,
    /// The rows of positions that kernels read.
    pub rows: Duration,
    /// Each term, in the order of [`Evaluator::terms`](super::Evaluator::terms). On [`Kind::Tape`](super::Kind::Tape),
    /// what recording takes; the backward pass, which all terms share, is in the rest.
    pub terms: Vec<Duration>,
    /// What belongs to no term: memory that is cleared, forces put into the order of the atoms, the search for numbers
    /// that are not finite.
    pub rest: Duration,
}

impl Timings {
    /// Of so many terms, for which no time has been spent yet.
    pub(super) fn of(terms: usize) -> Self {
        Self { terms: vec![Duration::ZERO; terms], ..Self::default() }
    }

    /// All phases.
    pub fn total(&self) -> Duration {
        self.lists + self.rows + self.terms.iter().sum::<Duration>() + self.rest
    }

    /// Begins anew, with the memory there is.
    pub fn reset(&mut self) {
        self.terms.fill(Duration::ZERO);
        (self.lists, self.rows, self.rest) = Default::default();
        self.evaluations = 0;
    }
}

/// A clock that is read between phases.
pub(super) struct Clock(Instant);

impl Clock {
    /// The first phase begins.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Adds what has passed to the phase that ends; the next one begins.
    pub(super) fn lap(&mut self, phase: &mut Duration) {
        let now = Instant::now();
        *phase += now.duration_since(self.0);
        self.0 = now;
    }
}
