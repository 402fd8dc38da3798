//! The `md` command from end to end: what it writes, says and returns.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// 108 Lennard-Jones atoms that melt, with a last stage of the test's choice.
const INPUT: &str = r#"
title = "test"
units = "lj"
[system.lattice]
kind = "fcc"
types = ["A"]
density = 0.8
repeat = [3, 3, 3]
[atoms.A]
mass = 1.0
[pair.lennard-jones]
cutoff = 2.0
ending = "switch"
[pair.lennard-jones.types]
A = { epsilon = 1.0, sigma = 1.0 }
[[stage]]
name = "only"
steps = 60
velocities = 1.5
integrator.INTEGRATOR
[output]
energies = 7
restart = 11
[[output.trajectory]]
file = "trajectory.xyz"
every = 10
velocities = true
[[output.trajectory]]
file = "trajectory.xtc"
every = 9
"#;
const VERLET: &str = "velocity-verlet = { time-step = 0.004 }";
const LANGEVIN: &str = "langevin = { time-step = 0.004, temperature = 1.2, friction = 1.0 }";

/// A folder to work in, with an input.
struct Place(TempDir);

impl Place {
    fn new(integrator: &str) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path("lj.toml"), INPUT.replace("INTEGRATOR", integrator)).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_md"));
        command.args(line.split('|').map(str::trim)).current_dir(self.0.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs `md` with words separated by `|`, and checks its exit status.
    #[track_caller]
    fn md(&self, line: &str, status: i32) -> (String, String) {
        let output = self.command(line).output().unwrap();
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(status), "md {line}\n{out}\n{err}");
        assert!(!err.contains("panicked"), "{err}");
        (out, err)
    }

    #[track_caller]
    fn same_files(&self, a: &str, b: &str) {
        for file in ["final.xyz", "energies.csv", "trajectory.xyz", "trajectory.xtc"] {
            let [x, y] = [a, b].map(|folder| fs::read(self.path(folder).join(file)).unwrap());
            assert!(x == y, "{file} differs between {a} and {b}");
            assert!(x.len() > 100, "{file} holds something");
        }
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn rows(csv: &Path) -> Vec<u64> {
    let text = fs::read_to_string(csv).unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split(',').next()?.parse().ok()).collect()
}

/// N + M steps are N steps and M more, to the bit and with other numbers of threads.
fn restart(integrator: &str) {
    let place = Place::new(integrator);
    place.md("run | lj.toml | --output | whole | --threads | 1 | --quiet", 0);
    assert_eq!(rows(&place.path("whole/energies.csv")), [0, 7, 14, 21, 28, 35, 42, 49, 56]);
    place.md("run | lj.toml | --output | parts | --threads | 1 | --steps | 23 | --quiet", 0);
    assert_eq!(rows(&place.path("parts/energies.csv")), [0, 7, 14, 21]);
    place.md("run | lj.toml | --output | parts | --threads | 2 | --steps | 49 | --resume | --quiet", 0);
    place.md("run | lj.toml | --output | parts | --threads | 1 | --resume | --quiet", 0);
    place.same_files("whole", "parts");
    // nothing is left to do, and nothing changes
    let (out, err) = place.md("run | lj.toml | --output | parts | --resume", 0);
    assert!(out.starts_with("Complete already"), "{out}");
    assert!(err.contains("only: nothing left to do\n") && !err.contains("steps/s"), "{err}");
    place.same_files("whole", "parts");
}

#[test]
fn velocity_verlet_restarts_to_the_bit() {
    restart(VERLET);
}

#[test]
fn langevin_restarts_to_the_bit() {
    restart(LANGEVIN);
}

