//! Taylor mode to second order: a curve's point, velocity and acceleration.

use super::jacobian::Map;
use super::operators::{Operand, Operator, OperatorError};
use super::{Differentiable, Dual};
use potentials::{Passive, Scalar, differentiable};
use std::ops::{Add, Mul};

/// x, ẋ and ẍ of a curve x(t): for y = f(x), ẏ = f′(x) ẋ and ÿ = f′(x) ẍ + f″(x) ẋ².
///
/// Three numbers where `Dual<Dual>` has four, of which two are the same. Second derivatives of functions come from
/// the rules for first ones: a rule's partial derivative, computed in [`Dual`], brings its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taylor<S = f64> {
    /// x
    pub value: S,
    /// ẋ
    pub first: S,
    /// ẍ
    pub second: S,
}

impl<S: Scalar> Taylor<S> {
    /// A point on the line x + t v.
    #[inline(always)]
    pub fn line(x: S, v: S) -> Self {
        Self { value: x, first: v, second: S::constant(0.0) }
    }
    #[inline(always)]
    fn of(x: Dual<S>, second: S) -> Self {
        Self { value: x.value, first: x.tangent, second }
    }
}

impl<S: Scalar> Differentiable for Taylor<S> {
    type Base = Dual<S>;
    #[inline(always)]
    fn primal(self) -> Dual<S> {
        Dual::new(self.value, self.first)
    }
    #[inline(always)]
    fn lifted(value: Dual<S>) -> Self {
        Self::of(value, S::constant(0.0))
    }
    #[inline(always)]
    fn unary(self, value: Dual<S>, p: Dual<S>) -> Self {
        Self::of(value, p.tangent.fma(self.first, p.value * self.second))
    }
    #[inline(always)]
    fn binary(self, o: Self, value: Dual<S>, px: Dual<S>, py: Dual<S>) -> Self {
        let along_x = px.tangent.fma(self.first, px.value * self.second);
        Self::of(value, py.tangent.fma(o.first, py.value.fma(o.second, along_x)))
    }
    #[inline(always)]
    fn composed<const N: usize>(x: [Self; N], value: Dual<S>, partials: [Dual<S>; N]) -> Self {
        let along = |k: usize| partials[k].tangent.fma(x[k].first, partials[k].value * x[k].second);
        Self::of(value, (1..N).fold(along(0), |sum, k| sum + along(k)))
    }
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        Self::of(self.primal() + o.primal(), self.second + o.second)
    }
    #[inline(always)]
    fn minus(self, o: Self) -> Self {
        Self::of(self.primal() - o.primal(), self.second - o.second)
    }
    #[inline(always)]
    fn scaled(self, value: Dual<S>, slope: f64) -> Self {
        Self::of(value, self.second * slope)
    }
    #[inline(always)]
    fn times<R: Scalar>(self, p: Passive<R>) -> Self
    where
        Dual<S>: Mul<Passive<R>, Output = Dual<S>> + Add<Passive<R>, Output = Dual<S>>,
    {
        let second = Dual::passive(self.second) * p;
        Self::of(self.primal() * p, second.value)
    }
    #[inline(always)]
    fn shifted(self, value: Dual<S>) -> Self {
        Self::of(value, self.second)
    }
    #[inline(always)]
    fn choose(mask: <Dual<S> as Scalar>::Mask, a: Self, b: Self) -> Self {
        let x = Dual::select(mask, a.primal(), b.primal());
        Self::of(x, S::select(mask, a.second, b.second))
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.primal().vanishes() && self.second.vanishes()
    }
    #[inline(always)]
    fn zero_lanes(self) -> <Dual<S> as Scalar>::Mask {
        self.primal().zeros() & self.second.zeros()
    }
}

differentiable!([B: Scalar,] Taylor<B>, Dual<B>);

impl<S: Operand> Operand for Taylor<S> {
    fn apply<O: Operator>(operator: &O, x: &[Self]) -> Result<Vec<Self>, OperatorError> {
        // (the velocity along the curve, differentiated along it)
        let point: Vec<_> = x.iter().map(|x| Dual::new(x.primal(), Dual::new(x.first, x.second))).collect();
        let y = Dual::<Dual<S>>::apply(operator, &point)?;
        Ok(y.into_iter().map(|y| Self::of(y.value, y.tangent.tangent)).collect())
    }
    fn plain(self) -> f64 {
        self.value.plain()
    }
}

/// f(x + t v) at t = 0 with its first and second derivatives in t, result by result: J v and vᵀ H v in one pass.
///
/// ```
/// use md::autodiff::{jacobian::Map, operators::Operand, taylor::taylor};
/// struct Product;
/// impl Map for Product {
///     fn call<S: Operand>(&self, x: &[S]) -> Vec<S> {
///         vec![x[0] * x[1].exp()]
///     }
/// }
/// let y = taylor(&Product, &[2.0, 0.0], &[1.0, 1.0])[0];
/// // (2 + t) eᵗ: 2, 3, 4
/// assert_eq!([y.value, y.first, y.second], [2.0, 3.0, 4.0]);
/// ```
///
/// # Panics
/// If v has not as many numbers as x.
pub fn taylor(f: &impl Map, x: &[f64], v: &[f64]) -> Vec<Taylor> {
    assert_eq!(x.len(), v.len(), "a direction has as many numbers as the point");
    let x: Vec<_> = x.iter().zip(v).map(|(&x, &v)| Taylor::line(x, v)).collect();
    f.call(&x)
}
