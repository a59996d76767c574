//! The summary at the end of a run: outcome, path, results, denied tools, cost and next command.
//!
//! A line without content is omitted.

mod failed;

use anstyle::AnsiColor;
use raymond_core::capability::Capability;
use raymond_core::ids::{AgentId, BackendName, StateName};
use raymond_core::time::Span;
use raymond_core::value::Value;
use raymond_core::view::costs::percent;
use raymond_core::view::words::preview;
use raymond_core::view::{
    Denied, RunView, Status, Totals, collected, gave_up, is_final, is_of_caller,
};
use raymond_engine::driver::Head;
use unicode_width::UnicodeWidthStr as _;

use super::{self as report, uncertain};
use crate::backends;
use crate::console::{AlreadyShown, LineLayout, whole, wrapped};
use crate::denied;
use crate::sanitize::{elapsed, pad, sanitized, truncate_end};
use crate::status_summary::StatusSummary;
use failed::Failures;

/// Most results that are listed; further ones are counted.
const MOST_RESULTS: usize = 10;

/// The input of a summary.
pub(super) struct Summary<'a> {
    pub(super) head: &'a Head,
    pub(super) view: &'a RunView,
    pub(super) place: &'a StatusSummary,
    /// The facts that the console has printed already.
    pub(super) said: &'a AlreadyShown,
    /// The columns for text that may be truncated; commands never are.
    pub(super) columns: usize,
    /// The column at which lines end.
    pub(super) edge: usize,
}

