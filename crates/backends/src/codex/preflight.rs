//! Checks before a Codex client starts, so that mistakes cost nothing.
//!
//! `check_home` looks at the machine; `unsupported_options` looks at the settings of a state.
//! `registry` checks the program and its version.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use raymond_core::prices::{Prices, Usage};
use raymond_core::run::permissions::{Checks, Permissions};

use super::{HOME, NAME, own_home};
use crate::headless::{ClientProblem, RequestedOptions};

/// The reason for which no client can be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PreflightProblem {
    #[error("{NAME} has no equivalent of the permission mode {0:?}")]
    Mode(String),
    #[error("{NAME} has no effort {0:?}")]
    Effort(String),
    /// A mode that skips all checks although the user did not allow that.
    #[error("the permission mode {BYPASS} skips all checks")]
    Bypass,
    /// The client cannot deny single tools.
    #[error("{NAME} cannot deny tools, but {0:?} is denied")]
    Deny(String),
    /// `CODEX_HOME` is not a directory.
    #[error("{HOME} is {}, but that directory does not exist", .0.display())]
    Home(PathBuf),
    /// `CODEX_HOME` is not writable.
    #[error("{HOME} is {}, but that directory is not writable", .0.display())]
    Unwritable(PathBuf),
    /// The client reads MCP servers only from its own configuration.
    #[error("{NAME} does not support mcp_config")]
    Mcp,
    /// The tokens of the model are counted, but their price is unknown.
    #[error("the model {0:?} has no price, so {NAME} cannot be held to a budget")]
    Unpriced(String),
}

/// The permission modes of Raymond with the most similar sandbox of the client.
const MODES: [(&str, &str); 3] =
    [("acceptEdits", "workspace-write"), ("default", "workspace-write"), ("plan", "read-only")];
const EFFORTS: [&str; 8] = ["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"];
/// The mode that means the same as `--dangerously-skip-permissions`.
const BYPASS: &str = "bypassPermissions";

/// Returns the sandbox of a permission mode.
pub(super) fn sandbox(mode: Option<&str>) -> &'static str {
    let known = MODES.iter().find(|(name, _)| Some(*name) == mode);
    known.map_or("workspace-write", |(_, sandbox)| sandbox)
}

impl PreflightProblem {
    /// Returns how to fix the problem.
    fn remedy(&self) -> String {
        let remedy = match self {
            Self::Mode(_) => {
                return format!("the modes are {}", MODES.map(|mode| mode.0).join(", "));
            }
            Self::Effort(_) => return format!("the efforts are {}", EFFORTS.join(", ")),
            Self::Bypass => {
                "pass --dangerously-skip-permissions yourself; a file of a project cannot skip checks"
            }
            Self::Deny(_) => {
                "use permission_mode plan (a read-only sandbox), or another backend for this state"
            }
            Self::Unwritable(_) => "make it writable, or set CODEX_HOME to another directory",
            Self::Home(_) => "create it, and log in there with `codex login`; or unset CODEX_HOME",
            Self::Mcp => "configure the servers in its own config.toml, or use another backend",
            Self::Unpriced(model) => {
                return format!(
                    "put [prices.{model:?}] into the configuration, or run it with --budget none \
                     and no `budget` in the state"
                );
            }
        };
        remedy.to_owned()
    }

    /// Returns the problem and how to fix it.
    pub(super) fn message(&self) -> String {
        format!("{self}: {}", self.remedy())
    }

    /// Returns the key of the state that causes the problem, or `None` if the machine causes it.
    const fn key(&self) -> Option<&'static str> {
        match self {
            Self::Home(_) | Self::Unwritable(_) => None,
            Self::Mode(_) | Self::Bypass => Some("permission_mode"),
            Self::Effort(_) => Some("effort"),
            Self::Deny(_) => Some("deny"),
            Self::Mcp => Some("mcp_config"),
            Self::Unpriced(_) => Some("model"),
        }
    }
}

impl From<PreflightProblem> for ClientProblem {
    fn from(problem: PreflightProblem) -> Self {
        Self { key: problem.key(), message: problem.to_string(), remedy: problem.remedy() }
    }
}

