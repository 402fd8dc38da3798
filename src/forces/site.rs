//! Energies of a site: any function of all the neighbours of an atom.

use super::order::{Order, Quantity};
use super::parameters::{ParameterTable, PreparedTable};
use super::shares::{Shares, Sight, Sites};
use super::term::{Law, ListNeed, Prepared, Reach, Sink};
use super::triplet::{NO_ROW, TypeTriples};
use super::view::{Frame, View};
use crate::autodiff::lanes::{Kernel, Lanes};
use crate::autodiff::{Adjoints, InlineTape, Var};
use potentials::{Coefficient, Mask, Scalar, SiteEnergy, SiteNeighbor, Vec3};
use std::marker::PhantomData;
use std::ops::Range;

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
#[inline(always)]
pub(super) fn site<'a, E: SiteEnergy, S: Scalar, P: Coefficient<S> + 'a>(
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

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        _: &[P],
        items: Range<usize>,
    ) -> S {
        let Sight { types, reach2, list } = &self.sight;
        let near = &view.frame.lists[*list];
        let t = &view.frame.atoms.types;
        let (mut total, mut found) = (S::constant(0.0), Vec::new());
        for i in items {
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

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { sight, shares, .. } = self;
        let body = &|sites: Sites, (): &mut ()| frame.double::<O, _>(Alike::<O, E>(sites, PhantomData));
        shares.each_site(frame, sight, p, sink, body);
        shares.collect(frame, sight, sink);
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.sight.reach())
    }
}

/// Sites that have as many neighbours of the same types, one a lane.
struct Alike<'a, O, E>(Sites<'a>, PhantomData<(O, E)>);

/// A site: rank, type, and its neighbours within the list of all.
type Place = (usize, usize, Range<usize>);
/// A neighbour: entry, type and vector.
type Seen<Y> = (usize, usize, [Y; 3]);

impl<O: Order, E: SiteEnergy> Kernel<f64> for Alike<'_, O, E> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Sites { frame, near, sight, p, ranks, shares, sums } = self.0;
        let (t, starts) = (&frame.atoms.types, near.list.starts());
        let (first, grid) = (starts[ranks.start] as usize, V::constant(frame.grid.force_origin()));
        let mut places: Vec<Place> = Vec::with_capacity(ranks.len());
        let mut seen: Vec<Seen<O::One>> = Vec::new();
        for rank in ranks {
            let (i, before) = (near.list.owner(near.list.slots()[rank]), seen.len());
            let from = t[i] as usize;
            for (&n, entry) in near.list.row(rank).iter().zip(starts[rank] as usize - first..) {
                let (j, d) = (near.list.owner(n), near.vector(frame.cell, i, n));
                let kind = t[j] as usize;
                if sight.sees(from, kind, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) {
                    seen.push((entry, kind, frame.between(i, j, d)));
                }
            }
            places.push((rank, from, before..seen.len()));
        }
        let kinds = |(_, from, near): &Place| (*from, near.len(), seen[near.clone()].iter().map(|s| s.1));
        let alike = |a: &Place, b: &Place| {
            let ((from_a, n_a, a), (from_b, n_b, b)) = (kinds(a), kinds(b));
            (from_a, n_a).cmp(&(from_b, n_b)).then_with(|| a.cmp(b))
        };
        places.sort_by(|a, b| alike(a, b).then(a.0.cmp(&b.0)));

        type On<V, O> = InlineTape<<O as Order>::Quantity<V>>;
        let (mut tape, mut adjoints) = (On::<V, O>::default(), Adjoints::default());
        let p = &p.rows::<V::Parameter, E::Prepared<V::Parameter>>(|x| V::constant(x).parameter());
        for places in places.chunk_by(|a, b| alike(a, b).is_eq()).flat_map(|alike| alike.chunks(V::WIDTH)) {
            let (_, from, near) = &places[0];
            // (lanes without a site of their own repeat the first)
            let seen = |k: usize, m: usize| &seen[places[if k < places.len() { k } else { 0 }].2.start + m];
            tape.reset();
            let place = |m: usize| {
                let [x, y, z] =
                    [0, 1, 2].map(|c| tape.variable(O::Quantity::<V>::gather(|k| seen(k, m).2[c])));
                let vector = Vec3::new(x, y, z);
                SiteNeighbor { vector, distance: vector.norm_squared().sqrt(), kind: seen(0, m).1 }
            };
            let neighbors: Vec<SiteNeighbor<Var<O::Quantity<V>, On<V, O>>>> =
                (0..near.len()).map(place).collect();
            let e = O::Quantity::<V>::site::<E>(&sight.types, *from, &neighbors, p);
            tape.gradient_into(e, &mut adjoints);
            for k in (0..places.len()).filter(|_| frame.sums) {
                sums.add_energy(e.value().result().lane(k));
            }
            for (m, n) in neighbors.iter().enumerate() {
                let Vec3 { x, y, z } = n.vector;
                let [x, y, z] = [-adjoints.of(x), -adjoints.of(y), -adjoints.of(z)];
                let f = O::Quantity::<V>::spill([x.rounded(grid), y.rounded(grid), z.rounded(grid)]);
                for k in 0..places.len() {
                    let (entry, _, d) = seen(k, m);
                    let f = [f[0][k], f[1][k], f[2][k]];
                    shares[*entry] = f.map(|f| f.result());
                    if frame.sums {
                        sums.add_virial(*d, f);
                    }
                }
            }
        }
    }
}
