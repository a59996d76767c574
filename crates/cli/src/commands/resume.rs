//! `raymond resume`: continues a run.
//!
//! Checks that need no owner come first (`before_opening`), then this process becomes the owner,
//! checks the rest (`preflight`), prints the plan and drives the run. Edited states are handled in
//! `edits`, runs that cannot continue in `already_ended`.

mod already_ended;
mod edits;
mod preflight;

use raymond_backends::contract::AttachResult;
use raymond_backends::process::{Identity, Leftover};
use raymond_core::crayfish::StepId;
use raymond_core::decide::Refusal;
use raymond_core::ids::RunId;
use raymond_core::run::effect::in_flight;
use raymond_core::run::outcome::Outcome;
use raymond_core::run::settings::Pinning;
use raymond_core::run::stop::Interruption;
use raymond_core::run::stop::StopMode;
use raymond_core::run::{Input, Phase, Program, Run, Settings};
use raymond_core::view::{Fate, Plan, States};
use raymond_engine::backends::Backends;
use raymond_engine::driver::Head;
use raymond_engine::inspect::{Inspection, leftover_processes};
use raymond_engine::owned::{self, LeftoverClients, OpenOptions, OpenReport, OwnError, OwnedRun};
use raymond_engine::pin::Pin;
use raymond_engine::prepare::Prepared;
use raymond_engine::project::Project;
use raymond_store::journal::{self, Tail};
use raymond_store::lock::Takeover;

use crate::args::{OutputFlags, ResumeFlags};
use crate::backends::{self, UsableBackends};
use crate::console::{Console, Interrupt};
use crate::failure::{Failure, print_diagnostics};
use crate::given_texts::GivenTexts;
use crate::paths::is_read_once;
use crate::{config, json as shapes, runs, settings};

use super::background::{self, DriveMode};
use super::drive::{drive, register};
use super::{print_json, print_text};
use already_ended::{after_rewind, end_cancelled, is_done, report_if_over};
use edits::{EditDecision, ResumeEdits, decide_edits};
use preflight::{
    Definitions, check_budget_left, check_cap, check_iterations, check_requirements,
    price_change_note, usable,
};

pub(crate) struct ResumeOptions<'a> {
    plan: bool,
    edits: ResumeEdits,
    how: OpenOptions,
    /// Variables of the document, as typed.
    vars: &'a [String],
    setting_flags: &'a config::Layer,
    max_iterations: Option<u32>,
    /// Whether all waits for a time end at once.
    now: bool,
    /// Whether only waits for a time end: see [`Input::Resume`].
    is_wake: bool,
    prices: Prices,
    drive_mode: DriveMode,
    /// The texts that a background process needs, as its standard input.
    handed_over: Vec<u8>,
    output: OutputFlags,
}

/// The prices that a run continues with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prices {
    /// The prices of the run.
    Kept,
    /// The prices of the current configuration.
    Current,
}

impl ResumeOptions<'_> {
    /// Returns the settings of the run with the flags of this resume.
    fn settings(&self, project: &Project, run: &Run) -> Result<Settings, Failure> {
        let config = config::load(project)?;
        // The configuration may name another default now; a run that already replays a backend
        // keeps it.
        let usual = backends::default_backend(&config);
        let current = backends::own_prices(&config);
        let asked = settings::layers_of_resume(config, self.setting_flags);
        settings::check_backend(&asked)?;
        let mut settings = settings::apply_config(run.settings.clone(), &asked)?;
        // The start of the run decided whether its process stays.
        settings.no_wait |= self.is_wake && run.settings.no_wait;
        // A journal without prices is older than this setting and uses the current ones. Otherwise
        // the run keeps its prices, because an agent could edit `raymond.toml`.
        if settings.prices.is_none() || self.prices == Prices::Current {
            settings.prices = Some(current);
        }
        // Recorded only while replies answer for every backend: this resume may switch to the real
        // one.
        let replayed_backend = settings.replayed_backend.take().unwrap_or(usual);
        settings.replayed_backend =
            backends::uses_only_replies(&settings).then_some(replayed_backend);
        if !self.vars.is_empty() {
            edits::check_variables(run, self.edits)?;
            settings.vars = edits::with_variables(run, self.vars)?;
        }
        match (&run.program, self.max_iterations) {
            (_, None) => {}
            (Program::Ralph(_), Some(most)) => settings.max_iterations = most,
            (Program::States | Program::Steps(_), Some(_)) => {
                let message =
                    format!("{} is not a loop; --max-iterations is for `raymond ralph`", run.id);
                return Err(Failure::usage(message)
                    .hint("to limit the visits of a state, set its `max_visits`"));
            }
        }
        Ok(settings)
    }
}

