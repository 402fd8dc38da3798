//! Networks over symmetry functions, in three passes: the functions of a site, its network forward and backward, and
//! with the slopes of all functions known, what every neighbour and every pair of neighbours has to do with them.
//!
//! A function of two neighbours is a product of numbers that belong to one distance each (`u`, 1/r) and of an angular
//! factor. So what is differentiated is small: numbers of one distance by [`Dual`] with respect to r², angular factors
//! by `Dual` with respect to cos θ, and products on the stack tape, in as many pairs of neighbours at a time as there
//! are lanes.

use super::order::{Order, Quantity};
use super::parameters::{ParameterTable, PreparedTable, Slot};
use super::shares::{Shares, Sight, Sites};
use super::term::{Entry, Law, ListNeed, Prepared, Reach, Sink, Sums, Term};
use super::triplet::TypeTriples;
use super::view::{Frame, Grid, Neighborhood, Precision, View};
use crate::autodiff::lanes::{Isa, Kernel, Lanes};
use crate::autodiff::{Dual, StackTape, StackVar};
use crate::neighbors::{NeighborError, VerletList};
use crate::system::{Atoms, Cell, Positions};
use potentials::many_body::Neural;
use potentials::many_body::neural::{Network, Site, Statistics, Surroundings};
use potentials::{Coefficient, Mask, Scalar, SiteNeighbor};
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;

/// A network between atoms of certain types.
pub struct NeuralLaw {
    network: Network,
    sites: Vec<Site>,
    /// The element of each type.
    elements: Vec<usize>,
    sight: Sight,
    shares: Shares<()>,
}

/// The term of a network with these weights, element after element. For each type of atom, `elements` has the number of
/// its element.
pub fn term(name: &str, network: Network, weights: &[f64], elements: Vec<usize>) -> Box<dyn Term> {
    let mut table = ParameterTable::new(1);
    for (label, &weight) in network.labels().into_iter().zip(weights) {
        let number = table.number(label, weight);
        table.row(&[Slot::Value(number)]);
    }
    assert_eq!(table.rows(), network.weights(), "a network has a value for each of its weights");
    Entry::boxed(name, table, NeuralLaw::new(&network, elements))
}

/// The network of a term, if it is one, and its weights: what can be written to files.
pub fn network_of(term: &dyn Term) -> Option<(&Network, &[f64])> {
    let entry = (term as &dyn Any).downcast_ref::<Entry<NeuralLaw>>()?;
    Some((&entry.law().network, term.parameters().values()))
}

/// What is known of the symmetry functions of a term, if it is a network, in some configurations of the same atoms.
///
/// # Errors
/// Where there can be no list of neighbours.
pub fn statistics_of<'a>(
    term: &dyn Term,
    atoms: &Atoms,
    configurations: impl IntoIterator<Item = (&'a Cell, &'a Positions)>,
) -> Result<Option<Vec<Statistics>>, NeighborError> {
    let Some(entry) = (term as &dyn Any).downcast_ref::<Entry<NeuralLaw>>() else { return Ok(None) };
    let NeuralLaw { network, elements, .. } = entry.law();
    statistics(network, elements, atoms, configurations).map(Some)
}

/// The same network with its functions scaled by other statistics; nothing if the term is none.
pub fn rescaled(term: &dyn Term, statistics: Vec<Statistics>) -> Option<Box<dyn Term>> {
    let entry = (term as &dyn Any).downcast_ref::<Entry<NeuralLaw>>()?;
    let NeuralLaw { network, elements, .. } = entry.law();
    let network = Network { statistics, ..network.clone() };
    Some(self::term(term.name(), network, term.parameters().values(), elements.clone()))
}

