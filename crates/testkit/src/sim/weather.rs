//! Usage limits and missing logins, as a backend has them: for everybody at once, for a while.

use raymond_core::failure::TurnFailure;
use raymond_core::time::{Span, Timestamp};

use crate::dice::Dice;

use super::author::BACKENDS;
use super::reality::DAWN;

/// When which backend refuses, and why. Clear by default.
#[derive(Debug, Clone, Default)]
pub struct Weather(Vec<Spell>);

/// A backend refuses for a while.
#[derive(Debug, Clone, Copy)]
struct Spell {
    backend: &'static str,
    from: Timestamp,
    until: Timestamp,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The usage limit is reached, and the backend says until when.
    LimitUntil,
    /// The usage limit is reached.
    Limit,
    /// Nobody is logged in.
    LoggedOut,
}

impl Weather {
    /// Up to three bad spells, the first of them soon.
    pub fn bad(dice: &mut Dice) -> Self {
        let spells = 1 + dice.below(3);
        Self((0..spells).map(|_| Spell::random(dice)).collect())
    }

    /// Why a turn of the backend that starts now is refused.
    pub fn refusal(&self, backend: &str, now: Timestamp) -> Option<TurnFailure> {
        let now_there =
            |spell: &&Spell| spell.backend == backend && (spell.from..spell.until).contains(&now);
        let spell = self.0.iter().find(now_there)?;
        let why = "not now".to_owned();
        Some(match spell.kind {
            Kind::LimitUntil => TurnFailure::Quota { until: Some(spell.until), why },
            Kind::Limit => TurnFailure::Quota { until: None, why },
            Kind::LoggedOut => TurnFailure::Auth { why },
        })
    }
}

impl Spell {
    fn random(dice: &mut Dice) -> Self {
        let from = DAWN + Span(dice.below(25_000));
        let length = Span::seconds(*dice.pick(&[20, 300, 1_300, 2_400]));
        let kind = *dice.pick(&[Kind::LimitUntil, Kind::Limit, Kind::LoggedOut]);
        // The backend of most states has most of the bad weather.
        let backend = if dice.percent(70) { BACKENDS[0] } else { BACKENDS[1] };
        Self { backend, from, until: from + length, kind }
    }
}
