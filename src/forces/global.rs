//! Energies of a group of atoms as a whole.

use super::order::{Order, Quantity, Single};
use super::parameters::PreparedTable;
use super::term::{Law, Prepared, Sink};
use super::view::{Frame, View};
use crate::autodiff::{Tape, Var};
use potentials::{Coefficient, GlobalEnergy, Scalar, Vec3};
use std::marker::PhantomData;
use std::ops::Range;

/// An energy of a group of atoms.
pub struct GlobalLaw<E> {
    atoms: Vec<u32>,
    energy: PhantomData<E>,
}

impl<E: GlobalEnergy> GlobalLaw<E> {
    /// Of these atoms.
    pub fn new(atoms: Vec<u32>) -> Self {
        Self { atoms, energy: PhantomData }
    }
    fn masses(&self, frame: &Frame) -> Vec<f64> {
        self.atoms.iter().map(|&i| frame.atoms.masses[i as usize]).collect()
    }
}

impl<E: GlobalEnergy> Law for GlobalLaw<E> {
    type Energy = E;

    /// (its atoms are at places)
    fn translates(&self) -> bool {
        false
    }

    fn items(&self, _: usize) -> usize {
        1
    }

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        _: &[P],
        _: Range<usize>,
    ) -> S {
        let places: Vec<_> = self.atoms.iter().map(|&i| view.place(i as usize)).collect();
        E::energy(&places, &self.masses(view.frame), &p[0])
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        // the whole group is one function: its own tape
        let tape = Tape::<O::One>::new();
        let q: E::Prepared<f64> = p.row(0);
        let place = |&i: &u32| {
            let i = i as usize;
            let [x, y, z] = frame.moving(i, frame.place(i)).map(|x| tape.variable(x));
            Vec3::new(x, y, z)
        };
        let places: Vec<Vec3<Var<O::One>>> = self.atoms.iter().map(place).collect();
        let e = O::One::global::<E>(&places, &self.masses(frame), &q);
        let adjoints = tape.gradient(e);
        if frame.sums {
            sink.sums.add_energy(e.value());
        }
        for (&i, x) in self.atoms.iter().zip(&places) {
            let grid = frame.grid.force_origin();
            let f = [x.x, x.y, x.z].map(|x| (-adjoints.of(x)).rounded(grid));
            for c in 0..3 {
                sink.forces[i as usize][c] += f[c].result();
            }
            if frame.sums {
                sink.sums.add_virial([x.x, x.y, x.z].map(|x| x.value()), f);
            }
        }
    }
}
