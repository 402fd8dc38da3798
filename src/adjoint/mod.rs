//! Derivatives of what comes out of a simulation: the adjoint through time.
//!
//! A run makes states z₀ → z₁ → … → z_N (positions, velocities, forces), and an [`Objective`] a number L of them. The backward
//! pass carries the adjoint λₙ = ∂L/∂zₙ from the last state to the first. What a step does to each atom is
//! differentiated where it is written ([`Integrator::pull_back_begin`]); the forces between the two halves of the step hand on
//!
//! λ_r ← λ_r + (∂F/∂r)ᵀ λ_F, ∂L/∂θ ← ∂L/∂θ + λ_F · ∂F/∂θ,
//!
//! a Hessian product, as the Hessian is symmetric: one a step, whatever the number of coordinates and parameters. It is
//! exact for the steps taken: the derivative of the numbers that were computed, in which rounding to the grids of positions, momenta
//! and forces counts as the identity. Neighbour lists need no derivative: forces do not depend on them.
//!
//! The backward pass needs the states in reverse ([`Memory`]): all of them kept, some kept and the others computed again, or
//! none, where velocity Verlet on integers retraces its steps to the bit (D. Levesque and L. Verlet, J. Stat. Phys. 72,
//! 519 (1993)). The states are the same bits, and so are the derivatives.
//!
//! In a chaotic system λ grows like exp(t/τ) on the way back: see [`growth`]. Beyond some time the derivative is that of
//! one trajectory among all that look the same, and says nothing of averages. For those of equilibrium there is the
//! [`ensemble`] of configurations, whose derivatives are covariances.

pub mod ensemble;
pub mod growth;
mod objective;
mod observable;
pub mod reweighting;

pub use growth::Lengths;
pub use objective::{Average, Combine, Objective, When};
pub use observable::{Observable, Thermal};

use crate::autodiff::checkpointing::{Counts, InMemory, OnDisk, Steps, Store, checkpointed};
use crate::forces::{Direction, Evaluator, ForceError, ForceSource, Forces, Grid, Kind};
use crate::integrate::{Adjoint, Integrator, Moment, Motion, StepError};
use crate::system::{Cell, Positions, State};
use observable::Seed;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How the states of a run are had in reverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All are kept.
    StoreAll,
    /// So many are kept at a time, the others computed again: [`checkpointed`].
    Checkpoints {
        /// How many.
        snapshots: usize,
        /// The folder for them, if they are kept on disk.
        folder: Option<PathBuf>,
    },
    /// None: steps are taken backward.
    Reversible,
}

/// Why there is no derivative.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GradientError {
    /// The run broke down.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Forces or their derivatives could not be computed.
    #[error(transparent)]
    Forces(#[from] ForceError),
    /// A snapshot could not be written or read.
    #[error("a snapshot of the run cannot be kept: {0}")]
    Snapshot(#[from] std::io::Error),
    /// Steps cannot be taken backward.
    #[error("the run cannot be retraced: {0}; keep its states, or some of them")]
    Irreversible(String),
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The objective makes no sense for this run.
    #[error("{0}")]
    Senseless(String),
}

/// What is run.
pub struct Run<'a> {
    /// What computes forces and their derivatives.
    pub evaluator: &'a mut Evaluator,
    /// What takes the steps.
    pub integrator: Box<dyn Integrator>,
    /// Of the atoms, in u.
    pub masses: &'a [f64],
    /// Where it begins.
    pub start: State,
    /// How many steps.
    pub steps: usize,
    /// What makes temperatures of energies.
    pub thermal: Thermal,
}

/// How to go backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Where states come from.
    pub memory: Memory,
    /// Whether derivatives in the parameters of the energy are wanted.
    pub parameters: bool,
    /// After how many steps the adjoint is dropped, if it is.
    pub horizon: Option<usize>,
}

/// The derivatives of a number in everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// The number.
    pub value: f64,
    /// The averages that it is made of.
    pub averages: Vec<f64>,
    /// In the first positions, velocities, in masses and settings of the integrator. (The forces' adjoint is handed on: zero.)
    pub start: Adjoint,
    /// In the parameters of the energy ([`Evaluator::parameter_names`]); whether they take part in anything.
    pub parameters: Vec<(f64, bool)>,
    /// The length of λ_r after each step of the way back.
    pub lengths: Lengths,
    /// What it took.
    pub cost: Cost,
}

