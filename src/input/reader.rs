//! A typed reader over a TOML document.
//!
//! Reading code states each key once: its name, its kind (dimension, range, choices), its default and a line of
//! documentation. From that one statement follow the check of the value, the error with its caret, the "did you
//! mean" for misspelled keys, the echo with every default filled in ([`Document::echo`]) and the list behind
//! `md explain input` ([`Document::keys`], filled by a [`Document::survey`]).
//!
//! Mistakes are collected, not thrown: a read that fails records a [`Diagnostic`] and returns [`Reported`], so
//! that code may read on and let `?` act at the end, when the whole file has been looked at.
//!
//! ```
//! use md::input::reader::{Document, Reported, Section, array, integer, one_of, quantity};
//! use md::units::UnitSystem;
//! use potentials::param::{Dimension, Range};
//!
//! struct System { cutoff: f64, cell: [f64; 3], switch: bool, steps: i64 }
//!
//! fn system(t: &Section) -> Result<System, Reported> {
//!     let cutoff = t
//!         .read("cutoff", quantity(Dimension::LENGTH).range(Range::Positive), "how far pairs see each other")
//!         .required();
//!     let cell = t.read("cell", array::<3, _>(quantity(Dimension::LENGTH)), "edges of the box").required();
//!     let switch = t
//!         .read("at-cutoff", one_of([("shift", false), ("switch", true)]), "how the energy ends")
//!         .or(false);
//!     let steps = t.read("steps", integer().at_least(0), "number of steps").or(1000);
//!     Ok(System { cutoff: *cutoff?, cell: *cell?, switch: *switch?, steps: *steps? })
//! }
//!
//! let text = "units = 'real'\n[system]\ncutoff = 9\ncell = ['3 nm', 30.0, 30]\n";
//! let set = [("system.steps".to_string(), "5".to_string())];
//! let document = Document::parse("in.toml", text, &set).unwrap();
//! let root = document.root();
//! root.set_units(*root.read("units", one_of(UnitSystem::ALL), "of bare numbers").or(UnitSystem::Md).unwrap());
//! let section = root.required_section("system", "the box and its energies").unwrap();
//! let read = system(&section).unwrap();
//! section.finish();
//! root.finish();
//! document.check().unwrap();
//! assert_eq!((read.cutoff, read.cell, read.steps), (0.9, [3.0, 3.0, 3.0], 5));
//! assert!(!read.switch);
//! assert!(document.echo().contains("at-cutoff = \"shift\" # default"));
//! ```

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use potentials::param::{Dimension, Param, Range};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::report::{Diagnostic, Diagnostics, Place, Source, did_you_mean};
use crate::units::{self, UnitSystem};

/// A value of the document.
#[derive(Clone, Debug)]
pub struct Node {
    value: Value,
    place: Place,
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    /// In decimal digits.
    Integer(String),
    Float(String),
    Boolean(bool),
    Date(String),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
struct Entry {
    key: String,
    key_place: Place,
    node: Node,
}

impl Node {
    /// Where it is written.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// "the string `abc`", for messages.
    fn found(&self) -> String {
        let cut = |s: &str| match s.char_indices().nth(40) {
            Some((at, _)) => format!("{}…", &s[..at]),
            None => s.to_owned(),
        };
        match &self.value {
            Value::Text(s) => format!("the string \"{}\"", cut(s)),
            Value::Integer(s) => format!("the integer {}", cut(s)),
            Value::Float(s) => format!("the number {}", cut(s)),
            Value::Boolean(b) => format!("the boolean {b}"),
            Value::Date(s) => format!("the date {}", cut(s)),
            Value::Array(_) => "an array".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// The place of a part of a string value; of all of it where the string holds escapes.
    fn inside(&self, text: &str, span: std::ops::Range<usize>) -> Place {
        let raw = self.place.text();
        let quotes = [0, 1, 3].into_iter().find(|q| {
            raw.len() == text.len() + 2 * q && raw.get(*q..raw.len() - q).is_some_and(|inner| inner == text)
        });
        match quotes {
            Some(q) => {
                let start = self.place.span.start + q;
                Place::new(&self.place.source, start + span.start..start + span.end)
            }
            None => self.place.clone(),
        }
    }
}

/// The tree of a spanned TOML value, in the order of the file.
fn tree(value: &Spanned<DeValue<'_>>, source: &Arc<Source>, offset: usize) -> Node {
    let span = value.span();
    let place = Place::new(source, span.start + offset..span.end + offset);
    let value = match value.get_ref() {
        DeValue::String(s) => Value::Text(s.to_string()),
        DeValue::Integer(i) if i.radix() == 10 => Value::Integer(i.as_str().to_owned()),
        DeValue::Integer(i) => match i128::from_str_radix(i.as_str(), i.radix()) {
            Ok(n) => Value::Integer(n.to_string()),
            Err(_) => Value::Integer(i.to_string()),
        },
        DeValue::Float(f) => Value::Float(f.as_str().to_owned()),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Date(d.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| tree(item, source, offset)).collect()),
        DeValue::Table(table) => Value::Table(entries(table, source, offset)),
    };
    Node { value, place }
}

fn entries(table: &DeTable<'_>, source: &Arc<Source>, offset: usize) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_place: Place::new(source, key.span().start + offset..key.span().end + offset),
            node: tree(value, source, offset),
        })
        .collect();
    entries.sort_by_key(|e| e.key_place.span.start);
    entries
}

/// What TOML itself objects to.
fn syntax(error: &toml::de::Error, source: &Arc<Source>, root: Option<&DeTable<'_>>) -> Diagnostic {
    let text = source.text();
    let span = error.span().unwrap_or(text.len()..text.len());
    let line_start = text.get(..span.start).and_then(|t| t.rfind('\n')).map_or(0, |n| n + 1);
    let line = text.get(line_start..).and_then(|t| t.lines().next()).unwrap_or("");
    let message = error.message().lines().next().unwrap_or("").trim_end_matches(", expected nothing");
    let bad = text.get(span.clone()).unwrap_or("");
    let before = line.get(..span.start.saturating_sub(line_start)).unwrap_or("");
    let unquoted = message.starts_with("string values must be quoted");
    let in_array = before.matches('[').count() > before.matches(']').count() && before.contains('=');
    let words: Vec<&str> = bad.split_whitespace().collect();
    if unquoted && in_array && words.len() > 1 && words.iter().all(|w| w.parse::<f64>().is_ok()) {
        return Diagnostic::error("not valid TOML: values in an array without commas")
            .at(Place::new(source, span), "")
            .help(format!("write `{}`", words.join(", ")));
    }
    let after_equals = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    if let (true, Some((key, value))) = (unquoted, after_equals)
        && (value.is_empty() || value.starts_with('#'))
    {
        return Diagnostic::error(format!("not valid TOML: `{key}` has no value"))
            .at(Place::new(source, span), "")
            .help(format!("write one behind the `=`, or leave `{key}` out"));
    }
    let message = match message {
        _ if unquoted => "a value without quotes",
        m if m.contains("recursion depth") => "nested too deeply",
        m if m.starts_with("invalid basic string, expected `\"`") => "a string without its closing quote",
        m => m,
    };
    if message == "duplicate key" {
        let place = Place::new(source, span.clone());
        let key = place.text().trim_matches(['"', '\'']).to_owned();
        let what = if line.trim_start().starts_with('[') { "table" } else { "key" };
        let mut diagnostic =
            Diagnostic::error(format!("the {what} `{key}` is written twice")).at(place, "again here");
        if let Some(first) = root.and_then(|root| first_definition(root, text, &key, &span)) {
            diagnostic = diagnostic.also(Place::new(source, first), "first here");
        }
        return diagnostic;
    }
    let help = line.split_once('=').and_then(|(key, value)| {
        let value = value.split('#').next().unwrap_or("").trim();
        let bare = value.starts_with(|c: char| c.is_alphanumeric() || "+-.".contains(c))
            && !value.contains(['"', '\'', '[', '{', '=', '\\']);
        let inside = span.start >= line_start + key.len();
        (bare && inside && value.len() < 60).then(|| {
            format!("a text or a quantity with its unit stands in quotes: `{} = \"{value}\"`", key.trim())
        })
    });
    let help = help.or_else(|| {
        let (key, value) = line.split_once(':').filter(|_| message.starts_with("key with no value"))?;
        Some(format!("a key and its value are joined by `=`: `{} = {}`", key.trim(), value.trim()))
    });
    Diagnostic::error(format!("not valid TOML: {message}")).at(Place::new(source, span), "").maybe_help(help)
}

/// Where a key that comes twice stood first: the same name, in the same block of lines (or in a header).
fn first_definition(
    root: &DeTable<'_>,
    text: &str,
    key: &str,
    again: &std::ops::Range<usize>,
) -> Option<std::ops::Range<usize>> {
    fn collect(table: &DeTable<'_>, key: &str, into: &mut Vec<std::ops::Range<usize>>) {
        for (k, v) in table.iter() {
            if k.get_ref() == key {
                into.push(k.span());
            }
            collect_value(v.get_ref(), key, into);
        }
    }
    fn collect_value(value: &DeValue<'_>, key: &str, into: &mut Vec<std::ops::Range<usize>>) {
        match value {
            DeValue::Table(t) => collect(t, key, into),
            DeValue::Array(a) => a.iter().for_each(|v| collect_value(v.get_ref(), key, into)),
            _ => {}
        }
    }
    let line_of = |at: usize| text.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |n| n + 1);
    let is_header = |at: usize| text.get(line_of(at)..).is_some_and(|l| l.trim_start().starts_with('['));
    let mut found = Vec::new();
    collect(root, key, &mut found);
    let header = is_header(again.start);
    if header {
        // The tree no longer has the first one; its line does.
        let line = line_of(again.start);
        let written = text.get(line..again.end)?.trim_start();
        let mut start = 0;
        for earlier in text.get(..line)?.split_inclusive('\n') {
            let indent = earlier.len() - earlier.trim_start().len();
            if earlier
                .trim_start()
                .strip_prefix(written)
                .is_some_and(|after| after.trim_start().starts_with(']'))
            {
                let at = start + indent + written.len();
                return Some(at - again.len()..at);
            }
            start += earlier.len();
        }
    }
    let block = text.get(..again.start)?.rfind("\n[").map_or(0, |n| n + 1);
    found.retain(|f| f.start < again.start && is_header(f.start) == header && (header || f.start >= block));
    let first = found.pop()?;
    found.is_empty().then_some(first)
}

/// A token of proof that a mistake has been recorded; only the reader makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported(());

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it was written; for a default, the table it belongs to.
    pub place: Place,
    /// Whether the user wrote it.
    pub given: bool,
}

impl<T> Deref for Located<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// Whether a key has to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must be written.
    Required,
    /// It may be left out.
    Optional,
    /// It may be left out, which means this.
    Default(String),
}

/// One key that reading code asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDoc {
    /// Its path; `stage[]` is any table of an array and `*` any name.
    pub path: String,
    /// What may be written.
    pub kind: String,
    /// Whether it must be.
    pub presence: Presence,
    /// What it means.
    pub doc: String,
}

#[derive(Debug, Default)]
struct Log {
    diagnostics: Diagnostics,
    echo: Vec<Vec<(String, Item)>>,
    /// Where in `echo` the whole document is.
    root: usize,
    keys: Vec<KeyDoc>,
}

#[derive(Debug)]
enum Item {
    Value { text: String, comment: Option<String> },
    Table(usize),
    Tables(Vec<usize>),
}

