//! One call of the tool `crayfish`: a request in, a reply out.
//!
//! The command line, the MCP server and the plugins of hosts all pass their requests to
//! [`Tool::call`], so all of them answer in the same way. A call with a `runId` works on a normal
//! run in the project of its workspace. A call without one works on a run in memory that is dropped
//! afterwards. No call returns an error: every failure is a reply with a stable code. The language
//! of the documents is in `raymond_core::crayfish`.

mod inputs;
mod progress;
mod raw_request;
#[cfg(test)]
mod tests;
mod workspaces;

use std::path::Path;
use std::sync::Arc;

use raymond_backends::process::{self, Grace};
use raymond_backends::workspace::Workspace;
use raymond_core::crayfish::{
    CallReply, CallRequest, ErrorCode, Problem, StepsDefinition, reading,
};
use raymond_core::ids::{AgentId, RunId};
use raymond_core::run::program::AnswerSource;
use raymond_core::run::{Ending, Input, Phase, Program, Run, Settings};
use raymond_core::steps::answer::{GIVEN_UP, answer, attempts, results};
use raymond_core::text::with_causes;
use raymond_store::disk::{self, Memory};
use raymond_store::lock::{self, Takeover};
use raymond_store::{ProjectRegistry, Root};
use tokio_util::sync::CancellationToken;

use crate::abandoned;
use crate::backends::Backends;
use crate::blocking::{self, Unfinished, run_with_limit};
use crate::clock;
use crate::launch::{Launch, LaunchError};
use crate::owned::{LeftoverClients, OpenOptions, OwnError, OwnedRun};
use crate::prepare::{Prepared, steps};
use crate::project::Project;
use crate::runner;
use crate::schemas::Schemas;

use inputs::{CallInputs, RunRecord};
pub use progress::CallProgress;
use progress::ProgressReporter;
pub use raw_request::RawRequest;
pub use workspaces::Workspaces;

/// The name of the run of a call without a `runId`. Any name would do, because the run exists only
/// in memory.
const UNNAMED_RUN: &str = "call";

/// The tool, for all calls of a host.
#[derive(Debug, Clone)]
pub struct Tool {
    pub workspaces: Workspaces,
    /// The settings of the runs of its calls.
    pub settings: Settings,
    /// The registry that receives the projects of its runs; `None` if the user has none.
    pub registry: Option<ProjectRegistry>,
}

/// The caller's connection to a running call.
#[derive(Debug)]
pub struct CallChannels {
    /// Ends the running step, and the call.
    pub cancel: CancellationToken,
    /// Receives progress. The caller may ignore it.
    pub progress: tokio::sync::mpsc::UnboundedSender<CallProgress>,
}

/// A request that has passed all checks that need no run.
struct CheckedRequest {
    prepared: Prepared,
    schemas: Arc<Schemas>,
    call_inputs: CallInputs,
    run: Option<RunId>,
    /// Outputs that no step can have asked for. The call is refused because of them.
    unasked_outputs: Vec<Problem>,
}

enum CallRun {
    /// The run had ended in an earlier call.
    Ended(Box<Run>),
    /// The run is to be driven.
    Open(Box<OpenCall>),
}

struct OpenCall {
    owned: OwnedRun,
    inputs: Vec<Input>,
    call_inputs: CallInputs,
}

impl Tool {
    /// Answers one request. If the caller drops the future, the call is cancelled, but it still
    /// ends the processes that it started.
    pub async fn call(&self, raw: impl Into<RawRequest>, channels: CallChannels) -> CallReply {
        let raw = raw.into();
        let CallChannels { cancel, progress } = channels;
        // A child token: the guard below must not cancel the caller's own token.
        let cancel = cancel.child_token();
        let _cancel_when_dropped = cancel.clone().drop_guard();
        let tool = self.clone();
        let channels = CallChannels { cancel, progress };
        // A task of its own outlives a dropped future, and turns a panic into a reply.
        let call = tokio::spawn(async move { tool.try_call(raw, channels).await });
        let reply = call.await.map(|reply| reply.unwrap_or_else(|refused| *refused));
        reply.unwrap_or_else(|broken| *internal(&broken.to_string()))
    }

