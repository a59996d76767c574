//! The definition of the tool, and its replies.

use std::sync::Arc;

use raymond_core::crayfish::envelope::{CallOutcome, CallReply};
use raymond_core::crayfish::schema;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use serde_json::Value as Json;

pub(crate) const NAME: &str = "crayfish";

/// The description of the tool and the language; a model may have nothing else.
const DESCRIPTION: &str = include_str!("tool.md");

pub(crate) fn definition() -> Tool {
    let annotations = ToolAnnotations::with_title("Run a Crayfish workflow")
        .read_only(false)
        .destructive(true)
        .idempotent(false)
        .open_world(true);
    Tool::new(NAME, DESCRIPTION, Arc::new(object(schema::REQUEST)))
        .with_title("Run a Crayfish workflow")
        .with_raw_output_schema(Arc::new(replies()))
        .with_annotations(annotations)
}

fn object(text: &str) -> JsonObject {
    serde_json::from_str(text).expect("the schemas of the language are JSON objects")
}

/// Returns the schema of replies without parts that some clients do not support: conditions, and
/// values of any type. Every reply is valid by it.
fn replies() -> JsonObject {
    let mut schema = object(schema::REPLY);
    for condition in ["if", "then", "else"] {
        schema.remove(condition);
    }
    let request = schema.get_mut("$defs").and_then(|defs| defs.get_mut("request"));
    if let Some(Json::Object(request)) = request {
        request.remove("additionalProperties");
        if let Some(Json::Object(fields)) = request.get_mut("properties") {
            fields.retain(|name, _| !matches!(name.as_str(), "input" | "schema"));
        }
    }
    schema
}

/// Returns the reply as structured content. A failed workflow is not a protocol error.
pub(crate) fn result(reply: CallReply) -> CallToolResult {
    let failed = matches!(reply.outcome, CallOutcome::Failed(_));
    let envelope = reply.into_json();
    if failed {
        CallToolResult::structured_error(envelope)
    } else {
        CallToolResult::structured(envelope)
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::crayfish::{Document, reading};

    use super::*;

    #[test]
    fn description_has_every_kind_and_valid_example() {
        assert!(DESCRIPTION.lines().count() <= 40);
        for kind in ["exec", "agent", "if", "forEach", "while"] {
            assert!(DESCRIPTION.contains(&format!("\n- {kind}: ")), "{kind}");
        }
        let (_, example) = DESCRIPTION.split_once("Example: ").unwrap();
        let example = reading::read_text(example.trim()).unwrap();
        assert!(Document::parse(&example).is_ok(), "{example}");
    }
}
