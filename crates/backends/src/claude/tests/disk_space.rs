//! Disks that cannot store the output of a client.

use super::*;

fn environment(why: &str, cost: Cost) -> Answer {
    let failure = TurnFailure::Environment { why: why.into() };
    Answer::Failed { failure, cost, denied: Vec::new(), session: None }
}

/// Returns the answer of a client that dies of a full disk after these lines.
async fn dies_after(lines: &[String]) -> Answer {
    let enospc = "Error: ENOSPC: no space left on device, write";
    let words = if lines.is_empty() { String::new() } else { say(lines) };
    answered(&format!("{words}\necho '{enospc}' >&2; exit 1"), PATIENT).await
}

#[tokio::test]
async fn client_killed_by_full_disk_is_not_free() {
    let why = "the client died without a result, with exit status 1: \
               Error: ENOSPC: no space left on device, write";
    // No output was written, so nothing proves that the model was not asked.
    assert_eq!(dies_after(&[]).await, environment(why, Cost::Unknown));
    assert_eq!(dies_after(&[init()]).await, environment(why, Cost::Unknown));
    let Answer::Failed { failure, cost, .. } = dies_after(&[init(), text("m", "half")]).await
    else {
        panic!("it has no answer");
    };
    assert_eq!(failure, TurnFailure::Environment { why: why.into() });
    assert!(matches!(cost, Cost::AtLeast(Micros(1..)) | Cost::Unknown), "{cost:?}");
    // A result that was read counts.
    assert_eq!(dies_after(&[init(), success("x")]).await, replied("x", 2800));
}

#[tokio::test]
async fn no_client_starts_without_writable_files() {
    let harness = Harness::new("touch ../started; exit 1", PATIENT);
    let request = harness.request("hello");
    let transcript = harness.path("hello.jsonl");
    fs::create_dir(&transcript).unwrap();
    let why = format!("could not write {}: Is a directory (os error 21)", transcript.display());
    assert_eq!(harness.ask(request).await, unpaid(TurnFailure::Environment { why }));
    assert!(!harness.path("../started").exists());
}
