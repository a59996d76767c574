//! One turn, from its effect to its outcome.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raymond_backends::contract::{Answer, Backend, Capability, Request, StartedTurn, TurnObserver};
use raymond_backends::process::{Inherit, Limits, Marker};
use raymond_backends::script::{self, Script, ScriptEnd, ScriptSuccess};
use raymond_core::budget::Cost;
use raymond_core::failure::TurnFailure;
use raymond_core::ids::{AgentId, StateName, TurnId};
use raymond_core::machine::Agent;
use raymond_core::protocol::notice::notice;
use raymond_core::protocol::reminder::reminder;
use raymond_core::protocol::{Source, allowance::Allowance};
use raymond_core::run::effect::{PromptEffect, ScriptEffect};
use raymond_core::run::event::Warning;
use raymond_core::run::input::{Interruption, Outcome};
use raymond_core::run::settings::ConfigHome;
use raymond_core::scheduler::Prompt;
use raymond_core::time::Span;
use raymond_core::value::{BlobRef, Hash};
use raymond_core::workflow::environment::{ScriptVisit, environment};
use raymond_core::workflow::template::{Bindings, LARGEST, Rendered};
use raymond_core::workflow::{Definition, Kind, SourceFile, State};
use raymond_store::blobs;
use tokio_util::sync::CancellationToken;

use super::asking::Asking;
use super::kit::Kit;
use super::pinned;
use crate::observe;

/// What a turn is about, taken from the run when its effect is released.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    state: State,
    agent: Agent,
    allowed: Option<Allowance>,
    /// The agent step that it is; none in a run of states.
    asking: Option<Box<Asking>>,
}

impl Subject {
    /// The subject of a turn of `agent`. What is allowed is only looked up for reminders.
    pub(crate) fn new(
        definition: &Definition,
        agent: &Agent,
        prompt: Option<&Prompt>,
    ) -> Option<Self> {
        let state = definition.states.get(&agent.visit.state)?.clone();
        let allowed = matches!(prompt, Some(Prompt::Reminder(_))).then(|| {
            let runnable = definition.states.values().filter(|state| definition.can_run(state));
            state.front.policy.allowance(runnable.map(|state| state.name.to_string()).collect())
        });
        Some(Self { state, agent: agent.clone(), allowed, asking: None })
    }

    /// The subject of an agent step.
    pub(crate) fn step(agent: &Agent, asking: Box<Asking>) -> Self {
        let name = agent.visit.state.clone();
        let bytes: Arc<[u8]> = Arc::from([]);
        let source = SourceFile { name: name.to_string(), bytes, executable: false };
        let state = State {
            kind: Kind::Prompt,
            front: Arc::default(),
            body: asking.message.as_str().into(),
            hash: Hash::of(&source.bytes),
            source,
            name,
        };
        Self { state, agent: agent.clone(), allowed: None, asking: Some(asking) }
    }

    fn bindings<'a>(&'a self, kit: &'a Kit) -> Bindings<'a> {
        let agent = &self.agent;
        Bindings {
            run: &kit.run,
            agent: &agent.id,
            state: &self.state.name,
            visit: agent.visits.get(&self.state.name).copied().unwrap_or(1),
            scope: &kit.scope,
            result: agent.visit.input.as_ref(),
            attributes: &agent.attributes,
            vars: &kit.vars,
        }
    }
}

/// Sends a prompt. An error means that the run cannot go on: a value could not be stored or read.
///
/// Thousands may wait for their answers: what is only needed before that is boxed, and the boxes are handed on whole,
/// so that they are gone by then.
pub(crate) async fn prompt(
    kit: Arc<Kit>,
    effect: Box<PromptEffect>,
    subject: Box<Subject>,
    watch: TurnObserver,
) -> Result<Outcome, blobs::Error> {
    let Sending { backend, request, judging } = match sending(&kit, effect, subject)? {
        Ok(sending) => sending,
        Err(failed) => return Ok(failed),
    };
    let answer = backend.answer(request, watch).await;
    judging.judge(&kit, answer).await
}

