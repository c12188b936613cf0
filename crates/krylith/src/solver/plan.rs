//! From options and facts to a plan.

use super::null_space::NullSpace;
use super::options::Solver;
use super::planned::{DividedFacts, Place};
use crate::cost::{Applied, Expected, Work};
use crate::error::SolveError;
use crate::facts::{Facts, Mesh};
use crate::matrix::Csr;
use crate::memory::available_memory;
use crate::operator::{LinearOperator, SolverSpace};
use crate::options::{Method, Precision, StorageKind};
use crate::plan::{
    Asked, Failure, Fallback, Outlook, Predicted, Proposal, Reason, ReasonCode, Remedy, SolvePlan,
};
use crate::precond::PrecondSpec;
use crate::precond::registry::{Construction, FillRule, Threshold};
use crate::setup::{Findings, SetupContext, SetupRecorder, vector_bytes};
use crate::sparsify::{LEAST_GAIN, LEAST_GAIN_OF_DEFAULT, Setting, Sparsified, Sparsify};
use crate::store::{kind_of_store, likely_kind};
use crate::transform::Ordering;
use std::sync::Arc;

impl Solver {
    /// The rule of the module's head, with what the stores of the space may have.
    pub(super) fn plan_for<S: SolverSpace>(
        &self,
        Place { space, stores }: Place<'_, S>,
        subject: Subject<'_>,
        mut findings: Findings,
    ) -> Result<(SolvePlan, Findings), SolveError> {
        let Subject { matrix, other: a, is_operator, divided, facts } = subject;
        // A complete factor would be that of the own block.
        let complete = !is_operator
            && space.process().is_alone()
            && stores.iter().any(|store| store.has_complete_factors());
        let triangles = stores.iter().any(|store| store.has_triangles());
        let is_priced = stores.iter().any(|store| store.is_priced());
        let available =
            Available { complete, triangles, store: &|outlook: &Outlook<'_>| likely_kind(stores, outlook) };
        let of_whole = divided.as_ref().map(|divided| divided.of_a.asymmetry);
        let asymmetry = || of_whole.unwrap_or_else(|| a.unwrap_or(matrix).asymmetry());
        let plan = match (facts, divided) {
            (None, Some(divided)) if self.is_open() => {
                self.choose(matrix, (divided.of_a, None), &available, &mut findings)
            }
            (None, _) => SolvePlan {
                warnings: self.warnings(if self.needs_symmetry() { asymmetry() } else { 0.0 }),
                ..self.planned(None, self.method, self.preconditioner.clone(), ReasonCode::AsAsked)
            },
            (Some(mut facts), divided) => {
                if is_priced && !is_operator && space.process().is_alone() {
                    let (mut mesh, grid) =
                        Mesh::find(matrix, facts.is_nearly_m_matrix() || facts.may_be_definite());
                    if self.machine.waits() {
                        mesh.count_wavefronts(matrix, grid.as_ref().ok());
                    }
                    findings.keep_structure(matrix.pattern(), grid);
                    facts.mesh = Some(mesh);
                }
                let of_a = match divided {
                    Some(divided) => Some(divided.of_a),
                    None => a.map(|a| Facts::of(space, a)).transpose()?,
                };
                let (facts, source) = match of_a {
                    Some(of_a) => (of_a, Some(facts)),
                    None => (facts, None),
                };
                self.choose(matrix, (facts, source), &available, &mut findings)
            }
        };
        let mut plan = plan;
        if !triangles {
            // The diagonal that is taken after a bad pivot is made from whole rows.
            plan.fallbacks.retain(|fallback| !matches!(fallback.then, Remedy::Diagonal));
        }
        if !stores.iter().any(|store| store.has_transposes()) {
            let is_lsmr = |then: &Remedy| matches!(then, Remedy::Method { method: Method::Lsmr, .. });
            plan.fallbacks.retain(|fallback| !is_lsmr(&fallback.then));
        }
        let plan = match &self.planned {
            Some(given) => {
                let reasons = vec![ReasonCode::AsPlanned.into()];
                SolvePlan { reasons, fallbacks: given.clone(), ..plan }
            }
            None => plan,
        };
        Ok((plan, findings))
    }

    /// Whether anything is left to be chosen.
    pub(super) fn is_open(&self) -> bool {
        self.method == Method::Auto || self.preconditioner.is_auto()
    }

    /// Whether the caller asked for a method that needs a symmetric matrix.
    pub(super) fn needs_symmetry(&self) -> bool {
        matches!(self.method, Method::Cg | Method::Minres)
    }

    /// What a method asked for by name needs and a matrix of this asymmetry lacks.
    fn warnings(&self, asymmetry: f64) -> Vec<String> {
        if !self.needs_symmetry() || asymmetry <= Facts::ROUNDING {
            return Vec::new();
        }
        vec![format!(
            "{} needs a symmetric matrix, and A is not: |aij - aji| is up to {asymmetry:.1e} of the largest entry; \
             bicgstab and gmres do not need it",
            self.method
        )]
    }

    /// The choices that the caller has left: the method by the facts of A, the preconditioner by those of the matrix that it is made from, `source`
    /// where that is not A. A complete factor comes first only where it is one of A.
    fn choose(
        &self,
        matrix: &Csr<f64>,
        (facts, source): (Facts, Option<Facts>),
        available: &Available<'_>,
        findings: &mut Findings,
    ) -> SolvePlan {
        let complete = available.complete && self.method == Method::Auto && self.preconditioner.is_auto();
        let collected =
            self.machine.facts * (facts.entries + source.as_ref().map_or(0, |source| source.entries)) as f64;
        let incomplete = if complete && source.is_none() { self.incomplete(&facts, available) } else { None };
        if let Some(incomplete) = incomplete
            && let Some((reason, takes)) = self.prefers_direct(matrix, &facts, incomplete, findings)
        {
            let (method, factor) = first_complete(&facts);
            let predicted = Some(predicted(collected + takes, 0.0));
            let plan = self.planned(Some(facts), method, factor.clone(), ReasonCode::DirectIsCheap);
            return SolvePlan {
                reasons: vec![reason],
                fallbacks: self.after_direct(&factor),
                predicted,
                ..plan
            };
        }
        let of_factor = source.as_ref().unwrap_or(&facts);
        let (definite, cholesky) = (of_factor.may_be_definite(), of_factor.suits_cholesky());
        let open = self.preconditioner.is_auto();
        // Without IC(0) there is ILU(0), which needs another method than conjugate gradients, unless there are no such factors at all.
        let suits_cg = match open {
            true => {
                if available.triangles {
                    cholesky
                } else {
                    definite
                }
            }
            false => definite || self.preconditioner.is_none(),
        };
        let method = match self.method {
            Method::Auto if facts.may_be_definite() && suits_cg => Method::Cg,
            Method::Auto => Method::BiCgStab,
            asked => asked,
        };
        // IC(0) goes with the methods that need a positive definite M, and with a matrix that can have one.
        let symmetric_method = matches!(method, Method::Cg | Method::Minres);
        let preconditioner = match (symmetric_method, definite, cholesky) {
            _ if !open => self.preconditioner.clone(),
            _ if method == Method::Lsmr && available.triangles => PrecondSpec::column_norms(),
            _ if method == Method::Lsmr => PrecondSpec::none(),
            _ if !available.triangles && of_factor.tiny_diagonals == 0 && (definite || !symmetric_method) => {
                PrecondSpec::jacobi()
            }
            _ if !available.triangles => PrecondSpec::none(),
            (true, true, true) => PrecondSpec::ic(0),
            (true, true, false) => PrecondSpec::jacobi(),
            (true, false, _) => PrecondSpec::none(),
            (false, ..) => PrecondSpec::ilu(0),
        };
        let reason = ReasonCode::of(&facts);
        let both = source.as_ref().map(|source| Reason::of_both(&facts, source));
        let warnings = self.warnings(facts.asymmetry);
        let proposals = if open { self.proposals(of_factor, method, available) } else { Vec::new() };
        let preconditioner = proposals.first().map_or(preconditioner, |best| best.preconditioner.clone());
        let factor = complete_factor(&facts);
        let mut plan = SolvePlan {
            warnings,
            preconditioner_facts: source,
            ..self.planned(Some(facts), method, preconditioner, reason)
        };
        plan.reasons = both.unwrap_or(plan.reasons);
        if let Some(best) = proposals.first() {
            // A complete factor was weighed and is too dear.
            let weighed = findings.analyzed_kind().map(|kind| self.machine.direct_analysis(matrix, kind));
            let analyzed = weighed.unwrap_or(0.0);
            let set_up = collected + analyzed + best.set_up;
            plan.predicted = Some(predicted(set_up, best.iterations * best.iteration));
            plan.precision = best.precision;
            plan.reasons.push(best.reason(&proposals, &self.machine));
        }
        plan.proposals = proposals;
        if complete {
            plan.fallbacks = ladder(plan.method, &factor, plan.fallbacks);
        }
        plan
    }

    /// The members of the registry for these facts, the cheapest first.
    fn proposals(&self, facts: &Facts, method: Method, available: &Available<'_>) -> Vec<Proposal> {
        let precisions: &[Precision] = match self.precision {
            Precision::Auto => &[Precision::F64, Precision::Mixed],
            _ => std::slice::from_ref(&self.precision),
        };
        let layout = if self.reorder == Ordering::Natural { self.layout } else { self.layout.without_grid() };
        match method {
            Method::Minres | Method::Lsmr => Vec::new(),
            _ => {
                let (machine, expected, store) = (&*self.machine, self.expected, available.store);
                let asked = Asked { machine, method, precisions, layout, expected, store };
                match Proposal::all(&asked, facts) {
                    // A device keeps everything in `f64`, whatever is asked for.
                    none if none.is_empty() => {
                        Proposal::all(&Asked { precisions: &[Precision::F64], ..asked }, facts)
                    }
                    all => all,
                }
            }
        }
    }

    /// What an incomplete factor is predicted to cost in all, where it is to be weighed against a complete one.
    fn incomplete(&self, facts: &Facts, available: &Available<'_>) -> Option<Incomplete> {
        let singular = facts.structural_rank < facts.rows
            || facts.constant_null_vector
            || !matches!(self.null_space, NullSpace::Auto | NullSpace::Ignore);
        if singular || facts.rows < 2 {
            return None;
        }
        let (method, _) = first_complete(facts);
        let method = if method == Method::Cg { method } else { Method::BiCgStab };
        let proposals = self.proposals(facts, method, available);
        let proposed = proposals.first().map(|best| best.cost_for(self.expected));
        let Some((iterations, why)) = hard_iterations(facts) else {
            let why = format!("of incomplete factors {} is the best", proposals.first()?.preconditioner);
            return Some(Incomplete { cost: proposed?, share: SHARE_OF_ANALYSIS, why });
        };
        let iteration = Work {
            method,
            storage: StorageKind::Rows,
            precision: Precision::F64,
            rows: facts.rows,
            entries: facts.entries,
            swept: facts.entries as f64,
            applied: Applied::Sweeps { wavefronts: 0.0 },
            without_product: false,
            constant: false,
            constant_factor: false,
        };
        let solve = iterations * self.machine.iteration(&iteration);
        let cost = self.expected.cost(0.0, 0.0, solve).max(proposed.unwrap_or(0.0));
        Some(Incomplete { cost, share: 1.0, why: why.into() })
    }

    /// Why a complete factor comes first, if it does, and the nanoseconds that it is predicted to take for one solve: where it is predicted to cost less than an incomplete
    /// one, for all the solves that are expected.
    fn prefers_direct(
        &self,
        matrix: &Csr<f64>,
        facts: &Facts,
        incomplete: Incomplete,
        findings: &mut Findings,
    ) -> Option<(Reason, f64)> {
        let (method, factor) = first_complete(facts);
        let (machine, expected) = (&self.machine, self.expected);
        let Construction::Direct(which) = factor.construct() else { return None };
        let grid = facts.mesh.as_ref().and_then(|mesh| mesh.grid.as_ref());
        let least = machine.direct_at_least(matrix, which, grid, expected);
        // An analysis alone costs some iterations, which it is worth where a grid in the plane says nearly what it will find.
        // Iterations are predicted well there, too; of what is no M-matrix too many often are.
        let is_planar = facts.mesh.as_ref().is_some_and(Mesh::is_planar_grid);
        let is_close = is_planar && facts.m_matrix_signs && ABOVE_LEAST * least < incomplete.cost;
        let is_hopeless = least > incomplete.cost
            || !is_close && machine.direct_analysis(matrix, which) > incomplete.share * incomplete.cost;
        if is_hopeless {
            return None;
        }
        let analysis = findings.complete(which, matrix, None).ok()?;
        findings.keep_complete(Arc::clone(&analysis));
        let cost = analysis.cost();
        // Vectors, and the copy of A that a matching makes, are to fit as well.
        let memory = self.max_memory.or_else(available_memory).unwrap_or(u64::MAX) / 2;
        let others = vector_bytes(method, facts.rows) + 32 * (facts.entries + 4 * facts.rows) as u64;
        let bytes = memory.saturating_sub(others).min(self.max_bytes.unwrap_or(u64::MAX));
        let takes = machine.direct_for(matrix, which, cost, expected);
        let reason = || Reason {
            code: ReasonCode::DirectIsCheap,
            text: format!(
                "{}, and a complete factor is predicted to take {:.1} ms for {}, an incomplete one {:.1}",
                incomplete.why,
                1e-6 * takes,
                if expected == Expected::default() { "one solve" } else { "what is expected" },
                1e-6 * incomplete.cost
            ),
        };
        (takes <= incomplete.cost && cost.bytes() <= bytes)
            .then(|| (reason(), machine.direct(matrix, which, cost)))
    }

    /// What follows a complete factor that came first.
    fn after_direct(&self, factor: &PrecondSpec) -> Vec<Fallback> {
        let mut fallbacks = Vec::new();
        if self.recover {
            fallbacks.push(Fallback::new([Failure::BadPivot, Failure::MissingDiagonal], Remedy::Diagonal));
        }
        // Without definiteness, and then without symmetry, there is more freedom for exchanges.
        let factors = [PrecondSpec::cholesky(), PrecondSpec::ldlt(), PrecondSpec::lu()];
        let others = factors.into_iter().skip_while(|other| other != factor).skip(1);
        let others = others.map(|other| Remedy::with(Method::Gmres(50), other));
        let ilu = match *factor == PrecondSpec::cholesky() {
            true => Remedy::with(Method::Cg, PrecondSpec::ic(0)),
            false => Remedy::with(Method::BiCgStab, PrecondSpec::ilu(0)),
        };
        let rungs = others.chain([by_threshold(), ilu]);
        fallbacks.extend(rungs.map(|then| Fallback::new(HARD, then)));
        fallbacks.extend(least_squares());
        // It can always be set up.
        let diagonal = Remedy::with(Method::Gmres(30), PrecondSpec::jacobi());
        fallbacks.push(Fallback::new(HARD, diagonal));
        fallbacks.extend(for_nearly_singular(factor));
        fallbacks
    }

    /// The plan for an operator without a matrix.
    pub(super) fn plan_without_matrix(&self) -> SolvePlan {
        let method = if self.method == Method::Auto { Method::BiCgStab } else { self.method };
        let mut plan = self.planned(None, method, PrecondSpec::none(), ReasonCode::NoMatrix);
        // There is nothing to store in other numbers.
        plan.precision = Precision::F64;
        plan.fallbacks.retain(|fallback| fallback.then != Remedy::DoublePrecision);
        plan
    }

    fn planned(
        &self,
        facts: Option<Facts>,
        method: Method,
        preconditioner: PrecondSpec,
        reason: ReasonCode,
    ) -> SolvePlan {
        SolvePlan {
            fallbacks: self.fallbacks(method, &preconditioner, reason != ReasonCode::NoMatrix),
            facts,
            preconditioner_facts: None,
            method,
            layout: self.layout,
            precision: self.precision.as_asked(),
            ordering: self.reorder,
            matching: self.matching,
            sparsify: self.sparsify.unwrap_or(self.default_sparsify(&preconditioner)),
            sparsification: None,
            preconditioner,
            reasons: vec![Reason::from(reason)],
            warnings: Vec::new(),
            machine: self.machine.name.to_string(),
            proposals: Vec::new(),
            considered: Vec::new(),
            predicted_entries: None,
            predicted_bytes: None,
            predicted: None,
        }
    }

    /// What follows a failure: of the factor, unless that is to be an error; of the method, if it was not the caller who chose it.
    fn fallbacks(&self, method: Method, preconditioner: &PrecondSpec, has_matrix: bool) -> Vec<Fallback> {
        use Failure::{
            BadPivot, Breakdown, Diverged, IndefiniteOperator, IndefinitePreconditioner, MemoryLimit,
            MissingDiagonal, NotFinite,
        };
        let mut fallbacks = Vec::new();
        if self.recover && !preconditioner.is_none() {
            if preconditioner.info().can_shift {
                fallbacks.push(Fallback::new([BadPivot], Remedy::ShiftDiagonal));
            }
            fallbacks.push(Fallback::new([BadPivot, MissingDiagonal], Remedy::Diagonal));
            // What the caller asked for within a limit of the caller's is kept.
            let limited = self.max_bytes.is_some() || self.max_memory.is_some();
            if preconditioner.weaker().is_some() && (!limited || self.preconditioner.is_auto()) {
                fallbacks.push(Fallback::new([MemoryLimit], Remedy::LessFill));
            }
        }
        if self.recover && self.precision == Precision::F32 {
            let after = [IndefiniteOperator, IndefinitePreconditioner, Breakdown, Diverged, NotFinite];
            fallbacks.push(Fallback::new(after, Remedy::DoublePrecision));
            return fallbacks;
        }
        match (self.method, method) {
            (Method::Auto, Method::Cg) => {
                let minres = Remedy::with(Method::Minres, PrecondSpec::none());
                let after = [IndefiniteOperator, IndefinitePreconditioner, NotFinite, Diverged];
                fallbacks.push(Fallback::new(after, minres));
            }
            (Method::Auto, Method::BiCgStab) => {
                // A factor that gave numbers that are not finite at once is of no use to another method.
                let other = if has_matrix { PrecondSpec::jacobi() } else { PrecondSpec::none() };
                fallbacks.push(Fallback::new([NotFinite], Remedy::with(Method::Gmres(30), other)));
                fallbacks.push(Fallback::new([Breakdown, Diverged], Remedy::on_first(Method::Gmres(30))));
            }
            _ => {}
        }
        fallbacks
    }

    /// The choices of a plan, its fallbacks included. Tolerances, limits and threads stay those of this solver.
    pub fn with_plan(mut self, plan: &SolvePlan) -> Self {
        self.method = plan.method;
        self.preconditioner = plan.preconditioner.clone();
        self.layout = plan.layout;
        self.precision = plan.precision;
        self.reorder = plan.ordering;
        self.matching = plan.matching;
        self.sparsify = Some(plan.decided_sparsify());
        self.planned = Some(plan.fallbacks.clone());
        self
    }
}

impl Solver {
    /// Whether a sparser matrix is looked for where nobody has said: for a factor that was chosen, on a machine whose sweeps wait.
    fn default_sparsify(&self, preconditioner: &PrecondSpec) -> Sparsify {
        let may = self.preconditioner.is_auto() && self.machine.waits();
        if may && preconditioner.construct().sweeps() { Sparsify::Auto } else { Sparsify::Off }
    }

