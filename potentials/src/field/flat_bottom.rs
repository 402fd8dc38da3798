//! Flat-bottomed restraint.

use crate::energy::{Energy, FieldEnergy, Origin};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Scalar, Vec3, record};

/// E(x) = ½ k max(0, |x| − R)², x measured from the atom's anchor: free within a sphere, drawn back outside. The
/// force is continuous, its slope jumps at R.
pub struct FlatBottom;

record!(
    /// What the user gives.
    FlatBottomParams {
        /// Stiffness outside.
        k,
        /// Radius within which the atom is free.
        radius
    }
);

impl Energy for FlatBottom {
    const ABOUT: About = About {
        name: "flat-bottom",
        summary: "Leaves an atom free within a sphere around its anchor and draws it back from outside.",
        formula: "E(x) = 1/2 k max(0, |x - anchor| - radius)^2",
        source: "the flat-bottomed position restraint of GROMACS, spherical",
        params: &[
            Param::new("k", Dimension::STIFFNESS, "stiffness outside; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(1000.0),
            Param::new("radius", Dimension::LENGTH, "within it the atom is free")
                .range(Range::NonNegative)
                .example(0.3),
        ],
    };
    type Params<T: Copy> = FlatBottomParams<T>;
    type Prepared<T: Copy> = FlatBottomParams<T>;
    fn prepare<T: Scalar>(p: &FlatBottomParams<T>) -> FlatBottomParams<T> {
        *p
    }
}

impl FieldEnergy for FlatBottom {
    const ORIGIN: Origin = Origin::Anchor;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(x: Vec3<S>, p: &FlatBottomParams<P>) -> S {
        0.5 * p.k * (x.norm() - p.radius).relu().squared()
    }
}
