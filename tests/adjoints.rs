//! Checkpointing against theory and against a run that keeps everything; adjoints of differential equations.

use md::autodiff::checkpointing::{InMemory, OnDisk, Steps, checkpointed, fewest, online, reach, repeats};
use md::autodiff::ode::{Method, RightHandSide, Span, continuous, discrete, solve};
use md::autodiff::operators::Operand;
use md::autodiff::{Dual, Tape};

/// The logistic map with a parameter, whose steps count how often they are taken.
struct Logistic {
    parameter: f64,
    taken: Vec<usize>,
}

impl Logistic {
    fn new(steps: usize) -> Self {
        Self { parameter: 3.7, taken: vec![0; steps] }
    }
}

impl Steps for Logistic {
    type State = f64;
    /// Of the state and of the parameter.
    type Adjoint = [f64; 2];
    fn advance(&mut self, x: &mut f64, step: usize) {
        self.taken[step] += 1;
        *x = self.parameter * *x * (1.0 - *x);
    }
    fn pull_back(&mut self, x: &f64, _: usize, [of_x, of_parameter]: &mut [f64; 2]) {
        *of_parameter += *of_x * x * (1.0 - x);
        *of_x *= self.parameter * (1.0 - 2.0 * x);
    }
}

/// Everything kept.
fn store_all(steps: usize) -> [f64; 2] {
    let mut process = Logistic::new(steps);
    let mut states = vec![0.3];
    for step in 0..steps {
        let mut x = states[step];
        process.advance(&mut x, step);
        states.push(x);
    }
    let mut adjoint = [2.0 * states[steps], 0.0];
    (0..steps).rev().for_each(|step| process.pull_back(&states[step], step, &mut adjoint));
    adjoint
}

/// The fewest steps forward for any schedule, from the recursion of dynamic programming: from the first state, go on to
/// some step, keep it, do what is behind it with one snapshot less, then what is before it.
fn optimum(longest: usize, most: usize) -> Vec<Vec<u128>> {
    let mut t = vec![vec![0u128; longest + 1]; most + 1];
    for l in 2..=longest {
        // with one snapshot every step starts from the first state
        t[1][l] = (l * (l - 1) / 2) as u128;
    }
    for s in 2..=most {
        for l in 2..=longest {
            t[s][l] = (1..l).map(|m| m as u128 + t[s - 1][l - m] + t[s][m]).min().unwrap();
        }
    }
    t
}

#[test]
fn steps_taken_are_the_fewest_there_can_be() {
    let best = optimum(90, 7);
    for (snapshots, best) in best.iter().enumerate().skip(1) {
        for steps in 1..=90 {
            assert_eq!(
                fewest(steps, snapshots),
                best[steps],
                "{steps} steps, {snapshots} snapshots: the formula"
            );
            let mut process = Logistic::new(steps);
            let (adjoint, counts) =
                checkpointed(&mut process, &0.3, steps, snapshots, InMemory::default(), |x| [2.0 * x, 0.0])
                    .unwrap();
            // (and the last step once, for the adjoint after it)
            assert_eq!(u128::from(counts.forward), best[steps] + 1, "{steps} steps, {snapshots} snapshots");
            assert_eq!(counts.backward, steps as u64);
            assert!(counts.snapshots <= snapshots);
            let most = process.taken[..steps - 1].iter().max().copied().unwrap_or(0);
            assert!(most <= repeats(steps, snapshots), "{steps}, {snapshots}: a step was taken {most} times");
            assert_eq!(adjoint.map(f64::to_bits), store_all(steps).map(f64::to_bits));
        }
    }
    // 13!/(10! 3!) = 286 < 1000 ≤ 14!/(10! 4!) = 1001, and 4 · 1000 − 14!/(11! 3!) = 4000 − 364
    assert_eq!([reach(10, 3), reach(10, 4), fewest(1000, 10)], [286, 1001, 3636]);
    assert_eq!((repeats(1000, 10), repeats(5151, 100), repeats(5152, 100)), (4, 2, 3));
}

#[test]
fn steps_of_unknown_number_are_repeated_as_rarely() {
    for snapshots in 1..=8 {
        for steps in 0..=120 {
            let mut process = Logistic::new(steps);
            let go_on = |_: &f64, step: usize| step < steps;
            let (adjoint, counts) =
                online(&mut process, &0.3, snapshots, InMemory::default(), go_on, |x| [2.0 * x, 0.0])
                    .unwrap();
            assert_eq!(adjoint.map(f64::to_bits), store_all(steps).map(f64::to_bits), "{steps}, {snapshots}");
            assert_eq!(counts.backward, steps as u64);
            assert!(counts.snapshots <= snapshots);
            // the first run takes every step once, where the offline schedule starts by going back
            let most = process.taken.iter().max().copied().unwrap_or(0);
            let bound = if steps == 0 { 0 } else { repeats(steps, snapshots) + 1 };
            assert!(
                most <= bound,
                "{steps} steps, {snapshots} snapshots: a step was taken {most} times, not {bound}"
            );
        }
    }
}

