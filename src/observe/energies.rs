//! `energies.csv`: one row for every so many steps.
//!
//! ```text
//! step,time,potential,kinetic,total,conserved,temperature,pressure,volume,<a column for each term>
//! ```
//!
//! Numbers have as many digits as bring back the same bits when read, and no more.

use super::{Kept, Tally, reason, synchronize};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The names of the first columns; a column for each term follows.
pub const COLUMNS: [&str; 9] =
    ["step", "time", "potential", "kinetic", "total", "conserved", "temperature", "pressure", "volume"];

/// What can go wrong with a table of energies.
#[derive(Debug, thiserror::Error)]
pub enum EnergyTableError {
    /// The file could not be made, read, written or cut.
    #[error("cannot {action} {}: {}", .path.display(), reason(.source))]
    Io {
        /// What was to be done: "create", "read", "write" …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A name stands for two columns.
    #[error("two columns of {} would be called `{name}`", .path.display())]
    SameName {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A row has another number of terms than the table.
    #[error("step {step} has {found} energy terms, but {} has {expected}", .path.display())]
    Terms {
        /// The file.
        path: PathBuf,
        /// The row's step.
        step: u64,
        /// Terms in the row.
        found: usize,
        /// Terms of the table.
        expected: usize,
    },
    /// A row is not later than the one before it.
    #[error("step {step} cannot follow step {last} in {}", .path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The row's step.
        step: u64,
        /// The last row's step.
        last: u64,
    },
    /// The file is not a table of energies.
    #[error("{}, line {line}: {message}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from one.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
}

/// One row: a step and its energies, in the run's units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyRow {
    /// Number of the step, counted over the whole run.
    pub step: u64,
    /// Time.
    pub time: f64,
    /// Potential energy, all terms together.
    pub potential: f64,
    /// Kinetic energy.
    pub kinetic: f64,
    /// Potential and kinetic energy.
    pub total: f64,
    /// What the integrator conserves: the total with all that was exchanged with baths.
    pub conserved: f64,
    /// Instantaneous temperature.
    pub temperature: f64,
    /// Instantaneous pressure; `None` in an open system.
    pub pressure: Option<f64>,
    /// Volume of the cell; `None` in an open system.
    pub volume: Option<f64>,
    /// The energy of each term, in the order of the table's names.
    pub terms: Vec<f64>,
}

/// An `energies.csv` being written.
///
/// Rows go to a buffer; [`EnergyTable::flush`] brings them to the file. To be able to resume, flush
/// before writing a restart file.
#[derive(Debug)]
pub struct EnergyTable {
    path: PathBuf,
    writer: csv::Writer<File>,
    terms: Vec<String>,
    tally: Tally,
    text: String,
}

impl EnergyTable {
    /// Starts a new table, with a column for each of the terms; a file of that name is replaced.
    ///
    /// # Errors
    /// If two columns would have the same name or the file cannot be written.
    pub fn create<S: AsRef<str>>(path: &Path, terms: &[S]) -> Result<EnergyTable, EnergyTableError> {
        let terms: Vec<String> = terms.iter().map(|t| t.as_ref().to_string()).collect();
        for (i, name) in terms.iter().enumerate() {
            if COLUMNS.contains(&name.as_str()) || terms[..i].contains(name) {
                return Err(EnergyTableError::SameName { path: path.into(), name: name.clone() });
            }
        }
        let file = File::create(path).map_err(|e| failed("create", path, e))?;
        let mut table = EnergyTable::over(path, file, terms, Tally::default());
        let header = COLUMNS.into_iter().chain(table.terms.iter().map(String::as_str));
        table.writer.write_record(header).map_err(|e| failed("write", path, io(e)))?;
        table.flush()?;
        Ok(table)
    }

    /// Goes on with a table from the given step: later rows and a torn last line are cut off, so that a
    /// run resumed there continues with no row twice.
    ///
    /// If the row of `step` itself is not there (because the interval does not divide it, or because it
    /// was never flushed), [`EnergyTable::last_step`] is smaller than `step`.
    ///
    /// # Errors
    /// If the file cannot be read or cut, or is not a table of energies.
    pub fn resume(path: &Path, step: u64) -> Result<EnergyTable, EnergyTableError> {
        EnergyTable::go_on(path, EnergyTable::kept(path, step)?)
    }

