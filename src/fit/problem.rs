//! The sum of squares, its gradient and its Gauss–Newton matrix.

use super::optimize::{Normal, Objective, Slope};
use super::target::{Found, Known, Target};
use super::{FitError, Free};
use crate::forces::{Direction, Evaluator, ForceError, ForceSource, Forces};
use crate::random::{Noise, Purpose};
use crate::system::{Cell, Positions};
use nalgebra::DMatrix;
use rayon::prelude::*;

/// Atoms with their energy, of which there are data.
pub struct System {
    /// What computes it: several of the same, for as many threads.
    pub evaluators: Vec<Evaluator>,
    /// The numbers of the energy ([`Evaluator::parameter_names`]), without what free parameters add.
    pub base: Vec<f64>,
    /// For each free parameter the numbers that it is added to, and with which factors.
    pub columns: Vec<Vec<(usize, f64)>>,
}

impl System {
    /// Gives evaluators the numbers of their energy.
    ///
    /// # Errors
    /// A range for which no neighbour list can be made.
    pub fn set(evaluators: &mut [Evaluator], numbers: &[f64]) -> Result<(), FitError> {
        evaluators.iter_mut().try_for_each(|e| Ok(e.set_parameters(numbers)?))
    }
}

/// What is known of one of the systems beside single configurations.
pub struct Aim {
    /// Which of them.
    pub system: usize,
    /// What is known.
    pub target: Box<dyn Target>,
}

/// Standard deviations that data are compared by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainties {
    /// Of an energy, for each atom: kJ/mol.
    pub energy: f64,
    /// Of a component of a force, in kJ/mol/nm.
    pub force: f64,
    /// Of a component of the stress, in kJ/mol/nm³.
    pub stress: f64,
}

/// A configuration and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Which of the systems.
    pub system: usize,
    /// The cell.
    pub cell: Cell,
    /// The positions.
    pub positions: Positions,
    /// Its energy, in kJ/mol.
    pub energy: Option<f64>,
    /// Which of the free parameters is a constant that is added to its energy.
    pub offset: Option<usize>,
    /// The forces, in kJ/mol/nm.
    pub forces: Option<Vec<[f64; 3]>>,
    /// The stress −W/V, positive where it pulls, in kJ/mol/nm³: xx yy zz xy xz yz.
    pub stress: Option<[f64; 6]>,
    /// How well.
    pub uncertainties: Uncertainties,
    /// How many times it counts.
    pub weight: f64,
}

/// Sums over data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Σ w r²
    pub squares: f64,
    /// How many numbers.
    pub count: usize,
    /// Sums of squared differences, in energies per atom, forces and stresses as they are.
    pub differences: [f64; 3],
    /// How many of each.
    pub counts: [usize; 3],
}

impl Totals {
    /// Adds others.
    pub fn add(&mut self, o: &Totals) {
        self.squares += o.squares;
        self.count += o.count;
        for k in 0..3 {
            self.differences[k] += o.differences[k];
            self.counts[k] += o.counts[k];
        }
    }
    /// Σ w r² over the number of data: near 1 where these are met as well as they are known.
    pub fn loss(&self) -> f64 {
        self.squares / self.count.max(1) as f64
    }
    /// Root mean squares of the differences: energies per atom, forces, stresses; none where there are no data.
    pub fn roots(&self) -> [Option<f64>; 3] {
        std::array::from_fn(|k| {
            (self.counts[k] > 0).then(|| (self.differences[k] / self.counts[k] as f64).sqrt())
        })
    }
}

/// A datum beside what the energy gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The configuration, counted from 0.
    pub sample: usize,
    /// 0 for an energy per atom, 1 for a component of a force, 2 for one of the stress.
    pub kind: usize,
    /// What the data say.
    pub reference: f64,
    /// What the energy gives.
    pub fitted: f64,
}

/// Parameters to be fitted to data.
pub struct Problem {
    /// The free parameters.
    pub free: Vec<Free>,
    /// The systems.
    pub systems: Vec<System>,
    /// The data.
    pub samples: Vec<Sample>,
    /// What is known beside them.
    pub aims: Vec<Aim>,
    /// Which of the configurations are fitted to.
    pub training: Vec<usize>,
    /// Configurations of a minibatch; none for all.
    pub batch: Option<usize>,
    /// What decides on the order of minibatches.
    pub seed: u64,
}

