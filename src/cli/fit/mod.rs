//! `md fit`

mod aims;
mod subject;

use super::results::{Results, exact};
use super::run::{directory, duration, interrupt};
use super::{Failure, How, Input, Outcome, quoted, say, table, tell};
use crate::autodiff::Richardson;
use crate::catalog::Catalog;
use crate::fit::optimize::{Objective, Optimizer};
use crate::fit::{Compared, FitError, Problem, Sample, Totals, Transform, Uncertainty, shuffled};
use crate::formats::n2p2;
use crate::input::fit::Fit as Settings;
use crate::input::plan::Plan;
use crate::input::reader::{Kind, quantity};
use crate::observe::checkpoint::Fingerprint;
use crate::observe::progress::Progress;
use crate::plot::scale::{moments, significant};
use crate::plot::{Figure, Panel, Series};
use crate::run::files;
use crate::units::UnitSystem;
use clap::Args;
use potentials::many_body::neural::Network;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use subject::{Subject, networks};

#[derive(Args)]
pub(super) struct Fit {
    #[command(flatten)]
    input: Input,
    /// Stop, ready to be resumed, after so many steps, all together
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Folder for the results [default: outputs/<input's name>-fit, or the next free -2, -3 …]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Go on with the fit in the folder: that of --output, or else the latest of this input's
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Stop, ready to be resumed, after this time: "30 min", "1 h 30 min", "90 s"
    #[arg(long, value_name = "T", value_parser = duration)]
    max_time: Option<Duration>,
    /// Compare the gradient with differences where the fit begins, and fit nothing
    #[arg(long, conflicts_with = "resume")]
    check: bool,
    #[command(flatten)]
    how: How,
}

/// How often what a fit goes on from is written.
const SAVED_EVERY: Duration = Duration::from_secs(5);
/// How many free parameters Levenberg–Marquardt may have.
const MOST_BY_MATRIX: usize = 500;
/// How many are told one by one, with standard errors.
const FEW: usize = 60;
/// Correlations that are told.
const CORRELATED: f64 = 0.95;

/// What a fit goes on from.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// The fingerprint of parameters, data and minimiser.
    identity: u64,
    u: Vec<f64>,
    optimizer: Optimizer,
    rows: Vec<Row>,
    done: bool,
    /// What is known beside configurations, as it was at the start.
    first: Vec<f64>,
    /// What that goes on from.
    targets: Vec<Vec<u8>>,
}

/// A step of the fit.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    loss: f64,
    hold_out: Option<f64>,
    gradient: f64,
    moved: f64,
    values: Vec<f64>,
}

fn failed(error: FitError) -> Failure {
    match error {
        FitError::Forces(_) => Failure::failed(error),
        _ => Failure::wrong(error),
    }
}

