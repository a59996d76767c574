//! `raymond run`: a new run, from its first line to its result.

use std::path::Path;

use raymond_core::ids::{AgentId, RunId};
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Input, Settings};
use raymond_core::view::{Status, way_out, why};
use raymond_engine::driver::Head;
use raymond_engine::launch::{Launch, LaunchError, Prepared, prepare};
use raymond_engine::owned::Owned;
use raymond_engine::project::Project;
use raymond_engine::shell::{self, Backends, Driven, Signal};
use raymond_engine::{clock, observe};

use crate::args::{Run, Talk};
use crate::console::Console;
use crate::failure::{Failure, print_diagnostic};
use crate::{json, runs, settings};

use super::{print_json, print_out, resume};

pub(crate) fn run(flags: Box<Run>) -> Result<u8, Failure> {
    let project = runs::project()?;
    let prepared = prepare(&flags.workflow)?;
    let run = run_id(flags.run_id.as_deref(), &flags.workflow)?;
    if flags.run_id.is_some() && project.runs()?.contains(&run) {
        return exists(&project, &run, *flags);
    }
    let settings = Settings {
        vars: settings::vars(&flags.vars)?,
        definition: if flags.unpinned { Pinning::Unpinned } else { Pinning::Pinned },
        ..settings::govern(Settings::default(), &flags.governing)?
    };
    let backends = settings::backends(&settings, &prepared.definition)?;
    if !flags.talk.quiet {
        prepared.warnings.iter().for_each(print_diagnostic);
        announce(&run, &settings, &prepared);
    }
    let launch = Launch {
        run,
        workflow: absolute(&flags.workflow)?,
        cwd: absolute(Path::new("."))?,
        input: flags.input,
        settings,
    };
    let (owned, start) = match Owned::create(&project, prepared, launch) {
        Err(LaunchError::Exists(run)) => return Err(LaunchError::Exists(run).into()),
        created => created?,
    };
    let console = Console::new(flags.talk);
    drive(&project, owned, backends, (vec![start], console), flags.talk)
}

/// An id that is taken is refused, unless its run may be gone on with.
fn exists(project: &Project, run: &RunId, flags: Run) -> Result<u8, Failure> {
    if !flags.or_resume {
        return Err(LaunchError::Exists(run.clone()).into());
    }
    resume::resume_run(project, run, &resume::Wish::from_run(&flags))
}

/// Drives an owned run to its end and says how it went.
pub(super) fn drive(
    project: &Project,
    owned: Owned,
    backends: Backends,
    (inputs, mut console): (Vec<Input>, Console),
    talk: Talk,
) -> Result<u8, Failure> {
    let paths = owned.paths.clone();
    let runtime = crate::runtime()?;
    let driven = runtime.block_on(shell::drive(owned, backends, inputs, &mut console))?;
    let Driven { head, status, signal } = driven;
    report(project, &paths, &head, status, talk)?;
    Ok(exit_code(status, signal))
}

/// The result on stdout, everything else on stderr.
pub(super) fn report(
    project: &Project,
    paths: &raymond_store::RunPaths,
    head: &Head,
    status: Status,
    talk: Talk,
) -> Result<(), Failure> {
    let blobs = project.blobs(paths);
    if !talk.quiet {
        summary(head, status);
    }
    if talk.json {
        return print_json(&json::with_results(head, status, &blobs));
    }
    match head.ledger.results.get(&AgentId::main()) {
        Some(result) if !talk.events => {
            let mut text = observe::load(&blobs, result)?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            print_out(&text)
        }
        Some(_) | None => Ok(()),
    }
}

fn summary(head: &Head, status: Status) {
    let run = &head.run;
    let cap = match run.settings.budget {
        Some(cap) => format!("spent {} of {cap}", run.spent),
        None => format!("spent {}", run.spent),
    };
    let dearest = head.ledger.dearest().map(|(state, amount)| {
        let percent = amount.0 * 100 / run.spent.0.max(1);
        format!("; {state} took {percent} %")
    });
    let unpriced = match run.unpriced {
        0 => String::new(),
        n => format!("; {n} turn(s) unpriced"),
    };
    anstream::eprintln!(
        "{status}: {} · {cap}{}{unpriced}",
        why(run, status),
        dearest.unwrap_or_default()
    );
    for id in run.failed.iter().take(20) {
        anstream::eprintln!("  failed: {id}");
    }
    if status != Status::Completed {
        anstream::eprintln!("to go on: {}", way_out(status).line(&run.id, &run.workflow));
    }
}

const fn exit_code(status: Status, signal: Option<Signal>) -> u8 {
    match (status, signal) {
        (Status::Stopped | Status::Interrupted, Some(Signal::Terminate)) => 143,
        (Status::Stopped | Status::Interrupted, Some(Signal::HangUp)) => 129,
        (status, _) => status.exit_code(),
    }
}

/// The first line says what governs the run.
fn announce(run: &RunId, settings: &Settings, prepared: &Prepared) {
    let cap = settings.budget.map_or("no cap".to_owned(), |cap| format!("cap {cap}"));
    let parallel = settings.max_parallel;
    let states = prepared.definition.states.len();
    let pinned = match settings.definition {
        Pinning::Pinned => "pinned",
        Pinning::Unpinned => "read at every visit",
    };
    let s = if states == 1 { "state" } else { "states" };
    let backend = &settings.backend;
    anstream::eprintln!("{run}: {cap} · {parallel} at a time · {backend} · {states} {s} {pinned}");
}

pub(super) fn absolute(path: &Path) -> Result<String, Failure> {
    let found = path.canonicalize();
    let found = found
        .map_err(|error| Failure::usage(format!("could not find {}: {error}", path.display())))?;
    found
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::usage(format!("the path {} is not UTF-8", path.display())))
}

/// `<workflow name>-<date>-<short random>`, unless it is given.
fn run_id(given: Option<&str>, workflow: &Path) -> Result<RunId, Failure> {
    if let Some(given) = given {
        return given.parse().map_err(|error| Failure::usage(format!("--run-id: {error}")));
    }
    let absolute = workflow.canonicalize().unwrap_or_else(|_| workflow.to_owned());
    let name = match (absolute.is_dir(), absolute.extension().is_some_and(|e| e == "zip")) {
        (true, _) => absolute.file_name(),
        (false, true) => absolute.file_stem(),
        (false, false) => absolute.parent().and_then(Path::file_name),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.unwrap_or_default().to_string_lossy().chars().map(plain).collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "run" } else { &name[..name.len().min(40)] };
    let date = &raymond_engine::statefile::time(clock::now())[..10].replace('-', "");
    let random = &clock::nonce().to_string()[..6];
    format!("{name}-{date}-{random}").parse().map_err(|error| Failure::usage(format!("{error}")))
}
