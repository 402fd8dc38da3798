//! From text to a tree, with the place of everything that may be wrong.

use super::MAX_DEPTH;
use super::MAX_LENGTH;
use std::ops::Range;

/// What is wrong with a formula, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FormulaError {
    /// What is wrong, in one line.
    pub message: String,
    /// The bytes of the formula that are to blame; empty where something is missing.
    pub span: Range<usize>,
    /// What to do about it.
    pub help: Option<String>,
}

impl FormulaError {
    pub(super) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, help: None }
    }
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A name that occurs in a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: String,
    /// Where it stands first.
    pub span: Range<usize>,
}

/// A formula that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    pub(super) text: String,
    /// Operands stand before what they are operands of; the last node is the whole.
    pub(super) nodes: Vec<Node>,
    pub(super) names: Vec<Name>,
}

/// A node of the tree, with the word that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub kind: Kind,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number(f64),
    /// The index of a name.
    Name(usize),
    Negative(usize),
    Binary(Binary, [usize; 2]),
    Compare(Comparison, [usize; 2]),
    Call(Function, Vec<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

macro_rules! functions {
    ($($Name:ident $text:literal $least:literal $most:expr),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function { $($Name),* }
        impl Function {
            /// What each is called, and how many operands it has: at least, at most.
            const ALL: &[(Function, &str, usize, usize)] = &[$((Function::$Name, $text, $least, $most)),*];
        }
    };
}
functions! {
    Sqrt "sqrt" 1 1, Exp "exp" 1 1, Ln "ln" 1 1, Log "log" 1 1, Log10 "log10" 1 1, Sin "sin" 1 1, Cos "cos" 1 1,
    Tan "tan" 1 1, Asin "asin" 1 1, Acos "acos" 1 1, Atan "atan" 1 1, Sinh "sinh" 1 1, Cosh "cosh" 1 1,
    Tanh "tanh" 1 1, Abs "abs" 1 1, Erf "erf" 1 1, Erfc "erfc" 1 1, Pow "pow" 2 2, Atan2 "atan2" 2 2,
    Min "min" 2 usize::MAX, Max "max" 2 usize::MAX, If "if" 3 3,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// With the bytes of the first word that makes no sense, if there is one. No text makes it panic.
    pub fn parse(text: &str) -> Result<Formula, FormulaError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the formula is {} bytes long", text.len());
            return Err(FormulaError::new(message, 0..0).help(format!("at most {MAX_LENGTH} are read")));
        }
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
            formula: Formula { text: text.into(), nodes: Vec::new(), names: Vec::new() },
        };
        if parser.peek().is_none() {
            return Err(FormulaError::new("the formula is empty", 0..text.len()).help("write one, or `0`"));
        }
        let whole = parser.expression()?;
        parser.number(whole)?;
        match parser.peek() {
            None => Ok(parser.formula),
            Some((')', span)) => Err(FormulaError::new("there is no `(` to this `)`", span)
                .help("take it out, or open the parenthesis")),
            Some((',', span)) => {
                let help = "commas stand between the operands of a function; a decimal point is a `.`";
                Err(FormulaError::new("a `,` outside of any function", span).help(help))
            }
            Some(_) => Err(parser.missing_operator()),
        }
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names that occur, in the order of their first places. Functions and `pi` are not among them.
    pub fn names(&self) -> &[Name] {
        &self.names
    }
}

/// The one of some words that somebody may have meant.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let far = |w: &str| if w == word { usize::MAX } else { strsim::osa_distance(&w.to_lowercase(), &lower) };
    let limit = if lower.chars().count() < 4 { 1 } else { 2 };
    words
        .into_iter()
        .map(|w| (far(w), w))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, w)| w)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    formula: Formula,
}

type Parsed = Result<usize, FormulaError>;

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

