//! Morse.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = D [e^(−2a(r−r₀)) − 2 e^(−a(r−r₀))]: a well of depth D, zero at large distance. (The Morse bond has its
/// zero in the minimum instead.)
pub struct Morse;

record!(
    /// What the user gives and the formula uses.
    MorseParams {
        /// Depth of the well.
        d,
        /// Its inverse width.
        a,
        /// Where it is deepest.
        r0
    }
);

impl Energy for Morse {
    const ABOUT: About = About {
        name: "morse",
        summary: "A well with an exponential wall; for metals and coarse-grained models.",
        formula: "E(r) = D [exp(-2 a (r - r0)) - 2 exp(-a (r - r0))]",
        source: "P. M. Morse, Phys. Rev. 34, 57 (1929), eq. 4",
        params: &[
            Param::new("D", Dimension::ENERGY, "depth of the well").range(Range::NonNegative).example(12.0),
            Param::new("a", Dimension::INVERSE_LENGTH, "inverse width of the well")
                .range(Range::Positive)
                .example(14.0),
            Param::new("r0", Dimension::LENGTH, "distance of the minimum")
                .range(Range::NonNegative)
                .example(0.31),
        ],
    };
    type Params<T: Copy> = MorseParams<T>;
    type Prepared<T: Copy> = MorseParams<T>;
    fn prepare<T: Scalar>(p: &MorseParams<T>) -> MorseParams<T> {
        *p
    }
}

impl PairEnergy for Morse {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &MorseParams<P>) -> S {
        let x = (p.a * (p.r0 - r.value())).exp();
        x.powers([p.d * -2.0, p.d])
    }
}
