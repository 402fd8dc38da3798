//! Harmonic angle.

use crate::energy::{AngleEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Angle, Coefficient, Scalar, record};
use std::f64::consts::PI;

/// E(θ) = ½ k (θ − θ₀)². Programs that write k (θ − θ₀)² (Amber, CHARMM, LAMMPS) have half this k.
///
/// At exactly θ = π the energy has a corner unless θ₀ = π.
pub struct HarmonicAngle;

record!(
    /// What the user gives.
    HarmonicAngleParams {
        /// Stiffness.
        k,
        /// Angle at rest.
        theta0
    }
);

impl Energy for HarmonicAngle {
    const ABOUT: About = About {
        name: "harmonic",
        summary: "A spring in the angle.",
        formula: "E(theta) = 1/2 k (theta - theta0)^2",
        source: "W. D. Cornell et al., J. Am. Chem. Soc. 117, 5179 (1995), eq. 1, there without the factor 1/2",
        params: &[
            Param::new("k", Dimension::ENERGY, "stiffness per radian squared; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(380.0),
            Param::new("theta0", Dimension::NONE, "angle at rest")
                .range(Range::Within(0.0, PI))
                .example(1.911),
        ],
    };
    type Params<T: Copy> = HarmonicAngleParams<T>;
    type Prepared<T: Copy> = HarmonicAngleParams<T>;
    fn prepare<T: Scalar>(p: &HarmonicAngleParams<T>) -> HarmonicAngleParams<T> {
        *p
    }
}

impl AngleEnergy for HarmonicAngle {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(theta: Angle<S>, p: &HarmonicAngleParams<P>) -> S {
        0.5 * p.k * (theta.value() - p.theta0).squared()
    }
}
