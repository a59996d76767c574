//! `raymond resume`: says what it will do, and does it.

mod edits;
mod ground;
mod over;

use raymond_backends::contract::Attached;
use raymond_backends::process::{Identity, Leftover};
use raymond_core::ids::RunId;
use raymond_core::run::effect::in_flight;
use raymond_core::run::input::StopMode;
use raymond_core::run::settings::Pinning;
use raymond_core::run::{Phase, Program, Run, Settings};
use raymond_core::view::{Fate, Plan, States};
use raymond_engine::driver::Head;
use raymond_engine::inspect::{Inspection, leftover_processes};
use raymond_engine::owned::{self, LeftoverClients, OpenOptions, OpenReport, OwnError, OwnedRun};
use raymond_engine::pin::Pin;
use raymond_engine::project::Project;
use raymond_engine::runner::Backends;
use raymond_store::journal::{self, Tail};
use raymond_store::lock::Takeover;

use crate::args::{Governing, Resume, Talk};
use crate::backends::{self, Usable};
use crate::console::{Console, Interrupt};
use crate::failure::{Failure, print_diagnostic};
use crate::{config, json as shapes, runs, settings};

use super::background::{self, Ground};
use super::run::drive;
use super::{print_json, print_out};
use edits::{Edits, Weighed, weigh};
use ground::{check_cap, check_ground, check_money, kept_prices, usable};
use over::{after_cut, end_cancelled, is_done, is_over};

/// What a person wants of a resume.
pub(crate) struct Wish<'a> {
    plan: bool,
    edits: Edits,
    how: OpenOptions,
    governing: &'a Governing,
    max_iterations: Option<u32>,
    prices: Prices,
    ground: Ground,
    talk: Talk,
}

/// The prices that a run continues with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prices {
    /// As the run has them.
    Kept,
    /// As the configuration has them now.
    Current,
}

impl Wish<'_> {
    /// What the run is to be governed by from here on.
    fn settings(&self, project: &Project, run: &Run) -> Result<Settings, Failure> {
        let config = config::load(project)?;
        let usual = backends::usual(&config);
        let current = backends::own_prices(&config);
        let asked = settings::of_resume(config, self.governing);
        settings::check_backend(&asked)?;
        let mut settings = settings::govern(run.settings.clone(), &asked)?;
        if settings.prices.is_none() || self.prices == Prices::Current {
            settings.prices = Some(current);
        }
        let replayed_backend = settings.replayed_backend.take().unwrap_or(usual);
        settings.replayed_backend = backends::is_played(&settings).then_some(replayed_backend);
        match (&mut settings.program, self.max_iterations) {
            (_, None) => {}
            (Program::Ralph(ralph), Some(most)) => ralph.max_iterations = most,
            (Program::States | Program::Crayfish { .. }, Some(_)) => {
                let message = format!("{} is no loop: --max-iterations is for ralph", run.id);
                return Err(
                    Failure::usage(message).hint("`max_visits` of a state bounds its visits")
                );
            }
        }
        Ok(settings)
    }
}

impl<'a> Wish<'a> {
    /// `run --or-resume`
    pub(super) fn from_run(flags: &'a crate::args::Run) -> Self {
        Self {
            plan: false,
            edits: Edits::Undecided,
            how: OpenOptions {
                takeover: Takeover::Never,
                truncate_to: None,
                clients: LeftoverClients::Adopt,
            },
            governing: &flags.governing,
            max_iterations: flags.max_iterations,
            prices: Prices::Kept,
            ground: Ground::of(&flags.ground),
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
            how: OpenOptions {
                takeover,
                truncate_to: flags.truncate_to,
                clients: LeftoverClients::Adopt,
            },
            governing: &flags.governing,
            max_iterations: flags.max_iterations,
            prices: if flags.current_prices { Prices::Current } else { Prices::Kept },
            ground: Ground::of(&flags.ground),
            talk: flags.talk,
        }
    }
}

pub(crate) fn resume(flags: &Resume) -> Result<u8, Failure> {
    if flags.input.is_some() || !flags.vars.is_empty() {
        return Err(Failure::usage("--input and --var belong to the start of a run")
            .hint("start a new one with `raymond run`"));
    }
    if flags.truncate_to == Some(0) {
        return Err(Failure::usage("--truncate-to 0 leaves nothing: record 1 starts the run")
            .hint("start anew with `raymond run`"));
    }
    let project = runs::project()?;
    let run = match flags.ground.detached_as.as_ref().or(flags.run.as_ref()) {
        Some(wanted) => runs::find(&project, wanted)?,
        None => runs::only_unfinished(&project)?,
    };
    resume_run(&project, &run, &Wish::from_resume(flags))
}

