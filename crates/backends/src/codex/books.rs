//! What a turn cost and why it failed, out of the files that the client keeps.
//!
//! The tokens of a thread are counted over all its turns, and a fork inherits the count of its parent.
//! So requests are added up one by one: those of the turns that the thread began since the client
//! started, and those that agents made for them. Where it is not known what was there before, only the
//! last turn is taken for the client's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_core::budget::Micros;
use raymond_core::prices::{Prices, Usage};
use raymond_core::time::Timestamp;

use super::past::Past;
use super::preflight::is_priced;
use super::rollout::{Entry, Problem, Rollout};

/// The books of one turn.
#[derive(Debug)]
pub(super) struct Books {
    home: PathBuf,
    prices: Arc<Prices>,
    /// The thread of the turn first.
    accounts: Vec<Account>,
    /// Whose accounts there are.
    threads: BTreeSet<String>,
    /// By turn and model; none where tokens were told in a way that is not understood.
    used: BTreeMap<(String, String), Option<Usage>>,
    /// The turns that the thread began.
    begun: BTreeSet<String>,
    /// The last of them.
    turn: Option<String>,
    /// Those before the client started.
    past: Past,
    /// The models that were named since.
    named: BTreeSet<String>,
    /// Whether its last request was answered with more than words.
    calls: Calls,
    /// What its last request took.
    last: Option<Usage>,
    client: Client,
    counting: Counting,
    over: Over,
    limited_until: Option<Timestamp>,
}

#[derive(Debug)]
struct Account {
    rollout: Rollout,
    model: String,
}

/// What the model does, as far as its answers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// It calls tools in an answer that is not whole yet.
    Calling,
    /// It said something in an answer that is not whole yet, or nothing.
    Speaking,
    /// Its last answer was whole, and called tools: another request follows.
    Called,
    /// It was handed what a tool said, or a summary: another request is under way.
    Asked,
    /// Its last answer was whole, and was only words: nothing follows.
    Spoke,
}

/// Whether every answer comes with its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counting {
    Told,
    /// A tool that it called has returned, and what the call took is not told.
    Lacks,
}

/// Whether it goes on when a tool has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Works,
    /// It was told to end.
    Ends,
}

/// How the thread's last turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Over {
    NotYet,
    Well,
    Failed(Problem),
}

impl Books {
    /// Books that know of no earlier turns but those.
    pub(super) fn new(home: &Path, prices: Arc<Prices>, past: Past) -> Self {
        Self {
            home: home.to_owned(),
            prices,
            accounts: Vec::new(),
            threads: BTreeSet::new(),
            used: BTreeMap::new(),
            begun: BTreeSet::new(),
            named: BTreeSet::new(),
            turn: None,
            past,
            calls: Calls::Speaking,
            last: None,
            client: Client::Works,
            counting: Counting::Told,
            over: Over::NotYet,
            limited_until: None,
        }
    }

    /// The books of another client's turn.
    pub(super) fn anew(&self) -> Self {
        Self::new(&self.home, Arc::clone(&self.prices), self.past.clone())
    }

    /// Another thread works for the turn; the first one is the turn's own.
    pub(super) fn add(&mut self, thread: &str) {
        if self.threads.insert(thread.to_owned()) {
            let rollout = Rollout::new(&self.home, thread);
            self.accounts.push(Account { rollout, model: String::new() });
        }
    }

    /// Whether a thread was opened with these instructions.
    pub(super) fn was_told(&self, thread: &str, text: &str) -> bool {
        let mut told = false;
        Rollout::new(&self.home, thread).read_on(&mut |entry| {
            told |= matches!(entry, Entry::Instructed(said) if said.contains(text));
        });
        told
    }

    /// All that there is now is of earlier turns: those of the thread that is gone on with, if any.
    pub(super) fn close(&mut self, thread: Option<&str>) -> io::Result<()> {
        let mut turns = BTreeSet::new();
        if let Some(thread) = thread {
            Rollout::new(&self.home, thread).read_on(&mut |entry| {
                if let Entry::Begins { turn } = entry {
                    turns.insert(turn);
                }
            });
        }
        self.past.keep(turns)
    }

    /// Reads what was written since the last look.
    pub(super) fn read_on(&mut self) {
        let mut accounts = std::mem::take(&mut self.accounts);
        for (place, account) in accounts.iter_mut().enumerate() {
            let Account { rollout, model, .. } = account;
            rollout.read_on(&mut |entry| match entry {
                Entry::Model(name) => {
                    self.named.insert(name.clone());
                    *model = name;
                }
                Entry::Branched { from } => *model = self.model_of(&from),
                Entry::Used { root_turn, usage } => {
                    let none = || Some(Usage::default());
                    let known = self.used.entry((root_turn, model.clone())).or_insert_with(none);
                    *known = known.zip(usage).map(|(known, usage)| sum(known, usage));
                    if place == 0 {
                        self.counting = Counting::Told;
                        self.last = usage;
                        self.answered();
                    }
                }
                entry if place == 0 => self.note(entry),
                _ => {}
            });
        }
        self.accounts = accounts;
    }

