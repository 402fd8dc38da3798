//! Whole steps of velocity Verlet, neighbour lists included.

use crate::{Table, Way};
use md::forces::Grid;
use md::input::plan::Plan;
use md::input::reader::Document;
use md::run::benchmark::Benchmark;
use std::time::Duration;

/// A system whose last stage is timed.
struct Input {
    name: &'static str,
    text: &'static str,
    /// What is changed in the text.
    set: &'static [(&'static str, &'static str)],
    grid: Grid,
}

const INPUTS: [Input; 2] = [
    Input {
        name: "lennard-jones liquid",
        text: include_str!("../../src/cli/bench/lj.toml"),
        set: &[("system.lattice.repeat", "[16, 16, 16]")],
        grid: Grid::REDUCED,
    },
    Input {
        name: "water",
        text: include_str!("../../inputs/water.toml"),
        set: &[("system.repeat", "[2, 1, 1]"), ("stage[0].steps", "50")],
        grid: Grid::METRIC,
    },
];

impl Input {
    fn plan(&self) -> Plan {
        let set: Vec<_> = self.set.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect();
        let document = Document::parse("in.toml", self.text, &set).unwrap();
        let water = include_bytes!("../../inputs/structures/water.gro");
        Plan::of(&document.with_file("structures/water.gro", &water[..]), &md::catalog()).unwrap()
    }
}

/// How many samples there are, and how long each of them takes at least.
const SAMPLES: (usize, Duration) = (8, Duration::from_millis(400));

/// The best samples of steps on a grid and without one, by turns.
pub fn steps(rows: &mut Table) {
    for (input, way) in INPUTS.iter().flat_map(|input| Way::all(true).map(move |way| (input, way))) {
        let name = format!("reproducible, step, {}, {}", input.name, way.name());
        if !rows.wants(&name) {
            continue;
        }
        let mut racers = [Grid::NONE, input.grid].map(|grid| {
            let mut plan = input.plan();
            plan.setup.method = way.method(grid);
            Benchmark::start(plan).unwrap()
        });
        let mut best = [f64::INFINITY; 2];
        for _ in 0..SAMPLES.0 {
            for (racer, best) in racers.iter_mut().zip(&mut best) {
                let sample = racer.sample(SAMPLES.1).unwrap();
                let each = (sample.steps * racer.atoms() as u64) as f64;
                *best = best.min(sample.time.as_secs_f64() / each * 1e9);
            }
        }
        rows.rows.row(name, "_ns", ["otherwise", "reproducible"], best, None);
    }
}
