//! Ryckaert–Bellemans dihedral.

use crate::energy::{DihedralEnergy, Energy};
use crate::param::{About, Dimension, Param};
use crate::{Coefficient, Dihedral, Scalar, record};

/// E(φ) = Σ cₖ cosᵏψ, k from 0 to 5, with ψ = φ − 180°, which is 0 for trans.
pub struct RyckaertBellemans;

record!(
    /// What the user gives.
    RyckaertBellemansParams { c0, c1, c2, c3, c4, c5 }
);

impl Energy for RyckaertBellemans {
    const ABOUT: About = About {
        name: "ryckaert-bellemans",
        summary: "A polynomial in the cosine of the dihedral; for alkanes and OPLS.",
        formula: "E(phi) = c0 + c1 cos(psi) + c2 cos(psi)^2 + c3 cos(psi)^3 + c4 cos(psi)^4 + c5 cos(psi)^5, \
                  psi = phi - 180 degrees (0 for trans)",
        source: "J.-P. Ryckaert and A. Bellemans, Faraday Discuss. Chem. Soc. 66, 95 (1978)",
        params: &[
            Param::new("c0", Dimension::ENERGY, "constant").example(9.28),
            Param::new("c1", Dimension::ENERGY, "coefficient of cos(psi)").example(12.16),
            Param::new("c2", Dimension::ENERGY, "coefficient of cos(psi)^2").example(-13.12),
            Param::new("c3", Dimension::ENERGY, "coefficient of cos(psi)^3").example(-3.06),
            Param::new("c4", Dimension::ENERGY, "coefficient of cos(psi)^4").default(0.0).example(26.24),
            Param::new("c5", Dimension::ENERGY, "coefficient of cos(psi)^5").default(0.0).example(-31.5),
        ],
    };
    type Params<T: Copy> = RyckaertBellemansParams<T>;
    /// The same in powers of cos φ = −cos ψ.
    type Prepared<T: Copy> = RyckaertBellemansParams<T>;
    fn prepare<T: Scalar>(p: &RyckaertBellemansParams<T>) -> RyckaertBellemansParams<T> {
        RyckaertBellemansParams { c1: -p.c1, c3: -p.c3, c5: -p.c5, ..*p }
    }
}

impl DihedralEnergy for RyckaertBellemans {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(phi: Dihedral<S>, p: &RyckaertBellemansParams<P>) -> S {
        phi.cos().powers([p.c1, p.c2, p.c3, p.c4, p.c5]) + p.c0
    }
}
