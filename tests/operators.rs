//! Operators, implicit functions, Jacobians, Hessians and Taylor mode: against each other and against differences.

use md::autodiff::implicit::{self, Equations, Until, fixed_point, root};
use md::autodiff::jacobian::{
    Map, Mode, gradient, hessian, hessian_pattern, hessian_product, jacobian, jvp, sparse_hessian, vjp,
};
use md::autodiff::linear::{Pattern, solve, solve_sparse};
use md::autodiff::operators::{Operand, OperatorError, fourier, fourier_inverse, log_sum_exp, product, sum};
use md::autodiff::taylor::taylor;
use md::autodiff::{Dual, Richardson, Tape, Var};
use potentials::Scalar;
use proptest::prelude::*;

/// The largest difference of two lists relative to the largest number in them.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = a.iter().chain(b).fold(f64::MIN_POSITIVE, |m: f64, x| m.max(x.abs()));
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs())) / scale
}

/// Numbers between −1 and 1 that are the same every time.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Everything that can be asked of a map, in every mode, against differences of its values.
fn check(name: &str, f: &impl Map, x: &[f64]) {
    let y = f.call(x);
    let (n, m) = (x.len(), y.len());
    let (v, w) = (numbers(n, 7), numbers(m, 8));
    // J v by differences of values
    let along =
        |t: f64| -> Vec<f64> { f.call(&x.iter().zip(&v).map(|(x, v)| x + t * v).collect::<Vec<_>>()) };
    let richardson = Richardson::with_step(0.02);
    let by_differences: Vec<f64> =
        (0..m).map(|k| richardson.derivative(|t| along(t)[k], 0.0).value).collect();
    let (value, forward) = jvp(f, x, &v);
    assert_eq!(value, y, "{name}: the value in dual numbers");
    assert!(apart(&forward, &by_differences) < 1e-8, "{name}: {forward:?} {by_differences:?}");
    // w · J v = Jᵀ w · v
    let (value, reverse) = vjp(f, x, &w);
    assert_eq!(value, y, "{name}: the value on a tape");
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = reverse.iter().zip(&v).map(|(a, b)| (a * b).abs()).sum::<f64>();
    assert!(
        (dot(&w, &forward) - dot(&reverse, &v)).abs() < 1e-12 * size.max(1e-3),
        "{name}: J and its transpose"
    );
    // H v of w · f: forward over reverse against differences of the gradient, and nested forward mode along v
    struct Weighted<'a, F>(&'a F, &'a [f64]);
    impl<F: Map> Map for Weighted<'_, F> {
        fn call<S: Operand>(&self, x: &[S]) -> Vec<S> {
            let terms: Vec<S> = self.0.call(x).into_iter().zip(self.1).map(|(y, &w)| y * w).collect();
            vec![sum(&terms)]
        }
    }
    let weighted = Weighted(f, &w);
    let (_, product) = hessian_product(&weighted, x, &v);
    let slope = |t: f64| gradient(&weighted, &x.iter().zip(&v).map(|(x, v)| x + t * v).collect::<Vec<_>>()).1;
    let differences: Vec<f64> = (0..n).map(|k| richardson.derivative(|t| slope(t)[k], 0.0).value).collect();
    let scale = product.iter().chain(&differences).fold(1e-3, |m: f64, x| m.max(x.abs()));
    let worst = product.iter().zip(&differences).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    assert!(worst < 1e-8 * scale, "{name}: H v {product:?} {differences:?}");
    let curve = taylor(&weighted, x, &v)[0];
    assert!((curve.first - dot(&reverse, &v)).abs() < 1e-12 * size.max(1e-3), "{name}: velocity of a curve");
    assert!(
        (curve.second - dot(&product, &v)).abs() < 1e-10 * scale,
        "{name}: {} {}",
        curve.second,
        dot(&product, &v)
    );
    // reverse over forward: the other nesting
    let tape = Tape::<f64>::new();
    let both: Vec<Dual<Var<f64>>> =
        x.iter().zip(&v).map(|(&x, &v)| Dual::new(tape.variable(x), Var::constant(v))).collect();
    let along = weighted.call(&both)[0].tangent;
    let adjoints = tape.gradient(along);
    let other: Vec<f64> = both.iter().map(|x| adjoints.of(x.value)).collect();
    let worst = product.iter().zip(&other).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
    assert!(worst < 1e-10 * scale, "{name}: reverse over forward {product:?} {other:?}");
}

