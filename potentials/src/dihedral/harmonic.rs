//! Harmonic dihedral.

use crate::energy::{DihedralEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Dihedral, Scalar, record};
use std::f64::consts::FRAC_PI_3;

/// E(φ) = ½ k (φ − φ₀)², the difference taken the shortest way round. Opposite φ₀ the energy has a corner.
pub struct HarmonicDihedral;

record!(
    /// What the user gives.
    HarmonicDihedralParams {
        /// Stiffness.
        k,
        /// Dihedral at rest.
        phi0
    }
);
record!(
    /// ½k, sin φ₀, cos φ₀.
    HarmonicDihedralPrepared { half_k, sin0, cos0 }
);

/// The parameters, also those of the improper of this form.
pub(crate) const PARAMS: &[Param] = &[
    Param::new("k", Dimension::ENERGY, "stiffness per radian squared; the energy has the factor 1/2")
        .range(Range::NonNegative)
        .example(90.0),
    Param::new("phi0", Dimension::NONE, "dihedral at rest").example(FRAC_PI_3),
];

impl Energy for HarmonicDihedral {
    const ABOUT: About = About {
        name: "harmonic",
        summary: "A spring in the dihedral; keeps it at a value.",
        formula: "E(phi) = 1/2 k (phi - phi0)^2, the difference within (-180, 180] degrees",
        source: "the dihedral restraint of GROMACS, without a flat region",
        params: PARAMS,
    };
    type Params<T: Copy> = HarmonicDihedralParams<T>;
    type Prepared<T: Copy> = HarmonicDihedralPrepared<T>;
    fn prepare<T: Scalar>(p: &HarmonicDihedralParams<T>) -> HarmonicDihedralPrepared<T> {
        HarmonicDihedralPrepared { half_k: p.k * 0.5, sin0: p.phi0.sin(), cos0: p.phi0.cos() }
    }
}

impl DihedralEnergy for HarmonicDihedral {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(phi: Dihedral<S>, p: &HarmonicDihedralPrepared<P>) -> S {
        p.half_k * phi.deviation_from(p.sin0, p.cos0).squared()
    }
}
