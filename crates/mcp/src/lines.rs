//! The protocol in lines: one message each.
//!
//! One that cannot be read is answered as [`message`] says, and does no harm. The end of the input ends
//! all calls.

use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::LONGEST;
use crate::message::{self, Unread};

/// A connection in lines.
pub(crate) struct Lines<R> {
    reader: R,
    writer: mpsc::Sender<Written>,
    /// What was read of the line that is not complete yet.
    line: Vec<u8>,
    /// Whether the rest of this line is not kept any more.
    overlong: bool,
    ended: CancellationToken,
}

/// A line that is to be written, and who is told when it is.
type Written = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// How many lines may wait for a client that does not read.
const WAITING: usize = 16;

/// Writes lines, one after the other, until nobody has any.
async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Written>) {
    while let Some((line, told)) = lines.recv().await {
        let written = writer.write_all(&line).await;
        let written = match written {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        told.send(written).ok();
    }
}

impl<R: AsyncBufRead + Send + Unpin> Lines<R> {
    /// A connection whose end cancels `ended`.
    pub(crate) fn new(
        reader: R,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        ended: CancellationToken,
    ) -> Self {
        let (lines, waiting) = mpsc::channel(WAITING);
        // It ends with this connection.
        drop(tokio::spawn(write(writer, waiting)));
        let writer = lines;
        Self { reader, writer, line: Vec::new(), overlong: false, ended }
    }

    /// The next line, or none at the end. Whoever stops waiting loses nothing.
    async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, Unread>>> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
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
}

impl<R: AsyncBufRead + Send + Unpin> Transport<RoleServer> for Lines<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let (told, written) = oneshot::channel();
            writer.send((line, told)).await.map_err(|_| gone())?;
            written.await.map_err(|_| gone())?
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let read = match self.next().await {
                Ok(Some(Ok(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Some(line)) => line.and_then(|line| message::read(&line)),
                Ok(None) | Err(_) => {
                    self.ended.cancel();
                    return None;
                }
            };
            match read {
                Ok(message) => return Some(message),
                Err(unread) => {
                    self.send(unread.answer()).await.ok();
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Whatever was sent is written: whoever sent it has waited for that.
        Ok(())
    }
}
