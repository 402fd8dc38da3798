//! From what was written to what was meant: the structure is read, names are looked up, terms are made, and
//! everything that cannot be is refused with its place.

use super::plan::{Output, Plan, Stage, Trajectory};
use super::raw::{self, Raw};
use super::reader::{Document, Either, Located, Reported, toml_key};
use super::report::{Diagnostic, Diagnostics, Place, did_you_mean};
use super::terms;
use crate::catalog::{BARE_CHARGES, Builder, Catalog, Ending, EnergyKind, joints};
use crate::forces::{Charges, Grid, Isa, Method, Setup};
use crate::formats::{self, AtomLabel, Format, FormatError, Frame, FrameUnits, Which};
use crate::neighbors::default_skin;
use crate::system::cell::CellError;
use crate::system::lattice::Lattice;
use crate::system::topology::{angles_of, dihedrals_of, partners};
use crate::system::{Atoms, Cell, Positions, State, Topology};
use crate::units::UnitSystem;
use potentials::Factor;
use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More atoms than this are a mistake.
const MOST_ATOMS: usize = 100_000_000;

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
    pub cell: &'a Cell,
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
                    let message = format!("there are no atoms {}", item.value);
                    let order = if first > last { ", and the smaller number comes first" } else { "" };
                    let help = format!("they are numbered 1 to {}{order}", chosen.len());
                    let diagnostic = Diagnostic::error(message).at(item.place.clone(), "").help(help);
                    return Err(self.document.report(diagnostic));
                }
                if self.atoms.type_names.contains(&item.value) {
                    let message = format!("\"{0}\" may be the type {0} or the atom number {0}", item.value);
                    let help =
                        format!("write \"{0}-{0}\" for the atom, or give the type another name", item.value);
                    let diagnostic = Diagnostic::error(message).at(item.place.clone(), "").help(help);
                    return Err(self.document.report(diagnostic));
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
                    let guess = did_you_mean(&item.value, known).map_or_else(
                        || {
                            "atoms are chosen by \"all\", types, molecules, or numbers such as \"1-10\""
                                .to_owned()
                        },
                        |w| format!("did you mean \"{w}\"?"),
                    );
                    let message = format!(
                        "\"{}\" is neither a type, nor a molecule, nor a range of numbers",
                        item.value
                    );
                    let diagnostic = Diagnostic::error(message).at(item.place.clone(), "").help(guess);
                    return Err(self.document.report(diagnostic));
                }
            }
        }
        if let (false, Some(item)) = (chosen.contains(&true), selection.first()) {
            let message = "no atom is selected: the system has none of these";
            let help = "take the table out, or select atoms that are there";
            return Err(self
                .document
                .report(Diagnostic::error(message).at(item.place.clone(), "").help(help)));
        }
        Ok((0..chosen.len() as u32).filter(|&i| chosen[i as usize]).collect())
    }
}

fn numbers(item: &str) -> Option<(usize, usize)> {
    let (a, b) = item.split_once('-').unwrap_or((item, item));
    Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
}

fn no_type(document: &Document, name: &str, place: &Place, known: &[String]) -> Reported {
    let types = match known {
        [] => "there are no types yet".to_owned(),
        [one] => format!("the only type is {one}"),
        several if several.len() > 12 => format!("the types are {} …", several[..12].join(", ")),
        several => format!("the types are {}", several.join(", ")),
    };
    if name.contains('*') {
        let message = format!(
            "`{name}` is no atom type: `*` stands for whole types, in bonds, angles and dihedrals only"
        );
        return document.report(Diagnostic::error(message).at(place.clone(), "").help(types));
    }
    let guess = did_you_mean(name, known.iter().map(String::as_str)).map(|w| format!("did you mean `{w}`?"));
    let help =
        guess.unwrap_or_else(|| format!("{types}; another needs a table `[atoms.{}]`", toml_key(name)));
    let message = format!("there is no atom type `{name}`");
    document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
}

