//! Analyses against cases whose answers are known exactly: lattices, ideal gases, straight flight, random walks and
//! autoregressive series. Expected values are arithmetic on the page; random ones are compared within errors that
//! theory gives.

use md::analysis::{AnalysisError, Msd, Rdf, blocks, drift, frames, rdf, series};
use md::formats::{Format, Frame, FrameUnits, Precision, writer};
use md::plot::Table;
use md::random::{Noise, Purpose, uniform};
use md::system::{Cell, Positions};

fn noise(seed: u64) -> Noise {
    Noise::new(seed, Purpose::Test)
}

fn cube(l: f64) -> Cell {
    Cell::new([[l, 0.0, 0.0], [0.0, l, 0.0], [0.0, 0.0, l]], [true; 3]).unwrap()
}

fn threads<T: Send>(n: usize, f: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(f)
}

// ------------------------------------------------------------------------------------------- g(r)

/// How many lattice points are how far from one of them: the first shells of fcc, in units of its constant.
const FCC: [(f64, usize); 6] = [(0.5, 12), (1.0, 6), (1.5, 24), (2.0, 12), (2.5, 24), (3.0, 8)];

fn fcc(repeat: usize) -> Vec<[f64; 3]> {
    let mut points = Vec::new();
    for (x, y, z) in (0..repeat)
        .flat_map(|x| (0..repeat).flat_map(move |y| (0..repeat).map(move |z| (x as f64, y as f64, z as f64))))
    {
        points.extend([[x, y, z], [x + 0.5, y + 0.5, z], [x + 0.5, y, z + 0.5], [x, y + 0.5, z + 0.5]]);
    }
    points
}

#[test]
fn shells_of_a_lattice() {
    // constant 1 nm; 4 × 4 × 4 cells hold distances up to 2 nm: shells at √½, 1, √1.5 … √3 = 1.73
    let (points, cell) = (fcc(4), cube(4.0));
    let n = points.len();
    assert_eq!(n, 256);
    let mut rdf = Rdf::new(1.8, 60).unwrap(); // bins of 0.03 nm: no shell is at an edge
    rdf.add_points(&points, &cell).unwrap();
    rdf.add_points(&points, &cell).unwrap();
    let shells = rdf.finish();
    assert_eq!((rdf.frames(), shells.len()), (2, 60));
    let width = rdf.width();
    let mut within = 0;
    let mut full = 0;
    for (squared, count) in FCC {
        within += count;
        let k = (f64::sqrt(squared) / width) as usize;
        // the shell's atoms over those of an ideal gas of N − 1 others: 4π/3 (r₂³ − r₁³) (N − 1)/V
        let (inner, outer) = (k as f64 * width, (k + 1) as f64 * width);
        let ideal =
            4.0 / 3.0 * std::f64::consts::PI * (outer.powi(3) - inner.powi(3)) * (n - 1) as f64 / 64.0;
        let expected = count as f64 / ideal;
        let found = shells[k];
        assert!((found.g / expected - 1.0).abs() < 1e-12, "{found:?} {expected}");
        assert!((found.coordination - within as f64).abs() < 1e-12, "{found:?} {within}");
        assert!((found.r - 0.5 * (inner + outer)).abs() < 1e-12);
        full += 1;
    }
    assert_eq!(shells.iter().filter(|s| s.g != 0.0).count(), full);
}

#[test]
fn an_oblique_cell_holds_the_same_lattice() {
    // the primitive vectors of fcc, four times each, and the same lattice through a strongly sheared set
    let a = [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]];
    let at = |s: [f64; 3]| -> [f64; 3] { std::array::from_fn(|x| (0..3).map(|k| s[k] * a[k][x]).sum()) };
    let mut points = Vec::new();
    for i in 0..512 {
        points.push(at([(i / 64) as f64, (i / 8 % 8) as f64, (i % 8) as f64]));
    }
    let vectors = a.map(|v| v.map(|x| 8.0 * x));
    let mut sheared = vectors;
    for x in 0..3 {
        sheared[1][x] += 2.0 * vectors[0][x];
        sheared[2][x] -= 3.0 * vectors[1][x];
    }
    // eight layers are 8/√3 = 4.6 nm high, so distances up to 2.3 nm fit
    for vectors in [vectors, sheared] {
        let cell = Cell::new(vectors, [true; 3]).unwrap();
        let mut rdf = Rdf::new(1.8, 60).unwrap();
        rdf.add_points(&points, &cell).unwrap();
        let shells = rdf.finish();
        let mut within = 0;
        for (squared, count) in FCC {
            within += count;
            assert_eq!(shells[(f64::sqrt(squared) / rdf.width()) as usize].coordination, within as f64);
        }
        assert_eq!(shells[59].coordination, within as f64);
    }
}

