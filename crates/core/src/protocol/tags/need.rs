//! The value of `wait`: how many workers have to end.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How many workers have to end with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// `wait="all"`
    All,
    /// `wait="done"`: none, but every worker has to end or fail.
    Done,
    /// `wait="3"`; `any` is 1.
    Count(u32),
}

impl Need {
    /// The words, for completions and messages.
    pub const WORDS: &'static str = "all, any, done or a number from 1";

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            "any" => Some(Self::Count(1)),
            "done" => Some(Self::Done),
            number => number.parse().ok().filter(|count| *count > 0).map(Self::Count),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::Done => f.pad("done"),
            Self::Count(1) => f.pad("any"),
            Self::Count(count) => count.fmt(f),
        }
    }
}
