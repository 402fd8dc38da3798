//! From what was written to what was meant: the structure is read, names are looked up, terms are made, and
//! everything that cannot be is refused with its place.

use super::plan::{Output, Plan, Stage, Trajectory};
use super::raw::{self, Raw};
use super::reader::{Document, Either, Located, Reported};
use super::report::{Diagnostic, Diagnostics, Place, did_you_mean};
use super::terms;
use crate::catalog::Catalog;
use crate::forces::{Charges, Setup};
use crate::formats::{self, AtomLabel, Format, FormatError, Frame, FrameUnits, Which};
use crate::neighbors::default_skin;
use crate::system::lattice::Lattice;
use crate::system::topology::{angles_of, dihedrals_of};
use crate::system::{Atoms, Cell, Positions, State, Topology};
use crate::units::UnitSystem;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

impl Plan {
    /// Reads and checks an input. `overrides` are `--set path=value`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn read(path: &Path, overrides: &[(String, String)], catalog: &Catalog) -> Result<Plan, Diagnostics> {
        let document = Document::open(path, overrides)?;
        Self::of(&document, catalog)
    }

    /// The plan of a document.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of(document: &Document, catalog: &Catalog) -> Result<Plan, Diagnostics> {
        let raw = raw::read(document, catalog);
        document.check()?;
        let plan = raw.and_then(|raw| build(document, raw));
        document.check()?;
        plan.map(|plan| Plan { echo: document.echo(), warnings: document.diagnostics(), ..plan })
            .map_err(|_| document.diagnostics())
    }
}

/// What the terms are made from.
pub(super) struct Model<'a> {
    pub document: &'a Document,
    pub atoms: Atoms,
    pub topology: Topology,
    pub positions: &'a Positions,
    pub periodic: bool,
    /// The kind of molecule of each atom, if there are kinds.
    pub molecule_names: Vec<Option<String>>,
}

impl Model<'_> {
    /// The type of this name.
    pub fn type_of(&self, name: &str, place: &Place) -> Result<usize, Reported> {
        self.atoms
            .type_names
            .iter()
            .position(|n| n == name)
            .ok_or_else(|| no_type(self.document, name, place, &self.atoms.type_names))
    }

    /// The atoms that a selection names, in order.
    pub fn select(&self, selection: &[Located<String>]) -> Result<Vec<u32>, Reported> {
        let mut chosen = vec![false; self.atoms.len()];
        for item in selection {
            let before = chosen.iter().filter(|c| **c).count();
            if item.value == "all" {
                chosen.fill(true);
            } else if let Some(range) = numbers(item) {
                let (first, last) = range;
                if first == 0 || first > last || last > chosen.len() {
                    let message =
                        format!("there are no atoms {}: they are numbered 1 to {}", item.value, chosen.len());
                    return Err(self.document.report(Diagnostic::error(message).at(item.place.clone(), "")));
                }
                chosen[first - 1..last].fill(true);
            } else {
                let of_type = self.atoms.type_names.iter().position(|n| *n == item.value).map(|t| t as u32);
                for (i, c) in chosen.iter_mut().enumerate() {
                    let molecule = self.molecule_names[i].as_deref() == Some(&item.value);
                    *c |= molecule || Some(self.atoms.types[i]) == of_type;
                }
                if of_type.is_none() && chosen.iter().filter(|c| **c).count() == before {
                    let known = self.atoms.type_names.iter().map(String::as_str);
                    let known =
                        known.chain(self.molecule_names.iter().flatten().map(String::as_str)).chain(["all"]);
                    let guess = did_you_mean(&item.value, known).map(|w| format!("did you mean \"{w}\"?"));
                    let message = format!(
                        "\"{}\" is neither a type, nor a molecule, nor a range of numbers",
                        item.value
                    );
                    let diagnostic = Diagnostic::error(message).at(item.place.clone(), "").maybe_help(guess);
                    return Err(self.document.report(diagnostic));
                }
            }
        }
        Ok((0..chosen.len() as u32).filter(|&i| chosen[i as usize]).collect())
    }
}

fn numbers(item: &str) -> Option<(usize, usize)> {
    let (a, b) = item.split_once('-').unwrap_or((item, item));
    Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
}

