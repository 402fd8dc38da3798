//! What a run tells while it goes: files that grow, and a word now and then.

pub mod checkpoint;
pub mod energies;
pub mod progress;
pub mod trajectory;

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// How many rows or frames a file has, and the step of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// The last one's step.
    pub last: Option<u64>,
}

impl Tally {
    fn add(&mut self, step: u64) {
        *self = Self { count: self.count + 1, last: Some(step) };
    }
}

/// What a file that is to be continued has before the place where it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The steps of its rows or frames.
    pub steps: Vec<u64>,
    /// How many bytes that is.
    end: u64,
    /// The names of the terms, if it is a table of energies.
    terms: Vec<String>,
}

impl Kept {
    /// How many there are.
    pub fn tally(&self) -> Tally {
        Tally { count: self.steps.len() as u64, last: self.steps.last().copied() }
    }

    /// What is missing of `expected` "rows" or "frames", in words.
    pub fn lacks(&self, expected: Tally, what: &str) -> Option<String> {
        let until = expected.last?;
        let count = self.steps.iter().filter(|&&step| step <= until).count() as u64;
        let last = self.steps.last().copied();
        if last.is_some_and(|last| last >= until) && count >= expected.count {
            return None;
        }
        Some(match last {
            Some(last) if last >= until => {
                format!("it has {count} {what} up to step {until}, but {} had been written", expected.count)
            }
            Some(last) => {
                format!(
                    "its {what} end with that of step {last}, but those up to step {until} had been written"
                )
            }
            None => format!("it has no {what}, but those up to step {until} had been written"),
        })
    }
}

/// Brings what was written to the disk, if the file is on one.
fn synchronize(file: &File) -> io::Result<()> {
    match file.sync_data() {
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

/// Writes a whole file such that it is there complete or not at all: into a temporary file beside it, which is
/// then given its name. A file that was there before is replaced at that moment.
///
/// # Errors
/// Of `write`, and of the file system. What was there before is then still there.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    write(&mut file)?;
    file.flush()?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Why the system could not do what a program asked for, in a few words.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".into(),
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
