//! Steps, each of which stands once: what a formula becomes when it is evaluated over numbers that note what is done with them.

use super::MAX_STEPS;
use potentials::{Distance, Mask, Ratio, Scalar};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// A step of a program. Comparisons give 1 where they hold, else 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a b
    Mul,
    /// −a
    Neg,
    /// 1/a
    Recip,
    /// √a
    Sqrt,
    /// 1/√a
    Rsqrt,
    /// eᵃ
    Exp,
    /// ln a
    Ln,
    /// sin a
    Sin,
    /// cos a
    Cos,
    /// tanh a
    Tanh,
    /// arccos a
    Acos,
    /// The angle of the point (b, a).
    Atan2,
    /// erfc a
    Erfc,
    /// aⁿ
    Powi(i32),
    /// aᵖ, p by its bits
    Powf(u64),
    /// |a|
    Abs,
    /// The smaller of a and b.
    Min,
    /// The larger of a and b.
    Max,
    /// a < b
    Lt,
    /// a ≤ b
    Le,
    /// b where a holds, else c.
    Select,
}

impl Op {
    /// The step, in any number.
    #[inline(always)]
    pub fn apply<S: Scalar>(self, a: S, b: S, c: S) -> S {
        match self {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Neg => -a,
            Op::Recip => a.recip(),
            Op::Sqrt => a.sqrt(),
            Op::Rsqrt => a.rsqrt(),
            Op::Exp => a.exp(),
            Op::Ln => a.ln(),
            Op::Sin => a.sin(),
            Op::Cos => a.cos(),
            Op::Tanh => a.tanh(),
            Op::Acos => a.acos(),
            Op::Atan2 => a.atan2(b),
            Op::Erfc => a.erfc(),
            Op::Powi(n) => a.powi(n),
            Op::Powf(p) => a.powf(f64::from_bits(p)),
            Op::Abs => a.abs(),
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            Op::Lt => S::select(a.lt(b), S::constant(1.0), S::constant(0.0)),
            Op::Le => S::select(a.le(b), S::constant(1.0), S::constant(0.0)),
            Op::Select => S::select(S::constant(0.5).lt(a), b, c),
        }
    }
    /// How many operands it has.
    pub const fn operands(self) -> usize {
        match self {
            Op::Add | Op::Sub | Op::Mul | Op::Atan2 | Op::Min | Op::Max | Op::Lt | Op::Le => 2,
            Op::Select => 3,
            _ => 1,
        }
    }
}

/// An operand: a constant by its bits, or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Constant(u64),
    Node(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Input(u8),
    Parameter(u8),
    Step(Op, [Item; 3]),
}

/// What a number depends on, the more the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Constant,
    Parameters,
    Inputs,
}

/// What is known of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    /// It is a square, so not negative.
    Square,
    /// It is the sine of an angle whose cosine is the next.
    Sine,
}

/// The steps that numbers of it were made by.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: RefCell<Vec<(Node, Level)>>,
    index: RefCell<HashMap<Node, u32>>,
    inputs: RefCell<Vec<Known>>,
    /// Whether powers are written out as products: for what is not differentiated any more.
    products: bool,
    overflow: Cell<bool>,
}

impl Graph {
    pub(super) fn new(inputs: &[Known], products: bool) -> Self {
        Graph { inputs: RefCell::new(inputs.to_vec()), products, ..Graph::default() }
    }
    /// An input.
    pub(super) fn input(&self, k: u8) -> Trace<'_> {
        Trace::Node(self, self.node(Node::Input(k), Level::Inputs))
    }
    /// A parameter.
    pub(super) fn parameter(&self, k: u8) -> Trace<'_> {
        Trace::Node(self, self.node(Node::Parameter(k), Level::Parameters))
    }
    /// Whether there were more steps than are allowed; numbers are no longer right then.
    pub(super) fn overflowed(&self) -> bool {
        self.overflow.get()
    }
    pub(super) fn nodes(&self) -> Vec<(Node, Level)> {
        self.nodes.borrow().clone()
    }

    fn node(&self, node: Node, level: Level) -> u32 {
        *self.index.borrow_mut().entry(node).or_insert_with(|| {
            let mut nodes = self.nodes.borrow_mut();
            nodes.push((node, level));
            nodes.len() as u32 - 1
        })
    }
    fn get(&self, k: u32) -> (Node, Level) {
        self.nodes.borrow()[k as usize]
    }
    /// The step as it is, unless it stands already.
    fn record<'g>(&'g self, op: Op, args: [Trace<'g>; 3]) -> Trace<'g> {
        if self.nodes.borrow().len() >= MAX_STEPS {
            self.overflow.set(true);
            return Trace::Constant(f64::NAN);
        }
        let level = args.iter().map(|a| a.level()).max().unwrap_or(Level::Constant);
        Trace::Node(self, self.node(Node::Step(op, args.map(Trace::item)), level))
    }
}

