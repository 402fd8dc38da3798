//! Derivatives by finite differences.

/// The derivatives at 0 of all components of `f`: central differences at steps that shrink from `step`,
/// extrapolated to step zero, of which the entry with the smallest estimated error counts (C. J. F. Ridders,
/// Adv. Eng. Software 4, 75 (1982)).
///
/// The table is made anew from a smaller first step where some estimate is larger than `enough`: a corner nearby
/// spoils only the tables that reach across it.
pub fn derivatives(step: f64, enough: f64, f: &mut dyn FnMut(f64) -> Vec<f64>) -> Vec<f64> {
    const SHRINK: f64 = 1.6;
    const LEVELS: usize = 7;
    let mut best: Vec<(f64, f64)> = Vec::new();
    let mut first = step;
    for _ in 0..3 {
        // one row of the table for each component
        let mut rows: Vec<[f64; LEVELS]> = Vec::new();
        let mut h = first;
        for level in 0..LEVELS {
            let quotients: Vec<f64> =
                f(h).iter().zip(&f(-h)).map(|(plus, minus)| (plus - minus) / (2.0 * h)).collect();
            best.resize(quotients.len(), (f64::NAN, f64::INFINITY));
            rows.resize(quotients.len(), [0.0; LEVELS]);
            for ((row, best), q) in rows.iter_mut().zip(&mut best).zip(quotients) {
                let above = *row;
                row[0] = q;
                let mut power = SHRINK * SHRINK;
                for k in 1..=level {
                    row[k] = (row[k - 1] * power - above[k - 1]) / (power - 1.0);
                    power *= SHRINK * SHRINK;
                    let error = (row[k] - row[k - 1]).abs().max((row[k] - above[k - 1]).abs());
                    if error < best.1 {
                        *best = (row[k], error);
                    }
                }
            }
            if level > 0 && best.iter().all(|b| b.1 <= enough) {
                return best.iter().map(|b| b.0).collect();
            }
            h /= SHRINK;
        }
        first /= 8.0;
    }
    best.iter().map(|b| b.0).collect()
}

/// The derivative of a single number.
pub fn derivative(step: f64, enough: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    derivatives(step, enough, &mut |h| vec![f(h)])[0]
}
