//! Energies and forces of whole configurations against LAMMPS and against 30-digit values.
//!
//! The decks in `tests/reference` at the root of the repository are read always; those of LAMMPS's own unit tests
//! from the folder that the environment variable `MD_REFERENCE` names, where it is set.

use potentials::many_body::{StillingerWeber, Tersoff};
use potentials::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type D = Dual<f64>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn number(v: &Value, key: &str) -> f64 {
    v[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {v}"))
}
fn vector(v: &Value) -> [f64; 3] {
    std::array::from_fn(|k| v[k].as_f64().expect("three numbers"))
}
fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}
fn count(v: &Value) -> usize {
    v.as_u64().expect("a whole number") as usize
}

fn add(a: [f64; 3], b: [f64; 3], factor: f64) -> [f64; 3] {
    std::array::from_fn(|k| a[k] + b[k] * factor)
}
fn square(a: [f64; 3]) -> f64 {
    a.iter().map(|c| c * c).sum()
}

/// A configuration, and the energies and forces found so far.
struct Deck {
    positions: Vec<[f64; 3]>,
    types: Vec<usize>,
    charges: Vec<f64>,
    /// Rows, lower triangular.
    cell: [[f64; 3]; 3],
    coulomb: f64,
    /// Bonds on the shortest way between two atoms (1 to 3).
    bonds_between: BTreeMap<(usize, usize), usize>,
    energies: BTreeMap<&'static str, f64>,
    forces: Vec<[f64; 3]>,
}

impl Deck {
    fn new(v: &Value) -> Self {
        let system = &v["system"];
        let positions: Vec<_> = list(&system["positions"]).iter().map(vector).collect();
        let n = positions.len();
        let mut partners = vec![Vec::new(); n];
        for bond in list(&v["topology"]["bonds"]) {
            let (i, j) = (count(&bond[0]), count(&bond[1]));
            partners[i].push(j);
            partners[j].push(i);
        }
        let mut bonds_between = BTreeMap::new();
        for i in 0..n {
            let mut reached = vec![i];
            for distance in 1..=3 {
                for a in reached.clone() {
                    for &b in &partners[a] {
                        if b != i {
                            bonds_between.entry((i, b)).or_insert(distance);
                        }
                        reached.push(b);
                    }
                }
            }
        }
        let vectors = &system["box"]["vectors"];
        Deck {
            types: list(&system["types"]).iter().map(count).collect(),
            charges: list(&system["charges"]).iter().map(|q| q.as_f64().expect("a charge")).collect(),
            cell: std::array::from_fn(|k| vector(&vectors[k])),
            coulomb: v["units"]["coulomb_constant"].as_f64().unwrap_or(1.0),
            bonds_between,
            energies: BTreeMap::new(),
            forces: vec![[0.0; 3]; n],
            positions,
        }
    }

    /// From i to the images of j that can be near, the nearest first.
    fn images(&self, i: usize, j: usize) -> Vec<[f64; 3]> {
        let mut d = add(self.positions[j], self.positions[i], -1.0);
        for k in (0..3).rev() {
            d = add(d, self.cell[k], -(d[k] / self.cell[k][k]).round());
        }
        let mut images = Vec::new();
        for a in -1..=1 {
            for b in -1..=1 {
                for c in -1..=1 {
                    let shift = [a, b, c].map(f64::from);
                    images.push((0..3).fold(d, |d, k| add(d, self.cell[k], shift[k])));
                }
            }
        }
        images.sort_by(|a, b| square(*a).total_cmp(&square(*b)));
        images
    }

    fn push(&mut self, kind: &'static str, energy: f64) {
        *self.energies.entry(kind).or_insert(0.0) += energy;
    }

