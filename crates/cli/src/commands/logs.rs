//! `raymond logs`: prints what agents and scripts wrote in each turn.
//!
//! Clients leave a transcript, which is read line by line, because it may be large. Scripts,
//! replies and answers of callers are in the journal. `--follow` reads both again and again (see
//! `follow`).

mod follow;
mod item;
mod items;
mod page;

use std::collections::BTreeMap;

use raymond_core::agent::Location;
use raymond_core::budget::Cost;
use raymond_core::ids::{RunId, TurnAttempt};
use raymond_core::run::outcome::{Finished, Outcome};
use raymond_core::run::{Input, Record};
use raymond_core::text::nearest;
use raymond_core::view::attempt::{Attempt, How};
use raymond_core::view::{RunView, ViewEvent};
use raymond_engine::inspect::Inspection;
use raymond_engine::prompts::{PromptsError, RenderedPrompts, prompts};
use raymond_store::{Blobs, RunPaths};

use crate::args::Logs;
use crate::failure::Failure;
use crate::{backends, runs};

use follow::TurnFollower;
use item::{ItemKind, LogItem};
use page::{Page, PageShape, PageStop};

pub(crate) fn logs(flags: &Logs) -> Result<u8, Failure> {
    let project = runs::project()?;
    let run = runs::named_or_last(&project, flags.run.as_deref())?;
    let seen = runs::look(&project, &run)?;
    runs::report_damage(&seen);
    let turns_seen = collect_turns(&seen)?;
    // A living owner may still start a turn of that name, so a typo cannot be detected then.
    if !flags.follow || seen.owner.is_none() {
        flags.wanted().check(&run, &turns_seen)?;
    }
    let shape = match (flags.json, flags.raw) {
        (true, _) => PageShape::Json,
        (false, true) => PageShape::Raw,
        (false, false) => PageShape::Text,
    };
    let paths = project.paths(&run);
    let blobs = project.blobs(&paths);
    let uses_only_replies = backends::uses_only_replies(&seen.head.run.settings);
    let prompts =
        if flags.prompts { sent_prompts(&seen, &blobs, &paths)? } else { RenderedPrompts::new() };
    let source = Source { paths, blobs, uses_only_replies, prompts };
    let mut page = Page::new(shape, seen.head.ledger.naming());
    let printed = if flags.follow {
        {
            let wanted = flags.wanted();
            let open = BTreeMap::new();
            let view = RunView::of(&seen.head.run, &seen.head.ledger);
            let follower = TurnFollower { source: &source, page: &mut page, wanted, view, open };
            follower.follow(&project, seen, turns_seen)
        }
    } else {
        page.open(&run).and_then(|()| {
            for turn in turns_seen.iter().filter(|turn| flags.wanted().takes(&turn.attempt)) {
                source.print(turn, &mut page)?;
            }
            page.close()
        })
    };
    match printed {
        Ok(()) => page.explain_empty(&run),
        // A closed stdout means that the reader has seen enough, which is not an error.
        Err(PageStop::ReaderGone) => {}
        Err(PageStop::Failed(failure)) => return Err(failure),
    }
    Ok(0)
}

/// An attempt and its outcome.
#[derive(Debug, Clone)]
struct LoggedTurn {
    attempt: Attempt,
    outcome: Option<Outcome>,
}

impl LoggedTurn {
    /// Whether a caller gave the answer, so that no client was asked.
    fn is_answer(&self) -> bool {
        matches!(self.attempt.end.as_ref().map(|end| &end.how), Some(How::Answered(_)))
    }
}

/// The effect of a record on the turns.
#[derive(Debug, Clone)]
enum Change {
    Began(LoggedTurn),
    Ended(LoggedTurn),
    /// A caller answered instead of a turn.
    Answered(LoggedTurn),
}

/// Collects the turns of a run in the order of their starts.
fn collect_turns(seen: &Inspection) -> Result<Vec<LoggedTurn>, Failure> {
    let mut view = RunView::default();
    let mut all: Vec<LoggedTurn> = Vec::new();
    for record in runs::records(seen) {
        // The view has to see every record from the first on: a title needs facts from earlier
        // events.
        for change in changes(&mut view, &record?) {
            match change {
                Change::Began(turn) | Change::Answered(turn) => all.push(turn),
                Change::Ended(ended) => {
                    let Attempt { turn, number, .. } = &ended.attempt;
                    let is_same = |known: &&mut LoggedTurn| {
                        known.attempt.turn == *turn && known.attempt.number == *number
                    };
                    // From the end, because an attempt that ends is among the latest ones.
                    if let Some(turn) = all.iter_mut().rev().find(is_same) {
                        *turn = ended;
                    }
                }
            }
        }
    }
    Ok(all)
}

