//! Integrators, initial velocities and minimisers against exact solutions.
//!
//! `reference/analytic/*.json` hold solutions with 30 digits (their `source`: analytic, worked out with 50
//! digits from the formulas they quote; the energies of Lennard-Jones clusters are published minima).

use md::forces::{ForceError, ForceSource, Forces};
use md::integrate::minimize::{Ending, Fire, Lbfgs, Minimizer, Report, Until};
use md::integrate::velocities::MaxwellBoltzmann;
use md::integrate::{
    Integrator, Langevin, Memory, Motion, StepError, VelocityVerlet, degrees_of_freedom, kinetic_energy,
    remove_drift, temperature,
};
use md::random::{Noise, Purpose};
use md::system::{Cell, Positions, State};
use serde_json::Value;
use std::ops::ControlFlow;

// ---------------------------------------------------------------------------------------- toys

/// ½ k r² + ¼ q r⁴ for each atom, around the origin.
struct Wells {
    k: f64,
    q: f64,
}

/// −1/r for each atom.
struct Sun;

/// 4 (r⁻¹² − r⁻⁶) for all pairs.
struct Cluster;

/// A chain of all atoms: ½ x² + ¼ x⁴ in each component of the difference of neighbours, and ½ r² for each.
struct Chain;

/// (1 − x)² + 100 (y − x²)² + ½ z² for each atom.
struct Rosenbrock;

/// An energy and its gradient, written by hand: an oracle that does not use automatic differentiation.
trait Toy {
    fn energy_and_forces(&self, r: &[[f64; 3]], f: &mut [[f64; 3]]) -> f64;
}

impl Toy for Wells {
    fn energy_and_forces(&self, r: &[[f64; 3]], f: &mut [[f64; 3]]) -> f64 {
        let mut energy = 0.0;
        for (r, f) in r.iter().zip(f) {
            let r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
            energy += 0.5 * self.k * r2 + 0.25 * self.q * r2 * r2;
            *f = r.map(|x| -(self.k + self.q * r2) * x);
        }
        energy
    }
}

impl Toy for Sun {
    fn energy_and_forces(&self, r: &[[f64; 3]], f: &mut [[f64; 3]]) -> f64 {
        let mut energy = 0.0;
        for (r, f) in r.iter().zip(f) {
            let r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
            energy -= 1.0 / r2.sqrt();
            *f = r.map(|x| -x / (r2 * r2.sqrt()));
        }
        energy
    }
}

impl Toy for Cluster {
    fn energy_and_forces(&self, r: &[[f64; 3]], f: &mut [[f64; 3]]) -> f64 {
        let mut energy = 0.0;
        for i in 0..r.len() {
            for j in 0..i {
                let d = [0, 1, 2].map(|k| r[i][k] - r[j][k]);
                let s2 = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                let s6 = s2 * s2 * s2;
                energy += 4.0 * (s6 * s6 - s6);
                for k in 0..3 {
                    let force = 24.0 * (2.0 * s6 * s6 - s6) * s2 * d[k];
                    f[i][k] += force;
                    f[j][k] -= force;
                }
            }
        }
        energy
    }
}

impl Toy for Chain {
    fn energy_and_forces(&self, r: &[[f64; 3]], f: &mut [[f64; 3]]) -> f64 {
        let mut energy = Wells { k: 1.0, q: 0.0 }.energy_and_forces(r, f);
        for i in 1..r.len() {
            for k in 0..3 {
                let x = r[i][k] - r[i - 1][k];
                energy += 0.5 * x * x + 0.25 * x * x * x * x;
                f[i][k] -= x + x * x * x;
                f[i - 1][k] += x + x * x * x;
            }
        }
        energy
    }
}

impl Toy for Rosenbrock {
    fn energy_and_forces(&self, r: &[[f64; 3]], f: &mut [[f64; 3]]) -> f64 {
        let mut energy = 0.0;
        for (&[x, y, z], f) in r.iter().zip(f) {
            let b = y - x * x;
            energy += (1.0 - x) * (1.0 - x) + 100.0 * b * b + 0.5 * z * z;
            *f = [2.0 * (1.0 - x) + 400.0 * x * b, -200.0 * b, -z];
        }
        energy
    }
}

/// A toy as a source of forces, with a count of the evaluations.
struct Source<T> {
    toy: T,
    evaluations: u64,
}

impl<T: Toy> ForceSource for Source<T> {
    fn evaluate(&mut self, cell: &Cell, positions: &Positions, out: &mut Forces) -> Result<(), ForceError> {
        self.evaluations += 1;
        let r: Vec<_> = (0..positions.len()).map(|i| positions.cartesian(cell, i)).collect();
        out.forces.clear();
        out.forces.resize(r.len(), [0.0; 3]);
        out.energies = vec![self.toy.energy_and_forces(&r, &mut out.forces)];
        match out.forces.iter().position(|f| !f.iter().all(|x| x.is_finite())) {
            atom @ Some(_) => Err(ForceError::NotFinite { atom, term: "toy".into(), closest: None }),
            None => Ok(()),
        }
    }
}

/// All that a simulation of a toy needs.
struct Toys<T> {
    state: State,
    masses: Vec<f64>,
    source: Source<T>,
    forces: Forces,
}

impl<T: Toy> Toys<T> {
    /// In an open cell with a frame of 4 × `extent`, so the grid is 2⁻⁵⁰ × `extent` (a power of two).
    fn new(toy: T, extent: f64, masses: Vec<f64>, r: &[[f64; 3]], v: &[[f64; 3]]) -> Toys<T> {
        let cell = Cell::open(extent).unwrap();
        let positions = Positions::from_cartesian(&cell, r).unwrap();
        let state = State { cell, positions, velocities: v.to_vec(), step: 0, time: 0.0 };
        Toys { state, masses, source: Source { toy, evaluations: 0 }, forces: Forces::default() }
    }

