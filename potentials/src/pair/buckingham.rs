//! Buckingham (exp-6).

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = A e^(−r/ρ) − C/r⁶: an exponential wall and dispersion. At very short distance the dispersion wins and
/// the energy falls without bound.
pub struct Buckingham;

record!(
    /// What the user gives.
    BuckinghamParams {
        /// Strength of the repulsion.
        a,
        /// Its range.
        rho,
        /// Strength of the dispersion.
        c
    }
);
record!(
    /// A, −1/ρ, C.
    BuckinghamPrepared { a, slope, c }
);

impl Energy for Buckingham {
    const ABOUT: About = About {
        name: "buckingham",
        summary: "Exponential repulsion and dispersion; for oxides, salts and organic crystals.",
        formula: "E(r) = A exp(-r/rho) - C/r^6",
        source: "R. A. Buckingham, Proc. R. Soc. A 168, 264 (1938)",
        params: &[
            Param::new("A", Dimension::ENERGY, "strength of the repulsion")
                .range(Range::NonNegative)
                .example(1e5),
            Param::new("rho", Dimension::LENGTH, "range of the repulsion")
                .range(Range::Positive)
                .example(0.03),
            Param::new("C", Dimension::ENERGY.times(Dimension::LENGTH.powi(6)), "strength of the dispersion")
                .example(0.004),
        ],
    };
    type Params<T: Copy> = BuckinghamParams<T>;
    type Prepared<T: Copy> = BuckinghamPrepared<T>;
    fn prepare<T: Scalar>(p: &BuckinghamParams<T>) -> BuckinghamPrepared<T> {
        BuckinghamPrepared { a: p.a, slope: -p.rho.recip(), c: p.c }
    }
}

impl PairEnergy for Buckingham {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &BuckinghamPrepared<P>) -> S {
        p.a * (p.slope * r.value()).exp() - p.c * r.powi(-6)
    }
}
