//! Periodic angle.

use crate::dihedral::{PeriodicDihedral, PeriodicDihedralParams, PeriodicDihedralPrepared};
use crate::energy::{AngleEnergy, DihedralEnergy, Energy};
use crate::param::{About, Param};
use crate::{Angle, Coefficient, Dihedral, Dimension, Scalar};
use std::f64::consts::FRAC_PI_3;

/// E(θ) = k [1 + cos(nθ − θ₀)]: the periodic dihedral's series in the angle. With θ₀ = π and n from 2 to 4 it bends
/// about the angles of linear, trigonal and square coordination; k [1 − cos(θ − θ₁)], which has its minimum at θ₁, is
/// n = 1 with θ₀ = θ₁ + π; several of them make a Fourier series.
///
/// Unless θ₀ is a multiple of π the energy has a corner where the angle is straight, as sin θ has.
pub struct PeriodicAngle;

impl Energy for PeriodicAngle {
    const ABOUT: About = About {
        name: "periodic",
        summary: "A cosine of a multiple of the angle, as in DREIDING and UFF.",
        formula: "E(theta) = k [1 + cos(n theta - theta0)]",
        source: "A. K. Rappe et al., J. Am. Chem. Soc. 114, 10024 (1992), eq. 10, where k = K/n^2",
        params: &[
            Param::new("k", Dimension::ENERGY, "half the height of the barrier").example(7.0),
            PeriodicDihedral::ABOUT.params[1],
            Param::new("theta0", Dimension::NONE, "phase; for n = 1 the angle of highest energy")
                .example(FRAC_PI_3),
        ],
    };
    type Params<T: Copy> = PeriodicDihedralParams<T>;
    type Prepared<T: Copy> = PeriodicDihedralPrepared<T>;
    fn prepare<T: Scalar>(p: &PeriodicDihedralParams<T>) -> PeriodicDihedralPrepared<T> {
        PeriodicDihedral::prepare(p)
    }
}

impl AngleEnergy for PeriodicAngle {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(theta: Angle<S>, p: &PeriodicDihedralPrepared<P>) -> S {
        PeriodicDihedral::energy(Dihedral::from_sin_cos(theta.sin(), theta.cos()), p)
    }
}