fn no_type(document: &Document, name: &str, place: &Place, known: &[String]) -> Reported {
    let guess = did_you_mean(name, known.iter().map(String::as_str)).map(|w| format!("did you mean `{w}`?"));
    let help = guess.unwrap_or_else(|| {
        format!("the types are {}; another needs a table `[atoms.{name}]`", known.join(", "))
    });
    let message = format!("there is no atom type `{name}`");
    document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
}

/// A diagnostic for a structure file.
fn of_file(error: &FormatError, place: &Place) -> Diagnostic {
    let Some(path) = error.path() else {
        return Diagnostic::error(error.to_string()).at(place.clone(), "");
    };
    match error.line() {
        Some(n) => {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().nth(n - 1).unwrap_or_default();
            let columns = error.column().map(|c| c.saturating_sub(1)..c);
            Diagnostic::at_line(path, n, line, columns, error.message()).also(place.clone(), "read from here")
        }
        None => Diagnostic::error(format!("{}: {}", path.display(), error.message())).at(place.clone(), ""),
    }
}

fn build(document: &Document, raw: Raw) -> Result<Plan, Reported> {
    let frame_units = if raw.units == UnitSystem::Lj { FrameUnits::Reduced } else { FrameUnits::Nanometre };
    let (frame, structure_place) = structure(document, &raw, frame_units)?;
    let (cell, points) = cell(document, &raw, &frame, &structure_place)?;
    let copies: usize = raw.system.repeat.iter().map(|&r| r as usize).product();
    let labels: Vec<AtomLabel> = (0..copies).flat_map(|_| frame.atoms.iter().cloned()).collect();
    let velocities = frame.velocities.as_ref().map(|v| v.repeat(copies));
    let n = points.len();

    let type_names: Vec<String> = raw.types.iter().map(|(name, _)| name.value.clone()).collect();
    let members = members(document, &raw, &labels, &structure_place, &type_names)?;
    let type_of = |k: u32| &raw.types[k as usize].1;
    let names = (labels.iter().zip(&members.types)).map(|(label, &t)| {
        type_of(t).element.as_ref().map_or_else(|| label.name.clone(), |e| e.value.clone())
    });
    let atoms = Atoms {
        masses: members.types.iter().map(|&t| *type_of(t).mass).collect(),
        charges: members.types.iter().map(|&t| *type_of(t).charge).collect(),
        names: names.collect(),
        types: members.types.clone(),
        molecules: members.molecules.clone(),
        type_names,
    };
    let charges = Charges {
        values: raw.types.iter().map(|(_, t)| *t.charge).collect(),
        labels: raw.types.iter().map(|(name, _)| format!("atoms.{}.charge", name.value)).collect(),
        of_atom: atoms.types.clone(),
    };
    let positions = Positions::from_cartesian(&cell, &points)
        .map_err(|e| document.report(Diagnostic::error(e.to_string()).at(structure_place.clone(), "")))?;

    let model = Model {
        document,
        topology: members.topology,
        positions: &positions,
        periodic: cell.periodic().contains(&true),
        molecule_names: members.names,
        atoms,
    };
    let joined = model.topology.joined(n);
    let terms = terms::build(&model, &raw, &joined)?;
    let range = terms.iter().filter_map(|t| t.list_need()).fold(0.0, |m: f64, need| m.max(need.range));
    let skin = raw.forces.skin.as_ref().map_or_else(|| skin(&raw, &model.atoms, range), |s| s.value);
    let (stages, output) = (stages(&raw), output(&model, &raw)?);

    let Model { atoms, topology, .. } = model;
    let atoms = Arc::new(atoms);
    let has_velocities = velocities.is_some();
    let velocities = velocities.unwrap_or_else(|| vec![[0.0; 3]; n]);
    let setup = Setup { atoms: atoms.clone(), charges, joined, terms, coulomb: raw.coulomb, skin };
    let state = State { cell, positions, velocities, step: 0, time: 0.0 };
    Ok(Plan {
        title: raw.title,
        units: raw.units,
        boltzmann: raw.boltzmann,
        seed: raw.seed,
        atoms,
        labels,
        topology,
        state,
        has_velocities,
        setup,
        evaluator: raw.forces.evaluator,
        stages,
        output,
        echo: String::new(),
        warnings: Diagnostics::new(),
    })
}

