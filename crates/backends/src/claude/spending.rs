//! The cost of a turn of Claude Code.
//!
//! The client reports the cost of a round with its result. Messages that no result covers are
//! priced by their tokens. Such a turn was interrupted, so each of its conversations may have one
//! more open request that was never streamed. Each of these requests is charged like the most
//! expensive message so far.
//!
//! A cost with an unknown part is [`Cost::AtLeast`] the known part. A turn is free only if its
//! client wrote nothing, or reported that nothing was used.

mod message;
mod report;

use std::collections::BTreeMap;

use raymond_core::budget::{Cost, Micros};
use raymond_core::prices::Prices;

use super::wire::{Conclusion, Count, Message, Tokens as MessageTokens, Totals};
use message::{Conversation, KnownCost, MessageKey, Payment, Remainder, Streamed};
use report::{Account, Tokens, accounts};

/// The spending of one turn so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Spending {
    reported: Micros,
    /// The tokens of models for which the client only guessed a cost.
    guessed: Vec<(String, Tokens)>,
    messages: Vec<Streamed>,
    /// How many messages came before the last result. No later result covers them, so a transcript
    /// full of results is read in one pass.
    concluded: usize,
    /// The messages since the last result, as indices of `messages`.
    due: BTreeMap<MessageKey, usize>,
    /// Rounds that began and have no result yet. The next round may begin before the client writes
    /// the result of the last one, because the client delays a result while a subagent works.
    rounds: u64,
    main: Main,
    /// Subagents since the last result, by the id of the tool call, with their task if it is known.
    ///
    /// A finished subagent counts too, unless its last message is known, because the client does
    /// not stream the last message of a subagent in the foreground. The client also ends its
    /// subagents before it ends itself.
    agents: BTreeMap<String, Option<String>>,
    /// The models of subagents, by the id of the tool call.
    models: BTreeMap<String, String>,
    /// Conversations whose request was interrupted and is in no report.
    interrupted: Vec<Conversation>,
    /// Whether output since the last result could not be read.
    unread: Unread,
    /// Whether a round ended without a complete report.
    reports: Reports,
    /// The index of the last result, as the client counts them.
    last_result: Option<u64>,
}

/// Whether the main conversation may have an open request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Main {
    /// The client has written nothing yet.
    #[default]
    Silent,
    /// The client wrote something, but no start of a round.
    Wrote,
    /// A round began.
    Asking,
    /// The last round has ended.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Unread {
    #[default]
    Nothing,
    Something,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reports {
    #[default]
    Complete,
    Incomplete,
}

impl Spending {
    /// Notes any line of the client.
    pub(super) fn note_line(&mut self) {
        if self.main == Main::Silent {
            self.main = Main::Wrote;
        }
    }

    /// Notes output that could not be read and that may have been a message.
    pub(super) fn note_unread_output(&mut self) {
        self.note_line();
        self.unread = Unread::Something;
    }

    /// Notes the start of a round: the client sends a request now.
    pub(super) fn note_request(&mut self) {
        self.rounds += 1;
        self.main = Main::Asking;
    }

    /// Notes that the API rejected a client that is not logged in. An earlier request may have been
    /// answered.
    pub(super) fn note_rejection(&mut self) {
        if !self.has_due() {
            self.main = Main::Done;
        }
    }

    /// Adds one line of a message.
    pub(super) fn add_message(&mut self, message: &Message, conversation: Conversation) {
        match &conversation {
            Some(call) => {
                self.agents.entry(call.clone()).or_default();
                let model = message.model.clone();
                self.models.extend(model.map(|model| (call.clone(), model)));
            }
            None => self.main = Main::Asking,
        }
        // Lines with the same key belong to one message and must not be charged twice.
        let key = MessageKey::of(&conversation, message);
        let known = key.as_ref().and_then(|key| self.due.get(key)).copied();
        let place = known.unwrap_or_else(|| {
            self.messages.push(Streamed::new(conversation, message));
            self.messages.len() - 1
        });
        self.messages[place].add_line(message);
        self.due.extend(key.map(|key| (key, place)));
    }

    /// Notes the start of a subagent.
    pub(super) fn agent_started(&mut self, call: String, task: String) {
        self.agents.insert(call, Some(task));
    }

    /// Notes that a subagent may have finished. The client does not stream the last message of a
    /// subagent in the foreground, but reports its tokens with the tool result.
    pub(super) fn agent_finished(&mut self, call: &str, totals: &Totals, model: Option<&str>) {
        let Totals { tokens: tokens @ Count::Known(_), usage } = *totals else { return };
        let is_counted = matches!((usage.input, usage.output), (Count::Known(_), Count::Known(_)));
        let total = MessageTokens { input: tokens, ..MessageTokens::default() };
        let usage = if is_counted { usage } else { total };
        let own = self.models.get(call).map(String::as_str);
        // A subagent may use a more expensive model than the main conversation.
        let rest = if own.is_some() { Remainder::Nothing } else { Remainder::Unknown };
        let model = own.or(model).map(str::to_owned);
        let message = Message { model, usage, ..Message::default() };
        let mut message = Streamed::new(Some(call.to_owned()), &message);
        message.rest = rest;
        self.messages.push(message);
        self.agents.remove(call);
    }

