//! Where the atoms are, as plain numbers and as numbers with derivatives.

use crate::neighbors::{Exclusions, Neighbor, NeighborError, VerletList};
use crate::system::{Atoms, Cell, Positions};
use potentials::{Scalar, Vec3};

/// A neighbour list with what its kernels read.
#[derive(Debug)]
pub struct Neighborhood {
    /// The list.
    pub list: VerletList,
    /// The positions as rows of fractions, continuous since the list was built.
    pub rows: Vec<[f64; 4]>,
    /// The image vectors of the list, as numbers.
    pub images: Vec<[f64; 3]>,
    /// The pairs left out of it.
    pub exclusions: Option<Exclusions>,
}

impl Neighborhood {
    /// The vector from atom i to a neighbour of its, in nm.
    #[inline(always)]
    pub fn vector(&self, cell: &Cell, i: usize, n: Neighbor) -> [f64; 3] {
        let (a, b, image) = (&self.rows[i], &self.rows[n.j as usize], &self.images[n.shift as usize]);
        cell.cartesian([(b[0] - a[0]) + image[0], (b[1] - a[1]) + image[1], (b[2] - a[2]) + image[2]])
    }
    /// Brings the list and what is read with it up to date.
    ///
    /// # Errors
    /// Where there can be no such list.
    pub fn update(&mut self, positions: &Positions, cell: &Cell) -> Result<(), NeighborError> {
        if self.list.update(positions, cell, self.exclusions.as_ref())? {
            self.images.clear();
            self.images.extend(self.list.shifts().iter().map(|s| s.map(f64::from)));
        }
        self.list.rows(positions, &mut self.rows);
        Ok(())
    }
    /// Whether the entry stands for its pair where each pair is to be counted once: the one with j > i, and of an
    /// atom and its own images the lexicographically positive one.
    #[inline(always)]
    pub fn counts(&self, i: usize, n: Neighbor) -> bool {
        n.j as usize > i || (n.j as usize == i && self.list.shifts()[n.shift as usize] > [0; 3])
    }
}

/// A configuration, ready for evaluation.
pub struct Frame<'a> {
    /// The atoms.
    pub atoms: &'a Atoms,
    /// The cell.
    pub cell: &'a Cell,
    /// The positions.
    pub positions: &'a Positions,
    /// Who is near whom.
    pub lists: &'a [Neighborhood],
    /// Charges in e, one an atom.
    pub charges: &'a [f64],
    /// Coulomb's constant.
    pub coulomb: f64,
}

impl Frame<'_> {
    /// The vector from atom i to the nearest image of atom j.
    #[inline]
    pub fn nearest(&self, i: usize, j: usize) -> [f64; 3] {
        self.cell.cartesian(self.cell.nearest(self.positions.displacement(i, j)))
    }
    /// The place of atom i, followed through periodic images.
    #[inline]
    pub fn place(&self, i: usize) -> [f64; 3] {
        self.positions.cartesian(self.cell, i)
    }
    /// The vector to atom i from a point given in fractions of the cell: its nearest image.
    #[inline]
    pub fn from_point(&self, point: [f64; 3], i: usize) -> [f64; 3] {
        let (s, periodic) = (self.positions.fraction(i), self.cell.periodic());
        let d = std::array::from_fn(|k| {
            let d = s[k] - point[k];
            if periodic[k] { d - d.round_ties_even() } else { d }
        });
        self.cell.cartesian(self.cell.nearest(d))
    }
}

/// A configuration whose atoms are moved by small displacements and whose space is strained, both in numbers `S`
/// that may carry derivatives: a vector d between atoms i and j becomes (1 + ε)(d + δⱼ − δᵢ).
///
/// The values are exactly those that the fast path computes, since the displacements are added to the same
/// plain vectors.
pub struct View<'a, S> {
    /// The configuration.
    pub frame: &'a Frame<'a>,
    /// δ, one an atom; `None` for none.
    pub moves: Option<&'a [Vec3<S>]>,
    /// ε; `None` for none.
    pub strain: Option<[[S; 3]; 3]>,
}

impl<S: Scalar> View<'_, S> {
    #[inline]
    fn strained(&self, d: Vec3<S>) -> Vec3<S> {
        match &self.strain {
            None => d,
            Some(e) => {
                let row = |k: usize| e[k][0] * d.x + e[k][1] * d.y + e[k][2] * d.z;
                Vec3::new(d.x + row(0), d.y + row(1), d.z + row(2))
            }
        }
    }
    #[inline]
    fn between(&self, i: usize, j: usize, [x, y, z]: [f64; 3]) -> Vec3<S> {
        match self.moves {
            Some(m) if i != j => {
                let d = m[j] - m[i];
                self.strained(Vec3::new(d.x + x, d.y + y, d.z + z))
            }
            _ => self.strained(Vec3::constant([x, y, z])),
        }
    }
    #[inline]
    fn moved(&self, i: usize, [x, y, z]: [f64; 3]) -> Vec3<S> {
        match self.moves {
            Some(m) => self.strained(Vec3::new(m[i].x + x, m[i].y + y, m[i].z + z)),
            None => self.strained(Vec3::constant([x, y, z])),
        }
    }
    /// The vector from atom i to a neighbour in the list.
    #[inline]
    pub fn to_neighbor(&self, i: usize, n: Neighbor, near: &Neighborhood) -> Vec3<S> {
        self.between(i, n.j as usize, near.vector(self.frame.cell, i, n))
    }
    /// The vector from atom i to the nearest image of atom j.
    #[inline]
    pub fn nearest(&self, i: usize, j: usize) -> Vec3<S> {
        self.between(i, j, self.frame.nearest(i, j))
    }
    /// The positions of bonded atoms relative to the first, each nearest to the one before.
    #[inline]
    pub fn chain<const N: usize>(&self, atoms: &[u32; N]) -> [Vec3<S>; N] {
        let plain = self.frame.chain(atoms);
        std::array::from_fn(|k| self.between(atoms[0] as usize, atoms[k] as usize, plain[k]))
    }
    /// The place of atom i, followed through periodic images.
    #[inline]
    pub fn place(&self, i: usize) -> Vec3<S> {
        self.moved(i, self.frame.place(i))
    }
    /// The vector to atom i from a point given in fractions of the cell (which moves with the cell).
    #[inline]
    pub fn from_point(&self, point: [f64; 3], i: usize) -> Vec3<S> {
        self.moved(i, self.frame.from_point(point, i))
    }
}

impl Frame<'_> {
    /// The positions of bonded atoms relative to the first, each nearest to the one before.
    #[inline]
    pub fn chain<const N: usize>(&self, atoms: &[u32; N]) -> [[f64; 3]; N] {
        let mut r = [[0.0; 3]; N];
        for k in 1..N {
            let d = self.nearest(atoms[k - 1] as usize, atoms[k] as usize);
            r[k] = std::array::from_fn(|a| r[k - 1][a] + d[a]);
        }
        r
    }
}
