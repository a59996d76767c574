//! Workflows by name: their kinds, the names of their runs, and the workflow that the user may have
//! meant after a typo.
//!
//! This module only looks at names on disk. Finding the states of a workflow is in
//! `raymond_engine::scope`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use raymond_core::crayfish::reading;
use raymond_core::extension::is_state;

use crate::path_text::below_here;

/// Most names of a folder that are searched, so that a typo in a huge folder is reported quickly.
const MOST_NAMES: usize = 1_000;

/// Most bytes of a file that is parsed only to suggest it: 1 MiB.
const MAX_BYTES_SEARCHED: u64 = 1 << 20;

/// Most names that a hint lists, so that they fit on a screen.
const MOST_LISTED: usize = 10;

/// The folder in which a project keeps its workflows.
const FOLDER: &str = "workflows";

/// Finds a workflow by its bare name: `change` means `workflows/change` here or in the project.
pub(crate) fn named(name: &Path, project: &Path) -> Option<PathBuf> {
    let is_bare = name.components().count() == 1 && !name.exists();
    let names = ["", ".zip", ".json"].map(|ending| format!("{}{ending}", name.display()));
    let folders = [PathBuf::from(FOLDER), project.join(FOLDER)];
    let paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    let mut found = paths.filter(|path| path.exists());
    if is_bare { found.next() } else { None }
}

/// Finds what the user may have meant by a workflow that does not exist here: a path from the
/// project's directory, or a mistyped name of a workflow of the project.
pub(crate) fn meant_in(project: &Path, workflow: &Path) -> Option<String> {
    if workflow.exists() {
        return None;
    }
    let from_project = project.join(workflow);
    if from_project.exists() {
        return Some(from_project.display().to_string());
    }
    let names = here(project);
    let is_bare = workflow.components().count() == 1;
    let wanted = workflow.to_str().filter(|name| is_bare && !name.starts_with('.'))?;
    raymond_core::text::nearest(wanted, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Lists the workflows here, in `workflows/` and in that folder of the project, by the names that
/// `run` accepts.
pub(crate) fn here(project: &Path) -> Vec<String> {
    let mut found: Vec<String> = workflows_in(Path::new(".")).collect();
    for folder in [PathBuf::from(FOLDER), project.join(FOLDER)] {
        found.extend(workflows_in(&folder));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Lists the workflows of a folder that has no state of its own, at most [`MOST_LISTED`].
pub(crate) fn of_folder(folder: &Path) -> Vec<String> {
    if !folder.is_dir() || !states(folder).is_empty() {
        return Vec::new();
    }
    let paths = workflows_in(folder).map(|name| folder.join(name));
    // `run` already advises about documents of steps.
    let paths = paths.filter(|path| !is_document(path)).map(|path| path.display().to_string());
    let mut found: Vec<String> = paths.collect();
    found.sort_unstable();
    found.truncate(MOST_LISTED);
    found
}

/// Lists the directories with an entry state, the archives and the documents of steps in a folder.
fn workflows_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_NAMES);
    entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let archive = path.extension().is_some_and(|extension| extension == "zip");
        let is_workflow = if path.is_dir() {
            has_entry(&path)
        } else {
            archive || is_document(&path) && has_steps(&path)
        };
        let name = path.file_name()?.to_str()?.to_owned();
        (is_workflow && !name.starts_with('.')).then_some(name)
    })
}

/// Whether a folder has an entry state.
pub(crate) fn has_entry(folder: &Path) -> bool {
    states(folder).iter().any(|state| matches!(stem(state), "START" | "1_START"))
}

/// Returns the names of the states in a folder, sorted.
fn states(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_NAMES);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut states: Vec<String> =
        names.filter(|name| !name.starts_with('.') && is_state(name)).collect();
    states.sort_unstable();
    states
}

fn stem(state: &str) -> &str {
    state.rsplit_once('.').map_or(state, |(stem, _)| stem)
}

/// Says what the user may have meant by a workflow that does not exist.
pub(crate) fn missing_hint(path: &Path) -> String {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let states = match folder.as_os_str().is_empty() {
        // Many directories contain scripts and notes that are not states.
        true if !has_entry(Path::new(".")) => Vec::new(),
        true => states(Path::new(".")),
        false => states(folder),
    };
    let name = path.file_name().unwrap_or_default();
    let same_stem = states.iter().find(|state| OsStr::new(stem(state)) == name);
    match (same_stem, nearest(path)) {
        (Some(state), _) => {
            let meant = folder.join(state);
            format!("did you mean {}? {}", meant.display(), list_of_states(folder, &states))
        }
        (None, Some(nearest)) => format!("did you mean {}?", nearest.display()),
        (None, None) if states.is_empty() => {
            "a workflow is a folder of states; `raymond init` writes one".to_owned()
        }
        (None, None) => list_of_states(folder, &states),
    }
}

