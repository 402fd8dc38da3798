//! `md sensitivity`

use super::super::{Failure, Outcome, table};
use super::{Asked, Ready, exact, failed};
use crate::autodiff::Richardson;
use crate::catalog::Catalog;
use crate::forces::ParameterSlope;
use crate::input::response::Outcome as Of;
use crate::plot::scale::significant;
use crate::plot::{Figure, Panel};
use crate::response::rest::Rest;
use crate::response::sensitivity::{Outcome as Question, Sensitivity as Found};
use crate::response::{Point, ResponseError};
use clap::Args;

#[derive(Args)]
pub(in crate::cli) struct Sensitivity {
    #[command(flatten)]
    asked: Asked,
    /// Compare the largest derivatives of each result with differences, of minima that are found anew
    #[arg(long)]
    check: bool,
}

/// How many derivatives of a result are compared with differences.
const COMPARED: usize = 4;
/// How many rows are printed, and how many are drawn.
const PRINTED: usize = 25;
const DRAWN: usize = 10;

impl Sensitivity {
    pub(in crate::cli) fn run(self, catalog: &Catalog) -> Outcome {
        let check = self.check;
        self.asked.at_rest(catalog, "sensitivity", move |ready, response| {
            let settings = &response.sensitivity;
            ready.settle(&settings.rest)?;
            let mut all = Vec::new();
            for of in &settings.of {
                let (name, unit, factor, outcome) = ready.asked(*of)?;
                let mut found = ready.point().sensitivity(&outcome).map_err(failed)?;
                found.value *= factor;
                found.slopes.iter_mut().for_each(|s| s.slope *= factor);
                ready.show(&name, &unit, &found);
                if check {
                    ready.compare(&settings.rest, &outcome, factor, &found)?;
                }
                all.push((name, unit, found));
            }
            ready.record(&all)?;
            ready.bars(&all)
        })
    }
}

