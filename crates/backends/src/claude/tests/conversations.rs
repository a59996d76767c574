//! Clients that write after a silence, or stay silent while others wait to start.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test]
async fn every_output_ends_a_silence() {
    let wait = |name: &str| format!("until test -e {name}; do sleep 0.01; done");
    let script = [
        say(&[init()]),
        wait("first"),
        say(&[text("m", "one ")]),
        wait("second"),
        say(&[text("m", "two"), success("two")]),
    ];
    let harness = Harness::new(&script.join("; "), ClientTimeouts { silent: SHORT, ..PATIENT });
    let (directory, silences) = (harness.directory.path().to_owned(), AtomicUsize::new(0));
    // Each silence releases one more line of the client, which needs two of them.
    let listener = move |sign: ClientProgress| {
        if let ClientProgress::Silent(_) = sign {
            let earlier = silences.fetch_add(1, Ordering::SeqCst);
            fs::write(directory.join(if earlier == 0 { "first" } else { "second" }), "").unwrap();
        }
    };
    let observer = TurnObserver { cancel: CancellationToken::new(), listener: Arc::new(listener) };
    let answer = harness.claude.answer(harness.request("hello"), observer).await;
    assert_eq!(answer, replied("one two", 2800));
}

#[tokio::test]
async fn client_that_blocks_the_gate_is_not_ended() {
    let script = format!(
        "case $prompt in
            first) until test -e second; do sleep 0.01; done;;
            *) touch second;;
        esac
        {}",
        say(&[init(), text("m", "done"), success("done")])
    );
    let harness = Harness::new(&script, ClientTimeouts { start: SHORT, ..PATIENT });
    let ask = |prompt: &str| {
        let observer = TurnObserver::silent(CancellationToken::new());
        harness.claude.answer(harness.request(prompt), observer)
    };
    let (first, second) = tokio::join!(ask("first"), ask("second"));
    assert_eq!([first, second], [replied("done", 2800), replied("done", 2800)]);
}
