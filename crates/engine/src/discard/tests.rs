//! Runs that are deleted under their lock.

use super::*;
use crate::test_runs::TestRun;

#[test]
fn lock_is_held_until_run_is_deleted() {
    let (setup, witness) = TestRun::witnessed();
    let owned = setup.begun(&[("START.md", "go")]);
    let (seq, paths) = (owned.head.seq, owned.paths.clone());
    let driven = discard(&setup.project, &TestRun::run(), seq);
    assert!(matches!(driven, Err(DiscardError::Lock(_))), "{driven:?}");
    drop(owned);
    let other = discard(&setup.project, &TestRun::run(), seq + 1);
    assert!(matches!(other, Err(DiscardError::Changed(_))), "{other:?}");
    witness.renamed();
    discard(&setup.project, &TestRun::run(), seq).unwrap();
    assert!(!paths.directory.exists());
    let renamed = witness.renamed();
    assert!(renamed.iter().any(|(path, _)| *path == paths.directory), "{renamed:?}");
    assert!(renamed.iter().all(|(_, is_held)| *is_held), "{renamed:?}");
}
