//! Derivatives of pair energies in their parameters, and how they change along a direction, on lanes.
//!
//! For each block of neighbours the formula is recorded over dual lanes, with its prepared parameters for variables, on a tape
//! that dissolves into registers: its backward pass has ∂E/∂p and, in the tangents, d/dt ∂E/∂p. What an energy is multiplied
//! with at its cut-off is recorded on another one, since which ending it has is only seen when it runs, and no such branch may be
//! on a tape that is to dissolve. Of what is added up, the part on a grid and the part on a finer
//! one are summed apart, both exactly, so that neither the order of neighbours nor the age of the list matters. The
//! grids of each sum follow from the largest number in it, which depends on no order: sums are made with the grids they had
//! last, and again if these were not the right ones.

// Lanes look up rows of parameters without checks.
#![allow(unsafe_code)]

use super::order::{Quantity, Tangents};
use super::pair::{Block, Blocks, Fields, Formula, Prepared, TypePairs, TypeTable};
use super::parameters::PreparedTable;
use super::term::{PreparedSlopes, add_exactly};
use super::view::{Frame, Grid, Neighborhood};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{Differentiable, Dual, StackTape, StackVar, Tape, Var, written_out};
use potentials::cutoff::{Ending, EndingConstants};
use potentials::{Distance, Factor, PairEnergy, Record, Scalar};
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// For each sum (the fields of a row, then charges) the exponents of its largest values and tangents, in steps of
/// [`COARSE`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sizes(Vec<[i32; 2]>);

/// Exponents are told apart so far.
const COARSE: i32 = 4;
/// Bits of the largest number that are on the grid, and as many on the finer one; there is room for a thousand of them.
const KEPT: i32 = 42;

/// How many parameters a formula may have, and its ending beside.
const MOST: usize = 10;
/// How many steps a formula may have (with [`MOST`] variables), and an ending. Each costs time to compile, needed or not.
const STEPS: usize = 30;
const OF_ENDING: usize = 10;

/// How many fields the formula's own parameters have.
const fn own_fields<F: Formula>() -> usize {
    <Prepared<F, f64> as Record<f64>>::LEN
}

/// Whether a formula is short enough for the tape of the kernel.
pub(super) fn fits<F: Formula>() -> bool {
    if own_fields::<F>() + 2 > MOST {
        return false;
    }
    // (steps are the same whatever the numbers)
    let tape = StackTape::<f64, 1024>::new();
    let x = tape.restart([0.5; MOST]);
    let p: Prepared<F, StackVar<f64, 1024>> = Record::from_fn(|m| x[m]);
    let r = Distance::from_squared(Differentiable::lifted(1.0));
    F::Energy::energy::<StackVar<f64, 1024>, StackVar<f64, 1024>>(r, &p);
    tape.nodes() <= STEPS
}

impl Sizes {
    fn of(largest: &[[f64; 2]]) -> Self {
        let exponent = |x: f64| {
            // (nothing at all, or nothing that is a number, has no size)
            let e = if x > 0.0 && x.is_finite() { x.log2().ceil() as i32 } else { -800 };
            e.clamp(-800, 900).div_euclid(COARSE) * COARSE + COARSE
        };
        Self(largest.iter().map(|l| l.map(exponent)).collect())
    }
    /// The same where values are not looked at.
    fn of_tangents(largest: &[[f64; 2]], before: &Self) -> Self {
        let mut sizes = Self::of(largest);
        sizes.0.iter_mut().zip(&before.0).for_each(|(size, before)| size[0] = before[0]);
        sizes
    }
    /// What rounds to the grids: for values and tangents the coarse and the fine one.
    fn origins(&self) -> Vec<[[f64; 2]; 2]> {
        self.0.iter().map(|e| e.map(|e| [Grid::magic(e - KEPT), Grid::magic(e - 2 * KEPT)])).collect()
    }
}

/// What a chunk of atoms has.
struct Piece {
    /// Values and tangents, each with its rounding errors, of every field of every row.
    sums: Vec<[[f64; 2]; 2]>,
    used: Vec<bool>,
    largest: Vec<[f64; 2]>,
    /// Of each atom's charge.
    charges: Vec<(Dual<f64>, bool)>,
}

