//! `[[fit.data]]`: configurations that are learned from.

use super::super::reader::{
    Located, Reported, Section, boolean, float, integer, one_of, path, quantity, text,
};
use super::super::report::Diagnostic;
use super::targets::there_is;
use crate::fit::Uncertainties;
use crate::fit::data::Names;
use crate::units::UnitSystem;
use potentials::param::{Dimension, Range};
use std::path::PathBuf;

/// `[[fit.data]]`
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Where they come from.
    pub source: Source,
    /// What numbers are called.
    pub names: Names,
    /// Their units.
    pub units: UnitSystem,
    /// Every how manyth frame is taken.
    pub every: usize,
    /// How well they are known.
    pub uncertainties: Uncertainties,
    /// How many times each configuration counts.
    pub weight: f64,
    /// Whether a constant is fitted with the energies.
    pub offset: bool,
}

/// Where configurations come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Extended XYZ.
    File(PathBuf),
    /// The last stage of another input, with that one's energy.
    Run(PathBuf),
}

/// Reads one.
pub(super) fn read(t: Section, units: UnitSystem) -> Result<Data, Reported> {
    let lj = units == UnitSystem::Lj;
    let file = t.read("file", path(), "extended XYZ with energies, forces or stresses").optional();
    let run = t
        .read(
            "run",
            path(),
            "instead of a file, an input: its stages are carried out, and states of the last one are taken with its energy",
        )
        .optional();
    let known = UnitSystem::ALL.map(|(name, units)| (name, units));
    let usual = if lj { UnitSystem::Lj } else { UnitSystem::Metal };
    let data_units = t
        .read(
            "units",
            one_of(known),
            "of its lengths and energies: metal is A and eV, real A and kcal/mol, md nm and kJ/mol",
        )
        .or(usual);
    let every =
        t.read("every", integer().at_least(1), "every how manyth frame is taken, or step of a run").or(1);
    let weight =
        t.read("weight", float().range(Range::Positive), "how many times each configuration counts").or(1.0);
    let name = |key, doc| t.read(key, text(), doc).optional();
    let energy =
        name("energy", "key of the energy, such as \"REF_energy\"; left out: \"energy\", if it is there");
    let forces = name("forces", "column of the forces; left out: \"forces\" or \"force\", if it is there");
    let stress =
        name("stress", "key of the stress, positive where it pulls; left out: \"stress\", if it is there");
    let virial =
        name("virial", "key of minus stress times volume; left out: \"virial\", if there is no stress");
    let size =
        |key, dimension, usual, doc| t.read(key, quantity(dimension).range(Range::Positive), doc).or(usual);
    let [e, f, s] = if lj { [0.01, 0.1, 0.1] } else { [0.1, 10.0, 0.1 * GPA] };
    let energy_error =
        size("energy-error", Dimension::ENERGY, e, "standard deviation of an energy, for each of its atoms");
    let force_error =
        size("force-error", Dimension::FORCE, f, "standard deviation of a component of a force");
    let stress_error =
        size("stress-error", Dimension::PRESSURE, s, "standard deviation of a component of the stress");
    let offset = t
        .read(
            "offset",
            boolean(),
            "whether energies have a zero of their own: a constant is fitted with them",
        )
        .or(false);
    let source = file.and_then(|file| match (file, run?) {
        (Some(file), _) if t.document().is_survey() => Ok(Source::File(file.value)),
        (Some(file), None) => Ok(Source::File(there_is(&t, file)?.value)),
        (None, Some(run)) => Ok(Source::Run(there_is(&t, run)?.value)),
        (Some(_), Some(run)) => {
            let diagnostic = Diagnostic::error("configurations are from a file or from a run, not from both");
            Err(t.report(diagnostic.at(run.place, "").help("make two `[[fit.data]]` of them")))
        }
        (None, None) => {
            let diagnostic = Diagnostic::error("it is not said where configurations come from");
            let help = "write `file = \"forces.xyz\"`, or `run = \"other.toml\"`";
            Err(t.report(diagnostic.at(t.place().clone(), "").help(help)))
        }
    });
    t.finish();
    let name = |x: Result<Option<Located<String>>, Reported>| x.map(|x| x.map(|x| x.value));
    let names =
        Names { energy: name(energy)?, forces: name(forces)?, stress: name(stress)?, virial: name(virial)? };
    let uncertainties =
        Uncertainties { energy: *energy_error?, force: *force_error?, stress: *stress_error? };
    Ok(Data {
        source: source?,
        names,
        units: *data_units?,
        every: *every? as usize,
        uncertainties,
        weight: *weight?,
        offset: *offset?,
    })
}

/// kJ/mol/nm³
const GPA: f64 = crate::units::constants::BAR * 1e4;
