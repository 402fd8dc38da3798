//! Fewer points for the same picture.

/// A curve as it will be drawn: polylines, broken where the data have gaps.
pub(super) type Lines = Vec<Vec<(f64, f64)>>;

/// Values beyond this are shown as gaps, so that a range of them can still be computed with.
pub(super) const LARGEST: f64 = 1e290;

/// Whether a value can be drawn.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// The curve with at most about four points in each of `columns` columns of the picture: the first, the
/// lowest, the highest and the last there, which draws the same pixels as all points would.
///
/// Curves that are short enough come back as they are, with a gap at each point that is not finite; in
/// the others a gap shows where a whole column has no finite point.
pub(super) fn envelope(x: &[f64], y: &[f64], columns: usize) -> Lines {
    let points = || x.iter().copied().zip(y.iter().copied());
    if x.len().min(y.len()) <= 3 * columns {
        return split(points());
    }
    let mut groups = grouped(points(), by_position(x, columns), Extremes::default());
    if groups.len() > 2 * columns {
        // The points do not come in order of x: take equal numbers of them instead.
        groups = grouped(points(), by_count(x.len(), columns), Extremes::default());
    }
    let mut lines = vec![Vec::new()];
    for group in groups {
        match group.points() {
            Some(points) => lines.last_mut().into_iter().for_each(|line| line.extend_from_slice(&points)),
            None => lines.push(Vec::new()),
        }
    }
    lines.iter_mut().for_each(|line| line.dedup());
    lines.retain(|line| !line.is_empty());
    lines
}

/// Whether the points fill the picture: in most of its columns they spread over a good part of the curve's whole
/// range, so that its course cannot be seen.
pub(super) fn fills(x: &[f64], y: &[f64], columns: usize) -> bool {
    let points = || x.iter().copied().zip(y.iter().copied());
    let Some((low, high)) = range(y.iter().copied()) else { return false };
    let groups = grouped(points(), by_position(x, columns), Extremes::default());
    let spread = |g: Extremes| g.four.map(|[_, low, high, _]| high.1.1 - low.1.1);
    let mut spreads: Vec<f64> = groups.into_iter().filter_map(spread).collect();
    spreads.sort_by(f64::total_cmp);
    spreads.get(spreads.len() / 2).is_some_and(|middle| *middle > 0.2 * (high - low))
}

/// Half the width of the bell that a running mean is weighted with (its standard deviation), as a part of the
/// whole range of x.
pub(super) const BELL: f64 = 0.01;

/// The curve's mean around each of `columns` places, with weights that fall off as a bell; nothing where the points
/// do not come in order of x.
///
/// (Means of blocks, one a block, make beats of an oscillation that are not there. A smooth weight, taken at places
/// much closer than its width, can only flatten one.)
pub(super) fn running_mean(x: &[f64], y: &[f64], columns: usize) -> Option<Lines> {
    let points: Vec<(f64, f64)> =
        x.iter().copied().zip(y.iter().copied()).filter(|(x, y)| drawable(*x) && drawable(*y)).collect();
    let (&(first, _), &(last, _)) = points.first().zip(points.last())?;
    let ordered = points.windows(2).all(|w| w[0].0 <= w[1].0);
    if !ordered || first >= last || columns < 2 {
        return None;
    }
    let width = BELL * (last - first);
    let mut lines = vec![Vec::new()];
    let mut from = 0;
    for k in 0..columns {
        let place = first + (last - first) * k as f64 / (columns - 1) as f64;
        from += points[from..].iter().take_while(|(x, _)| *x < place - 4.0 * width).count();
        let near = points[from..].iter().take_while(|(x, _)| *x <= place + 4.0 * width);
        let (mut weights, mut sum, mut here) = (0.0, 0.0, false);
        for (x, y) in near {
            let d = (x - place) / width;
            let weight = (-0.5 * d * d).exp();
            weights += weight;
            sum += weight * y;
            here |= d.abs() <= 1.0;
        }
        if here {
            lines.last_mut().into_iter().for_each(|line: &mut Vec<_>| line.push((place, sum / weights)));
        } else {
            lines.push(Vec::new());
        }
    }
    lines.retain(|line| !line.is_empty());
    Some(lines)
}

