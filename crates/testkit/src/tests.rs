//! Short versions of the simulation and the comparison, in the time that a test may take.

use crate::compare::compare;
use crate::sim::{Coverage, simulate};

// proves: P1, P2, P5, A6, A21
#[test]
fn random_runs_keep_every_promise() {
    let mut coverage = Coverage::default();
    for seed in 1..=300 {
        match simulate(seed) {
            Ok(met) => coverage.add(&met),
            Err(violation) => panic!("simulate seed {seed}: {violation}"),
        }
    }
    // So few runs do not reach every cell, but they reach every row.
    let missing = coverage.missing();
    let unseen: Vec<&String> = missing.iter().filter(|cell| cell.ends_with("× seen")).collect();
    assert!(unseen.is_empty(), "never met: {unseen:?}");
}

#[test]
fn random_runs_do_what_the_reference_does() {
    let mut lines = 0;
    for seed in 1..=300 {
        match compare(seed) {
            Ok(compared) => lines += compared,
            Err(violation) => panic!("simulate compared {seed}: {violation}"),
        }
    }
    assert!(lines > 3_000, "only {lines} lines were compared");
}
