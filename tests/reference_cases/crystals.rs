//! Crystals: lattice sums, vibrations, elastic constants.

use super::engine::*;
use super::json::*;
use super::openmm::lennard_jones_tail;
use super::report::{Outcome, Report};
use md::catalog::{Catalog, Ending, EnergyKind};
use md::forces::pair::Special;
use md::forces::{Evaluator, ForceSource, Forces, Kind};
use md::integrate::Motion;
use md::integrate::minimize::{Lbfgs, Minimizer, Until};
use md::system::lattice::{Lattice, LatticeKind};
use md::system::{Atoms, Cell, Positions, State};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::Path;

fn system(units: Units, cell: [[f64; 3]; 3], points: &[[f64; 3]], mass: f64) -> System {
    let n = points.len();
    let cell = Cell::new(cell, [true; 3]).expect("a cell");
    System {
        units,
        positions: Positions::from_cartesian(&cell, points).expect("positions"),
        cell,
        velocities: vec![[0.0; 3]; n],
        joined: Default::default(),
        atoms: Atoms {
            type_names: vec!["0".into()],
            types: vec![0; n],
            masses: vec![mass; n],
            charges: vec![0.0; n],
            molecules: vec![0; n],
            names: vec![String::new(); n],
        },
    }
}

const REDUCED: Units = Units { length: 1.0, energy: 1.0, time: 1.0, coulomb: 1.0 };

// ----------------------------------------------------------------------------- lattice.json

/// The parts of `lattice.json`.
pub fn lattice_parts(path: &Path) -> Vec<String> {
    let head = ["schema", "id", "title", "source", "tolerance"];
    let case = read(path);
    let keys = case.as_object().expect("a table").keys();
    keys.filter(|k| !head.contains(&k.as_str())).cloned().collect()
}

pub fn lattice(path: &Path, part: &str) -> Outcome {
    let (case, mut report) = (read(path), Report::default());
    let (of, tolerance) = (&case[part], &case["tolerance"]);
    match part {
        "madelung" | "rederived" | "ewald_cells" => return Outcome::Lacks(vec!["coulomb ewald".into()]),
        "lj_finite_cutoff" => finite(&mut report, of, number(tolerance, "finite_rel")),
        "lj_infinite_lattice" => infinite(&mut report, of, number(tolerance, "infinite_rel")),
        "harmonic_ring" => ring(&mut report, of, number(tolerance, "frequencies_rel")),
        "diatomic_ring" => diatomic_ring(&mut report, of, number(tolerance, "frequencies_rel")),
        _ => panic!("part {part}"),
    }
    Outcome::Ran(report)
}

fn lennard_jones(catalog: &Catalog, system: &System, cutoff: f64) -> Evaluator {
    let term = PairTerm {
        name: "vdwl",
        energy: "lennard-jones",
        ending: Ending::Truncate,
        rows: vec![(None, vec![1.0, 1.0], cutoff)],
        inner: 0.0,
        mix: Mix::Arithmetic,
        special: Special::default(),
    };
    system.evaluator(vec![term.build(catalog, system)])
}

/// One cubic cell, smaller than the cut-off: all images count.
fn finite(report: &mut Report, rows: &Value, relative: f64) {
    let catalog = md::catalog();
    for row in list(rows) {
        let kind: LatticeKind = text(row, "lattice").parse().expect("a lattice");
        let lattice = Lattice::new(kind, [number(row, "a"); 3], [1; 3]).expect("a lattice");
        let system = system(REDUCED, lattice.cell(), &lattice.positions(), 1.0);
        let mut evaluator = lennard_jones(&catalog, &system, number(row, "cutoff"));
        for (kind, found) in system.evaluate(&mut evaluator) {
            let what = format!("{kind}, {}", text(row, "lattice"));
            let energy = found.energy() / system.len() as f64;
            report.energy(&what, energy, number(row, "energy_per_atom"), relative);
            let pressure =
                found.virial[..3].iter().sum::<f64>() / 3.0 / system.cell.volume().expect("a volume");
            // (the pressure is the small rest of two large terms)
            report.number(&format!("{what}: pressure"), pressure, number(row, "pressure"), relative * 100.0);
        }
    }
}

