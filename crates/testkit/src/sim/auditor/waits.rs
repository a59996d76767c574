//! The auditor's rules about waiting: retries, held backends, and stop requests, which count once.
//!
//! A wait may end neither too early, by the owner's clock, nor too late, by the monotonic clock.
//! The second rule is needed because a user can set the wall clock back while an owner waits.

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::failure::TurnFailure;
use raymond_core::ids::{AgentId, BackendName, TurnId};
use raymond_core::run::outcome::Outcome;
use raymond_core::run::{Event, Input};
use raymond_core::scheduler::Hold;
use raymond_core::scheduler::Lane;
use raymond_core::time::{Span, Timestamp};

use super::money::Report;
use crate::violation::Violation;

/// The longest backoff with its maximal jitter: five minutes and a quarter of it.
const LONGEST_BACKOFF: Span = Span::seconds(375);

/// The longest usage limit that Raymond waits for: 31 days.
const LONGEST_HOLD: Span = Span::minutes(31 * 24 * 60);

#[derive(Debug, Clone, Default)]
pub(super) struct Waits {
    /// The queue of each agent's current turn.
    lanes: BTreeMap<AgentId, Lane>,
    holds: BTreeMap<BackendName, Hold>,
    retries: BTreeMap<TurnId, Timestamp>,
    /// When each retry must be over, by the monotonic clock.
    latest_retries: BTreeMap<TurnId, Span>,
    /// When each usage limit must be over, by the monotonic clock.
    latest_holds: BTreeMap<BackendName, Span>,
    parked: BTreeMap<AgentId, ParkedUntil>,
    keys: BTreeSet<String>,
}

/// The wait of a parked agent.
#[derive(Debug, Clone, Copy)]
struct ParkedUntil {
    until: Timestamp,
    /// The duration, if a tag names one.
    span: Option<Span>,
    /// When it must be over, by the monotonic clock.
    latest: Span,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// By the owner's clock.
    pub(super) at: Timestamp,
    /// By the monotonic clock.
    pub(super) uptime: Span,
}

impl Moment {
    /// Returns the monotonic time at which a wait until `until` ends, if the wall clock is not set.
    fn latest(self, until: Timestamp) -> Span {
        // `at` is the owner's clock, which can differ from the wall clock. Both times must come
        // from the same clock.
        let wait = until.0.saturating_sub(self.at.0);
        Span(self.uptime.0.saturating_add(wait))
    }
}

impl Waits {
    /// Restarts the remaining waits by the clock of the new owner.
    pub(super) fn resumed(&mut self, moment: Moment, cause: &Input) {
        if !matches!(cause, Input::Resume(_)) {
            return;
        }
        for (turn, latest) in &mut self.latest_retries {
            *latest = self.retries.get(turn).map_or(*latest, |until| moment.latest(*until));
        }
        for parked in self.parked.values_mut() {
            parked.latest = moment.latest(parked.until);
        }
        for (backend, latest) in &mut self.latest_holds {
            if let Some(Hold::Quota { until, .. }) = self.holds.get(backend) {
                *latest = moment.latest(*until);
            }
        }
    }

