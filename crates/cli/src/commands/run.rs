//! `raymond run`: starts a run, drives it and reports its end.
//!
//! Everything is checked before the run is created, so that a mistake leaves nothing behind. The
//! engine drives the run (`raymond_engine::runner`).

mod first_line;

use std::collections::BTreeMap;
use std::path::Path;

use raymond_core::diagnostic::{Diagnostic, Severity};
use raymond_core::extension::StateKind;
use raymond_core::ids::{BackendName, RunId};
use raymond_core::run::program::AnswerSource;
use raymond_core::run::settings::Pinning;
use raymond_core::run::start_flags::StartFlags;
use raymond_core::run::{Program, Ralph, Requirements, Settings};
use raymond_core::text::quoted;
use raymond_core::view::{OwnerState, Status};
use raymond_core::workflow::{Definition, Reachability, template, variables};
use raymond_engine::clock;
use raymond_engine::launch::{Launch, LaunchError};
use raymond_engine::observe;
use raymond_engine::owned::OwnedRun;
use raymond_engine::prepare::{PrepareError, Prepared, prepare_with};
use raymond_engine::project::Project;
use raymond_engine::scope::ScopeError;

use crate::args::{RunFlags, StepsFlags};
use crate::backends::{self, UsableBackends};
use crate::console::{Console, Interrupt};
use crate::documents::{DocumentFile, Mistake, SchemaDirs};
use crate::failure::{Failure, located, print_diagnostic};
use crate::given_texts::GivenTexts;
use crate::paths::absolute;
use crate::sanitize::sanitized;
use crate::{config, runs, settings, strict_budget, workflows};

use super::background::{self, DriveMode};
use super::drive::{drive, register};
use super::resume;
use first_line::first_line;

pub(crate) fn run(mut flags: RunFlags) -> Result<u8, Failure> {
    let project = runs::project()?;
    if flags.workflow.as_os_str().is_empty() {
        return Err(no_workflow(project.root.project()));
    }
    if let Some(found) = workflows::named(&flags.workflow, project.root.project()) {
        flags.workflow = found;
    } else if let Some(meant) = workflows::meant_in(project.root.project(), &flags.workflow) {
        return Err(Failure::usage(format!(
            "could not find a workflow {}",
            flags.workflow.display()
        ))
        .hint(format!("did you mean `raymond run {meant}`?")));
    }
    let inner = workflows::of_folder(&flags.workflow);
    if !inner.is_empty() {
        let folder = flags.workflow.display();
        return Err(Failure::usage(format!("{folder} is a folder of workflows, not a workflow"))
            .hint(format!("name one of them: {}", inner.join(", "))));
    }
    if workflows::is_document(&flags.workflow) {
        check_document(&flags)?;
        // Here backends answer agent steps. In a run of the tool `crayfish` the caller does, and
        // only the caller can continue it.
        return start(flags, &Program::steps_of(AnswerSource::Backend));
    }
    if flags.steps.workspace.is_some() || !flags.steps.schemas.paths.is_empty() {
        let message = "--workspace and --schema-path are for documents of steps (.json)";
        return Err(Failure::usage(message)
            .hint("leave them out: states work in the directory where the run started"));
    }
    start(flags, &Program::States)
}

/// Lists the workflows that the user can name.
fn no_workflow(project: &Path) -> Failure {
    let found = workflows::here(project);
    if found.is_empty() {
        return Failure::usage("no workflow is named, and there is none here")
            .hint("`raymond init` writes one, and `raymond init --list` names examples");
    }
    crate::say!("workflows here:");
    for name in found {
        crate::say!("  {name}");
    }
    Failure::usage("no workflow is named").hint("`raymond run NAME` starts one")
}

/// Refuses flags that documents do not have.
fn check_document(flags: &RunFlags) -> Result<(), Failure> {
    if flags.input.is_some() {
        return Err(Failure::usage("a document of steps has no --input")
            .hint("pass values with --var NAME=TEXT or --var NAME:=JSON"));
    }
    if flags.unpinned {
        return Err(Failure::usage("a document of steps is always pinned, with its schemas")
            .hint("remove --unpinned"));
    }
    Ok(())
}

