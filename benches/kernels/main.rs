//! Kernels whose derivatives are automatic against the same kernels with the derivative written by hand, in one
//! process and by turns: `cargo bench --bench kernels`.
//!
//! Each figure is the best of many. Words choose rows: `cargo bench --bench kernels -- avx2 double eam`. Before two of
//! them race, they must give the same. For every pair of racers there are five rows:
//!
//! - `forces`: no energies or virial ([`ForceSource::forces_only`]),
//! - `evaluate`: forces, energies and virial ([`ForceSource::evaluate`]),
//! - `energy`: energies alone, the text called with plain lanes; by hand, what is left of the formula without its slopes,
//! - `gradient / energy`: `forces` over `energy`, and the quotient of these two,
//! - `Hessian product / forces`: a Hessian–vector product against the forces, both automatic.
//!
//! Then there is what it costs that sums do not depend on their order (`reproducible`). The last table is written to
//! `outputs/bench/ratios.json`, too.

/// The numbers of some parameters. (Written out: the standard library's `map` is not inlined.)
macro_rules! numbers {
    ($V:ident; $($p:expr),+) => { [$($V::of_parameter($p)),+] };
}

mod bonded;
mod many_body;
mod pairs;
#[path = "../ratios/mod.rs"]
mod ratios;
mod reproducible;

use md::autodiff::lanes::Isa;
use md::forces::pair::Joint;
use md::forces::{
    Charges, Direction, Evaluator, ForceSource, Forces, Grid, Kind, Method, ParameterTable, Precision, Setup,
    Term,
};
use md::system::lattice::{Lattice, LatticeKind};
use md::system::{Atoms, Cell, Positions};
use ratios::Ratios;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

/// An energy's text, called with plain lanes: no derivative.
struct Plain<E>(PhantomData<E>);
/// The energies of a formula alone.
struct Alone<F>(PhantomData<F>);

/// The terms of an evaluator, and which of them it computes together.
type Racer = (Vec<Box<dyn Term>>, Vec<Joint>);

/// What a kernel runs on, and how precise it is.
#[derive(Clone, Copy)]
struct Way {
    isa: Isa,
    precision: Precision,
}

impl Way {
    /// All ways, or those of kernels that are in double precision always.
    fn all(mixed: bool) -> impl Iterator<Item = Way> {
        let precisions = [Precision::Double, Precision::Mixed]
            .into_iter()
            .filter(move |p| mixed || *p == Precision::Double);
        Isa::available()
            .into_iter()
            .flat_map(move |isa| precisions.clone().map(move |precision| Way { isa, precision }))
    }
    fn method(self, grid: Grid) -> Method {
        Method { kind: Kind::Fused, isa: self.isa, grid, precision: self.precision }
    }
    fn name(self) -> String {
        let precision = if self.precision == Precision::Double { "double" } else { "mixed" };
        format!("{}, {precision}", self.isa.name())
    }
    /// How much what is the same may differ, relative to the largest.
    fn tolerance(self) -> f64 {
        if self.precision == Precision::Double { 1e-10 } else { 1e-4 }
    }
}

/// Atoms at rest.
struct System {
    cell: Cell,
    positions: Positions,
    atoms: Arc<Atoms>,
    /// A vector for Hessian products.
    moves: Vec<[f64; 3]>,
    /// What sums are rounded to.
    grid: Grid,
    skin: f64,
}

