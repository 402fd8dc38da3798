//! A trajectory that a simulation should follow.

use super::averages::MakeIntegrator;
use super::target::{Found, Known, Target};
use super::{FitError, System};
use crate::adjoint::{Average, Memory, Objective, Observable, Run, Thermal, Way, When};
use crate::forces::Evaluator;
use crate::system::State;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The distance of a simulation from a trajectory: the root of the mean of |r − r′|² over atoms and frames. Its derivatives
/// are those of the discrete adjoint: exact for the steps taken, and as short-lived as trajectories are.
pub struct Trajectory {
    evaluator: Evaluator,
    integrator: MakeIntegrator,
    masses: Vec<f64>,
    start: State,
    steps: usize,
    thermal: Thermal,
    average: Average,
    known: [Known; 1],
    stop: Arc<AtomicBool>,
}

impl Trajectory {
    /// Frames (places in nm), one every so many steps from a start, and how well they are known.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        evaluator: Evaluator,
        integrator: MakeIntegrator,
        masses: Vec<f64>,
        start: State,
        thermal: Thermal,
        every: usize,
        frames: Vec<Vec<[f64; 3]>>,
        mut known: Known,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let steps = every * frames.len();
        known.count = 3 * masses.len() * frames.len();
        // (three components make a distance)
        known.error *= 3.0f64.sqrt();
        let average = Average { of: Observable::Match(frames), when: When::Every { from: every, every } };
        Self { evaluator, integrator, masses, start, steps, thermal, average, known: [known], stop }
    }
}

impl Target for Trajectory {
    fn known(&self) -> &[Known] {
        &self.known
    }
    fn find(&mut self, numbers: &[f64], slopes: bool) -> Result<Found, FitError> {
        System::set(std::slice::from_mut(&mut self.evaluator), numbers)?;
        let run = Run {
            evaluator: &mut self.evaluator,
            integrator: (self.integrator)(),
            masses: &self.masses,
            start: self.start.clone(),
            steps: self.steps,
            thermal: self.thermal,
        };
        let mut objective = Objective::of(self.average.clone());
        if !slopes {
            let square = run.value(&mut objective)?;
            return Ok(Found { values: vec![square.sqrt()], slopes: Vec::new() });
        }
        let way = Way { memory: Memory::StoreAll, parameters: true, horizon: None };
        let stop = &self.stop;
        let watch = &mut |_, _| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let found = run.gradient(&mut objective, &way, watch)?;
        let distance = found.value.sqrt();
        // (at a distance of nothing there is no slope)
        let each = if distance > 0.0 { 0.5 / distance } else { 0.0 };
        let slopes = found.parameters.iter().map(|(slope, _)| each * slope).collect();
        Ok(Found { values: vec![distance], slopes: vec![slopes] })
    }
    fn is_linear(&self) -> bool {
        false
    }
}