    fn motion(&mut self) -> Motion<'_> {
        Motion::start(&mut self.state, &self.masses, &mut self.source, &mut self.forces).unwrap()
    }

    fn run(&mut self, integrator: &mut dyn Integrator, steps: u64) {
        let mut motion = self.motion();
        for _ in 0..steps {
            integrator.step(&mut motion).unwrap();
        }
    }

    fn r(&self, i: usize) -> [f64; 3] {
        self.state.positions.cartesian(&self.state.cell, i)
    }

    fn total(&self) -> f64 {
        self.forces.energy() + kinetic_energy(&self.masses, &self.state.velocities)
    }

    fn minimize(&mut self, minimizer: &mut dyn Minimizer, force: f64, steps: u64) -> Report {
        let mut motion = self.motion();
        minimizer.minimize(&mut motion, &Until { force, steps }, &mut |_| ControlFlow::Continue(())).unwrap()
    }
}

fn reference(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn integrators() -> Value {
    reference(include_str!("reference/analytic/integrators.json"))
}

fn statistical() -> Value {
    reference(include_str!("reference/analytic/statistical.json"))
}

/// A number, which the references write as such or as a string with all digits.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

/// Mean and standard error of independent values.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Asserts that independent values have this mean, within 4.5 standard errors of at most `error`.
fn assert_mean(values: &[f64], expected: f64, error: f64, what: &str) {
    let (found, sigma) = mean(values);
    println!("{what}: {found:.6} ± {sigma:.6}, exactly {expected:.6}");
    assert!(sigma < error, "{what}: a standard error of {sigma}");
    assert!((found - expected).abs() < 4.5 * sigma, "{what}: {found} ± {sigma}, not {expected}");
}

// ---------------------------------------------------------------------------- velocity Verlet

/// Every case of integrators.json is used by a test here, or cannot be and says why.
#[test]
fn every_reference_case_is_accounted_for() {
    let known = [
        ("velocity_verlet_harmonic", "harmonic_motion_follows_the_exact_discrete_trajectory"),
        ("kepler", "kepler_orbits_converge_with_the_square_of_the_time_step"),
        ("rigid_rotor", "none: needs RATTLE, and there are no constraints in this room yet"),
        ("langevin_harmonic", "langevin_has_the_variances_of_baoab (OBABO, ABOBA, BA½OA½ are not offered)"),
        ("tolerance", "the limits of the first two"),
    ];
    let head = ["schema", "id", "title", "source"];
    for name in integrators().as_object().unwrap().keys() {
        assert!(head.contains(&&**name) || known.iter().any(|(case, _)| case == name), "{name}");
    }
}

#[test]
fn harmonic_motion_follows_the_exact_discrete_trajectory() {
    let all = integrators();
    let limits = &all["tolerance"];
    for case in all["velocity_verlet_harmonic"]["cases"].as_array().unwrap() {
        let [k, m, dt, x, v] = ["k", "m", "dt", "x0", "v0"].map(|name| number(&case[name]));
        // Along a slanted direction, so that all three axes are used; the grid is 2⁻⁵².
        let axis = [2.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0];
        let start = |x: f64| [axis.map(|a| a * x)];
        let mut toys = Toys::new(Wells { k, q: 0.0 }, 0.25, vec![m], &start(x), &start(v));
        let mut verlet = VelocityVerlet::new(dt).unwrap();
        let omega = number(&case["omega"]);
        let mut worst: f64 = 0.0;
        for snapshot in case["snapshots"].as_array().unwrap() {
            let step = snapshot["step"].as_u64().unwrap();
            let todo = step - toys.state.step;
            toys.run(&mut verlet, todo);
            let limit = number(match step {
                0..=100 => &limits["step_1_to_100_abs"],
                101..=1000 => &limits["step_1000_abs"],
                _ => &limits["step_100000_abs"],
            });
            let (r, w) = (toys.r(0), toys.state.velocities[0]);
            let mut off: f64 = 0.0;
            for a in 0..3 {
                off = off.max((r[a] - axis[a] * number(&snapshot["x"])).abs());
                off = off.max((w[a] - axis[a] * number(&snapshot["v"])).abs());
            }
            println!("step {step}: {off:.1e} off");
            assert!(off < limit, "step {step}: {off}");
            let r2: f64 = r.iter().map(|x| x * x).sum();
            let shadow = toys.total() - 0.5 * k * r2 * 0.25 * (omega * dt).powi(2);
            worst = worst.max((shadow - number(&case["shadow_invariant"])).abs());
        }
        assert!(worst < 1e-12, "shadow invariant {worst}");
        assert!((toys.state.time - 100_000.0 * dt).abs() < 1e-6);
        // One evaluation a step, and one at each start.
        assert_eq!(toys.source.evaluations, 100_000 + 6);
    }
}

#[test]
fn kepler_orbits_converge_with_the_square_of_the_time_step() {
    let all = integrators();
    for case in all["kepler"]["cases"].as_array().unwrap() {
        let [x, y, vx, vy] = ["x", "y", "vx", "vy"].map(|name| number(&case["start"][name]));
        for time in case["times"].as_array().unwrap() {
            let t = number(&time["t"]);
            let error = |steps: f64| {
                let mut toys = Toys::new(Sun, 1.0, vec![1.0], &[[x, y, 0.0]], &[[vx, vy, 0.0]]);
                toys.run(&mut VelocityVerlet::new(t / steps).unwrap(), steps as u64);
                let (r, v) = (toys.r(0), toys.state.velocities[0]);
                let found = [r[0], r[1], v[0], v[1]];
                let off = ["x", "y", "vx", "vy"].iter().zip(found).map(|(name, x)| x - number(&time[name]));
                // Kicks are along r, so areas are swept evenly but for rounding.
                let l = r[0] * v[1] - r[1] * v[0];
                assert!((l - number(&case["angular_momentum"])).abs() < 1e-12);
                assert!((toys.total() - number(&case["energy"])).abs() < 1e-3);
                off.map(|x| x * x).sum::<f64>().sqrt()
            };
            let steps = (t * 2000.0).ceil();
            let errors = [error(steps), error(2.0 * steps), error(4.0 * steps)];
            for pair in errors.windows(2) {
                let ratio = pair[0] / pair[1];
                println!("t = {t}: {:.2e} → {:.2e}, ratio {ratio:.3}", pair[0], pair[1]);
                assert!((3.9..4.1).contains(&ratio), "{ratio}");
            }
        }
    }
}

#[test]
fn a_dimer_vibrates_with_its_force_constant() {
    let all = statistical();
    let (r, k) = (number(&all["dimer"]["r_min"]), number(&all["dimer"]["force_constant_at_min"]));
    let (m, dt, amplitude) = (2.0, 0.01, 1e-7);
    let omega = (2.0 * k / m).sqrt();
    let discrete = 2.0 / dt * (0.5 * omega * dt).asin();
    let start = [[0.0; 3], [0.0, 0.0, r + amplitude]];
    let mut toys = Toys::new(Cluster, 0.5, vec![m; 2], &start, &[[0.0; 3]; 2]);
    let mut verlet = VelocityVerlet::new(dt).unwrap();
    for _ in 0..20 {
        toys.run(&mut verlet, 7);
        let stretch = toys.r(1)[2] - toys.r(0)[2] - r;
        let expected = amplitude * (discrete * dt * toys.state.step as f64).cos();
        assert!((stretch - expected).abs() < 1e-5 * amplitude, "{stretch} {expected}");
    }
}

/// Thirteen atoms near the minimum of the cluster, with velocities of temperature 0.1 and no momentum.
fn warm_cluster() -> Toys<Cluster> {
    let masses: Vec<f64> = (0..13).map(|i| 1.0 + 0.1 * f64::from(i)).collect();
    let draw = MaxwellBoltzmann {
        temperature: 0.1,
        boltzmann: 1.0,
        seed: 3,
        remove_drift: true,
        scale_to: Some(degrees_of_freedom(13, 0, true)),
    };
    let v = draw.draw(&masses).unwrap();
    Toys::new(Cluster, 4.0, masses, &scaled(&icosahedron(), 1.08), &v)
}

#[test]
fn the_energy_of_an_anharmonic_system_fluctuates_with_the_square_of_the_time_step() {
    let fluctuation = |dt: f64| {
        let mut toys = warm_cluster();
        let mut verlet = VelocityVerlet::new(dt).unwrap();
        toys.run(&mut verlet, 0);
        let start = toys.total();
        let (mut sum, mut n) = (0.0, 0.0);
        // At the same times for every time step.
        for _ in 0..200 {
            toys.run(&mut verlet, (0.02 / dt).round() as u64);
            sum += (toys.total() - start).powi(2);
            n += 1.0;
        }
        (sum / n).sqrt()
    };
    let all = [0.01, 0.005, 0.0025, 0.00125].map(fluctuation);
    for pair in all.windows(2) {
        println!("{:.3e} → {:.3e}: {:.3}", pair[0], pair[1], pair[0] / pair[1]);
        assert!((3.8..4.2).contains(&(pair[0] / pair[1])));
    }
}

#[test]
fn velocity_verlet_is_reversible_and_conserves_momentum() {
    let mut toys = warm_cluster();
    let mut verlet = VelocityVerlet::new(0.005).unwrap();
    let start = toys.state.clone();
    let momentum = |toys: &Toys<Cluster>| {
        let mut p = [0.0; 3];
        for (v, m) in toys.state.velocities.iter().zip(&toys.masses) {
            p = [0, 1, 2].map(|k| p[k] + m * v[k]);
        }
        p
    };
    toys.run(&mut verlet, 1000);
    assert!(momentum(&toys).iter().all(|p| p.abs() < 1e-12));
    assert!((0..13).any(|i| (toys.r(i)[0] - start.positions.cartesian(&start.cell, i)[0]).abs() > 0.05));
    toys.state.velocities.iter_mut().flatten().for_each(|v| *v = -*v);
    toys.run(&mut verlet, 1000);
    let mut worst: f64 = 0.0;
    for i in 0..13 {
        for k in 0..3 {
            worst = worst.max((toys.r(i)[k] - start.positions.cartesian(&start.cell, i)[k]).abs());
            worst = worst.max((toys.state.velocities[i][k] + start.velocities[i][k]).abs());
        }
    }
    println!("back to {worst:.1e}");
    assert!(worst < 1e-10, "{worst}");
}

#[test]
fn what_cannot_be_advanced_says_why() {
    let two = [[0.0; 3], [1.0, 0.0, 0.0]];
    let well = || Wells { k: 1.0, q: 0.0 };
    let mut verlet = VelocityVerlet::new(0.01).unwrap();
    let mut toys = Toys::new(well(), 1.0, vec![1.0; 2], &two, &[[0.0; 3], [0.0, 1e9, 0.0]]);
    let error = verlet.step(&mut toys.motion()).unwrap_err();
    assert_eq!(error.to_string(), "step 1: atom 1 has left all bounds along cell axis b");
    let mut toys = Toys::new(well(), 1.0, vec![1.0; 2], &two, &[[0.0; 3], [0.0, f64::NAN, 0.0]]);
    assert!(
        matches!(verlet.step(&mut toys.motion()), Err(StepError::Escaped { step: 1, escaped }) if escaped.atom == 1)
    );
    let mut toys = Toys::new(Cluster, 1.0, vec![1.0; 2], &[[0.0; 3]; 2], &two);
    let Toys { state, masses, source, forces } = &mut toys;
    let error = Motion::start(state, masses, source, forces).err().unwrap();
    assert!(matches!(
        error,
        StepError::Forces { step: 0, error: ForceError::NotFinite { atom: Some(0), .. } }
    ));
    for (masses, velocities) in [(vec![1.0], 2), (vec![1.0; 2], 3), (vec![1.0, 0.0], 2), (vec![-1.0, 1.0], 2)]
    {
        let mut toys = Toys::new(well(), 1.0, masses, &two, &vec![[0.0; 3]; velocities]);
        let Toys { state, masses, source, forces } = &mut toys;
        assert!(Motion::start(state, masses, source, forces).is_err());
    }
    // Lists that change their length on the way.
    let mut toys = Toys::new(well(), 1.0, vec![1.0; 2], &two, &two);
    let mut motion = toys.motion();
    motion.state.velocities.pop();
    for integrator in [&mut verlet as &mut dyn Integrator, &mut langevin(0.01, 1.0, 1.0, 1)] {
        assert!(matches!(integrator.step(&mut motion), Err(StepError::Lengths { what: "velocities", .. })));
    }
    assert!(VelocityVerlet::new(0.0).is_err() && VelocityVerlet::new(f64::INFINITY).is_err());
}

// ------------------------------------------------------------------------------------ Langevin

fn langevin(dt: f64, friction: f64, temperature: f64, seed: u64) -> Langevin {
    Langevin::new(dt, friction, temperature, 1.0, seed).unwrap()
}

/// Positions or velocities of `atoms` atoms, normal with this variance.
fn normal(atoms: usize, seed: u64, variance: f64) -> Vec<[f64; 3]> {
    let noise = Noise::new(seed, Purpose::Test);
    let scale = variance.sqrt();
    (0..atoms).map(|i| noise.normals(0, i)).map(|[x, y, z, _]| [x, y, z].map(|x| x * scale)).collect()
}

#[test]
fn langevin_has_the_variances_of_baoab() {
    let form = integrators()["langevin_harmonic"]["BAOAB"].clone();
    assert_eq!((form["x"].as_str().unwrap(), form["v"].as_str().unwrap()), ("1", "1-z^2/4"));
    let (atoms, kt) = (1500, 0.7);
    for (k, m, dt, friction) in [(1.0, 1.0, 1.0, 1.0), (4.0, 0.5, 0.5, 0.3), (2.0, 3.0, 0.2, 8.0)] {
        let z2: f64 = k / m * dt * dt;
        let (x, v) = (kt / k, kt / m * (1.0 - 0.25 * z2));
        let mut toys =
            Toys::new(Wells { k, q: 0.0 }, 1.0, vec![m; atoms], &normal(atoms, 1, x), &normal(atoms, 2, v));
        let mut integrator = langevin(dt, friction, kt, 5);
        // Each component of each atom is a series of its own; series are independent.
        let mut sums = vec![[0.0; 2]; 3 * atoms];
        toys.run(&mut integrator, 100);
        let (steps, every) = (2000, 4);
        for _ in 0..steps / every {
            toys.run(&mut integrator, every);
            for i in 0..atoms {
                let (r, v) = (toys.r(i), toys.state.velocities[i]);
                for a in 0..3 {
                    sums[3 * i + a][0] += r[a] * r[a];
                    sums[3 * i + a][1] += v[a] * v[a];
                }
            }
        }
        let n = (steps / every) as f64;
        let of = |which: usize, scale: f64| sums.iter().map(|s| s[which] / n * scale).collect::<Vec<_>>();
        let what = format!("z = {:.3}, γ dt = {:.2}", z2.sqrt(), friction * dt);
        assert_mean(&of(0, k / kt), 1.0, 0.004, &format!("{what}: k<x²>/kT"));
        assert_mean(&of(1, m / kt), 1.0 - 0.25 * z2, 0.004, &format!("{what}: m<v²>/kT"));
    }
}

#[test]
fn free_particles_diffuse() {
    let (atoms, m, kt, friction, dt, steps) = (4000, 2.0, 1.5, 0.8, 0.1, 400);
    let v0 = normal(atoms, 3, kt / m);
    let mut toys = Toys::new(Wells { k: 0.0, q: 0.0 }, 10.0, vec![m; atoms], &vec![[0.0; 3]; atoms], &v0);
    let mut integrator = langevin(dt, friction, kt, 6);
    let start = kinetic_energy(&toys.masses, &v0);
    let keep = f64::exp(-friction * dt);
    let flat = |v: &[[f64; 3]]| v.iter().flatten().copied().collect::<Vec<f64>>();
    let mut done = 0;
    for lag in [1, 5, 20] {
        toys.run(&mut integrator, lag - done);
        done = lag;
        let product: Vec<f64> =
            flat(&toys.state.velocities).iter().zip(flat(&v0)).map(|(a, b)| a * b).collect();
        let expected = kt / m * f64::exp(-friction * lag as f64 * dt);
        assert_mean(&product, expected, 0.01, &format!("<v(0) v({lag} dt)>"));
    }
    toys.run(&mut integrator, steps - done);
    let squares: Vec<f64> = flat(&toys.state.velocities).iter().map(|v| v * v * m / kt).collect();
    assert_mean(&squares, 1.0, 0.02, "m<v²>/kT");
    // Displacements are trapezoids of an autoregressive series: their variance by adding up.
    let weight = |k: u64| if k == 0 || k == steps { 0.5 * dt } else { dt };
    let mut expected = 0.0;
    for i in 0..=steps {
        for j in 0..=steps {
            expected += weight(i) * weight(j) * kt / m * keep.powi((i as i32 - j as i32).abs());
        }
    }
    // Which is 2 D t with D = kT/(m γ) for long times and short steps.
    let t = steps as f64 * dt;
    assert!((expected / (2.0 * kt / (m * friction) * (t - 1.0 / friction)) - 1.0).abs() < 0.002);
    let msd: Vec<f64> = (0..atoms).flat_map(|i| toys.r(i)).map(|x| x * x).collect();
    assert_mean(&msd, expected, 0.02 * expected, "mean square displacement");
    // Without forces all energy comes from the bath.
    let drift = kinetic_energy(&toys.masses, &toys.state.velocities) + integrator.reservoir() - start;
    assert!(drift.abs() < 1e-9, "{drift}");
}

#[test]
fn langevin_conserves_the_energy_less_the_heat() {
    // The root mean square over times and independent runs.
    let drift = |dt: f64| {
        let (atoms, runs, times, mut sum) = (10, 60, 20, 0.0);
        for seed in 0..runs {
            let (r, v) = (normal(atoms, 100 + seed, 0.5), normal(atoms, 200 + seed, 1.0));
            let mut toys = Toys::new(Wells { k: 1.0, q: 0.3 }, 10.0, vec![1.0; atoms], &r, &v);
            let mut integrator = langevin(dt, 0.5, 1.0, seed);
            toys.run(&mut integrator, 0);
            let start = toys.total();
            for _ in 0..times {
                toys.run(&mut integrator, (0.4 / dt).round() as u64);
                sum += (toys.total() + integrator.reservoir() - start).powi(2);
            }
            assert!(integrator.heat().abs() > 0.01);
        }
        (sum / (runs * times) as f64).sqrt()
    };
    let all = [0.1, 0.05, 0.025].map(drift);
    println!("{all:?}");
    for pair in all.windows(2) {
        assert!((3.0..5.0).contains(&(pair[0] / pair[1])), "{all:?}");
    }
}

#[test]
fn without_friction_langevin_is_newton() {
    let (mut a, mut b) = (warm_cluster(), warm_cluster());
    a.run(&mut VelocityVerlet::new(0.005).unwrap(), 100);
    let mut free = langevin(0.005, 0.0, 1.0, 1);
    b.run(&mut free, 100);
    assert_eq!(free.heat(), 0.0);
    for i in 0..13 {
        for k in 0..3 {
            assert!((a.r(i)[k] - b.r(i)[k]).abs() < 1e-12);
        }
    }
}

// ---------------------------------------------------------------------- threads and restarts

fn everyone() -> [Box<dyn Integrator>; 2] {
    [Box::new(VelocityVerlet::new(0.02).unwrap()), Box::new(langevin(0.02, 0.7, 0.4, 12))]
}

fn chain(atoms: usize) -> Toys<Chain> {
    let masses: Vec<f64> = (0..atoms).map(|i| 1.0 + (i % 3) as f64).collect();
    Toys::new(Chain, 4.0, masses, &normal(atoms, 21, 0.3), &normal(atoms, 22, 0.5))
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let atoms = 9000;
    for which in 0..2 {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (mut toys, mut all) = (chain(atoms), everyone());
                toys.run(&mut *all[which], 20);
                (toys.state.clone(), all[which].memory(), toys.total().to_bits())
            })
        };
        let one = run(1);
        for threads in [2, 3, 7] {
            assert!(run(threads) == one, "{threads} threads");
        }
    }
    let minimum = |threads: usize, lbfgs: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut toys = chain(atoms);
            let report = match lbfgs {
                true => toys.minimize(&mut Lbfgs::new(8, 0.1).unwrap(), 1e-9, 15),
                false => toys.minimize(&mut Fire::new(0.05, 0.1).unwrap(), 1e-9, 40),
            };
            (toys.state.clone(), report)
        })
    };
    for lbfgs in [false, true] {
        let one = minimum(1, lbfgs);
        for threads in [2, 3, 7] {
            assert!(minimum(threads, lbfgs) == one, "{threads} threads");
        }
    }
}

