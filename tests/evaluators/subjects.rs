//! Every energy of the catalogue with every ending, and parameters for it.

use super::systems::{CELLS, CLEAR, Random, Spacing, System, TYPES, chains, scattered};
use md::catalog::{Builder, Ending, EnergyKind, Listed, joints};
use md::forces::pair::{Special, TypePairs};
use md::forces::triplet::TypeTriples;
use md::forces::{Charges, Evaluator, Method, ParameterTable, Setup, Slot, Term};
use md::potentials::many_body::neural::{
    Activation, CutoffFunction, CutoffKind, Layer, Network, Normalization, Perceptron, Scaling, Shape,
    Statistics, SymmetryFunction,
};
use md::potentials::{Mixing, Param, Range, Source};
use md::system::{Atoms, Cell, Positions};
use std::sync::Arc;

/// Parameters of which random ones would make no physics, in nm and kJ/mol.
struct Example {
    values: &'static [f64],
    /// How near atoms come.
    least: f64,
    /// The distances where the energy is not smooth, and the farthest of them (or the reach).
    corners: fn(&[f64]) -> Vec<f64>,
    /// How much rows of parameters differ, relative.
    spread: f64,
    /// Whether the parameters of a triple (i, j, k) may differ from those of (i, k, j).
    ordered: bool,
}

const PLAIN: Example =
    Example { values: &[], least: 0.26, corners: |_| vec![], spread: 0.06, ordered: false };

fn example(kind: EnergyKind, name: &str) -> Option<Example> {
    Some(match (kind, name) {
        // the repulsion's exponent is the larger one
        (EnergyKind::Pair, "mie") => Example { values: &[0.9, 0.3, 12.3, 5.7], ..PLAIN },
        (EnergyKind::Pair, "reaction-field") => Example { values: &[61.0, 0.0], ..PLAIN },
        // no bond is longer than r-max
        (EnergyKind::Bond, "fene") => Example { values: &[300.0, 0.6, 1.1, 0.2], ..PLAIN },
        // butane
        (EnergyKind::Dihedral, "ryckaert-bellemans") => {
            Example { values: &[9.28, 12.16, -13.12, -3.06, 26.24, -31.5], ..PLAIN }
        }
        // copper
        (EnergyKind::ManyBody, "sutton-chen") => {
            Example { values: &[1.2, 0.361, 9.0, 6.0, 39.432], least: 0.22, ..PLAIN }
        }
        // silicon
        (EnergyKind::ManyBody, "stillinger-weber") => Example {
            values: &[209.2, 0.20951, 1.8, 21.0, 1.2, -1.0 / 3.0, 7.049556277, 0.6022245584, 4.0, 0.3],
            least: 0.2,
            corners: |p| vec![p[1] * p[2]],
            ..PLAIN
        },
        // silicon with λ₃ in use (m = 3), and a wider end
        (EnergyKind::ManyBody, "tersoff") => Example {
            values: &[
                3.0, 1.0, 13.258, 4.8381, 2.0417, -0.1, 22.956, 0.33675, 13.258, 9537.3, 0.30, 0.02, 32.394,
                326470.0,
            ],
            least: 0.2,
            corners: |p| vec![p[10] - p[11], p[10] + p[11]],
            ordered: true,
            ..PLAIN
        },
        _ => return None,
    })
}

/// A value for a parameter: its dimension as a power of 2 kJ/mol and of 0.3 nm, within its range.
fn sampled(p: &Param, random: &mut Random) -> Option<f64> {
    let d = p.dimension;
    let known = d.time == -2 * d.mass && d.temperature == 0;
    let x = 2f64.powi(d.mass.into()) * 0.3f64.powi(i32::from(d.length) - 2 * i32::from(d.mass));
    let x = x * random.within(0.8, 1.25);
    let x = match p.range {
        Range::Any if random.unit() < 0.3 => -x,
        Range::Within(a, b) => a + (b - a) * random.within(0.3, 0.7),
        Range::Integer(a, b) => f64::from(a) + random.below((b - a) as usize + 1) as f64,
        _ => x,
    };
    (known && p.range.contains(x)).then_some(x)
}

/// An energy with parameters, ended in some way.
pub struct Subject {
    pub name: String,
    pub listed: Listed,
    pub ending: Ending,
    pub spacing: Spacing,
    table: ParameterTable,
    /// For pairs of types.
    cutoffs: Vec<f64>,
    /// Of networks.
    network: Option<Network>,
}

/// The element of each type in networks.
pub const ELEMENTS: [usize; TYPES] = [0, 1, 0];

