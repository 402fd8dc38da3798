//! `md plot`

use super::{Failure, Outcome, quoted, say};
use crate::plot::{Figure, PlotError, Stage, Table, UnitLabels, energies};
use crate::run::files;
use crate::units::{UnitSystem, read_quantity};
use clap::Args;
use potentials::Dimension;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Plot {
    /// The folder of a run, or a CSV file
    #[arg(value_name = "DIR-or-CSV")]
    source: PathBuf,
    /// Draw these columns instead of the usual picture
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// The picture, .svg or .png [default: both, beside the table]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Plot {
    pub(super) fn run(self) -> Outcome {
        let csv = if self.source.is_dir() { self.source.join(files::ENERGIES) } else { self.source.clone() };
        let folder = csv.parent().map(Path::to_path_buf).unwrap_or_default();
        let About { title, units, stages } = about(&folder.join(files::INPUT));
        let failed = |error: PlotError| match error {
            PlotError::Write { .. } | PlotError::Draw(_) => Failure::failed(error),
            _ => Failure::wrong(error),
        };
        let table = Table::read(&csv).map_err(failed)?;
        let columns: Vec<&str> = self.columns.iter().map(|c| c.trim()).collect();
        let figure = match columns.is_empty() {
            true => energies::figure(&table, &title, &units, &stages),
            false => Figure::columns(&table, &columns, &title, &units),
        };
        let figure = figure.map_err(failed)?;
        let pictures = match self.out {
            Some(out) => vec![out],
            None => {
                let stem = csv.file_stem().map_or("plot".into(), |s| s.to_string_lossy().into_owned());
                let stem = [&[stem.as_str()], &columns[..]].concat().join("-");
                ["svg", "png"].map(|ending| folder.join(format!("{stem}.{ending}"))).to_vec()
            }
        };
        for picture in &pictures {
            figure.save(picture).map_err(failed)?;
            say(&format!("{}\n", quoted(picture)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What a run's `run.toml` tells of it.
#[derive(Default)]
struct About {
    title: String,
    units: UnitLabels,
    stages: Vec<Stage>,
}

fn about(path: &Path) -> About {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let input: toml::Table = text.parse().unwrap_or_default();
    let title = input.get("title").and_then(|t| t.as_str()).unwrap_or_default().to_owned();
    let system = match input.get("units") {
        Some(toml::Value::String(name)) => name.as_str(),
        Some(toml::Value::Table(table)) => table.keys().next().map_or("md", String::as_str),
        _ => "md",
    };
    let system = UnitSystem::ALL.iter().find(|(name, _)| *name == system).map_or(UnitSystem::Md, |(_, s)| *s);
    let units = if system == UnitSystem::Lj { UnitLabels::reduced() } else { UnitLabels::default() };
    let stages = input.get("stage").and_then(|s| s.as_array());
    let stages = stages.and_then(|list| list.iter().enumerate().map(|(k, s)| stage(k, s, system)).collect());
    About { title, units, stages: stages.unwrap_or_default() }
}

/// A stage as a picture sees it; nothing where it cannot be understood.
fn stage(number: usize, stage: &toml::Value, system: UnitSystem) -> Option<Stage> {
    let name = stage.get("name").and_then(|n| n.as_str());
    let name = name.map_or_else(|| format!("stage {}", number + 1), str::to_owned);
    let steps = stage.get("steps")?.as_integer()?.try_into().ok()?;
    let time_step = match stage.get("integrator") {
        None => None,
        Some(integrator) => {
            let text = match integrator.as_table()?.values().next()?.get("time-step")? {
                toml::Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            Some(read_quantity(&text, Dimension::TIME, system).ok()?)
        }
    };
    Some(Stage { name, steps, time_step })
}
