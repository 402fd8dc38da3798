//! How far a run is: a bar on a terminal, a line now and then elsewhere, both on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A bar if standard error is a terminal, lines otherwise.
    #[default]
    Auto,
    /// A bar that is drawn over itself.
    Bar,
    /// Plain lines: one for every tenth of the run, but none within ten seconds of another; the last
    /// one always.
    Lines,
    /// Nothing.
    Quiet,
}

/// The bar is drawn at most this often.
const REDRAW: Duration = Duration::from_millis(100);
/// Lines stand at least this far apart in time …
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// … and in the run.
const LINE_FRACTION: f64 = 0.1;

/// The progress of a run or of one of its stages.
///
/// ```
/// use md::observe::progress::{Mode, Progress};
///
/// let mut progress = Progress::start("produce", 0, 1000, Mode::Quiet).time_step(0.002);
/// for step in 1..=1000 {
///     progress.update(step, || format!("T {:.0} K", 300.0));
/// }
/// progress.finish("T 300 K");
/// ```
pub struct Progress {
    label: String,
    span: Span,
    step: u64,
    start: Instant,
    shown: Instant,
    output: Output,
}

enum Output {
    Bar(ProgressBar),
    Lines { pacer: Pacer, out: Box<dyn Write + Send> },
    Quiet,
}

impl Progress {
    /// Starts the clock of a run, or of a stage, over the steps from `first` to `last`.
    pub fn start(label: &str, first: u64, last: u64, mode: Mode) -> Progress {
        let mode = match mode {
            Mode::Auto if std::io::stderr().is_terminal() => Mode::Bar,
            Mode::Auto => Mode::Lines,
            other => other,
        };
        let output = match mode {
            Mode::Quiet => Output::Quiet,
            Mode::Bar => {
                let bar = ProgressBar::with_draw_target(
                    Some(last.saturating_sub(first)),
                    ProgressDrawTarget::stderr(),
                );
                if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:12}] {wide_msg}") {
                    bar.set_style(style.progress_chars("=> "));
                }
                bar.set_prefix(label.to_string());
                Output::Bar(bar)
            }
            _ => Output::Lines { pacer: Pacer::new(first, last), out: Box::new(std::io::stderr()) },
        };
        let now = Instant::now();
        let span = Span { first, resumed: first, last, time_step: None };
        Progress { label: label.into(), span, step: first, start: now, shown: now, output }
    }

    /// Takes up at `step`: what was done before counts as done, but not for the speed.
    pub fn resumed_at(mut self, step: u64) -> Self {
        self.step = step;
        self.span.resumed = step;
        match &mut self.output {
            Output::Bar(bar) => bar.set_position(step.saturating_sub(self.span.first)),
            Output::Lines { pacer, .. } => pacer.fraction = fraction(self.span.first, step, self.span.last),
            Output::Quiet => {}
        }
        self
    }

    /// Lets the speed be told in ns/day: `picoseconds` is the time a step simulates.
    pub fn time_step(mut self, picoseconds: f64) -> Self {
        self.span.time_step = Some(picoseconds).filter(|dt| dt.is_finite() && *dt > 0.0);
        self
    }

    /// Tells that `step` is done. Cheap enough to call for every step: `message` (temperature, energy)
    /// is only asked for when something is shown.
    pub fn update(&mut self, step: u64, message: impl FnOnce() -> String) {
        self.step = step;
        let now = match self.output {
            Output::Quiet => return,
            _ => Instant::now(),
        };
        let elapsed = now.duration_since(self.start);
        let due = match &mut self.output {
            Output::Bar(_) => now.duration_since(self.shown) >= REDRAW,
            Output::Lines { pacer, .. } => pacer.due(step, elapsed),
            Output::Quiet => false,
        };
        if !due {
            return;
        }
        self.shown = now;
        let line = self.span.status(step, elapsed, &message());
        match &mut self.output {
            Output::Bar(bar) => {
                bar.set_message(line);
                bar.set_position(step.saturating_sub(self.span.first));
            }
            Output::Lines { out, .. } => {
                // Nowhere to complain to if standard error is closed.
                let _ = writeln!(out, "{}: {line}", self.label);
            }
            Output::Quiet => {}
        }
    }

    /// Writes a line of its own, above the bar; not shown when quiet.
    pub fn say(&mut self, line: &str) {
        match &mut self.output {
            Output::Quiet => {}
            Output::Bar(bar) => bar.suspend(|| {
                let _ = writeln!(std::io::stderr(), "{line}");
            }),
            Output::Lines { out, .. } => {
                let _ = writeln!(out, "{line}");
            }
        }
    }

    /// There is nothing more to do, although steps are left.
    pub fn ended(mut self) -> Self {
        self.span.last = self.step;
        self
    }

    /// Ends with a last line that stays, also when the run stopped early.
    pub fn finish(mut self, message: &str) {
        let line = self.span.summary(self.step, self.start.elapsed(), message);
        match std::mem::replace(&mut self.output, Output::Quiet) {
            Output::Quiet => {}
            Output::Bar(bar) => {
                bar.finish_and_clear();
                let _ = writeln!(std::io::stderr(), "{}: {line}", self.label);
            }
            Output::Lines { mut out, .. } => {
                let _ = writeln!(out, "{}: {line}", self.label);
            }
        }
    }
}

