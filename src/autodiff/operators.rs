//! Whole operators as single steps: each with a derivative of its own, instead of the derivatives of its loops.
//!
//! An operator y = f(x) from n numbers to m says three things: its value in plain numbers, what its Jacobian J = ∂y/∂x
//! does to a tangent ([`pushforward`](Operator::pushforward): ẏ = J ẋ), and what the transpose of the Jacobian does to
//! an adjoint ([`pullback`](Operator::pullback): x̄ = Jᵀ ȳ). J itself, m × n numbers, is never made. Both are written in
//! any number, in terms of operators, so that derivatives of derivatives come by themselves: a linear solve in
//! `Dual<Dual<f64>>` or in `Var<Dual<f64>>` is right to second order, and factorises plain matrices only.
//!
//! | operator | y | J ẋ | Jᵀ ȳ |
//! |---|---|---|---|
//! | [`sum`] | Σ xₖ | Σ ẋₖ | ȳ for every k |
//! | [`log_sum_exp`] | ln Σ exp xₖ | Σ wₖ ẋₖ, w = exp(x − y) | w ȳ |
//! | [`product`] | A B | Ȧ B + A Ḃ | Ā = Ȳ Bᵀ, B̄ = Aᵀ Ȳ |
//! | [`solve`](super::linear::solve), [`solve_sparse`](super::linear::solve_sparse) | A⁻¹ b | A⁻¹ (ḃ − Ȧ y) | b̄ = A⁻ᵀ ȳ, Ā = −b̄ yᵀ |
//! | [`root`](super::implicit::root), [`fixed_point`](super::implicit::fixed_point) | F(y, θ) = 0 | −F_y⁻¹ F_θ θ̇ | θ̄ = −F_θᵀ F_y⁻ᵀ ȳ |
//! | [`fourier`], [`fourier_inverse`] | W x | W ẋ | Wᴴ ȳ |

use super::{Dual, Number, Tape, Var};
use std::fmt;

/// Why an operator has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// A matrix has no inverse, as far as its numbers tell.
    #[error("the matrix of a linear system of {size} equations is singular")]
    Singular {
        /// How many equations.
        size: usize,
    },
    /// An iteration did not get there.
    #[error("{what} did not converge in {iterations} iterations: a residual of {residual:.3e} is left")]
    NotConverged {
        /// What was looked for.
        what: &'static str,
        /// How many iterations were made.
        iterations: usize,
        /// The largest component of what should be zero.
        residual: f64,
    },
}

/// A function of n numbers with m results that is one step of a computation.
///
/// Lengths are the operator's own affair: it is given as many numbers as its caller (a function such as
/// [`solve`](super::linear::solve)) has put together.
pub trait Operator: Clone + fmt::Debug + Send + 'static {
    /// y = f(x).
    ///
    /// # Errors
    /// Where it has no value.
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError>;
    /// ẏ = J ẋ, where y = f(x).
    ///
    /// # Errors
    /// Where it has no derivative.
    fn pushforward<S: Operand>(&self, x: &[S], y: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError>;
    /// x̄ = Jᵀ ȳ, where y = f(x).
    ///
    /// # Errors
    /// Where it has no derivative.
    fn pullback<S: Operand>(&self, x: &[S], y: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError>;
}

/// A number that operators work on: `f64`, and [`Dual`] and [`Var`] over such numbers.
pub trait Operand: Number {
    /// f(x).
    ///
    /// # Errors
    /// Where the operator has no value.
    fn apply<O: Operator>(operator: &O, x: &[Self]) -> Result<Vec<Self>, OperatorError>;
    /// The number without any derivatives.
    fn plain(self) -> f64;
}

impl Operand for f64 {
    fn apply<O: Operator>(operator: &O, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        operator.value(x)
    }
    fn plain(self) -> f64 {
        self
    }
}

impl<S: Operand> Operand for Dual<S> {
    fn apply<O: Operator>(operator: &O, x: &[Self]) -> Result<Vec<Self>, OperatorError> {
        let values: Vec<S> = x.iter().map(|x| x.value).collect();
        let tangents: Vec<S> = x.iter().map(|x| x.tangent).collect();
        let y = S::apply(operator, &values)?;
        if tangents.iter().all(|t| t.vanishes()) {
            return Ok(y.into_iter().map(Dual::passive).collect());
        }
        let tangents = operator.pushforward(&values, &y, &tangents)?;
        Ok(y.into_iter().zip(tangents).map(|(y, t)| Dual::new(y, t)).collect())
    }
    fn plain(self) -> f64 {
        self.value.plain()
    }
}

impl<'t, S: Operand> Operand for Var<'t, S, Tape<S>> {
    fn apply<O: Operator>(operator: &O, x: &[Self]) -> Result<Vec<Self>, OperatorError> {
        let values: Vec<S> = x.iter().map(|x| x.value()).collect();
        let y = S::apply(operator, &values)?;
        Ok(Tape::operator(operator, x, values, y))
    }
    fn plain(self) -> f64 {
        self.value().plain()
    }
}

/// Σ xₖ. J is a row of ones; its transpose hands ȳ to every summand.
#[derive(Clone, Debug)]
struct Sum;
impl Operator for Sum {
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        Ok(vec![x.iter().sum()])
    }
    fn pushforward<S: Operand>(&self, _: &[S], _: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        S::apply(self, tangent)
    }
    fn pullback<S: Operand>(&self, x: &[S], _: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        Ok(vec![adjoint[0]; x.len()])
    }
}

