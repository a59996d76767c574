//! A page that claims something names the tests that hold it, and those exist.
//!
//! The claims are the rows of tables with a column "held by". A test is named as
//! `package::module::test`, in backquotes, with `_` for `-`; one beside a crate has the name of its file
//! first: `raymond::cli::disks::…` is in `crates/cli/tests/cli/disks.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::top;

pub(crate) type Tests = BTreeSet<String>;

/// Every test function of the workspace.
pub(crate) fn tests() -> Tests {
    let crates = fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Tests::new();
    for place in crates.chain(["xtask", "fuzz"].map(|name| top().join(name))) {
        let manifest = fs::read_to_string(place.join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        let package = name.trim_matches('"').replace('-', "_");
        for root in ["src", "tests"] {
            collect(&place.join(root), &package, &mut found);
        }
    }
    found
}

/// The tests of the files in a directory, which are modules of `module`.
fn collect(directory: &Path, module: &str, found: &mut Tests) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = match stem {
            "lib" | "main" => module.to_owned(),
            stem => format!("{module}::{stem}"),
        };
        if path.is_dir() {
            collect(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            found.extend(tests_in(&source).into_iter().map(|test| format!("{inner}::{test}")));
        }
    }
}

/// The test functions of a source, each below the modules that it stands in.
fn tests_in(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut is_test = false;
    for line in source.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        modules.retain(|(outer, _)| !(code == "}" && *outer == indent));
        if let Some(name) = code.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            modules.push((indent, name));
        }
        is_test |= code == "#[test]" || code.starts_with("#[tokio::test");
        let function = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')).filter(|_| is_test)
        {
            let path = modules.iter().map(|(_, module)| *module).chain([name]);
            found.push(path.collect::<Vec<_>>().join("::"));
            is_test = false;
        }
    }
    found
}

/// The rows of tables with a column "held by": each with its line, and the tests that it names.
fn claims(page: &str) -> Vec<(usize, Vec<&str>)> {
    let mut column = None;
    let mut claims = Vec::new();
    for (number, line) in page.lines().enumerate() {
        let Some(row) = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
            column = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let is_rule = cells.iter().all(|cell| cell.chars().all(|c| "-: ".contains(c)));
        match column {
            None => column = Some(cells.iter().position(|cell| *cell == "held by")),
            Some(Some(column)) if !is_rule => {
                let cell = cells.get(column).copied().unwrap_or_default();
                let quoted = cell.split('`').skip(1).step_by(2);
                claims.push((number + 1, quoted.collect()));
            }
            Some(_) => {}
        }
    }
    claims
}

/// How many claims a page makes, and what is wrong with them.
pub(crate) fn check(page: &str, tests: &Tests) -> (usize, Vec<String>) {
    let claims = claims(page);
    let wrong = claims.iter().flat_map(|(line, named)| {
        let nothing = named.is_empty().then(|| format!("{line}: no test is named"));
        let gone = named.iter().filter(|name| !tests.contains(**name));
        nothing.into_iter().chain(gone.map(move |name| format!("{line}: there is no test {name}")))
    });
    (claims.len(), wrong.collect())
}

#[test]
fn every_claim_names_tests_that_exist() {
    let tests = tests();
    assert!(tests.len() > 1_000, "the sources are read wrongly: {}", tests.len());
    for (page, at_least) in [("docs/security.md", 40), ("docs/promises.md", 12)] {
        let text = fs::read_to_string(top().join(page)).unwrap();
        let (claims, wrong) = check(&text, &tests);
        assert!(claims >= at_least, "{page} makes {claims} claims");
        assert!(wrong.is_empty(), "{page}:{}", wrong.join(&format!("\n{page}:")));
    }
}

#[test]
fn tests_are_found_with_their_modules() {
    let source = "\
#[test]
fn one() {}
fn no_test() {}
mod tests {
    #[tokio::test(start_paused = true)]
    #[expect(x)]
    async fn two() {
    }
    mod inner {
        proptest! {
            #[test]
            fn three(x in 0..1) {}
        }
    }
    #[test]
    fn four() {}
}
#[test]
fn five() {}
";
    let expected = ["one", "tests::two", "tests::inner::three", "tests::four", "five"];
    assert_eq!(tests_in(source), expected);
    assert!(tests().contains("raymond::pages::held::tests_are_found_with_their_modules"));
}

#[test]
fn a_claim_without_a_test_is_told_with_its_line() {
    let page = "| a | b |\n|---|---|\n| x | `a::b` |\n\n\
                | claim | held by |\n|---|---|\n| one | `a::b`, `a::c` |\n| two | `a::d` |\n| three | |\n";
    let tests = ["a::b", "a::c"].map(str::to_owned).into();
    let wrong = ["8: there is no test a::d", "9: no test is named"].map(str::to_owned);
    assert_eq!(check(page, &tests), (3, wrong.into()));
}
