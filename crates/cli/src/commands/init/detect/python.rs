//! Detects Python projects: pytest if a file mentions it, then tox, then the style of the tests.

use std::path::Path;

use super::{DetectedCommand, DetectedOffer, DetectedTool, Listing};

const FILES: [&str; 5] = ["pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "setup.py"];

/// Test folders, each with its unittest command.
pub(super) const FOLDERS: [(&str, &str); 2] = [
    ("tests", "python3 -m unittest discover -s tests"),
    ("test", "python3 -m unittest discover -s test"),
];

/// Whether the file may declare the test tool or the dependencies.
pub(super) fn wants(name: &str) -> bool {
    says_how(name) || is_test(name)
}

fn says_how(name: &str) -> bool {
    FILES.contains(&name) || (name.starts_with("requirements") && has_extension(name, "txt"))
}

/// Whether it is a test file in the directory or in a test folder.
pub(super) fn is_test(path: &str) -> bool {
    let is_named = |name: &str| name.starts_with("test_") && has_extension(name, "py");
    match path.split_once('/') {
        None => is_named(path),
        Some((folder, name)) => FOLDERS.iter().any(|(known, _)| *known == folder) && is_named(name),
    }
}

pub(super) fn find(listing: &Listing) -> Option<DetectedTool> {
    let pytest = evidence_of_pytest(listing).map(|file| (file, pytest(listing)));
    let tox = evidence_of_tox(listing).map(|file| (file, DetectedCommand::tests("tox")));
    let declared: Vec<(&str, DetectedCommand)> = pytest.into_iter().chain(tox).collect();
    let (file, commands) = match declared.first() {
        Some((file, _)) => (*file, declared.into_iter().map(|(_, command)| command).collect()),
        None => (evidence_of_python(listing)?, as_written(listing).into_iter().collect()),
    };
    Some(DetectedTool::new(file, DetectedOffer::of(commands, "no tests were found")))
}

/// Returns the file that mentions pytest. A mention in `tox.ini` means tox.
fn evidence_of_pytest(listing: &Listing) -> Option<&str> {
    let configured = ["pytest.ini", "conftest.py"].into_iter().find(|file| listing.has(file));
    let says_so = |name: &str, text: &str| match name {
        // `tox.ini` often lists pytest as a dependency of an environment that only tox creates.
        "tox.ini" => text.contains("[pytest]"),
        _ => says_how(name) && text.contains("pytest"),
    };
    let mut texts = listing.texts.iter();
    let mentioned = texts.find(|(name, text)| says_so(name, text));
    configured.or_else(|| mentioned.map(|(name, _)| name.as_str()))
}

fn evidence_of_tox(listing: &Listing) -> Option<&str> {
    let says_so =
        |file: &str, section: &str| listing.text(file).is_some_and(|text| text.contains(section));
    if listing.has("tox.ini") {
        return Some("tox.ini");
    }
    let sections = [("pyproject.toml", "[tool.tox"), ("setup.cfg", "[tox:tox]")];
    sections.into_iter().find(|(file, section)| says_so(file, section)).map(|(file, _)| file)
}

fn evidence_of_python(listing: &Listing) -> Option<&str> {
    let declared = FILES.into_iter().find(|file| listing.has(file));
    declared.or_else(|| test_file(listing))
}

/// Returns the first test file; files of the directory itself come first.
fn test_file(listing: &Listing) -> Option<&str> {
    let tests = || listing.files.iter().map(String::as_str).filter(|name| is_test(name));
    tests().find(|name| !name.contains('/')).or_else(|| tests().next())
}

fn has_extension(name: &str, wanted: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == wanted)
}

/// Returns pytest in the environment that the project locks.
fn pytest(listing: &Listing) -> DetectedCommand {
    if listing.has("uv.lock") {
        DetectedCommand::tests("uv run pytest")
    } else if listing.has("poetry.lock") {
        DetectedCommand::tests("poetry run pytest")
    } else {
        DetectedCommand::tests("python3 -m pytest")
    }
}

/// Returns the command for the style of the tests, if no file declares a tool. unittest does not
/// find plain test functions, so they mean pytest.
fn as_written(listing: &Listing) -> Option<DetectedCommand> {
    let mut tests = listing.texts.iter().filter(|(name, _)| is_test(name)).map(|(_, text)| text);
    let for_pytest = |text: &String| {
        text.contains("import pytest")
            || (!text.contains("unittest")
                && text.lines().any(|line| line.starts_with("def test_")))
    };
    if tests.any(for_pytest) { Some(pytest(listing)) } else { unittest(listing) }
}

/// Returns the unittest command. Without a start folder, unittest would find only tests in
/// packages.
fn unittest(listing: &Listing) -> Option<DetectedCommand> {
    const PREFIX: &str = "python3 -m unittest";
    let folder = FOLDERS.into_iter().find(|(folder, _)| listing.folders.contains(*folder));
    match folder {
        Some((_, line)) => Some(DetectedCommand::tests(line).with_prefix(PREFIX)),
        None => test_file(listing).map(|_| DetectedCommand::tests(PREFIX)),
    }
}
