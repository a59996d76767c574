//! One attempt at the program of an `exec` step, from its effect to its outcome.
//!
//! Inputs are checked before the program starts: a mistake there fails the step, because another
//! attempt would meet the same input. Outputs are checked afterwards: a mistake there fails only
//! the attempt. Both ways the step has a result with everything that is known. The process itself
//! is in `raymond_backends::exec`.

use std::sync::Arc;
use std::time::Duration;

use raymond_backends::exec::{self, ExecCommand, ExecEnd, ExecResult};
use raymond_backends::process::{Inherit, Marker, ProcessStdin};
use raymond_backends::workspace::Workspace;
use raymond_core::budget::Cost;
use raymond_core::crayfish::render::{CallFile, CallIo, ExecCall, StepCommand};
use raymond_core::crayfish::{Problem, ProblemCode, reading};
use raymond_core::failure::TurnFailure;
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::stop::Interruption;
use raymond_core::run::turn_spec::{ExecSpec, TurnHeader};
use raymond_core::text::push_pointer_token;
use raymond_core::workflow::environment::run_variables;
use raymond_store::blobs;
use serde_json::{Map, Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::turn_context::TurnContext;
use crate::blocking::{self, Unfinished, run_with_limit};
use crate::observe::store;
use crate::prepare::steps::file_problem_code;
use crate::schemas::Schemas;

/// The call of an `exec` step, with the compiled schemas that check its values.
#[derive(Debug)]
struct RunningExecStep {
    call: ExecCall,
    schemas: Arc<Schemas>,
}

/// Why an attempt failed.
struct AttemptFailure {
    finding: Finding,
    /// The last line of stderr, for the message. The result already contains all of stderr.
    last_line: Option<String>,
    is_retryable: bool,
}

/// A mistake, and its place in the step or in one of its values.
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
    /// Another attempt would fail in the same way, so there is none.
    fn from_input(finding: impl Into<Finding>) -> Self {
        Self { finding: finding.into(), last_line: None, is_retryable: false }
    }

    fn from_output(finding: impl Into<Finding>) -> Self {
        Self { finding: finding.into(), last_line: None, is_retryable: true }
    }
}

/// The input or output files of a step.
#[derive(Clone, Copy)]
struct FileList<'a> {
    /// The JSON pointer to the list inside the step.
    pointer: &'a str,
    files: &'a [CallFile],
}

impl<'a> FileList<'a> {
    const fn inputs(files: &'a [CallFile]) -> Self {
        Self { pointer: "/io/in", files }
    }

    const fn outputs(files: &'a [CallFile]) -> Self {
        Self { pointer: "/io/out", files }
    }

    fn pointer_to(self, file: &CallFile) -> String {
        let mut pointer = self.pointer.to_owned();
        push_pointer_token(&mut pointer, &file.name);
        pointer
    }
}

/// Runs one attempt. An error means that the run cannot continue: a value could not be stored.
pub(crate) async fn run(
    context: Arc<TurnContext>,
    header: Box<TurnHeader>,
    exec: Box<ExecSpec>,
    cancel: CancellationToken,
) -> Result<Outcome, blobs::Error> {
    let ExecSpec { counted, call } = *exec;
    let step = RunningExecStep { call, schemas: Arc::clone(&context.schemas) };
    // An attempt counts only if the program was started.
    let known =
        [("mode", json!(step.call.io.mode())), ("stderr", json!("")), ("attempts", json!(0))];
    let mut result: Map<String, Json> =
        known.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let workspace = match Workspace::open(header.cwd.as_ref()) {
        Ok(workspace) => workspace,
        Err(fault) => {
            return failed(&context, result, AttemptFailure::from_input(fault.to_string()));
        }
    };
    let (step, workspace) = (Arc::new(step), Arc::new(workspace));
    let (reader, place) = (Arc::clone(&step), Arc::clone(&workspace));
    match step.check(&cancel, move || reader.check_inputs(&place)).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => return failed(&context, result, fault),
        Err(Unfinished::TimedOut) => {
            return failed(
                &context,
                result,
                AttemptFailure::from_input(blocking::too_slow_message()),
            );
        }
        Err(Unfinished::NoThread) => {
            return failed(&context, result, AttemptFailure::from_input(blocking::NO_THREAD));
        }
        Err(Unfinished::Cancelled) => return Ok(interrupted()),
    }
    let ran = exec::run(step.command(&context, &header), &cancel).await;
    // A stop is not a failure of the step.
    if ran.end == ExecEnd::Cancelled {
        return Ok(interrupted());
    }
    result.insert("stderr".to_owned(), json!(ran.stderr));
    result.insert("attempts".to_owned(), json!(counted));
    // A copy for the thread: if the check takes too long, the result without outputs is still
    // needed.
    let (reader, mut left) = (Arc::clone(&step), result.clone());
    let checked_results = step.check(&cancel, move || {
        let checked_results = reader.check_results(&workspace, &ran, &mut left);
        (checked_results, left)
    });
    match checked_results.await {
        Ok((Ok(()), left)) => finished(&context, left),
        Ok((Err(fault), left)) => failed(&context, left, fault),
        Err(Unfinished::TimedOut) => {
            failed(&context, result, AttemptFailure::from_output(blocking::too_slow_message()))
        }
        Err(Unfinished::NoThread) => {
            failed(&context, result, AttemptFailure::from_output(blocking::NO_THREAD))
        }
        Err(Unfinished::Cancelled) => Ok(interrupted()),
    }
}

