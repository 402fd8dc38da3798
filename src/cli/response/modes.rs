//! `md modes`

use super::super::{Failure, Outcome, table};
use super::{Asked, Ready, exact, failed};
use crate::catalog::Catalog;
use crate::input::response::{Modes as Settings, Phonons, WaveVector};
use crate::observe::progress::Progress;
use crate::plot::scale::{fixed, significant};
use crate::plot::{Figure, Panel, Series};
use crate::response::modes::{Count, Mode, Spectrum, broadened};
use crate::response::phonons::{Crystal, reciprocal};
use crate::response::thermal::{Thermal, thermal};
use crate::units::constants;
use clap::Args;
use std::f64::consts::TAU;

#[derive(Args)]
pub(in crate::cli) struct Modes {
    #[command(flatten)]
    asked: Asked,
}

/// Atoms, up to which all modes are found unless it is said how many.
const WHOLE: usize = 200;
/// Frames of an animation.
const FRAMES: usize = 24;
/// How many rows of modes are printed.
const PRINTED: usize = 60;

impl Modes {
    pub(in crate::cli) fn run(self, catalog: &Catalog) -> Outcome {
        self.asked.at_rest(catalog, "modes", |ready, response| {
            let settings = &response.modes;
            ready.settle(&settings.rest)?;
            if let Some(phonons) = &settings.phonons {
                return ready.waves(settings, phonons);
            }
            let atoms = ready.atoms.len();
            let count = match settings.count {
                None if atoms <= WHOLE => Count::All,
                None => Count::Lowest(0),
                Some(usize::MAX) => Count::All,
                Some(k) if k >= 3 * atoms => Count::All,
                Some(k) => Count::Lowest(k),
            };
            let mut progress: Option<Progress> = None;
            let mode = ready.mode();
            // (what is not looked for shows no progress)
            let found = ready.point().modes(count, |done, all| {
                let progress = progress.get_or_insert_with(|| Progress::start("modes", 0, all as u64, mode));
                progress.update(done as u64, String::new);
            });
            drop(progress);
            let modes = found.map_err(failed)?;
            ready.list(&modes)?;
            let whole = count == Count::All;
            let spectrum = if whole {
                Spectrum::of_modes(&modes)
            } else {
                let (steps, samples) = (settings.lanczos_steps, settings.samples);
                let mut progress =
                    Progress::start("spectrum", 0, ((samples + 3) * steps) as u64, ready.mode());
                let found = ready
                    .point()
                    .spectrum(steps, samples, |done, _| progress.update(done as u64, String::new));
                drop(progress);
                found.map_err(failed)?
            };
            ready.spectrum(settings, &spectrum, whole)?;
            ready.functions(settings, &spectrum.states, "of all vibrations")?;
            ready.animate(&modes, settings.animate)
        })
    }
}