/// What one configuration adds to value, gradient and matrix.
struct Share {
    totals: Totals,
    gradient: Vec<f64>,
    matrix: Vec<f64>,
}

/// How much is wanted.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Wanted {
    Value,
    Gradient,
    Matrix,
}

/// Residuals of a configuration: differences, and the square roots of their weights.
struct Residuals {
    found: Forces,
    energy: Option<(f64, f64)>,
    force: f64,
    /// The factor from the virial to the stress: −1/V.
    stress: Option<(f64, f64)>,
}

impl Sample {
    /// How many atoms.
    fn atoms(&self) -> f64 {
        self.positions.len().max(1) as f64
    }
    /// The energy gives `found`, less a constant.
    fn residuals(&self, found: Forces, offset: f64) -> Result<Residuals, FitError> {
        let root = self.weight.sqrt();
        let energy = self.energy.map(|e| {
            let difference = (found.energy() + offset - e) / self.atoms();
            (difference, root / self.uncertainties.energy)
        });
        let stress = match &self.stress {
            None => None,
            Some(_) => {
                let volume = self.cell.volume().ok_or_else(|| {
                    FitError::Senseless("a stress needs a cell, and a configuration has none".into())
                })?;
                Some((-1.0 / volume, root / self.uncertainties.stress))
            }
        };
        Ok(Residuals { found, energy, force: root / self.uncertainties.force, stress })
    }
    /// Differences of forces from the data.
    fn forces<'a>(&'a self, found: &'a Forces) -> impl Iterator<Item = [f64; 3]> + 'a {
        let known = self.forces.iter().flatten();
        known.zip(&found.forces).map(|(a, b)| std::array::from_fn(|c| b[c] - a[c]))
    }
    fn totals(&self, r: &Residuals) -> Totals {
        let mut totals = Totals::default();
        let mut add = |kind: usize, difference: f64, root: f64| {
            totals.squares += (difference * root).powi(2);
            totals.differences[kind] += difference * difference;
            totals.count += 1;
            totals.counts[kind] += 1;
        };
        if let Some((difference, root)) = r.energy {
            add(0, difference, root);
        }
        self.forces(&r.found).flatten().for_each(|d| add(1, d, r.force));
        if let (Some(known), Some((factor, root))) = (&self.stress, r.stress) {
            known.iter().zip(&r.found.virial).for_each(|(a, w)| add(2, factor * w - a, root));
        }
        totals
    }
}

impl Problem {
    /// Coordinates of the start.
    pub fn start(&self) -> Vec<f64> {
        self.free.iter().map(|p| p.coordinate(p.start)).collect()
    }
    /// The parameters at these coordinates.
    pub fn values(&self, u: &[f64]) -> Vec<f64> {
        self.free.iter().zip(u).map(|(p, &u)| p.value(u)).collect()
    }
    /// What the coordinates may be.
    pub fn bounds(&self) -> Vec<[f64; 2]> {
        self.free.iter().map(Free::limits).collect()
    }

    /// The numbers of a system's energy.
    pub fn numbers(&self, system: usize, values: &[f64]) -> Vec<f64> {
        let System { base, columns, .. } = &self.systems[system];
        let mut numbers = base.clone();
        for (column, value) in columns.iter().zip(values) {
            column.iter().for_each(|&(k, factor)| numbers[k] += factor * value);
        }
        numbers
    }

