//! The key of a request to end a run.
//!
//! The key alone contains the whole request: on a full disk, the file of the request is empty and
//! only its name, the key, arrives.

use raymond_core::run::Input;
use raymond_core::run::stop::{StopMode, StopOrigin};

use crate::clock;

/// Returns a new key that contains the mode.
pub(crate) fn stop_key(mode: StopMode) -> String {
    let word = match mode {
        StopMode::AfterTurn => "after-turn",
        StopMode::Now => "stop",
        StopMode::Cancel => "cancel",
    };
    format!("{word}_{}", clock::nonce())
}

/// Returns the request that a key contains.
pub(crate) fn request_of_key(key: &str) -> Option<Input> {
    let mode = match key.split_once('_')?.0 {
        "after-turn" => StopMode::AfterTurn,
        "stop" => StopMode::Now,
        "cancel" => StopMode::Cancel,
        _ => return None,
    };
    Some(Input::Stop { mode, by: StopOrigin::Command, key: key.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_contains_the_stop_mode() {
        for mode in [StopMode::AfterTurn, StopMode::Now, StopMode::Cancel] {
            let key = stop_key(mode);
            assert_eq!(
                request_of_key(&key),
                Some(Input::Stop { mode, by: StopOrigin::Command, key: key.clone() })
            );
        }
        let unknown = ["stop", "other_1", ""].map(request_of_key);
        assert_eq!(unknown, [None, None, None]);
    }
}
