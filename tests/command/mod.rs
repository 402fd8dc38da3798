//! Runs `md` in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A new folder for a test of a suite.
pub fn folder(suite: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(suite).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Whether it was well, and what was said on both streams.
pub fn md(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_md")).args(arguments).current_dir(folder).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.success(), out + &error)
}
