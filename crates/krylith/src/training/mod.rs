//! The training of incomplete factors: their numbers, samples, pairs and probes. The [module `learn`](crate::learn) has the mathematics.

pub(crate) mod kernels;
pub(crate) mod lu;
pub(crate) mod model;
pub(crate) mod optimizer;
pub(crate) mod pairs;
pub(crate) mod probe;
pub(crate) mod train;

pub use lu::{TrainedLu, train_lu};
pub use model::Trained;
pub use optimizer::Optimizer;
pub use train::{Progress, Samples, Start, Training, train};
