//! Neural networks over symmetry functions: values from outside, files, and every kind of cut-off and activation.

// (numbers have the digits that their source gives them)
#![allow(clippy::excessive_precision)]

use md::autodiff::lanes::Isa;
use md::catalog::Builder;
use md::forces::neural::{network_of, statistics, symmetry_functions, term};
use md::forces::{Charges, Direction, Evaluator, ForceSource, Forces, Grid, Kind, Method, Setup};
use md::formats::n2p2::{self, Potential};
use md::input::plan::Plan;
use md::input::reader::Document;
use md::potentials::many_body::neural::{
    Activation, CutoffFunction, CutoffKind, Layer, Network, Perceptron, Scaling, Shape, Statistics,
    SymmetryFunction, usual_functions,
};
use md::system::{Atoms, Cell, Positions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/neural/potential")
}

fn atoms(types: &[u32], elements: &[String]) -> Atoms {
    Atoms {
        type_names: elements.to_vec(),
        types: types.to_vec(),
        masses: vec![1.0; types.len()],
        charges: vec![0.0; types.len()],
        molecules: vec![0; types.len()],
        names: vec!["X".into(); types.len()],
    }
}

/// Atoms in the open, with a network whose elements are the types.
struct Cluster {
    cell: Cell,
    positions: Positions,
    evaluator: Evaluator,
}

impl Cluster {
    fn new(potential: &Potential, types: &[u32], points: &[[f64; 3]]) -> Self {
        let n = &potential.network;
        let cell = Cell::enclosing(None, [false; 3], points).unwrap();
        let positions = Positions::from_cartesian(&cell, points).unwrap();
        let elements = (0..n.elements.len()).collect();
        let evaluator = Evaluator::new(Setup {
            atoms: Arc::new(atoms(types, &n.elements)),
            charges: Charges {
                values: vec![0.0; n.elements.len()],
                labels: n.elements.clone(),
                of_atom: types.to_vec(),
            },
            joined: Default::default(),
            terms: vec![term("neural", n.clone(), &potential.weights, elements)],
            coulomb: 1.0,
            skin: 0.1,
            method: Method::default(),
            joints: Vec::new(),
        });
        Cluster { cell, positions, evaluator: evaluator.unwrap() }
    }
    fn forces(&mut self, method: Method) -> Forces {
        let mut out = Forces::default();
        self.evaluator.method = method;
        self.evaluator.evaluate(&self.cell, &self.positions, &mut out).unwrap();
        out
    }
    fn tangents(&mut self, method: Method, moves: &[[f64; 3]]) -> Forces {
        let mut out = Forces::default();
        self.evaluator.method = method;
        let strain = [[0.1, 0.0, -0.2], [0.0, 0.3, 0.0], [0.2, 0.0, -0.1]];
        let direction = Direction { moves, strain };
        self.evaluator.tangents(&self.cell, &self.positions, &direction, true, &mut out).unwrap();
        out
    }
}

fn ways() -> Vec<Method> {
    let fused = |isa| Method { isa, grid: Grid::NONE, ..Method::default() };
    let mut ways = vec![Method { kind: Kind::Tape, ..fused(Isa::Portable) }];
    ways.extend(Isa::available().into_iter().map(fused));
    ways
}

