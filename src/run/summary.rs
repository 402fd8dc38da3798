//! What a run did, in plain words.

use super::statistics::{Average, average, slope};
use crate::integrate::minimize;
use crate::observe::progress::{human_count, human_rate, human_time};
use crate::plot::Table;
use crate::plot::scale::{mean_and_deviation, significant};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All stages are done.
    Complete,
    /// It was interrupted.
    Interrupted,
    /// Its time was up.
    TimeUp,
}

/// Where the time went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// All of it, from the beginning to the summary.
    pub wall: Duration,
    /// Steps: forces and integration.
    pub stepping: Duration,
    /// Forces, neighbour lists included.
    pub forces: Duration,
    /// Steps without forces.
    pub integration: Duration,
    /// Rows, frames, restart files, pictures.
    pub output: Duration,
}

/// How fast the conserved quantity drifts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// In kT per degree of freedom and ns (in reduced units 1000 τ).
    pub rate: f64,
    /// Its standard error.
    pub error: f64,
}

/// What a [`Drift`] means.
///
/// Where the rate is less than twice its error, it is judged by the largest rate that the error allows, and good
/// only if that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// At most 0.001 kT/ns per degree of freedom.
    Excellent,
    /// At most 0.01: a nanosecond changes the temperature by 2 %.
    Good,
    /// At most 0.1: only for short runs.
    Tolerable,
    /// More than that.
    TooLarge,
    /// The run is too short to tell.
    Unclear,
}

impl Drift {
    /// Whether the drift is good.
    pub fn verdict(&self) -> Verdict {
        let of = |rate: f64| match rate {
            r if r <= 1e-3 => Verdict::Excellent,
            r if r <= 1e-2 => Verdict::Good,
            r if r <= 1e-1 => Verdict::Tolerable,
            _ => Verdict::TooLarge,
        };
        let size = self.rate.abs();
        if size >= 2.0 * self.error {
            return of(size);
        }
        match of(size + 2.0 * self.error) {
            good @ (Verdict::Excellent | Verdict::Good) => good,
            _ => Verdict::Unclear,
        }
    }
}

/// What a minimisation reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimized {
    /// The stage.
    pub stage: String,
    /// Steps taken.
    pub steps: u64,
    /// The energy before and after.
    pub energies: [f64; 2],
    /// The largest component of a force at the end.
    pub force: f64,
    /// What was asked for.
    pub asked: f64,
    /// Why it ended.
    pub ending: minimize::Ending,
}

fn steps(n: u64) -> String {
    format!("{} step{}", human_count(n), if n == 1 { "" } else { "s" })
}

impl Minimized {
    /// How it ended, and with which force.
    pub fn in_brief(&self) -> String {
        let how = match self.ending {
            minimize::Ending::Converged => "converged",
            minimize::Ending::Steps | minimize::Ending::Stalled => "NOT converged",
            minimize::Ending::Stopped => "stopped",
        };
        format!("{how}, largest force {}", significant(self.force, 3))
    }

    /// All that in a line.
    pub fn in_words(&self, reduced: bool) -> String {
        let (of_energy, of_force) = if reduced { ("ε", "ε/σ") } else { ("kJ/mol", "kJ/mol/nm") };
        let how = match self.ending {
            minimize::Ending::Converged => "converged",
            minimize::Ending::Steps => "NOT converged when the steps were used up",
            minimize::Ending::Stalled => "no lower energy can be found",
            minimize::Ending::Stopped => "stopped",
        };
        let [before, after] = self.energies.map(|e| significant(e, 7));
        format!(
            "{}: {how} after {}; energy {before} → {after} {of_energy}, largest force {} {of_force} (asked for: {})",
            self.stage,
            steps(self.steps),
            significant(self.force, 3),
            significant(self.asked, 3)
        )
    }
}

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Where its files are.
    pub directory: PathBuf,
    /// The stage it ended in.
    pub stage: String,
    /// Whether it is in reduced units.
    pub reduced: bool,
    /// Number of atoms.
    pub atoms: usize,
    /// Steps taken by this process.
    pub steps: u64,
    /// The last step, counted over the whole run.
    pub last_step: u64,
    /// The last step there is to do.
    pub planned: u64,
    /// Time simulated by this process, in ps.
    pub simulated: f64,
    /// Time simulated over the whole run, in ps.
    pub time: f64,
    /// Threads.
    pub threads: usize,
    /// Where the time went.
    pub times: Times,
    /// How many times neighbour lists were built.
    pub list_builds: u64,
    /// Why it ended.
    pub ending: Ending,
    /// Whether it can be gone on with at all.
    pub resumable: bool,
    /// The step of the restart file.
    pub restart_step: Option<u64>,
    /// The temperature of the last stage.
    pub temperature: Option<Average>,
    /// The pressure of the last stage, in bar or in reduced units.
    pub pressure: Option<Average>,
    /// The drift of what the last stage conserves.
    pub drift: Option<Drift>,
    /// What minimisations of this process reached.
    pub minimized: Vec<Minimized>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// What the rows of the last stage say.
#[derive(Default)]
pub(super) struct Measured {
    pub temperature: Option<Average>,
    pub pressure: Option<Average>,
    pub drift: Option<Drift>,
}