fn interrupted() -> Outcome {
    let (by, cost) = (Interruption::Stop, Cost::Free);
    Outcome::Interrupted { by, cost, progressed: false, session: None }
}

fn finished(context: &TurnContext, mut result: Map<String, Json>) -> Result<Outcome, blobs::Error> {
    result.insert("ok".to_owned(), json!(true));
    let stored = store(&*context.blobs, Json::Object(result), true)?;
    let reply = ReadReply { read: stored.read, ..stored.value.into() };
    Ok(Outcome::Finished(Box::new(Finished::new(reply, Cost::Free))))
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
    let result = store(&*context.blobs, Json::Object(result), false)?;
    // The message for the user contains the last line of stderr; the stored error does not repeat
    // it.
    let why = last_line.map_or_else(|| why.clone(), |last_line| format!("{why}: {last_line}"));
    let failure = TurnFailure::Step { why, result, again: is_retryable };
    Ok(Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None })
}

/// Keeps only the end of a failed program's output: the end explains the failure, and the result
/// may become a part of a record.
fn keep_end(text: &mut String) {
    let start = text.len().saturating_sub(exec::STDERR_MAX);
    // Forward to the next character: going back could exceed the limit.
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.drain(..start);
}

impl RunningExecStep {
    /// Runs a check of inputs or outputs, on a separate thread if schemas decide how long it takes.
    async fn check<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        match &self.call.io {
            // Without schemas there is nothing slow to check, and a thread would only cost time.
            CallIo::None => Ok(look()),
            CallIo::File { .. } | CallIo::Stream { .. } => run_with_limit(cancel, look).await,
        }
    }

    fn command(&self, context: &TurnContext, header: &TurnHeader) -> exec::ExecRequest {
        let command = match &self.call.command {
            StepCommand::Shell(text) => ExecCommand::Shell(text.clone()),
            StepCommand::Cmd { cmd, args } => {
                ExecCommand::Program { program: cmd.clone(), arguments: args.clone() }
            }
        };
        exec::ExecRequest {
            command,
            cwd: header.cwd.clone().into(),
            // First, because `env` of the document may replace them.
            environment: run_variables(&context.run.run).chain(self.call.env.clone()).collect(),
            inherit: Inherit::only(header.environment.as_deref()),
            stdin: self.stdin(),
            marker: Marker::new(&context.run.nonce, &header.turn, header.attempt),
            timeout: Duration::from_millis(self.call.timeout.0),
        }
    }

    fn stdin(&self) -> ProcessStdin {
        match &self.call.io {
            CallIo::Stream { input: Some(json), .. } => {
                ProcessStdin::Bytes(json.to_string().into_bytes())
            }
            // The program reads from `/dev/null`, so that it cannot wait for a user.
            CallIo::None | CallIo::File { .. } | CallIo::Stream { input: None, .. } => {
                ProcessStdin::Null
            }
        }
    }

    fn check_inputs(&self, workspace: &Workspace) -> Result<(), AttemptFailure> {
        if let Some(place) = self.call.nul() {
            return Err(AttemptFailure::from_input(nul_finding(&place)));
        }
        match &self.call.io {
            CallIo::None => Ok(()),
            CallIo::File { inputs, outputs } => {
                let (inputs, outputs) = (FileList::inputs(inputs), FileList::outputs(outputs));
                check_no_nul(inputs).map_err(AttemptFailure::from_input)?;
                check_no_nul(outputs).map_err(AttemptFailure::from_input)?;
                self.read_files(workspace, inputs).map_err(AttemptFailure::from_input)?;
                // Checked before the program runs: afterwards it may already have written to a path
                // outside the workspace.
                for file in outputs.files {
                    check_writable(workspace, file, &outputs.pointer_to(file))
                        .map_err(AttemptFailure::from_input)?;
                }
                Ok(())
            }
            CallIo::Stream { input, input_schema, .. } => {
                let schema = input_schema.as_ref();
                let errors = input.as_ref().map(|json| self.schemas.errors(schema, json));
                check_errors("its input", &errors.unwrap_or_default())
                    .map_err(AttemptFailure::from_input)
            }
        }
    }

    /// Checks the outputs of the attempt, and adds them to the result.
    fn check_results(
        &self,
        workspace: &Workspace,
        ran: &ExecResult,
        result: &mut Map<String, Json>,
    ) -> Result<(), AttemptFailure> {
        // For a stream, stdout is the JSON value below and is not stored twice.
        if !matches!(self.call.io, CallIo::Stream { .. }) {
            result.insert("stdout".to_owned(), json!(ran.stdout));
        }
        check_end(&ran.end)
            .map_err(|fault| AttemptFailure { last_line: last_line_of(&ran.stderr), ..fault })?;
        match &self.call.io {
            CallIo::None => Ok(()),
            CallIo::File { outputs, .. } => {
                let files = self.read_files(workspace, FileList::outputs(outputs));
                result.insert(
                    "outputs".to_owned(),
                    Json::Object(files.map_err(AttemptFailure::from_output)?),
                );
                Ok(())
            }
            CallIo::Stream { output_schema, .. } => {
                // Checked before the JSON: the replacement characters would be valid inside a JSON
                // string.
                if ran.invalid_utf8 {
                    let finding = Finding::at("", ProblemCode::NotUtf8, "its stdout is not UTF-8");
                    return Err(AttemptFailure::from_output(finding));
                }
                let json = reading::read_text(&ran.stdout).map_err(|why| {
                    let reason = format!("its stdout is not JSON: {why}");
                    AttemptFailure::from_output(Finding { why: reason, errors: vec![why.into()] })
                })?;
                let errors = self.schemas.errors(output_schema.as_ref(), &json);
                // Before the schema is checked, so that the result of a failed attempt shows what
                // was wrong.
                result.insert("json".to_owned(), json);
                check_errors("its stdout", &errors).map_err(AttemptFailure::from_output)
            }
        }
    }

    /// Reads and checks these files. Returns their content by name.
    fn read_files(
        &self,
        workspace: &Workspace,
        list: FileList<'_>,
    ) -> Result<Map<String, Json>, Finding> {
        let mut files = Map::new();
        for file in list.files {
            let CallFile { name, path, schema } = file;
            let place = list.pointer_to(file);
            let bytes = workspace.read(path).map_err(|fault| {
                Finding::at(&place, file_problem_code(&fault), format!("{name}: {fault}"))
            })?;
            let json = reading::read(&bytes).map_err(|why| Finding {
                why: format!("{name}: {path} is not JSON: {why}"),
                errors: vec![why.into()],
            })?;
            let errors = self.schemas.errors(schema.as_ref(), &json);
            check_errors(&format!("{name}: {path}"), &errors)?;
            files.insert(name.clone(), json);
        }
        Ok(files)
    }
}