    /// The matrix that the preconditioner is made from, if it is not `matrix`; the plan keeps what was decided.
    pub(super) fn sparsified<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        Place { space, stores }: Place<'_, S>,
        plan: &mut SolvePlan,
        (a, matrix): (&A, &Csr<f64>),
        findings: &Findings,
    ) -> Option<Sparsified> {
        let (memory, vectors) =
            (self.max_memory.or_else(available_memory), vector_bytes(plan.method, matrix.nrows()));
        let memory = memory.unwrap_or(u64::MAX).saturating_sub(vectors);
        let natural = plan.ordering == Ordering::Natural;
        let stored = || {
            let options = self.setup_options(plan, plan.precision);
            let mut setup =
                SetupContext::new(options, space, a.domain(), a.matrix(), matrix, (plan.method, 1.0));
            setup.findings = findings.clone();
            kind_of_store(setup, stores, &plan.preconditioner, &mut SetupRecorder::default()).ok().flatten()
        };
        // Only a decision that may be taken is worth a look at the pattern.
        let looks = plan.sparsify == Sparsify::Auto && self.machine.waits() && natural;
        let setting = Setting {
            machine: &self.machine,
            space: space.host(),
            method: plan.method,
            kind: &plan.preconditioner,
            reordered: !natural,
            stored: if looks { stored() } else { None },
            least_gain: if self.sparsify.is_some() { LEAST_GAIN } else { LEAST_GAIN_OF_DEFAULT },
            iterations: plan.proposals.first().map(|best| best.iterations),
            limit: memory.min(self.max_bytes.unwrap_or(u64::MAX)),
        };
        let (found, sparsified) = plan.sparsify.decide(matrix, &setting)?;
        plan.sparsification = Some(found);
        sparsified
    }
}

