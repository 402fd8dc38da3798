//! What was written: every key of an input, read once, with its place.
//!
//! Nothing is looked up or built here. [`read`] is also run over an empty document to list the keys
//! ([`keys`]), so that the documentation cannot drift away from what is read.

use super::fit::Written as Fit;
use super::neural::Neural;
use super::reader::{
    Document, Either, KeyDoc, List, Located, Placed, Presence, Quantity, Reported, Section, Text, array,
    boolean, either, float, integer, list, one_of, path, placed, quantity, text, word,
};
use super::report::{Diagnostic, Place};
use super::response::Response;
use crate::catalog::{Builder, Catalog, Ending, EnergyKind, Listed};
use crate::forces::{Isa, Kind, Precision};
use crate::system::lattice::LatticeKind;
use crate::units::UnitSystem;
use potentials::Factor;
use potentials::param::{Dimension, Mixing, Param, Range, Source};
use std::path::PathBuf;

/// An input as written.
pub struct Raw {
    pub title: String,
    pub units: UnitSystem,
    pub coulomb: f64,
    pub boltzmann: f64,
    pub seed: u64,
    pub start: Option<Located<PathBuf>>,
    pub system: System,
    pub types: Vec<(Located<String>, AtomType)>,
    pub molecules: Vec<(Located<String>, Molecule)>,
    pub energies: Vec<Energy>,
    pub forces: Forces,
    pub stages: Vec<Stage>,
    pub output: Output,
    pub response: Response,
    pub fit: Option<Fit>,
    /// `[gradient]`
    pub gradient: Option<super::gradient::Raw>,
}

/// `[system]`
pub struct System {
    pub place: Place,
    pub structure: Option<Located<PathBuf>>,
    pub lattice: Option<Lattice>,
    pub cell: Option<Located<Either<[f64; 3], [[f64; 3]; 3]>>>,
    pub periodic: Option<Located<[bool; 3]>>,
    pub repeat: Located<[i64; 3]>,
}

/// `[system.lattice]`
pub struct Lattice {
    pub place: Place,
    pub kind: LatticeKind,
    pub constant: Option<Located<f64>>,
    pub density: Option<Located<f64>>,
    pub repeat: Located<[i64; 3]>,
    pub types: Located<Vec<Located<String>>>,
}

/// `[atoms.NAME]`
pub struct AtomType {
    pub mass: Located<f64>,
    pub charge: Located<f64>,
    pub element: Option<Located<String>>,
}

/// `[molecules.NAME]`
pub struct Molecule {
    pub atoms: Located<Vec<Located<String>>>,
    pub bonds: Vec<Located<Vec<Located<String>>>>,
    pub angles: Option<Vec<Located<Vec<Located<String>>>>>,
    pub dihedrals: Option<Vec<Located<Vec<Located<String>>>>>,
    pub impropers: Vec<Located<Vec<Located<String>>>>,
    pub count: Option<Located<i64>>,
}

/// One energy: `[pair.lennard-jones]`, `[bond.harmonic]` …
pub struct Energy {
    pub listed: Listed,
    pub place: Place,
    pub cutoff: Option<Cutoff>,
    /// How unlike types mix.
    pub mixing: Option<Located<MixingRule>>,
    /// Factors of pairs 1, 2 and 3 bonds apart.
    pub bonded_factors: Option<Located<[f64; 3]>>,
    /// Whether excluded pairs keep the remainder.
    pub remainder: bool,
    /// Parameters that hold for the whole term.
    pub common: Option<Row>,
    /// Parameters by type.
    pub types: Vec<Row>,
    /// Parameters by pair, or tuple, of types.
    pub rows: Vec<Row>,
    /// Which atoms, of fields and groups.
    pub atoms: Option<Located<Vec<Located<String>>>>,
    /// What makes a network.
    pub neural: Option<Neural>,
}

/// Where an interaction ends.
pub struct Cutoff {
    /// `None` for no cut-off.
    pub distance: Located<Option<f64>>,
    pub ending: Located<Ending>,
    pub inner: Located<f64>,
}

