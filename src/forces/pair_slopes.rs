//! Derivatives of pair energies in their parameters, and how they change along a direction, on lanes.
//!
//! For each block of neighbours the formula is recorded over dual lanes, with its prepared parameters for variables: its
//! backward pass has ∂E/∂p and, in the tangents, d/dt ∂E/∂p. Of what is added up, the part on a grid and the part on a finer
//! one are summed apart, both exactly, so that neither the order of neighbours nor the age of the list matters. The
//! grids of each sum follow from the largest number in it, which depends on no order: sums are made with the grids they had
//! last, and again if these were not the right ones.

use super::order::{Quantity, Tangents};
use super::pair::{Blocks, Fields, Formula, Prepared, TypePairs, TypeTable};
use super::parameters::PreparedTable;
use super::term::{PreparedSlopes, add_exactly};
use super::view::{Frame, Grid, Neighborhood};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{Adjoints, Differentiable, Dual, InlineTape, Tape, Var};
use potentials::cutoff::{Ending, EndingConstants};
use potentials::{Both, Distance, Factor, PairEnergy, Record, Scalar};
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

impl Sizes {
    fn of(largest: &[[f64; 2]]) -> Self {
        let exponent = |x: f64| {
            // (nothing at all, or nothing that is a number, has no size)
            let e = if x > 0.0 && x.is_finite() { x.log2().ceil() as i32 } else { -800 };
            e.clamp(-800, 900).div_euclid(COARSE) * COARSE + COARSE
        };
        Self(largest.iter().map(|l| l.map(exponent)).collect())
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

/// All pairs in a list.
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
            let (origins, formula) = (&origins, PhantomData::<F>);
            frame.double::<Tangents, _>(OfRanks {
                frame,
                near,
                types,
                table,
                ending,
                ranks,
                width,
                origins,
                out,
                formula,
            });
            piece
        };
        let pieces: Vec<Piece> = (0..chunks).into_par_iter().map(piece).collect();
        let mut largest = vec![[0.0f64; 2]; width + 1];
        for piece in &pieces {
            for (all, one) in largest.iter_mut().zip(&piece.largest) {
                *all = [all[0].max(one[0]), all[1].max(one[1])];
            }
        }
        let right = Sizes::of(&largest);
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

/// Some ranks.
struct OfRanks<'a, F> {
    frame: &'a Frame<'a>,
    near: &'a Neighborhood,
    types: &'a TypePairs,
    table: &'a TypeTable,
    ending: Ending,
    ranks: Range<usize>,
    width: usize,
    origins: &'a [[[f64; 2]; 2]],
    out: &'a mut Piece,
    formula: PhantomData<F>,
}

type On<V> = InlineTape<Dual<V>>;
type Recorded<'t, V> = Var<'t, Dual<V>, On<V>>;

