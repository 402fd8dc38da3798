//! Lennard-Jones 9-6.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Mixing, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = 4ε [(σ/r)⁹ − (σ/r)⁶]: a softer wall than 12-6. ε is not the depth, which is 16ε/27. (COMPASS and its kin write
/// ε [2 (σ/r)⁹ − 3 (σ/r)⁶] instead.)
pub struct Lj96;

record!(
    /// What the user gives.
    Lj96Params {
        /// Strength.
        epsilon,
        /// Where the energy is zero.
        sigma
    }
);
record!(
    /// c₉ = 4εσ⁹, c₆ = 4εσ⁶.
    C96 { c9, c6 }
);

impl Energy for Lj96 {
    const ABOUT: About = About {
        name: "lj96",
        summary: "Dispersion with a softer repulsion than Lennard-Jones 12-6.",
        formula: "E(r) = 4 epsilon [(sigma/r)^9 - (sigma/r)^6]",
        source: "the exponents 9 and 6 in the form of J. E. Lennard-Jones, Proc. R. Soc. A 106, 463 (1924)",
        params: &[
            Param::new("epsilon", Dimension::ENERGY, "strength; the well is 16/27 of it deep")
                .range(Range::NonNegative)
                .mixing(Mixing::Depth)
                .example(0.9),
            Param::new("sigma", Dimension::LENGTH, "distance at which the energy is zero")
                .range(Range::NonNegative)
                .mixing(Mixing::Size)
                .example(0.34),
        ],
    };
    type Params<T: Copy> = Lj96Params<T>;
    type Prepared<T: Copy> = C96<T>;
    fn prepare<T: Scalar>(p: &Lj96Params<T>) -> C96<T> {
        let s3 = p.sigma.powi(3);
        let c6 = p.epsilon * s3.squared() * 4.0;
        C96 { c9: c6 * s3, c6 }
    }
}

impl PairEnergy for Lj96 {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &C96<P>) -> S {
        let x = r.powi(-3);
        x.squared() * (p.c9 * x - p.c6)
    }
}
