//! Fits of parameters: minimisers against known minima, derivatives against each other and differences, and parameters that are
//! known because the data were made of them.

use md::autodiff::Richardson;
use md::fit::optimize::{Normal, Objective, Optimizer, Slope};
use md::fit::{Free, Problem, Sample, System, Uncertainties, Uncertainty};
use md::forces::{Direction, Evaluator, ForceSource, Forces};
use md::input::plan::Plan;
use md::input::reader::Document;
use md::random::{Noise, Purpose};
use md::system::{Positions, State};
use nalgebra::DMatrix;
use std::convert::Infallible;

/// Residuals and their Jacobian, written by hand.
struct Squares<F>(F);

impl<F: Fn(&[f64]) -> (Vec<f64>, Vec<Vec<f64>>)> Objective for Squares<F> {
    type Error = Infallible;
    fn value(&mut self, x: &[f64]) -> Result<f64, Infallible> {
        Ok(0.5 * self.0(x).0.iter().map(|r| r * r).sum::<f64>())
    }
    fn slope(&mut self, x: &[f64]) -> Result<Slope, Infallible> {
        Ok(self.normal(x)?.slope)
    }
    fn normal(&mut self, x: &[f64]) -> Result<Normal, Infallible> {
        let (r, jacobian) = self.0(x);
        let n = x.len();
        let product = |f: &dyn Fn(usize) -> f64| (0..r.len()).map(f).sum::<f64>();
        let gradient = (0..n).map(|k| product(&|i| r[i] * jacobian[i][k])).collect();
        let matrix = DMatrix::from_fn(n, n, |a, b| product(&|i| jacobian[i][a] * jacobian[i][b]));
        Ok(Normal { slope: Slope { value: self.value(x)?, gradient }, matrix })
    }
}

/// The valley of H. H. Rosenbrock (Comput. J. 3, 175 (1960)): residuals 10 (y − x²) and 1 − x.
fn valley(x: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let r = vec![10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]];
    (r, vec![vec![-20.0 * x[0], 10.0], vec![-1.0, 0.0]])
}

const OPEN: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

/// How many steps it takes, and where it ends.
fn minimize<F: Objective<Error = Infallible>>(
    mut optimizer: Optimizer,
    mut x: Vec<f64>,
    bounds: &[[f64; 2]],
    mut f: F,
) -> (usize, Vec<f64>) {
    for step in 1..100_000 {
        let Ok(progress) = optimizer.step(&mut x, bounds, &mut f);
        assert!(x.iter().zip(bounds).all(|(x, [low, high])| low <= x && x <= high), "{x:?}");
        if progress.done {
            return (step, x);
        }
    }
    panic!("no end: {x:?}");
}

fn near(a: &[f64], b: &[f64], tolerance: f64) {
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance), "{a:?} is not {b:?}");
}

#[test]
fn rosenbrocks_valley() {
    let start = || vec![-1.2, 1.0];
    let (steps, x) = minimize(Optimizer::levenberg_marquardt(1e-12), start(), &[OPEN; 2], Squares(valley));
    near(&x, &[1.0, 1.0], 1e-10);
    assert!(steps < 100, "{steps}");
    let (steps, x) = minimize(Optimizer::lbfgs(10, 1e-12), start(), &[OPEN; 2], Squares(valley));
    near(&x, &[1.0, 1.0], 1e-6);
    assert!(steps < 300, "{steps}");
    let (_, x) = minimize(Optimizer::adam([0.05, 1e-4], 8000), start(), &[OPEN; 2], Squares(valley));
    near(&x, &[1.0, 1.0], 1e-2);
}

/// Where x ≤ ½, the minimum is at x = ½, y = ¼: (1 − x)² alone is left.
#[test]
fn a_bound_across_the_valley() {
    let bounds = [[-2.0, 0.5], OPEN];
    for optimizer in [Optimizer::levenberg_marquardt(1e-12), Optimizer::lbfgs(10, 1e-12)] {
        let (_, x) = minimize(optimizer, vec![-1.2, 1.0], &bounds, Squares(valley));
        near(&x, &[0.5, 0.25], 1e-7);
    }
    let (_, x) = minimize(Optimizer::adam([0.05, 1e-4], 8000), vec![-1.2, 1.0], &bounds, Squares(valley));
    near(&x, &[0.5, 0.25], 1e-3);
}