/// A diagnostic for a structure file.
pub(super) fn of_file(error: &FormatError, place: &Place) -> Diagnostic {
    let Some(path) = error.path() else {
        return Diagnostic::error(error.to_string()).at(place.clone(), "");
    };
    let help = remedy(error, path);
    match error.line() {
        Some(n) => {
            let line = line_of(path, n);
            let columns = error.column().map(|c| {
                // the word that begins there
                let at = line.char_indices().nth(c.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
                let start = at + (line[at..].len() - line[at..].trim_start().len());
                let end = line[start..].find(char::is_whitespace).map_or(line.len(), |e| start + e);
                start..end
            });
            let diagnostic = Diagnostic::at_line(path, n, &line, columns, error.message());
            diagnostic.also(place.clone(), "read from here").maybe_help(help)
        }
        None => {
            let message = format!("`{}`: {}", path.display(), error.message());
            Diagnostic::error(message).at(place.clone(), "").maybe_help(help)
        }
    }
}

/// A line of a file, counted from 1; empty where there is none.
fn line_of(path: &Path, number: usize) -> String {
    let Ok(file) = std::fs::File::open(path) else { return String::new() };
    let line = std::io::BufReader::new(file).split(b'\n').nth(number.saturating_sub(1));
    let bytes = line.and_then(Result::ok).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned()
}

/// What to do about a structure file, where that is not plain from the message.
fn remedy(error: &FormatError, path: &Path) -> Option<String> {
    let message = error.message();
    let is_gro = Format::from_path(path).is_ok_and(|f| f == Format::Gro);
    let counted = if is_gro { "the second line" } else { "the first line" };
    let help = if message.contains("is no known file format") {
        "atoms are read from extended XYZ (.xyz) or GRO (.gro) files"
    } else if message.starts_with("the file ends after") {
        return Some(format!("is it cut short? if not, correct the number in {counted} of the frame"));
    } else if message.starts_with("the file ends before the line with the cell") {
        "the last line of a .gro file is the cell: three lengths in nm, zeros for none"
    } else if message.starts_with("expected the cell")
        && !line_of(path, error.line().unwrap_or(1)).contains(char::is_alphabetic)
    {
        "three lengths in nm, zeros for none, or the nine components of its vectors"
    } else if message.starts_with("expected the cell") {
        "are there more atoms than the second line says?"
    } else if message.starts_with("expected the number of atoms") && error.line().is_some_and(|n| n > 2) {
        return Some(format!("are there more atoms than {counted} says?"));
    } else if message.starts_with("expected the number of atoms") {
        return Some(format!(
            "{counted} of a .{} file is how many atoms follow",
            if is_gro { "gro" } else { "xyz" }
        ));
    } else if message.contains("has its decimal point in another place") {
        "a .gro file has fixed columns: numbers stand under each other"
    } else if message.starts_with("there is no frame") {
        "is it empty? it begins with the number of atoms in an .xyz file, with a title in a .gro file"
    } else if message.starts_with("Properties") {
        "such as `Properties=species:S:1:pos:R:3`"
    } else if message.starts_with("Lattice") {
        "such as `Lattice=\"20 0 0 0 20 0 0 0 20\"`, in angstroms"
    } else {
        return None;
    };
    Some(help.to_owned())
}

/// Where a relative path that is written there begins.
fn relative_to(place: &Place) -> String {
    let folder = if place.source.path().is_some() { "the folder of this file" } else { "the current folder" };
    format!("a relative path starts at {folder}")
}

/// Refuses what is not there or not a file.
pub(super) fn is_file(document: &Document, file: &Located<PathBuf>) -> Result<(), Reported> {
    let path = &file.value;
    let shown = path.display();
    let (message, help) = if path.is_dir() {
        (format!("`{shown}` is a folder"), "name the file in it".to_owned())
    } else if path.exists() {
        return Ok(());
    } else {
        let siblings: Vec<String> = path
            .parent()
            .map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p })
            .and_then(|p| std::fs::read_dir(p).ok())
            .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
            .unwrap_or_default();
        let mut siblings: Vec<&str> = siblings.iter().map(String::as_str).collect();
        siblings.sort_unstable();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let help = did_you_mean(&name, siblings.iter().copied())
            .map_or_else(|| relative_to(&file.place), |w| format!("did you mean `{w}`?"));
        (format!("there is no file `{shown}`"), help)
    };
    Err(document.report(Diagnostic::error(message).at(file.place.clone(), "").help(help)))
}

