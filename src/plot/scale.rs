//! Axes in numbers: where the ticks stand and how numbers are written.

/// The ticks of an axis and the labels beside them.
///
/// A label is `(value − offset) / 10^exponent`; both are nought where the plain numbers are short, and
/// are told by [`Ticks::axis_label`].
#[derive(Clone, Debug, PartialEq)]
pub struct Ticks {
    /// Where the ticks stand, ascending.
    pub values: Vec<f64>,
    /// What is written at each.
    pub labels: Vec<String>,
    /// The power of ten taken out of the labels, a multiple of three.
    pub exponent: i32,
    /// What was subtracted from the values, because they hardly differ compared with their size.
    pub offset: f64,
}

impl Ticks {
    /// Ticks at multiples of 1, 2 or 5 times a power of ten within `[low, high]`, about `target` of
    /// them (never more than `target + 1`, but at least two where any step gives two).
    pub fn linear(low: f64, high: f64, target: usize) -> Ticks {
        let span = high - low;
        if !(span.is_finite() && span > 1e-290) {
            let value = if low.is_finite() { low } else { 0.0 };
            return Ticks {
                values: vec![value],
                labels: vec![significant(value, 6)],
                exponent: 0,
                offset: 0.0,
            };
        }
        let (mut mantissa, mut power) = step_at_least(span / target.max(1) as f64);
        let mut offset = 0.0;
        if low.abs().max(high.abs()) / (f64::from(mantissa) * ten_to(power)) >= 1e5 {
            let grain = ten_to(span.log10().ceil() as i32);
            let rounded = ((low + high) / 2.0 / grain).round() * grain;
            if rounded.is_finite() {
                offset = rounded;
            }
        }
        let within = |step: f64| {
            let first = ((low - offset) / step - 1e-9).ceil();
            let last = ((high - offset) / step + 1e-9).floor();
            (0..1 + (last - first).clamp(-1.0, 50.0) as i64).map(|i| first + i as f64).collect::<Vec<f64>>()
        };
        let mut step = f64::from(mantissa) * ten_to(power);
        let mut multiples = within(step);
        if multiples.len() < 2 {
            // A scale needs two numbers.
            (mantissa, power) = match mantissa {
                1 => (5, power - 1),
                2 => (1, power),
                _ => (2, power),
            };
            step = f64::from(mantissa) * ten_to(power);
            multiples = within(step);
        }

        let largest = multiples.iter().fold(0.0f64, |m, k| m.max(k.abs())) * step;
        let exponent = if largest >= 1e5 || (largest > 0.0 && largest < 0.05) {
            (exponent_of(largest)).div_euclid(3) * 3
        } else {
            0
        };
        let decimals = (exponent - power).max(0) as usize;
        let unit = f64::from(mantissa) * ten_to(power - exponent);
        Ticks {
            values: multiples.iter().map(|k| offset + k * step).collect(),
            labels: multiples.iter().map(|k| fixed(k * unit, decimals)).collect(),
            exponent,
            offset,
        }
    }

    /// Ticks for a logarithmic axis over `[low, high]`, both the decimal logarithms of the values: whole
    /// powers of ten (every one, or every second, third …), or 1, 2 and 5 times them where few fit.
    pub fn logarithmic(low: f64, high: f64, target: usize) -> Ticks {
        let mut ticks = Ticks { values: Vec::new(), labels: Vec::new(), exponent: 0, offset: 0.0 };
        if !(low.is_finite() && high.is_finite() && high > low) || high - low > 700.0 {
            return Ticks::linear(low, high, target);
        }
        let (first, last) = (low.floor() as i32, high.ceil() as i32);
        let stride = ((high - low) / target.max(1) as f64).ceil().max(1.0) as i32;
        let mantissas: &[u32] = if high - low < target as f64 / 2.5 { &[1, 2, 5] } else { &[1] };
        for power in (first..=last).filter(|p| p.rem_euclid(stride) == 0) {
            for &m in mantissas {
                let value = f64::from(power) + f64::from(m).log10();
                if value >= low - 1e-9 && value <= high + 1e-9 {
                    ticks.values.push(value);
                    ticks.labels.push(if (-3..=4).contains(&power) {
                        fixed(f64::from(m) * ten_to(power), (-power).max(0) as usize)
                    } else if m == 1 {
                        format!("10{}", superscript(power))
                    } else {
                        format!("{m}×10{}", superscript(power))
                    });
                }
            }
        }
        ticks
    }

    /// The axis's label: the name, what was taken off, the power of ten taken out, and the unit, as in
    /// `total + 16200 (10⁻⁶ kJ/mol)`.
    pub fn axis_label(&self, name: &str, unit: &str) -> (String, String) {
        let mut name = name.to_string();
        if self.offset != 0.0 {
            let sign = if self.offset < 0.0 { '+' } else { '−' };
            name = format!("{name} {sign} {}", significant(self.offset.abs(), 15));
        }
        let unit = match (self.exponent, unit) {
            (0, "") => String::new(),
            (0, unit) => format!("({unit})"),
            (e, "") => format!("(10{})", superscript(e)),
            (e, unit) => format!("(10{} {unit})", superscript(e)),
        };
        (name, unit)
    }
}

