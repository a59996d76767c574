//! The tool as it is listed, and its replies as they are sent.

use std::sync::Arc;

use raymond_core::crayfish::envelope::{Outcome, Reply};
use raymond_core::crayfish::schema;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use serde_json::Value as Json;

/// The name of the one tool.
pub(crate) const NAME: &str = "crayfish";

/// How to call it, and the language in short: a model may have nothing else.
const DESCRIPTION: &str = include_str!("tool.md");

/// The tool as it is listed.
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

/// A schema that is written in this program.
fn object(text: &str) -> JsonObject {
    serde_json::from_str(text).expect("the schemas of the language are JSON objects")
}

/// The schema of replies without what only some clients understand: conditions, and values of any
/// type. It is true of every reply, and says less.
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

/// The reply as data. A failure of a workflow is none of the protocol.
pub(crate) fn result(reply: Reply) -> CallToolResult {
    let failed = matches!(reply.outcome, Outcome::Failed(_));
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
    fn the_description_has_every_kind_and_an_example_that_holds() {
        assert!(DESCRIPTION.lines().count() <= 40);
        for kind in ["exec", "agent", "if", "forEach", "while"] {
            assert!(DESCRIPTION.contains(&format!("\n- {kind}: ")), "{kind}");
        }
        let (_, example) = DESCRIPTION.split_once("Example: ").unwrap();
        let example = reading::read_text(example.trim()).unwrap();
        assert!(Document::parse(&example).is_ok(), "{example}");
    }
}
