//! What must be true of every call, whatever it was given.

use super::exact::{Truth, judge};
use super::run::{Ended, Made, What};
use super::system::System;
use super::wide::Wide;
use super::words::Answer;
use krylith::{Csr, Method, Outcome, PrecondSpec, Report, SetupError, SolveError};

/// A property that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// `Converged` and the residual does not meet the tolerance.
    FalseConverged,
    /// `LeastSquares` and x is not the least squares.
    FalseLeastSquares,
    /// `Singular` and an x may meet the tolerance.
    FalseSingular,
    /// A vector that proves nothing.
    FalseNullVector,
    /// The residual of x meets half of the relative tolerance, as residuals in double-double show, and the outcome is another.
    MissedAnswer,
    /// `Converged` and x or the residual is not finite.
    ConvergedNotFinite,
    /// The reported residual is not that of x.
    ReportedResidual,
    /// The residual of x is larger than its certified bound, or x is no answer and the bound is above the residual of 0.
    ResidualBound,
    /// The residual of x is larger than that of the initial guess.
    WorseThanGuess,
    /// Input with NaN, infinity or a wrong length did not give an error.
    InvalidAccepted,
    /// The preconditioner or the method is not the one asked for, and no step of recovery says why.
    SilentChange,
    /// A report that contradicts itself or the options.
    Nonsense,
    /// A bad pivot ended a preparation although recovery is on.
    RecoveryFailed,
    /// Another number of threads gave other bits.
    ThreadBits,
    /// A panic.
    Panic,
}

impl Check {
    /// Every check, in the order of the report.
    pub const ALL: [Check; 15] = [
        Check::FalseConverged,
        Check::FalseLeastSquares,
        Check::FalseSingular,
        Check::FalseNullVector,
        Check::MissedAnswer,
        Check::ConvergedNotFinite,
        Check::ReportedResidual,
        Check::ResidualBound,
        Check::WorseThanGuess,
        Check::InvalidAccepted,
        Check::SilentChange,
        Check::Nonsense,
        Check::RecoveryFailed,
        Check::ThreadBits,
        Check::Panic,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Check::FalseConverged => "false_converged",
            Check::FalseLeastSquares => "false_least_squares",
            Check::FalseSingular => "false_singular",
            Check::FalseNullVector => "false_null_vector",
            Check::MissedAnswer => "missed_answer",
            Check::ConvergedNotFinite => "converged_not_finite",
            Check::ReportedResidual => "reported_residual",
            Check::ResidualBound => "residual_bound",
            Check::WorseThanGuess => "worse_than_guess",
            Check::InvalidAccepted => "invalid_accepted",
            Check::SilentChange => "silent_change",
            Check::Nonsense => "nonsense",
            Check::RecoveryFailed => "recovery_failed",
            Check::ThreadBits => "thread_bits",
            Check::Panic => "panic",
        }
    }
}

/// What was checked of one case and what was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// How often each check was made.
    pub made: [u64; Check::ALL.len()],
    /// What failed, in words.
    pub failed: Vec<(Check, String)>,
    /// Answers that are worse than the guess by less than a residual computed in `f64` can show.
    pub worse_within_rounding: u64,
}

impl Findings {
    /// One check was made; `wrong` has the words if it failed.
    fn check(&mut self, check: Check, wrong: Option<String>) {
        self.made[check as usize] += 1;
        self.failed.extend(wrong.map(|words| (check, words)));
    }
}

/// Checks the calls of a case, one list for each number of threads.
pub fn check(system: &System, runs: &[(usize, Vec<Made>)]) -> Findings {
    let mut findings = Findings::default();
    let Some(((threads, first), others)) = runs.split_first() else { return findings };
    let check_run = |findings: &mut Findings, threads: usize, made: &[Made]| {
        for (number, call) in made.iter().enumerate() {
            let before = findings.failed.len();
            check_call(findings, system, threads, call);
            for (_, words) in &mut findings.failed[before..] {
                *words = format!("call {}, threads {threads}: {words}", number + 1);
            }
        }
    };
    check_run(&mut findings, *threads, first);
    for (other_threads, other) in others {
        let difference = difference(first, other);
        let differs = difference.is_some();
        let words = difference.map(|words| format!("on {threads} and {other_threads} threads {words}"));
        findings.check(Check::ThreadBits, words);
        if differs {
            check_run(&mut findings, *other_threads, other);
        }
    }
    findings
}