impl ResumeOptions<'_> {
    /// Returns the inputs of a resume with what the flags ask for.
    fn requested(&self, mut inputs: Vec<Input>) -> Vec<Input> {
        if let Some(Input::Resume(resume)) = inputs.last_mut() {
            resume.is_wake = self.is_wake;
        }
        inputs.extend(self.now.then_some(Input::Now));
        inputs
    }
}

impl<'a> ResumeOptions<'a> {
    /// Returns the options of `run --or-resume`.
    pub(super) fn from_run(flags: &'a crate::args::RunFlags, texts: &GivenTexts) -> Self {
        Self {
            plan: false,
            // `run` has no flags for edits, takeover or rewind, so the careful choices apply.
            edits: ResumeEdits::Undecided,
            how: OpenOptions {
                takeover: Takeover::Never,
                truncate_to: None,
                clients: LeftoverClients::Adopt,
            },
            vars: &[],
            setting_flags: &flags.setting_flags,
            max_iterations: flags.max_iterations,
            now: false,
            is_wake: false,
            prices: Prices::Kept,
            drive_mode: DriveMode::of(&flags.background),
            handed_over: texts.to_hand_over(),
            output: flags.output,
        }
    }

    /// Returns the options of `answer`, which continues a run without changing it.
    pub(super) fn from_answer(
        flags: &crate::args::AnswerFlags,
        setting_flags: &'a config::Layer,
    ) -> Self {
        Self {
            plan: false,
            edits: ResumeEdits::Undecided,
            how: OpenOptions {
                takeover: Takeover::Never,
                truncate_to: None,
                clients: LeftoverClients::Adopt,
            },
            vars: &[],
            setting_flags,
            max_iterations: None,
            now: false,
            // An answer must not pay for another attempt of a failed agent.
            is_wake: true,
            prices: Prices::Kept,
            drive_mode: DriveMode::of(&flags.background),
            handed_over: Vec::new(),
            output: flags.output,
        }
    }

    fn from_resume(flags: &'a ResumeFlags) -> Self {
        let edits = match (flags.with_current, flags.pinned) {
            (true, _) => ResumeEdits::Adopt,
            (false, true) => ResumeEdits::Ignore,
            (false, false) => ResumeEdits::Undecided,
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
            vars: &flags.vars,
            setting_flags: &flags.setting_flags,
            max_iterations: flags.max_iterations,
            now: flags.now,
            is_wake: flags.wake,
            prices: if flags.current_prices { Prices::Current } else { Prices::Kept },
            drive_mode: DriveMode::of(&flags.background),
            handed_over: Vec::new(),
            output: flags.output,
        }
    }
}

pub(crate) fn resume(flags: &ResumeFlags) -> Result<u8, Failure> {
    // The hidden flag exists only for this message: clap alone would report an unknown argument.
    if flags.input.is_some() {
        return Err(Failure::usage("--input can be set only when a run starts")
            .hint("start a new run with `raymond run`"));
    }
    let replies = flags.setting_flags.replies.as_ref();
    if replies.is_some_and(|file| is_read_once(&file.value)) {
        return Err(Failure::usage("a resume needs a file of replies, not a pipe")
            .hint("write them to a file; without --replies, the run keeps its replies"));
    }
    if flags.truncate_to == Some(0) {
        return Err(Failure::usage(
            "--truncate-to 0 would discard the whole run: record 1 starts it",
        )
        .hint("start a new run with `raymond run`"));
    }
    let project = runs::project()?;
    // The starter of a background run has resolved `@last` or a prefix already. Resolving it again
    // here could find another run.
    let run = match flags.background.detached_as.as_ref().or(flags.run.as_ref()) {
        Some(wanted) => runs::find(&project, wanted)?,
        None => runs::only_unfinished(&project)?,
    };
    resume_run(&project, &run, &ResumeOptions::from_resume(flags))
}

