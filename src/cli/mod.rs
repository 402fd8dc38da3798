//! The command line: one file a subcommand.
//!
//! | exit status | means |
//! |---|---|
//! | 0 | done; also a run that was interrupted and can be resumed |
//! | 1 | the run or a check failed, `md minimize` did not converge, or a file could not be written |
//! | 2 | the command line or the input is wrong, the restart does not fit it, or the folder is in use |
//!
//! A third party's program with energies of its own is one line:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     md::cli::main(md::catalog()) // md::catalog().pair::<Mine>()
//! }
//! ```

mod bench;
mod check;
mod energy;
mod explain;
mod fit;
mod gradient;
mod minimize;
mod new;
mod plot;
mod response;
mod results;
mod run;

use crate::catalog::Catalog;
use crate::input::plan::Plan;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What exit statuses mean.
const STATUSES: &str = "\
Exit status:
  0  done; also a run that was interrupted and can be resumed
  1  the run or a check failed, `md minimize` did not converge, or a file could not be written
  2  the command line or the input is wrong, the restart does not fit it, or the folder is in use";

#[derive(Parser)]
#[command(name = "md", version, about = "Molecular dynamics in which every energy is written once", long_about = None, after_help = STATUSES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate what an input describes
    Run(run::Run),
    /// Compare forces, virials, Hessian products and derivatives in parameters with finite differences
    Check(check::Check),
    /// Energy by term, forces, virial and pressure of the structure as it is
    Energy(energy::Energy),
    /// Measure how fast standard systems run on this machine
    Bench(bench::Bench),
    /// Draw curves from the energies that a run wrote
    Plot(plot::Plot),
    /// Find the nearest minimum of the energy
    Minimize(minimize::Minimize),
    /// Normal modes, vibrational spectra, phonons and what follows for heat and free energy
    Modes(response::modes::Modes),
    /// Elastic constants, with atoms free to follow a strain
    Elastic(response::elastic::Elastic),
    /// How results depend on every parameter
    Sensitivity(response::sensitivity::Sensitivity),
    /// Learn parameters from energies, forces and stresses
    Fit(fit::Fit),
    /// How what comes out of a simulation depends on what went into it: derivatives through time
    Gradient(gradient::Gradient),
    /// Write a commented input to start from
    New(new::New),
    /// Explain potentials, units or the keys of an input
    Explain(explain::Explain),
}

/// An input, with changes to it.
#[derive(Args, Clone)]
struct Input {
    /// The input, a TOML file
    input: PathBuf,
    #[command(flatten)]
    changes: Changes,
}

/// Changes to an input.
#[derive(Args, Clone)]
struct Changes {
    /// Change any key of the input, such as `stage[0].steps=100` (may be repeated)
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

/// How a command that takes its time is carried out.
#[derive(Args, Clone)]
struct How {
    /// Threads to compute with [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Replace the run in the folder: that of --output, or else the latest of this input's (outputs/…, -2, -3 …)
    #[arg(long)]
    force: bool,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("it should look like path.to.key=value")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

/// Why a command fails: the exit status and what to say about it.
struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// With a last line about what to do.
    fn with_help(mut self, help: &str) -> Self {
        self.message = format!("{}\nhelp: {help}", self.message.trim_end());
        self
    }
    /// The run or a check failed.
    fn failed(message: impl Display) -> Self {
        Self { status: 1, message: format!("error: {message}") }
    }
    /// The command line or the input is wrong.
    fn wrong(message: impl Display) -> Self {
        Self { status: 2, message: format!("error: {message}") }
    }
}

type Outcome = Result<ExitCode, Failure>;

/// Runs the command line of this process, with the energies of a catalogue.
pub fn main(catalog: Catalog) -> ExitCode {
    let cli = match command_line().try_get_matches().and_then(|m| Cli::from_arg_matches(&m)) {
        Ok(cli) => cli,
        Err(error) => {
            // (help and versions go to standard output, with status 0)
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let outcome = match cli.command {
        Command::Run(command) => command.run(&catalog),
        Command::Check(command) => command.run(&catalog),
        Command::Energy(command) => command.run(&catalog),
        Command::Bench(command) => command.run(&catalog),
        Command::Plot(command) => command.run(),
        Command::Minimize(command) => command.run(&catalog),
        Command::Modes(command) => command.run(&catalog),
        Command::Elastic(command) => command.run(&catalog),
        Command::Sensitivity(command) => command.run(&catalog),
        Command::Fit(command) => command.run(&catalog),
        Command::Gradient(command) => command.run(&catalog),
        Command::New(command) => command.run(),
        Command::Explain(command) => command.run(&catalog),
    };
    outcome.unwrap_or_else(|failure| {
        tell(&failure.message);
        ExitCode::from(failure.status)
    })
}

/// The command line, on which numbers of steps may be written with a minus, to be told that they may not.
fn command_line() -> clap::Command {
    let steps = |command: clap::Command| {
        command.mut_arg("steps", |arg| {
            arg.allow_negative_numbers(true).value_parser(|text: &str| {
                text.parse::<u64>().map_err(|_| "steps are a whole number from 0 up")
            })
        })
    };
    Cli::command().mut_subcommand("run", steps).mut_subcommand("fit", steps).mut_subcommand("minimize", steps)
}

/// Whether what goes to standard error may be coloured.
fn colored() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Writes a line to standard error.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

/// Writes to standard output. Nobody listening any more is no error.
fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

impl Input {
    /// Reads the input; its warnings go to standard error, unless it shall be quiet.
    fn plan(&self, catalog: &Catalog, quiet: bool) -> Result<Plan, Failure> {
        self.plan_of(&self.changes.set, catalog, quiet)
    }

    /// The same with the last stage's number of steps, if one is given.
    fn plan_with_steps(&self, steps: Option<u64>, catalog: &Catalog, quiet: bool) -> Result<Plan, Failure> {
        let plan = self.plan(catalog, quiet || steps.is_some())?;
        let (Some(steps), Some(last)) = (steps, plan.stages.len().checked_sub(1)) else { return Ok(plan) };
        let mut set = self.changes.set.clone();
        set.push((format!("stage[{last}].steps"), steps.to_string()));
        self.plan_of(&set, catalog, quiet)
    }

    fn plan_of(&self, set: &[(String, String)], catalog: &Catalog, quiet: bool) -> Result<Plan, Failure> {
        let plan = Plan::read(&self.input, set, catalog)
            .map_err(|found| Failure { status: 2, message: found.render(colored()) })?;
        if !quiet && !plan.warnings.is_empty() {
            tell(&plan.warnings.render(colored()));
        }
        Ok(plan)
    }

    /// What the results are called: the input's name without its ending.
    fn stem(&self) -> String {
        self.input.file_stem().map_or_else(|| "run".into(), |s| s.to_string_lossy().into_owned())
    }
}

/// A path on a command line, quoted where a shell wants it.
fn quoted(text: impl AsRef<Path>) -> String {
    let text = text.as_ref().to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=+:,@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Columns of text, aligned: the first to the left, numbers to the right.
fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|r| r.get(k)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (k, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[k] - cell.chars().count());
            let cells = if right.contains(&k) { [pad.as_str(), cell] } else { [cell, pad.as_str()] };
            line += &cells.concat();
            line += "  ";
        }
        text += "  ";
        text += line.trim_end();
        text.push('\n');
    }
    text
}