    /// What [`EnergyTable::resume`] would keep. The file stays as it is.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a table of energies.
    pub fn kept(path: &Path, step: u64) -> Result<Kept, EnergyTableError> {
        let malformed = |line: u64, message: String| EnergyTableError::Malformed {
            path: path.into(),
            line: line.max(1),
            message,
        };
        let mut file = File::open(path).map_err(|e| failed("continue", path, e))?;
        let end = whole_lines(&mut file).map_err(|e| failed("read", path, e))?;
        file.seek(SeekFrom::Start(0)).map_err(|e| failed("read", path, e))?;

        let mut kept = Kept::default();
        {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(BufReader::new((&file).take(end)));
            let mut record = csv::ByteRecord::new();
            let mut next = |record: &mut csv::ByteRecord| -> Result<Option<(u64, u64)>, EnergyTableError> {
                match reader.read_byte_record(record) {
                    Ok(false) => Ok(None),
                    Ok(true) => {
                        let line = record.position().map_or(1, csv::Position::line);
                        Ok(Some((line, reader.position().byte())))
                    }
                    Err(error) => Err(failed("read", path, io(error))),
                }
            };

            let Some((line, after)) = next(&mut record)? else {
                return Err(malformed(1, "the header is missing".into()));
            };
            kept.end = after;
            if record.len() < COLUMNS.len() || record.iter().zip(COLUMNS).any(|(a, b)| a != b.as_bytes()) {
                return Err(malformed(line, format!("the header must start with {}", COLUMNS.join(","))));
            }
            let columns = record.len();
            for field in record.iter().skip(COLUMNS.len()) {
                kept.terms.push(String::from_utf8_lossy(field).into_owned());
            }
            while let Some((line, after)) = next(&mut record)? {
                let found =
                    record.get(0).and_then(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok());
                let Some(here) = found else {
                    return Err(malformed(line, "the row does not start with the number of a step".into()));
                };
                if here > step {
                    break;
                }
                if record.len() != columns {
                    let message = format!("{} fields, but the header names {columns} columns", record.len());
                    return Err(malformed(line, message));
                }
                if let Some(before) = kept.steps.last().filter(|last| **last >= here) {
                    return Err(malformed(line, format!("step {here} follows step {before}")));
                }
                kept.steps.push(here);
                kept.end = after;
            }
        }
        Ok(kept)
    }

    /// Goes on with a table, of which only that is kept.
    ///
    /// # Errors
    /// If the file cannot be cut.
    pub fn go_on(path: &Path, kept: Kept) -> Result<EnergyTable, EnergyTableError> {
        let file = OpenOptions::new().write(true).open(path);
        let mut file = file.map_err(|e| failed("continue", path, e))?;
        file.set_len(kept.end).map_err(|e| failed("shorten", path, e))?;
        file.seek(SeekFrom::Start(kept.end)).map_err(|e| failed("continue", path, e))?;
        let tally = kept.tally();
        Ok(EnergyTable::over(path, file, kept.terms, tally))
    }

    fn over(path: &Path, file: File, terms: Vec<String>, tally: Tally) -> EnergyTable {
        // Rows may differ from the header only by our own check, which knows the step.
        let writer = csv::WriterBuilder::new().flexible(true).from_writer(file);
        EnergyTable { path: path.into(), writer, terms, tally, text: String::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the row has another number of terms than the table, its step is not after the last one's, or
    /// the file cannot be written.
    pub fn append(&mut self, row: &EnergyRow) -> Result<(), EnergyTableError> {
        if row.terms.len() != self.terms.len() {
            return Err(EnergyTableError::Terms {
                path: self.path.clone(),
                step: row.step,
                found: row.terms.len(),
                expected: self.terms.len(),
            });
        }
        if let Some(last) = self.tally.last.filter(|last| *last >= row.step) {
            return Err(EnergyTableError::Order { path: self.path.clone(), step: row.step, last });
        }
        self.write(row).map_err(|e| failed("write", &self.path, io(e)))?;
        self.tally.add(row.step);
        Ok(())
    }

    fn write(&mut self, row: &EnergyRow) -> Result<(), csv::Error> {
        let text = &mut self.text;
        text.clear();
        let _ = write!(text, "{}", row.step);
        self.writer.write_field(text.as_bytes())?;
        let values = [row.time, row.potential, row.kinetic, row.total, row.conserved, row.temperature];
        let values = values.into_iter().map(Some).chain([row.pressure, row.volume]);
        for value in values.chain(row.terms.iter().copied().map(Some)) {
            text.clear();
            if let Some(value) = value {
                shortest(value, text);
            }
            self.writer.write_field(text.as_bytes())?;
        }
        self.writer.write_record(None::<&[u8]>)
    }

    /// Brings all rows to the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> Result<(), EnergyTableError> {
        self.writer.flush().map_err(|e| failed("write", &self.path, e))
    }

    /// The same, and to the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn synchronize(&mut self) -> Result<(), EnergyTableError> {
        self.flush()?;
        synchronize(self.writer.get_ref()).map_err(|e| failed("write", &self.path, e))
    }