impl NeuralLaw {
    /// For types of atoms of these elements.
    pub fn new(network: &Network, elements: Vec<usize>) -> Self {
        let sites = network.sites();
        let mut sight = Sight::of(TypeTriples { types: elements.len(), rows: Vec::new() });
        for &center in &elements {
            let reach = |&other: &usize| sites[center].surroundings.reach(other).powi(2);
            sight.reach2.extend(elements.iter().map(reach));
        }
        Self { network: network.clone(), sites, elements, sight, shares: Shares::default() }
    }

    /// The element of an atom's type and its neighbours in reach.
    fn neighbors<S: Scalar>(&self, view: &View<S>, i: usize) -> (usize, Vec<SiteNeighbor<S>>) {
        let (near, t) = (&view.frame.lists[self.sight.list], &view.frame.atoms.types);
        let from = t[i] as usize;
        let mut found = Vec::new();
        for &n in near.row(i) {
            let (to, vector) = (t[near.list.owner(n)] as usize, view.to_neighbor(i, n, near));
            let r2 = vector.norm_squared();
            let reach2 = self.sight.reach2[from * self.elements.len() + to];
            if r2.lt(S::constant(reach2)).decided() == Some(true) {
                found.push(SiteNeighbor { vector, distance: r2.sqrt(), kind: self.elements[to] });
            }
        }
        (self.elements[from], found)
    }

    /// The values of the symmetry functions of an atom, before they are scaled, and its element.
    fn values(&self, view: &View<f64>, i: usize) -> (usize, Vec<f64>) {
        let (element, found) = self.neighbors(view, i);
        (element, self.sites[element].surroundings.values(&found))
    }
}

/// The values of the symmetry functions of all atoms of a configuration, before they are scaled: for each atom the number
/// of its element, and the values in the network's order. `elements` has the element of each type of atom.
///
/// # Errors
/// Where there can be no list of neighbours.
pub fn symmetry_functions(
    network: &Network,
    elements: &[usize],
    atoms: &Atoms,
    cell: &Cell,
    positions: &Positions,
) -> Result<Vec<(usize, Vec<f64>)>, NeighborError> {
    let law = NeuralLaw::new(network, elements.to_vec());
    let mut near = Neighborhood::new(VerletList::new(law.sight.need().range, 0.0)?, None, false, true);
    near.update(positions, cell, atoms)?;
    near.refresh(positions, cell, &atoms.charges, Precision::Double);
    let frame = Frame {
        atoms,
        cell,
        positions,
        lists: &[near],
        charges: &atoms.charges,
        coulomb: 0.0,
        grid: Grid::NONE,
        isa: Isa::Portable,
        precision: Precision::Double,
        sums: true,
        direction: None,
    };
    let view = View { frame: &frame, moves: None, strain: None };
    Ok((0..atoms.len()).map(|i| law.values(&view, i)).collect())
}

/// What is known of each symmetry function of a network in some configurations of the same atoms. (What the network says
/// of them itself does not matter.)
///
/// # Errors
/// Where there can be no list of neighbours.
pub fn statistics<'a>(
    network: &Network,
    elements: &[usize],
    atoms: &Atoms,
    configurations: impl IntoIterator<Item = (&'a Cell, &'a Positions)>,
) -> Result<Vec<Statistics>, NeighborError> {
    let mut found = vec![Vec::new(); network.functions.len()];
    for (cell, positions) in configurations {
        for (element, values) in symmetry_functions(network, elements, atoms, cell, positions)? {
            let first = network.functions.iter().position(|f| f.center == element).unwrap_or(0);
            found[first..].iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        }
    }
    Ok(found.iter().map(|values| Statistics::of(values)).collect())
}

impl Law for NeuralLaw {
    type Energy = Neural;

    fn list_need(&self) -> Option<ListNeed> {
        Some(self.sight.need())
    }
    fn set_list(&mut self, list: usize) {
        self.sight.list = list;
    }

    fn total<S: Scalar, P: Coefficient<S>>(
        &self,
        view: &View<S>,
        p: &[Prepared<Self, P>],
        _: &[P],
        items: Range<usize>,
    ) -> S {
        let mut total = S::constant(0.0);
        for i in items {
            let (element, found) = self.neighbors(view, i);
            total = total + self.sites[element].energy::<S, P>(&found, p);
        }
        total
    }

