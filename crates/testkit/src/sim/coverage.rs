//! What the simulation has met: every transition and every failure, at every point of trouble.

use std::collections::BTreeMap;
use std::fmt;

use raymond_core::failure::TurnFailure;
use raymond_core::protocol::{Fault, TagName};
use raymond_core::run::event::StackChange;
use raymond_core::run::{Event, Record};
use raymond_store::disk::memory::Operation;

use super::plan::{Point, Trouble};

/// How often each thing was met at each point.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    cells: BTreeMap<(&'static str, Column), u64>,
}

/// The columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// It happened at all.
    Seen,
    /// The power went while its record was written.
    PowerAtWrite,
    /// The power went while its record was synced.
    PowerAtSync,
    /// The process was killed while its record was synced.
    KillAtSync,
    /// The machine went down while its effects were released.
    DownAtRelease,
    /// The write of its record was cut short.
    Short,
    /// The disk was full when its record was written.
    Full,
    /// The sync of its record failed.
    LostSync,
    /// The machine went down while it was being recovered.
    InRecovery,
}

impl Column {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Seen,
        Self::PowerAtWrite,
        Self::PowerAtSync,
        Self::KillAtSync,
        Self::DownAtRelease,
        Self::Short,
        Self::Full,
        Self::LostSync,
        Self::InRecovery,
    ];

    /// The column of a trouble at a point, where there is one.
    pub fn of(trouble: Trouble, point: Point) -> Option<Self> {
        match (trouble, point) {
            (Trouble::PowerCut, Point::Disk(Operation::Write)) => Some(Self::PowerAtWrite),
            (Trouble::PowerCut, Point::Disk(Operation::Sync)) => Some(Self::PowerAtSync),
            (Trouble::Kill, Point::Disk(Operation::Sync)) => Some(Self::KillAtSync),
            (Trouble::PowerCut | Trouble::Kill, Point::Release) => Some(Self::DownAtRelease),
            (Trouble::ShortWrite, _) => Some(Self::Short),
            (Trouble::Full, _) => Some(Self::Full),
            (Trouble::LostSync, _) => Some(Self::LostSync),
            _ => None,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::PowerAtWrite => "cut@write",
            Self::PowerAtSync => "cut@sync",
            Self::KillAtSync => "kill@sync",
            Self::DownAtRelease => "@release",
            Self::Short => "short",
            Self::Full => "full",
            Self::LostSync => "lost sync",
            Self::InRecovery => "recovery",
        }
    }
}

/// The rows that must all be met.
const ROWS: [&str; 36] = [
    "goto", "reset", "reset clear", "call", "function", "fork", "many forks", "return", "end",
    "then", "spawn", "remind no_tag", "remind several", "remind malformed", "remind unresolved",
    "remind next_differs", "remind no_directory", "remind forbidden", "fail transient",
    "fail timeout", "fail quota", "fail auth", "fail task", "fail lost_session", "fail script",
    "fail output", "capped", "interrupted", "retry", "session lost", "agent failed", "agent held",
    "agent revived", "stop", "resume", "start",
];

impl Coverage {
    /// Counts everything in a record under `column`.
    pub fn note(&mut self, record: &Record, column: Column) {
        for event in record.steps.iter().flat_map(|step| &step.events) {
            if let Some(row) = row(event) {
                *self.cells.entry((row, column)).or_default() += 1;
            }
        }
        let spawned = |step: &raymond_core::run::Step| {
            let spawned = step.events.iter().filter(|e| matches!(e, Event::AgentSpawned { .. }));
            spawned.count() > 1
        };
        if record.steps.iter().any(spawned) {
            *self.cells.entry(("many forks", column)).or_default() += 1;
        }
    }

    /// Adds what another simulation has met.
    pub fn add(&mut self, other: &Self) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
    }

    /// The cells that were never met.
    pub fn missing(&self) -> Vec<String> {
        let all = ROWS.iter().flat_map(|row| Column::ALL.map(|column| (*row, column)));
        let missing = all.filter(|cell| !self.cells.contains_key(cell));
        missing.map(|(row, column)| format!("{row} × {}", column.title())).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20}", "")?;
        for column in Column::ALL {
            write!(f, "{:>10}", column.title())?;
        }
        for row in ROWS {
            write!(f, "\n{row:<20}")?;
            for column in Column::ALL {
                write!(f, "{:>10}", self.cells.get(&(row, column)).copied().unwrap_or(0))?;
            }
        }
        Ok(())
    }
}

fn row(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::RunStarted(_) => "start",
        Event::RunResumed { .. } => "resume",
        Event::StopRequested { .. } => "stop",
        Event::Moved { instead_of: Some(_), .. } => "then",
        Event::Moved { tag, stack, .. } => match (tag, stack) {
            (TagName::Goto, _) => "goto",
            (TagName::Reset, StackChange::Clear) => "reset clear",
            (TagName::Reset, _) => "reset",
            (TagName::Call, _) => "call",
            (TagName::Function, _) => "function",
            (TagName::Fork, _) => "fork",
            (TagName::Result, _) => "return",
        },
        Event::AgentSpawned { .. } => "spawn",
        Event::AgentEnded { .. } => "end",
        Event::AgentFailed { .. } => "agent failed",
        Event::AgentHeld { .. } => "agent held",
        Event::AgentRevived { .. } => "agent revived",
        Event::Reminded { fault, .. } => reminder(fault),
        Event::TurnFailed { failure, .. } => failed(failure),
        Event::TurnContinues { .. } => "capped",
        Event::TurnInterrupted { .. } => "interrupted",
        Event::RetryAt { .. } => "retry",
        Event::SessionLost { .. } => "session lost",
        _ => return None,
    })
}

fn reminder(fault: &Fault) -> &'static str {
    match fault {
        Fault::NoTag => "remind no_tag",
        Fault::SeveralTags { .. } => "remind several",
        Fault::Malformed(_) => "remind malformed",
        Fault::Unresolved { .. } => "remind unresolved",
        Fault::NextDiffers { .. } => "remind next_differs",
        Fault::NoDirectory { .. } => "remind no_directory",
        Fault::Forbidden { .. } => "remind forbidden",
        Fault::Denied { .. } => "remind denied",
    }
}

fn failed(failure: &TurnFailure) -> &'static str {
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
    }
}
