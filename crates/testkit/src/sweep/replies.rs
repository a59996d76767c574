//! Fixed replies of each agent at each state, in order.
//!
//! One line per reply: `AGENT STATE | TEXT`. `{large}` stands for a text that does not fit into a
//! record, `{n}` for a line break. A line with only a state defines a state without replies. A text
//! that starts with `!` is another outcome: `!transient`, `!timeout`, `!quota` (with a time),
//! `!limit` (without one), `!auth`, `!environment`, `!task`, `!lost`, `!script`, `!capped`,
//! `!denied TEXT`.

use std::collections::BTreeMap;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::SessionId;
use raymond_core::time::{Span, Timestamp};

use crate::sim::reply::{Reply, ReplySource, TurnRequest};
use crate::violation::Violation;

/// The cost of every prompt.
// In millionths of a dollar; below the least share of 50,000, so that a full share pays for a turn.
const COST: Cost = Cost::Reported(Micros(40_000));

#[derive(Debug, Clone, Default)]
pub(super) struct FixedReplies(BTreeMap<(String, String), Vec<String>>);

impl FixedReplies {
    pub(super) fn parse(text: &str) -> Result<Self, Violation> {
        let mut replies = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let bad = || Violation(format!("{line:?} is not a reply"));
            let Some((place, text)) = line.split_once(" | ") else {
                replies.0.entry((String::new(), line.to_owned())).or_default();
                continue;
            };
            let (agent, state) = place.split_once(' ').ok_or_else(bad)?;
            let place = (agent.to_owned(), state.to_owned());
            // 17,500 bytes, more than the 16 KiB that a record holds inline.
            let text = text.replace("{n}", "\n").replace("{large}", &"much ".repeat(3_500));
            replies.0.entry(place).or_default().push(text);
        }
        Ok(replies)
    }

    pub(super) fn states(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|(_, state)| state.as_str())
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

impl ReplySource for FixedReplies {
    fn reply(&self, request: TurnRequest<'_>, now: Timestamp) -> Reply {
        let replies = self.0.get(&(request.agent.to_owned(), request.state.to_owned()));
        // By finished attempts: an interrupted attempt repeats its reply, so crashes use up no
        // line.
        let reply = replies.and_then(|replies| replies.get(request.finished));
        let cost = if request.is_prompt() { COST } else { Cost::Free };
        let why = || "as planned".to_owned();
        // A missing line fails the agent, so that an attempt too many shows in the history.
        let Some(reply) = reply else {
            return Reply::Fails(TurnFailure::Task { why: "nothing to say".to_owned() }, cost);
        };
        let Some(other) = reply.strip_prefix('!') else {
            return Reply::Says(reply.clone(), cost);
        };
        if let Some(text) = other.strip_prefix("denied ") {
            return Reply::Denied(text.to_owned(), cost);
        }
        let failure = match other {
            "capped" => return Reply::Capped(cost),
            "transient" => TurnFailure::Transient { why: why() },
            "timeout" => TurnFailure::Timeout { clock: Clock::Wall, after: Span::seconds(9) },
            "limit" => TurnFailure::Quota { until: None, why: why() },
            "quota" => TurnFailure::Quota { until: Some(now + Span::minutes(20)), why: why() },
            "auth" => TurnFailure::Auth { why: why() },
            "environment" => TurnFailure::Environment { why: why() },
            "lost" => TurnFailure::LostSession { session: SessionId::new("gone") },
            "script" => {
                TurnFailure::Script { status: "exit status 1".into(), stderr: why(), tag: None }
            }
            _ => TurnFailure::Task { why: why() },
        };
        Reply::Fails(failure, cost)
    }
}