/// One primitive cell and a far cut-off; energy and virial give both sums.
fn infinite(report: &mut Report, of: &Value, relative: f64) {
    let catalog = md::catalog();
    let third = (1.0_f64 / 3.0).sqrt();
    let (half, high) = (0.5_f64.sqrt(), (2.0_f64 / 3.0).sqrt());
    for (name, row) in of["rows"].as_object().expect("rows") {
        // in units of the distance of nearest neighbours
        let (cell, points) = match name.as_str() {
            "sc" => ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], vec![[0.0; 3]]),
            "fcc" => ([[0.0, half, half], [half, 0.0, half], [half, half, 0.0]], vec![[0.0; 3]]),
            "bcc" => {
                ([[-third, third, third], [third, -third, third], [third, third, -third]], vec![[0.0; 3]])
            }
            "hcp" => (
                [[1.0, 0.0, 0.0], [0.5, 0.75_f64.sqrt(), 0.0], [0.0, 0.0, 2.0 * high]],
                vec![[0.0; 3], [0.5, 0.5 * third, high]],
            ),
            other => panic!("lattice {other}"),
        };
        let system = system(REDUCED, cell, &points, 1.0);
        let cutoff = 24.0;
        let mut evaluator = lennard_jones(&catalog, &system, cutoff);
        let (n, volume) = (system.len() as f64, system.cell.volume().expect("a volume"));
        let rho = n / volume;
        for (kind, found) in system.evaluate(&mut evaluator) {
            // E = 2 (A12 − A6), tr W = 2 (12 A12 − 6 A6), each with the tail of a continuum
            let tail6 = 4.0 / 3.0 * std::f64::consts::PI * rho * cutoff.powi(-3);
            let energy = found.energy() / n + rho * lennard_jones_tail(1.0, 1.0, cutoff);
            let trace = found.virial[..3].iter().sum::<f64>() / n - 12.0 * tail6;
            let (a12, a6) = ((trace - 6.0 * energy) / 12.0, (trace - 12.0 * energy) / 12.0);
            for (key, x) in [("A12", a12), ("A6", a6)] {
                let e = number(row, key);
                report.number(&format!("{kind}, {name}: {key}"), x, e, relative * e);
            }
            let closest = (2.0 * a12 / a6).powf(1.0 / 6.0);
            report.number(&format!("{name}: distance"), closest, number(row, "r_nn_min"), relative);
            let lowest = -0.5 * a6 * a6 / a12;
            let e = number(row, "energy_per_atom_min");
            report.number(&format!("{name}: minimum"), lowest, e, 2.0 * relative * e.abs());
        }
    }
}

/// The matrix of second derivatives along x of masses on a ring of springs, weighted by the masses.
fn dynamical(k: f64, masses: &[f64]) -> nalgebra::DMatrix<f64> {
    let (catalog, n) = (md::catalog(), masses.len());
    let points: Vec<_> = (0..n).map(|i| [i as f64, 0.0, 0.0]).collect();
    let length = n as f64;
    let system = system(REDUCED, [[length, 0.0, 0.0], [0.0, length, 0.0], [0.0, 0.0, length]], &points, 1.0);
    // ½ k x² on both sides
    let bonds: Vec<_> = (0..n).map(|i| (vec![i as u32, ((i + 1) % n) as u32], vec![k, 1.0])).collect();
    let term = tuple_term(&catalog, &system, "bond", (EnergyKind::Bond, "harmonic"), &bonds);
    let mut evaluator = system.evaluator(vec![term]);
    nalgebra::DMatrix::from_columns(
        &(0..n)
            .map(|j| {
                let mut v = vec![[0.0; 3]; n];
                v[j][0] = 1.0;
                let product =
                    evaluator.hessian_product(&system.cell, &system.positions, &v).expect("a product");
                nalgebra::DVector::from_fn(n, |i, _| product[i][0] / (masses[i] * masses[j]).sqrt())
            })
            .collect::<Vec<_>>(),
    )
}

