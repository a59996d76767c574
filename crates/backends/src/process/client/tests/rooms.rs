//! Clients whose files cannot be written any further, or cannot be read.

use super::*;

/// The bytes that the disk holds for a file.
fn on_disk(bench: &Bench, name: &str) -> u64 {
    fs::metadata(bench.path(name)).unwrap().blocks() * 512
}

#[tokio::test]
async fn room_is_reserved_before_the_start_and_released_at_the_end() {
    let bench = Bench::new();
    let mut client = bench.client("read < go; echo one");
    assert_eq!(fs::metadata(bench.path("turn.jsonl")).unwrap().len(), 0);
    if on_disk(&bench, "turn.jsonl") == 0 {
        println!("not run: this file system cannot reserve space");
        return;
    }
    assert!(on_disk(&bench, "turn.jsonl") >= 4 * 1024 * 1024);
    assert!(on_disk(&bench, "turn.err") >= 64 * 1024);
    bench.go().await.unwrap();
    assert_eq!(hear(&mut client).await, [line("one"), exited(0)]);
    client.release_room();
    assert!(on_disk(&bench, "turn.jsonl") < 64 * 1024);
    assert_eq!(on_disk(&bench, "turn.err"), 0);
    assert_eq!(fs::read_to_string(bench.path("turn.jsonl")).unwrap(), "one\n");
}

#[tokio::test]
async fn space_stays_reserved_ahead_of_a_client_that_writes() {
    let bench = Bench::new();
    let ready = bench.fifo();
    let mut client = bench.client("head -c 3000000 /dev/zero; echo; echo > fifo; read < go");
    if on_disk(&bench, "turn.jsonl") == 0 {
        println!("not run: this file system cannot reserve space");
        return;
    }
    ready.await.unwrap();
    assert!(matches!(client.next(Some(Instant::now())).await, Heard::Line(_)));
    assert_eq!(client.next(Some(Instant::now())).await, Heard::Deadline);
    assert!(on_disk(&bench, "turn.jsonl") >= 3_000_000 + 4 * 1024 * 1024);
    client.end(&IMPATIENT).await;
    // An owner that is killed leaves the space to the next one.
    release_room(&bench.files()).unwrap();
    assert!(on_disk(&bench, "turn.jsonl") < 3_500_000);
}

#[tokio::test]
async fn a_shortage_is_told_once_and_the_last_words_are_heard() {
    let bench = Bench::new();
    let ready = bench.fifo();
    let trap = trapping("trap 'echo last; exit 0' INT");
    let mut client = bench.client(&format!("head -c 3000000 /dev/zero; echo; {trap}"));
    ready.await.unwrap();
    client.rooms.want_too_much();
    assert!(matches!(client.next(Some(Instant::now())).await, Heard::Line(_)));
    let Heard::Broken { why } = client.next(Some(Instant::now())).await else {
        panic!("there is no room for more");
    };
    let path = bench.path("turn.jsonl");
    let sentence = format!(" of disk space for {}: ", path.display());
    assert!(why.starts_with("could not reserve ") && why.contains(&sentence), "{why}");
    let shortage = client.find_shortage().expect("nor would there be for another one");
    let needed = format!(" for {} and leave 1 MiB free: ", path.display());
    assert!(shortage.contains(&needed), "{shortage}");
    assert_eq!(client.end(&PATIENT).await, []);
    assert_eq!(hear(&mut client).await, [line("last"), exited(0)]);
}

#[tokio::test]
async fn an_error_is_not_silence() {
    let bench = Bench::new();
    let unreadable = |client: &mut Client| {
        client.stdout = Followed::unreadable_directory(&bench.directory);
    };
    let why = format!("could not read {}: Is a directory (os error 21)", bench.directory.display());
    let broken = Heard::Broken { why };
    let mut client = bench.client("read < go");
    unreadable(&mut client);
    assert_eq!(client.next(Some(Instant::now())).await, broken);
    assert_eq!(client.next(Some(Instant::now())).await, broken);
    client.end(&IMPATIENT).await;
    assert_eq!(
        client.next(Some(Instant::now())).await,
        broken,
        "nor is it the exit of one that said nothing"
    );

    let mut transcript = Transcript::open(&bench.path("turn.jsonl")).unwrap();
    transcript.read_on(&mut |_| {}).unwrap();
    fs::remove_file(bench.path("turn.jsonl")).unwrap();
    fs::create_dir(bench.path("turn.jsonl")).unwrap();
    assert!(adopt(&bench.marker(), &bench.files()).is_err());
}
