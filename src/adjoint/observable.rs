//! What is seen of a state: a number, and its derivatives.

use super::{GradientError, Snapshot};
use crate::autodiff::{Tape, Var};
use crate::forces::Forces;
use crate::integrate::{Adjoint, kinetic_energy, temperature};
use crate::neighbors::VerletList;
use crate::system::{Cell, Positions, State};
use potentials::{Angle, Dihedral, Scalar, Vec3};

/// A number that a state has. Vectors between atoms are those to the nearest image.
#[derive(Clone, Debug, PartialEq)]
pub enum Observable {
    /// The potential energy, kJ/mol.
    Potential,
    /// The kinetic energy, kJ/mol.
    Kinetic,
    /// Their sum.
    Total,
    /// The temperature, K (or ε/k_B).
    Temperature,
    /// The pressure (2K + tr W)/3V, kJ/mol/nm³.
    Pressure,
    /// The distance of two atoms, nm.
    Distance([usize; 2]),
    /// The angle at the second of three atoms, radians.
    Angle([usize; 3]),
    /// The dihedral of four atoms in a row, radians.
    Dihedral([usize; 4]),
    /// A coordinate of an atom, followed through periodic images, nm.
    Position(usize, usize),
    /// A component of the velocity of an atom, nm/ps.
    Velocity(usize, usize),
    /// The mean of |r(t) − r(0)|² over these atoms, followed through periodic images, nm².
    MeanSquareDisplacement(Vec<u32>),
    /// The radial distribution function at a distance, of pairs of atoms of which one is in either set:
    /// V/(N_a N_b) Σ w(r_ij − r)/(4π r²) with a Gaussian w for a bin.
    RadialDistribution {
        /// r, nm.
        at: f64,
        /// Standard deviation of w, nm.
        width: f64,
        /// Whether atoms are in the first set, and in the second.
        sets: [Vec<bool>; 2],
    },
    /// The mean of |r − r′|² over all atoms, for places r′ (nm) of each of the states that are seen; r − r′ is to the nearest
    /// image.
    Match(Vec<Vec<[f64; 3]>>),
}

/// What makes a temperature of an energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thermal {
    /// Degrees of freedom.
    pub freedom: usize,
    /// k_B, kJ/mol/K.
    pub boltzmann: f64,
}

/// What is handed on when the forces of a state are differentiated: ∂L/∂U, and ∂L/∂W by the direction that space is strained in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seed {
    pub energy: f64,
    pub strain: [[f64; 3]; 3],
}

impl Seed {
    pub fn none() -> Self {
        Self { energy: 0.0, strain: [[0.0; 3]; 3] }
    }
}

/// What observables measure from.
#[derive(Debug, Default)]
pub(super) struct Reference {
    /// The first positions.
    pub start: Vec<[f64; 3]>,
    /// ∂L of these.
    pub adjoint: Vec<[f64; 3]>,
}

/// How many standard deviations a bin of a radial distribution function has on either side.
const SPREAD: f64 = 8.0;

impl Observable {
    /// Whether it is made of energies or virial.
    pub fn wants_energies(&self) -> bool {
        matches!(self, Self::Potential | Self::Total | Self::Pressure)
    }

