//! An energy from outside the catalogue, as a third party would add it.

use potentials::pair::{Zbl, ZblParams};
use potentials::*;

/// The repulsion of nuclei with the ending of LAMMPS's pair style zbl: E(r) + c, and beyond `inner` a polynomial
/// a/3 x³ + b/4 x⁴ in x = r − inner, which make E, E′ and E″ zero at `outer`.
pub struct SmoothZbl;

record!(
    /// What the style is given.
    SmoothZblParams { strength, kappa, inner, outer }
);
record!(
    /// The polynomial's coefficients among it.
    SmoothZblPrepared { strength, kappa, inner, a, b, c }
);

impl Energy for SmoothZbl {
    const ABOUT: About = About {
        name: "smooth-zbl",
        params: &[
            Zbl::ABOUT.params[0],
            Zbl::ABOUT.params[1],
            Param::new("inner", Dimension::LENGTH, "where the ending begins"),
            Param::new("outer", Dimension::LENGTH, "where it ends"),
        ],
        ..Zbl::ABOUT
    };
    type Params<T: Copy> = SmoothZblParams<T>;
    type Prepared<T: Copy> = SmoothZblPrepared<T>;
    fn prepare<T: Scalar>(p: &SmoothZblParams<T>) -> SmoothZblPrepared<T> {
        let r = Dual::new(Dual::variable(p.outer), Dual::constant(1.0));
        let constant = |x| Dual::passive(Dual::passive(x));
        let zbl = ZblParams { a: constant(p.strength), kappa: constant(p.kappa) };
        let e = Zbl::energy::<Dual<Dual<T>>, Dual<Dual<T>>>(Distance::new(r), &zbl);
        let (e0, e1, e2) = (e.value.value, e.value.tangent, e.tangent.tangent);
        let width = p.outer - p.inner;
        SmoothZblPrepared {
            strength: p.strength,
            kappa: p.kappa,
            inner: p.inner,
            a: (width * e2 - e1 * 3.0) / width.powi(2) / 3.0,
            b: (e1 * 2.0 - width * e2) / width.powi(3) / 4.0,
            c: width * e1 / 2.0 - e0 - width.powi(2) * e2 / 12.0,
        }
    }
}

impl PairEnergy for SmoothZbl {
    const ENDS_AT_CUTOFF: bool = true;
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &SmoothZblPrepared<P>) -> S {
        let x = (r - p.inner).relu();
        let zbl = Zbl::energy(r, &ZblParams { a: p.strength, kappa: p.kappa });
        zbl + p.c + x.powi(3) * (p.a + p.b * x)
    }
}
