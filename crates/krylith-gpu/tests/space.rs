//! The space of a device does what every space must do, on every device, in both shapes of its kernels.

mod common;
#[path = "../../krylith/tests/suite/traits/conformance.rs"]
mod conformance;

use common::{label, opened, spaces};
use krylith::BackendError;
use krylith::gallery::random_vector;
use krylith::space::{CHUNK, Space, Threads};
use krylith_gpu::{DeviceOptions, DeviceScalar, DeviceSpace, DeviceVector, KernelShape};

fn vector<T: DeviceScalar>(space: &DeviceSpace<T>, from: &[T]) -> DeviceVector<T> {
    let mut x = space.zeros(&from.len()).unwrap();
    space.upload(from, &mut x).unwrap();
    x
}

fn numbers<T: DeviceScalar>(space: &DeviceSpace<T>, x: &DeviceVector<T>) -> Vec<T> {
    let mut to = vec![T::ZERO; x.len()];
    space.download(x, &mut to).unwrap();
    to
}

#[test]
fn it_is_a_space() {
    for space in spaces() {
        eprintln!("{}", label(space.device()));
        for n in [40, 5000] {
            let clone = |x: &DeviceVector<f64>| vector(&space, &numbers(&space, x));
            let entry = |k: usize, x: &DeviceVector<f64>| numbers(&space, x)[k];
            conformance::check(&space, &n, &(n + 1), clone, entry);
        }
    }
}

/// Every operation gives the bits of threads where the device is reproducible, and nearly the same numbers elsewhere.
#[test]
fn operations_have_the_bits_of_threads() {
    let threads = Threads::<f64>::new(2);
    for space in spaces() {
        let device = label(space.device());
        let exact = space.device().is_reproducible();
        for n in [0, 1, 7, 8, 9, 255, 257, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 77, 300_000] {
            let [a, b, c, d] = [1, 2, 3, 4].map(|k: usize| {
                random_vector(n + k)[k..].iter().map(|v| v * 10f64.powi(k as i32 - 2)).collect::<Vec<f64>>()
            });
            let same = |what: &str, x: &[f64], y: &[f64]| {
                for (k, (x, y)) in x.iter().zip(y).enumerate() {
                    let near = (x - y).abs() <= 1e-12 * (x.abs() + y.abs() + n as f64);
                    assert!(
                        if exact { x.to_bits() == y.to_bits() } else { near },
                        "{device}: {what} {n} [{k}]: {x} {y}"
                    );
                }
            };
            let [ga, gb, gc, gd] = [&a, &b, &c, &d].map(|v| vector(&space, v));
            let (mut own, mut theirs) = ([0.0; 6], [0.0; 6]);
            space
                .dots(&[(&ga, &gb), (&gb, &gc), (&gc, &gc), (&gd, &ga), (&ga, &ga), (&gb, &gd)], &mut own)
                .unwrap();
            threads.dots(&[(&a, &b), (&b, &c), (&c, &c), (&d, &a), (&a, &a), (&b, &d)], &mut theirs).unwrap();
            same("dots", &own, &theirs);
            // Sums have no order, so they have the same bits on every device.
            assert_eq!(own.map(f64::to_bits), theirs.map(f64::to_bits), "{device} {n}");

            let (mut x, mut gx) = (a.clone(), vector(&space, &a));
            for (alpha, beta) in [(0.3, -1.7), (0.3, 0.0), (-0.9, 1.0)] {
                threads.axpby(alpha, &b, beta, &mut x).unwrap();
                space.axpby(alpha, &gb, beta, &mut gx).unwrap();
                same("axpby", &numbers(&space, &gx), &x);
            }
            threads.scale(1.1, &mut x).unwrap();
            space.scale(1.1, &mut gx).unwrap();
            let norms = (
                space.update_norm(0.7, &gc, &mut gx).unwrap(),
                threads.update_norm(0.7, &c, &mut x).unwrap(),
            );
            same("update_norm", &[norms.0], &[norms.1]);
            let products = (
                space.update_dots(-0.2, &gb, &mut gx, &gd).unwrap(),
                threads.update_dots(-0.2, &b, &mut x, &d).unwrap(),
            );
            same("update_dots", &products.0, &products.1);
            let (mut p, mut gp) = (d.clone(), vector(&space, &d));
            threads.cg_direction(0.4, &c, 0.6, &mut p, &mut x).unwrap();
            space.cg_direction(0.4, &gc, 0.6, &mut gp, &mut gx).unwrap();
            same(
                "cg_direction",
                &[numbers(&space, &gx), numbers(&space, &gp)].concat(),
                &[x.clone(), p.clone()].concat(),
            );
            threads.bicgstab_direction(&a, 0.4, 0.3, &b, &mut p).unwrap();
            space.bicgstab_direction(&ga, 0.4, 0.3, &gb, &mut gp).unwrap();
            same("bicgstab_direction", &numbers(&space, &gp), &p);
        }
    }
}

