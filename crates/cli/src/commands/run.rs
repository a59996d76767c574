//! `raymond run`: a new run, from its first line to its result.

use std::collections::BTreeMap;
use std::path::Path;

use raymond_backends::claude::DEFAULT_MODE;
use raymond_core::diagnostic::{Diagnostic, Severity};
use raymond_core::ids::{BackendName, RunId};
use raymond_core::run::permissions::Checks;
use raymond_core::run::program::Answers;
use raymond_core::run::settings::Pinning;
use raymond_core::run::start_flags::StartFlags;
use raymond_core::run::{Input, Permissions, Program, Ralph, Requirements, Settings};
use raymond_core::view::{counted, quoted};
use raymond_core::workflow::{Definition, Reachability, template};
use raymond_engine::clock;
use raymond_engine::launch::{Launch, LaunchError, PrepareError, Prepared, prepare_with};
use raymond_engine::observe;
use raymond_engine::owned::OwnedRun;
use raymond_engine::project::Project;
use raymond_engine::runner::{self, Backends, DriveOutcome};
use raymond_engine::scope::ScopeError;

use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use crate::args::{Run, Steps};
use crate::backends::{self, Usable};
use crate::console::{Console, Interrupt};
use crate::documents::{Found, Shelf, is_document};
use crate::failure::{Failure, located, print_diagnostic};
use crate::interrupts::{self, Listener};
use crate::paths::absolute;
use crate::words::plain;
use crate::{config, runs, settings, strict, workflows};

use super::background::{self, Ground};
use super::farewell::farewell;
use super::report::{exit_code, report};
use super::resume;

pub(crate) fn run(flags: &Run) -> Result<u8, Failure> {
    if is_document(&flags.workflow) {
        check_document(flags)?;
        return start(flags, &Program::Crayfish { answers: Answers::Backend });
    }
    if flags.steps.workspace.is_some() || !flags.steps.schemas.paths.is_empty() {
        let message = "--workspace and --schema-path are for documents of steps (.json)";
        return Err(Failure::usage(message).hint("states work where the run was started"));
    }
    start(flags, &Program::States)
}

/// What states have and a document has not.
fn check_document(flags: &Run) -> Result<(), Failure> {
    if flags.input.is_some() {
        return Err(Failure::usage("a document of steps has no --input")
            .hint("hand it values with --var NAME=TEXT or --var NAME:=JSON"));
    }
    if flags.unpinned {
        return Err(Failure::usage("a document of steps is always pinned, with its schemas")
            .hint("leave out --unpinned"));
    }
    Ok(())
}

/// Starts a run of a program.
pub(super) fn start(flags: &Run, program: &Program) -> Result<u8, Failure> {
    let project = runs::project()?;
    let given = flags.ground.detached_as.as_ref().or(flags.beginning.id.as_ref());
    let run = run_id(given.map(String::as_str), &flags.workflow, program)?;
    if flags.beginning.id.is_some() && has_begun(&project, &run)? {
        return go_on(&project, run, flags, program);
    }
    begin(&project, run, flags, program)
}

/// There is such a run: it goes on, if that was asked for.
fn go_on(project: &Project, run: RunId, flags: &Run, program: &Program) -> Result<u8, Failure> {
    if !flags.beginning.or_resume {
        return Err(LaunchError::Exists(run).into());
    }
    check_same(project, &run, flags, program)?;
    resume::resume_run(project, &run, &resume::Wish::from_run(flags))
}

