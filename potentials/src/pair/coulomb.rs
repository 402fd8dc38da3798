//! Coulomb.

use crate::energy::{Energy, Factor, PairEnergy};
use crate::param::About;
use crate::record::Record;
use crate::{Coefficient, Distance, Nothing, Scalar};

/// E(r) = 1/r, times Coulomb's constant and the charges.
pub struct Coulomb;

impl Energy for Coulomb {
    const ABOUT: About = About {
        name: "coulomb",
        summary: "Charges in vacuum, up to the cut-off.",
        formula: "E(r) = k qi qj / r",
        source: "C. A. Coulomb, Mem. Acad. R. Sci. 569 (1785)",
        params: &[],
    };
    type Params<T: Copy> = Nothing<T>;
    type Prepared<T: Copy> = Nothing<T>;
    fn prepare<T: Scalar>(_: &Nothing<T>) -> Nothing<T> {
        Nothing::from_fn(|_| T::constant(0.0))
    }
}

impl PairEnergy for Coulomb {
    const FACTOR: Factor = Factor::Charge;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, _: &Nothing<P>) -> S {
        r.recip()
    }
}
