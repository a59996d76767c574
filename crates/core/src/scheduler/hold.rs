//! Holds: the reasons for which no turn of a backend starts.
//!
//! A hold belongs to a backend and not to a turn, because a usage limit or a missing login affects
//! all of its turns alike. A hold costs no retry.
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// A usage limit. A turn tries again at `until`.
    Quota { until: Timestamp, why: String },
    /// A user has to log in.
    Auth { why: String },
    /// The machine lacks something, such as space on the disk. A resume tries again.
    Environment { why: String },
}
