//! A fake host whose workflows are single words.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use raymond_core::crayfish::ProblemCode;
use raymond_core::crayfish::document::AgentSettings;
use raymond_core::crayfish::envelope::{AgentRequest, CallOutcome, CallReply};
use raymond_core::crayfish::error_code::ErrorCode;
use raymond_core::crayfish::problem::Problem;
use raymond_core::ids::RunId;
use raymond_engine::call::{CallChannels, CallProgress, RawRequest};
use raymond_engine::project::Project;
use serde_json::{Map, Value as Json, json};

use crate::ToolHost;

/// A host that remembers its requests and cancelled calls.
#[derive(Default)]
pub(super) struct Fake {
    directory: PathBuf,
    pub(super) requests: Mutex<Vec<Json>>,
    pub(super) given_up: Mutex<usize>,
}

impl Fake {
    pub(super) fn new(directory: &std::path::Path) -> Arc<Self> {
        Arc::new(Self { directory: directory.to_owned(), ..Self::default() })
    }

    /// Returns the last request.
    pub(super) fn last(&self) -> Json {
        self.requests.lock().unwrap().last().cloned().unwrap()
    }

    /// Creates a run.
    pub(super) fn keep(&self, run: &str) {
        let project = self.project(None).unwrap();
        fs::create_dir_all(project.root.path().join("runs").join(run)).unwrap();
    }
}

fn reply(run: Option<RunId>, outcome: CallOutcome) -> CallReply {
    CallReply { run, outcome, results: Map::new(), attempts: [].into(), ignored: Vec::new() }
}

impl ToolHost for Fake {
    fn call(&self, sent: RawRequest, channels: CallChannels) -> CallReply {
        let RawRequest { mut request, said } = sent;
        for (id, text) in said {
            request["agentOutputs"][id] = serde_json::from_str(&text).unwrap();
        }
        self.requests.lock().unwrap().push(request.clone());
        match request["workflow"]["name"].as_str() {
            Some("done") => reply(None, CallOutcome::Done { output: None }),
            Some("steps") => {
                for count in [1, 1, 3, 2, 4] {
                    let message = format!("at {count}");
                    channels.progress.send(CallProgress { count, message }).ok();
                }
                reply(None, CallOutcome::Done { output: None })
            }
            Some("wait") => self.wait(&channels, Duration::ZERO),
            Some("stubborn") => self.wait(&channels, Duration::from_millis(200)),
            Some("ask") => self.ask(&request),
            Some("panic") => panic!("this call was never meant to work"),
            other => {
                let errors = vec![Problem::new(
                    "/workflow",
                    ProblemCode::UnknownKind,
                    format!("{other:?} is unknown"),
                )];
                CallReply::failed(ErrorCode::InvalidWorkflow, "the document has problems", errors)
            }
        }
    }

    fn project(&self, _agent: Option<&str>) -> Result<Project, String> {
        Project::locate(&self.directory).map_err(|error| error.to_string())
    }

    fn summary(&self, run: &RunId) -> String {
        format!("{run} is fine")
    }

    fn record(&self, run: &RunId) -> Result<Option<Json>, String> {
        let known = self.project(None)?.runs().map_err(|error| error.to_string())?;
        Ok(known.contains(run).then(|| json!({ "run_id": run, "status": "completed" })))
    }
}

impl Fake {
    /// Runs until it is cancelled, and then needs this time to end.
    fn wait(&self, channels: &CallChannels, end: Duration) -> CallReply {
        let begun = CallProgress { count: 1, message: "waits".to_owned() };
        channels.progress.send(begun).ok();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(channels.cancel.cancelled());
        std::thread::sleep(end);
        *self.given_up.lock().unwrap() += 1;
        CallReply::failed(ErrorCode::Cancelled, "the caller cancelled the call", Vec::new())
    }

    /// Asks for `{"foo": string}`, at most twice.
    fn ask(&self, request: &Json) -> CallReply {
        let run: Option<RunId> = request["runId"].as_str().map(|run| run.parse().unwrap());
        if let Some(run) = &run {
            self.keep(run.as_str());
        }
        let prefix = run.as_ref().map(|run| format!("{run}:")).unwrap_or_default();
        let outputs = &request["agentOutputs"];
        let given = |attempt: u32| outputs.get(format!("{prefix}v:{attempt}"));
        let valid = |output: &Json| output["foo"].is_string();
        let errors = match (given(1), given(2)) {
            (Some(output), _) | (_, Some(output)) if valid(output) => {
                return reply(run, CallOutcome::Done { output: None });
            }
            (None, None) => Vec::new(),
            _ => vec![Problem::of_value("/foo", "is missing")],
        };
        let asks = AgentRequest {
            run: run.clone(),
            key: "v".parse().unwrap(),
            prompt: "say foo".to_owned(),
            input: Some(json!({ "x": 1 })),
            schema: request["workflow"]["schema"].clone().into(),
            attempt: if errors.is_empty() { 1 } else { 2 },
            max_attempts: 3,
            assignee: None,
            session: None,
            settings: AgentSettings::default(),
            validation_errors: errors,
        };
        reply(run, CallOutcome::NeedsAgent(vec![asks]))
    }
}
