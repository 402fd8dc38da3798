//! Which instructions a kernel runs with is decided when the program runs.

use super::{Lanes, single::F32x1};
use std::str::FromStr;
use std::sync::OnceLock;

/// A set of instructions that kernels are compiled for.
#[allow(clippy::manual_non_exhaustive)] // the hidden variant is for tests, not for the future
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// One number at a time, on any processor.
    Portable,
    /// SSE2: two `f64` or four `f32`. Every x86-64 has it.
    Sse2,
    /// AVX2 and FMA: four `f64` or eight `f32`.
    Avx2,
    /// AVX-512 (F, DQ, BW, VL): eight `f64` or sixteen `f32`.
    Avx512,
    /// Two numbers side by side in plain Rust: for tests on processors whose registers are not used (only where debug
    /// assertions are on).
    #[doc(hidden)]
    #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
    Two,
}

/// A function over lanes of `T`: `f64` or `f32`.
///
/// Implementors mark `run`, and whatever it calls, `#[inline(always)]`: only what becomes part of the dispatching
/// function is compiled for its instructions.
pub trait Kernel<T> {
    /// What it returns.
    type Output;
    /// The function.
    fn run<V: Lanes<Element = T>>(self) -> Self::Output;
}

impl Isa {
    /// All of them, the plainest first; each x86-64 one includes those before it.
    pub(crate) const ALL: [Isa; 4] = [Isa::Portable, Isa::Sse2, Isa::Avx2, Isa::Avx512];

    /// The one with the widest registers that this processor has.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(detect)
    }
    /// All that this processor has, [`Portable`](Isa::Portable) first.
    pub fn available() -> Vec<Isa> {
        Self::ALL.into_iter().filter(|isa| isa.runs_here()).collect()
    }
    /// Its name: `portable`, `sse2`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Sse2 => "sse2",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
            Isa::Two => "two lanes",
        }
    }
    /// Whether this processor has it.
    #[inline]
    fn runs_here(self) -> bool {
        #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
        if self == Isa::Two {
            return true;
        }
        self as u8 <= Self::best() as u8
    }

    /// Runs a kernel in double precision.
    ///
    /// # Panics
    /// If this processor lacks the instructions; those of [`available`](Isa::available) it has.
    #[inline]
    pub fn double<K: Kernel<f64>>(self, kernel: K) -> K::Output {
        self.check();
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => kernel.run::<super::x86::F64x2>(),
            // SAFETY: `check` has found the instructions, here and in `single`
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { compiled::avx2::<super::x86::F64x4, K, f64>(kernel) },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { compiled::avx512::<super::x86::F64x8, K, f64>(kernel) },
            #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
            Isa::Two => kernel.run::<super::Two>(),
            _ => kernel.run::<f64>(),
        }
    }
    /// The same, compiled for fewer instructions: those of SSE2 give way to one number at a time, and where debug assertions
    /// are on (in tests) those of AVX-512 to those of AVX2. For what is seldom asked for and takes long to compile.
    ///
    /// # Panics
    /// As [`double`](Isa::double).
    #[inline]
    pub fn double_rarely<K: Kernel<f64>>(self, kernel: K) -> K::Output {
        self.check();
        match self {
            // SAFETY: `check` has found the instructions
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { compiled::avx2::<super::x86::F64x4, K, f64>(kernel) },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if cfg!(debug_assertions) => unsafe {
                compiled::avx2::<super::x86::F64x4, K, f64>(kernel)
            },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { compiled::avx512::<super::x86::F64x8, K, f64>(kernel) },
            _ => kernel.run::<f64>(),
        }
    }
    /// Whether results of [`double_rarely`](Isa::double_rarely) are those of [`double`](Isa::double) to the bit.
    pub(crate) fn rarely_the_same(self) -> bool {
        matches!(self, Isa::Portable | Isa::Avx2 | Isa::Avx512)
    }
    /// Runs a kernel in single precision.
    ///
    /// # Panics
    /// If this processor lacks the instructions; those of [`available`](Isa::available) it has.
    #[inline]
    pub fn single<K: Kernel<f32>>(self, kernel: K) -> K::Output {
        self.check();
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => kernel.run::<super::x86::F32x4>(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { compiled::avx2::<super::x86::F32x8, K, f32>(kernel) },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { compiled::avx512::<super::x86::F32x16, K, f32>(kernel) },
            _ => kernel.run::<F32x1>(),
        }
    }
    #[inline]
    fn check(self) {
        assert!(self.runs_here(), "this processor has no {}", self.name());
    }
}

