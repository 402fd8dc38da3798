//! `[many-body.neural]`: a network that is read, or a new one.

use super::build::{Model, of_file};
use super::raw::{Energy, Raw, refuse};
use super::reader::{
    Located, Reported, Section, float, integer, list, map, one_of, path, quantity, toml_key,
};
use super::report::Diagnostic;
use crate::forces::{Term, neural};
use crate::formats::n2p2::{self, Potential};
use crate::random::{Noise, Purpose};
use crate::system::Cell;
use crate::units::{UnitSystem, read_quantity};
use potentials::many_body::neural::symmetry::MAX_ZETA;
use potentials::many_body::neural::{
    Activation, CutoffFunction, CutoffKind, Layer, Network, Perceptron, Scaling, Statistics, usual_functions,
};
use potentials::param::{Dimension, Range};
use std::path::PathBuf;

/// The keys.
pub struct Neural {
    /// A folder of files, and their units of length and energy.
    folder: Option<(Located<PathBuf>, f64, f64)>,
    new: Option<New>,
}

/// A new network.
struct New {
    cutoff: Option<Located<f64>>,
    ending: CutoffKind,
    inner: Located<f64>,
    radial: usize,
    zetas: Vec<f64>,
    hidden: Vec<usize>,
    activation: Activation,
    atom_energies: Located<Vec<(String, f64)>>,
}

impl Neural {
    /// Whether it comes from no files.
    pub fn is_new(&self) -> bool {
        self.folder.is_none()
    }
}

/// Keys of new networks, which make no sense beside a folder.
const OF_NEW: [&str; 8] =
    ["cutoff", "cutoff-function", "inner", "radial", "zetas", "hidden", "activation", "atom-energies"];

/// Reads the keys.
pub(super) fn read(t: &Section) -> Result<Neural, Reported> {
    let length = || quantity(Dimension::LENGTH).range(Range::Positive);
    let folder = t
        .read(
            "folder",
            path(),
            "files of n2p2: input.nn, scaling.data, weights.ZZZ.data; else the network is new",
        )
        .optional();
    let length_unit = t.read("length-unit", length(), "of the files, such as \"1 bohr\"").optional();
    let energy = quantity(Dimension::ENERGY);
    let energy_unit =
        t.read("energy-unit", energy.range(Range::Positive), "of the files, such as \"1 Ha\"").optional();
    // (beside a folder nothing of a new network has a default)
    let read = matches!(folder, Ok(Some(_))) && !OF_NEW.iter().any(|key| t.has(key));
    let new = if read && !t.document().is_survey() { Ok(None) } else { new(t).map(Some) };
    let (folder, length_unit, energy_unit, new) = (folder?, length_unit?, energy_unit?, new?);
    let folder = match folder {
        None => {
            let message = "a network needs `folder` with its files, or the `cutoff` of a new one";
            refuse(
                t,
                new.as_ref().is_some_and(|n| n.cutoff.is_none()).then(|| message.to_owned()),
                t.place(),
            )?;
            for unit in [&length_unit, &energy_unit].into_iter().flatten() {
                refuse(
                    t,
                    Some("units are those of files, and there is no `folder`".to_owned()),
                    &unit.place,
                )?;
            }
            None
        }
        Some(folder) => {
            if let Some(key) = OF_NEW.iter().find(|key| t.has(key)) {
                let message = format!("`{key}` is for new networks: here the files in `folder` say it");
                refuse(t, Some(message), &folder.place)?;
            }
            match (length_unit, energy_unit) {
                (Some(length), Some(energy)) => Some((folder, *length, *energy)),
                _ if t.document().is_survey() => None,
                _ => {
                    let message = "the files do not say what units they are in";
                    let help =
                        "add `length-unit = \"1 bohr\"` and `energy-unit = \"1 Ha\"`, or what they are";
                    return Err(t.report(Diagnostic::error(message).at(folder.place, "").help(help)));
                }
            }
        }
    };
    Ok(Neural { folder, new })
}

