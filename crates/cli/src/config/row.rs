//! One row of `raymond config`: a key with its value and its origin.

use serde::Serialize;
use serde_json::Value;

use super::layer::SettingOrigin;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SettingRow {
    pub(crate) key: String,
    /// The value as a file would contain it; null if nothing is set.
    pub(crate) value: Value,
    /// The value for display.
    #[serde(skip)]
    pub(crate) text: String,
    pub(crate) origin: String,
}

impl SettingRow {
    pub(super) fn new(key: &str, value: Value, origin: &SettingOrigin) -> Self {
        let text = match &value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(words) => {
                words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        };
        Self { key: key.to_owned(), value, text, origin: origin.to_string() }
    }
}
