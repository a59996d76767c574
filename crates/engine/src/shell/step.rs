//! One attempt at the program of a step, from its effect to its outcome.
//!
//! What it reads is checked before it runs: a fault there fails the step at once. What it leaves is
//! checked afterwards: a fault there is a failed attempt. Either way there is a result, which says
//! what is known.

use std::sync::Arc;
use std::time::Duration;

use raymond_backends::exec::{self, ExecCommand, ExecEnd, ExecResult};
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

use super::kit::Kit;
use crate::aside::{self, GivenUp, aside};
use crate::observe::store;
use crate::schemas::Schemas;
use crate::steps::flaw_of_file;

/// What a step is about, filled in when its effect is released.
#[derive(Debug)]
pub(crate) struct Doing {
    pub(crate) index: StepIndex,
    pub(crate) exec: Exec,
    pub(crate) call: Call,
    pub(crate) schemas: Arc<Schemas>,
}

/// Why an attempt failed.
struct Fault {
    wrong: Wrong,
    /// The last line of what it said about it, which is a part of the result already.
    said: Option<String>,
    again: bool,
}

/// What is wrong, and where: in the step, or in a value that it reads or leaves.
struct Wrong {
    why: String,
    errors: Vec<Problem>,
}

impl Wrong {
    fn at(place: &str, flaw: ProblemCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { errors: vec![Problem::new(place, flaw, why.as_str())], why }
    }
}

impl<T: Into<String>> From<T> for Wrong {
    fn from(why: T) -> Self {
        Self { why: why.into(), errors: Vec::new() }
    }
}

impl Fault {
    /// The same would follow from another try.
    fn of_input(wrong: impl Into<Wrong>) -> Self {
        Self { wrong: wrong.into(), said: None, again: false }
    }

    fn of_output(wrong: impl Into<Wrong>) -> Self {
        Self { wrong: wrong.into(), said: None, again: true }
    }
}

/// Runs a step. An error means that the run cannot go on: a value could not be stored.
pub(crate) async fn step(
    kit: Arc<Kit>,
    effect: Box<StepEffect>,
    doing: Doing,
    cancel: CancellationToken,
) -> Result<Outcome, blobs::Error> {
    // Until the program runs, there was no attempt.
    let known =
        [("mode", json!(doing.exec.io.mode())), ("stderr", json!("")), ("attempts", json!(0))];
    let mut result: Map<String, Json> =
        known.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let workspace = match Workspace::open(effect.cwd.as_ref()) {
        Ok(workspace) => workspace,
        Err(fault) => return failed(&kit, result, Fault::of_input(fault.to_string())),
    };
    let (doing, workspace) = (Arc::new(doing), Arc::new(workspace));
    let (reader, place) = (Arc::clone(&doing), Arc::clone(&workspace));
    match doing.checked(&cancel, move || reader.check_inputs(&place)).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => return failed(&kit, result, fault),
        Err(GivenUp::TooLong) => return failed(&kit, result, Fault::of_input(endless())),
        Err(GivenUp::NoThread) => return failed(&kit, result, Fault::of_input(aside::NO_THREAD)),
        Err(GivenUp::Cancelled) => return Ok(interrupted()),
    }
    let ran = exec::run(doing.attempt(&kit, &effect), &cancel).await;
    if ran.end == ExecEnd::Cancelled {
        return Ok(interrupted());
    }
    result.insert("stderr".to_owned(), json!(ran.stderr));
    result.insert("attempts".to_owned(), json!(effect.counted));
    let (reader, mut left) = (Arc::clone(&doing), result.clone());
    let judged = doing.checked(&cancel, move || {
        let judged = reader.judge(&workspace, &ran, &mut left);
        (judged, left)
    });
    match judged.await {
        Ok((Ok(()), left)) => finished(&kit, left),
        Ok((Err(fault), left)) => failed(&kit, left, fault),
        Err(GivenUp::TooLong) => failed(&kit, result, Fault::of_output(endless())),
        Err(GivenUp::NoThread) => failed(&kit, result, Fault::of_output(aside::NO_THREAD)),
        Err(GivenUp::Cancelled) => Ok(interrupted()),
    }
}