/// Checks everything, and only then creates the run.
fn begin(project: &Project, run: RunId, flags: &Run, program: &Program) -> Result<u8, Failure> {
    let config = config::load(project)?;
    let usual = backends::usual(&config);
    let asked = settings::of_run(config, &flags.governing);
    settings::check_backend(&asked)?;
    let vars = Vars::of(flags, program)?;
    let mut settings = Settings {
        vars: vars.typed().clone(),
        definition: if flags.unpinned { Pinning::Unpinned } else { Pinning::Pinned },
        start_flags: start_flags(flags)?,
        program: program.clone(),
        prices: Some(backends::own_prices(&asked)),
        ..settings::govern(Settings::default(), &asked)?
    };
    crate::room::for_programs(settings.max_parallel)?;
    settings.replayed_backend = backends::is_played(&settings).then_some(usual);
    let catalog = backends::catalog();
    let demand = Requirements { settings: &settings, catalog: &catalog };
    let weigh = |survey: &Reachability<'_>| {
        let strict = strict::warning(&settings, survey).into_iter().collect();
        [demand.of_start(survey), backends::misfits(&settings, survey), strict].concat()
    };
    let prepared = match &vars {
        Vars::OfDocument(vars) => prepare_document(flags, &vars.values, &weigh)?,
        Vars::OfStates(_) => prepare_with(&flags.workflow, &settings.program, &weigh)
            .map_err(|error| unprepared(error, &settings.program, &flags.workflow))?,
    };
    let Usable { backends, clients } =
        backends::usable(&asked, &settings, &Reachability::of(&prepared.definition))?;
    settings.clients = clients;
    if !flags.talk.quiet {
        warn(flags, &settings, &prepared);
    }
    match Ground::of(&flags.ground) {
        Ground::Fore => {}
        Ground::Back => return background::start(project, &run, flags.talk),
        Ground::Detached => background::own_session()?,
    }
    let line = first_line(&run, &settings, &prepared);
    let launch = Launch {
        run,
        nonce: clock::nonce(),
        workflow: absolute(&flags.workflow)?,
        cwd: absolute(flags.steps.workspace())?,
        input: flags.input.clone(),
        settings,
    };
    // Before it owns anything: whoever owns a run may be poked.
    let runtime = crate::runtime()?;
    let (owned, start) = match OwnedRun::create(project, prepared, launch) {
        // Somebody else has begun it meanwhile.
        Err(LaunchError::Exists(run)) => return go_on(project, run, flags, program),
        created => created?,
    };
    if !flags.talk.quiet {
        crate::say!("{line}");
    }
    drive(&runtime, owned, backends, (vec![start], Console::new(flags.talk, Interrupt::Stops)))
}

/// Says what is worth a look before the run begins.
fn warn(flags: &Run, settings: &Settings, prepared: &Prepared) {
    for warning in &prepared.warnings {
        print_diagnostic(&located(warning.clone(), &flags.workflow));
    }
    if flags.input.is_none()
        && settings.program == Program::States
        && let Some(line) = missing_input(&prepared.definition)
    {
        crate::say!("warning: {line}");
    }
    if let Some(warning) = backends::unanswered(settings, &prepared.definition) {
        print_diagnostic(&warning);
    }
}

/// What was named, for whoever begins such a run anew.
fn start_flags(flags: &Run) -> Result<StartFlags, Failure> {
    let Steps { schemas, workspace } = &flags.steps;
    Ok(StartFlags {
        workspace: workspace.as_deref().map(absolute).transpose()?,
        schema_paths: schemas.paths.clone(),
        backend: flags.governing.backend.as_deref().map(BackendName::new),
    })
}

/// Template variables.
enum Vars {
    OfStates(BTreeMap<String, String>),
    OfDocument(settings::DocumentVars),
}

impl Vars {
    fn of(flags: &Run, program: &Program) -> Result<Self, Failure> {
        let pairs = &flags.beginning.vars;
        Ok(match program {
            Program::Crayfish { .. } => Self::OfDocument(settings::document_vars(pairs)?),
            Program::States | Program::Ralph(_) => Self::OfStates(settings::vars(pairs)?),
        })
    }

    /// As they were typed.
    fn typed(&self) -> &BTreeMap<String, String> {
        match self {
            Self::OfStates(vars) => vars,
            Self::OfDocument(vars) => &vars.typed,
        }
    }
}

