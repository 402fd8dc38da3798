//! Going downhill to a minimum of the energy.
//!
//! A [`Minimizer`] moves the positions of a [`Motion`]; velocities, step and time stay. As an integrator it
//! starts from the forces at hand and leaves those of the final positions. The cell does not change.
//!
//! No step moves an atom farther than a given length, so that atoms that lie upon each other (with forces
//! that may be 10¹⁰⁰ times too large) are pushed apart instead of being shot away.
//!
//! A minimiser that was stopped goes on to the bit: in the same process with [`Minimizer::go_on`], in another one
//! after [`Minimizer::recall`].

mod fire;
mod lbfgs;

pub use fire::Fire;
pub use lbfgs::Lbfgs;

use super::{Memory, MemoryError, Motion, StepError, chunks};
use crate::forces::ForceError;
use crate::system::State;
use std::ops::ControlFlow;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// When the largest component of any force is below this, in kJ/mol/nm.
    pub force: f64,
    /// After so many steps in any case, those before an interruption included.
    pub steps: u64,
}

/// How far it has come, for each step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Steps taken since it began.
    pub step: u64,
    /// Evaluations of the forces so far, without the one at hand at the start.
    pub evaluations: u64,
    /// The potential energy in kJ/mol.
    pub energy: f64,
    /// The largest component of any force, in kJ/mol/nm.
    pub force: f64,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The forces are as small as asked.
    Converged,
    /// The steps are used up.
    Steps,
    /// No lower energy can be found: the rounding of energies or of positions is reached.
    Stalled,
    /// The progress callback said so.
    Stopped,
}

/// What a minimiser did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// As it began.
    pub initial: Progress,
    /// As it ended.
    pub last: Progress,
    /// Why it ended.
    pub ending: Ending,
}

impl Report {
    /// Whether the forces are as small as asked.
    pub fn converged(&self) -> bool {
        self.ending == Ending::Converged
    }
}

/// Told of each step, that at which it begins or goes on included; may stop the minimisation.
pub type OnProgress<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Finds a minimum of the energy.
pub trait Minimizer {
    /// Its name in the input.
    fn name(&self) -> &'static str;

    /// Minimises until the forces are small, the steps used up, or nothing more can be gained.
    ///
    /// # Errors
    /// Forces or an energy that are not finite at the start, or to which a step leads that cannot be taken
    /// back; atoms that leave all bounds.
    fn minimize(
        &mut self,
        motion: &mut Motion<'_>,
        until: &Until,
        progress: OnProgress<'_>,
    ) -> Result<Report, StepError> {
        self.forget();
        self.go_on(motion, until, progress)
    }

    /// Goes on from where it stopped, with the steps that it would have taken there. The motion must be as it was
    /// left then. Where it never began or has forgotten everything, it begins.
    ///
    /// # Errors
    /// As of [`Minimizer::minimize`].
    fn go_on(
        &mut self,
        motion: &mut Motion<'_>,
        until: &Until,
        progress: OnProgress<'_>,
    ) -> Result<Report, StepError>;

    /// Forgets that it ever began.
    fn forget(&mut self);

    /// What it has to remember besides the positions.
    fn memory(&self) -> Memory;

    /// Remembers what it knew in another process, of so many atoms.
    ///
    /// # Errors
    /// The memory of something else.
    fn recall(&mut self, memory: &Memory, atoms: usize) -> Result<(), MemoryError>;
}

/// The numbers of a memory, read one after another.
struct Recalled<'a> {
    name: &'static str,
    memory: &'a Memory,
    rest: &'a [f64],
}

impl<'a> Recalled<'a> {
    fn new(name: &'static str, memory: &'a Memory) -> Result<Self, MemoryError> {
        let recalled = Self { name, memory, rest: &memory.numbers };
        if memory.integrator == name { Ok(recalled) } else { Err(recalled.wrong()) }
    }

    fn wrong(&self) -> MemoryError {
        let Memory { integrator, numbers } = self.memory;
        MemoryError { found: integrator.clone(), count: numbers.len(), expected: self.name }
    }

    fn numbers<const K: usize>(&mut self) -> Result<[f64; K], MemoryError> {
        let (&numbers, rest) = self.rest.split_first_chunk().ok_or_else(|| self.wrong())?;
        self.rest = rest;
        Ok(numbers)
    }

    fn vectors(&mut self, count: usize) -> Result<Vec<[f64; 3]>, MemoryError> {
        let size = count.checked_mul(3).ok_or_else(|| self.wrong())?;
        let (numbers, rest) = self.rest.split_at_checked(size).ok_or_else(|| self.wrong())?;
        self.rest = rest;
        Ok(numbers.as_chunks().0.to_vec())
    }

    fn end(&self) -> Result<(), MemoryError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong()) }
    }
}

impl Progress {
    /// (whole numbers are exact up to 2⁵³)
    fn to_numbers(self) -> [f64; 4] {
        [self.step as f64, self.evaluations as f64, self.energy, self.force]
    }

    fn from_numbers([step, evaluations, energy, force]: [f64; 4]) -> Self {
        Self { step: step as u64, evaluations: evaluations as u64, energy, force }
    }
}

/// What the present forces say.
fn look(motion: &Motion<'_>, step: u64, evaluations: u64) -> Result<Progress, StepError> {
    let energy = motion.forces.energy();
    let force = chunks::largest_component(&motion.forces.forces);
    if !force.is_finite() {
        let bad = |f: &[f64; 3]| !f.iter().all(|x| x.is_finite());
        let atom = motion.forces.forces.iter().position(bad);
        let error = ForceError::NotFinite { atom, term: "total".into(), closest: None };
        return Err(StepError::Forces { step, error });
    }
    match energy.is_finite() {
        true => Ok(Progress { step, evaluations, energy, force }),
        false => Err(StepError::Energy { step, energy }),
    }
}

/// Moves every atom by `scale` times its vector (nm).
fn advance(motion: &mut Motion<'_>, vectors: &[[f64; 3]], scale: f64, step: u64) -> Result<(), StepError> {
    let State { cell, positions, .. } = &mut *motion.state;
    positions
        .advance_all(cell, |i| vectors[i].map(|x| x * scale))
        .map_err(|escaped| StepError::Escaped { step, escaped })
}

/// Whether to stop before another step.
fn ending(now: &Progress, until: &Until, progress: OnProgress<'_>) -> Option<Ending> {
    let flow = progress(now);
    if now.force < until.force {
        Some(Ending::Converged)
    } else if now.step >= until.steps {
        Some(Ending::Steps)
    } else {
        flow.is_break().then_some(Ending::Stopped)
    }
}