#[test]
fn restarts_go_on_bit_by_bit() {
    for which in 0..2 {
        let (mut through, mut a) = (chain(50), everyone());
        through.run(&mut *a[which], 70);

        let (mut broken, mut b) = (chain(50), everyone());
        broken.run(&mut *b[which], 40);
        let stored = postcard::to_stdvec(&(&broken.state, &b[which].memory())).unwrap();
        drop((broken, b));

        let (state, memory): (State, Memory) = postcard::from_bytes(&stored).unwrap();
        let (mut again, mut c) = (chain(50), everyone());
        again.state = state;
        c[which].recall(&memory).unwrap();
        again.run(&mut *c[which], 30);
        assert_eq!(again.state, through.state);
        assert_eq!(c[which].memory(), a[which].memory());
        assert_eq!(again.total().to_bits(), through.total().to_bits());
        assert_eq!(again.state.step, 70);

        // The memory of another one is refused.
        let error = c[1 - which].recall(&memory).unwrap_err();
        assert!(error.to_string().contains(c[which].name()), "{error}");
    }
    let [verlet, langevin] = everyone();
    assert!(verlet.conserves_momentum() && !langevin.conserves_momentum());
    assert_eq!((verlet.time_step(), langevin.time_step()), (0.02, 0.02));
}

