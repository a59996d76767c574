//! Flags of the commands about this machine and this project.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the directory of the demo
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// End processes that nobody drives, and remove runs that were never started
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}