/// A set of parameters.
#[derive(Clone)]
pub struct Row {
    pub name: Located<String>,
    /// One a parameter; `None` where it comes from elsewhere. No values at all: no interaction.
    pub values: Vec<Option<Located<f64>>>,
    /// The cut-off of this pair.
    pub cutoff: Option<Located<f64>>,
}

/// How the parameters of unlike types follow from those of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixingRule {
    LorentzBerthelot,
    Geometric,
    WaldmanHagler,
    None,
}

/// `[forces]`
pub struct Forces {
    pub evaluator: Kind,
    pub isa: Located<Option<Isa>>,
    pub reproducible: bool,
    pub precision: Precision,
    pub skin: Option<Located<f64>>,
}

/// `[[stage]]`
pub struct Stage {
    pub name: Option<Located<String>>,
    pub steps: Located<i64>,
    pub task: Located<Task>,
    pub velocities: Option<Located<f64>>,
    pub remove_drift: Option<Located<bool>>,
    pub energies: Option<Located<i64>>,
    pub frames: Option<Located<i64>>,
}

/// `[stage.integrator]` or `[stage.minimizer]`
pub use super::plan::Task;

/// `[output]`
pub struct Output {
    pub energies: i64,
    pub restart: i64,
    pub trajectories: Vec<Trajectory>,
}

/// `[[output.trajectory]]`
pub struct Trajectory {
    pub file: Located<String>,
    pub every: i64,
    pub atoms: Located<Vec<Located<String>>>,
    pub unwrapped: bool,
    pub velocities: Located<bool>,
    pub decimals: Option<Located<i64>>,
}

/// The keys of an input, for its documentation. Defaults that are others in reduced units are given in both.
pub fn keys(catalog: &Catalog) -> Vec<KeyDoc> {
    let of = |units| {
        let survey = Document::survey();
        let _ = read_in(&survey, catalog, Some(units));
        survey.keys()
    };
    let reduced = of(UnitSystem::Lj);
    let number = |text: &str| text.trim_matches('"').split(' ').next()?.parse::<f64>().ok();
    let both = |mut key: KeyDoc| {
        let same = reduced.iter().find(|k| k.path == key.path && k.doc == key.doc);
        if let (Presence::Default(a), Some(Presence::Default(b))) =
            (&mut key.presence, same.map(|k| &k.presence))
            && a != b
            && number(a).is_none_or(|x| number(b) != Some(x))
        {
            *a += &format!("; in reduced units: {b}");
        }
        key
    };
    of(UnitSystem::Md).into_iter().map(both).collect()
}

/// Reads all keys.
///
/// # Errors
/// Whatever is wrong has been reported to the document.
pub fn read(document: &Document, catalog: &Catalog) -> Result<Raw, Reported> {
    read_in(document, catalog, None)
}

/// The same; a survey, which takes every choice, is told which units it is about.
fn read_in(document: &Document, catalog: &Catalog, surveyed: Option<UnitSystem>) -> Result<Raw, Reported> {
    let root = document.root();
    let title = root.read("title", text(), "what the run is about").or(String::new());
    let (units, coulomb, boltzmann) = constants(&root)?;
    let units = surveyed.unwrap_or(units);
    root.set_units(units);
    let seed = root.read("seed", integer().at_least(0), "of all random numbers").or(1);
    let start = root.read("start", path(), "folder of a run whose end is the start of this one").optional();
    let system = system(&root);
    let types = types(&root);
    let molecules = molecules(&root);
    let energies = energies(&root, catalog);
    let forces = forces(&root);
    let stages = stages(&root, units);
    let output = output(&root);
    let response = super::response::read(&root);
    let fit = super::fit::read(&root);
    let gradient = super::gradient::read(&root);
    root.finish();
    Ok(Raw {
        title: title?.value,
        units,
        coulomb,
        boltzmann,
        seed: *seed? as u64,
        start: start?,
        system: system?,
        types: types?,
        molecules: molecules?,
        energies: energies?,
        forces: forces?,
        stages: stages?,
        output: output?,
        response: response?,
        fit: fit?,
        gradient: gradient?,
    })
}

