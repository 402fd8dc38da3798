//! Normal modes: the eigenvectors of the Hessian, weighted by the masses.

use super::eigen::{self, Lowest, Recurrence};
use super::{Point, ResponseError, Rigid, RigidMotion};
use nalgebra::DMatrix;

/// One mode.
#[derive(Clone, Debug)]
pub struct Mode {
    /// The square of its angular frequency, in 1/ps²; negative where the energy falls along it.
    pub eigenvalue: f64,
    /// √m times the displacement of each atom: of length 1.
    pub vector: Vec<f64>,
    /// ‖D v − λ v‖.
    pub residual: f64,
    /// Which motion of the whole it is, if it is one.
    pub rigid: Option<Rigid>,
    /// |∂μ/∂Q|² of the dipole moment along it, in e²/u.
    pub intensity: f64,
}

impl Mode {
    /// The angular frequency in 1/ps; negative for an imaginary one, as is the custom.
    pub fn frequency(&self) -> f64 {
        frequency(self.eigenvalue)
    }
    /// The displacement of each atom, of which the largest is 1.
    pub fn displacements(&self, masses: &[f64]) -> Vec<[f64; 3]> {
        let unweighted = |(x, m): (&[f64; 3], &f64)| x.map(|x| x / m.sqrt());
        let mut moves: Vec<[f64; 3]> = self.vector.as_chunks().0.iter().zip(masses).map(unweighted).collect();
        let size = |d: &[f64; 3]| d.iter().map(|x| x * x).sum::<f64>().sqrt();
        let largest = moves.iter().map(size).fold(0.0, f64::max);
        if largest > 0.0 {
            moves.iter_mut().flatten().for_each(|x| *x /= largest);
        }
        moves
    }
    /// How many atoms take part: 1/(N Σ |v_i|⁴) of them all, 1 where all move alike.
    pub fn participation(&self) -> f64 {
        let squares: Vec<f64> =
            self.vector.as_chunks::<3>().0.iter().map(|v| v.iter().map(|x| x * x).sum()).collect();
        1.0 / (squares.len() as f64 * squares.iter().map(|x| x * x).sum::<f64>())
    }
}

/// The root, with its sign.
pub fn frequency(eigenvalue: f64) -> f64 {
    eigenvalue.abs().sqrt().copysign(eigenvalue)
}

/// How many modes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// All of them, of the whole matrix.
    All,
    /// The lowest beside those of the whole.
    Lowest(usize),
}

