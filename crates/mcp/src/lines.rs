//! The protocol over stdio: one message per line.
//!
//! An unreadable line is answered with an error from [`message`] and does no harm. The end of the
//! input ends all calls.
//!
//! A request takes a [`RequestPermit`] until its answer is written. Without a free permit, further
//! requests are answered with an error, and reading continues, so that a full server still receives
//! cancellations. If the client does not read its answers either, reading stops. So memory is
//! bounded for any client.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions as _, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::LONGEST;
use crate::load::{self, LoadLimits, RequestPermit};
use crate::message::{self, Unread};

/// A connection with one message per line.
pub(crate) struct LineConnection<R> {
    reader: R,
    writer: mpsc::Sender<Written>,
    /// The beginning of a line that is not complete yet.
    line: Vec<u8>,
    /// Whether the current line is too long, so that the rest is skipped.
    overlong: bool,
    /// An answer that must be queued before the next line is read. It is stored here, because a
    /// read may be cancelled at any time.
    pending_answer: Option<ServerJsonRpcMessage>,
    load: LoadLimits,
    requests: HashMap<RequestId, Held>,
    ended: CancellationToken,
}

/// The place of a request that was read.
enum Held {
    /// Its answer is not written yet.
    Asked(Arc<RequestPermit>),
    /// It gets no answer. Its id cannot be reused while its handler still has the place.
    Cancelled(Weak<RequestPermit>),
}

/// A line to be written, and the receiver of the result.
type Written = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// How many lines may wait for a client that does not read.
const WAITING: usize = 16;

/// Writes lines, one after the other, until all senders are dropped.
async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Written>) {
    while let Some((line, done)) = lines.recv().await {
        let written = writer.write_all(&line).await;
        let written = match written {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        done.send(written).ok();
    }
}

impl<R: AsyncBufRead + Send + Unpin> LineConnection<R> {
    /// Returns a connection whose end cancels `ended`.
    pub(crate) fn new(
        reader: R,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        ended: CancellationToken,
    ) -> Self {
        let (lines, waiting) = mpsc::channel(WAITING);
        // The task ends with this connection.
        drop(tokio::spawn(write(writer, waiting)));
        let writer = lines;
        Self {
            reader,
            writer,
            line: Vec::new(),
            overlong: false,
            pending_answer: None,
            load: LoadLimits::default(),
            requests: HashMap::new(),
            ended,
        }
    }

    /// Returns the next line, or `None` at the end. It can be cancelled without losing data.
    async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, Unread>>> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            // The line is skipped to its end, because the next message begins only after the
            // newline.
            self.overlong |= self.line.len() + part.len() > LONGEST;
            if self.overlong {
                self.line.clear();
            } else {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(read.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let overlong = std::mem::take(&mut self.overlong);
                return Ok(Some(if overlong { Err(Unread::TooLong) } else { Ok(line) }));
            }
        }
    }

    /// Reads the message in a line, and gives a request its place.
    fn admit(&mut self, line: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
        let Some(id) = message::request_id(line) else { return self.unasked(line) };
        if !load::fits(line) {
            return Err(Unread::TooManyValues(Some(id)));
        }
        // The place is taken before the message is parsed, because parsing is what needs the
        // memory.
        let busy = |_| Unread::Busy(Some(id.clone()));
        let place = self.load.place().map_err(busy)?;
        place.reserve(line.len() + load::needed(line)).map_err(busy)?;
        let mut message = message::read(line)?;
        if let JsonRpcMessage::Request(request) = &mut message {
            self.forget_cancelled();
            // Answers and cancellations name a request by its id alone, so two open requests cannot
            // share one.
            if self.requests.contains_key(&id) {
                return Err(Unread::UsedId(id));
            }
            // The handler has a copy until it ends, which may be long after it was cancelled.
            request.request.extensions_mut().insert(Arc::clone(&place));
            self.requests.insert(id, Held::Asked(place));
        }
        Ok(message)
    }

    /// Reads a message that gets no answer.
    fn unasked(&mut self, line: &[u8]) -> Result<ClientJsonRpcMessage, Unread> {
        let message = message::read(line)?;
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(held) =
                cancelled.params.request_id.as_ref().and_then(|id| self.requests.get_mut(id))
            && let Held::Asked(place) = held
        {
            // Only a weak reference: the place is free as soon as the handler has dropped its copy.
            *held = Held::Cancelled(Arc::downgrade(place));
        }
        Ok(message)
    }

    fn forget_cancelled(&mut self) {
        self.requests.retain(|_, held| match held {
            Held::Asked(_) => true,
            Held::Cancelled(place) => place.strong_count() > 0,
        });
    }

    /// Queues the pending answer. It can be cancelled without losing it.
    async fn queue_pending_answer(&mut self) -> io::Result<()> {
        if self.pending_answer.is_none() {
            return Ok(());
        }
        let queued = self.writer.reserve().await;
        let queued = queued.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        if let Some(pending_answer) = self.pending_answer.take() {
            queued.send((line(&pending_answer)?, oneshot::channel().0));
        }
        Ok(())
    }
}

fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the id of the request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

impl<R: AsyncBufRead + Send + Unpin> Transport<RoleServer> for LineConnection<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        let held = answered(&message).and_then(|id| self.requests.remove(id));
        async move {
            // The place is released when the answer is written: until then it takes memory.
            let _held = held;
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let (done, written) = oneshot::channel();
            writer.send((line(&message)?, done)).await.map_err(|_| gone())?;
            written.await.map_err(|_| gone())?
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let next = match self.queue_pending_answer().await {
                Ok(()) => self.next().await,
                Err(error) => Err(error),
            };
            let read = match next {
                Ok(Some(Ok(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Some(line)) => line.and_then(|line| self.admit(&line)),
                Ok(None) | Err(_) => {
                    self.ended.cancel();
                    return None;
                }
            };
            match read {
                Ok(message) => return Some(message),
                Err(unread) => self.pending_answer = Some(unread.answer()),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Everything sent is written, because `send` waits for that.
        Ok(())
    }
}