    fn fused<O: Order>(&mut self, frame: &Frame, p: &PreparedTable, sink: &mut Sink) {
        let Self { sites: networks, elements, sight, shares, .. } = self;
        let weights = p.values();
        let body = &|sites: Sites, (): &mut ()| {
            frame.double::<O, _>(Networks::<O> { sites, networks, elements, weights, order: PhantomData });
        };
        shares.each_site(frame, sight, p, sink, body);
        shares.collect(frame, sight, sink);
        // (energies of free atoms are large, and would leave the grid one by one)
        if frame.sums && !O::TANGENTS {
            let mut counts = vec![0u32; networks.len()];
            frame.atoms.types.iter().for_each(|&t| counts[elements[t as usize]] += 1);
            for (site, count) in networks.iter().zip(counts) {
                sink.sums.add_energy(site.offset * f64::from(count));
            }
        }
    }

    fn reach(&self) -> Option<Reach<'_>> {
        Some(self.sight.reach())
    }
}

/// The sites of some ranks, whose networks are evaluated one a lane.
struct Networks<'a, O> {
    sites: Sites<'a>,
    networks: &'a [Site],
    elements: &'a [usize],
    weights: &'a [f64],
    order: PhantomData<O>,
}

/// Some neighbours, one a lane; lanes without a neighbour have one out of reach.
#[derive(Clone, Copy)]
struct Block<Y> {
    vector: [Y; 3],
    r2: Y,
    /// 1/r with its slope in r².
    inverse: Dual<Y>,
    /// What the functions ask of the neighbours: ∂E/∂r², and ∂E/∂(the vector) apart from that.
    slope: Y,
    pull: [Y; 3],
}

/// A neighbour, and blocks of neighbours of which each makes a pair with it.
#[derive(Clone)]
struct Row {
    /// Which couple of elements.
    couple: usize,
    /// The neighbour's block and lane.
    block: usize,
    lane: usize,
    /// The others. Of its own block those after it.
    others: Range<usize>,
}

/// What is asked of one neighbour: ∂E/∂r² and a vector, as in a block.
type Asked<One> = [One; 4];

/// The neighbours of a site, element after element.
struct Around<Y, One> {
    rank: usize,
    /// For each lane of each block the neighbour's list entry and vector.
    places: Vec<Option<(usize, [One; 3])>>,
    /// Where the blocks of each element begin.
    starts: Vec<usize>,
    blocks: Vec<Block<Y>>,
    /// All u of each block, with their slopes in r².
    radials: Vec<Dual<Y>>,
    rows: Vec<Row>,
    /// The values of the symmetry functions.
    values: Vec<One>,
    /// The energy's slopes in them, the same in all lanes.
    slopes: Vec<Y>,
    asked: Vec<Asked<One>>,
}

impl<Y, One> Default for Around<Y, One> {
    fn default() -> Self {
        Around {
            rank: 0,
            places: Vec::new(),
            starts: Vec::new(),
            blocks: Vec::new(),
            radials: Vec::new(),
            rows: Vec::new(),
            values: Vec::new(),
            slopes: Vec::new(),
            asked: Vec::new(),
        }
    }
}

/// Memory for the numbers of one pair of neighbours, and of one network.
struct Workspace<Y> {
    /// The u of the first neighbour, the same in all lanes.
    own: Vec<Dual<Y>>,
    /// Those of the distance between the neighbours, and the angular factors: values, and with slopes.
    across: (Vec<Y>, Vec<Dual<Y>>),
    angles: (Vec<Y>, Vec<Dual<Y>>),
    sums: Vec<Y>,
    nodes: Vec<Y>,
    slopes: Vec<Y>,
    adjoints: Vec<Y>,
}

