//! Forces that an atom exerts on its neighbours, without two tasks ever writing to the same place.
//!
//! Each atom writes the forces it exerts beside its list entries; afterwards every atom collects what its
//! neighbours wrote for it (the mirror entries).

use super::chunks::each_rank;
use super::parameters::PreparedTable;
use super::term::{ListNeed, Reach, Sink, Sums};
use super::triplet::TypeTriples;
use super::view::{Frame, Neighborhood};
use crate::neighbors::CHUNK;
use std::ops::Range;

/// Atoms whose energies depend on their neighbours as a whole: the types they may be of, and how far each sees.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The rows of triples of types.
    pub types: TypeTriples,
    /// Square of the reach for each pair of types: of a neighbour of the second seen from the first; 0 for no
    /// interaction.
    pub reach2: Vec<f64>,
    /// Which list their neighbours are in.
    pub list: usize,
}

impl Sight {
    /// Of these types, with nothing in reach yet.
    pub fn of(types: TypeTriples) -> Self {
        Self { types, reach2: Vec::new(), list: 0 }
    }
    /// The list that is needed.
    pub fn need(&self) -> ListNeed {
        let range = self.reach2.iter().fold(0.0, |m: f64, &r| m.max(r)).sqrt();
        ListNeed { range, leave_out: [false; 3], mirrors: true, single: false, double: true }
    }
    /// The reach, for what is said about it outside of kernels.
    pub fn reach(&self) -> Reach<'_> {
        Reach { list: self.list, types: self.types.types, cutoff2: &self.reach2 }
    }
    /// Whether a neighbour of type `other` at this distance (squared) is seen by an atom of type `kind`.
    #[inline(always)]
    pub fn sees(&self, kind: usize, other: usize, r2: f64) -> bool {
        r2 < self.reach2[kind * self.types.types + other]
    }
}

/// The sites of some ranks: what a kernel is to compute.
pub struct Sites<'a> {
    /// The configuration.
    pub frame: &'a Frame<'a>,
    /// Who is near whom.
    pub near: &'a Neighborhood,
    /// What is in reach.
    pub sight: &'a Sight,
    /// Prepared parameters.
    pub p: &'a PreparedTable,
    /// The ranks.
    pub ranks: Range<usize>,
    /// The forces that their atoms exert, one an entry of their rows.
    pub shares: &'a mut [[f64; 3]],
    /// Energies and virials.
    pub sums: &'a mut Sums,
}

/// The forces that atoms exert on the neighbours in their rows. Each piece of the list has memory of its own, `M`.
#[derive(Debug, Default)]
pub struct Shares<M> {
    forces: Vec<[f64; 3]>,
    pieces: Vec<(Sums, M)>,
    partial: Vec<[Sums; 1]>,
}

impl<M: Default + Send> Shares<M> {
    /// Runs `body` over chunks of sites, whose shares must be on the grid.
    pub fn each_site(
        &mut self,
        frame: &Frame,
        sight: &Sight,
        p: &PreparedTable,
        sink: &mut Sink,
        body: &(dyn Fn(Sites, &mut M) + Sync),
    ) {
        let Self { forces, pieces, .. } = self;
        let near = &frame.lists[sight.list];
        forces.clear();
        forces.resize(near.list.entries().len(), [0.0; 3]);
        pieces.resize_with(near.list.len().div_ceil(CHUNK), Default::default);
        let none = Sums::on(sink.sums.origin());
        near.list.each_piece(forces, pieces, &|ranks, shares, (sums, memory)| {
            *sums = none;
            body(Sites { frame, near, sight, p, ranks, shares, sums }, memory);
        });
        pieces.iter().for_each(|(sums, _)| sink.sums.add(sums));
    }

    /// Collects the forces into the sink. The force on an atom itself is minus the sum of its row.
    pub fn collect(&mut self, frame: &Frame, sight: &Sight, sink: &mut Sink) {
        let Self { forces, partial, .. } = self;
        let (list, near) = (sight.list, &frame.lists[sight.list]);
        let starts = near.list.starts();
        let mirrors = near.list.mirrors().unwrap_or(&[]);
        each_rank(sink, list, partial, &|ranks, out, _| {
            for (k, force) in ranks.zip(out) {
                let start = starts[k] as usize;
                for entry in start..start + near.list.row(k).len() {
                    let (own, theirs) = (forces[entry], forces[mirrors[entry] as usize]);
                    for c in 0..3 {
                        force[c] += theirs[c] - own[c];
                    }
                }
            }
        });
    }
}
