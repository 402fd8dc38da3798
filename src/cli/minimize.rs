//! `md minimize`

use super::run::{directory, failure, interrupt};
use super::{Failure, How, Input, Outcome, quoted, say, table};
use crate::catalog::Catalog;
use crate::forces::Term;
use crate::input::plan::{Stage, Task};
use crate::integrate::minimize::Ending::{Converged, Stalled, Steps};
use crate::observe::progress::Mode;
use crate::plot::Table;
use crate::plot::scale::significant;
use crate::run::{RunOptions, files, term_names};
use crate::units::UnitSystem;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Minimize {
    #[command(flatten)]
    input: Input,
    /// At most so many steps [default: those of the input's minimiser, or 10000]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Folder for the results [default: outputs/<input's name>-minimized, or the next free -2, -3 …]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    how: How,
}

impl Minimize {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let mut plan = self.input.plan(catalog, self.how.quiet)?;
        let reduced = plan.units == UnitSystem::Lj;
        let (force, longest_move) = if reduced { (1e-3, 0.1) } else { (1.0, 0.02) };
        let first = plan.stages.first();
        let given = first.filter(|s| matches!(s.task, Task::Fire { .. } | Task::Lbfgs { .. }));
        let mut stage = given.cloned().unwrap_or_else(|| Stage {
            name: "minimize".into(),
            steps: 10_000,
            task: Task::Lbfgs { force, longest_move, memory: 10 },
            velocities: None,
            remove_drift: false,
            energies_every: 10,
            frames_every: Vec::new(),
        });
        stage.steps = self.steps.unwrap_or(stage.steps);
        stage.velocities = None;
        plan.state.velocities.fill([0.0; 3]);
        plan.stages = vec![stage];
        plan.output.trajectories.clear();
        let names = term_names(&plan.setup.terms as &[Box<dyn Term>]);
        let stem = format!("{}-minimized", self.input.stem());
        let directory = directory(self.output.as_deref(), &stem, None, self.how.force, self.how.quiet)?;
        let options = RunOptions {
            resumable: false,
            threads: self.how.threads.map(usize::from),
            progress: if self.how.quiet { Mode::Quiet } else { Mode::Auto },
            interrupt: interrupt(),
            ..RunOptions::new(&directory)
        };
        let summary = crate::run::run(plan, &options).map_err(failure)?;
        let structure = quoted(directory.join(files::FINAL));
        if !self.how.quiet {
            let unit = if reduced { "ε" } else { "kJ/mol" };
            let energies = Table::read(&directory.join(files::ENERGIES)).map_err(Failure::failed)?;
            let mut rows = vec![vec!["term".into(), format!("before ({unit})"), format!("after ({unit})")]];
            for name in names.iter().map(String::as_str).chain(["potential"]) {
                if let Some([first, .., last] | [first @ last]) = energies.column(name) {
                    rows.push(vec![name.into(), digits(*first), digits(*last)]);
                }
            }
            say(&format!("{summary}{}  the structure is in {structure}\n", table(&rows, &[1, 2])))?;
        }
        let reached = summary.minimized.last();
        if reached.is_some_and(|m| m.ending == Converged) {
            return Ok(ExitCode::SUCCESS);
        }
        let why = match reached.map(|m| m.ending) {
            Some(Stalled) => "no lower energy can be found",
            Some(Steps) => "the steps are used up (--steps)",
            _ => "it was interrupted",
        };
        Err(Failure::failed(format!(
            "NOT converged: {why}; {structure} holds the structure that was reached"
        )))
    }
}

/// An energy with six decimals, or with seven digits where that would be too long.
fn digits(energy: f64) -> String {
    if energy.abs() < 1e9 { format!("{energy:.6}") } else { significant(energy, 7) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_take_little_room() {
        for (energy, text) in [
            (-613.785_600_4, "-613.785600"),
            (0.0, "0.000000"),
            (1.234_567_89e66, "1.234568×10⁶⁶"),
            (-1e9, "−1×10⁹"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(digits(energy), text);
        }
    }
}
