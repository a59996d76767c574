//! Checks the git repository of the project.

use std::path::Path;

use crate::health::{self, Finding, Repository};
use raymond_engine::project::Project;

use crate::probe;

pub(super) async fn repository(project: &Project) -> Finding {
    let Some(git) = probe::find("git") else {
        let text =
            "git is not on PATH, so edits by agents cannot be distinguished from other changes";
        return Finding::warn("git", text, "install it".to_owned());
    };
    health::repository(look(&git, project).await)
}

async fn look(git: &Path, project: &Project) -> Repository {
    let place = project.root.project();
    let inside = probe::output(git, &["rev-parse", "--is-inside-work-tree"], place).await;
    // Git fails outside of a work tree. A git that does not answer in time looks the same here.
    if inside.is_err() {
        return Repository::None;
    }
    // `git status` must not take the lock of the index, which could disturb another git command,
    // and must not start programs that the repository configures.
    let quiet = ["--no-optional-locks", "-c", "core.fsmonitor=false"];
    let status = [&quiet[..], &["status", "--porcelain", "--ignore-submodules"]].concat();
    let Ok(changed) = probe::output(git, &status, place).await else { return Repository::Unknown };
    let is_ignored = || probe::output(git, &["check-ignore", "-q", ".raymond/x"], place);
    let runs_are_committed = project.root.path().exists() && is_ignored().await.is_err();
    Repository::Some { changed: changed.lines().count(), runs_are_committed }
}