fn constants(root: &Section) -> Result<(UnitSystem, f64, f64), Reported> {
    let options = [
        ("md", "nm, ps, u, kJ/mol, e, K"),
        ("real", "Å, fs, u, kcal/mol, e, K, atm"),
        ("metal", "Å, ps, u, eV, e, K, bar"),
        ("lj", "reduced: every unit is 1, and so are the constants"),
    ];
    let chosen = root.variant("units", &options, "what bare numbers mean").or("md", |name, t| {
        let units = UnitSystem::ALL.iter().find(|(n, _)| *n == name).map_or(UnitSystem::Md, |(_, u)| *u);
        t.set_units(units);
        let coulomb = Dimension::ENERGY.times(Dimension::LENGTH).per(Dimension::CHARGE.powi(2));
        let coulomb = t
            .read("coulomb-constant", quantity(coulomb).range(Range::Positive), "k in k q q / r")
            .or(units.coulomb());
        let boltzmann = Dimension::ENERGY.per(Dimension::TEMPERATURE);
        let boltzmann = t
            .read("boltzmann-constant", quantity(boltzmann).range(Range::Positive), "k in k T")
            .or(units.boltzmann());
        Ok((units, *coulomb?, *boltzmann?))
    })?;
    Ok(chosen.value)
}

/// Some names, each with its place.
fn names() -> List<Placed<Text>> {
    list(placed(text())).at_least(1)
}

fn system(root: &Section) -> Result<System, Reported> {
    let t = root.required_section("system", "the atoms and their cell")?;
    let structure =
        t.read("structure", path(), "file with the atoms: extended XYZ (.xyz) or GRO (.gro)").optional();
    let lattice = match t.section("lattice", "atoms on a lattice, instead of a file") {
        Ok(Some(t)) => lattice(&t).map(Some),
        Ok(None) => Ok(None),
        Err(e) => Err(e),
    };
    let length = || quantity(Dimension::LENGTH);
    let edge = length().range(Range::NonNegative);
    let edges = either(array::<3, _>(edge), array::<3, _>(array::<3, _>(length())));
    let cell = t
        .read("cell", edges, "edges of the cell: three lengths or three vectors; instead of the file's")
        .optional();
    let periodic = t
        .read("periodic", array::<3, _>(boolean()), "along which of the cell's vectors it repeats")
        .optional();
    let repeat = t
        .read("repeat", array::<3, _>(integer().at_least(1)), "copies of the structure along each vector")
        .or([1; 3]);
    let place = t.place().clone();
    t.finish();
    Ok(System {
        place,
        structure: structure?,
        lattice: lattice?,
        cell: cell?,
        periodic: periodic?,
        repeat: repeat?,
    })
}

fn lattice(t: &Section) -> Result<Lattice, Reported> {
    let kinds = LatticeKind::ALL.map(|k| (k.name(), k));
    let kind = t.read("kind", one_of(kinds), "the lattice").required();
    let constant = t
        .read("constant", quantity(Dimension::LENGTH).range(Range::Positive), "edge of the cubic cell")
        .optional();
    let density = Dimension::MASS.per(Dimension::LENGTH.powi(3));
    let density = t
        .read("density", quantity(density).range(Range::Positive), "mass density, instead of the constant")
        .optional();
    let repeat =
        t.read("repeat", array::<3, _>(integer().at_least(1)), "cubic cells along each axis").required();
    let types =
        t.read("types", names(), "atom types: one for all, or one for each atom of the basis").required();
    Ok(Lattice {
        place: t.place().clone(),
        kind: *kind?,
        constant: constant?,
        density: density?,
        repeat: repeat?,
        types: types?,
    })
}

