//! Derivatives by finite differences, for checking those that are exact.

/// Central differences at shrinking steps, extrapolated to step zero (Richardson), of which the entry with the
/// smallest estimated error is kept (C. J. F. Ridders, Adv. Eng. Software 4, 75 (1982)).
///
/// The table is made several times from smaller and smaller first steps. A function that jumps or has a corner
/// near `x` spoils the tables that reach across it, and only those.
///
/// ```
/// use md::autodiff::Richardson;
/// let d = Richardson::with_step(0.1).derivative(f64::sin, 1.0);
/// assert!((d.value - 1f64.cos()).abs() < 1e-12 && d.error < 1e-11);
/// // a corner at 1e-4 from here
/// let d = Richardson::with_step(0.1).derivative(|x| (x - 0.9999).abs() * x, 1.0);
/// assert!((d.value - (1.0 + 1e-4)).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Richardson {
    /// The largest step.
    pub step: f64,
    /// How many steps a table has, each shorter than the one before by 1.6.
    pub levels: usize,
    /// How many tables, each with a first step an eighth of the one before.
    pub tables: usize,
    /// No further table is made once each estimated error is below this fraction of its derivative.
    pub enough: f64,
    /// A derivative smaller than this counts as this large there: 0 where none is too small to matter.
    pub scale: f64,
}

/// A derivative by finite differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The derivative.
    pub value: f64,
    /// How far off it may be; infinite where no step gave a finite difference.
    pub error: f64,
    /// The largest step that has a part in it.
    pub step: f64,
}

impl Difference {
    const UNKNOWN: Self = Self { value: f64::NAN, error: f64::INFINITY, step: 0.0 };
}

/// The slopes to the left and to the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slopes {
    /// The derivative from below.
    pub left: Difference,
    /// The derivative from above.
    pub right: Difference,
    /// Whether the function jumps here: however small the step, the value changes by as much.
    pub jump: bool,
}

impl Slopes {
    /// Whether they differ by more than their errors explain: the function has a corner or a jump here.
    pub fn differ(&self) -> bool {
        let scale = self.left.value.abs().max(self.right.value.abs());
        let apart = (self.left.value - self.right.value).abs();
        // (a NaN counts as different)
        let alike = apart <= 1e-4 * scale + 10.0 * (self.left.error + self.right.error);
        self.jump || !alike
    }
}

const SHRINK: f64 = 1.6;
const MAX_LEVELS: usize = 16;

impl Richardson {
    /// Up to six tables of at most ten steps from `step` down.
    pub const fn with_step(step: f64) -> Self {
        Self { step, levels: 10, tables: 6, enough: 1e-11, scale: 0.0 }
    }

    /// f′(x).
    pub fn derivative(&self, mut f: impl FnMut(f64) -> f64, x: f64) -> Difference {
        self.derivatives(|x| [f(x)], x)[0]
    }

    /// The derivatives at x of all components of `f`, which returns equally many each time.
    pub fn derivatives<V: AsRef<[f64]>>(&self, mut f: impl FnMut(f64) -> V, x: f64) -> Vec<Difference> {
        // the error goes with even powers of the step
        self.best(x, SHRINK * SHRINK, &mut |x, h, out| {
            let (a, b) = (x - h, x + h);
            let (fa, fb) = (f(a), f(b));
            out.extend(fa.as_ref().iter().zip(fb.as_ref()).map(|(fa, fb)| Quotient::new(*fa, *fb, b - a)));
        })
    }

    /// The slopes at `x` from either side.
    pub fn slopes(&self, mut f: impl FnMut(f64) -> f64, x: f64) -> Slopes {
        let here = f(x);
        let mut jump = false;
        for sign in [-1.0, 1.0] {
            let change = |y: f64| (y - here).abs();
            let (near, nearer) =
                (change(f(x + sign * self.step * 1e-4)), change(f(x + sign * self.step * 1e-9)));
            jump |= nearer > 0.1 * near && nearer > 1e-10 * here.abs();
        }
        let mut side = |sign: f64| {
            self.best(x, SHRINK, &mut |x, h, out| {
                let b = x + sign * h;
                out.push(Quotient::new(here, f(b), b - x));
            })[0]
        };
        Slopes { left: side(-1.0), right: side(1.0), jump }
    }

