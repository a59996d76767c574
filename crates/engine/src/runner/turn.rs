//! One turn of a prompt or a script, from its effect to its outcome.
//!
//! A prompt is rendered, sent to its backend, and its answer is checked. A script is started from its
//! pinned copy. A failure of the turn is an outcome; only a value that cannot be stored or read is an
//! error, because then the run cannot continue. Programs of steps are in `exec_step`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raymond_backends::contract::{Answer, Backend, Capability, Request, StartedTurn, TurnObserver};
use raymond_backends::process::{Inherit, Limits, Marker};
use raymond_backends::script::{self, Script, ScriptEnd, ScriptSuccess};
use raymond_core::agent::{Agent, Location};
use raymond_core::budget::Cost;
use raymond_core::extension::Kind;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::StateName;
use raymond_core::protocol::notice::notice;
use raymond_core::protocol::reminder::reminder;
use raymond_core::protocol::{Source, allowance::Allowance};
use raymond_core::run::effect::{PromptEffect, ScriptEffect};
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::stop::Interruption;
use raymond_core::run::warning::Warning;
use raymond_core::scheduler::Prompt;
use raymond_core::time::Span;
use raymond_core::value::{BlobRef, Hash};
use raymond_core::workflow::environment::{ScriptVisit, environment};
use raymond_core::workflow::template::{Bindings, LARGEST, Rendered};
use raymond_core::workflow::{Definition, SourceFile, State};
use raymond_store::blobs;
use tokio_util::sync::CancellationToken;

use super::script_files;
use super::turn_context::TurnContext;
use crate::agent_step::AgentStep;
use crate::observe;
use crate::turn_files::{config_home, transcript};

/// The parts of the run that a turn needs, copied when its effect is released: the run changes while
/// the turn is running.
#[derive(Debug, Clone)]
pub(crate) struct TurnSpec {
    state: State,
    agent: Agent,
    allowed: Option<Allowance>,
    /// The agent step, or `None` in a run of states.
    agent_step: Option<Box<AgentStep>>,
}

impl TurnSpec {
    /// Returns the specification of a turn of `agent`.
    pub(crate) fn new(
        definition: &Definition,
        agent: &Agent,
        prompt: Option<&Prompt>,
    ) -> Option<Self> {
        let state = definition.states.get(agent.visit.location.state()?)?.clone();
        // Only a reminder lists the allowed targets. Collecting them costs O(states), so other turns
        // skip it.
        let allowed = matches!(prompt, Some(Prompt::Reminder(_))).then(|| {
            let runnable = definition.states.values().filter(|state| definition.can_run(state));
            state.front.policy.allowance(runnable.map(|state| state.name.to_string()).collect())
        });
        Some(Self { state, agent: agent.clone(), allowed, agent_step: None })
    }

    /// Returns the specification of an agent step. Its state is made up, because a document of steps
    /// has no states.
    pub(crate) fn step(agent: &Agent, agent_step: Box<AgentStep>) -> Self {
        let name = StateName::new(agent.visit.location.to_string());
        let bytes: Arc<[u8]> = Arc::from([]);
        let source = SourceFile { name: name.to_string(), bytes, executable: false };
        let state = State {
            kind: Kind::Prompt,
            front: Arc::default(),
            body: agent_step.message.as_str().into(),
            hash: Hash::of(&source.bytes),
            source,
            name,
        };
        Self { state, agent: agent.clone(), allowed: None, agent_step: Some(agent_step) }
    }

    fn bindings<'a>(&'a self, context: &'a TurnContext) -> Bindings<'a> {
        let agent = &self.agent;
        Bindings {
            run: &context.run,
            agent: &agent.id,
            state: &self.state.name,
            visit: agent.visit_count(),
            scope: &context.scope,
            result: agent.visit.input.as_ref(),
            attributes: &agent.attributes,
            vars: &context.vars,
        }
    }
}

