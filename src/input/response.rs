//! `[modes]`, `[elastic]` and `[sensitivity]`: what is asked of the second derivatives of the energy.

use super::raw::refuse;
use super::reader::{
    Either, Located, Reported, Section, array, boolean, either, float, integer, list, placed, quantity, text,
    word,
};
use crate::response::rest::Rest;
use crate::units::UnitSystem;
use potentials::param::{Dimension, Range};

/// What `md modes`, `md elastic` and `md sensitivity` do.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// `[modes]`
    pub modes: Modes,
    /// `[elastic]`
    pub elastic: Elastic,
    /// `[sensitivity]`
    pub sensitivity: Sensitivity,
}

/// `[modes]`
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// Where.
    pub rest: Rest,
    /// How many of the lowest are found, or all.
    pub count: Option<usize>,
    /// How many vibrations are animated.
    pub animate: usize,
    /// The temperatures of thermodynamic functions, in K.
    pub temperatures: Vec<f64>,
    /// Points of a spectrum.
    pub points: usize,
    /// Steps of a recurrence, where not all modes are known.
    pub lanczos_steps: usize,
    /// How many recurrences from random vectors.
    pub samples: usize,
    /// Waves of a crystal.
    pub phonons: Option<Phonons>,
}

/// `[modes.phonons]`
#[derive(Clone, Debug, PartialEq)]
pub struct Phonons {
    /// Wave vectors along which the dispersion is drawn; empty for the lattice's own path.
    pub path: Vec<WaveVector>,
    /// Points a leg of the path.
    pub points: usize,
    /// Wave vectors along each side of the zone.
    pub mesh: usize,
}

/// A wave vector.
#[derive(Clone, Debug, PartialEq)]
pub enum WaveVector {
    /// By its name.
    Named(String),
    /// In fractions of the reciprocal vectors of the primitive cell.
    Fractions([f64; 3]),
}

/// `[elastic]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elastic {
    /// Where.
    pub rest: Rest,
}

/// `[sensitivity]`
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// Where.
    pub rest: Rest,
    /// Of what.
    pub of: Vec<Outcome>,
}

/// A result whose derivatives are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `energy`
    Energy,
    /// `pressure`
    Pressure,
    /// `lattice-constant`
    LatticeConstant,
    /// `C11` …: Voigt indices, from 0.
    Elastic(usize, usize),
    /// `frequency K`, from 0.
    Frequency(usize),
    /// `distance I J`, from 0.
    Distance(usize, usize),
}