    /// Its value; `number` counts the states that are seen.
    pub(super) fn value(
        &self,
        number: usize,
        state: &State,
        masses: &[f64],
        forces: &Forces,
        reference: &Reference,
        thermal: Thermal,
    ) -> Result<f64, GradientError> {
        let State { cell, positions, velocities, .. } = state;
        let kinetic = || kinetic_energy(masses, velocities);
        Ok(match self {
            Self::Potential => forces.energy(),
            Self::Kinetic => kinetic(),
            Self::Total => forces.energy() + kinetic(),
            Self::Temperature => {
                let none = "there is no temperature without degrees of freedom".to_owned();
                temperature(kinetic(), thermal.freedom, thermal.boltzmann)
                    .ok_or(GradientError::Senseless(none))?
            }
            Self::Pressure => {
                let [x, y, z, ..] = forces.virial;
                (2.0 * kinetic() + x + y + z) / (3.0 * volume(cell)?)
            }
            Self::Distance(atoms) => distance(places(cell, positions, atoms, |x| x)),
            Self::Angle(atoms) => angle(places(cell, positions, atoms, |x| x)),
            Self::Dihedral(atoms) => dihedral(places(cell, positions, atoms, |x| x)),
            &Self::Position(i, k) => positions.cartesian(cell, i)[k],
            &Self::Velocity(i, k) => velocities[i][k],
            Self::MeanSquareDisplacement(atoms) => {
                let each = atoms.iter().map(|&i| {
                    let (now, then) = (positions.cartesian(cell, i as usize), reference.start[i as usize]);
                    (0..3).map(|k| (now[k] - then[k]).powi(2)).sum::<f64>()
                });
                each.sum::<f64>() / atoms.len() as f64
            }
            Self::Match(frames) => {
                let target = frame(frames, number)?;
                let each = target.iter().enumerate().map(|(i, there)| {
                    apart(cell, positions.cartesian(cell, i), *there).iter().map(|d| d * d).sum::<f64>()
                });
                each.sum::<f64>() / target.len() as f64
            }
            Self::RadialDistribution { at, width, sets } => distribution(state, &[*at], *width, sets)?[0],
        })
    }

    /// What it has of the energy and the virial by themselves: ∂A/∂U and ∂A/∂W.
    pub(super) fn direct(&self, cell: &Cell) -> Result<Seed, GradientError> {
        let mut seed = Seed::none();
        match self {
            Self::Potential | Self::Total => seed.energy = 1.0,
            Self::Pressure => {
                let each = 1.0 / (3.0 * volume(cell)?);
                (0..3).for_each(|k| seed.strain[k][k] = each);
            }
            _ => {}
        }
        Ok(seed)
    }

