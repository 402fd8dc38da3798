//! `md run`

use super::{Failure, How, Input, Outcome, quoted, say, tell};
use crate::catalog::Catalog;
use crate::observe::progress::Mode;
use crate::run::{Ending, RunError, RunOptions, Summary, files, holds_run};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Args)]
pub(super) struct Run {
    #[command(flatten)]
    input: Input,
    /// Steps of the last stage, all together also when resuming
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Folder for the results [default: outputs/<input's name>, or the next free -2, -3 …]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Go on with the run in the folder: that of --output, or else the latest of this input's (outputs/…, -2, -3 …)
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Stop, ready to be resumed, after this time: "30 min", "1 h 30 min", "90 s"
    #[arg(long, value_name = "T", value_parser = duration)]
    max_time: Option<Duration>,
    #[command(flatten)]
    how: How,
}

/// What to know where the input of a run that is resumed cannot be read.
const RESUMING: &str = "to resume, the input and the files that it names are needed as well. If a structure file is lost, any \
    with the same atoms in the same order and the same cell will do: positions and velocities come from the restart file";

impl Run {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let plan = self.input.plan_with_steps(self.steps, catalog, self.how.quiet);
        let plan = plan.map_err(|failure| if self.resume { failure.with_help(RESUMING) } else { failure })?;
        let stem = self.input.stem();
        let directory =
            directory(self.output.as_deref(), &stem, Some(self.resume), self.how.force, self.how.quiet)?;
        let options = RunOptions {
            resume: self.resume,
            threads: self.how.threads.map(usize::from),
            max_time: self.max_time,
            progress: if self.how.quiet { Mode::Quiet } else { Mode::Auto },
            interrupt: interrupt(),
            ..RunOptions::new(&directory)
        };
        let summary = crate::run::run(plan, &options).map_err(failure)?;
        if !self.how.quiet {
            say(&format!("{summary}{}", self.how_to_go_on(&summary)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn how_to_go_on(&self, summary: &Summary) -> String {
        if summary.ending == Ending::Complete || summary.restart_step.is_none() {
            return String::new();
        }
        let mut line =
            format!("    md run {} --output {}", quoted(&self.input.input), quoted(&summary.directory));
        for (path, value) in &self.input.changes.set {
            line += &format!(" --set {}", quoted(format!("{path}={value}")));
        }
        if let Some(steps) = self.steps {
            line += &format!(" --steps {steps}");
        }
        line + " --resume\n"
    }
}

pub(super) fn failure(error: RunError) -> Failure {
    if error.is_of_input() { Failure::wrong(error) } else { Failure::failed(error) }
}

/// A flag that SIGINT and SIGTERM set. The second signal ends the process at once.
pub(super) fn interrupt() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    let handler = ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    if let Err(error) = handler {
        tell(&format!("warning: signals will end the run without a restart file: {error}"));
    }
    flag
}

/// Where the results go; `resume` is none where the command cannot.
pub(super) fn directory(
    asked: Option<&Path>,
    stem: &str,
    resume: Option<bool>,
    force: bool,
    quiet: bool,
) -> Result<PathBuf, Failure> {
    let (can_resume, resume) = (resume.is_some(), resume == Some(true));
    let note = |text: String| {
        if !quiet {
            tell(&text);
        }
    };
    if let Some(directory) = asked {
        let (place, holds) = (directory.display(), holds_run(directory));
        if resume && !directory.join(files::RESTART).exists() {
            return Err(Failure::wrong(format!("{place} has no {} to resume from", files::RESTART)));
        }
        if holds && !resume && !force {
            let message = match can_resume && directory.join(files::RESTART).exists() {
                true => "holds a run already; go on with it (--resume) or replace it (--force)",
                false => "holds results already; replace them (--force) or name another folder (--output)",
            };
            return Err(Failure::wrong(format!("{place} {message}")));
        }
        return Ok(directory.into());
    }
    let place = |k: usize| match k {
        1 => Path::new("outputs").join(stem),
        k => Path::new("outputs").join(format!("{stem}-{k}")),
    };
    let free = (1..).find(|&k| !holds_run(&place(k))).unwrap_or(1);
    let latest = (free > 1).then(|| place(free - 1));
    if resume {
        let Some(latest) = latest.filter(|p| p.join(files::RESTART).exists()) else {
            let message =
                format!("there is no run of `{stem}` to resume in outputs; say which with --output");
            return Err(Failure::wrong(message));
        };
        note(format!("resuming the run in {}", latest.display()));
        return Ok(latest);
    }
    match latest {
        Some(latest) if force => {
            note(format!("replacing the run in {}", latest.display()));
            Ok(latest)
        }
        Some(latest) => {
            let (latest, free) = (latest.display(), place(free));
            note(format!("{latest} holds a run already; this one goes into {}", free.display()));
            Ok(free)
        }
        None => Ok(place(free)),
    }
}

/// A time such as "30 min", "1 h 30 min", "1.5h" or "45 s".
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time such as \"30 min\", \"1 h 30 min\" or \"90 s\"");
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "s" | "sec" | "second" | "seconds" => 1.0,
            "min" | "m" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return Err(wrong()),
        };
        seconds += number * unit;
        rest = rest[end..].trim_start();
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let seconds = |text: &str| duration(text).map(|d| d.as_secs_f64()).ok();
        assert_eq!(seconds("30 min"), Some(1800.0));
        assert_eq!(seconds("1 h 30 min"), Some(5400.0));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        assert_eq!(seconds(" 2d3s "), Some(172_803.0));
        assert_eq!(seconds("0 s"), Some(0.0));
        for wrong in ["", "30", "min", "-3 s", "3 parsecs", "1e999 s", "1 h min", "1..2 s"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
