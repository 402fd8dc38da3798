//! `md plot`

use super::{Failure, Outcome, quoted, say};
use crate::plot::{Figure, PlotError, Table, UnitLabels, energies};
use crate::run::files;
use clap::Args;
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
        let (title, units) = about(&folder.join(files::INPUT));
        let failed = |error: PlotError| match error {
            PlotError::Write { .. } | PlotError::Draw(_) => Failure::failed(error),
            _ => Failure::wrong(error),
        };
        let table = Table::read(&csv).map_err(failed)?;
        let columns: Vec<&str> = self.columns.iter().map(|c| c.trim()).collect();
        let figure = match columns.is_empty() {
            true => energies::figure(&table, &title, &units),
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

/// Title and units of a run, as far as its `run.toml` tells.
fn about(path: &Path) -> (String, UnitLabels) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let input: toml::Table = text.parse().unwrap_or_default();
    let title = input.get("title").and_then(|t| t.as_str()).unwrap_or_default().to_owned();
    let reduced = match input.get("units") {
        Some(toml::Value::String(name)) => name == "lj",
        Some(toml::Value::Table(table)) => table.contains_key("lj"),
        _ => false,
    };
    (title, if reduced { UnitLabels::reduced() } else { UnitLabels::default() })
}
