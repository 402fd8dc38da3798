//! Finitely extensible bond.

use crate::energy::{BondEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = −½ k R² ln(1 − (r/R)²) + [4ε((σ/r)¹² − (σ/r)⁶) + ε where r < 2^(1/6) σ]: a bond that cannot be stretched
/// beyond R, with the repulsion of the two beads. Without ε and σ the bond alone. Undefined (NaN) for r ≥ R.
pub struct Fene;

record!(
    /// What the user gives.
    FeneParams {
        /// Stiffness of the unstretched bond.
        k,
        /// Longest extension.
        r_max,
        /// Strength of the repulsion.
        epsilon,
        /// Size of the beads.
        sigma
    }
);
record!(
    /// −½kR², −1/R², 4εσ¹², 4εσ⁶, ε, and the squared end of the repulsion.
    FenePrepared { strength, inverse, c12, c6, epsilon, end }
);

impl Energy for Fene {
    const ABOUT: About = About {
        name: "fene",
        summary: "A finitely extensible bond of polymer beads, with their repulsion.",
        formula: "E(r) = -1/2 k r-max^2 ln(1 - (r/r-max)^2) \
                  + (4 epsilon [(sigma/r)^12 - (sigma/r)^6] + epsilon where r < 2^(1/6) sigma)",
        source: "K. Kremer and G. S. Grest, J. Chem. Phys. 92, 5057 (1990)",
        params: &[
            Param::new("k", Dimension::STIFFNESS, "stiffness of the unstretched bond")
                .range(Range::NonNegative)
                .example(300.0),
            Param::new("r-max", Dimension::LENGTH, "extension that cannot be reached")
                .range(Range::Positive)
                .example(1.2),
            Param::new("epsilon", Dimension::ENERGY, "strength of the beads' repulsion")
                .range(Range::NonNegative)
                .default(0.0)
                .example(1.1),
            Param::new("sigma", Dimension::LENGTH, "size of the beads")
                .range(Range::NonNegative)
                .default(0.0)
                .example(0.5),
        ],
    };
    type Params<T: Copy> = FeneParams<T>;
    type Prepared<T: Copy> = FenePrepared<T>;
    fn prepare<T: Scalar>(p: &FeneParams<T>) -> FenePrepared<T> {
        let (r2, s2) = (p.r_max.squared(), p.sigma.squared());
        let s6 = s2.powi(3);
        let c6 = p.epsilon * s6 * 4.0;
        FenePrepared {
            strength: p.k * r2 * -0.5,
            inverse: -r2.recip(),
            c12: c6 * s6,
            c6,
            epsilon: p.epsilon,
            end: s2 * f64::cbrt(2.0),
        }
    }
}

impl BondEnergy for Fene {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &FenePrepared<P>) -> S {
        let r2 = r.squared();
        let stretch = p.strength * (p.inverse * r2 + 1.0).ln();
        let repulsion = r.powi(-6).powers([-p.c6, p.c12]) + p.epsilon;
        stretch + S::select(r2.lt(p.end.lift()), repulsion, S::constant(0.0))
    }
}
