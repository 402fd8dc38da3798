//! What the elementary functions of all lanes are worth: values from mpmath, and those at the ends.

use super::isa::{Isa, Kernel};
use super::{Element, Lanes};

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

/// Each with the largest error allowed, in units of the last place. With a longer table (forty times as many
/// values) they hold as well.
const FUNCTIONS: [(Name, &str, f64); 10] = [
    (Exp, "exp", 1.0),
    (Ln, "ln", 1.0),
    (Sin, "sin", 1.5),
    (Cos, "cos", 1.5),
    (Tanh, "tanh", 2.5),
    (Acos, "acos", 1.1),
    (Atan2, "atan2", 1.5),
    (Erfc, "erfc", 3.5),
    (Powf, "powf", 1.1),
    (Rsqrt, "rsqrt", 1.5),
];

/// A function of one argument or two, lane by lane.
#[derive(Clone, Copy)]
struct Function<'a> {
    name: Name,
    x: &'a [[f64; 2]],
}
impl<T: Element> Kernel<T> for Function<'_> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Lanes<Element = T>>(self) -> Vec<f64> {
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
    let text = longer.unwrap_or(include_str!("../../../tests/elementary/table.txt").to_string());
    let mut failed = Vec::new();
    for single in [false, true] {
        for (name, word, bound) in FUNCTIONS {
            let (x, exact) = table(&text, word, single);
            assert!(x.len() >= 70, "{word}: {} values", x.len());
            for isa in Isa::available().into_iter().filter(|isa| *isa != Isa::Portable) {
                let got = Function { name, x: &x }.on(isa, single);
                let (mut worst, mut at) = (0.0, 0);
                for (k, (got, exact)) in got.iter().zip(&exact).enumerate() {
                    let error = exact.error(*got, single);
                    if error > worst || error.is_nan() {
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
                if worst > bound || worst.is_nan() {
                    failed.push(line);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Arguments of all magnitudes and kinds.
fn all_kinds() -> Vec<f64> {
    let ends =
        [0.0, 5e-324, 1e-310, 1e-45, 1e-40, f64::MIN_POSITIVE, 1e-38, 1e38, 1e300, f64::MAX, f64::INFINITY];
    let plain =
        [1e-20, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 10.0, 27.0, 100.0, 709.0, 711.0, 745.0, 750.0, 1e4, 2e6];
    let numbers = || ends.into_iter().chain(plain);
    numbers().chain(numbers().map(|x| -x)).chain([f64::NAN]).collect()
}

#[test]
fn the_ends_of_the_line() {
    // single precision rounds the arguments first; each value is that of f64, up to round-off
    for (isa, single) in Isa::available().into_iter().flat_map(|isa| [(isa, false), (isa, true)]) {
        let fits = |x: f64| if single { f32::nearest(x).wide() } else { x };
        let (epsilon, least) =
            if single { (2f64.powi(-23), 2f64.powi(-149)) } else { (2f64.powi(-52), 5e-324) };
        let close = |name: Name, x: [f64; 2], got: f64, want: f64| {
            let want = fits(want);
            let good = if want.is_nan() {
                got.is_nan()
            } else if want.is_infinite() || want == 0.0 {
                got == want && got.is_sign_negative() == want.is_sign_negative()
            } else {
                (got - want).abs() <= 4.0 * epsilon * want.abs() + least
            };
            assert!(good, "{name:?}({x:?}) = {got:e}, not {want:e} ({}, single: {single})", isa.name());
        };
        let plain: Vec<f64> = all_kinds().into_iter().map(fits).collect();
        let one: Vec<[f64; 2]> = plain.iter().map(|&x| [x, 0.0]).collect();
        let functions: [(Name, fn(f64) -> f64); 8] = [
            (Exp, f64::exp),
            (Ln, f64::ln),
            (Sin, f64::sin),
            (Cos, f64::cos),
            (Tanh, f64::tanh),
            (Acos, |x| x.clamp(-1.0, 1.0).acos()),
            (Erfc, potentials::special::erfc::<f64>),
            (Rsqrt, |x| 1.0 / x.sqrt()),
        ];
        for (name, f) in functions {
            for (x, got) in one.iter().zip(Function { name, x: &one }.on(isa, single)) {
                close(name, *x, got, f(x[0]));
            }
        }
        let two: Vec<[f64; 2]> = plain.iter().flat_map(|&y| plain.iter().map(move |&x| [y, x])).collect();
        for (x, got) in two.iter().zip(Function { name: Atan2, x: &two }.on(isa, single)) {
            close(Atan2, *x, got, x[0].atan2(x[1]));
        }
        // powers of positive numbers, of zero and of what is no number
        let positive = plain.iter().filter(|x| x.is_sign_positive() || x.is_nan());
        let exponents = [0.0, 0.5, -0.5, 1.0, 3.25, -7.5, 1e4, -1e9];
        let two: Vec<[f64; 2]> = positive.flat_map(|&x| exponents.map(|p| [x, p])).collect();
        for (x, got) in two.iter().zip(Function { name: Powf, x: &two }.on(isa, single)) {
            close(Powf, *x, got, x[0].powf(x[1]));
        }
    }
}

#[test]
fn what_rounds_alike_gives_the_same_bits() {
    let wide = [Isa::Avx2, Isa::Avx512];
    if !wide.iter().all(|isa| Isa::available().contains(isa)) {
        return;
    }
    let text = include_str!("../../../tests/elementary/table.txt");
    for single in [false, true] {
        for (name, word, _) in FUNCTIONS {
            let (mut x, _) = table(text, word, single);
            x.extend(all_kinds().into_iter().map(|x| [x, 2.5]));
            let [a, b] = wide.map(|isa| Function { name, x: &x }.on(isa, single));
            for ((a, b), x) in a.iter().zip(&b).zip(&x) {
                assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{word} {x:?}: {a} {b}");
            }
        }
    }
}

#[test]
fn integer_powers_round_once_a_factor() {
    #[derive(Clone, Copy)]
    struct Powers;
    impl<T: Element> Kernel<T> for Powers {
        type Output = ();
        #[inline(always)]
        fn run<V: Lanes<Element = T>>(self) {
            let half = if V::Element::nearest(0.1).wide() == 0.1 { 2f64.powi(-53) } else { 2f64.powi(-24) };
            let x = V::gather(|k| 1.0 + 0.125 * k as f64);
            for n in -14..15 {
                let y = x.powi(n);
                for k in 0..V::WIDTH {
                    let want = x.lane(k).powf(f64::from(n));
                    // n − 1 products; before these, the reciprocal rounds once, which counts in every factor
                    let roundings = f64::from(if n > 0 { n - 1 } else { -2 * n });
                    let error = (y.lane(k) - want).abs() / want;
                    assert!(error <= (roundings + 1.0) * half, "{}^{n}: {error:e}", x.lane(k));
                }
            }
        }
    }
    for isa in Isa::available() {
        isa.double(Powers);
        isa.single(Powers);
    }
}

#[test]
fn the_error_function_runs_over_lanes() {
    struct Erf;
    impl<T: Element> Kernel<T> for Erf {
        type Output = ();
        #[inline(always)]
        fn run<V: Lanes<Element = T>>(self) {
            for k in -40..40 {
                let x = 0.15 * f64::from(k) + 0.01;
                let (erf, erfc) =
                    (potentials::special::erf(V::constant(x)), potentials::special::erfc(V::constant(x)));
                let want = (potentials::special::erf(x), potentials::special::erfc(x));
                assert!((erf.lane(0) - want.0).abs() <= 3.0 * f64::EPSILON * want.0.abs());
                assert!((erfc.lane(V::WIDTH - 1) - want.1).abs() <= 6.0 * f64::EPSILON * want.1);
            }
        }
    }
    for isa in Isa::available() {
        isa.double(Erf);
    }
}