    /// A pair energy over all pairs within a cut-off; `special` are the factors of 1-2, 1-3 and 1-4 neighbours.
    fn pairs<E: PairEnergy>(
        &mut self,
        kind: &'static str,
        special: &Value,
        shift: bool,
        parameters: impl Fn(usize, usize) -> (f64, Vec<f64>),
    ) {
        let n = self.positions.len();
        for i in 0..n {
            for j in i..n {
                let (ti, tj) = (self.types[i].min(self.types[j]), self.types[i].max(self.types[j]));
                let (cutoff, p) = parameters(ti, tj);
                let p = E::prepare::<f64>(&E::Params::from_fn(|k| p[k]));
                let factor = match E::FACTOR {
                    Factor::One => 1.0,
                    Factor::Charge => self.coulomb * self.charges[i] * self.charges[j],
                };
                let at_end = if shift { E::energy::<f64, f64>(Distance::new(cutoff), &p) } else { 0.0 };
                if i == j {
                    self.push(kind, factor * E::own(&p));
                }
                for (nearest, d) in self.images(i, j).into_iter().enumerate() {
                    let r2 = square(d);
                    if r2 >= cutoff * cutoff || r2 == 0.0 {
                        continue;
                    }
                    let bonds = self.bonds_between.get(&(i, j)).filter(|_| nearest == 0);
                    let scale = bonds.map_or(1.0, |b| special[b - 1].as_f64().expect("a factor"));
                    let r = Distance::from_squared(Dual::variable(r2));
                    let e = E::energy::<D, f64>(r, &p) - at_end;
                    let e = (e * scale + E::excluded::<D, f64>(r, &p) * (1.0 - scale)) * factor;
                    // the images of an atom with itself come in opposite pairs
                    let half = if i == j { 0.5 } else { 1.0 };
                    self.push(kind, e.value * half);
                    self.forces[i] = add(self.forces[i], d, 2.0 * e.tangent * half);
                    self.forces[j] = add(self.forces[j], d, -2.0 * e.tangent * half);
                }
            }
        }
    }

    /// An energy of N bonded atoms over the rows of a list; the last entry of a row is the type.
    fn bonded<const N: usize>(
        &mut self,
        kind: &'static str,
        rows: &Value,
        coefficients: &Value,
        energy: impl Fn(&Value, [Vec3<D>; N]) -> D,
    ) {
        for row in list(rows) {
            let atoms: [usize; N] = std::array::from_fn(|k| count(&row[k]));
            let coefficients = list(coefficients)
                .iter()
                .find(|c| c["type"] == row[N])
                .unwrap_or_else(|| panic!("no coefficients for {row}"));
            let mut x = [[0.0; 3]; N];
            for k in 1..N {
                x[k] = add(x[k - 1], self.images(atoms[k - 1], atoms[k])[0], 1.0);
            }
            for (moving, atom) in atoms.into_iter().enumerate() {
                for c in 0..3 {
                    let e = energy(coefficients, lifted(&x, moving, c));
                    self.forces[atom][c] -= e.tangent;
                    if moving == 0 && c == 0 {
                        self.push(kind, e.value);
                    }
                }
            }
        }
    }

    /// An energy of every atom and its neighbours within `reach`.
    fn sites(&mut self, kind: &'static str, reach: f64, energy: impl Fn(usize, &[SiteNeighbor<D>]) -> D) {
        let n = self.positions.len();
        for i in 0..n {
            let mut neighbors = Vec::new();
            for j in 0..n {
                neighbors.extend(
                    self.images(i, j)
                        .into_iter()
                        .filter(|d| (1e-12..reach * reach).contains(&square(*d)))
                        .map(|d| (j, d)),
                );
            }
            for moving in 0..neighbors.len() {
                for c in 0..3 {
                    let around: Vec<_> = neighbors
                        .iter()
                        .enumerate()
                        .map(|(k, &(j, d))| {
                            let [vector] = lifted(&[d], if k == moving { 0 } else { 1 }, c);
                            SiteNeighbor { vector, distance: vector.norm(), kind: self.types[j] }
                        })
                        .collect();
                    let e = energy(self.types[i], &around);
                    self.forces[neighbors[moving].0][c] -= e.tangent;
                    self.forces[i][c] += e.tangent;
                    if moving == 0 && c == 0 {
                        self.push(kind, e.value);
                    }
                }
            }
        }
    }