/// Starts a run of a program, or resumes it with `--or-resume`.
pub(super) fn start(mut flags: RunFlags, program: &Program) -> Result<u8, Failure> {
    let texts = GivenTexts::of(&flags)?;
    flags.input.clone_from(&texts.input);
    let project = runs::project()?;
    // A background process gets the id that its starter chose and printed, so it must not make a
    // new one.
    let given = flags.background.detached_as.as_ref().or(flags.creation.id.as_ref());
    let run = run_id(given.map(String::as_str), &flags.workflow, program)?;
    // A generated id contains randomness and cannot exist yet, so only a given id is looked up.
    if flags.creation.id.is_some() && has_begun(&project, &run)? {
        return resume_existing(&project, &run, flags, &texts, program);
    }
    start_new(&project, run, flags, &texts, program)
}

/// Resumes an existing run if the user asked for that.
fn resume_existing(
    project: &Project,
    run: &RunId,
    mut flags: RunFlags,
    texts: &GivenTexts,
    program: &Program,
) -> Result<u8, Failure> {
    if !flags.creation.or_resume {
        return Err(id_in_use(project, run));
    }
    // Before the resume, which takes most settings from the journal: a different workflow or input
    // would be ignored silently.
    check_same(project, run, &flags, program)?;
    if let Some(replies) = &texts.replies {
        // Paths of replies are part of the settings, but a pipe has none: compare the texts.
        if std::fs::read(project.paths(run).replies).ok().as_deref() != Some(replies.as_bytes()) {
            return Err(Failure::usage(format!("{run} started with different --replies"))
                .hint(unchanged_hint(run)));
        }
        flags.setting_flags.replies = None;
    }
    resume::resume_run(project, run, &resume::ResumeOptions::from_run(&flags, texts))
}

/// Refuses the id of an existing run, and names the command for that run.
fn id_in_use(project: &Project, run: &RunId) -> Failure {
    let offer = match runs::look(project, run).map(|seen| seen.status) {
        // A resume would be refused: another process drives the run.
        Ok(Status::Running | Status::Waiting(_, OwnerState::Alive)) => {
            format!(", or follow it: raymond attach {run}")
        }
        Ok(Status::Completed) => format!(", or see it: raymond show {run}"),
        Ok(Status::Cancelled) => String::new(),
        Ok(
            Status::Waiting(_, OwnerState::Gone)
            | Status::Failed
            | Status::OverBudget
            | Status::Stopped
            | Status::Interrupted,
        )
        | Err(_) => format!(", or continue it: raymond resume {run}"),
    };
    Failure::from(LaunchError::Exists(run.clone())).hint(format!("choose another --run-id{offer}"))
}

