//! The output of `--version`.

use std::path::Path;

use crate::harness::Project;

#[test]
fn version_names_the_commit_of_the_build() {
    let project = Project::of(&[]);
    let short = project.raymond("-V").stdout;
    let words: Vec<&str> = short.split_whitespace().collect();
    match words.as_slice() {
        ["raymond", env!("CARGO_PKG_VERSION")] => {
            assert!(!is_checkout(&project), "there is a commit to name: {short}");
        }
        ["raymond", env!("CARGO_PKG_VERSION"), commit, date] => {
            let hash = commit.trim_start_matches('(').trim_end_matches("-dirty");
            assert!(hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{short}");
            let date = date.trim_end_matches(')').split('-').map(str::len);
            assert_eq!(date.collect::<Vec<_>>(), [4, 2, 2], "{short}");
        }
        _ => panic!("{short}"),
    }
    let long = project.raymond("--version").stdout;
    let built_for = long.strip_prefix(&short).unwrap();
    assert!(built_for.starts_with(std::env::consts::ARCH), "{long}");
}

/// Whether this is built from its own checkout, not from an archive inside of another checkout.
fn is_checkout(project: &Project) -> bool {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let words = ["-C", top.to_str().unwrap(), "rev-parse", "--show-toplevel"];
    let output = project.spawn("git", &words).wait();
    output.code() == 0 && Path::new(output.stdout.trim()).canonicalize().unwrap() == top
}