fn is_finite(v: &[f64]) -> bool {
    v.iter().all(|v| v.is_finite())
}

fn check_call(findings: &mut Findings, system: &System, threads: usize, made: &Made) {
    let panic = match &made.ended {
        Ended::Panicked(message) => Some(message.clone()),
        _ => None,
    };
    findings.check(Check::Panic, panic);
    if let Ended::Failed(error) = &made.ended {
        check_row(findings, system, error);
    }
    check_recovery(findings, system, made);
    let What::Solve { matrix, transposed, rhs, stale, .. } = made.what else { return };
    let other = transposed.then(|| system.matrix(matrix).transpose());
    let (a, b) = (other.as_ref().unwrap_or(system.matrix(matrix)), &system.rhs[rhs]);
    let wrong_near_null = system.options.wrong_near_null.then_some("a near-null vector of the wrong length");
    let invalid = invalid(a, b, &made.guess).or(wrong_near_null);
    match (&made.ended, invalid) {
        (Ended::Solved(report, _), Some(what)) => {
            findings.check(Check::InvalidAccepted, Some(format!("{what} gave {}", report.outcome.name())));
        }
        (Ended::Failed(_), Some(_)) => findings.check(Check::InvalidAccepted, None),
        (Ended::Solved(report, x), None) => {
            check_names(findings, system, report);
            check_sense(findings, system, threads, report, stale);
            check_answer(findings, system, report, (a, b, &made.guess), x);
        }
        _ => {}
    }
}

/// What is wrong with the input, if anything.
pub fn invalid(a: &Csr<f64>, b: &[f64], guess: &[f64]) -> Option<&'static str> {
    Some(match () {
        () if a.nrows() != a.ncols() => "a matrix that is not square",
        () if b.len() != a.nrows() => "a right-hand side of the wrong length",
        () if guess.len() != a.ncols() => "a guess of the wrong length",
        () if !is_finite(a.values()) => "a matrix that is not finite",
        () if !is_finite(b) => "a right-hand side that is not finite",
        () if !is_finite(guess) => "a guess that is not finite",
        () => return None,
    })
}

/// The row that an error blames.
fn blamed_row(error: &SolveError) -> Option<usize> {
    match error {
        SolveError::Setup(SetupError::BadPivot { row, .. } | SetupError::MissingDiagonal { row }) => {
            Some(*row)
        }
        _ => None,
    }
}

fn check_row(findings: &mut Findings, system: &System, error: &SolveError) {
    let n = system.a.nrows();
    let words =
        blamed_row(error).filter(|&row| row >= n).map(|_| format!("`{error}` in a matrix of {n} rows"));
    findings.check(Check::Nonsense, words);
}

/// Where recovery is on, a bad pivot does not end a preparation.
fn check_recovery(findings: &mut Findings, system: &System, made: &Made) {
    let prepares = matches!(made.what, What::Prepare | What::Solve { prepares: true, .. });
    let finite = is_finite(system.a.values()) && is_finite(system.other.values());
    if !(prepares && finite && system.options.recover) {
        return;
    }
    let words = match &made.ended {
        Ended::Failed(error) if blamed_row(error).is_some() => Some(format!("`{error}` with recovery on")),
        _ => None,
    };
    findings.check(Check::RecoveryFailed, words);
}

