//! Soft cosine.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};
use std::f64::consts::PI;

/// E(r) = A [1 + cos(πr/rc)] up to the cut-off rc, where energy and force vanish: pushes overlapping atoms apart
/// gently.
pub struct SoftCosine;

record!(
    /// What the user gives.
    SoftCosineParams {
        /// Half the energy of full overlap.
        a,
        /// Where the interaction ends.
        cutoff
    }
);
record!(
    /// A and π/rc.
    SoftCosinePrepared { a, wave }
);

impl Energy for SoftCosine {
    const ABOUT: About = About {
        name: "soft-cosine",
        summary: "A soft repulsion without singularity, to push overlapping atoms apart.",
        formula: "E(r) = A [1 + cos(pi r/cutoff)]",
        source: "pair style soft of LAMMPS (manual); one period of a cosine",
        params: &[
            Param::new("A", Dimension::ENERGY, "half the energy at r = 0").example(20.0),
            Param::new("cutoff", Dimension::LENGTH, "distance at which the interaction ends")
                .range(Range::Positive)
                .cutoff(),
        ],
    };
    type Params<T: Copy> = SoftCosineParams<T>;
    type Prepared<T: Copy> = SoftCosinePrepared<T>;
    fn prepare<T: Scalar>(p: &SoftCosineParams<T>) -> SoftCosinePrepared<T> {
        SoftCosinePrepared { a: p.a, wave: p.cutoff.recip() * PI }
    }
}

impl PairEnergy for SoftCosine {
    const ENDS_AT_CUTOFF: bool = true;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &SoftCosinePrepared<P>) -> S {
        p.a * ((p.wave * r.value()).cos() + 1.0)
    }
}