    /// Does something with some configurations, in parallel; what comes of it is in their order. Forces that are not finite are
    /// none: the result is missing then.
    fn each<T: Send>(
        &mut self,
        u: &[f64],
        which: &[usize],
        body: impl Fn(&mut Evaluator, &Context, &Sample) -> Result<T, FitError> + Sync,
    ) -> Result<Option<Vec<T>>, FitError> {
        let values = self.values(u);
        let numbers: Vec<Vec<f64>> = (0..self.systems.len()).map(|k| self.numbers(k, &values)).collect();
        let Problem { systems, samples, free, .. } = self;
        let slopes: Vec<f64> = free.iter().zip(u).map(|(p, &u)| p.slope(u)).collect();
        let samples = &*samples;
        let mut found: Vec<(usize, Result<T, FitError>)> = systems
            .par_iter_mut()
            .enumerate()
            .flat_map_iter(|(s, system)| {
                let own: Vec<usize> = (0..which.len()).filter(|&k| samples[which[k]].system == s).collect();
                let System { evaluators, columns, .. } = system;
                let context = Context { columns, slopes: &slopes, values: &values };
                let (threads, numbers, body) = (evaluators.len(), &numbers[s], &body);
                // (each evaluator has its own configurations: none waits for another)
                let parts = evaluators.par_iter_mut().enumerate().map(|(t, evaluator)| {
                    let mut part = Vec::new();
                    if let Err(e) = evaluator.set_parameters(numbers) {
                        return own.first().map(|&k| vec![(k, Err(e.into()))]).unwrap_or_default();
                    }
                    for &k in own.iter().skip(t).step_by(threads) {
                        part.push((k, body(evaluator, &context, &samples[which[k]])));
                    }
                    part
                });
                parts.collect::<Vec<_>>().into_iter().flatten()
            })
            .collect();
        found.sort_by_key(|(k, _)| *k);
        let mut results = Vec::with_capacity(found.len());
        for (_, result) in found {
            match result {
                Ok(result) => results.push(result),
                Err(FitError::Forces(ForceError::NotFinite { .. })) => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        Ok(Some(results))
    }

    /// Shares of some configurations, added up in their order.
    fn sum(&mut self, u: &[f64], which: &[usize], wanted: Wanted) -> Result<Option<Share>, FitError> {
        let n = self.free.len();
        let shares =
            self.each(u, which, |evaluator, system, sample| share(evaluator, system, sample, wanted))?;
        Ok(shares.map(|shares| {
            let gradient = vec![0.0; n];
            let matrix = vec![0.0; if wanted == Wanted::Matrix { n * n } else { 0 }];
            let mut sum = Share { totals: Totals::default(), gradient, matrix };
            for share in &shares {
                sum.totals.add(&share.totals);
                sum.gradient.iter_mut().zip(&share.gradient).for_each(|(a, b)| *a += b);
                sum.matrix.iter_mut().zip(&share.matrix).for_each(|(a, b)| *a += b);
            }
            sum
        }))
    }

    /// The residuals of an aim, with their derivatives in the coordinates if these are wanted.
    fn aimed(
        &mut self,
        k: usize,
        u: &[f64],
        values: &[f64],
        slopes: bool,
    ) -> Result<Vec<(f64, Vec<f64>)>, FitError> {
        let system = self.aims[k].system;
        let numbers = self.numbers(system, values);
        let rates: Vec<f64> = self.free.iter().zip(u).map(|(p, &u)| p.slope(u)).collect();
        let columns = &self.systems[system].columns;
        let target = &mut self.aims[k].target;
        let found = target.find(&numbers, slopes)?;
        let row = |slopes: &Vec<f64>, root: f64| -> Vec<f64> {
            let sum = |column: &Vec<(usize, f64)>| column.iter().map(|&(m, f)| f * slopes[m]).sum::<f64>();
            columns.iter().zip(&rates).map(|(column, rate)| root * rate * sum(column)).collect()
        };
        let each = target.known().iter().zip(&found.values).enumerate();
        Ok(each
            .map(|(m, (known, value))| {
                let root = known.root();
                let row = found.slopes.get(m).map_or(Vec::new(), |slopes| row(slopes, root));
                ((value - known.value) * root, row)
            })
            .collect())
    }

    /// What is known beside configurations, and what the energy gives.
    ///
    /// # Errors
    /// Those of the targets.
    pub fn aims(&mut self, u: &[f64]) -> Result<Vec<(Known, f64)>, FitError> {
        let values = self.values(u);
        let mut all = Vec::new();
        for k in 0..self.aims.len() {
            let numbers = self.numbers(self.aims[k].system, &values);
            let target = &mut self.aims[k].target;
            let Found { values, .. } = target.find(&numbers, false)?;
            all.extend(target.known().iter().cloned().zip(values));
        }
        Ok(all)
    }

    /// What the noise of averages has to do with the minimum: the sum of g gᵀ over what gradients would be without each piece of
    /// a simulation, (B − 1)/B times.
    ///
    /// # Errors
    /// Those of the targets.
    pub fn noise(&mut self, u: &[f64]) -> Result<DMatrix<f64>, FitError> {
        let (n, values) = (u.len(), self.values(u));
        let mut sum = DMatrix::zeros(n, n);
        for k in 0..self.aims.len() {
            let numbers = self.numbers(self.aims[k].system, &values);
            let without = self.aims[k].target.without(&numbers)?;
            if without.is_empty() {
                continue;
            }
            let rows = self.aimed(k, u, &values, true)?;
            let target = &self.aims[k].target;
            let blocks = without.len() as f64;
            let all = target.known().len();
            let mean = |m: usize| without.iter().map(|w| w[m]).sum::<f64>() / blocks;
            let means: Vec<f64> = (0..all).map(mean).collect();
            for values in &without {
                let mut g = nalgebra::DVector::zeros(n);
                for (m, (_, row)) in rows.iter().enumerate() {
                    let apart = (values[m] - means[m]) * target.known()[m].root();
                    g.iter_mut().zip(row).for_each(|(g, x)| *g += apart * x);
                }
                sum.ger((blocks - 1.0) / blocks, &g, &g, 1.0);
            }
        }
        Ok(sum)
    }

    /// ½ Σ r² over some configurations and the priors, whose matrix is added where it is wanted.
    fn objective(
        &mut self,
        u: &[f64],
        which: &[usize],
        factor: f64,
        wanted: Wanted,
    ) -> Result<Normal, FitError> {
        let n = self.free.len();
        let Some(share) = self.sum(u, which, wanted)? else { return Ok(nowhere(n)) };
        let mut slope = Slope { value: 0.5 * factor * share.totals.squares, gradient: share.gradient };
        let mut matrix = match wanted {
            Wanted::Matrix => DMatrix::from_row_slice(n, n, &share.matrix),
            _ => DMatrix::zeros(0, 0),
        };
        slope.gradient.iter_mut().for_each(|g| *g *= factor);
        let values = self.values(u);
        for k in 0..self.aims.len() {
            let rows = match self.aimed(k, u, &values, wanted > Wanted::Value) {
                Ok(rows) => rows,
                Err(FitError::Nowhere(_)) => return Ok(nowhere(n)),
                Err(e) => return Err(e),
            };
            for (r, row) in rows {
                slope.value += 0.5 * r * r;
                slope.gradient.iter_mut().zip(&row).for_each(|(g, x)| *g += r * x);
                if wanted == Wanted::Matrix && self.aims[k].target.is_linear() {
                    let row = nalgebra::DVector::from_vec(row);
                    matrix.ger(1.0, &row, &row, 1.0);
                }
            }
        }
        for (k, (p, &u)) in self.free.iter().zip(u).enumerate() {
            if let Some([mean, deviation]) = p.prior {
                let (r, d) = ((p.value(u) - mean) / deviation, p.slope(u) / deviation);
                slope.value += 0.5 * r * r;
                slope.gradient[k] += r * d;
                if wanted == Wanted::Matrix {
                    matrix[(k, k)] += d * d;
                }
            }
        }
        Ok(Normal { slope, matrix })
    }

    /// How well what is known beside configurations is met by these numbers.
    pub fn compared_totals(&self, values: &[f64]) -> Totals {
        let mut totals = Totals::default();
        for (known, value) in self.aims.iter().flat_map(|a| a.target.known()).zip(values) {
            totals.squares += ((value - known.value) * known.root()).powi(2);
            totals.count += known.count;
        }
        totals
    }

    /// How well some configurations are met.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn totals(&mut self, u: &[f64], which: &[usize]) -> Result<Totals, FitError> {
        let bad = Totals { squares: f64::INFINITY, count: 1, ..Totals::default() };
        Ok(self.sum(u, which, Wanted::Value)?.map_or(bad, |share| share.totals))
    }

    /// All data of some configurations beside what the energy gives.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn compared(&mut self, u: &[f64], which: &[usize]) -> Result<Vec<Compared>, FitError> {
        let all = self.each(u, which, |evaluator, system, sample| {
            let mut found = Forces::default();
            evaluator.evaluate(&sample.cell, &sample.positions, &mut found)?;
            let offset = sample.offset.map_or(0.0, |k| system.values[k]);
            let r = sample.residuals(found, offset)?;
            let mut pairs: Vec<(usize, f64, f64)> = Vec::new();
            if let (Some(e), Some((difference, _))) = (sample.energy, r.energy) {
                let reference = e / sample.atoms();
                pairs.push((0, reference, reference + difference));
            }
            for (a, b) in sample.forces.iter().flatten().flatten().zip(r.found.forces.as_flattened()) {
                pairs.push((1, *a, *b));
            }
            if let (Some(known), Some((factor, _))) = (&sample.stress, r.stress) {
                pairs.extend(known.iter().zip(&r.found.virial).map(|(a, w)| (2, *a, factor * w)));
            }
            Ok(pairs)
        })?;
        let pairs = which.iter().zip(all.unwrap_or_default());
        let compared = |(&sample, pairs): (&usize, Vec<(usize, f64, f64)>)| {
            let of = move |(kind, reference, fitted)| Compared { sample, kind, reference, fitted };
            pairs.into_iter().map(of).collect::<Vec<_>>()
        };
        Ok(pairs.flat_map(compared).collect())
    }