/// The preconditioner and the method are those asked for, or recovery names what is used instead.
fn check_names(findings: &mut Findings, system: &System, report: &Report) {
    let (asked, found) = (&system.options.preconditioner, &report.preconditioner);
    let explains = |action: &str| {
        let words: Vec<&str> =
            action.split_whitespace().map(|word| word.trim_end_matches([',', ';', ':'])).collect();
        let diagonal = found == "jacobi" && action.contains("diagonal") && !action.contains("shift");
        words.contains(&found.as_str()) || diagonal
    };
    let explained = report.recovery.iter().any(|step| explains(&step.action));
    let known = found.parse::<PrecondSpec>().is_ok_and(|found| found != PrecondSpec::auto());
    let same = asked == found || (asked == "auto" && known);
    let words = (!same && !explained).then(|| {
        format!("asked for {asked}, the report has {found} and explains it by {:?}", report.recovery)
    });
    findings.check(Check::SilentChange, words);
    let (asked, found) = (system.options.method, &report.solver);
    let same = asked == Method::Auto || asked.to_string() == *found;
    let explained = report.recovery.iter().any(|step| step.action.contains(found.as_str()));
    let words = (!same && !explained).then(|| format!("asked for {asked}, the report has {found}"));
    findings.check(Check::SilentChange, words);
}

/// There is no preconditioner, or it is that of a fallback, which is made from the matrix at hand.
fn made_for_this_solve(report: &Report) -> bool {
    let name = report.preconditioner.as_str();
    name == "none" || report.recovery.iter().any(|step| step.action.ends_with(&format!("with {name}")))
}

/// The report agrees with itself and with the options.
fn check_sense(findings: &mut Findings, system: &System, threads: usize, report: &Report, stale: bool) {
    let options = &system.options;
    let changed = system.a.values() != system.other.values();
    let interrupted = report.outcome.name() == "interrupted";
    let wrong = match () {
        () if report.iterations > options.max_iterations => {
            format!("{} iterations of {} at most", report.iterations, options.max_iterations)
        }
        () if report.threads == 0 || report.threads > threads => format!("{} threads", report.threads),
        () if report.relative_residual < 0.0 => format!("relative residual {:e}", report.relative_residual),
        () if !(report.shift >= 0.0 && report.shift.is_finite()) => format!("shift {:e}", report.shift),
        () if interrupted && options.stop_at.is_none() => "interrupted by nobody".into(),
        () if report.backward_error.is_some_and(|e| e < 0.0) => format!("{:?}", report.backward_error),
        () if stale && changed && !options.allow_stale && !made_for_this_solve(report) => {
            format!("{} of another matrix was used", report.preconditioner)
        }
        () => return findings.check(Check::Nonsense, None),
    };
    findings.check(Check::Nonsense, Some(wrong));
}

type Given<'a> = (&'a Csr<f64>, &'a [f64], &'a [f64]);

