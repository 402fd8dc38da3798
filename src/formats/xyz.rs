//! XYZ and extended XYZ.
//!
//! ```text
//! 2
//! Lattice="20.0 0.0 0.0 0.0 20.0 0.0 0.0 0.0 20.0" Properties=species:S:1:pos:R:3:vel:R:3 velocity_unit="A/ps" pbc="T T T" step=100 time=0.2
//! O  1.0 2.0 3.0   0.1 0.2 0.3
//! H  1.9 2.0 3.0  -0.1 0.2 0.3
//! ```
//!
//! **Which comment lines are extended.** Those with a `Lattice=` or `Properties=` key, and those in which
//! every word is a `key=value`; anything else is a title. Values may stand in `"…"` or `'…'` (with `\"`,
//! `\\` and `\n` as escapes) or be arrays in `[…]` or `{…}`, nested ones too.
//!
//! **Units.** Lengths in the file are Å and those of a [`Frame`] nm. The factor 10 is not exact in binary,
//! so the decimal point of the written number is shifted instead: with [`Digits::Shortest`], what is
//! written and read back is the same `f64` to the bit. Files with `units="lj"` (or frames with
//! [`FrameUnits::Reduced`]) hold plain numbers without any conversion.
//!
//! | in the file | becomes |
//! |---|---|
//! | `species:S:1`, or else `Z:I:1` or `numbers:I:1` | `atoms`; a number in a `species` column stays as written |
//! | `pos:R:3` | `positions` |
//! | `vel`, `velo`, `velocity`, `velocities` (`:R:3`) | `velocities`, if `velocity_unit` is `A/ps`, `A/fs`, `nm/ps` or `ase`, or the units are reduced; otherwise the column is kept and a remark says so |
//! | `momenta:R:3` | `velocities` = p/m; ASE's momenta are in √(u·eV), so p/m is in √(eV/u) = 9.8227 nm/ps. The mass is that of a mass column, or the standard atomic weight of the species |
//! | `forces:R:3`, `force:R:3` | `forces`, from eV/Å |
//! | `mass:R:1`, `masses:R:1`; `charge:R:1`, `charges:R:1`, `initial_charges:R:1` | `masses`, `charges` |
//! | `residuenumbers:I:1` with `residuenames:S:1` | `residue` |
//! | `Lattice`, `pbc`, `step`, `time`, `energy`, `title` | the field; `time` is in ps, `energy` in eV |
//! | everything else | `columns` and `info`, untouched |
//!
//! We write velocities as `vel:R:3` with `velocity_unit="A/ps"`; forces and energy in eV/Å and eV, as
//! other programs expect them, so these come back to the last digit or two, not to the bit.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use super::TrajectoryWriter;
use super::elements;
use super::frame::{
    AtomLabel, Column, ColumnData, FormatError, Frame, FrameMark, FrameUnits, InfoValue, Residue, Scan,
    invalid,
};
use super::text::{Lines, parse_shifted, write_fixed, write_shifted};

/// 1 eV in kJ/mol (CODATA 2018; e and N_A are exact).
const EV: f64 = 1.602_176_634e-19 * 6.022_140_76e23 / 1000.0;
/// 1 u in kg (CODATA 2018).
const ATOMIC_MASS: f64 = 1.660_539_066_60e-27;

/// √(eV/u) in nm/ps.
fn ase_velocity() -> f64 {
    (1.602_176_634e-19 / ATOMIC_MASS).sqrt() * 1e-3
}

/// How many digits an [`XyzWriter`] spends on positions, velocities and the other columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Digits {
    /// As few as read back to the same bits.
    #[default]
    Shortest,
    /// That many behind the point, in the units of the file.
    Fixed(usize),
}

/// Writes frames, one after the other, as extended XYZ.
///
/// The comment line always has all its digits; `Digits` is about the atoms' lines.
#[derive(Debug)]
pub struct XyzWriter<W> {
    out: W,
    digits: Digits,
    text: String,
}

impl<W: Write> XyzWriter<W> {
    /// A writer that appends to `out`.
    pub fn new(out: W, digits: Digits) -> Self {
        XyzWriter { out, digits, text: String::new() }
    }

