//! Automatic differentiation against 30-digit values, and every mode against every other on random programs.

use md::autodiff::check::{Function, check};
use md::autodiff::lanes::Two;
use md::autodiff::{Dual, Lanes, Number, StackTape, Tape, Var};
use proptest::prelude::*;

// ---------------------------------------------------------------------------------------------------------------
// 30-digit values: tests/reference/analytic/ad_functions.json (its "source" says how they were made)

/// One of the functions of the reference file, by its name there.
struct Named<'a>(&'a str);

fn sum<S: Number>(terms: impl IntoIterator<Item = S>) -> S {
    terms.into_iter().fold(S::constant(0.0), |s, t| s + t)
}

/// log Γ(z) for z > 0: Stirling's series (Abramowitz & Stegun 6.1.41) at z + 10, and the recurrence back.
fn ln_gamma<S: Number>(z: S) -> S {
    let w = z + 10.0;
    let c = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0];
    let i = w.recip();
    let stirling = (w - 0.5) * w.ln() - w + 0.5 * (2.0 * std::f64::consts::PI).ln() + i * i.squared().poly(c);
    stirling - sum((0..10).map(|k| (z + f64::from(k)).ln()))
}

impl Function for Named<'_> {
    fn call<S: Number>(&self, x: &[S]) -> S {
        let n = x.len() as f64;
        let one = S::constant(1.0);
        match self.0.split(':').next().unwrap() {
            "x*sin(y)+y*exp(x)" => x[0] * x[1].sin() + x[1] * x[0].exp(),
            "rosenbrock2" => 100.0 * (x[1] - x[0].squared()).squared() + (1.0 - x[0]).squared(),
            "beale" => sum([1.5, 2.25, 2.625].into_iter().zip(1..).map(|(c, k)| {
                let term: S = c - x[0] * (1.0 - x[1].powi(k));
                term.squared()
            })),
            "brown_badly_scaled" => {
                (x[0] - 1e6).squared() + (x[1] - 2e-6).squared() + (x[0] * x[1] - 2.0).squared()
            }
            "powell_singular" => {
                let [a, b, c, d] = [x[0], x[1], x[2], x[3]];
                (a + 10.0 * b).squared()
                    + 5.0 * (c - d).squared()
                    + (b - 2.0 * c).powi(4)
                    + 10.0 * (a - d).powi(4)
            }
            "wood" => {
                let [a, b, c, d] = [x[0], x[1], x[2], x[3]];
                100.0 * (b - a.squared()).squared()
                    + (1.0 - a).squared()
                    + 90.0 * (d - c.squared()).squared()
                    + (1.0 - c).squared()
                    + 10.0 * (b + d - 2.0).squared()
                    + (b - d).squared() / 10.0
            }
            "helical_valley" => {
                let theta = x[1].atan2(x[0]) / std::f64::consts::TAU;
                let r = (x[0].squared() + x[1].squared()).sqrt();
                100.0 * (x[2] - 10.0 * theta).squared() + 100.0 * (r - 1.0).squared() + x[2].squared()
            }
            "speelpenning" => x.iter().fold(one, |p, &x| p * x),
            "log_sum_exp" => sum(x.iter().map(|x| x.exp())).ln(),
            "det3 of rows" => {
                x[0] * (x[4] * x[8] - x[5] * x[7]) - x[1] * (x[3] * x[8] - x[5] * x[6])
                    + x[2] * (x[3] * x[7] - x[4] * x[6])
            }
            "x^y" => (x[1] * x[0].ln()).exp(),
            "hypot(x,y)*atan2(y,x)" => (x[0].squared() + x[1].squared()).sqrt() * x[1].atan2(x[0]),
            "erf(x)*erfc(y)+lgamma(x+y)" => (1.0 - x[0].erfc()) * x[1].erfc() + ln_gamma(x[0] + x[1]),
            "tanh(x)*log1p(y)+expm1(x*y)+cbrt(y)" => {
                x[0].tanh() * (1.0 + x[1]).ln() + ((x[0] * x[1]).exp() - 1.0) + x[1].powf(1.0 / 3.0)
            }
            "asin(x)*acos(y)+asinh(x)+acosh(1+y)+atanh(x*y)" => {
                let (x, y) = (x[0], x[1]);
                let asin = x.atan2((1.0 - x.squared()).sqrt());
                let asinh = (x + (x.squared() + 1.0).sqrt()).ln();
                let acosh = (1.0 + y + (y.squared() + 2.0 * y).sqrt()).ln();
                let atanh = 0.5 * ((1.0 + x * y) / (1.0 - x * y)).ln();
                asin * y.acos() + asinh + acosh + atanh
            }
            "sin(x)/x * sqrt(y)" => x[0].sin() / x[0] * x[1].sqrt(),
            // Moré, Garbow, Hillstrom, ACM Trans. Math. Softw. 7, 17 (1981), problems 25–27 and 30
            "variably_dimensioned MGH25 n=4" => {
                let weighted = sum(x.iter().zip(1..).map(|(&x, j)| f64::from(j) * (x - 1.0)));
                sum(x.iter().map(|&x| (x - 1.0).squared())) + weighted.squared() + weighted.powi(4)
            }
            "trigonometric MGH26 n=4" => {
                let cosines = sum(x.iter().map(|x| x.cos()));
                sum(x
                    .iter()
                    .zip(1..)
                    .map(|(&x, i)| (n - cosines + f64::from(i) * (1.0 - x.cos()) - x.sin()).squared()))
            }
            "brown_almost_linear MGH27 n=4" => {
                let total = sum(x.iter().copied());
                let product = x.iter().fold(one, |p, &x| p * x);
                sum(x[..x.len() - 1].iter().map(|&x| (x + total - (n + 1.0)).squared()))
                    + (product - 1.0).squared()
            }
            "broyden_tridiagonal MGH30 n=5" => sum((0..x.len()).map(|i| {
                let before = if i == 0 { S::constant(0.0) } else { x[i - 1] };
                let after = x.get(i + 1).copied().unwrap_or(S::constant(0.0));
                ((3.0 - 2.0 * x[i]) * x[i] - before - 2.0 * after + 1.0).squared()
            })),
            other => panic!("no function {other}"),
        }
    }
}

