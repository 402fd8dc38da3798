//! Cosine angle.

use crate::energy::{AngleEnergy, Energy};
use crate::param::{About, Dimension, Param};
use crate::{Angle, Coefficient, Scalar, record};

/// E(θ) = k (1 + cos θ): straight at rest (k > 0); the bending of a worm-like chain.
pub struct CosineAngle;

record!(
    /// What the user gives.
    CosineAngleParams {
        /// Strength.
        k
    }
);

impl Energy for CosineAngle {
    const ABOUT: About = About {
        name: "cosine",
        summary: "An angle that is straight at rest; the bending of semiflexible chains.",
        formula: "E(theta) = k (1 + cos(theta))",
        source: "O. Kratky and G. Porod, Recl. Trav. Chim. Pays-Bas 68, 1106 (1949), the discrete worm-like chain",
        params: &[Param::new("k", Dimension::ENERGY, "bending stiffness").example(38.0)],
    };
    type Params<T: Copy> = CosineAngleParams<T>;
    type Prepared<T: Copy> = CosineAngleParams<T>;
    fn prepare<T: Scalar>(p: &CosineAngleParams<T>) -> CosineAngleParams<T> {
        *p
    }
}

impl AngleEnergy for CosineAngle {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(theta: Angle<S>, p: &CosineAngleParams<P>) -> S {
        p.k * (theta.cos() + 1.0)
    }
}
