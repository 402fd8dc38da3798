//! Sutton–Chen.

use crate::energy::{EmbeddingEnergy, Energy};
use crate::param::{About, Dimension, Mixing, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E = ε [Σ_{i<j} (a/rᵢⱼ)ⁿ − c Σᵢ √ρᵢ], ρᵢ = Σⱼ (a/rᵢⱼ)ᵐ: fcc metals and their alloys.
///
/// Unlike pairs follow Rafii-Tabar and Sutton (Philos. Mag. Lett. 63, 217 (1991)) under Lorentz–Berthelot mixing:
/// the geometric mean of ε, the arithmetic means of a, n and m. (c is used of each type with itself only.)
pub struct SuttonChen;

record!(
    /// What the user gives.
    SuttonChenParams {
        /// Unit of energy.
        epsilon,
        /// Lattice constant.
        a,
        /// Exponent of the repulsion.
        n,
        /// Exponent of the density.
        m,
        /// Strength of the embedding.
        c
    }
);
record!(
    /// ε, ln a, the exponents and −εc.
    SuttonChenPrepared { epsilon, ln_a, n, m, strength }
);

impl Energy for SuttonChen {
    const ABOUT: About = About {
        name: "sutton-chen",
        summary: "An embedded-atom model of fcc metals with power laws.",
        formula: "E = epsilon [sum over pairs of (a/r)^n - c sum over atoms of sqrt(rho)], \
                  rho = sum over neighbors of (a/r)^m",
        source: "A. P. Sutton and J. Chen, Philos. Mag. Lett. 61, 139 (1990)",
        params: &[
            Param::new("epsilon", Dimension::ENERGY, "unit of energy")
                .range(Range::NonNegative)
                .mixing(Mixing::Depth)
                .example(1.2),
            Param::new("a", Dimension::LENGTH, "unit of length, the lattice constant")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(0.361),
            Param::new("n", Dimension::NONE, "exponent of the repulsion")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(9.0),
            Param::new("m", Dimension::NONE, "exponent of the density, less than n")
                .range(Range::Positive)
                .mixing(Mixing::Size)
                .example(6.0),
            Param::new("c", Dimension::NONE, "strength of the embedding")
                .range(Range::NonNegative)
                .mixing(Mixing::Size)
                .example(39.432),
        ],
    };
    type Params<T: Copy> = SuttonChenParams<T>;
    type Prepared<T: Copy> = SuttonChenPrepared<T>;
    fn prepare<T: Scalar>(p: &SuttonChenParams<T>) -> SuttonChenPrepared<T> {
        SuttonChenPrepared {
            epsilon: p.epsilon,
            ln_a: p.a.ln(),
            n: p.n,
            m: p.m,
            strength: -(p.epsilon * p.c),
        }
    }
}

impl EmbeddingEnergy for SuttonChen {
    #[inline(always)]
    fn pair<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &SuttonChenPrepared<P>) -> S {
        p.epsilon * (p.n * (p.ln_a - r.ln())).exp()
    }
    #[inline(always)]
    fn density<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &SuttonChenPrepared<P>) -> S {
        (p.m * (p.ln_a - r.ln())).exp()
    }
    #[inline(always)]
    fn embedding<S: Scalar, P: Coefficient<S>>(rho: S, p: &SuttonChenPrepared<P>) -> S {
        p.strength * rho.sqrt()
    }
}