    async fn try_call(
        &self,
        raw: RawRequest,
        channels: CallChannels,
    ) -> Result<CallReply, Box<CallReply>> {
        let request = raw
            .read()
            .map_err(|problems| invalid(ErrorCode::BadRequest, "the request", problems))?;
        let run = request.run.clone();
        // A caller without a `runId` keeps results and attempts itself and sends back those of the
        // last reply. A refusal must not lose them.
        let known = run.is_none().then(|| (request.results.clone(), request.attempts.clone()));
        let reply = self.answer(request, channels).await;
        reply.map_err(|mut refused| {
            if let Some(known) = known {
                (refused.results, refused.attempts) = known;
            }
            refused.run = run;
            refused
        })
    }

    async fn answer(
        &self,
        request: CallRequest,
        channels: CallChannels,
    ) -> Result<CallReply, Box<CallReply>> {
        let directory = self.workspaces.of(request.agent.as_deref())?;
        let workspace = Workspace::open(&directory).map_err(|unopened| {
            refused(ErrorCode::BadWorkspace, unopened.to_string(), Vec::new())
        })?;
        if directory.to_str().is_none() {
            // A record stores the path as text. A lossy text could be the path of another
            // directory.
            let message =
                format!("the path of the workspace is not UTF-8: {}", directory.display());
            return Err(refused(ErrorCode::BadWorkspace, message, Vec::new()));
        }
        let place = directory.clone();
        let checking =
            run_with_limit(&channels.cancel, move || check_request(request, &place, &workspace));
        let checked = checking.await.map_err(|given_up| match given_up {
            Unfinished::Cancelled => refused(ErrorCode::Cancelled, GIVEN_UP, Vec::new()),
            Unfinished::NoThread => refused(ErrorCode::Internal, blocking::NO_THREAD, Vec::new()),
            Unfinished::TimedOut => {
                let most = blocking::TIME_LIMIT.as_secs();
                let message = format!("checking the request takes more than {most} s");
                refused(ErrorCode::TooLarge, message, Vec::new())
            }
        })??;
        self.work(checked, &directory, channels).await
    }

    async fn work(
        &self,
        checked: CheckedRequest,
        directory: &Path,
        channels: CallChannels,
    ) -> Result<CallReply, Box<CallReply>> {
        let (run, schemas) = (checked.run.clone(), Arc::clone(&checked.schemas));
        let work = checked.prepared.definition.steps.clone();
        let work = work.ok_or_else(|| internal("no document"))?;
        let OpenCall { mut owned, inputs, call_inputs } =
            match self.begin(checked, &work, directory).await? {
                CallRun::Ended(over) => return Ok(answer(*over, &work, run.as_ref())),
                CallRun::Open(begun) => *begun,
            };
        // A killed call without a `runId` has no run to resume, so the next call of any kind ends
        // its leftover processes.
        process::end_abandoned(&Grace::default()).await;
        // Compiled once for the check of the request, and used again by the runner.
        owned.schemas = schemas;
        let CallChannels { cancel, progress } = channels;
        let mut reporter = ProgressReporter::new(progress);
        let driven = runner::drive_until_cancelled(
            owned,
            Backends::default(),
            inputs,
            &mut reporter,
            &cancel,
        )
        .await;
        let driven = driven
            .map_err(|error| refused(ErrorCode::StoreFailed, with_causes(&error), Vec::new()))?;
        let ignored = call_inputs.ignored(&driven.head.run, run.as_ref());
        let reply = answer(driven.head.run, &work, run.as_ref());
        Ok(CallReply { ignored, ..reply })
    }

