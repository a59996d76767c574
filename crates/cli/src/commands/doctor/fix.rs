//! `doctor --fix`: ends leftover processes, and removes runs that never started.

use std::path::PathBuf;

use raymond_core::ids::RunId;
use raymond_engine::abandoned::{self, RemovalFailures};
use raymond_engine::discard::discard;
use raymond_engine::owned::end_leftover_processes;
use raymond_engine::project::Project;

use super::runs::{Fixable, fixable};

/// Fixes everything that can be fixed, and returns a line for each action.
pub(super) async fn fix(project: &Project) -> Vec<String> {
    let Fixable { left, never_started } = fixable(project);
    let mut deeds = Vec::new();
    for run in left {
        deeds.push(end(project, &run).await);
    }
    for run in never_started {
        // Zero records: `discard` checks under the lock that the run has not started meanwhile.
        deeds.push(match discard(project, &run, 0) {
            Ok(()) => format!("removed {run}, which never started"),
            Err(error) => format!("could not remove {run}: {error}"),
        });
    }
    deeds.extend(remove_abandoned(project).await);
    let aside = project.root.removed_runs(project.disk.as_ref()).unwrap_or_default();
    if !aside.is_empty() {
        // Failures are not reported here, because doctor checks everything again afterwards.
        project.root.sweep(project.disk.as_ref()).ok();
    }
    deeds
}

/// Ends the processes of killed stateless calls, and removes their files.
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

/// Ends the leftover processes of a run, which carry its marker, and waits until they are dead.
async fn end(project: &Project, run: &RunId) -> String {
    match end_leftover_processes(project, run).await {
        Ok((ended, survivors)) if survivors.is_empty() => {
            let processes = if ended.len() == 1 { "process" } else { "processes" };
            format!("ended {} {processes} of {run}", ended.len())
        }
        Ok((_, survivors)) => {
            let pids: Vec<String> = survivors.iter().map(|left| left.pid.to_string()).collect();
            format!("could not end these processes of {run}: {}", pids.join(", "))
        }
        Err(error) => format!("could not end the processes of {run}: {error}"),
    }
}