/// Each point by itself; of those that fall onto each other one. (A picture of millions would be no picture.)
pub(super) fn points(x: &[f64], y: &[f64]) -> Lines {
    const CELLS: f64 = 1000.0;
    let scale = |v: &[f64]| {
        let (low, high) = range(v.iter().copied()).unwrap_or((0.0, 0.0));
        (low, if high > low { CELLS / (high - low) } else { 0.0 })
    };
    let ((x0, a), (y0, b)) = (scale(x), scale(y));
    let mut seen = std::collections::HashSet::new();
    let all = x.iter().copied().zip(y.iter().copied()).filter(|(x, y)| drawable(*x) && drawable(*y));
    let apart = all.filter(|(x, y)| seen.insert((((x - x0) * a) as i32, ((y - y0) * b) as i32)));
    apart.map(|point| vec![point]).collect()
}

fn split(points: impl Iterator<Item = (f64, f64)>) -> Lines {
    let mut lines = vec![Vec::new()];
    for (x, y) in points {
        if drawable(x) && drawable(y) {
            lines.last_mut().into_iter().for_each(|line: &mut Vec<_>| line.push((x, y)));
        } else if lines.last().is_some_and(|line| !line.is_empty()) {
            lines.push(Vec::new());
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Lowest and highest of the values that can be drawn.
pub(super) fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| drawable(*v)).fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((v.min(low), v.max(high))),
    })
}

fn by_position(x: &[f64], columns: usize) -> impl Fn(usize, f64) -> usize + use<> {
    let (low, high) = range(x.iter().copied()).unwrap_or((0.0, 0.0));
    let scale = if high > low { columns as f64 / (high - low) } else { 0.0 };
    move |_, x| (((x - low) * scale) as usize).min(columns.max(1) - 1)
}

fn by_count(n: usize, columns: usize) -> impl Fn(usize, f64) -> usize {
    let size = n.div_ceil(columns).max(1);
    move |index, _| index / size
}

trait Group: Clone {
    fn add(&mut self, x: f64, y: f64);
}

/// Runs of points in the same column. Points without a place on the x axis are left out.
fn grouped<G: Group>(
    points: impl Iterator<Item = (f64, f64)>,
    column: impl Fn(usize, f64) -> usize,
    empty: G,
) -> Vec<G> {
    let mut groups: Vec<G> = Vec::new();
    let mut current = None;
    for (index, (x, y)) in points.enumerate().filter(|(_, (x, _))| drawable(*x)) {
        let here = column(index, x);
        if current != Some(here) {
            current = Some(here);
            groups.push(empty.clone());
        }
        if let Some(group) = groups.last_mut().filter(|_| drawable(y)) {
            group.add(x, y);
        }
    }
    groups
}

type Indexed = (usize, (f64, f64));

#[derive(Clone, Default)]
struct Extremes {
    count: usize,
    four: Option<[Indexed; 4]>,
}

impl Group for Extremes {
    fn add(&mut self, x: f64, y: f64) {
        let point = (self.count, (x, y));
        self.count += 1;
        match &mut self.four {
            None => self.four = Some([point; 4]),
            Some([_, low, high, last]) => {
                if y < low.1.1 {
                    *low = point;
                }
                if y > high.1.1 {
                    *high = point;
                }
                *last = point;
            }
        }
    }
}