/// What is planned for.
pub(super) struct Subject<'a> {
    /// What the preconditioner is made from.
    pub(super) matrix: &'a Csr<f64>,
    /// A, where it is another matrix.
    pub(super) other: Option<&'a Csr<f64>>,
    /// A is no matrix.
    pub(super) is_operator: bool,
    /// The facts of A, where its rows are divided among processes.
    pub(super) divided: Option<DividedFacts>,
    /// Those of `matrix`, where anything is left to be chosen and it is not the own block of A.
    pub(super) facts: Option<Facts>,
}

/// What the stores of a space may have.
struct Available<'a> {
    /// Complete factors are among what may be chosen.
    complete: bool,
    /// Incomplete factors are.
    triangles: bool,
    /// The storage of the store that is likely to take a system.
    store: &'a dyn Fn(&Outlook<'_>) -> Option<StorageKind>,
}

/// Nanoseconds as seconds.
fn predicted(set_up: f64, iterations: f64) -> Predicted {
    Predicted { set_up: 1e-9 * set_up, total: 1e-9 * (set_up + iterations) }
}

/// What an incomplete factor costs, a complete one being the alternative.
struct Incomplete {
    /// Nanoseconds of the plan's machine for everything that is expected.
    cost: f64,
    /// The part of it that the analysis of a complete factor may cost.
    share: f64,
    /// Why it costs that.
    why: String,
}

