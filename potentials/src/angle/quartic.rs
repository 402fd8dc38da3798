//! Quartic angle.

use crate::energy::{AngleEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Angle, Coefficient, Scalar, record};
use std::f64::consts::PI;

/// E(θ) = k₂ x² + k₃ x³ + k₄ x⁴ with x = θ − θ₀. There is no factor ½: the coefficients are those of the published
/// class II force fields.
pub struct QuarticAngle;

record!(
    /// What the user gives.
    QuarticAngleParams {
        /// Angle at rest.
        theta0,
        /// Quadratic coefficient.
        k2,
        /// Cubic coefficient.
        k3,
        /// Quartic coefficient.
        k4
    }
);

impl Energy for QuarticAngle {
    const ABOUT: About = About {
        name: "quartic",
        summary: "An anharmonic angle, as in class II force fields.",
        formula: "E(theta) = k2 x^2 + k3 x^3 + k4 x^4, x = theta - theta0 (no factor 1/2)",
        source: "H. Sun, J. Phys. Chem. B 102, 7338 (1998)",
        params: &[
            Param::new("theta0", Dimension::NONE, "angle at rest")
                .range(Range::Within(0.0, PI))
                .example(1.911),
            Param::new("k2", Dimension::ENERGY, "quadratic coefficient (half the stiffness)")
                .range(Range::NonNegative)
                .example(200.0),
            Param::new("k3", Dimension::ENERGY, "cubic coefficient").example(-40.0),
            Param::new("k4", Dimension::ENERGY, "quartic coefficient").example(15.0),
        ],
    };
    type Params<T: Copy> = QuarticAngleParams<T>;
    type Prepared<T: Copy> = QuarticAngleParams<T>;
    fn prepare<T: Scalar>(p: &QuarticAngleParams<T>) -> QuarticAngleParams<T> {
        *p
    }
}

impl AngleEnergy for QuarticAngle {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(theta: Angle<S>, p: &QuarticAngleParams<P>) -> S {
        let x = theta.value() - p.theta0;
        x * x.powers([p.k2, p.k3, p.k4])
    }
}
