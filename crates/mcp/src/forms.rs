//! Agent steps as input that a client is asked for, and its answers as outputs.
//!
//! A client whose model may be asked is sent the whole question as one message. One that only shows
//! forms is sent a form, where the schema of the step is flat enough to be one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use raymond_core::crayfish::ask;
use raymond_core::crayfish::envelope::AgentRequest;
use rmcp::model::{ClientCapabilities, InputRequest, InputRequests, InputResponses};
use serde_json::{Map, Value as Json, json};

/// As much as an output may have; clients have limits of their own.
const MOST_TOKENS: u32 = 16_384;

/// What a client can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its model.
    Model,
    /// Whoever fills in its forms.
    Form,
}

impl Way {
    /// The better of those that a client has.
    pub(crate) fn of(capabilities: &ClientCapabilities) -> Option<Self> {
        let forms = |elicits: &rmcp::model::ElicitationCapability| {
            // An empty one is from before there was anything but forms.
            elicits.form.is_some() || elicits.url.is_none()
        };
        if capabilities.sampling.is_some() {
            return Some(Self::Model);
        }
        capabilities.elicitation.as_ref().is_some_and(forms).then_some(Self::Form)
    }

    /// All requests as input, by their ids; none when one of them cannot be asked for in this way.
    pub(crate) fn ask(self, requests: &[AgentRequest]) -> Option<InputRequests> {
        let asked = |request: &AgentRequest| {
            let (method, params) = match self {
                Self::Model => ("sampling/createMessage", message(request)),
                Self::Form => ("elicitation/create", form(request)),
            };
            let request_id = request.id().to_string();
            let asked: InputRequest =
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
    let mut schema = request.schema.clone();
    let fields = schema.get_mut("properties").and_then(Json::as_object_mut);
    for field in fields.into_iter().flat_map(Map::values_mut) {
        type_choices(field);
    }
    json!({ "mode": "form", "message": message, "requestedSchema": schema })
}

/// A choice of texts says in a form what it is; elsewhere its values say so.
fn type_choices(field: &mut Json) {
    let Json::Object(field) = field else { return };
    let choices = field.get("enum").and_then(Json::as_array);
    if choices.is_some_and(|choices| choices.iter().all(Json::is_string)) {
        field.entry("type").or_insert_with(|| json!("string"));
    }
}

/// What a round brought.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answers {
    /// What was filled in, by the ids of the requests.
    pub(crate) filled: Map<String, Json>,
    /// What models said.
    pub(crate) said: BTreeMap<String, String>,
    /// Whether somebody would not answer: then nobody is asked again.
    pub(crate) refused: bool,
}

/// Reads the answers of a round.
pub(crate) fn read(responses: InputResponses) -> Answers {
    let mut answers = Answers::default();
    for (id, response) in responses {
        match answer(response) {
            Some(Answer::Filled(output)) => drop(answers.filled.insert(id, output)),
            Some(Answer::Said(text)) => drop(answers.said.insert(id, text)),
            None => answers.refused = true,
        }
    }
    answers
}

#[derive(Debug, PartialEq)]
enum Answer {
    /// In a form.
    Filled(Json),
    /// By a model.
    Said(String),
}

fn answer(mut response: Json) -> Option<Answer> {
    if let Some(action) = response.get("action") {
        let accepted = action == "accept";
        let content = response.get_mut("content").filter(|_| accepted);
        return content.map(|content| Answer::Filled(content.take()));
    }
    Some(Answer::Said(match response.get("content")? {
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
    fn answers_are_what_models_say_and_what_forms_hold() {
        let check = |response: Json, expected: Option<Answer>| {
            assert_eq!(answer(response.clone()), expected, "{response}");
        };
        let said = |content: Json| json!({ "role": "assistant", "model": "m", "content": content });
        let text = |text: &str| json!({ "type": "text", "text": text });
        check(said(text("no JSON")), Some(Answer::Said("no JSON".to_owned())));
        check(said(json!([text("[1,"), text("2]")])), Some(Answer::Said("[1,2]".to_owned())));
        let filled = Answer::Filled(json!({ "a": 1 }));
        check(json!({ "action": "accept", "content": { "a": 1 } }), Some(filled));
        check(json!({ "action": "accept" }), None);
        check(json!({ "action": "decline" }), None);
        check(json!({ "action": "cancel", "content": {} }), None);
        check(json!({ "unknown": true }), None);
    }

    #[test]
    fn a_client_is_asked_in_the_better_of_its_ways() {
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
