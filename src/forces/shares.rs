//! Forces that an atom exerts on its neighbours, without two tasks ever writing to the same place.
//!
//! Each atom writes the forces it exerts beside its list entries; afterwards every atom collects what its
//! neighbours wrote for it (the mirror entries).

use super::chunks::{Body, CHUNK, each_rank};
use super::term::{Sink, Sums};
use super::view::Neighborhood;
use rayon::prelude::*;

/// The forces that atoms exert on the neighbours in their rows.
#[derive(Debug, Default)]
pub struct Shares {
    forces: Vec<[f64; 3]>,
    partial: Vec<Sums>,
}

impl Shares {
    /// Runs `body` over chunks of atoms: it is given the atoms, their rows of shares one after the other, and the
    /// sums. Then forces are collected into the sink. The force on an atom itself is minus the sum of its row.
    /// Chunks are of ranks of the list, and shares must be on the grid.
    pub fn each_site(&mut self, list: usize, near: &Neighborhood, sink: &mut Sink, body: Body<[f64; 3]>) {
        let Self { forces, partial } = self;
        let (starts, n) = (near.list.starts(), sink.forces.len());
        forces.clear();
        forces.resize(near.list.entries().len(), [0.0; 3]);
        partial.clear();
        partial.resize(n.div_ceil(CHUNK), Sums::on(sink.sums.origin()));
        // chunks of atoms own disjoint ranges of entries
        let mut rest = &mut forces[..];
        let mut tasks = Vec::with_capacity(partial.len());
        for (chunk, sums) in partial.iter_mut().enumerate() {
            let (first, last) = (chunk * CHUNK, (chunk * CHUNK + CHUNK).min(n));
            let (own, others) = rest.split_at_mut((starts[last] - starts[first]) as usize);
            rest = others;
            tasks.push((first..last, own, sums));
        }
        tasks.into_par_iter().for_each(|(atoms, own, sums)| body(atoms, own, sums));
        partial.iter().for_each(|s| sink.sums.add(s));
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
