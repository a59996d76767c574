//! The value that a step left.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::value::{Hash, Value};

/// What a step left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The result as the text of a JSON value.
    pub value: Value,
    /// Whether it went well: only then is it never done again.
    pub ok: bool,
    /// The same, read. Not journalled: whoever takes up a run reads it again.
    #[serde(skip)]
    pub read: Read,
}

/// What a text means, once it was read. It says nothing that the text does not say, so it is never a
/// difference.
#[derive(Debug, Clone, Default)]
pub struct Read(pub Option<Arc<Json>>);

impl PartialEq for Read {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Read {}

impl Stored {
    /// A result of any length: a long one goes through `store`.
    pub fn keep<E>(
        json: Json,
        ok: bool,
        store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>,
    ) -> Result<Self, E> {
        let value = Value::keep(&written(&json), store)?;
        Ok(Self { value, ok, read: Read(Some(Arc::new(json))) })
    }

    /// A small result.
    pub fn inline(json: Json, ok: bool) -> Self {
        let value = Value::Inline(written(&json));
        Self { value, ok, read: Read(Some(Arc::new(json))) }
    }

    /// The result, if it was read.
    pub fn json(&self) -> Option<&Json> {
        self.read.0.as_deref()
    }
}

/// The text of a value. It is what its `Display` writes, in half the time.
pub fn written(json: &Json) -> String {
    serde_json::to_string(json).unwrap_or_else(|_| json.to_string())
}