/// Starts a long run and waits until it has written restart files.
#[cfg(unix)]
fn long_run(place: &Place) -> std::process::Child {
    let mut command = place.command("run | lj.toml | --output | cut | --steps | 100000000");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while rows(&place.path("cut/energies.csv")).len() < 4 {
        assert!(start.elapsed() < Duration::from_secs(60), "no rows");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupted_or_killed_run_goes_on_to_the_bit() {
    for (name, integrator) in [("-TERM", LANGEVIN), ("-KILL", VERLET)] {
        let place = Place::new(integrator);
        let child = long_run(&place);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        if name == "-TERM" {
            let (out, err) = texts(&output);
            assert_eq!(output.status.code(), Some(0), "{out}{err}");
            assert!(out.starts_with("Interrupted after"), "{out}");
            assert!(out.contains("md run lj.toml --output cut --steps 100000000 --resume"), "{out}");
        }
        let last = *rows(&place.path("cut/energies.csv")).last().unwrap();
        let until = last + 30;
        place.md(&format!("run | lj.toml | --output | cut | --steps | {until} | --resume | --quiet"), 0);
        place.md(&format!("run | lj.toml | --output | whole | --steps | {until} | --quiet"), 0);
        place.same_files("whole", "cut");
    }
}

#[test]
fn the_time_can_be_limited() {
    let place = Place::new(VERLET);
    let (out, _) = place.md("run | lj.toml | --max-time | 0.3 s | --steps | 100000000", 0);
    assert!(out.starts_with("The time is up after") && out.contains("--resume` goes on from step"), "{out}");
    assert!(!place.path("outputs/lj/final.xyz").exists());
    place.md("run | lj.toml | --max-time | soon", 2);
}

#[test]
fn results_are_never_overwritten_unasked() {
    let place = Place::new(VERLET);
    let run = "run | lj.toml | --steps | 3";
    let (out, _) = place.md(run, 0);
    assert!(out.contains("files in outputs/lj\n"), "{out}");
    for file in ["energies.csv", "final.xyz", "restart.bin", "run.toml", "trajectory.xyz", "trajectory.xtc"] {
        assert!(place.path("outputs/lj").join(file).exists(), "{file}");
    }
    let echo = fs::read_to_string(place.path("outputs/lj/run.toml")).unwrap();
    assert!(echo.contains("steps = 3"), "{echo}");
    let (_, err) = place.md(run, 0);
    assert!(err.contains("outputs/lj holds a run already; this one goes into outputs/lj-2"), "{err}");
    let before = fs::read(place.path("outputs/lj/final.xyz")).unwrap();
    let (_, err) = place.md("run | lj.toml | --output | outputs/lj | --steps | 4", 2);
    assert!(err.contains("--resume") && err.contains("--force"), "{err}");
    assert_eq!(fs::read(place.path("outputs/lj/final.xyz")).unwrap(), before);
    place.md("run | lj.toml | --output | outputs/lj | --steps | 4 | --force | --quiet", 0);
    assert_ne!(fs::read(place.path("outputs/lj/final.xyz")).unwrap(), before);
    // without a folder the latest one is resumed, and the latest one is replaced
    let first = fs::read(place.path("outputs/lj/final.xyz")).unwrap();
    let (_, err) = place.md("run | lj.toml | --steps | 5 | --resume", 0);
    assert!(err.contains("resuming the run in outputs/lj-2"), "{err}");
    assert!(rows(&place.path("outputs/lj-2/energies.csv")) == [0]);
    let (_, err) = place.md("run | lj.toml | --steps | 8 | --force", 0);
    assert!(err.contains("replacing the run in outputs/lj-2"), "{err}");
    assert!(rows(&place.path("outputs/lj-2/energies.csv")) == [0, 7]);
    assert_eq!(fs::read(place.path("outputs/lj/final.xyz")).unwrap(), first);
    assert!(!place.path("outputs/lj-3").exists());
    // one that cannot even begin replaces nothing
    let blunder = "--set | pair.lennard-jones.types.A.epsilon=1e308";
    let (_, err) = place.md(&format!("run | lj.toml | --output | outputs/lj | --force | {blunder}"), 1);
    assert!(err.contains("not a finite number"), "{err}");
    assert_eq!(fs::read(place.path("outputs/lj/final.xyz")).unwrap(), first);
    place.md(&format!("run | lj.toml | --output | made/for/nothing | {blunder}"), 1);
    assert!(!place.path("made").exists());
}

#[test]
fn a_restart_of_something_else_is_refused() {
    let place = Place::new(LANGEVIN);
    place.md("run | lj.toml | --output | run | --steps | 14 | --quiet", 0);
    let files = ["energies.csv", "trajectory.xyz", "trajectory.xtc", "restart.bin", "run.toml"];
    let read = || files.map(|f| fs::read(place.path("run").join(f)).unwrap());
    let before = read();
    for (set, message) in [
        ("forces.precision=mixed", "another system"),
        ("forces.reproducible=false", "another system"),
        ("atoms.A.mass=2.0", "another system"),
        ("pair.lennard-jones.types.A.epsilon=1.1", "another system"),
        ("system.lattice.repeat=[3, 3, 4]", "144"),
        ("stage[0].integrator.langevin.friction=2.0", "seed or stages differ"),
        ("seed=7", "seed or stages differ"),
        ("output.trajectory[0].file=other.xyz", "trajectories"),
        ("pair.lennard-jones.ending=shift", "another system"),
        ("stage[0].steps=13", "14 steps of stage `only` are done already"),
    ] {
        let (_, err) = place.md(&format!("run | lj.toml | --output | run | --resume | --set | {set}"), 2);
        assert!(err.contains("cannot resume from run/restart.bin") && err.contains(message), "{set}: {err}");
        assert_eq!(read(), before, "{set}");
    }
    let bytes = fs::read(place.path("run/restart.bin")).unwrap();
    fs::write(place.path("run/restart.bin"), &bytes[..bytes.len() / 2]).unwrap();
    let (_, err) = place.md("run | lj.toml | --output | run | --resume", 1);
    assert!(err.contains("damaged"), "{err}");
    let (_, err) = place.md("run | lj.toml | --output | nothing | --resume", 2);
    assert!(err.contains("has no restart.bin"), "{err}");
    let (_, err) = place.md("run | lj.toml | --resume", 2);
    assert!(err.contains("no run of `lj` to resume"), "{err}");
}

#[test]
fn what_blows_up_says_where_and_keeps_what_it_had() {
    let place = Place::new("velocity-verlet = { time-step = 0.05 }");
    let (_, err) = place.md(
        "run | lj.toml | --output | run | --set | output.energies=1 | --set | stage[0].velocities=30.0",
        1,
    );
    for part in [
        "stage `only` broke down at step",
        "atom",
        "run/energies.csv with rows up to step",
        "run/last-good.xyz",
        "its nearest neighbour was atom",
        "the fastest atom was",
        "help:",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    // no energy is blamed that nothing is known of
    assert!(!err.contains("lennard-jones"), "{err}");
    assert!(place.path("run/last-good.xyz").exists() && place.path("run/restart.bin").exists());
    assert!(!rows(&place.path("run/energies.csv")).is_empty());
    assert!(!place.path("run/final.xyz").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    for file in ["energies.csv", "trajectory.xyz", "trajectory.xtc", "energies.svg"] {
        let place = Place::new(VERLET);
        fs::create_dir(place.path("run")).unwrap();
        std::os::unix::fs::symlink("/dev/full", place.path("run").join(file)).unwrap();
        let (out, err) = place.md("run | lj.toml | --output | run | --steps | 20 | --force", 1);
        assert!(err.contains(&format!("run/{file}")), "{file}: {err}");
        assert!(out.is_empty(), "{out}");
    }
    // standard output itself
    let place = Place::new(VERLET);
    for line in ["energy | lj.toml | --json", "explain | potentials"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(line).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(texts(&output).1.contains("standard output"), "{line}");
    }
}

#[test]
fn nobody_listening_is_no_error() {
    let place = Place::new(VERLET);
    let mut command = place.command("explain | input");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), texts(&output).1.as_str()), (Some(0), ""));
}

#[test]
fn wrong_command_lines_and_inputs_end_with_2() {
    let place = Place::new(VERLET);
    place.md("--help", 0);
    place.md("--version", 0);
    for line in [
        "walk",
        "run",
        "run | lj.toml | --steps | many",
        "run | lj.toml | --resume | --force",
        "run | lj.toml | --threads | 0",
        "run | lj.toml | --set | nothing",
        "run | none.toml",
        "run | lj.toml | --set | output.energis=3",
        "energy | lj.toml | --set | system.lattice.kind=cube",
        "check | none.toml",
        "plot | nowhere",
        "new | dragon",
        "explain | dragon",
    ] {
        let (out, err) = place.md(line, 2);
        assert!(out.is_empty() && err.contains("error"), "{line}: {out}{err}");
    }
    assert!(!place.path("outputs").exists());
    for command in ["run", "minimize"] {
        let (_, err) = place.md(&format!("{command} | lj.toml | --steps | -1"), 2);
        assert!(err.contains("steps are a whole number from 0 up") && !err.contains("tip"), "{err}");
    }
    fs::write(place.path("other.csv"), "time,b\n0,1\n1,2\n").unwrap();
    let (_, err) = place.md("plot | other.csv", 2);
    assert!(err.contains("its columns are time, b; draw some of them with `--columns A,B`"), "{err}");
    let (_, err) = place.md("run | lj.toml | --set | output.energis=3", 2);
    assert!(err.contains("did you mean `energies`?") && !err.contains('\u{1b}'), "{err}");
}

#[test]
fn energy_prints_one_document() {
    let place = Place::new(VERLET);
    let (out, _) = place.md("energy | lj.toml | --json", 0);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["units"]["length"], "σ");
    assert_eq!(found["units"]["energy"], "ε");
    let number = |v: &Value| v.as_f64().unwrap();
    assert!((number(&found["volume"]) - 108.0 / 0.8).abs() < 1e-9);
    assert_eq!(found["terms"]["lennard-jones"], found["energy"]);
    assert_eq!(found["forces"].as_array().unwrap().len(), 108);
    let virial: Vec<f64> = found["virial"].as_array().unwrap().iter().map(number).collect();
    assert_eq!(virial.len(), 6);
    // atoms at rest: P = tr W / 3V
    let expected = (virial[0] + virial[1] + virial[2]) / (3.0 * number(&found["volume"]));
    assert!((number(&found["pressure"]) - expected).abs() < 1e-12 * expected.abs());
    // every pair of a perfect lattice pulls or pushes along its bond: a sum over shells of neighbours
    let (mut energy, d) = (0.0, (4.0f64 / 0.8).cbrt() / 2.0);
    for [x, y, z] in (0..343).map(|k| [k / 49 - 3, k / 7 % 7 - 3, k % 7 - 3]) {
        let r = d * f64::from(x * x + y * y + z * z).sqrt();
        if (x + y + z) % 2 == 0 && r > 0.0 && r < 1.8 {
            energy += 0.5 * 108.0 * 4.0 * (r.powi(-12) - r.powi(-6));
        }
    }
    // (between 1.8 and 2.0, where the switch is, there is no shell)
    assert!((number(&found["energy"]) - energy).abs() < 1e-9, "{energy}");
    assert!(found["kinetic"].is_null() && found["temperature"].is_null(), "{out}");
    // two atoms of mass 2, one of them moving: K = 9, and f = 3 as the total momentum is conserved
    let structure = "2\nProperties=species:S:1:pos:R:3:vel:R:3\nA 0 0 0 3 0 0\nA 1.2 0 0 0 0 0\n";
    fs::write(place.path("moving.xyz"), structure).unwrap();
    let text = fs::read_to_string(place.path("lj.toml")).unwrap();
    let (head, tail) = text.split_once("[system.lattice]").unwrap();
    let tail = tail.split_once("[atoms.A]").unwrap().1.replace("mass = 1.0", "mass = 2.0");
    let moving = format!("{head}[system]\nstructure = \"moving.xyz\"\n[atoms.A]{tail}");
    fs::write(place.path("moving.toml"), moving).unwrap();
    let (out, _) = place.md("energy | moving.toml | --json", 0);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!((number(&found["kinetic"]) - 9.0).abs() < 1e-12, "{out}");
    assert!((number(&found["temperature"]) - 6.0).abs() < 1e-12, "{out}");
    let (out, _) = place.md("energy | lj.toml", 0);
    assert!(out.contains("lennard-jones") && out.contains("pressure"), "{out}");
}

