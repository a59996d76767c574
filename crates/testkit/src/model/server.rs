//! The listener, and one task for each connection.
//!
//! The number of connections is limited; further clients wait. A socket that never listens reserves
//! the port, so that no other process takes it while connections are refused.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answer::answer;
use super::delivery::{ReplyBody, response};
use super::http::{Closed, Request};
use super::network::NetworkState;
use super::record::RequestLog;
use super::reply::Pause;

const MAX_CONNECTIONS: usize = 128;
const BACKLOG: u32 = 256;
/// How often the server looks for the file of `model: wait`.
const GATE_POLL_INTERVAL: Duration = Duration::from_millis(2);

pub(super) struct Shared {
    pub(super) network: Mutex<NetworkState>,
    pub(super) record: RequestLog,
    /// The directory of the files of `model: wait`.
    pub(super) gates: PathBuf,
}

/// A new network state, and the channel that confirms it.
pub(super) type Change = (NetworkState, std::sync::mpsc::Sender<io::Result<()>>);

pub(super) struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Reserves the port.
    _reserved: TcpSocket,
    listener: Option<TcpListener>,
}

impl Server {
    /// Listens on a local port; 0 means any free port.
    pub(super) fn open(port: u16, shared: Arc<Shared>) -> io::Result<Self> {
        // Only local addresses: the model answers anything, and no other machine may reach it.
        let reserved = socket(SocketAddr::from(([127, 0, 0, 1], port)))?;
        let address = reserved.local_addr()?;
        let listener = Some(listen(address)?);
        Ok(Self { shared, address, _reserved: reserved, listener })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the sender of `changes` is dropped.
    pub(super) async fn run(mut self, mut changes: mpsc::UnboundedReceiver<Change>) {
        let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Some((network, done)) => {
                        // The caller may have stopped waiting for the confirmation.
                        done.send(self.set(network)).ok();
                    }
                    None => return,
                },
                stream = accept(self.listener.as_ref()) => {
                    let Ok(stream) = stream else { continue };
                    let (shared, free) = (self.shared.clone(), free.clone());
                    connections.spawn(async move {
                        // Inside the task, so that the loop can still accept connections and change
                        // the network.
                        let Ok(_place) = free.acquire().await else { return };
                        // A broken connection ends only its own task.
                        serve(stream, &shared).await.ok();
                    });
                }
                // The set keeps the result of a finished task until it is taken.
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
    }

    fn set(&mut self, network: NetworkState) -> io::Result<()> {
        match (&network, &self.listener) {
            // Only a closed listener makes the kernel refuse connections; the reserved socket keeps
            // the port.
            (NetworkState::Refusing, _) => self.listener = None,
            (_, None) => self.listener = Some(listen(self.address)?),
            (_, Some(_)) => {}
        }
        *self.shared.network.lock().unwrap_or_else(PoisonError::into_inner) = network;
        Ok(())
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Two sockets share the port: the one that reserves it, and the one that listens.
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    socket(address)?.listen(BACKLOG)
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        // Without a listener no connection can arrive, but the loop must still handle changes.
        None => std::future::pending().await,
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> Result<(), Closed> {
    // Otherwise the kernel may combine small events, and clients would see them late.
    stream.set_nodelay(true)?;
    let service = service_fn(|request| respond(request, shared));
    // Without the date, equal requests have equal replies.
    let mut protocol = http1::Builder::new();
    let protocol = protocol.auto_date_header(false);
    Ok(protocol.serve_connection(TokioIo::new(stream), service).await?)
}

/// Answers one request. hyper drops the future if the client leaves.
async fn respond(
    request: hyper::Request<Incoming>,
    shared: &Shared,
) -> Result<Response<ReplyBody>, Closed> {
    let request = Request::read(request).await?;
    // After the whole body has arrived, so that a request that the client gave up uses up no fault.
    let fault = shared.network.lock().unwrap_or_else(PoisonError::into_inner).next_fault();
    let (recorded, answer) = answer(&request, fault);
    // Before the pauses: a test that waits for a request must see it while the reply still waits.
    let entry = shared.record.enter(recorded);
    pause(&answer.pauses, shared).await;
    response(answer.delivery, entry).await
}

async fn pause(pauses: &[Pause], shared: &Shared) {
    for pause in pauses {
        match pause {
            Pause::Latency(time) => sleep(*time).await,
            Pause::Gate(name) => {
                let gate = shared.gates.join(name);
                // If the write fails, the test that waits for the file times out and reports it.
                fs::write(shared.gates.join(format!("{name}.waiting")), "").ok();
                while !gate.exists() {
                    sleep(GATE_POLL_INTERVAL).await;
                }
            }
        }
    }
}

/// Starts a server on its own thread, which runs until the sender of `changes` is dropped.
pub(super) fn start(
    port: u16,
    shared: Arc<Shared>,
    changes: mpsc::UnboundedReceiver<Change>,
) -> io::Result<(SocketAddr, std::thread::JoinHandle<()>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (opened, address) = oneshot::channel();
    let thread = std::thread::Builder::new().name("model".into()).spawn(move || {
        runtime.block_on(async move {
            match Server::open(port, shared) {
                Ok(server) => {
                    opened.send(Ok(server.address())).ok();
                    server.run(changes).await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        });
    })?;
    // Waits for the bind, so that the address is known and clients can connect when this returns.
    let address = address.blocking_recv().map_err(io::Error::other)??;
    Ok((address, thread))
}
