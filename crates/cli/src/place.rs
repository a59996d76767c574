//! Where a run is, in the words that every command uses.

use raymond_core::run::Run;
use raymond_core::view::{self, Status};
use raymond_engine::look::Look;
use raymond_store::journal::Tail;

/// Where a run is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) status: Status,
    /// One sentence without a full stop.
    pub(crate) why: String,
    /// The command that leads out of it.
    pub(crate) way_out: String,
}

impl Place {
    /// Where a run is that is known to the last record.
    pub(crate) fn of(run: &Run, status: Status) -> Self {
        let way_out = view::way_out(status).line(&run.id, &run.workflow);
        Self { status, why: view::why(run, status), way_out }
    }

    /// Where a run is that was looked at: its journal may be damaged.
    pub(crate) fn seen(seen: &Look) -> Self {
        let run = &seen.head.run;
        match &seen.tail {
            Tail::Clean | Tail::Torn(_) => Self::of(run, seen.status),
            Tail::Damaged(damaged) => Self {
                status: seen.status,
                why: format!("its journal is damaged: {damaged}"),
                way_out: format!("raymond resume {} --truncate-to {}", run.id, damaged.seq - 1),
            },
        }
    }
}
