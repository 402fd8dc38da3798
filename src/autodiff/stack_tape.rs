//! Reverse mode for one small function: a tape of fixed size that lives on the stack.

// Nodes and adjoints are not filled before they are used: the loop that does so would keep them in memory.
#![allow(unsafe_code)]

use super::tape::{Recorder, Var, written_out};
use potentials::Scalar;
use std::cell::Cell;
use std::mem::MaybeUninit;

/// A tape of at most `CAPACITY` nodes of up to three parents, for functions whose length is known, such as the
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
    parents: [u32; 3],
    partials: [S; 3],
    /// Whether the partial derivatives say which lanes took which branch.
    is_choice: bool,
}

/// How many nodes are swept without a loop.
const UNROLLED: usize = 64;

/// On which nodes the output depends, and on which in all lanes. (In the others only where they have an adjoint.)
trait Marks {
    fn reached(&self, node: usize) -> bool;
    fn everywhere(&self, node: usize) -> bool;
    fn set(&mut self, node: usize, everywhere: bool);
}
impl<const CAPACITY: usize> Marks for [[bool; 2]; CAPACITY] {
    #[inline(always)]
    fn reached(&self, node: usize) -> bool {
        self[node][0]
    }
    #[inline(always)]
    fn everywhere(&self, node: usize) -> bool {
        self[node][1]
    }
    #[inline(always)]
    fn set(&mut self, node: usize, everywhere: bool) {
        self[node][0] = true;
        self[node][1] |= everywhere;
    }
}

