//! What a turn cost and why it failed, out of the files that the client keeps.
//!
//! The tokens of a thread are counted over all its turns, and a fork inherits the count of its parent.
//! So requests are added up one by one: those of the turns that the thread began since the client
//! started, and those that agents made for them. Where it is not known what was there before, only the
//! last turn is taken for the client's.

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

/// The books of one turn.
#[derive(Debug)]
pub(super) struct ThreadUsage {
    home: PathBuf,
    prices: Arc<Prices>,
    /// The thread of the turn first.
    accounts: Vec<ThreadAccount>,
    /// Whose accounts there are.
    threads: BTreeSet<String>,
    /// By turn and model; none where tokens were told in a way that is not understood.
    used: BTreeMap<(String, String), Option<Usage>>,
    /// The turns that the thread began.
    begun: BTreeSet<String>,
    /// The last of them.
    turn: Option<String>,
    /// Those before the client started.
    prior_turns: PriorTurns,
    /// The models that were named since.
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

/// What is known of the cost of a turn.
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

/// Whether the thread of the turn may have a request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client reported the end of the turn. Its agents may have been interrupted.
    Reported,
    /// The client stopped, or was stopped, in the middle; or its last request failed.
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

/// How the thread's last turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LastTurn {
    Running,
    Succeeded,
    Failed(RolloutError),
}

impl ThreadUsage {
    /// Books that know of no earlier turns but those.
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

    /// The books of another client's turn.
    pub(super) fn for_next_client(&self) -> Self {
        Self::new(&self.home, Arc::clone(&self.prices), self.prior_turns.clone())
    }

    /// Another thread works for the turn; the first one is the turn's own.
    pub(super) fn add_thread(&mut self, thread: &str) {
        if self.threads.insert(thread.to_owned()) {
            let rollout = Rollout::new(&self.home, thread);
            let (model, requests) = (String::new(), Requests::default());
            self.accounts.push(ThreadAccount { rollout, model, requests });
        }
    }

    /// Whether a thread was opened with these instructions.
    pub(super) fn was_instructed(&self, thread: &str, text: &str) -> bool {
        let mut told = false;
        Rollout::new(&self.home, thread).read_new(&mut |entry| {
            told |= matches!(entry, Entry::Instructed(said) if said.contains(text));
        });
        told
    }

    /// All that there is now is of earlier turns: those of the thread that is gone on with, if any.
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