/// A number that notes in a [`Graph`] what is done with it; constants are folded.
#[derive(Clone, Copy)]
pub enum Trace<'g> {
    /// A constant.
    Constant(f64),
    /// The result of a step.
    Node(&'g Graph, u32),
}

impl std::fmt::Debug for Trace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Trace::Constant(x) => write!(f, "{x}"),
            Trace::Node(_, k) => write!(f, "#{k}"),
        }
    }
}

/// What is seen of a step.
enum Seen<'g> {
    Constant(f64),
    Step(Op, [Trace<'g>; 3]),
    Other,
}

/// The largest exponent that powers of powers are brought together to.
const LARGEST: i32 = 10_000;

const ZERO: Trace<'static> = Trace::Constant(0.0);

impl<'g> Trace<'g> {
    pub(super) fn item(self) -> Item {
        match self {
            Trace::Constant(x) => Item::Constant(x.to_bits()),
            Trace::Node(_, k) => Item::Node(k),
        }
    }
    fn of(graph: &'g Graph, item: Item) -> Self {
        match item {
            Item::Constant(bits) => Trace::Constant(f64::from_bits(bits)),
            Item::Node(k) => Trace::Node(graph, k),
        }
    }
    fn level(self) -> Level {
        match self {
            Trace::Constant(_) => Level::Constant,
            Trace::Node(graph, k) => graph.get(k).1,
        }
    }
    fn seen(self) -> Seen<'g> {
        match self {
            Trace::Constant(x) => Seen::Constant(x),
            Trace::Node(graph, k) => match graph.get(k).0 {
                Node::Step(op, args) => Seen::Step(op, args.map(|a| Trace::of(graph, a))),
                _ => Seen::Other,
            },
        }
    }
    /// The operand of a step of this kind.
    fn inside(self, op: Op) -> Option<Trace<'g>> {
        match self.seen() {
            Seen::Step(o, [a, ..]) if o == op => Some(a),
            _ => None,
        }
    }
    /// Both operands of a product.
    fn factors(self) -> Option<[Trace<'g>; 2]> {
        match self.seen() {
            Seen::Step(Op::Mul, [a, b, _]) => Some([a, b]),
            _ => None,
        }
    }
    fn known(self) -> Known {
        match self {
            Trace::Node(graph, k) => match graph.get(k).0 {
                Node::Input(k) => graph.inputs.borrow()[k as usize],
                _ => Known::Nothing,
            },
            Trace::Constant(_) => Known::Nothing,
        }
    }
    /// Cosine and sine of an angle that is given by them.
    fn angle(self) -> Option<[Trace<'g>; 2]> {
        match self.seen() {
            Seen::Step(Op::Atan2, [sin, cos, _]) if sin.known() == Known::Sine => Some([cos, sin]),
            _ => None,
        }
    }
    fn is_same(self, o: Trace) -> bool {
        self.item() == o.item()
    }

    fn step(op: Op, args: [Trace<'g>; 3]) -> Self {
        let graph = args.iter().find_map(|a| match a {
            Trace::Node(graph, _) => Some(*graph),
            Trace::Constant(_) => None,
        });
        match graph {
            Some(graph) => graph.record(op, args),
            None => {
                let [a, b, c] = args.map(|a| if let Trace::Constant(x) = a { x } else { f64::NAN });
                Trace::Constant(op.apply(a, b, c))
            }
        }
    }
    fn unary(self, op: Op) -> Self {
        Self::step(op, [self, ZERO, ZERO])
    }
    fn binary(self, op: Op, o: Self) -> Self {
        Self::step(op, [self, o, ZERO])
    }
    /// The same whatever the order of both.
    fn symmetric(self, op: Op, o: Self) -> Self {
        let earlier = match (self.item(), o.item()) {
            (Item::Node(a), Item::Node(b)) => a <= b,
            (a, _) => matches!(a, Item::Node(_)),
        };
        if earlier { self.binary(op, o) } else { o.binary(op, self) }
    }
    /// xⁿ as products, n > 0: half of the power squared, so that powers share what they are made of.
    fn product(self, n: u32) -> Self {
        match n {
            1 => self,
            n if n % 2 == 0 => {
                let half = self.product(n / 2);
                half * half
            }
            n => self.product(n - 1) * self,
        }
    }
    fn powers_are_products(self) -> bool {
        matches!(self, Trace::Node(graph, _) if graph.products)
    }
}