#[test]
fn an_ideal_gas_has_no_structure() {
    // few atoms, so that N instead of N − 1 would show: 1/20
    let cell = Cell::new([[2.0, 0.0, 0.0], [0.9, 2.0, 0.0], [-0.7, 0.6, 2.2]], [true; 3]).unwrap();
    let (n, frames) = (20, 4000);
    let r_max = 0.5 * cell.heights().into_iter().fold(f64::INFINITY, f64::min);
    let mut all = Rdf::new(r_max, 8).unwrap();
    let (a, b): (Vec<u32>, Vec<u32>) = ((0..8).collect(), (5..20).collect());
    let mut between = Rdf::between(r_max, 8, &a, &b).unwrap();
    for frame in 0..frames {
        let point = |i: usize| {
            let ([x, y], [z, _]) = (noise(1).bits(frame, i, 0), noise(1).bits(frame, i, 1));
            cell.cartesian([uniform(x), uniform(y), uniform(z)])
        };
        let points: Vec<_> = (0..n).map(point).collect();
        all.add_points(&points, &cell).unwrap();
        between.add_points(&points, &cell).unwrap();
    }
    let volume = cell.volume().unwrap();
    // ordered pairs; unordered ones of an ideal gas are independent, so their numbers scatter as Poisson's
    for (rdf, pairs, unordered) in [(all, 380.0, 190.0), (between, 8.0 * 15.0 - 3.0, 117.0)] {
        let (mut chi2, mut sum) = (0.0, 0.0);
        for (k, shell) in rdf.finish().into_iter().enumerate() {
            let w = rdf.width();
            let v = 4.0 / 3.0 * std::f64::consts::PI * w.powi(3) * ((k + 1).pow(3) - k.pow(3)) as f64;
            let expected = unordered * v / volume * frames as f64;
            let sigma = expected.sqrt().recip();
            assert!((shell.g - 1.0).abs() < 4.5 * sigma, "bin {k}: {} ± {sigma}", shell.g);
            chi2 += ((shell.g - 1.0) / sigma).powi(2);
            sum += shell.g * v;
        }
        assert!(chi2 < 30.0, "{chi2}"); // of 8 degrees of freedom: p < 2e-4
        let sphere = 4.0 / 3.0 * std::f64::consts::PI * r_max.powi(3);
        let sigma = (unordered * sphere / volume * frames as f64).sqrt().recip();
        assert!((sum / sphere - 1.0).abs() < 3.5 * sigma, "{} of {pairs} pairs", sum / sphere);
    }
}

#[test]
fn selections_and_merging() {
    let cell = cube(4.0);
    let points = fcc(4);
    // one atom and all others: the shells of one atom, exactly
    let others: Vec<u32> = (0..256).collect();
    let mut one = Rdf::between(1.8, 60, &[17], &others).unwrap();
    one.add_points(&points, &cell).unwrap();
    assert_eq!(one.finish()[59].coordination, 86.0);
    // of 4 interleaved cubic lattices: 6 neighbours 1 nm away and no other within 1.4 nm
    let corner: Vec<u32> = (0..256).step_by(4).collect();
    let mut own = Rdf::between(1.35, 10, &corner, &corner).unwrap();
    own.add_points(&points, &cell).unwrap();
    assert_eq!(own.finish()[9].coordination, 6.0);
    let centre: Vec<u32> = (1..256).step_by(4).collect();
    let mut cross = Rdf::between(0.8, 10, &corner, &centre).unwrap();
    cross.add_points(&points, &cell).unwrap();
    assert_eq!(cross.finish()[9].coordination, 4.0); // the face centres of one plane

    let random = |seed| -> Vec<[f64; 3]> {
        (0..300).map(|i| std::array::from_fn(|k| noise(seed).normals(0, i)[k])).collect()
    };
    let empty = Rdf::new(2.0, 50).unwrap();
    let (mut a, mut b, mut both) = (empty.clone(), empty.clone(), empty.clone());
    a.add_points(&random(2), &cell).unwrap();
    b.add_points(&random(3), &cell).unwrap();
    both.add_points(&random(2), &cell).unwrap();
    both.add_points(&random(3), &cell).unwrap();
    a.merge(&b).unwrap();
    assert_eq!(a, both);
    assert!(a.merge(&Rdf::new(2.0, 49).unwrap()).is_err() && a.merge(&Rdf::new(1.9, 50).unwrap()).is_err());
    for n in [1, 2, 5] {
        let again = threads(n, || {
            let mut again = empty.clone();
            again.add_points(&random(2), &cell).unwrap();
            again.add_points(&random(3), &cell).unwrap();
            again
        });
        assert_eq!(again, both);
    }
}