fn list_of_states(folder: &Path, states: &[String]) -> String {
    let listed = states.iter().take(MOST_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match states.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    if folder.as_os_str().is_empty() {
        let start = "`raymond run .` starts this workflow";
        return format!("the states here are {listed}{more}; {start}");
    }
    format!("the states of {} are {listed}{more}", folder.display())
}

/// Describes files beside a workflow that only the first Raymond, a Go program, reads.
pub(crate) fn unread_files(workflow: &Path, project: &Path) -> Vec<String> {
    let folder = if workflow.is_dir() { Some(workflow) } else { workflow.parent() };
    let manifests = ["workflow.yaml", "workflow.yml"].map(|name| folder.map(|at| at.join(name)));
    let manifest = manifests.into_iter().flatten().find(|path| path.is_file());
    let config = project.join(".raymond/config.toml");
    let config = config
        .is_file()
        .then(|| format!("{} is not read; put settings into raymond.toml", below_here(&config)));
    let manifest = manifest.map(|path| {
        format!("{} is not read; set limits in raymond.toml or by flags", path.display())
    });
    manifest.into_iter().chain(config).collect()
}

/// Returns the name of a workflow in the characters of an id: the name of its folder, archive or
/// document. For a folder called `workflow` it is the name of the parent, which says more.
pub(crate) fn name(absolute: &Path) -> String {
    let archive = absolute.extension().is_some_and(|extension| extension == "zip");
    let name = match (absolute.is_dir(), archive || is_document(absolute)) {
        (true, _) => telling(absolute),
        (false, true) => absolute.file_stem(),
        (false, false) => absolute.parent().and_then(telling),
    };
    plain(&name.unwrap_or_default().to_string_lossy())
}

/// Returns the name of a loop over one prompt.
pub(crate) fn loop_name(absolute: &Path) -> String {
    plain(&format!("ralph-{}", absolute.file_stem().unwrap_or_default().to_string_lossy()))
}

fn plain(name: &str) -> String {
    let dashed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(dashed).collect();
    let name = name.trim_matches('-');
    // At most 40 characters, so that ids stay readable in tables.
    let name = if name.is_empty() { "run" } else { &name[..name.len().min(40)] };
    name.to_owned()
}

fn telling(folder: &Path) -> Option<&OsStr> {
    let parent = || folder.parent().and_then(Path::file_name);
    let own = folder.file_name();
    if own.is_some_and(|own| own == "workflow") { parent().or(own) } else { own }
}

/// Whether a path names a document of steps.
pub(crate) fn is_document(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json")) && !path.is_dir()
}

/// Finds the workflow beside `path` with the most similar name.
pub(crate) fn nearest(path: &Path) -> Option<PathBuf> {
    nearest_of(path, may_be_one)
}

/// Finds the prompt beside `path` with the most similar name.
pub(crate) fn nearest_prompt(path: &Path) -> Option<PathBuf> {
    nearest_of(path, |name, path| is_prompt(name) && path.is_file())
}

/// Finds the file beside `path` with the most similar name.
pub(crate) fn nearest_file(path: &Path) -> Option<PathBuf> {
    nearest_of(path, |name, path| !name.starts_with('.') && path.is_file())
}

/// Finds the document of steps beside `path` with the most similar name.
pub(crate) fn nearest_document(path: &Path) -> Option<PathBuf> {
    nearest_of(path, |name, path| !name.starts_with('.') && is_document(path))
}

/// Finds the document of steps in a folder without states: `flow.json`, or the only document in it.
pub(crate) fn document_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.take(MOST_NAMES).filter_map(Result::ok);
    let paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if paths.iter().any(|path| is_state(&name(path)) && path.is_file()) {
        return None;
    }
    let flow = folder.join("flow.json");
    if flow.is_file() {
        return Some(flow);
    }
    let documents = paths.into_iter().filter(|path| is_document(path) && has_steps(path));
    // Two are enough to know that there is not only one.
    let documents: Vec<PathBuf> = documents.take(2).collect();
    match documents.as_slice() {
        [only] => Some(folder.join(name(only))),
        _ => None,
    }
}

/// Whether a small JSON file looks like a document of steps.
fn has_steps(path: &Path) -> bool {
    let is_small = path.metadata().is_ok_and(|found| found.len() <= MAX_BYTES_SEARCHED);
    let text = is_small.then(|| std::fs::read(path).ok()).flatten();
    let json = text.and_then(|text| reading::read(&text).ok());
    json.is_some_and(|json| json.get("steps").is_some_and(serde_json::Value::is_array))
}

