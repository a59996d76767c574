//! One attempt at the program of a step, from its effect to its outcome.
//!
//! What it reads is checked before it runs: a fault there fails the step at once. What it leaves is
//! checked afterwards: a fault there is a failed attempt. Either way there is a result, which says
//! what is known.

use std::sync::Arc;
use std::time::Duration;

use raymond_backends::exec::{self, Command, End, Ran};
use raymond_backends::process::{Inherit, Input, Marker};
use raymond_backends::workspace::Workspace;
use raymond_core::budget::Cost;
use raymond_core::crayfish::document::{Contract, Exec, Io, StepIndex};
use raymond_core::crayfish::render::{Call, Program};
use raymond_core::crayfish::{Problem, ProblemCode, reading};
use raymond_core::failure::TurnFailure;
use raymond_core::run::effect::StepEffect;
use raymond_core::run::input::{Finished, Interruption, Outcome};
use raymond_store::blobs;
use serde_json::{Map, Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::turn_context::TurnContext;
use crate::blocking::{self, Unfinished, run_with_limit};
use crate::observe::store;
use crate::schemas::Schemas;
use crate::steps::file_problem_code;

/// What a step is about, filled in when its effect is released.
#[derive(Debug)]
pub(crate) struct ExecStep {
    pub(crate) index: StepIndex,
    pub(crate) exec: Exec,
    pub(crate) call: Call,
    pub(crate) schemas: Arc<Schemas>,
}

/// Why an attempt failed.
struct AttemptFailure {
    finding: Finding,
    /// The last line of what it last_line about it, which is a part of the result already.
    last_line: Option<String>,
    is_retryable: bool,
}

/// What is finding, and where: in the step, or in a value that it reads or leaves.
struct Finding {
    why: String,
    errors: Vec<Problem>,
}

impl Finding {
    fn at(place: &str, code: ProblemCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { errors: vec![Problem::new(place, code, why.as_str())], why }
    }
}

impl<T: Into<String>> From<T> for Finding {
    fn from(why: T) -> Self {
        Self { why: why.into(), errors: Vec::new() }
    }
}

impl AttemptFailure {
    /// The same would follow from another try.
    fn of_input(finding: impl Into<Finding>) -> Self {
        Self { finding: finding.into(), last_line: None, is_retryable: false }
    }

    fn of_output(finding: impl Into<Finding>) -> Self {
        Self { finding: finding.into(), last_line: None, is_retryable: true }
    }
}

/// Runs a step. An error means that the run cannot go on: a value could not be stored.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    effect: Box<StepEffect>,
    step: ExecStep,
    cancel: CancellationToken,
) -> Result<Outcome, blobs::Error> {
    // Until the program runs, there was no attempt.
    let known =
        [("mode", json!(step.exec.io.mode())), ("stderr", json!("")), ("attempts", json!(0))];
    let mut result: Map<String, Json> =
        known.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let workspace = match Workspace::open(effect.cwd.as_ref()) {
        Ok(workspace) => workspace,
        Err(fault) => return failed(&context, result, AttemptFailure::of_input(fault.to_string())),
    };
    let (step, workspace) = (Arc::new(step), Arc::new(workspace));
    let (reader, place) = (Arc::clone(&step), Arc::clone(&workspace));
    match step.check(&cancel, move || reader.check_inputs(&place)).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => return failed(&context, result, fault),
        Err(Unfinished::TimedOut) => {
            return failed(&context, result, AttemptFailure::of_input(too_slow_message()));
        }
        Err(Unfinished::NoThread) => {
            return failed(&context, result, AttemptFailure::of_input(blocking::NO_THREAD));
        }
        Err(Unfinished::Cancelled) => return Ok(interrupted()),
    }
    let ran = exec::run(step.command(&context, &effect), &cancel).await;
    if ran.end == End::Cancelled {
        return Ok(interrupted());
    }
    result.insert("stderr".to_owned(), json!(ran.stderr));
    result.insert("attempts".to_owned(), json!(effect.counted));
    let (reader, mut left) = (Arc::clone(&step), result.clone());
    let checked_results = step.check(&cancel, move || {
        let checked_results = reader.check_results(&workspace, &ran, &mut left);
        (checked_results, left)
    });
    match checked_results.await {
        Ok((Ok(()), left)) => finished(&context, left),
        Ok((Err(fault), left)) => failed(&context, left, fault),
        Err(Unfinished::TimedOut) => {
            failed(&context, result, AttemptFailure::of_output(too_slow_message()))
        }
        Err(Unfinished::NoThread) => {
            failed(&context, result, AttemptFailure::of_output(blocking::NO_THREAD))
        }
        Err(Unfinished::Cancelled) => Ok(interrupted()),
    }
}