struct Row {
    function: String,
    point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<Vec<f64>>,
}

fn rows() -> Vec<Row> {
    let text = include_str!("reference/analytic/ad_functions.json");
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let number = |v: &serde_json::Value| v.as_str().unwrap().parse::<f64>().unwrap();
    let numbers = |v: &serde_json::Value| v.as_array().unwrap().iter().map(number).collect::<Vec<_>>();
    let rows = json["rows"].as_array().unwrap().iter().map(|row| Row {
        function: row["function"].as_str().unwrap().to_string(),
        point: numbers(&row["point"]),
        value: number(&row["value"]),
        gradient: numbers(&row["gradient"]),
        hessian: row["hessian_lower"].as_array().unwrap().iter().map(numbers).collect(),
    });
    rows.collect()
}

/// Within 1e-12 of itself, or what rounding the variables in the last place would change (times 32).
fn close(got: f64, want: f64, sensitivity: f64, what: &str) {
    let limit = 1e-12 * want.abs() + 32.0 * f64::EPSILON * sensitivity;
    assert!((got - want).abs() <= limit, "{what}: {got:e}, should be {want:e} ± {limit:e}");
}

#[test]
fn thirty_digit_values() {
    let rows = rows();
    assert_eq!(rows.len(), 26);
    for row in rows {
        let (f, x, n) = (Named(&row.function), &row.point, row.point.len());
        let h = |i: usize, j: usize| if i >= j { row.hessian[i][j] } else { row.hessian[j][i] };
        let sensitivity = |i: usize| (0..n).map(|j| (h(i, j) * x[j]).abs()).sum::<f64>();
        let largest = (0..n)
            .flat_map(|i| (0..=i).map(move |j| (i, j)))
            .fold(0.0, |m: f64, (i, j)| m.max(h(i, j).abs()));
        let of_value = row.value.abs() + row.gradient.iter().zip(x).map(|(g, x)| (g * x).abs()).sum::<f64>();

        close(f.call(x), row.value, of_value, &row.function);
        let tape = Tape::new();
        let vars: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
        let y = f.call(&vars);
        close(y.value(), row.value, of_value, &row.function);
        let adjoints = tape.gradient(y);
        for (i, &var) in vars.iter().enumerate() {
            close(
                adjoints.of(var),
                row.gradient[i],
                sensitivity(i),
                &format!("{} reverse, {i}", row.function),
            );
            let seeded: Vec<_> = (0..n).map(|j| Dual::new(x[j], f64::from(i == j))).collect();
            let y = f.call(&seeded);
            close(y.tangent, row.gradient[i], sensitivity(i), &format!("{} forward, {i}", row.function));
        }
        for j in 0..n {
            let tape = Tape::new();
            let vars: Vec<_> = (0..n).map(|k| tape.variable(Dual::new(x[k], f64::from(k == j)))).collect();
            let adjoints = tape.gradient(f.call(&vars));
            for (i, &var) in vars.iter().enumerate() {
                let what = format!("{} Hessian, {i} {j}", row.function);
                close(adjoints.of(var).tangent, h(i, j), largest, &what);
            }
        }
    }
}