/// A network of two elements with functions of all kinds and several cut-offs, in ångström and an energy of its own. Its
/// corners are where its functions end.
fn network(random: &mut Random) -> (Network, Vec<f64>) {
    let cutoffs = [5.0, 5.6];
    let mut functions = Vec::new();
    let mut add = |center, neighbors, shape, [eta, shift, cutoff]: [f64; 3]| {
        functions.push(SymmetryFunction { center, neighbors, shape, eta, shift, cutoff });
    };
    for center in 0..2 {
        for a in 0..2 {
            add(center, [a, a], Shape::Radial, [0.1, 0.0, cutoffs[1]]);
            add(center, [a, a], Shape::Radial, [0.8, 3.0, cutoffs[center]]);
            for b in a..2 {
                let [c, d] = if a == b { cutoffs } else { [cutoffs[0]; 2] };
                add(center, [a, b], Shape::Wide { lambda: 1.0, zeta: 1.0 }, [0.02, 0.0, c]);
                add(center, [a, b], Shape::Wide { lambda: -1.0, zeta: 4.0 }, [0.02, 0.0, c]);
                add(center, [a, b], Shape::Narrow { lambda: -0.9, zeta: 2.5 }, [0.01, 1.0, d]);
                add(center, [a, b], Shape::Narrow { lambda: 1.0, zeta: 1.0 }, [0.0, 0.0, c]);
            }
        }
    }
    functions.sort_by(SymmetryFunction::order);
    let statistics = functions.iter().map(|_| {
        let [min, mean, max] = [0.0, 0.4, 1.5].map(|x| x + random.within(0.0, 0.3));
        Statistics { min, max, mean, sigma: random.within(0.5, 1.0) }
    });
    let statistics = statistics.collect();
    let layer = |nodes, activation| Layer { nodes, activation };
    let perceptron = |center, nodes| Perceptron {
        inputs: functions.iter().filter(|f| f.center == center).count(),
        layers: vec![
            layer(nodes, Activation::Tanh),
            layer(2, Activation::Softplus),
            layer(1, Activation::Linear),
        ],
        normalized: false,
    };
    let network = Network {
        elements: ["H", "O"].map(String::from).to_vec(),
        perceptrons: vec![perceptron(0, 3), perceptron(1, 2)],
        functions,
        ending: CutoffFunction { kind: CutoffKind::Poly2, inner: 0.2 },
        scaling: Scaling::Sigma,
        range: [-0.3, 0.4],
        statistics,
        normalization: Some(Normalization { mean_energy: -3.0, energy: 0.5, length: 1.7 }),
        atom_energies: vec![-1.0, 2.0],
        length_unit: 0.1,
        energy_unit: 30.0,
    };
    let corners = cutoffs.iter().flat_map(|c| [0.1 * c, 0.02 * c]).collect();
    (network, corners)
}

/// The endings that an energy can have.
fn endings(builder: &Builder) -> Vec<Ending> {
    match builder {
        Builder::Pair { ends_at_cutoff: false, .. } | Builder::Embedding { .. } => Ending::ALL.to_vec(),
        _ => vec![Ending::Truncate],
    }
}

/// All energies of the standard catalogue.
pub fn subjects() -> Vec<Subject> {
    let catalog = md::catalog();
    let entries = catalog.entries().iter();
    entries
        .flat_map(|e| endings(&e.builder).into_iter().map(move |ending| Subject::new(*e, ending)))
        .collect()
}

/// The one of these kind, name and ending.
pub fn subject(kind: EnergyKind, name: &str, ending: Ending) -> Subject {
    Subject::new(*md::catalog().find(kind, name).unwrap(), ending)
}

/// The cut-off of two types and where a switch begins.
pub fn cutoff(a: usize, b: usize) -> (f64, f64) {
    let cutoff = 0.62 - 0.03 * a.min(b) as f64 - 0.02 * a.max(b) as f64;
    (cutoff, 0.8 * cutoff)
}

