//! From a request to what is sent back, before anything is sent: pure but for the weather.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use raymond_core::prices::Usage;
use serde_json::Value;

use super::api::Api;
use super::conversation::{Asked, Form};
use super::http::Request;
use super::record::{Fate, Seen};
use super::reply::{Act, Failure, Message, Pause, Reply};
use super::script;
use super::weather::Blow;
use crate::model::event::{Event, Stamp};

/// What is sent, and after what.
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
        fate: Fate,
    },
    Stream {
        events: Vec<Event>,
        usage: Usage,
    },
    /// The connection is closed in the middle: of the events, or of the body.
    CutStream(Vec<Event>),
    CutWhole(Value),
    Drop,
    Hang,
}

/// What the request shows, for the record, and the answer to it.
pub(super) fn answer(request: &Request, blow: Blow) -> (Seen, Answer) {
    let api = Api::of(&request.method, &request.path);
    let body = serde_json::from_slice(&request.body);
    let asked = body.as_ref().map(|body| api.read(body)).unwrap_or_default();
    let stamp = Stamp { id: digest(&request.body), model: asked.model.clone() };
    let reply = match (&body, api) {
        (_, Api::Unknown) => Ok(fail(Failure::new(404).saying("there is nothing here"))),
        (Err(error), _) => Err(format!("the body is not JSON: {error}")),
        (Ok(_), _) => script::reply(&asked.conversation),
    };
    let reply = reply.unwrap_or_else(|why| fail(Failure::new(400).saying(why)));
    let answer = deliver(api, &stamp, asked.form, under(blow, reply));
    let seen = seen(request, api, asked, body.unwrap_or_default());
    (seen, answer)
}

fn fail(failure: Failure) -> Reply {
    Reply { pauses: Vec::new(), act: Act::Fail(failure) }
}

/// The weather comes before the model.
fn under(blow: Blow, mut reply: Reply) -> Reply {
    match blow {
        Blow::None => reply,
        Blow::Fail(failure) => fail(failure),
        Blow::Drop => Reply { pauses: Vec::new(), act: Act::Drop },
        Blow::Cut(events) => {
            if let Act::Speak(message) = &mut reply.act {
                message.cut = Some(events);
            }
            reply
        }
    }
}

fn deliver(api: Api, stamp: &Stamp, form: Form, reply: Reply) -> Answer {
    let delivery = match reply.act {
        Act::Speak(message) => speak(api, stamp, form, &message),
        Act::Fail(failure) => Delivery::Whole {
            status: failure.status,
            body: api.error(&failure),
            fate: Fate::Status(failure.status),
            headers: failure.headers,
        },
        Act::Drop => Delivery::Drop,
        Act::Hang => Delivery::Hang,
    };
    Answer { pauses: reply.pauses, delivery }
}

fn speak(api: Api, stamp: &Stamp, form: Form, message: &Message) -> Delivery {
    let usage = message.usage;
    match (form, message.cut) {
        (Form::Stream, None) => Delivery::Stream { events: api.events(message, stamp), usage },
        (Form::Stream, Some(events)) => {
            let all = api.events(message, stamp);
            Delivery::CutStream(all.into_iter().take(events).collect())
        }
        (Form::Whole, Some(_)) => Delivery::CutWhole(api.whole(message, stamp)),
        (Form::Whole, None) => {
            let fate = if api.is_of_a_model() { Fate::Answered(usage) } else { Fate::Status(200) };
            let body = api.whole(message, stamp);
            Delivery::Whole { status: 200, headers: Vec::new(), body, fate }
        }
    }
}

fn seen(request: &Request, api: Api, asked: Asked, body: Value) -> Seen {
    Seen {
        index: 0,
        api,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: request.headers.clone(),
        body,
        model: asked.model,
        system: asked.system,
        conversation: asked.conversation,
        tools: asked.tools,
        fate: Fate::Open,
    }
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
