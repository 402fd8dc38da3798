//! Whether derivatives are right: every way of taking them against every other, and against finite differences.
//!
//! [`check`] takes a function written over [`Number`] and points; [`check_energy`] an energy, its parameters and
//! geometries, and looks at derivatives in coordinates and in parameters. Each returns a
//! [`Report`], which prints as a table.
//!
//! ```
//! use md::autodiff::check::{Pair, check_energy};
//! use potentials::pair::LennardJones;
//!
//! let report = check_energy::<Pair<LennardJones>>(&[0.8, 1.1], &[vec![0.9, 0.4, -0.3], vec![0.2, 1.4, 0.6]]);
//! assert!(report.ok(), "{report}");
//! ```
//!
//! | quantity | taken by |
//! |---|---|
//! | value | `Dual`, `Dual<Dual>`, `Var`, `Var<Dual>`, `Dual<Var>`, stack tape, two lanes; against `f64` |
//! | gradient | forward, nested, stack tape, lanes (forward and reverse), finite differences; against reverse mode |
//! | Hessian times vector | `Dual<Dual>`, `Dual<Var>`, stack tape over `Dual`, finite differences; against `Var<Dual>` |
//!
//! A component is compared relative to itself, or to a thousandth of the largest of its [kind](Function::kind) where
//! it is smaller than that.
//! Differences are extrapolated to step zero and come with an error estimate, which is granted. Where the function
//! has a corner, the derivative must lie between the slopes on the two sides, and Hessian products are left out.

use super::lanes::Two;
use super::tape::Recorder;
use super::{Dual, Lanes, Number, Richardson, StackTape, Tape, Var};
use potentials::{
    Angle, AngleEnergy, BondEnergy, Coefficient, Dihedral, DihedralEnergy, Distance, Energy, FieldEnergy,
    PairEnergy, Range, Record, Scalar, TupleEnergy, Vec3,
};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// A function of several numbers, written once for numbers of any kind.
pub trait Function {
    /// The function.
    fn call<S: Number>(&self, x: &[S]) -> S;
    /// What variable number `k` is called in a report.
    fn name(&self, k: usize) -> String {
        format!("x[{k}]")
    }
    /// Variables of the same kind (coordinates, say) have the same number here: a derivative is small or large
    /// in comparison with those of its own kind.
    fn kind(&self, _k: usize) -> usize {
        0
    }
}

/// One comparison.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was compared.
    pub quantity: String,
    /// The largest relative error of a component.
    pub error: f64,
    /// What it may be.
    pub limit: f64,
    /// The point and the component where the error is largest (in units of the limit).
    pub place: String,
    /// Whether the error is within the limit.
    pub ok: bool,
}

/// What was compared, and how it came out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One row a quantity; over all points, the worst.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether all is well.
    pub fn ok(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|c| c.ok)
    }

    /// Appends another report, its quantities prefixed with `title`.
    pub fn append(&mut self, title: &str, other: Report) {
        self.checks.extend(
            other.checks.into_iter().map(|c| Check { quantity: format!("{title}: {}", c.quantity), ..c }),
        );
    }

    /// Notes a comparison: a new row, or the worse one of two with the same name.
    fn note(&mut self, quantity: &str, error: f64, limit: f64, place: String) {
        let known = self.checks.iter_mut().find(|c| c.quantity == quantity);
        if known.as_ref().is_some_and(|c| error / limit <= c.error / c.limit) {
            return;
        }
        let quantity = quantity.to_string();
        let check = Check { quantity, error, limit, place, ok: error <= limit };
        match known {
            // what has failed stays
            Some(c) if !c.ok && check.ok => {}
            Some(c) => *c = check,
            None => self.checks.push(check),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let width = self.checks.iter().map(|c| c.quantity.chars().count()).max().unwrap_or(0).max(8);
        writeln!(f, "{:width$}  {:>9}  {:>9}  ok  where", "quantity", "error", "limit")?;
        for c in &self.checks {
            let ok = if c.ok { "yes" } else { "NO " };
            writeln!(f, "{:width$}  {:9.1e}  {:9.1e}  {ok} {}", c.quantity, c.error, c.limit, c.place)?;
        }
        Ok(())
    }
}

