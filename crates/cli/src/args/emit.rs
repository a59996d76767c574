//! Flags of the command that prints a tag.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use raymond_core::protocol::TagName;

/// The tags, for clap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmittedTag(pub(crate) TagName);

impl ValueEnum for EmittedTag {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [EmittedTag; TagName::ALL.len()] = {
            let mut all = [EmittedTag(TagName::Goto); TagName::ALL.len()];
            let mut place = 0;
            while place < all.len() {
                all[place] = EmittedTag(TagName::ALL[place]);
                place += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.as_str()))
    }
}

#[derive(Debug, Args)]
pub(crate) struct Emit {
    /// Print this tag
    #[arg(value_enum, value_name = "TAG")]
    pub(crate) tag: EmittedTag,
    /// The state that the tag leads to; with `result` and `ask`, the text
    #[arg(value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Pass this text to the state; for `result` and `ask`, it is the text
    // Scripts pass any text, such as a list in Markdown.
    #[arg(long, value_name = "TEXT", conflicts_with = "input_file", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// Read that text from a file (`-` reads stdin)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) input_file: Option<PathBuf>,
    /// Name the state that gets the result (call, function)
    #[arg(long, value_name = "STATE")]
    pub(crate) r#return: Option<String>,
    /// Name the state that continues (fork) or gets the answer (ask)
    #[arg(long, value_name = "STATE")]
    pub(crate) next: Option<String>,
    /// Choose the working directory (reset, fork)
    #[arg(long, value_name = "DIR")]
    pub(crate) cd: Option<String>,
    /// Choose the model (call, function)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Drop all pending returns: the only value is `clear` (reset)
    #[arg(long, value_name = "clear")]
    pub(crate) stack: Option<String>,
    /// Wait this long: 90s, 10m, 2h or 7d (goto, reset)
    #[arg(long, value_name = "DURATION")]
    pub(crate) after: Option<String>,
    /// Wait until this time: 2026-11-18T07:00:00+01:00 (goto, reset)
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Wait for workers: all, any, done or a number (goto)
    #[arg(long, value_name = "NEED")]
    pub(crate) wait: Option<String>,
    /// Wait at most this long (goto with --wait, ask)
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Name the state to enter if that wait fails (goto, ask)
    #[arg(long, value_name = "STATE")]
    pub(crate) then: Option<String>,
    /// Offer these answers, separated by vertical bars (ask)
    #[arg(long, value_name = "A|B")]
    pub(crate) options: Option<String>,
    /// Take this answer if no other comes in time (ask with --timeout)
    #[arg(long, value_name = "TEXT")]
    pub(crate) default: Option<String>,
    /// Return a failure, with the text as the reason (result)
    #[arg(long, value_name = "failed")]
    pub(crate) status: Option<String>,
    /// Add any other attribute, such as a variable of a worker (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    pub(crate) attribute: Vec<(String, String)>,
}

fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if !raymond_core::workflow::template::is_name(name) {
        return Err(format!("{name:?} is not a name: use letters, digits, `_` and `-`"));
    }
    Ok((name.to_owned(), value.to_owned()))
}