impl Subject {
    pub fn new(listed: Listed, ending: Ending) -> Self {
        let about = listed.about;
        let mut name = format!("{} {}", listed.kind.key(), about.name);
        if endings(&listed.builder).len() > 1 {
            name += &format!(" ({})", ending.name());
        }
        let mut random = Random::of(about.name);
        let example = example(listed.kind, about.name);
        let (least, corners, spread) =
            example.as_ref().map_or((PLAIN.least, PLAIN.corners, 0.0), |e| (e.least, e.corners, e.spread));
        let mut value = |k: usize, p: &Param| -> f64 {
            let x = match (&example, p.range) {
                (Some(e), Range::Integer(..)) => e.values[k],
                (Some(e), _) => e.values[k] * random.within(1.0 - spread, 1.0 + spread),
                (None, _) => sampled(p, &mut random).unwrap_or_else(|| {
                    panic!("no sample of {} for {} {}", p.name, listed.kind.key(), about.name)
                }),
            };
            assert!(matches!(p.source, Source::Cutoff) || p.range.contains(x), "{name}: {} = {x}", p.name);
            x
        };
        let mut spacing = Spacing { least, corners: vec![vec![]; TYPES * TYPES], reach: 0.5 };
        let mut cutoffs = vec![0.0; TYPES * TYPES];
        let params = about.params;
        let cut = matches!(listed.builder, Builder::Pair { .. } | Builder::Embedding { .. });
        let mut table = ParameterTable::new(params.len() + if cut { 2 } else { 0 });
        let mut networks = None;
        if let Builder::Neural { .. } = listed.builder {
            let (network, corners) = network(&mut random);
            for label in network.labels() {
                let weight = Slot::Value(table.number(label, random.within(-1.0, 1.0)));
                table.row(&[weight]);
            }
            spacing.reach = corners.iter().copied().fold(0.0, f64::max);
            spacing.corners.fill(corners);
            networks = Some(network);
        } else if cut {
            spacing.reach = cutoff(0, 0).0;
            let by_type = params.iter().any(|p| p.mixing != Mixing::Explicit)
                && params.iter().all(|p| p.mixing != Mixing::Explicit || p.source == Source::Cutoff);
            // the numbers of each type, where unlike types mix
            let mut of_type = vec![vec![]; TYPES];
            for (t, numbers) in of_type.iter_mut().enumerate().filter(|_| by_type) {
                for (k, p) in params.iter().enumerate() {
                    let x = value(k, p);
                    numbers.push(table.number(format!("{t}.{}", p.name), x));
                }
            }
            let first = |m: Mixing| params.iter().position(|p| p.mixing == m);
            for (a, b) in pairs_of_types() {
                let (rc, rs) = cutoff(a, b);
                let [rc_number, rs_number] =
                    [("cutoff", rc), ("inner", rs)].map(|(p, x)| table.number(format!("{a}-{b}.{p}"), x));
                let mut slots = Vec::new();
                for (k, p) in params.iter().enumerate() {
                    let mixed = |t: usize| of_type[t][k];
                    slots.push(match (p.source, p.mixing) {
                        (Source::Cutoff, _) => Slot::Value(rc_number),
                        (Source::Default(x), _) if (a, b) == (1, 2) => Slot::Constant(x),
                        _ if !by_type => {
                            Slot::Value(table.number(format!("{a}-{b}.{}", p.name), value(k, p)))
                        }
                        _ if a == b => Slot::Value(mixed(a)),
                        // a rule for each pair: Lorentz and Berthelot, Waldman and Hagler, geometric
                        (_, Mixing::Size) => match (a, b) {
                            (0, 1) => Slot::Arithmetic(mixed(a), mixed(b)),
                            (0, 2) => Slot::SixthPower(mixed(a), mixed(b)),
                            _ => Slot::Geometric(mixed(a), mixed(b)),
                        },
                        _ => match first(Mixing::Size) {
                            Some(s) if (a, b) == (0, 2) => {
                                Slot::SixthPowerDepth(mixed(a), mixed(b), of_type[a][s], of_type[b][s])
                            }
                            _ => Slot::Geometric(mixed(a), mixed(b)),
                        },
                    });
                }
                slots.extend([Slot::Value(rc_number), Slot::Value(rs_number)]);
                table.row(&slots);
                let none = matches!(listed.builder, Builder::Pair { .. }) && (a, b) == (2, 2);
                if !none {
                    for k in [a * TYPES + b, b * TYPES + a] {
                        (cutoffs[k], spacing.corners[k]) = (rc, vec![rs, rc]);
                    }
                }
            }
        } else {
            let rows = match listed.builder {
                Builder::Triples { .. } => TYPES.pow(3),
                Builder::Global { .. } => 1,
                _ => 3,
            };
            let mut rows_so_far: Vec<Vec<Slot>> = Vec::new();
            for row in 0..rows {
                // (the same numbers for (i, k, j) as for (i, j, k) unless the order matters)
                let (i, j, k) = (row / (TYPES * TYPES), row / TYPES % TYPES, row % TYPES);
                let twin = (i * TYPES + k) * TYPES + j;
                if rows > 3 && twin < row && !example.as_ref().is_some_and(|e| e.ordered) {
                    let slots = rows_so_far[twin].clone();
                    table.row(&slots);
                    rows_so_far.push(slots);
                    continue;
                }
                let values: Vec<f64> = params.iter().enumerate().map(|(k, p)| value(k, p)).collect();
                let slots: Vec<Slot> = (params.iter().zip(&values))
                    .map(|(p, &x)| match p.source {
                        Source::Default(x) if row == 2 => Slot::Constant(x),
                        _ => Slot::Value(table.number(format!("{row}.{}", p.name), x)),
                    })
                    .collect();
                table.row(&slots);
                rows_so_far.push(slots);
                if rows > 3 {
                    // the row of (i, j, k) has to do with the distances ij and ik
                    for at in corners(&values) {
                        for (a, b) in [(i, j), (i, k), (j, i), (k, i)] {
                            spacing.corners[a * TYPES + b].push(at);
                        }
                    }
                }
            }
            if let Some(reach) = spacing.corners.iter().flatten().copied().reduce(f64::max) {
                spacing.reach = reach;
            }
        }
        for corners in &mut spacing.corners {
            corners.sort_by(f64::total_cmp);
            corners.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
        }
        Subject { name, listed, ending, spacing, table, cutoffs, network: networks }
    }