/// Checks everything, and only then creates the run.
fn start_new(
    project: &Project,
    run: RunId,
    flags: RunFlags,
    texts: &GivenTexts,
    program: &Program,
) -> Result<u8, Failure> {
    let config = config::load(project)?;
    // Read before flags are applied: a run with replies must remember the backend that they stand
    // in for.
    let usual = backends::default_backend(&config);
    let asked = settings::layers_of_run(config, &flags.setting_flags);
    // A mistyped `--backend` is reported with its origin, before the workflow is read.
    settings::check_backend(&asked)?;
    let vars = Vars::of(&flags, program)?;
    let mut settings = settings_of_start(&flags, &vars, &asked)?;
    if texts.replies.is_some() {
        settings.replies = Some(project.paths(&run).replies.display().to_string());
    }
    // Before anything is created: with too few open files the run would fail in the middle of a
    // turn.
    crate::resource_limits::raise_for_programs(settings.max_parallel)?;
    // Rules between backends compare the real ones, so that a workflow that passes with replies
    // also starts without them.
    settings.replayed_backend = backends::uses_only_replies(&settings).then_some(usual);
    let catalog = backends::catalog();
    let needs = Requirements { settings: &settings, catalog: &catalog };
    let check_more = |reachable: &Reachability<'_>| {
        let strict = strict_budget::warnings(&settings, reachable);
        let more = backends::unsupported_options(&settings, reachable);
        [needs.of_start(reachable), more, strict, variables(&settings.vars, reachable)].concat()
    };
    // All checks of the workflow happen in one pass, so that the user sees every mistake at once.
    let prepared = match &vars {
        Vars::OfDocument(vars) => prepare_document(&flags, vars, &check_more)?,
        Vars::OfStates(_) => prepare_with(&flags.workflow, program, &check_more)
            .map_err(|error| prepare_failure(error, program, &flags.workflow))?,
    };
    let reachable = Reachability::of(&prepared.definition);
    let replies = texts.replies.as_deref();
    backends::check_reply_names(&settings, replies, &prepared.definition)?;
    let UsableBackends { backends, clients, answers } =
        backends::usable(&asked, &settings, replies, &reachable)?;
    // Recorded, so that a resume can report a client whose version changed.
    (settings.clients, settings.answers) = (clients, answers);
    warn(project, &flags, program, &prepared);
    // A rehearsal costs nothing, and its replies may be incomplete on purpose.
    if !flags.output.quiet
        && let Some(warning) = backends::unanswered(&settings, replies, &prepared.definition)
    {
        print_diagnostic(&warning);
    }
    // The checks above also run in the starter of a background run, because its user still sees the
    // terminal. The background process checks everything again.
    match DriveMode::of(&flags.background) {
        DriveMode::Foreground => {}
        DriveMode::StartBackground => {
            return background::start(project, &run, flags.output, texts.to_hand_over());
        }
        DriveMode::Detached => background::own_session()?,
    }
    // Formatted now, because `OwnedRun::create` consumes the definition, but printed only if the
    // run was created.
    let line = first_line(&run, program, &settings, &prepared);
    let launch = launch(run, &flags, program, settings)?;
    if let Some(replies) = texts.replies.as_deref() {
        keep_replies(project, &launch.run, replies)?;
    }
    // The runtime must exist before this process owns a run: other processes wake an owner with
    // SIGUSR1, which would end a process without a handler.
    let runtime = crate::runtime::runtime()?;
    let (owned, start) = match OwnedRun::create(project, prepared, launch) {
        // Another process created the run between the check and now.
        Err(LaunchError::Exists(run)) => {
            return resume_existing(project, &run, flags, texts, program);
        }
        created => created?,
    };
    register(project, &asked, flags.output);
    if !flags.output.quiet {
        crate::say!("{line}");
    }
    let console = Console::new(flags.output, Interrupt::Stops);
    drive(&runtime, owned, backends, vec![start], console)
}

/// Returns the variables that no state uses, and the names that nothing sets. The variables of a
/// document are checked with the document.
fn variables(vars: &BTreeMap<String, String>, reachable: &Reachability<'_>) -> Vec<Diagnostic> {
    if reachable.definition.steps.is_some() {
        return Vec::new();
    }
    [variables::unused(vars, reachable), variables::undefined(vars, reachable)].concat()
}

/// Returns the settings of a new run, without what depends on its backends.
fn settings_of_start(
    flags: &RunFlags,
    vars: &Vars,
    asked: &config::Layer,
) -> Result<Settings, Failure> {
    Ok(Settings {
        vars: vars.typed().clone(),
        definition: if flags.unpinned { Pinning::Unpinned } else { Pinning::Pinned },
        start_flags: start_flags(flags)?,
        // Recorded even for a run without a loop, which ignores the number.
        max_iterations: flags.max_iterations.unwrap_or(Settings::USUAL_ITERATIONS),
        // The run keeps these prices: an agent could edit `raymond.toml` to make its turns look
        // cheap.
        prices: Some(backends::own_prices(asked)),
        ..settings::apply_config(Settings::default(), asked)?
    })
}

fn launch(
    run: RunId,
    flags: &RunFlags,
    program: &Program,
    settings: Settings,
) -> Result<Launch, Failure> {
    Ok(Launch {
        run,
        nonce: clock::nonce(),
        workflow: absolute(&flags.workflow)?,
        // Absolute, because a resume may be called in another directory and must not move the
        // agents.
        cwd: absolute(flags.steps.workspace())?,
        input: flags.input.clone(),
        program: program.clone(),
        settings,
    })
}

