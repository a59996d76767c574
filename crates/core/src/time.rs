//! Points in time and spans of it, in milliseconds. They only ever arrive from outside.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC, on the wall clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// A span of time in milliseconds; written `90s`, `10m`, `2h`, `1500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Span {
    /// A span of whole seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(n * 1000)
    }

    /// A span of whole minutes.
    pub const fn minutes(n: u64) -> Self {
        Self::seconds(n * 60)
    }
}

impl Add<Span> for Timestamp {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration such as 90s, 10m or 2h")]
pub struct BadSpan(String);

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan(text.to_owned());
        let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (digits, unit) = text.split_at(split);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        let n: u64 = digits.parse().map_err(|_| bad())?;
        match n.checked_mul(factor) {
            Some(0) | None => Err(bad()),
            Some(milliseconds) => Ok(Self(milliseconds)),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n % 3_600_000 == 0 => write!(f, "{}h", n / 3_600_000),
            n if n % 60_000 == 0 => write!(f, "{}m", n / 60_000),
            n if n % 1000 == 0 => write!(f, "{}s", n / 1000),
            n => write!(f, "{n}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_a_number_and_a_unit() {
        let check = |text: &str, expected| assert_eq!(text.parse().ok(), expected, "{text}");
        check("90s", Some(Span::seconds(90)));
        check("10m", Some(Span::minutes(10)));
        check("2h", Some(Span::minutes(120)));
        check("1500ms", Some(Span(1500)));
        for bad in ["", "s", "10", "-1s", "0s", "1.5h", "10 m", "99999999999999999999h"] {
            check(bad, None);
        }
    }
}
