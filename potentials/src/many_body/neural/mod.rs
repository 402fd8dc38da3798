//! Networks over symmetry functions: high-dimensional neural-network potentials.

pub mod perceptron;
pub mod symmetry;

use crate::energy::{Energy, SiteNeighbor};
use crate::param::{About, Dimension, Param};
use crate::{Coefficient, Scalar, record};
pub use perceptron::{Activation, Layer, Perceptron, Place};
pub use symmetry::{
    Angular, Couple, CutoffFunction, CutoffKind, Group, Radial, Shape, Surroundings, SymmetryFunction,
};

/// E = Σᵢ N(G₁ … Gₙ): for each atom i, a perceptron of its element over symmetry functions of its neighbours, which
/// are scaled: G ↦ (G − Gmin)/(Gmax − Gmin), say.
///
/// - radial: G2 = Σⱼ u(rᵢⱼ),
/// - angular, wide: G9 = Σⱼₖ 2^(1−ζ) (1 + λ cos θᵢⱼₖ)^ζ u(rᵢⱼ) u(rᵢₖ), each pair of neighbours once,
/// - angular, narrow: G3 = the same with u(rⱼₖ) in each term,
///
/// where u(r) = e^(−η (r − rₛ)²) f(r) with a [cut-off function](CutoffFunction) f. What the functions and the layers
/// are is data ([`Network`]); the weights are the parameters, one row of the table each.
pub struct Neural;

record!(
    /// One weight or bias.
    Weight {
        /// Its value.
        weight
    }
);

impl Energy for Neural {
    const ABOUT: About = About {
        name: "neural",
        summary: "A neural network for each element over symmetry functions of an atom's neighbours; weights as in n2p2.",
        formula: "E = sum over atoms of N(G1, G2, ...), N a perceptron of the atom's element, \
                  each node of a layer f(bias + sum of weight x) over the nodes x before it; \
                  radial: G2 = sum over neighbors of u(r); \
                  angular: G9 = sum over pairs of neighbors of 2^(1 - zeta) (1 + lambda cos(theta))^zeta u(rij) u(rik), \
                  G3 = the same times u(rjk); u(r) = exp(-eta (r - rs)^2) f(r), f a cut-off function",
        source: "J. Behler and M. Parrinello, Phys. Rev. Lett. 98, 146401 (2007); J. Behler, J. Chem. Phys. 134, 074106 \
                 (2011), eqs. 4 to 9; files: A. Singraber, J. Behler and C. Dellago, J. Chem. Theory Comput. 15, 1827 (2019)",
        params: &[Param::new(
            "weight",
            Dimension::NONE,
            "weights and biases: no key, but the numbers in the files, or random ones",
        )
        .example(0.3)],
    };
    type Params<T: Copy> = Weight<T>;
    type Prepared<T: Copy> = Weight<T>;
    #[inline(always)]
    fn prepare<T: Scalar>(p: &Weight<T>) -> Weight<T> {
        *p
    }
}

/// What is known of a symmetry function's values in many configurations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// The least value.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sigma: f64,
}

impl Statistics {
    /// Of some values; of none, zeros.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        // (differences from one of them, so that equal values have no spread)
        let first = values.first().copied().unwrap_or(0.0);
        let mean = first + values.iter().map(|x| x - first).sum::<f64>() / n;
        let sigma = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(0.0);
        Statistics { min: fold(f64::min), max: fold(f64::max), mean, sigma }
    }
    /// The same with a standard deviation that can be divided by: in a crystal, all atoms are alike.
    pub fn spread(self) -> Self {
        Statistics { sigma: self.sigma.max(0.05 * self.mean.abs()).max(1e-3), ..self }
    }
}

/// How symmetry functions are scaled before they go into a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// G
    None,
    /// a + (b − a) (G − Gmin)/(Gmax − Gmin)
    Range,
    /// G − Gmean
    Center,
    /// a + (b − a) (G − Gmean)/(Gmax − Gmin)
    RangeAndCenter,
    /// a + (b − a) (G − Gmean)/σ
    Sigma,
}

/// How the energies of networks became what they were trained on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalization {
    /// The mean energy of an atom.
    pub mean_energy: f64,
    /// What energies were multiplied by.
    pub energy: f64,
    /// What lengths were multiplied by. (No value of a function depends on it.)
    pub length: f64,
}

/// Everything about networks but their weights. Lengths and energies are in units of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The elements: their symbols.
    pub elements: Vec<String>,
    /// The symmetry functions, in [order](SymmetryFunction::order).
    pub functions: Vec<SymmetryFunction>,
    /// How they end.
    pub ending: CutoffFunction,
    /// How they are scaled.
    pub scaling: Scaling,
    /// The ends a and b of the scaled range.
    pub range: [f64; 2],
    /// What is known of each function.
    pub statistics: Vec<Statistics>,
    /// The perceptron of each element.
    pub perceptrons: Vec<Perceptron>,
    /// How energies were normalised.
    pub normalization: Option<Normalization>,
    /// The energy of a free atom of each element, which is added.
    pub atom_energies: Vec<f64>,
    /// The unit of length.
    pub length_unit: f64,
    /// The unit of energy.
    pub energy_unit: f64,
}

/// The network of atoms of one element, ready to be evaluated in the units that [`Network`]'s are given in.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The symmetry functions.
    pub surroundings: Surroundings,
    /// How each is scaled: (G − from) × factor + to.
    pub scaling: Vec<Scaled>,
    /// The perceptron.
    pub perceptron: Perceptron,
    /// The number of its first weight.
    pub first_weight: usize,
    /// What its output is multiplied by.
    pub energy: f64,
    /// What is added to that.
    pub offset: f64,
}

