//! Stacked panels over one x axis, as SVG or PNG.

use super::canvas::{self, Align, Canvas, Point, fit, text_width};
use super::energies::{UnitLabels, quantity};
use super::sample::{self, Lines, drawable};
use super::scale::Ticks;
use super::style::{self, Color, LABEL_SIZE, PALETTE, TICK_SIZE};
use super::{PlotError, Table};
use std::borrow::Cow;
use std::path::Path;

/// Columns of the picture that a long curve's points are gathered in.
const COLUMNS: usize = 600;
/// How many times more points than columns a curve must have to be smoothed.
const CROWDED: usize = 4;
/// What is said in the legend where a curve is smoothed.
const SMOOTHED: &str = "pale: every row; dark: running mean";

/// A curve: points and how they look.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    name: String,
    x: Cow<'a, [f64]>,
    y: Cow<'a, [f64]>,
    color: Option<Color>,
    width: f64,
    dashed: bool,
    guide: bool,
    scattered: bool,
}

/// The radius of the dots of points without a line.
const DOT: f64 = 1.5;

impl<'a> Series<'a> {
    /// A curve through `(x, y)`; a name that is empty stays out of the legend. Points that are not finite
    /// leave gaps.
    pub fn new(name: impl Into<String>, x: impl Into<Cow<'a, [f64]>>, y: impl Into<Cow<'a, [f64]>>) -> Self {
        Series {
            name: name.into(),
            x: x.into(),
            y: y.into(),
            color: None,
            width: style::LINE_WIDTH,
            dashed: false,
            guide: false,
            scattered: false,
        }
    }

    /// Points without a line.
    pub fn points(
        name: impl Into<String>,
        x: impl Into<Cow<'a, [f64]>>,
        y: impl Into<Cow<'a, [f64]>>,
    ) -> Self {
        Series { scattered: true, ..Series::new(name, x, y) }
    }

    /// A dashed line to guide the eye: a mean, a fit, a limit.
    pub fn guide(
        name: impl Into<String>,
        x: impl Into<Cow<'a, [f64]>>,
        y: impl Into<Cow<'a, [f64]>>,
    ) -> Self {
        let mut series = Series::new(name, x, y);
        (series.dashed, series.guide, series.color) = (true, true, Some(style::INK));
        series
    }

    /// Sets the colour; without, the palette's next.
    pub fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    /// Sets the line's width in pixels.
    pub fn width(mut self, width: f64) -> Self {
        self.width = width.clamp(0.2, 20.0);
        self
    }

    /// Draws the line in dashes.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }
}

/// A rectangle with a y axis and curves; its legend stands above it, where no curve can be.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    name: String,
    unit: String,
    weight: f64,
    logarithmic: bool,
    series: Vec<Series<'a>>,
    /// The names of bars, which are its series then.
    bars: Vec<String>,
}

/// The width of a bar.
const BAR: f64 = 11.0;

impl<'a> Panel<'a> {
    /// A panel whose y axis shows `name (unit)`; an empty unit is left out.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        let (series, bars) = (Vec::new(), Vec::new());
        Panel { name: name.into(), unit: unit.into(), weight: 1.0, logarithmic: false, series, bars }
    }

    /// A panel of horizontal bars, one below the other, each with its name in place of a y axis.
    pub fn bars(name: impl Into<String>, bars: impl IntoIterator<Item = (String, f64)>) -> Self {
        let mut panel = Panel::new(name, "");
        for (name, x) in bars {
            let y = -(panel.bars.len() as f64) - 1.0;
            let color = if x < 0.0 { style::VERMILION } else { style::BLUE };
            panel.series.push(Series::new("", vec![0.0, x], vec![y, y]).width(BAR).color(color));
            panel.bars.push(name);
        }
        let rows = panel.bars.len() as f64;
        panel.weight(0.15 + 0.13 * rows)
    }

    /// Adds a curve.
    pub fn series(mut self, series: Series<'a>) -> Self {
        self.series.push(series);
        self
    }

    /// Sets the height, relative to other panels.
    pub fn weight(mut self, weight: f64) -> Self {
        self.weight = weight.clamp(0.3, 10.0);
        self
    }

    /// Makes the y axis logarithmic; values that are not positive leave gaps.
    pub fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    fn drawable(&self) -> bool {
        let y = |v: f64| drawable(v) && (!self.logarithmic || v > 0.0);
        self.series.iter().any(|s| s.x.iter().zip(s.y.iter()).any(|(a, b)| drawable(*a) && y(*b)))
    }
}

