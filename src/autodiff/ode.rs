//! Adjoints of ordinary differential equations ẏ = f(t, y, θ).
//!
//! The derivative of L(y(T)) with respect to y(0) and θ is taken in two ways:
//!
//! **Discrete** ([`discrete`]): the steps that the integrator takes are differentiated. The gradient is that of the numbers
//! that were computed, to round-off, however coarse the steps. It needs the states in reverse, which
//! [`checkpointing`](super::checkpointing) provides.
//!
//! **Continuous** ([`continuous`]): the adjoint a = ∂L/∂y obeys an equation of its own,
//!
//! ȧ = −(∂f/∂y)ᵀ a, dL/dθ = ∫ (∂f/∂θ)ᵀ a dt,
//!
//! which is integrated backward from a(T) = ∂L/∂y(T), together with y itself, so that nothing is kept (L. S. Pontryagin;
//! for networks R. T. Q. Chen et al., NeurIPS 2018). Two things are off. First, it is the gradient of the true
//! solution, taken with an integrator's error: it differs from the discrete one by as much as the steps' error,
//! O(hᵖ) for a method of order p, so that an optimiser that follows it does not find the minimum of what it computes. Second, y is
//! found again by integrating backward, where what was damped grows: for ẏ = −k (y − c) the rounding ε of y(T) becomes
//! ε exp(k T) at 0. Once that is not small the gradient is worthless; [`Continuous::drift`] says how far
//! the state that was found again is from the one that the run began with.

use super::checkpointing::{Counts, InMemory, Steps, checkpointed};
use super::jacobian::{Map, vjp};
use super::operators::Operand;
use std::io;

/// ẏ = f(t, y, θ), written once.
pub trait RightHandSide {
    /// f
    fn call<S: Operand>(&self, t: f64, y: &[S], theta: &[S]) -> Vec<S>;
}

/// An explicit Runge–Kutta method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// y + h f: order 1.
    Euler,
    /// With the slope in the middle: order 2.
    Midpoint,
    /// The classical method of order 4.
    #[default]
    RungeKutta4,
    /// The fifth order of J. R. Dormand and P. J. Prince, J. Comput. Appl. Math. 6, 19 (1980).
    DormandPrince5,
}

/// A method's table: where in the step each stage stands, how much of earlier stages it has, and how much of each there is in
/// the result.
struct Tableau {
    nodes: &'static [f64],
    stages: &'static [&'static [f64]],
    weights: &'static [f64],
}

impl Method {
    /// The power of the step that the error of a run falls with.
    pub fn order(self) -> u32 {
        match self {
            Method::Euler => 1,
            Method::Midpoint => 2,
            Method::RungeKutta4 => 4,
            Method::DormandPrince5 => 5,
        }
    }

    fn tableau(self) -> Tableau {
        match self {
            Method::Euler => Tableau { nodes: &[0.0], stages: &[&[]], weights: &[1.0] },
            Method::Midpoint => Tableau { nodes: &[0.0, 0.5], stages: &[&[], &[0.5]], weights: &[0.0, 1.0] },
            Method::RungeKutta4 => Tableau {
                nodes: &[0.0, 0.5, 0.5, 1.0],
                stages: &[&[], &[0.5], &[0.0, 0.5], &[0.0, 0.0, 1.0]],
                weights: &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
            },
            Method::DormandPrince5 => Tableau {
                nodes: &[0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0],
                stages: &[
                    &[],
                    &[0.2],
                    &[3.0 / 40.0, 9.0 / 40.0],
                    &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
                    &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
                    &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
                ],
                weights: &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
            },
        }
    }

    /// y a step h later.
    pub fn step<S: Operand>(self, f: impl Fn(f64, &[S]) -> Vec<S>, t: f64, h: f64, y: &[S]) -> Vec<S> {
        let Tableau { nodes, stages, weights } = self.tableau();
        let mut slopes: Vec<Vec<S>> = Vec::with_capacity(nodes.len());
        let moved = |slopes: &[Vec<S>], shares: &[f64]| -> Vec<S> {
            let mut y = y.to_vec();
            for (slope, &share) in slopes.iter().zip(shares).filter(|(_, share)| **share != 0.0) {
                y.iter_mut().zip(slope).for_each(|(y, &k)| *y = *y + k * (h * share));
            }
            y
        };
        for (&node, shares) in nodes.iter().zip(stages) {
            slopes.push(f(t + node * h, &moved(&slopes, shares)));
        }
        moved(&slopes, weights)
    }
}

/// A run over a span of time in steps of the same length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// In how many steps.
    pub steps: usize,
    /// By which method.
    pub method: Method,
}

impl Span {
    fn length(&self) -> f64 {
        (self.to - self.from) / self.steps as f64
    }
    fn time(&self, step: usize) -> f64 {
        self.from + self.length() * step as f64
    }
    fn advance<S: Operand>(&self, f: &impl RightHandSide, step: usize, y: &[S], theta: &[S]) -> Vec<S> {
        self.method.step(|t, y| f.call(t, y, theta), self.time(step), self.length(), y)
    }
}

