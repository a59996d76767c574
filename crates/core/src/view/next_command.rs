//! The next command for a run: a line that the user can paste.
//!
//! Every status has one. A command repeats the flags of the start, and adds those without which the run
//! would fail in the same way again.

use crate::agent::AgentStatus;
use crate::crayfish::ErrorCode;
use crate::failure::{Clock, Failure, TurnFailure};
use crate::run::permissions::Permissions;
use crate::run::program::Answers;
use crate::run::start_flags::StartFlags;
use crate::run::{Ending, Phase, Program, Ralph, Run, Settings};
use crate::steps::decide;
use crate::text::quoted;
use crate::time::Span;
use crate::value::Value;

use super::denied::Denied;
use super::ledger::Ledger;
use super::status::{Owner, Status};

/// The longest input in bytes that a command repeats; a longer one is shown as an ellipsis.
const LONGEST_INPUT: usize = 200;

/// The kind of the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Watch the run, or wait for it.
    Wait,
    /// Show its result.
    Show,
    Resume,
    /// Resume with a higher budget.
    ResumeWithBudget,
    /// Start a new run.
    Run,
}

/// The state of the workflow files since the run started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// They are as pinned, or were not compared.
    AsPinned,
    /// They differ: a failed run needs a flag that says which to use.
    Edited,
    /// They differ or are missing, and the run cannot use them.
    Unusable,
}

impl Command {
    /// Returns the command line for this run.
    pub fn line(self, run: &Run, ledger: &Ledger, states: States) -> String {
        let id = &run.id;
        match self {
            Self::Wait => format!("raymond wait {id}"),
            Self::Show => format!("raymond show {id}"),
            Self::Resume | Self::Run if is_of_caller(run) => self.call(run).to_owned(),
            Self::Resume if is_final(run) => restart(run, ledger),
            Self::Resume => format!("raymond resume {id}{}", needed(run, states)),
            Self::ResumeWithBudget => format!("raymond resume {id} --budget {}", more(run)),
            Self::Run => restart(run, ledger),
        }
    }

    /// Returns the call that continues a run of the tool. A failed run needs another id: its own is final.
    fn call(self, run: &Run) -> &'static str {
        match self {
            Self::Run => "raymond crayfish < request.json # with another runId",
            // With the results the loop would end in the same way at once.
            Self::Resume if failed_with(run, ErrorCode::WhileNotConverged) => {
                "raymond crayfish < request.json # with another runId"
            }
            Self::Resume if is_final(run) => {
                "raymond crayfish < request.json # with another runId, and the results"
            }
            Self::Wait | Self::Show | Self::Resume | Self::ResumeWithBudget => {
                "raymond crayfish < request.json"
            }
        }
    }
}

fn failed_with(run: &Run, of: ErrorCode) -> bool {
    let status = |id| Some(&run.agents.get(id)?.status);
    run.failed.iter().filter_map(status).any(|status| {
        matches!(status, AgentStatus::Failed { failure: Failure::Step { code, .. }, .. } if code == of.as_str())
    })
}

/// Returns whether only the caller of the tool can continue the run.
pub fn is_of_caller(run: &Run) -> bool {
    run.settings.program.answers() == Some(Answers::Caller)
}

/// Returns whether a step failed that a resume does not repeat, because it would fail again.
pub fn is_final(run: &Run) -> bool {
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    let is_final = |status: &AgentStatus| match status {
        AgentStatus::Failed { failure: failure @ Failure::Step { .. }, .. } => {
            !decide::is_revived(failure)
        }
        AgentStatus::Failed { .. } | AgentStatus::Live | AgentStatus::Held(_) => false,
    };
    run.phase == Phase::Ended(Ending::Failed) && failed.map(|agent| &agent.status).any(is_final)
}

/// Returns the command that starts such a run again.
fn restart(run: &Run, ledger: &Ledger) -> String {
    let Run { workflow, settings, .. } = run;
    let mut words = match &settings.program {
        Program::States | Program::Crayfish { .. } => format!("raymond run {}", quoted(workflow)),
        Program::Ralph(ralph) => format!("raymond ralph {}", repeated(workflow, ralph)),
    };
    let mut flags = given(settings);
    flags.extend(governing(settings));
    flags.extend(match &ledger.input {
        Some(Value::Inline(text)) if text.len() <= LONGEST_INPUT => Some(("input", text.clone())),
        Some(_) => Some(("input", "…".to_owned())),
        None => None,
    });
    for (name, value) in flags {
        // A value that begins with a dash would be read as a flag.
        let between = if value.starts_with('-') { '=' } else { ' ' };
        words = format!("{words} --{name}{between}{}", quoted(&value));
    }
    if settings.strict_budget {
        words.push_str(" --strict-budget");
    }
    words
}

/// Returns the flags that select the program of a run.
fn given(settings: &Settings) -> Vec<(&'static str, String)> {
    let StartFlags { workspace, schema_paths, backend } = &settings.start_flags;
    let mut flags = Vec::new();
    flags.extend(workspace.clone().map(|workspace| ("workspace", workspace)));
    flags.extend(schema_paths.iter().map(|path| ("schema-path", path.clone())));
    flags.extend(backend.as_ref().map(|backend| ("backend", backend.to_string())));
    flags.extend(settings.replies.clone().map(|replies| ("replies", replies)));
    flags.extend(settings.vars.iter().map(|(name, value)| ("var", format!("{name}={value}"))));
    flags
}

