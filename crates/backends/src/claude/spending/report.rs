//! The report of a result: the usage and cost of each model since the last result.

use std::collections::BTreeMap;

use raymond_core::budget::Micros;
use raymond_core::prices::{Prices, Usage};

use super::super::wire::{Conclusion, CostBasis, Count, ModelUsage};
use super::message::{KnownCost, Remainder};

/// The reported usage of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Account {
    Cost(Micros),
    /// The tokens, because the reported cost is only a guess.
    Tokens(Tokens),
    /// Nothing usable.
    Nothing,
}

/// The tokens of a model whose price the client does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tokens {
    usage: Usage,
    /// Unknown if there were web searches, which have their own price.
    rest: Remainder,
}

impl Tokens {
    pub(super) fn price(&self, model: &str, prices: &Prices) -> KnownCost {
        match prices.estimate(model, &self.usage) {
            Some(amount) => KnownCost { amount, rest: self.rest },
            None => KnownCost { amount: Micros::ZERO, rest: Remainder::Unknown },
        }
    }
}

/// Returns the accounts of a result by model, or `None` if it has no report.
pub(super) fn accounts(conclusion: &Conclusion) -> Option<BTreeMap<String, Account>> {
    let report = conclusion.model_usage_since_last_result.as_ref()?;
    let accounts = report.0.iter().map(|(model, usage)| {
        // Either of the two fields marks a guess.
        let is_guess = [conclusion.cost_basis, usage.cost_basis].contains(&CostBasis::Unknown);
        let account = if is_guess { guessed(usage) } else { reported(usage) };
        (model.clone(), account)
    });
    Some(accounts.collect())
}

/// Returns the reported cost if it is a plausible amount of money.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be positive and far below the largest amount"
)]
fn reported(model: &ModelUsage) -> Account {
    // In dollars. No turn costs more, and the sum over all models cannot overflow.
    const MOST: f64 = 1e9;
    match model.cost_usd.filter(|dollars| (0.0..=MOST).contains(dollars)) {
        Some(dollars) => Account::Cost(Micros((dollars * 1e6).round() as u64)),
        None => Account::Nothing,
    }
}

fn guessed(model: &ModelUsage) -> Account {
    let ModelUsage { input_tokens: input, output_tokens: output, .. } = *model;
    let (write, read) = (model.cache_creation_input_tokens, model.cache_read_input_tokens);
    let (Count::Known(input), Count::Known(output)) = (input, output) else {
        return Account::Nothing;
    };
    // Missing cache counts are zero, but unreadable ones are unknown.
    if [write, read].contains(&Count::Unreadable) {
        return Account::Nothing;
    }
    let usage = Usage { input, output, cache_write: write.at_least(), cache_read: read.at_least() };
    let rest = match model.web_search_requests {
        Count::Absent | Count::Known(0) => Remainder::Nothing,
        Count::Known(_) | Count::Unreadable => Remainder::Unknown,
    };
    Account::Tokens(Tokens { usage, rest })
}
