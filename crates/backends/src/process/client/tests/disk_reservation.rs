//! Clients whose files cannot be written further, or cannot be read.

use super::*;

/// Returns the bytes that the disk reserves for a file.
fn on_disk(fixture: &Fixture, name: &str) -> u64 {
    fs::metadata(fixture.path(name)).unwrap().blocks() * 512
}

#[tokio::test]
async fn space_is_reserved_at_start_and_released() {
    let fixture = Fixture::new();
    let mut client = fixture.client("read < go; echo one");
    assert_eq!(fs::metadata(fixture.path("turn.jsonl")).unwrap().len(), 0);
    if on_disk(&fixture, "turn.jsonl") == 0 {
        println!("not run: this file system cannot reserve space");
        return;
    }
    assert!(on_disk(&fixture, "turn.jsonl") >= 4 * 1024 * 1024);
    assert!(on_disk(&fixture, "turn.err") >= 64 * 1024);
    fixture.go().await.unwrap();
    assert_eq!(hear(&mut client).await, [line("one"), exited(0)]);
    client.release_reserved_space();
    assert!(on_disk(&fixture, "turn.jsonl") < 64 * 1024);
    assert_eq!(on_disk(&fixture, "turn.err"), 0);
    assert_eq!(fs::read_to_string(fixture.path("turn.jsonl")).unwrap(), "one\n");
}

#[tokio::test]
async fn space_stays_reserved_ahead_of_writing_client() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let mut client = fixture.client("head -c 3000000 /dev/zero; echo; echo > fifo; read < go");
    if on_disk(&fixture, "turn.jsonl") == 0 {
        println!("not run: this file system cannot reserve space");
        return;
    }
    ready.await.unwrap();
    assert!(matches!(client.next(Some(Instant::now())).await, StreamEvent::Line(_)));
    assert_eq!(client.next(Some(Instant::now())).await, StreamEvent::Deadline);
    assert!(on_disk(&fixture, "turn.jsonl") >= 3_000_000 + 4 * 1024 * 1024);
    client.end(&IMPATIENT).await;
    // An owner that is killed leaves the reserved space to the next owner.
    release_reserved_space(&fixture.files()).unwrap();
    assert!(on_disk(&fixture, "turn.jsonl") < 3_500_000);
}

#[tokio::test]
async fn shortage_is_reported_once_and_output_read() {
    let fixture = Fixture::new();
    let ready = fixture.fifo();
    let trap = trapping("trap 'echo last; exit 0' INT");
    let mut client = fixture.client(&format!("head -c 3000000 /dev/zero; echo; {trap}"));
    ready.await.unwrap();
    client.reservations.reserve_too_much();
    assert!(matches!(client.next(Some(Instant::now())).await, StreamEvent::Line(_)));
    let StreamEvent::Unreadable { why } = client.next(Some(Instant::now())).await else {
        panic!("there is no room for more");
    };
    let path = fixture.path("turn.jsonl");
    let sentence = format!(" of disk space for {}: ", path.display());
    assert!(why.starts_with("could not reserve ") && why.contains(&sentence), "{why}");
    let shortage = client.find_disk_shortage().expect("nor would there be for another one");
    let needed = format!(" for {} and leave 1 MiB free: ", path.display());
    assert!(shortage.contains(&needed), "{shortage}");
    assert_eq!(client.end(&PATIENT).await, []);
    assert_eq!(hear(&mut client).await, [line("last"), exited(0)]);
}

#[tokio::test]
async fn an_error_is_not_silence() {
    let fixture = Fixture::new();
    let unreadable = |client: &mut Client| {
        client.stdout = FollowedFile::unreadable_directory(&fixture.directory);
    };
    let why =
        format!("could not read {}: Is a directory (os error 21)", fixture.directory.display());
    let broken = StreamEvent::Unreadable { why };
    let mut client = fixture.client("read < go");
    unreadable(&mut client);
    assert_eq!(client.next(Some(Instant::now())).await, broken);
    assert_eq!(client.next(Some(Instant::now())).await, broken);
    client.end(&IMPATIENT).await;
    assert_eq!(
        client.next(Some(Instant::now())).await,
        broken,
        "nor is it the exit of one that said nothing"
    );

    let mut transcript = Transcript::open(&fixture.path("turn.jsonl")).unwrap();
    transcript.read_on(&mut |_| {}).unwrap();
    fs::remove_file(fixture.path("turn.jsonl")).unwrap();
    fs::create_dir(fixture.path("turn.jsonl")).unwrap();
    assert!(adopt(&fixture.marker(), &fixture.files()).is_err());
}
