//! What a turn cost and why it failed, out of the files that the client keeps.
//!
//! The tokens of a thread are counted over all its turns, and a fork inherits the count of its parent.
//! So requests are added up one by one: those of the last turn that the thread began, and those that
//! agents made for it. What was there before the client started is past.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond_core::budget::Micros;
use raymond_core::prices::{Prices, Usage};
use raymond_core::time::Timestamp;

use super::preflight::is_priced;
use super::rollout::{Entry, Problem, Rollout};

/// The books of one turn.
#[derive(Debug)]
pub(super) struct Books {
    home: PathBuf,
    prices: Arc<Prices>,
    /// The thread of the turn first.
    accounts: Vec<Account>,
    /// By turn and model.
    used: BTreeMap<(String, String), Usage>,
    /// The turn that the thread began last.
    turn: Option<String>,
    /// The models that were named since.
    named: BTreeSet<String>,
    /// The one before the client started.
    past: Option<String>,
    /// Whether its last request was answered with more than words.
    calls: Calls,
    over: Over,
    limited_until: Option<Timestamp>,
}

#[derive(Debug)]
struct Account {
    thread: String,
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
    /// Its last answer was whole, and was only words: nothing follows.
    Spoke,
}

/// How the thread's last turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Over {
    NotYet,
    Well,
    Failed(Problem),
}

impl Books {
    pub(super) fn new(home: &Path, prices: Arc<Prices>) -> Self {
        Self {
            home: home.to_owned(),
            prices,
            accounts: Vec::new(),
            used: BTreeMap::new(),
            named: BTreeSet::new(),
            turn: None,
            past: None,
            calls: Calls::Speaking,
            over: Over::NotYet,
            limited_until: None,
        }
    }

    /// The books of another client's turn.
    pub(super) fn anew(&self) -> Self {
        Self::new(&self.home, Arc::clone(&self.prices))
    }

    /// Another thread works for the turn; the first one is the turn's own.
    pub(super) fn add(&mut self, thread: &str) {
        if self.accounts.iter().all(|account| account.thread != thread) {
            let rollout = Rollout::new(&self.home, thread);
            let thread = thread.to_owned();
            self.accounts.push(Account { thread, rollout, model: String::new() });
        }
    }

    /// All that there is now is of earlier turns.
    pub(super) fn close(&mut self) {
        self.read_on();
        (self.past, self.over) = (self.turn.take(), Over::NotYet);
        self.limited_until = None;
        self.calls = Calls::Speaking;
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
                    let known = self.used.entry((root_turn, model.clone())).or_default();
                    *known = sum(*known, usage);
                    if place == 0 {
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
            Calls::Calling => Calls::Called,
            Calls::Speaking | Calls::Called | Calls::Spoke => Calls::Spoke,
        };
    }

    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Begins { turn } => {
                self.named.clear();
                (self.turn, self.over) = (Some(turn), Over::NotYet);
                self.limited_until = None;
                self.calls = Calls::Speaking;
            }
            Entry::Calls => self.calls = Calls::Calling,
            Entry::Compacted => self.calls = Calls::Called,
            Entry::Limited { resets_at } => {
                self.limited_until = Some(Timestamp(resets_at.saturating_mul(1000)));
            }
            Entry::Ends { error } => self.over = error.map_or(Over::Well, Over::Failed),
            Entry::Branched { .. } | Entry::Model(_) | Entry::Used { .. } | Entry::Other => {}
        }
    }

    /// The turn, when it began after the client started.
    fn turn(&self) -> Option<&str> {
        self.turn.as_deref().filter(|turn| Some(*turn) != self.past.as_deref())
    }

    /// What its requests cost so far; none when the price of a model is not known.
    pub(super) fn spent(&self) -> Option<Micros> {
        let own = self.used.iter().filter(|((turn, _), _)| Some(turn.as_str()) == self.turn());
        let costs = own.map(|((_, model), usage)| self.prices.estimate(model, usage));
        costs.sum::<Option<MicrosSum>>().map(|sum| sum.0)
    }

    /// A model that it asks, or has asked, and whose price is not known.
    pub(super) fn unpriced(&self) -> Option<&str> {
        let turn = self.turn()?;
        let asked = self.used.keys().filter(|(of, _)| of == turn).map(|(_, model)| model);
        let mut models = asked.chain(&self.named).map(String::as_str);
        models.find(|model| !is_priced(&self.prices, model))
    }

    /// Whether any of its requests was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.used.keys().all(|(turn, _)| Some(turn.as_str()) != self.turn())
    }

    /// Whether nothing follows what the model said last.
    pub(super) fn is_finishing(&self) -> bool {
        self.calls == Calls::Spoke
    }

    /// Whether the thread's last turn is over.
    pub(super) fn is_over(&self) -> bool {
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
