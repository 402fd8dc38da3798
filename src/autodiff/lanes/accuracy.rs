//! What the elementary functions of all lanes are worth: values from mpmath, and those at the ends.

use super::isa::{Isa, Kernel};
use super::Lanes;

/// What [`Function`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Exp,
    Ln,
    Sin,
    Cos,
    Tanh,
    Acos,
    Atan2,
    Erfc,
    Powf,
    Rsqrt,
}
use Name::*;

/// Each with the largest error allowed in units of the last place, in double and in single precision.
const FUNCTIONS: [(Name, &str, f64, f64); 10] = [
    (Exp, "exp", 1.0, 1.0),
    (Ln, "ln", 1.0, 1.0),
    (Sin, "sin", 1.0, 1.0),
    (Cos, "cos", 1.0, 1.0),
    (Tanh, "tanh", 2.0, 2.0),
    (Acos, "acos", 1.5, 1.5),
    (Atan2, "atan2", 1.5, 1.5),
    (Erfc, "erfc", 3.0, 3.0),
    (Powf, "powf", 1.0, 1.0),
    (Rsqrt, "rsqrt", 1.0, 1.0),
];

/// A function of one argument or two, lane by lane.
#[derive(Clone, Copy)]
struct Function<'a> {
    name: Name,
    x: &'a [[f64; 2]],
}
impl Kernel for Function<'_> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Lanes>(self) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.x.len());
        let mut at = 0;
        while at < self.x.len() {
            // an exponent is the same for all lanes, and takes all lanes for itself
            let count = if self.name == Powf { 1 } else { V::WIDTH.min(self.x.len() - at) };
            let x = V::gather(|k| self.x[at + k.min(count - 1)][0]);
            let y = V::gather(|k| self.x[at + k.min(count - 1)][1]);
            let f = match self.name {
                Exp => x.exp(),
                Ln => x.ln(),
                Sin => x.sin(),
                Cos => x.cos(),
                Tanh => x.tanh(),
                Acos => x.acos(),
                Atan2 => x.atan2(y),
                Erfc => x.erfc(),
                Powf => x.powf(self.x[at][1]),
                Rsqrt => x.rsqrt(),
            };
            values.extend((0..count).map(|k| f.lane(k)));
            at += count;
        }
        values
    }
}
impl Function<'_> {
    fn on(self, isa: Isa, single: bool) -> Vec<f64> {
        if single { isa.single(self) } else { isa.double(self) }
    }
}

/// A value and how much is missing to the exact one.
#[derive(Clone, Copy)]
struct Exact {
    value: f64,
    rest: f64,
}
impl Exact {
    /// The error of a result in units of the last place.
    fn error(self, got: f64, single: bool) -> f64 {
        let exponent = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let (least, digits) = if single { (-126, 23) } else { (-1022, 52) };
        let e = exponent(self.value).max(least);
        // (2ᵉ⁻⁵² can be too small to divide by at once)
        let half = 2f64.powi((digits - e) / 2);
        let ulps = |x: f64| x * half * 2f64.powi(digits - e - (digits - e) / 2);
        if single { ulps(got - self.value).abs() } else { (ulps(got - self.value) - self.rest).abs() }
    }
}

fn table(text: &str, name: &str, single: bool) -> (Vec<[f64; 2]>, Vec<Exact>) {
    let number = |bits: &str| {
        let b = u64::from_str_radix(bits, 16).unwrap();
        if bits.len() == 8 { f64::from(f32::from_bits(b as u32)) } else { f64::from_bits(b) }
    };
    let format = if single { "f32" } else { "f64" };
    text.lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|fields| fields[0] == name && fields[1] == format)
        .map(|fields| {
            let [value, rest] = fields[fields.len() - 2..] else { unreachable!() };
            let second = if fields.len() == 6 { number(fields[3]) } else { 0.0 };
            let exact = Exact { value: number(value), rest: rest.parse::<f64>().unwrap() / 1024.0 };
            ([number(fields[2]), second], exact)
        })
        .unzip()
}

#[test]
fn values_of_mpmath() {
    // (a longer table of the same form may stand in another place)
    let longer = std::env::var("MD_ELEMENTARY").map(|path| std::fs::read_to_string(path).unwrap());
    let text = longer.unwrap_or(include_str!("../../../tests/reference/elementary/table.txt").to_string());
    let mut failed = Vec::new();
    for single in [false, true] {
        for (name, word, in_double, in_single) in FUNCTIONS {
            let (x, exact) = table(&text, word, single);
            assert!(x.len() >= 70, "{word}: {} values", x.len());
            let bound = if single { in_single } else { in_double };
            for isa in Isa::available().into_iter().filter(|isa| *isa != Isa::Portable) {
                let got = Function { name, x: &x }.on(isa, single);
                let (mut worst, mut at) = (0.0, 0);
                for (k, (got, exact)) in got.iter().zip(&exact).enumerate() {
                    let error = exact.error(*got, single);
                    // (not `<`, which would let NaN pass)
                    if !(error <= worst) {
                        (worst, at) = (error, k);
                    }
                }
                let kind = if single { "f32" } else { "f64" };
                let line = format!(
                    "{word:>6} {kind} {:>8}: {worst:.2} ulp at {:e} {:e}",
                    isa.name(),
                    x[at][0],
                    x[at][1]
                );
                println!("{line}");
                if !(worst <= bound) {
                    failed.push(line);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