/// Reads what a new network is made of.
fn new(t: &Section) -> Result<New, Reported> {
    let length = || quantity(Dimension::LENGTH).range(Range::Positive);
    let cutoff = t.read("cutoff", length(), "of all symmetry functions of a new network").optional();
    let kinds = CutoffKind::ALL.map(|(kind, name)| (name, kind));
    let ending = t.read("cutoff-function", one_of(kinds), "how they end").or(CutoffKind::Poly2);
    let inner = quantity(Dimension::LENGTH).range(Range::NonNegative);
    let inner = t.read("inner", inner, "where the cut-off function begins to fall").or(0.0);
    let radial = integer().at_least(1).at_most(100);
    let radial = t.read("radial", radial, "radial functions for each pair of elements").or(8);
    let zeta = float().range(Range::Within(1.0, MAX_ZETA));
    let zetas =
        t.read("zetas", list(zeta), "sharpness of the angular functions, each with lambda = 1 and -1");
    let zetas = zetas.or(vec![1.0, 4.0, 16.0]);
    let hidden = list(integer().at_least(1).at_most(1000)).at_least(1);
    let hidden = t.read("hidden", hidden, "nodes of each hidden layer").or(vec![15, 15]);
    let activations = Activation::ALL.map(|(activation, name, _)| (name, activation));
    let activation = t.read("activation", one_of(activations), "of the hidden nodes").or(Activation::Tanh);
    let free = map(quantity(Dimension::ENERGY));
    let free =
        t.read("atom-energies", free, "energies of free atoms by element, which are added").or(Vec::new());
    Ok(New {
        ending: *ending?,
        inner: inner?,
        radial: *radial? as usize,
        zetas: zetas?.value,
        hidden: hidden?.value.into_iter().map(|n| n as usize).collect(),
        activation: *activation?,
        atom_energies: free?,
        cutoff: cutoff?,
    })
}

/// Makes the term.
pub(super) fn build(
    model: &Model,
    raw: &Raw,
    energy: &Energy,
    keys: &Neural,
    build: fn(&str, Network, &[f64], Vec<usize>) -> Box<dyn Term>,
) -> Result<Box<dyn Term>, Reported> {
    // the element of each type
    let symbols: Vec<&str> = (raw.types.iter())
        .map(|(name, t)| t.element.as_ref().map_or(name.value.as_str(), |e| e.value.as_str()))
        .collect();
    let potential = match (&keys.folder, &keys.new) {
        (Some((folder, length, energy)), _) => {
            is_folder(model, folder)?;
            n2p2::read(&folder.value, *length, *energy)
                .map_err(|e| model.document.report(of_file(&e, &folder.place)))?
        }
        (None, Some(new)) => fresh(model, raw, energy, new, &symbols)?,
        (None, None) => {
            let diagnostic = Diagnostic::error("a network needs a `folder`, or the `cutoff` of a new one");
            return Err(model.document.report(diagnostic.at(energy.place.clone(), "")));
        }
    };
    let known = &potential.network.elements;
    let mut elements = Vec::new();
    for (symbol, (name, _)) in symbols.iter().zip(&raw.types) {
        match known.iter().position(|e| e == symbol) {
            Some(k) => elements.push(k),
            None => {
                let message = format!("the network knows no element `{symbol}`");
                let help = format!(
                    "it knows {}; `element = \"…\"` in `[atoms.{}]` says which one a type is",
                    known.join(", "),
                    toml_key(&name.value)
                );
                let diagnostic = Diagnostic::error(message).at(name.place.clone(), "");
                let diagnostic = diagnostic.also(energy.place.clone(), "this network").help(help);
                return Err(model.document.report(diagnostic));
            }
        }
    }
    let Potential { network, weights } = potential;
    Ok(build(energy.listed.about.name, network, &weights, elements))
}

fn is_folder(model: &Model, folder: &Located<PathBuf>) -> Result<(), Reported> {
    if folder.value.is_dir() {
        return Ok(());
    }
    let message = format!("there is no folder `{}`", folder.value.display());
    let help = "it holds input.nn, scaling.data and a file weights.ZZZ.data for each element";
    Err(model.document.report(Diagnostic::error(message).at(folder.place.clone(), "").help(help)))
}