    /// Checks an event against the waits.
    #[expect(clippy::too_many_lines, reason = "one flat table of all events reads best")]
    pub(super) fn event(
        &mut self,
        moment: Moment,
        cause: &Input,
        event: &Event,
    ) -> Result<(), Violation> {
        let Moment { at, uptime } = moment;
        // Lateness counts only if the owner's own timer (`Due`) ends the wait.
        let in_time = |latest: Option<Span>| {
            let latest = latest.filter(|_| matches!(cause, Input::Due));
            latest.is_none_or(|latest| uptime <= latest)
        };
        let asked = matches!(cause, Input::Resume(_));
        // A resume skips a wait that only a wrong clock can explain.
        let is_over = |until, longest| until <= at || (asked && until > at + longest);
        match event {
            Event::TurnQueued { turn, lane, .. } => {
                // A new turn of an agent replaces the old one, and with it the wait for its retry.
                self.retries.retain(|waiting, _| waiting.agent != turn.agent);
                self.lanes.insert(turn.agent.clone(), lane.clone());
            }
            Event::TurnRequeued { turn, .. } => {
                let until = self.retries.remove(turn);
                let over = until.is_none_or(|until| is_over(until, LONGEST_BACKOFF));
                must!(over, "{turn} is tried again too early");
                let in_time = in_time(self.latest_retries.remove(turn));
                must!(in_time, "{turn} waits longer than planned for its retry");
            }
            Event::AgentWaits { agent, until, span, .. } => {
                let (until, span) = (*until, *span);
                self.parks(
                    moment,
                    asked,
                    agent,
                    ParkedUntil { until, span, latest: moment.latest(until) },
                )?;
            }
            Event::Moved { agent, .. } | Event::AgentFailed { agent, .. } => {
                if let Some(ParkedUntil { until, latest, .. }) = self.parked.remove(agent) {
                    let over = until <= at || matches!(cause, Input::Now);
                    must!(over, "{agent} continues before its wait is over");
                    must!(in_time(Some(latest)), "{agent} waits longer than planned");
                }
            }
            Event::TurnStarted { turn, .. } => {
                must!(!self.parked.contains_key(&turn.agent), "{turn} starts, but its agent waits");
                self.may_start(turn)?;
            }
            Event::RetryAt { turn, until, .. } => {
                must!(is_worth_a_retry(cause), "{turn} is tried again after {cause:?}");
                // A wait of zero would repeat a failing request without pause; a wait beyond the
                // longest backoff would be skipped by the next resume as the work of a wrong clock.
                let soon = at < *until && *until <= at + LONGEST_BACKOFF;
                // A program step is retried at once.
                let soon =
                    soon || (*until == at && self.lanes.get(&turn.agent) == Some(&Lane::Script));
                must!(soon, "{turn} is tried again at {until:?}, and now is {at:?}");
                self.retries.insert(turn.clone(), *until);
                self.latest_retries.insert(turn.clone(), moment.latest(*until));
            }
            Event::BackendHeld { backend, hold } => self.held(moment, backend, hold)?,
            Event::BackendReleased { backend } => match self.holds.remove(backend) {
                Some(Hold::Quota { until, .. }) => {
                    let over = is_over(until, LONGEST_HOLD);
                    must!(over, "{backend} is released before its limit is lifted");
                    let in_time = in_time(self.latest_holds.remove(backend));
                    must!(in_time, "{backend} is held longer than planned");
                }
                Some(Hold::Auth { .. } | Hold::Environment { .. }) => {
                    // No time ends these holds: a user must log in or free space, and the resume
                    // says so.
                    must!(asked, "{backend} is released without a resume");
                }
                None => return Err(Violation(format!("{backend} is released, not held"))),
            },
            Event::StopRequested { key, .. } => {
                // The file of a request is removed after its record. A crash in between leaves the
                // file, and the next owner reads it again.
                must!(self.keys.insert(key.clone()), "the request {key} counts twice");
            }
            _ => {}
        }
        Ok(())
    }

    fn parks(
        &mut self,
        moment: Moment,
        asked: bool,
        agent: &AgentId,
        parked: ParkedUntil,
    ) -> Result<(), Violation> {
        let (at, ParkedUntil { until, span, .. }) = (moment.at, parked);
        must!(until > at, "{agent} waits until {until:?}, which is over");
        let fits = span.is_none_or(|span| until == at + span);
        must!(fits, "{agent} waits until {until:?} and not for {span:?}");
        if let Some(earlier) = self.parked.insert(agent.clone(), parked) {
            // Only a clock that was set back explains that more than the whole is left.
            let restarts = asked && earlier.span.is_some_and(|span| earlier.until > at + span);
            must!(restarts, "the wait of {agent} begins again");
        }
        Ok(())
    }

    fn may_start(&self, turn: &TurnId) -> Result<(), Violation> {
        must!(!self.retries.contains_key(turn), "{turn} does not wait for its retry");
        match self.lanes.get(&turn.agent) {
            None => Err(Violation(format!("{turn} starts, and was never queued"))),
            // Scripts use no backend, so no hold stops them.
            Some(Lane::Script) => Ok(()),
            Some(Lane::Prompt(backend)) => {
                let held = self.holds.get(backend);
                must!(held.is_none(), "{turn} starts although {backend} is held: {held:?}");
                Ok(())
            }
        }
    }

    fn held(
        &mut self,
        moment: Moment,
        backend: &BackendName,
        hold: &Hold,
    ) -> Result<(), Violation> {
        if let Hold::Quota { until, .. } = hold {
            self.latest_holds.insert(backend.clone(), moment.latest(*until));
        }
        match (self.holds.insert(backend.clone(), hold.clone()), hold) {
            // A limit ends by time. If it replaced a missing login, turns would start again without
            // the login.
            (Some(hold @ (Hold::Auth { .. } | Hold::Environment { .. })), Hold::Quota { .. }) => {
                Err(Violation(format!("a limit of {backend} hides {hold:?}")))
            }
            (_, Hold::Quota { until, .. }) if *until <= moment.at => {
                Err(Violation(format!("{backend} is held until {until:?}, which is over")))
            }
            (_, Hold::Quota { .. } | Hold::Auth { .. } | Hold::Environment { .. }) => Ok(()),
        }
    }
}

/// Returns whether the outcome may count as a retry. A usage limit, a missing login and a lost
/// session may not.
fn is_worth_a_retry(cause: &Input) -> bool {
    match Report::of(cause).map(|report| report.outcome) {
        Some(Outcome::Failed { failure, .. }) => {
            matches!(
                failure,
                TurnFailure::Transient { .. }
                    | TurnFailure::Timeout { .. }
                    | TurnFailure::Step { again: true, .. }
            )
        }
        Some(Outcome::Capped { .. }) => true,
        Some(Outcome::Finished(_) | Outcome::Interrupted { .. }) | None => false,
    }
}
