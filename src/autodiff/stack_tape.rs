//! Reverse mode for one small function: a tape of fixed size that lives on the stack.

// Nodes and adjoints are not filled before they are used: the loop that does so would keep them in memory.
#![allow(unsafe_code)]

use super::tape::{PARENTS, Recorder, Var, each_parent};
use potentials::Scalar;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// A tape of at most `CAPACITY` nodes of up to six parents, for functions whose length is known, such as the
/// energy of a dihedral in its twelve coordinates. It never allocates. Made where it is used, it dissolves into
/// registers (see [`gradient_in_registers`](Self::gradient_in_registers)); kept and [`restart`](Self::restart)ed, it is a small tape in memory.
///
/// Node 0 counts, and so does a choice between two branches even where all lanes agree: the steps are the same for
/// all data. Recording more than `CAPACITY` nodes panics: the capacity belongs to the function.
pub struct StackTape<S, const CAPACITY: usize> {
    /// Of these the first `len` are there.
    nodes: [Cell<MaybeUninit<Node<S>>>; CAPACITY],
    len: Cell<u32>,
    /// The first node that was recorded: the variables of a start are not.
    first: Cell<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node<S> {
    parents: [u32; PARENTS],
    partials: [S; PARENTS],
    /// Whether the partial derivatives say which lanes took which branch.
    is_choice: bool,
}

/// How many nodes are swept without a loop.
const UNROLLED: usize = 64;

/// In which lanes the output depends on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reached {
    /// In none.
    Nowhere,
    /// Perhaps not in all: not in those that have no adjoint.
    Somewhere,
    /// In all.
    Everywhere,
}

/// In which lanes the output depends on each node.
trait Marks {
    fn of(&self, node: usize) -> Reached;
    fn set(&mut self, node: usize, reached: Reached);
}
impl<const CAPACITY: usize> Marks for [Reached; CAPACITY] {
    #[inline(always)]
    fn of(&self, node: usize) -> Reached {
        self[node]
    }
    #[inline(always)]
    fn set(&mut self, node: usize, reached: Reached) {
        self[node] = reached;
    }
}

/// The same as bits of whole numbers, which compilers compute with where an array would stay in memory: the nodes that are
/// reached, and those that are reached in all lanes.
#[derive(Default)]
struct Bits {
    somewhere: u64,
    everywhere: u64,
}
impl Marks for Bits {
    #[inline(always)]
    fn of(&self, node: usize) -> Reached {
        if self.everywhere >> node & 1 == 1 {
            Reached::Everywhere
        } else if self.somewhere >> node & 1 == 1 {
            Reached::Somewhere
        } else {
            Reached::Nowhere
        }
    }
    #[inline(always)]
    fn set(&mut self, node: usize, reached: Reached) {
        self.somewhere |= 1 << node;
        if reached == Reached::Everywhere {
            self.everywhere |= 1 << node;
        }
    }
}

/// The adjoints of the nodes that are reached.
struct Known<S, const CAPACITY: usize>([MaybeUninit<S>; CAPACITY]);

