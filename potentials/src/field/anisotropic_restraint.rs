//! Position restraint with a stiffness for each axis.

use crate::energy::{Energy, FieldEnergy, Origin};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Scalar, Vec3, record};

/// E(x) = ½ (kx x² + ky y² + kz z²), measured from the atom's anchor. A stiffness of 0 leaves an axis free.
pub struct AnisotropicRestraint;

record!(
    /// What the user gives.
    AnisotropicRestraintParams { kx, ky, kz }
);

impl Energy for AnisotropicRestraint {
    const ABOUT: About = About {
        name: "anisotropic-restraint",
        summary: "A spring for each axis that holds an atom at its anchor, in a plane or on a line.",
        formula: "E(x) = 1/2 (kx x^2 + ky y^2 + kz z^2), x measured from the anchor",
        source: "three harmonic oscillators",
        params: &[
            Param::new("kx", Dimension::STIFFNESS, "stiffness along x")
                .range(Range::NonNegative)
                .default(0.0)
                .example(1000.0),
            Param::new("ky", Dimension::STIFFNESS, "stiffness along y")
                .range(Range::NonNegative)
                .default(0.0)
                .example(30.0),
            Param::new("kz", Dimension::STIFFNESS, "stiffness along z")
                .range(Range::NonNegative)
                .default(0.0)
                .example(200.0),
        ],
    };
    type Params<T: Copy> = AnisotropicRestraintParams<T>;
    type Prepared<T: Copy> = AnisotropicRestraintParams<T>;
    fn prepare<T: Scalar>(p: &AnisotropicRestraintParams<T>) -> AnisotropicRestraintParams<T> {
        *p
    }
}

impl FieldEnergy for AnisotropicRestraint {
    const ORIGIN: Origin = Origin::Anchor;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(x: Vec3<S>, p: &AnisotropicRestraintParams<P>) -> S {
        (p.kx * x.x.squared() + p.ky * x.y.squared() + p.kz * x.z.squared()) * 0.5
    }
}
