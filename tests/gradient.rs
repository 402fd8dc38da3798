//! Derivatives of simulations against differences of whole simulations.

use md::adjoint::{Average, Gradient, GradientError, Memory, Objective, Observable, Run, Thermal, Way, When};
use md::autodiff::Richardson;
use md::autodiff::checkpointing::fewest;
use md::forces::{Evaluator, Forces, Grid};
use md::input::plan::Plan;
use md::input::reader::Document;
use md::integrate::{Integrator, Langevin, Motion, VelocityVerlet};
use md::system::{Atoms, State};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A system of which runs are made.
struct System {
    text: String,
    skin: f64,
    state: State,
    atoms: Arc<Atoms>,
    boltzmann: f64,
}

fn plan(text: &str) -> Plan {
    let document = Document::parse("in.toml", text, &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let document = document.with_file("water.xyz", water());
    Plan::of(&document, &md::catalog()).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// What is changed in a run, and by how much: a multiple of each.
#[derive(Clone, Copy, Debug)]
enum Change<'a> {
    Nothing,
    Positions(&'a [[f64; 3]]),
    Velocities(&'a [[f64; 3]]),
    /// One of the parameters of the energy.
    Parameter(usize),
    /// The masses of atoms of a type.
    Mass(u32),
    TimeStep,
    Temperature,
    Friction,
}

/// Thermostat or none.
#[derive(Clone, Copy)]
enum How {
    Newton { time_step: f64 },
    Langevin { time_step: f64, temperature: f64, friction: f64 },
}

impl System {
    /// An input, after its atoms have been on their way for some time at a temperature.
    fn new(text: &str, skin: f64, temperature: f64, steps: usize, time_step: f64) -> Self {
        let Plan { atoms, mut state, setup, boltzmann, .. } = plan(text);
        let mut evaluator = Evaluator::new(setup).unwrap();
        let mut forces = Forces::default();
        let mut warm = Langevin::new(time_step, 5.0, temperature, boltzmann, 3).unwrap();
        let mut motion = Motion::start(&mut state, &atoms.masses, &mut evaluator, &mut forces).unwrap();
        motion.forces_only = true;
        (0..steps).for_each(|_| warm.step(&mut motion).unwrap());
        Self { text: text.into(), skin, state, atoms, boltzmann }
    }

    fn evaluator(&self) -> Evaluator {
        let mut setup = plan(&self.text).setup;
        setup.skin = self.skin;
        Evaluator::new(setup).unwrap()
    }

    /// Something done with a run in which something is changed.
    fn with<T>(&self, how: How, steps: usize, change: Change, by: f64, then: impl FnOnce(Run) -> T) -> T {
        let mut evaluator = self.evaluator();
        if !matches!(change, Change::Nothing) {
            // (differences see the steps of the grid that forces are rounded to)
            evaluator.method.grid = Grid::NONE;
        }
        let (mut start, mut masses) = (self.state.clone(), self.atoms.masses.clone());
        let mut how = how;
        let (dt, warmth) = match &mut how {
            How::Newton { time_step } => (time_step, None),
            How::Langevin { time_step, temperature, friction } => (time_step, Some((temperature, friction))),
        };
        match change {
            Change::Nothing => {}
            Change::Positions(d) => {
                start.positions.advance_all(&start.cell, |i| d[i].map(|x| by * x)).unwrap();
            }
            Change::Velocities(d) => {
                for (v, d) in start.velocities.iter_mut().zip(d) {
                    *v = std::array::from_fn(|k| v[k] + by * d[k]);
                }
            }
            Change::Parameter(number) => {
                let mut number = number;
                for term in evaluator.terms_mut() {
                    let mut values = term.parameters().values().to_vec();
                    if let Some(x) = values.get_mut(number) {
                        *x *= 1.0 + by;
                    }
                    number = number.wrapping_sub(values.len());
                    term.set_parameters(&values);
                }
                let mut charges = evaluator.charges().values.clone();
                if let Some(q) = charges.get_mut(number) {
                    *q *= 1.0 + by;
                    evaluator.set_charges(&charges);
                }
            }
            Change::Mass(kind) => {
                for (m, t) in masses.iter_mut().zip(&self.atoms.types) {
                    *m *= if *t == kind { 1.0 + by } else { 1.0 };
                }
            }
            Change::TimeStep => *dt *= 1.0 + by,
            Change::Temperature => *warmth.unwrap().0 *= 1.0 + by,
            Change::Friction => *warmth.unwrap().1 *= 1.0 + by,
        }
        let integrator: Box<dyn Integrator> = match how {
            How::Newton { time_step } => Box::new(VelocityVerlet::new(time_step).unwrap()),
            How::Langevin { time_step, temperature, friction } => {
                Box::new(Langevin::new(time_step, friction, temperature, self.boltzmann, 7).unwrap())
            }
        };
        let thermal = Thermal { freedom: 3 * masses.len() - 3, boltzmann: self.boltzmann };
        then(Run { evaluator: &mut evaluator, integrator, masses: &masses, start, steps, thermal })
    }

    fn gradient(&self, how: How, steps: usize, objective: &mut Objective, memory: Memory) -> Gradient {
        let way = Way { memory, parameters: true, horizon: None };
        self.with(how, steps, Change::Nothing, 0.0, |run| {
            run.gradient(objective, &way, &mut |_, _| ControlFlow::Continue(())).unwrap()
        })
    }

    /// The derivative by differences of whole runs.
    fn difference(
        &self,
        (how, steps): (How, usize),
        objective: &mut Objective,
        change: Change,
        (step, tables): (f64, usize),
    ) -> f64 {
        let value = |by: f64| self.with(how, steps, change, by, |run| run.value(objective).unwrap());
        let way = Richardson { step, levels: 3, tables, enough: 0.0, scale: 0.0 };
        way.derivative(value, 0.0).value
    }

    /// A direction of all atoms without order.
    fn direction(&self) -> Vec<[f64; 3]> {
        let x = |i: usize, k: usize| ((i * 7 + k * 3) as f64 * 1.7).sin();
        (0..self.atoms.len()).map(|i| [x(i, 0), x(i, 1), x(i, 2)]).collect()
    }

    /// Derivatives in everything, against differences.
    #[track_caller]
    fn compare(&self, how: How, steps: usize, objective: &mut Objective, differences: (f64, usize)) {
        let found = self.gradient(how, steps, objective, Memory::StoreAll);
        let d = self.direction();
        let along =
            |a: &[[f64; 3]]| a.iter().zip(&d).map(|(a, d)| (0..3).map(|k| a[k] * d[k]).sum::<f64>()).sum();
        let mut all: Vec<(String, Change, f64)> = vec![
            ("positions".into(), Change::Positions(&d), along(&found.start.positions)),
            ("velocities".into(), Change::Velocities(&d), along(&found.start.velocities)),
        ];
        for (number, (name, at)) in self.evaluator().parameter_names().into_iter().enumerate() {
            let (slope, matters) = found.parameters[number];
            // (charges are there whether there is anything between them or not)
            assert!(matters || at == 0.0 || name.ends_with("charge"), "{name}");
            if matters {
                all.push((name, Change::Parameter(number), at * slope));
            }
        }
        for kind in 0..self.atoms.type_names.len() as u32 {
            let of = found.start.masses.iter().zip(&self.atoms.masses).zip(&self.atoms.types);
            let slope = of.map(|((a, m), t)| if *t == kind { a * m } else { 0.0 }).sum();
            all.push((format!("mass of type {kind}"), Change::Mass(kind), slope));
        }
        let settings = &found.start.settings;
        match how {
            How::Newton { time_step } => {
                all.push(("time step".into(), Change::TimeStep, time_step * settings[0]));
            }
            How::Langevin { time_step, temperature, friction } => {
                all.push(("time step".into(), Change::TimeStep, time_step * settings[0]));
                all.push(("temperature".into(), Change::Temperature, temperature * settings[1]));
                all.push(("friction".into(), Change::Friction, friction * settings[2]));
            }
        }
        let mut wrong = Vec::new();
        let largest = all.iter().skip(2).fold(0.0, |m: f64, (_, _, x)| m.max(x.abs()));
        for (name, change, exact) in all {
            let difference = self.difference((how, steps), objective, change, differences);
            let error = (exact - difference).abs() / exact.abs().max(1e-3 * largest);
            let line = format!("{name}: {exact:e}, by differences {difference:e}, {error:.1e} apart");
            println!("{line}");
            // (the slope of a reaction field's force jumps where it ends)
            let limit = if name == "reaction-field.cutoff" { 3e-6 } else { 1e-6 };
            if error.is_nan() || error > limit {
                wrong.push(line);
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// 256 atoms of argon at the density of the liquid.
const ARGON: &str = r#"
    [system.lattice]
    kind = "fcc"
    types = ["Ar"]
    density = "1.374 g/cm^3"
    repeat = [4, 4, 4]
    [atoms.Ar]
    mass = "39.948 u"
    [pair.lennard-jones]
    cutoff = "8.5 A"
    ending = "switch"
    [pair.lennard-jones.types]
    Ar = { epsilon = "0.99773551 kJ/mol", sigma = "3.4 A" }
    [[stage]]
    steps = 0
    integrator.velocity-verlet = { time-step = "5 fs" }
"#;

fn argon() -> System {
    System::new(ARGON, 0.02, 120.0, 600, 0.01)
}

/// A number with something of everything in it: the last state, averages, energies, virial, a bin of g(r).
fn mixture(system: &System) -> Objective {
    let atoms = system.atoms.len();
    let all = vec![true; atoms];
    let g = Observable::RadialDistribution { at: 0.37, width: 0.02, sets: [all.clone(), all] };
    let (end, often) = (When::End, When::Every { from: 20, every: 20 });
    let averages = [
        (Observable::MeanSquareDisplacement((0..atoms as u32).collect()), end),
        (Observable::Temperature, often),
        (Observable::Potential, often),
        (Observable::Pressure, often),
        (g, often),
        (Observable::Distance([0, 5]), end),
        (Observable::Angle([0, 1, 9]), end),
        (Observable::Velocity(17, 1), end),
    ];
    let averages = averages.into_iter().map(|(of, when)| Average { of, when }).collect();
    let scales = [30.0, 0.02, 0.01, 0.003, 0.5, 1.0, 0.3, 1.0];
    Objective::new(
        averages,
        Box::new(move |x| {
            // (each of them once, and a product of two)
            let sum = x.iter().zip(scales).fold(x[0] * 0.0, |sum, (x, k)| sum + *x * k);
            sum + x[5] * x[7]
        }),
    )
}

#[test]
fn a_liquid_of_argon() {
    let system = argon();
    let how = How::Newton { time_step: 0.005 };
    // (lists are built anew some times, and pairs come and go)
    let builds = |run: Run| {
        let Run { evaluator, mut integrator, masses, mut start, steps, .. } = run;
        let mut forces = Forces::default();
        let mut motion = Motion::start(&mut start, masses, evaluator, &mut forces).unwrap();
        (0..steps).for_each(|_| integrator.step(&mut motion).unwrap());
        motion.list_builds()
    };
    assert!(system.with(how, 120, Change::Nothing, 0.0, builds) >= 4);
    system.compare(how, 120, &mut mixture(&system), (5e-5, 1));
}

#[test]
fn a_liquid_with_friction_and_noise() {
    let system = argon();
    let how = How::Langevin { time_step: 0.005, temperature: 110.0, friction: 2.0 };
    system.compare(how, 100, &mut mixture(&system), (5e-5, 1));
}

/// 64 molecules of flexible water with a reaction field, charges and all.
const WATER: &str = r#"
    [system]
    structure = "water.xyz"
    [atoms]
    OW = { mass = "15.9994 u", charge = "-0.82 e", element = "O" }
    HW = { mass = "1.008 u", charge = "0.41 e", element = "H" }
    [molecules.water]
    atoms = ["O: OW", "H1: HW", "H2: HW"]
    bonds = [["O", "H1"], ["O", "H2"]]
    [bond.harmonic]
    OW-HW = { k = "1059.162 kcal/mol/A^2", r0 = "1.012 A" }
    [angle.harmonic]
    HW-OW-HW = { k = "75.90 kcal/mol/rad^2", theta0 = "113.24 deg" }
    [pair.lennard-jones]
    cutoff = "6 A"
    ending = "switch"
    [pair.lennard-jones.types]
    OW = { epsilon = "0.1554253 kcal/mol", sigma = "3.165492 A" }
    HW = { none = true }
    [pair.reaction-field]
    cutoff = "6 A"
    epsilon-rf = 0.0
    [[stage]]
    steps = 0
    integrator.velocity-verlet = { time-step = "0.5 fs" }
"#;

/// Molecules on a grid, turned every way.
fn water() -> String {
    let (n, edge) = (4, 12.42);
    let mut text = format!(
        "{}\nLattice=\"{edge} 0 0 0 {edge} 0 0 0 {edge}\" Properties=species:S:1:pos:R:3\n",
        3 * n * n * n
    );
    for k in 0..n * n * n {
        let at = [k % n, k / n % n, k / (n * n)].map(|x| (f64::from(x) + 0.5) * edge / f64::from(n));
        let (sin, cos) = (f64::from(k) * 2.4).sin_cos();
        // (in a plane that is turned about z)
        for (name, [x, y]) in [("OW", [0.0, 0.0]), ("HW", [0.85, 0.56]), ("HW", [-0.85, 0.56])] {
            let r = [at[0] + x * cos, at[1] + x * sin, at[2] + y * (1.0 - 2.0 * f64::from(k % 2))];
            text += &format!("{name} {} {} {}\n", r[0], r[1], r[2]);
        }
    }
    text
}

#[test]
fn a_box_of_water() {
    let system = System::new(WATER, 0.02, 300.0, 400, 0.0005);
    let how = How::Newton { time_step: 0.0005 };
    // (the force of the reaction field has a kink where it ends, of which differences see something)
    system.compare(how, 100, &mut mixture(&system), (2e-5, 5));
}

/// Whatever way states are had in reverse, they are the same bits, and so are derivatives.
#[test]
fn every_memory_gives_the_same_bits() {
    let system = argon();
    let how = How::Newton { time_step: 0.005 };
    let (steps, folder) = (150, tempfile::tempdir().unwrap());
    let checkpoints = |snapshots, folder| Memory::Checkpoints { snapshots, folder };
    let all = system.gradient(how, steps, &mut mixture(&system), Memory::StoreAll);
    for memory in [
        checkpoints(7, None),
        checkpoints(3, Some(folder.path().to_owned())),
        checkpoints(1, None),
        Memory::Reversible,
    ] {
        let steps = if memory == checkpoints(1, None) { 20 } else { steps };
        let all = if steps == 20 {
            system.gradient(how, steps, &mut short(), Memory::StoreAll)
        } else {
            all.clone()
        };
        let mut objective = if steps == 20 { short() } else { mixture(&system) };
        let found = system.gradient(how, steps, &mut objective, memory.clone());
        let bits = |g: &Gradient| {
            let vectors = [&g.start.positions, &g.start.velocities];
            let mut all: Vec<u64> =
                vectors.iter().flat_map(|v| v.iter().flatten()).map(|x| x.to_bits()).collect();
            all.extend(g.start.masses.iter().chain(&g.start.settings).map(|x| x.to_bits()));
            all.extend(g.parameters.iter().map(|x| x.0.to_bits()));
            all.push(g.value.to_bits());
            all
        };
        assert_eq!(bits(&found), bits(&all), "{memory:?}");
        if let Memory::Checkpoints { snapshots, .. } = memory {
            // (with the last step taken once more for the last state)
            let expected = fewest(steps, snapshots) as u64 + 1;
            assert_eq!(found.cost.counts.forward, expected, "{memory:?}");
            assert!(found.cost.counts.snapshots <= snapshots);
        }
    }
    assert!(folder.path().read_dir().unwrap().next().is_none(), "snapshots stay behind");
}

fn short() -> Objective {
    Objective::of(Average { of: Observable::Distance([0, 5]), when: When::End })
}

#[test]
fn what_cannot_be_retraced_says_so() {
    let system = argon();
    let how = How::Langevin { time_step: 0.005, temperature: 110.0, friction: 2.0 };
    let way = Way { memory: Memory::Reversible, parameters: false, horizon: None };
    let refused = system.with(how, 5, Change::Nothing, 0.0, |run| {
        run.gradient(&mut short(), &way, &mut |_, _| ControlFlow::Continue(()))
    });
    assert!(matches!(refused, Err(GradientError::Irreversible(why)) if why.contains("friction")));
}

/// Atoms tied to their places: ⟨|r − r₀|²⟩ = 3 k_B T/k and ⟨U⟩ = 3/2 N k_B T, so that what covariances say is known.
#[test]
fn an_ensemble_of_springs() {
    let text = r#"
        [system.lattice]
        kind = "sc"
        types = ["A"]
        constant = "1 nm"
        repeat = [5, 5, 5]
        [atoms.A]
        mass = "20 u"
        [field.position-restraint]
        atoms = ["all"]
        k = "500 kJ/mol/nm^2"
        [[stage]]
        steps = 0
        integrator.velocity-verlet = { time-step = "1 fs" }
    "#;
    let (temperature, k) = (300.0, 500.0);
    let system = System::new(text, 0.1, temperature, 2000, 0.01);
    let how = How::Langevin { time_step: 0.01, temperature, friction: 10.0 };
    let all = Observable::MeanSquareDisplacement((0..125).collect());
    let when = When::Every { from: 0, every: 20 };
    let averages = [all, Observable::Potential].map(|of| Average { of, when });
    let mut objective = Objective::new(averages.to_vec(), Box::new(|x| x[0] * 1000.0));
    let found = system
        .with(how, 60_000, Change::Nothing, 0.0, |mut run| {
            // (displacements are measured from where the springs hold)
            run.start = plan(text).state;
            run.start.velocities = system.state.velocities.clone();
            run.ensemble(&mut objective, temperature, true, |_| ())
        })
        .unwrap();
    let kt = system.boltzmann * temperature;
    let (spread, energy) = (3.0 * kt / k, 1.5 * 125.0 * kt);
    let near = |found: md::adjoint::ensemble::Estimate, exact: f64, most: f64| {
        println!("{} ± {}, exactly {exact}", found.value, found.error);
        // (the first steps are not yet in equilibrium: a part in a thousand)
        assert!(
            (found.value - exact).abs() < 4.0 * found.error + 2e-3 * exact.abs(),
            "{found:?}, not {exact}"
        );
        assert!(found.error < most * exact.abs(), "{found:?} is no result");
    };
    near(found.averages[0], spread, 0.02);
    near(found.averages[1], energy, 0.02);
    // ⟨|r − r₀|²⟩ falls as 1/k and grows as T
    near(found.parameters[0].0, -1000.0 * spread / k, 0.2);
    near(found.temperature, 1000.0 * spread / temperature, 0.2);
    assert!(found.parameters[0].1 && found.effective.iter().all(|n| *n > 100.0), "{:?}", found.effective);
}

/// With a horizon the way back forgets: nothing that is older has a derivative.
#[test]
fn a_horizon_cuts_the_way_back() {
    let system = argon();
    let how = How::Newton { time_step: 0.005 };
    let gradient = |horizon| {
        let way = Way { memory: Memory::StoreAll, parameters: true, horizon };
        let mut watch = |_, _| ControlFlow::Continue(());
        system
            .with(how, 40, Change::Nothing, 0.0, |run| run.gradient(&mut short(), &way, &mut watch).unwrap())
    };
    let (all, some) = (gradient(None), gradient(Some(15)));
    let left = some.start.positions.iter().flatten().fold(0.0, |m: f64, x| m.max(x.abs()));
    // (odd factors leave the smallest of numbers where there is nothing)
    assert!(left < 1e-300, "{left:e}");
    assert!(some.parameters[0].0 != 0.0 && some.parameters[0].0 != all.parameters[0].0);
    let same = gradient(Some(41));
    assert_eq!((same.start, same.parameters), (all.start, all.parameters));
}
