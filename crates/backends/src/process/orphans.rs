//! Processes below the owner of a run that belong to no turn in flight.
//!
//! The owner is a subreaper: every descendant that loses its parent becomes a child of the owner,
//! even a daemon that left its group and cleared its environment. At the end of a run, everything
//! below the owner is therefore a leftover. During the run, a process without a turn in flight has
//! escaped.

use std::collections::BTreeSet;
use std::io;

use raymond_core::ids::Nonce;

use super::child::has_children;
use super::leftovers::{self, Leftover};
use super::table::{self, Entry, Identity};
use super::tree::{Tree, with_descendants};
use super::{Grace, Marker, reap_orphans};

/// Makes this process the new parent of descendants that lose their parent. They can then be ended
/// with [`end_orphans`] and must be reaped with [`reap_orphans`]. Does nothing on systems without
/// subreapers.
pub fn become_subreaper() -> io::Result<()> {
    table::become_subreaper()
}

/// Ends everything that a finished run left: all descendants of this process, and all processes
/// with a marker of the run. Returns the found processes and those that could not be ended.
pub async fn end_orphans(nonce: &Nonce, grace: &Grace) -> (Vec<Leftover>, Vec<Identity>) {
    let found = belonging(&table::snapshot(None), own_pid(), nonce);
    // A child may be missing in the snapshot because it was forked just then, so the kernel is
    // asked, too.
    if found.is_empty() && !has_children() {
        return (found, Vec::new());
    }
    let survivors = leftovers::tree(&found).with_descendants_of(own_pid(), nonce).end(grace).await;
    reap_orphans();
    (found, survivors)
}

/// Ends all descendants of this process and nothing else. The run has another owner now, whose
/// processes carry the same markers. Returns the processes that could not be ended.
pub async fn end_own(nonce: &Nonce, grace: &Grace) -> Vec<Identity> {
    let nobody = Tree::for_leftovers(BTreeSet::new(), BTreeSet::new());
    let survivors = nobody.with_descendants_of(own_pid(), nonce).end(grace).await;
    reap_orphans();
    survivors
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// Returns processes of a living owner that belong to no turn in flight. They carry the marker of a
/// finished turn, or they are descendants of the owner without a marker.
pub fn find_escaped(owner: i32, nonce: &Nonce, in_flight: &BTreeSet<Marker>) -> Vec<Leftover> {
    let table = table::snapshot(None);
    let mut found = belonging(&table, owner, nonce);
    let is_in_flight =
        |left: &&Leftover| left.marker.as_ref().is_some_and(|m| in_flight.contains(m));
    let leading: BTreeSet<_> =
        found.iter().filter(is_in_flight).map(|left| left.identity).collect();
    let runs = BTreeSet::from([nonce.clone()]);
    let accounted_for = with_descendants(&table, &runs, |entry| leading.contains(&entry.identity));
    let accounted_for: BTreeSet<_> = accounted_for.iter().map(|entry| entry.identity).collect();
    let owner_command = table::living(owner).map(|entry| table::command(entry.identity));
    // A child that is just being started is first a copy of the owner, and then briefly has no
    // command line.
    let is_starting = |left: &Leftover| {
        left.marker.is_none()
            && (left.command.is_empty() || Some(&left.command) == owner_command.as_ref())
    };
    found.retain(|left| !accounted_for.contains(&left.identity) && !is_starting(left));
    found
}

/// Returns the descendants of the owner and all processes with a marker of the run.
fn belonging(table: &[Entry], owner: i32, nonce: &Nonce) -> Vec<Leftover> {
    let belongs = |entry: &Entry| {
        entry.parent == owner || table::marks(entry.identity).innermost_of(nonce).is_some()
    };
    let mut found = with_descendants(table, &BTreeSet::from([nonce.clone()]), belongs);
    // The owner itself is never a leftover.
    found.retain(|entry| entry.identity.pid != owner);
    found.into_iter().map(|entry| Leftover::of(entry.identity, nonce)).collect()
}

#[cfg(test)]
mod tests;
