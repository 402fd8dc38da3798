//! Lines with their numbers, and decimal numbers whose point moves exactly.

use std::fmt::Write as _;
use std::io::{self, BufRead};

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
    // Beyond these every f64 is 0 or infinite, whatever the digits of a line of sane length.
    let exponent = exponent.clamp(-1_000_000, 1_000_000) + shift;
    if let Some(x) = short(mantissa, exponent) {
        return Some(x);
    }
    if !mantissa.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+')) {
        return None;
    }
    let mut buffer = [0; 64];
    let mut rest = &mut buffer[..];
    if io::Write::write_fmt(&mut rest, format_args!("{mantissa}e{exponent}")).is_err() {
        return format!("{mantissa}e{exponent}").parse().ok();
    }
    let length = 64 - rest.len();
    std::str::from_utf8(&buffer[..length]).ok()?.parse().ok()
}

/// The number `mantissa` times 10 to the power `exponent`, if that takes only one rounding: the digits and
/// the power of ten are then both exact as f64.
fn short(mantissa: &str, exponent: i32) -> Option<f64> {
    const POWERS: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
        1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (true, digits.as_bytes()),
        None => (false, mantissa.as_bytes()),
    };
    if digits.is_empty() || digits.len() > 17 {
        return None;
    }
    let mut whole = 0_u64;
    let mut decimals = None;
    for (i, &b) in digits.iter().enumerate() {
        match b {
            b'0'..=b'9' => whole = 10 * whole + u64::from(b - b'0'),
            b'.' if decimals.is_none() && digits.len() > 1 => decimals = Some(digits.len() - 1 - i),
            _ => return None,
        }
    }
    if whole > 1 << 53 {
        return None;
    }
    let exponent = exponent - decimals.unwrap_or(0) as i32;
    let power = *POWERS.get(exponent.unsigned_abs() as usize)?;
    let x = if exponent < 0 { whole as f64 / power } else { whole as f64 * power };
    Some(if negative { -x } else { x })
}

/// Appends `x` with `decimals` digits behind the point, in at least `width` columns.
pub(super) fn write_fixed(out: &mut String, x: f64, decimals: usize, width: usize) {
    const POWERS: [u64; 13] = [
        1,
        10,
        100,
        1000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        100_000_000,
        1_000_000_000,
        10_000_000_000,
        100_000_000_000,
        1_000_000_000_000,
    ];
    let scaled = POWERS.get(decimals).map(|&p| (x * p as f64).round()).filter(|s| s.abs() < 1e15);
    let Some(scaled) = scaled else {
        let _ = write!(out, "{x:width$.decimals$}"); // far slower, for large and for no numbers
        return;
    };
    let mut digits = [b' '; 24];
    let mut at = digits.len();
    let mut rest = scaled.abs() as u64;
    let mut written = 0;
    while rest > 0 || written <= decimals {
        if written == decimals && decimals > 0 {
            at -= 1;
            digits[at] = b'.';
        }
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        written += 1;
    }
    if scaled < 0.0 {
        at -= 1;
        digits[at] = b'-';
    }
    (digits.len() - at..width).for_each(|_| out.push(' '));
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Appends `x` times 10 to the power `shift`, in the fewest digits from which [`parse_shifted`] with
/// `-shift` gives back the same bits.
pub(super) fn write_shifted(out: &mut String, x: f64, shift: i32) {
    if !x.is_finite() {
        let _ = write!(out, "{x}");
        return;
    }
    let mut buffer = [0; 32]; // -1.2345678901234567e-308 takes 24
    let mut rest = &mut buffer[..];
    let _ = io::Write::write_fmt(&mut rest, format_args!("{x:e}"));
    let length = 32 - rest.len();
    let written = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
    let (mantissa, exponent) = written.split_once('e').unwrap_or((written, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0) + shift;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let (one, more) = (&mantissa[..1], mantissa.get(2..).unwrap_or("")); // around the point
    out.push_str(sign);
    match exponent {
        _ if mantissa == "0" => out.push_str("0.0"),
        -5..0 => {
            out.push_str("0.");
            (exponent..-1).for_each(|_| out.push('0'));
            out.push_str(one);
            out.push_str(more);
        }
        0..17 => {
            let whole = exponent as usize; // digits between the first and the point
            out.push_str(one);
            if more.len() <= whole {
                out.push_str(more);
                (more.len()..whole).for_each(|_| out.push('0'));
                out.push_str(".0");
            } else {
                out.push_str(&more[..whole]);
                out.push('.');
                out.push_str(&more[whole..]);
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

    #[test]
    fn fixed_digits() {
        let fixed = |x: f64, decimals, width| {
            let mut s = String::new();
            write_fixed(&mut s, x, decimals, width);
            s
        };
        assert_eq!(fixed(1.2345, 3, 8), "   1.235"); // the double nearest to 1.2345 is above it
        assert_eq!(fixed(-0.05, 2, 0), "-0.05");
        assert_eq!(fixed(-0.0001, 2, 0), "0.00");
        assert_eq!(fixed(12.5, 0, 4), "  13");
        assert_eq!(fixed(-999.999, 3, 8), "-999.999");
        assert_eq!(fixed(1e20, 1, 0), "100000000000000000000.0");
        assert_eq!(fixed(f64::NAN, 1, 5), "  NaN");
        assert_eq!(fixed(0.5, 14, 0), "0.50000000000000");
    }

    proptest! {
        #[test]
        fn fixed_digits_are_those_of_the_standard_library(x in -1e6..1e6_f64, decimals in 0..9_usize) {
            // Half a unit of the last digit more or less is a matter of the last bit.
            let mut ours = String::new();
            write_fixed(&mut ours, x, decimals, 12);
            let theirs = format!("{x:12.decimals$}");
            let difference = ours.trim().parse::<f64>().unwrap() - theirs.trim().parse::<f64>().unwrap();
            let doubt = (x.abs() * 10_f64.powi(decimals as i32)).fract() - 0.5;
            prop_assert!(
                ours == theirs || doubt.abs() < 1e-4 || theirs.trim().parse() == Ok(-0.0),
                "{ours} {theirs} {difference}"
            );
        }

        #[test]
        fn short_numbers_are_parsed_as_the_standard_library_does(
            token in "-?[0-9]{0,9}(\\.[0-9]{0,9})?([eEd][+-]?[0-9]{1,3})?", shift in -3i32..4)
        {
            let expected = token.replace('d', "e");
            let (m, e) = expected.split_once(['e', 'E']).unwrap_or((&expected, "0"));
            let expected = format!("{m}e{}", e.parse::<i32>().unwrap() + shift).parse::<f64>().ok();
            prop_assert_eq!(parse_shifted(&token, shift).map(f64::to_bits), expected.map(f64::to_bits));
        }

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