    /// Notes the end of a round; `runs` returns whether a task still runs in the background.
    pub(super) fn note_result(&mut self, conclusion: &Conclusion, runs: impl Fn(&str) -> bool) {
        let is_lost = conclusion.has_lost_session();
        let report = conclusion.model_usage_since_last_result.as_ref();
        let used_something = report.is_some_and(|report| !report.0.is_empty());
        if is_lost && !used_something && self.main != Main::Asking && !self.has_due() {
            // The client found no session to continue, so it sent no request.
            self.main = Main::Silent;
            return;
        }
        self.rounds = self.rounds.saturating_sub(1);
        self.take_report(conclusion);
        let is_asking = std::mem::replace(&mut self.main, Main::Done) != Main::Done;
        if conclusion.was_interrupted() {
            let is_interrupted = is_asking && !is_lost && !conclusion.was_interrupted_in_tool();
            self.interrupted.extend(is_interrupted.then_some(None));
        } else if self.rounds > 0 {
            self.main = Main::Asking;
        }
        if conclusion.was_interrupted() || conclusion.was_capped() {
            // The client ends its subagents with itself and reports only answered requests.
            self.interrupted.extend(std::mem::take(&mut self.agents).into_keys().map(Some));
        }
        self.agents.retain(|_, task| task.as_deref().is_some_and(&runs));
    }

    /// Adds the report of a result, as far as it can be read.
    fn take_report(&mut self, conclusion: &Conclusion) {
        let report = accounts(conclusion);
        // An interrupted client reports only answered requests, so another request may have been
        // open.
        let may_be_asking = conclusion.was_interrupted() && self.main != Main::Done;
        let used_nothing = !self.has_due() && !may_be_asking;
        let is_lost = self.lost_a_result(conclusion.result_index);
        let is_complete = report.as_ref().filter(|_| !is_lost).is_some_and(|report| {
            let is_empty = used_nothing && self.unread == Unread::Nothing;
            let counts = report.values().all(|account| *account != Account::Nothing);
            counts && (is_empty || !report.is_empty())
        });
        let report = report.unwrap_or_default();
        for message in &mut self.messages[self.concluded..] {
            let account = report.get(&message.model).unwrap_or(&Account::Nothing);
            let is_reported = is_complete || (!is_lost && *account != Account::Nothing);
            message.payment = if is_reported { Payment::Reported } else { Payment::Unreported };
        }
        for (model, account) in report {
            match account {
                Account::Cost(cost) => self.reported = self.reported.plus(cost),
                Account::Tokens(tokens) => self.guessed.push((model, tokens)),
                Account::Nothing => {}
            }
        }
        self.concluded = self.messages.len();
        self.due.clear();
        self.unread = Unread::Nothing;
        if !is_complete {
            self.reports = Reports::Incomplete;
        }
    }

    /// Whether an earlier result was lost, which had reported some of the messages.
    fn lost_a_result(&mut self, index: Option<u64>) -> bool {
        let Some(index) = index else { return false };
        match self.last_result.replace(index) {
            Some(last) => index > last.saturating_add(1),
            None => self.unread == Unread::Something && index > 0,
        }
    }

    fn has_due(&self) -> bool {
        self.concluded < self.messages.len()
    }

    /// Returns the conversations that may have an open request that is in no report.
    fn in_flight(&self) -> impl Iterator<Item = Conversation> {
        let main = matches!(self.main, Main::Wrote | Main::Asking).then_some(None);
        let agents = self.agents.keys().cloned().map(Some);
        self.interrupted.iter().cloned().chain(main).chain(agents)
    }

    /// Returns the known cost.
    pub(super) fn cost(&self, prices: &Prices) -> Cost {
        let priced: Vec<Priced<'_>> =
            self.messages.iter().map(|message| (message, message.price(prices))).collect();
        let unpaid = priced.iter().filter(|(message, _)| message.payment != Payment::Reported);
        let unpaid: Vec<Micros> = unpaid.map(|(_, known)| known.amount).collect();
        let in_flight: Vec<Conversation> = self.in_flight().collect();
        let is_read = self.unread == Unread::Nothing && self.reports == Reports::Complete;
        if is_read && unpaid.is_empty() && in_flight.is_empty() && self.guessed.is_empty() {
            return Cost::Reported(self.reported);
        }
        // Nothing is known about the first request of a round, not even the size of its input.
        let is_first = matches!(self.main, Main::Wrote | Main::Asking) && !self.has_due();
        let has_example = in_flight.is_empty() || (!is_first && !priced.is_empty());
        let guessed: Vec<KnownCost> =
            self.guessed.iter().map(|(model, tokens)| tokens.price(model, prices)).collect();
        let mut known = priced.iter().map(|(_, known)| known).chain(&guessed);
        let is_priced = known.all(|known| known.rest == Remainder::Nothing);
        let guessed = guessed.iter().map(|known| known.amount);
        let examples = RequestExamples::of(&priced);
        let requests = in_flight.iter().map(|conversation| examples.typical_cost(conversation));
        match unpaid.into_iter().chain(guessed).chain(requests).fold(self.reported, Micros::plus) {
            known if is_read && is_priced && has_example => Cost::Estimated(known),
            Micros::ZERO => Cost::Unknown,
            known => Cost::AtLeast(known),
        }
    }
}

type Priced<'a> = (&'a Streamed, KnownCost);

/// The most expensive messages, which price open requests.
struct RequestExamples {
    turn: Micros,
    agents: BTreeMap<String, Micros>,
}

impl RequestExamples {
    fn of(messages: &[Priced<'_>]) -> Self {
        let mut examples = Self { turn: Micros::ZERO, agents: BTreeMap::new() };
        for (message, known) in messages {
            examples.turn = examples.turn.max(known.amount);
            if let Some(call) = &message.conversation {
                let agent = examples.agents.entry(call.clone()).or_default();
                *agent = known.amount.max(*agent);
            }
        }
        examples
    }

    /// Returns the price of one more request.
    fn typical_cost(&self, conversation: &Conversation) -> Micros {
        // A subagent is priced by its own messages, if there are any.
        let own = conversation.as_ref().and_then(|call| self.agents.get(call));
        own.copied().unwrap_or(self.turn)
    }
}

#[cfg(test)]
mod tests;
