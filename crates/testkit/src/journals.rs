//! Golden journals: one for every feature, made once, never changed, applied by every build.
//!
//! Each lies in a directory of its own below `tests/journals/format-1`: the journal, the blobs that
//! it names, and `run.json`, the run that it applies to. What exists is never written again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use raymond_core::run::Run;
use raymond_engine::driver::Head;
use raymond_engine::fold;
use raymond_store::disk::Files;
use raymond_store::{Blobs, Journal};
use serde_json::Value as Json;

/// A golden journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Golden {
    /// What it is about.
    pub name: String,
    directory: PathBuf,
}

/// What becomes a golden journal.
pub struct NewGolden<'d> {
    /// What it is about.
    pub name: &'d str,
    /// Its first line, without a sum.
    pub header: Vec<u8>,
    /// The others.
    pub bodies: Vec<Vec<u8>>,
    /// The blobs that they name, by their hash.
    pub blob: &'d dyn Fn(&str) -> Result<Vec<u8>, String>,
}

/// Where they lie.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/journals/format-1")
}

/// All of them, by name.
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
    /// The one of that name, whether it exists or not.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), directory: directory().join(name) }
    }

    /// Whether it has been made.
    pub fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// Its lines.
    pub fn journal(&self) -> PathBuf {
        self.directory.join("journal.jsonl")
    }

    /// What its lines name.
    pub fn blobs(&self) -> Blobs {
        Blobs::new(Arc::new(Files), self.directory.join("blobs"))
    }

    /// What it applies to.
    pub fn expected(&self) -> Result<Json, String> {
        let text = fs::read(self.directory.join("run.json")).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// What it applies to today.
    pub fn applied(&self) -> Result<Run, String> {
        let read = Journal::read(&Files, &self.journal()).map_err(|error| error.to_string())?;
        let mut head = Head::empty();
        for line in read.lines.iter() {
            let record = fold::record(line.body, line.seq).map_err(|error| error.to_string())?;
            head.fold(&record);
        }
        Ok(head.run)
    }
}

impl NewGolden<'_> {
    /// Makes it, unless it exists already.
    pub fn write(&self) -> Result<(), String> {
        let golden = Golden::named(self.name);
        if golden.exists() {
            return Ok(());
        }
        let unfinished = directory().join(format!(".new-{}", self.name));
        let new = Golden { name: self.name.to_owned(), directory: unfinished };
        let made = self.make(&new);
        let made = made.and_then(|()| with_text(fs::rename(&new.directory, &golden.directory)));
        fs::remove_dir_all(&new.directory).ok();
        made
    }

    fn make(&self, golden: &Golden) -> Result<(), String> {
        with_text(fs::create_dir_all(&golden.directory))?;
        let journal = Journal::create(Arc::new(Files), &golden.journal(), &self.header);
        let mut journal = journal.map_err(|error| error.to_string())?;
        let mut named = BTreeSet::new();
        for body in &self.bodies {
            journal.append(body).map_err(|error| error.to_string())?;
            let json: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            blobs_of(&json, &mut named);
        }
        if !named.is_empty() {
            with_text(fs::create_dir(golden.directory.join("blobs")))?;
        }
        for hash in named {
            let stored = golden.blobs().put(&(self.blob)(&hash)?);
            if stored.map_err(|error| error.to_string())? != hash {
                return Err(format!("{}: the blob {hash} is another one", self.name));
            }
        }
        let run = serde_json::to_string_pretty(&golden.applied()?);
        let run = run.map_err(|error| error.to_string())? + "\n";
        with_text(fs::write(golden.directory.join("run.json"), run))
    }
}

fn with_text<T>(done: io::Result<T>) -> Result<T, String> {
    done.map_err(|error| error.to_string())
}

/// The blobs that a record names.
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