/// x against A, b, the guess and what the report says of it.
fn check_answer(findings: &mut Findings, system: &System, report: &Report, given: Given<'_>, x: &[f64]) {
    let (a, b, guess) = given;
    let converged = report.outcome == Outcome::Converged;
    let truth = judge(a, x, b);
    if converged {
        let finite = truth.is_some() && report.relative_residual.is_finite();
        let words = format!(
            "converged, relative residual {:e}, x finite: {}",
            report.relative_residual,
            truth.is_some()
        );
        findings.check(Check::ConvergedNotFinite, (!finite).then_some(words));
    }
    let Some(before) = judge(a, guess, b) else { return };
    let Some(truth) = truth else {
        let words = format!("{}: x is not finite, the guess was", report.outcome.name());
        return findings.check(Check::WorseThanGuess, Some(words));
    };
    if converged {
        let (rtol, atol) = (system.options.rtol, system.options.atol);
        let words = || {
            format!(
                "converged: ‖b − A x‖ = {}, tolerance {}, ‖b‖ = {}",
                truth.residual,
                truth.bound(rtol, atol),
                truth.rhs
            )
        };
        findings.check(Check::FalseConverged, (!truth.meets(rtol, atol)).then(words));
    }
    let (rtol, atol) = (system.options.rtol, system.options.atol);
    if !converged && report.outcome != Outcome::Interrupted {
        let words = || {
            format!(
                "{}: ‖b − A x‖ = {} meets {}",
                report.outcome.name(),
                truth.residual,
                truth.bound(rtol, atol)
            )
        };
        // Double-double has more than 96 bits.
        let terms = Wide::from_f64(truth.longest_row as f64 + 2.0);
        let certain = truth.magnitude.mul(terms).mul(Wide::power_of_two(-96)) < truth.bound(rtol / 4.0, 0.0);
        findings.check(Check::MissedAnswer, (certain && truth.meets(rtol / 2.0, 0.0)).then(words));
    }
    let answer = Answer { a, b, x, truth: &truth, rtol, atol };
    if report.outcome == Outcome::LeastSquares {
        findings.check(Check::FalseLeastSquares, answer.wrong_least_squares(report));
    }
    if report.outcome == Outcome::Singular {
        findings.check(Check::FalseSingular, answer.wrong_singular(report));
    }
    if let Some(null) = &report.certificate.null_vector {
        findings.check(Check::FalseNullVector, answer.wrong_null_vector(null));
    }
    if let Some(right) = is_reported(&truth, report.relative_residual) {
        let words = format!(
            "{}: reported {:e}, ‖b − A x‖ = {}, ‖b‖ = {}, rounding {}",
            report.outcome.name(),
            report.relative_residual,
            truth.residual,
            truth.rhs,
            truth.rounding(),
        );
        findings.check(Check::ReportedResidual, (!right).then_some(words));
    }
    if let Some(bound) = report.certificate.residual_bound {
        let words = format!("{}: bound {bound:e}, ‖b − A x‖ = {}", report.outcome.name(), truth.residual);
        findings.check(Check::ResidualBound, (!is_bound(&truth, bound, converged)).then_some(words));
    }
    // Of a converged solve only the tolerance is promised: the guess may have met it too.
    if converged && truth.meets(system.options.rtol, system.options.atol) {
        return;
    }
    let worse = truth.residual > before.residual.add(before.residual.mul(Wide::from_f64(1e-12)));
    let beyond = truth.residual > before.residual.add(truth.rounding()).add(before.rounding());
    findings.worse_within_rounding += u64::from(worse && !beyond);
    let words = || {
        format!(
            "{}: ‖b − A x‖ = {}, from a guess with {}",
            report.outcome.name(),
            truth.residual,
            before.residual
        )
    };
    findings.check(Check::WorseThanGuess, (worse && beyond).then(words));
}

/// Whether the residual of x is at most `bound` ‖b‖ as reported, up to the rounding of ‖b‖, and the bound no larger than that of 0 if x is no answer.
/// A residual that was computed in `f64` has a bound that is larger by a tenth at most.
fn is_bound(truth: &Truth, bound: f64, converged: bool) -> bool {
    let divisor = if truth.rhs.is_zero() { Wide::from_f64(1.0) } else { truth.rhs };
    let no_worse_than_zero = converged || truth.rhs.is_zero() || bound <= 1.2;
    let rounding = Wide::from_f64(1.0 + (truth.rows as f64 + 32.0) * f64::EPSILON);
    let smallest = Wide::power_of_two(-1073);
    let underflow = smallest.mul(Wide::from_f64(bound)).add(smallest.mul(divisor));
    let is_above = || truth.residual <= Wide::from_f64(bound).mul(divisor).mul(rounding).add(underflow);
    no_worse_than_zero && (bound == f64::INFINITY || is_above())
}

