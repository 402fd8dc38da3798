//! `md explain`

use super::{Failure, Outcome, say, table};
use crate::catalog::{BARE_CHARGES, Builder, Catalog, Ending, EnergyKind, Listed, ending_charges};
use crate::input::keys;
use crate::input::reader::{KeyDoc, Presence};
use crate::input::report::did_you_mean;
use crate::plot::scale::significant;
use crate::units::{
    KnownUnit, REDUCED_UNITS, UNITS, UnitSystem, describe, format_quantity, parse_quantity, symbol,
};
use clap::Args;
use potentials::param::{Dimension, Mixing, Param, Source};
use potentials::{Factor, Origin};
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Explain {
    /// `potentials`, `units`, `input`, or the name of a potential, a unit or a key
    name: Option<String>,
}

const OVERVIEW: &str = "\
md explain potentials   every energy by kind and name
md explain units        the units that quantities may be written in
md explain input        every key of an input file
md explain NAME         a potential (lennard-jones), a way to end it (switch), a unit (kcal), or a key (stage.steps)
";

impl Explain {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let text = match self.name.as_deref() {
            None => OVERVIEW.to_owned(),
            Some("potentials") => potentials(catalog),
            Some("units") => units(),
            Some("input") => input(&keys_of_any(catalog)),
            Some(name) => named(catalog, name)?,
        };
        say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn potentials(catalog: &Catalog) -> String {
    let mut text = String::new();
    for kind in EnergyKind::ALL {
        let of_kind = catalog.entries().iter().filter(|e| e.kind == kind);
        let rows: Vec<_> =
            of_kind.map(|e| vec![e.about.name.to_owned(), e.about.summary.to_owned()]).collect();
        if !rows.is_empty() {
            let _ = write!(text, "[{}.NAME]\n{}\n", kind.key(), table(&rows, &[]));
        }
    }
    let pairs = keys_of_any(catalog).into_iter().filter(|k| k.path.starts_with("pair.NAME."));
    let pairs: Vec<_> = pairs.map(|k| vec![k.path.replace("pair.NAME.", ""), k.doc]).collect();
    let _ = write!(
        text,
        "keys of pair energies beside their parameters (`md explain KEY` says more)\n{}\n",
        table(&pairs, &[])
    );
    let endings: Vec<_> =
        Ending::ALL.map(|ending| vec![ending.name().into(), ending.continuous().into()]).into();
    let _ = write!(text, "ending = …, at the cut-off\n{}", table(&endings, &[]));
    text
}

fn unit_rows(units: &[KnownUnit]) -> String {
    let row = |u: &KnownUnit| {
        let prefixes = if u.prefixes { "with prefixes" } else { "" };
        vec![u.names.join(", "), describe(u.dimension), u.doc.to_owned(), prefixes.to_owned()]
    };
    table(&units.iter().map(row).collect::<Vec<_>>(), &[])
}

fn units() -> String {
    let mut text = String::from(
        "A quantity is a text with its unit: \"0.5 fs\", \"1 kcal/mol/A^2\". Units are multiplied by a blank, `*` or \
         `·`,\ndivided by `/`, and raised by `^`. A bare number is in the units of the file:\n\n",
    );
    for (name, system) in UnitSystem::ALL {
        let bases = [
            Dimension::LENGTH,
            Dimension::TIME,
            Dimension::MASS,
            Dimension::ENERGY,
            Dimension::CHARGE,
            Dimension::TEMPERATURE,
            Dimension::PRESSURE,
        ];
        let _ = writeln!(
            text,
            "  units = \"{name}\"{}{}",
            " ".repeat(8 - name.len()),
            bases.map(|d| symbol(d, system)).join(", ")
        );
    }
    let _ = write!(
        text,
        "\n{}  prefixes: f p n u(µ) m c d k M G T\n\nIn reduced units (units = \"lj\"):\n{}",
        unit_rows(UNITS),
        unit_rows(REDUCED_UNITS)
    );
    text
}

fn key_text(key: &KeyDoc) -> String {
    let presence = match &key.presence {
        Presence::Required => "required".to_owned(),
        Presence::Optional => "optional".to_owned(),
        Presence::Default(value) => format!("default: {value}"),
    };
    format!("{}\n    {} ({presence})\n    {}\n", key.path, key.kind, key.doc)
}

/// Whether a key belongs to a potential, which explains it better.
fn of_energy(path: &str) -> bool {
    EnergyKind::ALL.iter().any(|kind| path.strip_prefix(kind.key()).is_some_and(|rest| rest.starts_with('.')))
}

/// The keys of an input with those of potentials as `pair.NAME.cutoff`, once for all; without parameters.
fn keys_of_any(catalog: &Catalog) -> Vec<KeyDoc> {
    let mut found: Vec<KeyDoc> = Vec::new();
    for mut key in keys(catalog) {
        let entry = catalog.entries().iter().find(|e| {
            let table = format!("{}.{}", e.kind.key(), e.about.name);
            key.path.strip_prefix(&table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        if let Some(entry) = entry {
            let last = key.path.rsplit('.').next().unwrap_or_default();
            let parameter = |p: &Param| p.source != Source::Cutoff && p.name == last;
            if entry.about.params.iter().any(parameter) {
                continue;
            }
            key.path = key.path.replacen(entry.about.name, "NAME", 1);
            if found.iter().any(|k| k.path == key.path) {
                continue;
            }
        }
        found.push(key);
    }
    found
}

fn input(keys: &[KeyDoc]) -> String {
    let mut text = String::from(
        "Every key of an input but the parameters of potentials (`md explain potentials` lists these):\n\n",
    );
    keys.iter().for_each(|k| text += &key_text(k));
    text
}

/// A key as people ask for it: without brackets.
fn plain(path: &str) -> String {
    path.replace("[]", "").replace(['[', ']'], "").to_lowercase()
}

fn named(catalog: &Catalog, name: &str) -> Result<String, Failure> {
    let mut parts = Vec::new();
    for entry in catalog.entries() {
        let path = format!("{}.{}", entry.kind.key(), entry.about.name);
        if entry.about.name == name || path == name {
            parts.push(potential(entry, catalog));
        }
    }
    if let Some(kind) = EnergyKind::ALL.into_iter().find(|kind| kind.key() == name) {
        let of_kind = catalog.entries().iter().filter(|e| e.kind == kind);
        let rows: Vec<_> =
            of_kind.map(|e| vec![e.about.name.to_owned(), e.about.summary.to_owned()]).collect();
        let mut part = format!("[{name}.NAME]\n{}", table(&rows, &[]));
        let inside = format!("{name}.NAME.");
        let keys: String =
            keys_of_any(catalog).iter().filter(|k| k.path.starts_with(&inside)).map(key_text).collect();
        if !keys.is_empty() {
            part += &format!("\nbeside the parameters:\n\n{keys}");
        }
        parts.push(part);
    }
    for ending in Ending::ALL.iter().filter(|ending| ending.name() == name) {
        parts.push(format!("ending = \"{name}\"\n  at the cut-off: {}\n", ending.continuous()));
    }
    let (any, all) = (keys_of_any(catalog), keys(catalog));
    let wanted = plain(name);
    // (what holds for any potential once, and for each by its full name)
    let full = all.iter().filter(|k| of_energy(&k.path) && name.contains('.'));
    let matches: Vec<&KeyDoc> = any
        .iter()
        .chain(full)
        .filter(|k| {
            let path = plain(&k.path);
            let inside =
                path.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            inside || path.rsplit('.').next() == Some(&wanted)
        })
        .collect();
    if !matches.is_empty() && parts.is_empty() {
        parts.push(matches.into_iter().map(key_text).collect());
    }
    let with_prefix = |u: &KnownUnit| {
        let ends = u.names.first().and_then(|first| name.strip_suffix(first));
        u.prefixes
            && ends.is_some_and(|p| {
                ["f", "p", "n", "u", "µ", "μ", "m", "c", "d", "k", "M", "G", "T"].contains(&p)
            })
    };
    // a product of units, as in an input
    if parts.is_empty()
        && name.contains(['/', '^', '*', '·'])
        && let Ok((value, dimension)) = parse_quantity(&format!("1 {name}"), UnitSystem::Md)
    {
        let md = format_quantity(value, dimension, UnitSystem::Md);
        parts.push(format!("1 {name}, {}, is {md}\n", describe(dimension)));
    }
    for unit in UNITS.iter().chain(REDUCED_UNITS) {
        if unit.names.contains(&name) || with_prefix(unit) {
            parts.push(unit_rows(&[*unit]));
            // (energies in bulk units are those of a mole)
            let amounts = [name.to_owned(), format!("{name}/mol")];
            let size = |name: &String| {
                let (value, dimension) = parse_quantity(&format!("1 {name}"), UnitSystem::Md).ok()?;
                Some(format!("1 {name} is {}\n", format_quantity(value, dimension, UnitSystem::Md)))
            };
            if !REDUCED_UNITS.iter().any(|u| u.names == unit.names) {
                parts.extend(amounts.iter().find_map(size));
            }
        }
    }
    if !parts.is_empty() {
        return Ok(parts.join("\n"));
    }
    let topics = ["potentials", "units", "input"];
    let potentials = catalog.entries().iter().map(|e| e.about.name);
    let endings = Ending::ALL.map(|e| e.name());
    let paths: Vec<String> = any.iter().map(|k| plain(&k.path)).collect();
    let last = |path: &'_ str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let lasts: Vec<String> = paths.iter().map(|p| last(p)).collect();
    let known = topics.into_iter().chain(potentials).chain(endings);
    let guess = did_you_mean(name, known)
        .or_else(|| did_you_mean(name, paths.iter().chain(&lasts).map(String::as_str)));
    let help = match guess {
        Some(guess) => format!("did you mean `{guess}`?"),
        None => {
            "`md explain potentials`, `md explain units` and `md explain input` list what there is".to_owned()
        }
    };
    Err(Failure::wrong(format!("there is nothing called `{name}`\nhelp: {help}")))
}

fn potential(entry: &Listed, catalog: &Catalog) -> String {
    let about = entry.about;
    let mut text = format!("{} ({})\n  {}\n\n", about.name, kind_in_words(entry), about.summary);
    about.formula.lines().for_each(|line| _ = writeln!(text, "    {line}"));
    match entry.builder {
        Builder::Pair { factor: Factor::Charge, .. } => {
            text += "\n  multiplied by Coulomb's constant and both charges\n";
        }
        Builder::Field { factor: Factor::Charge, .. } => text += "\n  multiplied by the atom's charge\n",
        _ => {}
    }
    if let Builder::Field { origin, .. } = entry.builder {
        text += match origin {
            Origin::Space => "\n  positions are those in space, followed through periodic images\n",
            Origin::Anchor => "\n  positions are measured from where each atom starts\n",
        };
    }
    if let Builder::Pair { ends_at_cutoff: true, .. } = entry.builder {
        text += "\n  it ends at the cut-off by its own formula\n";
    }
    if let Builder::Pair { leaves_remainder: true, .. } = entry.builder {
        text += "\n  excluded pairs keep what the formula leaves of them, and each atom has its own part, as in GROMACS;\n  \
                 `excluded-remainder = false` leaves both out, as OpenMM does\n";
    }
    if entry.about.name == BARE_CHARGES {
        let ended = ending_charges(catalog).join("` or `");
        let _ = write!(
            text,
            "\n  for open systems without a cut-off; in a periodic system, where it must be cut, take `{ended}`:\n  \
             charges reach far, and a cut or a switch makes large forces where there should be next to none\n"
        );
    }
    if !about.params.is_empty() {
        let row = |p: &Param| {
            let unit = match p.dimension {
                Dimension::NONE => "–".to_owned(),
                d => symbol(d, UnitSystem::Md),
            };
            let from = match p.source {
                Source::Input => String::new(),
                Source::Default(x) => format!("default {}", format_quantity(x, p.dimension, UnitSystem::Md)),
                Source::Cutoff => "the cut-off".to_owned(),
            };
            let mixing = match p.mixing {
                Mixing::Explicit => "",
                Mixing::Size => "mixes as a size",
                Mixing::Depth => "mixes as a depth",
            };
            let doc =
                [p.doc, &from, mixing].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("; ");
            vec![p.name.to_owned(), unit, p.range.to_string(), doc]
        };
        let _ = write!(text, "\n{}", table(&about.params.iter().map(row).collect::<Vec<_>>(), &[]));
    }
    let _ = write!(text, "\n  source: {}\n\n", about.source);
    if let Builder::Neural { .. } = entry.builder {
        text += "  keys: in `md explain input`; files and formulas: docs/neural.md\n\n";
    }
    if let Builder::Pair { .. } = entry.builder {
        text += "  keys of every pair energy: `md explain pair`\n\n";
    }
    for line in sample(entry).lines() {
        let _ = if line.is_empty() { writeln!(text) } else { writeln!(text, "    {line}") };
    }
    text
}

fn kind_in_words(entry: &Listed) -> &'static str {
    match (entry.kind, entry.builder) {
        (EnergyKind::Pair, _) => "a pair energy",
        (EnergyKind::Bond, _) => "an energy of bonds",
        (EnergyKind::Angle, _) => "an energy of angles",
        (EnergyKind::Dihedral, _) => "an energy of dihedrals",
        (EnergyKind::Improper, _) => "an energy of impropers",
        (EnergyKind::Field, _) => "an energy of single atoms",
        (EnergyKind::ManyBody, Builder::Embedding { .. }) => "a many-body energy: density and embedding",
        (EnergyKind::ManyBody, Builder::Neural { .. }) => "a many-body energy: neural networks",
        (EnergyKind::ManyBody, _) => "a many-body energy of neighbours and angles",
        (EnergyKind::Global, _) => "an energy of a group as a whole",
    }
}

/// A value that a parameter may have, as TOML.
fn value(p: &Param) -> String {
    let x = p.sample();
    let angle = ["theta", "phi"].iter().any(|name| p.name.starts_with(name));
    match p.dimension {
        Dimension::NONE if angle => format!("\"{} deg\"", significant(x.to_degrees(), 4)),
        Dimension::NONE => format!("{}", (x * 1e6).round() / 1e6),
        d => format!("\"{}\"", format_quantity(x, d, UnitSystem::Md)),
    }
}

/// An example: what this energy looks like in an input with an atom type A.
fn sample(entry: &Listed) -> String {
    let about = entry.about;
    let path = format!("{}.{}", entry.kind.key(), about.name);
    // those that must be given; where none must, those of which an example says something
    let must = |p: &&Param| p.source == Source::Input;
    let given: Vec<&Param> = match about.params.iter().any(|p| must(&p)) {
        true => about.params.iter().filter(must).collect(),
        false => about.params.iter().filter(|p| p.example.is_some()).collect(),
    };
    let list: Vec<String> = given.into_iter().map(|p| format!("{} = {}", p.name, value(p))).collect();
    let row = format!("{{ {} }}", list.join(", "));
    let lines = list.iter().map(|l| format!("{l}\n")).collect::<String>();
    let tables = || match about.params.iter().any(|p| p.mixing != Mixing::Explicit) {
        true => format!("[{path}.types]\nA = {row}\n"),
        false => format!("[{path}.pairs]\nA-A = {row}\n"),
    };
    match entry.builder {
        Builder::Pair { factor, ends_at_cutoff, .. } => {
            let ending = match (ends_at_cutoff, about.name) {
                (true, _) => "",
                (false, BARE_CHARGES) => "ending = \"force-shift\"\n",
                _ => "ending = \"switch\"\n",
            };
            let rest = if factor == Factor::Charge { lines } else { format!("\n{}", tables()) };
            format!("[{path}]\ncutoff = \"9 A\"\n{ending}{rest}")
        }
        Builder::Embedding { .. } => {
            format!("[{path}]\ncutoff = \"9 A\"\nending = \"switch\"\n\n{}", tables())
        }
        Builder::Tuple { atoms, .. } => format!("[{path}]\n{} = {row}\n", vec!["A"; atoms].join("-")),
        Builder::Triples { .. } => format!("[{path}.A-A-A]\n{lines}"),
        Builder::Neural { .. } => format!("[{path}]\ncutoff = \"6 A\"\n"),
        Builder::Field { .. } | Builder::Global { .. } => format!("[{path}]\natoms = [\"A\"]\n{lines}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::plan::Plan;
    use crate::input::reader::Document;

    #[test]
    fn every_sample_is_an_input() {
        let catalog = crate::catalog();
        for entry in catalog.entries() {
            let text = format!(
                "[system]\n[system.lattice]\nkind = \"sc\"\ntypes = [\"A\"]\nconstant = \"9 A\"\nrepeat = [4, 4, 4]\n\
                 [atoms.A]\nmass = \"15 u\"\ncharge = \"1 e\"\nelement = \"O\"\n\n{}",
                sample(entry)
            );
            let document =
                Document::parse("sample.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
            if let Err(found) = Plan::of(&document, &catalog) {
                panic!("{}\n{text}", found.render(false));
            }
        }
    }

    #[test]
    fn names_are_found() {
        let catalog = crate::catalog();
        let text = |name: &str| named(&catalog, name).map_err(|f| f.message);
        let lj = text("lennard-jones").unwrap();
        assert!(
            lj.contains("epsilon") && lj.contains("kJ/mol") && lj.contains("[pair.lennard-jones.types]"),
            "{lj}"
        );
        let harmonic = text("harmonic").unwrap();
        assert!(harmonic.contains("[bond.harmonic]") && harmonic.contains("[angle.harmonic]"));
        assert!(!text("bond.harmonic").unwrap().contains("[angle.harmonic]"));
        assert!(text("stage.steps").unwrap().contains("how many"));
        assert!(text("stage").unwrap().contains("remove-drift"));
        assert!(text("skin").unwrap().contains("forces.skin"));
        let kcal = text("kcal").unwrap();
        assert!(kcal.contains("calorie") && kcal.contains("1 kcal/mol is 4.184 kJ/mol"), "{kcal}");
        assert!(text("kcal/mol").unwrap().contains("energy, is 4.184 kJ/mol"));
        for key in ["bonded-factors", "mixing", "inner", "ending", "excluded-remainder", "none", "cutoff"] {
            assert!(text(key).unwrap().contains("pair.NAME."), "{key}");
            assert!(potentials(&catalog).contains(key), "{key}");
        }
        assert!(text("pair.lennard-jones.types").unwrap().contains("depth"));
        assert!(text("coulomb").unwrap().contains("`reaction-field` or `damped-shifted-force`"));
        assert!(text("reaction-field").unwrap().contains("excluded-remainder = false"));
        // defaults in units, and those of reduced units
        let longest = text("longest-move").unwrap();
        assert!(longest.contains("default: \"0.02 nm\"; in reduced units: 0.1"), "{longest}");
        assert!(!text("system").unwrap().contains("a number such as"), "lengths have their unit");
        assert!(text("switch").unwrap().contains("cut-off"));
        assert!(text("lenard-jones").unwrap_err().contains("did you mean `lennard-jones`?"));
        assert!(text("unitts").unwrap_err().contains("did you mean `units`?"));
        assert!(text("qqqq").unwrap_err().contains("md explain potentials"));
        assert!(potentials(&catalog).contains("stillinger-weber"));
        assert!(input(&keys_of_any(&catalog)).contains("output"));
        assert!(units().contains("hartree"));
    }
}
