//! What the tests of this crate share: a function of coordinates and parameters in any kind of number, its
//! derivatives by `Dual`, and the same by differences.
#![allow(dead_code)]

pub mod random;

use potentials::{Coefficient, Dual, Scalar};
pub use random::Random;

/// An energy as a function of plain lists.
pub trait Function {
    fn eval<S: Scalar, P: Coefficient<S>>(&self, x: &[S], p: &[P]) -> S;
}

#[inline(never)]
pub fn value<F: Function>(f: &F, x: &[f64], p: &[f64]) -> f64 {
    f.eval::<f64, f64>(x, p)
}

fn lift(v: &[f64], seed: Option<usize>) -> Vec<Dual<f64>> {
    v.iter()
        .enumerate()
        .map(|(k, &x)| if Some(k) == seed { Dual::variable(x) } else { Dual::passive(x) })
        .collect()
}

fn lift_twice(v: &[f64], outer: Option<usize>, inner: Option<usize>) -> Vec<Dual<Dual<f64>>> {
    lift(v, inner)
        .into_iter()
        .enumerate()
        .map(|(k, x)| if Some(k) == outer { Dual::variable(x) } else { Dual::passive(x) })
        .collect()
}

/// ∂f/∂xᵢ, parameters passive.
#[inline(never)]
pub fn slope<F: Function>(f: &F, x: &[f64], p: &[f64], i: usize) -> f64 {
    f.eval::<Dual<f64>, f64>(&lift(x, Some(i)), p).tangent
}
/// ∂²f/∂xᵢ∂xⱼ, parameters passive.
#[inline(never)]
pub fn curvature<F: Function>(f: &F, x: &[f64], p: &[f64], i: usize, j: usize) -> f64 {
    f.eval::<Dual<Dual<f64>>, f64>(&lift_twice(x, Some(i), Some(j)), p).tangent.tangent
}
/// ∂f/∂pₖ
#[inline(never)]
pub fn sensitivity<F: Function>(f: &F, x: &[f64], p: &[f64], k: usize) -> f64 {
    f.eval::<Dual<f64>, Dual<f64>>(&lift(x, None), &lift(p, Some(k))).tangent
}
/// ∂²f/∂xᵢ∂pₖ
#[inline(never)]
pub fn mixed<F: Function>(f: &F, x: &[f64], p: &[f64], i: usize, k: usize) -> f64 {
    let (x, p) = (lift_twice(x, Some(i), None), lift_twice(p, None, Some(k)));
    f.eval::<Dual<Dual<f64>>, Dual<Dual<f64>>>(&x, &p).tangent.tangent
}

/// The value and the derivatives of a [`Function`], compiled once each.
pub trait Derivatives {
    fn value(&self, x: &[f64], p: &[f64]) -> f64;
    fn slope(&self, x: &[f64], p: &[f64], i: usize) -> f64;
    fn curvature(&self, x: &[f64], p: &[f64], i: usize, j: usize) -> f64;
    fn sensitivity(&self, x: &[f64], p: &[f64], k: usize) -> f64;
    fn mixed(&self, x: &[f64], p: &[f64], i: usize, k: usize) -> f64;
}
impl<F: Function> Derivatives for F {
    fn value(&self, x: &[f64], p: &[f64]) -> f64 {
        value(self, x, p)
    }
    fn slope(&self, x: &[f64], p: &[f64], i: usize) -> f64 {
        slope(self, x, p, i)
    }
    fn curvature(&self, x: &[f64], p: &[f64], i: usize, j: usize) -> f64 {
        curvature(self, x, p, i, j)
    }
    fn sensitivity(&self, x: &[f64], p: &[f64], k: usize) -> f64 {
        sensitivity(self, x, p, k)
    }
    fn mixed(&self, x: &[f64], p: &[f64], i: usize, k: usize) -> f64 {
        mixed(self, x, p, i, k)
    }
}

