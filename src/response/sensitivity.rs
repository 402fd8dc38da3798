//! How results depend on the parameters of the energy.
//!
//! A result R(θ) at a minimum x(θ) changes because the energy there does, and because the minimum moves: by
//! dx/dθ = H⁻¹ ∂F/∂θ (the implicit function theorem; nothing is differentiated through the steps of the minimiser). Instead
//! of one solution of equations for every parameter there is one for the result, the adjoint H⁻¹ ∂R/∂x, and one backward
//! pass through all parameters.
//!
//! | result | ∂R/∂θ at rest | what the adjoint is of |
//! |---|---|---|
//! | energy | ∂E/∂θ | nothing: forces are zero |
//! | pressure P | −∂²E/∂V∂θ | how a dilatation moves atoms |
//! | edge of the cell at its pressure | by the compliances | the strain that answers the stress |
//! | distance of two atoms | 0 | ∂r/∂x |
//! | frequency, ω² = d·H d | d²(∂E/∂θ)/dt² along d | d²F/dt² along d |
//! | elastic constant | the same along a relaxed strain, and what the stress adds | the same |
//!
//! Second derivatives along a line are first differences of exact derivatives, extrapolated ([`Richardson`]).

use super::elastic::unit_strain;
use super::modes::{Count, Mode};
use super::{Point, ResponseError};
use crate::autodiff::Richardson;
use crate::forces::ParameterSlope;
use nalgebra::Matrix3;

/// A number that depends on parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The energy at the minimum, in kJ/mol.
    Energy,
    /// The pressure at rest, in kJ/mol/nm³.
    Pressure,
    /// The length of an edge of the cell at the same stress, in nm.
    Edge(usize),
    /// An elastic constant by its Voigt indices (from 0), in kJ/mol/nm³.
    Elastic(usize, usize),
    /// The angular frequency of a vibration, counted from 0 beside motions of the whole, in 1/ps.
    Frequency(usize),
    /// The distance of two atoms (from 0) at the minimum, in nm.
    Distance(usize, usize),
}

/// A result with its derivatives.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// The result.
    pub value: f64,
    /// Its derivatives: in `slope` what they are in each parameter.
    pub slopes: Vec<ParameterSlope>,
}

type Moves = Vec<[f64; 3]>;
type Strain = [[f64; 3]; 3];

