//! `[fit.ensemble]`, `[[fit.property]]` and `[fit.trajectory]`: what is known beside configurations.

use super::super::build::{Model, is_file};
use super::super::gradient::{Of, observable};
use super::super::plan::Task;
use super::super::reader::{
    Document, Either, EitherKind, Float, Located, Placed, Reported, Section, Text, either, float, integer,
    list, path, placed, quantity, text,
};
use super::super::report::{Diagnostic, Place};
use super::super::response::{Outcome, rest};
use crate::adjoint::Observable;
use crate::fit::target::Known;
use crate::response::rest::Rest;
use crate::units::{UnitSystem, read_quantity, to_internal};
use potentials::param::{Dimension, Range};
use std::path::PathBuf;

/// What is known of the input's system beside configurations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets {
    /// `[fit.ensemble]`
    pub ensemble: Option<Ensemble>,
    /// `[[fit.property]]`, at rest after `[fit.rest]`
    pub properties: Option<(Rest, Vec<(Outcome, Known)>)>,
    /// `[fit.trajectory]`
    pub trajectory: Option<Trajectory>,
}

/// Averages over the last stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// Steps that are not seen, each time.
    pub equilibrate: u64,
    /// Steps from one state that is seen to the next.
    pub every: u64,
    /// The part of the states that reweighting must leave.
    pub least: f64,
    /// What is known of them.
    pub averages: Vec<(Observable, Known)>,
}

/// Frames that the last stage should come by.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The file.
    pub file: PathBuf,
    /// Steps from one frame to the next.
    pub every: u64,
    /// Standard deviation of a coordinate, nm.
    pub error: f64,
}

/// What is written.
pub(super) struct Written {
    ensemble: Option<WrittenEnsemble>,
    properties: Option<(Rest, Vec<Aimed<Located<Outcome>>>)>,
    trajectory: Option<(Trajectory, Place)>,
}

struct WrittenEnsemble {
    place: Place,
    equilibrate: u64,
    every: u64,
    least: f64,
    averages: Vec<Aimed<Located<Of>>>,
    distributions: Vec<Distribution>,
}

/// A number or a quantity, whose dimension depends on what it is of.
pub(super) type Number = Located<Either<f64, String>>;

struct Aimed<T> {
    of: T,
    value: Number,
    error: Number,
}

struct Distribution {
    file: Located<PathBuf>,
    length_unit: f64,
    width: Option<f64>,
    range: [f64; 2],
    error: f64,
    sets: [Located<Vec<Located<String>>>; 2],
}

pub(super) fn number() -> Placed<EitherKind<Float, Text>> {
    placed(either(float(), text()))
}

/// What a number or a quantity of some dimension means.
pub(super) fn value(
    document: &Document,
    number: &Number,
    dimension: Dimension,
    units: UnitSystem,
) -> Result<f64, Reported> {
    let report = |message: String, help: Option<String>| {
        document.report(Diagnostic::error(message).at(number.place.clone(), "").maybe_help(help))
    };
    match &number.value {
        Either::Left(x) => Ok(to_internal(*x, dimension, units)),
        Either::Right(text) => {
            read_quantity(text, dimension, units).map_err(|e| report(e.message.clone(), e.help))
        }
    }
}

pub(super) fn read(t: &Section, units: UnitSystem) -> Result<Written, Reported> {
    let ensemble = match t.section(
        "ensemble",
        "averages over the last stage, which keeps a temperature (langevin): by reweighting, and new simulations where parameters \
         have gone too far for that",
    ) {
        Ok(Some(t)) => ensemble(t).map(Some),
        Ok(None) => Ok(None),
        Err(e) => Err(e),
    };
    let at_rest = match t.section("rest", "how atoms, and the cell, come to rest for `[[fit.property]]`") {
        Ok(Some(t)) => {
            let found = rest(&t, units);
            t.finish();
            found
        }
        Ok(None) => Ok(super::super::response::at_rest(units)),
        Err(e) => Err(e),
    };
    let properties: Result<Vec<_>, _> = t
        .sections("property", "results at rest that are known")
        .map(|all| all.into_iter().map(property).collect::<Vec<_>>())
        .and_then(|all| all.into_iter().collect());
    let trajectory = match t.section("trajectory", "places that atoms come by in the last stage") {
        Ok(Some(t)) => trajectory(t).map(Some),
        Ok(None) => Ok(None),
        Err(e) => Err(e),
    };
    let (rest, properties) = (at_rest?, properties?);
    let properties = (!properties.is_empty()).then_some((rest, properties));
    Ok(Written { ensemble: ensemble?, properties, trajectory: trajectory? })
}

