//! Derivatives against 30-digit values. (Whole configurations are compared through the engine, in `tests/reference.rs`
//! at the root of the repository.)

use potentials::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

type D = Dual<f64>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

fn prepare<E: Energy>(p: &[f64]) -> E::Prepared<f64> {
    assert_eq!(p.len(), <E::Params<f64> as Record<f64>>::LEN);
    E::prepare::<f64>(&E::Params::from_fn(|k| p[k]))
}

/// f(r), f′(r), f″(r) and f‴(r).
fn radial<E: PairEnergy>(p: &[f64], r: f64) -> [f64; 4] {
    let one = Dual::passive;
    let r: Dual<Dual<D>> =
        Dual::new(Dual::new(Dual::variable(r), one(1.0)), Dual::new(one(1.0), Dual::passive(0.0)));
    let e = E::energy::<Dual<Dual<D>>, f64>(Distance::new(r), &prepare::<E>(p));
    [e.value.value.value, e.tangent.value.value, e.tangent.tangent.value, e.tangent.tangent.tangent]
}

/// A bond as a pair energy.
struct Bonded<E>(std::marker::PhantomData<E>);
impl<E: BondEnergy> Energy for Bonded<E> {
    const ABOUT: About = E::ABOUT;
    type Params<T: Copy> = E::Params<T>;
    type Prepared<T: Copy> = E::Prepared<T>;
    fn prepare<T: Scalar>(p: &E::Params<T>) -> E::Prepared<T> {
        E::prepare(p)
    }
}
impl<E: BondEnergy> PairEnergy for Bonded<E> {
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &E::Prepared<P>) -> S {
        E::energy(r, p)
    }
}

#[test]
fn derivatives_to_thirty_digits() {
    use potentials::cutoff::{Cut, Switch};
    let v = read(&repository().join("analytic/ad_md_terms.json"));
    let text = |v: &Value| v.as_str().expect("a number in quotes").parse::<f64>().expect("a number");
    let mut compared = 0;
    for row in list(&v["radial"]) {
        let (term, r) = (row["term"].as_str().expect("a term"), text(&row["r"]));
        let scale = 332.06371 * -0.36;
        let got = match term {
            "lj 12-6 eps=0.238 sigma=3.405" => radial::<pair::LennardJones>(&[0.238, 3.405], r),
            "coulomb 332.06371 q1 q2=-0.36" => radial::<pair::Coulomb>(&[], r).map(|x| x * scale),
            "buckingham A=69000 rho=0.27 C=320" => radial::<pair::Buckingham>(&[69000.0, 0.27, 320.0], r),
            "morse D=0.8 a=1.7 r0=2.9" => radial::<pair::Morse>(&[0.8, 1.7, 2.9], r),
            "fene K=30 R0=1.5" => radial::<Bonded<bond::Fene>>(&[30.0, 1.5, 0.0, 0.0], r),
            "lj switched 8..10 (S=1-10x^3+15x^4-6x^5)" => {
                radial::<Cut<pair::LennardJones, Switch>>(&[0.238, 3.405, 10.0, 8.0], r)
            }
            term if term.starts_with("ewald real") => {
                // erfc(αr)/r is what a damped shifted force is up to a line, which a far cut-off makes vanish
                radial::<pair::DampedShiftedForce>(&[0.31, 80.0], r).map(|x| x * scale)
            }
            _ => continue,
        };
        compared += 1;
        let want = ["u", "du", "d2u", "d3u"].map(|k| text(&row[k]));
        let scale = want.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        for (order, (got, want)) in got.into_iter().zip(want).enumerate() {
            let allowed = [1e-13, 1e-12, 1e-11, 1e-10][order] * want.abs() + 1e-15 * scale;
            assert!((got - want).abs() <= allowed, "{term} at {r}, derivative {order}: {got}, not {want}");
        }
    }
    assert_eq!(compared, 23);

    for row in list(&v["geometric"]) {
        let quantity = row["quantity"].as_str().expect("a quantity");
        let numbers = |key: &str| list(&row[key]).iter().map(text).collect::<Vec<_>>();
        let (x, gradient) = (numbers("point"), numbers("gradient"));
        let value = text(&row["value"]);
        let largest = gradient.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let near = if quantity.contains("close") { 1e-6 } else { 1e-12 };
        let of = |i: usize, j: usize| {
            let point = |k: usize| {
                let [x, y, z] = std::array::from_fn(|c| {
                    let at = 3 * k + c;
                    let inner = if at == j { Dual::variable(x[at]) } else { Dual::passive(x[at]) };
                    if at == i { Dual::variable(inner) } else { Dual::passive(inner) }
                });
                Vec3::<Dual<D>>::new(x, y, z)
            };
            if x.len() == 9 {
                Angle::between(point(0) - point(1), point(2) - point(1)).value()
            } else {
                let r = [0, 1, 2, 3].map(point);
                Dihedral::along(r[1] - r[0], r[2] - r[1], r[3] - r[2]).value()
            }
        };
        let got = of(0, 0).value.value;
        assert!(
            (got - value).abs() <= 1e-13 * value.abs().max(near * 10.0),
            "{quantity}: {got}, not {value}"
        );
        for (i, want) in gradient.iter().enumerate() {
            let got = of(i, i).tangent.value;
            assert!((got - want).abs() <= near * largest, "{quantity}: gradient {i} {got}, not {want}");
        }
        let hessian = list(&row["hessian_lower"]);
        let flat: Vec<f64> = hessian
            .iter()
            .flat_map(|v| if v.is_array() { list(v).iter().map(text).collect() } else { vec![text(v)] })
            .collect();
        let mut k = 0;
        for i in 0..x.len() {
            for j in 0..=i {
                if let Some(want) = flat.get(k) {
                    let got = of(i, j).tangent.tangent;
                    assert!((got - want).abs() <= 1e-11, "{quantity}: Hessian {i} {j} {got}, not {want}");
                }
                k += 1;
            }
        }
    }
}