/// Whether the reported residual is that of x, as far as `f64` can compute it; none where it overflows on the way.
///
/// ρ is to be ‖b − A x‖ / ‖b‖, or the norm itself for b = 0. Compared is ρ ‖b‖ with ‖b − A x‖: the norm of b is rounded too,
/// relatively by n ε and by the smallest number, and so is the quotient.
fn is_reported(truth: &Truth, reported: f64) -> Option<bool> {
    let overflow = Wide::power_of_two(1021);
    if truth.magnitude >= overflow || truth.rhs >= overflow {
        return None;
    }
    let divisor = if truth.rhs.is_zero() { Wide::from_f64(1.0) } else { truth.rhs };
    if !reported.is_finite() {
        // The quotient itself may be out of range.
        return Some(reported == f64::INFINITY && truth.residual >= divisor.mul(overflow));
    }
    let smallest = Wide::power_of_two(-1073);
    let scaled = Wide::from_f64(reported).mul(divisor);
    let relative = Wide::from_f64((truth.rows as f64 + 32.0) * f64::EPSILON);
    // ρ times the error of ‖b‖ by underflow, and ‖b‖ times that of ρ.
    let underflow = smallest.mul(Wide::from_f64(reported)).add(smallest.mul(divisor));
    let allowed = truth.rounding().add(truth.residual.mul(relative)).add(underflow);
    Some(scaled.distance(truth.residual) <= allowed)
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The first difference between the same calls on different numbers of threads.
fn difference(one: &[Made], other: &[Made]) -> Option<String> {
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        let words = match (&one.ended, &other.ended) {
            (Ended::Solved(a, x), Ended::Solved(b, y)) => difference_of_reports(a, b).or_else(|| {
                let place = || x.iter().zip(y).position(|(x, y)| !same_bits(&[*x], &[*y])).unwrap_or(0);
                (!same_bits(x, y)).then(|| format!("x differs from entry {} on", place()))
            }),
            // The limit that such an error states depends on what memory is free.
            (Ended::Failed(a), Ended::Failed(b))
                if error_name(a) == "MemoryLimit" && error_name(b) == "MemoryLimit" =>
            {
                None
            }
            (a, b) => {
                let (a, b) = (short(a), short(b));
                (a != b).then(|| format!("one is {a}, the other {b}"))
            }
        };
        if let Some(words) = words {
            return Some(format!("call {} differs: {words}", number + 1));
        }
    }
    (one.len() != other.len()).then(|| "one took more calls than the other".into())
}

fn difference_of_reports(a: &Report, b: &Report) -> Option<String> {
    let texts = |r: &Report| {
        [
            ("outcome", r.outcome.name().into()),
            ("iterations", r.iterations.to_string()),
            ("relative residual", format!("{:?}", r.relative_residual)),
            ("preconditioner", r.preconditioner.clone()),
            ("solver", r.solver.clone()),
            ("shift", format!("{:?}", r.shift)),
            ("recovery", format!("{:?}", r.recovery)),
        ]
    };
    let differs = texts(a).into_iter().zip(texts(b)).find(|(a, b)| a.1 != b.1);
    let words = differs.map(|((name, a), (_, b))| format!("{name} is {a} and {b}"));
    words.or_else(|| (!same_bits(&a.history, &b.history)).then(|| "the history of residuals differs".into()))
}

/// How a call ended, in a few words.
pub fn short(ended: &Ended) -> String {
    match ended {
        Ended::Done => "done".into(),
        Ended::Solved(report, _) => report.outcome.name().into(),
        Ended::Failed(error) => format!("error: {error}"),
        Ended::Panicked(message) => format!("panic: {message}"),
    }
}

/// The name of an error's variant, such as `BadPivot`.
pub fn error_name(error: &SolveError) -> String {
    let debug = format!("{error:?}");
    let head = debug.split(['{', ' ']).next().unwrap_or_default();
    head.split('(').rfind(|part| !part.is_empty()).unwrap_or_default().trim_end_matches(')').into()
}

#[cfg(test)]
mod tests {
    use super::super::axes::{Kind, Of, kind_of};
    use super::super::run::run;
    use super::super::system::{Call, Preparation, Sources, Which};
    use super::super::watchdog::Watchdog;
    use super::*;
    use krylith::Solver;
    use std::time::Duration;