fn close(what: &str, found: &[f64], expected: &[f64], limit: f64) {
    let scale = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= limit * scale, "{what}: {a:e} and {b:e}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

/// n2p2's own values for the first of three or four atoms, from its tests: test/cpp/fixtures.h of
/// github.com/CompPhysVienna/n2p2 (`valuesMono`, `valuesMixed`), with the cut-off function 2.
#[test]
fn symmetry_functions_of_n2p2() {
    let one = "H 2 H 0.001 0.0 10.0
H 2 H 0.030 1.0 10.0
H 3 H H 0.001  1.0 1.0 10.0 0.0
H 3 H H 0.030 -1.0 4.0 10.0 2.0
H 9 H H 0.001  1.0 1.0 10.0 0.0
H 9 H H 0.031 -1.0 4.0 10.0 2.0";
    let values_of_one = [
        0.4657897586579389,
        0.426130743198796,
        0.022781144245150042,
        2.6506732726623567e-05,
        0.08818760491421376,
        0.00010245670290254523,
    ];
    let mixed = "S 2 Cu 0.030 1.0 10.0
S 2  U 0.030 1.0 10.0
S 3  S Cu 0.001  1.0 1.0 10.0 0.0
S 3  S  U 0.001  1.0 1.0 10.0 0.0
S 3  Cu U 0.001  1.0 1.0 10.0 0.0";
    let values_of_mixed = [
        0.18212508087363616,
        0.25814603379946083,
        0.022781144245150042,
        0.011723866787654575,
        0.018921487310992163,
    ];
    let points = [[0.0, 0.0, 0.0], [1.0, 2.0, 1.0], [0.0, 3.0, -1.0], [-2.0, 1.0, -0.5]];
    for (elements, lines, expected, types) in
        [("H", one, &values_of_one[..], &[0, 0, 0][..]), ("S Cu U", mixed, &values_of_mixed, &[0, 0, 1, 2])]
    {
        let scratch = tempfile::tempdir().unwrap();
        let mut text = format!("elements {elements}\ncutoff_type 2\n");
        for line in lines.lines() {
            text += &format!("symfunction_short {line}\n");
        }
        for element in elements.split(' ').skip(1) {
            text += &format!("symfunction_short {element} 2 S 0 0 10\n");
        }
        text += "global_hidden_layers_short 1\nglobal_nodes_short 1\nglobal_activation_short t l\n";
        std::fs::write(scratch.path().join("input.nn"), text).unwrap();
        for (name, inputs) in [("001", 6), ("016", 5), ("029", 1), ("092", 1)] {
            let zeros = "0\n".repeat(inputs + 3);
            std::fs::write(scratch.path().join(format!("weights.{name}.data")), zeros).unwrap();
        }
        let network = n2p2::read(scratch.path(), 1.0, 1.0).unwrap().network;
        let points = &points[..types.len()];
        let cell = Cell::enclosing(None, [false; 3], points).unwrap();
        let positions = Positions::from_cartesian(&cell, points).unwrap();
        let numbers: Vec<usize> = (0..network.elements.len()).collect();
        let atoms = atoms(types, &network.elements);
        let found = symmetry_functions(&network, &numbers, &atoms, &cell, &positions).unwrap();
        // (in this order they are sorted already)
        assert_eq!((found[0].0, found[0].1.len()), (0, expected.len()));
        for (found, expected) in found[0].1.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-13, "{found:e} and {expected:e}");
        }
    }
}

const TYPES: [u32; 6] = [1, 0, 0, 1, 0, 0];
const POINTS: [[f64; 3]; 6] = [
    [0.1, 0.0, -0.2],
    [1.7, 0.4, 0.3],
    [-0.6, 1.6, 0.1],
    [-1.0, 4.4, 0.9],
    [-2.9, 4.1, 1.2],
    [0.3, 5.3, 2.1],
];

/// The numbers that `tests/neural/independent.py` prints.
#[test]
fn a_potential_worked_out_elsewhere() {
    let energy = -152.4754347032945;
    let forces = [
        [-0.00031510134594290657, -0.0023193843058064633, -0.001946420082670712],
        [0.0014100505396868843, -0.0021668658530178686, -0.0005976625015033327],
        [0.0018234535513538246, -0.004471882907246851, 0.00038245806889858266],
        [-0.0014411301929620976, 0.004252736743229934, -0.001182042523244684],
        [-0.00469842138466155, 0.00030539604155539334, 7.729032292633906e-05],
        [0.0032211488325258456, 0.004400000281285855, 0.003266376715593807],
    ];
    let potential = n2p2::read(&folder(), 1.0, 1.0).unwrap();
    let mut cluster = Cluster::new(&potential, &TYPES, &POINTS);
    for way in ways() {
        let found = cluster.forces(way);
        close("energy", &[found.energy()], &[energy], 1e-15);
        close("forces", found.forces.as_flattened(), forces.as_flattened(), 1e-12);
    }
    // in other units
    let potential = n2p2::read(&folder(), 0.5, 3.0).unwrap();
    let mut cluster = Cluster::new(&potential, &TYPES, &POINTS.map(|p| p.map(|x| 0.5 * x)));
    let found = cluster.forces(Method::default());
    close("energy", &[found.energy()], &[3.0 * energy], 1e-14);
    close("forces", found.forces.as_flattened(), &forces.map(|f| f.map(|x| 6.0 * x)).concat(), 1e-7);
}

