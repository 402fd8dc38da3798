//! One test body over every energy of the catalogue and every evaluator: forces, virial, parameter derivatives and
//! Hessian products against finite differences; symmetries; the same bits whatever the threads, the age of the
//! lists and the wrapping.
//!
//! An energy that is added to the catalogue is tested without a change here: its parameters are sampled by their
//! dimension within their range ([`subjects`](mod@subjects)). One whose parameters cannot be sampled fails.
//!
//! Systems are made so that no pair is near a distance where the energy is not smooth (a cut-off, say), and
//! differences never reach across one. How closely things agreed is printed (`--nocapture`).

#[path = "evaluators/report.rs"]
mod report;
#[path = "evaluators/subjects.rs"]
mod subjects;
#[path = "evaluators/systems.rs"]
mod systems;
#[path = "evaluators/wide.rs"]
mod wide;

use md::autodiff::Richardson;
use md::autodiff::lanes::Isa;
use md::catalog::{Builder, Ending, EnergyKind, joints};
use md::forces::{
    Direction, Evaluator, ForceError, ForceSource, Forces, Grid, Kind, Method, ParameterSlope, Precision,
};
use md::integrate::{Integrator, Motion, VelocityVerlet};
use md::potentials::Vec3;
use md::system::{Positions, State};
use report::{Report, largest};
use std::time::Instant;
use subjects::{
    Bench, COULOMB, SKIN, Subject, cutoff, evaluator, factors, pairs_of_types, subject, subjects,
};
use systems::{CLEAR, Random, System, TYPES, combine, norm, plus, scaled, tiny};
use wide::WideEnergy;

/// All ways of computing forces in double precision, with sums as exact as they can be.
fn ways() -> Vec<Method> {
    let fused = |isa| Method { isa, ..Method::default() };
    let mut ways = vec![Method { kind: Kind::Tape, ..fused(Isa::Portable) }];
    ways.extend(Isa::available().into_iter().map(fused));
    #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
    ways.push(fused(Isa::Two));
    ways
}
/// The fast ones with pairs in single precision, on a grid or without.
fn mixed(grid: Grid) -> Vec<Method> {
    let fused = ways().into_iter().filter(|way| way.kind == Kind::Fused);
    fused.map(|way| Method { grid, precision: Precision::Mixed, ..way }).collect()
}
/// All with sums that do not depend on their order.
fn reproducible() -> Vec<Method> {
    let double = ways().into_iter().map(|way| Method { grid: Grid::METRIC, ..way });
    double.chain(mixed(Grid::METRIC)).collect()
}
/// The oracle, and what a run does by default.
fn usual() -> [Method; 2] {
    let tape = ways()[0];
    [tape, Method { grid: Grid::METRIC, ..Method::default() }]
}

/// Differences with steps from `step` down, of derivatives of which `scale` is a large one.
fn differences(step: f64, scale: f64) -> Richardson {
    Richardson { step, levels: 7, tables: 4, enough: 1e-10, scale }
}

impl Bench {
    fn try_forces(&mut self, way: Method) -> Result<Forces, ForceError> {
        let mut out = Forces::default();
        self.evaluator.method = way;
        self.evaluator.evaluate(&self.cell, &self.positions, &mut out)?;
        Ok(out)
    }
    /// How all of it changes along a direction.
    fn tangents(&mut self, way: Method, v: &[[f64; 3]], strain: [[f64; 3]; 3]) -> Forces {
        let mut out = Forces::default();
        self.evaluator.method = way;
        let direction = Direction { moves: v, strain };
        let result = self.evaluator.tangents(&self.cell, &self.positions, &direction, true, &mut out);
        result.unwrap_or_else(|e| panic!("{}: {e}", self.place));
        out
    }
    /// Forces, and how they change, in one pass.
    fn both(&mut self, way: Method, v: &[[f64; 3]], strain: [[f64; 3]; 3]) -> [Vec<[f64; 3]>; 2] {
        let (mut forces, mut tangents) = (Forces::default(), Forces::default());
        self.evaluator.method = way;
        let direction = Direction { moves: v, strain };
        let (cell, positions) = (&self.cell, &self.positions);
        let found =
            self.evaluator.forces_and_tangents(cell, positions, &direction, &mut forces, &mut tangents);
        found.unwrap_or_else(|e| panic!("{}: {e}", self.place));
        [forces.forces, tangents.forces]
    }
    fn slopes(&mut self, way: Method, v: &[[f64; 3]], strain: [[f64; 3]; 3]) -> Vec<ParameterSlope> {
        self.evaluator.method = way;
        let direction = Some(Direction { moves: v, strain });
        self.evaluator.parameter_slopes(&self.cell, &self.positions, direction).unwrap()
    }
    fn forces(&mut self, way: Method) -> Forces {
        self.try_forces(way).unwrap_or_else(|e| panic!("{}: {e}", self.place))
    }
    /// How much forces change, relative to the largest, where positions are rounded to another grid: by 1e-13 nm, some
    /// units in the last place of coordinates of up to 10 nm. Where three bonded atoms are nearly on a line, much.
    fn rounding(&mut self, random: &mut Random) -> f64 {
        let before = self.forces(Method::default()).forces.concat();
        let positions = self.positions.clone();
        let mut change: Vec<f64> = Vec::new();
        for _ in 0..4 {
            let moves: Vec<_> = before.iter().map(|_| random.vector(1e-9)).collect();
            self.positions.advance_all(&self.cell, |i| moves[i]).unwrap();
            let after = self.forces(Method::default()).forces.concat();
            self.positions = positions.clone();
            change.extend(before.iter().zip(&after).map(|(a, b)| a - b));
        }
        1e-13 * (largest(&change) / 1e-9) / largest(&before)
    }
    /// The same of tangents, relative to their largest component.
    fn rounding_of_tangents(&mut self, v: &[[f64; 3]], strain: [[f64; 3]; 3]) -> f64 {
        let mut random = Random::of(&self.place);
        let all = |f: Forces| [f.forces.concat(), f.virial.to_vec()].concat();
        let before = all(self.tangents(Method::default(), v, strain));
        let positions = self.positions.clone();
        let mut change: Vec<f64> = Vec::new();
        for _ in 0..4 {
            let moves: Vec<_> = v.iter().map(|_| random.vector(1e-9)).collect();
            self.positions.advance_all(&self.cell, |i| moves[i]).unwrap();
            let after = all(self.tangents(Method::default(), v, strain));
            self.positions = positions.clone();
            change.extend(before.iter().zip(&after).map(|(a, b)| a - b));
        }
        1e-15 * (largest(&change) / 1e-9) / largest(&before)
    }
    fn energy(&mut self, moves: Option<&[Vec3<f64>]>, strain: Option<[[f64; 3]; 3]>) -> f64 {
        self.evaluator.energies(&self.cell, &self.positions, moves, strain).unwrap().iter().sum()
    }
}

/// A force to compare errors with, as an energy: the largest force times a typical distance.
fn energy_scale(f: &Forces) -> f64 {
    f.energy().abs().max(0.1 * largest(f.forces.as_flattened()))
}

fn names(way: Method) -> &'static str {
    match (way.kind, way.isa) {
        (Kind::Tape, _) => "tape",
        #[cfg(all(debug_assertions, not(target_arch = "x86_64")))]
        (_, Isa::Two) => "two lanes",
        (_, isa) => isa.name(),
    }
}

/// Compares all that two evaluations gave, relative to the largest of each.
fn same_forces(report: &mut Report, what: [&str; 3], place: &str, a: &Forces, b: &Forces, limit: f64) {
    same_but_for(report, what, place, a, b, limit, 0.0);
}

/// The same where forces may differ by a little more.
fn same_but_for(
    report: &mut Report,
    what: [&str; 3],
    place: &str,
    a: &Forces,
    b: &Forces,
    limit: f64,
    more: f64,
) {
    let scale = energy_scale(a);
    report.same(what[0], place, &a.energies, &b.energies, scale, limit);
    report.same(what[1], place, a.forces.as_flattened(), b.forces.as_flattened(), 0.0, limit + more);
    report.same(what[2], place, &a.virial, &b.virial, scale, limit);
}

