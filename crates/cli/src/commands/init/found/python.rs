//! Python: pytest where anything mentions it, then tox, then the tests of the standard library.

use std::path::Path;

use super::{Command, Listing, Offer, Tool};

const FILES: [&str; 5] = ["pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "setup.py"];

/// Whether the file may say how the project is tested, or list what it depends on.
pub(super) fn wants(name: &str) -> bool {
    FILES.contains(&name) || (name.starts_with("requirements") && has_extension(name, "txt"))
}

pub(super) fn find(listing: &Listing) -> Option<Tool> {
    let pytest = evidence_of_pytest(listing).map(|file| (file, pytest(listing)));
    let tox = evidence_of_tox(listing).map(|file| (file, Command::tests("tox")));
    let declared: Vec<(&str, Command)> = pytest.into_iter().chain(tox).collect();
    let (file, commands) = match declared.first() {
        Some((file, _)) => (*file, declared.into_iter().map(|(_, command)| command).collect()),
        None => (evidence_of_python(listing)?, unittest(listing).into_iter().collect()),
    };
    Some(Tool::new(file, Offer::of(commands, "no tests were found")))
}

/// The file that says that pytest is used. In `tox.ini`, a mention is a matter of tox.
fn evidence_of_pytest(listing: &Listing) -> Option<&str> {
    let configured = ["pytest.ini", "conftest.py"].into_iter().find(|file| listing.has(file));
    let says_so = |name: &str, text: &str| match name {
        "tox.ini" => text.contains("[pytest]"),
        _ => wants(name) && text.contains("pytest"),
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

/// A file of tests that lies in the directory itself.
fn test_file(listing: &Listing) -> Option<&str> {
    let mut names = listing.files.iter().map(String::as_str);
    names.find(|name| name.starts_with("test_") && has_extension(name, "py"))
}

fn has_extension(name: &str, wanted: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == wanted)
}

/// In the environment that the project locks.
fn pytest(listing: &Listing) -> Command {
    if listing.has("uv.lock") {
        Command::tests("uv run pytest")
    } else if listing.has("poetry.lock") {
        Command::tests("poetry run pytest")
    } else {
        Command::tests("python3 -m pytest")
    }
}

/// Without a folder to start from, only tests in packages would be found.
fn unittest(listing: &Listing) -> Option<Command> {
    const PREFIX: &str = "python3 -m unittest";
    if listing.folders.contains("tests") {
        Some(Command::tests("python3 -m unittest discover -s tests").with_prefix(PREFIX))
    } else if listing.folders.contains("test") {
        Some(Command::tests("python3 -m unittest discover -s test").with_prefix(PREFIX))
    } else {
        test_file(listing).map(|_| Command::tests(PREFIX))
    }
}