    /// Hands ∂L = `seed` times its derivatives on.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn pull(
        &self,
        seed: f64,
        number: usize,
        masses: &[f64],
        at: &Snapshot,
        reference: &mut Reference,
        adjoint: &mut Adjoint,
        forces: &mut Seed,
        thermal: Thermal,
    ) -> Result<(), GradientError> {
        let State { cell, positions, velocities, .. } = &at.state;
        // ∂K
        let kinetic = |seed: f64, adjoint: &mut Adjoint| {
            for (i, v) in velocities.iter().enumerate() {
                for k in 0..3 {
                    adjoint.velocities[i][k] += seed * masses[i] * v[k];
                    adjoint.masses[i] += 0.5 * seed * v[k] * v[k];
                }
            }
        };
        // (energies and virial are left for later)
        let direct = self.direct(cell)?;
        forces.energy += seed * direct.energy;
        let strains = forces.strain.as_flattened_mut().iter_mut().zip(direct.strain.as_flattened());
        strains.for_each(|(sum, e)| *sum += seed * e);
        let potential = |adjoint: &mut Adjoint| {
            for (r, f) in adjoint.positions.iter_mut().zip(&at.forces) {
                for k in 0..3 {
                    r[k] -= seed * f[k];
                }
            }
        };
        match self {
            Self::Potential => potential(adjoint),
            Self::Kinetic => kinetic(seed, adjoint),
            Self::Total => {
                potential(adjoint);
                kinetic(seed, adjoint);
            }
            Self::Temperature => {
                // (the temperature of a unit of energy)
                let one = temperature(1.0, thermal.freedom, thermal.boltzmann).unwrap_or(0.0);
                kinetic(seed * one, adjoint);
            }
            Self::Pressure => kinetic(2.0 * seed / (3.0 * volume(cell)?), adjoint),
            Self::Distance(atoms) => derived(cell, positions, atoms, seed, adjoint, |r| distance(r)),
            Self::Angle(atoms) => derived(cell, positions, atoms, seed, adjoint, |r| angle(r)),
            Self::Dihedral(atoms) => derived(cell, positions, atoms, seed, adjoint, |r| dihedral(r)),
            &Self::Position(i, k) => adjoint.positions[i][k] += seed,
            &Self::Velocity(i, k) => adjoint.velocities[i][k] += seed,
            Self::MeanSquareDisplacement(atoms) => {
                let each = 2.0 * seed / atoms.len() as f64;
                for i in atoms.iter().map(|&i| i as usize) {
                    let now = positions.cartesian(cell, i);
                    for k in 0..3 {
                        let slope = each * (now[k] - reference.start[i][k]);
                        adjoint.positions[i][k] += slope;
                        reference.adjoint[i][k] -= slope;
                    }
                }
            }
            Self::Match(frames) => {
                let target = frame(frames, number)?;
                let each = 2.0 * seed / target.len() as f64;
                for (i, there) in target.iter().enumerate() {
                    let d = apart(cell, positions.cartesian(cell, i), *there);
                    for k in 0..3 {
                        adjoint.positions[i][k] += each * d[k];
                    }
                }
            }
            Self::RadialDistribution { at: r, width, sets } => {
                let seed = seed * normal(cell, *r, sets)?;
                let of = &mut adjoint.positions;
                each_pair(&at.state, r + SPREAD * width, sets, &mut |i, j, d, weight| {
                    let tape = Tape::new();
                    let x = d.map(|x| tape.variable(x));
                    let slopes = tape.gradient(bin(Vec3::new(x[0], x[1], x[2]).norm(), *r, *width));
                    for k in 0..3 {
                        let slope = seed * weight * slopes.of(x[k]);
                        of[j][k] += slope;
                        of[i][k] -= slope;
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// The values of several observables in one state. (Bins of one distribution function are filled together.)
pub(super) fn values(
    observables: &[&Observable],
    number: usize,
    state: &State,
    masses: &[f64],
    forces: &Forces,
    reference: &Reference,
    thermal: Thermal,
) -> Result<Vec<f64>, GradientError> {
    let mut found: Vec<Option<f64>> = vec![None; observables.len()];
    for k in 0..observables.len() {
        if found[k].is_some() {
            continue;
        }
        if let Observable::RadialDistribution { width, sets, .. } = observables[k] {
            let alike = |of: &Observable| match of {
                Observable::RadialDistribution { at, width: w, sets: s } if w == width && s == sets => {
                    Some(*at)
                }
                _ => None,
            };
            let bins: Vec<(usize, f64)> =
                (k..observables.len()).filter_map(|m| Some((m, alike(observables[m])?))).collect();
            let at: Vec<f64> = bins.iter().map(|(_, at)| *at).collect();
            let g = distribution(state, &at, *width, sets)?;
            bins.iter().zip(g).for_each(|((m, _), g)| found[*m] = Some(g));
        } else {
            found[k] = Some(observables[k].value(number, state, masses, forces, reference, thermal)?);
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// g(r) at these distances.
fn distribution(
    state: &State,
    at: &[f64],
    width: f64,
    sets: &[Vec<bool>; 2],
) -> Result<Vec<f64>, GradientError> {
    let (mut sums, reach) = (vec![0.0; at.len()], SPREAD * width);
    let farthest = at.iter().fold(0.0, |m: f64, x| m.max(*x));
    each_pair(state, farthest + reach, sets, &mut |_, _, d, weight| {
        let r = Vec3::new(d[0], d[1], d[2]).norm();
        for (sum, at) in sums.iter_mut().zip(at).filter(|(_, at)| (r - **at).abs() <= reach) {
            *sum += weight * bin(r, *at, width);
        }
    })?;
    sums.iter().zip(at).map(|(sum, at)| Ok(sum * normal(&state.cell, *at, sets)?)).collect()
}

/// r − r′, to the nearest image.
fn apart(cell: &Cell, here: [f64; 3], there: [f64; 3]) -> [f64; 3] {
    let s = cell.fraction(std::array::from_fn(|k| here[k] - there[k]));
    let periodic = cell.periodic();
    cell.cartesian(
        cell.nearest(std::array::from_fn(|k| if periodic[k] { s[k] - s[k].round() } else { s[k] })),
    )
}

fn volume(cell: &Cell) -> Result<f64, GradientError> {
    cell.volume().ok_or_else(|| GradientError::Senseless("there is no pressure without a volume".into()))
}

fn frame(frames: &[Vec<[f64; 3]>], number: usize) -> Result<&Vec<[f64; 3]>, GradientError> {
    frames.get(number).ok_or_else(|| {
        let message = format!("the target has {} frames, and the run is seen more often", frames.len());
        GradientError::Senseless(message)
    })
}

/// The places of atoms, each next to the one before.
fn places<S: Scalar, const N: usize>(
    cell: &Cell,
    positions: &Positions,
    atoms: &[usize; N],
    mut number: impl FnMut(f64) -> S,
) -> [Vec3<S>; N] {
    let mut at = [0.0; 3];
    std::array::from_fn(|k| {
        if k > 0 {
            let d = cell.cartesian(cell.nearest(positions.displacement(atoms[k - 1], atoms[k])));
            at = std::array::from_fn(|c| at[c] + d[c]);
        }
        let [x, y, z] = at.map(&mut number);
        Vec3::new(x, y, z)
    })
}

fn distance<S: Scalar>(r: [Vec3<S>; 2]) -> S {
    (r[1] - r[0]).norm()
}
fn angle<S: Scalar>(r: [Vec3<S>; 3]) -> S {
    Angle::between(r[0] - r[1], r[2] - r[1]).value()
}
fn dihedral<S: Scalar>(r: [Vec3<S>; 4]) -> S {
    Dihedral::along(r[1] - r[0], r[2] - r[1], r[3] - r[2]).value()
}

/// Hands the derivatives of a function of some places on.
fn derived<const N: usize>(
    cell: &Cell,
    positions: &Positions,
    atoms: &[usize; N],
    seed: f64,
    adjoint: &mut Adjoint,
    text: impl for<'t> Fn([Vec3<Var<'t>>; N]) -> Var<'t>,
) {
    let tape = Tape::new();
    let r = places(cell, positions, atoms, |x| tape.variable(x));
    let slopes = tape.gradient(text(r));
    for (&i, r) in atoms.iter().zip(r) {
        for (k, x) in [r.x, r.y, r.z].into_iter().enumerate() {
            adjoint.positions[i][k] += seed * slopes.of(x);
        }
    }
}

/// A bin: a normal distribution around `at`.
fn bin<S: Scalar>(r: S, at: f64, width: f64) -> S {
    let x = (r - at) / width;
    (x * x * -0.5).exp() / (width * std::f64::consts::TAU.sqrt())
}

/// What makes a sum over bins a distribution function.
fn normal(cell: &Cell, at: f64, sets: &[Vec<bool>; 2]) -> Result<f64, GradientError> {
    let count = |set: &[bool]| set.iter().filter(|x| **x).count() as f64;
    let both = sets[0].iter().zip(&sets[1]).filter(|(a, b)| **a && **b).count() as f64;
    let pairs = count(&sets[0]) * count(&sets[1]) - both;
    if pairs < 1.0 {
        return Err(GradientError::Senseless("there are no pairs for the distribution function".into()));
    }
    Ok(volume(cell)? / (pairs * 4.0 * std::f64::consts::PI * at * at))
}

/// Calls `visit(i, j, vector, how often it counts)` for all pairs that are near each other, of atoms of either set, each pair once.
fn each_pair(
    state: &State,
    range: f64,
    sets: &[Vec<bool>; 2],
    visit: &mut dyn FnMut(usize, usize, [f64; 3], f64),
) -> Result<(), GradientError> {
    let list = VerletList::new(range, 0.0).and_then(|mut list| {
        list.update(&state.positions, &state.cell, None)?;
        Ok(list)
    });
    let mut list = list.map_err(|e| GradientError::Forces(e.into()))?;
    list.refresh(&state.positions, &state.cell, |_| 0.0);
    let rows = list.rows::<f64>();
    let [a, b] = sets;
    for i in 0..state.positions.len() {
        let rank = list.rank(i);
        let own = &rows[list.slots()[rank] as usize / 4];
        let mut near: Vec<u32> = list.row(rank).to_vec();
        // (in an order that does not depend on the list)
        near.sort_unstable_by_key(|&slot| list.key(slot));
        for slot in near {
            let j = list.owner(slot);
            let once = j > i || (j == i && list.image(slot) > [0; 3]);
            let weight = f64::from(u8::from(a[i] && b[j])) + f64::from(u8::from(a[j] && b[i]));
            if once && weight > 0.0 {
                let there = &rows[slot as usize / 4];
                let d = state.cell.cartesian(std::array::from_fn(|k| there[k] - own[k]));
                visit(i, j, d, weight);
            }
        }
    }
    Ok(())
}
