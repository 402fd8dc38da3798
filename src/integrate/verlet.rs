//! Velocity Verlet.

use super::{Adjoint, BadParameter, Integrator, Moment, Motion, StepError, kicked};

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

    fn begin(&mut self, motion: &mut Motion<'_>) -> Result<(), StepError> {
        motion.kick(0.5 * self.time_step);
        motion.drift(self.time_step)
    }

    fn end(&mut self, motion: &mut Motion<'_>) {
        motion.kick(0.5 * self.time_step);
    }

    fn settings(&self) -> Vec<(&'static str, f64)> {
        vec![("time-step", self.time_step)]
    }

    fn pull_back_begin(&self, at: Moment<'_>, adjoint: &mut Adjoint) {
        let [of_time_step] = adjoint.pull_back(at, [self.time_step], |v, f, m, [time_step], _| {
            let kick = time_step * 0.5 / m;
            let v = [kicked(v[0], f[0], kick), kicked(v[1], f[1], kick), kicked(v[2], f[2], kick)];
            (v, Some([v[0] * time_step, v[1] * time_step, v[2] * time_step]))
        });
        adjoint.settings[0] += of_time_step;
    }

    fn pull_back_end(&self, at: Moment<'_>, adjoint: &mut Adjoint) {
        adjoint.pull_back_half_kick(at, self.time_step);
    }

    fn conserves_momentum(&self) -> bool {
        true
    }
}