    /// Whether it is ended at a cut-off.
    pub fn cuts(&self) -> bool {
        matches!(self.listed.builder, Builder::Pair { .. } | Builder::Embedding { .. })
    }
    /// Its parameters.
    pub fn numbers(&self) -> ParameterTable {
        self.table.clone()
    }
    /// A bench with other numbers, among them cut-offs `times` as long.
    pub fn with_shorter_cutoffs(&self, system: &System, values: &[f64], times: f64) -> Bench {
        let mut bench = Bench::new(self, system);
        let mut table = self.table.clone();
        table.set_values(values);
        // (rounded as the numbers are)
        let cutoffs: Vec<f64> = self.cutoffs.iter().map(|c| times * c).collect();
        bench.evaluator = evaluator(system, vec![self.term_with(system, table, &cutoffs)], SKIN);
        bench
    }
    /// Whether it is an energy of bonded atoms.
    pub fn is_bonded(&self) -> bool {
        matches!(self.listed.builder, Builder::Tuple { .. })
    }
    /// The bonded atoms it takes, each with its row of parameters; none where it takes others.
    pub fn tuples<'s>(&self, system: &'s System) -> impl Iterator<Item = (&'s [u32], u32)> {
        let atoms = match self.listed.builder {
            Builder::Tuple { atoms, .. } => atoms,
            _ => usize::MAX,
        };
        let of_chain = move |chain: &'s Vec<u32>| chain.windows(atoms).zip((0..3).cycle());
        system.chains.iter().flat_map(of_chain)
    }
    /// Whether it is an energy of places, which moving the whole changes.
    pub fn is_field(&self) -> bool {
        matches!(self.listed.builder, Builder::Field { .. })
    }
    /// Whether it is followed through periodic images.
    pub fn is_followed(&self) -> bool {
        use md::potentials::Origin;
        matches!(self.listed.builder, Builder::Global { .. } | Builder::Field { origin: Origin::Space, .. })
    }
    /// Whether it reads a neighbour list.
    pub fn has_list(&self) -> bool {
        matches!(
            self.listed.builder,
            Builder::Pair { .. }
                | Builder::Embedding { .. }
                | Builder::Triples { .. }
                | Builder::Neural { .. }
        )
    }
    /// The system to test it with in the cell of this name.
    pub fn system(&self, cell: &'static str) -> Arc<System> {
        if self.is_bonded() { Arc::new(chains(cell)) } else { scattered(cell, &self.spacing) }
    }
    /// The systems to test it with.
    pub fn systems(&self) -> impl Iterator<Item = Arc<System>> {
        CELLS.iter().map(|cell| self.system(cell))
    }

    /// The energy applied to a system.
    pub fn term(&self, system: &System) -> Box<dyn Term> {
        self.term_with(system, self.table.clone(), &self.cutoffs)
    }

    pub fn term_with(&self, system: &System, table: ParameterTable, cutoffs: &[f64]) -> Box<dyn Term> {
        let name = self.listed.about.name;
        let types = || {
            let mut types = TypePairs::none(TYPES);
            for (row, (a, b)) in pairs_of_types().enumerate() {
                types.set(a, b, row, cutoffs[a * TYPES + b]);
            }
            types
        };
        match self.listed.builder {
            Builder::Pair { build, leaves_remainder, .. } => {
                let remainder = leaves_remainder && system.remainder;
                let factors = factors(system);
                let mut special =
                    Special { leave_out: factors.map(|f| f != 1.0), remainder, pairs: Vec::new() };
                for (pairs, f) in system.joined.iter().zip(factors).filter(|&(_, f)| f != 1.0) {
                    if f != 0.0 || remainder {
                        special.pairs.extend(pairs.iter().map(|&(i, j)| (i, j, f)));
                    }
                }
                build(name, self.ending, table, types(), special)
            }
            Builder::Embedding { build } => build(name, self.ending, table, types()),
            Builder::Triples { build, .. } => {
                let rows = (0..TYPES.pow(3) as u32).collect();
                build(name, table, TypeTriples { types: TYPES, rows })
            }
            Builder::Tuple { build, .. } => {
                let filled = |(atoms, row): (&[u32], u32)| {
                    let mut all = [0; 4];
                    all[..atoms.len()].copy_from_slice(atoms);
                    (all, row)
                };
                let tuples: Vec<_> = self.tuples(system).map(filled).collect();
                build(name, system.points.len(), table, &tuples)
            }
            Builder::Field { build, .. } => {
                let cell = system.cell();
                let n = system.points.len() as u32;
                let of = |i: u32| (i, system.types[i as usize], cell.fraction(system.anchors[i as usize]));
                // heavy atoms are free
                let atoms: Vec<_> = (0..n).filter(|&i| system.masses[i as usize] < 32.0).map(of).collect();
                build(name, table, &atoms)
            }
            Builder::Global { build } => build(name, table, system.group.clone()),
            Builder::Neural { build } => {
                build(name, self.network.clone().unwrap(), table.values(), ELEMENTS.to_vec())
            }
        }
    }
}

