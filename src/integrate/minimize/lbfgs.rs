//! L-BFGS.

use super::{Ending, Minimizer, OnProgress, Progress, Recalled, Report, Until, advance, ending, look};
use crate::forces::{ForceError, Forces};
use crate::integrate::{BadParameter, Memory, MemoryError, Motion, StepError, chunks};

/// The quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno with limited memory: the direction is
/// H F, where H is built by the two-loop recursion from the last steps s and changes of force y, starting
/// from s·y/y·y.
///
/// No atom moves farther than a cap in a step. A step must lower the energy: by 10⁻⁴ of what the slope
/// promises (Armijo), or at all when it was shortened by the cap; otherwise it is shortened by quadratic
/// interpolation. Where the energies differ by rounding only, a step counts whose slope says that the
/// minimum along the direction has not been passed by far (the approximate condition of Hager and Zhang);
/// the energy is never above the lowest one so far by more than rounding (64 ulps of the terms' sum).
/// Steps whose s·y is not positive are not remembered; when a direction fails, the memory is dropped and
/// steepest descent tried. The memory is also dropped after a step that lowered the energy by less than a
/// tenth of what its mean slope says, when that is more than the energy itself: there atoms lay upon each
/// other, and are pushed apart by steepest descent with steps of the cap.
///
/// Sources: J. Nocedal, Math. Comp. 35, 773 (1980); D. C. Liu and J. Nocedal, Math. Program. 45, 503
/// (1989); W. W. Hager and H. Zhang, SIAM J. Optim. 16, 170 (2005).
#[derive(Clone, Debug, PartialEq)]
pub struct Lbfgs {
    memory: usize,
    cap: f64,
    going: Option<Going>,
}

/// Where it is.
#[derive(Clone, Debug, PartialEq)]
struct Going {
    initial: Progress,
    now: Progress,
    /// The lowest energy so far.
    lowest: f64,
    /// From the oldest to the newest.
    pairs: Vec<Pair>,
}

/// Of the decrease that the slope promises, what is asked for.
const ARMIJO: f64 = 1e-4;
/// δ of the approximate Wolfe condition.
const DELTA: f64 = 0.1;
/// What energies may be wrong by rounding, relative to the sum of the terms' magnitudes.
const ROUNDING: f64 = 64.0 * f64::EPSILON;
/// A decrease of the energy relative to that along a parabola below which there is no parabola.
const PUSHED: f64 = 0.1;
/// Shortenings of a step before the direction counts as failed.
const TRIALS: usize = 30;

/// A step remembered.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pair {
    /// The step, nm.
    s: Vec<[f64; 3]>,
    /// The change of the gradient (minus the force), kJ/mol/nm.
    y: Vec<[f64; 3]>,
    /// 1/(s·y).
    rho: f64,
}

impl Lbfgs {
    /// With a number of steps to remember (5 to 20 are usual) and the farthest that an atom moves in a step,
    /// in nm (0.01; 0.1 in reduced units).
    ///
    /// # Errors
    /// A cap that is not a positive number.
    pub fn new(memory: usize, cap: f64) -> Result<Lbfgs, BadParameter> {
        Ok(Lbfgs { memory, cap: BadParameter::check("the longest step", cap, false)?, going: None })
    }
}

/// `direction` ← H F by the two-loop recursion; `pairs` are from the oldest to the newest.
fn two_loops(pairs: &[Pair], forces: &[[f64; 3]], direction: &mut [[f64; 3]]) {
    direction.copy_from_slice(forces);
    let mut alphas = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let alpha = pair.rho * chunks::dot(&pair.s, direction);
        add(direction, &pair.y, -alpha);
        alphas.push(alpha);
    }
    if let Some(newest) = pairs.last() {
        let scale = 1.0 / (newest.rho * chunks::dot(&newest.y, &newest.y));
        chunks::each(&mut *direction, &|_, d: &mut [[f64; 3]]| {
            d.iter_mut().flatten().for_each(|x| *x *= scale)
        });
    }
    for (pair, alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
        let beta = pair.rho * chunks::dot(&pair.y, direction);
        add(direction, &pair.s, alpha - beta);
    }
}

/// a ← a + scale · b.
fn add(a: &mut [[f64; 3]], b: &[[f64; 3]], scale: f64) {
    chunks::each((a, b), &|_, (a, b): (&mut [[f64; 3]], &[[f64; 3]])| {
        for (a, b) in a.iter_mut().zip(b) {
            *a = std::array::from_fn(|k| a[k] + scale * b[k]);
        }
    });
}

