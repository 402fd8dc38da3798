//! The adjoint of many steps with few of their states kept: binomial checkpointing.
//!
//! A backward pass through l steps needs their states in reverse. With room for s of them (snapshots), states between
//! snapshots are computed again from the nearest one before. Placed by binomial coefficients, snapshots allow
//!
//! l ≤ β(s, r) = (s + r)! / (s! r!)
//!
//! steps where no step is taken again more than r times, and the fewest steps taken forward in all, as many as
//!
//! t(l, s) = r l − β(s + 1, r − 1), with β(s, r − 1) < l ≤ β(s, r)
//!
//! (A. Griewank and A. Walther, ACM Trans. Math. Softw. 26, 19 (2000)): 10 snapshots serve 1,001 steps with none taken
//! again more than 4 times, 100 snapshots 5,151 with 2. Beside these each step is taken once more by [`Steps::pull_back`] itself.
//!
//! The adjoint does not depend on it: the states are the same bits, and so is what is computed from them.
//!
//! If the number of steps is known only when the last is taken, snapshots are moved while the run goes on
//! ([`online`]; Q. Wang, P. Moin and G. Iaccarino, SIAM J. Sci. Comput. 31, 2549 (2009)): no step is taken again
//! more often than with known length, and only few more in all.

use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// A computation by steps: a state, and what one step makes of it.
pub trait Steps {
    /// Everything the next step depends on.
    type State: Clone;
    /// The adjoint of a state, and of whatever else steps depend on.
    type Adjoint;
    /// Takes step number `step` (from 0).
    fn advance(&mut self, state: &mut Self::State, step: usize);
    /// The backward pass through step number `step`, which begins at this state: turns the adjoint of the state after it
    /// into that of this state.
    fn pull_back(&mut self, state: &Self::State, step: usize, adjoint: &mut Self::Adjoint);
}

/// What it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps taken forward, those of the first run included, those within [`Steps::pull_back`] not.
    pub forward: u64,
    /// Steps pulled back.
    pub backward: u64,
    /// States put away.
    pub stored: u64,
    /// The most states that were put away at a time.
    pub snapshots: usize,
}

/// Where snapshots are kept.
pub trait Store<T> {
    /// Keeps a state.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn put(&mut self, step: usize, state: &T) -> io::Result<()>;
    /// Gives it back, in the memory of another one.
    ///
    /// # Errors
    /// If it cannot be read.
    fn get(&mut self, step: usize, state: &mut T) -> io::Result<()>;
    /// Forgets it.
    fn drop(&mut self, step: usize);
}

/// Snapshots in memory.
#[derive(Clone, Debug)]
pub struct InMemory<T>(BTreeMap<usize, T>);

impl<T> Default for InMemory<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> Store<T> for InMemory<T> {
    fn put(&mut self, step: usize, state: &T) -> io::Result<()> {
        self.0.insert(step, state.clone());
        Ok(())
    }
    fn get(&mut self, step: usize, state: &mut T) -> io::Result<()> {
        let none = || io::Error::other(format!("there is no snapshot of step {step}"));
        state.clone_from(self.0.get(&step).ok_or_else(none)?);
        Ok(())
    }
    fn drop(&mut self, step: usize) {
        self.0.remove(&step);
    }
}

/// Snapshots as files of a temporary folder, which goes when this does.
#[derive(Debug)]
pub struct OnDisk(tempfile::TempDir);

impl OnDisk {
    /// In a new folder within this one.
    ///
    /// # Errors
    /// If there can be none.
    pub fn within(folder: &std::path::Path) -> io::Result<Self> {
        tempfile::Builder::new().prefix("snapshots-").tempdir_in(folder).map(Self)
    }
    fn path(&self, step: usize) -> PathBuf {
        self.0.path().join(step.to_string())
    }
}

impl<T: Serialize + DeserializeOwned> Store<T> for OnDisk {
    fn put(&mut self, step: usize, state: &T) -> io::Result<()> {
        std::fs::write(self.path(step), postcard::to_stdvec(state).map_err(io::Error::other)?)
    }
    fn get(&mut self, step: usize, state: &mut T) -> io::Result<()> {
        *state = postcard::from_bytes(&std::fs::read(self.path(step))?).map_err(io::Error::other)?;
        Ok(())
    }
    fn drop(&mut self, step: usize) {
        // (what cannot be removed goes with the folder)
        _ = std::fs::remove_file(self.path(step));
    }
}