impl System {
    /// Atoms of several types and of charges ±1, in no order.
    fn new(cell: Cell, mut points: Vec<[f64; 3]>, shake: f64, types: u32, grid: Grid, skin: f64) -> Self {
        let mut seed = 1u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f64 / (1u64 << 24) as f64 - 0.5
        };
        points.iter_mut().flatten().for_each(|x| *x += shake * noise());
        let positions = Positions::from_cartesian(&cell, &points).unwrap();
        let n = points.len();
        let hash = |i: u32| i.wrapping_mul(2_654_435_761) >> 16;
        let atoms = Atoms {
            type_names: (0..types).map(|t| format!("T{t}")).collect(),
            types: (0..n as u32).map(|i| hash(i) % types).collect(),
            masses: vec![1.0; n],
            charges: (0..n as u32).map(|i| f64::from(hash(i) / 8 % 2) * 2.0 - 1.0).collect(),
            molecules: vec![0; n],
            names: vec!["A".into(); n],
        };
        let moves = (0..n).map(|_| [noise(), noise(), noise()]).collect();
        Self { cell, positions, atoms: Arc::new(atoms), moves, grid, skin }
    }

    /// A crystal, shaken.
    fn crystal(
        kind: LatticeKind,
        constant: f64,
        repeat: usize,
        shake: f64,
        types: u32,
        grid: Grid,
        skin: f64,
    ) -> Self {
        let lattice = Lattice::new(kind, [constant; 3], [repeat; 3]).unwrap();
        let cell = Cell::new(lattice.cell(), [true; 3]).unwrap();
        Self::new(cell, lattice.positions(), shake * constant, types, grid, skin)
    }

    fn len(&self) -> usize {
        self.positions.len()
    }

    fn evaluator(&self, (terms, joints): Racer, method: Method) -> Evaluator {
        let setup = Setup {
            atoms: self.atoms.clone(),
            charges: Charges::of_atoms(&self.atoms.charges),
            joined: Default::default(),
            terms,
            coulomb: 1.0,
            skin: self.skin,
            method,
            joints,
        };
        Evaluator::new(setup).unwrap()
    }
}

/// Numbers that are written, each for itself.
fn table(rows: &[Vec<f64>]) -> ParameterTable {
    let mut table = ParameterTable::new(rows[0].len());
    for (r, row) in rows.iter().enumerate() {
        let number = |(k, &x): (usize, &f64)| md::forces::Slot::Value(table.number(format!("{r}.{k}"), x));
        let slots: Vec<_> = row.iter().enumerate().map(number).collect();
        table.row(&slots);
    }
    table
}

/// What a racer is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Task {
    Forces,
    Evaluate,
    Product,
}

impl Task {
    fn carry_out(self, system: &System, racer: &mut Evaluator, out: &mut Forces) {
        match self {
            Task::Forces => racer.forces_only(&system.cell, &system.positions, out),
            Task::Evaluate => racer.evaluate(&system.cell, &system.positions, out),
            Task::Product => {
                let direction = Direction { moves: &system.moves, strain: [[0.0; 3]; 3] };
                racer.tangents(&system.cell, &system.positions, &direction, false, out)
            }
        }
        .unwrap();
    }
}

/// How many rounds there are.
const ROUNDS: usize = 25;

/// The best time of each task (a racer by its index, and what it does), in ns an atom, taken by turns.
fn race<const N: usize>(system: &System, racers: &mut [Evaluator], tasks: [(usize, Task); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    let mut out = Forces::default();
    for _ in 0..ROUNDS {
        for (&(racer, task), best) in tasks.iter().zip(&mut best) {
            task.carry_out(system, &mut racers[racer], &mut out);
            let start = Instant::now();
            task.carry_out(system, &mut racers[racer], &mut out);
            *best = best.min(start.elapsed().as_secs_f64() / system.len() as f64 * 1e9);
        }
    }
    best
}

/// Fails where numbers differ by more than so much of the largest, and so much beside.
fn same<'a>(
    what: &str,
    [tolerance, beside]: [f64; 2],
    a: impl IntoIterator<Item = &'a f64>,
    b: impl IntoIterator<Item = &'a f64>,
) {
    let (mut most, mut apart) = (0.0f64, 0.0f64);
    for (a, b) in a.into_iter().zip(b) {
        (most, apart) = (most.max(a.abs()), apart.max((a - b).abs()));
    }
    assert!(most > 0.0 && apart <= tolerance * most + beside, "{what}: differs by {apart:e} of {most:e}");
}

/// The rows.
struct Table {
    wanted: Vec<String>,
    rows: Ratios,
}

