//! Points in time and durations, in milliseconds.
//!
//! Core never reads a clock: times arrive inside inputs.

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

/// A duration in milliseconds, written `90s`, `10m`, `2h`, `7d`, `1500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Span {
    pub const fn seconds(n: u64) -> Self {
        Self(n * 1000)
    }

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

/// Formats as RFC 3339, in UTC, with milliseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let [year, month, day] = date(days);
        let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
        let (seconds, millis) = (rest / 1_000 % 60, rest % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T")?;
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
    }
}

/// Returns the proleptic Gregorian date of a day since 1970-01-01.
fn date(days: u64) -> [u64; 3] {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    date_of_shifted(days + 719_468)
}

/// Returns the date of a day since 0000-03-01.
fn date_of_shifted(shifted: u64) -> [u64; 3] {
    // Written out, because this crate needs no other part of a date library.
    // Years are counted from March, so that the leap day is the last day of a year. An era of 400
    // years has 146,097 days.
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    [year, month, day]
}

impl Timestamp {
    /// Parses an RFC 3339 time with an offset. A time before 1970 is the start of 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.split_once(['T', 't'])?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let (time, ahead) = match time.strip_suffix(['Z', 'z']) {
            Some(time) => (time, 0),
            None => {
                let (time, offset) = time.split_at_checked(time.rfind(['+', '-'])?)?;
                let [hours, minutes] = numbers(offset.get(1..)?, ':', [2, 2])?;
                let ahead = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
                (time, if offset.starts_with('-') { -ahead } else { ahead })
            }
        };
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let [hours, minutes, seconds] = numbers(time, ':', [2, 2, 2])?;
        let is_fraction =
            !fraction.is_empty() && fraction.bytes().all(|digit| digit.is_ascii_digit());
        // 60 is a leap second, which is read as the second after it.
        if !is_fraction || hours > 23 || minutes > 59 || seconds > 60 {
            return None;
        }
        // Rounded up, so that nothing happens early.
        let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        let rounded = millis + i64::from(fraction.bytes().skip(3).any(|digit| digit != b'0'));
        let of_day = ((hours * 60 + minutes - ahead) * 60 + seconds) * 1_000 + rounded;
        let since = days(year, month, day)? * 86_400_000 + of_day;
        Some(Self(u64::try_from(since).unwrap_or(0)))
    }
}

/// Parses numbers of fixed widths with a separator between them.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let parts = <[&str; N]>::try_from(parts).ok()?;
    let is_number = |(part, width): (&str, usize)| {
        part.len() == width && part.bytes().all(|digit| digit.is_ascii_digit())
    };
    let all = parts.into_iter().zip(widths).all(is_number);
    all.then(|| parts.map(|part| part.parse().unwrap_or_default()))
}

/// Returns the days since 1970-01-01 of a date, if the date exists.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    // The inverse of `date`, with the same constants.
    let year_from_march = year - i64::from(month <= 2);
    let (era, year_of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let day_of_year = (153 * (month + 9).rem_euclid(12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let shifted = era * 146_097 + day_of_era;
    // A day that does not exist, such as 30 February, would be another day.
    let exists = date_of_shifted(u64::try_from(shifted).ok()?);
    let wanted = [year, month, day].map(|part| u64::try_from(part).ok());
    (wanted == exists.map(Some)).then_some(shifted - 719_468)
}

/// The error of a text that is not a duration, or not an allowed one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSpan {
    /// A number and a unit are missing.
    #[error("{0:?} is not a duration such as 250ms, 90s, 10m, 2h or 7d")]
    Unreadable(String),
    /// The duration is zero.
    #[error("{0:?} must be longer than nothing")]
    Nothing(String),
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        match Self::parse_any(text)? {
            Self(0) => Err(BadSpan::Nothing(text.to_owned())),
            span => Ok(span),
        }
    }
}

impl Span {
    /// Parses a duration that may be zero: `0s`.
    pub fn parse_any(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan::Unreadable(text.to_owned());
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
        n.checked_mul(factor).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Only whole units, so that the text reads back as the same duration.
            n if n % 86_400_000 == 0 => write!(f, "{}d", n / 86_400_000),
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

    #[test]
    fn zero_is_a_span_only_if_allowed() {
        let nothing = "\"0s\" must be longer than nothing";
        assert_eq!("0s".parse::<Span>().map_err(|bad| bad.to_string()), Err(nothing.to_owned()));
        assert_eq!(Span::parse_any("0s"), Ok(Span(0)));
        assert_eq!(Span::parse_any("0"), Err(BadSpan::Unreadable("0".to_owned())));
    }

    #[test]
    fn spans_print_as_they_are_written() {
        for text in ["1500ms", "90s", "10m", "2h", "7d"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn points_in_time_are_written_as_rfc_3339() {
        let check = |millis, expected: &str| assert_eq!(Timestamp(millis).to_string(), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_709_251_199_999, "2024-02-29T23:59:59.999Z");
        check(1_794_700_800_123, "2026-11-15T00:00:00.123Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn rfc_3339_times_with_an_offset_are_parsed() {
        let check = |text, millis: Option<u64>| {
            assert_eq!(Timestamp::parse(text), millis.map(Timestamp), "{text}");
        };
        check("2026-11-15T00:00:00.123Z", Some(1_794_700_800_123));
        check("2026-11-15T01:00:00+01:00", Some(1_794_700_800_000));
        check("2026-11-14t23:59:59.9990001-00:00", Some(1_794_700_800_000));
        check("1969-12-31T23:59:59Z", Some(0));
        for bad in ["", "07:00", "2026-11-15", "2026-11-15T07:00:00", "2026-02-30T07:00:00Z"] {
            check(bad, None);
        }
    }
}
