//! The schemas of a document, compiled once and shared by all its steps.
//!
//! JSON Schema itself is in `raymond_schema`; checks that may be slow run in `blocking`.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::{Document, Problem, ProblemCode, reading};
use raymond_schema::{Fault, Kind, Library, NoLibrary, Schema};
use serde_json::Value;

/// The schemas of a document, by step and JSON pointer inside the step.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<(usize, String), Arc<Schema>>);

/// The most bytes of all schemas of a document, each with everything that it refers to. The pinned
/// document contains them all, and a short document can refer to a large schema many times.
pub const MOST_BYTES: usize = 32 * 1024 * 1024;

impl Schemas {
    /// Compiles every schema of a document, or returns the problems of all of them.
    pub fn compile(document: &Document, library: &dyn Library) -> Result<Self, Vec<Problem>> {
        let (mut schemas, mut problems) = (BTreeMap::new(), Vec::new());
        // Many steps may use the same schema: each text is compiled once, but its size counts each time.
        let mut known: BTreeMap<String, (Arc<Schema>, usize)> = BTreeMap::new();
        let mut size = 0;
        for (index, step) in document.indexed() {
            for (at, source) in step.kind.schemas() {
                let place = || format!("{}{at}", document.pointer(index));
                let text = source.to_string();
                let (schema, bytes) = match known.get(&text) {
                    Some(known) => known.clone(),
                    None => match Schema::compile(source, library) {
                        Ok(schema) => {
                            let bytes = schema.bundled().to_string().len();
                            known.entry(text).or_insert_with(|| (Arc::new(schema), bytes)).clone()
                        }
                        Err(faults) => {
                            problems.extend(located(faults, &place()));
                            continue;
                        }
                    },
                };
                size += bytes;
                if size > MOST_BYTES {
                    let message =
                        format!("all schemas have more than {} MiB here", MOST_BYTES >> 20);
                    return Err(vec![Problem::new(place(), ProblemCode::TooLarge, message)]);
                }
                schemas.insert((index.number(), at), schema);
            }
        }
        if problems.is_empty() { Ok(Self(schemas)) } else { Err(problems) }
    }

    /// Returns the problems of a value. Without a schema there are none.
    pub fn errors(&self, step: StepIndex, at: &str, value: &Value) -> Vec<Problem> {
        let schema = self.0.get(&(step.number(), at.to_owned()));
        let faults = schema.map(|schema| schema.errors(value)).unwrap_or_default();
        faults.into_iter().map(|fault| Problem::of_value(fault.path, fault.message)).collect()
    }

    /// Returns the document with each schema replaced by its bundle.
    pub fn bundle_document(&self, document: &Value, parsed: &Document) -> Value {
        let mut whole = document.clone();
        for (index, step) in parsed.indexed() {
            for (at, _) in step.kind.schemas() {
                let place = whole.pointer_mut(&format!("{}{at}", parsed.pointer(index)));
                if let (Some(place), Some(bundled)) = (place, self.bundled(index, &at)) {
                    *place = bundled.clone();
                }
            }
        }
        whole
    }

    /// Returns a schema bundled with everything that it refers to.
    pub fn bundled(&self, step: StepIndex, at: &str) -> Option<&Value> {
        self.0.get(&(step.number(), at.to_owned())).map(|schema| schema.bundled())
    }
}

/// Returns the problems of a schema at this JSON pointer.
pub fn schema_problems(source: &Value, at: &str, library: &dyn Library) -> Vec<Problem> {
    Schema::compile(source, library).err().map(|faults| located(faults, at)).unwrap_or_default()
}

fn located(faults: Vec<Fault>, at: &str) -> Vec<Problem> {
    let problem = |fault: Fault| {
        Problem::new(format!("{at}{}", fault.path), problem_code(fault.kind), fault.message)
    };
    faults.into_iter().map(problem).collect()
}

fn problem_code(kind: Kind) -> ProblemCode {
    match kind {
        Kind::Missing => ProblemCode::MissingSchema,
        Kind::Unreadable => ProblemCode::UnreadableSchema,
        Kind::Reference => ProblemCode::BadReference,
        Kind::Circular => ProblemCode::CircularSchema,
        Kind::Invalid => ProblemCode::InvalidSchema,
        Kind::Draft => ProblemCode::MixedDrafts,
        Kind::TooDeep => ProblemCode::TooDeep,
        Kind::TooLarge => ProblemCode::TooLarge,
        Kind::Value => ProblemCode::InvalidOutput,
    }
}

/// Compiles the schemas of a pinned document. Pinning has already put everything that a schema
/// refers to into it, so no library is needed.
pub(crate) fn compile_schemas(document: Option<&Document>) -> Schemas {
    let compiled = document.map(|document| Schemas::compile(document, &NoLibrary));
    compiled.and_then(Result::ok).unwrap_or_default()
}

/// Returns the problem of an answer that is not JSON.
pub(crate) fn unread(why: &reading::Unreadable) -> Problem {
    Problem::of_value("", format!("it is not JSON: {why}"))
}