impl Table {
    fn wants(&self, name: &str) -> bool {
        self.wanted.iter().all(|word| name.contains(word))
    }
    /// Five rows. The racers: by hand, automatic, and the energies of either alone.
    fn compare(&mut self, name: &str, system: &System, way: Way, racers: [Racer; 4]) {
        let name = format!("{name}, {}", way.name());
        if !self.wants(&name) {
            return;
        }
        let mut racers = racers.map(|racer| system.evaluator(racer, way.method(system.grid)));
        let [hand, auto, energies @ ..] = racers.each_mut().map(|racer| {
            let mut out = Forces::default();
            Task::Evaluate.carry_out(system, racer, &mut out);
            out
        });
        let tolerance = [way.tolerance(), 0.0];
        same(&format!("{name}: forces"), tolerance, hand.forces.as_flattened(), auto.forces.as_flattened());
        same(&format!("{name}: virial"), tolerance, &hand.virial, &auto.virial);
        for other in [&auto, &energies[0], &energies[1]] {
            same(&format!("{name}: energy"), tolerance, &[hand.energy()], &[other.energy()]);
        }
        use Task::{Evaluate, Forces as Only};
        let tasks = [(0, Only), (1, Only), (0, Evaluate), (1, Evaluate), (2, Evaluate), (3, Evaluate)];
        let [f, g, a, b, d, e] = race(system, &mut racers, tasks);
        let keys = ["by_hand", "automatic"];
        for (what, times) in [("forces", [f, g]), ("evaluate", [a, b]), ("energy", [d, e])] {
            self.rows.row(format!("{name}, {what}"), "_ns", keys, times, None);
        }
        self.rows.row(format!("{name}, gradient / energy"), "", keys, [f / d, g / e], None);
        if way.precision == Precision::Double {
            let plain = Way { isa: Isa::Portable, ..way }.method(system.grid);
            let [a, b] = [way.method(system.grid), plain].map(|method| {
                racers[1].method = method;
                let mut out = Forces::default();
                Task::Product.carry_out(system, &mut racers[1], &mut out);
                out
            });
            same(&format!("{name}: products"), tolerance, a.forces.as_flattened(), b.forces.as_flattened());
            racers[1].method = way.method(system.grid);
            let [forces, product] = race(system, &mut racers, [(1, Only), (1, Task::Product)]);
            self.rows.row(
                format!("{name}, Hessian product / forces"),
                "_ns",
                ["forces", "product"],
                [forces, product],
                None,
            );
        }
    }

    /// Two rows: sums that do not depend on their order against sums that do.
    fn reproducible(&mut self, name: &str, system: &System, way: Way, racer: &dyn Fn() -> Racer) {
        let name = format!("reproducible, {name}, {}", way.name());
        if !self.wants(&name) {
            return;
        }
        let mut racers = [Grid::NONE, system.grid].map(|grid| system.evaluator(racer(), way.method(grid)));
        let [plain, on_grid] = racers.each_mut().map(|racer| {
            let mut out = Forces::default();
            Task::Evaluate.carry_out(system, racer, &mut out);
            out
        });
        // (each neighbour may be rounded by half a step)
        let tolerance = [way.tolerance(), 64.0 * racers[1].force_step()];
        let [a, b] = [&plain, &on_grid].map(|out| out.forces.as_flattened());
        same(&format!("{name}: forces"), tolerance, a, b);
        let tasks = [(0, Task::Forces), (1, Task::Forces), (0, Task::Evaluate), (1, Task::Evaluate)];
        let [f, g, a, b] = race(system, &mut racers, tasks);
        for (what, times) in [("forces", [f, g]), ("evaluate", [a, b])] {
            self.rows.row(format!("{name}, {what}"), "_ns", ["otherwise", "reproducible"], times, None);
        }
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let wanted = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
        let mut table = Table { wanted, rows: Ratios::default() };
        table.rows.heading("ns an atom, lists given", "by hand", "automatic");
        pairs::compare(&mut table);
        bonded::compare(&mut table);
        many_body::compare(&mut table);
        table.rows.heading("ns an atom", "otherwise", "reproducible");
        pairs::reproducible(&mut table);
        bonded::reproducible(&mut table);
        many_body::reproducible(&mut table);
        reproducible::steps(&mut table);
        table.rows.keep(Isa::best().name());
    });
}
