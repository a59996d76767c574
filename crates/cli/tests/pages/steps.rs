//! The pages on the step language list every code of the program with its cause and its remedy, and
//! every limit.

use std::fs;

use raymond_backends::{exec, workspace};
use raymond_core::crayfish::document::{Cap, Order};
use raymond_core::crayfish::envelope::MOST_SCHEMA_PATHS;
use raymond_core::crayfish::{
    ErrorCode, ProblemCode, name, problem, reading, state, template, validate, walk,
};
use raymond_engine::schemas;

use super::top;

#[test]
fn error_page_lists_every_code_with_remedy() {
    let page = fs::read_to_string(top().join("docs/crayfish-errors.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |code: &ErrorCode| format!("| `{code}` | {} | {} |", code.cause(), code.remedy());
    let of_problem = |code: &ProblemCode| format!("| `{code}` | {} |", code.cause());
    let expected = ErrorCode::ALL.iter().map(row).chain(ProblemCode::ALL.iter().map(of_problem));
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

#[test]
fn reference_lists_all_limits() {
    let page = fs::read_to_string(top().join("docs/crayfish.md")).unwrap();
    let (_, limits) = page.split_once("\n## Limits\n").unwrap();
    let check = |what: &str, limit: String| {
        let row = limits.lines().find(|line| line.starts_with(&format!("| {what} | ")));
        let row = row.unwrap_or_else(|| panic!("nothing is said of {what}"));
        let said = row.split(" | ").nth(1).unwrap();
        assert!(said.contains(&limit), "{what}: {limit} is not in {row}");
    };
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    check("`retries` of `exec` and `agent`, `maxIters`", format!("1 to {}", Cap::MOST));
    check("steps of a document", grouped(validate::STEPS));
    check("nesting depth of steps", grouped(validate::NESTING));
    check("nesting depth of a JSON text", grouped(reading::LEVELS));
    check("directories of `ref.schemaPaths`", grouped(MOST_SCHEMA_PATHS));
    check("length of an id, and of the name of a local", grouped(name::LONGEST));
    check("`maxParallel`", format!("1 to {}", grouped(Order::MOST_PARALLEL as usize)));
    check("items of parallel loops, at the same time", grouped(walk::MOST_BRANCHES as usize));
    check("iterations of all loops of a run", grouped(usize::try_from(walk::MOST_TURNS).unwrap()));
    check("a step with its expressions filled in", mebibytes(template::LIMIT as u64));
    check("stdout of a program", mebibytes(exec::STDOUT_MAX as u64));
    check("stderr", format!("{} KiB", exec::STDERR_MAX >> 10));
    check("all results of a run", mebibytes(state::MOST_KEPT));
    check("a JSON file, or a schema by name", mebibytes(workspace::FILE_MAX));
    check(
        "all schemas of a document, with the schemas they refer to",
        mebibytes(schemas::MOST_BYTES as u64),
    );
    check("reported problems of a document", grouped(problem::MOST));
}

/// `12,345`, as the book writes numbers.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}
