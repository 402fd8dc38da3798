//! Neural-network potentials as n2p2 and RuNNer keep them: a folder with `input.nn` (elements, symmetry functions,
//! layers), `scaling.data` (what is known of each function's values) and a file `weights.ZZZ.data` for each element,
//! where ZZZ is its atomic number.
//!
//! Understood are short-range potentials with symmetry functions of the types 2, 3 and 9. Keys that only have to do with
//! training are passed over; keys that would change the energy and are not understood are errors. Lengths and energies
//! are in units that the files do not say.
//!
//! The order of things is n2p2's, whatever the order of the lines: elements by atomic number, symmetry functions as
//! [`SymmetryFunction::order`] has them. Weights go to the nodes that their lines name; where lines have values only, to
//! those of the order of [`Perceptron`].

use super::elements;
use super::frame::FormatError;
use potentials::many_body::neural::symmetry::MAX_ZETA;
use potentials::many_body::neural::{
    Activation, CutoffFunction, CutoffKind, Layer, Network, Normalization, Perceptron, Scaling, Shape,
    Statistics, SymmetryFunction,
};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Larger files are a mistake.
const MOST_BYTES: u64 = 1 << 28;
/// And so are more symmetry functions, weights, nodes of a layer, or hidden layers.
pub const MOST_FUNCTIONS: usize = 20_000;
/// See there.
pub const MOST_WEIGHTS: usize = 10_000_000;
const MOST_NODES: usize = 4096;
const MOST_LAYERS: usize = 64;

/// Networks with their weights, element after element.
#[derive(Clone, Debug, PartialEq)]
pub struct Potential {
    /// The networks.
    pub network: Network,
    /// The weights and biases.
    pub weights: Vec<f64>,
}

/// Keys that change the energy in ways that are not understood, unless their values are these.
const REFUSED: [(&str, &[&str]); 9] = [
    ("nnp_type", &["0", "2", "2G-HDNNP", "HDNNP_2G"]),
    ("nnp_gen", &["2"]),
    ("committee_mode", &["disabled"]),
    ("element_activation_short", &[]),
    ("element_hidden_layers_short", &[]),
    ("global_symfunction_short", &[]),
    ("element_symfunction_short", &[]),
    ("global_pairsymfunction_short", &[]),
    ("use_electrostatics", &[]),
];

/// Keys that may stand more than once.
const REPEATED: [&str; 3] = ["symfunction_short", "atom_energy", "element_nodes_short"];

/// Reads a potential from a folder whose lengths are in `length_unit` nm and energies in `energy_unit` kJ/mol.
///
/// # Errors
/// What is missing, malformed or not understood, with file and line.
pub fn read(folder: &Path, length_unit: f64, energy_unit: f64) -> Result<Potential, FormatError> {
    let settings = Settings::read(&folder.join("input.nn"))?;
    let mut network = settings.network(length_unit, energy_unit).map_err(|e| e.with_path(&settings.path))?;
    if network.scaling != Scaling::None {
        let path = folder.join("scaling.data");
        network.statistics = statistics(&text(&path)?, &network).map_err(|e| e.with_path(&path))?;
    }
    let mut weights = Vec::with_capacity(network.weights());
    for (element, perceptron) in network.elements.iter().zip(&network.perceptrons) {
        let path = folder.join(weights_file(element));
        weights.extend(read_weights(&text(&path)?, perceptron).map_err(|e| e.with_path(&path))?);
    }
    Ok(Potential { network, weights })
}

/// The atomic number of an element.
pub fn atomic_number(symbol: &str) -> Option<usize> {
    elements::number(symbol)
}

/// The name of the file with an element's weights.
fn weights_file(element: &str) -> String {
    format!("weights.{:03}.data", atomic_number(element).unwrap_or(0))
}

