//! A preconditioner by name, with its numbers.

use super::recipe::OWN;
use super::{Construction, FROM_MATRIX, OwnRecipe, Parameter, PrecondInfo, Value};
use crate::elimination::Incomplete;
use crate::error::SolveError;
use crate::matrix::Pattern;
use crate::precond::threshold::ByThreshold;
use std::fmt::{Debug, Display, Formatter, Write};
use std::sync::Arc;

/// A preconditioner by name, with its parameters: parsed from text such as `ic(2)` or `ssor(omega=1.5)`, or made by a function named
/// after it.
///
/// ```
/// use krylith::PrecondSpec;
/// assert_eq!("ILU".parse::<PrecondSpec>()?, PrecondSpec::ilu(0));
/// assert_eq!("ic1".parse::<PrecondSpec>()?.to_string(), "ic(1)");
/// assert_eq!("ilut(5)".parse::<PrecondSpec>().unwrap_err().to_string(), "`ilut(5)` lacks TOL, below which entries of a row are dropped: ilut(P,TOL)");
/// # Ok::<(), krylith::NameError>(())
/// ```
#[derive(Clone)]
pub struct PrecondSpec {
    info: &'static PrecondInfo,
    /// The name of the caller's own recipe.
    own: Option<Arc<str>>,
    /// One for each parameter.
    values: Vec<Value>,
}

/// The name is what tells it apart.
impl Debug for PrecondSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrecondSpec({self})")
    }
}

impl PartialEq for PrecondSpec {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.info, other.info) && self.own == other.own && self.values == other.values
    }
}

impl PrecondSpec {
    /// With these values, one for each parameter.
    pub(super) fn new(info: &'static PrecondInfo, values: impl Into<Vec<Value>>) -> Self {
        let values = values.into();
        debug_assert_eq!(values.len(), info.parameters.len(), "{}", info.name);
        PrecondSpec { info, own: None, values }
    }

    /// Without parameters.
    pub(crate) fn plain(info: &'static PrecondInfo) -> Self {
        Self::new(info, [])
    }

    /// The caller's own recipe.
    pub(crate) fn own(own: &OwnRecipe) -> Self {
        PrecondSpec { own: Some(Arc::clone(&own.name)), ..Self::plain(own.recipe.info()) }
    }

    /// A preconditioner of the caller's that is there already.
    pub(crate) fn given(name: &str) -> Self {
        PrecondSpec { own: Some(name.into()), ..Self::plain(&OWN[0]) }
    }

    /// Its name without parameters.
    pub fn name(&self) -> &str {
        self.own.as_deref().unwrap_or(self.info.name)
    }

    /// The value of a parameter by its name, in capitals or not.
    ///
    /// ```
    /// use krylith::PrecondSpec;
    /// use krylith::precond::registry::Value;
    /// assert_eq!(PrecondSpec::ssor(1.5).value("omega"), Some(&Value::Real(1.5)));
    /// assert_eq!(PrecondSpec::ssor(1.5).value("levels"), None);
    /// ```
    pub fn value(&self, parameter: &str) -> Option<&Value> {
        let place =
            self.info.parameters.iter().position(|known| known.name.eq_ignore_ascii_case(parameter))?;
        self.values.get(place)
    }

    /// Whether M is A up to rounding and replaced pivots.
    pub fn is_complete(&self) -> bool {
        matches!(self.construct(), Construction::Direct(_))
    }

    /// Levels of fill; 0 for what has none.
    pub fn level(&self) -> usize {
        self.incomplete().map_or(0, |recipe| recipe.level)
    }

