//! One turn of a prompt or a script, from its effect to its outcome.
//!
//! A prompt is rendered, sent to its backend, and its answer is checked. A script is started from
//! its pinned copy. A failure of the turn is an outcome; only a value that cannot be stored or read
//! is an error, because then the run cannot continue. Programs of steps are in `exec_step`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raymond_backends::contract::{
    Answer, Backend, Capability, PromptRequest, StartedTurn, TurnObserver,
};
use raymond_backends::process::{Inherit, Limits, Marker};
use raymond_backends::script::{self, Script, ScriptEnd, ScriptSuccess};
use raymond_core::agent::Location;
use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::TurnId;
use raymond_core::protocol::Source;
use raymond_core::protocol::notice::notice;
use raymond_core::run::RunContext;
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::stop::Interruption;
use raymond_core::run::turn_spec::{PromptSpec, PromptText, ScriptSpec, TurnHeader, VisitValues};
use raymond_core::run::warning::Warning;
use raymond_core::time::Span;
use raymond_core::value::BlobRef;
use raymond_core::workflow::environment::{ScriptVisit, environment};
use raymond_core::workflow::template::{Bindings, LARGEST, RenderedText};
use raymond_store::blobs;
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use super::script_files;
use super::turn_context::TurnContext;
use crate::agent_step::OutputCheck;
use crate::observe;
use crate::turn_files::{config_home, transcript};

/// Sends a prompt and waits for its outcome. An error means that the run cannot continue.
///
/// Thousands of turns may wait here at the same time, so the future must be small: everything that
/// is needed only before the wait is boxed and consumed by [`prepare_prompt`].
pub(crate) async fn prompt(
    context: Arc<TurnContext>,
    header: Box<TurnHeader>,
    prompt: Box<PromptSpec>,
    watch: TurnObserver,
) -> Result<Outcome, blobs::Error> {
    let PreparedPrompt { backend, request, check } = match prepare_prompt(&context, header, prompt)?
    {
        Ok(prepared) => prepared,
        Err(failed) => return Ok(failed),
    };
    let answer = backend.answer(request, watch).await;
    check.outcome(&context, answer).await
}

/// A rendered prompt with its backend.
struct PreparedPrompt {
    backend: Arc<dyn Backend>,
    request: PromptRequest,
    check: AnswerCheck,
}

fn prepare_prompt(
    context: &TurnContext,
    header: Box<TurnHeader>,
    prompt: Box<PromptSpec>,
) -> Result<Result<PreparedPrompt, Outcome>, blobs::Error> {
    let not_started = |why| Outcome::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Reported(raymond_core::budget::Micros::ZERO),
        denied: Vec::new(),
        session: None,
    };
    // A failure before the client starts costs nothing. It is an outcome, so that the core decides
    // what follows.
    let Some(backend) = context.backends.get(&prompt.backend) else {
        return Ok(Err(not_started(format!("there is no backend {}", prompt.backend))));
    };
    if !Path::new(&header.cwd).is_dir() {
        let cwd = &header.cwd;
        return Ok(Err(not_started(format!("the working directory {cwd} does not exist"))));
    }
    let output_check = OutputCheck::of(&prompt, &context.schemas);
    let started = started_turn(context, &header, &prompt);
    let handed = context.handing().write(&header.turn, &header.handed)?;
    let PreparedMessage { rendered, unknown, schema } =
        prepare_message(context, &header, prompt.message)?;
    let RenderedText { text, too_large, .. } = rendered;
    if too_large {
        let mib = LARGEST >> 20;
        return Ok(Err(not_started(format!("the prompt would be larger than {mib} MiB"))));
    }
    let cwd = PathBuf::from(&header.cwd);
    let mut extras = prompt.extras;
    extras.add_dirs.extend(handed.map(|handed| handed.display().to_string()));
    let request = PromptRequest {
        started,
        location: header.location.clone(),
        count: prompt.count,
        prompt: text,
        notice: prompt.notice.map(|why| notice(why).to_owned()),
        cwd: cwd.clone(),
        model: prompt.model,
        effort: prompt.effort,
        permissions: prompt.permissions,
        extras,
        // Without that capability the schema is only part of the message.
        schema: schema.filter(|_| backend.capabilities().contains(&Capability::Schema)),
        environment: header.environment,
    };
    context.keep_prompt(&request)?;
    let check = AnswerCheck { output_check, cwd, location: header.location, unknown };
    Ok(Ok(PreparedPrompt { backend, request, check }))
}

