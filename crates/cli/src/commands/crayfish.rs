//! `raymond crayfish`: the tool for agent hosts, and commands that inspect documents.

mod call;
mod cancellation;
mod explain;
mod validate;

use raymond_core::crayfish::schema;

use crate::args::{Crayfish, CrayfishCommand, SchemaKind};
use crate::failure::Failure;

pub(super) use call::tool;

use super::write_stdout;

pub(crate) fn crayfish(flags: &Crayfish) -> Result<u8, Failure> {
    match &flags.about {
        None => call::call(flags),
        Some(CrayfishCommand::Validate(flags)) => validate::validate(flags),
        Some(CrayfishCommand::Explain(flags)) => explain::explain(flags),
        Some(CrayfishCommand::Schema(flags)) => {
            let text = match flags.of {
                SchemaKind::Document => schema::DOCUMENT,
                SchemaKind::Request => schema::REQUEST,
                SchemaKind::Reply => schema::REPLY,
            };
            write_stdout(&format!("{}\n", text.trim_end()))?;
            Ok(0)
        }
    }
}
