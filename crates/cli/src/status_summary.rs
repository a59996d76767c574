//! The status of a run, its reason and the next command, in the words that all commands share.
//!
//! `raymond_core::view` decides from the journal alone. This module adds the facts that only the
//! machine knows: edited states, a suspended or distant owner, unreadable transcripts, retries and
//! leftover processes. The slow ones are added only on request (`with_retries`, `with_processes`).

use std::io;

use raymond_backends::contract::ClientProgress;
use raymond_backends::process::Transcript;
use raymond_core::run::effect::in_flight;
use raymond_core::run::{Program, Run};
use raymond_core::text::quoted;
use raymond_core::view::{self, NextCommand, RunView, States, Status};
use raymond_engine::clock;
use raymond_engine::driver::Head;
use raymond_engine::feed::TranscriptFollower;
use raymond_engine::inspect::{Inspection, leftover_processes};
use raymond_engine::prepare;
use raymond_engine::project::Project;
use raymond_engine::turn_files::transcript;
use raymond_store::host::ProcessIdentity;
use raymond_store::journal::Tail;
use raymond_store::lock::Takeover;

use crate::sanitize::sanitized;
use crate::{cause, documents, next_command, suspended_owner};

/// The status of a run, its reason and the next command.
#[derive(Debug)]
pub(crate) struct StatusSummary {
    pub(crate) status: Status,
    /// The reason, as one sentence without a full stop.
    pub(crate) why: String,
    pub(crate) next_command: String,
    /// The edit without which the next command fails in the same way again.
    pub(crate) needed_edit: Option<String>,
    /// The command that lets the run continue without a failed worker.
    without: Option<String>,
    /// The process that drives the run.
    pub(crate) owner: Option<ProcessIdentity>,
    /// Whether the next command resumes the run.
    resumes: bool,
    /// The command lines of leftover processes; empty unless `with_processes` searched for them.
    pub(crate) left_running: Vec<String>,
}

/// Returns whether the states or the document of a run were edited.
fn states(project: &Project, run: &Run) -> States {
    match run.program {
        Program::Steps(_) => documents::states(project, run),
        Program::States | Program::Ralph(_) => prepare::states(project, run),
    }
}

/// Returns whether the time of a question is up, so that a resume continues without an answer.
fn has_expired_question(run: &Run) -> bool {
    let now = clock::now();
    run.scheduler.asks.values().flatten().any(|due| *due < now)
}

impl StatusSummary {
    /// Returns the summary of a run that this process knows to the last record.
    pub(crate) fn of(head: &Head, status: Status) -> Self {
        Self::with_states(head, status, States::AsPinned)
    }

    fn with_states(head: &Head, status: Status, states: States) -> Self {
        let Head { run, ledger, .. } = head;
        let next = match view::next_command(run, status, states) {
            NextCommand::Answer { .. } if has_expired_question(run) => {
                NextCommand::Resume(Vec::new())
            }
            next => next,
        };
        let next_command = sanitized(&next_command::line(&next, Takeover::Never, run, ledger));
        let why = sanitized(&cause::sentence(run, ledger, status, states));
        let resumes = matches!(next, NextCommand::Resume(_) | NextCommand::ResumeWithBudget { .. });
        let needed_edit = cause::needed_edit(run, status, states).map(|edit| sanitized(&edit));
        let awaited = view::awaited_failure(run).filter(|_| status == Status::Failed);
        let without = awaited.map(|worker| format!("raymond cancel {} --agent {worker}", run.id));
        let (owner, left_running) = (None, Vec::new());
        Self { status, why, next_command, needed_edit, without, owner, resumes, left_running }
    }

    /// Returns how to continue without a failed worker, if its parent waits for it.
    pub(crate) fn alternative(&self) -> Option<String> {
        self.without.as_ref().map(|command| format!("to continue without it, first run: {command}"))
    }

    /// Returns the next command, behind the edit that it needs if the reason does not name it.
    pub(crate) fn advice(&self) -> String {
        match self.needed_edit.as_ref().filter(|edit| !self.why.contains(edit.as_str())) {
            Some(edit) => format!("{edit}, then: {}", self.next_command),
            None => self.next_command.clone(),
        }
    }

