//! Ziegler–Biersack–Littmark.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Mixing, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = (A/r) Σᵢ cᵢ e^(−dᵢ κ r), the universal screened repulsion of nuclei, for collisions at high energy.
///
/// For atomic numbers Z₁, Z₂: A = k Z₁ Z₂ with Coulomb's constant k (in e⁻²), and
/// κ = (Z₁^0.23 + Z₂^0.23)/0.46850 Å. Both follow for unlike atoms from the like ones, A by the geometric and κ by
/// the arithmetic mean.
pub struct Zbl;

record!(
    /// What the user gives and the formula uses.
    ZblParams {
        /// k Z₁ Z₂
        a,
        /// Inverse screening length.
        kappa
    }
);

/// The four terms cᵢ, dᵢ of the universal screening function.
const SCREENING: [(f64, f64); 4] =
    [(0.18175, 3.19980), (0.50986, 0.94229), (0.28022, 0.40290), (0.02817, 0.20162)];

#[inline(always)]
fn term<S: Scalar>(x: S, k: usize) -> S {
    let (c, d) = SCREENING[k];
    (x * -d).exp() * c
}

impl Energy for Zbl {
    const ABOUT: About = About {
        name: "zbl",
        summary: "The screened repulsion of nuclei, for collisions at high energy.",
        formula: "E(r) = (A/r) [0.18175 exp(-3.19980 x) + 0.50986 exp(-0.94229 x) + 0.28022 exp(-0.40290 x) \
                  + 0.02817 exp(-0.20162 x)], x = kappa r; A = k Z1 Z2, kappa = (Z1^0.23 + Z2^0.23)/(0.46850 angstrom)",
        source: "J. F. Ziegler, J. P. Biersack and U. Littmark, The Stopping and Range of Ions in Matter \
                 (Pergamon, 1985), with the digits that LAMMPS uses",
        params: &[
            Param::new(
                "A",
                Dimension::ENERGY.times(Dimension::LENGTH),
                "Coulomb's constant times both nuclear charges",
            )
            .range(Range::NonNegative)
            .mixing(Mixing::Depth)
            .example(2.7e4),
            Param::new("kappa", Dimension::INVERSE_LENGTH, "inverse screening length")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(78.0),
        ],
    };
    type Params<T: Copy> = ZblParams<T>;
    type Prepared<T: Copy> = ZblParams<T>;
    fn prepare<T: Scalar>(p: &ZblParams<T>) -> ZblParams<T> {
        *p
    }
}

impl PairEnergy for Zbl {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &ZblParams<P>) -> S {
        let r = r.rooted();
        let x = p.kappa * r.value();
        let screening = term(x, 0) + term(x, 1) + term(x, 2) + term(x, 3);
        p.a * screening * r.recip()
    }
}
