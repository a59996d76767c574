//! The rows of the coverage table, and the row of each event.
//!
//! A row names an event or a kind of it. Every cell of the table must be met, so events of nearly
//! every record have no row. A name that is missing in `ROWS` is counted, but the table neither
//! prints nor demands it.

use std::sync::LazyLock;

use raymond_core::failure::TurnFailure;
use raymond_core::protocol::{Fault, TagName};
use raymond_core::run::event::StackChange;
use raymond_core::run::warning::Warning;
use raymond_core::run::{Ending, Event};
use raymond_core::scheduler::Hold;

#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Whether it follows from a text, which may be large enough for a blob.
    pub(super) follows_text: bool,
    /// Whether its record can have effects.
    pub(super) has_effects: bool,
}

const fn text(name: &'static str) -> Row {
    Row { name, follows_text: true, has_effects: true }
}

const fn other(name: &'static str) -> Row {
    Row { name, follows_text: false, has_effects: true }
}

const fn silent(name: &'static str) -> Row {
    Row { name, follows_text: false, has_effects: false }
}

/// All rows in the order of the table: one for each tag, then the others.
pub(super) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let tags = TagName::ALL.into_iter().map(|tag| {
        let name = transition(tag, &StackChange::Keep);
        // The answer of a person leads on, in another record than the text.
        if tag == TagName::Ask { other(name) } else { text(name) }
    });
    tags.chain(OTHERS.iter().copied()).collect()
});

const OTHERS: &[Row] = &[
    text("reset clear"),
    text("many forks"),
    text("end"),
    text("then"),
    text("spawn"),
    text("remind no_tag"),
    text("remind several"),
    text("remind malformed"),
    text("remind unresolved"),
    text("remind next_differs"),
    text("remind no_directory"),
    text("remind forbidden"),
    text("remind other_backend"),
    text("remind denied"),
    other("fail transient"),
    other("fail timeout"),
    other("fail quota"),
    other("fail auth"),
    other("fail environment"),
    other("fail task"),
    other("fail lost_session"),
    other("fail script"),
    other("fail output"),
    other("capped"),
    other("interrupted"),
    other("retry"),
    other("session lost"),
    text("agent failed"),
    text("agent held"),
    text("agent waits"),
    text("agent joins"),
    text("agent asks"),
    other("answered"),
    other("wait over"),
    other("joined"),
    other("agent cancelling"),
    other("agent cancelled"),
    other("agent revived"),
    silent("adopted"),
    other("stop"),
    other("resume"),
    other("start"),
    other("hold quota"),
    other("hold auth"),
    other("hold environment"),
    other("release"),
    text("half spent"),
    text("nearly spent"),
    other("over budget"),
    other("no quota"),
    other("needs person"),
    other("environment"),
    other("stopped"),
    other("sleeping"),
    other("cancelled"),
    other("failed"),
    other("completed"),
];

/// Returns the row of an event, if it has one.
pub(super) fn row(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::RunStarted(_) => "start",
        Event::RunResumed { .. } => "resume",
        Event::DefinitionAdopted { .. } => "adopted",
        Event::StopRequested { .. } => "stop",
        Event::Moved { instead_of: Some(_), .. } => "then",
        Event::Moved { tag, stack, .. } => transition(*tag, stack),
        Event::AgentSpawned { .. } => "spawn",
        Event::AgentEnded { .. } => "end",
        Event::AgentFailed { .. } => "agent failed",
        Event::AgentHeld { .. } => "agent held",
        Event::AgentWaits { .. } => "agent waits",
        Event::AgentJoins { .. } => "agent joins",
        Event::AgentAsks { .. } => "agent asks",
        Event::AskAnswered { .. } => "answered",
        Event::AskExpired { .. } => "expired",
        Event::WaitOver { .. } => "wait over",
        Event::Joined { .. } => "joined",
        Event::AgentCancelling { .. } => "agent cancelling",
        Event::AgentCancelled { .. } => "agent cancelled",
        Event::AgentRevived { .. } => "agent revived",
        Event::Reminded { fault, .. } => reminder(fault),
        Event::TurnFailed { failure, .. } => failed(failure),
        Event::TurnContinues { .. } => "capped",
        Event::TurnRecalled { .. } => "recalled",
        Event::TurnInterrupted { .. } => "interrupted",
        Event::RetryAt { .. } => "retry",
        Event::SessionLost { .. } => "session lost",
        Event::BackendHeld { hold: Hold::Quota { .. }, .. } => "hold quota",
        Event::BackendHeld { hold: Hold::Auth { .. }, .. } => "hold auth",
        Event::BackendHeld { hold: Hold::Environment { .. }, .. } => "hold environment",
        Event::BackendReleased { .. } => "release",
        Event::Warned { warning: Warning::Spent { percent: ..80 }, .. } => "half spent",
        Event::Warned { warning: Warning::Spent { .. }, .. } => "nearly spent",
        Event::RunEnded { ending } => ended(*ending),
        _ => return None,
    })
}

const fn ended(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Failed => "failed",
        Ending::OverBudget => "over budget",
        Ending::Stopped => "stopped",
        Ending::Cancelled => "cancelled",
        Ending::NeedsPerson => "needs person",
        Ending::NeedsCaller => "needs caller",
        Ending::NoQuota => "no quota",
        Ending::Environment => "environment",
        Ending::Sleeping => "sleeping",
    }
}

const fn transition(tag: TagName, stack: &StackChange) -> &'static str {
    match (tag, stack) {
        (TagName::Reset, StackChange::Clear) => "reset clear",
        (TagName::Result, _) => "return",
        (tag, _) => tag.as_str(),
    }
}

const fn reminder(fault: &Fault) -> &'static str {
    match fault {
        Fault::NoTag(_) => "remind no_tag",
        Fault::SeveralTags { .. } => "remind several",
        Fault::Malformed(_) => "remind malformed",
        Fault::Unresolved { .. } => "remind unresolved",
        Fault::NextDiffers { .. } => "remind next_differs",
        Fault::NoDirectory { .. } => "remind no_directory",
        Fault::Forbidden { .. } => "remind forbidden",
        Fault::OtherBackend { .. } => "remind other_backend",
        Fault::NoBranch { .. } => "remind no_branch",
        Fault::Denied { .. } => "remind denied",
    }
}

const fn failed(failure: &TurnFailure) -> &'static str {
    match failure {
        TurnFailure::Transient { .. } => "fail transient",
        TurnFailure::Timeout { .. } => "fail timeout",
        TurnFailure::Quota { .. } => "fail quota",
        TurnFailure::Auth { .. } => "fail auth",
        TurnFailure::Task { .. } => "fail task",
        TurnFailure::LostSession { .. } => "fail lost_session",
        TurnFailure::Script { .. } => "fail script",
        TurnFailure::OutputTooLarge { .. } => "fail output",
        TurnFailure::NotStarted { .. } => "fail not_started",
        TurnFailure::Environment { .. } => "fail environment",
        TurnFailure::Step { .. } => "fail step",
    }
}
