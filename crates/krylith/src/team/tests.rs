//! The team on real threads.

use super::*;

/// A team that waits for all its workers, on any machine.
fn patient(size: usize) -> Team {
    let team = Team::new(size);
    team.shared.patient.store(true, Ordering::Relaxed);
    team
}

/// A team that does not wait for late workers, on any machine.
fn impatient(size: usize) -> Team {
    let team = Team::new(size);
    team.shared.patient.store(false, Ordering::Relaxed);
    team
}

/// Members that come to a job and pass its barrier.
fn members_that_meet(team: &Team) -> usize {
    let count = AtomicUsize::new(0);
    team.run(|member| {
        member.barrier();
        count.fetch_add(1, Ordering::Relaxed);
    });
    count.into_inner()
}

#[test]
fn every_member_runs_once() {
    for size in [1, 2, 3, 8] {
        let team = patient(size);
        let runs: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
        for _ in 0..1000 {
            team.run(|member| {
                assert_eq!(member.size(), size);
                runs[member.rank()].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert!(runs.iter().all(|r| r.load(Ordering::Relaxed) == 1000));
    }
}

/// However many come: ranks 0 to size − 1, each once.
#[test]
fn those_who_come_share_the_work() {
    let size = 8;
    let team = impatient(size);
    let mut sizes = [0; 9];
    for _ in 0..2000 {
        let runs: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
        let seen = AtomicUsize::new(0);
        team.run(|member| {
            member.barrier();
            runs[member.rank()].fetch_add(1, Ordering::Relaxed);
            seen.store(member.size(), Ordering::Relaxed);
        });
        let seen = seen.into_inner();
        assert!((1..=size).contains(&seen));
        let counts: Vec<usize> = runs.into_iter().map(AtomicUsize::into_inner).collect();
        assert!((0..size).all(|rank| counts[rank] == usize::from(rank < seen)), "{counts:?}");
        sizes[seen] += 1;
    }
    println!("jobs by size of the team: {sizes:?}");
}

/// Each round every member writes its own cell and, after the barrier, reads everybody's.
#[test]
fn nobody_passes_a_barrier_early() {
    let size = 4;
    let team = patient(size);
    let cells: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
    team.run(|member| {
        for round in 1..=500 {
            cells[member.rank()].store(round, Ordering::Relaxed);
            member.barrier();
            assert!(cells.iter().all(|c| c.load(Ordering::Relaxed) == round));
            member.barrier();
        }
    });
}

/// A chain: member k adds one to what member k − 1 left, round after round.
#[test]
fn progress_is_waited_for() {
    let (size, rounds) = (8, 200);
    let team = patient(size);
    let progress = Progress::new(size);
    let value = AtomicUsize::new(0);
    team.run(|member| {
        let before = (member.rank() + size - 1) % size;
        for round in 1..=rounds {
            let needed = if member.rank() == 0 { round - 1 } else { round };
            member.wait_for(&progress, before, needed);
            value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            progress.announce(member.rank(), round);
        }
    });
    assert_eq!(value.load(Ordering::Relaxed), size * rounds);
}

#[test]
fn parts_cover_everything_once() {
    for (n, grain, size) in [(0, 4, 3), (1, 4, 3), (100, 8, 3), (1000, 64, 7), (5, 1, 8)] {
        let part = |rank| Member { rank, size, ..Member::ALONE }.part(n, grain);
        assert_eq!(part(0).start, 0);
        assert_eq!(part(size - 1).end, n);
        for rank in 1..size {
            assert_eq!(part(rank).start, part(rank - 1).end);
            assert!(part(rank).start.is_multiple_of(grain) || part(rank).start == n);
        }
    }
}

#[test]
fn nested_and_shared_use_run_alone() {
    let team = patient(3);
    let inner = AtomicUsize::new(0);
    team.run(|_| {
        team.run(|member| {
            assert_eq!((member.rank(), member.size()), (0, 1));
            member.barrier();
            inner.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(inner.load(Ordering::Relaxed), 3);
}

#[test]
fn a_panic_comes_out_and_the_team_lives_on() {
    let team = patient(4);
    for culprit in 0..4 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(|member| {
                member.barrier();
                assert!(member.rank() != culprit, "member {culprit} fails");
                // The others wait for one that never comes.
                member.barrier();
            });
        }));
        let message = *result.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("fails"), "{message}");
    }
    assert_eq!(members_that_meet(&team), 4);
}

#[test]
fn inside_rayon_and_side_by_side() {
    use rayon::prelude::*;
    let total: usize = (0..32)
        .into_par_iter()
        .map(|_| {
            let team = patient(3);
            let sum = AtomicUsize::new(0);
            for _ in 0..20 {
                team.run(|member| {
                    member.barrier();
                    sum.fetch_add(member.rank() + 1, Ordering::Relaxed);
                });
            }
            sum.into_inner()
        })
        .sum();
    assert_eq!(total, 32 * 20 * 6);
}

#[test]
fn parked_workers_wake_up() {
    let team = patient(2);
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let ranks = AtomicUsize::new(0);
        team.run(|member| {
            ranks.fetch_or(1 << member.rank(), Ordering::Relaxed);
        });
        assert_eq!(ranks.into_inner(), 3);
    }
}

/// A worker that is blocked inside operations, as if the system had taken its core, is done without; when it no longer is, it
/// comes back.
#[test]
fn a_team_shrinks_while_a_worker_has_no_core_and_grows_again() {
    let team = impatient(2);
    let blocked = AtomicBool::new(true);
    let run = || {
        let members = AtomicUsize::new(0);
        team.run(|member| {
            members.fetch_add(1, Ordering::Relaxed);
            if member.rank() == 1 && blocked.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(4));
            }
            member.barrier();
        });
        members.into_inner()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while team.history().shrinks() == 0 {
        run();
        assert!(Instant::now() < deadline, "{:?}", team.history());
    }
    while run() > 1 {
        assert!(Instant::now() < deadline, "{:?}", team.history());
    }
    assert_eq!(team.history().least_members(), 1);
    assert!(team.history().with_fewer() > 0);
    blocked.store(false, Ordering::Relaxed);
    while run() == 1 {
        assert!(Instant::now() < deadline, "{:?}", team.history());
    }
    team.history().reset();
    assert_eq!((team.history().shrinks(), team.history().least_members()), (0, 2));
}