impl<Y: Scalar> Workspace<Y> {
    /// For functions and layers of these sizes.
    fn new(networks: &[Site]) -> Self {
        let most =
            |f: fn(&Surroundings) -> usize| networks.iter().map(|s| f(&s.surroundings)).max().unwrap_or(0);
        let (radials, angles) = (most(|s| s.radials.len()), most(|s| s.angles.len()));
        let zero = Y::constant(0.0);
        let nothing = Dual { value: zero, tangent: zero };
        Workspace {
            own: vec![nothing; radials],
            across: (vec![zero; radials], vec![nothing; radials]),
            angles: (vec![zero; angles], vec![nothing; angles]),
            sums: Vec::new(),
            nodes: Vec::new(),
            slopes: Vec::new(),
            adjoints: Vec::new(),
        }
    }
}

/// A product's derivatives in its factors.
#[inline(always)]
fn of_product<Y: Scalar, const N: usize>(x: [Y; N]) -> [Y; N] {
    let tape = StackTape::<Y, 8>::new();
    let v: [StackVar<Y, 8>; N] = tape.restart(x);
    let mut product = v[0];
    for k in 1..N {
        product = product * v[k];
    }
    tape.gradient_in_registers(product)
}

/// One lane's number in all lanes.
#[inline(always)]
fn splat<V: Lanes, Y: Quantity<V>>(x: Y, lane: usize) -> Y {
    Y::new(V::constant(x.value().lane(lane)), V::constant(x.result().lane(lane)))
}

/// The same of a number and its slope.
#[inline(always)]
fn splat_both<V: Lanes, Y: Quantity<V>>(x: Dual<Y>, lane: usize) -> Dual<Y> {
    Dual { value: splat::<V, Y>(x.value, lane), tangent: splat::<V, Y>(x.tangent, lane) }
}

/// The sum over the lanes.
#[inline(always)]
fn total<V: Lanes<Element = f64>, Y: Quantity<V>>(x: Y) -> Y::One {
    Y::One::new(x.value().sum(), x.result().sum())
}

/// `x` in the lanes that count, else 0.
#[inline(always)]
fn masked<S: Scalar>(mask: Option<S::Mask>, x: S) -> S {
    match mask {
        Some(mask) => S::select(mask, x, S::constant(0.0)),
        None => x,
    }
}

/// One neighbour and a block of others.
struct Pairs<Y, M> {
    /// The lanes that count, where it is not all.
    mask: Option<M>,
    /// The product of the vectors, and the cosine of the angle between them.
    dot: Y,
    cos: Y,
    /// The square of the distance between the neighbours.
    r2: Y,
}

impl<Y: Scalar, One> Around<Y, One> {
    /// The u of a block.
    #[inline(always)]
    fn radials_of(&self, block: usize, n: usize) -> &[Dual<Y>] {
        &self.radials[block * n..(block + 1) * n]
    }

    /// The neighbour of a row, the same in all lanes.
    #[inline(always)]
    fn one<V: Lanes>(&self, row: &Row, n: usize, needed: &[usize], own: &mut [Dual<Y>]) -> Block<Y>
    where
        Y: Quantity<V>,
    {
        let (block, zero) = (&self.blocks[row.block], Y::constant(0.0));
        let u = self.radials_of(row.block, n);
        for &m in needed {
            own[m] = splat_both::<V, Y>(u[m], row.lane);
        }
        let [x, y, z] = block.vector;
        Block {
            vector: [splat::<V, Y>(x, row.lane), splat::<V, Y>(y, row.lane), splat::<V, Y>(z, row.lane)],
            r2: splat::<V, Y>(block.r2, row.lane),
            inverse: splat_both::<V, Y>(block.inverse, row.lane),
            slope: zero,
            pull: [zero; 3],
        }
    }

