//! What a turn cost.
//!
//! The client reports the cost of a round with its result. What was streamed after the last report
//! is estimated: from the tokens of each message, which are partial while it streams, so that what
//! it holds counts at least. A turn is free only when it cannot have reached the model.

use std::collections::BTreeMap;

use raymond_core::budget::{Cost, Micros};
use raymond_core::prices::{Prices, Usage};

use super::shape::{Conclusion, Message, ModelUsage, Tokens};

/// The money of one turn so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Spending {
    reported: Option<Micros>,
    /// Messages that no report covers, by id.
    unreported: BTreeMap<String, Streamed>,
    request: Request,
}

/// Whether the model may be at work on something that nothing is known of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Request {
    #[default]
    None,
    Possible,
}

#[derive(Debug, Clone, Default)]
struct Streamed {
    model: String,
    usage: Usage,
    written: usize,
}

impl Spending {
    /// The client has begun a round, and asks the model now.
    pub(super) fn begun(&mut self) {
        self.request = Request::Possible;
    }

    /// The model answers nobody who is not logged in.
    pub(super) fn turned_away(&mut self) {
        self.request = Request::None;
    }

    /// A further line of a message.
    pub(super) fn streamed(&mut self, message: &Message) {
        let known = self.unreported.entry(message.id.clone()).or_default();
        known.model = message.model.clone().unwrap_or_default();
        known.usage = larger(known.usage, message.usage);
        let blocks = message.content.iter();
        known.written += blocks.map(|b| b.text.len() + b.thinking + b.input.length).sum::<usize>();
    }

    /// A round is over.
    pub(super) fn concluded(&mut self, conclusion: &Conclusion) {
        // A report that names no model covers nothing of what a model was heard to say, nor what it was
        // about to say when it was cut off.
        let covers = |usage: &&BTreeMap<String, ModelUsage>| {
            !usage.is_empty() || (self.unreported.is_empty() && !conclusion.was_cut_off())
        };
        let usage = conclusion.model_usage_since_last_result.as_ref().filter(covers);
        let Some(cost) = usage.and_then(total) else { return };
        self.reported = Some(self.reported.unwrap_or_default().plus(cost));
        self.unreported.clear();
        self.request = Request::None;
    }

    /// What is known of the cost.
    pub(super) fn cost(&self, prices: &Prices) -> Cost {
        let estimates = self.unreported.values().map(|message| message.estimate(prices));
        let estimates: Vec<Option<Micros>> = estimates.collect();
        let sum = estimates.iter().flatten().fold(Micros::ZERO, |sum, cost| sum.plus(*cost));
        match (self.reported, self.request) {
            (Some(cost), Request::None) if estimates.is_empty() => Cost::Reported(cost),
            (None, Request::None) if estimates.is_empty() => Cost::Reported(Micros::ZERO),
            (None, _) if estimates.is_empty() || estimates.contains(&None) => Cost::Unknown,
            (reported, _) => Cost::Estimated(reported.unwrap_or_default().plus(sum)),
        }
    }
}

impl Streamed {
    fn estimate(&self, prices: &Prices) -> Option<Micros> {
        // A token is about four letters.
        let written = (self.written / 4) as u64;
        let usage = Usage { output: self.usage.output.max(written), ..self.usage };
        prices.estimate(&self.model, &usage)
    }
}

fn larger(known: Usage, tokens: Tokens) -> Usage {
    Usage {
        input: known.input.max(tokens.input),
        output: known.output.max(tokens.output),
        cache_write: known.cache_write.max(tokens.cache_write),
        cache_read: known.cache_read.max(tokens.cache_read),
    }
}

/// The sum, when every model has an amount: none can take from what another one cost.
fn total(usage: &BTreeMap<String, ModelUsage>) -> Option<Micros> {
    let amounts = usage.values().map(|model| model.cost_usd.filter(|dollars| *dollars >= 0.0));
    micros(amounts.sum::<Option<f64>>()?)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be an amount first, and a cast stops at the largest one"
)]
fn micros(dollars: f64) -> Option<Micros> {
    (dollars.is_finite() && dollars >= 0.0).then(|| Micros((dollars * 1e6).round() as u64))
}

#[cfg(test)]
mod tests;
