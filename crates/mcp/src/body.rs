//! The body of an HTTP request, read by [`message`](crate::message) on its way to the protocol.
//!
//! It is read when the protocol asks for it, behind all that is checked before: who calls, from where,
//! with which headers. Arguments that are too deep for the protocol are left beside the request; they
//! come with it to whoever answers, and so does the [`Place`] of the request.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use rmcp::model::{Extensions, JsonObject};

use crate::LONGEST;
use crate::load::{self, Busy, Load, Place};
use crate::message::{self, Unread};

/// How long a body may take to arrive. The longest has 64 MiB, which is 9 Mbit/s; most have some KB.
pub(crate) const BODY_LIMIT: Duration = Duration::from_mins(1);

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

/// The place of a request, beside it: it is given back when the request is forgotten.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside(Arc<OnceLock<Arc<Place>>>);

type Text = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// A body that is read as a whole, and is one frame then.
pub(crate) struct Message(Option<Pin<Box<dyn Future<Output = Text> + Send>>>);

/// What a body leaves beside its request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaves {
    pub(crate) arguments: Arguments,
    pub(crate) place: Beside,
    pub(crate) refusal: Refusal,
}

impl Message {
    /// The message in a body; what is not for the protocol is left with the others.
    pub(crate) fn new(body: Incoming, load: Load, leaves: Leaves) -> Self {
        let read = async move {
            let read = match tokio::time::timeout(BODY_LIMIT, read(body, &load, &leaves)).await {
                Ok(read) => read,
                Err(_elapsed) => Err(Unread::Slow.into()),
            };
            match read {
                Ok(text) => Ok(text),
                Err(Failed::Connection(error)) => Err(error.into()),
                Err(Failed::Message(unread)) => {
                    leaves.refusal.0.put(Some(unread));
                    Err("the message cannot be read".into())
                }
            }
        };
        Self(Some(Box::pin(read)))
    }
}

/// Why there is no message.
enum Failed {
    /// The client is gone, or speaks no HTTP.
    Connection(hyper::Error),
    /// The client is answered.
    Message(Unread),
}

impl From<Unread> for Failed {
    fn from(unread: Unread) -> Self {
        Self::Message(unread)
    }
}

async fn read(body: Incoming, load: &Load, leaves: &Leaves) -> Result<Bytes, Failed> {
    let place = load.place().map_err(|Busy| Unread::Busy(None))?;
    let text = collect(body, &place).await?;
    // A large message takes long, and others have calls here.
    let reading = tokio::task::spawn_blocking(move || {
        if !load::fits(&text) {
            return Err(Unread::TooManyValues(message::request_id(&text)));
        }
        let reserved = place.reserve(load::needed(&text));
        reserved.map_err(|Busy| Unread::Busy(message::request_id(&text)))?;
        Ok((message::shallow(&text)?, place))
    });
    // The reader does not panic; if it did, its sender would be told as little as anybody.
    let ((text, kept), place) = reading.await.map_err(|_| Unread::Busy(None))??;
    leaves.arguments.0.put(kept);
    leaves.place.0.set(place).ok();
    Ok(text.into())
}

/// The bytes of a body. They are copied, because a client can send them in chunks of one byte, each of
/// which would keep a buffer of its own.
async fn collect(mut body: Incoming, place: &Place) -> Result<Vec<u8>, Failed> {
    let announced = body.size_hint().lower();
    if announced > LONGEST as u64 {
        return Err(Unread::TooLong.into());
    }
    let mut text = Vec::new();
    let mut reserved = 0;
    while let Some(frame) = body.frame().await {
        // Trailers have nothing for this server.
        let Ok(data) = frame.map_err(Failed::Connection)?.into_data() else { continue };
        if text.len() + data.len() > LONGEST {
            return Err(Unread::TooLong.into());
        }
        text.extend_from_slice(&data);
        // Memory is reserved as it is used, not as it is announced: announcing costs a client nothing.
        if text.capacity() > reserved {
            let more = place.reserve(text.capacity() - reserved);
            more.map_err(|Busy| Unread::Busy(None))?;
            reserved = text.capacity();
        }
    }
    Ok(text)
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
