//! Drives an owned run in this process, for `raymond run` and `raymond resume`.

use std::path::Path;

use raymond_core::run::Input;
use raymond_engine::backends::Backends;
use raymond_engine::owned::OwnedRun;
use raymond_engine::project::Project;
use raymond_engine::runner::{self, DriveOutcome};
use tokio::runtime::Runtime;

use crate::args::OutputFlags;
use crate::config::Layer;
use crate::console::Console;
use crate::exit_code;
use crate::failure::Failure;
use crate::interrupts::{self, SignalOwner};
use crate::known_projects;

use super::finish::finish;
use super::report::report;

/// Drives an owned run to its end and reports how it ended.
pub(super) fn drive(
    runtime: &Runtime,
    owned: OwnedRun,
    backends: Backends,
    inputs: Vec<Input>,
    mut console: Console,
) -> Result<u8, Failure> {
    let (run, blobs) = (owned.paths.directory.clone(), std::sync::Arc::clone(&owned.blobs));
    interrupts::hand_over_to(SignalOwner::Owner);
    // The runner listens for signals from its first step on, so the early signal thread must not
    // end the process any more.
    let driven = runtime.block_on(runner::drive(owned, backends, inputs, &mut console));
    finish(runtime, move || {
        let said = console.end();
        // The console ends first: live rows must be gone before an error is printed.
        let driven = driven.map_err(|error| with_resume_hint(error.into(), &run))?;
        let DriveOutcome { head, status, signal } = driven;
        report(&head, status, &blobs, &said)?;
        Ok(exit_code::of_driven_run(status, signal))
    })
}

/// Registers the project of a run that this process is about to drive. The run works without the
/// registry, so a failure is only a detail.
pub(super) fn register(project: &Project, config: &Layer, output: OutputFlags) {
    let failed = known_projects::register(project, config);
    if let Some(line) = failed.filter(|_| output.verbose) {
        crate::say!("{line}");
    }
}

/// Adds that the run can be resumed after an error of the machine.
fn with_resume_hint(failure: Failure, directory: &Path) -> Failure {
    let run = directory.file_name().unwrap_or_default().to_string_lossy();
    failure.then(format!("the records are safe; to continue: raymond resume {run}"))
}
