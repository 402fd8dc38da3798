//! Decks of LAMMPS: pair styles, bonded styles, many-body potentials, and steps at constant energy.

use super::engine::*;
use super::json::*;
use super::report::{Outcome, Report, Tolerance};
use super::smooth_zbl::SmoothZbl;
use md::catalog::{Catalog, Ending, EnergyKind};
use md::forces::Term;
use potentials::Dihedral;
use serde_json::Value;
use std::f64::consts::PI;
use std::path::Path;

/// The terms of a deck, or what is missing; and constants that the source adds to an energy.
#[derive(Default)]
pub struct Deck {
    pub terms: Vec<Box<dyn Term>>,
    pub lacks: Vec<String>,
    constants: Vec<(String, f64)>,
}

pub fn run(path: &Path) -> Outcome {
    let case = read(path);
    let system = System::read(&case);
    let deck = deck(&case, &system, path);
    if !deck.lacks.is_empty() {
        return Outcome::Lacks(deck.lacks);
    }
    let Deck { terms, constants, .. } = deck;
    let mut evaluator = system.evaluator(terms);
    let mut report = Report::default();
    for (expected, limits) in expectations(&case, &constants) {
        for (kind, found) in system.evaluate(&mut evaluator) {
            expected.compare(&mut report, &kind, &found, limits);
        }
    }
    let after = &case["reference"]["after_4_steps"];
    if !after.is_null() {
        // (0.1 fs; in metal units 0.0001 ps)
        let found = system.after(4, 1e-4, &mut evaluator);
        let limits = limits(&case["tolerance"]);
        let energies = if after["energy"].is_null() { after } else { &after["energy"] };
        expected(energies, &after["forces"], &Value::Null, &constants).compare(
            &mut report,
            "after 4 steps",
            &found,
            limits,
        );
    }
    Outcome::Ran(report)
}

/// What the file demands, and never less than the plain terms of these decks can do.
fn limits(tolerance: &Value) -> Tolerance {
    let of = |key: &str, plain: f64| as_number(&tolerance[key]).unwrap_or(plain);
    let energy = of("energy_rel", Tolerance::PLAIN.energy);
    // LAMMPS's erfc is good to 1e-7; the files ask for less where it stands
    let erfc = energy > 1e-7;
    Tolerance {
        energy,
        force: if erfc { 5e-6 } else { Tolerance::PLAIN.force },
        virial: of("virial_rel", Tolerance::PLAIN.virial),
    }
}

fn expected(energy: &Value, forces: &Value, virial: &Value, constants: &[(String, f64)]) -> Expected {
    let names = ["vdwl", "coul", "bond", "angle", "dihedral", "improper"];
    let mut energies: Vec<_> =
        names.iter().filter_map(|&n| Some((n.to_owned(), as_number(&energy[n])?))).collect();
    if energies.is_empty() {
        energies.extend(as_number(&energy["total"]).map(|e| ("vdwl".to_owned(), e)));
    }
    for (name, e) in &mut energies {
        *e -= constants.iter().filter(|c| c.0 == *name).map(|c| c.1).sum::<f64>();
    }
    let virial = (!virial.is_null()).then(|| array(virial));
    Expected { energies, forces: Some(vectors(forces)), virial }
}

/// The values of LAMMPS, and those with an exact erfc where the file has them.
fn expectations(case: &Value, constants: &[(String, f64)]) -> Vec<(Expected, Tolerance)> {
    let (reference, limits) = (&case["reference"], limits(&case["tolerance"]));
    let of = |suffix: &str| {
        let [energy, forces, virial] =
            ["energy", "forces", "virial"].map(|key| &reference[&format!("{key}{suffix}")]);
        (!energy.is_null()).then(|| expected(energy, forces, virial, constants))
    };
    let mut out: Vec<_> = of("").map(|e| (e, limits)).into_iter().collect();
    out.extend(of("_exact_erfc").map(|e| (e, Tolerance { energy: 1e-9, force: 1e-9, virial: 1e-9 })));
    assert!(!out.is_empty(), "nothing to compare with");
    out
}

