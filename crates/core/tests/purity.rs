//! The core has no effects: what it depends on, directly or not, is this list and nothing else.
//!
//! A clock, a runtime, a socket or a source of randomness would have to appear here first.

use std::collections::{BTreeMap, BTreeSet};

const LOCK: &str = include_str!("../../../Cargo.lock");
const MANIFEST: &str = include_str!("../Cargo.toml");

/// The packages that the core and its dependencies may use, on any platform and with any feature of
/// the workspace. Build tools such as `cc` and packages for other platforms are included.
const KNOWN: &[&str] = &[
    "annotate-snippets",
    "anstyle",
    "arraydeque",
    "arrayvec",
    "autocfg",
    "blake3",
    "cc",
    "cfg-if",
    "constant_time_eq",
    "core_detect",
    "cpufeatures",
    "encoding_rs",
    "encoding_rs_io",
    "find-msvc-tools",
    "granit-parser",
    "itoa",
    "libc",
    "memchr",
    "multiversion_no_op",
    "num-traits",
    "proc-macro2",
    "quote",
    "rustversion",
    "scopeguard",
    "serde",
    "serde-saphyr",
    "serde_core",
    "serde_derive",
    "serde_json",
    "shlex",
    "simdutf8",
    "smallvec",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
    "unicode-width",
    "zmij",
];

/// The names below `[dependencies]`, up to the next section.
fn direct() -> Vec<&'static str> {
    let section = MANIFEST.split("\n[dependencies]\n").nth(1).expect("it has dependencies");
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns the dependencies of every locked package.
fn locked() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in LOCK.split("[[package]]").skip(1) {
        let name = package
            .lines()
            .find_map(|line| line.strip_prefix("name = "))
            .expect("a package has a name");
        let dependencies = package.split("dependencies = [").nth(1).unwrap_or_default();
        let quoted = dependencies.split('"').skip(1).step_by(2);
        let names = quoted.map(|entry| entry.split(' ').next().unwrap_or(entry));
        packages.entry(name.trim_matches('"')).or_default().extend(names);
    }
    packages
}

#[test]
fn the_core_depends_on_nothing_that_acts() {
    let packages = locked();
    let mut waiting = direct();
    assert!(waiting.contains(&"serde"), "{waiting:?}");
    let mut reached = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if reached.insert(name) {
            waiting.extend(&packages[name]);
        }
    }
    let reached: Vec<&str> = reached.into_iter().collect();
    assert_eq!(reached, KNOWN);
}