    /// The best entries of all tables; `factor` is by how much one step less reduces the leading error.
    fn best(&self, x: f64, factor: f64, quotients: Quotients) -> Vec<Difference> {
        let mut best: Vec<Difference> = Vec::new();
        let mut first = self.step;
        for _ in 0..self.tables {
            let found = self.table(x, first, factor, quotients);
            best.resize(found.len(), Difference::UNKNOWN);
            for (best, found) in best.iter_mut().zip(found) {
                if found.error < best.error {
                    *best = found;
                }
            }
            if best.iter().all(|b| b.error <= self.enough * b.value.abs().max(self.scale)) {
                break;
            }
            first *= 0.125;
        }
        best
    }

    fn table(&self, x: f64, first: f64, factor: f64, quotients: Quotients) -> Vec<Difference> {
        let mut columns: Vec<Column> = Vec::new();
        let mut row = Vec::new();
        let mut h = first;
        for level in 0..self.levels.min(MAX_LEVELS) {
            row.clear();
            quotients(x, h, &mut row);
            columns.resize(row.len(), Column::new(first));
            for (column, &quotient) in columns.iter_mut().zip(&row).filter(|(c, _)| !c.done) {
                column.extend(level, factor, quotient);
            }
            if columns.iter().all(|c| c.done) {
                break;
            }
            h /= SHRINK;
        }
        columns.into_iter().map(|c| c.best).collect()
    }
}

/// Differences at zero with an error to be believed.
///
/// The estimate from one table of [`Richardson`] is the smallest of many, and may be small by accident: where the
/// function has a corner or jumps within the steps, or everywhere if the steps are longer than what it depends on. So
/// two tables with different steps must agree as well, the slopes on the two sides must not differ next to the point
/// (all steps reach across a corner that is closer, and differences there are the mean of the two slopes), and the error
/// is never less than what the noise of the function makes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cautious {
    /// The largest step.
    pub step: f64,
    /// A derivative smaller than this counts as this large.
    pub scale: f64,
    /// What values of the function are uncertain by.
    pub noise: f64,
    /// No shorter steps are tried once the estimated error is below this fraction of the derivative.
    pub enough: f64,
}

impl Cautious {
    /// f′(0).
    pub fn derivative(&self, mut f: impl FnMut(f64) -> f64) -> Difference {
        let Self { step, scale, noise, enough } = *self;
        let mut best = Difference { step, ..Difference::UNKNOWN };
        let here = f(0.0);
        let mut first = step;
        for _ in 0..3 {
            let mut table = |step, levels| {
                Richardson { step, levels, tables: 1, enough: 0.0, scale }.derivative(&mut f, 0.0)
            };
            let (a, b) = (table(first, 5), table(0.6 * first, 4));
            let closer = if a.error < b.error { a } else { b };
            // how much the slopes differ, extrapolated to the point itself (odd powers of the step are of a smooth
            // curve)
            let mut slopes = |h: f64| (f(h) - 2.0 * here + f(-h)) / h;
            let [wide, middle, near] = [0.2, 0.1, 0.05].map(|part| slopes(part * first));
            let corner = (8.0 * (2.0 * near - middle) - (2.0 * middle - wide)) / 7.0;
            let error = 3.0 * a.error.max(b.error).max((a.value - b.value).abs()) + 10.0 * noise / first;
            let error = error + (corner.abs() - 200.0 * noise / first).max(0.0);
            if error < best.error {
                best = Difference { error, ..closer };
            }
            if best.error <= enough * best.value.abs().max(scale) {
                break;
            }
            first *= 0.125;
        }
        best
    }
}

/// Appends the difference quotients of all components at x with step h.
type Quotients<'a> = &'a mut dyn FnMut(f64, f64, &mut Vec<Quotient>);

/// A difference quotient and what it owes to rounding.
#[derive(Clone, Copy)]
struct Quotient {
    value: f64,
    rounding: f64,
}

