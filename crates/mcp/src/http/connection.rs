//! One connection of an allowed caller: its requests, one after the other.
//!
//! A request is refused as early as possible: first by its head, then by the free room, then by its
//! body. Every wait for the client has a limit, except streams on which the client only listens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::PATH;
use super::authority::{Authority, Names};
use super::held::Held;
use super::sessions::Sessions;
use super::stall::Stall;
use crate::body::{RequestExtras, WholeBody};
use crate::load::{Busy, LoadLimits};
use crate::message::Unread;

/// How long the head of a request may take to arrive, from its first byte or since the last answer.
/// Idle connections are closed after it, too.
const HEAD_LIMIT: Duration = Duration::from_secs(30);

/// The longest head of a request, in bytes. Clients send less than 1 KiB; other servers accept 8 to
/// 64.
const LONGEST_HEAD: usize = 64 << 10;

/// How long pending answers may take when the server ends.
const GRACE: Duration = Duration::from_secs(2);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The state that the connections of a server share.
#[derive(Clone)]
pub(crate) struct Endpoint<S> {
    pub(super) service: StreamableHttpService<S, LocalSessionManager>,
    pub(super) names: Names,
    pub(super) load: LoadLimits,
    pub(super) sessions: Sessions,
    pub(super) streams: Arc<Semaphore>,
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve<S, C>(stream: C, endpoint: Endpoint<S>, ending: CancellationToken)
where
    S: ServerHandler + Clone,
    C: AsyncRead + AsyncWrite + Unpin,
{
    let answer = service_fn(move |request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(answer(&endpoint, request).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(LONGEST_HEAD);
    let connection = protocol.serve_connection(TokioIo::new(Stall::new(stream)), answer);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // The result does not matter: the client has disconnected.
        _ = connection.as_mut() => return,
        () = ending.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(GRACE, connection).await.ok();
}

async fn answer<S: ServerHandler + Clone>(
    endpoint: &Endpoint<S>,
    request: Request<Incoming>,
) -> HttpResponse {
    if let Err(Refused { status, message }) =
        check_names(&endpoint.names, request.uri(), request.headers())
    {
        return plain(status, message);
    }
    if request.uri().path() != PATH {
        let text = format!("not found: clients are served at {PATH}\n");
        return plain(StatusCode::NOT_FOUND, &text);
    }
    let stream = match listening(endpoint, request.method()) {
        Ok(stream) => stream,
        Err(Busy) => return unread(&Unread::Busy(None)),
    };
    // Before the request is handled, so that its session is not closed as idle meanwhile.
    let session = header(request.headers(), &SESSION).and_then(|id| endpoint.sessions.opened(id));
    let ends_session = request.method() == Method::DELETE;
    let named = header(request.headers(), &SESSION).map(str::to_owned);
    if ends_session
        && let Some(named) = &named
        && !endpoint.sessions.exists(named).await
    {
        return plain(StatusCode::NOT_FOUND, "not found: there is no such session\n");
    }
    let mut response = handle(endpoint, request).await;
    // The official clients take 202 for a failure.
    if ends_session && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::OK;
    }
    if let Some(begun) = header(response.headers(), &SESSION)
        && !endpoint.sessions.begun(begun).await
    {
        return unread(&Unread::Busy(None));
    }
    // Both end with the body, not with this function, because the body may be a stream of hours.
    response.map(|body| Held::new(body, (stream, session)).boxed())
}

/// Returns a place for a stream on which the client only listens.
fn listening<S>(
    endpoint: &Endpoint<S>,
    method: &Method,
) -> Result<Option<tokio::sync::OwnedSemaphorePermit>, Busy> {
    // Only a `GET` opens a stream without an end; every other answer ends with its request.
    if method != Method::GET {
        return Ok(None);
    }
    Arc::clone(&endpoint.streams).try_acquire_owned().map(Some).map_err(|_| Busy)
}

async fn handle<S: ServerHandler + Clone>(
    endpoint: &Endpoint<S>,
    mut request: Request<Incoming>,
) -> HttpResponse {
    let extras = RequestExtras::default();
    request.extensions_mut().insert(extras.arguments.clone());
    request.extensions_mut().insert(extras.place.clone());
    let refusal = extras.refusal.clone();
    let load = endpoint.load.clone();
    let response =
        endpoint.service.handle(request.map(|body| WholeBody::new(body, load, extras))).await;
    refusal.take().map_or(response, |refused| unread(&refused))
}

/// A request that is refused by its head.
struct Refused {
    status: StatusCode,
    message: &'static str,
}

/// Refuses requests that a page of a web site can cause: another origin, or its own name for this
/// host.
fn check_names(names: &Names, target: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    let malformed = |message| Refused { status: StatusCode::BAD_REQUEST, message };
    let forbidden = |message| Refused { status: StatusCode::FORBIDDEN, message };
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(malformed("bad request: expected one `Host` header\n"));
    };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
        return Err(malformed("bad request: `Host` is not a name or an address\n"));
    };
    // A request in absolute form, as sent to a proxy, names its host twice.
    let same = |target: &str| target.parse().as_ref() == Ok(&host);
    if !target.authority().is_none_or(|authority| same(authority.as_str())) {
        return Err(malformed("bad request: `Host` is not the host of the request target\n"));
    }
    if !names.allow(&host) {
        let message = "forbidden: `Host` is not a name of this server; see --allow-host\n";
        return Err(forbidden(message));
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(()),
        (Some(one), None) if one.to_str().is_ok_and(|origin| names.allow_origin(origin)) => Ok(()),
        (Some(_), _) => Err(forbidden("forbidden: pages of this `Origin` may not call\n")),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn plain(status: StatusCode, text: &str) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// Returns the answer to a message that cannot be read.
fn unread(unread: &Unread) -> HttpResponse {
    let answer = serde_json::to_vec(&unread.answer()).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(answer)).boxed());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let status = match unread {
        Unread::TooLong | Unread::TooManyValues(_) => StatusCode::PAYLOAD_TOO_LARGE,
        Unread::Text(..) | Unread::Shape(..) | Unread::LongId(_) | Unread::UsedId(_) => {
            StatusCode::BAD_REQUEST
        }
        Unread::Slow => {
            // The rest of the body would be slow, too.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            StatusCode::REQUEST_TIMEOUT
        }
        Unread::Busy(_) => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    *response.status_mut() = status;
    response
}
