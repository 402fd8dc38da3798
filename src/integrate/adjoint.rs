//! Backward passes through a step.

use super::{chunks, kicked};
use crate::autodiff::{StackTape, StackVar};
use potentials::Scalar;

/// Where a step begins: what its backward pass has to know.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The steps taken before it since the run began.
    pub step: u64,
    /// Velocities in nm/ps.
    pub velocities: &'a [[f64; 3]],
    /// Forces in kJ/mol/nm.
    pub forces: &'a [[f64; 3]],
    /// Masses in u.
    pub masses: &'a [f64],
}

/// The derivatives of a number L in everything that it depends on by way of the present state.
#[derive(Debug, Default, PartialEq)]
pub struct Adjoint {
    /// ∂L/∂r, by nm.
    pub positions: Vec<[f64; 3]>,
    /// ∂L/∂v, by nm/ps.
    pub velocities: Vec<[f64; 3]>,
    /// ∂L/∂F of the forces at hand, by kJ/mol/nm.
    pub forces: Vec<[f64; 3]>,
    /// ∂L/∂m, by u: of the steps that the backward pass has gone through.
    pub masses: Vec<f64>,
    /// The same of the integrator's [settings](super::Integrator::settings).
    pub settings: Vec<f64>,
}

// (derived, it would not use the memory that is there again)
impl Clone for Adjoint {
    fn clone(&self) -> Self {
        let mut new = Self::default();
        new.clone_from(self);
        new
    }
    fn clone_from(&mut self, o: &Self) {
        self.positions.clone_from(&o.positions);
        self.velocities.clone_from(&o.velocities);
        self.forces.clone_from(&o.forces);
        self.masses.clone_from(&o.masses);
        self.settings.clone_from(&o.settings);
    }
}

/// A number whose step is recorded.
type X<'t> = StackVar<'t, f64, 64>;

impl Adjoint {
    /// Zeros for so many atoms and settings.
    pub fn zero(atoms: usize, settings: usize) -> Self {
        Self {
            positions: vec![[0.0; 3]; atoms],
            velocities: vec![[0.0; 3]; atoms],
            forces: vec![[0.0; 3]; atoms],
            masses: vec![0.0; atoms],
            settings: vec![0.0; settings],
        }
    }

    /// The backward pass through what each atom does by itself: `text(v, F, m, settings, atom)` gives its new velocity and,
    /// perhaps, how far it moves. Returns the derivatives in these settings.
    pub(super) fn pull_back<const K: usize>(
        &mut self,
        at: Moment,
        settings: [f64; K],
        text: impl for<'t> Fn(
            [X<'t>; 3],
            [X<'t>; 3],
            X<'t>,
            [X<'t>; K],
            usize,
        ) -> ([X<'t>; 3], Option<[X<'t>; 3]>)
        + Sync,
    ) -> [f64; K] {
        type Mine<'a> = (&'a mut [[f64; 3]], &'a mut [[f64; 3]], &'a mut [f64], &'a [[f64; 3]]);
        type Known<'a> = (&'a [[f64; 3]], &'a [[f64; 3]], &'a [f64]);
        let leaf = |first: usize, (mine, (v, f, m)): (Mine<'_>, Known<'_>)| {
            let (of_v, of_f, of_m, of_r) = mine;
            let mut of_settings = [0.0; K];
            for i in 0..v.len() {
                let tape = StackTape::<f64, 64>::new();
                let at = [v[i][0], v[i][1], v[i][2], f[i][0], f[i][1], f[i][2], m[i]];
                // (a fixed number of variables: some of the settings may be none)
                let mut values = [0.0; VARIABLES];
                values[..7].copy_from_slice(&at);
                values[7..7 + K].copy_from_slice(&settings);
                let x = tape.restart(values);
                let (new, path) = text(
                    [x[0], x[1], x[2]],
                    [x[3], x[4], x[5]],
                    x[6],
                    std::array::from_fn(|k| x[7 + k]),
                    first + i,
                );
                let mut sum = along(new, of_v[i]);
                if let Some(path) = path {
                    sum = sum + along(path, of_r[i]);
                }
                let g: [f64; VARIABLES] = tape.gradient_in_registers(sum);
                of_v[i] = [g[0], g[1], g[2]];
                for c in 0..3 {
                    of_f[i][c] += g[3 + c];
                }
                of_m[i] += g[6];
                for k in 0..K {
                    of_settings[k] += g[7 + k];
                }
            }
            of_settings
        };
        let Adjoint { positions, velocities, forces, masses, .. } = self;
        let mine = (&mut velocities[..], &mut forces[..], &mut masses[..], &positions[..]);
        chunks::sum((mine, (at.velocities, at.forces, at.masses)), &leaf)
    }

    /// The backward pass through a kick of half a time step (which is the first of the settings).
    pub(super) fn pull_back_half_kick(&mut self, at: Moment, time_step: f64) {
        let [of_time_step] = self.pull_back(at, [time_step], |v, f, m, [time_step], _| {
            let kick = time_step * 0.5 / m;
            ([kicked(v[0], f[0], kick), kicked(v[1], f[1], kick), kicked(v[2], f[2], kick)], None)
        });
        self.settings[0] += of_time_step;
    }
}

/// Σ xₖ aₖ
#[inline(always)]
fn along<S: Scalar>(x: [S; 3], a: [f64; 3]) -> S {
    x[0] * a[0] + x[1] * a[1] + x[2] * a[2]
}

/// Velocity, force, mass and up to three settings.
const VARIABLES: usize = 10;