/// Prints warnings before the run starts, even with `--quiet`: the workflow or the command is
/// probably wrong, and the run may cost money.
fn warn(project: &Project, flags: &RunFlags, program: &Program, prepared: &Prepared) {
    for warning in &prepared.warnings {
        print_diagnostic(&located(warning.clone(), &flags.workflow));
    }
    if program.is_states()
        && let Some(line) = input_warning(&prepared.definition, flags.input.is_some())
    {
        crate::say!("warning: {line}");
    }
    for unread in workflows::unread_files(&flags.workflow, project.root.project()) {
        crate::say!("warning: {unread}");
    }
}

/// Keeps replies that came from a pipe, so that a resume can read them.
fn keep_replies(project: &Project, run: &RunId, replies: &str) -> Result<(), Failure> {
    let (paths, disk) = (project.paths(run), project.disk.as_ref());
    project.root.ensure(disk)?;
    paths.ensure(disk)?;
    Ok(paths.keep_replies(disk, replies)?)
}

/// Returns the flags that a new start of the same run needs.
fn start_flags(flags: &RunFlags) -> Result<StartFlags, Failure> {
    let StepsFlags { schemas, workspace } = &flags.steps;
    Ok(StartFlags {
        workspace: workspace.as_deref().map(absolute).transpose()?,
        schema_paths: schemas.paths.clone(),
        backend: flags
            .setting_flags
            .backend
            .as_ref()
            .map(|name| BackendName::new(name.value.as_str())),
    })
}

enum Vars {
    OfStates(BTreeMap<String, String>),
    OfDocument(settings::DocumentVars),
}

impl Vars {
    fn of(flags: &RunFlags, program: &Program) -> Result<Self, Failure> {
        let pairs = &flags.creation.vars;
        Ok(match program {
            Program::Steps(_) => Self::OfDocument(settings::document_vars(pairs)?),
            Program::States | Program::Ralph(_) => Self::OfStates(settings::vars(pairs)?),
        })
    }

    /// Returns the variables as they were typed.
    fn typed(&self) -> &BTreeMap<String, String> {
        match self {
            Self::OfStates(vars) => vars,
            Self::OfDocument(vars) => &vars.typed,
        }
    }
}