fn interrupted() -> Outcome {
    let (by, cost) = (Interruption::Stop, Cost::Free);
    Outcome::Interrupted { by, cost, progressed: false, session: None }
}

/// What is last_line of a value that cannot be checked in time.
pub(crate) fn too_slow_message() -> String {
    format!("to check it by its schema takes more than {} s", blocking::TIME_LIMIT.as_secs())
}

fn finished(context: &TurnContext, mut result: Map<String, Json>) -> Result<Outcome, blobs::Error> {
    result.insert("ok".to_owned(), json!(true));
    let stored = store(&context.blobs, Json::Object(result), true)?;
    let finished = Finished { read: stored.read, ..Finished::new(stored.value, Cost::Free) };
    Ok(Outcome::Finished(Box::new(finished)))
}

fn failed(
    context: &TurnContext,
    mut result: Map<String, Json>,
    fault: AttemptFailure,
) -> Result<Outcome, blobs::Error> {
    let AttemptFailure { finding: Finding { why, errors }, last_line, is_retryable } = fault;
    result.insert("ok".to_owned(), json!(false));
    result.insert("error".to_owned(), json!(why));
    if !errors.is_empty() {
        result.insert(
            "errors".to_owned(),
            Json::Array(errors.iter().map(Problem::to_json).collect()),
        );
    }
    if let Some(Json::String(stdout)) = result.get_mut("stdout") {
        keep_end(stdout);
    }
    let result = store(&context.blobs, Json::Object(result), false)?;
    let why = last_line.map_or_else(|| why.clone(), |last_line| format!("{why}: {last_line}"));
    let failure = TurnFailure::Step { why, result, again: is_retryable };
    Ok(Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None })
}

/// Of what a program printed that failed, only the end is kept.
fn keep_end(text: &mut String) {
    let start = text.len().saturating_sub(exec::STDERR_MAX);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.drain(..start);
}

impl ExecStep {
    /// Looks at what goes in or came out: aside, where schemas decide how long that takes.
    async fn check<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        match &self.exec.io {
            Io::None => Ok(look()),
            Io::File { .. } | Io::Stream { .. } => run_with_limit(cancel, look).await,
        }
    }

    fn command(&self, context: &TurnContext, effect: &StepEffect) -> exec::Exec {
        let command = match &self.call.program {
            Program::Shell(text) => Command::Shell(text.clone()),
            Program::Cmd { cmd, args } => {
                Command::Program { program: cmd.clone(), arguments: args.clone() }
            }
        };
        exec::Exec {
            command,
            cwd: effect.cwd.clone().into(),
            environment: self.call.env.clone().into_iter().collect(),
            inherit: Inherit::only(effect.environment.as_deref()),
            stdin: self
                .call
                .input
                .as_ref()
                .map_or(Input::Null, |json| Input::Bytes(json.to_string().into_bytes())),
            marker: Marker::new(&context.nonce, &effect.turn, effect.attempt),
            timeout: Duration::from_millis(self.exec.timeout.0),
        }
    }

    fn check_inputs(&self, workspace: &Workspace) -> Result<(), AttemptFailure> {
        if let Some(place) = self.call.nul() {
            return Err(AttemptFailure::of_input(nul_finding(&place)));
        }
        match &self.exec.io {
            Io::None => Ok(()),
            Io::File { inputs, outputs } => {
                check_no_nul(("/io/in", inputs), &self.call.inputs)
                    .map_err(AttemptFailure::of_input)?;
                check_no_nul(("/io/out", outputs), &self.call.outputs)
                    .map_err(AttemptFailure::of_input)?;
                self.files(workspace, ("/io/in", inputs), &self.call.inputs)
                    .map_err(AttemptFailure::of_input)?;
                // Where a path that leads out would be written must not be found out afterwards.
                let paths = outputs.iter().zip(&self.call.outputs);
                for (contract, path) in paths {
                    check_writable(workspace, contract, path).map_err(AttemptFailure::of_input)?;
                }
                Ok(())
            }
            Io::Stream { .. } => {
                let errors =
                    self.call.input.as_ref().map(|json| self.errors("/io/inputSchema", json));
                check_errors("its input", &errors.unwrap_or_default())
                    .map_err(AttemptFailure::of_input)
            }
        }
    }

    /// What the attempt left, and whether that is what the step says.
    fn check_results(
        &self,
        workspace: &Workspace,
        ran: &Ran,
        result: &mut Map<String, Json>,
    ) -> Result<(), AttemptFailure> {
        if !matches!(self.exec.io, Io::Stream { .. }) {
            result.insert("stdout".to_owned(), json!(ran.stdout));
        }
        check_end(&ran.end)
            .map_err(|fault| AttemptFailure { last_line: last_line_of(&ran.stderr), ..fault })?;
        match &self.exec.io {
            Io::None => Ok(()),
            Io::File { outputs, .. } => {
                let files = self.files(workspace, ("/io/out", outputs), &self.call.outputs);
                result.insert(
                    "outputs".to_owned(),
                    Json::Object(files.map_err(AttemptFailure::of_output)?),
                );
                Ok(())
            }
            Io::Stream { .. } => {
                if ran.invalid_utf8 {
                    let finding = Finding::at("", ProblemCode::NotUtf8, "its stdout is not UTF-8");
                    return Err(AttemptFailure::of_output(finding));
                }
                let json = reading::read_text(&ran.stdout).map_err(|why| {
                    let told = format!("its stdout is not JSON: {why}");
                    AttemptFailure::of_output(Finding { why: told, errors: vec![why.into()] })
                })?;
                let errors = self.errors("/io/outputSchema", &json);
                result.insert("json".to_owned(), json);
                check_errors("its stdout", &errors).map_err(AttemptFailure::of_output)
            }
        }
    }

    /// The files of contracts, each checked, by the names of the contracts.
    fn files(
        &self,
        workspace: &Workspace,
        (list, contracts): (&str, &[Contract]),
        paths: &[String],
    ) -> Result<Map<String, Json>, Finding> {
        let mut files = Map::new();
        for (contract, path) in contracts.iter().zip(paths) {
            let name = &contract.name;
            let place = format!("{list}/{}", pointer_token(name));
            let bytes = workspace.read(path).map_err(|fault| {
                Finding::at(&place, file_problem_code(&fault), format!("{name}: {fault}"))
            })?;
            let json = reading::read(&bytes).map_err(|why| Finding {
                why: format!("{name}: {path} is not JSON: {why}"),
                errors: vec![why.into()],
            })?;
            let errors = self.errors(&format!("{place}/schema"), &json);
            check_errors(&format!("{name}: {path}"), &errors)?;
            files.insert(name.clone(), json);
        }
        Ok(files)
    }

    fn errors(&self, schema: &str, json: &Json) -> Vec<Problem> {
        self.schemas.errors(self.index, schema, json)
    }
}

