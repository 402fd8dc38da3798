//! Small random systems.

#[path = "../../potentials/tests/support/random.rs"]
mod random;

use md::system::{Cell, Positions};
pub use random::Random;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// How many types of atoms there are.
pub const TYPES: usize = 3;

pub fn norm(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
pub fn scaled(v: [f64; 3], k: f64) -> [f64; 3] {
    v.map(|x| x * k)
}
pub fn plus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] + b[k])
}
pub fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
/// n₁ a + n₂ b + n₃ c
pub fn combine(n: [f64; 3], vectors: [[f64; 3]; 3]) -> [f64; 3] {
    std::array::from_fn(|x| n[0] * vectors[0][x] + n[1] * vectors[1][x] + n[2] * vectors[2][x])
}

/// Atoms in a cell, and what joins them. Terms are made from this, so that a system can be turned, renumbered or
/// repeated as a whole.
#[derive(Clone, Default)]
pub struct System {
    pub name: String,
    pub vectors: Option<[[f64; 3]; 3]>,
    pub periodic: [bool; 3],
    /// Cartesian, not wrapped.
    pub points: Vec<[f64; 3]>,
    pub types: Vec<u32>,
    pub masses: Vec<f64>,
    /// What each atom is held at, Cartesian.
    pub anchors: Vec<[f64; 3]>,
    /// Chains of bonded atoms.
    pub chains: Vec<Vec<u32>>,
    /// Pairs joined by 1, 2 and 3 bonds.
    pub joined: [Vec<(u32, u32)>; 3],
    /// Atoms that a global energy takes.
    pub group: Vec<u32>,
    /// Whether excluded pairs keep a remainder.
    pub remainder: bool,
}

impl System {
    pub fn cell(&self) -> Cell {
        Cell::enclosing(self.vectors, self.periodic, &self.points).unwrap()
    }
    pub fn positions(&self, cell: &Cell) -> Positions {
        Positions::from_cartesian(cell, &self.points).unwrap()
    }
    pub fn is_periodic(&self) -> bool {
        self.periodic.contains(&true)
    }

    /// How far each atom may be moved before one of its pairs is at a distance where something is not smooth; at most
    /// 0.02 nm.
    pub fn clearance(&self, spacing: &Spacing) -> Vec<f64> {
        let cell = self.cell();
        let positions = self.positions(&cell);
        let near = |k: usize| if self.periodic[k] { -2..=2 } else { 0..=0 };
        let mut out = vec![0.02f64; self.points.len()];
        for (i, out) in out.iter_mut().enumerate() {
            for j in (0..self.points.len()).filter(|&j| j != i) {
                let (s, pair) = (positions.displacement(i, j), self.types[i] as usize * TYPES);
                let corners = &spacing.corners[pair + self.types[j] as usize];
                for a in near(0) {
                    for b in near(1) {
                        for c in near(2) {
                            let n = [a, b, c].map(f64::from);
                            let r = norm(cell.cartesian(plus(s, n)));
                            for corner in corners {
                                *out = out.min((r - corner).abs());
                            }
                        }
                    }
                }
            }
        }
        out
    }

    /// Adds an atom.
    fn add(&mut self, point: [f64; 3], random: &mut Random) {
        self.points.push(point);
        self.types.push(random.below(TYPES) as u32);
        self.masses.push(random.within(1.0, 40.0));
        let offset = scaled(random.direction(), random.within(0.05, 0.3));
        self.anchors.push(minus(point, offset));
        if random.unit() < 0.6 {
            self.group.push(self.points.len() as u32 - 1);
        }
    }

    /// Turned about the origin by a rotation matrix (rows are the images of the axes).
    pub fn turned(&self, rotation: [[f64; 3]; 3]) -> Self {
        let turn = |v: [f64; 3]| combine(v, rotation);
        System {
            vectors: self.vectors.map(|v| v.map(turn)),
            points: self.points.iter().map(|&p| turn(p)).collect(),
            anchors: self.anchors.iter().map(|&p| turn(p)).collect(),
            ..self.clone()
        }
    }

