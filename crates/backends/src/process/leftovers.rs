//! Processes of a run that outlived whatever started them, found by their marker.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use raymond_core::ids::Nonce;

use super::table::{self, Entry, Identity};
use super::tree::Tree;
use super::{Grace, Marker};

/// A process of a run that is not where it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Which process.
    pub identity: Identity,
    /// The turn that started it: the innermost marker of this run. One that shed its environment is
    /// only known by whose descendant it is.
    pub marker: Option<Marker>,
    /// Its command line.
    pub command: String,
}

impl Leftover {
    pub(super) fn of(identity: Identity, nonce: &Nonce) -> Self {
        let marker = table::marks(identity).innermost_of(nonce);
        Self { identity, marker, command: table::command(identity) }
    }
}

/// The processes of this user that carry a marker of the run. This process is never among them.
pub fn find(nonce: &Nonce) -> Vec<Leftover> {
    let find_marked = |Entry { identity, .. }: Entry| {
        let marker = table::marks(identity).innermost_of(nonce)?;
        Some(Leftover { identity, marker: Some(marker), command: table::command(identity) })
    };
    table::snapshot(None).into_iter().filter_map(find_marked).collect()
}

/// A process that some run started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedProcess {
    /// The runs, by the nonces that they started with: more than one when they are nested.
    pub runs: BTreeSet<Nonce>,
    /// Its command line.
    pub command: String,
}

impl MarkedProcess {
    /// Whether the run with this nonce started it, before or after it was cut back.
    pub fn is_of(&self, run: &Nonce) -> bool {
        self.runs.contains(&run.first())
    }
}

/// The processes of this user that carry a marker of any run: one look for many runs.
pub fn find_marked() -> Vec<MarkedProcess> {
    let find_marked = table::snapshot(None).into_iter().map(|entry| {
        let marks = table::marks(entry.identity);
        let runs = marks.list().map(|marker| marker.run()).collect();
        MarkedProcess { runs, command: table::command(entry.identity) }
    });
    find_marked.filter(|find_marked: &MarkedProcess| !find_marked.runs.is_empty()).collect()
}

/// The files whose path ends so and that other processes hold open, as far as that can be seen.
pub fn find_open_files(end: &Path) -> BTreeSet<PathBuf> {
    let open = table::snapshot(None).into_iter();
    let open = open.flat_map(|entry| table::holds_open(entry.identity));
    open.filter(|path| path.ends_with(end)).collect()
}

/// Ends these, their descendants and all that carries their markers, and sees them dead. Returns
/// those that are not.
pub async fn end(found: &[Leftover], grace: &Grace) -> Vec<Identity> {
    if found.is_empty() {
        return Vec::new();
    }
    tree(found).end(grace).await
}

pub(super) fn tree(found: &[Leftover]) -> Tree {
    let known: BTreeSet<_> = found.iter().map(|leftover| leftover.identity).collect();
    let markers: BTreeSet<_> = found.iter().filter_map(|left| left.marker.clone()).collect();
    Tree::of_leftovers(known, markers)
}