/// g′(0) by central differences with steps h, h/1.6, … and Richardson's extrapolation; the entry of the table
/// that agrees best with its neighbours (Ridders).
pub fn difference(h: f64, g: impl Fn(f64) -> f64) -> f64 {
    const N: usize = 10;
    const RATIO: f64 = 1.6;
    let mut table = [[0.0_f64; N]; N];
    let (mut best, mut error) = (f64::NAN, f64::INFINITY);
    let mut step = h;
    for i in 0..N {
        table[i][0] = (g(step) - g(-step)) / (2.0 * step);
        let mut factor = RATIO * RATIO;
        for j in 1..=i {
            table[i][j] = (table[i][j - 1] * factor - table[i - 1][j - 1]) / (factor - 1.0);
            factor *= RATIO * RATIO;
            let spread = (table[i][j] - table[i][j - 1]).abs().max((table[i][j] - table[i - 1][j - 1]).abs());
            if spread < error {
                (best, error) = (table[i][j], spread);
            }
        }
        step /= RATIO;
    }
    best
}

fn moved(v: &[f64], k: usize, d: f64) -> Vec<f64> {
    let mut v = v.to_vec();
    v[k] += d;
    v
}

/// How closely derivatives must agree, relative to each with a floor of 1e-3 of the largest.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Step in the coordinates.
    pub step: f64,
    /// First derivatives.
    pub first: f64,
    /// Second derivatives.
    pub second: f64,
    /// The energy of which round-off is allowed for, where it is larger than the energy itself.
    pub scale: f64,
}

pub const SMOOTH: Limits = Limits { step: 0.01, first: 1e-8, second: 1e-8, scale: 0.0 };

fn compare(what: &str, limit: f64, noise: f64, pairs: &[(String, f64, f64)]) {
    let largest = pairs.iter().map(|(_, _, d)| d.abs()).fold(0.0, f64::max);
    for (name, ad, fd) in pairs {
        let allowed = limit * fd.abs().max(1e-3 * largest) + noise;
        assert!((ad - fd).abs() <= allowed, "{what}: {name} is {ad}, differences give {fd}");
    }
}

/// All first and second derivatives in coordinates, and those with each parameter, against differences.
pub fn check(what: &str, f: &dyn Derivatives, x: &[f64], p: &[f64], limits: Limits) {
    let h = limits.step;
    let e = f.value(x, p);
    assert!(e.is_finite(), "{what}: energy {e} at {x:?}, {p:?}");
    // round-off of the differences themselves
    let noise = (1e-13 * e.abs() + 1e-15 * limits.scale) / (0.1 * h) + 1e-30;

    let n = x.len();
    let first: Vec<_> = (0..n)
        .map(|i| {
            let fd = difference(h, |d| f.value(&moved(x, i, d), p));
            (format!("dE/dx{i} at {x:?}"), f.slope(x, p, i), fd)
        })
        .collect();
    compare(what, limits.first, noise, &first);
    let largest = first.iter().map(|t| t.1.abs()).fold(0.0, f64::max);

    let second: Vec<_> = (0..n * n)
        .map(|ij| {
            let (i, j) = (ij / n, ij % n);
            let fd = difference(h, |d| f.slope(&moved(x, j, d), p, i));
            (format!("d2E/dx{i}dx{j} at {x:?}"), f.curvature(x, p, i, j), fd)
        })
        .collect();
    compare(what, limits.second, 1e-13 * largest / (0.1 * h), &second);

    for k in 0..p.len() {
        let h = 0.01 * p[k].abs().max(1e-3);
        let ad = f.sensitivity(x, p, k);
        let fd = difference(h, |d| f.value(x, &moved(p, k, d)));
        let noise = 1e-13 * e.abs() / (0.1 * h) + 1e-30;
        compare(what, limits.first, noise, &[(format!("dE/dp{k} at {x:?}"), ad, fd)]);
        let cross: Vec<_> = (0..n)
            .map(|i| {
                let fd = difference(h, |d| f.slope(x, &moved(p, k, d), i));
                (format!("d2E/dx{i}dp{k} at {x:?}"), f.mixed(x, p, i, k), fd)
            })
            .collect();
        compare(what, limits.second, 1e-13 * largest / (0.1 * h), &cross);
    }
}