/// How closely things must agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Two exact derivatives, which differ by rounding only.
    pub rounding: f64,
    /// An exact derivative and a finite difference, beyond the difference's own error.
    pub difference: f64,
    /// The largest step of finite differences, relative to the variable (and absolute below 1).
    pub step: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { rounding: 1e-10, difference: 1e-7, step: 0.05 }
    }
}

/// Checks `f` at the given points with the usual [`Limits`].
pub fn check<F: Function>(f: &F, points: &[Vec<f64>]) -> Report {
    check_within(f, points, &Limits::default())
}

/// Checks `f` at the given points. In lanes, each point stands beside the next.
pub fn check_within<F: Function>(f: &F, points: &[Vec<f64>], limits: &Limits) -> Report {
    let mut report = Report::default();
    for (k, x) in points.iter().enumerate() {
        let beside = &points[(k + 1) % points.len()];
        let beside = if beside.len() == x.len() { beside } else { x };
        Point { f, x, scale: 1.0, limits, number: k, report: &mut report }.run(beside);
    }
    report
}

/// The largest relative error of a component, in units of its limit.
struct Worst {
    component: usize,
    error: f64,
    limit: f64,
}

struct Point<'a, F> {
    f: &'a F,
    x: &'a [f64],
    /// A change of all numbers by ε changes the value by this much ε.
    scale: f64,
    limits: &'a Limits,
    number: usize,
    report: &'a mut Report,
}

/// The longest function for which a stack tape is tried.
const CAPACITY: usize = 1024;

