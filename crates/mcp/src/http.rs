//! The HTTP server at `/mcp`, for any number of clients.
//!
//! Every caller may run programs, so only this machine can connect, unless the user names hosts for
//! others. Pages of other origins are refused, because a browser on this machine runs code of
//! strangers, and so are other users of this machine.
//!
//! The caller's user is checked first, before anything is read or stored. Then a bounded number of
//! connections is served; see [`connection`].

mod authority;
mod caller;
pub(crate) mod connection;
mod held;
mod sessions;
mod stall;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::LONGEST;
use crate::load::LoadLimits;

pub use authority::{Authority, NotAnAuthority};

use authority::Names;
use connection::Endpoint;
pub(crate) use sessions::SESSIONS;
use sessions::Sessions;

/// The path of the protocol.
pub const PATH: &str = "/mcp";

/// The pause after a failed accept: without a free descriptor it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many connections are served at a time. Each takes a descriptor and a few KB; with those of
/// running calls they stay below the usual limit of 1,024 descriptors.
pub(crate) const CONNECTIONS: usize = 128;

/// How many connections may be endless streams on which clients listen: the rest is for calls.
pub(crate) const STREAMS: usize = SESSIONS;

/// How long an idle session of the older protocol version is kept; a call may take an hour.
const SESSION_IDLE_LIMIT: Duration = Duration::from_hours(4);

/// The answer to another user of this machine.
const FORBIDDEN_ANSWER: &str = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\n\
    connection: close\r\n\r\nforbidden: this server is another user's\n";

/// The answer to a connection beyond the limit.
const BUSY_ANSWER: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    the server is busy: too many connections\n";

/// The reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Other machines could connect, under any name.
    #[error("{0} can be reached from other machines, and every caller may run programs")]
    NotHere(SocketAddr),
    /// The port cannot be bound.
    #[error("could not listen on {0}: {1}")]
    Port(SocketAddr, std::io::Error),
}

/// Listens, on this machine only unless `names` are given for others.
pub async fn listen(address: SocketAddr, names: &[Authority]) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() && names.is_empty() {
        return Err(ListenError::NotHere(address));
    }
    TcpListener::bind(address).await.map_err(|error| ListenError::Port(address, error))
}

pub async fn serve<S: ServerHandler + Clone>(
    server: S,
    listener: TcpListener,
    names: &[Authority],
    ending: CancellationToken,
) {
    let endpoint = endpoint(server, names, &ending);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client that disconnects before it is accepted must not end the server.
                let Ok((stream, peer)) = accepted else {
                    // Without a free descriptor the next attempt would fail at once.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                if !may_call(&stream, peer).await {
                    refuse(stream, FORBIDDEN_ANSWER);
                    continue;
                }
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    refuse(stream, BUSY_ANSWER);
                    continue;
                };
                let (endpoint, ending) = (endpoint.clone(), ending.clone());
                connections.spawn(async move {
                    connection::serve(stream, endpoint, ending).await;
                    drop(place);
                });
            }
            Some(_) = connections.join_next() => {}
            () = ending.cancelled() => break,
        }
    }
    // Refuse new connections at once, then wait for those that are served.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

// Connections are checked one after the other, so that refused callers take no resources, however
// many they are.
async fn may_call(stream: &TcpStream, peer: SocketAddr) -> bool {
    let Ok(here) = stream.local_addr() else { return false };
    let looked = tokio::task::spawn_blocking(move || caller::may_call(peer, here)).await;
    looked.unwrap_or(false)
}

/// Closes a connection that was not read, with an answer if it can be sent at once.
fn refuse(stream: TcpStream, answer: &str) {
    if let Ok(mut stream) = stream.into_std() {
        // The socket does not block: a caller that cannot receive the answer is closed without one.
        stream.write_all(answer.as_bytes()).ok();
    }
}

pub(crate) fn endpoint<S: ServerHandler + Clone>(
    server: S,
    names: &[Authority],
    ending: &CancellationToken,
) -> Endpoint<S> {
    // `Names` checks hosts and origins, because the library accepts names that only begin like one.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(LONGEST)
        .with_cancellation_token(ending.child_token());
    let mut kept = LocalSessionManager::default();
    kept.session_config.keep_alive = Some(SESSION_IDLE_LIMIT);
    let kept = Arc::new(kept);
    Endpoint {
        service: StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&kept), config),
        names: Names::new(names),
        load: LoadLimits::default(),
        sessions: Sessions::new(kept),
        streams: Arc::new(Semaphore::new(STREAMS)),
    }
}