/// What a derivative took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// The first run forward.
    pub forward: Duration,
    /// All of it.
    pub total: Duration,
    /// Steps and snapshots.
    pub counts: Counts,
    /// Bytes of a state.
    pub state: usize,
    /// Bytes of the states that were kept at a time, at most.
    pub kept: usize,
}

/// A state with its forces.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The state.
    pub state: State,
    /// Its forces.
    pub forces: Vec<[f64; 3]>,
}

// (derived, it would not use the memory that is there again)
impl Clone for Snapshot {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), forces: self.forces.clone() }
    }
    fn clone_from(&mut self, o: &Self) {
        self.state.clone_from(&o.state);
        self.forces.clone_from(&o.forces);
    }
}

impl Snapshot {
    /// How many bytes one of so many atoms takes.
    pub fn bytes(atoms: usize) -> usize {
        // (coordinates, images, velocities, forces)
        size_of::<Self>() + atoms * (24 + 12 + 24 + 24)
    }
}

/// The adjoint on its way back.
struct Backward {
    adjoint: Adjoint,
    parameters: Vec<(f64, bool)>,
    /// The state whose adjoint it is.
    at: Snapshot,
    /// ∂L/∂U and ∂L/∂W of that state, by name of what is strained: to be handed on with the forces.
    seed: Seed,
    lengths: Lengths,
    /// What a step taken backward has computed beside its forces.
    product: Product,
}

/// A Hessian product at a state that a step backward comes to, computed in one pass with its forces: for that the adjoint of
/// these forces must be foreseen.
#[derive(Default)]
struct Product {
    /// Whether it is.
    foreseen: bool,
    /// The adjoint of that state as it will be, where its velocities and forces do not matter for it.
    along: Adjoint,
    /// How forces change along the adjoint of the forces.
    change: Forces,
}

/// Forces, and what is computed beside them.
struct Source<'a> {
    evaluator: &'a mut Evaluator,
    beside: Option<&'a mut Product>,
}

impl ForceSource for Source<'_> {
    fn evaluate(&mut self, cell: &Cell, positions: &Positions, out: &mut Forces) -> Result<(), ForceError> {
        self.evaluator.evaluate(cell, positions, out)
    }
    fn forces_only(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        match &mut self.beside {
            Some(Product { foreseen: true, along, change }) => {
                let direction = Direction { moves: &along.forces, strain: [[0.0; 3]; 3] };
                self.evaluator.forces_and_tangents(cell, positions, &direction, out, change)
            }
            _ => self.evaluator.forces_only(cell, positions, out),
        }
    }
    fn force_step(&self) -> f64 {
        self.evaluator.force_step()
    }
    fn list_builds(&self) -> u64 {
        self.evaluator.list_builds()
    }
}

/// A run as [`Steps`].
struct Process<'a, 'o> {
    evaluator: &'a mut Evaluator,
    integrator: Box<dyn Integrator>,
    masses: &'a [f64],
    objective: &'o mut Objective,
    first: u64,
    steps: usize,
    /// The last state that the objective has seen, as a number of steps.
    seen: usize,
    forces: Forces,
    way: Way,
    clock: Instant,
    forward: Duration,
    failed: Option<GradientError>,
    watch: Watch<'o>,
    backward: usize,
}

/// Is told how many steps have been taken forward for the first time, and how many backward; may want to stop.
pub type Watch<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>;

/// The adjoint at the end of the run, or on its way back.
enum Back {
    Last(Box<Snapshot>),
    Going(Box<Backward>),
}

impl Process<'_, '_> {
    /// Lets the objective see a state for the first time.
    fn observe(&mut self, state: &State, step: usize) -> Result<(), GradientError> {
        self.objective.see(step, state, self.masses, &self.forces)
    }