fn interrupted() -> Outcome {
    let (by, cost) = (Interruption::Stop, Cost::Free);
    Outcome::Interrupted { by, cost, progressed: false, session: None }
}

/// What is said of a value that cannot be checked in time.
pub(crate) fn endless() -> String {
    format!("to check it by its schema takes more than {} s", aside::LONGEST.as_secs())
}

fn finished(kit: &Kit, mut result: Map<String, Json>) -> Result<Outcome, blobs::Error> {
    result.insert("ok".to_owned(), json!(true));
    let stored = store(&kit.blobs, Json::Object(result), true)?;
    let finished = Finished { read: stored.read, ..Finished::new(stored.value, Cost::Free) };
    Ok(Outcome::Finished(Box::new(finished)))
}

fn failed(kit: &Kit, mut result: Map<String, Json>, fault: Fault) -> Result<Outcome, blobs::Error> {
    let Fault { wrong: Wrong { why, errors }, said, again } = fault;
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
    let result = store(&kit.blobs, Json::Object(result), false)?;
    let why = said.map_or_else(|| why.clone(), |said| format!("{why}: {said}"));
    let failure = TurnFailure::Step { why, result, again };
    Ok(Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None })
}

/// Of what a program printed that failed, only the end is kept.
fn keep_end(text: &mut String) {
    let start = text.len().saturating_sub(exec::STDERR_MAX);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.drain(..start);
}

impl Doing {
    /// Looks at what goes in or came out: aside, where schemas decide how long that takes.
    async fn checked<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GivenUp> {
        match &self.exec.io {
            Io::None => Ok(look()),
            Io::File { .. } | Io::Stream { .. } => aside(cancel, look).await,
        }
    }