/// Whether a file may be written, as far as can be known before it is.
fn check_writable(workspace: &Workspace, contract: &Contract, path: &str) -> Result<(), Finding> {
    let place = format!("/io/out/{}", pointer_token(&contract.name));
    let finding = |code, why: &str| Finding::at(&place, code, format!("{}: {why}", contract.name));
    if path.is_empty() {
        return Err(finding(ProblemCode::EscapingPath, "its path is empty"));
    }
    workspace.check(path).map_err(|fault| {
        let why = format!("cannot write {path} in the workspace: {}", fault.why);
        finding(file_problem_code(&fault), &why)
    })
}

fn nul_finding(place: &str) -> Finding {
    let why = format!("{place} holds a NUL character, which no program can be handed");
    Finding::at(place, ProblemCode::BadText, why)
}

/// No path of these files is cut short by a NUL character.
fn check_no_nul((list, contracts): (&str, &[Contract]), paths: &[String]) -> Result<(), Finding> {
    let mut files = contracts.iter().zip(paths);
    match files.find(|(_, path)| path.contains('\0')) {
        Some((contract, _)) => {
            Err(nul_finding(&format!("{list}/{}", pointer_token(&contract.name))))
        }
        None => Ok(()),
    }
}

fn check_end(end: &End) -> Result<(), AttemptFailure> {
    let why = match end {
        End::Succeeded => return Ok(()),
        End::Failed { status } => status.clone(),
        End::TimedOut { after } => format!("timed out after {} ms", after.as_millis()),
        End::TooLarge { limit } => {
            let why = format!("more than {} MiB of output", limit >> 20);
            return Err(AttemptFailure::of_output(Finding::at("", ProblemCode::TooLarge, why)));
        }
        End::NotStarted { why } => why.clone(),
        End::Cancelled => "it was cancelled".to_owned(),
    };
    Err(AttemptFailure::of_output(why))
}

/// The last line that says something, as far as one reads it.
fn last_line_of(text: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let end = line.char_indices().nth(LONGEST).map(|(end, _)| end);
    Some(end.map_or_else(|| line.to_owned(), |end| format!("{}…", &line[..end])))
}

fn check_errors(what: &str, errors: &[Problem]) -> Result<(), Finding> {
    let Some(first) = errors.first() else { return Ok(()) };
    let more = match errors.len() {
        1 => String::new(),
        several => format!(" (and {} more)", several - 1),
    };
    let why = format!("{what} is not what its schema says: {first}{more}");
    Err(Finding { why, errors: errors.to_vec() })
}

/// A name as a token of a JSON pointer.
fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