    /// A neighbour and a block of others.
    #[inline(always)]
    fn pairs<V: Lanes>(&self, one: &Block<Y>, row: &Row, block: usize) -> Pairs<Y, V::Mask>
    where
        Y: Quantity<V>,
    {
        let others = &self.blocks[block];
        let ([ax, ay, az], [bx, by, bz]) = (one.vector, others.vector);
        let dot = ax.fma(bx, ay.fma(by, az * bz));
        let mut r2 = Y::square_of([bx - ax, by - ay, bz - az]);
        let mut mask = None;
        if block == row.block {
            // (a neighbour and itself have no distance: some other)
            let after = !V::first(row.lane + 1);
            (mask, r2) = (Some(after), Y::select(after, r2, Y::constant(1.0)));
        }
        Pairs { mask, dot, cos: dot * (one.inverse.value * others.inverse.value), r2 }
    }
}

/// Finds the neighbours of the atom of a rank, the u of each, and which of them make pairs.
#[inline(always)]
fn surround<V: Lanes<Element = f64>, O: Order>(
    from: &Sites,
    (surroundings, elements): (&Surroundings, &[usize]),
    rank: usize,
    first: usize,
    around: &mut Around<O::Quantity<V>, O::One>,
) {
    let Sites { frame, near, sight, .. } = from;
    let (t, entries) = (&frame.atoms.types, near.list.starts()[rank] as usize - first..);
    let i = near.list.owner(near.list.slots()[rank]);
    let (kind, all) = (t[i] as usize, surroundings.needed.len());
    let zero = O::Quantity::<V>::constant(0.0);
    around.rank = rank;
    around.places.clear();
    around.starts.clear();
    let mut far = 1.0;
    for element in 0..all {
        far += 2.0 * surroundings.reach(element);
        around.starts.push(around.places.len() / V::WIDTH);
        for (&slot, entry) in near.list.row(rank).iter().zip(entries.clone()) {
            let j = near.list.owner(slot);
            let other = t[j] as usize;
            if elements[other] != element {
                continue;
            }
            let d = near.vector(frame.cell, i, slot);
            if sight.sees(kind, other, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) {
                around.places.push(Some((entry, frame.between(i, j, d))));
            }
        }
        while !around.places.len().is_multiple_of(V::WIDTH) {
            around.places.push(None);
        }
    }
    let blocks = around.places.len() / V::WIDTH;
    around.starts.push(blocks);
    let n = surroundings.radials.len();
    around.radials.clear();
    around.radials.resize(blocks * n, Dual { value: zero, tangent: zero });
    around.blocks.clear();
    for element in 0..all {
        for block in around.starts[element]..around.starts[element + 1] {
            let mut vector = [zero; 3];
            for c in 0..3 {
                let nowhere = O::One::constant(if c == 0 { far } else { 0.0 });
                let places = &around.places[block * V::WIDTH..];
                vector[c] = O::Quantity::<V>::gather(
                    #[inline(always)]
                    |k| match &places[k] {
                        Some((_, d)) => d[c],
                        None => nowhere,
                    },
                );
            }
            let r2 = O::Quantity::<V>::square_of(vector);
            let squared = Dual::variable(r2);
            let needed = &surroundings.needed[element];
            surroundings.radials_at(squared.sqrt(), needed, &mut around.radials[block * n..(block + 1) * n]);
            let inverse = squared.rsqrt();
            around.blocks.push(Block { vector, r2, inverse, slope: zero, pull: [zero; 3] });
        }
    }
    around.rows.clear();
    for a in 0..all {
        for b in a..all {
            let couple = surroundings.couple(a, b);
            let reach2 = couple.reach * couple.reach;
            if couple.angles.is_empty() {
                continue;
            }
            for place in around.starts[a] * V::WIDTH..around.starts[a + 1] * V::WIDTH {
                let (block, lane) = (place / V::WIDTH, place % V::WIDTH);
                if around.places[place].is_some() && around.blocks[block].r2.value().lane(lane) < reach2 {
                    let others = if a == b { block } else { around.starts[b] }..around.starts[b + 1];
                    around.rows.push(Row { couple: a * all + b, block, lane, others });
                }
            }
        }
    }
}

