//! Processes of a run that outlived whatever started them, found by their marker.

use std::collections::BTreeSet;

use raymond_core::ids::Nonce;

use super::table::{self, Identity};
use super::tree::Tree;
use super::{Grace, Marker};

/// A process that carries a marker of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Which process.
    pub identity: Identity,
    /// The turn that started it: the innermost marker of this run.
    pub marker: Marker,
    /// Its command line.
    pub command: String,
}

/// The processes of this user that carry a marker of the run. This process is never among them.
pub fn find(nonce: &Nonce) -> Vec<Leftover> {
    let leftover = |identity: Identity| {
        let mut markers = table::markers(identity).into_iter();
        let marker = markers.rfind(|marker| marker.nonce() == nonce.as_str())?;
        Some(Leftover { identity, marker, command: table::command(identity) })
    };
    let table = table::snapshot(None);
    table.into_iter().filter_map(|entry| leftover(entry.identity)).collect()
}

/// Ends these, their descendants and all that carries their markers, and sees them dead. Returns
/// those that are not.
pub async fn end(found: &[Leftover], grace: &Grace) -> Vec<Identity> {
    if found.is_empty() {
        return Vec::new();
    }
    let known: BTreeSet<_> = found.iter().map(|leftover| leftover.identity).collect();
    let markers: BTreeSet<_> = found.iter().map(|left| left.marker.clone()).collect();
    Tree::of_found(known, markers).end(grace).await
}
