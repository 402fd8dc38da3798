//! Forward mode: a value and its derivative along one direction.
//!
//! `Dual` stands with the energies because one of their own definitions needs it: a force-shifted cut-off
//! subtracts the derivative of the energy at the cut-off.

use crate::scalar::{Mask, Passive, Scalar};
use std::ops::{Add, Mul};

/// A value and one tangent. `Dual<S>` nests: over another `Dual` it gives second derivatives, over SIMD
/// lanes it differentiates several interactions at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual<S> {
    /// f(x)
    pub value: S,
    /// f′(x) ẋ
    pub tangent: S,
}

impl<S: Scalar> Dual<S> {
    /// A value with the given tangent.
    #[inline(always)]
    pub fn new(value: S, tangent: S) -> Self {
        Self { value, tangent }
    }
    /// The variable itself: tangent 1.
    #[inline(always)]
    pub fn variable(value: S) -> Self {
        Self { value, tangent: S::constant(1.0) }
    }
    /// A number with no derivative.
    #[inline(always)]
    pub fn passive(value: S) -> Self {
        Self { value, tangent: S::constant(0.0) }
    }
}

/// A number that carries derivatives over a base number: the few primitives from which the macro
/// [`differentiable!`](crate::differentiable) makes a [`Scalar`], so that each derivative rule stands once,
/// for forward and reverse mode alike.
pub trait Differentiable: Copy {
    /// The number without derivatives.
    type Base: Scalar;
    /// The value.
    fn primal(self) -> Self::Base;
    /// A number with this value and no derivative.
    fn lifted(value: Self::Base) -> Self;
    /// f(x) with f′(x).
    fn unary(self, value: Self::Base, partial: Self::Base) -> Self;
    /// f(x, y) with ∂f/∂x and ∂f/∂y.
    fn binary(self, o: Self, value: Self::Base, px: Self::Base, py: Self::Base) -> Self;
    /// f(x₁ … xₙ) with all ∂f/∂xₖ.
    fn composed<const N: usize>(x: [Self; N], value: Self::Base, partials: [Self::Base; N]) -> Self;
    /// x + y
    fn plus(self, o: Self) -> Self;
    /// x − y
    fn minus(self, o: Self) -> Self;
    /// A linear function of x with this value: its slope is a plain number.
    fn scaled(self, value: Self::Base, slope: f64) -> Self;
    /// x · p for a passive p: forward mode multiplies the tangent, a tape records p as the partial derivative.
    fn times<R: Scalar>(self, p: Passive<R>) -> Self
    where
        Self::Base: Mul<Passive<R>, Output = Self::Base> + Add<Passive<R>, Output = Self::Base>;
    /// x plus something without derivative: the value changes, nothing else does.
    fn shifted(self, value: Self::Base) -> Self;
    /// `a` where the mask holds, else `b`; the other's derivative is dropped.
    fn choose(mask: <Self::Base as Scalar>::Mask, a: Self, b: Self) -> Self;
    /// Whether value and derivatives are exactly zero.
    fn is_zero(self) -> bool;
    /// The lanes in which they are.
    fn zero_lanes(self) -> <Self::Base as Scalar>::Mask;
}

impl<S: Scalar> Differentiable for Dual<S> {
    type Base = S;
    #[inline(always)]
    fn primal(self) -> S {
        self.value
    }
    #[inline(always)]
    fn lifted(value: S) -> Self {
        Self::passive(value)
    }
    #[inline(always)]
    fn unary(self, value: S, partial: S) -> Self {
        Self { value, tangent: partial * self.tangent }
    }
    #[inline(always)]
    fn binary(self, o: Self, value: S, px: S, py: S) -> Self {
        Self { value, tangent: py.fma(o.tangent, px * self.tangent) }
    }
    #[inline(always)]
    fn composed<const N: usize>(x: [Self; N], value: S, partials: [S; N]) -> Self {
        let mut tangent = partials[0] * x[0].tangent;
        for k in 1..N {
            tangent = partials[k].fma(x[k].tangent, tangent);
        }
        Self { value, tangent }
    }
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        Self { value: self.value + o.value, tangent: self.tangent + o.tangent }
    }
    #[inline(always)]
    fn minus(self, o: Self) -> Self {
        Self { value: self.value - o.value, tangent: self.tangent - o.tangent }
    }
    #[inline(always)]
    fn scaled(self, value: S, slope: f64) -> Self {
        Self { value, tangent: self.tangent * slope }
    }
    #[inline(always)]
    fn times<R: Scalar>(self, p: Passive<R>) -> Self
    where
        S: Mul<Passive<R>, Output = S>,
    {
        Self { value: self.value * p, tangent: self.tangent * p }
    }
    #[inline(always)]
    fn shifted(self, value: S) -> Self {
        Self { value, tangent: self.tangent }
    }
    #[inline(always)]
    fn choose(mask: S::Mask, a: Self, b: Self) -> Self {
        match mask.decided() {
            Some(true) => a,
            Some(false) => b,
            None => Self {
                value: S::select(mask, a.value, b.value),
                tangent: S::select(mask, a.tangent, b.tangent),
            },
        }
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.value.vanishes() && self.tangent.vanishes()
    }
    #[inline(always)]
    fn zero_lanes(self) -> S::Mask {
        self.value.zeros() & self.tangent.zeros()
    }
}

