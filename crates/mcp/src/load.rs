//! Limits on the requests that a server keeps at a time.
//!
//! A client can send requests faster than they are answered, and need not read the answers. So
//! every request takes a place and reserves the memory that its message will need. Both are
//! released when its handler has ended and its answer is written. A request without room is refused
//! at once, because a waiting one would need the memory, too.
//!
//! [`calls`](crate::calls) limits how many calls run at a time.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::ErrorData;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::calls;

/// How many requests one transport keeps at a time: all running and waiting calls, and 32 others,
/// so that a full server still answers pings and lists.
pub(crate) const REQUESTS: usize = calls::RUNNING + calls::WAITING + 32;

/// The memory for their messages together, in KiB: 256 MiB. It is enough for the longest message,
/// 64 MiB, if that consists of texts and long numbers; see [`needed`]. A call copies its request
/// about seven times (measured with 16 requests of 16 MiB), so the process stays below 2 GiB.
const MEMORY: usize = 256 << 10;

/// The requests of one transport.
#[derive(Debug, Clone)]
pub(crate) struct LoadLimits {
    places: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// The place of one request. It is released when the last copy of its `Arc` is dropped.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _counted: OwnedSemaphorePermit,
    memory: Arc<Semaphore>,
    reserved: Mutex<Option<OwnedSemaphorePermit>>,
}

/// The error for a request that the server has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is busy: it has no room for another request; repeat it when others have ended")]
pub(crate) struct Busy;

impl From<Busy> for ErrorData {
    fn from(busy: Busy) -> Self {
        Self::new(calls::BUSY, busy.to_string(), None)
    }
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(REQUESTS)),
            memory: Arc::new(Semaphore::new(MEMORY)),
        }
    }
}

impl LoadLimits {
    /// Returns a place for a request whose message is not known yet.
    pub(crate) fn place(&self) -> Result<Arc<RequestPermit>, Busy> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Busy)?;
        let memory = Arc::clone(&self.memory);
        Ok(Arc::new(RequestPermit { _counted: place, memory, reserved: Mutex::default() }))
    }
}

impl RequestPermit {
    /// Reserves this many more bytes for the message of the request.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Busy> {
        // Rounded up, so that many small messages cannot exceed the sum.
        let blocks = u32::try_from(bytes.div_ceil(1 << 10)).map_err(|_| Busy)?;
        let more = Arc::clone(&self.memory).try_acquire_many_owned(blocks).map_err(|_| Busy)?;
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        match reserved.as_mut() {
            // One permit for all parts, so that dropping the place releases everything together.
            Some(reserved) => reserved.merge(more),
            None => *reserved = Some(more),
        }
        Ok(())
    }
}

/// Estimates the bytes that the values of a message need in addition to its text, without parsing
/// it.
///
/// A value takes 32 bytes. An object takes 632 more, even with one key, because the smallest node
/// of a B-tree has room for eleven. `{"":0},` is seven bytes, so a message of 64 MiB could need 6
/// GB. Commas and brackets inside strings count, too, so the estimate may be too high but never too
/// low.
pub(crate) fn needed(text: &[u8]) -> usize {
    text.iter().fold(0_usize, |sum, byte| {
        sum.saturating_add(match byte {
            b',' | b'[' => 32,
            b'{' => 632 + 32,
            _ => 0,
        })
    })
}

/// Returns whether a message fits into a server without other requests.
pub(crate) fn fits(text: &[u8]) -> bool {
    text.len().saturating_add(needed(text)) <= MEMORY << 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LONGEST;

    #[test]
    fn every_request_takes_a_place() {
        let load = LoadLimits::default();
        let mut places: Vec<_> = (0..REQUESTS).map(|_| load.place().unwrap()).collect();
        assert_eq!(load.place().map(drop), Err(Busy));
        let kept = places.pop().map(|place| Arc::clone(&place));
        assert_eq!(load.place().map(drop), Err(Busy), "a copy still holds the place");
        drop(kept);
        assert_eq!(load.place().map(drop), Ok(()));
    }

    #[test]
    fn memory_is_reserved_together_and_given_back() {
        let load = LoadLimits::default();
        let (one, two) = (load.place().unwrap(), load.place().unwrap());
        let half = MEMORY << 9;
        assert_eq!(one.reserve(half), Ok(()));
        assert_eq!(two.reserve(half + 1), Err(Busy));
        assert_eq!(one.reserve(half), Ok(()));
        assert_eq!(two.reserve(1), Err(Busy));
        drop(one);
        assert_eq!(two.reserve(half), Ok(()));
    }

    #[test]
    fn a_message_is_weighed_by_its_values() {
        // The longest message that repeats this text.
        let fits_repeated = |one: &str| {
            let times = LONGEST / one.len();
            times * (one.len() + needed(one.as_bytes())) <= MEMORY << 10
        };
        for (one, expected) in [
            ("aaaaaaaa", true),
            ("1234567890123, ", true),
            ("123456,", false),
            ("0,", false),
            ("[],", false),
            ("{\"\":0},", false),
        ] {
            assert_eq!(fits_repeated(one), expected, "{one}");
        }
        assert!(fits(b"[{}]"));
    }
}