    fn step(
        &mut self,
        snapshot: &mut Snapshot,
        step: usize,
        beside: Option<&mut Product>,
    ) -> Result<(), GradientError> {
        std::mem::swap(&mut self.forces.forces, &mut snapshot.forces);
        let first_time = step + 1 > self.seen;
        let mut source = Source { evaluator: self.evaluator, beside };
        let mut motion = Motion::resume(&mut snapshot.state, self.masses, &mut source, &mut self.forces)?;
        motion.forces_only = !(first_time && self.objective.wants_energies(step + 1));
        self.integrator.step(&mut motion)?;
        if first_time {
            self.seen = step + 1;
            self.observe(&snapshot.state, step + 1)?;
            if self.seen == self.steps {
                self.forward = self.clock.elapsed();
            }
        }
        std::mem::swap(&mut self.forces.forces, &mut snapshot.forces);
        self.report()
    }

    fn report(&mut self) -> Result<(), GradientError> {
        match (self.watch)(self.seen, self.backward) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(GradientError::Interrupted),
        }
    }

    /// The adjoint of the last state.
    fn begin(&mut self, last: &Snapshot) -> Result<Backward, GradientError> {
        self.objective.finish()?;
        let State { cell, positions, .. } = &last.state;
        // (one grid for the tangents of the whole way back, whatever way that is)
        self.evaluator.hold_stiffness(None);
        let stiffness = self.evaluator.stiffness(cell, positions)?;
        self.evaluator.hold_stiffness(Some(stiffness));
        let atoms = self.masses.len();
        let mut backward = Backward {
            adjoint: Adjoint::zero(atoms, self.integrator.settings().len()),
            parameters: vec![(0.0, false); self.evaluator.parameter_names().len()],
            at: last.clone(),
            seed: Seed::none(),
            lengths: Lengths::default(),
            product: Product::default(),
        };
        self.objective.pull(
            self.steps,
            self.masses,
            &backward.at,
            &mut backward.adjoint,
            &mut backward.seed,
        )?;
        Ok(backward)
    }

    /// The backward pass through the end of the step to the state that the adjoint is at, and through its forces.
    fn through_end(&mut self, back: &mut Backward) -> Result<(), GradientError> {
        let Backward { adjoint, at, .. } = back;
        self.integrator.pull_back_end(self.moment(at, at.state.step), adjoint);
        self.through_forces(back)
    }

    /// A state as a moment of the run.
    fn moment<'a>(&'a self, at: &'a Snapshot, step: u64) -> Moment<'a> {
        Moment { step, velocities: &at.state.velocities, forces: &at.forces, masses: self.masses }
    }

    /// Hands the adjoint of the forces on to positions and parameters.
    fn through_forces(&mut self, back: &mut Backward) -> Result<(), GradientError> {
        let Backward { adjoint, parameters, at, seed, product, .. } = back;
        let State { cell, positions, .. } = &at.state;
        let direction = Direction { moves: &adjoint.forces, strain: seed.strain };
        if self.way.parameters {
            let slopes = self.evaluator.slopes(cell, positions, Some(direction), seed.energy != 0.0)?;
            for ((sum, matters), (slope, known)) in parameters.iter_mut().zip(slopes) {
                // (F = −∂E/∂r, W = −∂E/∂ε)
                *sum += seed.energy * slope.value - slope.tangent;
                *matters |= known;
            }
        }
        let foreseen = product.foreseen && !direction.strains() && product.along.forces == adjoint.forces;
        if !foreseen {
            self.evaluator.tangents(cell, positions, &direction, false, &mut product.change)?;
        }
        product.foreseen = false;
        let (strains, strain) = (direction.strains(), seed.strain);
        let both = product.change.forces.iter().zip(&at.forces);
        for (r, (change, force)) in adjoint.positions.iter_mut().zip(both) {
            for c in 0..3 {
                r[c] += change[c];
                // (∂W:ε/∂r: tangents are of forces along fixed axes, not of those that are strained)
                if strains {
                    r[c] += (0..3).map(|k| strain[k][c] * force[k]).sum::<f64>();
                }
            }
        }
        adjoint.forces.fill([0.0; 3]);
        *seed = Seed::none();
        Ok(())
    }

    /// Foresees the adjoint of the forces of the state before this step, which is yet to be found: kicks are linear in forces
    /// and velocities, so that neither matters for it. Where the objective looks at that state, they may.
    fn foresee(&self, step: usize, back: &mut Backward) {
        let Backward { adjoint, at, product, .. } = back;
        product.foreseen = !self.objective.sees(step) && !self.forgets(step);
        if product.foreseen {
            let (along, before) = (&mut product.along, self.moment(at, self.first + step as u64));
            along.clone_from(adjoint);
            self.integrator.pull_back_begin(before, along);
            if step > 0 {
                self.integrator.pull_back_end(before, along);
            }
        }
    }

    /// Whether the adjoint is dropped before this step.
    fn forgets(&self, step: usize) -> bool {
        self.way.horizon.is_some_and(|horizon| (self.steps - step).is_multiple_of(horizon))
    }

    /// The backward pass through the beginning of a step, to the state before it, where the adjoint is now.
    fn through_begin(&mut self, step: usize, back: &mut Backward) -> Result<(), GradientError> {
        let Backward { adjoint, at, seed, lengths, .. } = back;
        self.integrator.pull_back_begin(self.moment(at, self.first + step as u64), adjoint);
        lengths.push(|| adjoint.positions.iter().flatten().map(|x| x * x).sum::<f64>().sqrt());
        if self.forgets(step) {
            adjoint.positions.fill([0.0; 3]);
            adjoint.velocities.fill([0.0; 3]);
            adjoint.forces.fill([0.0; 3]);
        }
        self.objective.pull(step, self.masses, at, adjoint, seed)?;
        self.backward += 1;
        self.report()
    }
}

