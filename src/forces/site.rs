//! Energies of a site: any function of all the neighbours of an atom.

use super::parameters::{ParameterTable, PreparedTable};
use super::shares::{Shares, Sight, Sites};
use super::term::{Law, ListNeed, Prepared, Reach, Sink};
use super::triplet::{NO_ROW, TypeTriples};
use super::view::{Frame, View};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{Adjoints, Tape, Var};
use potentials::{Coefficient, Mask, Scalar, SiteEnergy, SiteNeighbor, Vec3};
use std::marker::PhantomData;

/// A site energy between atoms of certain types.
pub struct SiteLaw<E: SiteEnergy> {
    sight: Sight,
    shares: Shares<()>,
    energy: PhantomData<E>,
}

impl<E: SiteEnergy> SiteLaw<E> {
    /// For these types; every triple must have a row.
    pub fn new(types: TypeTriples) -> Self {
        Self { sight: Sight::of(types), shares: Shares::default(), energy: PhantomData }
    }
}

/// The energy of a site whose centre is of type `kind`.
fn site<'a, E: SiteEnergy, S: Scalar, P: Coefficient<S> + 'a>(
    types: &TypeTriples,
    kind: usize,
    neighbors: &[SiteNeighbor<S>],
    p: &'a [E::Prepared<P>],
) -> S
where
    E::Prepared<P>: 'a,
{
    E::energy(neighbors, |j, k| &p[types.row(kind, j, k).unwrap_or(0)])
}

impl<E: SiteEnergy> Law for SiteLaw<E> {
    type Energy = E;

    fn list_need(&self) -> Option<ListNeed> {
        Some(self.sight.need())
    }
    fn set_list(&mut self, list: usize) {
        self.sight.list = list;
    }
    fn parameters_changed(&mut self, _: &ParameterTable, p: &PreparedTable) {
        // a neighbour k plays a part if it is within reach of any triple (i, j, k)
        let Sight { types, reach2, .. } = &mut self.sight;
        let n = types.types;
        *reach2 = vec![0.0; n * n];
        for (ijk, &row) in types.rows.iter().enumerate().filter(|(_, row)| **row != NO_ROW) {
            let reach: f64 = E::reach(&p.row::<E::Prepared<f64>>(row as usize));
            let ik = ijk / (n * n) * n + ijk % n;
            reach2[ik] = reach2[ik].max(reach * reach);
        }
    }

    fn total<S: Scalar, P: Coefficient<S>>(&self, view: &View<S>, p: &[Prepared<Self, P>], _: &[P]) -> S {
        let Sight { types, reach2, list } = &self.sight;
        let near = &view.frame.lists[*list];
        let t = &view.frame.atoms.types;
        let (mut total, mut found) = (S::constant(0.0), Vec::new());
        for i in 0..t.len() {
            let from = t[i] as usize;
            found.clear();
            for &n in near.row(i) {
                let (kind, vector) = (t[near.list.owner(n)] as usize, view.to_neighbor(i, n, near));
                let r2 = vector.norm_squared();
                if r2.lt(S::constant(reach2[from * types.types + kind])).decided() == Some(true) {
                    found.push(SiteNeighbor { vector, distance: r2.sqrt(), kind });
                }
            }
            total = total + site::<E, S, P>(types, from, &found, p);
        }
        total
    }

    fn fused(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { sight, shares, .. } = self;
        let body = &|sites: Sites, (): &mut ()| frame.double(OneByOne::<E>(sites, PhantomData));
        shares.each_site(frame, sight, p, sink, body);
        shares.collect(frame, sight, sink);
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.sight.reach())
    }
}

/// Sites one at a time, the same in every lane.
struct OneByOne<'a, E>(Sites<'a>, PhantomData<E>);

impl<E: SiteEnergy> Kernel<f64> for OneByOne<'_, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Sites { frame, near, sight, p, ranks, shares, sums } = self.0;
        let (t, starts) = (&frame.atoms.types, near.list.starts());
        let (mut tape, mut adjoints, mut found) = (Tape::<V>::new(), Adjoints::default(), Vec::new());
        let p = &p.rows::<V::Parameter, E::Prepared<V::Parameter>>(|x| V::constant(x).parameter());
        let first = starts[ranks.start] as usize;
        for rank in ranks {
            let shares = &mut shares[starts[rank] as usize - first..starts[rank + 1] as usize - first];
            let i = near.list.owner(near.list.slots()[rank]);
            let from = t[i] as usize;
            found.clear();
            for (entry, &n) in near.list.row(rank).iter().enumerate() {
                let (kind, d) = (t[near.list.owner(n)] as usize, near.vector(frame.cell, i, n));
                if sight.sees(from, kind, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) {
                    found.push((entry, kind, d));
                }
            }
            tape.reset();
            let place = |&(_, kind, d): &(usize, usize, [f64; 3])| {
                let [x, y, z] = d.map(|x| tape.variable(V::constant(x)));
                let vector = Vec3::new(x, y, z);
                SiteNeighbor { vector, distance: vector.norm_squared().sqrt(), kind }
            };
            let neighbors: Vec<SiteNeighbor<Var<V>>> = found.iter().map(place).collect();
            let e = site::<E, Var<V>, V::Parameter>(&sight.types, from, &neighbors, p);
            tape.backward(&[(e, V::constant(1.0))], &mut adjoints);
            if frame.sums {
                sums.add_energy(e.value().lane(0));
            }
            for (&(entry, _, d), n) in found.iter().zip(&neighbors) {
                let f = [n.vector.x, n.vector.y, n.vector.z].map(|x| -adjoints.of(x).lane(0));
                let f = frame.grid.force(f);
                shares[entry] = f;
                if frame.sums {
                    sums.add_virial(d, f);
                }
            }
        }
    }
}
