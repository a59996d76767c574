//! A document of steps that can be run: checked as a whole, and pinned with every schema that it names.

use std::path::Path;

use raymond_backends::workspace::{Fault, Why};
use raymond_core::crayfish::{Document, Flaw, Problem, reading, validate};
use raymond_core::diagnostic::Diagnostic;
use raymond_core::workflow::definition::steps::{FILE, pinned};
use raymond_core::workflow::{Definition, SourceFile, Start};
use raymond_schema::{Library, NoLibrary};
use serde_json::{Map, Value};

use crate::launch::{PrepareError, Prepared};
use crate::pin::PLATFORM;
use crate::schemas::{Schemas, faults};
use crate::scope::{Loaded, Origin, unreadable};

/// Checks a document; all that is wrong is told, with its place.
pub fn prepare(
    document: &Value,
    vars: &Map<String, Value>,
    (scope, library): (&Path, &dyn Library),
) -> Result<Prepared, Vec<Problem>> {
    let parsed = Document::parse(document).map_err(|mut problems| {
        // Whoever mends the document mends its schemas in the same breath.
        let schemas = validate::schemas(document).into_iter();
        problems.extend(schemas.flat_map(|(at, source)| faults(source, (&at, library))));
        problems
    })?;
    let schemas = Schemas::compile(&parsed, library)?;
    let text = pinned(&schemas.within(document, &parsed), &parsed.vars_with(vars));
    let file =
        SourceFile { name: FILE.to_owned(), bytes: text.into_bytes().into(), executable: false };
    let loaded = Loaded {
        scope: scope.to_owned(),
        start: Start::Steps,
        files: vec![file],
        origin: Origin::Directory,
        warnings: Vec::new(),
    };
    let found = Definition::parse(loaded.files.clone(), &Start::Steps, PLATFORM);
    let broken = |found: Vec<Diagnostic>| {
        let told = |found: Diagnostic| Problem::new("", Flaw::Internal, found.message);
        found.into_iter().map(told).collect::<Vec<_>>()
    };
    let definition = found.map_err(broken)?.definition;
    Ok(Prepared { loaded, definition, warnings: Vec::new() })
}

/// The code of a path that cannot be used.
pub fn flaw_of_path(why: &Why) -> Flaw {
    match why {
        Why::Escapes => Flaw::EscapingPath,
        Why::Missing | Why::NotAFile | Why::Unreadable(_) => Flaw::Unreadable,
        Why::TooLarge { .. } => Flaw::TooLarge,
    }
}

/// The code of a file that a step cannot read or write.
pub(crate) fn flaw_of_file(fault: &Fault) -> Flaw {
    match &fault.why {
        Why::Missing if fault.path.is_empty() => Flaw::EscapingPath,
        Why::Missing => Flaw::MissingFile,
        why @ (Why::Escapes | Why::NotAFile | Why::Unreadable(_) | Why::TooLarge { .. }) => {
            flaw_of_path(why)
        }
    }
}

/// Loads the document in a file.
pub fn load(path: &Path) -> Result<Prepared, PrepareError> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    let invalid = |problems: Vec<Problem>| {
        let told = |problem: Problem| Diagnostic::error(problem.code.as_str(), problem.to_string());
        PrepareError::Invalid(problems.into_iter().map(told).collect())
    };
    let document = reading::read(&bytes).map_err(|why| invalid(vec![why.into()]))?;
    prepare(&document, &Map::new(), (path, &NoLibrary)).map_err(invalid)
}
