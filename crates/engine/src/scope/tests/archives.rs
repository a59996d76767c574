use super::*;

fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

fn zip(write: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    write(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    zip(|writer| {
        for (name, text) in files {
            writer.start_file(*name, stored()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
    })
}

fn open(bytes: &[u8]) -> Result<LoadedScope, ScopeError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flow.zip");
    fs::write(&path, bytes).unwrap();
    load(&path)
}

fn refused(bytes: &[u8]) -> ArchiveError {
    match open(bytes) {
        Err(ScopeError::Archive { source, .. }) => source,
        Err(other) => panic!("{other}"),
        Ok(loaded) => panic!("{:?}", names(&loaded)),
    }
}

/// Overwrites every occurrence of `from`, which must exist.
fn patched(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<_> =
        (0..=bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// Sets bits at an offset of every local header and of every entry of the central directory.
fn with_headers(mut bytes: Vec<u8>, local: usize, central: usize, value: &[u8]) -> Vec<u8> {
    for (signature, offset) in [(b"PK\x03\x04", local), (b"PK\x01\x02", central)] {
        let places: Vec<_> =
            (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(signature)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at + offset..at + offset + value.len()].copy_from_slice(value);
        }
    }
    bytes
}

#[test]
fn an_archive_is_flat_or_has_one_folder() {
    let bytes = zip(|writer| {
        writer.add_directory("flow", stored()).unwrap();
        writer.start_file("flow/run.sh", stored().unix_permissions(0o755)).unwrap();
        writer.write_all(b"true").unwrap();
        writer.start_file("flow/START.md", SimpleFileOptions::default()).unwrap();
        writer.write_all(&b"go ".repeat(1000)).unwrap();
        writer.start_file("flow/data.bin", stored()).unwrap();
        writer.start_file("flow/README.md", stored()).unwrap();
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flow.ZIP");
    fs::write(&path, bytes).unwrap();
    let file = |name: &str, bytes: &[u8], executable| SourceFile {
        name: name.to_owned(),
        bytes: bytes.into(),
        executable,
    };
    assert_eq!(
        load(&path).unwrap(),
        LoadedScope {
            scope: fs::canonicalize(&path).unwrap(),
            start: EntryPoint::Entry,
            files: vec![
                file("START.md", &b"go ".repeat(1000), false),
                file("run.sh", b"true", true),
            ],
            origin: ScopeOrigin::Archive,
            warnings: vec![],
        }
    );
    let flat = open(&zip_of(&[("START.md", "go"), ("a.md", "a")])).unwrap();
    assert_eq!(names(&flat), ["START.md", "a.md"]);
}

#[test]
fn streamed_archives_are_read() {
    let mut writer = ZipWriter::new_stream(Vec::new());
    writer.start_file("START.md", SimpleFileOptions::default()).unwrap();
    writer.write_all(b"go").unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    assert_eq!(names(&open(&bytes).unwrap()), ["START.md"]);
}

#[test]
fn each_refusal_names_its_reason() {
    let shown = |bytes: &[u8]| refused(bytes).to_string();
    let files = |names: &[&str]| {
        let files: Vec<_> = names.iter().map(|name| (*name, "x")).collect();
        refused(&zip_of(&files)).to_string()
    };
    insta::assert_snapshot!(shown(b""), @"it is not a zip archive");
    insta::assert_snapshot!(shown(b"PK\x03\x04 but nothing else"), @"it is not a zip archive");
    insta::assert_snapshot!(shown(&zip_of(&[])), @"it is empty");
    insta::assert_snapshot!(shown(&zip(|w| w.add_directory("flow", stored()).unwrap())), @"it is empty");
    insta::assert_snapshot!(files(&["START.md", "sub/a.md"]), @r#"it is mixed: "START.md" and "sub/a.md" are not in one folder"#);
    insta::assert_snapshot!(files(&["one/START.md", "two/a.md"]), @r#"it is mixed: "one/START.md" and "two/a.md" are not in one folder"#);
    insta::assert_snapshot!(files(&["flow/sub/a.md"]), @r#"it is nested: "flow/sub/a.md" is more than one folder deep"#);
    insta::assert_snapshot!(files(&["/START.md"]), @r#""/START.md" is an absolute path"#);
    insta::assert_snapshot!(files(&["../START.md"]), @r#""../START.md" is a dotted path"#);
    insta::assert_snapshot!(files(&["./START.md"]), @r#""./START.md" is a dotted path"#);
    insta::assert_snapshot!(files(&["START.md", "start.MD"]), @r#""START.md" and "start.MD" are the same name"#);
    let backslash = patched(zip_of(&[("a_START.md", "x")]), b"a_START", b"a\\START");
    insta::assert_snapshot!(shown(&backslash), @r#""a\\START.md" contains a backslash"#);
    let twice = patched(zip_of(&[("START.md", "x"), ("STARK.md", "y")]), b"STARK", b"START");
    insta::assert_snapshot!(shown(&twice), @r#""START.md" and "START.md" are the same name"#);
    let link = zip(|writer| {
        writer.add_symlink("START.md", "/etc/passwd", stored()).unwrap();
    });
    insta::assert_snapshot!(shown(&link), @r#""START.md" is a link"#);
}

#[test]
fn pipes_and_devices_are_refused() {
    let bytes = zip(|writer| {
        writer.start_file("START.md", stored().unix_permissions(0o644)).unwrap();
    });
    let fifo = (0o010_644_u32 << 16).to_le_bytes();
    let bytes = patched(bytes, &(0o100_644_u32 << 16).to_le_bytes(), &fifo);
    assert!(matches!(refused(&bytes), ArchiveError::Special(name) if name == "START.md"));
}

#[test]
fn an_encrypted_entry_is_refused() {
    let bytes = with_headers(zip_of(&[("START.md", "x")]), 6, 8, &[1, 0]);
    assert!(matches!(refused(&bytes), ArchiveError::Encrypted(name) if name == "START.md"));
}

#[test]
fn an_unknown_compression_is_refused() {
    let bytes = with_headers(zip_of(&[("START.md", "x")]), 8, 10, &[12, 0]);
    assert!(matches!(refused(&bytes), ArchiveError::Compression(name) if name == "START.md"));
}

#[test]
fn damaged_data_is_refused() {
    let flipped = patched(zip_of(&[("START.md", "payload")]), b"payload", b"paYload");
    assert!(matches!(refused(&flipped), ArchiveError::Corrupt { name, .. } if name == "START.md"));
    // Files that are only counted are checked all the same.
    let flipped =
        patched(zip_of(&[("START.md", "x"), ("data.bin", "payload")]), b"payload", b"paYload");
    assert!(matches!(refused(&flipped), ArchiveError::Corrupt { name, .. } if name == "data.bin"));
    let deflated = zip(|writer| {
        writer.start_file("START.md", SimpleFileOptions::default()).unwrap();
        writer.write_all(&b"abcdefgh".repeat(500)).unwrap();
    });
    let data = 30 + "START.md".len();
    let mut broken = deflated.clone();
    broken[data..data + 4].fill(0xff);
    assert!(matches!(refused(&broken), ArchiveError::Corrupt { .. }));
    for length in 0..deflated.len() {
        refused(&deflated[..length]);
    }
}

// proves: S10
#[test]
fn false_headers_are_refused() {
    let original = || {
        zip(|writer| {
            writer.start_file("START.md", SimpleFileOptions::default()).unwrap();
            writer.write_all(&vec![b'x'; 100_000]).unwrap();
        })
    };
    // The unpacked size: less than there is, and far more.
    for size in [10_u32, u32::MAX - 1] {
        let lying = with_headers(original(), 22, 24, &size.to_le_bytes());
        let error = refused(&lying);
        assert!(matches!(error, ArchiveError::Corrupt { .. }), "{size} {error:?}");
    }
    // Another name in the local header than in the list.
    let mut two = zip_of(&[("START.md", "x")]);
    two[30..38].copy_from_slice(b"SMART.md");
    assert!(matches!(refused(&two), ArchiveError::Damaged(_)));
    // More entries than there are.
    let bytes = zip_of(&[("START.md", "x")]);
    let end = bytes.len() - 22;
    let mut more = bytes;
    more[end + 8..end + 12].copy_from_slice(&[0xff, 0x7f, 0xff, 0x7f]);
    refused(&more);
}

#[test]
fn claimed_billions_of_entries_cost_nothing() {
    let bytes = zip_of(&[("START.md", "x")]);
    let (before, end) = bytes.split_at(bytes.len() - 22);
    let claim = u64::from(u32::MAX);
    let position = before.len() as u64;
    let mut huge = before.to_vec();
    huge.extend(b"PK\x06\x06");
    huge.extend(44_u64.to_le_bytes());
    huge.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for field in [claim, claim, claim * 46, 39] {
        huge.extend(field.to_le_bytes());
    }
    huge.extend(b"PK\x06\x07\0\0\0\0");
    huge.extend(position.to_le_bytes());
    huge.extend([1, 0, 0, 0]);
    huge.extend(&end[..8]);
    huge.extend([0xff; 12]);
    huge.extend(&end[20..]);
    let error = refused(&huge);
    let refused = matches!(error, ArchiveError::NotAZip(_) | ArchiveError::TooManyEntries);
    assert!(refused, "{error:?}");
}

#[test]
fn number_of_entries_is_limited() {
    let of = |count: usize| {
        zip(|writer| {
            for n in 0..count {
                writer.start_file(format!("{n}.txt"), stored()).unwrap();
            }
        })
    };
    assert_eq!(names(&open(&of(MOST_ENTRIES)).unwrap()), [""; 0]);
    assert!(matches!(refused(&of(MOST_ENTRIES + 1)), ArchiveError::TooManyEntries));
}

// proves: S10
#[test]
fn a_bomb_is_refused_while_it_is_read() {
    let eight = zip(|writer| {
        let options = SimpleFileOptions::default();
        writer.start_file("zeros", options).unwrap();
        writer.write_all(&vec![0; 8 << 20]).unwrap();
    });
    let of = |extension: &str, eights: usize| {
        let mut zeros = zip::ZipArchive::new(Cursor::new(&eight)).unwrap();
        zip(|writer| {
            for n in 0..eights {
                let zeros = zeros.by_index_raw(0).unwrap();
                let name = format!("{n}{extension}");
                writer.raw_copy_file_rename(zeros, name).unwrap();
            }
            writer.start_file("x.md", stored()).unwrap();
            writer.write_all(b"x").unwrap();
        })
    };
    for name in [".txt", ".md"] {
        let bomb = of(name, 8);
        assert!(bomb.len() < 1024 * 1024, "{}", bomb.len());
        assert!(matches!(refused(&bomb), ArchiveError::TooLarge), "{name}");
    }
    assert!(open(&of(".txt", 7)).is_ok());
}
