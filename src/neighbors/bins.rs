//! Atoms and their periodic images, sorted into bins over the fractions of the cell's basis.

use crate::system::cell::Cell;
use std::ops::Range;

/// Bins along one axis of the basis, over the cell and, on a periodic axis, what is in reach on both sides of it.
///
/// `place` never decreases with the fraction, also as rounded, so what lies between two fractions lies
/// between their bins.
#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    periodic: bool,
    /// Number of bins.
    count: usize,
    /// Where the first bin starts, bins per unit of fraction, and how wide they are (infinite if there is but one).
    origin: f64,
    per_unit: f64,
    width: f64,
    /// One less than `count`.
    last: f64,
    /// How far to look, as a fraction, and its inverse, a little less than exact.
    reach: f64,
    per_reach: f64,
}

impl Axis {
    #[inline(always)]
    fn place(&self, s: f64) -> usize {
        // What is below the first bin belongs to it, as does what is no number.
        ((s - self.origin) * self.per_unit).max(0.0).min(self.last) as u32 as usize
    }

    /// How far a bin is from the fractions between two, in reaches.
    #[inline(always)]
    fn gap(&self, bin: usize, low: f64, high: f64) -> f64 {
        // (the first and the last bin go on for ever)
        let start = self.origin + bin as f64 * self.width;
        let below = if bin == 0 { 0.0 } else { start - high };
        let above = if bin + 1 == self.count { 0.0 } else { low - (start + self.width) };
        // (a little less than exact, for rounding)
        below.max(above).max(0.0) * self.per_reach
    }

    /// The images of a fraction that are in reach of the cell.
    #[inline(always)]
    fn images(&self, s: f64) -> Range<i32> {
        if !self.periodic {
            return 0..1;
        }
        let edge = 0.5 + self.reach;
        let up = edge - s;
        // floor and ceiling, without a call where the processor has no instruction for it
        let (last, first) = (up as i32, -((edge + s) as i32));
        first..last + 1
    }

    /// The largest image number that can be in reach.
    fn most(&self) -> f64 {
        if self.periodic { (1.0 + self.reach).floor() } else { 0.0 }
    }
}

/// Where the atoms and their images stand in memory: sorted by bin. A *slot* is an atom or one of the images that
/// are in reach of the cell; what is near in space is near in memory, and an image needs no arithmetic of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    axes: [Axis; 3],
    /// Whether the axes are at right angles.
    upright: bool,
    /// Where each bin starts among the slots; the last axis runs fastest.
    starts: Vec<u32>,
    /// The atom of each slot, and which image of it.
    pub owners: Vec<u32>,
    pub images: Vec<[i32; 3]>,
    /// Cartesian coordinates of the slots when they were sorted, nm.
    pub places: [Vec<f64>; 3],
    sorted: Vec<f64>,
    expected: f64,
}

