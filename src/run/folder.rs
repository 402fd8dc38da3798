//! The folder of a run: made if need be, and of one run at a time.

use super::{RunError, files};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A folder that is this run's until it is dropped.
///
/// The system holds the lock for the process, so that one which is killed leaves none behind. A folder that was made
/// for a run and is still empty in the end goes with it.
pub(super) struct Folder {
    path: PathBuf,
    /// What had to be made, from the inside to the outside.
    made: Vec<PathBuf>,
    /// None where the file system has no locks.
    lock: Option<File>,
}

impl Folder {
    /// Makes the folder if need be, and locks it.
    pub fn claim(path: &Path) -> Result<Folder, RunError> {
        if let Some(message) = obstacle(path) {
            return Err(RunError::NoFolder { path: path.into(), message });
        }
        let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let mut folder = Folder { path: path.into(), made: missing.map(PathBuf::from).collect(), lock: None };
        std::fs::create_dir_all(path).map_err(|source| RunError::File {
            action: "make the folder",
            path: path.into(),
            source,
        })?;
        folder.lock = folder.locked()?;
        Ok(folder)
    }

    /// Whether others are kept out.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    fn locked(&self) -> Result<Option<File>, RunError> {
        let path = self.path.join(files::LOCK);
        loop {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path);
            let mut file =
                file.map_err(|source| RunError::File { action: "write", path: path.clone(), source })?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut process = String::new();
                    let _ = file.read_to_string(&mut process);
                    return Err(RunError::Busy {
                        path: self.path.clone(),
                        process: process.trim().parse().ok(),
                    });
                }
                Err(TryLockError::Error(_)) => {
                    let _ = std::fs::remove_file(&path);
                    return Ok(None);
                }
            }
            // (whoever held it may have removed it between the two)
            if is_at(&file, &path) {
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                return Ok(Some(file));
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = std::fs::remove_file(self.path.join(files::LOCK));
        }
        self.lock = None;
        for made in &self.made {
            // (fails where there is something in it)
            if std::fs::remove_dir(made).is_err() {
                break;
            }
        }
    }
}

/// Whether the file is the one of this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |m: std::fs::Metadata| (m.dev(), m.ino());
    file.metadata().map(of).ok() == path.metadata().map(of).ok()
}

/// Whether the file is the one of this name.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// What stands where the folder should be.
fn obstacle(path: &Path) -> Option<String> {
    for place in path.ancestors() {
        if place.is_dir() {
            return None;
        }
        let Ok(found) = place.symlink_metadata() else { continue };
        let shown = place.display();
        return Some(match std::fs::read_link(place) {
            Ok(target) if found.is_symlink() && !place.exists() => format!(
                "{shown} is a link to {}, where nothing is; make that folder, or remove the link",
                target.display()
            ),
            _ => format!("{shown} is a file; name another folder"),
        });
    }
    None
}