#[test]
fn what_is_written_is_read_again() {
    let first = n2p2::read(&folder(), 0.0529, 2625.5).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().join("new/folder");
    n2p2::write(&copy, &first).unwrap();
    let second = n2p2::read(&copy, 0.0529, 2625.5).unwrap();
    assert_eq!(first, second);
    let bits = |p: &Potential| p.weights.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&first), bits(&second));
    let forces =
        |p| Cluster::new(p, &TYPES, &POINTS.map(|p| p.map(|x| 0.0529 * x))).forces(Method::default());
    assert_eq!(forces(&first), forces(&second));
    // a term gives it back, with the weights that it has now
    let mut term = term("neural", first.network.clone(), &first.weights, vec![0, 1]);
    let other: Vec<f64> = first.weights.iter().map(|w| w / 3.0).collect();
    term.set_parameters(&other);
    let (network, weights) = network_of(&*term).unwrap();
    assert_eq!((network, weights), (&first.network, &other[..]));
    assert_eq!(term.parameters().labels()[0], "H.layer1.weight1-1");
    assert_eq!(term.parameters().labels().last().unwrap(), "O.layer3.bias1");
}

/// Each edit breaks a file, and the message says where.
#[test]
fn broken_files_are_refused() {
    let cases = [
        ("input.nn", "elements O H ", "elements O Hx", "input.nn:2: there is no element `Hx`"),
        ("input.nn", "elements O H ", "elements O O", "input.nn:2: O is named twice"),
        ("input.nn", "elements O H ", "#", "input.nn: there is no line `elements …`"),
        (
            "input.nn",
            "number_of_elements 2",
            "number_of_elements 3",
            "input.nn:3: 3 elements are announced, and 2 are named",
        ),
        ("input.nn", "atom_energy O", "atom_energy N", "input.nn:4: `N` is none of the elements, H, O"),
        (
            "input.nn",
            "-74.94518524",
            "nan",
            "input.nn:4: expected the energy of a free atom, a number, found `nan`",
        ),
        (
            "input.nn",
            "cutoff_type 6 0.25",
            "cutoff_type 9",
            "input.nn:6: expected the type of cut-off function, from 0 to 8, found `9`",
        ),
        (
            "input.nn",
            "cutoff_type 6 0.25",
            "cutoff_type 6 1",
            "input.nn:6: the inner cut-off, a part of the outer, is from 0 to less than 1, not 1",
        ),
        (
            "input.nn",
            "conv_energy 40.0",
            "conv_energy 0",
            "input.nn:12: `conv_energy` must be greater than zero",
        ),
        (
            "input.nn",
            "conv_length 1.7",
            "",
            "input.nn: of mean_energy, conv_energy and conv_length all are given, or none",
        ),
        (
            "input.nn",
            "global_hidden_layers_short 2",
            "global_hidden_layers_short 0",
            "input.nn:14: expected how many hidden layers, a whole number from 1 to 64, found `0`",
        ),
        (
            "input.nn",
            "global_nodes_short 3 2",
            "global_nodes_short 3",
            "input.nn:15: expected the nodes of each hidden layer, a whole number, found the end of the line",
        ),
        (
            "input.nn",
            "global_nodes_short 3 2",
            "global_nodes_short 3 999999",
            "input.nn:15: expected the nodes of each hidden layer, a whole number from 1 to 4096, found `999999`",
        ),
        ("input.nn", "_short t s l", "_short t x l", "input.nn:16: there is no activation function `x`"),
        ("input.nn", "_short t s l", "_short t s t", "input.nn:16: the last layer is linear (`l`), not `t`"),
        (
            "input.nn",
            "_short t s l",
            "_short t",
            "input.nn:16: 2 hidden layers need as many activation functions",
        ),
        (
            "input.nn",
            "element_nodes_short O 1 2",
            "element_nodes_short O 3 2",
            "input.nn:17: expected a hidden layer, a whole number from 1 to 2, found `3`",
        ),
        ("input.nn", "epochs 10 ", "epochs 10\nepochs 12", "input.nn:19: `epochs` stands in line 18 already"),
        ("input.nn", "epochs 10 ", "nnp_type 4G-HDNNP", "input.nn:18: `nnp_type 4G-HDNNP` is not understood"),
        (
            "input.nn",
            "H 2 O 0.2 1.5 6.5",
            "H 2 O 0.2 1.5",
            "input.nn:22: expected the cut-off, a number, found the end of the line",
        ),
        (
            "input.nn",
            "H 2 O 0.2 1.5 6.5",
            "H 2 O 0.2 1.5 0",
            "input.nn:22: the cut-off must be greater than zero, not 0",
        ),
        (
            "input.nn",
            "H 2 O 0.2 1.5 6.5",
            "H 2 O -0.2 1.5 6.5",
            "input.nn:22: eta must not be less than zero, as -0.2 is",
        ),
        (
            "input.nn",
            "H 2 O 0.2 1.5 6.5",
            "H 12 0.2 1.5 6.5",
            "input.nn:22: symmetry functions of type `12` are not understood: the types 2, 3 and 9 are",
        ),
        ("input.nn", "0.02 -1.0 4.0", "0.02 -1.5 4.0", "input.nn:21: lambda is from -1 to 1, not -1.5"),
        ("input.nn", "0.02 -1.0 4.0", "0.02 -1.0 0.5", "input.nn:21: zeta is from 1 to 4096, not 0.5"),
        ("input.nn", "short O ", "short H ", "input.nn: there are no symmetry functions of O"),
        ("scaling.data", "\n1 2 ", "\n1 3 ", "scaling.data:3: expected `1 2 …`, symmetry function 2 of H"),
        ("scaling.data", "\n2 6 ", "\n#", "scaling.data:14: expected `2 6 …`, symmetry function 6 of O"),
        ("weights.001.data", " a 1 ", " c 1 ", "expected `a` for a weight or `b` for a bias, found `c`"),
        ("weights.001.data", " a 1 0 1 1 1\n", " a 1 0 6 1 1\n", "the network has no such nodes"),
        ("weights.001.data", " a 1 0 1 1 1\n", " a 1 0 2 1 1\n", "this weight has been given before"),
        (
            "weights.008.data",
            "order\n",
            "order\n0.5\n",
            "weights.008.data:25: the network has 23 weights and biases, and this is one more",
        ),
        ("weights.008.data", "order\n", "order # ", "weights.008.data:"),
    ];
    for (file, from, to, message) in cases {
        let scratch = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            let (name, text) = (path.file_name().unwrap(), std::fs::read_to_string(&path).unwrap());
            let text = if name == file {
                assert!(text.contains(from), "{file}: {from}");
                text.replace(from, to)
            } else {
                text
            };
            std::fs::write(scratch.path().join(name), text).unwrap();
        }
        let error = n2p2::read(scratch.path(), 1.0, 1.0).unwrap_err().to_string();
        assert!(error.contains(message), "{file}, {to:?}:\n{error}\n{message}");
        assert!(error.contains(file), "{error}");
    }
    // files that are not there, and noise
    let scratch = tempfile::tempdir().unwrap();
    assert!(
        n2p2::read(scratch.path(), 1.0, 1.0).unwrap_err().to_string().contains("input.nn: cannot be read")
    );
    std::fs::write(
        scratch.path().join("input.nn"),
        b"elements H\n\xff\xfe\0 \x01 elements\nsymfunction_short",
    )
    .unwrap();
    assert!(n2p2::read(scratch.path(), 1.0, 1.0).is_err());
}

