//! Lists failed agents, with reasons unless the console has printed them.

use raymond_core::failure::AgentFailure;
use raymond_core::ids::AgentId;
use raymond_core::view::Status;
use raymond_core::view::run_view::AgentRow;

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
        let all_told = self.failed_rows().all(|(agent, _, _)| self.said.failed.contains(agent));
        if all_told { Failures::Told } else { Failures::Untold }
    }

    /// Returns the failed agents by name.
    fn failed_rows(&self) -> impl Iterator<Item = (&AgentId, &AgentRow, &AgentFailure)> {
        self.view.agents().filter_map(|(id, row)| Some((id, row, row.failure.as_ref()?)))
    }

    /// Returns the failed agents, unless the first line of the summary names them all.
    pub(super) fn failed(&self) -> Vec<String> {
        let count = self.failed_rows().count();
        match (self.failures(), self.place.status) {
            (Failures::Told, Status::Failed) => return Vec::new(),
            (Failures::Told, _) if count == 0 => return Vec::new(),
            (Failures::Told, _) => return vec![self.row("failed", &self.failed_where("at"))],
            (Failures::Untold, _) => {}
        }
        // The first line of the summary contains the reason of a single failure already.
        let said = usize::from(self.place.status == Status::Failed && count == 1);
        let text = |(id, row, failure): (&AgentId, &AgentRow, &AgentFailure)| {
            let (at, why) = (row.place_name(), sanitized(&failure.to_string()));
            self.wrapped(&format!("  {id} failed at {at}: {why}"), 4)
        };
        let mut lines: Vec<String> =
            self.failed_rows().skip(said).take(MOST_FAILED).map(text).collect();
        if let Some(more @ 1..) = count.checked_sub(said + MOST_FAILED) {
            lines.push(format!("  … and {more} more"));
        }
        lines
    }

    /// `main_check1 at CHECK.md, main_check2 at CHECK.md and 3 more`
    pub(super) fn failed_where(&self, at: &str) -> String {
        let text = |(id, row, _): (&AgentId, &AgentRow, &AgentFailure)| {
            format!("{id} {at} {}", sanitized(&row.place_name()))
        };
        let named: Vec<String> = self.failed_rows().take(MOST_NAMED).map(text).collect();
        let more = match self.failed_rows().count().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", named.join(", "))
    }
}
