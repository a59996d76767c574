//! Lists failed agents, with reasons unless the console has printed them.

use raymond_core::agent::{Agent, AgentStatus};
use raymond_core::ids::AgentId;
use raymond_core::view::{Status, place};

use super::Summary;
use crate::sanitize::sanitized;

/// Most failed agents that are listed with a reason.
const MOST_FAILED: usize = 20;
/// Most failed agents that are named again after the console printed their reasons.
const MOST_NAMED: usize = 6;

/// Whether the console has printed the reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failures {
    Told,
    Untold,
}

impl Summary<'_> {
    pub(super) fn failures(&self) -> Failures {
        let all_told = self.head.run.failed.iter().all(|agent| self.said.failed.contains(agent));
        if all_told { Failures::Told } else { Failures::Untold }
    }

    /// Returns the failed agents, unless the first line of the summary names them all.
    pub(super) fn failed(&self) -> Vec<String> {
        let run = &self.head.run;
        match (self.failures(), self.place.status) {
            (Failures::Told, Status::Failed) => return Vec::new(),
            (Failures::Told, _) if run.failed.is_empty() => return Vec::new(),
            (Failures::Told, _) => return vec![self.row("failed", &self.failed_where("at"))],
            (Failures::Untold, _) => {}
        }
        // The first line of the summary contains the reason of a single failure already.
        let said = usize::from(self.place.status == Status::Failed && run.failed.len() == 1);
        let text = |id: &AgentId| match run.agents.get(id) {
            Some(agent @ Agent { status: AgentStatus::Failed { failure, .. }, .. }) => {
                let (at, why) = (place(run, agent), sanitized(&failure.to_string()));
                let line = format!("  {id} failed at {at}: {why}");
                Some(self.wrapped(&line, 4))
            }
            Some(_) | None => None,
        };
        let mut lines: Vec<String> =
            run.failed.iter().skip(said).take(MOST_FAILED).filter_map(text).collect();
        if let Some(more @ 1..) = run.failed.len().checked_sub(said + MOST_FAILED) {
            lines.push(format!("  … and {more} more"));
        }
        lines
    }

    /// `main_check1 at CHECK.md, main_check2 at CHECK.md and 3 more`
    pub(super) fn failed_where(&self, at: &str) -> String {
        let run = &self.head.run;
        let text = |id: &AgentId| match run.agents.get(id) {
            Some(agent) => format!("{id} {at} {}", sanitized(&place(run, agent))),
            None => id.to_string(),
        };
        let named: Vec<String> = run.failed.iter().take(MOST_NAMED).map(text).collect();
        let more = match run.failed.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", named.join(", "))
    }
}