impl<'g> Add for Trace<'g> {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        match (self, o) {
            (Trace::Constant(a), Trace::Constant(b)) => Trace::Constant(a + b),
            (Trace::Constant(_), _) => o + self,
            (_, Trace::Constant(0.0)) => self,
            (_, Trace::Constant(k)) => match self.seen() {
                Seen::Step(Op::Add, [a, Trace::Constant(c), _]) => a + (c + k),
                Seen::Step(Op::Sub, [Trace::Constant(c), a, _]) => Trace::Constant(c + k) - a,
                _ => self.binary(Op::Add, o),
            },
            _ => match (self.inside(Op::Neg), o.inside(Op::Neg)) {
                (_, Some(b)) => self - b,
                (Some(a), _) => o - a,
                _ => self.symmetric(Op::Add, o),
            },
        }
    }
}
impl<'g> Sub for Trace<'g> {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        match (self, o) {
            (_, Trace::Constant(k)) => self + -k,
            (Trace::Constant(0.0), _) => -o,
            _ => match o.inside(Op::Neg) {
                Some(b) => self + b,
                None => self.binary(Op::Sub, o),
            },
        }
    }
}
impl<'g> Mul for Trace<'g> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        match (self, o) {
            (Trace::Constant(a), Trace::Constant(b)) => return Trace::Constant(a * b),
            (Trace::Constant(_), _) => return o * self,
            (_, Trace::Constant(0.0)) => return ZERO,
            (_, Trace::Constant(1.0)) => return self,
            (_, Trace::Constant(-1.0)) => return -self,
            _ => {}
        }
        if let Some(a) = self.inside(Op::Neg) {
            return match o {
                Trace::Constant(k) => a * -k,
                _ => -(a * o),
            };
        }
        if let Some(b) = o.inside(Op::Neg) {
            return -(self * b);
        }
        // what depends on less goes last, and together: it is computed beforehand
        let (a, b) = if self.level() >= o.level() { (self, o) } else { (o, self) };
        if let Some([x, k]) = a.factors()
            && k.level() < x.level()
        {
            return if b.level() < x.level() { x * (k * b) } else { (x * b) * k };
        }
        if let Some([y, k]) = b.factors()
            && k.level() < y.level()
            && y.level() == a.level()
        {
            return (a * y) * k;
        }
        if a.level() == b.level() { a.symmetric(Op::Mul, b) } else { a.binary(Op::Mul, b) }
    }
}
impl<'g> Div for Trace<'g> {
    type Output = Self;
    fn div(self, o: Self) -> Self {
        match (self, o) {
            (Trace::Constant(a), Trace::Constant(b)) => Trace::Constant(a / b),
            _ => self * o.recip(),
        }
    }
}
impl<'g> Neg for Trace<'g> {
    type Output = Self;
    fn neg(self) -> Self {
        match self.seen() {
            Seen::Constant(x) => Trace::Constant(-x),
            Seen::Step(Op::Neg, [a, ..]) => a,
            Seen::Step(Op::Sub, [a, b, _]) => b - a,
            Seen::Step(Op::Mul, [a, Trace::Constant(k), _]) => a * -k,
            _ => self.unary(Op::Neg),
        }
    }
}

macro_rules! with_numbers {
    ($($T:ident $f:ident),*) => { $(
        impl<'g> $T<f64> for Trace<'g> {
            type Output = Self;
            fn $f(self, k: f64) -> Self { self.$f(Trace::Constant(k)) }
        }
    )* };
}
with_numbers!(Add add, Sub sub, Mul mul, Div div);

// (what a scalar must have: programs divide by no distances)
impl<'g> Add<Ratio<Self, f64>> for Trace<'g> {
    type Output = Self;
    fn add(self, o: Ratio<Self, f64>) -> Self {
        self + o.scaled()
    }
}
impl<'g> Sub<Ratio<Self, f64>> for Trace<'g> {
    type Output = Self;
    fn sub(self, o: Ratio<Self, f64>) -> Self {
        self - o.scaled()
    }
}
impl<'g> Div<Distance<Self>> for Trace<'g> {
    type Output = Ratio<Self, Self>;
    fn div(self, r: Distance<Self>) -> Ratio<Self, Self> {
        Ratio::new(self, r)
    }
}

/// What comparing traced numbers gives: 1 where it holds, else 0.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'g>(pub Trace<'g>);

impl Mask for Truth<'_> {
    fn decided(self) -> Option<bool> {
        match self.0 {
            Trace::Constant(x) => Some(x > 0.5),
            Trace::Node(..) => None,
        }
    }
}
impl<'g> BitAnd for Truth<'g> {
    type Output = Self;
    fn bitand(self, o: Self) -> Self {
        Truth(self.0.min(o.0))
    }
}
impl<'g> BitOr for Truth<'g> {
    type Output = Self;
    fn bitor(self, o: Self) -> Self {
        Truth(self.0.max(o.0))
    }
}
impl<'g> Not for Truth<'g> {
    type Output = Self;
    fn not(self) -> Self {
        Truth(Trace::Constant(1.0) - self.0)
    }
}