    /// The step of the last row, if there is one.
    pub fn last_step(&self) -> Option<u64> {
        self.tally.last
    }

    /// How many rows there are.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The names of the terms, in the order of their columns.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> EnergyTableError {
    EnergyTableError::Io { action, path: path.into(), source }
}

/// The system's error inside one of the `csv` crate, with its kind.
fn io(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

/// Writes a number with the fewest digits that bring back its bits.
fn shortest(value: f64, text: &mut String) {
    let size = value.abs();
    let _ = if size == 0.0 || (1e-5..1e16).contains(&size) || !value.is_finite() {
        write!(text, "{value}")
    } else {
        write!(text, "{value:e}")
    };
}

/// The length of the file up to the end of its last whole line.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = [0u8; 4096];
    while end > 0 {
        let size = end.min(block.len() as u64);
        file.seek(SeekFrom::Start(end - size))?;
        let bytes = &mut block[..size as usize];
        file.read_exact(bytes)?;
        if let Some(last) = bytes.iter().rposition(|b| *b == b'\n') {
            return Ok(end - size + last as u64 + 1);
        }
        end -= size;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(step: u64) -> EnergyRow {
        EnergyRow {
            step,
            time: step as f64 * 0.001,
            potential: -20_512.3,
            kinetic: 1.0 / 3.0,
            total: -20_511.966,
            conserved: 1e-300,
            temperature: 300.0,
            pressure: Some(-1e22),
            volume: None,
            terms: vec![f64::NAN, -0.0],
        }
    }

    const HEADER: &str =
        "step,time,potential,kinetic,total,conserved,temperature,pressure,volume,lj,\"a,b\"\n";

    fn file(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("energies.csv")
    }

    fn written(steps: &[u64]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        let mut table = EnergyTable::create(&path, &["lj", "a,b"]).unwrap();
        for step in steps {
            table.append(&row(*step)).unwrap();
        }
        table.flush().unwrap();
        (dir, path)
    }

    fn steps(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with(HEADER) && text.ends_with('\n'));
        text.lines().skip(1).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn a_row_is_written_with_the_shortest_digits() {
        let (_dir, path) = written(&[250]);
        let text = std::fs::read_to_string(path).unwrap();
        let expected = "250,0.25,-20512.3,0.3333333333333333,-20511.966,1e-300,300,-1e22,,NaN,-0\n";
        assert_eq!(text, format!("{HEADER}{expected}"));
    }

    proptest! {
        #[test]
        fn every_number_comes_back(value in any::<f64>()) {
            let mut text = String::new();
            shortest(value, &mut text);
            let back: f64 = text.parse().unwrap();
            prop_assert!(back.to_bits() == value.to_bits() || (back.is_nan() && value.is_nan()));
            prop_assert!(text.len() <= 24);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_file_torn_anywhere_can_be_resumed(cut in 0usize..400, step in 0u64..50) {
            let (_dir, path) = written(&[0, 10, 20, 30]);
            let bytes = std::fs::read(&path).unwrap();
            let cut = bytes.len().saturating_sub(cut).max(HEADER.len());
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let kept = bytes[HEADER.len()..cut].iter().filter(|b| **b == b'\n').count() as u64;
            let table = EnergyTable::resume(&path, step).unwrap();
            let expected: Vec<u64> = (0..kept).map(|i| i * 10).filter(|s| *s <= step).collect();
            prop_assert_eq!(table.last_step(), expected.last().copied());
            drop(table);
            prop_assert_eq!(steps(&path), expected);
        }
    }

    #[test]
    fn resuming_gives_the_file_of_one_run() {
        let (_whole_dir, whole) = written(&[0, 10, 20, 30, 40]);
        let (_dir, path) = written(&[0, 10, 20, 30]);
        let mut table = EnergyTable::resume(&path, 20).unwrap();
        assert_eq!((table.last_step(), table.terms()), (Some(20), &["lj".to_string(), "a,b".into()][..]));
        for step in [30, 40] {
            table.append(&row(step)).unwrap();
        }
        table.flush().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), std::fs::read(whole).unwrap());
    }

    #[test]
    fn resuming_between_rows_keeps_the_earlier_ones() {
        let (_dir, path) = written(&[0, 10, 20]);
        assert_eq!(EnergyTable::resume(&path, 15).unwrap().last_step(), Some(10));
        assert_eq!(steps(&path), [0, 10]);
        assert_eq!(EnergyTable::resume(&path, 99).unwrap().last_step(), Some(10));
    }

    #[test]
    fn a_torn_line_goes_even_if_its_step_is_wanted() {
        let (_dir, path) = written(&[0, 10]);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("20,0.02,-205");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(EnergyTable::resume(&path, 20).unwrap().last_step(), Some(10));
        // What lies beyond the step may be anything.
        text.truncate(text.len() - 12);
        text.push_str("20,0.02\ngarbage\n\0\0\0\0");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(EnergyTable::resume(&path, 10).unwrap().last_step(), Some(10));
        assert_eq!(steps(&path), [0, 10]);
    }

    #[test]
    fn what_is_no_table_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(&dir);
        let message = |text: &str, step| {
            std::fs::write(&path, text).unwrap();
            let message = EnergyTable::resume(&path, step).unwrap_err().to_string();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert!(message.contains("energies.csv"), "{message}");
            message
        };
        assert!(message("", 1).ends_with("line 1: the header is missing"));
        assert!(message("step,time", 1).ends_with("line 1: the header is missing"));
        assert!(message("x,y\n1,2\n", 1).contains("line 1: the header must start with step,time"));
        let row = ",".repeat(10);
        assert!(
            message(&format!("{HEADER}0{row}\n5\n6{row}\n"), 9)
                .ends_with("line 3: 1 fields, but the header names 11 columns")
        );
        assert!(
            message(&format!("{HEADER}1{row}\nx{row}\n"), 9)
                .ends_with("line 3: the row does not start with the number of a step")
        );
        assert!(message(&format!("{HEADER}7{row}\n7{row}\n"), 9).ends_with("line 3: step 7 follows step 7"));
        let gone = EnergyTable::resume(&dir.path().join("no.csv"), 1).unwrap_err().to_string();
        assert!(gone.contains("cannot continue") && gone.ends_with("no such file or directory"), "{gone}");
    }

    #[test]
    fn wrong_rows_are_refused() {
        let (_dir, path) = written(&[0]);
        let mut table = EnergyTable::resume(&path, 0).unwrap();
        assert!(table.append(&row(0)).unwrap_err().to_string().starts_with("step 0 cannot follow step 0"));
        let short = EnergyRow { terms: vec![], ..row(1) };
        assert!(table.append(&short).unwrap_err().to_string().starts_with("step 1 has 0 energy terms"));
        table.append(&row(1)).unwrap();
        drop(table);
        assert_eq!(steps(&path), [0, 1]);
        let twice = EnergyTable::create(&path, &["total"]).unwrap_err().to_string();
        assert!(twice.ends_with("would be called `total`"), "{twice}");
        assert_eq!(steps(&path), [0, 1], "the file is still there");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_called_that() {
        let full = EnergyTable::create(Path::new("/dev/full"), &["lj"]).unwrap_err().to_string();
        assert_eq!(full, "cannot write /dev/full: the disk is full");

        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut table = EnergyTable::over(
            Path::new("x/energies.csv"),
            file,
            vec!["a".into(), "b".into()],
            Tally::default(),
        );
        let error = (0..10_000).find_map(|step| table.append(&row(step)).err()).unwrap();
        assert_eq!(error.to_string(), "cannot write x/energies.csv: the disk is full");
    }
}