/// The smallest of 1, 2, 5 × 10^n that is not below `x`, as mantissa and n.
fn step_at_least(x: f64) -> (u32, i32) {
    let power = exponent_of(x);
    let ratio = x / ten_to(power);
    for mantissa in [1, 2, 5] {
        if ratio <= f64::from(mantissa) * (1.0 + 1e-9) {
            return (mantissa, power);
        }
    }
    (1, power + 1)
}

/// The decimal exponent of a positive number: `exponent_of(250.0)` is 2.
fn exponent_of(x: f64) -> i32 {
    let guess = x.log10().floor();
    if !guess.is_finite() {
        return 0;
    }
    let guess = guess as i32;
    if x / ten_to(guess) >= 10.0 * (1.0 - 1e-12) { guess + 1 } else { guess }
}

fn ten_to(power: i32) -> f64 {
    // Negative powers as a quotient: 1/1000 is the nearest number to 0.001, powi(-3) need not be.
    if (-22..0).contains(&power) { 1.0 / 10f64.powi(-power) } else { 10f64.powi(power) }
}

/// A number with this many decimals and a true minus sign; no minus before a zero.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_string(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// A number with up to this many significant digits, trailing zeros removed; very large and very small
/// ones as `1.2×10⁻⁵`.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return if value.is_nan() { "NaN".into() } else { fixed(value, 0).replace("inf", "∞") };
    }
    let digits = digits.clamp(1, 17);
    let text = format!("{:.*e}", digits - 1, value);
    let Some((mantissa, Ok(power))) = text.split_once('e').map(|(m, e)| (m, e.parse::<i32>())) else {
        return text;
    };
    if (-3..(digits as i32).max(6)).contains(&power) {
        shorten(&fixed(value, (digits as i32 - 1 - power).max(0) as usize))
    } else {
        format!("{}×10{}", shorten(mantissa).replace('-', "−"), superscript(power))
    }
}

/// Drops trailing zeros after a decimal point.
fn shorten(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text.to_string()
    }
}

/// `mean ± deviation`, the deviation with two digits and the mean to the same place; the mean alone where
/// the deviation is below a millionth of it.
pub fn mean_and_deviation(mean: f64, deviation: f64) -> String {
    if !(mean.is_finite() && deviation.is_finite()) {
        return "not finite".into();
    }
    if deviation <= mean.abs() * 1e-6 {
        return significant(mean, 7);
    }
    let size = mean.abs().max(deviation);
    let place = exponent_of(deviation) - 1;
    if (1e-3..1e7).contains(&size) {
        let decimals = (-place).clamp(0, 15) as usize;
        format!("{} ± {}", fixed(mean, decimals), fixed(deviation, decimals))
    } else {
        let power = exponent_of(size);
        let decimals = (power - place).clamp(0, 15) as usize;
        let scaled = |x: f64| fixed(x / ten_to(power), decimals);
        format!("({} ± {})×10{}", scaled(mean), scaled(deviation), superscript(power))
    }
}

/// A whole number in raised digits.
pub fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number
        .to_string()
        .chars()
        .map(|c| c.to_digit(10).and_then(|d| DIGITS.get(d as usize)).copied().unwrap_or('⁻'))
        .collect()
}

/// Mean and standard deviation of the finite values; `None` if there are none.
pub fn moments(values: &[f64]) -> Option<(f64, f64)> {
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for &value in values.iter().filter(|v| v.is_finite()) {
        n += 1.0;
        let delta = value - mean;
        mean += delta / n;
        squares += delta * (value - mean);
    }
    (n > 0.0 && mean.is_finite()).then(|| (mean, (squares / n).max(0.0).sqrt()))
}

