//! Motions that cost no energy: translations and rotations of the whole.

use super::{Point, ResponseError, dot};

/// A motion of all atoms together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rigid {
    /// Along an axis.
    Translation(usize),
    /// About an axis.
    Rotation(usize),
}

impl Rigid {
    /// What it is called.
    pub fn name(self) -> String {
        let axis = |k: usize| ["x", "y", "z"][k];
        match self {
            Rigid::Translation(k) => format!("translation along {}", axis(k)),
            Rigid::Rotation(k) => format!("rotation about {}", axis(k)),
        }
    }
}

/// A motion of all atoms together, weighted by the roots of their masses; such motions are orthonormal.
#[derive(Clone, Debug)]
pub struct RigidMotion {
    /// Which it is (less what it has in common with those before).
    pub motion: Rigid,
    /// √m times the displacement of each atom.
    pub vector: Vec<f64>,
    /// v·D v: the square of its frequency, which would be zero.
    pub eigenvalue: f64,
}

impl Point<'_> {
    /// The rigid motions that leave the energy alone. Of a linear molecule, two rotations; in a periodic cell, none.
    ///
    /// An energy that a motion u = t + ω × x leaves alone has H u = ω × ∇E everywhere: that is what is tried.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn rigid_motions(&mut self) -> Result<Vec<RigidMotion>, ResponseError> {
        let n = self.atoms();
        let forces = self.forces()?.forces;
        let total: f64 = self.masses.iter().sum();
        let places: Vec<[f64; 3]> =
            (0..n).map(|i| self.state.positions.cartesian(&self.state.cell, i)).collect();
        let center: [f64; 3] = std::array::from_fn(|c| {
            places.iter().zip(self.masses).map(|(x, m)| m * x[c]).sum::<f64>() / total
        });
        let stiffness = self.stiffness()?;
        let all = (0..3).map(Rigid::Translation).chain((0..3).map(Rigid::Rotation));
        let mut found: Vec<RigidMotion> = Vec::new();
        for motion in all {
            let turn = |axis: usize, x: [f64; 3]| {
                let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
                let mut u = [0.0; 3];
                (u[a], u[b]) = (-x[b], x[a]);
                u
            };
            let mut expected = vec![0.0; 3 * n];
            let displaced: Vec<[f64; 3]> = match motion {
                Rigid::Translation(axis) => {
                    let mut u = [0.0; 3];
                    u[axis] = 1.0;
                    vec![u; n]
                }
                Rigid::Rotation(axis) => {
                    let gradient = forces.iter().map(|f| turn(axis, f.map(|x| -x)));
                    expected = gradient.collect::<Vec<_>>().into_flattened();
                    let from_center = |x: &[f64; 3]| std::array::from_fn(|c| x[c] - center[c]);
                    places.iter().map(|x| turn(axis, from_center(x))).collect()
                }
            };
            let u = displaced.as_flattened();
            let size = u.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let scale = stiffness * size;
            let product = self.product(u)?;
            let apart = product.iter().zip(&expected).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
            if scale > 0.0 && apart > 1e-8 * scale {
                continue;
            }
            let weights: Vec<f64> = self.masses.iter().flat_map(|m| [m.sqrt(); 3]).collect();
            let mut vector: Vec<f64> = u.iter().zip(&weights).map(|(x, w)| x * w).collect();
            let before = dot(&vector, &vector).sqrt();
            for _ in 0..2 {
                for other in &found {
                    let along = dot(&vector, &other.vector);
                    vector.iter_mut().zip(&other.vector).for_each(|(x, o)| *x -= along * o);
                }
            }
            let left = dot(&vector, &vector).sqrt();
            if left <= 1e-5 * before || before == 0.0 {
                continue;
            }
            vector.iter_mut().for_each(|x| *x /= left);
            let displacement: Vec<f64> = vector.iter().zip(&weights).map(|(x, w)| x / w).collect();
            let eigenvalue = dot(&displacement, &self.product(&displacement)?);
            found.push(RigidMotion { motion, vector, eigenvalue });
        }
        Ok(found)
    }
}
