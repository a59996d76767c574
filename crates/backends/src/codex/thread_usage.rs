//! The cost of a turn and the reason of its failure, from the rollout files of its threads.
//!
//! The client counts the tokens of a thread over all its turns, and a fork inherits the count of
//! its parent. Therefore this module adds up single requests: those of the turns that the thread
//! began since the client started, and those that agents made for these turns. If the earlier turns
//! are unknown, only the last turn counts as the client's.

mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_core::budget::{Cost, Micros};
use raymond_core::prices::{Prices, Usage};
use raymond_core::time::Timestamp;

use super::error_class::ErrorClass;
use super::preflight::is_priced;
use super::prior_turns::PriorTurns;
use super::rollout::{Entry, Rollout, RolloutError};
use requests::Requests;

/// The usage of all threads of one turn.
#[derive(Debug)]
pub(super) struct ThreadUsage {
    home: PathBuf,
    prices: Arc<Prices>,
    // The turn's own thread comes first. The threads of the client's agents follow, because they
    // spend from the same budget share.
    accounts: Vec<ThreadAccount>,
    // Several items name the same agent, and a thread that is read twice would be charged twice.
    threads: BTreeSet<String>,
    /// By turn and model; `None` if the counts could not be read.
    // By turn, because the file also contains earlier turns; by model, because prices differ.
    used: BTreeMap<(String, String), Option<Usage>>,
    /// The turns that the thread began.
    // One client may begin several turns, and each of them belongs to this turn of the run.
    begun: BTreeSet<String>,
    /// The last turn that began.
    turn: Option<String>,
    /// The turns before the client started.
    prior_turns: PriorTurns,
    /// The models that were named since the last turn began.
    // A model without a price must end the turn before its first answer is paid for.
    named: BTreeSet<String>,
    completeness: Completeness,
    last_turn: LastTurn,
    limited_until: Option<Timestamp>,
}

#[derive(Debug)]
struct ThreadAccount {
    rollout: Rollout,
    model: String,
    requests: Requests,
}

/// Whether everything in the files could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Complete,
    /// A damaged entry may have been a request.
    Partial,
}

/// The known part of the cost of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownCost {
    known: Micros,
    rest: Remainder,
}

/// Whether the turn spent more than is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remainder {
    Nothing,
    Unknown,
}

/// Whether the thread of the turn may have an open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client reported the end of the turn. Its agents may have been interrupted.
    Reported,
    /// The client stopped or was stopped in the middle, or its last request failed.
    Interrupted,
}

impl KnownCost {
    fn new() -> Self {
        Self { known: Micros::ZERO, rest: Remainder::Nothing }
    }

    fn add(&mut self, amount: Option<Micros>) {
        match amount {
            Some(amount) => self.known = self.known.plus(amount),
            None => self.rest = Remainder::Unknown,
        }
    }

    pub(super) fn cost(self) -> Cost {
        match self {
            Self { known, rest: Remainder::Nothing } => Cost::Estimated(known),
            Self { known: Micros::ZERO, rest: Remainder::Unknown } => Cost::Unknown,
            Self { known, rest: Remainder::Unknown } => Cost::AtLeast(known),
        }
    }
}

/// The state of the thread's last turn.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LastTurn {
    Running,
    Succeeded,
    Failed(RolloutError),
}

impl ThreadUsage {
    /// Creates the usage of a turn without threads.
    pub(super) fn new(home: &Path, prices: Arc<Prices>, prior_turns: PriorTurns) -> Self {
        Self {
            home: home.to_owned(),
            prices,
            accounts: Vec::new(),
            threads: BTreeSet::new(),
            used: BTreeMap::new(),
            begun: BTreeSet::new(),
            named: BTreeSet::new(),
            turn: None,
            prior_turns,
            completeness: Completeness::Complete,
            last_turn: LastTurn::Running,
            limited_until: None,
        }
    }

    /// Returns an empty usage for the next client of the turn.
    pub(super) fn for_next_client(&self) -> Self {
        Self::new(&self.home, Arc::clone(&self.prices), self.prior_turns.clone())
    }

    /// Adds a thread that works for the turn. The first one is the turn's own thread.
    pub(super) fn add_thread(&mut self, thread: &str) {
        if self.threads.insert(thread.to_owned()) {
            let rollout = Rollout::new(&self.home, thread);
            let (model, requests) = (String::new(), Requests::default());
            self.accounts.push(ThreadAccount { rollout, model, requests });
        }
    }

    /// Whether a thread was opened with these instructions.
    pub(super) fn was_instructed(&self, thread: &str, text: &str) -> bool {
        let mut is_instructed = false;
        Rollout::new(&self.home, thread).read_new(&mut |entry| {
            is_instructed |= matches!(entry, Entry::Instructed(said) if said.contains(text));
        });
        is_instructed
    }

