//! Notices: a sentence before a prompt that is sent again.
//!
//! A client that was interrupted may have done part of the work. Without a notice it would do the
//! work twice.

use serde::{Deserialize, Serialize};

/// The reason for which a prompt is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The turn was interrupted.
    Interrupted,
    Retried,
    /// The turn used up its budget share.
    NewShare,
    /// The agent failed, and the run was resumed.
    Revived,
    SessionLost,
}

/// Returns the sentence that precedes the prompt, followed by a blank line.
pub const fn notice(notice: Notice) -> &'static str {
    match notice {
        Notice::Interrupted => {
            "Your work on the task below was interrupted: check what is already done, then continue."
        }
        Notice::Retried => {
            "Your last turn on the task below failed for a technical reason: \
             check what is already done, then continue."
        }
        Notice::NewShare => {
            "Your last turn on the task below was stopped at its spending limit, which is now \
             renewed: check what is already done, then continue."
        }
        Notice::Revived => {
            "Your work on the task below had failed and is now resumed: \
             check what is already done, and what has changed, then continue."
        }
        Notice::SessionLost => {
            "An earlier conversation about the task below was lost, and this one knows nothing of \
             it: check what is already done, then continue."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notice_asks_to_check_first() {
        let all = [
            Notice::Interrupted,
            Notice::Retried,
            Notice::NewShare,
            Notice::Revived,
            Notice::SessionLost,
        ];
        for each in all {
            let text = notice(each);
            assert!(text.contains("check what is already done"), "{text}");
            assert_eq!(text.find('.'), Some(text.len() - 1), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }
}