/// What is left of the interaction of atoms 1, 2 and 3 bonds apart.
pub fn factors(system: &System) -> [f64; 3] {
    if system.name == "orthorhombic" { [0.0, 1.0, 0.5] } else { [0.0, 0.0, 0.83] }
}

/// The pairs of types in the order of their rows.
pub fn pairs_of_types() -> impl Iterator<Item = (usize, usize)> {
    (0..TYPES).flat_map(|b| (0..=b).map(move |a| (a, b)))
}

/// The charges of the types.
pub const CHARGES: [f64; TYPES] = [0.7, -0.5, 0.4];
/// Coulomb's constant in kJ/mol nm/e².
pub const COULOMB: f64 = 138.935_458;

/// An evaluator of a few terms for a system.
pub fn evaluator(system: &System, terms: Vec<Box<dyn Term>>, skin: f64) -> Evaluator {
    let atoms = Atoms {
        type_names: (0..TYPES).map(|t| format!("T{t}")).collect(),
        types: system.types.clone(),
        masses: system.masses.clone(),
        charges: system.types.iter().map(|&t| CHARGES[t as usize]).collect(),
        molecules: vec![0; system.types.len()],
        names: vec!["X".into(); system.types.len()],
    };
    let charges = Charges {
        values: CHARGES.to_vec(),
        labels: (0..TYPES).map(|t| format!("charge.{t}")).collect(),
        of_atom: system.types.clone(),
    };
    let joined = system.joined.clone();
    Evaluator::new(Setup {
        atoms: Arc::new(atoms),
        charges,
        joined,
        terms,
        coulomb: COULOMB,
        skin,
        method: Method::default(),
        joints: joints(),
    })
    .unwrap()
}

/// A subject and a system, ready to be evaluated.
pub struct Bench {
    pub place: String,
    pub cell: Cell,
    pub positions: Positions,
    pub evaluator: Evaluator,
}

/// The skin of neighbour lists.
pub const SKIN: f64 = 0.08;

impl Bench {
    pub fn new(subject: &Subject, system: &System) -> Self {
        Self::with_skin(subject, system, SKIN)
    }
    pub fn with_skin(subject: &Subject, system: &System, skin: f64) -> Self {
        let cell = system.cell();
        let positions = system.positions(&cell);
        let evaluator = evaluator(system, vec![subject.term(system)], skin);
        Bench { place: format!("{}, {}", subject.name, system.name), cell, positions, evaluator }
    }
}

const _: () = assert!(CLEAR < 0.1 * SKIN);