impl<F: Function> Point<'_, F> {
    fn run(&mut self, beside: &[f64]) {
        let x = self.x;
        let n = x.len();
        let f = self.f;
        let value = f.call(x);
        let (on_tape, gradient) = reverse(f, x);

        let scale = value.abs() + gradient.iter().zip(x).map(|(g, x)| (g * x).abs()).sum::<f64>();
        let scale = if scale > 0.0 { scale } else { 1.0 };
        self.scale = scale;
        let mut values = vec![("Var", on_tape)];

        // forward mode
        let mut forward = vec![0.0; n];
        for (k, slope) in forward.iter_mut().enumerate() {
            let y = f.call(&seeded(x, |j| f64::from(j == k)));
            *slope = y.tangent;
            values.push(("Dual", y.value));
        }
        self.vector("gradient, forward mode", &forward, &gradient);

        // nested, both ways round, along one direction
        let v: Vec<f64> = (0..n).map(|k| x[k].abs().max(0.5) * (1.0 + k as f64).sin()).collect();
        let tape = Tape::new();
        let vars: Vec<_> = (0..n).map(|k| tape.variable(Dual::new(x[k], v[k]))).collect();
        let y = f.call(&vars);
        let adjoints = tape.gradient(y);
        let (mut nested, mut product) = (vec![0.0; n], vec![0.0; n]);
        for (k, &var) in vars.iter().enumerate() {
            (nested[k], product[k]) = (adjoints.of(var).value, adjoints.of(var).tangent);
        }
        values.push(("Var<Dual>", y.value().value));
        self.vector("gradient, nested (Var<Dual>)", &nested, &gradient);

        let tape = Tape::new();
        let vars: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
        let y = f.call(&(0..n).map(|k| Dual::new(vars[k], Var::constant(v[k]))).collect::<Vec<_>>());
        values.push(("Dual<Var>", y.value.value()));
        let adjoints = tape.gradient(y.tangent);
        let over: Vec<f64> = vars.iter().map(|&var| adjoints.of(var)).collect();
        self.vector("Hessian × vector, Dual<Var>", &over, &product);

        let mut twice = vec![0.0; n];
        for (k, second) in twice.iter_mut().enumerate() {
            let inner = |j: usize| Dual::new(x[j], f64::from(j == k));
            let y = f.call(&(0..n).map(|j| Dual::new(inner(j), Dual::passive(v[j]))).collect::<Vec<_>>());
            *second = y.tangent.tangent;
            values.push(("Dual<Dual>", y.value.value));
        }
        self.vector("Hessian × vector, Dual<Dual>", &twice, &product);

        // the stack tape
        let on_stack_too = count(f, x) <= CAPACITY;
        if on_stack_too {
            let (y, g) = on_stack(f, x);
            values.push(("stack tape", y));
            self.vector("gradient, stack tape", &g, &gradient);
            let (_, g) = on_stack(f, &seeded(x, |k| v[k]));
            let g: Vec<f64> = g.iter().map(|g: &Dual<f64>| g.tangent).collect();
            self.vector("Hessian × vector, stack tape", &g, &product);
        }

        // lanes
        let both: Vec<Two> = x.iter().zip(beside).map(|(&a, &b)| Two([a, b])).collect();
        values.push(("lanes", f.call(&both).lane(0)));
        let gradients = [gradient.clone(), reverse(f, beside).1];
        let (_, g) = reverse(f, &both);
        let mut stack = Vec::new();
        if on_stack_too {
            stack = on_stack(f, &both).1;
        }
        for (lane, gradient) in gradients.iter().enumerate() {
            let of = |g: &[Two]| g.iter().map(|g| g.lane(lane)).collect::<Vec<_>>();
            self.vector("gradient, lanes on a tape", &of(&g), gradient);
            if !stack.is_empty() {
                self.vector("gradient, lanes on a stack tape", &of(&stack), gradient);
            }
            let forward = (0..n).map(|k| f.call(&seeded(&both, |j| f64::from(j == k))).tangent);
            self.vector("gradient, lanes in forward mode", &of(&forward.collect::<Vec<_>>()), gradient);
        }

        for (kind, got) in values {
            let error = (got - value).abs() / scale;
            let place = self.point();
            self.report.note(&format!("value, {kind}"), error, self.limits.rounding, place);
        }
        self.differences(&gradient, &v, &product);
    }

    /// Against finite differences of the energy and of the gradient.
    fn differences(&mut self, gradient: &[f64], v: &[f64], product: &[f64]) {
        let (f, x, limits) = (self.f, self.x, self.limits);
        let mut smooth = true;
        let floors = self.floors(gradient);
        let mut errors = Vec::new();
        for (k, &g) in gradient.iter().enumerate() {
            let along = |t: f64| {
                let mut moved = x.to_vec();
                moved[k] = t;
                f.call(&moved)
            };
            let differ = Richardson::with_step(limits.step * x[k].abs().clamp(1e-3, 1.0));
            let slopes = differ.slopes(along, x[k]);
            let floor = floors[k];
            if slopes.jump {
                errors.push(Worst { component: k, error: f64::INFINITY, limit: limits.difference });
                smooth = false;
            } else if slopes.differ() {
                // between the slopes of the two sides
                smooth = false;
                let (a, b) =
                    (slopes.left.value.min(slopes.right.value), slopes.left.value.max(slopes.right.value));
                let outside = if (a..=b).contains(&g) { 0.0 } else { (g - a).abs().min((g - b).abs()) };
                let own = slopes.left.error + slopes.right.error;
                errors.push(Worst {
                    component: k,
                    error: outside / floor,
                    limit: limits.difference + own / floor,
                });
            } else {
                let d = differ.derivative(along, x[k]);
                let error = (d.value - g).abs() / floor;
                errors.push(Worst {
                    component: k,
                    error,
                    limit: granted(limits.difference, d.error / floor),
                });
            }
        }
        let quantity = if smooth { "gradient, finite differences" } else { "gradient, slopes of a corner" };
        self.worst(quantity, errors);
        if !smooth {
            return;
        }
        let scale = x.iter().zip(v).fold(0.0, |m: f64, (x, v)| m.max(v.abs() / x.abs().clamp(1e-3, 1.0)));
        let differ = Richardson::with_step(limits.step / scale.max(f64::MIN_POSITIVE));
        let floors = self.floors(product);
        let mut errors = Vec::new();
        for (k, &h) in product.iter().enumerate() {
            let along = |t: f64| {
                let moved: Vec<f64> = x.iter().zip(v).map(|(x, v)| x + t * v).collect();
                reverse(f, &moved).1[k]
            };
            let floor = floors[k];
            if differ.slopes(along, 0.0).differ() {
                continue;
            }
            let d = differ.derivative(along, 0.0);
            let error = (d.value - h).abs() / floor;
            errors.push(Worst { component: k, error, limit: granted(limits.difference, d.error / floor) });
        }
        self.worst("Hessian × vector, finite differences", errors);
    }

    fn vector(&mut self, quantity: &str, got: &[f64], want: &[f64]) {
        let floors = self.floors(want);
        let errors = got.iter().zip(want).zip(floors).enumerate().map(|(component, ((got, want), floor))| {
            Worst { component, error: (got - want).abs() / floor, limit: self.limits.rounding }
        });
        let errors = errors.collect();
        self.worst(quantity, errors);
    }

    fn worst(&mut self, quantity: &str, errors: Vec<Worst>) {
        for w in errors {
            // a NaN is as wrong as can be
            let error = if w.error.is_nan() { f64::INFINITY } else { w.error };
            let place = format!("{}, {}", self.f.name(w.component), self.point());
            self.report.note(quantity, error, w.limit, place);
        }
    }

    /// What the error of each component is relative to.
    fn floors(&self, want: &[f64]) -> Vec<f64> {
        let kinds: Vec<usize> = (0..want.len()).map(|k| self.f.kind(k)).collect();
        let floor = |k: usize| {
            let same = want.iter().zip(&kinds).filter(|&(_, &kind)| kind == kinds[k]);
            let largest = same.fold(0.0, |m: f64, (w, _)| m.max(w.abs()));
            // what is zero but for rounding
            let least = 1e-6 * self.scale / self.x[k].abs().max(1e-3);
            want[k].abs().max(1e-3 * largest).max(least)
        };
        (0..want.len()).map(floor).collect()
    }

    fn point(&self) -> String {
        format!("point {}", self.number)
    }
}

