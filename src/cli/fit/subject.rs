//! From an input to what is known of its system.

use super::super::response::sensitivity::question;
use super::super::{Failure, tell};
use super::failed;
use crate::adjoint::{GradientError, Run, Thermal, When};
use crate::fit::averages::{Averages, Drawing, MakeIntegrator};
use crate::fit::data::Reading;
use crate::fit::properties::Properties;
use crate::fit::target::{Known, Target};
use crate::fit::trajectory::Trajectory;
use crate::fit::{Aim, Free, Problem, Sample, System};
use crate::forces::{Evaluator, Precision, neural, parameter_names};
use crate::formats::n2p2::Potential;
use crate::formats::{Format, FrameUnits, frames};
use crate::input::fit::{Data, Ensemble, Fit as Settings, Source, Trajectory as Frames};
use crate::input::plan::{Plan, Task};
use crate::input::response::Outcome;
use crate::observe::progress::Mode;
use crate::response::Point;
use crate::response::rest::Rest;
use crate::run::{LastStage, integrator};
use crate::units::UnitSystem;
use potentials::many_body::neural::Statistics;
use std::collections::HashMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An input whose `[fit]` tells something.
pub(super) struct Subject<'a> {
    pub plan: &'a Plan,
    pub fit: &'a Settings,
    /// Reads it once more: evaluators are made of what is read.
    pub again: &'a dyn Fn() -> Result<Plan, Failure>,
    pub quiet: bool,
    pub stop: &'a Arc<AtomicBool>,
    /// Reads another input.
    pub other: &'a dyn Fn(&Path) -> Result<Plan, Failure>,
    /// What new networks' functions are scaled by, term after term.
    pub scaling: Vec<Option<Vec<Statistics>>>,
}

