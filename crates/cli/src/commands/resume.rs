//! `raymond resume`: says what it will do, and does it.

use raymond_core::desk::{Lane, Phase as TurnPhase};
use raymond_core::ids::RunId;
use raymond_core::run::settings::{InterruptedScripts, Pinning};
use raymond_core::run::{Ending, Phase, Run};
use raymond_core::value::Value;
use raymond_core::view::Status;
use raymond_core::workflow::manifest::Changes;
use raymond_engine::driver::{Driver, Head};
use raymond_engine::launch::{Prepared, prepare};
use raymond_engine::look::{Look, look};
use raymond_engine::owned::{Opening, Owned};
use raymond_engine::pin::Pin;
use raymond_engine::project::Project;
use raymond_store::lock::Takeover;

use crate::args::{Governing, Resume, Talk};
use crate::console::Console;
use crate::failure::Failure;
use crate::{runs, settings};

use super::run::{drive, report};

/// What a person wants of a resume.
pub(crate) struct Wish<'a> {
    plan: bool,
    edits: Edits,
    how: Opening,
    governing: &'a Governing,
    talk: Talk,
}

/// Which states to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edits {
    /// Refuse to guess when it matters.
    Undecided,
    Adopt,
    Ignore,
}

impl<'a> Wish<'a> {
    /// `run --or-resume`
    pub(super) fn from_run(flags: &'a crate::args::Run) -> Self {
        Self {
            plan: false,
            edits: Edits::Undecided,
            how: Opening { takeover: Takeover::Never, truncate_to: None },
            governing: &flags.governing,
            talk: flags.talk,
        }
    }

    fn from_resume(flags: &'a Resume) -> Self {
        let edits = match (flags.with_current, flags.pinned) {
            (true, _) => Edits::Adopt,
            (false, true) => Edits::Ignore,
            (false, false) => Edits::Undecided,
        };
        let takeover = if flags.takeover { Takeover::OtherHost } else { Takeover::Never };
        Self {
            plan: flags.plan,
            edits,
            how: Opening { takeover, truncate_to: flags.truncate_to },
            governing: &flags.governing,
            talk: flags.talk,
        }
    }
}

#[expect(clippy::boxed_local, reason = "as it comes from the parser")]
pub(crate) fn resume(flags: Box<Resume>) -> Result<u8, Failure> {
    if flags.input.is_some() || !flags.vars.is_empty() {
        return Err(Failure::usage("--input and --var belong to the start of a run")
            .hint("start a new one with `raymond run`"));
    }
    let project = runs::project()?;
    let run = match &flags.run {
        Some(wanted) => runs::find(&project, wanted)?,
        None => runs::only_unfinished(&project)?,
    };
    resume_run(&project, &run, &Wish::from_resume(&flags))
}

pub(super) fn resume_run(project: &Project, run: &RunId, wish: &Wish<'_>) -> Result<u8, Failure> {
    if wish.how.truncate_to.is_none() {
        let seen = look(project, run)?;
        if let Some(code) = is_over(project, &seen, wish)? {
            return Ok(code);
        }
        if wish.plan {
            anstream::eprintln!("{}", plan(&seen.head));
            return Ok(0);
        }
    }
    let runtime = crate::runtime()?;
    let mut owned = runtime.block_on(Owned::open(project, run, wish.how))?;
    tell_found(&owned);
    if owned.head.seq == 0 {
        return Err(Failure::environment(format!("{run} was never started: nothing is recorded"))
            .hint("start it anew with `raymond run`"));
    }
    let old = &owned.head.run.settings;
    let settings = settings::govern(old.clone(), wish.governing)?;
    let adopted = weigh_edits(&owned, wish.edits)?;
    if let Some(prepared) = adopted {
        owned = adopt(owned, prepared)?;
    }
    let backends = settings::backends(&settings, &owned.definition)?;
    if !wish.talk.quiet {
        anstream::eprintln!("{run}: {}", plan(&owned.head));
    }
    let inputs = owned.resume_inputs(settings);
    let mut console = Console::new(wish.talk);
    if let Ok(seen) = look(project, run) {
        console.catch_up(&seen.records);
    }
    drive(project, owned, backends, (inputs, console), wish.talk)
}

/// A run that is over prints its result, or is refused.
fn is_over(project: &Project, seen: &Look, wish: &Wish<'_>) -> Result<Option<u8>, Failure> {
    match seen.head.run.phase {
        Phase::Ended(Ending::Completed) => {
            let paths = project.paths(&seen.header.run);
            report(project, &paths, &seen.head, Status::Completed, wish.talk)?;
            Ok(Some(0))
        }
        Phase::Ended(Ending::Cancelled) => {
            let run = &seen.head.run;
            Err(Failure::usage(format!("{} was cancelled, which is final", run.id))
                .code(8)
                .hint(format!("start anew with `raymond run {}`", run.workflow)))
        }
        Phase::Unborn | Phase::Open | Phase::Stopping(_) | Phase::Ended(_) => Ok(None),
    }
}

