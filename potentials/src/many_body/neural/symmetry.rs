//! Atom-centred symmetry functions, and the functions that end them at a cut-off.

use crate::energy::SiteNeighbor;
use crate::scalar::{Mask, Scalar};
use std::f64::consts::PI;

/// How a symmetry function ends at its cut-off c: a function f of the distance that is 0 from c on. Those of
/// x = (r − αc)/(c − αc) are 1 up to an inner cut-off αc. (The numbers are n2p2's.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum CutoffKind {
    /// 1: not continuous.
    Hard = 0,
    /// ½ [cos πx + 1]
    Cos = 1,
    /// tanh³(1 − r/c)
    TanhU = 2,
    /// tanh³(1 − r/c) / tanh³ 1
    Tanh = 3,
    /// e^(1 − 1/(1 − x²))
    Exp = 4,
    /// (2x − 3) x² + 1
    Poly1 = 5,
    /// ((15 − 6x) x − 10) x³ + 1
    Poly2 = 6,
    /// (x (x (20x − 70) + 84) − 35) x⁴ + 1
    Poly3 = 7,
    /// (x (x ((315 − 70x) x − 540) + 420) − 126) x⁵ + 1
    Poly4 = 8,
}

impl CutoffKind {
    /// All of them with their names, in the order of their numbers.
    pub const ALL: [(CutoffKind, &'static str); 9] = [
        (CutoffKind::Hard, "hard"),
        (CutoffKind::Cos, "cos"),
        (CutoffKind::TanhU, "tanh-unscaled"),
        (CutoffKind::Tanh, "tanh"),
        (CutoffKind::Exp, "exp"),
        (CutoffKind::Poly1, "poly1"),
        (CutoffKind::Poly2, "poly2"),
        (CutoffKind::Poly3, "poly3"),
        (CutoffKind::Poly4, "poly4"),
    ];
    /// Whether it has an inner cut-off.
    pub fn has_inner(self) -> bool {
        !matches!(self, CutoffKind::Hard | CutoffKind::TanhU | CutoffKind::Tanh)
    }
}

/// A cut-off function: its kind, and its inner cut-off as a part of the outer one, 0 ≤ α < 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutoffFunction {
    /// The kind.
    pub kind: CutoffKind,
    /// α
    pub inner: f64,
}

impl CutoffFunction {
    /// f(r) for a cut-off c.
    #[inline(always)]
    pub fn of<S: Scalar>(self, r: S, cutoff: f64) -> S {
        let (zero, one) = (S::constant(0.0), S::constant(1.0));
        let inner = cutoff * self.inner;
        // (held within where a polynomial is meant, so that it is nowhere large)
        let x = ((r - inner) * (1.0 / (cutoff - inner))).max(zero).min(one);
        let f = match self.kind {
            CutoffKind::Hard => one,
            CutoffKind::Cos => (x * PI).cos() * 0.5 + 0.5,
            CutoffKind::TanhU => (r * (-1.0 / cutoff) + 1.0).tanh().powi(3),
            CutoffKind::Tanh => (r * (-1.0 / cutoff) + 1.0).tanh().powi(3) * (1.0 / 1f64.tanh().powi(3)),
            CutoffKind::Exp => {
                let gap = one - x.squared();
                let gap = S::select(zero.lt(gap), gap, one);
                (one - gap.recip()).exp()
            }
            // (in 1 − x, so that what is small near the end is exact)
            CutoffKind::Poly1 => (one - x).poly([0.0, 0.0, 3.0, -2.0]),
            CutoffKind::Poly2 => (one - x).poly([0.0, 0.0, 0.0, 10.0, -15.0, 6.0]),
            CutoffKind::Poly3 => (one - x).poly([0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0]),
            CutoffKind::Poly4 => {
                (one - x).poly([0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0])
            }
        };
        S::select(r.lt(S::constant(cutoff)), f, zero)
    }
}