#[test]
fn distances_beyond_half_the_cell_are_refused() {
    let points = [[0.1; 3], [0.9; 3]];
    let mut rdf = Rdf::new(1.0, 10).unwrap();
    rdf.add_points(&points, &cube(2.0)).unwrap();
    let error = rdf.add_points(&points, &cube(1.99)).unwrap_err();
    assert!(
        matches!(error, AnalysisError::Range { r_max: 1.0, limit } if (limit - 0.995).abs() < 1e-12),
        "{error}"
    );
    // a cell whose edges are long but whose height is not
    let tilted = Cell::new([[2.0, 0.0, 0.0], [1.0, 1.8, 0.0], [0.0, 0.0, 3.0]], [true; 3]).unwrap();
    assert!(matches!(rdf.add_points(&points, &tilted), Err(AnalysisError::Range { .. })));
    let open = Cell::enclosing(None, [false; 3], &points).unwrap();
    assert!(matches!(rdf.add_points(&points, &open), Err(AnalysisError::NotPeriodic)));
    assert!(matches!(rdf.add_points(&points[..1], &cube(2.0)), Err(AnalysisError::TooFew { .. })));
    assert!(rdf.add_points(&[[f64::NAN; 3], [0.0; 3]], &cube(2.0)).is_err());
    assert_eq!(rdf.frames(), 1);
    let mut selected = Rdf::between(1.0, 10, &[0], &[2]).unwrap();
    let error = selected.add_points(&points, &cube(2.0));
    assert!(matches!(error, Err(AnalysisError::Selection { atom: 2, count: 2 })));
    for (r_max, bins) in [(0.0, 5), (f64::NAN, 5), (1.0, 0)] {
        assert!(matches!(Rdf::new(r_max, bins), Err(AnalysisError::Argument { .. })));
    }
}

#[test]
fn peaks_are_found_between_bins() {
    let shell = |r: f64, g: f64| rdf::Shell { r, g, coordination: 0.0 };
    let curve = |g: &dyn Fn(f64) -> f64| -> Vec<_> {
        (0..200).map(|k| (f64::from(k) + 0.5) * 0.005).map(|r| shell(r, g(r))).collect()
    };
    // an exact parabola comes back exactly; a smaller bump below 1 before it is no peak
    let g =
        |r: f64| if r < 0.3 { 0.5 - 40.0 * (r - 0.2).powi(2) } else { 2.7 - 300.0 * (r - 0.371_3).powi(2) };
    let peak = rdf::first_peak(&curve(&g), 4).unwrap();
    assert!((peak.r - 0.371_3).abs() < 1e-12 && (peak.g - 2.7).abs() < 1e-11, "{peak:?}");
    assert_eq!(rdf::first_peak(&curve(&|_| 1.0), 4), None);
    assert_eq!(rdf::first_peak(&curve(&|r| r), 4), None);
    assert_eq!(rdf::first_peak(&[], 4), None);
}

// -------------------------------------------------------------------------------------------- MSD

/// Velocities of 50 atoms without a common drift.
fn velocities(n: usize) -> Vec<[f64; 3]> {
    let mut v: Vec<[f64; 3]> = (0..n).map(|i| std::array::from_fn(|k| noise(4).normals(0, i)[k])).collect();
    let mean: [f64; 3] = std::array::from_fn(|k| v.iter().map(|v| v[k]).sum::<f64>() / n as f64);
    v.iter_mut().for_each(|v| (0..3).for_each(|k| v[k] -= mean[k]));
    v
}