    /// Creates the run of a call, or opens the run of an earlier call.
    async fn begin(
        &self,
        checked: CheckedRequest,
        work: &StepsDefinition,
        directory: &Path,
    ) -> Result<CallRun, Box<CallReply>> {
        let CheckedRequest { prepared, mut call_inputs, run, schemas: _, mut unasked_outputs } =
            checked;
        // A call without a `runId` has no journal, so its nonce names this process: if the process
        // is killed, the next call recognises its programs as abandoned.
        let (project, nonce, new) = match &run {
            Some(_) => {
                let project = Project::locate(directory).map_err(|error| {
                    refused(ErrorCode::StoreFailed, error.to_string(), Vec::new())
                })?;
                (project, clock::nonce(), RunRecord::New)
            }
            None => (in_memory(), abandoned::nonce(directory), RunRecord::None),
        };
        // Read before the run is created below, which would make every run exist.
        let is_new = is_new(&project, run.as_ref())?;
        let id = run.unwrap_or_else(|| RunId::new(UNNAMED_RUN));
        let cwd = directory.display().to_string();
        if is_new && unasked_outputs.is_empty() {
            // Checked before the run is created, so that a refused call leaves no run behind.
            unasked_outputs = call_inputs.answers_without_run(&id);
        }
        if !unasked_outputs.is_empty() {
            let mut refused = invalid(ErrorCode::UnaskedOutput, "the request", unasked_outputs);
            // The caller of an existing run may have lost its last reply, so even a refusal
            // contains the progress. If the run cannot be opened, the mistake in the request is
            // still the answer.
            if !is_new && let Ok(owned) = self.open(&project, &id, work, &cwd).await {
                refused = with_progress(refused, &owned.head.run);
            }
            return Err(refused);
        }
        let launch = Launch {
            run: id.clone(),
            nonce,
            workflow: work.document.name.clone().unwrap_or_else(|| id.to_string()),
            cwd: cwd.clone(),
            input: None,
            program: Program::steps_of(AnswerSource::Caller),
            settings: self.settings(),
        };
        let (owned, mut inputs, call) = match OwnedRun::create(&project, prepared, launch) {
            Ok((owned, start)) => {
                self.register(&project, new);
                let call = call_inputs.call(&owned.head.run, new, &owned.blobs)?;
                (owned, vec![start], call)
            }
            // Creating first and opening on failure decides under the lock: two first calls at the
            // same time cannot both create the run.
            Err(LaunchError::Exists(_)) => {
                let mut owned = self.open(&project, &id, work, &cwd).await?;
                // Only these endings are final: the core refuses to resume them. A failed run gets
                // new attempts.
                if let Phase::Ended(Ending::Completed | Ending::Cancelled) = owned.head.run.phase {
                    return Ok(CallRun::Ended(Box::new(owned.head.run)));
                }
                let call = call_inputs.call(&owned.head.run, RunRecord::Existing, &owned.blobs);
                let call = call.map_err(|refused| with_progress(refused, &owned.head.run))?;
                let resumed = owned.resume_inputs(self.settings(), &Backends::default()).await;
                (owned, resumed.map_err(|error| own_error(&id, &error))?, call)
            }
            Err(LaunchError::Own(error)) => return Err(own_error(&id, &error)),
            Err(error @ LaunchError::Blobs(_)) => {
                return Err(refused(ErrorCode::StoreFailed, error.to_string(), Vec::new()));
            }
        };
        // After the start or the resume, because the core refuses a call before the start; one
        // batch, so a crash leaves both or neither.
        inputs.push(Input::Call(Box::new(call)));
        Ok(CallRun::Open(Box::new(OpenCall { owned, inputs, call_inputs })))
    }

    /// Opens the run of an earlier call. The document, the variables and the workspace must be the
    /// same.
    async fn open(
        &self,
        project: &Project,
        run: &RunId,
        work: &StepsDefinition,
        cwd: &str,
    ) -> Result<OwnedRun, Box<CallReply>> {
        let how = OpenOptions {
            // A call has no user who could confirm that an owner on another host is dead.
            takeover: Takeover::Never,
            truncate_to: None,
            clients: LeftoverClients::End,
        };
        let opened = OwnedRun::open(project, run, how, None).await;
        let owned = opened.map_err(|error| own_error(run, &error))?;
        let other = |what: &str| {
            let message = format!("the run {run} was started with {what}");
            Err(with_progress(
                refused(ErrorCode::RunMismatch, message, Vec::new()),
                &owned.head.run,
            ))
        };
        match owned.definition.steps.as_deref() {
            // The steps of such a run are answered by backends, not by the caller.
            _ if !owned.head.run.program.is_answered_by_caller() => {
                other("`raymond run`, not by a call")
            }
            _ if owned
                .head
                .run
                .agents
                .get(&AgentId::main())
                .is_some_and(|main| main.cwd != cwd) =>
            {
                other("another workspace")
            }
            Some(begun) if begun.vars != work.vars => other("other vars"),
            Some(begun) if begun.document != work.document => {
                other("another document, or other schemas")
            }
            Some(_) | None => Ok(owned),
        }
    }

