//! Runs that are asked to end while no process drives them.

use raymond_core::run::Ending;

use super::*;
use crate::bench::{Bench, Client, Found, answered_by};

const STATE: &[(&str, &str)] = &[("START.md", "go")];

async fn asked(bench: &Bench, mode: StopMode) -> Answered {
    let client = Client::new(Found::Finished, "no tag, so the turn goes on");
    let known = |_: &Settings| answered_by(&client);
    stop(&bench.project, &Bench::run(), mode, &known).await.unwrap()
}

#[tokio::test]
async fn lock_is_held_until_the_stop_is_recorded() {
    let (bench, witness) = Bench::witnessed();
    drop(bench.begun(STATE));
    witness.renamed();
    let ended = asked(&bench, StopMode::Now).await;
    assert_eq!(ended, Answered::Ended(Phase::Ended(Ending::Stopped)));
    let renamed = witness.renamed();
    let state = bench.project.paths(&Bench::run()).state;
    let name = state.file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(renamed.iter().any(|(path, _)| path.to_string_lossy().contains(&name)), "{renamed:?}");
    assert!(renamed.iter().all(|(_, is_held)| *is_held), "{renamed:?}");
}

#[tokio::test]
async fn repeated_request_finds_the_run_ended() {
    let bench = Bench::in_memory();
    drop(bench.begun(STATE));
    let check = async |mode, expected| assert_eq!(asked(&bench, mode).await, expected, "{mode:?}");
    let ended = |ending| Answered::Ended(Phase::Ended(ending));
    check(StopMode::Now, ended(Ending::Stopped)).await;
    let records = look(&bench.project, &Bench::run()).unwrap().head.seq;
    check(StopMode::Now, Answered::Refused(Refusal::Ended(Ending::Stopped))).await;
    assert_eq!(look(&bench.project, &Bench::run()).unwrap().head.seq, records);
    check(StopMode::Cancel, ended(Ending::Cancelled)).await;
    check(StopMode::Cancel, Answered::Refused(Refusal::Ended(Ending::Cancelled))).await;
}
