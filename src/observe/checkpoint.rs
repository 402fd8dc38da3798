//! The restart file: everything that the next step depends on.
//!
//! ```text
//! md-restart 2\n  <FNV-1a of the rest, 8 bytes>  <a Restart in postcard's encoding>
//! ```
//!
//! Positions are stored on their grid and velocities as their bits, so a run that goes on from here takes the
//! very steps that it would have taken. The file is replaced as a whole: there is always a good one.

use super::{Tally, reason, write_whole};
use crate::integrate::Memory;
use crate::system::State;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The first bytes of a restart file, up to the version.
const MAGIC: &[u8] = b"md-restart ";
/// The version of the encoding.
pub const VERSION: u32 = 2;

/// A 64-bit fingerprint of numbers and words (FNV-1a over their bytes), the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Takes in bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// Takes in a whole number.
    pub fn number(&mut self, x: u64) -> &mut Self {
        self.bytes(&x.to_le_bytes())
    }

    /// Takes in the bits of a number.
    pub fn real(&mut self, x: f64) -> &mut Self {
        self.number(x.to_bits())
    }

    /// Takes in several numbers and their count.
    pub fn reals<'a>(&mut self, xs: impl IntoIterator<Item = &'a f64>) -> &mut Self {
        let mut count = 0;
        for &x in xs {
            self.real(x);
            count += 1;
        }
        self.number(count)
    }

    /// Takes in a word and its length.
    pub fn word(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes()).number(text.len() as u64)
    }

    /// The fingerprint.
    pub fn value(&self) -> u64 {
        self.0
    }
}

/// What tells whether a restart belongs to an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Number of atoms.
    pub atoms: u64,
    /// Names of the energy's terms.
    pub terms: Vec<String>,
    /// Fingerprint of the system: units, atoms, charges, bonds, terms and their parameters.
    pub system: u64,
    /// Fingerprint of the seed and of the stages so far: what they did, and how long the finished ones were.
    pub protocol: u64,
    /// Fingerprint of the trajectories: files, formats, atoms.
    pub output: u64,
}

/// Where a run stands between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// What it belongs to.
    pub identity: Identity,
    /// The stage, counted from 0.
    pub stage: u32,
    /// Its name.
    pub stage_name: String,
    /// Steps of the stage that are done. At 0 it has not begun: velocities that it draws are not drawn.
    pub done: u64,
    /// The state.
    pub state: State,
    /// What the integrator or minimiser has to remember.
    pub memory: Memory,
    /// The energy of each term at these positions, in kJ/mol; empty when they were not known.
    pub energies: Vec<f64>,
    /// What makes the conserved energy continue from stage to stage.
    pub account: Account,
    /// What the table of energies held.
    pub rows: Tally,
    /// What each trajectory held.
    pub frames: Vec<Tally>,
}

/// What makes the conserved energy continue over stages, which begin with an empty reservoir and perhaps with new
/// velocities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// What is added to potential, kinetic and reservoir energy in this stage.
    pub carried: f64,
    /// The conserved energy less the potential at the end of the stage before, if that integrated.
    pub handed_over: Option<f64>,
}

/// Why a restart file cannot be written or used.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// The file could not be read or written.
    #[error("cannot {action} {}: {}", .path.display(), reason(.source))]
    Io {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no restart file.
    #[error("{} is no restart file", .0.display())]
    NotOne(PathBuf),
    /// It is of another version.
    #[error("{} is a restart file of version {found}, but this program reads version {VERSION}", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// It is broken.
    #[error(
        "{} is damaged: {message}; the run can only begin again (--force), perhaps from a frame of its trajectory",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        message: String,
    },
}

