//! One client over a pair of streams, usually stdin and stdout of this process.

use std::sync::Arc;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio_util::sync::CancellationToken;

use crate::lines::LineConnection;
use crate::{Server, ToolHost};

#[derive(Debug, thiserror::Error)]
#[error("the client could not be served: {0}")]
pub struct ServeError(String);

/// Returns stdin and stdout of this process.
pub fn streams() -> (impl AsyncRead + Send + Unpin, impl AsyncWrite + Send + Unpin) {
    rmcp::transport::stdio_pipes()
}

/// Serves one client until it closes its stream or `ending` is cancelled. Then it cancels every
/// call and waits for its end.
pub async fn serve(
    host: Arc<dyn ToolHost>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    ending: CancellationToken,
) -> Result<(), ServeError> {
    let server = Server::new(host, ending.clone());
    let lines = LineConnection::new(BufReader::new(reader), writer, ending.clone());
    let served = serve_server_with_ct(server.clone(), lines, ending.clone()).await;
    let outcome = match served {
        Ok(running) => {
            running.waiting().await.map(drop).map_err(|error| ServeError(error.to_string()))
        }
        // A client that leaves before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(error) => Err(ServeError(error.to_string())),
    };
    // Also after an error: the programs of running calls must end before this process does.
    ending.cancel();
    server.idle().await;
    outcome
}
