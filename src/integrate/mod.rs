//! Integrators, thermostats, initial velocities and minimisers.
//!
//! An [`Integrator`] advances a [`Motion`]: a state, the masses, the forces at hand and what computes new
//! ones. It finds the forces of the present positions at hand and leaves those of the new ones, so a step
//! costs one evaluation.
//!
//! Units: nm, ps, u and kJ/mol are coherent, so force / mass is an acceleration in nm/ps². Nothing here
//! knows other units: with k_B = 1 and reduced masses, lengths and energies it works as well.
//!
//! Every atom's update depends on that atom alone, sums are taken in fixed pieces joined in a fixed order,
//! and noise is addressed by step and atom: results have the same bits for every number of threads.

mod adjoint;
mod chunks;
pub mod langevin;
pub mod minimize;
pub mod velocities;
pub mod verlet;

pub use adjoint::{Adjoint, Moment};
pub use langevin::Langevin;
pub use velocities::{degrees_of_freedom, kinetic_energy, remove_drift, temperature};
pub use verlet::VelocityVerlet;

use crate::forces::{ForceError, ForceSource, Forces};
use crate::system::State;
use crate::system::positions::{Escaped, INTEGERS};
use potentials::Scalar;
use serde::{Deserialize, Serialize};

/// Why a system cannot be advanced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// An atom went out of all bounds, or has a velocity that is not finite.
    #[error("step {step}: {escaped}")]
    Escaped {
        /// The step being taken, counted from 1.
        step: u64,
        /// Which atom.
        escaped: Escaped,
    },
    /// The forces at the new positions could not be computed.
    #[error("step {step}: {error}")]
    Forces {
        /// The step being taken, counted from 1; 0 for the forces at the start.
        step: u64,
        /// What is wrong with them.
        error: ForceError,
    },
    /// The energy is infinite or not a number.
    #[error("step {step}: the energy is {energy}")]
    Energy {
        /// The step being taken, counted from 1; 0 for the start.
        step: u64,
        /// The energy in kJ/mol.
        energy: f64,
    },
    /// Lists that should have one entry an atom have not.
    #[error("{positions} positions, but {count} {what}")]
    Lengths {
        /// Number of positions.
        positions: usize,
        /// What there is another number of.
        what: &'static str,
        /// How many of them.
        count: usize,
    },
    /// A mass is not a positive number.
    #[error("atom {atom} has the mass {mass} u, which cannot be moved by a force")]
    Mass {
        /// Which atom, counted from 0.
        atom: usize,
        /// Its mass in u.
        mass: f64,
    },
}

/// A parameter of an integrator that it cannot work with.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {value}, but should be {should}")]
pub struct BadParameter {
    /// Which parameter.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What it should be.
    pub should: &'static str,
}

impl BadParameter {
    /// The value, if it is finite and positive (or zero where `zero` says so).
    pub(crate) fn check(name: &'static str, value: f64, zero: bool) -> Result<f64, BadParameter> {
        match value.is_finite() && (value > 0.0 || zero && value == 0.0) {
            true => Ok(value),
            false => {
                let should = if zero { "zero or a positive number" } else { "a positive number" };
                Err(BadParameter { name, value, should })
            }
        }
    }
}

/// Checks that all masses (u) are positive and finite.
///
/// # Errors
/// [`StepError::Mass`] for the first that is not.
pub fn check_masses(masses: &[f64]) -> Result<(), StepError> {
    match masses.iter().position(|m| !(*m > 0.0 && m.is_finite())) {
        Some(atom) => Err(StepError::Mass { atom, mass: masses[atom] }),
        None => Ok(()),
    }
}

/// A system in motion: what an [`Integrator`] advances.
pub struct Motion<'a> {
    /// Cell, positions, velocities, step and time.
    pub state: &'a mut State,
    /// The forces at the present positions.
    pub forces: &'a mut Forces,
    /// Whether nobody wants energies and virial after the next step: [`Motion::complete`] has them all the same.
    pub forces_only: bool,
    masses: &'a [f64],
    source: &'a mut dyn ForceSource,
}