    /// The configurations of a step's minibatch: all are seen once before any is seen again, in an order that is drawn anew for
    /// each round.
    pub fn minibatch(&self, step: u64) -> Vec<usize> {
        let all = self.training.len();
        let Some(batch) = self.batch.filter(|&b| b < all) else { return self.training.clone() };
        let each_round = all.div_ceil(batch.max(1)) as u64;
        let (round, part) = (step / each_round, (step % each_round) as usize);
        let order = shuffled(&self.training, self.seed, round);
        order.into_iter().skip(part * batch).take(batch).collect()
    }
}

/// Where there is no sum.
fn nowhere(n: usize) -> Normal {
    let slope = Slope { value: f64::INFINITY, gradient: vec![f64::NAN; n] };
    Normal { slope, matrix: DMatrix::zeros(n, n) }
}

impl Known {
    /// What a difference is multiplied by to be a residual.
    fn root(&self) -> f64 {
        (self.count as f64).sqrt() / self.error
    }
}

/// A random order, by a seed and a number.
pub fn shuffled(of: &[usize], seed: u64, round: u64) -> Vec<usize> {
    let noise = Noise::new(seed, Purpose::Batches);
    let mut order: Vec<(u64, usize)> =
        of.iter().enumerate().map(|(k, &x)| (noise.bits(round, k, 0)[0], x)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, x)| x).collect()
}