/// The values of the symmetry functions.
#[inline(always)]
fn forward<V: Lanes<Element = f64>, O: Order>(
    surroundings: &Surroundings,
    around: &mut Around<O::Quantity<V>, O::One>,
    work: &mut Workspace<O::Quantity<V>>,
) {
    let zero = O::Quantity::<V>::constant(0.0);
    let n = surroundings.radials.len();
    let Workspace { own, across: (across, _), angles: (angles, _), sums, .. } = work;
    sums.clear();
    sums.resize(surroundings.factors.len(), zero);
    for element in 0..surroundings.needed.len() {
        for block in around.starts[element]..around.starts[element + 1] {
            let u = around.radials_of(block, n);
            for &(radial, output) in &surroundings.sums[element] {
                sums[output] = sums[output] + u[radial].value;
            }
        }
    }
    for row in &around.rows {
        let couple = &surroundings.couples[row.couple];
        let one = around.one::<V>(row, n, &couple.radials, own);
        for block in row.others.clone() {
            let pairs = around.pairs::<V>(&one, row, block);
            let u = around.radials_of(block, n);
            surroundings.angles_at(pairs.cos, &couple.angles, angles);
            for group in &couple.wide {
                let m = group.radial;
                let product = masked(pairs.mask, own[m].value * u[m].value);
                for &(angle, output) in &group.members {
                    sums[output] = angles[angle].fma(product, sums[output]);
                }
            }
            if couple.narrow.is_empty() {
                continue;
            }
            surroundings.radials_at(pairs.r2.sqrt(), &couple.across, across);
            for group in &couple.narrow {
                let m = group.radial;
                let product = masked(pairs.mask, own[m].value * u[m].value * across[m]);
                for &(angle, output) in &group.members {
                    sums[output] = angles[angle].fma(product, sums[output]);
                }
            }
        }
    }
    around.values.clear();
    for k in 0..sums.len() {
        around.values.push(total::<V, O::Quantity<V>>(sums[k] * surroundings.factors[k]));
    }
}

/// The network forward and backward: its energy, and the adjoints of all nodes, the inputs first. The inputs are the first
/// nodes.
#[inline(always)]
fn network<Y: Scalar>(site: &Site, weights: &[f64], work: &mut Workspace<Y>) -> Y {
    let (zero, one) = (Y::constant(0.0), Y::constant(1.0));
    let Workspace { nodes, slopes, adjoints, .. } = work;
    slopes.clear();
    let mut before = 0;
    for place in site.perceptron.places() {
        for k in 0..place.layer.nodes {
            let z = place.sum(
                &nodes[before..before + place.before],
                k,
                #[inline(always)]
                |w| weights[site.first_weight + w],
            );
            let y = place.layer.activation.of(Dual { value: z, tangent: one });
            nodes.push(y.value);
            slopes.push(y.tangent * place.factor);
        }
        before += place.before;
    }
    adjoints.clear();
    adjoints.resize(nodes.len(), zero);
    adjoints[before] = one * site.energy;
    // the same sums, transposed, from the last layer to the first
    let mut end = nodes.len();
    for number in (0..site.perceptron.layers.len()).rev() {
        let Some(place) = site.perceptron.places().nth(number) else { break };
        let first = end - place.layer.nodes;
        let inputs = first - place.before;
        for k in 0..place.layer.nodes {
            let asked = adjoints[first + k] * slopes[first + k - site.perceptron.inputs];
            for j in 0..place.before {
                let w = weights[site.first_weight + place.first + j * place.layer.nodes + k];
                adjoints[inputs + j] = adjoints[inputs + j] + asked * w;
            }
        }
        end = first;
    }
    nodes[before] * site.energy
}

