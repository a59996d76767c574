//! What `--fix` does: ends processes that nobody drives, and removes runs that never were any.

use std::path::PathBuf;

use raymond_core::ids::RunId;
use raymond_engine::abandoned::{self, RemovalFailures};
use raymond_engine::discard::discard;
use raymond_engine::owned::end_leftover_processes;
use raymond_engine::project::Project;

use super::runs::{Fixable, fixable};

/// Mends what can be mended, and says what was done.
pub(super) async fn fix(project: &Project) -> Vec<String> {
    let Fixable { left, never_started } = fixable(project);
    let mut deeds = Vec::new();
    for run in left {
        deeds.push(end(project, &run).await);
    }
    for run in never_started {
        deeds.push(match discard(project, &run, 0) {
            Ok(()) => format!("removed {run}, which was never started"),
            Err(error) => format!("{run} was not removed: {error}"),
        });
    }
    deeds.extend(remove_abandoned(project).await);
    let aside = project.root.removed_runs(project.disk.as_ref()).unwrap_or_default();
    if !aside.is_empty() {
        // What stays is found when everything is checked again.
        project.root.sweep(project.disk.as_ref()).ok();
    }
    deeds
}

/// Ends the processes of stateless calls that were killed, and removes their files.
async fn remove_abandoned(project: &Project) -> Vec<String> {
    let found = abandoned::find(project);
    let RemovalFailures { processes, files } = abandoned::remove(&found).await;
    let mut deeds = Vec::new();
    let (ended, removed) =
        (found.processes.len() - processes.len(), found.files.len() - files.len());
    if ended > 0 {
        let noun = if ended == 1 { "process" } else { "processes" };
        deeds.push(format!("ended {ended} {noun} of killed `raymond crayfish` calls"));
    }
    if removed > 0 {
        let noun = if removed == 1 { "file" } else { "files" };
        deeds.push(format!("removed {removed} {noun} of killed `raymond crayfish` calls"));
    }
    deeds.extend(processes.iter().map(|left| format!("could not end process {}", left.pid)));
    let unremoved =
        |(path, why): &(PathBuf, String)| format!("could not remove {}: {why}", path.display());
    deeds.extend(files.iter().map(unremoved));
    deeds
}

/// They are found by their marker, and seen dead.
async fn end(project: &Project, run: &RunId) -> String {
    match end_leftover_processes(project, run).await {
        Ok((ended, survivors)) if survivors.is_empty() => {
            let processes = if ended.len() == 1 { "process" } else { "processes" };
            format!("ended {} {processes} of {run}", ended.len())
        }
        Ok((_, survivors)) => {
            let pids: Vec<String> = survivors.iter().map(|left| left.pid.to_string()).collect();
            format!("of {run} these did not end: {}", pids.join(", "))
        }
        Err(error) => format!("nothing of {run} was ended: {error}"),
    }
}
