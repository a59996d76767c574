//! The protocol in lines: one message each.
//!
//! Lines are read as strictly as any other request, and as deep; one that cannot be read is answered
//! under its id, because whoever sent it waits for that. The end of the input ends all calls.

use std::io;

use raymond_core::crayfish::reading::{self, Holds};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonObject, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::LONGEST;

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

/// What of a message says whom to answer, however little else of it can be read.
#[derive(Debug, Default, Deserialize)]
struct Address {
    #[serde(default)]
    id: Option<RequestId>,
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
    async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, ErrorData>>> {
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
                return Ok(Some(if overlong { Err(too_long()) } else { Ok(line) }));
            }
        }
    }
}

fn too_long() -> ErrorData {
    ErrorData::invalid_request(format!("a message has more than {LONGEST} bytes"), None)
}

/// The message in a line; otherwise what its sender is told.
fn message(line: &[u8]) -> Result<ClientJsonRpcMessage, (ErrorData, Option<RequestId>)> {
    // This skips what it does not want without a stack.
    let address = || serde_json::from_slice::<Address>(line).unwrap_or_default().id;
    let mut value = reading::read_as(Holds::Request, line).map_err(|why| {
        (ErrorData::parse_error(format!("this is not strict JSON: {why}"), None), address())
    })?;
    // What is deep stays out of the way: it is not read again.
    let arguments = value.pointer_mut("/params/arguments").filter(|given| given.is_object());
    let arguments =
        arguments.map(|given| std::mem::replace(given, Json::Object(JsonObject::new())));
    let mut message: ClientJsonRpcMessage = serde_json::from_value(value).map_err(|error| {
        (ErrorData::invalid_request(format!("this is no message: {error}"), None), address())
    })?;
    if let (Some(Json::Object(arguments)), JsonRpcMessage::Request(request)) =
        (arguments, &mut message)
    {
        put_back(&mut request.request, arguments);
    }
    Ok(message)
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
                Ok(Some(line)) => {
                    line.map_err(|error| (error, None)).and_then(|line| message(&line))
                }
                Ok(None) | Err(_) => {
                    self.ended.cancel();
                    return None;
                }
            };
            match read {
                Ok(message) => return Some(message),
                Err((error, id)) => {
                    self.send(JsonRpcMessage::error(error, id)).await.ok();
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Whatever was sent is written: whoever sent it has waited for that.
        Ok(())
    }
}