/// The frame of a file, or a lattice.
fn structure(document: &Document, raw: &Raw, units: FrameUnits) -> Result<(Frame, Place), Reported> {
    let system = &raw.system;
    let file = match (&raw.start, &system.structure, &system.lattice) {
        (Some(start), None, None) => {
            let path = start.value.join("final.xyz");
            if !path.is_file() {
                let message =
                    format!("`{}` holds no finished run: it has no final.xyz", start.value.display());
                return Err(document.report(Diagnostic::error(message).at(start.place.clone(), "")));
            }
            Located { value: path, place: start.place.clone(), given: true }
        }
        (None, Some(file), None) => file.clone(),
        (None, None, Some(lattice)) => return on_lattice(document, raw, lattice, units),
        (None, None, None) => {
            let help =
                "give `structure = \"file.xyz\"`, or a table `[system.lattice]`, or `start = \"outputs/…\"`";
            let diagnostic =
                Diagnostic::error("there are no atoms").at(system.place.clone(), "in this table").help(help);
            return Err(document.report(diagnostic));
        }
        (start, file, lattice) => {
            let places = [
                start.as_ref().map(|s| (s.place.clone(), "`start`")),
                file.as_ref().map(|f| (f.place.clone(), "`structure`")),
                lattice.as_ref().map(|l| (l.place.clone(), "`lattice`")),
            ];
            let mut places = places.into_iter().flatten();
            let message = "the atoms come from one place: a file, a lattice, or an earlier run";
            let mut diagnostic = Diagnostic::error(message).help("keep one of these");
            if let Some((place, label)) = places.next() {
                diagnostic = diagnostic.at(place, label);
            }
            for (place, label) in places {
                diagnostic = diagnostic.also(place, label);
            }
            return Err(document.report(diagnostic));
        }
    };
    let frame = formats::read_structure(&file.value, None, Which::Last, units)
        .map_err(|e| document.report(of_file(&e, &file.place)))?;
    for remark in &frame.remarks {
        document.report_warning(Diagnostic::warning(remark.clone()).at(file.place.clone(), ""));
    }
    if frame.atoms.is_empty() && !frame.positions.is_empty() {
        let message = "this format does not say which atoms they are; use .xyz or .gro";
        return Err(document.report(Diagnostic::error(message).at(file.place.clone(), "")));
    }
    Ok((frame, file.place))
}

fn on_lattice(
    document: &Document,
    raw: &Raw,
    lattice: &raw::Lattice,
    units: FrameUnits,
) -> Result<(Frame, Place), Reported> {
    let basis = lattice.kind.basis().len();
    let types = &lattice.types;
    if types.len() != 1 && types.len() != basis {
        let message = format!(
            "a {} lattice has {basis} atoms in its cell, but there are {} types",
            lattice.kind.name(),
            types.len()
        );
        let help = format!("give 1 type, or {basis}");
        return Err(document.report(Diagnostic::error(message).at(types.place.clone(), "").help(help)));
    }
    let name_at = |k: usize| &types[if types.len() == 1 { 0 } else { k }];
    let known: Vec<String> = raw.types.iter().map(|(n, _)| n.value.clone()).collect();
    let mut mass = 0.0;
    for k in 0..basis {
        let name = name_at(k);
        match raw.types.iter().find(|(n, _)| n.value == name.value) {
            Some((_, t)) => mass += t.mass.value,
            None => return Err(no_type(document, &name.value, &name.place, &known)),
        }
    }
    let constant = match (&lattice.constant, &lattice.density) {
        (Some(constant), None) => constant.value,
        (None, Some(density)) => (mass / density.value).cbrt(),
        (Some(a), Some(b)) => {
            let message = "a lattice has either a constant or a density";
            return Err(document.report(
                Diagnostic::error(message).at(b.place.clone(), "").also(a.place.clone(), "and this"),
            ));
        }
        (None, None) => {
            let help = "give `constant = \"5.26 A\"` or `density = \"1.4 g/cm^3\"`";
            let message = "how wide is the lattice?";
            return Err(document.report(Diagnostic::error(message).at(lattice.place.clone(), "").help(help)));
        }
    };
    let repeat = lattice.repeat.map(|r| r as usize);
    let made = Lattice::new(lattice.kind, [constant; 3], repeat).map_err(|e| {
        document.report(Diagnostic::error(e.to_string()).at(lattice.repeat.place.clone(), ""))
    })?;
    let (atoms, positions) =
        made.sites().map(|s| (AtomLabel::new(name_at(s.basis).value.clone()), s.position)).unzip();
    let frame = Frame {
        units,
        cell: Some(made.cell()),
        periodic: Some([true; 3]),
        atoms,
        positions,
        ..Frame::default()
    };
    Ok((frame, lattice.place.clone()))
}