/// The greatest and the least numbers, those of very different sizes, and those that are not finite.
#[test]
fn sums_of_extreme_terms_have_the_bits_of_threads() {
    let threads = Threads::<f64>::new(2);
    for space in spaces() {
        for n in [1, 300, 2 * CHUNK + 100] {
            for scale in [1e-160, 1e-155, 1e-100, 1e-8, 1.0, 1e8, 1e100, 1e150, 1e154] {
                let x: Vec<f64> = random_vector(n).iter().map(|v| v * scale).collect();
                let mut y = x.clone();
                y.iter_mut().step_by(3).for_each(|y| *y *= 1e-40);
                y.iter_mut().step_by(7).for_each(|y| *y *= 1e-17);
                for bad in [None, Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(f64::NAN)] {
                    if let Some(bad) = bad {
                        y[n / 2] = bad;
                    }
                    let (gx, gy) = (vector(&space, &x), vector(&space, &y));
                    assert_eq!(
                        space.dot(&gx, &gy).unwrap().to_bits(),
                        threads.dot(&x, &y).unwrap().to_bits(),
                        "{}: {n} {scale:e} {bad:?}",
                        label(space.device())
                    );
                }
            }
        }
    }
}

/// More vectors than one launch, and more than one copy to the host, takes.
#[test]
fn bases_of_any_length() {
    let (threads, n) = (Threads::<f64>::new(2), 5000);
    for space in spaces() {
        let exact = space.device().is_reproducible();
        for count in [0, 1, 2, 3, 31, 32, 33, 71, 72, 73, 100] {
            let basis: Vec<Vec<f64>> = (0..count).map(|k| random_vector(n + k)[k..].to_vec()).collect();
            let own: Vec<_> = basis.iter().map(|v| vector(&space, v)).collect();
            let coefficients: Vec<f64> = (0..count).map(|k| 1.0 / (1.0 + k as f64)).collect();
            let (mut y, start) = (random_vector(n), random_vector(n));
            let mut gy = vector(&space, &start);
            let (mut out, mut expected) = (vec![0.0; count + 1], vec![0.0; count + 1]);
            threads.combine_dots(&coefficients, &basis, &mut y, &mut expected).unwrap();
            space.combine_dots(&coefficients, &own, &mut gy, &mut out).unwrap();
            let near = |x: f64, y: f64| if exact { x.to_bits() == y.to_bits() } else { (x - y).abs() < 1e-9 };
            assert!(
                out.iter().zip(&expected).all(|(x, y)| near(*x, *y)),
                "{} {count}",
                label(space.device())
            );
            assert!(numbers(&space, &gy).iter().zip(&y).all(|(x, y)| near(*x, *y)), "{count}");
        }
    }
}

#[test]
fn sizes_and_numbers_that_are_not_finite() {
    let threads = Threads::<f64>::new(2);
    for space in spaces() {
        for n in [1, 100, 3 * CHUNK + 5] {
            let mut x = random_vector(n);
            x[n / 2] = 0.0;
            assert_eq!(space.extremes(&vector(&space, &x)), threads.extremes(&x), "{n}");
            for (place, bad) in [(n - 1, f64::NEG_INFINITY), (n / 3, f64::INFINITY)] {
                x[place] = bad;
                let found = space.extremes(&vector(&space, &x)).unwrap().not_finite.unwrap();
                assert_eq!(found, threads.extremes(&x).unwrap().not_finite.unwrap());
            }
            x[0] = f64::NAN;
            let (place, value) = space.extremes(&vector(&space, &x)).unwrap().not_finite.unwrap();
            assert!(place == 0 && value.is_nan());
        }
        let none = space.extremes(&vector(&space, &[])).unwrap();
        assert_eq!((none.largest, none.least, none.not_finite), (0.0, f64::INFINITY, None));
    }
}

