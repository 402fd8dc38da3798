//! Damped shifted force.

use crate::cutoff::{CutoffParams, Ending};
use crate::energy::{Energy, Factor, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};
use std::f64::consts::FRAC_2_SQRT_PI;

/// E(r) = v(r) − v(rc) − (r − rc) v′(rc) with v(r) = erfc(αr)/r, times Coulomb's constant and the charges: a
/// pairwise replacement of Ewald's sum whose energy and force end at the cut-off.
///
/// The remainders are LAMMPS's: excluded partners keep E(r) − 1/r, and each atom has the energy
/// −(s/2 + α/√π) with itself, where s = v(rc) − rc v′(rc) is the constant part of what is subtracted.
pub struct DampedShiftedForce;

record!(
    /// What the user gives.
    DampedShiftedForceParams {
        /// Damping.
        alpha,
        /// Where the interaction ends.
        cutoff
    }
);
record!(
    /// α and the line s + b r that is subtracted.
    DampedShiftedForcePrepared { alpha, s, b }
);

impl Energy for DampedShiftedForce {
    const ABOUT: About = About {
        name: "damped-shifted-force",
        summary: "Damped charges whose energy and force vanish at the cut-off; a cheap stand-in for Ewald sums.",
        formula: "E(r) = k qi qj [v(r) - v(cutoff) - (r - cutoff) v'(cutoff)], v(r) = erfc(alpha r)/r",
        source: "C. J. Fennell and J. D. Gezelter, J. Chem. Phys. 124, 234104 (2006), the damped shifted force",
        params: &[
            Param::new("alpha", Dimension::INVERSE_LENGTH, "damping, an inverse length")
                .range(Range::NonNegative)
                .example(2.4),
            Param::new("cutoff", Dimension::LENGTH, "distance at which the interaction ends")
                .range(Range::Positive)
                .cutoff(),
        ],
    };
    type Params<T: Copy> = DampedShiftedForceParams<T>;
    type Prepared<T: Copy> = DampedShiftedForcePrepared<T>;
    fn prepare<T: Scalar>(p: &DampedShiftedForceParams<T>) -> DampedShiftedForcePrepared<T> {
        let alpha = crate::Dual::passive(p.alpha);
        let at = CutoffParams { cutoff: p.cutoff, inner: p.cutoff };
        let line = Ending::ForceShift.constants(&at, |r| damped(r, alpha));
        DampedShiftedForcePrepared { alpha: p.alpha, s: line.a, b: line.b }
    }
}

/// v(r) = erfc(αr)/r
#[inline(always)]
fn damped<S: Scalar, P: Coefficient<S>>(r: Distance<S>, alpha: P) -> S {
    let r = r.rooted();
    (alpha * r.value()).erfc() * r.recip()
}

impl PairEnergy for DampedShiftedForce {
    const FACTOR: Factor = Factor::Charge;
    const LEAVES_REMAINDER: bool = true;
    const ENDS_AT_CUTOFF: bool = true;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &DampedShiftedForcePrepared<P>) -> S {
        damped(r, p.alpha) - p.s - p.b * r.value()
    }
    #[inline(always)]
    fn excluded<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &DampedShiftedForcePrepared<P>) -> S {
        Self::energy(r, p) - r.recip()
    }
    #[inline(always)]
    fn own<T: Scalar>(p: &DampedShiftedForcePrepared<T>) -> T {
        (p.s + p.alpha * FRAC_2_SQRT_PI) * -0.5
    }
}