impl Point<'_> {
    /// Normal modes, lowest first; motions of the whole come before all others.
    ///
    /// `told` is called with how many are found of how many.
    ///
    /// # Errors
    /// Those of the evaluator, or modes that are not found.
    pub fn modes(
        &mut self,
        count: Count,
        mut told: impl FnMut(usize, usize),
    ) -> Result<Vec<Mode>, ResponseError> {
        let rigid = self.rigid_motions()?;
        let n = 3 * self.atoms();
        let left = n - rigid.len();
        let vibrating = match count {
            Count::All => {
                let mut done = 0;
                // (motions of the whole are lifted out of the way)
                let scale = self.lifted(&rigid)?;
                let found = eigen::all::<ResponseError>(n, |v| {
                    done += 1;
                    told(done, n);
                    self.deflated(&rigid, scale, v)
                })?;
                (0..left).map(|k| (found.values[k], column(&found.vectors, k), found.residuals[k])).collect()
            }
            Count::Lowest(count) => {
                let scale = self.lifted(&rigid)?;
                let lowest = Lowest { count: count.min(left), tolerance: 1e-8, products: 200_000 };
                let found = lowest.find::<ResponseError>(
                    n,
                    |v| self.deflated(&rigid, scale, v),
                    |converged| told(converged, count.min(left)),
                )?;
                let each = 0..found.values.len();
                each.map(|k| (found.values[k], column(&found.vectors, k), found.residuals[k]))
                    .collect::<Vec<_>>()
            }
        };
        let charges = self.weighted_charges();
        let still = rigid.into_iter().map(|r| {
            let RigidMotion { motion, vector, eigenvalue } = r;
            Mode { eigenvalue, vector, residual: eigenvalue.abs(), rigid: Some(motion), intensity: 0.0 }
        });
        let vibrating = vibrating.into_iter().map(|(eigenvalue, vector, residual)| Mode {
            eigenvalue,
            vector,
            residual,
            rigid: None,
            intensity: 0.0,
        });
        let mut modes: Vec<Mode> = still.chain(vibrating).collect();
        for mode in &mut modes {
            mode.intensity = charges.iter().map(|q| super::dot(q, &mode.vector).powi(2)).sum();
        }
        Ok(modes)
    }

    /// D v of the Hessian weighted by masses.
    fn weighted(&mut self, v: &[f64]) -> Result<Vec<f64>, ResponseError> {
        let weights: Vec<f64> = self.masses.iter().flat_map(|m| [1.0 / m.sqrt(); 3]).collect();
        let moves: Vec<f64> = v.iter().zip(&weights).map(|(x, w)| x * w).collect();
        let mut product = self.product(&moves)?;
        product.iter_mut().zip(&weights).for_each(|(x, w)| *x *= w);
        Ok(product)
    }

    /// A value above all eigenvalues, roughly.
    fn lifted(&mut self, rigid: &[RigidMotion]) -> Result<f64, ResponseError> {
        if rigid.is_empty() {
            return Ok(0.0);
        }
        let start = eigen::random(3 * self.atoms(), 0);
        let found = Recurrence::new::<ResponseError>(&start, 12, |v| self.weighted(v))?;
        Ok(2.0 * found.spectrum().iter().fold(0.0, |m: f64, (x, _)| m.max(x.abs())))
    }

    /// P D P v + σ (1 − P) v, where P takes the motions of the whole out.
    fn deflated(&mut self, rigid: &[RigidMotion], lifted: f64, v: &[f64]) -> Result<Vec<f64>, ResponseError> {
        let along: Vec<f64> = rigid.iter().map(|r| super::dot(&r.vector, v)).collect();
        let mut x = v.to_vec();
        let take = |x: &mut [f64], along: &[f64], by: f64| {
            for (r, along) in rigid.iter().zip(along) {
                x.iter_mut().zip(&r.vector).for_each(|(x, r)| *x += by * along * r);
            }
        };
        take(&mut x, &along, -1.0);
        let mut product = self.weighted(&x)?;
        let out: Vec<f64> = rigid.iter().map(|r| super::dot(&r.vector, &product)).collect();
        take(&mut product, &out, -1.0);
        take(&mut product, &along, lifted);
        Ok(product)
    }

    /// For each axis q/√m of all atoms: the change of the dipole moment with weighted displacements.
    fn weighted_charges(&self) -> [Vec<f64>; 3] {
        let charges = self.evaluator.charges_of_atoms();
        std::array::from_fn(|axis| {
            let of = |(q, m): (&f64, &f64)| {
                let mut x = [0.0; 3];
                x[axis] = q / m.sqrt();
                x
            };
            charges.iter().zip(self.masses).map(of).collect::<Vec<_>>().into_flattened()
        })
    }

    /// The density of states and the infrared spectrum, without any mode: by Lanczos recurrences, from random vectors for
    /// the former and from the charges along each axis for the latter. The sum of all states is 3 N less the motions of
    /// the whole; that of the infrared weights is Σ q²/m.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn spectrum(
        &mut self,
        steps: usize,
        samples: usize,
        mut told: impl FnMut(usize, usize),
    ) -> Result<Spectrum, ResponseError> {
        let rigid = self.rigid_motions()?;
        let n = 3 * self.atoms();
        let charges = self.weighted_charges();
        let all = (samples + 3) * steps;
        let mut done = 0;
        let mut from = |start: &[f64]| {
            let mut start = start.to_vec();
            for r in &rigid {
                let along = super::dot(&start, &r.vector);
                start.iter_mut().zip(&r.vector).for_each(|(x, r)| *x -= along * r);
            }
            let recurrence = Recurrence::new::<ResponseError>(&start, steps, |v| {
                done += 1;
                told(done, all);
                self.deflated(&rigid, 0.0, v)
            });
            recurrence.map(|r| r.spectrum())
        };
        let mut states = Vec::new();
        for sample in 0..samples {
            let found = from(&eigen::random(n, 100 + sample as u64))?;
            let total: f64 = found.iter().map(|(_, w)| w).sum();
            let each = (n - rigid.len()) as f64 / (total * samples as f64);
            states.extend(found.into_iter().map(|(x, w)| (frequency(x), w * each)));
        }
        let mut infrared = Vec::new();
        for axis in &charges {
            infrared.extend(from(axis)?.into_iter().map(|(x, w)| (frequency(x), w)));
        }
        Ok(Spectrum { states, infrared })
    }
}

/// Lines of a spectrum: angular frequencies in 1/ps, and weights.
#[derive(Clone, Debug, Default)]
pub struct Spectrum {
    /// States.
    pub states: Vec<(f64, f64)>,
    /// |∂μ/∂Q|², in e²/u.
    pub infrared: Vec<(f64, f64)>,
}

impl Spectrum {
    /// The lines of modes, without those of the whole.
    pub fn of_modes(modes: &[Mode]) -> Self {
        let vibrating = || modes.iter().filter(|m| m.rigid.is_none());
        Self {
            states: vibrating().map(|m| (m.frequency(), 1.0)).collect(),
            infrared: vibrating().map(|m| (m.frequency(), m.intensity)).collect(),
        }
    }
}

/// Lines as a curve at these places, each a Gaussian of this width (standard deviation) and of its weight as area.
pub fn broadened(lines: &[(f64, f64)], width: f64, at: &[f64]) -> Vec<f64> {
    let norm = 1.0 / (width * std::f64::consts::TAU.sqrt());
    at.iter()
        .map(|x| {
            let one = |(line, weight): &(f64, f64)| {
                let d = (x - line) / width;
                if d.abs() < 8.0 { weight * norm * (-0.5 * d * d).exp() } else { 0.0 }
            };
            lines.iter().map(one).sum()
        })
        .collect()
}

fn column(matrix: &DMatrix<f64>, k: usize) -> Vec<f64> {
    matrix.column(k).iter().copied().collect()
}
