//! Reads agent steps, which ask the caller for JSON.

use std::sync::Arc;

use super::fields::Fields;
use super::keys;
use super::text::{Reader, Use};
use crate::crayfish::document::{AgentStep, Cap, SessionChoice, SessionMode};

pub(super) fn read(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<AgentStep> {
    let fields = fields.known(text.report, "an agent step", keys::AGENT);
    let prompt = text.required(&fields, "prompt", Use::Agent);
    let input = match fields.get("input") {
        None => Some(None),
        Some(input) => text.under("input", |text| text.shape(input)).map(Some),
    };
    let schema = fields.required(text.report, "schema");
    let schema = schema.and_then(|_| fields.schema(text.report, "schema"));
    let retries = text.cap(&fields, "retries");
    let assignee = fields.string(text.report, "assigneeAgentId").map(str::to_owned);
    let session = fields.get("session").and_then(|value| {
        text.under("session", |text| {
            let fields = Fields::open(text.report, value, "`session`")?;
            Some(session(text, &fields))
        })
    });
    Some(AgentStep {
        prompt: prompt?,
        input: input?,
        // Copied, because the document outlives the JSON that it was read from.
        schema: Arc::new(schema?.clone()),
        retries: retries.unwrap_or(Cap::AGENT),
        assignee,
        session,
    })
}

fn session(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> SessionChoice {
    let fields = fields.known(text.report, "`session`", keys::SESSION);
    let mode = match fields.choice(text.report, "mode", &SessionMode::NAMES) {
        Some("ephemeral") => Some(SessionMode::Ephemeral),
        Some(_) => Some(SessionMode::Sticky),
        None => None,
    };
    SessionChoice {
        mode,
        label: fields.string(text.report, "label").map(str::to_owned),
        reset: fields.boolean(text.report, "reset"),
    }
}