    fn agrees(&self, what: &str, energies: &[(&str, f64)], forces: &Value, relative: f64) {
        for &(kind, want) in energies {
            let got = self.energies.get(kind).copied().unwrap_or(0.0);
            assert!(
                (got - want).abs() <= relative * want.abs().max(1e-3),
                "{what}: {kind} energy {got}, not {want}"
            );
        }
        let want: Vec<_> = list(forces).iter().map(vector).collect();
        assert_eq!(want.len(), self.forces.len(), "{what}");
        let largest = want.iter().flatten().fold(0.0_f64, |m, f| m.max(f.abs()));
        for (k, (got, want)) in self.forces.iter().zip(&want).enumerate() {
            for c in 0..3 {
                let allowed = 10.0 * relative * largest;
                assert!((got[c] - want[c]).abs() <= allowed, "{what}: force {k} {got:?}, not {want:?}");
            }
        }
    }
}

/// The positions with coordinate `c` of atom `moving` as the variable (none where there is no such atom).
fn lifted<const N: usize>(x: &[[f64; 3]; N], moving: usize, c: usize) -> [Vec3<D>; N] {
    std::array::from_fn(|k| {
        let [x, y, z] = std::array::from_fn(|axis| {
            if k == moving && axis == c { Dual::variable(x[k][axis]) } else { Dual::passive(x[k][axis]) }
        });
        Vec3::new(x, y, z)
    })
}

fn prepare<E: Energy>(p: &[f64]) -> E::Prepared<f64> {
    assert_eq!(p.len(), <E::Params<f64> as Record<f64>>::LEN);
    E::prepare::<f64>(&E::Params::from_fn(|k| p[k]))
}
fn bond<E: BondEnergy>([a, b]: [Vec3<D>; 2], p: &[f64]) -> D {
    E::energy::<D, f64>(Distance::from_squared((b - a).norm_squared()), &prepare::<E>(p))
}
fn angle<E: AngleEnergy>([a, b, c]: [Vec3<D>; 3], p: &[f64]) -> D {
    E::energy::<D, f64>(Angle::between(a - b, c - b), &prepare::<E>(p))
}
fn dihedral<E: DihedralEnergy>([a, b, c, d]: [Vec3<D>; 4], p: &[f64]) -> D {
    E::energy::<D, f64>(Dihedral::along(b - a, c - b, d - c), &prepare::<E>(p))
}
fn tuple<E: TupleEnergy<N>, const N: usize>(r: [Vec3<D>; N], p: &[f64]) -> D {
    E::energy::<D, f64>(r.map(|x| x - r[0]), &prepare::<E>(p))
}
/// k [1 + d cos nφ] in terms of a phase.
fn phase(d: f64) -> f64 {
    if d > 0.0 { 0.0 } else { std::f64::consts::PI }
}

/// The parameters `keys` of a pair of types: as listed, or mixed by `mix`.
fn pair_parameters(style: &Value, keys: &[&str], i: usize, j: usize) -> Vec<f64> {
    let find = |i: usize, j: usize| {
        list(&style["coeffs"])
            .iter()
            .find(|c| c["i"].as_u64() == Some(i as u64) && c["j"].as_u64() == Some(j as u64))
    };
    if let Some(c) = find(i, j) {
        return keys.iter().map(|k| number(c, k)).collect();
    }
    let (a, b) = (find(i, i).expect("parameters of a type"), find(j, j).expect("parameters of a type"));
    keys.iter()
        .map(|&key| {
            let (a, b) = (number(a, key), number(b, key));
            match key {
                "epsilon" | "A" => (a * b).sqrt(),
                _ if style["mix"] == "geometric" => (a * b).sqrt(),
                _ => 0.5 * (a + b),
            }
        })
        .collect()
}

