//! `md gradient`

use super::results::{Asked, Results, exact};
use super::run::interrupt;
use super::{Failure, Outcome, table};
use crate::adjoint::ensemble::{Ensemble, Estimate};
use crate::adjoint::growth::HOPELESS;
use crate::adjoint::{Gradient as Found, GradientError, Memory, Objective, Run, Snapshot, Thermal, Way};
use crate::autodiff::Richardson;
use crate::catalog::Catalog;
use crate::input::gradient::{Estimator, Gradient as Settings, Keep};
use crate::input::plan::Task;
use crate::integrate::{Integrator, kinetic_energy};
use crate::observe::progress::Progress;
use crate::plot::scale::significant;
use crate::plot::{Figure, Panel, Series};
use crate::run::{LastStage, integrator};
use crate::units::UnitSystem;
use clap::Args;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

#[derive(Args)]
pub(super) struct Gradient {
    #[command(flatten)]
    asked: Asked,
    /// Compare the largest derivatives with differences of whole runs
    #[arg(long)]
    check: bool,
}

/// How many derivatives are compared with differences.
const COMPARED: usize = 6;
/// How many are drawn.
const DRAWN: usize = 12;

/// A number that went into the run, and the derivative in it.
struct Row {
    name: String,
    at: f64,
    slope: f64,
    error: Option<f64>,
    what: What,
}

/// What is changed for a difference.
#[derive(Clone, Copy)]
enum What {
    Parameter(usize),
    Setting(usize),
    Mass(u32),
    /// The size of the first velocities.
    Warmth,
}

impl Gradient {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let check = self.check;
        self.asked.carry_out(catalog, "gradient", move |mut plan, results| {
            let Some(settings) = plan.gradient.take() else {
                let failure = Failure::wrong("the input does not say what is to be differentiated");
                return Err(failure.with_help("add a table [gradient]: see `md explain gradient`"));
            };
            let reduced = plan.units == UnitSystem::Lj;
            let (boltzmann, title) = (plan.boltzmann, std::mem::take(&mut plan.title));
            let last = LastStage::reach(plan, results.mode()).map_err(Failure::failed)?;
            let job = Job { settings, boltzmann, title, reduced, last, results };
            job.carry_out(check)
        })
    }
}

struct Job<'a> {
    settings: Settings,
    boltzmann: f64,
    title: String,
    reduced: bool,
    last: LastStage,
    results: &'a mut Results,
}

fn failed(error: GradientError) -> Failure {
    match error {
        GradientError::Senseless(_) | GradientError::Irreversible(_) => Failure::wrong(error),
        _ => Failure::failed(error),
    }
}

fn objective(settings: &Settings) -> Objective {
    let averages = settings.averages.iter().map(|(_, average)| average.clone()).collect();
    let program = settings.program.clone();
    Objective::new(averages, Box::new(move |x| program.eval::<_, f64>(x, &[])))
}

