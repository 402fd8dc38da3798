//! Crystal lattices: sites in a repeated cell.

use std::fmt;
use std::str::FromStr;

/// The lattices, with the fractional coordinates of their sites in the conventional cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatticeKind {
    /// Simple cubic: (0, 0, 0).
    Sc,
    /// Body-centred cubic: (0, 0, 0), (½, ½, ½). With two species: caesium chloride.
    Bcc,
    /// Face-centred cubic: (0, 0, 0), (0, ½, ½), (½, 0, ½), (½, ½, 0).
    Fcc,
    /// Diamond: the four sites of [`LatticeKind::Fcc`], and then the same moved by (¼, ¼, ¼). With one
    /// species on the sites 0 to 3 and another on 4 to 7: zinc blende.
    Diamond,
}

impl LatticeKind {
    /// All lattices.
    pub const ALL: [LatticeKind; 4] =
        [LatticeKind::Sc, LatticeKind::Bcc, LatticeKind::Fcc, LatticeKind::Diamond];

    /// The name: `sc`, `bcc`, `fcc`, `diamond`.
    pub fn name(self) -> &'static str {
        match self {
            LatticeKind::Sc => "sc",
            LatticeKind::Bcc => "bcc",
            LatticeKind::Fcc => "fcc",
            LatticeKind::Diamond => "diamond",
        }
    }

    /// The fractional coordinates of the sites of one cell.
    pub fn basis(self) -> &'static [[f64; 3]] {
        const SITES: [[f64; 3]; 8] = [
            [0.0, 0.0, 0.0],
            [0.0, 0.5, 0.5],
            [0.5, 0.0, 0.5],
            [0.5, 0.5, 0.0],
            [0.25, 0.25, 0.25],
            [0.25, 0.75, 0.75],
            [0.75, 0.25, 0.75],
            [0.75, 0.75, 0.25],
        ];
        match self {
            LatticeKind::Sc => &SITES[..1],
            LatticeKind::Bcc => &[[0.0, 0.0, 0.0], [0.5, 0.5, 0.5]],
            LatticeKind::Fcc => &SITES[..4],
            LatticeKind::Diamond => &SITES,
        }
    }
}

impl fmt::Display for LatticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why there is no such lattice.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LatticeError {
    /// No lattice has that name.
    #[error("`{0}` is no lattice (sc, bcc, fcc, diamond)")]
    Unknown(String),
    /// An edge of the cell is not a length.
    #[error("a lattice constant must be above 0, not {0}")]
    Constant(f64),
    /// A density is not above 0.
    #[error("a number density must be above 0, not {0}")]
    Density(f64),
    /// No repetition along an axis.
    #[error("a lattice must be repeated at least once along each axis, not {0:?}")]
    Empty([usize; 3]),
    /// More sites than a 32-bit index can tell apart.
    #[error("a lattice repeated {0:?} has too many sites")]
    TooLarge([usize; 3]),
}

impl FromStr for LatticeKind {
    type Err = LatticeError;

    fn from_str(name: &str) -> Result<Self, LatticeError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| LatticeError::Unknown(name.into()))
    }
}

/// A block of lattice cells, with one corner at the origin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lattice {
    kind: LatticeKind,
    constant: [f64; 3],
    repeat: [usize; 3],
}

/// A site of a [`Lattice`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Site {
    /// Position, in the unit of the lattice constant.
    pub position: [f64; 3],
    /// Which site of its cell it is: an index into [`LatticeKind::basis`].
    pub basis: usize,
}

impl Lattice {
    /// `repeat` cells along x, y and z whose edges are `constant` long.
    ///
    /// Fails if a constant is not a positive number, a repetition is 0, or the sites are more than 2³².
    pub fn new(kind: LatticeKind, constant: [f64; 3], repeat: [usize; 3]) -> Result<Self, LatticeError> {
        if let Some(&a) = constant.iter().find(|a| !(a.is_finite() && **a > 0.0)) {
            return Err(LatticeError::Constant(a));
        }
        if repeat.contains(&0) {
            return Err(LatticeError::Empty(repeat));
        }
        let sites = repeat.iter().try_fold(kind.basis().len(), |n, &r| n.checked_mul(r));
        if sites.is_none_or(|n| u32::try_from(n).is_err()) {
            return Err(LatticeError::TooLarge(repeat));
        }
        Ok(Lattice { kind, constant, repeat })
    }

    /// A cubic lattice with `density` sites in a unit of volume: its constant is ∛(sites of a cell / density).
    pub fn with_density(kind: LatticeKind, density: f64, repeat: [usize; 3]) -> Result<Self, LatticeError> {
        if !(density.is_finite() && density > 0.0) {
            return Err(LatticeError::Density(density));
        }
        let a = (kind.basis().len() as f64 / density).cbrt();
        Self::new(kind, [a; 3], repeat)
    }

    /// The kind of lattice.
    pub fn kind(&self) -> LatticeKind {
        self.kind
    }

