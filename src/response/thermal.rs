//! Independent quantum oscillators: zero-point energy, heat capacity, entropy, free energy.
//!
//! For each frequency, with x = ħω/kT: zero-point energy ħω/2, energy ħω/(eˣ − 1) beyond it, heat capacity
//! k (x/2)²/sinh²(x/2), free energy ħω/2 + kT ln(1 − e⁻ˣ), entropy k [x/(eˣ − 1) − ln(1 − e⁻ˣ)] (D. A. McQuarrie,
//! Statistical Mechanics, ch. 5).

/// Sums over oscillators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thermal {
    /// In K (or whatever the constants make of it).
    pub temperature: f64,
    /// Σ ħω/2, in kJ/mol.
    pub zero_point: f64,
    /// The energy, zero point included, in kJ/mol.
    pub energy: f64,
    /// The heat capacity at constant volume, in kJ/mol/K.
    pub heat_capacity: f64,
    /// The entropy, in kJ/mol/K.
    pub entropy: f64,
    /// The free energy E − TS, zero point included, in kJ/mol.
    pub free_energy: f64,
}

/// The sums for angular frequencies (1/ps), each with a weight, by k (kJ/mol/K) and ħ (kJ/mol ps). Frequencies that
/// are not positive are left out: they are no oscillators.
pub fn thermal(
    frequencies: impl IntoIterator<Item = (f64, f64)>,
    temperature: f64,
    boltzmann: f64,
    planck: f64,
) -> Thermal {
    let mut sum = Thermal { temperature, ..Thermal::default() };
    let kt = boltzmann * temperature;
    for (omega, weight) in frequencies.into_iter().filter(|(omega, _)| *omega > 0.0) {
        let quantum = planck * omega;
        sum.zero_point += weight * 0.5 * quantum;
        if kt <= 0.0 {
            continue;
        }
        let x = quantum / kt;
        let occupied = 1.0 / x.exp_m1();
        let ln_empty = (-(-x).exp()).ln_1p();
        sum.energy += weight * quantum * occupied;
        sum.entropy += weight * boltzmann * (x * occupied - ln_empty);
        sum.free_energy += weight * kt * ln_empty;
        let half = 0.5 * x;
        // (beyond that it is zero in any number)
        if half < 350.0 {
            sum.heat_capacity += weight * boltzmann * (half / half.sinh()).powi(2);
        }
    }
    sum.energy += sum.zero_point;
    sum.free_energy += sum.zero_point;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One oscillator with ħω = kT ln 2: e⁻ˣ is ½, so that there is one quantum in it on average.
    #[test]
    fn one_quantum() {
        let ln2 = std::f64::consts::LN_2;
        let t = thermal([(3.0, 1.0)], 10.0, 0.3, ln2);
        let kt = 3.0;
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        close(t.zero_point, 1.5 * ln2);
        close(t.energy, 1.5 * 3.0 * ln2);
        close(t.free_energy, 1.5 * ln2 - kt * ln2);
        close(t.entropy, 0.3 * 2.0 * ln2);
        // x² eˣ/(eˣ − 1)² = 2 ln² 2
        close(t.heat_capacity, 0.3 * 2.0 * ln2 * ln2);
        close(t.free_energy, t.energy - 10.0 * t.entropy);
    }

    #[test]
    fn limits() {
        let cold = thermal([(1.0, 2.0), (-1.0, 1.0), (0.0, 1.0)], 1e-6, 1.0, 1.0);
        assert_eq!((cold.energy, cold.entropy, cold.heat_capacity, cold.free_energy), (1.0, 0.0, 0.0, 1.0));
        let still = thermal([(1.0, 2.0)], 0.0, 1.0, 1.0);
        assert_eq!((still.energy, still.free_energy, still.entropy), (1.0, 1.0, 0.0));
        // equipartition: k for each oscillator
        let hot = thermal([(1.0, 2.0)], 1e5, 1.0, 1.0);
        assert!((hot.heat_capacity - 2.0).abs() < 1e-9 && (hot.energy / 2e5 - 1.0).abs() < 1e-9);
    }
}