impl Steps for Process<'_, '_> {
    type State = Snapshot;
    type Adjoint = Back;

    fn advance(&mut self, snapshot: &mut Snapshot, step: usize) {
        if self.failed.is_none() {
            self.failed = self.step(snapshot, step, None).err();
        }
    }
    fn pull_back(&mut self, before: &Snapshot, step: usize, back: &mut Back) {
        if self.failed.is_some() {
            return;
        }
        let mut pull = || -> Result<(), GradientError> {
            if let Back::Last(last) = back {
                *back = Back::Going(Box::new(self.begin(last)?));
            }
            match back {
                Back::Going(back) => {
                    self.through_end(back)?;
                    back.at.clone_from(before);
                    self.through_begin(step, back)
                }
                Back::Last(_) => Ok(()),
            }
        };
        self.failed = pull().err();
    }
}

/// The adjoint of the last state, as far as it is known without looking at anything else.
fn last(state: &Snapshot) -> Back {
    Back::Last(Box::new(state.clone()))
}

impl Process<'_, '_> {
    /// By states that are kept, or some of them.
    fn checkpointed(
        &mut self,
        start: &Snapshot,
        snapshots: usize,
        store: impl Store<Snapshot>,
    ) -> Result<(Back, Counts), GradientError> {
        let steps = self.steps;
        Ok(checkpointed(self, start, steps, snapshots, store, last)?)
    }

    /// By steps that are taken backward: with reversed velocities. Forces come with the Hessian product that the adjoint needs.
    fn retraced(&mut self, start: &Snapshot) -> Result<(Back, Counts), GradientError> {
        let turn = |s: &mut Snapshot| s.state.velocities.iter_mut().flatten().for_each(|v| *v = -*v);
        let mut snapshot = start.clone();
        for step in 0..self.steps {
            self.step(&mut snapshot, step, None)?;
        }
        let mut back = self.begin(&snapshot)?;
        drop(snapshot);
        for step in (0..self.steps).rev() {
            self.through_end(&mut back)?;
            self.foresee(step, &mut back);
            turn(&mut back.at);
            self.step(&mut back.at, step, Some(&mut back.product))?;
            turn(&mut back.at);
            // (the clocks of a step backward run forward)
            back.at.state.step = self.first + step as u64;
            self.through_begin(step, &mut back)?;
        }
        let State { positions, velocities, .. } = &back.at.state;
        if *positions != start.state.positions || *velocities != start.state.velocities {
            let message = "going back, it did not come upon the very state it had begun with";
            return Err(GradientError::Irreversible(message.into()));
        }
        let back = Back::Going(Box::new(back));
        let steps = self.steps as u64;
        Ok((back, Counts { forward: 2 * steps, backward: steps, stored: 0, snapshots: 0 }))
    }
}