/// A picture: a title and panels one above the other, sharing the x axis.
///
/// ```
/// use md::plot::{Figure, Panel, Series};
///
/// let x: Vec<f64> = (0..100).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| (-x / 20.0).exp()).collect();
/// let figure = Figure::new("A fit", "step", "")
///     .panel(Panel::new("loss", "").logarithmic().series(Series::new("training", &x[..], &y[..])));
/// assert!(figure.svg()?.contains("training"));
/// # Ok::<(), md::plot::PlotError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Figure<'a> {
    title: String,
    x_name: String,
    x_unit: String,
    panels: Vec<Panel<'a>>,
    note: String,
    marks: Vec<(f64, String)>,
}

impl<'a> Figure<'a> {
    /// A picture without panels yet; its x axis will show `x_name (x_unit)`.
    pub fn new(title: impl Into<String>, x_name: impl Into<String>, x_unit: impl Into<String>) -> Self {
        Figure {
            title: title.into(),
            x_name: x_name.into(),
            x_unit: x_unit.into(),
            panels: Vec::new(),
            note: String::new(),
            marks: Vec::new(),
        }
    }

    /// Sets a line of small print below the title.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Marks where on the x axis a part begins: a line through all panels, and the part's name above the first.
    pub fn mark(mut self, x: f64, name: impl Into<String>) -> Self {
        self.marks.push((x, name.into()));
        self
    }

    /// Adds a panel below the others.
    pub fn panel(mut self, panel: Panel<'a>) -> Self {
        self.panels.push(panel);
        self
    }

    /// Columns of a table as they are, against its time (or step, or else its first column): those of
    /// one unit share a panel.
    ///
    /// # Errors
    /// If a column is missing or holds no finite number, or there are fewer than two rows.
    pub fn columns<S: AsRef<str>>(
        table: &'a Table,
        columns: &[S],
        title: &str,
        units: &UnitLabels,
    ) -> Result<Figure<'a>, PlotError> {
        let energies = table.column("potential").is_some() || table.column("total").is_some();
        for column in columns {
            table.require(column.as_ref())?;
        }
        if table.rows() < 2 {
            return Err(PlotError::TooShort { name: table.name().into(), rows: table.rows() });
        }
        let asked = |name: &str| columns.iter().any(|c| c.as_ref() == name);
        let x_name = ["time", "step"]
            .into_iter()
            .find(|name| !asked(name) && super::energies::advances(table, name))
            .or_else(|| table.names().first().map(String::as_str))
            .unwrap_or_default();
        let x = table.require(x_name)?;

        let mut figure = Figure::new(title, x_name, quantity(x_name, units, energies).1);
        for column in columns.iter().map(AsRef::as_ref) {
            let y = table.require(column)?;
            if table.finite(column).is_none() {
                return Err(PlotError::NothingFinite {
                    name: table.name().into(),
                    what: format!("column `{column}`"),
                });
            }
            let (label, unit) = quantity(column, units, energies);
            let curve = Series::new(column, x, y);
            match figure.panels.iter_mut().find(|p| p.name == label && p.unit == unit) {
                Some(panel) => panel.series.push(curve),
                None => figure.panels.push(Panel::new(label, unit).series(curve)),
            }
        }
        // What is alone in its panel gives it its name.
        for panel in &mut figure.panels {
            if let [only] = &panel.series[..] {
                panel.name = only.name.clone();
            }
        }
        Ok(figure)
    }

    /// The picture as an SVG document.
    ///
    /// # Errors
    /// If no panel holds a finite point.
    pub fn svg(&self) -> Result<String, PlotError> {
        let layout = Layout::new(self)?;
        canvas::svg(layout.size(), &self.title, |canvas| layout.draw(canvas))
    }

    /// The picture as a PNG file's bytes, with [`style::PNG_SCALE`] pixels for each of the SVG's.
    ///
    /// # Errors
    /// If no panel holds a finite point.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        let layout = Layout::new(self)?;
        canvas::png(layout.size(), style::PNG_SCALE, |canvas| layout.draw(canvas))
    }

    /// Writes the picture in the format of the name's ending, `.svg` or `.png`.
    ///
    /// # Errors
    /// If the ending is another one, nothing can be drawn, or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), PlotError> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let bytes = match ending.as_deref() {
            Some("svg") => self.svg()?.into_bytes(),
            Some("png") => self.png()?,
            _ => return Err(PlotError::Format(path.into())),
        };
        std::fs::write(path, bytes).map_err(|source| PlotError::Write { path: path.into(), source })
    }
}

