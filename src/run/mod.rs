//! The loop: a [`Plan`] becomes files.
//!
//! ```text
//! for each stage:   velocities → step, step, step …           → next stage
//!                                  └ rows, frames, restart files
//! ```
//!
//! **Steps** are counted over the whole run, those of minimisers too. Rows and frames are due at multiples of
//! their intervals counted from the beginning of their stage, the beginning included, and never twice for one
//! step; there is no extra row at the end of a stage that integrates. So what is in the files does not depend on
//! where a run was interrupted: N + M steps give the same bytes as N steps, a restart and M steps, with any
//! numbers of threads.
//!
//! **Minimisers** can go on from any step as well: what they remember is in the restart file. Theirs is written
//! also when [`LONGEST_WAIT`] has passed since the last one, as their steps may take long. A minimisation that ends
//! by itself has a row for its end.
//!
//! **The time limit** leaves every process a step at least, so that a run that is resumed often enough comes to its
//! end.
//!
//! **Temperature** is 2K/(f k) with f = 3N − 3 where neither the integrator nor the energy changes the total
//! momentum (whether a field depends on where the system as a whole is, is found out by moving it), else
//! f = 3N. **Pressure** is (2K + tr W)/3V, in bar or in reduced units. **Conserved** is potential and kinetic
//! energy with that of the integrator's reservoir. It continues from stage to stage: what new velocities or an emptied
//! reservoir change is carried along. (A minimiser conserves nothing: after it, it starts anew.)

pub mod benchmark;
mod breakdown;
mod folder;
mod last_stage;
mod observers;
mod statistics;
mod summary;

pub use breakdown::Breakdown;
pub use last_stage::LastStage;
pub use observers::{instant_pressure, term_names};
pub use statistics::{Average, average, slope};
pub use summary::{Drift, Ending, Minimized, Summary, Times, Verdict};

use crate::forces::{Evaluator, ForceError, ForceSource, Forces};
use crate::formats::FrameUnits;
use crate::input::plan::{Plan, Stage, Task};
use crate::integrate::minimize::{self, Fire, Lbfgs, Minimizer, Until};
use crate::integrate::velocities::{MaxwellBoltzmann, VelocityError};
use crate::integrate::{
    BadParameter, Integrator, Langevin, Memory, MemoryError, Motion, StepError, VelocityVerlet,
    degrees_of_freedom, remove_drift,
};
use crate::observe::checkpoint::{Account, Fingerprint, Identity, Restart, RestartError};
use crate::observe::energies::{EnergyTable, EnergyTableError};
use crate::observe::progress::{Mode, Progress};
use crate::observe::trajectory::{TrajectoryError, TrajectoryFile, View, write_structure};
use crate::observe::{Kept, Tally, reason, write_whole};
use crate::plot::scale::significant;
use crate::plot::{PlotError, UnitLabels};
use crate::system::{Atoms, Cell, Positions, State};
use crate::units::UnitSystem;
use folder::Folder;
use observers::Observers;
use potentials::Vec3;
use std::cell::{Cell as Mutable, RefCell};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a minimisation may go on without a restart file.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The files that every run has in its folder, besides trajectories.
pub mod files {
    /// Rows of energies.
    pub const ENERGIES: &str = "energies.csv";
    /// The end of a run.
    pub const FINAL: &str = "final.xyz";
    /// What a run goes on from.
    pub const RESTART: &str = "restart.bin";
    /// The input as understood.
    pub const INPUT: &str = "run.toml";
    /// The last state in order before a run broke down.
    pub const LAST_GOOD: &str = "last-good.xyz";
    /// Held by the process that writes the others, and gone when it has ended.
    pub const LOCK: &str = ".lock";
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where the files go; it is made if need be. Files of an earlier run there are replaced, unless it is resumed.
    pub directory: PathBuf,
    /// Whether to go on from the restart file in the directory.
    pub resume: bool,
    /// Whether there is a restart file. If not, the structure that was reached is written also where the run is
    /// stopped.
    pub resumable: bool,
    /// Steps of the last stage, instead of the plan's.
    pub steps: Option<u64>,
    /// How many threads; none for those of the present pool.
    pub threads: Option<usize>,
    /// Stop, ready to be resumed, after this time.
    pub max_time: Option<Duration>,
    /// How progress is shown.
    pub progress: Mode,
    /// Stop, ready to be resumed, when this becomes true.
    pub interrupt: Arc<AtomicBool>,
}

