//! The files that a command other than `md run` writes.

use super::{Failure, quoted};
use crate::observe::write_whole;
use crate::plot::{Figure, PlotError};
use crate::run::files;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A folder and what was written into it.
pub(super) struct Results {
    pub folder: PathBuf,
    pub files: Vec<String>,
    /// The input with every default filled in.
    echo: String,
}

impl Results {
    /// Makes the folder.
    pub fn new(folder: PathBuf, echo: String) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder)
            .map_err(|e| Failure::failed(format!("cannot make the folder {}: {e}", folder.display())))?;
        Ok(Self { folder, files: Vec::new(), echo })
    }

    /// Which files there are.
    pub fn summary(&self) -> String {
        format!("  {} in {}\n", self.files.join(", "), quoted(&self.folder))
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
