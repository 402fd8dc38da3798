//! Gradients of a dozen functions by `md::autodiff` and by other crates, in one process and by turns:
//! `cargo run --release` in this folder (words choose functions).
//!
//! - `plain`: the function in `f64`, ns.
//! - `dual`, `num-dual`: one directional derivative in forward mode, in evaluations of the plain function.
//! - `stack`, `tape`, `echidna`: all n derivatives in reverse mode, likewise; on md's stack tape, on its tape (memory used
//!   again), by `echidna::grad` (which keeps its memory, too).
//! - `bytes`: of md's tape for a node, and of echidna's for the same (8 for a step and 12 for an operand: its `tape.rs`).
//!
//! Each figure is the best of many.

use md::autodiff::{Adjoints, Dual, Recorder, StackTape, StackVar, Tape, Var};
use std::hint::black_box;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::time::Instant;

/// What the functions below need of a number, whosever it is.
trait Num:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    fn of(x: f64) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    fn powi(self, n: i32) -> Self;
}

macro_rules! num {
    ([$($g:tt)*] $T:ty, $Trait:path, [$($by:tt)?], |$x:ident| $of:expr) => {
        impl<$($g)*> Num for $T {
            #[inline(always)]
            fn of($x: f64) -> Self {
                $of
            }
            #[inline(always)]
            fn sin(self) -> Self {
                <$T as $Trait>::sin($($by)? self)
            }
            #[inline(always)]
            fn cos(self) -> Self {
                <$T as $Trait>::cos($($by)? self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                <$T as $Trait>::exp($($by)? self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                <$T as $Trait>::ln($($by)? self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$T as $Trait>::sqrt($($by)? self)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                <$T as $Trait>::tanh($($by)? self)
            }
            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                <$T as $Trait>::powi($($by)? self, n)
            }
        }
    };
}
num!([] f64, num_traits::Float, [], |x| x);
num!([] Dual<f64>, potentials::Scalar, [], |x| potentials::Scalar::constant(x));
num!(['t, T: Recorder<f64>] Var<'t, f64, T>, potentials::Scalar, [], |x| potentials::Scalar::constant(x));
num!([] echidna::Reverse<f64>, num_traits::Float, [], |x| echidna::Scalar::from_f(x));
num!([] num_dual::Dual64, num_dual::DualNum, [&], |x| num_dual::Dual64::from(x));

/// A function of several numbers.
trait Function {
    fn call<S: Num>(&self, x: &[S]) -> S;
}

macro_rules! function {
    ($Name:ident, |$x:ident| $body:expr) => {
        struct $Name;
        impl Function for $Name {
            #[inline(always)]
            fn call<S: Num>(&self, $x: &[S]) -> S {
                $body
            }
        }
    };
}

function!(Worked, |x| x[0] * x[1].sin() + x[1] * x[0].exp());
function!(Rosenbrock, |x| {
    let mut sum = S::of(0.0);
    for k in 1..x.len() {
        let (a, b) = (x[k] - x[k - 1] * x[k - 1], S::of(1.0) - x[k - 1]);
        sum = sum + S::of(100.0) * (a * a) + b * b;
    }
    sum
});
function!(Rastrigin, |x| {
    let mut sum = S::of(10.0 * x.len() as f64);
    for &x in x {
        sum = sum + (x * x - S::of(10.0) * (S::of(std::f64::consts::TAU) * x).cos());
    }
    sum
});
function!(Ackley, |x| {
    let n = S::of(x.len() as f64);
    let (mut squares, mut waves) = (S::of(0.0), S::of(0.0));
    for &x in x {
        squares = squares + x * x;
        waves = waves + (S::of(std::f64::consts::TAU) * x).cos();
    }
    S::of(20.0 + std::f64::consts::E)
        - S::of(20.0) * (S::of(-0.2) * (squares / n).sqrt()).exp()
        - (waves / n).exp()
});
function!(LogSumExp, |x| {
    let mut sum = S::of(0.0);
    for &x in x {
        sum = sum + x.exp();
    }
    sum.ln()
});
function!(Polynomial, |x| {
    let mut value = S::of(1.0);
    for k in 1..12 {
        value = value * x[0] + S::of(1.0 / k as f64) * x[1];
    }
    value
});
function!(Speelpenning, |x| {
    let mut product = S::of(1.0);
    for &x in x {
        product = product * x;
    }
    product
});
function!(LennardJones, |x| {
    let (n, mut energy) = (x.len() / 3, S::of(0.0));
    for i in 0..n {
        for j in 0..i {
            let d = [0, 1, 2].map(|c| x[3 * i + c] - x[3 * j + c]);
            let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            let s6 = (S::of(1.0) / r2).powi(3);
            energy = energy + (s6 * s6 - s6);
        }
    }
    energy
});
function!(MorseChain, |x| {
    let mut energy = S::of(0.0);
    for k in 1..x.len() {
        let y = (S::of(1.0) - (x[k] - x[k - 1])).exp();
        energy = energy + y * y - S::of(2.0) * y;
    }
    energy
});
function!(Layer, |x| {
    // n = m² + 2m: a matrix, an offset and an input
    let m = ((x.len() + 1) as f64).sqrt() as usize - 1;
    let (a, rest) = x.split_at(m * m);
    let (b, v) = rest.split_at(m);
    let mut sum = S::of(0.0);
    for r in 0..m {
        let mut y = b[r];
        for c in 0..m {
            y = y + a[r * m + c] * v[c];
        }
        let y = y.tanh();
        sum = sum + y * y;
    }
    sum
});
function!(Oscillator, |x| {
    // steps of leapfrog: x₀, v₀, stiffness, anharmonicity
    let (mut q, mut v) = (x[0], x[1]);
    let h = S::of(0.05);
    for _ in 0..50 {
        v = v - h * (x[2] * q + x[3] * q * q * q);
        q = q + h * v;
    }
    q * q + v * v
});
function!(Determinant, |x| {
    // of a 4 × 4 matrix, by elimination
    let mut a: [S; 16] = std::array::from_fn(|k| x[k]);
    let mut d = S::of(1.0);
    for k in 0..4 {
        d = d * a[5 * k];
        for r in k + 1..4 {
            let f = a[4 * r + k] / a[5 * k];
            for c in k + 1..4 {
                a[4 * r + c] = a[4 * r + c] - f * a[4 * k + c];
            }
        }
    }
    d
});

/// The best time of a call in ns, of as many as fit into a while.
fn best(mut call: impl FnMut() -> f64) -> f64 {
    let mut repeats = 1u32;
    let mut time = |repeats: u32| {
        let start = Instant::now();
        for _ in 0..repeats {
            black_box(call());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(repeats)
    };
    while time(repeats) * f64::from(repeats) < 2e6 {
        repeats *= 2;
    }
    (0..15).map(|_| time(repeats)).fold(f64::INFINITY, f64::min)
}

fn compare<F: Function, const CAPACITY: usize>(name: &str, f: F, n: usize) {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if !wanted.iter().all(|word| name.contains(word.as_str())) {
        return;
    }
    let x: Vec<f64> =
        (0..n).map(|k| 0.7 + 0.9 * ((k * 7919) % 101) as f64 / 101.0 + 0.6 * (k % 3) as f64).collect();
    let x = &x[..];
    let plain = best(|| f.call::<f64>(black_box(x)));
    let along = |k: usize| if k == n / 2 { 1.0 } else { 0.0 };
    let mut duals: Vec<_> = x.iter().enumerate().map(|(k, &x)| Dual::new(x, along(k))).collect();
    let dual = best(|| f.call(black_box(&mut duals)).tangent);
    let mut others: Vec<_> = x.iter().enumerate().map(|(k, &x)| num_dual::Dual64::new(x, along(k))).collect();
    let num_dual = best(|| f.call(black_box(&mut others)).eps);

    let stack = StackTape::<f64, CAPACITY>::new();
    let on_stack = |out: &mut [f64]| {
        stack.restart([]);
        let v: Vec<StackVar<f64, CAPACITY>> = x.iter().map(|&x| stack.variable(x)).collect();
        let y = f.call(&v);
        let adjoints = stack.adjoints(y);
        out.iter_mut().zip(&v).for_each(|(out, v)| *out = adjoints[v.node() as usize]);
    };
    let mut gradient = vec![0.0; n];
    let stacked = best(|| {
        on_stack(black_box(&mut gradient));
        gradient[0]
    });
    let (mut tape, mut adjoints) = (Tape::new(), Adjoints::default());
    let mut on_tape = |out: &mut [f64]| {
        tape.reset();
        let v: Vec<Var<f64>> = x.iter().map(|&x| tape.variable(x)).collect();
        let y = f.call(&v);
        tape.backward(&[(y, 1.0)], &mut adjoints);
        out.iter_mut().zip(&v).for_each(|(out, &v)| *out = adjoints.of(v));
    };
    let mut of_tape = vec![0.0; n];
    let taped = best(|| {
        on_tape(black_box(&mut of_tape));
        of_tape[0]
    });
    let (nodes, bytes) = (tape.len() as f64, tape.bytes() as f64);
    let mut of_echidna = Vec::new();
    let echidna = best(|| {
        of_echidna = echidna::grad(|x| f.call(x), black_box(x));
        of_echidna[0]
    });
    // (all of them agree)
    for k in 0..n {
        let scale = 1e-10 * (1.0 + of_tape[k].abs());
        assert!(
            (gradient[k] - of_tape[k]).abs() < scale && (of_echidna[k] - of_tape[k]).abs() < scale,
            "{name} {k}"
        );
    }
    assert!((f.call(&duals).tangent - of_tape[n / 2]).abs() < 1e-10 * (1.0 + of_tape[n / 2].abs()));
    println!(
        "{name:14} {n:5} {plain:9.1} {:8.2} {:8.2} {:8.2} {:8.2} {:8.2} {:8.1} {:8.1}",
        dual / plain,
        num_dual / plain,
        stacked / plain,
        taped / plain,
        echidna / plain,
        bytes / nodes,
        bytes / nodes + 4.0,
    );
}

fn main() {
    println!(
        "{:14} {:>5} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "function", "n", "plain ns", "dual", "num-dual", "stack", "tape", "echidna", "bytes", "echidna"
    );
    compare::<_, 16>("worked", Worked, 2);
    compare::<_, 512>("rosenbrock", Rosenbrock, 50);
    compare::<_, 512>("rastrigin", Rastrigin, 50);
    compare::<_, 512>("ackley", Ackley, 50);
    compare::<_, 256>("log-sum-exp", LogSumExp, 50);
    compare::<_, 64>("polynomial", Polynomial, 2);
    compare::<_, 256>("speelpenning", Speelpenning, 50);
    compare::<_, 2048>("lennard-jones", LennardJones, 39);
    compare::<_, 512>("morse-chain", MorseChain, 50);
    compare::<_, 512>("layer", Layer, 120);
    compare::<_, 1024>("oscillator", Oscillator, 4);
    compare::<_, 128>("determinant", Determinant, 16);
}
