//! Target names: what is a name, and what it resolves to.

/// Why a target does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// It is a path, or no name at all.
    #[error("a target is a file name, and {0:?} is not one: {1}")]
    NotAName(String, &'static str),
    /// Several states have this stem.
    #[error("{target:?} could be {}; write the extension", .candidates.join(" or "))]
    Ambiguous {
        /// The name as written.
        target: String,
        /// What it could be.
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
        /// The state whose name is nearest.
        nearest: Option<String>,
    },
}

fn suggestion(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name:?}?"))
        .unwrap_or_default()
}
