//! Harmonic wall.

use crate::energy::{Energy, FieldEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Scalar, Vec3, record};

/// E(x) = ½ k max(0, d − n·x)² for a plane n·x = d: atoms that cross it are pushed back to the side to which the
/// normal n points. The normal need not have length 1; d is a distance from the origin in any case.
pub struct HarmonicWall;

record!(
    /// What the user gives (as prepared: the normal of length 1).
    HarmonicWallParams {
        /// Stiffness.
        k,
        /// The plane's distance from the origin along its normal.
        position,
        /// The normal, pointing to where atoms may be.
        nx, ny, nz
    }
);

impl Energy for HarmonicWall {
    const ABOUT: About = About {
        name: "harmonic-wall",
        summary: "A plane that pushes atoms back to one side.",
        formula: "E(x) = 1/2 k max(0, position - n.x)^2, n = (nx, ny, nz)/|(nx, ny, nz)|",
        source: "fix wall/harmonic of LAMMPS (manual), there without the factor 1/2",
        params: &[
            Param::new("k", Dimension::STIFFNESS, "stiffness; the energy has the factor 1/2")
                .range(Range::NonNegative)
                .example(1000.0),
            Param::new(
                "position",
                Dimension::LENGTH,
                "the plane's distance from the origin along its normal",
            )
            .example(0.2),
            Param::new("nx", Dimension::NONE, "normal, pointing to where atoms may be: x").example(1.0),
            Param::new("ny", Dimension::NONE, "normal: y").example(-2.0),
            Param::new("nz", Dimension::NONE, "normal: z").example(0.5),
        ],
    };
    type Params<T: Copy> = HarmonicWallParams<T>;
    type Prepared<T: Copy> = HarmonicWallParams<T>;
    fn prepare<T: Scalar>(p: &HarmonicWallParams<T>) -> HarmonicWallParams<T> {
        let inverse = Vec3::new(p.nx, p.ny, p.nz).norm_squared().rsqrt();
        HarmonicWallParams { nx: p.nx * inverse, ny: p.ny * inverse, nz: p.nz * inverse, ..*p }
    }
}

impl FieldEnergy for HarmonicWall {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(x: Vec3<S>, p: &HarmonicWallParams<P>) -> S {
        let height = p.nx * x.x + p.ny * x.y + p.nz * x.z;
        0.5 * p.k * (p.position - height).relu().squared()
    }
}
