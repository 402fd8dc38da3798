//! `md fit` of what is known beside configurations: results at rest, trajectories, averages, several systems.

mod command;

use command::md;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    command::folder("fit-known", name)
}

/// A column of a table, by the names in another.
fn column(path: &Path, key: &str, of: &str) -> Vec<(String, f64)> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let place =
        |name: &str| header.iter().position(|h| h == name).unwrap_or_else(|| panic!("{name}: {header:?}"));
    let (key, of) = (place(key), place(of));
    reader
        .records()
        .map(|r| r.unwrap())
        .map(|r| (r[key].to_owned(), r[of].parse().unwrap_or(f64::NAN)))
        .collect()
}

fn fitted(folder: &Path, output: &str) -> [(f64, f64); 2] {
    let path = folder.join(output).join("parameters.csv");
    let (values, errors) =
        (column(&path, "parameter", "fitted"), column(&path, "parameter", "standard error"));
    assert_eq!([&values[0].0, &values[1].0], ["lennard-jones.Ar.epsilon", "lennard-jones.Ar.sigma"]);
    [(values[0].1, errors[0].1), (values[1].1, errors[1].1)]
}

/// Argon with parameters of some size.
fn argon(epsilon: f64, sigma: f64, lattice: &str, rest: &str) -> String {
    format!(
        r#"
        [system.lattice]
        kind = "fcc"
        types = ["Ar"]
        constant = "{lattice}"
        repeat = [2, 2, 2]
        [atoms.Ar]
        mass = "39.948 u"
        [pair.lennard-jones]
        cutoff = "8 A"
        ending = "switch"
        [pair.lennard-jones.types]
        Ar = {{ epsilon = "{epsilon} kJ/mol", sigma = "{sigma} nm" }}
        {rest}
        "#
    )
}

const FREE: &str = "[[fit.parameter]]\nname = \"lennard-jones.Ar.*\"\n";
const TRUE: (f64, f64) = (0.996, 0.3405);

/// Pressure, energy, an elastic constant and a frequency of the true parameters give these back.
#[test]
fn results_at_rest() {
    let folder = folder("rest");
    let of = "[sensitivity]\nof = [\"pressure\", \"energy\", \"C44\", \"frequency 1\"]\n";
    std::fs::write(folder.join("true.toml"), argon(TRUE.0, TRUE.1, "5.3 A", of)).unwrap();
    let (good, text) = md(&folder, &["sensitivity", "true.toml", "--output", "true"]);
    assert!(good, "{text}");
    let known = column(&folder.join("true/sensitivity.csv"), "result", "value");
    let value = |name: &str| known.iter().find(|(n, _)| n == name).unwrap().1;
    let property = |of: &str, unit: &str, error: f64| {
        let quote = if unit.is_empty() { "" } else { "\"" };
        let [value, error] = [value(of), error].map(|x| format!("{quote}{x} {unit}{quote}"));
        format!("[[fit.property]]\nof = \"{of}\"\nvalue = {value}\nerror = {error}\n")
    };
    let properties =
        [("pressure", "GPa", 0.01), ("energy", "kJ/mol", 1.0), ("C44", "GPa", 0.1), ("frequency 1", "", 1.0)];
    let fit = properties.map(|(of, unit, error)| property(of, unit, error)).concat() + FREE;
    std::fs::write(folder.join("fit.toml"), argon(1.2, 0.36, "5.3 A", &fit)).unwrap();
    let (good, text) = md(&folder, &["fit", "fit.toml", "--output", "found"]);
    assert!(good, "{text}");
    let [(epsilon, _), (sigma, _)] = fitted(&folder, "found");
    assert!((epsilon / TRUE.0 - 1.0).abs() < 1e-6, "{epsilon}\n{text}");
    assert!((sigma / TRUE.1 - 1.0).abs() < 1e-6, "{sigma}\n{text}");
    let (good, text) = md(&folder, &["fit", "fit.toml", "--check"]);
    assert!(good, "{text}");
    // an elastic constant in a cell that relaxes is refused
    let (good, text) = md(&folder, &["fit", "fit.toml", "--set", "fit.rest.pressure=\"0 bar\""]);
    assert!(!good && text.contains("fixed cell"), "{text}");
}