/// Σ xₖ as one step; 0 of nothing.
pub fn sum<S: Operand>(x: &[S]) -> S {
    single(&Sum, x)
}

/// ln Σ exp xₖ. J is the row of weights wₖ = exp(xₖ − y), which add up to 1.
#[derive(Clone, Debug)]
struct LogSumExp;
impl LogSumExp {
    /// exp(xₖ − y) as shares of a sum: of y itself, which is large, too few digits are left for that.
    fn weights<S: Operand>(x: &[S]) -> Vec<S> {
        let largest = x.iter().fold(f64::NEG_INFINITY, |m, x| m.max(x.plain()));
        // (where all is −∞ there is nothing to hand on)
        let share =
            |&x: &S| if x.plain() == f64::NEG_INFINITY { S::constant(0.0) } else { (x - largest).exp() };
        let shares: Vec<S> = x.iter().map(share).collect();
        let total = sum(&shares);
        let weight = |s: S| if s.vanishes() { s } else { s / total };
        shares.into_iter().map(weight).collect()
    }
}
impl Operator for LogSumExp {
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let largest = x.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(x));
        if largest.is_infinite() {
            return Ok(vec![largest]);
        }
        Ok(vec![largest + x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()])
    }
    fn pushforward<S: Operand>(&self, x: &[S], _: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        let weighted: Vec<S> = Self::weights(x).iter().zip(tangent).map(|(&w, &t)| w * t).collect();
        S::apply(&Sum, &weighted)
    }
    fn pullback<S: Operand>(&self, x: &[S], _: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        Ok(Self::weights(x).into_iter().map(|w| w * adjoint[0]).collect())
    }
}

/// ln Σ exp xₖ, without overflow; −∞ of nothing.
///
/// ```
/// use md::autodiff::{Tape, operators::log_sum_exp};
/// let tape = Tape::new();
/// let x = [1000.0, 1000.0, -1000.0].map(|x| tape.variable(x));
/// let y = log_sum_exp(&x);
/// assert_eq!(y.value(), 1000.0 + 2f64.ln());
/// assert_eq!(x.map(|x| tape.gradient(y).of(x)), [0.5, 0.5, 0.0]);
/// ```
pub fn log_sum_exp<S: Operand>(x: &[S]) -> S {
    single(&LogSumExp, x)
}

/// The one result of an operator that always has one.
fn single<S: Operand>(operator: &impl Operator, x: &[S]) -> S {
    match S::apply(operator, x) {
        Ok(y) => y[0],
        Err(_) => S::constant(f64::NAN),
    }
}