impl RunOptions {
    /// Quietly into a directory, from the beginning to the end.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            resume: false,
            resumable: true,
            steps: None,
            threads: None,
            max_time: None,
            progress: Mode::Quiet,
            interrupt: Arc::default(),
        }
    }
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file could not be written.
    #[error("cannot {action} {}: {}", .path.display(), reason(.source))]
    File {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another run goes on in the folder.
    #[error(
        "{} is in use: another run{} is writing there; wait until it has ended, or name another folder (--output)",
        .path.display(),
        .process.map_or_else(String::new, |id| format!(" (process {id})"))
    )]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The process, if it is known.
        process: Option<u32>,
    },
    /// Something else stands where the folder should be.
    #[error("{} cannot be the folder for the results: {message}", .path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// What is there, and what to do.
        message: String,
    },
    /// The table of energies could not be written or continued.
    #[error(transparent)]
    Energies(#[from] EnergyTableError),
    /// A structure or trajectory could not be written or continued.
    #[error(transparent)]
    Trajectory(#[from] TrajectoryError),
    /// The restart file could not be written or read.
    #[error(transparent)]
    Restart(#[from] RestartError),
    /// The restart is not one of this plan.
    #[error("cannot resume from {}: {message}", .path.display())]
    Refused {
        /// The restart file.
        path: PathBuf,
        /// What does not fit.
        message: String,
    },
    /// The integrator's memory in the restart is of another one.
    #[error("cannot resume stage `{stage}`: {error}")]
    Memory {
        /// The stage.
        stage: String,
        /// What does not fit.
        error: MemoryError,
    },
    /// The plan has no stage.
    #[error("there is nothing to do: the input has no stage")]
    NoStages,
    /// There are no steps of dynamics to be timed.
    #[error("stage `{stage}` minimises: it has no steps of dynamics to be timed")]
    NoDynamics {
        /// The stage.
        stage: String,
    },
    /// Forces cannot be set up.
    #[error("forces cannot be computed: {0}")]
    Forces(ForceError),
    /// The integrator or minimiser does not work with the parameters given.
    #[error("stage `{stage}`: {error}")]
    Parameter {
        /// The stage.
        stage: String,
        /// What is wrong.
        error: BadParameter,
    },
    /// Velocities cannot be drawn.
    #[error("stage `{stage}`: {error}")]
    Velocities {
        /// The stage.
        stage: String,
        /// Why not.
        error: VelocityError,
    },
    /// There cannot be so many threads.
    #[error("cannot start {count} threads: {message}")]
    Threads {
        /// How many.
        count: usize,
        /// Why not.
        message: String,
    },
    /// The dynamics broke down.
    #[error(transparent)]
    Breakdown(#[from] Box<Breakdown>),
}

impl RunError {
    /// Whether the input or the request is to blame, before anything was simulated.
    pub fn is_of_input(&self) -> bool {
        use RunError::*;
        matches!(
            self,
            Refused { .. }
                | Busy { .. }
                | NoFolder { .. }
                | Memory { .. }
                | NoStages
                | NoDynamics { .. }
                | Forces(_)
                | Parameter { .. }
                | Velocities { .. }
                | Threads { .. }
        )
    }
}

/// A stage as the picture of the energies sees it.
fn pictured(stage: &Stage) -> crate::plot::Stage {
    crate::plot::Stage { name: stage.name.clone(), steps: stage.steps, time_step: time_step(&stage.task) }
}

/// Whether a folder holds a run.
pub fn holds_run(directory: &Path) -> bool {
    [files::ENERGIES, files::INPUT, files::RESTART, files::FINAL]
        .iter()
        .any(|name| directory.join(name).symlink_metadata().is_ok())
}

/// Carries out a plan.
///
/// # Errors
/// Files that cannot be written, a restart that does not belong to the plan, a system that breaks down. What
/// was written before is kept.
pub fn run(plan: Plan, options: &RunOptions) -> Result<Summary, RunError> {
    let Some(count) = options.threads else {
        return Session::start(plan, options)?.carry_out();
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
    let pool = pool.map_err(|e| RunError::Threads { count, message: e.to_string() })?;
    pool.install(|| Session::start(plan, options)?.carry_out())
}

/// Whether the total momentum is left alone by the energy: whether it stays the same, but for rounding, when the
/// system is moved as a whole. Of terms that are functions of vectors between atoms that is known; others are tried.
///
/// # Errors
/// Energies that cannot be computed.
pub fn conserves_momentum(evaluator: &mut Evaluator, state: &State) -> Result<bool, ForceError> {
    let doubtful: Vec<bool> = evaluator.terms().iter().map(|term| !term.translates()).collect();
    if !doubtful.contains(&true) {
        return Ok(true);
    }
    let mut energies = |moves: Option<&[Vec3<f64>]>| -> Result<Vec<f64>, ForceError> {
        let all = evaluator.energies(&state.cell, &state.positions, moves, None)?;
        Ok(all.into_iter().zip(&doubtful).filter_map(|(energy, doubt)| doubt.then_some(energy)).collect())
    };
    let here = energies(None)?;
    let scale: f64 = 1.0 + here.iter().map(|e| e.abs()).sum::<f64>();
    let mut moves = vec![Vec3::new(0.0, 0.0, 0.0); state.positions.len()];
    // near and far along each axis, both ways: a field may be flat nearby
    for way in [
        [0.1, 0.0, 0.0],
        [0.0, 0.1, 0.0],
        [0.0, 0.0, 0.1],
        [1e3, 0.0, 0.0],
        [-1e3, 0.0, 0.0],
        [0.0, 1e3, 0.0],
        [0.0, -1e3, 0.0],
        [0.0, 0.0, 1e3],
        [0.0, 0.0, -1e3],
    ] {
        moves.fill(Vec3::new(way[0], way[1], way[2]));
        let there = energies(Some(&moves))?;
        // (a NaN counts as changed)
        let changed = |(a, b): (&f64, &f64)| {
            (a - b).abs().partial_cmp(&(1e-8 * scale)).is_none_or(std::cmp::Ordering::is_gt)
        };
        if here.iter().zip(&there).any(changed) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An evaluator whose time is measured, and whose last result is kept where asked.
struct Watched<'a> {
    evaluator: &'a mut Evaluator,
    spent: &'a Mutable<Duration>,
    seen: Option<&'a RefCell<Seen>>,
}

/// The last evaluation of a minimiser.
struct Seen {
    state: State,
    energies: Vec<f64>,
    virial: [f64; 6],
}

impl ForceSource for Watched<'_> {
    fn force_step(&self) -> f64 {
        self.evaluator.force_step()
    }

    fn list_builds(&self) -> u64 {
        self.evaluator.list_builds()
    }

    fn forces_only(
        &mut self,
        cell: &Cell,
        positions: &Positions,
        out: &mut Forces,
    ) -> Result<(), ForceError> {
        if self.seen.is_some() {
            return self.evaluate(cell, positions, out);
        }
        let start = Instant::now();
        let result = self.evaluator.forces_only(cell, positions, out);
        self.spent.set(self.spent.get() + start.elapsed());
        result
    }

    fn evaluate(&mut self, cell: &Cell, positions: &Positions, out: &mut Forces) -> Result<(), ForceError> {
        let start = Instant::now();
        let result = self.evaluator.evaluate(cell, positions, out);
        self.spent.set(self.spent.get() + start.elapsed());
        if let (Ok(()), Some(seen)) = (&result, self.seen) {
            let mut seen = seen.borrow_mut();
            seen.state.positions.clone_from(positions);
            seen.energies.clone_from(&out.energies);
            seen.virial = out.virial;
        }
        result
    }
}

/// A run under way.
struct Session<'a> {
    options: &'a RunOptions,
    folder: Folder,
    started: Instant,
    boltzmann: f64,
    seed: u64,
    reduced: bool,
    atoms: Arc<Atoms>,
    stages: Vec<Stage>,
    restart_every: u64,
    identity: Identity,
    /// Where the stages are: the next or present one, and how many of its steps are done.
    stage: usize,
    done: u64,
    memory: Memory,
    state: State,
    forces: Forces,
    evaluator: Evaluator,
    /// Whether the energy leaves the total momentum alone.
    momentum: bool,
    /// Half the shortest cut-off: no atom should go farther in a step.
    farthest: f64,
    observers: Observers,
    account: Account,
    first_step: u64,
    spent: Mutable<Duration>,
    integration: Duration,
    output: Duration,
    simulated: f64,
    minimized: Vec<Minimized>,
}

/// Why the loop stopped.
type Flow = ControlFlow<Ending>;

impl<'a> Session<'a> {
    fn start(mut plan: Plan, options: &'a RunOptions) -> Result<Self, RunError> {
        let started = Instant::now();
        let last = plan.stages.last_mut().ok_or(RunError::NoStages)?;
        last.steps = options.steps.unwrap_or(last.steps);
        let directory = &options.directory;
        let restart_path = directory.join(files::RESTART);
        let identity = Identity {
            atoms: plan.atoms.len() as u64,
            terms: term_names(&plan.setup.terms),
            system: of_system(&plan),
            protocol: 0,
            output: of_output(&plan),
        };
        let folder = Folder::claim(directory)?;
        let restart = match options.resume {
            true => {
                let restart = Restart::read(&restart_path)?;
                check(&restart, &identity, &plan)
                    .map_err(|message| RunError::Refused { path: restart_path.clone(), message })?;
                Some(restart)
            }
            false => None,
        };

        let mut evaluator = Evaluator::new(plan.setup).map_err(RunError::Forces)?;
        let written = restart.as_ref().map(|r| (r.state.step, r.rows, r.frames.clone()));
        let (stage, done, memory, state, energies, account) = match restart {
            Some(r) => (r.stage as usize, r.done, r.memory, r.state, r.energies, r.account),
            None => (0, 0, Memory::default(), plan.state, Vec::new(), Account::default()),
        };
        let mut forces = Forces::default();
        let spent = Mutable::new(Duration::ZERO);
        let name = plan.stages.get(stage).map_or("", |s| s.name.as_str());
        let first = Watched { evaluator: &mut evaluator, spent: &spent, seen: None }.evaluate(
            &state.cell,
            &state.positions,
            &mut forces,
        );
        let momentum = first
            .and_then(|()| conserves_momentum(&mut evaluator, &state))
            .map_err(|error| Box::new(Breakdown::at_start(name, state.step, error.to_string())))?;
        spent.set(Duration::ZERO);
        if options.resume && !alike(&energies, &forces.energies) {
            let message = "the energy of its atoms is another one with this input".to_owned();
            return Err(RunError::Refused { path: restart_path, message });
        }
        let farthest = farthest(&evaluator);

        let table_path = directory.join(files::ENERGIES);
        let trajectory_paths: Vec<PathBuf> =
            plan.output.trajectories.iter().map(|t| directory.join(&t.file)).collect();
        // (all files are looked at before any is cut)
        let (mut rows_kept, mut frames_kept) = (None, vec![None; trajectory_paths.len()]);
        if let Some((step, rows, frames)) = written {
            let check = |path: &Path, what, expected, look: &dyn Fn() -> Result<Kept, String>| {
                kept(path, what, expected, look)
                    .map_err(|message| RunError::Refused { path: restart_path.clone(), message })
            };
            let look = || EnergyTable::kept(&table_path, step).map_err(|e| e.to_string());
            rows_kept = check(&table_path, "rows", rows, &look)?;
            for (k, t) in plan.output.trajectories.iter().enumerate() {
                let path = &trajectory_paths[k];
                let look = || TrajectoryFile::kept(path, t.format, step).map_err(|e| e.to_string());
                let expected = frames.get(k).copied().unwrap_or_default();
                frames_kept[k] = check(path, "frames", expected, &look)?;
            }
        }
        if !options.resume {
            // (old ones beside new files would be worse than none)
            for old in [files::RESTART, files::FINAL, files::LAST_GOOD] {
                let path = directory.join(old);
                match std::fs::remove_file(&path) {
                    Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                        return Err(RunError::File { action: "replace", path, source });
                    }
                    _ => {}
                }
            }
        }
        write_text(&directory.join(files::INPUT), &plan.echo)?;
        let reduced = plan.units == UnitSystem::Lj;
        let everything = View {
            title: plan.title.clone(),
            units: if reduced { FrameUnits::Reduced } else { FrameUnits::Nanometre },
            atoms: (0..plan.atoms.len() as u32).collect(),
            labels: plan.labels,
            unwrapped: true,
            velocities: true,
        };
        let table = match rows_kept {
            Some(kept) => EnergyTable::go_on(&table_path, kept)?,
            None => EnergyTable::create(&table_path, &identity.terms)?,
        };
        let mut trajectories = Vec::new();
        for ((t, path), kept) in plan.output.trajectories.iter().zip(&trajectory_paths).zip(frames_kept) {
            let view = View {
                atoms: t.atoms.clone(),
                labels: t.atoms.iter().map(|&i| everything.labels[i as usize].clone()).collect(),
                unwrapped: t.unwrapped,
                velocities: t.velocities,
                ..everything.clone()
            };
            trajectories.push(match kept {
                Some(kept) => TrajectoryFile::go_on(path, t.format, t.decimals, view, &kept)?,
                None => TrajectoryFile::create(path, t.format, t.decimals, view)?,
            });
        }
        let observers =
            Observers::new(directory.clone(), table, trajectories, everything, state.clone(), reduced);
        let mut session = Session {
            options,
            folder,
            started,
            boltzmann: plan.boltzmann,
            seed: plan.seed,
            reduced,
            atoms: plan.atoms,
            stages: plan.stages,
            restart_every: plan.output.restart_every.max(1),
            identity,
            stage,
            done,
            memory,
            account,
            first_step: state.step,
            state,
            forces,
            evaluator,
            momentum,
            farthest,
            observers,
            spent,
            integration: Duration::ZERO,
            output: Duration::ZERO,
            simulated: 0.0,
            minimized: Vec::new(),
        };
        if options.resume {
            session.observers.restart_step = Some(session.state.step);
        } else {
            session.save(0, 0, Memory::default())?;
        }
        Ok(session)
    }

    fn carry_out(mut self) -> Result<Summary, RunError> {
        let mut ending = Ending::Complete;
        while self.stage < self.stages.len() {
            let stage = self.stages[self.stage].clone();
            let flow = self.one_stage(&stage);
            let flow = flow.map_err(|error| match error {
                Failure::Step(error) => {
                    let (step, what) = breakdown::in_words(&error, self.state.step);
                    let atom = breakdown::atom_of(&error);
                    let time_step = time_step(&stage.task);
                    RunError::from(Box::new(self.observers.broke_down(&stage, time_step, (step, what, atom))))
                }
                Failure::TooFast(TooFast { atom, distance, limit }) => {
                    let unit = if self.reduced { "σ" } else { "nm" };
                    let [distance, limit] = [distance, limit].map(|x| significant(x, 3));
                    let what = format!(
                        "atom {} would move {distance} {unit} in one step, more than half the cut-off ({limit} {unit})",
                        atom + 1
                    );
                    let step = self.state.step;
                    let time_step = time_step(&stage.task);
                    let what = (step, what, Some(atom));
                    RunError::from(Box::new(self.observers.broke_down(&stage, time_step, what)))
                }
                Failure::Other(error) => {
                    // rows that can still be written should be
                    let _ = self.observers.flush();
                    error
                }
            })?;
            if let ControlFlow::Break(why) = flow {
                ending = why;
                break;
            }
            if self.stage + 1 == self.stages.len() {
                break;
            }
            self.stage += 1;
            self.done = 0;
            self.memory = Memory::default();
        }
        self.finish(ending)
    }

    /// The last files, and the summary.
    fn finish(mut self, ending: Ending) -> Result<Summary, RunError> {
        let start = Instant::now();
        self.observers.flush()?;
        let directory = &self.options.directory;
        let mut notes = Vec::new();
        if !self.folder.is_locked() {
            notes
                .push("the file system has no locks: nothing keeps another run out of the folder".to_owned());
        }
        if ending == Ending::Complete || !self.options.resumable {
            write_structure(&directory.join(files::FINAL), &self.observers.everything, &self.state)?;
        }
        let labels = if self.reduced { UnitLabels::reduced() } else { UnitLabels::default() };
        let energies = directory.join(files::ENERGIES);
        let stages: Vec<_> = self.stages.iter().map(pictured).collect();
        let title = &self.observers.everything.title;
        match crate::plot::energies::draw(&energies, directory, title, &labels, &stages) {
            Ok(_) => {}
            Err(PlotError::Write { path, source }) => {
                return Err(RunError::File { action: "write", path, source });
            }
            Err(error) => notes.push(format!("no picture of the energies: {error}")),
        }
        self.output += start.elapsed();
        let planned = self.stages.get(self.stage).map_or(self.state.step, |stage| {
            let rest: u64 = self.stages[self.stage + 1..].iter().map(|s| s.steps).sum();
            self.state.step + stage.steps.saturating_sub(self.done) + rest
        });
        let last = self.stages.len().min(self.stage + 1) - 1;
        let stage = &self.stages[last];
        let freedom = self.freedom(stage);
        let measured = summary::measure(
            &energies,
            self.state.step.saturating_sub(self.done),
            last > 0,
            freedom,
            self.boltzmann,
            time_step(&stage.task).is_some(),
        );
        let forces = self.spent.get();
        Ok(Summary {
            directory: directory.clone(),
            stage: stage.name.clone(),
            reduced: self.reduced,
            atoms: self.atoms.len(),
            steps: self.state.step - self.first_step,
            last_step: self.state.step,
            planned,
            simulated: self.simulated,
            time: self.state.time,
            threads: rayon::current_num_threads(),
            times: Times {
                wall: self.started.elapsed(),
                stepping: self.integration,
                forces,
                integration: self.integration.saturating_sub(forces),
                output: self.output,
            },
            list_builds: self.evaluator.list_builds(),
            ending,
            resumable: self.options.resumable,
            restart_step: self.observers.restart_step,
            temperature: measured.temperature,
            pressure: measured.pressure,
            drift: measured.drift,
            minimized: self.minimized,
            notes,
        })
    }

    fn one_stage(&mut self, stage: &Stage) -> Result<Flow, Failure> {
        if let Some(ending) = asked_to_stop(self.options, self.started, self.state.step > self.first_step) {
            return Ok(Flow::Break(ending));
        }
        if self.done == 0 {
            self.begin(stage)?;
        }
        match Method::of(stage, self.boltzmann, self.seed)? {
            Method::Dynamics(mut integrator) => self.dynamics(stage, &mut *integrator),
            Method::Minimization(mut minimizer, force) => self.minimize(stage, force, &mut *minimizer),
        }
    }

    /// Degrees of freedom in a stage.
    fn freedom(&self, stage: &Stage) -> usize {
        freedom(stage, self.atoms.len(), self.momentum)
    }

    /// New velocities, if the stage wants them, and no drift.
    fn begin(&mut self, stage: &Stage) -> Result<(), RunError> {
        let freedom = self.freedom(stage);
        begin(stage, self.stage, &mut self.state, &self.atoms.masses, self.boltzmann, self.seed, freedom)
    }

    /// Writes the restart file, for the beginning of a stage or somewhere within one.
    fn save(&mut self, stage: usize, done: u64, memory: Memory) -> Result<(), RunError> {
        let protocol = protocol(self.seed, &self.stages, stage);
        if !self.options.resumable {
            return Ok(());
        }
        let name = self.stages.get(stage).map_or("", |s| s.name.as_str());
        let identity = Identity { protocol, ..self.identity.clone() };
        self.observers.save(
            identity,
            (stage, name, done),
            memory,
            &self.state,
            &self.forces.energies,
            self.account,
        )
    }

    fn dynamics(&mut self, stage: &Stage, integrator: &mut dyn Integrator) -> Result<Flow, Failure> {
        if self.done > 0 {
            integrator
                .recall(&self.memory)
                .map_err(|error| RunError::Memory { stage: stage.name.clone(), error })?;
        }
        let freedom = self.freedom(stage);
        let first = self.state.step - self.done;
        let time_step = integrator.time_step();
        let mut progress = Progress::start(&stage.name, first, first + stage.steps, self.options.progress)
            .resumed_at(self.state.step);
        if !self.reduced {
            progress = progress.time_step(time_step);
        }
        let last_stage = self.stage + 1 == self.stages.len();
        let (number, options, started) = (self.stage, self.options, self.started);
        let first_step = self.first_step;
        let identity =
            Identity { protocol: protocol(self.seed, &self.stages, number), ..self.identity.clone() };
        let Session { state, forces, evaluator, observers, atoms, spent, .. } = self;
        let mut source = Watched { evaluator, spent, seen: None };
        let mut motion = Motion::resume(state, &atoms.masses, &mut source, forces)?;
        if self.done == 0 {
            let kinetic = motion.kinetic_energy();
            self.account.carried = self.account.handed_over.take().map_or(0.0, |energy| energy - kinetic);
        }
        let account = self.account;
        let mut done = self.done;
        let flow = loop {
            let clock = Instant::now();
            observers.due(stage, done, motion.state.step);
            if observers.row_due {
                motion.complete()?;
                let kinetic = motion.kinetic_energy();
                let [energy, virial] = [&motion.forces.energies[..], &motion.forces.virial[..]];
                let reservoir = integrator.reservoir() + account.carried;
                let thermal = (kinetic, freedom, self.boltzmann, reservoir);
                observers.row(motion.state, energy, virial, thermal)?;
                too_fast(motion.state, time_step, self.farthest)?;
                observers.in_order(motion.state);
            }
            observers.frames(motion.state)?;
            let saved = options.resumable && motion.state.step.is_multiple_of(self.restart_every);
            if saved && done > 0 && done < stage.steps {
                motion.complete()?;
                let here = (number, stage.name.as_str(), done);
                let energies = &motion.forces.energies;
                observers.save(
                    identity.clone(),
                    here,
                    integrator.memory(),
                    motion.state,
                    energies,
                    account,
                )?;
            }
            self.output += clock.elapsed();
            if done >= stage.steps {
                break Flow::Continue(());
            }
            if let Some(ending) = asked_to_stop(options, started, motion.state.step > first_step) {
                break Flow::Break(ending);
            }
            let next = done + 1;
            let saved = motion.state.step.saturating_add(1).is_multiple_of(self.restart_every);
            motion.forces_only = next < stage.steps && !saved && !observers.wants_energies(stage, next);
            let clock = Instant::now();
            integrator.step(&mut motion)?;
            self.integration += clock.elapsed();
            self.simulated += time_step;
            done += 1;
            if motion.state.step.is_multiple_of(10) {
                too_fast(motion.state, time_step, self.farthest)?;
            }
            progress.update(motion.state.step, || observers.in_words());
        };
        let clock = Instant::now();
        motion.complete()?;
        let energy = motion.kinetic_energy() + integrator.reservoir() + account.carried;
        self.done = done;
        if flow.is_continue() && !last_stage {
            self.account = Account { carried: 0.0, handed_over: Some(energy) };
        }
        if flow.is_continue() && !last_stage {
            self.save(self.stage + 1, 0, Memory::default())?;
        } else if done > 0 {
            self.save(self.stage, done, integrator.memory())?;
        }
        progress.finish(&self.observers.in_words());
        self.output += clock.elapsed();
        Ok(flow)
    }

    fn minimize(
        &mut self,
        stage: &Stage,
        force: f64,
        minimizer: &mut dyn Minimizer,
    ) -> Result<Flow, Failure> {
        self.account = Account::default();
        if self.done > 0 {
            minimizer
                .recall(&self.memory, self.atoms.len())
                .map_err(|error| RunError::Memory { stage: stage.name.clone(), error })?;
        }
        let freedom = self.freedom(stage);
        let first = self.state.step - self.done;
        let mut progress = Progress::start(&stage.name, first, first + stage.steps, self.options.progress)
            .resumed_at(self.state.step);
        let last_stage = self.stage + 1 == self.stages.len();
        let (options, started, first_step) = (self.options, self.started, self.first_step);
        let restart_every = self.restart_every;
        loop {
            let (before, begun) = (self.done, Instant::now());
            let seen = RefCell::new(Seen {
                state: self.state.clone(),
                energies: self.forces.energies.clone(),
                virial: self.forces.virial,
            });
            let (mut stopped, mut failed) = (None, None);
            let clock = Instant::now();
            let mut output = Duration::ZERO;
            let Session { state, forces, evaluator, observers, atoms, spent, .. } = self;
            let mut source = Watched { evaluator, spent, seen: Some(&seen) };
            let mut motion = Motion::resume(state, &atoms.masses, &mut source, forces)?;
            let kinetic = motion.kinetic_energy();
            let thermal = (kinetic, freedom, self.boltzmann, 0.0);
            let mut each = |now: &minimize::Progress| -> ControlFlow<()> {
                let clock = Instant::now();
                let mut seen = seen.borrow_mut();
                seen.state.step = first + now.step;
                let Seen { state, energies, virial } = &*seen;
                let mut observe = || -> Result<(), RunError> {
                    observers.due(stage, now.step, state.step);
                    if observers.row_due {
                        observers.row(state, energies, virial, thermal)?;
                        observers.in_order(state);
                    }
                    observers.frames(state)
                };
                if let Err(error) = observe() {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
                output += clock.elapsed();
                progress.update(state.step, || format!("largest force {}", significant(now.force, 3)));
                stopped = asked_to_stop(options, started, state.step > first_step);
                let save = options.resumable
                    && (state.step.is_multiple_of(restart_every) || begun.elapsed() >= LONGEST_WAIT);
                match stopped.is_some() || save && now.step > before {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            let until = Until { force, steps: stage.steps };
            let report = minimizer.go_on(&mut motion, &until, &mut each);
            let report = report.map_err(|error| later(error, first))?;
            self.integration += clock.elapsed().saturating_sub(output);
            self.output += output;
            if let Some(error) = failed {
                return Err(error.into());
            }
            self.done = report.last.step;
            self.state.step = first + self.done;
            // (a row for the end, which belongs to no interval, would be one too many where the run may go on)
            let goes_on = options.resumable
                && match report.ending {
                    minimize::Ending::Stopped => true,
                    minimize::Ending::Steps => last_stage,
                    minimize::Ending::Converged | minimize::Ending::Stalled => false,
                };
            let checkpoint = report.ending == minimize::Ending::Stopped && stopped.is_none();
            if goes_on || checkpoint {
                if self.done > 0 {
                    self.save(self.stage, self.done, minimizer.memory())?;
                }
            } else {
                self.observers.row_due = self.observers.table.last_step() < Some(self.state.step);
                if self.observers.row_due {
                    let Forces { energies, virial, .. } = &self.forces;
                    self.observers.row(&self.state, energies, virial, thermal)?;
                }
                self.save(self.stage + 1, 0, Memory::default())?;
            }
            if checkpoint {
                continue;
            }
            if let Some(ending) = stopped.filter(|_| report.ending == minimize::Ending::Stopped) {
                progress.finish(&format!("largest force {}", significant(report.last.force, 3)));
                return Ok(Flow::Break(ending));
            }
            let minimized = Minimized {
                stage: stage.name.clone(),
                steps: self.done,
                energies: [report.initial.energy, report.last.energy],
                force: report.last.force,
                asked: force,
                ending: report.ending,
            };
            progress.ended().finish(&minimized.in_brief());
            self.minimized.push(minimized);
            return Ok(Flow::Continue(()));
        }
    }
}

/// What carries out a stage.
enum Method {
    Dynamics(Box<dyn Integrator>),
    /// With the largest force component at the end.
    Minimization(Box<dyn Minimizer>, f64),
}

impl Method {
    /// That of a stage.
    fn of(stage: &Stage, boltzmann: f64, seed: u64) -> Result<Self, RunError> {
        let of_stage = |error| RunError::Parameter { stage: stage.name.clone(), error };
        Ok(match stage.task {
            Task::Fire { force, longest_move, time_step } => {
                Self::Minimization(Box::new(Fire::new(time_step, longest_move).map_err(of_stage)?), force)
            }
            Task::Lbfgs { force, longest_move, memory } => {
                Self::Minimization(Box::new(Lbfgs::new(memory, longest_move).map_err(of_stage)?), force)
            }
            Task::VelocityVerlet { .. } | Task::Langevin { .. } => {
                let made = integrator(&stage.task, boltzmann, seed).ok_or(RunError::NoStages)?;
                Self::Dynamics(made.map_err(of_stage)?)
            }
        })
    }
}

/// The integrator of a task; none of one that minimises.
pub fn integrator(
    task: &Task,
    boltzmann: f64,
    seed: u64,
) -> Option<Result<Box<dyn Integrator>, BadParameter>> {
    Some(match *task {
        Task::VelocityVerlet { time_step } => {
            VelocityVerlet::new(time_step).map(|i| Box::new(i) as Box<dyn Integrator>)
        }
        Task::Langevin { time_step, temperature, friction } => {
            let langevin = Langevin::new(time_step, friction, temperature, boltzmann, seed);
            langevin.map(|i| Box::new(i) as Box<dyn Integrator>)
        }
        Task::Fire { .. } | Task::Lbfgs { .. } => return None,
    })
}

/// Degrees of freedom in a stage; `momentum`: whether the energy leaves the total momentum alone.
fn freedom(stage: &Stage, atoms: usize, momentum: bool) -> usize {
    degrees_of_freedom(atoms, 0, momentum && !matches!(stage.task, Task::Langevin { .. }))
}

/// New velocities, if the stage wants them, and no drift.
fn begin(
    stage: &Stage,
    number: usize,
    state: &mut State,
    masses: &[f64],
    boltzmann: f64,
    seed: u64,
    freedom: usize,
) -> Result<(), RunError> {
    if let Some(temperature) = stage.velocities {
        let draw = MaxwellBoltzmann {
            temperature,
            boltzmann,
            // other numbers for each stage; those of the first are the seed's own
            seed: seed.wrapping_add((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            remove_drift: stage.remove_drift,
            scale_to: Some(freedom),
        };
        let velocities = draw.draw(masses);
        state.velocities =
            velocities.map_err(|error| RunError::Velocities { stage: stage.name.clone(), error })?;
    } else if stage.remove_drift {
        remove_drift(masses, &mut state.velocities);
    }
    Ok(())
}

/// Half the shortest cut-off: no atom should go farther in a step.
fn farthest(evaluator: &Evaluator) -> f64 {
    let ranges = evaluator.terms().iter().filter_map(|t| t.list_need()).map(|need| need.range);
    0.5 * ranges.filter(|r| *r > 0.0).fold(f64::INFINITY, f64::min)
}

/// Why a stage failed.
enum Failure {
    /// The system cannot be advanced.
    Step(StepError),
    /// An atom moves farther in a step than it should.
    TooFast(TooFast),
    /// Something else.
    Other(RunError),
}

/// An atom that moves farther in a step than it should.
struct TooFast {
    atom: usize,
    distance: f64,
    limit: f64,
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Failure::Step(error)
    }
}

impl From<TooFast> for Failure {
    fn from(error: TooFast) -> Self {
        Failure::TooFast(error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Other(error)
    }
}

/// An atom whose next step would be longer than the limit, or of no finite length.
fn too_fast(state: &State, time_step: f64, limit: f64) -> Result<(), TooFast> {
    let squared = |v: &[f64; 3]| v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    let most = (limit / time_step).powi(2);
    // (in this order a NaN is too fast)
    let slow = |v: &[f64; 3]| squared(v) <= most;
    match state.velocities.iter().position(|v| !slow(v)) {
        None => Ok(()),
        Some(atom) => {
            Err(TooFast { atom, distance: squared(&state.velocities[atom]).sqrt() * time_step, limit })
        }
    }
}

/// A minimiser's error, its steps counted over the run.
fn later(error: StepError, base: u64) -> StepError {
    match error {
        StepError::Escaped { step, escaped } => StepError::Escaped { step: base + step, escaped },
        StepError::Energy { step, energy } => StepError::Energy { step: base + step, energy },
        StepError::Forces { step, error } => StepError::Forces { step: base + step, error },
        other => other,
    }
}

/// Whether to stop, and why. The time is not up before this process has taken a step.
fn asked_to_stop(options: &RunOptions, started: Instant, moved: bool) -> Option<Ending> {
    if options.interrupt.load(Ordering::Relaxed) {
        return Some(Ending::Interrupted);
    }
    let over = |most| started.elapsed() >= most;
    (moved && options.max_time.is_some_and(over)).then_some(Ending::TimeUp)
}

/// The time step of a stage that integrates.
fn time_step(task: &Task) -> Option<f64> {
    match *task {
        Task::VelocityVerlet { time_step } | Task::Langevin { time_step, .. } => Some(time_step),
        Task::Fire { .. } | Task::Lbfgs { .. } => None,
    }
}

fn write_text(path: &Path, text: &str) -> Result<(), RunError> {
    write_whole(path, |out| out.write_all(text.as_bytes())).map_err(|source| RunError::File {
        action: "write",
        path: path.into(),
        source,
    })
}

/// What a file still has of the rows or frames that the restart expects; None where there is neither a file nor
/// anything expected of it. If something is missing, what, and what to do.
fn kept(
    path: &Path,
    what: &str,
    expected: Tally,
    look: &dyn Fn() -> Result<Kept, String>,
) -> Result<Option<Kept>, String> {
    let place = path.display();
    let lacks = match (path.symlink_metadata().is_ok(), expected.last) {
        (false, None) => return Ok(None),
        (false, Some(step)) => format!("{place} is missing, which had {what} up to step {step}"),
        (true, _) => match look() {
            Err(error) => error,
            Ok(kept) => match kept.lacks(expected, what) {
                None => return Ok(Some(kept)),
                Some(lacks) => format!("{place} was changed: {lacks}"),
            },
        },
    };
    Err(format!("{lacks}; put it back as it was, from a copy, or begin anew (--force)"))
}

/// Whether energies are the same but for what other processors may round differently.
fn alike(a: &[f64], b: &[f64]) -> bool {
    let scale: f64 = 1.0 + b.iter().map(|e| e.abs()).sum::<f64>();
    a.is_empty() || a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-6 * scale)
}

/// The fingerprint of a plan's system.
fn of_system(plan: &Plan) -> u64 {
    let mut f = Fingerprint::default();
    let Plan { units, boltzmann, atoms, topology, state, setup, .. } = plan;
    f.word(units.name()).real(*boltzmann).real(setup.coulomb);
    f.reals(state.cell.vectors().iter().flatten());
    for periodic in state.cell.periodic() {
        f.number(periodic.into());
    }
    atoms.type_names.iter().for_each(|name| _ = f.word(name));
    atoms.types.iter().for_each(|&t| _ = f.number(t.into()));
    f.reals(&atoms.masses).reals(&setup.charges.values);
    setup.charges.of_atom.iter().for_each(|&k| _ = f.number(k.into()));
    for tuple in topology.bonds.iter().map(|t| &t[..]).chain(topology.angles.iter().map(|t| &t[..])) {
        tuple.iter().for_each(|&i| _ = f.number(i.into()));
    }
    for tuple in topology.dihedrals.iter().chain(&topology.impropers) {
        tuple.iter().for_each(|&i| _ = f.number(i.into()));
    }
    for joined in &setup.joined {
        joined.iter().for_each(|&(i, j)| _ = f.number(i.into()).number(j.into()));
        f.number(joined.len() as u64);
    }
    for term in &setup.terms {
        f.word(term.name());
        let parameters = term.parameters();
        parameters.labels().iter().for_each(|label| _ = f.word(label));
        f.reals(parameters.values());
    }
    // (what the bits of forces depend on, but for the processor's instructions: a run may move to another machine)
    let crate::forces::Method { kind, grid, precision, .. } = setup.method;
    f.word(&format!("{kind:?}, {precision:?}")).real(grid.force_step());
    f.value()
}

/// The fingerprint of the stages up to number `now`: what they do and, of those that are over, how many steps of
/// dynamics they had.
fn protocol(seed: u64, stages: &[Stage], now: usize) -> u64 {
    let mut f = Fingerprint::default();
    f.number(seed).number(now as u64);
    for (k, stage) in stages.iter().enumerate().take(now + 1) {
        f.word(&stage.name).reals(&stage.velocities).number(stage.remove_drift.into());
        match stage.task {
            Task::VelocityVerlet { time_step } => f.word("velocity-verlet").real(time_step),
            Task::Langevin { time_step, temperature, friction } => {
                f.word("langevin").real(time_step).real(temperature).real(friction)
            }
            Task::Fire { force, longest_move, time_step } => {
                f.word("fire").real(force).real(longest_move).real(time_step)
            }
            Task::Lbfgs { force, longest_move, memory } => {
                f.word("l-bfgs").real(force).real(longest_move).number(memory as u64)
            }
        };
        if k < now && time_step(&stage.task).is_some() {
            f.number(stage.steps);
        }
    }
    f.value()
}

/// The fingerprint of the trajectories.
fn of_output(plan: &Plan) -> u64 {
    let mut f = Fingerprint::default();
    for t in &plan.output.trajectories {
        f.word(&t.file.to_string_lossy()).word(t.format.name());
        t.atoms.iter().for_each(|&i| _ = f.number(i.into()));
        f.number(t.atoms.len() as u64).number(t.unwrapped.into()).number(t.velocities.into());
        f.number(t.decimals.map_or(u64::MAX, |d| d as u64));
    }
    f.value()
}

/// Whether a restart is one of this plan; if not, what does not fit.
fn check(restart: &Restart, mine: &Identity, plan: &Plan) -> Result<(), String> {
    let theirs = &restart.identity;
    if theirs.atoms != mine.atoms {
        return Err(format!("it has {} atoms, and the input {}", theirs.atoms, mine.atoms));
    }
    if theirs.terms != mine.terms {
        let [theirs, mine] = [theirs, mine].map(|i| i.terms.join(", "));
        return Err(format!("its energy has the terms {theirs}, and the input's {mine}"));
    }
    if theirs.system != mine.system {
        return Err(
            "it is of another system: the cell, atoms, charges, bonds, parameters or constants of the \
                    input differ from those it was made with, or its [forces] are computed in another way"
                .to_owned(),
        );
    }
    if theirs.output != mine.output {
        return Err(
            "the input's trajectories are not those of its run: files, atoms and digits must stay as \
                    they are"
                .to_owned(),
        );
    }
    let (number, stages) = (restart.stage as usize, &plan.stages);
    if number > stages.len() || theirs.protocol != protocol(plan.seed, stages, number) {
        return Err(format!(
            "it was made in stage {} (`{}`) of a run whose seed or stages differ from the input's; only the \
             number of steps of the stage it stands in may change, and what comes later",
            number + 1,
            restart.stage_name
        ));
    }
    if let Some(stage) = stages.get(number)
        && stage.steps < restart.done
    {
        return Err(format!(
            "{} steps of stage `{}` are done already, more than the {} asked for",
            restart.done, stage.name, stage.steps
        ));
    }
    Ok(())
}
