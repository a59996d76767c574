//! The state that a message belongs to: it resolves the names of a message, and applies the policy.

use raymond_core::ids::StateName;
use raymond_core::protocol::TagName;

use super::history::Fault;
use super::names;
use super::policy;
use super::workflow::{State, Workflow};

pub(super) struct MessageContext<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) state: &'a State,
    pub(super) cwd: &'a str,
}

impl MessageContext<'_> {
    pub(super) fn state(&self, name: &str) -> Result<StateName, Fault> {
        names::resolve(self.workflow, name).ok_or(Fault::Unresolved)
    }

    /// Resolves the directory of `cd`; `None` without a `cd`.
    pub(super) fn directory(&self, cd: Option<&String>) -> Result<Option<String>, Fault> {
        let Some(cd) = cd else {
            return Ok(None);
        };
        let found = names::directory(self.workflow, self.cwd, cd);
        found.map(Some).ok_or(Fault::NoDirectory)
    }

    pub(super) fn permit(
        &self,
        tag: TagName,
        target: Option<&StateName>,
        then: Option<&StateName>,
    ) -> Result<(), Fault> {
        if policy::is_allowed(self.state, tag, target, then) {
            Ok(())
        } else {
            Err(Fault::Forbidden)
        }
    }
}
