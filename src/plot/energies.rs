//! The picture of a run's energies.

use super::scale::{fit_line, mean_and_deviation, moments, significant};
use super::style::{BLUE, Color, GREEN, INK, ORANGE, PURPLE, VERMILION};
use super::{Figure, Panel, PlotError, Series, Table};
use std::ops::Range;
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

/// A stage of a run, as far as its picture must know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How many steps it has.
    pub steps: u64,
    /// How far one of them advances time; none for a minimisation, which does not.
    pub time_step: Option<f64>,
}

/// The rows of a stage that advances time.
struct Part<'s> {
    name: &'s str,
    begins: f64,
    rows: Range<usize>,
}

/// Which rows belong to which stage, of those that advance time. (The table itself does not say. A stage's first
/// row is of the stage before it, as the run counts it; where a minimisation ends shows in no other way than that
/// time goes on.)
fn parts<'s>(time: &[f64], stages: &'s [Stage]) -> Vec<Part<'s>> {
    let mut begins = time.iter().copied().find(|t| t.is_finite()).unwrap_or_default();
    let mut parts: Vec<Part> = Vec::new();
    let mut from = 0;
    let dynamics = |s: &Stage| s.time_step.filter(|_| s.steps > 0);
    for (k, stage) in stages.iter().enumerate() {
        let Some(step) = dynamics(stage) else { continue };
        let end = begins + step * stage.steps as f64;
        if k > 0 {
            from += time[from..].iter().take_while(|t| **t <= begins + 0.5 * step).count();
        }
        // (the last stage may have been made longer)
        let last = k + 1 == stages.len();
        let inside = |t: &f64| *t <= end + 0.5 * step || last || t.is_nan();
        let mut to = from + time[from..].iter().take_while(|t| inside(t)).count();
        // rows of a minimisation that follows
        while to > from + 1 && time[to - 1] == time[to - 2] {
            to -= 1;
        }
        if to > from {
            parts.push(Part { name: &stage.name, begins, rows: from..to });
        }
        (from, begins) = (to, end);
    }
    parts
}

/// The picture of a run, from the table of its `energies.csv` and its stages.
///
/// From above: potential, kinetic and total energy; the conserved quantity's deviation from its value at the
/// beginning of the stage, with the line of least squares and its slope, the drift; temperature and pressure; the
/// volume if it changes. Columns that are missing or hold nothing finite are left out, and so are the rows of
/// minimisations where time advances elsewhere. Figures are those of the last stage that advances time, means with
/// standard deviations. Where the stages are not known (`stages` is empty) figures are of all rows, and no line
/// is fitted.
///
/// # Errors
/// If there are fewer than two rows, no time or step, or none of these columns.
pub fn figure<'a>(
    table: &'a Table,
    title: &str,
    units: &UnitLabels,
    stages: &[Stage],
) -> Result<Figure<'a>, PlotError> {
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

    let known = match advances(table, "time") && x_name == "time" {
        true => parts(x, stages),
        false => Vec::new(),
    };
    let everything = || vec![Part { name: "", begins: f64::NAN, rows: 0..table.rows() }];
    let fitted = !known.is_empty();
    let minimized = !fitted && !stages.is_empty() && stages.iter().all(|s| s.time_step.is_none());
    let parts = if fitted { known } else { everything() };
    if stages.len() > 1 && fitted {
        for part in &parts {
            figure = figure.mark(part.begins, part.name);
        }
    }
    let of = |part: &Part| match (fitted, stages.len()) {
        (true, 2..) => format!("the rows in stage `{}`", part.name),
        _ => "all rows".to_owned(),
    };
    // means of a minimisation mean nothing
    if let Some(last) = parts.last().filter(|_| !minimized) {
        figure = figure.note(format!("figures: means ± standard deviations of {}", of(last)));
    }
    let curves = |mut panel: Panel<'a>, name: &str, y: &'a [f64], unit: &str, color| {
        for (k, part) in parts.iter().enumerate() {
            let (x, y) = (&x[part.rows.clone()], &y[part.rows.clone()]);
            let name = match (k + 1 == parts.len(), minimized) {
                (true, false) => with_mean(name, y, unit),
                (true, true) => name.to_owned(),
                (false, _) => String::new(),
            };
            panel = panel.series(Series::new(name, x, y).color(color));
        }
        panel
    };

    let mut panels = Vec::new();
    let mut energy = None;
    for (name, color) in [("potential", BLUE), ("kinetic", VERMILION), ("total", INK)] {
        if let Some(y) = table.finite(name) {
            let panel = energy.unwrap_or_else(|| Panel::new("energy", &units.energy).weight(1.2));
            energy = Some(curves(panel, name, y, "", color));
        }
    }
    panels.extend(energy);
    if let Some(y) = table.finite("conserved").filter(|_| !minimized) {
        let kinetic = table.column("kinetic");
        panels.extend(conserved(x, y, kinetic, &parts, units, fitted));
    }
    let changing = |name: &str| table.finite(name).filter(|_| advances(table, name));
    let rest: [(&str, Option<&[f64]>, &str, Color); 3] = [
        ("temperature", table.finite("temperature"), &units.temperature, VERMILION),
        ("pressure", table.finite("pressure"), &units.pressure, PURPLE),
        ("volume", changing("volume"), &units.volume, ORANGE),
    ];
    for (name, column, unit, color) in rest {
        if let Some(y) = column {
            panels.push(curves(Panel::new(name, unit).weight(0.8), name, y, unit, color));
        }
    }
    if panels.is_empty() {
        return Err(PlotError::NoEnergies { name: table.name().into(), known: table.names().to_vec() });
    }
    Ok(panels.into_iter().fold(figure, Figure::panel))
}

