//! GROMACS' XTC: compressed positions in single precision, without names or velocities.
//!
//! Everything is big-endian in units of four bytes (XDR). A frame is
//!
//! | what | type |
//! |---|---|
//! | 1995, or 2023 in files that may have more than 298,261,617 atoms | `i32` |
//! | number of atoms, step | `u32`, `u32` |
//! | time in ps, the nine numbers of the cell vectors a, b, c in nm | `f32` |
//! | number of atoms again | `u32` |
//! | up to 9 atoms: their positions in nm, and that is all | `f32` |
//! | precision p: positions are multiples of 1/p nm | `f32` |
//! | smallest and largest multiple along x, y and z | 3 `i32`, 3 `i32` |
//! | index of the first *small size* | `u32` |
//! | number of bytes that follow (before padding) | `u32`, or `u64` in 2023 |
//! | the bits, padded with zeros to four bytes | |
//!
//! The bits are, again and again: one position in full, relative to the smallest; a bit that says whether
//! five more follow that change the length of a *run* and the small size; and the run, positions that each
//! differ from the one before by less than half of the small size. The first of a run and the full
//! position in front of it are exchanged, since in water the oxygen in the middle makes smaller
//! differences. Three numbers below s₀, s₁, s₂ are packed as (x s₁ + y) s₂ + z in as few bits as all of
//! them can need, whole bytes from the lowest on.
//!
//! `step` is written modulo 2³². Nothing is allocated on the word of a file: a broken or hostile one gives
//! an error.

use std::io::{self, BufRead, Read, Write};

use super::TrajectoryWriter;
use super::frame::{FormatError, Frame, FrameMark, FrameUnits, Scan, invalid};

/// The sizes of small differences: about 2^(i/3), so that three numbers below one take i bits.
const SIZES: [u32; 73] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 101, 128, 161, 203, 256, 322, 406,
    512, 645, 812, 1024, 1290, 1625, 2048, 2580, 3250, 4096, 5060, 6501, 8192, 10321, 13003, 16384, 20642,
    26007, 32768, 41285, 52015, 65536, 82570, 104031, 131072, 165140, 208063, 262144, 330280, 416127, 524287,
    660561, 832255, 1048576, 1321122, 1664510, 2097152, 2642245, 3329021, 4194304, 5284491, 6658042, 8388607,
    10568983, 13316085, 16777216,
];
/// The first size that can be used.
const FIRST: usize = 9;
const LAST: usize = SIZES.len() - 1;
/// Up to so many atoms are not compressed.
const PLAIN: usize = 9;
/// The longest run.
const RUN: usize = 8;
/// Sizes above this are not packed by threes.
const PACKED: u32 = 0xff_ffff;
/// With more atoms than this a file must be of the kind 2023.
const MAX_1995: usize = 298_261_617;

/// Writes frames, one after the other, as XTC.
#[derive(Debug)]
pub struct XtcWriter<W> {
    out: W,
    precision: f32,
    bytes: Vec<u8>,
}

impl<W: Write> XtcWriter<W> {
    /// A writer that appends to `out` positions that are multiples of 1/`precision` nm. GROMACS' files
    /// have a precision of 1000; it must be above 0, or writing fails.
    pub fn new(out: W, precision: f32) -> Self {
        XtcWriter { out, precision, bytes: Vec::new() }
    }

