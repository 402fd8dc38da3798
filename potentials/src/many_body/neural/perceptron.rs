//! Multilayer perceptrons.

use crate::scalar::{Coefficient, Scalar};
use std::ops::{Add, Mul};

/// What a node makes of the sum of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x
    Linear,
    /// tanh x
    Tanh,
    /// 1/(1 + e⁻ˣ)
    Logistic,
    /// ln(1 + eˣ)
    Softplus,
    /// max(x, 0)
    Relu,
    /// e^(−x²/2)
    Gaussian,
    /// cos x
    Cos,
    /// 1 − 1/(1 + e⁻ˣ)
    ReversedLogistic,
    /// e⁻ˣ
    Exp,
    /// x²
    Harmonic,
}

impl Activation {
    /// All of them, with their names and the letters that n2p2 has for them.
    pub const ALL: [(Activation, &'static str, char); 10] = [
        (Activation::Linear, "linear", 'l'),
        (Activation::Tanh, "tanh", 't'),
        (Activation::Logistic, "logistic", 's'),
        (Activation::Softplus, "softplus", 'p'),
        (Activation::Relu, "relu", 'r'),
        (Activation::Gaussian, "gaussian", 'g'),
        (Activation::Cos, "cos", 'c'),
        (Activation::ReversedLogistic, "reversed-logistic", 'S'),
        (Activation::Exp, "exp", 'e'),
        (Activation::Harmonic, "harmonic", 'h'),
    ];

    /// The formula.
    #[inline(always)]
    pub fn of<S: Scalar>(self, x: S) -> S {
        match self {
            Activation::Linear => x,
            Activation::Tanh => x.tanh(),
            // (by a function that does not overflow)
            Activation::Logistic => (x * 0.5).tanh() * 0.5 + 0.5,
            Activation::ReversedLogistic => (x * -0.5).tanh() * 0.5 + 0.5,
            Activation::Softplus => {
                let (zero, positive) = (S::constant(0.0), S::constant(0.0).lt(x));
                S::select(positive, x, zero) + (S::select(positive, -x, x).exp() + 1.0).ln()
            }
            Activation::Relu => x.relu(),
            Activation::Gaussian => (x.squared() * -0.5).exp(),
            Activation::Cos => x.cos(),
            Activation::Exp => (-x).exp(),
            Activation::Harmonic => x.squared(),
        }
    }
}

/// One layer of nodes, each of which sees all nodes of the layer before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// How many nodes.
    pub nodes: usize,
    /// What they do.
    pub activation: Activation,
}

/// Layers of nodes, the last with a single one. The weights stand elsewhere, layer by layer: w(j, k) from node j of the
/// layer before to node k, k fastest, and then the bias of each node k.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perceptron {
    /// How many numbers go in.
    pub inputs: usize,
    /// The layers.
    pub layers: Vec<Layer>,
    /// Whether the sum over the inputs of a node is divided by their number.
    pub normalized: bool,
}

/// One layer with where its weights stand: how many nodes are before it, and its first weight and first bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The layer.
    pub layer: Layer,
    /// Nodes of the layer before.
    pub before: usize,
    /// Its first weight.
    pub first: usize,
    /// Its first bias.
    pub bias: usize,
    /// What sums are multiplied by.
    pub factor: f64,
}

impl Place {
    /// What goes into node k, from what came out of the layer before: (b(k) + Σⱼ w(j, k) xⱼ), divided by the number of
    /// the j if that is wanted.
    #[inline(always)]
    pub fn sum<S, P: Copy>(&self, x: &[S], k: usize, weight: impl Fn(usize) -> P) -> S
    where
        S: Scalar + Mul<P, Output = S> + Add<P, Output = S>,
    {
        let mut sum = S::constant(0.0) + weight(self.bias + k);
        for (j, &x) in x.iter().enumerate() {
            sum = sum + x * weight(self.first + j * self.layer.nodes + k);
        }
        if self.factor == 1.0 { sum } else { sum * self.factor }
    }
}