impl Summary<'_> {
    /// Returns the lines for the chosen verbosity.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.first()];
        if !self.said.output.quiet {
            lines.extend(self.failed());
            lines.extend(self.path().map(|path| self.row("path", &path)));
            let results = self.results();
            lines.extend(results.iter().zip(TITLES).map(|(result, title)| self.row(title, result)));
            lines.extend(self.denied().map(|denied| self.row("denied", &denied)));
            lines.push(self.row("look", &self.next_commands()));
            lines.push(self.last());
            return lines;
        }
        match (self.place.status, self.failures()) {
            // Failures are listed even if the run continued without the failed agents.
            (Status::Completed, _) if collected(&self.head.run) > 0 => {}
            // Quiet: the exit code or an earlier line reports this already.
            (Status::Completed, _) | (Status::Failed, Failures::Told) => return Vec::new(),
            (Status::Failed, Failures::Untold) => lines.extend(self.failed()),
            (
                Status::Running
                | Status::Waiting(..)
                | Status::OverBudget
                | Status::Cancelled
                | Status::Stopped
                | Status::Interrupted,
                _,
            ) => lines.push(self.last()),
        }
        lines
    }

    /// `completed in 4m 12s: main and 3 workers ended with a result`
    fn first(&self) -> String {
        let StatusSummary { status, why, .. } = self.place;
        let totals = &self.view.totals;
        // Since the start or the last resume, because the time between two owners is not work.
        let took = Span(totals.updated_at.0.saturating_sub(totals.driven_since.0));
        let took = match status {
            Status::Completed => format!(" in {}", elapsed(took)),
            Status::Failed | Status::OverBudget | Status::Stopped => {
                format!(" after {}", elapsed(took))
            }
            Status::Running | Status::Waiting(..) | Status::Cancelled | Status::Interrupted => {
                String::new()
            }
        };
        let style = match status {
            Status::Completed => AnsiColor::Green,
            Status::Failed | Status::Cancelled => AnsiColor::Red,
            Status::Running
            | Status::Waiting(..)
            | Status::OverBudget
            | Status::Stopped
            | Status::Interrupted => AnsiColor::Yellow,
        };
        let style = style.on_default().bold();
        let why = match (status, self.failures(), self.head.run.failed.len()) {
            (Status::Failed, Failures::Told, 1) => self.failed_where("failed at"),
            (Status::Failed, Failures::Told, several @ 2..) => {
                format!("{several} agents failed: {}", self.failed_where("at"))
            }
            // Each failed agent has a line of its own below.
            (Status::Failed, Failures::Untold, several @ 2..) => format!("{several} agents failed"),
            _ => why.clone(),
        };
        let status = status.to_string();
        // Wrapped without the style, whose escape sequences would count as columns.
        let line = self.wrapped(&format!("{status}{took}: {why}"), 2);
        match line.strip_prefix(&status) {
            Some(rest) => format!("{style}{status}{style:#}{rest}"),
            None => line,
        }
    }

    /// Returns the commands that show more; `why` comes first if the reason has scrolled away.
    fn next_commands(&self) -> String {
        let why = match (self.place.status, self.failures()) {
            (Status::Failed, Failures::Told) => Some("why"),
            _ => None,
        };
        let commands = why.into_iter().chain(["show", "logs"]);
        let command = |word: &str| whole(&format!("raymond {word} {}", self.head.run.id));
        commands.map(command).collect::<Vec<_>>().join(" · ")
    }

    /// Returns the path of `main`, if it has more than one state.
    fn path(&self) -> Option<String> {
        let path = &self.view.totals.path;
        let fitted = || sanitized(&path.fitted(|text| text.width() <= self.room()));
        (path.visits() > 1).then(fitted)
    }

    /// Returns the results of workers, such as `main_check1 parser: 2 mistakes`.
    fn results(&self) -> Vec<String> {
        // Stdout shows the result of `main` only if the run completed. A reason for which `main`
        // failed is in the first line.
        let is_shown = |agent: &AgentId| {
            let run = &self.head.run;
            self.place.status != Status::Completed && run.ended.contains_key(agent)
        };
        let results = self.head.run.results();
        let results = results.filter(|(agent, _)| !is_main(agent) || is_shown(agent));
        let mut results: Vec<(&AgentId, String)> =
            results.filter_map(|(agent, result)| Some((agent, first_line(result)?))).collect();
        // By number and not by text, so that worker 10 follows worker 9.
        results.sort_by_key(|(agent, _)| counters(agent));
        let more = results.len().saturating_sub(MOST_RESULTS);
        results.truncate(MOST_RESULTS);
        let widest = results.iter().map(|(agent, _)| agent.as_str().width()).max().unwrap_or(0);
        let line = |(agent, result): &(&AgentId, String)| {
            let line = format!("{}  {}", pad(agent.as_str(), widest), sanitized(result));
            truncate_end(&line, self.room()).into_owned()
        };
        let mut lines: Vec<String> = results.iter().map(line).collect();
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        lines
    }

    /// `6 tool calls (cargo test, git commit); allow them: raymond resume R --allow …`
    fn denied(&self) -> Option<String> {
        let RunView { run, settings, totals, .. } = self.view;
        let denied = Denied::of(&totals.denied, &settings.permissions.allow)?;
        let (named, flags) =
            (sanitized(&denied::named(&denied)), sanitized(&denied::allow_flags(denied.rules())));
        // If the next command allows the tools already, the flags are not repeated.
        let offered = flags.is_empty() || self.place.next_command.contains(&flags);
        if offered {
            return Some(named);
        }
        let them = if denied.calls == 1 { "it" } else { "them" };
        let states: Vec<&str> = totals.denied_in.iter().map(StateName::as_str).collect();
        let written = || {
            let key = whole(&sanitized(&denied::allow_key(&denied)));
            format!("{key} in the frontmatter of {}", sanitized(&states.join(", ")))
        };
        let resume = |flags: &str| whole(&format!("raymond resume {run} {flags}"));
        Some(match (lists(totals), self.place.status.is_unfinished()) {
            (Lists::OfAll, true) => format!("{named}; allow {them}: {}", resume(&flags)),
            (Lists::OfAll, false) => {
                format!("{named}; to allow {them} next time: {}", whole(&flags))
            }
            (Lists::OfSome, true) => {
                format!("{named}; allow {them}: {}, then {}", written(), resume("--with-current"))
            }
            (Lists::OfSome, false) => {
                format!("{named}; to allow {them} next time: {}", written())
            }
        })
    }

    /// `spent $9.87 of $10.00 (list prices); REVIEW took 61 %; to continue: raymond resume R
    /// --budget 25`
    fn last(&self) -> String {
        let next_command = whole(&self.place.next_command);
        let next = match self.place.status {
            Status::Completed => None,
            Status::Cancelled => Some(format!("to start again: {next_command}")),
            Status::Failed if is_final(&self.head.run) && is_of_caller(&self.head.run) => {
                Some(format!("to start again: {next_command}"))
            }
            Status::Failed if gave_up(&self.head.run) => {
                Some(format!("to start again: {next_command}"))
            }
            Status::Running
            | Status::Waiting(..)
            | Status::Failed
            | Status::OverBudget
            | Status::Stopped
            | Status::Interrupted => Some(match &self.place.needed_edit {
                // Without the edit, the command would fail in the same way again.
                Some(edit) => format!("to continue, {edit}, then: {next_command}"),
                None => format!("to continue: {next_command}"),
            }),
        };
        let parts: Vec<String> = self.money().into_iter().chain(next).collect();
        self.wrapped(&parts.join("; "), 2)
    }

    fn money(&self) -> Vec<String> {
        let cap = self.view.cap().map(|cap| format!(" of {cap}")).unwrap_or_default();
        let spent = self.view.spent;
        let list = report::basis(self.view);
        // In a run of the tool the caller answers all agent steps, so Raymond spends nothing.
        if self.view.program.is_answered_by_caller() {
            return Vec::new();
        }
        let mut parts = vec![format!("spent {spent}{cap}{list}")];
        if let Some((state, amount)) = self.view.totals.most_expensive() {
            parts.push(format!("{} took {} %", state.stem(), percent(amount, spent)));
        }
        parts.extend(uncertain(self.view));
        parts
    }

    /// Returns the columns behind a title.
    fn room(&self) -> usize {
        self.columns.saturating_sub(INDENT)
    }

    /// `  title    text`
    fn row(&self, title: &str, text: &str) -> String {
        self.wrapped(&format!("  {title:<9}{text}"), INDENT)
    }

    fn wrapped(&self, line: &str, indent: usize) -> String {
        wrapped(line, LineLayout { edge: self.edge, taken: 0, indent })
    }
}