// --------------------------------------------------------------------- Maxwell and Boltzmann

#[test]
fn velocities_have_the_moments_of_maxwell_and_boltzmann() {
    let all = statistical();
    let (case, boltzmann) = (&all["maxwell_boltzmann"], number(&all["constants"]["kB_kJ_mol_K"]));
    let (mass, t) = (number(&case["mass"]), number(&case["T_K"]));
    let atoms = 100_000;
    let draw = MaxwellBoltzmann { temperature: t, boltzmann, seed: 17, remove_drift: false, scale_to: None };
    let v = draw.draw(&vec![mass; atoms]).unwrap();
    let speeds2: Vec<f64> = v.iter().map(|[x, y, z]| x * x + y * y + z * z).collect();
    let speeds: Vec<f64> = speeds2.iter().map(|s| s.sqrt()).collect();
    let components: Vec<f64> = v.iter().flatten().map(|x| x * x).collect();
    assert_mean(&components, number(&case["component_variance"]), 3e-4, "component variance");
    assert_mean(&speeds, number(&case["mean_speed_nm_ps"]), 1e-3, "mean speed");
    assert_mean(&speeds2, number(&case["rms_speed_nm_ps"]).powi(2), 1e-3, "mean square speed");
    // The density of the speed is flat at its maximum: as many in a narrow interval above as below.
    let top = number(&case["most_probable_nm_ps"]);
    let within = |a: f64, b: f64| speeds.iter().filter(|s| (a..b).contains(*s)).count() as f64;
    let (below, above) = (within(0.95 * top, top), within(top, 1.05 * top));
    assert!((below - above).abs() < 4.5 * (below + above).sqrt(), "{below} {above}");
}

