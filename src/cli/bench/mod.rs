//! `md bench`

mod systems;

use super::run::failure;
use super::{Changes, Failure, Outcome, colored, say, table};
use crate::catalog::Catalog;
use crate::input::plan::Plan;
use crate::input::report::did_you_mean;
use crate::observe::progress::human_count;
use crate::plot::scale::significant;
use crate::run::RunError;
use crate::run::benchmark::{Benchmark, Sample};
use crate::units::UnitSystem;
use clap::Args;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::num::NonZero;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use systems::{SYSTEMS, System};

/// What is measured, for `--help`.
const MEASURES: &str = "\
What is timed is the last stage of an input, step by step as in a run (neighbour lists, forces, integration, and
energies where a row of them would be due) but without files. Earlier stages and a repeat for warming up are not timed.
Of five repeats the fastest counts; the spread is how much longer the steps of the slowest took.

Time per step is that of the fastest repeat, and its phases add up to it. `rest` is what belongs to no term of the
energy: putting forces into the order of the atoms, looking for numbers that are not finite, energies for rows.

Memory is by how much the process has grown from before the input was read to the end (RssAnon in /proc/self/status;
nothing where there is no such file), for each atom. What the allocator keeps of memory that only reading needed, and a
megabyte or so for threads, is in it: it says little about small systems. Each system has a process of its own.

A repeat ends where a neighbour list is built, so that it holds a whole number of their lives, or after twice its time.
Other work on the machine makes everything slower: look at the spread.";

#[derive(Args)]
#[command(after_help = MEASURES)]
pub(super) struct Bench {
    /// Which systems, by name (see --list) [default: lj-32k water silicon]
    #[arg(value_name = "SYSTEM")]
    systems: Vec<String>,
    /// Threads to compute with; several numbers such as 1,2,4 are timed one after the other [default: 1, and one a core]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    threads: Vec<u16>,
    /// Seconds to time each system with each number of threads
    #[arg(long, value_name = "S", default_value = "3", value_parser = seconds)]
    seconds: Duration,
    #[command(flatten)]
    changes: Changes,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// List the systems
    #[arg(long)]
    list: bool,
}

/// Repeats of which the fastest counts.
const REPEATS: u32 = 5;

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= 86_400.0);
    let time = number.map(Duration::from_secs_f64).filter(|time| !time.is_zero());
    time.ok_or_else(|| "it should be a number of seconds, such as 0.5".to_owned())
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: String,
    /// The processor's name, where the system says it.
    processor: Option<String>,
    cores: usize,
    /// The instructions that kernels use.
    instructions: String,
    /// What was changed in all inputs: path and value.
    changes: Vec<(String, String)>,
    cases: Vec<Case>,
}

