//! What was compared, and how closely it agreed.

use std::collections::BTreeMap;

/// The errors of one test, by quantity.
#[derive(Default)]
pub struct Report {
    worst: BTreeMap<&'static str, (f64, f64, String)>,
    failures: Vec<String>,
}

impl Report {
    /// Notes an error and what it may be at most.
    pub fn note(&mut self, quantity: &'static str, place: &str, error: f64, limit: f64) {
        if error.is_nan() || error > limit {
            self.failures.push(format!("{quantity}, {place}: {error:.2e} > {limit:.0e}"));
        }
        let worst = self.worst.entry(quantity).or_insert((0.0, limit, "everywhere".into()));
        if error / limit > worst.0 / worst.1 {
            *worst = (error, limit, place.into());
        }
    }
    /// Notes that two lists of numbers agree relative to the largest of the first, or to `floor`.
    pub fn same(
        &mut self,
        quantity: &'static str,
        place: &str,
        a: &[f64],
        b: &[f64],
        floor: f64,
        limit: f64,
    ) {
        let scale = largest(a).max(floor);
        let error = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, maximum);
        let error = if error == 0.0 { 0.0 } else { error / scale };
        self.note(quantity, place, if a.len() == b.len() { error } else { f64::NAN }, limit);
    }
    /// Notes whether something holds.
    pub fn hold(&mut self, quantity: &'static str, place: &str, holds: bool) {
        self.note(quantity, place, if holds { 0.0 } else { f64::INFINITY }, 0.5);
    }
    /// Prints the largest errors and fails if any was too large.
    pub fn finish(self, title: &str) {
        let mut text = format!("{title}\n");
        for (quantity, (error, limit, place)) in &self.worst {
            text += &format!("  {quantity:38} {error:8.1e} (≤ {limit:.0e})  {place}\n");
        }
        println!("{text}");
        let shown: Vec<_> = self.failures.iter().take(60).cloned().collect();
        assert!(shown.is_empty(), "{title}: {} failures\n{}", self.failures.len(), shown.join("\n"));
        assert!(!self.worst.is_empty(), "{title}: nothing was compared");
    }
}

/// The larger of two numbers, where not a number is larger than any.
pub fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The largest magnitude.
pub fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |m, x| maximum(m, x.abs()))
}