/// A prompt that can be sent.
struct Sending {
    backend: Arc<dyn Backend>,
    request: Request,
    judging: Judging,
}

fn sending(
    kit: &Kit,
    effect: Box<PromptEffect>,
    mut subject: Box<Subject>,
) -> Result<Result<Sending, Outcome>, blobs::Error> {
    let effect = *effect;
    let not_started = |why| Outcome::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Reported(raymond_core::budget::Micros::ZERO),
        denied: Vec::new(),
        session: None,
    };
    let Some(backend) = kit.backends.get(&effect.backend) else {
        return Ok(Err(not_started(format!("there is no backend {}", effect.backend))));
    };
    if !Path::new(&effect.cwd).is_dir() {
        let cwd = &effect.cwd;
        return Ok(Err(not_started(format!("the working directory {cwd} does not exist"))));
    }
    let Rendered { text, unknown, too_large } = words(kit, &effect, &mut subject)?;
    if too_large {
        let mib = LARGEST >> 20;
        return Ok(Err(not_started(format!("its prompt would have more than {mib} MiB"))));
    }
    let cwd = PathBuf::from(&effect.cwd);
    let mut asking = subject.asking;
    let request = Request {
        started: started(kit, &effect),
        state: effect.state.clone(),
        count: effect.count,
        prompt: text,
        notice: effect.notice.map(|why| notice(why).to_owned()),
        cwd: cwd.clone(),
        model: effect.model,
        effort: effect.effort,
        permissions: effect.permissions,
        extras: effect.extras,
        schema: asking
            .as_mut()
            .map(|asking| asking.schema.take())
            .filter(|_| backend.capabilities().contains(&Capability::Schema)),
        environment: effect.environment,
    };
    let judging = Judging { asking, cwd, state: effect.state, unknown };
    Ok(Ok(Sending { backend, request, judging }))
}

/// How an answer is to be taken.
struct Judging {
    asking: Option<Box<Asking>>,
    cwd: PathBuf,
    state: StateName,
    /// What in its prompt means nothing.
    unknown: Vec<String>,
}

impl Judging {
    async fn judge(self, kit: &Kit, answer: Answer) -> Result<Outcome, blobs::Error> {
        let (source, by) = (kit.messages, Interruption::Stop);
        if let Some(asking) = self.asking {
            return Box::pin(asking.judge(&kit.blobs, answer, by)).await;
        }
        let mut outcome = observe::answered(answer, source, by, &self.cwd, &kit.blobs)?;
        if let Outcome::Finished(finished) = &mut outcome {
            finished.warnings.splice(0..0, kit.unknown(&self.state, self.unknown));
        }
        Ok(outcome)
    }
}

/// Observes a turn to its end that an earlier owner started.
pub(crate) async fn follow(
    kit: Arc<Kit>,
    effect: Box<PromptEffect>,
    asking: Option<Box<Asking>>,
    watch: TurnObserver,
) -> Result<Outcome, blobs::Error> {
    let Some(backend) = kit.backends.get(&effect.backend) else {
        let (by, cost) = (Interruption::Crash, Cost::Unknown);
        return Ok(Outcome::Interrupted { by, cost, progressed: false, session: None });
    };
    let answer = backend.follow(started(&kit, &effect), watch).await;
    let PromptEffect { cwd, state, .. } = *effect;
    let judging = Judging { asking, cwd: cwd.into(), state, unknown: Vec::new() };
    judging.judge(&kit, answer).await
}

fn started(kit: &Kit, effect: &PromptEffect) -> StartedTurn {
    StartedTurn {
        nonce: kit.nonce.clone(),
        turn: effect.turn.clone(),
        attempt: effect.attempt,
        plan: effect.plan.clone(),
        transcript: transcript(&kit.transcripts, &effect.turn, effect.attempt),
        timeout: effect.timeout,
        idle_timeout: effect.idle_timeout,
        cap: effect.cap,
        config_home: config_home(effect.config_home, &kit.homes, &effect.turn.agent),
    }
}