    /// Adds the project of a run to the registry of the user.
    fn register(&self, project: &Project, new: RunRecord) {
        // A run without a record is in memory, and so is its project.
        let registry = self.registry.as_ref().filter(|_| new == RunRecord::New);
        if let (Some(registry), Some(directory)) = (registry, project.root.project().to_str()) {
            // Ignored: only `raymond list --all` needs the registry.
            registry.note(project.disk.as_ref(), directory, clock::now().0).ok();
        }
    }

    /// Returns the settings of the run of a call. Loops set their own parallelism, so the run only
    /// limits it to what the machine allows.
    fn settings(&self) -> Settings {
        Settings { max_parallel: process::max_parallel_programs(), ..self.settings.clone() }
    }
}

/// Checks everything that can be checked before a run exists.
fn check_request(
    request: CallRequest,
    directory: &Path,
    workspace: &Workspace,
) -> Result<CheckedRequest, Box<CallReply>> {
    let parse = |bytes: &[u8]| reading::read(bytes).map_err(|why| why.to_string());
    let files = workspace.schema_files(&request.schema_paths, parse).map_err(|faults| {
        let problems = faults.into_iter().map(|(index, fault)| {
            let path = format!("/ref/schemaPaths/{index}");
            Problem::new(path, steps::path_problem_code(&fault.why), fault.why.to_string())
        });
        invalid(ErrorCode::BadRequest, "the request", problems.collect())
    })?;
    let library = steps::WorkspaceSchemas(files);
    let prepared = steps::prepare(&request.workflow, &request.vars, directory, &library);
    let prepared = prepared
        .map_err(|problems| invalid(ErrorCode::InvalidWorkflow, "the workflow", problems))?;
    let document = prepared.definition.steps.as_deref().map(|work| &work.document);
    let document = document.ok_or_else(|| internal("no document"))?;
    let unasked_outputs = request.unasked(document);
    let schemas = Arc::<Schemas>::default();
    let run = request.run.clone();
    let call_inputs = CallInputs::check(request, document, &schemas);
    Ok(CheckedRequest { prepared, schemas, call_inputs, run, unasked_outputs })
}

/// Returns whether the request names a run that does not exist yet.
fn is_new(project: &Project, run: Option<&RunId>) -> Result<bool, Box<CallReply>> {
    let Some(run) = run else { return Ok(false) };
    let exists = project.paths(run).exists(project.disk.as_ref());
    let failed =
        |error: disk::Error| refused(ErrorCode::StoreFailed, error.to_string(), Vec::new());
    exists.map(|exists| !exists).map_err(failed)
}

/// Returns a project in memory for a call without a `runId`.
// The seed only decides what survives a simulated crash, which never happens here.
fn in_memory() -> Project {
    let root = Root::in_directory(Path::new("/"));
    Project { disk: Arc::new(Memory::new(0)), root }
}

fn refused(code: ErrorCode, message: impl Into<String>, errors: Vec<Problem>) -> Box<CallReply> {
    Box::new(CallReply::failed(code, message, errors))
}

/// Returns a refusal for mistakes. The message contains the first one, because some callers show
/// only the message.
fn invalid(code: ErrorCode, what: &str, problems: Vec<Problem>) -> Box<CallReply> {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    let message = match problems.iter().map(|problem| problem.count).sum() {
        1_usize => format!("{what} has a mistake: {first}"),
        several => format!("{what} has {several} mistakes, first: {first}"),
    };
    refused(code, message, problems)
}

/// Adds the results and attempts of the run to a refusal.
fn with_progress(mut refused: Box<CallReply>, run: &Run) -> Box<CallReply> {
    (refused.results, refused.attempts) = (results(run.clone()), attempts(run));
    refused
}

fn internal(what: &str) -> Box<CallReply> {
    refused(ErrorCode::Internal, what, Vec::new())
}

/// Returns the reply for a run that cannot be opened.
fn own_error(run: &RunId, error: &OwnError) -> Box<CallReply> {
    let (code, message) = match error {
        // The caller can repeat the call later, so this is not a failure of the store.
        OwnError::Lock(lock::Error::Held { .. }) => {
            (ErrorCode::RunLocked, format!("another call works on the run {run}"))
        }
        OwnError::Lock(lock::Error::OtherHost { .. } | lock::Error::Removed { .. })
        | OwnError::ActiveCopy(_) => (ErrorCode::RunLocked, with_causes(error)),
        _ => (ErrorCode::StoreFailed, with_causes(error)),
    };
    refused(code, message, Vec::new())
}
