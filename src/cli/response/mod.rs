//! What `md modes`, `md elastic` and `md sensitivity` have in common: a configuration at rest.

pub(super) mod elastic;
pub(super) mod modes;
pub(super) mod sensitivity;

use super::results::{Asked, Results, exact};
use super::run::interrupt;
use super::{Failure, tell};
use crate::catalog::Catalog;
use crate::forces::Evaluator;
use crate::formats::{AtomLabel, Format, Frame, FrameUnits, Precision, writer};
use crate::input::plan::Plan;
use crate::input::response::Response;
use crate::observe::progress::{Mode, Progress};
use crate::observe::trajectory::View;
use crate::plot::scale::significant;
use crate::response::elastic::Elastic;
use crate::response::rest::{Doing, Rest, STEPS};
use crate::response::{Point, ResponseError};
use crate::system::{Atoms, State};
use crate::units::UnitSystem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A configuration at rest, and where results go.
struct Ready<'a> {
    title: String,
    units: UnitSystem,
    boltzmann: f64,
    atoms: Arc<Atoms>,
    labels: Vec<AtomLabel>,
    evaluator: Evaluator,
    state: State,
    results: &'a mut Results,
    stop: Arc<AtomicBool>,
}

impl Asked {
    /// Reads the input and does the rest in as many threads as wanted.
    fn at_rest(
        self,
        catalog: &Catalog,
        what: &str,
        body: impl FnOnce(&mut Ready<'_>, &Response) -> Result<(), Failure> + Send,
    ) -> super::Outcome {
        self.carry_out(catalog, what, |plan, results| {
            let Plan { title, units, boltzmann, atoms, labels, state, setup, response, .. } = plan;
            let evaluator = Evaluator::new(setup).map_err(Failure::wrong)?;
            let stop = interrupt();
            let mut ready = Ready { title, units, boltzmann, atoms, labels, evaluator, state, results, stop };
            ready.state.velocities.fill([0.0; 3]);
            body(&mut ready, &response)
        })
    }
}

impl Ready<'_> {
    fn reduced(&self) -> bool {
        self.units == UnitSystem::Lj
    }
    fn mode(&self) -> Mode {
        self.results.mode()
    }
    fn point(&mut self) -> Point<'_> {
        Point::new(&mut self.evaluator, &self.state, &self.atoms.masses)
    }
    /// GPa, or ε/σ³.
    fn pressure_unit(&self) -> (&'static str, f64) {
        crate::units::stress(self.units)
    }
    fn force_unit(&self) -> &'static str {
        if self.reduced() { "ε/σ" } else { "kJ/mol/nm" }
    }
    /// Angular frequencies in what is shown.
    fn frequency_unit(&self) -> (&'static str, f64) {
        crate::units::frequency(self.units)
    }

    /// Brings atoms, and the cell if asked, to rest.
    fn settle(&mut self, rest: &Rest) -> Result<(), Failure> {
        self.rest_again(rest)?;
        let forces =
            self.point().forces().map_err(|e| Failure::failed(format!("forces cannot be computed: {e}")))?;
        let largest = forces.forces.as_flattened().iter().fold(0.0, |m: f64, f| m.max(f.abs()));
        let how = match (rest.minimize, rest.pressure.is_some()) {
            (_, true) => "relaxed with the cell",
            (true, false) => "at a minimum of the energy",
            (false, false) => "as they are",
        };
        self.results.text += &format!(
            "  {how}: the largest component of a force is {} {}\n",
            significant(largest, 3),
            self.force_unit()
        );
        for term in self.evaluator.terms() {
            if let Some(ending) = term.ending().filter(|e| e.smoothness() < 2) {
                self.results.text += &format!(
                    "  note: at the cut-off of `{}` (ending \"{}\") continuous is {}; \"switch\" keeps second derivatives\n",
                    term.name(),
                    ending.name(),
                    ending.continuous()
                );
            }
        }
        let limit = if self.reduced() { 1e-3 } else { 1.0 };
        if largest > limit && !self.results.quiet {
            let advice =
                if rest.minimize { "more exactly (a smaller `force`)" } else { "first (`minimize = true`)" };
            tell(&format!(
                "warning: forces are not zero, so that second derivatives say little; minimise {advice}"
            ));
        }
        Ok(())
    }

    /// The same without a word.
    fn rest_again(&mut self, rest: &Rest) -> Result<(), Failure> {
        let mut progress = Progress::start("rest", 0, STEPS, self.mode());
        let stop = self.stop.clone();
        let watch = &mut |doing: Doing| {
            match doing {
                Doing::Minimizing(step, force) => {
                    progress.update(step, || format!("largest force {force:.2e}"));
                }
                Doing::Straining(done) => progress.update(done as u64, || "strains of the cell".into()),
            }
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = rest.settle(&mut self.evaluator, &mut self.state, &self.atoms.masses, watch);
        drop(progress);
        found.map_err(failed)
    }

    fn elastic(&mut self) -> Result<Elastic, Failure> {
        let mut progress = Progress::start("strains", 0, 6, self.mode());
        let found = self.point().elastic(|done| progress.update(done as u64, String::new));
        drop(progress);
        found.map_err(failed)
    }

    /// Writes frames as extended XYZ.
    fn frames(&mut self, name: &str, states: &[State]) -> Result<(), Failure> {
        let view = View {
            title: self.title.clone(),
            units: if self.reduced() { FrameUnits::Reduced } else { FrameUnits::default() },
            atoms: (0..self.atoms.len() as u32).collect(),
            labels: self.labels.clone(),
            unwrapped: true,
            velocities: false,
        };
        self.results.write(name, |out| {
            let mut bytes = Vec::new();
            let mut frames = writer(&mut bytes, Format::Xyz, Precision::default());
            let mut frame = Frame::default();
            for state in states {
                view.fill(state, &mut frame);
                frames.write(&frame)?;
            }
            drop(frames);
            out.write_all(&bytes)
        })
    }
}

fn failed(error: ResponseError) -> Failure {
    match error {
        ResponseError::Senseless(_) => Failure::wrong(error),
        ResponseError::NoSolution(_) => Failure::failed(error)
            .with_help("minimise first (`minimize = true`), or start from another structure"),
        _ => Failure::failed(error),
    }
}