/// A network of two elements that ends and fires in these ways.
fn some_network(kind: CutoffKind, activation: Activation, scaling: Scaling) -> Potential {
    let mut functions = usual_functions(2, 0.6, 3, &[1.0, 2.5, 3.0]);
    let narrow = functions.iter().filter_map(|f| {
        let angular = f.shape.angular()?;
        let shape = Shape::Narrow { lambda: 0.8 * angular.lambda, zeta: angular.zeta };
        Some(SymmetryFunction { shape, shift: 0.1, eta: 9.0, cutoff: 0.55, ..*f })
    });
    let narrow: Vec<_> = narrow.collect();
    functions.extend(narrow);
    functions.sort_by(SymmetryFunction::order);
    let inputs = functions.iter().filter(|f| f.center == 0).count();
    let layer = |nodes, activation| Layer { nodes, activation };
    let layers = vec![layer(4, activation), layer(3, activation), layer(1, Activation::Linear)];
    let statistics = Statistics { min: 0.1, max: 1.3, mean: 0.5, sigma: 0.7 };
    let network = Network {
        elements: vec!["H".into(), "O".into()],
        ending: CutoffFunction { kind, inner: if kind.has_inner() { 0.3 } else { 0.0 } },
        scaling,
        range: [0.0, 1.0],
        statistics: vec![statistics; functions.len()],
        perceptrons: vec![Perceptron { inputs, layers, normalized: scaling == Scaling::Range }; 2],
        normalization: None,
        atom_energies: vec![0.0; 2],
        functions,
        length_unit: 1.0,
        energy_unit: 10.0,
    };
    // (some numbers between −½ and ½)
    let weights = (0..network.weights()).map(|k| (k as f64 * 0.618_034).fract() - 0.5).collect();
    Potential { network, weights }
}

