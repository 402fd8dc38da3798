//! `[gradient]`: what `md gradient` differentiates, and how.

use super::build::Model;
use super::reader::{
    Located, Reported, Section, boolean, integer, list, one_of, placed, quantity, text, word,
};
use super::report::{Diagnostic, Place};
use crate::adjoint::{Average, Observable, When};
use crate::formula::{Formula, FormulaError, Input, Program};
use crate::system::Atoms;
use potentials::param::{Dimension, Range};

/// What `md gradient` does.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient {
    /// The averages, by name.
    pub averages: Vec<(String, Average)>,
    /// The number that is made of them, as written.
    pub of: String,
    /// The same, of averages in their order.
    pub program: Program,
    /// How the derivative is found.
    pub estimator: Estimator,
    /// Where states come from on the way back.
    pub memory: Keep,
    /// Whether snapshots are kept on disk.
    pub disk: bool,
    /// Whether derivatives in the parameters of the energy are wanted.
    pub parameters: bool,
}

/// How a derivative is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Backward through the run.
    Pathwise {
        /// After so many steps the adjoint is dropped.
        horizon: Option<usize>,
    },
    /// By covariances in the canonical ensemble.
    Ensemble,
}

/// Which states are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All.
    All,
    /// As many as there is room for in so many bytes.
    Bytes(u64),
    /// None: steps are taken backward.
    Reversible,
}

/// `[gradient]` as written.
pub(super) struct Raw {
    of: Option<Located<String>>,
    averages: Vec<(Located<String>, Seen)>,
    estimator: Estimator,
    memory: Keep,
    disk: bool,
    parameters: bool,
    place: Place,
}

struct Seen {
    of: Of,
    when: When,
}

type Selection = Located<Vec<Located<String>>>;

/// An observable as written.
pub(super) enum Of {
    Plain(Observable),
    Atoms(Located<Vec<Located<i64>>>, usize),
    Component(Located<i64>, usize, bool),
    Displacement(Selection),
    Distribution { at: f64, width: f64, between: [Selection; 2] },
}

const OBSERVABLES: [(&str, &str); 12] = [
    ("potential", "the potential energy"),
    ("kinetic", "the kinetic energy"),
    ("total", "their sum"),
    ("temperature", "of the kinetic energy"),
    ("pressure", "of virial and kinetic energy"),
    ("distance", "of two atoms, nearest images"),
    ("angle", "at the second of three atoms, in radians"),
    ("dihedral", "of four atoms in a row, in radians"),
    ("position", "a coordinate of an atom, followed through periodic images"),
    ("velocity", "a component of the velocity of an atom"),
    ("mean-square-displacement", "from where atoms were at the beginning of the stage"),
    ("radial-distribution", "g(r) at a distance, in a bin with soft edges"),
];

/// Those that are functions of the configuration.
const CONFIGURATIONAL: [&str; 6] =
    ["potential", "pressure", "distance", "angle", "dihedral", "radial-distribution"];

/// Reads the section, if there is one.
pub(super) fn read(root: &Section) -> Result<Option<Raw>, Reported> {
    let doc = "derivatives of what comes out of the last stage: see `md gradient`";
    let Some(t) = root.section("gradient", doc)? else { return Ok(None) };
    let of = t
        .read("of", text(), "what is differentiated: a formula of the averages, such as \"(t - 94)^2 + g\"; left out: the only one")
        .optional();
    let mut averages = Vec::new();
    let named = t.named(
        "averages",
        None,
        "numbers that the last stage has, by name: means over the states that are seen",
    )?;
    for (name, t) in named {
        let seen = average(&t);
        t.finish();
        averages.push(seen.map(|seen| (name, seen)));
    }
    let averages = averages.into_iter().collect::<Result<Vec<_>, _>>();
    let memory = t.read(
        "memory",
        text(),
        "states kept for the way back: \"all\", as many as there is room for in \"64 MB\", or none, where steps are taken backward: \
         \"reversible\"",
    );
    let memory = memory.or("all".to_owned()).and_then(|m| keep(&t, &m));
    let disk = t.read("disk", boolean(), "whether these are kept in files").or(false);
    let estimators = [("pathwise", false), ("ensemble", true)];
    let ensemble = t
        .read(
            "estimator",
            one_of(estimators),
            "backward through the run, or by covariances in the canonical ensemble (derivatives of equilibrium averages, which \
             need the langevin integrator)",
        )
        .or(false);
    let horizon = t
        .read(
            "horizon",
            integer().at_least(1),
            "steps after which the way back forgets what it knows: biased, but of bounded growth; left out: never",
        )
        .optional();
    let parameters = t
        .read("parameters", boolean(), "whether derivatives in the parameters of the energy are wanted")
        .or(true);
    let place = t.place().clone();
    t.finish();
    let (ensemble, horizon) = (*ensemble?, horizon?);
    if let (true, Some(horizon)) = (ensemble, &horizon) {
        let diagnostic = Diagnostic::error("an ensemble has no way back to forget")
            .at(horizon.place.clone(), "")
            .help("leave `horizon` out, or take the estimator \"pathwise\"");
        return Err(root.report(diagnostic));
    }
    let estimator = match ensemble {
        true => Estimator::Ensemble,
        false => Estimator::Pathwise { horizon: horizon.map(|h| h.value as usize) },
    };
    Ok(Some(Raw {
        of: of?,
        averages: averages?,
        estimator,
        memory: memory?,
        disk: *disk?,
        parameters: *parameters?,
        place,
    }))
}

