//! Processes below the owner of a run that no turn in flight accounts for.
//!
//! As their subreaper, the owner becomes the parent of whatever loses its own, even of a daemon that
//! left its group and shed its environment. So at the end of a run all that is below the owner is
//! left over; during the run, what no turn in flight accounts for has escaped.

use std::collections::BTreeSet;
use std::io;

use raymond_core::ids::Nonce;

use super::leftovers::{self, Leftover};
use super::table::{self, Entry, Identity};
use super::tree::with_descendants;
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
    let own = std::process::id().cast_signed();
    let found = belonging(own, nonce);
    let survivors = leftovers::tree(&found).with_all_below(own).end(grace).await;
    reap_orphans();
    (found, survivors)
}

/// The processes of a living owner that no turn in flight accounts for: they carry the marker of a
/// turn that is over, or they are below the owner and carry none.
pub fn escaped(owner: i32, nonce: &Nonce, in_flight: &BTreeSet<Marker>) -> Vec<Leftover> {
    let table = table::snapshot(None);
    let is_in_flight = |entry: &Entry| {
        let marker = table::marks(entry.identity).innermost_of(nonce);
        marker.is_some_and(|marker| in_flight.contains(&marker))
    };
    let accounted_for = with_descendants(&table, is_in_flight);
    // A child that is just being started is still a copy of the owner.
    let owner_command = table::living(owner).map(|entry| table::command(entry.identity));
    let is_copy = |leftover: &Leftover| {
        leftover.marker.is_none() && Some(&leftover.command) == owner_command.as_ref()
    };
    let mut found = belonging(owner, nonce);
    found.retain(|leftover| {
        let is_same = |entry: &Entry| entry.identity == leftover.identity;
        !accounted_for.iter().any(is_same) && !is_copy(leftover)
    });
    found
}

/// The processes below the owner, and those that carry a marker of the run.
fn belonging(owner: i32, nonce: &Nonce) -> Vec<Leftover> {
    let table = table::snapshot(None);
    let belongs = |entry: &Entry| {
        entry.parent == owner || table::marks(entry.identity).innermost_of(nonce).is_some()
    };
    let mut found = with_descendants(&table, belongs);
    found.retain(|entry| entry.identity.pid != owner);
    found.into_iter().map(|entry| Leftover::of(entry.identity, nonce)).collect()
}