impl Minimizer for Lbfgs {
    fn name(&self) -> &'static str {
        "l-bfgs"
    }

    fn forget(&mut self) {
        self.going = None;
    }

    fn memory(&self) -> Memory {
        let mut numbers = Vec::new();
        if let Some(Going { initial, now, lowest, pairs }) = &self.going {
            numbers.extend([initial, now].iter().flat_map(|p| p.to_numbers()));
            numbers.extend([*lowest, pairs.len() as f64]);
            for Pair { s, y, rho } in pairs {
                numbers.push(*rho);
                numbers.extend(s.as_flattened());
                numbers.extend(y.as_flattened());
            }
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
        let [lowest, count] = recalled.numbers()?;
        let mut pairs = Vec::new();
        for _ in 0..count as u64 {
            let [rho] = recalled.numbers()?;
            pairs.push(Pair { rho, s: recalled.vectors(atoms)?, y: recalled.vectors(atoms)? });
        }
        recalled.end()?;
        self.going = Some(Going { initial, now, lowest, pairs });
        Ok(())
    }

    fn go_on(
        &mut self,
        motion: &mut Motion<'_>,
        until: &Until,
        progress: OnProgress<'_>,
    ) -> Result<Report, StepError> {
        motion.check()?;
        let (step, mut evaluations) = self.going.as_ref().map_or((0, 0), |g| (g.now.step, g.now.evaluations));
        let here = look(motion, step, evaluations)?;
        let going = self.going.take().unwrap_or_else(|| Going {
            initial: here,
            now: here,
            lowest: here.energy,
            pairs: Vec::new(),
        });
        let Going { initial, mut lowest, mut pairs, .. } = going;
        let mut now = here;
        let mut direction = vec![[0.0; 3]; motion.state.positions.len()];
        let mut before = Forces::default();
        let ending = loop {
            if let Some(ending) = ending(&now, until, progress) {
                break ending;
            }
            let step = now.step + 1;
            let accepted = loop {
                two_loops(&pairs, &motion.forces.forces, &mut direction);
                let longest = chunks::largest_length(&direction);
                let mut slope = chunks::dot(&motion.forces.forces, &direction);
                let downhill = slope > 0.0 && slope.is_finite() && longest.is_finite();
                if !downhill && !pairs.is_empty() {
                    pairs.clear();
                    continue;
                }
                if !(self.cap / longest).is_finite() {
                    // Forces of nothing.
                    break None;
                }
                // Without any memory the length of the direction means nothing.
                let capped = pairs.is_empty() || longest > self.cap;
                if capped {
                    let scale = self.cap / longest;
                    direction.iter_mut().flatten().for_each(|x| *x *= scale);
                    slope = chunks::dot(&motion.forces.forces, &direction);
                }
                // The forces here are put aside; trials are computed in their place.
                std::mem::swap(motion.forces, &mut before);
                let rounding = ROUNDING * before.energies.iter().map(|e| e.abs()).sum::<f64>();
                let mut length = 1.0;
                let mut found = None;
                for _ in 0..TRIALS {
                    advance(motion, &direction, length, step)?;
                    evaluations += 1;
                    let trial = match motion.evaluate_in(step).and_then(|()| look(motion, step, evaluations))
                    {
                        Ok(trial) => Some(trial),
                        Err(StepError::Forces { error: ForceError::NotFinite { .. }, .. })
                        | Err(StepError::Energy { .. }) => None,
                        Err(error) => return Err(error),
                    };
                    let mut shorter = 0.1;
                    if let Some(trial) = trial {
                        let promised = length * slope;
                        let asked = if capped { 0.0 } else { ARMIJO * promised };
                        let passed = || -chunks::dot(&motion.forces.forces, &direction);
                        if trial.energy < now.energy && trial.energy <= now.energy - asked
                            || trial.energy <= lowest + rounding
                                && now.energy - trial.energy <= rounding
                                && passed() <= (1.0 - 2.0 * DELTA) * slope
                        {
                            found = Some((trial, length));
                            break;
                        }
                        // The minimum of the parabola through both energies and the slope.
                        let parabola = 0.5 * promised / (trial.energy - now.energy + promised);
                        if parabola.is_finite() {
                            shorter = parabola.clamp(0.1, 0.5);
                        }
                    }
                    // Going back the same way is exact on the grid.
                    advance(motion, &direction, -length, step)?;
                    length *= shorter;
                }
                match found {
                    Some(found) => break Some(found),
                    None => std::mem::swap(motion.forces, &mut before),
                }
                if pairs.is_empty() {
                    break None;
                }
                pairs.clear();
            };
            let Some((trial, length)) = accepted else {
                break Ending::Stalled;
            };
            // Along a parabola the energy falls by the mean slope. Where it fell by far less, atoms have been
            // pushed out of each other, and what is remembered of the forces there tells nothing.
            let slopes = [&before, &*motion.forces].map(|f| chunks::dot(&f.forces, &direction));
            let parabola = 0.5 * length * (slopes[0] + slopes[1]);
            let fell = now.energy - trial.energy;
            let pushed = fell < PUSHED * parabola && parabola > before.energies.iter().map(|e| e.abs()).sum();
            now = trial;
            lowest = lowest.min(now.energy);
            if pushed {
                pairs.clear();
            } else if self.memory > 0 {
                let mut pair = match pairs.len() >= self.memory {
                    true => pairs.remove(0),
                    false => Pair::default(),
                };
                pair.s.clear();
                pair.s.extend(direction.iter().map(|d| d.map(|x| x * length)));
                pair.y.clear();
                let change = |(a, b): (&[f64; 3], &[f64; 3])| std::array::from_fn(|k| a[k] - b[k]);
                pair.y.extend(before.forces.iter().zip(&motion.forces.forces).map(change));
                let [sy, ss, yy] = [(&pair.s, &pair.y), (&pair.s, &pair.s), (&pair.y, &pair.y)]
                    .map(|(a, b)| chunks::dot(a, b));
                let curved = sy > 1e-10 * (ss * yy).sqrt();
                pair.rho = 1.0 / sy;
                if curved && yy.is_finite() && pair.rho.is_finite() {
                    pairs.push(pair);
                }
            }
        };
        let last = Progress { evaluations, ..now };
        self.going = Some(Going { initial, now: last, lowest, pairs });
        Ok(Report { initial, last, ending })
    }
}
