//! Grids found inside ordinary matrices: every kind of grid that there is, and none where there is none.

use krylith::gallery::Problem;
use krylith::structured::{Grid, MOST_OFFSETS, NotStructured, Offset, Stencil, Structure};
use krylith::{Csr, Pattern, Permutation};
use proptest::prelude::*;
use std::time::Instant;

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn detect(name: &str) -> Result<Structure, NotStructured> {
    Structure::detect(problem(name).pattern())
}

/// An entry of a grid's matrix: point, component, other point, its component, offset.
struct Entry {
    point: [usize; 3],
    component: usize,
    there: [usize; 3],
    other: usize,
    offset: Offset,
}

/// The pattern of a stencil on a grid, with the entries that are kept.
fn grid_pattern(n: &[usize], stencil: &Stencil, dof: usize, keep: impl Fn(&Entry) -> bool) -> Pattern {
    let grid = Grid::new(n).unwrap();
    let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
    for number in 0..grid.points() {
        let point = grid.point(number);
        for component in 0..dof {
            for &offset in stencil.offsets() {
                let Some(there) = grid.at(point, offset) else { continue };
                for other in 0..dof {
                    if keep(&Entry { point, component, there, other, offset }) {
                        col_idx.push((dof * grid.number(there) + other) as u32);
                    }
                }
            }
            row_ptr.push(col_idx.len());
        }
    }
    let rows = dof * grid.points();
    Pattern::new(rows, rows, row_ptr, col_idx).unwrap()
}