#[test]
fn kinetic_energies_have_a_gamma_distribution() {
    // Mean f kT/2 and variance f (kT)²/2 with f = 3N − 3 (statistical.json, maxwell_boltzmann).
    let masses: Vec<f64> = (0..20).map(|i| 1.0 + (i % 5) as f64).collect();
    let (kt, f) = (1.3, degrees_of_freedom(20, 0, true));
    assert_eq!(f, 57);
    let energies: Vec<f64> = (0..20_000)
        .map(|seed| {
            let draw = MaxwellBoltzmann {
                temperature: kt,
                boltzmann: 1.0,
                seed,
                remove_drift: true,
                scale_to: None,
            };
            kinetic_energy(&masses, &draw.draw(&masses).unwrap())
        })
        .collect();
    let expected = 0.5 * f as f64 * kt;
    assert_mean(&energies, expected, 0.1, "kinetic energy");
    let squares: Vec<f64> = energies.iter().map(|k| (k - expected).powi(2)).collect();
    assert_mean(&squares, 0.5 * f as f64 * kt * kt, 1.0, "its variance");
}

#[test]
fn an_ideal_gas_has_its_pressure() {
    let all = statistical();
    let (gas, boltzmann) = (&all["ideal_gas"], number(&all["constants"]["kB_kJ_mol_K"]));
    let (n, t) = (gas["N"].as_u64().unwrap() as usize, number(&gas["T_K"]));
    let (volume, expected) = (number(&gas["volume_nm3"]), number(&gas["pressure_Pa"]));
    // k_B in J/K (CODATA 2018) over k_B in kJ/mol/K: a kJ/mol in J; a nm³ is 1e-27 m³.
    let pascal = 1.380_649e-23 / boltzmann / 1e-27;
    let masses = vec![39.948; n];
    for (drift, factor) in [(false, 1.0), (true, (n as f64 - 1.0) / n as f64)] {
        let f = degrees_of_freedom(n, 0, drift);
        let draw =
            MaxwellBoltzmann { temperature: t, boltzmann, seed: 2, remove_drift: drift, scale_to: Some(f) };
        let mut v = draw.draw(&masses).unwrap();
        let kinetic = kinetic_energy(&masses, &v);
        assert!((temperature(kinetic, f, boltzmann).unwrap() - t).abs() < 1e-10);
        let pressure = 2.0 * kinetic / (3.0 * volume) * pascal;
        assert!((pressure / (expected * factor) - 1.0).abs() < 1e-9, "{pressure}");
        assert_eq!(remove_drift(&masses, &mut v) < 1e-20, drift);
    }
}

