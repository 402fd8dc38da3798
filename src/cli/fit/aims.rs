//! What is known beside configurations, next to what the energy gives.

use super::super::results::exact;
use super::super::{Failure, table};
use super::Report;
use crate::fit::target::Known;
use crate::plot::scale::significant;
use crate::plot::{Figure, Panel, Series};
use crate::units::UnitSystem;

impl Report<'_> {
    /// Writes, draws and says it.
    pub(super) fn aims(&mut self, title: &str, aims: &[(Known, f64)]) -> Result<(), Failure> {
        if aims.is_empty() {
            return Ok(());
        }
        let first = self.now.first.clone();
        let rows: Vec<(&Known, f64, f64)> =
            aims.iter().zip(&first).map(|((known, last), first)| (known, *first, *last)).collect();
        let header = ["result", "unit", "known", "standard deviation", "start", "fitted"].map(String::from);
        let lines: Vec<Vec<String>> = rows
            .iter()
            .map(|(k, first, last)| {
                let numbers = [k.value, k.error, *first, *last].map(|x| exact(x * k.factor));
                [vec![k.name.clone(), k.unit.to_owned()], numbers.to_vec()].concat()
            })
            .collect();
        self.results.csv("known.csv", &header, &lines)?;

        let mut lines =
            vec![["known beside configurations", "known", "±", "start", "fitted"].map(String::from).to_vec()];
        for (k, first, last) in rows.iter().filter(|(k, ..)| k.place.is_none()) {
            let name = if k.unit.is_empty() { k.name.clone() } else { format!("{} ({})", k.name, k.unit) };
            let number = |x: f64| significant(x * k.factor, 6);
            let error = significant(k.error * k.factor, 2);
            lines.push(vec![name, number(k.value), error, number(*first), number(*last)]);
        }
        if lines.len() > 1 {
            self.results.text += &table(&lines, &[1, 2, 3, 4]);
        }
        // (each input counts its own curves)
        let owners = self.problem.aims.iter().enumerate();
        let owners = owners.flat_map(|(a, aim)| aim.target.known().iter().map(move |_| a));
        let mut curves: Vec<((usize, usize), Vec<(f64, f64, f64, f64)>)> = Vec::new();
        for ((k, first, last), owner) in rows.iter().zip(owners) {
            let Some((curve, r)) = k.place else { continue };
            if curves.last().is_none_or(|(name, _)| *name != (owner, curve)) {
                curves.push(((owner, curve), Vec::new()));
            }
            if let Some((_, points)) = curves.last_mut() {
                points.push((r, k.value, *first, *last));
            }
        }
        let many = curves.len() > 1;
        for (number, (_, points)) in curves.iter().enumerate() {
            let root = |f: &dyn Fn(&(f64, f64, f64, f64)) -> f64| {
                (points.iter().map(|p| f(p).powi(2)).sum::<f64>() / points.len() as f64).sqrt()
            };
            self.results.text += &format!(
                "  g(r) of {} points: root mean square difference {} at the start, {} now\n",
                points.len(),
                significant(root(&|p| p.2 - p.1), 3),
                significant(root(&|p| p.3 - p.1), 3)
            );
            let column =
                |f: &dyn Fn(&(f64, f64, f64, f64)) -> f64| points.iter().map(f).collect::<Vec<f64>>();
            let r = column(&|p| p.0);
            let panel = Panel::new("g(r)", "").weight(2.0);
            let panel = panel
                .series(Series::new("start", r.clone(), column(&|p| p.2)))
                .series(Series::new("fitted", r.clone(), column(&|p| p.3)))
                .series(Series::guide("known", r.clone(), column(&|p| p.1)));
            let apart = Panel::new("fitted − known", "").weight(1.0);
            let apart = apart.series(Series::new("", r, column(&|p| p.3 - p.1)));
            let unit = if self.units == UnitSystem::Lj { "σ" } else { "nm" };
            let figure = Figure::new(format!("Fit: {title}"), "r", unit).panel(panel).panel(apart);
            let name = if many { format!("distribution-{}", number + 1) } else { "distribution".into() };
            self.results.picture(&name, &figure)?;
        }
        for report in self.problem.aims.iter().filter_map(|a| a.target.report()) {
            self.results.text += &format!("  {report}\n");
        }
        if self.problem.aims.iter().any(|a| !a.target.is_linear()) {
            self.results.text += "  (standard errors leave the trajectory out)\n";
        }
        Ok(())
    }
}