/// β(s, r) = (s + r)! / (s! r!): how many steps s snapshots allow where none is taken again more than r times.
pub fn reach(snapshots: usize, repeats: usize) -> u128 {
    let (few, all) = (snapshots.min(repeats) as u128, (snapshots + repeats) as u128);
    // (each quotient is a binomial coefficient itself; what overflows is more than any number of steps)
    (1..=few).try_fold(1u128, |b, k| Some(b.checked_mul(all - few + k)? / k)).unwrap_or(u128::MAX)
}

/// How often steps must be taken again: the smallest r with l ≤ β(s, r).
///
/// # Panics
/// Without snapshots.
pub fn repeats(steps: usize, snapshots: usize) -> usize {
    assert!(snapshots > 0, "at least the first state is kept");
    (0..).find(|&r| steps as u128 <= reach(snapshots, r)).unwrap_or(0)
}

/// t(l, s): the fewest steps taken forward, those of the first run included.
///
/// # Panics
/// Without snapshots.
pub fn fewest(steps: usize, snapshots: usize) -> u128 {
    let r = repeats(steps, snapshots);
    if r == 0 { 0 } else { (r * steps) as u128 - reach(snapshots + 1, r - 1) }
}

/// How many of l steps to take before the next snapshot, with s of them in all (the one at the beginning included).
fn stride(steps: usize, snapshots: usize) -> usize {
    let r = repeats(steps, snapshots);
    let after = reach(snapshots - 1, r - 1);
    reach(snapshots, r - 1).min(steps as u128 - after) as usize
}

struct Run<'a, P: Steps, T> {
    process: &'a mut P,
    store: &'a mut T,
    /// Makes the adjoint of the last state, which is none before.
    last: &'a mut dyn FnMut(&P::State) -> P::Adjoint,
    adjoint: Option<P::Adjoint>,
    counts: Counts,
    kept: usize,
}

impl<P: Steps, T: Store<P::State>> Run<'_, P, T> {
    fn put(&mut self, step: usize, state: &P::State) -> io::Result<()> {
        self.store.put(step, state)?;
        self.counts.stored += 1;
        self.kept += 1;
        self.counts.snapshots = self.counts.snapshots.max(self.kept);
        Ok(())
    }
    fn drop(&mut self, step: usize) {
        self.store.drop(step);
        self.kept -= 1;
    }
    fn advance(&mut self, state: &mut P::State, from: usize, to: usize) {
        for step in from..to {
            self.process.advance(state, step);
        }
        self.counts.forward += (to - from) as u64;
    }
    /// Goes back from the end of steps `from..to` to their beginning, whose state is kept, with that many snapshots, it
    /// included. What stands in `state` is overwritten.
    fn back(&mut self, state: &mut P::State, from: usize, to: usize, snapshots: usize) -> io::Result<()> {
        self.store.get(from, state)?;
        self.back_from(state, from, to, snapshots)
    }
    /// The same, with the state at hand.
    fn back_from(
        &mut self,
        state: &mut P::State,
        from: usize,
        to: usize,
        snapshots: usize,
    ) -> io::Result<()> {
        match to - from {
            0 => Ok(()),
            1 => {
                self.pull_back(state, from);
                Ok(())
            }
            steps => {
                let middle = from + if snapshots > 1 { stride(steps, snapshots) } else { steps - 1 };
                self.advance(state, from, middle);
                if snapshots > 1 {
                    self.put(middle, state)?;
                    self.back_from(state, middle, to, snapshots - 1)?;
                    self.drop(middle);
                } else {
                    self.pull_back(state, middle);
                }
                self.back(state, from, middle, snapshots)
            }
        }
    }
    fn pull_back(&mut self, state: &P::State, step: usize) {
        if self.adjoint.is_none() {
            let mut end = state.clone();
            self.advance(&mut end, step, step + 1);
            self.adjoint = Some((self.last)(&end));
        }
        if let Some(adjoint) = &mut self.adjoint {
            self.process.pull_back(state, step, adjoint);
            self.counts.backward += 1;
        }
    }
    /// The adjoint of the first state.
    fn finish(self, start: &P::State) -> (P::Adjoint, Counts) {
        (self.adjoint.unwrap_or_else(|| (self.last)(start)), self.counts)
    }
}