/// A TOML document that is being read.
#[derive(Debug)]
pub struct Document {
    source: Arc<Source>,
    root: Node,
    log: RefCell<Log>,
    survey: bool,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Document {
    /// Reads a file and parses it; see [`parse`](Self::parse).
    ///
    /// # Errors
    /// When the file cannot be read or is not text, and those of [`parse`](Self::parse).
    pub fn open(path: impl AsRef<Path>, overrides: &[(String, String)]) -> Result<Self, Diagnostics> {
        let path = path.as_ref();
        let failed = |what: String| Diagnostics::from(Diagnostic::error(what).file(path));
        if path.is_dir() {
            let diagnostic = Diagnostic::error("the input cannot be read: it is a folder").file(path);
            return Err(diagnostic.help("name the file in it").into());
        }
        let bytes = std::fs::read(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                failed("the input cannot be read: there is no such file".to_owned())
            }
            _ => failed(format!("the input cannot be read: {e}")),
        })?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|b| **b == b'\n').count();
            let byte = good.len() - good.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
            let what = format!("the input is not UTF-8 text (byte {} of line {line})", byte + 1);
            Diagnostics::from(Diagnostic::error(what).file(path).help("save it as UTF-8"))
        })?;
        Self::parse(path, &text, overrides)
    }

    /// Parses a text; `path` is where relative paths start and what messages call it.
    ///
    /// Each override is a path (`system.cutoff`, `stage[0].steps`) and a value, as TOML or as plain text. It
    /// replaces what the document says and creates the tables it needs.
    ///
    /// # Errors
    /// Everything that is not valid TOML, and overrides that lead nowhere.
    pub fn parse(
        path: impl Into<PathBuf>,
        text: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, Diagnostics> {
        let source = Source::file(path, text);
        let (table, errors) = DeTable::parse_recoverable(source.text());
        let mut diagnostics = Diagnostics::new();
        let mut last_line = 0;
        let mut again = 0..0;
        for error in &errors {
            let diagnostic = syntax(error, &source, Some(table.get_ref()));
            if let Some((place, _)) = &diagnostic.primary {
                // What stands in a table that is there twice is there twice, too.
                if again.contains(&place.span.start) && diagnostic.message.ends_with("is written twice") {
                    continue;
                }
                if diagnostic.message.starts_with("the table") {
                    let from = place.span.end;
                    let next = source.text()[from..].find("\n[").map_or(source.text().len(), |n| from + n);
                    again = from..next;
                }
            }
            let line = diagnostic.primary.as_ref().map_or(0, |(place, _)| place.line());
            // One mistake often makes several errors in a row; the first one on a line says most.
            if line != last_line && diagnostics.len() < 6 {
                diagnostics.push(diagnostic);
            }
            last_line = line;
        }
        let mut root =
            Node { value: Value::Table(entries(table.get_ref(), &source, 0)), place: Place::whole(&source) };
        drop(table);
        for (path, value) in overrides {
            if let Err(found) = set(&mut root, path, value) {
                found.into_iter().for_each(|diagnostic| diagnostics.push(diagnostic));
            }
        }
        if diagnostics.is_empty() {
            Ok(Self { source, root, log: RefCell::default(), survey: false, files: Vec::new() })
        } else {
            Err(diagnostics)
        }
    }

    /// With what a structure file holds that the document names: it is read from here and need not exist.
    pub fn with_file(mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((beside(&self.source, path.as_ref()), bytes.into()));
        self
    }

    /// The bytes given for a file.
    pub fn file(&self, path: &Path) -> Option<&[u8]> {
        self.files.iter().find(|(p, _)| p == path).map(|(_, bytes)| &bytes[..])
    }

    /// A document in which every table is there and every key has some allowed value: reading it with the code
    /// that reads real ones fills [`keys`](Self::keys). Mistakes are not recorded.
    pub fn survey() -> Self {
        let source = Source::named("survey", "");
        let root = Node { value: Value::Table(Vec::new()), place: Place::whole(&source) };
        Self { source, root, log: RefCell::default(), survey: true, files: Vec::new() }
    }

    /// The text that was parsed.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Records something odd that is not wrong.
    pub fn report_warning(&self, warning: Diagnostic) {
        self.log.borrow_mut().diagnostics.push(warning);
    }

    /// Whether this is the empty document that lists keys.
    pub fn is_survey(&self) -> bool {
        self.survey
    }

    /// The table that is the whole document. Bare numbers are in `md` units until
    /// [`Section::set_units`] says otherwise.
    pub fn root(&self) -> Section<'_> {
        let mut log = self.log.borrow_mut();
        log.root = log.echo.len();
        log.echo.push(Vec::new());
        let echo = log.root;
        let errors = log.diagnostics.len();
        let entries: &[Entry] = match &self.root.value {
            Value::Table(entries) => entries,
            _ => &[],
        };
        Section {
            document: self,
            entries,
            place: self.root.place.clone(),
            path: String::new(),
            pattern: String::new(),
            units: Cell::new(UnitSystem::Md),
            echo,
            asked: RefCell::default(),
            errors_at_start: errors,
            finished: false,
        }
    }

    /// Records a mistake that reading code found by itself.
    pub fn report(&self, diagnostic: Diagnostic) -> Reported {
        if !self.survey {
            self.log.borrow_mut().diagnostics.push(diagnostic);
        }
        Reported(())
    }

    /// Everything recorded so far, in the order of the text.
    pub fn diagnostics(&self) -> Diagnostics {
        self.log.borrow().diagnostics.clone().sorted()
    }

    /// Whether no error was recorded; to be asked when every section is finished.
    ///
    /// # Errors
    /// Everything that was recorded, warnings included, in the order of the text.
    pub fn check(&self) -> Result<(), Diagnostics> {
        let found = self.diagnostics();
        if found.has_errors() { Err(found) } else { Ok(()) }
    }

    /// Every key asked for so far, in the order of reading.
    pub fn keys(&self) -> Vec<KeyDoc> {
        self.log.borrow().keys.clone()
    }

    /// The document as understood, as TOML: every value read with defaults filled in, in the order of reading.
    /// Quantities are in internal units (reduced ones in reduced units) and read back to the same bits.
    pub fn echo(&self) -> String {
        let mut text = String::new();
        let log = self.log.borrow();
        write_table(&log.echo, log.root, "", &mut text);
        text
    }

    fn new_table(&self, parent: usize, name: &str, of_many: bool) -> usize {
        let mut log = self.log.borrow_mut();
        let id = log.echo.len();
        log.echo.push(Vec::new());
        let items = &mut log.echo[parent];
        match items.iter_mut().find(|(n, _)| n == name) {
            Some((_, Item::Tables(ids))) if of_many => ids.push(id),
            Some((_, item)) => *item = if of_many { Item::Tables(vec![id]) } else { Item::Table(id) },
            None => {
                let item = if of_many { Item::Tables(vec![id]) } else { Item::Table(id) };
                items.push((name.to_owned(), item));
            }
        }
        id
    }

    fn say(&self, parent: usize, name: &str, text: String, comment: Option<String>) {
        let mut log = self.log.borrow_mut();
        let items = &mut log.echo[parent];
        let item = Item::Value { text, comment };
        match items.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = item,
            None => items.push((name.to_owned(), item)),
        }
    }

    fn note_key(&self, key: KeyDoc) {
        let keys = &mut self.log.borrow_mut().keys;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
}

fn write_table(tables: &[Vec<(String, Item)>], id: usize, path: &str, text: &mut String) {
    let Some(items) = tables.get(id) else { return };
    for (name, item) in items {
        if let Item::Value { text: value, comment } = item {
            let comment = comment.as_ref().map(|c| format!(" # {c}")).unwrap_or_default();
            let _ = writeln!(text, "{} = {value}{comment}", toml_key(name));
        }
    }
    let join = |name: &str| {
        if path.is_empty() { toml_key(name) } else { format!("{path}.{}", toml_key(name)) }
    };
    let mut header = |name: &str, id: usize, many: bool| {
        let inner = join(name);
        let only_tables = tables.get(id).is_some_and(|items| {
            !items.is_empty() && items.iter().all(|(_, item)| !matches!(item, Item::Value { .. }))
        });
        if many || !only_tables {
            let break_before = if text.is_empty() { "" } else { "\n" };
            let _ = if many {
                writeln!(text, "{break_before}[[{inner}]]")
            } else {
                writeln!(text, "{break_before}[{inner}]")
            };
        }
        write_table(tables, id, &inner, text);
    };
    for (name, item) in items {
        match item {
            Item::Value { .. } => {}
            Item::Table(id) => header(name, *id, false),
            Item::Tables(ids) => ids.iter().for_each(|id| header(name, *id, true)),
        }
    }
}

/// A string as TOML.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A key as TOML, quoted where it must be.
pub fn toml_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { key.to_owned() } else { toml_string(key) }
}

/// Puts an override into the tree.
fn set(root: &mut Node, path: &str, value: &str) -> Result<(), Diagnostics> {
    const BEFORE: &str = "--set ";
    let source = Source::named("command line", format!("{BEFORE}{path}={value}"));
    let place = |range: std::ops::Range<usize>| {
        Place::new(&source, BEFORE.len() + range.start..BEFORE.len() + range.end)
    };
    let segments = segments(path).map_err(|(message, span)| {
        Diagnostic::error(message)
            .at(place(span), "")
            .help("a path is written `forces.skin` or `stage[0].steps`")
    })?;
    let offset = BEFORE.len() + path.len() + 1;
    let new = match DeValue::parse(value) {
        Ok(parsed) => tree(&parsed, &source, offset),
        Err(error) if value.trim_start().starts_with(['[', '{', '"', '\'']) => {
            let span = error.span().unwrap_or(0..value.len());
            let message = error.message().lines().next().unwrap_or("").to_owned();
            return Err(Diagnostic::error(format!("not valid TOML: {message}"))
                .at(Place::new(&source, span.start + offset..span.end + offset), "")
                .into());
        }
        Err(_) => Node {
            value: Value::Text(value.to_owned()),
            place: Place::new(&source, offset..offset + value.len()),
        },
    };
    let mut at = root;
    let mut walked = String::new();
    for (i, (segment, span)) in segments.iter().enumerate() {
        let last = i + 1 == segments.len();
        let here = place(span.clone());
        let found = at.found();
        match &mut at.value {
            Value::Table(entries) => {
                let index = entries.iter().position(|e| e.key == *segment).unwrap_or_else(|| {
                    entries.push(Entry {
                        key: segment.clone(),
                        key_place: here.clone(),
                        node: Node { value: Value::Table(Vec::new()), place: here.clone() },
                    });
                    entries.len() - 1
                });
                if last {
                    entries[index].key_place = here;
                }
                at = &mut entries[index].node;
            }
            Value::Array(items) => {
                let length = items.len();
                let item = segment.parse::<usize>().ok().and_then(|n| items.get_mut(n));
                at = item.ok_or_else(|| {
                    Diagnostic::error(format!("`{walked}` is an array of {length}"))
                        .at(here, "not one of its indices")
                        .help(format!("its first element is `{walked}[0]`"))
                })?;
            }
            _ => {
                return Err(Diagnostic::error(format!("`{walked}` is not a table"))
                    .at(here, format!("cannot be set inside {found}"))
                    .also(at.place.clone(), "its value")
                    .into());
            }
        }
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(segment);
    }
    *at = new;
    Ok(())
}

type Segment = (String, std::ops::Range<usize>);

