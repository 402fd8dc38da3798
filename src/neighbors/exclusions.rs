//! Pairs of atoms that do not interact.

/// Why a list of excluded pairs is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExclusionError {
    /// An index beyond the number of atoms.
    #[error("an exclusion names atom {atom}, but there are {atoms} atoms (counted from 0)")]
    Atom {
        /// The index.
        atom: u32,
        /// Number of atoms.
        atoms: usize,
    },
    /// An atom is to be excluded from itself.
    #[error("an exclusion names atom {atom} twice")]
    Itself {
        /// The index.
        atom: u32,
    },
}

/// Excluded pairs of atoms, as a sorted list for each atom; always symmetric.
///
/// Only the nearest image of an excluded pair is left out of a neighbour list: its other periodic images
/// interact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    starts: Vec<usize>,
    partners: Vec<u32>,
}

impl Exclusions {
    /// Exclusions among `atoms` atoms from pairs of indices, in any order; doubles count once.
    ///
    /// # Errors
    /// An index that is not below `atoms`, or a pair of an atom with itself.
    pub fn from_pairs(
        atoms: usize,
        pairs: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Exclusions, ExclusionError> {
        let mut all = Vec::new();
        for (i, j) in pairs {
            for atom in [i, j] {
                if atom as usize >= atoms {
                    return Err(ExclusionError::Atom { atom, atoms });
                }
            }
            if i == j {
                return Err(ExclusionError::Itself { atom: i });
            }
            all.extend([(i, j), (j, i)]);
        }
        all.sort_unstable();
        all.dedup();
        let mut starts = Vec::with_capacity(atoms + 1);
        let mut end = 0;
        starts.push(0);
        for i in 0..atoms {
            end += all[end..].iter().take_while(|pair| pair.0 as usize == i).count();
            starts.push(end);
        }
        Ok(Exclusions { starts, partners: all.into_iter().map(|pair| pair.1).collect() })
    }

    /// Exclusions from a list for each atom; what only one of a pair says holds for both.
    ///
    /// # Errors
    /// As [`Exclusions::from_pairs`].
    pub fn from_lists(lists: &[Vec<u32>]) -> Result<Exclusions, ExclusionError> {
        let pairs = lists.iter().zip(0u32..).flat_map(|(list, i)| list.iter().map(move |&j| (i, j)));
        Exclusions::from_pairs(lists.len(), pairs)
    }

    /// The atoms that atom i does not see, ascending; none for an index beyond the last atom.
    #[inline]
    pub fn of(&self, i: usize) -> &[u32] {
        match self.starts.get(i..).and_then(|s| s.get(..2)) {
            Some(&[start, end]) => &self.partners[start..end],
            _ => &[],
        }
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of excluded pairs.
    pub fn pairs(&self) -> usize {
        self.partners.len() / 2
    }
}
