//! A CSV file as columns of numbers.

use super::PlotError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Columns of numbers with names, all of the same length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    name: String,
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    rows: usize,
}

impl Table {
    /// Reads a CSV file whose first line holds the columns' names.
    ///
    /// Empty fields and words that are no numbers become NaN, which a picture shows as a gap. Lines that
    /// start with `#` are comments. A last line without its line end is still being written and is left
    /// out.
    ///
    /// # Errors
    /// If the file cannot be read, has no header, or a line has another number of fields than the header.
    pub fn read(path: &Path) -> Result<Table, PlotError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Table::from_reader(BufReader::with_capacity(1 << 16, file), name),
            Err(source) => Err(PlotError::Read { name, source }),
        }
    }

    /// The same from any reader; `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn from_reader(reader: impl Read, name: impl Into<String>) -> Result<Table, PlotError> {
        let name = name.into();
        let mut csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(LastByte { inner: reader, last: None });
        let failed = |name: &str, error: csv::Error| {
            let line = error.position().map_or(0, csv::Position::line);
            match error.into_kind() {
                csv::ErrorKind::Io(source) => PlotError::Read { name: name.into(), source },
                _ => PlotError::Malformed {
                    name: name.into(),
                    line,
                    message: "this is not a line of a table".into(),
                },
            }
        };

        let mut record = csv::ByteRecord::new();
        if !csv.read_byte_record(&mut record).map_err(|e| failed(&name, e))? {
            return Err(PlotError::Malformed {
                name,
                line: 1,
                message: "the file is empty; the first line must name the columns".into(),
            });
        }
        let names: Vec<String> = record
            .iter()
            .map(|field| String::from_utf8_lossy(field).trim_start_matches('\u{feff}').trim().to_string())
            .collect();
        if names.iter().all(|n| n.is_empty() || n.parse::<f64>().is_ok()) {
            return Err(PlotError::Malformed {
                name,
                line: record.position().map_or(1, csv::Position::line),
                message: "the first line must name the columns".into(),
            });
        }

        let mut columns = vec![Vec::new(); names.len()];
        let mut rows = 0;
        let mut odd: Option<(u64, usize)> = None;
        while csv.read_byte_record(&mut record).map_err(|e| failed(&name, e))? {
            if let Some((line, fields)) = odd {
                let message = format!("{fields} fields, but the header names {} columns", names.len());
                return Err(PlotError::Malformed { name, line, message });
            }
            if record.len() != names.len() {
                // Only the last line may be incomplete, and whether it is the last shows at the next one.
                odd = Some((record.position().map_or(0, csv::Position::line), record.len()));
                continue;
            }
            for (column, field) in columns.iter_mut().zip(&record) {
                column.push(number(field));
            }
            rows += 1;
        }
        let whole = csv.get_ref().last == Some(b'\n');
        match odd {
            Some((line, fields)) if whole => {
                let message = format!("{fields} fields, but the header names {} columns", names.len());
                return Err(PlotError::Malformed { name, line, message });
            }
            None if !whole && rows > 0 => {
                rows -= 1;
                columns.iter_mut().for_each(|c| c.truncate(rows));
            }
            _ => {}
        }
        Ok(Table { name, names, columns, rows })
    }

    /// What the table is called in messages: the file's path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The columns' names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column of this name, if there is one.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        let index = self.names.iter().position(|n| n == name)?;
        self.columns.get(index).map(Vec::as_slice)
    }

    /// The column of this name, if it is there and holds at least one finite number.
    pub fn finite(&self, name: &str) -> Option<&[f64]> {
        self.column(name).filter(|c| c.iter().any(|v| v.is_finite()))
    }

    /// The column of this name.
    ///
    /// # Errors
    /// If there is none; the error lists the columns.
    pub fn require(&self, name: &str) -> Result<&[f64], PlotError> {
        self.column(name).ok_or_else(|| PlotError::NoColumn {
            name: self.name.clone(),
            column: name.into(),
            known: self.names.clone(),
        })
    }
}

fn number(field: &[u8]) -> f64 {
    std::str::from_utf8(field).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// Passes bytes on and remembers the last one.
struct LastByte<R> {
    inner: R,
    last: Option<u8>,
}

impl<R: Read> Read for LastByte<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if let Some(&byte) = buffer[..n].last() {
            self.last = Some(byte);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<Table, PlotError> {
        Table::from_reader(text.as_bytes(), "test.csv")
    }

    #[test]
    fn columns_come_out_by_name() {
        let t = table("step,time,volume\n0,0,\n10, 1e-3 ,inf\r\n20,2.5,abc\n").unwrap();
        assert_eq!(t.names(), ["step", "time", "volume"]);
        assert_eq!(t.rows(), 3);
        assert_eq!(t.column("time").unwrap(), [0.0, 0.001, 2.5]);
        let volume = t.column("volume").unwrap();
        assert!(volume[0].is_nan() && volume[1] == f64::INFINITY && volume[2].is_nan());
        assert!(t.finite("volume").is_none());
        assert!(t.column("pressure").is_none());
    }

    #[test]
    fn a_line_still_being_written_is_left_out() {
        assert_eq!(table("a,b\n1,2\n3").unwrap().rows(), 1);
        assert_eq!(table("a,b\n1,2\n3,4").unwrap().rows(), 1);
        assert_eq!(table("a,b\n1,2\n3,4\n").unwrap().rows(), 2);
        assert_eq!(table("a,b").unwrap().rows(), 0);
    }

    #[test]
    fn errors_say_where() {
        let message = |text| table(text).unwrap_err().to_string();
        assert!(message("").contains("empty"));
        assert!(message("1,2\n3,4\n").contains("line 1: the first line must name"));
        assert_eq!(
            message("a,b\n1,2\n3\n4,5\n"),
            "test.csv, line 3: 1 fields, but the header names 2 columns"
        );
        assert!(message("a,b\n1,2,3\n").contains("line 2"));
        let t = table("a,b\n1,2\n").unwrap();
        assert_eq!(
            t.require("c").unwrap_err().to_string(),
            "test.csv has no column `c`; its columns are a, b"
        );
        let gone = Table::read(Path::new("/nowhere/energies.csv")).unwrap_err().to_string();
        assert!(gone.contains("cannot read /nowhere/energies.csv"), "{gone}");
    }

    #[test]
    fn odd_bytes_are_no_trouble() {
        for bytes in
            [&b"\xff\xfe\x00,a\n1,2\n"[..], b"\0\0\0", b"a,\"b\n1,2", b",\n,\n", b"#only\n", b"\n\n\n"]
        {
            let _ = Table::from_reader(bytes, "odd");
        }
        assert_eq!(table("\u{feff}step,x\n1,2\n").unwrap().names()[0], "step");
    }
}
