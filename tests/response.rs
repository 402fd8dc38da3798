//! Vibrations, elastic constants and sensitivities against closed formulas, other programs' numbers and differences.

use md::autodiff::Richardson;
use md::forces::{Evaluator, ForceSource, Forces, Grid};
use md::input::plan::Plan;
use md::input::reader::Document;
use md::integrate::Motion;
use md::integrate::minimize::{Lbfgs, Minimizer, Until};
use md::response::elastic::Elastic;
use md::response::modes::{Count, Mode, frequency};
use md::response::sensitivity::Outcome;
use md::response::{Point, ResponseError, Rigid, newton};
use md::system::{Atoms, State};
use std::ops::ControlFlow;
use std::sync::Arc;

struct System {
    evaluator: Evaluator,
    state: State,
    atoms: Arc<Atoms>,
}

impl System {
    /// Of an input, with what its structure file holds.
    fn new(text: &str, file: Option<&str>) -> Self {
        let mut document =
            Document::parse("in.toml", text, &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
        if let Some(structure) = file {
            document = document.with_file("atoms.xyz", structure.as_bytes());
        }
        let mut plan = Plan::of(&document, &md::catalog()).unwrap_or_else(|e| panic!("{}", e.render(false)));
        // (forces without a grid, so that minima are as exact as numbers are)
        plan.setup.method.grid = Grid::NONE;
        let evaluator = Evaluator::new(plan.setup).unwrap();
        Self { evaluator, state: plan.state, atoms: plan.atoms }
    }
    fn point(&mut self) -> Point<'_> {
        Point::new(&mut self.evaluator, &self.state, &self.atoms.masses)
    }
    fn minimize(&mut self, force: f64) {
        let mut forces = Forces::default();
        let mut motion =
            Motion::start(&mut self.state, &self.atoms.masses, &mut self.evaluator, &mut forces).unwrap();
        let until = Until { force: force.max(1e-3), steps: 20_000 };
        let mut minimizer = Lbfgs::new(20, 0.05).unwrap();
        minimizer.minimize(&mut motion, &until, &mut |_| ControlFlow::Continue(())).unwrap();
        let largest = newton(&mut self.evaluator, &mut self.state, &self.atoms.masses, force).unwrap();
        assert!(largest <= force, "{largest:e}");
    }
    fn modes(&mut self, count: Count) -> Vec<Mode> {
        self.point().modes(count, |_, _| ()).unwrap()
    }
    fn elastic(&mut self) -> Elastic {
        self.point().elastic(|_| ()).unwrap()
    }
    /// Strains the cell until there is no stress.
    fn relax_cell(&mut self) {
        for _ in 0..20 {
            let elastic = self.elastic();
            let strain = elastic.answer(elastic.stress.map(|s| -s)).unwrap();
            if strain.as_flattened().iter().all(|e| e.abs() < 1e-13) {
                return;
            }
            self.state.cell = self.state.cell.strained(strain).unwrap();
            self.minimize(1e-10);
        }
        panic!("the cell does not come to rest");
    }
}

#[track_caller]
fn near(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b}: {:e}", (a - b) / b);
}

/// Two atoms on a spring: ω² = k (1/m₁ + 1/m₂), and of the six motions five cost nothing.
#[test]
fn two_atoms_on_a_spring() {
    let text = r#"
        system = { structure = "atoms.xyz" }
        [atoms]
        A = { mass = 3.0 }
        B = { mass = 7.0 }
        [molecules.AB]
        atoms = ["A", "B"]
        bonds = [["A", "B"]]
        [bond.harmonic]
        A-B = { k = 5000.0, r0 = 0.11 }
    "#;
    let mut system = System::new(text, Some("2\nAB\nA 0.3 0.1 0.2\nB 1.0 1.0 0.4\n"));
    system.minimize(1e-9);
    let modes = system.modes(Count::All);
    let rigid: Vec<_> = modes.iter().filter_map(|m| m.rigid).collect();
    assert_eq!(rigid.iter().filter(|r| matches!(r, Rigid::Translation(_))).count(), 3);
    assert_eq!(rigid.iter().filter(|r| matches!(r, Rigid::Rotation(_))).count(), 2);
    assert_eq!(modes.len(), 6);
    near(modes[5].eigenvalue, 5000.0 * (1.0 / 3.0 + 1.0 / 7.0), 1e-12);
    // (the lighter atom moves farther)
    let moves = modes[5].displacements(&system.atoms.masses);
    let length = |d: [f64; 3]| d.iter().map(|x| x * x).sum::<f64>().sqrt();
    near(length(moves[1]), 3.0 / 7.0, 1e-9);
}

