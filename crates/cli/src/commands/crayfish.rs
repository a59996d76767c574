//! `raymond crayfish`: the tool for hosts, and what can be asked about documents without running them.

mod call;
mod explain;
mod leaving;
mod validate;

use raymond_core::crayfish::schema;

use crate::args::{About, Crayfish, Described};
use crate::failure::Failure;

use super::hand_over;

pub(crate) fn crayfish(flags: &Crayfish) -> Result<u8, Failure> {
    match &flags.about {
        None => call::call(flags),
        Some(About::Validate(flags)) => validate::validate(flags),
        Some(About::Explain(flags)) => explain::explain(flags),
        Some(About::Schema(flags)) => {
            let text = match flags.of {
                Described::Document => schema::DOCUMENT,
                Described::Request => schema::REQUEST,
                Described::Reply => schema::REPLY,
            };
            hand_over(&format!("{}\n", text.trim_end()))?;
            Ok(0)
        }
    }
}
