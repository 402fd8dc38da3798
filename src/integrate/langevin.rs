//! Langevin dynamics.

use super::{
    Adjoint, BadParameter, Integrator, Memory, MemoryError, Moment, Motion, StepError, chunks, expect_memory,
    kicked,
};
use crate::autodiff::Tape;
use crate::random::{Noise, Purpose};
use crate::system::State;
use potentials::{Mask, Scalar};

/// Langevin dynamics by the BAOAB splitting, at constant temperature:
///
/// m dv = F dt − γ m v dt + √(2 γ m k_B T) dW
///
/// B: v ← v + F/m · dt/2; A: r ← r + v dt/2; O: v ← c v + √((1 − c²) k_B T/m) ξ with c = exp(−γ dt) and
/// standard normal ξ; A again; B again with the new forces. The two A are rounded to the grid as one.
///
/// Positions are sampled without error for harmonic forces (and with a very small one for others at high
/// friction); velocities at the full step are colder: m⟨v²⟩ = k_B T (1 − (ω dt)²/4). Stable for
/// ω dt < 2. With γ = 0 it is a symplectic integrator for constant energy.
///
/// ξ is addressed by the seed, the step and the atom ([`Purpose::Langevin`]). Total momentum is not
/// conserved: there are 3N degrees of freedom. [`Integrator::reservoir`] is minus the heat Σ ½ m (v'² − v²)
/// that the O parts have brought in.
///
/// Source: B. Leimkuhler and C. Matthews, Appl. Math. Res. eXpress 2013, 34 and J. Chem. Phys. 138, 174102
/// (2013).
#[derive(Clone, Debug, PartialEq)]
pub struct Langevin {
    time_step: f64,
    friction: f64,
    temperature: f64,
    boltzmann: f64,
    /// exp(−γ dt).
    keep: f64,
    /// (1 − exp(−2 γ dt)) k_B T in kJ/mol.
    spread: f64,
    noise: Noise,
    /// Energy that has come from the bath, kJ/mol.
    heat: f64,
    /// Where the atoms go in this step, nm; memory to be used again.
    paths: Vec<[f64; 3]>,
}

impl Langevin {
    /// With a time step in ps, a friction γ per ps, a temperature in K, Boltzmann's constant in kJ/mol/K
    /// (1 in reduced units) and the seed of the noise.
    ///
    /// # Errors
    /// Anything that is not finite or negative; a time step of zero.
    pub fn new(
        time_step: f64,
        friction: f64,
        temperature: f64,
        boltzmann: f64,
        seed: u64,
    ) -> Result<Langevin, BadParameter> {
        BadParameter::check("the time step", time_step, false)?;
        BadParameter::check("the friction", friction, true)?;
        BadParameter::check("the temperature", temperature, true)?;
        BadParameter::check("Boltzmann's constant", boltzmann, false)?;
        BadParameter::check("Boltzmann's constant × temperature", boltzmann * temperature, true)?;
        BadParameter::check("friction × time step", friction * time_step, true)?;
        let [keep, spread] = constants(time_step, temperature, friction, boltzmann);
        Ok(Langevin {
            time_step,
            friction,
            temperature,
            boltzmann,
            keep,
            spread,
            noise: Noise::new(seed, Purpose::Langevin),
            heat: 0.0,
            paths: Vec::new(),
        })
    }

    /// The heat (kJ/mol) that the bath has given to the system so far.
    pub fn heat(&self) -> f64 {
        self.heat
    }
}

/// Atoms whose noise is computed together.
const BLOCK: usize = 16;

/// exp(−γ dt), and (1 − exp(−2γ dt)) k_B T.
fn constants<S: Scalar>(time_step: S, temperature: S, friction: S, boltzmann: f64) -> [S; 2] {
    let decay = friction * time_step;
    [S::constant(1.0) - decayed(decay), decayed(decay * 2.0) * (temperature * boltzmann)]
}

/// 1 − exp(−x) for x ≥ 0, accurate also for small x, by arithmetic alone (the same on every machine).
fn decayed<S: Scalar>(x: S) -> S {
    let large = |y: S| S::constant(0.25).lt(y).decided() == Some(true);
    let (mut halvings, mut y) = (0, x);
    while large(y) && halvings < 20 {
        y = y * 0.5;
        halvings += 1;
    }
    if large(y) {
        return S::constant(1.0);
    }
    // y − y²/2! + y³/3! − …; y ≤ ¼, so the first term left out is below 2⁻⁵⁴ of the sum.
    let mut sum = S::constant(1.0);
    for n in (2..=13).rev() {
        sum = S::constant(1.0) - sum * y / f64::from(n);
    }
    let mut gone = sum * y;
    for _ in 0..halvings {
        gone = gone * (S::constant(2.0) - gone);
    }
    gone
}

/// B and A O A of an atom: its velocity before, after, and how far it goes. `width` is √((1 − c²) k_B T/m).
#[inline(always)]
fn baoa<S: Scalar>(
    v: [S; 3],
    f: [S; 3],
    half_per_mass: S,
    [half, keep, width]: [S; 3],
    noise: [f64; 4],
) -> [[S; 3]; 3] {
    let (mut old, mut new, mut path) = (v, v, v);
    for k in 0..3 {
        old[k] = kicked(v[k], f[k], half_per_mass);
        new[k] = keep * old[k] + width * noise[k];
        path[k] = half * (old[k] + new[k]);
    }
    [old, new, path]
}