const WATER: &str = r#"
    system = { structure = "atoms.xyz" }
    [atoms]
    O = { mass = 15.9994, charge = -0.82 }
    H = { mass = 1.008, charge = 0.41 }
    [molecules.water]
    atoms = ["O: O", "H1: H", "H2: H"]
    bonds = [["O", "H1"], ["O", "H2"]]
    [bond.harmonic]
    O-H = { k = 443000.0, r0 = 0.1012 }
    [angle.harmonic]
    H-O-H = { k = 317.6, theta0 = "113.24 deg" }
"#;

/// A bent molecule XY₂ with force constants of stretching and bending, by Wilson's G and F matrices (E. B. Wilson, J. C.
/// Decius and P. C. Cross, Molecular Vibrations, ch. 4 and appendix VI).
#[test]
fn a_bent_molecule() {
    let (k, bend, r, theta) = (443_000.0, 317.6, 0.1012, 113.24f64.to_radians());
    let (x, y) = (1.0 / 15.9994, 1.0 / 1.008);
    let (sin, cos) = theta.sin_cos();
    let asymmetric = k * (y + x * (1.0 - cos));
    let g11 = y + x * (1.0 + cos);
    let g12 = -(2f64.sqrt()) * x * sin / r;
    let g22 = 2.0 * (y + x * (1.0 - cos)) / (r * r);
    let (trace, determinant) = (g11 * k + g22 * bend, k * bend * (g11 * g22 - g12 * g12));
    let root = (trace * trace / 4.0 - determinant).sqrt();
    let mut expected = [asymmetric, trace / 2.0 - root, trace / 2.0 + root];
    expected.sort_by(f64::total_cmp);
    let mut system = System::new(WATER, Some("3\nwater\nO 0.1 0.2 0.3\nH 0.9 0.8 0.3\nH -0.7 0.8 0.1\n"));
    system.minimize(1e-8);
    let modes = system.modes(Count::All);
    assert_eq!(modes.iter().filter(|m| m.rigid.is_some()).count(), 6);
    for (mode, expected) in modes[6..].iter().zip(expected) {
        near(mode.eigenvalue, expected, 1e-10);
        assert!(mode.residual < 1e-7 * expected);
    }
    // Σ |∂μ/∂Q|² is Σ q²/m for each axis, as rigid motions of a neutral molecule have a part in it by rotation only
    let total: f64 = modes.iter().map(|m| m.intensity).sum();
    let sum = 3.0 * (0.82f64.powi(2) * x + 2.0 * 0.41f64.powi(2) * y);
    near(total, sum, 1e-12);
    // the recurrences find the same three lines
    let spectrum = system.point().spectrum(3, 2, |_, _| ()).unwrap();
    for (line, weight) in spectrum.states {
        let best = expected.iter().map(|e| (line / e.sqrt() - 1.0).abs()).fold(f64::INFINITY, f64::min);
        assert!(best < 1e-7 && weight > 0.0, "{line}");
    }
    let infrared: f64 = spectrum.infrared.iter().map(|(_, w)| w).sum();
    let lines: f64 = modes[6..].iter().map(|m| m.intensity).sum();
    near(infrared, lines, 1e-10);
}

fn crystal(kind: &str, constant: f64, repeat: usize, energy: &str) -> String {
    format!(
        r#"
        units = "lj"
        system.lattice = {{ kind = "{kind}", types = ["A"], constant = {constant}, repeat = [{repeat}, {repeat}, {repeat}] }}
        atoms.A = {{ mass = 2.0 }}
        {energy}
    "#
    )
}

