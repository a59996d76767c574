//! Runs that are asked to end.

mod owners;

use raymond_core::run::Ending;

use super::*;
use crate::runner::drive;
use crate::test_runs::{AttachedClient, Client, SilentWatcher, TestRun, answered_by};

const STATE: &[(&str, &str)] = &[("START.md", "go")];

async fn asked(setup: &TestRun, mode: StopMode) -> StopOutcome {
    let client = Client::new(AttachedClient::Finished, "no tag, so the turn goes on");
    let known = |_: &Settings| answered_by(&client);
    stop(&setup.project, &TestRun::run(), mode, &known).await.unwrap()
}

#[tokio::test]
async fn lock_is_held_until_the_stop_is_recorded() {
    let (setup, witness) = TestRun::witnessed();
    drop(setup.begun(STATE));
    witness.renamed();
    let ended = asked(&setup, StopMode::Now).await;
    assert_eq!(ended, StopOutcome::Ended(Phase::Ended(Ending::Stopped)));
    let renamed = witness.renamed();
    let state = setup.project.paths(&TestRun::run()).state;
    let name = state.file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(renamed.iter().any(|(path, _)| path.to_string_lossy().contains(&name)), "{renamed:?}");
    assert!(renamed.iter().all(|(_, is_held)| *is_held), "{renamed:?}");
}

#[tokio::test]
async fn repeated_request_finds_the_run_ended() {
    let setup = TestRun::in_memory();
    drop(setup.begun(STATE));
    let check = async |mode, expected| assert_eq!(asked(&setup, mode).await, expected, "{mode:?}");
    let ended = |ending| StopOutcome::Ended(Phase::Ended(ending));
    check(StopMode::Now, ended(Ending::Stopped)).await;
    let records = inspect(&setup.project, &TestRun::run()).unwrap().head.seq;
    check(StopMode::Now, StopOutcome::Refused(Refusal::Ended(Ending::Stopped))).await;
    assert_eq!(inspect(&setup.project, &TestRun::run()).unwrap().head.seq, records);
    check(StopMode::Cancel, ended(Ending::Cancelled)).await;
    check(StopMode::Cancel, StopOutcome::Refused(Refusal::Ended(Ending::Cancelled))).await;
}

#[tokio::test]
async fn living_owner_is_asked_and_waited_for() {
    for (mode, ending) in [(StopMode::Now, Ending::Stopped), (StopMode::Cancel, Ending::Cancelled)]
    {
        let setup = TestRun::in_memory();
        let client = Client::new(AttachedClient::Running, "");
        let mut owned = setup.begun(STATE);
        let backends = answered_by(&client);
        let inputs = owned.resume_inputs(TestRun::settings(), &backends).await.unwrap();
        let mut nobody = SilentWatcher;
        let drives = drive(owned, backends, inputs, &mut nobody);
        let asks = async {
            client.works().await;
            asked(&setup, mode).await
        };
        let (driven, answered) = tokio::join!(drives, asks);
        assert_eq!(answered, StopOutcome::Ended(Phase::Ended(ending)));
        let run = driven.unwrap().head.run;
        assert_eq!((run.phase, run.keys.len()), (Phase::Ended(ending), 1), "it is asked once");
        let left = inbox(&setup.project, &TestRun::run()).take_all().unwrap();
        assert_eq!(left.messages, [], "what was asked must not meet the next owner");
    }
}

#[tokio::test]
async fn wait_ends_when_the_owner_is_gone() {
    let setup = TestRun::in_memory();
    drop(setup.begun(STATE));
    assert_eq!(wait(&setup.project, &TestRun::run(), &mut |_| {}).await.unwrap(), None);
    asked(&setup, StopMode::Now).await;
    let ended = Some(Phase::Ended(Ending::Stopped));
    assert_eq!(wait(&setup.project, &TestRun::run(), &mut |_| {}).await.unwrap(), ended);
}

#[tokio::test(start_paused = true)]
async fn wait_gives_a_lingering_owner_half_a_minute() {
    let setup = TestRun::in_memory();
    let owned = setup.begun(STATE);
    let turn = raymond_core::run::effect::in_flight(&owned.head.run).next().unwrap();
    let settled = crate::test_runs::stopped(&turn.id, turn.attempt);
    let stop =
        Input::Stop { mode: StopMode::Now, by: StopOrigin::Command, key: "asked".to_owned() };
    let _still_held = crate::test_runs::recorded(owned, vec![stop, settled]);
    let began = tokio::time::Instant::now();
    let ended = wait(&setup.project, &TestRun::run(), &mut |_| {}).await.unwrap();
    assert_eq!(ended, Some(Phase::Ended(Ending::Stopped)));
    assert_eq!(began.elapsed(), POLL_INTERVAL * MOST_EXIT_POLLS);
}

// proves: A41
#[tokio::test]
async fn request_without_room_is_known_by_its_key() {
    for (mode, ending) in [(StopMode::Now, Ending::Stopped), (StopMode::Cancel, Ending::Cancelled)]
    {
        let setup = TestRun::in_memory();
        let client = Client::new(AttachedClient::Running, "");
        let mut owned = setup.begun(STATE);
        let backends = answered_by(&client);
        let inputs = owned.resume_inputs(TestRun::settings(), &backends).await.unwrap();
        let mut nobody = SilentWatcher;
        let drives = drive(owned, backends, inputs, &mut nobody);
        let asks = async {
            client.works().await;
            setup.memory.set_capacity(Some(setup.memory.used()));
            asked(&setup, mode).await
        };
        let (driven, answered) = tokio::join!(drives, asks);
        assert_eq!(answered, StopOutcome::Ended(Phase::Ended(ending)));
        assert_eq!(driven.unwrap().head.run.keys.len(), 1, "it is asked once");
    }
}

#[tokio::test]
async fn stop_without_owner_gives_up_the_ballast() {
    let setup = TestRun::in_memory();
    drop(setup.begun(STATE));
    setup.memory.set_capacity(Some(setup.memory.used()));
    let ended = asked(&setup, StopMode::Now).await;
    assert_eq!(ended, StopOutcome::Ended(Phase::Ended(Ending::Stopped)));
}
