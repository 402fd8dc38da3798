//! Reverse mode for one small function: a tape of fixed size that lives on the stack.

use super::tape::{Recorder, Var};
use potentials::Scalar;
use std::cell::Cell;

/// A tape of at most `CAPACITY` nodes of one or two parents, for functions whose length is known, such as the
/// energy of a dihedral in its twelve coordinates. It never allocates; made once and [`restart`](Self::restart)ed
/// for every call, it costs nothing but its steps.
///
/// Node 0 counts, and so does a choice between two branches even where all lanes agree: the steps are the same for
/// all data. Recording more than `CAPACITY` nodes panics: the capacity belongs to the function.
pub struct StackTape<S, const CAPACITY: usize> {
    nodes: [Cell<Node<S>>; CAPACITY],
    len: Cell<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node<S> {
    parents: [u32; 2],
    partials: [S; 2],
    /// Whether the partial derivatives say which lanes took which branch.
    is_choice: bool,
}

/// In which lanes the output depends on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reached {
    /// In none.
    Nowhere,
    /// In some: a mask says which.
    Somewhere,
    /// In all.
    Everywhere,
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
        let empty = Node { parents: [0; 2], partials: [zero; 2], is_choice: false };
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

    /// A new independent variable, for functions whose number of variables is not known beforehand. See
    /// [`adjoints`](Self::adjoints).
    #[inline(always)]
    pub fn variable(&self, value: S) -> StackVar<'_, S, CAPACITY> {
        Var::on(self, self.record([], []), value)
    }

    /// How many nodes, the passive one included.
    #[inline(always)]
    pub fn nodes(&self) -> usize {
        self.len.get() as usize
    }

    /// The derivatives of `output` with respect to the N variables of [`restart`](Self::restart).
    #[inline(always)]
    pub fn gradient<const N: usize>(&self, output: StackVar<'_, S, CAPACITY>) -> [S; N] {
        let adjoints = self.sweep(output, N);
        std::array::from_fn(|k| adjoints[k + 1])
    }

    /// The derivatives of `output` with respect to every node, indexed by [`Var::node`]; zero for constants.
    pub fn adjoints(&self, output: StackVar<'_, S, CAPACITY>) -> [S; CAPACITY] {
        self.sweep(output, 0)
    }

    /// The backward pass down to the first `inputs` nodes.
    ///
    /// Which nodes it visits, and where it looks at masks, depends on the steps alone and not on numbers, so that
    /// all of this is settled by the compiler when the tape dissolves into registers.
    #[inline(always)]
    fn sweep(&self, output: StackVar<'_, S, CAPACITY>, inputs: usize) -> [S; CAPACITY] {
        let zero = S::constant(0.0);
        let mut adjoints = [zero; CAPACITY];
        let mut reached = [Reached::Nowhere; CAPACITY];
        let mut lanes = [zero.lt(zero); CAPACITY];
        if output.node() != 0 {
            adjoints[output.node() as usize] = S::constant(1.0);
            reached[output.node() as usize] = Reached::Everywhere;
        }
        for k in (inputs + 1..self.nodes()).rev() {
            if reached[k] == Reached::Nowhere {
                continue;
            }
            let (node, adjoint) = (self.nodes[k].get(), adjoints[k]);
            for (parent, partial) in node.parents.into_iter().zip(node.partials) {
                let parent = parent as usize;
                let everywhere = reached[k] == Reached::Everywhere;
                if everywhere && !node.is_choice {
                    adjoints[parent] = adjoint.fma(partial, adjoints[parent]);
                    reached[parent] = Reached::Everywhere;
                    continue;
                }
                let here = match (node.is_choice, everywhere) {
                    (true, true) => zero.lt(partial),
                    (true, false) => lanes[k] & zero.lt(partial),
                    (false, _) => lanes[k],
                };
                adjoints[parent] = if node.is_choice {
                    adjoints[parent] + S::select(here, adjoint, zero)
                } else {
                    adjoint.fma(S::select(here, partial, zero), adjoints[parent])
                };
                lanes[parent] = lanes[parent] | here;
                if reached[parent] == Reached::Nowhere {
                    reached[parent] = Reached::Somewhere;
                }
            }
        }
        adjoints[0] = zero;
        adjoints
    }

    #[inline(always)]
    fn push(&self, node: Node<S>) -> u32 {
        let k = self.len.get();
        self.nodes[k as usize].set(node);
        self.len.set(k + 1);
        k
    }
}

impl<S: Scalar, const CAPACITY: usize> Recorder<S> for StackTape<S, CAPACITY> {
    const RECORDS_EVERY_CHOICE: bool = true;
    #[inline(always)]
    fn record<const N: usize>(&self, parents: [u32; N], partials: [S; N]) -> u32 {
        const { assert!(N <= 2, "a stack tape records functions of one or two numbers") };
        let mut node = Node { parents: [0; 2], partials: [S::constant(0.0); 2], is_choice: false };
        node.parents[..N].copy_from_slice(&parents);
        node.partials[..N].copy_from_slice(&partials);
        self.push(node)
    }
    #[inline(always)]
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        self.push(Node { parents: branches, partials: taken, is_choice: true })
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