/// Lennard-Jones between nearest neighbours only, at rest: central springs of k = 72 ε/r².
fn springs(repeat: usize) -> (System, f64, f64) {
    let r = 2f64.powf(1.0 / 6.0);
    let energy = r#"
        [pair.lennard-jones]
        cutoff = 1.3
        ending = "truncate"
        types.A = { epsilon = 1.0, sigma = 1.0 }
    "#;
    (System::new(&crystal("fcc", r * 2f64.sqrt(), repeat, energy), None), 72.0 / (r * r), r)
}

/// Waves of a face-centred lattice of springs: along x, m ω² = 4k (1 − cos qa/2) and twice 2k (1 − cos qa/2); from the sum
/// Σ k R̂R̂ (1 − cos q·R) over the twelve neighbours.
#[test]
fn phonons_of_springs() {
    let (mut system, k, r) = springs(4);
    let types = system.atoms.types.clone();
    let crystal = system.point().crystal(&types).unwrap();
    let (cubic, edge) = crystal.cubic.expect("a cubic lattice");
    assert_eq!((crystal.sites.len(), cubic.name()), (1, "face-centred cubic"));
    near(edge, r * 2f64.sqrt(), 1e-9);
    let constants = system.point().force_constants(&crystal).unwrap();
    assert_eq!(constants.across, 0.0);
    for q in [0.1, 0.7, 2.0, std::f64::consts::TAU / edge] {
        let found = constants.frequencies([q, 0.0, 0.0]);
        let c = 1.0 - (0.5 * q * edge).cos();
        let expected = [2.0 * k * c / 2.0, 2.0 * k * c / 2.0, 4.0 * k * c / 2.0];
        found.iter().zip(expected).for_each(|(w, e)| near(w * w, e, 1e-9));
    }
    // any wave, by the sum itself
    let q = [0.9, -0.4, 1.3];
    let mut matrix = nalgebra::Matrix3::zeros();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        for (s, t) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
            let mut n = nalgebra::Vector3::zeros();
            (n[a], n[b]) = (s / 2f64.sqrt(), t / 2f64.sqrt());
            let phase = r * (q[0] * n[0] + q[1] * n[1] + q[2] * n[2]);
            matrix += n * n.transpose() * (k * (1.0 - phase.cos()) / 2.0);
        }
    }
    let mut expected: Vec<f64> = matrix.symmetric_eigenvalues().iter().copied().collect();
    expected.sort_by(f64::total_cmp);
    constants.frequencies(q).iter().zip(expected).for_each(|(w, e)| near(w * w, e, 1e-9));
    // as many states as there are waves
    assert_eq!(constants.mesh(&crystal, 4).len(), 3 * 64);
}

/// The same lattice strained: C₁₁ = √2 k/r, C₁₂ = C₄₄ = k/(√2 r), from C = Σ k R R R R/(2 V R²).
#[test]
fn elastic_constants_of_springs() {
    let (mut system, k, r) = springs(3);
    let elastic = system.elastic();
    let (c11, c12) = (2f64.sqrt() * k / r, k / (2f64.sqrt() * r));
    let c = |a: usize, b: usize| elastic.constants[(a, b)];
    for a in 0..3 {
        near(c(a, a), c11, 1e-9);
        near(c(a, (a + 1) % 3), c12, 1e-9);
        near(c(3 + a, 3 + a), c12, 1e-9);
    }
    assert!(c(0, 3).abs() + c(1, 5).abs() + c(3, 4).abs() < 1e-9 * c11);
    // (every atom is a centre of symmetry: nothing relaxes)
    assert!((elastic.constants - elastic.unrelaxed).amax() < 1e-9 * c11);
    assert!(elastic.stress.iter().all(|s| s.abs() < 1e-9 * c11) && elastic.asymmetry < 1e-9 * c11);
    let [bulk, _] = elastic.moduli().unwrap();
    near(bulk.voigt, (c11 + 2.0 * c12) / 3.0, 1e-9);
    near(bulk.reuss, bulk.voigt, 1e-9);
    // along a cube's edge 1/S₁₁ = (C₁₁ − C₁₂)(C₁₁ + 2C₁₂)/(C₁₁ + C₁₂)
    let young = (c11 - c12) * (c11 + 2.0 * c12) / (c11 + c12);
    near(elastic.young([0.0, 2.0, 0.0]).unwrap(), young, 1e-9);
    // one tensor, stiff against shear: eigenvalues C₁₁ − C₁₂ (twice), 2 C₄₄ (three times), C₁₁ + 2 C₁₂
    let expected = [c11 - c12, c11 - c12, 2.0 * c12, 2.0 * c12, 2.0 * c12, c11 + 2.0 * c12];
    let mut expected = expected.to_vec();
    expected.sort_by(f64::total_cmp);
    elastic.stiffnesses().iter().zip(expected).for_each(|(a, b)| near(*a, b, 1e-8));
}