/// `reused 7 turns ($2.10), continuing 1, repeating 0`
fn plan(head: &Head) -> String {
    let run = &head.run;
    let cut = |turn: &&raymond_core::desk::Turn| {
        matches!(turn.phase, TurnPhase::Running { .. } | TurnPhase::Idle)
    };
    let (mut continuing, mut repeating) = (run.failed.len(), 0);
    for turn in run.desk.turns.values().filter(cut) {
        if run.failed.contains(&turn.id.agent) {
            continue;
        }
        match (&turn.lane, run.settings.interrupted_scripts) {
            (Lane::Script, InterruptedScripts::Rerun) => repeating += 1,
            (Lane::Script, InterruptedScripts::Fail) => {}
            (Lane::Prompt(_), _) => continuing += 1,
        }
    }
    let settled = head.ledger.settled;
    let s = if settled.turns == 1 { "turn" } else { "turns" };
    format!(
        "reused {} {s} ({}), continuing {continuing}, repeating {repeating}",
        settled.turns, settled.amount
    )
}

fn tell_found(owned: &Owned) {
    if let Some(torn) = &owned.found.torn {
        let kept = torn.kept.as_ref().map(|path| format!(", kept as {}", path.display()));
        anstream::eprintln!(
            "raymond: an unfinished record {} was cut off{}",
            torn.seq,
            kept.unwrap_or_default()
        );
    }
    for left in &owned.found.ended {
        anstream::eprintln!("raymond: ended a process that was left: {}", left.command);
    }
    if !owned.found.survivors.is_empty() {
        anstream::eprintln!("raymond: {} of them did not end", owned.found.survivors.len());
    }
}

/// The edited workflow, when the run is to use it. A failed run does not guess.
fn weigh_edits(owned: &Owned, edits: Edits) -> Result<Option<Prepared>, Failure> {
    let run = &owned.head.run;
    if run.settings.definition == Pinning::Unpinned {
        return Ok(None);
    }
    let current = match (prepare(run.workflow.as_ref()), edits) {
        (Ok(current), _) => current,
        (Err(_), Edits::Ignore) => return Ok(None),
        (Err(error), Edits::Adopt) => return Err(error.into()),
        (Err(_), Edits::Undecided) => {
            anstream::eprintln!("raymond: the workflow cannot be read any more; goes on as pinned");
            return Ok(None);
        }
    };
    let changes = current.definition.manifest().changes_since(&owned.definition.manifest());
    if changes == Changes::default() {
        return Ok(None);
    }
    let changed = describe(run, &changes);
    let failed = run.phase == Phase::Ended(Ending::Failed);
    match edits {
        Edits::Adopt => {
            anstream::eprintln!("raymond: adopts the edited states: {changed}");
            Ok(Some(current))
        }
        Edits::Undecided if failed => {
            let id = &run.id;
            Err(Failure::usage(format!("states changed since {id} started: {changed}")).hint(
                format!("raymond resume {id} --with-current, or raymond resume {id} --pinned"),
            ))
        }
        Edits::Undecided | Edits::Ignore => {
            anstream::eprintln!("raymond: goes on as pinned; edited since: {changed}");
            Ok(None)
        }
    }
}

/// Which states changed, and which of them were already visited.
fn describe(run: &Run, changes: &Changes) -> String {
    let visited = |name: &raymond_core::ids::StateName| {
        run.agents.values().any(|agent| agent.visits.contains_key(name))
    };
    let mut parts = Vec::new();
    for (word, names) in
        [("edited", &changes.changed), ("added", &changes.added), ("removed", &changes.removed)]
    {
        for name in names {
            let seen = if visited(name) { ", already visited" } else { "" };
            parts.push(format!("{name} ({word}{seen})"));
        }
    }
    parts.join(", ")
}

/// Records that the run uses the edited states from now on.
fn adopt(owned: Owned, prepared: Prepared) -> Result<Owned, Failure> {
    let manifest: Value = Pin::of(&prepared.loaded).store(&owned.blobs)?;
    let Owned { project, paths, lock, journal, blobs, head, definition, found, .. } = owned;
    let mut driver = Driver::new(head, definition, journal, raymond_engine::driver::Nobody);
    let at = raymond_engine::clock::now();
    let verdict = driver.adopt(at, prepared.definition, manifest)?;
    if let Err(refusal) = verdict {
        return Err(Failure::usage(refusal.to_string()).hint("put the state back, or --pinned"));
    }
    let origin = prepared.loaded.origin;
    let (head, definition, journal) = driver.into_parts();
    Ok(Owned { project, paths, lock, journal, blobs, head, definition, origin, found })
}
