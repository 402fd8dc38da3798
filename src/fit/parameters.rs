//! Free parameters and the coordinates that they are optimised in.

use serde::{Deserialize, Serialize};

/// From a parameter θ to the coordinate u of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Transform {
    /// u = ln θ: θ stays positive, and equal steps are equal ratios.
    Logarithm,
    /// u = θ / scale.
    Linear(f64),
}

/// A parameter that is fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Free {
    /// Its name, as `md sensitivity` prints it.
    pub name: String,
    /// Where it begins.
    pub start: f64,
    /// How it is optimised.
    pub transform: Transform,
    /// What it may be, both included.
    pub bounds: [f64; 2],
    /// Mean and standard deviation of what is known beforehand.
    pub prior: Option<[f64; 2]>,
}

impl Free {
    /// A parameter without bounds and prior: optimised as a logarithm, or relative to where it begins.
    pub fn new(name: impl Into<String>, start: f64, logarithm: bool) -> Self {
        let (transform, low) = match logarithm && start > 0.0 {
            true => (Transform::Logarithm, 0.0),
            false if start != 0.0 => (Transform::Linear(start.abs()), f64::NEG_INFINITY),
            false => (Transform::Linear(1.0), f64::NEG_INFINITY),
        };
        Self { name: name.into(), start, transform, bounds: [low, f64::INFINITY], prior: None }
    }
    /// The coordinate of a value.
    pub fn coordinate(&self, value: f64) -> f64 {
        match self.transform {
            Transform::Logarithm => value.ln(),
            Transform::Linear(scale) => value / scale,
        }
    }
    /// The value of a coordinate.
    pub fn value(&self, u: f64) -> f64 {
        let value = match self.transform {
            Transform::Logarithm => u.exp(),
            Transform::Linear(scale) => u * scale,
        };
        // (exactly within its bounds, whatever rounding does)
        value.max(self.bounds[0]).min(self.bounds[1])
    }
    /// dθ/du
    pub fn slope(&self, u: f64) -> f64 {
        match self.transform {
            Transform::Logarithm => u.exp(),
            Transform::Linear(scale) => scale,
        }
    }
    /// What the coordinate may be.
    pub fn limits(&self) -> [f64; 2] {
        self.bounds.map(|x| self.coordinate(x))
    }
}