#[test]
fn straight_flight_is_ballistic() {
    // MSD = ⟨v²⟩ τ² whatever the common drift, from unwrapped, wrapped and counted positions
    let n = 50;
    let v = velocities(n);
    let squared = v.iter().flatten().map(|x| x * x).sum::<f64>() / n as f64;
    let cell = Cell::new([[3.0, 0.0, 0.0], [1.4, 2.9, 0.0], [-1.2, 1.3, 3.1]], [true; 3]).unwrap();
    let masses = vec![2.0; n];
    let mut three = [(); 3].map(|()| Msd::new(&masses).unwrap());
    let dt = 0.15;
    for step in 0..60 {
        let t = 7.0 + dt * f64::from(step);
        let points: Vec<[f64; 3]> = v.iter().map(|v| [0, 1, 2].map(|k| 0.3 + (v[k] + 1.5) * t)).collect();
        let positions = Positions::from_cartesian(&cell, &points).unwrap();
        let wrapped: Vec<_> = points.iter().map(|&r| cell.wrap_given(r).0).collect();
        three[0].add_unwrapped(t, &points).unwrap();
        three[1].add_wrapped(t, &wrapped, &cell).unwrap();
        three[2].add(t, &positions, &cell).unwrap();
    }
    for msd in &three {
        assert!((msd.interval() - dt).abs() < 1e-12 && msd.frames() == 60);
        let curve = msd.curve(usize::MAX);
        assert_eq!(curve.len(), 60);
        for (k, p) in curve.iter().enumerate() {
            let tau = dt * k as f64;
            assert!((p.msd - squared * tau * tau).abs() < 1e-9 * (1.0 + p.msd), "{p:?}");
            assert!((p.lag - tau).abs() < 1e-12 && p.origins == 60 - k);
        }
    }
    // what is already unwrapped stays so
    let mut unwrapped = Msd::new(&masses).unwrap();
    for step in 0..60 {
        let t = dt * f64::from(step);
        let points: Vec<[f64; 3]> = v.iter().map(|v| v.map(|v| v * t)).collect();
        unwrapped.add_wrapped(t, &points, &cell).unwrap();
    }
    assert!((unwrapped.curve(59)[59].msd / (squared * (59.0 * dt).powi(2)) - 1.0).abs() < 1e-9);
}

#[test]
fn a_random_walk_diffuses() {
    // steps of standard deviation s in each component: MSD = 3 s² k, D = s²/(2 dt); without the centre of mass
    // times 1 − 1/N
    let (n, frames, s, dt) = (100usize, 2400u64, 0.05, 0.2);
    let cell = cube(1.0); // ten times the steps: half of it is never reached
    let mut walk = Msd::new(&vec![1.0; n]).unwrap();
    let mut points = vec![[0.0; 3]; n];
    for frame in 0..frames {
        let wrapped: Vec<_> = points.iter().map(|&r| cell.wrap_given(r).0).collect();
        walk.add_wrapped(dt * frame as f64, &wrapped, &cell).unwrap();
        for (i, r) in points.iter_mut().enumerate() {
            let xi = noise(5).normals(frame, i);
            (0..3).for_each(|k| r[k] += 0.01 + s * xi[k]);
        }
    }
    let expected = s * s / (2.0 * dt) * (1.0 - 1.0 / n as f64);
    let d = walk.diffusion((1.0, 4.0), 12).unwrap();
    assert_eq!(d.blocks.len(), 12);
    assert!((d.value - expected).abs() < 3.5 * d.error, "{} ± {} for {expected}", d.value, d.error);
    // lines through lags of 5 to 20 steps are worth about 3 n × (frames/20) × 1/2 independent squares or more
    assert!(d.error < 0.03 * expected && d.error > 0.001 * expected, "{}", d.error);
    assert!(d.intercept.abs() < 0.05 * 3.0 * s * s * 12.5, "{}", d.intercept);
    let first = walk.curve(1)[1].msd;
    let sigma = (2.0 / (3.0 * n as f64 * frames as f64)).sqrt(); // squares of independent normal numbers
    assert!((first / (3.0 * s * s * 0.99) - 1.0).abs() < 4.0 * sigma, "{first}");
    // bit by bit for every number of threads
    let again = [1, 3].map(|t| threads(t, || walk.diffusion((1.0, 4.0), 12).unwrap()));
    assert!(again.iter().all(|a| *a == d));
}

