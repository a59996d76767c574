//! The common types of the checks before a client starts.
//!
//! Each client checks its own options and returns a [`ClientProblem`] for each mistake, so that
//! mistakes cost nothing. `registry` lists the checks of all clients.

use raymond_core::budget::Micros;
use raymond_core::run::Permissions;
use raymond_core::run::turn_spec::Extras;

use crate::contract::PromptRequest;

/// The reason for which a client cannot be used as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProblem {
    /// The key of the state that causes the problem, or `None` if the machine causes it.
    pub key: Option<&'static str>,
    pub message: String,
    /// How to fix the problem.
    pub remedy: String,
}

/// The options that a state requests from its client.
#[derive(Debug, Clone, Copy)]
pub struct RequestedOptions<'a> {
    /// The tools that the client may use without asking.
    pub permissions: &'a Permissions,
    /// The reasoning effort; `None` leaves the choice to the client.
    pub effort: Option<&'a str>,
    /// Further options that a state passes to the client.
    pub extras: &'a Extras,
    /// The model; `None` leaves the choice to the client.
    pub model: Option<&'a str>,
    /// The budget share; `None` means no limit.
    pub cap: Option<Micros>,
}

impl<'a> RequestedOptions<'a> {
    /// Returns the options of a request.
    pub(crate) fn of(request: &'a PromptRequest) -> Self {
        let PromptRequest { permissions, effort, extras, model, .. } = request;
        let (effort, model) = (effort.as_deref(), model.as_deref());
        Self { permissions, effort, extras, model, cap: request.started.cap }
    }
}
