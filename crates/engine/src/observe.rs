//! What an executor makes of a text: tags read, directories looked at, large values stored.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use raymond_backends::contract::Answer;
use raymond_core::budget::Cost;
use raymond_core::crayfish::state::Stored;
use raymond_core::protocol::{Reading, Source, Tag};
use raymond_core::run::input::{Finished, Interruption, Outcome};
use raymond_core::value::{Hash, Value};
use raymond_store::{Blobs, blobs};
use serde_json::Value as Json;

/// Stores bytes under their hash.
pub fn put(blobs: &Blobs, bytes: &[u8]) -> Result<Hash, blobs::Error> {
    blobs.put(bytes).map(Hash::known)
}

/// Keeps what a step left.
pub fn store(blobs: &Blobs, json: Json, ok: bool) -> Result<Stored, blobs::Error> {
    Stored::keep(json, ok, &mut |bytes: &[u8]| put(blobs, bytes))
}

/// The text of a value.
pub fn load(blobs: &Blobs, value: &Value) -> Result<String, blobs::Error> {
    match value {
        Value::Inline(text) => Ok(text.clone()),
        Value::Blob(blob) => {
            let text = String::from_utf8(blobs.get(blob.hash.as_str())?);
            Ok(text.unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
        }
    }
}

/// Reads a final text: what a decision needs of it, and nothing large.
pub fn read_final_text(
    text: &str,
    source: Source,
    cwd: &Path,
    blobs: &Blobs,
) -> Result<Finished, blobs::Error> {
    let mut store = |bytes: &[u8]| put(blobs, bytes);
    let reading = Reading::of(text, source, &mut store)?;
    let text = Value::keep(text, &mut store)?;
    let directories = directories(&reading, cwd);
    Ok(Finished { reading, directories, ..Finished::new(text, Cost::Free) })
}

/// Reads what a client answered, as a text from `source`. One that was cut off was cut off by `by`.
pub fn read_answer(
    answer: Answer,
    source: Source,
    by: Interruption,
    cwd: &Path,
    blobs: &Blobs,
) -> Result<Outcome, blobs::Error> {
    Ok(match answer {
        Answer::Replied(reply) => {
            let finished = read_final_text(&reply.text, source, cwd, blobs)?;
            Outcome::Finished(Box::new(Finished {
                cost: reply.cost,
                capped: reply.capped,
                session: reply.session,
                model: reply.model,
                denied: reply.denied,
                warnings: reply.warnings,
                ..finished
            }))
        }
        Answer::Capped { cost, progressed, denied, session } => {
            Outcome::Capped { cost, progressed, denied, session }
        }
        Answer::Failed { failure, cost, denied, session } => {
            Outcome::Failed { failure, cost, denied, session }
        }
        Answer::Interrupted { cost, progressed, session } => {
            Outcome::Interrupted { by, cost, progressed, session }
        }
    })
}

/// The directories that tags name and that exist: as written, and absolute.
fn directories(reading: &Reading, cwd: &Path) -> BTreeMap<String, String> {
    let named = reading.tags.iter().filter_map(Tag::cd);
    named.filter_map(|cd| Some((cd.to_owned(), directory(cd, cwd)?))).collect()
}

fn directory(cd: &str, cwd: &Path) -> Option<String> {
    let path = cwd.join(cd);
    if !path.is_dir() {
        return None;
    }
    let plain = path.components().all(|part| !matches!(part, Component::ParentDir));
    let path = if plain { path.components().collect() } else { path.canonicalize().ok()? };
    path.into_os_string().into_string().ok()
}