/// Returns the flags that limit a run.
fn governing(settings: &Settings) -> Vec<(&'static str, String)> {
    let Permissions { mode, allow, deny, .. } = &settings.permissions;
    let mut flags = Vec::new();
    if settings.budget != Settings::default().budget {
        let cap = settings.budget.map(|cap| cap.dollars().to_string());
        flags.push(("budget", cap.unwrap_or_else(|| "none".to_owned())));
    }
    flags.extend(settings.model.clone().map(|model| ("model", model)));
    flags.extend(settings.effort.clone().map(|effort| ("effort", effort)));
    flags.extend(mode.clone().map(|mode| ("permission-mode", mode)));
    flags.extend(allow.iter().map(|tool| ("allow", tool.clone())));
    flags.extend(deny.iter().map(|tool| ("deny", tool.clone())));
    flags
}

/// Returns the arguments that start such a loop again.
fn repeated(prompt: &str, ralph: &Ralph) -> String {
    let mut words = quoted(prompt);
    if ralph.max_iterations != Ralph::USUAL {
        words = format!("{words} --max-iterations {}", ralph.max_iterations);
    }
    if let Some(until) = &ralph.until {
        words = format!("{words} --until {}", quoted(until));
    }
    words
}

/// Returns the flags without which a failed run would be refused, or fail in the same way again.
fn needed(run: &Run, states: States) -> String {
    if run.phase != Phase::Ended(Ending::Failed) {
        return String::new();
    }
    let failed = run.failed.iter().filter_map(|id| run.agents.get(id));
    let mut flags: Vec<String> = vec![String::new()];
    let mut room: Option<u64> = None;
    for agent in failed {
        let AgentStatus::Failed { failure, .. } = &agent.status else { continue };
        let flag = match failure {
            Failure::Turn(TurnFailure::LostSession { .. }) => "--on-lost-session fresh".to_owned(),
            Failure::Denied { tools } => {
                let tools = tools.iter().map(|tool| (tool.clone(), 1)).collect();
                let denied = Denied::of(&tools, &run.settings.permissions.allow);
                denied.map(|denied| denied.flags()).unwrap_or_default()
            }
            Failure::TooManyAgents { asked, .. } => {
                // One flag for all failed agents: the largest need wins.
                room = room.max(Some(*asked as u64));
                String::new()
            }
            Failure::HeldForGood { limit } => {
                room = room.max(Some(u64::from(*limit).saturating_mul(2)));
                String::new()
            }
            Failure::Visits { .. } | Failure::VisitBudget { .. } | Failure::OtherBackend { .. } => {
                "--with-current".to_owned()
            }
            Failure::Turn(TurnFailure::Timeout { clock, after }) => longer(run, *clock, *after),
            Failure::Turn(_)
            | Failure::Protocol { .. }
            | Failure::TooDeep { .. }
            | Failure::Crashes { .. }
            | Failure::Stalled { .. }
            | Failure::InterruptedScript
            | Failure::Step { .. }
            | Failure::Unanswered => String::new(),
        };
        if !flag.is_empty() && !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    flags.extend(room.map(|room| format!("--max-agents {room}")));
    // A run with edited states is refused without a flag that selects a version.
    let current = "--with-current".to_owned();
    if !flags.contains(&current) {
        match states {
            States::AsPinned => {}
            States::Edited => flags.push(current),
            States::Unusable => flags.push("--pinned".to_owned()),
        }
    }
    flags.join(" ")
}

/// Returns a flag for twice the time if the run set it; a state or the client set it otherwise.
fn longer(run: &Run, clock: Clock, after: Span) -> String {
    let twice = Span(after.0.saturating_mul(2));
    match clock {
        Clock::Wall if run.settings.timeout == Some(after) => format!("--timeout {twice}"),
        Clock::Idle if run.settings.idle_timeout == Some(after) => {
            format!("--idle-timeout {twice}")
        }
        Clock::Wall | Clock::Idle | Clock::FirstOutput => String::new(),
    }
}

/// Returns a cap in whole dollars: two and a half times the larger of cap and spending.
fn more(run: &Run) -> u64 {
    let short = run.settings.budget.unwrap_or_default().max(run.spent).0;
    short.saturating_mul(5).div_ceil(2).div_ceil(1_000_000).max(1)
}

/// Returns the next command for a status; every status has one.
pub const fn next_command(status: Status) -> Command {
    match status {
        Status::Running | Status::Waiting(_, Owner::Alive) => Command::Wait,
        Status::Completed => Command::Show,
        Status::Waiting(_, Owner::Gone)
        | Status::Failed
        | Status::Stopped
        | Status::Interrupted => Command::Resume,
        Status::OverBudget => Command::ResumeWithBudget,
        Status::Cancelled => Command::Run,
    }
}
