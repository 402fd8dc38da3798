//! A potential of one's own: one file, and from then on it is tested, documented by `md explain`, usable in an
//! input, differentiable in its parameters and fast.

use potentials::param::{About, Dimension, Mixing, Param, Range};
use potentials::{Coefficient, Distance, Energy, PairEnergy, Scalar, record};

/// E(r) = ε [2 (σ/r)⁹ − 3 (σ/r)⁶], the pair energy of class II force fields.
pub struct NineSix;

record!(
    /// What the user gives.
    NineSixParams {
        /// Depth of the well.
        epsilon,
        /// Distance of the minimum.
        sigma
    }
);

impl Energy for NineSix {
    const ABOUT: About = About {
        name: "nine-six",
        summary: "A softer repulsion than Lennard-Jones's.",
        formula: "E(r) = epsilon [2 (sigma/r)^9 - 3 (sigma/r)^6]",
        source: "J. R. Maple et al., J. Comput. Chem. 15, 162 (1994)",
        params: &[
            Param::new("epsilon", Dimension::ENERGY, "depth of the well")
                .range(Range::NonNegative)
                .mixing(Mixing::Depth),
            Param::new("sigma", Dimension::LENGTH, "distance of the minimum")
                .range(Range::Positive)
                .mixing(Mixing::Size),
        ],
    };
    type Params<T: Copy> = NineSixParams<T>;
    type Prepared<T: Copy> = NineSixParams<T>;
    fn prepare<T: Scalar>(p: &Self::Params<T>) -> Self::Prepared<T> {
        *p
    }
}

impl PairEnergy for NineSix {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &Self::Prepared<P>) -> S {
        let s = (p.sigma / r).powi(1);
        p.epsilon * (2.0 * s.powi(9) - 3.0 * s.powi(6))
    }
}
