//! The usage and the list price of one streamed message.
//!
//! While a message streams, the client repeats the usage from the start of the message: the input
//! is final, the output is not. Therefore the written text also counts as output, at four letters
//! per token.

use raymond_core::budget::Micros;
use raymond_core::prices::{Prices, Usage};

use super::super::wire::{Block, CacheWrites, Count, Message, Tokens};

/// A part of a turn that sends its own requests: the main conversation (`None`), or a subagent by
/// the id of its tool call.
pub(super) type Conversation = Option<String>;

/// A message, added up from its lines.
#[derive(Debug, Clone)]
pub(super) struct Streamed {
    pub(super) conversation: Conversation,
    pub(super) model: String,
    pub(super) payment: Payment,
    /// Unknown if the model is only assumed, or if it wrote thinking that is neither shown nor
    /// counted.
    pub(super) rest: Remainder,
    tokens: Tokens,
    written: usize,
}

/// Whether a result reports the cost of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payment {
    /// The next result may report it.
    Due,
    /// A result reported it.
    Reported,
    /// The result of its round did not report it, so no result will.
    Unreported,
}

/// The known part of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownCost {
    pub(super) amount: Micros,
    pub(super) rest: Remainder,
}

/// Whether a part of a price is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remainder {
    Nothing,
    Unknown,
}

/// The common fields of all lines of one message.
///
/// Two requests can have the same id: a gateway may number its answers per conversation, or always
/// use one id. The input of a request is the same in all its lines and grows from request to
/// request, so it is part of the key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessageKey {
    conversation: Conversation,
    id: String,
    input: [Count; 3],
}

impl MessageKey {
    /// Returns the key of a line, or `None` without an id, because lines without an id never belong
    /// together.
    pub(super) fn of(conversation: &Conversation, message: &Message) -> Option<Self> {
        let Tokens { input, cache_write, cache_read, .. } = message.usage;
        (!message.id.is_empty()).then(|| Self {
            conversation: conversation.clone(),
            id: message.id.clone(),
            input: [input, cache_write, cache_read],
        })
    }
}

impl Streamed {
    /// Creates a message without lines.
    pub(super) fn new(conversation: Conversation, message: &Message) -> Self {
        Self {
            conversation,
            model: message.model.clone().unwrap_or_default(),
            payment: Payment::Due,
            rest: Remainder::Nothing,
            tokens: message.usage,
            written: 0,
        }
    }

    pub(super) fn add_line(&mut self, message: &Message) {
        // Later lines repeat or raise the count, so the maximum counts.
        self.tokens.output = self.tokens.output.max(message.usage.output);
        let searches = &mut self.tokens.server_tools.web_search_requests;
        *searches = (*searches).max(message.usage.server_tools.web_search_requests);
        if message.content.iter().any(Block::hides_thinking) {
            self.rest = Remainder::Unknown;
        }
        let blocks = message.content.iter();
        self.written += blocks.map(|b| b.text.len() + b.thinking + b.input.length).sum::<usize>();
    }

    pub(super) fn price(&self, prices: &Prices) -> KnownCost {
        let Tokens { input, output, cache_write, cache_read, .. } = self.tokens;
        let Tokens { cache_writes: CacheWrites { for_an_hour }, server_tools, .. } = self.tokens;
        let written = (self.written / 4) as u64;
        // A cache write for an hour costs twice the input.
        let doubled = for_an_hour.at_least().saturating_mul(2);
        let usage = Usage {
            input: input.at_least().saturating_add(doubled),
            output: output.at_least().max(written),
            cache_write: cache_write.at_least().saturating_sub(for_an_hour.at_least()),
            cache_read: cache_read.at_least(),
        };
        // The client passes on the usage that it receives, and some gateways omit the cache.
        let is_counted = matches!((input, output), (Count::Known(_), Count::Known(_)))
            && cache_write != Count::Unreadable
            && ![cache_read, for_an_hour].contains(&Count::Unreadable)
            // Every request reads something. Some gateways count it only at the end of the message.
            && [usage.input, usage.cache_write, usage.cache_read] != [0; 3]
            && self.rest == Remainder::Nothing
            // The price list has no price for a search.
            && matches!(server_tools.web_search_requests, Count::Absent | Count::Known(0));
        match prices.estimate(&self.model, &usage) {
            Some(amount) if is_counted => KnownCost { amount, rest: Remainder::Nothing },
            amount => KnownCost { amount: amount.unwrap_or_default(), rest: Remainder::Unknown },
        }
    }
}
