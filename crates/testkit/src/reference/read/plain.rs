//! Converts core's tags to plain strings, to compare them with the naive reader's.

use raymond_core::protocol::Tag as CoreTag;
use raymond_core::time::Span;
use serde_json::Value as Json;

use super::Tag;

impl Tag {
    /// Converts a tag of core; `None` if one of its values is a blob.
    pub fn plain(tag: &CoreTag) -> Option<Self> {
        // A tag in the journal has the same attribute names as in a message, so this needs no list
        // of the tags: `{"fork": {"target": "A", "next": "N", "attributes": {"x": "1"}}}`.
        let journalled = serde_json::to_value(tag).ok()?;
        let (name, _) = journalled.as_object()?.iter().next()?;
        let mut fields = journalled.get(name)?.as_object()?.clone();
        if let Some(need) = fields.remove("need") {
            fields.insert("wait".to_owned(), wait(&need));
        }
        let timeout = fields.remove("timeout");
        let after = timeout.as_ref().map(|timeout| timeout.get("after").unwrap_or(timeout));
        if let Some(Json::Number(millis)) = after {
            let span = Span(millis.as_u64()?).to_string();
            fields.insert("timeout".to_owned(), Json::String(span));
        }
        // `{"then": "A"}` or `{"default": "no"}`
        if let Some(Json::Object(otherwise)) =
            timeout.and_then(|mut timeout| timeout.get_mut("otherwise").map(Json::take))
        {
            fields.extend(otherwise);
        }
        if let Some(Json::Array(options)) = fields.remove("options") {
            let options: Vec<&str> = options.iter().filter_map(Json::as_str).collect();
            fields.insert("options".to_owned(), Json::String(options.join("|")));
        }
        let body = ["target", "payload", "text"].iter().find_map(|name| fields.remove(*name))?;
        if let Some(Json::Object(variables)) = fields.remove("attributes") {
            fields.extend(variables);
        }
        let attributes = fields
            .into_iter()
            .map(|(key, value)| Some((key, inline(value)?)))
            .collect::<Option<_>>()?;
        Some(Self { name: tag.name(), body: inline(body)?, attributes })
    }
}

/// Returns the attribute `wait` of a need.
fn wait(need: &Json) -> Json {
    match need.get("count") {
        Some(count) => Json::String(count.to_string()),
        None => need.clone(),
    }
}

/// Returns the text, unless it is in a blob.
fn inline(value: Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text),
        Json::Object(_) | Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::protocol::tags::Invoke;
    use raymond_core::protocol::{ResultStatus, Stack};
    use raymond_core::value::{BlobRef, Hash, Value};

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
        assert_eq!(Tag::plain(&CoreTag::Result { payload: blob, status: ResultStatus::Ok }), None);
        let payload = Value::Inline(" x ".into());
        let result = |status| Tag::plain(&CoreTag::Result { payload: payload.clone(), status });
        let read = |text| read(text, Source::Script).tags.pop();
        assert_eq!(result(ResultStatus::Ok), read("<result> x </result>"));
        assert_eq!(result(ResultStatus::Ok), read("<result status='ok'> x </result>"));
        assert_eq!(result(ResultStatus::Failed), read("<result status='failed'> x </result>"));
    }
}