#[test]
fn the_reference_functions_pass_the_check() {
    for row in rows() {
        let report = check(&Named(&row.function), std::slice::from_ref(&row.point));
        // at the badly scaled start, a component of 1e-6 remains of two million
        assert!(report.ok() || row.function.starts_with("brown_badly"), "{}\n{report}", row.function);
    }
}

// ---------------------------------------------------------------------------------------------------------------
// random programs

/// One step: an operation on earlier results and a constant.
type Step = (u8, usize, usize, f64);

#[derive(Clone, Debug)]
struct Program(Vec<Step>);

impl Function for Program {
    fn call<S: Number>(&self, x: &[S]) -> S {
        let mut r = x.to_vec();
        for &(op, a, b, c) in &self.0 {
            let (a, b) = (r[a % r.len()], r[b % r.len()]);
            // products and exponentials are kept in bounds
            r.push(match op % 22 {
                0 => a + b,
                1 => a - b,
                2 => a * b.tanh(),
                3 => a / (1.0 + b.squared()),
                4 => c * a,
                5 => a + c,
                6 => c - a,
                7 => a.sin(),
                8 => a.cos() * b,
                9 => a.tanh().exp(),
                10 => (1.5 + a.squared()).ln(),
                11 => (0.1 + a.squared()).sqrt(),
                12 => (0.7 + a.squared()).rsqrt() - b,
                13 => a.atan2(0.5 + b.squared()),
                14 => a.tanh().powi(3).fma(b, a),
                15 => (0.3 + a.squared()).powf(0.7),
                16 => a.abs() - b,
                17 => a.max(b),
                18 => a.min(S::constant(c)) + b,
                19 => a.relu() + b.tanh().poly([c, 1.0, -0.5, 0.25]),
                20 => S::select(a.lt(b), a * 0.5, b.sin()),
                _ => (0.9 * a.tanh()).acos() + (2.0 + a.tanh()).powi(-2) * b,
            });
        }
        r[r.len() - 1]
    }
}

fn program() -> impl Strategy<Value = Program> {
    prop::collection::vec((any::<u8>(), 0..40usize, 0..40usize, -2.0..2.0f64), 1..30).prop_map(Program)
}

const N: usize = 3;

fn forward<S: Number>(f: &impl Function, x: [S; N]) -> [S; N]
where
    Dual<S>: Number,
{
    std::array::from_fn(|k| {
        let seeded: [Dual<S>; N] = std::array::from_fn(|j| Dual::new(x[j], S::constant(f64::from(j == k))));
        f.call(&seeded).tangent
    })
}

fn reverse<S: Number + 'static>(f: &impl Function, x: [S; N]) -> [S; N]
where
    for<'t> Var<'t, S>: Number,
{
    let tape = Tape::new();
    let vars = x.map(|x| tape.variable(x));
    let adjoints = tape.gradient(f.call(&vars));
    vars.map(|v| adjoints.of(v))
}

fn stack<S: Number + 'static>(f: &impl Function, x: [S; N]) -> [S; N]
where
    for<'t> Var<'t, S, StackTape<S, 512>>: Number,
{
    let tape = StackTape::<S, 512>::new();
    let vars = x.map(|x| tape.variable(x));
    let adjoints = tape.adjoints(f.call(&vars));
    vars.map(|v| adjoints[v.node() as usize])
}

fn assert_close(got: [f64; N], want: [f64; N], what: &str) -> Result<(), TestCaseError> {
    let scale = want.iter().fold(1.0, |m: f64, w| m.max(w.abs()));
    for (g, w) in got.into_iter().zip(want) {
        prop_assert!((g - w).abs() <= 1e-10 * scale, "{}: {:?} {:?}", what, got, want);
    }
    Ok(())
}