/// The same as bits of whole numbers, which compilers compute with where an array would stay in memory.
#[derive(Default)]
struct Bits {
    reached: u64,
    everywhere: u64,
}
impl Bits {
    #[inline(always)]
    fn bit(node: usize) -> u64 {
        // (a stale variable could be one of more)
        assert!(node < UNROLLED);
        1 << node
    }
}
impl Marks for Bits {
    #[inline(always)]
    fn reached(&self, node: usize) -> bool {
        self.reached & Self::bit(node) != 0
    }
    #[inline(always)]
    fn everywhere(&self, node: usize) -> bool {
        self.everywhere & Self::bit(node) != 0
    }
    #[inline(always)]
    fn set(&mut self, node: usize, everywhere: bool) {
        self.reached |= Self::bit(node);
        if everywhere {
            self.everywhere |= Self::bit(node);
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
    /// The adjoint of a node that is reached.
    #[inline(always)]
    fn of(&self, node: usize) -> S {
        // SAFETY: what is reached has been given an adjoint
        unsafe { self.0[node].assume_init() }
    }
    #[inline(always)]
    fn or_zero(&self, node: usize, marks: &impl Marks) -> S {
        if node > 0 && marks.reached(node) { self.of(node) } else { S::constant(0.0) }
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
        std::array::from_fn(|k| known.or_zero(k + 1, &marks))
    }

    /// The derivatives of `output` with respect to every node, indexed by [`Var::node`]; zero for constants.
    #[inline(never)]
    pub fn adjoints(&self, output: StackVar<'_, S, CAPACITY>) -> [S; CAPACITY] {
        let (known, marks) = self.looped(output, 0);
        std::array::from_fn(|k| known.or_zero(k, &marks))
    }

    /// The backward pass down to node `first`, through all that was recorded.
    #[inline(always)]
    fn looped(
        &self,
        output: StackVar<'_, S, CAPACITY>,
        first: usize,
    ) -> (Known<S, CAPACITY>, [[bool; 2]; CAPACITY]) {
        let (mut known, mut marks) = (Known::nothing(), [[false; 2]; CAPACITY]);
        known.0[output.node() as usize] = MaybeUninit::new(S::constant(1.0));
        marks.set(output.node() as usize, true);
        for k in (first.max(self.first.get() as usize)..self.nodes()).rev() {
            self.step(k, &mut known, &mut marks);
        }
        (known, marks)
    }

    /// The same as [`gradient`](Self::gradient), written without a loop.
    ///
    /// Which nodes the backward pass visits, and where it looks at masks, depends on the steps alone and not on
    /// numbers. All of it is settled by the compiler when the tape dissolves into registers. For that, make the tape
    /// where it is used, one for every call; everything must be inlined, the function too. It is about four times as
    /// fast then, and takes longer to compile. (More than 64 nodes go the other way.)
    #[inline(always)]
    pub fn gradient_in_registers<const N: usize>(&self, output: StackVar<'_, S, CAPACITY>) -> [S; N] {
        if self.nodes() > UNROLLED {
            return self.gradient(output);
        }
        let (mut known, mut marks) = (Known::nothing(), Bits::default());
        known.0[output.node() as usize] = MaybeUninit::new(S::constant(1.0));
        marks.set(output.node() as usize, true);
        let (first, n) = (self.first.get() as usize, self.nodes());
        #[rustfmt::skip]
        written_out!(for k in [
            63 62 61 60 59 58 57 56 55 54 53 52 51 50 49 48
            47 46 45 44 43 42 41 40 39 38 37 36 35 34 33 32
            31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16
            15 14 13 12 11 10 9 8 7 6 5 4 3 2 1
        ] {
            if k < CAPACITY && k < n && k > N && k >= first {
                self.step(k, &mut known, &mut marks);
            }
        });
        if output.node() == 0 {
            return [S::constant(0.0); N];
        }
        std::array::from_fn(|k| known.or_zero(k + 1, &marks))
    }

    /// The backward pass through one node that was recorded. What has no adjoint in a lane hands nothing on there, whatever
    /// its partial derivatives are.
    #[inline(always)]
    fn step(&self, k: usize, known: &mut Known<S, CAPACITY>, marks: &mut impl Marks) {
        if !marks.reached(k) {
            return;
        }
        // SAFETY: nodes from the first to the last that was recorded are there
        let node = unsafe { self.nodes[k].get().assume_init() };
        let (mut adjoint, zero) = (known.of(k), S::constant(0.0));
        let everywhere = marks.everywhere(k) && !node.is_choice;
        let nothing = if everywhere { zero.lt(zero) } else { adjoint.zeros() };
        let whole = adjoint;
        written_out!(for e in [0 1 2] {
            let parent = node.parents[e] as usize;
            if parent != 0 {
                let mut partial = node.partials[e];
                if node.is_choice {
                    (adjoint, partial) = (S::select(zero.lt(partial), whole, zero), S::constant(1.0));
                } else if !everywhere {
                    partial = S::select(nothing, zero, partial);
                }
                // (the first to hand something on need not add: a step less)
                let sum = match marks.reached(parent) {
                    false => adjoint * partial,
                    true => adjoint.fma(partial, known.of(parent)),
                };
                known.0[parent] = MaybeUninit::new(sum);
                marks.set(parent, everywhere);
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
        const { assert!(N <= 6, "a stack tape records functions of up to six numbers") };
        let (zero, one) = (S::constant(0.0), S::constant(1.0));
        let at = |k: usize| if k < N { (parents[k], partials[k]) } else { (0, zero) };
        let node = |[(a, of_a), (b, of_b), (c, of_c)]: [(u32, S); 3]| {
            self.push(Node { parents: [a, b, c], partials: [of_a, of_b, of_c], is_choice: false })
        };
        // a step of many numbers is a sum of steps of fewer
        match N {
            0..=3 => node([at(0), at(1), at(2)]),
            4 => {
                let rest = node([at(2), at(3), (0, zero)]);
                node([at(0), at(1), (rest, one)])
            }
            _ => {
                let rest = node([at(3), at(4), at(5)]);
                let more = node([at(1), at(2), (rest, one)]);
                node([at(0), (more, one), (0, zero)])
            }
        }
    }
    #[inline(always)]
    fn record_choice(&self, branches: [u32; 2], taken: [S; 2]) -> u32 {
        let ([a, b], [in_a, in_b], zero) = (branches, taken, S::constant(0.0));
        self.push(Node { parents: [a, b, 0], partials: [in_a, in_b, zero], is_choice: true })
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