/// A B of an l × m and an m × n matrix, both by rows, one after the other.
#[derive(Clone, Copy, Debug)]
struct Product {
    shape: [usize; 3],
}
impl Product {
    fn split<'x, S>(&self, x: &'x [S]) -> (&'x [S], &'x [S]) {
        x.split_at(self.shape[0] * self.shape[1])
    }
}
impl Operator for Product {
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let [l, m, n] = self.shape;
        let (a, b) = self.split(x);
        // (nalgebra stores columns: the rows of a matrix are the columns of its transpose)
        let a = nalgebra::DMatrixView::from_slice(a, m, l);
        let b = nalgebra::DMatrixView::from_slice(b, n, m);
        Ok((b * a).as_slice().to_vec())
    }
    fn pushforward<S: Operand>(&self, x: &[S], _: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        let ((a, b), (da, db)) = (self.split(x), self.split(tangent));
        let first = S::apply(self, &[da, b].concat())?;
        let second = S::apply(self, &[a, db].concat())?;
        Ok(first.into_iter().zip(second).map(|(x, y)| x + y).collect())
    }
    fn pullback<S: Operand>(&self, x: &[S], _: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        let [l, m, n] = self.shape;
        let (a, b) = self.split(x);
        let mut of_a = S::apply(&Product { shape: [l, n, m] }, &[adjoint, &transposed(b, m, n)].concat())?;
        let of_b = S::apply(&Product { shape: [m, l, n] }, &[&transposed(a, l, m), adjoint].concat())?;
        of_a.extend(of_b);
        Ok(of_a)
    }
}

/// The transpose of an m × n matrix, by rows.
pub(super) fn transposed<S: Copy>(a: &[S], m: usize, n: usize) -> Vec<S> {
    (0..m * n).map(|k| a[k % m * n + k / m]).collect()
}

/// The product of an l × m and an m × n matrix, by rows.
///
/// # Panics
/// If there are not as many numbers.
pub fn product<S: Operand>(a: &[S], b: &[S], shape: [usize; 3]) -> Vec<S> {
    let [l, m, n] = shape;
    assert!(a.len() == l * m && b.len() == m * n, "an {l} × {m} matrix times an {m} × {n} matrix");
    // (a product always has a value)
    S::apply(&Product { shape }, &[a, b].concat()).unwrap_or_default()
}

/// W x with Wⱼₖ = exp(∓2πi jk/n), for n complex numbers: all real parts, then all imaginary parts. W is symmetric and
/// complex, so that in real numbers its transpose is the transform with the other sign.
#[derive(Clone, Copy, Debug)]
struct Fourier {
    inverse: bool,
}
impl Operator for Fourier {
    fn value(&self, x: &[f64]) -> Result<Vec<f64>, OperatorError> {
        use rustfft::{FftDirection, FftPlanner, num_complex::Complex};
        let (re, im) = x.split_at(x.len() / 2);
        let mut z: Vec<_> = re.iter().zip(im).map(|(&re, &im)| Complex { re, im }).collect();
        let direction = if self.inverse { FftDirection::Inverse } else { FftDirection::Forward };
        FftPlanner::new().plan_fft(z.len(), direction).process(&mut z);
        Ok(z.iter().map(|z| z.re).chain(z.iter().map(|z| z.im)).collect())
    }
    fn pushforward<S: Operand>(&self, _: &[S], _: &[S], tangent: &[S]) -> Result<Vec<S>, OperatorError> {
        S::apply(self, tangent)
    }
    fn pullback<S: Operand>(&self, _: &[S], _: &[S], adjoint: &[S]) -> Result<Vec<S>, OperatorError> {
        S::apply(&Fourier { inverse: !self.inverse }, adjoint)
    }
}

/// The discrete Fourier transform yⱼ = Σₖ xₖ exp(−2πi jk/n): real and imaginary parts in, real and imaginary parts out.
/// It is not normalised: [`fourier_inverse`] of it is n times x.
///
/// # Panics
/// If there are not as many imaginary as real parts.
pub fn fourier<S: Operand>(re: &[S], im: &[S]) -> [Vec<S>; 2] {
    transform(re, im, false)
}

/// Σⱼ yⱼ exp(+2πi jk/n), likewise.
///
/// # Panics
/// If there are not as many imaginary as real parts.
pub fn fourier_inverse<S: Operand>(re: &[S], im: &[S]) -> [Vec<S>; 2] {
    transform(re, im, true)
}

fn transform<S: Operand>(re: &[S], im: &[S], inverse: bool) -> [Vec<S>; 2] {
    assert_eq!(re.len(), im.len(), "as many imaginary as real parts");
    if re.is_empty() {
        return [Vec::new(), Vec::new()];
    }
    // (a transform always has a value)
    let mut y = S::apply(&Fourier { inverse }, &[re, im].concat()).unwrap_or_default();
    let im = y.split_off(re.len());
    [y, im]
}
