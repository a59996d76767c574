//! Messages, read as strictly and as deep as requests on the command line.
//!
//! The protocol's own reader stops at 128 levels and accepts repeated keys. So the text is read
//! here, and the deep part, the arguments, is kept apart and not read again. An unreadable message
//! is answered under its id, because its sender waits for that.

use raymond_core::crayfish::reading::{self, Holds, UnreadableJson};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonObject, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value as Json;

use crate::LONGEST;
use crate::load::{self, Busy};

/// The longest `id` or `progressToken` of a request, in bytes. Both are copied into every message
/// about the request. Clients use numbers or UUIDs of 36 bytes.
const LONGEST_ID: usize = 1 << 10;

/// The reason why a message cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is longer than [`LONGEST`].
    TooLong,
    Text(UnreadableJson, Option<RequestId>),
    /// It is not a message of the protocol.
    Shape(serde_json::Error, Option<RequestId>),
    TooManyValues(Option<RequestId>),
    LongId(Option<RequestId>),
    /// Its id belongs to a request that is not answered yet.
    UsedId(RequestId),
    Slow,
    Busy(Option<RequestId>),
}

impl Unread {
    /// Returns the answer to the sender.
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

/// The fields that name the recipient of an answer, even if the rest cannot be read.
#[derive(Debug, Default, Deserialize)]
struct Address {
    #[serde(default)]
    id: Option<RequestId>,
    /// Requests and notifications have one; it is skipped without a copy.
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// Returns the id of a request, without reading the rest of the message. Notifications and
/// responses have no id that needs an answer.
pub(crate) fn request_id(text: &[u8]) -> Option<RequestId> {
    let address: Address = serde_json::from_slice(text).unwrap_or_default();
    address.method.and(address.id).filter(|id| !is_long(id))
}

fn address(text: &[u8]) -> Option<RequestId> {
    // Unknown fields are skipped without recursion, so a deep message is safe here.
    let address: Address = serde_json::from_slice(text).unwrap_or_default();
    address.id.filter(|id| !is_long(id))
}

fn is_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > LONGEST_ID)
}

/// Reads a message with all its content.
pub(crate) fn read(text: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
    let (value, arguments) = divided(text)?;
    let mut message: ClientJsonRpcMessage =
        serde_json::from_value(value).map_err(|why| Unread::Shape(why, address(text)))?;
    if let (Some(arguments), JsonRpcMessage::Request(request)) = (arguments, &mut message) {
        put_back(&mut request.request, arguments);
    }
    Ok(message)
}

/// Returns the message as a text that the protocol's reader can read, and the arguments of a tool
/// call, which are removed from the text.
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
    // Parsed here as well, so that a wrong message is answered under its id.
    serde_json::from_slice::<ClientJsonRpcMessage>(&shallow)
        .map_err(|why| Unread::Shape(why, address(text)))?;
    Ok((shallow, arguments))
}

const ARGUMENTS: &str = "/params/arguments";

/// Splits a message from its arguments, which are replaced by an empty object.
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

/// Puts the arguments back into a request.
fn put_back(request: &mut ClientRequest, arguments: JsonObject) {
    match request {
        ClientRequest::CallToolRequest(call) => call.params.arguments = Some(arguments),
        ClientRequest::GetPromptRequest(get) => get.params.arguments = Some(arguments),
        ClientRequest::CustomRequest(custom) => {
            if let Some(Json::Object(params)) = &mut custom.params {
                params.insert("arguments".to_owned(), Json::Object(arguments));
            }
        }
        // No other request has arguments.
        _ => {}
    }
}
