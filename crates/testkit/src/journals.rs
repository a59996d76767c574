//! Golden journals: journals of every feature, written once, never changed, and applied by every
//! build.
//!
//! Each has its own directory below `tests/journals/format-1` with the journal, its blobs, and
//! `run.json`, the expected run. An existing golden journal is never overwritten.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use raymond_core::run::Run;
use raymond_engine::driver::Head;
use raymond_engine::fold;
use raymond_store::disk::RealDisk;
use raymond_store::{Blobs, Journal};
use serde_json::Value as Json;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Golden {
    pub name: String,
    directory: PathBuf,
}

/// The contents of a golden journal that may not exist yet.
pub struct NewGolden<'d> {
    pub name: &'d str,
    /// The first line, without its checksum.
    pub header: Vec<u8>,
    /// The other lines, without their checksums.
    pub bodies: Vec<Vec<u8>>,
    /// Returns a blob by its hash.
    pub blob: &'d dyn Fn(&str) -> Result<Vec<u8>, String>,
}

/// Returns the directory of all golden journals.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/journals/format-1")
}

/// Lists all golden journals, sorted by name.
pub fn all() -> io::Result<Vec<Golden>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            all.push(Golden::named(&entry.file_name().to_string_lossy()));
        }
    }
    all.sort();
    Ok(all)
}

impl Golden {
    /// Returns the golden journal of this name, which may not exist.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), directory: directory().join(name) }
    }

    pub fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    pub fn journal(&self) -> PathBuf {
        self.directory.join("journal.jsonl")
    }

    pub fn blobs(&self) -> Blobs {
        Blobs::new(Arc::new(RealDisk), self.directory.join("blobs"))
    }

    /// Reads the expected run.
    pub fn expected(&self) -> Result<Json, String> {
        let text = fs::read(self.directory.join("run.json")).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// Applies the journal, and returns the run.
    pub fn applied(&self) -> Result<Run, String> {
        let read = Journal::read(&RealDisk, &self.journal()).map_err(|error| error.to_string())?;
        let mut head = Head::empty();
        for line in read.lines.iter() {
            let record = fold::record(line.body, line.seq).map_err(|error| error.to_string())?;
            head.fold(&record);
        }
        Ok(head.run)
    }
}

impl NewGolden<'_> {
    /// Writes the golden journal, unless it exists.
    pub fn write(&self) -> Result<(), String> {
        let golden = Golden::named(self.name);
        if golden.exists() {
            return Ok(());
        }
        // A journal that failed half way must not look like a golden one, so it gets its name last.
        let unfinished = directory().join(format!(".new-{}", self.name));
        let new = Golden { name: self.name.to_owned(), directory: unfinished };
        let made = self.make(&new);
        let made = made.and_then(|()| error_text(fs::rename(&new.directory, &golden.directory)));
        // After a successful rename there is nothing to remove.
        fs::remove_dir_all(&new.directory).ok();
        made
    }

    fn make(&self, golden: &Golden) -> Result<(), String> {
        error_text(fs::create_dir_all(&golden.directory))?;
        let journal = Journal::create(Arc::new(RealDisk), &golden.journal(), &self.header);
        let mut journal = journal.map_err(|error| error.to_string())?;
        let mut named = BTreeSet::new();
        for body in &self.bodies {
            journal.append(body).map_err(|error| error.to_string())?;
            let json: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            blobs_of(&json, &mut named);
        }
        if !named.is_empty() {
            error_text(fs::create_dir(golden.directory.join("blobs")))?;
        }
        for hash in named {
            let stored = golden.blobs().put(&(self.blob)(&hash)?);
            // A blob under a wrong name would be committed, and every later release would have to
            // read it.
            if stored.map_err(|error| error.to_string())? != hash {
                return Err(format!("{}: the blob {hash} is another one", self.name));
            }
        }
        // From the written file, so that the expected run is what a reader of the journal gets.
        let run = serde_json::to_string_pretty(&golden.applied()?);
        let run = run.map_err(|error| error.to_string())? + "\n";
        error_text(fs::write(golden.directory.join("run.json"), run))
    }
}

fn error_text<T>(done: io::Result<T>) -> Result<T, String> {
    done.map_err(|error| error.to_string())
}

/// Collects the hashes of the blobs that a record names.
pub fn blobs_of(record: &Json, named: &mut BTreeSet<String>) {
    match record {
        Json::Array(items) => items.iter().for_each(|item| blobs_of(item, named)),
        Json::Object(fields) => {
            let hash = fields.get("blob").and_then(Json::as_str);
            named.extend(hash.map(str::to_owned));
            fields.values().for_each(|field| blobs_of(field, named));
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