impl<'a> Motion<'a> {
    /// A system whose forces are computed first. `masses` are in u, one an atom.
    ///
    /// # Errors
    /// Masses that are not positive, lists of other lengths, forces that cannot be computed.
    pub fn start(
        state: &'a mut State,
        masses: &'a [f64],
        source: &'a mut dyn ForceSource,
        forces: &'a mut Forces,
    ) -> Result<Motion<'a>, StepError> {
        source
            .evaluate(&state.cell, &state.positions, forces)
            .map_err(|error| StepError::Forces { step: 0, error })?;
        Motion::resume(state, masses, source, forces)
    }

    /// A system whose forces are at hand: `forces` are those of the present positions.
    ///
    /// # Errors
    /// Masses that are not positive, lists of other lengths.
    pub fn resume(
        state: &'a mut State,
        masses: &'a [f64],
        source: &'a mut dyn ForceSource,
        forces: &'a mut Forces,
    ) -> Result<Motion<'a>, StepError> {
        check_masses(masses)?;
        let motion = Motion { state, forces, forces_only: false, masses, source };
        motion.check()?;
        Ok(motion)
    }

    /// The masses in u.
    pub fn masses(&self) -> &[f64] {
        self.masses
    }

    /// How many times the source of the forces has built neighbour lists.
    pub fn list_builds(&self) -> u64 {
        self.source.list_builds()
    }

    /// Computes the forces at the present positions, such as after a change from outside.
    ///
    /// # Errors
    /// Forces that cannot be computed.
    pub fn evaluate(&mut self) -> Result<(), StepError> {
        self.evaluate_in(self.state.step.saturating_add(1))
    }

    /// As [`Motion::evaluate`], in a step of this number.
    fn evaluate_in(&mut self, step: u64) -> Result<(), StepError> {
        let (cell, positions) = (&self.state.cell, &self.state.positions);
        match self.forces_only {
            true => self.source.forces_only(cell, positions, self.forces),
            false => self.source.evaluate(cell, positions, self.forces),
        }
        .map_err(|error| StepError::Forces { step, error })?;
        self.check()
    }

    /// Computes energies and virial if they were left out.
    ///
    /// # Errors
    /// Energies that cannot be computed.
    pub fn complete(&mut self) -> Result<(), StepError> {
        if self.forces.energies.is_empty() {
            self.source
                .evaluate(&self.state.cell, &self.state.positions, self.forces)
                .map_err(|error| StepError::Forces { step: self.state.step, error })?;
        }
        Ok(())
    }

    /// The kinetic energy in kJ/mol.
    pub fn kinetic_energy(&self) -> f64 {
        kinetic_energy(self.masses, &self.state.velocities)
    }

    /// Everything has one entry an atom.
    fn check(&self) -> Result<(), StepError> {
        let positions = self.state.positions.len();
        for (what, count) in [
            ("masses", self.masses.len()),
            ("velocities", self.state.velocities.len()),
            ("forces", self.forces.forces.len()),
        ] {
            if count != positions {
                return Err(StepError::Lengths { positions, what, count });
            }
        }
        Ok(())
    }

    /// Velocities by the forces at hand for a time in ps: v ← v + F/m · t.
    ///
    /// Where forces are whole multiples of a step, momenta are rounded to multiples of step · t, and then a kick is exact:
    /// the total momentum does not change by a bit, and a kick backwards undoes one. A velocity stands for the momentum
    /// whose quotient by the mass it is nearest to; that finds its multiple again while it is below 2⁴⁹.
    fn kick(&mut self, time: f64) {
        const MOST: f64 = (1u64 << 49) as f64;
        let step = self.source.force_step();
        let unit = time * step;
        let leaf = |_, (v, f, m): (&mut [[f64; 3]], &[[f64; 3]], &[f64])| {
            for ((v, f), m) in v.iter_mut().zip(f).zip(m) {
                let (multiples, per_step) = (m / unit, 1.0 / step);
                let (p, n) = (v.map(|v| v * multiples), f.map(|f| f * per_step));
                let exact = step != 0.0 && p.iter().chain(&n).all(|x| x.abs() < MOST);
                let velocity = unit / m;
                *v = std::array::from_fn(|k| match exact {
                    true => (((p[k] + INTEGERS) - INTEGERS) + n[k]) * velocity,
                    false => kicked(v[k], f[k], time / m),
                });
            }
        };
        chunks::each((&mut self.state.velocities[..], &self.forces.forces[..], self.masses), &leaf);
    }

    /// Rounds velocities to what a kick of this length makes of them without forces, so that undoing steps brings the very
    /// bits back.
    pub fn settle(&mut self, time: f64) {
        let forces = std::mem::take(&mut self.forces.forces);
        self.forces.forces = vec![[0.0; 3]; forces.len()];
        self.kick(time);
        self.forces.forces = forces;
    }

    /// Positions by the velocities for a time in ps: r ← r + v t, rounded once to the grid.
    fn drift(&mut self, time: f64) -> Result<(), StepError> {
        let State { cell, positions, velocities, step, .. } = &mut *self.state;
        let velocities = &velocities[..];
        positions
            .advance_all(cell, |i| velocities[i].map(|v| v * time))
            .map_err(|escaped| StepError::Escaped { step: step.saturating_add(1), escaped })
    }

    /// Another step of this length (ps) is done.
    fn done(&mut self, time_step: f64) {
        self.state.step = self.state.step.saturating_add(1);
        self.state.time += time_step;
    }
}