fn bits(f: &Forces) -> Vec<u64> {
    f.energies.iter().chain(f.forces.as_flattened()).chain(&f.virial).map(|x| x.to_bits()).collect()
}

/// Those of forces and their tangents.
fn all_bits(bench: &mut Bench, way: Method) -> Vec<u64> {
    let v: Vec<_> = (0..bench.positions.len()).map(|i| [0.7, -0.4, 0.1 * (i % 7) as f64]).collect();
    let strain = [[0.3, 0.1, -0.2], [0.0, -0.5, 0.4], [0.2, 0.6, 0.1]];
    [bits(&bench.forces(way)), bits(&bench.tangents(way, &v, strain))].concat()
}

/// Forces on single atoms along x, y and z: each relative to itself, or to a thousandth of the largest. Differences of
/// the energies of bonded atoms, some of which are next to a line, are taken in numbers twice as wide.
#[test]
fn forces_agree_with_differences_of_the_energy() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let forces: Vec<_> = ways().into_iter().map(|way| (way, bench.forces(way))).collect();
            let oracle = &forces[0].1.forces;
            let floor = 1e-3 * largest(oracle.as_flattened());
            let n = oracle.len();
            let wide = WideEnergy::new(&subject, &system);
            assert_eq!(wide.is_some(), subject.is_bonded());
            // atoms that may be moved farthest before a pair meets a distance where something is not smooth
            let steps = match (&wide, subject.has_list()) {
                (Some(_), _) => vec![2e-5; n],
                (None, true) => system.clearance(&subject.spacing),
                (None, false) => vec![0.02; n],
            };
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| steps[b].total_cmp(&steps[a]));
            order.truncate(if subject.has_list() { 20 } else { n });
            let mut moves = vec![Vec3::new(0.0, 0.0, 0.0); n];
            for i in order {
                for axis in 0..3 {
                    let scale = oracle[i][axis].abs().max(floor);
                    let energy = |h: f64| match &wide {
                        Some(wide) => wide.change(i, axis, h),
                        None => {
                            let mut d = [0.0; 3];
                            d[axis] = h;
                            moves[i] = Vec3::new(d[0], d[1], d[2]);
                            let e = bench.energy(Some(&moves), None);
                            moves[i] = Vec3::new(0.0, 0.0, 0.0);
                            e
                        }
                    };
                    let slope = differences(0.9 * steps[i], scale).derivative(energy, 0.0);
                    for (way, f) in &forces {
                        let error = (f.forces[i][axis] + slope.value).abs();
                        let error = if error == 0.0 { 0.0 } else { error / scale };
                        let quantity = if wide.is_some() { "bonded: " } else { "" }.to_string() + names(*way);
                        report.note(&quantity, &format!("{}, atom {i} {axis}", bench.place), error, 1e-8);
                    }
                }
            }
        }
    }
    report.finish("forces against differences");
}

#[test]
fn evaluators_agree() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let oracle = bench.forces(ways()[0]);
            report.hold("something is there", &bench.place, largest(oracle.forces.as_flattened()) > 1e-3);
            for way in ways() {
                let what = ["energies", "forces", "virial"];
                let place = format!("{}, {}", bench.place, names(way));
                same_forces(&mut report, what, &place, &oracle, &bench.forces(way), 1e-12);
            }
            let plain = bench.evaluator.energies(&bench.cell, &bench.positions, None, None).unwrap();
            let scale = energy_scale(&oracle);
            report.same("plain energies", &bench.place, &oracle.energies, &plain, scale, 1e-13);
        }
    }
    report.finish("tape = fused = two lanes");
}

/// With pairs in single precision, forces are as good as its 24 bits and, for some tens of pairs, the steps that they are
/// rounded to.
#[test]
fn mixed_precision_agrees_with_double() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let oracle = bench.forces(ways()[0]);
            for way in mixed(Grid::NONE).into_iter().chain(mixed(Grid::METRIC)) {
                let what = ["energies", "forces", "virial"];
                let place = format!("{}, {}", bench.place, names(way));
                let steps = if way.grid == Grid::NONE { 0.0 } else { 1.0 / way.grid.single_steps() };
                let more = 20.0 * steps / largest(oracle.forces.as_flattened());
                same_but_for(&mut report, what, &place, &oracle, &bench.forces(way), 2e-5, more);
            }
        }
    }
    report.finish("mixed precision");
}

/// Where atoms all but coincide, forces are too large to be added up as integers of 32 bits: that is noticed.
#[test]
fn huge_forces_in_mixed_precision() {
    let mut report = Report::default();
    let subject = subject(EnergyKind::Pair, "lennard-jones", Ending::Truncate);
    let mut system = (*subject.system("triclinic")).clone();
    for (k, apart) in [0.15, 0.1, 0.03, 0.003].into_iter().enumerate() {
        let at = system.points[2 * k];
        system.points[2 * k + 1] = plus(at, scaled([0.6, 0.0, 0.8], apart));
        let mut bench = Bench::new(&subject, &system);
        let oracle = bench.forces(ways()[0]);
        report.hold("they are", &bench.place, largest(oracle.forces.as_flattened()) > 1e5);
        for way in mixed(Grid::METRIC) {
            let forces = bench.forces(way);
            let place = format!("{}, {apart} nm, {}", bench.place, names(way));
            let limit = 2e-5;
            report.same(
                "forces",
                &place,
                oracle.forces.as_flattened(),
                forces.forces.as_flattened(),
                0.0,
                limit,
            );
            let mut other = Bench::with_skin(&subject, &system, 0.02);
            // (energies are beyond what their grid can hold, and larger sums beyond 53 bits)
            let exact = largest(forces.forces.as_flattened()) * way.grid.single_steps() < 2f64.powi(52);
            assert_eq!(exact, apart > 0.05);
            let same = forces.forces == other.forces(way).forces;
            report.hold("another list", &place, same || !exact);
        }
    }
    report.finish("huge forces");
}

/// Two pair energies in one kernel are as two that come one after the other.
#[test]
fn joint_kernels_agree() {
    let mut report = Report::default();
    for charges in ["reaction-field", "damped-shifted-force"] {
        for ending in Ending::ALL {
            let both = [
                subject(EnergyKind::Pair, "lennard-jones", ending),
                subject(EnergyKind::Pair, charges, Ending::Truncate),
            ];
            for system in both[0].systems() {
                let terms = || both.each_ref().map(|s| s.term(&system));
                let (cell, place) = (system.cell(), format!("{ending:?}, {charges}, {}", system.name));
                let positions = system.positions(&cell);
                let forces = |evaluator: &mut Evaluator, way: Method| {
                    let mut out = Forces::default();
                    evaluator.method = way;
                    evaluator.evaluate(&cell, &positions, &mut out).unwrap();
                    out
                };
                let [mut one, mut other] = [SKIN, 0.02].map(|skin| evaluator(&system, terms().into(), skin));
                let joined = joints().iter().any(|j| j.fits(&*one.terms()[0], &*one.terms()[1]));
                report.hold("there is one", &place, joined);
                let oracle = forces(&mut one, ways()[0]);
                for way in ways() {
                    let place = format!("{place}, {}", names(way));
                    let what = ["energies", "forces", "virial"];
                    same_forces(&mut report, what, &place, &oracle, &forces(&mut one, way), 1e-12);
                }
                for way in reproducible() {
                    let same = bits(&forces(&mut one, way)) == bits(&forces(&mut other, way));
                    report.hold("the same bits", &format!("{place}, {}", names(way)), same);
                    // without sums
                    let (mut out, all) = (Forces::default(), forces(&mut one, way));
                    one.forces_only(&cell, &positions, &mut out).unwrap();
                    report.hold("forces only", &place, out.forces == all.forces);
                }
                for way in mixed(Grid::METRIC) {
                    let place = format!("{place}, {}", names(way));
                    let what = ["energies, mixed", "forces, mixed", "virial, mixed"];
                    same_forces(&mut report, what, &place, &oracle, &forces(&mut one, way), 2e-5);
                }
            }
        }
    }
    report.finish("joint kernels");
}

