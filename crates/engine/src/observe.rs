//! Turns final texts into outcomes: reads tags, resolves directories and stores large values.
//!
//! The core can neither read files nor keep megabytes. Everything that it needs to know about a
//! text is observed here, right after the turn, and becomes part of the input. Which tags are
//! allowed and where they lead is decided by the core.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use raymond_backends::contract::Answer;
use raymond_core::crayfish::stored::Stored;
use raymond_core::protocol::{Source, Tag, TagReading};
use raymond_core::run::Input;
use raymond_core::run::outcome::{Outcome, ReadReply};
use raymond_core::value::{Hash, Value};
use serde_json::Value as Json;

/// The store of large values. The blobs of a run are in its directory; an executor on another host
/// has another store.
pub trait BlobStore {
    type Error;

    /// Stores bytes under their hash.
    fn put(&self, bytes: &[u8]) -> Result<Hash, Self::Error>;

    fn get(&self, hash: &Hash) -> Result<Vec<u8>, Self::Error>;
}

impl BlobStore for raymond_store::Blobs {
    type Error = raymond_store::blobs::Error;

    fn put(&self, bytes: &[u8]) -> Result<Hash, Self::Error> {
        Self::put(self, bytes).map(Hash::known)
    }

    fn get(&self, hash: &Hash) -> Result<Vec<u8>, Self::Error> {
        Self::get(self, hash.as_str())
    }
}

/// Stores the result of a step.
pub fn store<B: BlobStore>(blobs: &B, json: Json, ok: bool) -> Result<Stored, B::Error> {
    Stored::keep(json, ok, &mut |bytes: &[u8]| blobs.put(bytes))
}

/// Stores the text of a long answer, which the core takes only as a reference. If it cannot be
/// stored, its record fails in the same way.
pub(crate) fn with_stored_answer(input: Input, blobs: &raymond_store::Blobs) -> Input {
    let Input::Answer { ask, value: Value::Inline(text), by, key } = input else { return input };
    let value = Value::keep(&text, &mut |bytes| BlobStore::put(blobs, bytes));
    let value = value.unwrap_or(Value::Inline(text));
    Input::Answer { ask, value, by, key }
}

/// Returns the text of a value. Bytes that are not UTF-8 are replaced.
pub fn load<B: BlobStore>(blobs: &B, value: &Value) -> Result<String, B::Error> {
    match value {
        Value::Inline(text) => Ok(text.clone()),
        Value::Blob(blob) => {
            // The output of a script may be any bytes, so a value need not be UTF-8.
            let text = String::from_utf8(blobs.get(&blob.hash)?);
            Ok(text.unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
        }
    }
}

/// Reads the tags of a final text. Large values become blobs.
pub fn read_final_text<B: BlobStore>(
    text: &str,
    source: Source,
    cwd: &Path,
    blobs: &B,
) -> Result<ReadReply, B::Error> {
    let mut store = |bytes: &[u8]| blobs.put(bytes);
    let reading = TagReading::of(text, source, &mut store)?;
    let text = Value::keep(text, &mut store)?;
    let directories = directories(&reading, cwd);
    Ok(ReadReply { reading, directories, ..text.into() })
}

/// Reads the reply of a client, if there is one.
pub fn read_answer<B: BlobStore>(
    answer: Answer,
    source: Source,
    cwd: &Path,
    blobs: &B,
) -> Result<Outcome, B::Error> {
    answer.try_map(|reply| read_final_text(&reply.text, source, cwd, blobs))
}

/// Returns the existing directories that tags name, as written and as absolute paths.
fn directories(reading: &TagReading, cwd: &Path) -> BTreeMap<String, String> {
    let named = reading.tags.iter().filter_map(Tag::cd);
    named.filter_map(|cd| Some((cd.to_owned(), directory(cd, cwd)?))).collect()
}

fn directory(cd: &str, cwd: &Path) -> Option<String> {
    let path = cwd.join(cd);
    if !path.is_dir() {
        return None;
    }
    // `a/../b` means something else if `a` is a link, so only the system can resolve it. Other
    // paths keep their links: the user sees the path that the agent wrote.
    let plain = path.components().all(|part| !matches!(part, Component::ParentDir));
    let path = if plain { path.components().collect() } else { path.canonicalize().ok()? };
    path.into_os_string().into_string().ok()
}
