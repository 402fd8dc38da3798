//! `md check`

use super::{Failure, Input, Outcome, say, table};
use crate::autodiff::{Cautious, Difference, Richardson};
use crate::catalog::Catalog;
use crate::forces::{
    Direction, Evaluator, ForceError, ForceSource, Forces, Grid, Kind, Method, Precision, Setup,
};
use crate::random::{Noise, Purpose};
use crate::run::term_names;
use crate::system::{Cell, Positions, State};
use crate::units::UnitSystem;
use clap::Args;
use potentials::Vec3;
use serde::Serialize;
use std::borrow::Cow;
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    input: Input,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// One comparison.
#[derive(Serialize)]
struct Row {
    term: String,
    quantity: &'static str,
    /// The largest error in a component, relative to it or to a thousandth of the largest; none if nothing could
    /// be compared.
    error: Option<f64>,
    limit: f64,
    #[serde(rename = "where")]
    place: String,
    ok: bool,
    /// Components that could not be compared.
    #[serde(skip)]
    skipped: usize,
}

#[derive(Serialize)]
struct Document {
    ok: bool,
    checks: Vec<Row>,
}

/// A derivative and a finite difference may differ by this. A difference that is more uncertain tells nothing: the
/// energy jumps or bends nearby, or the force is next to nothing.
const DIFFERENCE: f64 = 1e-6;
/// A difference is good enough where it is uncertain by less than this.
const ENOUGH: f64 = 0.1 * DIFFERENCE;
/// Two exact derivatives may differ by this.
const ROUNDING: f64 = 1e-9;
/// With more atoms than this nothing is recorded on one tape.
const TAPE: usize = 10_000;
const AXES: [&str; 3] = ["x", "y", "z"];
const STRAINS: [(&str, usize, usize); 6] =
    [("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2)];

impl Check {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let plan = self.input.plan(catalog, self.json)?;
        let step = if plan.units == UnitSystem::Lj { 3e-3 } else { 1e-3 };
        let names = term_names(&plan.setup.terms);
        let Setup { atoms, charges, joined, terms, coulomb, skin, method, .. } = plan.setup;
        let mut checks = Vec::new();
        for (term, name) in terms.into_iter().zip(&names) {
            let setup = Setup {
                atoms: atoms.clone(),
                charges: charges.clone(),
                joined: joined.clone(),
                terms: vec![term],
                coulomb,
                // moved atoms must stay in the lists
                skin: skin.max(20.0 * step),
                // (derivatives are looked at here, and not what rounding makes of them)
                method: Method { grid: Grid::NONE, precision: Precision::Double, ..method },
                joints: Vec::new(),
            };
            let mut evaluator = Evaluator::new(setup).map_err(Failure::wrong)?;
            let found = compare(&mut evaluator, &plan.state, step, name);
            checks.extend(found.map_err(|e| Failure::failed(format!("forces cannot be computed: {e}")))?);
        }
        let ok = checks.iter().all(|c| c.ok);
        if self.json {
            let text = serde_json::to_string(&Document { ok, checks }).map_err(Failure::failed)?;
            say(&(text + "\n"))?;
        } else {
            let mut rows =
                vec![["term", "quantity", "error", "limit", "", "where"].map(str::to_owned).to_vec()];
            for c in &checks {
                rows.push(vec![
                    c.term.clone(),
                    c.quantity.into(),
                    c.error.map_or("–".into(), |e| format!("{e:.1e}")),
                    format!("{:.0e}", c.limit),
                    match (c.ok, c.error) {
                        (false, _) => "OFF",
                        (true, Some(_)) => "ok",
                        (true, None) => "not checked",
                    }
                    .into(),
                    c.place.clone(),
                ]);
            }
            let text = table(&rows, &[2, 3]);
            let verdict = verdict(&checks);
            say(&format!("{}: {} atoms\n{text}  {verdict}\n", self.input.input.display(), atoms.len()))?;
        }
        Ok(ExitCode::from(u8::from(!ok)))
    }
}

/// What all comparisons say together.
fn verdict(checks: &[Row]) -> String {
    let unchecked = checks.iter().filter(|c| c.ok && c.error.is_none()).count();
    let rows = if unchecked == 1 { "1 row".to_owned() } else { format!("{unchecked} rows") };
    if checks.iter().any(|c| !c.ok) {
        "some derivatives are WRONG".into()
    } else if unchecked == checks.len() {
        "NOTHING could be compared".into()
    } else if unchecked > 0 {
        format!("all that could be compared is right; {rows} NOT checked")
    } else if checks.iter().any(|c| c.skipped > 0) {
        "all that could be compared is right".into()
    } else {
        "all derivatives are right".into()
    }
}

/// The largest error of a comparison so far.
struct Worst {
    error: Option<f64>,
    limit: f64,
    place: String,
    /// Components that could not be compared.
    skipped: usize,
}

impl Worst {
    fn new(limit: f64) -> Self {
        Self { error: None, limit, place: String::new(), skipped: 0 }
    }

    /// Compares a component; `scale` is the size that errors are relative to.
    fn exact(&mut self, a: f64, b: f64, scale: f64, place: impl FnOnce() -> String) {
        let error = if a == b { 0.0 } else { (a - b).abs() / scale };
        // (a NaN is worse than anything)
        if self.error.is_none_or(|e| error > e || error.is_nan()) {
            (self.error, self.place) = (Some(error), place());
        }
    }

    /// The same with a finite difference, unless its own error is larger than the limit.
    fn difference(&mut self, a: f64, d: Difference, scale: f64, place: impl FnOnce() -> String) {
        // (a NaN is uncertain)
        let good = d.error <= self.limit * scale;
        match good {
            true => self.exact(a, d.value, scale, place),
            false => self.skipped += 1,
        }
    }

    fn row(mut self, term: &str, quantity: &'static str) -> Row {
        if self.skipped > 0 {
            let s = if self.skipped == 1 { "" } else { "s" };
            let note = format!("{} component{s} left out: differences are too uncertain there", self.skipped);
            self.place = if self.place.is_empty() { note } else { format!("{}; {note}", self.place) };
        }
        let ok = self.error.is_none_or(|e| e <= self.limit);
        let error = self.error.filter(|e| e.is_finite());
        Row {
            term: term.into(),
            quantity,
            error,
            limit: self.limit,
            place: self.place,
            ok,
            skipped: self.skipped,
        }
    }
}

/// How far the nearest other atom is from atom `i`.
fn nearest(cell: &Cell, positions: &Positions, i: usize) -> f64 {
    let others = (0..positions.len()).filter(|&j| j != i);
    let distance = |j| {
        let [x, y, z] = cell.cartesian(cell.nearest(positions.displacement(i, j)));
        (x * x + y * y + z * z).sqrt()
    };
    others.map(distance).fold(f64::INFINITY, f64::min)
}

/// All comparisons of one term.
fn compare(evaluator: &mut Evaluator, state: &State, step: f64, name: &str) -> Result<Vec<Row>, ForceError> {
    let State { cell, positions, .. } = state;
    let n = positions.len();
    let (mut fused, mut tape) = (Forces::default(), Forces::default());
    evaluator.method.kind = Kind::Fused;
    evaluator.evaluate(cell, positions, &mut fused)?;
    let size = |f: &Forces| f.forces.iter().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
    // On a perfect lattice forces cancel, and there would be nothing to compare.
    let mut positions = Cow::Borrowed(positions);
    let mut nudged = String::new();
    if size(&fused) < 1e-3 * fused.energy().abs() / (n as f64 * 300.0 * step) {
        let noise = Noise::new(0, Purpose::Positions);
        let nudge = |i: usize| {
            let [x, y, z, _] = noise.normals(0, i);
            [x, y, z].map(|x| x.clamp(-3.0, 3.0) * 3.0 * step)
        };
        if positions.to_mut().advance_all(cell, nudge).is_ok() {
            evaluator.evaluate(cell, &positions, &mut fused)?;
            nudged = "forces vanish here: atoms moved a little".to_owned();
        }
    }
    let positions = &*positions;
    let tiny = 1e-9 * (1e-3 + fused.energy().abs());
    let floor = (1e-3 * size(&fused)).max(tiny);
    let of_virial = fused.virial.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let virial_floor = (1e-3 * of_virial).max(tiny);
    let mut rows = Vec::new();

    // by differences: the atom with the largest force and others all over the list, those that can be moved
    // furthest before a distance crosses a cut-off
    let clearance = evaluator.clearance(cell, positions)?;
    let count = (100_000 / n.max(1)).clamp(3, 30).min(n);
    let largest = |i: &usize| fused.forces[*i].iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let most = (0..n).max_by(|a, b| largest(a).total_cmp(&largest(b)));
    let clearest = |k: usize| {
        let part = k * n / count..(k + 1) * n / count;
        part.max_by(|&a, &b| clearance[a].min(step).total_cmp(&clearance[b].min(step)).then(b.cmp(&a)))
    };
    let mut sample: Vec<usize> = (0..count).filter_map(clearest).chain(most).collect();
    sample.sort_unstable();
    sample.dedup();
    let mut moves = vec![Vec3::new(0.0, 0.0, 0.0); n];
    let mut worst = Worst::new(DIFFERENCE);
    let mut failed = None;
    let mut energy =
        |moves: Option<&[Vec3<f64>]>, strain| match evaluator.energies(cell, positions, moves, strain) {
            Ok(energies) => energies.iter().sum(),
            Err(error) => {
                failed = Some(error);
                f64::NAN
            }
        };
    // What the sum of all energies is uncertain by: how far three points next to each other are off a line.
    let mut noise = f64::EPSILON * fused.energy().abs();
    for &i in sample.iter().take(4) {
        let [a, b, c] = [-1e-9, 0.0, 1e-9].map(|x| {
            moves[i] = Vec3::new(x * step, 0.0, 0.0);
            energy(Some(&moves), None)
        });
        moves[i] = Vec3::new(0.0, 0.0, 0.0);
        noise = noise.max((a - 2.0 * b + c).abs());
    }
    for &i in &sample {
        // (distances to other atoms are what the energy changes with: steps stay well below them)
        let step = step.min(0.9 * clearance[i]).min(1e-2 * nearest(cell, positions, i));
        for axis in 0..3 {
            let d = Cautious { step, scale: floor, noise, enough: ENOUGH }.derivative(|x| {
                let mut d = [0.0; 3];
                d[axis] = x;
                moves[i] = Vec3::new(d[0], d[1], d[2]);
                energy(Some(&moves), None)
            });
            moves[i] = Vec3::new(0.0, 0.0, 0.0);
            let d = Difference { value: -d.value, ..d };
            let f = fused.forces[i][axis];
            worst.difference(f, d, f.abs().max(floor), || format!("atom {}, {}", i + 1, AXES[axis]));
        }
    }
    let mut row = worst.row(name, "forces");
    if !nudged.is_empty() {
        row.place = format!("{}; {nudged}", row.place);
    }
    rows.push(row);
    let mut worst = Worst::new(DIFFERENCE);
    let mut strained = |a: usize, b: usize, x: f64| {
        let mut strain = [[0.0; 3]; 3];
        strain[a][b] += 0.5 * x;
        strain[b][a] += 0.5 * x;
        energy(None, Some(strain))
    };
    // (a strain changes all distances, and so all that is rounded)
    let mut noise = f64::EPSILON * fused.energy().abs();
    for (_, a, b) in STRAINS {
        let [x, y, z] = [-1e-12, 0.0, 1e-12].map(|x| strained(a, b, x));
        noise = noise.max((x - 2.0 * y + z).abs());
    }
    for (k, (component, a, b)) in STRAINS.into_iter().enumerate() {
        let cautious = Cautious { step: 3e-4, scale: virial_floor, noise, enough: ENOUGH };
        let d = cautious.derivative(|x| strained(a, b, x));
        let d = Difference { value: -d.value, ..d };
        worst
            .difference(fused.virial[k], d, fused.virial[k].abs().max(virial_floor), || component.to_owned());
    }
    rows.push(worst.row(name, "virial"));
    if let Some(error) = failed {
        return Err(error);
    }

    rows.extend(second(evaluator, cell, positions, &sample, &clearance, step, name)?);

    // one evaluator against the other
    if n <= TAPE {
        evaluator.method.kind = Kind::Tape;
        evaluator.evaluate(cell, positions, &mut tape)?;
        let mut worst = Worst::new(ROUNDING);
        for (i, (f, g)) in fused.forces.iter().zip(&tape.forces).enumerate() {
            for axis in 0..3 {
                worst.exact(f[axis], g[axis], g[axis].abs().max(floor), || {
                    format!("atom {}, {}", i + 1, AXES[axis])
                });
            }
        }
        rows.push(worst.row(name, "forces, both evaluators"));
        let mut worst = Worst::new(ROUNDING);
        for (k, (component, ..)) in STRAINS.iter().enumerate() {
            let (a, b) = (fused.virial[k], tape.virial[k]);
            worst.exact(a, b, b.abs().max(virial_floor), || (*component).to_owned());
        }
        let (a, b) = (fused.energy(), tape.energy());
        worst.exact(a, b, b.abs().max(tiny), || "energy".into());
        rows.push(worst.row(name, "energy and virial, both evaluators"));
    }
    Ok(rows)
}

/// Comparisons of second derivatives, and of derivatives in parameters.
fn second(
    evaluator: &mut Evaluator,
    cell: &Cell,
    positions: &Positions,
    sample: &[usize],
    clearance: &[f64],
    step: f64,
    name: &str,
) -> Result<Vec<Row>, ForceError> {
    let n = positions.len();
    let mut rows = Vec::new();
    let mut failed = None;
    // some atoms, each moved by itself: what that does to all forces, and to the derivatives in parameters
    let (mut products, mut of_parameters) = (Worst::new(DIFFERENCE), Worst::new(DIFFERENCE));
    let noise = Noise::new(1, Purpose::Vectors);
    let mut clear: Vec<usize> = sample.to_vec();
    clear.sort_by(|&a, &b| clearance[b].min(step).total_cmp(&clearance[a].min(step)).then(a.cmp(&b)));
    let mut compared = 0;
    for &i in &clear {
        if compared == 2 {
            break;
        }
        let [x, y, z, _] = noise.normals(0, i);
        let length = (x * x + y * y + z * z).sqrt();
        let way = [x / length, y / length, z / length];
        let mut v = vec![[0.0; 3]; n];
        v[i] = way;
        let step = step.min(0.9 * clearance[i]).min(1e-2 * nearest(cell, positions, i));
        let moved = |h: f64| {
            let mut moved = positions.clone();
            // (so small a move leaves no bounds)
            let _ = moved.advance_all(cell, |k| if k == i { way.map(|x| x * h) } else { [0.0; 3] });
            moved
        };
        let product = evaluator.hessian_product(cell, positions, &v)?;
        let scale = product.as_flattened().iter().fold(0.0f64, |m, x| m.max(x.abs()));
        if scale == 0.0 {
            // (an atom without any interaction of this term)
            continue;
        }
        compared += 1;
        let forces = |h: f64| {
            let mut out = Forces::default();
            match evaluator.evaluate(cell, &moved(h), &mut out) {
                Ok(()) => out.forces.into_flattened(),
                Err(error) => {
                    failed = Some(error);
                    vec![f64::NAN; 3 * n]
                }
            }
        };
        let differences = Richardson { step, levels: 4, tables: 2, enough: ENOUGH, scale };
        let found = differences.derivatives(forces, 0.0);
        for (k, (hv, d)) in product.as_flattened().iter().zip(found).enumerate() {
            let d = Difference { value: -d.value, ..d };
            products.difference(*hv, d, hv.abs().max(1e-3 * scale), || {
                format!("atom {}, {} with atom {}", k / 3 + 1, AXES[k % 3], i + 1)
            });
        }
        if compared > 1 {
            continue;
        }
        let direction = Direction { moves: &v, strain: [[0.0; 3]; 3] };
        let slopes = evaluator.parameter_slopes(cell, positions, Some(direction))?;
        let weights = |h: f64| match evaluator.parameter_slopes(cell, &moved(h), None) {
            Ok(slopes) => slopes.iter().map(|s| s.at * s.slope).collect(),
            Err(error) => {
                failed = Some(error);
                vec![f64::NAN; slopes.len()]
            }
        };
        let largest = slopes.iter().map(|s| (s.at * s.along).abs()).fold(1e-9 * scale, f64::max);
        let differences = Richardson { step, levels: 3, tables: 1, enough: ENOUGH, scale: largest };
        for (s, d) in slopes.iter().zip(differences.derivatives(weights, 0.0)).filter(|(s, _)| s.matters) {
            let w = s.at * s.along;
            let scale = w.abs().max(1e-3 * largest);
            of_parameters.difference(w, d, scale, || format!("{}, atom {}", s.name, i + 1));
        }
    }
    rows.push(products.row(name, "Hessian products"));
    if let Some(error) = failed {
        return Err(error);
    }

    // what a strain does to the virial: elastic constants of atoms that are strained like a continuum
    if cell.periodic() == [true; 3] {
        let mut worst = Worst::new(DIFFERENCE);
        let rest = vec![[0.0; 3]; n];
        for (strained, a, b) in [STRAINS[0], STRAINS[5]] {
            let strain = |h: f64| {
                let mut strain = [[0.0; 3]; 3];
                strain[a][b] += 0.5 * h;
                strain[b][a] += 0.5 * h;
                strain
            };
            let mut out = Forces::default();
            let direction = Direction { moves: &rest, strain: strain(1.0) };
            evaluator.tangents(cell, positions, &direction, true, &mut out)?;
            let virial = |h: f64| {
                let mut out = Forces::default();
                match cell.strained(strain(h)).map(|cell| evaluator.evaluate(&cell, positions, &mut out)) {
                    Ok(Ok(())) => out.virial,
                    _ => [f64::NAN; 6],
                }
            };
            let scale = out.virial.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            let differences = Richardson { step: 3e-4, levels: 4, tables: 2, enough: ENOUGH, scale };
            let found = differences.derivatives(virial, 0.0);
            for (k, (component, ..)) in STRAINS.into_iter().enumerate() {
                let w = out.virial[k];
                worst.difference(w, found[k], w.abs().max(1e-3 * scale), || {
                    format!("{component} with strain {strained}")
                });
            }
        }
        rows.push(worst.row(name, "virial along strains"));
    }

    // every parameter by itself
    let slopes = evaluator.parameter_slopes(cell, positions, None)?;
    let theta = evaluator.terms()[0].parameters().values().to_vec();
    let charges = evaluator.charges().values.clone();
    let mut worst = Worst::new(DIFFERENCE);
    let largest = slopes.iter().map(|s| (s.at * s.slope).abs()).fold(1e-9, f64::max);
    let mut chosen: Vec<usize> =
        (0..slopes.len()).filter(|&k| slopes[k].matters && slopes[k].at != 0.0).collect();
    chosen.sort_by(|&a, &b| {
        let weight = |k: usize| (slopes[k].at * slopes[k].slope).abs();
        weight(b).total_cmp(&weight(a)).then(a.cmp(&b))
    });
    for &k in chosen.iter().take(PARAMETERS) {
        let energy = |h: f64| {
            let (mut theta, mut charges) = (theta.clone(), charges.clone());
            match k.checked_sub(theta.len()) {
                None => theta[k] *= 1.0 + h,
                Some(k) => charges[k] *= 1.0 + h,
            }
            evaluator.terms_mut()[0].set_parameters(&theta);
            evaluator.set_charges(&charges);
            evaluator.energies(cell, positions, None, None).map_or(f64::NAN, |e| e.iter().sum())
        };
        let weight = slopes[k].at * slopes[k].slope;
        let scale = weight.abs().max(1e-3 * largest);
        let differences = Richardson { step: 1e-3, levels: 3, tables: 1, enough: ENOUGH, scale };
        worst.difference(weight, differences.derivative(energy, 0.0), scale, || slopes[k].name.clone());
        evaluator.terms_mut()[0].set_parameters(&theta);
        evaluator.set_charges(&charges);
    }
    if slopes.iter().any(|s| s.matters) {
        rows.push(worst.row(name, "parameters"));
        rows.push(of_parameters.row(name, "parameters and forces"));
    }
    Ok(rows)
}

/// How many parameters of a term are compared at most: those that matter most.
const PARAMETERS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_compared_is_not_right() {
        let row = |error, ok, skipped| Row {
            term: String::new(),
            quantity: "forces",
            error,
            limit: 1e-6,
            place: String::new(),
            ok,
            skipped,
        };
        let right = || row(Some(1e-9), true, 0);
        assert_eq!(verdict(&[right(), right()]), "all derivatives are right");
        assert_eq!(verdict(&[right(), row(Some(1e-9), true, 2)]), "all that could be compared is right");
        let some = verdict(&[right(), row(None, true, 6)]);
        assert_eq!(some, "all that could be compared is right; 1 row NOT checked");
        assert_eq!(verdict(&[row(None, true, 6)]), "NOTHING could be compared");
        assert_eq!(verdict(&[right(), row(Some(1.0), false, 0)]), "some derivatives are WRONG");
    }
}
