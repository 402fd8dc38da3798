//! Periodic improper dihedral.

use crate::dihedral::{PeriodicDihedral, PeriodicDihedralParams, PeriodicDihedralPrepared};
use crate::energy::{DihedralEnergy, Energy, TupleEnergy};
use crate::param::About;
use crate::{Coefficient, Scalar, Vec3};

/// E = k [1 + cos(nφ − φ₀)] of the dihedral 1-2-3-4, in Amber with the central atom third.
pub struct PeriodicImproper;

impl Energy for PeriodicImproper {
    const ABOUT: About = About {
        name: "periodic-improper",
        summary: "A cosine of the dihedral of a central atom and its three neighbours; keeps groups planar.",
        formula: "E = k [1 + cos(n phi - phi0)], phi the dihedral of atoms 1-2-3-4",
        source: "W. D. Cornell et al., J. Am. Chem. Soc. 117, 5179 (1995)",
        params: PeriodicDihedral::ABOUT.params,
    };
    type Params<T: Copy> = PeriodicDihedralParams<T>;
    type Prepared<T: Copy> = PeriodicDihedralPrepared<T>;
    fn prepare<T: Scalar>(p: &PeriodicDihedralParams<T>) -> PeriodicDihedralPrepared<T> {
        PeriodicDihedral::prepare(p)
    }
}

impl TupleEnergy<4> for PeriodicImproper {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: [Vec3<S>; 4], p: &PeriodicDihedralPrepared<P>) -> S {
        PeriodicDihedral::energy(super::dihedral(r), p)
    }
}
