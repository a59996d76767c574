//! Checks before a client of Claude Code starts, so that mistakes cost nothing.
//!
//! `check_skipping` looks at the machine; `unsupported_options` looks at the settings of a state.
//! `registry` checks the program and its version.

use std::env;
use std::ffi::OsStr;

use raymond_core::prices::Prices;
use raymond_core::run::permissions::{Checks, Permissions};

use super::NAME;
use crate::headless::{ClientProblem, RequestedOptions};

/// The reason for which no client can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PreflightProblem {
    /// The client refuses to skip its permission checks for root.
    #[error("the client refuses --dangerously-skip-permissions for root")]
    Root,
    #[error("{NAME} has no permission mode {0:?}")]
    Mode(String),
    #[error("{NAME} has no effort {0:?}")]
    Effort(String),
    /// A mode that skips all checks although the user did not allow that.
    #[error("the permission mode {BYPASS} skips all checks")]
    Bypass,
    /// The client would not understand a rule.
    #[error("{rule:?} is not a tool rule")]
    Rule {
        /// The list that contains the rule.
        list: &'static str,
        rule: String,
    },
}

/// The modes and efforts of the client, as its help lists them. `default` is an old name.
const MODES: [&str; 7] = ["acceptEdits", "auto", BYPASS, "default", "dontAsk", "manual", "plan"];
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// The mode that means the same as `--dangerously-skip-permissions`.
const BYPASS: &str = "bypassPermissions";

impl PreflightProblem {
    /// Returns how to fix the problem.
    fn remedy(&self) -> String {
        let remedy = match self {
            Self::Mode(_) => return format!("the modes are {}", MODES.join(", ")),
            Self::Effort(_) => return format!("the efforts are {}", EFFORTS.join(", ")),
            Self::Rule { .. } => "rules look like `Edit` or `Bash(cargo test:*)`",
            Self::Bypass => {
                "pass --dangerously-skip-permissions yourself; a file of a project cannot skip checks"
            }
            Self::Root => {
                "run as another user, or allow tools one by one with --allow; inside a real sandbox, \
                 set IS_SANDBOX=1 (and name it in `environment`, where that is a list)"
            }
        };
        remedy.to_owned()
    }

    /// Returns the key of the state that causes the problem, or `None` if the machine causes it.
    const fn key(&self) -> Option<&'static str> {
        match self {
            Self::Root => None,
            Self::Mode(_) | Self::Bypass => Some("permission_mode"),
            Self::Effort(_) => Some("effort"),
            Self::Rule { list, .. } => Some(list),
        }
    }
}

impl From<PreflightProblem> for ClientProblem {
    fn from(problem: PreflightProblem) -> Self {
        Self { key: problem.key(), message: problem.to_string(), remedy: problem.remedy() }
    }
}

/// Checks that the client skips its permission checks for this user. It inherits the variables of
/// `environment`; `None` means all.
pub(crate) fn check_skipping(environment: Option<&[String]>) -> Result<(), ClientProblem> {
    // The client learns about a sandbox only from a variable that it inherits.
    let handed_on = environment.is_none_or(|names| names.iter().any(|name| name == SANDBOX));
    let sandbox = env::var_os(SANDBOX).filter(|_| handed_on);
    // The client checks the real user id.
    let user = if rustix::process::getuid().is_root() { User::Root } else { User::Other };
    Ok(may_skip(user, sandbox.as_deref())?)
}

/// Returns every option that the client would not understand.
pub(crate) fn unsupported_options(options: RequestedOptions<'_>, _: &Prices) -> Vec<ClientProblem> {
    let Permissions { mode, allow, deny, .. } = options.permissions;
    let mode = mode.as_deref().filter(|mode| !MODES.contains(mode));
    let mode = mode.map(|mode| PreflightProblem::Mode(mode.to_owned()));
    let effort = options.effort.filter(|effort| !EFFORTS.contains(effort));
    let effort = effort.map(|effort| PreflightProblem::Effort(effort.to_owned()));
    // Repeated at every start of a client, because states can be edited during a run.
    let bypass = keeps_checks(options.permissions).err();
    let listed = [("allow", allow), ("deny", deny)].into_iter();
    let rules = listed.flat_map(|(list, rules)| {
        let wrong = rules.iter().filter(|rule| !is_rule(rule));
        wrong.map(move |rule| PreflightProblem::Rule { list, rule: rule.clone() })
    });
    let problems = [mode, effort, bypass].into_iter().flatten().chain(rules);
    problems.map(ClientProblem::from).collect()
}

