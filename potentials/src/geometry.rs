//! Vectors, angles and dihedrals over any number.

use crate::scalar::{Coefficient, Scalar};
use std::ops::{Add, Mul, Neg, Sub};

/// A vector in space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vec3<S> {
    /// First component.
    pub x: S,
    /// Second component.
    pub y: S,
    /// Third component.
    pub z: S,
}

impl<S> Vec3<S> {
    /// From its components.
    #[inline(always)]
    pub const fn new(x: S, y: S, z: S) -> Self {
        Self { x, y, z }
    }
}

impl<S: Scalar> Vec3<S> {
    /// From plain numbers.
    #[inline(always)]
    pub fn constant([x, y, z]: [f64; 3]) -> Self {
        Self { x: S::constant(x), y: S::constant(y), z: S::constant(z) }
    }
    /// a · b
    #[inline(always)]
    pub fn dot(self, o: Self) -> S {
        S::dot([self.x, self.y, self.z], [o.x, o.y, o.z])
    }
    /// a × b
    #[inline(always)]
    pub fn cross(self, o: Self) -> Self {
        Self {
            x: S::determinant([self.y, self.z], [o.y, o.z]),
            y: S::determinant([self.z, self.x], [o.z, o.x]),
            z: S::determinant([self.x, self.y], [o.x, o.y]),
        }
    }
    /// |a|²
    #[inline(always)]
    pub fn norm_squared(self) -> S {
        S::norm_squared([self.x, self.y, self.z])
    }
    /// |a|; the zero vector has length 0 with derivative 0 (a subgradient).
    #[inline(always)]
    pub fn norm(self) -> S {
        root_or_zero(self.norm_squared())
    }
    /// a scaled by a number.
    #[inline(always)]
    pub fn scale(self, k: S) -> Self {
        Self { x: self.x * k, y: self.y * k, z: self.z * k }
    }
}

/// √x where x > 0, else 0 with derivative 0.
#[inline(always)]
pub(crate) fn root_or_zero<S: Scalar>(x: S) -> S {
    let zero = S::constant(0.0);
    S::select(zero.lt(x), x.sqrt(), zero)
}

impl<S: Add<Output = S>> Add for Vec3<S> {
    type Output = Self;
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        Self { x: self.x + o.x, y: self.y + o.y, z: self.z + o.z }
    }
}
impl<S: Sub<Output = S>> Sub for Vec3<S> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        Self { x: self.x - o.x, y: self.y - o.y, z: self.z - o.z }
    }
}
impl<S: Neg<Output = S>> Neg for Vec3<S> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { x: -self.x, y: -self.y, z: -self.z }
    }
}
impl<S: Mul<f64, Output = S>> Mul<f64> for Vec3<S> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, k: f64) -> Self {
        Self { x: self.x * k, y: self.y * k, z: self.z * k }
    }
}

/// The angle at the middle one of three atoms, 0 ≤ θ ≤ π, held as its sine and cosine: energies in cos θ never
/// take an arc function, and θ itself comes from both, so that nearly straight angles lose no digits.
#[derive(Clone, Copy, Debug)]
pub struct Angle<S> {
    sin: S,
    cos: S,
}

impl<S: Scalar> Angle<S> {
    /// Between the vectors from the middle atom to its two partners.
    ///
    /// At exactly 0 or π, where sin θ has a corner, its derivative is taken as 0: the force is that of the
    /// cosine alone.
    #[inline(always)]
    pub fn between(a: Vec3<S>, b: Vec3<S>) -> Self {
        let inverse = (a.norm_squared() * b.norm_squared()).rsqrt();
        Self { sin: a.cross(b).norm() * inverse, cos: a.dot(b) * inverse }
    }
    /// From sine and cosine (of the same angle).
    #[inline(always)]
    pub fn from_sin_cos(sin: S, cos: S) -> Self {
        Self { sin, cos }
    }
    /// θ in radians.
    #[inline(always)]
    pub fn value(self) -> S {
        self.sin.atan2(self.cos)
    }
    /// sin θ
    #[inline(always)]
    pub fn sin(self) -> S {
        self.sin
    }
    /// cos θ
    #[inline(always)]
    pub fn cos(self) -> S {
        self.cos
    }
}

/// The dihedral of four atoms in a chain, −π < φ ≤ π, IUPAC sign (cis 0, trans π, clockwise positive), held as
/// its sine and cosine.
#[derive(Clone, Copy, Debug)]
pub struct Dihedral<S> {
    sin: S,
    cos: S,
}

impl<S: Scalar> Dihedral<S> {
    /// From the vectors 1→2, 2→3, 3→4. Undefined (an infinite derivative) where three atoms in a row are
    /// exactly on a line.
    #[inline(always)]
    pub fn along(b1: Vec3<S>, b2: Vec3<S>, b3: Vec3<S>) -> Self {
        // with m = b1×b2, n = b2×b3: cos φ = m·n / |m||n|, sin φ = |b2| b1·n / |m||n|
        let (m, n) = (b1.cross(b2), b2.cross(b3));
        let inverse = (m.norm_squared() * n.norm_squared()).rsqrt();
        Self { sin: b2.norm() * b1.dot(n) * inverse, cos: m.dot(n) * inverse }
    }
    /// From sine and cosine (of the same angle).
    #[inline(always)]
    pub fn from_sin_cos(sin: S, cos: S) -> Self {
        Self { sin, cos }
    }
    /// φ in radians.
    #[inline(always)]
    pub fn value(self) -> S {
        self.sin.atan2(self.cos)
    }
    /// φ − φ₀ in (−π, π], the shortest way round.
    #[inline(always)]
    pub fn deviation<P: Coefficient<S>>(self, phi0: P) -> S {
        self.deviation_from(phi0.sin(), phi0.cos())
    }
    /// φ − φ₀ in (−π, π], where sine and cosine of φ₀ are at hand.
    #[inline(always)]
    pub fn deviation_from<P: Coefficient<S>>(self, sin0: P, cos0: P) -> S {
        // by the addition theorem
        let sin = cos0 * self.sin - sin0 * self.cos;
        let cos = cos0 * self.cos + sin0 * self.sin;
        sin.atan2(cos)
    }
    /// sin φ
    #[inline(always)]
    pub fn sin(self) -> S {
        self.sin
    }
    /// cos φ
    #[inline(always)]
    pub fn cos(self) -> S {
        self.cos
    }
    /// The dihedral nφ for a whole n ≥ 0, by repeated angle addition.
    #[inline(always)]
    pub fn multiple(self, n: u32) -> Self {
        let (mut sin, mut cos) = (S::constant(0.0), S::constant(1.0));
        for _ in 0..n {
            (sin, cos) = (sin * self.cos + cos * self.sin, cos * self.cos - sin * self.sin);
        }
        Self { sin, cos }
    }
}