/// What a symmetry function sums up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// G2 = Σⱼ u(rᵢⱼ) over neighbours of one element.
    Radial,
    /// G9 = Σⱼₖ 2^(1−ζ) (1 + λ cos θ)^ζ u(rᵢⱼ) u(rᵢₖ) over pairs of neighbours of two elements.
    Wide {
        /// λ, from −1 to 1.
        lambda: f64,
        /// ζ ≥ 1.
        zeta: f64,
    },
    /// G3: the same times u(rⱼₖ).
    Narrow {
        /// λ, from −1 to 1.
        lambda: f64,
        /// ζ ≥ 1.
        zeta: f64,
    },
}

impl Shape {
    /// The number of the type of function, of J. Behler's and n2p2's.
    pub fn number(self) -> usize {
        match self {
            Shape::Radial => 2,
            Shape::Narrow { .. } => 3,
            Shape::Wide { .. } => 9,
        }
    }
    /// λ and ζ of an angular one.
    pub fn angular(self) -> Option<Angular> {
        match self {
            Shape::Radial => None,
            Shape::Wide { lambda, zeta } | Shape::Narrow { lambda, zeta } => Some(Angular { lambda, zeta }),
        }
    }
}

/// One symmetry function: u(r) = e^(−η (r − rₛ)²) f(r), summed in some shape over neighbours of an element in the
/// centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymmetryFunction {
    /// The element in the centre.
    pub center: usize,
    /// The elements of the neighbours: of a radial one twice the same, of others the smaller number first.
    pub neighbors: [usize; 2],
    /// What is summed up.
    pub shape: Shape,
    /// η
    pub eta: f64,
    /// rₛ
    pub shift: f64,
    /// The cut-off.
    pub cutoff: f64,
}

impl SymmetryFunction {
    /// The order in which functions go into the networks, which is n2p2's: by element in the centre, type, cut-off, η,
    /// rₛ, ζ, λ and the neighbours' elements.
    pub fn order(&self, other: &Self) -> std::cmp::Ordering {
        let integers = |f: &Self| (f.center, f.shape.number());
        let reals = |f: &Self| {
            let (lambda, zeta) = f.shape.angular().map_or((0.0, 0.0), |a| (a.lambda, a.zeta));
            [f.cutoff, f.eta, f.shift, zeta, lambda]
        };
        let mut order = integers(self).cmp(&integers(other));
        for (a, b) in reals(self).iter().zip(&reals(other)) {
            order = order.then(a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        }
        order.then(self.neighbors.cmp(&other.neighbors))
    }
}

/// u(r): what a neighbour's distance gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radial {
    /// η
    pub eta: f64,
    /// rₛ
    pub shift: f64,
    /// The cut-off.
    pub cutoff: f64,
}

impl Radial {
    /// e^(−η (r − rₛ)²) f, where f is the value of the cut-off function.
    #[inline(always)]
    pub fn of<S: Scalar>(self, r: S, ended: S) -> S {
        match self.eta == 0.0 {
            true => ended,
            false => ((r - self.shift).squared() * -self.eta).exp() * ended,
        }
    }
}

/// ½ 2^(1−ζ) (1 + λ cos θ)^ζ = [(1 + λ cos θ)/2]^ζ: half of what the angle between two neighbours gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Angular {
    /// λ
    pub lambda: f64,
    /// ζ
    pub zeta: f64,
}

/// The largest ζ.
pub const MAX_ZETA: f64 = 4096.0;

/// How an angular factor is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Power {
    /// As a whole power of (1 + λ cos θ)/2.
    Whole(i32),
    /// As a whole power of another factor, which is a smaller power of the same.
    Of(usize, i32),
    /// As a real power.
    Real,
}

