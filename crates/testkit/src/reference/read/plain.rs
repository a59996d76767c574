//! Core's tags in plain strings, to compare them with those of the naive reader.

use std::collections::BTreeMap;

use raymond_core::protocol::{Stack, Tag as CoreTag};
use raymond_core::value::Value;

use super::Tag;

impl Tag {
    /// The same tag as core holds it, in plain strings; none when a value of it is a blob.
    pub fn plain(tag: &CoreTag) -> Option<Self> {
        let mut attributes: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut put = |key: &str, value: Option<Option<String>>| {
            if let Some(value) = value {
                attributes.insert(key.to_owned(), value);
            }
        };
        let body = match tag {
            CoreTag::Goto { target, input } => {
                put("input", input.as_ref().map(inline));
                Some(target.clone())
            }
            CoreTag::Reset {
                target,
                input,
                cd,
                stack,
            } => {
                put("input", input.as_ref().map(inline));
                put("cd", cd.clone().map(Some));
                let clear = *stack == Stack::Clear;
                put("stack", clear.then(|| Some("clear".to_owned())));
                Some(target.clone())
            }
            CoreTag::Call(invoke) | CoreTag::Function(invoke) => {
                put("return", Some(Some(invoke.return_to.clone())));
                put("input", invoke.input.as_ref().map(inline));
                put("model", invoke.model.clone().map(Some));
                Some(invoke.target.clone())
            }
            CoreTag::Fork {
                target,
                next,
                cd,
                input,
                attributes: variables,
            } => {
                put("next", next.clone().map(Some));
                put("cd", cd.clone().map(Some));
                put("input", input.as_ref().map(inline));
                for (key, value) in variables {
                    put(key, Some(inline(value)));
                }
                Some(target.clone())
            }
            CoreTag::Result { payload } => inline(payload),
        }?;
        let attributes = attributes
            .into_iter()
            .map(|(key, value)| Some((key, value?)))
            .collect::<Option<_>>()?;
        Some(Self {
            name: tag.name(),
            body,
            attributes,
        })
    }
}

fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Inline(text) => Some(text.clone()),
        Value::Blob(_) => None,
    }
}
