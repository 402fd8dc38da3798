//! The energies that a run can use, by kind and name: the standard ones, and a third party's.

use crate::forces::embedding::EmbeddingLaw;
use crate::forces::field::FieldLaw;
use crate::forces::global::GlobalLaw;
use crate::forces::neural;
use crate::forces::pair::{Derived, Ended, Joint, PairLaw, Special, TypePairs};
use crate::forces::site::SiteLaw;
use crate::forces::triplet::{TripletLaw, TypeTriples};
use crate::forces::tuple::{Bonded, OfAngle, OfBond, OfDihedral, OfPositions, TupleLaw};
use crate::forces::{Entry, ParameterTable, Term};
use potentials::catalog::Visitor;
use potentials::cutoff::{Cut, CutEmbedding, ForceShift, Shift, Switch, Treatment, Truncate};
use potentials::many_body::Neural;
use potentials::many_body::neural::Network;
use potentials::pair::{DampedShiftedForce, LennardJones, ReactionField};
use potentials::{
    About, AngleEnergy, BondEnergy, DihedralEnergy, EmbeddingEnergy, Energy, Factor, FieldEnergy,
    GlobalEnergy, Origin, PairEnergy, SiteEnergy, TripletEnergy, TupleEnergy,
};

pub use potentials::cutoff::Ending;

/// The kinds of energy; also the names of the tables in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum EnergyKind {
    Pair,
    Bond,
    Angle,
    Dihedral,
    Improper,
    Field,
    ManyBody,
    Global,
}

impl EnergyKind {
    /// All kinds.
    pub const ALL: [EnergyKind; 8] = [
        EnergyKind::Pair,
        EnergyKind::Bond,
        EnergyKind::Angle,
        EnergyKind::Dihedral,
        EnergyKind::Improper,
        EnergyKind::Field,
        EnergyKind::ManyBody,
        EnergyKind::Global,
    ];
    /// The key of the table in the input.
    pub fn key(self) -> &'static str {
        match self {
            EnergyKind::Pair => "pair",
            EnergyKind::Bond => "bond",
            EnergyKind::Angle => "angle",
            EnergyKind::Dihedral => "dihedral",
            EnergyKind::Improper => "improper",
            EnergyKind::Field => "field",
            EnergyKind::ManyBody => "many-body",
            EnergyKind::Global => "global",
        }
    }
}

/// How a term is made of an energy whose type is forgotten. The parameter table's rows have one slot a parameter,
/// followed, where there is a cut-off, by `cutoff` and `inner`.
#[derive(Clone, Copy)]
pub enum Builder {
    /// A pair energy.
    Pair {
        /// Makes the term.
        build: fn(&str, Ending, ParameterTable, TypePairs, Special) -> Box<dyn Term>,
        /// What the formula is multiplied by.
        factor: Factor,
        /// See [`PairEnergy::LEAVES_REMAINDER`].
        leaves_remainder: bool,
        /// See [`PairEnergy::ENDS_AT_CUTOFF`].
        ends_at_cutoff: bool,
    },
    /// An energy of 2, 3 or 4 atoms: each tuple's atoms (the rest unused) and row.
    Tuple {
        /// How many atoms.
        atoms: usize,
        /// Makes the term; the second argument is the number of atoms in the system.
        build: fn(&str, usize, ParameterTable, &[([u32; 4], u32)]) -> Box<dyn Term>,
    },
    /// A field: atoms, rows and anchors.
    Field {
        /// Makes the term.
        build: fn(&str, ParameterTable, &[(u32, u32, [f64; 3])]) -> Box<dyn Term>,
        /// What the formula is multiplied by.
        factor: Factor,
        /// What positions are measured from.
        origin: Origin,
    },
    /// Density → embedding.
    Embedding {
        /// Makes the term.
        build: fn(&str, Ending, ParameterTable, TypePairs) -> Box<dyn Term>,
    },
    /// Features → triplets, or a site energy.
    Triples {
        /// Makes the term.
        build: fn(&str, ParameterTable, TypeTriples) -> Box<dyn Term>,
        /// Whether (i, j, k) and (i, k, j) may have different parameters.
        ordered: bool,
    },
    /// Networks: their weights, and the element of each type of atom.
    Neural {
        /// Makes the term.
        build: fn(&str, Network, &[f64], Vec<usize>) -> Box<dyn Term>,
    },
    /// A group as a whole.
    Global {
        /// Makes the term.
        build: fn(&str, ParameterTable, Vec<u32>) -> Box<dyn Term>,
    },
}

