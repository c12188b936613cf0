//! Other values for what was prepared: the matrices that the factor is made from, one after the other, then the factor.

use super::build::set_up_permuted;
use super::prepared::{Prepared, Seen};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::{Csr, exact_scale};
use crate::operator::{LinearOperator, SolverSpace};
use crate::setup::{Attempts, SetupContext, SetupRecorder};
use crate::space::agree;
use crate::sparsify::{Paired, Sparsified, Sparsify};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

impl<S: SolverSpace, A: LinearOperator<S>> Prepared<A, S> {
    /// Takes over the values of a matrix of the same pattern; allocates nothing unless a pivot is bad. A shift that the last
    /// matrix needed is kept; a larger one is looked for if that is not enough. After an error there is no factor, and solves are
    /// refused, until a matrix has one. Entries that were left out for a symmetric pattern have to be negligible in every matrix. A pattern that followed the values stays that of the first matrix.
    pub fn refactor(&mut self, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let _span = tracing::info_span!("factor").entered();
        self.memory.clear();
        let mut recorder = SetupRecorder::default();
        let result = self.refactor_engine(matrix, &mut recorder);
        self.broken = match result {
            Ok(_) => false,
            // Whether anybody's factor is gone.
            Err(ref error) => {
                let gone = *error != SetupError::PatternChanged;
                self.broken || self.space.first(gone.then_some((0, 0.0)))?.is_some()
            }
        };
        self.summary.shift = result?;
        self.recovery.truncate(self.steps);
        self.recovery.extend(recorder.recovery);
        self.seconds = recorder.seconds;
        self.factored = self.factored.take().map(|_| Seen::new(&*self.space, matrix));
        self.space.publish()?;
        Ok(())
    }

    fn refactor_engine(
        &mut self,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<f64, SetupError> {
        let mut scale = 1.0;
        agree(&*self.space, exact_scale(self.space.host(), matrix).map(|found| scale = found))?;
        if self.plan.sparsify != Sparsify::Off {
            let set = self.sparsified.as_mut().map_or(Ok(()), |sparsified| sparsified.set(matrix));
            agree(&*self.space, set)?;
        }
        let source = self.sparsified.as_ref().map_or(matrix, Sparsified::matrix);
        let set = self.paired.as_mut().map_or(Ok(()), |paired| paired.set(source));
        agree(&*self.space, set)?;
        let source = self.paired.as_ref().map_or(source, Paired::matrix);
        let source = match &mut self.trained {
            Some(trained) if self.summary.kind.training_rounds().is_some() => {
                agree(&*self.space, Arc::make_mut(trained).set(source))?;
                trained.matrix()
            }
            _ => source,
        };
        let reserved = self.sparsified.as_ref().map_or(0, Sparsified::bytes)
            + self.paired.as_ref().map_or(0, Paired::bytes);
        if self.factored.is_some() && scale != 1.0 && !self.engine.is_scaled() {
            // Values that left the range since the preparation: everything is prepared anew, on the scaled matrix.
            let Prepared { options, space, stores, method, size, plan, .. } = self;
            let mut setup = SetupContext::new(
                options.setup_options(plan, plan.precision),
                &**space,
                size.clone(),
                Some(matrix),
                source,
                (*method, scale),
            );
            setup.own = options.own.as_ref();
            setup.near_null = Cow::Borrowed(&options.near_null);
            setup.reserved = reserved as u64;
            let built = set_up_permuted(options, &setup, stores, &self.summary.kind, recorder);
            let built = built.map_err(|error| match error {
                SolveError::Setup(error) => error,
                other => BackendError::Failed { what: other.to_string() }.into(),
            })?;
            if let Some((engine, mut summary)) = built {
                summary.predicted += reserved;
                summary.held += reserved;
                (self.engine, self.summary) = (engine, summary);
                self.pool.clear();
                self.applications.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Ok(self.summary.shift);
            }
        }
        let (engine, space) = (&mut self.engine, &*self.space);
        let attempt = |shift| engine.refactor(space, source, shift);
        let kind = &self.summary.kind;
        let recover = self.plan.shifts() && kind.info().can_shift;
        let attempts = Attempts { begin: self.summary.shift, ..Attempts::new(kind, recover) };
        recorder.factor(space, attempts, attempt)
    }
}