impl Outcome {
    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Outcome::Energy => "energy".into(),
            Outcome::Pressure => "pressure".into(),
            Outcome::LatticeConstant => "lattice-constant".into(),
            Outcome::Elastic(a, b) => format!("C{}{}", a + 1, b + 1),
            Outcome::Frequency(k) => format!("frequency {}", k + 1),
            Outcome::Distance(i, j) => format!("distance {} {}", i + 1, j + 1),
        }
    }
    fn of(name: &str) -> Option<Outcome> {
        let mut words = name.split_whitespace();
        let first = words.next()?;
        let numbers: Option<Vec<usize>> =
            words.map(|w| w.parse::<usize>().ok().and_then(|k| k.checked_sub(1))).collect();
        match (first, &numbers?[..]) {
            ("energy", []) => Some(Outcome::Energy),
            ("pressure", []) => Some(Outcome::Pressure),
            ("lattice-constant", []) => Some(Outcome::LatticeConstant),
            ("frequency", &[k]) => Some(Outcome::Frequency(k)),
            ("distance", &[i, j]) if i != j => Some(Outcome::Distance(i, j)),
            (c, []) => {
                let digits: Option<Vec<usize>> = c
                    .strip_prefix('C')?
                    .chars()
                    .map(|d| d.to_digit(10).map(|d| d as usize).filter(|d| (1..=6).contains(d)))
                    .collect();
                match &digits?[..] {
                    &[a, b] => Some(Outcome::Elastic(a.min(b) - 1, a.max(b) - 1)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl Outcome {
    /// Reads a name.
    pub(super) fn read(t: &Section, name: &Located<String>) -> Result<Outcome, Reported> {
        let outcome = Outcome::of(&name.value);
        let message = format!("there is no result `{}`", name.value);
        let known = "energy, pressure, lattice-constant, C11 … C66, frequency K, distance I J";
        refuse(t, outcome.is_none().then(|| format!("{message}; there are {known}")), &name.place)?;
        Ok(outcome.unwrap_or(Outcome::Energy))
    }
}

/// What each of the commands finds if there is no section for it.
pub(super) fn at_rest(units: UnitSystem) -> Rest {
    let [force, near, farthest] = match units {
        UnitSystem::Lj => [1e-8, 1e-4, 0.1],
        _ => [1e-4, 1e-2, 0.02],
    };
    Rest { minimize: true, force, pressure: None, near, farthest }
}

/// Reads the three sections.
pub(super) fn read(root: &Section) -> Result<Response, Reported> {
    let units = root.units();
    let (modes, elastic, sensitivity) = (
        root.section("modes", "normal modes: see `md modes`"),
        root.section("elastic", "elastic constants: see `md elastic`"),
        root.section("sensitivity", "derivatives of results in parameters: see `md sensitivity`"),
    );
    let modes = modes.and_then(|t| match t {
        Some(t) => modes_of(t, units),
        None => Ok(Modes {
            rest: at_rest(units),
            count: None,
            animate: 6,
            temperatures: vec![TEMPERATURE],
            points: 400,
            lanczos_steps: 120,
            samples: 8,
            phonons: None,
        }),
    });
    let elastic = elastic.and_then(|t| match t {
        Some(t) => {
            let rest = rest(&t, units);
            t.finish();
            Ok(Elastic { rest: rest? })
        }
        None => Ok(Elastic { rest: at_rest(units) }),
    });
    let sensitivity = sensitivity.and_then(|t| match t {
        Some(t) => sensitivity_of(t, units),
        None => Ok(Sensitivity { rest: at_rest(units), of: vec![Outcome::Energy] }),
    });
    Ok(Response { modes: modes?, elastic: elastic?, sensitivity: sensitivity? })
}

/// In K, unless another is given.
const TEMPERATURE: f64 = 300.0;

/// Reads the keys about rest.
pub(super) fn rest(t: &Section, units: UnitSystem) -> Result<Rest, Reported> {
    let usual = at_rest(units);
    let minimize = t.read("minimize", boolean(), "whether the energy is minimised first").or(usual.minimize);
    let force = quantity(Dimension::FORCE).range(Range::Positive);
    let force = t.read("force", force, "then: until no component of a force is larger").or(usual.force);
    let pressure = t
        .read(
            "pressure",
            quantity(Dimension::PRESSURE),
            "let the cell relax until its pressure is this, without shear; left out: the cell stays",
        )
        .optional();
    Ok(Rest { minimize: *minimize?, force: *force?, pressure: pressure?.map(|p| p.value), ..usual })
}

fn modes_of(t: Section, units: UnitSystem) -> Result<Modes, Reported> {
    let rest = rest(&t, units);
    let count = t
        .read(
            "count",
            either(word(["all"]), integer().at_least(0).at_most(100_000)),
            "how many of the lowest vibrations are found; left out: all of up to 200 atoms, else none (the spectrum needs \
             none)",
        )
        .optional();
    let animate =
        t.read("animate", integer().at_least(0).at_most(10_000), "how many of them are animated").or(6);
    let temperature = quantity(Dimension::TEMPERATURE).range(Range::NonNegative);
    let temperatures = t
        .read("temperatures", list(temperature).at_least(1), "of thermodynamic functions")
        .or(vec![TEMPERATURE]);
    let points = t.read("points", integer().at_least(10).at_most(100_000), "points of a spectrum").or(400);
    let steps = t
        .read(
            "lanczos-steps",
            integer().at_least(2).at_most(5000),
            "steps of each recurrence of a spectrum, where not all modes are known: more of them, finer lines",
        )
        .or(120);
    let samples = t
        .read(
            "samples",
            integer().at_least(1).at_most(10_000),
            "random vectors that a density of states is the mean of, where not all modes are known",
        )
        .or(8);
    let phonons = match t.section("phonons", "waves of a crystal of any wave vector") {
        Ok(Some(t)) => phonons(t).map(Some),
        Ok(None) => Ok(None),
        Err(e) => Err(e),
    };
    t.finish();
    let count = count?.map(|c| match c.value {
        Either::Left(_) => usize::MAX,
        Either::Right(k) => k as usize,
    });
    Ok(Modes {
        rest: rest?,
        count,
        animate: *animate? as usize,
        temperatures: temperatures?.value,
        points: *points? as usize,
        lanczos_steps: *steps? as usize,
        samples: *samples? as usize,
        phonons: phonons?,
    })
}

fn phonons(t: Section) -> Result<Phonons, Reported> {
    let path = t
        .read(
            "path",
            list(placed(either(array::<3, _>(float()), text()))).at_least(2),
            "wave vectors that the dispersion is drawn along: names such as \"G\" or \"X\" in cubic lattices, or fractions \
             of the reciprocal vectors of the primitive cell; left out: the usual path of a cubic lattice",
        )
        .optional();
    let points =
        t.read("points", integer().at_least(2).at_most(10_000), "wave vectors a leg of the path").or(60);
    let mesh = t
        .read(
            "mesh",
            integer().at_least(1).at_most(200),
            "wave vectors along each side of the zone, for the density of states",
        )
        .or(14);
    t.finish();
    let vector = |v: Located<Either<[f64; 3], String>>| match v.value {
        Either::Left(fractions) => WaveVector::Fractions(fractions),
        Either::Right(name) => WaveVector::Named(name),
    };
    let path = path?.map_or(Vec::new(), |p| p.value.into_iter().map(vector).collect());
    Ok(Phonons { path, points: *points? as usize, mesh: *mesh? as usize })
}

fn sensitivity_of(t: Section, units: UnitSystem) -> Result<Sensitivity, Reported> {
    let rest = rest(&t, units);
    let of = t
        .read(
            "of",
            list(placed(text())).at_least(1),
            "of what: \"energy\", \"pressure\", \"lattice-constant\", \"C11\" …, \"frequency 1\" (the lowest vibration), \
             \"distance 1 2\" (of these atoms)",
        )
        .or(vec![t.located("energy".to_owned())]);
    let outcome = |name: Located<String>| Outcome::read(&t, &name);
    let of = of.and_then(|of| of.value.into_iter().map(outcome).collect::<Result<_, _>>());
    t.finish();
    Ok(Sensitivity { rest: rest?, of: of? })
}