/// The cell, and the atoms' places in all copies.
fn cell(
    document: &Document,
    raw: &Raw,
    frame: &Frame,
    place: &Place,
) -> Result<(Cell, Vec<[f64; 3]>), Reported> {
    let system = &raw.system;
    let (vectors, place) = match &system.cell {
        Some(cell) => {
            let vectors = match cell.value {
                Either::Left([a, b, c]) => [[a, 0.0, 0.0], [0.0, b, 0.0], [0.0, 0.0, c]],
                Either::Right(vectors) => vectors,
            };
            (Some(vectors), cell.place.clone())
        }
        None => (frame.cell, place.clone()),
    };
    let periodic = match &system.periodic {
        Some(periodic) => periodic.value,
        None if system.cell.is_some() => [true; 3],
        None => frame.periodic.unwrap_or([vectors.is_some(); 3]),
    };
    if vectors.is_none() && periodic.contains(&true) {
        let message = "a periodic system needs a cell, and the structure has none";
        let help = "give `cell = [\"3 nm\", \"3 nm\", \"3 nm\"]` in `[system]`, or `periodic = [false, false, false]`";
        return Err(document.report(Diagnostic::error(message).at(place, "").help(help)));
    }
    let repeat = system.repeat.map(|r| r as usize);
    let mut points = Vec::with_capacity(frame.positions.len() * repeat.iter().product::<usize>());
    let edges = vectors.unwrap_or([[0.0; 3]; 3]);
    if repeat != [1; 3] && vectors.is_none() {
        let message = "only a structure with a cell can be repeated";
        return Err(document.report(Diagnostic::error(message).at(system.repeat.place.clone(), "")));
    }
    for a in 0..repeat[0] {
        for b in 0..repeat[1] {
            for c in 0..repeat[2] {
                let shift: [f64; 3] = std::array::from_fn(|k| {
                    a as f64 * edges[0][k] + b as f64 * edges[1][k] + c as f64 * edges[2][k]
                });
                points.extend(
                    frame.positions.iter().map(|r| [r[0] + shift[0], r[1] + shift[1], r[2] + shift[2]]),
                );
            }
        }
    }
    let vectors = vectors.map(|v| {
        let mut v = v;
        for (row, r) in v.iter_mut().zip(repeat) {
            row.iter_mut().for_each(|x| *x *= r as f64);
        }
        v
    });
    let cell = Cell::enclosing(vectors, periodic, &points)
        .map_err(|e| document.report(Diagnostic::error(e.to_string()).at(place, "")))?;
    Ok((cell, points))
}

/// Which type and molecule each atom has.
struct Members {
    types: Vec<u32>,
    molecules: Vec<u32>,
    names: Vec<Option<String>>,
    topology: Topology,
}

