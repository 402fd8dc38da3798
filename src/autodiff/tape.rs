//! Reverse mode on a growing tape.

use super::operators::{Operand, Operator};
use potentials::dual::Differentiable;
use potentials::{Mask, Passive, Scalar, differentiable};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Add, Mul, Range};

/// The most numbers that one step of a formula depends on: those of a scalar product.
const PARENTS: usize = 6;

/// A loop over literals, written out: what loops touch stays in memory, and a tape is meant to dissolve into registers.
macro_rules! written_out {
    (for $k:ident in [$($n:literal)*] $body:block) => { $( { let $k: usize = $n; $body } )* };
}
pub(crate) use written_out;

/// What a [`Var`] writes its steps to.
///
/// Node 0 of every tape is *passive*: it stands for all constants, and what flows into it is ignored. A
/// number without derivative therefore needs no tape at all.
pub trait Recorder<S> {
    /// Whether a choice between two variables is recorded even where all lanes agree, so that the steps do not
    /// depend on the data. Otherwise the branch taken is followed and the other one is not mentioned.
    const RECORDS_EVERY_CHOICE: bool;

    /// Notes one step: from which nodes it came and with which partial derivatives. Returns its node.
    fn record<const N: usize>(&self, parents: [u32; N], partials: [S; N]) -> u32;

    /// Notes a choice between two nodes (0 where a branch is constant). `taken` is 1 in the lanes where a branch was
    /// taken and 0 in the others; there, nothing may flow back into that branch, whatever its derivatives are.
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32;
}

/// The dual reverse-mode scalar: a value that knows its node on a tape, so that after the backward pass it has
/// an adjoint as well.
pub struct Var<'t, S = f64, T = Tape<S>> {
    value: S,
    node: u32,
    tape: Option<&'t T>,
}

impl<S: std::fmt::Debug, T> std::fmt::Debug for Var<'_, S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?} (node {})", self.value, self.node)
    }
}
impl<S: Copy, T> Clone for Var<'_, S, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Copy, T> Copy for Var<'_, S, T> {}

impl<'t, S: Copy, T> Var<'t, S, T> {
    /// A variable that is node `node` of `tape`.
    #[inline(always)]
    pub(super) fn on(tape: &'t T, node: u32, value: S) -> Self {
        Var { value, node, tape: Some(tape) }
    }
    /// The value.
    #[inline(always)]
    pub fn value(self) -> S {
        self.value
    }
    /// The node on the tape; 0 for a constant.
    #[inline(always)]
    pub fn node(self) -> u32 {
        self.node
    }
}

impl<'t, S: Scalar, T: Recorder<S>> Differentiable for Var<'t, S, T> {
    type Base = S;
    #[inline(always)]
    fn primal(self) -> S {
        self.value
    }
    #[inline(always)]
    fn lifted(value: S) -> Self {
        Var { value, node: 0, tape: None }
    }
    #[inline(always)]
    fn unary(self, value: S, partial: S) -> Self {
        match self.tape {
            None => Self::lifted(value),
            Some(tape) => Var::on(tape, tape.record([self.node], [partial]), value),
        }
    }
    #[inline(always)]
    fn binary(self, o: Self, value: S, px: S, py: S) -> Self {
        match (self.tape, o.tape) {
            (None, None) => Self::lifted(value),
            (Some(_), None) => self.unary(value, px),
            (None, Some(_)) => o.unary(value, py),
            (Some(tape), Some(_)) => Var::on(tape, tape.record([self.node, o.node], [px, py]), value),
        }
    }
    #[inline(always)]
    fn composed<const N: usize>(x: [Self; N], value: S, partials: [S; N]) -> Self {
        const { assert!(N <= PARENTS, "steps are functions of up to six numbers") };
        let (mut tape, mut nodes) = (None, [0; N]);
        written_out!(for k in [0 1 2 3 4 5] {
            if k < N {
                tape = tape.or(x[k].tape);
                nodes[k] = x[k].node;
            }
        });
        match tape {
            None => Self::lifted(value),
            Some(tape) => Var::on(tape, tape.record(nodes, partials), value),
        }
    }
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        self.binary(o, self.value + o.value, S::constant(1.0), S::constant(1.0))
    }
    #[inline(always)]
    fn minus(self, o: Self) -> Self {
        self.binary(o, self.value - o.value, S::constant(1.0), S::constant(-1.0))
    }
    #[inline(always)]
    fn scaled(self, value: S, slope: f64) -> Self {
        self.unary(value, S::constant(slope))
    }
    #[inline(always)]
    fn times<R: Scalar>(self, p: Passive<R>) -> Self
    where
        S: Mul<Passive<R>, Output = S> + Add<Passive<R>, Output = S>,
    {
        self.unary(self.value * p, S::constant(0.0) + p)
    }
    #[inline(always)]
    fn shifted(self, value: S) -> Self {
        // no step at all: the sum has the same adjoint
        Var { value, ..self }
    }
    #[inline(always)]
    fn choose(mask: S::Mask, a: Self, b: Self) -> Self {
        let Some(tape) = a.tape.or(b.tape) else { return Self::lifted(S::select(mask, a.value, b.value)) };
        if !T::RECORDS_EVERY_CHOICE {
            match mask.decided() {
                Some(true) => return a,
                Some(false) => return b,
                None => {}
            }
        }
        let (one, zero) = (S::constant(1.0), S::constant(0.0));
        let taken = [S::select(mask, one, zero), S::select(mask, zero, one)];
        let node = tape.record_choice([a.node, b.node], taken);
        Var::on(tape, node, S::select(mask, a.value, b.value))
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.value.vanishes() && self.node == 0
    }
    #[inline(always)]
    fn zero_lanes(self) -> S::Mask {
        let zero = S::constant(0.0);
        if self.node == 0 { self.value.zeros() } else { zero.lt(zero) }
    }
}

