//! Checks the machine: programs, configuration, directories and disk space.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::health::{self, ClientNeed, ClientProbe, Finding, Folder};
use raymond_backends::process::DISK_SPACE_NEEDED;
use raymond_backends::registry::{self, CLIENTS, ClientKind, ClientProblem};
use raymond_core::run::settings::ConfigHome;
use raymond_engine::discard::size_of;
use raymond_engine::project::Project;
use raymond_store::ballast;
use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;

use crate::config::{self, Layer};
use crate::{backends, failure::Failure, probe, settings};

/// Checks the programs that runs need, and their configuration.
pub(super) async fn programs(project: &Project) -> Vec<Finding> {
    let loaded = config::load(project);
    let configuration = configuration(project, loaded.as_ref().err());
    // A broken configuration is one finding. The other checks continue with the defaults.
    let config = loaded.unwrap_or_default();
    let mut findings = Vec::new();
    for kind in CLIENTS {
        findings.push(client(kind, &config).await);
    }
    findings.extend(CLIENTS.iter().filter_map(|kind| root(kind, &config)));
    findings.push(match probe::find("bash") {
        Some(path) => Finding::ok("bash", path.display().to_string()),
        None => {
            let text = "bash is not on PATH, so scripts cannot run";
            Finding::fail("bash", text, "install it".to_owned())
        }
    });
    findings.push(configuration);
    findings.extend(settings::unknown_backend(&config));
    findings
}

/// Whether prompts go to this client.
fn need(kind: &ClientKind, config: &Layer) -> ClientNeed {
    let default = config.backend.as_ref().map_or(registry::DEFAULT, |backend| &backend.value);
    match config.clients.get(kind.name) {
        _ if default == kind.name => ClientNeed::Default,
        Some(command) if command.value != kind.name => ClientNeed::Named,
        Some(_) | None => ClientNeed::Optional,
    }
}

/// Checks a client as a run would: the program exists, reports its version and can be used.
async fn client(kind: &ClientKind, config: &Layer) -> Finding {
    let (need, command) = (need(kind, config), backends::command(kind, config));
    // A missing client matters only if prompts go to it; `ClientNeed` decides that.
    if let Err(ClientProblem { message, remedy, .. }) = kind.check_program(command.as_ref()) {
        return health::missing(kind.name, message, remedy, need);
    }
    let program = probe::client_version(kind.name, &command, probe::CLIENT_TIMEOUT).await;
    if let ClientProbe::Answers { version, .. } = &program
        && let Err(problem) = fits(kind, config, &command, version)
    {
        return need.unfit(problem.message, problem.remedy);
    }
    health::client(kind.name, &program, need)
}

/// Checks the version of a client, and the configuration directory that its agents share.
fn fits(
    kind: &ClientKind,
    config: &Layer,
    command: &str,
    version: &str,
) -> Result<(), ClientProblem> {
    kind.check_version(command.as_ref(), version)?;
    // With an isolated home for each agent, the shared one is not used.
    match config.config_home.as_ref().map(|home| home.value) {
        Some(ConfigHome::PerAgent) => Ok(()),
        Some(ConfigHome::Shared) | None => (kind.check_home)(),
    }
}

/// Warns of an installed client that refuses to skip its permission checks for root.
fn root(kind: &ClientKind, config: &Layer) -> Option<Finding> {
    // A client that is not installed needs no warning about root.
    kind.check_program(backends::command(kind, config).as_ref()).ok()?;
    let environment = config.environment.as_ref().and_then(|names| names.value.as_deref());
    let problem = (kind.check_skipping)(environment).err()?;
    let text = format!("running as root: {} refuses --dangerously-skip-permissions", kind.name);
    Some(Finding::warn("root", text, problem.remedy))
}

fn configuration(project: &Project, wrong: Option<&Failure>) -> Finding {
    if let Some(failure) = wrong {
        let (text, remedy) = failure.message_and_hint();
        return Finding::fail("config", text, remedy);
    }
    let files: Vec<String> =
        config::config_files(project).iter().map(ToString::to_string).collect();
    Finding::ok("config", files.join(", "))
}

/// Checks the directories of runs and the free disk space.
pub(super) fn storage(project: &Project) -> Vec<Finding> {
    let root = project.root.path();
    // Before the first run there is no `.raymond/`, so the directory that will contain it is
    // checked.
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
        // `f_bavail`, not `f_bfree`: the difference is reserved for root.
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        findings.push(health::room(free, DISK_SPACE_NEEDED));
    }
    let runs = project.runs().unwrap_or_default();
    // The first run writes the ballast, so without runs its absence is normal.
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
        // Only in `.raymond/` does Raymond refuse links; a temporary directory may be one.
        is_link: is_private && path.is_symlink(),
        writable: found.is_some() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        foreign: owner.filter(|owner| *owner != geteuid().as_raw()),
        mode: private.map(|found| found.mode() & 0o777),
    }
}

/// Checks the reserved file that is freed to record a paid outcome on a full disk.
fn ballast(root: &Path) -> Option<Finding> {
    let is_there =
        std::fs::metadata(root.join("ballast")).is_ok_and(|found| found.len() == ballast::SIZE);
    let text = "the ballast file is missing, so a full disk could lose an outcome";
    let remedy = "the next run writes it again if the disk has space";
    (!is_there).then(|| Finding::warn("disk", text, remedy.to_owned()))
}