impl Angular {
    /// What is raised to a power.
    #[inline(always)]
    fn base<S: Scalar>(self, cos: S) -> S {
        cos * (0.5 * self.lambda) + 0.5
    }
    /// xᶻ for a ζ that is no whole number; 0 where round-off has put x below 0.
    #[inline(always)]
    fn real_power<S: Scalar>(self, x: S) -> S {
        let (zero, positive) = (S::constant(0.0), S::constant(0.0).lt(x));
        S::select(positive, S::select(positive, x, S::constant(1.0)).powf(self.zeta), zero)
    }
    /// How it is computed with the help of those before it.
    fn power(self, before: &[Angular]) -> Power {
        if self.zeta.fract() != 0.0 {
            return Power::Real;
        }
        // (of two that could help, the one with the larger exponent)
        let helps = |other: &&(usize, &Angular)| {
            other.1.lambda == self.lambda && other.1.zeta.fract() == 0.0 && self.zeta % other.1.zeta == 0.0
        };
        let known: Vec<(usize, &Angular)> = before.iter().enumerate().collect();
        let best = known.iter().filter(helps).max_by(|a, b| a.1.zeta.total_cmp(&b.1.zeta));
        match best {
            Some((k, other)) => Power::Of(*k, (self.zeta / other.zeta) as i32),
            None => Power::Whole(self.zeta as i32),
        }
    }
}

/// Angular functions with the same u: each takes an angular factor of the site's list and goes to an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Which u of the site's list.
    pub radial: usize,
    /// Angular factors and outputs.
    pub members: Vec<(usize, usize)>,
}

/// What pairs of neighbours of two elements give.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Couple {
    /// The angular factors that are needed, in the order in which they are computed.
    pub angles: Vec<usize>,
    /// The u that are needed of the distances of both.
    pub radials: Vec<usize>,
    /// The u that are needed of the distance between the two neighbours.
    pub across: Vec<usize>,
    /// Wide functions.
    pub wide: Vec<Group>,
    /// Narrow functions.
    pub narrow: Vec<Group>,
    /// The largest of their cut-offs.
    pub reach: f64,
}

/// The symmetry functions around atoms of one element, with everything that they share.
#[derive(Clone, Debug, PartialEq)]
pub struct Surroundings {
    /// How all of them end.
    pub ending: CutoffFunction,
    /// All different u, those of the same cut-off together.
    pub radials: Vec<Radial>,
    /// All different angular factors.
    pub angles: Vec<Angular>,
    /// For neighbours of each element, which u are needed.
    pub needed: Vec<Vec<usize>>,
    /// For neighbours of each element, which u is added to which output.
    pub sums: Vec<Vec<(usize, usize)>>,
    /// For pairs of elements (a, b), a ≤ b, at a × elements + b.
    pub couples: Vec<Couple>,
    /// What the sum of each function is multiplied by: 2 for angular ones.
    pub factors: Vec<f64>,
    powers: Vec<Power>,
    elements: usize,
}

fn position<T: PartialEq>(list: &mut Vec<T>, x: T) -> usize {
    list.iter().position(|y| *y == x).unwrap_or_else(|| {
        list.push(x);
        list.len() - 1
    })
}

