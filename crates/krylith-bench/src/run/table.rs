//! Tables in Markdown, and the numbers in them.

/// A table.
pub fn table<C: AsRef<str>>(columns: &[C], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
    let body = rows.into_iter().map(|cells| line(&cells.iter().map(String::as_str).collect::<Vec<_>>()));
    format!("{}|{}\n{}", line(&head), "---|".repeat(columns.len()), body.collect::<String>())
}

/// What a cell shows, or a dash.
pub fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or("–".into(), show)
}

/// Three digits, or a dash.
pub fn digits(value: Option<f64>) -> String {
    or_dash(value, |v| match v {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    })
}

/// 1,234,567.
pub fn grouped(number: usize) -> String {
    let text = number.to_string();
    let mut grouped = String::new();
    for (k, digit) in text.chars().enumerate() {
        if k > 0 && (text.len() - k).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A share in percent.
pub fn share(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// `1 thread`, `2 threads`.
pub fn threads(count: usize) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}

/// `1 round`, `3 rounds`.
pub fn rounds(count: usize) -> String {
    format!("{count} round{}", if count == 1 { "" } else { "s" })
}

/// The geometric mean; none of no values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum = values.iter().map(|v| v.ln()).sum::<f64>();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_written() {
        let rows = [vec!["1".into(), "2".into()]];
        assert_eq!(table(&["a", "b"], rows), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }

    #[test]
    fn numbers_in_cells() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([None, Some(123.4), Some(12.34), Some(1.234)].map(digits), ["–", "123", "12.3", "1.23"]);
        assert_eq!(
            (share(1, 3), threads(1), rounds(2)),
            ("33.3 %".into(), "1 thread".into(), "2 rounds".into())
        );
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12 && geometric_mean(&[]).is_none());
    }
}
