//! From text to a preconditioner: a name, and arguments in parentheses, in the order of its parameters or as `name=value`. An argument is a
//! number, a word, or a preconditioner with arguments of its own.
//!
//! Case does not matter. Digits that follow the first word of a name are its level: `ic0`, `ic2`, `milu0-columns`.

use super::spec::without_numbers;
use super::{ALL, FROM_MATRIX, Parameter, PrecondInfo, PrecondSpec, Takes, Value};
use crate::names::{self, NameError};
use std::str::FromStr;

/// Preconditioners within each other at most.
const MOST_NESTED: usize = 8;

impl FromStr for PrecondSpec {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        read(ALL, &text.to_lowercase(), 0)
    }
}

/// A preconditioner of these from text in small letters, within `depth` others.
pub(super) fn read(
    known: &[&'static PrecondInfo],
    text: &str,
    depth: usize,
) -> Result<PrecondSpec, NameError> {
    if depth > MOST_NESTED {
        return Err(NameError::TooDeep { name: text.into(), most: MOST_NESTED });
    }
    let (head, rest) = match text.trim().split_once('(') {
        Some((head, rest)) => (head.trim(), Some(rest)),
        None => (text.trim(), None),
    };
    let (info, level) = find(known, head).ok_or_else(|| unknown(known, text, head))?;
    let inside = match rest {
        Some(rest) => {
            let inside = rest.trim_end().strip_suffix(')').and_then(arguments);
            inside.ok_or_else(|| NameError::Parentheses { name: text.into(), usage: info.usage() })?
        }
        None => Vec::new(),
    };
    let given = in_places(info, text, Vec::from_iter(level.into_iter().chain(inside)))?;
    let value = |(parameter, given): (&Parameter, Option<&str>)| match given.or(parameter.default) {
        Some(given) => parameter.read(known, text, given, depth),
        None => Err(NameError::Missing {
            name: text.into(),
            parameter: parameter.name,
            meaning: parameter.meaning,
            usage: info.usage(),
        }),
    };
    let values: Result<Vec<Value>, _> = info.parameters.iter().zip(given).map(value).collect();
    Ok(PrecondSpec::new(info, values?))
}

/// What stands between commas, but not between those of inner parentheses; `None` if parentheses do not match.
fn arguments(inside: &str) -> Option<Vec<&str>> {
    let (mut depth, mut from, mut found) = (0usize, 0, Vec::new());
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                found.push(inside[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(inside[from..].trim());
    (depth == 0).then_some(found)
}

/// Arguments at the places of their parameters: the first ones in order, others as `name=value`.
fn in_places<'t>(
    info: &PrecondInfo,
    text: &str,
    arguments: Vec<&'t str>,
) -> Result<Vec<Option<&'t str>>, NameError> {
    let (name, usage) = (|| text.to_owned(), || info.usage());
    let mut places = vec![None; info.parameters.len()];
    for (k, argument) in arguments.into_iter().enumerate() {
        let keyword = argument.split_once('=').filter(|(keyword, _)| !keyword.contains('('));
        let (place, value) =
            match keyword {
                Some((keyword, value)) => {
                    let keyword = keyword.trim();
                    let same = |parameter: &Parameter| parameter.name.eq_ignore_ascii_case(keyword);
                    let place = info.parameters.iter().position(same).ok_or_else(|| {
                        NameError::NoParameter { name: name(), parameter: keyword.into(), usage: usage() }
                    })?;
                    (place, value.trim())
                }
                None => (k, argument),
            };
        let Some(free) = places.get_mut(place) else {
            return Err(NameError::TooMany { name: name(), usage: usage() });
        };
        if free.replace(value).is_some() {
            let parameter = info.parameters[place].name;
            return Err(NameError::Twice { name: name(), parameter, usage: usage() });
        }
    }
    Ok(places)
}

/// The entry of a name, and the digits in it that are a level.
fn find<'t>(
    known: &[&'static PrecondInfo],
    head: &'t str,
) -> Option<(&'static PrecondInfo, Option<&'t str>)> {
    let named =
        |name: &str| known.iter().copied().find(|info| info.name == name || info.aliases.contains(&name));
    if let Some(info) = named(head) {
        return Some((info, None));
    }
    let (first, rest) = head.find('-').map_or((head, ""), |at| head.split_at(at));
    let word = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &first[word.len()..];
    let info = named(&format!("{word}{rest}")).filter(|info| info.level_in_name && !digits.is_empty())?;
    Some((info, Some(digits)))
}

fn unknown(known: &[&'static PrecondInfo], text: &str, head: &str) -> NameError {
    let names = Vec::from_iter(known.iter().map(|info| without_numbers(info)));
    let known = Vec::from_iter(names.iter().map(String::as_str));
    NameError::Unknown { what: "preconditioner", name: text.into(), hint: names::hint(head, &known) }
}

impl Parameter {
    fn read(
        &self,
        known: &[&'static PrecondInfo],
        text: &str,
        given: &str,
        depth: usize,
    ) -> Result<Value, NameError> {
        let value = match self.takes {
            _ if given == FROM_MATRIX && self.default == Some(FROM_MATRIX) => Some(Value::FromMatrix),
            Takes::Count { .. } => given.parse().ok().map(Value::Count),
            Takes::Real { .. } => given.parse().ok().map(Value::Real),
            Takes::Word(words) => words.iter().find(|word| **word == given).map(|word| Value::Word(word)),
            Takes::Preconditioner => Some(Value::Preconditioner(Box::new(read(known, given, depth + 1)?))),
        };
        value.filter(|value| self.allows(value)).ok_or_else(|| NameError::Value {
            name: text.into(),
            parameter: self.name,
            meaning: self.meaning,
            range: self.range(),
            given: given.into(),
        })
    }

    /// The value if none is given; `None` if one is required.
    pub fn default_value(&self) -> Option<Value> {
        self.read(ALL, self.name, self.default?, 0).ok()
    }

    /// Whether a value makes sense.
    pub(super) fn allows(&self, value: &Value) -> bool {
        match (value, self.takes) {
            (Value::FromMatrix, _) => self.default == Some(FROM_MATRIX),
            (Value::Count(count), Takes::Count { least, most }) => (least..=most).contains(count),
            (Value::Real(number), Takes::Real { least, most }) => {
                number.is_finite() && (least..=most).contains(number)
            }
            (Value::Word(word), Takes::Word(words)) => words.contains(word),
            (Value::Preconditioner(spec), Takes::Preconditioner) => spec.validate().is_ok(),
            _ => false,
        }
    }

    /// What it may be, in words.
    pub fn range(&self) -> String {
        match self.takes {
            Takes::Count { least, most: usize::MAX } => format!("a whole number from {least} on"),
            Takes::Count { least, most } => format!("a whole number from {least} to {most}"),
            Takes::Real { least, most } if most == f64::MAX => format!("a number from {least} on"),
            Takes::Real { least, most } => format!("a number from {least} to {most}"),
            Takes::Word(words) => format!("one of {}", words.join(", ")),
            Takes::Preconditioner => "a preconditioner".into(),
        }
    }
}