fn types(root: &Section) -> Result<Vec<(Located<String>, AtomType)>, Reported> {
    let mut types = Vec::new();
    for (name, t) in root.named("atoms", None, "the atom types, by name")? {
        let mass = t.read("mass", quantity(Dimension::MASS).range(Range::Positive), "of one atom").required();
        let charge = t.read("charge", quantity(Dimension::CHARGE), "of one atom").or(0.0);
        let element = t.read("element", text(), "symbol in structure files; else the type's name").optional();
        let units = t.units();
        let sensible = |x: Located<f64>, most: f64, what: &str| {
            let too_much = units != UnitSystem::Lj && x.value.abs() > most;
            refuse(&t, too_much.then(|| format!("no atom has {what}: is the unit right?")), &x.place)?;
            Ok(x)
        };
        let mass = mass.and_then(|m| sensible(m, 1e15, "a mass of more than 1e15 u"));
        let charge = charge.and_then(|q| sensible(q, 1e6, "a charge of more than a million e"));
        let element = element.and_then(|element: Option<Located<String>>| {
            if let Some(e) = &element {
                let bad =
                    e.value.is_empty() || e.value.contains(|c: char| c.is_whitespace() || c.is_control());
                let message = "an element is one word: structure files separate their columns by blanks";
                refuse(&t, bad.then(|| message.to_owned()), &e.place)?;
            }
            Ok(element)
        });
        let named = type_name(&t, &name);
        t.finish();
        types.push(match (mass, charge, element, named) {
            (Ok(mass), Ok(charge), Ok(element), Ok(())) => Ok((name, AtomType { mass, charge, element })),
            (Err(e), ..) | (_, Err(e), ..) | (.., Err(e), _) | (.., Err(e)) => Err(e),
        });
    }
    types.into_iter().collect()
}

/// Reports the message, if there is one.
pub(super) fn refuse(t: &Section, message: Option<String>, place: &Place) -> Result<(), Reported> {
    match message {
        Some(message) if !t.document().is_survey() => {
            Err(t.report(Diagnostic::error(message).at(place.clone(), "")))
        }
        _ => Ok(()),
    }
}

/// Names of types are joined with `-` and stand in selections and in files.
fn type_name(t: &Section, name: &Located<String>) -> Result<(), Reported> {
    let wrong = |c: &char| "-*:".contains(*c) || c.is_whitespace() || c.is_control();
    let why = match name.value.as_str() {
        "all" => Some("it stands for every atom".to_owned()),
        "" => Some("it is empty".to_owned()),
        other => other.chars().find(wrong).map(|c| match c {
            '-' => "`-` joins the types of a pair, a bond …".to_owned(),
            '*' => "`*` stands for any type".to_owned(),
            ':' => "`:` stands between the name and the type of a molecule's atom".to_owned(),
            _ => "blanks separate the columns of structure files".to_owned(),
        }),
    };
    match why {
        Some(why) if !t.document().is_survey() => {
            let message = format!("`{}` cannot be the name of an atom type: {why}", name.value);
            let help = "use letters, digits, `_`, `+` or `'`";
            Err(t.report(Diagnostic::error(message).at(name.place.clone(), "").help(help)))
        }
        _ => Ok(()),
    }
}

/// Names of molecules stand in selections, beside types and ranges of numbers.
fn molecule_name(t: &Section, name: &Located<String>) -> Result<(), Reported> {
    let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit() || c == '-');
    let why = match name.value.trim() {
        "all" => "it stands for every atom",
        "" => "it is empty",
        other if digits(other) => "in a selection it would be a number",
        _ => return Ok(()),
    };
    let message = format!("`{}` cannot be the name of a molecule: {why}", name.value);
    refuse(t, Some(message), &name.place)
}

fn molecules(root: &Section) -> Result<Vec<(Located<String>, Molecule)>, Reported> {
    let mut molecules = Vec::new();
    for (name, t) in root.named("molecules", None, "the kinds of molecules, in the order of the structure")? {
        let tuples = |n: usize| list(placed(names().exactly(n)));
        let atoms = t.read("atoms", names(), "its atoms in order: \"name: type\", or just a type").required();
        let bonds = t.read("bonds", tuples(2), "pairs of atom names").or(Vec::new());
        let angles = t
            .read("angles", tuples(3), "triples of atom names; left out: all that the bonds make")
            .optional();
        let dihedrals =
            t.read("dihedrals", tuples(4), "chains of four; left out: all that the bonds make").optional();
        let impropers = t.read("impropers", tuples(4), "fours of atom names").or(Vec::new());
        let count = t
            .read("count", integer().at_least(0), "how many; left out: as many as the structure has")
            .optional();
        let named = molecule_name(&t, &name);
        t.finish();
        molecules.push((|| {
            named?;
            Ok((
                name,
                Molecule {
                    atoms: atoms?,
                    bonds: bonds?.value,
                    angles: angles?.map(|a| a.value),
                    dihedrals: dihedrals?.map(|d| d.value),
                    impropers: impropers?.value,
                    count: count?,
                },
            ))
        })());
    }
    molecules.into_iter().collect()
}

