//! `[fit]`: which numbers of an input are to be learned, and from what.

mod data;
mod targets;

use super::build::Model;
use super::plan::Task;
use super::raw::{Energy, Raw};
use super::reader::Document;
use super::reader::{
    Kind as _, Located, Reported, Section, array, boolean, float, integer, list, map, one_of, path, placed,
    quantity, text, toml_key,
};
use super::report::{Diagnostic, Place, did_you_mean};
use crate::catalog::{Builder, EnergyKind};
use crate::fit::optimize::Optimizer;
use crate::fit::{Free, Transform};
use crate::forces::{Charges, Term, parameter_names};
use crate::units::UnitSystem;
pub use data::{Data, Source};
use potentials::param::{Dimension, Param, Range};
use std::collections::HashMap;
use std::path::PathBuf;
pub use targets::{Ensemble, Targets, Trajectory};
use targets::{Number, number, value};

/// What `md fit` does.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The numbers that are fitted.
    pub free: Vec<Free>,
    /// Numbers that follow from them: their names, and of which free ones they are how many times the sum.
    pub ties: Vec<(String, Vec<(usize, f64)>)>,
    /// The data.
    pub data: Vec<Data>,
    /// What is known beside them.
    pub targets: Targets,
    /// Other inputs, whose `[fit]` tells what is known of their systems.
    pub with: Vec<PathBuf>,
    /// How the sum of squares is minimised.
    pub optimizer: Optimizer,
    /// In how many steps, at most.
    pub steps: u64,
    /// Configurations of a minibatch; none for all.
    pub batch: Option<usize>,
    /// What part of the configurations is held out.
    pub hold_out: f64,
    /// Whether standard errors are scaled by how well the data are met.
    pub scale_errors: bool,
    /// Whether there is a network that has never been trained: its functions are scaled by the data.
    pub new_network: bool,
    /// Where each number of the energy is written, and what it is: key of the input and dimension, by name.
    pub keys: HashMap<String, (String, Dimension)>,
}

/// `[fit]` as written.
pub struct Written {
    place: Place,
    parameters: Vec<Parameter>,
    data: Vec<Data>,
    targets: targets::Written,
    with: Vec<PathBuf>,
    optimizer: (Optimizer, u64, Option<usize>),
    hold_out: f64,
    scale_errors: bool,
}

/// `[[fit.parameter]]`
struct Parameter {
    name: Located<String>,
    bounds: Option<[Number; 2]>,
    prior: Option<[Number; 2]>,
    transform: Option<Located<bool>>,
    tied: Option<Located<Vec<(String, f64)>>>,
}

/// Reads the section, if there is one.
pub(super) fn read(root: &Section) -> Result<Option<Written>, Reported> {
    let Some(t) = root.section("fit", "numbers that are learned from data: see `md fit`")? else {
        return Ok(None);
    };
    let units = root.units();
    let optimizers = [
        ("levenberg-marquardt", "for a few parameters: quick, with all the data in each step"),
        ("l-bfgs", "for more parameters, with all the data in each step"),
        ("adam", "for many data, with some of them in each step"),
    ];
    let optimizer = t.variant("optimizer", &optimizers, "how the sum of squares is minimised").or(
        optimizers[0].0,
        |name, t| {
            let steps = |usual| t.read("steps", integer().at_least(0), "how many, at most").or(usual);
            if name == "adam" {
                let steps = steps(2000);
                let rate = || float().range(Range::Positive);
                let doc = "how far parameters go in the first steps, as a part of themselves";
                let first = t.read("rate", rate(), doc).or(0.01);
                let last = t.read("final-rate", rate(), "the same in the last steps").or(1e-4);
                let batch = t
                    .read("batch", integer().at_least(1), "configurations of a step; left out: all")
                    .optional();
                let steps = *steps? as u64;
                let batch = batch?.map(|b| b.value as usize);
                return Ok((Optimizer::adam([*first?, *last?], steps), steps, batch));
            }
            let usual = if name == "l-bfgs" { 1000 } else { 200 };
            let steps = steps(usual);
            let doc = "done when no parameter moves by more, as a part of itself";
            let tolerance = t.read("tolerance", float().range(Range::Positive), doc).or(1e-9);
            if name == "l-bfgs" {
                let memory = t
                    .read("memory", integer().at_least(1).at_most(1000), "how many steps are remembered")
                    .or(10);
                return Ok((Optimizer::lbfgs(*memory? as usize, *tolerance?), *steps? as u64, None));
            }
            Ok((Optimizer::levenberg_marquardt(*tolerance?), *steps? as u64, None))
        },
    );
    let hold_out = t
        .read(
            "hold-out",
            float().range(Range::Within(0.0, 0.9)),
            "part of the configurations that is not fitted to, but compared with",
        )
        .or(0.0);
    let scale_errors = t
        .read(
            "scale-errors",
            boolean(),
            "whether standard errors are scaled by how well the data are met, so that only the ratios of their \
             uncertainties matter",
        )
        .or(true);
    let parameters: Result<Vec<_>, _> = t
        .sections("parameter", "which numbers are free")
        .map(|all| all.into_iter().map(parameter).collect::<Vec<_>>())
        .and_then(|all| all.into_iter().collect());
    let data: Result<Vec<_>, _> = t
        .sections("data", "what they are learned from")
        .map(|all| all.into_iter().map(|t| data::read(t, units)).collect::<Vec<_>>())
        .and_then(|all| all.into_iter().collect());
    let targets = targets::read(&t, units);
    let with = t
        .read(
            "with",
            list(placed(path())),
            "other inputs: their `[fit]` tells what is known of their systems, with the same parameters",
        )
        .or(Vec::new())
        .and_then(|with| with.value.into_iter().map(|f| Ok(targets::there_is(&t, f)?.value)).collect());
    let place = t.place().clone();
    t.finish();
    Ok(Some(Written {
        place,
        parameters: parameters?,
        data: data?,
        targets: targets?,
        with: with?,
        optimizer: optimizer?.value,
        hold_out: *hold_out?,
        scale_errors: *scale_errors?,
    }))
}

