//! Computes the answer to a request, before anything is sent. Pure except for the network fault
//! that it is given.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use raymond_core::prices::Usage;
use serde_json::Value;

use super::api::Api;
use super::conversation::{Form, ParsedRequest};
use super::http::Request;
use super::network::RequestFault;
use super::record::{RecordedRequest, RequestOutcome};
use super::reply::{Action, Failure, Message, Pause, Reply};
use super::script;
use crate::model::event::{Event, ReplyId};

/// The pauses and the contents of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) pauses: Vec<Pause>,
    pub(super) delivery: Delivery,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Delivery {
    Whole {
        status: u16,
        headers: Vec<(String, String)>,
        body: Value,
        outcome: RequestOutcome,
    },
    Stream {
        events: Vec<Event>,
        usage: Usage,
    },
    /// The server closes the connection in the middle of the events or of the body.
    CutStream(Vec<Event>),
    CutWhole(Value),
    Drop,
    Hang,
}

/// Returns the entry for the request log, and the answer.
pub(super) fn answer(request: &Request, fault: RequestFault) -> (RecordedRequest, Answer) {
    let api = Api::of(&request.method, &request.path);
    let body = serde_json::from_slice(&request.body);
    let parsed = body.as_ref().map(|body| api.read(body)).unwrap_or_default();
    let reply_id = ReplyId { id: hash_of(&request.body), model: parsed.model.clone() };
    let reply = match (&body, api) {
        (_, Api::Unknown) => Ok(fail(Failure::new(404).with_message("unknown path"))),
        (Err(error), _) => Err(format!("the body is not JSON: {error}")),
        (Ok(_), _) => script::reply(&parsed.conversation),
    };
    // Clients do not retry status 400, so a mistake in a script ends the test at once.
    let reply = reply.unwrap_or_else(|why| fail(Failure::new(400).with_message(why)));
    let answer = deliver(api, &reply_id, parsed.form, apply_fault(fault, reply));
    let recorded = recorded(request, api, parsed, body.unwrap_or_default());
    (recorded, answer)
}

fn fail(failure: Failure) -> Reply {
    Reply { pauses: Vec::new(), action: Action::Fail(failure) }
}

/// Replaces or truncates the reply, because a network fault comes before the model.
fn apply_fault(fault: RequestFault, mut reply: Reply) -> Reply {
    match fault {
        RequestFault::None => reply,
        RequestFault::Fail(failure) => fail(failure),
        RequestFault::Drop => Reply { pauses: Vec::new(), action: Action::Drop },
        RequestFault::Cut(events) => {
            if let Action::Send(message) = &mut reply.action {
                // Only a message can be cut. A script that fails anyway stays as it is.
                message.cut = Some(events);
            }
            reply
        }
    }
}

fn deliver(api: Api, reply_id: &ReplyId, form: Form, reply: Reply) -> Answer {
    let delivery = match reply.action {
        Action::Send(message) => speak(api, reply_id, form, &message),
        Action::Fail(failure) => Delivery::Whole {
            status: failure.status,
            body: api.error(&failure),
            outcome: RequestOutcome::Status(failure.status),
            headers: failure.headers,
        },
        Action::Drop => Delivery::Drop,
        Action::Hang => Delivery::Hang,
    };
    Answer { pauses: reply.pauses, delivery }
}

fn speak(api: Api, reply_id: &ReplyId, form: Form, message: &Message) -> Delivery {
    let usage = message.usage;
    match (form, message.cut) {
        (Form::Stream, None) => Delivery::Stream { events: api.events(message, reply_id), usage },
        (Form::Stream, Some(events)) => {
            let all = api.events(message, reply_id);
            Delivery::CutStream(all.into_iter().take(events).collect())
        }
        (Form::Whole, Some(_)) => Delivery::CutWhole(api.whole(message, reply_id)),
        (Form::Whole, None) => {
            // Counting tokens is free, so its reply must not add to the usage.
            let outcome = if api.is_answered_by_model() {
                RequestOutcome::Answered(usage)
            } else {
                RequestOutcome::Status(200)
            };
            let body = api.whole(message, reply_id);
            Delivery::Whole { status: 200, headers: Vec::new(), body, outcome }
        }
    }
}

fn recorded(request: &Request, api: Api, parsed: ParsedRequest, body: Value) -> RecordedRequest {
    RecordedRequest {
        index: 0,
        api,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: request.headers.clone(),
        body,
        model: parsed.model,
        system: parsed.system,
        conversation: parsed.conversation,
        tools: parsed.tools,
        outcome: RequestOutcome::Open,
    }
}

fn hash_of(bytes: &[u8]) -> String {
    // Unkeyed, so the same bytes give the same id in every process of one build.
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
