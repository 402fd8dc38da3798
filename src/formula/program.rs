//! Flat lists of steps, and their evaluation over any number.

use super::graph::{Graph, Item, Known, Level, Node, Op, Trace};
use super::parse::{Binary, Comparison, Formula, FormulaError, Function, Kind, nearest};
use super::{MAX_PREPARED, MAX_REGISTERS, MAX_STEPS};
use potentials::{Coefficient, Dual, Scalar};
use std::ops::Range;

/// What a formula calls by a name and is given when it is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A number.
    Value(&'a str),
    /// A distance, given as its square: even powers take no root.
    Distance(&'a str),
    /// An angle, given as its sine and then its cosine: where the formula asks for these, they are at hand.
    Angle(&'a str),
}

impl<'a> Input<'a> {
    /// What it is called.
    pub fn name(self) -> &'a str {
        match self {
            Input::Value(name) | Input::Distance(name) | Input::Angle(name) => name,
        }
    }
    fn known(self) -> &'static [Known] {
        match self {
            Input::Value(_) => &[Known::Nothing],
            Input::Distance(_) => &[Known::Square],
            Input::Angle(_) => &[Known::Sine, Known::Nothing],
        }
    }
}

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// What is in a register. The first registers hold the inputs to begin with.
    Register(u8),
    /// A number made of parameters alone.
    Prepared(u8),
    /// A constant.
    Constant(f64),
}

/// One step of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What is done.
    pub op: Op,
    /// With what; operands beyond [`Op::operands`] are not read.
    pub args: [Arg; 3],
    /// The register that the result is written to.
    pub to: u8,
}

/// A formula as a flat list of steps.
///
/// What follows from the parameters alone is computed [first](Program::prepare), once for many evaluations.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    inputs: Vec<Known>,
    parameters: usize,
    /// Steps over parameters; operands are `Prepared`: parameters, then results one after the other.
    first: Vec<Step>,
    /// Which of these the steps need, as what number `Prepared` names them there.
    needed: Vec<u8>,
    steps: Vec<Step>,
    registers: usize,
    outputs: Vec<Arg>,
}

impl Formula {
    /// The program, with names told apart: inputs are given to every evaluation, parameters are prepared once.
    ///
    /// # Errors
    /// If a name is neither, or the formula is too large.
    pub fn compile(&self, inputs: &[Input], parameters: &[&str]) -> Result<Program, FormulaError> {
        let known: Vec<Known> = inputs.iter().flat_map(|i| i.known()).copied().collect();
        let graph = Graph::new(&known, false);
        if parameters.len() >= MAX_PREPARED || known.len() >= MAX_REGISTERS / 2 {
            let message = format!("{} parameters are too many for a formula", parameters.len());
            return Err(FormulaError::new(message, 0..self.text.len()));
        }
        let (mut names, mut next) = (Vec::new(), 0);
        let mut input = || {
            next += 1;
            graph.input(next - 1)
        };
        let of_inputs: Vec<Trace> = inputs
            .iter()
            .map(|i| match i {
                Input::Value(_) => input(),
                Input::Distance(_) => input().sqrt(),
                Input::Angle(_) => {
                    let sin = input();
                    sin.atan2(input())
                }
            })
            .collect();
        for name in self.names() {
            let text = name.name.as_str();
            let found = match inputs.iter().position(|i| i.name() == text) {
                Some(k) => Some(of_inputs[k]),
                None => parameters.iter().position(|p| *p == text).map(|k| graph.parameter(k as u8)),
            };
            names.push(found.ok_or_else(|| unknown(text, name.span.clone(), inputs, parameters))?);
        }
        let whole = self.trace(&names)?;
        let too_large = || {
            let help = "break it into several energies, which are added up";
            FormulaError::new("the formula is too large", 0..self.text.len()).help(help)
        };
        Program::of(&graph, &known, parameters.len(), &[whole]).ok_or_else(too_large)
    }