/// Where the client of an agent keeps its configuration; none is the person's own.
pub(crate) fn config_home(whose: ConfigHome, homes: &Path, agent: &AgentId) -> Option<PathBuf> {
    match whose {
        ConfigHome::Shared => None,
        ConfigHome::PerAgent => Some(homes.join(agent.as_str())),
    }
}

/// Where a client's words of this attempt go.
pub fn transcript(directory: &Path, turn: &TurnId, attempt: u32) -> PathBuf {
    directory.join(format!("{turn}.{attempt}.jsonl"))
}

/// What a prompt says, and which of its names mean nothing.
fn words(
    kit: &Kit,
    effect: &PromptEffect,
    subject: &mut Subject,
) -> Result<Rendered, blobs::Error> {
    if let Some(asking) = &mut subject.asking {
        let text = std::mem::take(&mut asking.message);
        return Ok(Rendered { text, ..Rendered::default() });
    }
    match (&effect.prompt, &subject.allowed) {
        (Prompt::Reminder(fault), Some(allowed)) => {
            Ok(Rendered { text: reminder(fault, allowed), ..Rendered::default() })
        }
        (Prompt::Body | Prompt::Reminder(_), _) => {
            let mut load = |blob: &BlobRef| kit.load(blob);
            subject.bindings(kit).render(&subject.state.body, &mut load)
        }
    }
}

/// Runs a script.
pub(crate) async fn script(
    kit: Arc<Kit>,
    effect: Box<ScriptEffect>,
    subject: Box<Subject>,
    cancel: CancellationToken,
) -> Result<Outcome, blobs::Error> {
    let failed = |why| Outcome::Failed {
        failure: TurnFailure::NotStarted { why },
        cost: Cost::Free,
        denied: Vec::new(),
        session: None,
    };
    let runnable = pinned::script(&kit, &subject.state)?;
    let result = pinned::Result::of(&kit, &effect.turn, subject.agent.visit.input.as_ref())?;
    let environment = match variables(&kit, &effect, &subject, result.path()) {
        Ok(environment) => environment,
        Err(why) => return Ok(failed(why)),
    };
    let script = Script {
        path: runnable.path.clone(),
        cwd: PathBuf::from(&effect.cwd),
        environment,
        inherit: Inherit::only(effect.environment.as_deref()),
        marker: Marker::new(&kit.nonce, &effect.turn, effect.attempt),
    };
    let limits = Limits {
        wall: effect.timeout.map(duration),
        idle: effect.idle_timeout.map(duration),
        grace: kit.grace,
        ..Limits::default()
    };
    let words = transcript(&kit.transcripts, &effect.turn, effect.attempt);
    let ended = script::run(script, &limits, &cancel).await;
    Ok(match runnable.with_own_paths(ended) {
        ScriptEnd::Succeeded(spoken) => told(&kit, &effect.cwd, spoken)?,
        ScriptEnd::Failed { failure, output } => {
            pinned::keep(&words, &output);
            Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None }
        }
        ScriptEnd::Interrupted { progressed, output } => {
            pinned::keep(&words, &output);
            let (by, cost) = (Interruption::Stop, Cost::Free);
            Outcome::Interrupted { by, cost, progressed, session: None }
        }
    })
}

fn told(kit: &Kit, cwd: &str, spoken: ScriptSuccess) -> Result<Outcome, blobs::Error> {
    let cwd = Path::new(cwd);
    let mut finished = observe::finished(&spoken.text, Source::Script, cwd, &kit.blobs)?;
    finished.stderr = spoken.stderr;
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
    kit: &Kit,
    effect: &ScriptEffect,
    subject: &Subject,
    result_file: &str,
) -> Result<Vec<(String, String)>, String> {
    let turn = &effect.turn;
    let key = format!("{}.{}.{}", kit.nonce, turn.agent, turn.visit);
    let visit = ScriptVisit { key: &key, result_file };
    let mut load = |blob: &BlobRef| kit.load(blob);
    environment(&subject.bindings(kit), &visit, &mut load).map_err(|error| error.to_string())
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.0)
}
