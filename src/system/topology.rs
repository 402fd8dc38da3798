//! What joins atoms: bonds, and what follows from them.

use std::collections::VecDeque;

/// Bonded tuples of atoms (numbers from 0).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Pairs.
    pub bonds: Vec<[u32; 2]>,
    /// Triples, the middle atom second.
    pub angles: Vec<[u32; 3]>,
    /// Chains of four.
    pub dihedrals: Vec<[u32; 4]>,
    /// Fours of any shape, as listed.
    pub impropers: Vec<[u32; 4]>,
}

/// The neighbours of each of `n` atoms along the bonds, sorted.
pub fn partners(n: usize, bonds: &[[u32; 2]]) -> Vec<Vec<u32>> {
    let mut partners = vec![Vec::new(); n];
    for &[a, b] in bonds {
        partners[a as usize].push(b);
        partners[b as usize].push(a);
    }
    for p in &mut partners {
        p.sort_unstable();
        p.dedup();
    }
    partners
}

/// Every angle between two bonds of an atom.
pub fn angles_of(n: usize, bonds: &[[u32; 2]]) -> Vec<[u32; 3]> {
    let mut angles = Vec::new();
    for (middle, around) in partners(n, bonds).iter().enumerate() {
        for (k, &a) in around.iter().enumerate() {
            angles.extend(around[k + 1..].iter().map(|&b| [a, middle as u32, b]));
        }
    }
    angles
}

/// Every chain of four atoms along three bonds.
pub fn dihedrals_of(n: usize, bonds: &[[u32; 2]]) -> Vec<[u32; 4]> {
    let partners = partners(n, bonds);
    let mut dihedrals = Vec::new();
    for b in 0..n as u32 {
        for &c in partners[b as usize].iter().filter(|&&c| c > b) {
            for &a in partners[b as usize].iter().filter(|&&a| a != c) {
                let ends = partners[c as usize].iter().filter(|&&d| d != b && d != a);
                dihedrals.extend(ends.map(|&d| [a, b, c, d]));
            }
        }
    }
    dihedrals
}

impl Topology {
    /// The pairs (i < j) of `n` atoms whose shortest path has 1, 2 and 3 bonds.
    pub fn joined(&self, n: usize) -> [Vec<(u32, u32)>; 3] {
        let partners = partners(n, &self.bonds);
        let mut joined: [Vec<(u32, u32)>; 3] = Default::default();
        let mut distance = vec![u8::MAX; n];
        for i in 0..n {
            let (mut seen, mut queue) = (vec![i], VecDeque::from([i]));
            distance[i] = 0;
            while let Some(a) = queue.pop_front() {
                if distance[a] == 3 {
                    continue;
                }
                for &b in &partners[a] {
                    let b = b as usize;
                    if distance[b] == u8::MAX {
                        distance[b] = distance[a] + 1;
                        seen.push(b);
                        queue.push_back(b);
                        if b > i {
                            joined[distance[b] as usize - 1].push((i as u32, b as u32));
                        }
                    }
                }
            }
            seen.into_iter().for_each(|a| distance[a] = u8::MAX);
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branched_chain() {
        // 0-1-2-3, and 4 on 1
        let bonds = [[0, 1], [1, 2], [2, 3], [1, 4]];
        assert_eq!(angles_of(5, &bonds), [[0, 1, 2], [0, 1, 4], [2, 1, 4], [1, 2, 3]]);
        assert_eq!(dihedrals_of(5, &bonds), [[0, 1, 2, 3], [4, 1, 2, 3]]);
        let joined = Topology { bonds: bonds.to_vec(), ..Topology::default() }.joined(5);
        assert_eq!(joined[0], [(0, 1), (1, 2), (1, 4), (2, 3)]);
        assert_eq!(joined[1], [(0, 2), (0, 4), (1, 3), (2, 4)]);
        assert_eq!(joined[2], [(0, 3), (3, 4)]);
    }

    #[test]
    fn a_ring_of_four_has_no_pair_three_bonds_apart() {
        let bonds = [[0, 1], [1, 2], [2, 3], [3, 0]];
        let joined = Topology { bonds: bonds.to_vec(), ..Topology::default() }.joined(4);
        assert_eq!([joined[0].len(), joined[1].len(), joined[2].len()], [4, 2, 0]);
        assert_eq!(dihedrals_of(4, &bonds).len(), 4);
    }
}