/// All terms of a deck that this crate has.
fn run(v: &Value) -> Deck {
    let mut deck = Deck::new(v);
    let (field, topology) = (&v["forcefield"], &v["topology"]);
    let (lj_special, coul_special) = (&field["special"]["lj"], &field["special"]["coul"]);
    for style in list(&field["pair"]) {
        let name = style["style"].as_str().expect("a style");
        let global = &style["global"];
        let keyed = |keys: &'static [&'static str], extra: &'static [&'static str]| {
            let cutoff =
                if global["cut"].is_null() { number(global, "cut_lj") } else { number(global, "cut") };
            move |i, j| {
                let mut p = pair_parameters(style, keys, i, j);
                p.extend(extra.iter().map(|k| number(global, k)));
                (cutoff, p)
            }
        };
        let coulomb_cutoff =
            || ["cut_coul", "cut_lj", "cut"].iter().find_map(|k| global[k].as_f64()).expect("a cut-off");
        let shift = style["shift"] == true;
        if name.starts_with("lj/cut") {
            deck.pairs::<pair::LennardJones>("vdwl", lj_special, shift, keyed(&["epsilon", "sigma"], &[]));
        }
        match name {
            "lj/cut" => {}
            "lj/cut/coul/cut" | "coul/cut" => {
                deck.pairs::<pair::Coulomb>("coul", coul_special, false, |_, _| (coulomb_cutoff(), vec![]));
            }
            "lj/cut/coul/debye" | "coul/debye" => {
                let p = vec![number(global, "kappa")];
                deck.pairs::<pair::CoulombDebye>("coul", coul_special, false, |_, _| {
                    (coulomb_cutoff(), p.clone())
                });
            }
            "lj/cut/coul/dsf" | "coul/dsf" => {
                let cutoff = coulomb_cutoff();
                let p = vec![number(global, "alpha"), cutoff];
                deck.pairs::<pair::DampedShiftedForce>("coul", coul_special, false, |_, _| {
                    (cutoff, p.clone())
                });
            }
            "lj96/cut" => {
                deck.pairs::<pair::Lj96>("vdwl", lj_special, shift, keyed(&["epsilon", "sigma"], &[]))
            }
            "mie/cut" => deck.pairs::<pair::Mie>(
                "vdwl",
                lj_special,
                shift,
                keyed(&["epsilon", "sigma", "gamma_rep", "gamma_att"], &[]),
            ),
            "buck" => {
                deck.pairs::<pair::Buckingham>("vdwl", lj_special, shift, keyed(&["A", "rho", "C"], &[]))
            }
            "born" => {
                let parameters = keyed(&["A", "rho", "sigma", "C", "D"], &[]);
                deck.pairs::<pair::BornMayerHuggins>("vdwl", lj_special, shift, |i, j| {
                    let (cutoff, mut p) = parameters(i, j);
                    p[4] = -p[4];
                    (cutoff, p)
                });
            }
            "morse" => {
                deck.pairs::<pair::Morse>("vdwl", lj_special, shift, keyed(&["D0", "alpha", "r0"], &[]))
            }
            "yukawa" => deck.pairs::<pair::Yukawa>("vdwl", lj_special, shift, keyed(&["A"], &["kappa"])),
            "soft" => {
                let parameters = keyed(&["A", "cut"], &[]);
                deck.pairs::<pair::SoftCosine>("vdwl", lj_special, false, |i, j| {
                    let (_, p) = parameters(i, j);
                    (p[1], p)
                });
            }
            "gauss" => deck.pairs::<pair::Gaussian>("vdwl", lj_special, shift, keyed(&["A", "B"], &[])),
            "zbl" => {
                let (inner, outer) = (number(global, "inner"), number(global, "outer"));
                // (the style knows no exclusions)
                let all = Value::from(vec![1.0; 3]);
                deck.pairs::<SmoothZbl>("vdwl", &all, false, |i, j| {
                    let [zi, zj] = [i, j].map(|k| pair_parameters(style, &["Zi"], k, k)[0]);
                    let kappa = (zi.powf(0.23) + zj.powf(0.23)) / 0.4685;
                    (outer, vec![number(&v["units"], "coulomb_constant") * zi * zj, kappa, inner, outer])
                });
            }
            _ => panic!("pair style {name}"),
        }
    }
    let style = |kind: &str| field[kind]["style"].as_str().unwrap_or("none").to_owned();
    let coefficients = |kind: &str| &field[kind]["coeffs"];
    let degrees = |c: &Value, key: &str| number(c, key).to_radians();

    let name = style("bond");
    if name != "none" {
        deck.bonded("bond", &topology["bonds"], coefficients("bond"), |c, r| match name.as_str() {
            "harmonic" => bond::<bond::HarmonicBond>(r, &[2.0 * number(c, "k"), number(c, "r0")]),
            "morse" => bond::<bond::MorseBond>(r, &[number(c, "D"), number(c, "alpha"), number(c, "r0")]),
            "class2" => bond::<bond::QuarticBond>(r, &["r0", "k2", "k3", "k4"].map(|k| number(c, k))),
            "fene" => bond::<bond::Fene>(r, &["K", "R0", "epsilon", "sigma"].map(|k| number(c, k))),
            "gromos" => bond::<bond::G96Bond>(r, &[4.0 * number(c, "k"), number(c, "r0")]),
            _ => panic!("bond style {name}"),
        });
    }
    let name = style("angle");
    if name != "none" {
        deck.bonded("angle", &topology["angles"], coefficients("angle"), |c, r| match name.as_str() {
            "harmonic" => angle::<angle::HarmonicAngle>(r, &[2.0 * number(c, "k"), degrees(c, "theta0_deg")]),
            "cosine" => angle::<angle::CosineAngle>(r, &[number(c, "k")]),
            "cosine/squared" => {
                angle::<angle::CosineSquaredAngle>(r, &[2.0 * number(c, "k"), degrees(c, "theta0_deg")])
            }
            "quartic" => {
                let k = ["k2", "k3", "k4"].map(|k| number(c, k));
                angle::<angle::QuarticAngle>(r, &[degrees(c, "theta0_deg"), k[0], k[1], k[2]])
            }
            _ => panic!("angle style {name}"),
        });
    }
    let name = style("dihedral");
    if name != "none" {
        deck.bonded("dihedral", &topology["dihedrals"], coefficients("dihedral"), |c, r| {
            match name.as_str() {
                "charmm" => dihedral::<dihedral::PeriodicDihedral>(
                    r,
                    &[number(c, "k"), number(c, "n"), degrees(c, "d_deg")],
                ),
                "harmonic" => {
                    let p = [number(c, "k"), number(c, "n"), phase(number(c, "d"))];
                    dihedral::<dihedral::PeriodicDihedral>(r, &p)
                }
                "opls" => {
                    dihedral::<dihedral::OplsDihedral>(r, &["K1", "K2", "K3", "K4"].map(|k| number(c, k)))
                }
                "multi/harmonic" => {
                    let a = ["A1", "A2", "A3", "A4", "A5"].map(|k| number(c, k));
                    dihedral::<dihedral::RyckaertBellemans>(r, &[a[0], -a[1], a[2], -a[3], a[4], 0.0])
                }
                "quadratic" => {
                    dihedral::<dihedral::HarmonicDihedral>(r, &[2.0 * number(c, "k"), degrees(c, "phi0_deg")])
                }
                _ => panic!("dihedral style {name}"),
            }
        });
    }
    let name = style("improper");
    if name != "none" {
        deck.bonded("improper", &topology["impropers"], coefficients("improper"), |c, r| {
            match name.as_str() {
                "cvff" => {
                    let p = [number(c, "k"), number(c, "n"), phase(number(c, "d"))];
                    tuple::<tuple::PeriodicImproper, 4>(r, &p)
                }
                "harmonic" => {
                    // the angle between the planes has no sign there
                    let [a, b, d, e] = r;
                    let sign = Dihedral::along(b - a, d - b, e - d).value().value.signum();
                    let p = [2.0 * number(c, "k"), sign * degrees(c, "chi0_deg")];
                    tuple::<tuple::HarmonicImproper, 4>(r, &p)
                }
                _ => panic!("improper style {name}"),
            }
        });
    }
    deck
}