    /// The edges of one lattice cell.
    pub fn constant(&self) -> [f64; 3] {
        self.constant
    }

    /// The number of lattice cells along x, y and z.
    pub fn repeat(&self) -> [usize; 3] {
        self.repeat
    }

    /// The number of sites.
    pub fn len(&self) -> usize {
        self.kind.basis().len() * self.repeat.iter().product::<usize>()
    }

    /// False: a lattice always has sites.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vectors a, b, c of the whole block, as rows.
    pub fn cell(&self) -> [[f64; 3]; 3] {
        let [x, y, z] = [0, 1, 2].map(|k| self.constant[k] * self.repeat[k] as f64);
        [[x, 0.0, 0.0], [0.0, y, 0.0], [0.0, 0.0, z]]
    }

    /// The sites, cell by cell (z runs fastest, then y, then x), and in each cell in the order of the basis.
    pub fn sites(&self) -> impl Iterator<Item = Site> + use<> {
        let Lattice { kind, constant, repeat: [nx, ny, nz] } = *self;
        let cells = (0..nx).flat_map(move |x| (0..ny).flat_map(move |y| (0..nz).map(move |z| [x, y, z])));
        cells.flat_map(move |cell| {
            kind.basis().iter().enumerate().map(move |(basis, site)| Site {
                position: [0, 1, 2].map(|k| (cell[k] as f64 + site[k]) * constant[k]),
                basis,
            })
        })
    }

    /// The positions of all sites, in the order of [`Lattice::sites`].
    pub fn positions(&self) -> Vec<[f64; 3]> {
        self.sites().map(|s| s.position).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance² to the nearest neighbours across the periodic block, and their number, per site.
    fn shell(lattice: &Lattice) -> Vec<(f64, usize)> {
        let cell = lattice.cell();
        let all = lattice.positions();
        let distance2 = |a: &[f64; 3], b: &[f64; 3]| {
            let along = |k: usize| a[k] - b[k] - ((a[k] - b[k]) / cell[k][k]).round() * cell[k][k];
            (0..3).map(|k| along(k).powi(2)).sum::<f64>()
        };
        let of = |i: usize| {
            let others = (0..all.len()).filter(|&j| j != i).map(|j| distance2(&all[i], &all[j]));
            let others: Vec<f64> = others.collect();
            let nearest = others.iter().copied().fold(f64::INFINITY, f64::min);
            (nearest, others.iter().filter(|&&d| d < nearest * 1.000_001).count())
        };
        (0..all.len()).map(of).collect()
    }

    #[test]
    fn every_site_has_the_neighbours_of_its_lattice() {
        // Nearest distance in lattice constants: 1, √3/2, √2/2, √3/4; neighbours: 6, 8, 12, 4.
        let known = [(1.0, 6), (3.0 / 4.0, 8), (1.0 / 2.0, 12), (3.0 / 16.0, 4)];
        for (kind, (distance2, neighbours)) in LatticeKind::ALL.into_iter().zip(known) {
            let lattice = Lattice::new(kind, [0.5; 3], [3; 3]).unwrap();
            assert_eq!(lattice.len(), 27 * kind.basis().len());
            for (d2, n) in shell(&lattice) {
                approx::assert_relative_eq!(d2, distance2 * 0.25, max_relative = 1e-12);
                assert_eq!(n, neighbours, "{kind}");
            }
        }
    }

    #[test]
    fn sites_know_their_basis() {
        let lattice = Lattice::new(LatticeKind::Bcc, [1.0, 2.0, 3.0], [1, 1, 2]).unwrap();
        let sites: Vec<Site> = lattice.sites().collect();
        assert_eq!(sites[3], Site { position: [0.5, 1.0, 4.5], basis: 1 });
        assert_eq!(sites.iter().map(|s| s.basis).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(lattice.cell(), [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 6.0]]);
    }

    #[test]
    fn density_gives_the_constant() {
        let lattice = Lattice::with_density(LatticeKind::Fcc, 0.8442, [4; 3]).unwrap();
        let volume: f64 = (0..3).map(|k| lattice.cell()[k][k]).product();
        approx::assert_relative_eq!(256.0 / volume, 0.8442, max_relative = 1e-14);
    }

    #[test]
    fn what_is_no_lattice_is_refused() {
        let new = |a, n| Lattice::new(LatticeKind::Fcc, [1.0, a, 1.0], [1, n, 1]);
        assert_eq!(new(0.0, 1), Err(LatticeError::Constant(0.0)));
        assert!(matches!(new(f64::NAN, 1), Err(LatticeError::Constant(_))));
        assert_eq!(new(1.0, 0), Err(LatticeError::Empty([1, 0, 1])));
        assert_eq!(new(1.0, usize::MAX), Err(LatticeError::TooLarge([1, usize::MAX, 1])));
        assert_eq!("hcp".parse::<LatticeKind>(), Err(LatticeError::Unknown("hcp".into())));
        assert_eq!("fcc".parse(), Ok(LatticeKind::Fcc));
    }
}
