//! What a full gradient costs in units of the function itself: finite differences, forward mode, reverse mode.
//!
//! `cargo bench --bench gradient_cost`

use md::autodiff::{Adjoints, Dual, Number, StackTape, Tape, Var};
use potentials::{Dihedral, Scalar, Vec3};
use std::hint::black_box;
use std::time::Instant;

/// Neighbours on a line, held by Morse-like springs over a wavy ground: about 14 operations a variable.
fn chain<S: Number>(x: &[S]) -> S {
    let mut e = x[0].sin();
    for pair in x.windows(2) {
        let stretch = pair[1] - pair[0] - 1.0;
        e = e + (1.0 - (-2.0 * stretch).exp()).squared() + 0.1 * pair[1].sin();
    }
    e
}

/// The energy of a Ryckaert–Bellemans dihedral in the coordinates of its four atoms.
#[inline(always)]
fn dihedral<S: Scalar>(x: [S; 12]) -> S {
    let at = |k: usize| Vec3::new(x[3 * k], x[3 * k + 1], x[3 * k + 2]);
    let phi = Dihedral::along(at(1) - at(0), at(2) - at(1), at(3) - at(2));
    phi.cos().poly([9.28, 12.16, -13.12, -3.06, 26.24, -31.5])
}

/// Seconds a call of each function, the best of many. The functions take turns, so that a machine that is slower for
/// a while is slower for all of them.
fn best<const N: usize>(mut functions: [&mut dyn FnMut(); N]) -> [f64; N] {
    let once = |f: &mut dyn FnMut(), repeats: usize| {
        let start = Instant::now();
        (0..repeats).for_each(|_| f());
        start.elapsed().as_secs_f64() / repeats as f64
    };
    // short functions are repeated so that the clock's own cost does not count
    let repeats: [usize; N] =
        std::array::from_fn(|k| (20e-6 / once(functions[k], 1)).ceil().max(1.0) as usize);
    let mut shortest = [f64::INFINITY; N];
    let begun = Instant::now();
    let mut rounds = 0;
    while rounds < 10 || begun.elapsed().as_secs_f64() < 1.5 {
        for k in 0..N {
            shortest[k] = shortest[k].min(once(functions[k], repeats[k]));
        }
        rounds += 1;
    }
    shortest
}

fn main() {
    println!("one full gradient, in units of one evaluation of the function");
    println!("{:>7} {:>14} {:>12} {:>12} {:>12}", "inputs", "function", "differences", "forward", "reverse");
    for n in [3, 30, 300, 3000, 30_000] {
        let x: Vec<f64> = (0..n).map(|k| k as f64 * 1.1 + 0.2 * (k as f64 * 1.7).sin()).collect();
        let mut plain = || {
            black_box(chain(black_box(&x)));
        };
        // every component costs the same: a few are timed and multiplied
        let sample = n.min(10);
        let share = n as f64 / sample as f64;
        let mut moved = x.clone();
        let mut differences = || {
            for k in 0..sample {
                let h = 1e-6;
                moved[k] = x[k] + h;
                let above = chain(black_box(&moved));
                moved[k] = x[k] - h;
                black_box((above - chain(black_box(&moved))) / (2.0 * h));
                moved[k] = x[k];
            }
        };
        let mut duals: Vec<Dual<f64>> = x.iter().map(|&x| Dual::passive(x)).collect();
        let mut forward = || {
            for k in 0..sample {
                duals[k].tangent = 1.0;
                black_box(chain(black_box(&duals)).tangent);
                duals[k].tangent = 0.0;
            }
        };
        let mut tape = Tape::new();
        let mut adjoints = Adjoints::default();
        let mut reverse = || {
            tape.reset();
            let vars: Vec<Var<f64>> = x.iter().map(|&x| tape.variable(x)).collect();
            let y = chain(&vars);
            tape.backward(&[(y, 1.0)], &mut adjoints);
            black_box(adjoints.of(vars[n / 2]));
        };
        let [plain, d, f, r] = best([&mut plain, &mut differences, &mut forward, &mut reverse]);
        let [d, f, r] = [d * share, f * share, r].map(|t| t / plain);
        println!("{n:>7} {:>11.0} ns {d:>12.1} {f:>12.1} {r:>12.1}", plain * 1e9);
    }

    println!("\nthe tape, a node");
    println!("{:>7} {:>10} {:>10} {:>10} {:>10}", "inputs", "nodes", "bytes", "recording", "sweeping");
    for n in [300, 30_000] {
        let x: Vec<f64> = (0..n).map(|k| k as f64 * 1.1).collect();
        let mut tape = Tape::new();
        let [record] = best([&mut || {
            tape.reset();
            let vars: Vec<Var<f64>> = x.iter().map(|&x| tape.variable(x)).collect();
            black_box(chain(&vars));
        }]);
        tape.reset();
        let vars: Vec<Var<f64>> = x.iter().map(|&x| tape.variable(x)).collect();
        let y = chain(&vars);
        let mut adjoints = Adjoints::default();
        let [sweep] = best([&mut || tape.backward(&[(black_box(y), 1.0)], &mut adjoints)]);
        let nodes = tape.len() as f64;
        let [record, sweep] = [record, sweep].map(|t| t * 1e9 / nodes);
        println!("{n:>7} {nodes:>10} {:>10.1} {record:>7.2} ns {sweep:>7.2} ns", tape.bytes() as f64 / nodes);
    }

    println!("\na dihedral in twelve coordinates");
    let x: Vec<[f64; 12]> = (0..1024)
        .map(|i| std::array::from_fn(|k| (12.0 * f64::from(i) + k as f64).sin() + 0.3 * k as f64))
        .collect();
    let each = |t: f64| t * 1e9 / x.len() as f64;
    let mut plain = || {
        let mut s = 0.0;
        for x in &x {
            s += dihedral(*x);
        }
        black_box(s);
    };
    let mut stack = || {
        let mut s = [0.0; 12];
        for x in &x {
            let tape = StackTape::<f64, 104>::new();
            let vars = tape.restart(*x);
            let g: [f64; 12] = tape.gradient(dihedral(vars));
            (0..12).for_each(|k| s[k] += g[k]);
        }
        black_box(s);
    };
    let mut tape = Tape::new();
    let mut adjoints = Adjoints::default();
    let mut growing = || {
        let mut s = [0.0; 12];
        for x in &x {
            tape.reset();
            let vars = x.map(|x| tape.variable(x));
            tape.backward(&[(dihedral(vars), 1.0)], &mut adjoints);
            (0..12).for_each(|k| s[k] += adjoints.of(vars[k]));
        }
        black_box(s);
    };
    let [plain, stack, growing] = best([&mut plain, &mut stack, &mut growing]);
    println!("energy {:.1} ns", each(plain));
    for (name, t) in [("stack tape", stack), ("growing tape", growing)] {
        println!("gradient on the {name}: {:.1} ns, {:.1} energies", each(t), t / plain);
    }
}