/// A minimiser that is written down and read again takes the same steps.
#[test]
fn what_is_written_goes_on() {
    for mut optimizer in
        [Optimizer::levenberg_marquardt(0.0), Optimizer::lbfgs(5, 0.0), Optimizer::adam([0.05, 1e-3], 100)]
    {
        let mut f = Squares(valley);
        let mut x = vec![-1.2, 1.0];
        for _ in 0..7 {
            let Ok(_) = optimizer.step(&mut x, &[OPEN; 2], &mut f);
        }
        let mut other: Optimizer = postcard::from_bytes(&postcard::to_stdvec(&optimizer).unwrap()).unwrap();
        let mut y = x.clone();
        for _ in 0..7 {
            let Ok(_) = optimizer.step(&mut x, &[OPEN; 2], &mut f);
            let Ok(_) = other.step(&mut y, &[OPEN; 2], &mut f);
            assert_eq!(x, y);
        }
    }
}

struct Model {
    plan: Plan,
    text: String,
    file: Option<String>,
}

impl Model {
    fn new(text: &str, file: Option<&str>) -> Self {
        Self { plan: plan(text, file), text: text.into(), file: file.map(String::from) }
    }
    fn evaluator(&self) -> Evaluator {
        Evaluator::new(plan(&self.text, self.file.as_deref()).setup).unwrap()
    }
    fn number(&self, name: &str) -> usize {
        let names = self.evaluator().parameter_names();
        names.iter().position(|(n, _)| n == name).unwrap_or_else(|| panic!("{name}: {names:?}"))
    }
    /// The configuration with atoms moved at random, and strained.
    fn shaken(&self, by: f64, seed: u64) -> State {
        let noise = Noise::new(seed, Purpose::Test);
        let mut state = self.plan.state.clone();
        let moves = |i: usize| {
            let [x, y, z, _] = noise.normals(0, i);
            [x * by, y * by, z * by]
        };
        state.positions.advance_all(&state.cell, moves).unwrap();
        if state.cell.volume().is_some() {
            let e = noise.normals(1, 0).map(|x| 0.01 * x);
            let strain = [[e[0], e[3], 0.0], [e[3], e[1], 0.0], [0.0, 0.0, e[2]]];
            state.cell = state.cell.strained(strain).unwrap();
        }
        state
    }
    /// A configuration with the data that these numbers give, and with noise.
    fn sample(&self, state: &State, evaluator: &mut Evaluator, noise: &Noise, step: u64) -> Sample {
        let mut found = Forces::default();
        evaluator.evaluate(&state.cell, &state.positions, &mut found).unwrap();
        let volume = state.cell.volume();
        let u = UNCERTAINTIES;
        let n = self.plan.atoms.len();
        let noisy = |x: f64, k: usize, by: f64| x + by * noise.normals(step, k)[0];
        Sample {
            system: 0,
            cell: state.cell.clone(),
            positions: state.positions.clone(),
            energy: Some(noisy(found.energy(), 0, u.energy * n as f64)),
            offset: None,
            forces: Some(
                (0..n)
                    .map(|i| std::array::from_fn(|c| noisy(found.forces[i][c], 10 + 3 * i + c, u.force)))
                    .collect(),
            ),
            stress: volume.map(|v| std::array::from_fn(|k| noisy(-found.virial[k] / v, 1 + k, u.stress))),
            uncertainties: u,
            weight: 1.0,
        }
    }
    /// A problem with these parameters free: name, start, whether as a logarithm; tied ones as name, of which, factor.
    fn problem(
        &self,
        free: Vec<Free>,
        ties: &[(&str, usize, f64)],
        samples: Vec<Sample>,
        threads: usize,
    ) -> Problem {
        let names = self.evaluator().parameter_names();
        let mut base: Vec<f64> = names.iter().map(|(_, x)| *x).collect();
        let mut columns = vec![Vec::new(); free.len()];
        for (k, p) in free.iter().enumerate() {
            columns[k].push((self.number(&p.name), 1.0));
        }
        for (name, of, factor) in ties {
            columns[*of].push((self.number(name), *factor));
        }
        columns.iter().flatten().for_each(|(k, _)| base[*k] = 0.0);
        let evaluators = (0..threads).map(|_| self.evaluator()).collect();
        let training = (0..samples.len()).collect();
        let systems = vec![System { evaluators, base, columns }];
        Problem { free, systems, samples, aims: Vec::new(), training, batch: None, seed: 3 }
    }
}