/// All terms of a deck.
pub fn deck(case: &Value, system: &System, path: &Path) -> Deck {
    let catalog = md::catalog().pair::<SmoothZbl>();
    let mut deck = Deck::default();
    let (field, topology) = (&case["forcefield"], &case["topology"]);
    for style in list(&field["pair"]) {
        if style["potential_file"].is_string() || style["potential_files"].is_array() {
            many_body(&mut deck, &catalog, system, style, path);
        } else {
            pairs(&mut deck, &catalog, case, system, style);
        }
    }
    for (key, rows, atoms) in [
        ("bond", "bonds", 2),
        ("angle", "angles", 3),
        ("dihedral", "dihedrals", 4),
        ("improper", "impropers", 4),
    ] {
        if field[key]["style"].is_string() {
            bonded(&mut deck, &catalog, system, key, &field[key], list(&topology[rows]), atoms);
        }
    }
    for key in ["kspace", "coulomb"] {
        deck.lacks.extend(field[key]["style"].as_str().map(|s| format!("{key} {s}")));
    }
    deck
}

// ------------------------------------------------------------------------------------- pairs

/// Parameters from a row of coefficients.
type Values<'a> = Box<dyn Fn(&Value) -> Vec<f64> + 'a>;

/// A part of a pair style.
struct Part<'a> {
    name: &'a str,
    energy: &'a str,
    /// The parameters that a row of coefficients gives.
    values: Values<'a>,
    cutoff: f64,
    ending: Ending,
    remainder: bool,
}

