//! What is wrong with a file, shown with its line and a caret under the word.
//!
//! A [`Diagnostic`] carries the text it points into, so it can be shown long after that file was read. Several
//! of them travel together as [`Diagnostics`], since a file rarely has only one mistake.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// A text that was read, and where it came from.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    path: Option<PathBuf>,
    text: String,
    first_line: usize,
}

impl Source {
    /// The text of a file.
    pub fn file(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Self> {
        let path = path.into();
        let name = path.display().to_string();
        Arc::new(Self { name, path: Some(path), text: text.into(), first_line: 1 })
    }

    /// A text that is not a file, such as an option on the command line.
    pub fn named(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), path: None, text: text.into(), first_line: 1 })
    }

    /// One line of a file, counted from 1.
    pub fn line(path: impl Into<PathBuf>, number: usize, text: impl Into<String>) -> Arc<Self> {
        let path = path.into();
        let name = path.display().to_string();
        Arc::new(Self { name, path: Some(path), text: text.into(), first_line: number.max(1) })
    }

    /// What it is called in a message.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file, unless the text is not one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A range of bytes in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text.
    pub source: Arc<Source>,
    /// The bytes.
    pub span: Range<usize>,
}

impl Place {
    /// The range `span` of `source`.
    pub fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        Self { source: source.clone(), span }
    }

    /// A whole text, or one of no particular part of it.
    pub fn whole(source: &Arc<Source>) -> Self {
        Self::new(source, 0..0)
    }

    /// The text of the range (empty where the range is not one).
    pub fn text(&self) -> &str {
        self.source.text.get(self.span.clone()).unwrap_or("")
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        let end = floor_boundary(&self.source.text, self.span.start);
        self.source.first_line + self.source.text[..end].bytes().filter(|b| *b == b'\n').count()
    }

    /// Within the text, on character boundaries and not beyond the end of its first line: what gets the caret.
    fn caret(&self) -> Range<usize> {
        let text = &self.source.text;
        let start = floor_boundary(text, self.span.start);
        let end = floor_boundary(text, self.span.end).max(start);
        let line = text[start..end].find(['\n', '\r']).map_or(end, |n| start + n);
        start..line
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input cannot be used.
    Error,
    /// It can, but is likely not what was meant.
    Warning,
}

