//! Names of steps and of loop variables: `[A-Za-z_][A-Za-z0-9_-]*`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::problem::quoted;

/// The longest name in characters; a message can always quote such a name whole.
pub const LONGEST: usize = 128;

/// The name of a step, unique in its document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("a name cannot be empty")]
    Empty,
    #[error("a name has at most {LONGEST} characters, this one has {0}")]
    TooLong(usize),
    #[error(
        "{name} is not a name: letters, digits, `_` and `-`, beginning with a letter or `_`",
        name = quoted(.0)
    )]
    Characters(String),
}

/// Checks whether `text` may name a step or a variable.
pub fn check(text: &str) -> Result<(), BadName> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let later = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    // The length is checked last: only ASCII is left then, so its bytes are its characters.
    if text.is_empty() {
        Err(BadName::Empty)
    } else if !text.starts_with(first) || !text.chars().all(later) {
        Err(BadName::Characters(text.to_owned()))
    } else if text.len() > LONGEST {
        Err(BadName::TooLong(text.len()))
    } else {
        Ok(())
    }
}

impl StepId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StepId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        check(text).map(|()| Self(text.into()))
    }
}

impl std::borrow::Borrow<str> for StepId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_as_text() {
        let id: StepId = "fetch".parse().unwrap();
        assert_eq!(format!("{id:?} {id:>6}"), "\"fetch\"  fetch");
    }

    #[test]
    fn a_name_is_letters_digits_underscores_and_dashes() {
        let check = |text: &str, expected: &str| {
            let parsed = text.parse::<StepId>().map_err(|bad| bad.to_string());
            match expected {
                "" => assert_eq!(parsed.map(|id| id.to_string()), Ok(text.to_owned())),
                _ => assert_eq!(parsed, Err(expected.to_owned()), "{text}"),
            }
        };
        for good in ["a", "_", "A-1", "fetch_all", "_-", &"x".repeat(LONGEST)] {
            check(good, "");
        }
        check("", "a name cannot be empty");
        check(&"x".repeat(129), "a name has at most 128 characters, this one has 129");
        for bad in ["1a", "-a", "a.b", "a b", "a[0]", "größe", "a:b"] {
            let rule = "letters, digits, `_` and `-`, beginning with a letter or `_`";
            check(bad, &format!("`{bad}` is not a name: {rule}"));
        }
    }
}
