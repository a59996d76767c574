//! The body of an HTTP request, read by [`message`](crate::message) on its way to the protocol.
//!
//! It is read when the protocol asks for it, behind all that is checked before: who calls, from where,
//! with which headers. Arguments that are too deep for the protocol are left beside the request; they
//! come with it to whoever answers.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use rmcp::model::{Extensions, JsonObject};

use crate::LONGEST;
use crate::message::{self, Unread};

/// Something that one side leaves for another, once.
#[derive(Debug)]
struct Left<T>(Arc<Mutex<Option<T>>>);

impl<T> Left<T> {
    fn put(&self, value: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Clone for Left<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Left<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// The arguments of a request, beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments(Left<JsonObject>);

impl Arguments {
    /// Those that came beside a request, if it came over HTTP.
    pub(crate) fn of(extensions: &Extensions) -> Option<JsonObject> {
        extensions.get::<hyper::http::request::Parts>()?.extensions.get::<Self>()?.0.take()
    }
}

/// Why a body was refused, when it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusal(Left<Unread>);

impl Refusal {
    /// What was wrong with the body.
    pub(crate) fn take(&self) -> Option<Unread> {
        self.0.take()
    }
}

type Text = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A body that is read as a whole, and is one frame then.
pub(crate) struct Message(Option<Pin<Box<dyn Future<Output = Text> + Send>>>);

impl Message {
    /// The message in a body; what is not for the protocol is left with the others.
    pub(crate) fn new(body: Incoming, arguments: Arguments, refusal: Refusal) -> Self {
        let read = async move {
            let read = match Limited::new(body, LONGEST).collect().await {
                // A large one takes long, and others have calls here.
                Ok(text) => {
                    let text = text.to_bytes();
                    tokio::task::spawn_blocking(move || message::shallow(&text)).await?
                }
                Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLong),
                Err(error) => return Err(error),
            };
            let (text, kept) = read.map_err(|unread| {
                refusal.0.put(Some(unread));
                "the message cannot be read"
            })?;
            arguments.0.put(kept);
            Ok(text.into())
        };
        Self(Some(Box::pin(read)))
    }
}

impl Body for Message {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(reading) = &mut self.0 else { return Poll::Ready(None) };
        let read = std::task::ready!(reading.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(Some(read.map(Frame::data)))
    }
}