/// A curve, ready to be drawn in data coordinates.
struct Curve {
    lines: Lines,
    average: Option<Lines>,
    color: Color,
    width: f64,
    dashed: bool,
    guide: bool,
    dots: bool,
}

struct Entry {
    text: String,
    x: f64,
    row: usize,
    color: Color,
    width: f64,
    dashed: bool,
    /// Two curves of one kind, a dark one over a pale one.
    pale: bool,
}

struct Plot {
    top: f64,
    bottom: f64,
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Ticks,
    label: Vec<String>,
    legend: Vec<Entry>,
    legend_top: f64,
    curves: Vec<Curve>,
}

/// Everything measured and placed; both kinds of picture are drawn from it.
struct Layout {
    title: String,
    note: String,
    /// Names of parts and where they begin, in order.
    marks: Vec<(f64, String)>,
    left: f64,
    right: f64,
    height: f64,
    x: (f64, f64),
    x_ticks: Ticks,
    x_label: String,
    plots: Vec<Plot>,
}

const LEGEND_ROW: f64 = 19.0;
/// Height of the row with the names of parts.
const MARKS_ROW: f64 = 18.0;
const SWATCH: f64 = 22.0;
/// Beyond this height a picture is no use, and a bitmap of it takes gigabytes.
const TALLEST: f64 = 12_000.0;

impl Layout {
    fn new(figure: &Figure) -> Result<Layout, PlotError> {
        let panels: Vec<&Panel> = figure.panels.iter().filter(|p| p.drawable()).collect();
        let all_x = panels.iter().flat_map(|p| &p.series).flat_map(|s| s.x.iter().copied());
        let Some(range) = sample::range(all_x) else { return Err(PlotError::NothingToDraw) };
        let x = padded(range, 0.01);

        let mut plots: Vec<Plot> = panels.iter().map(|panel| Plot::new(panel)).collect();
        let mut label_width: f64 = 0.0;
        for label in plots.iter().flat_map(|p| &p.ticks.labels) {
            label_width = label_width.max(text_width(label, TICK_SIZE));
        }
        let lines = plots.iter().map(|p| p.label.len()).max().unwrap_or(1);
        let left = 10.0 + 17.0 * lines as f64 + 8.0 + label_width + 8.0;
        let mut right = style::WIDTH - 22.0;

        // As many ticks as have room for their labels.
        let mut target = 10;
        let x_ticks = loop {
            let ticks = Ticks::linear(x.0, x.1, target);
            let widest = ticks.labels.iter().map(|l| text_width(l, TICK_SIZE)).fold(0.0, f64::max);
            if target <= 1 || ticks.labels.len() as f64 * (widest + 24.0) <= right - left {
                right -= (widest / 2.0 - 16.0).max(0.0);
                break ticks;
            }
            target -= 1;
        };

        let title = fit(&figure.title, style::TITLE_SIZE, right - left);
        let note = fit(&figure.note, TICK_SIZE, right - left);
        let mut y = if title.trim().is_empty() { 8.0 } else { 42.0 };
        y += if note.trim().is_empty() { 0.0 } else { 18.0 };
        let mut marks: Vec<_> = figure.marks.iter().filter(|(at, _)| drawable(*at)).cloned().collect();
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut names = if marks.is_empty() { 0.0 } else { MARKS_ROW };
        for (plot, panel) in plots.iter_mut().zip(&panels) {
            let rows = plot.place_legend(left, right);
            plot.legend_top = y;
            plot.top = y + LEGEND_ROW * rows as f64 + if rows > 0 { 6.0 } else { 10.0 };
            plot.top += std::mem::take(&mut names);
            plot.bottom = plot.top + panel.weight * style::PANEL_HEIGHT;
            y = plot.bottom + 16.0;
        }
        let (name, unit) = x_ticks.axis_label(&figure.x_name, &figure.x_unit);
        let x_label = fit(format!("{name} {unit}").trim(), LABEL_SIZE, right - left);
        let height = (y - 16.0 + if x_label.is_empty() { 34.0 } else { 54.0 }).ceil();
        if height > TALLEST {
            return Err(PlotError::Draw(format!("{} panels are too many for one picture", plots.len())));
        }
        Ok(Layout { title, note, marks, left, right, height, x, x_ticks, x_label, plots })
    }