    /// The last model of a thread. What another one is to go on with, it sums up first.
    fn model_of(&self, thread: &str) -> String {
        let mut model = String::new();
        Rollout::new(&self.home, thread).read_on(&mut |entry| {
            if let Entry::Model(name) = entry {
                model = name;
            }
        });
        model
    }

    fn answered(&mut self) {
        self.calls = match self.calls {
            // What it spoke before was not its last word: it goes on without being called upon.
            Calls::Calling | Calls::Spoke => Calls::Called,
            Calls::Speaking | Calls::Asked | Calls::Called => Calls::Spoke,
        };
    }

    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Begins { turn } => {
                self.begun.insert(turn.clone());
                self.named.clear();
                (self.turn, self.over) = (Some(turn), Over::NotYet);
                self.limited_until = None;
                self.calls = Calls::Speaking;
            }
            Entry::Calls => self.calls = Calls::Calling,
            Entry::Returned if self.calls == Calls::Calling => self.counting = Counting::Lacks,
            // Other tools may still run: rather one request too many than one too few.
            Entry::Returned if self.calls == Calls::Called && self.client == Client::Works => {
                self.calls = Calls::Asked;
            }
            Entry::Compacted => self.calls = Calls::Asked,
            Entry::Limited { resets_at } => {
                self.limited_until = Some(Timestamp(resets_at.saturating_mul(1000)));
            }
            Entry::Ends { error } => {
                self.over = error.map_or(Over::Well, Over::Failed);
                self.calls = Calls::Spoke;
            }
            Entry::BrokenOff => self.over = Over::Well,
            Entry::Returned
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
        match self.past.holds(turn) {
            Some(is_past) => !is_past && self.begun.contains(turn),
            None => self.turn.as_deref() == Some(turn),
        }
    }

    /// What the client's requests cost so far; none when there are none, or when the price of a model
    /// or the tokens are not known.
    pub(super) fn spent(&self) -> Option<Micros> {
        let own = self.used.iter().filter(|((turn, _), _)| self.is_own(turn));
        let costs = own.map(|((_, model), usage)| self.price(model, usage.as_ref()?));
        costs.sum::<Option<MicrosSum>>().map(|sum| sum.0).filter(|_| !self.is_empty())
    }

    /// The same with a request that is broken off: it reads at least what the last one read and wrote.
    /// Whether any of it is in the cache is not known.
    pub(super) fn spent_with_another(&self) -> Option<Micros> {
        let spent = self.spent()?;
        let Some(last) = self.last else { return Some(spent) };
        let input = [last.input, last.cache_read, last.cache_write, last.output];
        let input = input.into_iter().fold(0, u64::saturating_add);
        let model = &self.accounts.first()?.model;
        Some(spent.plus(self.price(model, &Usage { input, ..Usage::default() })?))
    }

    /// The client is told to end: a tool that returns from now on was broken off, and leads to no request.
    pub(super) fn ends(&mut self) {
        self.client = Client::Ends;
    }

    /// A request that seemed to be under way was not sent.
    pub(super) fn withdraw(&mut self) {
        if self.is_asking() {
            self.calls = Calls::Called;
        }
    }

    /// Whether an answer came without its tokens, so far.
    pub(super) fn lacks_tokens(&self) -> bool {
        self.counting == Counting::Lacks
    }

    /// Whether a request is under way.
    pub(super) fn is_asking(&self) -> bool {
        match self.calls {
            Calls::Calling | Calls::Speaking | Calls::Asked => true,
            Calls::Called | Calls::Spoke => false,
        }
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
    pub(super) fn are_open(&self) -> bool {
        let counts =
            self.used.iter().all(|((turn, _), usage)| usage.is_some() || !self.is_own(turn));
        counts && self.is_readable()
    }

    /// Whether the file of a thread was read in part, and cannot be read any further.
    pub(super) fn are_torn(&self) -> bool {
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
        !self.past.is_known() && self.is_over()
    }

    /// Whether nothing follows what the model said last.
    pub(super) fn is_finishing(&self) -> bool {
        self.calls == Calls::Spoke
    }

    /// Whether the thread's last turn is over.
    fn is_over(&self) -> bool {
        self.over != Over::NotYet
    }

    /// Why it failed, by its type.
    pub(super) fn problem(&self) -> Option<&Problem> {
        match &self.over {
            Over::Failed(problem) => self.turn().map(|_| problem),
            Over::NotYet | Over::Well => None,
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

/// Amounts that add up.
struct MicrosSum(Micros);

impl std::iter::Sum<Micros> for MicrosSum {
    fn sum<I: Iterator<Item = Micros>>(amounts: I) -> Self {
        Self(amounts.fold(Micros::ZERO, Micros::plus))
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