/// The symmetric part of −∂E/∂ε in the order of the virial.
fn symmetrised(slopes: [[f64; 3]; 3]) -> [f64; 6] {
    let w = |a: usize, b: usize| -0.5 * (slopes[a][b] + slopes[b][a]);
    [w(0, 0), w(1, 1), w(2, 2), w(0, 1), w(0, 2), w(1, 2)]
}

#[test]
fn virial_agrees_with_differences_of_strained_energies() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let virials: Vec<_> = ways().into_iter().map(|way| (way, bench.forces(way).virial)).collect();
            let differences = differences(1e-3, largest(&virials[0].1));
            let strain = |a: usize, b: usize, h: f64| {
                let mut e = [[0.0; 3]; 3];
                e[a][b] = h;
                e
            };
            let mut slopes = [[0.0; 3]; 3];
            for a in 0..3 {
                for b in 0..3 {
                    let strained = |h| bench.energy(None, Some(strain(a, b, h)));
                    slopes[a][b] = differences.derivative(strained, 0.0).value;
                }
            }
            for (way, w) in &virials {
                report.same(names(*way), &bench.place, w, &symmetrised(slopes), 0.0, 1e-7);
            }
            if system.is_periodic() {
                let cell = bench.cell.clone();
                for a in 0..3 {
                    for b in 0..3 {
                        let strained = |h| {
                            bench.cell = cell.strained(strain(a, b, h)).unwrap();
                            bench.energy(None, None)
                        };
                        slopes[a][b] = differences.derivative(strained, 0.0).value;
                    }
                }
                report.same(
                    "the cell itself strained",
                    &bench.place,
                    &virials[0].1,
                    &symmetrised(slopes),
                    0.0,
                    1e-7,
                );
            }
        }
    }
    report.finish("virial against strained energies");
}

/// ∂E/∂θ for every number θ that was written, parameters and charges. Numbers have dimensions, so what is compared is
/// θ ∂E/∂θ, the energy that a relative change of θ brings; relative to itself or to a thousandth of the largest
/// such energy of the term, since a number of little weight has the rounding of the whole sum.
#[test]
fn parameter_gradients_agree_with_differences() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems().filter(|s| ["open", "strongly tilted", "small"].contains(&&*s.name)) {
            let mut bench = Bench::new(&subject, &system);
            let rest = vec![[0.0; 3]; system.points.len()];
            let gradient = bench.slopes(Method::default(), &rest, [[0.0; 3]; 3]);
            let theta = bench.evaluator.terms()[0].parameters().values().to_vec();
            let charges = bench.evaluator.charges().values.clone();
            let all = [theta.clone(), charges.clone()].concat();
            report.hold("a derivative for each number", &bench.place, gradient.len() == all.len());
            let weights: Vec<f64> = all.iter().zip(&gradient).map(|(x, g)| x * g.slope).collect();
            let scale = largest(&weights).max(bench.energy(None, None).abs());
            // of many rows of parameters, some
            let chosen = Random::of(&bench.place).shuffled(all.len());
            for &k in chosen.iter().take(60) {
                let scale = weights[k].abs().max(1e-3 * scale);
                let changed = |h| {
                    let mut changed = all.clone();
                    changed[k] *= 1.0 + h;
                    let (theta, charges) = changed.split_at(theta.len());
                    bench.evaluator.terms_mut()[0].set_parameters(theta);
                    bench.evaluator.set_charges(charges);
                    bench.energy(None, None)
                };
                let slope = differences(CLEAR, scale).derivative(changed, 0.0).value;
                bench.evaluator.terms_mut()[0].set_parameters(&theta);
                bench.evaluator.set_charges(&charges);
                let place = format!("{}, {}", bench.place, gradient[k].name);
                report.note("d/d(ln theta)", &place, (weights[k] - slope).abs() / scale, 1e-8);
            }
        }
    }
    report.finish("parameter gradients against differences");
}

/// Directions for derivatives: atoms that move by up to 1 nm, and a strain where there is a cell (and no place in it,
/// which a strain would move far).
fn directions(subject: &Subject, system: &System, random: &mut Random) -> (Vec<[f64; 3]>, [[f64; 3]; 3]) {
    let v = (0..system.points.len()).map(|_| random.vector(1.0)).collect();
    let strained = system.periodic == [true; 3] && !subject.is_field();
    let strain = [(); 3].map(|()| if strained { random.vector(1.0) } else { [0.0; 3] });
    (v, strain)
}

#[test]
fn tangents_agree() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let mut random = Random::of(&bench.place);
            let (v, strain) = directions(&subject, &system, &mut random);
            let u = directions(&subject, &system, &mut random).0;
            let oracle = bench.tangents(ways()[0], &v, strain);
            let floor = 1e-3 * largest(bench.forces(ways()[0]).forces.as_flattened());
            let scale = largest(&oracle.virial).max(largest(oracle.forces.as_flattened()));
            // (next to a line, curvatures are large and what is left of them after rounding is not)
            let rounding = if subject.is_bonded() { bench.rounding_of_tangents(&v, strain) } else { 0.0 };
            let limit = 1e-11 + rounding;
            for way in ways().into_iter().chain(reproducible()) {
                let place = format!("{}, {}", bench.place, names(way));
                let tangents = bench.tangents(way, &v, strain);
                let [a, b] = [&oracle, &tangents].map(|t| t.forces.as_flattened());
                report.same("forces", &place, a, b, floor, limit);
                report.same("energies", &place, &oracle.energies, &tangents.energies, scale, limit);
                report.same("virial", &place, &oracle.virial, &tangents.virial, scale, limit);
                // (in one pass with forces, both have the same bits)
                let alone = [bench.forces(way).forces, tangents.forces];
                let both = bench.both(way, &v, strain);
                report.hold("in one pass", &place, both == alone || way.grid == Grid::NONE);
                let [hv, hu] = [&v, &u]
                    .map(|v| bench.evaluator.hessian_product(&bench.cell, &bench.positions, v).unwrap());
                let dot = |a: &[[f64; 3]], b: &[[f64; 3]]| -> (f64, f64) {
                    let terms = a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| a * b);
                    terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()))
                };
                let ((uhv, size), (vhu, _)) = (dot(&u, &hv), dot(&v, &hu));
                report.same("symmetry", &place, &[uhv], &[vhu], size, 1e-12 + rounding);
            }
            let oracle = bench.slopes(ways()[0], &v, strain);
            let all = |slopes: &[ParameterSlope], of: fn(&ParameterSlope) -> f64| -> Vec<f64> {
                slopes.iter().map(|s| s.at * of(s)).collect()
            };
            for way in usual().into_iter().skip(1) {
                let slopes = bench.slopes(way, &v, strain);
                let place = &bench.place;
                for (name, of) in [
                    ("d/d(ln theta)", (|s| s.slope) as fn(&ParameterSlope) -> f64),
                    ("its change", |s| s.along),
                ] {
                    report.same(name, place, &all(&oracle, of), &all(&slopes, of), 0.0, 1e-11);
                }
                for (a, b) in oracle.iter().zip(&slopes) {
                    let known = a.matters == b.matters && a.name == b.name;
                    report.hold("what matters", &format!("{place}, {}", a.name), known);
                }
            }
        }
    }
    report.finish("tangents: tape = fused");
}

