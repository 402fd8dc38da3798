//! Uniform electric field.

use crate::energy::{Energy, Factor, FieldEnergy};
use crate::param::{About, Dimension, Param};
use crate::{Coefficient, Scalar, Vec3, record};

/// E(x) = −𝓔·x, times the atom's charge. Atoms are followed through periodic images, so that the energy does not
/// jump when one is wrapped.
pub struct UniformElectricField;

record!(
    /// What the user gives: the field's components.
    UniformElectricFieldParams { ex, ey, ez }
);

const FIELD: Dimension = Dimension::FORCE.per(Dimension::CHARGE);

impl Energy for UniformElectricField {
    const ABOUT: About = About {
        name: "uniform-electric-field",
        summary: "Pulls charges along a constant field.",
        formula: "E(x) = -q (ex x + ey y + ez z)",
        source: "electrostatics: the potential of a homogeneous field",
        params: &[
            Param::new("ex", FIELD, "field along x").default(0.0).example(4.0),
            Param::new("ey", FIELD, "field along y").default(0.0).example(-7.0),
            Param::new("ez", FIELD, "field along z").default(0.0).example(1.5),
        ],
    };
    type Params<T: Copy> = UniformElectricFieldParams<T>;
    type Prepared<T: Copy> = UniformElectricFieldParams<T>;
    fn prepare<T: Scalar>(p: &UniformElectricFieldParams<T>) -> UniformElectricFieldParams<T> {
        *p
    }
}

impl FieldEnergy for UniformElectricField {
    const FACTOR: Factor = Factor::Charge;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(x: Vec3<S>, p: &UniformElectricFieldParams<P>) -> S {
        -(p.ex * x.x + p.ey * x.y + p.ez * x.z)
    }
}