/// What [`Problem::each`] tells about a configuration's system.
struct Context<'a> {
    columns: &'a [Vec<(usize, f64)>],
    /// dθ/du of the free parameters.
    slopes: &'a [f64],
    values: &'a [f64],
}

fn share(
    evaluator: &mut Evaluator,
    system: &Context,
    sample: &Sample,
    wanted: Wanted,
) -> Result<Share, FitError> {
    let Sample { cell, positions, .. } = sample;
    let n = system.columns.len();
    let mut found = Forces::default();
    evaluator.evaluate(cell, positions, &mut found)?;
    let offset = sample.offset.map_or(0.0, |k| system.values[k]);
    let r = sample.residuals(found, offset)?;
    let totals = sample.totals(&r);
    let (mut gradient, mut matrix) = (Vec::new(), Vec::new());
    if wanted == Wanted::Gradient {
        gradient = slopes(evaluator, system, sample, &r)?;
    }
    if wanted == Wanted::Matrix {
        // the residuals, then their derivatives in each coordinate: rows of Jᵀ
        let row = |energy: Option<f64>, forces: &[[f64; 3]], stress: Option<[f64; 6]>| -> Vec<f64> {
            let energy = energy.zip(r.energy).map(|(e, (_, root))| e * root);
            let forces = forces.as_flattened().iter().map(|f| f * r.force);
            let stress = stress.zip(r.stress);
            let stress = stress.into_iter().flat_map(|(s, (_, root))| s.map(|x| x * root));
            energy.into_iter().chain(forces).chain(stress).collect()
        };
        let differences: Vec<[f64; 3]> = sample.forces(&r.found).collect();
        let stress = sample
            .stress
            .zip(r.stress)
            .map(|(known, (factor, _))| std::array::from_fn(|k| factor * r.found.virial[k] - known[k]));
        let residuals = row(r.energy.map(|e| e.0), &differences, stress);
        let mut rows: Vec<Option<Vec<f64>>> = Vec::with_capacity(n);
        let mut out = Forces::default();
        for (k, column) in system.columns.iter().enumerate() {
            let slope = system.slopes[k];
            if sample.offset == Some(k) {
                let none = vec![[0.0; 3]; differences.len()];
                rows.push(Some(row(Some(slope / sample.atoms()), &none, Some([0.0; 6]))));
                continue;
            }
            if column.is_empty() {
                rows.push(None);
                continue;
            }
            let mut rates = vec![0.0; evaluator.parameter_names().len()];
            column.iter().for_each(|&(k, factor)| rates[k] += factor * slope);
            evaluator.parameter_tangents(cell, positions, &rates, &mut out)?;
            let forces = if sample.forces.is_some() { &out.forces[..] } else { &[] };
            let stress = r.stress.map(|(factor, _)| out.virial.map(|w| factor * w));
            rows.push(Some(row(Some(out.energy() / sample.atoms()), forces, stress)));
        }
        let dot = |a: &Option<Vec<f64>>, b: &[f64]| {
            a.as_ref().map_or(0.0, |a| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>())
        };
        gradient = rows.iter().map(|row| dot(row, &residuals)).collect();
        matrix = vec![0.0; n * n];
        for a in 0..n {
            for b in 0..=a {
                if let Some(other) = &rows[b] {
                    let x = dot(&rows[a], other);
                    (matrix[a * n + b], matrix[b * n + a]) = (x, x);
                }
            }
        }
    }
    Ok(Share { totals, gradient, matrix })
}