impl Restart {
    /// Writes the file, as a whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RestartError> {
        let failed = |source| RestartError::Io { action: "write", path: path.into(), source };
        let body = postcard::to_stdvec(self).map_err(|e| failed(io::Error::other(e.to_string())))?;
        let sum = Fingerprint::default().bytes(&body).value();
        write_whole(path, |out| {
            out.write_all(MAGIC)?;
            writeln!(out, "{VERSION}")?;
            out.write_all(&sum.to_le_bytes())?;
            out.write_all(&body)
        })
        .map_err(failed)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, is something else, of another version or damaged.
    pub fn read(path: &Path) -> Result<Restart, RestartError> {
        let bytes = std::fs::read(path).map_err(|source| RestartError::Io {
            action: "read",
            path: path.into(),
            source,
        })?;
        let damaged = |message: &str| RestartError::Damaged { path: path.into(), message: message.into() };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| RestartError::NotOne(path.into()))?;
        let end = rest.iter().take(12).position(|b| *b == b'\n').ok_or_else(|| damaged("it ends early"))?;
        let (version, rest) = (&rest[..end], &rest[end + 1..]);
        if version != VERSION.to_string().as_bytes() {
            let found = String::from_utf8_lossy(version).into_owned();
            return Err(RestartError::Version { path: path.into(), found });
        }
        let (sum, body) = rest.split_first_chunk::<8>().ok_or_else(|| damaged("it ends early"))?;
        if u64::from_le_bytes(*sum) != Fingerprint::default().bytes(body).value() {
            return Err(damaged("its checksum does not fit what it holds"));
        }
        let restart: Restart = postcard::from_bytes(body).map_err(|e| damaged(&e.to_string()))?;
        let n = restart.state.positions.len();
        if restart.state.velocities.len() != n || restart.identity.atoms != n as u64 {
            return Err(damaged("it has not as many positions, velocities and atoms"));
        }
        Ok(restart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Cell, Positions};

    fn restart() -> Restart {
        let cell =
            Cell::new([[2.0, 0.0, 0.0], [0.3, 2.0, 0.0], [0.0, 0.0, 2.0]], [true, true, false]).unwrap();
        let positions = Positions::from_cartesian(&cell, &[[0.1, 7.3, -0.2], [1.0 / 3.0, 0.0, 1.9]]).unwrap();
        Restart {
            identity: Identity {
                atoms: 2,
                terms: vec!["lj".into()],
                system: 1,
                protocol: u64::MAX,
                output: 3,
            },
            stage: 1,
            stage_name: "produce".into(),
            done: 12_345,
            state: State {
                cell,
                positions,
                velocities: vec![[1e-300, -0.0, 1.0 / 3.0], [f64::MAX, 5e-324, -7.25]],
                step: 20_000,
                time: 0.1 + 0.2,
            },
            memory: Memory { integrator: "langevin".into(), numbers: vec![-0.1] },
            energies: vec![-3.25],
            account: Account { carried: 1.5, handed_over: None },
            rows: Tally { count: 3, last: Some(20_000) },
            frames: vec![Tally::default()],
        }
    }

    #[test]
    fn every_bit_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("restart.bin");
        let there = restart();
        there.write(&path).unwrap();
        let back = Restart::read(&path).unwrap();
        assert_eq!(back, there);
        let bits = |r: &Restart| r.state.velocities.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&there));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn what_is_damaged_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("restart.bin");
        restart().write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let message = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Restart::read(&path).unwrap_err().to_string()
        };
        for cut in 0..bytes.len() {
            message(&bytes[..cut]);
        }
        for at in MAGIC.len() + 2..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 4;
            assert!(message(&wrong).contains("is damaged: its checksum"));
        }
        assert!(message(b"step,time").contains("is no restart file"));
        assert!(message(b"md-restart 1\nabc").contains("of version 1"));
        let gone = Restart::read(&dir.path().join("none")).unwrap_err().to_string();
        assert!(gone.contains("cannot read") && gone.contains("no such file"));
    }

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // Test vectors of the authors (G. Fowler, L. C. Noll, K.-P. Vo).
        let of = |text: &str| Fingerprint::default().bytes(text.as_bytes()).value();
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }
}