impl Drop for Progress {
    /// A run that ends in an error leaves no bar behind.
    fn drop(&mut self) {
        if let Output::Bar(bar) = &self.output {
            bar.finish_and_clear();
        }
    }
}

/// Decides when a plain line is due.
#[derive(Clone, Debug)]
struct Pacer {
    first: u64,
    last: u64,
    fraction: f64,
    elapsed: Duration,
}

impl Pacer {
    fn new(first: u64, last: u64) -> Pacer {
        Pacer { first, last, fraction: 0.0, elapsed: Duration::ZERO }
    }

    /// Whether a line is due; if so, the next one is counted from here. The end's line is left to
    /// [`Progress::finish`].
    fn due(&mut self, step: u64, elapsed: Duration) -> bool {
        let fraction = fraction(self.first, step, self.last);
        let due = step < self.last
            && elapsed.saturating_sub(self.elapsed) >= LINE_INTERVAL
            && fraction - self.fraction >= LINE_FRACTION * (1.0 - 1e-9);
        if due {
            (self.fraction, self.elapsed) = (fraction, elapsed);
        }
        due
    }
}

/// How much of the way from `first` to `last` is done.
fn fraction(first: u64, step: u64, last: u64) -> f64 {
    if last <= first {
        return 1.0;
    }
    (step.saturating_sub(first) as f64 / (last - first) as f64).min(1.0)
}

/// Steps per second, and ns/day if a step's time is known.
fn speeds(steps: u64, elapsed: Duration, time_step: Option<f64>) -> (String, Option<String>) {
    let seconds = elapsed.as_secs_f64();
    if steps == 0 || seconds <= 0.0 {
        return ("– steps/s".into(), None);
    }
    let rate = steps as f64 / seconds;
    // ps a step × steps a second × seconds a day / 1000 ps a ns
    let per_day = time_step.map(|dt| format!("{} ns/day", human_rate(dt * rate * 86.4)));
    (format!("{} steps/s", human_rate(rate)), per_day)
}

fn with_message(line: String, message: &str) -> String {
    if message.is_empty() { line } else { format!("{line}, {message}") }
}

/// The steps that are to be done, and where they were taken up.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    resumed: u64,
    last: u64,
    time_step: Option<f64>,
}

impl Span {
    /// The state in a line: `25 %, 3 min left, step 25,000/100,000, 72.0 ns/day, T 300 K`.
    fn status(&self, step: u64, elapsed: Duration, message: &str) -> String {
        let done = step.saturating_sub(self.resumed);
        let percent = (fraction(self.first, step, self.last) * 100.0).floor();
        let left = if done == 0 {
            "– left".into()
        } else {
            let seconds = elapsed.as_secs_f64() / done as f64 * self.last.saturating_sub(step) as f64;
            format!("{} left", human_time(seconds))
        };
        let (step, last) = (human_count(step), human_count(self.last));
        let (rate, per_day) = speeds(done, elapsed, self.time_step);
        let speed = per_day.unwrap_or(rate);
        with_message(format!("{percent:>3} %, {left}, step {step}/{last}, {speed}"), message)
    }

