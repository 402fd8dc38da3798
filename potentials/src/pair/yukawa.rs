//! Yukawa.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = A e^(−κr)/r: screened repulsion (A > 0) or attraction of colloids and plasmas.
pub struct Yukawa;

record!(
    /// What the user gives and the formula uses.
    YukawaParams {
        /// Strength.
        a,
        /// Inverse screening length.
        kappa
    }
);

impl Energy for Yukawa {
    const ABOUT: About = About {
        name: "yukawa",
        summary: "Screened repulsion or attraction; for colloids and dusty plasmas.",
        formula: "E(r) = A exp(-kappa r)/r",
        source: "H. Yukawa, Proc. Phys.-Math. Soc. Jpn. 17, 48 (1935)",
        params: &[
            Param::new("A", Dimension::ENERGY.times(Dimension::LENGTH), "strength").example(50.0),
            Param::new("kappa", Dimension::INVERSE_LENGTH, "inverse screening length")
                .range(Range::NonNegative)
                .example(8.0),
        ],
    };
    type Params<T: Copy> = YukawaParams<T>;
    type Prepared<T: Copy> = YukawaParams<T>;
    fn prepare<T: Scalar>(p: &YukawaParams<T>) -> YukawaParams<T> {
        *p
    }
}

impl PairEnergy for Yukawa {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &YukawaParams<P>) -> S {
        let r = r.rooted();
        p.a * (-(p.kappa * r.value())).exp() * r.recip()
    }
}