    /// Atom k is the former atom `order[k]`; chains, pairs and groups come in another order, too.
    pub fn renumbered(&self, order: &[usize]) -> Self {
        let mut new = vec![0; order.len()];
        for (k, &old) in order.iter().enumerate() {
            new[old] = k as u32;
        }
        let to = |a: u32| new[a as usize];
        let mut out = self.clone();
        for (k, &old) in order.iter().enumerate() {
            (out.points[k], out.types[k]) = (self.points[old], self.types[old]);
            (out.masses[k], out.anchors[k]) = (self.masses[old], self.anchors[old]);
        }
        // (chains keep their direction: the parameters of bonds and angles are chosen along them)
        out.chains = self.chains.iter().rev().map(|c| c.iter().map(|&a| to(a)).collect()).collect();
        out.joined =
            self.joined.clone().map(|pairs| pairs.iter().rev().map(|&(i, j)| (to(j), to(i))).collect());
        out.group = self.group.iter().rev().map(|&a| to(a)).collect();
        out
    }

    /// Repeated along the cell's vectors.
    pub fn repeated(&self, times: [usize; 3]) -> Self {
        let vectors = self.vectors.unwrap();
        let mut out = System {
            vectors: Some(std::array::from_fn(|k| scaled(vectors[k], times[k] as f64))),
            periodic: self.periodic,
            remainder: self.remainder,
            name: self.name.clone(),
            ..System::default()
        };
        let n = self.points.len() as u32;
        let mut first = 0;
        // joined are the nearest images, whose copy may be another one
        let cell = self.cell();
        let positions = self.positions(&cell);
        let inverse = nalgebra::Matrix3::from_fn(|r, c| vectors[r][c]).try_inverse().unwrap();
        let other = |i: u32, j: u32, at: [usize; 3]| {
            let (i, j) = (i as usize, j as usize);
            let near = plus(self.points[i], cell.cartesian(cell.nearest(positions.displacement(i, j))));
            let d = minus(near, self.points[j]);
            let copy: [usize; 3] = std::array::from_fn(|k| {
                let image = (0..3).map(|x| d[x] * inverse[(x, k)]).sum::<f64>().round() as i64;
                (at[k] as i64 + image).rem_euclid(times[k] as i64) as usize
            });
            j as u32 + n * ((copy[0] * times[1] + copy[1]) * times[2] + copy[2]) as u32
        };
        for a in 0..times[0] {
            for b in 0..times[1] {
                for c in 0..times[2] {
                    let shift = combine([a as f64, b as f64, c as f64], vectors);
                    out.points.extend(self.points.iter().map(|&p| plus(p, shift)));
                    out.anchors.extend(self.anchors.iter().map(|&p| plus(p, shift)));
                    out.types.extend(&self.types);
                    out.masses.extend(&self.masses);
                    out.chains.extend(self.chains.iter().map(|c| c.iter().map(|a| a + first).collect()));
                    for (out, pairs) in out.joined.iter_mut().zip(&self.joined) {
                        out.extend(pairs.iter().map(|&(i, j)| (i + first, other(i, j, [a, b, c]))));
                    }
                    first += n;
                }
            }
        }
        out
    }

    /// The same lattice in other vectors.
    pub fn in_other_vectors(&self) -> Self {
        let Some(v) = self.vectors else { return self.clone() };
        let mut w = v;
        let p = self.periodic;
        for (k, m, times) in [(1, 0, 1.0), (2, 1, -2.0), (0, 2, 1.0), (2, 0, 3.0)] {
            if p[k] && p[m] {
                w[k] = plus(w[k], scaled(w[m], times));
            }
        }
        System { vectors: Some(w), ..self.clone() }
    }
}

/// What atoms must keep from each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Spacing {
    /// No two atoms are nearer than this.
    pub least: f64,
    /// Distances at which something is not smooth, for each pair of types; no pair is within [`CLEAR`] of one.
    pub corners: Vec<Vec<f64>>,
    /// How far interactions reach.
    pub reach: f64,
}

