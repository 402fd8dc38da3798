//! What came of a case.

use std::fmt::Write;

/// What came of running a case.
pub enum Outcome {
    /// Its energies exist; how it compares.
    Ran(Report),
    /// What the engine lacks for it.
    Lacks(Vec<String>),
}

/// What was compared, what was wrong, and the largest errors.
#[derive(Default)]
pub struct Report {
    /// Complaints.
    pub wrong: Vec<String>,
    /// How many numbers (or lists of forces) were compared.
    pub compared: usize,
    /// The largest relative error of an energy (these three where the source is exact).
    pub energy: f64,
    /// The largest error of a force over the largest force.
    pub force: f64,
    /// The largest error of a virial over its largest component.
    pub virial: f64,
    /// The largest of these errors where the source is good to few digits.
    pub coarse: f64,
}

/// Beyond this a limit is that of a source of few digits.
const COARSE: f64 = 1e-7;

/// What may be off.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Of an energy, relative to it.
    pub energy: f64,
    /// Of a force, relative to the largest.
    pub force: f64,
    /// Of a virial, relative to its largest component.
    pub virial: f64,
}

impl Tolerance {
    /// Of plain pair and bonded terms.
    pub const PLAIN: Tolerance = Tolerance { energy: 1e-10, force: 1e-9, virial: 1e-9 };
}

impl Report {
    /// Any number, within an absolute limit.
    pub fn number(&mut self, what: &str, found: f64, expected: f64, limit: f64) {
        self.compared += 1;
        // (also for what is not a number)
        let close = (found - expected).abs() <= limit;
        if !close {
            self.wrong.push(format!("{what} is {found}, not {expected} (allowed: {limit:.1e})"));
        }
    }
    /// An energy.
    pub fn energy(&mut self, what: &str, found: f64, expected: f64, relative: f64) {
        if expected != 0.0 {
            let off = ((found - expected) / expected).abs();
            let worst = if relative > COARSE { &mut self.coarse } else { &mut self.energy };
            *worst = worst.max(off);
        }
        self.number(&format!("{what}: energy"), found, expected, (relative * expected.abs()).max(1e-12));
    }
    /// Forces.
    pub fn forces(&mut self, what: &str, found: &[[f64; 3]], expected: &[[f64; 3]], relative: f64) {
        self.compared += 1;
        if found.len() != expected.len() {
            return self.wrong.push(format!("{what}: {} forces, not {}", found.len(), expected.len()));
        }
        let largest = expected.iter().flatten().fold(0.0_f64, |m, f| m.max(f.abs()));
        let mut worst = (0.0, 0);
        for (i, (f, e)) in found.iter().zip(expected).enumerate() {
            for k in 0..3 {
                let off = (f[k] - e[k]).abs();
                worst = if off > worst.0 || off.is_nan() { (off, i) } else { worst };
            }
        }
        let (off, i) = worst;
        if largest > 0.0 {
            let worst = if relative > COARSE { &mut self.coarse } else { &mut self.force };
            *worst = worst.max(off / largest);
        }
        let close = off <= (relative * largest).max(1e-12);
        if !close {
            let (f, e) = (found[i], expected[i]);
            self.wrong
                .push(format!("{what}: the force on atom {i} is {f:?}, not {e:?} (largest: {largest:.1e})"));
        }
    }
    /// A virial.
    pub fn virial(&mut self, what: &str, found: &[f64; 6], expected: &[f64; 6], relative: f64) {
        let largest = expected.iter().fold(0.0_f64, |m, w| m.max(w.abs()));
        for (k, name) in ["xx", "yy", "zz", "xy", "xz", "yz"].into_iter().enumerate() {
            let off = (found[k] - expected[k]).abs();
            let worst = if relative > COARSE { &mut self.coarse } else { &mut self.virial };
            *worst = worst.max(off / largest);
            self.number(&format!("{what}: virial {name}"), found[k], expected[k], relative * largest);
        }
    }
    /// The largest errors, in words.
    pub fn worst(&self) -> String {
        let mut out = format!("{} compared", self.compared);
        for (what, x) in [
            ("energy", self.energy),
            ("force", self.force),
            ("virial", self.virial),
            ("by sources of few digits", self.coarse),
        ] {
            if x > 0.0 {
                let _ = write!(out, ", {what} {x:.1e}");
            }
        }
        out
    }
    /// Adds the results of another.
    pub fn add(&mut self, other: Report) {
        self.wrong.extend(other.wrong);
        self.compared += other.compared;
        self.energy = self.energy.max(other.energy);
        self.force = self.force.max(other.force);
        self.virial = self.virial.max(other.virial);
        self.coarse = self.coarse.max(other.coarse);
    }
}