    /// What was done, in a line.
    fn summary(&self, step: u64, elapsed: Duration, message: &str) -> String {
        let done = step.saturating_sub(self.resumed);
        if done == 0 {
            let line = match step < self.last {
                true => format!("stopped at step {} of {}", human_count(step), human_count(self.last)),
                false => "nothing left to do".into(),
            };
            return with_message(line, message);
        }
        let (rate, per_day) = speeds(done, elapsed, self.time_step);
        let speed = per_day.map_or(rate.clone(), |per_day| format!("{rate}, {per_day}"));
        let time = human_time(elapsed.as_secs_f64());
        let plural = if done == 1 { "" } else { "s" };
        let mut line = format!("{} step{plural} in {time} ({speed})", human_count(done));
        if step < self.last {
            line += &format!(", stopped at step {} of {}", human_count(step), human_count(self.last));
        }
        with_message(line, message)
    }
}

/// A duration in the two units that matter: `0.25 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub fn human_time(seconds: f64) -> String {
    if !seconds.is_finite() || seconds >= 3.2e9 {
        return "a very long time".into();
    }
    let seconds = seconds.max(0.0);
    if seconds < 0.0095 {
        return format!("{:.1} ms", seconds * 1e3);
    }
    if seconds < 9.95 {
        return format!("{} s", three_digits(seconds).trim_end_matches('0').trim_end_matches('.'));
    }
    let whole = seconds.round() as u64;
    let pair = |large: u64, large_name: &str, small: u64, small_name: &str| {
        if small == 0 {
            format!("{large} {large_name}")
        } else {
            format!("{large} {large_name} {small} {small_name}")
        }
    };
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => pair(whole / 60, "min", whole % 60, "s"),
        3_600..86_400 => {
            let minutes = whole / 60;
            pair(minutes / 60, "h", minutes % 60, "min")
        }
        _ => {
            let hours = whole / 3_600;
            pair(hours / 24, "d", hours % 24, "h")
        }
    }
}

/// A whole number in groups of three digits: `1,234,567`.
pub fn human_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A positive quantity with three digits and a prefix: `0.52`, `12.3`, `4.57 k`, `1.23 M`.
pub fn human_rate(rate: f64) -> String {
    if !rate.is_finite() || rate < 0.0 {
        return "–".into();
    }
    let mut scaled = rate;
    for prefix in ["", " k", " M", " G"] {
        if scaled < 999.5 {
            return format!("{}{prefix}", three_digits(scaled));
        }
        scaled /= 1000.0;
    }
    format!("{} T", three_digits(scaled))
}

