//! Usage limits and missing logins of a backend: they affect all its turns for some time.

use raymond_core::failure::TurnFailure;
use raymond_core::time::{Span, Timestamp};

use crate::dice::Dice;

use super::random_workflow::BACKENDS;
use super::world::START_TIME;

/// The outages of all backends; none by default.
#[derive(Debug, Clone, Default)]
pub struct Outages(Vec<Outage>);

#[derive(Debug, Clone, Copy)]
struct Outage {
    backend: &'static str,
    from: Timestamp,
    until: Timestamp,
    kind: OutageKind,
}

#[derive(Debug, Clone, Copy)]
enum OutageKind {
    /// The usage limit is reached, and the backend reports until when.
    LimitUntil,
    /// The usage limit is reached, without a time.
    Limit,
    LoggedOut,
}

impl Outages {
    /// Draws one to three outages. They start within 25 seconds, because most runs are short.
    pub fn random(dice: &mut Dice) -> Self {
        let outages = 1 + dice.below(3);
        Self((0..outages).map(|_| Outage::random(dice)).collect())
    }

    /// Returns the failure of a turn that starts now, if its backend has an outage.
    pub fn failure_at(&self, backend: &str, now: Timestamp) -> Option<TurnFailure> {
        let is_active = |outage: &&Outage| {
            outage.backend == backend && (outage.from..outage.until).contains(&now)
        };
        let outage = self.0.iter().find(is_active)?;
        let why = "not now".to_owned();
        Some(match outage.kind {
            OutageKind::LimitUntil => TurnFailure::Quota { until: Some(outage.until), why },
            OutageKind::Limit => TurnFailure::Quota { until: None, why },
            OutageKind::LoggedOut => TurnFailure::Auth { why },
        })
    }
}

impl Outage {
    fn random(dice: &mut Dice) -> Self {
        let from = START_TIME + Span(dice.below(25_000));
        // Shorter and longer than 15 minutes, after which a limit without a time is tried again.
        let length = Span::seconds(*dice.pick(&[20, 300, 1_300, 2_400]));
        let kind = *dice.pick(&[OutageKind::LimitUntil, OutageKind::Limit, OutageKind::LoggedOut]);
        // Most states use the first backend, so most outages should hit it.
        let backend = if dice.percent(70) { BACKENDS[0] } else { BACKENDS[1] };
        Self { backend, from, until: from + length, kind }
    }
}
