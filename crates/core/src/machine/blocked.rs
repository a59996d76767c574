//! Why a transition is not taken now.

use crate::failure::Failure;
use crate::protocol::Fault;

/// Why a transition is not taken now.
#[derive(Debug)]
pub(crate) enum Blocked {
    /// The message has to be put right.
    Fault(Fault),
    /// The agent cannot go on.
    Failed(Failure),
    /// Workers have to end first.
    Held,
}
