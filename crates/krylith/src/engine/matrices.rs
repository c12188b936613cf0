//! A and the matrix that its preconditioner is made from, in one storage.

/// Where both have one pattern there is one copy, with the values that were set last: those of the source when a factor is made, those
/// of A when a solve begins.
#[derive(Debug)]
pub struct Matrices<K> {
    /// A.
    pub a: K,
    source: Option<K>,
}

impl<K> Matrices<K> {
    /// `other` is A, where it has another pattern than the source.
    pub fn new(source: K, other: Option<K>) -> Self {
        match other {
            Some(a) => Matrices { a, source: Some(source) },
            None => Matrices { a: source, source: None },
        }
    }

    /// One copy serves both.
    pub fn are_one(&self) -> bool {
        self.source.is_none()
    }

    /// What the preconditioner is made from.
    pub fn source(&self) -> &K {
        self.source.as_ref().unwrap_or(&self.a)
    }

    /// The same, to take over values.
    pub fn source_mut(&mut self) -> &mut K {
        self.source.as_mut().unwrap_or(&mut self.a)
    }

    /// Bytes of both.
    pub fn bytes(&self, of: impl Fn(&K) -> usize) -> usize {
        of(&self.a) + self.source.as_ref().map_or(0, of)
    }
}
