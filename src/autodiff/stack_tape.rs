//! Reverse mode for one small function: a tape of fixed size that lives on the stack.

use super::tape::{Recorder, Var};
use potentials::Scalar;
use std::cell::Cell;

/// A tape of at most `CAPACITY` nodes of one or two parents, for functions whose length is known, such as the
/// energy of a dihedral in its twelve coordinates. It never allocates. Made where it is used, it dissolves into
/// registers (see [`gradient_in_registers`](Self::gradient_in_registers)); kept and [`restart`](Self::restart)ed, it is a small tape in memory.
///
/// Node 0 counts, and so does a choice between two branches even where all lanes agree: the steps are the same for
/// all data. Recording more than `CAPACITY` nodes panics: the capacity belongs to the function.
pub struct StackTape<S, const CAPACITY: usize> {
    nodes: [Cell<Node<S>>; CAPACITY],
    len: Cell<u32>,
    /// The first node that was recorded: the variables of a start are not.
    first: Cell<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node<S> {
    parents: [u32; 2],
    partials: [S; 2],
    /// Whether the partial derivatives say which lanes took which branch.
    is_choice: bool,
}

/// How many nodes are swept without a loop.
const UNROLLED: usize = 128;

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

/// What the backward pass knows of every node.
struct Sweep<S, M, const CAPACITY: usize> {
    adjoints: [S; CAPACITY],
    reached: [Reached; CAPACITY],
    /// The lanes in which a node is reached, if only in some.
    lanes: [M; CAPACITY],
}

impl<S: Scalar, const CAPACITY: usize> Sweep<S, S::Mask, CAPACITY> {
    /// Before the first step: only the output has an adjoint, 1.
    #[inline(always)]
    fn from(output: StackVar<'_, S, CAPACITY>) -> Self {
        let zero = S::constant(0.0);
        let (adjoints, reached) = ([zero; CAPACITY], [Reached::Nowhere; CAPACITY]);
        let mut sweep = Sweep { adjoints, reached, lanes: [zero.lt(zero); CAPACITY] };
        sweep.adjoints[output.node() as usize] = S::constant(1.0);
        sweep.reached[output.node() as usize] = Reached::Everywhere;
        sweep
    }
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
        StackTape { nodes: std::array::from_fn(|_| Cell::new(empty)), len: Cell::new(1), first: Cell::new(1) }
    }

    /// Starts over with N independent variables, nodes 1 to N. Variables of an earlier start are stale: they
    /// must not be used any more.
    #[inline(always)]
    pub fn restart<const N: usize>(&self, values: [S; N]) -> [StackVar<'_, S, CAPACITY>; N] {
        assert!(N < CAPACITY);
        self.len.set(N as u32 + 1);
        self.first.set(N as u32 + 1);
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
    ///
    /// A plain loop over the tape in memory: small to compile. See
    /// [`gradient_in_registers`](Self::gradient_in_registers) for where speed matters.
    #[inline(always)]
    pub fn gradient<const N: usize>(&self, output: StackVar<'_, S, CAPACITY>) -> [S; N] {
        let adjoints = self.looped(output, N + 1);
        std::array::from_fn(|k| adjoints[k + 1])
    }

    /// The derivatives of `output` with respect to every node, indexed by [`Var::node`]; zero for constants.
    #[inline(never)]
    pub fn adjoints(&self, output: StackVar<'_, S, CAPACITY>) -> [S; CAPACITY] {
        self.looped(output, self.first.get() as usize)
    }

    /// The backward pass down to node `first`.
    #[inline(always)]
    fn looped(&self, output: StackVar<'_, S, CAPACITY>, first: usize) -> [S; CAPACITY] {
        let mut sweep = Sweep::from(output);
        for k in (first..self.nodes()).rev() {
            self.step(k, &mut sweep);
        }
        sweep.adjoints[0] = S::constant(0.0);
        sweep.adjoints
    }

    /// The same as [`gradient`](Self::gradient), written without a loop.
    ///
    /// Which nodes the backward pass visits, and where it looks at masks, depends on the steps alone and not on
    /// numbers. All of it is settled by the compiler when the tape dissolves into registers. For that, make the tape
    /// where it is used, one for every call, with a capacity no larger than need be and at most 128; everything must
    /// be inlined, the function too. It is about four times as fast
    /// then, and takes longer to compile.
    #[inline(always)]
    pub fn gradient_in_registers<const N: usize>(&self, output: StackVar<'_, S, CAPACITY>) -> [S; N] {
        let mut sweep = Sweep::from(output);
        let n = self.nodes();
        for k in (UNROLLED.max(N + 1)..n).rev() {
            self.step(k, &mut sweep);
        }
        // a loop would keep the tape in memory
        macro_rules! unrolled {
            ($($k:literal)*) => { $(
                if $k < CAPACITY && $k < n && $k > N {
                    self.step($k, &mut sweep);
                }
            )* };
        }
        #[rustfmt::skip]
        unrolled!(
            127 126 125 124 123 122 121 120 119 118 117 116 115 114 113 112
            111 110 109 108 107 106 105 104 103 102 101 100 99 98 97 96
            95 94 93 92 91 90 89 88 87 86 85 84 83 82 81 80
            79 78 77 76 75 74 73 72 71 70 69 68 67 66 65 64
            63 62 61 60 59 58 57 56 55 54 53 52 51 50 49 48
            47 46 45 44 43 42 41 40 39 38 37 36 35 34 33 32
            31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16
            15 14 13 12 11 10 9 8 7 6 5 4 3 2 1
        );
        if output.node() == 0 {
            return [S::constant(0.0); N];
        }
        std::array::from_fn(|k| sweep.adjoints[k + 1])
    }

    /// The backward pass through one node.
    #[inline(always)]
    fn step(&self, k: usize, sweep: &mut Sweep<S, S::Mask, CAPACITY>) {
        let Sweep { adjoints, reached, lanes } = sweep;
        if reached[k] == Reached::Nowhere {
            return;
        }
        let (node, adjoint) = (self.nodes[k].get(), adjoints[k]);
        let masked = node.is_choice || reached[k] == Reached::Somewhere;
        if !masked {
            let [a, b] = node.parents.map(|parent| parent as usize);
            adjoints[a] = adjoint.fma(node.partials[0], adjoints[a]);
            reached[a] = Reached::Everywhere;
            if b != 0 {
                adjoints[b] = adjoint.fma(node.partials[1], adjoints[b]);
                reached[b] = Reached::Everywhere;
            }
            return;
        }
        let zero = S::constant(0.0);
        for (parent, partial) in node.parents.into_iter().zip(node.partials) {
            let parent = parent as usize;
            let mut here = if reached[k] == Reached::Everywhere { zero.le(zero) } else { lanes[k] };
            if node.is_choice {
                here = here & zero.lt(partial);
                adjoints[parent] = adjoints[parent] + S::select(here, adjoint, zero);
            } else {
                adjoints[parent] = adjoint.fma(S::select(here, partial, zero), adjoints[parent]);
            }
            lanes[parent] = lanes[parent] | here;
            if reached[parent] == Reached::Nowhere {
                reached[parent] = Reached::Somewhere;
            }
        }
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
            let [x, y] = stack.restart([a, b]);
            assert_eq!(got, stack.gradient_in_registers(x * y.sin() + y * x.exp() - 3.0 * x));
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