impl Bins {
    /// Chooses the bins for neighbours within `radius` (nm) of atoms at `rows`, which lie in [-½, ½) along
    /// periodic axes. Returns the volume (nm³) over which the atoms are spread.
    pub fn choose(&mut self, cell: &Cell, rows: &[[f64; 3]], radius: f64) -> f64 {
        let heights = heights(cell);
        self.upright = cell.is_orthorhombic();
        let height = |k: usize| heights[k];
        let mut bounds = [(0.0, 1.0); 3];
        let mut spread = determinant(&cell.basis()).abs();
        for k in 0..3 {
            // A little more than exact, for rounding.
            let reach = radius / height(k) * (1.0 + 1e-9) + 1e-12;
            let periodic = cell.periodic()[k];
            let per_reach = (1.0 - 1e-9) / reach;
            self.axes[k] = Axis { periodic, reach, per_reach, ..Axis::default() };
            bounds[k] = if periodic {
                (-0.5 - reach, 0.5 + reach)
            } else if rows.is_empty() {
                (0.0, 0.0)
            } else {
                let widen = |(a, b): (f64, f64), u: &[f64; 3]| (a.min(u[k]), b.max(u[k]));
                rows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), widen)
            };
            if !periodic {
                spread *= bounds[k].1 - bounds[k].0 + reach;
            }
        }
        // Columns of short bins: more and narrower ones would look at fewer atoms, but in shorter runs. Not many more
        // bins than slots.
        self.expected = self
            .axes
            .iter()
            .fold(rows.len() as f64, |n, axis| n * if axis.periodic { 1.0 + 2.0 * axis.reach } else { 1.0 });
        let most = (4.0 * self.expected + 64.0).min(4e9);
        let wanted = |bounds: &[(f64, f64); 3], scale: f64| -> [f64; 3] {
            let width = [2.0 / 3.0, 2.0 / 3.0, 0.25].map(|w| w * scale * radius);
            std::array::from_fn(|k| {
                ((bounds[k].1 - bounds[k].0) * height(k) / width[k]).floor().clamp(1.0, 1e9)
            })
        };
        let mut counts = wanted(&bounds, 1.0);
        if counts.iter().product::<f64>() > most {
            // A few atoms far out on a free axis may share the outermost bins.
            for k in (0..3).filter(|&k| !self.axes[k].periodic) {
                self.sorted.clear();
                self.sorted.extend(rows.iter().map(|u| u[k]));
                self.sorted.sort_unstable_by(f64::total_cmp);
                let few = rows.len() / 200;
                if let (Some(&low), Some(&high)) =
                    (self.sorted.get(few), self.sorted.get(rows.len().saturating_sub(1 + few)))
                {
                    bounds[k] = (low, high);
                }
            }
            let mut scale = 1.0;
            counts = wanted(&bounds, scale);
            while counts.iter().product::<f64>() > most {
                scale *= 1.1;
                counts = wanted(&bounds, scale);
            }
        }
        for k in 0..3 {
            let (low, high) = bounds[k];
            let axis = &mut self.axes[k];
            axis.count = counts[k] as usize;
            axis.origin = low;
            axis.per_unit = if high > low { counts[k] / (high - low) } else { 0.0 };
            axis.width = 1.0 / axis.per_unit;
            axis.last = counts[k] - 1.0;
        }
        spread
    }

    /// About how many slots there will be.
    pub fn expected(&self) -> f64 {
        self.expected
    }

    /// The largest image numbers in reach.
    pub fn most_images(&self) -> [f64; 3] {
        self.axes.map(|axis| axis.most())
    }

    #[inline(always)]
    fn bin(&self, s: [f64; 3]) -> usize {
        let [a, b, c] = &self.axes;
        (a.place(s[0]) * b.count + b.place(s[1])) * c.count + c.place(s[2])
    }

    /// Sorts the atoms and their images into the bins, in each by atom.
    pub fn fill(&mut self, cell: &Cell, rows: &[[f64; 3]]) {
        let total = self.axes.iter().map(|axis| axis.count).product::<usize>();
        let axes = self.axes;
        let each = |visit: &mut dyn FnMut(usize, [i32; 3], [f64; 3])| {
            for (atom, u) in rows.iter().enumerate() {
                let of = |k: usize| axes[k].images(u[k]);
                for a in of(0) {
                    for b in of(1) {
                        for c in of(2) {
                            let n = [a, b, c];
                            visit(atom, n, std::array::from_fn(|k| u[k] + f64::from(n[k])));
                        }
                    }
                }
            }
        };
        let mut starts = std::mem::take(&mut self.starts);
        starts.clear();
        starts.resize(total + 1, 0);
        each(&mut |_, _, s| starts[self.bin(s) + 1] += 1);
        for k in 0..total {
            starts[k + 1] += starts[k];
        }
        let slots = starts[total] as usize;
        let mut owners = std::mem::take(&mut self.owners);
        let mut images = std::mem::take(&mut self.images);
        let mut places = std::mem::take(&mut self.places);
        owners.resize(slots, 0);
        images.resize(slots, [0; 3]);
        // (kernels read whole registers)
        places.iter_mut().for_each(|p| p.resize(slots + 16, 0.0));
        each(&mut |atom, n, s| {
            let next = &mut starts[self.bin(s)];
            let slot = *next as usize;
            *next += 1;
            (owners[slot], images[slot]) = (atom as u32, n);
            for (p, x) in places.iter_mut().zip(cell.cartesian(s)) {
                p[slot] = x;
            }
        });
        // what were the starts are ends now
        starts.rotate_right(1);
        starts[0] = 0;
        (self.starts, self.owners, self.images, self.places) = (starts, owners, images, places);
    }

    /// The atom in a slot.
    #[inline(always)]
    pub fn owner(&self, slot: u32) -> usize {
        self.owners[slot as usize / 4] as usize
    }
    /// Which image of it.
    #[inline(always)]
    pub fn image(&self, slot: u32) -> [i32; 3] {
        self.images[slot as usize / 4]
    }
    /// What puts slots into an order that does not change from build to build.
    #[inline(always)]
    pub fn key(&self, slot: u32) -> (usize, [i32; 3]) {
        (self.owner(slot), self.image(slot))
    }
    /// Where a slot was when they were sorted, nm.
    #[inline(always)]
    pub fn place(&self, slot: u32) -> [f64; 3] {
        let [x, y, z] = &self.places;
        [x[slot as usize / 4], y[slot as usize / 4], z[slot as usize / 4]]
    }
    /// The column of bins that fractions s are in.
    #[inline(always)]
    pub fn column(&self, s: [f64; 3]) -> usize {
        let [a, b, _] = &self.axes;
        a.place(s[0]) * b.count + b.place(s[1])
    }

    /// Visits runs of slots, none of them empty, that hold all that can be in reach of any point whose fractions are between `low` and `high`.
    #[inline(always)]
    pub fn around(&self, low: [f64; 3], high: [f64; 3], mut visit: impl FnMut(Range<usize>)) {
        let [x, y, z] = &self.axes;
        let ends =
            |axis: &Axis, k: usize| (axis.place(low[k] - axis.reach), axis.place(high[k] + axis.reach));
        let ((x0, x1), (y0, y1), all) = (ends(x, 0), ends(y, 1), ends(z, 2));
        for a in x0..=x1 {
            let aside = x.gap(a, low[0], high[0]);
            for b in y0..=y1 {
                let (z0, z1) = match self.upright {
                    false => all,
                    // what is left of the sphere at this distance of the column
                    true => {
                        let left = 1.0 - aside.powi(2) - y.gap(b, low[1], high[1]).powi(2);
                        if left < 0.0 {
                            continue;
                        }
                        let reach = z.reach * left.sqrt();
                        (z.place(low[2] - reach), z.place(high[2] + reach))
                    }
                };
                let column = (a * y.count + b) * z.count;
                let run = self.starts[column + z0] as usize..self.starts[column + z1 + 1] as usize;
                if !run.is_empty() {
                    visit(run);
                }
            }
        }
    }
}

/// How far it is between opposite faces of the basis, nm, also along free axes.
fn heights(cell: &Cell) -> [f64; 3] {
    let inverse = cell.inverse();
    std::array::from_fn(|k| {
        let column = [inverse[0][k], inverse[1][k], inverse[2][k]];
        1.0 / (column[0] * column[0] + column[1] * column[1] + column[2] * column[2]).sqrt()
    })
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        + m[0][1] * (m[1][2] * m[2][0] - m[1][0] * m[2][2])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}
