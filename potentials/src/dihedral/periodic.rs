//! Periodic dihedral.

use crate::energy::{DihedralEnergy, Energy};
use crate::param::{About, Dimension, Param, Range};
use crate::record::Record;
use crate::{Coefficient, Dihedral, Scalar, record};
use std::f64::consts::FRAC_PI_3;

/// E(φ) = k [1 + cos(nφ − φ₀)] with a whole multiplicity n; φ is 0 for cis, π for trans. Several of them on the
/// same four atoms make a Fourier series.
///
/// No arc function is taken: k cos(nφ − φ₀) is a polynomial in cos φ plus sin φ times another, both smooth
/// everywhere. n selects the polynomials and is not differentiable: derivatives with respect to it are 0.
pub struct PeriodicDihedral;

record!(
    /// What the user gives.
    PeriodicDihedralParams {
        /// Half the barrier.
        k,
        /// Multiplicity: how many minima in a turn.
        n,
        /// Phase: where the energy is highest for n = 1.
        phi0
    }
);
record!(
    /// E = Σ aⱼ cosʲφ + sin φ Σ bⱼ cosʲφ
    PeriodicDihedralPrepared { a0, a1, a2, a3, a4, a5, a6, b0, b1, b2, b3, b4, b5 }
);

/// The highest multiplicity.
const N: usize = 6;

/// The parameters, also those of the improper of this form.
pub(crate) const PARAMS: &[Param] = &[
    Param::new("k", Dimension::ENERGY, "half the height of the barrier").example(7.0),
    Param::new("n", Dimension::NONE, "multiplicity, the number of minima in a turn")
        .range(Range::Integer(0, N as i32))
        .example(3.0),
    Param::new("phi0", Dimension::NONE, "phase; for n = 1 the angle of highest energy").example(FRAC_PI_3),
];

/// Coefficients of cos nφ in powers of cos φ (Chebyshev's polynomials of the first kind), n from 0.
const FIRST_KIND: [[f64; N + 1]; N + 1] = [
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [-1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, -3.0, 0.0, 4.0, 0.0, 0.0, 0.0],
    [1.0, 0.0, -8.0, 0.0, 8.0, 0.0, 0.0],
    [0.0, 5.0, 0.0, -20.0, 0.0, 16.0, 0.0],
    [-1.0, 0.0, 18.0, 0.0, -48.0, 0.0, 32.0],
];
/// Those of sin nφ / sin φ (the second kind), n from 0.
const SECOND_KIND: [[f64; N]; N + 1] = [
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 2.0, 0.0, 0.0, 0.0, 0.0],
    [-1.0, 0.0, 4.0, 0.0, 0.0, 0.0],
    [0.0, -4.0, 0.0, 8.0, 0.0, 0.0],
    [1.0, 0.0, -12.0, 0.0, 16.0, 0.0],
    [0.0, 6.0, 0.0, -32.0, 0.0, 32.0],
];

impl Energy for PeriodicDihedral {
    const ABOUT: About = About {
        name: "periodic",
        summary: "A cosine of a multiple of the dihedral, as in Amber and CHARMM.",
        formula: "E(phi) = k [1 + cos(n phi - phi0)], phi = 0 for cis",
        source: "W. D. Cornell et al., J. Am. Chem. Soc. 117, 5179 (1995), eq. 1, where k is called V/2",
        params: PARAMS,
    };
    type Params<T: Copy> = PeriodicDihedralParams<T>;
    type Prepared<T: Copy> = PeriodicDihedralPrepared<T>;
    fn prepare<T: Scalar>(p: &PeriodicDihedralParams<T>) -> PeriodicDihedralPrepared<T> {
        let zero = T::constant(0.0);
        let mut c = [zero; 2 * N + 1];
        c[0] = p.k;
        let (along, across) = (p.k * p.phi0.cos(), p.k * p.phi0.sin());
        for n in 0..=N {
            let chosen = (p.n - n as f64).abs().lt(T::constant(0.5));
            let (along, across) = (T::select(chosen, along, zero), T::select(chosen, across, zero));
            for (c, k) in c[..=N].iter_mut().zip(FIRST_KIND[n]) {
                *c = *c + along * k;
            }
            for (c, k) in c[N + 1..].iter_mut().zip(SECOND_KIND[n]) {
                *c = *c + across * k;
            }
        }
        Record::from_fn(|k| c[k])
    }
}

impl DihedralEnergy for PeriodicDihedral {
    #[inline(always)]
    fn energy<S: Scalar, P: Coefficient<S>>(phi: Dihedral<S>, p: &PeriodicDihedralPrepared<P>) -> S {
        let c = phi.cos();
        let even = c.powers([p.a1, p.a2, p.a3, p.a4, p.a5, p.a6]) + p.a0;
        even + phi.sin() * (c.powers([p.b1, p.b2, p.b3, p.b4, p.b5]) + p.b0)
    }
}