/// Relative to the largest, as for products of random vectors every component is of much the same size.
#[test]
fn tangents_agree_with_differences() {
    let mut report = Report::default();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let (v, strain) = directions(&subject, &system, &mut Random::of(&bench.place));
            let tangents = bench.tangents(Method::default(), &v, strain);
            let (cell, positions) = (bench.cell.clone(), bench.positions.clone());
            // (both atoms of a pair move, by up to √3 each, and are strained apart)
            let step = if strain == [[0.0; 3]; 3] { 0.28 } else { 0.1 } * CLEAR;
            let place = |bench: &mut Bench, h: f64| {
                (bench.cell, bench.positions) = (cell.clone(), positions.clone());
                bench.positions.advance_all(&bench.cell, |i| scaled(v[i], h)).unwrap();
                if strain != [[0.0; 3]; 3] {
                    // (rows of a cell are vectors)
                    let rows = std::array::from_fn(|a| std::array::from_fn(|b| h * strain[b][a]));
                    bench.cell = cell.strained(rows).unwrap();
                }
            };
            let all = |f: &Forces| {
                let mut all = f.forces.concat();
                all.extend(&f.energies);
                all.extend(&f.virial);
                all
            };
            let (n, found) = (3 * v.len(), all(&tangents));
            let scale = largest(&found);
            let evaluated = |h| {
                place(&mut bench, h);
                all(&bench.forces(Method::default()))
            };
            let slopes = differences(step, scale).derivatives(evaluated, 0.0);
            let slopes: Vec<f64> = slopes.iter().map(|s| s.value).collect();
            report.same("energies and virial", &bench.place, &found[n..], &slopes[n..], scale, 1e-8);
            // (differences of bonded energies, some of which are next to a line, in numbers twice as wide)
            if let Some(wide) = WideEnergy::new(&subject, &system) {
                place(&mut bench, 0.0);
                let hv = bench.evaluator.hessian_product(&bench.cell, &bench.positions, &v).unwrap().concat();
                let products: Vec<f64> = (0..n).map(|k| wide.product(k / 3, k % 3, &v)).collect();
                report.same("bonded: products", &bench.place, &hv, &products, 0.0, 1e-8);
                let found = bench.slopes(Method::default(), &v, [[0.0; 3]; 3]);
                let chosen = Random::of(&bench.place).shuffled(wide.parameters());
                let chosen: Vec<usize> = chosen.into_iter().take(40).collect();
                let weights: Vec<f64> = chosen.iter().map(|&k| found[k].at * found[k].along).collect();
                let slopes: Vec<f64> = chosen.iter().map(|&k| wide.slope(k, &v)).collect();
                report.same("bonded: parameters and forces", &bench.place, &weights, &slopes, 0.0, 1e-8);
                continue;
            }
            report.same("forces", &bench.place, &found[..n], &slopes[..n], scale, 1e-8);
            // ∂F/∂θ along the direction, as the change of ∂E/∂θ
            if ["open", "strongly tilted", "small"].contains(&&*system.name) {
                place(&mut bench, 0.0);
                let found = bench.slopes(Method::default(), &v, strain);
                let weights: Vec<f64> = found.iter().map(|s| s.at * s.along).collect();
                let rest = vec![[0.0; 3]; v.len()];
                let slopes = |h| {
                    place(&mut bench, h);
                    let slopes = bench.slopes(Method::default(), &rest, [[0.0; 3]; 3]);
                    slopes.iter().map(|s| s.at * s.slope).collect::<Vec<_>>()
                };
                let slopes = differences(step, largest(&weights)).derivatives(slopes, 0.0);
                let slopes: Vec<f64> = slopes.iter().map(|s| s.value).collect();
                report.same("parameters and forces", &bench.place, &weights, &slopes, 0.0, 1e-8);
            }
        }
    }
    report.finish("tangents against differences");
}

/// A rotation about a skew axis, rows the images of the axes.
fn rotation() -> [[f64; 3]; 3] {
    let axis: [f64; 3] = scaled([2.0, -1.0, 3.0], 1.0 / 14f64.sqrt());
    let (sin, cos) = 0.83f64.sin_cos();
    let turn = |e: [f64; 3]| {
        let along: f64 = e.iter().zip(axis).map(|(a, b)| a * b).sum();
        let across = [
            axis[1] * e[2] - axis[2] * e[1],
            axis[2] * e[0] - axis[0] * e[2],
            axis[0] * e[1] - axis[1] * e[0],
        ];
        plus(plus(scaled(e, cos), scaled(across, sin)), scaled(axis, along * (1.0 - cos)))
    };
    [turn([1.0, 0.0, 0.0]), turn([0.0, 1.0, 0.0]), turn([0.0, 0.0, 1.0])]
}

#[test]
fn symmetries() {
    let mut report = Report::default();
    let rotation = rotation();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let mut random = Random::of(&bench.place);
            let order = random.shuffled(system.points.len());
            let mut renumbered = Bench::new(&subject, &system.renumbered(&order));
            let mut turned = Bench::new(&subject, &system.turned(rotation));
            let mut other = Bench::new(&subject, &system.in_other_vectors());
            let place = bench.place.clone();
            let rounding = bench.rounding(&mut random);
            for way in ways() {
                let f = bench.forces(way);
                let flat = f.forces.as_flattened();
                if !subject.is_field() {
                    let total = f.forces.iter().fold([0.0; 3], |t, &f| plus(t, f));
                    let size = flat.iter().map(|f| f.abs()).sum::<f64>();
                    report.note("total force", &place, largest(&total) / size, 1e-14);
                    let back = turned.forces(way);
                    let a = Forces {
                        forces: f.forces.iter().map(|&f| combine(f, rotation)).collect(),
                        energies: f.energies.clone(),
                        virial: turned_virial(f.virial, rotation),
                    };
                    let what = ["rotation, energy", "rotation, forces", "rotation, virial"];
                    same_but_for(&mut report, what, &place, &a, &back, 1e-12, rounding);
                }
                let mut g = renumbered.forces(way);
                let mut forces = g.forces.clone();
                for (k, &old) in order.iter().enumerate() {
                    forces[old] = g.forces[k];
                }
                g.forces = forces;
                let what = ["numbering, energy", "numbering, forces", "numbering, virial"];
                same_forces(&mut report, what, &place, &f, &g, 1e-12);
                if system.is_periodic() {
                    let what = ["other vectors, energy", "other vectors, forces", "other vectors, virial"];
                    same_but_for(&mut report, what, &place, &f, &other.forces(way), 1e-12, rounding);
                }
            }
        }
    }
    report.finish("symmetries");
}

fn turned_virial(w: [f64; 6], rotation: [[f64; 3]; 3]) -> [f64; 6] {
    let full = [[w[0], w[3], w[4]], [w[3], w[1], w[5]], [w[4], w[5], w[2]]];
    let half = full.map(|row| combine(row, rotation));
    let mut all = [[0.0; 3]; 3];
    for a in 0..3 {
        for b in 0..3 {
            all[a][b] = (0..3).map(|k| rotation[k][a] * half[k][b]).sum();
        }
    }
    [all[0][0], all[1][1], all[2][2], all[0][1], all[0][2], all[1][2]]
}