    fn size(&self) -> (u32, u32) {
        (style::WIDTH as u32, self.height as u32)
    }

    fn draw(&self, canvas: &dyn Canvas) -> Result<(), PlotError> {
        if !self.title.trim().is_empty() {
            canvas.text((self.left, 26.0), &self.title, style::TITLE_SIZE, Align::Left, true)?;
        }
        if !self.note.trim().is_empty() {
            let y = if self.title.trim().is_empty() { 16.0 } else { 47.0 };
            canvas.text((self.left, y), &self.note, TICK_SIZE, Align::Left, true)?;
        }
        for plot in &self.plots {
            plot.draw(canvas, self)?;
        }
        self.name_parts(canvas)?;
        let Some(last) = self.plots.last() else { return Ok(()) };
        for (value, label) in self.x_ticks.values.iter().zip(&self.x_ticks.labels) {
            let at = (self.place_x(*value), last.bottom + 8.0 + TICK_SIZE);
            canvas.text(at, label, TICK_SIZE, Align::Center, true)?;
        }
        let middle = (self.left + self.right) / 2.0;
        canvas.text((middle, last.bottom + 42.0), &self.x_label, LABEL_SIZE, Align::Center, true)
    }

    /// The names of the parts above the first panel, as far as each has room for its own.
    fn name_parts(&self, canvas: &dyn Canvas) -> Result<(), PlotError> {
        let Some(first) = self.plots.first() else { return Ok(()) };
        for (k, (at, name)) in self.marks.iter().enumerate() {
            let from = self.place_x(*at).max(self.left) + 4.0;
            let to = self.marks.get(k + 1).map_or(self.right, |(next, _)| self.place_x(*next));
            let text = fit(name, TICK_SIZE, to - from - 4.0);
            if text != *name && to - from < 16.0 && to == self.right {
                // (a mark at the very end has its name on the other side)
                canvas.text((from - 8.0, first.top - 5.0), name, TICK_SIZE, Align::Right, true)?;
            } else if text == *name || text.chars().count() > 4 {
                canvas.text((from, first.top - 5.0), &text, TICK_SIZE, Align::Left, true)?;
            }
        }
        Ok(())
    }

    fn place_x(&self, x: f64) -> f64 {
        self.left + (x - self.x.0) / (self.x.1 - self.x.0) * (self.right - self.left)
    }
}

