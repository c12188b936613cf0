//! The p largest entries of a row, in linear time; ties go to the smaller column.

use crate::scalar::Real;
use std::cmp::Ordering;

/// A place in a row and the value there.
pub(super) type Entry<T> = (u32, T);

/// Keeps the `p` entries of largest `size`, then sorts by place. Sizes are not NaN.
pub(super) fn keep_largest<T: Real>(entries: &mut Vec<Entry<T>>, p: usize, size: impl Fn(&Entry<T>) -> T) {
    if p < entries.len() {
        if p > 0 {
            entries.select_nth_unstable_by(p - 1, |a, b| {
                size(b).partial_cmp(&size(a)).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0))
            });
        }
        entries.truncate(p);
    }
    entries.sort_unstable_by_key(|e| e.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_back_in_order_and_ties_go_left() {
        let row = [(7, 1.0f64), (2, -3.0), (5, 1.0), (3, 0.5), (9, -1.0)];
        let kept = |p| {
            let mut entries = row.to_vec();
            keep_largest(&mut entries, p, |e| e.1.abs());
            entries.iter().map(|e| e.0).collect::<Vec<_>>()
        };
        assert!(kept(0).is_empty());
        assert_eq!(kept(1), [2]);
        assert_eq!(kept(2), [2, 5]);
        assert_eq!(kept(3), [2, 5, 7]);
        assert_eq!(kept(4), [2, 5, 7, 9]);
        assert_eq!(kept(usize::MAX), [2, 3, 5, 7, 9]);
    }
}
