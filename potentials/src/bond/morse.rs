//! Morse bond.

use crate::energy::{BondEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = D [1 − e^(−a(r−r₀))]²: zero in the minimum, D for a broken bond; its stiffness at r₀ is 2Da².
pub struct MorseBond;

record!(
    /// What the user gives.
    MorseBondParams {
        /// Energy to break the bond.
        d,
        /// Inverse width.
        a,
        /// Length at rest.
        r0
    }
);

impl Energy for MorseBond {
    const ABOUT: About = About {
        name: "morse",
        summary: "A bond that softens as it stretches and can break.",
        formula: "E(r) = D [1 - exp(-a (r - r0))]^2",
        source: "P. M. Morse, Phys. Rev. 34, 57 (1929), eq. 4, with the zero in the minimum",
        params: &[
            Param::new("D", Dimension::ENERGY, "energy to break the bond")
                .range(Range::NonNegative)
                .example(400.0),
            Param::new("a", Dimension::INVERSE_LENGTH, "inverse width of the well")
                .range(Range::Positive)
                .example(20.0),
            Param::new("r0", Dimension::LENGTH, "length at rest").range(Range::NonNegative).example(0.153),
        ],
    };
    type Params<T: Copy> = MorseBondParams<T>;
    type Prepared<T: Copy> = MorseBondParams<T>;
    fn prepare<T: Scalar>(p: &MorseBondParams<T>) -> MorseBondParams<T> {
        *p
    }
}

impl BondEnergy for MorseBond {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &MorseBondParams<P>) -> S {
        let x = (p.a * (p.r0 - r.value())).exp();
        p.d * (1.0 - x).squared()
    }
}
