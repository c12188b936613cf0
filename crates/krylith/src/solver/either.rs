//! A factor whose numbers are stored wide or narrow.

use crate::error::BackendError;
use crate::operator::LinearOperator;
use crate::space::Threads;

type Space = Threads<f64>;

/// One of two factors that are used alike.
pub(super) enum Either<W, N> {
    /// In `f64`.
    Wide(W),
    /// In `f32`.
    Narrow(N),
}

/// The same for either.
macro_rules! either {
    ($self:expr, $m:ident => $body:expr) => {
        match $self {
            Either::Wide($m) => $body,
            Either::Narrow($m) => $body,
        }
    };
}

pub(super) use either;

impl<W, N> LinearOperator<Space> for Either<W, N>
where
    W: LinearOperator<Space>,
    N: LinearOperator<Space, Scratch = W::Scratch>,
{
    type Scratch = W::Scratch;

    fn domain(&self) -> usize {
        either!(self, m => m.domain())
    }

    fn range(&self) -> usize {
        either!(self, m => m.range())
    }

    fn scratch(&self, space: &Space) -> Result<W::Scratch, BackendError> {
        either!(self, m => m.scratch(space))
    }

    fn apply(
        &self,
        space: &Space,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut W::Scratch,
    ) -> Result<(), BackendError> {
        either!(self, m => m.apply(space, x, z, scratch))
    }
}
