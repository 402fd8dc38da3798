//! Position restraint.

use crate::energy::{Energy, FieldEnergy, Origin};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Scalar, Vec3, record};

/// E(x) = ½ k |x|², x measured from the atom's anchor.
pub struct PositionRestraint;

record!(
    /// What the user gives.
    PositionRestraintParams {
        /// Stiffness.
        k
    }
);

impl Energy for PositionRestraint {
    const ABOUT: About = About {
        name: "position-restraint",
        summary: "A spring that holds an atom at its anchor.",
        formula: "E(x) = 1/2 k |x - anchor|^2",
        source: "a harmonic oscillator in three dimensions",
        params: &[Param::new("k", Dimension::STIFFNESS, "stiffness; the energy has the factor 1/2")
            .range(Range::NonNegative)
            .example(1000.0)],
    };
    type Params<T: Copy> = PositionRestraintParams<T>;
    type Prepared<T: Copy> = PositionRestraintParams<T>;
    fn prepare<T: Scalar>(p: &PositionRestraintParams<T>) -> PositionRestraintParams<T> {
        *p
    }
}

impl FieldEnergy for PositionRestraint {
    const ORIGIN: Origin = Origin::Anchor;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(x: Vec3<S>, p: &PositionRestraintParams<P>) -> S {
        0.5 * p.k * x.norm_squared()
    }
}