/// Every cut-off function and activation on all evaluators; forces against differences.
#[test]
fn every_kind() {
    let types = [0, 1, 1, 0, 1, 0, 0];
    let points = [
        [0.0, 0.0, 0.0],
        [0.3, 0.05, 0.1],
        [0.05, 0.31, -0.1],
        [-0.2, -0.12, 0.22],
        [0.1, -0.25, -0.3],
        [0.4, 0.35, 0.3],
        [-0.33, 0.21, 0.02],
    ];
    let moves: Vec<[f64; 3]> = points.iter().map(|p| [p[1] + 0.1, -p[2], p[0] * 0.5]).collect();
    let scalings = [Scaling::None, Scaling::Range, Scaling::Center, Scaling::RangeAndCenter, Scaling::Sigma];
    let kinds = CutoffKind::ALL.map(|(kind, _)| (kind, Activation::Tanh));
    let activations = Activation::ALL.map(|(activation, ..)| (CutoffKind::Cos, activation));
    for (k, (kind, activation)) in kinds.into_iter().chain(activations).enumerate() {
        let potential = some_network(kind, activation, scalings[k % scalings.len()]);
        let what = format!("{kind:?} {activation:?}");
        let mut cluster = Cluster::new(&potential, &types, &points);
        let oracle = cluster.forces(ways()[0]);
        let oracle_tangents = cluster.tangents(ways()[0], &moves);
        for way in ways() {
            for (found, expected) in
                [(cluster.forces(way), &oracle), (cluster.tangents(way, &moves), &oracle_tangents)]
            {
                close(&what, &found.energies, &expected.energies, 1e-11);
                close(&what, found.forces.as_flattened(), expected.forces.as_flattened(), 1e-11);
                close(&what, &found.virial, &expected.virial, 1e-11);
            }
        }
        let largest = oracle.forces.as_flattened().iter().fold(0.0f64, |m, f| m.max(f.abs()));
        assert!(largest > 1e-4, "{what}: {largest}");
        for (i, axis) in [(0, 0), (1, 2), (6, 1)] {
            let energy = |h: f64| {
                let mut moved = points;
                moved[i][axis] += h;
                Cluster::new(&potential, &types, &moved).forces(ways()[0]).energy()
            };
            // Richardson's extrapolation of two central differences
            let slope = |h: f64| (energy(h) - energy(-h)) / (2.0 * h);
            let slope = (4.0 * slope(1e-4) - slope(2e-4)) / 3.0;
            let error = (oracle.forces[i][axis] + slope).abs();
            assert!(error < 2e-8 * largest + 1e-9, "{what}, atom {i} {axis}: {error:e}");
        }
    }
}

