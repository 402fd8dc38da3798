//! OPLS dihedral.

use crate::energy::{DihedralEnergy, Energy};
use crate::param::{About, Dimension, Param};
use crate::{Coefficient, Dihedral, Scalar, record};

/// E(φ) = ½ [k₁(1 + cos φ) + k₂(1 − cos 2φ) + k₃(1 + cos 3φ) + k₄(1 − cos 4φ)], φ = 0 for cis.
pub struct OplsDihedral;

record!(
    /// What the user gives.
    OplsDihedralParams { k1, k2, k3, k4 }
);
record!(
    /// The coefficients in powers of cos φ.
    OplsDihedralPrepared { c0, c1, c2, c3, c4 }
);

impl Energy for OplsDihedral {
    const ABOUT: About = About {
        name: "opls",
        summary: "Four cosines, as in OPLS-AA.",
        formula: "E(phi) = 1/2 [k1 (1 + cos(phi)) + k2 (1 - cos(2 phi)) + k3 (1 + cos(3 phi)) \
                  + k4 (1 - cos(4 phi))], phi = 0 for cis",
        source: "W. L. Jorgensen, D. S. Maxwell and J. Tirado-Rives, J. Am. Chem. Soc. 118, 11225 (1996)",
        params: &[
            Param::new("k1", Dimension::ENERGY, "barrier of the first cosine").example(3.0),
            Param::new("k2", Dimension::ENERGY, "barrier of the second cosine").example(-1.2),
            Param::new("k3", Dimension::ENERGY, "barrier of the third cosine").example(2.3),
            Param::new("k4", Dimension::ENERGY, "barrier of the fourth cosine").default(0.0).example(0.7),
        ],
    };
    type Params<T: Copy> = OplsDihedralParams<T>;
    type Prepared<T: Copy> = OplsDihedralPrepared<T>;
    fn prepare<T: Scalar>(p: &OplsDihedralParams<T>) -> OplsDihedralPrepared<T> {
        // 1 − cos 2φ = 2 − 2c², 1 + cos 3φ = 1 − 3c + 4c³, 1 − cos 4φ = 8c² − 8c⁴
        OplsDihedralPrepared {
            c0: (p.k1 + p.k3) * 0.5 + p.k2,
            c1: (p.k1 - p.k3 * 3.0) * 0.5,
            c2: p.k4 * 4.0 - p.k2,
            c3: p.k3 * 2.0,
            c4: p.k4 * -4.0,
        }
    }
}

impl DihedralEnergy for OplsDihedral {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(phi: Dihedral<S>, p: &OplsDihedralPrepared<P>) -> S {
        phi.cos().powers([p.c1, p.c2, p.c3, p.c4]) + p.c0
    }
}
