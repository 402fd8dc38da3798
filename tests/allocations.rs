//! The step loop allocates nothing: memory is taken while a run begins, and used again from step to step, also where
//! neighbour lists are built anew.
//!
//! An allocator that counts stands before the system's. It counts in the threads of a test's own pool, so that neither
//! other tests nor the harness are seen, and after a warm-up in which lists were built several times.
//!
//! **What may still happen** is that a list finds more neighbours than any list before. Its vector then grows: a
//! reallocation of a block that is older than the count, to a larger size than it ever had. Those are told apart, and
//! allowed; an allocation, a block that shrinks or scratch space that grows within a step (it begins with an allocation)
//! is not.

// A global allocator cannot be written without.
#![allow(unsafe_code)]

use md::catalog;
use md::forces::{Evaluator, ForceSource, Forces};
use md::input::plan::Plan;
use md::integrate::velocities::MaxwellBoltzmann;
use md::integrate::{Integrator, Langevin, Motion, VelocityVerlet};
use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// What happened in the threads that belong to it, while it was on.
#[derive(Default)]
struct Count {
    on: AtomicBool,
    allocations: AtomicU64,
    growths: AtomicU64,
    /// Which lines of the project the first thousand allocations came from, and how many from each.
    places: Mutex<BTreeMap<String, u64>>,
}

thread_local! {
    // (const and without a destructor: looking at it allocates nothing)
    static COUNT: Cell<Option<&'static Count>> = const { Cell::new(None) };
}

/// The count of this thread, if it is on.
fn counting() -> Option<&'static Count> {
    COUNT.get().filter(|count| count.on.load(SeqCst))
}

impl Count {
    /// Notes an allocation. (What noting it allocates is not counted.)
    fn allocation(&'static self) {
        COUNT.set(None);
        if self.allocations.fetch_add(1, SeqCst) < 1000 {
            let place = project_line(&Backtrace::force_capture().to_string());
            *self.places.lock().unwrap().entry(place).or_default() += 1;
        }
        COUNT.set(Some(self));
    }

    fn report(&self) -> String {
        let places = self.places.lock().unwrap();
        places.iter().map(|(place, times)| format!("\n  {times} times {place}")).collect()
    }
}

/// The innermost line of the project in a backtrace; all of it, if there is none.
fn project_line(backtrace: &str) -> String {
    let lines = backtrace.lines().filter_map(|line| line.trim().strip_prefix("at ./"));
    let mut outside = lines.skip_while(|line| line.starts_with("tests/allocations.rs"));
    outside.find(|line| line.starts_with("src/")).unwrap_or(backtrace).to_owned()
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it is
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(count) = counting() {
            count.allocation();
        }
        // SAFETY: the caller keeps the contract, which is the same; here and below
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(count) = counting() {
            count.allocation();
        }
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if let Some(count) = counting() {
            match size > layout.size() {
                true => drop(count.growths.fetch_add(1, SeqCst)),
                false => count.allocation(),
            }
        }
        unsafe { System.realloc(block, layout, size) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A system in motion. Times are long enough for several lists, at a temperature that lets atoms move fast.
struct Case<'a> {
    /// An input of the project, or the text of one.
    input: &'a str,
    changes: &'a [(&'a str, &'a str)],
    temperature: f64,
    time_step: f64,
    warm_up: u64,
    steps: u64,
}

impl Case<'_> {
    fn plan(&self) -> Plan {
        let changes: Vec<_> = self.changes.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let read = |path: &Path| Plan::read(path, &changes, &catalog()).map_err(|e| e.to_string()).unwrap();
        if self.input.ends_with(".toml") {
            return read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(self.input));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input.toml");
        std::fs::write(&path, self.input).unwrap();
        read(&path)
    }

    /// With both integrators, on one thread and on two.
    fn allocates_nothing(&self) {
        for threads in [1, 2] {
            for langevin in [false, true] {
                self.watch(threads, langevin);
            }
        }
    }

    fn watch(&self, threads: usize, langevin: bool) {
        let Plan { atoms, mut state, setup, boltzmann, .. } = self.plan();
        let (temperature, seed) = (self.temperature, 7);
        let draw = MaxwellBoltzmann { temperature, boltzmann, seed, remove_drift: true, scale_to: None };
        state.velocities = draw.draw(&atoms.masses).unwrap();
        let mut integrator: Box<dyn Integrator> = match langevin {
            true => Box::new(Langevin::new(self.time_step, 1.0, temperature, boltzmann, seed).unwrap()),
            false => Box::new(VelocityVerlet::new(self.time_step).unwrap()),
        };
        let (mut evaluator, mut forces) = (Evaluator::new(setup).unwrap(), Forces::default());

        // all threads, and what they share, are there before anything is counted
        let count: &'static Count = Box::leak(Box::default());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.start_handler(move |_| COUNT.set(Some(count))).build().unwrap();
        let mut take = |motion: &mut Motion<'_>, steps: u64| {
            for step in 1..=steps {
                // energies and virial every tenth step
                motion.forces_only = step % 10 != 0;
                integrator.step(motion).unwrap();
            }
        };
        let lists = pool.install(|| {
            let mut motion = Motion::start(&mut state, &atoms.masses, &mut evaluator, &mut forces).unwrap();
            take(&mut motion, self.warm_up);
            let before = evaluator.list_builds();
            let mut motion = Motion::resume(&mut state, &atoms.masses, &mut evaluator, &mut forces).unwrap();
            count.on.store(true, SeqCst);
            take(&mut motion, self.steps);
            count.on.store(false, SeqCst);
            evaluator.list_builds() - before
        });
        let what = format!("{} with {threads} thread(s)", integrator.name());
        assert!(lists >= 2, "{what}: {lists} list(s) in {} steps are too few for this test", self.steps);
        let (allocations, growths) = (count.allocations.load(SeqCst), count.growths.load(SeqCst));
        println!("{what}: {} steps, {lists} lists, {growths} vectors grown", self.steps);
        let steps = self.steps;
        assert_eq!(allocations, 0, "{what}: allocations in {steps} steps:{}", count.report());
    }
}