/// The limit with a difference's own error granted, unless that is so large that nothing was learned.
fn granted(limit: f64, own: f64) -> f64 {
    if own < 1e-3 { limit + 2.0 * own } else { limit }
}

fn seeded<S: Scalar>(x: &[S], tangent: impl Fn(usize) -> f64) -> Vec<Dual<S>> {
    x.iter().enumerate().map(|(k, &x)| Dual::new(x, S::constant(tangent(k)))).collect()
}

/// Value and gradient in reverse mode.
fn reverse<F: Function, S: Number + 'static>(f: &F, x: &[S]) -> (S, Vec<S>)
where
    for<'t> Var<'t, S>: Number,
{
    let tape = Tape::new();
    let vars: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
    let y = f.call(&vars);
    let adjoints = tape.gradient(y);
    (y.value(), vars.iter().map(|&var| adjoints.of(var)).collect())
}

/// Value and gradient on a stack tape.
fn on_stack<F: Function, S: Number + 'static>(f: &F, x: &[S]) -> (S, Vec<S>)
where
    for<'t> Var<'t, S, StackTape<S, CAPACITY>>: Number,
{
    let tape = empty();
    let vars: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
    let y = f.call(&vars);
    (y.value(), tape.adjoints(y)[1..=x.len()].to_vec())
}

// (once for each kind of number, not for each function)
#[inline(never)]
fn empty<S: Scalar>() -> Box<StackTape<S, CAPACITY>> {
    Box::new(StackTape::new())
}

/// A tape that only counts the nodes that a stack tape would need.
struct Counter(Cell<u32>);

impl<S> Recorder<S> for Counter {
    const RECORDS_EVERY_CHOICE: bool = true;
    fn record<const N: usize>(&self, _: [u32; N], _: [S; N]) -> u32 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        self.record(branches, taken)
    }
}

/// How many nodes a stack tape needs.
fn count<F: Function>(f: &F, x: &[f64]) -> usize {
    let counter = Counter(Cell::new(0));
    let node = || <Counter as Recorder<f64>>::record(&counter, [], []);
    let vars: Vec<_> = x.iter().map(|&x| Var::on(&counter, node(), x)).collect();
    f.call(&vars);
    counter.0.get() as usize + 1
}

/// An energy as a function of relative positions.
pub trait Shape {
    /// The energy.
    type Energy: Energy;
    /// How many coordinates.
    const COORDINATES: usize;
    /// The energy at coordinates `x`.
    fn evaluate<S: Scalar, P: Coefficient<S>>(x: &[S], p: &<Self::Energy as Energy>::Prepared<P>) -> S;
}

fn vector<S: Scalar>(x: &[S], k: usize) -> Vec3<S> {
    Vec3::new(x[3 * k], x[3 * k + 1], x[3 * k + 2])
}