/// Pseudo-random, by position.
fn hash(a: usize, b: usize) -> usize {
    let mut h = (a as u64) << 32 ^ b as u64;
    for _ in 0..2 {
        h = (h ^ h >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
        h = (h ^ h >> 27).wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    }
    (h >> 33) as usize
}

#[track_caller]
fn expect(pattern: &Pattern, n: &[usize], stencil: &Stencil, dof: usize) -> Structure {
    let found = Structure::detect(pattern).unwrap_or_else(|why| panic!("{n:?} {stencil}: {why}"));
    assert_eq!(found.grid, Grid::new(n).unwrap(), "{found}, not {n:?} {stencil}");
    assert_eq!((&found.stencil, found.dof), (stencil, dof), "{found}, not {n:?} {stencil}");
    found
}

#[test]
fn problems_of_the_gallery() {
    for (name, words) in [
        ("poisson2d:40", "40 x 40 grid, Star-5P, 1 unknown per point"),
        ("poisson2d:30x70", "30 x 70 grid, Star-5P, 1 unknown per point"),
        ("poisson3d:20", "20 x 20 x 20 grid, Star-7P, 1 unknown per point"),
        // Many divisors, and so many thin grids beside the right one.
        ("poisson3d:60", "60 x 60 x 60 grid, Star-7P, 1 unknown per point"),
        ("poisson3d:12x20x30", "12 x 20 x 30 grid, Star-7P, 1 unknown per point"),
        ("poisson3d:30x12x20", "30 x 12 x 20 grid, Star-7P, 1 unknown per point"),
        ("poisson3d:20x30x12", "20 x 30 x 12 grid, Star-7P, 1 unknown per point"),
        ("poisson3d:4x4x4", "4 x 4 x 4 grid, Star-7P, 1 unknown per point"),
        ("poisson3d:2x2x2", "2 x 2 x 2 grid, Star-7P, 1 unknown per point"),
        ("hpcg:12", "12 x 12 x 12 grid, Box-27P, 1 unknown per point"),
        ("hpcg:9x14x5", "9 x 14 x 5 grid, Box-27P, 1 unknown per point"),
        ("convection3d:16", "16 x 16 x 16 grid, Star-7P, 1 unknown per point"),
        ("jump3d:15", "15 x 15 x 15 grid, Star-7P, 1 unknown per point"),
        ("apache:40x31x8", "40 x 31 x 8 grid, Star-7P, 1 unknown per point"),
        ("elasticity2d:20x13", "20 x 13 grid, Box-9P, 2 unknowns per point"),
        ("elasticity3d:8", "8 x 8 x 8 grid, Box-27P, 3 unknowns per point"),
        ("elasticity3d:6x9x11", "6 x 9 x 11 grid, Box-27P, 3 unknowns per point"),
        ("parabolic:65x33", "65 x 33 grid, Stencil-7P, 1 unknown per point"),
        ("navierstokes3d:8x7x6", "8 x 7 x 6 grid, Box-27P, 4 unknowns per point"),
        ("euler3d:9x8x10", "9 x 8 x 10 grid, Star-13P, 5 unknowns per point"),
        ("cahnhilliard3d:9x8x10", "9 x 8 x 10 grid, Diamond-25P, 2 unknowns per point"),
        ("atmosmod:22x22x9", "22 x 22 x 9 grid, Star-7P, 1 unknown per point"),
    ] {
        let found = detect(name).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!((found.to_string().as_str(), found.fullness), (words, 1.0), "{name}");
    }
}

#[test]
fn problems_without_a_grid() {
    for name in ["fem2d:40", "thermal:40", "circuit:40", "ecology:40", "ecology:31x57"] {
        let why = detect(name).expect_err(name).to_string();
        assert!(!why.is_empty() && !why.contains('\n'), "{name}: {why}");
    }
}

#[test]
fn every_stencil_on_every_shape() {
    let stencils = [
        Stencil::star(3, 1).unwrap(),
        Stencil::star(3, 2).unwrap(),
        Stencil::filled_star(3).unwrap(),
        Stencil::diamond(3, 2).unwrap(),
        Stencil::cube(3, 1).unwrap(),
    ];
    for n in [[9, 10, 11], [11, 9, 10], [10, 11, 9], [16, 8, 5], [5, 16, 8], [8, 5, 16], [12, 12, 12]] {
        for stencil in &stencils {
            let found = expect(&grid_pattern(&n, stencil, 1, |_| true), &n, stencil, 1);
            assert_eq!(found.fullness, 1.0);
        }
    }
    for n in [[20, 30], [30, 20], [24, 24], [7, 100], [100, 7]] {
        for stencil in [
            Stencil::star(2, 1).unwrap(),
            Stencil::star(2, 2).unwrap(),
            Stencil::cube(2, 1).unwrap(),
            Stencil::diamond(2, 2).unwrap(),
        ] {
            expect(&grid_pattern(&n, &stencil, 1, |_| true), &n, &stencil, 1);
        }
    }
}

#[test]
fn thin_grids() {
    let star = Stencil::star(3, 1).unwrap();
    for n in
        [[30, 20, 2], [30, 2, 20], [2, 30, 20], [2, 2, 50], [2, 50, 2], [50, 2, 2], [3, 3, 40], [40, 3, 3]]
    {
        expect(&grid_pattern(&n, &star, 1, |_| true), &n, &star, 1);
        expect(&grid_pattern(&n, &star, 3, |_| true), &n, &star, 3);
    }
    let cube = Stencil::cube(3, 1).unwrap();
    for n in [[30, 20, 2], [20, 3, 3], [4, 20, 3]] {
        expect(&grid_pattern(&n, &cube, 1, |_| true), &n, &cube, 1);
    }
    // Two lines to a plane, every one joined with its neighbours: 21 offsets do as a plane, not 27.
    let plane = Stencil::new((-3..=3).flat_map(|y| (-1..=1).map(move |x| [x, y, 0])).collect()).unwrap();
    expect(&grid_pattern(&[30, 2, 20], &cube, 1, |_| true), &[30, 40], &plane, 1);
    for n in [[50, 2], [2, 50]] {
        expect(
            &grid_pattern(&n, &Stencil::star(2, 1).unwrap(), 1, |_| true),
            &n,
            &Stencil::star(2, 1).unwrap(),
            1,
        );
    }
}

#[test]
fn bands_are_lines() {
    for width in 1..=9 {
        let band = Stencil::new((-width..=width).map(|x| [x, 0, 0]).collect()).unwrap();
        let found = expect(&grid_pattern(&[720], &band, 1, |_| true), &[720], &band, 1);
        assert_eq!((found.fullness, found.levels()), (1.0, 720));
    }
    let one_sided = Stencil::new(vec![[0; 3], [-3, 0, 0], [1, 0, 0]]).unwrap();
    expect(&grid_pattern(&[100], &one_sided, 1, |_| true), &[100], &one_sided, 1);
    expect(
        &grid_pattern(&[100], &Stencil::star(1, 1).unwrap(), 4, |_| true),
        &[100],
        &Stencil::star(1, 1).unwrap(),
        4,
    );
    let diagonal = Stencil::new(vec![[0; 3]]).unwrap();
    expect(&grid_pattern(&[100], &diagonal, 1, |_| true), &[100], &diagonal, 1);
}

#[test]
fn odd_stencils() {
    let stencils = [
        // One-sided along z, far along x.
        vec![[0, 0, 0], [0, 0, -1], [-4, 0, 0], [1, 0, 0], [0, 1, 0], [0, -2, 0]],
        // A wind along the diagonal.
        vec![[0, 0, 0], [1, 0, 0], [-1, -1, 0], [-2, -2, -1], [0, 1, 1]],
        // Anisotropic reach.
        vec![
            [0, 0, 0],
            [1, 0, 0],
            [-1, 0, 0],
            [0, 4, 0],
            [0, -4, 0],
            [0, 0, 2],
            [0, 0, -2],
            [0, 1, 0],
            [0, 0, 1],
        ],
        // Upper triangle alone.
        vec![[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    ];
    for offsets in stencils {
        let stencil = Stencil::new(offsets).unwrap();
        for n in [[15, 14, 13], [13, 15, 14], [20, 10, 12]] {
            expect(&grid_pattern(&n, &stencil, 1, |_| true), &n, &stencil, 1);
            expect(&grid_pattern(&n, &stencil, 2, |_| true), &n, &stencil, 2);
        }
    }
}

/// Up to the largest stencil that there can be.
#[test]
fn far_stencils() {
    for (stencil, name) in
        [(Stencil::star(3, 3).unwrap(), "Star-19P"), (Stencil::cube(3, 3).unwrap(), "Box-343P")]
    {
        assert!(stencil.len() <= MOST_OFFSETS);
        let found = expect(&grid_pattern(&[11, 12, 13], &stencil, 1, |_| true), &[11, 12, 13], &stencil, 1);
        assert_eq!(found.to_string(), format!("11 x 12 x 13 grid, {name}, 1 unknown per point"));
    }
    let mut offsets = Stencil::star(3, 1).unwrap().offsets().to_vec();
    offsets.extend([[3, 1, 0], [0, 3, 0], [0, 0, -3]]);
    let stencil = Stencil::new(offsets).unwrap();
    let found = expect(&grid_pattern(&[11, 12, 13], &stencil, 1, |_| true), &[11, 12, 13], &stencil, 1);
    assert_eq!(found.to_string(), "11 x 12 x 13 grid, Stencil-10P, 1 unknown per point");
}

#[test]
fn several_unknowns() {
    for dof in 1..=8 {
        for (n, stencil) in [
            (vec![7, 6, 9], Stencil::star(3, 1).unwrap()),
            (vec![6, 7, 5], Stencil::cube(3, 1).unwrap()),
            (vec![20, 12], Stencil::star(2, 1).unwrap()),
            (vec![12, 20], Stencil::cube(2, 1).unwrap()),
        ] {
            let found = expect(&grid_pattern(&n, &stencil, dof, |_| true), &n, &stencil, dof);
            assert_eq!(found.fullness, 1.0);
        }
    }
}

/// Couplings that are missing in every block.
#[test]
fn blocks_that_are_not_whole() {
    // Two displacements on squares: along the axes the cross terms cancel.
    let (n, cube) = (vec![20, 30], Stencil::cube(2, 1).unwrap());
    let elasticity = |e: &Entry| e.component == e.other || (e.offset[0] != 0 && e.offset[1] != 0);
    let found = expect(&grid_pattern(&n, &cube, 2, elasticity), &n, &cube, 2);
    assert!((found.fullness - 26.0 / 36.0).abs() < 0.01, "{}", found.fullness);
    // Velocity and pressure: no pressure with itself but at the centre.
    let (n, star) = (vec![9, 8, 10], Stencil::star(3, 1).unwrap());
    let flow = |e: &Entry| e.component < 3 || e.other < 3 || e.offset == [0; 3];
    let found = expect(&grid_pattern(&n, &star, 4, flow), &n, &star, 4);
    assert!(found.fullness > 0.93 && found.fullness < 1.0);
}

#[test]
fn dirichlet_rows_kept() {
    let (n, star) = ([30, 28, 26], Stencil::star(3, 1).unwrap());
    let boundary = |p: [usize; 3]| (0..3).any(|a| p[a] == 0 || p[a] == n[a] - 1);
    let columns_kept = |e: &Entry| e.offset == [0; 3] || !boundary(e.point);
    let eliminated = |e: &Entry| e.offset == [0; 3] || !boundary(e.point) && !boundary(e.there);
    let kept = expect(&grid_pattern(&n, &star, 1, columns_kept), &n, &star, 1);
    let fewer = expect(&grid_pattern(&n, &star, 1, eliminated), &n, &star, 1);
    assert!(0.75 < fewer.fullness && fewer.fullness < kept.fullness && kept.fullness < 0.9);
}

#[test]
fn missing_entries() {
    let (n, cube) = ([14, 13, 12], Stencil::cube(3, 1).unwrap());
    let grid = Grid::new(&n).unwrap();
    let some = |percent: usize| {
        move |e: &Entry| {
            hash(grid.number(e.point), grid.number(e.there)) % 100 >= percent || e.offset == [0; 3]
        }
    };
    let found = expect(&grid_pattern(&n, &cube, 1, some(20)), &n, &cube, 1);
    assert!((found.fullness - 0.807).abs() < 0.01, "{}", found.fullness);
    let why = Structure::detect(&grid_pattern(&n, &cube, 1, some(40))).unwrap_err();
    assert!(
        matches!(why, NotStructured::Sparse { fullness, .. } if (0.55..0.7).contains(&fullness)),
        "{why}"
    );
    // One entry of a grid is enough that an offset belongs to it.
    let star = Stencil::star(3, 1).unwrap();
    let mut more = star.offsets().to_vec();
    more.push([1, 1, 0]);
    let more = Stencil::new(more).unwrap();
    let one = |e: &Entry| e.offset != [1, 1, 0] || e.point == [5, 6, 7];
    let found = expect(&grid_pattern(&n, &more, 1, one), &n, &more, 1);
    assert!(0.85 < found.fullness && found.fullness < 0.9);
}

/// A closed grid has offsets across the whole axis.
#[test]
fn closed_grids_are_refused() {
    for (n, closed) in
        [([20, 30, 1], [true, false, false]), ([20, 30, 1], [true; 3]), ([10, 11, 12], [false, true, false])]
    {
        let grid = Grid::new(&n).unwrap();
        let (mut rows, mut columns) = (Vec::new(), Vec::new());
        for number in 0..grid.points() {
            let point = grid.point(number);
            rows.push(number as u32);
            columns.push(number as u32);
            for axis in (0..3).filter(|&axis| n[axis] > 1) {
                for step in [1, n[axis] - 1] {
                    let mut there = point;
                    there[axis] += step;
                    if there[axis] >= n[axis] && !(closed[axis] || step > 1) {
                        continue;
                    }
                    if !closed[axis] && step > 1 && point[axis] == 0 {
                        continue;
                    }
                    there[axis] %= n[axis];
                    rows.push(number as u32);
                    columns.push(grid.number(there) as u32);
                }
            }
        }
        let ones = vec![1.0; rows.len()];
        let a = Csr::from_triplets(grid.points(), grid.points(), &rows, &columns, &ones).unwrap();
        let why = Structure::detect(a.pattern()).expect_err(&format!("{n:?} {closed:?}"));
        assert!(
            matches!(
                why,
                NotStructured::Outside { .. } | NotStructured::NoExtents { .. } | NotStructured::Gap { .. }
            ),
            "{why}"
        );
    }
}

/// A single far entry anywhere: no grid, and the message says where.
#[test]
fn one_far_entry() {
    let a = problem("poisson3d:40");
    for (row, column) in [(63_999, 0), (0, 63_999), (31_245, 31_245 + 30)] {
        let (mut rows, mut columns) = (vec![row], vec![column]);
        for i in 0..a.nrows() {
            rows.extend(std::iter::repeat_n(i as u32, a.row(i).0.len()));
            columns.extend(a.row(i).0);
        }
        let ones = vec![1.0; rows.len()];
        let b = Csr::from_triplets(a.nrows(), a.ncols(), &rows, &columns, &ones).unwrap();
        let why = Structure::detect(b.pattern()).unwrap_err();
        assert!(
            matches!(why, NotStructured::Outside { row: r, column: c, .. } if (r, c) == (row as usize, column as usize)),
            "{why}"
        );
    }
}

#[test]
fn other_matrices_are_refused() {
    let n = 3000;
    // Random columns.
    let row = |i: usize| {
        let mut columns: Vec<u32> = (0..7).map(|k| (hash(i, k) % n) as u32).chain([i as u32]).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    };
    let rows: Vec<Vec<u32>> = (0..n).map(row).collect();
    let why = Structure::detect(&from_rows(&rows)).unwrap_err();
    assert!(matches!(why, NotStructured::NoPeriod { .. }), "{why}");
    // An arrow.
    let arrow: Vec<Vec<u32>> =
        (0..n as u32).map(|i| if i == 0 { (0..n as u32).collect() } else { vec![0, i] }).collect();
    assert!(Structure::detect(&from_rows(&arrow)).is_err());
    // A grid in another order.
    let a = problem("poisson2d:50");
    let mut order: Vec<u32> = (0..2500).collect();
    order.sort_by_key(|&i| hash(i as usize, 1));
    let shuffled = a.view().permute_symmetric(&Permutation::new(order).unwrap()).unwrap();
    assert!(Structure::detect(shuffled.pattern()).is_err());
    // Not square, empty, dense, a single row.
    assert_eq!(
        Structure::detect(&Pattern::new(2, 3, vec![0, 1, 2], vec![0, 1]).unwrap()),
        Err(NotStructured::NotSquare)
    );
    assert_eq!(Structure::detect(&Pattern::new(0, 0, vec![0], vec![]).unwrap()), Err(NotStructured::Empty));
    assert_eq!(
        Structure::detect(&Pattern::new(2, 2, vec![0; 3], vec![]).unwrap()),
        Err(NotStructured::Empty)
    );
    assert!(Structure::detect(&from_rows(&vec![(0..50).collect(); 50])).is_err());
    assert!(Structure::detect(&from_rows(&vec![(0..600).collect(); 600])).is_err());
    assert_eq!(Structure::detect(&from_rows(&[vec![0]])).unwrap().grid.points(), 1);
}

fn from_rows(rows: &[Vec<u32>]) -> Pattern {
    let mut row_ptr = vec![0];
    row_ptr.extend(rows.iter().scan(0, |sum, row| {
        *sum += row.len();
        Some(*sum)
    }));
    Pattern::new(rows.len(), rows.len(), row_ptr, rows.concat()).unwrap()
}

/// What a detected structure claims holds for every entry, and its stencil has no offset too many.
fn holds(pattern: &Pattern, found: &Structure) -> bool {
    let mut used = vec![false; found.stencil.len()];
    used[found.stencil.centre()] = true;
    for row in 0..pattern.nrows() {
        let point = found.grid.point(row / found.dof);
        for &column in pattern.row(row) {
            let there = found.grid.point(column as usize / found.dof);
            let offset = std::array::from_fn(|a| there[a] as i32 - point[a] as i32);
            match found.stencil.find(offset) {
                Some(k) => used[k] = true,
                None => return false,
            }
        }
    }
    used.iter().all(|&u| u) && found.grid.points() * found.dof == pattern.nrows()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any stencil with the nearest neighbours, any shape, any number of unknowns: what is found holds, and stores no more.
    #[test]
    fn what_is_found_holds(
        n in prop::array::uniform3(5usize..14),
        dof in 1usize..5,
        more in prop::collection::vec(prop::array::uniform3(-2i32..=2), 0..6),
        holes in 0usize..15,
    ) {
        let mut offsets = Stencil::star(3, 1).unwrap().offsets().to_vec();
        offsets.extend(more);
        offsets.sort_unstable();
        offsets.dedup();
        let stencil = Stencil::new(offsets).unwrap();
        let grid = Grid::new(&n).unwrap();
        let keep = |e: &Entry| hash(grid.number(e.point), grid.number(e.there)) % 100 >= holes;
        let pattern = grid_pattern(&n, &stencil, dof, keep);
        let found = Structure::detect(&pattern).unwrap();
        prop_assert!(holds(&pattern, &found));
        let stored = found.stencil.len() * found.dof;
        prop_assert!(stored <= stencil.len() * dof * 5 / 4, "{found} for {n:?} {stencil} {dof}");
    }

    /// Any small pattern: no panic, and what is found holds.
    #[test]
    fn any_pattern(n in 1usize..40, entries in prop::collection::vec((0u32..40, 0u32..40), 0..200), band in 0u32..40) {
        let inside = |&&(i, j): &&(u32, u32)| (i as usize) < n && (j as usize) < n && i.abs_diff(j) <= band;
        let (rows, columns): (Vec<u32>, Vec<u32>) = entries.iter().filter(inside).copied().unzip();
        let a = Csr::from_triplets(n, n, &rows, &columns, &vec![1.0; rows.len()]).unwrap();
        if let Ok(found) = Structure::detect(a.pattern()) {
            prop_assert!(holds(a.pattern(), &found));
            prop_assert!(found.fullness >= 0.7 && found.fullness <= 1.0 && found.levels() >= 1);
        }
    }
}

#[test]
fn the_same_on_any_number_of_threads() {
    let (n, cube) = ([40, 30, 20], Stencil::cube(3, 1).unwrap());
    let grid = Grid::new(&n).unwrap();
    let holes = grid_pattern(&n, &cube, 1, |e| hash(grid.number(e.point), grid.number(e.there)) % 10 > 1);
    let with = |threads: usize, pattern: &Pattern| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Structure::detect(pattern))
    };
    let ecology = problem("ecology:90");
    for pattern in [&holes, ecology.pattern()] {
        let one = with(1, pattern);
        assert!((2..5).all(|threads| with(threads, pattern) == one));
    }
}

/// Prints what detection costs beside a product with the matrix; run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn cost() {
    for name in [
        "poisson3d:100",
        "poisson2d:1000",
        "hpcg:80",
        "elasticity3d:40",
        "atmosmod",
        "fem2d:1000",
        "circuit:1000",
    ] {
        let a = problem(name);
        let (x, mut y) = (vec![1.0; a.ncols()], vec![0.0; a.nrows()]);
        let (mut product, mut search) = (f64::MAX, f64::MAX);
        for _ in 0..7 {
            let started = Instant::now();
            a.mul_vec(&x, &mut y).unwrap();
            product = product.min(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let found = Structure::detect(a.pattern());
            search = search.min(started.elapsed().as_secs_f64());
            assert_eq!(found.is_ok(), !name.starts_with("fem") && !name.starts_with("circuit"), "{name}");
        }
        println!("{name:18} product {product:.5} s, detection {search:.5} s: {:.2}", search / product);
    }
}
