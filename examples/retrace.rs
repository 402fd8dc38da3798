//! Many steps forward, and with opposite velocities as many back, to the very bits of the beginning.
//!
//! ```text
//! cargo run --release --example retrace -- [steps, default 1000000]
//! ```
//!
//! The 256 argon atoms of `inputs/gradient-argon.toml` go there with one skin of the neighbour lists and back with another, so
//! that lists are built at other steps. Positions are integers, momenta are integers, and forces a function of the positions'
//! bits: what was added is subtracted. It ends with status 1 where a bit is left over. (`tests/evaluators.rs` does the
//! same with every energy, for fewer steps.)

use md::forces::{ForceSource, Forces};
use md::input::plan::Plan;
use md::integrate::Motion;
use md::observe::progress::Mode;
use md::run::LastStage;
use md::system::State;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// The skins there and back.
const SKINS: [&str; 2] = ["0.6 A", "1.5 A"];

/// The liquid at the beginning of the stage of constant energy.
fn liquid(skin: &str) -> Result<LastStage, Box<dyn Error>> {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/gradient-argon.toml");
    let set = [("forces.skin".to_owned(), skin.to_owned())];
    let plan = Plan::read(&input, &set, &md::catalog()).map_err(|errors| errors.to_string())?;
    Ok(LastStage::reach(plan, Mode::Quiet)?)
}

/// Takes steps; returns how many lists were built for them.
fn go(with: &mut LastStage, state: &mut State, steps: u64) -> Result<u64, Box<dyn Error>> {
    let LastStage { atoms, evaluator, integrator, .. } = with;
    let (mut forces, builds) = (Forces::default(), evaluator.list_builds());
    let mut motion = Motion::start(state, &atoms.masses, evaluator, &mut forces)?;
    motion.forces_only = true;
    for _ in 0..steps {
        integrator.step(&mut motion)?;
    }
    Ok(motion.list_builds() - builds)
}

/// All bits of positions and velocities.
fn bits(state: &State) -> (Vec<[i64; 3]>, Vec<[i32; 3]>, Vec<[u64; 3]>) {
    let velocities = state.velocities.iter().map(|v| v.map(f64::to_bits)).collect();
    (state.positions.raw().to_vec(), state.positions.images().to_vec(), velocities)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(1_000_000), |a| a.parse())?;
    let (mut there, mut back) = (liquid(SKINS[0])?, liquid(SKINS[1])?);
    let mut state = there.state.clone();
    // (the first step puts the momenta on their grid)
    go(&mut there, &mut state, 1)?;
    let (start, clock) = (bits(&state), Instant::now());
    let turn = |s: &mut State| s.velocities.iter_mut().flatten().for_each(|v| *v = -*v);
    let builds = go(&mut there, &mut state, steps)?;
    println!("{steps} steps there, {builds} neighbour lists (skin {})", SKINS[0]);
    let moved = bits(&state).0.iter().zip(&start.0).filter(|(a, b)| a != b).count();
    println!("{moved} of {} atoms are elsewhere", state.positions.len());
    turn(&mut state);
    let builds = go(&mut back, &mut state, steps)?;
    turn(&mut state);
    println!("{steps} steps back, {builds} neighbour lists (skin {})", SKINS[1]);
    let same = bits(&state) == start;
    println!(
        "{} ({:.0} s)",
        if same { "every bit is as it was" } else { "bits differ" },
        clock.elapsed().as_secs_f64()
    );
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
