//! Stillinger–Weber.

use crate::energy::{Energy, TripletEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// Silicon and its kin: with the reach aσ,
///
/// - pairs: A ε [B (σ/r)^p − (σ/r)^q] e^(σ/(r−aσ)),
/// - triples i, j, k: λ ε e^(γσ/(rᵢⱼ−aσ)) e^(γσ/(rᵢₖ−aσ)) (cos θ − cos θ₀)², θ the angle at i.
///
/// Everything ends at r = aσ with all derivatives. The names are the paper's; for other elements than one, LAMMPS's
/// rule holds: pairs and features take the parameters of (i, j, j), λ, ε and cos θ₀ of a triple those of (i, j, k).
pub struct StillingerWeber;

record!(
    /// What the user gives.
    StillingerWeberParams {
        /// Unit of energy.
        epsilon,
        /// Unit of length.
        sigma,
        /// Reach in units of σ.
        a,
        /// Strength of the triples.
        lambda,
        /// Range of the triples.
        gamma,
        /// Cosine of the angle at rest.
        cos_theta0,
        /// Strength of the pairs, A.
        pair_strength,
        /// Weight of the repulsion, B.
        repulsion,
        /// Exponent of the repulsion.
        p,
        /// Exponent of the attraction.
        q
    }
);
record!(
    /// AεB, −Aε, the exponents, ln σ, σ, γσ, aσ, λε, cos θ₀.
    StillingerWeberPrepared {
        repulsion, attraction, p, q, ln_sigma, sigma, gamma_sigma, reach, lambda_epsilon, cos_theta0
    }
);

impl Energy for StillingerWeber {
    const ABOUT: About = About {
        name: "stillinger-weber",
        summary: "Pairs and angles of tetrahedral semiconductors, and of coarse-grained water.",
        formula: "pairs: A epsilon [B (sigma/r)^p - (sigma/r)^q] exp(sigma/(r - a sigma)); \
                  triples: lambda epsilon exp(gamma sigma/(rij - a sigma)) exp(gamma sigma/(rik - a sigma)) \
                  (cos(theta) - cos-theta0)^2; both 0 from r = a sigma on",
        source: "F. H. Stillinger and T. A. Weber, Phys. Rev. B 31, 5262 (1985)",
        params: &[
            Param::new("epsilon", Dimension::ENERGY, "unit of energy")
                .range(Range::NonNegative)
                .example(209.2),
            Param::new("sigma", Dimension::LENGTH, "unit of length")
                .range(Range::NonNegative)
                .example(0.20951),
            Param::new("a", Dimension::NONE, "reach in units of sigma")
                .range(Range::NonNegative)
                .example(1.8),
            Param::new("lambda", Dimension::NONE, "strength of the triples")
                .range(Range::NonNegative)
                .example(21.0),
            Param::new("gamma", Dimension::NONE, "range of the triples in units of sigma")
                .range(Range::NonNegative)
                .example(1.2),
            Param::new("cos-theta0", Dimension::NONE, "cosine of the angle at rest, -1/3 for tetrahedra")
                .range(Range::Within(-1.0, 1.0))
                .example(-1.0 / 3.0),
            Param::new("A", Dimension::NONE, "strength of the pairs").example(7.049556277),
            Param::new("B", Dimension::NONE, "weight of the pairs' repulsion").example(0.6022245584),
            Param::new("p", Dimension::NONE, "exponent of the pairs' repulsion")
                .range(Range::NonNegative)
                .example(4.0),
            Param::new("q", Dimension::NONE, "exponent of the pairs' attraction")
                .range(Range::NonNegative)
                .example(0.3),
        ],
    };
    type Params<T: Copy> = StillingerWeberParams<T>;
    type Prepared<T: Copy> = StillingerWeberPrepared<T>;
    fn prepare<T: Scalar>(p: &StillingerWeberParams<T>) -> StillingerWeberPrepared<T> {
        // parameter files leave σ = 0 for triples whose pairs are never asked for
        let given = T::constant(0.0).lt(p.sigma);
        let a_epsilon = p.pair_strength * p.epsilon;
        StillingerWeberPrepared {
            repulsion: a_epsilon * p.repulsion,
            attraction: -a_epsilon,
            p: p.p,
            q: p.q,
            ln_sigma: T::select(given, p.sigma, T::constant(1.0)).ln(),
            sigma: p.sigma,
            gamma_sigma: p.gamma * p.sigma,
            reach: p.a * p.sigma,
            lambda_epsilon: p.lambda * p.epsilon,
            cos_theta0: p.cos_theta0,
        }
    }
}

/// Whether r is within the reach, and 1/(reach − r) where it is. (Round-off can put r on the reach itself.)
#[inline(always)]
fn inverse_gap<S: Scalar, P: Coefficient<S>>(r: S, reach: P) -> (S::Mask, S) {
    let gap = reach - r;
    let within = S::constant(0.0).lt(gap);
    (within, S::select(within, gap, S::constant(1.0)).recip())
}

impl TripletEnergy for StillingerWeber {
    fn reach<T: Scalar>(p: &StillingerWeberPrepared<T>) -> T {
        p.reach
    }
    #[inline(always)]
    fn pair<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &StillingerWeberPrepared<P>) -> S {
        let (within, inverse) = inverse_gap(r.value(), p.reach);
        let l = p.ln_sigma - r.ln();
        let end = p.sigma * inverse;
        let e = p.repulsion * (p.p * l - end).exp() + p.attraction * (p.q * l - end).exp();
        S::select(within, e, S::constant(0.0))
    }
    #[inline(always)]
    fn feature<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &StillingerWeberPrepared<P>) -> S {
        let (within, inverse) = inverse_gap(r.value(), p.reach);
        S::select(within, (-(p.gamma_sigma * inverse)).exp(), S::constant(0.0))
    }
    #[inline(always)]
    fn triplet<S: Scalar, P: Coefficient<S>>(cos: S, gj: S, gk: S, p: &StillingerWeberPrepared<P>) -> S {
        p.lambda_epsilon * (gj * gk) * (cos - p.cos_theta0).squared()
    }
}
