//! What an energy may ask of a number.
//!
//! An energy is one generic function. It is run with plain numbers for the energy itself, with
//! [`Dual`](crate::Dual) for derivatives with respect to one variable, with tape variables for all partial
//! derivatives in one backward pass, and with SIMD lanes of any of these. [`Scalar`] is what they share.

use crate::distance::{Distance, Ratio};
use std::fmt::Debug;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// The outcome of comparing numbers: one truth value a lane.
pub trait Mask: Copy + Debug + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// The common outcome, where all lanes agree and a branch may be followed; else `None`.
    fn decided(self) -> Option<bool>;
}

impl Mask for bool {
    #[inline(always)]
    fn decided(self) -> Option<bool> {
        Some(self)
    }
}

/// A differentiable real number.
///
/// Comparisons look at values only. [`select`](Scalar::select) takes one of two results lane by lane; the
/// derivative of the other is dropped, never multiplied by zero. Where the other branch could overflow or
/// divide by zero, mask its *operand* before the function is called, so that no lane ever holds an infinity.
///
/// At corners the derivative is that of the branch taken (a subgradient): [`abs`](Scalar::abs) at 0 is taken
/// from the right (+1), [`max`](Scalar::max) and [`min`](Scalar::min) of equal numbers follow the first,
/// [`relu`](Scalar::relu) at 0 has derivative 0, [`acos`](Scalar::acos) at ±1 has derivative 0.
pub trait Scalar:
    Copy
    + Debug
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + Add<Ratio<Self, f64>, Output = Self>
    + Sub<Ratio<Self, f64>, Output = Self>
    + Div<Distance<Self>, Output = Ratio<Self, Self>>
{
    /// What comparisons give.
    type Mask: Mask;

    /// The number `x` with no derivative.
    fn constant(x: f64) -> Self;
    /// Whether value and all derivatives are exactly zero, in every lane.
    fn vanishes(self) -> bool;
    /// The lanes in which value and derivatives are exactly zero.
    #[inline(always)]
    fn zeros(self) -> Self::Mask {
        self.le(Self::constant(0.0)) & Self::constant(0.0).le(self)
    }

    /// 1/x
    fn recip(self) -> Self;
    /// √x (its derivative at 0 is infinite: mask the operand, or use [`Vec3::norm`](crate::Vec3::norm))
    fn sqrt(self) -> Self;
    /// 1/√x
    fn rsqrt(self) -> Self;
    /// eˣ
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Sine of an angle in radians.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    fn cos(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Arc cosine; arguments that round-off put beyond ±1 count as ±1.
    fn acos(self) -> Self;
    /// The angle of the point (`x`, `self`), in (−π, π].
    fn atan2(self, x: Self) -> Self;
    /// 1 − erf(x), accurate in relative error.
    fn erfc(self) -> Self;
    /// xᵖ for a constant real p and x > 0.
    fn powf(self, p: f64) -> Self;

    /// `self` < `o`
    fn lt(self, o: Self) -> Self::Mask;
    /// `self` ≤ `o`
    fn le(self, o: Self) -> Self::Mask;
    /// `a` where the mask holds, else `b`.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;

    /// xⁿ by repeated squaring (n may be negative or zero; x⁰ = 1).
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        if n == 0 {
            return Self::constant(1.0);
        }
        // (not by recursion, which would keep it from being inlined)
        let (mut base, mut n) = if n < 0 { (self.recip(), n.unsigned_abs()) } else { (self, n as u32) };
        while n & 1 == 0 {
            base = base.squared();
            n >>= 1;
        }
        let mut result = base;
        n >>= 1;
        while n > 0 {
            base = base.squared();
            if n & 1 == 1 {
                result = result * base;
            }
            n >>= 1;
        }
        result
    }
    /// x²
    #[inline(always)]
    fn squared(self) -> Self {
        self * self
    }
    /// `self` × `a` + `b`, in one rounding where the hardware does that.
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        self * a + b
    }
    /// a₀ b₀ + a₁ b₁ + a₂ b₂, as one operation.
    #[inline(always)]
    fn dot(a: [Self; 3], b: [Self; 3]) -> Self {
        a[0].fma(b[0], a[1].fma(b[1], a[2] * b[2]))
    }
    /// a₀² + a₁² + a₂², as one operation.
    #[inline(always)]
    fn norm_squared(a: [Self; 3]) -> Self {
        Self::dot(a, a)
    }
    /// a₀ b₁ − a₁ b₀, as one operation.
    #[inline(always)]
    fn determinant(a: [Self; 2], b: [Self; 2]) -> Self {
        a[0] * b[1] - a[1] * b[0]
    }
    /// The polynomial Σₖ cₖ xᵏ, k from 0, as one operation.
    #[inline(always)]
    fn poly<const N: usize>(self, c: [f64; N]) -> Self {
        let Some((&last, rest)) = c.split_last() else { return Self::constant(0.0) };
        rest.iter().rev().fold(Self::constant(last), |q, &k| q * self + k)
    }
    /// The derivative of [`poly`](Scalar::poly), Σₖ k cₖ xᵏ⁻¹.
    #[inline(always)]
    fn poly_derivative<const N: usize>(self, c: [f64; N]) -> Self {
        let mut q = Self::constant(0.0);
        for k in (1..N).rev() {
            q = q * self + c[k] * k as f64;
        }
        q
    }
    /// r⁻ⁿ from r² and 1/r.
    #[inline(always)]
    fn inverse_power(_r2: Self, inverse: Self, n: i32) -> Self {
        inverse.powi(n)
    }
    /// Σₖ cₖ xᵏ⁺¹, k from 0, as one operation: the form of many pair energies in a power of 1/r.
    #[inline(always)]
    fn powers<P: Coefficient<Self>, const N: usize>(self, c: [P; N]) -> Self {
        P::powers_of(self, c)
    }

    /// |x|; at 0 the derivative is +1.
    #[inline(always)]
    fn abs(self) -> Self {
        Self::select(self.lt(Self::constant(0.0)), -self, self)
    }
    /// The larger; of equal numbers, the first.
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self::select(self.lt(o), o, self)
    }
    /// The smaller; of equal numbers, the first.
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Self::select(o.lt(self), o, self)
    }
    /// max(x, 0); at 0 the derivative is 0.
    #[inline(always)]
    fn relu(self) -> Self {
        Self::select(Self::constant(0.0).lt(self), self, Self::constant(0.0))
    }
}