const SILICON: &str = r#"
    system.lattice = { kind = "diamond", types = ["Si"], constant = "5.4309497784090075 A", repeat = [2, 2, 2] }
    atoms.Si = { mass = "28.0855 u" }
    [many-body.stillinger-weber.Si-Si-Si]
    epsilon = "2.1683 eV"
    sigma = "2.0951 A"
    a = 1.8
    lambda = 21.0
    gamma = 1.2
    cos-theta0 = -0.333333333333
    A = 7.049556277
    B = 0.6022245584
    p = 4.0
    q = 0.0
"#;

/// 1 kJ/mol/nm³ in GPa.
const GPA: f64 = 1e24 / 6.022_140_76e23 * 1e-3;

/// Numbers of LAMMPS (reference/solids/solids.json: differences of stresses, good to 0.02 GPa); published are 151.4, 76.4
/// and 56.4 GPa (H. Balamane, T. Halicioglu and W. A. Tiller, Phys. Rev. B 46, 2250 (1992)).
#[test]
fn elastic_constants_of_silicon() {
    let mut system = System::new(SILICON, None);
    let elastic = system.elastic();
    let close = |a: f64, b: f64| assert!((a * GPA - b).abs() < 0.002, "{} {b}", a * GPA);
    close(elastic.constants[(0, 0)], 151.4244902416583);
    close(elastic.constants[(0, 1)], 76.42209332554361);
    close(elastic.constants[(3, 3)], 56.44934060405985);
    close(elastic.unrelaxed[(3, 3)], 109.7564907724429);
    let [bulk, _] = elastic.moduli().unwrap();
    close(bulk.hill(), 101.42289229758184);
    assert!(elastic.stress.iter().all(|s| (s * GPA).abs() < 1e-5), "{:?}", elastic.stress);
}

/// Under a pressure: constants are what differences of the stress in strained cells say, atoms relaxed.
#[test]
fn elastic_constants_under_pressure() {
    let mut system = System::new(&SILICON.replace("5.4309497784090075", "5.3"), None);
    let elastic = system.elastic();
    assert!(elastic.stress[0] * GPA < -5.0 && elastic.asymmetry < 1e-7 * elastic.constants.amax());
    let cell = system.state.cell.clone();
    let positions = system.state.positions.clone();
    for k in 0..6 {
        let strain = md::response::elastic::unit_strain(k);
        let stress = |h: f64| {
            system.state.cell = cell.strained(strain.map(|e| e.map(|x| x * h))).unwrap();
            system.state.positions = positions.clone();
            system.minimize(1e-9);
            let volume = system.state.cell.volume().unwrap();
            let w = system.point().forces().unwrap().virial;
            [0, 1, 2, 5, 4, 3].map(|c| -w[c] / volume)
        };
        let differences = Richardson { step: 2e-3, levels: 5, tables: 1, enough: 1e-9, scale: 0.0 };
        let slopes = differences.derivatives(stress, 0.0);
        for (a, slope) in slopes.iter().enumerate() {
            let apart = (slope.value - elastic.constants[(a, k)]).abs();
            assert!(apart < 1e-7 * elastic.constants.amax(), "{a} {k}: {apart:e}");
        }
    }
}

