//! Finds the state that a target names.
//!
//! The rules of names are in [`crate::workflow::name`]. Tags, policies and `then` all resolve here,
//! so that a name means the same state everywhere.

use crate::extension::Extension;
use crate::ids::StateName;
use crate::text::nearest;

use super::super::name::{Unresolved, check_name};
use super::{Definition, State};

impl Definition {
    /// Returns the state that `target` names.
    pub fn resolve(&self, target: &str) -> Result<&State, Unresolved> {
        check_name(target)?;
        let candidates = self.candidates(target);
        let mut runnable = candidates.iter().filter(|state| self.can_run(state));
        match (runnable.next(), runnable.next()) {
            (Some(state), None) => Ok(state),
            (Some(_), Some(_)) => Err(Unresolved::Ambiguous {
                target: target.to_owned(),
                candidates: candidates
                    .iter()
                    .filter(|state| self.can_run(state))
                    .map(|state| state.name.to_string())
                    .collect(),
            }),
            // A file for another platform is named in the error, because "missing" would mislead
            // its author.
            (None, _) => Err(match candidates.first() {
                Some(state) => Unresolved::WrongPlatform(state.name.to_string()),
                None => Unresolved::Missing {
                    target: target.to_owned(),
                    nearest: self.nearest_state(target),
                },
            }),
        }
    }

    /// Returns whether this platform can run the state.
    pub fn can_run(&self, state: &State) -> bool {
        Extension::of(state.name.as_str()).is_some_and(|known| known.runs_on(self.platform))
    }

    /// Returns the states that `target` may mean, on any platform.
    fn candidates(&self, target: &str) -> Vec<&State> {
        // A name with an extension means exactly that file: `odd.md` does not find `odd.md.md`.
        if Extension::of(target).is_some() {
            return self.states.get(&StateName::new(target)).into_iter().collect();
        }
        Extension::ALL
            .into_iter()
            .filter_map(|known| {
                let name = StateName::new(format!("{target}.{}", known.as_str()));
                self.states.get(&name)
            })
            .collect()
    }

    fn nearest_state(&self, target: &str) -> Option<String> {
        let names = || self.states.keys();
        let by_name = nearest(target, names().map(StateName::as_str));
        // A short name with no extension, or with a wrong one, may be too far from every file name.
        by_name.map(str::to_owned).or_else(|| {
            let target = StateName::new(target);
            let stem = nearest(target.stem(), names().map(StateName::stem))?;
            let state = names().find(|name| name.stem() == stem)?;
            Some(state.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EntryPoint, fixture};
    use super::*;
    use crate::extension::Platform;

    fn scope(platform: Platform) -> Definition {
        fixture::definition(
            &[
                "START.md",
                "REVIEW.md",
                "BUILD.sh",
                "BUILD.bat",
                "BOTH.md",
                "BOTH.sh",
                "WIN.ps1",
                "v1.2.md",
                "odd.md.md",
            ],
            &EntryPoint::State("START.md".into()),
            platform,
        )
    }

    #[test]
    fn targets_resolve_inside_the_scope_only() {
        let unix = scope(Platform::Unix);
        let check = |target: &str, expected: Result<&str, &str>| {
            let found = unix.resolve(target).map(|state| state.name.to_string());
            assert_eq!(
                found.map_err(|unresolved| unresolved.to_string()),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{target}"
            );
        };
        check("REVIEW.md", Ok("REVIEW.md"));
        check("REVIEW", Ok("REVIEW.md"));
        check("BUILD", Ok("BUILD.sh"));
        check("v1.2", Ok("v1.2.md"));
        check("BOTH.sh", Ok("BOTH.sh"));
        check("BOTH", Err(r#""BOTH" could be BOTH.md or BOTH.sh; write the extension"#));
        check("BUILD.bat", Err(r#""BUILD.bat" cannot be run on this platform"#));
        check("WIN", Err(r#""WIN.ps1" cannot be run on this platform"#));
        check("review.md", Err(r#"there is no state "review.md"; did you mean "REVIEW.md"?"#));
        check("REVEIW", Err(r#"there is no state "REVEIW"; did you mean "REVIEW.md"?"#));
        check("REVIEW.txt", Err(r#"there is no state "REVIEW.txt"; did you mean "REVIEW.md"?"#));
        check("DEPLOY.md", Err(r#"there is no state "DEPLOY.md""#));
        check("odd.md", Err(r#"there is no state "odd.md""#));
        assert_eq!(
            scope(Platform::Windows).resolve("BUILD").map(|state| state.name.as_str()),
            Ok("BUILD.bat")
        );
    }

    // proves: S9
    #[test]
    fn paths_and_control_characters_are_not_names() {
        let check = |target: &str, why| {
            let expected = Err(Unresolved::NotAName(target.to_owned(), why));
            assert_eq!(check_name(target), expected);
            assert_eq!(scope(Platform::Unix).resolve(target).map(|_| ()), expected);
        };
        check("../START.md", "it holds a slash");
        check("/START.md", "it holds a slash");
        check(r"sub\START.md", "it holds a backslash");
        check("C:START.md", "it holds a colon");
        check("START.md\0", "it holds a NUL");
        check("START\u{7}.md", "it holds a control character");
        check("START\n.md", "it holds a control character");
        check("START\u{85}", "it holds a control character");
        check(".", "it is a directory");
        check("..", "it is a directory");
        check("", "it is empty");
        for name in ["...", "..a", ".hidden.md", "with space.md", "Über.md"] {
            assert_eq!(check_name(name), Ok(()));
        }
    }
}
