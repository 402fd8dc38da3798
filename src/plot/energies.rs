//! The picture of a run's energies.

use super::scale::{fit_line, mean_and_deviation, moments, significant};
use super::style::{BLUE, Color, GREEN, INK, ORANGE, PURPLE, VERMILION};
use super::{Figure, Panel, PlotError, Series, Table};
use std::path::{Path, PathBuf};

/// The names of the units that a file's numbers are in; the file itself names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitLabels {
    /// Unit of time.
    pub time: String,
    /// Unit of every energy.
    pub energy: String,
    /// Unit of temperature.
    pub temperature: String,
    /// Unit of pressure.
    pub pressure: String,
    /// Unit of volume.
    pub volume: String,
}

impl Default for UnitLabels {
    /// ps, kJ/mol, K, bar and nm³.
    fn default() -> Self {
        UnitLabels {
            time: "ps".into(),
            energy: "kJ/mol".into(),
            temperature: "K".into(),
            pressure: "bar".into(),
            volume: "nm³".into(),
        }
    }
}

impl UnitLabels {
    /// Lennard-Jones units: τ, ε, ε/k, ε/σ³ and σ³.
    pub fn reduced() -> Self {
        UnitLabels {
            time: "τ".into(),
            energy: "ε".into(),
            temperature: "ε/k".into(),
            pressure: "ε/σ³".into(),
            volume: "σ³".into(),
        }
    }
}

/// What a column holds: the quantity and its unit. In a file of energies, columns of other names are
/// terms of the energy.
pub(super) fn quantity(column: &str, units: &UnitLabels, energies: bool) -> (String, String) {
    let (name, unit) = match column {
        "step" => ("step", ""),
        "time" => ("time", units.time.as_str()),
        "temperature" => ("temperature", units.temperature.as_str()),
        "pressure" => ("pressure", units.pressure.as_str()),
        "volume" => ("volume", units.volume.as_str()),
        _ if energies => ("energy", units.energy.as_str()),
        other => (other, ""),
    };
    (name.into(), unit.into())
}

/// Whether a column can serve as the x axis: it is there and its values are not all the same.
pub(super) fn advances(table: &Table, name: &str) -> bool {
    table.column(name).and_then(|c| super::sample::range(c.iter().copied())).is_some_and(|(a, b)| b > a)
}

/// The picture of a run, from the table of its `energies.csv`.
///
/// From above: potential, kinetic and total energy; the conserved quantity's deviation from its first
/// value, with the line of least squares and its slope, the drift; temperature and pressure with their
/// means and standard deviations; the volume if it changes. Columns that are missing or hold nothing
/// finite are left out.
///
/// # Errors
/// If there are fewer than two rows, no time or step, or none of these columns.
pub fn figure<'a>(table: &'a Table, title: &str, units: &UnitLabels) -> Result<Figure<'a>, PlotError> {
    if table.rows() < 2 {
        return Err(PlotError::TooShort { name: table.name().into(), rows: table.rows() });
    }
    let x_name = ["time", "step"].into_iter().find(|n| advances(table, n));
    let x_name = match x_name {
        Some(name) => name,
        None if table.column("time").is_some() => "time",
        None => "step",
    };
    let x = table.require(x_name)?;
    let (label, unit) = quantity(x_name, units, true);
    let mut figure = Figure::new(title, label, unit);
    let mut panels = 0;
    let mut add = |figure: Figure<'a>, panel| {
        panels += 1;
        figure.panel(panel)
    };

    let mut energy = None;
    for (name, color) in [("potential", BLUE), ("kinetic", VERMILION), ("total", INK)] {
        if let Some(y) = table.finite(name) {
            let panel = energy.unwrap_or_else(|| Panel::new("energy", &units.energy).weight(1.2));
            energy = Some(panel.series(Series::new(with_mean(name, y, ""), x, y).color(color)));
        }
    }
    if let Some(panel) = energy {
        figure = add(figure, panel);
    }

    if let Some(y) = table.finite("conserved")
        && let Some(first) = y.iter().copied().find(|v| v.is_finite())
    {
        let deviation: Vec<f64> = y.iter().map(|v| v - first).collect();
        let fit = fit_line(x, &deviation);
        let name = format!("conserved energy, E₀ = {} {}", significant(first, 7), units.energy);
        let mut panel =
            Panel::new("E − E₀", &units.energy).series(Series::new(name, x, deviation).color(GREEN));
        if let (Some((x0, y0, slope)), Some((low, high))) = (fit, super::sample::range(x.iter().copied())) {
            let per = if units.time.is_empty() || x_name == "step" { "step" } else { &units.time };
            let name = format!("drift {} {}/{per}", signed(slope), units.energy);
            let ends = vec![y0 + slope * (low - x0), y0 + slope * (high - x0)];
            panel = panel.series(Series::guide(name, vec![low, high], ends).width(1.8));
        }
        figure = add(figure, panel);
    }

    let changing = |name: &str| table.finite(name).filter(|_| advances(table, name));
    let rest: [(&str, Option<&[f64]>, &str, Color); 3] = [
        ("temperature", table.finite("temperature"), &units.temperature, VERMILION),
        ("pressure", table.finite("pressure"), &units.pressure, PURPLE),
        ("volume", changing("volume"), &units.volume, ORANGE),
    ];
    for (name, column, unit, color) in rest {
        if let Some(y) = column {
            let curve = Series::new(with_mean(name, y, unit), x, y).color(color);
            figure = add(figure, Panel::new(name, unit).weight(0.8).series(curve));
        }
    }
    if panels == 0 {
        return Err(PlotError::NothingFinite {
            name: table.name().into(),
            what: "the columns of energies".into(),
        });
    }
    Ok(figure)
}