#[test]
fn the_error_of_a_diffusion_coefficient_is_honest() {
    // 60 walks of their own: (D − expected)/error is Student's t with 9 degrees of freedom, of variance 9/7; that
    // of 60 such numbers scatters by about 0.3
    let (n, frames) = (8usize, 400u64);
    let (mut sum, mut squares) = (0.0, 0.0);
    for seed in 0..60 {
        let mut walk = Msd::new(&vec![1.0; n]).unwrap();
        let mut points = vec![[0.0; 3]; n];
        for frame in 0..frames {
            walk.add_unwrapped(frame as f64, &points).unwrap();
            for (i, r) in points.iter_mut().enumerate() {
                let xi = noise(100 + seed).normals(frame, i);
                (0..3).for_each(|k| r[k] += xi[k]);
            }
        }
        let d = walk.diffusion((2.0, 6.0), 10).unwrap();
        let x = (d.value - 0.5 * (1.0 - 1.0 / n as f64)) / d.error;
        sum += x;
        squares += x * x;
    }
    let (mean, variance) = (sum / 60.0, squares / 60.0);
    assert!(mean.abs() < 4.0 * (9.0f64 / 7.0 / 60.0).sqrt(), "{mean}");
    assert!((0.5..2.6).contains(&variance), "{variance}");
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let mut msd = Msd::new(&[1.0, 2.0]).unwrap();
    msd.add_unwrapped(0.0, &[[0.0; 3]; 2]).unwrap();
    assert!(matches!(msd.add_unwrapped(0.0, &[[0.0; 3]; 2]), Err(AnalysisError::Times { frame: 1, .. })));
    msd.add_unwrapped(0.5, &[[0.0; 3]; 2]).unwrap();
    let error = msd.add_unwrapped(1.5, &[[0.0; 3]; 2]).unwrap_err();
    assert_eq!(error.to_string(), "frame 2 (from 0) is at 1.5 ps, where 1 ps was expected");
    assert!(matches!(msd.add_unwrapped(1.0, &[[0.0; 3]]), Err(AnalysisError::Lengths { .. })));
    assert!(matches!(msd.add_wrapped(1.0, &[[0.0; 3]], &cube(1.0)), Err(AnalysisError::Lengths { .. })));
    let bad = [[0.0; 3], [0.0, f64::INFINITY, 0.0]];
    assert!(matches!(msd.add_unwrapped(1.0, &bad), Err(AnalysisError::NotFinite { index: 4, .. })));
    assert!(msd.diffusion((0.5, 1.0), 2).is_err() && msd.diffusion((0.0, 0.5), 1).is_err());
    assert!(Msd::new(&[]).is_err() && Msd::new(&[-1.0]).is_err() && Msd::of(&[1.0], &[1]).is_err());
    // of a selection, relative to the centre of all: masses 1 and 3, the light one moves by 4 and the centre by 1
    let mut light = Msd::of(&[1.0, 3.0], &[0]).unwrap();
    light.add_unwrapped(0.0, &[[0.0; 3]; 2]).unwrap();
    light.add_unwrapped(1.0, &[[4.0, 0.0, 0.0], [0.0; 3]]).unwrap();
    assert_eq!(light.curve(1)[1].msd, 9.0);
}

// ----------------------------------------------------------------------------------------- series

/// x ← φ x + √(1 − φ²) ξ, of variance 1 from the start.
fn autoregressive(phi: f64, n: usize, seed: u64) -> Vec<f64> {
    let xi = noise(seed);
    let mut x = xi.normals(u64::MAX, 0)[0];
    let step = |k: usize| {
        let out = x;
        x = phi * x + (1.0 - phi * phi).sqrt() * xi.normals(k as u64, 0)[0];
        out
    };
    (0..n).map(step).collect()
}

/// The variance of the mean of n such values: Σ_jk φ^|j−k| / n².
fn variance_of_mean(phi: f64, n: f64) -> f64 {
    ((1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi.powf(n)) / (n * (1.0 - phi).powi(2))) / n
}