/// A document with its variables and schemas; `weigh` says what else stands in the way.
fn prepare_document(
    flags: &Run,
    vars: &Map<String, Value>,
    weigh: &dyn Fn(&Reachability<'_>) -> Vec<Diagnostic>,
) -> Result<Prepared, Failure> {
    let shelf = Shelf::open(flags.steps.workspace(), &flags.steps.schemas.paths)?;
    let prepared = Found::read(&flags.workflow)?.prepare(&flags.workflow, vars, &shelf)?;
    let warnings = weigh(&Reachability::of(&prepared.definition));
    if warnings.iter().any(|found| found.severity == Severity::Error) {
        return Err(Failure::invalid("the workflow", warnings).within(&flags.workflow));
    }
    Ok(Prepared { warnings, ..prepared })
}

/// What the first prompt asks for, where nothing can be bound to it.
fn missing_input(definition: &Definition) -> Option<String> {
    let entry = definition.states.get(&definition.entry)?;
    let names = template::render(&entry.body, &mut |_| None).unknown;
    let name = names.iter().find(|name| matches!(name.as_str(), "input" | "result"))?;
    let state = plain(entry.name.as_str());
    Some(format!("{state} has {{{{{name}}}}}, and no --input was given: it will be empty"))
}

/// A prompt that is missing is looked for among prompts, and a workflow among documents.
fn unprepared(error: PrepareError, program: &Program, workflow: &Path) -> Failure {
    let failure = match (program, &error) {
        (Program::Ralph(_), PrepareError::Scope(ScopeError::Missing(path))) => {
            let failure = Failure::usage(error.to_string());
            match workflows::nearest_prompt(path) {
                Some(nearest) => failure.hint(format!("did you mean {}?", nearest.display())),
                None => failure.hint("ralph repeats one prompt: a .md file that says what to do"),
            }
        }
        (Program::States, PrepareError::Invalid(_)) => match workflows::document_in(workflow) {
            Some(document) => {
                let named = quoted(&document.display().to_string());
                let hint = format!("it holds a document of steps: `raymond run {named}` runs that");
                Failure::from(error).hint(hint)
            }
            None => error.into(),
        },
        (Program::States | Program::Ralph(_) | Program::Crayfish { .. }, _) => error.into(),
    };
    failure.within(workflow)
}

/// Going on with a run of another workflow, or with another input, would be a surprise.
fn check_same(
    project: &Project,
    run: &RunId,
    flags: &Run,
    program: &Program,
) -> Result<(), Failure> {
    let Ok(seen) = runs::look(project, run) else { return Ok(()) };
    if seen.head.seq == 0 {
        // Its owner is about to say what it is.
        return Ok(());
    }
    let begun = &seen.head.run;
    // A workflow that is gone is a matter for the resume.
    if absolute(&flags.workflow).is_ok_and(|named| named != begun.workflow) {
        return Err(Failure::usage(format!("{run} is a run of {}", begun.workflow))
            .hint("name that workflow, or another --run-id"));
    }
    check_program(run, &begun.settings.program, program)?;
    let vars = Vars::of(flags, program)?;
    let other_vars = !vars.typed().is_empty() && *vars.typed() != begun.settings.vars;
    let other_input = match &flags.input {
        Some(input) => {
            let blobs = project.blobs(&project.paths(run));
            let begun = seen.head.ledger.input.as_ref();
            Some(input) != begun.map(|begun| observe::load(&blobs, begun)).transpose()?.as_ref()
        }
        None => false,
    };
    let other = match (other_input, other_vars) {
        (true, true) => "--input and --var",
        (true, false) => "--input",
        (false, true) => "--var",
        (false, false) => return Ok(()),
    };
    Err(Failure::usage(format!("{run} began with another {other}")).hint(as_it_is(run)))
}

/// The ways out for whoever asks a run to become another one.
fn as_it_is(run: &RunId) -> String {
    format!("go on with it as it is: raymond resume {run}; or name another --run-id")
}

/// A loop does not become a workflow, nor another loop; only the number of its iterations may change.
fn check_program(run: &RunId, begun: &Program, asked: &Program) -> Result<(), Failure> {
    let until = |program: &Program| program.ralph().map(|ralph| ralph.until.clone());
    if until(begun) == until(asked) {
        return Ok(());
    }
    let what = match begun {
        Program::States | Program::Crayfish { .. } => "was started by `raymond run`".to_owned(),
        Program::Ralph(Ralph { until: None, .. }) => "is a loop without --until".to_owned(),
        Program::Ralph(Ralph { until: Some(command), .. }) => {
            format!("is a loop with --until {}", plain(&quoted(command)))
        }
    };
    Err(Failure::usage(format!("{run} {what}")).hint(as_it_is(run)))
}

/// Whether anything was ever recorded of a run. Whatever is wrong with it, a resume says so.
fn has_begun(project: &Project, run: &RunId) -> Result<bool, Failure> {
    Ok(project.runs()?.contains(run) && runs::is_started(project, run))
}

/// Drives an owned run to its end and says how it went.
pub(super) fn drive(
    runtime: &Runtime,
    owned: OwnedRun,
    backends: Backends,
    (inputs, mut console): (Vec<Input>, Console),
) -> Result<u8, Failure> {
    let (run, blobs) = (owned.paths.directory.clone(), std::sync::Arc::clone(&owned.blobs));
    interrupts::leave_to(Listener::Owner);
    let driven = runtime.block_on(runner::drive(owned, backends, inputs, &mut console));
    farewell(runtime, move || {
        let said = console.end();
        let driven = driven.map_err(|error| cut_short(error.into(), &run))?;
        let DriveOutcome { head, status, signal } = driven;
        report(&head, status, &blobs, &said)?;
        Ok(exit_code(status, signal))
    })
}

/// A run that its machine does not let go on is not lost.
fn cut_short(failure: Failure, directory: &Path) -> Failure {
    let run = directory.file_name().unwrap_or_default().to_string_lossy();
    failure.then(format!("what was recorded is safe; to go on: raymond resume {run}"))
}

/// The first line says what governs the run.
fn first_line(run: &RunId, settings: &Settings, prepared: &Prepared) -> String {
    let cap = settings.budget.map_or_else(|| "no cap".to_owned(), |cap| format!("cap {cap}"));
    let Prepared { definition, .. } = prepared;
    let clients = clients(settings, &asked(settings, definition));
    if let Some(ralph) = settings.program.ralph() {
        let parts = [vec![cap], clients, vec![looped(ralph, settings, definition)]];
        return plain(&format!("{run}: {}", parts.concat().join(" · ")));
    }
    let mut parts = vec![cap, format!("{} at a time", settings.max_parallel)];
    let states = &definition.states;
    parts.extend(clients);
    if let Some(work) = &definition.work {
        let steps = counted(work.document.steps().len() as u64, "step");
        parts.push(format!("{steps} pinned"));
        return format!("{run}: {}", parts.join(" · "));
    }
    let s = if states.len() == 1 { "state" } else { "states" };
    let pinned = match settings.definition {
        Pinning::Pinned => "pinned",
        Pinning::Unpinned => "read at every visit",
    };
    parts.push(format!("{} {s} {pinned}", states.len()));
    format!("{run}: {}", parts.join(" · "))
}

/// `PROMPT.md up to 50 times, until `cargo test` passes`
fn looped(ralph: &Ralph, settings: &Settings, definition: &Definition) -> String {
    let pinned = match settings.definition {
        Pinning::Pinned => ", pinned",
        Pinning::Unpinned => "",
    };
    format!("{}{pinned}", ralph.describe(&definition.entry))
}

/// The backends that may be asked. Replies that stand in for all of them are the only one.
fn asked<'a>(settings: &'a Settings, definition: &'a Definition) -> Vec<&'a str> {
    let asked = backends::asked(settings, &Reachability::of(definition));
    if backends::is_played(settings) && !asked.is_empty() {
        return vec![settings.backend.as_str()];
    }
    asked.into_keys().map(BackendName::as_str).collect()
}

/// Who answers, unless it goes without saying, and what it may do: `acceptEdits + 3 allowed`.
fn clients(settings: &Settings, backends: &[&str]) -> Vec<String> {
    let Permissions { mode, allow, deny, checks } = &settings.permissions;
    let counted = |count: usize, word: &str| match count {
        0 => String::new(),
        count => format!(" + {count} {word}"),
    };
    let mode = mode.as_deref().unwrap_or(DEFAULT_MODE);
    let may = match checks {
        Checks::Kept => {
            format!("{mode}{}{}", counted(allow.len(), "allowed"), counted(deny.len(), "denied"))
        }
        Checks::Skipped => "no permissions asked".to_owned(),
    };
    match backends {
        [] => Vec::new(),
        ["scripted"] => vec!["scripted".to_owned()],
        ["claude"] => vec![may],
        several => vec![several.join(" + "), may],
    }
}

/// `<workflow name>-<date>-<short random>`, unless it is given; a loop is named after its prompt.
fn run_id(given: Option<&str>, workflow: &Path, program: &Program) -> Result<RunId, Failure> {
    if let Some(given) = given {
        return given.parse().map_err(|error| Failure::usage(format!("--run-id: {error}")));
    }
    let absolute = workflow.canonicalize().unwrap_or_else(|_| workflow.to_owned());
    let name = match program {
        Program::States | Program::Crayfish { .. } => workflows::name(&absolute),
        Program::Ralph(_) => workflows::loop_name(&absolute),
    };
    let date = &clock::now().to_string()[..10].replace('-', "");
    let random = &clock::nonce().to_string()[..6];
    format!("{name}-{date}-{random}").parse().map_err(|error| Failure::usage(format!("{error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_clients_may_do() {
        let check = |change: &dyn Fn(&mut Settings), expected: &[&str]| {
            let mut settings = Settings::default();
            change(&mut settings);
            assert_eq!(clients(&settings, &["claude"]), expected);
        };
        let tools = |count: usize| vec!["Edit".to_owned(); count];
        check(&|_| {}, &["acceptEdits"]);
        check(&|s| s.permissions.allow = tools(3), &["acceptEdits + 3 allowed"]);
        check(&|s| s.permissions.deny = tools(1), &["acceptEdits + 1 denied"]);
        check(&|s| s.permissions.mode = Some("plan".into()), &["plan"]);
        check(&|s| s.permissions.checks = Checks::Skipped, &["no permissions asked"]);
    }

    #[test]
    fn the_first_line_says_who_answers_unless_it_is_claude_alone() {
        let check = |backends: &[&str], expected: &[&str]| {
            assert_eq!(clients(&Settings::default(), backends), expected);
        };
        check(&[], &[]);
        check(&["claude"], &["acceptEdits"]);
        check(&["scripted"], &["scripted"]);
        check(&["codex"], &["codex", "acceptEdits"]);
        check(&["claude", "codex"], &["claude + codex", "acceptEdits"]);
    }
}