/// Returns the changes of turns in a record, with their outcomes.
fn changes(view: &mut RunView, record: &Record) -> Vec<Change> {
    let mut all = Vec::new();
    for step in &record.steps {
        // Events describe the decision; only the cause contains the text of the turn.
        let outcome = || match &step.cause {
            Input::Settled { outcome, .. } => Some(outcome.clone()),
            _ => None,
        };
        for noted in step.events.iter().filter_map(|event| view.note(record.at, event)) {
            match noted {
                ViewEvent::AttemptBegan { attempt, .. } => {
                    all.push(Change::Began(LoggedTurn { attempt, outcome: None }));
                }
                ViewEvent::AttemptEnded(attempt) => {
                    all.push(Change::Ended(LoggedTurn { attempt, outcome: outcome() }));
                }
                ViewEvent::Answered { attempt, value } => {
                    let finished = Finished::new(value.into(), Cost::Free);
                    let outcome = Some(Outcome::Finished(Box::new(finished)));
                    all.push(Change::Answered(LoggedTurn { attempt, outcome }));
                }
                _ => {}
            }
        }
    }
    all
}

/// The turns that the user asked for.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    agent: Option<&'a str>,
    state: Option<&'a str>,
}

impl Logs {
    fn wanted(&self) -> Wanted<'_> {
        Wanted { agent: self.agent.as_deref(), state: self.state.as_deref() }
    }
}

impl Wanted<'_> {
    fn takes(self, attempt: &Attempt) -> bool {
        let is_of = |agent: &str| attempt.turn.agent.as_str() == agent;
        // The id of a step in a loop selects all its iterations.
        let is_in = |name: &str| match &attempt.location {
            Location::State(state) => state.as_str() == name || state.stem() == name,
            Location::Step(key) => key.to_string() == name || key.step.as_str() == name,
        };
        self.agent.is_none_or(is_of) && self.state.is_none_or(is_in)
    }

    /// Refuses a name that no turn has.
    fn check(self, run: &RunId, turns: &[LoggedTurn]) -> Result<(), Failure> {
        let attempts = || turns.iter().map(|turn| &turn.attempt);
        if let Some(agent) = self.agent
            && !attempts().any(|attempt| Self { state: None, ..self }.takes(attempt))
        {
            let failure = Failure::usage(format!("{run} has no turn of an agent {agent:?}"));
            let known = attempts().map(|attempt| attempt.turn.agent.as_str());
            return Err(failure.hint(offer(agent, known)));
        }
        if let Some(state) = self.state
            && !attempts().any(|attempt| Self { agent: None, ..self }.takes(attempt))
        {
            let failure = Failure::usage(format!("{run} has no turn in a state {state:?}"));
            let known: Vec<_> = attempts().map(|attempt| attempt.location.to_string()).collect();
            let stems: Vec<_> = attempts().map(|attempt| attempt.location.stem()).collect();
            let hint = match nearest(state, stems.iter().map(String::as_str)) {
                Some(stem) => format!("did you mean {stem}?"),
                None => offer(state, known.iter().map(String::as_str)),
            };
            return Err(failure.hint(hint));
        }
        Ok(())
    }
}

/// Suggests a name.
fn offer<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 10;
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    match nearest(wanted, known.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None if known.is_empty() => "the run has no turn yet".to_owned(),
        None => format!("choose from {}", known[..known.len().min(MOST)].join(", ")),
    }
}

/// The files that contain what was written.
struct Source {
    paths: RunPaths,
    blobs: Blobs,
    /// Whether replies stand in for the clients, which then leave no transcripts.
    uses_only_replies: bool,
    /// The prompts to print; empty without `--prompts`.
    prompts: RenderedPrompts,
}

/// Returns the prompts of a run.
fn sent_prompts(
    seen: &Inspection,
    blobs: &Blobs,
    paths: &RunPaths,
) -> Result<RenderedPrompts, Failure> {
    let records = runs::records(seen).map(|record| record.map_err(PromptsFailure::Read));
    prompts(records, blobs, paths).map_err(|failure| match failure {
        PromptsFailure::Read(failure) => failure,
        PromptsFailure::Render(error) => {
            Failure::environment(format!("could not show the prompts: {error}"))
        }
    })
}

/// Why the prompts of a run cannot be shown.
enum PromptsFailure {
    Read(Failure),
    Render(PromptsError),
}

impl From<PromptsError> for PromptsFailure {
    fn from(error: PromptsError) -> Self {
        Self::Render(error)
    }
}

impl Source {
    /// Prints a whole turn.
    fn print(&self, turn: &LoggedTurn, page: &mut Page) -> Result<(), PageStop> {
        page.begin(&turn.attempt)?;
        let Attempt { turn: id, number, .. } = &turn.attempt;
        if let Some(prompt) = self.prompts.get(&TurnAttempt { turn: id.clone(), number: *number }) {
            page.item(&LogItem::new(ItemKind::Prompt, prompt))?;
        }
        self.words(turn, page)?;
        page.end()
    }
}
