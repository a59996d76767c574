//! The YAML block at the top of a prompt.

use crate::budget::Micros;
use crate::ids::BackendName;
use crate::time::Span;

use super::policy::Policy;

/// What a state says about itself. Absent keys leave the choice to flags and configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontmatter {
    /// What the state may emit.
    pub policy: Policy,
    /// The model of its turns.
    pub model: Option<String>,
    /// The effort of its turns.
    pub effort: Option<String>,
    /// The backend of its turns.
    pub backend: Option<BackendName>,
    /// The client's permission mode.
    pub permission_mode: Option<String>,
    /// Tools that are allowed beside those of flags and configuration.
    pub allow: Vec<String>,
    /// Tools that are denied; they win.
    pub deny: Vec<String>,
    /// What a denied tool means.
    pub on_denied: OnDenied,
    /// Directories that the client may use.
    pub add_dirs: Vec<String>,
    /// The client's MCP configuration.
    pub mcp_config: Option<String>,
    /// Appended to the client's system prompt.
    pub append_system_prompt: Option<String>,
    /// The longest a turn may take.
    pub timeout: Option<Span>,
    /// The longest a turn may be silent.
    pub idle_timeout: Option<Span>,
    /// How often one agent may enter the state; at least 1.
    pub max_visits: Option<u32>,
    /// Where a transition leads instead when that number is reached; as written.
    pub then: Option<String>,
    /// The cap for all turns of one visit.
    pub budget: Option<Micros>,
    /// One line for screens.
    pub description: Option<String>,
}

/// What a denied tool means for the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDenied {
    /// A warning.
    #[default]
    Warn,
    /// A reminder.
    Remind,
    /// The end of the agent.
    Fail,
}