fn build(document: &Document, mut raw: Raw) -> Result<Plan, Reported> {
    let frame_units = if raw.units == UnitSystem::Lj { FrameUnits::Reduced } else { FrameUnits::Nanometre };
    let (frame, structure_place) = structure(document, &raw, frame_units)?;
    let (cell, points) = cell(document, &raw, &frame, &structure_place)?;
    let copies: usize = raw.system.repeat.iter().map(|&r| r as usize).product(); // (checked by `cell`)
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
    let points = match raw.system.repeat.value {
        [1, 1, 1] => points,
        repeat => whole_molecules(&cell, repeat, &members.topology.bonds, points),
    };
    let positions = Positions::from_cartesian(&cell, &points)
        .map_err(|e| document.report(Diagnostic::error(e.to_string()).at(structure_place.clone(), "")))?;
    apart(document, &raw, &cell, &positions, &structure_place)?;

    let model = Model {
        document,
        topology: members.topology,
        positions: &positions,
        cell: &cell,
        periodic: cell.periodic().contains(&true),
        molecule_names: members.names,
        atoms,
    };
    let joined = model.topology.joined(n);
    let terms = terms::build(&model, &raw, &joined)?;
    let range = terms.iter().filter_map(|t| t.list_need()).fold(0.0, |m: f64, need| m.max(need.range));
    let skin = raw.forces.skin.as_ref().map_or_else(|| skin(&raw, &model.atoms, range), |s| s.value);
    few_enough_neighbors(document, &raw, &cell, n, range + skin)?;
    let (stages, output) = (stages(document, &raw, n)?, output(&model, &raw, &labels)?);
    let last = stages.last().map(|s| s.task);
    let fit = super::fit::resolve(document, &raw, &terms, &charges, &model, last)?;
    let gradient = raw.gradient.take().map(|g| g.meant(&model)).transpose()?;
    remarks(document, &raw, &model.atoms);
    remarks_on_charges(document, &raw, model.periodic);

    let Model { atoms, topology, .. } = model;
    let atoms = Arc::new(atoms);
    let has_velocities = velocities.is_some();
    let velocities = velocities.unwrap_or_else(|| vec![[0.0; 3]; n]);
    let grid = match (raw.forces.reproducible, raw.units) {
        (false, _) => Grid::NONE,
        (true, UnitSystem::Lj) => Grid::REDUCED,
        (true, _) => Grid::METRIC,
    };
    let isa = raw.forces.isa.value.unwrap_or_else(Isa::best);
    if !Isa::available().contains(&isa) {
        let message = format!("this processor has no {}", isa.name());
        let names: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
        let help = format!("it has {}; leave the key out for the best of them", names.join(", "));
        let diagnostic = Diagnostic::error(message).at(raw.forces.isa.place.clone(), "").help(help);
        return Err(document.report(diagnostic));
    }
    let method = Method { kind: raw.forces.evaluator, isa, grid, precision: raw.forces.precision };
    let (coulomb, joints) = (raw.coulomb, joints());
    let setup = Setup { atoms: atoms.clone(), charges, joined, terms, coulomb, skin, method, joints };
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
        stages,
        output,
        response: raw.response,
        fit,
        gradient,
        echo: String::new(),
        warnings: Diagnostics::new(),
    })
}

/// Refuses atoms that are at the same place, where no energy has a direction.
fn apart(
    document: &Document,
    raw: &Raw,
    cell: &Cell,
    positions: &Positions,
    place: &Place,
) -> Result<(), Reported> {
    let mut seen: HashMap<[i64; 3], usize> = HashMap::with_capacity(positions.len());
    for (i, at) in positions.raw().iter().enumerate() {
        if let Some(first) = seen.insert(*at, i) {
            let written = |i| positions.cartesian(cell, i);
            let apart = written(first).iter().zip(written(i)).any(|(a, b)| (a - b).abs() > 1e-6);
            let image = if apart { ", one as an image of the other" } else { "" };
            let message = format!("the atoms {} and {} are at the same place{image}", first + 1, i + 1);
            let diagnostic = Diagnostic::error(message).at(place.clone(), "");
            let diagnostic = match (apart, &raw.system.cell) {
                (true, Some(cell)) => diagnostic
                    .also(cell.place.clone(), "in this cell")
                    .help("is the cell too small? beyond an edge it begins again"),
                (true, None) => diagnostic.help(
                    "beyond an edge the cell begins again: is it too small, or is an atom at its edge there twice?",
                ),
                (false, _) => diagnostic.help("take one of them out, or move it"),
            };
            return Err(document.report(diagnostic));
        }
    }
    Ok(())
}

/// Refuses a reach within which each atom would see absurdly many others.
fn few_enough_neighbors(
    document: &Document,
    raw: &Raw,
    cell: &Cell,
    n: usize,
    reach: f64,
) -> Result<(), Reported> {
    let images =
        (0..3).filter(|&k| cell.periodic()[k]).map(|k| (2.0 * reach / cell.heights()[k]).max(1e-300));
    let each = n as f64 * images.product::<f64>();
    let all = n as f64 * each;
    // (without a period each atom sees the others at most)
    if !cell.periodic().contains(&true) || !(each > 2e4 && all > 2e9 || all > 1e11) {
        return Ok(());
    }
    let energy = |e: &&raw::Energy| e.cutoff.as_ref().and_then(|c| c.distance.value).unwrap_or(0.0);
    let longest = raw.energies.iter().max_by(|a, b| energy(a).total_cmp(&energy(b)));
    let own =
        raw.energies.iter().flat_map(|e| e.types.iter().chain(&e.rows)).filter_map(|r| r.cutoff.as_ref());
    let own = own.max_by(|a, b| a.value.total_cmp(&b.value));
    let skin = raw.forces.skin.as_ref().filter(|s| s.value > reach / 2.0);
    let place = match (skin, own, longest) {
        (Some(skin), ..) => skin.place.clone(),
        (_, Some(own), longest) if own.value > longest.as_ref().map_or(0.0, energy) => own.place.clone(),
        (.., Some(longest)) => {
            longest.cutoff.as_ref().map_or_else(|| longest.place.clone(), |c| c.distance.place.clone())
        }
        (.., None) => return Ok(()),
    };
    let message = format!("each atom would have about {each:.0e} neighbors within its reach");
    let help = "is the unit right? ten thousand are already many";
    Err(document.report(Diagnostic::error(message).at(place, "").help(help)))
}

