//! Target names: which texts are names, and why a name does not resolve.
//!
//! A target is a file name in the scope, never a path. It may omit the extension if only one state
//! with that stem can run here. A name with a supported extension means exactly that file.

use crate::extension::Extension;
use crate::ids::StateName;

/// The reason for which a target does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// The target is a path, or not a name at all.
    #[error("a target is a file name, and {0:?} is not one: {1}")]
    NotAName(String, &'static str),
    /// Several states have this stem.
    #[error("{target:?} could be {}; write the extension", .candidates.join(" or "))]
    Ambiguous {
        /// The name as written.
        target: String,
        /// The states that the name could mean.
        candidates: Vec<String>,
    },
    /// The state exists, but not for this platform.
    #[error("{0:?} cannot be run on this platform")]
    WrongPlatform(String),
    /// There is no such state.
    #[error("there is no state {target:?}{}", suggestion(.nearest.as_deref()))]
    Missing {
        /// The name as written.
        target: String,
        /// The state with the most similar name.
        nearest: Option<String>,
    },
}

fn suggestion(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}

/// Rejects a text that cannot be the name of a file in the scope.
pub fn check_name(target: &str) -> Result<(), Unresolved> {
    let refused = |why| Err(Unresolved::NotAName(target.to_owned(), why));
    match target.chars().find_map(forbidden) {
        Some(why) => refused(why),
        None if target.is_empty() => refused("it is empty"),
        None if matches!(target, "." | "..") => refused("it is a directory"),
        None => Ok(()),
    }
}

fn forbidden(c: char) -> Option<&'static str> {
    match c {
        '/' => Some("it holds a slash"),
        // Windows separates paths and drives by these two. They are refused on every platform, so
        // that a workflow means the same everywhere.
        '\\' => Some("it holds a backslash"),
        ':' => Some("it holds a colon"),
        '\0' => Some("it holds a NUL"),
        c if c.is_control() => Some("it holds a control character"),
        _ => None,
    }
}

/// Returns whether a name as written means this state: by file name, or without extension by stem.
pub(super) fn means(written: &str, state: &StateName) -> bool {
    written == state.as_str() || (Extension::of(written).is_none() && written == state.stem())
}
