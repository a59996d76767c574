//! The stored result of a step.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use crate::value::{Hash, Value};

/// The result of a step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stored {
    /// The JSON text of the result.
    pub value: Value,
    /// Whether the step succeeded; only then it never runs again.
    pub ok: bool,
    /// The parsed result. It is not journalled: a process that resumes the run parses it again.
    #[serde(default, skip_serializing_if = "ParsedJson::is_empty")]
    pub read: ParsedJson,
}

/// The parsed form of a text, if it is loaded. It cannot be compared, because it adds nothing to
/// the text: a type that contains both compares only the text.
#[derive(Debug, Clone, Default)]
pub struct ParsedJson(pub Option<Arc<Json>>);

impl ParsedJson {
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Serialize for ParsedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_deref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ParsedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `null` is a value here, because an absent one is not written.
        Json::deserialize(deserializer).map(|json| Self(Some(Arc::new(json))))
    }
}

impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        // Destructured, so that a new field cannot be left out of the comparison by mistake.
        let Self { value, ok, read: _ } = self;
        (value, ok) == (&other.value, &other.ok)
    }
}

impl Eq for Stored {}

impl Stored {
    /// Returns a result of any size; `store` receives a large one.
    pub fn keep<E>(
        json: Json,
        ok: bool,
        store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>,
    ) -> Result<Self, E> {
        let value = Value::keep(&written(&json), store)?;
        Ok(Self { value, ok, read: ParsedJson(Some(Arc::new(json))) })
    }

    pub fn inline(json: Json, ok: bool) -> Self {
        let value = Value::Inline(written(&json));
        Self { value, ok, read: ParsedJson(Some(Arc::new(json))) }
    }

    /// Returns the parsed result, if it is loaded.
    pub fn json(&self) -> Option<&Json> {
        self.read.0.as_deref()
    }
}

impl Stored {
    /// Returns the result as a journal or a snapshot keeps it.
    pub(crate) fn without_reading(&self) -> Self {
        Self { value: self.value.clone(), ok: self.ok, read: ParsedJson::default() }
    }
}

/// Returns the text of a value, twice as fast as its `Display`.
pub fn written(json: &Json) -> String {
    serde_json::to_string(json).unwrap_or_else(|_| json.to_string())
}
