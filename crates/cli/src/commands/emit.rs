//! `raymond emit`: prints a tag for a script, with any text in it.
//!
//! The rules for tags are in `raymond_core::protocol`. This command only reads the texts.

use std::path::Path;

use raymond_core::protocol::TagName;
use raymond_core::protocol::tags::Body;
use raymond_core::protocol::{TagText, Unwritable};

use crate::args::Emit;
use crate::documents;
use crate::failure::Failure;

use super::write_stdout;

pub(crate) fn emit(flags: &Emit) -> Result<u8, Failure> {
    let tag = flags.tag.0;
    let input = match &flags.input_file {
        Some(path) => Some(read(path)?),
        None => flags.input.clone(),
    };
    let (body, input) = body_and_input(tag, flags.state.as_deref(), input)?;
    let words = [
        ("return", &flags.r#return),
        ("next", &flags.next),
        ("cd", &flags.cd),
        ("model", &flags.model),
        ("stack", &flags.stack),
        ("after", &flags.after),
        ("at", &flags.at),
        ("wait", &flags.wait),
        ("timeout", &flags.timeout),
        ("then", &flags.then),
        ("options", &flags.options),
        ("default", &flags.default),
        ("status", &flags.status),
    ];
    // On a fork, these would become variables of the worker.
    if tag == TagName::Fork && flags.at.is_some() {
        return Err(Failure::usage(
            "could not write the tag: <fork>: `at` is only valid on goto and reset",
        ));
    }
    if tag == TagName::Fork && flags.then.is_some() {
        return Err(Failure::usage(
            "could not write the tag: <fork>: `then` is only valid on goto and ask",
        ));
    }
    // Names are trimmed when they are read, so that is how they are written.
    let words = words.into_iter().filter_map(|(name, word)| Some((name, word.as_deref()?.trim())));
    let input = input.as_deref().map(|input| ("input", input));
    let others = flags.attribute.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let attributes = words.chain(input).chain(others).collect();
    let written = TagText { name: tag, attributes, body: &body }
        .write()
        .map_err(|problem| unwritable(&problem))?;
    write_stdout(&format!("{written}\n"))?;
    Ok(0)
}

/// Returns the text between the tags, and the input. A result has only one text.
fn body_and_input(
    tag: TagName,
    state: Option<&str>,
    input: Option<String>,
) -> Result<(String, Option<String>), Failure> {
    match (tag.spec().body, state, input) {
        (Body::Target, Some(state), input) => Ok((state.trim().to_owned(), input)),
        (Body::Target, None, _) => {
            Err(Failure::usage(format!("<{tag}> needs the name of a state"))
                .hint(format!("raymond emit {tag} STATE")))
        }
        (Body::Payload(_), None, Some(text)) => Ok((text, None)),
        (Body::Payload(_), Some(text), None) => Ok((text.to_owned(), None)),
        (Body::Payload(_), None, None) => Err(Failure::usage(format!("<{tag}> needs a text"))
            .hint(format!("raymond emit {tag} TEXT, or --input-file FILE"))),
        (Body::Payload(_), Some(_), Some(_)) => {
            Err(Failure::usage(format!("<{tag}> has one text, and two were given")))
        }
    }
}

/// Reads a text. Bytes that are not UTF-8 are replaced, as in the output of a script.
fn read(path: &Path) -> Result<String, Failure> {
    let bytes = documents::read_file(path).map_err(|error| {
        Failure::usage(format!("--input-file: could not read {}: {error}", path.display()))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unwritable(problem: &Unwritable) -> Failure {
    let failure = Failure::usage(format!("could not write the tag: {problem}"));
    match problem {
        Unwritable::Payload(_) => {
            failure.hint("write the text to a file, and emit the name of the file")
        }
        Unwritable::Unknown { tag, .. } => {
            failure.hint(format!("write it as {}", tag.spec().cheat_sheet[0]))
        }
        Unwritable::Malformed { .. } => failure,
    }
}
