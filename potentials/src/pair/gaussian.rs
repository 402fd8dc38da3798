//! Gaussian well.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = −A e^(−B r²): a soft well (A > 0) or a soft core (A < 0) without a singularity.
pub struct Gaussian;

record!(
    /// What the user gives and the formula uses.
    GaussianParams {
        /// Depth.
        a,
        /// Inverse squared width.
        b
    }
);

impl Energy for Gaussian {
    const ABOUT: About = About {
        name: "gaussian",
        summary: "A Gaussian well; with negative A the Gaussian core model.",
        formula: "E(r) = -A exp(-B r^2)",
        source: "F. H. Stillinger, J. Chem. Phys. 65, 3968 (1976), where A < 0",
        params: &[
            Param::new("A", Dimension::ENERGY, "depth at r = 0").example(3.0),
            Param::new("B", Dimension::LENGTH.powi(-2), "1/(2 w^2) for a standard deviation w")
                .range(Range::NonNegative)
                .example(9.0),
        ],
    };
    type Params<T: Copy> = GaussianParams<T>;
    type Prepared<T: Copy> = GaussianParams<T>;
    fn prepare<T: Scalar>(p: &GaussianParams<T>) -> GaussianParams<T> {
        GaussianParams { a: -p.a, b: -p.b }
    }
}

impl PairEnergy for Gaussian {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &GaussianParams<P>) -> S {
        p.a * (p.b * r.squared()).exp()
    }
}
