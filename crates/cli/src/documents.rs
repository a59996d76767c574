//! Reads documents of steps (`.json`) from files and reports each mistake with its line.
//!
//! The rules of documents are in `raymond_core::crayfish`, which knows JSON pointers but no lines.
//! This module finds the lines, opens the schema directories, and compares a document with the
//! pinned one when a run resumes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use raymond_backends::workspace::{Workspace, WorkspaceError};
use raymond_core::crayfish::{Document, Problem, ProblemCode, reading, validate};
use raymond_core::diagnostic::{Diagnostic, LocationFinder, Place};
use raymond_core::ids::AgentId;
use raymond_core::run::{Ending, Phase, Run, Settings};
use raymond_core::text::nearest;
use raymond_core::view::States;
use raymond_core::workflow::Definition;
use raymond_engine::pin::Pin;
use raymond_engine::prepare::{Prepared, steps};
use raymond_engine::project::Project;
use serde_json::{Map, Value};

use crate::failure::{Failure, print_diagnostic};
use crate::settings;

/// Most bytes of a document or a request: 64 MiB, as `raymond crayfish --help` documents.
pub(crate) const MAX_BYTES: u64 = 64 << 20;

/// Returns the name of a document for messages; `-` is stdin.
pub(crate) fn name(path: &Path) -> String {
    let name = path.display().to_string();
    if name == "-" { "<stdin>".to_owned() } else { name }
}

/// The text of a document and its parsed JSON.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    /// The name for messages.
    name: String,
    text: String,
    json: Value,
}

/// A document that cannot be used.
#[derive(Debug)]
pub(crate) enum DocumentError {
    /// The file cannot be read, or is too large.
    Unread { failure: Failure, code: ProblemCode },
    /// The document has mistakes.
    Wrong { name: String, mistakes: Vec<Mistake> },
}

/// A mistake and its position in the text.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) problem: Problem,
    pub(crate) place: Place,
}

impl Mistake {
    /// Converts the mistake to a diagnostic that names the line and the column.
    fn into_diagnostic(self, severity: fn(&'static str, String) -> Diagnostic) -> Diagnostic {
        let diagnostic = severity(self.problem.code.as_str(), self.problem.to_string());
        Diagnostic { place: Some(self.place), ..diagnostic }
    }

    /// Converts the mistake to a warning.
    pub(crate) fn into_warning(self) -> Diagnostic {
        self.into_diagnostic(Diagnostic::warning)
    }

    /// Prints the mistake as a warning.
    pub(crate) fn warn(self, file: &str) {
        print_diagnostic(&self.into_warning().in_file(file));
    }
}

impl From<DocumentError> for Failure {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Unread { failure, .. } => failure,
            DocumentError::Wrong { name, mistakes } => {
                let diagnostic =
                    |mistake: Mistake| mistake.into_diagnostic(Diagnostic::error).in_file(&*name);
                let count = mistakes.iter().map(|mistake| mistake.problem.count).sum();
                let diagnostics = mistakes.into_iter().map(diagnostic).collect();
                Self::with_mistakes("the document", count, diagnostics)
            }
        }
    }
}

impl DocumentFile {
    /// Reads a document; `-` is stdin. Invalid JSON is a mistake with a position.
    pub(crate) fn read(path: &Path) -> Result<Self, DocumentError> {
        let name = name(path);
        let bytes = read_file(path).map_err(|error| {
            // `read_limited` can return only an `io::Error`, so its text marks the limit.
            let is_large = error.to_string() == too_large();
            let code = if is_large { ProblemCode::TooLarge } else { ProblemCode::Unreadable };
            DocumentError::Unread { failure: unreadable(path, &name, &error), code }
        })?;
        match reading::read(&bytes) {
            // Strict JSON is UTF-8, so nothing is replaced here.
            Ok(json) => Ok(Self { name, text: String::from_utf8_lossy(&bytes).into(), json }),
            Err(why) => {
                let place = Place::of(&String::from_utf8_lossy(&bytes), why.offset..why.offset);
                let problem = Problem::new(why.pointer, why.reason.code(), why.reason.to_string());
                Err(DocumentError::Wrong { name, mistakes: vec![Mistake { problem, place }] })
            }
        }
    }

    /// Parses the document without resolving its schemas.
    pub(crate) fn parse(&self) -> Result<Document, DocumentError> {
        Document::parse(&self.json).map_err(|problems| self.document_error(problems))
    }

