//! Products on a device have the bits of threads by rows, in every storage.

mod common;

use common::{label, opened, spaces};
use krylith::gallery::{Problem, random_vector};
use krylith::operator::LinearOperator;
use krylith::placement::Storage;
use krylith::space::{Space, Threads};
use krylith::{BackendError, Csr};
use krylith_gpu::{DeviceMatrix, DeviceOptions, DeviceSpace, DeviceStorage, KernelShape};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// Rows of every length from 0 to 40, and a dense one.
fn ragged() -> Csr<f64> {
    let n = 4321;
    let length = |i: usize| if i == 77 { n } else { i % 41 };
    let a = Csr::from_rows(n, n, length, |i, columns, values| {
        let step = n / columns.len().max(1);
        for k in 0..columns.len() {
            columns[k] = (k * step + (i * 7) % step) as u32;
            values[k] = ((i * 31 + k) as f64).sin();
        }
    });
    a.unwrap()
}

fn product(
    space: &DeviceSpace<f64>,
    a: &Csr<f64>,
    storage: DeviceStorage,
    x: &[f64],
) -> Result<(Vec<f64>, f64), BackendError> {
    let matrix = DeviceMatrix::in_storage(space, a, storage)?;
    let (mut own, mut y) = (space.zeros(&x.len())?, space.zeros(&a.nrows())?);
    space.upload(x, &mut own)?;
    space.fill(f64::NAN, &mut y)?;
    matrix.apply(space, &own, &mut y, &mut ())?;
    let mut first = vec![0.0; a.nrows()];
    space.download(&y, &mut first)?;
    space.fill(f64::NAN, &mut y)?;
    let dot = matrix.apply_dot(space, &own, &mut y, &mut ())?;
    let mut second = vec![0.0; a.nrows()];
    space.download(&y, &mut second)?;
    assert_eq!(first, second, "fused");
    Ok((first, dot))
}

#[test]
fn every_storage_has_the_bits_of_threads() {
    let threads = Threads::<f64>::new(2);
    let problems = [
        problem("poisson3d:17"),
        problem("hpcg:13"),
        problem("elasticity3d:6"),
        problem("fem2d:40"),
        ragged(),
    ];
    for space in spaces() {
        let exact = space.device().is_reproducible();
        for (number, a) in problems.iter().enumerate() {
            let x = random_vector(a.ncols());
            let mut expected = vec![0.0; a.nrows()];
            let dot = a.apply_dot(&threads, &x, &mut expected, &mut ()).unwrap();
            let storages =
                [DeviceStorage::Rows, DeviceStorage::Lanes, DeviceStorage::Slices, DeviceStorage::Blocks(3)];
            for storage in storages {
                let what = format!("{}: {storage:?}, problem {number}", label(space.device()));
                if storage == DeviceStorage::Lanes && space.device().shape() == KernelShape::Cpu {
                    continue;
                }
                let result = product(&space, a, storage, &x);
                if matches!(storage, DeviceStorage::Blocks(_)) && number != 2 {
                    assert!(matches!(result, Err(BackendError::Unsupported { .. })), "{what}");
                    continue;
                }
                let (y, own_dot) = result.unwrap();
                let scale = 1e-13 * dot.abs().max(1e3);
                assert!((own_dot - dot).abs() <= scale, "{what}: {own_dot} {dot}");
                if exact {
                    assert_eq!(own_dot.to_bits(), dot.to_bits(), "{what}");
                    assert!(y.iter().zip(&expected).all(|(y, e)| y.to_bits() == e.to_bits()), "{what}");
                } else {
                    assert!(y.iter().zip(&expected).all(|(y, e)| (y - e).abs() < 1e-10), "{what}");
                }
            }
        }
    }
}

#[test]
fn the_storage_follows_the_pattern() {
    let choose = |a: &Csr<f64>, shape| DeviceStorage::choose(a.pattern(), shape);
    for shape in [KernelShape::Cpu, KernelShape::Gpu] {
        assert_eq!(choose(&problem("elasticity3d:6"), shape), DeviceStorage::Blocks(3));
        assert_eq!(choose(&problem("poisson3d:17"), shape), DeviceStorage::Slices);
    }
    assert_eq!(choose(&ragged(), KernelShape::Cpu), DeviceStorage::Rows);
    let mut rows = vec![0];
    let mut columns: Vec<u32> = Vec::new();
    for i in 0..64u32 {
        columns.extend(0..if i % 32 == 0 { 64 } else { 20 });
        rows.push(columns.len());
    }
    let long = Csr::new(64, 64, rows, columns.clone(), vec![1.0; columns.len()]).unwrap();
    assert_eq!(choose(&long, KernelShape::Gpu), DeviceStorage::Lanes);
}

/// New values of a known pattern take the place of the old ones.
#[test]
fn values_are_exchanged() {
    let a = problem("poisson3d:9");
    let mut other = a.clone();
    other.values_mut().iter_mut().for_each(|v| *v *= 3.0);
    for space in spaces() {
        let mut matrix = DeviceMatrix::new(&space, &a).unwrap();
        let buffers = space.device().allocations();
        assert!(matrix.require(&problem("poisson3d:8")).is_err());
        matrix.set(&space, &other).unwrap();
        assert!(matrix.holds(&space, &other) && !matrix.holds(&space, &a));
        assert_eq!(space.device().allocations(), buffers, "nothing is allocated for new values");
        let again = matrix.with_values_of(&space, &a).unwrap();
        let (x, mut y, mut z) = (
            space.zeros(&a.ncols()).unwrap(),
            space.zeros(&a.nrows()).unwrap(),
            space.zeros(&a.nrows()).unwrap(),
        );
        let mut x = x;
        space.fill(1.0, &mut x).unwrap();
        matrix.apply(&space, &x, &mut y, &mut ()).unwrap();
        again.apply(&space, &x, &mut z, &mut ()).unwrap();
        space.axpby(-3.0, &z, 1.0, &mut y).unwrap();
        assert_eq!(space.norm(&y).unwrap(), 0.0);
        let error = matrix.apply(&space, &x, &mut space.zeros(&5).unwrap(), &mut ());
        assert!(matches!(error, Err(BackendError::Size { .. })));
    }
}

#[test]
fn empty_matrices_and_single_precision() {
    for device in opened(DeviceOptions::default()) {
        let space = DeviceSpace::<f64>::new(&device).unwrap();
        let none = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert_eq!(product(&space, &none, DeviceStorage::Rows, &[]).unwrap(), (vec![], 0.0));
        let zero = Csr::<f64>::new(3, 3, vec![0; 4], vec![], vec![]).unwrap();
        for storage in [DeviceStorage::Rows, DeviceStorage::Slices] {
            assert_eq!(product(&space, &zero, storage, &[1.0; 3]).unwrap(), (vec![0.0; 3], 0.0));
        }
        let space = DeviceSpace::<f32>::new(&device).unwrap();
        let a = problem("hpcg:9").cast::<f32>();
        let (mut x, mut y) = (space.zeros(&a.ncols()).unwrap(), space.zeros(&a.nrows()).unwrap());
        space.fill(1.0, &mut x).unwrap();
        let dot = DeviceMatrix::new(&space, &a).unwrap().apply_dot(&space, &x, &mut y, &mut ()).unwrap();
        let sum: f32 = a.values().iter().sum();
        assert!((dot - sum).abs() < 1e-3 * sum.abs().max(100.0), "{dot} {sum}");
    }
}
