//! How fast an adjoint grows on its way back.
//!
//! Where neighbouring trajectories part like exp(λ t) (λ is the largest Lyapunov exponent), so does the adjoint, and with it
//! every derivative of what comes a time t later. Such a derivative is true of changes smaller than exp(−λ t) only. [`HOPELESS`]
//! is how much growth still leaves something to be learnt from it: from then on, a change must be smaller
//! than a thousandth of anything that one would change.

/// The growth beyond which derivatives say next to nothing.
pub const HOPELESS: f64 = 1e3;

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
pub fn growth(lengths: &[f64], time_step: f64) -> Option<Growth> {
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
}
