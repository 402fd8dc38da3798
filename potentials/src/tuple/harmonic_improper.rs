//! Harmonic improper dihedral.

use crate::dihedral::{HarmonicDihedral, HarmonicDihedralParams, HarmonicDihedralPrepared};
use crate::energy::{DihedralEnergy, Energy, TupleEnergy};
use crate::param::About;
use crate::{Coefficient, Scalar, Vec3};

/// E = ½ k (φ − φ₀)² of the dihedral 1-2-3-4, usually with the central atom first: keeps a group planar (φ₀ = 0)
/// or a centre at its handedness.
pub struct HarmonicImproper;

impl Energy for HarmonicImproper {
    const ABOUT: About = About {
        name: "harmonic-improper",
        summary: "A spring in the dihedral of a central atom and its three neighbours.",
        formula: "E = 1/2 k (phi - phi0)^2, phi the dihedral of atoms 1-2-3-4, \
                  the difference within (-180, 180] degrees",
        source: "B. R. Brooks et al., J. Comput. Chem. 4, 187 (1983), there without the factor 1/2",
        params: HarmonicDihedral::ABOUT.params,
    };
    type Params<T: Copy> = HarmonicDihedralParams<T>;
    type Prepared<T: Copy> = HarmonicDihedralPrepared<T>;
    fn prepare<T: Scalar>(p: &HarmonicDihedralParams<T>) -> HarmonicDihedralPrepared<T> {
        HarmonicDihedral::prepare(p)
    }
}

impl TupleEnergy<4> for HarmonicImproper {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; 4], p: &HarmonicDihedralPrepared<P>) -> S {
        HarmonicDihedral::energy(super::dihedral(r), p)
    }
}
