//! GROMACS' GRO: fixed columns, lengths in nm, velocities in nm/ps.
//!
//! ```text
//! Water, t=   1.00000 step= 500
//!     3
//!     1SOL     OW    1   0.126   1.624   1.679  0.1227 -0.0580  0.0434
//!     1SOL    HW1    2   0.190   1.661   1.747  0.8085  0.3191 -0.7791
//!     1SOL    HW2    3   0.177   1.568   1.613 -0.9045 -2.6469  1.3180
//!    1.82060   1.82060   1.82060
//! ```
//!
//! Residue number, residue name, atom name and atom number take five bytes each; then follow three
//! positions and perhaps three velocities, all equally wide. The distance between two decimal points of
//! the first atom is that width, and all atoms must have their points in the same places. The atom number
//! is not looked at (it wraps at 100,000, as residue numbers do). The last line is the cell:
//! `ax by cz`, or `ax by cz ay az bx bz cx cy`; all zeros mean no cell.
//!
//! Where only some atoms have velocities the others rest, as in GROMACS, and a remark says so.
//! Time and step are those behind `t=` and `step=` in the title.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use super::TrajectoryWriter;
use super::frame::{AtomLabel, FormatError, Frame, FrameMark, FrameUnits, Residue, Scan, invalid};
use super::text::{Lines, write_fixed};

/// Writes frames, one after the other, as GRO.
#[derive(Debug)]
pub struct GroWriter<W> {
    out: W,
    decimals: usize,
    text: String,
}

impl<W: Write> GroWriter<W> {
    /// A writer that appends to `out`, with `decimals` (at least 1; GROMACS' own files have 3) digits
    /// behind the point of positions and one more for velocities.
    pub fn new(out: W, decimals: usize) -> Self {
        GroWriter { out, decimals: decimals.max(1), text: String::new() }
    }

    /// The writer that was given to [`GroWriter::new`].
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> TrajectoryWriter for GroWriter<W> {
    fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.text.clear();
        frame_text(&mut self.text, frame, self.decimals)?;
        self.out.write_all(self.text.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn frame_text(text: &mut String, frame: &Frame, decimals: usize) -> io::Result<()> {
    frame.check_lengths()?;
    if frame.title.contains(['\n', '\r']) {
        return Err(invalid("a GRO title is one line"));
    }
    text.push_str(&frame.title);
    if let Some(time) = frame.time {
        let five = format!("{time:.5}");
        let exact = five.parse() == Ok(time) || !time.is_finite();
        let time = if exact { five } else { format!("{time}") };
        let comma = if frame.title.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}t= {time}");
    }
    if let Some(step) = frame.step {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}step= {step}");
    }
    let _ = writeln!(text, "\n{:5}", frame.len());
    let unnamed = AtomLabel::new("X");
    for i in 0..frame.len() {
        let atom = frame.atoms.get(i).unwrap_or(&unnamed);
        let (number, residue) = match &atom.residue {
            Some(r) => (r.number, r.name.as_str()),
            None => (1, "MOL"),
        };
        if atom.name.trim().is_empty() {
            return Err(invalid(format!("atom {} has no name, which GRO requires", i + 1)));
        }
        if number < 0 {
            return Err(invalid(format!("GRO cannot hold the residue number {number}")));
        }
        let _ = write!(text, "{:5}", number % 100_000);
        name(text, residue, false)?;
        name(text, &atom.name, true)?;
        let _ = write!(text, "{:5}", (i + 1) % 100_000);
        for x in frame.positions[i] {
            field(text, x, decimals, decimals + 5, "position")?;
        }
        if let Some(v) = &frame.velocities {
            for x in v[i] {
                field(text, x, decimals + 1, decimals + 5, "velocity")?;
            }
        }
        text.push('\n');
    }
    let c = frame.cell.unwrap_or_default();
    let all = [c[0][0], c[1][1], c[2][2], c[0][1], c[0][2], c[1][0], c[1][2], c[2][0], c[2][1]];
    let count = if all[3..].iter().any(|&x| x != 0.0) { 9 } else { 3 };
    for x in &all[..count] {
        if !x.is_finite() {
            return Err(invalid(format!("the cell holds a number that is {x}")));
        }
        let digits = decimals.max(5);
        let _ = write!(text, " {x:>w$.digits$}", w = digits + 4);
    }
    text.push('\n');
    Ok(())
}

fn name(text: &mut String, name: &str, right: bool) -> io::Result<()> {
    let name = name.trim();
    if name.len() > 5 || name.contains(['\n', '\r']) {
        return Err(invalid(format!("the name `{name}` does not fit the five columns of GRO")));
    }
    let blanks = 5 - name.len();
    let (before, after) = if right { (blanks, 0) } else { (0, blanks) };
    let _ = write!(text, "{:before$}{name}{:after$}", "", "");
    Ok(())
}

fn field(text: &mut String, x: f64, decimals: usize, width: usize, what: &str) -> io::Result<()> {
    let start = text.len();
    write_fixed(text, x, decimals, width);
    if !x.is_finite() || text.len() - start > width {
        return Err(invalid(format!("the {what} {x} does not fit the columns of GRO")));
    }
    Ok(())
}

/// Reads frames one after the other.
///
/// After an error it is exhausted: nothing that comes behind broken data is trusted.
pub struct GroReader<R> {
    lines: Lines<R>,
    units: FrameUnits,
    done: bool,
}

impl<R: BufRead> GroReader<R> {
    /// A reader of nm and nm/ps.
    pub fn new(reader: R) -> Self {
        Self::with_units(reader, FrameUnits::Nanometre)
    }