    /// The writer that was given to [`XyzWriter::new`].
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> TrajectoryWriter for XyzWriter<W> {
    fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.text.clear();
        frame_text(&mut self.text, frame, self.digits)?;
        self.out.write_all(self.text.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// What is written for each atom, column by column.
enum Out<'a> {
    Species(&'a [AtomLabel]),
    Vectors(&'a [[f64; 3]], i32),
    Scaled(&'a [[f64; 3]], f64),
    Reals(&'a [f64], usize),
    Integers(&'a [i64], usize),
    Logicals(&'a [bool], usize),
    Texts(&'a [String], usize),
    ResidueNumbers(&'a [AtomLabel]),
    ResidueNames(&'a [AtomLabel]),
}

fn frame_text(text: &mut String, frame: &Frame, digits: Digits) -> io::Result<()> {
    frame.check_lengths()?;
    let reduced = frame.units == FrameUnits::Reduced;
    let (shift, ev) = if reduced { (0, 1.0) } else { (1, EV) };
    let force = if reduced { 1.0 } else { 0.1 / EV };

    let mut columns: Vec<(String, Out)> = Vec::new();
    if !frame.atoms.is_empty() {
        columns.push(("species:S:1".into(), Out::Species(&frame.atoms)));
    }
    columns.push(("pos:R:3".into(), Out::Vectors(&frame.positions, shift)));
    if let Some(v) = &frame.velocities {
        columns.push(("vel:R:3".into(), Out::Vectors(v, shift)));
    }
    if let Some(f) = &frame.forces {
        columns.push(("forces:R:3".into(), Out::Scaled(f, force)));
    }
    if let Some(m) = &frame.masses {
        columns.push(("masses:R:1".into(), Out::Reals(m, 1)));
    }
    if let Some(q) = &frame.charges {
        columns.push(("charges:R:1".into(), Out::Reals(q, 1)));
    }
    if !frame.atoms.is_empty() && frame.atoms.iter().all(|a| a.residue.is_some()) {
        columns.push(("residuenumbers:I:1".into(), Out::ResidueNumbers(&frame.atoms)));
        if frame.atoms.iter().all(|a| a.residue.as_ref().is_some_and(|r| is_word(&r.name))) {
            columns.push(("residuenames:S:1".into(), Out::ResidueNames(&frame.atoms)));
        }
    }
    for c in &frame.columns {
        let bad = c.name.is_empty()
            || c.width == 0
            || c.name.contains([':', '"', '\'', '\\', '=']) // would end the name or the value
            || !is_word(&c.name);
        if bad {
            return Err(invalid(format!("extended XYZ cannot have a column `{}:{}`", c.name, c.width)));
        }
        let (kind, out) = match &c.data {
            ColumnData::Real(v) => ('R', Out::Reals(v, c.width)),
            ColumnData::Integer(v) => ('I', Out::Integers(v, c.width)),
            ColumnData::Text(v) => ('S', Out::Texts(v, c.width)),
            ColumnData::Logical(v) => ('L', Out::Logicals(v, c.width)),
        };
        columns.push((format!("{}:{kind}:{}", c.name, c.width), out));
    }

    let _ = writeln!(text, "{}", frame.len());
    comment_text(text, frame, &columns, shift, ev)?;
    for i in 0..frame.len() {
        for (k, (_, column)) in columns.iter().enumerate() {
            if k > 0 {
                text.push(' ');
            }
            column.write(text, i, digits)?;
        }
        text.push('\n');
    }
    Ok(())
}

fn comment_text(
    text: &mut String,
    frame: &Frame,
    columns: &[(String, Out)],
    shift: i32,
    ev: f64,
) -> io::Result<()> {
    if let Some(cell) = frame.cell {
        text.push_str("Lattice=\"");
        for (k, &x) in cell.as_flattened().iter().enumerate() {
            if k > 0 {
                text.push(' ');
            }
            finite(x)?;
            write_shifted(text, x, shift);
        }
        text.push_str("\" ");
    }
    text.push_str("Properties=");
    for (k, (name, _)) in columns.iter().enumerate() {
        if k > 0 {
            text.push(':');
        }
        text.push_str(name);
    }
    if shift == 0 {
        text.push_str(" units=\"lj\"");
    } else if frame.velocities.is_some() {
        text.push_str(" velocity_unit=\"A/ps\"");
    }
    if let Some(p) = frame.periodic {
        let [a, b, c] = p.map(|p| if p { 'T' } else { 'F' });
        let _ = write!(text, " pbc=\"{a} {b} {c}\"");
    }
    if let Some(step) = frame.step {
        let _ = write!(text, " step={step}");
    }
    if let Some(time) = frame.time {
        let _ = write!(text, " time={:?}", finite(time)?);
    }
    if let Some(energy) = frame.energy {
        let _ = write!(text, " energy={:?}", finite(energy)? / ev);
    }
    if !frame.title.is_empty() {
        text.push_str(" title=");
        quote(text, &frame.title);
    }
    for (key, value) in &frame.info {
        text.push(' ');
        if is_key(key) {
            text.push_str(key);
        } else {
            quote(text, key);
        }
        match value {
            InfoValue::Flag => {}
            InfoValue::Bare(s) if is_bare(s) => {
                let _ = write!(text, "={s}");
            }
            InfoValue::Array(s) if array_end(s) == Some(s.len()) && !s.contains(['\n', '\r']) => {
                let _ = write!(text, "={s}");
            }
            InfoValue::Bare(s) | InfoValue::Quoted(s) | InfoValue::Array(s) => {
                text.push('=');
                quote(text, s);
            }
        }
    }
    text.push('\n');
    Ok(())
}

impl Out<'_> {
    fn write(&self, text: &mut String, i: usize, digits: Digits) -> io::Result<()> {
        match self {
            Out::Species(atoms) => word(text, &atoms[i].name, "the species"),
            Out::Vectors(v, shift) => each(text, &v[i], |text, &x| {
                finite(x)?;
                match digits {
                    Digits::Shortest => write_shifted(text, x, *shift),
                    Digits::Fixed(_) => real(text, if *shift == 0 { x } else { x * 10.0 }, digits),
                }
                Ok(())
            }),
            Out::Scaled(v, factor) => each(text, &v[i], |text, &x| {
                real(text, finite(x)? * factor, digits);
                Ok(())
            }),
            Out::Reals(v, width) => each(text, &v[i * width..(i + 1) * width], |text, &x| {
                real(text, x, digits);
                Ok(())
            }),
            Out::Integers(v, width) => each(text, &v[i * width..(i + 1) * width], |text, x| {
                let _ = write!(text, "{x}");
                Ok(())
            }),
            Out::Logicals(v, width) => each(text, &v[i * width..(i + 1) * width], |text, &x| {
                text.push(if x { 'T' } else { 'F' });
                Ok(())
            }),
            Out::Texts(v, width) => {
                each(text, &v[i * width..(i + 1) * width], |text, s| word(text, s, "the text"))
            }
            Out::ResidueNumbers(atoms) => {
                let _ = write!(text, "{}", atoms[i].residue.as_ref().map_or(0, |r| r.number));
                Ok(())
            }
            Out::ResidueNames(atoms) => {
                word(text, atoms[i].residue.as_ref().map_or("", |r| &r.name), "the residue name")
            }
        }
    }
}

fn each<T>(
    text: &mut String,
    values: &[T],
    mut write: impl FnMut(&mut String, &T) -> io::Result<()>,
) -> io::Result<()> {
    for (k, value) in values.iter().enumerate() {
        if k > 0 {
            text.push(' ');
        }
        write(text, value)?;
    }
    Ok(())
}

fn real(text: &mut String, x: f64, digits: Digits) {
    match digits {
        Digits::Shortest => write_shifted(text, x, 0),
        Digits::Fixed(d) => write_fixed(text, x, d, 0),
    }
}

fn word(text: &mut String, s: &str, what: &str) -> io::Result<()> {
    if !is_word(s) {
        return Err(invalid(format!("XYZ cannot hold {what} `{s}`: it is empty or has blanks in it")));
    }
    text.push_str(s);
    Ok(())
}

fn finite(x: f64) -> io::Result<f64> {
    if x.is_finite() { Ok(x) } else { Err(invalid(format!("the frame holds a number that is {x}"))) }
}

fn is_word(s: &str) -> bool {
    !s.is_empty() && !s.contains(char::is_whitespace)
}

fn is_key(s: &str) -> bool {
    !s.is_empty()
        && s.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | ':' | '+'))
}

fn is_bare(s: &str) -> bool {
    is_word(s) && !s.starts_with(['"', '\'', '{', '[']) && !s.contains('=')
}

fn quote(text: &mut String, s: &str) {
    text.push('"');
    for c in s.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            c => text.push(c),
        }
    }
    text.push('"');
}

/// The byte after the bracket that closes the array at the beginning of `s`.
fn array_end(s: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut quoted = None;
    let mut escaped = false;
    for (i, c) in s.char_indices() {
        match (quoted, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quoted = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if !open.is_empty() => quoted = Some(c),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ']' | '}') => {
                if open.pop() != Some(c) {
                    return None;
                }
                if open.is_empty() {
                    return Some(i + c.len_utf8());
                }
            }
            (None, _) if open.is_empty() => return None,
            (None, _) => {}
        }
    }
    None
}

/// The keys and values of a comment line, in their order.
type Pairs = Vec<(String, InfoValue)>;

/// Splits a comment line into keys and values. The error is a byte in `line` and what is wrong there.
fn key_values(line: &str) -> Result<Pairs, (usize, String)> {
    let mut pairs = Vec::new();
    let mut at = 0;
    let skip = |at: usize| at + (line[at..].len() - line[at..].trim_start().len());
    loop {
        at = skip(at);
        if at == line.len() {
            return Ok(pairs);
        }
        let start = at;
        let key = if let Some(q) = line[at..].chars().next().filter(|&c| matches!(c, '"' | '\'')) {
            let (key, length) = quoted(&line[at..], q).ok_or((at, "this quote is not closed".to_string()))?;
            at += length;
            key
        } else {
            let end = line[at..].find(|c: char| c == '=' || c.is_whitespace()).map_or(line.len(), |e| at + e);
            let key = line[at..end].to_string();
            at = end;
            key
        };
        let equals = skip(at);
        if !line[equals..].starts_with('=') {
            if at == start {
                return Err((start, "a key is missing".into()));
            }
            pairs.push((key, InfoValue::Flag));
            continue;
        }
        if at == start {
            return Err((start, "a key is missing before this `=`".into()));
        }
        at = skip(equals + 1);
        let rest = &line[at..];
        let (value, length) = match rest.chars().next() {
            None => return Err((equals, format!("`{key}` has no value"))),
            Some(q @ ('"' | '\'')) => {
                let (text, length) = quoted(rest, q).ok_or((at, "this quote is not closed".to_string()))?;
                (InfoValue::Quoted(text), length)
            }
            Some('[' | '{') => {
                let end = array_end(rest).ok_or((at, "this bracket is not closed".to_string()))?;
                (InfoValue::Array(rest[..end].to_string()), end)
            }
            Some(_) => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (InfoValue::Bare(rest[..end].to_string()), end)
            }
        };
        at += length;
        pairs.push((key, value));
    }
}

/// The text in quotes at the beginning of `s`, and the bytes it takes there.
fn quoted(s: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = s.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        if c == quote {
            return Some((text, i + c.len_utf8()));
        }
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next()?.1 {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            c @ ('"' | '\'' | '\\') => text.push(c),
            c => text.extend(['\\', c]),
        }
    }
    None
}

/// The pairs of an extended comment line, or nothing if it is a plain title.
fn extended(line: &str) -> Result<Option<Pairs>, (usize, String)> {
    let names = |word: &str, key: &str| {
        word.get(..key.len()).is_some_and(|w| w.eq_ignore_ascii_case(key))
            && word[key.len()..].trim_start().starts_with('=')
    };
    let marked = line.char_indices().any(|(i, _)| {
        (i == 0 || line[..i].ends_with(char::is_whitespace))
            && (names(&line[i..], "Lattice") || names(&line[i..], "Properties"))
    });
    match key_values(line) {
        Ok(pairs) if marked => Ok(Some(pairs)),
        Ok(pairs) => {
            // `i = 0, E = -8.8`, as some programs write it, is a sentence.
            let all = !pairs.is_empty() && pairs.iter().all(|(_, v)| *v != InfoValue::Flag);
            Ok(Some(pairs).filter(|p| all && !line.contains(" = ") && p.iter().all(|(k, _)| is_key(k))))
        }
        Err(e) if marked => Err(e),
        Err(_) => Ok(None),
    }
}

/// One column of `Properties`.
struct Property {
    name: String,
    kind: char,
    width: usize,
    /// The power of ten by which real numbers are multiplied while they are still digits.
    shift: i32,
    /// Whether `nan` and `inf` are refused.
    finite: bool,
}

const VELOCITY: [&str; 4] = ["vel", "velo", "velocity", "velocities"];

impl Property {
    fn new(name: &str, kind: char, width: usize) -> Self {
        Property { name: name.into(), kind, width, shift: 0, finite: false }
    }

    fn is(&self, name: &str, kind: char, width: usize) -> bool {
        self.name == name && self.kind == kind && self.width == width
    }

    /// Sets how the numbers become those of a frame.
    fn convert(&mut self, units: FrameUnits, velocity: Option<VelocityUnit>) {
        if self.is("pos", 'R', 3) {
            self.finite = true;
            self.shift = if units == FrameUnits::Nanometre { -1 } else { 0 };
        } else if VELOCITY.contains(&self.name.as_str()) && self.kind == 'R' && self.width == 3 {
            if let (FrameUnits::Nanometre, Some(VelocityUnit::Shift(shift))) = (units, velocity) {
                self.shift = shift;
            }
            self.finite = velocity.is_some() || units == FrameUnits::Reduced;
        } else if matches!(self.name.as_str(), "momenta" | "force" | "forces") {
            self.finite = true;
        }
    }

    fn column(&self) -> Column {
        let data = match self.kind {
            'R' => ColumnData::Real(Vec::new()),
            'I' => ColumnData::Integer(Vec::new()),
            'L' => ColumnData::Logical(Vec::new()),
            _ => ColumnData::Text(Vec::new()),
        };
        Column { name: self.name.clone(), width: self.width, data }
    }

    /// Appends one value; false if `token` is none.
    fn push(&self, column: &mut Column, token: &str) -> bool {
        match &mut column.data {
            ColumnData::Real(v) => {
                let x = parse_shifted(token, self.shift).filter(|x| x.is_finite() || !self.finite);
                v.extend(x);
                x.is_some()
            }
            ColumnData::Integer(v) => {
                let x = token.parse::<i64>();
                v.extend(x.as_ref().copied());
                x.is_ok()
            }
            ColumnData::Logical(v) => {
                let x = logical(token);
                v.extend(x);
                x.is_some()
            }
            ColumnData::Text(v) => {
                v.push(token.to_string());
                true
            }
        }
    }

    fn what(&self) -> &'static str {
        match self.kind {
            'R' => "a number",
            'I' => "an integer",
            _ => "T or F",
        }
    }
}

/// The words of a line.
struct Tokens<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        // Blanks are ASCII ones: to look at bytes only is much faster in files of gigabytes.
        let blanks = self.line.as_bytes()[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        let start = self.at + blanks;
        let rest = &self.line[start..];
        let length = rest.bytes().position(|b| b.is_ascii_whitespace()).unwrap_or(rest.len());
        self.at = start + length;
        (length > 0).then(|| (start, &rest[..length]))
    }
}

/// An error at a byte of a line.
fn at_byte(number: usize, line: &str, byte: usize, message: String) -> FormatError {
    FormatError::at(number, Some(1 + line[..byte].chars().count()), message)
}

fn properties(value: &str) -> Result<Vec<Property>, String> {
    let fields: Vec<&str> = value.split(':').collect();
    if !fields.len().is_multiple_of(3) {
        return Err(format!("Properties must be name:type:number, again and again, but `{value}` is not"));
    }
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for field in fields.chunks_exact(3) {
        let (name, kind) = (field[0], field[1]);
        if name.is_empty() {
            return Err("a column in Properties has no name".into());
        }
        let kind = match kind {
            "R" | "I" | "S" | "L" => char::from(kind.as_bytes()[0]),
            _ => {
                return Err(format!("column `{name}` in Properties: the type is R, I, S or L, not `{kind}`"));
            }
        };
        let width = field[2].parse::<u32>().ok().filter(|&w| w > 0).ok_or_else(|| {
            format!("column `{name}` in Properties: expected a number of values from 1, found `{}`", field[2])
        })?;
        if !seen.insert(name) {
            return Err(format!("column `{name}` in Properties appears twice"));
        }
        all.push(Property::new(name, kind, width as usize));
    }
    Ok(all)
}

/// Reads frames one after the other.
///
/// After an error it is exhausted: nothing that comes behind broken data is trusted.
pub struct XyzReader<R> {
    lines: Lines<R>,
    units: FrameUnits,
    done: bool,
}

impl<R: BufRead> XyzReader<R> {
    /// A reader of Å, unless the file says otherwise.
    pub fn new(reader: R) -> Self {
        Self::with_units(reader, FrameUnits::Nanometre)
    }