/// All pairs in a list. Values are zero where the frame does not want sums, and their changes are rounded to one grid.
pub(super) fn sum<F: Formula>(
    frame: &Frame,
    near: &Neighborhood,
    types: &TypePairs,
    table: &TypeTable,
    ending: Ending,
    p: &PreparedTable,
    sizes: &mut Sizes,
) -> PreparedSlopes {
    let (n, width) = (near.list.len(), p.width());
    let rows = types.rows.iter().map(|r| *r as usize + 1).max().unwrap_or(0);
    let kinds = RowsOfTypes::new(types, near.kinds.is_empty());
    if sizes.0.len() != width + 1 {
        *sizes = Sizes::of(&vec![[1.0; 2]; width + 1]);
    }
    loop {
        let origins = sizes.origins();
        let chunks = n.div_ceil(super::chunks::CHUNK);
        let piece = |chunk: usize| -> Piece {
            let ranks = chunk * super::chunks::CHUNK..((chunk + 1) * super::chunks::CHUNK).min(n);
            let mut piece = Piece {
                sums: vec![[[0.0; 2]; 2]; rows * width],
                used: vec![false; rows],
                largest: vec![[0.0; 2]; width + 1],
                charges: vec![(Dual::constant(0.0), false); ranks.len()],
            };
            let out = &mut piece;
            let (origins, formula) = (&origins[..], PhantomData::<F>);
            let of = OfRanks { frame, near, table, kinds: &kinds, ending, ranks, origins, out, formula };
            frame.double::<Tangents, _>(of);
            piece
        };
        let pieces: Vec<Piece> = (0..chunks).into_par_iter().map(piece).collect();
        let mut largest = vec![[0.0f64; 2]; width + 1];
        for piece in &pieces {
            for (all, one) in largest.iter_mut().zip(&piece.largest) {
                *all = [all[0].max(one[0]), all[1].max(one[1])];
            }
        }
        let right = if frame.sums { Sizes::of(&largest) } else { Sizes::of_tangents(&largest, sizes) };
        if *sizes != right {
            *sizes = right;
            continue;
        }
        let mut sums = vec![[[0.0; 2]; 2]; rows * width];
        let mut used = vec![false; rows];
        let charged = F::Energy::FACTOR == Factor::Charge;
        let mut charges = vec![(Dual::constant(0.0), false); if charged { n } else { 0 }];
        for (chunk, piece) in pieces.iter().enumerate() {
            for (all, one) in sums.iter_mut().zip(&piece.sums) {
                for ([high, low], [x, rest]) in all.iter_mut().zip(one) {
                    add_exactly(high, low, *x);
                    *low += rest;
                }
            }
            used.iter_mut().zip(&piece.used).for_each(|(all, one)| *all |= one);
            if charged {
                for (k, one) in piece.charges.iter().enumerate() {
                    charges[near.list.owner(near.list.slots()[chunk * super::chunks::CHUNK + k])] = *one;
                }
            }
        }
        let prepared = sums.iter().map(|[[v, a], [t, b]]| Dual::new(v + a, t + b)).collect();
        return PreparedSlopes { prepared, used, charges, rest: 0..0 };
    }
}

/// Which rows of parameters atoms of each type have with others.
struct RowsOfTypes {
    types: usize,
    /// For each type the rows in which it interacts.
    rows: Vec<Vec<usize>>,
    /// For each pair of types its row, as lanes look it up.
    numbers: Vec<f64>,
}

impl RowsOfTypes {
    /// `one` says that there are atoms of the first type only.
    fn new(types: &TypePairs, one: bool) -> Self {
        let n = types.types;
        let rows = |a: usize| {
            let others = if one { 0..n.min(1) } else { 0..n };
            let interact = others.map(|b| a * n + b).filter(|&of| types.cutoff2[of] > 0.0);
            let mut rows: Vec<_> = interact.map(|of| types.rows[of] as usize).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        };
        let numbers = types.rows.iter().map(|&row| f64::from(row)).collect();
        Self { types: n, rows: (0..n).map(rows).collect(), numbers }
    }
}

/// Some ranks.
struct OfRanks<'a, F> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    table: &'a TypeTable,
    kinds: &'a RowsOfTypes,
    ending: Ending,
    ranks: Range<usize>,
    origins: &'a [[[f64; 2]; 2]],
    out: &'a mut Piece,
    formula: PhantomData<F>,
}

type Taped<'t, V> = StackVar<'t, Dual<V>, STEPS>;

/// After how many blocks lanes are added up: what they hold is exact so far, and so are their sums.
const FLUSH: usize = 128;

/// A value with its tangent, each as a part on a grid and one on a finer grid.
type Parts<V> = [[V; 2]; 2];