/// Wrapping, the age and the skin of the lists change no bit; nor does the number of threads.
#[test]
fn the_same_bits() {
    let mut report = Report::default();
    let pools: Vec<_> = [1, 2, 3, 7]
        .map(|n| (n, rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap()))
        .into_iter()
        .collect();
    for subject in subjects() {
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let place = bench.place.clone();
            let mut random = Random::of(&place);
            if system.is_periodic() && !subject.is_followed() {
                let images: Vec<[i32; 3]> =
                    system.points.iter().map(|_| [0; 3].map(|_| random.below(5) as i32 - 2)).collect();
                let wrapped =
                    Positions::from_cartesian_with_images(&bench.cell, &system.points, &images).unwrap();
                for way in reproducible() {
                    let plain = all_bits(&mut bench, way);
                    let before = std::mem::replace(&mut bench.positions, wrapped.clone());
                    report.hold("wrapping", &place, plain == all_bits(&mut bench, way));
                    let mut fresh = Bench::new(&subject, &system);
                    fresh.positions = wrapped.clone();
                    report.hold("wrapping, new lists", &place, plain == all_bits(&mut fresh, way));
                    bench.positions = before;
                }
            }
            // move on with old lists
            let mut old = Bench::with_skin(&subject, &system, 0.11);
            old.forces(Method::default());
            let builds = old.evaluator.list_builds();
            let moves: Vec<_> = system.points.iter().map(|_| random.vector(0.03)).collect();
            old.positions.advance_all(&old.cell, |i| moves[i]).unwrap();
            bench.positions = old.positions.clone();
            let mut thin = Bench::with_skin(&subject, &system, 0.0);
            thin.positions = old.positions.clone();
            for way in reproducible() {
                let new = all_bits(&mut bench, way);
                let place = format!("{place}, {} {:?}", names(way), way.precision);
                report.hold("old lists", &place, new == all_bits(&mut old, way));
                report.hold("lists without skin", &place, new == all_bits(&mut thin, way));
            }
            report.hold("the lists were old", &place, builds == old.evaluator.list_builds());
            if ["open", "strongly tilted"].contains(&&*system.name) {
                for way in ways().into_iter().chain(reproducible()) {
                    let one = all_bits(&mut bench, way);
                    for (n, pool) in &pools {
                        let (mut fresh, positions) = (Bench::new(&subject, &system), &bench.positions);
                        fresh.positions = positions.clone();
                        let same = one == pool.install(|| all_bits(&mut fresh, way));
                        report.hold("threads", &format!("{place}, {n} threads"), same);
                    }
                }
            }
        }
    }
    report.finish("the same bits");
}

/// With sums on a grid velocity Verlet is exactly reversible: forward, and with opposite velocities back with other
/// lists, every bit is as it was. All the while the momentum is what it was.
#[test]
fn there_and_back() {
    let mut report = Report::default();
    const STEP: f64 = 1e-4;
    let mut verlet = VelocityVerlet::new(STEP).unwrap();
    // (the bonds of FENE, made at random, break)
    let stays = |s: &&Subject| s.listed.about.name != "fene";
    for subject in
        subjects().iter().filter(stays).filter(|s| [Ending::Truncate, Ending::Switch].contains(&s.ending))
    {
        for cell in ["orthorhombic", "triclinic"] {
            let system = subject.system(cell);
            let n = system.points.len();
            let [mut there, mut back] = [0.01, 0.09].map(|skin| Bench::with_skin(subject, &system, skin));
            let mut random = Random::of(&there.place);
            // (fast, so that lists are built; bonds would break)
            let speed = if subject.has_list() { 5.0 } else { 0.5 };
            let velocities = (0..n).map(|_| random.vector(speed)).collect();
            let start = State {
                cell: there.cell.clone(),
                positions: there.positions.clone(),
                velocities,
                step: 0,
                time: 0.0,
            };
            let fast = [mixed(Grid::METRIC), vec![usual()[1]]].concat();
            for way in fast {
                let place = format!("{}, {} {:?}", there.place, names(way), way.precision);
                let mut state = start.clone();
                let mut forces = Forces::default();
                let mut go = |bench: &mut Bench, state: &mut State, steps: usize| {
                    bench.evaluator.method = way;
                    let mut motion =
                        Motion::start(state, &system.masses, &mut bench.evaluator, &mut forces).unwrap();
                    motion.forces_only = true;
                    (0..steps)
                        .for_each(|_| verlet.step(&mut motion).unwrap_or_else(|e| panic!("{place}: {e}")));
                };
                // (the first step puts the momenta on their grid)
                go(&mut there, &mut state, 1);
                let first = state.clone();
                let builds = there.evaluator.list_builds();
                go(&mut there, &mut state, 80);
                let rebuilt = there.evaluator.list_builds() > builds + 5;
                report.hold("lists were built", &place, rebuilt || !subject.has_list());
                report.hold("it moved", &place, state.positions != first.positions);
                if !subject.is_field() && !matches!(subject.listed.builder, Builder::Global { .. }) {
                    // in the units that momenta are whole multiples of
                    let unit = 0.5 * STEP * way.grid.force_step();
                    let total = |s: &State| {
                        let p = s.velocities.iter().zip(&system.masses).map(|(v, m)| v.map(|v| v * m / unit));
                        p.map(|p| p.map(f64::round)).fold([0.0; 3], plus)
                    };
                    report.hold("momentum", &place, total(&state) == total(&first));
                }
                let turn = |s: &mut State| s.velocities.iter_mut().flatten().for_each(|v| *v = -*v);
                turn(&mut state);
                go(&mut back, &mut state, 80);
                turn(&mut state);
                let same = |a: &[[f64; 3]], b: &[[f64; 3]]| {
                    a.as_flattened().iter().zip(b.as_flattened()).all(|(a, b)| a.to_bits() == b.to_bits())
                };
                report.hold("positions", &place, state.positions == first.positions);
                report.hold("velocities", &place, same(&state.velocities, &first.velocities));
            }
        }
    }
    report.finish("there and back");
}

/// Several periods are as good as one.
#[test]
fn replicas() {
    let mut report = Report::default();
    for subject in subjects().iter().filter(|s| !s.is_followed()) {
        for system in subject.systems().filter(|s| s.periodic == [true; 3]) {
            // (what each atom of a small cell is bonded to is the nearest image, in the repeated cell as well)
            let mut one = Bench::new(subject, &system);
            let mut two = Bench::new(subject, &system.repeated([2, 1, 1]));
            compare_replicas(&mut report, "2 x 1 x 1", &mut one, &mut two, 2.0);
        }
        if subject.has_list() {
            let system = tiny(&subject.spacing);
            let mut one = Bench::new(subject, &system);
            let mut many = Bench::new(subject, &system.repeated([3, 3, 3]));
            compare_replicas(&mut report, "3 x 3 x 3 of a tiny cell", &mut one, &mut many, 27.0);
        }
    }
    report.finish("replicas");
}

fn compare_replicas(report: &mut Report, what: &str, one: &mut Bench, many: &mut Bench, times: f64) {
    let more = one.rounding(&mut Random::of(&one.place));
    for way in ways() {
        let (a, b) = (one.forces(way), many.forces(way));
        let n = a.forces.len();
        let scale = energy_scale(&a);
        report.same(what, &one.place, &a.energies, &[b.energy() / times], scale, 1e-12);
        report.same(what, &one.place, &a.virial, &b.virial.map(|w| w / times), scale, 1e-12);
        for copy in b.forces.chunks(n) {
            report.same(what, &one.place, a.forces.as_flattened(), copy.as_flattened(), 0.0, 1e-12 + more);
        }
    }
}

/// Chains of five atoms, each with the nearest one that is in no chain yet.
fn near_chains(system: &System) -> Vec<Vec<u32>> {
    let cell = system.cell();
    let positions = system.positions(&cell);
    let mut free: Vec<usize> = (0..system.points.len()).collect();
    let mut chains = Vec::new();
    for _ in 0..8 {
        let mut chain = vec![free.remove(0)];
        for k in 0..4 {
            let r = |&&j: &&usize| norm(cell.cartesian(cell.nearest(positions.displacement(chain[k], j))));
            let next = *free.iter().min_by(|a, b| r(a).total_cmp(&r(b))).unwrap();
            free.retain(|&j| j != next);
            chain.push(next);
        }
        chains.push(chain.iter().map(|&i| i as u32).collect());
    }
    chains
}

