//! `auto`: drops small entries of the factor that are on the longest chains, where that is predicted to be faster.
//!
//! The sizes that count are those of the factor and not those of A: an entry that A has as a zero may have become large by elimination, and one that is small
//! in A and in the factor hardly changes M. So IC(0) or ILU(0) of A = (I + L) D (I + U) is made first, and the size of a pair is the larger one of |lᵢⱼ| and |uⱼᵢ| times
//! √(dⱼ / aᵢᵢ), what it contributes to its row when A has a unit diagonal. Pairs up to [`THETA`] are dropped where they are on chains that are too long (`chains`).
//!
//! Whether that is worth it is predicted for a machine: an iteration is priced with the wavefronts and entries that are left, iterations are taken to be
//! [`MORE_ITERATIONS`] times as many, and the factor that says what is small costs a set-up. It is refused where sweeps wait for nobody, and where the gain is less than
//! [`LEAST_GAIN`], or [`LEAST_GAIN_OF_DEFAULT`] if nobody has asked; before that factor is made, if a third fewer wavefronts would not be worth it. It is refused, too, where a pivot is not positive. Where the factor of Â then needs a larger shift of the diagonal than that of A, A is taken after all: on `s3rmq4m1` the shift takes 285 iterations to 442. All of it is counted, nothing timed, so that the decision is the same on any number of threads;
//! only where there is no memory for the factor it is another.

use super::chains::{Cut, cut};
use super::{Candidate, Sparsification, count_wavefronts, indicator};
use crate::cost::{Applied, Machine, Work};
use crate::elimination::{Incomplete, Update, bytes_by_rows};
use crate::matrix::Csr;
use crate::operator::{Preconditioner, Recipe};
use crate::options::{Method, Precision, StorageKind};
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::space::Threads;

/// In a trial on some 25 matrices of the catalogue and the gallery, dropping up to 0.02 took 1.004 times the iterations in the geometric mean and 1.17 at most, 0.03 took 1.015 and
/// 1.17, 0.05 took 1.035 and 1.48, 0.1 took 1.17 and 2.9. `krylith solve A --precond ic0 --rhs random --sparsify 'chains(0.05)'` repeats one of them.
pub(super) const THETA: f64 = 0.03;
/// What iterations are predicted to grow by.
const MORE_ITERATIONS: f64 = 1.02;
/// The predicted time without over that with it, at least.
pub(crate) const LEAST_GAIN: f64 = 1.05;
/// The same where nobody has asked for it.
pub(crate) const LEAST_GAIN_OF_DEFAULT: f64 = 1.1;
/// As many iterations are taken for granted when the cost of the decision is weighed and nothing has been predicted.
const ITERATIONS: f64 = 50.0;
/// Of so many wavefronts one is hoped to be saved: where that would not pay, no factor is made to see. The median of what is saved is 37 %.
const HOPED: usize = 3;
/// Smaller matrices are solved in about a millisecond.
const LEAST_ENTRIES: usize = 20_000;

/// What the decision depends on besides the matrix.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    /// Whose sweeps wait.
    pub machine: &'a Machine,
    /// Where the factor is made.
    pub space: &'a Threads<f64>,
    pub method: Method,
    pub kind: &'a PrecondSpec,
    /// Rows and columns are permuted before the factor is made.
    pub reordered: bool,
    /// How A would be stored with its factor, if that was looked at.
    pub stored: Option<StorageKind>,
    /// The predicted time without over that with it, at least.
    pub least_gain: f64,
    /// Predicted, if they were.
    pub iterations: Option<f64>,
    /// Bytes that a factor may take.
    pub limit: u64,
}