/// A number below a thousand with three significant digits, at most three decimals.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn times_read_well() {
        let cases = [
            (0.0, "0.0 ms"),
            (0.0042, "4.2 ms"),
            (0.25, "0.25 s"),
            (9.949, "9.95 s"),
            (2.0, "2 s"),
            (12.4, "12 s"),
            (59.6, "1 min"),
            (200.0, "3 min 20 s"),
            (3_599.7, "1 h"),
            (7_500.0, "2 h 5 min"),
            (86_400.0 * 3.0 + 4.0 * 3_600.0, "3 d 4 h"),
            (-1.0, "0.0 ms"),
            (f64::NAN, "a very long time"),
            (1e300, "a very long time"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human_time(seconds), text);
        }
    }

    #[test]
    fn counts_and_rates_read_well() {
        for (count, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (25_000, "25,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(human_count(count), text);
        }
        assert_eq!(human_count(u64::MAX), "18,446,744,073,709,551,615");
        for (rate, text) in [
            (0.0, "0.000"),
            (0.5172, "0.517"),
            (12.34, "12.3"),
            (999.4, "999"),
            (999.7, "1.00 k"),
            (4_567.0, "4.57 k"),
            (13.1e6, "13.1 M"),
            (f64::INFINITY, "–"),
            (1e20, "100000000 T"),
        ] {
            assert_eq!(human_rate(rate), text);
        }
    }

    #[test]
    fn a_line_says_where_the_run_is() {
        let minute = Duration::from_secs(60);
        let span = Span { first: 0, resumed: 0, last: 100_000, time_step: None };
        assert_eq!(
            Span { time_step: Some(0.002), ..span }.status(25_000, minute, "T 300 K"),
            // 25,000 steps in 60 s are 416.7 steps/s, 0.8333 ps/s, 72 ns/day; three more minutes to go.
            " 25 %, 3 min left, step 25,000/100,000, 72.0 ns/day, T 300 K"
        );
        // A resumed run is as far as its steps say, and as fast as it is now.
        assert_eq!(
            Span { resumed: 50_000, ..span }.status(75_000, minute, ""),
            " 75 %, 1 min left, step 75,000/100,000, 417 steps/s"
        );
        // A stage counts from its own start.
        let stage = Span { first: 50_000, resumed: 50_000, ..span };
        assert_eq!(stage.status(75_000, minute, ""), " 50 %, 1 min left, step 75,000/100,000, 417 steps/s");
        let nothing = Span { first: 5, resumed: 5, last: 0, time_step: None };
        assert_eq!(nothing.status(5, Duration::ZERO, ""), "100 %, – left, step 5/0, – steps/s");
        let short = Span { last: 1_200, ..span };
        assert_eq!(
            short.summary(1_200, minute, "E −3 kJ/mol"),
            "1,200 steps in 1 min (20.0 steps/s), E −3 kJ/mol"
        );
        assert_eq!(
            Span { resumed: 1_200, ..short }.summary(1_200, minute, "T 1 K"),
            "nothing left to do, T 1 K"
        );
        assert_eq!(Span { resumed: 9, ..short }.summary(9, minute, ""), "stopped at step 9 of 1,200");
        assert_eq!(
            short.summary(600, minute, ""),
            "600 steps in 1 min (10.0 steps/s), stopped at step 600 of 1,200"
        );
    }

    #[test]
    fn lines_are_rare() {
        // A slow run (1000 s): a tenth is rarer than ten seconds.
        let lines = |first: u64, last: u64, seconds_per_step: f64| {
            let mut pacer = Pacer::new(first, last);
            (first + 1..=last)
                .filter(|s| pacer.due(*s, Duration::from_secs_f64((*s - first) as f64 * seconds_per_step)))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(0, 1000, 1.0), [100, 200, 300, 400, 500, 600, 700, 800, 900]);
        // One of 25 s: ten seconds are rarer. One of 5 s: only the last line, which `finish` writes.
        assert_eq!(lines(0, 1000, 0.025), [400, 800]);
        assert!(lines(0, 1000, 0.005).is_empty());
        assert_eq!(lines(500, 1000, 1.0).first(), Some(&550));
        assert!(!Pacer::new(7, 7).due(7, Duration::from_secs(100)));
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_quick_run_still_says_one_line() {
        let shared = Shared::default();
        let mut progress = Progress::start("produce", 0, 100, Mode::Lines);
        progress.output = Output::Lines { pacer: Pacer::new(0, 100), out: Box::new(shared.clone()) };
        for step in 1..=100 {
            progress.update(step, || panic!("no line is due"));
        }
        progress.say("a word");
        progress.finish("T 300 K");
        let text = String::from_utf8(shared.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, "a word"));
        assert!(lines[1].starts_with("produce: 100 steps in ") && lines[1].ends_with(", T 300 K"), "{text}");
    }

    #[test]
    fn quiet_asks_for_nothing() {
        let mut progress = Progress::start("x", 3, 1, Mode::Quiet).time_step(f64::NAN);
        progress.update(2, || panic!("asked"));
        progress.say("x");
        progress.finish("");
    }
}