differentiable!(['t, B: Scalar, T: Recorder<B>,] Var<'t, B, T>, B);

/// The steps of a computation in the order they were taken.
///
/// For each node the tape holds which nodes it came from and the partial derivatives with respect to them — the
/// rows of a sparse Jacobian. The backward pass multiplies by the transpose of that Jacobian, one row at a
/// time from the last: x̄ₚ += ȳ ∂y/∂xₚ.
///
/// A step on n variables takes 4 + n (4 + size of `S`) bytes: 28 for a product of two `f64`, 16 for a function
/// of one. [`reset`](Tape::reset) keeps the memory, so that a tape that is used again does not allocate.
#[derive(Debug)]
pub struct Tape<S = f64> {
    steps: RefCell<Steps<S>>,
}

#[derive(Debug)]
struct Steps<S> {
    /// One past the last edge of each node.
    ends: Vec<u32>,
    /// The node at the other end of each edge.
    parents: Vec<u32>,
    /// The partial derivative of each edge.
    partials: Vec<S>,
    /// The nodes at which lanes chose differently, in order.
    choices: Vec<u32>,
    /// The operators, in order.
    operators: Vec<Applied<S>>,
}

/// An operator that was applied: its results are nodes next to each other.
struct Applied<S> {
    /// The nodes of its variables, 0 for constants.
    from: Vec<u32>,
    /// The node of its first result.
    first: u32,
    x: Vec<S>,
    y: Vec<S>,
    pullback: Box<dyn Pullback<S>>,
}

impl<S> fmt::Debug for Applied<S> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} → {}..{}", self.pullback, self.first, self.first as usize + self.y.len())
    }
}

/// An operator whose type is forgotten.
trait Pullback<S>: fmt::Debug + Send {
    /// x̄ = Jᵀ ȳ; nothing where it cannot be had.
    fn pull_back(&self, x: &[S], y: &[S], adjoint: &[S]) -> Option<Vec<S>>;
}
impl<S: Operand, O: Operator> Pullback<S> for O {
    fn pull_back(&self, x: &[S], y: &[S], adjoint: &[S]) -> Option<Vec<S>> {
        self.pullback(x, y, adjoint).ok()
    }
}

impl<S: Scalar> Default for Tape<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Scalar> Recorder<S> for Tape<S> {
    const RECORDS_EVERY_CHOICE: bool = false;
    // Not inlined: an energy is hundreds of steps, and each would carry the code that grows the tape.
    #[inline(never)]
    fn record<const N: usize>(&self, parents: [u32; N], partials: [S; N]) -> u32 {
        self.steps.borrow_mut().push(&parents, &partials)
    }
    #[cold]
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        self.choice(branches, taken)
    }
}