// Bounds on *other* types (`f64: Mul<S>`) are not implied where a trait is used, unless they stand as a
// supertrait with an associated type. `Implies<T, Is: Bound>` says "and T: Bound", on stable Rust.
mod implied {
    pub trait Same<T> {
        type Is;
    }
    impl<T, U> Same<T> for U {
        type Is = T;
    }
    pub trait Implies<T>: Same<T, Is = T> {}
    impl<T, U> Implies<T> for U {}
}
use implied::Implies;

/// How a coefficient `P` enters results in `S` in forms that are worth one operation. The plain rule holds for
/// every pair of types; passive coefficients of a number with derivatives have a shorter one.
pub trait Fused<S>: Copy {
    /// pⁿ r⁻ⁿ for even n > 0, from r².
    fn over_distance(self, r2: S, n: i32) -> S;
    /// Σₖ cₖ xᵏ⁺¹
    fn powers_of<const N: usize>(x: S, c: [Self; N]) -> S;
}

/// What a number `S` can be combined with: a parameter of an energy, a plain number or [`Passive`] (forces are wanted)
/// or `S` itself (the derivative with respect to the parameter is wanted as well).
pub trait Coefficient<S: Scalar>:
    Scalar
    + Fused<S>
    + Add<S, Output = S>
    + Sub<S, Output = S>
    + Mul<S, Output = S>
    + Div<S, Output = S>
    + Div<Distance<S>, Output = Ratio<S, Self>>
    + Mul<Ratio<S, f64>, Output = S>
    + Implies<
        f64,
        Is: Add<S, Output = S>
                + Sub<S, Output = S>
                + Mul<S, Output = S>
                + Div<S, Output = S>
                + Add<Self, Output = Self>
                + Sub<Self, Output = Self>
                + Mul<Self, Output = Self>
                + Div<Self, Output = Self>,
    > + Implies<
        S,
        Is: Add<Self, Output = S>
                + Sub<Self, Output = S>
                + Mul<Self, Output = S>
                + Div<Self, Output = S>
                + Add<Ratio<S, Self>, Output = S>
                + Sub<Ratio<S, Self>, Output = S>,
    >
{
    /// The coefficient as a number of the result's kind.
    #[inline(always)]
    fn lift(self) -> S {
        // adding to a zero constant is the one conversion every combination has
        S::constant(0.0) + self
    }
}