fn energies(root: &Section, catalog: &Catalog) -> Result<Vec<Energy>, Reported> {
    let mut energies = Vec::new();
    for kind in EnergyKind::ALL {
        let listed: Vec<&Listed> = catalog.entries().iter().filter(|e| e.kind == kind).collect();
        let known: Vec<&str> = listed.iter().map(|e| e.about.name).collect();
        let doc = format!("the {} energies, by name; see `md explain potentials`", kind.key());
        match root.named(kind.key(), Some(&known), &doc) {
            Ok(sections) => {
                for (name, t) in sections {
                    if let Some(listed) = listed.iter().find(|e| e.about.name == name.value) {
                        energies.push(energy(listed, name.place.clone(), &t));
                    }
                    t.finish();
                }
            }
            Err(e) => energies.push(Err(e)),
        }
    }
    energies.into_iter().collect()
}

fn energy(listed: &Listed, place: Place, t: &Section) -> Result<Energy, Reported> {
    let params = listed.about.params;
    let mut energy = Energy {
        listed: *listed,
        place,
        cutoff: None,
        mixing: None,
        bonded_factors: None,
        remainder: false,
        common: None,
        types: Vec::new(),
        rows: Vec::new(),
        atoms: None,
        neural: None,
    };
    let group = || {
        t.read("atoms", names(), "which: \"all\", types, molecules, or numbers such as \"1-10\"").optional()
    };
    match listed.builder {
        Builder::Pair { factor, leaves_remainder, ends_at_cutoff, .. } => {
            let cutoff = cutoff(t, if ends_at_cutoff { &[Ending::Truncate] } else { &Ending::ALL });
            let factors = float().range(Range::Within(0.0, 1.0));
            let factors = t
                .read(
                    "bonded-factors",
                    array::<3, _>(factors),
                    "what pairs 1, 2 and 3 bonds apart are multiplied by",
                )
                .or([0.0, 0.0, 1.0]);
            let remainder = match leaves_remainder {
                true => t
                    .read(
                        "excluded-remainder",
                        boolean(),
                        "whether excluded pairs keep what the formula leaves of them, and atoms their own part (as in \
                         GROMACS); false leaves both out (as OpenMM does)",
                    )
                    .or(true)
                    .map(|r| r.value),
                false => Ok(false),
            };
            match factor {
                Factor::Charge => energy.common = Some(row(params, "", t, false)?),
                Factor::One => tables(params, t, &mut energy)?,
            }
            energy.cutoff = Some(cutoff?);
            energy.bonded_factors = Some(factors?);
            energy.remainder = remainder?;
        }
        Builder::Embedding { .. } => {
            let cutoff = cutoff(t, &Ending::ALL);
            tables(params, t, &mut energy)?;
            energy.cutoff = Some(cutoff?);
        }
        Builder::Tuple { .. } | Builder::Triples { .. } => {
            let mut failed = None;
            let doc = match listed.builder {
                Builder::Triples { .. } => "parameters by three types joined with `-`, the middle atom first",
                _ => "parameters by types joined with `-`, such as \"A-B\"; `*` is any",
            };
            for (name, sections) in t.rows(doc)? {
                for s in sections {
                    match row(params, &name.value, &s, false) {
                        Ok(row) => energy.rows.push(Row { name: name.clone(), ..row }),
                        Err(e) => failed = Some(e),
                    }
                    s.finish();
                }
            }
            failed.map_or(Ok(()), Err)?;
        }
        Builder::Neural { .. } => energy.neural = Some(super::neural::read(t)?),
        Builder::Field { .. } | Builder::Global { .. } => {
            let (group, row) = (group(), row(params, "", t, false));
            energy.common = Some(row?);
            energy.atoms = group?;
        }
    }
    Ok(energy)
}