/// Reads the rows of a stage that began at step `first` (whose own row may be of the stage before).
pub(super) fn measure(
    path: &Path,
    first: u64,
    after: bool,
    freedom: usize,
    boltzmann: f64,
    dynamics: bool,
) -> Measured {
    let (Ok(table), true) = (Table::read(path), dynamics && freedom > 0) else {
        return Measured::default();
    };
    let Some(steps) = table.column("step") else { return Measured::default() };
    let start = steps.iter().position(|&s| s > first as f64 || !after && s == first as f64);
    let start = start.unwrap_or(steps.len());
    let rows = |name: &str| table.column(name).map_or(&[][..], |c| &c[start..]);
    let temperature = average(rows("temperature"));
    let drift = slope(rows("time"), rows("conserved")).and_then(|(slope, error)| {
        let kt = boltzmann * temperature?.mean;
        // from a ps to a ns, or from a τ to 1000 of them
        let unit = 1000.0 / (kt * freedom as f64);
        let drift = Drift { rate: slope * unit, error: error * unit };
        (drift.rate.is_finite() && drift.error.is_finite()).then_some(drift)
    });
    Measured { temperature, pressure: average(rows("pressure")), drift }
}

fn with_error(average: &Average) -> String {
    match average.error {
        Some(error) => mean_and_deviation(average.mean, error),
        None => significant(average.mean, 4),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let of_time = if self.reduced { "τ" } else { "ps" };
        let place = self.directory.display();
        let took = human_time(self.times.wall.as_secs_f64());
        let done = steps(self.steps);
        match self.ending {
            Ending::Complete if self.steps == 0 => {
                writeln!(
                    f,
                    "Complete already: step {} was reached; files in {place}",
                    human_count(self.last_step)
                )?;
            }
            Ending::Complete => {
                write!(f, "Complete: {done} of {} atoms in {took}", human_count(self.atoms as u64))?;
                if self.time > 0.0 {
                    write!(f, ", up to {} {of_time}", significant(self.time, 5))?;
                }
                writeln!(f, "; files in {place}")?;
            }
            Ending::Interrupted | Ending::TimeUp => {
                let why = if self.ending == Ending::TimeUp { "The time is up" } else { "Interrupted" };
                writeln!(
                    f,
                    "{why} after {done} in {took}, at step {} of {} in stage `{}`; files in {place}",
                    human_count(self.last_step),
                    human_count(self.planned),
                    self.stage
                )?;
            }
        }
        let seconds = self.times.stepping.as_secs_f64();
        if self.steps > 0 && seconds > 0.0 {
            let rate = self.steps as f64 / seconds;
            let mut line = format!("{} atom-steps/s", human_rate(rate * self.atoms as f64));
            if self.simulated > 0.0 && !self.reduced {
                line += &format!(", {} ns/day", human_rate(self.simulated / seconds * 86.4));
            }
            let s = if self.threads == 1 { "" } else { "s" };
            writeln!(f, "  speed        {line}, {} steps/s on {} thread{s}", human_rate(rate), self.threads)?;
            let Times { wall, forces, integration, output, .. } = self.times;
            let share = |d: Duration| format!("{:.0} %", 100.0 * d.as_secs_f64() / wall.as_secs_f64());
            writeln!(
                f,
                "  time         forces with neighbour lists {}, integration {}, output {}",
                share(forces),
                share(integration),
                share(output)
            )?;
        }
        match self.list_builds {
            0 => {}
            1 => writeln!(f, "  lists        built once")?,
            n => {
                let every = match self.steps as f64 / n as f64 {
                    0.0 => String::new(),
                    x if x <= 1.0 => ", every step".into(),
                    x => format!(", every {} steps", significant(x, 3)),
                };
                writeln!(f, "  lists        built {} times{every}", human_count(n))?;
            }
        }
        for m in &self.minimized {
            writeln!(f, "  {}", m.in_words(self.reduced))?;
        }
        if let Some(t) = &self.temperature {
            writeln!(f, "  temperature  {} {}", with_error(t), if self.reduced { "ε/k" } else { "K" })?;
        }
        if let Some(p) = &self.pressure {
            writeln!(f, "  pressure     {} {}", with_error(p), if self.reduced { "ε/σ³" } else { "bar" })?;
        }
        if let Some(drift) = &self.drift {
            let per = if self.reduced { "1000 τ" } else { "ns" };
            let words = match drift.verdict() {
                Verdict::Excellent => "excellent",
                Verdict::Good => "good",
                Verdict::Tolerable => {
                    "tolerable in a short run; a shorter time step or a smoother cut-off helps"
                }
                Verdict::TooLarge => "too large: shorten the time step, or smooth the cut-off",
                Verdict::Unclear => "the run is too short to tell",
            };
            writeln!(
                f,
                "  energy drift {} ± {} kT/{per} per degree of freedom: {words}",
                significant(drift.rate, 2),
                significant(drift.error, 2)
            )?;
        }
        for note in &self.notes {
            writeln!(f, "  note         {note}")?;
        }
        if self.ending != Ending::Complete && self.resumable {
            match self.restart_step {
                Some(step) => {
                    writeln!(f, "  `--resume` goes on from step {}", human_count(step))?;
                }
                None => writeln!(f, "  there is no restart file; begin anew")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let of = |rate, error| Drift { rate, error }.verdict();
        assert_eq!(of(5e-4, 1e-4), Verdict::Excellent);
        assert_eq!(of(-5e-3, 1e-4), Verdict::Good);
        assert_eq!(of(0.05, 0.01), Verdict::Tolerable);
        assert_eq!(of(-3.0, 0.01), Verdict::TooLarge);
        assert_eq!(of(1e-4, 1e-3), Verdict::Good, "at most 0.0021");
        assert_eq!(of(1e-3, 0.3), Verdict::Unclear);
    }
}
