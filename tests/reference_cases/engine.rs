//! A system of a case, and terms of it from the catalogue.

use super::json::*;
use super::report::{Report, Tolerance};
use md::autodiff::lanes::Isa;
use md::catalog::{Builder, Catalog, Ending, EnergyKind, Listed, joints};
use md::forces::pair::{Special, TypePairs};
use md::forces::triplet::{NO_ROW, TypeTriples};
use md::forces::{Charges, Evaluator, ForceSource, Forces, Kind, Method, ParameterTable, Setup, Slot, Term};
use md::integrate::verlet::VelocityVerlet;
use md::integrate::{Integrator, Motion};
use md::system::{Atoms, Cell, Positions, State};
use potentials::{Dimension, Mixing, Param, Source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The units of a case in the engine's, nm kJ/mol ps (or reduced ones).
#[derive(Clone, Copy, Debug)]
pub struct Units {
    pub length: f64,
    pub energy: f64,
    pub time: f64,
    /// Coulomb's constant, that of the source, in the engine's units.
    pub coulomb: f64,
}

impl Units {
    pub fn of(units: &Value) -> Units {
        let (length, energy, time) = match text(units, "kind") {
            // the energies by LAMMPS's mvv2e, u Å²/fs² in kcal/mol and u Å²/ps² in eV, for the sake of trajectories
            "real" => (0.1, 1e4 / (48.88821291 * 48.88821291), 1e-3),
            "metal" => (0.1, 0.01 / 1.0364269e-4, 1.0),
            "lj" | "nm-kJ/mol" => (1.0, 1.0, 1.0),
            other => panic!("units {other}"),
        };
        let coulomb = as_number(&units["coulomb_constant"]).unwrap_or(1.0) * energy * length;
        Units { length, energy, time, coulomb }
    }
    /// What a number of this dimension is multiplied by.
    fn factor(self, d: Dimension) -> f64 {
        // mass stands for energy: E = m l² t⁻²
        let (energy, length, time) = (d.mass, d.length - 2 * d.mass, d.time + 2 * d.mass);
        self.energy.powi(energy.into()) * self.length.powi(length.into()) * self.time.powi(time.into())
    }
}

/// The atoms of a case.
pub struct System {
    pub units: Units,
    pub atoms: Atoms,
    pub cell: Cell,
    pub positions: Positions,
    pub velocities: Vec<[f64; 3]>,
    /// Pairs 1, 2 and 3 bonds apart.
    pub joined: [Vec<(u32, u32)>; 3],
}

impl System {
    pub fn read(case: &Value) -> System {
        let (v, units) = (&case["system"], Units::of(&case["units"]));
        let scaled = |key: &str, scale: f64| -> Vec<[f64; 3]> {
            vectors(&v[key]).into_iter().map(|r| r.map(|x| x * scale)).collect()
        };
        let points = scaled("positions", units.length);
        let n = points.len();
        let types: Vec<u32> = list(&v["types"]).iter().map(|t| count(t) as u32).collect();
        let types = if types.is_empty() { vec![0; n] } else { types };
        let by_type = numbers(&v["masses_by_type"]);
        let masses = match list(&v["masses"]) {
            [] if by_type.is_empty() => vec![1.0; n],
            [] => types.iter().map(|&t| by_type[t as usize]).collect(),
            _ => numbers(&v["masses"]),
        };
        let charges = numbers(&v["charges"]);
        let kinds = by_type.len().max(1 + types.iter().fold(0, |m, &t| m.max(t as usize)));
        let atoms = Atoms {
            type_names: (0..kinds).map(|t| t.to_string()).collect(),
            types,
            masses,
            charges: if charges.is_empty() { vec![0.0; n] } else { charges },
            molecules: vec![0; n],
            names: vec![String::new(); n],
        };
        let lattice = vectors(&v["box"]["vectors"]);
        let cell = match *lattice {
            [a, b, c] => {
                let periodic = std::array::from_fn(|k| v["box"]["periodic"][k] == true);
                Cell::new([a, b, c].map(|r| r.map(|x| x * units.length)), periodic)
            }
            _ => Cell::enclosing(None, [false; 3], &points),
        };
        let cell = cell.expect("a cell");
        let images = list(&v["image_flags"]).iter().map(|n| array(n).map(|n| n as i32)).collect::<Vec<_>>();
        let positions = match images.is_empty() {
            true => Positions::from_cartesian(&cell, &points),
            false => Positions::from_cartesian_with_images(&cell, &points, &images),
        };
        System {
            units,
            cell,
            positions: positions.expect("positions"),
            velocities: scaled("velocities", units.length / units.time),
            joined: joined(n, &case["topology"]["bonds"]),
            atoms,
        }
    }

    pub fn len(&self) -> usize {
        self.atoms.len()
    }
    pub fn types(&self) -> usize {
        self.atoms.type_names.len()
    }

    pub fn evaluator(&self, terms: Vec<Box<dyn Term>>) -> Evaluator {
        let setup = Setup {
            atoms: Arc::new(self.atoms.clone()),
            charges: Charges::of_atoms(&self.atoms.charges),
            joined: self.joined.clone(),
            terms,
            coulomb: self.units.coulomb,
            skin: if self.units.length == 1.0 { 0.1 } else { 0.04 },
            method: Method::default(),
            joints: joints(),
        };
        Evaluator::new(setup).expect("an evaluator")
    }

    /// Energies by name, forces and virial in the units of the source, from every evaluator.
    pub fn evaluate(&self, evaluator: &mut Evaluator) -> Vec<(String, Found)> {
        let mut out = Vec::new();
        for way in ways() {
            evaluator.method = way;
            let mut forces = Forces::default();
            evaluator.evaluate(&self.cell, &self.positions, &mut forces).expect("forces");
            out.push((title(way), self.found(evaluator, &forces)));
        }
        out
    }

    /// The same after some steps of velocity Verlet; the time step in ps.
    pub fn after(&self, steps: u64, time_step: f64, evaluator: &mut Evaluator) -> Found {
        let (mut state, mut forces) = (self.state(), Forces::default());
        evaluator.method = Method::default();
        let mut motion =
            Motion::start(&mut state, &self.atoms.masses, evaluator, &mut forces).expect("forces");
        let mut verlet = VelocityVerlet::new(time_step).expect("a time step");
        for _ in 0..steps {
            verlet.step(&mut motion).expect("a step");
        }
        self.found(evaluator, &forces)
    }

    pub fn state(&self) -> State {
        let (cell, positions) = (self.cell.clone(), self.positions.clone());
        State { cell, positions, velocities: self.velocities.clone(), step: 0, time: 0.0 }
    }

    fn found(&self, evaluator: &Evaluator, forces: &Forces) -> Found {
        let Units { length, energy, .. } = self.units;
        let mut energies = BTreeMap::new();
        for (term, e) in evaluator.terms().iter().zip(&forces.energies) {
            *energies.entry(term.name().to_owned()).or_insert(0.0) += e / energy;
        }
        let scale = length / energy;
        let virial = forces.virial.map(|w| w / energy);
        Found { energies, forces: forces.forces.iter().map(|f| f.map(|x| x * scale)).collect(), virial }
    }
}

/// What an evaluator found, in the units of the source.
pub struct Found {
    pub energies: BTreeMap<String, f64>,
    pub forces: Vec<[f64; 3]>,
    pub virial: [f64; 6],
}

impl Found {
    pub fn energy(&self) -> f64 {
        self.energies.values().sum()
    }
}

/// What a source says.
#[derive(Default)]
pub struct Expected {
    pub energies: Vec<(String, f64)>,
    pub forces: Option<Vec<[f64; 3]>>,
    pub virial: Option<[f64; 6]>,
}

impl Expected {
    pub fn compare(&self, report: &mut Report, what: &str, found: &Found, limits: Tolerance) {
        for (name, e) in &self.energies {
            let got = found.energies.get(name).copied().unwrap_or(0.0);
            report.energy(&format!("{what}: {name}"), got, *e, limits.energy);
        }
        if let Some(forces) = &self.forces {
            report.forces(what, &found.forces, forces, limits.force);
        }
        if let Some(virial) = &self.virial {
            report.virial(what, &found.virial, virial, limits.virial);
        }
    }
}

/// Every way to compute forces.
pub fn ways() -> Vec<Method> {
    let fused = |isa| Method { isa, ..Method::default() };
    let mut ways = vec![Method { kind: Kind::Tape, ..fused(Isa::Portable) }];
    ways.extend(Isa::available().into_iter().map(fused));
    #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
    ways.push(fused(Isa::Two));
    ways
}

/// Pairs that are 1, 2 and 3 bonds apart on the shortest way.
fn joined(n: usize, bonds: &Value) -> [Vec<(u32, u32)>; 3] {
    let mut partners = vec![Vec::new(); n];
    for bond in list(bonds) {
        let (i, j) = (count(&bond[0]), count(&bond[1]));
        partners[i].push(j);
        partners[j].push(i);
    }
    let mut joined = <[Vec<(u32, u32)>; 3]>::default();
    for i in 0..n {
        let (mut seen, mut shell) = (vec![i], vec![i]);
        for pairs in &mut joined {
            let mut next: Vec<_> = shell.iter().flat_map(|&a| partners[a].iter().copied()).collect();
            next.sort_unstable();
            next.dedup();
            next.retain(|b| !seen.contains(b));
            pairs.extend(next.iter().filter(|&&j| j > i).map(|&j| (i as u32, j as u32)));
            seen.extend(&next);
            shell = next;
        }
    }
    joined
}

/// The entry of the catalogue.
pub fn find<'a>(catalog: &'a Catalog, kind: EnergyKind, name: &str) -> &'a Listed {
    catalog.find(kind, name).unwrap_or_else(|| panic!("there is no {} energy {name}", kind.key()))
}