fn cutoff(t: &Section, endings: &[Ending]) -> Result<Cutoff, Reported> {
    let length = quantity(Dimension::LENGTH).range(Range::Positive);
    let distance = t
        .read(
            "cutoff",
            either(word(["none"]), length),
            "beyond which there is no interaction; \"none\" for no end",
        )
        .required();
    let options = endings.iter().map(|&e| (e.name(), e));
    let ending = t
        .read("ending", one_of(options), "how the interaction ends at the cut-off")
        .or(*endings.last().unwrap_or(&Ending::Truncate));
    let limit = match distance.as_ref().map(|d| &d.value) {
        Ok(Either::Right(x)) => Some(*x),
        _ => None,
    };
    let inner = match endings.len() {
        1 => Ok(None),
        _ => t
            .read("inner", quantity(Dimension::LENGTH).range(Range::NonNegative), "where a switch begins")
            .or_computed(0.9 * limit.unwrap_or(1.0), "0.9 of the cut-off")
            .map(Some),
    }?;
    let distance = distance?;
    let place = t.place().clone();
    let inner = inner.unwrap_or(Located { value: 0.0, place, given: false });
    let distance = Located { value: limit, place: distance.place, given: true };
    Ok(Cutoff { distance, ending: ending?, inner })
}

/// Parameters by type and by pair of types.
fn tables(params: &'static [Param], t: &Section, energy: &mut Energy) -> Result<(), Reported> {
    let rules = [
        ("lorentz-berthelot", MixingRule::LorentzBerthelot),
        ("geometric", MixingRule::Geometric),
        ("waldman-hagler", MixingRule::WaldmanHagler),
        ("none", MixingRule::None),
    ];
    let mixes = params.iter().any(|p| p.mixing != Mixing::Explicit);
    let mixing = match mixes {
        true => t
            .read("mixing", one_of(rules), "how parameters of unlike types follow")
            .or(MixingRule::LorentzBerthelot)
            .map(Some),
        false => Ok(None),
    };
    let mut failed = None;
    for (key, doc) in [
        ("types", "parameters by type; `none = true` for no interaction"),
        ("pairs", "parameters by pair of types, \"A-B\""),
    ] {
        match t.named(key, None, doc) {
            Ok(sections) => {
                for (name, s) in sections {
                    match row(params, &name.value, &s, true) {
                        Ok(row) => {
                            let row = Row { name, ..row };
                            if key == "types" { energy.types.push(row) } else { energy.rows.push(row) }
                        }
                        Err(e) => failed = Some(e),
                    }
                    s.finish();
                }
            }
            Err(e) => failed = Some(e),
        }
    }
    energy.mixing = mixing?;
    failed.map_or(Ok(()), Err)
}

/// One set of parameters. `absent`: whether it may say that there is no interaction.
fn row(params: &'static [Param], name: &str, t: &Section, absent: bool) -> Result<Row, Reported> {
    let place = t.place().clone();
    let named = Located { value: name.to_owned(), place: place.clone(), given: true };
    if absent {
        let none = t.read("none", boolean(), "true where there is no interaction").or(false)?;
        if *none {
            return Ok(Row { name: named, values: Vec::new(), cutoff: None });
        }
    }
    let mut values = Vec::new();
    for p in params {
        values.push(match p.source {
            Source::Input => t.read(p.name, Quantity::of(p), p.doc).required().map(Some),
            Source::Default(x) => t.read(p.name, Quantity::of(p), p.doc).or(x).map(Some),
            Source::Cutoff => Ok(None),
        });
    }
    let length = quantity(Dimension::LENGTH).range(Range::Positive);
    let cutoff = match absent {
        true => t.read("cutoff", length, "of this type or pair, instead of the term's").optional(),
        false => Ok(None),
    };
    let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (p, x) in params.iter().zip(values.iter().flatten()) {
        let angle = p.name.starts_with("phi") || p.name.starts_with("theta");
        if angle && x.given && x.value.abs() > 7.0 && !t.document().is_survey() {
            let message = format!("`{}` is more than a turn: is it meant in degrees?", p.name);
            let help = "bare numbers are radians; degrees have their unit: \"180 deg\"";
            t.document().report_warning(Diagnostic::warning(message).at(x.place.clone(), "").help(help));
        }
    }
    Ok(Row { name: named, values, cutoff: cutoff? })
}