    /// Records all turns that the thread to continue already has, before the client starts.
    pub(super) fn record_prior_turns(&mut self, thread: Option<&str>) -> io::Result<()> {
        let mut turns = BTreeSet::new();
        if let Some(thread) = thread {
            Rollout::new(&self.home, thread).read_new(&mut |entry| {
                if let Entry::Begins { turn } = entry {
                    turns.insert(turn);
                }
            });
        }
        self.prior_turns.keep(turns)
    }

    /// Reads the entries that were written since the last call.
    pub(super) fn read_new(&mut self) {
        // Taken out, because the closure changes other fields of `self` while a rollout is being
        // read.
        let mut accounts = std::mem::take(&mut self.accounts);
        for (place, account) in accounts.iter_mut().enumerate() {
            let ThreadAccount { rollout, model, requests } = account;
            rollout.read_new(&mut |entry| match entry {
                Entry::Model(name) => {
                    self.named.insert(name.clone());
                    *model = name;
                }
                Entry::Branched { from } => *model = self.model_of(&from),
                Entry::Used { root_turn, usage } => {
                    requests.answered(usage);
                    self.count(root_turn, model, usage);
                }
                // A damaged entry before the client's turn costs this turn nothing.
                Entry::Unreadable if self.turn().is_some() => {
                    self.completeness = Completeness::Partial;
                }
                entry => {
                    note_request(requests, &entry);
                    // Only the turn's own thread shows how the turn goes; the other threads belong
                    // to agents.
                    if place == 0 {
                        self.note(entry);
                    }
                }
            });
        }
        self.accounts = accounts;
    }

    /// Counts the tokens of a request.
    fn count(&mut self, root_turn: Option<String>, model: &str, usage: Option<Usage>) {
        // A request without a turn belongs to the current turn of the thread.
        let Some(turn) = root_turn.or_else(|| self.turn.clone()) else {
            self.completeness = Completeness::Partial;
            return;
        };
        let known = self.used.entry((turn, model.to_owned()));
        let known = known.or_insert_with(|| Some(Usage::default()));
        // One unreadable count makes the whole sum unknown.
        *known = known.zip(usage).map(|(known, usage)| sum(known, usage));
    }

