//! Lines and words on either kind of picture, measured in CSS pixels.

use super::PlotError;
use super::style::{Color, FONT_HEIGHT, WHITE, font};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform};

/// A point in CSS pixels, y downwards.
pub(super) type Point = (f64, f64);

/// Steps of the SVG's integer coordinates in a CSS pixel.
const SVG_SCALE: u32 = 10;

/// Where a text's anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

/// What both kinds of picture can do.
pub(super) trait Canvas {
    /// A polyline.
    fn line(&self, points: &[Point], color: Color, width: f64) -> Result<(), PlotError>;
    /// A filled rectangle between two corners.
    fn rect(&self, from: Point, to: Point, color: Color) -> Result<(), PlotError>;
    /// A filled disc.
    fn dot(&self, center: Point, radius: f64, color: Color) -> Result<(), PlotError>;
    /// A text with its baseline at the point, `upright` or turned to be read from below to above.
    fn text(&self, at: Point, text: &str, size: f64, align: Align, upright: bool) -> Result<(), PlotError>;
}

/// Width of a text in the embedded font.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    const MEASURE: f64 = 2000.0;
    let fallback = 0.6 * size * text.chars().count() as f64;
    let Some(family) = font() else { return fallback };
    match FontDesc::new(family, MEASURE, FontStyle::Normal).box_size(text) {
        Ok((width, _)) => f64::from(width) / MEASURE * FONT_HEIGHT * size,
        Err(_) => fallback,
    }
}

/// The text, cut with an ellipsis where it is wider than `room`; control characters become spaces.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    // Nobody reads this many letters, and measuring them all would take a while.
    let text: String = text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text_width(&text, size) <= room {
        return text;
    }
    let mut cut: Vec<char> = text.chars().collect();
    while cut.pop().is_some() {
        let shorter = format!("{}…", cut.iter().collect::<String>().trim_end());
        if text_width(&shorter, size) <= room {
            return shorter;
        }
    }
    String::new()
}

struct Plotters<DB: DrawingBackend> {
    area: DrawingArea<DB, Shift>,
    family: FontFamily<'static>,
    scale: f64,
    bitmap: bool,
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Draw(error.to_string())
}

impl<DB: DrawingBackend> Plotters<DB> {
    fn new(backend: DB, scale: u32, bitmap: bool) -> Result<Self, PlotError> {
        let family = font().ok_or_else(|| failed("the embedded font is broken"))?;
        let canvas = Plotters { area: backend.into_drawing_area(), family, scale: f64::from(scale), bitmap };
        if !bitmap {
            canvas.area.fill(&WHITE.rgb()).map_err(failed)?;
        }
        Ok(canvas)
    }

    fn at(&self, (x, y): Point) -> (i32, i32) {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }
}

impl<DB: DrawingBackend> Canvas for Plotters<DB> {
    fn line(&self, points: &[Point], color: Color, width: f64) -> Result<(), PlotError> {
        let mut path: Vec<(i32, i32)> = points.iter().map(|p| self.at(*p)).collect();
        path.dedup();
        if path.len() < 2 {
            return Ok(());
        }
        if !self.bitmap {
            let width = (width * self.scale).round().max(1.0) as u32;
            return self.area.draw(&PathElement::new(path, color.rgb().stroke_width(width))).map_err(failed);
        }
        // A thick path as one polygon leaves holes where it crosses itself; stretches with round joints
        // do not.
        let half = width * self.scale / 2.0;
        for pair in path.windows(2) {
            let &[(ax, ay), (bx, by)] = pair else { continue };
            let (dx, dy) = (f64::from(bx - ax), f64::from(by - ay));
            let length = dx.hypot(dy);
            let (nx, ny) = (-dy / length * half, dx / length * half);
            let corner = |x: i32, y: i32, s: f64| {
                ((f64::from(x) + s * nx).round() as i32, (f64::from(y) + s * ny).round() as i32)
            };
            let corners =
                vec![corner(ax, ay, 1.0), corner(bx, by, 1.0), corner(bx, by, -1.0), corner(ax, ay, -1.0)];
            self.area.draw(&Polygon::new(corners, color.rgb().filled())).map_err(failed)?;
        }
        if path.len() > 2 {
            for joint in &path[1..path.len() - 1] {
                self.area
                    .draw(&Circle::new(*joint, half.floor().max(1.0) as i32, color.rgb().filled()))
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    fn rect(&self, from: Point, to: Point, color: Color) -> Result<(), PlotError> {
        let (from, mut to) = (self.at(from), self.at(to));
        if self.bitmap {
            // A bitmap's rectangle holds its last row and column too.
            to = ((to.0 - 1).max(from.0), (to.1 - 1).max(from.1));
        }
        self.area.draw(&Rectangle::new([from, to], color.rgb().filled())).map_err(failed)
    }

    fn dot(&self, center: Point, radius: f64, color: Color) -> Result<(), PlotError> {
        let radius = (radius * self.scale).round().max(1.0) as i32;
        self.area.draw(&Circle::new(self.at(center), radius, color.rgb().filled())).map_err(failed)
    }

    fn text(&self, at: Point, text: &str, size: f64, align: Align, upright: bool) -> Result<(), PlotError> {
        // The two backends take the size and the place of the letters differently; here both are
        // brought to `size` pixels an em, and to the baseline.
        let (font_size, ascent) = if self.bitmap {
            let line = size * FONT_HEIGHT;
            (line, line / 2.0)
        } else {
            (size * 1.24, 0.76 * size)
        };
        let (at, turn) = if upright {
            ((at.0, at.1 - ascent), FontTransform::None)
        } else {
            ((at.0 - ascent, at.1), FontTransform::Rotate270)
        };
        let horizontal = match align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = FontDesc::new(self.family, font_size * self.scale, FontStyle::Normal)
            .transform(turn)
            .color(&super::style::TEXT.rgb())
            .pos(Pos::new(horizontal, VPos::Top));
        self.area.draw(&Text::new(text, self.at(at), style)).map_err(failed)
    }
}

/// An SVG of what `draw` draws.
pub(super) fn svg(
    (width, height): (u32, u32),
    title: &str,
    draw: impl FnOnce(&dyn Canvas) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, (width * SVG_SCALE, height * SVG_SCALE));
        let canvas = Plotters::new(backend, SVG_SCALE, false)?;
        draw(&canvas)?;
        canvas.area.present().map_err(failed)?;
    }
    // The backend counts in whole pixels. It drew on a finer grid, and this is the frame that shrinks it.
    let body = text.find('>').map_or("", |end| &text[end + 1..]);
    let escaped: String = title
        .chars()
        .map(|c| match c {
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '&' => "&amp;".into(),
            c if c.is_control() => " ".into(),
            c => c.to_string(),
        })
        .collect();
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {} {}\" stroke-linejoin=\"round\">\n<title>{escaped}</title>{body}",
        width * SVG_SCALE,
        height * SVG_SCALE,
    ))
}