fn aimed<T>(t: &Section, of: Result<T, Reported>) -> Result<Aimed<T>, Reported> {
    let value = t.read("value", number(), "what it is known to be: a quantity").required();
    let error = t.read("error", number(), "the standard deviation of that").required();
    Ok(Aimed { of: of?, value: value?.value, error: error?.value })
}

fn ensemble(t: Section) -> Result<WrittenEnsemble, Reported> {
    let steps = |least| integer().at_least(least);
    let equilibrate =
        t.read("equilibrate", steps(0), "steps of each simulation before states are seen").or(1000);
    let every = t.read("every", steps(1), "steps from one state that is seen to the next").or(50);
    let least = t
        .read(
            "least-effective",
            float().range(Range::Within(0.01, 1.0)),
            "part of the states that reweighting must leave (e to the entropy of the weights); else a new simulation is run",
        )
        .or(0.9);
    let averages: Result<Vec<_>, _> = t
        .sections("average", "averages that are known")
        .map(|all| {
            let one = |t: Section| {
                let found = aimed(&t, observable(&t, false));
                t.finish();
                found
            };
            all.into_iter().map(one).collect::<Vec<_>>()
        })
        .and_then(|all| all.into_iter().collect());
    let distributions: Result<Vec<_>, _> = t
        .sections("distribution", "radial distribution functions that are known")
        .map(|all| all.into_iter().map(distribution).collect::<Vec<_>>())
        .and_then(|all| all.into_iter().collect());
    let place = t.place().clone();
    t.finish();
    Ok(WrittenEnsemble {
        place,
        equilibrate: *equilibrate? as u64,
        every: *every? as u64,
        least: *least?,
        averages: averages?,
        distributions: distributions?,
    })
}

fn distribution(t: Section) -> Result<Distribution, Reported> {
    let length = || quantity(Dimension::LENGTH).range(Range::Positive);
    let file = t
        .read("file", path(), "table (CSV) of r, g(r) and, if they are known, standard deviations of g")
        .required();
    let usual = if t.units() == UnitSystem::Lj { 1.0 } else { 0.1 };
    let unit = t.read("length-unit", length(), "of r in that file").or(usual);
    let width = t
        .read(
            "width",
            length(),
            "standard deviation of a bin, a Gaussian; left out: that of a box as wide as the bins are apart",
        )
        .optional();
    let from = t
        .read("from", quantity(Dimension::LENGTH).range(Range::NonNegative), "the least r that counts")
        .or(0.0);
    let to = t.read("to", length(), "the largest; left out: all there are").optional();
    let error = t
        .read("error", float().range(Range::Positive), "standard deviation of g where the file has none")
        .or(0.02);
    let all = || vec![t.located("all".to_owned())];
    let selection = |key, doc| t.read(key, list(placed(text())), doc);
    let first = selection("of", "atoms that distances are measured from").or(all());
    let second = selection("around", "atoms that they are measured to").or(all());
    let file = file.and_then(|f| there_is(&t, f));
    t.finish();
    Ok(Distribution {
        file: file?,
        length_unit: *unit?,
        width: width?.map(|w| w.value),
        range: [*from?, to?.map_or(f64::INFINITY, |to| to.value)],
        error: *error?,
        sets: [first?, second?],
    })
}

/// Refuses a file that is not there.
pub(super) fn there_is(t: &Section, file: Located<PathBuf>) -> Result<Located<PathBuf>, Reported> {
    if !t.document().is_survey() {
        is_file(t.document(), &file)?;
    }
    Ok(file)
}

fn property(t: Section) -> Result<Aimed<Located<Outcome>>, Reported> {
    let of = t
        .read(
            "of",
            text(),
            "a result as in [sensitivity]: \"energy\", \"pressure\", \"lattice-constant\", \"C11\" …, \"frequency 1\" \
             (in 1/cm), \"distance 1 2\"",
        )
        .required();
    let of = of.and_then(|of| {
        let outcome = Outcome::read(&t, &of)?;
        Ok(Located { value: outcome, place: of.place, given: of.given })
    });
    let found = aimed(&t, of);
    t.finish();
    found
}

fn trajectory(t: Section) -> Result<(Trajectory, Place), Reported> {
    let file = t.read("file", path(), "its frames: extended XYZ, XTC or GRO").required();
    let every = t.read("every", integer().at_least(1), "steps from one frame to the next").or(1);
    let usual = if t.units() == UnitSystem::Lj { 0.01 } else { 0.001 };
    let length = quantity(Dimension::LENGTH).range(Range::Positive);
    let error = t.read("error", length, "standard deviation of a coordinate").or(usual);
    let file = file.and_then(|f| there_is(&t, f));
    let place = t.place().clone();
    t.finish();
    Ok((Trajectory { file: file?.value, every: *every? as u64, error: *error? }, place))
}

