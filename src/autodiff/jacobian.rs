//! Jacobians and Hessians of any function, by the mode that is cheaper.
//!
//! For a function from n numbers to m with Jacobian J = ∂y/∂x:
//!
//! | wanted | function | cost, in evaluations |
//! |---|---|---|
//! | J v | [`jvp`] | one forward pass: 2 to 3 |
//! | Jᵀ w | [`vjp`] | one recording and one backward pass: some 5 to 10 |
//! | J | [`jacobian`] | n forward passes, or one recording and m backward passes |
//! | ∇f, m = 1 | [`gradient`] | as [`vjp`], whatever n |
//! | H v, m = 1 | [`hessian_product`] | forward over reverse: about twice a gradient |
//! | H, m = 1 | [`hessian`] | n products with H |
//! | H, sparse | [`sparse_hessian`] | a product for each colour |
//!
//! A *colour* is a set of columns of which no two have an entry in the same row: their sum can be told apart again
//! (A. R. Curtis, M. J. D. Powell and J. K. Reid, IMA J. Appl. Math. 13, 117 (1974)). Which entries there can be is read
//! off the function's own steps.

use super::operators::{Operand, Operator, OperatorError};
use super::{Dual, Tape};
use potentials::dual::Differentiable;
use potentials::{Mask, Passive, Scalar, differentiable};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::{Add, Mul};
use std::rc::Rc;

/// A function of several numbers with several results, written once for numbers of any kind.
pub trait Map {
    /// The function.
    fn call<S: Operand>(&self, x: &[S]) -> Vec<S>;
}

/// y = f(x) and ẏ = J v, by one forward pass.
///
/// # Panics
/// If v has not as many numbers as x.
pub fn jvp<S: Operand>(f: &impl Map, x: &[S], v: &[S]) -> (Vec<S>, Vec<S>) {
    assert_eq!(x.len(), v.len(), "a direction has as many numbers as the point");
    let x: Vec<_> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, v)).collect();
    f.call(&x).into_iter().map(|y| (y.value, y.tangent)).unzip()
}

/// y = f(x) and x̄ = Jᵀ w, by one backward pass.
///
/// # Panics
/// If w has not as many numbers as f has results.
pub fn vjp<S: Operand>(f: &impl Map, x: &[S], w: &[S]) -> (Vec<S>, Vec<S>) {
    let tape = Tape::new();
    let x: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
    let y = f.call(&x);
    assert_eq!(y.len(), w.len(), "a weight for each result");
    let seeds: Vec<_> = y.iter().copied().zip(w.iter().copied()).collect();
    let mut adjoints = Default::default();
    tape.backward(&seeds, &mut adjoints);
    (y.iter().map(|y| y.value()).collect(), x.iter().map(|&x| adjoints.of(x)).collect())
}

/// In which direction derivatives were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A column a pass.
    Forward,
    /// A row a pass.
    Reverse,
}

/// A Jacobian with the value it was taken at.
#[derive(Clone, Debug, PartialEq)]
pub struct Jacobian {
    /// f(x)
    pub value: Vec<f64>,
    /// ∂yᵢ/∂xⱼ, row after row.
    pub rows: Vec<Vec<f64>>,
    /// How it was taken.
    pub mode: Mode,
}

/// The Jacobian: by columns where there are fewer variables than results or as many, and by rows where there are more.
/// (A forward pass costs less than a backward pass, but the recording serves all of these.)
pub fn jacobian(f: &impl Map, x: &[f64]) -> Jacobian {
    let value = f.call(x);
    if x.len() <= value.len() {
        let mut rows = vec![vec![0.0; x.len()]; value.len()];
        let mut v = vec![0.0; x.len()];
        for k in 0..x.len() {
            v[k] = 1.0;
            jvp(f, x, &v).1.into_iter().zip(&mut rows).for_each(|(t, row)| row[k] = t);
            v[k] = 0.0;
        }
        return Jacobian { value, rows, mode: Mode::Forward };
    }
    let (tape, mut adjoints) = (Tape::new(), Default::default());
    let variables: Vec<_> = x.iter().map(|&x| tape.variable(x)).collect();
    let y = f.call(&variables);
    let rows = y.iter().map(|&y| {
        tape.backward(&[(y, 1.0)], &mut adjoints);
        variables.iter().map(|&x| adjoints.of(x)).collect()
    });
    Jacobian { value, rows: rows.collect(), mode: Mode::Reverse }
}

