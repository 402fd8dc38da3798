//! Lennard-Jones.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Mixing, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = 4ε [(σ/r)¹² − (σ/r)⁶]: dispersion and the repulsion of closed shells.
pub struct LennardJones;

record!(
    /// What the user gives.
    LennardJonesParams {
        /// Depth of the well.
        epsilon,
        /// Where the energy is zero.
        sigma
    }
);
record!(
    /// c₁₂ = 4εσ¹², c₆ = 4εσ⁶.
    C126 { c12, c6 }
);

impl Energy for LennardJones {
    const ABOUT: About = About {
        name: "lennard-jones",
        summary: "Dispersion and short-range repulsion of closed-shell atoms.",
        formula: "E(r) = 4 epsilon [(sigma/r)^12 - (sigma/r)^6]",
        source: "J. E. Lennard-Jones, Proc. Phys. Soc. 43, 461 (1931)",
        params: &[
            Param::new("epsilon", Dimension::ENERGY, "depth of the well")
                .range(Range::NonNegative)
                .mixing(Mixing::Depth)
                .example(0.996),
            Param::new("sigma", Dimension::LENGTH, "distance at which the energy is zero")
                .range(Range::NonNegative)
                .mixing(Mixing::Size)
                .example(0.3405),
        ],
    };
    type Params<T: Copy> = LennardJonesParams<T>;
    type Prepared<T: Copy> = C126<T>;
    fn prepare<T: Scalar>(p: &LennardJonesParams<T>) -> C126<T> {
        let s6 = p.sigma.powi(6);
        let c6 = p.epsilon * s6 * 4.0;
        C126 { c12: c6 * s6, c6 }
    }
}

impl PairEnergy for LennardJones {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &C126<P>) -> S {
        r.powi(-6).powers([-p.c6, p.c12])
    }
}