/// Which backends of a run support lists of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lists {
    OfAll,
    /// Some backends do not: flags for the whole run would be refused, so states must name the
    /// tools.
    OfSome,
}

fn lists(totals: &Totals) -> Lists {
    let catalog = backends::catalog();
    let keeps = |name: &BackendName| {
        catalog.of(name).is_none_or(|abilities| abilities.contains(&Capability::Permissions))
    };
    let mut asked = totals.may_ask.iter().chain(totals.backends.keys());
    if asked.all(keeps) { Lists::OfAll } else { Lists::OfSome }
}

// Two blanks and a title of nine columns, as in `row`.
const INDENT: usize = 11;

/// Only the first result has a title.
const TITLES: [&str; MOST_RESULTS + 1] = ["results", "", "", "", "", "", "", "", "", "", ""];

fn is_main(agent: &AgentId) -> bool {
    *agent == AgentId::main()
}

/// Returns the counters in a name, which order workers as their parents forked them.
fn counters(agent: &AgentId) -> Vec<u32> {
    let numbers = agent.as_str().split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Returns the first line of a result, if it is not empty.
fn first_line(result: &Value) -> Option<String> {
    match result {
        Value::Blob(_) => Some(preview(result)),
        Value::Inline(text) => {
            let mut lines = text.trim().lines();
            let first = lines.next().filter(|line| !line.is_empty())?.trim_end();
            Some(if lines.next().is_some() { format!("{first} …") } else { first.to_owned() })
        }
    }
}
