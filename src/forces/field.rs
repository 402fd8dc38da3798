//! Energies of single atoms at a place.

use super::order::{Order, Quantity};
use super::parameters::PreparedTable;
use super::term::{Law, Prepared, Sink};
use super::view::{Frame, View};
use crate::autodiff::StackTape;
use crate::autodiff::lanes::{Kernel, Lanes};
use potentials::{Coefficient, Factor, FieldEnergy, Origin, Scalar, Vec3};
use std::marker::PhantomData;
use std::ops::Range;

/// An energy of each of certain atoms at its place.
pub struct FieldLaw<E> {
    atoms: Vec<u32>,
    rows: Vec<u32>,
    anchors: Vec<[f64; 3]>,
    energy: PhantomData<E>,
}

impl<E: FieldEnergy> FieldLaw<E> {
    /// For each atom its number, the row of its parameters and its anchor in fractions of the cell (which moves
    /// with the cell; unused by fields in space).
    pub fn new(atoms: impl IntoIterator<Item = (u32, u32, [f64; 3])>) -> Self {
        let mut law = Self { atoms: Vec::new(), rows: Vec::new(), anchors: Vec::new(), energy: PhantomData };
        for (atom, row, anchor) in atoms {
            law.atoms.push(atom);
            law.rows.push(row);
            law.anchors.push(anchor);
        }
        law
    }
}

impl<E: FieldEnergy> Law for FieldLaw<E> {
    type Energy = E;

    /// (its atoms are at places)
    fn translates(&self) -> bool {
        false
    }

    fn items(&self, _: usize) -> usize {
        self.atoms.len()
    }
    fn takes_charges(&self) -> bool {
        E::FACTOR == Factor::Charge
    }

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        q: &[P],
        items: Range<usize>,
    ) -> S {
        let mut total = S::constant(0.0);
        for k in items {
            let (atom, row, anchor) = (self.atoms[k], self.rows[k], self.anchors[k]);
            let i = atom as usize;
            let x = match E::ORIGIN {
                Origin::Space => view.place(i),
                Origin::Anchor => view.from_point(anchor, i),
            };
            let e = E::energy(x, &p[row as usize]);
            total = total
                + match E::FACTOR {
                    Factor::One => e,
                    Factor::Charge => q[i] * e,
                };
        }
        total
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        frame.double::<O, _>(Fields { law: self, frame, p, sink, order: PhantomData::<O> });
    }
}

/// All atoms of a field, one a lane.
struct Fields<'a, 'b, O, E> {
    law: &'a FieldLaw<E>,
    frame: &'a Frame<'a>,
    p: &'a PreparedTable,
    sink: &'a mut Sink<'b>,
    order: PhantomData<O>,
}

impl<O: Order, E: FieldEnergy> Kernel<f64> for Fields<'_, '_, O, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Fields { law, frame, p, sink, .. } = self;
        let tape = StackTape::<O::Quantity<V>, 64>::new();
        let grid = V::constant(frame.grid.force_origin());
        let blocks =
            (law.atoms.chunks(V::WIDTH)).zip(law.rows.chunks(V::WIDTH)).zip(law.anchors.chunks(V::WIDTH));
        for ((atoms, rows), anchors) in blocks {
            let full = |k: usize| if k < atoms.len() { k } else { 0 };
            let place = |k: usize| -> [O::One; 3] {
                let i = atoms[full(k)] as usize;
                let place = match E::ORIGIN {
                    Origin::Space => frame.place(i),
                    Origin::Anchor => frame.from_point(anchors[full(k)], i),
                };
                frame.moving(i, place)
            };
            let charge = |k: usize| match E::FACTOR {
                Factor::One => 1.0,
                Factor::Charge => frame.charges[atoms[full(k)] as usize],
            };
            let q: E::Prepared<V::Parameter> = p.gather::<V, _>(|k| rows[full(k)] as usize);
            let [x, y, z] = tape.restart(std::array::from_fn(|c| O::Quantity::<V>::gather(|k| place(k)[c])));
            let e = O::Quantity::<V>::field::<E>(Vec3::new(x, y, z), &q);
            let charges = <V as Lanes>::gather(charge);
            let g: [O::Quantity<V>; 3] = tape.gradient(e);
            let f = O::Quantity::<V>::spill(g.map(|g| (-g).times(charges).rounded(grid)));
            for k in 0..atoms.len() {
                let (i, f) = (atoms[k] as usize, [f[0][k], f[1][k], f[2][k]]);
                for c in 0..3 {
                    sink.forces[i][c] += f[c].result();
                }
                if frame.sums {
                    sink.sums.add_energy(e.value().times(charges).result().lane(k));
                    sink.sums.add_virial(place(k), f);
                }
            }
        }
    }
}