/// A system with a number of threads.
#[derive(Serialize, Deserialize)]
struct Case {
    system: String,
    atoms: usize,
    threads: u16,
    /// Of all repeats.
    steps: u64,
    repeats: u32,
    million_atom_steps_per_second: f64,
    /// How much longer than those of the fastest repeat the steps of the slowest took: 0.1 for a tenth.
    spread: f64,
    /// None in reduced units.
    ns_per_day: Option<f64>,
    microseconds_per_step: f64,
    phases: Vec<Phase>,
    /// Steps that a neighbour list lives for; none if none was built.
    steps_per_list: Option<f64>,
    /// None where the system does not say.
    bytes_per_atom: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct Phase {
    name: String,
    microseconds_per_step: f64,
}

impl Bench {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        if self.list {
            let rows: Vec<_> = SYSTEMS.iter().map(|s| vec![s.name.into(), s.about.into()]).collect();
            say(&format!("md bench SYSTEM …, of\n{}", table(&rows, &[])))?;
            return Ok(ExitCode::SUCCESS);
        }
        let systems = match self.systems.is_empty() {
            true => SYSTEMS.iter().filter(|s| s.usual).collect(),
            false => self.systems.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?,
        };
        let cores = cores();
        let mut threads = self.threads.clone();
        if threads.is_empty() {
            threads = vec![1, u16::try_from(cores).unwrap_or(u16::MAX)];
            threads.dedup();
        }
        let mut document = Document {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: processor(),
            cores,
            instructions: String::new(),
            changes: self.changes.set.clone(),
            cases: Vec::new(),
        };
        // (one case is timed here, several each in a process of its own: memory that one has given back would hide what
        // the next one needs)
        if let ([system], [threads]) = (&systems[..], &threads[..]) {
            let (case, instructions) = self.time(system, *threads, catalog)?;
            document.cases.push(case);
            document.instructions = instructions;
        } else {
            // (what is wrong with a change is said once, before anything is timed)
            if let Some(first) = systems.first().filter(|_| !self.changes.set.is_empty()) {
                self.plan(first, catalog)?;
            }
            for system in &systems {
                for &threads in &threads {
                    let timed = self.elsewhere(system, threads)?;
                    document.instructions = timed.instructions;
                    document.cases.extend(timed.cases);
                }
            }
        }
        let text = match self.json {
            true => serde_json::to_string(&document).map_err(Failure::failed)? + "\n",
            false => document.in_words(),
        };
        say(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn plan(&self, system: &System, catalog: &Catalog) -> Result<Plan, Failure> {
        let plan = system.plan(&self.changes.set, catalog);
        plan.map_err(|found| Failure { status: 2, message: found.render(colored()) })
    }

    /// A case in a process of its own, which speaks for itself where it fails.
    fn elsewhere(&self, system: &System, threads: u16) -> Result<Document, Failure> {
        let s = if threads == 1 { "" } else { "s" };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("`{}` with {threads} thread{s} cannot be timed: {error}", system.name))
        };
        let program = std::env::current_exe().map_err(|e| failed(&e))?;
        let output = Command::new(program)
            .args(["bench", system.name, "--json", "--threads", &threads.to_string()])
            .args(["--seconds", &self.seconds.as_secs_f64().to_string()])
            .args(
                self.changes
                    .set
                    .iter()
                    .flat_map(|(path, value)| ["--set".to_owned(), format!("{path}={value}")]),
            )
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| failed(&e))?;
        if !output.status.success() {
            return Err(failed(&output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| failed(&e))
    }

    /// Times a system in this process; also returns the instructions that it runs on.
    fn time(&self, system: &System, threads: u16, catalog: &Catalog) -> Result<(Case, String), Failure> {
        let count = usize::from(threads);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
        let pool = pool.map_err(|e| failure(RunError::Threads { count, message: e.to_string() }))?;
        pool.install(|| {
            // (only a terminal shows it)
            let bar = ProgressBar::new_spinner();
            let s = if threads == 1 { "" } else { "s" };
            let show = |what: &str| {
                bar.set_message(format!("{}, {threads} thread{s}: {what}", system.name));
                bar.tick();
            };
            show("preparing");
            let before = resident();
            let plan = self.plan(system, catalog)?;
            let reduced = plan.units == UnitSystem::Lj;
            let instructions = plan.setup.method.isa.name().to_owned();
            let mut benchmark = Benchmark::start(plan).map_err(failure)?;
            let least = self.seconds / REPEATS;
            show("warming up");
            benchmark.sample(least).map_err(failure)?;
            let mut samples = Vec::new();
            for k in 1..=REPEATS {
                show(&format!("timing, {k} of {REPEATS}"));
                samples.push(benchmark.sample(least).map_err(failure)?);
            }
            let grown = before.zip(resident()).map(|(before, after)| (after - before).max(0.0));
            bar.finish_and_clear();
            let case = Case::of(system.name, threads, &benchmark, &samples, reduced, grown);
            Ok((case, instructions))
        })
    }
}

fn named(name: &str) -> Result<&'static System, Failure> {
    SYSTEMS.iter().find(|s| s.name == name).ok_or_else(|| {
        let names = SYSTEMS.iter().map(|s| s.name);
        let help = match did_you_mean(name, names.clone()) {
            Some(guess) => format!("did you mean `{guess}`?"),
            None => format!("the systems are {}", names.collect::<Vec<_>>().join(", ")),
        };
        Failure::wrong(format!("there is no system `{name}`")).with_help(&help)
    })
}

/// How many threads the machine runs at a time.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The processor's name.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Bytes of memory that are in use and of no file.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(1024.0 * line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()?)
}

