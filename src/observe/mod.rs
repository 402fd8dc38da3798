//! What a run tells while it goes: files that grow, and a word now and then.

pub mod checkpoint;
pub mod energies;
pub mod progress;
pub mod trajectory;

use std::io::{self, Write};
use std::path::Path;

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
