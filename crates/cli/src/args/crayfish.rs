//! Flags of the tool `crayfish`, and of the commands about its documents.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::completion;

/// Where schemas are looked for.
#[derive(Debug, Args, Default, Clone)]
pub(crate) struct Schemas {
    /// Where `$ref: "Name"` is looked for: a directory, relative to the workspace; may be repeated
    #[arg(long = "schema-path", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(override_usage = "raymond crayfish [OPTIONS] < request.json")]
pub(crate) struct Crayfish {
    #[command(subcommand)]
    pub(crate) about: Option<About>,
    /// Where steps work, whatever the request says [default: that of its `agentId`, or here]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Say nothing on stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What can be asked about documents without running them.
#[derive(Debug, Subcommand)]
pub(crate) enum About {
    /// Check documents: all that is wrong with them, before anything runs
    #[command(after_help = "Example:\n  raymond crayfish validate flow.json --schema-path schemas")]
    Validate(Validate),
    /// Print the JSON Schema of documents, requests or replies
    #[command(after_help = "Example:\n  raymond crayfish schema > flow.schema.json")]
    Schema(Schema),
    /// Show a document as a plan: what runs in which order, and within which bounds
    #[command(after_help = "Example:\n  raymond crayfish explain flow.json")]
    Explain(Explain),
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The documents; `-` is stdin
    #[arg(required = true, value_name = "FILE", add = completion::document())]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) schemas: Schemas,
    /// The directory that schemas are looked for in [default: here]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Of what
    #[arg(value_name = "WHAT", default_value = "document", hide_possible_values = false)]
    pub(crate) of: Described,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Described {
    /// What authors write
    Document,
    /// What callers send
    Request,
    /// What callers get back
    Reply,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The document; `-` is stdin
    #[arg(value_name = "FILE", add = completion::document())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) schemas: Schemas,
    /// The directory that schemas are looked for in [default: here]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
