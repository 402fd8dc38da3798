//! Reading the numbers of a case.

use serde_json::Value;
use std::path::Path;

pub fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A number, which some cases write as a string with all its digits.
pub fn as_number(v: &Value) -> Option<f64> {
    v.as_f64().or_else(|| v.as_str()?.parse().ok())
}
pub fn number(v: &Value, key: &str) -> f64 {
    as_number(&v[key]).unwrap_or_else(|| panic!("no number {key} in {v}"))
}
pub fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_else(|| panic!("no text {key} in {v}"))
}
pub fn count(v: &Value) -> usize {
    v.as_u64().unwrap_or_else(|| panic!("{v} is no whole number")) as usize
}
pub fn list(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}
pub fn numbers(v: &Value) -> Vec<f64> {
    list(v).iter().map(|x| as_number(x).unwrap_or_else(|| panic!("{x} is no number"))).collect()
}
pub fn array<const N: usize>(v: &Value) -> [f64; N] {
    numbers(v).try_into().unwrap_or_else(|_| panic!("{v} are not {N} numbers"))
}
pub fn vectors(v: &Value) -> Vec<[f64; 3]> {
    list(v).iter().map(array).collect()
}
pub fn degrees(v: &Value, key: &str) -> f64 {
    number(v, key).to_radians()
}
