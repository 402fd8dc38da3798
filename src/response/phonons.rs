//! Vibrations of crystals: waves exp(i q·r) of any wave vector.
//!
//! The Hessian of a large periodic cell holds the force constants Φ between an atom of one primitive cell and all others.
//! Their Fourier sums are the dynamical matrices D(q) = Σ Φ(0κ, Rκ′) exp(i q·r)/√(m m′), whose eigenvalues are the
//! squares of frequencies (M. Born and K. Huang, Dynamical Theory of Crystal Lattices, §24). For wave vectors that fit
//! into the large cell this is exact; for others as far as forces reach no farther than half of it.

use super::modes::frequency;
use super::{Point, ResponseError};
use nalgebra::{Complex, DMatrix, Matrix3};
use std::collections::HashMap;
use std::f64::consts::TAU;

/// A crystal, found from the atoms of a cell: the translations that leave them alone.
#[derive(Clone, Debug)]
pub struct Crystal {
    /// The vectors of a primitive cell, in nm.
    pub vectors: [[f64; 3]; 3],
    /// One atom for each of its sites.
    pub sites: Vec<usize>,
    /// The site of each atom of the large cell.
    pub site_of: Vec<usize>,
    /// Which cubic lattice it is, with the edge of its cubic cell, if it is one along the axes.
    pub cubic: Option<(Cubic, f64)>,
}

/// The cubic lattices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cubic {
    /// Simple.
    Simple,
    /// Body-centred.
    Body,
    /// Face-centred.
    Face,
}

impl Cubic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Cubic::Simple => "simple cubic",
            Cubic::Body => "body-centred cubic",
            Cubic::Face => "face-centred cubic",
        }
    }
    /// The names of special wave vectors, in units of 2π over the edge (W. Setyawan and S. Curtarolo, Comput. Mater. Sci.
    /// 49, 299 (2010), tables 2 to 4).
    pub fn points(self) -> &'static [(&'static str, [f64; 3])] {
        match self {
            Cubic::Simple => {
                &[("G", [0.0; 3]), ("X", [0.0, 0.5, 0.0]), ("M", [0.5, 0.5, 0.0]), ("R", [0.5, 0.5, 0.5])]
            }
            Cubic::Body => {
                &[("G", [0.0; 3]), ("H", [0.0, 0.0, 1.0]), ("P", [0.5, 0.5, 0.5]), ("N", [0.0, 0.5, 0.5])]
            }
            Cubic::Face => &[
                ("G", [0.0; 3]),
                ("X", [0.0, 1.0, 0.0]),
                ("W", [0.5, 1.0, 0.0]),
                ("K", [0.75, 0.75, 0.0]),
                ("U", [0.25, 1.0, 0.25]),
                ("L", [0.5, 0.5, 0.5]),
            ],
        }
    }
    /// The path that is drawn unless another is asked for.
    pub fn path(self) -> &'static [&'static str] {
        match self {
            Cubic::Simple => &["G", "X", "M", "G", "R"],
            Cubic::Body => &["G", "H", "P", "G", "N"],
            Cubic::Face => &["G", "X", "W", "K", "G", "L"],
        }
    }
}

