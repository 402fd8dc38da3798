//! `md fit` of networks: derivatives, learning from another energy, and what is written.

mod command;

use command::md;
use std::path::PathBuf;

/// The system of silicon.toml, smaller, with the energies of `rest`.
fn silicon(rest: &str) -> String {
    format!(
        r#"
        [system.lattice]
        kind = "diamond"
        types = ["Si"]
        constant = "5.431 A"
        repeat = [1, 1, 1]
        [atoms.Si]
        mass = "28.0855 u"
        {rest}
        "#
    )
}

/// Data: hot silicon of Stillinger and Weber.
fn hot() -> String {
    silicon(
        r#"
        [many-body.stillinger-weber.Si-Si-Si]
        epsilon = "2.1683 eV"
        sigma = "2.0951 A"
        a = 1.8
        lambda = 21.0
        gamma = 1.2
        cos-theta0 = -0.3333333333333333
        A = 7.049556277
        B = 0.6022245584
        p = 4.0
        q = 0.0
        [[stage]]
        steps = 800
        velocities = "2000 K"
        integrator.langevin = { time-step = "1 fs", temperature = "1000 K", friction = "20 1/ps" }
        "#,
    )
}

const NETWORK: &str = r#"
    [many-body.neural]
    cutoff = "4 A"
    radial = 3
    zetas = [2.0]
    hidden = [5]
    atom-energies = { Si = "-4.3 eV" }
    [fit]
    optimizer.adam = { steps = 400, rate = 0.03, final-rate = 1e-3, batch = 5 }
    [[fit.parameter]]
    name = "neural.*"
    [[fit.data]]
    run = "hot.toml"
    every = 40
    [[stage]]
    steps = 100
    velocities = "300 K"
    integrator.velocity-verlet = { time-step = "1 fs" }
"#;

fn prepared(name: &str) -> PathBuf {
    let folder = command::folder("fit-neural", name);
    std::fs::write(folder.join("hot.toml"), hot()).unwrap();
    std::fs::write(folder.join("fit.toml"), silicon(NETWORK)).unwrap();
    folder
}

/// In each weight, by one pass along the residuals, by columns and by differences.
#[test]
fn derivatives_in_weights() {
    let folder = prepared("derivatives");
    let (good, out) = md(&folder, &["fit", "fit.toml", "--check", "--set", "fit.data[0].every=200"]);
    assert!(good, "{out}");
    // 5 functions (three of distances, two of angles) to 5 nodes to one
    assert_eq!(out.lines().filter(|l| l.contains("neural.Si.")).count(), (5 + 1) * 5 + 5 + 1, "{out}");
    let (good, error) = md(
        &folder,
        &[
            "fit",
            "fit.toml",
            "--set",
            "many-body.neural.hidden=[30,20]",
            "--set",
            "fit.optimizer=\"levenberg-marquardt\"",
        ],
    );
    assert!(!good && error.contains("too many"), "{error}");
}

/// Errors of forces fall; the files that are written give the energy that was fitted; the input runs.
#[test]
fn learning_and_files() {
    let folder = prepared("learning");
    let (good, out) = md(&folder, &["fit", "fit.toml", "--output", "found"]);
    assert!(good, "{out}");
    let line = out.lines().find(|l| l.contains("% of the forces")).unwrap_or_else(|| panic!("{out}"));
    let parts: Vec<f64> = line.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let [start, fitted] = parts[..] else { panic!("{line}") };
    // (so small a network does not learn more)
    assert!(start > 60.0 && fitted < 0.5 * start && fitted < 40.0, "{line}");
    // the first state of the data, by the files
    let structure =
        "8\nLattice=\"5.431 0 0 0 5.431 0 0 0 5.431\" Properties=species:S:1:pos:R:3:forces:R:3\n".to_owned();
    let places = [
        [0.0; 3],
        [0.1, 2.7, 2.7],
        [2.6, 0.0, 2.8],
        [2.7, 2.8, 0.1],
        [1.4, 1.3, 1.3],
        [1.3, 4.1, 4.0],
        [4.0, 1.4, 4.1],
        [4.1, 4.0, 1.3],
    ];
    let lines = places.map(|[x, y, z]| format!("Si {x} {y} {z} 0 0 0\n"));
    std::fs::write(folder.join("one.xyz"), structure + &lines.concat()).unwrap();
    let again = ["--set", "fit.data=[{ file = \"one.xyz\", energy-error = \"1 eV\" }]"];
    let found = std::fs::read_to_string(folder.join("found/fitted.toml")).unwrap();
    assert!(found.contains("folder = "), "{found}");
    let (good, out) = md(
        &folder,
        &[&["fit", "found/fitted.toml", "--output", "same", "--steps", "0"][..], &again].concat(),
    );
    assert!(good, "{out}");
    // (the network that was read is written as it was)
    for name in ["input.nn", "scaling.data", "weights.014.data"] {
        let [one, other] =
            ["found", "same"].map(|f| std::fs::read(folder.join(f).join("neural").join(name)).unwrap());
        assert!(one == other, "{name}");
    }
    let (good, out) = md(&folder, &["run", "found/fitted.toml", "--output", "run"]);
    assert!(good, "{out}");
}