/// The name of an average, and its dimension.
fn named(of: &Observable) -> (String, Dimension) {
    let plain = |name: &str, dimension| (name.to_owned(), dimension);
    let atoms = |name: &str, atoms: &[usize], dimension| {
        let numbers: Vec<String> = atoms.iter().map(|i| (i + 1).to_string()).collect();
        (format!("{name} {}", numbers.join(" ")), dimension)
    };
    match of {
        Observable::Potential => plain("potential", Dimension::ENERGY),
        Observable::Pressure => plain("pressure", Dimension::PRESSURE),
        Observable::Distance(i) => atoms("distance", i, Dimension::LENGTH),
        Observable::Angle(i) => atoms("angle", i, Dimension::NONE),
        Observable::Dihedral(i) => atoms("dihedral", i, Dimension::NONE),
        Observable::RadialDistribution { .. } => plain("radial-distribution", Dimension::NONE),
        // (these are not read here)
        Observable::Kinetic
        | Observable::Total
        | Observable::Temperature
        | Observable::Position(..)
        | Observable::Velocity(..)
        | Observable::MeanSquareDisplacement(_)
        | Observable::Match(_) => plain("average", Dimension::NONE),
    }
}

/// The unit that numbers of a dimension are shown in, and what one of the engine's is in it.
fn shown(dimension: Dimension, units: UnitSystem) -> (&'static str, f64) {
    let reduced = units == UnitSystem::Lj;
    match dimension {
        Dimension::ENERGY => (if reduced { "ε" } else { "kJ/mol" }, 1.0),
        Dimension::PRESSURE if reduced => ("ε/σ³", 1.0),
        Dimension::PRESSURE => ("bar", 1.0 / crate::units::constants::BAR),
        Dimension::LENGTH if reduced => ("σ", 1.0),
        Dimension::LENGTH => ("Å", 10.0),
        _ => ("", 1.0),
    }
}

impl Written {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.ensemble.is_none() && self.properties.is_none() && self.trajectory.is_none()
    }

    /// What it means for the atoms there are, and the last stage.
    pub fn meant(&self, model: &Model, last: Option<Task>, units: UnitSystem) -> Result<Targets, Reported> {
        let document = model.document;
        let wrong = |message: String, place: &Place, help: &str| {
            document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
        };
        let mut targets = Targets::default();
        if let Some(e) = &self.ensemble {
            if !matches!(last, Some(Task::Langevin { .. })) {
                let message = "an ensemble needs a temperature that is kept";
                return Err(wrong(
                    message.into(),
                    &e.place,
                    "let the last stage run with `integrator.langevin`",
                ));
            }
            let mut averages = Vec::new();
            for a in &e.averages {
                let of = a.of.value.meant(model)?;
                let (name, dimension) = named(&of);
                averages.push((of, known(document, name, dimension, &a.value, &a.error, units)?));
            }
            for (k, d) in e.distributions.iter().enumerate() {
                averages.extend(d.meant(model, k)?);
            }
            if averages.is_empty() {
                let help = "add `[[fit.ensemble.average]]` or `[[fit.ensemble.distribution]]`";
                return Err(wrong("no average is known of this ensemble".into(), &e.place, help));
            }
            let WrittenEnsemble { equilibrate, every, least, .. } = *e;
            targets.ensemble = Some(Ensemble { equilibrate, every, least, averages });
        }
        if let Some((rest, all)) = &self.properties {
            let mut properties = Vec::new();
            for p in all {
                let of = p.of.value;
                if let Outcome::Distance(i, j) = of
                    && i.max(j) >= model.atoms.len()
                {
                    let message = format!("`{}`: there are only {} atoms", of.name(), model.atoms.len());
                    return Err(wrong(message, &p.of.place, "atoms are counted from 1"));
                }
                let dimension = match of {
                    Outcome::Energy => Dimension::ENERGY,
                    Outcome::Pressure | Outcome::Elastic(..) => Dimension::PRESSURE,
                    Outcome::LatticeConstant | Outcome::Distance(..) => Dimension::LENGTH,
                    Outcome::Frequency(_) => Dimension::NONE,
                };
                let mut known = known(document, of.name(), dimension, &p.value, &p.error, units)?;
                match of {
                    Outcome::Elastic(..) => (known.unit, known.factor) = crate::units::stress(units),
                    // (angular frequencies inside)
                    Outcome::Frequency(_) => {
                        let (unit, factor) = crate::units::frequency(units);
                        (known.value, known.error) = (known.value / factor, known.error / factor);
                        (known.unit, known.factor) = (unit, factor);
                    }
                    _ => {}
                }
                properties.push((of, known));
            }
            targets.properties = Some((*rest, properties));
        }
        if let Some((trajectory, place)) = &self.trajectory {
            if !matches!(last, Some(Task::Langevin { .. } | Task::VelocityVerlet { .. })) {
                let help = "let the last stage integrate";
                return Err(wrong("there is no stage that makes a trajectory".into(), place, help));
            }
            targets.trajectory = Some(trajectory.clone());
        }
        Ok(targets)
    }
}