pub(super) fn resume_run(
    project: &Project,
    run: &RunId,
    options: &ResumeOptions<'_>,
) -> Result<u8, Failure> {
    // Checks without a lock come first, so that a hopeless resume does not disturb the owner of the
    // run.
    let seen = match before_opening(project, run, options)? {
        BeforeOpening::Done(code) => return Ok(code),
        BeforeOpening::Open(seen) => seen,
    };
    // Behind the checks above, so that `--detach` refuses on the user's terminal. Before the lock,
    // because the background process has to be the owner.
    match options.drive_mode {
        DriveMode::Foreground => {}
        DriveMode::StartBackground => {
            return background::start(project, run, options.output, options.handed_over.clone());
        }
        DriveMode::Detached => background::own_session()?,
    }
    // Before this process owns the run: the runtime handles SIGUSR1, with which other processes
    // wake an owner.
    let runtime = crate::runtime::runtime()?;
    // A recovery reads transcripts of every client, even of one that cannot be started any more.
    let known = |settings: &Settings| backends::known(project, settings);
    let opened =
        runtime.block_on(OwnedRun::open_with_backends(project, run, options.how, seen, &known));
    let owned = opened.map_err(|error| Failure::from(error).naming_run(run))?;
    // Printed even if a check below refuses: a rewind and ended processes cannot be undone.
    report_opening(&owned.found);
    // `open_with_backends` refuses a run without records, so this check only protects the code
    // below if that changes.
    if owned.head.seq == 0 {
        return Err(Failure::never_started(run));
    }
    // A rewind may lead back to a completed run, and another process may have completed or
    // cancelled the run since it was read.
    if is_done(&owned.head.run) {
        // Releases the lock first: `after_rewind` takes it again to update the state file, and a
        // run with an owner would count as driven.
        drop(owned);
        return after_rewind(project, &runs::look(project, run)?, options);
    }
    // From the run as opened, not as seen before the lock: another owner may have changed the
    // settings in between.
    let mut settings = options.settings(project, &owned.head.run)?;
    // Refusals that need only the run come first: `usable` below starts every client to ask for its
    // version, which may take seconds.
    check_budget_left(&owned.head, &settings)?;
    check_iterations(&owned.head.run, &settings)?;
    // Behind `settings`, because this resume may raise `--max-parallel`.
    crate::resource_limits::raise_for_programs(settings.max_parallel)?;
    // Before the checks of states and backends, which have to look at the states that the run will
    // use.
    let EditDecision { adopt, changed, line } =
        decide_edits(&owned.head, &owned.definition, options.edits, &settings)?;
    // These refusals come before the first record, so that a refused resume leaves the run
    // unchanged.
    let definitions = Definitions { pinned: &owned.definition, adopted: adopt.as_ref() };
    let warnings = check_requirements(project, &owned.head.run, &settings, definitions)?;
    let UsableBackends { backends, clients, answers } =
        usable(project, &owned.head.run, &settings, definitions)?;
    // A turn that started with earlier settings left its transcript with an earlier backend.
    let backends = with_earlier_backends(project, backends, &owned.head.run.settings, &settings);
    let states = adopt.as_ref().map_or(States::AsPinned, |_| States::Edited);
    let (mut owned, adopted) = adopted(owned, adopt, changed)?;
    print_diagnostics(&warnings);
    // Printed after the refusals above, because a refused resume should print only its reason.
    let kept = price_change_note(project, &owned.head.run, &settings)?;
    // Before `extend` below, which overwrites the recorded versions.
    let replaced = backends::version_changes(&settings.clients, &clients);
    for line in line.into_iter().chain(kept).chain(replaced) {
        crate::say!("raymond: {line}");
    }
    // `extend` keeps versions of clients that this resume did not have to check.
    settings.clients.extend(clients);
    settings.answers = answers;
    // The plan is made before the outcomes of running turns are known; `knowing` adds them below.
    let (plan, reported) = (planned(&owned.head, &settings, states), owned.found.ended.len());
    // The last possible refusal: a transcript that cannot be read. It comes behind `adopt`, so
    // adopted states stay adopted.
    let resumed = runtime.block_on(owned.resume_inputs(settings, &backends));
    let resumed = resumed.map_err(|error| Failure::from(error).naming_run(run))?;
    let inputs = adopted.into_iter().chain(options.requested(resumed)).collect::<Vec<_>>();
    // Only the processes that `resume_inputs` ended: `report_opening` has printed the others.
    report_ended(&owned.found.ended[reported..]);
    if !options.output.quiet {
        crate::say!("{run}: {}", plan.knowing(&owned.head.run, &inputs));
    }
    register(project, &config::load(project)?, options.output);
    let console = console(&owned, options.output);
    drive(&runtime, owned, backends, inputs, console)
}