impl Fit {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let mut plan = self.input.plan(catalog, self.how.quiet)?;
        let Some(settings) = plan.fit.take() else {
            let message = format!("{} says nothing of a fit", self.input.input.display());
            return Err(Failure::wrong(message).with_help(
                "it needs `[[fit.parameter]]` and `[[fit.data]]`: see `md explain fit` and docs/fit.md",
            ));
        };
        let work = || -> Outcome {
            let stop = interrupt();
            let problem = self.problem(catalog, &plan, &settings, &stop)?;
            match self.check {
                true => check(problem),
                false => self.fit(catalog, &plan, &settings, problem, &stop),
            }
        };
        match self.how.threads {
            None => work(),
            Some(count) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(count)).build();
                pool.map_err(Failure::failed)?.install(work)
            }
        }
    }

    /// Reads the data and makes the systems: those of the input and of the others that it names.
    fn problem(
        &self,
        catalog: &Catalog,
        plan: &Plan,
        settings: &Settings,
        stop: &Arc<AtomicBool>,
    ) -> Result<Problem, Failure> {
        let mut problem = Problem {
            free: settings.free.clone(),
            systems: Vec::new(),
            samples: Vec::new(),
            aims: Vec::new(),
            training: Vec::new(),
            batch: settings.batch,
            seed: plan.seed,
        };
        if problem.free.is_empty() {
            let help = "add `[[fit.parameter]]` with `name = \"lennard-jones.Ar.epsilon\"` …";
            return Err(Failure::wrong("no number is free").with_help(help));
        }
        let again = || self.input.plan(catalog, true);
        let other = |path: &Path| {
            Plan::read(path, &[], catalog)
                .map_err(|found| Failure { status: 2, message: found.render(super::colored()) })
        };
        let (quiet, other) = (self.how.quiet, &other);
        let scaling = Vec::new();
        let mut main = Subject { plan, fit: settings, again: &again, quiet, stop, other, scaling };
        main.add(&mut problem, settings)?;
        for path in &settings.with {
            let again = || other(path);
            let mut plan = again()?;
            let Some(fit) = plan.fit.take() else {
                let message = format!("{} says nothing of a fit", path.display());
                let help = "what is known of its system stands in its `[fit]`: see docs/fit.md";
                return Err(Failure::wrong(message).with_help(help));
            };
            let scaling = Vec::new();
            let mut subject = Subject { plan: &plan, fit: &fit, again: &again, quiet, stop, other, scaling };
            subject.add(&mut problem, settings)?;
        }
        for system in &mut problem.systems {
            system.columns.resize(problem.free.len(), Vec::new());
        }
        let n = problem.samples.len();
        let held = (settings.hold_out * n as f64).round() as usize;
        let mut training = shuffled(&(0..n).collect::<Vec<_>>(), plan.seed, 0).split_off(held.min(n));
        training.sort_unstable();
        if training.is_empty() && problem.aims.is_empty() {
            return Err(Failure::wrong("all configurations are held out: there is nothing to fit to"));
        }
        problem.training = training;
        let many = problem.free.len();
        if settings.optimizer.wants_matrix() && many > MOST_BY_MATRIX {
            let message = format!("{many} free parameters are too many for levenberg-marquardt");
            return Err(Failure::wrong(message)
                .with_help("write `optimizer.adam = {}` or `optimizer.l-bfgs = {}` in [fit]"));
        }
        if settings.optimizer.wants_matrix() && problem.aims.iter().any(|a| !a.target.is_linear()) {
            let message = "levenberg-marquardt needs the derivatives of every number, and a trajectory has them as a whole only";
            return Err(Failure::wrong(message)
                .with_help("write `optimizer.l-bfgs = {}` or `optimizer.adam = {}` in [fit]"));
        }
        begin_offsets(&mut problem)?;
        Ok(problem)
    }

    fn fit(
        &self,
        catalog: &Catalog,
        plan: &Plan,
        settings: &Settings,
        mut problem: Problem,
        stop: &AtomicBool,
    ) -> Outcome {
        let (quiet, stem) = (self.how.quiet, format!("{}-fit", self.input.stem()));
        let folder = directory(self.output.as_deref(), &stem, Some(self.resume), self.how.force, quiet)?;
        let identity = identity(&problem, &settings.optimizer);
        let mut now = match self.resume {
            true => saved(&folder, identity)?,
            false => {
                let (u, optimizer) = (problem.start(), settings.optimizer.clone());
                let (rows, targets) = (Vec::new(), Vec::new());
                Saved { identity, u, optimizer, rows, done: false, first: Vec::new(), targets }
            }
        };
        for (aim, saved) in problem.aims.iter_mut().zip(&now.targets) {
            aim.target.recall(saved).map_err(failed)?;
        }
        let mut results = Results::new(folder, plan.echo.clone(), quiet)?;
        let (training, held) = parts(&problem);
        let bounds = problem.bounds();
        let steps = self.steps.unwrap_or(settings.steps);
        let mut start = problem.totals(&problem.start(), &training).map_err(failed)?;
        if !start.squares.is_finite() {
            return Err(Failure::failed("the energy is not finite where the fit begins"));
        }
        if now.rows.is_empty() && !problem.aims.is_empty() {
            if !quiet {
                tell("what is known beside configurations is computed where the fit begins …");
            }
            now.first = problem.aims(&now.u).map_err(failed)?.into_iter().map(|(_, x)| x).collect();
        }
        start.add(&problem.compared_totals(&now.first));
        let count = start.count as f64;
        if now.rows.is_empty() {
            let hold_out = hold_out(&mut problem, &now.u, &held)?;
            let (loss, values) = (start.loss(), told(&problem, &now.u));
            now.rows.push(Row { loss, hold_out, gradient: f64::NAN, moved: 0.0, values });
        }
        let (clock, mut written) = (Instant::now(), Instant::now());
        let done = |now: &Saved| now.rows.len() as u64 - 1;
        let mut progress = Progress::start("fit", 0, steps, results.mode()).resumed_at(done(&now));
        while !now.done && done(&now) < steps {
            let late = self.max_time.is_some_and(|t| clock.elapsed() >= t);
            if late || stop.load(Ordering::Relaxed) {
                break;
            }
            let before = (now.optimizer.clone(), now.u.clone());
            let made = match now.optimizer.step(&mut now.u, &bounds, &mut problem) {
                Err(FitError::Interrupted) => {
                    (now.optimizer, now.u) = before;
                    break;
                }
                made => made.map_err(failed)?,
            };
            now.done = made.done;
            if made.value.is_nan() {
                break;
            }
            let each = problem.batch.map_or(1, |b| training.len().div_ceil(b.max(1)));
            let asked = now.done || (done(&now) + 1).is_multiple_of(each as u64);
            let hold_out = if asked { hold_out(&mut problem, &now.u, &held)? } else { None };
            let loss = 2.0 * made.value / count;
            let values = told(&problem, &now.u);
            now.rows.push(Row { loss, hold_out, gradient: made.gradient, moved: made.moved, values });
            progress.update(done(&now), || format!("loss {loss:.4e}"));
            if written.elapsed() >= SAVED_EVERY {
                save(&mut results, &mut now, &problem)?;
                written = Instant::now();
            }
        }
        progress.ended().finish(&format!("loss {:.4e}", now.rows.last().map_or(0.0, |r| r.loss)));
        save(&mut results, &mut now, &problem)?;
        // (what was asked to stop did: the rest is short)
        stop.store(false, Ordering::Relaxed);

        let aims = problem.aims(&now.u).map_err(failed)?;
        let mut totals = problem.totals(&now.u, &training).map_err(failed)?;
        let last: Vec<f64> = aims.iter().map(|(_, x)| *x).collect();
        totals.add(&problem.compared_totals(&last));
        let (squares, numbers) = (totals.squares, totals.count);
        let known = if problem.free.len() <= FEW {
            let normal = problem.normal(&now.u).map_err(failed)?;
            let noise = problem.noise(&now.u).map_err(failed)?;
            Uncertainty::new(&problem, &now.u, &normal, &noise, squares, numbers, settings.scale_errors)
        } else {
            Uncertainty::unknown(problem.free.len())
        };
        let mut report = Report {
            problem: &mut problem,
            now: &now,
            known: &known,
            results: &mut results,
            units: plan.units,
        };
        report.write(&plan.title, [&training, &held])?;
        let text =
            report.text(&self.input.input.display().to_string(), [start, totals], [&training, &held])?;
        report.results.text += &text;
        report.aims(&plan.title, &aims)?;
        self.fitted(catalog, plan.units, settings, &mut problem, &now.u, &mut results)?;
        results.told()?;
        if !quiet && !now.done {
            say(&self.how_to_go_on(&results))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The input with the numbers that were found.
    fn fitted(
        &self,
        catalog: &Catalog,
        units: UnitSystem,
        settings: &Settings,
        problem: &mut Problem,
        u: &[f64],
        results: &mut Results,
    ) -> Result<(), Failure> {
        let values = problem.values(u);
        let free = settings.free.iter().zip(&values).map(|(p, &x)| (&p.name, x));
        let tied = settings
            .ties
            .iter()
            .map(|(name, sum)| (name, sum.iter().map(|&(k, factor)| factor * values[k]).sum::<f64>()));
        let mut set = self.input.changes.set.clone();
        for (name, x) in free.chain(tied) {
            if let Some((key, dimension)) = settings.keys.get(name) {
                set.push((key.clone(), quantity(*dimension).echo(&x, units)));
            }
        }
        for potential in networks(problem, u)? {
            let folder = results.folder.join("neural");
            n2p2::write(&folder, &potential)
                .map_err(|e| Failure::failed(format!("cannot write into {}: {e}", folder.display())))?;
            results.files.push("neural/*".into());
            let folder = std::path::absolute(&folder).unwrap_or(folder);
            let Network { length_unit, energy_unit, .. } = potential.network;
            let [length, energy] = match units {
                UnitSystem::Lj => ["", ""],
                _ => [" nm", " kJ/mol"],
            };
            let table = format!(
                "{{ folder = {:?}, length-unit = \"{length_unit}{length}\", energy-unit = \"{energy_unit}{energy}\" }}",
                folder.display().to_string()
            );
            set.push(("many-body.neural".into(), table));
        }
        let plan = self.input.plan_of(&set, catalog, true)?;
        results.write("fitted.toml", |out| out.write_all(plan.echo.as_bytes()))
    }

    fn how_to_go_on(&self, results: &Results) -> String {
        let mut line = format!(
            "  not done yet; go on with\n    md fit {} --output {}",
            quoted(&self.input.input),
            quoted(&results.folder)
        );
        for (path, value) in &self.input.changes.set {
            line += &format!(" --set {}", quoted(format!("{path}={value}")));
        }
        line + " --resume\n"
    }
}

/// The parameters that stand in the table of steps.
fn told(problem: &Problem, u: &[f64]) -> Vec<f64> {
    if problem.free.len() <= FEW { problem.values(u) } else { Vec::new() }
}

/// What is fitted to, and what is held out.
fn parts(problem: &Problem) -> (Vec<usize>, Vec<usize>) {
    let training = problem.training.clone();
    let held = (0..problem.samples.len()).filter(|k| training.binary_search(k).is_err()).collect();
    (training, held)
}

fn hold_out(problem: &mut Problem, u: &[f64], held: &[usize]) -> Result<Option<f64>, Failure> {
    match held.is_empty() {
        true => Ok(None),
        false => Ok(Some(problem.totals(u, held).map_err(failed)?.loss())),
    }
}

/// Constants of energies begin at what is missing on the average, and are measured in how that differs.
fn begin_offsets(problem: &mut Problem) -> Result<(), Failure> {
    if problem.samples.iter().all(|s| s.offset.is_none()) {
        return Ok(());
    }
    let all: Vec<usize> = (0..problem.samples.len()).collect();
    let start = problem.start();
    let compared = problem.compared(&start, &all).map_err(failed)?;
    let mut missing: Vec<Vec<f64>> = vec![Vec::new(); problem.free.len()];
    let mut known: f64 = 0.0;
    for c in compared.iter().filter(|c| c.kind == 0) {
        let sample = &problem.samples[c.sample];
        let atoms = sample.positions.len() as f64;
        known = known.max(sample.uncertainties.energy * atoms);
        if let Some(k) = sample.offset {
            missing[k].push((c.reference - c.fitted) * atoms);
        }
    }
    for (p, missing) in problem.free.iter_mut().zip(missing) {
        if let Some((mean, deviation)) = moments(&missing) {
            p.start = mean;
            // (so that it may go as far as it must in a step or two)
            p.transform = Transform::Linear(10.0 * (deviation + known));
        }
    }
    Ok(())
}

/// The fingerprint of what is fitted, to what and how.
fn identity(problem: &Problem, optimizer: &Optimizer) -> u64 {
    let mut print = Fingerprint::default();
    for p in &problem.free {
        print.word(&format!("{p:?}"));
    }
    print.word(&format!("{optimizer:?}{:?}{}", problem.batch, problem.seed));
    for s in &problem.samples {
        let Sample { cell, positions, forces, uncertainties: u, .. } = s;
        positions.raw().as_flattened().iter().for_each(|&x| {
            print.number(x as u64);
        });
        print.reals(cell.basis().as_flattened()).reals(forces.iter().flatten().flatten());
        print.reals(&s.energy).reals(s.stress.iter().flatten());
        print.reals(&[s.weight, u.energy, u.force, u.stress]);
    }
    for known in problem.aims.iter().flat_map(|a| a.target.known()) {
        print.word(&known.name).reals(&[known.value, known.error]);
    }
    problem.training.iter().for_each(|&k| {
        print.number(k as u64);
    });
    print.value()
}

fn save(results: &mut Results, now: &mut Saved, problem: &Problem) -> Result<(), Failure> {
    now.targets = problem.aims.iter().map(|a| a.target.save()).collect();
    let bytes = postcard::to_stdvec(&*now).map_err(Failure::failed)?;
    results.quietly(files::RESTART, |out| out.write_all(&bytes))
}

fn saved(folder: &Path, identity: u64) -> Result<Saved, Failure> {
    let path = folder.join(files::RESTART);
    let bytes =
        std::fs::read(&path).map_err(|e| Failure::failed(format!("cannot read {}: {e}", path.display())))?;
    let saved: Saved = postcard::from_bytes(&bytes)
        .map_err(|_| Failure::wrong(format!("{} is not of a fit, or broken", path.display())))?;
    if saved.identity != identity || saved.rows.is_empty() {
        let message = "the fit in the folder had other parameters, data or settings";
        return Err(Failure::wrong(message).with_help("begin anew with --force, or in another folder"));
    }
    Ok(saved)
}

/// The gradient where the fit begins, beside differences.
fn check(mut problem: Problem) -> Outcome {
    let u = problem.start();
    let found = problem.normal(&u).map_err(failed)?.slope.gradient;
    let along = problem.slope(&u).map_err(failed)?.gradient;
    let largest = found.iter().fold(f64::MIN_POSITIVE, |m: f64, g| m.max(g.abs()));
    let mut rows =
        vec![["parameter", "gradient", "by columns", "difference", "apart"].map(String::from).to_vec()];
    let mut worst: f64 = 0.0;
    for k in 0..u.len() {
        let mut at = |x: f64| {
            let mut there = u.clone();
            there[k] = x;
            problem.value(&there).unwrap_or(f64::NAN)
        };
        let differences = Richardson { step: 1e-3, levels: 3, tables: 1, enough: 0.0, scale: 0.0 };
        let d = differences.derivative(&mut at, u[k]);
        let apart = (along[k] - d.value).abs().max((along[k] - found[k]).abs()) / largest;
        // (a difference that is uncertain tells nothing)
        if d.error <= 1e-6 * largest {
            worst = worst.max(apart);
        }
        let number = |x: f64| significant(x, 9);
        let name = problem.free[k].name.clone();
        rows.push(vec![name, number(along[k]), number(found[k]), number(d.value), format!("{apart:.1e}")]);
    }
    let text = table(&rows, &[1, 2, 3, 4]);
    match worst <= 1e-5 {
        true => say(&text).map(|()| ExitCode::SUCCESS),
        false => Err(Failure::failed(format!("derivatives are WRONG\n{text}"))),
    }
}

/// What is told and written in the end.
struct Report<'a> {
    problem: &'a mut Problem,
    now: &'a Saved,
    known: &'a Uncertainty,
    results: &'a mut Results,
    units: UnitSystem,
}

