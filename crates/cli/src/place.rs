//! Where a run is, in the words that every command uses.

use raymond_backends::contract::Sign;
use raymond_core::run::{Program, Run};
use raymond_core::view::{self, States, Status};
use raymond_engine::driver::Head;
use raymond_engine::inspect::{Inspection, leftover_processes};
use raymond_engine::launch;
use raymond_engine::project::Project;
use raymond_store::journal::Tail;
use raymond_store::lock::{Owner, Process};

use crate::ear::Ear;
use crate::words::plain;

/// Where a run is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) status: Status,
    /// One sentence without a full stop.
    pub(crate) why: String,
    /// The command that leads out of it.
    pub(crate) next_command: String,
    /// The command lines of processes that outlived their owner, where they were looked for.
    pub(crate) left_running: Vec<String>,
}

/// Says that the owner of a run is suspended.
pub(crate) fn suspended(owner: &Owner) -> String {
    format!("its owner, process {}, is suspended", owner.process.pid)
}

/// The same, for someone who waits.
pub(crate) fn suspended_with_hint(owner: &Owner) -> String {
    let (suspended, continuing) = (suspended(owner), continuing(owner));
    format!("{suspended}; continue the owner with `{continuing}`, or `fg` in its terminal")
}

/// The command that continues a suspended owner.
pub(crate) fn continuing(owner: &Owner) -> String {
    format!("kill -CONT {}", owner.process.pid)
}

/// What became of the states of a run. A document is pinned with all that it needs, and never changes.
fn states(project: &Project, run: &Run) -> States {
    match run.settings.program {
        Program::Crayfish { .. } => States::AsPinned,
        Program::States | Program::Ralph(_) => launch::states(project, run),
    }
}

impl Place {
    /// Where a run is that is known to the last record.
    pub(crate) fn of(head: &Head, status: Status) -> Self {
        Self::with_states(head, status, States::AsPinned)
    }

    fn with_states(head: &Head, status: Status, states: States) -> Self {
        let Head { run, ledger, .. } = head;
        let next_command = plain(&view::next_command(status).line(run, ledger, states));
        let why = plain(&view::why(run, ledger, status));
        Self { status, why, next_command, left_running: Vec::new() }
    }

    /// Where a run is that was looked at: its journal may be damaged, its states may be edited.
    pub(crate) fn seen(project: &Project, seen: &Inspection) -> Self {
        let run = &seen.head.run;
        match &seen.journal.tail {
            Tail::Clean | Tail::Torn(_) => {
                Self::with_states(&seen.head, seen.status, states(project, run)).with_owner(seen)
            }
            Tail::Damaged(damaged) => Self {
                status: seen.status,
                why: format!("its journal is damaged: {damaged}"),
                next_command: match damaged.seq {
                    // Record 1 starts a run, and says of which workflow.
                    0 | 1 => "raymond run WORKFLOW".to_owned(),
                    seq => format!("raymond resume {} --truncate-to {}", run.id, seq - 1),
                },
                left_running: Vec::new(),
            },
        }
    }

    /// The same, with the next command when the owner is suspended, or on another host: only a person knows
    /// whether it lives there.
    fn with_owner(mut self, seen: &Inspection) -> Self {
        let run = &seen.head.run;
        if let Some(owner) = seen.suspended_owner()
            && view::next_command(self.status) == view::Command::Wait
        {
            self.why = format!("{}; {}", self.why, suspended(owner));
            self.next_command = continuing(owner);
            return self;
        }
        let Some(owner) = seen.driven_elsewhere().filter(|_| !view::is_of_caller(run)) else {
            return self;
        };
        if view::next_command(self.status) == view::Command::Wait {
            let Process { pid, host, .. } = &owner.process;
            let unseen = format!("process {pid} on {host}, which cannot be seen from here");
            self.why = plain(&format!("{}; it is driven by {unseen}", self.why));
            self.next_command = format!("raymond resume {} --takeover", run.id);
        } else if self.next_command.starts_with("raymond resume ") {
            self.next_command.push_str(" --takeover");
        }
        self
    }

    /// The same, with what clients of turns in flight are at when they do nothing but try again: that
    /// takes a look at their transcripts.
    pub(crate) fn with_retries(mut self, project: &Project, seen: &Inspection) -> Self {
        if self.status != Status::Running {
            return self;
        }
        let run = &seen.head.run;
        let mut told = Vec::new();
        Ear::new(project.paths(&run.id).transcripts).listen(run, |turn, sign| {
            if let Sign::Retries { why } = sign {
                told.push(format!("the client of {} tries again: {why}", turn.agent));
            }
        });
        if let [first, others @ ..] = told.as_slice() {
            let more = match others.len() {
                0 => String::new(),
                more => format!(", and {more} more do"),
            };
            self.why = plain(&format!("{}; {first}{more}", self.why));
        }
        self
    }

    /// The same, with the processes that were left running: that takes a look at all of this machine.
    pub(crate) fn with_processes(self, seen: &Inspection) -> Self {
        let left_running =
            leftover_processes(seen).into_iter().map(|stray| plain(&stray.command)).collect();
        Self { left_running, ..self }
    }
}
