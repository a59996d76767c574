//! Chooses the client for the prompts that `init` writes.
//!
//! Permissions are written for that client: a list of tools, or a sandbox for a client that would
//! refuse lists. A mistake in the configuration is reported when a run starts, not here.

use raymond_backends::registry::{self, ClientKind};
use raymond_core::capability::Capability;
use raymond_core::ids::BackendName;

use crate::{config, runs};

/// The client of the written prompts; `None` for replies or an unknown backend.
#[derive(Debug, Clone, Copy)]
pub(super) struct DetectedClient(Option<&'static ClientKind>);

/// The way in which the written prompts restrict their agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermissionStyle {
    /// Lists of tools.
    Tools,
    /// A sandbox, chosen by `permission_mode`.
    Sandbox,
}

impl DetectedClient {
    /// Returns the configured client.
    pub(super) fn configured() -> Self {
        let config = runs::project().and_then(|project| config::load(&project)).unwrap_or_default();
        let name = config.backend.as_ref().map_or(registry::DEFAULT, |backend| &backend.value);
        Self(registry::client(&BackendName::new(name)))
    }

    pub(super) fn permission_style(self) -> PermissionStyle {
        match self.0 {
            Some(kind) if !kind.capabilities.contains(&Capability::Permissions) => {
                PermissionStyle::Sandbox
            }
            Some(_) | None => PermissionStyle::Tools,
        }
    }

    /// `with Claude Code and a cap of $5.00`
    pub(super) fn with(self, cap: &str) -> String {
        match self.0 {
            Some(kind) => format!("with {} and {cap}", kind.product),
            None => format!("with {cap}"),
        }
    }
}
