//! What anybody would test of a potential of their own.

use md::autodiff::check::{Pair, check_energy};
use md::forces::{Evaluator, ForceSource, Forces, Kind};
use md::input::plan::Plan;
use md::input::reader::Document;
use own_potential::NineSix;

#[test]
fn every_derivative_agrees_with_differences() {
    // the vector between the two atoms, near and far
    let places = [[0.3, 0.05, -0.1], [0.2, -0.2, 0.2], [0.4, 0.3, 0.1], [-0.1, 0.2, 0.9]];
    let report = check_energy::<Pair<NineSix>>(&[0.7, 0.34], &places.map(|d| d.to_vec()));
    assert!(report.ok(), "{report}");
}

#[test]
fn an_input_can_use_it() {
    let document = Document::parse("own.toml", include_str!("../own.toml"), &[]).unwrap();
    let catalog = md::catalog().pair::<NineSix>();
    let plan = Plan::of(&document, &catalog).unwrap();
    let mut evaluator = Evaluator::new(plan.setup).unwrap();
    let (mut fused, mut tape) = (Forces::default(), Forces::default());
    evaluator.evaluate(&plan.state.cell, &plan.state.positions, &mut fused).unwrap();
    evaluator.method.kind = Kind::Tape;
    evaluator.evaluate(&plan.state.cell, &plan.state.positions, &mut tape).unwrap();
    // in a perfect crystal no atom is pulled anywhere
    assert!(fused.forces.iter().chain(&tape.forces).flatten().all(|f| f.abs() < 1e-12));
    assert!((fused.energy() - tape.energy()).abs() < 1e-12 * tape.energy().abs());
    assert!(fused.energy() < 0.0);
}
