//! A space of threads: how many there are, and what it says about them.

use krylith::Solver;
use krylith::gallery::Problem;
use krylith::space::{Space, ThreadLimit, Threads, most_threads};

#[test]
fn more_threads_than_are_worth_it_are_not_started() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let most = (4 * cores).max(8);
    for requested in [70_000, usize::MAX] {
        let space = Threads::<f64>::new(requested);
        assert_eq!(space.threads(), most);
        let statistics = space.statistics();
        assert_eq!((statistics.requested, statistics.started), (requested, most));
        assert_eq!(statistics.limit, Some(ThreadLimit::Cores));
    }
    let space = Threads::<f64>::for_rows(70_000, 100);
    assert_eq!(space.threads(), 3);
    assert_eq!(space.statistics().limit, Some(ThreadLimit::Rows));
    assert_eq!(space.statistics().limit.unwrap().to_string(), "at most one thread per 32 rows");
    for (rows, threads) in [(300, 8), (1_000_000, 8)] {
        let space = Threads::<f64>::for_rows(8, rows);
        assert_eq!((space.threads(), space.statistics().limit), (threads, None));
    }
}

/// A team larger than the machine runs every operation with all members; the counts say so and begin anew.
#[test]
fn statistics_count_operations_since_the_reset() {
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores >= 8 {
        // Not larger than the machine: another program may make it smaller.
        return;
    }
    let space = Threads::<f64>::new(8);
    let (x, mut y) = (vec![1.0; 10_000], vec![2.0; 10_000]);
    let count = |operations: u64| {
        let statistics = space.statistics();
        assert_eq!((statistics.requested, statistics.started, statistics.limit), (8, 8, None));
        assert_eq!((statistics.operations, statistics.operations_with_fewer), (operations, 0));
        assert_eq!((statistics.least_members, statistics.shrinks), (8, 0));
    };
    count(0);
    for _ in 0..5 {
        space.axpby(1.0, &x, 0.5, &mut y).unwrap();
    }
    count(5);
    space.reset_statistics();
    space.axpby(1.0, &x, 0.5, &mut y).unwrap();
    count(1);
}

/// A solver does the same for its matrix, and its report says so; what ran is counted by solve.
#[test]
fn reports_say_how_many_threads_there_were() {
    let report = |problem: &str, threads: usize| {
        let a = problem.parse::<Problem>().unwrap().generate().unwrap();
        let b = vec![1.0; a.nrows()];
        Solver::new().threads(threads).solve(&a, &b).unwrap().report
    };
    let small = report("poisson2d:10", 70_000);
    assert_eq!((small.team.requested, small.team.started, small.threads), (70_000, 3, 3));
    assert_eq!(small.team.limit, Some(ThreadLimit::Rows));
    let large = report("poisson2d:100", 70_000);
    assert_eq!((large.team.started, large.team.limit), (most_threads(), Some(ThreadLimit::Cores)));
    let two = report("poisson2d:100", 2);
    assert_eq!((two.team.requested, two.team.started, two.team.limit), (2, 2, None));
    assert!(two.team.operations > two.iterations as u64);
    assert!(two.team.operations_with_fewer <= two.team.operations);
}
