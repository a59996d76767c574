//! Rules that every example keeps, because users copy it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use raymond_core::protocol::TagName;
use raymond_core::protocol::tags::Body;

use crate::harness::Project;
use crate::stage::{EXAMPLE_RUNS, copy, examples, files};

fn all() -> Vec<(PathBuf, String)> {
    let all = files(&examples()).into_iter();
    all.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn ends_with(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

#[test]
fn every_file_of_replies_is_played() {
    let found: BTreeSet<PathBuf> =
        files(&examples()).into_iter().filter(|path| ends_with(path, "yaml")).collect();
    let played = EXAMPLE_RUNS.iter().map(|run| examples().join(run.example).join(run.replies));
    assert_eq!(found, played.collect());
}

#[test]
fn readme_fits_on_a_screen() {
    for (path, text) in all() {
        if path.ends_with("README.md") {
            assert!(text.lines().count() <= 45, "{} is too long", path.display());
        }
    }
}

#[test]
fn long_scripts_stop_at_the_first_error() {
    for (path, text) in all() {
        if ends_with(&path, "sh") && text.lines().count() > 8 {
            assert!(text.contains("\nset -euo pipefail\n"), "{}", path.display());
            assert!(text.starts_with("#!/usr/bin/env bash\n"), "{}", path.display());
        }
    }
}

#[test]
fn prompt_has_description_and_transitions() {
    for (path, text) in all() {
        if ends_with(&path, "md") && path.parent().unwrap().ends_with("workflow") {
            let name = path.display();
            let front = text.split("---\n").nth(1).unwrap_or_default();
            let is_policy = |line: &str| line.starts_with("allowed_t");
            assert!(front.lines().any(is_policy), "{name} has no policy");
            // The example of the README is kept short.
            let described = front.lines().any(|line| line.starts_with("description: "));
            assert!(described || name.to_string().contains("/title/"), "{name} has no description");
        }
    }
}

/// The states that a text may lead to: the targets and attributes of its tags.
fn targets(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for tag in TagName::ALL.into_iter().filter(|tag| tag.spec().body == Body::Target) {
        let close = format!("</{tag}>");
        let held = text.match_indices(&close).filter_map(|(at, _)| text[..at].rsplit('>').next());
        found.extend(held.map(str::to_owned));
    }
    for name in ["return=", "next="] {
        let named = text.split(name).skip(1);
        let named = named.filter_map(|rest| rest.split(['"', '\\']).find(|part| !part.is_empty()));
        found.extend(named.map(str::to_owned));
    }
    found
}

/// The states of a workflow by stem: whether each is a prompt, and its text.
fn states(workflow: &Path) -> BTreeMap<String, (bool, String)> {
    // The loop of `raymond ralph` has its own end.
    if !workflow.exists() {
        return BTreeMap::new();
    }
    let states = files(workflow).into_iter().map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, (ends_with(&path, "md"), fs::read_to_string(path).unwrap()))
    });
    states.collect()
}

#[test]
fn every_loop_through_a_prompt_has_an_exit() {
    for example in fs::read_dir(examples()).unwrap() {
        let states = states(&example.unwrap().path().join("workflow"));
        let is_bounded = |name: &str| states[name].1.contains("\nmax_visits: ");
        let prompts = states.iter().filter(|(_, (is_prompt, _))| *is_prompt);
        for (name, (_, text)) in prompts.filter(|(name, _)| !is_bounded(name)) {
            let mut seen = BTreeSet::new();
            let mut waiting = targets(text);
            while let Some(next) = waiting.pop_first() {
                assert_ne!(&next, name, "it may go round for ever");
                if !is_bounded(&next) && seen.insert(next.clone()) {
                    waiting.extend(targets(&states[&next].1));
                }
            }
        }
    }
}

#[test]
fn examples_contain_no_absolute_paths() {
    for (path, text) in all() {
        let absolute = ["/home/", "/root/", "/tmp/", "/Users/"];
        let found = absolute.iter().find(|place| text.contains(**place));
        assert_eq!(found, None, "{}", path.display());
    }
}

/// The examples with a setup that creates a repository.
fn with_a_setup() -> Vec<String> {
    let names = fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().path());
    let names = names.filter(|path| path.join("setup.sh").exists());
    let mut names: Vec<String> =
        names.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names.len(), 12, "{names:?}");
    names
}

/// `a && cd b` continues in the wrong place when `a` fails: `set -e` looks at the end of a list
/// only.
#[test]
fn setup_stops_in_the_wrong_directory() {
    for name in with_a_setup() {
        let text = fs::read_to_string(examples().join(&name).join("setup.sh")).unwrap();
        for list in ["&& cd ", "&& git ", "; cd "] {
            assert!(!text.contains(list), "{name} has {list:?}");
        }
    }
}

/// Everything that a user can see of a repository; a setup must not change it.
#[track_caller]
fn state_of(outer: &Project) -> String {
    let look = "git rev-parse HEAD && git config --local --list && git status --porcelain \
        && git for-each-ref && git stash list && git -C ../origin.git for-each-ref";
    let output = outer.spawn("bash", &["-c", &format!("cd outer && {look}")]).wait();
    assert_eq!((output.code(), output.stderr.as_str()), (0, ""));
    output.stdout
}

/// An outer repository with its origin, and a copy of an example in it, as `init --from` makes one.
fn outer(name: &str) -> Project {
    let project = Project::of(&[("outer/mine.txt", "mine\n")])
        .with("GIT_CONFIG_GLOBAL", "/dev/null")
        .with("GIT_CONFIG_NOSYSTEM", "1");
    copy(&examples().join(name), &project.path("outer/example"));
    let setup = "set -e
        git init --quiet --bare --initial-branch main origin.git
        git init --quiet --initial-branch main outer
        cd outer
        git config user.name Mine
        git config user.email mine@example.org
        git remote add origin ../origin.git
        git add --all
        git commit --quiet --message mine
        git push --quiet origin main";
    let output = project.spawn("bash", &["-c", setup]).wait();
    assert_eq!(output.code(), 0, "{output:?}");
    project
}

#[test]
fn second_setup_leaves_outer_repository_alone() {
    for name in with_a_setup() {
        let outer = outer(&name);
        let before = state_of(&outer);
        let setup = || outer.spawn("bash", &["outer/example/setup.sh"]).wait();
        assert_eq!(setup().code(), 0, "{name}");
        assert_eq!(state_of(&outer), before, "{name}");
        setup().says(1, "try/ is there already: remove it first");
        assert_eq!(state_of(&outer), before, "{name}");
    }
}

/// As in a hook of git, which names its own repository in the environment.
#[test]
fn setup_in_a_hook_leaves_its_repository_alone() {
    for name in with_a_setup() {
        let outer = outer(&name);
        let before = state_of(&outer);
        let hook = "export GIT_DIR=$PWD/outer/.git GIT_INDEX_FILE=$PWD/outer/.git/index; \
            bash outer/example/setup.sh";
        let output = outer.spawn("bash", &["-c", hook]).wait();
        assert_eq!((output.code(), state_of(&outer)), (0, before), "{name}");
    }
}