/// All terms in one evaluator share lists, and each has the bits it has alone.
#[test]
fn terms_do_not_mind_each_other() {
    let mut report = Report::default();
    let all: Vec<_> = subjects().into_iter().filter(|s| s.ending == Ending::Truncate).collect();
    for cell in ["open", "triclinic"] {
        let mut system = (*subject(EnergyKind::Pair, "lennard-jones", Ending::Truncate).system(cell)).clone();
        system.chains = near_chains(&system);
        let mut together = evaluator(&system, all.iter().map(|s| s.term(&system)).collect(), 0.1);
        for way in usual() {
            together.method = way;
            let (cell, mut out) = (system.cell(), Forces::default());
            together.evaluate(&cell, &system.positions(&cell), &mut out).unwrap();
            let mut sum = vec![[0.0; 3]; system.points.len()];
            for (k, subject) in all.iter().enumerate() {
                let mut alone = Bench::new(subject, &system);
                let f = alone.forces(way);
                report.hold("energy", &alone.place, f.energies[0].to_bits() == out.energies[k].to_bits());
                sum.iter_mut().zip(&f.forces).for_each(|(s, &f)| *s = plus(*s, f));
            }
            // (two pair energies in one kernel are rounded to the grid together: each of some hundred pairs may differ by
            // a step)
            let limit = 1e-12 + 200.0 * way.grid.force_step() / largest(sum.as_flattened());
            report.same("forces", names(way), sum.as_flattened(), out.forces.as_flattened(), 0.0, limit);
        }
    }
    report.finish("terms together");
}

/// Sums over all pairs and images, by arithmetic.
#[test]
fn pairs_agree_with_a_double_sum() {
    let mut report = Report::default();
    // (values by type as they stand in the tables)
    for (name, ending) in [
        ("lennard-jones", Ending::Truncate),
        ("lennard-jones", Ending::Shift),
        ("coulomb", Ending::Truncate),
        ("coulomb", Ending::Shift),
        ("reaction-field", Ending::Truncate),
        ("damped-shifted-force", Ending::Truncate),
    ] {
        let subject = subject(EnergyKind::Pair, name, ending);
        for system in subject.systems() {
            let mut bench = Bench::new(&subject, &system);
            let table = bench.evaluator.terms()[0].parameters();
            let number = |label: String| {
                let k = table.labels().iter().position(|l| *l == label).unwrap();
                table.values()[k]
            };
            let law = PlainLaw::new(name, ending == Ending::Shift, &number);
            let want = double_sum(&law, &system);
            for way in ways() {
                let what = ["energy", "forces", "virial"];
                let got = bench.forces(way);
                same_forces(&mut report, what, &bench.place, &want, &got, 1e-12);
            }
        }
    }
    report.finish("double sums");
}

/// Energy and slope as functions of the distance, by pair of types.
struct PlainLaw {
    charged: bool,
    /// E(r), −E′(r)/r
    pair: Box<dyn Fn(usize, usize, f64) -> (f64, f64)>,
    /// The same of an excluded pair.
    excluded: Box<dyn Fn(usize, usize, f64) -> (f64, f64)>,
    own: Box<dyn Fn(usize) -> f64>,
}

impl PlainLaw {
    fn new(name: &str, shifted: bool, number: &dyn Fn(String) -> f64) -> Self {
        let nothing = || Box::new(|_: usize, _: usize, _: f64| (0.0, 0.0));
        let ordered = |a: usize, b: usize| (a.min(b), a.max(b));
        match name {
            "lennard-jones" => {
                let of_type =
                    [0, 1, 2].map(|t| (number(format!("{t}.epsilon")), number(format!("{t}.sigma"))));
                let plain = move |a: usize, b: usize, r: f64| {
                    let ((ea, sa), (eb, sb)) = (of_type[a], of_type[b]);
                    let (e, s) = match (a, b) {
                        (0, 1) => ((ea * eb).sqrt(), (sa + sb) / 2.0),
                        (0, 2) => {
                            let s6 = (sa.powi(6) + sb.powi(6)) / 2.0;
                            ((ea * eb).sqrt() * (sa * sb).powi(3) / s6, s6.powf(1.0 / 6.0))
                        }
                        _ => ((ea * eb).sqrt(), (sa * sb).sqrt()),
                    };
                    let (x12, x6) = ((s / r).powi(12), (s / r).powi(6));
                    (4.0 * e * (x12 - x6), 4.0 * e * (12.0 * x12 - 6.0 * x6) / (r * r))
                };
                let pair = move |a: usize, b: usize, r: f64| {
                    let (a, b) = ordered(a, b);
                    let (e, f) = plain(a, b, r);
                    (e - if shifted { plain(a, b, cutoff(a, b).0).0 } else { 0.0 }, f)
                };
                PlainLaw { charged: false, pair: Box::new(pair), excluded: nothing(), own: Box::new(|_| 0.0) }
            }
            "coulomb" => {
                let pair = move |a: usize, b: usize, r: f64| {
                    (1.0 / r - if shifted { 1.0 / cutoff(a, b).0 } else { 0.0 }, 1.0 / r.powi(3))
                };
                PlainLaw { charged: true, pair: Box::new(pair), excluded: nothing(), own: Box::new(|_| 0.0) }
            }
            "reaction-field" => {
                let mut constants = [[(0.0, 0.0); 3]; 3];
                for (a, b) in pairs_of_types() {
                    let rc = cutoff(a, b).0;
                    // the pair 1-2 has the default: a conductor
                    let k = if (a, b) == (1, 2) {
                        0.5 / rc.powi(3)
                    } else {
                        let e = number(format!("{a}-{b}.epsilon-rf"));
                        (e - 1.0) / (2.0 * e + 1.0) / rc.powi(3)
                    };
                    constants[a][b] = (k, 1.0 / rc + k * rc * rc);
                    constants[b][a] = constants[a][b];
                }
                let excluded = move |a: usize, b: usize, r: f64| {
                    let (k, c) = constants[a][b];
                    (k * r * r - c, -2.0 * k)
                };
                let pair = move |a: usize, b: usize, r: f64| {
                    let (e, f) = excluded(a, b, r);
                    (1.0 / r + e, f + 1.0 / r.powi(3))
                };
                let own = move |a: usize| -constants[a][a].1 / 2.0;
                PlainLaw {
                    charged: true,
                    pair: Box::new(pair),
                    excluded: Box::new(excluded),
                    own: Box::new(own),
                }
            }
            _ => {
                let mut alphas = [[0.0; 3]; 3];
                for (a, b) in pairs_of_types() {
                    alphas[a][b] = number(format!("{a}-{b}.alpha"));
                    alphas[b][a] = alphas[a][b];
                }
                // erfc by its continued fraction would need many terms here; the series of erf has no cancellation
                let erfc = |x: f64| {
                    let (mut term, mut sum, mut n) = (x, x, 0.0);
                    while term > 1e-18 * sum {
                        n += 1.0;
                        term *= 2.0 * x * x / (2.0 * n + 1.0);
                        sum += term;
                    }
                    1.0 - 2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
                };
                let v = move |alpha: f64, r: f64| {
                    let gauss = 2.0 * alpha / std::f64::consts::PI.sqrt() * (-alpha * alpha * r * r).exp();
                    let e = erfc(alpha * r) / r;
                    (e, -(e + gauss) / r)
                };
                let pair = move |a: usize, b: usize, r: f64| {
                    let (alpha, rc) = (alphas[a][b], cutoff(a, b).0);
                    let ((e, s), (ec, sc)) = (v(alpha, r), v(alpha, rc));
                    (e - ec - (r - rc) * sc, -(s - sc) / r)
                };
                let excluded = move |a: usize, b: usize, r: f64| {
                    let (e, f) = pair(a, b, r);
                    (e - 1.0 / r, f - 1.0 / r.powi(3))
                };
                let own = move |a: usize| {
                    let (alpha, rc) = (alphas[a][a], cutoff(a, a).0);
                    let (ec, sc) = v(alpha, rc);
                    -((ec - rc * sc) / 2.0 + alpha / std::f64::consts::PI.sqrt())
                };
                PlainLaw {
                    charged: true,
                    pair: Box::new(pair),
                    excluded: Box::new(excluded),
                    own: Box::new(own),
                }
            }
        }
    }
}

