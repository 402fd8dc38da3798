//! What a gradient through time costs, in units of the run itself: `cargo bench --bench adjoint`.
//!
//! On one thread, in one process: runs alone and runs with their way back take turns, and each figure is the median over the
//! rounds; so is each ratio. A run alone is what `md run` does between two rows of its table: steps of velocity Verlet with
//! forces only, neighbour lists included. Words choose rows, as in `benches/kernels`, whose file of ratios is used, too.

#[path = "../ratios/mod.rs"]
mod ratios;

use md::adjoint::{Average, Gradient, Memory, Objective, Observable, Run, Thermal, Way, When};
use md::autodiff::lanes::Isa;
use md::forces::Forces;
use md::input::plan::Plan;
use md::input::reader::Document;
use md::integrate::{Motion, VelocityVerlet};
use md::observe::progress::Mode;
use md::run::LastStage;
use ratios::Ratios;
use std::ops::ControlFlow;
use std::time::Instant;

/// A system at the beginning of the run that is differentiated.
struct System {
    name: &'static str,
    last: LastStage,
    boltzmann: f64,
    steps: usize,
}

impl System {
    fn new(name: &'static str, text: &str, set: &[(&str, &str)], steps: usize) -> Self {
        let set: Vec<_> = set.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect();
        let document = Document::parse("in.toml", text, &set).unwrap();
        let plan = Plan::of(&document, &md::catalog()).unwrap();
        let boltzmann = plan.boltzmann;
        Self { name, last: LastStage::reach(plan, Mode::Quiet).unwrap(), boltzmann, steps }
    }

    /// Seconds that the run takes by itself.
    fn alone(&mut self) -> f64 {
        let LastStage { atoms, state, evaluator, integrator, .. } = &mut self.last;
        let (mut state, mut forces) = (state.clone(), Forces::default());
        let begun = Instant::now();
        let mut motion = Motion::start(&mut state, &atoms.masses, evaluator, &mut forces).unwrap();
        motion.forces_only = true;
        (0..self.steps).for_each(|_| integrator.step(&mut motion).unwrap());
        begun.elapsed().as_secs_f64()
    }

    /// Seconds that it takes with its way back.
    fn there_and_back(&mut self, way: &Way) -> (f64, Gradient) {
        let LastStage { atoms, state, evaluator, integrator, freedom, .. } = &mut self.last;
        let all = Observable::MeanSquareDisplacement((0..atoms.len() as u32).collect());
        let mut objective = Objective::of(Average { of: all, when: When::End });
        let run = Run {
            evaluator,
            integrator: Box::new(VelocityVerlet::new(integrator.time_step()).unwrap()),
            masses: &atoms.masses,
            start: state.clone(),
            steps: self.steps,
            thermal: Thermal { freedom: *freedom, boltzmann: self.boltzmann },
        };
        let begun = Instant::now();
        let found = run.gradient(&mut objective, way, &mut |_, _| ControlFlow::Continue(())).unwrap();
        (begun.elapsed().as_secs_f64(), found)
    }
}

/// How many rounds count; one more warms everything up.
const ROUNDS: usize = 9;

fn median(mut x: Vec<f64>) -> f64 {
    x.sort_by(f64::total_cmp);
    x[x.len() / 2]
}

/// What there is of a kind of way back: how it has its states, and whether parameters have derivatives.
fn ways() -> Vec<(&'static str, Way)> {
    let all = [("all states kept", Memory::StoreAll), ("retraced", Memory::Reversible)];
    let both =
        all.into_iter().flat_map(|(name, memory)| [(name, memory.clone(), false), (name, memory, true)]);
    both.map(|(name, memory, parameters)| (name, Way { memory, parameters, horizon: None })).collect()
}

fn compare(system: &mut System, wanted: &[String], rows: &mut Ratios) {
    for (memory, way) in ways() {
        let what = if way.parameters { "state and parameters" } else { "state" };
        let name = format!("gradient through time, {}, {memory}, {what}", system.name);
        if !wanted.iter().all(|word| name.contains(word)) {
            continue;
        }
        let (mut alone, mut both, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let (a, (b, found)) = (system.alone(), system.there_and_back(&way));
            std::hint::black_box(found);
            if round > 0 {
                alone.push(a);
                both.push(b);
                ratios.push(b / a);
            }
        }
        let each = 1e6 / system.steps as f64;
        let figures = [median(alone) * each, median(both) * each];
        let keys = ["forward", "forward_and_backward"];
        rows.row(name, "_us_per_step", keys, figures, Some(median(ratios)));
    }
}

/// Liquid argon.
const ARGON: &str = include_str!("../../inputs/gradient-argon.toml");

/// What jax-md was given: a shaken crystal of Lennard-Jones atoms.
const PEER: &str = r#"
    units = "lj"
    [system.lattice]
    kind = "fcc"
    types = ["A"]
    density = 0.8442
    repeat = [4, 4, 4]
    [atoms.A]
    mass = 1.0
    [pair.lennard-jones]
    cutoff = 2.5
    inner = 2.3
    ending = "switch"
    [pair.lennard-jones.types]
    A = { epsilon = 1.0, sigma = 1.0 }
    [[stage]]
    steps = 1000
    velocities = 1.44
    integrator.velocity-verlet = { time-step = 0.002 }
    [[stage]]
    steps = 1000
    integrator.velocity-verlet = { time-step = 0.002 }
"#;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
        let mut rows = Ratios::default();
        rows.heading("microseconds a step", "forward", "and backward");
        let few = &[("gradient.memory", "\"reversible\"")];
        compare(&mut System::new("256 argon atoms, 1000 steps", ARGON, few, 1000), &wanted, &mut rows);
        let many = &[("system.lattice.repeat", "[10, 10, 10]"), ("stage[0].steps", "500")];
        compare(&mut System::new("4000 argon atoms, 400 steps", ARGON, many, 400), &wanted, &mut rows);
        compare(
            &mut System::new("256 atoms of a reduced liquid, 1000 steps", PEER, &[], 1000),
            &wanted,
            &mut rows,
        );
        rows.keep(Isa::best().name());
    });
}