/// (G − from) × factor + to
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// What is subtracted.
    pub from: f64,
    /// What the rest is multiplied by.
    pub factor: f64,
    /// What is added.
    pub to: f64,
}

impl Scaled {
    /// The scaled value.
    #[inline(always)]
    pub fn of<S: Scalar>(self, value: S) -> S {
        (value - self.from) * self.factor + self.to
    }
}

impl Scaling {
    /// Whether a and b are used.
    pub fn has_range(self) -> bool {
        !matches!(self, Scaling::None | Scaling::Center)
    }
    /// The spread that a function's deviation is divided by.
    pub fn spread(self, s: Statistics) -> f64 {
        match self {
            Scaling::None | Scaling::Center => 1.0,
            Scaling::Range | Scaling::RangeAndCenter => s.max - s.min,
            Scaling::Sigma => s.sigma,
        }
    }
    fn of(self, s: Statistics, [a, b]: [f64; 2]) -> Scaled {
        let (width, to) = if self.has_range() { (b - a, a) } else { (1.0, 0.0) };
        let from = match self {
            Scaling::None => 0.0,
            Scaling::Range => s.min,
            _ => s.mean,
        };
        Scaled { from, factor: width / self.spread(s), to }
    }
}

impl Network {
    /// How many weights and biases there are, of all elements together.
    pub fn weights(&self) -> usize {
        self.perceptrons.iter().map(Perceptron::weights).sum()
    }
    /// The functions around each element.
    pub fn surroundings(&self) -> Vec<Surroundings> {
        let around = |e: usize| {
            let own = self.functions.iter().filter(|f| f.center == e);
            Surroundings::new(own, self.ending, self.elements.len(), self.length_unit)
        };
        (0..self.elements.len()).map(around).collect()
    }
    /// The networks of all elements, ready to be evaluated.
    pub fn sites(&self) -> Vec<Site> {
        let (mut sites, mut first_weight) = (Vec::new(), 0);
        for (e, surroundings) in self.surroundings().into_iter().enumerate() {
            let own = self.functions.iter().zip(&self.statistics).filter(|(f, _)| f.center == e);
            let scaling = own.map(|(_, &s)| self.scaling.of(s, self.range)).collect();
            let perceptron = self.perceptrons[e].clone();
            let weights = perceptron.weights();
            let (per_unit, mean) = self.normalization.map_or((1.0, 0.0), |n| (1.0 / n.energy, n.mean_energy));
            let offset = (mean + self.atom_energies[e]) * self.energy_unit;
            let energy = per_unit * self.energy_unit;
            sites.push(Site { surroundings, scaling, perceptron, first_weight, energy, offset });
            first_weight += weights;
        }
        sites
    }
    /// What each weight is called: element, layer, and the numbers of the nodes (from 1), or `bias`.
    pub fn labels(&self) -> Vec<String> {
        let mut labels = Vec::with_capacity(self.weights());
        for (element, perceptron) in self.elements.iter().zip(&self.perceptrons) {
            for (layer, place) in (1..).zip(perceptron.places()) {
                let nodes = 1..=place.layer.nodes;
                for j in 1..=place.before {
                    labels.extend(nodes.clone().map(|k| format!("{element}.layer{layer}.weight{j}-{k}")));
                }
                labels.extend(nodes.map(|k| format!("{element}.layer{layer}.bias{k}")));
            }
        }
        labels
    }
}

impl Site {
    /// The energy of an atom with these neighbours, whose kinds are elements. All weights of the [`Network`] are given.
    pub fn energy<S: Scalar, P: Coefficient<S>>(
        &self,
        neighbors: &[SiteNeighbor<S>],
        weights: &[Weight<P>],
    ) -> S {
        let mut inputs = self.surroundings.values(neighbors);
        for (x, scaled) in inputs.iter_mut().zip(&self.scaling) {
            *x = scaled.of(*x);
        }
        let output = self.perceptron.output(inputs, |k| weights[self.first_weight + k].weight);
        output * self.energy + self.offset
    }
}

/// A usual set of symmetry functions for some elements (by their number), with the same cut-off c:
///
/// - for each element in the centre and each neighbour, `radial` functions of which the first is centred on the atom,
///   with η = 4/c², and the others are shells rₛ = k c/radial with η = (radial/c)²,
/// - for each element in the centre and each pair of neighbours, wide functions with λ = ±1 and each ζ of `zetas`,
///   with η = 1/c².
///
/// In [order](SymmetryFunction::order).
pub fn usual_functions(elements: usize, cutoff: f64, radial: usize, zetas: &[f64]) -> Vec<SymmetryFunction> {
    let mut functions = Vec::new();
    for center in 0..elements {
        for a in 0..elements {
            for k in 0..radial {
                let (eta, shift) = match k {
                    0 => (4.0 / (cutoff * cutoff), 0.0),
                    _ => ((radial as f64 / cutoff).powi(2), k as f64 * cutoff / radial as f64),
                };
                let neighbors = [a, a];
                functions.push(SymmetryFunction {
                    center,
                    neighbors,
                    shape: Shape::Radial,
                    eta,
                    shift,
                    cutoff,
                });
            }
            for b in a..elements {
                for &zeta in zetas {
                    for lambda in [-1.0, 1.0] {
                        let shape = Shape::Wide { lambda, zeta };
                        let (eta, neighbors) = (1.0 / (cutoff * cutoff), [a, b]);
                        functions.push(SymmetryFunction {
                            center,
                            neighbors,
                            shape,
                            eta,
                            shift: 0.0,
                            cutoff,
                        });
                    }
                }
            }
        }
    }
    functions.sort_by(SymmetryFunction::order);
    functions
}