impl Perceptron {
    /// How many weights and biases.
    pub fn weights(&self) -> usize {
        self.places().last().map_or(0, |p| p.bias + p.layer.nodes)
    }
    /// The layers with where their weights stand.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let (mut before, mut first) = (self.inputs, 0);
        self.layers.iter().map(move |&layer| {
            let factor = if self.normalized { 1.0 / before as f64 } else { 1.0 };
            let place = Place { layer, before, first, bias: first + before * layer.nodes, factor };
            (before, first) = (layer.nodes, place.bias + layer.nodes);
            place
        })
    }
    /// What comes out at the first node of the last layer; weight number k is `weight(k)`.
    pub fn output<S: Scalar, P: Coefficient<S>>(&self, inputs: Vec<S>, weight: impl Fn(usize) -> P) -> S {
        let mut x = inputs;
        for place in self.places() {
            let node = |k: usize| place.layer.activation.of(place.sum(&x, k, &weight));
            x = (0..place.layer.nodes).map(node).collect();
        }
        x.first().copied().unwrap_or(S::constant(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dual;

    /// Values by the standard library, and slopes written out.
    #[test]
    fn activations() {
        for x in [-3.0, -0.7, 0.0, 0.4, 2.5f64] {
            let logistic = 1.0 / (1.0 + (-x).exp());
            for (activation, value, slope) in [
                (Activation::Linear, x, 1.0),
                (Activation::Tanh, x.tanh(), 1.0 / x.cosh().powi(2)),
                (Activation::Logistic, logistic, logistic * (1.0 - logistic)),
                (Activation::Softplus, x.exp().ln_1p(), logistic),
                (Activation::Relu, x.max(0.0), if x > 0.0 { 1.0 } else { 0.0 }),
                (Activation::Gaussian, (-0.5 * x * x).exp(), -x * (-0.5 * x * x).exp()),
                (Activation::Cos, x.cos(), -x.sin()),
                (Activation::ReversedLogistic, 1.0 - logistic, logistic * (logistic - 1.0)),
                (Activation::Exp, (-x).exp(), -(-x).exp()),
                (Activation::Harmonic, x * x, 2.0 * x),
            ] {
                let found = activation.of(Dual::variable(x));
                assert!((found.value - value).abs() < 1e-15 * value.abs().max(1.0), "{activation:?} {x}");
                assert!((found.tangent - slope).abs() < 2e-15 * slope.abs().max(1.0), "{activation:?} {x}");
            }
        }
        // far out, nothing overflows
        for (activation, ..) in Activation::ALL.into_iter().filter(|a| a.0 != Activation::Exp) {
            for x in [-800.0, 800.0] {
                let found = activation.of(Dual::variable(x));
                assert!(found.value.is_finite() && found.tangent.is_finite(), "{activation:?} {x}");
            }
        }
    }

    /// Two inputs, two hidden nodes, one output, on the page: n2p2's order of weights.
    #[test]
    fn a_small_network() {
        let layers = vec![
            Layer { nodes: 2, activation: Activation::Harmonic },
            Layer { nodes: 1, activation: Activation::Linear },
        ];
        let mut net = Perceptron { inputs: 2, layers, normalized: false };
        // w(1,1), w(1,2), w(2,1), w(2,2), b(1), b(2); w(1), w(2), b
        let w = [1.0, 2.0, -1.0, 0.5, 0.25, -1.0, 3.0, -2.0, 10.0];
        assert_eq!(net.weights(), w.len());
        // node 1: 1·2 − 1·4 + ¼ = −1.75, squared 3.0625; node 2: 2·2 + ½·4 − 1 = 5, squared 25
        let e: f64 = net.output(vec![2.0, 4.0], |k| w[k]);
        assert_eq!(e, 3.0 * 3.0625 - 2.0 * 25.0 + 10.0);
        // each sum halved: 0.765625 and 6.25
        net.normalized = true;
        let e: f64 = net.output(vec![2.0, 4.0], |k| w[k]);
        assert_eq!(e, (3.0 * 0.765625 - 2.0 * 6.25 + 10.0) / 2.0);
    }
}
