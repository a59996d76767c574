//! The claims of the pages, and the tests that prove them.
//!
//! A claim is a numbered promise (`### 5. …` in docs/promises.md is `P5`) or a row of a table whose
//! first column is `id`. A test that proves claims has a line `// proves: P5, A12` above it. Both
//! directions are checked, and docs/proofs.md lists the tests by claim. `UPDATE=1` writes that
//! page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::top;

/// A test function with its path, for example `raymond::cli::disks::prune_works_on_a_full_disk`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    path: String,
    /// The ids of the claims that it proves.
    proves: Vec<String>,
}

/// Every test function of the workspace.
fn tests() -> Vec<Test> {
    let crates = fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
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

/// Adds the tests of the files in a directory, whose modules are below `module`.
fn collect(directory: &Path, module: &str, found: &mut Vec<Test>) {
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
            found.extend(tests_in(&fs::read_to_string(&path).unwrap(), &inner));
        }
    }
}

/// The test functions of a source file.
fn tests_in(source: &str, module: &str) -> Vec<Test> {
    let mut found = Vec::new();
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut proves = Vec::new();
    let mut is_test = false;
    for line in source.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        modules.retain(|(outer, _)| !(code == "}" && *outer == indent));
        if let Some(name) = code.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            modules.push((indent, name));
        }
        if let Some(ids) = code.strip_prefix("// proves: ") {
            proves.extend(ids.split(", ").map(str::to_owned));
        }
        is_test |= code == "#[test]" || code.starts_with("#[tokio::test");
        let function = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('(')) {
            assert!(
                is_test || proves.is_empty(),
                "{module}::{name} proves a claim and is not a test"
            );
            if is_test {
                let names = modules.iter().map(|(_, module)| *module).chain([name]);
                let path = [module].into_iter().chain(names).collect::<Vec<_>>().join("::");
                found.push(Test { path, proves: std::mem::take(&mut proves) });
            }
            is_test = false;
        }
    }
    found
}

/// The ids of the claims of a page, in order.
fn claims(page: &str) -> Vec<String> {
    let mut is_claims = None;
    let mut claims = Vec::new();
    for line in page.lines() {
        let promise = line.strip_prefix("### ").and_then(|title| title.split_once(". "));
        if let Some((number, _)) = promise.filter(|(number, _)| number.parse::<u32>().is_ok()) {
            claims.push(format!("P{number}"));
        }
        let Some(row) = line.trim().strip_prefix('|') else {
            is_claims = None;
            continue;
        };
        let id = row.split('|').next().unwrap_or_default().trim();
        match is_claims {
            None => is_claims = Some(id == "id"),
            Some(true) if !id.starts_with('-') => claims.push(id.to_owned()),
            Some(_) => {}
        }
    }
    claims
}

/// The page that lists the tests of every claim.
fn proofs(claims: &[String], tests: &[Test]) -> String {
    let mut page = "# Proofs\n\n\
        These tests prove the [promises](promises.md) and the claims about [security](security.md). They\n\
        are listed by the id of the claim. This page is made from the lines `// proves: …` above the tests:\n\
        `UPDATE=1 cargo nextest run -p raymond --test pages claims`.\n"
        .to_owned();
    let mut by_claim: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for test in tests {
        for claim in &test.proves {
            by_claim.entry(claim).or_default().insert(&test.path);
        }
    }
    for claim in claims {
        writeln!(page, "\n**{claim}**\n").unwrap();
        for path in by_claim.get(claim.as_str()).into_iter().flatten() {
            writeln!(page, "- `{path}`").unwrap();
        }
    }
    page
}

/// The claims without a test, and the tags without a claim.
fn wrong(claims: &[String], tests: &[Test]) -> Vec<String> {
    let is_proved = |claim: &&String| tests.iter().any(|test| test.proves.contains(claim));
    let unproved = claims.iter().filter(|claim| !is_proved(claim));
    let mut wrong: Vec<_> = unproved.map(|claim| format!("{claim} has no test")).collect();
    for test in tests {
        let unknown = test.proves.iter().filter(|id| !claims.contains(id));
        wrong.extend(unknown.map(|id| format!("{}: no page claims {id}", test.path)));
    }
    wrong
}

#[test]
fn every_claim_is_proved_by_a_test() {
    let tests = tests();
    assert!(tests.len() > 1_000, "the sources are read wrongly: {}", tests.len());
    let mut all = Vec::new();
    for (page, at_least) in [("docs/promises.md", 50), ("docs/security.md", 40)] {
        let claims = claims(&fs::read_to_string(top().join(page)).unwrap());
        assert!(claims.len() >= at_least, "{page} has {} claims", claims.len());
        all.extend(claims);
    }
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "an id is used twice");
    assert_eq!(wrong(&all, &tests), [""; 0]);
    let (page, expected) = (top().join("docs/proofs.md"), proofs(&all, &tests));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&page, &expected).unwrap();
    }
    assert_eq!(fs::read_to_string(&page).unwrap(), expected, "UPDATE=1 writes the page");
}

#[test]
fn tests_are_found_with_their_modules() {
    let source = "\
#[test]
fn one() {}
fn no_test() {}
mod tests {
    TAG P1, A2
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
    TAG A3
    #[test]
    fn four() {}
}
#[test]
fn five() {}
"
    // This file is a source too, whose text must not prove a claim of the pages.
    .replace("TAG", "// proves:");
    let test = |path: &str, proves: &[&str]| Test {
        path: format!("x::{path}"),
        proves: proves.iter().map(|id| (*id).to_owned()).collect(),
    };
    let expected = [
        test("one", &[]),
        test("tests::two", &["P1", "A2"]),
        test("tests::inner::three", &[]),
        test("tests::four", &["A3"]),
        test("five", &[]),
    ];
    assert_eq!(tests_in(&source, "x"), expected);
    let this = "raymond::pages::claims::tests_are_found_with_their_modules";
    assert!(tests().iter().any(|test| test.path == this));
}

#[test]
fn unproved_claims_and_unknown_ids_are_reported() {
    let page = "### 1. First\n\n| a | id |\n|---|---|\n| x | y |\n\n\
                | id | claim |\n|---|---|\n| A1 | one |\n| A2 | two |\n";
    let claims = claims(page);
    assert_eq!(claims, ["P1", "A1", "A2"]);
    let proves = ["P1", "A2", "A9"].map(str::to_owned).into();
    let tests = [Test { path: "x::one".to_owned(), proves }];
    assert_eq!(wrong(&claims, &tests), ["A1 has no test", "x::one: no page claims A9"]);
}
