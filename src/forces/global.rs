//! Energies of a group of atoms as a whole.

use super::parameters::PreparedTable;
use super::term::{Law, Prepared, Sink};
use super::view::{Frame, View};
use crate::autodiff::{Adjoints, Tape, Var};
use potentials::{Coefficient, GlobalEnergy, Scalar, Vec3};
use std::marker::PhantomData;

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

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], _: &[P]) -> S {
        let places: Vec<_> = self.atoms.iter().map(|&i| view.place(i as usize)).collect();
        E::energy(&places, &self.masses(view.frame), &p[0])
    }

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        // the whole group is one function: its own tape
        let tape = Tape::new();
        let q: E::Prepared<f64> = p.row(0);
        let place = |&i: &u32| {
            let [x, y, z] = frame.place(i as usize).map(|x| tape.variable(x));
            Vec3::new(x, y, z)
        };
        let places: Vec<Vec3<Var<f64>>> = self.atoms.iter().map(place).collect();
        let e = E::energy::<Var<f64>, f64>(&places, &self.masses(frame), &q);
        let mut adjoints = Adjoints::default();
        tape.backward(&[(e, 1.0)], &mut adjoints);
        if frame.sums {
            sink.sums.add_energy(e.value());
        }
        for (&i, x) in self.atoms.iter().zip(&places) {
            let f = frame.grid.force([x.x, x.y, x.z].map(|x| -adjoints.of(x)));
            for c in 0..3 {
                sink.forces[i as usize][c] += f[c];
            }
            if frame.sums {
                sink.sums.add_virial(frame.place(i as usize), f);
            }
        }
    }
}
