//! Flags that govern a run: its limits, its clients, its permissions.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, Args, ValueEnum};
use raymond_core::budget::Micros;
use raymond_core::time::Span;

/// What governs the turns of a run; `run` and `resume` share it.
#[derive(Debug, Args, Default)]
pub(crate) struct Governing {
    /// The cap in US dollars, or `none`; with `resume` the new total [default: 10.00]
    ///
    /// Clients check after they have spent: the overshoot is at most one model request for each turn
    /// in flight; with codex another one may have begun, which is broken off (docs/codex.md).
    #[arg(long, value_name = "USD|none", allow_hyphen_values = true)]
    pub(crate) budget: Option<Budget>,
    /// Charge at least a turn's full budget share when its cost is unknown: with codex, always
    #[arg(long)]
    pub(crate) strict_budget: bool,
    /// The model of turns that nothing else decides
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The effort of states that name none
    #[arg(long)]
    pub(crate) effort: Option<String>,
    /// Who answers prompts that name no backend, and agent steps [default: claude]
    #[arg(long, visible_alias = "agent")]
    pub(crate) backend: Option<String>,
    /// Play replies from this file; implies `--backend scripted`
    #[arg(long, value_name = "FILE")]
    pub(crate) replies: Option<PathBuf>,
    /// Turns at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_parallel: Option<u32>,
    /// Live workers [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_agents: Option<u32>,
    /// Reminders per visit [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) reminders: Option<u32>,
    /// Retries per visit [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    /// The longest a turn may take, such as 10m
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<Span>,
    /// The longest a turn may be silent [default: 30m]
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle_timeout: Option<Span>,
    /// End with exit code 4 instead of waiting for a usage limit
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// What a session means that its client has lost [default: fail]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_lost_session: Option<LostSession>,
    /// What becomes of a script that was cut off [default: rerun]
    #[arg(long, value_name = "WHAT")]
    pub(crate) interrupted_scripts: Option<InterruptedScripts>,
    /// How clients ask for permission, of states that do not say [default: acceptEdits]
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// A tool that clients may use, such as 'Bash(cargo test:*)'
    #[arg(long, value_name = "TOOL")]
    pub(crate) allow: Vec<String>,
    /// A tool that clients may not use; wins over --allow
    #[arg(long, value_name = "TOOL")]
    pub(crate) deny: Vec<String>,
    /// Let clients do whatever they want
    #[arg(long)]
    pub(crate) dangerously_skip_permissions: bool,
}

/// The flag as `resume` has it: where nothing is said, what the run has still holds.
pub(crate) fn kept(flag: Arg) -> Arg {
    let kept = |help: &StyledStr| {
        let help = help.to_string();
        match help.split_once(" [default: ") {
            Some((before, default)) => {
                let behind = default.split_once(']').map_or("", |(_, behind)| behind);
                format!("{before} [default: as the run has it]{behind}").into()
            }
            None => StyledStr::from(help),
        }
    };
    if flag.is_positional() {
        return flag;
    }
    let short = Resettable::from(flag.get_help().map(kept));
    let long = Resettable::from(flag.get_long_help().map(kept));
    flag.help(short).long_help(long)
}

/// A cap, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget(pub(crate) Option<Micros>);

impl Budget {
    /// A cap of this amount.
    pub(crate) fn of(amount: Micros) -> Result<Self, String> {
        if amount == Micros::ZERO {
            return Err("a budget of zero lets nothing start; name an amount, or none".to_owned());
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
    /// The agent fails
    Fail,
    /// The turn starts in a fresh session
    Fresh,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InterruptedScripts {
    /// They run again
    Rerun,
    /// Their agent fails
    Fail,
}