pub(super) fn resume_run(project: &Project, run: &RunId, wish: &Wish<'_>) -> Result<u8, Failure> {
    let seen = match before_opening(project, run, wish)? {
        Before::Done(code) => return Ok(code),
        Before::Opening(seen) => seen,
    };
    match wish.ground {
        Ground::Fore => {}
        Ground::Back => return background::start(project, run, wish.talk),
        Ground::Detached => background::own_session()?,
    }
    let runtime = crate::runtime()?;
    let known = |settings: &Settings| backends::known(project, settings);
    let opened =
        runtime.block_on(OwnedRun::open_with_backends(project, run, wish.how, seen, &known));
    let owned = opened.map_err(|error| Failure::from(error).about(run))?;
    tell(&owned.found);
    if owned.head.seq == 0 {
        return Err(runs::never_started(run));
    }
    if is_done(&owned.head.run) {
        drop(owned);
        return after_cut(project, &runs::look(project, run)?, wish);
    }
    let mut settings = wish.settings(project, &owned.head.run)?;
    check_money(&owned.head, &settings)?;
    crate::room::for_programs(settings.max_parallel)?;
    let Weighed { adopt, line } = weigh(&owned.head, &owned.definition, wish.edits)?;
    // Whatever stands in the way is said before anything is recorded.
    let definitions = (&owned.definition, adopt.as_ref());
    let warnings = check_ground(project, &owned.head.run, &settings, definitions)?;
    let Usable { backends, clients } = usable(project, &owned.head.run, &settings, definitions)?;
    let backends = reading_earlier(project, backends, (&owned.head.run.settings, &settings));
    let states = adopt.as_ref().map_or(States::AsPinned, |_| States::Edited);
    let mut owned = match adopt {
        None => owned,
        Some(current) => owned.adopt(current)?.map_err(|refusal| {
            let hint = format!("put it back, or `raymond resume {run} --pinned`");
            Failure::usage(refusal.to_string()).hint(hint)
        })?,
    };
    if !wish.talk.quiet {
        warnings.iter().for_each(print_diagnostic);
    }
    let kept = kept_prices(project, &owned.head.run, &settings)?;
    let replaced = backends::replaced(&settings.clients, &clients);
    for line in line.into_iter().chain(kept).chain(replaced) {
        crate::say!("raymond: {line}");
    }
    settings.clients.extend(clients);
    let (plan, told) = (planned(&owned.head, &settings, states), owned.found.ended.len());
    let resumed = runtime.block_on(owned.resume_inputs(settings, &backends));
    let inputs = resumed.map_err(|error| Failure::from(error).about(run))?;
    tell_ended(&owned.found.ended[told..]);
    if !wish.talk.quiet {
        crate::say!("{run}: {}", plan.knowing(&owned.head.run, &inputs));
    }
    let mut console = Console::new(wish.talk, Interrupt::Stops);
    console.catch_up(&owned.head);
    drive(&runtime, owned, backends, (inputs, console))
}

/// Adds the backends of the earlier settings, which can read what their clients left.
fn reading_earlier(
    project: &Project,
    mut backends: Backends,
    (before, now): (&Settings, &Settings),
) -> Backends {
    let former = backends::known(project, before);
    if before.replies == now.replies {
        backends.replace_missing(former);
    } else {
        backends.replace(former);
    }
    backends
}

/// What came of all that needs no owner.
enum Before {
    /// That was all, with this exit code.
    Done(u8),
    /// The run is to be opened; it was seen like this, if it is not to be cut back.
    Opening(Option<Box<Inspection>>),
}

fn before_opening(project: &Project, run: &RunId, wish: &Wish<'_>) -> Result<Before, Failure> {
    let seen = match (runs::look(project, run), wish.how.truncate_to) {
        // What cannot be read may be what is to be cut away.
        (Err(_), Some(_)) => {
            return runs::check_started(project, run).map(|()| Before::Opening(None));
        }
        (seen, _) => seen?,
    };
    let is_whole = matches!(seen.journal.tail, Tail::Clean);
    if wish.how.truncate_to.is_some_and(|last| last != seen.head.seq || !is_whole) {
        // The run forgets no money with its records.
        if wish.governing.budget.is_some() {
            check_cap(&seen.head, &wish.settings(project, &seen.head.run)?)?;
        }
        return Ok(Before::Opening(None));
    }
    if let Some(code) = is_over(project, &seen, wish)? {
        return Ok(Before::Done(code));
    }
    if seen.head.run.phase == Phase::Stopping(StopMode::Cancel) {
        return end_cancelled(project, &seen, wish).map(Before::Done);
    }
    if wish.plan {
        return only_plan(project, &seen, wish).map(Before::Done);
    }
    Ok(Before::Opening(Some(Box::new(seen))))
}