    /// The value, in numbers that note what is done with them.
    fn trace<'g>(&self, names: &[Trace<'g>]) -> Result<Trace<'g>, FormulaError> {
        let mut values: Vec<Trace<'g>> = Vec::with_capacity(self.nodes.len());
        let one = Trace::Constant(1.0);
        for node in &self.nodes {
            let of = |k: usize| values[k];
            values.push(match &node.kind {
                Kind::Number(x) => Trace::Constant(*x),
                Kind::Name(k) => names[*k],
                Kind::Negative(a) => -of(*a),
                Kind::Binary(Binary::Power, [a, b]) => power(of(*a), of(*b), node.span.clone())?,
                Kind::Binary(op, [a, b]) => match op {
                    Binary::Add => of(*a) + of(*b),
                    Binary::Subtract => of(*a) - of(*b),
                    Binary::Multiply => of(*a) * of(*b),
                    _ => of(*a) / of(*b),
                },
                Kind::Compare(comparison, [a, b]) => match comparison {
                    Comparison::Less => of(*a).lt(of(*b)).0,
                    Comparison::LessOrEqual => of(*a).le(of(*b)).0,
                    Comparison::Greater => of(*b).lt(of(*a)).0,
                    Comparison::GreaterOrEqual => of(*b).le(of(*a)).0,
                },
                Kind::Call(function, args) => {
                    let x = of(args[0]);
                    match function {
                        Function::Sqrt => x.sqrt(),
                        Function::Exp => x.exp(),
                        Function::Ln | Function::Log => x.ln(),
                        Function::Log10 => x.ln() * std::f64::consts::LOG10_E,
                        Function::Sin => x.sin(),
                        Function::Cos => x.cos(),
                        Function::Tan => x.sin() / x.cos(),
                        Function::Asin => x.atan2(((one - x) * (one + x)).sqrt()),
                        Function::Acos => x.acos(),
                        Function::Atan => x.atan2(one),
                        // (exact for small x, where the difference of exponentials is not)
                        Function::Sinh => x.tanh() * cosh(x),
                        Function::Cosh => cosh(x),
                        Function::Tanh => x.tanh(),
                        Function::Abs => x.abs(),
                        Function::Erf => one - x.erfc(),
                        Function::Erfc => x.erfc(),
                        Function::Pow => power(x, of(args[1]), node.span.clone())?,
                        Function::Atan2 => x.atan2(of(args[1])),
                        Function::Min => args[1..].iter().fold(x, |m, a| m.min(of(*a))),
                        Function::Max => args[1..].iter().fold(x, |m, a| m.max(of(*a))),
                        Function::If => Trace::select(super::graph::Truth(x), of(args[1]), of(args[2])),
                    }
                }
            });
        }
        Ok(values.last().copied().unwrap_or(Trace::Constant(0.0)))
    }
}

