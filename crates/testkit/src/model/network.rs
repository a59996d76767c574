//! Faults between client and model, independent of the script.

use super::reply::Failure;

/// The state of the network and the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkState {
    /// The script decides every reply.
    Normal,
    /// Requests fail with this error.
    Failing(Failure, FaultDuration),
    /// The server closes the connection after a request, without a byte.
    Dropping(FaultDuration),
    /// Replies end after this many events.
    Cutting(usize, FaultDuration),
    /// The server does not listen, but keeps the port reserved.
    Refusing,
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultDuration {
    /// Until another state is set.
    UntilChanged,
    /// For this many requests, then the network is normal again.
    NextRequests(u32),
}

/// The fault of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestFault {
    None,
    Fail(Failure),
    Drop,
    Cut(usize),
}

impl NetworkState {
    /// Returns the fault of the request that has arrived, and counts it.
    pub(super) fn next_fault(&mut self) -> RequestFault {
        let (fault, duration) = match self {
            Self::Normal => return RequestFault::None,
            // The connection was opened before the server stopped to listen.
            Self::Refusing => return RequestFault::Drop,
            Self::Failing(failure, duration) => (RequestFault::Fail(failure.clone()), duration),
            Self::Dropping(duration) => (RequestFault::Drop, duration),
            Self::Cutting(events, duration) => (RequestFault::Cut(*events), duration),
        };
        match duration {
            FaultDuration::UntilChanged => fault,
            // The request after the last faulty one: the network is normal for it already.
            FaultDuration::NextRequests(0) => {
                *self = Self::Normal;
                RequestFault::None
            }
            FaultDuration::NextRequests(left) => {
                *left -= 1;
                fault
            }
        }
    }
}
