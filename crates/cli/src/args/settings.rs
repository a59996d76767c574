//! Flags that set limits, clients and permissions of a run.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, Args, ValueEnum};
use raymond_core::budget::Micros;
use raymond_core::time::Span;

/// The settings that `run`, `ralph` and `resume` share.
#[derive(Debug, Args, Default)]
pub(crate) struct SettingFlags {
    /// Stop at this total cost in US dollars, or `none` [default: 10.00]
    ///
    /// With `resume` it is the new total. Clients check the cap after they have spent, so the
    /// overshoot is at most one model request for each running turn. With Codex a second request
    /// may have started, which Raymond interrupts (docs/codex.md).
    #[arg(long, value_name = "USD|none", allow_hyphen_values = true)]
    pub(crate) budget: Option<Budget>,
    /// Charge a turn's full budget share when its cost is unknown
    ///
    /// With Codex this is always the case.
    #[arg(long)]
    pub(crate) strict_budget: bool,
    /// Set the default model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Set the default effort
    #[arg(long)]
    pub(crate) effort: Option<String>,
    /// Set the default backend of prompts and agent steps [default: claude]
    #[arg(long, visible_alias = "agent")]
    pub(crate) backend: Option<String>,
    /// Play replies from this file (implies `--backend scripted`)
    #[arg(long, value_name = "FILE")]
    pub(crate) replies: Option<PathBuf>,
    /// Run at most this many turns at the same time [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_parallel: Option<u32>,
    /// Allow at most this many unfinished agents [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_agents: Option<u32>,
    /// Send at most this many reminders per visit [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) reminders: Option<u32>,
    /// Retry at most this many times per visit [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    /// End a turn that takes longer, such as 10m [default: none]
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Span>,
    /// End a turn that prints nothing for this long [default: 30m]
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle_timeout: Option<Span>,
    /// Exit with code 4 instead of waiting for a usage limit
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Choose what to do if the client has lost a session [default: fail]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_lost_session: Option<LostSession>,
    /// Choose what to do with an interrupted script [default: rerun]
    #[arg(long, value_name = "WHAT")]
    pub(crate) interrupted_scripts: Option<InterruptedScripts>,
    /// Set the default permission mode of clients [default: acceptEdits]
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Allow clients this tool, such as 'Bash(cargo test:*)' (repeatable)
    #[arg(long, value_name = "TOOL")]
    pub(crate) allow: Vec<String>,
    /// Deny clients this tool, even if --allow names it (repeatable)
    #[arg(long, value_name = "TOOL")]
    pub(crate) deny: Vec<String>,
    /// Let clients use every tool without asking for permission
    #[arg(long)]
    pub(crate) dangerously_skip_permissions: bool,
}

/// Replaces the default in the help of a flag, because `resume` keeps the setting of the run.
pub(crate) fn with_unchanged_default(flag: Arg) -> Arg {
    let with_unchanged_default = |help: &StyledStr| {
        let help = help.to_string();
        match help.split_once(" [default: ") {
            Some((before, default)) => {
                let behind = default.split_once(']').map_or("", |(_, behind)| behind);
                format!("{before} [default: unchanged]{behind}").into()
            }
            None => StyledStr::from(help),
        }
    };
    if flag.is_positional() {
        return flag;
    }
    let short = Resettable::from(flag.get_help().map(with_unchanged_default));
    let long = Resettable::from(flag.get_long_help().map(with_unchanged_default));
    flag.help(short).long_help(long)
}

/// A cap, or no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget(pub(crate) Option<Micros>);

impl Budget {
    /// Creates a cap; zero is refused.
    pub(crate) fn of(amount: Micros) -> Result<Self, String> {
        if amount == Micros::ZERO {
            return Err("a budget of zero starts nothing; use an amount or `none`".to_owned());
        }
        Ok(Self(Some(amount)))
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            amount => Self::of(amount.parse().map_err(|error| format!("{error}, or none"))?),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LostSession {
    /// Fail the agent
    Fail,
    /// Start the turn in a new session
    Fresh,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InterruptedScripts {
    /// Run the script again
    Rerun,
    /// Fail the agent of the script
    Fail,
}