macro_rules! shape {
    ($(#[$doc:meta])* $Name:ident, $Kind:ident, $n:literal, |$x:ident| $geometry:expr) => {
        $(#[$doc])*
        pub struct $Name<E>(PhantomData<E>);
        impl<E: $Kind> Shape for $Name<E> {
            type Energy = E;
            const COORDINATES: usize = $n;
            fn evaluate<S: Scalar, P: Coefficient<S>>($x: &[S], p: &E::Prepared<P>) -> S {
                E::energy($geometry, p)
            }
        }
    };
}
shape!(
    /// A pair energy as a function of the vector between the atoms.
    Pair, PairEnergy, 3, |x| Distance::from_squared(vector(x, 0).norm_squared())
);
shape!(
    /// A bond as a function of the vector between its atoms.
    Bond, BondEnergy, 3, |x| Distance::from_squared(vector(x, 0).norm_squared())
);
shape!(
    /// An angle as a function of the positions of its three atoms.
    Angles, AngleEnergy, 9, |x| Angle::between(vector(x, 0) - vector(x, 1), vector(x, 2) - vector(x, 1))
);
shape!(
    /// A dihedral as a function of the positions of its four atoms.
    Dihedrals, DihedralEnergy, 12, |x| Dihedral::along(
        vector(x, 1) - vector(x, 0),
        vector(x, 2) - vector(x, 1),
        vector(x, 3) - vector(x, 2)
    )
);
shape!(
    /// A field as a function of the position.
    Field, FieldEnergy, 3, |x| vector(x, 0)
);

/// What a pair energy leaves between excluded atoms, as a function of the vector between them.
pub struct Excluded<E>(PhantomData<E>);
impl<E: PairEnergy> Shape for Excluded<E> {
    type Energy = E;
    const COORDINATES: usize = 3;
    fn evaluate<S: Scalar, P: Coefficient<S>>(x: &[S], p: &E::Prepared<P>) -> S {
        E::excluded(Distance::from_squared(vector(x, 0).norm_squared()), p)
    }
}

/// An energy of N positions (3N coordinates; the energy sees them relative to the first).
pub struct Tuple<E, const N: usize>(PhantomData<E>);
impl<E: TupleEnergy<N>, const N: usize> Shape for Tuple<E, N> {
    type Energy = E;
    const COORDINATES: usize = 3 * N;
    fn evaluate<S: Scalar, P: Coefficient<S>>(x: &[S], p: &E::Prepared<P>) -> S {
        E::energy(std::array::from_fn(|k| vector(x, k) - vector(x, 0)), p)
    }
}

/// An energy as a function of its coordinates, with plain parameters.
struct InCoordinates<'a, K> {
    params: &'a [f64],
    shape: PhantomData<K>,
}

impl<K: Shape> Function for InCoordinates<'_, K> {
    fn call<S: Number>(&self, x: &[S]) -> S {
        let params = Record::from_fn(|k| self.params[k]);
        K::evaluate::<S, f64>(x, &K::Energy::prepare(&params))
    }
}

/// An energy as a function of its parameters and coordinates, all active.
struct InEverything<'a, K> {
    /// All parameters, of which those that are whole numbers are not varied.
    params: &'a [f64],
    shape: PhantomData<K>,
}

impl<K: Shape> InEverything<'_, K> {
    fn about(k: usize) -> Option<&'static potentials::Param> {
        K::Energy::ABOUT.params.get(k)
    }
    /// The parameters that can be varied.
    fn real(&self) -> impl Iterator<Item = usize> {
        (0..self.params.len())
            .filter(|&k| !Self::about(k).is_some_and(|p| matches!(p.range, Range::Integer(..))))
    }
}

impl<K: Shape> Function for InEverything<'_, K> {
    fn call<S: Number>(&self, x: &[S]) -> S {
        let mut params: Vec<S> = self.params.iter().map(|&p| S::constant(p)).collect();
        let mut used = 0;
        for k in self.real() {
            params[k] = x[used];
            used += 1;
        }
        let params = Record::from_fn(|k| params[k]);
        let prepared = K::Energy::prepare::<S>(&params);
        K::evaluate::<S, S>(&x[used..], &prepared)
    }
    fn name(&self, k: usize) -> String {
        match self.real().nth(k) {
            Some(p) => {
                Self::about(p).map_or_else(|| format!("parameter {p}"), |about| about.name.to_string())
            }
            None => format!("x[{}]", k - self.real().count()),
        }
    }
    fn kind(&self, k: usize) -> usize {
        // every parameter has units of its own
        k.min(self.real().count())
    }
}

