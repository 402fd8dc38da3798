//! Born–Mayer–Huggins.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = A e^((σ−r)/ρ) − C/r⁶ − D/r⁸, for molten and solid salts. The sign of D is the literature's; programs
/// that write + D/r⁸ (LAMMPS) take −D.
pub struct BornMayerHuggins;

record!(
    /// What the user gives.
    BornMayerHugginsParams {
        /// Strength of the repulsion.
        a,
        /// Its range.
        rho,
        /// The sum of the ions' radii.
        sigma,
        /// Dipole–dipole dispersion.
        c,
        /// Dipole–quadrupole dispersion.
        d
    }
);
record!(
    /// A, −1/ρ, σ, −C, −D.
    BornMayerHugginsPrepared { a, slope, sigma, minus_c, minus_d }
);

impl Energy for BornMayerHuggins {
    const ABOUT: About = About {
        name: "born-mayer-huggins",
        summary: "Exponential repulsion and two dispersion terms; for salts.",
        formula: "E(r) = A exp((sigma - r)/rho) - C/r^6 - D/r^8",
        source: "F. G. Fumi and M. P. Tosi, J. Phys. Chem. Solids 25, 31 (1964)",
        params: &[
            Param::new("A", Dimension::ENERGY, "strength of the repulsion")
                .range(Range::NonNegative)
                .example(25.0),
            Param::new("rho", Dimension::LENGTH, "range of the repulsion")
                .range(Range::Positive)
                .example(0.032),
            Param::new("sigma", Dimension::LENGTH, "sum of the ions' radii").example(0.234),
            Param::new(
                "C",
                Dimension::ENERGY.times(Dimension::LENGTH.powi(6)),
                "strength of the dipole-dipole dispersion",
            )
            .example(1e-3),
            Param::new(
                "D",
                Dimension::ENERGY.times(Dimension::LENGTH.powi(8)),
                "strength of the dipole-quadrupole dispersion",
            )
            .example(7e-5),
        ],
    };
    type Params<T: Copy> = BornMayerHugginsParams<T>;
    type Prepared<T: Copy> = BornMayerHugginsPrepared<T>;
    fn prepare<T: Scalar>(p: &BornMayerHugginsParams<T>) -> BornMayerHugginsPrepared<T> {
        BornMayerHugginsPrepared {
            a: p.a,
            slope: -p.rho.recip(),
            sigma: p.sigma,
            minus_c: -p.c,
            minus_d: -p.d,
        }
    }
}

impl PairEnergy for BornMayerHuggins {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &BornMayerHugginsPrepared<P>) -> S {
        let x = r.powi(-2);
        let dispersion = x.squared() * x.powers([p.minus_c, p.minus_d]);
        p.a * (p.slope * (r.value() - p.sigma)).exp() + dispersion
    }
}