/// A new network, with random weights, whose functions are scaled by what they are in the structure that the input has.
fn fresh(
    model: &Model,
    raw: &Raw,
    energy: &Energy,
    new: &New,
    symbols: &[&str],
) -> Result<Potential, Reported> {
    let Some(cutoff) = &new.cutoff else {
        let message = "a new network needs a `cutoff`";
        return Err(model.document.report(Diagnostic::error(message).at(energy.place.clone(), "")));
    };
    if *new.inner >= **cutoff {
        let message = "`inner` must be less than `cutoff`";
        let diagnostic = Diagnostic::error(message).at(new.inner.place.clone(), "");
        return Err(model.document.report(diagnostic.also(cutoff.place.clone(), "the cut-off")));
    }
    let mut elements: Vec<&str> = Vec::new();
    for (symbol, (name, t)) in symbols.iter().zip(&raw.types) {
        if n2p2::atomic_number(symbol).is_none() {
            let place = t.element.as_ref().map_or(&name.place, |e| &e.place);
            let message = format!("there is no element `{symbol}`, which a network could be for");
            let help = format!("write `element = \"…\"` in `[atoms.{}]`", toml_key(&name.value));
            return Err(model.document.report(Diagnostic::error(message).at(place.clone(), "").help(help)));
        }
        if !elements.contains(symbol) {
            elements.push(symbol);
        }
    }
    elements.sort_by_key(|symbol| n2p2::atomic_number(symbol));
    let of_type: Vec<usize> =
        symbols.iter().map(|s| elements.iter().position(|e| e == s).unwrap_or(0)).collect();
    // in ångström and electronvolts, if that means anything
    let unit = |text: &str, dimension| match raw.units {
        UnitSystem::Lj => 1.0,
        _ => read_quantity(text, dimension, UnitSystem::Md).unwrap_or(1.0),
    };
    let [length_unit, energy_unit] = [unit("1 A", Dimension::LENGTH), unit("1 eV", Dimension::ENERGY)];
    let mut atom_energies = vec![0.0; elements.len()];
    for (symbol, free) in &new.atom_energies.value {
        match elements.iter().position(|e| e == symbol) {
            Some(k) => atom_energies[k] = free / energy_unit,
            None => {
                let message = format!("no atom type is of the element `{symbol}`");
                let place = new.atom_energies.place.clone();
                return Err(model.document.report(Diagnostic::error(message).at(place, "")));
            }
        }
    }
    let n = elements.len();
    let angular = (n * (n + 1) / 2).saturating_mul(2 * new.zetas.len());
    let too_large = |what: &str, most: usize| {
        let message = format!("the network has more than {most} {what}");
        model.document.report(Diagnostic::error(message).at(energy.place.clone(), ""))
    };
    if n.saturating_mul((n * new.radial).saturating_add(angular)) > n2p2::MOST_FUNCTIONS {
        return Err(too_large("symmetry functions", n2p2::MOST_FUNCTIONS));
    }
    let functions = usual_functions(elements.len(), **cutoff / length_unit, new.radial, &new.zetas);
    let perceptron = |e: usize| {
        let layer = |nodes, activation| Layer { nodes, activation };
        let mut layers: Vec<Layer> = new.hidden.iter().map(|&nodes| layer(nodes, new.activation)).collect();
        layers.push(layer(1, Activation::Linear));
        let inputs = functions.iter().filter(|f| f.center == e).count();
        Perceptron { inputs, layers, normalized: false }
    };
    let mut network = Network {
        perceptrons: (0..elements.len()).map(perceptron).collect(),
        elements: elements.iter().map(|e| (*e).to_owned()).collect(),
        ending: CutoffFunction { kind: new.ending, inner: *new.inner / **cutoff },
        scaling: Scaling::Sigma,
        range: [0.0, 1.0],
        statistics: Vec::new(),
        normalization: None,
        atom_energies,
        functions,
        length_unit,
        energy_unit,
    };
    if network.weights() > n2p2::MOST_WEIGHTS {
        return Err(too_large("weights", n2p2::MOST_WEIGHTS));
    }
    let weights = random_weights(raw.seed, &network);
    let here = (model.cell as &Cell, model.positions);
    let found = neural::statistics(&network, &of_type, &model.atoms, [here]);
    let found = found
        .map_err(|e| model.document.report(Diagnostic::error(e.to_string()).at(cutoff.place.clone(), "")))?;
    network.statistics = found.into_iter().map(Statistics::spread).collect();
    Ok(Potential { network, weights })
}

/// Weights from a normal distribution whose variance is one over the number of inputs; biases are zero.
fn random_weights(seed: u64, network: &Network) -> Vec<f64> {
    let noise = Noise::new(seed, Purpose::Weights);
    let mut weights = Vec::with_capacity(network.weights());
    for place in network.perceptrons.iter().flat_map(Perceptron::places) {
        let width = 1.0 / (place.before as f64).sqrt();
        for _ in 0..place.before * place.layer.nodes {
            weights.push(noise.normals(0, weights.len())[0] * width);
        }
        weights.resize(weights.len() + place.layer.nodes, 0.0);
    }
    weights
}
