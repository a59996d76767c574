//! Flags of the tool `crayfish`, and of the commands that inspect documents.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::completion;

/// The directories that are searched for schemas.
#[derive(Debug, Args, Default, Clone)]
pub(crate) struct SchemaPathFlags {
    /// Search this directory of the workspace for `$ref: "Name"` (repeatable)
    #[arg(long = "schema-path", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(
    override_usage = "raymond crayfish [OPTIONS] < request.json\n       raymond crayfish COMMAND"
)]
pub(crate) struct Crayfish {
    #[command(subcommand)]
    pub(crate) about: Option<CrayfishCommand>,
    /// Run steps in this directory, even if the request names an agent
    ///
    /// [default: the workspace of the request's `agentId`, or the current directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print nothing to stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The commands that inspect documents without running them.
#[derive(Debug, Subcommand)]
pub(crate) enum CrayfishCommand {
    /// Check documents and list all problems, without running them
    #[command(after_help = "Example:\n  raymond crayfish validate flow.json --schema-path schemas")]
    Validate(Validate),
    /// Print the JSON Schema of documents, requests or replies
    #[command(after_help = "Example:\n  raymond crayfish schema > flow.schema.json")]
    Schema(SchemaFlags),
    /// Show a document as a plan: steps, their order and their limits
    #[command(after_help = "Example:\n  raymond crayfish explain flow.json")]
    Explain(Explain),
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Check these documents (`-` reads stdin)
    #[arg(required = true, value_name = "FILE", add = completion::document())]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) schemas: SchemaPathFlags,
    /// Look for schema directories in this directory [default: .]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaFlags {
    /// Choose the kind of value
    #[arg(value_name = "WHAT", default_value = "document", hide_possible_values = false)]
    pub(crate) of: SchemaKind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaKind {
    /// A document, which authors write
    Document,
    /// A request, which callers send
    Request,
    /// A reply, which callers get back
    Reply,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Explain this document (`-` reads stdin)
    #[arg(value_name = "FILE", add = completion::document())]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) schemas: SchemaPathFlags,
    /// Look for schema directories in this directory [default: .]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
