//! Formulas: what they mean, what is wrong with those that mean nothing, and that derivatives are those of the function.

use md::autodiff::{Dual, Richardson, Tape, Var};
use md::formula::{Formula, FormulaError, Input, MAX_DEPTH, Program};
use proptest::prelude::*;
use std::f64::consts::{E, PI};

/// The value of a formula in x and y.
fn value(text: &str, x: f64, y: f64) -> f64 {
    xy(text).eval::<f64, f64>(&[x, y], &[])
}

fn xy(text: &str) -> Program {
    let formula = Formula::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    formula.compile(&[Input::Value("x"), Input::Value("y")], &[]).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[track_caller]
fn close(got: f64, want: f64, what: &str) {
    assert!((got - want).abs() <= 4e-15 * want.abs().max(1e-300), "{what} = {got:?}, not {want:?}");
}

#[test]
fn precedence_is_that_of_mathematics() {
    // by arithmetic, x = 3, y = 2
    for (text, want) in [
        ("-x^2", -9.0),
        ("(-x)^2", 9.0),
        ("2^3^2", 512.0),
        ("(2^3)^2", 64.0),
        ("x^-y", 1.0 / 9.0),
        ("2^-1", 0.5),
        ("-2^-1", -0.5),
        ("x - y - 1", 0.0),
        ("x - (y - 1)", 2.0),
        ("x / y / 3", 0.5),
        ("x / (y / 3)", 4.5),
        ("x / y * 4", 6.0),
        ("1 + x * y", 7.0),
        ("(1 + x) * y", 8.0),
        ("x * -y", -6.0),
        ("x - -y", 5.0),
        ("--x", 3.0),
        ("+x", 3.0),
        ("x*y^2", 12.0),
        ("-x*y", -6.0),
        ("2*x^2/y", 9.0),
        ("pow(x, y) + x^y", 18.0),
        ("min(x, y, 1) + max(x, y, 1)", 4.0),
        ("if(x > y, 1, 2)", 1.0),
        ("if(x < y, 1, 2)", 2.0),
        ("if(x <= 3, x, y) + if(x >= 3, 10, 20)", 13.0),
        ("if(x + 1 < y + 2, 1, 0)", 0.0),
        ("1e2 + .5 + 2. + 1E-1 + 1e+1", 112.6),
        ("  x\t+\ny ", 5.0),
    ] {
        close(value(text, 3.0, 2.0), want, text);
    }
}

#[test]
fn functions_have_their_values() {
    // against the standard library, and values that are known
    let table: [(&str, fn(f64, f64) -> f64); 32] = [
        ("sqrt(x)", |x, _| x.sqrt()),
        ("exp(x)", |x, _| x.exp()),
        ("ln(x)", |x, _| x.ln()),
        ("log(x)", |x, _| x.ln()),
        ("log10(x)", |x, _| x.log10()),
        ("sin(x)", |x, _| x.sin()),
        ("cos(x)", |x, _| x.cos()),
        ("tan(x)", |x, _| x.tan()),
        ("asin(y)", |_, y| y.asin()),
        ("acos(y)", |_, y| y.acos()),
        ("atan(x)", |x, _| x.atan()),
        ("sinh(x)", |x, _| x.sinh()),
        ("sinh(y/1e9)", |_, y| (y / 1e9).sinh()),
        ("cosh(x)", |x, _| x.cosh()),
        ("tanh(x)", |x, _| x.tanh()),
        ("abs(-x)", |x, _| x),
        ("atan2(x, -y)", |x, y| x.atan2(-y)),
        ("erf(x) + erfc(x)", |_, _| 1.0),
        ("x^0.5", |x, _| x.sqrt()),
        ("x^1.5", |x, _| x * x.sqrt()),
        ("x^-2.5", |x, _| 1.0 / (x * x * x.sqrt())),
        ("x^0.3", |x, _| x.powf(0.3)),
        ("x^y", |x, y| x.powf(y)),
        ("2^y", |_, y| 2f64.powf(y)),
        ("x^0", |_, _| 1.0),
        ("x^1", |x, _| x),
        ("x^17", |x, _| x.powi(17)),
        ("(x*y)^-3", |x, y| (x * y).powi(-3)),
        ("pi*x", |x, _| PI * x),
        ("exp(1)*x", |x, _| E * x),
        ("(x + y)/(x - y)", |x, y| (x + y) / (x - y)),
        ("3/x + x/3", |x, _| 3.0 / x + x / 3.0),
    ];
    for (text, f) in table {
        for (x, y) in [(0.7, 0.4), (1.9, 0.95), (3.1, 0.01)] {
            close(value(text, x, y), f(x, y), text);
        }
    }
}

/// A formula of x > 1 and y in (0, 1), and where it may be compared with differences.
const SMOOTH: &[&str] = &[
    "y*(1 - exp(-x*(y - 0.3)))^2",
    "4*y*((y/x)^12 - (y/x)^6)",
    "x^y + y^x + 2^x + x^2.5 + x^-1.5 + y^0.3",
    "sqrt(x*y) + ln(x + y)/log10(x + 2)",
    "sin(x)*cos(y) + tan(y) + asin(y) + acos(y/2) + atan(x)",
    "sinh(x) - cosh(y) + tanh(x*y) + erf(x) - erfc(y)",
    "atan2(y, x) + abs(y - 7) + pow(x, 3)",
    "if(x > 1.5, x^2*y, x*y^3) + min(x, y) + max(x^2, y, 0.1)",
    "x/y/(x + y)^2 - -x^3",
    "(x^2 + y^2)^-0.5",
];

#[test]
fn derivatives_are_slopes_and_agree_in_every_mode() {
    for text in SMOOTH {
        let program = xy(text);
        let slopes = program.with_slopes(&[1.0, 1.0]).unwrap();
        let again = slopes.with_slopes(&[1.0, 1.0]).unwrap();
        for (x, y) in [(1.2, 0.4), (2.3, 0.85), (1.7, 0.2)] {
            let f = |x: f64, y: f64| program.eval::<f64, f64>(&[x, y], &[]);
            // one after the other by forward mode
            let d = |x, y| program.eval::<Dual<f64>, f64>(&[x, y], &[]).tangent;
            let forward = [d(Dual::variable(x), Dual::passive(y)), d(Dual::passive(x), Dual::variable(y))];
            // both by one backward pass
            let tape = Tape::<f64>::new();
            let at = [tape.variable(x), tape.variable(y)];
            let e = program.eval::<Var<f64>, f64>(&at, &[]);
            let adjoints = tape.gradient(e);
            // as a program of their own
            let own = slopes.results::<f64, f64>(&[x, y], &[]);
            close(own[0], f(x, y), text);
            let differences = Richardson::with_step(0.02);
            let by_x = differences.derivative(|x| f(x, y), x);
            let by_y = differences.derivative(|y| f(x, y), y);
            for (k, difference) in [by_x, by_y].into_iter().enumerate() {
                let size = forward[k].abs().max(1.0);
                for derivative in [forward[k], adjoints.of(at[k]), own[k + 1]] {
                    let allowed = 1e-9 * size + 10.0 * difference.error;
                    let error = (derivative - difference.value).abs();
                    assert!(error < allowed, "{text}: {derivative} is not {difference:?}");
                }
                assert!((forward[k] - own[k + 1]).abs() < 1e-13 * size, "{text}: {forward:?}, {own:?}");
                assert!((forward[k] - adjoints.of(at[k])).abs() < 1e-13 * size, "{text}");
            }
            // second derivatives: nested, and a program of a program
            let nested = |a: [f64; 2], b: [f64; 2]| {
                let v = |k: usize, x| Dual::new(Dual::new(x, a[k]), Dual::passive(b[k]));
                program.eval::<Dual<Dual<f64>>, f64>(&[v(0, x), v(1, y)], &[]).tangent.tangent
            };
            let mixed = nested([1.0, 0.0], [0.0, 1.0]);
            let difference = differences.derivative(|y| d(Dual::variable(x), Dual::passive(y)), y);
            let allowed = 1e-8 * mixed.abs().max(1.0) + 10.0 * difference.error;
            assert!((mixed - difference.value).abs() < allowed, "{text}: {mixed} is not {difference:?}");
            // results E, ∂x, ∂y; then their slopes in x, then in y
            let second = again.results::<f64, f64>(&[x, y], &[]);
            for k in [5, 7] {
                let error = (second[k] - mixed).abs();
                assert!(error < 1e-12 * mixed.abs().max(1.0), "{text}: {} is not {mixed}", second[k]);
            }
        }
    }
}

#[test]
fn parameters_are_passive_or_active() {
    let formula = Formula::parse("D*(1 - exp(-a*(r - r0)))^2").unwrap();
    let names: Vec<_> = formula.names().iter().map(|n| (n.name.as_str(), n.span.clone())).collect();
    assert_eq!(names, [("D", 0..1), ("a", 12..13), ("r", 15..16), ("r0", 19..21)]);
    for input in [Input::Value("r"), Input::Distance("r")] {
        let program = formula.compile(&[input], &["D", "a", "r0"]).unwrap();
        let (d, a, r0, r): (f64, f64, f64, f64) = (3.0, 2.0, 1.5, 1.75);
        let given = if matches!(input, Input::Distance(_)) { r * r } else { r };
        // E = D (1 − u)², u = e^(−a (r − r0)); ∂E/∂D = (1 − u)², ∂E/∂a = 2 D (1 − u) u (r − r0)
        let u = (-a * (r - r0)).exp();
        let active = program.eval::<Dual<f64>, Dual<f64>>(
            &[Dual::passive(given)],
            &[Dual::variable(d), Dual::passive(a), Dual::passive(r0)],
        );
        close(active.value, d * (1.0 - u).powi(2), "E");
        close(active.tangent, (1.0 - u).powi(2), "∂E/∂D");
        let tape = Tape::<f64>::new();
        let theta = [d, a, r0].map(|x| tape.variable(x));
        let e = program.eval(&[tape.variable(given)], &theta);
        close(tape.gradient(e).of(theta[1]), 2.0 * d * (1.0 - u) * u * (r - r0), "∂E/∂a");
        let passive = program.eval::<Dual<f64>, f64>(&[Dual::variable(given)], &[d, a, r0]);
        let slope = 2.0 * d * (1.0 - u) * u * a;
        let slope = if given == r { slope } else { slope / (2.0 * r) };
        close(passive.tangent, slope, "slope");
    }
}

#[test]
fn what_is_given_as_squares_and_cosines_takes_no_root_and_no_arc() {
    let steps = |text: &str, input: Input| {
        let program = Formula::parse(text).unwrap().compile(&[input], &["a"]).unwrap();
        program.steps().iter().map(|s| s.op).collect::<Vec<_>>()
    };
    use md::formula::Op;
    assert_eq!(steps("(a/r)^12", Input::Distance("r")), [Op::Powi(-6), Op::Mul]);
    assert_eq!(steps("a*cos(t)", Input::Angle("t")), [Op::Mul]);
    assert_eq!(steps("a*2*3", Input::Value("t")), []);
    // common steps stand once, constants are folded, what parameters decide comes first
    assert_eq!(steps("exp(a*t) + 2*3*exp(t*a)", Input::Value("t")), [Op::Mul, Op::Exp, Op::Mul, Op::Add]);
    assert_eq!(steps("t*exp(a) + 0*sin(t) + (2 - 2)", Input::Value("t")), [Op::Mul]);
}

#[track_caller]
fn wrong(text: &str) -> FormulaError {
    let parsed = Formula::parse(text);
    let compiled = parsed.and_then(|f| f.compile(&[Input::Value("r")], &["sigma", "epsilon"]).map(|_| ()));
    compiled.expect_err(text)
}

#[test]
fn errors_point_at_the_word_and_say_what_would_be_right() {
    // formula, word, part of the message, part of the help
    for (text, word, message, help) in [
        ("4*epsilom*r", "epsilom", "there is no `epsilom`", "did you mean `epsilon`?"),
        ("4*eps*r", "eps", "there is no `eps`", "parameters that are given are `sigma`, `epsilon`"),
        ("sqr(r)", "sqr", "no function `sqr`", "did you mean `sqrt`?"),
        ("sigma(r)", "sigma", "no function `sigma`", "a product is written with `*`"),
        ("r + sin", "sin", "its operands are missing", "write `sin(x)`"),
        ("sin(r, r)", "sin", "takes 1 operand, not 2", "such as `sin(x)`"),
        ("min(r)", "min", "takes at least 2 operands, not 1", "min(x, y)"),
        ("2r", "r", "follows without an operator", "write `2*r`"),
        ("2 r", "r", "follows without an operator", "with `*`"),
        ("2 (r)", "(", "follows without an operator", "with `*`"),
        ("(r + 1", "(", "no `)` to this `(`", "close"),
        ("sin(r", "(", "no `)` to this `(`", "close"),
        ("r)", ")", "no `(` to this `)`", "take it out"),
        ("r + * 2", "*", "missing before `*`", "should stand here"),
        ("r,5", ",", "outside of any function", "decimal point"),
        ("(r,5)", ",", "outside of any function", "decimal point"),
        ("1.2.3", "1.2.3", "is not a number", "such as"),
        ("1e999", "1e999", "too large a number", "1.8e308"),
        ("r**2", "**", "no meaning", "with `^`"),
        ("r²", "r²", "there is no `r²`", "did you mean `r`?"),
        ("r·r", "·", "no meaning", "`*`"),
        ("E = r", "=", "no equations", "without a name"),
        ("r < 1", "<", "not a number", "if(x < y, 1, 0)"),
        ("(r < 1)*2", "<", "not a number", "if(x < y, 1, 0)"),
        ("if(r, 1, 2)", "r", "is a comparison", "such as"),
        ("if(r < 1 < 2, 1, 2)", "<", "two comparisons", "if("),
        ("if(r < 1, 2)", "if", "takes 3 operands, not 2", "such as"),
        ("r[1]", "[", "no meaning", "parentheses"),
        ("sin()", "sin", "takes 1 operand, not 0", "such as"),
    ] {
        let error = wrong(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(&text[error.span.clone()], word, "{text}: {error:?}");
        assert!(error.help.as_deref().is_some_and(|h| h.contains(help)), "{text}: {error:?}");
    }
    assert_eq!(wrong("r +").span, 3..3);
    assert_eq!(wrong("").message, "the formula is empty");
    assert_eq!(wrong(" ").message, "the formula is empty");
}

#[test]
fn depth_and_size_are_limited() {
    for open in ["(", "-", "sin(", "r^", "+", "if(r < 1, ", "min(r, "] {
        let deep = open.repeat(700);
        assert!(wrong(&deep).message.contains("nested more than"), "{open}");
        let fine = open.repeat(MAX_DEPTH - 1);
        assert!(!wrong(&fine).message.contains("nested"), "{open}");
    }
    assert!(wrong(&"r+".repeat(100_000)).message.contains("bytes long"));
    // steps without end that are all needed at once
    let product = (0..100).map(|k| format!("(1 + sin({k}*r))")).collect::<Vec<_>>();
    assert!(Formula::parse(&product.join("*")).unwrap().compile(&[Input::Value("r")], &[]).is_ok());
    let towers = (1..90).map(|k| format!("sin({k}*r)")).collect::<Vec<_>>();
    let backward = towers.iter().rev().cloned().collect::<Vec<_>>();
    let all = format!("({})/({})", towers.join("-"), backward.join("*"));
    assert!(wrong(&all).message.contains("too large"));
    for powers in ["r^1000^1000", "(((r^999)^999)^999)^999", "r^(1e300)", "((r^512)^512)^-512", "r^(0/0)"] {
        if let Ok(program) = Formula::parse(powers).unwrap().compile(&[Input::Value("r")], &[]) {
            assert!(program.with_slopes(&[1.0]).is_some());
        }
    }
}

fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("r"),
        Just("sigma"),
        Just("2"),
        Just("0.5"),
        Just("+"),
        Just("-"),
        Just("*"),
        Just("/"),
        Just("^"),
        Just("("),
        Just(")"),
        Just("sin("),
        Just("exp("),
        Just("if("),
        Just("<"),
        Just(","),
        Just("min("),
        Just("1e"),
        Just("."),
        Just(" "),
        Just("é"),
        Just("σ"),
        Just("pi"),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

/// A formula that makes sense, with its value at r = 0.7.
fn sensible() -> impl Strategy<Value = (String, f64)> {
    let leaf = prop_oneof![
        Just(("r".to_owned(), 0.7)),
        (0u32..2000).prop_map(|k| (format!("{}", f64::from(k) / 64.0), f64::from(k) / 64.0)),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a} + {b})"), x + y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a} - {b})"), x - y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a}*{b})"), x * y)),
            two.clone().prop_map(|((a, x), (b, y))| (format!("({a}/(1 + ({b})^2))"), x / (1.0 + y * y))),
            two.prop_map(|((a, x), (b, y))| (format!("if({a} < {b}, 1, {a})"), if x < y { 1.0 } else { x })),
            inner.clone().prop_map(|(a, x)| (format!("sin({a})"), x.sin())),
            inner.prop_map(|(a, x)| (format!("-{a}"), -x)),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        look(&text);
    }
    #[test]
    fn no_words_make_it_panic(text in words()) {
        look(&text);
    }
    #[test]
    fn any_formula_has_the_value_of_its_operators((text, want) in sensible()) {
        let program = Formula::parse(&text).unwrap().compile(&[Input::Value("r")], &[]);
        // (values of comparisons may hang on the last digit; sums lose digits where they cancel)
        if let Ok(program) = program && !text.contains("if") {
            let got = program.eval::<f64, f64>(&[0.7], &[]);
            let dual = program.eval::<Dual<f64>, f64>(&[Dual::variable(0.7)], &[]);
            prop_assert_eq!(dual.value.to_bits(), got.to_bits());
            let scale = want.abs().max(1.0);
            prop_assert!((got - want).abs() <= 1e-6 * scale, "{} = {}, not {}", text, got, want);
            if let Some(own) = program.with_slopes(&[1.0]) {
                let own = own.results::<f64, f64>(&[0.7], &[]);
                let size = dual.tangent.abs().max(1.0);
                prop_assert!((own[1] - dual.tangent).abs() <= 1e-6 * size, "{}: {:?}, not {:?}", text, own, dual);
            }
        }
    }
}

/// Reads a text, which must not panic; what is blamed must be in it.
fn look(text: &str) {
    let parsed = Formula::parse(text);
    match parsed.and_then(|f| f.compile(&[Input::Distance("r")], &["sigma"])) {
        Ok(program) => {
            let _ = program.eval::<f64, f64>(&[0.5], &[0.3]);
            let _ = program
                .with_slopes(&[1.0])
                .map(|p| p.results::<f64, f64>(&[0.5], &[0.3; 200][..p.prepared()]));
        }
        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error:?}"),
    }
}
