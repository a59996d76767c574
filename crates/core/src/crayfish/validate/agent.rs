//! Reads agent steps, which ask the caller for JSON.

use std::sync::Arc;

use super::fields::{Fields, expected};
use super::keys;
use super::text::{Reader, Use};
use crate::budget::Micros;
use crate::crayfish::document::{AgentSettings, AgentStep, Cap, SessionChoice, SessionMode};
use crate::crayfish::problem_code::ProblemCode;

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
    let settings = settings(text, &fields);
    Some(AgentStep {
        prompt: prompt?,
        input: input?,
        // Copied, because the document outlives the JSON that it was read from.
        schema: Arc::new(schema?.clone()),
        retries: retries.unwrap_or(Cap::AGENT),
        assignee,
        session,
        settings,
    })
}

fn settings(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> AgentSettings {
    let allow = fields.array(text.report, "allow").unwrap_or_default();
    let allow = text.under("allow", |text| {
        let mut rules = Vec::new();
        for (place, rule) in allow.iter().enumerate() {
            match rule.as_str() {
                Some(rule) => rules.push(rule.to_owned()),
                None => {
                    let message = expected("a string", rule);
                    text.report.add_at(&place.to_string(), ProblemCode::WrongType, message);
                }
            }
        }
        rules
    });
    AgentSettings {
        model: fields.string(text.report, "model").map(str::to_owned),
        allow,
        budget: budget(text, fields),
    }
}

fn budget(text: &mut Reader<'_, '_>, fields: &Fields<'_>) -> Option<Micros> {
    let value = fields.get("budget")?;
    let Some(number) = value.as_number() else {
        text.report.add_at("budget", ProblemCode::WrongType, expected("a number", value));
        return None;
    };
    let amount = number.to_string().parse().ok().filter(|amount| *amount > Micros::ZERO);
    if amount.is_none() {
        let message = format!("an amount of dollars such as 2.50 is expected, not {number}");
        text.report.add_at("budget", ProblemCode::OutOfRange, message);
    }
    amount
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
