//! Why no turn of a backend starts.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Why no turn of a backend starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// A usage limit; looked at again then.
    Quota {
        /// When.
        until: Timestamp,
        /// What the backend said.
        why: String,
    },
    /// A person has to log in.
    Auth {
        /// What to do.
        why: String,
    },
    /// The machine lacks something, such as room on the disk; a resume looks again.
    Environment {
        /// What is missing.
        why: String,
    },
}
