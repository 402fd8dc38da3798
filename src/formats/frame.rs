//! What every codec reads and writes: one frame, and the error that says where a file is wrong.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The units in which the numbers of a [`Frame`] are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameUnits {
    /// nm, ps, u, e, kJ/mol: lengths in nm, velocities in nm/ps, forces in kJ/mol/nm.
    #[default]
    Nanometre,
    /// Reduced (Lennard-Jones) units: every number is written and read as it stands.
    Reduced,
}

/// The residue (or molecule) that an atom is listed under.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Residue {
    /// The number as the file has it; GRO wraps it at 100,000.
    pub number: i64,
    /// The name, without blanks around it.
    pub name: String,
}

/// What a file calls an atom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AtomLabel {
    /// Species or atom name.
    pub name: String,
    /// The residue, in the formats that know one.
    pub residue: Option<Residue>,
}

impl AtomLabel {
    /// A label that is only a name.
    pub fn new(name: impl Into<String>) -> Self {
        AtomLabel { name: name.into(), residue: None }
    }
}

/// The values of a per-atom column, atom by atom, `width` values each.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// `R`
    Real(Vec<f64>),
    /// `I`
    Integer(Vec<i64>),
    /// `S`
    Text(Vec<String>),
    /// `L`
    Logical(Vec<bool>),
}

impl ColumnData {
    /// The number of values, which is atoms × width.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::Real(v) => v.len(),
            ColumnData::Integer(v) => v.len(),
            ColumnData::Text(v) => v.len(),
            ColumnData::Logical(v) => v.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A per-atom column that a [`Frame`] has no field for; kept as it was read, in the file's own units.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name in `Properties`.
    pub name: String,
    /// Values per atom, at least 1.
    pub width: usize,
    /// The values: `data.len() == atoms * width`.
    pub data: ColumnData,
}

/// The value of a `key=value` pair in a comment line, in the form in which it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum InfoValue {
    /// A key by itself (in extended XYZ: true).
    Flag,
    /// Text without quotes, such as a number.
    Bare(String),
    /// What stood between quotes, with its escapes resolved.
    Quoted(String),
    /// An array with its brackets, `[…]` or `{…}`, untouched.
    Array(String),
}

impl InfoValue {
    /// A number, with the shortest digits that read back as the same number.
    pub fn number(x: f64) -> Self {
        InfoValue::Bare(format!("{x:?}"))
    }

    /// The text, without quotes or brackets around it.
    pub fn text(&self) -> &str {
        match self {
            InfoValue::Flag => "T",
            InfoValue::Bare(s) | InfoValue::Quoted(s) => s,
            InfoValue::Array(s) => s.get(1..s.len().saturating_sub(1)).unwrap_or(""),
        }
    }

    /// The number, where the value is one.
    pub fn as_f64(&self) -> Option<f64> {
        self.text().trim().parse().ok()
    }
}

/// One frame of a structure or trajectory file.
///
/// Vectors with a value per atom all have the length of `positions`, except that `atoms` is empty where
/// the format carries no names (XTC).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Frame {
    /// Title or comment.
    pub title: String,
    /// The units of all numbers below.
    pub units: FrameUnits,
    /// Number of the time step.
    pub step: Option<u64>,
    /// Time, in ps.
    pub time: Option<f64>,
    /// Cell vectors a, b, c as rows, in nm. `None` without a cell (all zeros in a file mean that too).
    pub cell: Option<[[f64; 3]; 3]>,
    /// Along which cell vectors the system is periodic. `None` where the file does not say; by
    /// convention a system with a cell is then periodic.
    pub periodic: Option<[bool; 3]>,
    /// Names, or nothing.
    pub atoms: Vec<AtomLabel>,
    /// Positions, in nm.
    pub positions: Vec<[f64; 3]>,
    /// Velocities, in nm/ps.
    pub velocities: Option<Vec<[f64; 3]>>,
    /// Forces, in kJ/mol/nm.
    pub forces: Option<Vec<[f64; 3]>>,
    /// Masses, in u.
    pub masses: Option<Vec<f64>>,
    /// Charges, in e.
    pub charges: Option<Vec<f64>>,
    /// Potential energy, in kJ/mol.
    pub energy: Option<f64>,
    /// Per-atom columns that have no field above.
    pub columns: Vec<Column>,
    /// `key=value` pairs that have no field above, in their order.
    pub info: Vec<(String, InfoValue)>,
    /// What a reader should tell its user: things in the file that were understood in a way that may
    /// surprise (velocities without a unit, missing velocities taken as zero …). Never written.
    pub remarks: Vec<String>,
}

