//! GROMOS-96 bond.

use crate::energy::{BondEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = ¼ k (r² − r₀²)²: a bond without a square root; its stiffness at r₀ is 2 k r₀².
pub struct G96Bond;

record!(
    /// What the user gives.
    G96BondParams {
        /// Strength.
        k,
        /// Length at rest.
        r0
    }
);
record!(
    /// ¼k and r₀².
    G96BondPrepared { quarter_k, r0_squared }
);

impl Energy for G96Bond {
    const ABOUT: About = About {
        name: "g96",
        summary: "The bond of the GROMOS force fields, quadratic in r^2.",
        formula: "E(r) = 1/4 k (r^2 - r0^2)^2",
        source: "W. F. van Gunsteren et al., Biomolecular Simulation: the GROMOS96 Manual and User Guide (1996)",
        params: &[
            Param::new(
                "k",
                Dimension::ENERGY.per(Dimension::LENGTH.powi(4)),
                "strength; the energy has the factor 1/4",
            )
            .range(Range::NonNegative)
            .example(8e6),
            Param::new("r0", Dimension::LENGTH, "length at rest").range(Range::NonNegative).example(0.153),
        ],
    };
    type Params<T: Copy> = G96BondParams<T>;
    type Prepared<T: Copy> = G96BondPrepared<T>;
    fn prepare<T: Scalar>(p: &G96BondParams<T>) -> G96BondPrepared<T> {
        G96BondPrepared { quarter_k: p.k * 0.25, r0_squared: p.r0.squared() }
    }
}

impl BondEnergy for G96Bond {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &G96BondPrepared<P>) -> S {
        p.quarter_k * (r.squared() - p.r0_squared).squared()
    }
}