/// A trajectory of the true parameters gives these back, by the adjoint; Levenberg–Marquardt is refused.
#[test]
fn trajectories() {
    let folder = folder("trajectory");
    let stage = "[[stage]]\nsteps = 60\nvelocities = \"60 K\"\nintegrator.velocity-verlet = { time-step = \"5 fs\" }\n\
                 [[output.trajectory]]\nfile = \"path.xyz\"\nevery = 10\n";
    std::fs::write(folder.join("true.toml"), argon(TRUE.0, TRUE.1, "5.4 A", stage)).unwrap();
    let (good, text) = md(&folder, &["run", "true.toml", "--output", "true"]);
    assert!(good, "{text}");
    let fit = format!(
        "{stage}[fit]\noptimizer.l-bfgs = {{}}\n[fit.trajectory]\nfile = \"true/path.xyz\"\nevery = 10\n{FREE}"
    );
    std::fs::write(folder.join("fit.toml"), argon(1.04, 0.35, "5.4 A", &fit)).unwrap();
    let (good, text) = md(&folder, &["fit", "fit.toml", "--output", "found"]);
    assert!(good, "{text}");
    let [(epsilon, _), (sigma, _)] = fitted(&folder, "found");
    // (places in the file have so many digits)
    assert!((epsilon / TRUE.0 - 1.0).abs() < 1e-4, "{epsilon}\n{text}");
    assert!((sigma / TRUE.1 - 1.0).abs() < 1e-4, "{sigma}\n{text}");
    let (good, text) = md(&folder, &["fit", "fit.toml", "--set", "fit.optimizer=\"levenberg-marquardt\""]);
    assert!(!good && text.contains("l-bfgs"), "{text}");
}

/// Parameters of a liquid from its g(r) and energy, within their errors; interrupted and resumed to the bit; the same with
/// another number of threads.
#[test]
fn averages() {
    let folder = folder("averages");
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
    let input = inputs.join("fit-argon-liquid.toml");
    let input = input.to_str().unwrap();
    let short = ["--set", "stage[1].steps=3000", "--set", "fit.ensemble.equilibrate=1000"];
    let fit = |more: &[&str]| md(&folder, &[&["fit", input][..], &short, more].concat());
    let (good, text) = fit(&["--output", "one", "--threads", "1"]);
    assert!(good, "{text}");
    let [(epsilon, of_epsilon), (sigma, of_sigma)] = fitted(&folder, "one");
    // (a short simulation: the errors are some 0.5 % and 0.15 %)
    assert!(of_epsilon < 0.02 && of_sigma < 0.002, "{text}");
    assert!((epsilon - TRUE.0).abs() < 4.0 * of_epsilon, "{text}");
    assert!((sigma - TRUE.1).abs() < 4.0 * of_sigma, "{text}");
    let (good, text) = fit(&["--output", "two", "--threads", "2", "--steps", "1"]);
    assert!(good && text.contains("--resume"), "{text}");
    let (good, text) = fit(&["--output", "two", "--threads", "2", "--resume"]);
    assert!(good, "{text}");
    assert_eq!(fitted(&folder, "one"), fitted(&folder, "two"));
}

/// Two inputs share their parameters; what is known of one of them stands in its own `[fit]`.
#[test]
fn several_systems() {
    let folder = folder("several");
    let sensitivity = |of: &str| format!("[sensitivity]\npressure = \"0 bar\"\nof = [\"{of}\"]\n");
    let property = |of: &str, value: f64, unit: &str| {
        format!(
            "[fit.rest]\npressure = \"0 bar\"\n[[fit.property]]\nof = \"{of}\"\nvalue = \"{value} {unit}\"\nerror = \"0.01 {unit}\"\n"
        )
    };
    for (name, of) in [("a", "lattice-constant"), ("b", "energy")] {
        let path = folder.join(format!("true-{name}.toml"));
        std::fs::write(path, argon(TRUE.0, TRUE.1, "5.3 A", &sensitivity(of))).unwrap();
        let input = format!("true-{name}.toml");
        let (good, text) = md(&folder, &["sensitivity", &input, "--output", name]);
        assert!(good, "{text}");
    }
    let value = |name: &str| column(&folder.join(name).join("sensitivity.csv"), "result", "value")[0].1;
    let other = argon(1.0, 0.34, "5.3 A", &property("energy", value("b"), "kJ/mol"));
    std::fs::write(folder.join("other.toml"), other).unwrap();
    let main =
        format!("{}[fit]\nwith = [\"other.toml\"]\n{FREE}", property("lattice-constant", value("a"), "nm"));
    std::fs::write(folder.join("fit.toml"), argon(1.1, 0.35, "5.4 A", &main)).unwrap();
    let (good, text) = md(&folder, &["fit", "fit.toml", "--output", "found"]);
    assert!(good, "{text}");
    let [(epsilon, _), (sigma, _)] = fitted(&folder, "found");
    assert!((epsilon / TRUE.0 - 1.0).abs() < 1e-6, "{epsilon}\n{text}");
    assert!((sigma / TRUE.1 - 1.0).abs() < 1e-6, "{sigma}\n{text}");
}