#[test]
fn check_prints_one_document() {
    let place = Place::new(VERLET);
    let (out, _) = place.md("check | lj.toml | --json", 0);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["ok"], true);
    let checks = found["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 8);
    for check in checks {
        assert_eq!(check["term"], "lennard-jones");
        assert!(check["ok"] == true && check["quantity"].is_string() && check["where"].is_string());
        assert!(check["error"].as_f64().unwrap() <= check["limit"].as_f64().unwrap());
    }
    let (out, _) = place.md("check | lj.toml", 0);
    assert!(out.contains("all derivatives are right"), "{out}");
}

#[test]
fn check_tells_right_from_not_checked() {
    let place = Place::new(VERLET);
    let two = |distance: &str, cutoff: &str| {
        let structure = format!("2\nProperties=species:S:1:pos:R:3\nAr 0 0 0\nAr {distance} 0 0\n");
        fs::write(place.path("two.xyz"), structure).unwrap();
        let input = format!(
            "[system]\nstructure = \"two.xyz\"\n[atoms.Ar]\nmass = \"40 u\"\n[pair.lennard-jones]\n{cutoff}\n\
             [pair.lennard-jones.types]\nAr = {{ epsilon = \"1 kJ/mol\", sigma = \"3.4 A\" }}\n"
        );
        fs::write(place.path("two.toml"), input).unwrap();
    };
    // atoms that are nearly on top of each other, within less than any fixed step
    two("0.001", "cutoff = \"none\"");
    let (out, _) = place.md("check | two.toml", 0);
    assert!(out.contains("all derivatives are right"), "{out}");
    // exactly at the cut-off, where the energy jumps, there is no difference to compare with
    two("9", "cutoff = \"9 A\"\nending = \"truncate\"");
    let (out, _) = place.md("check | two.toml", 0);
    assert!(
        out.contains("not checked") && out.contains("NOT checked") && !out.contains("all derivatives"),
        "{out}"
    );
    let (out, _) = place.md("check | two.toml | --json", 0);
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["ok"] == true && found["checks"][0]["error"].is_null(), "{out}");
}