/// How far pairs stay from distances where something is not smooth.
pub const CLEAR: f64 = 4e-3;

/// The names of the cells.
pub const CELLS: [&str; 6] =
    ["open", "orthorhombic", "triclinic", "strongly tilted", "partly periodic", "small"];

/// Vectors and periodic axes of the cell of a name, of about the volume `length`³; `small` is the length of a small one.
fn vectors(name: &str, length: f64, small: f64) -> (Option<[[f64; 3]; 3]>, [bool; 3]) {
    let (l, s) = (length, small);
    match name {
        "open" => (None, [false; 3]),
        "orthorhombic" => (Some([[l, 0.0, 0.0], [0.0, 1.1 * l, 0.0], [0.0, 0.0, 0.92 * l]]), [true; 3]),
        // (left-handed, and not along any axis)
        "triclinic" => (
            Some([[0.95 * l, 0.1 * l, 0.0], [0.2 * l, 0.3 * l, 1.05 * l], [0.25 * l, l, 0.1 * l]]),
            [true; 3],
        ),
        "strongly tilted" => {
            (Some([[l, 0.0, 0.0], [2.3 * l, l, 0.0], [-1.7 * l, 3.4 * l, 1.05 * l]]), [true; 3])
        }
        "partly periodic" => {
            (Some([[l, 0.0, 0.0], [0.1 * l, 1.05 * l, 0.15 * l], [0.3 * l, 0.0, l]]), [true, false, true])
        }
        "small" => (Some([[s, 0.0, 0.0], [0.15 * s, 1.05 * s, 0.0], [0.0, -0.1 * s, 1.02 * s]]), [true; 3]),
        _ => unreachable!(),
    }
}

/// Atoms at random places, as far from each other as `spacing` says.
pub fn scattered(name: &'static str, spacing: &Spacing) -> Arc<System> {
    type Known = Mutex<HashMap<String, Arc<System>>>;
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let key = format!("{name} {spacing:?}");
    let known = KNOWN.get_or_init(Known::default);
    if let Some(system) = known.lock().unwrap().get(&key) {
        return system.clone();
    }
    let density = 0.4 / spacing.least.powi(3);
    let small = 0.8 * 2.0 * spacing.reach;
    let length = (70.0 / density).cbrt().max(2.05 * spacing.reach);
    let length = if name == "small" { small } else { length };
    let atoms = (density * length.powi(3)).round() as usize;
    let system = Arc::new(at_random(name, name, spacing, length, small, atoms));
    known.lock().unwrap().insert(key, system.clone());
    system
}

/// A periodic cell that is shorter than the reach.
pub fn tiny(spacing: &Spacing) -> System {
    let length = 0.8 * spacing.reach;
    let atoms = ((0.3 * (length / spacing.least).powi(3)) as usize).clamp(2, 12);
    let corners = vec![vec![]; TYPES * TYPES];
    let smooth = Spacing { corners, least: 0.9 * spacing.least, ..spacing.clone() };
    let mut system = at_random("tiny", "small", &smooth, length, length, atoms);
    system.joined = Default::default();
    system
}