fn members(
    document: &Document,
    raw: &Raw,
    labels: &[AtomLabel],
    place: &Place,
    type_names: &[String],
) -> Result<Members, Reported> {
    let type_at = |name: &str| type_names.iter().position(|n| n == name).map(|t| t as u32);
    if raw.molecules.is_empty() {
        let mut types = Vec::with_capacity(labels.len());
        for (i, label) in labels.iter().enumerate() {
            types.push(type_at(&label.name).ok_or_else(|| {
                let message =
                    format!("atom {} of the structure is a `{}`, which is no atom type", i + 1, label.name);
                let guess = did_you_mean(&label.name, type_names.iter().map(String::as_str));
                let help = guess.map_or_else(
                    || format!("add a table `[atoms.{}]`", label.name),
                    |w| format!("is it the `{w}` of `[atoms.{w}]`?"),
                );
                document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
            })?);
        }
        let molecules = (0..labels.len() as u32).collect();
        return Ok(Members {
            types,
            molecules,
            names: vec![None; labels.len()],
            topology: Topology::default(),
        });
    }

    let mut members = Members {
        types: Vec::new(),
        molecules: Vec::new(),
        names: Vec::new(),
        topology: Topology::default(),
    };
    let open = raw.molecules.iter().filter(|(_, m)| m.count.is_none()).count();
    let fixed: usize = raw
        .molecules
        .iter()
        .map(|(_, m)| m.count.as_ref().map_or(0, |c| c.value as usize * m.atoms.len()))
        .sum();
    let mut number = 0;
    for (name, molecule) in &raw.molecules {
        let size = molecule.atoms.len();
        let count = match &molecule.count {
            Some(count) => count.value as usize,
            None if open > 1 => {
                let message = "only one kind of molecule can be left without a `count`";
                return Err(document
                    .report(Diagnostic::error(message).at(name.place.clone(), "this has none either")));
            }
            None => labels.len().saturating_sub(fixed) / size,
        };
        // "name: type", or a type that is its own name
        let mut names: HashMap<&str, u32> = HashMap::new();
        let mut types = Vec::new();
        for (k, atom) in molecule.atoms.iter().enumerate() {
            let (label, kind) = match atom.value.split_once(':') {
                Some((label, kind)) => (label.trim(), kind.trim()),
                None => (atom.value.trim(), atom.value.trim()),
            };
            types.push(type_at(kind).ok_or_else(|| no_type(document, kind, &atom.place, type_names))?);
            if names.insert(label, k as u32).is_some()
                && (!molecule.bonds.is_empty() || atom.value.contains(':'))
            {
                let message = format!("two atoms of `{}` are called `{label}`", name.value);
                let help = "name them: \"H1: H\", \"H2: H\"";
                return Err(document.report(Diagnostic::error(message).at(atom.place.clone(), "").help(help)));
            }
        }
        let look_up = |tuple: &Located<Vec<Located<String>>>| -> Result<Vec<u32>, Reported> {
            let mut atoms = Vec::new();
            for atom in tuple.iter() {
                let found = names.get(atom.value.as_str()).copied().ok_or_else(|| {
                    let message = format!("molecule `{}` has no atom `{}`", name.value, atom.value);
                    let guess = did_you_mean(&atom.value, names.keys().copied());
                    let help = guess.map(|w| format!("did you mean `{w}`?"));
                    document.report(Diagnostic::error(message).at(atom.place.clone(), "").maybe_help(help))
                })?;
                if atoms.contains(&found) {
                    let message = format!("`{}` stands twice", atom.value);
                    return Err(document.report(Diagnostic::error(message).at(atom.place.clone(), "")));
                }
                atoms.push(found);
            }
            Ok(atoms)
        };
        fn tuples<const N: usize>(
            list: &[Located<Vec<Located<String>>>],
            look_up: impl Fn(&Located<Vec<Located<String>>>) -> Result<Vec<u32>, Reported>,
        ) -> Result<Vec<[u32; N]>, Reported> {
            list.iter().map(|t| look_up(t).map(|a| std::array::from_fn(|k| a[k]))).collect()
        }
        let bonds = tuples::<2>(&molecule.bonds, look_up)?;
        for (k, bond) in bonds.iter().enumerate() {
            let same = |o: &[u32; 2]| o == bond || [o[1], o[0]] == *bond;
            if let Some(first) = bonds[..k].iter().position(same) {
                let diagnostic = Diagnostic::error("this bond is listed twice")
                    .at(molecule.bonds[k].place.clone(), "")
                    .also(molecule.bonds[first].place.clone(), "first here");
                return Err(document.report(diagnostic));
            }
        }
        let angles = match &molecule.angles {
            Some(list) => tuples::<3>(list, look_up)?,
            None => angles_of(size, &bonds),
        };
        let dihedrals = match &molecule.dihedrals {
            Some(list) => tuples::<4>(list, look_up)?,
            None => dihedrals_of(size, &bonds),
        };
        let impropers = tuples::<4>(&molecule.impropers, look_up)?;
        for _ in 0..count {
            let first = members.types.len() as u32;
            let t = &mut members.topology;
            t.bonds.extend(bonds.iter().map(|b| b.map(|k| first + k)));
            t.angles.extend(angles.iter().map(|b| b.map(|k| first + k)));
            t.dihedrals.extend(dihedrals.iter().map(|b| b.map(|k| first + k)));
            t.impropers.extend(impropers.iter().map(|b| b.map(|k| first + k)));
            members.types.extend(&types);
            members.molecules.extend(std::iter::repeat_n(number, size));
            members.names.extend(std::iter::repeat_n(Some(name.value.clone()), size));
            number += 1;
            if members.types.len() > labels.len() {
                break;
            }
        }
    }
    if members.types.len() != labels.len() {
        let more = members.types.len() > labels.len();
        let message = format!(
            "the molecules need {} {} atoms, but the structure has {}",
            if more { "at least" } else { "exactly" },
            members.types.len(),
            labels.len()
        );
        let place2 = raw.molecules.last().map_or(place.clone(), |(name, _)| name.place.clone());
        return Err(
            document.report(Diagnostic::error(message).at(place.clone(), "").also(place2, "the molecules"))
        );
    }
    Ok(members)
}