impl Ready<'_> {
    /// What is asked for in the library's terms: name, unit, the unit's value.
    fn asked(&mut self, of: Of) -> Result<(String, String, f64, Question), Failure> {
        let n = self.atoms.len();
        let (energy, length) = if self.reduced() { ("ε", "σ") } else { ("kJ/mol", "nm") };
        let (unit, shown) = match of {
            Of::Energy => (energy, 1.0),
            Of::Pressure | Of::Elastic(..) => self.pressure_unit(),
            Of::Frequency(_) => self.frequency_unit(),
            Of::LatticeConstant => (length, 1.0),
            Of::Distance(i, j) if i >= n || j >= n => {
                return Err(Failure::wrong(format!("`{}`: there are only {n} atoms", of.name())));
            }
            Of::Distance(..) => (length, 1.0),
        };
        let types = self.atoms.types.clone();
        let (outcome, factor) = question(of, &mut self.point(), &types).map_err(failed)?;
        Ok((of.name(), unit.into(), shown * factor, outcome))
    }

    /// A sorted table.
    fn show(&mut self, name: &str, unit: &str, found: &Found) {
        self.results.text += &format!("  {name} = {} {unit}\n", significant(found.value, 8));
        let sorted = sorted(found);
        let mut rows = vec![
            ["parameter", "value", &format!("d/dθ ({unit})"), &format!("for 1 % ({unit})")]
                .map(String::from)
                .to_vec(),
        ];
        for s in sorted.iter().filter(|s| s.matters).take(PRINTED) {
            rows.push(vec![
                s.name.clone(),
                significant(s.at, 6),
                significant(s.slope, 6),
                significant(0.01 * s.at * s.slope, 4),
            ]);
        }
        self.results.text += &table(&rows, &[1, 2, 3]);
        let more = sorted.iter().filter(|s| s.matters).count().saturating_sub(PRINTED);
        if more > 0 {
            self.results.text += &format!("  … and {more} more in sensitivity.csv\n");
        }
        let idle: Vec<&str> = sorted.iter().filter(|s| !s.matters).map(|s| s.name.as_str()).collect();
        if !idle.is_empty() {
            let names = idle.iter().take(8).copied().collect::<Vec<_>>().join(", ");
            let rest = if idle.len() > 8 { format!(" and {} more", idle.len() - 8) } else { String::new() };
            self.results.text += &format!("  no interaction depends on {names}{rest}\n");
        }
    }

    /// Compares the largest derivatives with differences: parameters are changed, and what is at rest is found again.
    fn compare(
        &mut self,
        rest: &Rest,
        outcome: &Question,
        factor: f64,
        found: &Found,
    ) -> Result<(), Failure> {
        let start = self.state.clone();
        let numbers = self.evaluator.numbers();
        let order = |s: &ParameterSlope| found.slopes.iter().position(|o| o.name == s.name).unwrap_or(0);
        let mut rows = vec![["parameter", "for 1 %", "by differences", "apart"].map(String::from).to_vec()];
        let largest = sorted(found).first().map_or(0.0, |s| (s.at * s.slope).abs());
        let mut worst = 0.0f64;
        for s in sorted(found).into_iter().filter(|s| s.matters && s.at != 0.0).take(COMPARED) {
            let mut failed = None;
            let value = |h: f64| {
                let mut changed = || -> Result<f64, Failure> {
                    let mut changed = numbers.clone();
                    changed[order(s)] *= 1.0 + h;
                    self.evaluator.set_parameters(&changed).map_err(Failure::failed)?;
                    self.state = start.clone();
                    // (the cell answers where its edge is asked for; else it stays)
                    let cell = matches!(outcome, Question::Edge(_));
                    let pressure = Some(rest.pressure.unwrap_or(0.0)).filter(|_| cell);
                    self.rest_again(&Rest { pressure, ..*rest })?;
                    self.point().outcome(outcome).map_err(super::failed)
                };
                changed().unwrap_or_else(|error| {
                    failed = Some(error);
                    f64::NAN
                })
            };
            let differences = Richardson { step: 1e-3, levels: 3, tables: 1, enough: 0.0, scale: 0.0 };
            let d = differences.derivative(value, 0.0);
            if let Some(error) = failed {
                return Err(error);
            }
            let (exact, difference) = (s.at * s.slope, d.value * factor);
            let apart = (exact - difference).abs() / largest;
            // (a difference that is uncertain tells nothing)
            if d.error * factor.abs() <= 1e-4 * largest {
                worst = worst.max(apart);
            }
            let number = |x: f64| significant(0.01 * x, 7);
            rows.push(vec![s.name.clone(), number(exact), number(difference), format!("{apart:.1e}")]);
        }
        self.evaluator.set_parameters(&numbers).map_err(Failure::failed)?;
        self.state = start;
        self.results.text += &table(&rows, &[1, 2, 3]);
        match worst <= 1e-4 {
            true => Ok(()),
            false => Err(Failure::failed(format!("{}  derivatives are WRONG", self.results.text))),
        }
    }

    fn record(&mut self, all: &[(String, String, Found)]) -> Result<(), Failure> {
        let header = ["result", "unit", "value", "parameter", "at", "derivative", "for 1 %", "matters"]
            .map(String::from);
        let mut rows = Vec::new();
        for (name, unit, found) in all {
            for s in sorted(found) {
                rows.push(vec![
                    name.clone(),
                    unit.clone(),
                    exact(found.value),
                    s.name.clone(),
                    exact(s.at),
                    exact(s.slope),
                    exact(0.01 * s.at * s.slope),
                    s.matters.to_string(),
                ]);
            }
        }
        self.results.csv("sensitivity.csv", &header, &rows)
    }

    /// Bars of what a percent of each parameter does, relative to the most that one does.
    fn bars(&mut self, all: &[(String, String, Found)]) -> Result<(), Failure> {
        let title = format!("What 1 % more of a parameter does: {}", self.title);
        let mut figure = Figure::new(title, "change, relative to the largest", "");
        let mut drawn = false;
        for (name, unit, found) in all {
            let sorted = sorted(found);
            let largest = sorted.first().map_or(0.0, |s| (s.at * s.slope).abs());
            if largest == 0.0 {
                continue;
            }
            let chosen = sorted.iter().filter(|s| s.matters && (s.at * s.slope).abs() > 1e-9 * largest);
            let bars = chosen.take(DRAWN).map(|s| {
                let change = significant(0.01 * s.at * s.slope, 3);
                (format!("{}: {change} {unit}", s.name), s.at * s.slope / largest)
            });
            figure = figure.panel(Panel::bars(name.clone(), bars));
            drawn = true;
        }
        if drawn { self.results.picture("sensitivity", &figure) } else { Ok(()) }
    }
}

/// A result in the library's terms, and what that is to be multiplied by.
pub(in crate::cli) fn question(
    of: Of,
    point: &mut Point,
    types: &[u32],
) -> Result<(Question, f64), ResponseError> {
    Ok(match of {
        Of::Energy => (Question::Energy, 1.0),
        Of::Pressure => (Question::Pressure, 1.0),
        Of::Elastic(a, b) => (Question::Elastic(a, b), 1.0),
        Of::Frequency(k) => (Question::Frequency(k), 1.0),
        Of::Distance(i, j) => (Question::Distance(i, j), 1.0),
        Of::LatticeConstant => {
            // of the cubic cell where there is one, else of the whole cell along its first vector
            let crystal = point.crystal(types)?;
            let edge = point.state.cell.basis()[0].iter().map(|x| x * x).sum::<f64>().sqrt();
            let times = crystal.cubic.map_or(1.0, |(_, a)| (edge / a).round().max(1.0));
            (Question::Edge(0), 1.0 / times)
        }
    })
}

/// Those that do most come first.
fn sorted(found: &Found) -> Vec<&ParameterSlope> {
    let mut slopes: Vec<&ParameterSlope> = found.slopes.iter().collect();
    slopes.sort_by(|a, b| {
        let weight = |s: &ParameterSlope| (s.at * s.slope).abs();
        weight(b).total_cmp(&weight(a)).then_with(|| a.name.cmp(&b.name))
    });
    slopes
}
