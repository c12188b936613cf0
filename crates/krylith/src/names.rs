//! Names that people type: case does not matter, and a name that is nearly right is recognised for the error message.

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
    /// There are more arguments than parameters.
    #[error("`{name}` has too many numbers: {usage}")]
    TooMany {
        /// As given.
        name: String,
        /// How to write it.
        usage: String,
    },
    /// It has no parameter of this name.
    #[error("`{name}` has no parameter `{parameter}`: {usage}")]
    NoParameter {
        /// As given.
        name: String,
        /// As given.
        parameter: String,
        /// How to write it.
        usage: String,
    },
    /// A parameter is given twice.
    #[error("`{name}` gives {parameter} twice: {usage}")]
    Twice {
        /// As given.
        name: String,
        /// Which parameter.
        parameter: &'static str,
        /// How to write it.
        usage: String,
    },
    /// Too many preconditioners are within each other.
    #[error("`{name}` is within more than {most} others")]
    TooDeep {
        /// What is within them.
        name: String,
        /// How many may be.
        most: usize,
    },
    /// A value makes no sense.
    #[error("`{name}`: {parameter}, {meaning}, is {range}, not `{given}`")]
    Value {
        /// As given.
        name: String,
        /// Which parameter.
        parameter: &'static str,
        /// What it means.
        meaning: &'static str,
        /// What it may be.
        range: String,
        /// What it is.
        given: String,
    },
}

/// The name that was probably meant: the nearest by edits (insertions, deletions, exchanges and swaps of neighbours), if it is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let most = (name.chars().count() / 3).max(1);
    let distances = known.into_iter().map(|known| (edits(&name, known), known));
    distances.filter(|&(edits, _)| edits <= most).min_by_key(|&(edits, _)| edits).map(|(_, known)| known)
}

/// The optimal string alignment distance. Reference: Damerau 1964, doi:10.1145/363958.363994.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (Vec::from_iter(a.chars()), Vec::from_iter(b.chars()));
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, edits) | (edits, 0) => edits,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

/// The names that there are, after "; did you mean X?" where one of them is nearly the given one.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("; did you mean `{meant}`? Known: {all}"),
        None => format!("; known: {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_by_hand() {
        for (a, b, expected) in [("", "", 0), ("", "ab", 2), ("ilu", "ilut", 1), ("jaocbi", "jacobi", 1)] {
            assert_eq!((edits(a, b), edits(b, a)), (expected, expected), "{a} {b}");
        }
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn a_question_ends_before_the_list() {
        let known = ["jacobi", "ilut"];
        assert_eq!(hint("jacoby", &known), "; did you mean `jacobi`? Known: jacobi, ilut");
        assert_eq!(hint("amg", &known), "; known: jacobi, ilut");
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["jacobi", "ilut", "ssor"];
        assert_eq!(nearest("Jacobbi", known), Some("jacobi"));
        assert_eq!(nearest("ssro", known), Some("ssor"));
        assert_eq!(nearest("multigrid", known), None);
        assert_eq!(nearest("", known), None);
    }
}
