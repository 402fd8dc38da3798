//! Colours, sizes and the font: how every picture looks.
//!
//! Lengths are in CSS pixels: SVG shows them one to one, PNG at [`PNG_SCALE`] times as many pixels.

use plotters::style::{FontFamily, FontStyle, RGBColor, register_font};
use std::sync::OnceLock;

/// A colour, as red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// The colour mixed with white: `strength` 1 leaves it alone, 0 gives white.
    pub fn tint(self, strength: f64) -> Color {
        let s = strength.clamp(0.0, 1.0);
        let mix = |c: u8| (255.0 - s * (255.0 - f64::from(c))).round() as u8;
        Color(mix(self.0), mix(self.1), mix(self.2))
    }

    pub(super) fn rgb(self) -> RGBColor {
        RGBColor(self.0, self.1, self.2)
    }
}

/// Blue of the Okabe–Ito palette.
pub const BLUE: Color = Color(0, 114, 178);
/// Vermilion of the Okabe–Ito palette.
pub const VERMILION: Color = Color(213, 94, 0);
/// Bluish green of the Okabe–Ito palette.
pub const GREEN: Color = Color(0, 158, 115);
/// Reddish purple, a little darker than that of the Okabe–Ito palette.
pub const PURPLE: Color = Color(184, 92, 148);
/// Orange of the Okabe–Ito palette.
pub const ORANGE: Color = Color(230, 159, 0);
/// Sky blue of the Okabe–Ito palette.
pub const SKY: Color = Color(86, 180, 233);
/// Nearly black.
pub const INK: Color = Color(34, 34, 34);

/// The colours that series get in turn: the palette of Okabe and Ito (2008), which stays apart for
/// every kind of colour blindness, without its yellow, which is too light on white, and with the purple
/// made a little darker for the same reason.
pub const PALETTE: [Color; 7] = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK];

pub(super) const WHITE: Color = Color(255, 255, 255);
pub(super) const GRID: Color = Color(232, 232, 232);
pub(super) const ZERO: Color = Color(190, 190, 190);
pub(super) const MARK: Color = Color(150, 150, 150);
pub(super) const AXIS: Color = Color(120, 120, 120);
pub(super) const TEXT: Color = Color(45, 45, 45);

/// Width of a picture.
pub const WIDTH: f64 = 900.0;
/// Height of a panel of weight one, without its legend.
pub const PANEL_HEIGHT: f64 = 150.0;
/// Size of the title's letters.
pub const TITLE_SIZE: f64 = 17.0;
/// Size of axis labels and legends.
pub const LABEL_SIZE: f64 = 13.0;
/// Size of the numbers at the ticks.
pub const TICK_SIZE: f64 = 12.0;
/// Width of a curve.
pub const LINE_WIDTH: f64 = 1.5;
/// Pixels of a PNG for each CSS pixel.
pub const PNG_SCALE: u32 = 2;

/// The font's name; in an SVG it is also the list of fonts to fall back on.
pub(super) const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
/// Height of the font's line (ascent + descent) in em.
pub(super) const FONT_HEIGHT: f64 = (1901.0 + 483.0) / 2048.0;

/// The embedded font, registered when first asked for.
pub(super) fn font() -> Option<FontFamily<'static>> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED.get_or_init(|| {
        register_font(FONT, FontStyle::Normal, include_bytes!("../../assets/DejaVuSans.ttf")).is_ok()
    });
    registered.then(|| FontFamily::from(FONT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_goes_from_white_to_the_colour() {
        assert_eq!(Color(0, 100, 200).tint(1.0), Color(0, 100, 200));
        assert_eq!(Color(0, 100, 200).tint(0.0), Color(255, 255, 255));
        assert_eq!(Color(55, 155, 255).tint(0.5), Color(155, 205, 255));
    }

    #[test]
    fn the_font_is_there() {
        assert!(font().is_some());
    }
}