fn cluster(points: &[[f64; 3]]) -> System {
    let text = r#"
        units = "lj"
        system = { structure = "atoms.xyz" }
        atoms.A = { mass = 1.5 }
        [pair.lennard-jones]
        cutoff = "none"
        types.A = { epsilon = 1.0, sigma = 1.0 }
    "#;
    let mut file = format!("{}\nunits=\"lj\" Properties=species:S:1:pos:R:3\n", points.len());
    for [x, y, z] in points {
        file += &format!("A {x} {y} {z}\n");
    }
    let mut system = System::new(text, Some(&file));
    system.minimize(1e-11);
    system
}

/// An icosahedron with an atom in its middle.
fn icosahedron() -> Vec<[f64; 3]> {
    let g = 0.5 * (1.0 + 5f64.sqrt());
    let mut points = vec![[0.0; 3]];
    for a in [-1.0, 1.0] {
        for b in [-g, g] {
            points.extend([[0.0, a, b], [a, b, 0.0], [b, 0.0, a]]);
        }
    }
    points.iter().map(|p| p.map(|x| 0.57 * x)).collect()
}

/// Clusters: eigenvalues of the Hessian against those of a matrix of differences of forces. (The energy of 13 atoms is
/// −44.326801 ε: D. J. Wales and J. P. K. Doye, J. Phys. Chem. A 101, 5111 (1997), table 1.)
#[test]
fn clusters_against_differences_of_forces() {
    let mut system = cluster(&icosahedron());
    let energy = system.point().forces().unwrap().energy();
    assert!((energy + 44.326801).abs() < 1e-6, "{energy}");
    let n = 3 * system.atoms.len();
    let positions = system.state.positions.clone();
    let mut hessian = nalgebra::DMatrix::<f64>::zeros(n, n);
    for k in 0..n {
        let forces = |h: f64| {
            system.state.positions = positions.clone();
            let mut moves = vec![[0.0; 3]; n / 3];
            moves[k / 3][k % 3] = h;
            system.state.positions.advance_all(&system.state.cell, |i| moves[i]).unwrap();
            let mut out = Forces::default();
            system.evaluator.evaluate(&system.state.cell, &system.state.positions, &mut out).unwrap();
            out.forces.into_flattened()
        };
        let differences = Richardson { step: 0.02, levels: 7, tables: 1, enough: 1e-12, scale: 0.0 };
        let slopes = differences.derivatives(forces, 0.0);
        slopes.iter().enumerate().for_each(|(j, s)| hessian[(j, k)] = -s.value / 1.5);
    }
    system.state.positions = positions;
    let symmetric = (&hessian + hessian.transpose()) * 0.5;
    let mut expected: Vec<f64> = symmetric.symmetric_eigenvalues().iter().copied().collect();
    expected.sort_by(f64::total_cmp);
    let modes = system.modes(Count::All);
    let top = expected[n - 1];
    for (mode, e) in modes.iter().zip(expected) {
        assert!((mode.eigenvalue - e).abs() < 1e-8 * top, "{} {e}", mode.eigenvalue);
    }
    assert_eq!(modes.iter().filter(|m| m.rigid.is_some()).count(), 6);
    assert!(modes.iter().skip(6).all(|m| m.rigid.is_none() && m.eigenvalue > 1.0));
}