/// With the slopes of the functions known, what they ask of the neighbours.
#[inline(always)]
fn backward<V: Lanes<Element = f64>, O: Order>(
    surroundings: &Surroundings,
    around: &mut Around<O::Quantity<V>, O::One>,
    work: &mut Workspace<O::Quantity<V>>,
) {
    let zero = O::Quantity::<V>::constant(0.0);
    let n = surroundings.radials.len();
    let Workspace { own, across: (_, across), angles: (_, angles), .. } = work;
    around.asked.clear();
    around.asked.resize(around.places.len(), [O::One::constant(0.0); 4]);
    for element in 0..surroundings.needed.len() {
        for block in around.starts[element]..around.starts[element + 1] {
            let mut slope = zero;
            for &(radial, output) in &surroundings.sums[element] {
                slope = around.slopes[output].fma(around.radials[block * n + radial].tangent, slope);
            }
            around.blocks[block].slope = slope;
        }
    }
    for number in 0..around.rows.len() {
        let row = around.rows[number].clone();
        let couple = &surroundings.couples[row.couple];
        let mut one = around.one::<V>(&row, n, &couple.radials, own);
        for block in row.others.clone() {
            let pairs = around.pairs::<V>(&one, &row, block);
            let u = around.radials_of(block, n);
            // slopes in cos θ, and in the squares of the three distances
            let (mut in_cos, mut in_one, mut in_others, mut in_across) = (zero, zero, zero, zero);
            surroundings.angles_at(Dual::variable(pairs.cos), &couple.angles, angles);
            for group in &couple.wide {
                let angular = sum_of::<V, O>(&group.members, angles, &around.slopes, pairs.mask);
                let (a, b) = (own[group.radial], u[group.radial]);
                let slopes = of_product([angular.value, a.value, b.value]);
                in_cos = slopes[0].fma(angular.tangent, in_cos);
                in_one = slopes[1].fma(a.tangent, in_one);
                in_others = slopes[2].fma(b.tangent, in_others);
            }
            if !couple.narrow.is_empty() {
                surroundings.radials_at(Dual::variable(pairs.r2).sqrt(), &couple.across, across);
            }
            for group in &couple.narrow {
                let angular = sum_of::<V, O>(&group.members, angles, &around.slopes, pairs.mask);
                let (a, b, c) = (own[group.radial], u[group.radial], across[group.radial]);
                let slopes = of_product([angular.value, a.value, b.value, c.value]);
                in_cos = slopes[0].fma(angular.tangent, in_cos);
                in_one = slopes[1].fma(a.tangent, in_one);
                in_others = slopes[2].fma(b.tangent, in_others);
                in_across = slopes[3].fma(c.tangent, in_across);
            }
            // cos θ = d·d′/(r r′), and the square between the neighbours is r² + r′² − 2 d·d′
            let others = &mut around.blocks[block];
            let (inverse, inverses) = (one.inverse, others.inverse);
            let slopes = of_product([pairs.dot, inverse.value, inverses.value]);
            one.slope = one.slope + in_cos.fma(slopes[1] * inverse.tangent, in_one + in_across);
            others.slope = others.slope + in_cos.fma(slopes[2] * inverses.tangent, in_others + in_across);
            let in_dot = in_cos.fma(slopes[0], in_across * -2.0);
            for c in 0..3 {
                one.pull[c] = in_dot.fma(others.vector[c], one.pull[c]);
                others.pull[c] = in_dot.fma(one.vector[c], others.pull[c]);
            }
        }
        let asked = &mut around.asked[row.block * V::WIDTH + row.lane];
        asked[0] = asked[0] + total::<V, O::Quantity<V>>(one.slope);
        for c in 0..3 {
            asked[c + 1] = asked[c + 1] + total::<V, O::Quantity<V>>(one.pull[c]);
        }
    }
    for (block, b) in around.blocks.iter().enumerate() {
        let all = O::Quantity::<V>::spill([b.slope, b.pull[0], b.pull[1], b.pull[2]]);
        for k in 0..V::WIDTH {
            let asked = &mut around.asked[block * V::WIDTH + k];
            for c in 0..4 {
                asked[c] = asked[c] + all[c][k];
            }
        }
    }
}

