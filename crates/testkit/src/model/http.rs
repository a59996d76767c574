//! The part of HTTP/1.1 that clients of a model use: requests with a length or in chunks, whole
//! replies, and replies in chunks.
//!
//! Connections are kept alive. Heads and bodies have size limits.

use std::fmt::Write as _;
use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A connection, and the bytes that were read beyond the last request.
pub(super) struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, ahead: Vec::new() }
    }

    /// Reads the next request; `None` if the client closed the connection.
    pub(super) async fn request(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(end) = find(&self.ahead, b"\r\n\r\n") {
                break end;
            }
            if self.ahead.len() > MAX_HEAD_BYTES {
                return Err(malformed("a head without an end"));
            }
            if self.more().await? == 0 {
                return Ok(None);
            }
        };
        let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
        let mut request = parse(&head)?;
        if request.header("expect").is_some() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let chunked =
            request.header("transfer-encoding").is_some_and(|how| how.contains("chunked"));
        request.body = if chunked {
            self.chunks().await?
        } else {
            let length = request.header("content-length").map_or(Ok(0), str::parse);
            self.bytes(length.map_err(|_| malformed("a length that is not a number"))?).await?
        };
        Ok(Some(request))
    }

    /// Returns when the client has closed the connection.
    pub(super) async fn closed(&self) {
        match self.stream.peek(&mut [0]).await {
            Ok(0) | Err(_) => {}
            // The next request has arrived early; the client waits for the current reply.
            Ok(_) => std::future::pending().await,
        }
    }

    /// Sends a reply with a known length.
    pub(super) async fn whole(&mut self, reply: &WholeReply<'_>) -> io::Result<()> {
        let body = reply.body.to_string();
        let mut head = format!("HTTP/1.1 {} -\r\n", reply.status);
        let length = body.len().to_string();
        let usual = [("content-type", "application/json"), ("content-length", length.as_str())];
        let further = reply.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in usual.into_iter().chain(further) {
            write!(head, "{name}: {value}\r\n").map_err(io::Error::other)?;
        }
        head.push_str("\r\n");
        if reply.part != SentPart::Head {
            head.push_str(&body);
        }
        let sent = match reply.part {
            SentPart::Half => &head.as_bytes()[..head.len() - body.len() / 2],
            SentPart::All | SentPart::Head => head.as_bytes(),
        };
        self.stream.write_all(sent).await
    }

    /// Sends the head of a reply in chunks.
    pub(super) async fn begin_chunks(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\n\
                    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await
    }

    pub(super) async fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
    }

    pub(super) async fn end_chunks(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n").await
    }

    async fn more(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.ahead).await
    }

    async fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > MAX_BODY_BYTES {
            return Err(malformed("a body that is too long"));
        }
        while self.ahead.len() < length {
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.ahead.drain(..length).collect())
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.ahead, b"\r\n") {
                let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.ahead.len() > MAX_HEAD_BYTES || self.more().await? == 0 {
                return Err(malformed("a chunk without a length"));
            }
        }
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let length = usize::from_str_radix(line.split(';').next().unwrap_or_default(), 16);
            let length = length.map_err(|_| malformed("a chunk without a length"))?;
            if length > MAX_BODY_BYTES - body.len() {
                return Err(malformed("a body that is too long"));
            }
            body.extend(self.bytes(length).await?);
            while !self.line().await?.is_empty() {}
            if length == 0 {
                return Ok(body);
            }
        }
    }
}

/// A reply that is one JSON value.
pub(super) struct WholeReply<'a> {
    pub(super) status: u16,
    pub(super) headers: &'a [(String, String)],
    pub(super) body: &'a Value,
    pub(super) part: SentPart,
}

/// How much of a reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentPart {
    All,
    /// Reply to `HEAD`.
    Head,
    /// The connection closes in the middle.
    Half,
}

fn parse(head: &[u8]) -> io::Result<Request> {
    let head = std::str::from_utf8(head).map_err(|_| malformed("a head that is not UTF-8"))?;
    let mut lines = head.trim_end().lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(malformed("a head without method, path and version"));
    };
    if !version.starts_with("HTTP/1.") {
        return Err(malformed("another version"));
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers = lines.map(header).collect::<Option<_>>();
    Ok(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers.ok_or_else(|| malformed("a header without a colon"))?,
        body: Vec::new(),
    })
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
