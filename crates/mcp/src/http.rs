//! Any number of clients over HTTP, at `/mcp`.
//!
//! Whoever reaches the port may run programs, so it is this machine alone unless names are given under
//! which others may call. Pages of other origins are refused: a browser on this machine is not its user;
//! and so are other users of this machine.

mod caller;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::LONGEST;
use crate::body::{Arguments, Message, Refusal};
use crate::message::Unread;

/// Where the protocol is spoken.
pub const PATH: &str = "/mcp";

/// How long nobody is accepted after that failed.
const PAUSE: Duration = Duration::from_millis(100);

const HERE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// A session of the older era ends when nothing comes for so long; a call may well take an hour.
const QUIET: Duration = Duration::from_hours(4);
/// How long answers that are on their way are waited for at the end.
const GRACE: Duration = Duration::from_secs(2);

type Service<S> = StreamableHttpService<S, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

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
pub async fn listen(address: SocketAddr, names: &[String]) -> Result<TcpListener, ListenError> {
    if !address.ip().is_loopback() && names.is_empty() {
        return Err(ListenError::NotHere(address));
    }
    TcpListener::bind(address).await.map_err(|error| ListenError::Port(address, error))
}

/// Serves clients until `ending` is cancelled.
pub async fn serve<S: ServerHandler + Clone>(
    server: S,
    listener: TcpListener,
    names: &[String],
    ending: CancellationToken,
) {
    let service = service(server, names, &ending);
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
                connections.spawn(connection((stream, peer), service.clone(), ending.clone()));
            }
            Some(_) = connections.join_next() => {}
            () = ending.cancelled() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

fn service<S: ServerHandler + Clone>(
    server: S,
    names: &[String],
    ending: &CancellationToken,
) -> Service<S> {
    let here = HERE.iter().map(|name| format!("http://{name}:*"));
    let given =
        names.iter().flat_map(|name| [format!("http://{name}:*"), format!("https://{name}:*")]);
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    hosts.extend(names.iter().cloned());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(here.chain(given))
        .enforce_origin_validation()
        .with_max_request_body_bytes(LONGEST)
        .with_cancellation_token(ending.child_token());
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(QUIET);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::new(sessions), config)
}

async fn connection<S: ServerHandler + Clone>(
    (stream, peer): (TcpStream, SocketAddr),
    service: Service<S>,
    ending: CancellationToken,
) {
    let Ok(here) = stream.local_addr() else { return };
    let looked = tokio::task::spawn_blocking(move || caller::may_call(peer, here)).await;
    let may_call = looked.unwrap_or(false);
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move {
            Ok::<_, Infallible>(if may_call { answer(&service, request).await } else { strange() })
        }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new());
    let connection = protocol.serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // However a client leaves: it is gone.
        _ = connection.as_mut() => return,
        () = ending.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(GRACE, connection).await.ok();
}

async fn answer<S: ServerHandler + Clone>(
    service: &Service<S>,
    mut request: Request<Incoming>,
) -> Answer {
    let found = request.uri().path() == PATH;
    if !found {
        // A method that the service does not know: nothing is done elsewhere.
        *request.method_mut() = Method::PUT;
    }
    let (arguments, refusal) = (Arguments::default(), Refusal::default());
    request.extensions_mut().insert(arguments.clone());
    let request = request.map(|body| Message::new(body, arguments, refusal.clone()));
    let mut response = service.handle(request).await;
    if let Some(unread) = refusal.take() {
        response = refused(&unread);
    }
    if !found {
        let (mut parts, _) = response.into_parts();
        parts.status = StatusCode::NOT_FOUND;
        parts.headers.remove(ALLOW);
        parts.headers.remove(CONTENT_LENGTH);
        let said = format!("not found: clients are served at {PATH}\n");
        return Response::from_parts(parts, Full::new(Bytes::from(said)).boxed());
    }
    response
}

/// What another user of this machine is told.
fn strange() -> Answer {
    let said = "forbidden: this server is another user's\n";
    let mut response = Response::new(Full::new(Bytes::from(said)).boxed());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

/// What the sender of a message that cannot be read is told.
fn refused(unread: &Unread) -> Answer {
    let answer = serde_json::to_vec(&unread.answer()).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(answer)).boxed());
    *response.status_mut() = match unread {
        Unread::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        Unread::Text(..) | Unread::Shape(..) => StatusCode::BAD_REQUEST,
    };
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
