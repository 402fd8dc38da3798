//! Reverse mode for one small function: a tape of fixed size that lives on the stack.

use super::tape::{Recorder, Var};
use potentials::Scalar;
use std::cell::Cell;

/// A tape of at most `CAPACITY` nodes of one or two parents, for functions whose length is known, such as the
/// energy of a dihedral in its twelve coordinates. It never allocates; made once and [`restart`](Self::restart)ed
/// for every call, it costs nothing but its steps.
///
/// Recording more than `CAPACITY` nodes panics: the capacity belongs to the function, not to the data.
pub struct StackTape<S, const CAPACITY: usize> {
    nodes: [Cell<Node<S>>; CAPACITY],
    len: Cell<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node<S> {
    parents: [u32; 2],
    partials: [S; 2],
}

/// A variable of a [`StackTape`].
pub type StackVar<'t, S, const CAPACITY: usize> = Var<'t, S, StackTape<S, CAPACITY>>;

impl<S: Scalar, const CAPACITY: usize> Default for StackTape<S, CAPACITY> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Scalar, const CAPACITY: usize> StackTape<S, CAPACITY> {
    /// A tape with no steps.
    pub fn new() -> Self {
        let zero = S::constant(0.0);
        let empty = Node { parents: [0; 2], partials: [zero; 2] };
        StackTape { nodes: std::array::from_fn(|_| Cell::new(empty)), len: Cell::new(1) }
    }

    /// Starts over with N independent variables, nodes 1 to N. Variables of an earlier start are stale: they
    /// must not be used any more.
    #[inline(always)]
    pub fn restart<const N: usize>(&self, values: [S; N]) -> [StackVar<'_, S, CAPACITY>; N] {
        assert!(N < CAPACITY);
        self.len.set(N as u32 + 1);
        std::array::from_fn(|k| Var::on(self, k as u32 + 1, values[k]))
    }

    /// The derivatives of `output` with respect to the N variables of [`restart`](Self::restart).
    #[inline(always)]
    pub fn gradient<const N: usize>(&self, output: StackVar<'_, S, CAPACITY>) -> [S; N] {
        let mut adjoints = [S::constant(0.0); CAPACITY];
        adjoints[output.node() as usize] = S::constant(1.0);
        for k in (N + 1..self.len.get() as usize).rev() {
            let adjoint = adjoints[k];
            if adjoint.vanishes() {
                continue;
            }
            let node = self.nodes[k].get();
            for (parent, partial) in node.parents.into_iter().zip(node.partials) {
                let p = &mut adjoints[parent as usize];
                *p = adjoint.fma(partial, *p);
            }
        }
        if output.node() == 0 {
            return [S::constant(0.0); N];
        }
        std::array::from_fn(|k| adjoints[k + 1])
    }
}

impl<S: Scalar, const CAPACITY: usize> Recorder<S> for StackTape<S, CAPACITY> {
    #[inline(always)]
    fn record<const N: usize>(&self, parents: [u32; N], partials: [S; N]) -> u32 {
        const { assert!(N <= 2, "a stack tape records functions of one or two numbers") };
        let mut node = Node { parents: [0; 2], partials: [S::constant(0.0); 2] };
        node.parents[..N].copy_from_slice(&parents);
        node.partials[..N].copy_from_slice(&partials);
        let k = self.len.get();
        self.nodes[k as usize].set(node);
        self.len.set(k + 1);
        k
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::Dual;

    #[test]
    fn agrees_with_the_growing_tape() {
        let stack = StackTape::<f64, 32>::new();
        for (a, b) in [(2.0, 0.5), (-0.3, 1.7)] {
            let [x, y] = stack.restart([a, b]);
            let f = x * y.sin() + y * x.exp() - 3.0 * x;
            let got: [f64; 2] = stack.gradient(f);
            let tape = crate::autodiff::Tape::new();
            let (x, y) = (tape.variable(a), tape.variable(b));
            let f = x * y.sin() + y * x.exp() - 3.0 * x;
            let want = tape.gradient(f);
            assert_eq!(got, [want.of(x), want.of(y)]);
        }
    }

    #[test]
    fn a_constant_has_no_derivative_and_nesting_works() {
        let stack = StackTape::<Dual<f64>, 8>::new();
        let [x] = stack.restart([Dual::variable(3.0)]);
        let f = x.powi(4);
        let [g] = stack.gradient(f);
        assert_eq!((g.value, g.tangent), (108.0, 108.0));
        let _ = stack.restart([Dual::variable(3.0)]);
        let [g] = stack.gradient(Var::constant(7.0));
        assert_eq!((g.value, g.tangent), (0.0, 0.0));
    }
}