/// Kinds of data: name of files, axis.
const KINDS: [(&str, &str); 3] = [
    ("energies", "energy per atom"),
    ("forces", "component of a force"),
    ("stresses", "component of the stress"),
];

impl Report<'_> {
    /// The unit of a kind of data, and what one of the engine's is in it.
    fn unit(&self, kind: usize) -> (&'static str, f64) {
        match (self.units == UnitSystem::Lj, kind) {
            (true, 0) => ("ε", 1.0),
            (true, 1) => ("ε/σ", 1.0),
            (false, 0) => ("kJ/mol", 1.0),
            (false, 1) => ("kJ/mol/nm", 1.0),
            (_, _) => crate::units::stress(self.units),
        }
    }

    /// Tables and pictures.
    fn write(&mut self, title: &str, sets: [&[usize]; 2]) -> Result<(), Failure> {
        let Saved { rows, u, .. } = self.now;
        let names: Vec<String> = self.problem.free.iter().map(|p| p.name.clone()).collect();
        let fixed = ["step", "loss", "hold-out", "gradient", "moved"].map(String::from);
        let few = names.len() <= FEW;
        let header: Vec<String> = fixed.into_iter().chain(names.iter().filter(|_| few).cloned()).collect();
        let number = |x: f64| if x.is_nan() { String::new() } else { exact(x) };
        let lines = rows.iter().enumerate().map(|(k, row)| {
            let mut line = vec![k.to_string(), exact(row.loss), row.hold_out.map_or(String::new(), exact)];
            line.extend([number(row.gradient), exact(row.moved)]);
            line.extend(row.values.iter().map(|&x| exact(x)));
            line
        });
        self.results.csv("loss.csv", &header, &lines.collect::<Vec<_>>())?;

        let header = ["parameter", "start", "fitted", "standard error", "at a bound"].map(String::from);
        let values = self.problem.values(u);
        let lines = self.problem.free.iter().zip(&values).zip(&self.known.errors).map(|((p, &x), error)| {
            let bound = error.is_none().to_string();
            vec![p.name.clone(), exact(p.start), exact(x), error.map_or(String::new(), exact), bound]
        });
        self.results.csv("parameters.csv", &header, &lines.collect::<Vec<_>>())?;
        if few {
            let header: Vec<String> = [String::new()].into_iter().chain(names.iter().cloned()).collect();
            let line = |(k, name): (usize, &String)| {
                let row = self.known.correlations.row(k);
                [name.clone()].into_iter().chain(row.iter().map(|&c| number(c))).collect::<Vec<_>>()
            };
            let lines: Vec<Vec<String>> = names.iter().enumerate().map(line).collect();
            self.results.csv("correlations.csv", &header, &lines)?;
        }

        let step: Vec<f64> = (0..rows.len()).map(|k| k as f64).collect();
        let loss: Vec<f64> = rows.iter().map(|r| r.loss).collect();
        let mut panel = Panel::new("loss", "").logarithmic().weight(2.0);
        panel = panel.series(Series::new("fitted to", &step[..], &loss[..]));
        let held: Vec<(f64, f64)> =
            rows.iter().zip(&step).filter_map(|(r, &k)| Some((k, r.hold_out?))).collect();
        let (at, of): (Vec<f64>, Vec<f64>) = held.into_iter().unzip();
        if !at.is_empty() {
            panel = panel.series(Series::new("held out", at, of));
        }
        let mut relative = Panel::new("parameter / start", "").weight(1.5);
        let drawn = if few { 14 } else { 0 };
        for (k, p) in self.problem.free.iter().enumerate().filter(|(_, p)| p.start != 0.0).take(drawn) {
            let curve: Vec<f64> = rows.iter().map(|r| r.values[k] / p.start).collect();
            relative = relative.series(Series::new(p.name.clone(), &step[..], curve));
        }
        // (a loss of nothing has no logarithm)
        if loss.iter().any(|x| *x > 0.0) {
            let figure = Figure::new(format!("Fit: {title}"), "step", "").panel(panel);
            let figure = if few { figure.panel(relative) } else { figure };
            self.results.picture("loss", &figure)?;
        }
        self.parity(title, sets)
    }

    /// What the data say beside what the energy gives.
    fn parity(&mut self, title: &str, sets: [&[usize]; 2]) -> Result<(), Failure> {
        let mut all: Vec<(&str, Vec<Compared>)> = Vec::new();
        for (name, set) in ["fitted to", "held out"].into_iter().zip(sets) {
            all.push((name, self.problem.compared(&self.now.u, set).map_err(failed)?));
        }
        for (kind, (name, axis)) in KINDS.into_iter().enumerate() {
            let (unit, factor) = self.unit(kind);
            let chosen = |set: &[Compared]| -> (Vec<f64>, Vec<f64>) {
                set.iter()
                    .filter(|c| c.kind == kind)
                    .map(|c| (c.reference * factor, c.fitted * factor))
                    .unzip()
            };
            let sets: Vec<(&str, (Vec<f64>, Vec<f64>))> =
                all.iter().map(|(n, set)| (*n, chosen(set))).collect();
            let points = sets.iter().flat_map(|(_, (x, _))| x);
            let (low, high) =
                points.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
            if low > high {
                continue;
            }
            let mut lines = Vec::new();
            for (set, compared) in &all {
                for c in compared.iter().filter(|c| c.kind == kind) {
                    let place = (c.sample + 1).to_string();
                    let numbers = [c.reference * factor, c.fitted * factor].map(exact);
                    lines.push([vec![place, set.to_string()], numbers.to_vec()].concat());
                }
            }
            let header = ["configuration", "set", "reference", "fitted"].map(String::from);
            let header: Vec<String> = header
                .into_iter()
                .enumerate()
                .map(|(k, h)| if k > 1 { format!("{h} ({unit})") } else { h })
                .collect();
            self.results.csv(&format!("parity-{name}.csv"), &header, &lines)?;
            let mut parity = Panel::new("fitted", unit).weight(3.0);
            let mut apart = Panel::new("fitted − reference", unit).weight(1.2);
            let guide = |y: [f64; 2]| Series::guide("", vec![low, high], y.to_vec());
            for (name, (x, y)) in &sets {
                let points = |y: Vec<f64>, name: &str| Series::points(name.to_owned(), x.clone(), y);
                if !x.is_empty() {
                    parity = parity.series(points(y.clone(), name));
                    apart = apart.series(points(x.iter().zip(y).map(|(x, y)| y - x).collect(), ""));
                }
            }
            let figure = Figure::new(format!("Fit: {title}"), format!("reference: {axis}"), unit)
                .panel(parity.series(guide([low, high])))
                .panel(apart.series(guide([0.0; 2])));
            self.results.picture(&format!("parity-{name}"), &figure)?;
        }
        Ok(())
    }

    /// The standard deviation of the components of forces in the data.
    fn spread(&self, set: &[usize]) -> f64 {
        let forces = set.iter().filter_map(|&k| self.problem.samples[k].forces.as_ref());
        let all: Vec<f64> = forces.flatten().flatten().copied().collect();
        moments(&all).map_or(0.0, |(_, deviation)| deviation)
    }

    /// What is said.
    fn text(
        &mut self,
        input: &str,
        [start, end]: [Totals; 2],
        [training, held]: [&[usize]; 2],
    ) -> Result<String, Failure> {
        let Saved { rows, u, done, .. } = self.now;
        let many = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let mut parts = vec![many(end.count, "number"), many(self.problem.free.len(), "free parameter")];
        if !training.is_empty() {
            let held_out =
                if held.is_empty() { String::new() } else { format!(" ({} more held out)", held.len()) };
            parts.insert(0, many(training.len(), "configuration") + &held_out);
        }
        let mut text = format!("{input}: {}\n", parts.join(", "));
        let state = if *done { "done" } else { "not done" };
        text += &format!("  {state} after {}\n", many(rows.len() - 1, "step"));
        let mut lines = vec![["parameter", "start", "fitted", "standard error"].map(String::from).to_vec()];
        let values = self.problem.values(u);
        for ((p, x), error) in self.problem.free.iter().zip(&values).zip(&self.known.errors) {
            let error = match error {
                None => "at a bound".to_owned(),
                Some(e) if e.is_infinite() => "undetermined".to_owned(),
                Some(e) => significant(*e, 2),
            };
            lines.push(vec![p.name.clone(), significant(p.start, 8), significant(*x, 8), error]);
        }
        if lines.len() <= FEW + 1 {
            text += &table(&lines, &[1, 2, 3]);
        } else {
            text += "  (so many parameters stand in parameters.csv, without standard errors)\n";
        }
        let mut lines =
            vec![vec![String::from("root mean square difference"), "start".into(), "fitted".into()]];
        let held_out = match held.is_empty() {
            true => Totals::default(),
            false => self.problem.totals(u, held).map_err(failed)?,
        };
        if !held.is_empty() {
            lines[0].push("held out".into());
        }
        for (kind, (_, axis)) in KINDS.into_iter().enumerate() {
            let (unit, factor) = self.unit(kind);
            let columns = [start, end, held_out].map(|t| t.roots()[kind].map(|x| significant(x * factor, 4)));
            if columns.iter().any(Option::is_some) {
                let name = format!("{axis} ({unit})");
                lines.push(
                    [name].into_iter().chain(columns.into_iter().map(Option::unwrap_or_default)).collect(),
                );
            }
        }
        let spreads = [training, training, held].map(|set| self.spread(set));
        if spreads[0] > 0.0 {
            let part = |(t, spread): (Totals, f64)| {
                t.roots()[1].map_or(String::new(), |x| significant(100.0 * x / spread, 3))
            };
            let each = [start, end, held_out].into_iter().zip(spreads).map(part);
            lines.push(["the same, in % of the forces' spread".to_owned()].into_iter().chain(each).collect());
        }
        let losses = [start, end, held_out]
            .map(|t| if t.count > 0 { significant(t.loss(), 4) } else { String::new() });
        lines.push(["loss: mean square over uncertainty".to_owned()].into_iter().chain(losses).collect());
        text += &table(&lines, &[1, 2, 3]);
        let c = &self.known.correlations;
        for a in 0..c.nrows() {
            for b in 0..a {
                if c[(a, b)].abs() > CORRELATED {
                    let names = [b, a].map(|k| self.problem.free[k].name.as_str()).join(" and ");
                    text += &format!("  {names} are correlated: {}\n", significant(c[(a, b)], 4));
                }
            }
        }
        for set in &self.known.undetermined {
            let names: Vec<&str> = set.iter().map(|&k| self.problem.free[k].name.as_str()).collect();
            text += &match &names[..] {
                [one] => format!("  the data do not depend on {one}\n"),
                several => format!("  the data do not tell {} apart\n", several.join(", ")),
            };
        }
        if !self.known.undetermined.is_empty() {
            tell("warning: some parameters are not determined by the data; fix them, or give them priors");
        }
        Ok(text)
    }
}