fn length(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Places of atoms in fractions of the cell, found again by where they are.
struct Places {
    fractions: Vec<[f64; 3]>,
    bins: HashMap<[i64; 3], Vec<usize>>,
    per_side: f64,
}

impl Places {
    fn new(fractions: Vec<[f64; 3]>) -> Self {
        let per_side = (fractions.len() as f64).cbrt().ceil().max(1.0);
        let mut bins: HashMap<[i64; 3], Vec<usize>> = HashMap::new();
        for (k, s) in fractions.iter().enumerate() {
            bins.entry(Self::bin(*s, per_side)).or_default().push(k);
        }
        Self { fractions, bins, per_side }
    }
    fn bin(s: [f64; 3], per_side: f64) -> [i64; 3] {
        s.map(|x| ((x - x.floor()) * per_side).floor().min(per_side - 1.0) as i64)
    }
    /// The atom at a place, within so much along each vector.
    fn at(&self, s: [f64; 3], within: f64) -> Option<usize> {
        let side = self.per_side as i64;
        let center = Self::bin(s, self.per_side);
        let near = |k: usize, x: i64| (center[k] + x).rem_euclid(side);
        for x in -1..=1 {
            for y in -1..=1 {
                for z in -1..=1 {
                    let Some(bin) = self.bins.get(&[near(0, x), near(1, y), near(2, z)]) else { continue };
                    let close = |k: &&usize| {
                        (0..3).all(|c| {
                            let d = self.fractions[**k][c] - s[c];
                            (d - d.round()).abs() < within
                        })
                    };
                    if let Some(&k) = bin.iter().find(close) {
                        return Some(k);
                    }
                }
            }
        }
        None
    }
}

impl Point<'_> {
    /// The primitive cell of the crystal that the atoms form, each of them within 10⁻⁴ of the cell of where it should be.
    ///
    /// # Errors
    /// A cell that is not periodic along all of its vectors.
    pub fn crystal(&mut self, types: &[u32]) -> Result<Crystal, ResponseError> {
        let cell = &self.state.cell;
        if cell.periodic() != [true; 3] {
            let message = "waves are of crystals: the cell must be periodic along all of its vectors";
            return Err(ResponseError::Senseless(message.into()));
        }
        let n = self.atoms();
        let fractions: Vec<[f64; 3]> =
            (0..n).map(|i| self.state.positions.fraction(i).map(|x| x - x.floor())).collect();
        let places = Places::new(fractions.clone());
        let within = 1e-4;
        let alike = |a: usize, b: usize| types[a] == types[b] && self.masses[a] == self.masses[b];
        // which atom each goes to under a translation, if the structure stays the same
        let moved = |t: [f64; 3]| -> Option<Vec<usize>> {
            (0..n)
                .map(|k| {
                    let there = places.at(std::array::from_fn(|c| fractions[k][c] + t[c]), within)?;
                    alike(k, there).then_some(there)
                })
                .collect()
        };
        let mut translations = Vec::new();
        let mut site_of = vec![usize::MAX; n];
        let mut maps = Vec::new();
        for k in (0..n).filter(|&k| alike(0, k)) {
            let t: [f64; 3] = std::array::from_fn(|c| fractions[k][c] - fractions[0][c]);
            if let Some(map) = moved(t) {
                translations.push(t);
                maps.push(map);
            }
        }
        let mut sites = Vec::new();
        for k in 0..n {
            if site_of[k] == usize::MAX {
                maps.iter().for_each(|map| site_of[map[k]] = sites.len());
                sites.push(k);
            }
        }
        // the shortest three vectors that span the smallest volume
        let basis = cell.basis();
        let mut vectors: Vec<[f64; 3]> = Vec::new();
        for t in &translations {
            for x in -1..=1 {
                for y in -1..=1 {
                    for z in -1..=1 {
                        let s = [t[0] + f64::from(x), t[1] + f64::from(y), t[2] + f64::from(z)];
                        let v = std::array::from_fn(|c| (0..3).map(|k| s[k] * basis[k][c]).sum());
                        if length(v) > 1e-6 {
                            vectors.push(v);
                        }
                    }
                }
            }
        }
        vectors.sort_by(|a, b| {
            let key = |v: &[f64; 3]| (length(*v) * 1e6).round();
            key(a).total_cmp(&key(b)).then_with(|| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal))
        });
        let volume = |a: [f64; 3], b: [f64; 3], c: [f64; 3]| {
            a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
                + a[2] * (b[0] * c[1] - b[1] * c[0])
        };
        let whole = volume(basis[0], basis[1], basis[2]).abs();
        let smallest = whole / translations.len() as f64;
        let near: Vec<[f64; 3]> = vectors.iter().copied().take(60).collect();
        let mut primitive = None;
        'search: for (i, &a) in near.iter().enumerate() {
            for (j, &b) in near[..i].iter().enumerate() {
                for &c in &near[..j] {
                    if (volume(c, b, a).abs() - smallest).abs() < 1e-3 * smallest {
                        primitive = Some(if volume(c, b, a) > 0.0 { [c, b, a] } else { [b, c, a] });
                        break 'search;
                    }
                }
            }
        }
        let vectors_of_cell = [basis[0], basis[1], basis[2]];
        let primitive = primitive.unwrap_or(vectors_of_cell);
        let shortest = vectors.first().map_or(0.0, |v| length(*v));
        let shell: Vec<_> = vectors.iter().filter(|v| length(**v) < shortest * 1.001).collect();
        // along the axes, the nearest translations have 1, 3 or 2 equal components
        let equal = |v: &[f64; 3], count: usize| {
            let most = v.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let large = v.iter().filter(|x| (x.abs() - most).abs() < 1e-3 * most).count();
            large == count && v.iter().filter(|x| x.abs() < 1e-3 * most).count() == 3 - count
        };
        let all = |count: usize| shell.iter().all(|v| equal(v, count));
        let mut unique = shell.clone();
        unique.dedup_by(|a, b| length(std::array::from_fn(|c| a[c] - b[c])) < 1e-4 * shortest);
        let cubic = match unique.len() {
            6 if all(1) => Some((Cubic::Simple, shortest)),
            8 if all(3) => Some((Cubic::Body, shortest * 2.0 / 3f64.sqrt())),
            12 if all(2) => Some((Cubic::Face, shortest * 2f64.sqrt())),
            _ => None,
        };
        Ok(Crystal { vectors: primitive, sites, site_of, cubic })
    }

    /// The force constants of a crystal: three products for each site of its primitive cell.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn force_constants(&mut self, crystal: &Crystal) -> Result<ForceConstants, ResponseError> {
        let n = self.atoms();
        let mut columns = Vec::new();
        for &atom in &crystal.sites {
            let mut of_site = Vec::new();
            for axis in 0..3 {
                let mut unit = vec![0.0; 3 * n];
                unit[3 * atom + axis] = 1.0;
                of_site.push(self.product(&unit)?);
            }
            columns.push(of_site);
        }
        let cell = &self.state.cell;
        let basis = cell.basis();
        // the nearest images of each atom, all that are equally near
        let images = |i: usize, j: usize| -> Vec<[f64; 3]> {
            let s = self.state.positions.displacement(i, j);
            let mut all = Vec::new();
            for x in -2..=2 {
                for y in -2..=2 {
                    for z in -2..=2 {
                        let s = [s[0] + f64::from(x), s[1] + f64::from(y), s[2] + f64::from(z)];
                        let d: [f64; 3] = std::array::from_fn(|c| (0..3).map(|k| s[k] * basis[k][c]).sum());
                        all.push(d);
                    }
                }
            }
            let least = all.iter().map(|d| length(*d)).fold(f64::INFINITY, f64::min);
            all.retain(|d| length(*d) < least + 1e-5 * (1.0 + least));
            all
        };
        let mut blocks = Vec::new();
        let (mut most, mut across) = (0.0f64, 0.0f64);
        for (site, &atom) in crystal.sites.iter().enumerate() {
            for j in 0..n {
                let block = Matrix3::from_fn(|b, a| columns[site][a][3 * j + b]);
                let size = block.amax();
                if size == 0.0 {
                    continue;
                }
                let images = images(atom, j);
                if atom != j {
                    most = most.max(size);
                    if images.len() > 1 {
                        across = across.max(size);
                    }
                }
                let weight = 1.0 / (self.masses[atom] * self.masses[j]).sqrt();
                blocks.push(Block { from: site, to: crystal.site_of[j], images, constants: block * weight });
            }
        }
        let across = if most > 0.0 { across / most } else { 0.0 };
        Ok(ForceConstants { sites: crystal.sites.len(), blocks, across })
    }
}

