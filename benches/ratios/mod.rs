//! A table of ratios, printed and kept in `outputs/bench/ratios.json`.

use serde_json::{Map, Value, json};

/// Rows by name.
#[derive(Default)]
pub struct Ratios(Map<String, Value>);

impl Ratios {
    /// Prints what its columns are.
    pub fn heading(&self, name: &str, first: &str, second: &str) {
        println!("{name:62} {first:>10} {second:>12} {:>7}", "ratio");
    }

    /// Adds a row, whose figures have names (with their unit) in the file. No ratio: that of the second to the first.
    pub fn row(
        &mut self,
        name: String,
        unit: &str,
        keys: [&str; 2],
        [first, second]: [f64; 2],
        ratio: Option<f64>,
    ) {
        let ratio = ratio.unwrap_or(second / first);
        println!("{name:62} {first:10.2} {second:12.2} {ratio:7.3}");
        let [of_first, of_second] = keys.map(|key| format!("{key}{unit}"));
        self.0.insert(name, json!({ "ratio": ratio, of_first: first, of_second: second }));
    }

    /// Puts the rows into the file, beside or instead of those that are there from other benchmarks.
    pub fn keep(mut self, instruction_set: &str) {
        self.0.insert("instruction_set".into(), instruction_set.into());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/outputs/bench");
        let path = format!("{folder}/ratios.json");
        let there = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let mut all: Map<String, Value> = there.unwrap_or_default();
        all.append(&mut self.0);
        let text = serde_json::to_string_pretty(&all).unwrap();
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text)).unwrap();
    }
}