    /// A reader whose frames are marked as being in `units`; the numbers are the same.
    pub fn with_units(reader: R, units: FrameUnits) -> Self {
        GroReader { lines: Lines::new(reader), units, done: false }
    }

    fn frame(&mut self) -> Result<Option<Frame>, FormatError> {
        let lines = &mut self.lines;
        let Some((title, count)) = head(lines)? else {
            return Ok(None);
        };
        let mut frame = Frame { units: self.units, ..Frame::default() };
        if title.contains(char::REPLACEMENT_CHARACTER) {
            frame.remarks.push("the title is not all UTF-8".into());
        }
        (frame.title, frame.time, frame.step) = split_title(&title);
        let mut points = None;
        let mut velocities = Vec::new();
        let mut resting = None;
        for i in 0..count {
            if !lines.advance()? {
                return Err(lines.error_at_end(format!(
                    "the file ends after {i} of the {count} atoms that line 2 of the frame announces"
                )));
            }
            let atom = atom(lines.bytes(), &mut points).map_err(|(byte, message)| {
                let column = byte.map(|b| 1 + b);
                let message = format!("atom {} of {count}: {message}", i + 1);
                FormatError::at(lines.number(), column, message)
            })?;
            frame.atoms.push(atom.label);
            frame.positions.push(atom.position);
            if atom.velocity.is_none() {
                resting = resting.or(Some(lines.number()));
            }
            if atom.velocity.is_some() && velocities.is_empty() {
                velocities.resize(i, [0.0; 3]);
            }
            if atom.velocity.is_some() || !velocities.is_empty() {
                velocities.push(atom.velocity.unwrap_or_default());
            }
        }
        if !velocities.is_empty() {
            frame.velocities = Some(velocities);
            if let Some(line) = resting {
                frame.remarks.push(format!(
                    "some atoms have no velocity (the first in line {line}); theirs is taken to be zero"
                ));
            }
        }
        if !lines.advance()? {
            return Err(lines.error_at_end("the file ends before the line with the cell"));
        }
        frame.cell = cell(&lines.text()).map_err(|message| lines.error(message))?;
        Ok(Some(frame))
    }
}

impl<R: BufRead> Iterator for GroReader<R> {
    type Item = Result<Frame, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.frame().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Reads title and number of atoms. A blank line in front is an empty title if a number follows it, and
/// otherwise nothing.
fn head<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<(String, usize)>, FormatError> {
    let mut blank = false;
    let title = loop {
        if !lines.advance()? {
            return Ok(None);
        }
        if !lines.is_blank() {
            break lines.text().into_owned();
        }
        blank = true;
    };
    if blank && let Ok(count) = title.trim().parse() {
        return Ok(Some((String::new(), count)));
    }
    if !lines.advance()? {
        return Err(lines.error_at_end("the file ends before the number of atoms"));
    }
    let text = lines.text();
    match text.trim().parse() {
        Ok(count) => Ok(Some((title, count))),
        Err(_) => {
            let found: String = text.trim().chars().take(40).collect();
            Err(lines.error(format!("expected the number of atoms, found `{found}`")))
        }
    }
}

/// Title, time and step of a title line that may end in `t= 1.0 step= 5`.
fn split_title(line: &str) -> (String, Option<f64>, Option<u64>) {
    let trim = |s: &str| s.trim().trim_end_matches(',').trim_end().to_string();
    let begins = |at: usize| line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let last = |key: &str| line.rmatch_indices(key).map(|(at, _)| at).find(|&at| begins(at));
    let value = |at: usize, key: &str| line[at + key.len()..].split_whitespace().next();
    let step_at = last("step=");
    let step = step_at.and_then(|at| value(at, "step=")?.parse().ok());
    let time_at = last("t=");
    let time = time_at.and_then(|at| value(at, "t=")?.parse().ok()).filter(|t: &f64| t.is_finite());
    let found = [time_at.filter(|_| time.is_some()), step_at.filter(|_| step.is_some())];
    let Some(cut) = found.into_iter().flatten().min() else {
        return (line.trim().to_string(), None, None);
    };
    // Only a tail of nothing but these may be taken off.
    let words = line[cut..].replace("step=", " ").replace("t=", " ");
    let known = usize::from(time.is_some()) + usize::from(step.is_some());
    let title =
        if words.split_whitespace().count() == known { trim(&line[..cut]) } else { line.trim().into() };
    (title, time, step)
}

struct Atom {
    label: AtomLabel,
    position: [f64; 3],
    velocity: Option<[f64; 3]>,
}

/// Where the decimal points stand.
#[derive(Clone, Copy)]
struct Points {
    /// Columns of a number, which is how far apart they are.
    width: usize,
    /// Columns in front of the point of a position.
    position: usize,
    /// Columns in front of the point of a velocity, once one was seen.
    velocity: Option<usize>,
}

const LABELS: usize = 20;

fn atom(line: &[u8], points: &mut Option<Points>) -> Result<Atom, (Option<usize>, String)> {
    let text = |from: usize, to: usize| {
        let bytes = &line[from.min(line.len())..to.min(line.len())];
        String::from_utf8_lossy(bytes).trim().to_string()
    };
    if line.len() <= LABELS {
        let found = line.len();
        return Err((None, format!("expected names in 20 columns and 3 coordinates, found {found} columns")));
    }
    let number = text(0, 5);
    let number = number
        .parse()
        .map_err(|_| (Some(0), format!("expected a residue number in columns 1 to 5, found `{number}`")))?;
    let residue = Residue { number, name: text(5, 10) };
    let name = text(10, 15);
    if name.is_empty() {
        return Err((Some(10), "the atom name in columns 11 to 15 is blank".into()));
    }
    let points = match points {
        Some(p) => p,
        None => points.insert(detect(line)?),
    };
    let width = points.width;
    // The k-th number, with so many columns `before` its point.
    let read = |k: usize, before: usize, what: &str| {
        let from = LABELS + k * width;
        let bytes = line.get(from..(from + width).min(line.len())).unwrap_or(&[]);
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            return Err((None, format!("expected 3 {what}, found {}", k % 3)));
        }
        let point = bytes.iter().position(|&b| b == b'.');
        let number = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
        match number {
            None => Err((Some(from), format!("expected a number of {width} columns, found `{text}`"))),
            Some(_) if point != Some(before) => Err((
                Some(from),
                format!("`{text}` has its decimal point in another place than the first atom's"),
            )),
            Some(x) => Ok(x),
        }
    };
    let three = |k: usize, before: usize, what: &str| {
        Ok([read(k, before, what)?, read(k + 1, before, what)?, read(k + 2, before, what)?])
    };
    let position = three(0, points.position, "coordinates")?;
    let rest = line.get(LABELS + 3 * width..).unwrap_or(&[]);
    let velocity = if rest.iter().all(u8::is_ascii_whitespace) {
        None
    } else {
        // Usually they have one decimal more than positions, but not in the files of every program.
        let place = || rest.iter().position(|&b| b == b'.').unwrap_or(0);
        let before = *points.velocity.get_or_insert_with(place);
        Some(three(3, before, "velocities")?)
    };
    if line.len() > LABELS + 6 * width && !line[LABELS + 6 * width..].iter().all(u8::is_ascii_whitespace) {
        return Err((Some(LABELS + 6 * width), "unexpected text behind the velocities".into()));
    }
    Ok(Atom { label: AtomLabel { name, residue: Some(residue) }, position, velocity })
}

/// The columns of the numbers, from the first two decimal points behind the names.
fn detect(line: &[u8]) -> Result<Points, (Option<usize>, String)> {
    let mut points = (LABELS..line.len()).filter(|&i| line[i] == b'.');
    let (Some(first), Some(second)) = (points.next(), points.next()) else {
        return Err((None, "expected 3 coordinates with decimal points behind column 20".into()));
    };
    let (width, position) = (second - first, first - LABELS);
    if position >= width {
        return Err((Some(first), format!("decimal points {width} columns apart do not fit this place")));
    }
    Ok(Points { width, position, velocity: None })
}

/// The cell line: numbers with blanks between them, or without if they all have equally many decimals.
fn cell(line: &str) -> Result<Option<[[f64; 3]; 3]>, String> {
    let fail = || {
        let found: String = line.trim().chars().take(60).collect();
        format!("expected the cell, 3 or 9 numbers, found `{found}`")
    };
    let parse = |s: &str| s.parse::<f64>().ok().filter(|x| x.is_finite());
    let mut numbers: Vec<f64> = Vec::new();
    for token in line.split_whitespace() {
        if let Some(x) = parse(token) {
            numbers.push(x);
            continue;
        }
        let decimals = token.len() - token.rfind('.').ok_or_else(fail)? - 1;
        let mut rest = token;
        while !rest.is_empty() {
            let end = rest.find('.').ok_or_else(fail)? + 1 + decimals;
            let number = rest.get(..end).and_then(parse).ok_or_else(fail)?;
            numbers.push(number);
            rest = &rest[end..];
        }
    }
    let n = match numbers.len() {
        3 => numbers.iter().copied().chain([0.0; 6]).collect(),
        9 => numbers,
        _ => return Err(fail()),
    };
    let cell = [[n[0], n[3], n[4]], [n[5], n[1], n[6]], [n[7], n[8], n[2]]];
    Ok(Some(cell).filter(|_| n.iter().any(|&x| x != 0.0)))
}

/// The complete frames, for cutting a trajectory: the numbers are not looked at, but every line must be
/// there with its newline.
pub fn scan(reader: impl BufRead) -> Scan {
    let mut lines = Lines::new(reader);
    Scan::of(|| mark(&mut lines))
}

fn mark<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<FrameMark>, FormatError> {
    let Some((title, count)) = head(lines)? else {
        return Ok(None);
    };
    for i in 0..=count {
        if !lines.advance()? || !lines.ended() {
            return Err(lines.error_at_end("the file ends within a frame"));
        }
        if i == count {
            cell(&lines.text()).map_err(|message| lines.error(message))?;
        } else if lines.bytes().len() <= LABELS {
            return Err(lines.error("expected an atom"));
        }
    }
    Ok(Some(FrameMark { end: lines.offset(), step: split_title(&title).2 }))
}