    /// A reader whose numbers are plain ones where `units` is [`FrameUnits::Reduced`], even if the file
    /// does not say so.
    pub fn with_units(reader: R, units: FrameUnits) -> Self {
        XyzReader { lines: Lines::new(reader), units, done: false }
    }

    fn frame(&mut self) -> Result<Option<Frame>, FormatError> {
        let Some(count) = atom_count(&mut self.lines)? else {
            return Ok(None);
        };
        if !self.lines.advance()? {
            return Err(self.lines.error_at_end("the file ends before the comment line"));
        }
        let mut frame = Frame { units: self.units, ..Frame::default() };
        let comment = self.lines.text().into_owned();
        if comment.contains(char::REPLACEMENT_CHARACTER) {
            frame.remarks.push(format!("line {} is not all UTF-8", self.lines.number()));
        }
        let pairs = extended(&comment)
            .map_err(|(at, message)| at_byte(self.lines.number(), &comment, at, message))?;
        let comment_line = self.lines.number();
        let fail = |message: String| FormatError::at(comment_line, None, message);
        let mut header = Header::default();
        let plain = pairs.is_none();
        match pairs {
            None => frame.title = comment.trim().to_string(),
            Some(pairs) => header.take(&mut frame, pairs).map_err(fail)?,
        }
        let mut properties = header
            .properties
            .take()
            .unwrap_or_else(|| vec![Property::new("species", 'S', 1), Property::new("pos", 'R', 3)]);
        if plain && count > 0 && self.lines.advance()? {
            // What else stands in the first atom's line, all others must have too.
            let found = Tokens { line: &self.lines.text(), at: 0 }.count();
            if found > 4 {
                properties.push(Property::new("extra", 'S', found - 4));
            }
            self.lines.put_back();
        }
        for p in &mut properties {
            p.convert(frame.units, header.velocity);
        }
        if !properties.iter().any(|p| p.is("pos", 'R', 3)) {
            return Err(fail("Properties has no column pos:R:3".into()));
        }
        let columns = self.atoms(count, properties)?;
        header.store(&mut frame, columns).map_err(fail)?;
        Ok(Some(frame))
    }

