//! `md elastic`

use super::super::{Failure, Outcome, table};
use super::{Asked, Ready, exact, failed};
use crate::autodiff::Richardson;
use crate::catalog::Catalog;
use crate::plot::scale::{fixed, significant};
use crate::plot::{Figure, Panel, Series};
use crate::response::elastic::{Elastic as Found, unit_strain};
use crate::response::rest::Rest;
use clap::Args;

#[derive(Args)]
pub(in crate::cli) struct Elastic {
    #[command(flatten)]
    asked: Asked,
    /// Compare with differences of the stress in strained cells, atoms at rest in each
    #[arg(long)]
    check: bool,
}

impl Elastic {
    pub(in crate::cli) fn run(self, catalog: &Catalog) -> Outcome {
        let check = self.check;
        self.asked.at_rest(catalog, "elastic", move |ready, response| {
            ready.point().volume().map_err(failed)?;
            ready.settle(&response.elastic.rest)?;
            let found = ready.elastic()?;
            ready.constants(&found)?;
            ready.verdict(&found);
            if check {
                ready.compare_constants(&response.elastic.rest, &found)?;
            }
            ready.directions(&found)
        })
    }
}

impl Ready<'_> {
    /// The matrices, in print and as a table.
    fn constants(&mut self, found: &Found) -> Result<(), Failure> {
        let (unit, by) = self.pressure_unit();
        let digits = if self.reduced() { 4 } else { 3 };
        // (a rounding error of a symmetric crystal is nothing to look at)
        let small = 1e-9 * found.constants.amax();
        let clean = |x: f64| if x.abs() < small { 0.0 } else { x };
        let pressure = -(found.stress[0] + found.stress[1] + found.stress[2]) / 3.0;
        self.results.text += &format!("  pressure  {} {unit}\n", significant(clean(pressure) * by, 5));
        let mut stress = vec![vec!["stress".to_owned()], vec![unit.to_owned()]];
        stress[0].extend(["xx", "yy", "zz", "yz", "xz", "xy"].map(String::from));
        stress[1].extend(found.stress.map(|s| fixed(clean(s) * by, digits + 2)));
        self.results.text += &table(&stress, &[1, 2, 3, 4, 5, 6]);
        self.results.text += &format!("  elastic constants with atoms free to follow ({unit})\n");
        let rows = |matrix: &nalgebra::Matrix6<f64>| -> Vec<Vec<String>> {
            let mut rows = vec![vec![String::new()]];
            rows[0].extend((1..=6).map(|k| k.to_string()));
            for a in 0..6 {
                let mut row = vec![(a + 1).to_string()];
                row.extend((0..6).map(|b| match b >= a {
                    true => fixed(clean(matrix[(a, b)]) * by, digits),
                    false => String::new(),
                }));
                rows.push(row);
            }
            rows
        };
        self.results.text += &table(&rows(&found.constants), &[1, 2, 3, 4, 5, 6]);
        let shift = (found.constants - found.unrelaxed).amax();
        if shift > small {
            self.results.text += &format!("  and with atoms strained like a continuum ({unit})\n");
            self.results.text += &table(&rows(&found.unrelaxed), &[1, 2, 3, 4, 5, 6]);
        }
        if found.asymmetry > 1e-4 * found.constants.amax() {
            self.results.text += &format!(
                "  the stress is no pressure alone: constants that should be equal differ by up to {} {unit}\n",
                significant(found.asymmetry * by, 3)
            );
        }
        let header =
            ["i", "j", &format!("relaxed ({unit})"), &format!("unrelaxed ({unit})")].map(String::from);
        let rows: Vec<Vec<String>> = (0..6)
            .flat_map(|a| (a..6).map(move |b| (a, b)))
            .map(|(a, b)| {
                let of = |m: &nalgebra::Matrix6<f64>| exact(m[(a, b)] * by);
                vec![(a + 1).to_string(), (b + 1).to_string(), of(&found.constants), of(&found.unrelaxed)]
            })
            .collect();
        self.results.csv("elastic.csv", &header, &rows)
    }

    /// Moduli, and whether the crystal is stable.
    fn verdict(&mut self, found: &Found) {
        let (unit, by) = self.pressure_unit();
        if let Some([bulk, shear]) = found.moduli() {
            let (k, g) = (bulk.hill(), shear.hill());
            let young = 9.0 * k * g / (3.0 * k + g);
            let poisson = (3.0 * k - 2.0 * g) / (2.0 * (3.0 * k + g));
            let number = |x: f64| significant(x * by, 5);
            let row =
                |name: &str, m: [f64; 3]| vec![name.to_owned(), number(m[0]), number(m[1]), number(m[2])];
            let rows = [
                vec![format!("modulus ({unit})"), "Voigt".into(), "Reuss".into(), "Hill".into()],
                row("bulk", [bulk.voigt, bulk.reuss, k]),
                row("shear", [shear.voigt, shear.reuss, g]),
            ];
            self.results.text += &table(&rows, &[1, 2, 3]);
            let anisotropy = 5.0 * shear.voigt / shear.reuss + bulk.voigt / bulk.reuss - 6.0;
            self.results.text += &format!(
                "  Young's modulus {} {unit}, Poisson's ratio {}; universal anisotropy {}\n",
                number(young),
                significant(poisson, 4),
                significant(anisotropy.max(0.0), 4)
            );
        }
        let stiffnesses = found.stiffnesses();
        self.results.text += &match stiffnesses[0] > 0.0 {
            true => format!(
                "  stable: the softest strain has a stiffness of {} {unit}\n",
                significant(stiffnesses[0] * by, 4)
            ),
            false => format!(
                "  NOT stable: there is a strain with a stiffness of {} {unit}\n",
                significant(stiffnesses[0] * by, 4)
            ),
        };
    }

    /// Compares with differences of the stress.
    fn compare_constants(&mut self, rest: &Rest, found: &Found) -> Result<(), Failure> {
        let start = self.state.clone();
        let (mut worst, mut left_out) = (0.0f64, 0);
        for k in 0..6 {
            let mut failure = None;
            let stress = |h: f64| {
                let mut strained = || -> Result<[f64; 6], Failure> {
                    self.state = start.clone();
                    // (symmetric: its rows are its columns)
                    let strain = unit_strain(k).map(|e| e.map(|x| x * h));
                    self.state.cell = start.cell.strained(strain).map_err(Failure::failed)?;
                    self.rest_again(&Rest { pressure: None, ..*rest })?;
                    self.point().stress().map_err(failed)
                };
                strained().unwrap_or_else(|error| {
                    failure = Some(error);
                    [f64::NAN; 6]
                })
            };
            let differences = Richardson { step: 1e-3, levels: 3, tables: 1, enough: 0.0, scale: 0.0 };
            let slopes = differences.derivatives(stress, 0.0);
            if let Some(error) = failure {
                return Err(error);
            }
            let scale = found.constants.amax();
            for (a, slope) in slopes.iter().enumerate() {
                match slope.error <= 1e-4 * scale {
                    true => worst = worst.max((slope.value - found.constants[(a, k)]).abs() / scale),
                    false => left_out += 1,
                }
            }
        }
        self.state = start;
        self.results.text +=
            &format!("  differences of the stress agree to {worst:.1e} of the largest constant");
        self.results.text += &match left_out {
            0 => "\n".to_owned(),
            n => format!(" ({n} of 36 are too uncertain)\n"),
        };
        match worst <= 1e-4 {
            true => Ok(()),
            false => Err(Failure::failed(format!("{}  elastic constants are WRONG", self.results.text))),
        }
    }

    /// Young's modulus by direction.
    fn directions(&mut self, found: &Found) -> Result<(), Failure> {
        let (unit, by) = self.pressure_unit();
        if found.stiffnesses()[0] <= 0.0 {
            return Ok(());
        }
        let angles: Vec<f64> = (0..=180).map(f64::from).collect();
        let along = |a: usize, b: usize| -> Vec<f64> {
            let young = |degrees: &f64| {
                let (sin, cos) = degrees.to_radians().sin_cos();
                let mut n = [0.0; 3];
                (n[a], n[b]) = (cos, sin);
                found.young(n).unwrap_or(f64::NAN) * by
            };
            angles.iter().map(young).collect()
        };
        let planes =
            [("from x to y", along(0, 1)), ("from y to z", along(1, 2)), ("from z to x", along(2, 0))];
        let mut header = vec!["angle (deg)".to_owned()];
        header.extend(planes.iter().map(|(name, _)| format!("{name} ({unit})")));
        let rows: Vec<Vec<String>> = (0..angles.len())
            .map(|k| {
                let mut row = vec![exact(angles[k])];
                row.extend(planes.iter().map(|(_, y)| exact(y[k])));
                row
            })
            .collect();
        self.results.csv("young.csv", &header, &rows)?;
        let mut panel = Panel::new("Young's modulus", unit);
        for (k, (name, y)) in planes.iter().enumerate() {
            // (in a cubic crystal they lie upon each other)
            let series = Series::new(*name, &angles[..], &y[..]).width(3.6 - 1.2 * k as f64);
            panel = panel.series(if k > 0 { series.dashed() } else { series });
        }
        let title = format!("Stiffness by direction: {}", self.title);
        self.results.picture("young", &Figure::new(title, "direction of the pull", "°").panel(panel))
    }
}