    /// The writer that was given to [`XtcWriter::new`].
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> TrajectoryWriter for XtcWriter<W> {
    fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.bytes.clear();
        encode(&mut self.bytes, frame, self.precision)?;
        self.out.write_all(&self.bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn encode(out: &mut Vec<u8>, frame: &Frame, precision: f32) -> io::Result<()> {
    frame.check_lengths()?;
    let count =
        u32::try_from(frame.len()).map_err(|_| invalid("XTC cannot hold more than 4,294,967,295 atoms"))?;
    let single = |x: f64| {
        let y = x as f32;
        if y.is_finite() { Ok(y) } else { Err(invalid(format!("XTC cannot hold the number {x}"))) }
    };
    let large = frame.len() > MAX_1995;
    out.extend(if large { 2023_i32 } else { 1995 }.to_be_bytes());
    out.extend(count.to_be_bytes());
    out.extend((frame.step.unwrap_or(0) as u32).to_be_bytes()); // modulo 2³², as documented
    out.extend(single(frame.time.unwrap_or(0.0))?.to_be_bytes());
    for &x in frame.cell.unwrap_or_default().as_flattened() {
        out.extend(single(x)?.to_be_bytes());
    }
    out.extend(count.to_be_bytes());
    if frame.len() <= PLAIN {
        for &x in frame.positions.as_flattened() {
            out.extend(single(x)?.to_be_bytes());
        }
        return Ok(());
    }

    if !(precision.is_finite() && precision > 0.0) {
        return Err(invalid(format!("the precision of XTC must be above 0, not {precision}")));
    }
    out.extend(precision.to_be_bytes());
    let mut points = Vec::with_capacity(frame.len());
    for p in &frame.positions {
        let mut point = [0_i64; 3];
        for (multiple, x) in point.iter_mut().zip(p) {
            let m = (x * f64::from(precision)).round();
            if m.is_nan() || m.abs() >= f64::from(i32::MAX) {
                return Err(invalid(format!(
                    "XTC with precision {precision} cannot hold the position {x} nm"
                )));
            }
            *multiple = m as i64;
        }
        points.push(point);
    }
    let mut low = points[0];
    let mut high = points[0];
    for p in &points {
        for k in 0..3 {
            low[k] = low[k].min(p[k]);
            high[k] = high[k].max(p[k]);
        }
    }
    let Some(full) = Full::new(low, high) else {
        return Err(invalid(format!("XTC with precision {precision} cannot hold positions so far apart")));
    };
    for x in low.iter().chain(&high) {
        out.extend((*x as i32).to_be_bytes());
    }
    let closest = points.windows(2).map(|w| (0..3).map(|k| (w[0][k] - w[1][k]).abs()).sum::<i64>()).min();
    let small = (FIRST..LAST).find(|&i| i64::from(SIZES[i]) >= closest.unwrap_or(0)).unwrap_or(LAST);
    out.extend((small as u32).to_be_bytes());
    let mut bits = BitWriter::default();
    compress(&mut bits, &mut points, low, &full, small);
    let bytes = bits.finish();
    if large {
        out.extend((bytes.len() as u64).to_be_bytes());
    } else {
        let length = u32::try_from(bytes.len()).map_err(|_| invalid("the frame is too large for XTC"))?;
        out.extend(length.to_be_bytes());
    }
    out.extend(&bytes);
    out.resize(out.len().next_multiple_of(4), 0); // all before the bits is a multiple of 4 already
    Ok(())
}

/// How a full position is packed.
struct Full {
    sizes: [u32; 3],
    /// Bits for all three, or nothing if each has its own.
    together: Option<u32>,
}

impl Full {
    /// For multiples from `low` to `high`; `None` where that does not fit, or is empty.
    fn new(low: [i64; 3], high: [i64; 3]) -> Option<Self> {
        let mut sizes = [0; 3];
        for k in 0..3 {
            sizes[k] = u32::try_from(high[k] - low[k] + 1).ok().filter(|&s| s > 0)?;
        }
        let together = sizes.iter().all(|&s| s <= PACKED).then(|| length(product(sizes)));
        Some(Full { sizes, together })
    }
}

fn product(sizes: [u32; 3]) -> u128 {
    sizes.iter().map(|&s| u128::from(s)).product()
}

/// The bits of a number.
fn length(x: u128) -> u32 {
    u128::BITS - x.leading_zeros()
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// The last bits, not yet a byte.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Appends the lowest `count` ≤ 32 bits, the highest first.
    fn bits(&mut self, value: u32, count: u32) {
        self.pending = (self.pending << count) | u64::from(value);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push((self.pending >> self.count) as u8);
        }
        self.pending &= (1 << self.count) - 1;
    }

    /// Appends three numbers below `sizes` in `count` bits.
    fn packed(&mut self, x: [u32; 3], sizes: [u32; 3], count: u32) {
        let all = (u128::from(x[0]) * u128::from(sizes[1]) + u128::from(x[1])) * u128::from(sizes[2])
            + u128::from(x[2]);
        for byte in 0..count / 8 {
            self.bits((all >> (8 * byte)) as u32 & 0xff, 8);
        }
        self.bits((all >> (count / 8 * 8)) as u32 & ((1 << (count % 8)) - 1), count % 8);
    }

    fn full(&mut self, x: [u32; 3], full: &Full) {
        match full.together {
            Some(count) => self.packed(x, full.sizes, count),
            None => (0..3).for_each(|k| self.bits(x[k], length(full.sizes[k].into()))),
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bits(0, 8 - self.count);
        }
        self.bytes
    }
}

fn within(a: [i64; 3], b: [i64; 3], limit: i64) -> bool {
    (0..3).all(|k| (a[k] - b[k]).abs() < limit)
}

/// Writes the bits of all positions. Their order in `points` changes.
fn compress(bits: &mut BitWriter, points: &mut [[i64; 3]], low: [i64; 3], full: &Full, mut small: usize) {
    // The small size stays within these and changes by one after each run: it grows if the last jump
    // would have been small then, and shrinks if the whole run would have fitted.
    let largest = LAST.min(small + 8);
    let smallest = largest - 8;
    let half = |i: usize| i64::from(SIZES[i] / 2);
    let mut previous: Option<[i64; 3]> = None;
    let mut last_run = None;
    let mut i = 0;
    while i < points.len() {
        let grow = small < largest && previous.is_some_and(|p| within(points[i], p, half(largest)));
        if points.get(i + 1).is_some_and(|&next| within(points[i], next, half(small))) {
            points.swap(i, i + 1);
        }
        let start = points[i];
        bits.full([0, 1, 2].map(|k| (start[k] - low[k]) as u32), full);
        // After the exchange the next point is still as close: the run begins there, or it has length 0.
        let mut run: Vec<[u32; 3]> = Vec::with_capacity(RUN);
        let mut before = start;
        let mut shrink = !grow && small > smallest;
        let below = half(small.max(FIRST + 1) - 1);
        while run.len() < RUN && i + 1 + run.len() < points.len() {
            let next = points[i + 1 + run.len()];
            if !within(next, before, half(small)) {
                break;
            }
            let far = (0..3).map(|k| (next[k] - before[k]).pow(2)).sum::<i64>() >= below.pow(2);
            shrink &= !far;
            run.push([0, 1, 2].map(|k| (next[k] - before[k] + half(small)) as u32));
            before = next;
        }
        shrink &= !run.is_empty();
        previous = Some(before);
        i += 1 + run.len();

        if last_run == Some(run.len()) && !grow && !shrink {
            bits.bits(0, 1);
        } else {
            let change = 1 + u32::from(grow) - u32::from(shrink);
            bits.bits(1, 1);
            bits.bits(3 * run.len() as u32 + change, 5);
            last_run = Some(run.len());
        }
        for x in run {
            bits.packed(x, [SIZES[small]; 3], small as u32);
        }
        small = small + usize::from(grow) - usize::from(shrink);
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits read.
    at: usize,
}

impl BitReader<'_> {
    /// The next `count` ≤ 32 bits, the highest first; `None` at the end.
    fn bits(&mut self, count: u32) -> Option<u32> {
        let end = self.at + count as usize;
        if end > self.bytes.len() * 8 {
            return None;
        }
        let bytes = &self.bytes[self.at / 8..end.div_ceil(8)];
        let all = bytes.iter().fold(0_u64, |all, &b| all << 8 | u64::from(b));
        let all = all >> (8 * bytes.len() - (end - self.at / 8 * 8));
        self.at = end;
        Some((all & ((1 << count) - 1)) as u32)
    }

    /// Three numbers below `sizes`, all above 0, packed in `count` ≤ 72 bits. In a broken file the first
    /// number can be larger.
    fn packed(&mut self, sizes: [u32; 3], count: u32) -> Option<[i64; 3]> {
        let mut all = 0_u128;
        for byte in 0..count / 8 {
            all |= u128::from(self.bits(8)?) << (8 * byte);
        }
        all |= u128::from(self.bits(count % 8)?) << (count / 8 * 8);
        let [y, z] = [u128::from(sizes[1]), u128::from(sizes[2])];
        if let Ok(all) = u64::try_from(all) {
            let [y, z] = [y as u64, z as u64]; // a division is much faster there
            return Some([all / z / y, all / z % y, all % z].map(|x| x as i64));
        }
        Some([all / z / y, all / z % y, all % z].map(|x| x as i64))
    }

    fn full(&mut self, full: &Full) -> Option<[i64; 3]> {
        match full.together {
            Some(count) => self.packed(full.sizes, count),
            None => {
                let mut x = [0; 3];
                for (x, size) in x.iter_mut().zip(full.sizes) {
                    *x = i64::from(self.bits(length(size.into()))?);
                }
                Some(x)
            }
        }
    }
}

/// Reads the bits of `count` positions.
fn expand(
    bits: &mut BitReader,
    count: usize,
    low: [i64; 3],
    full: &Full,
    mut small: usize,
) -> Result<Vec<[i64; 3]>, &'static str> {
    const END: &str = "the compressed positions end too early";
    let mut points = Vec::with_capacity(count);
    let mut run = 0;
    while points.len() < count {
        let x = bits.full(full).ok_or(END)?;
        let start = [0, 1, 2].map(|k| low[k] + x[k]);
        let mut change = 1;
        if bits.bits(1).ok_or(END)? == 1 {
            let five = bits.bits(5).ok_or(END)? as usize;
            (run, change) = (five / 3, five % 3);
        }
        if run + 1 > count - points.len() {
            return Err("a run of the compressed positions goes beyond the last atom");
        }
        let mut before = start;
        for k in 0..run {
            let half = i64::from(SIZES[small] / 2);
            let x = bits.packed([SIZES[small]; 3], small as u32).ok_or(END)?;
            let next = [0, 1, 2].map(|k| before[k] + x[k] - half);
            points.push(next);
            if k == 0 {
                points.push(start);
            }
            before = next;
        }
        if run == 0 {
            points.push(start);
        }
        small = (small + change).wrapping_sub(1);
        if !(FIRST..=LAST).contains(&small) {
            return Err("the compressed positions have an impossible small size");
        }
    }
    Ok(points)
}

/// Reads frames one after the other.
///
/// After an error it is exhausted: nothing that comes behind broken data is trusted.
pub struct XtcReader<R> {
    reader: R,
    units: FrameUnits,
    frames: usize,
    offset: u64,
    done: bool,
}

/// What stands in front of the positions.
struct Head {
    large: bool,
    count: usize,
    step: u32,
    time: f32,
    cell: [f32; 9],
}

impl<R: BufRead> XtcReader<R> {
    /// A reader of nm.
    pub fn new(reader: R) -> Self {
        Self::with_units(reader, FrameUnits::Nanometre)
    }