/// The text of a file.
fn text(path: &Path) -> Result<String, FormatError> {
    let cannot = |e: std::io::Error| FormatError::new(format!("cannot be read: {e}")).with_path(path);
    let size = std::fs::metadata(path).map_err(cannot)?.len();
    if size > MOST_BYTES {
        return Err(FormatError::new("is larger than such a file can be").with_path(path));
    }
    Ok(String::from_utf8_lossy(&std::fs::read(path).map_err(cannot)?).into_owned())
}

/// The words of each line that says something, with its number.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    fn words(line: &str) -> Vec<&str> {
        line.split('#').next().unwrap_or("").split_whitespace().collect()
    }
    (1..).zip(text.lines().map(words)).filter(|(_, words)| !words.is_empty())
}

fn wrong<T>(line: usize, message: impl Into<String>) -> Result<T, FormatError> {
    Err(FormatError::at(line, None, message))
}

/// A finite number.
fn number(line: usize, word: Option<&str>, what: &str) -> Result<f64, FormatError> {
    match word.map(|w| (w, w.parse::<f64>())) {
        Some((_, Ok(x))) if x.is_finite() => Ok(x),
        Some((w, _)) => wrong(line, format!("expected {what}, a number, found `{w}`")),
        None => wrong(line, format!("expected {what}, a number, found the end of the line")),
    }
}

/// A whole number up to a largest one.
fn count(line: usize, word: Option<&str>, what: &str, most: usize) -> Result<usize, FormatError> {
    match word.map(|w| (w, w.parse::<usize>())) {
        Some((_, Ok(n))) if (1..=most).contains(&n) => Ok(n),
        Some((w, _)) => wrong(line, format!("expected {what}, a whole number from 1 to {most}, found `{w}`")),
        None => wrong(line, format!("expected {what}, a whole number, found the end of the line")),
    }
}

/// What `input.nn` says: for each key its lines, with their numbers.
struct Settings {
    path: PathBuf,
    keys: HashMap<String, Vec<(usize, Vec<String>)>>,
}

impl Settings {
    fn read(path: &Path) -> Result<Self, FormatError> {
        Self::of(&text(path)?, path).map_err(|e| e.with_path(path))
    }
    fn of(text: &str, path: &Path) -> Result<Self, FormatError> {
        let mut keys: HashMap<String, Vec<(usize, Vec<String>)>> = HashMap::new();
        for (line, words) in lines(text) {
            let (key, rest) = (words[0], &words[1..]);
            let known = keys.entry(key.to_owned()).or_default();
            if let (Some((first, _)), false) = (known.first(), REPEATED.contains(&key)) {
                return wrong(line, format!("`{key}` stands in line {first} already"));
            }
            if let Some((_, allowed)) = REFUSED.iter().find(|(k, _)| *k == key)
                && !rest.first().is_some_and(|value| allowed.contains(value))
            {
                return wrong(line, format!("`{}` is not understood", words.join(" ")));
            }
            known.push((line, rest.iter().map(|w| (*w).to_owned()).collect()));
        }
        Ok(Self { path: path.to_owned(), keys })
    }
    /// The lines of a key.
    fn all(&self, key: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
        let lines = self.keys.get(key).into_iter().flatten();
        lines.map(|(line, words)| (*line, words.iter().map(String::as_str).collect()))
    }
    /// The line of a key that may be there.
    fn one(&self, key: &str) -> Option<(usize, Vec<&str>)> {
        self.all(key).next()
    }
    /// The line of a key that must be there.
    fn required(&self, key: &str) -> Result<(usize, Vec<&str>), FormatError> {
        self.one(key).ok_or_else(|| FormatError::new(format!("there is no line `{key} …`")))
    }
    fn number(&self, key: &str) -> Result<Option<f64>, FormatError> {
        self.one(key)
            .map(|(line, words)| number(line, words.first().copied(), &format!("`{key}`")))
            .transpose()
    }

