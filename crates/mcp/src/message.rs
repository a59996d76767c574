//! Messages, read as strictly as any other request, and as deep, whatever carries them.
//!
//! The protocol's own reader ends at 128 levels and lets a key stand twice. So the text is read here,
//! and the arguments, where the depth is, are kept out of its way: they are not read again. A message
//! that cannot be read is answered under its id, because whoever sent it waits for that.

use raymond_core::crayfish::reading::{self, Holds, Unreadable};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonObject, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value as Json;

use crate::LONGEST;
use crate::load::{self, Busy};

/// The longest `id` or `progressToken` of a request, in bytes. Both are copied for every message about
/// the request, and clients use numbers or UUIDs of 36 bytes.
const LONGEST_ID: usize = 1 << 10;

/// Why a message cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// There is too much of it.
    TooLong,
    /// It is not strict JSON.
    Text(Unreadable, Option<RequestId>),
    /// The protocol has no such message.
    Shape(serde_json::Error, Option<RequestId>),
    /// Its values would need too much memory.
    TooManyValues(Option<RequestId>),
    /// Its id is too long to be repeated.
    LongId(Option<RequestId>),
    /// Its id belongs to a request that is not answered yet.
    UsedId(RequestId),
    /// It did not arrive in time.
    Slow,
    /// The server has no room for it.
    Busy(Option<RequestId>),
}

impl Unread {
    /// What its sender is told.
    pub(crate) fn answer(&self) -> ServerJsonRpcMessage {
        let (error, id) = match self {
            Self::TooLong => {
                let message =
                    format!("a message has at most {LONGEST} bytes, and this one has more");
                (ErrorData::invalid_request(message, None), None)
            }
            Self::TooManyValues(id) => {
                let message = "could not read the message: its values need too much memory; \
                    pass large data in files";
                (ErrorData::invalid_request(message, None), id.clone())
            }
            Self::LongId(id) => {
                let message = format!("an `id` or `progressToken` has at most {LONGEST_ID} bytes");
                (ErrorData::invalid_request(message, None), id.clone())
            }
            Self::UsedId(id) => {
                let message = "the request before it with this `id` is not answered yet";
                (ErrorData::invalid_request(message, None), Some(id.clone()))
            }
            Self::Slow => {
                let message = "could not read the message: it did not arrive in time";
                (ErrorData::invalid_request(message, None), None)
            }
            Self::Busy(id) => (Busy.into(), id.clone()),
            Self::Text(why, id) => (
                ErrorData::parse_error(format!("this is not strict JSON: {why}"), None),
                id.clone(),
            ),
            Self::Shape(why, id) => {
                let message = format!("this is not a message of the protocol: {why}");
                (ErrorData::invalid_request(message, None), id.clone())
            }
        };
        JsonRpcMessage::error(error, id)
    }
}

/// What of a message says whom to answer, however little else of it can be read.
#[derive(Debug, Default, Deserialize)]
struct Address {
    #[serde(default)]
    id: Option<RequestId>,
    /// Notifications and requests have one; it is skipped without a copy.
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// The id of a request, found without reading the rest of the message. Notifications and responses have
/// none that is waited for.
pub(crate) fn request_id(text: &[u8]) -> Option<RequestId> {
    let address: Address = serde_json::from_slice(text).unwrap_or_default();
    address.method.and(address.id).filter(|id| !is_long(id))
}

fn address(text: &[u8]) -> Option<RequestId> {
    // This skips what it does not want without a stack.
    let address: Address = serde_json::from_slice(text).unwrap_or_default();
    address.id.filter(|id| !is_long(id))
}

fn is_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > LONGEST_ID)
}

/// The message in a text, with all that it holds.
pub(crate) fn read(text: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
    let (value, arguments) = divided(text)?;
    let mut message: ClientJsonRpcMessage =
        serde_json::from_value(value).map_err(|why| Unread::Shape(why, address(text)))?;
    if let (Some(arguments), JsonRpcMessage::Request(request)) = (arguments, &mut message) {
        put_back(&mut request.request, arguments);
    }
    Ok(message)
}

/// The message in a text, as a text that the reader of the protocol can read, and the arguments of a
/// call of a tool, which it has none of any more.
pub(crate) fn shallow(text: &[u8]) -> Result<(Vec<u8>, Option<JsonObject>), Unread> {
    let (mut value, arguments) = divided(text)?;
    let (arguments, others) = match value.get("method").and_then(Json::as_str) {
        Some("tools/call") => (arguments, None),
        Some(_) | None => (None, arguments),
    };
    if let (Some(others), Some(place)) = (others, value.pointer_mut(ARGUMENTS)) {
        *place = Json::Object(others);
    }
    let shallow = value.to_string().into_bytes();
    serde_json::from_slice::<ClientJsonRpcMessage>(&shallow)
        .map_err(|why| Unread::Shape(why, address(text)))?;
    Ok((shallow, arguments))
}

const ARGUMENTS: &str = "/params/arguments";

/// A message, and its arguments, in whose place is an empty object.
fn divided(text: &[u8]) -> Result<(Json, Option<JsonObject>), Unread> {
    if !load::fits(text) {
        return Err(Unread::TooManyValues(address(text)));
    }
    let mut value =
        reading::read_as(Holds::Request, text).map_err(|why| Unread::Text(why, address(text)))?;
    let ids = [value.get("id"), value.pointer("/params/_meta/progressToken")];
    if ids.iter().any(|id| id.and_then(Json::as_str).is_some_and(|id| id.len() > LONGEST_ID)) {
        return Err(Unread::LongId(address(text)));
    }
    let arguments = value.pointer_mut(ARGUMENTS).and_then(Json::as_object_mut);
    let arguments = arguments.map(std::mem::take);
    Ok((value, arguments))
}

/// The arguments that were taken out.
fn put_back(request: &mut ClientRequest, arguments: JsonObject) {
    match request {
        ClientRequest::CallToolRequest(call) => call.params.arguments = Some(arguments),
        ClientRequest::GetPromptRequest(get) => get.params.arguments = Some(arguments),
        ClientRequest::CustomRequest(custom) => {
            if let Some(Json::Object(params)) = &mut custom.params {
                params.insert("arguments".to_owned(), Json::Object(arguments));
            }
        }
        // No other has any.
        _ => {}
    }
}