fn segments(path: &str) -> Result<Vec<Segment>, (String, std::ops::Range<usize>)> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut rest = path;
    let at = |rest: &str| path.len() - rest.len();
    loop {
        let start = at(rest);
        let first = rest.chars().next();
        if let Some(quote @ ('"' | '\'')) = first {
            let inner = &rest[1..];
            let end =
                inner.find(quote).ok_or_else(|| ("a quote is never closed".to_owned(), start..path.len()))?;
            segments.push((inner[..end].to_owned(), start..start + end + 2));
            rest = &inner[end + 1..];
        } else {
            let length =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
            if length == 0 {
                let end = start + first.map_or(0, char::len_utf8);
                return Err(("a key is missing in the path of an override".to_owned(), start..end));
            }
            segments.push((rest[..length].to_owned(), start..start + length));
            rest = &rest[length..];
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let start = at(inner);
            let end = inner.find(']').unwrap_or(inner.len());
            if end == inner.len() || end == 0 || !inner[..end].bytes().all(|b| b.is_ascii_digit()) {
                return Err(("an index is a whole number in brackets".to_owned(), start - 1..start + end));
            }
            segments.push((inner[..end].to_owned(), start..start + end));
            rest = &inner[end + 1..];
        }
        if segments.len() > 64 {
            return Err(("a path of too many keys".to_owned(), 0..path.len()));
        }
        match rest.strip_prefix('.') {
            Some(r) => rest = r,
            None if rest.is_empty() => return Ok(segments),
            None => return Err(("expected `.` between two keys".to_owned(), at(rest)..path.len())),
        }
    }
}

/// What a [`Kind`] needs to know while it decodes a value.
#[derive(Debug)]
pub struct Context<'c> {
    path: String,
    units: UnitSystem,
    errors: &'c mut Vec<Diagnostic>,
}

impl Context<'_> {
    fn wrong<T>(&mut self, node: &Node, expected: &str) -> Option<T> {
        let message = format!("`{}`: expected {expected}, found {}", self.path, node.found());
        self.errors.push(Diagnostic::error(message).at(node.place.clone(), ""));
        None
    }

    fn check(&mut self, node: &Node, value: f64, range: Range, unit: &str) -> Option<f64> {
        if range.contains(value) {
            return Some(value);
        }
        let unit = match range {
            Range::Within(..) if !unit.is_empty() => format!(" {unit}"),
            _ => String::new(),
        };
        self.errors.push(
            Diagnostic::error(format!("`{}` is out of range", self.path))
                .at(node.place.clone(), format!("must be {range}{unit}")),
        );
        None
    }

    fn inner<T>(&mut self, path: String, decode: impl FnOnce(&mut Context) -> Option<T>) -> Option<T> {
        decode(&mut Context { path, units: self.units, errors: self.errors })
    }
}

/// What may stand as the value of a key.
pub trait Kind {
    /// What reading code gets.
    type Value: Clone;
    /// What is expected, for messages and documentation: `a length (such as "9 A")`.
    fn expects(&self, units: UnitSystem) -> String;
    /// The value, or `None` after having said what is wrong.
    fn decode(&self, node: &Node, context: &mut Context) -> Option<Self::Value>;
    /// The value as TOML, for the echo.
    fn echo(&self, value: &Self::Value, units: UnitSystem) -> String;
    /// Some allowed value, if there is one.
    fn sample(&self) -> Option<Self::Value>;
    /// Some allowed value as TOML, for messages.
    fn example(&self, units: UnitSystem) -> String {
        self.sample().map(|value| self.echo(&value, units)).unwrap_or_default()
    }
}

fn sample_of(range: Range) -> f64 {
    match range {
        Range::Any | Range::Positive | Range::NonNegative => 1.0,
        Range::Within(a, b) => a + (b - a) / 2.0,
        Range::Integer(a, _) => f64::from(a),
    }
}

fn expects_in(what: String, range: Range, unit: &str) -> String {
    match range {
        Range::Any => what,
        Range::Within(..) if !unit.is_empty() => format!("{what}, {range} {unit}"),
        _ => format!("{what}, {range}"),
    }
}

/// A number as TOML that reads back to the same bits.
fn toml_float(value: f64) -> String {
    format!("{value:?}")
}

/// See [`quantity`].
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    dimension: Dimension,
    range: Range,
}

/// A number with a dimension: a string with a unit, or a bare number in the declared units. The value is in
/// internal units.
pub fn quantity(dimension: Dimension) -> Quantity {
    Quantity { dimension, range: Range::Any }
}

impl Quantity {
    /// A parameter of an energy.
    pub fn of(param: &Param) -> Self {
        quantity(param.dimension).range(param.range)
    }

    /// The allowed values, in internal units.
    pub fn range(mut self, range: Range) -> Self {
        self.range = range;
        self
    }

    /// Publications often say ε/k in kelvin.
    fn temperature_for_energy(&self, text: &str, units: UnitSystem) -> Option<String> {
        if self.dimension != Dimension::ENERGY || units == UnitSystem::Lj {
            return None;
        }
        let (kelvin, found) = units::parse_quantity(text, units).ok()?;
        let energy: f64 = format!("{:.5e}", kelvin * units::constants::BOLTZMANN).parse().ok()?;
        (found == Dimension::TEMPERATURE)
            .then(|| format!("times Boltzmann's constant that is \"{energy} kJ/mol\""))
    }

    fn unit(&self, units: UnitSystem) -> String {
        let inside = if units == UnitSystem::Lj { units } else { UnitSystem::Md };
        units::symbol(self.dimension, inside)
    }
}

impl Kind for Quantity {
    type Value = f64;

    fn expects(&self, units: UnitSystem) -> String {
        expects_in(units::expectation(self.dimension, units), self.range, &self.unit(units))
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<f64> {
        let text = match &node.value {
            Value::Text(s) | Value::Integer(s) | Value::Float(s) => s,
            _ => return context.wrong(node, &units::expectation(self.dimension, context.units)),
        };
        match units::read_quantity(text, self.dimension, context.units) {
            Ok(value) => {
                let checked = context.check(node, value, self.range, &self.unit(context.units));
                let angle = matches!(self.range, Range::Within(_, most) if most == std::f64::consts::PI);
                if let (None, true, Some(error)) = (checked, angle, context.errors.last_mut()) {
                    // a text with a unit means what it says
                    error.help.push(match text.trim().parse::<f64>() {
                        Ok(_) => format!("that is in radians; degrees have their unit: \"{text} deg\""),
                        Err(_) => "an angle between two bonds is at most half a turn: \"180 deg\"".to_owned(),
                    });
                }
                checked
            }
            Err(error) => {
                let label = error.help.or_else(|| self.temperature_for_energy(text, context.units));
                let label = label.unwrap_or_default();
                let not_a_number = error.message.starts_with("expected a number");
                let message = if not_a_number {
                    format!(
                        "expected {}, found {}",
                        units::expectation(self.dimension, context.units),
                        node.found()
                    )
                } else {
                    error.message
                };
                context.errors.push(
                    Diagnostic::error(format!("`{}`: {message}", context.path))
                        .at(node.inside(text, error.span), label),
                );
                None
            }
        }
    }

    fn echo(&self, value: &f64, units: UnitSystem) -> String {
        if units == UnitSystem::Lj || self.dimension == Dimension::NONE {
            toml_float(*value)
        } else {
            toml_string(&units::format_quantity(*value, self.dimension, units))
        }
    }

    fn sample(&self) -> Option<f64> {
        Some(sample_of(self.range))
    }

    fn example(&self, units: UnitSystem) -> String {
        if units == UnitSystem::Lj || self.dimension == Dimension::NONE {
            return toml_float(sample_of(self.range));
        }
        let example = units::example(self.dimension);
        match units::parse_quantity(&example, units) {
            Ok((value, _)) if self.range.contains(value) => toml_string(&example),
            _ => self.echo(&sample_of(self.range), units),
        }
    }
}

/// See [`float`].
#[derive(Clone, Copy, Debug)]
pub struct Float {
    range: Range,
}

/// A plain finite number.
pub fn float() -> Float {
    Float { range: Range::Any }
}

impl Float {
    /// The allowed values.
    pub fn range(mut self, range: Range) -> Self {
        self.range = range;
        self
    }
}

impl Kind for Float {
    type Value = f64;

    fn expects(&self, _: UnitSystem) -> String {
        expects_in("a number".to_owned(), self.range, "")
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<f64> {
        let (Value::Integer(text) | Value::Float(text)) = &node.value else {
            return context.wrong(node, "a number");
        };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => context.check(node, value, self.range, ""),
            _ => context.wrong(node, "a finite number"),
        }
    }

    fn echo(&self, value: &f64, _: UnitSystem) -> String {
        toml_float(*value)
    }

    fn sample(&self) -> Option<f64> {
        Some(sample_of(self.range))
    }
}

/// See [`integer`].
#[derive(Clone, Copy, Debug)]
pub struct Integer {
    least: i64,
    most: i64,
}

/// A whole number; `1e6` counts as one.
pub fn integer() -> Integer {
    Integer { least: i64::MIN, most: i64::MAX }
}

impl Integer {
    /// The least allowed number.
    pub fn at_least(mut self, least: i64) -> Self {
        self.least = least;
        self
    }

    /// The largest allowed number.
    pub fn at_most(mut self, most: i64) -> Self {
        self.most = most;
        self
    }

    fn range(&self) -> String {
        match (self.least, self.most) {
            (i64::MIN, i64::MAX) => "a whole number".to_owned(),
            (a, i64::MAX) => format!("a whole number ≥ {a}"),
            (i64::MIN, b) => format!("a whole number ≤ {b}"),
            (a, b) => format!("a whole number from {a} to {b}"),
        }
    }
}

impl Kind for Integer {
    type Value = i64;

    fn expects(&self, _: UnitSystem) -> String {
        self.range()
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<i64> {
        let value = match &node.value {
            Value::Integer(text) => match text.parse::<i64>() {
                Ok(n) => n,
                Err(_) => return context.wrong(node, "a whole number of at most 18 digits"),
            },
            // Every whole number up to 2^53 is exact as a float.
            Value::Float(text) => match text.parse::<f64>() {
                Ok(x) if x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0 => x as i64,
                _ => return context.wrong(node, "a whole number"),
            },
            _ => return context.wrong(node, "a whole number"),
        };
        if (self.least..=self.most).contains(&value) {
            return Some(value);
        }
        context.errors.push(
            Diagnostic::error(format!("`{}` is out of range", context.path))
                .at(node.place.clone(), format!("must be {}", self.range())),
        );
        None
    }

    fn echo(&self, value: &i64, _: UnitSystem) -> String {
        value.to_string()
    }

    fn sample(&self) -> Option<i64> {
        Some(1.clamp(self.least, self.most.max(self.least)))
    }
}

/// See [`boolean`].
#[derive(Clone, Copy, Debug)]
pub struct Boolean;

/// `true` or `false`.
pub fn boolean() -> Boolean {
    Boolean
}

impl Kind for Boolean {
    type Value = bool;

    fn expects(&self, _: UnitSystem) -> String {
        "true or false".to_owned()
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<bool> {
        match node.value {
            Value::Boolean(b) => Some(b),
            _ => context.wrong(node, "true or false"),
        }
    }

    fn echo(&self, value: &bool, _: UnitSystem) -> String {
        value.to_string()
    }

    fn sample(&self) -> Option<bool> {
        Some(true)
    }
}

/// See [`text`].
#[derive(Clone, Copy, Debug)]
pub struct Text;

/// Any string.
pub fn text() -> Text {
    Text
}

impl Kind for Text {
    type Value = String;

    fn expects(&self, _: UnitSystem) -> String {
        "a string".to_owned()
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<String> {
        match &node.value {
            Value::Text(s) => Some(s.clone()),
            _ => context.wrong(node, "a string"),
        }
    }

    fn echo(&self, value: &String, _: UnitSystem) -> String {
        toml_string(value)
    }

    fn sample(&self) -> Option<String> {
        Some("name".to_owned())
    }
}

/// See [`path`].
#[derive(Clone, Copy, Debug)]
pub struct FilePath;

/// A file or directory; a relative one starts at the directory of the file it is written in (on the command line,
/// at the current directory). The echo says it in full.
pub fn path() -> FilePath {
    FilePath
}

/// A path written in a text: a relative one starts at the text's directory.
fn beside(source: &Source, path: &Path) -> PathBuf {
    source.path().and_then(Path::parent).map_or_else(|| path.to_owned(), |directory| directory.join(path))
}

impl Kind for FilePath {
    type Value = PathBuf;

