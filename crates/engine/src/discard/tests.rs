//! Runs that are deleted under their lock.

use super::*;
use crate::test_runs::TestRun;

#[test]
fn lock_is_held_until_the_run_is_set_aside() {
    let (bench, witness) = TestRun::witnessed();
    let owned = bench.begun(&[("START.md", "go")]);
    let (seq, paths) = (owned.head.seq, owned.paths.clone());
    let driven = discard(&bench.project, &TestRun::run(), seq);
    assert!(matches!(driven, Err(DiscardError::Lock(_))), "{driven:?}");
    drop(owned);
    let other = discard(&bench.project, &TestRun::run(), seq + 1);
    assert!(matches!(other, Err(DiscardError::Changed(_))), "{other:?}");
    witness.renamed();
    discard(&bench.project, &TestRun::run(), seq).unwrap();
    assert!(!paths.directory.exists());
    let renamed = witness.renamed();
    assert!(renamed.iter().any(|(path, _)| *path == paths.directory), "{renamed:?}");
    assert!(renamed.iter().all(|(_, is_held)| *is_held), "{renamed:?}");
}
