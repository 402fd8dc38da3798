//! Kernels whose derivatives are automatic against the same kernels with the derivative written by hand, in one
//! process and by turns: `cargo bench --bench kernels`.
//!
//! Each figure is the best of many. The last table is written to `outputs/bench/ratios.json`, too.

use md::autodiff::lanes::{Isa, Lanes};
use md::forces::pair::{Derived, Formula, PairLaw, Special, TypePairs};
use md::forces::{
    Charges, Entry, Evaluator, ForceSource, Forces, Grid, Kind, Method, ParameterTable, Precision, Setup,
    Term,
};
use md::system::lattice::{Lattice, LatticeKind};
use md::system::{Atoms, Cell, Positions};
use potentials::pair::{LennardJones, Morse};
use potentials::{Energy, PairEnergy};
use std::sync::Arc;
use std::time::Instant;

const PRECISIONS: [Precision; 2] = [Precision::Double, Precision::Mixed];

/// Lennard-Jones by hand.
struct LennardJonesByHand;
impl Formula<LennardJones> for LennardJonesByHand {
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &<LennardJones as Energy>::Prepared<V::Parameter>) -> (V, V) {
        let [c6, c12] = [p.c6, p.c12].map(V::of_parameter);
        let inverse = r2.recip();
        let x = inverse * inverse * inverse;
        let repulsion = c12 * x;
        let e = x * (repulsion - c6);
        let g = (repulsion * 12.0 - c6 * 6.0) * (x * inverse);
        (e, g)
    }
}

/// Morse by hand.
struct MorseByHand;
impl Formula<Morse> for MorseByHand {
    #[inline(always)]
    fn pairs<V: Lanes>(r2: V, p: &<Morse as Energy>::Prepared<V::Parameter>) -> (V, V) {
        let [d, a, r0] = [p.d, p.a, p.r0].map(V::of_parameter);
        let inverse = r2.rsqrt();
        let x = (a * (r0 - r2 * inverse)).exp();
        let y = d * x;
        let e = y * (x - 2.0);
        let g = (y * x - y) * (a * 2.0 * inverse);
        (e, g)
    }
}

struct Liquid {
    cell: Cell,
    positions: Positions,
    atoms: Arc<Atoms>,
}

impl Liquid {
    /// A face-centred crystal at the density of a Lennard-Jones liquid, shaken.
    fn new(repeat: usize, types: u32) -> Self {
        let a = (4.0f64 / 0.8442).cbrt();
        let lattice = Lattice::new(LatticeKind::Fcc, [a; 3], [repeat; 3]).unwrap();
        let (cell, mut points) = (Cell::new(lattice.cell(), [true; 3]).unwrap(), lattice.positions());
        let mut seed = 1u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f64 / (1u64 << 24) as f64 - 0.5
        };
        points.iter_mut().flatten().for_each(|x| *x += 0.15 * noise());
        let positions = Positions::from_cartesian(&cell, &points).unwrap();
        let n = points.len();
        let atoms = Atoms {
            type_names: (0..types).map(|t| format!("T{t}")).collect(),
            types: (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 16) % types).collect(),
            masses: vec![1.0; n],
            charges: vec![0.0; n],
            molecules: vec![0; n],
            names: vec!["A".into(); n],
        };
        Self { cell, positions, atoms: Arc::new(atoms) }
    }

    fn evaluator(&self, term: Box<dyn Term>, isa: Isa, precision: Precision) -> Evaluator {
        let setup = Setup {
            atoms: self.atoms.clone(),
            charges: Charges::of_atoms(&self.atoms.charges),
            joined: Default::default(),
            terms: vec![term],
            coulomb: 1.0,
            skin: 0.3,
            method: Method { kind: Kind::Fused, isa, grid: Grid::REDUCED, precision },
            joints: Vec::new(),
        };
        Evaluator::new(setup).unwrap()
    }
}

fn pair<E: PairEnergy, F: Formula<E>>(types: u32, params: &[f64]) -> Box<dyn Term> {
    let mut table = ParameterTable::new(params.len());
    let mut pairs = TypePairs::none(types as usize);
    for a in 0..types as usize {
        for b in 0..=a {
            let slots: Vec<_> = (params.iter().enumerate())
                .map(|(k, x)| {
                    let scale = 1.0 + 0.01 * (a + b) as f64;
                    md::forces::Slot::Value(table.number(format!("{a}.{b}.{k}"), x * scale))
                })
                .collect();
            let row = table.row(&slots);
            pairs.set(a, b, row, 2.5);
        }
    }
    Entry::boxed(E::ABOUT.name, table, PairLaw::<E, F>::new(pairs, Special::default()))
}

/// The best time of each, in ns an atom, taken by turns.
fn race(liquid: &Liquid, racers: &mut [Evaluator], rounds: usize) -> Vec<f64> {
    let n = liquid.positions.len() as f64;
    let mut best = vec![f64::INFINITY; racers.len()];
    let mut out = Forces::default();
    for _ in 0..rounds {
        for (racer, best) in racers.iter_mut().zip(&mut best) {
            racer.forces_only(&liquid.cell, &liquid.positions, &mut out).unwrap();
            let start = Instant::now();
            racer.forces_only(&liquid.cell, &liquid.positions, &mut out).unwrap();
            *best = best.min(start.elapsed().as_secs_f64() / n * 1e9);
        }
    }
    best
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(compare);
}

fn compare() {
    // words on the command line choose rows: `cargo bench --bench kernels -- avx512 morse`
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let mut ratios = serde_json::Map::new();
    println!("{:36} {:>10} {:>10} {:>7}", "ns an atom, lists given", "by hand", "automatic", "ratio");
    for (isa, precision) in Isa::available().into_iter().flat_map(|isa| PRECISIONS.map(|p| (isa, p))) {
        for types in [1, 3] {
            let liquid = Liquid::new(20, types);
            let mut row = |name: &str, hand: Box<dyn Term>, auto: Box<dyn Term>| {
                let precision_name = if precision == Precision::Double { "double" } else { "mixed" };
                let name = format!("{name}, {types} type(s), {}, {precision_name}", isa.name());
                if !wanted.iter().all(|word| name.contains(word)) {
                    return;
                }
                let mut racers = [hand, auto].map(|term| liquid.evaluator(term, isa, precision));
                let t = race(&liquid, &mut racers, 25);
                println!("{name:36} {:10.1} {:10.1} {:7.3}", t[0], t[1], t[1] / t[0]);
                ratios.insert(name, (t[1] / t[0]).into());
            };
            row(
                "lennard-jones",
                pair::<LennardJones, LennardJonesByHand>(types, &[1.0, 1.0]),
                pair::<LennardJones, Derived>(types, &[1.0, 1.0]),
            );
            row(
                "morse",
                pair::<Morse, MorseByHand>(types, &[1.0, 5.0, 1.1]),
                pair::<Morse, Derived>(types, &[1.0, 5.0, 1.1]),
            );
        }
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/outputs/bench");
    let text = serde_json::to_string_pretty(&ratios).unwrap();
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(format!("{folder}/ratios.json"), text))
        .unwrap();
}