impl<'s> Run<'s> {
    /// The number of an objective, and its derivatives.
    ///
    /// # Errors
    /// A run that breaks down, states that cannot be kept or retraced, an objective that has no value.
    pub fn gradient(
        self,
        objective: &mut Objective,
        way: &Way,
        watch: Watch<'_>,
    ) -> Result<Gradient, GradientError> {
        if way.memory == Memory::Reversible {
            reversible(self.evaluator, &*self.integrator)?;
        }
        let masses = self.masses;
        let (mut process, start) = self.begin(objective, way, watch)?;
        let found = process.there_and_back(&start);
        process.evaluator.hold_stiffness(None);
        let (back, counts) = found?;
        let (forward, kept) = (process.forward, counts.snapshots * Snapshot::bytes(masses.len()));
        let total = process.clock.elapsed();
        Ok(Gradient {
            value: objective.value(),
            averages: objective.values(),
            start: back.adjoint,
            parameters: back.parameters,
            lengths: back.lengths,
            cost: Cost { forward, total, counts, state: Snapshot::bytes(masses.len()), kept },
        })
    }

    /// The number of an objective alone.
    ///
    /// # Errors
    /// A run that breaks down, an objective that has no value.
    pub fn value(self, objective: &mut Objective) -> Result<f64, GradientError> {
        let way = Way { memory: Memory::StoreAll, parameters: false, horizon: None };
        let watch = &mut |_, _| ControlFlow::Continue(());
        let (mut process, mut state) = self.begin(objective, &way, watch)?;
        for step in 0..process.steps {
            process.step(&mut state, step, None)?;
        }
        objective.finish()?;
        Ok(objective.value())
    }

    /// Before the first step.
    fn begin<'o>(
        self,
        objective: &'o mut Objective,
        way: &Way,
        watch: Watch<'o>,
    ) -> Result<(Process<'s, 'o>, Snapshot), GradientError> {
        let Run { evaluator, integrator, masses, start, steps, thermal } = self;
        let clock = Instant::now();
        objective.start(&start, thermal, steps)?;
        let mut state = start;
        let mut forces = Forces::default();
        let mut motion = Motion::start(&mut state, masses, evaluator, &mut forces)?;
        motion.settle(0.5 * integrator.time_step());
        let mut process = Process {
            evaluator,
            integrator,
            masses,
            objective,
            first: state.step,
            steps,
            seen: 0,
            forces,
            way: way.clone(),
            clock,
            forward: Duration::ZERO,
            failed: None,
            watch,
            backward: 0,
        };
        process.observe(&state, 0)?;
        let start = Snapshot { state, forces: process.forces.forces.clone() };
        Ok((process, start))
    }
}

impl Process<'_, '_> {
    fn there_and_back(&mut self, start: &Snapshot) -> Result<(Backward, Counts), GradientError> {
        let (back, counts) = match self.way.memory.clone() {
            Memory::StoreAll => self.checkpointed(start, self.steps.max(1), InMemory::default()),
            Memory::Checkpoints { snapshots, folder: None } => {
                self.checkpointed(start, snapshots, InMemory::default())
            }
            Memory::Checkpoints { snapshots, folder: Some(folder) } => {
                self.checkpointed(start, snapshots, OnDisk::within(&folder)?)
            }
            Memory::Reversible => self.retraced(start),
        }?;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut back = match back {
            Back::Going(back) => *back,
            // (not a single step)
            Back::Last(last) => self.begin(&last)?,
        };
        self.through_forces(&mut back)?;
        self.objective.pull_reference(&mut back.adjoint);
        Ok((back, counts))
    }
}

/// Whether steps can be retraced to the bit.
fn reversible(evaluator: &Evaluator, integrator: &dyn Integrator) -> Result<(), GradientError> {
    let why = match integrator.irreversible() {
        Some(why) => why,
        None if evaluator.method.kind == Kind::Tape => "forces of the tape are not rounded to a grid",
        None if evaluator.method.grid == Grid::NONE => {
            "without `reproducible` forces are not rounded to a grid"
        }
        None => return Ok(()),
    };
    Err(GradientError::Irreversible(why.into()))
}