#[test]
fn the_counter_counts() {
    let count: &'static Count = Box::leak(Box::default());
    COUNT.set(Some(count));
    let mut old: Vec<u64> = Vec::with_capacity(1);
    count.on.store(true, SeqCst);
    old.resize(1000, 0);
    let new = vec![1u8; 10];
    count.on.store(false, SeqCst);
    COUNT.set(None);
    assert_eq!((count.allocations.load(SeqCst), count.growths.load(SeqCst)), (1, 1));
    assert_eq!(count.places.lock().unwrap().len(), 1);
    let trace = "0: alloc\n at ./tests/allocations.rs:1:1\n 1: f\n at /elsewhere/vec.rs:2:2\n 2: g\n at ./src/a.rs:3:3\n";
    assert_eq!(project_line(trace), "src/a.rs:3:3");
    drop((old, new));
}

#[test]
fn lennard_jones_liquid() {
    Case {
        input: "argon.toml",
        changes: &[("system.lattice.repeat", "[5, 5, 5]"), ("forces.skin", "0.3 A")],
        temperature: 300.0,
        time_step: 0.01,
        warm_up: 150,
        steps: 150,
    }
    .allocates_nothing();
}

/// Two types with charges, several pair energies over one list.
#[test]
fn molten_salt() {
    let input = r#"
        [system.lattice]
        kind = "bcc"
        types = ["A", "B"]
        constant = "0.38 nm"
        repeat = [6, 6, 6]
        [atoms.A]
        mass = "23 u"
        charge = "1 e"
        [atoms.B]
        mass = "35 u"
        charge = "-1 e"
        [pair.lennard-jones]
        cutoff = "0.8 nm"
        types.A = { epsilon = "0.1 kJ/mol", sigma = "0.28 nm" }
        types.B = { epsilon = "0.4 kJ/mol", sigma = "0.36 nm" }
        [pair.damped-shifted-force]
        cutoff = "0.9 nm"
        alpha = "2 1/nm"
        [forces]
        skin = "0.03 nm"
        [[stage]]
        steps = 1
        integrator.velocity-verlet = { time-step = "1 fs" }
    "#;
    Case { input, changes: &[], temperature: 2000.0, time_step: 0.001, warm_up: 150, steps: 150 }
        .allocates_nothing();
}

/// Bonds, angles and exclusions.
#[test]
fn flexible_water() {
    Case {
        input: "water.toml",
        changes: &[("forces.skin", "0.2 A")],
        temperature: 400.0,
        time_step: 0.0005,
        warm_up: 60,
        steps: 60,
    }
    .allocates_nothing();
}

#[test]
fn embedded_atoms() {
    Case {
        input: "copper.toml",
        changes: &[("system.lattice.repeat", "[4, 4, 4]"), ("forces.skin", "0.1 A")],
        temperature: 2000.0,
        time_step: 0.002,
        warm_up: 100,
        steps: 100,
    }
    .allocates_nothing();
}

#[test]
fn stillinger_weber() {
    Case {
        input: "silicon.toml",
        changes: &[("system.lattice.repeat", "[4, 4, 4]"), ("forces.skin", "0.1 A")],
        temperature: 2000.0,
        time_step: 0.001,
        warm_up: 100,
        steps: 100,
    }
    .allocates_nothing();
}