    /// A reader whose frames are marked as being in `units`; the numbers are the same.
    pub fn with_units(reader: R, units: FrameUnits) -> Self {
        XtcReader { reader, units, frames: 0, offset: 0, done: false }
    }

    /// The next `N` bytes.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => "the file ends within the frame".to_string(),
            _ => format!("cannot be read: {e}"),
        })?;
        self.offset += N as u64;
        Ok(bytes)
    }

    fn int(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_be_bytes)
    }

    fn real(&mut self) -> Result<f32, String> {
        self.take().map(f32::from_be_bytes)
    }

    /// The head of the next frame; `None` at the end of the file.
    fn head(&mut self) -> Result<Option<Head>, String> {
        if self.reader.fill_buf().map_err(|e| format!("cannot be read: {e}"))?.is_empty() {
            return Ok(None);
        }
        let large = match self.int()? {
            1995 => false,
            2023 => true,
            x => return Err(format!("this is no XTC frame: it begins with {x} and not with 1995 or 2023")),
        };
        let count = self.int()?;
        let step = self.int()?;
        let time = self.real()?;
        let mut cell = [0.0; 9];
        for x in &mut cell {
            *x = self.real()?;
        }
        let again = self.int()?;
        if again != count {
            return Err(format!("the number of atoms is {count} at first and then {again}"));
        }
        Ok(Some(Head { large, count: count as usize, step, time, cell }))
    }

    fn frame(&mut self) -> Result<Option<Frame>, String> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let time = f64::from(head.time);
        if !time.is_finite() || !head.cell.iter().all(|x| x.is_finite()) {
            return Err("time or cell are no numbers".into());
        }
        let cell = head.cell.map(f64::from);
        let [a, b, c] = [0, 3, 6].map(|k| [cell[k], cell[k + 1], cell[k + 2]]);
        let positions = if head.count <= PLAIN {
            let mut positions = vec![[0.0; 3]; head.count];
            for x in positions.as_flattened_mut() {
                *x = f64::from(self.real()?);
            }
            if !positions.as_flattened().iter().all(|x: &f64| x.is_finite()) {
                return Err("a position is no number".into());
            }
            positions
        } else {
            self.compressed(&head)?
        };
        Ok(Some(Frame {
            units: self.units,
            step: Some(head.step.into()),
            time: Some(time),
            cell: cell.iter().any(|&x| x != 0.0).then_some([a, b, c]),
            positions,
            ..Frame::default()
        }))
    }

    fn compressed(&mut self, head: &Head) -> Result<Vec<[f64; 3]>, String> {
        let precision = f64::from(self.real()?);
        if !(precision.is_finite() && precision > 0.0) {
            return Err(format!("the precision is {precision}, which must be above 0"));
        }
        let mut bounds = [[0_i64; 3]; 2];
        for x in bounds.as_flattened_mut() {
            *x = i64::from(self.int()? as i32);
        }
        let [low, high] = bounds;
        let full = Full::new(low, high)
            .ok_or_else(|| format!("the positions are said to lie between {low:?} and {high:?}"))?;
        let small = self.int()? as usize;
        if !(FIRST..=LAST).contains(&small) {
            return Err(format!(
                "the index of the small size is {small}, which must be from {FIRST} to {LAST}"
            ));
        }
        let length = self.length(head)?;
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(length).read_to_end(&mut bytes);
        self.offset += read.map_err(|e| format!("cannot be read: {e}"))? as u64;
        let padding = (4 - length % 4) % 4;
        for _ in 0..padding {
            self.take::<1>()?;
        }
        if (bytes.len() as u64) < length {
            return Err("the file ends within the frame".into());
        }
        // Each position takes at least two bits, so there can be no more than so many.
        if head.count / 4 > bytes.len() {
            return Err(format!("{} atoms cannot be in {} bytes", head.count, bytes.len()));
        }
        let points = expand(&mut BitReader { bytes: &bytes, at: 0 }, head.count, low, &full, small)?;
        Ok(points.iter().map(|p| p.map(|x| x as f64 / precision)).collect())
    }

    fn length(&mut self, head: &Head) -> Result<u64, String> {
        if head.large { self.take().map(u64::from_be_bytes) } else { self.int().map(u64::from) }
    }

    /// Goes past a frame and returns its step.
    fn pass(&mut self) -> Result<Option<u64>, String> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let length = if head.count <= PLAIN {
            12 * head.count as u64
        } else {
            for _ in 0..8 {
                self.int()?; // precision, bounds, small size
            }
            self.length(&head)?
        };
        let length = length.checked_next_multiple_of(4).ok_or("the frame is said to be endless")?;
        let skipped = io::copy(&mut self.reader.by_ref().take(length), &mut io::sink());
        let skipped = skipped.map_err(|e| format!("cannot be read: {e}"))?;
        self.offset += skipped;
        if skipped < length {
            return Err("the file ends within the frame".into());
        }
        Ok(Some(head.step.into()))
    }
}