/// Least-squares line through the finite points: `(mean x, y there, slope)`; `None` for fewer than three
/// points or all at one x.
pub fn fit_line(x: &[f64], y: &[f64]) -> Option<(f64, f64, f64)> {
    let (mut n, mut mean_x, mut mean_y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (&x, &y) in x.iter().zip(y).filter(|(x, y)| x.is_finite() && y.is_finite()) {
        n += 1.0;
        let dx = x - mean_x;
        mean_x += dx / n;
        mean_y += (y - mean_y) / n;
        xx += dx * (x - mean_x);
        xy += dx * (y - mean_y);
    }
    let slope = xy / xx;
    (n >= 3.0 && xx > 0.0 && slope.is_finite() && mean_y.is_finite()).then_some((mean_x, mean_y, slope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_are_one_two_five() {
        let t = Ticks::linear(0.0, 10.0, 5);
        assert_eq!(t.labels, ["0", "2", "4", "6", "8", "10"]);
        let t = Ticks::linear(-0.13, 0.13, 5);
        assert_eq!(t.labels, ["−0.1", "0.0", "0.1"]);
        let t = Ticks::linear(-20_400.0, 4_000.0, 5);
        assert_eq!(t.labels, ["−20000", "−15000", "−10000", "−5000", "0"]);
        assert_eq!((t.exponent, t.offset), (0, 0.0));
    }

    #[test]
    fn powers_of_ten_are_taken_out() {
        let t = Ticks::linear(0.0, 1e6, 5);
        assert_eq!((t.labels[1].as_str(), t.exponent), ("0.2", 6));
        assert_eq!(t.axis_label("time", "ps"), ("time".into(), "(10⁶ ps)".into()));
        let t = Ticks::linear(-1e-3, 1e-3, 4);
        assert_eq!(t.labels, ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(t.axis_label("drift", "").1, "(10⁻³)");
    }

    #[test]
    fn nearly_equal_values_get_an_offset() {
        let t = Ticks::linear(-16200.0004, -16199.9996, 4);
        assert_eq!(t.offset, -16_200.0);
        assert_eq!(t.labels, ["−400", "−200", "0", "200", "400"]);
        let (name, unit) = t.axis_label("total", "kJ/mol");
        assert_eq!((name.as_str(), unit.as_str()), ("total + 16200", "(10⁻⁶ kJ/mol)"));
        let t = Ticks::linear(300.00001, 300.00002, 4);
        assert!(t.axis_label("T", "K").0.starts_with("T − 300"), "{t:?}");
    }

    #[test]
    fn logarithmic_ticks() {
        assert_eq!(Ticks::logarithmic(-1.0, 1.0, 8).labels, ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(Ticks::logarithmic(-6.0, -2.0, 4).labels, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01"]);
        let wide = Ticks::logarithmic(-40.0, 40.0, 5);
        assert!(wide.values.len() <= 6 && wide.labels.contains(&"1".to_string()), "{wide:?}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(significant(-20_512.3, 7), "−20512.3");
        assert_eq!(significant(1.234e-5, 3), "1.23×10⁻⁵");
        assert_eq!(significant(0.001, 3), "0.001");
        assert_eq!(significant(-1e7, 3), "−1×10⁷");
        assert_eq!(significant(999.9999, 3), "1000");
        assert_eq!(significant(f64::NEG_INFINITY, 3), "−∞");
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!(superscript(-120), "⁻¹²⁰");
    }

    #[test]
    fn a_mean_stops_where_its_deviation_does() {
        assert_eq!(mean_and_deviation(300.123, 8.04), "300.1 ± 8.0");
        assert_eq!(mean_and_deviation(-20_000.4, 51.0), "−20000 ± 51");
        assert_eq!(mean_and_deviation(213.4, 612.0), "213 ± 612");
        assert_eq!(mean_and_deviation(1.0, 0.0), "1");
        assert_eq!(mean_and_deviation(-16_212.345678, 0.001), "−16212.35");
        assert_eq!(mean_and_deviation(2e-6, 1e-7), "(2.00 ± 0.10)×10⁻⁶");
    }

    #[test]
    fn moments_and_lines() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, deviation 2.
        let values = [2.0, 4.0, f64::NAN, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(moments(&values), Some((5.0, 2.0)));
        assert_eq!(moments(&[f64::INFINITY]), None);
        // y = 1 + 2 x
        let (x, y, slope) = fit_line(&[0.0, 1.0, 2.0, 9.0], &[1.0, 3.0, 5.0, f64::NAN]).unwrap();
        assert_eq!((x, y, slope), (1.0, 3.0, 2.0));
        assert_eq!(fit_line(&[1.0; 4], &[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(fit_line(&[1.0, 2.0], &[1.0, 2.0]), None);
    }

    proptest! {
        #[test]
        fn ticks_stand_within_any_range(a in -1e12..1e12f64, exponent in -12..12i32, m in 1.0..10.0f64, target in 1usize..12) {
            let b = a + m * 10f64.powi(exponent);
            prop_assume!(b - a > a.abs() * 1e-12);
            let t = Ticks::linear(a, b, target);
            prop_assert!(t.values.len() <= (target + 1).max(6));
            prop_assert_eq!(t.values.len(), t.labels.len());
            let slack = (b - a) * 1e-3;
            prop_assert!(t.values.iter().all(|v| *v >= a - slack && *v <= b + slack));
            prop_assert!(t.labels.windows(2).all(|w| w[0] != w[1]), "{:?}", t);
            prop_assert!(t.labels.iter().all(|l| l.chars().count() <= 9), "{:?}", t);
        }

        #[test]
        fn any_number_can_be_written(x in any::<f64>(), y in any::<f64>()) {
            let _ = (significant(x, 7), mean_and_deviation(x, y.abs()), fixed(x, 3));
            let t = Ticks::linear(x, y, 5);
            prop_assert!(t.values.len() <= 7);
            prop_assert!(Ticks::logarithmic(x, y, 5).values.len() <= 20);
        }
    }
}