    fn network(&self, length_unit: f64, energy_unit: f64) -> Result<Network, FormatError> {
        let elements = self.elements()?;
        let element = |line: usize, word: Option<&str>| match word {
            Some(word) => match elements.iter().position(|e| e == word) {
                Some(k) => Ok(k),
                None => wrong(line, format!("`{word}` is none of the elements, {}", elements.join(", "))),
            },
            None => wrong(line, "expected an element, found the end of the line"),
        };
        let ending = self.ending()?;
        let mut functions = Vec::new();
        for (line, words) in self.all("symfunction_short") {
            functions.push((self::function(line, &words, &element)?, line));
            if functions.len() > MOST_FUNCTIONS {
                return wrong(line, format!("there are more than {MOST_FUNCTIONS} symmetry functions"));
            }
        }
        functions.sort_by(|(a, _), (b, _)| a.order(b));
        let functions: Vec<_> = functions.into_iter().map(|(f, _)| f).collect();
        if let Some(k) = (0..elements.len()).find(|k| functions.iter().all(|f| f.center != *k)) {
            return Err(FormatError::new(format!("there are no symmetry functions of {}", elements[k])));
        }
        let perceptrons = self.perceptrons(&elements, &functions, &element)?;
        let mut atom_energies = vec![0.0; elements.len()];
        for (line, words) in self.all("atom_energy") {
            let energy = number(line, words.get(1).copied(), "the energy of a free atom")?;
            atom_energies[element(line, words.first().copied())?] = energy;
        }
        let none = Statistics { min: 0.0, max: 0.0, mean: 0.0, sigma: 0.0 };
        let given = |key: &str| self.keys.contains_key(key);
        let scale = (given("scale_symmetry_functions"), given("center_symmetry_functions"));
        let scaling = match (scale, given("scale_symmetry_functions_sigma")) {
            ((true, false), _) => Scaling::Range,
            ((false, true), _) => Scaling::Center,
            ((true, true), _) => Scaling::RangeAndCenter,
            (_, true) => Scaling::Sigma,
            _ => Scaling::None,
        };
        let [a, b] = ["scale_min_short", "scale_max_short"].map(|key| self.number(key));
        Ok(Network {
            ending,
            scaling,
            range: [a?.unwrap_or(0.0), b?.unwrap_or(1.0)],
            statistics: vec![none; functions.len()],
            perceptrons,
            normalization: self.normalization()?,
            atom_energies,
            functions,
            elements,
            length_unit,
            energy_unit,
        })
    }

    /// The elements by atomic number.
    fn elements(&self) -> Result<Vec<String>, FormatError> {
        let (line, words) = self.required("elements")?;
        let mut numbered = Vec::new();
        for word in words {
            match atomic_number(word) {
                Some(z) if !numbered.contains(&(z, word)) => numbered.push((z, word)),
                Some(_) => return wrong(line, format!("{word} is named twice")),
                None => return wrong(line, format!("there is no element `{word}`")),
            }
        }
        numbered.sort_unstable();
        if let Some((line, words)) = self.one("number_of_elements") {
            let n = count(line, words.first().copied(), "how many elements", 118)?;
            if n != numbered.len() {
                return wrong(line, format!("{n} elements are announced, and {} are named", numbered.len()));
            }
        }
        match numbered.is_empty() {
            true => wrong(line, "expected elements, found the end of the line"),
            false => Ok(numbered.into_iter().map(|(_, symbol)| symbol.to_owned()).collect()),
        }
    }

    fn ending(&self) -> Result<CutoffFunction, FormatError> {
        let (line, words) = self.required("cutoff_type")?;
        let word = words.first().copied().unwrap_or("");
        let listed = word.parse::<usize>().ok().and_then(|n| CutoffKind::ALL.get(n));
        let Some(&(kind, _)) = listed else {
            return wrong(
                line,
                format!("expected the type of cut-off function, from 0 to 8, found `{word}`"),
            );
        };
        let inner = match words.get(1) {
            Some(&word) => number(line, Some(word), "the inner cut-off")?,
            None => 0.0,
        };
        if !(0.0..1.0).contains(&inner) {
            return wrong(
                line,
                format!("the inner cut-off, a part of the outer, is from 0 to less than 1, not {inner}"),
            );
        }
        Ok(CutoffFunction { kind, inner: if kind.has_inner() { inner } else { 0.0 } })
    }