fn parameter(t: Section) -> Result<Parameter, Reported> {
    let name = t
        .read(
            "name",
            text(),
            "a number as `md sensitivity` names it, such as \"lennard-jones.Ar.epsilon\" or \"atoms.O.charge\"; `*` stands \
             for anything",
        )
        .required();
    let bounds = t
        .read(
            "bounds",
            array::<2, _>(number()),
            "the least and the most that it may be; left out: what makes sense",
        )
        .optional();
    let prior = t
        .read("prior", array::<2, _>(number()), "what is known beforehand: a mean and its standard deviation")
        .optional();
    let transform = t
        .read(
            "transform",
            one_of([("logarithm", true), ("none", false)]),
            "whether its logarithm is fitted, so that it stays positive; left out: for what must be positive",
        )
        .optional();
    let tied = t
        .read(
            "tied",
            map(float()),
            "not free: the sum of these free numbers, each so many times, such as { \"atoms.H.charge\" = -2 } for a neutral \
             molecule",
        )
        .optional();
    t.finish();
    Ok(Parameter {
        name: name?,
        bounds: bounds?.map(|b| b.value),
        prior: prior?.map(|b| b.value),
        transform: transform?,
        tied: tied?,
    })
}

/// Where the numbers of the energies are written: key and parameter, by name.
fn written(raw: &Raw) -> HashMap<String, (Option<String>, Param)> {
    let mut found = HashMap::new();
    for energy in &raw.energies {
        let Energy { listed, common, types, rows, .. } = energy;
        let (about, kind) = (listed.about, listed.kind);
        let table = format!("{}.{}", kind.key(), toml_key(about.name));
        let term = match kind {
            EnergyKind::Bond | EnergyKind::Angle | EnergyKind::Dihedral => {
                format!("{}-{}", kind.key(), about.name)
            }
            _ => about.name.to_owned(),
        };
        let mut note = |name: String, key: String| {
            for p in about.params {
                found.insert(format!("{name}.{}", p.name), (Some(format!("{key}.{}", toml_key(p.name))), *p));
            }
        };
        if common.is_some() {
            note(term.clone(), table.clone());
        }
        for row in types {
            note(
                format!("{term}.{}", row.name.value),
                format!("{table}.types.{}", toml_key(&row.name.value)),
            );
        }
        let of_pairs = matches!(listed.builder, Builder::Pair { .. } | Builder::Embedding { .. });
        for (m, row) in rows.iter().enumerate() {
            let name = &row.name.value;
            let same = |rows: &[super::raw::Row]| rows.iter().filter(|r| r.name.value == *name).count();
            let (before, all) = (same(&rows[..m]), same(rows));
            if of_pairs {
                // (its name has the types in their order, whatever is written)
                let reversed: Vec<&str> = name.split('-').map(str::trim).rev().collect();
                let direct: Vec<&str> = name.split('-').map(str::trim).collect();
                for types in [direct, reversed] {
                    note(format!("{term}.{}", types.join("-")), format!("{table}.pairs.{}", toml_key(name)));
                }
                continue;
            }
            let label = if before == 0 { name.clone() } else { format!("{name}#{}", before + 1) };
            let index = if all > 1 { format!("[{before}]") } else { String::new() };
            note(format!("{term}.{label}"), format!("{table}.{}{index}", toml_key(name)));
        }
    }
    for (name, _) in &raw.types {
        let name = &name.value;
        let charge = Param::new("charge", Dimension::CHARGE, "");
        found.insert(
            format!("atoms.{name}.charge"),
            (Some(format!("atoms.{}.charge", toml_key(name))), charge),
        );
    }
    found
}