/// Returns the console of a resumed run. It may draw live rows at once, so all plain lines must be
/// on stderr already.
fn console(owned: &OwnedRun, output: OutputFlags) -> Console {
    let mut console = Console::new(output, Interrupt::Stops);
    // The feed contains only new records, so the rows start from the opened run.
    console.catch_up(&owned.head);
    console
}

/// Uses the edited states or the edited document, if there are any. A document is recorded by the
/// returned input, together with the resume.
fn adopted(
    owned: OwnedRun,
    adopt: Option<Prepared>,
    changed: Vec<StepId>,
) -> Result<(OwnedRun, Option<Input>), Failure> {
    let Some(current) = adopt else { return Ok((owned, None)) };
    if owned.head.run.program.steps().is_some() {
        let (owned, adopt) = owned.with_document(current, changed)?;
        return Ok((owned, Some(adopt)));
    }
    let run = owned.head.run.id.clone();
    // Writes the first record of this resume, or none if the core refuses the edited states.
    let owned = owned.adopt(current)?.map_err(|refusal| {
        let refusal = match refusal {
            Refusal::WaitGone { .. } => {
                format!("could not resume `{run}` with the edited workflow: {refusal}")
            }
            other => other.to_string(),
        };
        let hint = format!("restore it, or run `raymond resume {run} --pinned`");
        Failure::usage(refusal).hint(hint)
    })?;
    Ok((owned, None))
}

/// Adds the backends of the earlier settings, which can read the transcripts of their clients.
fn with_earlier_backends(
    project: &Project,
    mut backends: Backends,
    before: &Settings,
    now: &Settings,
) -> Backends {
    let former = backends::known(project, before);
    // Replies may stand in for another backend. With another replies file, what earlier turns left
    // belongs to the former one, although both answer for the same name.
    if before.replies == now.replies {
        backends.replace_missing(former);
    } else {
        backends.replace(former);
    }
    backends
}

/// The result of the checks that need no owner.
enum BeforeOpening {
    /// The command is finished, with this exit code.
    Done(u8),
    /// The run must be opened. It was read already, unless a rewind will discard records.
    Open(Option<Box<Inspection>>),
}

fn before_opening(
    project: &Project,
    run: &RunId,
    options: &ResumeOptions<'_>,
) -> Result<BeforeOpening, Failure> {
    let seen = match (runs::look(project, run), options.how.truncate_to) {
        // The unreadable part may be what the rewind discards.
        (Err(_), Some(_)) => {
            return runs::check_started(project, run).map(|()| BeforeOpening::Open(None));
        }
        (seen, _) => seen?,
    };
    if !options.vars.is_empty() {
        edits::check_variables(&seen.head.run, options.edits)?;
    }
    // A rewind to the last record of an intact journal discards nothing: it is an ordinary resume.
    let is_whole = matches!(seen.journal.tail, Tail::Clean);
    if options.how.truncate_to.is_some_and(|last| last != seen.head.seq || !is_whole) {
        // A rewind keeps all costs, so the cap is checked against the costs before it.
        if options.setting_flags.budget.is_some() {
            check_cap(&seen.head, &options.settings(project, &seen.head.run)?)?;
        }
        return Ok(BeforeOpening::Open(None));
    }
    // A run that has ended or was cancelled needs its own answer, even with `--plan`: no turn of it
    // continues.
    if let Some(code) = report_if_over(project, &seen, options)? {
        return Ok(BeforeOpening::Done(code));
    }
    if seen.head.run.phase == Phase::Stopping(StopMode::Cancel) {
        return end_cancelled(project, &seen, options).map(BeforeOpening::Done);
    }
    if options.plan {
        return only_plan(project, &seen, options).map(BeforeOpening::Done);
    }
    Ok(BeforeOpening::Open(Some(Box::new(seen))))
}

/// Returns the plan. With edited or unpinned states it names no backends, because the states may
/// name other ones.
fn planned(Head { run, ledger, .. }: &Head, settings: &Settings, states: States) -> Plan {
    let plan = Plan::of(run, ledger, settings);
    match (states, settings.definition) {
        (States::AsPinned, Pinning::Pinned) => plan,
        (States::Edited | States::Unusable, _) | (States::AsPinned, Pinning::Unpinned) => {
            plan.unnamed()
        }
    }
}

