//! The schemas of documents: bundled when a document is prepared, compiled when a value is checked.
//!
//! JSON Schema itself is in `raymond_schema`; checks that may be slow run in `blocking`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raymond_core::crayfish::{Document, Problem, ProblemCode, reading};
use raymond_core::value::Hash;
use raymond_schema::{FaultKind, Library, NoLibrary, Schema, SchemaFault};
use serde_json::Value;

/// The most bytes of all schemas of a document, each with everything that it refers to. The pinned
/// document contains them all, and a short document can refer to a large schema many times.
pub const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Returns the document with each schema replaced by its bundle, or the problems of all schemas.
pub fn bundle(
    document: &Value,
    parsed: &Document,
    library: &dyn Library,
) -> Result<Value, Vec<Problem>> {
    let (mut bundled, mut problems) = (document.clone(), Vec::new());
    // Many steps may use the same schema: each text is compiled once, but its size counts each
    // time.
    let mut known: BTreeMap<String, Bundle> = BTreeMap::new();
    let mut size = 0;
    for (index, step) in parsed.indexed() {
        for (at, source) in step.kind.schemas() {
            let (place, text) = (format!("{}{at}", parsed.pointer(index)), source.to_string());
            if !known.contains_key(&text) {
                match Schema::compile(source, library) {
                    Ok(schema) => drop(known.insert(text.clone(), Bundle::of(&schema))),
                    Err(faults) => problems.extend(located(faults, &place)),
                }
            }
            let Some(bundle) = known.get(&text) else { continue };
            size += bundle.bytes;
            if size > MOST_BYTES {
                let message = format!("all schemas have more than {} MiB here", MOST_BYTES >> 20);
                return Err(vec![Problem::new(place, ProblemCode::TooLarge, message)]);
            }
            if let Some(place) = bundled.pointer_mut(&place) {
                *place = bundle.schema.clone();
            }
        }
    }
    if problems.is_empty() { Ok(bundled) } else { Err(problems) }
}

/// A schema with everything that it refers to.
struct Bundle {
    schema: Value,
    bytes: usize,
}

impl Bundle {
    fn of(schema: &Schema) -> Self {
        let schema = schema.bundled().clone();
        Self { bytes: schema.to_string().len(), schema }
    }
}

/// The compiled schemas of a run. Each is compiled once.
#[derive(Debug, Default)]
pub struct Schemas(Mutex<Compiled>);

#[derive(Debug, Default)]
struct Compiled {
    /// By the address of the source. The entry keeps the source, so that no other gets its address.
    // All turns of a run share the sources of its document. To hash the source for each value would
    // make a thousand small values as expensive as a thousand schemas.
    by_address: BTreeMap<usize, (Arc<Value>, Arc<Schema>)>,
    /// By the hash of the text, because several steps may have equal schemas.
    by_hash: BTreeMap<Hash, Arc<Schema>>,
}

impl Schemas {
    /// Returns the problems of a value. Without a schema there are none.
    pub fn errors(&self, schema: Option<&Arc<Value>>, value: &Value) -> Vec<Problem> {
        let Some(schema) = schema else { return Vec::new() };
        match self.compiled(schema) {
            Ok(schema) => {
                let of_value = |fault: SchemaFault| Problem::of_value(fault.path, fault.message);
                schema.errors(value).into_iter().map(of_value).collect()
            }
            // Pinning has compiled the schema before. If this release cannot, no value is valid.
            Err(faults) => located(faults, ""),
        }
    }

    /// Compiles a bundled schema, which refers to nothing outside itself.
    fn compiled(&self, source: &Arc<Value>) -> Result<Arc<Schema>, Vec<SchemaFault>> {
        let address = Arc::as_ptr(source).addr();
        if let Some((_, known)) = self.lock().by_address.get(&address) {
            return Ok(Arc::clone(known));
        }
        let hash = Hash::of(source.to_string().as_bytes());
        let known = self.lock().by_hash.get(&hash).cloned();
        let schema = match known {
            Some(known) => known,
            // Not under the lock: compiling a large schema must not delay the checks of other
            // steps.
            None => Arc::new(Schema::compile(source, &NoLibrary)?),
        };
        let mut compiled = self.lock();
        let schema = Arc::clone(compiled.by_hash.entry(hash).or_insert(schema));
        compiled.by_address.insert(address, (Arc::clone(source), Arc::clone(&schema)));
        Ok(schema)
    }

    fn lock(&self) -> MutexGuard<'_, Compiled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the problems of a schema at this JSON pointer.
pub fn schema_problems(source: &Value, at: &str, library: &dyn Library) -> Vec<Problem> {
    Schema::compile(source, library).err().map(|faults| located(faults, at)).unwrap_or_default()
}

fn located(faults: Vec<SchemaFault>, at: &str) -> Vec<Problem> {
    let problem = |fault: SchemaFault| {
        Problem::new(format!("{at}{}", fault.path), problem_code(fault.kind), fault.message)
    };
    faults.into_iter().map(problem).collect()
}

fn problem_code(kind: FaultKind) -> ProblemCode {
    match kind {
        FaultKind::Missing => ProblemCode::MissingSchema,
        FaultKind::Unreadable => ProblemCode::UnreadableSchema,
        FaultKind::Reference => ProblemCode::BadReference,
        FaultKind::Circular => ProblemCode::CircularSchema,
        FaultKind::Invalid => ProblemCode::InvalidSchema,
        FaultKind::Draft => ProblemCode::MixedDrafts,
        FaultKind::TooDeep => ProblemCode::TooDeep,
        FaultKind::TooLarge => ProblemCode::TooLarge,
        FaultKind::Value => ProblemCode::InvalidOutput,
    }
}

/// Returns the problem of an answer that is not JSON.
pub(crate) fn unread(why: &reading::UnreadableJson) -> Problem {
    Problem::of_value("", format!("it is not JSON: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shared_source_is_neither_hashed_nor_compiled_again() {
        let schemas = Schemas::default();
        let source = Arc::new(json!({"type": "string"}));
        let first = schemas.compiled(&source).unwrap();
        // Without its hash, only the address can find it.
        schemas.lock().by_hash.clear();
        assert!(Arc::ptr_eq(&first, &schemas.compiled(&source).unwrap()));
        assert!(schemas.lock().by_hash.is_empty());
    }

    #[test]
    fn equal_sources_share_a_compiled_schema() {
        let schemas = Schemas::default();
        let source = || Arc::new(json!({"type": "string"}));
        let first = schemas.compiled(&source()).unwrap();
        assert!(Arc::ptr_eq(&first, &schemas.compiled(&source()).unwrap()));
        let errors = schemas.errors(Some(&source()), &json!(1));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(schemas.errors(None, &json!(1)), []);
    }
}
