//! Documents of steps in files: read, checked as a whole, and with every mistake led to its line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use raymond_backends::workspace::{Fault, Workspace};
use raymond_core::crayfish::{Document, Problem, ProblemCode, reading, validate};
use raymond_core::diagnostic::{Diagnostic, Place};
use raymond_core::ids::AgentId;
use raymond_core::run::Run;
use raymond_core::workflow::Definition;
use raymond_engine::launch::Prepared;
use raymond_engine::steps;
use serde_json::{Map, Value};

use crate::failure::{Failure, print_diagnostic};
use crate::settings;

/// The most bytes of a document or a request: 64 MiB.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Whether a path names a document of steps.
pub(crate) fn is_document(path: &Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json")) && !path.is_dir()
}

/// How a person reads the name of a document; `-` is stdin.
pub(crate) fn name(path: &Path) -> String {
    let name = path.display().to_string();
    if name == "-" { "<stdin>".to_owned() } else { name }
}

/// A document as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// How a person named it.
    name: String,
    text: String,
    json: Value,
}

/// A document that cannot be used.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// There is nothing to be read, or too much.
    Unread {
        /// What is said of it.
        failure: Failure,
        /// The same as a code.
        code: ProblemCode,
    },
    /// It has mistakes.
    Wrong {
        /// How a person named it.
        name: String,
        /// All of them.
        mistakes: Vec<Mistake>,
    },
}

/// A mistake, and where it stands in the text.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) problem: Problem,
    pub(crate) place: Place,
}

impl Mistake {
    /// As a line that leads to its place in the file of this name.
    fn told(self, as_a: fn(&'static str, String) -> Diagnostic, file: &str) -> Diagnostic {
        let told = as_a(self.problem.code.as_str(), self.problem.to_string()).in_file(file);
        Diagnostic { place: Some(self.place), ..told }
    }

    /// Shows one that is only worth a look.
    pub(crate) fn warn(self, file: &str) {
        print_diagnostic(&self.told(Diagnostic::warning, file));
    }
}

impl From<Unfit> for Failure {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Unread { failure, .. } => failure,
            Unfit::Wrong { name, mistakes } => {
                let told = |mistake: Mistake| mistake.told(Diagnostic::error, &name);
                let count = mistakes.iter().map(|mistake| mistake.problem.tells()).sum();
                let diagnostics = mistakes.into_iter().map(told).collect();
                Self::mistaken("the document", count, diagnostics)
            }
        }
    }
}

impl Found {
    /// Reads a document; `-` is stdin. What is no JSON is a mistake with its place.
    pub(crate) fn read(path: &Path) -> Result<Self, Unfit> {
        let name = name(path);
        let bytes = if path == Path::new("-") {
            limited(io::stdin().lock())
        } else {
            File::open(path).and_then(limited)
        };
        let bytes = bytes.map_err(|error| {
            let is_large = error.to_string() == too_large();
            let code = if is_large { ProblemCode::TooLarge } else { ProblemCode::Unreadable };
            Unfit::Unread { failure: unreadable(path, &name, &error), code }
        })?;
        match reading::read(&bytes) {
            Ok(json) => Ok(Self { name, text: String::from_utf8_lossy(&bytes).into(), json }),
            Err(why) => {
                let place = Place::of(&String::from_utf8_lossy(&bytes), why.offset..why.offset);
                let problem = Problem::new(why.pointer, why.reason.flaw(), why.reason.to_string());
                Err(Unfit::Wrong { name, mistakes: vec![Mistake { problem, place }] })
            }
        }
    }

    /// What it means by itself, whatever the schemas are that it names.
    pub(crate) fn parse(&self) -> Result<Document, Unfit> {
        Document::parse(&self.json).map_err(|problems| self.unfit(problems))
    }

    /// What can be run: with its variables, and with all that its schemas name.
    pub(crate) fn prepare(
        &self,
        path: &Path,
        vars: &Map<String, Value>,
        shelf: &Shelf,
    ) -> Result<Prepared, Unfit> {
        let parse = |bytes: &[u8]| reading::read(bytes).map_err(|why| why.to_string());
        let files = shelf.workspace.schema_files(&shelf.directories, parse);
        let files = files.map_err(|faults| {
            let told = |(_, fault): (usize, Fault)| {
                Problem::new("", steps::path_problem_code(&fault.why), fault.to_string())
            };
            self.unfit(faults.into_iter().map(told).collect())
        })?;
        steps::prepare(&self.json, vars, path, &steps::WorkspaceSchemas(files))
            .map_err(|problems| self.unfit(problems))
    }

    /// What it says and hardly means.
    pub(crate) fn doubts(&self) -> Vec<Mistake> {
        self.placed(validate::doubts(&self.json))
    }