fn at_random(name: &str, cell: &str, spacing: &Spacing, length: f64, small: f64, atoms: usize) -> System {
    let (vectors, periodic) = vectors(cell, length, small);
    let mut random = Random::of(name);
    let mut system =
        System { name: name.into(), vectors, periodic, remainder: name != "triclinic", ..System::default() };
    let frame = vectors.unwrap_or([[length, 0.0, 0.0], [0.0, length, 0.0], [0.0, 0.0, length]]);
    let shape = Cell::new(frame, periodic).unwrap();
    let bounds = periodic.map(|p| if p { 2 } else { 0 });
    let mut images = Vec::new();
    for a in -bounds[0]..=bounds[0] {
        for b in -bounds[1]..=bounds[1] {
            images.extend((-bounds[2]..=bounds[2]).map(|c| shape.cartesian([a, b, c].map(f64::from))));
        }
    }
    let wrap = |p: [f64; 3]| {
        let s = shape.fraction(p);
        shape.cartesian(std::array::from_fn(|k| if periodic[k] { s[k] - s[k].floor() } else { s[k] }))
    };
    let mut tries = 0;
    while system.points.len() < atoms {
        tries += 1;
        assert!(tries < 1_000_000, "no room for {atoms} atoms in {name}");
        let point = combine([random.unit(), random.unit(), random.unit()], frame);
        let kind = random.below(TYPES) as u32;
        let here = wrap(point);
        let mut near: Vec<_> = system.points.iter().zip(&system.types).map(|(&p, &t)| (wrap(p), t)).collect();
        near.push((here, kind));
        let fits = near.iter().enumerate().all(|(j, &(p, t))| {
            let itself = j == system.points.len();

            let corners = &spacing.corners[kind as usize * TYPES + t as usize];
            images.iter().all(|&image| {
                let r = norm(plus(minus(p, here), image));
                // its own images are at fixed distances, which only have to be clear of corners
                (itself && r < 1e-9)
                    || ((itself || r > spacing.least) && corners.iter().all(|c| (r - c).abs() > CLEAR))
            })
        });
        if fits {
            // some atoms have left the cell
            let away = std::array::from_fn(|k| {
                if periodic[k] && random.unit() < 0.3 { random.below(3) as f64 - 1.0 } else { 0.0 }
            });
            system.add(plus(point, combine(away, frame)), &mut random);
            *system.types.last_mut().unwrap() = kind;
        }
    }
    system.joined = joined(&system, &mut random);
    system
}

/// Some pairs of near atoms, said to be 1, 2 or 3 bonds apart.
fn joined(system: &System, random: &mut Random) -> [Vec<(u32, u32)>; 3] {
    let cell = system.cell();
    let positions = system.positions(&cell);
    let n = system.points.len();
    let half = 0.48 * cell.heights().iter().copied().fold(f64::INFINITY, f64::min);
    let mut pairs = Vec::new();
    for i in 0..n {
        for j in 0..i {
            let r = norm(cell.cartesian(cell.nearest(positions.displacement(i, j))));
            if r < half.min(0.9) {
                pairs.push((i as u32, j as u32));
            }
        }
    }
    let order = random.shuffled(pairs.len());
    let mut out: [Vec<(u32, u32)>; 3] = Default::default();
    for (k, &p) in order.iter().take(30).enumerate() {
        out[k % 3].push(pairs[p]);
    }
    out
}

/// Chains of five atoms with stretched bonds and nearly straight angles among them.
pub fn chains(name: &'static str) -> System {
    let (vectors, periodic) = vectors(name, 1.6, 1.0);
    let mut random = Random::of(name);
    let mut system = System { name: name.into(), vectors, periodic, ..System::default() };
    let frame = vectors.unwrap_or([[1.6, 0.0, 0.0], [0.0, 1.6, 0.0], [0.0, 0.0, 1.6]]);
    for chain in 0..20 {
        let mut at = combine([random.unit(), random.unit(), random.unit()], frame);
        let mut last: Option<[f64; 3]> = None;
        let first = system.points.len() as u32;
        for k in 0..5 {
            system.add(at, &mut random);
            let bend = match (chain, k) {
                (0, 2) => Some(1e-3),
                (1 | 2, 2) => Some(0.05),
                (3, 1) => Some(0.2),
                _ => None,
            };
            let d = match (bend, last) {
                (Some(bend), Some(l)) => {
                    let aside = cross(l, random.direction());
                    let d = plus(l, scaled(aside, bend / norm(aside)));
                    scaled(d, 1.0 / norm(d))
                }
                (_, Some(l)) => loop {
                    let d = random.direction();
                    if norm(cross(d, l)) > 0.4 {
                        break d;
                    }
                },
                _ => random.direction(),
            };
            let stretched = random.unit() < 0.2;
            let length = if stretched { random.within(0.25, 0.32) } else { random.within(0.09, 0.2) };
            at = plus(at, scaled(d, length));
            last = Some(d);
        }
        system.chains.push((first..first + 5).collect());
    }
    system
}