/// One energy of the catalogue.
#[derive(Clone, Copy)]
pub struct Listed {
    /// Its kind.
    pub kind: EnergyKind,
    /// Name, formula, parameters, source.
    pub about: &'static About,
    /// How to make a term of it.
    pub builder: Builder,
}

/// The energies that a run can use.
#[derive(Clone, Default)]
pub struct Catalog {
    entries: Vec<Listed>,
}

/// The name of the pair energy of bare charges, which no cut-off suits.
pub const BARE_CHARGES: &str = "coulomb";

/// The names of the pair energies of charges that end at the cut-off by their own formula.
pub fn ending_charges(catalog: &Catalog) -> Vec<&'static str> {
    let ends =
        |e: &&Listed| matches!(e.builder, Builder::Pair { factor: Factor::Charge, ends_at_cutoff: true, .. });
    catalog.entries().iter().filter(ends).map(|e| e.about.name).collect()
}

/// The standard energies.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    potentials::catalog::standard(&mut catalog);
    catalog
}

macro_rules! with {
    ($(#[$doc:meta])* $name:ident, $Trait:ident $(, const $N:ident)?) => {
        $(#[$doc])*
        pub fn $name<E: $Trait$(<$N>)? $(, const $N: usize)?>(mut self) -> Self {
            Visitor::$name::<E $(, $N)?>(&mut self);
            self
        }
    };
}

/// Pairs of standard energies that one kernel computes.
pub fn joints() -> Vec<Joint> {
    type By<E> = Ended<Derived<E>>;
    fn joint<C: Treatment, E: PairEnergy>() -> Joint {
        Joint::of::<Cut<LennardJones, C>, By<LennardJones>, Cut<E, Truncate>, By<E>>()
    }
    fn with_charges<C: Treatment>() -> [Joint; 2] {
        [joint::<C, ReactionField>(), joint::<C, DampedShiftedForce>()]
    }
    [
        with_charges::<Truncate>(),
        with_charges::<Shift>(),
        with_charges::<ForceShift>(),
        with_charges::<Switch>(),
    ]
    .concat()
}

impl Catalog {
    with!(/** Adds a pair energy. */ pair, PairEnergy);
    with!(/** Adds a bond energy. */ bond, BondEnergy);
    with!(/** Adds an angle energy. */ angle, AngleEnergy);
    with!(/** Adds a dihedral energy. */ dihedral, DihedralEnergy);
    with!(/** Adds an energy of N bonded atoms. */ tuple, TupleEnergy, const N);
    with!(/** Adds a field. */ field, FieldEnergy);
    with!(/** Adds an embedding energy. */ embedding, EmbeddingEnergy);
    with!(/** Adds a triplet energy. */ triplet, TripletEnergy);
    with!(/** Adds a site energy. */ site, SiteEnergy);
    with!(/** Adds an energy of a group. */ global, GlobalEnergy);

    /// All energies, in the order they were added.
    pub fn entries(&self) -> &[Listed] {
        &self.entries
    }
    /// The energy of this kind and name.
    pub fn find(&self, kind: EnergyKind, name: &str) -> Option<&Listed> {
        self.entries.iter().find(|e| e.kind == kind && e.about.name == name)
    }

    fn add(&mut self, kind: EnergyKind, about: &'static About, builder: Builder) {
        self.entries.retain(|e| e.kind != kind || e.about.name != about.name);
        self.entries.push(Listed { kind, about, builder });
    }
}

/// The first N atoms of each tuple, and the rows.
fn tuples<const N: usize>(list: &[([u32; 4], u32)]) -> (Vec<[u32; N]>, Vec<u32>) {
    list.iter().map(|&(atoms, row)| (std::array::from_fn(|k| atoms[k]), row)).unzip()
}

fn tuple_builder<E: Bonded<N>, const N: usize>() -> Builder {
    Builder::Tuple {
        atoms: N,
        build: |name, atoms, table, list| {
            let (tuples, rows) = tuples(list);
            Entry::boxed(name, table, TupleLaw::<E, N>::new(atoms, tuples, rows))
        },
    }
}

impl Visitor for Catalog {
    fn pair<E: PairEnergy>(&mut self) {
        fn build<E: PairEnergy>(
            name: &str,
            ending: Ending,
            table: ParameterTable,
            types: TypePairs,
            special: Special,
        ) -> Box<dyn Term> {
            macro_rules! cut {
                ($C:ty) => {
                    Entry::boxed(name, table, PairLaw::<Cut<E, $C>, Ended<Derived<E>>>::new(types, special))
                };
            }
            match ending {
                Ending::Truncate => cut!(Truncate),
                Ending::Shift => cut!(Shift),
                Ending::ForceShift => cut!(ForceShift),
                Ending::Switch => cut!(Switch),
            }
        }
        let builder = Builder::Pair {
            build: build::<E>,
            factor: E::FACTOR,
            leaves_remainder: E::LEAVES_REMAINDER,
            ends_at_cutoff: E::ENDS_AT_CUTOFF,
        };
        self.add(EnergyKind::Pair, &E::ABOUT, builder);
    }
    fn bond<E: BondEnergy>(&mut self) {
        self.add(EnergyKind::Bond, &E::ABOUT, tuple_builder::<OfBond<E>, 2>());
    }
    fn angle<E: AngleEnergy>(&mut self) {
        self.add(EnergyKind::Angle, &E::ABOUT, tuple_builder::<OfPositions<OfAngle<E>>, 3>());
    }
    fn dihedral<E: DihedralEnergy>(&mut self) {
        self.add(EnergyKind::Dihedral, &E::ABOUT, tuple_builder::<OfPositions<OfDihedral<E>>, 4>());
    }
    fn tuple<E: TupleEnergy<N>, const N: usize>(&mut self) {
        let kind = match N {
            2 => EnergyKind::Bond,
            3 => EnergyKind::Angle,
            _ => EnergyKind::Improper,
        };
        self.add(kind, &E::ABOUT, tuple_builder::<OfPositions<E>, N>());
    }
    fn field<E: FieldEnergy>(&mut self) {
        let build = |name: &str, table: ParameterTable, atoms: &[(u32, u32, [f64; 3])]| {
            Entry::boxed(name, table, FieldLaw::<E>::new(atoms.iter().copied()))
        };
        self.add(
            EnergyKind::Field,
            &E::ABOUT,
            Builder::Field { build, factor: E::FACTOR, origin: E::ORIGIN },
        );
    }
    fn embedding<E: EmbeddingEnergy>(&mut self) {
        let build = |name: &str, ending: Ending, table: ParameterTable, types: TypePairs| {
            macro_rules! cut {
                ($C:ty) => {
                    Entry::boxed(
                        name,
                        table,
                        EmbeddingLaw::<CutEmbedding<E, $C>, Ended<Derived<E>>>::new(types),
                    )
                };
            }
            match ending {
                Ending::Truncate => cut!(Truncate),
                Ending::Shift => cut!(Shift),
                Ending::ForceShift => cut!(ForceShift),
                Ending::Switch => cut!(Switch),
            }
        };
        self.add(EnergyKind::ManyBody, &E::ABOUT, Builder::Embedding { build });
    }
    fn triplet<E: TripletEnergy>(&mut self) {
        let build = |name: &str, table: ParameterTable, types: TypeTriples| {
            Entry::boxed(name, table, TripletLaw::<E>::new(types))
        };
        self.add(EnergyKind::ManyBody, &E::ABOUT, Builder::Triples { build, ordered: false });
    }
    fn site<E: SiteEnergy>(&mut self) {
        let build = |name: &str, table: ParameterTable, types: TypeTriples| {
            Entry::boxed(name, table, SiteLaw::<E>::new(types))
        };
        self.add(EnergyKind::ManyBody, &E::ABOUT, Builder::Triples { build, ordered: true });
    }
    fn neural(&mut self) {
        let builder = Builder::Neural { build: neural::term };
        self.add(EnergyKind::ManyBody, &Neural::ABOUT, builder);
    }
    fn global<E: GlobalEnergy>(&mut self) {
        let build = |name: &str, table: ParameterTable, group: Vec<u32>| {
            Entry::boxed(name, table, GlobalLaw::<E>::new(group))
        };
        self.add(EnergyKind::Global, &E::ABOUT, Builder::Global { build });
    }
}