/// Whether a file of this name may be a prompt.
pub(crate) fn is_prompt(name: &str) -> bool {
    let extension = Path::new(name).extension();
    !name.starts_with('.') && is_state(name) && extension.is_some_and(|extension| extension == "md")
}

fn nearest_of(path: &Path, may_be_meant: fn(&str, &Path) -> bool) -> Option<PathBuf> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(here).ok()?.take(MOST_NAMES).filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        may_be_meant(&name, &entry.path()).then_some(name)
    });
    let names: Vec<String> = names.collect();
    let wanted = path.file_name()?.to_str()?;
    let found = raymond_core::text::nearest(wanted, names.iter().map(String::as_str))?;
    Some(folder.join(found))
}

fn may_be_one(name: &str, path: &Path) -> bool {
    let archive = path.extension().is_some_and(|extension| extension == "zip");
    !name.starts_with('.') && (path.is_dir() || archive || is_state(name) || is_document(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflow_gets_its_most_specific_name() {
        let top = tempfile::tempdir().unwrap();
        let check = |path: &str, expected: &str| {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            assert_eq!(name(&path), expected, "{}", path.display());
            let folder = path.parent().unwrap();
            if path.extension().is_some_and(|extension| extension == "md") {
                assert_eq!(name(folder), expected, "{}", folder.display());
            }
        };
        check("flows/Fix It!/START.md", "fix-it");
        check("examples/title/workflow/START.md", "title");
        check("workflow/workflow/START.md", "workflow");
        check("flows/my-workflow/START.md", "my-workflow");
        check("flows/review.zip", "review");
        check("flows/daily digest.json", "daily-digest");
        check("---/START.md", "run");
    }

    /// Creates these files in a new directory.
    fn directory(files: &[&str]) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for name in files {
            let path = top.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, r#"{"steps":[]}"#).unwrap();
        }
        top
    }

    #[test]
    fn bare_name_finds_a_workflow_of_the_project() {
        let top = directory(&["workflows/change/START.md", "workflows/flow.json"]);
        let check = |name: &str, expected: Option<&str>| {
            let expected = expected.map(|path| top.path().join(path));
            assert_eq!(named(Path::new(name), top.path()), expected, "{name}");
        };
        check("change", Some("workflows/change"));
        check("flow", Some("workflows/flow.json"));
        check("flow.json", Some("workflows/flow.json"));
        check("./change", None);
        check("a/change", None);
        check("other", None);
    }

    #[test]
    fn listed_workflows_can_be_started_by_name() {
        let files = [
            "workflows/b/START.md",
            "workflows/a.json",
            "workflows/notes/IDEA.md",
            "workflows/x.txt",
        ];
        let top = directory(&files);
        assert_eq!(here(top.path()), ["a.json", "b"]);
    }

    #[test]
    fn missing_state_names_the_states_beside_it() {
        let top = directory(&["wf/START.md", "wf/FIX.sh", "wf/notes.txt"]);
        let check = |name: &str, expected: &str| {
            let hint = missing_hint(&top.path().join(name));
            assert_eq!(hint.replace(&format!("{}/", top.path().display()), ""), expected, "{name}");
        };
        check("wf/START", "did you mean wf/START.md? the states of wf are FIX.sh, START.md");
        check("wf/FIXX.sh", "did you mean wf/FIX.sh?");
        check("wf/REVIEW", "the states of wf are FIX.sh, START.md");
        check("fw", "did you mean wf?");
        check("nothing", "a workflow is a folder of states; `raymond init` writes one");
    }

    #[test]
    fn a_document_is_a_json_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("folder.json")).unwrap();
        let check = |name: &str, expected: bool| {
            assert_eq!(is_document(&directory.path().join(name)), expected, "{name}");
        };
        check("flow.json", true);
        check("FLOW.JSON", true);
        check("folder.json", false);
        check("flow.json5", false);
        check("json", false);
    }

    #[test]
    fn folder_without_states_suggests_its_document() {
        let check = |files: &[(&str, &str)], expected: Option<&str>| {
            let top = tempfile::tempdir().unwrap();
            for (name, text) in files {
                std::fs::write(top.path().join(name), text).unwrap();
            }
            let expected = expected.map(|name| top.path().join(name));
            assert_eq!(document_in(top.path()), expected, "{files:?}");
        };
        let steps = r#"{"steps":[]}"#;
        check(&[], None);
        check(&[("flow.json", "{"), ("other.json", steps)], Some("flow.json"));
        check(
            &[("daily.json", steps), ("package.json", "{}"), ("x.json", "[")],
            Some("daily.json"),
        );
        check(&[("a.json", steps), ("b.json", steps)], None);
        check(&[("package.json", "{}")], None);
        check(&[("flow.json", steps), ("README.md", "")], Some("flow.json"));
        check(&[("flow.json", steps), ("OTHER.md", "")], None);
    }
}
