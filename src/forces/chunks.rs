//! Parallel loops whose results do not depend on the number of threads: fixed chunks, added up in order.

use super::term::{Sink, Sums};
use rayon::prelude::*;

/// Atoms or interactions a task.
pub const CHUNK: usize = 64;

/// For every atom i: `f(scratch, i, force, sums)` adds to its force and to the sums. Each atom is computed by one
/// task, which owns its force.
pub fn each_atom<X>(
    sink: &mut Sink,
    partial: &mut Vec<Sums>,
    scratch: impl Fn() -> X + Sync,
    f: impl Fn(&mut X, usize, &mut [f64; 3], &mut Sums) + Sync,
) {
    partial.clear();
    partial.resize(sink.forces.len().div_ceil(CHUNK), Sums::default());
    let tasks = sink.forces.par_chunks_mut(CHUNK).zip(partial.par_iter_mut()).enumerate();
    tasks.for_each_init(&scratch, |x, (chunk, (forces, sums))| {
        for (k, force) in forces.iter_mut().enumerate() {
            f(x, chunk * CHUNK + k, force, sums);
        }
    });
    partial.iter().for_each(|s| sink.sums.add(s));
}