/// Decides what is dropped; no marks if A stays as it is.
pub(crate) fn choose(a: &Csr<f64>, setting: &Setting<'_>) -> (Sparsification, Option<Vec<bool>>) {
    let refused = |reason: String| (Sparsification::refused(reason), None);
    let machine = setting.machine;
    if !machine.waits() {
        return refused(format!("sweeps wait for nobody on the machine `{}`", machine.name));
    }
    if a.nnz() < LEAST_ENTRIES {
        return refused("the matrix is small".into());
    }
    let is_of_blocks = matches!(setting.kind.construct(), Construction::Blocks(..));
    let by_blocks = is_of_blocks || setting.stored == Some(StorageKind::Blocks);
    let why_not = [
        (setting.stored == Some(StorageKind::Grid), "the matrix is that of a grid, and stored as one"),
        (setting.reordered, "chains are known for the order as given only"),
        (by_blocks, "rows of a dense block are swept together"),
        (has_fill(setting.kind), "fill has other chains than A"),
        (!drops(setting.kind), "what may be dropped is known of factors that keep no sums"),
        ((0..a.nrows()).any(|i| a.get(i, i) <= 0.0), "the diagonal is not positive"),
    ];
    if let Some((_, reason)) = why_not.into_iter().find(|(holds, _)| *holds) {
        return refused(reason.into());
    }
    let before = count_wavefronts(a.pattern(), |_| true);
    let off = iteration(a, setting, (a.nnz(), before));
    let cost = machine.set_up(StorageKind::Rows, (a.nrows(), a.nnz()), a.nnz() as f64, 1.0);
    let iterations = setting.iterations.unwrap_or(ITERATIONS);
    // The gain of an iteration, and whether all of them pay for the decision.
    let gain = |with: f64| (off / with, cost <= iterations * (off - with));
    let hoped = gain(MORE_ITERATIONS * iteration(a, setting, (a.nnz(), before - before / HOPED)));
    if hoped.0 < setting.least_gain || !hoped.1 {
        return refused(format!("too little of an iteration is waiting for {before} wavefronts"));
    }
    let Sizes { sizes, shift, is_positive } = match sizes_in_factor(a, setting) {
        Ok(found) => found,
        Err(reason) => return refused(reason.into()),
    };
    if !is_positive {
        return refused("a pivot is not positive, so that small entries may matter".into());
    }
    let (candidate, kept) = candidate(a, &sizes, THETA);
    let left = (a.nnz() - candidate.dropped, candidate.wavefronts);
    let (gain, pays) = gain(MORE_ITERATIONS * iteration(a, setting, left));
    let predicted = format!("an iteration is predicted to be {gain:.2} times as fast on `{}`", machine.name);
    let least = setting.least_gain;
    let taken = gain >= least && pays;
    let reason = match (taken, pays) {
        (true, _) => format!("{predicted}; entries up to {THETA} of the factor's rows on the longest chains"),
        (false, false) if gain >= least => {
            format!("{predicted}, too little for what the decision costs")
        }
        (false, _) => format!("{predicted}, less than {least}"),
    };
    let found = Sparsification {
        wavefronts: Some(before),
        candidates: vec![candidate],
        taken: taken.then_some(0),
        reason,
        shift,
    };
    (found, taken.then_some(kept))
}

/// Drops by sizes in the factor up to this, whatever is gained; no marks if there is no factor.
pub(crate) fn by_factor(
    a: &Csr<f64>,
    setting: &Setting<'_>,
    theta: f64,
) -> (Sparsification, Option<Vec<bool>>) {
    let Sizes { sizes, shift, .. } = match sizes_in_factor(a, setting) {
        Ok(found) => found,
        Err(reason) => return (Sparsification::refused(reason.into()), None),
    };
    let before = count_wavefronts(a.pattern(), |_| true);
    let (candidate, kept) = candidate(a, &sizes, theta);
    let found = Sparsification {
        wavefronts: Some(before),
        candidates: vec![candidate],
        taken: Some(0),
        reason: "as asked".into(),
        shift,
    };
    (found, Some(kept))
}

/// Whether a factor of this kind has entries where A has none.
fn has_fill(kind: &PrecondSpec) -> bool {
    kind.level() > 0 || matches!(kind.construct(), Construction::Threshold(_))
}

/// Whether what elimination would make elsewhere is dropped, as in IC(0) and ILU(0). Modified factors keep sums of rows, which dropping would change.
fn drops(kind: &PrecondSpec) -> bool {
    kind.incomplete().is_some_and(|recipe| recipe.form.update == Update::Drop)
}

fn candidate(a: &Csr<f64>, sizes: &[f64], theta: f64) -> (Candidate, Vec<bool>) {
    let Cut { kept, dropped, wavefronts } = cut(a.pattern(), sizes, theta);
    let percent = 100.0 * dropped as f64 / (a.nnz() + a.nrows()).max(1) as f64;
    (Candidate { percent, dropped, indicator: indicator(a, &kept), wavefronts }, kept)
}

/// Nanoseconds of an iteration with a factor of so many entries, both triangles counted, and wavefronts.
fn iteration(a: &Csr<f64>, setting: &Setting<'_>, (left, wavefronts): (usize, usize)) -> f64 {
    setting.machine.iteration(&Work {
        method: setting.method,
        storage: StorageKind::Rows,
        precision: Precision::F64,
        rows: a.nrows(),
        entries: a.nnz(),
        swept: (left + if setting.kind.info().symmetric { a.nrows() } else { 0 }) as f64,
        applied: Applied::Sweeps { wavefronts: wavefronts as f64 },
        without_product: false,
        constant: false,
        constant_factor: false,
    })
}

/// What a factor without fill says of the entries of A.
struct Sizes {
    /// The size of each entry below the diagonal; 0 of the others.
    sizes: Vec<f64>,
    /// What the diagonal was shifted by for the factor.
    shift: f64,
    /// All pivots are positive.
    is_positive: bool,
}