    /// Prepares the document for a run, with its variables and schemas.
    pub(crate) fn prepare(
        &self,
        path: &Path,
        vars: &Map<String, Value>,
        schema_dirs: &SchemaDirs,
    ) -> Result<Prepared, DocumentError> {
        let parse = |bytes: &[u8]| reading::read(bytes).map_err(|why| why.to_string());
        let files = schema_dirs.workspace.schema_files(&schema_dirs.directories, parse);
        let files = files.map_err(|faults| {
            let diagnostic = |(_, fault): (usize, WorkspaceError)| {
                Problem::new("", steps::path_problem_code(&fault.why), fault.to_string())
            };
            self.document_error(faults.into_iter().map(diagnostic).collect())
        })?;
        steps::prepare(&self.json, vars, path, &steps::WorkspaceSchemas(files))
            .map_err(|problems| self.document_error(problems))
    }

    /// Returns mistakes that do not prevent a run.
    pub(crate) fn warnings(&self) -> Vec<Mistake> {
        self.locate(validate::doubts(&self.json))
    }

    /// Returns a mistake for each variable that the document neither declares nor uses.
    pub(crate) fn unused_variables(&self, vars: &Map<String, Value>) -> Vec<Diagnostic> {
        let known = validate::variables(&self.json);
        let mistake = |name: &str| {
            let message = format!("the document has no variable `{name}`");
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{name}` to `vars`, or use it as {{{{vars.{name}}}}}"),
            };
            Diagnostic::error("unused-variable", message).hint(hint)
        };
        vars.keys().map(String::as_str).filter(|name| !known.contains(name)).map(mistake).collect()
    }

    /// Returns a mistake for each `--var NAME=5` where the document has a number, and the same for
    /// truth values: the text `5` is not the number 5 for a condition.
    pub(crate) fn texts_for_values(&self, vars: &settings::DocumentVars) -> Vec<Diagnostic> {
        let mistake = |(name, text): (&String, &String)| {
            let kind = match (self.json.get("vars")?.get(name)?, reading::read_text(text).ok()?) {
                (Value::Number(_), Value::Number(_)) => "a number",
                (Value::Bool(_), Value::Bool(_)) => "true or false",
                _ => return None,
            };
            let message = format!("`{name}` is {kind} in the document, but the --var is a text");
            let hint = format!("--var {name}:={text}");
            Some(Diagnostic::error("wrong-type", message).hint(hint))
        };
        vars.typed.iter().filter_map(mistake).collect()
    }

    fn document_error(&self, problems: Vec<Problem>) -> DocumentError {
        DocumentError::Wrong { name: self.name.clone(), mistakes: self.locate(problems) }
    }

    /// Finds the positions of problems and sorts them by position.
    fn locate(&self, problems: Vec<Problem>) -> Vec<Mistake> {
        let pointers = problems.iter().map(|problem| problem.path.as_str());
        let places = places_of(&self.text, &reading::places(&self.text, pointers));
        let mistake = |(problem, place)| Mistake { problem, place };
        let mut mistakes: Vec<Mistake> = problems.into_iter().zip(places).map(mistake).collect();
        // "… and more problems" has no position of its own and belongs at the end.
        let is_count = |mistake: &Mistake| mistake.problem.code == ProblemCode::MoreProblems;
        mistakes.sort_by_key(|mistake| (is_count(mistake), mistake.place.span.start));
        mistakes
    }
}

/// Prepares the document of a run as it is on disk, with the variables and schemas of the run.
pub(crate) fn current(run: &Run, settings: &Settings) -> Result<Prepared, Failure> {
    let path = Path::new(&run.workflow);
    // The run recorded variables as typed, so they are parsed again as at the start.
    let vars = settings.vars.iter().map(|(name, value)| format!("{name}={value}"));
    let vars = settings::document_vars(&vars.collect::<Vec<_>>())?.values;
    let workspace = run.agents.get(&AgentId::main()).map_or("", |main| main.cwd.as_str());
    let schema_dirs = SchemaDirs::open(Path::new(workspace), &settings.start_flags.schema_paths)?;
    Ok(DocumentFile::read(path)?.prepare(path, &vars, &schema_dirs)?)
}

/// Compares the document on disk with the pinned one.
pub(crate) fn compare(run: &Run, pinned: &Definition) -> States {
    // A deleted document needs no choice: the pinned one contains everything.
    if !Path::new(&run.workflow).is_file() {
        return States::AsPinned;
    }
    match current(run, &run.settings) {
        Ok(current) if current.definition.steps == pinned.steps => States::AsPinned,
        Ok(_) => States::Edited,
        Err(_) => States::Unusable,
    }
}

/// Compares the document of a failed run with the pinned one. The user must choose between the two
/// before a resume; for all other runs the pinned one counts.
pub(crate) fn states(project: &Project, run: &Run) -> States {
    if run.phase != Phase::Ended(Ending::Failed) || run.program.is_answered_by_caller() {
        return States::AsPinned;
    }
    let blobs = project.blobs(&project.paths(&run.id));
    Pin::definition_of(run, &blobs).map_or(States::AsPinned, |pinned| compare(run, &pinned))
}

/// Returns the place of each byte offset.
///
/// All offsets are sorted and counted in one pass, because a large document with a thousand
/// mistakes must not be scanned a thousand times.
fn places_of(text: &str, bytes: &[usize]) -> Vec<Place> {
    let finder = LocationFinder::new(text);
    let mut order: Vec<usize> = (0..bytes.len()).collect();
    order.sort_by_key(|index| bytes[*index]);
    let mut places: Vec<(usize, Place)> =
        order.into_iter().map(|index| (index, finder.of(bytes[index]..bytes[index]))).collect();
    places.sort_by_key(|(index, _)| *index);
    places.into_iter().map(|(_, place)| place).collect()
}

/// The directories that are searched for schemas.
#[derive(Debug)]
pub(crate) struct SchemaDirs {
    workspace: Workspace,
    directories: Vec<String>,
}

impl SchemaDirs {
    /// Opens directories of a workspace; each must exist.
    pub(crate) fn open(workspace: &Path, directories: &[String]) -> Result<Self, Failure> {
        let opened =
            Workspace::open(workspace).map_err(|unopened| Failure::usage(unopened.to_string()))?;
        let rule = "use a path inside the workspace, relative to it";
        for directory in directories {
            let wrong = |why: String| {
                Failure::usage(format!("--schema-path {directory}: {why}")).hint(rule)
            };
            // A path that leaves the workspace is refused, even if the directory exists.
            if let Err(fault) = opened.check(directory) {
                return Err(wrong(fault.why.to_string()));
            }
            if !opened.path().join(directory).is_dir() {
                let place = opened.path().display();
                return Err(wrong(format!("{place} contains no such directory")));
            }
        }
        Ok(Self { workspace: opened, directories: directories.to_vec() })
    }
}

/// Reads everything, or fails if there are more than `MAX_BYTES`.
/// Reads a file that a user named; `-` is stdin.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        read_limited(io::stdin().lock())
    } else {
        File::open(path).and_then(read_limited)
    }
}

pub(crate) fn read_limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed distinguishes a file of exactly the limit from a larger one.
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(too_large()));
    }
    Ok(bytes)
}

/// `it is larger than 64 MiB`
pub(crate) fn too_large() -> String {
    format!("it is larger than {} MiB", MAX_BYTES >> 20)
}

fn unreadable(path: &Path, name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let failure = Failure::usage(format!("could not find {name}"));
            match crate::workflows::nearest_document(path) {
                Some(near) => failure.hint(format!("did you mean {}?", near.display())),
                None => failure.hint("`raymond run` lists the workflows here"),
            }
        }
        io::ErrorKind::IsADirectory => {
            let failure = Failure::usage(format!("{name} is a directory, not a document of steps"));
            match crate::workflows::document_in(path) {
                Some(document) => failure.hint(format!("did you mean {}?", document.display())),
                None => failure.hint("a document of steps is a .json file"),
            }
        }
        _ => Failure::usage(format!("could not read {name}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_one_by_one() {
        let text = "{\n \"é\": [1,\r\n2]}";
        let bytes = [14, 0, 3, 14, 9, text.len(), 99, 5];
        let one_by_one: Vec<Place> = bytes.iter().map(|at| Place::of(text, *at..*at)).collect();
        assert_eq!(places_of(text, &bytes), one_by_one);
        assert_eq!(places_of("", &[0]), [Place::of("", 0..0)]);
    }

    #[test]
    fn no_more_is_read_than_is_taken() {
        assert_eq!(read_limited(&b"text"[..]).unwrap(), b"text");
        let endless = io::repeat(b' ');
        assert_eq!(read_limited(endless).unwrap_err().to_string(), "it is larger than 64 MiB");
    }
}