impl Job<'_> {
    fn thermal(&self) -> Thermal {
        Thermal { freedom: self.last.freedom, boltzmann: self.boltzmann }
    }
    fn steps(&self) -> usize {
        usize::try_from(self.last.stage.steps).unwrap_or(usize::MAX)
    }
    fn time_unit(&self) -> &'static str {
        if self.reduced { "τ" } else { "ps" }
    }

    fn carry_out(mut self, check: bool) -> Result<(), Failure> {
        match self.settings.estimator {
            Estimator::Pathwise { horizon } => self.pathwise(horizon, check),
            Estimator::Ensemble if check => {
                let message = "derivatives of an ensemble cannot be compared with differences of one run";
                Err(Failure::wrong(message).with_help("leave `--check` out"))
            }
            Estimator::Ensemble => self.ensemble(),
        }
    }

    fn pathwise(&mut self, horizon: Option<usize>, check: bool) -> Result<(), Failure> {
        let atoms = self.last.atoms.clone();
        let snapshot = Snapshot::bytes(atoms.len());
        let folder = self.settings.disk.then(|| self.results.folder.clone());
        let steps = self.steps();
        let memory = match self.settings.memory {
            Keep::Reversible => Memory::Reversible,
            Keep::All if folder.is_none() => Memory::StoreAll,
            Keep::All => Memory::Checkpoints { snapshots: steps.max(1), folder },
            Keep::Bytes(bytes) => {
                let snapshots = (bytes as usize / snapshot).clamp(1, steps.max(1));
                Memory::Checkpoints { snapshots, folder }
            }
        };
        let way = Way { memory, parameters: self.settings.parameters, horizon };
        let thermal = self.thermal();
        let mut objective = objective(&self.settings);
        let start = self.last.state.clone();
        let mut progress = Progress::start("gradient", 0, 2 * steps as u64, self.results.mode());
        let stop = interrupt();
        let watch = &mut |there: usize, back: usize| {
            progress.update((there + back) as u64, || {
                if back == 0 { "forward".into() } else { "backward".into() }
            });
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let settings = self.last.integrator.settings();
        let integrator = self.integrator([1.0; 3])?;
        let run = Run {
            evaluator: &mut self.last.evaluator,
            integrator,
            masses: &atoms.masses,
            start: start.clone(),
            steps,
            thermal,
        };
        let found = run.gradient(&mut objective, &way, watch).map_err(failed)?;
        drop(progress);
        let rows = self.rows(&found, &settings);
        self.say(&found, &rows, &way, horizon);
        self.record(&found, &rows)?;
        self.draw(&found, &rows)?;
        if check { self.compare(&rows) } else { Ok(()) }
    }

    /// The integrator of the last stage, with its time step, temperature and friction multiplied.
    fn integrator(&self, by: [f64; 3]) -> Result<Box<dyn Integrator>, Failure> {
        let mut task = self.last.stage.task;
        match &mut task {
            Task::VelocityVerlet { time_step } => *time_step *= by[0],
            Task::Langevin { time_step, temperature, friction } => {
                (*time_step, *temperature, *friction) =
                    (*time_step * by[0], *temperature * by[1], *friction * by[2]);
            }
            Task::Fire { .. } | Task::Lbfgs { .. } => {}
        }
        let made = integrator(&task, self.boltzmann, self.last.seed);
        made.ok_or_else(|| Failure::wrong("the last stage minimises"))?.map_err(Failure::failed)
    }

    /// The derivatives in everything that has a name.
    fn rows(&self, found: &Found, settings: &[(&'static str, f64)]) -> Vec<Row> {
        let row = |name: String, at, slope, what| Row { name, at, slope, error: None, what };
        let mut rows = Vec::new();
        let names = self.last.evaluator.parameter_names();
        for (k, ((name, at), (slope, matters))) in names.into_iter().zip(&found.parameters).enumerate() {
            if *matters {
                rows.push(row(name, at, *slope, What::Parameter(k)));
            }
        }
        for (k, ((name, at), slope)) in settings.iter().zip(&found.start.settings).enumerate() {
            rows.push(row((*name).to_owned(), *at, *slope, What::Setting(k)));
        }
        let atoms = &self.last.atoms;
        for (kind, name) in atoms.type_names.iter().enumerate() {
            let of = |i: &usize| atoms.types[*i] as usize == kind;
            let Some(first) = (0..atoms.len()).find(of) else { continue };
            let slope = (0..atoms.len()).filter(of).map(|i| found.start.masses[i]).sum();
            rows.push(row(format!("atoms.{name}.mass"), atoms.masses[first], slope, What::Mass(kind as u32)));
        }
        // velocities grow like the root of their temperature
        let thermal = self.thermal();
        let kinetic = kinetic_energy(&atoms.masses, &self.last.state.velocities);
        let warmth = crate::integrate::temperature(kinetic, thermal.freedom, thermal.boltzmann);
        if let Some(warmth) = warmth.filter(|t| *t > 0.0) {
            let along = found.start.velocities.iter().zip(&self.last.state.velocities);
            let along: f64 = along.map(|(a, v)| (0..3).map(|k| a[k] * v[k]).sum::<f64>()).sum();
            rows.push(row("initial temperature".into(), warmth, along / (2.0 * warmth), What::Warmth));
        }
        rows.sort_by(|a, b| (b.at * b.slope).abs().total_cmp(&(a.at * a.slope).abs()));
        rows
    }

    fn table(&mut self, rows: &[Row]) {
        let errors = rows.iter().any(|r| r.error.is_some());
        let mut head = vec!["in", "value", "derivative"];
        head.extend(errors.then_some("error"));
        head.push("for 1 %");
        let mut lines = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
        for r in rows {
            let mut line = vec![r.name.clone(), significant(r.at, 6), significant(r.slope, 7)];
            line.extend(r.error.map(|e| significant(e, 2)));
            line.push(significant(0.01 * r.at * r.slope, 4));
            lines.push(line);
        }
        self.results.text += &table(&lines, &[1, 2, 3, 4]);
    }

    fn say(&mut self, found: &Found, rows: &[Row], way: &Way, horizon: Option<usize>) {
        let Settings { of, averages, .. } = &self.settings;
        let mut text = format!("  {of} = {}\n", significant(found.value, 9));
        if averages.len() > 1 || averages.first().is_some_and(|(name, _)| name != of) {
            for ((name, _), value) in averages.iter().zip(&found.averages) {
                text += &format!("    {name} = {}\n", significant(*value, 9));
            }
        }
        text += match horizon {
            None => "  exact for the steps that were taken (pathwise, by the discrete adjoint):\n",
            Some(_) => "  BIASED: the way back forgets (truncated adjoint); what is missing is not known:\n",
        };
        self.results.text += &text;
        self.table(rows);
        let length = |v: &[[f64; 3]]| v.iter().flatten().map(|x| x * x).sum::<f64>().sqrt();
        let mut text = format!(
            "  in all first positions and velocities: see atoms.csv (lengths {} and {})\n",
            significant(length(&found.start.positions), 4),
            significant(length(&found.start.velocities), 4)
        );
        let (dt, unit) = (self.last.integrator.time_step(), self.time_unit());
        if let Some(grown) = found.lengths.growth(dt) {
            let [rate, error] = [grown.rate, grown.error].map(|x| significant(x, 3));
            text += &format!("  the adjoint grows by exp(t · {rate}/{unit}) (± {error})");
            match grown.horizon {
                Some(time) => {
                    let ran = self.steps() as f64 * dt;
                    text += &format!(": {HOPELESS}-fold in {} {unit}", significant(time, 3));
                    if ran > time {
                        text += &format!(
                            "\n  warning: the run is longer ({} {unit}): such derivatives are true of this one trajectory and of \
                             tiny changes only; for averages take a `horizon` or the estimator \"ensemble\"",
                            significant(ran, 3)
                        );
                    }
                }
                None => text += ": hardly at all",
            }
            text.push('\n');
        }
        let cost = &found.cost;
        let (forward, total) = (cost.forward.as_secs_f64(), cost.total.as_secs_f64());
        let again = cost.counts.forward.saturating_sub(self.steps() as u64);
        let states = match &way.memory {
            Memory::Reversible => format!("{again} steps taken backward, no states kept"),
            _ => format!(
                "{again} steps taken again, {} states of {} bytes kept ({} MB)",
                cost.counts.snapshots,
                cost.state,
                significant(cost.kept as f64 * 1e-6, 3)
            ),
        };
        text += &format!(
            "  forward {} s, backward {} s ({} times): {states}\n",
            significant(forward, 3),
            significant(total - forward, 3),
            significant((total - forward) / forward.max(1e-9), 3)
        );
        if let Some(peak) = peak_memory() {
            text += &format!("  peak memory of the process: {} MB\n", significant(peak as f64 * 1e-6, 3));
        }
        self.results.text += &text;
    }

    fn record(&mut self, found: &Found, rows: &[Row]) -> Result<(), Failure> {
        self.derivatives(found.value, rows)?;
        let header = ["atom", "type", "dx", "dy", "dz", "dvx", "dvy", "dvz", "dm"].map(String::from);
        let atoms = self.last.atoms.clone();
        let lines: Vec<Vec<String>> = (0..atoms.len())
            .map(|i| {
                let mut line = vec![(i + 1).to_string(), atoms.type_names[atoms.types[i] as usize].clone()];
                line.extend(
                    found.start.positions[i].iter().chain(&found.start.velocities[i]).map(|x| exact(*x)),
                );
                line.push(exact(found.start.masses[i]));
                line
            })
            .collect();
        self.results.csv("atoms.csv", &header, &lines)
    }

    fn derivatives(&mut self, value: f64, rows: &[Row]) -> Result<(), Failure> {
        let header = ["of", "value", "in", "at", "derivative", "error"].map(String::from);
        let of = self.settings.of.clone();
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|r| {
                let error = r.error.map_or(String::new(), exact);
                vec![of.clone(), exact(value), r.name.clone(), exact(r.at), exact(r.slope), error]
            })
            .collect();
        self.results.csv("gradient.csv", &header, &lines)
    }

    fn draw(&mut self, found: &Found, rows: &[Row]) -> Result<(), Failure> {
        let (dt, unit) = (self.last.integrator.time_step(), self.time_unit());
        let drawn = found.lengths.iter().filter(|(_, x)| *x > 0.0);
        let points: (Vec<f64>, Vec<f64>) = drawn.map(|(left, x)| (left as f64 * dt, x)).unzip();
        if points.0.len() > 1 {
            let title = format!("The adjoint on its way back: {}", self.title);
            let panel = Panel::new("length of ∂L/∂r", "").logarithmic();
            let figure = Figure::new(title, "time", unit);
            let figure = figure.panel(panel.series(Series::new("|∂L/∂r|", points.0, points.1)));
            self.results.picture("adjoint", &figure)?;
        }
        self.bars(rows)
    }

    fn bars(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let largest = rows.first().map_or(0.0, |r| (r.at * r.slope).abs());
        if largest == 0.0 {
            return Ok(());
        }
        let bars = rows.iter().filter(|r| (r.at * r.slope).abs() > 1e-9 * largest).take(DRAWN);
        let bars = bars.map(|r| {
            let change = significant(0.01 * r.at * r.slope, 3);
            (format!("{}: {change}", r.name), r.at * r.slope / largest)
        });
        let title = format!("What 1 % more of a number does: {}", self.title);
        let figure = Figure::new(title, "change, relative to the largest", "");
        let figure = figure.panel(Panel::bars(self.settings.of.clone(), bars));
        self.results.picture("gradient", &figure)
    }

    /// Compares the largest derivatives with differences of whole runs.
    fn compare(&mut self, rows: &[Row]) -> Result<(), Failure> {
        // (differences see the steps of the grid that forces are rounded to)
        self.last.evaluator.method.grid = crate::forces::Grid::NONE;
        let largest = rows.iter().fold(0.0, |m: f64, r| m.max((r.at * r.slope).abs()));
        let mut lines = vec![["  for 1 % of", "adjoint", "differences", "apart"].map(String::from).to_vec()];
        let mut wrong = false;
        for r in rows.iter().filter(|r| r.at != 0.0).take(COMPARED) {
            let mut failure = None;
            let value = |by: f64| {
                self.changed(r.what, by).unwrap_or_else(|error| {
                    failure = Some(error);
                    f64::NAN
                })
            };
            let way = Richardson { step: 5e-5, levels: 3, tables: 1, enough: 0.0, scale: 0.0 };
            let found = way.derivative(value, 0.0);
            if let Some(error) = failure {
                return Err(error);
            }
            let apart = (found.value - r.at * r.slope).abs() / largest;
            // (a difference that is uncertain tells nothing)
            wrong |= apart > 1e-5 && apart > 10.0 * found.error / largest;
            let number = |x: f64| significant(0.01 * x, 8);
            lines.push(vec![
                format!("  {}", r.name),
                number(r.at * r.slope),
                number(found.value),
                format!("{apart:.1e}"),
            ]);
        }
        self.results.text += &table(&lines, &[1, 2, 3]);
        match wrong {
            false => Ok(()),
            true => Err(Failure::failed(format!("{}  derivatives are WRONG", self.results.text))),
        }
    }

    /// The number of a run in which something is multiplied by 1 + `by`.
    fn changed(&mut self, what: What, by: f64) -> Result<f64, Failure> {
        let (mut start, mut masses) = (self.last.state.clone(), self.last.atoms.masses.clone());
        let mut settings = [1.0; 3];
        let numbers = self.last.evaluator.numbers();
        match what {
            What::Parameter(number) => {
                let mut changed = numbers.clone();
                changed[number] *= 1.0 + by;
                self.last.evaluator.set_parameters(&changed).map_err(Failure::failed)?;
            }
            What::Setting(k) => settings[k] += by,
            What::Mass(kind) => {
                for (m, t) in masses.iter_mut().zip(&self.last.atoms.types) {
                    *m *= if *t == kind { 1.0 + by } else { 1.0 };
                }
            }
            What::Warmth => {
                let scale = (1.0 + by).sqrt();
                start.velocities.iter_mut().flatten().for_each(|v| *v *= scale);
            }
        }
        let (steps, thermal, integrator) = (self.steps(), self.thermal(), self.integrator(settings)?);
        let evaluator = &mut self.last.evaluator;
        let run = Run { evaluator, integrator, masses: &masses, start, steps, thermal };
        let value = run.value(&mut objective(&self.settings)).map_err(failed);
        self.last.evaluator.set_parameters(&numbers).map_err(Failure::failed)?;
        value
    }

    fn ensemble(&mut self) -> Result<(), Failure> {
        let Task::Langevin { temperature, .. } = self.last.stage.task else {
            let failure = Failure::wrong("the estimator \"ensemble\" is about the canonical ensemble");
            return Err(failure.with_help("let the last stage run with `integrator.langevin`"));
        };
        let (steps, thermal) = (self.steps(), self.thermal());
        let mut objective = objective(&self.settings);
        let atoms = self.last.atoms.clone();
        let mut progress = Progress::start("ensemble", 0, steps as u64, self.results.mode());
        let integrator = self.integrator([1.0; 3])?;
        let start = self.last.state.clone();
        let evaluator = &mut self.last.evaluator;
        let run = Run { evaluator, integrator, masses: &atoms.masses, start, steps, thermal };
        let watch = |step: usize| progress.update(step as u64, String::new);
        let found =
            run.ensemble(&mut objective, temperature, self.settings.parameters, watch).map_err(failed)?;
        drop(progress);
        let row = |name: String, at, e: Estimate, what| Row {
            name,
            at,
            slope: e.value,
            error: Some(e.error),
            what,
        };
        let names = self.last.evaluator.parameter_names();
        let parameters = names.into_iter().zip(&found.parameters).enumerate();
        let mut rows: Vec<Row> = parameters
            .filter(|(_, (_, (_, matters)))| *matters)
            .map(|(k, ((name, at), (estimate, _)))| row(name, at, *estimate, What::Parameter(k)))
            .collect();
        rows.push(row("temperature".into(), temperature, found.temperature, What::Setting(1)));
        rows.sort_by(|a, b| (b.at * b.slope).abs().total_cmp(&(a.at * a.slope).abs()));
        self.say_ensemble(&found);
        self.table(&rows);
        self.derivatives(found.value.value, &rows)?;
        self.bars(&rows)
    }

    fn say_ensemble(&mut self, found: &Ensemble) {
        let shown = |e: Estimate| format!("{} ± {}", significant(e.value, 7), significant(e.error, 2));
        let mut text = format!("  {} = {}\n", self.settings.of, shown(found.value));
        for (((name, _), e), effective) in
            self.settings.averages.iter().zip(&found.averages).zip(&found.effective)
        {
            text += &format!("    {name} = {}, as of {} independent states\n", shown(*e), effective.round());
        }
        text += &format!(
            "  of equilibrium (covariances over {} states of the canonical ensemble, {} s), with standard errors:\n",
            found.samples,
            significant(found.time.as_secs_f64(), 3)
        );
        self.results.text += &text;
    }
}

/// The most memory that this process has had, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|k| 1024 * k)
}