/// Prepares a document with its variables and schemas; `check_more` finds further problems.
fn prepare_document(
    flags: &RunFlags,
    vars: &settings::DocumentVars,
    check_more: &dyn Fn(&Reachability<'_>) -> Vec<Diagnostic>,
) -> Result<Prepared, Failure> {
    let schema_dirs = SchemaDirs::open(flags.steps.workspace(), &flags.steps.schemas.paths)?;
    let document = DocumentFile::read(&flags.workflow)?;
    let prepared = document.prepare(&flags.workflow, &vars.values, &schema_dirs)?;
    let doubts = document.warnings().into_iter().map(Mistake::into_warning);
    let further = check_more(&Reachability::of(&prepared.definition));
    let of_vars = document.unused_variables(&vars.values).into_iter();
    let of_vars = of_vars.chain(document.texts_for_values(vars));
    let found: Vec<Diagnostic> = doubts.chain(further).chain(of_vars).collect();
    // `prepare` of a document returns at its own mistakes, so these are the only ones left.
    if found.iter().any(|found| found.severity == Severity::Error) {
        return Err(Failure::invalid("the workflow", found).within(&flags.workflow));
    }
    Ok(Prepared { warnings: found, ..prepared })
}

/// Warns if the first prompt uses `{{input}}` or `{{result}}` without `--input`, or ignores it. A
/// script may read it from its environment in many ways.
fn input_warning(definition: &Definition, has_input: bool) -> Option<String> {
    let entry = definition.states.get(&definition.entry)?;
    let names = template::render(&entry.body, &mut |_| None).unknown;
    let used = names.iter().find(|name| matches!(name.as_str(), "input" | "result"));
    let state = sanitized(entry.name.as_str());
    match (used, has_input) {
        (Some(name), false) => Some(format!(
            "{state} has {{{{{name}}}}} but no --input was given, so it will be empty"
        )),
        (None, true) if entry.kind == StateKind::Prompt => {
            Some(format!("{state} has no {{{{input}}}}, so --input has no effect"))
        }
        (Some(_), true) | (None, _) => None,
    }
}

/// Adds a suggestion: a similar prompt, or a document in the folder.
fn prepare_failure(error: PrepareError, program: &Program, workflow: &Path) -> Failure {
    let failure = match (program, &error) {
        // The general hint would suggest workflows, but a loop needs a prompt.
        (Program::Ralph(_), PrepareError::Scope(ScopeError::Missing(path))) => {
            let failure = Failure::usage(error.to_string());
            match workflows::nearest_prompt(path) {
                Some(nearest) => failure.hint(format!("did you mean {}?", nearest.display())),
                None => failure.hint("ralph repeats one prompt: pass a .md file"),
            }
        }
        (Program::States, PrepareError::Invalid(_)) => match workflows::document_in(workflow) {
            Some(document) => {
                let named = quoted(&document.display().to_string());
                let hint =
                    format!("it contains a document of steps: run it with `raymond run {named}`");
                Failure::from(error).hint(hint)
            }
            None => error.into(),
        },
        (Program::States | Program::Ralph(_) | Program::Steps(_), _) => error.into(),
    };
    failure.within(workflow)
}

/// Refuses `--or-resume` with another workflow, program or input: the user would get the old one.
fn check_same(
    project: &Project,
    run: &RunId,
    flags: &RunFlags,
    program: &Program,
) -> Result<(), Failure> {
    // An unreadable run is reported by the resume, with a better hint.
    let Ok(seen) = runs::look(project, run) else { return Ok(()) };
    if seen.head.seq == 0 {
        // The owner has not recorded the start yet, so there is nothing to compare.
        return Ok(());
    }
    let begun = &seen.head.run;
    // A missing workflow is reported by the resume.
    if absolute(&flags.workflow).is_ok_and(|named| named != begun.workflow) {
        return Err(Failure::usage(format!("{run} is a run of {}", begun.workflow))
            .hint("pass that workflow, or choose another --run-id"));
    }
    check_program(run, &begun.program, program)?;
    let vars = Vars::of(flags, program)?;
    // Omitted variables are not a difference: only flags that the user gives again are compared.
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
    Err(Failure::usage(format!("{run} started with a different {other}")).hint(unchanged_hint(run)))
}

/// Returns the hint for a run that differs from the flags.
fn unchanged_hint(run: &RunId) -> String {
    format!("continue it unchanged with raymond resume {run}, or choose another --run-id")
}

/// Refuses another program. Only the number of iterations of a loop may change.
fn check_program(run: &RunId, begun: &Program, asked: &Program) -> Result<(), Failure> {
    let until = |program: &Program| program.ralph().map(|ralph| ralph.until.clone());
    if until(begun) == until(asked) {
        return Ok(());
    }
    let what = match begun {
        Program::States | Program::Steps(_) => "was started by `raymond run`".to_owned(),
        Program::Ralph(Ralph { until: None, .. }) => "is a loop without --until".to_owned(),
        Program::Ralph(Ralph { until: Some(command), .. }) => {
            format!("is a loop with --until {}", sanitized(&quoted(command)))
        }
    };
    Err(Failure::usage(format!("{run} {what}")).hint(unchanged_hint(run)))
}

/// Whether the run has records. Other problems are reported by the resume.
fn has_begun(project: &Project, run: &RunId) -> Result<bool, Failure> {
    Ok(project.runs()?.contains(run) && runs::is_started(project, run))
}

/// Returns `<workflow name>-<date>-<short random>`, unless an id is given; a loop has the name of
/// its prompt.
fn run_id(given: Option<&str>, workflow: &Path, program: &Program) -> Result<RunId, Failure> {
    if let Some(given) = given {
        return given.parse().map_err(|error| Failure::usage(format!("--run-id: {error}")));
    }
    // A relative path such as `.` has no name. A missing workflow is reported later, when it is
    // read.
    let absolute = workflow.canonicalize().unwrap_or_else(|_| workflow.to_owned());
    let name = match program {
        Program::States | Program::Steps(_) => workflows::name(&absolute),
        Program::Ralph(_) => workflows::loop_name(&absolute),
    };
    let date = &clock::now().to_string()[..10].replace('-', "");
    // Six of 32 hexadecimal digits: ids stay short enough to type, and only runs of one workflow on
    // one day share the rest of the id.
    let random = &clock::nonce().to_string()[..6];
    format!("{name}-{date}-{random}").parse().map_err(|error| Failure::usage(format!("{error}")))
}
