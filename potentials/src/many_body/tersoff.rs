//! Tersoff.

use crate::energy::{Energy, SiteEnergy, SiteNeighbor};
use crate::param::{About, Dimension, Param, Range};
use crate::scalar::Mask;
use crate::{Coefficient, Scalar, record};
use std::f64::consts::FRAC_PI_2;

/// Covalent crystals whose bonds weaken with the number of neighbours. The energy of atom i is
/// ½ Σⱼ f(rᵢⱼ) [A e^(−λ₁ rᵢⱼ) − bᵢⱼ B e^(−λ₂ rᵢⱼ)] with
///
/// - bᵢⱼ = [1 + (β ζᵢⱼ)ⁿ]^(−1/2n), ζᵢⱼ = Σ_{k≠j} f(rᵢₖ) g(θᵢⱼₖ) e^([λ₃ (rᵢⱼ − rᵢₖ)]ᵐ),
/// - g(θ) = γ [1 + c²/d² − c²/(d² + (cos θ − cos θ₀)²)],
/// - f(r) = 1 up to R − D, ½ − ½ sin(π/2 (r − R)/D) up to R + D, then 0. Its second derivative jumps at both ends.
///
/// The parameters are LAMMPS's, in its order. A, B, λ₁, λ₂, β, n and the pair's R, D are those of (i, j, j); ζ takes
/// those of (i, j, k).
pub struct Tersoff;

record!(
    /// What the user gives.
    TersoffParams {
        /// Exponent m, 1 or 3.
        m,
        /// Strength of the angular term.
        gamma,
        /// λ₃
        lambda3,
        /// c
        c,
        /// d
        d,
        /// cos θ₀ (LAMMPS's costheta0, h in the paper)
        cos_theta0,
        /// n
        n,
        /// β
        beta,
        /// λ₂
        lambda2,
        /// B
        attraction,
        /// R, the middle of the range where bonds end.
        end_middle,
        /// D, half the width of that range.
        end_width,
        /// λ₁
        lambda1,
        /// A
        repulsion
    }
);
record!(
    /// As in the formula; λ₃ and its cube apply for m = 1 and m = 3, the other one is 0; `g0` = γ(1 + c²/d²),
    /// `g1` = γc², `exponent` = −1/2n.
    TersoffPrepared {
        linear, cubic, g0, g1, d2, cos_theta0, n, exponent, beta, lambda2, attraction, end_middle,
        inverse_width, reach, lambda1, repulsion
    }
);

impl Energy for Tersoff {
    const ABOUT: About = About {
        name: "tersoff",
        summary: "Bond order in covalent crystals; for Si, C, Ge and compounds.",
        formula: "E = 1/2 sum over i, j of f(rij) [A exp(-lambda1 rij) - b B exp(-lambda2 rij)], \
                  b = (1 + (beta zeta)^n)^(-1/(2n)), \
                  zeta = sum over k of f(rik) g(theta) exp([lambda3 (rij - rik)]^m), \
                  g = gamma [1 + c^2/d^2 - c^2/(d^2 + (cos(theta) - cos-theta0)^2)], \
                  f = 1/2 - 1/2 sin(pi/2 (r - R)/D) from R - D to R + D, 1 below and 0 above",
        source: "J. Tersoff, Phys. Rev. B 37, 6991 (1988); 39, 5566 (1989), in the form of LAMMPS",
        params: &[
            Param::new("m", Dimension::NONE, "exponent in zeta, 1 or 3")
                .range(Range::Integer(1, 3))
                .example(3.0),
            Param::new("gamma", Dimension::NONE, "strength of the angular term").example(1.0),
            Param::new("lambda3", Dimension::INVERSE_LENGTH, "how zeta falls with the neighbor's distance")
                .example(13.258),
            Param::new("c", Dimension::NONE, "strength of the angular dependence").example(4.8381),
            Param::new("d", Dimension::NONE, "sharpness of the angular dependence")
                .range(Range::Positive)
                .example(2.0417),
            Param::new("cos-theta0", Dimension::NONE, "cosine of the angle at rest")
                .range(Range::Within(-1.0, 1.0))
                .example(-0.1),
            Param::new("n", Dimension::NONE, "exponent of the bond order")
                .range(Range::NonNegative)
                .example(22.956),
            Param::new("beta", Dimension::NONE, "strength of the bond order")
                .range(Range::NonNegative)
                .example(0.33675),
            Param::new("lambda2", Dimension::INVERSE_LENGTH, "inverse range of the attraction")
                .example(13.258),
            Param::new("B", Dimension::ENERGY, "strength of the attraction").example(9202.0),
            Param::new("R", Dimension::LENGTH, "middle of the range where bonds end")
                .range(Range::NonNegative)
                .example(0.3),
            Param::new("D", Dimension::LENGTH, "half the width of that range")
                .range(Range::Positive)
                .example(0.02),
            Param::new("lambda1", Dimension::INVERSE_LENGTH, "inverse range of the repulsion")
                .example(32.394),
            Param::new("A", Dimension::ENERGY, "strength of the repulsion").example(3.15e5),
        ],
    };
    type Params<T: Copy> = TersoffParams<T>;
    type Prepared<T: Copy> = TersoffPrepared<T>;
    fn prepare<T: Scalar>(p: &TersoffParams<T>) -> TersoffPrepared<T> {
        let (zero, one) = (T::constant(0.0), T::constant(1.0));
        let first_power = p.m.lt(T::constant(2.0));
        // parameter files leave n = 0 for triples whose pairs are never asked for
        let n = T::select(zero.lt(p.n), p.n, one);
        let (c2, d2) = (p.c.squared(), p.d.squared());
        TersoffPrepared {
            linear: T::select(first_power, p.lambda3, zero),
            cubic: T::select(first_power, zero, p.lambda3.powi(3)),
            g0: p.gamma * (c2 / d2 + 1.0),
            g1: p.gamma * c2,
            d2,
            cos_theta0: p.cos_theta0,
            n,
            exponent: n.recip() * -0.5,
            beta: p.beta,
            lambda2: p.lambda2,
            attraction: p.attraction,
            end_middle: p.end_middle,
            inverse_width: p.end_width.recip(),
            reach: p.end_middle + p.end_width,
            lambda1: p.lambda1,
            repulsion: p.repulsion,
        }
    }
}

