use super::*;
use crate::system::{cell::Cell, positions::Positions};
use proptest::prelude::*;

/// What a list says: (i, j, n), in its order.
type Pair = (u32, u32, [i32; 3]);

/// The pairs that a list promises. (There may be some that are farther apart by a trifle, and no others.)
fn pairs(list: &VerletList, positions: &Positions, cell: &Cell) -> Vec<Pair> {
    let rows = rows(list, positions);
    let radius = list.cutoff() + list.skin();
    let mut pairs = Vec::new();
    for i in 0..list.len() {
        for &e in list.row(list.rank(i)) {
            let pair = (i as u32, list.owner(e) as u32, list.image(e));
            let distance = squared(vector(cell, &rows, pair)).sqrt();
            assert!(distance < radius * (1.0 + 1.1e-6), "{distance} {radius}");
            if distance < radius {
                pairs.push(pair);
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The fractions of all atoms, as the list counts images from.
fn rows(list: &VerletList, positions: &Positions) -> Vec<[f64; 3]> {
    (0..positions.len()).map(|i| positions.row(list.snapshot(), i)).collect()
}

/// The vector from i to j in image n.
fn vector(cell: &Cell, rows: &[[f64; 3]], (i, j, n): Pair) -> [f64; 3] {
    let (from, to) = (rows[i as usize], rows[j as usize]);
    cell.cartesian(std::array::from_fn(|k| (to[k] - from[k]) + f64::from(n[k])))
}

fn squared(d: [f64; 3]) -> f64 {
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
}

/// Every pair nearer than the radius, by trying all images that could be.
fn brute_force(cell: &Cell, rows: &[[f64; 3]], radius: f64) -> Vec<Pair> {
    let range = |k: usize| match cell.periodic()[k] {
        true => {
            let m = (radius / cell.heights()[k]).ceil() as i32 + 2;
            -m..=m
        }
        false => 0..=0,
    };
    let mut found = Vec::new();
    for i in 0..rows.len() as u32 {
        for j in 0..rows.len() as u32 {
            for a in range(0) {
                for b in range(1) {
                    for c in range(2) {
                        let pair = (i, j, [a, b, c]);
                        if (i != j || [a, b, c] != [0; 3])
                            && squared(vector(cell, rows, pair)) < radius * radius
                        {
                            found.push(pair);
                        }
                    }
                }
            }
        }
    }
    found
}

/// What is within the cut-off now, as the kernels see it: (i, j, bits of the vector), sorted.
fn within(list: &VerletList, positions: &Positions, cell: &Cell) -> Vec<(u32, u32, [u64; 3])> {
    let mut list = list.clone();
    list.refresh(positions, cell, |_| 0.0);
    let mut found = Vec::new();
    for i in 0..list.len() {
        let own = list.rows::<f64>()[list.slots()[list.rank(i)] as usize / 4];
        for &e in list.row(list.rank(i)) {
            let other = list.rows::<f64>()[e as usize / 4];
            let d = cell.cartesian(std::array::from_fn(|k| other[k] - own[k]));
            if squared(d) < list.cutoff() * list.cutoff() {
                found.push((i as u32, list.owner(e) as u32, d.map(f64::to_bits)));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Built from scratch without a skin.
fn fresh(list: &VerletList, positions: &Positions, cell: &Cell) -> Vec<(u32, u32, [u64; 3])> {
    let mut new = VerletList::new(list.cutoff(), 0.0).unwrap();
    new.build(positions, cell, None).unwrap();
    within(&new, positions, cell)
}

fn symmetric(list: &VerletList, positions: &Positions, cell: &Cell) {
    let listed = pairs(list, positions, cell);
    let all: std::collections::HashSet<Pair> = listed.iter().copied().collect();
    assert_eq!(all.len(), listed.len(), "doubles");
    for &(i, j, n) in &all {
        assert!(all.contains(&(j, i, n.map(|x| -x))), "{i} {j} {n:?} has no mirror");
    }
    let Some(mirrors) = list.mirrors() else { return };
    assert_eq!(mirrors.len(), list.entries().len());
    let atom = |entry: usize| {
        let rank = list.starts().partition_point(|&start| start as usize <= entry) - 1;
        list.owner(list.slots()[rank]) as u32
    };
    for k in 0..list.len() {
        let start = list.starts()[k] as usize;
        for e in start..start + list.row(k).len() {
            let (slot, back) = (list.entries()[e], mirrors[e] as usize);
            if back == e {
                let alone = (atom(e), list.owner(slot) as u32, list.image(slot));
                assert!(!all.contains(&alone), "{alone:?} has no mirror");
                continue;
            }
            let image = list.image(list.entries()[back]).map(|n| -n);
            assert_eq!((atom(back), image), (list.owner(slot) as u32, list.image(slot)));
            assert_eq!((list.owner(list.entries()[back]) as u32, mirrors[back] as usize), (atom(e), e));
        }
    }
}

/// A repeatable uniform number in [0, 1): PCG's output function over an LCG.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = (((self.0 >> 18) ^ self.0) >> 27) as u32;
        f64::from(x.rotate_right((self.0 >> 59) as u32)) / 4_294_967_296.0
    }

    fn points(&mut self, number: usize, cell: &Cell) -> Vec<[f64; 3]> {
        // On free axes within 3 nm, whatever the frame's unit.
        let scale: [f64; 3] = std::array::from_fn(|k| {
            let b = cell.basis()[k];
            if cell.periodic()[k] { 1.0 } else { 3.0 / squared(b).sqrt() }
        });
        (0..number)
            .map(|_| {
                let s = std::array::from_fn(|k| (3.0 * self.roll() - 1.0) * scale[k]);
                cell.cartesian(s)
            })
            .collect()
    }
}

fn cells() -> impl Strategy<Value = Cell> {
    let lengths = prop::array::uniform3(0.6..3.0f64);
    let tilts = prop::array::uniform3(prop_oneof![Just(0.0), -0.5..0.5f64, -6.0..6.0f64]);
    let periodic = prop_oneof![3 => Just([true; 3]), 2 => prop::array::uniform3(any::<bool>())];
    (lengths, tilts, periodic).prop_filter_map("flat", |(l, t, p)| {
        Cell::new([[l[0], 0.0, 0.0], [t[0], l[1], 0.0], [t[1], t[2], l[2]]], p).ok()
    })
}

/// The smallest height, or 1 nm when all axes are free.
fn smallest(cell: &Cell) -> f64 {
    let h = cell.heights().into_iter().fold(f64::INFINITY, f64::min);
    if h.is_finite() { h } else { 1.0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_list_is_what_brute_force_finds(
        cell in cells(), seed: u64, number in 0usize..14, relative in 0.3..2.5f64, skin in 0.0..0.5f64,
    ) {
        let positions = Positions::from_cartesian(&cell, &Dice(seed).points(number, &cell)).unwrap();
        let cutoff = relative * smallest(&cell);
        let mut list = VerletList::new(cutoff, skin * cutoff).unwrap().with_mirrors();
        list.build(&positions, &cell, None).unwrap();
        let expected = brute_force(&cell, &rows(&list, &positions), list.cutoff() + list.skin());
        prop_assert_eq!(pairs(&list, &positions, &cell), expected);
        symmetric(&list, &positions, &cell);
    }

    #[test]
    fn equivalent_lattices_give_equal_distances(
        l in prop::array::uniform3(0.8..3.0f64), t in prop::array::uniform3(-0.5..0.5f64),
        m in prop::array::uniform3(-4i32..5), seed: u64, relative in 0.3..2.0f64,
    ) {
        let v = [[l[0], 0.0, 0.0], [t[0], l[1], 0.0], [t[1], t[2], l[2]]];
        let add = |a: [f64; 3], b: [f64; 3], x: i32| -> [f64; 3] { std::array::from_fn(|k| a[k] + f64::from(x) * b[k]) };
        let b = add(v[1], v[0], m[0]);
        let tilted = [v[0], b, add(add(v[2], v[0], m[1]), b, m[2])];
        let (plain, tilted) = (Cell::new(v, [true; 3]).unwrap(), Cell::new(tilted, [true; 3]).unwrap());
        let points = Dice(seed).points(10, &plain);
        let cutoff = relative * smallest(&plain);
        let distances = |cell: &Cell| {
            let positions = Positions::from_cartesian(cell, &points).unwrap();
            let mut list = VerletList::new(cutoff, 0.0).unwrap();
            list.build(&positions, cell, None).unwrap();
            let rows = rows(&list, &positions);
            let mut r: Vec<_> = pairs(&list, &positions, cell).into_iter().map(|p| squared(vector(cell, &rows, p)).sqrt()).collect();
            r.sort_by(f64::total_cmp);
            (r, list.tested())
        };
        let ((a, work_a), (b, work_b)) = (distances(&plain), distances(&tilted));
        prop_assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(&b) {
            prop_assert!((a - b).abs() < 1e-9);
        }
        // The tilt must not cost anything to speak of (two reduced bases may differ when nearly tied).
        prop_assert!(work_b <= 4 * work_a + 100, "{} against {}", work_b, work_a);
    }

    #[test]
    fn nothing_is_missed_while_atoms_move_and_cells_breathe(
        cell in cells(), seed: u64, relative in 0.3..1.6f64, skin in 0.02..0.4f64, breathing: bool,
    ) {
        let mut dice = Dice(seed);
        let cutoff = relative * smallest(&cell);
        let mut positions = Positions::from_cartesian(&cell, &dice.points(9, &cell)).unwrap();
        let mut list = VerletList::new(cutoff, skin * cutoff).unwrap().with_mirrors();
        let mut other = VerletList::new(cutoff, 0.5 * skin * cutoff).unwrap();
        let mut now = cell.clone();
        for _ in 0..25 {
            let step = 0.1 * skin * cutoff;
            for i in 0..positions.len() {
                let dr = std::array::from_fn(|_| step * (2.0 * dice.roll() - 1.0));
                positions.advance(&now, i, dr).unwrap();
            }
            if breathing {
                let e: [[f64; 3]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| 0.004 * (dice.roll() - 0.5)));
                now = now.strained(e).unwrap();
            }
            let needed = list.needs_rebuild(&positions, &now);
            let moved = positions.max_displacement_squared(list.snapshot(), &now).sqrt();
            if !breathing && !list.is_empty() {
                // Exactly when needed.
                prop_assert_eq!(needed, moved > 0.5 * list.skin(), "{} {}", moved, list.skin());
            }
            prop_assert_eq!(list.update(&positions, &now, None).unwrap(), needed);
            other.update(&positions, &now, None).unwrap();
            // Bit for bit the same vectors, whatever the skin and the age of the list.
            let expected = fresh(&list, &positions, &now);
            prop_assert_eq!(&within(&list, &positions, &now), &expected);
            prop_assert_eq!(&within(&other, &positions, &now), &expected);
        }
        list.build(&positions, &now, None).unwrap();
        symmetric(&list, &positions, &now);
    }

    #[test]
    fn exclusions_drop_the_nearest_image_only(cell in cells(), seed: u64, relative in 0.3..2.2f64) {
        let mut dice = Dice(seed);
        let positions = Positions::from_cartesian(&cell, &dice.points(8, &cell)).unwrap();
        let chosen: Vec<(u32, u32)> =
            (0..12).map(|_| ((8.0 * dice.roll()) as u32, (8.0 * dice.roll()) as u32)).filter(|p| p.0 != p.1).collect();
        let exclusions = Exclusions::from_pairs(8, chosen).unwrap();
        let mut list = VerletList::new(relative * smallest(&cell), 0.0).unwrap().with_mirrors();
        list.build(&positions, &cell, Some(&exclusions)).unwrap();
        symmetric(&list, &positions, &cell);
        let rows = rows(&list, &positions);
        let mut expected = brute_force(&cell, &rows, list.cutoff());
        for i in 0..8 {
            for &j in exclusions.of(i) {
                let of_pair: Vec<Pair> = expected.iter().copied().filter(|p| (p.0 as usize, p.1) == (i, j)).collect();
                let length = |p: &Pair| squared(vector(&cell, &rows, *p));
                if let Some(&nearest) = of_pair.iter().min_by(|a, b| length(a).total_cmp(&length(b))) {
                    expected.retain(|&p| p != nearest);
                }
            }
        }
        prop_assert_eq!(pairs(&list, &positions, &cell), expected);
    }

    #[test]
    fn exclusion_lists_are_sorted_and_symmetric(chosen in prop::collection::vec((0u32..9, 0u32..9), 0..30)) {
        let chosen: Vec<_> = chosen.into_iter().filter(|p| p.0 != p.1).collect();
        let e = Exclusions::from_pairs(9, chosen.clone()).unwrap();
        for i in 0..9u32 {
            let mut expected: Vec<u32> = chosen
                .iter()
                .filter_map(|&(a, b)| if a == i { Some(b) } else if b == i { Some(a) } else { None })
                .collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(e.of(i as usize), &expected[..]);
        }
        let lists: Vec<Vec<u32>> = (0..9).map(|i| e.of(i).to_vec()).collect();
        prop_assert_eq!(Exclusions::from_lists(&lists).unwrap(), e);
    }
}

fn cube(l: f64) -> Cell {
    Cell::new([[l, 0.0, 0.0], [0.0, l, 0.0], [0.0, 0.0, l]], [true; 3]).unwrap()
}

#[test]
fn a_single_atom_sees_its_images() {
    // Within 1.5 lattice constants of a simple cubic lattice: 6 at 1 and 12 at √2.
    let cell = cube(1.0);
    let positions = Positions::from_cartesian(&cell, &[[0.3, 0.9, 0.1]]).unwrap();
    let mut list = VerletList::new(1.5, 0.0).unwrap();
    list.build(&positions, &cell, None).unwrap();
    assert_eq!(pairs(&list, &positions, &cell).len(), 18);
    // Within 4.95: lattice points with 0 < n² < 25 (OEIS A000605 counts 515 within 5, of which 30 are at 5).
    let mut list = VerletList::new(4.95, 0.0).unwrap();
    list.build(&positions, &cell, None).unwrap();
    assert_eq!(pairs(&list, &positions, &cell).len(), 515 - 1 - 30);
}

#[test]
fn a_face_centred_crystal_has_its_shells() {
    let cell = cube(4.0);
    let mut points = Vec::new();
    for n in 0..64 {
        let corner = [n % 4, n / 4 % 4, n / 16].map(f64::from);
        for base in [[0.0; 3], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]] {
            points.push(std::array::from_fn(|k| corner[k] + base[k]));
        }
    }
    let positions = Positions::from_cartesian(&cell, &points).unwrap();
    // Shells of a face-centred cubic crystal: 12, 6, 24, 12 at √(1/2, 1, 3/2, 2).
    for (cutoff, number) in [(0.8, 12), (1.1, 18), (1.3, 42), (1.5, 54)] {
        let mut list = VerletList::new(cutoff, 0.0).unwrap();
        list.build(&positions, &cell, None).unwrap();
        assert!((0..list.len()).all(|i| list.row(i).len() == number));
    }
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let cell = Cell::new([[6.0, 0.0, 0.0], [1.0, 6.0, 0.0], [0.0, 2.0, 6.0]], [true, true, false]).unwrap();
    let points = Dice(7).points(5000, &cell);
    let positions = Positions::from_cartesian(&cell, &points).unwrap();
    let build = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut list = VerletList::new(0.9, 0.1).unwrap().with_mirrors();
            list.build(&positions, &cell, None).unwrap();
            (list.starts().to_vec(), list.entries().to_vec(), list.mirrors().unwrap().to_vec(), list.tested())
        })
    };
    let one = build(1);
    assert!(one == build(2) && one == build(5));
    // And building over an old list is building anew.
    let mut list = VerletList::new(0.9, 0.1).unwrap().with_mirrors();
    list.build(&Positions::from_cartesian(&cell, &points[..300]).unwrap(), &cell, None).unwrap();
    list.build(&positions, &cell, None).unwrap();
    assert!(one.0 == list.starts() && one.1 == list.entries());
}

#[test]
fn work_is_linear_in_the_atoms() {
    let work = |n: usize, open: bool| {
        let l = (n as f64 / 100.0).cbrt(); // 100 atoms a nm³, water
        let periodic = if open { [false; 3] } else { [true; 3] };
        let cell = Cell::new([[l, 0.0, 0.0], [0.0, l, 0.0], [0.0, 0.0, l]], periodic).unwrap();
        let mut dice = Dice(n as u64);
        let points: Vec<[f64; 3]> = (0..n).map(|_| std::array::from_fn(|_| l * dice.roll())).collect();
        let positions = Positions::from_cartesian(&cell, &points).unwrap();
        let mut list = VerletList::new(0.5, 0.05).unwrap();
        list.build(&positions, &cell, None).unwrap();
        list.tested() as f64 / n as f64
    };
    for open in [false, true] {
        let (small, large) = (work(8_000, open), work(64_000, open));
        println!("an atom looks at {small:.0} others of 8,000 and {large:.0} of 64,000");
        // At the surface of an open system there is less to do.
        assert!(large < small * if open { 1.3 } else { 1.1 }, "{small} {large}");
        // Neighbours: 100 · 4/3 π 0.55³ = 70. Looking at a cube of bins costs a few times that.
        assert!(large < 70.0 * 6.0, "{large}");
    }
}

#[test]
fn runaways_do_not_spoil_the_bins() {
    let mut dice = Dice(3);
    let mut points: Vec<[f64; 3]> = (0..8000).map(|_| std::array::from_fn(|_| 4.3 * dice.roll())).collect();
    let tested = |points: &[[f64; 3]]| {
        let cell = Cell::enclosing(None, [false; 3], points).unwrap();
        let positions = Positions::from_cartesian(&cell, points).unwrap();
        let mut list = VerletList::new(0.5, 0.05).unwrap();
        list.build(&positions, &cell, None).unwrap();
        (list.tested(), pairs(&list, &positions, &cell).len())
    };
    let before = tested(&points);
    points.extend([[1e5, 0.0, 0.0], [0.0, -1e6, 50.0], [20.0, 7.0, 1e4]]);
    let after = tested(&points);
    assert_eq!(before.1, after.1);
    assert!(after.0 < 2 * before.0, "{before:?} {after:?}");
}

#[test]
fn absurd_sizes_are_refused_and_say_why() {
    let cell = cube(0.01);
    let positions = Positions::from_cartesian(&cell, &[[0.0; 3]]).unwrap();
    let mut list = VerletList::new(1.0, 0.0).unwrap();
    let error = list.update(&positions, &cell, None).unwrap_err();
    assert!(matches!(error, NeighborError::TooManyNeighbors { .. }), "{error}");
    assert!(list.is_empty() && list.needs_rebuild(&positions, &cell));
    let flat = Cell::new([[1e-5, 0.0, 0.0], [0.0, 900.0, 0.0], [0.0, 0.0, 900.0]], [true; 3]).unwrap();
    let positions = Positions::from_cartesian(&flat, &[[0.0; 3]]).unwrap();
    let mut list = VerletList::new(9.0, 0.0).unwrap();
    assert!(matches!(list.build(&positions, &flat, None), Err(NeighborError::TooManyImages { .. })));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(VerletList::new(bad, 0.1).is_err());
        assert!(bad == 0.0 || VerletList::new(1.0, bad).is_err());
    }
    let mut list = VerletList::new(1e200, 0.0).unwrap();
    assert!(list.build(&positions, &flat, None).is_err());
    let mut list = VerletList::new(1.0, 0.0).unwrap();
    assert_eq!(list.build(&positions, &Cell::open(1.0).unwrap(), None), Err(NeighborError::Periodicity));
    assert_eq!(Exclusions::from_pairs(3, [(0, 3)]), Err(ExclusionError::Atom { atom: 3, atoms: 3 }));
    assert_eq!(Exclusions::from_pairs(3, [(1, 1)]), Err(ExclusionError::Itself { atom: 1 }));
}

#[test]
fn equally_near_images_are_excluded_alike_by_both() {
    // Half a box apart along x: both images at the same distance; one of them is dropped, in both rows.
    let cell = cube(2.0);
    let positions = Positions::from_cartesian(&cell, &[[0.25, 0.0, 0.0], [1.25, 0.0, 0.0]]).unwrap();
    let exclusions = Exclusions::from_pairs(2, [(0, 1)]).unwrap();
    let mut list = VerletList::new(1.5, 0.0).unwrap();
    list.build(&positions, &cell, Some(&exclusions)).unwrap();
    symmetric(&list, &positions, &cell);
    assert_eq!(pairs(&list, &positions, &cell).len(), 2);
}

#[test]
fn a_still_system_keeps_its_list_even_without_a_skin() {
    let cell = cube(2.0);
    let mut positions = Positions::from_cartesian(&cell, &[[0.0; 3], [0.5, 0.0, 0.0]]).unwrap();
    let mut list = VerletList::new(0.9, 0.0).unwrap();
    assert!(list.update(&positions, &cell, None).unwrap());
    assert!(!list.update(&positions, &cell, None).unwrap());
    positions.advance(&cell, 0, [1e-12, 0.0, 0.0]).unwrap();
    assert!(list.update(&positions, &cell, None).unwrap());
    // Growing cells keep a list as long as the skin allows; shrinking ones do not.
    let mut list = VerletList::new(0.9, 0.09).unwrap();
    list.update(&positions, &cell, None).unwrap();
    let grown = |x: f64| cell.strained([[x, 0.0, 0.0], [0.0, x, 0.0], [0.0, 0.0, x]]).unwrap();
    assert!(!list.needs_rebuild(&positions, &grown(0.05)));
    assert!(!list.needs_rebuild(&positions, &grown(-0.09)));
    assert!(list.needs_rebuild(&positions, &grown(-0.0911)));
}

#[test]
fn the_default_skin_is_where_the_model_is_cheapest() {
    let (rc, step): (f64, f64) = (1.0, 0.0016);
    let cost = |s: f64| (1.0 + s / rc).powi(3) * (1.0 + 64.0 * step / s);
    let s = default_skin(rc, step);
    assert!(cost(s) < cost(0.98 * s) && cost(s) < cost(1.02 * s));
    assert_eq!(default_skin(1.0, f64::NAN), 0.12);
    assert_eq!(default_skin(1.0, 1e-9), 0.02);
    assert!((0.4999..=0.5).contains(&default_skin(1.0, 1e9)));
}