impl<'g> Scalar for Trace<'g> {
    type Mask = Truth<'g>;
    fn constant(x: f64) -> Self {
        Trace::Constant(x)
    }
    fn vanishes(self) -> bool {
        matches!(self, Trace::Constant(0.0))
    }
    fn recip(self) -> Self {
        match self.seen() {
            Seen::Constant(x) => Trace::Constant(1.0 / x),
            Seen::Step(Op::Recip, [a, ..]) => a,
            Seen::Step(Op::Sqrt, [a, ..]) => a.rsqrt(),
            Seen::Step(Op::Rsqrt, [a, ..]) => a.sqrt(),
            Seen::Step(Op::Neg, [a, ..]) => -a.recip(),
            Seen::Step(Op::Powi(n), [a, ..]) => a.powi(-n),
            Seen::Step(Op::Exp, [a, ..]) => (-a).exp(),
            Seen::Step(Op::Mul, [a, k, _]) if k.level() < a.level() => a.recip() * k.recip(),
            _ => self.unary(Op::Recip),
        }
    }
    fn sqrt(self) -> Self {
        self.unary(Op::Sqrt)
    }
    fn rsqrt(self) -> Self {
        self.unary(Op::Rsqrt)
    }
    fn exp(self) -> Self {
        self.unary(Op::Exp)
    }
    fn ln(self) -> Self {
        match self.inside(Op::Sqrt) {
            Some(a) if a.known() == Known::Square => a.ln() * 0.5,
            _ => self.unary(Op::Ln),
        }
    }
    fn sin(self) -> Self {
        match self.angle() {
            Some([_, sin]) => sin,
            None => self.unary(Op::Sin),
        }
    }
    fn cos(self) -> Self {
        match self.angle() {
            Some([cos, _]) => cos,
            None => self.unary(Op::Cos),
        }
    }
    fn tanh(self) -> Self {
        self.unary(Op::Tanh)
    }
    fn acos(self) -> Self {
        self.unary(Op::Acos)
    }
    fn atan2(self, x: Self) -> Self {
        self.binary(Op::Atan2, x)
    }
    fn erfc(self) -> Self {
        self.unary(Op::Erfc)
    }
    fn powf(self, p: f64) -> Self {
        self.unary(Op::Powf(p.to_bits()))
    }
    fn powi(self, n: i32) -> Self {
        match n {
            0 => return Trace::Constant(1.0),
            1 => return self,
            -1 => return self.recip(),
            _ => {}
        }
        match self.seen() {
            Seen::Constant(x) => return Trace::Constant(x.powi(n)),
            Seen::Step(Op::Neg, [a, ..]) => return if n % 2 == 0 { a.powi(n) } else { -a.powi(n) },
            Seen::Step(Op::Mul, [a, k, _]) if k.level() < a.level() => return a.powi(n) * k.powi(n),
            Seen::Step(Op::Sqrt, [a, ..]) if n % 2 == 0 && a.known() == Known::Square => {
                return a.powi(n / 2);
            }
            Seen::Step(Op::Rsqrt, [a, ..]) if n % 2 == 0 && a.known() == Known::Square => {
                return a.powi(-n / 2);
            }
            Seen::Step(Op::Powi(m), [a, ..]) => {
                if let Some(product) = m.checked_mul(n).filter(|product| product.abs() <= LARGEST) {
                    return a.powi(product);
                }
            }
            Seen::Step(Op::Recip, [a, ..]) if !self.powers_are_products() => return a.powi(-n),
            _ => {}
        }
        if self.powers_are_products() {
            let base = if n < 0 { self.recip() } else { self };
            return base.product(n.unsigned_abs());
        }
        self.unary(Op::Powi(n))
    }
    fn squared(self) -> Self {
        self.powi(2)
    }
    fn lt(self, o: Self) -> Truth<'g> {
        Truth(self.binary(Op::Lt, o))
    }
    fn le(self, o: Self) -> Truth<'g> {
        Truth(self.binary(Op::Le, o))
    }
    fn select(mask: Truth<'g>, a: Self, b: Self) -> Self {
        match mask.decided() {
            Some(true) => a,
            Some(false) => b,
            None if a.is_same(b) => a,
            None => Self::step(Op::Select, [mask.0, a, b]),
        }
    }
    fn abs(self) -> Self {
        self.unary(Op::Abs)
    }
    fn max(self, o: Self) -> Self {
        self.binary(Op::Max, o)
    }
    fn min(self, o: Self) -> Self {
        self.binary(Op::Min, o)
    }
}