impl Plot {
    fn new(panel: &Panel) -> Plot {
        let mut colors = PALETTE.iter().cycle();
        let mut used = 0;
        let mut curves = Vec::new();
        let mut legend = Vec::new();
        for series in &panel.series {
            let color = series.color.unwrap_or_else(|| {
                used += 1;
                colors.next().copied().unwrap_or(style::INK)
            });
            let dashed = series.dashed || (series.color.is_none() && (used - 1) / PALETTE.len() % 2 == 1);
            let y: Cow<[f64]> = if panel.logarithmic {
                series.y.iter().map(|v| if *v > 0.0 { v.log10() } else { f64::NAN }).collect()
            } else {
                Cow::Borrowed(&series.y[..])
            };
            let lines = match series.scattered {
                true => sample::points(&series.x, &y),
                false => sample::envelope(&series.x, &y, COLUMNS),
            };
            let crowded = !series.scattered && series.x.len() >= CROWDED * COLUMNS && lines.len() < 50;
            let average = (crowded && !series.guide && sample::fills(&series.x, &y, COLUMNS))
                .then(|| sample::running_mean(&series.x, &y, COLUMNS))
                .flatten();
            let points = lines.iter().map(Vec::len).sum::<usize>();
            let dots = series.scattered || !series.guide && points <= 60 && panel.bars.is_empty();
            curves.push(Curve {
                lines,
                average,
                color,
                width: if series.scattered { DOT - 0.8 } else { series.width },
                dashed,
                guide: series.guide,
                dots,
            });
            if !series.name.trim().is_empty() {
                let text = series.name.clone();
                legend.push(Entry { text, x: 0.0, row: 0, color, width: series.width, dashed, pale: false });
            }
        }
        if curves.iter().any(|c| c.average.is_some()) {
            let (color, width) = (style::INK, style::LINE_WIDTH);
            let text = SMOOTHED.to_owned();
            legend.push(Entry { text, x: 0.0, row: 0, color, width, dashed: false, pale: true });
        }
        let values = curves.iter().flat_map(|c| &c.lines).flatten().map(|(_, y)| *y);
        let (low, high) = match panel.bars.len() {
            0 => padded(sample::range(values).unwrap_or((0.0, 1.0)), 0.06),
            rows => (-(rows as f64) - 0.7, -0.3),
        };
        let height = panel.weight * style::PANEL_HEIGHT;
        let target = ((height / 24.0) as usize).max(2);
        let ticks = if !panel.bars.is_empty() {
            let values = (1..=panel.bars.len()).map(|k| -(k as f64)).collect();
            Ticks { values, labels: panel.bars.clone(), exponent: 0, offset: 0.0 }
        } else if panel.logarithmic {
            Ticks::logarithmic(low, high, target + 2)
        } else {
            Ticks::linear(low, high, target)
        };
        let (name, unit) = ticks.axis_label(&panel.name, &panel.unit);
        let both = format!("{name} {unit}");
        let room = height + 10.0;
        let label = if text_width(both.trim(), LABEL_SIZE) <= room {
            vec![both.trim().to_string()]
        } else {
            vec![fit(&name, LABEL_SIZE, room), fit(&unit, LABEL_SIZE, room)]
        };
        let logarithmic = panel.logarithmic;
        Plot { top: 0.0, bottom: 0.0, low, high, logarithmic, ticks, label, legend, legend_top: 0.0, curves }
    }

    /// Lets the legend flow over as many rows as it needs, and counts them.
    fn place_legend(&mut self, left: f64, right: f64) -> usize {
        let (mut x, mut row) = (left, 0);
        for entry in &mut self.legend {
            entry.text = fit(&entry.text, LABEL_SIZE, right - left - SWATCH - 6.0);
            let width = SWATCH + 6.0 + text_width(&entry.text, LABEL_SIZE);
            if x > left && x + width > right {
                (x, row) = (left, row + 1);
            }
            (entry.x, entry.row) = (x, row);
            x += width + 22.0;
        }
        if self.legend.is_empty() { 0 } else { row + 1 }
    }