fn compare(path: &Path, relative: f64) {
    let v = read(path);
    let reference = &v["reference"];
    let kinds = ["vdwl", "coul", "bond", "angle", "dihedral", "improper"];
    let (energy, forces) = if reference["energy_exact_erfc"].is_null() {
        (&reference["energy"], &reference["forces"])
    } else {
        (&reference["energy_exact_erfc"], &reference["forces_exact_erfc"])
    };
    let energies: Vec<_> = kinds.iter().filter_map(|&k| Some((k, energy[k].as_f64()?))).collect();
    assert!(!energies.is_empty(), "{}", path.display());
    run(&v).agrees(&path.display().to_string(), &energies, forces, relative);
}

/// The repulsion of nuclei with the ending of LAMMPS's pair style zbl: E(r) + c, and beyond `inner` a polynomial
/// a/3 x³ + b/4 x⁴ in x = r − inner, which make E, E′ and E″ zero at `outer`.
struct SmoothZbl;

record!(
    /// What the style is given.
    SmoothZblParams { strength, kappa, inner, outer }
);
record!(
    /// The polynomial's coefficients among it.
    SmoothZblPrepared { strength, kappa, inner, a, b, c }
);

impl Energy for SmoothZbl {
    const ABOUT: About = pair::Zbl::ABOUT;
    type Params<T: Copy> = SmoothZblParams<T>;
    type Prepared<T: Copy> = SmoothZblPrepared<T>;
    fn prepare<T: Scalar>(p: &SmoothZblParams<T>) -> SmoothZblPrepared<T> {
        let r = Dual::new(Dual::variable(p.outer), Dual::constant(1.0));
        let constant = |x| Dual::passive(Dual::passive(x));
        let zbl = pair::ZblParams { a: constant(p.strength), kappa: constant(p.kappa) };
        let e = pair::Zbl::energy::<Dual<Dual<T>>, Dual<Dual<T>>>(Distance::new(r), &zbl);
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
    fn energy<S: Scalar, P: Coefficient<S>>(r: Distance<S>, p: &SmoothZblPrepared<P>) -> S {
        let x = (r - p.inner).relu();
        let zbl = pair::Zbl::energy(r, &pair::ZblParams { a: p.strength, kappa: p.kappa });
        zbl + p.c + x.powi(3) * (p.a + p.b * x)
    }
}

#[test]
fn configurations_of_lammps() {
    let mut files: Vec<_> = std::fs::read_dir(repository().join("lammps_own"))
        .expect("the folder of decks")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| {
            // decks of other tests may stand beside these
            let v = read(path);
            let known = ["lj/cut", "lj/cut/coul/cut", "lj/cut/coul/debye", "lj/cut/coul/dsf"];
            let known = [&known[..], &["lj96/cut", "buck", "born", "morse", "yukawa"]].concat();
            let pairs = list(&v["forcefield"]["pair"]).iter();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            pairs.map(|p| p["style"].as_str()).all(|s| s.is_some_and(|s| known.contains(&s)))
                && !["mol_3", "mol_4", "pair_small"].iter().any(|p| name.starts_with(p))
        })
        .collect();
    files.sort();
    assert!(files.len() >= 12);
    for file in files {
        compare(&file, 1e-9);
    }
}