/// Three atoms on a line, in two configurations: sums on the page.
#[test]
fn scaling_from_configurations() {
    let functions: Vec<SymmetryFunction> = usual_functions(1, 2.0, 1, &[]);
    assert_eq!((functions.len(), functions[0].eta, functions[0].shift), (1, 1.0, 0.0));
    let mut network = some_network(CutoffKind::Hard, Activation::Tanh, Scaling::Sigma).network;
    network.elements.pop();
    network.functions = functions;
    network.ending = CutoffFunction { kind: CutoffKind::Hard, inner: 0.0 };
    let frames: Vec<(Cell, Positions)> = [1.0, 1.5]
        .map(|d| {
            let points = [[0.0; 3], [d, 0.0, 0.0], [2.0 * d, 0.0, 0.0]];
            let cell = Cell::enclosing(None, [false; 3], &points).unwrap();
            let positions = Positions::from_cartesian(&cell, &points).unwrap();
            (cell, positions)
        })
        .into();
    let atoms = atoms(&[0, 0, 0], &network.elements);
    let found = statistics(&network, &[0], &atoms, frames.iter().map(|(c, p)| (c, p))).unwrap();
    // each end sees the middle, and the middle both ends (ends are 2 or 3 apart: not within 2)
    let (near, far) = ((-1.0f64).exp(), (-2.25f64).exp());
    let values = [near, 2.0 * near, near, far, 2.0 * far, far];
    let mean = values.iter().sum::<f64>() / 6.0;
    let sigma = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 6.0).sqrt();
    let Statistics { min, max, mean: m, sigma: s } = found[0];
    close("statistics", &[min, max, m, s], &[far, 2.0 * near, mean, sigma], 1e-14);
}

fn plan(more: &str, neural: &str) -> Result<Plan, String> {
    let text = format!(
        "{more}\n[system.lattice]\nkind = \"bcc\"\ntypes = [\"M\", \"O\"]\nconstant = \"4.2 A\"\nrepeat = [2, 2, 2]\n\
         [atoms.M]\nmass = \"24 u\"\nelement = \"Mg\"\n[atoms.O]\nmass = \"16 u\"\n[many-body.neural]\n{neural}\n"
    );
    let document = Document::parse("in.toml", &text, &[]).map_err(|e| e.render(false))?;
    Plan::of(&document, &md::catalog()).map_err(|e| e.render(false))
}

#[test]
fn new_networks_depend_on_the_seed_alone() {
    let made = |seed: u64| {
        let plan = plan(
            &format!("seed = {seed}"),
            "cutoff = \"5 A\"\nhidden = [6, 5]\natom-energies = { Mg = \"-2 eV\" }",
        );
        let evaluator = Evaluator::new(plan.unwrap().setup).unwrap();
        let (network, weights) = network_of(&*evaluator.terms()[0]).unwrap();
        (network.clone(), weights.to_vec())
    };
    let (network, weights) = made(4);
    assert_eq!((&network, &weights), (&made(4).0, &made(4).1));
    assert_ne!(weights, made(5).1);
    // by atomic number; 8 radial functions for each of two elements, 6 angular ones for each of three pairs
    assert_eq!(network.elements, ["O", "Mg"]);
    assert_eq!(network.functions.len(), 2 * (2 * 8 + 3 * 6));
    assert_eq!(weights.len(), 2 * (34 * 6 + 6 + 6 * 5 + 5 + 5 + 1));
    close("free atoms", &network.atom_energies, &[0.0, -2.0], 1e-14);
    let Some(listed) = md::catalog().find(md::catalog::EnergyKind::ManyBody, "neural").copied() else {
        panic!()
    };
    assert!(matches!(listed.builder, Builder::Neural { .. }));
}
