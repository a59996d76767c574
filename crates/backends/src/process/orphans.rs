//! Processes below the owner of a run that no turn in flight accounts for.
//!
//! As their subreaper, the owner becomes the parent of whatever loses its own, even of a daemon that
//! left its group and shed its environment. So at the end of a run all that is below the owner is
//! left over; during the run, what no turn in flight accounts for has escaped.

use std::collections::BTreeSet;
use std::io;

use raymond_core::ids::Nonce;

use super::child::has_children;
use super::leftovers::{self, Leftover};
use super::table::{self, Entry, Identity};
use super::tree::{Tree, with_descendants};
use super::{Grace, Marker, reap_orphans};

/// From now on, what loses its parent below this process becomes a child of it: it can be ended with
/// [`end_orphans`], and must be reaped with [`reap_orphans`]. Does nothing where there is no such
/// thing.
pub fn become_subreaper() -> io::Result<()> {
    table::become_subreaper()
}

/// Ends all that a run has left when it is over: everything below this process, and everything that
/// carries a marker of the run. Returns what was found, and those that could not be ended.
pub async fn end_orphans(nonce: &Nonce, grace: &Grace) -> (Vec<Leftover>, Vec<Identity>) {
    let found = belonging(&table::snapshot(None), own_pid(), nonce);
    if found.is_empty() && !has_children() {
        return (found, Vec::new());
    }
    let survivors = leftovers::tree(&found).with_descendants_of(own_pid(), nonce).end(grace).await;
    reap_orphans();
    (found, survivors)
}

/// Ends everything below this process, and nothing else: the run has another owner by now, whose
/// processes carry the same markers. Returns those that could not be ended.
pub async fn end_own(nonce: &Nonce, grace: &Grace) -> Vec<Identity> {
    let nobody = Tree::of_leftovers(BTreeSet::new(), BTreeSet::new());
    let survivors = nobody.with_descendants_of(own_pid(), nonce).end(grace).await;
    reap_orphans();
    survivors
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// The processes of a living owner that no turn in flight accounts for: they carry the marker of a
/// turn that is over, or they are below the owner and carry none.
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
    // A child that is just being started is a copy of the owner at first, and then nothing at all.
    let is_starting = |left: &Leftover| {
        left.marker.is_none()
            && (left.command.is_empty() || Some(&left.command) == owner_command.as_ref())
    };
    found.retain(|left| !accounted_for.contains(&left.identity) && !is_starting(left));
    found
}

/// The processes below the owner, and those that carry a marker of the run.
fn belonging(table: &[Entry], owner: i32, nonce: &Nonce) -> Vec<Leftover> {
    let belongs = |entry: &Entry| {
        entry.parent == owner || table::marks(entry.identity).innermost_of(nonce).is_some()
    };
    let mut found = with_descendants(table, &BTreeSet::from([nonce.clone()]), belongs);
    found.retain(|entry| entry.identity.pid != owner);
    found.into_iter().map(|entry| Leftover::of(entry.identity, nonce)).collect()
}

#[cfg(test)]
mod tests;