    fn expects(&self, _: UnitSystem) -> String {
        "a path".to_owned()
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<PathBuf> {
        match &node.value {
            Value::Text(s) if s.is_empty() => context.wrong(node, "a path"),
            Value::Text(s) => Some(beside(&node.place.source, Path::new(s))),
            _ => context.wrong(node, "a path"),
        }
    }

    fn echo(&self, value: &PathBuf, _: UnitSystem) -> String {
        let full = std::path::absolute(value).unwrap_or_else(|_| value.clone());
        toml_string(&full.to_string_lossy())
    }

    fn sample(&self) -> Option<PathBuf> {
        Some(PathBuf::from("file"))
    }

    fn example(&self, _: UnitSystem) -> String {
        "\"file\"".to_owned()
    }
}

/// See [`one_of`].
#[derive(Clone, Debug)]
pub struct OneOf<T> {
    options: Vec<(String, T)>,
}

/// One of several words, each of which stands for a value.
pub fn one_of<N: Into<String>, T>(options: impl IntoIterator<Item = (N, T)>) -> OneOf<T> {
    OneOf { options: options.into_iter().map(|(name, value)| (name.into(), value)).collect() }
}

/// One of several words, as such.
pub fn word<N: Into<String>>(options: impl IntoIterator<Item = N>) -> OneOf<String> {
    one_of(options.into_iter().map(|name| {
        let name = name.into();
        (name.clone(), name)
    }))
}

fn alternatives<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(toml_string).collect();
    match names.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

impl<T: Clone + PartialEq> Kind for OneOf<T> {
    type Value = T;

    fn expects(&self, _: UnitSystem) -> String {
        alternatives(self.options.iter().map(|(name, _)| name.as_str()))
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<T> {
        let expected = self.expects(context.units);
        let Value::Text(text) = &node.value else { return context.wrong(node, &expected) };
        if let Some((_, value)) = self.options.iter().find(|(name, _)| name == text) {
            return Some(value.clone());
        }
        let label = did_you_mean(text, self.options.iter().map(|(name, _)| name.as_str()))
            .map(|best| format!("did you mean {}?", toml_string(best)))
            .unwrap_or_default();
        let message = format!("`{}`: expected {expected}, found {}", context.path, node.found());
        context.errors.push(Diagnostic::error(message).at(node.place.clone(), label));
        None
    }

    fn echo(&self, value: &T, _: UnitSystem) -> String {
        let name = self.options.iter().find(|(_, v)| v == value).map_or("", |(name, _)| name);
        toml_string(name)
    }

    fn sample(&self) -> Option<T> {
        self.options.first().map(|(_, value)| value.clone())
    }
}

/// See [`either`].
#[derive(Clone, Copy, Debug)]
pub struct EitherKind<A, B>(A, B);

/// The value of one of two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// Of the first kind.
    Left(A),
    /// Of the second kind.
    Right(B),
}

/// One kind, or else another: `"none"` or a length, say. Messages about a value that is neither are those of the
/// kind that it is nearer to.
pub fn either<A: Kind, B: Kind>(a: A, b: B) -> EitherKind<A, B> {
    EitherKind(a, b)
}

impl<A: Kind, B: Kind> Kind for EitherKind<A, B> {
    type Value = Either<A::Value, B::Value>;

    fn expects(&self, units: UnitSystem) -> String {
        format!("{}, or {}", self.0.expects(units), self.1.expects(units))
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<Self::Value> {
        let path = context.path.clone();
        let mut ignored = Vec::new();
        let first = self.0.decode(node, &mut Context { path, units: context.units, errors: &mut ignored });
        if let Some(value) = first {
            return Some(Either::Left(value));
        }
        let path = context.path.clone();
        let mut errors = Vec::new();
        let second = self.1.decode(node, &mut Context { path, units: context.units, errors: &mut errors });
        if let Some(value) = second {
            return Some(Either::Right(value));
        }
        let of_another_kind = |errors: &[Diagnostic]| match errors {
            [error] => {
                let here = error.primary.as_ref().is_some_and(|(place, _)| *place == node.place);
                let expected = here && error.message.contains(": expected ");
                expected && !error.message.contains(" element") || error.message.contains("found the string")
            }
            _ => false,
        };
        if of_another_kind(&ignored) && of_another_kind(&errors) {
            context.wrong::<()>(node, &self.expects(context.units));
            let guess = ignored.pop().and_then(|error| error.primary).map(|(_, label)| label);
            let said = context.errors.last_mut().and_then(|error| error.primary.as_mut());
            if let (Some(guess), Some((_, label))) = (guess, said) {
                *label = guess;
            }
            return None;
        }
        if let [error] = errors.as_mut_slice()
            && error.message.ends_with("is not a finite number")
        {
            error.help.push(format!("or write {}", self.0.expects(context.units)));
        }
        // The one with fewer mistakes was meant.
        context.errors.append(if ignored.len() < errors.len() { &mut ignored } else { &mut errors });
        None
    }

    fn echo(&self, value: &Self::Value, units: UnitSystem) -> String {
        match value {
            Either::Left(a) => self.0.echo(a, units),
            Either::Right(b) => self.1.echo(b, units),
        }
    }

    fn sample(&self) -> Option<Self::Value> {
        self.1.sample().map(Either::Right)
    }

    fn example(&self, units: UnitSystem) -> String {
        self.1.example(units)
    }
}

/// See [`list`].
#[derive(Clone, Copy, Debug)]
pub struct List<K> {
    of: K,
    least: usize,
    most: usize,
}

/// An array of any length.
pub fn list<K: Kind>(of: K) -> List<K> {
    List { of, least: 0, most: usize::MAX }
}

impl<K> List<K> {
    /// The least number of elements.
    pub fn at_least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }
    /// Exactly this number of elements.
    pub fn exactly(mut self, count: usize) -> Self {
        (self.least, self.most) = (count, count);
        self
    }
}

/// See [`placed`].
#[derive(Clone, Copy, Debug)]
pub struct Placed<K>(K);

/// A value together with where it is written: for the elements of arrays.
pub fn placed<K: Kind>(of: K) -> Placed<K> {
    Placed(of)
}

impl<K: Kind> Kind for Placed<K> {
    type Value = Located<K::Value>;

    fn expects(&self, units: UnitSystem) -> String {
        self.0.expects(units)
    }
    fn decode(&self, node: &Node, context: &mut Context) -> Option<Self::Value> {
        let value = self.0.decode(node, context)?;
        Some(Located { value, place: node.place.clone(), given: true })
    }
    fn echo(&self, value: &Self::Value, units: UnitSystem) -> String {
        self.0.echo(value, units)
    }
    fn sample(&self) -> Option<Self::Value> {
        let place = Place::whole(&Source::named("", ""));
        Some(Located { value: self.0.sample()?, place, given: false })
    }
    fn example(&self, units: UnitSystem) -> String {
        self.0.example(units)
    }
}

fn count_of(elements: usize) -> String {
    format!("{elements} element{}", if elements == 1 { "" } else { "s" })
}

/// Says that an array is expected; where the value would do as an element, also how it becomes one.
fn not_an_array<A: Kind, K: Kind, T>(
    array: &A,
    of: &K,
    count: usize,
    node: &Node,
    context: &mut Context,
) -> Option<T> {
    context.wrong::<T>(node, &array.expects(context.units));
    let (path, mut ignored) = (context.path.clone(), Vec::new());
    let element = of.decode(node, &mut Context { path, units: context.units, errors: &mut ignored });
    if let (Some(_), Some(error)) = (element, context.errors.last_mut()) {
        let values = match &node.value {
            Value::Text(text) if count == 1 => vec![toml_string(text)],
            // "A-B" instead of ["A", "B"]
            Value::Text(text) => text.split('-').map(|part| toml_string(part.trim())).collect(),
            _ => vec![node.place.text().to_owned(); count],
        };
        if values.len() == count {
            error.help.push(format!("write `[{}]`", values.join(", ")));
        }
    }
    None
}

fn decode_items<K: Kind>(of: &K, items: &[Node], context: &mut Context) -> Option<Vec<K::Value>> {
    let values: Vec<Option<K::Value>> = items
        .iter()
        .enumerate()
        .map(|(i, item)| context.inner(format!("{}[{i}]", context.path), |c| of.decode(item, c)))
        .collect();
    values.into_iter().collect()
}

fn echo_items<K: Kind>(of: &K, items: &[K::Value], units: UnitSystem) -> String {
    let items: Vec<String> = items.iter().map(|item| of.echo(item, units)).collect();
    format!("[{}]", items.join(", "))
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn expects(&self, units: UnitSystem) -> String {
        let count = match self.least {
            0 => String::new(),
            n if n == self.most => format!(" of {n}"),
            n => format!(" of at least {n}"),
        };
        format!("an array{count}, each {}", self.of.expects(units))
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<Self::Value> {
        let Value::Array(items) = &node.value else {
            return not_an_array(self, &self.of, self.least.max(1), node, context);
        };
        if items.len() < self.least || items.len() > self.most {
            let least = if self.least == self.most { "" } else { "at least " };
            let message = format!(
                "`{}`: expected {least}{}, found {}",
                context.path,
                count_of(self.least),
                if items.is_empty() { "none".to_owned() } else { items.len().to_string() }
            );
            context.errors.push(Diagnostic::error(message).at(node.place.clone(), ""));
            return None;
        }
        decode_items(&self.of, items, context)
    }

    fn echo(&self, value: &Self::Value, units: UnitSystem) -> String {
        echo_items(&self.of, value, units)
    }

    fn sample(&self) -> Option<Self::Value> {
        Some(vec![self.of.sample()?; self.least.max(1)])
    }

    fn example(&self, units: UnitSystem) -> String {
        format!("[{}]", vec![self.of.example(units); self.least.max(1)].join(", "))
    }
}

/// See [`array()`].
#[derive(Clone, Copy, Debug)]
pub struct Array<const N: usize, K> {
    of: K,
}

/// An array of exactly `N` elements, such as a vector of three lengths.
pub fn array<const N: usize, K: Kind>(of: K) -> Array<N, K> {
    Array { of }
}

impl<const N: usize, K: Kind> Kind for Array<N, K> {
    type Value = [K::Value; N];

    fn expects(&self, units: UnitSystem) -> String {
        format!("an array of {N}, each {}", self.of.expects(units))
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<Self::Value> {
        let Value::Array(items) = &node.value else {
            return not_an_array(self, &self.of, N, node, context);
        };
        if items.len() != N {
            let message = format!("`{}`: expected {}, found {}", context.path, count_of(N), items.len());
            context.errors.push(Diagnostic::error(message).at(node.place.clone(), ""));
            return None;
        }
        decode_items(&self.of, items, context)?.try_into().ok()
    }

    fn echo(&self, value: &Self::Value, units: UnitSystem) -> String {
        echo_items(&self.of, value, units)
    }

    fn sample(&self) -> Option<Self::Value> {
        let one = self.of.sample()?;
        Some(std::array::from_fn(|_| one.clone()))
    }

    fn example(&self, units: UnitSystem) -> String {
        format!("[{}]", vec![self.of.example(units); N].join(", "))
    }
}

/// See [`map`].
#[derive(Clone, Copy, Debug)]
pub struct Map<K> {
    of: K,
}

/// A table from any names to values of one kind, in the order of the file.
pub fn map<K: Kind>(of: K) -> Map<K> {
    Map { of }
}

impl<K: Kind> Kind for Map<K> {
    type Value = Vec<(String, K::Value)>;

    fn expects(&self, units: UnitSystem) -> String {
        format!("a table of names, each {}", self.of.expects(units))
    }

    fn decode(&self, node: &Node, context: &mut Context) -> Option<Self::Value> {
        let Value::Table(entries) = &node.value else {
            return context.wrong(node, &self.expects(context.units));
        };
        let values: Vec<Option<(String, K::Value)>> = entries
            .iter()
            .map(|entry| {
                let path = format!("{}.{}", context.path, toml_key(&entry.key));
                let value = context.inner(path, |c| self.of.decode(&entry.node, c))?;
                Some((entry.key.clone(), value))
            })
            .collect();
        values.into_iter().collect()
    }

    fn echo(&self, value: &Self::Value, units: UnitSystem) -> String {
        let entries: Vec<String> =
            value.iter().map(|(k, v)| format!("{} = {}", toml_key(k), self.of.echo(v, units))).collect();
        if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
    }

    fn sample(&self) -> Option<Self::Value> {
        Some(vec![("name".to_owned(), self.of.sample()?)])
    }

    fn example(&self, units: UnitSystem) -> String {
        format!("{{ name = {} }}", self.of.example(units))
    }
}

#[derive(Debug, Default)]
struct Asked {
    names: Vec<String>,
    missing: Vec<Missing>,
}

#[derive(Debug)]
struct Missing {
    name: String,
    help: String,
}

/// One table of the document, being read.
///
/// [`finish`](Self::finish) reports every key that nobody asked for. A section that is dropped does so too,
/// unless a mistake was recorded since it was opened: then reading may have stopped half-way, and the keys that
/// remain need not be wrong.
#[derive(Debug)]
pub struct Section<'d> {
    document: &'d Document,
    entries: &'d [Entry],
    place: Place,
    path: String,
    pattern: String,
    units: Cell<UnitSystem>,
    echo: usize,
    asked: RefCell<Asked>,
    errors_at_start: usize,
    finished: bool,
}

impl<'d> Section<'d> {
    /// The document.
    pub fn document(&self) -> &'d Document {
        self.document
    }

    /// Where the table begins.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The path of the table, such as `stage[0].integrator`; empty for the whole document.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What bare numbers mean here.
    pub fn units(&self) -> UnitSystem {
        self.units.get()
    }

    /// Says what bare numbers mean from here on, in this table and those that are opened from it.
    pub fn set_units(&self, units: UnitSystem) {
        self.units.set(units);
    }

    /// A value as if written at this table.
    pub fn located<T>(&self, value: T) -> Located<T> {
        Located { value, place: self.place.clone(), given: false }
    }

    /// Whether the user wrote this key.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|e| e.key == name)
    }

