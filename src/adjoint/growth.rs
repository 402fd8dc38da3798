//! How fast an adjoint grows on its way back.
//!
//! Where neighbouring trajectories part like exp(λ t) (λ is the largest Lyapunov exponent), so does the adjoint, and with it
//! every derivative of what comes a time t later. Such a derivative is true of changes smaller than exp(−λ t) only. [`HOPELESS`]
//! is how much growth still leaves something to be learnt from it: from then on, a change must be smaller
//! than a thousandth of anything that one would change.

/// The growth beyond which derivatives say next to nothing.
pub const HOPELESS: f64 = 1e3;

/// How many lengths are kept at most.
const KEPT: usize = 512;

/// The length of an adjoint after each step of its way back, or after each of so many steps: as many as take constant memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    seen: usize,
    every: usize,
    kept: Vec<f64>,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { seen: 0, every: 1, kept: Vec::with_capacity(KEPT) }
    }
}

impl Lengths {
    /// Another step is taken; the length is asked for where it is kept.
    pub fn push(&mut self, length: impl FnOnce() -> f64) {
        if self.seen.is_multiple_of(self.every) && self.kept.len() == KEPT {
            // every other one goes
            (0..KEPT / 2).for_each(|k| self.kept[k] = self.kept[2 * k]);
            self.kept.truncate(KEPT / 2);
            self.every *= 2;
        }
        if self.seen.is_multiple_of(self.every) {
            self.kept.push(length());
        }
        self.seen += 1;
    }
    /// How many steps back there were.
    pub fn steps(&self) -> usize {
        self.seen
    }
    /// Those that are kept, with the number of steps that are left to the beginning of the run.
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.kept.iter().enumerate().map(|(k, x)| (self.seen - 1 - k * self.every, *x))
    }
    /// Their growth, with a step of this length.
    pub fn growth(&self, time_step: f64) -> Option<Growth> {
        growth(&self.kept, time_step * self.every as f64)
    }
}

/// The growth of an adjoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// λ, by ps: the slope of the logarithm of the adjoint's length over the later half of its way back.
    pub rate: f64,
    /// Its standard error, as if the distances from the line did not know of each other.
    pub error: f64,
    /// The time after which it has grown by [`HOPELESS`], ps; none where it does not grow.
    pub horizon: Option<f64>,
}

/// The growth of an adjoint of these lengths, one a time step; none where there are too few.
fn growth(lengths: &[f64], time_step: f64) -> Option<Growth> {
    let later = &lengths[lengths.len() / 2..];
    let points: Vec<(f64, f64)> = later
        .iter()
        .enumerate()
        .filter(|(_, x)| **x > 0.0 && x.is_finite())
        .map(|(k, x)| (k as f64 * time_step, x.ln()))
        .collect();
    let n = points.len() as f64;
    if n < 10.0 {
        return None;
    }
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let (xx, xy) = (mean(&|p| (p.0 - x).powi(2)), mean(&|p| (p.0 - x) * (p.1 - y)));
    let rate = xy / xx;
    let left = mean(&|p| (p.1 - y - rate * (p.0 - x)).powi(2));
    let error = (left / xx / (n - 2.0)).sqrt();
    let horizon = (rate > 2.0 * error).then(|| HOPELESS.ln() / rate);
    Some(Growth { rate, error, horizon })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exponential_has_its_rate() {
        let lengths: Vec<f64> = (0..200).map(|k| 3.0 * (0.5 * 0.01 * f64::from(k)).exp()).collect();
        let found = growth(&lengths, 0.01).unwrap();
        assert!((found.rate - 0.5).abs() < 1e-12 && found.error < 1e-12, "{found:?}");
        assert!((found.horizon.unwrap() - 1000f64.ln() / 0.5).abs() < 1e-9);
        let flat = growth(&[1.0; 50], 0.01).unwrap();
        assert_eq!((flat.rate, flat.horizon), (0.0, None));
        assert_eq!(growth(&[1.0; 5], 0.01), None);
    }

    #[test]
    fn lengths_of_many_steps_take_no_more_memory() {
        for steps in [1, 100, KEPT, KEPT + 1, 3 * KEPT, 50_000] {
            let mut lengths = Lengths::default();
            let (memory, rate) = (lengths.kept.capacity(), 1e-3);
            (0..steps).for_each(|k| lengths.push(|| (rate * k as f64).exp()));
            assert_eq!((lengths.kept.capacity(), lengths.steps()), (memory, steps));
            // (each length stands by its own step, from the first to one of the last)
            for (left, x) in lengths.iter() {
                assert_eq!(x, (rate * (steps - 1 - left) as f64).exp());
            }
            assert_eq!(lengths.iter().next().map(|x| x.0), Some(steps - 1));
            assert!(lengths.iter().last().unwrap().0 <= steps / (KEPT / 2));
            if let Some(found) = lengths.growth(0.5) {
                assert!((found.rate - 2.0 * rate).abs() < 1e-12, "{found:?}");
            }
        }
    }
}
