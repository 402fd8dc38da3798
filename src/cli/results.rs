//! Where a command puts what it finds: a folder with tables and pictures, and a text that is said at the end.

use super::run::directory;
use super::{Failure, How, Input, quoted, say};
use crate::catalog::Catalog;
use crate::input::plan::Plan;
use crate::observe::progress::Mode;
use crate::observe::write_whole;
use crate::plot::{Figure, PlotError};
use crate::run::files;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct Asked {
    #[command(flatten)]
    pub input: Input,
    /// Folder for the results [default: outputs/<input's name>-<command>, or the next free -2, -3 …]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub how: How,
}

/// What a command has found so far.
pub(super) struct Results {
    pub folder: PathBuf,
    pub quiet: bool,
    /// What is said at the end.
    pub text: String,
    pub files: Vec<String>,
    /// The input with every default filled in.
    echo: String,
}

impl Asked {
    /// Reads the input and does the rest in as many threads as wanted.
    pub fn carry_out(
        self,
        catalog: &Catalog,
        what: &str,
        body: impl FnOnce(Plan, &mut Results) -> Result<(), Failure> + Send,
    ) -> super::Outcome {
        let mut plan = self.input.plan(catalog, self.how.quiet)?;
        let stem = format!("{}-{what}", self.input.stem());
        let folder = directory(self.output.as_deref(), &stem, None, self.how.force, self.how.quiet)?;
        let mut results = Results::new(folder, std::mem::take(&mut plan.echo), self.how.quiet)?;
        results.text = format!("{}: {} atoms\n", self.input.input.display(), plan.atoms.len());
        let found = &mut results;
        let work = || body(plan, found);
        match self.how.threads {
            None => work()?,
            Some(count) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(count)).build();
                pool.map_err(Failure::failed)?.install(work)?;
            }
        }
        results.told()?;
        Ok(std::process::ExitCode::SUCCESS)
    }
}

impl Results {
    /// Makes the folder.
    pub fn new(folder: PathBuf, echo: String, quiet: bool) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder)
            .map_err(|e| Failure::failed(format!("cannot make the folder {}: {e}", folder.display())))?;
        Ok(Self { folder, quiet, text: String::new(), files: Vec::new(), echo })
    }
    /// Says what was found, and in which files.
    pub fn told(&self) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        say(&format!("{}  {} in {}\n", self.text, self.files.join(", "), quoted(&self.folder)))
    }
    /// How progress is shown.
    pub fn mode(&self) -> Mode {
        if self.quiet { Mode::Quiet } else { Mode::Auto }
    }
    /// Writes a table.
    pub fn csv(&mut self, name: &str, header: &[String], rows: &[Vec<String>]) -> Result<(), Failure> {
        self.write(name, |out| {
            let mut csv = csv::Writer::from_writer(out);
            csv.write_record(header)?;
            rows.iter().try_for_each(|row| csv.write_record(row))?;
            csv.flush()
        })
    }
    /// Writes a file.
    pub fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        self.quietly(name, write)?;
        self.files.push(name.to_owned());
        Ok(())
    }
    /// Writes a file that is not to be named.
    pub fn quietly(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let cannot = |path: &Path, e| Failure::failed(format!("cannot write {}: {e}", path.display()));
        // (by its input a folder is known to hold results: it comes with the first of them)
        if !self.echo.is_empty() {
            let (path, echo) = (self.folder.join(files::INPUT), std::mem::take(&mut self.echo));
            write_whole(&path, |out| out.write_all(echo.as_bytes())).map_err(|e| cannot(&path, e))?;
        }
        let path = self.folder.join(name);
        write_whole(&path, write).map_err(|e| cannot(&path, e))
    }
    /// Writes a picture, as SVG and PNG.
    pub fn picture(&mut self, name: &str, figure: &Figure) -> Result<(), Failure> {
        for ending in ["svg", "png"] {
            let path = self.folder.join(format!("{name}.{ending}"));
            figure.save(&path).map_err(|e: PlotError| Failure::failed(e))?;
        }
        self.files.push(format!("{name}.svg"));
        Ok(())
    }
}

/// All digits of a number, in a table.
pub(super) fn exact(x: f64) -> String {
    // (a minus before zero says nothing)
    if x == 0.0 { "0".into() } else { format!("{x}") }
}