    /// Records a mistake that reading code found by itself.
    pub fn report(&self, diagnostic: Diagnostic) -> Reported {
        self.document.report(diagnostic)
    }

    /// States a key: its name, what it may be, what it means. Nothing happens before it is said whether the key is
    /// [required](Key::required), [optional](Key::optional) or [has a default](Key::or).
    pub fn read<'s, K: Kind>(&'s self, name: &'s str, kind: K, doc: &'s str) -> Key<'s, 'd, K> {
        Key { section: self, name, kind, doc }
    }

    /// Writes a value that was computed into the echo.
    pub fn record<K: Kind>(&self, name: &str, kind: &K, value: &K::Value, comment: &str) {
        let comment = (!comment.is_empty()).then(|| one_line(comment));
        self.document.say(self.echo, name, kind.echo(value, self.units()), comment);
    }

    fn find(&self, name: &str) -> Option<&'d Entry> {
        self.asked.borrow_mut().names.push(name.to_owned());
        self.entries.iter().find(|e| e.key == name)
    }

    fn inner_path(&self, name: &str) -> String {
        join(&self.path, &toml_key(name))
    }

    fn note(&self, name: &str, kind: String, presence: Presence, doc: &str) {
        let path = join(&self.pattern, name);
        self.document.note_key(KeyDoc { path, kind, presence, doc: doc.to_owned() });
    }

    fn miss(&self, name: &str, help: String) -> Reported {
        self.asked.borrow_mut().missing.push(Missing { name: name.to_owned(), help });
        Reported(())
    }

    fn open(
        &self,
        entries: &'d [Entry],
        place: Place,
        path: String,
        pattern: String,
        echo: usize,
    ) -> Section<'d> {
        Section {
            document: self.document,
            entries,
            place,
            path,
            pattern,
            units: self.units.clone(),
            echo,
            asked: RefCell::default(),
            errors_at_start: self.document.log.borrow().diagnostics.len(),
            finished: false,
        }
    }

    fn open_node(&self, name: &str, node: &'d Node) -> Result<Section<'d>, Reported> {
        let Value::Table(entries) = &node.value else {
            return Err(self.not_a_table(&self.inner_path(name), node, "a table", None));
        };
        let echo = self.document.new_table(self.echo, name, false);
        Ok(self.open(entries, node.place.clone(), self.inner_path(name), join(&self.pattern, name), echo))
    }

    fn open_empty(&self, name: &str, pattern: &str) -> Section<'d> {
        let echo = self.document.new_table(self.echo, name, false);
        self.open(&[], self.place.clone(), self.inner_path(name), join(&self.pattern, pattern), echo)
    }

    fn not_a_table(&self, path: &str, node: &Node, expected: &str, help: Option<String>) -> Reported {
        let message = format!("`{path}`: expected {expected}, found {}", node.found());
        self.report(Diagnostic::error(message).at(node.place.clone(), "").maybe_help(help))
    }

    /// A table that may be left out.
    ///
    /// # Errors
    /// When the key is not a table.
    pub fn section(&self, name: &str, doc: &str) -> Result<Option<Section<'d>>, Reported> {
        self.note(name, "a table".to_owned(), Presence::Optional, doc);
        match self.find(name) {
            Some(entry) => self.open_node(name, &entry.node).map(Some),
            None if self.document.survey => Ok(Some(self.open_empty(name, name))),
            None => Ok(None),
        }
    }