/// Σ (∂E/∂G) × angular factor over the functions of a group, in the lanes that count.
#[inline(always)]
fn sum_of<V: Lanes, O: Order>(
    members: &[(usize, usize)],
    angles: &[Dual<O::Quantity<V>>],
    slopes: &[O::Quantity<V>],
    mask: Option<V::Mask>,
) -> Dual<O::Quantity<V>> {
    let (mut value, mut tangent) = (O::Quantity::<V>::constant(0.0), O::Quantity::<V>::constant(0.0));
    for &(angle, output) in members {
        value = angles[angle].value.fma(slopes[output], value);
        tangent = angles[angle].tangent.fma(slopes[output], tangent);
    }
    Dual { value: masked(mask, value), tangent: masked(mask, tangent) }
}

/// Rounds the forces to the grid and hands them on.
#[inline(always)]
fn hand_on<O: Order>(
    frame: &Frame,
    places: &[Option<(usize, [O::One; 3])>],
    asked: &[Asked<O::One>],
    shares: &mut [[f64; 3]],
    sums: &mut Sums,
) {
    let origin = frame.grid.force_origin();
    for (place, &[slope, x, y, z]) in places.iter().zip(asked) {
        let Some((entry, d)) = *place else { continue };
        let (twice, pull) = (slope * 2.0, [x, y, z]);
        let mut f = [O::One::constant(0.0); 3];
        for c in 0..3 {
            f[c] = (-(twice * d[c] + pull[c])).rounded(origin);
            shares[entry][c] = f[c].result();
        }
        if frame.sums {
            sums.add_virial(d, f);
        }
    }
}

impl<O: Order> Kernel<f64> for Networks<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = f64>>(self) {
        let Networks { sites, networks, elements, weights, .. } = self;
        let (list, t) = (&sites.near.list, &sites.frame.atoms.types);
        let first = list.starts()[sites.ranks.start] as usize;
        let mut work = Workspace::<O::Quantity<V>>::new(networks);
        let mut around: Vec<Around<O::Quantity<V>, O::One>> = Vec::new();
        around.resize_with(V::WIDTH, Around::default);
        for (element, site) in networks.iter().enumerate() {
            let mut ranks = sites.ranks.clone();
            loop {
                // as many atoms of this element as there are lanes
                let mut found = 0;
                while found < V::WIDTH {
                    let Some(rank) = ranks.next() else { break };
                    if elements[t[list.owner(list.slots()[rank])] as usize] == element {
                        let around = &mut around[found];
                        surround::<V, O>(&sites, (&site.surroundings, elements), rank, first, around);
                        forward::<V, O>(&site.surroundings, around, &mut work);
                        found += 1;
                    }
                }
                if found == 0 {
                    break;
                }
                work.nodes.clear();
                for (k, scaled) in site.scaling.iter().enumerate() {
                    // (lanes without a site of their own repeat the first)
                    let value = O::Quantity::<V>::gather(
                        #[inline(always)]
                        |lane| around[if lane < found { lane } else { 0 }].values[k],
                    );
                    work.nodes.push(scaled.of(value));
                }
                let energy = network(site, weights, &mut work);
                for (lane, around) in around[..found].iter_mut().enumerate() {
                    if sites.frame.sums {
                        sites.sums.add_energy(energy.result().lane(lane));
                    }
                    around.slopes.clear();
                    for (k, scaled) in site.scaling.iter().enumerate() {
                        let slope = work.adjoints[k] * (scaled.factor * site.surroundings.factors[k]);
                        around.slopes.push(splat::<V, O::Quantity<V>>(slope, lane));
                    }
                    backward::<V, O>(&site.surroundings, around, &mut work);
                    hand_on::<O>(sites.frame, &around.places, &around.asked, sites.shares, sites.sums);
                }
            }
        }
    }
}