fn frequencies(matrix: nalgebra::DMatrix<f64>) -> Vec<f64> {
    let mut all: Vec<f64> = matrix.symmetric_eigenvalues().iter().map(|x| x.max(0.0).sqrt()).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn compare_frequencies(report: &mut Report, found: &[f64], mut expected: Vec<f64>, relative: f64) {
    expected.sort_by(f64::total_cmp);
    assert_eq!(found.len(), expected.len());
    let top = expected[expected.len() - 1];
    for (w, e) in found.iter().zip(&expected) {
        // (the root of a rounding error where the frequency is 0)
        let limit = if *e < 1e-9 { 1e-7 * top } else { relative * e };
        report.number("frequency", *w, *e, limit);
    }
}

fn ring(report: &mut Report, of: &Value, relative: f64) {
    let found = frequencies(dynamical(number(of, "k"), &vec![number(of, "m"); count(&of["n"])]));
    compare_frequencies(report, &found, numbers(&of["omega"]), relative);
}

fn diatomic_ring(report: &mut Report, of: &Value, relative: f64) {
    let cells = count(&of["cells"]);
    let masses: Vec<_> = (0..cells).flat_map(|_| [number(of, "m1"), number(of, "m2")]).collect();
    let found = frequencies(dynamical(number(of, "k"), &masses));
    // waves j = 1..5 and their mirror images; j = 6, where the light and the heavy atoms move alone, is not listed
    let rows: Vec<[f64; 2]> = list(&of["omega_acoustic_optic"]).iter().map(array).collect();
    let mut expected: Vec<f64> =
        rows.iter().enumerate().flat_map(|(j, w)| w.repeat(if j == 0 { 1 } else { 2 })).collect();
    expected.extend([number(of, "m1"), number(of, "m2")].map(|m| (2.0 * number(of, "k") / m).sqrt()));
    compare_frequencies(report, &found, expected, relative);
}

// ------------------------------------------------------------------------------ solids.json

/// The rows of `solids.json`.
pub fn solid_parts(path: &Path) -> Vec<String> {
    list(&read(path)["rows"]).iter().map(|r| text(r, "name").to_owned()).collect()
}

/// LAMMPS's pressure factor: GPa in 1 eV/Å³.
const GPA: f64 = 160.21765;

/// A crystal of one element by Stillinger and Weber, whose cell can be strained.
struct Crystal {
    system: System,
    evaluator: Evaluator,
}

impl Crystal {
    fn diamond(a: f64, repeat: usize, line: &str, units: Units, vacancy: bool) -> Crystal {
        let edge = a * units.length;
        let lattice = Lattice::new(LatticeKind::Diamond, [edge; 3], [repeat; 3]).expect("a lattice");
        let points = lattice.positions();
        let system = system(units, lattice.cell(), &points[usize::from(vacancy)..], 28.086);
        let triples = triples(line, 11);
        let term = triples_term(&md::catalog(), &system, "vdwl", "stillinger-weber", &["Si"], &triples);
        let evaluator = system.evaluator(vec![term]);
        Crystal { system, evaluator }
    }
    /// Energy in eV and stress (xx yy zz xy xz yz) in GPa under a strain.
    fn strained(&mut self, strain: [[f64; 3]; 3], relax: bool) -> (f64, [f64; 6]) {
        let cell = self.system.cell.strained(strain).expect("a cell");
        let mut state = State { cell, ..self.system.state() };
        let mut forces = Forces::default();
        self.evaluator.evaluate(&state.cell, &state.positions, &mut forces).expect("forces");
        if relax {
            let masses = &self.system.atoms.masses;
            let mut motion =
                Motion::start(&mut state, masses, &mut self.evaluator, &mut forces).expect("forces");
            let until = Until { force: 1e-7, steps: 500 };
            let mut minimizer = Lbfgs::new(8, 0.01).expect("a minimiser");
            minimizer.minimize(&mut motion, &until, &mut |_| ControlFlow::Continue(())).expect("a minimum");
        }
        let Units { energy, length, .. } = self.system.units;
        let volume = state.cell.volume().expect("a volume") / length.powi(3);
        (forces.energy() / energy, forces.virial.map(|w| -w / energy / volume * GPA))
    }
}

pub fn solid(path: &Path, part: &str) -> Outcome {
    let case = read(path);
    let row = list(&case["rows"]).iter().find(|r| r["name"] == part).expect("the row");
    if row["style"] != "sw" {
        return Outcome::Lacks(vec![format!("pair {}", text(row, "style"))]);
    }
    let (computed, literature) = (&row["computed"], &row["literature"]);
    let (tolerance, units) = (&case["tolerance"], Units::of(&case["units"]));
    let line = text(row, "parameters_line");
    let mut report = Report::default();
    for way in ways() {
        let kind = title(way);
        let crystal = |a: f64, repeat, vacancy| {
            let mut crystal = Crystal::diamond(a, repeat, line, units, vacancy);
            crystal.evaluator.method = way;
            crystal
        };
        let pressure = |a: f64| {
            let (_, stress) = crystal(a, 1, false).strained([[0.0; 3]; 3], false);
            -stress[..3].iter().sum::<f64>() / 3.0
        };
        // the lattice constant at pressure zero, by secants
        let (mut a, mut b) = (5.4, 5.45);
        let (mut pa, mut pb) = (pressure(a), pressure(b));
        for _ in 0..20 {
            if (b - a).abs() < 1e-12 {
                break;
            }
            (a, b) = (b, b - pb * (b - a) / (pb - pa));
            (pa, pb) = (pb, pressure(b));
        }
        let what = |name: &str| format!("{kind}: {name}");
        report.number(&what("a0"), b, number(computed, "a0"), number(tolerance, "a0_abs"));
        let mut ideal = crystal(b, 1, false);
        let per_atom = ideal.strained([[0.0; 3]; 3], false).0 / 8.0;
        let limit = number(tolerance, "cohesive_abs");
        report.number(&what("cohesive energy"), per_atom, number(computed, "cohesive_energy_eV_atom"), limit);

        // C = dσ/dε by central differences; a shear γ = 2ε
        let h = 1e-4;
        let mut slope = |i: usize, j: usize, relax: bool, component: usize| {
            let mut of = |h: f64| {
                let mut strain = [[0.0; 3]; 3];
                strain[i][j] += 0.5 * h;
                strain[j][i] += 0.5 * h;
                ideal.strained(strain, relax).1[component]
            };
            (of(h) - of(-h)) / (2.0 * h)
        };
        let (c11, c12) = (slope(0, 0, true, 0), slope(0, 0, true, 1));
        let (c44, unrelaxed) = (slope(1, 2, true, 5), slope(1, 2, false, 5));
        let limit = number(tolerance, "Cij_GPa_abs");
        for (key, x) in [
            ("C11_GPa", c11),
            ("C12_GPa", c12),
            ("C44_GPa", c44),
            ("C44_unrelaxed_GPa", unrelaxed),
            ("B_GPa", (c11 + 2.0 * c12) / 3.0),
        ] {
            report.number(&what(key), x, number(computed, key), limit);
        }
        let relative = number(tolerance, "literature_rel");
        for (key, x) in [("a0", b), ("cohesive", per_atom), ("C11", c11), ("C12", c12), ("C44_relaxed", c44)]
        {
            let e = number(literature, key);
            report.number(&what(&format!("{key} of the literature")), x, e, relative * e.abs());
        }
        for row in list(&computed["equation_of_state"]["rows"]) {
            let [scale, energy, p] = array(row);
            let a = scale * number(computed, "a0");
            let (e, stress) = crystal(a, 1, false).strained([[0.0; 3]; 3], false);
            report.number(&what(&format!("energy at {scale} a0")), e / 8.0, energy, 1e-7);
            let found = -stress[..3].iter().sum::<f64>() / 3.0;
            report.number(&what(&format!("pressure at {scale} a0")), found, p, 1e-6 * p.abs());
        }
        if way.kind == Kind::Fused {
            let vacancy = &computed["vacancy"];
            let mut crystal = crystal(number(computed, "a0"), 2, true);
            for (key, relax) in [("E_unrelaxed_eV", false), ("E_relaxed_eV", true)] {
                let e = crystal.strained([[0.0; 3]; 3], relax).0 - 63.0 * per_atom;
                report.number(&what(key), e, number(vacancy, key), number(tolerance, "vacancy_abs"));
            }
        }
    }
    Outcome::Ran(report)
}
