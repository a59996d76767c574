//! The wait before a retry.
//!
//! There is no random number: the jitter is a hash of the turn and its attempt, because a replay of
//! the journal must compute the same wait.

use crate::ids::TurnAttempt;
use crate::time::Span;

/// The longest possible wait: the longest base plus its jitter.
pub const LONGEST: Span = Span(BASE + BASE / 4);
// Milliseconds: the longest base of a wait, 5 minutes.
const BASE: u64 = 300_000;

/// Returns the wait before retry `retry` (from 1): 2 s, doubled up to 5 min, plus up to a quarter.
pub fn backoff(attempt: &TurnAttempt, retry: u32) -> Span {
    let TurnAttempt { turn, number } = attempt;
    // 20 doublings exceed the maximum by far; the limit only keeps the shift from overflowing.
    let doubled = 2_000_u64.saturating_mul(1 << retry.saturating_sub(1).min(20));
    let base = doubled.min(BASE);
    // Turn and attempt are in the hash, so that workers that failed together retry at different
    // times.
    let hash = blake3::hash(format!("backoff\n{turn}\n{number}").as_bytes());
    let jitter = u64::from(hash.as_bytes()[0]);
    // 255 is the largest byte, so the jitter is at most a quarter of the base.
    Span(base + base * jitter / (4 * 255))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let attempt = |number| TurnAttempt { turn: "main.1.1".parse().unwrap(), number };
        for (retry, base) in [(1, 2_000), (2, 4_000), (5, 32_000), (9, 300_000), (400, 300_000)] {
            let wait = backoff(&attempt(7), retry);
            assert!((base..=base + base / 4).contains(&wait.0), "retry {retry}: {wait}");
            assert_eq!(wait, backoff(&attempt(7), retry));
        }
        assert_eq!(LONGEST, Span::seconds(375));
        assert_ne!(backoff(&attempt(1), 3), backoff(&attempt(2), 3));
    }
}