/// What an atom of the primitive cell does to another one.
#[derive(Clone, Debug)]
struct Block {
    from: usize,
    to: usize,
    images: Vec<[f64; 3]>,
    constants: Matrix3<f64>,
}

/// The force constants of a crystal, divided by the roots of the masses.
#[derive(Clone, Debug)]
pub struct ForceConstants {
    sites: usize,
    blocks: Vec<Block>,
    /// The largest constant between atoms that are equally far apart in two directions, relative to the largest of all:
    /// if it is not small, forces reach beyond half of the cell.
    pub across: f64,
}

impl ForceConstants {
    /// How many branches there are.
    pub fn branches(&self) -> usize {
        3 * self.sites
    }
    /// The angular frequencies of waves with the wave vector q (in 1/nm, 2π included), in 1/ps, ascending.
    pub fn frequencies(&self, q: [f64; 3]) -> Vec<f64> {
        let n = self.branches();
        let mut matrix = DMatrix::<Complex<f64>>::zeros(n, n);
        for block in &self.blocks {
            let mut phase = Complex::new(0.0, 0.0);
            for d in &block.images {
                let angle = q[0] * d[0] + q[1] * d[1] + q[2] * d[2];
                phase += Complex::new(angle.cos(), angle.sin());
            }
            phase /= block.images.len() as f64;
            for a in 0..3 {
                for b in 0..3 {
                    matrix[(3 * block.from + a, 3 * block.to + b)] += phase * block.constants[(b, a)];
                }
            }
        }
        let hermitian = (&matrix + matrix.adjoint()) * Complex::new(0.5, 0.0);
        let mut values: Vec<f64> = hermitian.symmetric_eigenvalues().iter().map(|x| frequency(*x)).collect();
        values.sort_by(f64::total_cmp);
        values
    }
    /// The frequencies of waves on a mesh of `per_side`³ wave vectors that fill the zone evenly.
    pub fn mesh(&self, crystal: &Crystal, per_side: usize) -> Vec<f64> {
        use rayon::prelude::*;
        let reciprocal = reciprocal(crystal.vectors);
        let step = |k: usize| (k as f64 + 0.5) / per_side as f64 - 0.5;
        (0..per_side.pow(3))
            .into_par_iter()
            .flat_map_iter(|k| {
                let s = [step(k % per_side), step(k / per_side % per_side), step(k / per_side.pow(2))];
                self.frequencies(std::array::from_fn(|c| (0..3).map(|k| s[k] * reciprocal[k][c]).sum()))
            })
            .collect()
    }
}

/// The reciprocal vectors of a cell, 2π included.
pub fn reciprocal(vectors: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let [a, b, c] = vectors;
    let bc = cross(b, c);
    let volume = a[0] * bc[0] + a[1] * bc[1] + a[2] * bc[2];
    [bc, cross(c, a), cross(a, b)].map(|v| v.map(|x| TAU * x / volume))
}