/// Says what is odd about energies that act on charges.
fn remarks_on_charges(document: &Document, raw: &Raw, periodic: bool) {
    if raw.types.iter().all(|(_, t)| t.charge.value == 0.0) {
        return;
    }
    let of_charges =
        |e: &&raw::Energy| matches!(e.listed.builder, Builder::Pair { factor: Factor::Charge, .. });
    let mut of_charges = raw.energies.iter().filter(of_charges);
    if let Some((first, second)) = of_charges.clone().next().zip(of_charges.clone().nth(1)) {
        let [a, b] = [first, second].map(|e| e.listed.about.name);
        let warning = Diagnostic::warning(format!("the charges act twice: by `{a}` and by `{b}`"))
            .at(second.place.clone(), "")
            .also(first.place.clone(), "")
            .help("energies add up; keep one of the two");
        document.report_warning(warning);
    }
    let bare = of_charges.find(|e| e.listed.about.name == BARE_CHARGES);
    let Some((energy, cutoff)) = bare.and_then(|e| e.cutoff.as_ref().map(|c| (e, c))) else { return };
    let how = match cutoff.ending.value {
        Ending::Switch => "by a switch",
        Ending::Truncate => "by a cut",
        Ending::Shift | Ending::ForceShift => return,
    };
    if periodic && cutoff.distance.value.is_some() {
        let place = if cutoff.ending.given { &cutoff.ending.place } else { &energy.place };
        let warning = Diagnostic::warning(format!("charges reach far, and here they end {how}"))
            .at(place.clone(), if cutoff.ending.given { "" } else { "its default ending is a switch" })
            .help(
                "that makes large forces near the cut-off, and liquids boil; take `[pair.reaction-field]` or \
                 `[pair.damped-shifted-force]`, or at least `ending = \"force-shift\"`",
            );
        document.report_warning(warning);
    }
}

/// Says what is odd about the system as a whole.
fn remarks(document: &Document, raw: &Raw, atoms: &Atoms) {
    let warn = |message: String, place: &Place, help: &str| {
        document.report_warning(Diagnostic::warning(message).at(place.clone(), "").help(help));
    };
    if raw.energies.is_empty() {
        let message = "there are no energies: the atoms do not see each other";
        let help = "add a table such as `[pair.lennard-jones]` (see `md explain potentials`)";
        warn(message.to_owned(), &raw.system.place, help);
        return;
    }
    let uses_charge = |e: &&raw::Energy| {
        let factor = match e.listed.builder {
            Builder::Pair { factor, .. } | Builder::Field { factor, .. } => factor,
            _ => Factor::One,
        };
        factor == Factor::Charge
    };
    let electric = raw.energies.iter().find(uses_charge);
    let charged = raw.types.iter().find(|(_, t)| t.charge.value != 0.0);
    match (electric, charged) {
        (None, Some((_, t))) => {
            let message = "the charges have no effect: no energy uses them";
            warn(
                message.to_owned(),
                &t.charge.place,
                "add one such as `[pair.reaction-field]`, or leave them out",
            );
        }
        (Some(energy), None) => {
            let message = format!("`{}` has no effect: no atom has a charge", energy.listed.about.name);
            warn(message, &energy.place, "give the types their `charge`");
        }
        (Some(energy), Some(_)) if matches!(energy.listed.builder, Builder::Pair { .. }) => {
            let sum: f64 = atoms.charges.iter().sum();
            if sum.abs() > 0.01 {
                let message = format!("the system as a whole has a charge of {:.4} e", sum + 0.0);
                warn(
                    message,
                    &energy.place,
                    "are all charges right? each type has one: `charge = \"0.41 e\"`",
                );
            }
        }
        _ => {}
    }
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
                let help = match start.value.is_dir() {
                    true => "a run that was stopped goes on with `--resume`; only a finished one can be started from".to_owned(),
                    false => format!("there is no such folder; {}", relative_to(&start.place)),
                };
                return Err(
                    document.report(Diagnostic::error(message).at(start.place.clone(), "").help(help))
                );
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
    let frame = match document.file(&file.value) {
        Some(bytes) => Format::from_path(&file.value)
            .and_then(|format| formats::read_structure_bytes(bytes, format, Which::Last, units)),
        None => {
            is_file(document, &file)?;
            formats::read_structure(&file.value, None, Which::Last, units)
        }
    };
    let frame = frame.map_err(|e| document.report(of_file(&e, &file.place)))?;
    for remark in &frame.remarks {
        document.report_warning(Diagnostic::warning(remark.clone()).at(file.place.clone(), ""));
    }
    if frame.atoms.is_empty() && !frame.positions.is_empty() {
        let message = "this format does not say which atoms they are; use .xyz or .gro";
        return Err(document.report(Diagnostic::error(message).at(file.place.clone(), "")));
    }
    if frame.positions.is_empty() {
        let message = format!("`{}` holds no atoms", file.value.display());
        let help = "the last frame of the file is read";
        return Err(document.report(Diagnostic::error(message).at(file.place.clone(), "").help(help)));
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
                Diagnostic::error(message)
                    .at(b.place.clone(), "")
                    .also(a.place.clone(), "and this")
                    .help("keep one of them: each follows from the other"),
            ));
        }
        (None, None) => {
            let help = "give `constant = \"5.26 A\"` or `density = \"1.4 g/cm^3\"`";
            let message = "how wide is the lattice?";
            return Err(document.report(Diagnostic::error(message).at(lattice.place.clone(), "").help(help)));
        }
    };
    atoms_of(document, basis, &lattice.repeat)?;
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

