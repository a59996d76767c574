//! Prepares a document of steps: checks all of it, and pins it with every schema that it refers to.
//!
//! Parsing and validation are in `raymond_core::crayfish`. This module adds the schemas, which come
//! from files, and turns the document into a definition that a run can use.

use std::collections::BTreeSet;
use std::path::Path;

use raymond_backends::workspace::{SchemaFiles, WorkspaceError, WorkspaceErrorKind};
use raymond_core::crayfish::{Document, Problem, ProblemCode, reading, validate};
use raymond_core::diagnostic::Diagnostic;
use raymond_core::workflow::definition::steps::{FILE, pinned};
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use raymond_schema::{Library, NoLibrary};
use serde_json::{Map, Value};

use super::{PrepareError, Prepared};
use crate::pin::PLATFORM;
use crate::schemas::{bundle, schema_problems};
use crate::scope::{LoadedScope, ScopeOrigin, unreadable};

/// Schemas in directories of a workspace.
#[derive(Debug)]
pub struct WorkspaceSchemas<'a>(pub SchemaFiles<'a>);

impl Library for WorkspaceSchemas<'_> {
    fn find(&self, name: &str) -> Result<Option<Value>, String> {
        self.0.find(name)
    }

    fn places(&self) -> Option<String> {
        Some(self.0.display_directories())
    }
}

/// Checks a document, or returns all its problems with their places.
pub fn prepare(
    document: &Value,
    vars: &Map<String, Value>,
    scope: &Path,
    library: &dyn Library,
) -> Result<Prepared, Vec<Problem>> {
    let parsed = Document::parse(document).map_err(|mut problems| {
        // The user fixes the document and its schemas together, so both are reported. A schema that
        // already has a problem is not reported twice.
        let reported: BTreeSet<String> =
            problems.iter().map(|problem| problem.path.clone()).collect();
        let unreported =
            validate::schemas(document).into_iter().filter(|(at, _)| !reported.contains(at));
        problems.extend(unreported.flat_map(|(at, source)| schema_problems(source, &at, library)));
        validate::in_order(problems)
    })?;
    // Pinned with its schemas: a resume must not depend on files that may have changed.
    let text = pinned(&bundle(document, &parsed, library)?, &parsed.vars_with(vars));
    let file =
        SourceFile { name: FILE.to_owned(), bytes: text.into_bytes().into(), executable: false };
    let loaded = LoadedScope {
        scope: scope.to_owned(),
        start: EntryPoint::Steps,
        files: vec![file],
        origin: ScopeOrigin::Directory,
        warnings: Vec::new(),
    };
    // The document was checked above, so a mistake here is a bug in Raymond.
    let found = Definition::parse(loaded.files.clone(), &EntryPoint::Steps, PLATFORM);
    let broken = |found: Vec<Diagnostic>| {
        let problem = |found: Diagnostic| Problem::new("", ProblemCode::Internal, found.message);
        found.into_iter().map(problem).collect::<Vec<_>>()
    };
    let definition = found.map_err(broken)?.definition;
    Ok(Prepared { loaded, definition, warnings: Vec::new() })
}

/// Returns the code of a path that cannot be used.
pub fn path_problem_code(why: &WorkspaceErrorKind) -> ProblemCode {
    match why {
        WorkspaceErrorKind::Escapes => ProblemCode::EscapingPath,
        WorkspaceErrorKind::Missing
        | WorkspaceErrorKind::NotAFile
        | WorkspaceErrorKind::Unreadable(_) => ProblemCode::Unreadable,
        WorkspaceErrorKind::TooLarge { .. } => ProblemCode::TooLarge,
    }
}

/// Returns the code of a file that a step cannot read or write.
pub(crate) fn file_problem_code(fault: &WorkspaceError) -> ProblemCode {
    match &fault.why {
        WorkspaceErrorKind::Missing if fault.path.is_empty() => ProblemCode::EscapingPath,
        WorkspaceErrorKind::Missing => ProblemCode::MissingFile,
        why @ (WorkspaceErrorKind::Escapes
        | WorkspaceErrorKind::NotAFile
        | WorkspaceErrorKind::Unreadable(_)
        | WorkspaceErrorKind::TooLarge { .. }) => path_problem_code(why),
    }
}

/// Loads the document in a file.
pub fn load(path: &Path) -> Result<Prepared, PrepareError> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    let invalid = |problems: Vec<Problem>| {
        let diagnostic =
            |problem: Problem| Diagnostic::error(problem.code.as_str(), problem.to_string());
        PrepareError::Invalid(problems.into_iter().map(diagnostic).collect())
    };
    let document = reading::read(&bytes).map_err(|why| invalid(vec![why.into()]))?;
    prepare(&document, &Map::new(), path, &NoLibrary).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use raymond_core::crayfish::schema;
    use raymond_schema::Schema;
    use serde_json::json;

    use super::*;

    /// Checks that a step is good, or not, by validation and by the schema of documents.
    fn check(step: &Value, good: bool) {
        let described = reading::read_text(schema::DOCUMENT).unwrap();
        let described = Schema::compile(&described, &NoLibrary).unwrap();
        let list = json!({ "id": "l", "kind": "exec", "shell": "x", "io": { "mode": "stream" } });
        let document = json!({ "vars": { "x": [] }, "steps": [list, step] });
        assert_eq!(Document::parse(&document).is_ok(), good, "{document}");
        assert_eq!(described.errors(&document).is_empty(), good, "{document}");
    }

    fn exec(key: &str, value: &Value) -> Value {
        json!({ "id": "s", "kind": "exec", "shell": "x", key: value })
    }

    #[test]
    fn document_schema_agrees_with_validation_on_files() {
        for (name, good) in
            [("A", true), ("a b", true), ("é", true), ("", false), ("A=B", false), ("a\0", false)]
        {
            check(&exec("env", &json!({ name: "" })), good);
        }
        check(&exec("env", &json!({ "A": "\0" })), false);
        let files = [
            ("a/b.json", true),
            ("..a/b..", true),
            ("./a", true),
            ("{{vars.x}}/y", true),
            ("", false),
            ("/a", false),
            ("..", false),
            ("a/../b", false),
            ("a/..", false),
            ("a\0", false),
        ];
        for (path, good) in files {
            check(&exec("io", &json!({ "in": { "f": { "path": path } } })), good);
        }
    }

    #[test]
    fn document_schema_agrees_with_validation_on_paths() {
        let ways = [
            ("", true),
            (".a", true),
            (".é-1_", true),
            (".1", true),
            ("[0]", true),
            (".a[10][2].b", true),
            (".", false),
            (".-a", false),
            (".a b", false),
            ("[01]", false),
            ("[-1]", false),
            ("[x]", false),
            ("a", false),
            (".a.", false),
        ];
        for (way, good) in ways {
            let from = json!({ "stepId": "l", "jsonPath": format!("${way}") });
            check(&exec("io", &json!({ "mode": "stream", "inputFrom": from })), good);
            let path = format!("$.vars.x{way}");
            check(
                &json!({ "id": "s", "kind": "forEach", "listPath": path, "itemVar": "i", "body": [] }),
                // Here the letter is part of the name of the variable.
                good || way == "a",
            );
        }
        for path in ["vars.x", "$.env.x", "$.vars", "$.vars[0]", "$.vars.", "$vars.x"] {
            check(
                &json!({ "id": "s", "kind": "forEach", "listPath": path, "itemVar": "i", "body": [] }),
                false,
            );
        }
    }
}