/// A skin that suits the fastest atoms.
fn skin(raw: &Raw, atoms: &Atoms, range: f64) -> f64 {
    use super::plan::Task;
    let lightest = atoms.masses.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut temperature, mut step) = (0.0f64, 0.0f64);
    for stage in &raw.stages {
        temperature = temperature.max(stage.velocities.as_ref().map_or(0.0, |v| v.value));
        match stage.task.value {
            Task::VelocityVerlet { time_step } => step = step.max(time_step),
            Task::Langevin { time_step, temperature: t, .. } => {
                step = step.max(time_step);
                temperature = temperature.max(t);
            }
            Task::Fire { .. } | Task::Lbfgs { .. } => {}
        }
    }
    if temperature == 0.0 {
        temperature = if raw.units == UnitSystem::Lj { 1.0 } else { 300.0 };
    }
    if range == 0.0 || !lightest.is_finite() {
        return 0.0;
    }
    default_skin(range, (raw.boltzmann * temperature / lightest).sqrt() * step)
}

fn stages(raw: &Raw) -> Vec<Stage> {
    let one = |(k, s): (usize, &raw::Stage)| Stage {
        name: s.name.as_ref().map_or_else(|| format!("stage {}", k + 1), |n| n.value.clone()),
        steps: *s.steps as u64,
        task: s.task.value.clone(),
        velocities: s.velocities.as_ref().map(|v| v.value),
        remove_drift: s.remove_drift.as_ref().map_or(s.velocities.is_some(), |r| r.value),
        energies_every: s.energies.as_ref().map_or(raw.output.energies, |e| e.value) as u64,
        frames_every: {
            let every = |t: &raw::Trajectory| s.frames.as_ref().map_or(t.every, |f| f.value) as u64;
            raw.output.trajectories.iter().map(every).collect()
        },
    };
    raw.stages.iter().enumerate().map(one).collect()
}

fn output(model: &Model, raw: &Raw) -> Result<Output, Reported> {
    let document = model.document;
    let mut trajectories: Vec<Trajectory> = Vec::new();
    for t in &raw.output.trajectories {
        let wrong =
            |message: String| document.report(Diagnostic::error(message).at(t.file.place.clone(), ""));
        let format = Format::from_path(&t.file.value).map_err(|e| wrong(e.message().to_owned()))?;
        let reserved =
            ["energies.csv", "final.xyz", "run.toml", "restart.bin", "energies.svg", "energies.png"];
        if Path::new(&t.file.value).components().count() != 1 || reserved.contains(&t.file.value.as_str()) {
            return Err(wrong(format!(
                "`{}` cannot be the name of a trajectory: a plain file name is needed",
                t.file.value
            )));
        }
        if trajectories.iter().any(|o| o.file == Path::new(&t.file.value)) {
            return Err(wrong(format!("two trajectories are called `{}`", t.file.value)));
        }
        if format == Format::Xtc && t.velocities {
            return Err(wrong("XTC files hold no velocities; write .xyz or .gro".to_owned()));
        }
        trajectories.push(Trajectory {
            file: t.file.value.clone().into(),
            format,
            atoms: model.select(&t.atoms)?,
            unwrapped: t.unwrapped,
            velocities: t.velocities,
            decimals: t.decimals.as_ref().map(|d| d.value as usize),
        });
    }
    Ok(Output { restart_every: raw.output.restart as u64, trajectories })
}
