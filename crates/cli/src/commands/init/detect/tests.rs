use super::*;

/// A directory with these files (a name that ends in `/` is a folder), one line for each tool:
/// `Cargo.toml: cargo test, cargo build`.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let found = Detected::of(&listing(files));
    let line = |tool: &DetectedTool| match &tool.offer {
        DetectedOffer::Commands { .. } => {
            let lines: Vec<&str> = tool.commands().map(|command| command.line).collect();
            format!("{}: {}", tool.file, lines.join(", "))
        }
        DetectedOffer::Nothing(why) => format!("{}: {why}", tool.file),
    };
    assert_eq!(found.tools.iter().map(line).collect::<Vec<_>>(), expected, "{files:?}");
}

fn listing(files: &[(&str, &str)]) -> Listing {
    let mut listing = Listing::default();
    for (name, text) in files {
        match name.strip_suffix('/') {
            Some(".git") => listing.git = Git::Repository,
            Some(folder) => drop(listing.folders.insert(folder.to_owned())),
            None => drop(listing.files.insert((*name).to_owned())),
        }
        if Listing::wants(name) {
            listing.texts.insert((*name).to_owned(), (*text).to_owned());
        }
    }
    listing
}

#[test]
fn an_empty_directory_has_no_tools() {
    check(&[], &[]);
    check(&[("README.md", "cargo test"), ("src/", ""), (".git/", "")], &[]);
}

#[test]
fn cargo_tests_the_workspace_and_lints_if_configured() {
    let package = "[package]\nname = \"x\"\n";
    check(&[("Cargo.toml", package)], &["Cargo.toml: cargo test, cargo build"]);
    let both = format!("{package}[workspace]\n");
    check(&[("Cargo.toml", &both)], &["Cargo.toml: cargo test --workspace, cargo build"]);
    let lints = format!("{package}[lints.clippy]\npedantic = \"warn\"\n");
    check(&[("Cargo.toml", &lints)], &["Cargo.toml: cargo test, cargo build, cargo clippy"]);
    check(
        &[("Cargo.toml", package), ("clippy.toml", ""), ("rustfmt.toml", "")],
        &["Cargo.toml: cargo test, cargo build, cargo clippy, cargo fmt"],
    );
    let shared = "[workspace.lints.clippy]\nall = \"warn\"\n";
    check(
        &[("Cargo.toml", shared)],
        &["Cargo.toml: cargo test --workspace, cargo build, cargo clippy"],
    );
    // What is wrong with it is for cargo to say.
    check(&[("Cargo.toml", "[[[")], &["Cargo.toml: cargo test, cargo build"]);
}