/// In single precision, against a sum in double precision.
#[test]
fn single_precision() {
    for device in opened(DeviceOptions { reproducible: true, ..DeviceOptions::default() }) {
        let (space, threads) = (DeviceSpace::<f32>::new(&device).unwrap(), Threads::<f32>::new(1));
        let x: Vec<f32> = random_vector(10_000).iter().map(|&v| v as f32).collect();
        let y: Vec<f32> = random_vector(10_001)[1..].iter().map(|&v| v as f32).collect();
        let (gx, mut gy) = (vector(&space, &x), vector(&space, &y));
        let mut expected = y.clone();
        assert_eq!(space.dot(&gx, &gy).unwrap().to_bits(), threads.dot(&x, &y).unwrap().to_bits());
        let huge = vector(&space, &vec![3e38f32; 5000]);
        assert_eq!(space.dot(&huge, &huge).unwrap(), f32::INFINITY);
        space.axpby(0.3, &gx, 0.7, &mut gy).unwrap();
        threads.axpby(0.3, &x, 0.7, &mut expected).unwrap();
        assert_eq!(numbers(&space, &gy), expected);
    }
}

/// One launch and one synchronisation for an update with its sums; none for updates.
#[test]
fn launches_and_synchronisations_are_counted() {
    for space in spaces() {
        let (x, mut y) = (vector(&space, &[1.0; 5000]), vector(&space, &[2.0; 5000]));
        let z = vector(&space, &[0.0; 5000]);
        space.reset_counts().unwrap();
        space.axpby(1.0, &x, 2.0, &mut y).unwrap();
        space.update_norm(1.0, &x, &mut y).unwrap();
        space.dots(&[(&x, &y), (&x, &x), (&z, &y)], &mut [0.0; 3]).unwrap();
        let counts = space.counts().unwrap();
        assert_eq!((counts.launches, counts.synchronisations, counts.bytes_up), (3, 2, 0));
        let pieces = if space.device().shape() == KernelShape::Cpu { 3 } else { 20 };
        assert_eq!(counts.bytes_down, 4 * 40 * pieces);
        assert!(counts.kernels.is_empty(), "nobody asked for times");
    }
}

#[test]
fn kernels_are_timed_where_that_is_asked_for() {
    for device in opened(DeviceOptions { timed: true, ..DeviceOptions::default() }) {
        let space = DeviceSpace::<f64>::new(&device).unwrap();
        let mut x = space.zeros(&1_000_000).unwrap();
        space.reset_counts().unwrap();
        space.scale(2.0, &mut x).unwrap();
        space.scale(2.0, &mut x).unwrap();
        let counts = space.counts().unwrap();
        let (launches, seconds) = counts.kernels["scale"];
        assert_eq!((launches, counts.kernels.len()), (2, 1));
        assert!(seconds > 1e-6 && seconds < 10.0, "{seconds}");
    }
}

#[test]
fn buffers_come_and_go() {
    for device in opened(DeviceOptions::default()) {
        {
            let space = DeviceSpace::<f64>::new(&device).unwrap();
            let _vectors = [space.zeros(&1000).unwrap(), space.zeros(&10).unwrap()];
            assert_eq!(device.live_buffers(), 3, "two vectors and the pieces of sums");
            assert!(device.live_bytes() >= 8 * 1010);
            let huge = space.zeros(&(usize::MAX / 8));
            assert!(matches!(huge, Err(BackendError::OutOfMemory { .. })), "{huge:?}");
        }
        assert_eq!((device.live_buffers(), device.live_bytes()), (0, 0));
    }
}

/// A vector of one device is refused by another, and so is a vector of the same device opened twice.
#[test]
fn vectors_of_other_devices_are_refused() {
    let spaces = spaces();
    for pair in spaces.windows(2) {
        let (own, other) = (vector(&pair[0], &[1.0; 100]), vector(&pair[1], &[1.0; 100]));
        let mut own = own;
        for result in [
            pair[0].axpby(1.0, &other, 1.0, &mut own),
            pair[0].copy(&other, &mut own),
            pair[0].dot(&own, &other).map(drop),
            pair[0].download(&other, &mut [0.0; 100]),
        ] {
            assert!(
                matches!(&result, Err(BackendError::Failed { what }) if what.contains("another device")),
                "{result:?}"
            );
        }
    }
}
