//! What happens to requests whatever the script says: it is not the model that fails, but the way to it.

use super::reply::Failure;

/// The condition of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkState {
    /// Every request is answered as the script says.
    Normal,
    /// Requests fail with this error.
    Failing(Failure, FaultDuration),
    /// Connections are closed without a byte when a request has arrived.
    Dropping(FaultDuration),
    /// Replies are cut after so many events.
    Cutting(usize, FaultDuration),
    /// Nothing listens any more. The port stays reserved.
    Refusing,
}

/// How long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultDuration {
    /// Until another weather is set.
    UntilChanged,
    /// For so many requests, then it is calm.
    NextRequests(u32),
}

/// What the weather does to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestFault {
    None,
    Fail(Failure),
    Drop,
    Cut(usize),
}

impl NetworkState {
    /// What happens to the request that has arrived.
    pub(super) fn next_fault(&mut self) -> RequestFault {
        let (fault, duration) = match self {
            Self::Normal => return RequestFault::None,
            // The connection is older than the weather.
            Self::Refusing => return RequestFault::Drop,
            Self::Failing(failure, duration) => (RequestFault::Fail(failure.clone()), duration),
            Self::Dropping(duration) => (RequestFault::Drop, duration),
            Self::Cutting(events, duration) => (RequestFault::Cut(*events), duration),
        };
        match duration {
            FaultDuration::UntilChanged => fault,
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