fn forces(root: &Section) -> Result<Forces, Reported> {
    let t = root.section_or_empty("forces", "how forces are computed")?;
    let evaluator = t
        .read(
            "evaluator",
            one_of([("fused", Kind::Fused), ("tape", Kind::Tape)]),
            "fused: each interaction differentiated by itself; tape: all on one tape",
        )
        .or(Kind::Fused);
    let skin = t
        .read(
            "skin",
            quantity(Dimension::LENGTH).range(Range::NonNegative),
            "how far lists reach beyond the cut-off",
        )
        .optional();
    let reproducible = t
        .read(
            "reproducible",
            boolean(),
            "whether sums are rounded to a grid, so that the order of neighbours does not matter: forces to steps of 2^-26 \
             kJ/mol/nm, those of pairs in single precision of 2^-15, energies of 2^-36 kJ/mol (2^-30, 2^-17 and 2^-44 in \
             reduced units)",
        )
        .or(true);
    let precision = t
        .read(
            "precision",
            one_of([("double", Precision::Double), ("mixed", Precision::Mixed)]),
            "mixed: distances, energies and forces of pairs in single precision, all else in double; about twice as \
             fast, and good to about 1e-6 of the forces",
        )
        .or(Precision::Double);
    let names = Isa::ALL.into_iter().map(|isa| (isa.name(), Some(isa)));
    let isa = t
        .read(
            "isa",
            one_of([("best", None)].into_iter().chain(names)),
            "instructions that the evaluator `fused` runs on; with the same ones, results are the same on every machine",
        )
        .or(None);
    t.finish();
    let (evaluator, reproducible, precision) = (*evaluator?, *reproducible?, *precision?);
    Ok(Forces { evaluator, isa: isa?, reproducible, precision, skin: skin? })
}

fn stages(root: &Section, units: UnitSystem) -> Result<Vec<Stage>, Reported> {
    let mut stages = Vec::new();
    for t in root.sections("stage", "what is done, one after the other")? {
        stages.push(stage(&t, units));
        t.finish();
    }
    stages.into_iter().collect()
}