/// y at the end of the span, in any number.
pub fn solve<S: Operand>(f: &impl RightHandSide, span: &Span, y: &[S], theta: &[S]) -> Vec<S> {
    (0..span.steps).fold(y.to_vec(), |y, step| span.advance(f, step, &y, theta))
}

/// Derivatives of L with respect to where a run begins, and to the parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gradient {
    /// ∂L/∂y(0)
    pub start: Vec<f64>,
    /// ∂L/∂θ
    pub theta: Vec<f64>,
}

/// The steps of a run, for checkpointing.
struct Stepper<'a, F> {
    f: &'a F,
    span: &'a Span,
    theta: &'a [f64],
}

/// One step, as a function of state and parameters.
struct OneStep<'a, F> {
    f: &'a F,
    span: &'a Span,
    step: usize,
    states: usize,
}

impl<F: RightHandSide> Map for OneStep<'_, F> {
    fn call<S: Operand>(&self, x: &[S]) -> Vec<S> {
        let (y, theta) = x.split_at(self.states);
        self.span.advance(self.f, self.step, y, theta)
    }
}

impl<F: RightHandSide> Steps for Stepper<'_, F> {
    type State = Vec<f64>;
    type Adjoint = Gradient;
    fn advance(&mut self, y: &mut Vec<f64>, step: usize) {
        *y = self.span.advance(self.f, step, y, self.theta);
    }
    fn pull_back(&mut self, y: &Vec<f64>, step: usize, adjoint: &mut Gradient) {
        let Self { f, span, theta } = *self;
        let one = OneStep { f, span, step, states: y.len() };
        let (_, mut back) = vjp(&one, &[y, theta].concat(), &adjoint.start);
        let of_theta = back.split_off(y.len());
        adjoint.theta.iter_mut().zip(of_theta).for_each(|(sum, x)| *sum += x);
        adjoint.start = back;
    }
}

/// The gradient of the numbers that the integrator computes, with no more than `snapshots` states kept at a time. `last` is
/// given y at the end, and says ∂L/∂y there.
///
/// # Errors
/// None but those of the memory for snapshots.
///
/// # Panics
/// Without snapshots, or with a derivative that has not as many numbers as y.
pub fn discrete(
    f: &impl RightHandSide,
    span: &Span,
    y: &[f64],
    theta: &[f64],
    snapshots: usize,
    mut last: impl FnMut(&[f64]) -> Vec<f64>,
) -> io::Result<(Gradient, Counts)> {
    let mut stepper = Stepper { f, span, theta };
    let none = vec![0.0; theta.len()];
    checkpointed(&mut stepper, &y.to_vec(), span.steps, snapshots, InMemory::default(), |y| Gradient {
        start: last(y),
        theta: none.clone(),
    })
}

/// A gradient by the continuous adjoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Continuous {
    /// The gradient.
    pub gradient: Gradient,
    /// How far the state that was found again at the beginning is from the one the run began with: the largest component.
    pub drift: f64,
}

/// y, a and dL/dθ in one: what is integrated backward.
struct Backward<'a, F> {
    f: &'a F,
    theta: &'a [f64],
}

impl<F: RightHandSide> Backward<'_, F> {
    fn slope(&self, t: f64, z: &[f64]) -> Vec<f64> {
        let n = (z.len() - self.theta.len()) / 2;
        let (y, a) = (&z[..n], &z[n..2 * n]);
        let at = At { f: self.f, t, states: n };
        let (mut slope, back) = vjp(&at, &[y, self.theta].concat(), a);
        slope.extend(back.into_iter().map(|x| -x));
        slope
    }
}

/// f at a time, as a function of state and parameters.
struct At<'a, F> {
    f: &'a F,
    t: f64,
    states: usize,
}

impl<F: RightHandSide> Map for At<'_, F> {
    fn call<S: Operand>(&self, x: &[S]) -> Vec<S> {
        let (y, theta) = x.split_at(self.states);
        self.f.call(self.t, y, theta)
    }
}

/// The gradient by the continuous adjoint, with constant memory: one run forward, one backward by the same method with the
/// same steps. `last` is given y at the end, and says ∂L/∂y there.
///
/// # Panics
/// If that has not as many numbers as y.
pub fn continuous(
    f: &impl RightHandSide,
    span: &Span,
    y: &[f64],
    theta: &[f64],
    last: impl FnOnce(&[f64]) -> Vec<f64>,
) -> Continuous {
    let (n, end) = (y.len(), solve(f, span, y, theta));
    let a = last(&end);
    assert_eq!(a.len(), n, "a derivative for each component");
    let mut z = [end, a, vec![0.0; theta.len()]].concat();
    let backward = Backward { f, theta };
    for step in (0..span.steps).rev() {
        z = span.method.step(|t, z: &[f64]| backward.slope(t, z), span.time(step + 1), -span.length(), &z);
    }
    let drift = z.iter().zip(y).fold(0.0, |m: f64, (z, y)| m.max((z - y).abs()));
    let gradient = Gradient { start: z[n..2 * n].to_vec(), theta: z[2 * n..].to_vec() };
    Continuous { gradient, drift }
}