macro_rules! map {
    ($name:ident, |$x:ident| $body:expr) => {
        struct $name;
        impl Map for $name {
            fn call<S: Operand>(&self, $x: &[S]) -> Vec<S> {
                $body
            }
        }
    };
}

map!(Sums, |x| vec![sum(x).exp(), log_sum_exp(x), log_sum_exp(&[x[0] * 300.0, x[1] * 300.0]), sum(&x[..0])]);
map!(Products, |x| product(&x[..6], &x[6..12], [2, 3, 2]));
map!(Solves, |x| {
    // well away from singular
    let a: Vec<S> = (0..9).map(|k| if k % 4 == 0 { x[k] + 3.0 } else { x[k] }).collect();
    solve(&a, &x[9..12]).unwrap()
});
map!(Sparse, |x| {
    let pattern = Pattern::new(4, &[(0, 0), (1, 1), (2, 2), (3, 3), (0, 3), (2, 1), (3, 2), (1, 1)]);
    let a: Vec<S> = (0..8).map(|k| if k < 4 { x[k] + 3.0 } else { x[k] }).collect();
    solve_sparse(&pattern, &a, &x[8..12]).unwrap()
});
map!(Transforms, |x| {
    let [re, im] = fourier(&x[..5], &x[5..10]);
    let bent: Vec<S> = re.iter().map(|r| r.squared()).collect();
    fourier_inverse(&bent, &im).concat()
});

/// Two equations with two parameters: a circle of radius θ₀ and a bent line.
#[derive(Clone, Debug)]
struct Crossing;
impl Equations for Crossing {
    fn call<S: Operand>(&self, y: &[S], theta: &[S]) -> Vec<S> {
        vec![y[0].squared() + y[1].squared() - theta[0].squared(), y[1] - theta[1] * y[0].sin()]
    }
}
map!(Roots, |x| root(&Crossing, &[1.0, 1.0], &[x[0] + 2.0, x[1] + 1.5], Until::default()).unwrap());

/// y = cos(θ y) + a little of the other.
#[derive(Clone, Debug)]
struct Mixed;
impl Equations for Mixed {
    fn call<S: Operand>(&self, y: &[S], theta: &[S]) -> Vec<S> {
        vec![(theta[0] * y[0]).cos() + y[1] * 0.1, (theta[1] * y[1]).sin() * 0.5 + y[0] * theta[0] * 0.2]
    }
}
map!(Points, |x| fixed_point(&Mixed, &[0.5, 0.5], &[x[0] * 0.3 + 0.6, x[1] * 0.3 + 0.6], Until::default())
    .unwrap());

#[test]
fn every_operator_in_every_mode() {
    check("sums", &Sums, &numbers(4, 1));
    check("products", &Products, &numbers(12, 2));
    check("dense solves", &Solves, &numbers(12, 3));
    check("sparse solves", &Sparse, &numbers(12, 4));
    check("Fourier transforms", &Transforms, &numbers(10, 5));
    check("roots", &Roots, &numbers(2, 6));
    check("fixed points", &Points, &numbers(2, 9));
}

#[test]
fn transforms_are_those_of_the_definition() {
    let (re, im) = (numbers(6, 1), numbers(6, 2));
    let [out_re, out_im] = fourier(&re, &im);
    for j in 0..6 {
        let (mut a, mut b) = (0.0, 0.0);
        for k in 0..6 {
            let (sin, cos) = (-std::f64::consts::TAU * (j * k) as f64 / 6.0).sin_cos();
            a += re[k] * cos - im[k] * sin;
            b += re[k] * sin + im[k] * cos;
        }
        assert!((a - out_re[j]).abs() < 1e-14 && (b - out_im[j]).abs() < 1e-14);
    }
    let [back, _] = fourier_inverse(&out_re, &out_im);
    assert!(apart(&back.iter().map(|x| x / 6.0).collect::<Vec<_>>(), &re) < 1e-14);
    assert_eq!(fourier::<f64>(&[], &[]), [Vec::<f64>::new(), Vec::new()]);
}