impl Case {
    /// `grown`: bytes of memory.
    fn of(
        system: &str,
        threads: u16,
        benchmark: &Benchmark,
        samples: &[Sample],
        reduced: bool,
        grown: Option<f64>,
    ) -> Self {
        let atoms = benchmark.atoms();
        let per_step = |sample: &Sample, time: Duration| time.as_secs_f64() / sample.steps as f64;
        let (mut fastest, mut slowest) = (f64::INFINITY, 0.0f64);
        let mut phases = Vec::new();
        for sample in samples {
            let step = per_step(sample, sample.time);
            slowest = slowest.max(step);
            if step < fastest {
                fastest = step;
                let of = |(name, time): &(String, Duration)| Phase {
                    name: name.clone(),
                    microseconds_per_step: 1e6 * per_step(sample, *time),
                };
                phases = sample.phases.iter().map(of).collect();
            }
        }
        let steps = samples.iter().map(|s| s.steps).sum();
        let builds: u64 = samples.iter().map(|s| s.list_builds).sum();
        Self {
            system: system.to_owned(),
            atoms,
            threads,
            steps,
            repeats: REPEATS,
            million_atom_steps_per_second: 1e-6 * atoms as f64 / fastest,
            spread: slowest / fastest - 1.0,
            ns_per_day: (!reduced).then(|| 86.4 * benchmark.time_step() / fastest),
            microseconds_per_step: 1e6 * fastest,
            phases,
            steps_per_list: (builds > 0).then(|| steps as f64 / builds as f64),
            bytes_per_atom: grown.map(|bytes| bytes / atoms as f64),
        }
    }
}

impl Document {
    /// As tables: all cases, and for each system where the time goes.
    fn in_words(&self) -> String {
        let some = |x: Option<f64>, text: &dyn Fn(f64) -> String| x.map_or_else(|| "–".to_owned(), text);
        let digits = |x: f64| significant(x, 3);
        let processor = self.processor.as_deref().unwrap_or("unknown processor");
        let s = if self.cores == 1 { "" } else { "s" };
        let mut text = format!(
            "md {}, {processor}, {} core{s}, instructions {}\n",
            self.version, self.cores, self.instructions
        );
        for (path, value) in &self.changes {
            text += &format!("with {path} = {value}\n");
        }
        let head = [
            "system",
            "atoms",
            "threads",
            "steps",
            "M atom-steps/s",
            "spread",
            "ns/day",
            "steps/list",
            "bytes/atom",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.cases.iter().map(|case| {
            vec![
                case.system.clone(),
                human_count(case.atoms as u64),
                case.threads.to_string(),
                human_count(case.steps),
                digits(case.million_atom_steps_per_second),
                format!("{:.0} %", 100.0 * case.spread),
                some(case.ns_per_day, &digits),
                some(case.steps_per_list, &digits),
                some(case.bytes_per_atom, &|x| human_count(x.round() as u64)),
            ]
        }));
        text += &table(&rows, &[1, 2, 3, 4, 5, 6, 7, 8]);
        for of_system in self.cases.chunk_by(|a, b| a.system == b.system) {
            let mut rows = vec![vec!["µs/step".to_owned()]];
            for case in of_system {
                let s = if case.threads == 1 { "" } else { "s" };
                rows[0].extend([format!("{} thread{s}", case.threads), String::new()]);
            }
            let of = |k: usize, case: &Case| case.phases.get(k).map_or(0.0, |p| p.microseconds_per_step);
            for (k, phase) in of_system[0].phases.iter().enumerate() {
                let mut row = vec![phase.name.clone()];
                for case in of_system {
                    let share = 100.0 * of(k, case) / case.microseconds_per_step;
                    row.extend([format!("{:.1}", of(k, case)), format!("{share:.0} %")]);
                }
                rows.push(row);
            }
            let mut total = vec!["total".to_owned()];
            for case in of_system {
                total.extend([format!("{:.1}", case.microseconds_per_step), String::new()]);
            }
            rows.push(total);
            let numbers: Vec<usize> = (1..rows[0].len()).collect();
            text += &format!("{}\n{}", of_system[0].system, table(&rows, &numbers));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_systems_are_those_of_the_help() {
        let usual: Vec<&str> = SYSTEMS.iter().filter(|s| s.usual).map(|s| s.name).collect();
        let command = super::super::command_line();
        let bench = command.find_subcommand("bench").unwrap();
        let help = bench.get_positionals().next().unwrap().get_help().unwrap().to_string();
        assert!(help.contains(&format!("[default: {}]", usual.join(" "))), "{help}");
    }

    #[test]
    fn times_are_positive_numbers() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "1e-12", "-1", "nan", "inf", "", "1 s", "1e9"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
