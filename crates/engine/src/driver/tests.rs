//! One record for each batch, and nothing after a record that could not be written.

use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::workflow::{EntryPoint, SourceFile};

use super::*;
use crate::clock;
use crate::pin::PLATFORM;
use crate::test_runs::TestRun;

fn driver(setup: &TestRun) -> Driver<raymond_store::Journal, RecordOnly> {
    let owned = setup.begun(&[("START.md", "go")]);
    Driver::new(owned.head, owned.definition, owned.journal, RecordOnly)
}

fn stop(key: &str) -> Input {
    Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: key.to_owned() }
}

#[test]
fn driver_is_dead_after_a_lost_record() {
    let setup = TestRun::in_memory();
    let mut driver = driver(&setup);
    assert!(!driver.is_dead());
    setup.memory.set_capacity(Some(0));
    let lost = driver.handle(clock::now(), vec![stop("k")]);
    assert!(matches!(lost, Err(DriverError::Commit(_))), "{lost:?}");
    assert!(driver.is_dead());
    setup.memory.set_capacity(None);
    let refused = driver.handle(clock::now(), vec![stop("k")]);
    assert!(matches!(refused, Err(DriverError::Dead)), "{refused:?}");
}

#[test]
fn number_grows_with_every_record() {
    let setup = TestRun::in_memory();
    let mut driver = driver(&setup);
    let before = driver.seq();
    assert_eq!(before, driver.head().seq);
    driver.handle(clock::now(), vec![Input::Due]).unwrap();
    assert_eq!(driver.seq(), before, "nothing was due, so nothing is recorded");
    driver.handle(clock::now(), vec![stop("a"), stop("b")]).unwrap();
    assert_eq!(driver.seq(), before + 1, "a batch is one record");
    assert!(!driver.has_more());
}

fn edited(files: &[(&str, &str)]) -> Definition {
    let source = |(name, text): &(&str, &str)| SourceFile {
        name: (*name).to_owned(),
        bytes: text.as_bytes().into(),
        executable: false,
    };
    let files = files.iter().map(source).collect();
    Definition::parse(files, &EntryPoint::Entry, PLATFORM).unwrap().definition
}

#[test]
fn refused_edits_leave_the_states_as_they_were() {
    let setup = TestRun::in_memory();
    let mut driver = driver(&setup);
    let (begun, seq) = (driver.definition().clone(), driver.seq());
    let manifest = || Value::Inline("edited".to_owned());
    let lacking = edited(&[("1_START.md", "go")]);
    let verdict = driver.adopt(clock::now(), lacking, manifest()).unwrap();
    assert!(matches!(verdict, Err(Refusal::StateGone { .. })), "{verdict:?}");
    assert_eq!((driver.definition(), driver.seq()), (&begun, seq));
    let better = edited(&[("START.md", "go on")]);
    driver.adopt(clock::now(), better.clone(), manifest()).unwrap().unwrap();
    assert_eq!((driver.definition(), driver.seq()), (&better, seq + 1));
    assert_eq!(driver.run().manifest, manifest());
}