    /// What is known about it whatever its numbers are.
    pub fn info(&self) -> &'static PrecondInfo {
        self.info
    }

    /// One of its numbers as a count; 0 where it is none.
    pub(super) fn count(&self, index: usize) -> usize {
        match self.values[index] {
            Value::Count(count) => count,
            _ => 0,
        }
    }

    /// The same, where the matrix decides if it is not given.
    pub(super) fn count_if_given(&self, index: usize) -> Option<usize> {
        match self.values[index] {
            Value::Count(count) => Some(count),
            _ => None,
        }
    }

    /// One of its numbers; not a number where the matrix decides.
    pub(super) fn real(&self, index: usize) -> f64 {
        match self.values[index] {
            Value::Real(number) => number,
            Value::Count(count) => count as f64,
            _ => f64::NAN,
        }
    }

    /// The same, where the matrix decides if it is not given.
    pub(super) fn real_if_given(&self, index: usize) -> Option<f64> {
        Some(self.real(index)).filter(|number| !number.is_nan())
    }

    /// A value that is out of its range is an error.
    pub(crate) fn validate(&self) -> Result<(), SolveError> {
        for (parameter, value) in self.info.parameters.iter().zip(&self.values) {
            if !parameter.allows(value) {
                return Err(SolveError::Option {
                    name: parameter.name,
                    value: value.to_string(),
                    needed: format!("{} needs {}", self.name(), parameter.range()),
                });
            }
        }
        Ok(())
    }

    /// How it is built.
    pub fn construct(&self) -> Construction {
        (self.info.construct)(self)
    }

    /// A weaker one that takes less memory.
    pub fn weaker(&self) -> Option<PrecondSpec> {
        (self.info.weaker)(self)
    }

    /// Its entries for a matrix of this pattern; `None` where they are known only after the analysis.
    pub fn predicted_entries(&self, pattern: &Pattern) -> Option<u64> {
        (self.info.predicted_entries)(self, pattern)
    }

    /// The recipe of an incomplete factor on a pattern, if that is what it is.
    pub fn incomplete(&self) -> Option<Incomplete> {
        match self.construct() {
            Construction::Incomplete(recipe) | Construction::Trained { recipe, .. } => Some(recipe),
            _ => None,
        }
    }

    /// Rounds of training, for what is trained.
    pub(crate) fn training_rounds(&self) -> Option<usize> {
        match self.construct() {
            Construction::Trained { rounds, .. } => Some(rounds),
            _ => None,
        }
    }

    /// A factor whose pattern follows the values, if that is what it is.
    pub(crate) fn threshold(&self) -> Option<ByThreshold> {
        match self.construct() {
            Construction::Threshold(threshold) => Some(threshold),
            _ => None,
        }
    }

    /// No preconditioner.
    pub fn is_none(&self) -> bool {
        matches!(self.construct(), Construction::Nothing)
    }

    /// To be chosen from the matrix.
    pub fn is_auto(&self) -> bool {
        matches!(self.construct(), Construction::Chosen)
    }
}

impl Display for PrecondSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let given = self.info.parameters.iter().zip(&self.values);
        let is_default = |parameter: &Parameter, value| parameter.default_value().as_ref() == Some(value);
        let last = given.clone().rposition(|(parameter, value)| !is_default(parameter, value));
        let Some(last) = last else {
            return match &self.own {
                Some(name) => f.pad(name),
                None => f.pad(&without_numbers(self.info)),
            };
        };
        let mut text = format!("{}(", self.name());
        for (k, (_, value)) in given.take(last + 1).enumerate() {
            write!(text, "{}{value}", if k > 0 { "," } else { "" })?;
        }
        f.pad(&(text + ")"))
    }
}

/// The name alone: `ssor`, `ic0`, `milu0-columns`.
pub(super) fn without_numbers(info: &PrecondInfo) -> String {
    match (info.level_in_name, info.name.split_once('-')) {
        (false, _) => info.name.into(),
        (true, None) => format!("{}0", info.name),
        (true, Some((first, rest))) => format!("{first}0-{rest}"),
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            // As people write it: 0.01, 1e-8.
            Value::Real(number) if *number != 0.0 && number.abs() < 1e-3 => write!(f, "{number:e}"),
            Value::Real(number) => write!(f, "{number}"),
            Value::Word(word) => f.write_str(word),
            Value::Preconditioner(spec) => write!(f, "{spec}"),
            Value::FromMatrix => f.write_str(FROM_MATRIX),
        }
    }
}

impl serde::Serialize for PrecondSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for PrecondSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