impl Extremes {
    fn points(&self) -> Option<Vec<(f64, f64)>> {
        let mut four = self.four?;
        four.sort_by_key(|(index, _)| *index);
        let mut points: Vec<Indexed> = four.to_vec();
        points.dedup_by_key(|(index, _)| *index);
        Some(points.into_iter().map(|(_, point)| point).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(n: usize) -> Vec<f64> {
        (0..n).map(|i| i as f64).collect()
    }

    #[test]
    fn short_curves_stay_as_they_are() {
        let y = [1.0, f64::NAN, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, 4.0];
        let lines = envelope(&steps(7), &y, 100);
        assert_eq!(lines, [vec![(0.0, 1.0)], vec![(2.0, 2.0), (3.0, 3.0)], vec![(6.0, 4.0)]]);
        assert!(envelope(&[], &[], 10).is_empty());
        assert!(envelope(&[1.0], &[f64::NAN], 10).is_empty());
    }

    #[test]
    fn extremes_are_kept() {
        let x = steps(100_000);
        let mut y: Vec<f64> = x.iter().map(|x| (x * 0.37).sin()).collect();
        y[43_210] = 9.0;
        y[77_777] = -8.0;
        let lines = envelope(&x, &y, 500);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() <= 2_000);
        assert!(lines[0].contains(&(43_210.0, 9.0)) && lines[0].contains(&(77_777.0, -8.0)));
        assert_eq!(lines[0].first(), Some(&(0.0, y[0])));
        assert_eq!(lines[0].last(), Some(&(99_999.0, y[99_999])));
        assert!(lines[0].windows(2).all(|w| w[0].0 < w[1].0), "in the order of x");
    }

    #[test]
    fn long_gaps_show_and_short_ones_do_not() {
        let x = steps(100_000);
        let mut y = vec![1.0; x.len()];
        (0..y.len()).step_by(2).for_each(|i| y[i] = f64::NAN);
        assert_eq!(envelope(&x, &y, 100).len(), 1);
        y[40_000..60_000].fill(f64::NAN);
        assert_eq!(envelope(&x, &y, 100).len(), 2);
    }

    #[test]
    fn points_in_any_order_stay_few() {
        let n = 50_000;
        let x: Vec<f64> = (0..n).map(|i| ((i * 7919) % n) as f64).collect();
        let points: usize = envelope(&x, &x, 100).iter().map(Vec::len).sum();
        assert!(points <= 400, "{points}");
        assert!(running_mean(&x, &x, 100).is_none());
        let same = vec![3.0; n];
        assert!(envelope(&same, &same, 100).iter().map(Vec::len).sum::<usize>() <= 4);
    }

    #[test]
    fn running_means_show_no_beats() {
        let n = 10_000;
        let x = steps(n);
        let width = BELL * (n - 1) as f64;
        for period in [2.0, 7.3, 24.9, 66.7, 99.0, 201.0, 450.0, 3000.0] {
            let frequency = std::f64::consts::TAU / period;
            let y: Vec<f64> = x.iter().map(|x| 5.0 + (frequency * x).sin()).collect();
            let lines = running_mean(&x, &y, 300).unwrap();
            assert_eq!(lines.len(), 1);
            // a bell flattens an oscillation and leaves its frequency alone
            let size = (-0.5 * (frequency * width).powi(2)).exp();
            for &(x, y) in &lines[0][15..285] {
                assert!((y - 5.0 - size * (frequency * x).sin()).abs() < 1e-3, "{period} at {x}: {y}");
            }
        }
        let mut y = vec![1.0; n];
        y[4_000..6_000].fill(f64::NAN);
        assert_eq!(running_mean(&x, &y, 300).unwrap().len(), 2, "gaps stay");
    }

    #[test]
    fn only_what_fills_the_picture_is_smoothed() {
        let x = steps(10_000);
        let wave =
            |period: f64| x.iter().map(|x| (x * std::f64::consts::TAU / period).sin()).collect::<Vec<_>>();
        assert!(fills(&x, &wave(9.0), 600));
        assert!(!fills(&x, &wave(500.0), 600), "a wave that can be seen");
        assert!(!fills(&x, &vec![3.0; x.len()], 600));
    }
}