/// The lowest modes of a disordered solid, without its matrix, are those of the matrix.
#[test]
fn the_lowest_modes_of_a_glass() {
    // (a lattice shaken beyond melting, and cooled at once)
    let text = crystal(
        "fcc",
        1.7,
        3,
        r#"
        [pair.lennard-jones]
        cutoff = 2.5
        types.A = { epsilon = 1.0, sigma = 1.0 }
    "#,
    );
    let mut system = System::new(&text, None);
    let noise = md::response::eigen::random(3 * system.atoms.len(), 7);
    let moves = noise.as_chunks::<3>().0.to_vec();
    system.state.positions.advance_all(&system.state.cell, |i| moves[i].map(|x| 0.3 * x)).unwrap();
    system.minimize(1e-9);
    let all = system.modes(Count::All);
    let lowest = system.modes(Count::Lowest(10));
    assert_eq!((all.len(), lowest.len()), (324, 13));
    for (a, b) in all.iter().zip(&lowest).skip(3) {
        assert!(
            (a.eigenvalue - b.eigenvalue).abs() < 1e-7 * all[323].eigenvalue,
            "{} {}",
            a.eigenvalue,
            b.eigenvalue
        );
        near(a.frequency(), frequency(b.eigenvalue), 1e-5);
    }
    // the trace of the matrix, by recurrences: its mean over random vectors
    let trace: f64 = all.iter().map(|m| m.eigenvalue).sum();
    let spectrum = system.point().spectrum(30, 20, |_, _| ()).unwrap();
    let sum: f64 = spectrum.states.iter().map(|(w, weight)| w * w.abs() * weight).sum();
    near(sum, trace, 0.02);
    let states: f64 = spectrum.states.iter().map(|(_, weight)| weight).sum();
    near(states, 321.0, 1e-9);
}

/// The sparse matrix is the whole one, and takes far fewer products.
#[test]
fn sparse_and_whole_matrices() {
    let molecules = "9\nwater\nO 0.1 0.2 0.3\nH 0.9 0.8 0.3\nH -0.7 0.8 0.1\nO 9.1 0.2 0.3\nH 9.9 0.8 0.3\nH 8.3 0.8 0.1\n\
                     O 0.1 9.2 0.3\nH 0.9 9.8 0.3\nH -0.7 9.8 0.1\n";
    let silicon = SILICON.replace("repeat = [2, 2, 2]", "repeat = [5, 5, 5]");
    let (springs, ..) = springs(5);
    let systems = [System::new(WATER, Some(molecules)), System::new(&silicon, None), springs];
    for (mut system, most) in systems.into_iter().zip([9, 800, 300]) {
        let noise = md::response::eigen::random(3 * system.atoms.len(), 5);
        let moves = noise.as_chunks::<3>().0;
        system.state.positions.advance_all(&system.state.cell, |i| moves[i].map(|x| 2e-3 * x)).unwrap();
        let sparse = system.point().sparse_hessian().unwrap();
        assert!(sparse.products <= most, "{}", sparse.products);
        let v = md::response::eigen::random(3 * system.atoms.len(), 6);
        let exact = system.point().product(&v).unwrap();
        let product = sparse.product(v.as_chunks().0).concat();
        let largest = exact.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for (a, b) in product.iter().zip(&exact) {
            assert!((a - b).abs() < 1e-10 * largest, "{a} {b}");
        }
        if system.atoms.len() < 20 {
            let whole = system.point().hessian().unwrap();
            let product = whole * nalgebra::DVector::from_vec(v);
            product.iter().zip(&exact).for_each(|(a, b)| assert!((a - b).abs() < 1e-10 * largest));
        }
    }
}

/// A structure that is no minimum has no response.
#[test]
fn no_minimum_no_response() {
    let (mut system, ..) = springs(2);
    let moves: Vec<_> = (0..32).map(|i| [0.03 * f64::from(i % 3), 0.02 * f64::from(i % 5), 0.0]).collect();
    system.state.cell =
        system.state.cell.strained([[0.12, 0.0, 0.0], [0.0, 0.12, 0.0], [0.0, 0.0, 0.12]]).unwrap();
    system.state.positions.advance_all(&system.state.cell, |i| moves[i]).unwrap();
    let error = system.point().elastic(|_| ()).unwrap_err();
    assert!(matches!(error, ResponseError::NoSolution(_)), "{error}");
    let mut open = cluster(&icosahedron());
    assert!(matches!(open.point().elastic(|_| ()), Err(ResponseError::Senseless(_))));
    let types = open.atoms.types.clone();
    assert!(matches!(open.point().crystal(&types), Err(ResponseError::Senseless(_))));
}