/// A function of x₀ that is infinite, or has an infinite or undefined derivative, at 0.
#[derive(Clone, Copy, Debug)]
struct Masked {
    singular: u8,
    outer: u8,
}

impl Function for Masked {
    fn call<S: Number>(&self, x: &[S]) -> S {
        let u = x[0];
        let singular = match self.singular % 8 {
            0 => u.sqrt(),
            1 => u.ln(),
            2 => u.recip(),
            3 => u.rsqrt() * x[1],
            4 => u.powf(0.5),
            5 => x[2] / u,
            6 => u.atan2(u * x[1]),
            _ => (u.sqrt() * x[1]).sin() + u.powi(-3),
        };
        let inside = S::constant(0.0).lt(u);
        let y = S::select(inside, singular, x[1] * 2.0 + u);
        match self.outer % 4 {
            0 => y,
            1 => y.sin() * x[2],
            // another choice above the first
            2 => S::select(x[2].lt(S::constant(0.5)), y.squared(), x[1]) + x[2],
            // and the branch once more, not masked
            _ => y * x[1] + x[0] * x[2],
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_modes_agree(f in program(), x in prop::array::uniform3(-2.0..2.0f64), beside in prop::array::uniform3(-2.0..2.0f64)) {
        let want = forward(&f, x);
        assert_close(reverse(&f, x), want, "reverse")?;
        assert_close(stack(&f, x), want, "stack")?;
        let duals = x.map(|x| Dual::new(x, 0.3));
        assert_close(reverse(&f, duals).map(|g| g.value), want, "Var<Dual>")?;
        let second = forward(&f, duals).map(|g| g.tangent);
        assert_close(reverse(&f, duals).map(|g| g.tangent), second, "Var<Dual>, second")?;
        assert_close(stack(&f, duals).map(|g| g.tangent), second, "stack over Dual, second")?;

        // lanes, which choose differently in places
        let both: [Two; N] = std::array::from_fn(|k| Two([x[k], beside[k]]));
        for (lane, x) in [x, beside].into_iter().enumerate() {
            let want = forward(&f, x);
            assert_close(forward(&f, both).map(|g| g.lane(lane)), want, "lanes, forward")?;
            assert_close(reverse(&f, both).map(|g| g.lane(lane)), want, "lanes, reverse")?;
            assert_close(stack(&f, both).map(|g| g.lane(lane)), want, "lanes, stack")?;
        }
    }

    #[test]
    fn a_branch_that_is_not_taken_leaves_no_trace(
        singular in 0..8u8, outer in 0..4u8, u in 0.1..2.0f64,
        y in prop::array::uniform2(-2.0..2.0f64), z in prop::array::uniform2(0.0..1.0f64), swap in any::<bool>(),
    ) {
        let f = Masked { singular, outer };
        let mut points = [[0.0, y[0], z[0]], [u, y[1], z[1]]];
        if swap {
            points.swap(0, 1);
        }
        let both: [Two; N] = std::array::from_fn(|k| Two([points[0][k], points[1][k]]));
        let duals = both.map(|x| Dual::new(x, Two([0.3; 2])));
        for (lane, x) in points.into_iter().enumerate() {
            let want = reverse(&f, x);
            prop_assert!(want.iter().all(|g| g.is_finite()), "{:?}", want);
            assert_close(forward(&f, x), want, "forward")?;
            assert_close(stack(&f, x), want, "stack")?;
            assert_close(forward(&f, both).map(|g| g.lane(lane)), want, "lanes, forward")?;
            assert_close(reverse(&f, both).map(|g| g.lane(lane)), want, "lanes, reverse")?;
            assert_close(stack(&f, both).map(|g| g.lane(lane)), want, "lanes, stack")?;
            let second = reverse(&f, x.map(|x| Dual::new(x, 0.3))).map(|g| g.tangent);
            prop_assert!(second.iter().all(|g| g.is_finite()), "{:?}", second);
            assert_close(reverse(&f, duals).map(|g| g.tangent.lane(lane)), second, "lanes over Dual, reverse")?;
            assert_close(stack(&f, duals).map(|g| g.tangent.lane(lane)), second, "lanes over Dual, stack")?;
        }
    }
}
