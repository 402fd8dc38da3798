//! The standard energies, listed once.
//!
//! Energies are types, not values, and their traits are generic, so that the list takes a visitor: whatever must
//! be known, built or tested for every energy is a [`Visitor`].

use crate::energy::{
    AngleEnergy, BondEnergy, DihedralEnergy, EmbeddingEnergy, FieldEnergy, GlobalEnergy, PairEnergy,
    SiteEnergy, TripletEnergy, TupleEnergy,
};
use crate::{angle, bond, dihedral, field, many_body, pair, tuple};

/// Is shown every energy, one call each.
pub trait Visitor {
    /// A pair energy.
    fn pair<E: PairEnergy>(&mut self);
    /// A bond.
    fn bond<E: BondEnergy>(&mut self);
    /// An angle.
    fn angle<E: AngleEnergy>(&mut self);
    /// A dihedral.
    fn dihedral<E: DihedralEnergy>(&mut self);
    /// An energy of N bonded atoms.
    fn tuple<E: TupleEnergy<N>, const N: usize>(&mut self);
    /// A field.
    fn field<E: FieldEnergy>(&mut self);
    /// An embedding energy.
    fn embedding<E: EmbeddingEnergy>(&mut self);
    /// An energy with triplets.
    fn triplet<E: TripletEnergy>(&mut self);
    /// An energy of an atom's neighbourhood.
    fn site<E: SiteEnergy>(&mut self);
    /// Networks over symmetry functions, whose form is data: there is one such energy.
    fn neural(&mut self);
    /// An energy of a group of atoms.
    fn global<E: GlobalEnergy>(&mut self);
}

/// Shows the standard energies to `v`. Names are unique within a kind.
pub fn standard(v: &mut impl Visitor) {
    v.pair::<pair::LennardJones>();
    v.pair::<pair::Lj96>();
    v.pair::<pair::Mie>();
    v.pair::<pair::Buckingham>();
    v.pair::<pair::BornMayerHuggins>();
    v.pair::<pair::Morse>();
    v.pair::<pair::Yukawa>();
    v.pair::<pair::Gaussian>();
    v.pair::<pair::SoftCosine>();
    v.pair::<pair::Zbl>();
    v.pair::<pair::Coulomb>();
    v.pair::<pair::CoulombDebye>();
    v.pair::<pair::ReactionField>();
    v.pair::<pair::DampedShiftedForce>();

    v.bond::<bond::HarmonicBond>();
    v.bond::<bond::MorseBond>();
    v.bond::<bond::Fene>();
    v.bond::<bond::G96Bond>();
    v.bond::<bond::QuarticBond>();

    v.angle::<angle::HarmonicAngle>();
    v.angle::<angle::CosineSquaredAngle>();
    v.angle::<angle::CosineAngle>();
    v.angle::<angle::QuarticAngle>();
    v.angle::<angle::PeriodicAngle>();

    v.dihedral::<dihedral::PeriodicDihedral>();
    v.dihedral::<dihedral::RyckaertBellemans>();
    v.dihedral::<dihedral::OplsDihedral>();
    v.dihedral::<dihedral::HarmonicDihedral>();

    v.tuple::<tuple::UreyBradley, 3>();
    v.tuple::<tuple::HarmonicImproper, 4>();
    v.tuple::<tuple::PeriodicImproper, 4>();

    v.field::<field::PositionRestraint>();
    v.field::<field::AnisotropicRestraint>();
    v.field::<field::FlatBottom>();
    v.field::<field::HarmonicWall>();
    v.field::<field::UniformElectricField>();

    v.embedding::<many_body::SuttonChen>();
    v.triplet::<many_body::StillingerWeber>();
    v.site::<many_body::Tersoff>();
    v.neural();
    v.global::<many_body::RadiusOfGyration>();
}