/// How much more the conserved energy of an earlier stage may change than that of the last one, if it is to be
/// shown beside it.
const WIDER: f64 = 3.0;

/// The conserved energy of each stage relative to its value at the stage's beginning, and the drift of the last one.
fn conserved<'a>(
    x: &'a [f64],
    y: &[f64],
    kinetic: Option<&[f64]>,
    parts: &[Part],
    units: &UnitLabels,
    fitted: bool,
) -> Option<Panel<'a>> {
    let deviation = |part: &Part| {
        let y = &y[part.rows.clone()];
        let first = y.iter().copied().find(|v| v.is_finite())?;
        Some((first, y.iter().map(|v| v - first).collect::<Vec<f64>>()))
    };
    let spread = |y: &[f64]| super::sample::range(y.iter().copied()).map_or(0.0, |(low, high)| high - low);
    let (last, before) = parts.split_last()?;
    let (first, of_last) = deviation(last)?;
    let mut panel = Panel::new("E − E₀", &units.energy);
    for part in before {
        // (a thermostat or a rough start must not flatten what is to be seen of the last stage)
        if let Some((_, y)) = deviation(part).filter(|(_, y)| spread(y) <= WIDER * spread(&of_last)) {
            panel = panel.series(Series::new("", &x[part.rows.clone()], y).color(GREEN));
        }
    }
    let since = if before.is_empty() { "" } else { " at the stage's beginning" };
    let name = format!("conserved energy, E₀{since} = {} {}", significant(first, 7), units.energy);
    let x = &x[last.rows.clone()];
    let fit = fit_line(x, &of_last).filter(|_| fitted);
    panel = panel.series(Series::new(name, x, of_last).color(GREEN));
    if let (Some((x0, y0, slope)), Some((low, high))) = (fit, super::sample::range(x.iter().copied())) {
        // 2K is kT times the degrees of freedom; the time unit is a ps or τ, of which a ns or 1000 τ are 1000
        let kinetic = kinetic.and_then(|k| moments(&k[last.rows.clone()])).map(|(mean, _)| 2.0 * mean);
        let rate = kinetic.filter(|k| *k > 0.0).map(|k| slope * 1000.0 / k);
        let long = if units.time == "ps" { "ns".to_owned() } else { format!("1000 {}", units.time) };
        let energy = format!("{} {}/{}", signed(slope), units.energy, units.time);
        let name = match rate {
            Some(rate) => format!("drift {} kT/{long} per degree of freedom ({energy})", signed(rate)),
            None => format!("drift {energy}"),
        };
        let ends = vec![y0 + slope * (low - x0), y0 + slope * (high - x0)];
        panel = panel.series(Series::guide(name, vec![low, high], ends).width(1.8));
    }
    Some(panel)
}