fn keys<'a>(keys: &'static [&'static str]) -> Values<'a> {
    Box::new(move |c| keys.iter().map(|k| number(c, k)).collect())
}

fn pairs(deck: &mut Deck, catalog: &Catalog, case: &Value, system: &System, style: &Value) {
    let (name, global) = (text(style, "style"), &style["global"]);
    let first = |keys: &[&str]| keys.iter().find_map(|k| as_number(&global[*k]));
    let cutoff = first(&["cut", "cut_lj", "cut_buck", "outer"]).unwrap_or(0.0);
    let coulomb_cutoff = first(&["cut_coul", "cut", "cut_lj", "cut_buck"]).unwrap_or(0.0);
    let ending = if style["shift"] == true { Ending::Shift } else { Ending::Truncate };
    let plain = |energy, values| Part { name: "vdwl", energy, values, cutoff, ending, remainder: false };
    let charges = |energy, values: Vec<f64>, remainder| Part {
        name: "coul",
        energy,
        values: Box::new(move |_| values.clone()),
        cutoff: coulomb_cutoff,
        ending: Ending::Truncate,
        remainder,
    };
    let lennard_jones = || plain("lennard-jones", keys(&["epsilon", "sigma"]));
    let debye = || charges("coulomb-debye", vec![number(global, "kappa")], false);
    let dsf = || charges("damped-shifted-force", vec![number(global, "alpha")], true);
    let parts = match name {
        "lj/cut" => vec![lennard_jones()],
        "lj/cut/coul/cut" => vec![lennard_jones(), charges("coulomb", vec![], false)],
        "lj/cut/coul/debye" => vec![lennard_jones(), debye()],
        "lj/cut/coul/dsf" => vec![lennard_jones(), dsf()],
        "buck/coul/cut" => {
            vec![plain("buckingham", keys(&["A", "rho", "C"])), charges("coulomb", vec![], false)]
        }
        "coul/cut" => vec![charges("coulomb", vec![], false)],
        "coul/debye" => vec![debye()],
        "coul/dsf" => vec![dsf()],
        // its factor (1−x)³(1+3x+6x²) is our quintic
        "lj/mdf" => vec![Part { ending: Ending::Switch, ..lennard_jones() }],
        "lj/smooth/linear" => vec![Part { ending: Ending::ForceShift, ..lennard_jones() }],
        "lj96/cut" => vec![plain("lj96", keys(&["epsilon", "sigma"]))],
        // ε [2 (s/r)⁹ − 3 (s/r)⁶] = 4 ε′ [(σ/r)⁹ − (σ/r)⁶] with σ = s ∛(2/3), ε′ = 27/16 ε
        "lj/class2" => {
            let cube = (2.0_f64 / 3.0).cbrt();
            let values = move |c: &Value| vec![27.0 / 16.0 * number(c, "epsilon"), cube * number(c, "sigma")];
            vec![plain("lj96", Box::new(values))]
        }
        "mie/cut" => vec![plain("mie", keys(&["epsilon", "sigma", "gamma_rep", "gamma_att"]))],
        // E₀/(n−m) [m (r₀/r)ⁿ − n (r₀/r)ᵐ] is Mie's with the minimum r₀ = σ (n/m)^(1/(n−m))
        "nm/cut" => {
            let values = |c: &Value| {
                let [e0, r0, n, m] = ["E0", "r0", "n", "m"].map(|k| number(c, k));
                vec![e0, r0 * (m / n).powf(1.0 / (n - m)), n, m]
            };
            vec![plain("mie", Box::new(values))]
        }
        "buck" => vec![plain("buckingham", keys(&["A", "rho", "C"]))],
        // there + D/r⁸
        "born" => {
            let values = |c: &Value| {
                let [a, rho, sigma, c, d] = ["A", "rho", "sigma", "C", "D"].map(|k| number(c, k));
                vec![a, rho, sigma, c, -d]
            };
            vec![plain("born-mayer-huggins", Box::new(values))]
        }
        "morse" => vec![plain("morse", keys(&["D0", "alpha", "r0"]))],
        "yukawa" => {
            let kappa = number(global, "kappa");
            vec![plain("yukawa", Box::new(move |c| vec![number(c, "A"), kappa]))]
        }
        "soft" => vec![plain("soft-cosine", keys(&["A"]))],
        "gauss" => vec![plain("gaussian", keys(&["A", "B"]))],
        "zbl" => {
            let [inner, outer] = ["inner", "outer"].map(|k| number(global, k));
            let coulomb = number(&case["units"], "coulomb_constant");
            let values = move |c: &Value| {
                let z = number(c, "Zi");
                vec![coulomb * z * z, 2.0 * z.powf(0.23) / 0.4685, inner, outer]
            };
            vec![plain("smooth-zbl", Box::new(values))]
        }
        _ => return deck.lacks.push(format!("pair {name}")),
    };
    let mix = match style["mix"].as_str() {
        // (the screening lengths of nuclei add up, whatever the rule)
        _ if name == "zbl" => Mix::Arithmetic,
        Some("geometric") => Mix::Geometric,
        Some("sixthpower") => Mix::SixthPower,
        _ => Mix::Arithmetic,
    };
    let alone = parts.len() == 1;
    for Part { name: term, energy, values, cutoff, ending, remainder } in parts {
        let mut rows: Vec<_> = list(&style["coeffs"])
            .iter()
            .map(|c| {
                let pair = c["i"].as_u64().zip(c["j"].as_u64()).map(|(i, j)| (i as usize, j as usize));
                (pair, values(c), as_number(&c["cut"]).unwrap_or(cutoff))
            })
            .collect();
        if term == "coul" && !alone {
            // these coefficients are those of the other part
            rows = vec![(None, values(&Value::Null), cutoff)];
        }
        let factors = match name {
            // this style knows no exclusions
            "zbl" => [1.0; 3],
            _ => {
                let of = &case["forcefield"]["special"][if term == "coul" { "coul" } else { "lj" }];
                if of.is_null() { [1.0; 3] } else { array(of) }
            }
        };
        let special = special(system, factors, remainder);
        let inner = as_number(&global["inner"]).unwrap_or(0.0);
        let made = PairTerm { name: term, energy, ending, rows, inner, mix, special };
        deck.terms.push(made.build(catalog, system));
    }
}

// ------------------------------------------------------------------------------------ bonded

/// An energy of the catalogue, the rows of parameters that coefficients stand for (several are added up), and a
/// constant that the source adds.
struct Bonded {
    energy: (EnergyKind, &'static str),
    rows: fn(&Value) -> Vec<Vec<f64>>,
    constant: fn(&Value) -> f64,
}

fn bonded(
    deck: &mut Deck,
    catalog: &Catalog,
    system: &System,
    key: &str,
    style: &Value,
    tuples: &[Value],
    atoms: usize,
) {
    let name = text(style, "style");
    let Some(Bonded { energy, rows, constant }) = bonded_style(key, name) else {
        // (ours of the name is LAMMPS's class2)
        let note = if (key, name) == ("bond", "quartic") { " (one that breaks)" } else { "" };
        return deck.lacks.push(format!("{key} {name}{note}"));
    };
    let mut rows_of = Vec::new();
    for tuple in tuples {
        let coefficients = list(&style["coeffs"]).iter().find(|c| c["type"] == tuple[atoms]);
        let coefficients = coefficients.unwrap_or_else(|| panic!("no coefficients for {key} {tuple}"));
        let who: Vec<u32> = (0..atoms).map(|k| count(&tuple[k]) as u32).collect();
        deck.constants.push((key.to_owned(), constant(coefficients)));
        for mut row in rows(coefficients) {
            if (key, name) == ("improper", "harmonic") {
                // the angle between the planes has no sign there
                row[1] *= dihedral_sign(system, &who);
            }
            rows_of.push((who.clone(), row));
        }
    }
    deck.terms.push(tuple_term(catalog, system, key, energy, &rows_of));
}

fn dihedral_sign(system: &System, who: &[u32]) -> f64 {
    let step = |k: usize| {
        let d = system.positions.displacement(who[k] as usize, who[k + 1] as usize);
        potentials::Vec3::constant(system.cell.cartesian(system.cell.nearest(d)))
    };
    let phi: f64 = Dihedral::along(step(0), step(1), step(2)).value();
    phi.signum()
}

fn bonded_style(key: &str, name: &str) -> Option<Bonded> {
    use EnergyKind::{Angle, Bond, Dihedral, Improper};
    let some = |energy, rows| Some(Bonded { energy, rows, constant: |_| 0.0 });
    fn twice_k(c: &Value, rest: f64) -> Vec<Vec<f64>> {
        vec![vec![2.0 * number(c, "k"), rest]]
    }
    fn row<const N: usize>(c: &Value, keys: [&str; N]) -> Vec<f64> {
        keys.map(|k| number(c, k)).into()
    }
    /// k [1 + d cos nφ] in terms of a phase.
    fn cosine(c: &Value) -> Vec<Vec<f64>> {
        vec![vec![number(c, "k"), number(c, "n"), if number(c, "d") > 0.0 { 0.0 } else { PI }]]
    }
    /// Σ aₙ cosⁿφ, whose sign changes with the parity of n since ψ = φ − π there.
    fn powers(a: &[f64]) -> Vec<Vec<f64>> {
        let sign = |n: usize| if n.is_multiple_of(2) { 1.0 } else { -1.0 };
        vec![(0..6).map(|n| a.get(n).map_or(0.0, |a| sign(n) * a)).collect()]
    }
    match (key, name) {
        // no ½ there, as in all harmonic styles below
        ("bond", "harmonic") => some((Bond, "harmonic"), |c| twice_k(c, number(c, "r0"))),
        // Umin/(r0−rc)² [(r−r0)² − (rc−r0)²]: a spring, less Umin
        ("bond", "harmonic/shift") => Some(Bonded {
            energy: (Bond, "harmonic"),
            rows: |c| {
                let [umin, r0, rc] = ["Umin", "r0", "rc"].map(|k| number(c, k));
                vec![vec![2.0 * umin / (r0 - rc).powi(2), r0]]
            },
            constant: |c| -number(c, "Umin"),
        }),
        ("bond", "morse") => some((Bond, "morse"), |c| vec![row(c, ["D", "alpha", "r0"])]),
        ("bond", "class2") => some((Bond, "quartic"), |c| vec![row(c, ["r0", "k2", "k3", "k4"])]),
        // k d² [1 − 2.55 d + 7/12 (2.55 d)²]
        ("bond", "mm3") => some((Bond, "quartic"), |c| {
            let k = number(c, "k");
            vec![vec![number(c, "r0"), k, -2.55 * k, 7.0 / 12.0 * 2.55 * 2.55 * k]]
        }),
        ("bond", "fene") => some((Bond, "fene"), |c| vec![row(c, ["K", "R0", "epsilon", "sigma"])]),
        // ¼ k (r² − r0²)² here
        ("bond", "gromos") => some((Bond, "g96"), |c| vec![vec![4.0 * number(c, "k"), number(c, "r0")]]),
        ("angle", "harmonic") => some((Angle, "harmonic"), |c| twice_k(c, degrees(c, "theta0_deg"))),
        ("angle", "charmm") => some((Angle, "urey-bradley"), |c| {
            let [k, k_ub, r_ub] = ["k", "k_ub", "r_ub"].map(|k| number(c, k));
            vec![vec![2.0 * k, degrees(c, "theta0_deg"), 2.0 * k_ub, r_ub]]
        }),
        ("angle", "cosine") => some((Angle, "cosine"), |c| vec![row(c, ["k"])]),
        ("angle", "cosine/squared") => {
            some((Angle, "cosine-squared"), |c| twice_k(c, degrees(c, "theta0_deg")))
        }
        ("angle", "quartic") => some((Angle, "quartic"), |c| {
            let [k2, k3, k4] = ["k2", "k3", "k4"].map(|k| number(c, k));
            vec![vec![degrees(c, "theta0_deg"), k2, k3, k4]]
        }),
        // k [1 − cos(θ − θ₀)], and the same less Umin = 2k
        ("angle", "cosine/delta") => {
            some((Angle, "periodic"), |c| vec![vec![number(c, "k"), 1.0, degrees(c, "theta0_deg") + PI]])
        }
        ("angle", "cosine/shift") => Some(Bonded {
            energy: (Angle, "periodic"),
            rows: |c| vec![vec![0.5 * number(c, "Umin"), 1.0, degrees(c, "theta0_deg") + PI]],
            constant: |c| -number(c, "Umin"),
        }),
        // 2 C/n² [1 − B (−1)ⁿ cos nθ]
        ("angle", "cosine/periodic") => some((Angle, "periodic"), |c| {
            let [strength, b, n] = ["C", "B", "n"].map(|k| number(c, k));
            let up = b * if n % 2.0 == 0.0 { 1.0 } else { -1.0 } < 0.0;
            vec![vec![2.0 * strength / (n * n), n, if up { 0.0 } else { PI }]]
        }),
        // k [C₀ + C₁ cos θ + C₂ cos 2θ]
        ("angle", "fourier") => Some(Bonded {
            energy: (Angle, "periodic"),
            rows: |c| {
                let [k, c1, c2] = ["k", "C1", "C2"].map(|k| number(c, k));
                vec![vec![k * c1, 1.0, 0.0], vec![k * c2, 2.0, 0.0]]
            },
            constant: |c| {
                let [k, c0, c1, c2] = ["k", "C0", "C1", "C2"].map(|k| number(c, k));
                k * (c0 - c1 - c2)
            },
        }),
        ("dihedral", "charmm") => {
            some((Dihedral, "periodic"), |c| vec![vec![number(c, "k"), number(c, "n"), degrees(c, "d_deg")]])
        }
        ("dihedral", "harmonic") => some((Dihedral, "periodic"), cosine),
        // the number of terms, then k, n and phase of each
        ("dihedral", "fourier") => some((Dihedral, "periodic"), |c| {
            let all = numbers(&c["list"]);
            all[1..].chunks(3).map(|t| vec![t[0], t[1], t[2].to_radians()]).collect()
        }),
        // A (1 − cos φ) + B (1 + cos 3φ) + C (1 + cos(φ + π/4))
        ("dihedral", "helix") => some((Dihedral, "periodic"), |c| {
            let [a, b, c] = ["A", "B", "C"].map(|k| number(c, k));
            vec![vec![a, 1.0, PI], vec![b, 3.0, 0.0], vec![c, 1.0, -PI / 4.0]]
        }),
        ("dihedral", "opls") => some((Dihedral, "opls"), |c| vec![row(c, ["K1", "K2", "K3", "K4"])]),
        ("dihedral", "multi/harmonic") => some((Dihedral, "ryckaert-bellemans"), |c| {
            powers(&["A1", "A2", "A3", "A4", "A5"].map(|k| number(c, k)))
        }),
        ("dihedral", "nharmonic") => {
            some((Dihedral, "ryckaert-bellemans"), |c| powers(&numbers(&c["list"])[1..]))
        }
        ("dihedral", "quadratic") => some((Dihedral, "harmonic"), |c| twice_k(c, degrees(c, "phi0_deg"))),
        ("improper", "cvff") => some((Improper, "periodic-improper"), cosine),
        ("improper", "harmonic") => {
            some((Improper, "harmonic-improper"), |c| twice_k(c, degrees(c, "chi0_deg")))
        }
        _ => None,
    }
}

// --------------------------------------------------------------------------------- many-body

fn many_body(deck: &mut Deck, catalog: &Catalog, system: &System, style: &Value, path: &Path) {
    let name = text(style, "style");
    let (energy, columns) = match name {
        "sw" => ("stillinger-weber", 11),
        "tersoff" => ("tersoff", 14),
        _ => return deck.lacks.push(format!("pair {name}")),
    };
    let (text, elements) = match style["lammps_line"].as_str() {
        Some(line) => (line.to_owned(), vec![text(style, "coeff")]),
        None => {
            let file =
                path.parent().expect("a folder").join(style["potential_files"][0].as_str().expect("a file"));
            let words: Vec<_> = style["coeffs"][0].as_str().expect("words").split_whitespace().collect();
            (
                std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())),
                words[3..].to_vec(),
            )
        }
    };
    let triples = triples(&text, columns);
    deck.terms.push(triples_term(catalog, system, "vdwl", energy, &elements, &triples));
}