    /// A table that, left out, is empty: its defaults apply and are echoed.
    ///
    /// # Errors
    /// When the key is not a table.
    pub fn section_or_empty(&self, name: &str, doc: &str) -> Result<Section<'d>, Reported> {
        self.note(name, "a table".to_owned(), Presence::Optional, doc);
        match self.find(name) {
            Some(entry) => self.open_node(name, &entry.node),
            None => Ok(self.open_empty(name, name)),
        }
    }

    /// A table that must be there.
    ///
    /// # Errors
    /// When it is not, or the key is not a table.
    pub fn required_section(&self, name: &str, doc: &str) -> Result<Section<'d>, Reported> {
        self.note(name, "a table".to_owned(), Presence::Required, doc);
        match self.find(name) {
            Some(entry) => self.open_node(name, &entry.node),
            None if self.document.survey => Ok(self.open_empty(name, name)),
            None => Err(self.miss(name, format!("a table `[{}]` is needed: {doc}", self.inner_path(name)))),
        }
    }

    /// The tables of an array of tables (`[[name]]`), or of an array of inline tables; none when left out.
    ///
    /// # Errors
    /// When the key is something else.
    pub fn sections(&self, name: &str, doc: &str) -> Result<Vec<Section<'d>>, Reported> {
        self.note(name, "an array of tables".to_owned(), Presence::Optional, doc);
        let pattern = join(&self.pattern, &format!("{name}[]"));
        let path = self.inner_path(name);
        let Some(entry) = self.find(name) else {
            if !self.document.survey {
                return Ok(Vec::new());
            }
            let echo = self.document.new_table(self.echo, name, true);
            return Ok(vec![self.open(&[], self.place.clone(), format!("{path}[0]"), pattern, echo)]);
        };
        let Value::Array(items) = &entry.node.value else {
            let help = matches!(entry.node.value, Value::Table(_)).then(|| format!("write `[[{path}]]`"));
            return Err(self.not_a_table(&path, &entry.node, "an array of tables", help));
        };
        let mut opened = Vec::new();
        let mut failed = None;
        for (i, item) in items.iter().enumerate() {
            let path = format!("{path}[{i}]");
            if let Value::Table(entries) = &item.value {
                let echo = self.document.new_table(self.echo, name, true);
                opened.push(self.open(entries, item.place.clone(), path, pattern.clone(), echo));
            } else {
                failed = Some(self.not_a_table(&path, item, "a table", None));
            }
        }
        failed.map_or(Ok(opened), Err)
    }

    /// A table of tables with names of the user's or, if `allowed` is given, of the program's choice, in the order
    /// of the file; none when left out.
    ///
    /// # Errors
    /// When the key or one of its members is not a table, or a name is not allowed.
    pub fn named(
        &self,
        name: &str,
        allowed: Option<&[&str]>,
        doc: &str,
    ) -> Result<Vec<(Located<String>, Section<'d>)>, Reported> {
        let kind = allowed.map_or("tables by name".to_owned(), |a| {
            format!("tables named {}", alternatives(a.iter().copied()))
        });
        self.note(name, kind, Presence::Optional, doc);
        // (all names of a catalogue would be too many to read)
        self.members(name, allowed, Some(format!("`md explain {name}` lists what there is")))
    }

    /// The members of this table that were not asked for by name, in the order of the file: each a table, or an
    /// array of tables, under a name of the user's.
    ///
    /// # Errors
    /// When one of them is something else.
    pub fn rows(&self, doc: &str) -> Result<Vec<(Located<String>, Vec<Section<'d>>)>, Reported> {
        self.note("*", "a table, or an array of tables".to_owned(), Presence::Optional, doc);
        if self.document.survey {
            let name = Located { value: "*".to_owned(), place: self.place.clone(), given: false };
            return Ok(vec![(name, vec![self.open_empty("*", "*")])]);
        }
        let (mut rows, mut failed) = (Vec::new(), None);
        let asked = self.asked.borrow().names.clone();
        for entry in self.entries.iter().filter(|e| !asked.contains(&e.key)) {
            let sections = match &entry.node.value {
                Value::Table(_) => self.open_node(&entry.key, &entry.node).map(|section| vec![section]),
                Value::Array(_) => self.sections(&entry.key, doc),
                // beside keys, a plain value is a misspelled key rather than a row: `finish` says so
                _ if !asked.is_empty() => continue,
                _ => {
                    let help = format!("write `{} = {{ … }}`: {doc}", toml_key(&entry.key));
                    let path = self.inner_path(&entry.key);
                    Err(self.not_a_table(&path, &entry.node, "a table", Some(help)))
                }
            };
            self.asked.borrow_mut().names.push(entry.key.clone());
            match sections {
                Ok(mut sections) => {
                    for section in &mut sections {
                        section.pattern = join(&self.pattern, "*");
                    }
                    let name =
                        Located { value: entry.key.clone(), place: entry.key_place.clone(), given: true };
                    rows.push((name, sections));
                }
                Err(reported) => failed = Some(reported),
            }
        }
        failed.map_or(Ok(rows), Err)
    }

    fn members(
        &self,
        name: &str,
        allowed: Option<&[&str]>,
        help: Option<String>,
    ) -> Result<Vec<(Located<String>, Section<'d>)>, Reported> {
        let Some(entry) = self.find(name) else {
            if !self.document.survey {
                return Ok(Vec::new());
            }
            let parent = self.open_empty(name, name);
            let names = allowed.map_or(vec!["*"], <[&str]>::to_vec);
            let open = |n: &str| {
                let located = Located { value: n.to_owned(), place: self.place.clone(), given: false };
                (located, parent.open_empty(n, n))
            };
            return Ok(names.into_iter().map(open).collect());
        };
        let parent = self.open_node(name, &entry.node)?;
        let mut opened = Vec::new();
        let mut failed = None;
        for member in parent.entries {
            parent.asked.borrow_mut().names.push(member.key.clone());
            let known = allowed.is_none_or(|a| a.contains(&member.key.as_str()));
            if !known {
                let known = allowed.unwrap_or_default();
                failed = Some(parent.report(parent.unknown(member, known, "name", help.clone())));
                continue;
            }
            match parent.open_node(&member.key, &member.node) {
                Ok(mut section) => {
                    let shown = if allowed.is_some() { member.key.as_str() } else { "*" };
                    section.pattern = join(&parent.pattern, shown);
                    let place = member.key_place.clone();
                    opened.push((Located { value: member.key.clone(), place, given: true }, section));
                }
                Err(reported) => failed = Some(reported),
            }
        }
        failed.map_or(Ok(opened), Err)
    }

    /// A table that chooses a variant by the name of its only member (`[integrator.velocity-verlet]`); a variant
    /// without keys of its own may be written as a string (`integrator = "velocity-verlet"`). `options` are names
    /// and what they mean.
    pub fn variant<'s>(
        &'s self,
        name: &'s str,
        options: &'s [(&'s str, &'s str)],
        doc: &'s str,
    ) -> Variant<'s, 'd> {
        Variant { section: self, name, options, doc }
    }

    /// Reports every key that was not asked for.
    pub fn finish(mut self) {
        self.finished = true;
        self.flush(true);
    }

    fn title(&self) -> String {
        match self.path.as_str() {
            "" => "at the top level".to_owned(),
            path if path.ends_with(']') => format!("in {path}"),
            path => format!("in [{path}]"),
        }
    }

    /// Where else a key of this name is known: a key below a table's header belongs to that table.
    fn elsewhere(&self, key: &str) -> Option<String> {
        let log = self.document.log.borrow();
        let path = log.keys.iter().map(|k| k.path.as_str()).find(|path| {
            path.strip_suffix(key).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })?;
        let table = path.strip_suffix(key).map(|t| t.trim_end_matches('.'))?;
        Some(match table {
            "" => format!("`{key}` stands at the top level, before the first table"),
            table => format!("`{key}` is a key of `{table}`"),
        })
    }

    /// `help`: instead of a list of what is known.
    fn unknown(&self, entry: &Entry, known: &[&str], what: &str, help: Option<String>) -> Diagnostic {
        // A key that is not there yet is the likelier one.
        let best = did_you_mean(&entry.key, known.iter().copied().filter(|k| !self.has(k)))
            .or_else(|| did_you_mean(&entry.key, known.iter().copied()));
        let elsewhere = if best.is_some() { None } else { self.elsewhere(&entry.key) };
        let label = best.map(|best| format!("did you mean `{best}`?")).unwrap_or_default();
        let mut listed: Vec<String> = known.iter().take(40).map(|k| format!("`{k}`")).collect();
        if known.len() > listed.len() {
            listed.push("…".to_owned());
        }
        let list = || (!listed.is_empty()).then(|| format!("known here: {}", listed.join(", ")));
        let help = help.or_else(list);
        Diagnostic::error(format!("unknown {what} `{}` {}", entry.key, self.title()))
            .at(entry.key_place.clone(), label)
            .maybe_help(elsewhere)
            .maybe_help(help)
    }

    fn flush(&self, complete: bool) {
        let asked = std::mem::take(&mut *self.asked.borrow_mut());
        let mut known: Vec<&str> = asked.names.iter().map(String::as_str).collect();
        let mut seen = std::collections::HashSet::new();
        known.retain(|k| seen.insert(*k));
        let unread: Vec<&Entry> = self.entries.iter().filter(|e| !seen.contains(e.key.as_str())).collect();
        let mut said = Vec::new();
        for missing in &asked.missing {
            // A misspelled required key is one mistake, not two.
            if let Some(entry) =
                unread.iter().find(|e| did_you_mean(&e.key, [missing.name.as_str()]).is_some())
            {
                said.push(entry.key.as_str());
                self.report(self.unknown(entry, &known, "key", None));
                continue;
            }
            let message = format!("missing key `{}` {}", missing.name, self.title());
            let diagnostic = Diagnostic::error(message).help(missing.help.clone());
            let place = self.place.clone();
            self.report(match place.source.path() {
                Some(path) if place.span.is_empty() => diagnostic.file(path),
                _ => diagnostic.at(place, ""),
            });
        }
        if complete {
            for entry in unread.iter().filter(|e| !said.contains(&e.key.as_str())).take(100) {
                self.report(self.unknown(entry, &known, "key", None));
            }
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let sound = self.asked.borrow().missing.is_empty()
                && self.document.log.borrow().diagnostics.len() == self.errors_at_start;
            self.flush(sound);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A key of a [`Section`], stated and not yet read.
#[must_use = "a key is read by `required`, `optional` or `or`"]
#[derive(Debug)]
pub struct Key<'s, 'd, K> {
    section: &'s Section<'d>,
    name: &'s str,
    kind: K,
    doc: &'s str,
}

impl<K: Kind> Key<'_, '_, K> {
    fn note(&self, presence: Presence) {
        self.section.note(self.name, self.kind.expects(self.section.units()), presence, self.doc);
    }

    fn given(&self) -> Result<Option<Located<K::Value>>, Reported> {
        let section = self.section;
        let Some(entry) = section.find(self.name) else { return Ok(None) };
        let mut errors = Vec::new();
        let mut context =
            Context { path: section.inner_path(self.name), units: section.units(), errors: &mut errors };
        let value = self.kind.decode(&entry.node, &mut context);
        let mut failed = None;
        for mut error in errors {
            // how many there should be follows from what they mean
            if error.help.is_empty() && error.message.contains(" element") {
                error.help.push(self.doc.to_owned());
            }
            failed = Some(section.report(error));
        }
        match (value, failed) {
            (Some(value), None) => {
                let text = self.kind.echo(&value, section.units());
                section.document.say(section.echo, self.name, text, None);
                Ok(Some(Located { value, place: entry.node.place.clone(), given: true }))
            }
            (_, Some(reported)) => Err(reported),
            (None, None) => {
                let message = format!("`{}` cannot be used", section.inner_path(self.name));
                Err(section.report(Diagnostic::error(message).at(entry.node.place.clone(), "")))
            }
        }
    }

    fn invented(&self, value: K::Value) -> Located<K::Value> {
        Located { value, place: self.section.place.clone(), given: false }
    }

    /// Reads a key that must be there.
    ///
    /// # Errors
    /// When it is not, or its value is wrong.
    pub fn required(self) -> Result<Located<K::Value>, Reported> {
        self.note(Presence::Required);
        if let Some(found) = self.given()? {
            return Ok(found);
        }
        if self.section.document.survey
            && let Some(sample) = self.kind.sample()
        {
            return Ok(self.invented(sample));
        }
        let example = self.kind.example(self.section.units());
        let help = format!("write `{} = {example}`: {}", toml_key(self.name), self.doc);
        Err(self.section.miss(self.name, help))
    }

    /// Reads a key that may be left out.
    ///
    /// # Errors
    /// When its value is wrong.
    pub fn optional(self) -> Result<Option<Located<K::Value>>, Reported> {
        self.note(Presence::Optional);
        match self.given()? {
            None if self.section.document.survey => {
                Ok(self.kind.sample().map(|sample| self.invented(sample)))
            }
            found => Ok(found),
        }
    }

    /// Reads a key with a default (a quantity in internal units), which is echoed.
    ///
    /// # Errors
    /// When its value is wrong.
    pub fn or(self, default: K::Value) -> Result<Located<K::Value>, Reported> {
        let says = self.kind.echo(&default, self.section.units());
        self.fall_back(default, says, "default")
    }

    /// Reads a key with a default that depends on other things; `says` tells the reader of the documentation on
    /// which.
    ///
    /// # Errors
    /// When its value is wrong.
    pub fn or_computed(self, default: K::Value, says: &str) -> Result<Located<K::Value>, Reported> {
        let comment = format!("default: {}", one_line(says));
        self.fall_back(default, says.to_owned(), &comment)
    }

    fn fall_back(
        self,
        default: K::Value,
        says: String,
        comment: &str,
    ) -> Result<Located<K::Value>, Reported> {
        self.note(Presence::Default(says));
        if let Some(found) = self.given()? {
            return Ok(found);
        }
        self.section.record(self.name, &self.kind, &default, comment);
        Ok(self.invented(default))
    }
}

/// A choice between tables, stated and not yet read; see [`Section::variant`].
#[must_use = "a variant is read by `required`, `optional` or `or`"]
#[derive(Debug)]
pub struct Variant<'s, 'd> {
    section: &'s Section<'d>,
    name: &'s str,
    options: &'s [(&'s str, &'s str)],
    doc: &'s str,
}

impl<'d> Variant<'_, 'd> {
    /// Reads a choice that must be made. `read` gets the name and its table.
    ///
    /// # Errors
    /// When nothing or too much is chosen, or `read` fails.
    pub fn required<T>(
        self,
        read: impl FnMut(&str, &Section<'d>) -> Result<T, Reported>,
    ) -> Result<Located<T>, Reported> {
        let (section, name) = (self.section, self.name);
        let first = self.options.first().map_or("", |(name, _)| name);
        let help = format!("write `[{}.{first}]`: {}", section.inner_path(name), self.doc);
        match self.choose(Presence::Required, read)? {
            Some(found) => Ok(found),
            None => Err(section.miss(name, help)),
        }
    }

    /// Reads a choice that need not be made.
    ///
    /// # Errors
    /// When too much is chosen, or `read` fails.
    pub fn optional<T>(
        self,
        read: impl FnMut(&str, &Section<'d>) -> Result<T, Reported>,
    ) -> Result<Option<Located<T>>, Reported> {
        self.choose(Presence::Optional, read)
    }

    /// Reads a choice that, left out, falls on `default` with all its defaults.
    ///
    /// # Errors
    /// When too much is chosen, or `read` fails.
    pub fn or<T>(
        self,
        default: &str,
        mut read: impl FnMut(&str, &Section<'d>) -> Result<T, Reported>,
    ) -> Result<Located<T>, Reported> {
        let (section, name) = (self.section, self.name);
        if let Some(found) = self.choose(Presence::Default(toml_string(default)), &mut read)? {
            return Ok(found);
        }
        let table = section.open_empty(name, name);
        let member = table.open_empty(default, default);
        let value = read(default, &member)?;
        Ok(Located { value, place: section.place.clone(), given: false })
    }

    fn choose<T>(
        self,
        presence: Presence,
        mut read: impl FnMut(&str, &Section<'d>) -> Result<T, Reported>,
    ) -> Result<Option<Located<T>>, Reported> {
        let Self { section, name, options, doc } = self;
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        section.note(name, format!("one of {}", alternatives(names.iter().copied())), presence, doc);
        for (option, doc) in options {
            let member = join(name, option);
            section.note(&member, "a table".to_owned(), Presence::Optional, doc);
        }
        let path = section.inner_path(name);
        let Some(entry) = section.find(name) else {
            if !section.document.survey {
                return Ok(None);
            }
            let table = section.open_empty(name, name);
            let mut last = Err(Reported(()));
            for (option, _) in options {
                last = read(option, &table.open_empty(option, option));
            }
            return Ok(Some(Located { value: last?, place: section.place.clone(), given: false }));
        };
        match &entry.node.value {
            Value::Text(chosen) => {
                let Some(option) = names.iter().find(|n| *n == chosen) else {
                    let label = did_you_mean(chosen, names.iter().copied())
                        .map(|best| format!("did you mean \"{best}\"?"))
                        .unwrap_or_default();
                    let expected = alternatives(names.iter().copied());
                    let message = format!("`{path}`: expected {expected}, found {}", entry.node.found());
                    return Err(
                        section.report(Diagnostic::error(message).at(entry.node.place.clone(), label))
                    );
                };
                let table = section.open_empty(name, name);
                let mut member = table.open_empty(option, option);
                member.place = entry.node.place.clone();
                let value = read(option, &member)?;
                Ok(Some(Located { value, place: entry.node.place.clone(), given: true }))
            }
            Value::Table(_) => {
                let mut members = section.members(name, Some(&names), None)?;
                if let [(first, _), (second, _), ..] = members.as_slice() {
                    let message = format!("`{path}` is one of several, and {} are given", members.len());
                    return Err(section.report(
                        Diagnostic::error(message)
                            .at(second.place.clone(), "one too many")
                            .also(first.place.clone(), "the first one")
                            .help("keep one of them"),
                    ));
                }
                let Some((tag, member)) = members.pop() else {
                    let expected = alternatives(names.iter().copied());
                    let message = format!("`{path}`: expected a table named {expected}, found none");
                    return Err(section.report(Diagnostic::error(message).at(entry.node.place.clone(), "")));
                };
                let value = read(&tag.value, &member)?;
                Ok(Some(Located { value, place: tag.place, given: true }))
            }
            _ => {
                let expected = alternatives(names.iter().copied());
                let help = names.first().map(|first| format!("such as `{name}.{first} = {{ … }}`: {doc}"));
                Err(section.not_a_table(&path, &entry.node, &expected, help))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the tests read: a bit of everything.
    #[derive(Clone, Debug, PartialEq)]
    struct Input {
        units: UnitSystem,
        cutoff: f64,
        cell: [f64; 3],
        skin: Option<Either<String, f64>>,
        charges: Vec<(String, f64)>,
        angle: f64,
        steps: i64,
        shift: bool,
        groups: Vec<Vec<i64>>,
        stages: Vec<(String, f64, Option<f64>)>,
        types: Vec<(String, f64)>,
        title: String,
    }

    fn integrator(name: &str, t: &Section) -> Result<(String, f64, Option<f64>), Reported> {
        let step = t.read("step", quantity(Dimension::TIME).range(Range::Positive), "time step").or(0.001);
        let friction = match name {
            "langevin" => {
                let kind = quantity(Dimension::TIME.powi(-1)).range(Range::NonNegative);
                Some(*t.read("friction", kind, "coupling to the bath").required()?)
            }
            _ => None,
        };
        Ok((name.to_owned(), *step?, friction))
    }

    const INTEGRATORS: &[(&str, &str)] =
        &[("velocity-verlet", "constant energy"), ("langevin", "constant temperature")];

    fn read(document: &Document) -> Result<Input, Reported> {
        let root = document.root();
        let units = *root.read("units", one_of(UnitSystem::ALL), "of bare numbers").or(UnitSystem::Md)?;
        root.set_units(units);
        let title = root.read("title", text(), "for people").or(String::new());

        let t = root.required_section("system", "the box")?;
        let length = quantity(Dimension::LENGTH).range(Range::Positive);
        let cutoff = t.read("cutoff", length, "how far pairs see each other").required();
        let cell = t.read("cell", array::<3, _>(length), "edges of the box").or([3.0; 3]);
        let skin = t.read("skin", either(word(["none"]), length), "of the pair list").optional();
        let charges = t.read("charges", map(quantity(Dimension::CHARGE)), "by type").or(Vec::new());
        let angle = t.read("angle", quantity(Dimension::NONE).range(Range::Within(0.0, 3.2)), "tilt").or(1.5);
        let steps = t.read("steps", integer().at_least(0), "how many").or(100);
        let shift = t.read("shift", boolean(), "of the energy").or(true);
        let groups = t.read("groups", list(list(integer().at_least(0))), "of atoms").or(Vec::new());
        t.finish();

        let mut stages = Vec::new();
        for stage in root.sections("stage", "one after another")? {
            let chosen = stage
                .variant("integrator", INTEGRATORS, "how time advances")
                .or("velocity-verlet", integrator);
            stage.finish();
            stages.push(chosen);
        }
        let mut types = Vec::new();
        for (name, t) in root.named("types", None, "kinds of atoms")? {
            let mass =
                t.read("mass", quantity(Dimension::MASS).range(Range::Positive), "of one atom").required();
            t.finish();
            types.push((name.value, *mass?));
        }
        root.finish();
        Ok(Input {
            units,
            cutoff: *cutoff?,
            cell: cell?.value,
            skin: skin?.map(|s| s.value),
            charges: charges?.value,
            angle: *angle?,
            steps: *steps?,
            shift: *shift?,
            groups: groups?.value,
            stages: stages.into_iter().map(|s| s.map(|s| s.value)).collect::<Result<_, _>>()?,
            types,
            title: title?.value,
        })
    }

    fn parse(text: &str, set: &[(&str, &str)]) -> Result<(Input, String), Diagnostics> {
        let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let document = Document::parse("in.toml", text, &set)?;
        let input = read(&document);
        document.check()?;
        let input = input.map_err(|_| Diagnostics::from(Diagnostic::error("failed without saying why")))?;
        Ok((input, document.echo()))
    }

    fn good(text: &str) -> Input {
        parse(text, &[]).unwrap_or_else(|e| panic!("{e}")).0
    }

    fn bad(text: &str) -> String {
        parse(text, &[]).expect_err("this is wrong").render(false)
    }

    fn bad_set(text: &str, set: &[(&str, &str)]) -> String {
        parse(text, set).expect_err("this is wrong").render(false)
    }

    const SMALL: &str = "[system]\ncutoff = 0.9\n";

    #[test]
    fn everything_is_read() {
        let input = good(
            "title = 'all of it'
units = 'real'
[system]
cutoff = 9
cell = ['3 nm', 30, 31.5]
skin = '2 A'
charges = { O = '-0.8 e', H = 0.4 }
angle = '90 deg'
steps = 1e3
shift = false
groups = [[1, 0x10], []]
[[stage]]
integrator = 'velocity-verlet'
[[stage]]
integrator.langevin = { step = 2, friction = '1 /ps' }
[types.O]
mass = 15.999
[types.H]
mass = '1.008 u'
",
        );
        let expected = Input {
            units: UnitSystem::Real,
            cutoff: 0.9,
            cell: [3.0, 3.0, 3.15],
            skin: Some(Either::Right(0.2)),
            charges: vec![("O".into(), -0.8), ("H".into(), 0.4)],
            angle: std::f64::consts::FRAC_PI_2,
            steps: 1000,
            shift: false,
            groups: vec![vec![1, 16], vec![]],
            stages: vec![("velocity-verlet".into(), 0.001, None), ("langevin".into(), 0.002, Some(1.0))],
            types: vec![("O".into(), 15.999), ("H".into(), 1.008)],
            title: "all of it".into(),
        };
        assert_eq!(input, expected);
    }

    #[test]
    fn the_echo_says_every_default_and_reads_back() {
        let text = "units = 'metal'\n[system]\ncutoff = 9\ncharges = { 'a b' = 0.1 }\n[[stage]]\n";
        let (input, echo) = parse(text, &[("system.skin", "none"), ("title", "a \"title\"\n\u{1}")]).unwrap();
        assert_eq!(
            echo,
            r#"units = "metal"
title = "a \"title\"\n\u0001"

[system]
cutoff = "0.9 nm"
cell = ["3 nm", "3 nm", "3 nm"] # default
skin = "none"
charges = { "a b" = "0.1 e" }
angle = 1.5 # default
steps = 100 # default
shift = true # default
groups = [] # default

[[stage]]

[stage.integrator.velocity-verlet]
step = "0.001 ps" # default
"#
        );
        let (again, second) = parse(&echo, &[]).unwrap();
        assert_eq!(again, input);
        assert_eq!(second.replace(" # default", ""), echo.replace(" # default", ""));
    }

    #[test]
    fn overrides_replace_and_create() {
        let set = [
            ("system.cutoff", "12 A"),
            ("system.groups", "[[1], [2]]"),
            ("stage[0].integrator.langevin.friction", "5 /ps"),
            ("types.O.mass", "16"),
            ("system.steps", "7"),
        ];
        let (input, _) = parse("[system]\ncutoff = 0.9\nsteps = 3\n[[stage]]\n", &set).unwrap();
        assert_eq!(input.cutoff, 1.2);
        assert_eq!(input.groups, [[1], [2]]);
        assert_eq!(input.stages, [("langevin".to_owned(), 0.001, Some(5.0))]);
        assert_eq!(input.types, [("O".to_owned(), 16.0)]);
        assert_eq!(input.steps, 7);
        assert_eq!(parse("", &[("system.cutoff", "1")]).unwrap().0.cutoff, 1.0);
    }

    #[test]
    fn paths_start_at_the_file() {
        let document =
            Document::parse("inputs/water.toml", "a = 'w.gro'\nc = '/x'\n", &[("b".into(), "v.gro".into())]);
        let document = document.unwrap();
        let root = document.root();
        assert_eq!(*root.read("a", path(), "").required().unwrap(), Path::new("inputs/w.gro"));
        assert_eq!(*root.read("b", path(), "").required().unwrap(), Path::new("v.gro"));
        assert_eq!(*root.read("c", path(), "").required().unwrap(), Path::new("/x"));
        let full = std::path::absolute("inputs/w.gro").unwrap();
        assert!(document.echo().starts_with(&format!("a = {}\n", toml_string(&full.to_string_lossy()))));
    }

    #[test]
    fn a_survey_visits_every_key() {
        let document = Document::survey();
        read(&document).expect("a survey reads to the end");
        let keys = document.keys();
        let paths: Vec<&str> = keys.iter().map(|k| k.path.as_str()).collect();
        for path in [
            "units",
            "system",
            "system.cutoff",
            "system.charges",
            "stage[].integrator",
            "stage[].integrator.langevin",
            "stage[].integrator.langevin.friction",
            "stage[].integrator.velocity-verlet.step",
            "types.*.mass",
        ] {
            assert!(paths.contains(&path), "{path} is not in {paths:?}");
        }
        let cutoff = keys.iter().find(|k| k.path == "system.cutoff").unwrap();
        assert_eq!(cutoff.kind, "a length (such as \"9 A\"), > 0");
        assert_eq!(cutoff.presence, Presence::Required);
        let steps = keys.iter().find(|k| k.path == "system.steps").unwrap();
        assert_eq!(steps.presence, Presence::Default("100".into()));
        assert!(document.check().is_ok());
        // A real reading of the same code asks for nothing else.
        let real = Document::parse("in.toml", "[system]\ncutoff = 1\n[[stage]]\n[types.O]\nmass = 1\n", &[])
            .unwrap();
        read(&real).unwrap();
        for key in real.keys() {
            assert!(keys.contains(&key), "{key:?}");
        }
    }

    #[test]
    fn unknown_keys() {
        assert_eq!(
            bad("[system]\ncutoff = 0.9\nstps = 3\nfoo = 4\n"),
            "error: unknown key `stps` in [system]
 --> in.toml:3:1
  |
3 | stps = 3
  | ^^^^ did you mean `steps`?
  |
  = help: known here: `cutoff`, `cell`, `skin`, `charges`, `angle`, `steps`, `shift`, `groups`

error: unknown key `foo` in [system]
 --> in.toml:4:1
  |
4 | foo = 4
  | ^^^
  |
  = help: known here: `cutoff`, `cell`, `skin`, `charges`, `angle`, `steps`, `shift`, `groups`

2 problems"
        );
        let misplaced = bad("[system]\ncutoff = 1\nunits = 'real'");
        assert!(misplaced.contains("`units` stands at the top level, before the first table"), "{misplaced}");
    }

    #[test]
    fn a_misspelled_required_key_is_one_mistake() {
        assert_eq!(
            bad("[system]\ncuttoff = 0.9\n"),
            "error: unknown key `cuttoff` in [system]
 --> in.toml:2:1
  |
2 | cuttoff = 0.9
  | ^^^^^^^ did you mean `cutoff`?
  |
  = help: known here: `cutoff`, `cell`, `skin`, `charges`, `angle`, `steps`, `shift`, `groups`"
        );
    }

    #[test]
    fn wrong_types_and_dimensions() {
        assert_eq!(
            bad("[system]\ncutoff = true\n"),
            "error: `system.cutoff`: expected a length (such as \"9 A\"), found the boolean true
 --> in.toml:2:10
  |
2 | cutoff = true
  |          ^^^^"
        );
        assert_eq!(
            bad("[system]\ncutoff = \"9 kJ/mol\" # far\n"),
            "error: `system.cutoff`: expected a length (such as \"9 A\"), found an energy (kJ/mol)
 --> in.toml:2:13
  |
2 | cutoff = \"9 kJ/mol\" # far
  |             ^^^^^^"
        );
        let escaped = bad("[system]\ncutoff = \"9 \\u006bJ/mol\"\n");
        assert!(escaped.contains("in.toml:2:10"), "{escaped}");
        let lj = bad("units = 'lj'\n[system]\ncutoff = '9 A'\n");
        assert!(lj.contains("the physical unit `A` in a file with `units = \"lj\"`"), "{lj}");
    }

    #[test]
    fn wrong_units_ranges_and_choices() {
        assert_eq!(
            bad("[system]\ncutoff = '9 nmm'\n"),
            "error: `system.cutoff`: unknown unit `nmm`
 --> in.toml:2:13
  |
2 | cutoff = '9 nmm'
  |             ^^^ did you mean `nm`?"
        );
        assert_eq!(
            bad("[system]\ncutoff = -1\n"),
            "error: `system.cutoff` is out of range
 --> in.toml:2:10
  |
2 | cutoff = -1
  |          ^^ must be > 0"
        );
        assert_eq!(
            bad("units = 'reel'\n[system]\ncutoff = 1\n"),
            "error: `units`: expected \"md\", \"real\", \"metal\" or \"lj\", found the string \"reel\"
 --> in.toml:1:9
  |
1 | units = 'reel'
  |         ^^^^^^ did you mean \"real\"?"
        );
        for (value, says) in [
            ("nan", "`nan` is not a finite number"),
            ("-inf", "`-inf` is not a finite number"),
            ("1e999", "the number is too large"),
            ("''", "an empty text"),
            ("1979-05-27", "found the date 1979-05-27"),
            ("[1]", "found an array"),
            ("{}", "found a table"),
        ] {
            let text = bad(&format!("[system]\ncutoff = {value}\n"));
            assert!(text.contains(says), "{text}");
        }
        for (value, says) in [
            ("99999999999999999999999", "at most 18 digits"),
            ("1.5", "expected a whole number, found the number 1.5"),
            ("inf", "expected a whole number"),
            ("-1", "must be a whole number ≥ 0"),
        ] {
            let text = bad(&format!("[system]\ncutoff = 1\nsteps = {value}\n"));
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn missing_keys() {
        assert_eq!(
            bad("[system]\n"),
            "error: missing key `cutoff` in [system]
 --> in.toml:1:1
  |
1 | [system]
  | ^^^^^^^^
  |
  = help: write `cutoff = \"9 A\"`: how far pairs see each other"
        );
        assert_eq!(
            bad(""),
            "error: missing key `system` at the top level\n--> in.toml\n = help: a table `[system]` is needed: the box"
        );
    }

    #[test]
    fn syntax_errors_and_duplicates() {
        assert_eq!(
            bad("[system]\ncutoff = 9 A\n"),
            "error: not valid TOML: a value without quotes
 --> in.toml:2:10
  |
2 | cutoff = 9 A
  |          ^^^
  |
  = help: a text or a quantity with its unit stands in quotes: `cutoff = \"9 A\"`"
        );
        assert_eq!(
            bad("[system]\ncutoff = 1\ncutoff = 2\n"),
            "error: the key `cutoff` is written twice
 --> in.toml:3:1
  |
2 | cutoff = 1
  | ------ first here
3 | cutoff = 2
  | ^^^^^^ again here"
        );
        assert_eq!(
            bad("[system]\ncutoff = 1\n[types]\n[system]\n"),
            "error: the table `system` is written twice
 --> in.toml:4:2
  |
1 | [system]
  |  ------ first here
...
4 | [system]
  |  ^^^^^^ again here"
        );
        let deep = format!("x = {}", "[".repeat(100_000));
        let deep = bad(&deep);
        assert!(deep.contains("nested too deeply"), "{}", deep.chars().take(1000).collect::<String>());
    }

    #[test]
    fn several_mistakes_are_told_together() {
        let text = bad("[system]
cutoff = 1
cell = [1, 2]
skin = 'nne'
angle = '400 deg'
shift = 1
groups = [[1], [-2, 'a']]
charges = { O = '1 K' }
");
        for says in [
            "`system.cell`: expected 3 elements, found 2",
            "`system.skin`: expected \"none\", or a length (such as \"9 A\"), > 0, found the string \"nne\"",
            "^^^^^ did you mean \"none\"?",
            "must be from 0 to 3.2",
            "`system.shift`: expected true or false, found the integer 1",
            "`system.groups[1][0]` is out of range",
            "`system.groups[1][1]`: expected a whole number, found the string \"a\"",
            "`system.charges.O`: expected a charge (such as \"-0.8 e\"), found a temperature (K)",
            "7 problems",
        ] {
            assert!(text.contains(says), "{says} is not in\n{text}");
        }
    }

    #[test]
    fn wrong_variants_and_tables() {
        let with = |rest: &str| bad(&format!("{SMALL}{rest}"));
        assert!(with("[stage]\n").contains("help: write `[[stage]]`"));
        assert!(with("[[stage]]\n[stage.integrator.langevn]\n").contains("did you mean `langevin`?"));
        assert!(with("[[stage]]\nintegrator = 'verlet'\n").contains("did you mean \"velocity-verlet\"?"));
        assert!(with("[[stage]]\nintegrator = {}\n").contains("expected a table named"));
        assert!(with("[[stage]]\nintegrator = 1\n").contains("expected \"velocity-verlet\" or \"langevin\""));
        let two = with("[[stage]]\n[stage.integrator.langevin]\n[stage.integrator.velocity-verlet]\n");
        assert!(two.contains("`stage[0].integrator` is one of several, and 2 are given"), "{two}");
        let missing = with("[[stage]]\nintegrator = 'langevin'\n");
        assert!(missing.contains("missing key `friction` in [stage[0].integrator.langevin]"), "{missing}");
        assert!(with("[types]\nO = 1\n").contains("`types.O`: expected a table, found the integer 1"));
    }

    #[test]
    fn wrong_overrides() {
        assert_eq!(
            bad_set(SMALL, &[("system.cutoff", "9 kJ/mol")]),
            "error: `system.cutoff`: expected a length (such as \"9 A\"), found an energy (kJ/mol)
 --> command line:1:23
  |
1 | --set system.cutoff=9 kJ/mol
  |                       ^^^^^^"
        );
        assert_eq!(
            bad_set(SMALL, &[("system.cutoff.x", "3")]),
            "error: `system.cutoff` is not a table
 --> command line:1:21
  |
1 | --set system.cutoff.x=3
  |                     ^ cannot be set inside the number 0.9
  |
 ::: in.toml:2:10
  |
2 | cutoff = 0.9
  |          --- its value"
        );
        for (key, value, says) in [
            ("system.cutof", "1", "did you mean `cutoff`?"),
            ("system", "3", "expected a table, found the integer 3"),
            ("a..b", "1", "a key is missing in the path"),
            ("", "1", "a key is missing in the path"),
            ("'a", "1", "a quote is never closed"),
            ("a b", "1", "expected `.` between two keys"),
            ("a[x]", "1", "an index is a whole number in brackets"),
            ("stage[3].x", "1", "`stage` is an array of 1"),
            ("system.cutoff", "[1", "not valid TOML: unclosed array"),
            ("system.cell", "[1, 2, -3]", "must be > 0"),
        ] {
            let text = bad_set(&format!("{SMALL}[[stage]]\n"), &[(key, value)]);
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_or_not_text() {
        let missing = Document::open("no/such/file.toml", &[]).unwrap_err().render(false);
        assert!(missing.contains("the input cannot be read") && missing.contains("no/such/file.toml"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a = \xff").unwrap();
        assert!(
            Document::open(file.path(), &[])
                .unwrap_err()
                .render(false)
                .contains("is not UTF-8 text (byte 5 of line 1)")
        );
    }

    fn read_whatever(text: &str, key: &str, value: &str) {
        if let Err(found) = parse(text, &[(key, value)]) {
            let _ = (found.render(false), found.render(true));
        }
        let _ = parse(text, &[]).map_err(|e| e.render(false));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), key in any::<String>(), value in any::<String>()) {
            read_whatever(&text, &key, &value);
        }

        #[test]
        fn nearly_right_text_is_read_or_refused(
            parts in prop::collection::vec(prop::sample::select(vec![
                "[system]\n", "[[stage]]\n", "[stage]\n", "[types.O]\n", "[stage.integrator.langevin]\n", "units = ",
                "cutoff = ", "cell = ", "charges = ", "integrator = ", "integrator.langevin.step = ", "mass = ",
                "steps = ", "title = ", "\"9 A\"", "'real'", "0.9", "1e999", "nan", "[1, 2, 3]", "{ O = 1 }", "[", "]",
                "{", "}", "\n", "\r\n", "\"", "'", "\"\"\"", "#", "=", ".", ",", "\t", "ü", "\u{feff}", "\\u0041", "0x1",
                "system", "a.b.c", "true",
            ]), 0..24),
            key in "[a-z.\\[\\]0-9'\"]{0,12}|system\\.[a-z]{3,7}|stage\\[0\\]\\.[a-z]{1,4}",
            value in "[-0-9a-z.\\[\\]{}'\"= ]{0,10}",
        ) {
            read_whatever(&parts.concat(), &key, &value);
        }

        #[test]
        fn the_echo_reads_back_to_the_same_bits(
            cutoff in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL,
            charge in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO, name in any::<String>(),
            title in any::<String>(), which in 0usize..4, a in 1e-9..1e9f64,
        ) {
            let cutoff = cutoff.abs();
            let system = UnitSystem::ALL[which].0;
            let text = format!(
                "units = '{system}'\ntitle = {}\n[system]\ncutoff = {cutoff:?}\ncell = [{a:?}, 1, 2]\ncharges = {{ {} = {charge:?} }}\n[[stage]]\n",
                toml_string(&title), toml_key(&name),
            );
            // In other units a number may leave the range of floats.
            let Ok((input, echo)) = parse(&text, &[]) else {
                prop_assert!(which != 0 && which != 3);
                return Ok(());
            };
            let (again, second) = parse(&echo, &[]).map_err(|e| TestCaseError::fail(format!("{echo}\n{e}")))?;
            prop_assert_eq!(again.cutoff.to_bits(), input.cutoff.to_bits());
            prop_assert_eq!(again.cell.map(f64::to_bits), input.cell.map(f64::to_bits));
            prop_assert_eq!(again.charges[0].1.to_bits(), input.charges[0].1.to_bits());
            prop_assert_eq!(&again, &input);
            prop_assert_eq!(second.replace(" # default", ""), echo.replace(" # default", ""));
        }
    }
}