    fn normalization(&self) -> Result<Option<Normalization>, FormatError> {
        let keys = ["mean_energy", "conv_energy", "conv_length"];
        let [mean, energy, length] = keys.map(|key| self.number(key));
        match (mean?, energy?, length?) {
            (None, None, None) => Ok(None),
            (Some(mean_energy), Some(energy), Some(length)) => {
                for (key, x) in [(keys[1], energy), (keys[2], length)] {
                    if x <= 0.0 {
                        let line = self.one(key).map_or(0, |(line, _)| line);
                        return wrong(line, format!("`{key}` must be greater than zero"));
                    }
                }
                Ok(Some(Normalization { mean_energy, energy, length }))
            }
            _ => Err(FormatError::new("of mean_energy, conv_energy and conv_length all are given, or none")),
        }
    }

    fn perceptrons(
        &self,
        elements: &[String],
        functions: &[SymmetryFunction],
        element: &impl Fn(usize, Option<&str>) -> Result<usize, FormatError>,
    ) -> Result<Vec<Perceptron>, FormatError> {
        let (line, words) = self.required("global_hidden_layers_short")?;
        let hidden = count(line, words.first().copied(), "how many hidden layers", MOST_LAYERS)?;
        let (nodes_line, nodes) = self.required("global_nodes_short")?;
        let (line, activations) = self.required("global_activation_short")?;
        let mut layers = Vec::new();
        for k in 0..=hidden {
            let word = activations.get(k).copied();
            let known = Activation::ALL.iter().find(|(_, _, c)| word == Some(c.encode_utf8(&mut [0; 4])));
            let activation = match (known, word) {
                (Some((Activation::Linear, ..)), _) | (None, None) if k == hidden => Activation::Linear,
                (_, Some(word)) if k == hidden => {
                    return wrong(line, format!("the last layer is linear (`l`), not `{word}`"));
                }
                (Some(&(activation, ..)), _) => activation,
                (None, Some(word)) => {
                    return wrong(line, format!("there is no activation function `{word}`"));
                }
                (None, None) => {
                    return wrong(line, format!("{hidden} hidden layers need as many activation functions"));
                }
            };
            let nodes = match k == hidden {
                true => 1,
                false => {
                    count(nodes_line, nodes.get(k).copied(), "the nodes of each hidden layer", MOST_NODES)?
                }
            };
            layers.push(Layer { nodes, activation });
        }
        let normalized = self.keys.contains_key("normalize_nodes");
        let inputs = |e| functions.iter().filter(|f| f.center == e).count();
        let mut perceptrons: Vec<_> = (0..elements.len())
            .map(|e| Perceptron { inputs: inputs(e), layers: layers.clone(), normalized })
            .collect();
        for (line, words) in self.all("element_nodes_short") {
            let e = element(line, words.first().copied())?;
            let layer = count(line, words.get(1).copied(), "a hidden layer", hidden)?;
            perceptrons[e].layers[layer - 1].nodes =
                count(line, words.get(2).copied(), "its nodes", MOST_NODES)?;
        }
        if perceptrons.iter().map(Perceptron::weights).sum::<usize>() > MOST_WEIGHTS {
            return wrong(nodes_line, format!("the networks have more than {MOST_WEIGHTS} weights"));
        }
        Ok(perceptrons)
    }
}