/// Adds a slope and its change to sums, where the mask holds; or its change alone, as exactly as tangents of forces are.
#[inline(always)]
fn add<V: Lanes<Element = f64>>(
    sum: &mut Parts<V>,
    largest: &mut [V; 2],
    origins: &[[f64; 2]; 2],
    mask: V::Mask,
    slope: Dual<V>,
    values: bool,
) {
    if values {
        add_part(&mut sum[0], &mut largest[0], origins[0], mask, slope.value, true);
    }
    add_part(&mut sum[1], &mut largest[1], origins[1], mask, slope.tangent, values);
}

#[inline(always)]
fn add_part<V: Lanes<Element = f64>>(
    [coarse, fine]: &mut [V; 2],
    largest: &mut V,
    [on, finer]: [f64; 2],
    mask: V::Mask,
    x: V,
    exactly: bool,
) {
    let x = V::select(mask, x, V::constant(0.0));
    *largest = largest.max(x.abs());
    let high = (x + on) - on;
    *coarse = *coarse + high;
    if exactly {
        *fine = *fine + (((x - high) + finer) - finer);
    }
}

impl<F: Formula> Kernel<f64> for OfRanks<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let OfRanks { frame, near, table, kinds, ending, ranks, origins, out, .. } = self;
        let width = own_fields::<F>() + if F::ENDED { 2 } else { 0 };
        let mut blocks = Blocks::<V, Dual<V>>::new(frame, near);
        let mut fields = Fields::<V>::new(near, table, ending);
        let (zero, values) = (V::constant(0.0), frame.sums);
        let charged = F::Energy::FACTOR == Factor::Charge;
        let rows = out.used.len();
        let mut sums: Vec<Parts<V>> = vec![[[zero; 2]; 2]; rows * width];
        let mut largest = vec![[zero; 2]; width + 1];
        let (first, mut filled) = (ranks.start, 0);
        for rank in ranks {
            let kind = frame.kind(near, rank);
            let fourth = blocks.turn(rank);
            if !table.has(kind) {
                continue;
            }
            fields.turn(kind);
            let with = &kinds.rows[kind][..];
            let mut of_charge = [[zero; 2]; 2];
            let mut any = false;
            while let Some(block) = blocks.next() {
                let inside = fields.inside(&block);
                if V::bits(inside) == 0 {
                    continue;
                }
                any = true;
                let (e, mut slopes) = slopes::<F, V>(&fields, &block, fields.squares(inside, &block));
                // (each pair is seen from both of its atoms)
                let each =
                    if charged { fourth * block.fourth * (0.5 * frame.coulomb) } else { V::constant(0.5) };
                written_out!(for m in [0 1 2 3 4 5 6 7 8 9] {
                    if m < width {
                        slopes[m] = Quantity::times(slopes[m], each);
                    }
                });
                if charged {
                    let e = Quantity::times(e, block.fourth * frame.coulomb);
                    add(&mut of_charge, &mut largest[width], &origins[width], inside, e, values);
                }
                for &row in with {
                    let mut mask = inside;
                    if with.len() > 1 {
                        // SAFETY: there is a kind for every entry, and a row for every two types
                        let number = unsafe {
                            let rows = kinds.numbers.as_ptr().add(kind * kinds.types);
                            V::lookup(rows, near.kinds.as_ptr().add(block.entry))
                        };
                        let row = V::constant(row as f64);
                        mask = mask & number.le(row) & row.le(number);
                        if V::bits(mask) == 0 {
                            continue;
                        }
                    }
                    out.used[row] = true;
                    let sums = &mut sums[row * width..][..width];
                    written_out!(for m in [0 1 2 3 4 5 6 7 8 9] {
                        if m < width {
                            add(&mut sums[m], &mut largest[m], &origins[m], mask, slopes[m], values);
                        }
                    });
                }
                filled += 1;
                if filled == FLUSH {
                    flush(&mut sums, &mut out.sums);
                    filled = 0;
                }
            }
            if charged && any {
                let [value, tangent] = of_charge;
                let total = Dual::new(value[0].sum() + value[1].sum(), tangent[0].sum() + tangent[1].sum());
                out.charges[rank - first] = (total, true);
            }
        }
        flush(&mut sums, &mut out.sums);
        for (all, one) in out.largest.iter_mut().zip(&largest) {
            for c in 0..2 {
                for k in 0..V::WIDTH {
                    let x = one[c].lane(k);
                    all[c] = if x > all[c] { x } else { all[c] };
                }
            }
        }
    }
}