impl Ready<'_> {
    /// The table of modes.
    fn list(&mut self, modes: &[Mode]) -> Result<(), Failure> {
        let (unit, by) = self.frequency_unit();
        let real = !self.reduced();
        let mut header = vec!["mode".to_owned(), format!("frequency ({unit})")];
        if real {
            header.push("frequency (THz)".into());
            header.push("infrared (km/mol)".into());
        }
        header.extend(["participation", "residual (1/ps^2)", "motion"].map(String::from));
        let mut rows = Vec::new();
        let mut shown = vec![vec!["mode".into(), unit.to_owned()]];
        if real {
            shown[0].push("km/mol".into());
        }
        shown[0].extend(["takes part".into(), String::new()]);
        for (k, mode) in modes.iter().enumerate() {
            let omega = mode.frequency();
            let motion = mode.rigid.map_or(String::new(), |r| r.name());
            let (infrared, part) = (mode.intensity * infrared_unit(), mode.participation());
            let mut row = vec![(k + 1).to_string(), exact(omega * by)];
            let mut line = vec![(k + 1).to_string(), fixed(omega * by, if real { 2 } else { 5 })];
            if real {
                row.push(exact(omega / TAU));
                row.push(exact(infrared));
                line.push(if mode.rigid.is_some() { String::new() } else { significant(infrared, 4) });
            }
            row.extend([exact(part), exact(mode.residual), motion.clone()]);
            line.extend([format!("{:.0} %", 100.0 * part), motion]);
            rows.push(row);
            if shown.len() <= PRINTED {
                shown.push(line);
            }
        }
        self.results.text += &table(&shown, if real { &[0, 1, 2, 3] } else { &[0, 1, 2] });
        if modes.len() > PRINTED {
            self.results.text += &format!("  … and {} more in modes.csv\n", modes.len() - PRINTED);
        }
        let falling = modes.iter().filter(|m| m.rigid.is_none() && m.eigenvalue < 0.0).count();
        if falling > 0 {
            self.results.text += &format!(
                "  NOT a minimum: along {falling} of these modes the energy falls (their frequencies are imaginary and \
                 given with a minus)\n"
            );
        }
        self.results.csv("modes.csv", &header, &rows)
    }

    /// Density of states and infrared spectrum, as table and picture.
    fn spectrum(&mut self, settings: &Settings, spectrum: &Spectrum, whole: bool) -> Result<(), Failure> {
        let (unit, by) = self.frequency_unit();
        let highest = spectrum.states.iter().fold(0.0, |m: f64, (x, _)| m.max(*x));
        if highest <= 0.0 {
            return Ok(());
        }
        let lowest = spectrum.states.iter().fold(0.0, |m: f64, (x, _)| m.min(*x));
        let n = settings.points;
        let width = highest * if whole { 4e-3 } else { 0.8 / settings.lanczos_steps as f64 };
        let (from, to) = ((lowest - 4.0 * width).min(0.0), highest + 5.0 * width);
        let at: Vec<f64> = (0..n).map(|k| from + (to - from) * k as f64 / (n - 1) as f64).collect();
        let scaled = |lines: &[(f64, f64)], weight: f64| -> Vec<f64> {
            broadened(lines, width, &at).into_iter().map(|y| y * weight / by).collect()
        };
        let states = scaled(&spectrum.states, 1.0);
        let x: Vec<f64> = at.iter().map(|x| x * by).collect();
        let real = !self.reduced();
        let infrared = scaled(&spectrum.infrared, if real { infrared_unit() } else { 1.0 });
        let charged = infrared.iter().any(|y| *y > 0.0);
        let of_infrared = if real { "infrared (km/mol cm)" } else { "infrared" };
        let mut header = vec![format!("frequency ({unit})"), format!("states (per {unit})")];
        if charged {
            header.push(of_infrared.into());
        }
        let rows: Vec<Vec<String>> = (0..n)
            .map(|k| {
                let mut row = vec![exact(x[k]), exact(states[k])];
                if charged {
                    row.push(exact(infrared[k]));
                }
                row
            })
            .collect();
        self.results.csv("spectrum.csv", &header, &rows)?;
        let (name, symbol) = if real { ("wave number", "cm⁻¹") } else { ("angular frequency", "1/τ") };
        let mut figure = Figure::new(format!("Vibrations: {}", self.title), name, symbol)
            .note(format!("lines widened to {} {symbol}", significant(width * by, 2)))
            .panel(Panel::new("states", if real { "per cm⁻¹" } else { "τ" }).series(Series::new(
                "density of states",
                &x[..],
                &states[..],
            )));
        if charged {
            figure =
                figure.panel(Panel::new("absorption", if real { "km/mol per cm⁻¹" } else { "" }).series(
                    Series::new("infrared", &x[..], &infrared[..]).color(crate::plot::style::VERMILION),
                ));
        }
        self.results.picture("spectrum", &figure)
    }

    /// Thermodynamic functions of oscillators.
    fn functions(&mut self, settings: &Settings, states: &[(f64, f64)], of: &str) -> Result<(), Failure> {
        if self.reduced() {
            // (Planck's constant has no value in these units)
            return Ok(());
        }
        // ħ in kJ/mol ps
        let planck = constants::PLANCK / TAU;
        let each: Vec<Thermal> = settings
            .temperatures
            .iter()
            .map(|&t| thermal(states.iter().copied(), t, self.boltzmann, planck))
            .collect();
        let header = [
            "temperature (K)",
            "energy (kJ/mol)",
            "free energy (kJ/mol)",
            "entropy (J/mol/K)",
            "heat capacity (J/mol/K)",
        ];
        let row = |t: &Thermal, digits: &dyn Fn(f64) -> String| {
            vec![
                digits(t.temperature),
                digits(t.energy),
                digits(t.free_energy),
                digits(1e3 * t.entropy),
                digits(1e3 * t.heat_capacity),
            ]
        };
        let rows: Vec<Vec<String>> = each.iter().map(|t| row(t, &exact)).collect();
        self.results.text += &format!(
            "  zero-point energy {of}: {} kJ/mol\n",
            significant(each.first().map_or(0.0, |t| t.zero_point), 6)
        );
        let mut shown =
            vec![["K", "E (kJ/mol)", "F (kJ/mol)", "S (J/mol/K)", "C (J/mol/K)"].map(String::from).to_vec()];
        shown.extend(each.iter().map(|t| row(t, &|x| significant(x, 6))));
        self.results.text += &table(&shown, &[0, 1, 2, 3, 4]);
        self.results.csv("thermal.csv", &header.map(String::from), &rows)
    }

    /// Some vibrations as trajectories of one period.
    fn animate(&mut self, modes: &[Mode], count: usize) -> Result<(), Failure> {
        let far = if self.reduced() { 0.15 } else { 0.02 };
        let masses = self.atoms.masses.clone();
        let vibrations: Vec<(usize, &Mode)> =
            modes.iter().enumerate().filter(|(_, m)| m.rigid.is_none()).take(count).collect();
        for (number, mode) in vibrations {
            let moves = mode.displacements(&masses);
            let mut states = Vec::new();
            for k in 0..FRAMES {
                let by = far * (TAU * k as f64 / FRAMES as f64).sin();
                let mut state = self.point().moved(&moves, [[0.0; 3]; 3], by).map_err(failed)?;
                state.step = k as u64;
                states.push(state);
            }
            self.frames(&format!("mode-{}.xyz", number + 1), &states)?;
        }
        // (all of them in one word)
        let animated: Vec<String> =
            self.results.files.iter().filter(|f| f.starts_with("mode-")).cloned().collect();
        if animated.len() > 2 {
            self.results.files.retain(|f| !f.starts_with("mode-"));
            self.results.files.push(format!("{} … {}", animated[0], animated[animated.len() - 1]));
        }
        Ok(())
    }

    /// Dispersion and density of states of the waves of a crystal.
    fn waves(&mut self, settings: &Settings, phonons: &Phonons) -> Result<(), Failure> {
        let types = self.atoms.types.clone();
        let crystal = self.point().crystal(&types).map_err(failed)?;
        let constants = self.point().force_constants(&crystal).map_err(failed)?;
        let lattice = crystal.cubic.map_or("no cubic lattice along the axes".to_owned(), |(cubic, edge)| {
            format!("{}, with an edge of {} {}", cubic.name(), significant(edge, 6), self.length_unit())
        });
        let sites = crystal.sites.len();
        self.results.text += &format!("  a crystal of {sites} atom(s) in its primitive cell; {lattice}\n");
        if constants.across > 1e-4 {
            self.results.text += &format!(
                "  forces reach beyond half of the cell ({} of the largest): waves that do not fit into it are inexact; \
                 repeat it more often\n",
                significant(constants.across, 2)
            );
        }
        let path = path(&crystal, phonons)?;
        let (unit, by) = self.frequency_unit();
        // the dispersion
        let branches = constants.branches();
        let (mut x, mut at) = (Vec::new(), Vec::new());
        let mut marks: Vec<(f64, String)> = vec![(0.0, path[0].0.clone())];
        let mut length = 0.0;
        for legs in path.windows(2) {
            let ((_, from), (name, to)) = (&legs[0], &legs[1]);
            let step: [f64; 3] = std::array::from_fn(|c| to[c] - from[c]);
            let leg = step.iter().map(|x| x * x).sum::<f64>().sqrt();
            for k in 0..=phonons.points {
                let t = k as f64 / phonons.points as f64;
                x.push(length + t * leg);
                at.push(std::array::from_fn::<f64, 3, _>(|c| from[c] + t * step[c]));
            }
            length += leg;
            marks.push((length, name.clone()));
        }
        let found: Vec<Vec<f64>> = at.iter().map(|q| constants.frequencies(*q)).collect();
        let mut header = ["path", "qx", "qy", "qz"].map(String::from).to_vec();
        header.extend((1..=branches).map(|b| format!("branch {b} ({unit})")));
        let rows: Vec<Vec<String>> = (0..x.len())
            .map(|k| {
                let all = [x[k], at[k][0], at[k][1], at[k][2]].into_iter();
                all.chain(found[k].iter().map(|w| w * by)).map(exact).collect()
            })
            .collect();
        self.results.csv("dispersion.csv", &header, &rows)?;
        let (name, symbol) = if self.reduced() { ("ω", "1/τ") } else { ("wave number", "cm⁻¹") };
        let mut panel = Panel::new(name, symbol).weight(1.8);
        for b in 0..branches {
            let y: Vec<f64> = found.iter().map(|w| w[b] * by).collect();
            let series = Series::new("", x.clone(), y).color(crate::plot::style::BLUE);
            panel = panel.series(series);
        }
        let inverse = if self.reduced() { "1/σ" } else { "1/nm" };
        let mut figure = Figure::new(format!("Phonons: {}", self.title), "wave vector", inverse).panel(panel);
        for (x, name) in &marks {
            figure = figure.mark(*x, if name == "G" { "Γ".to_owned() } else { name.clone() });
        }
        self.results.picture("dispersion", &figure)?;
        let mut shown = vec![vec!["at".to_owned()]];
        shown[0].extend((1..=branches).map(|b| format!("{b} ({unit})")));
        for (name, q) in &path {
            let mut row = vec![name.clone()];
            row.extend(
                constants.frequencies(*q).iter().map(|w| fixed(w * by, if self.reduced() { 5 } else { 3 })),
            );
            shown.push(row);
        }
        shown.dedup();
        self.results.text += &table(&shown, &(1..=branches).collect::<Vec<_>>());
        // states of one primitive cell
        let all = constants.mesh(&crystal, phonons.mesh);
        let each = 1.0 / phonons.mesh.pow(3) as f64;
        let falling =
            all.iter().filter(|w| **w < -1e-6 * all.iter().fold(0.0, |m: f64, x| m.max(*x))).count();
        if falling > 0 {
            self.results.text += "  NOT stable: there are waves along which the energy falls\n";
        }
        let states: Vec<(f64, f64)> = all.into_iter().map(|w| (w, each)).collect();
        let spectrum = Spectrum { states, infrared: Vec::new() };
        self.spectrum(settings, &spectrum, true)?;
        self.functions(settings, &spectrum.states, "of a primitive cell")
    }

    fn length_unit(&self) -> &'static str {
        if self.reduced() { "σ" } else { "nm" }
    }
}