    fn attempt(&self, kit: &Kit, effect: &StepEffect) -> exec::Exec {
        let command = match &self.call.program {
            Program::Shell(text) => ExecCommand::Shell(text.clone()),
            Program::Cmd { cmd, args } => {
                ExecCommand::Program { program: cmd.clone(), arguments: args.clone() }
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
            marker: Marker::new(&kit.nonce, &effect.turn, effect.attempt),
            timeout: Duration::from_millis(self.exec.timeout.0),
        }
    }

    fn check_inputs(&self, workspace: &Workspace) -> Result<(), Fault> {
        if let Some(place) = self.call.nul() {
            return Err(Fault::of_input(cut_short(&place)));
        }
        match &self.exec.io {
            Io::None => Ok(()),
            Io::File { inputs, outputs } => {
                whole(("/io/in", inputs), &self.call.inputs).map_err(Fault::of_input)?;
                whole(("/io/out", outputs), &self.call.outputs).map_err(Fault::of_input)?;
                self.files(workspace, ("/io/in", inputs), &self.call.inputs)
                    .map_err(Fault::of_input)?;
                // Where a path that leads out would be written must not be found out afterwards.
                let paths = outputs.iter().zip(&self.call.outputs);
                for (contract, path) in paths {
                    writable(workspace, contract, path).map_err(Fault::of_input)?;
                }
                Ok(())
            }
            Io::Stream { .. } => {
                let errors =
                    self.call.input.as_ref().map(|json| self.errors("/io/inputSchema", json));
                told("its input", &errors.unwrap_or_default()).map_err(Fault::of_input)
            }
        }
    }

    /// What the attempt left, and whether that is what the step says.
    fn judge(
        &self,
        workspace: &Workspace,
        ran: &ExecResult,
        result: &mut Map<String, Json>,
    ) -> Result<(), Fault> {
        if !matches!(self.exec.io, Io::Stream { .. }) {
            result.insert("stdout".to_owned(), json!(ran.stdout));
        }
        ended(&ran.end).map_err(|fault| Fault { said: last_line(&ran.stderr), ..fault })?;
        match &self.exec.io {
            Io::None => Ok(()),
            Io::File { outputs, .. } => {
                let files = self.files(workspace, ("/io/out", outputs), &self.call.outputs);
                result.insert("outputs".to_owned(), Json::Object(files.map_err(Fault::of_output)?));
                Ok(())
            }
            Io::Stream { .. } => {
                if ran.invalid_utf8 {
                    let wrong = Wrong::at("", ProblemCode::NotUtf8, "its stdout is not UTF-8");
                    return Err(Fault::of_output(wrong));
                }
                let json = reading::read_text(&ran.stdout).map_err(|why| {
                    let told = format!("its stdout is not JSON: {why}");
                    Fault::of_output(Wrong { why: told, errors: vec![why.into()] })
                })?;
                let errors = self.errors("/io/outputSchema", &json);
                result.insert("json".to_owned(), json);
                told("its stdout", &errors).map_err(Fault::of_output)
            }
        }
    }

    /// The files of contracts, each checked, by the names of the contracts.
    fn files(
        &self,
        workspace: &Workspace,
        (list, contracts): (&str, &[Contract]),
        paths: &[String],
    ) -> Result<Map<String, Json>, Wrong> {
        let mut files = Map::new();
        for (contract, path) in contracts.iter().zip(paths) {
            let name = &contract.name;
            let place = format!("{list}/{}", escaped(name));
            let bytes = workspace.read(path).map_err(|fault| {
                Wrong::at(&place, flaw_of_file(&fault), format!("{name}: {fault}"))
            })?;
            let json = reading::read(&bytes).map_err(|why| Wrong {
                why: format!("{name}: {path} is not JSON: {why}"),
                errors: vec![why.into()],
            })?;
            let errors = self.errors(&format!("{place}/schema"), &json);
            told(&format!("{name}: {path}"), &errors)?;
            files.insert(name.clone(), json);
        }
        Ok(files)
    }

    fn errors(&self, schema: &str, json: &Json) -> Vec<Problem> {
        self.schemas.errors(self.index, schema, json)
    }
}

/// Whether a file may be written, as far as can be known before it is.
fn writable(workspace: &Workspace, contract: &Contract, path: &str) -> Result<(), Wrong> {
    let place = format!("/io/out/{}", escaped(&contract.name));
    let wrong = |flaw, why: &str| Wrong::at(&place, flaw, format!("{}: {why}", contract.name));
    if path.is_empty() {
        return Err(wrong(ProblemCode::EscapingPath, "its path is empty"));
    }
    workspace.check(path).map_err(|fault| {
        let why = format!("cannot write {path} in the workspace: {}", fault.why);
        wrong(flaw_of_file(&fault), &why)
    })
}

fn cut_short(place: &str) -> Wrong {
    let why = format!("{place} holds a NUL character, which no program can be handed");
    Wrong::at(place, ProblemCode::BadText, why)
}

/// No path of these files is cut short by a NUL character.
fn whole((list, contracts): (&str, &[Contract]), paths: &[String]) -> Result<(), Wrong> {
    let mut files = contracts.iter().zip(paths);
    match files.find(|(_, path)| path.contains('\0')) {
        Some((contract, _)) => Err(cut_short(&format!("{list}/{}", escaped(&contract.name)))),
        None => Ok(()),
    }
}

fn ended(end: &ExecEnd) -> Result<(), Fault> {
    let why = match end {
        ExecEnd::Succeeded => return Ok(()),
        ExecEnd::Failed { status } => status.clone(),
        ExecEnd::TimedOut { after } => format!("timed out after {} ms", after.as_millis()),
        ExecEnd::TooLarge { limit } => {
            let why = format!("more than {} MiB of output", limit >> 20);
            return Err(Fault::of_output(Wrong::at("", ProblemCode::TooLarge, why)));
        }
        ExecEnd::NotStarted { why } => why.clone(),
        ExecEnd::Cancelled => "it was cancelled".to_owned(),
    };
    Err(Fault::of_output(why))
}

/// The last line that says something, as far as one reads it.
fn last_line(text: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let end = line.char_indices().nth(LONGEST).map(|(end, _)| end);
    Some(end.map_or_else(|| line.to_owned(), |end| format!("{}…", &line[..end])))
}

fn told(what: &str, errors: &[Problem]) -> Result<(), Wrong> {
    let Some(first) = errors.first() else { return Ok(()) };
    let more = match errors.len() {
        1 => String::new(),
        several => format!(" (and {} more)", several - 1),
    };
    let why = format!("{what} is not what its schema says: {first}{more}");
    Err(Wrong { why, errors: errors.to_vec() })
}

/// A name as a token of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
