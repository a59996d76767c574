//! The drafts of JSON Schema, and their differences for references.

use jsonschema::Draft;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft201909,
    #[default]
    Draft202012,
}

const KNOWN: [(Dialect, &str, &str); 5] = [
    (Dialect::Draft4, "draft-04", "http://json-schema.org/draft-04/schema#"),
    (Dialect::Draft6, "draft-06", "http://json-schema.org/draft-06/schema#"),
    (Dialect::Draft7, "draft-07", "http://json-schema.org/draft-07/schema#"),
    (Dialect::Draft201909, "2019-09", "https://json-schema.org/draft/2019-09/schema"),
    (Dialect::Draft202012, "2020-12", "https://json-schema.org/draft/2020-12/schema"),
];

impl Dialect {
    /// Returns the draft that a `$schema` declares, if there is one.
    pub(crate) fn declared(keyword: Option<&Value>) -> Result<Option<Self>, String> {
        let Some(declared) = keyword else { return Ok(None) };
        let Some(text) = declared.as_str() else {
            return Err("`$schema` is not a string".to_owned());
        };
        let found = KNOWN.iter().find(|(_, _, known)| essence(known) == essence(text));
        let unknown = || {
            let known: Vec<_> = KNOWN.iter().map(|(_, name, _)| *name).collect();
            let text = crate::message::cut(text);
            format!("`$schema` {text} is not a draft that is known here ({})", known.join(", "))
        };
        found.map(|(dialect, ..)| Some(*dialect)).ok_or_else(unknown)
    }

    fn entry(self) -> &'static (Self, &'static str, &'static str) {
        KNOWN.iter().find(|(dialect, ..)| *dialect == self).expect("every dialect is in the table")
    }

    pub(crate) fn name(self) -> &'static str {
        self.entry().1
    }

    pub(crate) fn uri(self) -> &'static str {
        self.entry().2
    }

    pub(crate) fn definitions(self) -> &'static str {
        if self.is_old() { "definitions" } else { "$defs" }
    }

    pub(crate) fn id(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }

    /// Returns whether the draft is draft-07 or older. There a `$ref` hides its siblings, and an id
    /// that is a fragment is an anchor.
    pub(crate) fn is_old(self) -> bool {
        matches!(self, Self::Draft4 | Self::Draft6 | Self::Draft7)
    }

    pub(crate) fn draft(self) -> Draft {
        match self {
            Self::Draft4 => Draft::Draft4,
            Self::Draft6 => Draft::Draft6,
            Self::Draft7 => Draft::Draft7,
            Self::Draft201909 => Draft::Draft201909,
            Self::Draft202012 => Draft::Draft202012,
        }
    }
}

// The scheme and an empty fragment do not matter: both spellings are common.
fn essence(uri: &str) -> &str {
    let uri = uri.strip_suffix('#').unwrap_or(uri);
    uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://")).unwrap_or(uri)
}