/// A tape whose code becomes part of the function that uses it: for kernels over lanes, which are compiled for their
/// instructions only as far as they are inlined. It grows by the code of every step; for plain numbers take a [`Tape`].
#[derive(Debug)]
pub struct InlineTape<S>(Tape<S>);

impl<S: Scalar> Default for InlineTape<S> {
    fn default() -> Self {
        Self(Tape::new())
    }
}

impl<S: Scalar> Recorder<S> for InlineTape<S> {
    const RECORDS_EVERY_CHOICE: bool = false;
    #[inline(always)]
    fn record<const N: usize>(&self, parents: [u32; N], partials: [S; N]) -> u32 {
        self.0.steps.borrow_mut().push(&parents, &partials)
    }
    #[inline(always)]
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        self.0.choice(branches, taken)
    }
}

impl<S: Scalar> InlineTape<S> {
    /// As [`Tape::reset`].
    pub fn reset(&mut self) {
        self.0.reset();
    }
    /// As [`Tape::variable`].
    #[inline(always)]
    pub fn variable(&self, value: S) -> Var<'_, S, Self> {
        Var::on(self, self.record([], []), value)
    }
    /// As [`Tape::backward`], from one output.
    #[inline(always)]
    pub fn gradient_into(&self, output: Var<'_, S, Self>, adjoints: &mut Adjoints<S>) {
        self.0.sweep_from(std::iter::once((output.node, S::constant(1.0))), adjoints);
    }
}

impl<S: Scalar> Steps<S> {
    #[inline(always)]
    fn push(&mut self, parents: &[u32], partials: &[S]) -> u32 {
        self.parents.extend_from_slice(parents);
        self.partials.extend_from_slice(partials);
        let (node, end) = (self.ends.len(), self.parents.len());
        assert!(end <= u32::MAX as usize, "a tape holds at most 2^32 partial derivatives");
        self.ends.push(end as u32);
        node as u32
    }
}

impl<S: Scalar> Tape<S> {
    /// An empty tape.
    pub fn new() -> Self {
        // node 0, passive, without edges
        let (parents, partials, choices) = Default::default();
        let operators = Vec::new();
        Tape { steps: RefCell::new(Steps { ends: vec![0], parents, partials, choices, operators }) }
    }

    /// Forgets every step but keeps the memory. No variable of the tape can be alive: it is borrowed mutably.
    pub fn reset(&mut self) {
        let steps = self.steps.get_mut();
        steps.ends.truncate(1);
        steps.parents.clear();
        steps.partials.clear();
        steps.choices.clear();
        steps.operators.clear();
    }