impl Point<'_> {
    /// A result at this minimum and its derivatives in all parameters.
    ///
    /// # Errors
    /// A configuration that is no minimum, or a result that this system has not.
    pub fn sensitivity(&mut self, outcome: &Outcome) -> Result<Sensitivity, ResponseError> {
        let rest = vec![[0.0; 3]; self.atoms()];
        let value = self.outcome(outcome)?;
        let mut slopes = self.slopes(&rest, [[0.0; 3]; 3])?;
        let derivatives: Vec<f64> = match outcome {
            Outcome::Energy => slopes.iter().map(|s| s.slope).collect(),
            Outcome::Pressure => {
                let strain = dilatation(1.0 / (3.0 * self.volume()?));
                self.relaxed_along(strain)?.iter().map(|x| -x).collect()
            }
            Outcome::Edge(axis) => {
                let volume = self.volume()?;
                let edge = self.state.cell.basis()[*axis];
                let elastic = self.elastic(|_| ())?;
                // a strain ε changes the edge by e·ε e/|e|: the stress of which that is the answer
                let weights = std::array::from_fn(|k| {
                    let e = unit_strain(k);
                    let row = |a: usize| (0..3).map(|b| edge[a] * e[a][b] * edge[b]).sum::<f64>();
                    (row(0) + row(1) + row(2)) / value
                });
                let strain = elastic.answer(weights).ok_or_else(|| {
                    let message = "the crystal does not resist some strain: its edges are not fixed";
                    ResponseError::Senseless(message.into())
                })?;
                self.relaxed_along(strain)?.iter().map(|x| -x / volume).collect()
            }
            Outcome::Distance(i, j) => {
                let d = self.vector(*i, *j);
                let r = value;
                let mut gradient = rest.clone();
                for c in 0..3 {
                    gradient[*i][c] -= d[c] / r;
                    gradient[*j][c] += d[c] / r;
                }
                let adjoint = self.relaxation(&gradient)?;
                let slopes = self.slopes(&adjoint, [[0.0; 3]; 3])?;
                slopes.iter().map(|s| -s.along).collect()
            }
            Outcome::Frequency(number) => self.frequency_slopes(*number)?,
            Outcome::Elastic(a, b) => {
                let mut of = |indices: &[usize]| -> Result<Vec<f64>, ResponseError> {
                    let mut strain = [[0.0; 3]; 3];
                    for &k in indices {
                        let e = unit_strain(k);
                        for x in 0..3 {
                            for y in 0..3 {
                                strain[x][y] += e[x][y];
                            }
                        }
                    }
                    self.stiffness_slopes(strain)
                };
                if a == b {
                    of(&[*a])?
                } else {
                    // C_ab from the stiffness against both strains at once
                    let (both, one, other) = (of(&[*a, *b])?, of(&[*a])?, of(&[*b])?);
                    (0..both.len()).map(|k| 0.5 * (both[k] - one[k] - other[k])).collect()
                }
            }
        };
        slopes.iter_mut().zip(derivatives).for_each(|(s, x)| (s.slope, s.along) = (x, 0.0));
        Ok(Sensitivity { value, slopes })
    }

    /// The result itself.
    ///
    /// # Errors
    /// A result that this system has not.
    pub fn outcome(&mut self, outcome: &Outcome) -> Result<f64, ResponseError> {
        let size = |d: [f64; 3]| d.iter().map(|x| x * x).sum::<f64>().sqrt();
        Ok(match outcome {
            Outcome::Energy => self.forces()?.energy(),
            Outcome::Pressure => {
                let (volume, w) = (self.volume()?, self.forces()?.virial);
                (w[0] + w[1] + w[2]) / (3.0 * volume)
            }
            Outcome::Edge(axis) => {
                self.volume()?;
                size(self.state.cell.basis()[*axis])
            }
            Outcome::Distance(i, j) => {
                let r = size(self.vector(*i, *j));
                if *i == *j || r == 0.0 {
                    let message = "a distance is one between two atoms at different places";
                    return Err(ResponseError::Senseless(message.into()));
                }
                r
            }
            Outcome::Frequency(number) => self.vibrations(*number)?[*number].frequency(),
            Outcome::Elastic(a, b) => self.elastic(|_| ())?.constants[(*a, *b)],
        })
    }

    /// The vector from atom i to the nearest image of atom j.
    fn vector(&self, i: usize, j: usize) -> [f64; 3] {
        let cell = &self.state.cell;
        cell.cartesian(cell.nearest(self.state.positions.displacement(i, j)))
    }

    /// Vibrations up to this one at least, whose frequency must be real.
    fn vibrations(&mut self, number: usize) -> Result<Vec<Mode>, ResponseError> {
        let all = 3 * self.atoms() <= 600;
        let count = if all { Count::All } else { Count::Lowest(number + 4) };
        let mut modes = self.modes(count, |_, _| ())?;
        modes.retain(|m| m.rigid.is_none());
        let message = match modes.get(number) {
            Some(mode) if mode.frequency() > 0.0 => return Ok(modes),
            Some(_) => "the configuration is no minimum: that frequency is not real".to_owned(),
            None => {
                format!("there are {} vibrations, so that there is no number {}", modes.len(), number + 1)
            }
        };
        Err(ResponseError::Senseless(message))
    }

    /// The change of ∂E/∂θ along a strain that atoms follow.
    fn relaxed_along(&mut self, strain: Strain) -> Result<Vec<f64>, ResponseError> {
        let moves = self.following(strain)?;
        Ok(self.slopes(&moves, strain)?.iter().map(|s| s.along).collect())
    }

    /// d²/dt² of ∂E/∂θ along a line, and what the second derivative of the forces along it adds by moving the minimum.
    fn second_slopes(&mut self, moves: &Moves, strain: Strain) -> Result<Vec<f64>, ResponseError> {
        let cell = self.state.cell.basis();
        let reach = cell.iter().flatten().fold(0.0, |m: f64, x| m.max(x.abs())).min(1.0);
        let fastest = moves
            .iter()
            .flatten()
            .chain(&strain.as_flattened().iter().map(|e| e * reach).collect::<Vec<_>>())
            .fold(0.0, |m: f64, x| m.max(x.abs()));
        let of_terms = self.evaluator.terms().iter().map(|t| t.parameters().values().len());
        let parameters = of_terms.sum::<usize>() + self.evaluator.charges().values.len();
        let mut failed = None;
        let mut at = |t: f64| -> Vec<f64> {
            let mut found = || -> Result<Vec<f64>, ResponseError> {
                let state = self.moved(moves, strain, t)?;
                // the velocity of the path (1 + tε)(x + tu), as motion and strain of what is there
                let e = Matrix3::from_fn(|a, b| strain[a][b]);
                let stretched = Matrix3::identity() + e * t;
                let rate = e * stretched.try_inverse().unwrap_or(Matrix3::identity());
                let strain = std::array::from_fn(|a| std::array::from_fn(|b| rate[(a, b)]));
                let moves: Moves = moves
                    .iter()
                    .map(|u| std::array::from_fn(|a| (0..3).map(|b| stretched[(a, b)] * u[b]).sum()))
                    .collect();
                let mut there = Point::new(self.evaluator, &state, self.masses);
                let mut all: Vec<f64> = there.slopes(&moves, strain)?.iter().map(|s| s.along).collect();
                all.extend(there.tangents(&moves, strain)?.forces.as_flattened());
                Ok(all)
            };
            found().unwrap_or_else(|e| {
                failed = Some(e);
                vec![f64::NAN; parameters + 3 * moves.len()]
            })
        };
        let step = if fastest > 0.0 { 4e-3 / fastest } else { 1.0 };
        let differences = Richardson { step, levels: 6, tables: 2, enough: 1e-11, scale: 0.0 };
        let slopes = differences.derivatives(&mut at, 0.0);
        if let Some(error) = failed {
            return Err(error);
        }
        let (direct, forces): (Vec<f64>, Vec<f64>) = (
            slopes[..parameters].iter().map(|s| s.value).collect(),
            slopes[parameters..].iter().map(|s| s.value).collect(),
        );
        let adjoint = self.relaxation(forces.as_chunks().0)?;
        let indirect = self.slopes(&adjoint, [[0.0; 3]; 3])?;
        Ok(direct.iter().zip(indirect).map(|(a, b)| a + b.along).collect())
    }

    /// Derivatives of an angular frequency; where several are equal, of their mean.
    fn frequency_slopes(&mut self, number: usize) -> Result<Vec<f64>, ResponseError> {
        let modes = self.vibrations(number)?;
        let mode = &modes[number];
        let alike: Vec<_> =
            modes.iter().filter(|m| (m.eigenvalue / mode.eigenvalue - 1.0).abs() < 1e-7).collect();
        let mut sum: Vec<f64> = Vec::new();
        for m in &alike {
            let unweighted = |(x, mass): (&[f64; 3], &f64)| x.map(|x| x / mass.sqrt());
            let moves = m.vector.as_chunks().0.iter().zip(self.masses).map(unweighted).collect();
            let slopes = self.second_slopes(&moves, [[0.0; 3]; 3])?;
            sum.resize(slopes.len(), 0.0);
            sum.iter_mut().zip(slopes).for_each(|(a, b)| *a += b);
        }
        let each = 1.0 / (2.0 * mode.frequency() * alike.len() as f64);
        Ok(sum.iter().map(|x| x * each).collect())
    }

    /// Derivatives of ε:C:ε with the relaxed elastic constants.
    fn stiffness_slopes(&mut self, strain: Strain) -> Result<Vec<f64>, ResponseError> {
        let volume = self.volume()?;
        let moves = self.following(strain)?;
        let second = self.second_slopes(&moves, strain)?;
        // what the stress adds: W:(ε tr ε − ε²)/V
        let trace = strain[0][0] + strain[1][1] + strain[2][2];
        let added: Strain = std::array::from_fn(|a| {
            std::array::from_fn(|b| {
                trace * strain[a][b] - (0..3).map(|k| strain[a][k] * strain[k][b]).sum::<f64>()
            })
        });
        let of_stress = self.relaxed_along(added)?;
        Ok(second.iter().zip(of_stress).map(|(a, b)| (a - b) / volume).collect())
    }
}

fn dilatation(x: f64) -> Strain {
    [[x, 0.0, 0.0], [0.0, x, 0.0], [0.0, 0.0, x]]
}
