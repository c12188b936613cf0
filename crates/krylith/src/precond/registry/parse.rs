//! From text to a preconditioner: a name, and numbers in parentheses.
//!
//! Case does not matter. Digits that follow the first word of a name are its level: `ic0`, `ic2`, `milu0-columns`.

use super::spec::{MOST, without_numbers};
use super::{ALL, Parameter, PrecondInfo, PrecondSpec, Value};
use crate::names;
use std::str::FromStr;
use thiserror::Error;

/// A name that is not understood. The message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is no such name.
    #[error("unknown {what} `{name}`{hint}")]
    Unknown {
        /// What it would name.
        what: &'static str,
        /// As given.
        name: String,
        /// What may have been meant, and the names that there are.
        hint: String,
    },
    /// The parentheses are not closed, or something follows them.
    #[error("`{name}`: numbers stand in parentheses at the end, as in {usage}")]
    Parentheses {
        /// As given.
        name: String,
        /// How to write it.
        usage: String,
    },
    /// A number is missing.
    #[error("`{name}` lacks {parameter}, {meaning}: {usage}")]
    Missing {
        /// As given.
        name: String,
        /// Which number.
        parameter: &'static str,
        /// What it means.
        meaning: &'static str,
        /// How to write it.
        usage: String,
    },
    /// There are more numbers than it has.
    #[error("`{name}` has too many numbers: {usage}")]
    TooMany {
        /// As given.
        name: String,
        /// How to write it.
        usage: String,
    },
    /// A number makes no sense.
    #[error("`{name}`: {parameter}, {meaning}, is {range}, not `{given}`")]
    Number {
        /// As given.
        name: String,
        /// Which number.
        parameter: &'static str,
        /// What it means.
        meaning: &'static str,
        /// What it may be.
        range: String,
        /// What it is.
        given: String,
    },
}

impl FromStr for PrecondSpec {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let lower = text.trim().to_lowercase();
        let (head, rest) = match lower.split_once('(') {
            Some((head, rest)) => (head.trim(), Some(rest)),
            None => (lower.as_str(), None),
        };
        let (info, level) = find(head).ok_or_else(|| unknown(text, head))?;
        let usage = || info.usage();
        let inside = match rest {
            Some(rest) => {
                let inside = rest.trim_end().strip_suffix(')').filter(|inside| !inside.contains(['(', ')']));
                inside.ok_or_else(|| NameError::Parentheses { name: text.into(), usage: usage() })?
            }
            None => "",
        };
        let mut numbers = Vec::from_iter(level);
        numbers.extend(inside.split(',').map(str::trim).filter(|_| rest.is_some()));
        if numbers.len() > info.parameters.len() {
            return Err(NameError::TooMany { name: text.into(), usage: usage() });
        }
        let mut values = [Value::FromMatrix; MOST];
        for (k, parameter) in info.parameters.iter().enumerate() {
            values[k] = match (numbers.get(k), parameter.default) {
                (Some(number), _) => parameter.read(text, number)?,
                (None, Some(default)) => default,
                (None, None) => {
                    let Parameter { name: parameter, meaning, .. } = *parameter;
                    return Err(NameError::Missing { name: text.into(), parameter, meaning, usage: usage() });
                }
            };
        }
        Ok(PrecondSpec::new(info, &values))
    }
}

/// The entry of a name, and the digits in it that are a level.
fn find(head: &str) -> Option<(&'static PrecondInfo, Option<&str>)> {
    let named =
        |name: &str| ALL.iter().copied().find(|info| info.name == name || info.aliases.contains(&name));
    if let Some(info) = named(head) {
        return Some((info, None));
    }
    let (first, rest) = head.find('-').map_or((head, ""), |at| head.split_at(at));
    let word = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &first[word.len()..];
    let info = named(&format!("{word}{rest}")).filter(|info| info.level_in_name && !digits.is_empty())?;
    Some((info, Some(digits)))
}

fn unknown(text: &str, head: &str) -> NameError {
    let names = Vec::from_iter(ALL.iter().map(|info| without_numbers(info)));
    let known = Vec::from_iter(names.iter().map(String::as_str));
    NameError::Unknown { what: "preconditioner", name: text.into(), hint: names::hint(head, &known) }
}

impl Parameter {
    fn read(&self, text: &str, given: &str) -> Result<Value, NameError> {
        let value = match self.whole {
            true => given.parse().ok().map(Value::Count),
            false => given.parse().ok().map(Value::Real),
        };
        value.filter(|value| self.allows(*value)).ok_or_else(|| NameError::Number {
            name: text.into(),
            parameter: self.name,
            meaning: self.meaning,
            range: self.range(),
            given: given.into(),
        })
    }

    /// Whether a value makes sense.
    pub(super) fn allows(&self, value: Value) -> bool {
        match value {
            Value::Count(count) => count as f64 >= self.least && count as f64 <= self.most,
            Value::Real(number) => number.is_finite() && number >= self.least && number <= self.most,
            Value::FromMatrix => self.default == Some(Value::FromMatrix),
        }
    }

    /// What it may be, in words.
    pub fn range(&self) -> String {
        let kind = if self.whole { "a whole number" } else { "a number" };
        match self.most < f64::MAX {
            true => format!("{kind} from {} to {}", self.least, self.most),
            false => format!("{kind} from {} on", self.least),
        }
    }
}
