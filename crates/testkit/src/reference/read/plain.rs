//! Converts core's tags to plain strings, to compare them with the naive reader's.

use std::collections::BTreeMap;

use raymond_core::protocol::{Stack, Tag as CoreTag};
use raymond_core::value::Value;

use super::Tag;

impl Tag {
    /// Converts a tag of core; `None` if one of its values is a blob.
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
            CoreTag::Reset { target, input, cd, stack } => {
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
            CoreTag::Fork { target, next, cd, input, attributes: variables } => {
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
        Some(Self { name: tag.name(), body, attributes })
    }
}

fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Inline(text) => Some(text.clone()),
        Value::Blob(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::protocol::tag::Invoke;
    use raymond_core::value::{BlobRef, Hash};

    use super::super::{Source, read};
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "what core's fields hold")]
    fn some(text: &str) -> Option<Value> {
        Some(Value::Inline(text.to_owned()))
    }

    fn invoke(model: Option<&str>) -> Invoke {
        Invoke {
            target: "A".into(),
            return_to: "R".into(),
            input: some("i"),
            model: model.map(str::to_owned),
        }
    }

    #[test]
    fn core_tag_equals_the_read_tag() {
        let check = |text: &str, tag: CoreTag| {
            let read = read(text, Source::Script).tags;
            assert_eq!(vec![Tag::plain(&tag).unwrap()], read, "{text}");
        };
        let target = String::from("A");
        check(
            r#"<goto input="i">A</goto>"#,
            CoreTag::Goto { target: target.clone(), input: some("i") },
        );
        check(
            r#"<reset cd="d" stack="clear">A</reset>"#,
            CoreTag::Reset {
                target: target.clone(),
                input: None,
                cd: Some("d".into()),
                stack: Stack::Clear,
            },
        );
        check(r#"<call return="R" input="i" model="m">A</call>"#, CoreTag::Call(invoke(Some("m"))));
        check(r#"<function return="R" input="i">A</function>"#, CoreTag::Function(invoke(None)));
        check(
            r#"<fork next="N" cd="d" input="i" x="1">A</fork>"#,
            CoreTag::Fork {
                target,
                next: Some("N".into()),
                cd: Some("d".into()),
                input: some("i"),
                attributes: [("x".to_owned(), Value::Inline("1".into()))].into(),
            },
        );
    }

    #[test]
    fn a_blob_is_not_plain() {
        let blob = Value::Blob(BlobRef { hash: Hash::of(b"x"), length: 1 });
        assert_eq!(Tag::plain(&CoreTag::Result { payload: blob }), None);
        let payload = Value::Inline(" x ".into());
        let plain = Tag::plain(&CoreTag::Result { payload });
        assert_eq!(plain, read("<result> x </result>", Source::Script).tags.pop());
    }
}