/// Draws the picture of the `energies.csv` at `csv` into `energies.svg` and `energies.png` in `into`, and
/// tells where they are.
///
/// # Errors
/// If the file cannot be read or drawn, as [`Table::read`] and [`figure`] say, or a picture cannot be
/// written.
pub fn draw(csv: &Path, into: &Path, title: &str, units: &UnitLabels) -> Result<[PathBuf; 2], PlotError> {
    let table = Table::read(csv)?;
    let figure = figure(&table, title, units)?;
    let pictures = [into.join("energies.svg"), into.join("energies.png")];
    for picture in &pictures {
        figure.save(picture)?;
    }
    Ok(pictures)
}

fn with_mean(name: &str, values: &[f64], unit: &str) -> String {
    match moments(values) {
        Some((mean, deviation)) => {
            format!("{name} {} {unit}", mean_and_deviation(mean, deviation)).trim().into()
        }
        None => name.into(),
    }
}

fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", significant(value, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    const HEADER: &str =
        "step,time,potential,kinetic,total,conserved,temperature,pressure,volume,lj,coulomb\n";

    fn table(text: &str) -> Table {
        Table::from_reader(text.as_bytes(), "energies.csv").unwrap()
    }

    /// A file like that of a box of water at constant energy.
    fn water(rows: usize, every: usize) -> String {
        // Sums of twelve uniform numbers (from Knuth's generator) are as good as normal here.
        let mut state = 1u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut noise = move |size: f64| size * (0..12).map(|_| uniform() - 0.5).sum::<f64>();
        let mut text = HEADER.to_string();
        let mut slow = 0.0;
        for i in 0..rows {
            let time = (i * every) as f64 * 0.0005;
            slow = 0.9 * slow + noise(50.0 * 0.19f64.sqrt());
            let kinetic = 3_800.0 + slow;
            let total = -16_212.345 + noise(4e-4) + 1e-3 * i as f64 / rows as f64;
            let (potential, temperature) = (total - kinetic, 300.0 * kinetic / 3_800.0 + noise(4.0));
            let pressure = 200.0 + noise(600.0);
            writeln!(
                text,
                "{},{time},{potential},{kinetic},{total},{total},{temperature},{pressure},27.5,{},{}",
                i * every,
                0.2 * potential,
                0.8 * potential
            )
            .unwrap();
        }
        text
    }

    #[test]
    fn a_run_shows_what_it_should() {
        let t = table(&water(2_000, 10));
        let svg = figure(&t, "Water, 216 molecules, NVE", &UnitLabels::default()).unwrap().svg().unwrap();
        for text in [
            "Water, 216 molecules, NVE",
            "time (ps)",
            "energy (kJ/mol)",
            "potential −200",
            "kinetic 3",
            "total −16212.3",
            "conserved energy, E₀ = −16212.3",
            "E − E₀ (10⁻³ kJ/mol)",
            "drift +",
            "×10⁻⁵ kJ/mol/ps",
            "temperature (K)",
            "temperature 299.",
            "± ",
            "pressure (bar)",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("volume"), "a constant volume is no news");
        assert!(svg.len() < 400_000, "{}", svg.len());
    }

    #[test]
    fn the_drift_is_the_slope() {
        let mut text = HEADER.to_string();
        for i in 0..11 {
            writeln!(text, "{i},{},1,1,2,{},,,,,", f64::from(i) * 0.5, 2.0 - 0.25 * f64::from(i)).unwrap();
        }
        let svg = figure(&table(&text), "", &UnitLabels::reduced()).unwrap().svg().unwrap();
        assert!(svg.contains("drift −0.5 ε/τ"));
        assert!(!svg.contains("temperature") && !svg.contains("pressure"));
    }

    #[test]
    fn short_and_empty_files_say_so() {
        let units = UnitLabels::default();
        let message = |text: &str| figure(&table(text), "", &units).unwrap_err().to_string();
        assert_eq!(message(HEADER), "energies.csv has no rows; a curve needs at least two");
        assert_eq!(message(&water(1, 1)), "energies.csv has one row; a curve needs at least two");
        assert!(message("step,other\n0,1\n1,2\n").contains("nothing to draw"));
        assert!(message("a,b\n0,1\n1,2\n").contains("no column `step`"));
    }

    #[test]
    fn gaps_and_constants_draw() {
        let mut text = HEADER.to_string();
        for i in 0..50 {
            let p = if i % 7 == 3 { "NaN".into() } else { format!("{}", f64::from(i).sin()) };
            writeln!(text, "{i},0,{p},inf,5,5,300,-inf,1,,").unwrap();
        }
        // Time stands still (a minimisation): steps make the axis.
        let svg = figure(&table(&text), "", &UnitLabels::default()).unwrap().svg().unwrap();
        assert!(svg.contains(">\nstep\n") && svg.contains("temperature 300 K"), "{svg}");
        assert!(!svg.contains("kinetic") && !svg.contains("pressure"));
    }

    /// Pictures to look at, in `target/plots`.
    #[test]
    fn pictures_to_look_at() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/plots");
        let units = UnitLabels::default();
        let title = "A very long title of a run that goes on and on ".repeat(4);
        let mut cases = vec![
            ("water", water(2_000, 10), "Water, 216 molecules, NVE", units.clone()),
            ("tiny", water(3, 10), "Three rows", units.clone()),
            ("short", water(40, 10), "Forty rows", UnitLabels::reduced()),
            ("long", water(20_000, 100), &title[..], units.clone()),
        ];
        let mut blown = water(300, 10);
        writeln!(blown, "3000,1.5,1e9,1e9,2e9,2e9,1e8,NaN,30,1,2").unwrap();
        cases.push(("blown", blown, "A run that blew up", units.clone()));
        for (name, text, title, units) in cases {
            let into = base.join(name);
            std::fs::create_dir_all(&into).unwrap();
            let csv = into.join("energies.csv");
            std::fs::write(&csv, text).unwrap();
            for picture in draw(&csv, &into, title, &units).unwrap() {
                assert!(std::fs::metadata(picture).unwrap().len() < 500_000);
            }
        }
        let water = Table::read(&base.join("water/energies.csv")).unwrap();
        let columns = ["lj", "coulomb", "temperature", "kinetic", "potential", "volume"];
        Figure::columns(&water, &columns, "Columns", &units)
            .unwrap()
            .save(&base.join("columns.png"))
            .unwrap();
        let x: Vec<f64> = (0..400).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 50.0 * (-x / 40.0).exp() + 2e-4 * (2.0 + x.sin())).collect();
        Figure::new("A fit", "step", "")
            .panel(Panel::new("loss", "").weight(2.0).logarithmic().series(Series::new("training", x, y)))
            .save(&base.join("loss.png"))
            .unwrap();
    }
}