// (which nodes these are stands beside them and not within, so that it can be in registers long before they are)
impl<S: Scalar, const CAPACITY: usize> Known<S, CAPACITY> {
    #[inline(always)]
    fn nothing() -> Self {
        Self([const { MaybeUninit::uninit() }; CAPACITY])
    }
    #[inline(always)]
    fn of(&self, node: usize, marks: &impl Marks) -> Option<S> {
        // SAFETY: what is reached has been given an adjoint
        (marks.of(node) != Reached::Nowhere).then(|| unsafe { self.0[node].assume_init() })
    }
    /// Gives a node an adjoint, which it has in all lanes or in some.
    #[inline(always)]
    fn set(&mut self, node: usize, adjoint: S, everywhere: bool, marks: &mut impl Marks) {
        self.0[node] = MaybeUninit::new(adjoint);
        if everywhere {
            marks.set(node, Reached::Everywhere);
        } else if marks.of(node) == Reached::Nowhere {
            marks.set(node, Reached::Somewhere);
        }
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
    #[inline(always)]
    pub fn new() -> Self {
        let nodes = [const { Cell::new(MaybeUninit::uninit()) }; CAPACITY];
        StackTape { nodes, len: Cell::new(1), first: Cell::new(1) }
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
        let (known, marks) = self.looped(output, N + 1);
        std::array::from_fn(|k| known.of(k + 1, &marks).unwrap_or(S::constant(0.0)))
    }

    /// The derivatives of `output` with respect to every node, indexed by [`Var::node`]; zero for constants.
    #[inline(never)]
    pub fn adjoints(&self, output: StackVar<'_, S, CAPACITY>) -> [S; CAPACITY] {
        let (known, marks) = self.looped(output, 0);
        // (node 0 stands for all constants)
        std::array::from_fn(|k| known.of(k, &marks).filter(|_| k > 0).unwrap_or(S::constant(0.0)))
    }

    /// The backward pass down to node `first`, through all that was recorded.
    #[inline(always)]
    fn looped(
        &self,
        output: StackVar<'_, S, CAPACITY>,
        first: usize,
    ) -> (Known<S, CAPACITY>, [Reached; CAPACITY]) {
        let (mut known, mut marks) = (Known::nothing(), [Reached::Nowhere; CAPACITY]);
        known.set(output.node() as usize, S::constant(1.0), true, &mut marks);
        for k in (first.max(self.first.get() as usize)..self.nodes()).rev() {
            self.step(k, &mut known, &mut marks);
        }
        (known, marks)
    }

    /// The same as [`gradient`](Self::gradient), written without a loop.
    ///
    /// Which nodes the backward pass visits, and where it looks at masks, depends on the steps alone and not on
    /// numbers. All of it is settled by the compiler when the tape dissolves into registers. For that, make the tape
    /// where it is used, one for every call; everything must be inlined, the function too. It is about fifteen times as
    /// fast then, and takes longer to compile. (More than 64 nodes go the other way.)
    #[inline(always)]
    pub fn gradient_in_registers<const N: usize>(&self, output: StackVar<'_, S, CAPACITY>) -> [S; N] {
        if self.nodes() > UNROLLED {
            return self.gradient(output);
        }
        let (mut known, mut marks) = (Known::nothing(), Bits::default());
        known.set(output.node() as usize, S::constant(1.0), true, &mut marks);
        let (first, n) = (self.first.get() as usize, self.nodes());
        // a loop would keep the tape in memory
        macro_rules! unrolled {
            ($($k:literal)*) => { $(
                if $k < CAPACITY && $k < n && $k > N && $k >= first {
                    self.step($k, &mut known, &mut marks);
                }
            )* };
        }
        #[rustfmt::skip]
        unrolled!(
            63 62 61 60 59 58 57 56 55 54 53 52 51 50 49 48
            47 46 45 44 43 42 41 40 39 38 37 36 35 34 33 32
            31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16
            15 14 13 12 11 10 9 8 7 6 5 4 3 2 1
        );
        if output.node() == 0 {
            return [S::constant(0.0); N];
        }
        std::array::from_fn(|k| known.of(k + 1, &marks).unwrap_or(S::constant(0.0)))
    }

    /// The backward pass through one node that was recorded. What has no adjoint in a lane hands nothing on there, whatever
    /// its partial derivatives are.
    #[inline(always)]
    fn step(&self, k: usize, known: &mut Known<S, CAPACITY>, marks: &mut impl Marks) {
        let Some(adjoint) = known.of(k, marks) else { return };
        // SAFETY: nodes from the first to the last that was recorded are there
        let node = unsafe { self.nodes[k].get().assume_init() };
        let zero = S::constant(0.0);
        let everywhere = marks.of(k) == Reached::Everywhere && !node.is_choice;
        each_parent!(|e| {
            let (parent, partial) = (node.parents[e] as usize, node.partials[e]);
            if parent != 0 {
                let before = known.of(parent, marks);
                let adjoint = if node.is_choice {
                    let handed = S::select(zero.lt(partial), adjoint, zero);
                    before.map_or(handed, |before| before + handed)
                } else {
                    // (the first to hand something on need not add: a step less)
                    let partial =
                        if everywhere { partial } else { S::select(adjoint.zeros(), zero, partial) };
                    before.map_or(adjoint * partial, |before| adjoint.fma(partial, before))
                };
                known.set(parent, adjoint, everywhere, marks);
            }
        });
    }

    #[inline(always)]
    fn push(&self, node: Node<S>) -> u32 {
        let k = self.len.get();
        self.nodes[k as usize].set(MaybeUninit::new(node));
        self.len.set(k + 1);
        k
    }
}

impl<S: Scalar, const CAPACITY: usize> Recorder<S> for StackTape<S, CAPACITY> {
    const RECORDS_EVERY_CHOICE: bool = true;
    #[inline(always)]
    fn record<const N: usize>(&self, parents: [u32; N], partials: [S; N]) -> u32 {
        const { assert!(N <= PARENTS, "a stack tape records functions of up to six numbers") };
        let mut node =
            Node { parents: [0; PARENTS], partials: [S::constant(0.0); PARENTS], is_choice: false };
        each_parent!(|k| {
            if k < N {
                node.parents[k] = parents[k];
                node.partials[k] = partials[k];
            }
        });
        self.push(node)
    }
    #[inline(always)]
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        let ([a, b], [in_a, in_b], zero) = (branches, taken, S::constant(0.0));
        let (parents, partials) = ([a, b, 0, 0, 0, 0], [in_a, in_b, zero, zero, zero, zero]);
        self.push(Node { parents, partials, is_choice: true })
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
