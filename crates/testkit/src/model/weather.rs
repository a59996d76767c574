//! What happens to requests whatever the script says: it is not the model that fails, but the way to it.

use super::reply::Failure;

/// The condition of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weather {
    /// Every request is answered as the script says.
    Calm,
    /// Requests fail with this error.
    Failing(Failure, Span),
    /// Connections are closed without a byte when a request has arrived.
    Dropping(Span),
    /// Replies are cut after so many events.
    Cutting(usize, Span),
    /// Nothing listens any more. The port stays reserved.
    Refusing,
}

/// How long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Until another weather is set.
    Lasting,
    /// For so many requests, then it is calm.
    Next(u32),
}

/// What the weather does to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blow {
    None,
    Fail(Failure),
    Drop,
    Cut(usize),
}

impl Weather {
    /// What happens to the request that has arrived.
    pub(super) fn blow(&mut self) -> Blow {
        let (blow, span) = match self {
            Self::Calm => return Blow::None,
            // The connection is older than the weather.
            Self::Refusing => return Blow::Drop,
            Self::Failing(failure, span) => (Blow::Fail(failure.clone()), span),
            Self::Dropping(span) => (Blow::Drop, span),
            Self::Cutting(events, span) => (Blow::Cut(*events), span),
        };
        match span {
            Span::Lasting => blow,
            Span::Next(0) => {
                *self = Self::Calm;
                Blow::None
            }
            Span::Next(left) => {
                *left -= 1;
                blow
            }
        }
    }
}