impl<'a> Parser<'a> {
    /// The next character that is no space, with its place.
    fn peek(&mut self) -> Option<(char, Range<usize>)> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        let c = self.text[self.at..].chars().next()?;
        Some((c, self.at..self.at + c.len_utf8()))
    }
    /// Takes the next character if it is this one.
    fn take(&mut self, c: char) -> Option<Range<usize>> {
        let (_, span) = self.peek().filter(|(next, _)| *next == c)?;
        self.at = span.end;
        Some(span)
    }
    fn push(&mut self, kind: Kind, span: Range<usize>) -> usize {
        self.formula.nodes.push(Node { kind, span });
        self.formula.nodes.len() - 1
    }
    fn is_condition(&self, node: usize) -> bool {
        matches!(self.formula.nodes[node].kind, Kind::Compare(..))
    }
    /// An error where the node is a comparison.
    fn number(&self, node: usize) -> Parsed {
        if self.is_condition(node) {
            let span = self.formula.nodes[node].span.clone();
            let help = "a comparison stands first in an `if`: `if(x < y, 1, 0)`";
            return Err(FormulaError::new("a comparison is not a number", span).help(help));
        }
        Ok(node)
    }
    /// Runs `f` one level deeper.
    fn deeper(&mut self, f: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth == MAX_DEPTH {
            let span = self.peek().map_or(self.at..self.at, |(_, span)| span);
            let help = "write it with fewer parentheses";
            return Err(FormulaError::new(
                format!("the formula is nested more than {MAX_DEPTH} times"),
                span,
            )
            .help(help));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }
    /// The word at hand cannot follow what comes before it.
    fn missing_operator(&mut self) -> FormulaError {
        let (c, span) = self.peek().unwrap_or((' ', self.at..self.at));
        if c == '=' {
            let help =
                "write the energy itself, without a name before it; compare with `<`, `<=`, `>` or `>=`";
            return FormulaError::new("there are no equations here", span).help(help);
        }
        if starts_name(c) || c.is_ascii_digit() || c == '.' || c == '(' {
            let word = self.word(span);
            let found = &self.text[word.clone()];
            return FormulaError::new(format!("`{found}` follows without an operator"), word)
                .help("a product is written with `*`");
        }
        self.unknown(c, span)
    }
    fn unknown(&self, c: char, span: Range<usize>) -> FormulaError {
        let help = match c {
            '×' | '·' | '∙' | '⋅' => "a product is written with `*`".into(),
            '−' | '–' => "the minus sign is `-`".into(),
            '²' => "a square is written `^2`".into(),
            '³' => "a cube is written `^3`".into(),
            '√' => "a root is written `sqrt(…)`".into(),
            '[' | ']' | '{' | '}' => "parentheses are `(` and `)`".into(),
            '&' | '|' => "conditions are combined by an `if` in an `if`".into(),
            '!' => "compare with `<`, `<=`, `>` or `>=`".into(),
            _ => "numbers, names, `+ - * / ^`, parentheses and functions are what a formula is made of"
                .to_owned(),
        };
        FormulaError::new(format!("`{}` has no meaning here", c.escape_debug()), span).help(help)
    }
    /// The name or number that begins there.
    fn word(&self, start: Range<usize>) -> Range<usize> {
        let rest = &self.text[start.clone()];
        if rest == "(" {
            return start;
        }
        let tail = &self.text[start.start..];
        let end = tail.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(tail.len());
        start.start..(start.start + end).max(start.end)
    }

    /// A comparison, or a sum.
    fn expression(&mut self) -> Parsed {
        let a = self.sum()?;
        let Some((c, first)) = self.peek().filter(|(c, _)| matches!(c, '<' | '>')) else { return Ok(a) };
        self.at = first.end;
        let equal = self.text[self.at..].starts_with('=');
        self.at += usize::from(equal);
        let span = first.start..self.at;
        let comparison = match (c, equal) {
            ('<', false) => Comparison::Less,
            ('<', true) => Comparison::LessOrEqual,
            (_, false) => Comparison::Greater,
            (_, true) => Comparison::GreaterOrEqual,
        };
        let b = self.sum()?;
        if let Some((_, again)) = self.peek().filter(|(c, _)| matches!(c, '<' | '>')) {
            let help = "write `if(a < b, if(b < c, x, y), y)`";
            return Err(FormulaError::new("two comparisons in a row", again).help(help));
        }
        let (a, b) = (self.number(a)?, self.number(b)?);
        Ok(self.push(Kind::Compare(comparison, [a, b]), span))
    }

    fn sum(&mut self) -> Parsed {
        let mut a = self.product()?;
        loop {
            let (op, span) = match self.peek() {
                Some(('+', span)) => (Binary::Add, span),
                Some(('-', span)) => (Binary::Subtract, span),
                _ => return Ok(a),
            };
            self.at = span.end;
            let b = self.product()?;
            a = self.binary(op, a, b, span)?;
        }
    }

    fn product(&mut self) -> Parsed {
        let mut a = self.signed()?;
        loop {
            let (op, span) = match self.peek() {
                Some(('*', span)) => (Binary::Multiply, span),
                Some(('/', span)) => (Binary::Divide, span),
                _ => return Ok(a),
            };
            self.at = span.end;
            let b = self.signed()?;
            a = self.binary(op, a, b, span)?;
        }
    }

    fn binary(&mut self, op: Binary, a: usize, b: usize, span: Range<usize>) -> Parsed {
        let operands = [self.number(a)?, self.number(b)?];
        Ok(self.push(Kind::Binary(op, operands), span))
    }

    /// A power, perhaps with signs before it.
    fn signed(&mut self) -> Parsed {
        if let Some(span) = self.take('-') {
            let a = self.deeper(Self::signed)?;
            let a = self.number(a)?;
            return Ok(self.push(Kind::Negative(a), span));
        }
        if self.take('+').is_some() {
            return self.deeper(Self::signed);
        }
        self.power()
    }

    fn power(&mut self) -> Parsed {
        let a = self.operand()?;
        let Some(span) = self.take('^') else {
            if self.text[self.at..].starts_with("**") {
                let span = self.at..self.at + 2;
                return Err(
                    FormulaError::new("`**` has no meaning here", span).help("a power is written with `^`")
                );
            }
            return Ok(a);
        };
        let b = self.deeper(Self::signed)?;
        self.binary(Binary::Power, a, b, span)
    }

    fn operand(&mut self) -> Parsed {
        let Some((c, span)) = self.peek() else {
            let end = self.text.trim_end().len();
            return Err(FormulaError::new("the formula ends where a number is missing", end..end)
                .help("a number, a name, a function or `(` should follow"));
        };
        match c {
            '(' => {
                self.at = span.end;
                let inner = self.deeper(Self::expression)?;
                self.close(&span)?;
                Ok(inner)
            }
            c if c.is_ascii_digit() || c == '.' => self.literal(span),
            c if starts_name(c) => self.named(span),
            '+' | '-' | '*' | '/' | '^' | '<' | '>' | ')' | ',' => {
                let message = format!("a number is missing before `{c}`");
                let help = "a number, a name, a function or `(` should stand here";
                Err(FormulaError::new(message, span).help(help))
            }
            '=' => Err(self.missing_operator()),
            c => Err(self.unknown(c, span)),
        }
    }

    /// The `)` to that `(`.
    fn close(&mut self, open: &Range<usize>) -> Result<(), FormulaError> {
        if self.take(')').is_some() {
            return Ok(());
        }
        match self.peek() {
            None => {
                Err(FormulaError::new("there is no `)` to this `(`", open.clone())
                    .help("close the parenthesis"))
            }
            Some((',', span)) => {
                let help = "commas stand between the operands of a function; a decimal point is a `.`";
                Err(FormulaError::new("a `,` outside of any function", span).help(help))
            }
            Some(_) => Err(self.missing_operator()),
        }
    }

    fn literal(&mut self, span: Range<usize>) -> Parsed {
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut end = digits(span.start);
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = end + 1 + sign;
            // (`2exp(x)` has no exponent, but lacks an operator)
            if digits(exponent) > exponent {
                end = digits(exponent);
            }
        }
        let text = &self.text[span.start..end];
        let word = self.word(span.clone());
        let value = text.parse::<f64>().ok().filter(|_| bytes.get(end) != Some(&b'.'));
        let Some(value) = value else {
            let message = format!("`{}` is not a number", &self.text[word.clone()]);
            return Err(FormulaError::new(message, word).help("such as `1`, `0.5` or `1e-3`"));
        };
        if !value.is_finite() {
            let help = "the largest is about 1.8e308";
            return Err(
                FormulaError::new(format!("`{text}` is too large a number"), span.start..end).help(help)
            );
        }
        if self.text[end..].starts_with(starts_name) {
            let name = &self.text[end..word.end];
            let message = format!("`{name}` follows without an operator");
            let help = format!("write `{text}*{name}` for a product; a name does not begin with a digit");
            return Err(FormulaError::new(message, end..word.end).help(help));
        }
        self.at = end;
        Ok(self.push(Kind::Number(value), span.start..end))
    }

    fn named(&mut self, span: Range<usize>) -> Parsed {
        let rest = &self.text[span.start..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let span = span.start..span.start + end;
        let name = &self.text[span.clone()];
        self.at = span.end;
        let function = Function::ALL.iter().find(|(_, text, ..)| *text == name);
        match (function, self.take('(')) {
            (Some(&(function, _, least, most)), Some(open)) => {
                let operands = self.operands(function, &open)?;
                if operands.len() < least || operands.len() > most {
                    let some = |n| if n == 1 { "1 operand".into() } else { format!("{n} operands") };
                    let wanted = match most {
                        usize::MAX => format!("at least {}", some(least)),
                        _ => some(least),
                    };
                    let message = format!("`{name}` takes {wanted}, not {}", operands.len());
                    let help = match function {
                        Function::If => "such as `if(r < 0.5, 1, 0)`".to_owned(),
                        _ if least == 1 => format!("such as `{name}(x)`"),
                        _ => format!("such as `{name}(x, y)`"),
                    };
                    return Err(FormulaError::new(message, span).help(help));
                }
                Ok(self.push(Kind::Call(function, operands), span))
            }
            (Some(&(_, _, least, _)), None) => {
                let message = format!("`{name}` is a function: its operands are missing");
                let help = match least {
                    1 => format!("write `{name}(x)`"),
                    2 => format!("write `{name}(x, y)`"),
                    _ => format!("write `{name}(x < y, a, b)`"),
                };
                Err(FormulaError::new(message, span).help(help))
            }
            (None, Some(_)) => {
                let names = Function::ALL.iter().map(|(_, text, ..)| *text);
                let help = match nearest(name, names.clone()) {
                    Some(best) => format!("did you mean `{best}`?"),
                    None if self.formula.names.iter().any(|n| n.name == name) => {
                        format!("write `{name}*(…)` for a product")
                    }
                    None => {
                        format!(
                            "there are {}; a product is written with `*`",
                            names.collect::<Vec<_>>().join(", ")
                        )
                    }
                };
                Err(FormulaError::new(format!("there is no function `{name}`"), span).help(help))
            }
            (None, None) if name == "pi" => Ok(self.push(Kind::Number(std::f64::consts::PI), span)),
            (None, None) => {
                let known = self.formula.names.iter().position(|n| n.name == name);
                let index = known.unwrap_or_else(|| {
                    self.formula.names.push(Name { name: name.to_owned(), span: span.clone() });
                    self.formula.names.len() - 1
                });
                Ok(self.push(Kind::Name(index), span))
            }
        }
    }

    /// The operands of a function whose parenthesis is open.
    fn operands(&mut self, function: Function, open: &Range<usize>) -> Result<Vec<usize>, FormulaError> {
        let mut operands = Vec::new();
        if self.take(')').is_some() {
            return Ok(operands);
        }
        loop {
            let operand = self.deeper(Self::expression)?;
            let condition = function == Function::If && operands.is_empty();
            if condition && !self.is_condition(operand) {
                let span = self.formula.nodes[operand].span.clone();
                let help = "such as `if(r < 0.5, 1, 0)`";
                return Err(FormulaError::new("the first operand of `if` is a comparison", span).help(help));
            }
            operands.push(if condition { operand } else { self.number(operand)? });
            if self.take(',').is_none() {
                self.close(open)?;
                return Ok(operands);
            }
        }
    }
}