/// 1 e²/u of |∂μ/∂Q|² in km/mol of absorption: N e²/(12 ε₀ c² u).
fn infrared_unit() -> f64 {
    let atomic_mass = 1e-3 / constants::AVOGADRO;
    constants::AVOGADRO * constants::ELEMENTARY_CHARGE_SI.powi(2)
        / (12.0 * constants::ELECTRIC_CONSTANT_SI * constants::SPEED_OF_LIGHT_SI.powi(2) * atomic_mass)
        * 1e-3
}

/// The wave vectors of a path, with their names, 2π included.
fn path(crystal: &Crystal, phonons: &Phonons) -> Result<Vec<(String, [f64; 3])>, Failure> {
    let reciprocal = reciprocal(crystal.vectors);
    let usual: Vec<WaveVector> = crystal.cubic.map_or(Vec::new(), |(cubic, _)| {
        cubic.path().iter().map(|name| WaveVector::Named((*name).into())).collect()
    });
    let path = if phonons.path.is_empty() { &usual } else { &phonons.path };
    if path.is_empty() {
        return Err(Failure::wrong(
            "this is no cubic lattice along the axes, whose path would be known; give `path` in `[modes.phonons]`, in \
             fractions of the reciprocal vectors",
        ));
    }
    path.iter()
        .map(|vector| match vector {
            WaveVector::Fractions(s) => {
                let q = std::array::from_fn(|c| (0..3).map(|k| s[k] * reciprocal[k][c]).sum());
                let text = s.map(|x| format!("{x}")).join(" ");
                Ok((if *s == [0.0; 3] { "G".into() } else { text }, q))
            }
            WaveVector::Named(name) => {
                let known = crystal.cubic.map(|(cubic, edge)| (cubic.points(), edge));
                let found = known.and_then(|(points, edge)| {
                    points
                        .iter()
                        .find(|(n, _)| n == name || (*n == "G" && name == "Γ"))
                        .map(|(_, s)| (s, edge))
                });
                let (s, edge) = found.ok_or_else(|| {
                    let names = known
                        .map_or("none: it is not cubic along the axes".to_owned(), |(points, _)| {
                            points.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ")
                        });
                    Failure::wrong(format!(
                        "this lattice has no wave vector `{name}`; those with names are {names}"
                    ))
                })?;
                Ok((name.clone(), s.map(|x| x * TAU / edge)))
            }
        })
        .collect()
}