fn double_sum(law: &PlainLaw, system: &System) -> Forces {
    let n = system.points.len();
    let mut out = Forces { forces: vec![[0.0; 3]; n], energies: vec![0.0], virial: [0.0; 6] };
    let vectors = system.vectors.unwrap_or([[0.0; 3]; 3]);
    // (many images, since the vectors may be long and strongly tilted and atoms have left the cell)
    let reach = system.periodic.map(|p| if p { 9 } else { 0 });
    let mut images = Vec::new();
    for a in -reach[0]..=reach[0] {
        for b in -reach[1]..=reach[1] {
            images.extend((-reach[2]..=reach[2]).map(|c| combine([a, b, c].map(f64::from), vectors)));
        }
    }
    for i in 0..n {
        for j in 0..=i {
            let (a, b) = (system.types[i] as usize, system.types[j] as usize);
            let q = if law.charged { COULOMB * subjects::CHARGES[a] * subjects::CHARGES[b] } else { 1.0 };
            let apart = std::array::from_fn(|k| system.points[j][k] - system.points[i][k]);
            let mut vectors: Vec<[f64; 3]> = images.iter().map(|&image| plus(apart, image)).collect();
            vectors.retain(|&d| norm(d) < 0.9);
            vectors.sort_by(|&a, &b| norm(a).total_cmp(&norm(b)));
            let special = (0..3).find(|&k| {
                system.joined[k].iter().any(|&p| p == (i as u32, j as u32) || p == (j as u32, i as u32))
            });
            for (k, &d) in vectors.iter().enumerate() {
                let r = norm(d);
                if (a, b) == (2, 2) || r >= cutoff(a, b).0 || (i == j && r < 1e-9) {
                    continue;
                }
                let part = match special {
                    Some(s) if k == 0 => factors(system)[s],
                    _ => 1.0,
                };
                let ((e, f), (ex, fx)) = ((law.pair)(a, b, r), (law.excluded)(a, b, r));
                let rest = if system.remainder { 1.0 - part } else { 0.0 };
                // of an atom and its own images, half belongs to each
                let weight = if i == j { 0.5 } else { 1.0 } * q;
                out.energies[0] += weight * (part * e + rest * ex);
                let g = weight * (part * f + rest * fx);
                let g = scaled(d, g);
                for x in 0..3 {
                    out.forces[i][x] -= g[x];
                    out.forces[j][x] += g[x];
                }
                for (w, (x, y)) in out.virial.iter_mut().zip([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)])
                {
                    *w += d[x] * g[y];
                }
            }
        }
        let a = system.types[i] as usize;
        if system.remainder && a != 2 {
            let q = if law.charged { COULOMB * subjects::CHARGES[a].powi(2) } else { 0.0 };
            out.energies[0] += q * (law.own)(a);
        }
    }
    out
}

/// Two atoms that leave each other's reach, each with a neighbour of its own.
fn leaving(types: [u32; 2], r: f64, behind: f64) -> System {
    let points = vec![[0.0; 3], [r, 0.0, 0.0], [-behind, 0.0, 0.0], [r + behind, 0.0, 0.0]];
    let [a, b] = types;
    System {
        name: "leaving".into(),
        anchors: points.clone(),
        points,
        types: vec![a, b, a, b],
        masses: vec![1.0; 4],
        ..System::default()
    }
}

/// How fast energy and force go to zero at the end: the energy with one power of the distance from the end more
/// than there are continuous derivatives, the force with one less.
#[test]
fn ends_are_as_smooth_as_promised() {
    let mut report = Report::default();
    for subject in subjects().iter().filter(|s| s.has_list()) {
        let pairs: Vec<_> = match subject.listed.builder {
            Builder::Triples { .. } => (0..TYPES).map(|a| (a, a)).collect(),
            _ => pairs_of_types().filter(|&p| p != (2, 2)).collect(),
        };
        for (a, b) in pairs {
            // the end: the farthest distance where something is not smooth
            let end = *subject.spacing.corners[a * TYPES + b].last().unwrap();
            let (end, first) = match subject.listed.builder {
                Builder::Triples { .. } => {
                    let all = subject.spacing.corners[a * TYPES + a].clone();
                    (*all.last().unwrap(), all[0])
                }
                _ => (end, cutoff(a, b).1),
            };
            let width = if end - first > 1e-3 { end - first } else { 0.1 * end };
            for way in ways() {
                let at = |r: f64| {
                    let system = leaving([a as u32, b as u32], r, 0.95 * subject.spacing.least);
                    let f = Bench::new(subject, &system).forces(way);
                    (f.energy(), f.forces[1][0])
                };
                let place = format!("{}, {a}-{b}", subject.name);
                let beyond = at(end * (1.0 + 1e-12));
                let far = at(end + width);
                report.hold("nothing beyond", &place, (beyond.0 - far.0).abs() <= 1e-12 * far.0.abs());
                let promised = match subject.listed.builder {
                    Builder::Pair { ends_at_cutoff: true, .. } => 0,
                    Builder::Triples { .. } => 1,
                    // (the cut-off function has two continuous derivatives)
                    Builder::Neural { .. } => 2,
                    _ => subject.ending.smoothness(),
                };
                let gap = |part: f64| {
                    let (e, f) = at(end - part * width);
                    ((e - far.0).abs(), (f - far.1).abs())
                };
                let ((e1, f1), (e2, f2)) = (gap(0.02), gap(0.01));
                // the powers, or much smaller than they could be
                let power = |x: f64, y: f64| if x < 1e-9 { 99.0 } else { (x / y).log2() };
                let lacking = f64::from(promised + 1) - power(e1, e2);
                report.note("energy, powers lacking", &place, lacking.max(0.0), 0.25);
                if promised >= 1 {
                    let lacking = f64::from(promised) - power(f1, f2);
                    report.note("force, powers lacking", &place, lacking.max(0.0), 0.25);
                }
                if subject.ending == Ending::Truncate && promised == -1 {
                    report.hold("what is cut jumps", &place, e2 > 1e-6);
                }
            }
        }
    }
    report.finish("ends");
}

/// Atoms on top of each other, or all but: a finite result, or an error with the term and the atoms.
#[test]
fn overlapping_atoms_are_named() {
    let mut report = Report::default();
    let mut named = 0;
    for subject in subjects() {
        for cell in ["open", "triclinic"] {
            for apart in [0.0, 1e-200] {
                let mut system = (*subject.system(cell)).clone();
                // no special pairs here: they are told by the forces only
                system.joined = Default::default();
                let (i, j) = (4, 3);
                system.points[i] = plus(system.points[j], [apart, 0.0, 0.0]);
                system.anchors[i] = system.points[i];
                system.types[i] = 0;
                system.types[j] = 1;
                let mut bench = Bench::new(&subject, &system);
                for way in ways() {
                    let place = format!("{}, {}", bench.place, names(way));
                    match bench.try_forces(way) {
                        Ok(f) => {
                            report.hold(
                                "finite",
                                &place,
                                f.forces.as_flattened().iter().all(|x| x.is_finite()),
                            );
                        }
                        Err(ForceError::NotFinite { atom, term, closest }) => {
                            named += 1;
                            report.hold("the term", &place, term == subject.listed.about.name);
                            report.hold("an atom", &place, atom.is_some());
                            if subject.has_list() {
                                let c = closest.unwrap();
                                let known = c.atoms == [i, j] || c.atoms == [j, i];
                                report.hold("the atoms", &place, known && c.distance == 0.0);
                            }
                        }
                        Err(e) => report.hold(&e.to_string(), &place, false),
                    }
                }
                // other ways of asking do not panic either
                let n = system.points.len();
                let _ = bench.evaluator.parameter_slopes(&bench.cell, &bench.positions, None);
                let _ = bench.evaluator.hessian_product(&bench.cell, &bench.positions, &vec![[1.0; 3]; n]);
                bench.energy(None, None);
            }
        }
    }
    let mut bench =
        Bench::new(&subject(EnergyKind::Pair, "lennard-jones", Ending::Switch), &leaving([0, 1], 0.0, 0.4));
    for way in ways() {
        let error = bench.try_forces(way).unwrap_err();
        report.hold("a message", &error.to_string(), error.to_string().contains("atoms are 1 and 2"));
    }
    report.hold("some are not finite", "everywhere", named > 100);
    report.finish("overlapping atoms");
}