/// Checks an energy with the usual [`Limits`]: in coordinates, and in parameters and coordinates together.
pub fn check_energy<K: Shape>(params: &[f64], geometries: &[Vec<f64>]) -> Report {
    check_energy_within::<K>(params, geometries, &Limits::default())
}

/// Checks an energy: in coordinates with plain parameters, as for forces; and in parameters (through
/// [`prepare`](potentials::Energy::prepare)) and coordinates together, so that ∂E/∂θ and the mixed second derivatives
/// are looked at as well. Parameters in the order of the record, in units of your choice; each geometry has
/// [`Shape::COORDINATES`] numbers. Parameters that are whole numbers are not varied.
pub fn check_energy_within<K: Shape>(params: &[f64], geometries: &[Vec<f64>], limits: &Limits) -> Report {
    let mut report = Report::default();
    let shape = PhantomData::<K>;
    report.append("coordinates", check_within(&InCoordinates { params, shape }, geometries, limits));
    let all = InEverything { params, shape };
    let varied: Vec<f64> = all.real().map(|k| params[k]).collect();
    if !varied.is_empty() {
        let points: Vec<Vec<f64>> = geometries.iter().map(|x| [&varied, x.as_slice()].concat()).collect();
        report.append("parameters too", check_within(&all, &points, limits));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use potentials::cutoff::{Cut, ForceShift, Switch};
    use potentials::pair::LennardJones;

    struct Worked;
    impl Function for Worked {
        fn call<S: Number>(&self, x: &[S]) -> S {
            x[0] * x[1].sin() + x[1] * x[0].exp() + 2.0 * x[0].abs() - 0.5 / x[1]
        }
    }

    #[test]
    fn a_right_function_passes_also_at_a_corner() {
        let report = check(&Worked, &[vec![2.0, 0.5], vec![-1.0, 1.5], vec![1e-5, 0.3]]);
        assert!(report.ok(), "{report}");
        let report = check(&Worked, &[vec![0.0, 0.5]]);
        assert!(report.ok() && report.to_string().contains("slopes of a corner"), "{report}");
    }

    /// x₀ x₁, but at x₁ = 2 by a constant: the value is right, the derivative is not.
    struct Wrong;
    impl Function for Wrong {
        fn call<S: Number>(&self, x: &[S]) -> S {
            let two = S::constant(2.0);
            x[0] * S::select(x[1].le(two) & two.le(x[1]), two, x[1])
        }
    }

    /// Jumps at x = 2.
    struct Jump;
    impl Function for Jump {
        fn call<S: Number>(&self, x: &[S]) -> S {
            S::select(x[0].lt(S::constant(2.0)), x[0], x[0] * x[0] + 1.0)
        }
    }

    #[test]
    fn what_is_wrong_is_found() {
        assert!(check(&Wrong, &[vec![0.7, 3.0]]).ok());
        let report = check(&Wrong, &[vec![0.7, 3.0], vec![0.7, 2.0]]);
        assert!(!report.ok());
        let failed: Vec<_> = report.checks.iter().filter(|c| !c.ok).collect();
        assert_eq!(failed[0].quantity, "gradient, finite differences");
        assert_eq!(failed[0].place, "x[1], point 1");
        // beside a jump all is well; on it there is no derivative to agree with
        assert!(check(&Jump, &[vec![1.9999]]).ok());
        assert!(!check(&Jump, &[vec![2.0]]).ok());
    }

    #[test]
    fn pair_energies_pass() {
        let geometries = [vec![0.9, 0.4, -0.3], vec![0.2, 1.4, 0.6], vec![0.1, 0.1, 1.2]];
        let report = check_energy::<Pair<LennardJones>>(&[0.8, 1.1], &geometries);
        assert!(report.ok(), "{report}");
        let report = check_energy::<Pair<Cut<LennardJones, Switch>>>(&[0.8, 1.1, 2.5, 1.1], &geometries);
        assert!(report.ok(), "{report}");
        let report = check_energy::<Pair<Cut<LennardJones, ForceShift>>>(&[0.8, 1.1, 2.5, 0.0], &geometries);
        assert!(report.ok(), "{report}");
    }
}
