//! FIRE.

use super::{Ending, Minimizer, OnProgress, Progress, Recalled, Report, Until, advance, ending, look};
use crate::integrate::{BadParameter, Memory, MemoryError, Motion, StepError, chunks};

/// The fast inertial relaxation engine, in its second version: damped dynamics of particles of mass 1 u
/// that is steered downhill, and stopped and turned back half a step whenever it goes uphill.
///
/// With P = F·v: while P > 0 the time step grows (× 1.1 up to 10 times the initial one, after 20 steps)
/// and the steering α falls (× 0.99); when P ≤ 0 the time step halves (down to 1/50 of the initial one),
/// α ← 0.25, r ← r − v dt/2 and v ← 0. Then v ← v + F dt; v ← (1 − α) v + α |v| F/|F|; r ← r + v dt
/// (semi-implicit Euler). Besides, no atom moves farther than a cap in a step: F dt² and v dt are scaled
/// down to it.
///
/// Sources: E. Bitzek, P. Koskinen, F. Gähler, M. Moseler and P. Gumbsch, Phys. Rev. Lett. 97, 170201
/// (2006); J. Guénolé, W. G. Nöhring, A. Vaid, F. Houllé, Z. Xie, A. Prakash and E. Bitzek, Comput. Mater.
/// Sci. 175, 109584 (2020), algorithm 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Fire {
    time_step: f64,
    cap: f64,
    going: Option<Going>,
}

/// Where it is.
#[derive(Clone, Debug, PartialEq)]
struct Going {
    initial: Progress,
    now: Progress,
    dt: f64,
    alpha: f64,
    /// Steps in a row with P > 0, and with P ≤ 0.
    downhill: u64,
    uphill: u64,
    v: Vec<[f64; 3]>,
}

const GROW: f64 = 1.1;
const SHRINK: f64 = 0.5;
const LONGEST: f64 = 10.0;
const SHORTEST: f64 = 0.02;
const ALPHA: f64 = 0.25;
const ALPHA_SHRINK: f64 = 0.99;
const DELAY: u64 = 20;
/// After so many steps uphill in a row there is no way down.
const STUCK: u64 = 2000;

impl Fire {
    /// With an initial time step in ps (for masses of 1 u; 0.001 suits molecules, 0.01 reduced units) and
    /// the farthest that an atom moves in a step, in nm (0.01; 0.1 in reduced units).
    ///
    /// # Errors
    /// Anything that is not a positive number.
    pub fn new(time_step: f64, cap: f64) -> Result<Fire, BadParameter> {
        Ok(Fire {
            time_step: BadParameter::check("the time step", time_step, false)?,
            cap: BadParameter::check("the longest step", cap, false)?,
            going: None,
        })
    }
}