impl Frame {
    /// The number of atoms.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there is no atom.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The further per-atom column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The further `key=value` of that name.
    pub fn info(&self, key: &str) -> Option<&InfoValue> {
        self.info.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Checks that all per-atom vectors have the same length, as every writer asks.
    pub fn check_lengths(&self) -> io::Result<()> {
        let n = self.positions.len();
        let check = |what: &str, found: Option<usize>, expected: usize| match found {
            Some(found) if found != expected => {
                Err(invalid(format!("the frame has {n} positions, but {found} {what}")))
            }
            _ => Ok(()),
        };
        check("atom names", Some(self.atoms.len()).filter(|&l| l != 0), n)?;
        check("velocities", self.velocities.as_ref().map(Vec::len), n)?;
        check("forces", self.forces.as_ref().map(Vec::len), n)?;
        check("masses", self.masses.as_ref().map(Vec::len), n)?;
        check("charges", self.charges.as_ref().map(Vec::len), n)?;
        for c in &self.columns {
            let expected = n.saturating_mul(c.width);
            check(&format!("values in column `{}`", c.name), Some(c.data.len()), expected)?;
        }
        Ok(())
    }
}

/// An error of a writer that was given something its format cannot hold.
pub(super) fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.into())
}

/// Where in a file something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// The file as a whole.
    #[default]
    Whole,
    /// A line of a text file, and a column in it; both count from 1.
    Line(usize, Option<usize>),
    /// A frame of a binary file, counted from 0, and the byte where it begins.
    Frame(usize, u64),
}

/// Why a file could not be read, and where.
///
/// It prints as `water.gro:17:21: expected …`, or without the path as `line 17, column 21: expected …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FormatError {
    message: String,
    place: Place,
    path: Option<PathBuf>,
}

impl FormatError {
    /// An error about the file as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        FormatError { message: message.into(), place: Place::Whole, path: None }
    }

    /// An error in a line (from 1) and perhaps a column (from 1, in characters).
    pub(super) fn at(line: usize, column: Option<usize>, message: impl Into<String>) -> Self {
        FormatError { message: message.into(), place: Place::Line(line, column), path: None }
    }

    /// An error in a frame (from 0) of a binary file that begins at byte `offset`.
    pub(super) fn in_frame(frame: usize, offset: u64, message: impl Into<String>) -> Self {
        FormatError { message: message.into(), place: Place::Frame(frame, offset), path: None }
    }

    /// The same error, which now names the file.
    pub fn with_path(mut self, path: impl AsRef<Path>) -> Self {
        self.path = Some(path.as_ref().to_path_buf());
        self
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line, from 1, in text formats.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::Line(line, _) => Some(line),
            _ => None,
        }
    }

    /// The column, from 1, where one is known.
    pub fn column(&self) -> Option<usize> {
        match self.place {
            Place::Line(_, column) => column,
            _ => None,
        }
    }

    /// The frame, from 0, and the byte where it begins, in binary formats.
    pub fn frame(&self) -> Option<(usize, u64)> {
        match self.place {
            Place::Frame(frame, offset) => Some((frame, offset)),
            _ => None,
        }
    }

    /// The file, where the error was raised by something that knows it.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.place) {
            (Some(path), Place::Line(line, Some(column))) => {
                write!(f, "{}:{line}:{column}: ", path.display())?
            }
            (Some(path), Place::Line(line, None)) => write!(f, "{}:{line}: ", path.display())?,
            (Some(path), Place::Whole) => write!(f, "{}: ", path.display())?,
            (Some(path), Place::Frame(frame, offset)) => {
                write!(f, "{}: frame {frame} (byte {offset}): ", path.display())?
            }
            (None, Place::Line(line, Some(column))) => write!(f, "line {line}, column {column}: ")?,
            (None, Place::Line(line, None)) => write!(f, "line {line}: ")?,
            (None, Place::Frame(frame, offset)) => write!(f, "frame {frame} (byte {offset}): ")?,
            (None, Place::Whole) => {}
        }
        f.write_str(&self.message)
    }
}

/// The end of one complete frame in a trajectory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMark {
    /// The byte after the frame's last one.
    pub end: u64,
    /// The step that the frame records.
    pub step: Option<u64>,
}

/// The complete frames of a trajectory file: what a resumed run needs to cut it after a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// The complete frames, in order.
    pub frames: Vec<FrameMark>,
    /// What stands after the last of them, if anything does: usually a frame cut short by a crash.
    pub rest: Option<FormatError>,
}

impl Scan {
    /// The frames that `next` finds, until there is none or one that is broken.
    pub(super) fn of(mut next: impl FnMut() -> Result<Option<FrameMark>, FormatError>) -> Self {
        let mut scan = Scan::default();
        loop {
            match next() {
                Ok(Some(mark)) => scan.frames.push(mark),
                Ok(None) => return scan,
                Err(e) => return Scan { rest: Some(e), ..scan },
            }
        }
    }

    /// The byte after the last complete frame.
    pub fn end(&self) -> u64 {
        self.frames.last().map_or(0, |f| f.end)
    }

    /// The length to which the file must be cut so that it holds the frames up to and with step
    /// `step`, and none after it: it ends before the first frame that records a later step. `None`
    /// where a frame before that one does not say its step.
    pub fn end_of_step(&self, step: u64) -> Option<u64> {
        let mut end = 0;
        for frame in &self.frames {
            if frame.step? > step {
                break;
            }
            end = frame.end;
        }
        Some(end)
    }
}