/// How parameters of unlike types follow from those of the types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    Arithmetic,
    Geometric,
    SixthPower,
}

/// A pair of types (`None` for all), its parameters and its cut-off.
pub type PairRow = (Option<(usize, usize)>, Vec<f64>, f64);

/// A pair term to be made. Numbers are in the units of the source.
pub struct PairTerm<'a> {
    /// Its name: the energy it adds to.
    pub name: &'a str,
    /// The energy in the catalogue.
    pub energy: &'a str,
    pub ending: Ending,
    pub rows: Vec<PairRow>,
    /// Where a switch begins.
    pub inner: f64,
    pub mix: Mix,
    pub special: Special,
}

impl PairTerm<'_> {
    pub fn build(self, catalog: &Catalog, system: &System) -> Box<dyn Term> {
        let listed = find(catalog, EnergyKind::Pair, self.energy);
        let Builder::Pair { build, .. } = listed.builder else { unreachable!() };
        let (params, n, units) = (listed.about.params, system.types(), system.units);
        let is_cutoff = |p: &Param| p.source == Source::Cutoff;
        let mut table = ParameterTable::new(params.len() + 2);
        // the numbers as written: for each row, where its parameters stand in the table
        let mut given: BTreeMap<(usize, usize), (Vec<u32>, f64)> = BTreeMap::new();
        for (pair, values, cutoff) in &self.rows {
            let mut values = values.iter();
            let mut places = Vec::new();
            for p in params.iter().filter(|p| !is_cutoff(p)) {
                let value = values.next().expect("a number for every parameter") * units.factor(p.dimension);
                places.push(table.number(format!("{pair:?}.{}", p.name), value));
            }
            for i in 0..n {
                for j in i..n {
                    if pair.is_none_or(|(a, b)| (a.min(b), a.max(b)) == (i, j)) {
                        given.insert((i, j), (places.clone(), cutoff * units.length));
                    }
                }
            }
        }
        let mut types = TypePairs::none(n);
        for i in 0..n {
            for j in i..n {
                let like = given.get(&(i, i)).zip(given.get(&(j, j)));
                let (mut slots, cutoff) = match (given.get(&(i, j)), like) {
                    (Some((places, cutoff)), _) => {
                        (places.iter().map(|&k| Slot::Value(k)).collect::<Vec<_>>(), *cutoff)
                    }
                    (None, Some(((a, rc), (b, sc)))) => {
                        let written = params.iter().filter(|p| !is_cutoff(p));
                        let cutoff = match self.mix {
                            Mix::Geometric => (rc * sc).sqrt(),
                            _ => 0.5 * (rc + sc),
                        };
                        (mixed(self.mix, written, a, b), cutoff)
                    }
                    _ => continue,
                };
                let end = Slot::Value(table.number(format!("{i}-{j}.cutoff"), cutoff));
                for (k, _) in params.iter().enumerate().filter(|(_, p)| is_cutoff(p)) {
                    slots.insert(k, end);
                }
                slots.extend([end, Slot::Constant(self.inner * units.length)]);
                let row = table.row(&slots);
                types.set(i, j, row, cutoff);
            }
        }
        build(self.name, self.ending, table, types, self.special)
    }
}

