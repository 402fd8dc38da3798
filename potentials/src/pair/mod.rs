//! Energies of two atoms at a distance.

mod lennard_jones;
pub use lennard_jones::LennardJones;