#[test]
fn templates_run_and_can_be_plotted() {
    let place = Place::new(VERLET);
    let (out, _) = place.md("new", 0);
    for template in ["argon", "crystal", "spring", "water"] {
        assert!(out.contains(template), "{out}");
        place.md(&format!("new | {template}"), 0);
    }
    let (_, err) = place.md("new | spring", 2);
    assert!(err.contains("spring.toml is there already"), "{err}");
    let (out, _) = place.md("run | spring.toml | --steps | 50", 0);
    assert!(out.starts_with("Complete: 50 steps of 2 atoms") && out.contains("atom-steps/s"), "{out}");
    let csv = fs::read_to_string(place.path("outputs/spring/energies.csv")).unwrap();
    // an open system has no pressure and no volume
    assert!(csv.lines().nth(1).unwrap().contains(",,,"), "{csv}");
    let (out, _) = place.md("plot | outputs/spring | --columns | kinetic,potential | --out | a.svg", 0);
    assert_eq!(out, "a.svg\n");
    assert!(fs::read_to_string(place.path("a.svg")).unwrap().contains('τ'));
    let (_, err) = place.md("plot | outputs/spring | --columns | speed | --out | b.svg", 2);
    assert!(err.contains("no column `speed`"), "{err}");
    let (out, _) = place.md("minimize | spring.toml", 0);
    assert!(out.contains("converged") && out.contains("outputs/spring-minimized/final.xyz"), "{out}");
    let text = fs::read_to_string(place.path("outputs/spring-minimized/final.xyz")).unwrap();
    let x: Vec<f64> = text.lines().skip(2).map(|l| l.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert!((x[1] - x[0] - 1.0).abs() < 1e-3, "the spring is at rest: {x:?}");
}

#[test]
fn minimize_says_whether_it_converged() {
    let place = Place::new(VERLET);
    place.md("new | spring", 0);
    let (out, err) = place.md("minimize | spring.toml | --output | good", 0);
    let told = |text: &str| text.matches("energy").count();
    assert!(
        out.contains("minimize: converged after") && err.contains("converged, largest force"),
        "{out}{err}"
    );
    assert_eq!((told(&out), told(&err)), (1, 0), "once: {out}{err}");
    assert!(!place.path("good/restart.bin").exists(), "there is nothing to go on with");
    let fire = "--set | stage=[{ name = 's', steps = 9, minimizer = { fire = { force = 1e-6 } } }]";
    for quiet in ["", " | --quiet"] {
        let line =
            format!("minimize | spring.toml | {fire} | --output | short | --steps | 1 | --force{quiet}");
        let (out, err) = place.md(&line, 1);
        assert!(out.is_empty() != quiet.is_empty(), "{out}");
        let last = "error: NOT converged: the steps are used up (--steps); short/final.xyz holds the structure \
                    that was reached";
        assert_eq!(err.lines().last(), Some(last), "{err}");
        // (the row of step 1 is there, whatever the interval)
        assert_eq!(rows(&place.path("short/energies.csv")), [0, 1]);
        assert!(place.path("short/final.xyz").exists());
    }
    let (out, _) = place.md("--help", 0);
    assert!(out.contains("Exit status:") && out.contains("did not converge"), "{out}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_minimisation_leaves_the_structure_it_reached() {
    let place = Place::new(LANGEVIN);
    let large = "--set | system.lattice.repeat=[6, 6, 6]";
    place.md(&format!("run | lj.toml | --output | warm | --steps | 20 | --quiet | {large}"), 0);
    begin_with(&place, "start = \"warm\"\n", "[system]\n");
    let forever = "--set | stage=[{ name = 's', steps = 100000000, minimizer = { fire = { force = 1e-99, longest-move = 1e-9 } } }]";
    let line = format!("minimize | lj.toml | --output | cut | {forever}");
    let child = place.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !place.path("cut/energies.csv").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no rows");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.starts_with("Interrupted after") && !out.contains("resume"), "{out}");
    let last = err.lines().last().unwrap();
    assert!(last.starts_with("error: NOT converged: it was interrupted; cut/final.xyz holds"), "{err}");
    let text = fs::read_to_string(place.path("cut/final.xyz")).unwrap();
    assert_eq!(text.lines().count(), 864 + 2);
    let step = rows(&place.path("cut/energies.csv")).pop().unwrap();
    assert!(text.lines().nth(1).unwrap().contains(&format!("step={step}")), "{step}");
    assert!(!place.path("cut/restart.bin").exists());
}

#[cfg(unix)]
#[test]
fn a_folder_in_use_is_refused() {
    let place = Place::new(VERLET);
    let child = long_run(&place);
    for how in ["--resume", "--force"] {
        let (_, err) = place.md(&format!("run | lj.toml | --output | cut | {how}"), 2);
        let process = format!("cut is in use: another run (process {}) is writing there", child.id());
        assert!(err.contains(&process) && err.contains("--output"), "{how}: {err}");
    }
    signal(&child, "-KILL");
    child.wait_with_output().unwrap();
    // what a killed process leaves keeps nobody out, and goes in the end
    assert!(place.path("cut/.lock").exists());
    let until = rows(&place.path("cut/energies.csv")).last().unwrap() + 30;
    place.md(&format!("run | lj.toml | --output | cut | --steps | {until} | --resume | --quiet"), 0);
    assert!(!place.path("cut/.lock").exists());
    place.md(&format!("run | lj.toml | --output | whole | --steps | {until} | --quiet"), 0);
    place.same_files("whole", "cut");
}

#[test]
fn a_restart_whose_files_were_cut_is_refused() {
    let place = Place::new(VERLET);
    place.md("run | lj.toml | --output | whole | --quiet", 0);
    place.md("run | lj.toml | --output | parts | --steps | 49 | --quiet", 0);
    let names = ["energies.csv", "trajectory.xyz", "trajectory.xtc", "restart.bin", "run.toml"];
    let read = || names.map(|f| fs::read(place.path("parts").join(f)).ok());
    let resume = "run | lj.toml | --output | parts | --resume";
    for (file, keep, message) in [
        ("energies.csv", 0.5, "its rows end with that of step "),
        ("energies.csv", 0.99, "its rows end with that of step 42, but those up to step 49 had been written"),
        ("energies.csv", 0.01, "the header is missing"),
        ("energies.csv", -1.0, "parts/energies.csv is missing, which had rows up to step 49"),
        ("trajectory.xyz", 0.5, "its frames end with that of step "),
        (
            "trajectory.xyz",
            0.99,
            "its frames end with that of step 30, but those up to step 40 had been written",
        ),
        ("trajectory.xyz", 0.0, "it has no frames, but those up to step 40 had been written"),
        ("trajectory.xyz", -1.0, "parts/trajectory.xyz is missing, which had frames up to step 40"),
        (
            "trajectory.xtc",
            0.99,
            "its frames end with that of step 36, but those up to step 45 had been written",
        ),
        ("trajectory.xtc", -1.0, "parts/trajectory.xtc is missing, which had frames up to step 45"),
    ] {
        let path = place.path("parts").join(file);
        let whole = fs::read(&path).unwrap();
        match keep < 0.0 {
            true => fs::remove_file(&path).unwrap(),
            false => fs::write(&path, &whole[..(keep * whole.len() as f64) as usize]).unwrap(),
        }
        let before = read();
        let (_, err) = place.md(resume, 2);
        assert!(err.contains(&format!("parts/{file}")) && err.contains(message), "{file}: {err}");
        assert!(err.contains("put it back as it was") && err.contains("--force"), "{err}");
        assert_eq!(read(), before, "nothing is changed");
        fs::write(&path, whole).unwrap();
    }
    // a row out of the middle
    let csv = place.path("parts/energies.csv");
    let text = fs::read_to_string(&csv).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.starts_with("21,")).collect();
    fs::write(&csv, without.join("\n") + "\n").unwrap();
    let (_, err) = place.md(resume, 2);
    assert!(err.contains("it has 7 rows up to step 49, but 8 had been written"), "{err}");
    // what stands behind the restart is done again
    fs::write(&csv, text + "56,a torn ro").unwrap();
    place.md(&format!("{resume} | --quiet"), 0);
    place.same_files("whole", "parts");
}

#[test]
fn what_is_no_folder_is_called_that() {
    let place = Place::new(VERLET);
    fs::write(place.path("notes"), "a file").unwrap();
    for output in ["notes", "notes/deeper/run"] {
        let (_, err) = place.md(&format!("run | lj.toml | --output | {output}"), 2);
        assert!(err.contains("notes is a file; name another folder"), "{err}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("gone", place.path("link")).unwrap();
        let (_, err) = place.md("run | lj.toml | --output | link", 2);
        assert!(err.contains("link is a link to gone, where nothing is; make that folder"), "{err}");
        // the folder is made where it should be, and then all is well
        fs::create_dir(place.path("gone")).unwrap();
        place.md("run | lj.toml | --output | link | --steps | 2 | --quiet", 0);
        assert!(place.path("gone/final.xyz").exists());
    }
}

#[test]
fn resuming_needs_atoms_but_not_their_places() {
    let place = Place::new(VERLET);
    place.md("run | lj.toml | --output | warm | --steps | 30 | --quiet", 0);
    fs::copy(place.path("warm/final.xyz"), place.path("start.xyz")).unwrap();
    begin_with(&place, "", "[system]\nstructure = \"start.xyz\"\n");
    place.md("run | lj.toml | --output | whole | --quiet", 0);
    place.md("run | lj.toml | --output | parts | --steps | 20 | --quiet", 0);
    fs::remove_file(place.path("start.xyz")).unwrap();
    let (_, err) = place.md("run | lj.toml | --output | parts | --resume", 2);
    assert!(err.contains("there is no file") && err.contains("start.xyz"), "{err}");
    assert!(err.contains("help: to resume, the input and the files that it names are needed"), "{err}");
    let (_, err) = place.md("run | lj.toml", 2);
    assert!(!err.contains("to resume"), "{err}");
    // as it says, another structure of the same atoms serves
    fs::copy(place.path("parts/final.xyz"), place.path("start.xyz")).unwrap();
    place.md("run | lj.toml | --output | parts | --resume | --quiet", 0);
    place.same_files("whole", "parts");
}

#[test]
fn lists_without_a_skin_are_built_every_step() {
    let place = Place::new(VERLET);
    let (out, _) = place.md("run | lj.toml | --steps | 10 | --set | forces.skin=0", 0);
    assert!(out.contains("times, every step\n"), "{out}");
    let (out, _) = place.md("run | lj.toml | --output | outputs/lj | --steps | 10 | --resume", 0);
    assert!(out.starts_with("Complete already") && !out.contains("every"), "{out}");
}

/// 2K/(T k) in a row.
fn degrees_of_freedom(place: &Place, more: &str) -> f64 {
    let text = fs::read_to_string(place.path("lj.toml")).unwrap();
    fs::write(place.path("more.toml"), format!("{text}{more}")).unwrap();
    place.md("run | more.toml | --output | more | --steps | 0 | --quiet | --force", 0);
    let csv = fs::read_to_string(place.path("more/energies.csv")).unwrap();
    let row: Vec<f64> =
        csv.lines().nth(1).unwrap().split(',').map(|x| x.parse().unwrap_or(f64::NAN)).collect();
    2.0 * row[3] / row[6]
}

#[test]
fn what_holds_the_system_in_place_costs_no_degrees_of_freedom() {
    let place = Place::new(VERLET);
    let free = 3.0 * 107.0;
    for (more, expected) in [
        ("", free),
        ("[global.radius-of-gyration]\nk = 1.0\nr0 = 1.0\n", free),
        ("[field.position-restraint]\nk = 1.0\n", free + 3.0),
        ("[field.harmonic-wall]\nk = 1.0\nposition = -5.0\nnx = 1.0\nny = 0.0\nnz = 0.0\n", free + 3.0),
    ] {
        let found = degrees_of_freedom(&place, more);
        assert!((found - expected).abs() < 1e-9, "{more}: {found}");
    }
}

/// Warm atoms, a minimisation, and perhaps a third stage.
fn stages(place: &Place, name: &str, third: &str) {
    let stages = r#"
[[stage]]
name = "warm"
steps = 9
velocities = 1.0
energies = 4
integrator.langevin = { time-step = 0.004, temperature = 1.0, friction = 1.0 }
[[stage]]
name = "down"
steps = 5
energies = 2
minimizer.fire = { force = 1e-12 }
"#;
    let text = fs::read_to_string(place.path("lj.toml")).unwrap();
    let (head, tail) = (text.split("[[stage]]").next().unwrap(), text.split("[output]").nth(1).unwrap());
    fs::write(place.path(name), format!("{head}{stages}{third}[output]{tail}")).unwrap();
}

#[test]
fn stages_follow_one_another() {
    let place = Place::new(VERLET);
    let third = r#"
[[stage]]
name = "go"
steps = 6
remove-drift = true
energies = 3
integrator.velocity-verlet = { time-step = 0.004 }
"#;
    stages(&place, "three.toml", third);
    let (out, _) = place.md("run | three.toml | --output | whole", 0);
    assert!(out.contains("down: NOT converged when the steps were used up after 5 steps"), "{out}");
    // a minimisation has a row for its end; the row of step 14 is shared by the stages that meet there
    assert_eq!(rows(&place.path("whole/energies.csv")), [0, 4, 8, 9, 11, 13, 14, 17, 20]);
    for steps in [0, 2, 6] {
        let resume = if steps == 0 { "" } else { " | --resume" };
        place.md(&format!("run | three.toml | --output | parts | --steps | {steps}{resume} | --quiet"), 0);
    }
    place.same_files("whole", "parts");
}

#[test]
fn a_minimisation_restarts_to_the_bit() {
    let place = Place::new(VERLET);
    stages(&place, "two.toml", "");
    place.md("run | two.toml | --output | whole | --steps | 40 | --quiet", 0);
    place.md("run | two.toml | --output | parts | --steps | 13 | --quiet", 0);
    place.md("run | two.toml | --output | parts | --steps | 40 | --resume | --quiet", 0);
    place.same_files("whole", "parts");
    let csv = fs::read_to_string(place.path("whole/energies.csv")).unwrap();
    let potential: Vec<f64> =
        csv.lines().skip(1).map(|l| l.split(',').nth(2).unwrap().parse().unwrap()).collect();
    // (the minimisation begins at step 9, the fourth row)
    assert!(potential[potential.len() - 1] < potential[3] - 5.0, "{potential:?}");
}

/// Puts other lines in the place of the lattice of `lj.toml`, and some at its beginning.
fn begin_with(place: &Place, first: &str, system: &str) {
    let text = fs::read_to_string(place.path("lj.toml")).unwrap();
    let head = text.split("[system.lattice]").next().unwrap();
    let tail = text.split("[atoms.A]").nth(1).unwrap();
    fs::write(place.path("lj.toml"), format!("{first}{head}{system}[atoms.A]{tail}")).unwrap();
}

/// A warm stage and a minimisation as the last one; the places of `stages`, with either minimiser.
fn minimisation(minimizer: &str) -> Place {
    let place = Place::new(VERLET);
    stages(&place, "two.toml", "");
    let text = fs::read_to_string(place.path("two.toml")).unwrap();
    fs::write(place.path("two.toml"), text.replace("minimizer.fire", &format!("minimizer.{minimizer}")))
        .unwrap();
    place
}

#[test]
fn a_minimisation_that_is_cut_short_again_and_again_comes_to_its_end() {
    for minimizer in ["fire", "l-bfgs"] {
        let place = minimisation(minimizer);
        place.md("run | two.toml | --output | whole | --steps | 12 | --quiet", 0);
        // without any time, each process takes a step
        let cut = "run | two.toml | --output | parts | --steps | 12 | --max-time | 0 s";
        let (out, _) = place.md(cut, 0);
        assert!(out.starts_with("The time is up after 1 step "), "{out}");
        for step in 2..=20 {
            let (out, _) = place.md(&format!("{cut} | --resume"), 0);
            let place = format!("goes on from step {step}\n");
            assert!(out.contains(&place), "{out}");
        }
        let (out, _) = place.md(&format!("{cut} | --resume"), 0);
        assert!(out.starts_with("Complete: 1 step "), "{out}");
        place.same_files("whole", "parts");
        // the energy that it began with is remembered
        let whole = place.md("run | two.toml | --output | whole | --steps | 12 | --resume", 0).0;
        let line = |text: &str| text.lines().find(|l| l.contains("down: ")).map(str::to_owned);
        assert_eq!(line(&out), line(&whole));
        assert!(line(&out).unwrap().contains("after 12 steps"), "{out}");
    }
}

#[cfg(unix)]
#[test]
fn a_killed_minimisation_goes_on_to_the_bit() {
    for minimizer in ["fire", "l-bfgs"] {
        let place = minimisation(minimizer);
        let large = "--set | system.lattice.repeat=[6, 6, 6]";
        let mut command =
            place.command(&format!("run | two.toml | --output | cut | --steps | 3000 | {large}"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while rows(&place.path("cut/energies.csv")).len() < 9 {
            assert!(start.elapsed() < Duration::from_secs(60), "no rows");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&child, "-KILL");
        child.wait().unwrap();
        let steps = rows(&place.path("cut/energies.csv")).last().unwrap() - 9 + 30;
        let (out, _) =
            place.md(&format!("run | two.toml | --output | cut | --steps | {steps} | {large} | --resume"), 0);
        // a restart file was written on the way (every 11 steps)
        let taken: u64 = out.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(taken < 30 + 22, "{out}");
        place.md(&format!("run | two.toml | --output | whole | --steps | {steps} | {large} | --quiet"), 0);
        place.same_files("whole", "cut");
    }
}

#[test]
fn bench_measures_and_its_phases_add_up() {
    let place = Place::new(VERLET);
    let (out, err) = place.md("bench | lj-4k | --threads | 1,2 | --seconds | 0.05 | --json", 0);
    assert_eq!(err, "", "progress is for terminals");
    let document: Value = serde_json::from_str(&out).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for (case, threads) in cases.iter().zip([1, 2]) {
        let number = |key: &str| case[key].as_f64().unwrap_or_else(|| panic!("{key} in {case}"));
        assert_eq!((case["system"].as_str(), case["atoms"].as_u64()), (Some("lj-4k"), Some(4000)));
        assert_eq!(case["threads"].as_u64(), Some(threads));
        assert!(number("steps") >= number("repeats") && number("spread") >= 0.0, "{case}");
        assert!(case["ns_per_day"].is_null(), "reduced units have no nanoseconds");
        let (total, rate) = (number("microseconds_per_step"), number("million_atom_steps_per_second"));
        assert!((rate * total / 4000.0 - 1.0).abs() < 1e-12, "{case}");
        let phases = case["phases"].as_array().unwrap();
        let names: Vec<_> = phases.iter().map(|p| p["name"].as_str().unwrap()).collect();
        let names_of_phases =
            ["neighbour lists", "positions for kernels", "lennard-jones", "integration", "rest"];
        assert_eq!(names, names_of_phases);
        let of = |phase: &Value| phase["microseconds_per_step"].as_f64().unwrap();
        assert!(phases.iter().all(|p| of(p) >= 0.0), "{case}");
        let sum: f64 = phases.iter().map(of).sum();
        // (each phase is rounded to a double once, of a whole number of nanoseconds)
        assert!((sum / total - 1.0).abs() < 1e-12, "{sum} {total}");
        if cfg!(target_os = "linux") {
            // three positions, three velocities and three forces of eight bytes at least
            assert!(number("bytes_per_atom") > 72.0, "{case}");
        }
    }
    let (out, _) = place.md("bench | lj-4k | --threads | 1 | --seconds | 0.01", 0);
    for word in ["M atom-steps/s", "spread", "lj-4k", "4,000", "integration", "total"] {
        assert!(out.contains(word), "{word} in {out}");
    }
    let set = "--set | forces.precision=mixed | --set | forces.isa=\"portable\"";
    let (out, _) = place.md(&format!("bench | lj-4k | --threads | 1,2 | --seconds | 0.01 | {set}"), 0);
    for line in ["instructions portable", "with forces.precision = mixed", "with forces.isa = \"portable\""] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 1, "no file was written");
}

#[test]
fn bench_refuses_what_it_cannot_do() {
    let place = Place::new(VERLET);
    let (_, err) = place.md("bench | lj-33k", 2);
    assert!(err.starts_with("error: there is no system `lj-33k`\nhelp: did you mean `lj-32k`?"), "{err}");
    let (_, err) = place.md("bench | water | argon", 2);
    assert!(err.contains("help: the systems are lj-4k, "), "{err}");
    for line in ["bench | --threads | 0", "bench | --threads | 1,0", "bench | --seconds | 0"] {
        let (out, err) = place.md(line, 2);
        assert!(out.is_empty() && err.contains("invalid value '0'"), "{err}");
    }
    let (_, err) = place.md("bench | lj-4k | --threads | 1 | --set | forces.precisoin=mixed", 2);
    assert!(err.contains("did you mean `precision`"), "{err}");
    let (_, err) = place.md("bench | lj-4k | water | --threads | 1,2 | --set | forces.skin=-1", 2);
    assert!(err.matches("`forces.skin` is out of range").count() == 1 && !err.contains("timed"), "{err}");
    let (out, _) = place.md("bench | --list", 0);
    assert!(out.contains("water") && out.contains("copper"), "{out}");
}

/// Molecules of `inputs/water.toml` lie across the edges of its cell, and their copies must not be torn.
#[test]
fn copies_of_molecules_are_whole() {
    let place = Place::new(VERLET);
    let input = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/water.toml");
    let terms = |line: &str| {
        let document: Value = serde_json::from_str(&place.md(line, 0).0).unwrap();
        document["terms"].as_object().unwrap().clone()
    };
    let once = terms(&format!("energy | {input} | --json"));
    let twice = terms(&format!("energy | {input} | --json | --set | system.repeat=[1, 2, 1]"));
    assert_eq!(once.len(), 4);
    for (name, energy) in once {
        let (one, two) = (energy.as_f64().unwrap(), twice[&name].as_f64().unwrap());
        // (positions are rounded to 2⁻⁵² of another cell)
        assert!((two / one - 2.0).abs() < 1e-9, "{name}: {one} {two}");
    }
}

/// A small crystal, Lennard-Jones between nearest neighbours, which rests at a distance of 2^(1/6).
const CRYSTAL: &str = r#"
    units = "lj"
    [system.lattice]
    kind = "fcc"
    types = ["A"]
    constant = 1.59
    repeat = [3, 3, 3]
    [atoms.A]
    mass = 1.0
    [pair.lennard-jones]
    cutoff = 1.35
    ending = "truncate"
    types.A = { epsilon = 1.0, sigma = 1.0 }
    [modes]
    animate = 2
    [elastic]
    pressure = 0.0
    [sensitivity]
    pressure = 0.0
    of = ["lattice-constant", "C44", "frequency 1"]
"#;

#[test]
fn second_derivatives_from_the_command_line() {
    let place = Place::new(VERLET);
    fs::write(place.path("crystal.toml"), CRYSTAL).unwrap();
    let (out, _) = place.md("modes | crystal.toml | --output | modes", 0);
    assert!(out.contains("translation along z") && out.contains("108 atoms"), "{out}");
    assert!(out.contains("cut-off of `lennard-jones`"), "{out}");
    for file in ["modes.csv", "spectrum.csv", "spectrum.svg", "spectrum.png", "mode-4.xyz", "mode-5.xyz"] {
        assert!(place.path("modes").join(file).exists(), "{file}");
    }
    // of k = 72/r² the constants are √2 k/r and half of that
    let r = 2f64.powf(1.0 / 6.0);
    let c11 = 2f64.sqrt() * 72.0 / r.powi(3);
    let (out, _) = place.md("elastic | crystal.toml | --check | --output | elastic", 0);
    assert!(out.contains(&format!("{c11:.4}")) && out.contains(&format!("{:.4}", c11 / 2.0)), "{out}");
    assert!(out.contains("stable: the softest") && out.contains("differences of the stress agree"), "{out}");
    // lengths go with σ: a = √2 r σ
    let (out, _) = place.md("sensitivity | crystal.toml | --check | --output | sensitivity", 0);
    assert!(out.contains(&format!("lattice-constant = {:.7}", 2f64.sqrt() * r)), "{out}");
    let table = fs::read_to_string(place.path("sensitivity/sensitivity.csv")).unwrap();
    let row = table.lines().find(|l| l.starts_with("lattice-constant") && l.contains("A.sigma")).unwrap();
    let slope: f64 = row.split(',').nth(5).unwrap().parse().unwrap();
    assert!((slope - 2f64.sqrt() * r).abs() < 1e-6, "{row}");
    // waves
    let (out, _) = place.md("modes | crystal.toml | --set | modes.phonons={} | --output | waves", 0);
    assert!(out.contains("face-centred cubic") && place.path("waves/dispersion.svg").exists(), "{out}");
    let (_, err) =
        place.md("modes | crystal.toml | --set | modes.phonons.path=[\"G\", \"Q\"] | --output | no", 2);
    assert!(err.contains("no wave vector `Q`") && err.contains("G, X, W, K, U, L"), "{err}");
    // folders are not overwritten, and what makes no sense is refused
    let (_, err) = place.md("elastic | crystal.toml | --output | elastic", 2);
    assert!(err.contains("holds results already"), "{err}");
    let (_, err) =
        place.md("elastic | lj.toml | --set | system.periodic=[false, true, true] | --output | open", 2);
    assert!(err.contains("periodic along all"), "{err}");
}
