//! The registry of agent clients: one row for each.
//!
//! The command line and `transcript_parser` iterate over the rows and name no client, so a new
//! client is a folder beside this file, a row in [`CLIENTS`] and a page in `docs`. The backend
//! `scripted` is not in the table, because it has no client that could be missing, old or paid;
//! only [`catalog`] adds it.

use std::env;
use std::ffi::OsStr;
use std::sync::Arc;

use raymond_core::capability::{BackendCatalog, Capability};
use raymond_core::ids::BackendName;
use raymond_core::prices::Prices;
use raymond_core::run::Settings;
use raymond_core::run::permissions::Checks;
use raymond_core::run::settings::ConfigHome;

pub use crate::headless::{ClientProblem, RequestedOptions};

use crate::contract::Backend;
use crate::headless::program::{MissingProgram, display_command, display_version, find, is_older};
use crate::headless::{ClientSettings, TurnReader};
use crate::{claude, codex, scripted};

/// All clients, in the order in which they are shown.
pub static CLIENTS: &[ClientKind] = &[
    ClientKind {
        name: claude::NAME,
        product: "Claude Code",
        install: "npm install -g @anthropic-ai/claude-code",
        update: "npm install -g @anthropic-ai/claude-code@latest",
        oldest: claude::OLDEST,
        capabilities: claude::CAPABILITIES,
        costs: CostOrigin::Reported,
        build: claude::client,
        transcript_reader: claude::transcript_reader,
        check_skipping: claude::check_skipping,
        check_home: || Ok(()),
        unsupported_options: claude::unsupported_options,
    },
    ClientKind {
        name: codex::NAME,
        product: "Codex",
        install: "npm install -g @openai/codex",
        update: "npm install -g @openai/codex@latest",
        oldest: codex::OLDEST,
        capabilities: codex::CAPABILITIES,
        costs: CostOrigin::Estimated,
        build: codex::client,
        transcript_reader: codex::transcript_reader,
        check_skipping: |_| Ok(()),
        check_home: codex::check_home,
        unsupported_options: codex::unsupported_options,
    },
];

/// The backend of prompts that name none.
pub const DEFAULT: &str = Settings::DEFAULT_BACKEND;

/// The permission mode of clients if the user names none. All clients map the modes of Claude Code.
pub const DEFAULT_PERMISSION_MODE: &str = claude::DEFAULT_MODE;

/// A kind of client, with everything in which clients differ outside of a turn.
#[derive(Debug)]
pub struct ClientKind {
    /// The name of the backend in workflows and flags. It is also the name of the client's program,
    /// and the key of another program in the configuration.
    pub name: &'static str,
    /// The name of the client in texts for people.
    pub product: &'static str,
    /// The command that installs the client.
    install: &'static str,
    /// The command that installs its newest version.
    update: &'static str,
    /// The oldest supported version.
    oldest: [u32; 3],
    pub capabilities: &'static [Capability],
    pub costs: CostOrigin,
    /// Creates the backend.
    pub build: fn(ClientSettings) -> Arc<dyn Backend>,
    /// Creates a reader for the transcript of one turn.
    pub(crate) transcript_reader: fn() -> Box<dyn TurnReader>,
    /// Checks that the client can skip its permission checks for this user. The client inherits the
    /// given variables; `None` means all.
    pub check_skipping: fn(Option<&[String]>) -> Result<(), ClientProblem>,
    /// Checks the configuration directory that all agents share.
    pub check_home: fn() -> Result<(), ClientProblem>,
    /// Returns the options that the client does not support. A missing capability is not among
    /// them.
    pub unsupported_options: fn(RequestedOptions<'_>, &Prices) -> Vec<ClientProblem>,
}

/// The origin of the costs of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostOrigin {
    /// The client reports them.
    Reported,
    /// Raymond computes them from tokens and list prices.
    Estimated,
}

/// Returns the client of a backend, or `None` if the backend has no client or does not exist.
pub fn client(backend: &BackendName) -> Option<&'static ClientKind> {
    CLIENTS.iter().find(|kind| kind.name == backend.as_str())
}

/// Returns all backends with their capabilities.
pub fn catalog() -> BackendCatalog {
    let clients = CLIENTS.iter().map(|kind| (kind.name, kind.capabilities));
    let all = clients.chain([(scripted::NAME, scripted::CAPABILITIES)]);
    all.map(|(name, capabilities)| (BackendName::new(name), capabilities)).collect()
}