/// Every result at a minimum that is found anew with changed parameters: derivatives by implicit differentiation against
/// differences.
fn sensitivities(system: &mut System, outcomes: &[Outcome], cell: bool, limit: f64) {
    let (start, theta) = (system.state.clone(), system.evaluator.terms()[0].parameters().values().to_vec());
    let settle = |system: &mut System, theta: &[f64]| {
        system.evaluator.terms_mut()[0].set_parameters(theta);
        system.state = start.clone();
        system.minimize(1e-10);
        if cell {
            system.relax_cell();
        }
    };
    for outcome in outcomes {
        settle(system, &theta);
        let found = system.point().sensitivity(outcome).unwrap();
        let largest =
            found.slopes.iter().map(|s| (s.at * s.slope).abs()).fold(1e-6 * found.value.abs(), f64::max);
        for (k, s) in found.slopes.iter().enumerate().take(theta.len()) {
            let value = |h: f64| {
                let mut changed = theta.clone();
                changed[k] *= 1.0 + h;
                settle(system, &changed);
                system.point().outcome(outcome).unwrap()
            };
            let differences = Richardson { step: 2e-3, levels: 4, tables: 1, enough: 1e-9, scale: 0.0 };
            let slope = differences.derivative(value, 0.0);
            let apart = (s.at * s.slope - slope.value).abs();
            assert!(
                apart <= limit * largest + 3.0 * slope.error,
                "{outcome:?}, {}: {} {} (± {:e})",
                s.name,
                s.at * s.slope,
                slope.value,
                slope.error
            );
            assert!(
                slope.error <= limit * largest.max(slope.value.abs()),
                "{outcome:?}, {}: {:e}",
                s.name,
                slope.error
            );
            assert!(s.matters);
        }
    }
}

#[test]
fn sensitivities_of_a_molecule() {
    let mut system = System::new(
        &WATER.replace(
            "[bond.harmonic]\n    O-H = { k = 443000.0, r0 = 0.1012 }",
            "[bond.morse]\n    O-H = { D = 450.0, a = 22.0, r0 = 0.1012 }",
        ),
        Some("3\nwater\nO 0.1 0.2 0.3\nH 0.9 0.8 0.3\nH -0.7 0.8 0.1\n"),
    );
    let outcomes =
        [Outcome::Distance(0, 1), Outcome::Distance(1, 2), Outcome::Frequency(0), Outcome::Frequency(2)];
    sensitivities(&mut system, &outcomes, false, 1e-6);
}

#[test]
fn sensitivities_of_a_cluster() {
    let mut system = cluster(&icosahedron());
    // (frequencies of an icosahedron come in groups)
    let outcomes = [Outcome::Energy, Outcome::Distance(0, 1), Outcome::Frequency(0)];
    sensitivities(&mut system, &outcomes, false, 1e-6);
}

#[test]
fn sensitivities_of_a_metal() {
    let text = r#"
        system.lattice = { kind = "fcc", types = ["Cu"], constant = "3.61 A", repeat = [2, 2, 2] }
        atoms.Cu = { mass = "63.546 u" }
        [many-body.sutton-chen]
        cutoff = "5.6 A"
        ending = "switch"
        inner = "4.6 A"
        types.Cu = { epsilon = "12.382 meV", a = "3.61 A", n = 9.0, m = 6.0, c = 39.432 }
    "#;
    let mut system = System::new(text, None);
    let fixed = [Outcome::Energy, Outcome::Pressure];
    sensitivities(&mut system, &fixed, false, 1e-6);
    let relaxed = [Outcome::Edge(0)];
    sensitivities(&mut system, &relaxed, true, 1e-6);
}

#[test]
fn sensitivities_of_silicon() {
    let mut system = System::new(&SILICON.replace("5.4309497784090075", "5.40"), None);
    // (under a pressure, so that what the stress adds is seen; C₄₄ with internal relaxation)
    let outcomes = [Outcome::Pressure, Outcome::Elastic(0, 1), Outcome::Elastic(3, 3), Outcome::Frequency(0)];
    sensitivities(&mut system, &outcomes, false, 1e-5);
}