/// One mistake: what, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// The place that gets the caret, and what is said under it.
    pub primary: Option<(Place, String)>,
    /// The file in question where no place in it is to blame.
    pub file: Option<PathBuf>,
    /// Other places that matter.
    pub secondary: Vec<(Place, String)>,
    /// What to do about it.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            primary: None,
            file: None,
            secondary: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning without a place.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// An error in one line of a file, such as a structure file; `columns` are bytes of that line.
    pub fn at_line(
        path: &Path,
        number: usize,
        line: &str,
        columns: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> Self {
        let line = line.trim_end_matches(['\n', '\r']);
        let columns = columns.unwrap_or_else(|| {
            let start = line.len() - line.trim_start().len();
            start..line.trim_end().len().max(start)
        });
        Self::error(message).at(Place::new(&Source::line(path, number, line), columns), "")
    }

    /// Points at a place; the label stands under it and may be empty.
    pub fn at(mut self, place: Place, label: impl Into<String>) -> Self {
        self.primary = Some((place, label.into()));
        self
    }

    /// Names the file, where no place in it is to blame.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Points at another place that matters.
    pub fn also(mut self, place: Place, label: impl Into<String>) -> Self {
        self.secondary.push((place, label.into()));
        self
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// The same, where there is something to say.
    pub fn maybe_help(self, help: Option<String>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// The message with its lines and carets, with colours for a terminal if `color`.
    pub fn render(&self, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(one_line(&self.message)));
        if let Some((place, label)) = &self.primary {
            let caret = place.caret();
            if place.source.text.is_empty() {
                let origin = Origin::path(place.source.name.as_str());
                // (an empty line of a file is a place, an empty file is not)
                let line = place.source.first_line;
                group = group.element(if line > 1 { origin.line(line) } else { origin });
            } else {
                let here = |p: &Place| Arc::ptr_eq(&p.source, &place.source);
                let near: Vec<_> = self.secondary.iter().filter(|(p, _)| here(p)).collect();
                let (excerpt, line, offset) = excerpt(place, near.iter().map(|(p, _)| p.caret()));
                let mut snippet = Snippet::source(excerpt).path(place.source.name.as_str()).line_start(line);
                let shift = |r: Range<usize>| r.start - offset..r.end - offset;
                snippet =
                    snippet.annotation(AnnotationKind::Primary.span(shift(caret)).label(label_text(label)));
                for (p, label) in near {
                    snippet = snippet
                        .annotation(AnnotationKind::Context.span(shift(p.caret())).label(label_text(label)));
                }
                group = group.element(snippet);
            }
            for (p, label) in self.secondary.iter().filter(|(p, _)| !Arc::ptr_eq(&p.source, &place.source)) {
                let (excerpt, line, offset) = excerpt(p, std::iter::empty());
                let caret = p.caret();
                let span = caret.start - offset..caret.end - offset;
                group = group.element(
                    Snippet::source(excerpt)
                        .path(p.source.name.as_str())
                        .line_start(line)
                        .annotation(AnnotationKind::Context.span(span).label(label_text(label))),
                );
            }
        } else if let Some(file) = &self.file {
            group = group.element(Origin::path(file.display().to_string()));
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(one_line(help)));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}

fn label_text(label: &str) -> Option<String> {
    (!label.is_empty()).then(|| one_line(label))
}

/// Text that quotes a file may hold line breaks and control characters; here it is one line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The lines around the places, the number of the first of them, and its offset in the text.
fn excerpt(place: &Place, others: impl Iterator<Item = Range<usize>>) -> (&str, usize, usize) {
    let text = place.source.text.as_str();
    let caret = place.caret();
    let (first, last) = others.fold((caret.start, caret.end), |(a, b), r| (a.min(r.start), b.max(r.end)));
    let start = text[..first].rfind('\n').map_or(0, |n| n + 1);
    let end = text[last..].find('\n').map_or(text.len(), |n| last + n);
    let line = place.source.first_line + text[..start].bytes().filter(|b| *b == b'\n').count();
    (&text[start..end], line, start)
}

/// Several mistakes, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// More than this many are not shown.
    pub const SHOWN: usize = 12;

    /// More than this many are not kept.
    pub const KEPT: usize = 1000;

    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one; the same one twice counts once.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.0.len() < Self::KEPT && !self.0.contains(&diagnostic) {
            self.0.push(diagnostic);
        }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// Brings them into the order of the lines they point at; those without a place come last.
    pub fn sorted(mut self) -> Self {
        self.0.sort_by_key(|d| {
            let at = d.primary.as_ref().map(|(place, _)| place);
            (at.is_none(), at.is_some_and(|p| p.source.path.is_none()), at.map_or(0, |p| p.span.start))
        });
        self
    }

    /// All of them with lines and carets, with a count at the end where there are several.
    pub fn render(&self, color: bool) -> String {
        let mut shown: Vec<String> = self.0.iter().take(Self::SHOWN).map(|d| d.render(color)).collect();
        match self.0.len() {
            0 | 1 => {}
            n if n > Self::SHOWN => shown.push(format!("{n} problems, the first {} shown", Self::SHOWN)),
            n => shown.push(format!("{n} problems")),
        }
        shown.join("\n\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// The known word nearest to a misspelled one, if any is near: by typing errors, as its beginning or as one
/// of its parts.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let fold = |s: &str| s.to_lowercase().replace(['_', ' '], "-");
    let word = fold(word);
    let length = word.chars().count();
    if length > 64 {
        return None;
    }
    known
        .into_iter()
        .filter_map(|k| {
            let folded = fold(k);
            let beginning = length >= 3 && (folded.starts_with(&word) || word.starts_with(&folded))
                || length >= 4 && folded.split('-').any(|part| part == word);
            let distance = strsim::damerau_levenshtein(&folded, &word);
            let limit = (length.max(folded.chars().count()) / 3).max(1);
            // Of two letters one is no typing error but another name; two in the wrong order are.
            let swapped = || {
                let letters = |s: &str| {
                    let mut letters: Vec<char> = s.chars().collect();
                    letters.sort_unstable();
                    letters
                };
                letters(&folded) == letters(&word)
            };
            let near = distance <= limit && distance < length.max(2) && (length > 2 || swapped());
            (near || (beginning && folded.len() >= 3)).then_some((if near { distance } else { limit + 1 }, k))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_shows_its_line() {
        let source = Source::file("in.toml", "a = 1\nb = 2\nc = 3\n");
        let d = Diagnostic::error("b is wrong")
            .at(Place::new(&source, 10..11), "expected 5")
            .also(Place::new(&source, 0..1), "because of this")
            .help("write 5");
        assert_eq!(
            d.render(false),
            "error: b is wrong
 --> in.toml:2:5
  |
1 | a = 1
  | - because of this
2 | b = 2
  |     ^ expected 5
  |
  = help: write 5"
        );
        assert!(d.render(true).contains("\u{1b}["));
    }

    #[test]
    fn a_structure_line() {
        let d = Diagnostic::at_line(Path::new("w.xyz"), 17, "O 0.0 zero 1.0\n", Some(6..10), "not a number");
        assert_eq!(
            d.render(false),
            "error: not a number
  --> w.xyz:17:7
   |
17 | O 0.0 zero 1.0
   |       ^^^^"
        );
        let whole = Diagnostic::at_line(Path::new("w.xyz"), 3, "  O 1 2", None, "three coordinates expected");
        assert!(whole.render(false).ends_with("3 |   O 1 2\n  |   ^^^^^"), "{whole}");
        let empty = Diagnostic::at_line(Path::new("w.xyz"), 3, "", None, "the file ends here");
        assert!(empty.render(false).contains("w.xyz"));
    }

    #[test]
    fn a_file_without_a_place() {
        let d = Diagnostic::error("cannot be read").file("in.toml").help("is it there?");
        assert_eq!(d.render(false), "error: cannot be read\n--> in.toml\n = help: is it there?");
    }

    #[test]
    fn many_are_capped() {
        let mut all = Diagnostics::new();
        for i in 0..30 {
            all.push(Diagnostic::error(format!("number {i}")));
            all.push(Diagnostic::error(format!("number {i}")));
        }
        assert_eq!(all.len(), 30);
        let text = all.render(false);
        assert_eq!(text.matches("error:").count(), 12);
        assert!(text.ends_with("30 problems, the first 12 shown"));
    }

    #[test]
    fn suggestions() {
        let known = ["cutoff", "switch-from", "temperature", "skin"];
        assert_eq!(did_you_mean("cuttoff", known), Some("cutoff"));
        assert_eq!(did_you_mean("cut_off", known), Some("cutoff"));
        assert_eq!(did_you_mean("Cutoff", known), Some("cutoff"));
        assert_eq!(did_you_mean("switch_from", known), Some("switch-from"));
        assert_eq!(did_you_mean("temp", known), Some("temperature"));
        assert_eq!(did_you_mean("sikn", known), Some("skin"));
        assert_eq!(did_you_mean("colour", known), None);
        let types = ["Ar", "HW"];
        assert_eq!(did_you_mean("AR", types), Some("Ar"));
        assert_eq!(did_you_mean("WH", types), Some("HW"));
        assert_eq!(did_you_mean("Kr", types), None);
        assert_eq!(did_you_mean("H", types), None);
        assert_eq!(did_you_mean("", known), None);
    }

    proptest! {
        #[test]
        fn any_place_can_be_shown(text in any::<String>(), a in 0usize..60, b in 0usize..60, c in 0usize..60) {
            let source = Source::file("f", text.clone());
            let d = Diagnostic::error(text.clone())
                .at(Place::new(&source, Range { start: a, end: b }), text.clone())
                .also(Place::new(&source, c..c + 3), "x")
                .help(text.clone());
            let _ = (d.render(false), d.render(true));
            let _ = did_you_mean(&text, ["cutoff", "a"]);
        }

        #[test]
        fn any_lines_can_be_shown(text in "[a\t\r\n ü=]{0,30}", a in 0usize..34, b in 0usize..34, c in 0usize..34) {
            let source = Source::file("f", text);
            let d = Diagnostic::error("m").at(Place::new(&source, a..b.max(a)), "l").also(Place::new(&source, c..c + 1), "x");
            let _ = (d.render(false), d.render(true));
        }

        #[test]
        fn long_lines_can_be_shown(before in 0usize..600, length in 0usize..600, after in 0usize..600) {
            let text = format!("{}{}{}", " x".repeat(before), "y".repeat(length), "z".repeat(after));
            let source = Source::file("f", text);
            let d = Diagnostic::error("m").at(Place::new(&source, 2 * before..2 * before + length), "here");
            let _ = d.render(false);
        }
    }
}