impl<R: BufRead> Iterator for XtcReader<R> {
    type Item = Result<Frame, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let start = self.offset;
        let item = self.frame().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        let index = self.frames;
        self.frames += 1;
        item.map(|r| r.map_err(|message| FormatError::in_frame(index, start, message)))
    }
}

/// The complete frames, for cutting a trajectory: the positions are not unpacked.
///
/// Steps are stored modulo 2³²; where they fall from one frame to the next by more than 2³¹ they are taken
/// to have passed that mark.
pub fn scan(reader: impl BufRead) -> Scan {
    let mut reader = XtcReader::new(reader);
    let mut scan = Scan::default();
    let mut turns = 0_u64;
    loop {
        let start = reader.offset;
        match reader.pass() {
            Ok(Some(step)) => {
                let last = scan.frames.last().and_then(|f: &FrameMark| f.step).unwrap_or(0);
                if (last & 0xffff_ffff).saturating_sub(step) > 1 << 31 {
                    turns += 1;
                }
                let step = Some((turns << 32) | step);
                scan.frames.push(FrameMark { end: reader.offset, step });
            }
            Ok(None) => return scan,
            Err(message) => {
                scan.rest = Some(FormatError::in_frame(scan.frames.len(), start, message));
                return scan;
            }
        }
    }
}
