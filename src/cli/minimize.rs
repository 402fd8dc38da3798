//! `md minimize`

use super::run::{directory, failure, interrupt};
use super::{Failure, How, Input, Outcome, quoted, say, table, tell};
use crate::catalog::Catalog;
use crate::forces::Term;
use crate::input::plan::{Stage, Task};
use crate::observe::progress::Mode;
use crate::plot::Table;
use crate::run::{Ending, RunOptions, files, term_names};
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
        let directory = directory(self.output.as_deref(), &stem, false, self.how.force, self.how.quiet)?;
        let options = RunOptions {
            threads: self.how.threads.map(usize::from),
            progress: if self.how.quiet { Mode::Quiet } else { Mode::Auto },
            interrupt: interrupt(),
            ..RunOptions::new(&directory)
        };
        let summary = crate::run::run(plan, &options).map_err(failure)?;
        if self.how.quiet {
            return Ok(ExitCode::SUCCESS);
        }
        let unit = if reduced { "ε" } else { "kJ/mol" };
        let energies = Table::read(&directory.join(files::ENERGIES)).map_err(Failure::failed)?;
        let mut rows = vec![vec!["term".into(), format!("before ({unit})"), format!("after ({unit})")]];
        for name in names.iter().map(String::as_str).chain(["potential"]) {
            if let Some([first, .., last] | [first @ last]) = energies.column(name) {
                rows.push(vec![name.into(), format!("{first:.6}"), format!("{last:.6}")]);
            }
        }
        let result = directory.join(files::FINAL);
        let result = match summary.ending {
            Ending::Complete => format!("  the structure is in {}\n", quoted(result)),
            _ => {
                tell("interrupted: there is no final structure");
                String::new()
            }
        };
        say(&format!("{summary}{}{result}", table(&rows, &[1, 2])))?;
        Ok(ExitCode::SUCCESS)
    }
}