    /// A new independent variable.
    #[inline]
    pub fn variable(&self, value: S) -> Var<'_, S> {
        Var::on(self, self.record([], []), value)
    }

    /// A node with any number of parents: `value` = f(parents), with the partial derivatives of f. This is how
    /// a whole operator (a sum, an interaction, a linear solve) becomes one step. Constants among the parents
    /// are allowed.
    pub fn node<'t>(&'t self, value: S, parents: &[(Var<'t, S>, S)]) -> Var<'t, S> {
        let steps = &mut *self.steps.borrow_mut();
        let before = steps.parents.len();
        for (x, partial) in parents.iter().filter(|(x, _)| x.node != 0) {
            steps.parents.push(x.node);
            steps.partials.push(*partial);
        }
        if steps.parents.len() == before {
            return Var::lifted(value);
        }
        Var::on(self, steps.push(&[], &[]), value)
    }

    /// Σ xₖ as one node.
    pub fn sum<'t>(&'t self, terms: &[Var<'t, S>]) -> Var<'t, S> {
        let value = terms.iter().fold(S::constant(0.0), |s, x| s + x.value);
        let steps = &mut *self.steps.borrow_mut();
        for x in terms.iter().filter(|x| x.node != 0) {
            steps.parents.push(x.node);
            steps.partials.push(S::constant(1.0));
        }
        Var::on(self, steps.push(&[], &[]), value)
    }

    /// The results y of an operator of `from`, whose values are `x`: as many nodes, and one step back through all of
    /// them. What was none of variables is constant.
    pub(super) fn operator<'t, O: Operator>(
        operator: &O,
        from: &[Var<'t, S>],
        x: Vec<S>,
        y: Vec<S>,
    ) -> Vec<Var<'t, S>>
    where
        S: Operand,
    {
        let Some(tape) = from.iter().find_map(|x| x.tape) else {
            return y.into_iter().map(Var::lifted).collect();
        };
        let steps = &mut *tape.steps.borrow_mut();
        let first = steps.ends.len() as u32;
        let results = y.iter().map(|&value| Var::on(tape, steps.push(&[], &[]), value)).collect();
        let from = from.iter().map(|x| x.node).collect();
        steps.operators.push(Applied { from, first, x, y, pullback: Box::new(operator.clone()) });
        results
    }

    /// How many nodes, the passive one included.
    pub fn len(&self) -> usize {
        self.steps.borrow().ends.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Bytes that the recorded steps occupy.
    pub fn bytes(&self) -> usize {
        let steps = self.steps.borrow();
        (steps.ends.len() + steps.parents.len() + steps.choices.len()) * size_of::<u32>()
            + steps.partials.len() * size_of::<S>()
            + steps.operators.iter().map(Applied::bytes).sum::<usize>()
    }

    /// For each node whether `output` was computed from it, whatever the derivative is.
    pub fn dependencies(&self, output: Var<'_, S>) -> Vec<bool> {
        let steps = self.steps.borrow();
        let mut known = vec![false; steps.ends.len()];
        known[output.node as usize] = true;
        let mut operators = steps.operators.iter().rev().peekable();
        for node in (1..steps.ends.len()).rev() {
            if let Some(operator) = operators.next_if(|o| o.first as usize == node)
                && known[node..node + operator.y.len()].contains(&true)
            {
                operator.from.iter().for_each(|&parent| known[parent as usize] = true);
            }
            if known[node] {
                steps.edges(node).for_each(|(&parent, _)| known[parent as usize] = true);
            }
        }
        known[0] = false;
        known
    }

    /// The backward pass: the derivatives of `output` with respect to everything on the tape.
    pub fn gradient(&self, output: Var<'_, S>) -> Adjoints<S> {
        let mut adjoints = Adjoints::default();
        self.backward(&[(output, S::constant(1.0))], &mut adjoints);
        adjoints
    }

    /// The backward pass from several outputs with given weights ȳ: the derivatives of Σ ȳₖ yₖ. The memory of
    /// `adjoints` is used again.
    ///
    /// A node whose adjoint is exactly zero passes nothing on, and a lane passes nothing on into a branch that it
    /// did not take, so that an infinite partial derivative there cannot make a NaN.
    pub fn backward(&self, seeds: &[(Var<'_, S>, S)], adjoints: &mut Adjoints<S>) {
        self.sweep_from(seeds.iter().map(|(y, weight)| (y.node, *weight)), adjoints);
    }

    #[inline(always)]
    fn choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        let steps = &mut *self.steps.borrow_mut();
        let node = steps.push(&branches, &taken);
        steps.choices.push(node);
        node
    }

    /// The backward pass from some nodes with their weights.
    #[inline(always)]
    fn sweep_from(&self, seeds: impl Iterator<Item = (u32, S)>, adjoints: &mut Adjoints<S>) {
        let steps = self.steps.borrow();
        let a = &mut adjoints.values;
        a.clear();
        a.resize(steps.ends.len(), S::constant(0.0));
        for (node, weight) in seeds {
            a[node as usize] = a[node as usize] + weight;
        }
        if !steps.choices.is_empty() {
            return steps.guarded_sweep(a);
        }
        // from operator to operator
        let mut end = steps.ends.len();
        for operator in steps.operators.iter().rev() {
            let first = operator.first as usize;
            steps.sweep(first + operator.y.len()..end, a);
            operator.hand_back(a);
            end = first;
        }
        steps.sweep(1..end, a);
    }
}

impl<S: Scalar> Applied<S> {
    fn bytes(&self) -> usize {
        self.from.len() * size_of::<u32>()
            + (self.x.len() + self.y.len()) * size_of::<S>()
            + size_of::<Self>()
    }
    /// The backward pass through all results at once. Returns whether there was anything to hand back.
    fn hand_back(&self, a: &mut [S]) -> bool {
        let first = self.first as usize;
        let adjoint = &a[first..first + self.y.len()];
        if adjoint.iter().all(|a| a.vanishes()) {
            return false;
        }
        let adjoint = self.pullback.pull_back(&self.x, &self.y, adjoint);
        for (k, &parent) in self.from.iter().enumerate().filter(|(_, parent)| **parent != 0) {
            // (what cannot be differentiated has no derivative)
            let handed = adjoint.as_ref().map_or(S::constant(f64::NAN), |x| x[k]);
            a[parent as usize] = a[parent as usize] + handed;
        }
        true
    }
}

impl<S: Scalar> Steps<S> {
    /// Parents and partial derivatives of a node.
    #[inline(always)]
    fn edges(&self, node: usize) -> impl Iterator<Item = (&u32, &S)> {
        let edges = self.ends[node - 1] as usize..self.ends[node] as usize;
        self.parents[edges.clone()].iter().zip(&self.partials[edges])
    }

    /// The backward pass through some nodes.
    #[inline(always)]
    fn sweep(&self, nodes: Range<usize>, a: &mut [S]) {
        for node in nodes.rev() {
            let adjoint = a[node];
            if adjoint.vanishes() {
                continue;
            }
            for (&parent, &partial) in self.edges(node) {
                let p = &mut a[parent as usize];
                *p = adjoint.fma(partial, *p);
            }
        }
    }

    /// The backward pass where lanes chose differently. It keeps, for each node, the lanes in which the outputs
    /// depend on it, and uses partial derivatives in these lanes only.
    #[inline(always)]
    fn guarded_sweep(&self, a: &mut [S]) {
        let zero = S::constant(0.0);
        let never = zero.lt(zero);
        let mut reached: Vec<S::Mask> =
            a.iter().map(|adjoint| if adjoint.vanishes() { never } else { !never }).collect();
        let mut choices = self.choices.iter().rev().peekable();
        let mut operators = self.operators.iter().rev().peekable();
        for node in (1..self.ends.len()).rev() {
            // (the first result of an operator is the last of them to be reached)
            if let Some(operator) = operators.next_if(|o| o.first as usize == node) {
                let results = node..node + operator.y.len();
                let lanes = results.fold(never, |lanes, k| lanes | reached[k]);
                if operator.hand_back(a) {
                    operator.from.iter().for_each(|&k| reached[k as usize] = reached[k as usize] | lanes);
                }
            }
            let is_choice = choices.next_if(|&&choice| choice as usize == node).is_some();
            let (adjoint, lanes) = (a[node], reached[node]);
            if adjoint.vanishes() {
                continue;
            }
            for (&parent, &partial) in self.edges(node) {
                let parent = parent as usize;
                if is_choice {
                    let lanes = lanes & zero.lt(partial);
                    a[parent] = a[parent] + S::select(lanes, adjoint, zero);
                    reached[parent] = reached[parent] | lanes;
                } else {
                    a[parent] = adjoint.fma(S::select(lanes, partial, zero), a[parent]);
                    reached[parent] = reached[parent] | lanes;
                }
            }
        }
    }
}

/// What the backward pass leaves: one adjoint x̄ = ∂output/∂x a node.
#[derive(Clone, Debug)]
pub struct Adjoints<S = f64> {
    values: Vec<S>,
}

impl<S> Default for Adjoints<S> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<S: Scalar> Adjoints<S> {
    /// The adjoint of `x`; zero for a constant.
    #[inline]
    pub fn of<T>(&self, x: Var<'_, S, T>) -> S {
        self.of_node(x.node)
    }
    /// The adjoint of a node by its [number](Var::node): variables that were recorded first have the numbers from 1 on.
    #[inline(always)]
    pub fn of_node(&self, node: u32) -> S {
        if node == 0 { S::constant(0.0) } else { self.values[node as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::Dual;

    #[test]
    fn the_worked_example() {
        // f(x, y) = x sin y + y eˣ; ∂x = sin y + y eˣ, ∂y = x cos y + eˣ
        let tape = Tape::new();
        let (x, y) = (tape.variable(2.0), tape.variable(0.5));
        let f = x * y.sin() + y * x.exp();
        let g = tape.gradient(f);
        assert_eq!(f.value(), 2.0 * 0.5f64.sin() + 0.5 * 2f64.exp());
        assert_eq!(g.of(x), 0.5f64.sin() + 0.5 * 2f64.exp());
        assert_eq!(g.of(y), 2.0 * 0.5f64.cos() + 2f64.exp());
        assert_eq!(tape.len(), 1 + 2 + 5);
        assert_eq!(tape.bytes(), 8 * 4 + 8 * 12);
    }

    #[test]
    fn paths_add_up() {
        // L = (wx + b)(wx): ∂w = 2wx² + bx, ∂x = 2w²x + bw, ∂b = wx
        let tape = Tape::new();
        let (w, x, b) = (tape.variable(3.0), tape.variable(-2.0), tape.variable(0.5));
        let wx = w * x;
        let l = (wx + b) * wx;
        let g = tape.gradient(l);
        assert_eq!([g.of(w), g.of(x), g.of(b)], [2.0 * 3.0 * 4.0 - 1.0, 2.0 * 9.0 * -2.0 + 1.5, -6.0]);
    }

    #[test]
    fn dependencies_are_those_of_the_text() {
        let tape = Tape::new();
        let (x, y, z) = (tape.variable(2.0), tape.variable(0.0), tape.variable(1.0));
        // (the derivative in y is zero, but y is there)
        let f = x + y * y;
        let _ = f * z;
        let known = tape.dependencies(f);
        assert_eq!([x, y, z].map(|v| known[v.node() as usize]), [true, true, false]);
        assert!(tape.dependencies(Var::constant(1.0)).iter().all(|known| !known));
    }

    #[test]
    fn constants_leave_no_trace() {
        let tape = Tape::<f64>::new();
        let c = Var::constant(2.0) * Var::constant(3.0) + 1.0;
        assert_eq!((c.value(), c.node(), tape.len()), (7.0, 0, 1));
        let x = tape.variable(1.0);
        let y = x * c + 4.0;
        assert_eq!((y.value(), tape.gradient(y).of(x), tape.gradient(y).of(c)), (11.0, 7.0, 0.0));
    }

    #[test]
    fn a_tape_is_used_again_without_allocating() {
        let mut tape = Tape::new();
        let mut adjoints = Adjoints::default();
        let mut capacity = None;
        for k in 0..5 {
            tape.reset();
            let x = tape.variable(0.1 * k as f64);
            let mut y = x;
            for _ in 0..1000 {
                y = y.sin() * x + y;
            }
            tape.backward(&[(y, 1.0)], &mut adjoints);
            let steps = tape.steps.borrow();
            let now = (steps.ends.as_ptr(), steps.partials.as_ptr(), adjoints.values.as_ptr());
            assert_eq!(*capacity.get_or_insert(now), now);
        }
    }

    #[test]
    fn forward_over_reverse() {
        // f = x³ y: ∇f = (3x²y, x³), Hv for v = (1, 2): (6xy + 2·3x², 3x²)
        let tape = Tape::<Dual<f64>>::new();
        let (x, y) = (tape.variable(Dual::new(2.0, 1.0)), tape.variable(Dual::new(5.0, 2.0)));
        let f = x.powi(3) * y;
        let g = tape.gradient(f);
        assert_eq!((g.of(x).value, g.of(y).value), (60.0, 8.0));
        assert_eq!((g.of(x).tangent, g.of(y).tangent), (60.0 + 24.0, 12.0));
    }

    #[test]
    fn corners_and_branches() {
        let tape = Tape::new();
        let x = tape.variable(0.0);
        for (y, slope) in [(x.abs(), 1.0), (x.relu(), 0.0), (x.max(-x), 1.0), (x.min(-x), 1.0)] {
            assert_eq!(tape.gradient(y).of(x), slope);
        }
        // the branch not taken has an infinite derivative, which must not reach x
        let tape = Tape::new();
        let x = tape.variable(0.0);
        let y = Var::select(x.lt(Var::constant(1.0)), x * 2.0, x.sqrt());
        assert_eq!(tape.gradient(y).of(x), 2.0);
    }

    #[test]
    fn a_node_of_any_number_of_parents() {
        let tape = Tape::new();
        let x: Vec<_> = (0..5).map(|k| tape.variable(k as f64)).collect();
        let parents: Vec<_> = x.iter().map(|&x| (x, x.value() * 2.0)).collect();
        let y = tape.node(x.iter().map(|x| x.value().powi(2)).sum(), &parents);
        let g = tape.gradient(y * 3.0);
        assert_eq!(y.value(), 30.0);
        assert!(x.iter().enumerate().all(|(k, &x)| g.of(x) == 6.0 * k as f64));
        assert_eq!(tape.gradient(tape.sum(&x)).of(x[3]), 1.0);
    }
}