#[test]
fn unit_tests_of_lammps() {
    let Some(folder) = std::env::var_os("MD_REFERENCE") else {
        eprintln!("skipped: MD_REFERENCE is not set");
        return;
    };
    let folder = PathBuf::from(folder).join("lammps_unittest");
    for name in [
        "mol_pair_lj_cut",
        "mol_pair_lj96_cut",
        "mol_pair_mie_cut",
        "mol_pair_buck",
        "mol_pair_born",
        "mol_pair_morse",
        "mol_pair_yukawa",
        "mol_pair_soft",
        "mol_pair_gauss",
        "mol_pair_zbl",
        "mol_pair_coul_debye",
        "bond_harmonic",
        "bond_morse",
        "bond_class2",
        "bond_fene",
        "bond_gromos",
        "angle_harmonic",
        "angle_cosine",
        "angle_cosine_squared",
        "angle_quartic",
        "dihedral_charmm",
        "dihedral_harmonic",
        "dihedral_opls",
        "dihedral_multi_harmonic",
        "dihedral_quadratic",
        "improper_cvff",
        "improper_harmonic",
    ] {
        compare(&folder.join(name).with_extension("json"), 1e-10);
    }
    // LAMMPS's erfc is good to 1e-7
    compare(&folder.join("mol_pair_coul_dsf.json"), 2e-6);
    tersoff(
        &folder.join("manybody_pair_tersoff.json"),
        &parameter_file(&folder, "SiC.tersoff", 14),
        &["Si", "Si", "Si", "Si", "C", "C", "C", "C"],
    );
    stillinger_weber(
        &folder.join("manybody_pair_sw_multi.json"),
        &parameter_file(&folder, "CdTe.sw", 11),
        &["Cd", "Cd", "Cd", "Cd", "Te", "Te", "Te", "Te"],
    );
}

