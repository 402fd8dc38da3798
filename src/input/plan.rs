//! What an input means: everything a run needs, checked.

use super::fit::Fit;
use super::gradient::Gradient;
use super::report::Diagnostics;
use super::response::Response;
use crate::forces::Setup;
use crate::formats::{AtomLabel, Format};
use crate::system::{Atoms, State, Topology};
use crate::units::UnitSystem;
use std::path::PathBuf;
use std::sync::Arc;

/// A run, as understood.
pub struct Plan {
    /// What it is about, in one line.
    pub title: String,
    /// The units of bare numbers; with [`UnitSystem::Lj`] everything is in reduced units.
    pub units: UnitSystem,
    /// Boltzmann's constant in internal units.
    pub boltzmann: f64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The atoms.
    pub atoms: Arc<Atoms>,
    /// What structure files call them.
    pub labels: Vec<AtomLabel>,
    /// What joins them.
    pub topology: Topology,
    /// Where the run starts.
    pub state: State,
    /// Whether the start came with velocities (of a structure file or an earlier run).
    pub has_velocities: bool,
    /// What the evaluator is made of.
    pub setup: Setup,
    /// What is done, one after the other.
    pub stages: Vec<Stage>,
    /// What is written.
    pub output: Output,
    /// What is asked of second derivatives.
    pub response: Response,
    /// What is learned from data, if anything.
    pub fit: Option<Fit>,
    /// What is differentiated through the last stage.
    pub gradient: Option<Gradient>,
    /// The input with every default filled in: the text of `run.toml`.
    pub echo: String,
    /// What is odd but not wrong.
    pub warnings: Diagnostics,
}

/// One part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How many steps (at most, when minimising).
    pub steps: u64,
    /// What is done.
    pub task: Task,
    /// New velocities at this temperature (K) before the stage begins.
    pub velocities: Option<f64>,
    /// Whether the motion of the centre of mass is removed before the stage begins.
    pub remove_drift: bool,
    /// Steps between rows of the energy table.
    pub energies_every: u64,
    /// Steps between frames of each trajectory; 0 for none.
    pub frames_every: Vec<u64>,
}

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// Velocity Verlet at constant energy.
    VelocityVerlet {
        /// ps
        time_step: f64,
    },
    /// Langevin dynamics (BAOAB) at constant temperature.
    Langevin {
        /// ps
        time_step: f64,
        /// K
        temperature: f64,
        /// 1/ps
        friction: f64,
    },
    /// Minimisation by FIRE.
    Fire {
        /// The largest force component at the end, kJ/mol/nm.
        force: f64,
        /// The longest move of an atom in a step, nm.
        longest_move: f64,
        /// ps
        time_step: f64,
    },
    /// Minimisation by L-BFGS.
    Lbfgs {
        /// The largest force component at the end, kJ/mol/nm.
        force: f64,
        /// The longest move of an atom in a step, nm.
        longest_move: f64,
        /// How many earlier steps are remembered.
        memory: usize,
    },
}

/// What is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Steps between restart files.
    pub restart_every: u64,
    /// The trajectories.
    pub trajectories: Vec<Trajectory>,
}

/// A trajectory file.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Its name in the run's folder.
    pub file: PathBuf,
    /// Its format.
    pub format: Format,
    /// The atoms written.
    pub atoms: Vec<u32>,
    /// Whether atoms are followed through periodic images instead of put back into the cell.
    pub unwrapped: bool,
    /// Whether velocities are written.
    pub velocities: bool,
    /// Digits after the decimal point in text formats; `None` for as many as it takes.
    pub decimals: Option<usize>,
}