fn cosh(x: Trace<'_>) -> Trace<'_> {
    (x.exp() + (-x).exp()) * 0.5
}

/// The largest whole number that is an exponent of its own kind.
const MAX_EXPONENT: f64 = 1000.0;

/// aᵇ
fn power<'g>(a: Trace<'g>, b: Trace<'g>, span: Range<usize>) -> Result<Trace<'g>, FormulaError> {
    let Trace::Constant(p) = b else { return Ok((b * a.ln()).exp()) };
    if let Trace::Constant(base) = a {
        return Ok(Trace::Constant(base.powf(p)));
    }
    if !p.is_finite() {
        return Err(FormulaError::new("the exponent is not a finite number", span));
    }
    Ok(match p {
        p if p.fract() == 0.0 && p.abs() <= MAX_EXPONENT => a.powi(p as i32),
        p if (2.0 * p).fract() == 0.0 && p.abs() <= MAX_EXPONENT => a.sqrt().powi((2.0 * p) as i32),
        p => a.powf(p),
    })
}

fn unknown(name: &str, span: Range<usize>, inputs: &[Input], parameters: &[&str]) -> FormulaError {
    let words = || inputs.iter().map(|i| i.name()).chain(parameters.iter().copied());
    let list = |words: &[&str]| words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
    let variables: Vec<&str> = inputs.iter().map(|i| i.name()).collect();
    let error = FormulaError::new(format!("there is no `{name}`"), span);
    if let Some(best) = nearest(name, words()) {
        return error.help(format!("did you mean `{best}`?"));
    }
    let variables = match variables.len() {
        0 => "there are no variables".to_owned(),
        1 => format!("the variable is {}", list(&variables)),
        _ => format!("the variables are {}", list(&variables)),
    };
    let known = match parameters.len() {
        0 => "no parameters are given".to_owned(),
        1 => format!("the parameter that is given is {}", list(parameters)),
        _ => format!("parameters that are given are {}", list(parameters)),
    };
    error.help(format!("{variables}; {known}"))
}

/// A number that is evaluated with.
#[derive(Clone, Copy)]
enum Value<S, P> {
    Own(S),
    Given(P),
    Plain(f64),
}

impl<S: Scalar, P: Coefficient<S>> Value<S, P> {
    #[inline(always)]
    fn own(self) -> S {
        match self {
            Value::Own(x) => x,
            Value::Given(p) => p.lift(),
            Value::Plain(k) => S::constant(k),
        }
    }
}

/// One step; parameters and constants enter as what they are, since that is cheaper than as numbers with derivatives.
#[inline(always)]
fn evaluate<S: Scalar, P: Coefficient<S>>(op: Op, a: Value<S, P>, b: Value<S, P>, c: Value<S, P>) -> S {
    use Value::{Given, Own, Plain};
    match (op, a, b) {
        (Op::Add, Own(a), Given(p)) | (Op::Add, Given(p), Own(a)) => a + p,
        (Op::Add, Own(a), Plain(k)) => a + k,
        (Op::Sub, Own(a), Given(p)) => a - p,
        (Op::Sub, Given(p), Own(a)) => p - a,
        (Op::Sub, Plain(k), Own(a)) => -a + k,
        (Op::Mul, Own(a), Given(p)) | (Op::Mul, Given(p), Own(a)) => a * p,
        (Op::Mul, Own(a), Plain(k)) => a * k,
        _ => op.apply(a.own(), b.own(), c.own()),
    }
}

impl Program {
    /// The steps that the results are made by; `None` if there are too many.
    fn of(graph: &Graph, inputs: &[Known], parameters: usize, results: &[Trace]) -> Option<Program> {
        let nodes = graph.nodes();
        if graph.overflowed() {
            return None;
        }
        // what is needed, and where last
        let mut last: Vec<Option<usize>> = vec![None; nodes.len()];
        for result in results {
            if let Item::Node(k) = result.item() {
                last[k as usize] = Some(nodes.len());
            }
        }
        for k in (0..nodes.len()).rev().filter(|&k| nodes[k].1 == Level::Inputs) {
            needs(&nodes, k, &mut last);
        }
        for k in (0..nodes.len()).rev().filter(|&k| nodes[k].1 == Level::Parameters) {
            needs(&nodes, k, &mut last);
        }
        // parameters, and what is made of them alone
        let mut first = Vec::new();
        let mut place: Vec<Arg> = vec![Arg::Constant(0.0); nodes.len()];
        let mut needed = Vec::new();
        let mut wanted = vec![false; nodes.len()];
        for result in results {
            if let Item::Node(k) = result.item() {
                wanted[k as usize] = true;
            }
        }
        for (k, (node, level)) in nodes.iter().enumerate() {
            if let (Node::Step(op, args), Level::Inputs, Some(_)) = (node, level, last[k]) {
                for arg in &args[..op.operands()] {
                    if let Item::Node(k) = arg {
                        wanted[*k as usize] = true;
                    }
                }
            }
        }
        let operand = |place: &[Arg], item: Item| match item {
            Item::Constant(bits) => Arg::Constant(f64::from_bits(bits)),
            Item::Node(k) => place[k as usize],
        };
        let mut of_body = vec![Arg::Constant(0.0); nodes.len()];
        for (k, (node, level)) in nodes.iter().enumerate() {
            if *level != Level::Parameters || last[k].is_none() {
                continue;
            }
            let at = match node {
                Node::Step(op, args) => {
                    let args = args.map(|a| operand(&place, a));
                    let to = u8::try_from(parameters + first.len()).ok()?;
                    first.push(Step { op: *op, args, to });
                    to
                }
                Node::Parameter(p) | Node::Input(p) => *p,
            };
            place[k] = Arg::Prepared(at);
            if wanted[k] {
                of_body[k] = Arg::Prepared(needed.len() as u8);
                needed.push(at);
            }
        }
        if parameters + first.len() > MAX_PREPARED {
            return None;
        }
        // the rest, in registers that are free again after what they hold is read last
        let mut free: Vec<bool> = vec![true; MAX_REGISTERS];
        free[..inputs.len()].fill(false);
        let (mut steps, mut registers) = (Vec::new(), inputs.len());
        for (k, (node, _)) in nodes.iter().enumerate().filter(|(_, (_, level))| *level == Level::Inputs) {
            match node {
                Node::Input(i) => {
                    of_body[k] = Arg::Register(*i);
                    free[*i as usize] = last[k].is_none();
                }
                Node::Step(op, args) if last[k].is_some() => {
                    let read = args.map(|a| operand(&of_body, a));
                    for (arg, item) in read.iter().zip(args) {
                        if let (Arg::Register(r), Item::Node(m)) = (arg, item)
                            && last[*m as usize] == Some(k)
                        {
                            free[*r as usize] = true;
                        }
                    }
                    let to = free.iter().position(|f| *f)?;
                    free[to] = false;
                    registers = registers.max(to + 1);
                    of_body[k] = Arg::Register(to as u8);
                    steps.push(Step { op: *op, args: read, to: to as u8 });
                }
                _ => {}
            }
        }
        let outputs = results.iter().map(|r| operand(&of_body, r.item())).collect();
        Some(Program { inputs: inputs.to_vec(), parameters, first, needed, steps, registers, outputs })
    }

    /// The program whose results are this one's, and the slope of each in each input, with powers as products: for many
    /// evaluations in numbers without derivatives. Slopes are multiplied by the input's `seed`. Results come first; then
    /// slopes, those of the first input before those of the second. `None` if that takes too many steps.
    pub fn with_slopes(&self, seeds: &[f64]) -> Option<Program> {
        let graph = Graph::new(&self.inputs, true);
        let parameters: Vec<_> =
            (0..self.parameters).map(|k| Dual::passive(graph.parameter(k as u8))).collect();
        let inputs: Vec<_> = (0..self.inputs.len()).map(|k| graph.input(k as u8)).collect();
        let prepared = self.prepare::<Dual<Trace>>(&parameters);
        let (mut values, mut slopes) = (Vec::new(), Vec::new());
        for (variable, seed) in seeds.iter().enumerate().take(inputs.len()) {
            let seeded = |(k, x): (usize, &_)| {
                let rate = if k == variable { *seed } else { 0.0 };
                Dual::new(*x, Trace::Constant(rate))
            };
            let x: Vec<Dual<Trace>> = inputs.iter().enumerate().map(seeded).collect();
            let results = self.results::<Dual<Trace>, Dual<Trace>>(&x, &prepared);
            values = results.iter().map(|y| y.value).collect();
            slopes.extend(results.iter().map(|y| y.tangent));
        }
        values.extend(slopes);
        Program::of(&graph, &self.inputs, self.parameters, &values)
    }

    /// How many numbers each evaluation is given: one an input, two an angle.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }
    /// The steps that depend on inputs.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
    /// How many registers these use, inputs included.
    pub fn registers(&self) -> usize {
        self.registers
    }
    /// Where the results are in the end.
    pub fn outputs(&self) -> &[Arg] {
        &self.outputs
    }
    /// How many numbers [`prepare`](Program::prepare) makes.
    pub fn prepared(&self) -> usize {
        self.needed.len()
    }

    /// What follows from the parameters alone; done once, not for every evaluation.
    ///
    /// # Panics
    /// If there are not as many parameters as the program was compiled with.
    pub fn prepare<P: Scalar>(&self, parameters: &[P]) -> Vec<P> {
        let mut all = [P::constant(0.0); MAX_PREPARED];
        self.prepare_in(parameters, &mut all);
        self.needed.iter().map(|&k| all[k as usize]).collect()
    }
    fn prepare_in<P: Scalar>(&self, parameters: &[P], all: &mut [P; MAX_PREPARED]) {
        assert_eq!(parameters.len(), self.parameters, "as many parameters as names");
        all[..self.parameters].copy_from_slice(parameters);
        for step in &self.first {
            let [a, b, c] = step.args.map(|arg| match arg {
                Arg::Prepared(k) | Arg::Register(k) => all[k as usize],
                Arg::Constant(x) => P::constant(x),
            });
            all[step.to as usize] = step.op.apply(a, b, c);
        }
    }

    /// The first result, from inputs and [prepared](Program::prepare) parameters. Allocates nothing.
    ///
    /// # Panics
    /// If there are fewer inputs or prepared numbers than the program reads.
    pub fn value<S: Scalar, P: Coefficient<S>>(&self, inputs: &[S], prepared: &[P]) -> S {
        let mut registers = [S::constant(0.0); MAX_REGISTERS];
        self.run(inputs, &mut registers, |k| prepared[k]);
        self.output(0, &registers, |k| prepared[k])
    }

    /// The first result, from inputs (an angle is two: sine and cosine; a distance is its square) and parameters.
    /// Allocates nothing.
    ///
    /// # Panics
    /// If there are not as many of them as the program was compiled with.
    pub fn eval<S: Scalar, P: Coefficient<S>>(&self, inputs: &[S], parameters: &[P]) -> S {
        let mut all = [P::constant(0.0); MAX_PREPARED];
        self.prepare_in(parameters, &mut all);
        let prepared = |k: usize| all[self.needed[k] as usize];
        let mut registers = [S::constant(0.0); MAX_REGISTERS];
        self.run(inputs, &mut registers, prepared);
        self.output(0, &registers, prepared)
    }

    /// All results.
    pub fn results<S: Scalar, P: Coefficient<S>>(&self, inputs: &[S], prepared: &[P]) -> Vec<S> {
        let mut registers = [S::constant(0.0); MAX_REGISTERS];
        self.run(inputs, &mut registers, |k| prepared[k]);
        (0..self.outputs.len()).map(|k| self.output(k, &registers, |k| prepared[k])).collect()
    }

    fn run<S: Scalar, P: Coefficient<S>>(
        &self,
        inputs: &[S],
        registers: &mut [S; MAX_REGISTERS],
        prepared: impl Fn(usize) -> P,
    ) {
        assert_eq!(inputs.len(), self.inputs.len(), "as many inputs as names");
        registers[..inputs.len()].copy_from_slice(inputs);
        for step in &self.steps {
            let [a, b, c] = step.args.map(|arg| match arg {
                Arg::Register(k) => Value::Own(registers[k as usize]),
                Arg::Prepared(k) => Value::Given(prepared(k as usize)),
                Arg::Constant(x) => Value::Plain(x),
            });
            registers[step.to as usize] = evaluate(step.op, a, b, c);
        }
    }
    fn output<S: Scalar, P: Coefficient<S>>(
        &self,
        k: usize,
        registers: &[S; MAX_REGISTERS],
        prepared: impl Fn(usize) -> P,
    ) -> S {
        match self.outputs[k] {
            Arg::Register(r) => registers[r as usize],
            Arg::Prepared(p) => prepared(p as usize).lift(),
            Arg::Constant(x) => S::constant(x),
        }
    }
}

/// Marks what node `k` reads, if it is read itself.
fn needs(nodes: &[(Node, Level)], k: usize, last: &mut [Option<usize>]) {
    if let (Node::Step(op, args), Some(_)) = (nodes[k].0, last[k]) {
        for arg in &args[..op.operands()] {
            if let Item::Node(m) = arg {
                let m = *m as usize;
                last[m] = last[m].max(Some(k));
            }
        }
    }
}

const _: () = assert!(MAX_REGISTERS <= 256 && MAX_PREPARED <= 256 && MAX_STEPS <= u32::MAX as usize);