/// Draws the picture of the `energies.csv` at `csv` into `energies.svg` and `energies.png` in `into`, and
/// tells where they are.
///
/// # Errors
/// If the file cannot be read or drawn, as [`Table::read`] and [`figure`] say, or a picture cannot be
/// written.
pub fn draw(
    csv: &Path,
    into: &Path,
    title: &str,
    units: &UnitLabels,
    stages: &[Stage],
) -> Result<[PathBuf; 2], PlotError> {
    let table = Table::read(csv)?;
    let figure = figure(&table, title, units, stages)?;
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

    fn stage(name: &str, steps: u64, time_step: Option<f64>) -> Stage {
        Stage { name: name.into(), steps, time_step }
    }

    /// The one stage of the files below.
    fn only() -> [Stage; 1] {
        [stage("only", 1_000_000, Some(0.0005))]
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
        let svg =
            figure(&t, "Water, 216 molecules, NVE", &UnitLabels::default(), &only()).unwrap().svg().unwrap();
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
            "kT/ns per degree of freedom (+",
            "figures: means ± standard deviations of all rows",
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
        let svg = figure(&table(&text), "", &UnitLabels::reduced(), &only()).unwrap().svg().unwrap();
        // 2K = 2
        assert!(svg.contains("drift −250 kT/1000 τ per degree of freedom (−0.5 ε/τ)"), "{svg}");
        let svg = figure(&table(&text), "", &UnitLabels::reduced(), &[]).unwrap().svg().unwrap();
        assert!(!svg.contains("drift"), "nothing is fitted to rows of unknown stages");
        assert!(!svg.contains("temperature") && !svg.contains("pressure"));
    }

    /// A minimisation, a noisy equilibration and a quiet run.
    fn staged() -> (String, [Stage; 3]) {
        let mut text = HEADER.to_string();
        let mut row = |step: u64, time: f64, conserved: f64, temperature: f64| {
            writeln!(text, "{step},{time},-9,1,-8,{conserved},{temperature},,,,").unwrap();
        };
        for step in [0, 10, 20, 27] {
            row(step, 0.0, 2400.0 - 80.0 * step as f64, 0.0);
        }
        for k in 1..=20 {
            row(27 + 10 * k, 0.01 * k as f64, 100.0 + 5.0 * k as f64, 200.0);
        }
        for k in 1..=30 {
            row(227 + 10 * k, 0.2 + 0.02 * k as f64, 7.0 + 1e-3 * k as f64, 300.0);
        }
        let stages = [
            stage("relax", 500, None),
            stage("equilibrate", 200, Some(0.001)),
            stage("produce", 300, Some(0.002)),
        ];
        (text, stages)
    }

    #[test]
    fn figures_are_of_the_last_stage() {
        let (text, stages) = staged();
        let t = table(&text);
        let time = t.column("time").unwrap();
        let rows: Vec<_> = parts(time, &stages).into_iter().map(|p| (p.name, p.rows)).collect();
        assert_eq!(rows, [("equilibrate", 4..24), ("produce", 24..54)]);
        let svg = figure(&t, "", &UnitLabels::default(), &stages).unwrap().svg().unwrap();
        for text in [
            "standard deviations of the rows in stage `produce`",
            "temperature 300 K",
            "E₀ at the stage&apos;s beginning = 7.001 kJ/mol",
            "drift +25 kT/ns per degree of freedom (+0.05 kJ/mol/ps)",
            ">\nequilibrate\n",
            ">\nproduce\n",
        ] {
            assert!(svg.contains(text), "{text}\n{svg}");
        }
        // the scale is that of the last stage
        assert!(svg.contains("E − E₀ (10⁻³ kJ/mol)") && !svg.contains("relax"), "{svg}");
        // a run that was ended in its second stage
        let cut: String = text.lines().take(20).map(|line| format!("{line}\n")).collect();
        let svg = figure(&table(&cut), "", &UnitLabels::default(), &stages).unwrap().svg().unwrap();
        assert!(svg.contains("in stage `equilibrate`") && svg.contains("temperature 200 K"), "{svg}");
        // a minimisation alone has no averages
        let cut: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
        let svg = figure(&table(&cut), "", &UnitLabels::default(), &stages[..1]).unwrap().svg().unwrap();
        assert!(svg.contains(">\npotential\n") && !svg.contains("figures"), "{svg}");
    }

    #[test]
    fn short_and_empty_files_say_so() {
        let units = UnitLabels::default();
        let message = |text: &str| figure(&table(text), "", &units, &[]).unwrap_err().to_string();
        assert_eq!(message(HEADER), "energies.csv has no rows; a curve needs at least two");
        assert_eq!(message(&water(1, 1)), "energies.csv has one row; a curve needs at least two");
        let message_of_others = message("step,other\n0,1\n1,2\n");
        assert!(message_of_others.contains("--columns") && message_of_others.contains("other"));
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
        let svg = figure(&table(&text), "", &UnitLabels::default(), &[]).unwrap().svg().unwrap();
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
            for picture in draw(&csv, &into, title, &units, &only()).unwrap() {
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