/// v + F · t/m, a component.
#[inline(always)]
fn kicked<S: Scalar>(v: S, f: S, time_per_mass: S) -> S {
    v + time_per_mass * f
}

/// What an integrator has to remember besides the state, for a restart that goes on bit by bit. Its
/// parameters do not belong to it: they come from the input again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The integrator's name.
    pub integrator: String,
    /// Its numbers; what they are is its own affair.
    pub numbers: Vec<f64>,
}

/// A memory is another integrator's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the restart is of the integrator `{found}` with {count} numbers, not of `{expected}`")]
pub struct MemoryError {
    /// The name in the memory.
    pub found: String,
    /// How many numbers it has.
    pub count: usize,
    /// The name of the integrator at hand.
    pub expected: &'static str,
}

/// Advances a system in time.
///
/// A step begins with the forces at hand, evaluates new ones once, and ends with these. What it does to each atom is
/// written for any [`Scalar`]: the backward pass through both parts is derived from it. (Rounding to
/// the grids of positions and momenta is differentiated as the identity.)
///
/// The quantity potential + kinetic energy + [`reservoir`](Integrator::reservoir) is conserved but for the
/// errors of discretisation, which fall with the square of the time step.
pub trait Integrator: Send {
    /// Its name in the input.
    fn name(&self) -> &'static str;

    /// The time step in ps.
    fn time_step(&self) -> f64;

    /// The part of a step before the new forces: from those at hand to new positions.
    ///
    /// # Errors
    /// An atom that escapes.
    fn begin(&mut self, motion: &mut Motion<'_>) -> Result<(), StepError>;

    /// The part of a step after the forces at the new positions have been computed.
    fn end(&mut self, motion: &mut Motion<'_>);

    /// Takes one step: starts from the forces at hand, evaluates once, and leaves the forces at the new
    /// positions; counts the step and the time.
    ///
    /// # Errors
    /// An atom that escapes, forces that are not finite. The state is then somewhere within the step.
    fn step(&mut self, motion: &mut Motion<'_>) -> Result<(), StepError> {
        motion.check()?;
        self.begin(motion)?;
        motion.evaluate()?;
        self.end(motion);
        motion.done(self.time_step());
        Ok(())
    }

    /// Its parameters that derivatives are taken in, by name: the time step first.
    fn settings(&self) -> Vec<(&'static str, f64)>;

    /// The backward pass through [`begin`](Self::begin), which was called at this moment.
    fn pull_back_begin(&self, at: Moment<'_>, adjoint: &mut Adjoint);

    /// The backward pass through [`end`](Self::end); `at` has the forces that it was called with, and its velocities are
    /// not looked at.
    fn pull_back_end(&self, at: Moment<'_>, adjoint: &mut Adjoint);

    /// Why a step cannot be undone by taking it with reversed velocities, if it cannot.
    fn irreversible(&self) -> Option<&'static str> {
        None
    }

    /// Whether it leaves the total momentum as it is when the forces add up to zero; then a system has
    /// three degrees of freedom less.
    fn conserves_momentum(&self) -> bool;

    /// The energy (kJ/mol) of what the system is coupled to: minus the heat that it has received so far.
    fn reservoir(&self) -> f64 {
        0.0
    }

    /// What it has to remember.
    fn memory(&self) -> Memory {
        Memory { integrator: self.name().to_owned(), numbers: Vec::new() }
    }

    /// Goes on from what it once remembered.
    ///
    /// # Errors
    /// The memory of another integrator.
    fn recall(&mut self, memory: &Memory) -> Result<(), MemoryError> {
        expect_memory::<0>(self.name(), memory).map(|[]| ())
    }
}

/// The K numbers of a memory of this name.
fn expect_memory<const K: usize>(expected: &'static str, memory: &Memory) -> Result<[f64; K], MemoryError> {
    let error = || MemoryError { found: memory.integrator.clone(), count: memory.numbers.len(), expected };
    if memory.integrator != expected {
        return Err(error());
    }
    memory.numbers.as_slice().try_into().map_err(|_| error())
}