// ---------------------------------------------------------------------------------- minimisers

fn scaled(points: &[[f64; 3]], by: f64) -> Vec<[f64; 3]> {
    points.iter().map(|p| p.map(|x| x * by)).collect()
}

/// The twelve corners of an icosahedron at distance 1 from the centre, which comes first.
fn icosahedron() -> Vec<[f64; 3]> {
    let golden = 0.5 * (1.0 + 5f64.sqrt());
    let mut points = vec![[0.0; 3]];
    for a in [-1.0, 1.0] {
        for b in [-golden, golden] {
            points.extend([[0.0, a, b], [a, b, 0.0], [b, 0.0, a]]);
        }
    }
    scaled(&points, 1.0 / (1.0 + golden * golden).sqrt())
}

/// The Mackay icosahedron of 55: the small one, its corners at twice the distance, and between those.
fn mackay() -> Vec<[f64; 3]> {
    let small = icosahedron();
    let mut points = small.clone();
    points.extend(scaled(&small[1..], 2.0));
    for i in 1..13 {
        for j in 1..i {
            let d2: f64 = (0..3).map(|k| (small[i][k] - small[j][k]).powi(2)).sum();
            if d2 < 1.2 {
                points.push([0, 1, 2].map(|k| small[i][k] + small[j][k]));
            }
        }
    }
    points
}

