//! Reaction field.

use crate::energy::{Energy, Factor, PairEnergy};
use crate::param::{About, Dimension, Param, Range};
use crate::{Coefficient, Distance, Scalar, record};

/// E(r) = 1/r + k r² − c up to the cut-off rc, times Coulomb's constant and the charges: beyond rc stands a
/// dielectric of constant ε. k = (ε − 1)/(2ε + 1)/rc³ and c = 1/rc + k rc², so that E(rc) = 0; for a conductor
/// (ε infinite, written as 0) also the force vanishes there.
///
/// The field acts on an atom's excluded partners and on itself as well (k r² − c, and −c/2 for each atom, as in
/// GROMACS); a program may leave these out.
pub struct ReactionField;

record!(
    /// What the user gives.
    ReactionFieldParams {
        /// Dielectric constant beyond the cut-off, 0 for a conductor.
        epsilon_rf,
        /// Where the interaction ends.
        cutoff
    }
);
record!(
    /// k and c.
    ReactionFieldPrepared { k, c }
);

impl Energy for ReactionField {
    const ABOUT: About = About {
        name: "reaction-field",
        summary: "Charges with a dielectric continuum beyond the cut-off.",
        formula: "E(r) = k qi qj (1/r + krf r^2 - crf); \
                  krf = (epsilon-rf - 1)/(2 epsilon-rf + 1)/cutoff^3, crf = 1/cutoff + krf cutoff^2",
        source: "I. G. Tironi, R. Sperb, P. E. Smith and W. F. van Gunsteren, J. Chem. Phys. 102, 5451 (1995), \
                 for a medium without ions",
        params: &[
            Param::new(
                "epsilon-rf",
                Dimension::NONE,
                "dielectric constant beyond the cut-off; 0 stands for infinity (a conductor)",
            )
            .range(Range::NonNegative)
            .default(0.0)
            .example(61.0),
            Param::new("cutoff", Dimension::LENGTH, "distance at which the interaction ends")
                .range(Range::Positive)
                .cutoff(),
        ],
    };
    type Params<T: Copy> = ReactionFieldParams<T>;
    type Prepared<T: Copy> = ReactionFieldPrepared<T>;
    fn prepare<T: Scalar>(p: &ReactionFieldParams<T>) -> ReactionFieldPrepared<T> {
        let e = p.epsilon_rf;
        let conductor = e.le(T::constant(0.0));
        let strength = T::select(conductor, T::constant(0.5), (e - 1.0) / (e * 2.0 + 1.0));
        let inverse = p.cutoff.recip();
        ReactionFieldPrepared { k: strength * inverse.powi(3), c: (strength + 1.0) * inverse }
    }
}

impl PairEnergy for ReactionField {
    const FACTOR: Factor = Factor::Charge;
    const LEAVES_REMAINDER: bool = true;
    const ENDS_AT_CUTOFF: bool = true;
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &ReactionFieldPrepared<P>) -> S {
        r.recip() + p.k * r.squared() - p.c
    }
    #[inline(always)]
    fn excluded<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &ReactionFieldPrepared<P>) -> S {
        p.k * r.squared() - p.c
    }
    #[inline(always)]
    fn own<T: Scalar>(p: &ReactionFieldPrepared<T>) -> T {
        p.c * -0.5
    }
}
