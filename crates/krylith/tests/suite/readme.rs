//! What the README lists is what there is.

use krylith::precond::registry::preconditioners;

#[test]
fn the_table_of_preconditioners_is_that_of_the_registry() {
    let mut table = String::from("| `--precond` | what | matrices |\n|---|---|---|\n");
    for info in preconditioners() {
        let ways = info.usage().split(", ").map(|way| format!("`{way}`")).collect::<Vec<_>>().join(", ");
        table += &format!("| {ways} | {} | {} |\n", info.description, info.matrices.name());
    }
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains(&table), "put this into README.md:\n{table}");
}