/// Prints the plan of `--plan` without changing anything.
fn only_plan(
    project: &Project,
    seen: &Inspection,
    options: &ResumeOptions<'_>,
) -> Result<u8, Failure> {
    let run = &seen.head.run;
    let paths = project.paths(&run.id);
    // `--plan` takes no lock, but a plan for a run that another process drives would be wrong at
    // once.
    seen.check_free(project, options.how.takeover)?;
    // Opening the journal would refuse damage; `--plan` does not open it, so it refuses here.
    if let Tail::Damaged(damaged) = seen.journal.tail {
        return Err(journal::Error::Damaged { path: paths.journal, damaged }.into());
    }
    let settings = options.settings(project, run)?;
    check_budget_left(&seen.head, &settings)?;
    check_iterations(run, &settings)?;
    let pinned = Pin::definition_of(run, &project.blobs(&paths))?;
    // The same checks as in `resume_run`, so that a plan is printed only for a resume that would
    // work.
    let decision = decide_edits(&seen.head, &pinned, options.edits, &settings)?;
    let definitions = Definitions { pinned: &pinned, adopted: decision.adopt.as_ref() };
    let warnings = check_requirements(project, run, &settings, definitions)?;
    usable(project, run, &settings, definitions)?;
    print_diagnostics(&warnings);
    if let Some(line) = price_change_note(project, run, &settings)? {
        crate::say!("raymond: {line}");
    }
    let backends = backends::known(project, &settings);
    let backends = with_earlier_backends(project, backends, &run.settings, &settings);
    let (mut fates, mut ended) = (Vec::new(), Vec::new());
    for turn in in_flight(run) {
        let found = owned::find_turn(run, &paths, turn, &backends);
        match &found {
            AttachResult::Running => fates.push((turn.id.clone(), Fate::Adopted)),
            // The plan assumes already that such a turn continues or is repeated.
            AttachResult::Ended(Outcome::Interrupted { by: Interruption::Crash, .. }) => {}
            AttachResult::Ended(_) => fates.push((turn.id.clone(), Fate::Finished)),
            AttachResult::Unreadable { why } => {
                return Err(OwnError::Unreadable { why: why.clone() }.into());
            }
        }
        // A resume charges these turns before it checks which budget shares of adopted clients
        // still fit the cap, so the plan needs their costs.
        ended.extend(owned::turn_cost(&paths, turn, found).map(|spent| (turn.id.clone(), spent)));
    }
    let states = decision.adopt.as_ref().map_or(States::AsPinned, |_| States::Edited);
    let plan = planned(&seen.head, &settings, states).paying(run, ended).finding(fates);
    if options.output.json {
        print_json(shapes::plan(&run.id, &plan, decision.line.as_deref()))?;
    } else {
        let line = decision.line.map(|line| format!("{line}\n")).unwrap_or_default();
        let turns = plan.lines().into_iter().map(|line| format!("  {line}\n"));
        print_text(&format!("{line}{}: {plan}\n{}", run.id, turns.collect::<String>()))?;
    }
    Ok(0)
}

/// Prints what opening the run found.
fn report_opening(found: &OpenReport) {
    if let Some(torn) = &found.torn {
        let kept = torn.kept.as_ref().map(|path| format!("; a copy is in {}", path.display()));
        crate::say!(
            "raymond: record {} is incomplete and was discarded{}",
            torn.seq,
            kept.unwrap_or_default()
        );
    }
    if let Some(moved) = &found.moved {
        crate::say!("raymond: moved the discarded records to {}", moved.display());
    }
    report_leftovers(&found.ended, &found.survivors);
}

/// Ends the leftover processes of an ended run, whose owner may have been killed.
pub(super) fn end_leftover_processes(project: &Project, seen: &Inspection) -> Result<(), Failure> {
    // A living owner ends its processes itself.
    if seen.owner.is_some() || leftover_processes(seen).is_empty() {
        return Ok(());
    }
    let run = &seen.header.run;
    match crate::runtime::runtime()?.block_on(owned::end_leftover_processes(project, run)) {
        Ok((left, survivors)) => report_leftovers(&left, &survivors),
        // Not a failure: the run has ended, and the caller still reports its result.
        Err(error) => crate::say!("raymond: could not end the processes of {run}: {error}"),
    }
    Ok(())
}

/// Prints which leftover processes were ended, and how many were not.
pub(super) fn report_leftovers(left: &[Leftover], survivors: &[Identity]) {
    report_ended(left);
    if !survivors.is_empty() {
        crate::say!("raymond: could not end {} of them", survivors.len());
    }
}

fn report_ended(ended: &[Leftover]) {
    for left in ended {
        crate::say!("raymond: ended a leftover process: {}", left.command);
    }
}