    fn draw(&self, canvas: &dyn Canvas, layout: &Layout) -> Result<(), PlotError> {
        let (left, right) = (layout.left, layout.right);
        let place_y =
            |y: f64| self.bottom - (y - self.low) / (self.high - self.low) * (self.bottom - self.top);
        let place = |&(x, y): &(f64, f64)| -> Point { (layout.place_x(x), place_y(y)) };
        let horizontal = |y: f64, color| canvas.rect((left, y - 0.5), (right, y + 0.5), color);
        let vertical = |x: f64, color| canvas.rect((x - 0.5, self.top), (x + 0.5, self.bottom), color);

        for x in &layout.x_ticks.values {
            vertical(layout.place_x(*x), style::GRID)?;
        }
        for (value, label) in self.ticks.values.iter().zip(&self.ticks.labels) {
            let y = place_y(*value);
            let zero = *value == 0.0 && !self.logarithmic;
            horizontal(y, if zero { style::ZERO } else { style::GRID })?;
            canvas.text((left - 8.0, y + 0.36 * TICK_SIZE), label, TICK_SIZE, Align::Right, true)?;
        }

        let (first, last) = layout.x;
        for (at, _) in layout.marks.iter().filter(|(at, _)| *at > first && *at < last) {
            vertical(layout.place_x(*at), style::MARK)?;
        }

        // Averages over the curves they belong to, guides over everything.
        for curve in self.curves.iter().filter(|c| !c.guide) {
            let pale = if curve.average.is_some() { 0.35 } else { 1.0 };
            curve.draw(canvas, &curve.lines, &place, curve.color.tint(pale), curve.width)?;
        }
        for curve in &self.curves {
            if let Some(average) = &curve.average {
                curve.draw(canvas, average, &place, curve.color, curve.width)?;
            }
        }
        for curve in self.curves.iter().filter(|c| c.guide) {
            curve.draw(canvas, &curve.lines, &place, curve.color, curve.width)?;
        }

        horizontal(self.bottom, style::AXIS)?;
        vertical(left, style::AXIS)?;
        for x in &layout.x_ticks.values {
            let x = layout.place_x(*x);
            canvas.rect((x - 0.5, self.bottom), (x + 0.5, self.bottom + 4.0), style::AXIS)?;
        }

        let middle = (self.top + self.bottom) / 2.0;
        let mut x = 10.0 + 0.8 * LABEL_SIZE;
        for line in &self.label {
            canvas.text((x, middle), line, LABEL_SIZE, Align::Center, false)?;
            x += 17.0;
        }
        for entry in &self.legend {
            let y = self.legend_top + LEGEND_ROW * (entry.row as f64 + 0.5);
            let swatch = [(entry.x, y), (entry.x + SWATCH, y)];
            if entry.pale {
                canvas.line(&swatch, entry.color.tint(0.35), 8.0)?;
            }
            let lines = if entry.dashed { dashes(&swatch) } else { vec![swatch.to_vec()] };
            for line in lines {
                canvas.line(&line, entry.color, entry.width.max(2.0))?;
            }
            let at = (entry.x + SWATCH + 6.0, y + 0.36 * LABEL_SIZE);
            canvas.text(at, &entry.text, LABEL_SIZE, Align::Left, true)?;
        }
        Ok(())
    }
}

impl Curve {
    fn draw(
        &self,
        canvas: &dyn Canvas,
        lines: &Lines,
        place: &dyn Fn(&(f64, f64)) -> Point,
        color: Color,
        width: f64,
    ) -> Result<(), PlotError> {
        for line in lines {
            let points: Vec<Point> = line.iter().map(place).collect();
            let length: f64 = points.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum();
            // A curve that fills its panel up and down would be nothing but dashes.
            if self.dashed && length < 10_000.0 {
                for dash in dashes(&points) {
                    canvas.line(&dash, color, width)?;
                }
            } else {
                canvas.line(&points, color, width)?;
            }
            if self.dots || points.len() == 1 {
                for point in &points {
                    canvas.dot(*point, width + 0.8, color)?;
                }
            }
        }
        Ok(())
    }
}