    /// Returns the last model of a thread.
    fn model_of(&self, thread: &str) -> String {
        // A branch first summarises the conversation with the model of its parent.
        let mut model = String::new();
        Rollout::new(&self.home, thread).read_new(&mut |entry| {
            if let Entry::Model(name) = entry {
                model = name;
            }
        });
        model
    }

    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Begins { turn } => {
                self.begun.insert(turn.clone());
                // The new turn may use another model.
                self.named.clear();
                (self.turn, self.last_turn) = (Some(turn), LastTurn::Running);
                self.limited_until = None;
            }
            Entry::Limited { resets_at } => {
                self.limited_until = Some(Timestamp(resets_at.saturating_mul(1000)));
            }
            Entry::Ends { error } => {
                self.last_turn = error.map_or(LastTurn::Succeeded, LastTurn::Failed);
            }
            // An aborted turn has no error of its own. Only its end matters here.
            Entry::BrokenOff => self.last_turn = LastTurn::Succeeded,
            Entry::Calls
            | Entry::Returned
            | Entry::Compacted
            | Entry::Unreadable
            | Entry::Branched { .. }
            | Entry::Model(_)
            | Entry::Used { .. }
            | Entry::Instructed(_)
            | Entry::Other => {}
        }
    }

    /// Returns the last turn if it began after the client started.
    fn turn(&self) -> Option<&str> {
        self.turn.as_deref().filter(|turn| self.is_own(turn))
    }

    /// Whether a turn belongs to the client.
    fn is_own(&self, turn: &str) -> bool {
        match self.prior_turns.contains(turn) {
            // Without the list of prior turns, only the last turn can be the client's.
            Some(is_past) => !is_past && self.begun.contains(turn),
            None => self.turn.as_deref() == Some(turn),
        }
    }

    /// Returns the cost of all answered requests of the client.
    fn answered_cost(&self) -> KnownCost {
        let mut cost = KnownCost::new();
        let own = self.used.iter().filter(|((turn, _), _)| self.is_own(turn));
        own.for_each(|((_, model), usage)| {
            cost.add(usage.as_ref().and_then(|usage| self.price(model, usage)));
        });
        if self.completeness == Completeness::Partial
            || self.lacks_tokens()
            || self.has_broken_file()
        {
            cost.rest = Remainder::Unknown;
        }
        cost
    }

    /// Returns the cost of the turn, including open requests that will never be answered.
    pub(super) fn known_cost(&self, ending: Ending) -> KnownCost {
        let mut cost = self.answered_cost();
        // Only for the final cost: while the client runs, a partial last entry is a write in
        // progress.
        if self.accounts.iter().any(|account| account.rollout.has_partial_entry()) {
            cost.rest = Remainder::Unknown;
        }
        let mut accounts = self.accounts.iter();
        // A turn whose end was reported has no open request of its own, but its agents may have.
        let main = accounts.next().filter(|_| ending == Ending::Interrupted);
        for account in main.into_iter().chain(accounts) {
            // Without its file Raymond cannot know whether this thread had an open request.
            if !account.rollout.is_open() {
                cost.rest = Remainder::Unknown;
            } else if account.requests.has_open_request() {
                cost.add(self.next_request_cost(account));
            }
        }
        cost
    }

    /// Returns the price of one more request of a thread, or `None` if no request was answered yet.
    fn next_request_cost(&self, account: &ThreadAccount) -> Option<Micros> {
        // The request reads at least what the last one read and wrote. It is priced without cache,
        // because cache hits are unknown.
        let last = account.requests.last?;
        let input = [last.input, last.cache_read, last.cache_write, last.output];
        let input = input.into_iter().fold(0, u64::saturating_add);
        self.price(&account.model, &Usage { input, ..Usage::default() })
    }

    /// Returns the known cost of the client's requests so far.
    pub(super) fn spent(&self) -> Micros {
        self.answered_cost().known
    }

    /// Whether all tokens of the client's requests and their prices are known.
    pub(super) fn is_priced(&self) -> bool {
        self.answered_cost().rest == Remainder::Nothing
    }

    /// Notes that Raymond is about to end the client.
    pub(super) fn before_end(&mut self) {
        self.accounts.iter_mut().for_each(|account| account.requests.client_ends());
    }

    /// Notes that the seemingly open request was not sent.
    pub(super) fn withdraw(&mut self) {
        // Only the turn's own thread: Raymond knows the age of no other request.
        if let Some(account) = self.accounts.first_mut() {
            account.requests.withdraw();
        }
    }

    /// Whether an answer has no tokens yet.
    pub(super) fn lacks_tokens(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.requests.lacks_tokens())
    }

    pub(super) fn has_open_request(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.requests.has_open_request())
    }

    pub(super) fn price(&self, model: &str, usage: &Usage) -> Option<Micros> {
        self.prices.estimate(model, usage)
    }

    /// Returns a requested model whose price is unknown.
    pub(super) fn unpriced(&self) -> Option<&str> {
        let turn = self.turn()?;
        let asked = self.used.keys().filter(|(of, _)| of == turn).map(|(_, model)| model);
        let mut models = asked.chain(&self.named).map(String::as_str);
        models.find(|model| !is_priced(&self.prices, model))
    }

    /// Whether no request of the client was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.used.keys().all(|(turn, _)| !self.is_own(turn))
    }

    /// Whether the file of the thread exists and its counts are readable.
    pub(super) fn has_readable_counts(&self) -> bool {
        let counts =
            self.used.iter().all(|((turn, _), usage)| usage.is_some() || !self.is_own(turn));
        counts && self.is_readable()
    }

    /// Whether a file was read in part and cannot be read further.
    fn has_broken_file(&self) -> bool {
        self.accounts.iter().any(|account| account.rollout.is_torn())
    }

    /// Whether the file of the turn's own thread can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.rollout.is_open())
    }

    /// Returns the directory in which the client keeps its threads.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Whether the entries may all belong to a turn before the client's.
    pub(super) fn may_be_behind(&self) -> bool {
        // Without the list of earlier turns, a finished last turn may be the one before the
        // client's, whose entries are not written yet.
        !self.prior_turns.is_known() && self.is_last_turn_over()
    }

    /// Whether nothing follows the last message of the model.
    pub(super) fn is_finishing(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.requests.is_finishing())
    }

    fn is_last_turn_over(&self) -> bool {
        self.last_turn != LastTurn::Running
    }

    /// Returns the type of the turn's error.
    pub(super) fn problem(&self) -> Option<&RolloutError> {
        match &self.last_turn {
            LastTurn::Failed(problem) => self.turn().map(|_| problem),
            LastTurn::Running | LastTurn::Succeeded => None,
        }
    }

    /// Returns when the usage limit that the turn reached ends.
    pub(super) fn limited_until(&self) -> Option<Timestamp> {
        self.turn().and(self.limited_until)
    }

    /// Returns the model of the turn's own requests.
    pub(super) fn model(&self) -> Option<String> {
        let model = self.accounts.first().map(|account| account.model.clone());
        model.filter(|model| !model.is_empty())
    }
}

/// Notes the meaning of an entry for the requests of its thread.
fn note_request(requests: &mut Requests, entry: &Entry) {
    match entry {
        Entry::Begins { .. } => requests.begin(),
        Entry::Calls => requests.call(),
        Entry::Returned => requests.tool_returned(),
        Entry::Compacted => requests.compacted(),
        // The failed request may have been answered in part, so it stays open.
        Entry::Ends { error: Some(problem) } if !ErrorClass::is_refusal(Some(problem), "") => {}
        Entry::Ends { .. } => requests.end(),
        Entry::BrokenOff
        | Entry::Branched { .. }
        | Entry::Model(_)
        | Entry::Used { .. }
        | Entry::Limited { .. }
        | Entry::Instructed(_)
        | Entry::Unreadable
        | Entry::Other => {}
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_write: one.cache_write.saturating_add(other.cache_write),
        cache_read: one.cache_read.saturating_add(other.cache_read),
    }
}

#[cfg(test)]
mod tests;
