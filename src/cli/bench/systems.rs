//! The systems that `md bench` knows: inputs like any other.

use crate::catalog::Catalog;
use crate::input::plan::Plan;
use crate::input::reader::Document;
use crate::input::report::Diagnostics;
use std::fmt::Write;

/// A system to be timed: the last stage of an input.
pub(super) struct System {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether it is among those that are timed if none is named.
    pub usual: bool,
    input: fn() -> Input,
}

/// The text of an input, with what is changed in it.
struct Input {
    text: &'static str,
    set: Vec<(String, String)>,
    /// A structure file that it names.
    file: Option<(&'static str, Vec<u8>)>,
}

pub(super) const SYSTEMS: &[System] = &[
    System {
        name: "lj-4k",
        about: "4,000 atoms of a Lennard-Jones liquid, cut off at 2.5 σ",
        usual: false,
        input: || lennard_jones(10),
    },
    System { name: "lj-32k", about: "32,000 atoms of the same", usual: true, input: || lennard_jones(20) },
    System { name: "lj-256k", about: "256,000 atoms of the same", usual: false, input: || lennard_jones(40) },
    System {
        name: "water",
        about: "1,024 molecules of flexible SPC/Fw water, reaction field, cut off at 9 Å",
        usual: true,
        input: || water("[2, 1, 1]"),
    },
    System {
        name: "water-25k",
        about: "24,576 atoms of the same",
        usual: false,
        input: || water("[4, 2, 2]"),
    },
    System {
        name: "copper",
        about: "32,000 atoms of a copper crystal, Sutton–Chen, cut off at 7.22 Å",
        usual: false,
        input: || crystal(include_str!("../../../inputs/copper.toml"), "[20, 20, 20]"),
    },
    System {
        name: "silicon",
        about: "32,000 atoms of a silicon crystal, Stillinger–Weber",
        usual: true,
        input: || crystal(include_str!("../../../inputs/silicon.toml"), "[20, 20, 10]"),
    },
    System {
        name: "neural",
        about: "4,096 atoms of a silicon crystal, a neural network over 14 symmetry functions, cut off at 5.2 Å",
        usual: false,
        input: neural,
    },
    System {
        name: "chains",
        about: "320 bead-spring chains of 100 beads in a melt (Kremer–Grest), Langevin",
        usual: false,
        input: chains,
    },
];

impl System {
    /// The plan of its input with these changes.
    ///
    /// # Errors
    /// Changes that cannot be made (or another catalogue).
    pub fn plan(&self, changes: &[(String, String)], catalog: &Catalog) -> Result<Plan, Diagnostics> {
        let Input { text, mut set, file } = (self.input)();
        set.extend_from_slice(changes);
        let mut document = Document::parse(format!("{}.toml", self.name), text, &set)?;
        if let Some((name, bytes)) = file {
            document = document.with_file(name, bytes);
        }
        Plan::of(&document, catalog)
    }
}

fn set(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    changes.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect()
}

/// A liquid of 4 n³ atoms.
fn lennard_jones(n: usize) -> Input {
    let repeat = format!("[{n}, {n}, {n}]");
    let set = set(&[("system.lattice.repeat", &repeat)]);
    Input { text: include_str!("lj.toml"), set, file: None }
}

/// The crystal of an input, warmed for fewer steps.
fn crystal(text: &'static str, repeat: &str) -> Input {
    Input { text, set: set(&[("system.lattice.repeat", repeat), ("stage[0].steps", "20")]), file: None }
}

/// A crystal with a network that is not trained.
fn neural() -> Input {
    let set = set(&[
        ("system.lattice.repeat", "[8, 8, 8]"),
        ("many-body.neural.radial", "8"),
        ("many-body.neural.zetas", "[1.0, 4.0, 16.0]"),
    ]);
    Input { text: include_str!("../../../inputs/neural-silicon.toml"), set, file: None }
}

/// Copies of the water of the input, whose molecules are at their temperature and only need to part company.
fn water(repeat: &str) -> Input {
    Input {
        text: include_str!("../../../inputs/water.toml"),
        set: set(&[("system.repeat", repeat), ("stage[0].steps", "50")]),
        file: Some(("structures/water.gro", include_bytes!("../../../inputs/structures/water.gro").to_vec())),
    }
}

/// How many beads a chain has.
const BEADS: usize = 100;
/// Cubic cells of the chains' lattice along each axis.
const CELLS: usize = 20;
/// Beads in σ⁻³.
const DENSITY: f64 = 0.85;

fn chains() -> Input {
    let list =
        |items: &mut dyn Iterator<Item = String>| format!("[{}]", items.collect::<Vec<_>>().join(", "));
    let atoms = list(&mut (1..=BEADS).map(|k| format!("\"b{k}: A\"")));
    let bonds = list(&mut (1..BEADS).map(|k| format!("[\"b{k}\", \"b{}\"]", k + 1)));
    Input {
        text: include_str!("chains.toml"),
        set: set(&[("molecules.chain.atoms", &atoms), ("molecules.chain.bonds", &bonds)]),
        file: Some(("chains.xyz", folded_chains().into_bytes())),
    }
}

/// Chains through all sites of an fcc lattice, from neighbour to neighbour: zigzags within a plane of the lattice, each of
/// which goes on in the next one where it leaves the cell.
fn folded_chains() -> String {
    let edge = (4.0 * (CELLS as f64).powi(3) / DENSITY).cbrt();
    let half = edge / (2 * CELLS) as f64;
    let (wide, plane) = (2 * CELLS, 2 * CELLS * CELLS);
    let mut text = format!(
        "{}\nLattice=\"{edge} 0 0 0 {edge} 0 0 0 {edge}\" Properties=species:S:1:pos:R:3 pbc=\"T T T\"\n",
        wide * plane
    );
    for k in 0..wide * plane {
        let (z, along) = (k / plane, k % plane);
        let site = [along + z, 2 * (along / wide) + along % 2, z].map(|n| n as f64 * half);
        let _ = writeln!(text, "A {} {} {}", site[0], site[1], site[2]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_is_an_input_without_a_warning() {
        for system in SYSTEMS.iter().filter(|s| s.name != "lj-256k") {
            let plan = system.plan(&[], &crate::catalog());
            let plan = plan.unwrap_or_else(|found| panic!("{}: {}", system.name, found.render(false)));
            assert!(plan.warnings.is_empty(), "{}: {}", system.name, plan.warnings.render(false));
            let atoms = plan.atoms.len();
            assert!((3_000..=33_000).contains(&atoms), "{}: {atoms} atoms", system.name);
        }
    }

    /// The lattice's neighbours are √½ of its constant apart.
    #[test]
    fn chains_have_neighbors_for_bonds_and_are_a_melt() {
        let plan = SYSTEMS.iter().find(|s| s.name == "chains").unwrap().plan(&[], &crate::catalog()).unwrap();
        assert_eq!((plan.atoms.len(), plan.topology.bonds.len()), (32_000, 320 * 99));
        let volume = plan.state.cell.volume().unwrap();
        assert!((32_000.0 / volume - DENSITY).abs() < 1e-12);
        let bond = (4.0 / DENSITY).cbrt() * 0.5f64.sqrt();
        for &[i, j] in &plan.topology.bonds {
            let cell = &plan.state.cell;
            let d = cell.cartesian(cell.nearest(plan.state.positions.displacement(i as usize, j as usize)));
            let length = d.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((length - bond).abs() < 1e-9, "{i} {j} {length}");
        }
    }
}
