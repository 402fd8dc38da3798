//! Lines with their numbers, and decimal numbers whose point moves exactly.

use std::fmt::Write as _;
use std::io::BufRead;

use super::frame::FormatError;

/// Reads lines as bytes and counts them; one line can be put back.
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: usize,
    offset: u64,
    again: bool,
    ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Lines { reader, line: Vec::new(), number: 0, offset: 0, again: false, ended: false }
    }

    /// Moves to the next line; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, FormatError> {
        if self.again {
            self.again = false;
            return Ok(true);
        }
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        let read =
            read.map_err(|e| FormatError::at(self.number + 1, None, format!("cannot be read: {e}")))?;
        if read == 0 {
            return Ok(false);
        }
        self.offset += read as u64;
        self.number += 1;
        self.ended = self.line.ends_with(b"\n");
        while self.line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(true)
    }

    /// Makes the next `advance` return this same line again.
    pub(super) fn put_back(&mut self) {
        self.again = true;
    }

    /// The number of the line last read, from 1.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The byte after the line last read.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the line last read ended with a newline, as opposed to the end of the file.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// The line last read, without its end.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.line
    }

    /// The line last read as text; bytes that are not UTF-8 become U+FFFD.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.line)
    }

    /// Whether the line last read holds nothing but blanks.
    pub(super) fn is_blank(&self) -> bool {
        self.line.iter().all(u8::is_ascii_whitespace)
    }

    /// An error in the line last read.
    pub(super) fn error(&self, message: impl Into<String>) -> FormatError {
        FormatError::at(self.number, None, message)
    }

    /// An error about the end of the file: it names the line that is missing.
    pub(super) fn error_at_end(&self, message: impl Into<String>) -> FormatError {
        FormatError::at(self.number + 1, None, message)
    }
}

/// The decimal number in `token`, times 10 to the power `shift`, correctly rounded.
///
/// The shift is done on the decimal digits, so `parse(write(x, 1), -1)` is `x` to the bit. Fortran's
/// `d` exponents are understood; `nan` and `inf` are too, unless there is a shift.
pub(super) fn parse_shifted(token: &str, shift: i32) -> Option<f64> {
    let split = token.find(['e', 'E', 'd', 'D']);
    if shift == 0 && !split.is_some_and(|at| matches!(token.as_bytes()[at], b'd' | b'D')) {
        return token.parse().ok();
    }
    let (mantissa, exponent) = match split {
        Some(at) => (&token[..at], token[at + 1..].parse::<i32>().ok()?),
        None => (token, 0),
    };
    if !mantissa.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+')) {
        return None;
    }
    // Beyond these every f64 is 0 or infinite, whatever the digits of a line of sane length.
    let exponent = exponent.clamp(-1_000_000, 1_000_000) + shift;
    format!("{mantissa}e{exponent}").parse().ok()
}

/// Appends `x` times 10 to the power `shift`, in the fewest digits from which [`parse_shifted`] with
/// `-shift` gives back the same bits.
pub(super) fn write_shifted(out: &mut String, x: f64, shift: i32) {
    if !x.is_finite() {
        let _ = write!(out, "{x}");
        return;
    }
    let start = out.len();
    let _ = write!(out, "{x:e}");
    let written = out.split_off(start);
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0) + shift;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(|&c| c != '.').collect();
    out.push_str(sign);
    match exponent {
        _ if digits == "0" => out.push_str("0.0"),
        -5..0 => {
            out.push_str("0.");
            (exponent..-1).for_each(|_| out.push('0'));
            out.push_str(&digits);
        }
        0..17 => {
            let whole = exponent as usize + 1;
            if digits.len() <= whole {
                out.push_str(&digits);
                (digits.len()..whole).for_each(|_| out.push('0'));
                out.push_str(".0");
            } else {
                out.push_str(&digits[..whole]);
                out.push('.');
                out.push_str(&digits[whole..]);
            }
        }
        _ => {
            let _ = write!(out, "{mantissa}e{exponent}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shifted(x: f64, shift: i32) -> String {
        let mut s = String::new();
        write_shifted(&mut s, x, shift);
        s
    }

    #[test]
    fn decimal_point_moves() {
        assert_eq!(shifted(0.1234, 1), "1.234");
        assert_eq!(shifted(12.0, 1), "120.0");
        assert_eq!(shifted(-0.001, 1), "-0.01");
        assert_eq!(shifted(0.1 + 0.2, 1), "3.0000000000000004");
        assert_eq!(shifted(0.0, 1), "0.0");
        assert_eq!(shifted(1.5e-30, 1), "1.5e-29");
        assert_eq!(shifted(1e300, 1), "1e301");
        assert_eq!(shifted(1.25, 0), "1.25");
        assert_eq!(parse_shifted("1.234", -1), Some(0.1234));
        assert_eq!(parse_shifted("1.5D3", 0), Some(1500.0));
        assert_eq!(parse_shifted("1.5e3", 2), Some(150_000.0));
        assert_eq!(parse_shifted(".5", -1), Some(0.05));
        for bad in ["", "x", "inf", "nan", "1e", "1e5e5", "--1", "1.2.3", "e5", "é", "1é"] {
            assert_eq!(parse_shifted(bad, -1), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_shift_and_back_keeps_every_bit(x in proptest::num::f64::NORMAL
            | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO, shift in -3i32..4)
        {
            let back = parse_shifted(&shifted(x, shift), -shift).unwrap();
            prop_assert_eq!(back.to_bits(), x.to_bits());
        }

        #[test]
        fn any_token_is_read_or_refused(token in "\\PC*", shift in -3i32..4) {
            let _ = parse_shifted(&token, shift);
        }
    }
}