/// f(x) and its gradient, for a function with one result.
///
/// # Panics
/// If there is not one result.
pub fn gradient<S: Operand>(f: &impl Map, x: &[S]) -> (S, Vec<S>) {
    let (y, gradient) = vjp(f, x, &[S::constant(1.0)]);
    (y[0], gradient)
}

/// Gradient and H v of a function with one result: the gradient in dual numbers (forward over reverse).
///
/// # Panics
/// If there is not one result, or v has not as many numbers as x.
pub fn hessian_product(f: &impl Map, x: &[f64], v: &[f64]) -> (Vec<f64>, Vec<f64>) {
    assert_eq!(x.len(), v.len(), "a direction has as many numbers as the point");
    let x: Vec<_> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, v)).collect();
    gradient(f, &x).1.into_iter().map(|g| (g.value, g.tangent)).unzip()
}

/// The Hessian of a function with one result, row after row.
///
/// # Panics
/// If there is not one result.
pub fn hessian(f: &impl Map, x: &[f64]) -> Vec<Vec<f64>> {
    let mut v = vec![0.0; x.len()];
    let column = |k: usize| {
        v[k] = 1.0;
        let column = hessian_product(f, x, &v).1;
        v[k] = 0.0;
        column
    };
    (0..x.len()).map(column).collect()
}

/// A sparse Hessian.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseHessian {
    /// (row, column, ∂²f/∂x_row ∂x_column) by rows; both triangles.
    pub entries: Vec<(usize, usize, f64)>,
    /// How many products with the Hessian it took: the colours.
    pub products: usize,
}

/// The Hessian of a function with one result in which few variables act on each other.
///
/// # Panics
/// If there is not one result.
pub fn sparse_hessian(f: &impl Map, x: &[f64]) -> SparseHessian {
    let pattern = hessian_pattern(f, x);
    let mut columns = vec![Vec::new(); x.len()];
    pattern.iter().for_each(|&(row, column)| columns[column].push(row));
    let colors = colors(&columns);
    let products = colors.iter().map(|c| c + 1).max().unwrap_or(0);
    let mut found = Vec::with_capacity(products);
    for color in 0..products {
        let v: Vec<f64> = colors.iter().map(|&c| if c == color { 1.0 } else { 0.0 }).collect();
        found.push(hessian_product(f, x, &v).1);
    }
    let entries =
        pattern.into_iter().map(|(row, column)| (row, column, found[colors[column]][row])).collect();
    SparseHessian { entries, products }
}

/// A colour for each column, given the rows that it has entries in: the smallest that no column with a row in common has.
fn colors(columns: &[Vec<usize>]) -> Vec<usize> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); columns.len()];
    let mut colors = Vec::with_capacity(columns.len());
    for (column, entries) in columns.iter().enumerate() {
        let taken: HashSet<usize> =
            entries.iter().flat_map(|&r| &rows[r]).map(|&other: &usize| colors[other]).collect();
        colors.push((0..).find(|c| !taken.contains(c)).unwrap_or(0));
        entries.iter().for_each(|&r| rows[r].push(column));
    }
    colors
}

/// Which entries of the Hessian of a function with one result need not be zero, by rows: those of variables that meet in a
/// step that is not linear. (A few of these may be zero all the same.) Along the branches taken at x.
///
/// # Panics
/// If there is not one result.
pub fn hessian_pattern(f: &impl Map, x: &[f64]) -> Vec<(usize, usize)> {
    let trace = Trace::default();
    let variable = |(k, &value): (usize, &f64)| Traced { value, set: trace.variable(k), trace: Some(&trace) };
    let x: Vec<_> = x.iter().enumerate().map(variable).collect();
    assert_eq!(f.call(&x).len(), 1, "a Hessian is of a function with one result");
    trace.0.into_inner().pairs.into_iter().collect()
}

/// What is known of the sets of variables that numbers depend on.
#[derive(Debug, Default)]
struct Trace(RefCell<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Sorted, each once.
    sets: Vec<Rc<[u32]>>,
    names: HashMap<Rc<[u32]>, u32>,
    unions: HashMap<[u32; 2], u32>,
    /// Sets all of whose variables meet.
    met: HashSet<u32>,
    pairs: BTreeSet<(usize, usize)>,
}