    /// Reads what was written since the last look.
    pub(super) fn read_new(&mut self) {
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
                Entry::Unreadable if self.turn().is_some() => {
                    self.completeness = Completeness::Partial;
                }
                entry => {
                    note_request(requests, &entry);
                    if place == 0 {
                        self.note(entry);
                    }
                }
            });
        }
        self.accounts = accounts;
    }

    /// Counts the tokens of a request. One that names no turn is of the turn that the thread is in.
    fn count(&mut self, root_turn: Option<String>, model: &str, usage: Option<Usage>) {
        let Some(turn) = root_turn.or_else(|| self.turn.clone()) else {
            self.completeness = Completeness::Partial;
            return;
        };
        let known = self.used.entry((turn, model.to_owned()));
        let known = known.or_insert_with(|| Some(Usage::default()));
        *known = known.zip(usage).map(|(known, usage)| sum(known, usage));
    }

    /// The last model of a thread. What another one is to go on with, it sums up first.
    fn model_of(&self, thread: &str) -> String {
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

    /// The last turn, when it began after the client started.
    fn turn(&self) -> Option<&str> {
        self.turn.as_deref().filter(|turn| self.is_own(turn))
    }

    /// Whether a turn is the client's.
    fn is_own(&self, turn: &str) -> bool {
        match self.prior_turns.contains(turn) {
            Some(is_past) => !is_past && self.begun.contains(turn),
            None => self.turn.as_deref() == Some(turn),
        }
    }

    /// Returns the cost of all answered requests of the client.
    fn answered_cost(&self) -> KnownCost {
        let mut bill = KnownCost::new();
        let own = self.used.iter().filter(|((turn, _), _)| self.is_own(turn));
        own.for_each(|((_, model), usage)| {
            bill.add(usage.as_ref().and_then(|usage| self.price(model, usage)));
        });
        if self.completeness == Completeness::Partial
            || self.lacks_tokens()
            || self.has_torn_entry()
        {
            bill.rest = Remainder::Unknown;
        }
        bill
    }

    /// Returns the cost of the turn, with the requests that are under way and will never be answered.
    pub(super) fn known_cost(&self, ending: Ending) -> KnownCost {
        let mut bill = self.answered_cost();
        if self.accounts.iter().any(|account| account.rollout.ends_in_entry()) {
            bill.rest = Remainder::Unknown;
        }
        let mut accounts = self.accounts.iter();
        let main = accounts.next().filter(|_| ending == Ending::Interrupted);
        for account in main.into_iter().chain(accounts) {
            if !account.rollout.is_open() {
                bill.rest = Remainder::Unknown;
            } else if account.requests.has_open_request() {
                bill.add(self.next_request_cost(account));
            }
        }
        bill
    }

    /// Returns the price of one more request of a thread; none if none was answered yet. It reads at
    /// least what the last one read and wrote. Whether any of that is in the cache is not known.
    fn next_request_cost(&self, account: &ThreadAccount) -> Option<Micros> {
        let last = account.requests.last?;
        let input = [last.input, last.cache_read, last.cache_write, last.output];
        let input = input.into_iter().fold(0, u64::saturating_add);
        self.price(&account.model, &Usage { input, ..Usage::default() })
    }

    /// Returns the known part of what the client's requests cost so far.
    pub(super) fn spent(&self) -> Micros {
        self.answered_cost().known
    }

    /// Whether all tokens of the client's requests are known, and their prices.
    pub(super) fn is_priced(&self) -> bool {
        self.answered_cost().rest == Remainder::Nothing
    }

    /// The client is told to end.
    pub(super) fn before_end(&mut self) {
        self.accounts.iter_mut().for_each(|account| account.requests.client_ends());
    }

    /// The request that seemed to be under way was not sent.
    pub(super) fn withdraw(&mut self) {
        if let Some(account) = self.accounts.first_mut() {
            account.requests.withdraw();
        }
    }

    /// Whether an answer came without its tokens, so far.
    pub(super) fn lacks_tokens(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.requests.lacks_tokens())
    }

    /// Whether a request is under way.
    pub(super) fn has_open_request(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.requests.has_open_request())
    }

    /// What so many tokens of a model cost.
    pub(super) fn price(&self, model: &str, usage: &Usage) -> Option<Micros> {
        self.prices.estimate(model, usage)
    }

    /// A model that it asks, or has asked, and whose price is not known.
    pub(super) fn unpriced(&self) -> Option<&str> {
        let turn = self.turn()?;
        let asked = self.used.keys().filter(|(of, _)| of == turn).map(|(_, model)| model);
        let mut models = asked.chain(&self.named).map(String::as_str);
        models.find(|model| !is_priced(&self.prices, model))
    }

    /// Whether none of its requests was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.used.keys().all(|(turn, _)| !self.is_own(turn))
    }

    /// Whether the thread's file is there, and what it counts can be understood.
    pub(super) fn has_open_file(&self) -> bool {
        let counts =
            self.used.iter().all(|((turn, _), usage)| usage.is_some() || !self.is_own(turn));
        counts && self.is_readable()
    }

    /// Whether the file of a thread was read in part, and cannot be read any further.
    fn has_torn_entry(&self) -> bool {
        self.accounts.iter().any(|account| account.rollout.is_torn())
    }

    /// Whether its thread's file can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.rollout.is_open())
    }

    /// Where the client keeps its threads.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Whether what they hold may all be of a turn before the client's.
    pub(super) fn may_be_behind(&self) -> bool {
        !self.prior_turns.is_known() && self.is_last_turn_over()
    }

    /// Whether nothing follows what the model said last.
    pub(super) fn is_finishing(&self) -> bool {
        self.accounts.first().is_some_and(|account| account.requests.is_finishing())
    }

    /// Whether the thread's last turn is over.
    fn is_last_turn_over(&self) -> bool {
        self.last_turn != LastTurn::Running
    }

    /// Why it failed, by its type.
    pub(super) fn problem(&self) -> Option<&RolloutError> {
        match &self.last_turn {
            LastTurn::Failed(problem) => self.turn().map(|_| problem),
            LastTurn::Running | LastTurn::Succeeded => None,
        }
    }

    /// When a usage limit is lifted that it met.
    pub(super) fn limited_until(&self) -> Option<Timestamp> {
        self.turn().and(self.limited_until)
    }

    /// The model of its own requests.
    pub(super) fn model(&self) -> Option<String> {
        let model = self.accounts.first().map(|account| account.model.clone());
        model.filter(|model| !model.is_empty())
    }
}

/// Notes what an entry says about the requests of its thread.
fn note_request(requests: &mut Requests, entry: &Entry) {
    match entry {
        Entry::Begins { .. } => requests.begin(),
        Entry::Calls => requests.call(),
        Entry::Returned => requests.tool_returned(),
        Entry::Compacted => requests.compacted(),
        // The request that failed may have been answered in part.
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