/// Σ r ∂r/∂u, by the derivatives of the energy in all its numbers and their change along the residuals.
fn slopes(
    evaluator: &mut Evaluator,
    system: &Context,
    sample: &Sample,
    r: &Residuals,
) -> Result<Vec<f64>, FitError> {
    let mut moves: Vec<[f64; 3]> =
        sample.forces(&r.found).map(|d| d.map(|x| -x * r.force * r.force)).collect();
    moves.resize(sample.positions.len(), [0.0; 3]);
    let mut strain = [[0.0; 3]; 3];
    if let (Some(known), Some((factor, root))) = (&sample.stress, r.stress) {
        // (shear stands twice in the strain)
        for (k, (a, b)) in [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
            let pull = -factor * root * root * (factor * r.found.virial[k] - known[k]);
            let half = if a == b { pull } else { 0.5 * pull };
            (strain[a][b], strain[b][a]) = (half, half);
        }
    }
    let by_energy = r.energy.map_or(0.0, |(difference, root)| difference * root * root / sample.atoms());
    let direction = Direction { moves: &moves, strain };
    let slopes = evaluator.slopes(&sample.cell, &sample.positions, Some(direction), by_energy != 0.0)?;
    let of_number = |k: usize| slopes[k].0.value * by_energy + slopes[k].0.tangent;
    let of_column = |(k, column): (usize, &Vec<(usize, f64)>)| {
        let own = if sample.offset == Some(k) { by_energy } else { 0.0 };
        system.slopes[k] * (own + column.iter().map(|&(k, factor)| factor * of_number(k)).sum::<f64>())
    };
    Ok(system.columns.iter().enumerate().map(of_column).collect())
}

impl Objective for Problem {
    type Error = FitError;
    fn value(&mut self, u: &[f64]) -> Result<f64, FitError> {
        let training = self.training.clone();
        Ok(self.objective(u, &training, 1.0, Wanted::Value)?.slope.value)
    }
    fn slope(&mut self, u: &[f64]) -> Result<Slope, FitError> {
        let training = self.training.clone();
        Ok(self.objective(u, &training, 1.0, Wanted::Gradient)?.slope)
    }
    fn normal(&mut self, u: &[f64]) -> Result<Normal, FitError> {
        let training = self.training.clone();
        self.objective(u, &training, 1.0, Wanted::Matrix)
    }
    fn part(&mut self, u: &[f64], step: u64) -> Result<Slope, FitError> {
        let batch = self.minibatch(step);
        let factor = self.training.len() as f64 / batch.len().max(1) as f64;
        Ok(self.objective(u, &batch, factor, Wanted::Gradient)?.slope)
    }
}