/// Whether a name is one that `*` stands for.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// From names to numbers of the energy.
///
/// # Errors
/// What names nothing, or makes no sense, has been reported.
pub(super) fn resolve(
    document: &Document,
    raw: &Raw,
    terms: &[Box<dyn Term>],
    charges: &Charges,
    model: &Model,
    last: Option<Task>,
) -> Result<Option<Fit>, Reported> {
    let Some(fit) = &raw.fit else { return Ok(None) };
    let error = |message: String, place: &Place, help: Option<String>| {
        document.report(Diagnostic::error(message).at(place.clone(), "").maybe_help(help))
    };
    let numbers = parameter_names(terms, charges);
    let mut known = written(raw);
    // (weights stand in no table of the input, but in files)
    let networks = raw.energies.iter().filter(|e| e.neural.is_some());
    for about in networks.map(|e| e.listed.about) {
        let of = |name: &str| name.strip_prefix(about.name).is_some_and(|rest| rest.starts_with('.'));
        for (name, _) in numbers.iter().filter(|(name, _)| of(name)) {
            known.insert(name.clone(), (None, about.params[0]));
        }
    }
    let new_network =
        raw.energies.iter().filter_map(|e| e.neural.as_ref()).any(super::neural::Neural::is_new);
    let targets = fit.targets.meant(model, last, raw.units)?;
    if fit.data.is_empty() && fit.targets.is_empty() && fit.with.is_empty() {
        let help = "add `[[fit.data]]` with `file = \"forces.xyz\"`, or see `md explain fit`".to_owned();
        return Err(error("there is nothing to fit to".into(), &fit.place, Some(help)));
    }
    let mut free: Vec<Free> = Vec::new();
    let mut ties: Vec<(String, &Located<Vec<(String, f64)>>)> = Vec::new();
    let mut taken: HashMap<String, Place> = HashMap::new();
    for p in &fit.parameters {
        let place = &p.name.place;
        let chosen: Vec<&(String, f64)> = numbers.iter().filter(|(n, _)| fits(&p.name.value, n)).collect();
        let chosen: Vec<(&(String, f64), &Param)> =
            chosen.iter().filter_map(|&n| Some((n, &known.get(&n.0)?.1))).collect();
        if chosen.is_empty() {
            let names = numbers.iter().map(|(n, _)| n.as_str()).filter(|n| known.contains_key(*n));
            let help = match did_you_mean(&p.name.value, names.clone()) {
                Some(name) => format!("did you mean \"{name}\"?"),
                None => {
                    let names: Vec<&str> = names.take(12).collect();
                    format!("there are {}", names.join(", "))
                }
            };
            let message = match numbers.iter().any(|(n, _)| *n == p.name.value) {
                true => format!("`{}` is where an interaction ends: that is not fitted", p.name.value),
                false => format!("the energy has no number `{}`", p.name.value),
            };
            return Err(error(message, place, Some(help)));
        }
        for ((name, start), param) in chosen {
            if let Some(first) = taken.insert(name.clone(), place.clone()) {
                let diagnostic = Diagnostic::error(format!("`{name}` is named twice")).at(place.clone(), "");
                return Err(
                    document.report(diagnostic.also(first, "first here").help("take one of them out"))
                );
            }
            if let Range::Integer(..) = param.range {
                return Err(error(format!("`{name}` is a whole number: that is not fitted"), place, None));
            }
            if let Some(tied) = &p.tied {
                if p.bounds.is_some() || p.prior.is_some() || p.transform.is_some() {
                    let message =
                        format!("`{name}` is tied: it has no bounds, prior or transform of its own");
                    return Err(error(message, &tied.place, None));
                }
                ties.push((name.clone(), tied));
                continue;
            }
            let mut one = one(document, p, name, *start, param, raw.units)?;
            if known.get(name).is_some_and(|(key, _)| key.is_none()) {
                // (a weight may be nothing, and is of the order of one)
                one.transform = Transform::Linear(1.0);
            }
            free.push(one);
        }
    }
    let mut tied = Vec::new();
    for (name, of) in ties {
        let mut sum = Vec::new();
        for (other, factor) in &of.value {
            let Some(k) = free.iter().position(|f| f.name == *other) else {
                let names = free.iter().map(|f| f.name.as_str());
                let help = match did_you_mean(other, names.clone()) {
                    Some(name) => format!("did you mean \"{name}\"?"),
                    None => format!("free are {}", names.collect::<Vec<_>>().join(", ")),
                };
                let message = format!("`{name}` is tied to `{other}`, which is not free");
                return Err(error(message, &of.place, Some(help)));
            };
            sum.push((k, *factor));
        }
        tied.push((name, sum));
    }
    let (optimizer, steps, batch) = fit.optimizer.clone();
    Ok(Some(Fit {
        free,
        ties: tied,
        data: fit.data.clone(),
        targets,
        with: fit.with.clone(),
        optimizer,
        steps,
        batch,
        hold_out: fit.hold_out,
        scale_errors: fit.scale_errors,
        new_network,
        keys: known
            .into_iter()
            .filter_map(|(name, (key, param))| Some((name, (key?, param.dimension))))
            .collect(),
    }))
}