/// Checks that `CODEX_HOME` is a directory, because the client does not create it.
pub(crate) fn check_home() -> Result<(), ClientProblem> {
    Ok(check_exists(own_home(None))?)
}

fn check_exists(home: Option<PathBuf>) -> Result<(), PreflightProblem> {
    match home {
        Some(home) if !home.is_dir() => Err(PreflightProblem::Home(home)),
        Some(home) if !is_writable(&home) => Err(PreflightProblem::Unwritable(home)),
        Some(_) | None => Ok(()),
    }
}

/// Whether a directory can be created inside.
fn is_writable(directory: &Path) -> bool {
    // Permission bits do not answer this, least of all for root.
    let trial = directory.join(format!(".raymond-{}", std::process::id()));
    match fs::create_dir(&trial) {
        Ok(()) => fs::remove_dir(&trial).is_ok(),
        // Left by an earlier check that was killed, which proves that the directory was writable.
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    }
}

/// Whether the prices of a model are known.
pub(super) fn is_priced(prices: &Prices, model: &str) -> bool {
    prices.estimate(model, &Usage::default()).is_some()
}

/// Checks the options at the start of a client, because states can be edited during a run.
pub(super) fn check_options(
    options: RequestedOptions<'_>,
    prices: &Prices,
) -> Result<(), PreflightProblem> {
    problems(options, prices).into_iter().next().map_or(Ok(()), Err)
}

/// Returns every option that the client cannot fulfil.
pub(crate) fn unsupported_options(
    options: RequestedOptions<'_>,
    prices: &Prices,
) -> Vec<ClientProblem> {
    // A missing tool list is a missing capability, which `Requirements` reports.
    let is_reported_here =
        |problem: &PreflightProblem| !matches!(problem, PreflightProblem::Deny(_));
    let problems = problems(options, prices).into_iter().filter(is_reported_here);
    problems.map(ClientProblem::from).collect()
}

