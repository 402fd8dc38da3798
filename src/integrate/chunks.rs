//! Work on long slices in fixed pieces, so that nothing depends on the number of threads.

/// Atoms in a piece.
pub(super) const CHUNK: usize = 2048;

/// What can be cut in two: a slice, or several slices of one length.
pub(super) trait Split: Send + Sized {
    /// The elements in it.
    fn count(&self) -> usize;
    /// The first `at` elements, and the others.
    fn cut(self, at: usize) -> (Self, Self);
}

impl<T: Sync> Split for &[T] {
    fn count(&self) -> usize {
        self.len()
    }
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at.min(self.len()))
    }
}

impl<T: Send> Split for &mut [T] {
    fn count(&self) -> usize {
        self.len()
    }
    fn cut(self, at: usize) -> (Self, Self) {
        let at = at.min(self.len());
        self.split_at_mut(at)
    }
}

impl<A: Split, B: Split> Split for (A, B) {
    fn count(&self) -> usize {
        self.0.count().min(self.1.count())
    }
    fn cut(self, at: usize) -> (Self, Self) {
        let ((a, c), (b, d)) = (self.0.cut(at), self.1.cut(at));
        ((a, b), (c, d))
    }
}

impl<A: Split, B: Split, C: Split> Split for (A, B, C) {
    fn count(&self) -> usize {
        self.0.count().min(self.1.count()).min(self.2.count())
    }
    fn cut(self, at: usize) -> (Self, Self) {
        let ((a, d), (b, e), (c, f)) = (self.0.cut(at), self.1.cut(at), self.2.cut(at));
        ((a, b, c), (d, e, f))
    }
}

impl<A: Split, B: Split, C: Split, D: Split> Split for (A, B, C, D) {
    fn count(&self) -> usize {
        self.0.count().min(self.1.count()).min(self.2.count()).min(self.3.count())
    }
    fn cut(self, at: usize) -> (Self, Self) {
        let ((a, e), (b, f), (c, g), (d, h)) =
            (self.0.cut(at), self.1.cut(at), self.2.cut(at), self.3.cut(at));
        ((a, b, c, d), (e, f, g, h))
    }
}

/// Applies `leaf` (given the number of the first element) to pieces of [`CHUNK`] elements, in parallel, and
/// joins the results two by two in a tree whose shape depends on the number of elements alone. Sums are
/// thus the same for every number of threads. Nothing is allocated.
pub(super) fn reduce<D: Split, R: Send>(
    data: D,
    leaf: &(impl Fn(usize, D) -> R + Sync),
    join: &(impl Fn(R, R) -> R + Sync),
) -> R {
    at(0, data, leaf, join)
}

fn at<D: Split, R: Send>(
    first: usize,
    data: D,
    leaf: &(impl Fn(usize, D) -> R + Sync),
    join: &(impl Fn(R, R) -> R + Sync),
) -> R {
    let count = data.count();
    if count <= CHUNK {
        return leaf(first, data);
    }
    let half = count.div_ceil(CHUNK) / 2 * CHUNK;
    let (low, high) = data.cut(half);
    let (a, b) =
        rayon::join(|| at(first, low, leaf, join), || at(first.saturating_add(half), high, leaf, join));
    join(a, b)
}

/// As [`reduce`], with results to add up.
pub(super) fn sum<D: Split, const K: usize>(
    data: D,
    leaf: &(impl Fn(usize, D) -> [f64; K] + Sync),
) -> [f64; K] {
    reduce(data, leaf, &|a: [f64; K], b: [f64; K]| std::array::from_fn(|k| a[k] + b[k]))
}

/// As [`reduce`], without results.
pub(super) fn each<D: Split>(data: D, leaf: &(impl Fn(usize, D) + Sync)) {
    reduce(data, leaf, &|(), ()| ());
}

/// Σ a·b over all components.
pub(super) fn dot(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    let leaf = |_, (a, b): (&[[f64; 3]], &[[f64; 3]])| {
        [a.iter().zip(b).map(|(a, b)| a[0] * b[0] + a[1] * b[1] + a[2] * b[2]).sum()]
    };
    let [sum] = sum((a, b), &leaf);
    sum
}

/// The largest of |x| over all components; NaN counts as infinite.
pub(super) fn largest_component(a: &[[f64; 3]]) -> f64 {
    let size = |x: f64| if x.is_nan() { f64::INFINITY } else { x.abs() };
    let leaf = |_, a: &[[f64; 3]]| a.iter().flatten().fold(0.0, |m: f64, &x| m.max(size(x)));
    reduce(a, &leaf, &f64::max)
}

/// The largest length of a vector; NaN counts as infinite.
pub(super) fn largest_length(a: &[[f64; 3]]) -> f64 {
    let scale = largest_component(a);
    if scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    // Scaled, so that neither huge nor tiny vectors are lost in their squares.
    let leaf = |_, a: &[[f64; 3]]| {
        a.iter().map(|v| v.map(|x| x / scale)).fold(0.0, |m: f64, [x, y, z]| m.max(x * x + y * y + z * z))
    };
    reduce(a, &leaf, &f64::max).sqrt() * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_fixed_and_complete() {
        for n in [0, 1, CHUNK, CHUNK + 1, 5 * CHUNK - 1, 7 * CHUNK + 13] {
            let mut data = vec![0usize; n];
            let leaf = |first: usize, data: &mut [usize]| {
                assert!(first.is_multiple_of(CHUNK) && data.len() <= CHUNK);
                data.iter_mut().enumerate().for_each(|(k, x)| *x = first + k + 1);
                1
            };
            let pieces = reduce(&mut data[..], &leaf, &|a, b| a + b);
            assert_eq!(pieces, n.div_ceil(CHUNK).max(1));
            assert!(data.iter().enumerate().all(|(k, &x)| x == k + 1));
        }
    }

    #[test]
    fn sums_do_not_depend_on_threads() {
        let a: Vec<[f64; 3]> = (0..20_000).map(|i| [0.1, 0.7, 1.3].map(|x| x / f64::from(i + 1))).collect();
        let expected = dot(&a, &a);
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| dot(&a, &a)).to_bits(), expected.to_bits());
        }
        assert_eq!(largest_component(&[[1.0, -3.0, 2.0]]), 3.0);
        assert_eq!(largest_component(&[[1.0, f64::NAN, 2.0]]), f64::INFINITY);
        assert!((largest_length(&[[3e200, 0.0, -4e200], [0.0; 3]]) / 5e200 - 1.0).abs() < 1e-15);
    }
}
