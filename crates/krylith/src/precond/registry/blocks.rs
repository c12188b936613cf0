//! Factors of dense blocks: `bjacobi`, `bic0`, `bilu0`, `bdic`, `bdilu`.

use super::{
    Construction, FROM_MATRIX, Parameter, PrecondInfo, PrecondSpec, Suits, Takes, Value, all_entries,
    lower_half, no_proposals, nothing_weaker, unknown_entries,
};
use crate::block::BlockKind;

const SIZE: Parameter = Parameter {
    name: "B",
    meaning: "the unknowns of a block",
    takes: Takes::Count { least: 1, most: 8 },
    default: Some(FROM_MATRIX),
};

pub(super) static BJACOBI: PrecondInfo = PrecondInfo {
    name: "bjacobi",
    aliases: &["block-jacobi"],
    parameters: &[SIZE],
    level_in_name: false,
    description: "the diagonal blocks of A; of B unknowns, or of the size found",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: true,
    examples: &["bjacobi", "bjacobi(3)"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |spec| Construction::Blocks(BlockKind::Jacobi, spec.count_if_given(0)),
};

pub(super) static BIC0: PrecondInfo = PrecondInfo {
    name: "bic0",
    aliases: &["bic"],
    parameters: &[SIZE],
    level_in_name: false,
    description: "ic0 with dense blocks in the place of numbers",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: true,
    examples: &["bic0", "bic0(1)", "bic0(3)"],
    weaker: nothing_weaker,
    predicted_entries: lower_half,
    propose: no_proposals,
    construct: |spec| Construction::Blocks(BlockKind::Ic0, spec.count_if_given(0)),
};

pub(super) static BILU0: PrecondInfo = PrecondInfo {
    name: "bilu0",
    aliases: &["bilu"],
    parameters: &[SIZE],
    level_in_name: false,
    description: "ilu0 with dense blocks in the place of numbers",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: true,
    examples: &["bilu0", "bilu0(3)"],
    weaker: nothing_weaker,
    predicted_entries: all_entries,
    propose: no_proposals,
    construct: |spec| Construction::Blocks(BlockKind::Ilu0, spec.count_if_given(0)),
};

pub(super) static BDIC: PrecondInfo = PrecondInfo {
    name: "bdic",
    aliases: &[],
    parameters: &[SIZE],
    level_in_name: false,
    description: "dic with dense blocks in the place of numbers",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: true,
    examples: &["bdic", "bdic(1)", "bdic(3)"],
    weaker: nothing_weaker,
    predicted_entries: lower_half,
    propose: no_proposals,
    construct: |spec| Construction::Blocks(BlockKind::Dic, spec.count_if_given(0)),
};

pub(super) static BDILU: PrecondInfo = PrecondInfo {
    name: "bdilu",
    aliases: &[],
    parameters: &[SIZE],
    level_in_name: false,
    description: "dilu with dense blocks in the place of numbers",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: true,
    examples: &["bdilu", "bdilu(5)"],
    weaker: nothing_weaker,
    predicted_entries: all_entries,
    propose: no_proposals,
    construct: |spec| Construction::Blocks(BlockKind::Dilu, spec.count_if_given(0)),
};

impl PrecondSpec {
    /// A factor of dense blocks of this size, or of the size that the matrix has by nature.
    pub fn block(kind: BlockKind, size: Option<usize>) -> Self {
        let info = match kind {
            BlockKind::Jacobi => &BJACOBI,
            BlockKind::Ic0 => &BIC0,
            BlockKind::Ilu0 => &BILU0,
            BlockKind::Dic => &BDIC,
            BlockKind::Dilu => &BDILU,
        };
        let size = match size {
            Some(size) => Value::Count(size),
            None => Value::FromMatrix,
        };
        Self::new(info, [size])
    }
}
