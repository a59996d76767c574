//! Becoming the owner of a run: what is found, what is kept for a full disk, who holds the lock.

use std::fs;
use std::path::Path;
use std::time::Duration;

use raymond_backends::process::{
    Inherit, Marker, OutputFiles, ProcessStdin as Stdin, Spec, start_client,
};
use raymond_core::run::Input;
use raymond_core::run::effect::in_flight;
use raymond_core::run::outcome::Outcome;
use raymond_store::ballast::SIZE;
use raymond_store::disk::Metadata;

use super::*;
use crate::test_runs::{AttachedClient as Attached, Client, TestRun, answered_by};

const STATE: &[(&str, &str)] = &[("START.md", "go")];

fn has_ballast(setup: &TestRun) -> bool {
    let path = Path::new("/.raymond/ballast");
    matches!(setup.project.disk.metadata(path), Ok(Metadata::File(SIZE)))
}

#[tokio::test]
async fn every_new_owner_fills_the_ballast() {
    let setup = TestRun::in_memory();
    let owned = setup.begun(STATE);
    assert!(has_ballast(&setup), "whoever starts a run sets it aside");
    setup.project.root.ballast(Arc::clone(&setup.project.disk)).free().unwrap();
    drop(owned);
    let owned = setup.opened().await;
    assert!(has_ballast(&setup), "whoever opens a run sets it aside again");
    // On a full disk the ballast makes room for the next record.
    setup.memory.set_capacity(Some(setup.memory.used()));
    let stop = Input::Stop {
        mode: raymond_core::run::stop::StopMode::Now,
        by: raymond_core::run::stop::StopOrigin::Command,
        key: "k".to_owned(),
    };
    let owned = crate::test_runs::recorded(owned, vec![stop]);
    assert!(!has_ballast(&setup));
    assert!(owned.head.run.keys.contains("k"));
}

#[tokio::test]
async fn found_answer_uses_the_directory_of_its_agent() {
    let setup = TestRun::in_memory();
    let inner = setup.cwd.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut owned = setup.begun(STATE);
    let said = "<reset cd='inner'>START</reset> <reset cd='tmp'>START</reset>";
    let backends = answered_by(&Client::new(Attached::Finished, said));
    let inputs = owned.report_inputs(&backends, OnUnreadable::Refuse).await.unwrap();
    let [Input::Settled { outcome: Outcome::Finished(finished), .. }] = &inputs[..] else {
        panic!("its turn is over: {inputs:?}");
    };
    let inner = inner.to_str().unwrap().to_owned();
    assert!(Path::new("/tmp").is_dir(), "`tmp` is a directory in /, but none of the agent");
    assert_eq!(finished.reply.directories, [("inner".to_owned(), inner)].into());
}

#[tokio::test]
async fn running_client_is_adopted_and_not_reported() {
    let setup = TestRun::in_memory();
    let mut owned = setup.begun(STATE);
    let backends = answered_by(&Client::new(Attached::Running, ""));
    let inputs = owned.report_inputs(&backends, OnUnreadable::Refuse).await.unwrap();
    assert_eq!(inputs, []);
}

#[tokio::test]
async fn found_answer_of_a_worker_uses_its_directory() {
    let setup = TestRun::in_memory();
    let place = |name: &str| setup.cwd.path().join(name);
    fs::create_dir_all(place("inner/deep")).unwrap();
    fs::create_dir_all(place("deep")).unwrap();
    let owned = setup.begun(&[("START.md", "go"), ("WORK.md", "work")]);
    let said = "<fork next='START' cd='inner'>WORK</fork>";
    let client = answered_by(&Client::new(Attached::Finished, said));
    let mut owned = owned;
    let inputs = owned.report_inputs(&client, OnUnreadable::Refuse).await.unwrap();
    let mut owned = crate::test_runs::recorded(owned, inputs);
    let said = answered_by(&Client::new(Attached::Finished, "<reset cd='deep'>WORK</reset>"));
    let found: Vec<_> = owned.report_inputs(&said, OnUnreadable::Refuse).await.unwrap();
    let directories = found.iter().map(|input| match input {
        Input::Settled { turn, outcome: Outcome::Finished(finished), .. } => {
            (turn.agent.to_string(), PathBuf::from(&finished.reply.directories["deep"]))
        }
        other => panic!("its turn is over: {other:?}"),
    });
    let expected =
        [("main".to_owned(), place("deep")), ("main_work1".to_owned(), place("inner/deep"))];
    assert_eq!(directories.collect::<std::collections::BTreeMap<_, _>>(), expected.into());
}

#[tokio::test]
async fn new_owner_removes_requests_to_the_last_owner() {
    let setup = TestRun::in_memory();
    let owned = setup.begun(STATE);
    let inbox = Inbox::new(Arc::clone(&setup.project.disk), owned.paths.inbox.clone());
    inbox.post("old", b"{}").unwrap();
    drop(owned);
    drop(setup.opened().await);
    assert_eq!(inbox.take_all().unwrap().messages, []);
}

/// Starts a process of the first turn that says when it is asked to end, and ends when it may.
fn start_stubborn(setup: &TestRun, owned: &OwnedRun) {
    let turn = in_flight(&owned.head.run).next().unwrap();
    // It has no child, and a signal meets it in a read that ends by itself.
    let waits = "trap ': > asked' INT TERM; mkfifo mute; exec 3<> mute; : > ready; \
                 until test -e may_end; do read -t 0.05 -u 3; done";
    let spec = Spec {
        program: "bash".into(),
        arguments: vec!["-c".into(), waits.into()],
        cwd: setup.cwd.path().to_owned(),
        inherit: Inherit::All,
        set: Vec::new(),
        unset: Vec::new(),
        marker: Marker::of(&setup.nonce(), turn),
        stdin: Stdin::Null,
    };
    let file = |name| setup.cwd.path().join(name);
    let files = OutputFiles { stdout: file("out"), stderr: file("err") };
    start_client(spec, &files).unwrap().keep_running();
}

async fn appears(setup: &TestRun, name: &str) {
    let exists = async {
        while !setup.cwd.path().join(name).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(10), exists).await.expect(name);
}

#[tokio::test]
async fn lock_is_held_until_leftovers_have_ended() {
    let setup = TestRun::in_files();
    let owned = setup.begun(STATE);
    start_stubborn(&setup, &owned);
    appears(&setup, "ready").await;
    drop(owned);
    let take = || take_lock(&setup.project, &setup.project.paths(&TestRun::run()), Takeover::Never);
    let run = TestRun::run();
    let ends = end_leftover_processes(&setup.project, &run);
    let looks = async {
        appears(&setup, "asked").await;
        let held = take();
        assert!(matches!(held, Err(lock::Error::Held { .. })), "{held:?}");
        fs::write(setup.cwd.path().join("may_end"), "").unwrap();
    };
    let (ended, ()) = tokio::join!(ends, looks);
    let (left, survivors) = ended.unwrap();
    assert_eq!((left.len(), survivors), (1, Vec::new()));
    drop(take().unwrap());
}