impl Integrator for Langevin {
    fn name(&self) -> &'static str {
        "langevin"
    }

    fn time_step(&self) -> f64 {
        self.time_step
    }

    fn begin(&mut self, motion: &mut Motion<'_>) -> Result<(), StepError> {
        let half = 0.5 * self.time_step;
        let Langevin { keep, spread, noise, .. } = *self;
        let masses = motion.masses;
        let State { cell, positions, velocities, step, .. } = &mut *motion.state;
        let number = *step;
        self.paths.resize(positions.len(), [0.0; 3]);
        // B, and A O A to be done.
        type Data<'a> = (&'a mut [[f64; 3]], &'a mut [[f64; 3]], &'a [[f64; 3]], &'a [f64]);
        let leaf = |first: usize, (v, path, f, m): Data<'_>| {
            let mut heat = 0.0;
            let blocks = v.chunks_mut(BLOCK).zip(path.chunks_mut(BLOCK));
            let blocks = blocks.zip(f.chunks(BLOCK).zip(m.chunks(BLOCK)));
            for (block, ((v, path), (f, m))) in blocks.enumerate() {
                let noise = noise.normals_of::<BLOCK>(number, first + block * BLOCK);
                for ((v, path), ((f, m), xi)) in v.iter_mut().zip(path).zip(f.iter().zip(m).zip(noise)) {
                    let constants = [half, keep, (spread / m).sqrt()];
                    let (old, new);
                    [old, new, *path] = baoa(*v, *f, half / m, constants, xi);
                    let change = [0, 1, 2].map(|k| (new[k] - old[k]) * (new[k] + old[k]));
                    heat += 0.5 * m * (change[0] + change[1] + change[2]);
                    *v = new;
                }
            }
            [heat]
        };
        let data = (&mut velocities[..], &mut self.paths[..], &motion.forces.forces[..], masses);
        let [heat] = chunks::sum(data, &leaf);
        self.heat += heat;
        let paths = &self.paths[..];
        positions
            .advance_all(cell, |i| paths[i])
            .map_err(|escaped| StepError::Escaped { step: number.saturating_add(1), escaped })
    }

    fn end(&mut self, motion: &mut Motion<'_>) {
        motion.kick(0.5 * self.time_step);
    }

    fn settings(&self) -> Vec<(&'static str, f64)> {
        vec![("time-step", self.time_step), ("temperature", self.temperature), ("friction", self.friction)]
    }

    fn pull_back_begin(&self, at: Moment<'_>, adjoint: &mut Adjoint) {
        let noise = self.noise;
        // (at rest the width has no derivative, and without a bath there is none to take)
        let warm = self.spread > 0.0;
        let of_constants = adjoint.pull_back(
            at,
            [0.5 * self.time_step, self.keep, self.spread],
            |v, f, m, [half, keep, spread], atom| {
                let width = if warm { (spread / m).sqrt() } else { spread };
                let [_, new, path] = baoa(v, f, half / m, [half, keep, width], noise.normals(at.step, atom));
                (new, Some(path))
            },
        );
        let tape = Tape::new();
        let [dt, temperature, friction] =
            [self.time_step, self.temperature, self.friction].map(|x| tape.variable(x));
        let [keep, spread] = constants(dt, temperature, friction, self.boltzmann);
        let sum = dt * (0.5 * of_constants[0]) + keep * of_constants[1] + spread * of_constants[2];
        let slopes = tape.gradient(sum);
        for (of, x) in adjoint.settings.iter_mut().zip([dt, temperature, friction]) {
            *of += slopes.of(x);
        }
    }

    fn pull_back_end(&self, at: Moment<'_>, adjoint: &mut Adjoint) {
        adjoint.pull_back_half_kick(at, self.time_step);
    }

    fn irreversible(&self) -> Option<&'static str> {
        Some("friction and noise lose where a step came from")
    }

    fn conserves_momentum(&self) -> bool {
        false
    }

    fn reservoir(&self) -> f64 {
        -self.heat
    }

    fn memory(&self) -> Memory {
        Memory { integrator: self.name().to_owned(), numbers: vec![self.heat] }
    }

    fn recall(&mut self, memory: &Memory) -> Result<(), MemoryError> {
        [self.heat] = expect_memory(self.name(), memory)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_is_that_of_the_library() {
        for x in [0.0f64, 1e-300, 1e-9, 0.01, 0.2499, 0.26, 1.0, 3.7, 30.0, 700.0, 1e5, 1e9, 1e300] {
            let expected = -(-x).exp_m1();
            assert!((decayed(x) - expected).abs() <= 1e-15 * expected, "{x}: {} {expected}", decayed(x));
        }
    }

    #[test]
    fn parameters_are_checked() {
        assert!(Langevin::new(0.0, 1.0, 300.0, 1.0, 0).is_err());
        assert!(Langevin::new(0.1, -1.0, 300.0, 1.0, 0).is_err());
        assert!(Langevin::new(0.1, 1.0, f64::NAN, 1.0, 0).is_err());
        assert!(Langevin::new(0.1, 1.0, 1e300, 1e300, 0).is_err());
        assert!(Langevin::new(0.1, 0.0, 0.0, 1.0, 0).is_ok());
        let mut langevin = Langevin::new(0.1, 1.0, 1.0, 1.0, 0).unwrap();
        let wrong = Memory { integrator: "langevin".to_owned(), numbers: vec![] };
        assert!(langevin.recall(&wrong).is_err());
    }
}
