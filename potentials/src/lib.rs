//! What an energy is, and the standard ones.
//!
//! An energy is one generic function over [`Scalar`]; see [`energy`] for the kinds.

// a quotient is written as a product with the reciprocal where that is what the derivative needs anyway
#![allow(clippy::suspicious_arithmetic_impl)]

pub mod angle;
pub mod bond;
pub mod catalog;
pub mod cutoff;
pub mod dihedral;
pub mod distance;
pub mod dual;
pub mod energy;
pub mod field;
pub mod geometry;
pub mod many_body;
pub mod pair;
pub mod param;
pub mod record;
pub mod scalar;
pub mod special;
pub mod tuple;

pub use distance::{Distance, Ratio, Rooted};
pub use dual::Dual;
pub use energy::{
    AngleEnergy, BondEnergy, DihedralEnergy, EmbeddingEnergy, Energy, Factor, FieldEnergy, GlobalEnergy,
    Origin, PairEnergy, SiteEnergy, SiteNeighbor, TripletEnergy, TupleEnergy,
};
pub use geometry::{Angle, Dihedral, Vec3};
pub use param::{About, Dimension, Mixing, Param, Range, Source};
pub use record::{Both, Nothing, Record};
pub use scalar::{Coefficient, Mask, Passive, Scalar};

#[cfg(test)]
mod tests {
    use super::*;

    fn textbook<S: Scalar, P: Coefficient<S>>(r: Distance<S>, epsilon: P, sigma: P) -> S {
        let s6 = (sigma / r).powi(6);
        4.0 * epsilon * (s6 * s6 - s6)
    }
    fn field<S: Scalar, P: Coefficient<S>>(r: Distance<S>, q: P, k: P, c: P) -> S {
        q * (1.0 / r + k * r.squared() - c)
    }
    fn spring<S: Scalar, P: Coefficient<S>>(r: Distance<S>, k: P, r0: P) -> S {
        0.5 * k * (r - r0).squared()
    }

    #[test]
    fn energies_can_be_written_as_in_a_textbook() {
        let (e, s, r): (f64, f64, f64) = (0.7, 0.34, 0.41);
        let want = 4.0 * e * ((s / r).powi(12) - (s / r).powi(6));
        let lj = |r| textbook::<f64, f64>(r, e, s);
        assert!((lj(Distance::new(r)) - want).abs() < 1e-14);
        let d = textbook::<Dual<f64>, f64>(Distance::new(Dual::variable(r)), e, s);
        let slope = 4.0 * e * (-12.0 * s.powi(12) / r.powi(13) + 6.0 * s.powi(6) / r.powi(7));
        assert!((d.tangent - slope).abs() < 1e-12 * slope.abs());
        let dd = textbook::<Dual<f64>, Dual<f64>>(
            Distance::new(Dual::passive(r)),
            Dual::variable(e),
            Dual::passive(s),
        );
        assert!((dd.tangent - want / e).abs() < 1e-14);
        let f = field::<Dual<f64>, f64>(Distance::new(Dual::variable(2.0)), 3.0, 0.5, 0.25);
        assert_eq!((f.value, f.tangent), (3.0 * (0.5 + 2.0 - 0.25), 3.0 * (-0.25 + 2.0)));
        let b = spring::<Dual<Dual<f64>>, f64>(
            Distance::new(Dual::new(Dual::variable(2.0), Dual::passive(1.0))),
            3.0,
            1.5,
        );
        assert_eq!((b.value.value, b.tangent.value, b.tangent.tangent), (0.375, 1.5, 3.0));
    }
}
