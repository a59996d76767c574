//! The list of workers that an agent receives after its wait for them.
//!
//! The list is derived: the journal has the results, so it is made again whenever a turn needs it.
//! A long result is a file of its own, byte for byte, so that the list stays readable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raymond_core::agent::{HandedWorker, WorkerEnd};
use raymond_core::ids::{AgentId, TurnId};
use raymond_core::run::turn_spec::VisitValues;
use raymond_core::value::Value;
use raymond_store::{Blobs, blobs};
use serde::Serialize;

use crate::observe;
use crate::turn_files::write_private;

/// The share of the list in which all results together are written: 64 KiB, as much as an
/// environment variable holds.
const ROOM: u64 = 64 * 1024;
/// A result of this many bytes is part of the list however many workers there are.
const ALWAYS_SHORT: u64 = 256;
/// The most bytes of an attribute in the list. The parent has written the attribute itself.
const LONGEST_ATTRIBUTE: u64 = 256;

/// Where the lists of a run come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handing<'a> {
    pub(crate) blobs: &'a Blobs,
    /// The directory of long results.
    pub(crate) directory: &'a Path,
}

impl Handing<'_> {
    /// Replaces the input of a visit by the list of workers, if it starts with one.
    pub(crate) fn with_list(
        self,
        turn: &TurnId,
        workers: &[HandedWorker],
        values: VisitValues,
    ) -> Result<VisitValues, blobs::Error> {
        if workers.is_empty() {
            return Ok(values);
        }
        let text = list(self.blobs, &self.folder(turn), workers)?;
        Ok(VisitValues { input: Some(Value::Inline(text)), ..values })
    }

    /// Writes the long results that the list of a visit refers to. Returns their directory, if
    /// there is one.
    pub(crate) fn write(
        self,
        turn: &TurnId,
        workers: &[HandedWorker],
    ) -> Result<Option<PathBuf>, blobs::Error> {
        let (folder, most) = (self.folder(turn), longest(workers));
        for HandedWorker { agent, end, .. } in workers {
            if let WorkerEnd::Ended(result) = end
                && result.len() > most
            {
                let text = observe::load(self.blobs, result)?;
                write_private(&folder.join(agent.as_str()), text.as_bytes())?;
            }
        }
        Ok(folder.is_dir().then_some(folder))
    }

    /// Returns the directory of the long results that a visit received.
    fn folder(self, turn: &TurnId) -> PathBuf {
        self.directory.join(format!("{}.{}", turn.agent, turn.visit))
    }
}

/// Returns the most bytes of a result that is part of the list.
fn longest(workers: &[HandedWorker]) -> u64 {
    (ROOM / (workers.len() as u64).max(1)).max(ALWAYS_SHORT)
}

/// A worker, in the order in which the list names its parts.
#[derive(Serialize)]
struct Entry<'w> {
    agent: &'w AgentId,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// The file with a long result.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    /// The length of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    attributes: BTreeMap<&'w str, &'w str>,
}

/// Returns a JSON array with one worker per line.
fn list(blobs: &Blobs, folder: &Path, workers: &[HandedWorker]) -> Result<String, blobs::Error> {
    let most = longest(workers);
    let lines = workers.iter().map(|worker| {
        let entry = entry(blobs, folder, worker, most)?;
        Ok(serde_json::to_string(&entry).expect("an entry is plain data"))
    });
    let lines = lines.collect::<Result<Vec<_>, blobs::Error>>()?;
    Ok(format!("[\n{}\n]", lines.join(",\n")))
}

fn entry<'w>(
    blobs: &Blobs,
    folder: &Path,
    worker: &'w HandedWorker,
    most: u64,
) -> Result<Entry<'w>, blobs::Error> {
    let HandedWorker { agent, end, attributes } = worker;
    let short = attributes.iter().filter_map(|(name, value)| match value {
        Value::Inline(text) if value.len() <= LONGEST_ATTRIBUTE => Some((&**name, &**text)),
        Value::Inline(_) | Value::Blob(_) => None,
    });
    let attributes = short.collect();
    let cancelled = Entry {
        agent,
        status: "cancelled",
        result: None,
        file: None,
        bytes: None,
        failure: None,
        attributes,
    };
    Ok(match end {
        WorkerEnd::Cancelled => cancelled,
        WorkerEnd::Ended(result) if result.len() <= most => {
            let result = Some(observe::load(blobs, result)?);
            Entry { status: "ended", result, ..cancelled }
        }
        WorkerEnd::Ended(result) => {
            let file = Some(folder.join(agent.as_str()));
            Entry { status: "ended", file, bytes: Some(result.len()), ..cancelled }
        }
        WorkerEnd::Failed(failure) => {
            let words = failure.to_string();
            let failure = Some(words.lines().collect::<Vec<_>>().join(" "));
            Entry { status: "failed", failure, ..cancelled }
        }
    })
}