impl Surroundings {
    /// Of the functions around one element, whose lengths are multiplied by `length`.
    pub fn new<'a>(
        functions: impl Iterator<Item = &'a SymmetryFunction>,
        ending: CutoffFunction,
        elements: usize,
        length: f64,
    ) -> Self {
        let mut new = Self {
            ending,
            radials: Vec::new(),
            angles: Vec::new(),
            needed: vec![Vec::new(); elements],
            sums: vec![Vec::new(); elements],
            couples: vec![Couple::default(); elements * elements],
            factors: Vec::new(),
            powers: Vec::new(),
            elements,
        };
        // (small exponents first, since larger ones can be made of them)
        let functions: Vec<&SymmetryFunction> = functions.collect();
        new.angles.extend(functions.iter().filter_map(|f| f.shape.angular()));
        new.angles.sort_by(|a, b| a.zeta.total_cmp(&b.zeta).then(a.lambda.total_cmp(&b.lambda)));
        new.angles.dedup();
        new.powers = (0..new.angles.len()).map(|k| new.angles[k].power(&new.angles[..k])).collect();
        for f in functions {
            let output = new.factors.len();
            new.factors.push(if f.shape == Shape::Radial { 1.0 } else { 2.0 });
            let u =
                Radial { eta: f.eta / (length * length), shift: f.shift * length, cutoff: f.cutoff * length };
            let radial = position(&mut new.radials, u);
            for e in f.neighbors {
                position(&mut new.needed[e], radial);
            }
            let Some(angular) = f.shape.angular() else {
                new.sums[f.neighbors[0]].push((radial, output));
                continue;
            };
            let angle = position(&mut new.angles, angular);
            let couple = &mut new.couples[f.neighbors[0] * elements + f.neighbors[1]];
            position(&mut couple.radials, radial);
            let mut wanted = Some(angle);
            while let Some(k) = wanted {
                position(&mut couple.angles, k);
                wanted = match new.powers[k] {
                    Power::Of(other, _) => Some(other),
                    _ => None,
                };
            }
            couple.reach = couple.reach.max(u.cutoff);
            let groups = match f.shape {
                Shape::Narrow { .. } => {
                    position(&mut couple.across, radial);
                    &mut couple.narrow
                }
                _ => &mut couple.wide,
            };
            match groups.iter_mut().find(|g| g.radial == radial) {
                Some(group) => group.members.push((angle, output)),
                None => groups.push(Group { radial, members: vec![(angle, output)] }),
            }
        }
        // (a cut-off function is computed once for each cut-off)
        let by_cutoff = |radials: &[Radial], list: &mut Vec<usize>| {
            list.sort_by(|&a, &b| radials[a].cutoff.total_cmp(&radials[b].cutoff));
        };
        new.needed.iter_mut().for_each(|list| by_cutoff(&new.radials, list));
        for couple in &mut new.couples {
            by_cutoff(&new.radials, &mut couple.across);
            couple.angles.sort_unstable();
        }
        new
    }

    /// How far away neighbours of an element are seen.
    pub fn reach(&self, element: usize) -> f64 {
        self.needed[element].iter().fold(0.0, |m: f64, &k| m.max(self.radials[k].cutoff))
    }

    /// What pairs of neighbours of two elements give.
    #[inline(always)]
    pub fn couple(&self, a: usize, b: usize) -> &Couple {
        &self.couples[a.min(b) * self.elements + a.max(b)]
    }

    /// Some of the u at a distance r, in their places.
    #[inline(always)]
    pub fn radials_at<S: Scalar>(&self, r: S, needed: &[usize], out: &mut [S]) {
        let (mut cutoff, mut ended) = (0.0, S::constant(0.0));
        for &k in needed {
            let u = self.radials[k];
            if u.cutoff != cutoff {
                (cutoff, ended) = (u.cutoff, self.ending.of(r, u.cutoff));
            }
            out[k] = u.of(r, ended);
        }
    }

    /// Some of the angular factors, in their places.
    #[inline(always)]
    pub fn angles_at<S: Scalar>(&self, cos: S, needed: &[usize], out: &mut [S]) {
        for &k in needed {
            let angular = self.angles[k];
            out[k] = match self.powers[k] {
                Power::Of(other, n) => out[other].powi(n),
                Power::Whole(n) => angular.base(cos).powi(n),
                Power::Real => angular.real_power(angular.base(cos)),
            };
        }
    }

    /// The functions of an atom with these neighbours, whose kinds are elements.
    pub fn values<S: Scalar>(&self, neighbors: &[SiteNeighbor<S>]) -> Vec<S> {
        let zero = S::constant(0.0);
        let n = self.radials.len();
        let mut u = vec![zero; n * neighbors.len()];
        let mut values = vec![zero; self.factors.len()];
        for (j, u) in neighbors.iter().zip(u.chunks_mut(n.max(1))) {
            self.radials_at(j.distance, &self.needed[j.kind], u);
            for &(radial, output) in &self.sums[j.kind] {
                values[output] = values[output] + u[radial];
            }
        }
        let (mut angles, mut across) = (vec![zero; self.angles.len()], vec![zero; n]);
        let inside =
            |x: &SiteNeighbor<S>, reach: f64| x.distance.lt(S::constant(reach)).decided() != Some(false);
        for (k, b) in neighbors.iter().enumerate() {
            for (j, a) in neighbors[..k].iter().enumerate() {
                let couple = self.couple(a.kind, b.kind);
                if couple.angles.is_empty() || !inside(a, couple.reach) || !inside(b, couple.reach) {
                    continue;
                }
                let cos = a.vector.dot(b.vector) / (a.distance * b.distance);
                self.angles_at(cos, &couple.angles, &mut angles);
                if !couple.across.is_empty() {
                    let distance = (b.vector - a.vector).norm_squared().sqrt();
                    self.radials_at(distance, &couple.across, &mut across);
                }
                let (ua, ub) = (&u[j * n..(j + 1) * n], &u[k * n..(k + 1) * n]);
                let mut add = |group: &Group, product: S| {
                    for &(angle, output) in &group.members {
                        values[output] = angles[angle].fma(product, values[output]);
                    }
                };
                for group in &couple.wide {
                    add(group, ua[group.radial] * ub[group.radial]);
                }
                for group in &couple.narrow {
                    add(group, ua[group.radial] * ub[group.radial] * across[group.radial]);
                }
            }
        }
        for (value, &factor) in values.iter_mut().zip(&self.factors) {
            *value = *value * factor;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dual, Vec3};

    const KINDS: [CutoffKind; 9] = [
        CutoffKind::Hard,
        CutoffKind::Cos,
        CutoffKind::TanhU,
        CutoffKind::Tanh,
        CutoffKind::Exp,
        CutoffKind::Poly1,
        CutoffKind::Poly2,
        CutoffKind::Poly3,
        CutoffKind::Poly4,
    ];

    /// Values at c/2 without an inner cut-off, where x = ½; 1 at the inner cut-off, and 0 with no slope at the outer.
    #[test]
    fn cutoff_functions() {
        let t = 0.5f64.tanh();
        let half = [
            1.0,
            0.5,
            t * t * t,
            t * t * t / 1f64.tanh().powi(3),
            // 1 − 1/(1 − ¼) = −⅓
            (-1.0f64 / 3.0).exp(),
            // all polynomials are odd about their middle
            0.5,
            0.5,
            0.5,
            0.5,
        ];
        for ((kind, number), (half, listed)) in
            KINDS.into_iter().zip(0..).zip(half.into_iter().zip(CutoffKind::ALL))
        {
            assert_eq!((kind as i32, kind), (number, listed.0));
            let f = CutoffFunction { kind, inner: 0.0 };
            assert!((f.of(3.0, 6.0) - half).abs() < 1e-15, "{kind:?}");
            assert_eq!(f.of(6.0, 6.0), 0.0);
            assert_eq!(f.of(60.0, 6.0), 0.0);
            let end = f.of(Dual::variable(6.0 - 1e-9), 6.0);
            assert!(
                kind == CutoffKind::Hard || (end.value.abs() < 1e-15 && end.tangent.abs() < 1e-8),
                "{kind:?}"
            );
            if kind.has_inner() {
                let f = CutoffFunction { kind, inner: 0.25 };
                // (x = 0 at r = 2, ½ at 5, of c = 8)
                assert_eq!((f.of(1.0, 8.0), f.of(2.0, 8.0)), (1.0, 1.0));
                assert!((f.of(5.0, 8.0) - half).abs() < 1e-15, "{kind:?}");
            }
        }
        // one value off the middle: x = ¼, (2/4 − 3)/16 + 1 and so on
        let quarter = |kind| CutoffFunction { kind, inner: 0.0 }.of(1.0, 4.0);
        assert_eq!(quarter(CutoffKind::Poly1), 27.0 / 32.0);
        assert_eq!(quarter(CutoffKind::Poly2), ((15.0 - 1.5) * 0.25 - 10.0) / 64.0 + 1.0);
        assert_eq!(quarter(CutoffKind::Poly3), (0.25 * (0.25 * (5.0 - 70.0) + 84.0) - 35.0) / 256.0 + 1.0);
        let poly4: f64 = quarter(CutoffKind::Poly4);
        assert!(
            (poly4 - ((0.25 * (0.25 * ((315.0 - 17.5) * 0.25 - 540.0) + 420.0) - 126.0) / 1024.0 + 1.0))
                .abs()
                < 1e-15
        );
    }

    /// Every function over again as it stands in the literature, one by one.
    #[test]
    fn values_are_those_of_plain_sums() {
        let ending = CutoffFunction { kind: CutoffKind::Poly2, inner: 0.1 };
        let mut functions = Vec::new();
        for (a, b, lambda, zeta, eta, shift, cutoff) in [
            (0, 0, 1.0, 1.0, 0.3, 0.2, 2.4),
            (0, 1, -1.0, 4.0, 0.3, 0.2, 1.7),
            (0, 1, -1.0, 16.0, 0.3, 0.2, 1.7),
            (1, 1, 1.0, 2.5, 0.0, 0.0, 2.0),
        ] {
            functions.push((Shape::Radial, [a, a], eta, shift, cutoff));
            functions.push((Shape::Wide { lambda, zeta }, [a, b], eta, shift, cutoff));
            functions.push((Shape::Narrow { lambda, zeta }, [a, b], 2.0 * eta, shift, cutoff));
        }
        let functions: Vec<SymmetryFunction> = functions
            .into_iter()
            .map(|(shape, neighbors, eta, shift, cutoff)| SymmetryFunction {
                center: 0,
                neighbors,
                shape,
                eta,
                shift,
                cutoff,
            })
            .collect();
        let atoms: [([f64; 3], usize); 5] = [
            ([0.9, 0.1, -0.2], 0),
            ([-0.3, 1.1, 0.4], 1),
            ([0.2, -0.8, 0.9], 1),
            ([-0.7, -0.6, -0.5], 0),
            ([1.0, 1.5, 0.3], 1),
        ];
        let length = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let minus = |a: [f64; 3], b: [f64; 3]| [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
        let found: Vec<SiteNeighbor<f64>> = atoms
            .iter()
            .map(|&(v, kind)| SiteNeighbor { vector: Vec3::constant(v), distance: length(v), kind })
            .collect();
        let values = Surroundings::new(functions.iter(), ending, 2, 1.0).values(&found);
        for (f, found) in functions.iter().zip(values) {
            let u = |r: f64| {
                let x = (r - 0.1 * f.cutoff) / (0.9 * f.cutoff);
                let end = 1.0 - 10.0 * x.powi(3) + 15.0 * x.powi(4) - 6.0 * x.powi(5);
                let end = if x < 0.0 {
                    1.0
                } else if x > 1.0 {
                    0.0
                } else {
                    end
                };
                (-f.eta * (r - f.shift).powi(2)).exp() * end
            };
            let mut sum = 0.0;
            for (i, &(a, kind)) in atoms.iter().enumerate() {
                let Some(Angular { lambda, zeta }) = f.shape.angular() else {
                    sum += if kind == f.neighbors[0] { u(length(a)) } else { 0.0 };
                    continue;
                };
                for &(b, other) in &atoms[..i] {
                    if [kind.min(other), kind.max(other)] != f.neighbors {
                        continue;
                    }
                    let (ra, rb, across) = (length(a), length(b), length(minus(a, b)));
                    // the law of cosines
                    let cos = (ra * ra + rb * rb - across * across) / (2.0 * ra * rb);
                    let mut term = 2f64.powf(1.0 - zeta) * (1.0 + lambda * cos).powf(zeta) * u(ra) * u(rb);
                    if f.shape.number() == 3 {
                        term *= u(across);
                    }
                    sum += term;
                }
            }
            assert!((found - sum).abs() < 1e-13 && sum > 1e-12, "{f:?}: {found} and {sum}");
        }
    }
}