type Triples = BTreeMap<[String; 3], Vec<f64>>;

fn triples(words: &[&str], columns: usize) -> Triples {
    words
        .chunks(3 + columns)
        .map(|row| {
            let numbers = row[3..].iter().map(|w| w.parse().expect("a number")).collect();
            ([row[0], row[1], row[2]].map(str::to_owned), numbers)
        })
        .collect()
}
fn parameter_file(folder: &Path, name: &str, columns: usize) -> Triples {
    let path = folder.join("../potentials").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let words: Vec<_> =
        text.lines().filter(|l| !l.trim_start().starts_with('#')).flat_map(str::split_whitespace).collect();
    triples(&words, columns)
}

/// The parameters of every triple of types.
fn table<E: Energy>(triples: &Triples, elements: &[&str]) -> Vec<E::Prepared<f64>> {
    let n = <E::Params<f64> as Record<f64>>::LEN;
    let mut table = Vec::new();
    for i in elements {
        for j in elements {
            for k in elements {
                table.push(prepare::<E>(&triples[&[i, j, k].map(|s| (*s).to_owned())][..n]));
            }
        }
    }
    table
}

fn tersoff(path: &Path, triples: &Triples, elements: &[&str]) {
    let v = read(path);
    let mut deck = Deck::new(&v);
    let (table, n) = (table::<Tersoff>(triples, elements), elements.len());
    let reach = table.iter().map(Tersoff::reach).fold(0.0, f64::max);
    // (a longer list must not matter)
    deck.sites("vdwl", reach + 0.4, |i, neighbors| {
        Tersoff::energy::<D, f64>(neighbors, |j, k| &table[(i * n + j) * n + k])
    });
    many_body_agrees(&deck, path, &v);
}

fn stillinger_weber(path: &Path, triples: &Triples, elements: &[&str]) {
    let v = read(path);
    let mut deck = Deck::new(&v);
    let (table, n) = (table::<StillingerWeber>(triples, elements), elements.len());
    let reach = table.iter().map(StillingerWeber::reach).fold(0.0, f64::max);
    deck.sites("vdwl", reach, |i, neighbors| {
        let p = |j: usize, k: usize| &table[(i * n + j) * n + k];
        let mut energy = Dual::passive(0.0);
        for (a, j) in neighbors.iter().enumerate() {
            let (pj, r) = (p(j.kind, j.kind), Distance::new(j.distance));
            energy = energy + StillingerWeber::pair::<D, f64>(r, pj) * 0.5;
            let gj = StillingerWeber::feature::<D, f64>(r, pj);
            for k in &neighbors[a + 1..] {
                let gk = StillingerWeber::feature::<D, f64>(Distance::new(k.distance), p(k.kind, k.kind));
                let cos = j.vector.dot(k.vector) / (j.distance * k.distance);
                energy = energy + StillingerWeber::triplet::<D, f64>(cos, gj, gk, p(j.kind, k.kind));
            }
        }
        energy
    });
    many_body_agrees(&deck, path, &v);
}

fn many_body_agrees(deck: &Deck, path: &Path, v: &Value) {
    let energy = &v["reference"]["energy"];
    let total = energy["total"].as_f64().or(energy["vdwl"].as_f64()).expect("an energy");
    deck.agrees(&path.display().to_string(), &[("vdwl", total)], &v["reference"]["forces"], 1e-9);
}

#[test]
fn silicon() {
    let folder = repository().join("manybody");
    let line = |name: &str| {
        let v = read(&folder.join(name));
        v["forcefield"]["pair"][0]["lammps_line"].as_str().expect("a line").to_owned()
    };
    let text = line("tersoff_si.json");
    tersoff(&folder.join("tersoff_si.json"), &triples(&text.split(' ').collect::<Vec<_>>(), 14), &["Si"]);
    let text = line("sw_si.json");
    stillinger_weber(&folder.join("sw_si.json"), &triples(&text.split(' ').collect::<Vec<_>>(), 11), &["Si"]);
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
