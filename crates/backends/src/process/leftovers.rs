//! Leftover processes: processes of a run that outlived their parent, found by their marker.
//!
//! `orphans` finds processes that removed the marker, by their ancestors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use raymond_core::ids::Nonce;

use super::table::{self, Entry, Identity};
use super::tree::Tree;
use super::{Grace, Marker};

/// A leftover process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub identity: Identity,
    /// The innermost marker of this run, which names the turn that started the process. `None` if
    /// the process cleared its environment and is known only by its ancestors.
    pub marker: Option<Marker>,
    pub command: String,
}

impl Leftover {
    pub(super) fn of(identity: Identity, nonce: &Nonce) -> Self {
        let marker = table::marks(identity).innermost_of(nonce);
        Self { identity, marker, command: table::command(identity) }
    }
}

/// Returns the processes of this user that carry a marker of the run, without this process.
pub fn find(nonce: &Nonce) -> Vec<Leftover> {
    let leftover = |Entry { identity, .. }: Entry| {
        let marker = table::marks(identity).innermost_of(nonce)?;
        Some(Leftover { identity, marker: Some(marker), command: table::command(identity) })
    };
    table::snapshot(None).into_iter().filter_map(leftover).collect()
}

/// A process that a run started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedProcess {
    /// The first nonces of the runs. Nested runs give more than one.
    pub runs: BTreeSet<Nonce>,
    pub command: String,
}

impl MarkedProcess {
    /// Whether the run with this nonce started the process. A rewound run has a new nonce but the
    /// same first nonce.
    pub fn is_of(&self, run: &Nonce) -> bool {
        self.runs.contains(&run.first())
    }
}

/// Returns the processes of this user that carry a marker of any run. One scan serves many runs.
pub fn find_marked() -> Vec<MarkedProcess> {
    let marked = table::snapshot(None).into_iter().map(|entry| {
        let marks = table::marks(entry.identity);
        // All markers count: a nested process belongs to the outer run, too.
        let runs = marks.list().map(|marker| marker.run()).collect();
        MarkedProcess { runs, command: table::command(entry.identity) }
    });
    marked.filter(|process: &MarkedProcess| !process.runs.is_empty()).collect()
}

/// Returns the open files of other processes whose path ends with `end`, as far as they are
/// visible.
pub fn find_open_files(end: &Path) -> BTreeSet<PathBuf> {
    let open = table::snapshot(None).into_iter();
    let open = open.flat_map(|entry| table::holds_open(entry.identity));
    open.filter(|path| path.ends_with(end)).collect()
}

/// Ends these processes, their descendants and everything with their markers. Returns the processes
/// that did not end.
pub async fn end(found: &[Leftover], grace: &Grace) -> Vec<Identity> {
    if found.is_empty() {
        return Vec::new();
    }
    tree(found).end(grace).await
}

pub(super) fn tree(found: &[Leftover]) -> Tree {
    let known: BTreeSet<_> = found.iter().map(|leftover| leftover.identity).collect();
    // Markers also find processes that were forked after the search.
    let markers: BTreeSet<_> = found.iter().filter_map(|left| left.marker.clone()).collect();
    Tree::for_leftovers(known, markers)
}
