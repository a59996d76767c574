//! Calls in rounds: a client that asks for it receives the requests of agent steps as required
//! input, and answers them without involving its caller.
//!
//! Between two rounds all state is in the journal of the run; the client keeps a sealed handle that
//! names the run. A call that cannot continue in this way gets an ordinary reply.

use raymond_core::crayfish::envelope::{CallOutcome, CallReply};
use raymond_core::ids::RunId;
use raymond_engine::call::RawRequest;
use raymond_engine::clock;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, InputRequiredResult, JsonObject,
    MetaObject, RequestMetaObject,
};
use serde_json::{Value as Json, json};

use crate::forms::{self, Way};
use crate::seal::{HandleRefusal, RunHandle};
use crate::{ToolHost, tool};

/// The key of `_meta` with which a client asks for rounds; its value is `true`.
pub const ASKS: &str = "raymond/inputRequired";
/// The key of `_meta` that names the run to the client.
const RUN: &str = "raymond/runId";

#[derive(Debug)]
pub(crate) struct Round {
    way: Option<Way>,
    workflow: Json,
    agent: Option<String>,
}

impl Round {
    /// Returns the round of a request, if it is one, and the request to answer.
    pub(crate) fn begin(
        host: &dyn ToolHost,
        request: CallToolRequestParams,
        meta: &RequestMetaObject,
        capabilities: Option<&ClientCapabilities>,
    ) -> Result<(Option<Self>, RawRequest), HandleRefusal> {
        let arguments = request.arguments.unwrap_or_default();
        let way = capabilities.and_then(Way::of);
        let asked = meta.0.0.get(ASKS) == Some(&Json::Bool(true));
        let is_round = request.request_state.is_some() || (asked && way.is_some());
        // A workflow can be large, so it is copied only for rounds, which check it again.
        let workflow = arguments.get("workflow").filter(|_| is_round);
        let mut round = Self {
            way,
            workflow: workflow.cloned().unwrap_or_default(),
            agent: arguments.get("agentId").and_then(Json::as_str).map(str::to_owned),
        };
        match request.request_state {
            Some(state) => {
                let responses = request.input_responses.unwrap_or_default();
                let sent = round.answered(host, arguments, &state, forms::read(responses))?;
                Ok((Some(round), sent))
            }
            None if request.input_responses.is_some_and(|responses| !responses.is_empty()) => {
                Err(HandleRefusal::Missing)
            }
            None if is_round => Ok((Some(round), sent(with_run(arguments)))),
            None => Ok((None, sent(arguments))),
        }
    }

    /// Returns the arguments with the answers of the round before.
    fn answered(
        &mut self,
        host: &dyn ToolHost,
        mut arguments: JsonObject,
        state: &str,
        answers: forms::Answers,
    ) -> Result<RawRequest, HandleRefusal> {
        let project = host.project(self.agent.as_deref()).map_err(HandleRefusal::Store)?;
        let named = arguments.get("runId").and_then(Json::as_str);
        let handle = RunHandle::open(state, &project, &self.workflow, named)?;
        if answers.refused {
            self.way = None;
        }
        // A request id contains its run. Answers for another run would be refused as unasked, and
        // the whole call with them.
        let of_this_run =
            |id: &str| id.strip_prefix(handle.run.as_str()).is_some_and(|id| id.starts_with(':'));
        let filled = answers.filled.into_iter().filter(|(id, _)| of_this_run(id));
        let said = answers.said.into_iter().filter(|(id, _)| of_this_run(id)).collect();
        // The first call is repeated here, so its `attempts` may be out of date by now.
        arguments.remove("attempts");
        let outputs = arguments.entry("agentOutputs").or_insert_with(|| json!({}));
        if let Json::Object(outputs) = outputs {
            outputs.extend(filled);
        }
        arguments.insert("runId".to_owned(), handle.run.as_str().into());
        Ok(RawRequest { request: Json::Object(arguments), said })
    }

    /// Returns the response for a reply: the next input requests, or the reply itself.
    pub(crate) fn end(
        self,
        host: &dyn ToolHost,
        reply: CallReply,
    ) -> Result<CallToolResponse, HandleRefusal> {
        let asked = match (&reply.outcome, self.way) {
            (CallOutcome::NeedsAgent(requests), Some(way)) => way.ask(requests),
            (CallOutcome::Done { .. } | CallOutcome::Failed(_) | CallOutcome::NeedsAgent(_), _) => {
                None
            }
        };
        let (Some(asked), Some(run)) = (asked, &reply.run) else {
            return Ok(tool::result(reply).into());
        };
        let project = host.project(self.agent.as_deref()).map_err(HandleRefusal::Store)?;
        let state = RunHandle::new(run.clone(), &self.workflow).sealed(&project)?;
        let mut meta = MetaObject::new();
        meta.0.insert(RUN.to_owned(), json!(run));
        Ok(InputRequiredResult::new(Some(asked), Some(state)).with_meta(meta).into())
    }
}

fn sent(arguments: JsonObject) -> RawRequest {
    Json::Object(arguments).into()
}

/// Adds the id of a new run to a call without one, because rounds need a journal.
fn with_run(mut arguments: JsonObject) -> JsonObject {
    let name = || format!("mcp-{}-{}", date(), &clock::nonce().to_string()[..12]);
    arguments.entry("runId").or_insert_with(|| RunId::new(name()).as_str().into());
    arguments
}

fn date() -> String {
    clock::now().to_string()[..10].replace('-', "")
}