/// Adds up lanes, and begins anew.
#[inline(always)]
fn flush<V: Lanes<Element = f64>>(lanes: &mut [Parts<V>], sums: &mut [[[f64; 2]; 2]]) {
    let zero = V::constant(0.0);
    for (lanes, sums) in lanes.iter_mut().zip(sums) {
        for c in 0..2 {
            let [high, low] = &mut sums[c];
            add_exactly(high, low, lanes[c][0].sum());
            add_exactly(high, low, lanes[c][1].sum());
        }
        *lanes = [[zero; 2]; 2];
    }
}

/// The energies of some pairs, and their derivatives in the fields of their parameters.
#[inline(always)]
fn slopes<F: Formula, V: Lanes<Element = f64>>(
    fields: &Fields<V>,
    block: &Block<V, Dual<V>>,
    r2: Dual<V>,
) -> (Dual<V>, [Dual<V>; MOST]) {
    let (own, zero) = (own_fields::<F>(), V::constant(0.0));
    let mut numbers = [Dual::new(zero, zero); MOST];
    written_out!(for m in [0 1 2 3 4 5 6 7 8 9] {
        if m < own {
            numbers[m] = Dual::new(fields.number(m, block), zero);
        }
    });
    let tape = StackTape::<Dual<V>, STEPS>::new();
    let x = tape.restart(numbers);
    let p: Prepared<F, Taped<V>> = Record::from_fn(
        #[inline(always)]
        |m| x[m],
    );
    let r = Distance::from_squared(<Taped<V> as Differentiable>::lifted(r2));
    let e = F::Energy::energy::<Taped<V>, Taped<V>>(r, &p);
    let mut slopes: [Dual<V>; MOST] = tape.gradient_in_registers(e);
    if !F::ENDED {
        return (e.value(), slopes);
    }
    let constants =
        [Dual::new(fields.number(own, block), zero), Dual::new(fields.number(own + 1, block), zero)];
    // (the branch goes the same way throughout a run)
    let (e, by) = match fields.ending {
        Ending::Truncate => return (e.value(), slopes),
        Ending::Shift => ended(Ending::Shift, e.value(), r2, constants),
        Ending::ForceShift => ended(Ending::ForceShift, e.value(), r2, constants),
        Ending::Switch => ended(Ending::Switch, e.value(), r2, constants),
    };
    written_out!(for m in [0 1 2 3 4 5 6 7 8 9] {
        if m < own {
            slopes[m] = slopes[m] * by[0];
        } else if m < own + 2 {
            slopes[m] = by[m + 1 - own];
        }
    });
    (e, slopes)
}

/// An energy after its treatment at the cut-off, and the derivatives in the energy before and in the constants of the ending.
#[inline(always)]
fn ended<V: Lanes<Element = f64>>(
    ending: Ending,
    e: Dual<V>,
    r2: Dual<V>,
    [a, b]: [Dual<V>; 2],
) -> (Dual<V>, [Dual<V>; 3]) {
    let tape = StackTape::<Dual<V>, OF_ENDING>::new();
    let [e, a, b] = tape.restart([e, a, b]);
    let r = Distance::from_squared(<StackVar<Dual<V>, OF_ENDING> as Differentiable>::lifted(r2));
    let e = ending.apply(e, r, &EndingConstants { a, b });
    (e.value(), tape.gradient_in_registers(e))
}

/// Adds what atoms have with themselves: k q² times a function of parameters alone.
pub(super) fn add_own<E: PairEnergy>(
    frame: &Frame,
    types: &TypePairs,
    p: &PreparedTable,
    slopes: &mut PreparedSlopes,
) {
    let width = p.width();
    for kind in 0..types.types {
        let of = kind * (types.types + 1);
        if types.cutoff2[of] == 0.0 {
            continue;
        }
        let row = types.rows[of] as usize;
        let tape = Tape::new();
        let variables: Vec<Var> = (0..width).map(|m| tape.variable(p.field(row, m))).collect();
        let own = E::own::<Var>(&Record::from_fn(|m| variables[m]));
        let gradient = tape.gradient(own);
        let mut weight = 0.0;
        for (i, _) in frame.atoms.types.iter().enumerate().filter(|(_, t)| **t as usize == kind) {
            let q = frame.charges[i];
            let by = if E::FACTOR == Factor::Charge { frame.coulomb * q * q } else { 1.0 };
            weight += by;
            if E::FACTOR == Factor::Charge {
                let slope = &mut slopes.charges[i];
                *slope = (slope.0 + 2.0 * frame.coulomb * q * own.value(), true);
                slopes.used[row] = true;
            }
        }
        for (m, x) in variables.iter().enumerate() {
            let slope = &mut slopes.prepared[row * width + m];
            *slope = *slope + weight * gradient.of(*x);
        }
    }
}