#[test]
fn snapshots_on_disk_are_the_same_and_go_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Logistic::new(50);
    let store = OnDisk::within(folder.path()).unwrap();
    let (adjoint, counts) = checkpointed(&mut process, &0.3, 50, 4, store, |x| [2.0 * x, 0.0]).unwrap();
    assert_eq!(adjoint.map(f64::to_bits), store_all(50).map(f64::to_bits));
    assert_eq!(counts.snapshots, 4);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Predators and prey.
struct LotkaVolterra;
impl RightHandSide for LotkaVolterra {
    fn call<S: Operand>(&self, _: f64, y: &[S], theta: &[S]) -> Vec<S> {
        let met = y[0] * y[1];
        vec![theta[0] * y[0] - theta[1] * met, theta[2] * met - theta[3] * y[1]]
    }
}

const START: [f64; 2] = [1.0, 0.6];
const THETA: [f64; 4] = [1.1, 0.4, 0.2, 0.5];

#[test]
fn the_discrete_adjoint_is_that_of_the_numbers_computed() {
    for method in [Method::Euler, Method::Midpoint, Method::RungeKutta4, Method::DormandPrince5] {
        let span = Span { from: 0.0, to: 3.0, steps: 40, method };
        // everything on one tape
        let tape = Tape::new();
        let (y, theta) = (START.map(|x| tape.variable(x)), THETA.map(|x| tape.variable(x)));
        let end = solve(&LotkaVolterra, &span, &y, &theta);
        let g = tape.gradient(end[0] * end[0] + end[1]);
        let last = |y: &[f64]| vec![2.0 * y[0], 1.0];
        let mut bits = Vec::new();
        for snapshots in [1, 3, 40] {
            let (gradient, _) = discrete(&LotkaVolterra, &span, &START, &THETA, snapshots, last).unwrap();
            let all = y.iter().chain(&theta).map(|&x| g.of(x));
            for (a, b) in all.zip(gradient.start.iter().chain(&gradient.theta)) {
                assert!((a - b).abs() < 1e-13 * a.abs().max(1.0), "{method:?}: {a} {b}");
            }
            bits.push(gradient);
        }
        assert!(bits.iter().all(|g| *g == bits[0]));
        // forward mode agrees
        let theta: Vec<_> =
            THETA.iter().enumerate().map(|(k, &x)| Dual::new(x, if k == 2 { 1.0 } else { 0.0 })).collect();
        let end = solve(&LotkaVolterra, &span, &START.map(Dual::passive), &theta);
        let forward = (end[0] * end[0] + end[1]).tangent;
        assert!((forward - bits[0].theta[2]).abs() < 1e-12 * forward.abs());
    }
}

/// The error of methods and of the continuous adjoint falls with the power of the step that it should.
#[test]
fn errors_fall_as_the_order_says() {
    let last = |y: &[f64]| vec![2.0 * y[0], 1.0];
    let fine = Span { from: 0.0, to: 2.0, steps: 2000, method: Method::DormandPrince5 };
    let truth = discrete(&LotkaVolterra, &fine, &START, &THETA, 50, last).unwrap().0;
    for method in [Method::Euler, Method::Midpoint, Method::RungeKutta4, Method::DormandPrince5] {
        let (mut of_truth, mut of_discrete) = (Vec::new(), Vec::new());
        for steps in [20, 40] {
            let span = Span { steps, method, ..fine };
            let there = continuous(&LotkaVolterra, &span, &START, &THETA, last).gradient;
            let exact = discrete(&LotkaVolterra, &span, &START, &THETA, 5, last).unwrap().0;
            of_truth.push((there.theta[0] - truth.theta[0]).abs());
            of_discrete.push((there.theta[0] - exact.theta[0]).abs());
        }
        for (what, errors) in [("truth", of_truth), ("discrete adjoint", of_discrete)] {
            let order = (errors[0] / errors[1]).log2();
            // (adjoint and state may partly cancel: never less than the order)
            assert!(order > f64::from(method.order()) - 0.4, "{method:?} against the {what}: {errors:?}");
            assert!(errors[0] > 1e-12, "{method:?}: nothing to see");
        }
    }
}

/// A state that comes to rest: how it got there is lost to rounding, what was damped grows on the way back, and the drift
/// tells.
#[test]
fn the_continuous_adjoint_fails_where_the_state_is_lost_and_says_so() {
    struct Relaxation;
    impl RightHandSide for Relaxation {
        fn call<S: Operand>(&self, _: f64, y: &[S], theta: &[S]) -> Vec<S> {
            let off = y[0] - theta[0];
            vec![-(off * 12.0 + off * off.squared())]
        }
    }
    let run = |to: f64| {
        let span = Span { from: 0.0, to, steps: 400, method: Method::RungeKutta4 };
        let exact = discrete(&Relaxation, &span, &[1.0], &[0.5], 20, |_| vec![1.0]).unwrap().0;
        let there = continuous(&Relaxation, &span, &[1.0], &[0.5], |_| vec![1.0]);
        ((there.gradient.theta[0] / exact.theta[0] - 1.0).abs(), there.drift)
    };
    let (error, drift) = run(0.5);
    assert!(error < 1e-5 && drift < 1e-5, "{error} {drift}");
    let (error, drift) = run(8.0);
    // (not a number is far off, too)
    let far = |x: f64| x.is_nan() || x > 0.1;
    assert!(far(error) && far(drift), "{error} {drift}");
}
