//! Agent steps as input requests to a client, and its answers as outputs.
//!
//! A client that lets servers use its model receives the whole request as one message. A client
//! that only shows forms receives a form, if the schema of the step is flat enough.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use raymond_core::crayfish::ask;
use raymond_core::crayfish::envelope::AgentRequest;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputResponses};
use serde_json::{Map, Value as Json, json};

/// The most tokens of an output; clients have their own limits.
const MOST_TOKENS: u32 = 16_384;

/// A way to ask a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By its model (`sampling`).
    Model,
    /// By its forms (`elicitation`).
    Form,
}

impl Way {
    /// Returns the better way that a client supports.
    pub(crate) fn of(capabilities: &ClientCapabilities) -> Option<Self> {
        let forms = |elicits: &rmcp::model::ElicitationCapability| {
            // An empty capability is from versions of the protocol in which forms were the only
            // kind.
            elicits.form.is_some() || elicits.url.is_none()
        };
        // A model can answer any schema, but a form only a flat one.
        if capabilities.sampling.is_some() {
            return Some(Self::Model);
        }
        capabilities.elicitation.as_ref().is_some_and(forms).then_some(Self::Form)
    }

    /// Returns all requests as input by id, or `None` if one of them cannot be asked in this way.
    pub(crate) fn ask(self, requests: &[AgentRequest]) -> Option<InputRequests> {
        let asked = |request: &AgentRequest| {
            let (method, params) = match self {
                Self::Model => ("sampling/createMessage", message(request)),
                Self::Form => ("elicitation/create", form(request)),
            };
            let request_id = request.id().to_string();
            let asked: InputRequest =
                // The library's type for forms accepts only flat schemas, so parsing decides
                // whether a form is possible.
                serde_json::from_value(json!({ "method": method, "params": params })).ok()?;
            Some((request_id, asked))
        };
        requests.iter().map(asked).collect()
    }
}

fn message(request: &AgentRequest) -> Json {
    let content = json!({ "type": "text", "text": ask::message(request) });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": MOST_TOKENS })
}

fn form(request: &AgentRequest) -> Json {
    let mut message = request.prompt.clone();
    if let Some(input) = &request.input {
        write!(message, "\n\n{input:#}").expect("a string takes all");
    }
    for error in &request.validation_errors {
        write!(message, "\n\nThe last answer was not valid: {error}").expect("a string takes all");
    }
    let mut schema = Json::clone(&request.schema);
    let fields = schema.get_mut("properties").and_then(Json::as_object_mut);
    for field in fields.into_iter().flat_map(Map::values_mut) {
        type_choices(field);
    }
    json!({ "mode": "form", "message": message, "requestedSchema": schema })
}

// Forms require a type for a choice of strings; elsewhere its values are enough.
fn type_choices(field: &mut Json) {
    let Json::Object(field) = field else { return };
    let choices = field.get("enum").and_then(Json::as_array);
    if choices.is_some_and(|choices| choices.iter().all(Json::is_string)) {
        field.entry("type").or_insert_with(|| json!("string"));
    }
}

/// The answers of a round.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answers {
    /// Answers from forms, by request id.
    pub(crate) filled: Map<String, Json>,
    /// Answers from models, by request id.
    pub(crate) said: BTreeMap<String, String>,
    /// Whether an answer was refused: then the client is not asked again.
    pub(crate) refused: bool,
}

pub(crate) fn read(responses: InputResponses) -> Answers {
    let mut answers = Answers::default();
    for (id, response) in responses {
        match answer(response) {
            Some(FormAnswer::Filled(output)) => drop(answers.filled.insert(id, output)),
            Some(FormAnswer::Said(text)) => drop(answers.said.insert(id, text)),
            None => answers.refused = true,
        }
    }
    answers
}

#[derive(Debug, PartialEq)]
enum FormAnswer {
    Filled(Json),
    Said(String),
}

fn answer(mut response: Json) -> Option<FormAnswer> {
    if let Some(action) = response.get("action") {
        let accepted = action == "accept";
        // An answer that was declined or cancelled may still have content.
        let content = response.get_mut("content").filter(|_| accepted);
        return content.map(|content| FormAnswer::Filled(content.take()));
    }
    Some(FormAnswer::Said(match response.get("content")? {
        Json::Array(blocks) => blocks.iter().filter_map(text).collect::<String>(),
        block => text(block)?.to_owned(),
    }))
}

fn text(block: &Json) -> Option<&str> {
    block.get("text").and_then(Json::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_from_models_and_forms() {
        let check = |response: Json, expected: Option<FormAnswer>| {
            assert_eq!(answer(response.clone()), expected, "{response}");
        };
        let said = |content: Json| json!({ "role": "assistant", "model": "m", "content": content });
        let text = |text: &str| json!({ "type": "text", "text": text });
        check(said(text("no JSON")), Some(FormAnswer::Said("no JSON".to_owned())));
        check(said(json!([text("[1,"), text("2]")])), Some(FormAnswer::Said("[1,2]".to_owned())));
        let filled = FormAnswer::Filled(json!({ "a": 1 }));
        check(json!({ "action": "accept", "content": { "a": 1 } }), Some(filled));
        check(json!({ "action": "accept" }), None);
        check(json!({ "action": "decline" }), None);
        check(json!({ "action": "cancel", "content": {} }), None);
        check(json!({ "unknown": true }), None);
    }

    #[test]
    fn client_is_asked_in_its_best_way() {
        let check = |capabilities: Json, expected: Option<Way>| {
            let parsed = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(Way::of(&parsed), expected, "{capabilities}");
        };
        check(json!({}), None);
        check(json!({ "roots": {} }), None);
        check(json!({ "sampling": {} }), Some(Way::Model));
        check(json!({ "sampling": {}, "elicitation": {} }), Some(Way::Model));
        check(json!({ "elicitation": {} }), Some(Way::Form));
        check(json!({ "elicitation": { "form": {} } }), Some(Way::Form));
        check(json!({ "elicitation": { "url": {} } }), None);
    }
}