impl<F: Formula> Kernel<f64> for OfRanks<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let OfRanks { frame, near, types, table, ending, ranks, width, origins, out, .. } = self;
        let mut blocks = Blocks::<V, Dual<V>>::new(frame, near);
        let mut fields = Fields::<V>::new(near, table, ending);
        let (mut tape, mut adjoints) = (On::<V>::default(), Adjoints::default());
        let zero = V::constant(0.0);
        let uniform = table.is_uniform() || near.kinds.is_empty();
        let charged = F::Energy::FACTOR == Factor::Charge;
        let mut lanes: Vec<[[V; 2]; 2]> = vec![[[zero; 2]; 2]; width + 1];
        let mut largest = vec![[zero; 2]; width + 1];
        let mut of_kinds: Vec<[[f64; 2]; 2]> = vec![[[0.0; 2]; 2]; types.types * width];
        let first = ranks.start;
        for rank in ranks {
            let kind = frame.kind(near, rank);
            let fourth = blocks.turn(rank);
            if !table.has(kind) {
                continue;
            }
            fields.turn(kind);
            lanes.fill([[zero; 2]; 2]);
            of_kinds.fill([[0.0; 2]; 2]);
            let mut any = false;
            while let Some(block) = blocks.next() {
                let inside = fields.inside(&block);
                if V::bits(inside) == 0 {
                    continue;
                }
                any = true;
                tape.reset();
                let r2 = Recorded::<V>::lifted(fields.squares(inside, &block));
                // (parameters come first: they are the nodes from 1 on)
                let number = |m: usize| tape.variable(Dual::new(fields.number(m, &block), zero));
                let e = formula::<F, V>(fields.ending, r2, number);
                tape.gradient_into(e, &mut adjoints);
                // (each pair is seen from both of its atoms)
                let each =
                    if charged { fourth * block.fourth * (0.5 * frame.coulomb) } else { V::constant(0.5) };
                let entry = block.entry;
                let by = block.fourth * frame.coulomb;
                for m in 0..=width {
                    let slope = match m < width {
                        true => Quantity::times(adjoints.of_node(m as u32 + 1), each),
                        false if charged => Quantity::times(e.value(), by),
                        false => break,
                    };
                    for (c, x) in [slope.value, slope.tangent].into_iter().enumerate() {
                        let x = V::select(inside, x, zero);
                        let size = x.abs();
                        largest[m][c] = V::select(largest[m][c].lt(size), size, largest[m][c]);
                        let coarse = (x + origins[m][c][0]) - origins[m][c][0];
                        let fine = ((x - coarse) + origins[m][c][1]) - origins[m][c][1];
                        for (d, x) in [coarse, fine].into_iter().enumerate() {
                            if uniform || m == width {
                                lanes[m][c][d] = lanes[m][c][d] + x;
                            } else {
                                for k in 0..V::WIDTH.min(near.kinds.len() - entry) {
                                    of_kinds[near.kinds[entry + k] as usize * width + m][c][d] += x.lane(k);
                                }
                            }
                        }
                    }
                }
                if !uniform {
                    let bits = V::bits(inside);
                    for k in (0..V::WIDTH).filter(|k| bits >> k & 1 == 1) {
                        let of = kind * types.types + near.kinds[entry + k] as usize;
                        out.used[types.rows[of] as usize] = true;
                    }
                }
            }
            if !any {
                continue;
            }
            let mut put = |row: usize, m: usize, c: usize, sums: [f64; 2]| {
                let [high, low] = &mut out.sums[row * width + m][c];
                sums.into_iter().for_each(|x| add_exactly(high, low, x));
            };
            let total = |[coarse, fine]: [V; 2]| [coarse.sum(), fine.sum()];
            for c in 0..2 {
                if uniform {
                    let row = types.rows[kind * types.types] as usize;
                    (0..width).for_each(|m| put(row, m, c, total(lanes[m][c])));
                } else {
                    for (k, sums) in of_kinds.iter().enumerate() {
                        let row = types.rows[kind * types.types + k / width] as usize;
                        put(row, k % width, c, sums[c]);
                    }
                }
            }
            if uniform {
                out.used[types.rows[kind * types.types] as usize] = true;
            }
            if charged {
                let [value, tangent] = [0, 1].map(|c| {
                    let [coarse, fine] = total(lanes[width][c]);
                    coarse + fine
                });
                out.charges[rank - first] = (Dual::new(value, tangent), true);
            }
        }
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

/// The formula with its parameters for variables.
#[inline(always)]
fn formula<'t, F: Formula, V: Lanes<Element = f64>>(
    ending: Ending,
    r2: Recorded<'t, V>,
    number: impl FnMut(usize) -> Recorded<'t, V>,
) -> Recorded<'t, V> {
    let r = Distance::from_squared(r2);
    if F::ENDED {
        let p: Both<Prepared<F, Recorded<'t, V>>, EndingConstants<Recorded<'t, V>>> = Record::from_fn(number);
        let e = F::Energy::energy::<Recorded<'t, V>, Recorded<'t, V>>(r, &p.first);
        ending.apply(e, r, &p.second)
    } else {
        let p: Prepared<F, Recorded<'t, V>> = Record::from_fn(number);
        F::Energy::energy::<Recorded<'t, V>, Recorded<'t, V>>(r, &p)
    }
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
