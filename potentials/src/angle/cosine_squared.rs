//! Angle harmonic in its cosine.

use crate::energy::{AngleEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Angle, Coefficient, Scalar, record};
use std::f64::consts::PI;

/// E(θ) = ½ k (cos θ − cos θ₀)²: no arc function, no corner at a straight angle. Its stiffness at θ₀ is k sin²θ₀.
pub struct CosineSquaredAngle;

record!(
    /// What the user gives.
    CosineSquaredAngleParams {
        /// Strength.
        k,
        /// Angle at rest.
        theta0
    }
);
record!(
    /// ½k and cos θ₀.
    CosineSquaredAnglePrepared { half_k, cos0 }
);

impl Energy for CosineSquaredAngle {
    const ABOUT: About = About {
        name: "cosine-squared",
        summary: "An angle harmonic in its cosine, as in GROMOS and MARTINI.",
        formula: "E(theta) = 1/2 k (cos(theta) - cos(theta0))^2",
        source: "W. F. van Gunsteren et al., Biomolecular Simulation: the GROMOS96 Manual and User Guide (1996)",
        params: &[
            Param::new("k", Dimension::ENERGY, "strength; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(380.0),
            Param::new("theta0", Dimension::NONE, "angle at rest")
                .range(Range::Within(0.0, PI))
                .example(1.911),
        ],
    };
    type Params<T: Copy> = CosineSquaredAngleParams<T>;
    type Prepared<T: Copy> = CosineSquaredAnglePrepared<T>;
    fn prepare<T: Scalar>(p: &CosineSquaredAngleParams<T>) -> CosineSquaredAnglePrepared<T> {
        CosineSquaredAnglePrepared { half_k: p.k * 0.5, cos0: p.theta0.cos() }
    }
}

impl AngleEnergy for CosineSquaredAngle {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(theta: Angle<S>, p: &CosineSquaredAnglePrepared<P>) -> S {
        p.half_k * (theta.cos() - p.cos0).squared()
    }
}