/// f(r): 1 within, 0 outside, half a wave of a sine between.
#[inline(always)]
fn ending<S: Scalar, P: Coefficient<S>>(r: S, p: &TersoffPrepared<P>) -> S {
    let one = S::constant(1.0);
    let x = ((r - p.end_middle) * p.inverse_width).max(-one).min(one);
    (x * FRAC_PI_2).sin() * -0.5 + 0.5
}

/// f(rᵢₖ) g(θ) e^(…), what the neighbour k adds to ζᵢⱼ; `rij` is held within the reach of the pair, so that the
/// exponential stays finite where a lane has its neighbour j beyond.
#[inline(always)]
fn crowding<S: Scalar, P: Coefficient<S>>(
    j: &SiteNeighbor<S>,
    k: &SiteNeighbor<S>,
    rij: S,
    p: &TersoffPrepared<P>,
) -> S {
    let cos = j.vector.dot(k.vector) / (j.distance * k.distance);
    let g = p.g0 - p.g1 / (p.d2 + (cos - p.cos_theta0).squared());
    let x = rij - k.distance;
    let growth = (x * (p.linear + p.cubic * x.squared())).exp();
    ending(k.distance, p) * g * growth
}

/// [1 + (β ζ)ⁿ]^(−1/2n); 1 for ζ = 0, where a neighbour is the only one.
#[inline(always)]
fn bond_order<S: Scalar, P: Coefficient<S>>(zeta: S, p: &TersoffPrepared<P>) -> S {
    let (zero, one) = (S::constant(0.0), S::constant(1.0));
    let x = p.beta * zeta;
    let crowded = zero.lt(x);
    let power = (p.n * S::select(crowded, x, one).ln()).exp();
    S::select(crowded, (p.exponent * (power + 1.0).ln()).exp(), one)
}

/// Whether a neighbour is beyond the reach, in all lanes.
#[inline(always)]
fn beyond<S: Scalar, P: Coefficient<S>>(r: S, p: &TersoffPrepared<P>) -> bool {
    r.lt(p.reach.lift()).decided() == Some(false)
}

impl SiteEnergy for Tersoff {
    fn reach<T: Scalar>(p: &TersoffPrepared<T>) -> T {
        p.reach
    }
    #[inline(always)]
    fn energy<'a, S: Scalar, P: Coefficient<S> + 'a>(
        neighbors: &[SiteNeighbor<S>],
        p: impl Fn(usize, usize) -> &'a TersoffPrepared<P>,
    ) -> S {
        let mut energy = S::constant(0.0);
        for (a, j) in neighbors.iter().enumerate() {
            let pair = p(j.kind, j.kind);
            if beyond(j.distance, pair) {
                continue;
            }
            let rij = j.distance.min(pair.reach.lift());
            let mut zeta = S::constant(0.0);
            for (b, k) in neighbors.iter().enumerate() {
                let triple = p(j.kind, k.kind);
                if a != b && !beyond(k.distance, triple) {
                    zeta = zeta + crowding(j, k, rij, triple);
                }
            }
            let repulsion = pair.repulsion * (-(pair.lambda1 * j.distance)).exp();
            let attraction = pair.attraction * (-(pair.lambda2 * j.distance)).exp();
            energy = energy + ending(j.distance, pair) * (repulsion - bond_order(zeta, pair) * attraction);
        }
        energy * 0.5
    }
}
