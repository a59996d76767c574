//! Requests to a running run: each one is known or moved aside. None is lost, and none leads out of
//! the inbox.

use std::path::Path;
use std::sync::Arc;

use raymond_core::run::Input;
use raymond_store::Inbox;
use raymond_store::disk::{Disk, Memory, OpenMode};

use crate::Target;

/// The first line is the name of a file, the rest what it holds.
pub const TARGET: Target = Target {
    name: "inbox",
    inputs: 6_000,
    words: &[
        "a.json\n",
        ".json",
        "../",
        ".bad-1",
        ".tmp",
        "{\"stop\":{\"mode\":\"now\",\"key\":\"a\"}}",
        "{\"answer\":{",
        "\"key\":\"a\"",
        "\"mode\":\"after_turn\"",
        "\"mode\":\"cancel\"",
        "{\"start\":{",
        "{\"due\":",
        "\"call\"",
        "null",
        "\n",
    ],
    memory: Target::MEMORY,
    check,
};

const INBOX: &str = "/inbox";

fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (name, content) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end..]);
    check_post(&name, content);
    // Other names cannot exist in a directory.
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    if is_name {
        check_file(&name, content);
    }
}

/// Checks a posted request. Its sender chooses the key, but a path is not a key.
fn check_post(key: &str, content: &[u8]) {
    let disk = disk();
    let inbox = Inbox::new(Arc::clone(&disk), INBOX.into());
    if inbox.post(key, content).is_ok() {
        assert_eq!(names(&disk), [format!("{key}.json")]);
        inbox.remove(key).expect("what was posted can be removed");
    }
    // Neither a refused key nor a removed request may leave a file behind.
    assert_eq!(names(&disk), [""; 0]);
}

/// Checks a file that another program wrote into the inbox: it may contain anything.
fn check_file(name: &str, content: &[u8]) {
    let disk = disk();
    let path = Path::new(INBOX).join(name);
    let mut file = disk.open(&path, OpenMode::New).expect("an empty disk");
    file.write_at(0, content).expect("a disk with room");
    let inbox = Inbox::new(Arc::clone(&disk), INBOX.into());
    let taken = inbox.take_all().expect("an inbox that can be listed");
    assert_eq!(names(&disk).len(), 1, "a file was lost, or made");
    for message in &taken.messages {
        assert_eq!(format!("{}.json", message.key), name);
        if let Ok(input) = serde_json::from_slice::<Input>(&message.bytes) {
            let written = serde_json::to_vec(&input).expect("an input is plain data");
            assert_eq!(serde_json::from_slice::<Input>(&written).ok(), Some(input));
        }
    }
    // The owner looks every second, so a file that it could not read must not be reported each
    // time.
    let again = inbox.take_all().expect("an inbox that can be listed");
    assert_eq!(
        (&again.messages, again.invalid.len()),
        (&taken.messages, 0),
        "garbage is told twice"
    );
}

fn disk() -> Arc<dyn Disk> {
    let disk = Memory::new(1);
    disk.create_dir(Path::new(INBOX)).expect("an empty disk");
    Arc::new(disk)
}

fn names(disk: &Arc<dyn Disk>) -> Vec<String> {
    let names = disk.list(Path::new(INBOX)).expect("an inbox");
    names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect()
}