/// A polyline cut into dashes.
fn dashes(points: &[Point]) -> Vec<Vec<Point>> {
    const ON: f64 = 6.0;
    const OFF: f64 = 4.0;
    let mut dashes = Vec::new();
    let (mut current, mut on, mut left) = (Vec::new(), true, ON);
    for pair in points.windows(2) {
        let &[a, b] = pair else { continue };
        let length = (b.0 - a.0).hypot(b.1 - a.1);
        let along = |s: f64| (a.0 + (b.0 - a.0) * s / length, a.1 + (b.1 - a.1) * s / length);
        let mut done = 0.0;
        if on && current.is_empty() {
            current.push(a);
        }
        while length - done > left {
            done += left;
            if on {
                current.push(along(done));
                dashes.push(std::mem::take(&mut current));
            } else {
                current.push(along(done));
            }
            on = !on;
            left = if on { ON } else { OFF };
        }
        left -= length - done;
        if on {
            current.push(b);
        }
    }
    if current.len() > 1 {
        dashes.push(current);
    }
    dashes
}

/// The range with some room at both ends; a range of no width gets one.
fn padded((low, high): (f64, f64), part: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    let room = if high - low > size * 1e-13 && high - low > 1e-290 {
        (high - low) * part
    } else if size > 1e-280 {
        size * 0.05
    } else {
        1.0
    };
    (low - room, high + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    fn line() -> (Vec<f64>, Vec<f64>) {
        let x: Vec<f64> = (0..200).map(f64::from).collect();
        let y = x.iter().map(|x| (x / 10.0).sin()).collect();
        (x, y)
    }

    #[test]
    fn both_pictures_have_the_same_size() {
        let (x, y) = line();
        let figure = Figure::new("Waves <&> \"more\"", "time", "ps")
            .panel(Panel::new("height", "Å").series(Series::new("sine", &x[..], &y[..])))
            .panel(Panel::new("again", "").weight(0.5).series(Series::new("", &x[..], &y[..])));
        let svg = figure.svg().unwrap();
        for text in ["Waves &lt;&amp;&gt;", "height (Å)", "sine", "time (ps)", "again"] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.starts_with("<svg xmlns") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.len() < 30_000, "{}", svg.len());
        let (width, height, pixels) = decoded(&figure.png().unwrap());
        assert!(svg.contains(&format!("width=\"{}\" height=\"{}\"", width / 2, height / 2)));
        assert_eq!(width, 1800);
        // A vermilion or blue line must be somewhere.
        assert!(pixels.chunks(3).any(|p| p == [0, 114, 178]));
    }

    #[test]
    fn hard_cases_draw() {
        let nan = f64::NAN;
        let cases: [(&[f64], &[f64]); 9] = [
            (&[0.0, 1.0], &[5.0, 5.0]),
            (&[0.0, 1.0], &[0.0, 0.0]),
            (&[1.0, 1.0], &[2.0, 3.0]),
            (&[0.0], &[1.0]),
            (&[0.0, 1.0, 2.0], &[1.0, nan, 2.0]),
            (&[0.0, 1.0], &[-1e308, 1e308]),
            (&[0.0, 1.0, 2.0], &[1e289, -1e289, 0.0]),
            (&[0.0, 1e-300], &[1e-310, 2e-310]),
            (&[1e15, 1e15 + 1.0], &[1e15, 1e15 + 0.125]),
        ];
        for (i, (x, y)) in cases.into_iter().enumerate() {
            for logarithmic in [false, true] {
                let mut panel =
                    Panel::new("y", "u").series(Series::new("s", x, y)).series(Series::guide("g", x, y));
                panel.logarithmic = logarithmic;
                let figure = Figure::new("", "x", "").panel(panel);
                // One PNG for each case is enough, they take their time.
                match (
                    figure.svg(),
                    if logarithmic { figure.svg().map(|_| Vec::new()) } else { figure.png() },
                ) {
                    (Ok(svg), Ok(png)) => {
                        assert!(!svg.contains("NaN") && !svg.contains("2147483647"), "case {i}");
                        assert!(logarithmic || decoded(&png).0 == 1800);
                    }
                    (Err(PlotError::NothingToDraw), Err(PlotError::NothingToDraw)) => {}
                    other => panic!("case {i}: {other:?}"),
                }
            }
        }
        let tower = (0..200).fold(Figure::new("t", "x", ""), |figure, _| {
            figure.panel(Panel::new("y", "").series(Series::new("s", &[0.0, 1.0][..], &[0.0, 1.0][..])))
        });
        assert!(tower.png().unwrap_err().to_string().contains("200 panels are too many"));
        let empty = Figure::new("t", "x", "").panel(Panel::new("y", ""));
        assert!(matches!(empty.svg(), Err(PlotError::NothingToDraw)));
    }

    #[test]
    fn a_long_curve_stays_small() {
        let n = 300_000;
        let x: Vec<f64> = (0..n).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| (x * 12.9898).sin() * 43.7).collect();
        let svg = Figure::new("long", "step", "")
            .panel(Panel::new("y", "").series(Series::new("y", x, y)))
            .svg()
            .unwrap();
        assert!(svg.len() < 60_000, "{}", svg.len());
    }

    #[test]
    fn legends_wrap_and_stay_inside() {
        let (x, y) = line();
        let mut panel = Panel::new("energy", "kJ/mol");
        for i in 0..16 {
            panel = panel.series(Series::new(format!("term number {i} with a long name"), &x[..], &y[..]));
        }
        let mut plot = Plot::new(&panel);
        assert!(plot.place_legend(100.0, 880.0) >= 4);
        for entry in &plot.legend {
            assert!(entry.x + SWATCH + 6.0 + text_width(&entry.text, LABEL_SIZE) <= 880.0);
        }
        // Colours repeat after seven, but not the kind of line.
        assert!(
            !plot.curves[0].dashed && plot.curves[7].dashed && plot.curves[7].color == plot.curves[0].color
        );
    }

    #[test]
    fn columns_share_panels_by_unit() {
        let text =
            "step,time,potential,temperature,bond,angle\n0,0,1,300,2,3\n1,0.1,2,301,3,4\n2,0.2,1,299,2,3\n";
        let table = Table::from_reader(text.as_bytes(), "e.csv").unwrap();
        let figure =
            Figure::columns(&table, &["bond", "temperature", "angle"], "t", &UnitLabels::default()).unwrap();
        let panels: Vec<_> = figure.panels.iter().map(|p| (p.name.as_str(), p.series.len())).collect();
        assert_eq!(panels, [("energy", 2), ("temperature", 1)]);
        let svg = figure.svg().unwrap();
        for text in ["energy (kJ/mol)", "temperature (K)", "time (ps)", "bond", "angle"] {
            assert!(svg.contains(text), "{text}");
        }
        let wrong = Figure::columns(&table, &["bnod"], "t", &UnitLabels::default()).unwrap_err();
        assert!(matches!(wrong, PlotError::NoColumn { .. }));
        let other = Table::from_reader("r,g\n0,0\n1,2\n".as_bytes(), "g.csv").unwrap();
        let svg = Figure::columns(&other, &["g"], "", &UnitLabels::default()).unwrap().svg().unwrap();
        assert!(!svg.contains("kJ/mol"));
    }

    #[test]
    fn dashes_cover_three_fifths() {
        let cut = dashes(&[(0.0, 0.0), (50.0, 0.0), (100.0, 0.0)]);
        let on: f64 = cut.iter().map(|d| d[d.len() - 1].0 - d[0].0).sum();
        assert_eq!((cut.len(), on), (10, 60.0));
        assert!(dashes(&[(1.0, 1.0)]).is_empty());
    }

    #[test]
    fn the_ending_tells_the_format() {
        let (x, y) = line();
        let figure = Figure::new("t", "x", "").panel(Panel::new("y", "").series(Series::new("s", x, y)));
        let dir = tempfile::tempdir().unwrap();
        figure.save(&dir.path().join("a.svg")).unwrap();
        figure.save(&dir.path().join("a.PNG")).unwrap();
        assert!(std::fs::read(dir.path().join("a.PNG")).unwrap().starts_with(b"\x89PNG"));
        assert!(matches!(figure.save(&dir.path().join("a.gif")), Err(PlotError::Format(_))));
        let gone = figure.save(&dir.path().join("no/a.svg")).unwrap_err().to_string();
        assert!(gone.contains("cannot write") && gone.contains("a.svg"), "{gone}");
    }
}
