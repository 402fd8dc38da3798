//! Elastic constants: how stress answers to strain, with atoms free to follow.
//!
//! A strain ε moves atoms out of balance by forces Ḟ(ε); they follow by u = H⁻¹ Ḟ(ε), one solution of linear equations
//! with the Hessian (implicit differentiation of the minimum). The constants are what the stress does along both,
//! Cᵢⱼₖₗ = ∂σᵢⱼ/∂εₖₗ: exact derivatives, no strain is ever applied. Under a pressure these are the coefficients of stress and
//! strain (D. C. Wallace, Thermodynamics of Crystals, ch. 2; B in G. V. Sin'ko and N. A. Smirnov, J. Phys.: Condens. Matter
//! 14, 6989 (2002)), which decide on stability; without stress they are the second derivatives of the energy.

use super::{Point, ResponseError};
use nalgebra::Matrix6;

/// The components of symmetric tensors in Voigt's order.
pub const VOIGT: [[usize; 2]; 6] = [[0, 0], [1, 1], [2, 2], [1, 2], [0, 2], [0, 1]];
/// Where these stand in a virial (xx yy zz xy xz yz).
const IN_VIRIAL: [usize; 6] = [0, 1, 2, 5, 4, 3];

/// Elastic constants, in kJ/mol/nm³ unless said otherwise.
#[derive(Clone, Debug)]
pub struct Elastic {
    /// With atoms free to follow, by Voigt's indices.
    pub constants: Matrix6<f64>,
    /// With atoms strained like a continuum (what Born's sums give).
    pub unrelaxed: Matrix6<f64>,
    /// The stress, in Voigt's order; positive when it pulls.
    pub stress: [f64; 6],
    /// The largest difference of constants that should be equal; an anisotropic stress makes them unequal.
    pub asymmetry: f64,
}

/// The symmetric strain of a Voigt index: shear is γ = 2ε.
pub fn unit_strain(index: usize) -> [[f64; 3]; 3] {
    let [a, b] = VOIGT[index];
    let mut strain = [[0.0; 3]; 3];
    strain[a][b] += 0.5;
    strain[b][a] += 0.5;
    strain
}

impl Point<'_> {
    /// The volume, of a cell that has one.
    ///
    /// # Errors
    /// A cell that is not periodic along all of its vectors.
    pub fn volume(&self) -> Result<f64, ResponseError> {
        let cell = &self.state.cell;
        let volume = cell.volume().filter(|_| cell.periodic() == [true; 3]);
        volume.ok_or_else(|| {
            let message = "there is no stress without a cell that is periodic along all of its vectors";
            ResponseError::Senseless(message.into())
        })
    }

    /// The stress, in Voigt's order; positive when it pulls.
    ///
    /// # Errors
    /// A cell that is not periodic along all of its vectors.
    pub fn stress(&mut self) -> Result<[f64; 6], ResponseError> {
        let (volume, virial) = (self.volume()?, self.forces()?.virial);
        Ok(IN_VIRIAL.map(|w| -virial[w] / volume))
    }

    /// How atoms follow a strain: H⁻¹ Ḟ.
    ///
    /// # Errors
    /// A configuration that is no minimum.
    pub fn following(&mut self, strain: [[f64; 3]; 3]) -> Result<Vec<[f64; 3]>, ResponseError> {
        let rest = vec![[0.0; 3]; self.atoms()];
        let forces = self.tangents(&rest, strain)?.forces;
        self.balanced(&forces)
    }

    /// How atoms answer the forces of a strain.
    fn balanced(&mut self, forces: &[[f64; 3]]) -> Result<Vec<[f64; 3]>, ResponseError> {
        // (in a crystal where every atom is a centre of symmetry these are rounding errors)
        let typical =
            self.stiffness()? * self.state.cell.basis()[0].iter().map(|x| x * x).sum::<f64>().sqrt();
        if forces.as_flattened().iter().all(|f| f.abs() <= 1e-11 * typical) {
            return Ok(vec![[0.0; 3]; self.atoms()]);
        }
        self.relaxation(forces)
    }

    /// All 21 elastic constants.
    ///
    /// # Errors
    /// A cell that is not periodic, or a configuration that is no minimum.
    pub fn elastic(&mut self, mut told: impl FnMut(usize)) -> Result<Elastic, ResponseError> {
        let volume = self.volume()?;
        let at = self.forces()?;
        let rest = vec![[0.0; 3]; self.atoms()];
        let (mut constants, mut unrelaxed) = (Matrix6::zeros(), Matrix6::zeros());
        for k in 0..6 {
            let strain = unit_strain(k);
            let trace = strain[0][0] + strain[1][1] + strain[2][2];
            let column = |matrix: &mut Matrix6<f64>, virial: [f64; 6]| {
                for a in 0..6 {
                    let w = IN_VIRIAL[a];
                    // σ = −W/V, of which the volume changes as well
                    matrix[(a, k)] = (at.virial[w] * trace - virial[w]) / volume;
                }
            };
            let affine = self.tangents(&rest, strain)?;
            column(&mut unrelaxed, affine.virial);
            let moves = self.balanced(&affine.forces)?;
            column(&mut constants, self.tangents(&moves, strain)?.virial);
            told(k + 1);
        }
        let asymmetry = (constants - constants.transpose()).amax();
        let symmetric = |m: Matrix6<f64>| (m + m.transpose()) * 0.5;
        Ok(Elastic {
            constants: symmetric(constants),
            unrelaxed: symmetric(unrelaxed),
            stress: IN_VIRIAL.map(|w| -at.virial[w] / volume),
            asymmetry,
        })
    }
}