/// Where iterations are predicted, an analysis in vain may cost this part of them.
const SHARE_OF_ANALYSIS: f64 = 0.15;
/// A complete factor of a grid in the plane costs about this much more than the least that one can.
const ABOVE_LEAST: f64 = 1.5;

/// A complete factor that may come first, and its method.
fn first_complete(facts: &Facts) -> (Method, PrecondSpec) {
    match facts.may_be_definite() {
        true => (Method::Cg, PrecondSpec::cholesky()),
        false => (Method::Gmres(50), complete_factor(facts)),
    }
}

/// Iterations of an incomplete factor, at least, and why, where models of meshes say nothing. Measured on the matrices of the catalogue with 20,000 entries or more and a random b:
/// on those that are definite but not dominant, of structures mostly, conjugate gradients take hundreds of iterations; zeros on the diagonal leave ILU(0) without
/// a chance.
///
/// On a grid in the plane nested dissection has O(n log n) entries, and IC(2) takes about as many iterations as there are points across: 162, 241 and 391 on
/// `elasticity2d` of 180, 260 and 400.
fn hard_iterations(facts: &Facts) -> Option<(f64, &'static str)> {
    const NOT_DOMINANT: &str = "most rows are not diagonally dominant";
    let plane = facts.mesh.as_ref().filter(|mesh| mesh.is_planar_grid());
    let dominant = 2 * facts.dominant_rows >= facts.rows;
    match facts.may_be_definite() {
        _ if facts.tiny_diagonals > 0 => Some((1000.0, "the diagonal has entries that are zero or tiny")),
        _ if dominant => None,
        true if facts.entries < LEAST_ENTRIES => None,
        true => Some((plane.map_or(100.0, |mesh| (mesh.across as f64).max(100.0)), NOT_DOMINANT)),
        false => Some((60.0, NOT_DOMINANT)),
    }
}