fn problems(options: RequestedOptions<'_>, prices: &Prices) -> Vec<PreflightProblem> {
    let Permissions { mode, deny, checks, .. } = options.permissions;
    let mode = match (checks, mode.as_deref()) {
        (Checks::Kept, Some(BYPASS)) => Some(PreflightProblem::Bypass),
        // The flag already allows what the mode asks for.
        (Checks::Skipped, Some(BYPASS)) | (_, None) => None,
        (_, Some(mode)) if MODES.iter().any(|known| known.0 == mode) => None,
        (_, Some(mode)) => Some(PreflightProblem::Mode(mode.to_owned())),
    };
    let effort = options.effort.filter(|effort| !EFFORTS.contains(effort));
    let effort = effort.map(|effort| PreflightProblem::Effort(effort.to_owned()));
    // One denied tool is enough for the message.
    let deny = deny.first().map(|rule| PreflightProblem::Deny(rule.clone()));
    let mcp = options.extras.mcp_config.as_ref().map(|_| PreflightProblem::Mcp);
    // Without a price Raymond cannot know when the budget share is used up.
    let unpriced = options.cap.and(options.model).filter(|model| !is_priced(prices, model));
    let unpriced = unpriced.map(|model| PreflightProblem::Unpriced(model.to_owned()));
    [mode, effort, deny, mcp, unpriced].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use raymond_core::budget::Micros;
    use raymond_core::prices::Price;
    use raymond_core::run::turn_spec::Extras;

    use super::*;

    /// Returns options without any restriction.
    fn nothing(extras: &Extras) -> RequestedOptions<'_> {
        static USUAL: LazyLock<Permissions> = LazyLock::new(Permissions::default);
        RequestedOptions { permissions: &USUAL, effort: None, extras, model: None, cap: None }
    }

    #[test]
    fn unsupported_options_are_refused_with_reason() {
        let check = |permissions: Permissions,
                     effort: Option<&str>,
                     expected: Result<(), PreflightProblem>| {
            let extras = Extras::default();
            let wish = RequestedOptions { permissions: &permissions, effort, ..nothing(&extras) };
            assert_eq!(check_options(wish, &Prices::default()), expected);
        };
        let mode = |mode: &str| Permissions { mode: Some(mode.into()), ..Permissions::default() };
        check(Permissions::default(), None, Ok(()));
        check(mode("acceptEdits"), Some("high"), Ok(()));
        check(mode("default"), Some("ultra"), Ok(()));
        check(mode("plan"), None, Ok(()));
        check(mode("dontAsk"), None, Err(PreflightProblem::Mode("dontAsk".into())));
        check(mode(BYPASS), None, Err(PreflightProblem::Bypass));
        check(Permissions { checks: Checks::Skipped, ..mode(BYPASS) }, None, Ok(()));
        check(mode("plan"), Some("hgih"), Err(PreflightProblem::Effort("hgih".into())));
        let rules = vec!["Bash(rm:*)".to_owned()];
        let deny = Permissions { deny: rules.clone(), ..Permissions::default() };
        check(deny, None, Err(PreflightProblem::Deny("Bash(rm:*)".into())));
        // Actions that the sandbox allows need no rule.
        check(Permissions { allow: rules, ..Permissions::default() }, None, Ok(()));
        let extras = Extras { mcp_config: Some("{}".into()), ..Extras::default() };
        assert_eq!(check_options(nothing(&extras), &Prices::default()), Err(PreflightProblem::Mcp));
    }

    #[test]
    fn unpriced_model_is_refused_with_a_cap() {
        let extras = Extras::default();
        let check =
            |model: Option<&str>, cap: Option<Micros>, expected: Result<(), PreflightProblem>| {
                let wish = RequestedOptions { model, cap, ..nothing(&extras) };
                assert_eq!(check_options(wish, &Prices::default()), expected, "{model:?} {cap:?}");
            };
        let cap = Some(Micros(50_000));
        let unpriced = PreflightProblem::Unpriced("house-model".into());
        check(Some("house-model"), cap, Err(unpriced.clone()));
        check(Some("house-model"), None, Ok(()));
        check(Some("gpt-5.5"), cap, Ok(()));
        // The client says what its own is when the turn runs.
        check(None, cap, Ok(()));
        let one = Micros(1);
        let price = Price { input: one, output: one, cache_write: one, cache_read: one };
        let prices = Prices::default().with([("house".to_owned(), price)]);
        let wish = RequestedOptions { model: Some("house-model"), cap, ..nothing(&extras) };
        assert_eq!(check_options(wish, &prices), Ok(()));
        let told = "the model \"house-model\" has no price, so codex cannot be held to a budget: \
                    put [prices.\"house-model\"] into the configuration, or run it with --budget \
                    none and no `budget` in the state";
        assert_eq!(unpriced.message(), told);
    }

    #[test]
    fn all_problems_are_reported_together() {
        let extras = Extras { mcp_config: Some("{}".into()), ..Extras::default() };
        let permissions = Permissions { mode: Some("auto".into()), ..Permissions::default() };
        let effort = Some("hgih");
        let wish = RequestedOptions { permissions: &permissions, effort, ..nothing(&extras) };
        let expected = [
            PreflightProblem::Mode("auto".into()),
            PreflightProblem::Effort("hgih".into()),
            PreflightProblem::Mcp,
        ];
        assert_eq!(problems(wish, &Prices::default()), expected);
        let keys = expected.map(|problem| problem.key());
        assert_eq!(keys, [Some("permission_mode"), Some("effort"), Some("mcp_config")]);
    }

    #[test]
    fn a_home_that_is_named_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let check = |home: Option<PathBuf>, expected: Result<(), PreflightProblem>| {
            assert_eq!(check_exists(home), expected);
        };
        let nowhere = directory.path().join("nowhere");
        check(None, Ok(()));
        check(Some(directory.path().to_owned()), Ok(()));
        check(Some(nowhere.clone()), Err(PreflightProblem::Home(nowhere)));
        let proc = PathBuf::from("/proc");
        check(Some(proc.clone()), Err(PreflightProblem::Unwritable(proc)));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!(PreflightProblem::Home(PathBuf::new()).key(), None);
    }

    #[test]
    fn a_mode_is_a_sandbox() {
        let check = |mode: Option<&str>, expected: &str| assert_eq!(sandbox(mode), expected);
        check(None, "workspace-write");
        check(Some("acceptEdits"), "workspace-write");
        check(Some("default"), "workspace-write");
        check(Some("plan"), "read-only");
    }
}