/// Moduli of a polycrystal: bounds and their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modulus {
    /// Strains alike everywhere (an upper bound).
    pub voigt: f64,
    /// Stresses alike everywhere (a lower bound).
    pub reuss: f64,
}

impl Modulus {
    /// Hill's mean of both.
    pub fn hill(&self) -> f64 {
        0.5 * (self.voigt + self.reuss)
    }
}

impl Elastic {
    /// Eigenvalues of the constants (shear in the norm of tensors, so that they do not depend on the axes), ascending: the
    /// crystal is stable where all are positive (F. Mouhot and F.-X. Coudert, Phys. Rev. B 90, 224104 (2014)).
    pub fn stiffnesses(&self) -> [f64; 6] {
        let factor = |k: usize| if k < 3 { 1.0 } else { 2f64.sqrt() };
        let matrix = Matrix6::from_fn(|a, b| self.constants[(a, b)] * factor(a) * factor(b));
        let mut values: [f64; 6] = matrix.symmetric_eigenvalues().into();
        values.sort_by(f64::total_cmp);
        values
    }
    /// The inverse of the constants, if there is one.
    pub fn compliances(&self) -> Option<Matrix6<f64>> {
        self.constants.try_inverse()
    }
    /// The symmetric strain that answers a stress (in Voigt's order), if the constants have an inverse.
    pub fn answer(&self, stress: [f64; 6]) -> Option<[[f64; 3]; 3]> {
        let gamma = self.compliances()? * nalgebra::Vector6::from(stress);
        let mut strain = [[0.0; 3]; 3];
        for k in 0..6 {
            let unit = unit_strain(k);
            for a in 0..3 {
                for b in 0..3 {
                    strain[a][b] += gamma[k] * unit[a][b];
                }
            }
        }
        Some(strain)
    }
    /// Bulk and shear modulus (R. Hill, Proc. Phys. Soc. A 65, 349 (1952)), if the constants have an inverse.
    pub fn moduli(&self) -> Option<[Modulus; 2]> {
        let (c, s) = (&self.constants, self.compliances()?);
        let sums = |m: &Matrix6<f64>| {
            let trace = m[(0, 0)] + m[(1, 1)] + m[(2, 2)];
            let mixed = m[(0, 1)] + m[(0, 2)] + m[(1, 2)];
            let shear = m[(3, 3)] + m[(4, 4)] + m[(5, 5)];
            (trace, mixed, shear)
        };
        let ((t, m, g), (ts, ms, gs)) = (sums(c), sums(&s));
        let bulk = Modulus { voigt: (t + 2.0 * m) / 9.0, reuss: 1.0 / (ts + 2.0 * ms) };
        let shear =
            Modulus { voigt: (t - m + 3.0 * g) / 15.0, reuss: 15.0 / (4.0 * ts - 4.0 * ms + 3.0 * gs) };
        Some([bulk, shear])
    }
    /// Young's modulus for a pull along a direction: 1/S′₁₁₁₁, if the constants have an inverse.
    pub fn young(&self, direction: [f64; 3]) -> Option<f64> {
        let s = self.compliances()?;
        let size = direction.iter().map(|x| x * x).sum::<f64>();
        // the stress n ⊗ n; its strain along itself
        let stress = nalgebra::Vector6::from_fn(|k, _| {
            let [a, b] = VOIGT[k];
            direction[a] * direction[b] / size
        });
        Some(1.0 / stress.dot(&(s * stress)))
    }
}