/// How many atoms so many copies have, if that is a number of atoms.
fn atoms_of(document: &Document, atoms: usize, repeat: &Located<[i64; 3]>) -> Result<usize, Reported> {
    let all = repeat.iter().try_fold(atoms, |n, &r| n.checked_mul(usize::try_from(r).ok()?));
    all.filter(|n| *n <= MOST_ATOMS).ok_or_else(|| {
        let count = repeat.iter().map(|&r| r as f64).product::<f64>() * atoms as f64;
        let message = format!("that would be {count:.0e} atoms");
        let help = format!("at most {} million are possible", MOST_ATOMS / 1_000_000);
        document.report(Diagnostic::error(message).at(repeat.place.clone(), "").help(help))
    })
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
    let mut points = Vec::with_capacity(atoms_of(document, frame.positions.len(), &system.repeat)?);
    let repeat = system.repeat.map(|r| r as usize);
    let edges = vectors.unwrap_or([[0.0; 3]; 3]);
    if repeat != [1; 3] && vectors.is_none() {
        let message = "only a structure with a cell can be repeated";
        let help = "give `cell = [\"3 nm\", \"3 nm\", \"3 nm\"]` in `[system]`";
        let diagnostic = Diagnostic::error(message).at(system.repeat.place.clone(), "").help(help);
        return Err(document.report(diagnostic));
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
    let cell = Cell::enclosing(vectors, periodic, &points).map_err(|e| {
        let (message, help) = match &e {
            CellError::Point { index } => {
                let r = points[*index];
                let place = format!("atom {} is at ({:e}, {:e}, {:e}) nm", index + 1, r[0], r[1], r[2]);
                (format!("{place}, too far away"), Some("coordinates up to 1e9 nm are possible"))
            }
            CellError::Flat { .. } => {
                ("the three vectors of the cell lie in one plane: it has no volume".to_owned(), None)
            }
            CellError::Length { .. } => (e.to_string(), Some("is the unit right?")),
            CellError::Missing { .. } => {
                (e.to_string(), Some("give it a length, or say in `periodic` along which vectors it repeats"))
            }
            _ => (e.to_string(), None),
        };
        let help = help.map(str::to_owned);
        document.report(Diagnostic::error(message).at(place, "").maybe_help(help))
    })?;
    Ok((cell, points))
}

/// The places of the atoms of a repeated structure, each next to the ones that it is bonded to. In the structure a bond
/// may lead through an edge of its cell to an image; in the larger cell of the copies that would be another atom's place.
fn whole_molecules(
    cell: &Cell,
    repeat: [i64; 3],
    bonds: &[[u32; 2]],
    mut points: Vec<[f64; 3]>,
) -> Vec<[f64; 3]> {
    let mut edges = cell.vectors();
    for (edge, copies) in edges.iter_mut().zip(repeat) {
        *edge = edge.map(|x| x / copies as f64);
    }
    // (where there is no such cell, there is none of the copies, which is reported)
    let Ok(one) = Cell::new(edges, cell.periodic()) else { return points };
    let Ok(places) = Positions::from_cartesian(&one, &points) else { return points };
    let partners = partners(points.len(), bonds);
    let mut seen = vec![false; points.len()];
    let mut next = Vec::new();
    for first in 0..points.len() {
        if !seen[first] {
            next.push(first);
            seen[first] = true;
        }
        while let Some(i) = next.pop() {
            for j in partners[i].iter().map(|&j| j as usize) {
                if std::mem::replace(&mut seen[j], true) {
                    continue;
                }
                next.push(j);
                let d = one.cartesian(one.nearest(places.displacement(i, j)));
                let near: [f64; 3] = std::array::from_fn(|k| points[i][k] + d[k]);
                // (what is whole keeps its digits)
                if near.iter().zip(points[j]).any(|(a, b)| (a - b).abs() > 1e-6) {
                    points[j] = near;
                }
            }
        }
    }
    points
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
                    || format!("add a table `[atoms.{}]` with its `mass`", toml_key(&label.name)),
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
        .map(|(_, m)| m.count.as_ref().map_or(0, |c| (c.value as usize).saturating_mul(m.atoms.len())))
        .fold(0, usize::saturating_add);
    let mut number = 0;
    for (name, molecule) in &raw.molecules {
        let size = molecule.atoms.len();
        let count = match &molecule.count {
            Some(count) => count.value as usize,
            None if open > 1 => {
                let message = "only one kind of molecule can be left without a `count`";
                let mut without = raw.molecules.iter().filter(|(_, m)| m.count.is_none());
                let (first, second) = (without.next(), without.next());
                let (first, second) = first.zip(second).map_or((name, name), |(a, b)| (&a.0, &b.0));
                let diagnostic = Diagnostic::error(message)
                    .at(second.place.clone(), "this has none")
                    .also(first.place.clone(), "nor has this")
                    .help("say how many there are: `count = 512`");
                return Err(document.report(diagnostic));
            }
            None => labels.len().saturating_sub(fixed) / size,
        };
        // "name: type", or a type that is its own name
        let mut names: HashMap<&str, u32> = HashMap::new();
        let mut types = Vec::new();
        let mut labels_of = Vec::new();
        for (k, atom) in molecule.atoms.iter().enumerate() {
            let (label, kind) = match atom.value.split_once(':') {
                Some((label, kind)) => (label.trim(), kind.trim()),
                None => (atom.value.trim(), atom.value.trim()),
            };
            types.push(type_at(kind).ok_or_else(|| no_type(document, kind, &atom.place, type_names))?);
            if label.is_empty() {
                let message = "an atom without a name";
                let help = "write \"name: type\", such as \"H1: HW\", or just the type";
                return Err(document.report(Diagnostic::error(message).at(atom.place.clone(), "").help(help)));
            }
            labels_of.push(label);
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
                    let guess = did_you_mean(&atom.value, labels_of.iter().copied());
                    let help = guess.map_or_else(
                        || format!("its atoms are called {}", labels_of.join(", ")),
                        |w| format!("did you mean `{w}`?"),
                    );
                    document.report(Diagnostic::error(message).at(atom.place.clone(), "").help(help))
                })?;
                if atoms.contains(&found) {
                    let message = format!("`{}` stands here twice", atom.value);
                    let diagnostic = Diagnostic::error(message).at(tuple.place.clone(), "");
                    return Err(document.report(diagnostic.help("the atoms must be different ones")));
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
        let once = |kind: &str, list: &[Located<Vec<Located<String>>>], tuples: &[&[u32]]| {
            let mut seen: HashMap<Vec<u32>, usize> = HashMap::new();
            for (k, tuple) in tuples.iter().enumerate() {
                let reversed: Vec<u32> = tuple.iter().rev().copied().collect();
                if let Some(first) = seen.insert(tuple.to_vec().min(reversed), k) {
                    let diagnostic = Diagnostic::error(format!("this {kind} is listed twice"))
                        .at(list[k].place.clone(), "")
                        .also(list[first].place.clone(), "first here")
                        .help("it would count twice; take one of them out");
                    return Err(document.report(diagnostic));
                }
            }
            Ok(())
        };
        fn slices<const N: usize>(tuples: &[[u32; N]]) -> Vec<&[u32]> {
            tuples.iter().map(|t| t.as_slice()).collect()
        }
        let bonds = tuples::<2>(&molecule.bonds, look_up)?;
        once("bond", &molecule.bonds, &slices(&bonds))?;
        let angles = match &molecule.angles {
            Some(list) => {
                let angles = tuples::<3>(list, look_up)?;
                once("angle", list, &slices(&angles))?;
                angles
            }
            None => angles_of(size, &bonds),
        };
        let dihedrals = match &molecule.dihedrals {
            Some(list) => {
                let dihedrals = tuples::<4>(list, look_up)?;
                once("dihedral", list, &slices(&dihedrals))?;
                dihedrals
            }
            None => dihedrals_of(size, &bonds),
        };
        let impropers = tuples::<4>(&molecule.impropers, look_up)?;
        once("improper", &molecule.impropers, &slices(&impropers))?;
        if count == 0 && molecule.count.is_none() {
            let warning = Diagnostic::warning(format!("there is no molecule `{}`", name.value))
                .at(name.place.clone(), "")
                .help("the other molecules are all that the structure has");
            document.report_warning(warning);
        }
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
    if members.types.len() == labels.len() {
        in_order(document, raw, labels, &members, type_names);
    } else {
        let more = members.types.len() > labels.len();
        let message = format!(
            "the molecules need {} {} atoms, but the structure has {}",
            if more { "at least" } else { "exactly" },
            members.types.len(),
            labels.len()
        );
        let last = raw.molecules.iter().rev().find(|(_, m)| m.count.is_some()).or(raw.molecules.last());
        let blamed = last.map_or(place.clone(), |(name, m)| {
            m.count.as_ref().map_or(name.place.clone(), |count| count.place.clone())
        });
        let help = match raw.molecules.as_slice() {
            [(_, one)] if labels.len().is_multiple_of(one.atoms.len()) => {
                format!("`count = {}` would fit; left out, they are counted", labels.len() / one.atoms.len())
            }
            [(name, one)] => {
                format!(
                    "{} atoms are no whole number of `{}` with its {}",
                    labels.len(),
                    name.value,
                    one.atoms.len()
                )
            }
            _ => "count the molecules; one `count` can be left out".to_owned(),
        };
        let diagnostic = Diagnostic::error(message).at(blamed, "").also(place.clone(), "the structure");
        return Err(document.report(diagnostic.help(help)));
    }
    Ok(members)
}

/// Warns where the structure has another atom than the molecules say: then the order is wrong.
fn in_order(document: &Document, raw: &Raw, labels: &[AtomLabel], members: &Members, type_names: &[String]) {
    let mut first = 0;
    let mut before = None;
    for (i, label) in labels.iter().enumerate() {
        if before != Some(members.molecules[i]) {
            (first, before) = (i, Some(members.molecules[i]));
        }
        let Some((name, molecule)) =
            raw.molecules.iter().find(|(name, _)| members.names[i].as_ref() == Some(&name.value))
        else {
            continue;
        };
        let Some(atom) = molecule.atoms.get(i - first) else { continue };
        let called = atom.value.split(':').next().unwrap_or("").trim();
        let kind = members.types[i] as usize;
        let element = raw.types[kind].1.element.as_ref().map(|e| e.value.as_str());
        // "HW1" may be the hydrogen H1 of type HW
        let known = [Some(called), Some(type_names[kind].as_str()), element];
        let alike = |a: &str, b: &str| {
            let (a, b) = (a.to_lowercase(), b.to_lowercase());
            a.starts_with(&b) || b.starts_with(&a)
        };
        if !known.into_iter().flatten().any(|k| alike(k, &label.name)) {
            let message = format!("atom {} of the structure is called `{}`", i + 1, label.name);
            let warning = Diagnostic::warning(message)
                .at(atom.place.clone(), format!("but here it is the `{called}` of `{}`", name.value))
                .help("are the atoms in the same order in both?");
            document.report_warning(warning);
            return;
        }
    }
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

/// Warns where a bond would swing in fewer than five steps; beyond the third part of a period a run blows up.
fn slow_enough(document: &Document, raw: &Raw, stage: &raw::Stage) {
    use super::plan::Task;
    let (Task::VelocityVerlet { time_step } | Task::Langevin { time_step, .. }) = stage.task.value else {
        return;
    };
    let mass = |name: &str| raw.types.iter().find(|(n, _)| n.value == name).map(|(_, t)| t.mass.value);
    let mut fastest: Option<(f64, &raw::Row)> = None;
    for energy in
        raw.energies.iter().filter(|e| e.listed.kind == EnergyKind::Bond && e.listed.about.name == "harmonic")
    {
        let Some(k) = energy.listed.about.params.iter().position(|p| p.name == "k") else { continue };
        for row in &energy.rows {
            let masses = row.name.value.split_once('-').and_then(|(a, b)| mass(a.trim()).zip(mass(b.trim())));
            let stiffness = row.values.get(k).and_then(Option::as_ref);
            let (Some((a, b)), Some(stiffness)) = (masses, stiffness) else { continue };
            let period = std::f64::consts::TAU * (a * b / (a + b) / stiffness.value).sqrt();
            if fastest.is_none_or(|(least, _)| period < least) {
                fastest = Some((period, row));
            }
        }
    }
    let Some((period, row)) = fastest.filter(|(period, _)| time_step > period / 5.0) else { return };
    let shown = |time: f64| match raw.units {
        UnitSystem::Lj => rounded(time),
        _ => format!("{} fs", rounded(time * 1000.0)),
    };
    let message = format!("the time step is too long for the bond {}", row.name.value);
    let warning = Diagnostic::warning(message)
        .at(stage.task.place.clone(), format!("steps of {}", shown(time_step)))
        .also(row.name.place.clone(), format!("swings once in {}", shown(period)))
        .help(format!("take at most about a tenth of that: {}", shown(period / 10.0)));
    document.report_warning(warning);
}

/// A number with three digits, however small it is.
fn rounded(x: f64) -> String {
    if x >= 0.01 || x == 0.0 { format!("{x:.2}") } else { format!("{x:.2e}") }
}

fn stages(document: &Document, raw: &Raw, atoms: usize) -> Result<Vec<Stage>, Reported> {
    use super::plan::Task;
    for s in &raw.stages {
        slow_enough(document, raw, s);
        let Some(velocities) = &s.velocities else { continue };
        if matches!(s.task.value, Task::Fire { .. } | Task::Lbfgs { .. }) {
            let warning = Diagnostic::warning("velocities mean nothing to a stage that minimises")
                .at(velocities.place.clone(), "")
                .help("give them to the stage after it");
            document.report_warning(warning);
        }
        if atoms == 1 && velocities.value > 0.0 && s.remove_drift.as_ref().is_none_or(|r| r.value) {
            let message = "one atom has no temperature once its drift is removed";
            let help = "write `remove-drift = false`";
            let diagnostic = Diagnostic::error(message).at(velocities.place.clone(), "").help(help);
            return Err(document.report(diagnostic));
        }
    }
    let one = |(k, s): (usize, &raw::Stage)| Stage {
        name: s.name.as_ref().map_or_else(|| format!("stage {}", k + 1), |n| n.value.clone()),
        steps: *s.steps as u64,
        task: s.task.value,
        velocities: s.velocities.as_ref().map(|v| v.value),
        remove_drift: s.remove_drift.as_ref().map_or(s.velocities.is_some(), |r| r.value),
        energies_every: s.energies.as_ref().map_or(raw.output.energies, |e| e.value) as u64,
        frames_every: {
            let every = |t: &raw::Trajectory| s.frames.as_ref().map_or(t.every, |f| f.value) as u64;
            raw.output.trajectories.iter().map(every).collect()
        },
    };
    Ok(raw.stages.iter().enumerate().map(one).collect())
}

fn output(model: &Model, raw: &Raw, labels: &[AtomLabel]) -> Result<Output, Reported> {
    let document = model.document;
    let mut trajectories: Vec<Trajectory> = Vec::new();
    for (k, t) in raw.output.trajectories.iter().enumerate() {
        let name = &t.file.value;
        let wrong = |message: String, help: &str| {
            document.report(Diagnostic::error(message).at(t.file.place.clone(), "").help(help))
        };
        if name.chars().any(char::is_control) || Path::new(name).components().count() != 1 {
            let message = format!("`{name}` cannot be the name of a trajectory");
            return Err(wrong(
                message,
                "a plain file name is needed: the file stands in the folder of the run",
            ));
        }
        let Ok(format) = Format::from_path(name) else {
            let message = format!("`{name}` does not say by its ending what format it has");
            return Err(wrong(message, "trajectories end in .xyz, .xtc or .gro"));
        };
        if ["final.xyz", "last-good.xyz"].contains(&name.to_lowercase().as_str()) {
            let message = format!("`{name}` cannot be the name of a trajectory");
            return Err(wrong(message, "runs write their own last frame under this name; choose another"));
        }
        if let Some(first) = raw.output.trajectories[..k].iter().find(|o| o.file.value == *name) {
            let diagnostic = Diagnostic::error(format!("two trajectories are called `{name}`"))
                .at(t.file.place.clone(), "")
                .help("give each a `file` of its own");
            let same = first.file.place == t.file.place;
            return Err(document.report(match same {
                true => diagnostic,
                false => diagnostic.also(first.file.place.clone(), "the first one"),
            }));
        }
        if format == Format::Xtc && t.velocities.value {
            let diagnostic = Diagnostic::error("XTC files hold no velocities")
                .at(t.velocities.place.clone(), "")
                .also(t.file.place.clone(), "this is one")
                .help("leave them out, or write a .xyz or .gro file");
            return Err(document.report(diagnostic));
        }
        let atoms = model.select(&t.atoms)?;
        let long = atoms.iter().map(|&i| &labels[i as usize].name).find(|name| name.len() > 5);
        if let (Format::Gro, Some(long)) = (format, long) {
            let message = format!("GRO files have no room for the name `{long}`");
            return Err(wrong(message, "at most five letters fit; write a .xyz file, or shorten the name"));
        }
        trajectories.push(Trajectory {
            file: t.file.value.clone().into(),
            format,
            atoms,
            unwrapped: t.unwrapped,
            velocities: t.velocities.value,
            decimals: t.decimals.as_ref().map(|d| d.value as usize),
        });
    }
    Ok(Output { restart_every: raw.output.restart as u64, trajectories })
}