fn stage(t: &Section, units: UnitSystem) -> Result<Stage, Reported> {
    let name = t.read("name", text(), "of the stage").optional();
    let integrators = [
        ("velocity-verlet", "constant energy"),
        ("langevin", "constant temperature, by friction and noise (BAOAB)"),
    ];
    let minimizers = [
        ("l-bfgs", "down the energy by quasi-Newton steps"),
        ("fire", "down the energy by damped dynamics (FIRE 2)"),
    ];
    let time = || quantity(Dimension::TIME).range(Range::Positive);
    let sensible = |x: Located<f64>| match x.value {
        long if units == UnitSystem::Lj || long <= 0.1 || t.document().is_survey() => Ok(x),
        long if long > 1000.0 => {
            let message = "a time step of more than a nanosecond: is the unit right?";
            let help = "atoms are followed in steps of about \"1 fs\"";
            Err(t.report(Diagnostic::error(message).at(x.place.clone(), "").help(help)))
        }
        long => {
            let message = format!("a time step of {} fs is long for atoms", long * 1000.0);
            let help = "a bare number is in the units of the file; femtoseconds have their unit: \"1 fs\"";
            t.document().report_warning(Diagnostic::warning(message).at(x.place.clone(), "").help(help));
            Ok(x)
        }
    };
    let integrator = t.variant("integrator", &integrators, "how time advances").optional(|name, t| {
        let time_step = t.read("time-step", time(), "of one step").required().and_then(sensible);
        if name == "velocity-verlet" {
            return Ok(Task::VelocityVerlet { time_step: *time_step? });
        }
        let temperature = quantity(Dimension::TEMPERATURE).range(Range::NonNegative);
        let temperature = t.read("temperature", temperature, "of the bath").required();
        let friction = quantity(Dimension::TIME.powi(-1)).range(Range::NonNegative);
        let friction = t.read("friction", friction, "how fast velocities forget").required();
        Ok(Task::Langevin { time_step: *time_step?, temperature: *temperature?, friction: *friction? })
    });
    let reduced = units == UnitSystem::Lj;
    let minimizer = t.variant("minimizer", &minimizers, "how the energy is lowered").optional(|name, t| {
        let force = quantity(Dimension::FORCE).range(Range::Positive);
        let force = t.read("force", force, "stop when no component of a force is larger").or(if reduced {
            1e-3
        } else {
            1.0
        });
        let length = quantity(Dimension::LENGTH).range(Range::Positive);
        let longest =
            t.read("longest-move", length, "of an atom in one step").or(if reduced { 0.1 } else { 0.02 });
        if name == "fire" {
            let time_step =
                t.read("time-step", time(), "of the damped dynamics").or(if reduced { 0.005 } else { 0.002 });
            let time_step = time_step.and_then(sensible);
            return Ok(Task::Fire { force: *force?, longest_move: *longest?, time_step: *time_step? });
        }
        let memory =
            t.read("memory", integer().at_least(1).at_most(1000), "how many steps are remembered").or(10);
        Ok(Task::Lbfgs { force: *force?, longest_move: *longest?, memory: *memory? as usize })
    });
    let steps = t.read("steps", integer().at_least(0), "how many; the most, when minimising").required();
    let temperature = quantity(Dimension::TEMPERATURE).range(Range::NonNegative);
    let velocities = t
        .read("velocities", temperature, "draw new velocities, at exactly this temperature, before the stage")
        .optional();
    let remove_drift = t
        .read(
            "remove-drift",
            boolean(),
            "take out the motion of the centre of mass; left out: with new velocities",
        )
        .optional();
    let energies =
        t.read("energies", integer().at_least(1), "steps between rows, instead of the output's").optional();
    let frames = t
        .read(
            "frames",
            integer().at_least(0),
            "steps between frames, instead of each trajectory's; 0 for none",
        )
        .optional();
    let place = t.place().clone();
    let (integrator, minimizer) = (integrator?, minimizer?);
    let task = match (integrator, minimizer) {
        (Some(task), None) | (None, Some(task)) => task,
        (Some(a), Some(b)) => {
            if t.document().is_survey() {
                a
            } else {
                let message = "a stage either integrates or minimises";
                return Err(t.report(
                    Diagnostic::error(message)
                        .at(b.place, "a minimizer")
                        .also(a.place, "and an integrator")
                        .help("keep one of them, or make two stages of it"),
                ));
            }
        }
        (None, None) => {
            let message = "a stage needs `integrator` or `minimizer`";
            let help = "write `[stage.integrator.velocity-verlet]` with `time-step = \"1 fs\"`";
            return Err(t.report(Diagnostic::error(message).at(place, "in this stage").help(help)));
        }
    };
    Ok(Stage {
        name: name?,
        steps: steps?,
        task,
        velocities: velocities?,
        remove_drift: remove_drift?,
        energies: energies?,
        frames: frames?,
    })
}

fn output(root: &Section) -> Result<Output, Reported> {
    let t = root.section_or_empty("output", "what is written into the run's folder")?;
    let energies = t.read("energies", integer().at_least(1), "steps between rows of energies.csv").or(100);
    let restart = t.read("restart", integer().at_least(1), "steps between restart files").or(10_000);
    let mut trajectories = Vec::new();
    for t in t.sections("trajectory", "files of frames")? {
        let file =
            t.read("file", text(), "name, ending in .xyz, .xtc or .gro").or("trajectory.xyz".to_owned());
        let every = t.read("every", integer().at_least(1), "steps between frames").or(1000);
        let all = || vec![t.located("all".to_owned())];
        let atoms = t
            .read("atoms", names(), "which: \"all\", types, molecules, or numbers such as \"1-10\"")
            .or(all());
        let unwrapped = t.read("unwrapped", boolean(), "follow atoms through periodic images").or(false);
        let velocities = t.read("velocities", boolean(), "write velocities too").or(false);
        let decimals = t
            .read(
                "decimals",
                integer().at_least(0).at_most(15),
                "digits after the point, in nm or Å as the format has it",
            )
            .optional();
        t.finish();
        trajectories.push((|| {
            Ok(Trajectory {
                file: file?,
                every: *every?,
                atoms: atoms?,
                unwrapped: *unwrapped?,
                velocities: velocities?,
                decimals: decimals?,
            })
        })());
    }
    t.finish();
    Ok(Output {
        energies: *energies?,
        restart: *restart?,
        trajectories: trajectories.into_iter().collect::<Result<_, _>>()?,
    })
}