/// Depths by the geometric mean, the rest by the rule.
fn mixed<'a>(mix: Mix, params: impl Iterator<Item = &'a Param>, a: &[u32], b: &[u32]) -> Vec<Slot> {
    params
        .enumerate()
        .map(|(k, p)| match (mix, p.mixing) {
            // (the size stands after the depth)
            (Mix::SixthPower, Mixing::Depth) => Slot::SixthPowerDepth(a[k], b[k], a[k + 1], b[k + 1]),
            (Mix::SixthPower, _) => Slot::SixthPower(a[k], b[k]),
            (_, Mixing::Depth) | (Mix::Geometric, _) => Slot::Geometric(a[k], b[k]),
            // LAMMPS mixes every strength A as a depth
            _ if p.name == "A" => Slot::Geometric(a[k], b[k]),
            _ => Slot::Arithmetic(a[k], b[k]),
        })
        .collect()
}

/// What becomes of neighbours along bonds, for the factors of those 1, 2 and 3 bonds apart.
pub fn special(system: &System, factors: [f64; 3], remainder: bool) -> Special {
    let leave_out = factors.map(|f| f != 1.0);
    let kept = |k: usize| leave_out[k] && (factors[k] != 0.0 || remainder);
    let pairs = (0..3).filter(|&k| kept(k)).flat_map(|k| {
        let factor = factors[k];
        system.joined[k].iter().map(move |&(i, j)| (i, j, factor))
    });
    Special { leave_out, pairs: pairs.collect(), remainder }
}