/// Sends a prompt and waits for its outcome. An error means that the run cannot continue.
///
/// Thousands of turns may wait here at the same time, so the future must be small: everything that is
/// needed only before the wait is boxed and consumed by [`prepare_prompt`].
pub(crate) async fn prompt(
    context: Arc<TurnContext>,
    effect: Box<PromptEffect>,
    spec: Box<TurnSpec>,
    watch: TurnObserver,
) -> Result<Outcome, blobs::Error> {
    let PreparedPrompt { backend, request, check } = match prepare_prompt(&context, effect, spec)? {
        Ok(prepare_prompt) => prepare_prompt,
        Err(failed) => return Ok(failed),
    };
    let answer = backend.answer(request, watch).await;
    check.outcome(&context, answer).await
}

/// A rendered prompt with its backend.
struct PreparedPrompt {
    backend: Arc<dyn Backend>,
    request: Request,
    check: AnswerCheck,
}

fn prepare_prompt(
    context: &TurnContext,
    effect: Box<PromptEffect>,
    mut spec: Box<TurnSpec>,
) -> Result<Result<PreparedPrompt, Outcome>, blobs::Error> {
    let effect = *effect;
    let not_started = |why| Outcome::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Reported(raymond_core::budget::Micros::ZERO),
        denied: Vec::new(),
        session: None,
    };
    // A failure before the client starts costs nothing. It is an outcome, so that the core decides
    // what follows.
    let Some(backend) = context.backends.get(&effect.backend) else {
        return Ok(Err(not_started(format!("there is no backend {}", effect.backend))));
    };
    if !Path::new(&effect.cwd).is_dir() {
        let cwd = &effect.cwd;
        return Ok(Err(not_started(format!("the working directory {cwd} does not exist"))));
    }
    let Rendered { text, unknown, too_large } = prompt_text(context, &effect, &mut spec)?;
    if too_large {
        let mib = LARGEST >> 20;
        return Ok(Err(not_started(format!("the prompt would be larger than {mib} MiB"))));
    }
    let cwd = PathBuf::from(&effect.cwd);
    let mut agent_step = spec.agent_step;
    let request = Request {
        started: started(context, &effect),
        location: effect.location.clone(),
        count: effect.count,
        prompt: text,
        notice: effect.notice.map(|why| notice(why).to_owned()),
        cwd: cwd.clone(),
        model: effect.model,
        effort: effect.effort,
        permissions: effect.permissions,
        extras: effect.extras,
        // Without that capability the schema is only part of the message.
        schema: agent_step
            .as_mut()
            .map(|agent_step| agent_step.schema.take())
            .filter(|_| backend.capabilities().contains(&Capability::Schema)),
        environment: effect.environment,
    };
    let check = AnswerCheck { agent_step, cwd, location: effect.location, unknown };
    Ok(Ok(PreparedPrompt { backend, request, check }))
}

/// The information for turning an answer into an outcome.
struct AnswerCheck {
    agent_step: Option<Box<AgentStep>>,
    cwd: PathBuf,
    location: Location,
    /// Names of template variables in the prompt that nothing defines.
    unknown: Vec<String>,
}

impl AnswerCheck {
    async fn outcome(self, context: &TurnContext, answer: Answer) -> Result<Outcome, blobs::Error> {
        if let Some(agent_step) = self.agent_step {
            return Box::pin(agent_step.outcome(&context.blobs, answer)).await;
        }
        let mut outcome =
            observe::read_answer(answer, context.messages, &self.cwd, &context.blobs)?;
        if let Outcome::Finished(finished) = &mut outcome {
            finished.warnings.splice(0..0, context.warn_unknown(&self.location, self.unknown));
        }
        Ok(outcome)
    }
}

/// Follows a turn that an earlier owner started, until it ends.
pub(crate) async fn follow(
    context: Arc<TurnContext>,
    effect: Box<PromptEffect>,
    agent_step: Option<Box<AgentStep>>,
    watch: TurnObserver,
) -> Result<Outcome, blobs::Error> {
    let Some(backend) = context.backends.get(&effect.backend) else {
        // The client was started by an owner with this backend, so it may have cost something.
        let (by, cost) = (Interruption::Crash, Cost::Unknown);
        return Ok(Outcome::Interrupted { by, cost, progressed: false, session: None });
    };
    // The same description as at the start of the turn: an adopted client keeps its time limits.
    let answer = backend.follow(started(&context, &effect), watch).await;
    let PromptEffect { cwd, location, .. } = *effect;
    let check = AnswerCheck { agent_step, cwd: cwd.into(), location, unknown: Vec::new() };
    check.outcome(&context, answer).await
}