impl<S: Scalar, P> Coefficient<S> for P
where
    P: Scalar
        + Fused<S>
        + Add<S, Output = S>
        + Sub<S, Output = S>
        + Mul<S, Output = S>
        + Div<S, Output = S>
        + Div<Distance<S>, Output = Ratio<S, P>>
        + Mul<Ratio<S, f64>, Output = S>,
    f64: Add<S, Output = S>
        + Sub<S, Output = S>
        + Mul<S, Output = S>
        + Div<S, Output = S>
        + Add<P, Output = P>
        + Sub<P, Output = P>
        + Mul<P, Output = P>
        + Div<P, Output = P>,
    S: Add<P, Output = S>
        + Sub<P, Output = S>
        + Mul<P, Output = S>
        + Div<P, Output = S>
        + Add<Ratio<S, P>, Output = S>
        + Sub<Ratio<S, P>, Output = S>,
{
}

/// A parameter of which no derivative is wanted, one value a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Passive<R>(pub R);

macro_rules! passive_operator {
    ($($T:ident $f:ident |$k:ident, $p:ident| $reversed:expr),*) => { $(
        impl<R: Scalar> $T for Passive<R> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, o: Self) -> Self { Passive(self.0.$f(o.0)) }
        }
        impl<R: Scalar> $T<f64> for Passive<R> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, k: f64) -> Self { Passive(self.0.$f(k)) }
        }
        impl<R: Scalar> $T<Passive<R>> for f64 {
            type Output = Passive<R>;
            #[inline(always)]
            fn $f(self, $p: Passive<R>) -> Passive<R> { let $k = self; Passive($reversed) }
        }
    )* };
}
passive_operator!(
    Add add |k, p| p.0 + k,
    Sub sub |k, p| -p.0 + k,
    Mul mul |k, p| p.0 * k,
    Div div |k, p| p.0.recip() * k
);

impl<R: Scalar> Neg for Passive<R> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Passive(-self.0)
    }
}

macro_rules! passive_functions {
    ($($f:ident),*) => { $( #[inline(always)] fn $f(self) -> Self { Passive(self.0.$f()) } )* };
}

impl<R: Scalar> Scalar for Passive<R> {
    type Mask = R::Mask;
    #[inline(always)]
    fn constant(x: f64) -> Self {
        Passive(R::constant(x))
    }
    #[inline(always)]
    fn vanishes(self) -> bool {
        self.0.vanishes()
    }
    passive_functions!(recip, sqrt, rsqrt, exp, ln, sin, cos, tanh, acos, erfc, squared);
    #[inline(always)]
    fn atan2(self, x: Self) -> Self {
        Passive(self.0.atan2(x.0))
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        Passive(self.0.powf(p))
    }
    #[inline(always)]
    fn lt(self, o: Self) -> R::Mask {
        self.0.lt(o.0)
    }
    #[inline(always)]
    fn le(self, o: Self) -> R::Mask {
        self.0.le(o.0)
    }
    #[inline(always)]
    fn select(mask: R::Mask, a: Self, b: Self) -> Self {
        Passive(R::select(mask, a.0, b.0))
    }
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        Passive(self.0.fma(a.0, b.0))
    }
}

impl<R: Scalar> Fused<Passive<R>> for f64 {
    #[inline(always)]
    fn over_distance(self, r2: Passive<R>, n: i32) -> Passive<R> {
        r2.powi(-n / 2) * self.powi(n)
    }
    #[inline(always)]
    fn powers_of<const N: usize>(x: Passive<R>, c: [f64; N]) -> Passive<R> {
        plain_powers(x, c)
    }
}
impl<R: Scalar, P: Copy + Mul<Passive<R>, Output = Passive<R>>> Add<Ratio<Passive<R>, P>> for Passive<R> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Ratio<Passive<R>, P>) -> Self {
        self + o.value()
    }
}
impl<R: Scalar, P: Copy + Mul<Passive<R>, Output = Passive<R>>> Sub<Ratio<Passive<R>, P>> for Passive<R> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Ratio<Passive<R>, P>) -> Self {
        self - o.value()
    }
}
impl<S: Scalar, R> Div<Distance<S>> for Passive<R> {
    type Output = Ratio<S, Passive<R>>;
    #[inline(always)]
    fn div(self, r: Distance<S>) -> Ratio<S, Self> {
        Ratio::new(self, r)
    }
}
impl<S: Scalar, R> Mul<Ratio<S, f64>> for Passive<R>
where
    S: Mul<Passive<R>, Output = S>,
{
    type Output = S;
    #[inline(always)]
    fn mul(self, o: Ratio<S, f64>) -> S {
        <S as Mul<Passive<R>>>::mul(o.scaled(), self)
    }
}

