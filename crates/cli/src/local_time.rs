//! Times for people, in the zone of this machine.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use raymond_core::time::{Span, Timestamp};
use raymond_engine::clock;

use crate::sanitize::elapsed;

/// Formats a time as `2026-11-19 10:05 CET`.
pub(crate) fn date_time(at: Timestamp) -> String {
    date_time_in(at, &TimeZone::system())
}

/// Formats a time like [`date_time`], with seconds if it is near: a wait of seconds that ends "at
/// 14:05" looks as if it were over.
pub(crate) fn deadline(at: Timestamp) -> String {
    if between(clock::now(), at) < NEAR && clock::now() < at {
        return zoned(at, &TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    }
    date_time(at)
}

/// Times that are nearer are shown with seconds.
const NEAR: Span = Span::minutes(2);

fn date_time_in(at: Timestamp, zone: &TimeZone) -> String {
    zoned(at, zone).strftime("%Y-%m-%d %H:%M %Z").to_string()
}

/// Formats the time of day in the given zone.
pub(crate) fn time_of_day(at: Timestamp, zone: &TimeZone) -> String {
    zoned(at, zone).strftime("%H:%M:%S").to_string()
}

/// Names the day and the zone above the first line and above the first line of each day, because
/// lines have only a time of day.
#[derive(Debug)]
pub(crate) struct DayHeadings {
    zone: TimeZone,
    /// The day of the last line.
    day: Option<Date>,
}

impl Default for DayHeadings {
    fn default() -> Self {
        Self { zone: TimeZone::system(), day: None }
    }
}

impl DayHeadings {
    /// Returns `2026-11-19 CET` if a line is the first one of its day.
    pub(crate) fn above(&mut self, at: Timestamp) -> Option<String> {
        let at = zoned(at, &self.zone);
        let is_new = self.day.replace(at.date()) != Some(at.date());
        is_new.then(|| at.strftime("%Y-%m-%d %Z").to_string())
    }
}

/// Formats a time in the future: `14:05:32` if it is near, `14:05` if it is today, otherwise
/// `Jan 31 09:00`.
pub(crate) fn time_at(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let is_near = between(now, at) < NEAR;
    let (at, now) = (zoned(at, zone), zoned(now, zone));
    let shape = match (at.date() == now.date(), is_near) {
        (true, true) => "%H:%M:%S",
        (true, false) => "%H:%M",
        (false, _) => "%b %-d %H:%M",
    };
    at.strftime(shape).to_string()
}

fn zoned(at: Timestamp, zone: &TimeZone) -> jiff::Zoned {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    instant.to_zoned(zone.clone())
}

/// Returns the time between two moments; nothing if a clock was set back.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> Span {
    Span(later.0.saturating_sub(earlier.0))
}

/// Formats `12s`, `4m 12s`, `2h 03m`: without tenths, because people compare ages.
pub(crate) fn in_seconds(Span(milliseconds): Span) -> String {
    match milliseconds / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        _ => elapsed(Span(milliseconds)),
    }
}

/// `12s`, `4m12s`, `2h03m`
pub(crate) fn age(span: Span) -> String {
    in_seconds(span).replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_one_heading() {
        const HOUR: u64 = 3_600_000;
        let at = |hour: u64| Timestamp(1_770_000_000_000 + hour * HOUR);
        let zone = TimeZone::posix("CET-1").unwrap();
        let mut history = DayHeadings { zone, day: None };
        assert_eq!(history.above(at(0)).as_deref(), Some("2026-02-02 CET"));
        assert_eq!(history.above(at(1)), None);
        // Midnight in this zone, an hour before midnight UTC.
        assert_eq!(history.above(at(21)).as_deref(), Some("2026-02-03 CET"));
        assert_eq!(history.above(at(22)), None);
    }

    #[test]
    fn time_has_a_date_and_a_zone() {
        let check = |zone: &str, expected: &str| {
            let zone = TimeZone::posix(zone).unwrap();
            assert_eq!(date_time_in(Timestamp(1_770_000_000_000), &zone), expected);
        };
        check("UTC0", "2026-02-02 02:40 UTC");
        check("CET-1", "2026-02-02 03:40 CET");
    }
}