impl Quotient {
    fn new(a: f64, b: f64, step: f64) -> Self {
        let rounding = f64::EPSILON * a.abs().max(b.abs()) / step.abs();
        Self { value: (b - a) / step, rounding }
    }
}

/// The table of one component: its last row, and the best entry so far.
#[derive(Clone)]
struct Column {
    row: [f64; MAX_LEVELS],
    best: Difference,
    done: bool,
}

impl Column {
    fn new(first: f64) -> Self {
        Self { row: [0.0; MAX_LEVELS], best: Difference { step: first, ..Difference::UNKNOWN }, done: false }
    }

    fn extend(&mut self, level: usize, factor: f64, quotient: Quotient) {
        let above = self.row;
        let Self { row, best, .. } = self;
        row[0] = quotient.value;
        let mut power = factor;
        for k in 1..=level {
            row[k] = (row[k - 1] * power - above[k - 1]) / (power - 1.0);
            power *= if factor > 2.0 { factor } else { SHRINK };
            let error = (row[k] - row[k - 1]).abs().max((row[k] - above[k - 1]).abs()) + quotient.rounding;
            if error < best.error {
                *best = Difference { value: row[k], error, ..*best };
            }
        }
        // rounding has taken over
        self.done =
            level > 0 && (row[level] - above[level - 1]).abs() > 4.0 * best.error.max(f64::MIN_POSITIVE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_covers_the_error() {
        type Case = (fn(f64) -> f64, fn(f64) -> f64, f64);
        let cases: [Case; 5] = [
            (f64::exp, f64::exp, 0.3),
            (|x| x.powi(-12), |x| -12.0 * x.powi(-13), 0.9),
            (|x| (40.0 * x).sin(), |x| 40.0 * (40.0 * x).cos(), 0.2),
            (f64::sqrt, |x| 0.5 / x.sqrt(), 1e-3),
            (|_| 3.0, |_| 0.0, 1.0),
        ];
        for (f, slope, x) in cases {
            let d = Richardson::with_step(0.1).derivative(f, x);
            let error = (d.value - slope(x)).abs();
            assert!(error <= 10.0 * d.error + 1e-15, "{d:?} {}", slope(x));
            assert!(d.error <= 1e-8 * slope(x).abs() + 1e-12, "{d:?} {}", slope(x));
        }
    }

    #[test]
    fn corners_and_jumps_are_noticed() {
        let r = Richardson::with_step(0.1);
        let s = r.slopes(|x| x.abs() + x * x, 0.0);
        assert!(
            s.differ() && (s.left.value + 1.0).abs() < 1e-9 && (s.right.value - 1.0).abs() < 1e-9,
            "{s:?}"
        );
        assert!(r.slopes(|x| if x < 1.0 { x } else { x + 1.0 }, 1.0).differ());
        assert!(!r.slopes(|x| x.exp() * x, 0.7).differ());
        assert!(!r.slopes(|x| if x < 0.7 { x * x } else { 1.4 * x - 0.49 }, 0.7).differ());
    }

    #[test]
    fn errors_of_differences_are_believable() {
        let difference = |step, scale, noise, f: &dyn Fn(f64) -> f64| {
            Cautious { step, scale, noise, enough: 1e-7 }.derivative(f)
        };
        // a corner within the steps, wherever it is, and a curve that changes within much less than a step
        for k in 1..400 {
            let corner = 1e-3 * f64::from(k) / 300.0;
            let d = difference(1e-3, 1e-3, 1e-16, &|x| x + 1e-3 * (x - corner).max(0.0));
            assert!((d.value - 1.0).abs() <= d.error, "{corner} {d:?}");
        }
        let d = difference(1e-3, 1e-3, 1e-16, &|x| (3.0 * x).exp());
        assert!((d.value - 3.0).abs() <= d.error && d.error < 1e-8, "{d:?}");
        let noisy = |x: f64| x + 1e-9 * (1e9 * x).sin();
        let d = difference(1e-3, 1e-3, 1e-9, &noisy);
        assert!(d.error > 1e-6, "{d:?}");
        assert!(difference(0.0, 1.0, 0.0, &f64::sin).error.is_infinite());
    }
}