/// The plain rule for Σₖ cₖ xᵏ⁺¹ (Horner).
#[doc(hidden)]
#[inline(always)]
pub fn plain_powers<S, P, const N: usize>(x: S, c: [P; N]) -> S
where
    S: Scalar + Add<P, Output = S>,
    P: Scalar + Mul<S, Output = S>,
{
    if N == 0 {
        return S::constant(0.0);
    }
    if N == 1 {
        return c[0] * x;
    }
    let mut q = c[N - 1] * x + c[N - 2];
    for k in (0..N - 2).rev() {
        q = q * x + c[k];
    }
    q * x
}

/// Σₖ (k+1) cₖ xᵏ, the derivative of [`plain_powers`].
#[doc(hidden)]
#[inline(always)]
pub fn powers_derivative<S, P, const N: usize>(x: S, c: [P; N]) -> S
where
    S: Scalar + Add<P, Output = S>,
    P: Scalar + Mul<S, Output = S>,
{
    if N == 0 {
        return S::constant(0.0);
    }
    let mut q = S::constant(0.0) + c[N - 1] * (N as f64);
    for k in (0..N - 1).rev() {
        q = q * x + c[k] * ((k + 1) as f64);
    }
    q
}

/// Operators that tie a lane type (or `f64`) to distances, ratios and passive parameters. For authors of
/// numbers, not of energies. A lane type with parameters of its own gives them in brackets.
#[macro_export]
macro_rules! lane_operators {
    (@number [$($g:tt)*] $V:ty) => {
        impl<S: $crate::Scalar, $($g)*> ::std::ops::Div<$crate::Distance<S>> for $V {
            type Output = $crate::Ratio<S, $V>;
            #[inline(always)]
            fn div(self, r: $crate::Distance<S>) -> Self::Output { $crate::Ratio::new(self, r) }
        }
        impl<P: Copy + ::std::ops::Mul<$V, Output = $V>, $($g)*> ::std::ops::Add<$crate::Ratio<$V, P>> for $V {
            type Output = $V;
            #[inline(always)]
            fn add(self, o: $crate::Ratio<$V, P>) -> $V { self + o.value() }
        }
        impl<P: Copy + ::std::ops::Mul<$V, Output = $V>, $($g)*> ::std::ops::Sub<$crate::Ratio<$V, P>> for $V {
            type Output = $V;
            #[inline(always)]
            fn sub(self, o: $crate::Ratio<$V, P>) -> $V { self - o.value() }
        }
        impl<$($g)*> $crate::scalar::Fused<$V> for $V {
            #[inline(always)]
            fn over_distance(self, r2: $V, n: i32) -> $V {
                $crate::Scalar::powi(self * self * $crate::Scalar::recip(r2), n / 2)
            }
            #[inline(always)]
            fn powers_of<const N: usize>(x: $V, c: [Self; N]) -> $V { $crate::scalar::plain_powers(x, c) }
        }
    };
    (@lanes [$($g:tt)*] $V:ty) => {
        $crate::lane_operators!(@number [$($g)*] $V);
        $crate::lane_operators!(@passive [$($g)*] $V, Add add);
        $crate::lane_operators!(@passive [$($g)*] $V, Sub sub);
        $crate::lane_operators!(@passive [$($g)*] $V, Mul mul);
        $crate::lane_operators!(@passive [$($g)*] $V, Div div);
        impl<$($g)*> $crate::scalar::Fused<$V> for $crate::Passive<$V> {
            #[inline(always)]
            fn over_distance(self, r2: $V, n: i32) -> $V {
                <$V as $crate::scalar::Fused<$V>>::over_distance(self.0, r2, n)
            }
            #[inline(always)]
            fn powers_of<const N: usize>(x: $V, c: [Self; N]) -> $V { $crate::scalar::plain_powers(x, c) }
        }
        impl<$($g)*> $crate::scalar::Fused<$V> for f64 {
            #[inline(always)]
            fn over_distance(self, r2: $V, n: i32) -> $V {
                $crate::Scalar::powi(r2, -n / 2) * $crate::Scalar::powi(self, n)
            }
            #[inline(always)]
            fn powers_of<const N: usize>(x: $V, c: [Self; N]) -> $V { $crate::scalar::plain_powers(x, c) }
        }
    };
    (@passive [$($g:tt)*] $V:ty, $T:ident $f:ident) => {
        impl<$($g)*> ::std::ops::$T<$crate::Passive<$V>> for $V {
            type Output = $V;
            #[inline(always)]
            fn $f(self, o: $crate::Passive<$V>) -> $V { ::std::ops::$T::$f(self, o.0) }
        }
        impl<$($g)*> ::std::ops::$T<$V> for $crate::Passive<$V> {
            type Output = $V;
            #[inline(always)]
            fn $f(self, o: $V) -> $V { ::std::ops::$T::$f(self.0, o) }
        }
    };
    (@lanes $($V:ty),*) => { $( $crate::lane_operators!(@lanes [] $V); )* };
    ($($V:ty),*) => { $( $crate::lane_operators!(@number [] $V); )* };
}

