//! Velocity Verlet.

use super::{BadParameter, Integrator, Motion, StepError};

/// Newton's equations by velocity Verlet, at constant energy:
///
/// v ← v + F/m · dt/2; r ← r + v dt; F ← F(r); v ← v + F/m · dt/2
///
/// Time-reversible and symplectic; of second order: the error of a trajectory and the fluctuation of the
/// energy fall with dt², and the energy does not drift. Stable for harmonic motion while ω dt < 2.
///
/// Source: W. C. Swope, H. C. Andersen, P. H. Berens and K. R. Wilson, J. Chem. Phys. 76, 637 (1982).
#[derive(Clone, Debug, PartialEq)]
pub struct VelocityVerlet {
    time_step: f64,
}

impl VelocityVerlet {
    /// With a time step in ps.
    ///
    /// # Errors
    /// A time step that is not a positive number.
    pub fn new(time_step: f64) -> Result<VelocityVerlet, BadParameter> {
        Ok(VelocityVerlet { time_step: BadParameter::check("the time step", time_step, false)? })
    }
}

impl Integrator for VelocityVerlet {
    fn name(&self) -> &'static str {
        "velocity-verlet"
    }

    fn time_step(&self) -> f64 {
        self.time_step
    }

    fn step(&mut self, motion: &mut Motion<'_>) -> Result<(), StepError> {
        motion.check()?;
        motion.kick(0.5 * self.time_step);
        motion.drift(self.time_step)?;
        motion.evaluate()?;
        motion.kick(0.5 * self.time_step);
        motion.done(self.time_step);
        Ok(())
    }

    fn conserves_momentum(&self) -> bool {
        true
    }
}
