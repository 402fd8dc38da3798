//! Energies of single atoms at a place.

use super::parameters::PreparedTable;
use super::term::{Law, Prepared, Sink};
use super::view::{Frame, View};
use crate::autodiff::StackTape;
use crate::autodiff::StackVar;
use crate::autodiff::lanes::{Kernel, Lanes};
use potentials::{Coefficient, Factor, FieldEnergy, Origin, Scalar, Vec3};
use std::marker::PhantomData;

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

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], q: &[P]) -> S {
        let mut total = S::constant(0.0);
        for ((&atom, &row), &anchor) in self.atoms.iter().zip(&self.rows).zip(&self.anchors) {
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

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        frame.double(Fields { law: self, frame, p, sink });
    }
}

/// All atoms of a field, one a lane.
struct Fields<'a, 'b, E> {
    law: &'a FieldLaw<E>,
    frame: &'a Frame<'a>,
    p: &'a PreparedTable,
    sink: &'a mut Sink<'b>,
}

impl<E: FieldEnergy> Kernel<f64> for Fields<'_, '_, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Fields { law, frame, p, sink } = self;
        let tape = StackTape::<V, 64>::new();
        let blocks =
            (law.atoms.chunks(V::WIDTH)).zip(law.rows.chunks(V::WIDTH)).zip(law.anchors.chunks(V::WIDTH));
        for ((atoms, rows), anchors) in blocks {
            let full = |k: usize| if k < atoms.len() { k } else { 0 };
            let place = |k: usize| match E::ORIGIN {
                Origin::Space => frame.place(atoms[full(k)] as usize),
                Origin::Anchor => frame.from_point(anchors[full(k)], atoms[full(k)] as usize),
            };
            let q: E::Prepared<V::Parameter> = p.gather::<V, _>(|k| rows[full(k)] as usize);
            let [x, y, z] = tape.restart(std::array::from_fn(|c| V::gather(|k| place(k)[c])));
            let e = E::energy::<StackVar<V, 64>, V::Parameter>(Vec3::new(x, y, z), &q);
            let g: [V; 3] = tape.gradient(e);
            for k in 0..atoms.len() {
                let i = atoms[k] as usize;
                let charge = match E::FACTOR {
                    Factor::One => 1.0,
                    Factor::Charge => frame.charges[i],
                };
                let f = frame.grid.force(g.map(|g| -charge * g.lane(k)));
                for c in 0..3 {
                    sink.forces[i][c] += f[c];
                }
                if frame.sums {
                    sink.sums.add_energy(charge * e.value().lane(k));
                    sink.sums.add_virial(place(k), f);
                }
            }
        }
    }
}