fn started(context: &TurnContext, effect: &PromptEffect) -> StartedTurn {
    StartedTurn {
        nonce: context.nonce.clone(),
        turn: effect.turn.clone(),
        attempt: effect.attempt,
        plan: effect.plan.clone(),
        transcript: transcript(&context.transcripts, &effect.turn, effect.attempt),
        timeout: effect.timeout,
        idle_timeout: effect.idle_timeout,
        cap: effect.cap,
        config_home: config_home(effect.config_home, &context.homes, &effect.turn.agent),
    }
}

/// Renders the text of a prompt.
fn prompt_text(
    context: &TurnContext,
    effect: &PromptEffect,
    spec: &mut TurnSpec,
) -> Result<Rendered, blobs::Error> {
    if let Some(agent_step) = &mut spec.agent_step {
        let text = std::mem::take(&mut agent_step.message);
        return Ok(Rendered { text, ..Rendered::default() });
    }
    match (&effect.prompt, &spec.allowed) {
        (Prompt::Reminder(fault), Some(allowed)) => {
            Ok(Rendered { text: reminder(fault, allowed), ..Rendered::default() })
        }
        (Prompt::Body | Prompt::Reminder(_), _) => {
            let mut load = |blob: &BlobRef| context.load(blob);
            spec.bindings(context).render(&spec.state.body, &mut load)
        }
    }
}

/// Runs a script and waits for its outcome.
pub(crate) async fn script(
    context: Arc<TurnContext>,
    effect: Box<ScriptEffect>,
    spec: Box<TurnSpec>,
    cancel: CancellationToken,
) -> Result<Outcome, blobs::Error> {
    let failed = |why| Outcome::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Free,
        denied: Vec::new(),
        session: None,
    };
    let runnable = script_files::prepare(&context, &spec.state)?;
    let result =
        script_files::ResultFile::write(&context, &effect.turn, spec.agent.visit.input.as_ref())?;
    let environment = match variables(&context, &effect, &spec, result.path()) {
        Ok(environment) => environment,
        Err(why) => return Ok(failed(why)),
    };
    let script = Script {
        path: runnable.path.clone(),
        cwd: PathBuf::from(&effect.cwd),
        environment,
        inherit: Inherit::only(effect.environment.as_deref()),
        marker: Marker::new(&context.nonce, &effect.turn, effect.attempt),
    };
    let limits = Limits {
        wall: effect.timeout.map(duration),
        idle: effect.idle_timeout.map(duration),
        grace: context.grace,
        ..Limits::default()
    };
    let path = transcript(&context.transcripts, &effect.turn, effect.attempt);
    let ended = script::run(script, &limits, &cancel).await;
    Ok(match runnable.with_own_paths(ended) {
        ScriptEnd::Succeeded(spoken) => script_outcome(&context, &effect.cwd, spoken)?,
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
    let reply = observe::read_final_text(&spoken.text, Source::Script, cwd, &context.blobs)?;
    let reply = ReadReply { stderr: spoken.stderr, ..reply };
    let mut finished = Finished::new(reply, Cost::Free);
    if spoken.invalid_utf8 {
        finished.warnings.push(Warning::InvalidUtf8);
    }
    for survivor in spoken.survivors {
        let message = format!("a child of the script could not be ended: {survivor:?}");
        finished.warnings.push(Warning::Other { message });
    }
    Ok(Outcome::Finished(Box::new(finished)))
}

fn variables(
    context: &TurnContext,
    effect: &ScriptEffect,
    spec: &TurnSpec,
    result_file: &str,
) -> Result<Vec<(String, String)>, String> {
    let turn = &effect.turn;
    // The same on every attempt, so that a script can recognise a repeated visit.
    let key = format!("{}.{}.{}", context.nonce, turn.agent, turn.visit);
    let visit = ScriptVisit { key: &key, result_file };
    let mut load = |blob: &BlobRef| context.load(blob);
    environment(&spec.bindings(context), &visit, &mut load).map_err(|error| error.to_string())
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.0)
}