#[test]
fn log_sum_exp_at_the_edges() {
    assert_eq!(log_sum_exp::<f64>(&[]), f64::NEG_INFINITY);
    assert_eq!(log_sum_exp(&[f64::NEG_INFINITY, 3.0]), 3.0);
    let tape = Tape::new();
    let x = [f64::NEG_INFINITY, 3.0].map(|x| tape.variable(x));
    let g = tape.gradient(log_sum_exp(&x));
    assert_eq!(x.map(|x| g.of(x)), [0.0, 1.0]);
}

/// Derivatives of a solve are those of the solution, whatever its matrix went through: from Cramer's rule.
#[test]
fn a_solve_of_two_equations_is_cramers() {
    let x = [2.0, -1.0, 0.5, 1.5, 0.3, 0.7];
    let cramer = |x: &[Dual<Dual<f64>>]| {
        let [a, b, c, d, e, f] = [x[0], x[1], x[2], x[3], x[4], x[5]];
        (e * d - b * f) / (a * d - b * c)
    };
    for (i, j) in (0..6).flat_map(|i| (0..6).map(move |j| (i, j))) {
        let at = |k: usize| {
            let one = |on: bool| if on { 1.0 } else { 0.0 };
            Dual::new(Dual::new(x[k], one(k == i)), Dual::new(one(k == j), 0.0))
        };
        let x: Vec<_> = (0..6).map(at).collect();
        let (got, want) = (solve(&x[..4], &x[4..]).unwrap()[0], cramer(&x));
        for (g, w) in [(got.value.tangent, want.value.tangent), (got.tangent.tangent, want.tangent.tangent)] {
            assert!((g - w).abs() < 1e-13, "{i} {j}: {g} {w}");
        }
    }
}

#[test]
fn what_has_no_value_says_so() {
    assert_eq!(solve(&[1.0, 2.0, 2.0, 4.0], &[1.0, 1.0]), Err(OperatorError::Singular { size: 2 }));
    let diagonal = Pattern::new(2, &[(0, 0)]);
    assert_eq!(solve_sparse(&diagonal, &[1.0], &[1.0, 1.0]), Err(OperatorError::Singular { size: 2 }));
    /// y² + 1 has no root, and y ↦ 2y + 1 runs away from its fixed point.
    #[derive(Clone, Debug)]
    struct Nowhere;
    impl Equations for Nowhere {
        fn call<S: Operand>(&self, y: &[S], _: &[S]) -> Vec<S> {
            vec![y[0].squared() + 1.0]
        }
    }
    #[derive(Clone, Debug)]
    struct Away;
    impl Equations for Away {
        fn call<S: Operand>(&self, y: &[S], _: &[S]) -> Vec<S> {
            vec![y[0] * 2.0 + 1.0]
        }
    }
    let until = implicit::Until { iterations: 50, ..Default::default() };
    let message = root::<_, f64>(&Nowhere, &[0.3], &[], until).unwrap_err().to_string();
    assert!(message.starts_with("a root by Newton's method did not converge in 50 iterations"), "{message}");
    let message = fixed_point::<_, f64>(&Away, &[0.3], &[], until).unwrap_err().to_string();
    assert!(message.starts_with("a fixed point did not converge"), "{message}");
}