/// Makes a [`Differentiable`](crate::dual::Differentiable) type a full [`Scalar`](crate::Scalar): operators
/// with itself, plain numbers, passive parameters, distances and ratios, and the derivative rule of every
/// function. `differentiable!([generics,] Type, Base)`; the generics end with a comma.
#[macro_export]
macro_rules! differentiable {
    ([$($g:tt)*] $X:ty, $B:ty) => {
        impl<$($g)*> ::std::ops::Add for $X {
            type Output = Self;
            #[inline(always)]
            fn add(self, o: Self) -> Self { $crate::dual::Differentiable::plus(self, o) }
        }
        impl<$($g)*> ::std::ops::Sub for $X {
            type Output = Self;
            #[inline(always)]
            fn sub(self, o: Self) -> Self { $crate::dual::Differentiable::minus(self, o) }
        }
        impl<$($g)*> ::std::ops::Mul for $X {
            type Output = Self;
            #[inline(always)]
            fn mul(self, o: Self) -> Self {
                use $crate::dual::Differentiable;
                let (a, b) = (self.primal(), o.primal());
                self.binary(o, a * b, b, a)
            }
        }
        impl<$($g)*> ::std::ops::Div for $X {
            type Output = Self;
            #[inline(always)]
            fn div(self, o: Self) -> Self {
                use $crate::dual::Differentiable;
                let b = o.primal();
                let value = self.primal() / b;
                let inverse = $crate::Scalar::recip(b);
                self.binary(o, value, inverse, -(value * inverse))
            }
        }
        impl<$($g)*> ::std::ops::Neg for $X {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                use $crate::dual::Differentiable;
                self.scaled(-self.primal(), -1.0)
            }
        }

        // with plain numbers
        impl<$($g)*> ::std::ops::Add<f64> for $X {
            type Output = Self;
            #[inline(always)]
            fn add(self, k: f64) -> Self { use $crate::dual::Differentiable; self.shifted(self.primal() + k) }
        }
        impl<$($g)*> ::std::ops::Sub<f64> for $X {
            type Output = Self;
            #[inline(always)]
            fn sub(self, k: f64) -> Self { use $crate::dual::Differentiable; self.shifted(self.primal() - k) }
        }
        impl<$($g)*> ::std::ops::Mul<f64> for $X {
            type Output = Self;
            #[inline(always)]
            fn mul(self, k: f64) -> Self { use $crate::dual::Differentiable; self.scaled(self.primal() * k, k) }
        }
        impl<$($g)*> ::std::ops::Div<f64> for $X {
            type Output = Self;
            #[inline(always)]
            fn div(self, k: f64) -> Self {
                use $crate::dual::Differentiable;
                self.scaled(self.primal() / k, 1.0 / k)
            }
        }
        impl<$($g)*> ::std::ops::Add<$X> for f64 {
            type Output = $X;
            #[inline(always)]
            fn add(self, x: $X) -> $X { x + self }
        }
        impl<$($g)*> ::std::ops::Sub<$X> for f64 {
            type Output = $X;
            #[inline(always)]
            fn sub(self, x: $X) -> $X {
                use $crate::dual::Differentiable;
                x.scaled(-x.primal() + self, -1.0)
            }
        }
        impl<$($g)*> ::std::ops::Mul<$X> for f64 {
            type Output = $X;
            #[inline(always)]
            fn mul(self, x: $X) -> $X { x * self }
        }
        impl<$($g)*> ::std::ops::Div<$X> for f64 {
            type Output = $X;
            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl)]
            fn div(self, x: $X) -> $X { $crate::Scalar::recip(x) * self }
        }

        // with passive parameters
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Add<$crate::Passive<Lane>> for $X
        where $B: ::std::ops::Add<$crate::Passive<Lane>, Output = $B>
        {
            type Output = Self;
            #[inline(always)]
            fn add(self, p: $crate::Passive<Lane>) -> Self {
                use $crate::dual::Differentiable;
                self.shifted(self.primal() + p)
            }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Sub<$crate::Passive<Lane>> for $X
        where $B: ::std::ops::Sub<$crate::Passive<Lane>, Output = $B>
        {
            type Output = Self;
            #[inline(always)]
            fn sub(self, p: $crate::Passive<Lane>) -> Self {
                use $crate::dual::Differentiable;
                self.shifted(self.primal() - p)
            }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Mul<$crate::Passive<Lane>> for $X
        where $B: $crate::Scalar + ::std::ops::Mul<$crate::Passive<Lane>, Output = $B>
            + ::std::ops::Add<$crate::Passive<Lane>, Output = $B>
        {
            type Output = Self;
            #[inline(always)]
            fn mul(self, p: $crate::Passive<Lane>) -> Self { $crate::dual::Differentiable::times(self, p) }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Div<$crate::Passive<Lane>> for $X
        where $B: $crate::Scalar + ::std::ops::Mul<$crate::Passive<Lane>, Output = $B>
            + ::std::ops::Add<$crate::Passive<Lane>, Output = $B>
        {
            type Output = Self;
            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl)]
            fn div(self, p: $crate::Passive<Lane>) -> Self { self * $crate::Scalar::recip(p) }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Add<$X> for $crate::Passive<Lane>
        where $B: ::std::ops::Add<$crate::Passive<Lane>, Output = $B>
        {
            type Output = $X;
            #[inline(always)]
            fn add(self, x: $X) -> $X { x + self }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Sub<$X> for $crate::Passive<Lane>
        where $B: ::std::ops::Sub<$crate::Passive<Lane>, Output = $B>
        {
            type Output = $X;
            #[inline(always)]
            fn sub(self, x: $X) -> $X { -(x - self) }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Mul<$X> for $crate::Passive<Lane>
        where $B: $crate::Scalar + ::std::ops::Mul<$crate::Passive<Lane>, Output = $B>
            + ::std::ops::Add<$crate::Passive<Lane>, Output = $B>
        {
            type Output = $X;
            #[inline(always)]
            fn mul(self, x: $X) -> $X { x * self }
        }
        impl<$($g)* Lane: $crate::Scalar> ::std::ops::Div<$X> for $crate::Passive<Lane>
        where $B: $crate::Scalar + ::std::ops::Mul<$crate::Passive<Lane>, Output = $B>
            + ::std::ops::Add<$crate::Passive<Lane>, Output = $B>
        {
            type Output = $X;
            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl)]
            fn div(self, x: $X) -> $X { $crate::Scalar::recip(x) * self }
        }

        // with distances and ratios
        impl<$($g)* Num: $crate::Scalar> ::std::ops::Div<$crate::Distance<Num>> for $X {
            type Output = $crate::Ratio<Num, $X>;
            #[inline(always)]
            fn div(self, r: $crate::Distance<Num>) -> Self::Output { $crate::Ratio::new(self, r) }
        }
        impl<$($g)* Par: Copy + ::std::ops::Mul<$X, Output = $X>> ::std::ops::Add<$crate::Ratio<$X, Par>> for $X {
            type Output = $X;
            #[inline(always)]
            fn add(self, o: $crate::Ratio<$X, Par>) -> $X { self + o.value() }
        }
        impl<$($g)* Par: Copy + ::std::ops::Mul<$X, Output = $X>> ::std::ops::Sub<$crate::Ratio<$X, Par>> for $X {
            type Output = $X;
            #[inline(always)]
            fn sub(self, o: $crate::Ratio<$X, Par>) -> $X { self - o.value() }
        }
        $crate::ratio_times!([$($g)*] $X);

        // coefficients in fused forms
        impl<$($g)*> $crate::scalar::Fused<$X> for $X {
            #[inline(always)]
            fn over_distance(self, r2: $X, n: i32) -> $X {
                $crate::Scalar::powi(self * self * $crate::Scalar::recip(r2), n / 2)
            }
            #[inline(always)]
            fn powers_of<const N: usize>(x: $X, c: [Self; N]) -> $X { $crate::scalar::plain_powers(x, c) }
        }
        $crate::differentiable!(@passive [$($g)*] f64, $X, $B);
        $crate::differentiable!(@passive [$($g)* Lane: $crate::Scalar,] $crate::Passive<Lane>, $X, $B);

        impl<$($g)*> $crate::Scalar for $X {
            type Mask = <$B as $crate::Scalar>::Mask;
            #[inline(always)]
            fn constant(x: f64) -> Self { $crate::dual::Differentiable::lifted(<$B as $crate::Scalar>::constant(x)) }
            #[inline(always)]
            fn vanishes(self) -> bool { $crate::dual::Differentiable::is_zero(self) }
            #[inline(always)]
            fn zeros(self) -> Self::Mask { $crate::dual::Differentiable::zero_lanes(self) }
            #[inline(always)]
            fn dot([a0, a1, a2]: [Self; 3], [b0, b1, b2]: [Self; 3]) -> Self {
                use $crate::dual::Differentiable;
                let ([x0, x1, x2], [y0, y1, y2]) =
                    ([a0.primal(), a1.primal(), a2.primal()], [b0.primal(), b1.primal(), b2.primal()]);
                // (rounded after each step on all numbers, so that they agree where terms cancel)
                let value = x0 * y0 + (x1 * y1 + x2 * y2);
                Differentiable::composed([a0, a1, a2, b0, b1, b2], value, [y0, y1, y2, x0, x1, x2])
            }
            #[inline(always)]
            fn norm_squared([a0, a1, a2]: [Self; 3]) -> Self {
                use $crate::dual::Differentiable;
                let [x0, x1, x2] = [a0.primal(), a1.primal(), a2.primal()];
                let value = <$B as $crate::Scalar>::norm_squared([x0, x1, x2]);
                Differentiable::composed([a0, a1, a2], value, [x0 * 2.0, x1 * 2.0, x2 * 2.0])
            }
            #[inline(always)]
            fn determinant([a0, a1]: [Self; 2], [b0, b1]: [Self; 2]) -> Self {
                use $crate::dual::Differentiable;
                let [x0, x1, y0, y1] = [a0.primal(), a1.primal(), b0.primal(), b1.primal()];
                let value = <$B as $crate::Scalar>::determinant([x0, x1], [y0, y1]);
                Differentiable::composed([a0, a1, b0, b1], value, [y1, -y0, -x1, x0])
            }
            #[inline(always)]
            fn recip(self) -> Self {
                use $crate::dual::Differentiable;
                let i = $crate::Scalar::recip(self.primal());
                self.unary(i, -(i * i))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                use $crate::dual::Differentiable;
                let s = $crate::Scalar::sqrt(self.primal());
                self.unary(s, $crate::Scalar::recip(s) * 0.5)
            }
            #[inline(always)]
            fn rsqrt(self) -> Self {
                use $crate::dual::Differentiable;
                let r = $crate::Scalar::rsqrt(self.primal());
                self.unary(r, r * r * r * -0.5)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                use $crate::dual::Differentiable;
                let e = $crate::Scalar::exp(self.primal());
                self.unary(e, e)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                self.unary($crate::Scalar::ln(x), $crate::Scalar::recip(x))
            }
            #[inline(always)]
            fn sin(self) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                self.unary($crate::Scalar::sin(x), $crate::Scalar::cos(x))
            }
            #[inline(always)]
            fn cos(self) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                self.unary($crate::Scalar::cos(x), -$crate::Scalar::sin(x))
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                use $crate::dual::Differentiable;
                let t = $crate::Scalar::tanh(self.primal());
                self.unary(t, -(t * t) + 1.0)
            }
            #[inline(always)]
            fn acos(self) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                let s2 = (-x + 1.0) * (x + 1.0);
                let (zero, one) = (<$B as $crate::Scalar>::constant(0.0), <$B as $crate::Scalar>::constant(1.0));
                let inside = $crate::Scalar::lt(zero, s2);
                let safe = <$B as $crate::Scalar>::select(inside, s2, one);
                let slope = <$B as $crate::Scalar>::select(inside, -$crate::Scalar::rsqrt(safe), zero);
                self.unary($crate::Scalar::acos(x), slope)
            }
            #[inline(always)]
            fn atan2(self, o: Self) -> Self {
                use $crate::dual::Differentiable;
                let (y, x) = (self.primal(), o.primal());
                let i = $crate::Scalar::recip(x * x + y * y);
                self.binary(o, $crate::Scalar::atan2(y, x), x * i, -(y * i))
            }
            #[inline(always)]
            fn erfc(self) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                let slope = $crate::Scalar::exp(-(x * x)) * -::std::f64::consts::FRAC_2_SQRT_PI;
                self.unary($crate::Scalar::erfc(x), slope)
            }
            #[inline(always)]
            fn powf(self, p: f64) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                self.unary($crate::Scalar::powf(x, p), $crate::Scalar::powf(x, p - 1.0) * p)
            }
            #[inline(always)]
            fn lt(self, o: Self) -> Self::Mask {
                use $crate::dual::Differentiable;
                $crate::Scalar::lt(self.primal(), o.primal())
            }
            #[inline(always)]
            fn le(self, o: Self) -> Self::Mask {
                use $crate::dual::Differentiable;
                $crate::Scalar::le(self.primal(), o.primal())
            }
            #[inline(always)]
            fn select(mask: Self::Mask, a: Self, b: Self) -> Self {
                <Self as $crate::dual::Differentiable>::choose(mask, a, b)
            }
            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                if n == 0 {
                    return <Self as $crate::Scalar>::constant(1.0);
                }
                if n == 1 {
                    return self;
                }
                if n < 0 {
                    let i = $crate::Scalar::recip(x);
                    let p = $crate::Scalar::powi(i, -n);
                    return self.unary(p, p * i * f64::from(n));
                }
                let p = $crate::Scalar::powi(x, n - 1);
                self.unary(p * x, p * f64::from(n))
            }
            #[inline(always)]
            fn squared(self) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                self.unary(x * x, x + x)
            }
            #[inline(always)]
            fn poly<const N: usize>(self, c: [f64; N]) -> Self {
                use $crate::dual::Differentiable;
                let x = self.primal();
                self.unary($crate::Scalar::poly(x, c), $crate::Scalar::poly_derivative(x, c))
            }
            #[inline(always)]
            fn inverse_power(r2: Self, inverse: Self, n: i32) -> Self {
                use $crate::dual::Differentiable;
                let i = inverse.primal();
                let value = <$B as $crate::Scalar>::inverse_power(r2.primal(), i, n);
                r2.unary(value, value * (i * i) * (-0.5 * f64::from(n)))
            }
        }
    };
    (@passive [$($g:tt)*] $P:ty, $X:ty, $B:ty) => {
        impl<$($g)*> $crate::scalar::Fused<$X> for $P
        where
            $B: $crate::Scalar + ::std::ops::Add<$P, Output = $B>,
            $P: $crate::scalar::Fused<$B> + ::std::ops::Mul<$B, Output = $B>,
        {
            #[inline(always)]
            fn over_distance(self, r2: $X, n: i32) -> $X {
                use $crate::dual::Differentiable;
                let b = r2.primal();
                let value = <Self as $crate::scalar::Fused<$B>>::over_distance(self, b, n);
                // (f64 × base is a bound here, so that a product of plain numbers would be ambiguous)
                let half_n = f64::from(-n) / 2.0;
                r2.unary(value, value * $crate::Scalar::recip(b) * half_n)
            }
            #[inline(always)]
            fn powers_of<const N: usize>(x: $X, c: [Self; N]) -> $X {
                use $crate::dual::Differentiable;
                let b = x.primal();
                let value = <Self as $crate::scalar::Fused<$B>>::powers_of(b, c);
                x.unary(value, $crate::scalar::powers_derivative(b, c))
            }
        }
    };
}

differentiable!([S: Scalar,] Dual<S>, S);