    /// Returns the summary of a run that was read: its journal may be damaged, its states edited.
    pub(crate) fn seen(project: &Project, seen: &Inspection) -> Self {
        let run = &seen.head.run;
        let owner = seen.owner.as_ref().map(|owner| owner.process.clone());
        let summary = match &seen.journal.tail {
            Tail::Clean | Tail::Torn(_) => {
                let states = states(project, run);
                Self::with_states(&seen.head, seen.status, states)
                    .with_owner(seen, states)
                    .with_unreadable_transcript(project, seen)
            }
            Tail::Damaged(damaged) => Self {
                status: seen.status,
                why: format!("its journal is damaged: {damaged}"),
                next_command: match damaged.seq {
                    // Without record 1 the workflow is unknown.
                    0 | 1 => "restore the journal from a copy, or start a new run".to_owned(),
                    seq => format!("raymond resume {} --truncate-to {}", run.id, seq - 1),
                },
                needed_edit: None,
                without: None,
                owner: None,
                resumes: damaged.seq > 1,
                left_running: Vec::new(),
            },
        };
        Self { owner, ..summary }
    }

    /// Adds the next command if the owner is suspended, or on another host: only the user knows
    /// whether that host is alive.
    fn with_owner(mut self, seen: &Inspection, states: States) -> Self {
        let run = &seen.head.run;
        let next = view::next_command(run, self.status, states);
        if let Some(owner) = seen.suspended_owner()
            && next == NextCommand::Wait
        {
            self.why = format!("{}; {}", self.why, suspended_owner::describe(owner));
            self.next_command = suspended_owner::continue_command(owner);
            return self;
        }
        let Some(owner) = seen.driven_elsewhere().filter(|_| !view::is_of_caller(run)) else {
            return self;
        };
        let next = match next {
            NextCommand::Wait => {
                let ProcessIdentity { pid, host, .. } = &owner.process;
                let unseen = format!("process {pid} on {host}, which cannot be seen from here");
                self.why = sanitized(&format!("{}; it is driven by {unseen}", self.why));
                self.resumes = true;
                NextCommand::Resume(Vec::new())
            }
            other => other,
        };
        let line = next_command::line(&next, Takeover::OtherHost, run, &seen.head.ledger);
        self.next_command = sanitized(&line);
        self
    }

    /// Replaces the next command if a resume would fail because it cannot read the transcript of a
    /// turn in flight. The transcript may contain an answer that is already paid, so a resume
    /// refuses to ask again.
    fn with_unreadable_transcript(mut self, project: &Project, seen: &Inspection) -> Self {
        let run = &seen.head.run;
        if !self.resumes {
            return self;
        }
        let transcripts = project.paths(&run.id).transcripts;
        let unreadable = in_flight(run).find_map(|turn| {
            let path = transcript(&transcripts, &turn.id, turn.attempt);
            // A missing file does not prevent a resume: the client of that turn has written
            // nothing.
            let error = Transcript::open(&path).err()?;
            (error.kind() != io::ErrorKind::NotFound).then_some((path, error))
        });
        let Some((path, error)) = unreadable else { return self };
        let path = path.display().to_string();
        self.next_command = match error.kind() {
            io::ErrorKind::PermissionDenied => format!("chmod u+r {}", quoted(&path)),
            // Only the user can bring the content back; without it the run cannot continue.
            _ => format!("raymond cancel {}", run.id),
        };
        let why = format!("{}; a resume needs {path}, which cannot be read: {error}", self.why);
        self.why = sanitized(&why);
        self
    }

    /// Returns the view of the run with this status. Only the status knows that the owner died, so
    /// that no agent works any more.
    pub(crate) fn view(&self, head: &Head) -> RunView {
        let view = head.view();
        if self.status == Status::Interrupted { view.without_owner() } else { view }
    }

    /// Adds retries of clients. It reads their transcripts, so `list` does not do it.
    pub(crate) fn with_retries(mut self, project: &Project, seen: &Inspection) -> Self {
        if self.status != Status::Running {
            return self;
        }
        let run = &seen.head.run;
        let mut retrying = Vec::new();
        TranscriptFollower::new(project.paths(&run.id).transcripts).poll(run, |turn, sign| {
            if let ClientProgress::Retries { why } = sign {
                retrying.push(format!("the client of {} tries again: {why}", turn.agent));
            }
        });
        if let [first, others @ ..] = retrying.as_slice() {
            let more = match others.len() {
                0 => String::new(),
                more => format!(", and {more} more do"),
            };
            self.why = sanitized(&format!("{}; {first}{more}", self.why));
        }
        self
    }

    /// Adds leftover processes. It searches all processes of the machine, which is slow.
    pub(crate) fn with_processes(self, seen: &Inspection) -> Self {
        let left_running = leftover_processes(seen)
            .into_iter()
            .map(|process| sanitized(&process.command))
            .collect();
        Self { left_running, ..self }
    }
}