#[test]
fn no_atoms_and_one_atom() {
    let mut report = Report::default();
    for subject in subjects() {
        for vectors in [None, Some([[0.5, 0.0, 0.0], [0.1, 0.55, 0.0], [0.0, 0.2, 0.6]])] {
            for n in [0, 1] {
                let points = vec![[0.1, 0.2, 0.3]; n];
                let system = System {
                    name: format!("{n} atoms"),
                    vectors,
                    periodic: [vectors.is_some(); 3],
                    anchors: points.clone(),
                    points,
                    types: vec![0; n],
                    masses: vec![1.0; n],
                    group: (0..n as u32).collect(),
                    remainder: true,
                    ..System::default()
                };
                let mut bench = Bench::new(&subject, &system);
                for way in ways() {
                    let f = bench.forces(way);
                    report.hold("energies", &bench.place, f.energies.len() == 1 && f.forces.len() == n);
                    if !subject.is_field() {
                        report.note("no force", &bench.place, largest(f.forces.as_flattened()), 1e-10);
                    }
                }
                let v = vec![[1.0; 3]; n];
                bench.evaluator.hessian_product(&bench.cell, &bench.positions, &v).unwrap();
                bench.evaluator.parameter_slopes(&bench.cell, &bench.positions, None).unwrap();
            }
        }
    }
    report.finish("no atoms and one atom");
}

/// Cut-offs are numbers like others: setting one is as good as building a term with it.
#[test]
fn cutoffs_can_be_set() {
    let mut report = Report::default();
    for subject in subjects().iter().filter(|s| s.cuts()) {
        let system = subject.system("triclinic");
        let mut bench = Bench::new(subject, &system);
        bench.forces(Method::default());
        let table = bench.evaluator.terms()[0].parameters();
        let shorter = |(label, &x): (&String, &f64)| {
            if label.ends_with("cutoff") || label.ends_with("inner") { 0.9 * x } else { x }
        };
        let values: Vec<f64> = table.labels().iter().zip(table.values()).map(shorter).collect();
        let mut built = subject.with_shorter_cutoffs(&system, &values, 0.9);
        bench.evaluator.terms_mut()[0].set_parameters(&values);
        for way in usual() {
            report.hold("bits", &bench.place.clone(), bits(&bench.forces(way)) == bits(&built.forces(way)));
        }
    }
    report.finish("cut-offs set");
}

/// Types of atoms between which there is no interaction.
#[test]
fn terms_without_interaction() {
    let mut report = Report::default();
    for subject in subjects().iter().filter(|s| s.cuts()) {
        let system = subject.system("triclinic");
        let mut bench = Bench::new(subject, &system);
        bench.evaluator =
            evaluator(&system, vec![subject.term_with(&system, subject.numbers(), &[0.0; 9])], 0.0);
        for way in ways() {
            let f = bench.forces(way);
            let all = [f.forces.concat(), f.energies, f.virial.to_vec()].concat();
            report.note("energy, force, virial", &bench.place, largest(&all), 0.0);
        }
    }
    report.finish("terms without interaction");
}

/// The energy of an atom takes a neighbour k as soon as it is within reach of some triple (i, j, k), even when it is
/// beyond that of (i, k, k).
#[test]
fn sites_see_as_far_as_any_of_their_triples() {
    let mut report = Report::default();
    let subject = subject(EnergyKind::ManyBody, "tersoff", Ending::Truncate);
    let mut seen = 0;
    for (j, k) in [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)] {
        // atom 0 has type 0, a neighbour j, and another one k that comes from afar, 80 degrees aside
        let at = |r: f64| {
            let points = vec![[0.0; 3], [0.22, 0.0, 0.0], [0.17 * r, 0.98 * r, 0.0]];
            let types = vec![0, j, k];
            System { anchors: points.clone(), points, types, masses: vec![1.0; 3], ..System::default() }
        };
        let reach = |row: usize| {
            let table = subject.numbers();
            table.field(row, 10) + table.field(row, 11)
        };
        let (near, far) = (j as usize, k as usize);
        let (pair, triple) = (far * TYPES + far, near * TYPES + far);
        if reach(triple) < reach(pair) + 1e-3 {
            continue;
        }
        seen += 1;
        for way in ways() {
            let energy = |r: f64| {
                let length = norm([0.17, 0.98, 0.0]);
                let mut bench = Bench::new(&subject, &at(r / length));
                // with n = 1 and beta = 1 one more neighbour counts (silicon's n = 22.956 silences a single one)
                let table = bench.evaluator.terms()[0].parameters();
                let louder = |(label, &x): (&String, &f64)| {
                    if label.ends_with(".n") || label.ends_with(".beta") { 1.0 } else { x }
                };
                let values: Vec<f64> = table.labels().iter().zip(table.values()).map(louder).collect();
                bench.evaluator.terms_mut()[0].set_parameters(&values);
                bench.forces(way).energy()
            };
            let end = reach(pair);
            let (inside, outside) = (energy(end - 1e-9), energy(end + 1e-9));
            report.note("jump", &format!("{j}-{k}"), (inside - outside).abs() / inside.abs(), 1e-6);
        }
    }
    report.hold("some reach farther", "everywhere", seen > 0);
    report.finish("reach of sites");
}

/// A box of a Lennard-Jones liquid near its triple point.
fn liquid(per_side: usize) -> (Subject, System) {
    let mut random = Random(3);
    let a = 0.34 / 0.84f64.cbrt();
    let mut points = Vec::new();
    for x in 0..per_side {
        for y in 0..per_side {
            for z in 0..per_side {
                points.push(plus([x, y, z].map(|k| a * k as f64), random.vector(0.03)));
            }
        }
    }
    let n = points.len();
    let l = a * per_side as f64;
    let system = System {
        name: "liquid".into(),
        vectors: Some([[l, 0.0, 0.0], [0.0, l, 0.0], [0.0, 0.0, l]]),
        periodic: [true; 3],
        anchors: points.clone(),
        points,
        types: vec![0; n],
        masses: vec![40.0; n],
        ..System::default()
    };
    (subject(EnergyKind::Pair, "lennard-jones", Ending::Switch), system)
}

#[test]
fn the_tape_uses_its_memory_again() {
    let (subject, system) = liquid(6);
    let mut bench = Bench::new(&subject, &system);
    bench.forces(ways()[0]);
    let first = bench.evaluator.tape_bytes();
    assert!(first > 0);
    for _ in 0..5 {
        bench.forces(ways()[0]);
        assert_eq!(bench.evaluator.tape_bytes(), first);
    }
    // there and back: recordings differ a little in between, and nothing is left over
    let mut random = Random(8);
    for _ in 0..20 {
        let d: Vec<_> = (0..system.points.len()).map(|_| random.vector(0.004)).collect();
        for sign in [1.0, -1.0] {
            bench.positions.advance_all(&bench.cell, |i| scaled(d[i], sign)).unwrap();
            bench.forces(ways()[0]);
        }
        assert_eq!(bench.evaluator.tape_bytes(), first);
    }
}

/// Prints how long an evaluation takes; asserts nothing about it.
#[test]
fn times() {
    let (subject, mut system) = liquid(13);
    system.points.truncate(2000);
    system.types.truncate(2000);
    let mut bench = Bench::new(&subject, &system);
    for way in ways() {
        bench.forces(way);
        let (rounds, start) = (5, Instant::now());
        for _ in 0..rounds {
            bench.forces(way);
        }
        let time = start.elapsed().as_secs_f64() / f64::from(rounds);
        println!(
            "{} atoms of a Lennard-Jones liquid, {:9}: {:8.3} ms, {:6.1} ns an atom",
            system.points.len(),
            names(way),
            1e3 * time,
            1e9 * time / system.points.len() as f64
        );
    }
    println!("the tape has {} bytes", bench.evaluator.tape_bytes());
}
