//! The body of an HTTP request, checked by [`message`](crate::message) before the protocol reads
//! it.
//!
//! It is read when the protocol asks for it, after the checks of caller, address and headers.
//! Arguments that are too deep for the protocol's own reader are passed beside the request, and so
//! is the [`RequestPermit`] of the request.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use rmcp::model::{Extensions, JsonObject};

use crate::LONGEST;
use crate::load::{self, Busy, LoadLimits, RequestPermit};
use crate::message::{self, Unread};

/// How long a body may take to arrive. The longest has 64 MiB, so this needs 9 Mbit/s; most have a
/// few KB.
pub(crate) const BODY_LIMIT: Duration = Duration::from_mins(1);

/// A slot for one value that the body reader passes to the request handler.
#[derive(Debug)]
struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T> Slot<T> {
    fn put(&self, value: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// The arguments of a request, passed beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyArguments(Slot<JsonObject>);

impl BodyArguments {
    /// Takes the arguments that were passed beside a request, if it came over HTTP.
    pub(crate) fn of(extensions: &Extensions) -> Option<JsonObject> {
        extensions.get::<hyper::http::request::Parts>()?.extensions.get::<Self>()?.0.take()
    }
}

/// The reason why a body was refused, if it was.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyRefusal(Slot<Unread>);

impl BodyRefusal {
    pub(crate) fn take(&self) -> Option<Unread> {
        self.0.take()
    }
}

/// The place of a request, passed beside it: it is released when the request is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct PermitSlot(Arc<OnceLock<Arc<RequestPermit>>>);

type Text = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A body that is read as a whole and then is one frame.
pub(crate) struct WholeBody(Option<Pin<Box<dyn Future<Output = Text> + Send>>>);

/// The values that a body passes beside its request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestExtras {
    pub(crate) arguments: BodyArguments,
    pub(crate) place: PermitSlot,
    pub(crate) refusal: BodyRefusal,
}

impl WholeBody {
    /// Returns the message in a body; the other values go into `extras`.
    pub(crate) fn new(body: Incoming, load: LoadLimits, extras: RequestExtras) -> Self {
        let read = async move {
            let read = match tokio::time::timeout(BODY_LIMIT, read(body, &load, &extras)).await {
                Ok(read) => read,
                Err(_elapsed) => Err(Unread::Slow.into()),
            };
            match read {
                Ok(text) => Ok(text),
                Err(Failed::Connection(error)) => Err(error.into()),
                Err(Failed::Message(unread)) => {
                    extras.refusal.0.put(Some(unread));
                    Err("the message cannot be read".into())
                }
            }
        };
        Self(Some(Box::pin(read)))
    }
}

/// The reason why there is no message.
enum Failed {
    /// The client has disconnected, or sent invalid HTTP.
    Connection(hyper::Error),
    /// The client receives an answer.
    Message(Unread),
}

impl From<Unread> for Failed {
    fn from(unread: Unread) -> Self {
        Self::Message(unread)
    }
}

async fn read(body: Incoming, load: &LoadLimits, extras: &RequestExtras) -> Result<Bytes, Failed> {
    // Before the first byte of the body is read: its id is not known yet, so the refusal has none.
    let place = load.place().map_err(|Busy| Unread::Busy(None))?;
    let text = collect(body, &place).await?;
    // On a blocking thread, because reading a large message would delay other calls.
    let reading = tokio::task::spawn_blocking(move || {
        if !load::fits(&text) {
            return Err(Unread::TooManyValues(message::request_id(&text)));
        }
        let reserved = place.reserve(load::needed(&text));
        reserved.map_err(|Busy| Unread::Busy(message::request_id(&text)))?;
        Ok((message::shallow(&text)?, place))
    });
    // The reader does not panic; if it did, the sender would get an answer without details.
    let ((text, kept), place) = reading.await.map_err(|_| Unread::Busy(None))??;
    extras.arguments.0.put(kept);
    extras.place.0.set(place).ok();
    Ok(text.into())
}

// The bytes are copied, because a client can send them in chunks of one byte, and each would keep a
// buffer of its own.
async fn collect(mut body: Incoming, place: &RequestPermit) -> Result<Vec<u8>, Failed> {
    let announced = body.size_hint().lower();
    // Refused before anything is read. A body without a length is counted below.
    if announced > LONGEST as u64 {
        return Err(Unread::TooLong.into());
    }
    let mut text = Vec::new();
    let mut reserved = 0;
    while let Some(frame) = body.frame().await {
        // Trailers are not used.
        let Ok(data) = frame.map_err(Failed::Connection)?.into_data() else { continue };
        if text.len() + data.len() > LONGEST {
            return Err(Unread::TooLong.into());
        }
        text.extend_from_slice(&data);
        // Memory is reserved when it is used, not when it is announced, because announcing is free.
        if text.capacity() > reserved {
            let more = place.reserve(text.capacity() - reserved);
            more.map_err(|Busy| Unread::Busy(None))?;
            reserved = text.capacity();
        }
    }
    Ok(text)
}

impl Body for WholeBody {
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