impl Minimizer for Fire {
    fn name(&self) -> &'static str {
        "fire"
    }

    fn forget(&mut self) {
        self.going = None;
    }

    fn memory(&self) -> Memory {
        let mut numbers = Vec::new();
        if let Some(Going { initial, now, dt, alpha, downhill, uphill, v }) = &self.going {
            numbers.extend([initial, now].iter().flat_map(|p| p.to_numbers()));
            numbers.extend([*dt, *alpha, *downhill as f64, *uphill as f64]);
            numbers.extend(v.as_flattened());
        }
        Memory { integrator: self.name().to_owned(), numbers }
    }

    fn recall(&mut self, memory: &Memory, atoms: usize) -> Result<(), MemoryError> {
        let mut recalled = Recalled::new(self.name(), memory)?;
        self.going = None;
        if memory.numbers.is_empty() {
            return Ok(());
        }
        let initial = Progress::from_numbers(recalled.numbers()?);
        let now = Progress::from_numbers(recalled.numbers()?);
        let [dt, alpha, downhill, uphill] = recalled.numbers()?;
        let v = recalled.vectors(atoms)?;
        recalled.end()?;
        let [downhill, uphill] = [downhill, uphill].map(|x| x as u64);
        self.going = Some(Going { initial, now, dt, alpha, downhill, uphill, v });
        Ok(())
    }

    fn go_on(
        &mut self,
        motion: &mut Motion<'_>,
        until: &Until,
        progress: OnProgress<'_>,
    ) -> Result<Report, StepError> {
        motion.check()?;
        let (step, evaluations) = self.going.as_ref().map_or((0, 0), |g| (g.now.step, g.now.evaluations));
        let here = look(motion, step, evaluations)?;
        let going = self.going.take().unwrap_or_else(|| Going {
            initial: here,
            now: here,
            dt: self.time_step,
            alpha: ALPHA,
            downhill: 0,
            uphill: 0,
            v: vec![[0.0; 3]; motion.state.positions.len()],
        });
        let Going { initial, mut dt, mut alpha, mut downhill, mut uphill, mut v, .. } = going;
        let mut now = here;
        let ending = loop {
            if let Some(ending) = ending(&now, until, progress) {
                break ending;
            }
            // Forces are used relative to the largest component, so that squares stay finite.
            let size = if now.force > 0.0 { now.force } else { 1.0 };
            let forces = &motion.forces.forces[..];
            let power = |_, (v, f): (&[[f64; 3]], &[[f64; 3]])| {
                v.iter().zip(f).fold([0.0; 2], |[p, ff], (v, f)| {
                    let f = f.map(|x| x / size);
                    [
                        p + (v[0] * f[0] + v[1] * f[1] + v[2] * f[2]),
                        ff + (f[0] * f[0] + f[1] * f[1] + f[2] * f[2]),
                    ]
                })
            };
            let [p, ff] = chunks::sum((&v[..], forces), &power);
            if p > 0.0 {
                (downhill, uphill) = (downhill + 1, 0);
                if downhill > DELAY {
                    dt = (dt * GROW).min(LONGEST * self.time_step);
                    alpha *= ALPHA_SHRINK;
                }
            } else {
                (downhill, uphill) = (0, uphill + 1);
                if uphill > STUCK {
                    break Ending::Stalled;
                }
                if now.step >= DELAY {
                    dt = (dt * SHRINK).max(SHORTEST * self.time_step);
                }
                alpha = ALPHA;
                advance(motion, &v, -0.5 * dt, now.step + 1)?;
                v.fill([0.0; 3]);
            }
            let forces = &motion.forces.forces[..];
            let push = dt * limit(chunks::largest_length(forces) * dt * dt, self.cap);
            let kick = |_, (v, f): (&mut [[f64; 3]], &[[f64; 3]])| {
                let mut vv = 0.0;
                for (v, f) in v.iter_mut().zip(f) {
                    *v = std::array::from_fn(|k| v[k] + push * f[k]);
                    vv += v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
                }
                [vv]
            };
            let [vv] = chunks::sum((&mut v[..], forces), &kick);
            let steer = if ff > 0.0 { alpha * (vv / ff).sqrt() } else { 0.0 };
            chunks::each((&mut v[..], forces), &|_, (v, f): (&mut [[f64; 3]], &[[f64; 3]])| {
                for (v, f) in v.iter_mut().zip(f) {
                    *v = std::array::from_fn(|k| (1.0 - alpha) * v[k] + steer * (f[k] / size));
                }
            });
            let slow = limit(chunks::largest_length(&v) * dt, self.cap);
            if slow < 1.0 {
                v.iter_mut().flatten().for_each(|x| *x *= slow);
            }
            advance(motion, &v, dt, now.step + 1)?;
            motion.evaluate_in(now.step + 1)?;
            now = look(motion, now.step + 1, now.evaluations + 1)?;
        };
        self.going = Some(Going { initial, now, dt, alpha, downhill, uphill, v });
        Ok(Report { initial, last: now, ending })
    }
}

/// What to multiply a length by so that it is not above the cap.
fn limit(length: f64, cap: f64) -> f64 {
    if length > cap { cap / length } else { 1.0 }
}