#[test]
fn blocking_finds_the_error_of_the_mean() {
    for (phi, n) in [(0.0, 20_000), (0.5, 20_000), (0.9, 50_000), (0.98, 200_000)] {
        let expected = variance_of_mean(phi, n as f64).sqrt();
        let found = blocks::mean(&autoregressive(phi, n, 6)).unwrap();
        assert!(found.converged, "{phi}");
        // 2 % more for what correlations are left in blocks of the length chosen
        let allowed = 3.0 * found.uncertainty + 0.02 * expected;
        assert!((found.error - expected).abs() < allowed, "{phi}: {found:?} for {expected}");
        assert!(found.agrees(0.0, 3.5), "{phi}: {} ± {}", found.value, found.error);
        let g = (1.0 + phi) / (1.0 - phi);
        let relative = 2.0 * found.uncertainty / found.error;
        assert!((found.inefficiency / g - 1.0).abs() < 3.0 * relative + 0.04, "{phi}: {found:?}");
        assert!(found.block_size as f64 > g, "{phi}");
    }
}

#[test]
fn a_false_plateau_is_left() {
    // white noise hides an autoregressive part of a hundredth of its variance, which doubles the error's square
    let (phi, n) = (0.99, 200_000);
    let slow = autoregressive(phi, n, 8);
    let series: Vec<f64> = autoregressive(0.0, n, 9).iter().zip(slow).map(|(a, b)| a + 0.1 * b).collect();
    let expected = (1.0 / n as f64 + 0.01 * variance_of_mean(phi, n as f64)).sqrt();
    let found = blocks::mean(&series).unwrap();
    assert!((found.error / expected - 1.0).abs() < 0.12, "{found:?} for {expected}");
    assert!(found.converged && found.agrees(0.0, 3.5));
}

#[test]
fn errors_of_means_are_honest() {
    // 200 series: (x̄ − 0)/error has a variance of 1, ± 0.1 by its own scatter, and some for that of the errors
    let sum: f64 = (0..200)
        .map(|s| blocks::mean(&autoregressive(0.9, 8000, 1000 + s)).unwrap())
        .map(|m| (m.value / m.error).powi(2))
        .sum();
    assert!((0.7..1.45).contains(&(sum / 200.0)), "{}", sum / 200.0);
}

