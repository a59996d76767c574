//! A step that failed because of a variable, which a user can pass with another value.

use serde::{Deserialize, Serialize};

use super::path::{Namespace, Path};

/// The variable that made a step fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableProblem {
    /// The variable, or the part of it that the step reads, has no value.
    Missing { name: String },
    /// The variable is a text, but the step needs a list.
    NotAList { name: String },
}

impl VariableProblem {
    /// Returns the problem of a path without a value; `None` if no variable can give it one.
    pub fn missing(path: &Path) -> Option<Self> {
        (path.root == Namespace::Vars).then(|| Self::Missing { name: path.name.clone() })
    }

    /// Returns the problem of a path to a text that should be a list. A part of a variable is not
    /// reported, because the user passes the whole variable.
    pub fn not_a_list(path: &Path) -> Option<Self> {
        let is_whole = path.root == Namespace::Vars && path.rest.is_empty();
        is_whole.then(|| Self::NotAList { name: path.name.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_of_the_run_are_reported() {
        let check = |path: &str, missing: Option<&str>, not_a_list: Option<&str>| {
            let path: Path = path.parse().unwrap();
            let missing = missing.map(|name| VariableProblem::Missing { name: name.into() });
            let list = not_a_list.map(|name| VariableProblem::NotAList { name: name.into() });
            assert_eq!(VariableProblem::missing(&path), missing, "{path}");
            assert_eq!(VariableProblem::not_a_list(&path), list, "{path}");
        };
        check("$.vars.word", Some("word"), Some("word"));
        check("$.vars.some.word", Some("some"), None);
        check("$.vars.words[1]", Some("words"), None);
        check("$.results.word", None, None);
    }
}