/// The information for turning an answer into an outcome.
struct AnswerCheck {
    /// The check of the output, if the prompt is the request of an agent step.
    output_check: Option<OutputCheck>,
    cwd: PathBuf,
    location: Location,
    /// Warnings about template variables in the prompt that nothing sets.
    unknown: Vec<Warning>,
}

impl AnswerCheck {
    async fn outcome(self, context: &TurnContext, answer: Answer) -> Result<Outcome, blobs::Error> {
        if let Some(check) = self.output_check {
            // Boxed, so that this rare and large future does not enlarge the future of every
            // waiting turn.
            return Box::pin(check.outcome(&context.blobs, answer)).await;
        }
        let mut outcome =
            observe::read_answer(answer, context.run.messages, &self.cwd, &*context.blobs)?;
        if let Outcome::Finished(finished) = &mut outcome {
            finished.warnings.splice(0..0, context.new_warnings(&self.location, self.unknown));
        }
        Ok(outcome)
    }
}

/// Follows a turn that an earlier owner started, until it ends.
pub(crate) async fn follow(
    context: Arc<TurnContext>,
    header: Box<TurnHeader>,
    prompt: Box<PromptSpec>,
    watch: TurnObserver,
) -> Result<Outcome, blobs::Error> {
    let Some(backend) = context.backends.get(&prompt.backend) else {
        // The client was started by an owner with this backend, so it may have cost something.
        let (by, cost) = (Interruption::Crash, Cost::Unknown);
        return Ok(Outcome::Interrupted { by, cost, progressed: false, session: None });
    };
    let output_check = OutputCheck::of(&prompt, &context.schemas);
    // The same description as at the start of the turn: an adopted client keeps its time limits.
    let answer = backend.follow(started_turn(&context, &header, &prompt), watch).await;
    let TurnHeader { cwd, location, .. } = *header;
    let check = AnswerCheck { output_check, cwd: cwd.into(), location, unknown: Vec::new() };
    check.outcome(&context, answer).await
}

fn started_turn(context: &TurnContext, header: &TurnHeader, prompt: &PromptSpec) -> StartedTurn {
    StartedTurn {
        nonce: context.run.nonce.clone(),
        turn: header.turn.clone(),
        attempt: header.attempt,
        plan: prompt.plan.clone(),
        transcript: transcript(&context.transcripts, &header.turn, header.attempt),
        timeout: prompt.limits.timeout,
        idle_timeout: prompt.limits.idle_timeout,
        cap: prompt.cap,
        config_home: config_home(prompt.config_home, &context.homes, &header.turn.agent),
    }
}

/// The text of a prompt, and the schema that its answer must match.
struct PreparedMessage {
    rendered: RenderedText,
    /// Warnings about template variables that nothing sets.
    unknown: Vec<Warning>,
    schema: Option<Json>,
}

impl PreparedMessage {
    fn as_is(text: String, schema: Option<Json>) -> Self {
        let rendered = RenderedText { text, ..RenderedText::default() };
        Self { rendered, unknown: Vec::new(), schema }
    }
}

fn prepare_message(
    context: &TurnContext,
    header: &TurnHeader,
    message: PromptText,
) -> Result<PreparedMessage, blobs::Error> {
    Ok(match message {
        PromptText::Body { body, values } => {
            let values = context.handing().with_list(&header.turn, &header.handed, values)?;
            let bindings = bindings(&context.run, &header.turn, &values);
            let rendered = bindings.render(&body, &mut |blob| context.load(blob))?;
            let warning = |name: &String| Warning::UnknownVariable {
                nearest: bindings.nearest(name).map(str::to_owned),
                name: name.clone(),
            };
            let unknown = rendered.unknown.iter().map(warning).collect();
            PreparedMessage { rendered, unknown, schema: None }
        }
        PromptText::Reminder(text) => PreparedMessage::as_is(text, None),
        PromptText::Request { text, schema } => {
            PreparedMessage::as_is(text, Some(Arc::unwrap_or_clone(schema)))
        }
    })
}

