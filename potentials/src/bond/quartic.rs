//! Quartic bond.

use crate::energy::{BondEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = k₂ x² + k₃ x³ + k₄ x⁴ with x = r − r₀. There is no factor ½: the coefficients are those of the published
/// class II force fields.
pub struct QuarticBond;

record!(
    /// What the user gives.
    QuarticBondParams {
        /// Length at rest.
        r0,
        /// Quadratic coefficient.
        k2,
        /// Cubic coefficient.
        k3,
        /// Quartic coefficient.
        k4
    }
);

impl Energy for QuarticBond {
    const ABOUT: About = About {
        name: "quartic",
        summary: "An anharmonic bond, as in class II force fields.",
        formula: "E(r) = k2 x^2 + k3 x^3 + k4 x^4, x = r - r0 (no factor 1/2)",
        source: "H. Sun, J. Phys. Chem. B 102, 7338 (1998)",
        params: &[
            Param::new("r0", Dimension::LENGTH, "length at rest").range(Range::NonNegative).example(0.153),
            Param::new("k2", Dimension::STIFFNESS, "quadratic coefficient (half the stiffness)")
                .range(Range::NonNegative)
                .example(1.3e5),
            Param::new("k3", Dimension::ENERGY.per(Dimension::LENGTH.powi(3)), "cubic coefficient")
                .example(-2.6e5),
            Param::new("k4", Dimension::ENERGY.per(Dimension::LENGTH.powi(4)), "quartic coefficient")
                .example(3e5),
        ],
    };
    type Params<T: Copy> = QuarticBondParams<T>;
    type Prepared<T: Copy> = QuarticBondParams<T>;
    fn prepare<T: Scalar>(p: &QuarticBondParams<T>) -> QuarticBondParams<T> {
        *p
    }
}

impl BondEnergy for QuarticBond {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &QuarticBondParams<P>) -> S {
        let x = r - p.r0;
        x * x.powers([p.k2, p.k3, p.k4])
    }
}