/// Checks that the program may write this file, as far as that is known before it runs.
fn check_writable(workspace: &Workspace, file: &CallFile, place: &str) -> Result<(), Finding> {
    let CallFile { name, path, .. } = file;
    let finding = |code, why: &str| Finding::at(place, code, format!("{name}: {why}"));
    // A template may render to an empty path, which would mean the workspace itself.
    if path.is_empty() {
        return Err(finding(ProblemCode::EscapingPath, "its path is empty"));
    }
    workspace.check(path).map_err(|fault| {
        let why = format!("could not write {path} in the workspace: {}", fault.why);
        finding(file_problem_code(&fault), &why)
    })
}

fn nul_finding(place: &str) -> Finding {
    let why = format!("{place} contains a NUL character, which cannot be passed to a program");
    Finding::at(place, ProblemCode::BadText, why)
}

/// Refuses a NUL character in a path. No system call accepts one, and this error names its place.
fn check_no_nul(list: FileList<'_>) -> Result<(), Finding> {
    match list.files.iter().find(|file| file.path.contains('\0')) {
        Some(file) => Err(nul_finding(&list.pointer_to(file))),
        None => Ok(()),
    }
}

fn check_end(end: &ExecEnd) -> Result<(), AttemptFailure> {
    let why = match end {
        ExecEnd::Succeeded => return Ok(()),
        ExecEnd::Failed { status } => status.clone(),
        ExecEnd::TimedOut { after } => format!("timed out after {} ms", after.as_millis()),
        ExecEnd::TooLarge { limit } => {
            let why = format!("more than {} MiB of output", limit >> 20);
            return Err(AttemptFailure::from_output(Finding::at("", ProblemCode::TooLarge, why)));
        }
        ExecEnd::NotStarted { why } => why.clone(),
        ExecEnd::Cancelled => "it was cancelled".to_owned(),
    };
    Err(AttemptFailure::from_output(why))
}

/// Returns the last line that is not blank, shortened for a message.
fn last_line_of(text: &str) -> Option<String> {
    // In characters: about two lines of a terminal.
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
    let why = format!("{what} does not match its schema: {first}{more}");
    Err(Finding { why, errors: errors.to_vec() })
}
