//! What is written while a run goes.

use super::{Breakdown, RunError, files};
use crate::forces::Term;
use crate::input::plan::Stage;
use crate::integrate::{Memory, temperature};
use crate::observe::checkpoint::{Account, Identity, Restart};
use crate::observe::energies::{COLUMNS, EnergyRow, EnergyTable};
use crate::observe::trajectory::{TrajectoryFile, View, write_structure};
use crate::plot::scale::significant;
use crate::system::State;
use crate::units::constants::BAR;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long rows may wait to be seen in the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// The names of an energy's terms, each of them another: a second `harmonic` is `harmonic-2`.
pub fn term_names(terms: &[Box<dyn Term>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for term in terms {
        let taken = |name: &str| COLUMNS.contains(&name) || names.iter().any(|n| n == name);
        let plain = term.name().to_owned();
        let mut others = (2..).map(|k| format!("{}-{k}", term.name()));
        let free = if taken(&plain) { others.find(|name| !taken(name)) } else { Some(plain) };
        names.extend(free);
    }
    names
}

/// The pressure (2K + tr W)/3V in bar, or in reduced units, from a kinetic energy, a virial (xx yy zz …) and a
/// volume in internal units.
pub fn instant_pressure(kinetic: f64, virial: &[f64], volume: f64, reduced: bool) -> f64 {
    let inside = (2.0 * kinetic + virial.iter().take(3).sum::<f64>()) / (3.0 * volume);
    if reduced { inside } else { inside / BAR }
}

/// The files of a run, and its last state in order.
pub(super) struct Observers {
    directory: PathBuf,
    pub table: EnergyTable,
    trajectories: Vec<TrajectoryFile>,
    /// All atoms, for structures.
    pub everything: View,
    /// Whether a row is due at this step, and a frame of which trajectories.
    pub row_due: bool,
    frames_due: Vec<bool>,
    row: EnergyRow,
    reduced: bool,
    flushed: Instant,
    good: Option<State>,
    spare: State,
    pub restart_step: Option<u64>,
}

impl Observers {
    pub fn new(
        directory: PathBuf,
        table: EnergyTable,
        trajectories: Vec<TrajectoryFile>,
        everything: View,
        state: State,
        reduced: bool,
    ) -> Self {
        Self {
            directory,
            table,
            frames_due: vec![false; trajectories.len()],
            trajectories,
            everything,
            row_due: false,
            row: EnergyRow::default(),
            reduced,
            flushed: Instant::now(),
            good: None,
            spare: state,
            restart_step: None,
        }
    }

    /// Works out what is due after `done` steps of a stage.
    pub fn due(&mut self, stage: &Stage, done: u64, step: u64) {
        let every = |every: u64| every > 0 && done.is_multiple_of(every);
        let new = self.table.last_step().is_none_or(|last| last < step);
        self.row_due = new && every(stage.energies_every);
        for (k, due) in self.frames_due.iter_mut().enumerate() {
            *due = every(stage.frames_every.get(k).copied().unwrap_or(0));
        }
    }

    /// Whether energies will be wanted after `done` steps of a stage.
    pub fn wants_energies(&self, stage: &Stage, done: u64) -> bool {
        stage.energies_every > 0 && done.is_multiple_of(stage.energies_every)
    }

    /// Writes a row. `thermal` is kinetic energy, degrees of freedom, Boltzmann's constant, reservoir.
    pub fn row(
        &mut self,
        state: &State,
        energies: &[f64],
        virial: &[f64],
        (kinetic, freedom, boltzmann, reservoir): (f64, usize, f64, f64),
    ) -> Result<(), RunError> {
        let row = &mut self.row;
        row.step = state.step;
        row.time = state.time;
        row.potential = energies.iter().sum();
        row.kinetic = kinetic;
        row.total = row.potential + kinetic;
        row.conserved = row.total + reservoir;
        row.temperature = temperature(kinetic, freedom, boltzmann).unwrap_or(f64::NAN);
        let volume = state.cell.volume().filter(|_| state.cell.periodic() == [true; 3]);
        row.volume = volume;
        row.pressure = volume.map(|v| instant_pressure(kinetic, virial, v, self.reduced));
        row.terms.clear();
        row.terms.extend_from_slice(energies);
        self.table.append(row)?;
        if self.flushed.elapsed() >= PATIENCE {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the frames that are due.
    pub fn frames(&mut self, state: &State) -> Result<(), RunError> {
        for (trajectory, _) in self.trajectories.iter_mut().zip(&self.frames_due).filter(|(_, due)| **due) {
            trajectory.append(state)?;
        }
        Ok(())
    }

    /// Remembers a state that is in order, in memory that is used again.
    pub fn in_order(&mut self, state: &State) {
        let good = self.good.get_or_insert_with(|| self.spare.clone());
        good.velocities.clone_from(&state.velocities);
        good.positions.clone_from(&state.positions);
        if good.cell != state.cell {
            good.cell.clone_from(&state.cell);
        }
        (good.step, good.time) = (state.step, state.time);
    }

    /// Brings all rows to the file.
    pub fn flush(&mut self) -> Result<(), RunError> {
        self.flushed = Instant::now();
        Ok(self.table.flush()?)
    }

    /// Writes the restart file, after all rows that belong to it.
    pub fn save(
        &mut self,
        identity: Identity,
        (stage, name, done): (usize, &str, u64),
        memory: Memory,
        state: &State,
        energies: &[f64],
        account: Account,
    ) -> Result<(), RunError> {
        // (after a power failure there must not be a restart file that expects more than there is)
        self.flushed = Instant::now();
        self.table.synchronize()?;
        for trajectory in &self.trajectories {
            trajectory.synchronize()?;
        }
        let restart = Restart {
            identity,
            stage: u32::try_from(stage).unwrap_or(u32::MAX),
            stage_name: name.to_owned(),
            done,
            state: state.clone(),
            memory,
            energies: energies.to_vec(),
            account,
            rows: self.table.tally(),
            frames: self.trajectories.iter().map(TrajectoryFile::tally).collect(),
        };
        restart.write(&self.directory.join(files::RESTART))?;
        self.restart_step = Some(state.step);
        Ok(())
    }

    /// The last row in a few words.
    pub fn in_words(&self) -> String {
        let EnergyRow { temperature, total, .. } = self.row;
        let (of_energy, of_temperature) = if self.reduced { ("ε", "ε/k") } else { ("kJ/mol", "K") };
        match self.row.terms.is_empty() {
            true => String::new(),
            false => format!(
                "T {} {of_temperature}, E {} {of_energy}",
                significant(temperature, 4),
                significant(total, 6)
            ),
        }
    }

    /// Saves what can be saved of a run that cannot go on, and says where it is.
    pub fn broke_down(
        &mut self,
        stage: &Stage,
        time_step: Option<f64>,
        (step, what, atom): (u64, String, Option<usize>),
    ) -> Breakdown {
        let mut down = Breakdown { stage: stage.name.clone(), step, what, ..Breakdown::default() };
        let unit = if self.reduced { "σ" } else { "nm" };
        if let (Some(atom), Some(good)) = (atom, &self.good)
            && let Some((other, distance)) = nearest(good, atom)
        {
            down.details.push(format!(
                "at step {} its nearest neighbour was atom {}, {} {unit} away",
                good.step,
                other + 1,
                significant(distance, 4)
            ));
        }
        if let (Some(good), Some(time_step)) = (&self.good, time_step)
            && let Some((fastest, speed)) = fastest(good)
        {
            down.details.push(format!(
                "at step {} the fastest atom was {}; it moved {} {unit} in a step",
                good.step,
                fastest + 1,
                significant(speed * time_step, 3)
            ));
        }
        let place = |name: &str| self.directory.join(name).display().to_string();
        match self.table.flush() {
            Ok(()) => {
                let until =
                    self.table.last_step().map_or("no rows".into(), |s| format!("rows up to step {s}"));
                down.kept.push(format!("{} with {until}", place(files::ENERGIES)));
            }
            Err(error) => down.kept.push(error.to_string()),
        }
        for t in &self.trajectories {
            if let Some(last) = t.tally().last {
                down.kept.push(format!("{} with frames up to step {last}", t.path().display()));
            }
        }
        if let Some(good) = &self.good {
            let path = self.directory.join(files::LAST_GOOD);
            down.kept.push(match write_structure(&path, &self.everything, good) {
                Ok(()) => format!("{}, the atoms at step {}, all in order", path.display(), good.step),
                Err(error) => error.to_string(),
            });
        }
        if let Some(step) = self.restart_step {
            down.kept.push(format!("{}, to resume from step {step}", place(files::RESTART)));
        }
        down
    }
}

/// The atom that is fastest, and its speed.
fn fastest(state: &State) -> Option<(usize, f64)> {
    let speeds = state.velocities.iter().map(|[x, y, z]| (x * x + y * y + z * z).sqrt());
    speeds.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The atom nearest to one, and its distance.
fn nearest(state: &State, atom: usize) -> Option<(usize, f64)> {
    let State { cell, positions, .. } = state;
    (0..positions.len())
        .filter(|&j| j != atom)
        .map(|j| {
            let [x, y, z] = cell.cartesian(cell.nearest(positions.displacement(atom, j)));
            (j, (x * x + y * y + z * z).sqrt())
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
}