/// Two icosahedra through each other: an axis of four, with three staggered rings of five around.
fn double_icosahedron() -> Vec<[f64; 3]> {
    let mut points: Vec<[f64; 3]> = (0..4).map(|k| [0.0, 0.0, 1.5 - f64::from(k)]).collect();
    for ring in 0..3 {
        for k in 0..5 {
            let angle = std::f64::consts::TAU / 5.0 * (f64::from(k) + 0.5 * f64::from(ring % 2));
            points.push([0.9 * angle.cos(), 0.9 * angle.sin(), f64::from(ring) - 1.0]);
        }
    }
    points
}

/// The 38 points of the face-centred cubic lattice that are nearest to an octahedral hole.
fn truncated_octahedron() -> Vec<[f64; 3]> {
    let mut points = Vec::new();
    for x in -3..=3i32 {
        for y in -3..=3i32 {
            for z in -3..=3i32 {
                // Points with an odd sum are the lattice around a hole at the origin; 6 + 8 + 24 of them.
                let r2 = x * x + y * y + z * z;
                if (x + y + z).rem_euclid(2) == 1 && r2 <= 5 {
                    points.push([x, y, z].map(f64::from));
                }
            }
        }
    }
    scaled(&points, 0.5f64.sqrt())
}

fn both() -> [Box<dyn Minimizer>; 2] {
    [Box::new(Fire::new(0.01, 0.1).unwrap()), Box::new(Lbfgs::new(10, 0.1).unwrap())]
}

#[test]
fn lennard_jones_clusters_have_their_published_energies() {
    let all = statistical();
    let clusters = &all["lj_clusters"];
    let tolerance = number(&clusters["tolerance"]);
    for (n, energy) in clusters["energies"].as_object().unwrap() {
        let (n, energy): (usize, f64) = (n.parse().unwrap(), number(energy));
        // Large ones from their known shapes, crudely built; small ones from anywhere.
        let starts: Vec<Vec<[f64; 3]>> = match n {
            13 => vec![scaled(&icosahedron(), 1.2)],
            19 => vec![scaled(&double_icosahedron(), 1.1)],
            38 => vec![scaled(&truncated_octahedron(), 1.1)],
            55 => vec![scaled(&mackay(), 1.2)],
            6 => {
                vec![[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|x| [x, x.map(|x| -x)]).concat()]
            }
            2..=5 | 7 => (0..40).map(|seed| normal(n, 100 + seed, 0.5)).collect(),
            _ => panic!("a cluster of {n} needs a start"),
        };
        for mut minimizer in both() {
            let (mut lowest, mut evaluations) = (f64::INFINITY, 0);
            for start in &starts {
                assert_eq!(start.len(), n);
                let mut toys = Toys::new(Cluster, 10.0, vec![1.0; n], start, &vec![[0.0; 3]; n]);
                let report = toys.minimize(&mut *minimizer, 1e-7, 20_000);
                assert!(report.converged(), "{} of {n} atoms: {report:?}", minimizer.name());
                assert!(report.last.force < 1e-7 && report.last.energy < report.initial.energy);
                assert_eq!(toys.source.evaluations, report.last.evaluations + 1);
                assert_eq!(report.last.energy, toys.forces.energy());
                lowest = lowest.min(report.last.energy);
                evaluations += report.last.evaluations;
            }
            println!(
                "{n:2} atoms, {}: {lowest:.6}, {} evaluations",
                minimizer.name(),
                evaluations / starts.len() as u64
            );
            assert!((lowest - energy).abs() < tolerance, "{n}: {lowest}, not {energy}");
        }
    }
    let dimer = &all["dimer"];
    let mut toys = Toys::new(Cluster, 1.0, vec![1.0; 2], &[[0.0; 3], [1.0, 0.5, 0.0]], &[[0.0; 3]; 2]);
    toys.minimize(&mut Lbfgs::new(5, 0.1).unwrap(), 1e-12, 100);
    let (a, b) = (toys.r(0), toys.r(1));
    let r: f64 = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
    assert!((r - number(&dimer["r_min"])).abs() < 1e-13, "{r}");
}

#[test]
fn minimisers_find_the_end_of_the_valley() {
    for mut minimizer in both() {
        // The classic start and one in the opposite quarter.
        let start = [[-1.2, 1.0, 0.7], [2.0, -3.0, -1.0]];
        let mut toys = Toys::new(Rosenbrock, 10.0, vec![1.0; 2], &start, &[[0.0; 3]; 2]);
        let report = toys.minimize(&mut *minimizer, 1e-9, 50_000);
        println!("{}: {report:?}", minimizer.name());
        assert!(report.converged());
        assert!((report.initial.energy - (24.2 + 0.245 + 1.0 + 4900.0 + 0.5)).abs() < 1e-10);
        for i in 0..2 {
            let [x, y, z] = toys.r(i);
            assert!((x - 1.0).abs() < 1e-8 && (y - 1.0).abs() < 1e-8 && z.abs() < 1e-8);
        }
    }
}