    /// ( 4 1 ; 1 3 ) x = ( 1, 2 ) by CG without a preconditioner.
    fn system() -> System {
        let sources = Sources::new(None).unwrap();
        let mut system = (0..)
            .map(|case| System::new(1, case, 0, &sources).unwrap())
            .find(|system| kind_of(system.choice.get(Of::Family)) == Kind::Hostile)
            .unwrap();
        system.a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0]).unwrap();
        system.other = system.a.clone();
        system.rhs = [vec![1.0, 2.0], vec![3.0, 4.0]];
        system.guess = vec![0.0, 0.0];
        system.preparation = Preparation::None;
        system.calls = vec![Call::Solve { matrix: Which::A, transposed: false, rhs: 0, fresh: true }];
        let options = &mut system.options;
        (options.preconditioner, options.method) = ("jacobi".into(), Method::Cg);
        (options.rtol, options.atol, options.max_iterations) = (1e-8, 0.0, 10);
        (options.recover, options.stop_at, options.threads) = (true, None, vec![1]);
        options.solver =
            Solver::new().method(Method::Cg).preconditioner(PrecondSpec::jacobi()).max_iterations(10);
        system
    }

    fn answer(system: &System) -> Made {
        let watchdog = Watchdog::start(Duration::from_secs(60), |_| {});
        run(system, 1, &watchdog).remove(0)
    }

    /// What is found after the answer of a sound solve was changed by hand.
    fn found(change: impl FnOnce(&mut Report, &mut Vec<f64>)) -> Vec<Check> {
        let system = system();
        let mut made = answer(&system);
        let Ended::Solved(report, x) = &mut made.ended else { panic!("{made:?}") };
        assert_eq!(report.outcome, Outcome::Converged);
        change(report, x);
        check(&system, &[(1, vec![made])]).failed.into_iter().map(|(check, _)| check).collect()
    }

    #[test]
    fn a_sound_answer_passes() {
        assert_eq!(found(|_, _| {}), []);
    }

    #[test]
    fn wrong_answers_are_found() {
        let wrong = [Check::FalseConverged, Check::ReportedResidual, Check::ResidualBound];
        assert_eq!(found(|_, x| x[0] += 1e-6), wrong);
        assert_eq!(found(|_, x| x[0] = f64::NAN), [Check::ConvergedNotFinite, Check::WorseThanGuess]);
        let worse =
            [Check::FalseConverged, Check::ReportedResidual, Check::ResidualBound, Check::WorseThanGuess];
        assert_eq!(found(|_, x| x[0] = -7.0), worse);
    }

    #[test]
    fn wrong_reports_are_found() {
        assert_eq!(found(|r, _| r.relative_residual = 1e-9), [Check::ReportedResidual]);
        assert_eq!(
            found(|r, _| r.relative_residual = f64::NAN),
            [Check::ConvergedNotFinite, Check::ReportedResidual]
        );
        assert_eq!(found(|r, _| r.certificate.residual_bound = Some(1e-30)), [Check::ResidualBound]);
        assert_eq!(found(|r, _| r.preconditioner = "none".into()), [Check::SilentChange]);
        assert_eq!(found(|r, _| r.solver = "minres".into()), [Check::SilentChange]);
        assert_eq!(found(|r, _| r.iterations = 11), [Check::Nonsense]);
        assert_eq!(found(|r, _| r.outcome = Outcome::Interrupted), [Check::Nonsense]);
    }

    #[test]
    fn recovery_explains_another_preconditioner_by_its_name() {
        let step = |action: &str| krylith::report::Recovery {
            failed: "ic0: bad pivot".into(),
            row: None,
            value: None,
            action: action.into(),
        };
        let with = |name: &str, action: &str| {
            found(|r, _| {
                r.preconditioner = name.into();
                r.recovery = vec![step(action)];
            })
        };
        assert_eq!(with("none", "minres with none"), []);
        assert_eq!(with("none", "the diagonal is shifted by 1e-3"), [Check::SilentChange]);
        assert_eq!(with("ilu0", "ilu0 instead"), []);
    }

    #[test]
    fn other_bits_are_found() {
        let system = system();
        let (one, mut other) = (answer(&system), answer(&system));
        assert_eq!(difference(std::slice::from_ref(&one), &[answer(&system)]), None);
        if let Ended::Solved(_, x) = &mut other.ended {
            x[1] = x[1].next_up();
        }
        let words = difference(&[one], &[other]).unwrap();
        assert!(words.contains("x differs from entry 1"), "{words}");
    }

    #[test]
    fn invalid_input_is_named() {
        let a = system().a;
        assert_eq!(invalid(&a, &[1.0, 2.0], &[0.0, 0.0]), None);
        assert!(invalid(&a, &[1.0], &[0.0, 0.0]).is_some());
        assert!(invalid(&a, &[1.0, f64::NAN], &[0.0, 0.0]).is_some());
        assert!(invalid(&a, &[1.0, 2.0], &[f64::INFINITY, 0.0]).is_some());
        assert_eq!(error_name(&SolveError::StaleFactor), "StaleFactor");
        let error = SolveError::Setup(SetupError::BadPivot { row: 1, value: 0.0 });
        assert_eq!(error_name(&error), "BadPivot");
    }
}
