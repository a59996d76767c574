//! The page on the errors of the step language says what the program says: every code, with its
//! cause and its remedy, in order.

use std::fs;

use raymond_core::crayfish::Code;

use super::top;

#[test]
fn the_page_of_errors_has_every_code_with_its_cause_and_remedy() {
    let page = fs::read_to_string(top().join("docs/crayfish-errors.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |code: &Code| format!("| `{code}` | {} | {} |", code.cause(), code.remedy());
    assert_eq!(rows, Code::ALL.iter().map(row).collect::<Vec<_>>());
}
