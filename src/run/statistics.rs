//! Averages with honest errors, and the drift of what should be conserved.

use crate::plot::scale::fit_line;

/// An average and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// The mean.
    pub mean: f64,
    /// Its standard error, from the scatter of blocks; none with too few values to tell.
    pub error: Option<f64>,
}

/// How many blocks: ten, or five of few values.
fn blocks(values: usize) -> Option<usize> {
    match values {
        50.. => Some(10),
        10.. => Some(5),
        _ => None,
    }
}

/// The mean of each of `count` blocks of equal length; what does not fill a block is left out at the beginning.
fn block_means(values: &[f64], count: usize) -> Vec<f64> {
    let length = (values.len() / count).max(1);
    let skip = values.len().saturating_sub(length * count);
    let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
    values[skip..].chunks(length).map(mean).collect()
}

/// The average of the finite values. The error is that of 10 (or 5) block averages, which are independent if a
/// block is longer than the values remember.
pub fn average(values: &[f64]) -> Option<Average> {
    let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let error = blocks(values.len()).map(|count| {
        let means = block_means(&values, count);
        let n = means.len() as f64;
        let middle = means.iter().sum::<f64>() / n;
        let squares: f64 = means.iter().map(|m| (m - middle).powi(2)).sum();
        (squares / (n * (n - 1.0))).sqrt()
    });
    Some(Average { mean, error })
}

/// The slope of the line of least squares through (x, y) and its standard error: the slope's error in a fit
/// through the averages of 10 (or 5) blocks, whose scatter about the line holds whatever memory there is within
/// a block. None for fewer than 10 points.
pub fn slope(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    let (_, _, slope) = fit_line(x, y)?;
    let count = blocks(x.len().min(y.len()))?;
    let (x, y) = (block_means(x, count), block_means(y, count));
    let (x0, y0, through) = fit_line(&x, &y)?;
    let spread: f64 = x.iter().map(|x| (x - x0).powi(2)).sum();
    let scatter: f64 = x.iter().zip(&y).map(|(x, y)| (y - y0 - through * (x - x0)).powi(2)).sum();
    let error = (scatter / (x.len() as f64 - 2.0) / spread).sqrt();
    (slope.is_finite() && error.is_finite()).then_some((slope, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Noise, Purpose};

    fn normal(i: usize, sample: u64) -> f64 {
        Noise::new(5, Purpose::Test).normals(sample, i)[0]
    }

    #[test]
    fn averages_of_few_values() {
        assert_eq!(average(&[]), None);
        assert_eq!(average(&[f64::NAN, 2.0, 4.0]), Some(Average { mean: 3.0, error: None }));
        // blocks of two with means 0.5, 2.5, 4.5, 6.5, 8.5: variance 10, over 5
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let found = average(&ten).unwrap();
        assert_eq!(found.mean, 4.5);
        assert!((found.error.unwrap() - 2f64.sqrt()).abs() < 1e-14);
    }

    #[test]
    fn a_line_has_its_slope_and_no_error() {
        let x: Vec<f64> = (0..73).map(|i| 0.5 * f64::from(i)).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 - 0.25 * x).collect();
        let (slope, error) = slope(&x, &y).unwrap();
        assert!((slope + 0.25).abs() < 1e-14 && error < 1e-14);
    }

    #[test]
    fn errors_cover_the_truth() {
        // noise that remembers about ten values, on a slope of 0.001: errors are the right size on average
        let (samples, n) = (200, 1000);
        let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let (mut of_mean, mut of_slope) = (0.0, 0.0);
        for sample in 0..samples {
            let mut memory = 0.0;
            let y: Vec<f64> = (0..n)
                .map(|i| {
                    memory = 0.9 * memory + normal(i, sample);
                    memory
                })
                .collect();
            let a = average(&y).unwrap();
            of_mean += (a.mean / a.error.unwrap()).powi(2) / samples as f64;
            let drifting: Vec<f64> = y.iter().zip(&x).map(|(y, x)| y + 0.001 * x).collect();
            let (slope, error) = slope(&x, &drifting).unwrap();
            of_slope += ((slope - 0.001) / error).powi(2) / samples as f64;
        }
        // Student's t with 9 and 8 degrees of freedom has variances 9/7 and 8/6
        assert!((0.9..1.9).contains(&of_mean), "{of_mean}");
        assert!((0.9..1.9).contains(&of_slope), "{of_slope}");
    }
}
