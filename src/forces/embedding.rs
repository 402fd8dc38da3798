//! Density → embedding energies, in two passes over the neighbours.

use super::chunks::{each_atom, each_chunk};
use super::pair::{Near, Pull, TypePairs, full, gather, within};
use super::parameters::{ParameterTable, PreparedTable};
use super::term::{Law, ListNeed, Prepared, Reach, Sink, Sums};
use super::view::{Frame, View};
use crate::autodiff::Dual;
use crate::autodiff::lanes::Lanes;
use potentials::{Coefficient, Distance, EmbeddingEnergy, Mask, Scalar};
use std::marker::PhantomData;

/// A pair energy, and the energy of each atom in the density of its neighbours.
pub struct EmbeddingLaw<E> {
    types: TypePairs,
    list: usize,
    range: f64,
    /// dF/dρ of each atom.
    slopes: Vec<f64>,
    partial: Vec<Sums>,
    energy: PhantomData<E>,
}

impl<E: EmbeddingEnergy> EmbeddingLaw<E> {
    /// For these types.
    pub fn new(types: TypePairs) -> Self {
        let range = types.range();
        Self { types, list: 0, range, slopes: Vec::new(), partial: Vec::new(), energy: PhantomData }
    }
}

impl<E: EmbeddingEnergy> Law for EmbeddingLaw<E> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(ListNeed { range: self.range, leave_out: [false; 3], mirrors: false })
    }
    fn set_list(&mut self, list: usize) {
        self.list = list;
    }
    fn parameters_changed(&mut self, parameters: &ParameterTable, _: &PreparedTable) {
        self.types.follow(parameters, E::ABOUT.params.len());
        self.range = self.types.range();
    }

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], _: &[P]) -> S {
        let near = &view.frame.lists[self.list];
        let t = &view.frame.atoms.types;
        let row = |i: usize, j: usize| {
            &p[self.types.rows[t[i] as usize * self.types.types + t[j] as usize] as usize]
        };
        let mut total = S::constant(0.0);
        let mut density = vec![S::constant(0.0); t.len()];
        for i in 0..t.len() {
            for &n in near.list.row(i).iter().filter(|&&n| near.counts(i, n)) {
                let j = n.j as usize;
                let r2 = view.to_neighbor(i, n, near).norm_squared();
                let limit = self.types.cutoff2[t[i] as usize * self.types.types + t[j] as usize];
                if r2.lt(S::constant(limit)).decided() == Some(true) {
                    let r = Distance::from_squared(r2);
                    total = total + E::pair(r, row(i, j));
                    density[i] = density[i] + E::density(r, row(i, j));
                    density[j] = density[j] + E::density(r, row(j, i));
                }
            }
        }
        for (i, rho) in density.into_iter().enumerate() {
            if S::constant(0.0).lt(rho).decided() == Some(true) {
                total = total + E::embedding(rho, row(i, i));
            }
        }
        total
    }

    fn fused<V: Lanes>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { types, list, slopes, partial, .. } = self;
        let (near, t) = (&frame.lists[*list], &frame.atoms.types);
        let zero = V::constant(0.0);
        let params = |block: &[Near]| -> E::Prepared<V::Parameter> {
            p.gather::<V, _>(|k| block[k.min(block.len() - 1)].row as usize)
        };

        // first pass: densities, embedding energies and their slopes
        slopes.resize(t.len(), 0.0);
        each_chunk(t.len(), slopes, 1, partial, &mut sink.sums, &|atoms, slopes, sums| {
            let mut found = Vec::new();
            for (i, slope) in atoms.zip(slopes) {
                within(frame, near, types, i, &mut found);
                let mut density = zero;
                for block in found.chunks(V::WIDTH) {
                    let r = Distance::from_squared(gather(block, |n| n.r2));
                    let rho = E::density::<V, V::Parameter>(r, &params(block));
                    density = density + V::select(full::<V>(block), rho, zero);
                }
                let density = density.sum();
                *slope = 0.0;
                if density > 0.0 {
                    let own = types.rows[t[i] as usize * (types.types + 1)];
                    let row: &E::Prepared<f64> = &p.row(own as usize);
                    let e = E::embedding::<Dual<f64>, f64>(Dual::variable(density), row);
                    *slope = e.tangent;
                    sums.add_energy(e.value);
                }
            }
        });

        // second pass: dE/dr² = φ′ + (F′ᵢ + F′ⱼ) ρ′, each pair seen from both sides
        each_atom(sink, partial, &|atoms, forces, sums| {
            let mut found = Vec::new();
            for (i, force) in atoms.zip(forces) {
                within(frame, near, types, i, &mut found);
                let (mut pull, mut energy) = (Pull::new(), zero);
                for block in found.chunks(V::WIDTH) {
                    let q = params(block);
                    let r2 = Dual::new(gather(block, |n| n.r2), V::constant(-2.0));
                    let r = Distance::from_squared(r2);
                    let phi = E::pair::<Dual<V>, V::Parameter>(r, &q);
                    let rho = E::density::<Dual<V>, V::Parameter>(r, &q);
                    let slope = gather::<V>(block, |n| slopes[i] + slopes[n.j as usize]);
                    let inside = full::<V>(block);
                    let g = V::select(inside, phi.tangent + rho.tangent * slope, zero);
                    energy = energy + V::select(inside, phi.value, zero);
                    pull.add([0, 1, 2].map(|c| gather(block, |n| n.vector[c])), g);
                }
                pull.finish(energy, force, sums);
            }
        });
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.types.reach(self.list))
    }
}