/// A loop over an operator's results, constants among its variables, and one result that nothing depends on.
#[test]
fn operators_among_other_steps() {
    let tape = Tape::new();
    let x = tape.variable(0.5);
    let constant = Var::<f64>::constant;
    let y = product(&[x, constant(2.0), x * x, x], &[x.sin(), constant(1.0)], [2, 2, 1]);
    let z = y[0] * y[0] + x;
    let by_hand = |x: Dual<f64>| {
        let y = x * x.sin() + 2.0;
        y * y + x
    };
    assert!((tape.gradient(z).of(x) - by_hand(Dual::variable(0.5)).tangent).abs() < 1e-15);
    // what is computed of constants is none of the tape's business
    let before = tape.len();
    let y = product(&[constant(1.0)], &[constant(2.0)], [1, 1, 1]);
    assert_eq!((y[0].value(), y[0].node(), tape.len()), (2.0, 0, before));
    let mut tape = tape;
    tape.reset();
    assert_eq!(tape.bytes(), 4);
}

map!(Wide, |x| vec![sum(&x.iter().map(|x| x.squared()).collect::<Vec<_>>()), x[0] * x[1]]);
map!(Tall, |x| (1..=4).map(|k| (x[0] * k as f64).sin() * x[1]).collect());

#[test]
fn a_jacobian_goes_the_cheaper_way() {
    let x = numbers(5, 3);
    let wide = jacobian(&Wide, &x);
    assert_eq!(wide.mode, Mode::Reverse);
    assert_eq!(wide.rows[0], x.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
    assert_eq!(wide.rows[1], [x[1], x[0], 0.0, 0.0, 0.0]);
    let tall = jacobian(&Tall, &x[..2]);
    assert_eq!((tall.mode, tall.rows.len()), (Mode::Forward, 4));
    for (k, row) in tall.rows.iter().enumerate() {
        let k = (k + 1) as f64;
        assert!(apart(row, &[k * (k * x[0]).cos() * x[1], (k * x[0]).sin()]) < 1e-15);
    }
}

// A chain of springs that stiffen, tied down at its ends, and one spring from the first to the last.
map!(Ring, |x| {
    let n = x.len();
    let spring = |k: usize| {
        let d = x[(k + 1) % n] - x[k] - 1.0;
        d.squared() * 0.5 + d.squared().squared()
    };
    vec![(0..n).map(spring).fold(S::constant(0.0), |e, s| e + s)]
});

#[test]
fn a_sparse_hessian_is_the_dense_one_with_few_products() {
    for n in [3, 4, 9, 30, 31] {
        let x = numbers(n, n as u64);
        let dense = hessian(&Ring, &x);
        let sparse = sparse_hessian(&Ring, &x);
        let mut rebuilt = vec![vec![0.0; n]; n];
        for &(r, c, h) in &sparse.entries {
            rebuilt[r][c] = h;
        }
        for (a, b) in dense.iter().zip(&rebuilt) {
            assert!(apart(a, b) < 1e-14, "{n}");
        }
        // three diagonals on a ring
        assert_eq!(sparse.entries.len(), if n == 3 { 9 } else { 3 * n });
        assert!(sparse.products <= 5.min(n), "{} colours for {n}", sparse.products);
    }
    map!(Apart, |x| vec![x[0].exp() * 3.0 + x[1] * x[2] + x[3]]);
    assert_eq!(hessian_pattern(&Apart, &[0.0; 4]), [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)]);
}

proptest! {
    /// Any matrix with a strong diagonal: dense and sparse solvers agree, and so do their gradients.
    #[test]
    fn dense_and_sparse_solvers_agree(n in 1usize..7, seed in 0u64..1000) {
        let entries: Vec<_> = (0..n * n).map(|k| (k / n, k % n)).collect();
        let pattern = Pattern::new(n, &entries);
        let mut x = numbers(n * n + n, seed);
        (0..n).for_each(|k| x[k * n + k] += 2.0 + n as f64);
        let run = |sparse: bool| {
            let tape = Tape::new();
            let v: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
            let (a, b) = v.split_at(n * n);
            let y = if sparse { solve_sparse(&pattern, a, b) } else { solve(a, b) }.unwrap();
            let e = sum(&y.iter().map(|y| y.exp()).collect::<Vec<_>>());
            let g = tape.gradient(e);
            v.iter().map(|&x| g.of(x)).chain([e.value()]).collect::<Vec<_>>()
        };
        prop_assert!(apart(&run(false), &run(true)) < 1e-12);
    }
}
