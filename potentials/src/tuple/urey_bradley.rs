//! Urey–Bradley angle.

use crate::energy::{Energy, TupleEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Angle, Coefficient, Scalar, Vec3, record};
use std::f64::consts::PI;

/// E = ½ k (θ − θ₀)² + ½ kᵤ (r₁₃ − rᵤ)²: a harmonic angle and a spring between its outer atoms.
pub struct UreyBradley;

record!(
    /// What the user gives.
    UreyBradleyParams {
        /// Stiffness of the angle.
        k,
        /// Angle at rest.
        theta0,
        /// Stiffness of the spring.
        k_ub,
        /// Its length at rest.
        r_ub
    }
);

impl Energy for UreyBradley {
    const ABOUT: About = About {
        name: "urey-bradley",
        summary: "A harmonic angle with a spring between its outer atoms, as in CHARMM.",
        formula: "E = 1/2 k (theta - theta0)^2 + 1/2 k-ub (r13 - r-ub)^2",
        source: "H. C. Urey and C. A. Bradley, Phys. Rev. 38, 1969 (1931)",
        params: &[
            Param::new("k", Dimension::ENERGY, "stiffness of the angle; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(380.0),
            Param::new("theta0", Dimension::NONE, "angle at rest")
                .range(Range::Within(0.0, PI))
                .example(1.911),
            Param::new(
                "k-ub",
                Dimension::STIFFNESS,
                "stiffness of the spring; the energy has the factor 1/2",
            )
            .range(Range::NonNegative)
            .example(9000.0),
            Param::new("r-ub", Dimension::LENGTH, "length of the spring at rest")
                .range(Range::NonNegative)
                .example(0.21),
        ],
    };
    type Params<T: Copy> = UreyBradleyParams<T>;
    type Prepared<T: Copy> = UreyBradleyParams<T>;
    fn prepare<T: Scalar>(p: &UreyBradleyParams<T>) -> UreyBradleyParams<T> {
        *p
    }
}

impl TupleEnergy<3> for UreyBradley {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>([a, b, c]: [Vec3<S>; 3], p: &UreyBradleyParams<P>) -> S {
        let bend = Angle::between(a - b, c - b).value() - p.theta0;
        let stretch = (c - a).norm() - p.r_ub;
        0.5 * p.k * bend.squared() + 0.5 * p.k_ub * stretch.squared()
    }
}
