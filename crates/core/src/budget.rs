//! Money in whole micro-dollars, and the cost of a turn.
//!
//! Integers, because sums of floating-point amounts would depend on their order. A [`Cost`] is what
//! an executor knows; a [`Charge`] is what the run counts. The rules between them are in
//! [`crate::run::share`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An amount in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    pub const ZERO: Self = Self(0);
    /// Default cap of a run: 10 dollars.
    pub const DEFAULT_CAP: Self = Self(10_000_000);
    /// Smallest share of a turn while more is left: 5 cents. A smaller share would end most turns
    /// before they achieve anything.
    pub const LEAST_SHARE: Self = Self(50_000);

    /// Adds, and stops at the largest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Subtracts, and stops at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the amount in dollars, for JSON that people read.
    #[expect(clippy::cast_precision_loss, reason = "exact below nine billion dollars")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros % 10_000 == 0 {
            write!(f, "${dollars}.{:02}", micros / 10_000)
        // Below one cent, four digits could show a charge as zero.
        } else if micros % 100 == 0 || self.0 >= 10_000 {
            write!(f, "${dollars}.{:04}", micros / 100)
        } else {
            write!(f, "${dollars}.{micros:06}")
        }
    }
}

/// The error of a text that is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAmount {
    /// The amount is negative.
    #[error("{0:?} is negative; an amount of dollars is zero or more")]
    Negative(String),
    /// The text is not a number of dollars.
    #[error("{0:?} is not an amount of dollars such as 10 or 2.50")]
    Unreadable(String),
}

impl FromStr for Micros {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let amount = text.strip_prefix('$').unwrap_or(text);
        let unreadable = || BadAmount::Unreadable(text.to_owned());
        if amount.starts_with('-') {
            return Err(BadAmount::Negative(text.to_owned()));
        }
        let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
        // Tested first, because `u64::from_str` accepts a `+`.
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
            return Err(unreadable());
        }
        let whole: u64 =
            if whole.is_empty() { 0 } else { whole.parse().map_err(|_| unreadable())? };
        // Only ASCII digits are left, so byte 6 is a character border.
        let micros: u64 = format!("{fraction:0<6}")[..6].parse().map_err(|_| unreadable())?;
        whole
            .checked_mul(1_000_000)
            .and_then(|w| w.checked_add(micros))
            .map(Self)
            .ok_or_else(unreadable)
    }
}

/// The knowledge of an executor about the cost of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// A script, which costs nothing.
    Free,
    /// The client reported the amount.
    Reported(Micros),
    /// Computed from token usage and a price table.
    Estimated(Micros),
    /// The known part of the cost; the turn spent more.
    AtLeast(Micros),
    Unknown,
}

impl Cost {
    /// Returns the amount that is known, if any is.
    pub fn known(self) -> Option<Micros> {
        match self {
            Self::Reported(known) | Self::Estimated(known) | Self::AtLeast(known) => Some(known),
            Self::Free | Self::Unknown => None,
        }
    }

    /// Returns the same as a lower bound: a part of the cost may be missing.
    #[must_use]
    pub fn at_least(self) -> Self {
        match self {
            Self::Free => Self::Free,
            // `AtLeast(0)` would be charged like `Unknown`, so only `Unknown` is used.
            Self::Reported(Micros::ZERO) | Self::Estimated(Micros::ZERO) | Self::Unknown => {
                Self::Unknown
            }
            Self::Reported(known) | Self::Estimated(known) | Self::AtLeast(known) => {
                Self::AtLeast(known)
            }
        }
    }

    /// Returns what two readers of one transcript know together: the larger amount, as a lower
    /// bound if one of them misses a part.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let is_open = |cost| matches!(cost, Self::AtLeast(_) | Self::Unknown);
        let most = if other.known() >= self.known() { other } else { self };
        match most.known() {
            _ if !is_open(self) && !is_open(other) => most,
            Some(known) if known > Micros::ZERO => Self::AtLeast(known),
            Some(_) | None => Self::Unknown,
        }
    }
}

/// The amount that a turn is charged, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The amount that counts as spent.
    pub amount: Micros,
    pub basis: Basis,
}

/// How the amount of a charge is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The turn is free.
    Free,
    /// The client reported the amount.
    Reported,
    /// Computed from usage, or equal to the most expensive turn of the run.
    Estimated,
    /// A part of the cost is unknown. Only the known part is charged, and every screen shows this.
    Unpriced,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_and_print_as_dollars() {
        let check = |text: &str, expected: u64, shown: &str| {
            let amount: Micros = text.parse().unwrap();
            assert_eq!((amount, amount.to_string().as_str()), (Micros(expected), shown));
        };
        check("10", 10_000_000, "$10.00");
        check("2.5", 2_500_000, "$2.50");
        check("$0.05", 50_000, "$0.05");
        check(".001", 1_000, "$0.0010");
        check("0.000001", 1, "$0.000001");
        check("1.23456789", 1_234_567, "$1.2345");
        assert_eq!("-1".parse::<Micros>(), Err(BadAmount::Negative("-1".into())));
        for bad in ["", ".", "ten", "1e3", "1,5", "+1", "1.+5", "99999999999999999999"] {
            assert_eq!(bad.parse::<Micros>(), Err(BadAmount::Unreadable(bad.into())));
        }
    }

    #[test]
    fn a_lower_bound_of_nothing_is_unknown() {
        let [nothing, five] = [0, 5].map(Micros);
        for cost in [Cost::Reported(nothing), Cost::Estimated(nothing), Cost::Unknown] {
            assert_eq!(cost.at_least(), Cost::Unknown, "{cost:?}");
        }
        for cost in [Cost::Reported(five), Cost::Estimated(five), Cost::AtLeast(five)] {
            assert_eq!(cost.at_least(), Cost::AtLeast(five), "{cost:?}");
        }
        assert_eq!(Cost::Free.at_least(), Cost::Free);
    }

    // proves: A45
    #[test]
    fn incomplete_reader_makes_a_lower_bound() {
        let check = |one: Cost, other: Cost, expected: Cost| {
            assert_eq!((one.or(other), other.or(one)), (expected, expected), "{one:?} {other:?}");
        };
        let [nothing, five, six] = [0, 5, 6].map(Micros);
        check(Cost::Reported(nothing), Cost::Unknown, Cost::Unknown);
        check(Cost::Estimated(six), Cost::AtLeast(five), Cost::AtLeast(six));
        check(Cost::Reported(five), Cost::Unknown, Cost::AtLeast(five));
        check(Cost::Reported(five), Cost::AtLeast(six), Cost::AtLeast(six));
        check(Cost::Free, Cost::Unknown, Cost::Unknown);
        check(Cost::Reported(five), Cost::Estimated(six), Cost::Estimated(six));
        check(Cost::Free, Cost::Reported(five), Cost::Reported(five));
    }

    #[test]
    fn amounts_are_dollars_in_json() {
        for (amount, expected) in
            [(0, "0.0"), (1, "1e-6"), (2_500_000, "2.5"), (10_000_000, "10.0")]
        {
            assert_eq!(serde_json::to_string(&Micros(amount).dollars()).unwrap(), expected);
        }
    }
}