fn known(
    document: &Document,
    name: String,
    dimension: Dimension,
    written: &Number,
    error: &Number,
    units: UnitSystem,
) -> Result<Known, Reported> {
    let at = value(document, written, dimension, units)?;
    let deviation = value(document, error, dimension, units)?;
    if deviation <= 0.0 || !deviation.is_finite() {
        let diagnostic = Diagnostic::error("a standard deviation is positive").at(error.place.clone(), "");
        return Err(document.report(diagnostic.help("how well is the value known?")));
    }
    let (unit, factor) = shown(dimension, units);
    Ok(Known { name, value: at, error: deviation, unit, factor, place: None, count: 1 })
}

impl Distribution {
    /// An average for each line of the file.
    fn meant(&self, model: &Model, number: usize) -> Result<Vec<(Observable, Known)>, Reported> {
        let place = &self.file.place;
        let shown = self.file.value.display();
        let wrong = |message: String, help: &str| {
            model.document.report(Diagnostic::error(message).at(place.clone(), "").help(help))
        };
        let set = |which: &Located<Vec<Located<String>>>| -> Result<Vec<bool>, Reported> {
            let mut set = vec![false; model.atoms.len()];
            model.select(&which.value)?.into_iter().for_each(|i| set[i as usize] = true);
            Ok(set)
        };
        let sets = [set(&self.sets[0])?, set(&self.sets[1])?];
        if !model.periodic {
            return Err(wrong(
                "a distribution function needs a periodic cell".into(),
                "give the system a cell",
            ));
        }
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_path(&self.file.value)
            .map_err(|e| wrong(format!("`{shown}` cannot be read: {e}"), "name a table (CSV)"))?;
        let mut rows: Vec<[f64; 3]> = Vec::new();
        for (k, record) in reader.records().enumerate() {
            let record =
                record.map_err(|e| wrong(format!("`{shown}` cannot be read: {e}"), "name a table (CSV)"))?;
            let numbers: Option<Vec<f64>> =
                record.iter().take(3).map(|x| x.parse().ok().filter(|x: &f64| x.is_finite())).collect();
            match numbers.as_deref() {
                Some(&[r, g]) if r > 0.0 => rows.push([r, g, self.error]),
                Some(&[r, g, error]) if r > 0.0 && error > 0.0 => rows.push([r, g, error]),
                // (the first line may say what columns are)
                None if k == 0 => {}
                _ => {
                    let line = record.position().map_or(0, |p| p.line());
                    let message = format!("line {line} of `{shown}` is not r, g(r) and a standard deviation");
                    return Err(wrong(
                        message,
                        "numbers stand there, with commas between; r and the deviation are positive",
                    ));
                }
            }
        }
        rows.iter_mut().for_each(|row| row[0] *= self.length_unit);
        if rows.len() < 2 || rows.is_sorted_by(|a, b| a[0] >= b[0]) {
            return Err(wrong(format!("`{shown}` is no curve"), "at least two lines, with r that rises"));
        }
        let apart = (rows[rows.len() - 1][0] - rows[0][0]) / (rows.len() - 1) as f64;
        let width = self.width.unwrap_or(apart / 12.0f64.sqrt());
        let [from, to] = self.range;
        let chosen: Vec<&[f64; 3]> = rows.iter().filter(|row| from <= row[0] && row[0] <= to).collect();
        if chosen.is_empty() {
            return Err(wrong(format!("`{shown}` has nothing from there to there"), "see `from` and `to`"));
        }
        let each = |row: &&[f64; 3]| {
            let [at, value, error] = **row;
            let known = Known {
                name: format!("g({:.3} nm)", at),
                value,
                error,
                unit: "",
                factor: 1.0,
                place: Some((number, at)),
                count: 1,
            };
            (Observable::RadialDistribution { at, width, sets: sets.clone() }, known)
        };
        Ok(chosen.iter().map(each).collect())
    }
}
