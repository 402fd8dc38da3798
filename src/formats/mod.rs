//! Structure and trajectory files: pure codecs between bytes and frames.
//!
//! | | reads | writes | positions | names | velocities | cell |
//! |---|---|---|---|---|---|---|
//! | [`xyz`] | plain and extended XYZ | extended XYZ | to the bit, or fixed digits | yes | yes | any |
//! | [`gro`] | any number of decimals | any number of decimals | fixed digits | up to 5 bytes, with residues | yes | any |
//! | [`xtc`] | 1995 and 2023 | the same | multiples of 1/precision | no | no | any |
//!
//! [`n2p2`] reads and writes potentials.
//!
//! All others give and take a [`Frame`], in nm and ps or in reduced units. A file that is cut short or broken
//! gives a [`FormatError`] with its line, and never a part of a system.
//!
//! ```
//! use md::formats::{Format, FrameUnits, Which, read_structure_bytes};
//!
//! let file = b"2\ncarbon monoxide\nC 0.0 0.0 0.0\nO 1.128 0.0 0.0\n";
//! let frame = read_structure_bytes(file, Format::Xyz, Which::Last, FrameUnits::Nanometre)?;
//! assert_eq!(frame.atoms[1].name, "O");
//! assert_eq!(frame.positions[1], [0.1128, 0.0, 0.0]);
//!
//! let cut = b"2\ncarbon monoxide\nC 0.0 0.0 0.0\nO 1.128 0.0\n";
//! let error = read_structure_bytes(cut, Format::Xyz, Which::Last, FrameUnits::Nanometre).unwrap_err();
//! assert_eq!(error.to_string(), "line 4: column `pos`: expected 3 values, found 2");
//! # Ok::<(), md::formats::FormatError>(())
//! ```

mod elements;
mod frame;
pub mod gro;
pub mod n2p2;
mod text;
pub mod xtc;
pub mod xyz;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::str::FromStr;

pub use frame::{
    AtomLabel, Column, ColumnData, FormatError, Frame, FrameMark, FrameUnits, InfoValue, Residue, Scan,
};
pub use xyz::Digits;

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// XYZ and extended XYZ: `.xyz`, `.extxyz`.
    Xyz,
    /// GROMACS' structure file: `.gro`.
    Gro,
    /// GROMACS' compressed trajectory: `.xtc`.
    Xtc,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Xyz, Format::Gro, Format::Xtc];

    /// The name, which is also the usual extension.
    pub fn name(self) -> &'static str {
        match self {
            Format::Xyz => "xyz",
            Format::Gro => "gro",
            Format::Xtc => "xtc",
        }
    }

    /// The format that the extension of a path stands for, in upper or lower case.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        let path = path.as_ref();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        extension.parse().map_err(|e: FormatError| e.with_path(path))
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Self, FormatError> {
        match name.to_ascii_lowercase().as_str() {
            "xyz" | "extxyz" => Ok(Format::Xyz),
            "gro" => Ok(Format::Gro),
            "xtc" => Ok(Format::Xtc),
            _ => Err(FormatError::new(format!("`{name}` is no known file format (xyz, gro, xtc)"))),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which frame of a file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// The first.
    #[default]
    First,
    /// The last. All of the file is read, and must be good.
    Last,
    /// The one with that index, from 0.
    Index(usize),
}

/// The frames of a file, one after the other; the first error is the last item.
pub type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, FormatError>> + 'a>;

/// Reads frames.
///
/// `units` are those of a file that does not say: with [`FrameUnits::Reduced`] the numbers are taken as
/// they stand, otherwise XYZ files are in Å, and GRO and XTC in nm.
pub fn frames<'a>(reader: impl BufRead + 'a, format: Format, units: FrameUnits) -> Frames<'a> {
    match format {
        Format::Xyz => Box::new(xyz::XyzReader::with_units(reader, units)),
        Format::Gro => Box::new(gro::GroReader::with_units(reader, units)),
        Format::Xtc => Box::new(xtc::XtcReader::with_units(reader, units)),
    }
}