    fn unfit(&self, problems: Vec<Problem>) -> Unfit {
        Unfit::Wrong { name: self.name.clone(), mistakes: self.placed(problems) }
    }

    /// Problems, each at its line, as they stand in the text.
    fn placed(&self, problems: Vec<Problem>) -> Vec<Mistake> {
        let pointers = problems.iter().map(|problem| problem.path.as_str());
        let places = counted(&self.text, &reading::places(&self.text, pointers));
        let mistake = |(problem, place)| Mistake { problem, place };
        let mut mistakes: Vec<Mistake> = problems.into_iter().zip(places).map(mistake).collect();
        let counts = |mistake: &Mistake| mistake.problem.code == ProblemCode::MoreProblems;
        mistakes.sort_by_key(|mistake| (counts(mistake), mistake.place.span.start));
        mistakes
    }
}

/// What became of the document of a run, if it is not what was pinned.
pub(crate) fn change(run: &Run, pinned: &Definition) -> Option<&'static str> {
    let path = Path::new(&run.workflow);
    if !path.is_file() {
        return None;
    }
    let current = || -> Result<Prepared, Failure> {
        let vars = run.settings.vars.iter().map(|(name, value)| format!("{name}={value}"));
        let vars = settings::document_vars(&vars.collect::<Vec<_>>())?.values;
        let workspace = run.agents.get(&AgentId::main()).map_or("", |main| main.cwd.as_str());
        let shelf = Shelf::open(Path::new(workspace), &run.settings.start_flags.schema_paths)?;
        Ok(Found::read(path)?.prepare(path, &vars, &shelf)?)
    };
    match current() {
        Ok(current) if current.definition.work == pinned.work => None,
        Ok(_) => Some("has changed since"),
        Err(_) => Some("cannot be run any more as it is now"),
    }
}

/// The places of these bytes. Lines and columns are counted once, however many there are: a large
/// document with a thousand mistakes must not be read a thousand times.
fn counted(text: &str, bytes: &[usize]) -> Vec<Place> {
    let mut order: Vec<usize> = (0..bytes.len()).collect();
    order.sort_by_key(|index| bytes[*index]);
    let mut places = vec![Place { line: 1, column: 1, span: 0..0 }; bytes.len()];
    let (mut line, mut column, mut seen) = (1, 1, 0);
    for index in order {
        let at = text.floor_char_boundary(bytes[index]);
        for character in text[seen..at].chars() {
            (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        seen = at;
        places[index] = Place { line, column, span: at..at };
    }
    places
}

/// Where schemas are looked for.
#[derive(Debug)]
pub(crate) struct Shelf {
    workspace: Workspace,
    directories: Vec<String>,
}

impl Shelf {
    /// Directories of a workspace; each has to be there.
    pub(crate) fn open(workspace: &Path, directories: &[String]) -> Result<Self, Failure> {
        let opened =
            Workspace::open(workspace).map_err(|unopened| Failure::usage(unopened.to_string()))?;
        let rule = "a path is relative to the workspace, and does not lead out of it";
        for directory in directories {
            let wrong = |why: String| {
                Failure::usage(format!("--schema-path {directory}: {why}")).hint(rule)
            };
            if let Err(fault) = opened.check(directory) {
                return Err(wrong(fault.why.to_string()));
            }
            if !opened.path().join(directory).is_dir() {
                let place = opened.path().display();
                return Err(wrong(format!("there is no such directory in {place}")));
            }
        }
        Ok(Self { workspace: opened, directories: directories.to_vec() })
    }
}

/// All that there is, up to one byte more than is read.
pub(crate) fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(too_large()));
    }
    Ok(bytes)
}

/// `it is larger than 64 MiB`
pub(crate) fn too_large() -> String {
    format!("it is larger than {} MiB", LARGEST >> 20)
}

fn unreadable(path: &Path, name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let failure = Failure::usage(format!("there is no {name}"));
            match crate::workflows::nearest_document(path) {
                Some(near) => failure.hint(format!("did you mean {}?", near.display())),
                None => failure,
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
        let one_by_one: Vec<Place> = bytes
            .iter()
            .map(|at| {
                let at = text.floor_char_boundary(*at);
                Place::of(text, at..at)
            })
            .collect();
        assert_eq!(counted(text, &bytes), one_by_one);
        assert_eq!(counted("", &[0]), [Place { line: 1, column: 1, span: 0..0 }]);
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
    fn no_more_is_read_than_is_taken() {
        assert_eq!(limited(&b"text"[..]).unwrap(), b"text");
        let endless = io::repeat(b' ');
        assert_eq!(limited(endless).unwrap_err().to_string(), "it is larger than 64 MiB");
    }
}
