//! Archives as scopes: all loaded files are flat, bounded and have plain names. Nothing is
//! unpacked.
//!
//! A changed byte of an archive mostly breaks one of its checksums. So the bytes also seed dice
//! that build an archive whose headers agree with each other, with hostile names, sizes and kinds
//! in it.

mod build;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use raymond_core::extension::is_state;
use raymond_core::value::Hash;
use raymond_engine::scope::{self, LoadedScope, MOST_BYTES, MOST_ENTRIES, ScopeOrigin};
use raymond_testkit::dice::Dice;
use tempfile::TempDir;

use crate::Target;

/// A zip archive.
pub const TARGET: Target = Target {
    name: "archive",
    inputs: 3_000,
    words: &[
        "PK\u{3}\u{4}",
        "PK\u{1}\u{2}",
        "PK\u{5}\u{6}",
        "PK\u{6}\u{6}",
        "PK\u{6}\u{7}",
        "PK\u{7}\u{8}",
        "START.md",
        "../",
        "/",
        "\\",
        "C:",
        "folder/",
        "\0\0\0\0",
        "\u{7f}",
        ".",
        "..",
    ],
    // All that a scope may hold, while the buffer for it grows.
    memory: 256 << 20,
    check,
};

thread_local! {
    static BENCH: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

fn check(bytes: &[u8]) {
    BENCH.with_borrow_mut(|bench| {
        let bench = bench.get_or_insert_with(|| tempfile::tempdir().expect("a directory"));
        load(bench.path(), bytes);
        // Keyed by the input, so that a kept input builds the same archive again.
        let mut dice = Dice::keyed(0, &Hash::of(bytes).to_string());
        let built = build::archive(&mut dice);
        let Some(loaded) = load(bench.path(), &built.bytes) else { return };
        for file in &loaded.files {
            let holds = built.entries.iter().any(|(name, content)| {
                // By content too: an archive may contain the same name twice.
                name.rsplit('/').next() == Some(&file.name) && **content == *file.bytes
            });
            assert!(holds, "{:?} is not what was packed", file.name);
        }
    });
}

/// Loads an archive twice, and checks what comes of it.
fn load(bench: &Path, bytes: &[u8]) -> Option<LoadedScope> {
    let path = bench.join("flow.zip");
    fs::write(&path, bytes).expect("a file");
    let loaded = scope::load(&path).map_err(|refused| refused.to_string());
    let again = scope::load(&path).map_err(|refused| refused.to_string());
    assert_eq!(again, loaded, "loading again finds something else");
    let names: Vec<_> = fs::read_dir(bench).expect("a directory").collect();
    assert_eq!(names.len(), 1, "something was unpacked: {names:?}");
    let loaded = loaded.ok()?;
    assert_eq!(loaded.origin, ScopeOrigin::Archive);
    assert!(loaded.files.len() <= MOST_ENTRIES, "{} files", loaded.files.len());
    let size: u64 = loaded.files.iter().map(|file| file.bytes.len() as u64).sum();
    assert!(size <= MOST_BYTES, "{size} bytes");
    // File systems that ignore case would write both files to one place.
    let folded: BTreeSet<String> =
        loaded.files.iter().map(|file| file.name.to_lowercase()).collect();
    assert_eq!(folded.len(), loaded.files.len(), "two files have one name");
    for file in &loaded.files {
        let name = &*file.name;
        let plain = !name.contains(['/', '\\', '\0']) && !name.chars().any(char::is_control);
        assert!(plain && name != "." && name != ".." && is_state(name), "{name:?} is no state");
        // 255 bytes is the limit of common file systems.
        assert!(name.len() <= 255, "no file can have a name of {} bytes", name.len());
    }
    Some(loaded)
}
