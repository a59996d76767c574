//! The machine: programs, configuration, directories, room.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use raymond_backends::claude::{self, preflight::PreflightProblem};
use raymond_backends::codex;
use raymond_backends::process::DISK_SPACE_NEEDED;
use raymond_core::run::permissions::Checks;
use raymond_core::run::settings::ConfigHome;
use raymond_core::view::health::{self, Finding, Folder, Need, Program};
use raymond_engine::discard::size_of;
use raymond_engine::project::Project;
use raymond_store::ballast;
use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;

use crate::config::{self, Layer, Sourced};
use crate::{ask, backends, failure::Failure, settings};

/// Programs that runs need, and what is configured about them.
pub(super) async fn programs(project: &Project) -> Vec<Finding> {
    let loaded = config::load(project);
    let configuration = configuration(project, loaded.as_ref().err());
    let config = loaded.unwrap_or_default();
    let mut findings = vec![claude_client(&config).await, codex_client(&config).await];
    findings.extend(root(&config));
    findings.push(match ask::find("bash") {
        Some(path) => Finding::ok("bash", path.display().to_string()),
        None => {
            let text = "there is no bash on PATH: scripts cannot run";
            Finding::fail("bash", text, "install it".to_owned())
        }
    });
    findings.push(configuration);
    findings.extend(settings::unknown_backend(&config));
    findings
}

/// Whether prompts are sent to a client: when nobody says otherwise, to Claude Code.
fn need(config: &Layer, name: &str, command: Option<&Sourced<String>>) -> Need {
    let default = config.backend.as_ref().map_or(claude::NAME, |backend| &backend.value);
    match command {
        _ if default == name => Need::Default,
        Some(command) if command.value != name => Need::Named,
        Some(_) | None => Need::Optional,
    }
}

async fn claude_client(config: &Layer) -> Finding {
    use claude::preflight::{check, check_version};
    let (need, command) =
        (need(config, claude::NAME, config.claude.as_ref()), backends::claude_command(config));
    let told = |problem: PreflightProblem| (problem.to_string(), problem.remedy());
    let found = check(command.as_ref(), Checks::Kept, None).map_err(told);
    let fit = |version: &str| check_version(command.as_ref(), version).map_err(told);
    client(claude::NAME, &command, need, found, &fit).await
}

async fn codex_client(config: &Layer) -> Finding {
    use codex::preflight::{PreflightProblem, check, check_home, check_version};
    let (need, command) =
        (need(config, codex::NAME, config.codex.as_ref()), backends::codex_command(config));
    let told = |problem: PreflightProblem| (problem.to_string(), problem.remedy());
    let found = check(command.as_ref()).map_err(told);
    let fit = |version: &str| {
        check_version(command.as_ref(), version).map_err(told)?;
        // Agents that have a home each do not use that one.
        match config.config_home.as_ref().map(|home| home.value) {
            Some(ConfigHome::PerAgent) => Ok(()),
            Some(ConfigHome::Shared) | None => check_home().map_err(told),
        }
    };
    client(codex::NAME, &command, need, found, &fit).await
}

/// What is wrong, and what to do about it.
type Told = (String, String);

/// A client, judged by what a run asks of it: that it is found, says its version, and is fit.
async fn client(
    name: &str,
    command: &str,
    need: Need,
    found: Result<(), Told>,
    fit: &dyn Fn(&str) -> Result<(), Told>,
) -> Finding {
    if let Err(missing) = found {
        return health::missing(name, missing, need);
    }
    let program = ask::version(name, command, ask::OF_A_CLIENT).await;
    if let Program::Answers { version, .. } = &program
        && let Err((text, remedy)) = fit(version)
    {
        return need.unfit(text, remedy);
    }
    health::client(name, &program, need)
}

/// Claude Code, where it is installed, refuses to skip its checks for root. Other clients do not.
fn root(config: &Layer) -> Option<Finding> {
    let command = backends::claude_command(config);
    let environment = config.environment.as_ref().and_then(|names| names.value.as_deref());
    match claude::preflight::check(command.as_ref(), Checks::Skipped, environment) {
        Err(problem @ PreflightProblem::Root) => {
            let text = "this is root: claude refuses --dangerously-skip-permissions";
            Some(Finding::warn("root", text, problem.remedy()))
        }
        Err(_) | Ok(()) => None,
    }
}

fn configuration(project: &Project, wrong: Option<&Failure>) -> Finding {
    if let Some(failure) = wrong {
        let (text, remedy) = failure.told();
        return Finding::fail("config", text, remedy);
    }
    let files: Vec<String> = config::sought(project).iter().map(ToString::to_string).collect();
    Finding::ok("config", files.join(", "))
}

/// Where runs are kept, and how much room there is.
pub(super) fn storage(project: &Project) -> Vec<Finding> {
    let root = project.root.path();
    let (place, name) = if root.exists() {
        (root, ".raymond/".to_owned())
    } else {
        (project.root.project(), project.root.project().display().to_string())
    };
    let mut findings = vec![health::folder("storage", &folder(place, name, place == root))];
    let temporary = std::env::temp_dir();
    let name = temporary.display().to_string();
    findings.push(health::folder("temporary", &folder(&temporary, name, false)));
    if let Ok(found) = statvfs(place) {
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        findings.push(health::room(free, DISK_SPACE_NEEDED));
    }
    let runs = project.runs().unwrap_or_default();
    if !runs.is_empty() {
        findings.extend(ballast(root));
        let sizes = runs.iter().map(|run| size_of(&project.paths(run).transcripts));
        findings.push(health::transcripts(sizes.sum()));
    }
    findings
}

fn folder(path: &Path, name: String, is_private: bool) -> Folder {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir);
    let private = found.as_ref().filter(|_| is_private);
    let owner = private.map(std::os::unix::fs::MetadataExt::uid);
    Folder {
        name,
        is_link: is_private && path.is_symlink(),
        writable: found.is_some() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        foreign: owner.filter(|owner| *owner != geteuid().as_raw()),
        mode: private.map(|found| found.mode() & 0o777),
    }
}

/// The space that is set aside for outcomes that were paid for.
fn ballast(root: &Path) -> Option<Finding> {
    let is_there =
        std::fs::metadata(root.join("ballast")).is_ok_and(|found| found.len() == ballast::SIZE);
    let text = "the ballast is gone: on a full disk an outcome could be lost";
    let remedy = "the next run sets it aside again, when there is room";
    (!is_there).then(|| Finding::warn("disk", text, remedy.to_owned()))
}