/// A line `symfunction_short …`.
fn function(
    line: usize,
    words: &[&str],
    element: &impl Fn(usize, Option<&str>) -> Result<usize, FormatError>,
) -> Result<SymmetryFunction, FormatError> {
    let center = element(line, words.first().copied())?;
    let at = |k: usize, what: &str| number(line, words.get(k).copied(), what);
    let (shape, neighbors, eta, shift, cutoff) = match words.get(1).copied().unwrap_or("") {
        "2" => {
            let e = element(line, words.get(2).copied())?;
            (Shape::Radial, [e, e], at(3, "eta")?, at(4, "the shift")?, at(5, "the cut-off")?)
        }
        kind @ ("3" | "9") => {
            let [a, b] = [element(line, words.get(2).copied())?, element(line, words.get(3).copied())?];
            let (eta, lambda, zeta) = (at(4, "eta")?, at(5, "lambda")?, at(6, "zeta")?);
            if !(-1.0..=1.0).contains(&lambda) {
                return wrong(line, format!("lambda is from -1 to 1, not {lambda}"));
            }
            if !(1.0..=MAX_ZETA).contains(&zeta) {
                return wrong(line, format!("zeta is from 1 to {MAX_ZETA}, not {zeta}"));
            }
            let shift = if words.len() > 8 { at(8, "the shift")? } else { 0.0 };
            let narrow = kind == "3";
            let shape = if narrow { Shape::Narrow { lambda, zeta } } else { Shape::Wide { lambda, zeta } };
            (shape, [a.min(b), a.max(b)], eta, shift, at(7, "the cut-off")?)
        }
        other => {
            let known = "the types 2, 3 and 9 are";
            return wrong(line, format!("symmetry functions of type `{other}` are not understood: {known}"));
        }
    };
    if cutoff <= 0.0 {
        return wrong(line, format!("the cut-off must be greater than zero, not {cutoff}"));
    }
    if eta < 0.0 {
        return wrong(line, format!("eta must not be less than zero, as {eta} is"));
    }
    Ok(SymmetryFunction { center, neighbors, shape, eta, shift, cutoff })
}

/// What `scaling.data` says: a line a function.
fn statistics(text: &str, network: &Network) -> Result<Vec<Statistics>, FormatError> {
    let mut found = Vec::with_capacity(network.functions.len());
    let (mut lines, mut last) = (lines(text), 0);
    let mut before = 0;
    for (k, f) in network.functions.iter().enumerate() {
        if k > 0 && network.functions[k - 1].center != f.center {
            before = k;
        }
        let (element, index) = (f.center + 1, k - before + 1);
        let symbol = &network.elements[f.center];
        let Some((line, words)) = lines.next() else {
            let message = format!(
                "expected a line for symmetry function {index} of {symbol}, found the end of the file"
            );
            return wrong(last + 1, message);
        };
        last = line;
        let named = [0, 1].map(|k: usize| words.get(k).and_then(|w| w.parse().ok()));
        if named != [Some(element), Some(index)] {
            let message = format!("expected `{element} {index} …`, symmetry function {index} of {symbol}");
            return wrong(line, message);
        }
        let at = |k: usize, what: &str| number(line, words.get(k).copied(), what);
        let (min, max, mean) = (at(2, "the least value")?, at(3, "the largest value")?, at(4, "the mean")?);
        let needed = network.scaling == Scaling::Sigma;
        let sigma = if needed || words.len() > 5 { at(5, "the standard deviation")? } else { 0.0 };
        let statistics = Statistics { min, max, mean, sigma };
        if network.scaling.spread(statistics) <= 0.0 {
            let what = if needed { "standard deviation" } else { "range of values" };
            return wrong(line, format!("the {what} is not greater than zero, and is divided by"));
        }
        found.push(statistics);
    }
    Ok(found)
}

