//! Radius of gyration.

use crate::energy::{Energy, GlobalEnergy};
use crate::geometry::root_or_zero;
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Scalar, Vec3, record};

/// E = ½ k (Rg − R₀)² with Rg² = Σ mᵢ |xᵢ − x̄|² / Σ mᵢ about the centre of mass x̄: holds a group at a size.
pub struct RadiusOfGyration;

record!(
    /// What the user gives.
    RadiusOfGyrationParams {
        /// Stiffness.
        k,
        /// Radius at rest.
        r0
    }
);

impl Energy for RadiusOfGyration {
    const ABOUT: About = About {
        name: "radius-of-gyration",
        summary: "A spring in the mass-weighted radius of gyration of a group.",
        formula: "E = 1/2 k (Rg - r0)^2, Rg^2 = sum of m |x - center of mass|^2 / sum of m",
        source: "a harmonic restraint; collective variable gyration of PLUMED and Colvars",
        params: &[
            Param::new("k", Dimension::STIFFNESS, "stiffness; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(700.0),
            Param::new("r0", Dimension::LENGTH, "radius at rest").range(Range::NonNegative).example(0.25),
        ],
    };
    type Params<T: Copy> = RadiusOfGyrationParams<T>;
    type Prepared<T: Copy> = RadiusOfGyrationParams<T>;
    fn prepare<T: Scalar>(p: &RadiusOfGyrationParams<T>) -> RadiusOfGyrationParams<T> {
        *p
    }
}

impl GlobalEnergy for RadiusOfGyration {
    fn energy<S: Scalar, P: Coefficient<S>>(
        x: &[Vec3<S>],
        masses: &[f64],
        p: &RadiusOfGyrationParams<P>,
    ) -> S {
        let mass: f64 = masses.iter().sum();
        let mut center = Vec3::constant([0.0; 3]);
        for (&x, &m) in x.iter().zip(masses) {
            center = center + x * (m / mass);
        }
        let mut square = S::constant(0.0);
        for (&x, &m) in x.iter().zip(masses) {
            square = square + (x - center).norm_squared() * (m / mass);
        }
        0.5 * p.k * (root_or_zero(square) - p.r0).squared()
    }
}