/// Reads one frame of a file; see [`frames`]. The format is that of the path's extension unless given.
///
/// Errors name the file.
pub fn read_structure(
    path: impl AsRef<Path>,
    format: Option<Format>,
    which: Which,
    units: FrameUnits,
) -> Result<Frame, FormatError> {
    let path = path.as_ref();
    let format = match format {
        Some(format) => format,
        None => Format::from_path(path)?,
    };
    let reader = open(path)?;
    pick(frames(reader, format, units), which).map_err(|e| e.with_path(path))
}

/// Reads one frame from the bytes of a file; see [`frames`].
pub fn read_structure_bytes(
    bytes: &[u8],
    format: Format,
    which: Which,
    units: FrameUnits,
) -> Result<Frame, FormatError> {
    pick(frames(bytes, format, units), which)
}

fn open(path: &Path) -> Result<BufReader<File>, FormatError> {
    let file = File::open(path);
    file.map(BufReader::new).map_err(|e| FormatError::new(format!("cannot be read: {e}")).with_path(path))
}

fn pick(frames: Frames, which: Which) -> Result<Frame, FormatError> {
    let mut last = None;
    let mut count = 0;
    for frame in frames {
        let frame = frame?;
        if which == Which::First || which == Which::Index(count) {
            return Ok(frame);
        }
        last = Some(frame);
        count += 1;
    }
    match (last, which) {
        (None, _) => Err(FormatError::new("there is no frame in the file")),
        (Some(_), Which::Index(n)) => {
            Err(FormatError::new(format!("there is no frame {n} (from 0): the file has {count}")))
        }
        (Some(frame), _) => Ok(frame),
    }
}

/// The complete frames of a trajectory, with the byte where each ends and its step: a run that is resumed
/// after step N cuts the file at [`Scan::end_of_step`] and appends.
pub fn scan(reader: impl BufRead, format: Format) -> Scan {
    match format {
        Format::Xyz => xyz::scan(reader),
        Format::Gro => gro::scan(reader),
        Format::Xtc => xtc::scan(reader),
    }
}

/// [`scan`] for a file; only opening it can fail.
pub fn scan_file(path: impl AsRef<Path>, format: Format) -> Result<Scan, FormatError> {
    let path = path.as_ref();
    let mut scan = scan(open(path)?, format);
    scan.rest = scan.rest.map(|e| e.with_path(path));
    Ok(scan)
}

/// Something that frames can be appended to.
pub trait TrajectoryWriter {
    /// Appends a frame, with one call of the underlying writer. A frame that the format cannot hold is an
    /// [`io::ErrorKind::InvalidInput`], and then nothing is written.
    fn write(&mut self, frame: &Frame) -> io::Result<()>;

    /// Hands everything to the operating system.
    fn flush(&mut self) -> io::Result<()>;
}

/// How exactly trajectories are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision {
    /// XYZ.
    pub digits: Digits,
    /// GRO: digits behind the point of positions in nm.
    pub decimals: usize,
    /// XTC: positions are multiples of 1/`xtc` nm.
    pub xtc: f32,
}

impl Default for Precision {
    /// XYZ to the bit, and GROMACS' own 3 decimals and 1/1000 nm.
    fn default() -> Self {
        Precision { digits: Digits::Shortest, decimals: 3, xtc: 1000.0 }
    }
}

/// A writer of frames in that format.
pub fn writer<'a>(
    out: impl Write + Send + 'a,
    format: Format,
    precision: Precision,
) -> Box<dyn TrajectoryWriter + Send + 'a> {
    match format {
        Format::Xyz => Box::new(xyz::XyzWriter::new(out, precision.digits)),
        Format::Gro => Box::new(gro::GroWriter::new(out, precision.decimals)),
        Format::Xtc => Box::new(xtc::XtcWriter::new(out, precision.xtc)),
    }
}