/// "all", "reversible" or a number of bytes.
fn keep(t: &Section, written: &Located<String>) -> Result<Keep, Reported> {
    let text = written.value.trim();
    let bytes = || {
        let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale = match unit.trim() {
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "GiB" => 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        let bytes = number.trim().parse::<f64>().ok()? * scale;
        (1.0..1e18).contains(&bytes).then_some(Keep::Bytes(bytes as u64))
    };
    match text {
        "all" => Ok(Keep::All),
        "reversible" => Ok(Keep::Reversible),
        _ => bytes().ok_or_else(|| {
            let message = format!("`{text}` is no memory");
            let help = "there are \"all\", \"reversible\" and amounts such as \"64 MB\" or \"2 GiB\"";
            t.report(Diagnostic::error(message).at(written.place.clone(), "").help(help))
        }),
    }
}

/// Reads `of`: any observable, or only what configurations have.
pub(super) fn observable(t: &Section, any: bool) -> Result<Located<Of>, Reported> {
    let choice = |(name, _): &&(&str, &str)| any || CONFIGURATIONAL.contains(name);
    let options: Vec<(&str, &str)> = OBSERVABLES.iter().filter(choice).copied().collect();
    let of = t.variant("of", &options, "what it is the mean of").optional(|name, t| {
        let atoms = |count: usize| {
            t.read("atoms", list(placed(integer().at_least(1))).exactly(count), "their numbers").required()
        };
        let selection = |key, doc| t.read(key, list(placed(text())), doc);
        Ok(match name {
            "potential" => Of::Plain(Observable::Potential),
            "kinetic" => Of::Plain(Observable::Kinetic),
            "total" => Of::Plain(Observable::Total),
            "temperature" => Of::Plain(Observable::Temperature),
            "pressure" => Of::Plain(Observable::Pressure),
            "distance" => Of::Atoms(atoms(2)?, 2),
            "angle" => Of::Atoms(atoms(3)?, 3),
            "dihedral" => Of::Atoms(atoms(4)?, 4),
            "position" | "velocity" => {
                let atom = t.read("atom", integer().at_least(1), "its number").required();
                let axis = t.read("axis", word(["x", "y", "z"]), "along which axis").required();
                let axis = axis?.value.bytes().next().map_or(0, |c| usize::from(c - b'x'));
                Of::Component(atom?, axis, name == "velocity")
            }
            "mean-square-displacement" => {
                let all = vec![t.located("all".to_owned())];
                Of::Displacement(
                    selection(
                        "atoms",
                        "of which atoms: \"all\", types, molecules, or numbers such as \"1-10\"",
                    )
                    .or(all)?,
                )
            }
            _ => {
                let length = || quantity(Dimension::LENGTH).range(Range::Positive);
                let at = t.read("at", length(), "r").required();
                let width = t
                    .read("width", length(), "standard deviation of the bin, which is a Gaussian")
                    .required();
                let all = || vec![t.located("all".to_owned())];
                let first = selection("from", "atoms that distances are measured from").or(all());
                let second = selection("to", "atoms that they are measured to").or(all());
                Of::Distribution { at: *at?, width: *width?, between: [first?, second?] }
            }
        })
    });
    let missing = || {
        let help = "such as `of.potential = {}`, or `of.distance = { atoms = [1, 2] }`";
        t.report(
            Diagnostic::error("it is not said what this is the mean of").at(t.place().clone(), "").help(help),
        )
    };
    of?.ok_or_else(missing)
}

fn average(t: &Section) -> Result<Seen, Reported> {
    let of = observable(t, true);
    let from = t.read("from", integer().at_least(0), "the first state that is seen, in steps").or(0);
    let every = t
        .read(
            "every",
            integer().at_least(1),
            "steps from one to the next; left out: only the last state is seen",
        )
        .optional();
    let (from, every) = (*from?, every?);
    let when = match every {
        None => When::End,
        Some(every) => When::Every { from: from as usize, every: every.value as usize },
    };
    Ok(Seen { of: of?.value, when })
}

impl Of {
    /// What it means for the atoms there are.
    pub fn meant(&self, model: &Model) -> Result<Observable, Reported> {
        let document = model.document;
        let atoms: &Atoms = &model.atoms;
        let wrong = |message: String, place: &Place, help: &str| {
            document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
        };
        let number = |k: &Located<i64>| -> Result<usize, Reported> {
            let index = k.value as usize - 1;
            match index < atoms.len() {
                true => Ok(index),
                false => {
                    let message = format!("there is no atom {}", k.value);
                    Err(wrong(message, &k.place, &format!("atoms have the numbers 1 to {}", atoms.len())))
                }
            }
        };
        Ok(match self {
            Of::Plain(of) => of.clone(),
            Of::Atoms(numbers, count) => {
                let at = numbers.value.iter().map(number).collect::<Result<Vec<_>, _>>()?;
                if let Some(k) = (1..at.len()).find(|&k| at[..k].contains(&at[k])) {
                    let message = format!("atom {} stands here twice", at[k] + 1);
                    return Err(wrong(message, &numbers.value[k].place, "these are different atoms"));
                }
                match count {
                    2 => Observable::Distance([at[0], at[1]]),
                    3 => Observable::Angle([at[0], at[1], at[2]]),
                    _ => Observable::Dihedral([at[0], at[1], at[2], at[3]]),
                }
            }
            Of::Component(atom, axis, true) => Observable::Velocity(number(atom)?, *axis),
            Of::Component(atom, axis, false) => Observable::Position(number(atom)?, *axis),
            Of::Displacement(which) => {
                let chosen = model.select(which)?;
                if chosen.is_empty() {
                    return Err(wrong("there is no such atom".into(), &which.place, "name some"));
                }
                Observable::MeanSquareDisplacement(chosen)
            }
            Of::Distribution { at, width, between } => {
                let set = |which: &Selection| -> Result<Vec<bool>, Reported> {
                    let mut set = vec![false; atoms.len()];
                    model.select(which)?.into_iter().for_each(|i| set[i as usize] = true);
                    Ok(set)
                };
                Observable::RadialDistribution {
                    at: *at,
                    width: *width,
                    sets: [set(&between[0])?, set(&between[1])?],
                }
            }
        })
    }
}

impl Raw {
    /// What it means for the atoms there are.
    pub fn meant(self, model: &Model) -> Result<Gradient, Reported> {
        let wrong = |message: String, place: &Place, help: &str| {
            model.document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
        };
        let mut averages = Vec::new();
        for (name, seen) in self.averages {
            averages.push((name.value, Average { of: seen.of.meant(model)?, when: seen.when }));
        }
        let (formula, of, place) = match (self.of, &averages[..]) {
            (Some(of), _) => (Formula::parse(&of.value), of.value.clone(), of.place),
            (None, [(only, _)]) => (Formula::parse(only), only.clone(), self.place),
            (None, _) => {
                let message = "it is not said what is differentiated";
                let help =
                    "name some averages (`[gradient.averages]`), and give a formula of them: `of = \"…\"`";
                return Err(wrong(message.into(), &self.place, help));
            }
        };
        let inputs: Vec<Input> = averages.iter().map(|(name, _)| Input::Value(name)).collect();
        let compiled = formula.and_then(|formula| formula.compile(&inputs, &[]));
        let program = compiled.map_err(|error: FormulaError| {
            let help = error.help.clone().unwrap_or_else(|| {
                let names: Vec<&str> = averages.iter().map(|(name, _)| name.as_str()).collect();
                format!("the averages are {}", names.join(", "))
            });
            wrong(format!("in the formula `{of}`: {error}"), &place, &help)
        })?;
        Ok(Gradient {
            averages,
            of,
            program,
            estimator: self.estimator,
            memory: self.memory,
            disk: self.disk,
            parameters: self.parameters,
        })
    }
}