/// Whether a rule has the form `Tool` or `Tool(specifier)`.
fn is_rule(rule: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.contains([' ', '(', ')']);
    match rule.split_once('(') {
        Some((name, rest)) => is_name(name) && rest.ends_with(')'),
        None => is_name(rule),
    }
}

/// Checks that no permission mode skips checks that only the user may skip.
pub(super) fn keeps_checks(permissions: &Permissions) -> Result<(), PreflightProblem> {
    match (permissions.checks, permissions.mode.as_deref()) {
        (Checks::Kept, Some(BYPASS)) => Err(PreflightProblem::Bypass),
        (Checks::Kept | Checks::Skipped, _) => Ok(()),
    }
}

const SANDBOX: &str = "IS_SANDBOX";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Root,
    Other,
}

fn may_skip(user: User, sandbox: Option<&OsStr>) -> Result<(), PreflightProblem> {
    match user {
        // The client accepts exactly this value.
        User::Root if sandbox != Some(OsStr::new("1")) => Err(PreflightProblem::Root),
        User::Root | User::Other => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::run::turn_spec::Extras;

    use super::*;

    #[test]
    fn root_skips_checks_only_in_a_sandbox() {
        let check = |user, sandbox: Option<&str>, expected| {
            assert_eq!(may_skip(user, sandbox.map(OsStr::new)), expected);
        };
        check(User::Root, None, Err(PreflightProblem::Root));
        check(User::Root, Some("true"), Err(PreflightProblem::Root));
        check(User::Root, Some("1"), Ok(()));
        check(User::Other, None, Ok(()));
    }

    #[test]
    fn unsupported_options_are_reported_before_start() {
        let check =
            |change: fn(&mut Permissions), effort: Option<&str>, expected: &[(&str, &str)]| {
                let mut permissions = Permissions::default();
                change(&mut permissions);
                let (permissions, extras) = (&permissions, &Extras::default());
                let (model, cap) = (None, None);
                let options = RequestedOptions { permissions, effort, extras, model, cap };
                let found = unsupported_options(options, &Prices::default());
                let found: Vec<(&str, &str)> = found
                    .iter()
                    .map(|problem| (problem.key.unwrap_or("-"), problem.message.as_str()))
                    .collect();
                assert_eq!(found, expected);
            };
        check(|_| {}, None, &[]);
        check(|p| p.mode = Some("plan".into()), Some("max"), &[]);
        let mode = ("permission_mode", "claude has no permission mode \"acceptEdit\"");
        let effort = ("effort", "claude has no effort \"huge\"");
        check(|p| p.mode = Some("acceptEdit".into()), None, &[mode]);
        check(|p| p.mode = Some("acceptEdit".into()), Some("huge"), &[mode, effort]);
        let bypass = ("permission_mode", "the permission mode bypassPermissions skips all checks");
        check(|p| p.mode = Some("bypassPermissions".into()), None, &[bypass]);
        check(|p| p.allow = vec!["Bash(a (b):*)".into(), "mcp__x__*".into()], None, &[]);
        let rules =
            [("allow", "\"\" is not a tool rule"), ("allow", "\"cargo test\" is not a tool rule")];
        check(|p| p.allow = vec![String::new(), "cargo test".into()], None, &rules);
        let rule = ("deny", "\"Bash(\" is not a tool rule");
        check(|p| p.deny = vec!["Bash(".into()], None, &[rule]);
    }

    #[test]
    fn no_mode_skips_checks_without_permission() {
        let check = |checks, mode: Option<&str>, expected| {
            let mode = mode.map(str::to_owned);
            let permissions = Permissions { checks, mode, ..Permissions::default() };
            assert_eq!(keeps_checks(&permissions), expected);
        };
        check(Checks::Kept, None, Ok(()));
        check(Checks::Kept, Some("plan"), Ok(()));
        check(Checks::Kept, Some("bypassPermissions"), Err(PreflightProblem::Bypass));
        check(Checks::Skipped, Some("bypassPermissions"), Ok(()));
    }
}