    /// Reads the atoms' lines and hands their columns to the frame.
    fn atoms(&mut self, count: usize, properties: Vec<Property>) -> Result<Vec<Column>, FormatError> {
        let mut columns: Vec<Column> = properties.iter().map(Property::column).collect();
        for i in 0..count {
            let lines = &mut self.lines;
            if !lines.advance()? {
                return Err(lines.error_at_end(format!(
                    "the file ends after {i} of the {count} atoms that the frame announces"
                )));
            }
            if lines.is_blank() {
                return Err(lines
                    .error(format!("blank line after {i} of the {count} atoms that the frame announces")));
            }
            let line = lines.text();
            let mut tokens = Tokens { line: &line, at: 0 };
            for (p, column) in properties.iter().zip(&mut columns) {
                for k in 0..p.width {
                    let Some((start, token)) = tokens.next() else {
                        return Err(lines.error(match p.width {
                            1 => format!("the value of column `{}` is missing", p.name),
                            w => format!("column `{}`: expected {w} values, found {k}", p.name),
                        }));
                    };
                    if !p.push(column, token) {
                        let message =
                            format!("column `{}`: expected {}, found `{}`", p.name, p.what(), shorten(token));
                        return Err(at_byte(lines.number(), &line, start, message));
                    }
                }
            }
            if let Some((start, token)) = tokens.next() {
                let message = format!("unexpected `{}` behind the last column", shorten(token));
                return Err(at_byte(lines.number(), &line, start, message));
            }
        }
        Ok(columns)
    }
}

impl<R: BufRead> Iterator for XyzReader<R> {
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

/// Skips blank lines and reads the number of atoms; `None` at the end of the file.
fn atom_count<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<usize>, FormatError> {
    loop {
        if !lines.advance()? {
            return Ok(None);
        }
        if !lines.is_blank() {
            break;
        }
    }
    let text = lines.text();
    let text = text.trim().trim_start_matches('\u{feff}');
    match text.parse() {
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(lines.error(format!("expected the number of atoms, found `{}`", shorten(text)))),
    }
}

fn shorten(s: &str) -> String {
    if s.chars().count() <= 40 { s.to_string() } else { s.chars().take(39).chain(['…']).collect() }
}

/// What the comment line says about the columns.
#[derive(Default)]
struct Header {
    properties: Option<Vec<Property>>,
    velocity: Option<VelocityUnit>,
    velocity_text: Option<String>,
}

#[derive(Clone, Copy)]
enum VelocityUnit {
    /// A power of ten of nm/ps.
    Shift(i32),
    Ase,
}

impl Header {
    fn take(&mut self, frame: &mut Frame, pairs: Pairs) -> Result<(), String> {
        if pairs.iter().any(|(k, v)| k == "units" && v.text() == "lj") {
            frame.units = FrameUnits::Reduced;
        }
        let (shift, ev) = match frame.units {
            FrameUnits::Reduced => (0, 1.0),
            FrameUnits::Nanometre => (-1, EV),
        };
        let mut seen = HashSet::new();
        for (key, value) in pairs {
            let first = seen.insert(key.clone());
            match key.as_str() {
                "Properties" | "properties" => {
                    if self.properties.is_some() {
                        return Err("Properties is given twice".into());
                    }
                    self.properties = Some(properties(value.text())?);
                }
                "Lattice" | "lattice" => {
                    if frame.cell.is_some() {
                        return Err("Lattice is given twice".into());
                    }
                    frame.cell = lattice(value.text(), shift)?;
                }
                "pbc" => frame.periodic = Some(periodic(value.text())?),
                "units" if value.text() == "lj" => {}
                "velocity_unit" => {
                    self.velocity = match value.text() {
                        "A/ps" => Some(VelocityUnit::Shift(-1)),
                        "A/fs" => Some(VelocityUnit::Shift(2)),
                        "nm/ps" => Some(VelocityUnit::Shift(0)),
                        "ase" => Some(VelocityUnit::Ase),
                        _ => None,
                    };
                    self.velocity_text = Some(value.text().to_string());
                    if self.velocity.is_none() {
                        frame.info.push((key, value));
                    }
                }
                "step" if first && value.text().parse::<u64>().is_ok() => {
                    frame.step = value.text().parse().ok();
                }
                "time" if first && value.as_f64().is_some_and(f64::is_finite) => frame.time = value.as_f64(),
                "energy" if first && value.as_f64().is_some_and(|e| (e * ev).is_finite()) => {
                    frame.energy = value.as_f64().map(|e| e * ev);
                }
                "title" if first && matches!(value, InfoValue::Quoted(_) | InfoValue::Bare(_)) => {
                    frame.title = value.text().to_string();
                }
                _ => frame.info.push((key, value)),
            }
        }
        Ok(())
    }

