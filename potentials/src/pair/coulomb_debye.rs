//! Coulomb with Debye's screening.

use crate::energy::{Energy, Factor, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = e^(−κr)/r, times Coulomb's constant and the charges: charges in an electrolyte.
pub struct CoulombDebye;

record!(
    /// What the user gives and the formula uses.
    CoulombDebyeParams {
        /// Inverse Debye length.
        kappa
    }
);

impl Energy for CoulombDebye {
    const ABOUT: About = About {
        name: "coulomb-debye",
        summary: "Charges screened by an electrolyte.",
        formula: "E(r) = k qi qj exp(-kappa r)/r",
        source: "P. Debye and E. Hueckel, Phys. Z. 24, 185 (1923)",
        params: &[Param::new("kappa", Dimension::INVERSE_LENGTH, "inverse screening length")
            .range(Range::NonNegative)
            .example(3.0)],
    };
    type Params<T: Copy> = CoulombDebyeParams<T>;
    type Prepared<T: Copy> = CoulombDebyeParams<T>;
    fn prepare<T: Scalar>(p: &CoulombDebyeParams<T>) -> CoulombDebyeParams<T> {
        *p
    }
}

impl PairEnergy for CoulombDebye {
    const FACTOR: Factor = Factor::Charge;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &CoulombDebyeParams<P>) -> S {
        let r = r.rooted();
        (-(p.kappa * r.value())).exp() * r.recip()
    }
}