impl Known {
    fn name(&mut self, set: Vec<u32>) -> u32 {
        let set: Rc<[u32]> = set.into();
        if let Some(&name) = self.names.get(&set) {
            return name;
        }
        let name = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.names.insert(set, name);
        name
    }
}

impl Trace {
    fn variable(&self, k: usize) -> u32 {
        self.0.borrow_mut().name(vec![k as u32])
    }
    fn union(&self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let known = &mut *self.0.borrow_mut();
        let key = [a.min(b), a.max(b)];
        if let Some(&union) = known.unions.get(&key) {
            return union;
        }
        let all: BTreeSet<u32> =
            known.sets[a as usize].iter().chain(&*known.sets[b as usize]).copied().collect();
        let union = known.name(all.into_iter().collect());
        known.unions.insert(key, union);
        union
    }
    /// All variables of a set meet.
    fn meet(&self, set: u32) {
        let known = &mut *self.0.borrow_mut();
        if known.met.insert(set) {
            let set = known.sets[set as usize].clone();
            let pairs = set.iter().flat_map(|&a| set.iter().map(move |&b| (a as usize, b as usize)));
            known.pairs.extend(pairs);
        }
    }
}

/// A number that knows which variables it depends on, and tells which of them meet.
#[derive(Clone, Copy, Debug)]
struct Traced<'t, B> {
    value: B,
    set: u32,
    trace: Option<&'t Trace>,
}

impl<B: Scalar> Traced<'_, B> {
    /// A number that depends on what two depend on.
    fn of_both(self, o: Self, value: B) -> Self {
        match (self.trace, o.trace) {
            (Some(trace), Some(_)) => Self { value, set: trace.union(self.set, o.set), ..self },
            (Some(_), None) => Self { value, ..self },
            (None, _) => Self { value, ..o },
        }
    }
    /// All that it depends on meets.
    fn bent(self) -> Self {
        if let Some(trace) = self.trace {
            trace.meet(self.set);
        }
        self
    }
}

impl<B: Scalar> Differentiable for Traced<'_, B> {
    type Base = B;
    fn primal(self) -> B {
        self.value
    }
    fn lifted(value: B) -> Self {
        Self { value, set: 0, trace: None }
    }
    fn unary(self, value: B, _: B) -> Self {
        Self { value, ..self }.bent()
    }
    fn binary(self, o: Self, value: B, _: B, _: B) -> Self {
        self.of_both(o, value).bent()
    }
    fn composed<const N: usize>(x: [Self; N], value: B, _: [B; N]) -> Self {
        x.into_iter().fold(Self::lifted(value), |all, x| all.of_both(x, value)).bent()
    }
    fn plus(self, o: Self) -> Self {
        self.of_both(o, self.value + o.value)
    }
    fn minus(self, o: Self) -> Self {
        self.of_both(o, self.value - o.value)
    }
    fn scaled(self, value: B, _: f64) -> Self {
        Self { value, ..self }
    }
    fn times<R: Scalar>(self, p: Passive<R>) -> Self
    where
        B: Mul<Passive<R>, Output = B> + Add<Passive<R>, Output = B>,
    {
        Self { value: self.value * p, ..self }
    }
    fn shifted(self, value: B) -> Self {
        Self { value, ..self }
    }
    fn choose(mask: B::Mask, a: Self, b: Self) -> Self {
        match mask.decided() {
            Some(true) => a,
            Some(false) => b,
            None => a.of_both(b, B::select(mask, a.value, b.value)),
        }
    }
    fn is_zero(self) -> bool {
        self.value.vanishes() && self.trace.is_none()
    }
    fn zero_lanes(self) -> B::Mask {
        let zero = B::constant(0.0);
        if self.trace.is_none() { self.value.zeros() } else { zero.lt(zero) }
    }
}

differentiable!(['t, B: Scalar,] Traced<'t, B>, B);

impl<S: Operand> Operand for Traced<'_, S> {
    fn apply<O: Operator>(operator: &O, x: &[Self]) -> Result<Vec<Self>, OperatorError> {
        let values: Vec<S> = x.iter().map(|x| x.value).collect();
        let zero = Self::constant(0.0);
        let all = x.iter().fold(zero, |all, &x| all.of_both(x, zero.value)).bent();
        Ok(S::apply(operator, &values)?.into_iter().map(|value| Self { value, ..all }).collect())
    }
    fn plain(self) -> f64 {
        self.value.plain()
    }
}