#[test]
fn short_and_flat_series() {
    let flat = blocks::mean(&[3.0; 100]).unwrap();
    assert_eq!((flat.value, flat.error, flat.inefficiency), (3.0, 0.0, 1.0));
    // two values: s/√2 = |a − b|/2
    let two = blocks::mean(&[1.0, 2.0]).unwrap();
    assert_eq!((two.value, two.error, two.converged), (1.5, 0.5, false));
    assert!(matches!(blocks::mean(&[1.0]), Err(AnalysisError::TooFew { count: 1, needed: 2, .. })));
    assert!(matches!(blocks::mean(&[1.0, f64::NAN]), Err(AnalysisError::NotFinite { index: 1, .. })));
    // correlated over all its length: says that it is not enough
    let slow = blocks::mean(&autoregressive(0.999, 2000, 7)).unwrap();
    assert!(!slow.converged);
    // levels of 1, 2, 3, 4 by hand: means 2.5; s² = 5/3, over 4; two blocks 1.5 and 3.5: s² = 2, over 2
    let four = blocks::mean(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert!((four.levels[0].error - (5.0f64 / 12.0).sqrt()).abs() < 1e-15);
    assert!((four.levels[1].error - 1.0).abs() < 1e-15 && four.levels.len() == 2);
}

#[test]
fn a_line_with_correlated_noise() {
    let (n, phi, slope) = (20_000usize, 0.95, 3e-5);
    let times: Vec<f64> = (0..n).map(|k| 5.0 + 0.5 * k as f64).collect();
    // the variance of a least-squares slope in noise of short correlation: g σ²/Σ(t − t̄)²
    let g = (1.0 + phi) / (1.0 - phi);
    let spread = 0.25 * (n as f64).powi(3) / 12.0;
    let expected = (g / spread).sqrt();
    let (mut sum, mut squares) = (0.0, 0.0);
    for seed in 0..40 {
        let x = autoregressive(phi, n, 2000 + seed);
        let x: Vec<f64> = times.iter().zip(x).map(|(t, x)| -1000.0 + slope * t + x).collect();
        let line = drift::drift(&times, &x).unwrap();
        assert!(line.converged);
        assert!((line.error / expected - 1.0).abs() < 0.45, "{line:?} for {expected}");
        assert!((line.scatter - 1.0).abs() < 0.2);
        assert_eq!(line.upper_bound(), line.slope.abs() + 2.0 * line.error);
        let y = (line.slope - slope) / line.error;
        assert!(y.abs() < 4.0, "{line:?}");
        sum += y;
        squares += y * y;
    }
    assert!((sum / 40.0).abs() < 4.0 / 40f64.sqrt(), "{}", sum / 40.0);
    assert!((0.4..1.9).contains(&(squares / 40.0)), "{}", squares / 40.0);
}

#[test]
fn drifts_have_units() {
    let times: Vec<f64> = (0..100).map(f64::from).collect();
    let values: Vec<f64> = times.iter().map(|t| 12.0 + 0.002 * t).collect();
    let line = drift::drift(&times, &values).unwrap();
    // 0.002 kJ/mol/ps = 2 kJ/mol/ns; kT = 0.01 · 100 = 1 kJ/mol; 50 degrees of freedom: 0.04 kT/ns each
    let each = line.per_degree_of_freedom(0.01, 100.0, 50);
    assert!((each.slope - 0.04).abs() < 1e-12 && each.error < 1e-12 && (each.intercept - 0.24).abs() < 1e-12);
    assert!((each.upper_bound() - 0.04).abs() < 1e-12);
    assert!(matches!(drift::drift(&times[1..], &values), Err(AnalysisError::Lengths { .. })));
    assert!(matches!(drift::drift(&[0.0, 1.0, 1.0], &[0.0; 3]), Err(AnalysisError::Times { frame: 2, .. })));
    assert!(matches!(drift::drift(&[0.0, 1.0], &[0.0; 2]), Err(AnalysisError::TooFew { .. })));
    // alternating about a flat line: nothing rises
    let flat: Vec<f64> = (0..100).map(|k| f64::from(k % 2)).collect();
    let flat = drift::drift(&times, &flat).unwrap();
    assert!(flat.slope.abs() < 1e-3);
}

// ------------------------------------------------------------------------------------------ files

#[test]
fn what_a_run_wrote_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trajectory.xyz");
    let file = std::fs::File::create(&path).unwrap();
    {
        let mut out = writer(file, Format::Xyz, Precision::default());
        for step in 0..5u64 {
            let x = 0.3 * step as f64;
            let frame = Frame {
                time: Some(0.5 * step as f64),
                step: Some(step),
                cell: Some([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
                atoms: vec![md::formats::AtomLabel::new("Ar"); 2],
                positions: vec![[x % 1.0, 0.2, 0.2], [(10.0 - x) % 1.0, 0.2, 0.51]],
                ..Frame::default()
            };
            out.write(&frame).unwrap();
        }
        out.flush().unwrap();
    }
    let mut msd = Msd::new(&[1.0; 2]).unwrap();
    let mut rdf = Rdf::new(0.5, 10).unwrap();
    for frame in frames(&path, FrameUnits::Nanometre).unwrap() {
        let (frame, cell) = frame.unwrap();
        msd.add_wrapped(frame.time.unwrap(), &frame.positions, &cell).unwrap();
        rdf.add_points(&frame.positions, &cell).unwrap();
    }
    let curve = msd.curve(4);
    assert_eq!((curve.len(), rdf.frames()), (5, 5));
    assert!((curve[4].msd - 1.44).abs() < 1e-12 && (curve[4].lag - 2.0).abs() < 1e-12);
    // x apart by 0, 0.6 → 0.4, 1.2 → 0.2, 1.8 → 0.2, 2.4 → 0.4 and z by 0.31: 0.31, 0.37 twice, 0.506 twice (beyond)
    assert!((rdf.finish()[9].coordination - 0.6).abs() < 1e-12);
    let missing = frames(&folder.path().join("no.xyz"), FrameUnits::Nanometre).err().unwrap().to_string();
    assert!(missing.contains("no.xyz"), "{missing}");
    std::fs::write(&path, "2\n\nAr 0 0 0\n").unwrap();
    assert!(frames(&path, FrameUnits::Nanometre).unwrap().last().unwrap().is_err());

    let table = Table::from_reader("step,time,total,volume\n0,0,1,\n5,0.5,2,\n".as_bytes(), "x").unwrap();
    assert_eq!(series(&table, "total").unwrap(), (vec![0.0, 0.5], vec![1.0, 2.0]));
    assert_eq!(series(&table, "volume").unwrap(), (vec![], vec![]));
    assert!(matches!(series(&table, "nothing"), Err(AnalysisError::Table(_))));
}
