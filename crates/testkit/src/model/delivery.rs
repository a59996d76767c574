//! Sends an answer as a reply of hyper, which may break off.
//!
//! A reply that breaks off is a body that fails, because hyper then closes the connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use hyper::Response;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};

use super::answer::Delivery;
use super::event::Event;
use super::http::Closed;
use super::record::{Entry, RequestOutcome};

/// Returns the reply for hyper; an error closes the connection without a byte.
pub(super) async fn response(
    delivery: Delivery,
    mut entry: Entry,
) -> Result<Response<ReplyBody>, Closed> {
    match delivery {
        Delivery::Whole { status, headers, body, outcome } => {
            // Before the body is sent: a client that has the reply may ask for the record at once.
            entry.settle(outcome);
            let body = Bytes::from(body.to_string());
            let mut reply = json(status, body.len())?;
            for (name, value) in &headers {
                reply.headers_mut().append(HeaderName::try_from(name)?, value.try_into()?);
            }
            Ok(reply.map(|()| ReplyBody::new(vec![body], End::Complete, entry)))
        }
        Delivery::CutWhole(body) => {
            let body = Bytes::from(body.to_string());
            let reply = json(200, body.len())?;
            // With the length of the whole body in the head, so that the client notices the missing
            // half.
            let half = body.slice(..body.len().div_ceil(2));
            Ok(reply.map(|()| ReplyBody::new(vec![half], End::Cut, entry)))
        }
        Delivery::Stream { events, usage } => {
            let mut body = ReplyBody::new(parts(&events), End::LastChunk, entry);
            body.outcome = Some(RequestOutcome::Answered(usage));
            Ok(event_stream()?.map(|()| body))
        }
        Delivery::CutStream(events) => {
            Ok(event_stream()?.map(|()| ReplyBody::new(parts(&events), End::Cut, entry)))
        }
        Delivery::Drop => Err("the connection is dropped".into()),
        Delivery::Hang => std::future::pending().await,
    }
}

/// Returns the head of a reply with a known length.
fn json(status: u16, length: usize) -> hyper::http::Result<Response<()>> {
    let head = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    head.header(CONTENT_LENGTH, length).body(())
}

/// Returns the head of a reply in chunks.
fn event_stream() -> hyper::http::Result<Response<()>> {
    let head = Response::builder().header(CONTENT_TYPE, "text/event-stream");
    head.header(CACHE_CONTROL, "no-cache").body(())
}

fn parts(events: &[Event]) -> Vec<Bytes> {
    let part = |event: &Event| format!("event: {}\ndata: {}\n\n", event.name, event.data).into();
    events.iter().map(part).collect()
}

/// The body of a reply, sent part by part.
#[derive(Debug)]
pub(super) struct ReplyBody {
    parts: vec::IntoIter<Bytes>,
    end: End,
    /// Whether bytes may still be in the buffer of hyper.
    is_buffered: bool,
    entry: Entry,
    /// The outcome when the last part is sent.
    outcome: Option<RequestOutcome>,
}

/// How a body ends after its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client needs nothing more.
    Complete,
    /// The client needs the last chunk.
    LastChunk,
    /// The connection closes in the middle.
    Cut,
}

impl ReplyBody {
    fn new(parts: Vec<Bytes>, end: End, entry: Entry) -> Self {
        // A complete body needs no pause: nothing that follows can discard its only part.
        let is_buffered = end != End::Complete;
        Self { parts: parts.into_iter(), end, is_buffered, entry, outcome: None }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Closed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Closed>>> {
        // hyper writes its buffer when a body is not ready. Without this pause a cut would discard
        // the parts before it, and the outcome would be settled before they are sent.
        if std::mem::take(&mut self.is_buffered) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let part = self.parts.next();
        if self.parts.len() == 0
            && let Some(outcome) = self.outcome.take()
        {
            self.entry.settle(outcome);
        }
        Poll::Ready(match (part, self.end) {
            (Some(part), _) => {
                self.is_buffered = true;
                Some(Ok(Frame::data(part)))
            }
            (None, End::Cut) => Some(Err("the reply is cut".into())),
            (None, End::Complete | End::LastChunk) => {
                self.end = End::Complete;
                None
            }
        })
    }
}

// hyper drops the body early if the client has left.
impl Drop for ReplyBody {
    fn drop(&mut self) {
        if self.end == End::LastChunk {
            self.entry.settle(RequestOutcome::Broken);
        }
    }
}
