//! Derivatives in the parameters of terms.
//!
//! Each interaction is recorded by itself on a small tape that is used again, in dual numbers: its backward pass gives
//! ∂e/∂p of the prepared parameters p, and how that changes along the frame's [direction](super::Direction), which is
//! −∂f/∂p along it. What rows of parameters gather goes back through preparation and mixing to the numbers as
//! they were written.

use super::parameters::PreparedTable;
use crate::autodiff::{Adjoints, Dual, Tape, Var};
use potentials::{Energy, Record, Scalar};
use rayon::prelude::*;
use std::ops::Range;

/// A variable of the small tapes.
pub type Variable<'t> = Var<'t, Dual<f64>>;

/// How the energy depends on a number in the input.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSlope {
    /// The number: the term and its label, or the label of a charge.
    pub name: String,
    /// The number itself.
    pub at: f64,
    /// ∂E/∂θ.
    pub slope: f64,
    /// The derivative of that along a direction: −∂F/∂θ·v, and −∂W/∂θ:ε̇.
    pub along: f64,
    /// Whether there is any interaction that the number is part of. (If not, both derivatives are zero.)
    pub matters: bool,
}

/// ∂E/∂p of a term for the fields of all its prepared rows, and ∂E/∂q for the charges of all atoms, with tangents.
#[derive(Debug)]
pub struct Slopes {
    width: usize,
    fields: Vec<Dual<f64>>,
    /// Which of them are part of an interaction.
    known: Vec<bool>,
    /// For charges.
    pub charges: Vec<Dual<f64>>,
    /// Which charges are part of an interaction.
    pub charged: Vec<bool>,
}

impl Slopes {
    /// Nothing yet, for these parameters and some atoms.
    pub fn new(p: &PreparedTable, atoms: usize) -> Self {
        let zero = Dual::constant(0.0);
        Self {
            width: p.width(),
            fields: vec![zero; p.width() * p.count()],
            known: vec![false; p.width() * p.count()],
            charges: vec![zero; atoms],
            charged: vec![false; atoms],
        }
    }
    /// ∂E/∂p of a field, if it takes part in anything.
    pub fn field(&self, row: usize, field: usize) -> Option<Dual<f64>> {
        let at = row * self.width + field;
        self.known[at].then(|| self.fields[at])
    }
    /// Notes that an atom's charge multiplies e.
    pub fn charge(&mut self, atom: usize, e: Dual<f64>) {
        self.charges[atom] = self.charges[atom] + e;
        self.charged[atom] = true;
    }
    /// Adds what was found for other atoms (in the place of these charges) or other interactions.
    fn add(&mut self, o: &Slopes, atoms: Range<usize>) {
        self.fields.iter_mut().zip(&o.fields).for_each(|(a, &b)| *a = *a + b);
        self.known.iter_mut().zip(&o.known).for_each(|(a, b)| *a |= b);
        let charges = self.charges[atoms.clone()].iter_mut().zip(&mut self.charged[atoms]);
        for ((q, charged), k) in charges.zip(0..) {
            *q = *q + o.charges[k];
            *charged |= o.charged[k];
        }
    }

    /// Adds what `body` finds, with charges of all atoms by their numbers.
    pub fn serially(&mut self, p: &PreparedTable, body: impl FnOnce(&mut Recording)) {
        let n = self.charges.len();
        let mut recording = Recording::new(p, n);
        body(&mut recording);
        self.add(&recording.slopes, 0..n);
    }

    /// Runs `body` over chunks of `n` things and adds up what they find, in order. If these are `atoms`, the body notes
    /// charges of its own atoms only, by their number within the chunk.
    pub fn each_chunk(
        &mut self,
        p: &PreparedTable,
        n: usize,
        atoms: bool,
        body: &(dyn Fn(Range<usize>, &mut Recording) + Sync),
    ) {
        // (few chunks: each has room for all parameters)
        let size = n.div_ceil(64).max(16);
        let found: Vec<Slopes> = (0..n.div_ceil(size))
            .into_par_iter()
            .map(|chunk| {
                let range = chunk * size..((chunk + 1) * size).min(n);
                let own = if atoms { range.len() } else { 0 };
                let mut recording = Recording::new(p, own);
                body(range, &mut recording);
                recording.slopes
            })
            .collect();
        for (chunk, found) in found.iter().enumerate() {
            let first = chunk * size;
            self.add(found, if atoms { first..(first + size).min(n) } else { 0..0 });
        }
    }
}

/// Interactions, recorded one after the other.
pub struct Recording<'a> {
    p: &'a PreparedTable,
    tape: Tape<Dual<f64>>,
    adjoints: Adjoints<Dual<f64>>,
    /// What has been found.
    pub slopes: Slopes,
}

impl<'a> Recording<'a> {
    /// Of these parameters and some atoms.
    pub fn new(p: &'a PreparedTable, atoms: usize) -> Self {
        Self { p, tape: Tape::new(), adjoints: Adjoints::default(), slopes: Slopes::new(p, atoms) }
    }

    /// Differentiates an interaction in the fields of some rows.
    pub fn interaction<E: Energy>(
        &mut self,
        rows: &[usize],
        e: impl for<'t> FnOnce(&'t Tape<Dual<f64>>, &[E::Prepared<Variable<'t>>]) -> Variable<'t>,
    ) {
        let Self { p, tape, adjoints, slopes } = self;
        tape.reset();
        let width = slopes.width;
        let variable = |row: usize| {
            let row: E::Prepared<Variable> =
                Record::from_fn(|k| tape.variable(Dual::passive(p.field(row, k))));
            row
        };
        let parameters: Vec<_> = rows.iter().map(|&row| variable(row)).collect();
        let e = e(tape, &parameters);
        if rows.iter().any(|&row| slopes.known[row * width..(row + 1) * width].contains(&false)) {
            let known = tape.dependencies(e);
            for (row, parameters) in rows.iter().zip(&parameters) {
                for k in 0..width {
                    slopes.known[*row * width + k] |= known[parameters.field(k).node() as usize];
                }
            }
        }
        tape.backward(&[(e, Dual::constant(1.0))], adjoints);
        for (&row, parameters) in rows.iter().zip(&parameters) {
            for (k, field) in slopes.fields[row * width..(row + 1) * width].iter_mut().enumerate() {
                *field = *field + adjoints.of(parameters.field(k));
            }
        }
    }
}

/// A number of which no derivative is wanted.
pub fn fixed<'t>(x: Dual<f64>) -> Variable<'t> {
    potentials::dual::Differentiable::lifted(x)
}
