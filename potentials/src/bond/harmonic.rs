//! Harmonic bond.

use crate::energy::{BondEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = ½ k (r − r₀)². Programs that write k (r − r₀)² (Amber, CHARMM, LAMMPS) have half this k.
pub struct HarmonicBond;

record!(
    /// What the user gives.
    HarmonicBondParams {
        /// Stiffness.
        k,
        /// Length at rest.
        r0
    }
);

impl Energy for HarmonicBond {
    const ABOUT: About = About {
        name: "harmonic",
        summary: "A spring between two atoms.",
        formula: "E(r) = 1/2 k (r - r0)^2",
        source: "R. Hooke, Lectures de Potentia Restitutiva (1678)",
        params: &[
            Param::new("k", Dimension::STIFFNESS, "stiffness; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(2.6e5),
            Param::new("r0", Dimension::LENGTH, "length at rest").range(Range::NonNegative).example(0.153),
        ],
    };
    type Params<T: Copy> = HarmonicBondParams<T>;
    type Prepared<T: Copy> = HarmonicBondParams<T>;
    fn prepare<T: Scalar>(p: &HarmonicBondParams<T>) -> HarmonicBondParams<T> {
        *p
    }
}

impl BondEnergy for HarmonicBond {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &HarmonicBondParams<P>) -> S {
        0.5 * p.k * (r - p.r0).squared()
    }
}
