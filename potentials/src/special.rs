//! Special functions of plain numbers.

/// 1 − erf(x)
pub fn erfc(x: f64) -> f64 {
    x
}