#[test]
fn node_runs_the_scripts_that_are_there() {
    let all = r#"{"scripts": {"test": "node --test", "lint": "eslint .", "build": "tsc"}}"#;
    check(&[("package.json", all)], &["package.json: npm test, npm run lint, npm run build"]);
    let lint = r#"{"scripts": {"start": "node .", "lint": "eslint .", "test": " "}}"#;
    check(&[("package.json", lint)], &["package.json: npm run lint"]);
    let none = &["package.json: it has no script test, lint or build"];
    check(&[("package.json", "{}")], none);
    check(&[("package.json", r#"{"scripts": {"test": 5}}"#)], none);
    let placeholder = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    check(&[("package.json", placeholder)], none);
    check(&[("package.json", "{")], &["package.json: it could not be read"]);
}

#[test]
fn node_uses_the_package_manager_of_the_lock() {
    let package = r#"{"scripts": {"test": "x"}}"#;
    let locked = |lock: &str, expected: &str| {
        check(&[("package.json", package), (lock, "")], &[&format!("package.json: {expected}")]);
    };
    locked("package-lock.json", "npm test");
    locked("pnpm-lock.yaml", "pnpm test");
    locked("yarn.lock", "yarn test");
    locked("bun.lock", "bun run test");
    locked("bun.lockb", "bun run test");
    let named = r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "x"}}"#;
    check(&[("package.json", named), ("yarn.lock", "")], &["package.json: pnpm test"]);
}

#[test]
fn make_offers_the_targets_of_its_rules() {
    let makefile = |text: &str, expected: &str| {
        check(&[("Makefile", text)], &[&format!("Makefile: {expected}")]);
    };
    let none = "it has no target test, check, lint or build";
    makefile("build:\n\tcc x.c\ncheck test: build\n\t./x\n", "make test, make check, make build");
    makefile("test::\n\ttrue\n", "make test");
    makefile("check:\n\ttrue\n", "make check");
    makefile("test := x\ncheck ::= y\nlint = a:b\nbuild?=z:\n", none);
    makefile(".PHONY: test\n# check:\nall:\n\ttest: x\n", none);
    makefile("$(NAME) test: x\n", none);
    makefile("", none);
    let (first, second) = (("GNUmakefile", "check:"), ("Makefile", "test:"));
    check(&[first, second], &["GNUmakefile: make check"]);
}

#[test]
fn python_is_tested_by_what_the_project_declares() {
    let pyproject = "[project]\nname = 'x'\n";
    let with = |text: &str| format!("{pyproject}{text}");
    let pytest = with("[tool.pytest.ini_options]\n");
    check(&[("pyproject.toml", &pytest)], &["pyproject.toml: python3 -m pytest"]);
    check(&[("pyproject.toml", &pytest), ("uv.lock", "")], &["pyproject.toml: uv run pytest"]);
    check(
        &[("pyproject.toml", &pytest), ("poetry.lock", "")],
        &["pyproject.toml: poetry run pytest"],
    );
    check(&[("pytest.ini", "")], &["pytest.ini: python3 -m pytest"]);
    check(&[("conftest.py", "")], &["conftest.py: python3 -m pytest"]);
    check(&[("requirements-dev.txt", "pytest==8\n")], &["requirements-dev.txt: python3 -m pytest"]);
    check(&[("tox.ini", "[testenv]\ncommands = pytest\n")], &["tox.ini: tox"]);
    check(&[("tox.ini", "[tox]\n[pytest]\n")], &["tox.ini: python3 -m pytest, tox"]);
    check(&[("pyproject.toml", &with("[tool.tox]\n"))], &["pyproject.toml: tox"]);
    check(&[("setup.cfg", "[tox:tox]\n")], &["setup.cfg: tox"]);
    check(
        &[("pyproject.toml", pyproject), ("tests/", "")],
        &["pyproject.toml: python3 -m unittest discover -s tests"],
    );
    check(&[("setup.py", ""), ("test/", "")], &["setup.py: python3 -m unittest discover -s test"]);
    check(&[("test_x.py", ""), ("x.py", "")], &["test_x.py: python3 -m unittest"]);
    check(&[("pyproject.toml", pyproject)], &["pyproject.toml: no tests were found"]);
    check(&[("x.py", ""), ("tests/", "")], &[]);
}

#[test]
fn plain_python_uses_the_style_of_its_tests() {
    let unittest = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): pass\n";
    let function = "from x import y\n\ndef test_it():\n    assert y()\n";
    let fixture = "import unittest\nimport pytest\n";
    let folder = |test: &str, expected: &str| {
        let files = [("x.py", ""), ("tests/", ""), ("tests/test_x.py", test)];
        check(&files, &[&format!("tests/test_x.py: {expected}")]);
    };
    folder(unittest, "python3 -m unittest discover -s tests");
    folder(function, "python3 -m pytest");
    folder(fixture, "python3 -m pytest");
    folder("", "python3 -m unittest discover -s tests");
    check(&[("test_x.py", unittest)], &["test_x.py: python3 -m unittest"]);
    check(&[("test_x.py", function)], &["test_x.py: python3 -m pytest"]);
    check(
        &[("test/", ""), ("test/test_x.py", unittest)],
        &["test/test_x.py: python3 -m unittest discover -s test"],
    );
    check(
        &[("setup.py", ""), ("tests/", ""), ("tests/test_x.py", function)],
        &["setup.py: python3 -m pytest"],
    );
    check(&[("src/", ""), ("src/test_x.py", function), ("tests/", ""), ("tests/x.py", "")], &[]);
}

#[test]
fn first_tool_with_a_check_is_used() {
    let files = [
        ("package.json", "{}"),
        ("Makefile", "test:\nlint:\n"),
        ("pyproject.toml", "pytest"),
        (".git/", ""),
    ];
    let found = Detected::of(&listing(&files));
    assert_eq!(found.check().map(|check| check.line), Some("make test"));
    let checks: Vec<(&str, &str)> =
        found.checks().map(|(file, check)| (file, check.line)).collect();
    assert_eq!(checks, [("Makefile", "make test"), ("pyproject.toml", "python3 -m pytest")]);
    let rules = [
        "Bash(make test:*)",
        "Bash(make lint:*)",
        "Bash(python3 -m pytest:*)",
        "Bash(git status:*)",
        "Bash(git diff:*)",
        "Bash(git log:*)",
    ];
    assert_eq!(found.rules(), rules);
    // One that tests comes before one that only lints or builds.
    let lint = ("package.json", r#"{"scripts": {"lint": "eslint ."}}"#);
    check(
        &[lint, ("Makefile", "build:\n"), ("pytest.ini", "")],
        &["pytest.ini: python3 -m pytest", "package.json: npm run lint", "Makefile: make build"],
    );
    let found = Detected::of(&listing(&[("Cargo.toml", "[workspace]"), ("tests/", "")]));
    assert_eq!(found.rules(), ["Bash(cargo test:*)", "Bash(cargo build:*)"]);
}