#[test]
fn lbfgs_never_goes_up() {
    let mut toys = Toys::new(Cluster, 10.0, vec![1.0; 30], &normal(30, 5, 1.5), &[[0.0; 3]; 30]);
    let (mut lowest, mut seen) = (f64::INFINITY, 0);
    let mut watch = |now: &md::integrate::minimize::Progress| {
        assert!(now.energy <= lowest + 1e-13 * now.energy.abs(), "{} after {lowest}", now.energy);
        assert_eq!(now.step, seen);
        (lowest, seen) = (lowest.min(now.energy), seen + 1);
        ControlFlow::Continue(())
    };
    let until = Until { force: 1e-8, steps: 5000 };
    let report = Lbfgs::new(10, 0.1).unwrap().minimize(&mut toys.motion(), &until, &mut watch).unwrap();
    assert!(report.converged(), "{report:?}");
}

#[test]
fn atoms_upon_each_other_are_pushed_apart() {
    // 10⁻⁶ apart: energies of 10⁷², forces of 10⁷⁹.
    for spread in [1e-6, 1e-13] {
        for mut minimizer in both() {
            let n = 20;
            let mut toys =
                Toys::new(Cluster, 1.0, vec![1.0; n], &normal(n, 6, spread * spread), &vec![[0.0; 3]; n]);
            let until = Until { force: 1e-4, steps: 20_000 };
            let mut longest: f64 = 0.0;
            let report = toys.minimize(&mut *minimizer, until.force, until.steps);
            for i in 0..n {
                longest = longest.max(toys.r(i).iter().fold(0.0, |m, x| m.max(x.abs())));
            }
            println!("{} from {spread:.0e}: {report:?}, reaching {longest:.2}", minimizer.name());
            assert!(report.initial.energy > 1e60);
            assert!(report.converged(), "{report:?}");
        }
    }
}

#[test]
fn minimisers_end_for_their_reasons() {
    for mut minimizer in both() {
        let name = minimizer.name();
        let report = warm_cluster().minimize(&mut *minimizer, 1e-9, 3);
        assert_eq!((report.ending, report.last.step), (Ending::Steps, 3), "{name}");
        let mut toys = warm_cluster();
        let until = Until { force: 1e-9, steps: 1000 };
        let mut stop = |now: &md::integrate::minimize::Progress| match now.step {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let report = minimizer.minimize(&mut toys.motion(), &until, &mut stop).unwrap();
        assert_eq!((report.ending, report.last.step), (Ending::Stopped, 2), "{name}");
        // At the minimum already.
        let mut toys = Toys::new(Wells { k: 1.0, q: 0.0 }, 1.0, vec![1.0], &[[0.0; 3]], &[[0.0; 3]]);
        let report = toys.minimize(&mut *minimizer, 1e-9, 10);
        assert_eq!((report.ending, report.last.evaluations), (Ending::Converged, 0), "{name}");
        // Forces that are next to nothing.
        let mut toys = Toys::new(Wells { k: 1e-310, q: 0.0 }, 1.0, vec![1.0], &[[0.5; 3]], &[[0.0; 3]]);
        assert!(!toys.minimize(&mut *minimizer, 0.0, 10).converged(), "{name}");
        // No atoms at all.
        let mut toys = Toys::new(Cluster, 1.0, vec![], &[], &[]);
        assert!(toys.minimize(&mut *minimizer, 1e-9, 10).converged(), "{name}");
        // More than rounding allows; forces at hand are those of the positions.
        let mut toys = warm_cluster();
        let report = toys.minimize(&mut *minimizer, 0.0, 5000);
        assert!(!report.converged() && report.last.force < 1e-11, "{name}: {report:?}");
        let mut again = Forces::default();
        let State { cell, positions, .. } = &toys.state;
        toys.source.evaluate(cell, positions, &mut again).unwrap();
        assert_eq!(again, toys.forces, "{name}");
        assert_eq!(toys.state.velocities, warm_cluster().state.velocities, "{name}");
    }
    assert!(
        Fire::new(0.0, 0.1).is_err() && Fire::new(0.1, f64::NAN).is_err() && Lbfgs::new(5, -1.0).is_err()
    );
}

#[test]
fn minimisers_go_on_to_the_bit() {
    for mut whole in both() {
        let name = whole.name();
        let mut once = warm_cluster();
        let expected = once.minimize(&mut *whole, 1e-9, 60);
        // stopped after each of the first steps, each time with another minimiser that is told what the last one knew
        let mut parts = warm_cluster();
        let (mut memory, mut report) = (whole.memory(), expected);
        for step in (1..30).chain([60]) {
            let mut next = both().into_iter().find(|m| m.name() == name).unwrap();
            if step > 1 {
                next.recall(&memory, parts.masses.len()).unwrap();
            }
            let until = Until { force: 1e-9, steps: step };
            let mut go_on = |_: &_| ControlFlow::Continue(());
            report = next.go_on(&mut parts.motion(), &until, &mut go_on).unwrap();
            memory = next.memory();
        }
        assert_eq!(report, expected, "{name}");
        assert_eq!(parts.state, once.state, "{name}");
        assert_eq!(memory, whole.memory(), "{name}");
        // what is not its memory is refused
        let mut wrong = memory.clone();
        wrong.numbers.pop();
        assert!(whole.recall(&wrong, parts.masses.len()).is_err());
        assert!(whole.recall(&memory, parts.masses.len() + 1).is_err());
        wrong.integrator = "verlet".into();
        assert!(whole.recall(&wrong, parts.masses.len()).is_err());
    }
}