/// Of three workers one is blocked: that one is sent away. Others may be too, where the machine has no core for them.
#[test]
fn the_worker_without_a_core_is_done_without() {
    let team = impatient(4);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !team.shared.slots[1].0.bench.is_taken() {
        team.run(|member| {
            if std::thread::current().name() == Some("krylith-2") {
                std::thread::sleep(Duration::from_millis(4));
            }
            member.barrier();
        });
        assert!(Instant::now() < deadline, "{:?}", team.history());
    }
    assert!(team.history().shrinks() > 0);
}

/// Members that sleep while they wait are woken by a failure, wherever they sleep.
#[test]
fn a_panic_ends_the_sleep_of_the_others() {
    for team in [patient(4), impatient(4)] {
        let progress = Progress::new(4);
        for culprit in 0..4 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                team.run(|member| {
                    if member.rank() == culprit % member.size() {
                        std::thread::sleep(Duration::from_millis(20));
                        panic!("member {culprit} fails");
                    }
                    // Some sleep here, some there; nobody ever comes.
                    if member.rank() % 2 == 0 {
                        member.barrier();
                    }
                    member.wait_for(&progress, culprit, 1);
                });
            }));
            let message = *result.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains("fails"), "{message}");
        }
        assert!(members_that_meet(&team) >= 1);
    }
}

/// Members that wait long sleep: they use hardly any processor time.
#[test]
#[cfg(target_os = "linux")]
fn members_that_wait_long_use_no_processor_time() {
    use super::clock::ThreadClock;
    for team in [patient(3), impatient(3)] {
        let used = Mutex::new(Vec::new());
        team.run(|member| {
            let clock = ThreadClock::current().unwrap();
            let before = clock.read().unwrap();
            if member.rank() == 0 {
                std::thread::sleep(Duration::from_millis(200));
            }
            member.barrier();
            lock(&used).push(clock.read().unwrap() - before);
        });
        for used in lock(&used).iter() {
            assert!(*used < Duration::from_millis(50), "{used:?} of 200 ms");
        }
    }
}
