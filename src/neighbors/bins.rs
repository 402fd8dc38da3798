//! Bins over the fractions of the cell's basis: where to look for neighbours.

use crate::system::cell::Cell;

/// Bins along one axis of the basis.
///
/// `place` never decreases with the fraction, also as rounded, so what lies between two fractions lies
/// between their bins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Axis {
    periodic: bool,
    /// Number of bins.
    pub count: usize,
    /// Where the first bin starts, and bins per unit of fraction.
    origin: f64,
    per_unit: f64,
    /// How far to look, as a fraction.
    pub reach: f64,
}

impl Axis {
    /// The bin of a fraction (in [0, 1] on periodic axes).
    #[inline(always)]
    fn bin(&self, s: f64) -> usize {
        // The cast saturates: what is below the first bin belongs to it.
        (((s - self.origin) * self.per_unit) as usize).min(self.count - 1)
    }

    /// Image and bin of any fraction.
    #[inline(always)]
    pub fn place(&self, s: f64) -> (i32, usize) {
        // The floor, without a call where the processor has no instruction for it.
        let truncated = if self.periodic { s as i32 } else { 0 };
        let whole = truncated - i32::from(self.periodic && f64::from(truncated) > s);
        (whole, self.bin(s - f64::from(whole)))
    }

    /// The largest image number that can be in reach.
    pub fn images(&self) -> f64 {
        if self.periodic { self.reach.floor() + 1.0 } else { 0.0 }
    }
}

/// All atoms sorted into bins.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    pub axes: [Axis; 3],
    /// Where each bin starts in what follows; the last axis runs fastest.
    pub starts: Vec<u32>,
    /// Atoms by bin, and in a bin by index; in the upper half of each number.
    pub order: Vec<u64>,
    /// Their fractions.
    pub fractions: [Vec<f64>; 3],
    bin_of: Vec<u32>,
    sorted: Vec<f64>,
}

impl Bins {
    /// Chooses the bins for neighbours within `radius` (nm) of atoms at `rows`, which lie in [0, 1) along
    /// periodic axes. Returns the volume (nm³) over which the atoms are spread.
    pub fn choose(&mut self, cell: &Cell, rows: &[[f64; 4]], radius: f64) -> f64 {
        let (inverse, periodic) = (cell.inverse(), cell.periodic());
        let height = |k: usize| {
            let column = [inverse[0][k], inverse[1][k], inverse[2][k]];
            1.0 / (column[0] * column[0] + column[1] * column[1] + column[2] * column[2]).sqrt()
        };
        let mut bounds = [(0.0, 1.0); 3];
        let mut spread = determinant(&cell.basis()).abs();
        for k in 0..3 {
            // A little more than exact, for rounding.
            self.axes[k].reach = radius / height(k) * (1.0 + 1e-9) + 1e-12;
            self.axes[k].periodic = periodic[k];
            if !periodic[k] {
                bounds[k] = rows
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), u| (a.min(u[k]), b.max(u[k])));
                if rows.is_empty() {
                    bounds[k] = (0.0, 0.0);
                }
                spread *= bounds[k].1 - bounds[k].0 + self.axes[k].reach;
            }
        }
        // A few wide columns of short bins cost least (measured): more and narrower ones would look at fewer
        // atoms, but in shorter runs. Not many more bins than atoms.
        let most = (4.0 * rows.len() as f64 + 64.0).min(4e9);
        let wanted = |bounds: &[(f64, f64); 3], scale: f64| -> [f64; 3] {
            let width = [2.0 / 3.0, 2.0 / 3.0, 0.25].map(|w| w * scale * radius);
            std::array::from_fn(|k| {
                ((bounds[k].1 - bounds[k].0) * height(k) / width[k]).floor().clamp(1.0, 1e9)
            })
        };
        let mut counts = wanted(&bounds, 1.0);
        if counts.iter().product::<f64>() > most {
            // A few atoms far out on a free axis may share the outermost bins.
            for k in (0..3).filter(|&k| !periodic[k]) {
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
            self.axes[k].count = counts[k] as usize;
            self.axes[k].origin = low;
            self.axes[k].per_unit = if high > low { counts[k] / (high - low) } else { 0.0 };
        }
        spread
    }

    /// Sorts the atoms into the bins, keeping their order in each.
    pub fn fill(&mut self, rows: &[[f64; 4]]) {
        let axes = self.axes;
        let total = axes[0].count * axes[1].count * axes[2].count;
        self.starts.clear();
        self.starts.resize(total + 1, 0);
        self.bin_of.clear();
        for u in rows {
            let place = |k: usize| axes[k].bin(u[k]);
            let bin = (place(0) * axes[1].count + place(1)) * axes[2].count + place(2);
            self.bin_of.push(bin as u32);
            self.starts[bin] += 1;
        }
        // Ends of the bins, which going backwards through the atoms turns into starts.
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.order.resize(rows.len(), 0);
        for f in &mut self.fractions {
            f.resize(rows.len(), 0.0);
        }
        for (atom, &bin) in self.bin_of.iter().enumerate().rev() {
            self.starts[bin as usize] -= 1;
            let slot = self.starts[bin as usize] as usize;
            self.order[slot] = (atom as u64) << 32;
            for (f, &s) in self.fractions.iter_mut().zip(&rows[atom]) {
                f[slot] = s;
            }
        }
    }
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        + m[0][1] * (m[1][2] * m[2][0] - m[1][0] * m[2][2])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}
