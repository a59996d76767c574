//! The reasons for which a transition is not taken now.
use crate::failure::AgentFailure;
use crate::protocol::Fault;

#[derive(Debug)]
pub(crate) enum Blocked {
    /// The message is at fault: the agent is reminded.
    Fault(Fault),
    /// The agent fails, because no other message would help.
    Failed(AgentFailure),
    /// The fork has to wait until workers end.
    Held,
}