/// A PNG of what `draw` draws, `scale` pixels for each CSS pixel.
pub(super) fn png(
    (width, height): (u32, u32),
    scale: u32,
    draw: impl FnOnce(&dyn Canvas) -> Result<(), PlotError>,
) -> Result<Vec<u8>, PlotError> {
    // Drawn larger and averaged, which smooths every edge; huge pictures go without.
    let finer = if height <= 2500 { 3 } else { 1 };
    let (out_width, out_height) = (width * scale, height * scale);
    let (full_width, full_height) = (out_width * finer, out_height * finer);
    // White from the start.
    let mut pixels = vec![255u8; full_width as usize * full_height as usize * 3];
    {
        let backend = BitMapBackend::with_buffer(&mut pixels, (full_width, full_height));
        let canvas = Plotters::new(backend, scale * finer, true)?;
        draw(&canvas)?;
        canvas.area.present().map_err(failed)?;
    }
    let pixels = averaged(&pixels, full_width as usize, finer as usize);

    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, out_width, out_height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // 96 CSS pixels an inch, so that the picture is shown and printed in the SVG's size.
    let per_meter = (96.0 * f64::from(scale) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_meter,
        yppu: per_meter,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

/// The picture with every `finer` × `finer` square as one pixel.
fn averaged(pixels: &[u8], width: usize, finer: usize) -> Vec<u8> {
    if finer == 1 {
        return pixels.to_vec();
    }
    let row = width * 3;
    let area = (finer * finer) as u32;
    let mut small = Vec::with_capacity(pixels.len() / (finer * finer));
    let mut sums = vec![0u32; row / finer];
    for band in pixels.chunks_exact(row * finer) {
        sums.fill(0);
        for line in band.chunks_exact(row) {
            for (square, sum) in line.chunks_exact(3 * finer).zip(sums.chunks_exact_mut(3)) {
                for pixel in square.chunks_exact(3) {
                    sum.iter_mut().zip(pixel).for_each(|(s, p)| *s += u32::from(*p));
                }
            }
        }
        small.extend(sums.iter().map(|s| ((s + area / 2) / area) as u8));
    }
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_averaged() {
        let pixels: Vec<u8> =
            [[0, 100], [200, 100], [10, 10], [10, 10]].iter().flatten().flat_map(|&p| [p, 0, 255]).collect();
        // 2 × 4 pixels: the upper square averages 0, 100, 200, 100.
        assert_eq!(averaged(&pixels, 2, 2), [100, 0, 255, 10, 0, 255]);
    }

    #[test]
    fn widths_are_those_of_the_font() {
        // DejaVu Sans: a digit is 1303/2048 em wide, M 1767/2048.
        assert!((text_width("0000", 100.0) - 4.0 * 100.0 * 1303.0 / 2048.0).abs() < 0.5);
        assert!((text_width("M", 100.0) - 100.0 * 1767.0 / 2048.0).abs() < 0.5);
        assert_eq!(text_width("", 12.0), 0.0);
    }

    #[test]
    fn the_font_holds_what_units_need() {
        // A letter that is missing has the width of the box shown instead, and so has U+E000.
        for c in "ετσ²³⁻·Å°−±×₀Δ⟨⟩…∞".chars() {
            let (width, missing) = (text_width(&c.to_string(), 100.0), text_width("\u{e000}", 100.0));
            assert!((width - missing).abs() > 0.01, "{c} is missing");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let cut = fit("A title that goes on and on\nand on", 12.0, 100.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 100.0, "{cut}");
        assert_eq!(fit("two\nlines", 12.0, 100.0), "two lines");
        assert_eq!(fit("no room", 12.0, 1.0), "");
    }
}
