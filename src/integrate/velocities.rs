//! Initial velocities, temperature, and the motion of the whole.

use super::{BadParameter, StepError, check_masses, chunks};
use crate::random::{Noise, Purpose};

/// Why velocities or a temperature cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VelocityError {
    /// There is nothing that could be warm: no atoms, or a single one whose momentum is fixed.
    #[error("{atoms} atoms have no degrees of freedom here, so there is no temperature")]
    NoFreedom {
        /// Number of atoms.
        atoms: usize,
    },
    /// A temperature or a constant is negative or not finite.
    #[error(transparent)]
    Parameter(#[from] BadParameter),
    /// A mass is not positive, or there is another number of masses than of velocities.
    #[error(transparent)]
    Masses(#[from] StepError),
}

/// The degrees of freedom that share the kinetic energy: 3 an atom, less the constraints, less 3 when the
/// total momentum is conserved (and removed); never below 0.
pub fn degrees_of_freedom(atoms: usize, constraints: usize, momentum_conserved: bool) -> usize {
    let fixed = constraints.saturating_add(if momentum_conserved { 3 } else { 0 });
    atoms.saturating_mul(3).saturating_sub(fixed)
}

/// The kinetic energy ½ Σ m v² in kJ/mol, summed in a fixed order. Masses in u, velocities in nm/ps.
pub fn kinetic_energy(masses: &[f64], velocities: &[[f64; 3]]) -> f64 {
    let leaf = |_, (m, v): (&[f64], &[[f64; 3]])| {
        [m.iter().zip(v).map(|(m, [x, y, z])| m * (x * x + y * y + z * z)).sum()]
    };
    let [twice] = chunks::sum((masses, velocities), &leaf);
    0.5 * twice
}

/// The temperature 2K/(f k_B) in K of a kinetic energy K (kJ/mol) shared by f degrees of freedom, with
/// Boltzmann's constant in kJ/mol/K; none without degrees of freedom.
pub fn temperature(kinetic_energy: f64, degrees_of_freedom: usize, boltzmann: f64) -> Option<f64> {
    (degrees_of_freedom > 0).then(|| 2.0 * kinetic_energy / (degrees_of_freedom as f64 * boltzmann))
}

/// The total momentum Σ m v (u nm/ps) and mass Σ m (u), summed in a fixed order.
fn momentum(masses: &[f64], velocities: &[[f64; 3]]) -> [f64; 4] {
    let leaf = |_, (m, v): (&[f64], &[[f64; 3]])| {
        m.iter()
            .zip(v)
            .fold([0.0; 4], |[x, y, z, all], (m, v)| [x + m * v[0], y + m * v[1], z + m * v[2], all + m])
    };
    chunks::sum((masses, velocities), &leaf)
}

/// Removes the motion of the centre of mass, v ← v − Σ m v / Σ m, and returns the kinetic energy (kJ/mol)
/// that went with it, ½ |Σ m v|² / Σ m. Without mass nothing happens.
pub fn remove_drift(masses: &[f64], velocities: &mut [[f64; 3]]) -> f64 {
    let [x, y, z, mass] = momentum(masses, velocities);
    if !(mass > 0.0 && mass.is_finite()) {
        return 0.0;
    }
    let drift = [x / mass, y / mass, z / mass];
    chunks::each(velocities, &|_, v: &mut [[f64; 3]]| {
        for v in v {
            *v = std::array::from_fn(|k| v[k] - drift[k]);
        }
    });
    0.5 * mass * (drift[0] * drift[0] + drift[1] * drift[1] + drift[2] * drift[2])
}

/// How to draw velocities from the distribution of Maxwell and Boltzmann.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxwellBoltzmann {
    /// T in K.
    pub temperature: f64,
    /// k_B in kJ/mol/K; 1 in reduced units.
    pub boltzmann: f64,
    /// The seed ([`Purpose::Velocities`]).
    pub seed: u64,
    /// Whether to remove the motion of the centre of mass.
    pub remove_drift: bool,
    /// Scale the velocities to exactly the temperature asked, for so many degrees of freedom
    /// ([`degrees_of_freedom`]); none leaves them as drawn.
    pub scale_to: Option<usize>,
}