/// A free number.
fn one(
    document: &Document,
    p: &Parameter,
    name: &str,
    start: f64,
    param: &Param,
    units: UnitSystem,
) -> Result<Free, Reported> {
    let error =
        |message: String, place: &Place| document.report(Diagnostic::error(message).at(place.clone(), ""));
    let positive = param.range == Range::Positive;
    let logarithm = p.transform.as_ref().map_or(positive, |t| t.value);
    if let Some(transform) = p.transform.as_ref().filter(|t| t.value && start <= 0.0) {
        let message = format!("`{name}` is {start}: only positive numbers have a logarithm");
        return Err(error(message, &transform.place));
    }
    let mut free = Free::new(name, start, logarithm);
    let sensible = match param.range {
        Range::Any | Range::Integer(..) => [f64::NEG_INFINITY, f64::INFINITY],
        // (a hair above nothing)
        Range::Positive => [start * 1e-9, f64::INFINITY],
        Range::NonNegative => [0.0, f64::INFINITY],
        Range::Within(low, high) => [low, high],
    };
    free.bounds = [free.bounds[0].max(sensible[0]), sensible[1]];
    if let Some([low, high]) = &p.bounds {
        let given =
            [value(document, low, param.dimension, units)?, value(document, high, param.dimension, units)?];
        for (x, number) in given.iter().zip([low, high]) {
            if !param.range.contains(*x) || (free.transform == Transform::Logarithm && *x <= 0.0) {
                let message = format!("`{name}` cannot be that");
                return Err(error(message, &number.place));
            }
        }
        if given[0] >= given[1] {
            return Err(error("the least must be less than the most".into(), &low.place));
        }
        if start < given[0] || start > given[1] {
            let quantity = quantity(param.dimension).echo(&start, units);
            let message = format!("`{name}` begins outside of its bounds, at {quantity}");
            return Err(error(message, &(if start < given[0] { low } else { high }).place));
        }
        free.bounds = given;
    }
    if let Some([mean, deviation]) = &p.prior {
        let known = [
            value(document, mean, param.dimension, units)?,
            value(document, deviation, param.dimension, units)?,
        ];
        if known[1] <= 0.0 {
            return Err(error("a standard deviation is positive".into(), &deviation.place));
        }
        free.prior = Some(known);
    }
    Ok(free)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns() {
        for (pattern, name) in
            [("a.b", "a.b"), ("a.*", "a.b"), ("*", "a"), ("*.b*d", "a.bcd"), ("a*b*", "ab"), ("*a*a", "aa")]
        {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a.*", "b.a"), ("*a*a", "a"), ("", "a"), ("a*b", "ba")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
