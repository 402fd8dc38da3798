//! What the examples with liquid argon share: a system from `inputs/argon.toml`, and steps.

use md::catalog;
use md::forces::{Evaluator, Forces};
use md::input::plan::{Plan, Stage, Task};
use md::integrate::velocities::MaxwellBoltzmann;
use md::integrate::{Integrator, Langevin, Motion, degrees_of_freedom, remove_drift, temperature};
use md::system::{Atoms, State};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// A liquid that can be simulated.
pub struct Liquid {
    pub state: State,
    pub atoms: Arc<Atoms>,
    pub boltzmann: f64,
    evaluator: Evaluator,
    forces: Forces,
    seed: u64,
}

/// What there is to see at a step.
pub struct Sight<'a> {
    pub state: &'a State,
    /// Potential and kinetic energy, kJ/mol.
    pub energy: f64,
    /// K, for 3N − 3 degrees of freedom.
    pub temperature: f64,
}

impl Liquid {
    /// The system and the stages of `inputs/argon.toml`, with some keys changed.
    pub fn read(overrides: &[(&str, &str)]) -> Result<(Liquid, Vec<Stage>), Box<dyn Error>> {
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/argon.toml");
        let overrides: Vec<_> = overrides.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let plan = Plan::read(&input, &overrides, &catalog()).map_err(|errors| errors.to_string())?;
        let Plan { atoms, state, setup, stages, boltzmann, seed, .. } = plan;
        let evaluator = Evaluator::new(setup)?;
        Ok((Liquid { state, atoms, boltzmann, evaluator, forces: Forces::default(), seed }, stages))
    }

    /// 3N − 3: the total momentum is conserved.
    pub fn degrees_of_freedom(&self) -> usize {
        degrees_of_freedom(self.atoms.len(), 0, true)
    }

    /// Takes steps; `see` is called before the first and after every `every`.
    pub fn run(
        &mut self,
        integrator: &mut dyn Integrator,
        steps: u64,
        every: u64,
        mut see: impl FnMut(Sight<'_>) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let (freedom, boltzmann) = (self.degrees_of_freedom(), self.boltzmann);
        let Liquid { state, atoms, evaluator, forces, .. } = self;
        let mut motion = Motion::start(state, &atoms.masses, evaluator, forces)?;
        for step in 0..=steps {
            if step > 0 {
                integrator.step(&mut motion)?;
            }
            if step % every == 0 {
                let kinetic = motion.kinetic_energy();
                let energy = motion.forces.energy() + kinetic;
                let temperature = temperature(kinetic, freedom, boltzmann).unwrap_or(0.0);
                see(Sight { state: motion.state, energy, temperature })?;
            }
        }
        Ok(())
    }

    /// Runs those stages of the input that are Langevin dynamics: melting the lattice and equilibrating. At the
    /// end the motion of the centre of mass is removed.
    pub fn prepare(&mut self, stages: &[Stage]) -> Result<(), Box<dyn Error>> {
        for stage in stages {
            let Task::Langevin { time_step, temperature, friction } = stage.task else { continue };
            if let Some(temperature) = stage.velocities {
                let (boltzmann, seed) = (self.boltzmann, self.seed);
                let draw =
                    MaxwellBoltzmann { temperature, boltzmann, seed, remove_drift: true, scale_to: None };
                self.state.velocities = draw.draw(&self.atoms.masses)?;
            }
            let mut langevin = Langevin::new(time_step, friction, temperature, self.boltzmann, self.seed)?;
            let span = stage.steps as f64 * time_step;
            println!("{:12} {span:5.1} ps of Langevin dynamics at {temperature} K", stage.name);
            self.run(&mut langevin, stage.steps, stage.steps.max(1), |_| Ok(()))?;
        }
        remove_drift(&self.atoms.masses, &mut self.state.velocities);
        Ok(())
    }
}
