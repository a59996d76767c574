//! The schemas of a document, compiled once.

use std::collections::BTreeMap;
use std::sync::Arc;

use raymond_core::crayfish::document::StepIndex;
use raymond_core::crayfish::{Document, Problem, ProblemCode};
use raymond_schema::{Fault, Kind, Library, Schema};
use serde_json::Value;

/// The schemas of a document, by the step and the place in it.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<(usize, String), Arc<Schema>>);

/// The most bytes of all schemas of a document, each with everything that it names.
pub const MOST_BYTES: usize = 32 * 1024 * 1024;

impl Schemas {
    /// Compiles every schema of a document; all that is wrong with any of them is problem.
    pub fn compile(document: &Document, library: &dyn Library) -> Result<Self, Vec<Problem>> {
        let (mut schemas, mut problems) = (BTreeMap::new(), Vec::new());
        // Many steps may ask for the same: by its text, with its size.
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

    /// What is wrong with a value; nothing where there is no schema.
    pub fn errors(&self, step: StepIndex, at: &str, value: &Value) -> Vec<Problem> {
        let schema = self.0.get(&(step.number(), at.to_owned()));
        let faults = schema.map(|schema| schema.errors(value)).unwrap_or_default();
        faults.into_iter().map(|fault| Problem::of_value(fault.path, fault.message)).collect()
    }

    /// A document in which every schema has everything that it names.
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

    /// A schema with everything that it names.
    pub fn bundled(&self, step: StepIndex, at: &str) -> Option<&Value> {
        self.0.get(&(step.number(), at.to_owned())).map(|schema| schema.bundled())
    }
}

/// What is wrong with a schema that stands at a place.
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