lane_operators!(f64);

/// `1.0 / r` as a number of any kind multiplies a coefficient of a vector type.
#[doc(hidden)]
#[macro_export]
macro_rules! ratio_times {
    ([$($g:tt)*] $X:ty) => {
        impl<$($g)* Num: $crate::Scalar> ::std::ops::Mul<$crate::Ratio<Num, f64>> for $X
        where Num: ::std::ops::Mul<$X, Output = Num>
        {
            type Output = Num;
            #[inline(always)]
            fn mul(self, o: $crate::Ratio<Num, f64>) -> Num {
                <Num as ::std::ops::Mul<$X>>::mul(o.scaled(), self)
            }
        }
    };
}
ratio_times!([] f64);

impl Scalar for f64 {
    type Mask = bool;
    #[inline(always)]
    fn constant(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn vanishes(self) -> bool {
        self == 0.0
    }
    #[inline(always)]
    fn recip(self) -> f64 {
        1.0 / self
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn rsqrt(self) -> f64 {
        1.0 / f64::sqrt(self)
    }
    #[inline(always)]
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    #[inline(always)]
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    #[inline(always)]
    fn sin(self) -> f64 {
        f64::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> f64 {
        f64::cos(self)
    }
    #[inline(always)]
    fn tanh(self) -> f64 {
        f64::tanh(self)
    }
    #[inline(always)]
    fn acos(self) -> f64 {
        f64::acos(self.clamp(-1.0, 1.0))
    }
    #[inline(always)]
    fn atan2(self, x: f64) -> f64 {
        f64::atan2(self, x)
    }
    #[inline(always)]
    fn erfc(self) -> f64 {
        crate::special::erfc(self)
    }
    #[inline(always)]
    fn powf(self, p: f64) -> f64 {
        f64::powf(self, p)
    }
    #[inline(always)]
    fn lt(self, o: f64) -> bool {
        self < o
    }
    #[inline(always)]
    fn le(self, o: f64) -> bool {
        self <= o
    }
    #[inline(always)]
    fn select(mask: bool, a: f64, b: f64) -> f64 {
        if mask { a } else { b }
    }
    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }
}
