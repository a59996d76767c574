//! Runs that nobody records: their nonce names the process that drives them.
//!
//! The next owner of a recorded run ends what the last one left. A run without a record has no next
//! owner, so whoever drives another one looks for processes of those whose driver has died.

use std::collections::BTreeSet;

use raymond_core::ids::Nonce;

use super::Grace;
use super::leftovers::{self, Leftover};
use super::table::{self, Identity};

const PREFIX: &str = "unrecorded";

/// A nonce for a run that this process drives and nobody records. `random` tells it from others.
pub fn unrecorded(random: &Nonce) -> Nonce {
    let pid = std::process::id().cast_signed();
    let start_time = table::identity(pid).map_or(0, |own| own.start_time);
    Nonce::new(format!("{PREFIX}-{}-{pid}-{start_time}-{random}", table::namespace()))
}

/// Ends what runs without a record have left whose drivers are dead; returns what was found.
pub async fn end_abandoned(grace: &Grace) -> Vec<Leftover> {
    let runs: BTreeSet<Nonce> =
        leftovers::marked().into_iter().flat_map(|marked| marked.runs).collect();
    let abandoned = runs.iter().filter(|nonce| driver(nonce).is_some_and(is_dead));
    let found: Vec<Leftover> = abandoned.flat_map(leftovers::find).collect();
    leftovers::end(&found, grace).await;
    found
}

/// The process that drives a run without a record, where its number means something here.
fn driver(nonce: &Nonce) -> Option<Identity> {
    let mut parts = nonce.as_str().strip_prefix(PREFIX)?.strip_prefix('-')?.split('-');
    parts.next().filter(|namespace| *namespace == table::namespace())?;
    let (pid, start_time) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Identity { pid, start_time })
}

fn is_dead(driver: Identity) -> bool {
    table::living(driver.pid).is_none_or(|entry| entry.identity != driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_record_names_its_driver() {
        let nonce = unrecorded(&Nonce::new("c0ffee".to_owned()));
        let own = driver(&nonce).unwrap();
        assert_eq!(own.pid, std::process::id().cast_signed());
        assert!(!is_dead(own));
        assert!(is_dead(Identity { start_time: own.start_time + 1, ..own }), "another process");
        assert_eq!(driver(&Nonce::new("c0ffee".to_owned())), None);
        let contained = nonce.as_str().replacen(&table::namespace(), "1", 1);
        assert_eq!(driver(&Nonce::new(contained)), None, "a number of another container");
    }
}