/// The adjoint of the state before the first of `steps` steps, where `last` makes the adjoint of the state after the last,
/// with no more than `snapshots` states kept at a time (the first one included). See [`fewest`] for what it takes; the last
/// step is taken once more, for `last`.
///
/// # Errors
/// If a snapshot cannot be kept or read.
///
/// # Panics
/// Without snapshots.
///
/// ```
/// use md::autodiff::checkpointing::{InMemory, Steps, checkpointed, fewest};
/// // x ← x², n times: x^(2ⁿ)
/// struct Square;
/// impl Steps for Square {
///     type State = f64;
///     type Adjoint = f64;
///     fn advance(&mut self, x: &mut f64, _: usize) {
///         *x *= *x;
///     }
///     fn pull_back(&mut self, x: &f64, _: usize, adjoint: &mut f64) {
///         *adjoint *= 2.0 * x;
///     }
/// }
/// let (adjoint, counts) = checkpointed(&mut Square, &1.01, 10, 3, InMemory::default(), |_| 1.0).unwrap();
/// assert!((adjoint / (1024.0 * 1.01f64.powi(1023)) - 1.0).abs() < 1e-12);
/// assert_eq!((counts.snapshots, counts.forward as u128), (3, fewest(10, 3) + 1));
/// ```
pub fn checkpointed<P: Steps, T: Store<P::State>>(
    process: &mut P,
    start: &P::State,
    steps: usize,
    snapshots: usize,
    mut store: T,
    mut last: impl FnMut(&P::State) -> P::Adjoint,
) -> io::Result<(P::Adjoint, Counts)> {
    assert!(snapshots > 0, "at least the first state is kept");
    let (store, last) = (&mut store, &mut last);
    let mut run = Run { process, store, last, adjoint: None, counts: Counts::default(), kept: 0 };
    run.put(0, start)?;
    run.back_from(&mut start.clone(), 0, steps, snapshots)?;
    Ok(run.finish(start))
}

/// A snapshot of a run of unknown length.
#[derive(Clone, Copy, Debug)]
struct Placed {
    step: usize,
    level: usize,
}

/// The same where the number of steps is not known: `more(state, step)` says whether a step is to be taken from this state,
/// and `last` makes the adjoint of the state where none is.
///
/// A snapshot can be dispensed with where a later one has a higher level. Where none can, the latest one moves on by a step
/// and rises by a level.
///
/// # Errors
/// If a snapshot cannot be kept or read.
///
/// # Panics
/// Without snapshots.
pub fn online<P: Steps, T: Store<P::State>>(
    process: &mut P,
    start: &P::State,
    snapshots: usize,
    mut store: T,
    mut more: impl FnMut(&P::State, usize) -> bool,
    mut last: impl FnMut(&P::State) -> P::Adjoint,
) -> io::Result<(P::Adjoint, Counts)> {
    assert!(snapshots > 0, "at least the first state is kept");
    let (store, last) = (&mut store, &mut last);
    let mut run = Run { process, store, last, adjoint: None, counts: Counts::default(), kept: 0 };
    // (the first one is never dispensed with)
    let mut placed = vec![Placed { step: 0, level: usize::MAX }];
    run.put(0, start)?;
    let (mut state, mut step) = (start.clone(), 0);
    while more(&state, step) {
        run.advance(&mut state, step, step + 1);
        step += 1;
        let mut highest = 0;
        let mut needless = None;
        for (k, one) in placed.iter().enumerate().skip(1).rev() {
            if one.level < highest {
                needless = Some(k);
                break;
            }
            highest = highest.max(one.level);
        }
        let level = if placed.len() < snapshots {
            0
        } else if let Some(k) = needless {
            run.drop(placed.remove(k).step);
            0
        } else if placed.len() > 1 {
            let latest = placed[placed.len() - 1];
            placed.pop();
            run.drop(latest.step);
            latest.level + 1
        } else {
            continue;
        };
        placed.push(Placed { step, level });
        run.put(step, &state)?;
    }
    run.adjoint = Some((run.last)(&state));
    // (from each snapshot to the next, with the room that later ones have left)
    let mut end = step;
    for (before, one) in placed.iter().enumerate().rev() {
        run.back(&mut state, one.step, end, snapshots - before)?;
        if one.step > 0 {
            run.drop(one.step);
        }
        end = one.step;
    }
    Ok(run.finish(start))
}