/// Returns the template variables of a turn.
pub(crate) fn bindings<'a>(
    run: &'a RunContext,
    turn: &'a TurnId,
    values: &'a VisitValues,
) -> Bindings<'a> {
    Bindings {
        run: &run.run,
        agent: &turn.agent,
        state: &values.state,
        visit: values.visit,
        scope: &run.scope,
        result: values.input.as_ref(),
        result_status: values.result_status,
        attributes: &values.attributes,
        vars: &run.vars,
    }
}

/// Runs a script and waits for its outcome.
pub(crate) async fn script(
    context: Arc<TurnContext>,
    header: Box<TurnHeader>,
    script: Box<ScriptSpec>,
    cancel: CancellationToken,
) -> Result<Outcome, blobs::Error> {
    let failed = |why| Outcome::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Free,
        denied: Vec::new(),
        session: None,
    };
    let runnable = script_files::prepare(&context, &script)?;
    context.handing().write(&header.turn, &header.handed)?;
    let values = context.handing().with_list(&header.turn, &header.handed, script.values)?;
    let result = script_files::ResultFile::write(&context, &header.turn, values.input.as_ref())?;
    let environment = match variables(&context, &header.turn, &values, result.path()) {
        Ok(environment) => environment,
        Err(why) => return Ok(failed(why)),
    };
    let process = Script {
        path: runnable.path.clone(),
        cwd: PathBuf::from(&header.cwd),
        environment,
        inherit: Inherit::only(header.environment.as_deref()),
        marker: Marker::new(&context.run.nonce, &header.turn, header.attempt),
    };
    let limits = Limits {
        wall: script.limits.timeout.map(duration),
        idle: script.limits.idle_timeout.map(duration),
        grace: context.grace,
        ..Limits::default()
    };
    let path = transcript(&context.transcripts, &header.turn, header.attempt);
    let ended = script::run(process, &limits, &cancel).await;
    Ok(match runnable.with_own_paths(ended) {
        ScriptEnd::Succeeded(spoken) => script_outcome(&context, &header.cwd, spoken)?,
        ScriptEnd::Failed { failure, output } => {
            script_files::keep_output(&path, &output);
            Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None }
        }
        ScriptEnd::Interrupted { progressed, output } => {
            script_files::keep_output(&path, &output);
            let (by, cost) = (Interruption::Stop, Cost::Free);
            Outcome::Interrupted { by, cost, progressed, session: None }
        }
    })
}

fn script_outcome(
    context: &TurnContext,
    cwd: &str,
    spoken: ScriptSuccess,
) -> Result<Outcome, blobs::Error> {
    let cwd = Path::new(cwd);
    let reply = observe::read_final_text(&spoken.text, Source::Script, cwd, &*context.blobs)?;
    let reply = ReadReply { stderr: spoken.stderr, ..reply };
    let mut finished = Finished::new(reply, Cost::Free);
    if spoken.invalid_utf8 {
        finished.warnings.push(Warning::InvalidUtf8);
    }
    if spoken.held_open && spoken.survivors.is_empty() {
        let message = "a process that the script left behind kept its output open; it was ended \
                       after 10 seconds";
        finished.warnings.push(Warning::Other { message: message.to_owned() });
    }
    for survivor in spoken.survivors {
        let message = format!("a child of the script could not be ended: {survivor:?}");
        finished.warnings.push(Warning::Other { message });
    }
    Ok(Outcome::Finished(Box::new(finished)))
}

fn variables(
    context: &TurnContext,
    turn: &TurnId,
    values: &VisitValues,
    result_file: &str,
) -> Result<Vec<(String, String)>, String> {
    // The same on every attempt, so that a script can recognise a repeated visit.
    let key = format!("{}.{}.{}", context.run.nonce, turn.agent, turn.visit);
    let visit = ScriptVisit { key: &key, result_file };
    let mut load = |blob: &BlobRef| context.load(blob);
    let bindings = bindings(&context.run, turn, values);
    environment(&bindings, &visit, &mut load).map_err(|error| error.to_string())
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.0)
}