impl FromStr for Isa {
    type Err = String;
    fn from_str(name: &str) -> Result<Isa, String> {
        Self::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| format!("\"{name}\" is none of portable, sse2, avx2, avx512"))
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    macro_rules! has {
        ($($feature:tt),*) => { $( is_x86_feature_detected!($feature) )&&* };
    }
    if !has!("avx2", "fma", "popcnt", "bmi1", "bmi2") {
        Isa::Sse2
    } else if !has!("avx512f", "avx512dq", "avx512bw", "avx512vl") {
        Isa::Avx2
    } else {
        Isa::Avx512
    }
}
#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Isa {
    Isa::Portable
}

#[cfg(target_arch = "x86_64")]
mod compiled {
    use super::super::Element;
    use super::{Kernel, Lanes};

    #[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2")]
    pub fn avx2<V: Lanes<Element = T>, K: Kernel<T>, T: Element>(kernel: K) -> K::Output {
        kernel.run::<V>()
    }
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,popcnt,bmi1,bmi2")]
    pub fn avx512<V: Lanes<Element = T>, K: Kernel<T>, T: Element>(kernel: K) -> K::Output {
        kernel.run::<V>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Element;
    use super::*;
    use crate::autodiff::Dual;
    use potentials::pair::{LennardJones, Morse};
    use potentials::{Distance, Mask, PairEnergy, Record, Scalar};

    /// Runs a kernel with all instructions and in both precisions.
    fn everywhere<K: Kernel<f64, Output = ()> + Kernel<f32, Output = ()> + Copy>(kernel: K) {
        for isa in Isa::available() {
            isa.double(kernel);
            isa.single(kernel);
        }
    }
    fn lanes<V: Lanes>(v: V) -> Vec<f64> {
        (0..V::WIDTH).map(|k| v.lane(k)).collect()
    }
    /// Numbers that both precisions have.
    fn some<V: Lanes>(from: f64) -> (V, Vec<f64>) {
        let numbers: Vec<f64> = (0..V::WIDTH).map(|k| from + 1.25 * k as f64).collect();
        (V::gather(|k| numbers[k]), numbers)
    }

    #[test]
    fn names_can_be_read_back() {
        for isa in Isa::available() {
            assert_eq!(isa.name().parse(), Ok(isa));
        }
        assert!("avx".parse::<Isa>().is_err());
        assert_eq!(Isa::available()[0], Isa::Portable);
        assert_eq!(Isa::available().last(), Some(&Isa::best()));
    }

    #[test]
    fn arithmetic() {
        #[derive(Clone, Copy)]
        struct Arithmetic;
        impl<T: Element> Kernel<T> for Arithmetic {
            type Output = ();
            #[inline(always)]
            fn run<V: Lanes<Element = T>>(self) {
                let ((a, x), (b, y)) = (some::<V>(-3.5), some::<V>(2.0));
                let near = |z: f64| V::Element::nearest(z).wide();
                let check = |got: V, want: &dyn Fn(f64, f64) -> f64| {
                    let want: Vec<f64> = x.iter().zip(&y).map(|(&x, &y)| near(want(x, y))).collect();
                    assert_eq!(lanes(got), want);
                };
                check(a + b, &|x, y| x + y);
                check(a - b, &|x, y| x - y);
                check(a * b, &|x, y| x * y);
                check(a / b, &|x, y| x / y);
                check(a + 0.5, &|x, _| x + 0.5);
                check(0.5 - a, &|x, _| 0.5 - x);
                check(3.0 / b, &|_, y| 3.0 / y);
                check(-a, &|x, _| -x);
                check(b.recip(), &|_, y| 1.0 / y);
                check(b.sqrt(), &|_, y| y.sqrt());
                check(a.fma(b, a), &|x, y| x * y + x);
                check(a.poly([1.0, 2.0, 3.0]), &|x, _| 1.0 + 2.0 * x + 3.0 * x * x);
                check(a.poly_derivative([1.0, 2.0, 3.0]), &|x, _| 2.0 + 6.0 * x);
                check(a.poly_derivative([7.0]), &|_, _| 0.0);
                check(a.abs(), &|x, _| x.abs());
                check(a.relu(), &|x, _| x.max(0.0));
                check(a.max(b - 3.0), &|x, y| x.max(y - 3.0));
                check(a.min(b - 3.0), &|x, y| x.min(y - 3.0));
                check(V::select(a.lt(V::constant(0.25)), a, b), &|x, y| if x < 0.25 { x } else { y });
                check(V::select(a.le(V::constant(0.25)), a, b), &|x, y| if x <= 0.25 { x } else { y });
                assert_eq!(a.sum(), x.iter().sum::<f64>());
                // like those of plain numbers where an argument is NaN, and with signed zeros
                let (nan, zero, one) = (V::constant(f64::NAN), V::constant(0.0), V::constant(1.0));
                assert!(lanes(nan.max(one)).iter().all(|x| x.is_nan()));
                assert!(lanes(nan.min(one)).iter().all(|x| x.is_nan()));
                assert_eq!(lanes(one.max(nan)), lanes(one));
                assert!(lanes(zero.max(-zero)).iter().all(|x| x.is_sign_positive()));
                assert!(lanes((-zero).min(zero)).iter().all(|x| x.is_sign_negative()));
                assert!(lanes((-zero).abs()).iter().all(|x| x.is_sign_positive()));
                assert!(zero.vanishes() && (-zero).vanishes() && !one.vanishes() && !nan.vanishes());
                assert_eq!(V::bits(nan.lt(one) | nan.le(nan) | one.lt(nan)), 0);
            }
        }
        everywhere(Arithmetic);
    }

    #[test]
    fn masks() {
        #[derive(Clone, Copy)]
        struct Masks;
        impl<T: Element> Kernel<T> for Masks {
            type Output = ();
            #[inline(always)]
            fn run<V: Lanes<Element = T>>(self) {
                let all = ((1u64 << V::WIDTH) - 1) as u32;
                for count in 0..V::WIDTH + 3 {
                    let mask = V::first(count);
                    let bits = ((1u64 << count.min(V::WIDTH)) - 1) as u32;
                    assert_eq!((V::bits(mask), V::bits(!mask)), (bits, all & !bits));
                    let decided = if bits == 0 { Some(false) } else { (bits == all).then_some(true) };
                    assert_eq!(mask.decided(), decided);
                    assert_eq!(V::bits(mask & V::first(2)), bits & 3);
                    assert_eq!(V::bits(!mask & V::first(2)), !bits & 3 & all);
                    assert_eq!(V::bits(!mask | V::first(2)), (!bits | 3) & all);
                }
                assert_eq!(V::bits(V::first(1 << 20)), all);
            }
        }
        everywhere(Masks);
    }

    #[test]
    fn memory() {
        #[derive(Clone, Copy)]
        struct Memory;
        impl<T: Element> Kernel<T> for Memory {
            type Output = ();
            #[inline(always)]
            fn run<V: Lanes<Element = T>>(self) {
                let number = |k: usize| V::Element::nearest(k as f64 * 0.5 - 7.0);
                let rows: Vec<[V::Element; 4]> =
                    (0..99).map(|k| std::array::from_fn(|c| number(4 * k + c))).collect();
                let table: Vec<V::Element> = (0..1000).map(number).collect();
                let slots: Vec<u32> = (0..V::WIDTH as u32).map(|k| (k * 37 + 5) % 99 * 4).collect();
                let index: Vec<u16> = (0..V::WIDTH as u16).map(|k| (k * 377 + 5) % 1000).collect();
                // SAFETY: everything that is asked for is there, and there is room for what is written
                unsafe {
                    // (from the second number on: nothing is aligned)
                    let v = V::load(table.as_ptr().add(1));
                    let want: Vec<f64> = (1..=V::WIDTH).map(|k| table[k].wide()).collect();
                    assert_eq!(lanes(v), want);
                    let mut written = vec![V::Element::default(); V::WIDTH + 2];
                    v.store(written.as_mut_ptr().add(1));
                    assert_eq!(written[1..=V::WIDTH], table[1..=V::WIDTH]);
                    assert_eq!((written[0].wide(), written[V::WIDTH + 1].wide()), (0.0, 0.0));
                    let components = V::rows(rows.as_ptr(), slots.as_ptr());
                    for c in 0..4 {
                        let want: Vec<f64> = slots.iter().map(|&s| rows[s as usize / 4][c].wide()).collect();
                        assert_eq!(lanes(components[c]), want);
                    }
                    let want: Vec<f64> = index.iter().map(|&k| table[usize::from(k)].wide()).collect();
                    assert_eq!(lanes(V::lookup(table.as_ptr(), index.as_ptr())), want);
                    for pattern in 0..1u32 << V::WIDTH {
                        let mask = V::gather(|k| f64::from(pattern >> k & 1)).lt(V::constant(0.5));
                        let names: Vec<u32> = (0..V::WIDTH as u32).map(|k| 5 * k + 11).collect();
                        let want: Vec<u32> =
                            (0..V::WIDTH).filter(|k| pattern >> k & 1 == 0).map(|k| names[k]).collect();
                        let mut to = vec![77; V::WIDTH + 1];
                        let count = V::compress(mask, names.as_ptr(), to.as_mut_ptr());
                        assert_eq!((&to[..count], to[V::WIDTH]), (&want[..], 77));
                    }
                }
            }
        }
        everywhere(Memory);
    }

    #[test]
    fn rounding() {
        #[derive(Clone, Copy)]
        struct Rounding;
        impl<T: Element> Kernel<T> for Rounding {
            type Output = ();
            #[inline(always)]
            fn run<V: Lanes<Element = T>>(self) {
                for x in [0.0, 0.4, 0.5, 0.75, 1.5, -0.5, -1.5, -2.75, 1e6 + 0.5, -4e6 - 0.25] {
                    let (v, want) = (V::constant(x), V::Element::nearest(x).wide().round_ties_even());
                    assert!(lanes(v.round()).into_iter().all(|x| x == want));
                    assert!(lanes(v.round() - v).into_iter().all(|x| x.abs() <= 0.5));
                }
                let ulp = if V::Element::nearest(0.1).wide() == 0.1 { f64::EPSILON } else { 2f64.powi(-23) };
                assert_eq!(V::constant(1.0).odd().lane(0), 1.0 + ulp);
                assert_eq!(V::constant(-1.0 - ulp).odd().lane(V::WIDTH - 1), -1.0 - ulp);
            }
        }
        everywhere(Rounding);
    }

    #[test]
    fn energies() {
        #[derive(Clone, Copy)]
        struct Energies;
        fn slope<V: Lanes, E: PairEnergy>(r2: V, p: &E::Params<f64>) -> [V; 3] {
            let p: E::Prepared<V::Parameter> = E::prepare(p).convert(|p| V::constant(p).parameter());
            let r = Distance::from_squared(Dual::new(Dual::variable(r2), Dual::constant(1.0)));
            let e = E::energy::<Dual<Dual<V>>, V::Parameter>(r, &p);
            [e.value.value, e.tangent.value, e.tangent.tangent]
        }
        fn compare<V: Lanes, E: PairEnergy>(p: &E::Params<f64>) {
            let tolerance = if V::Element::nearest(0.1).wide() == 0.1 { 1e-13 } else { 3e-5 };
            let r2 = V::gather(|k| V::Element::nearest(0.9 + 0.3 * k as f64).wide());
            let got = slope::<V, E>(r2, p);
            for k in 0..V::WIDTH {
                let want = slope::<f64, E>(r2.lane(k), p);
                for (got, want) in got.into_iter().zip(want) {
                    let got = got.lane(k);
                    assert!((got - want).abs() <= tolerance * (1.0 + want.abs()), "{got} {want}");
                }
            }
        }
        impl<T: Element> Kernel<T> for Energies {
            type Output = ();
            #[inline(always)]
            fn run<V: Lanes<Element = T>>(self) {
                compare::<V, LennardJones>(&Record::from_fn(|k| [0.8, 1.1][k]));
                compare::<V, Morse>(&Record::from_fn(|k| [0.7, 1.5, 1.2][k]));
            }
        }
        everywhere(Energies);
    }
}