impl Subject<'_> {
    /// Adds its system and what is known of it. (Which parameters are free, `main` says.)
    pub fn add(&mut self, problem: &mut Problem, main: &Settings) -> Result<(), Failure> {
        let system = problem.systems.len();
        let before = problem.samples.len();
        self.samples(problem, system)?;
        let samples = problem.samples.len() - before;
        if self.fit.new_network {
            self.scale(&problem.samples[before..])?;
        }
        let evaluators = match samples {
            0 => Vec::new(),
            some => self.evaluators(some)?,
        };
        let names = parameter_names(&self.plan.setup.terms, &self.plan.setup.charges);
        let mut base: Vec<f64> = names.iter().map(|(_, x)| *x).collect();
        let place: HashMap<String, usize> =
            names.into_iter().enumerate().map(|(k, (name, _))| (name, k)).collect();
        let own = |p: &Free| place.get(&p.name).map(|&k| (k, 1.0)).into_iter().collect();
        let mut columns: Vec<Vec<(usize, f64)>> = main.free.iter().map(own).collect();
        for (name, sum) in &main.ties {
            let Some(&k) = place.get(name) else { continue };
            sum.iter().for_each(|&(of, factor)| columns[of].push((k, factor)));
        }
        // (what free parameters are added to begins at nothing)
        columns.iter().flatten().for_each(|(k, _)| base[*k] = 0.0);
        problem.systems.push(System { evaluators, base, columns });
        let targets = &self.fit.targets;
        let mut aim = |target: Box<dyn Target>| problem.aims.push(Aim { system, target });
        if let Some((rest, of)) = &targets.properties {
            aim(Box::new(self.properties(rest, of)?));
        }
        if let Some(ensemble) = &targets.ensemble {
            aim(Box::new(self.ensemble(ensemble)?));
        }
        if let Some(trajectory) = &targets.trajectory {
            aim(Box::new(self.trajectory(trajectory)?));
        }
        Ok(())
    }

    fn samples(&self, problem: &mut Problem, system: usize) -> Result<(), Failure> {
        let plan = self.plan;
        let names = |i: usize| -> Vec<String> {
            let kind = &plan.atoms.type_names[plan.atoms.types[i] as usize];
            let mut names = vec![plan.atoms.names[i].clone(), plan.labels[i].name.clone(), kind.clone()];
            names.dedup();
            names
        };
        let atoms: Vec<Vec<String>> = (0..plan.atoms.len()).map(names).collect();
        for data in &self.fit.data {
            let offset = data.offset.then(|| {
                let (Source::File(path) | Source::Run(path)) = &data.source;
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                problem.free.push(Free::new(format!("offset.{stem}"), 0.0, false));
                problem.free.len() - 1
            });
            let reading = Reading {
                names: &data.names,
                units: data.units,
                every: data.every,
                cell: &plan.state.cell,
                atoms: &atoms,
                system,
                uncertainties: data.uncertainties,
                weight: data.weight,
                offset,
            };
            match &data.source {
                Source::File(file) => problem.samples.extend(reading.file(file).map_err(failed)?),
                Source::Run(input) => problem.samples.extend(self.run(input, data, system, offset)?),
            }
        }
        Ok(())
    }

    /// States of the last stage of another input, with its energy.
    fn run(
        &self,
        input: &Path,
        data: &Data,
        system: usize,
        offset: Option<usize>,
    ) -> Result<Vec<Sample>, Failure> {
        let mut plan = (self.other)(input)?;
        plan.setup.method.precision = Precision::Double;
        let wrong = |e: String| Failure::wrong(format!("{}: {e}", input.display()));
        let kinds = |plan: &Plan| -> Vec<String> {
            plan.atoms.types.iter().map(|&t| plan.atoms.type_names[t as usize].clone()).collect()
        };
        if kinds(&plan) != kinds(self.plan) {
            return Err(wrong("its atoms are not those of the input that learns from it".into()));
        }
        let boltzmann = plan.boltzmann;
        let mode = if self.quiet { Mode::Quiet } else { Mode::Auto };
        let mut last = LastStage::reach(plan, mode).map_err(|e| wrong(e.to_string()))?;
        let steps = last.stage.steps as usize;
        let when = When::Every { from: data.every, every: data.every };
        let run = Run {
            evaluator: &mut last.evaluator,
            integrator: last.integrator,
            masses: &last.atoms.masses,
            start: last.state,
            steps,
            thermal: Thermal { freedom: last.freedom, boltzmann },
        };
        let mut samples = Vec::new();
        let stop = self.stop;
        run.visit(when, &mut |_, _, state, forces| {
            let volume = state.cell.volume().filter(|_| state.cell.periodic() == [true; 3]);
            samples.push(Sample {
                system,
                cell: state.cell.clone(),
                positions: state.positions.clone(),
                energy: Some(forces.energy()),
                offset,
                forces: Some(forces.forces.clone()),
                stress: volume.map(|v| forces.virial.map(|w| -w / v)),
                uncertainties: data.uncertainties,
                weight: data.weight,
            });
            match stop.load(Ordering::Relaxed) {
                true => Err(GradientError::Interrupted),
                false => Ok(()),
            }
        })
        .map_err(|e| Failure::failed(format!("{}: {e}", input.display())))?;
        if samples.is_empty() {
            return Err(wrong(format!("its last stage has {steps} steps: no state is taken")));
        }
        Ok(samples)
    }

    /// New networks' functions are scaled by what they are in the data.
    fn scale(&mut self, samples: &[Sample]) -> Result<(), Failure> {
        if samples.is_empty() {
            return Ok(());
        }
        let atoms = &self.plan.atoms;
        let mut all = Vec::new();
        for term in &self.plan.setup.terms {
            let configurations = samples.iter().map(|s| (&s.cell, &s.positions));
            let found = neural::statistics_of(&**term, atoms, configurations).map_err(Failure::wrong)?;
            all.push(found.map(|all| all.into_iter().map(Statistics::spread).collect()));
        }
        self.scaling = all;
        Ok(())
    }

    /// The input once more. (Derivatives are in double precision, and so is what they are of.)
    fn exact(&self) -> Result<Plan, Failure> {
        let mut plan = (self.again)()?;
        plan.setup.method.precision = Precision::Double;
        for (term, scaling) in plan.setup.terms.iter_mut().zip(&self.scaling) {
            if let Some(term_scaled) = scaling.clone().and_then(|s| neural::rescaled(&**term, s)) {
                *term = term_scaled;
            }
        }
        Ok(plan)
    }
    fn evaluator(&self) -> Result<Evaluator, Failure> {
        Evaluator::new(self.exact()?.setup).map_err(Failure::wrong)
    }
    /// As many as are of use.
    fn evaluators(&self, most: usize) -> Result<Vec<Evaluator>, Failure> {
        (0..rayon::current_num_threads().min(most).max(1)).map(|_| self.evaluator()).collect()
    }
    /// The input up to its last stage, and what takes that one's steps.
    fn last_stage(&self) -> Result<(LastStage, MakeIntegrator), Failure> {
        let mode = if self.quiet { Mode::Quiet } else { Mode::Auto };
        let last = LastStage::reach(self.exact()?, mode).map_err(Failure::failed)?;
        let (task, boltzmann, seed) = (last.stage.task, self.plan.boltzmann, last.seed);
        let make = move || integrator(&task, boltzmann, seed);
        make().ok_or_else(|| Failure::wrong("the last stage minimises"))?.map_err(Failure::failed)?;
        // (what could be made once can be made again)
        let make: MakeIntegrator = Box::new(move || match make() {
            Some(Ok(integrator)) => integrator,
            _ => unreachable!("an integrator that was made"),
        });
        Ok((last, make))
    }

    fn properties(&self, rest: &Rest, of: &[(Outcome, Known)]) -> Result<Properties, Failure> {
        let mut evaluator = self.evaluator()?;
        let Plan { atoms, state, .. } = self.plan;
        let mut start = state.clone();
        start.velocities.fill([0.0; 3]);
        let mut outcomes = Vec::new();
        for (outcome, _) in of {
            let mut point = Point::new(&mut evaluator, &start, &atoms.masses);
            outcomes.push(question(*outcome, &mut point, &atoms.types).map_err(Failure::wrong)?);
        }
        if rest.pressure.is_none() && of.iter().any(|(o, _)| *o == Outcome::LatticeConstant) {
            let message = "a lattice constant is what the cell relaxes to, and it stays as it is";
            return Err(Failure::wrong(message).with_help("write `rest.pressure = \"0 bar\"` in [fit]"));
        }
        // (other derivatives are at a fixed cell; at a pressure of zero the energy does not care)
        let follows = |of: &Outcome| match of {
            Outcome::LatticeConstant => true,
            Outcome::Energy => rest.pressure == Some(0.0),
            _ => false,
        };
        if let Some((outcome, _)) = of.iter().find(|(o, _)| rest.pressure.is_some() && !follows(o)) {
            let message = format!(
                "derivatives of `{}` are those at a fixed cell, and the cell relaxes to a pressure",
                outcome.name()
            );
            let help = "leave `rest.pressure` out and let \"pressure\" be known instead, at the lattice constant that is known";
            return Err(Failure::wrong(message).with_help(help));
        }
        Ok(Properties {
            evaluator,
            start,
            masses: atoms.masses.clone(),
            rest: *rest,
            of: outcomes,
            known: of.iter().map(|(_, known)| known.clone()).collect(),
            stop: self.stop.clone(),
        })
    }

    fn ensemble(&self, ensemble: &Ensemble) -> Result<Averages, Failure> {
        let (last, integrator) = self.last_stage()?;
        let Task::Langevin { temperature, .. } = last.stage.task else {
            return Err(Failure::wrong("the last stage keeps no temperature"));
        };
        let drawing = Drawing {
            integrator,
            temperature,
            thermal: Thermal { freedom: last.freedom, boltzmann: self.plan.boltzmann },
            masses: last.atoms.masses.clone(),
            equilibrate: ensemble.equilibrate as usize,
            steps: last.stage.steps as usize,
            every: ensemble.every as usize,
            least: ensemble.least,
        };
        let (observables, known) = ensemble.averages.iter().cloned().unzip();
        let evaluators = self.evaluators(usize::MAX)?;
        Ok(Averages::new(evaluators, drawing, last.state, observables, known, self.stop.clone()))
    }

    fn trajectory(&self, wanted: &Frames) -> Result<Trajectory, Failure> {
        let (last, integrator) = self.last_stage()?;
        let shown = wanted.file.display();
        let wrong = |e: String| Failure::wrong(format!("{shown}: {e}"));
        let format = Format::from_path(&wanted.file).map_err(Failure::wrong)?;
        let file = std::fs::File::open(&wanted.file).map_err(|e| wrong(e.to_string()))?;
        let lj = self.plan.units == UnitSystem::Lj;
        let units = if lj { FrameUnits::Reduced } else { FrameUnits::Nanometre };
        let mut all = Vec::new();
        for frame in frames(BufReader::new(file), format, units) {
            let frame = frame.map_err(|e| Failure::wrong(e.with_path(&wanted.file)))?;
            if frame.len() != last.atoms.len() {
                return Err(wrong(format!(
                    "there are {} atoms, but {} in the input",
                    frame.len(),
                    last.atoms.len()
                )));
            }
            all.push(frame.positions);
        }
        if all.len() < 2 {
            return Err(wrong("there is no frame after the first, which is where the stage begins".into()));
        }
        // (the first is where the stage begins)
        all.remove(0);
        let most = last.stage.steps / wanted.every;
        if all.len() as u64 > most {
            tell(&format!("{shown}: of {} frames the last stage comes by {most} only", all.len()));
            all.truncate(most as usize);
        }
        let (unit, factor) = if lj { ("σ", 1.0) } else { ("Å", 10.0) };
        let known = Known {
            name: "distance from the trajectory".into(),
            value: 0.0,
            error: wanted.error,
            unit,
            factor,
            place: None,
            count: 1,
        };
        let thermal = Thermal { freedom: last.freedom, boltzmann: self.plan.boltzmann };
        let every = wanted.every as usize;
        let masses = last.atoms.masses.clone();
        let stop = self.stop.clone();
        Ok(Trajectory::new(last.evaluator, integrator, masses, last.state, thermal, every, all, known, stop))
    }
}

/// The networks among a fitted system's terms, with the weights that they have now.
pub(super) fn networks(problem: &mut Problem, u: &[f64]) -> Result<Vec<Potential>, Failure> {
    let values = problem.values(u);
    let numbers = problem.numbers(0, &values);
    let evaluators = &mut problem.systems[0].evaluators;
    System::set(evaluators, &numbers).map_err(failed)?;
    let terms = evaluators.first().map_or(&[][..], |e| e.terms());
    let found = terms.iter().filter_map(|t| neural::network_of(&**t));
    Ok(found
        .map(|(network, weights)| Potential { network: network.clone(), weights: weights.to_vec() })
        .collect())
}
