//! `md energy`

use super::{Failure, Input, Outcome, say, table};
use crate::catalog::Catalog;
use crate::forces::{Evaluator, ForceSource, Forces, Grid};
use crate::integrate::{degrees_of_freedom, kinetic_energy, temperature};
use crate::plot::scale::significant;
use crate::run::{conserves_momentum, instant_pressure, term_names};
use crate::units::UnitSystem;
use clap::Args;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct Energy {
    #[command(flatten)]
    input: Input,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Names and values, in their order.
struct Map<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Map<K, V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct Document {
    units: Map<&'static str, &'static str>,
    energy: f64,
    /// None without velocities, as the temperature.
    kinetic: Option<f64>,
    temperature: Option<f64>,
    terms: Map<String, f64>,
    forces: Vec<[f64; 3]>,
    virial: [f64; 6],
    pressure: Option<f64>,
    volume: Option<f64>,
}

/// The units of results, by quantity.
fn units(reduced: bool) -> Vec<(&'static str, &'static str)> {
    let quantities = [
        "length",
        "time",
        "mass",
        "charge",
        "temperature",
        "energy",
        "force",
        "virial",
        "pressure",
        "volume",
    ];
    let names = match reduced {
        false => ["nm", "ps", "u", "e", "K", "kJ/mol", "kJ/mol/nm", "kJ/mol", "bar", "nm^3"],
        true => ["σ", "τ", "m", "q", "ε/kB", "ε", "ε/σ", "ε", "ε/σ^3", "σ^3"],
    };
    quantities.into_iter().zip(names).collect()
}

impl Energy {
    pub(super) fn run(self, catalog: &Catalog) -> Outcome {
        let mut plan = self.input.plan(catalog, self.json)?;
        // (one point has no order of steps to be independent of: as exact as can be)
        plan.setup.method.grid = Grid::NONE;
        let reduced = plan.units == UnitSystem::Lj;
        let names = term_names(&plan.setup.terms);
        let cannot = |e| Failure::failed(format!("forces cannot be computed: {e}"));
        let mut evaluator = Evaluator::new(plan.setup).map_err(Failure::wrong)?;
        let mut out = Forces::default();
        evaluator.evaluate(&plan.state.cell, &plan.state.positions, &mut out).map_err(cannot)?;
        let moving = plan.has_velocities;
        let kinetic = moving.then(|| kinetic_energy(&plan.atoms.masses, &plan.state.velocities));
        let mut freedom = || {
            let kept = conserves_momentum(&mut evaluator, &plan.state).map_err(cannot)?;
            Ok(degrees_of_freedom(plan.atoms.len(), 0, kept))
        };
        let freedom = if moving { freedom()? } else { 0 };
        let temperature = kinetic.and_then(|k| temperature(k, freedom, plan.boltzmann));
        let cell = &plan.state.cell;
        let volume = cell.volume().filter(|_| cell.periodic() == [true; 3]);
        let pressure = volume.map(|v| instant_pressure(kinetic.unwrap_or(0.0), &out.virial, v, reduced));
        let energy = out.energy();
        if self.json {
            let document = Document {
                units: Map(units(reduced)),
                energy,
                kinetic,
                temperature,
                terms: Map(names.into_iter().zip(out.energies).collect()),
                forces: out.forces,
                virial: out.virial,
                pressure,
                volume,
            };
            let text = serde_json::to_string(&document).map_err(Failure::failed)?;
            say(&(text + "\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let unit = |quantity: &str| {
            units(reduced).into_iter().find(|(name, _)| *name == quantity).map_or("", |(_, unit)| unit)
        };
        let mut rows = vec![vec!["term".to_owned(), unit("energy").to_owned()]];
        let number = |x: f64| format!("{x:.6}");
        for (name, energy) in names.iter().zip(&out.energies) {
            rows.push(vec![name.clone(), number(*energy)]);
        }
        rows.push(vec!["potential".into(), number(energy)]);
        rows.extend(kinetic.map(|k| vec!["kinetic".into(), number(k)]));
        let mut text = format!("{}: {} atoms\n", self.input.input.display(), plan.atoms.len());
        text += &table(&rows, &[1]);
        if let Some(t) = temperature {
            text += &format!("  temperature    {} {}\n", significant(t, 6), unit("temperature"));
        }
        let size = |f: &[f64; 3]| (f[0] * f[0] + f[1] * f[1] + f[2] * f[2]).sqrt();
        let largest = out.forces.iter().enumerate().max_by(|a, b| size(a.1).total_cmp(&size(b.1)));
        if let Some((atom, force)) = largest {
            text += &format!(
                "  largest force  {} {} on atom {}\n",
                significant(size(force), 6),
                unit("force"),
                atom + 1
            );
        }
        let virial: Vec<String> = ["xx", "yy", "zz", "xy", "xz", "yz"]
            .iter()
            .zip(out.virial)
            .map(|(n, w)| format!("{n} {}", significant(w, 6)))
            .collect();
        text += &format!("  virial         {} {}\n", virial.join("  "), unit("virial"));
        match (pressure, volume) {
            (Some(p), Some(v)) => {
                let rest = if moving { "" } else { ", of atoms at rest" };
                text += &format!(
                    "  pressure       {} {}{rest}\n  volume         {} {}\n",
                    significant(p, 6),
                    unit("pressure"),
                    significant(v, 6),
                    unit("volume")
                );
            }
            _ => text += "  an open system has no pressure and no volume\n",
        }
        say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