/// What a file of weights says: a value a line, perhaps with the nodes between which it stands.
fn read_weights(text: &str, perceptron: &Perceptron) -> Result<Vec<f64>, FormatError> {
    let places: Vec<_> = perceptron.places().collect();
    let mut weights = vec![None; perceptron.weights()];
    let mut last = 0;
    for (order, (line, words)) in lines(text).enumerate() {
        last = line;
        let value = number(line, words.first().copied(), "a weight")?;
        let at = |k: usize| words.get(k).and_then(|w| w.parse::<usize>().ok());
        // (layers are numbered from 0, that of the inputs; nodes from 1)
        let index = match words.get(1).copied() {
            None => Some(order),
            Some("a") => (|| {
                let (from, j, to, k) = (at(3)?, at(4)?, at(5)?, at(6)?);
                let place = places.get(from)?;
                let fits =
                    to == from + 1 && (1..=place.before).contains(&j) && (1..=place.layer.nodes).contains(&k);
                fits.then(|| place.first + (j - 1) * place.layer.nodes + k - 1)
            })(),
            Some("b") => (|| {
                let place = places.get(at(3)?.checked_sub(1)?)?;
                let k = at(4).filter(|k| (1..=place.layer.nodes).contains(k))?;
                Some(place.bias + k - 1)
            })(),
            Some(other) => {
                return wrong(line, format!("expected `a` for a weight or `b` for a bias, found `{other}`"));
            }
        };
        match index.and_then(|k| weights.get_mut(k)) {
            Some(slot @ None) => *slot = Some(value),
            Some(Some(_)) => return wrong(line, "this weight has been given before"),
            None if words.len() > 1 => return wrong(line, "the network has no such nodes"),
            None => {
                return wrong(
                    line,
                    format!("the network has {} weights and biases, and this is one more", weights.len()),
                );
            }
        }
    }
    let given = weights.iter().flatten().count();
    if given < weights.len() {
        return wrong(
            last + 1,
            format!("the network has {} weights and biases, found {given}", weights.len()),
        );
    }
    Ok(weights.into_iter().flatten().collect())
}

