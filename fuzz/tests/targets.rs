//! Every target holds for its corpus, and for as many inputs as `FUZZ_INPUTS` says.

use std::collections::BTreeSet;
use std::fs;

use raymond_fuzz::{campaign, corpus, targets};

macro_rules! targets {
    ($(#[test] fn $name:ident();)*) => {
        $(#[test]
        fn $name() {
            campaign::run(&targets::$name::TARGET);
        })*

        #[test]
        fn every_target_is_played_here() {
            let played: BTreeSet<&str> = [$(stringify!($name)),*].into();
            let known: BTreeSet<&str> = targets::ALL.iter().map(|target| target.name).collect();
            assert_eq!(played, known);
        }
    };
}

targets! {
    // proves: P12
    #[test]
    fn archive();
    // proves: P12
    #[test]
    fn claude();
    // proves: P12
    #[test]
    fn codex();
    // proves: P12
    #[test]
    fn document();
    // proves: P12
    #[test]
    fn frontmatter();
    // proves: P12
    #[test]
    fn inbox();
    // proves: P12
    #[test]
    fn journal();
    // proves: P12
    #[test]
    fn mcp();
    // proves: P12
    #[test]
    fn replies();
    // proves: P12
    #[test]
    fn request();
    // proves: P12
    #[test]
    fn scanner();
    #[test]
    fn schema();
}

#[test]
fn every_corpus_directory_belongs_to_a_target() {
    let listed = fs::read_dir(corpus::home()).unwrap();
    let found: BTreeSet<String> =
        listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let known: BTreeSet<String> =
        targets::ALL.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(found, known);
}