/// Definite matrices of fewer entries are solved in a millisecond, whatever is chosen.
const LEAST_ENTRIES: usize = 20_000;

/// How a method may end without an answer.
const HARD: [Failure; 6] = [
    Failure::IndefiniteOperator,
    Failure::IndefinitePreconditioner,
    Failure::Breakdown,
    Failure::Diverged,
    Failure::NotFinite,
    Failure::Slow,
];

/// The complete factor for a matrix that is not definite: half of one if it is symmetric.
fn complete_factor(facts: &Facts) -> PrecondSpec {
    if facts.nearly_symmetric { PrecondSpec::ldlt() } else { PrecondSpec::lu() }
}

/// The rungs between the planned method and its last resorts: another method with its factor, complete factors, then one by threshold, then least squares; at the end the planned
/// method again, which is not left for being slow.
fn ladder(method: Method, factor: &PrecondSpec, last: Vec<Fallback>) -> Vec<Fallback> {
    // What changes the factor, and what goes on with the factor that is there, comes before factors that cost more.
    let is_cheap =
        |fallback: &Fallback| !matches!(fallback.then, Remedy::Method { preconditioner: Some(_), .. });
    let (first, others): (Vec<_>, Vec<_>) = last.into_iter().partition(is_cheap);
    let mut rungs = first;
    let definite = method == Method::Cg;
    if definite {
        rungs.push(Fallback::new(
            [Failure::Slow, Failure::Diverged],
            Remedy::with(Method::Cg, PrecondSpec::cholesky()),
        ));
    }
    let hard = |then| Fallback::new(HARD, then);
    let mut complete = vec![hard(Remedy::with(Method::Gmres(50), factor.clone()))];
    if *factor != PrecondSpec::lu() {
        complete.push(hard(Remedy::with(Method::Gmres(50), PrecondSpec::lu())));
    }
    let threshold = hard(by_threshold());
    let again = hard(Remedy::on_first(method));
    if definite {
        // MINRES without a preconditioner is often fast enough on an indefinite matrix, and left if not.
        rungs.extend(others);
        rungs.extend(complete);
        rungs.push(threshold);
        rungs.extend(least_squares());
        let minres = Remedy::with(Method::Minres, PrecondSpec::jacobi());
        rungs.extend([again, Fallback::new([Failure::IndefiniteOperator], minres)]);
    } else {
        rungs.extend(complete);
        rungs.push(threshold);
        rungs.extend(others);
        rungs.extend(least_squares());
        rungs.push(again);
    }
    rungs.extend(for_nearly_singular(factor));
    rungs
}

/// Least squares, also where it is proven that nothing else helps.
fn least_squares() -> [Fallback; 2] {
    let after = [&HARD[..], &[Failure::Singular]].concat();
    [PrecondSpec::lu(), PrecondSpec::column_norms()]
        .map(|preconditioner| Fallback::new(after.clone(), Remedy::with(Method::Lsmr, preconditioner)))
}

/// A nearly singular system may have an answer whose entries need few digits. Conjugate gradients without a preconditioner find one along b, where a
/// factor, whose rounding errors it enlarges, does not.
fn for_nearly_singular(factor: &PrecondSpec) -> Option<Fallback> {
    let cg = Remedy::with(Method::Cg, PrecondSpec::none());
    (*factor != PrecondSpec::lu()).then(|| Fallback::new([Failure::NearlySingular], cg))
}

/// Incomplete LU by threshold with columns exchanged, in an order for little fill.
fn by_threshold() -> Remedy {
    Remedy::Method {
        method: Method::Gmres(50),
        preconditioner: Some(PrecondSpec::ilut(Threshold {
            keep: FillRule::Factor(20.0),
            tau: 1e-5,
            pivoting: true,
        })),
        ordering: Some(Ordering::Amd),
    }
}