/// The sizes of entries in a factor that is made here, or the reason why there is none.
fn sizes_in_factor(a: &Csr<f64>, setting: &Setting<'_>) -> Result<Sizes, &'static str> {
    const SHIFTS: [f64; 5] = [0.0, 1e-3, 1e-2, 1e-1, 1.0];
    const NONE: &str = "there is no incomplete factor to see what is small";
    // The factor, and the sizes.
    if bytes_by_rows(a.nrows(), a.nnz() as u64).saturating_add(8 * a.nnz() as u64) > setting.limit {
        return Err("a factor to see what is small takes more memory than it may");
    }
    let recipe = if setting.kind.info().symmetric { Incomplete::ic(0) } else { Incomplete::ilu(0) };
    let mut factor = recipe.analyze(setting.space, a).map_err(|_| NONE)?.allocate::<f64, f64>();
    let works = |shift: &f64| {
        factor.set_shift(*shift);
        factor.refactor(setting.space, a).is_ok()
    };
    let shift = SHIFTS.into_iter().find(works).ok_or(NONE)?;
    let (lower, inverse, upper) = factor.parts();
    let mut sizes = vec![0.0; a.nnz()];
    for i in 0..a.nrows() {
        let scale = 1.0 / a.get(i, i).abs().sqrt();
        let (columns, values) = lower.row(i);
        for (&j, &l) in columns.iter().zip(values) {
            let u = upper.get(j as usize, i);
            let place = a.pattern().find(i, j as usize).ok_or(NONE)?;
            let size = l.abs().max(u.abs()) * scale / inverse[j as usize].abs().sqrt();
            // 0 / 0 on a diagonal that is zero: nothing is known, and nothing dropped.
            sizes[place] = if size.is_nan() { f64::INFINITY } else { size };
        }
    }
    Ok(Sizes { sizes, shift, is_positive: inverse.iter().all(|d| *d > 0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{MANY_CORE, REFERENCE};
    use crate::gallery::Problem;

    fn setting<'a>(machine: &'a Machine, space: &'a Threads<f64>, kind: &'a PrecondSpec) -> Setting<'a> {
        Setting {
            machine,
            space,
            method: Method::Cg,
            kind,
            reordered: false,
            stored: None,
            least_gain: LEAST_GAIN,
            iterations: None,
            limit: u64::MAX,
        }
    }

    fn decide(name: &str, machine: &Machine, threads: usize) -> (Sparsification, Option<Vec<bool>>) {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        choose(&a, &setting(machine, &Threads::new(threads), &PrecondSpec::ic(0)))
    }

    /// Where few iterations are predicted the decision does not pay, and without memory there is no factor to decide by.
    #[test]
    fn it_is_refused_where_it_does_not_pay_or_fit() {
        let a = "circuit:80".parse::<Problem>().unwrap().generate().unwrap();
        let (machine, space) = (MANY_CORE, Threads::new(1));
        let [ic, ict, mic] = ["ic0", "ict(0.01)", "mic0"].map(|name| name.parse::<PrecondSpec>().unwrap());
        let usual = setting(&machine, &space, &ic);
        for (other, why) in [
            (Setting { iterations: Some(0.01), ..usual }, "too little of an iteration"),
            (Setting { limit: 1000, ..usual }, "more memory"),
            (Setting { least_gain: 100.0, ..usual }, "waiting for 416 wavefronts"),
            (Setting { kind: &ict, ..usual }, "other chains"),
            (Setting { kind: &mic, ..usual }, "keep no sums"),
        ] {
            let (found, kept) = choose(&a, &other);
            assert!(kept.is_none() && found.reason.contains(why), "{found}");
        }
    }

    #[test]
    fn it_is_refused_by_rule_where_nobody_waits_and_on_what_is_small() {
        for (name, machine, why) in
            [("circuit:80", &REFERENCE, "wait for nobody"), ("circuit:20", &MANY_CORE, "small")]
        {
            let (found, kept) = decide(name, machine, 1);
            assert!(kept.is_none() && found.candidates.is_empty() && found.reason.contains(why), "{found}");
        }
    }

    /// Small entries of an indefinite matrix may be what it is solved by: on `ex2` of the FIDAP matrices dropping them takes convergence.
    #[test]
    fn it_is_refused_where_a_pivot_is_not_positive() {
        let a = "circuit:80".parse::<Problem>().unwrap().generate().unwrap();
        let (machine, space) = (MANY_CORE, Threads::new(1));
        let ilu = PrecondSpec::ilu(0);
        let setting = setting(&machine, &space, &ilu);
        assert!(choose(&a, &setting).1.is_some());
        for (factor, why) in [(-1.0, "diagonal"), (1e-3, "pivot")] {
            let mut a = a.clone();
            let place = a.pattern().find(4000, 4000).unwrap();
            a.values_mut()[place] *= factor;
            let (found, kept) = choose(&a, &setting);
            assert!(kept.is_none() && found.reason.contains(why), "{found}");
        }
    }

    /// A circuit has long chains of weak links.
    #[test]
    fn weak_links_are_dropped_where_sweeps_wait() {
        let (found, kept) = decide("circuit:80", &MANY_CORE, 1);
        let taken = *found.chosen().unwrap();
        assert!(3 * taken.wavefronts < 2 * found.wavefronts.unwrap(), "{found}");
        assert!(taken.percent < 5.0 && kept.is_some());
        for threads in [2, 8] {
            assert_eq!(decide("circuit:80", &MANY_CORE, threads), (found.clone(), kept.clone()));
        }
    }
}