/// The files of a potential: names and texts. Read again, they give the same bits.
///
/// ```
/// use md::formats::n2p2;
/// use potentials::many_body::neural::*;
///
/// let network = Network {
///     elements: vec!["Si".into()],
///     functions: usual_functions(1, 6.0, 2, &[1.0]),
///     ending: CutoffFunction { kind: CutoffKind::Poly2, inner: 0.0 },
///     scaling: Scaling::None,
///     range: [0.0, 1.0],
///     statistics: vec![Statistics { min: 0.0, max: 1.0, mean: 0.5, sigma: 0.2 }; 4],
///     perceptrons: vec![Perceptron {
///         inputs: 4,
///         layers: vec![
///             Layer { nodes: 2, activation: Activation::Tanh },
///             Layer { nodes: 1, activation: Activation::Linear },
///         ],
///         normalized: false,
///     }],
///     normalization: None,
///     atom_energies: vec![-1.5],
///     length_unit: 0.1,
///     energy_unit: 96.0,
/// };
/// // 4 × 2 weights and 2 biases, 2 weights and 1 bias
/// let files = n2p2::files(&n2p2::Potential { network, weights: vec![0.25; 13] });
/// let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
/// assert_eq!(names, ["input.nn", "scaling.data", "weights.014.data"]);
/// assert!(files[0].1.contains("symfunction_short Si 2 Si 0.1111111111111111 0 6\n"));
/// ```
pub fn files(potential: &Potential) -> Vec<(String, String)> {
    let n = &potential.network;
    let mut text = format!(
        "# A neural-network potential. Lengths are in {} nm, energies in {} kJ/mol.\nnumber_of_elements {}\nelements {}\n",
        n.length_unit,
        n.energy_unit,
        n.elements.len(),
        n.elements.join(" ")
    );
    for (element, energy) in n.elements.iter().zip(&n.atom_energies) {
        let _ = writeln!(text, "atom_energy {element} {energy}");
    }
    let _ = writeln!(text, "cutoff_type {} {}", n.ending.kind as usize, n.ending.inner);
    text += match n.scaling {
        Scaling::None => "",
        Scaling::Range => "scale_symmetry_functions\n",
        Scaling::Center => "center_symmetry_functions\n",
        Scaling::RangeAndCenter => "scale_symmetry_functions\ncenter_symmetry_functions\n",
        Scaling::Sigma => "scale_symmetry_functions_sigma\n",
    };
    let [a, b] = n.range;
    let _ = write!(text, "scale_min_short {a}\nscale_max_short {b}\n");
    if let Some(Normalization { mean_energy, energy, length }) = n.normalization {
        let _ = write!(text, "mean_energy {mean_energy}\nconv_energy {energy}\nconv_length {length}\n");
    }
    let layers = n.perceptrons.first().map_or(&[][..], |p| &p.layers);
    let hidden = layers.len().saturating_sub(1);
    let letter = |a: Activation| Activation::ALL.iter().find(|l| l.0 == a).map_or('l', |l| l.2);
    let list =
        |f: &dyn Fn(&Layer) -> String, layers: &[Layer]| layers.iter().map(f).collect::<Vec<_>>().join(" ");
    let _ = write!(
        text,
        "global_hidden_layers_short {hidden}\nglobal_nodes_short {}\nglobal_activation_short {}\n",
        list(&|l| l.nodes.to_string(), &layers[..hidden]),
        list(&|l| letter(l.activation).to_string(), layers)
    );
    for (element, perceptron) in n.elements.iter().zip(&n.perceptrons) {
        for (k, (layer, usual)) in perceptron.layers.iter().zip(layers).enumerate() {
            if layer.nodes != usual.nodes {
                let _ = writeln!(text, "element_nodes_short {element} {} {}", k + 1, layer.nodes);
            }
        }
    }
    if n.perceptrons.iter().any(|p| p.normalized) {
        text += "normalize_nodes\n";
    }
    for f in &n.functions {
        let [center, a, b] = [f.center, f.neighbors[0], f.neighbors[1]].map(|e| &n.elements[e]);
        let kind = f.shape.number();
        let SymmetryFunction { eta, shift, cutoff, .. } = f;
        let _ = match f.shape.angular() {
            None => writeln!(text, "symfunction_short {center} {kind} {a} {eta} {shift} {cutoff}"),
            Some(angular) => {
                let (lambda, zeta) = (angular.lambda, angular.zeta);
                writeln!(
                    text,
                    "symfunction_short {center} {kind} {a} {b} {eta} {lambda} {zeta} {cutoff} {shift}"
                )
            }
        };
    }
    let mut scaling =
        "# element, symmetry function, least value, largest value, mean, standard deviation\n".to_owned();
    let mut seen = vec![0; n.elements.len()];
    for (f, Statistics { min, max, mean, sigma }) in n.functions.iter().zip(&n.statistics) {
        seen[f.center] += 1;
        let _ = writeln!(scaling, "{} {} {min:e} {max:e} {mean:e} {sigma:e}", f.center + 1, seen[f.center]);
    }
    let mut files = vec![("input.nn".to_owned(), text), ("scaling.data".to_owned(), scaling)];
    let mut rest = potential.weights.iter();
    for (element, perceptron) in n.elements.iter().zip(&n.perceptrons) {
        let mut text =
            "# value, a: weight or b: bias, number, layer and node from which, layer and node to which\n"
                .to_owned();
        let mut number = 0;
        let mut next = || {
            number += 1;
            rest.next().map(|w| (w, number))
        };
        for (k, place) in (0..).zip(perceptron.places()) {
            for j in 1..=place.before {
                for to in 1..=place.layer.nodes {
                    let Some((w, number)) = next() else { continue };
                    let _ = writeln!(text, "{w:e} a {number} {k} {j} {} {to}", k + 1);
                }
            }
            for to in 1..=place.layer.nodes {
                let Some((w, number)) = next() else { continue };
                let _ = writeln!(text, "{w:e} b {number} {} {to}", k + 1);
            }
        }
        files.push((weights_file(element), text));
    }
    files
}

/// Writes the files of a potential into a folder, which is made if need be. Files that are there are replaced.
///
/// # Errors
/// What the file system says.
pub fn write(folder: &Path, potential: &Potential) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files(potential).into_iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}
