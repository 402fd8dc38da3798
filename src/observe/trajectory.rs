//! Trajectory files being written, and the structure that a run leaves behind.

use super::{Kept, Tally, reason, synchronize, write_whole};
use crate::formats::{
    AtomLabel, Digits, Format, FormatError, Frame, FrameUnits, Precision, TrajectoryWriter, scan_file, writer,
};
use crate::system::State;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a trajectory.
#[derive(Debug, thiserror::Error)]
pub enum TrajectoryError {
    /// The file could not be made, written or cut.
    #[error("cannot {action} {}: {}", .path.display(), reason(.source))]
    Io {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file that is to be continued cannot be read.
    #[error("{0}")]
    Format(#[from] FormatError),
    /// A frame before the place where the file is to be continued does not say its step.
    #[error("cannot continue {}: a frame in it does not say its step", .0.display())]
    NoStep(PathBuf),
}

/// What a trajectory shows, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The title, where the format has one for each frame.
    pub title: String,
    /// The units of the numbers.
    pub units: FrameUnits,
    /// The atoms, by their numbers.
    pub atoms: Vec<u32>,
    /// What they are called, in the same order.
    pub labels: Vec<AtomLabel>,
    /// Whether atoms are followed through periodic images instead of put back into the cell.
    pub unwrapped: bool,
    /// Whether velocities are written.
    pub velocities: bool,
}

impl View {
    /// Fills a frame, whose memory is used again.
    pub fn fill(&self, state: &State, frame: &mut Frame) {
        let State { cell, positions, velocities, step, time } = state;
        if frame.atoms.len() != self.labels.len() {
            frame.atoms.clone_from(&self.labels);
            frame.title.clone_from(&self.title);
        }
        frame.units = self.units;
        frame.step = Some(*step);
        frame.time = Some(*time);
        frame.cell = (cell.given() != [false; 3]).then(|| cell.vectors());
        frame.periodic = Some(cell.periodic());
        let place = |&i: &u32| {
            let r = positions.cartesian(cell, i as usize);
            if self.unwrapped { r } else { cell.wrap_given(r).0 }
        };
        frame.positions.clear();
        frame.positions.extend(self.atoms.iter().map(place));
        if self.velocities {
            let out = frame.velocities.get_or_insert_default();
            out.clear();
            out.extend(self.atoms.iter().map(|&i| velocities[i as usize]));
        }
    }
}

/// A trajectory file that frames are appended to. Each frame goes to the file at once and as a whole.
pub struct TrajectoryFile {
    path: PathBuf,
    file: File,
    writer: Box<dyn TrajectoryWriter + Send>,
    view: View,
    frame: Frame,
    tally: Tally,
}

impl TrajectoryFile {
    /// Starts a new file; one of that name is replaced. `decimals` are the digits behind the point in text
    /// formats, and the tenth parts of a nm that XTC resolves; `None` for each format's usual precision.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(
        path: &Path,
        format: Format,
        decimals: Option<usize>,
        view: View,
    ) -> Result<Self, TrajectoryError> {
        let file = File::create(path).map_err(|e| failed("create", path, e))?;
        Self::over(path, file, format, decimals, view, Tally::default())
    }

    /// What a file has up to the given step. The file stays as it is.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn kept(path: &Path, format: Format, step: u64) -> Result<Kept, TrajectoryError> {
        let scan = scan_file(path, format)?;
        let end = scan.end_of_step(step).ok_or_else(|| TrajectoryError::NoStep(path.into()))?;
        let steps = scan.frames.iter().take_while(|f| f.end <= end).filter_map(|f| f.step).collect();
        Ok(Kept { steps, end, terms: Vec::new() })
    }

    /// Goes on with a file, of which only that is kept.
    ///
    /// # Errors
    /// If the file cannot be cut.
    pub fn go_on(
        path: &Path,
        format: Format,
        decimals: Option<usize>,
        view: View,
        kept: &Kept,
    ) -> Result<Self, TrajectoryError> {
        let file = OpenOptions::new().append(true).open(path).map_err(|e| failed("continue", path, e))?;
        file.set_len(kept.end).map_err(|e| failed("shorten", path, e))?;
        Self::over(path, file, format, decimals, view, kept.tally())
    }

    fn over(
        path: &Path,
        file: File,
        format: Format,
        decimals: Option<usize>,
        mut view: View,
        tally: Tally,
    ) -> Result<Self, TrajectoryError> {
        let mut precision = Precision::default();
        if let Some(decimals) = decimals {
            precision.digits = Digits::Fixed(decimals);
            precision.decimals = decimals;
            precision.xtc = 10f32.powi(i32::try_from(decimals).unwrap_or(i32::MAX));
        }
        if format == Format::Xtc {
            // the format carries no names
            view.labels.clear();
        }
        if format != Format::Gro {
            view.title.clear();
        }
        let out = file.try_clone().map_err(|e| failed("write", path, e))?;
        let frame = Frame { title: view.title.clone(), ..Frame::default() };
        Ok(Self { path: path.into(), file, writer: writer(out, format, precision), view, frame, tally })
    }

    /// Appends a frame, unless the file has one of that step or a later one already.
    ///
    /// # Errors
    /// If it cannot be written; the file then still holds all frames before.
    pub fn append(&mut self, state: &State) -> Result<(), TrajectoryError> {
        if self.tally.last.is_some_and(|last| last >= state.step) {
            return Ok(());
        }
        self.view.fill(state, &mut self.frame);
        let before = self.file.metadata().map(|m| m.len());
        if let Err(error) = self.writer.write(&self.frame).and_then(|()| self.writer.flush()) {
            // what was written of the frame is of no use
            if let Ok(length) = before {
                let _ = self.file.set_len(length);
            }
            return Err(failed("write", &self.path, error));
        }
        self.tally.add(state.step);
        Ok(())
    }

    /// Brings all frames to the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn synchronize(&self) -> Result<(), TrajectoryError> {
        synchronize(&self.file).map_err(|e| failed("write", &self.path, e))
    }

    /// How many frames there are.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> TrajectoryError {
    TrajectoryError::Io { action, path: path.into(), source }
}

/// Writes a structure as extended XYZ with all its digits, as a whole or not at all.
///
/// # Errors
/// If the file cannot be written.
pub fn write_structure(path: &Path, view: &View, state: &State) -> Result<(), TrajectoryError> {
    let mut frame = Frame::default();
    frame.title.clone_from(&view.title);
    view.fill(state, &mut frame);
    write_whole(path, |out| {
        let mut bytes = Vec::new();
        writer(&mut bytes, Format::Xyz, Precision::default()).write(&frame)?;
        out.write_all(&bytes)
    })
    .map_err(|e| failed("write", path, e))
}
