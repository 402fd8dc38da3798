//! Mie.

use crate::energy::{Energy, PairEnergy};
use crate::param::{About, Dimension, Mixing, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = C ε [(σ/r)ⁿ − (σ/r)ᵐ] with C = n/(n−m) (n/m)^(m/(n−m)), which makes ε the depth: Lennard-Jones with
/// exponents of choice, n > m, whole or not (and differentiable).
pub struct Mie;

record!(
    /// What the user gives.
    MieParams {
        /// Depth of the well.
        epsilon,
        /// Where the energy is zero.
        sigma,
        /// Exponent of the repulsion.
        n,
        /// Exponent of the attraction.
        m
    }
);
record!(
    /// Cε, ln σ and the exponents.
    MiePrepared { strength, ln_sigma, n, m }
);

impl Energy for Mie {
    const ABOUT: About = About {
        name: "mie",
        summary: "Lennard-Jones with exponents of choice.",
        formula: "E(r) = C epsilon [(sigma/r)^n - (sigma/r)^m], C = n/(n-m) (n/m)^(m/(n-m)), n > m",
        source: "G. Mie, Ann. Phys. 316, 657 (1903)",
        params: &[
            Param::new("epsilon", Dimension::ENERGY, "depth of the well")
                .range(Range::NonNegative)
                .mixing(Mixing::Depth)
                .example(0.9),
            Param::new("sigma", Dimension::LENGTH, "distance at which the energy is zero")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(0.34),
            Param::new("n", Dimension::NONE, "exponent of the repulsion")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(12.0),
            Param::new("m", Dimension::NONE, "exponent of the attraction, less than n")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(6.0),
        ],
    };
    type Params<T: Copy> = MieParams<T>;
    type Prepared<T: Copy> = MiePrepared<T>;
    fn prepare<T: Scalar>(p: &MieParams<T>) -> MiePrepared<T> {
        let inverse = (p.n - p.m).recip();
        let c = p.n * inverse * (p.m * inverse * (p.n / p.m).ln()).exp();
        MiePrepared { strength: c * p.epsilon, ln_sigma: p.sigma.ln(), n: p.n, m: p.m }
    }
}

impl PairEnergy for Mie {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &MiePrepared<P>) -> S {
        let l = p.ln_sigma - r.ln();
        p.strength * ((p.n * l).exp() - (p.m * l).exp())
    }
}
