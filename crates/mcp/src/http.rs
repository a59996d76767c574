//! Any number of clients over HTTP, at `/mcp`.
//!
//! Whoever reaches the port may run programs, so it is this machine alone unless names are given under
//! which others may call. Pages of other origins are refused: a browser on this machine is not its user;
//! and so are other users of this machine.
//!
//! The caller's user is looked at first, before anything is read or kept. Then a bounded number of
//! connections is served, each as [`connection`] says.

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
use crate::load::Load;

pub use authority::{Authority, NotAnAuthority};

use authority::Names;
use connection::Door;
pub(crate) use sessions::SESSIONS;
use sessions::Sessions;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";

/// How long nobody is accepted after that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// How many connections are served at a time. Each takes a descriptor and some KB; with those of
/// running calls they stay below the 1,024 descriptors that a process usually may have.
pub(crate) const CONNECTIONS: usize = 128;

/// How many of them may be streams without an end, which clients open to listen: the rest is for calls.
pub(crate) const STREAMS: usize = SESSIONS;

/// A session of the older era ends when nothing comes for so long; a call may well take an hour.
const QUIET: Duration = Duration::from_hours(4);

/// The whole answer to another user of this machine.
const STRANGER: &str = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\n\
    connection: close\r\n\r\nforbidden: this server is another user's\n";

/// The whole answer to a connection that there is no room for.
const CROWDED: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n\
    the server is busy: too many connections\n";

/// Why nobody can be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Others could call, under any name.
    #[error("{0} can be reached from other machines, and every caller may run programs")]
    NotHere(SocketAddr),
    /// The port cannot be had.
    #[error("could not listen on {0}: {1}")]
    Port(SocketAddr, std::io::Error),
}

/// Listens, on this machine alone unless `names` say under which others may call.
pub async fn listen(address: SocketAddr, names: &[Authority]) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() && names.is_empty() {
        return Err(ListenError::NotHere(address));
    }
    TcpListener::bind(address).await.map_err(|error| ListenError::Port(address, error))
}

/// Serves clients until `ending` is cancelled.
pub async fn serve<S: ServerHandler + Clone>(
    server: S,
    listener: TcpListener,
    names: &[Authority],
    ending: CancellationToken,
) {
    let door = door(server, names, &ending);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // One that is gone before it is accepted is no reason to end.
                let Ok((stream, peer)) = accepted else {
                    // Without a free descriptor it would only be asked again and again.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                if !may_call(&stream, peer).await {
                    refuse(stream, STRANGER);
                    continue;
                }
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    refuse(stream, CROWDED);
                    continue;
                };
                let (door, ending) = (door.clone(), ending.clone());
                connections.spawn(async move {
                    connection::serve(stream, door, ending).await;
                    drop(place);
                });
            }
            Some(_) = connections.join_next() => {}
            () = ending.cancelled() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Looks at the caller's user. One connection is looked at after the other, so that callers who are
/// refused take nothing, however many there are.
async fn may_call(stream: &TcpStream, peer: SocketAddr) -> bool {
    let Ok(here) = stream.local_addr() else { return false };
    let looked = tokio::task::spawn_blocking(move || caller::may_call(peer, here)).await;
    looked.unwrap_or(false)
}

/// Closes a connection of which nothing was read, with an answer if that can be sent at once.
fn refuse(stream: TcpStream, answer: &str) {
    if let Ok(mut stream) = stream.into_std() {
        // It does not block. A caller that cannot take it is closed without an answer.
        stream.write_all(answer.as_bytes()).ok();
    }
}

pub(crate) fn door<S: ServerHandler + Clone>(
    server: S,
    names: &[Authority],
    ending: &CancellationToken,
) -> Door<S> {
    // Hosts and origins are checked before, by `Names`: the library takes what only begins like one.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(LONGEST)
        .with_cancellation_token(ending.child_token());
    let mut kept = LocalSessionManager::default();
    kept.session_config.keep_alive = Some(QUIET);
    let kept = Arc::new(kept);
    Door {
        service: StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&kept), config),
        names: Names::new(names),
        load: Load::default(),
        sessions: Sessions::new(kept),
        streams: Arc::new(Semaphore::new(STREAMS)),
    }
}