fn plan(text: &str, file: Option<&str>) -> Plan {
    let mut document =
        Document::parse("in.toml", text, &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
    if let Some(structure) = file {
        document = document.with_file("atoms.xyz", structure.as_bytes());
    }
    Plan::of(&document, &md::catalog()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

const UNCERTAINTIES: Uncertainties = Uncertainties { energy: 0.05, force: 5.0, stress: 20.0 };

const ARGON: &str = r#"
    [system.lattice]
    kind = "fcc"
    types = ["Ar"]
    constant = "5.3 A"
    repeat = [2, 2, 2]
    [atoms.Ar]
    mass = "39.948 u"
    [pair.lennard-jones]
    cutoff = "8 A"
    [pair.lennard-jones.types]
    Ar = { epsilon = "0.996 kJ/mol", sigma = "3.405 A" }
"#;

/// Two molecules of water in a periodic cell: flexible SPC/Fw (Y. Wu, H. L. Tepper and G. A. Voth, J. Chem. Phys. 124,
/// 024503 (2006)).
const WATER: &str = r#"
    [system]
    structure = "atoms.xyz"
    [atoms.OW]
    mass = "15.9994 u"
    charge = "-0.82 e"
    element = "O"
    [atoms.HW]
    mass = "1.008 u"
    charge = "0.41 e"
    element = "H"
    [molecules.water]
    atoms = ["O: OW", "H1: HW", "H2: HW"]
    bonds = [["O", "H1"], ["O", "H2"]]
    [bond.harmonic]
    OW-HW = { k = "1059.162 kcal/mol/A^2", r0 = "1.012 A" }
    [angle.harmonic]
    HW-OW-HW = { k = "75.90 kcal/mol/rad^2", theta0 = "113.24 deg" }
    [pair.lennard-jones]
    cutoff = "6 A"
    [pair.lennard-jones.types]
    OW = { epsilon = "0.1554253 kcal/mol", sigma = "3.165492 A" }
    HW = { none = true }
    [pair.reaction-field]
    cutoff = "6 A"
    epsilon-rf = 0.0
"#;

const PAIRS: &str = "12\nLattice=\"7 0 0 0 7 0 0 0 7\"\n\
    O 0.0 0.0 0.0\nH 1.0 0.1 0.0\nH -0.3 0.95 0.0\n\
    O 2.8 0.2 0.3\nH 3.2 0.9 0.8\nH 3.3 -0.6 0.5\n\
    O 0.3 2.9 0.5\nH 0.9 3.3 1.1\nH -0.4 3.4 0.1\n\
    O 3.2 3.1 3.0\nH 4.1 3.2 2.7\nH 2.9 3.9 3.4\n";

/// The parameters of the water, all of them free; its charges stay neutral by the oxygen's.
fn of_water(model: &Model, factor: impl Fn(usize) -> f64) -> (Vec<Free>, Vec<f64>) {
    let names = model.evaluator().parameter_names();
    let names: Vec<(String, f64)> = names
        .into_iter()
        .filter(|(n, _)| {
            !["cutoff", "inner", "epsilon-rf"].iter().any(|x| n.ends_with(x)) && n != "atoms.OW.charge"
        })
        .collect();
    assert_eq!(names.len(), 7, "{names:?}");
    let free = |(k, (name, x)): (usize, &(String, f64))| {
        Free::new(name.clone(), x * factor(k), name != "atoms.HW.charge")
    };
    (names.iter().enumerate().map(free).collect(), names.iter().map(|(_, x)| *x).collect())
}

/// Columns of the Jacobian, forward: they are what the derivatives along a direction are, backward, and what the tape of the
/// oracle says.
#[test]
fn changes_with_parameters_are_the_same_forward_and_backward() {
    for (text, file) in [(ARGON, None), (WATER, Some(PAIRS))] {
        let model = Model::new(text, file);
        let state = model.shaken(0.005, 1);
        let mut evaluator = model.evaluator();
        let names = evaluator.parameter_names();
        let noise = Noise::new(9, Purpose::Test);
        let moves: Vec<[f64; 3]> = (0..model.plan.atoms.len())
            .map(|i| {
                let [x, y, z, _] = noise.normals(4, i);
                [x, y, z]
            })
            .collect();
        let strain = [[0.3, 0.1, -0.2], [0.1, -0.4, 0.5], [-0.2, 0.5, 0.2]];
        let direction = Direction { moves: &moves, strain };
        let back = evaluator.slopes(&state.cell, &state.positions, Some(direction), true).unwrap();
        let largest = back.iter().fold(0.0, |m: f64, (d, _)| m.max(d.tangent.abs()));
        let mut out = Forces::default();
        for (k, (name, _)) in names.iter().enumerate() {
            let mut rates = vec![0.0; names.len()];
            rates[k] = 1.0;
            evaluator.parameter_tangents(&state.cell, &state.positions, &rates, &mut out).unwrap();
            let forces: f64 =
                out.forces.as_flattened().iter().zip(moves.as_flattened()).map(|(a, b)| a * b).sum();
            let [xx, yy, zz, xy, xz, yz] = out.virial;
            let w = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]];
            let virial: f64 = w.as_flattened().iter().zip(strain.as_flattened()).map(|(a, b)| a * b).sum();
            let (slope, along) = (back[k].0.value, back[k].0.tangent);
            assert!(
                (out.energy() - slope).abs() <= 1e-11 * slope.abs().max(1.0),
                "{name}: {} {slope}",
                out.energy()
            );
            assert!(
                (forces + virial + along).abs() <= 1e-11 * largest.max(along.abs()),
                "{name}: {} {along}",
                forces + virial
            );
        }
    }
}

/// The gradient by one call along the residuals is Jᵀr of the columns, and both are what differences say.
#[test]
fn gradients_of_the_sum_of_squares() {
    let model = Model::new(WATER, Some(PAIRS));
    let noise = Noise::new(5, Purpose::Test);
    let mut truth = model.evaluator();
    let samples: Vec<Sample> = (0..3)
        .map(|k| model.sample(&model.shaken(0.004, 10 + k), &mut truth, &noise, k))
        .map(|s| Sample { offset: Some(7), ..s })
        .collect();
    let (mut free, _) = of_water(&model, |k| if k % 2 == 0 { 1.1 } else { 0.95 });
    free[2].prior = Some([500.0, 30.0]);
    let tie = [("atoms.OW.charge", 6, -2.0)];
    let mut problem = model.problem(free, &tie, samples, 2);
    problem.free.push(Free::new("offset", 0.0, false));
    problem.systems[0].columns.push(Vec::new());
    let mut u = problem.start();
    u[7] = 0.3;
    let slope = problem.slope(&u).unwrap();
    let normal = problem.normal(&u).unwrap();
    assert_eq!(slope.value, normal.slope.value);
    assert_eq!(slope.value, problem.value(&u).unwrap());
    for k in 0..u.len() {
        let (a, b) = (slope.gradient[k], normal.slope.gradient[k]);
        assert!((a - b).abs() <= 1e-10 * a.abs().max(1.0), "{k}: {a} {b}");
        let mut at = |x: f64| {
            let mut there = u.clone();
            there[k] = x;
            problem.value(&there).unwrap()
        };
        let differences = Richardson { step: 1e-3, levels: 3, tables: 1, enough: 0.0, scale: 0.0 };
        let d = differences.derivative(&mut at, u[k]);
        assert!((a - d.value).abs() <= 1e-6 * a.abs().max(1.0) + 10.0 * d.error, "{k}: {a} {}", d.value);
    }
}

/// Noise-free forces of argon give back both parameters, from 30 % off, by every minimiser.
#[test]
fn argon_from_its_forces() {
    let model = Model::new(ARGON, None);
    let mut truth = model.evaluator();
    let samples = |truth: &mut Evaluator| -> Vec<Sample> {
        (0..4)
            .map(|k| {
                let state = model.shaken(0.02, k);
                let none = Noise::new(0, Purpose::Test);
                let mut sample = model.sample(&state, truth, &none, k);
                let mut found = Forces::default();
                truth.evaluate(&state.cell, &state.positions, &mut found).unwrap();
                (sample.energy, sample.stress, sample.forces) = (None, None, Some(found.forces));
                sample
            })
            .collect()
    };
    let (epsilon, sigma) = (0.996, 0.3405);
    let optimizers = [
        (Optimizer::levenberg_marquardt(1e-12), None, 100),
        (Optimizer::lbfgs(10, 1e-12), None, 500),
        (Optimizer::adam([0.05, 1e-5], 6000), Some(2), 6000),
    ];
    for (mut optimizer, batch, most) in optimizers {
        let free = vec![
            Free::new("lennard-jones.Ar.epsilon", 1.3 * epsilon, true),
            Free::new("lennard-jones.Ar.sigma", 0.8 * sigma, true),
        ];
        let mut problem = model.problem(free, &[], samples(&mut truth), 2);
        problem.batch = batch;
        let (mut u, bounds) = (problem.start(), problem.bounds());
        let mut steps = 0;
        while !optimizer.step(&mut u, &bounds, &mut problem).unwrap().done && steps < most {
            steps += 1;
        }
        let found = problem.values(&u);
        println!("{steps} steps: {} {}", found[0] / epsilon - 1.0, found[1] / sigma - 1.0);
        assert!((found[0] / epsilon - 1.0).abs() <= 1e-6, "{found:?}");
        assert!((found[1] / sigma - 1.0).abs() <= 1e-6, "{found:?}");
    }
}

/// Noise-free energies and forces give back every parameter of flexible water, from 20 to 30 % off, with the charges tied.
#[test]
fn every_parameter_of_water() {
    let model = Model::new(WATER, Some(PAIRS));
    let mut truth = model.evaluator();
    let samples: Vec<Sample> = (0..6)
        .map(|k| {
            let state = model.shaken(0.008, k);
            let mut found = Forces::default();
            truth.evaluate(&state.cell, &state.positions, &mut found).unwrap();
            let none = Noise::new(0, Purpose::Test);
            let sample = model.sample(&state, &mut truth, &none, k);
            Sample { energy: None, stress: None, forces: Some(found.forces), ..sample }
        })
        .collect();
    // (angles and lengths of 20 % less make bonds that are far from theirs, but no other minimum)
    let (free, values) = of_water(&model, |k| if k % 2 == 0 { 1.3 } else { 0.8 });
    let mut problem = model.problem(free, &[("atoms.OW.charge", 6, -2.0)], samples, 2);
    let (mut u, bounds) = (problem.start(), problem.bounds());
    let mut optimizer = Optimizer::levenberg_marquardt(1e-12);
    let mut steps = 0;
    while !optimizer.step(&mut u, &bounds, &mut problem).unwrap().done && steps < 200 {
        steps += 1;
    }
    let found = problem.values(&u);
    for ((p, found), value) in problem.free.iter().zip(&found).zip(&values) {
        println!("{} {}", p.name, found / value);
    }
    for ((p, found), value) in problem.free.iter().zip(&found).zip(&values) {
        println!("{}: {:e} after {steps} steps", p.name, found / value - 1.0);
        assert!((found / value - 1.0).abs() <= 1e-6, "{}: {found} is not {value}", p.name);
    }
    let charges = problem.numbers(0, &found);
    let (o, h) = (model.number("atoms.OW.charge"), model.number("atoms.HW.charge"));
    assert_eq!(charges[o] + 2.0 * charges[h], 0.0);
}

/// Noise of known size moves parameters by what their standard errors say: of many fits 95 % of the intervals of 1.96 errors
/// hold the truth, within the limits of a binomial distribution; and errors that are scaled by the residuals are the same within
/// what these fluctuate.
#[test]
fn errors_cover_the_truth() {
    let model = Model::new(ARGON, None);
    let mut truth = model.evaluator();
    let values = [0.996, 0.3405];
    let states: Vec<State> = (0..2).map(|k| model.shaken(0.02, k)).collect();
    let (mut inside, mut all, mut squares) = (0, 0, 0.0);
    for seed in 0..60 {
        let noise = Noise::new(100 + seed, Purpose::Test);
        let samples: Vec<Sample> =
            states.iter().enumerate().map(|(k, s)| model.sample(s, &mut truth, &noise, k as u64)).collect();
        let free = vec![
            Free::new("lennard-jones.Ar.epsilon", 1.2 * values[0], true),
            Free::new("lennard-jones.Ar.sigma", 0.95 * values[1], true),
        ];
        let mut problem = model.problem(free, &[], samples, 1);
        let (mut u, bounds) = (problem.start(), problem.bounds());
        let mut optimizer = Optimizer::levenberg_marquardt(1e-9);
        while !optimizer.step(&mut u, &bounds, &mut problem).unwrap().done {}
        let normal = problem.normal(&u).unwrap();
        let totals = problem.totals(&u, &[0, 1]).unwrap();
        let noise = problem.noise(&u).unwrap();
        let [given, scaled] = [false, true]
            .map(|s| Uncertainty::new(&problem, &u, &normal, &noise, totals.squares, totals.count, s));
        assert_eq!(totals.count, 2 * (1 + 6 + 3 * 32));
        // (χ² of 204 degrees of freedom is within 5 of its deviations, √(2/204))
        assert!((given.reduced - 1.0).abs() < 5.0 * (2.0 / 204f64).sqrt(), "{}", given.reduced);
        for (k, found) in problem.values(&u).into_iter().enumerate() {
            let error = given.errors[k].unwrap();
            let ratio = scaled.errors[k].unwrap() / error;
            assert!((ratio - given.reduced.sqrt()).abs() < 1e-12);
            let off = (found - values[k]) / error;
            squares += off * off;
            inside += usize::from(off.abs() <= 1.96);
            all += 1;
        }
    }
    // (the two parameters of a fit are correlated: as if there were half as many trials)
    let (expected, deviation) = (0.95 * f64::from(all), (0.95f64 * 0.05 * f64::from(all) * 2.0).sqrt());
    println!("{inside} of {all} intervals; mean square {}", squares / f64::from(all));
    assert!((inside as f64 - expected).abs() <= 3.0 * deviation, "{inside} of {all}");
    assert!((squares / f64::from(all) - 1.0).abs() <= 4.0 * (2.0 / 60f64).sqrt());
}

/// Two numbers that only act as a product have no errors of their own; one at its bound has none.
#[test]
fn what_data_do_not_determine() {
    let model = Model::new(ARGON, None);
    let mut truth = model.evaluator();
    let none = Noise::new(1, Purpose::Test);
    let mut sample = model.sample(&model.plan.state.clone(), &mut truth, &none, 0);
    // the energy of one configuration, for two parameters
    (sample.forces, sample.stress) = (None, None);
    let free = vec![
        Free::new("lennard-jones.Ar.epsilon", 0.996, true),
        Free::new("lennard-jones.Ar.sigma", 0.3405, true),
    ];
    let mut problem = model.problem(free.clone(), &[], vec![sample.clone()], 1);
    let u = problem.start();
    let normal = problem.normal(&u).unwrap();
    let found = Uncertainty::new(&problem, &u, &normal, &DMatrix::zeros(2, 2), 1.0, 1, false);
    assert_eq!(found.undetermined, [vec![0, 1]]);
    assert_eq!(found.errors, [Some(f64::INFINITY); 2]);
    // one of them at its bound: the other is determined
    let mut problem = model.problem(free, &[], vec![sample], 1);
    problem.free[1].bounds = [0.3405, 0.4];
    let found = Uncertainty::new(&problem, &u, &normal, &DMatrix::zeros(2, 2), 1.0, 1, false);
    assert!(found.undetermined.is_empty() && found.errors[1].is_none(), "{found:?}");
    // E is proportional to ε: dE/dε = E/ε, and the energy is known to 0.05 kJ/mol for each of 32 atoms
    let mut out = Forces::default();
    truth.evaluate(&model.plan.state.cell, &model.plan.state.positions, &mut out).unwrap();
    let error = 0.05 * 32.0 / (out.energy() / 0.996).abs();
    near(&[found.errors[0].unwrap()], &[error], 1e-6 * error);
}

/// The same bits for any number of evaluators and threads.
#[test]
fn the_same_bits_for_any_number_of_threads() {
    let model = Model::new(WATER, Some(PAIRS));
    let mut truth = model.evaluator();
    let noise = Noise::new(5, Purpose::Test);
    // (configurations that are near each other, so that neighbour lists last, and others)
    let samples: Vec<Sample> = (0..7)
        .map(|k| model.sample(&model.shaken(if k < 4 { 0.0005 } else { 0.02 }, k), &mut truth, &noise, k))
        .collect();
    let mut found = Vec::new();
    for threads in [1, 3] {
        let (free, _) = of_water(&model, |_| 1.05);
        let mut problem = model.problem(free, &[("atoms.OW.charge", 6, -2.0)], samples.clone(), threads);
        problem.batch = Some(3);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        found.push(pool.install(|| {
            let u = problem.start();
            let (a, b) = (problem.normal(&u).unwrap(), problem.part(&u, 5).unwrap());
            (a, b, problem.minibatch(5))
        }));
    }
    assert_eq!(found[0], found[1]);
}

/// Minibatches hold everything once a round, in other orders.
#[test]
fn minibatches() {
    let model = Model::new(ARGON, None);
    let mut problem = model.problem(Vec::new(), &[], Vec::new(), 1);
    (problem.training, problem.batch) = ((5..15).collect(), Some(4));
    let round = |r: u64| (3 * r..3 * r + 3).flat_map(|s| problem.minibatch(s)).collect::<Vec<_>>();
    let (a, b) = (round(0), round(1));
    assert_ne!(a, b);
    for mut order in [a, b] {
        order.sort_unstable();
        assert_eq!(order, (5..15).collect::<Vec<_>>());
    }
    assert_eq!(problem.minibatch(2).len(), 2);
}

/// Where an interaction comes to reach farther than the lists do, these follow.
#[test]
fn lists_follow_their_range() {
    let model = Model::new(ARGON, None);
    let longer = Model::new(&ARGON.replace("8 A", "10 A"), None);
    let (mut a, mut b) = (model.evaluator(), longer.evaluator());
    let State { cell, positions, .. } = model.shaken(0.01, 3);
    let energy = |e: &mut Evaluator, positions: &Positions| {
        let mut out = Forces::default();
        e.evaluate(&cell, positions, &mut out).unwrap();
        out
    };
    assert_ne!(energy(&mut a, &positions), energy(&mut b, &positions));
    let numbers: Vec<f64> = b.parameter_names().into_iter().map(|(_, x)| x).collect();
    a.set_parameters(&numbers).unwrap();
    assert_eq!(energy(&mut a, &positions), energy(&mut b, &positions));
}