impl ClientKind {
    /// Checks that a run with these settings can start the client. The version is not checked.
    pub fn check(&self, command: &OsStr, settings: &Settings) -> Result<(), ClientProblem> {
        self.check_program(command)?;
        if settings.permissions.checks == Checks::Skipped {
            (self.check_skipping)(settings.environment.as_deref())?;
        }
        // With a home for each agent, the shared one is not used and may be missing.
        match settings.config_home {
            ConfigHome::Shared => (self.check_home)(),
            ConfigHome::PerAgent => Ok(()),
        }
    }

    /// Checks that the program of the client exists.
    pub fn check_program(&self, command: &OsStr) -> Result<(), ClientProblem> {
        let Err(missing) = find(command, env::var_os("PATH").as_deref()) else { return Ok(()) };
        let Self { name, product, install, .. } = self;
        let remedy = match missing {
            MissingProgram::NotFound(_) => format!(
                "install {product} ({install}), or set `{name}` in the configuration to its path; \
                 or play replies from a file with --replies FILE"
            ),
            MissingProgram::NotExecutable(_) => {
                format!("set `{name}` in the configuration to the path of the client")
            }
        };
        Err(ClientProblem { key: None, message: missing.to_string(), remedy })
    }

    /// Checks the version that the client reports.
    pub fn check_version(&self, command: &OsStr, version: &str) -> Result<(), ClientProblem> {
        if !is_older(version, self.oldest) {
            return Ok(());
        }
        let Self { name, update, .. } = self;
        let (path, oldest) = (display_command(command), display_version(self.oldest));
        let message = format!(
            "the client {name} ({path}) is version {version}, but Raymond needs {oldest} or later"
        );
        let remedy = format!(
            "install a newer version ({update}), or set `{name}` in the configuration to its path"
        );
        Err(ClientProblem { key: None, message, remedy })
    }
}

#[cfg(test)]
mod tests {
    use raymond_core::run::Permissions;

    use super::*;

    fn kind(name: &str) -> &'static ClientKind {
        client(&name.into()).unwrap()
    }

    #[test]
    fn older_client_is_refused_with_its_version() {
        let check = |name: &str, version: &str, expected: Option<(&str, &str)>| {
            let problem = kind(name).check_version(format!("/opt/{name}").as_ref(), version).err();
            let expected = expected.map(|(message, remedy)| ClientProblem {
                key: None,
                message: message.to_owned(),
                remedy: remedy.to_owned(),
            });
            assert_eq!(problem, expected, "{name} {version}");
        };
        check("claude", "2.1.325", None);
        let message = "the client claude (/opt/claude) is version 2.1.308, but Raymond needs \
                       2.1.309 or later";
        let remedy = "install a newer version (npm install -g @anthropic-ai/claude-code@latest), \
                      or set `claude` in the configuration to its path";
        check("claude", "2.1.308", Some((message, remedy)));
        for version in ["0.166.0", "0.166.1-alpha.2", "1.0.0", "0.200", "unknown version"] {
            check("codex", version, None);
        }
        let message = "the client codex (/opt/codex) is version 0.165.9, but Raymond needs \
                       0.166.0 or later";
        let remedy = "install a newer version (npm install -g @openai/codex@latest), or set \
                      `codex` in the configuration to its path";
        check("codex", "0.165.9", Some((message, remedy)));
        let message = message.replace("0.165.9", "0.55.0");
        check("codex", "0.55.0", Some((&message, remedy)));
    }

    #[test]
    fn missing_client_is_reported_first() {
        let permissions = Permissions { checks: Checks::Skipped, ..Permissions::default() };
        let settings = Settings { permissions, ..Settings::default() };
        for kind in CLIENTS {
            let problem = kind.check("no-such-client".as_ref(), &settings).unwrap_err();
            assert_eq!(problem.message, "could not find the client no-such-client on PATH");
            let remedy = format!("install {} ({})", kind.product, kind.install);
            assert!(problem.remedy.starts_with(&remedy), "{}", problem.remedy);
        }
    }

    #[test]
    fn rows_agree_with_their_backends() {
        for kind in CLIENTS {
            let backend = (kind.build)(ClientSettings::of(kind.name));
            assert_eq!(backend.name().as_str(), kind.name);
            assert_eq!(backend.capabilities(), kind.capabilities, "{}", kind.name);
        }
        assert!(client(&DEFAULT.into()).is_some());
        assert!(client(&scripted::NAME.into()).is_none());
    }
}