    /// Hands the columns to the frame's fields; those without a field stay columns.
    fn store(self, frame: &mut Frame, columns: Vec<Column>) -> Result<(), String> {
        let reduced = frame.units == FrameUnits::Reduced;
        let named = columns.iter().any(|c| c.name == "species" && c.width == 1);
        let mut momenta = None;
        let mut numbers = None;
        let mut names = None;
        for column in columns {
            let Column { name, width, data } = column;
            match (name.as_str(), data, width) {
                ("species", ColumnData::Text(v), 1) => {
                    frame.atoms = v.into_iter().map(AtomLabel::new).collect();
                }
                ("species", ColumnData::Integer(v), 1) => {
                    frame.atoms = v.iter().map(|z| AtomLabel::new(z.to_string())).collect();
                }
                ("Z" | "numbers", ColumnData::Integer(v), 1) if !named && frame.atoms.is_empty() => {
                    for z in v {
                        let s =
                            elements::symbol(z).ok_or_else(|| format!("no element has the number {z}"))?;
                        frame.atoms.push(AtomLabel::new(s));
                    }
                }
                ("pos", ColumnData::Real(v), 3) => frame.positions = vectors(&v, 1.0),
                (vel, ColumnData::Real(v), 3)
                    if VELOCITY.contains(&vel)
                        && frame.velocities.is_none()
                        && (reduced || self.velocity.is_some()) =>
                {
                    let ase = !reduced && matches!(self.velocity, Some(VelocityUnit::Ase));
                    frame.velocities = Some(vectors(&v, if ase { ase_velocity() } else { 1.0 }));
                }
                ("force" | "forces", ColumnData::Real(v), 3) if frame.forces.is_none() => {
                    frame.forces = Some(vectors(&v, if reduced { 1.0 } else { 10.0 * EV }));
                }
                ("mass" | "masses", ColumnData::Real(v), 1) if frame.masses.is_none() => {
                    frame.masses = Some(v);
                }
                ("charge" | "charges" | "initial_charges", ColumnData::Real(v), 1)
                    if frame.charges.is_none() =>
                {
                    frame.charges = Some(v);
                }
                ("momenta", ColumnData::Real(v), 3) => momenta = Some((frame.columns.len(), v)),
                ("residuenumbers", ColumnData::Integer(v), 1) => numbers = Some(v),
                ("residuenames", ColumnData::Text(v), 1) => names = Some(v),
                (_, data, _) => {
                    if VELOCITY.contains(&name.as_str()) && frame.velocities.is_none() {
                        frame.remarks.push(format!(
                            "column `{name}` is not taken for velocities: the comment line has no \
                             velocity_unit=\"A/ps\" (or A/fs, nm/ps, ase)"
                        ));
                    }
                    frame.columns.push(Column { name, width, data });
                }
            }
        }
        if let Some((at, v)) = momenta {
            if frame.velocities.is_some() {
                let data = ColumnData::Real(v);
                frame.columns.insert(at, Column { name: "momenta".into(), width: 3, data });
            } else {
                frame.velocities = Some(from_momenta(frame, &v)?);
            }
        } else if frame.velocities.is_none() && self.velocity.is_some() {
            // The unit of nothing we know; it may belong to a column that was kept.
            let unit = self.velocity_text.unwrap_or_default();
            frame.info.push(("velocity_unit".into(), InfoValue::Quoted(unit)));
        }
        match (numbers, names, frame.atoms.is_empty()) {
            (Some(numbers), names, false) => {
                for (i, (atom, number)) in frame.atoms.iter_mut().zip(numbers).enumerate() {
                    let name = names.as_ref().map_or(String::new(), |n| n[i].clone());
                    atom.residue = Some(Residue { number, name });
                }
            }
            (numbers, names, _) => {
                let numbers = numbers.map(|v| ("residuenumbers", ColumnData::Integer(v)));
                let names = names.map(|v| ("residuenames", ColumnData::Text(v)));
                for (name, data) in numbers.into_iter().chain(names) {
                    frame.columns.push(Column { name: name.into(), width: 1, data });
                }
            }
        }
        Ok(())
    }
}

fn vectors(values: &[f64], factor: f64) -> Vec<[f64; 3]> {
    let scaled = |v: &[f64; 3]| if factor == 1.0 { *v } else { v.map(|x| x * factor) };
    values.as_chunks::<3>().0.iter().map(scaled).collect()
}

/// ASE's momenta over the masses of the file or of the elements.
fn from_momenta(frame: &Frame, momenta: &[f64]) -> Result<Vec<[f64; 3]>, String> {
    let factor = if frame.units == FrameUnits::Reduced { 1.0 } else { ase_velocity() };
    let mut velocities = vectors(momenta, factor);
    for (i, v) in velocities.iter_mut().enumerate() {
        let name = frame.atoms.get(i).map_or("", |a| &a.name);
        let mass = match &frame.masses {
            Some(m) => Some(m[i]),
            None => elements::mass(name),
        };
        let mass = mass.filter(|&m| m > 0.0).ok_or_else(|| {
            format!(
                "momenta need masses, but atom {} (`{name}`) is no element and has no mass above 0",
                i + 1
            )
        })?;
        *v = v.map(|p| p / mass);
    }
    Ok(velocities)
}

fn lattice(text: &str, shift: i32) -> Result<Option<[[f64; 3]; 3]>, String> {
    let mut cell = [[0.0; 3]; 3];
    let mut found = 0;
    let blank = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}');
    for token in text.split(blank).filter(|t| !t.is_empty()) {
        let x = parse_shifted(token, shift).filter(|x| x.is_finite());
        let x = x.ok_or_else(|| format!("Lattice: expected a number, found `{}`", shorten(token)))?;
        if let Some(slot) = cell.as_flattened_mut().get_mut(found) {
            *slot = x;
        }
        found += 1;
    }
    if found != 9 {
        return Err(format!("Lattice must have 9 numbers (vectors a, b, c), found {found}"));
    }
    Ok(Some(cell).filter(|c| c.as_flattened().iter().any(|&x| x != 0.0)))
}

fn periodic(text: &str) -> Result<[bool; 3], String> {
    let blank = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '"');
    let flags: Option<Vec<bool>> = text.split(blank).filter(|t| !t.is_empty()).map(logical).collect();
    match flags.as_deref() {
        Some(&[a, b, c]) => Ok([a, b, c]),
        Some(&[a]) => Ok([a; 3]),
        _ => Err(format!("pbc must be three times T or F, found `{}`", shorten(text))),
    }
}

fn logical(token: &str) -> Option<bool> {
    match token {
        "1" => Some(true),
        "0" => Some(false),
        _ if token.eq_ignore_ascii_case("t") || token.eq_ignore_ascii_case("true") => Some(true),
        _ if token.eq_ignore_ascii_case("f") || token.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// The complete frames, for cutting a trajectory: the numbers of the atoms are not looked at, but every
/// line must be there with its newline.
pub fn scan(reader: impl BufRead) -> Scan {
    let mut lines = Lines::new(reader);
    Scan::of(|| mark(&mut lines))
}

fn mark<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<FrameMark>, FormatError> {
    let Some(count) = atom_count(lines)? else {
        return Ok(None);
    };
    let mut step = None;
    for i in 0..=count {
        if !lines.advance()? || !lines.ended() {
            return Err(lines.error_at_end("the file ends within a frame"));
        }
        if i == 0 {
            let pairs = extended(&lines.text()).ok().flatten().unwrap_or_default();
            step = pairs.iter().find(|(k, _)| k == "step").and_then(|(_, v)| v.text().parse().ok());
        } else if lines.is_blank() {
            return Err(lines.error("blank line within a frame"));
        }
    }
    Ok(Some(FrameMark { end: lines.offset(), step }))
}