impl MaxwellBoltzmann {
    /// Velocities (nm/ps) for masses in u: each component is normal with variance k_B T/m, and depends on
    /// the seed, its atom's number and its mass only (before drift removal and scaling).
    ///
    /// # Errors
    /// Masses that are not positive, a temperature below zero, and a scale for no degrees of freedom (a
    /// single atom whose momentum is removed has none).
    pub fn draw(&self, masses: &[f64]) -> Result<Vec<[f64; 3]>, VelocityError> {
        check_masses(masses)?;
        BadParameter::check("the temperature", self.temperature, true)?;
        BadParameter::check("Boltzmann's constant", self.boltzmann, false)?;
        let energy = self.boltzmann * self.temperature;
        BadParameter::check("Boltzmann's constant × temperature", energy, true)?;
        let noise = Noise::new(self.seed, Purpose::Velocities);
        let mut velocities = vec![[0.0; 3]; masses.len()];
        if energy == 0.0 {
            return Ok(velocities);
        }
        let leaf = |first: usize, (v, m): (&mut [[f64; 3]], &[f64])| {
            for (i, (v, m)) in v.iter_mut().zip(m).enumerate() {
                let (xi, width) = (noise.normals(0, first + i), (energy / m).sqrt());
                *v = std::array::from_fn(|k| width * xi[k]);
            }
        };
        chunks::each((&mut velocities[..], masses), &leaf);
        if self.remove_drift {
            // A second time takes away what rounding left.
            remove_drift(masses, &mut velocities);
            remove_drift(masses, &mut velocities);
        }
        if let Some(freedom) = self.scale_to {
            let atoms = masses.len();
            if freedom == 0 || degrees_of_freedom(atoms, 0, self.remove_drift) == 0 {
                return Err(VelocityError::NoFreedom { atoms });
            }
            let kinetic = kinetic_energy(masses, &velocities);
            let scale = (0.5 * freedom as f64 * energy / kinetic).sqrt();
            BadParameter::check("the scale of velocities", scale, false)?;
            for v in &mut velocities {
                *v = v.map(|x| x * scale);
            }
        }
        Ok(velocities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOLTZMANN: f64 = 0.008_314_462_618_153_24;

    fn asked(atoms: usize) -> MaxwellBoltzmann {
        MaxwellBoltzmann {
            temperature: 300.0,
            boltzmann: BOLTZMANN,
            seed: 11,
            remove_drift: true,
            scale_to: Some(degrees_of_freedom(atoms, 0, true)),
        }
    }

    #[test]
    fn the_temperature_is_the_one_asked() {
        for atoms in [2, 3, 10, 5000] {
            let masses: Vec<f64> = (0..atoms).map(|i| [1.008, 15.999, 39.948][i % 3]).collect();
            let v = asked(atoms).draw(&masses).unwrap();
            let t = temperature(kinetic_energy(&masses, &v), 3 * atoms - 3, BOLTZMANN).unwrap();
            assert!((t - 300.0).abs() < 1e-11, "{t}");
            let [x, y, z, mass] = momentum(&masses, &v);
            assert!([x, y, z].iter().all(|p| p.abs() < 1e-14 * mass), "{x} {y} {z}");
        }
    }

    #[test]
    fn what_has_no_freedom_says_so() {
        assert!(matches!(asked(1).draw(&[1.0]), Err(VelocityError::NoFreedom { atoms: 1 })));
        assert!(matches!(asked(0).draw(&[]), Err(VelocityError::NoFreedom { atoms: 0 })));
        let one = MaxwellBoltzmann { remove_drift: false, scale_to: Some(3), ..asked(1) };
        let v = one.draw(&[2.0]).unwrap();
        assert!((kinetic_energy(&[2.0], &v) - 1.5 * BOLTZMANN * 300.0).abs() < 1e-13);
        assert_eq!(temperature(0.0, 0, BOLTZMANN), None);
        assert!(matches!(
            asked(2).draw(&[1.0, 0.0]),
            Err(VelocityError::Masses(StepError::Mass { atom: 1, .. }))
        ));
        let cold = MaxwellBoltzmann { temperature: -1.0, ..asked(2) };
        assert!(matches!(cold.draw(&[1.0; 2]), Err(VelocityError::Parameter(_))));
        let frozen = MaxwellBoltzmann { temperature: 0.0, ..asked(2) };
        assert_eq!(frozen.draw(&[1.0; 2]).unwrap(), [[0.0; 3]; 2]);
    }

    #[test]
    fn the_energy_of_the_drift_is_returned() {
        let (masses, mut v) = ([1.0, 3.0], [[4.0, 0.0, 0.0], [0.0; 3]]);
        let before = kinetic_energy(&masses, &v);
        let drift = remove_drift(&masses, &mut v);
        assert_eq!((before, drift, v), (8.0, 2.0, [[3.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]));
        assert_eq!(kinetic_energy(&masses, &v), 6.0);
        assert_eq!(remove_drift(&[], &mut []), 0.0);
        assert_eq!(degrees_of_freedom(3, 2, true), 4);
        assert_eq!(degrees_of_freedom(1, 0, true), 0);
    }
}