/// The plan; under states that may be others than they were it is not known who goes on.
fn planned(Head { run, ledger, .. }: &Head, settings: &Settings, states: States) -> Plan {
    let plan = Plan::of(run, ledger, settings);
    match (states, settings.definition) {
        (States::AsPinned, Pinning::Pinned) => plan,
        (States::Edited | States::Unusable, _) | (States::AsPinned, Pinning::Unpinned) => {
            plan.unnamed()
        }
    }
}

/// `--plan`: what would be done, and nothing is touched.
fn only_plan(project: &Project, seen: &Inspection, wish: &Wish<'_>) -> Result<u8, Failure> {
    let run = &seen.head.run;
    let paths = project.paths(&run.id);
    seen.check_free(project, wish.how.takeover)?;
    if let Tail::Damaged(damaged) = seen.journal.tail {
        return Err(journal::Error::Damaged { path: paths.journal, damaged }.into());
    }
    let settings = wish.settings(project, run)?;
    check_money(&seen.head, &settings)?;
    let pinned =
        Pin::load(&run.manifest, &project.blobs(&paths)).and_then(|pin| pin.definition())?;
    let weighed = weigh(&seen.head, &pinned, wish.edits)?;
    let definitions = (&pinned, weighed.adopt.as_ref());
    let warnings = check_ground(project, run, &settings, definitions)?;
    usable(project, run, &settings, definitions)?;
    if !wish.talk.quiet {
        warnings.iter().for_each(print_diagnostic);
    }
    if let Some(line) = kept_prices(project, run, &settings)? {
        crate::say!("raymond: {line}");
    }
    let backends = backends::known(project, &settings);
    let backends = reading_earlier(project, backends, (&run.settings, &settings));
    let (mut fates, mut ended) = (Vec::new(), Vec::new());
    for turn in in_flight(run) {
        let found = owned::find_turn(run, &paths, turn, &backends);
        match &found {
            Attached::Finished(_) => fates.push((turn.id.clone(), Fate::Finished)),
            Attached::Running => fates.push((turn.id.clone(), Fate::Adopted)),
            Attached::Absent { .. } => {}
            Attached::Unreadable { why } => {
                return Err(OwnError::Unreadable { why: why.clone() }.into());
            }
        }
        ended.extend(owned::turn_cost(&paths, turn, found).map(|spent| (turn.id.clone(), spent)));
    }
    let states = weighed.adopt.as_ref().map_or(States::AsPinned, |_| States::Edited);
    let plan = planned(&seen.head, &settings, states).paying(run, ended).finding(fates);
    if wish.talk.json {
        print_json(shapes::plan(&run.id, &plan, weighed.line.as_deref()))?;
    } else {
        let line = weighed.line.map(|line| format!("{line}\n")).unwrap_or_default();
        let turns = plan.lines().into_iter().map(|line| format!("  {line}\n"));
        print_out(&format!("{line}{}: {plan}\n{}", run.id, turns.collect::<String>()))?;
    }
    Ok(0)
}

/// What opening the run found.
fn tell(found: &OpenReport) {
    if let Some(torn) = &found.torn {
        let kept = torn.kept.as_ref().map(|path| format!(", and kept as {}", path.display()));
        crate::say!(
            "raymond: record {} was never finished; it was cut off{}",
            torn.seq,
            kept.unwrap_or_default()
        );
    }
    if let Some(moved) = &found.moved {
        crate::say!("raymond: moved what was cut away to {}", moved.display());
    }
    tell_left(&found.ended, &found.survivors);
}

/// Ends what a run that is over has left running: its owner may have died before it did.
pub(super) fn end_strays(project: &Project, seen: &Inspection) -> Result<(), Failure> {
    if seen.owner.is_some() || leftover_processes(seen).is_empty() {
        return Ok(());
    }
    let run = &seen.header.run;
    match crate::runtime()?.block_on(owned::end_leftover_processes(project, run)) {
        Ok((left, survivors)) => tell_left(&left, &survivors),
        Err(error) => crate::say!("raymond: nothing of {run} was ended: {error}"),
    }
    Ok(())
}

/// What was left of a run, and was ended; or was not.
pub(super) fn tell_left(left: &[Leftover], survivors: &[Identity]) {
    tell_ended(left);
    if !survivors.is_empty() {
        crate::say!("raymond: {} of them did not end", survivors.len());
    }
}

fn tell_ended(ended: &[Leftover]) {
    for left in ended {
        crate::say!("raymond: ended a process that was left: {}", left.command);
    }
}