/// A term of bonded atoms: each tuple with its parameters, in the units of the source.
pub fn tuple_term(
    catalog: &Catalog,
    system: &System,
    name: &str,
    (kind, energy): (EnergyKind, &str),
    tuples: &[(Vec<u32>, Vec<f64>)],
) -> Box<dyn Term> {
    let listed = find(catalog, kind, energy);
    let Builder::Tuple { atoms, build } = listed.builder else { unreachable!() };
    let mut table = ParameterTable::new(listed.about.params.len());
    let list: Vec<_> = tuples
        .iter()
        .map(|(who, values)| {
            let row = row(&mut table, listed, system.units, values);
            (std::array::from_fn(|k| if k < atoms { who[k] } else { 0 }), row as u32)
        })
        .collect();
    build(name, system.len(), table, &list)
}

/// Writes a row of numbers, given in the units of the source.
fn row(table: &mut ParameterTable, listed: &Listed, units: Units, values: &[f64]) -> usize {
    let params = listed.about.params;
    assert_eq!(values.len(), params.len(), "{}", listed.about.name);
    let slots: Vec<_> = params
        .iter()
        .zip(values)
        .map(|(p, x)| Slot::Value(table.number(p.name, x * units.factor(p.dimension))))
        .collect();
    table.row(&slots)
}

/// A field on some atoms, each anchored where it is.
pub fn field_term(
    catalog: &Catalog,
    system: &System,
    energy: &str,
    values: &[f64],
    on: impl Iterator<Item = usize>,
) -> Box<dyn Term> {
    let listed = find(catalog, EnergyKind::Field, energy);
    let Builder::Field { build, .. } = listed.builder else { unreachable!() };
    let mut table = ParameterTable::new(listed.about.params.len());
    row(&mut table, listed, system.units, values);
    let atoms: Vec<_> = on.map(|i| (i as u32, 0, system.positions.fraction(i))).collect();
    build(energy, table, &atoms)
}

/// The parameters of triples of elements, as files of them have them: three names, then numbers.
pub type Triples = BTreeMap<[String; 3], Vec<f64>>;

/// Reads such triples, which have so many numbers.
pub fn triples(text: &str, columns: usize) -> Triples {
    let lines = text.lines().filter(|l| !l.trim_start().starts_with('#'));
    let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
    words
        .chunks(3 + columns)
        .map(|row| {
            let numbers = row[3..].iter().map(|w| w.parse().expect("a number")).collect();
            ([row[0], row[1], row[2]].map(str::to_owned), numbers)
        })
        .collect()
}

/// A term of triples of types; `elements` are the names of the types.
pub fn triples_term(
    catalog: &Catalog,
    system: &System,
    name: &str,
    energy: &str,
    elements: &[&str],
    triples: &Triples,
) -> Box<dyn Term> {
    let listed = find(catalog, EnergyKind::ManyBody, energy);
    let Builder::Triples { build, .. } = listed.builder else { unreachable!() };
    let width = listed.about.params.len();
    let mut table = ParameterTable::new(width);
    let rows: BTreeMap<_, _> = triples
        .iter()
        .map(|(who, values)| (who, row(&mut table, listed, system.units, &values[..width]) as u32))
        .collect();
    let mut types = TypeTriples { types: elements.len(), rows: Vec::new() };
    for i in elements {
        for j in elements {
            for k in elements {
                types.rows.push(rows.get(&[i, j, k].map(|s| (*s).to_owned())).copied().unwrap_or(NO_ROW));
            }
        }
    }
    build(name, table, types)
}

/// What a way is called in reports.
pub fn title(way: Method) -> String {
    if way.kind == Kind::Tape { "tape".into() } else { format!("{:?}", way.isa) }
}
