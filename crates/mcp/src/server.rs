//! Answers the methods of the protocol, in both versions.
//!
//! The client's capabilities come from each request, or from the handshake in the older version.
//! Work of the host runs on other threads: calls of the tool in `calls`, short lookups here. The
//! transports are in `stdio` and `http`.

use raymond_core::text::excerpt;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::body::BodyArguments;
use crate::calls::{self, Calls, Listener};
use crate::rounds::Round;
use crate::seal::HandleRefusal;
use crate::{ToolHost, prompt, records, tool};

const INSTRUCTIONS: &str = "The tool `crayfish` runs workflows: JSON documents of steps that run \
programs and ask you for JSON. The prompt `crayfish` teaches how to write them. Records of runs are \
resources: raymond://runs/RUN.";

/// The methods that this server answers.
const METHODS: [&str; 7] = [
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
];

/// How many lookups of records run at a time. Each takes a thread and reads up to fifty journals,
/// so a few keep the disk busy, and more would only take memory.
const LOOKUPS: usize = 4;

/// The server of one host, for any number of clients.
#[derive(Clone)]
pub struct Server {
    calls: Calls,
    lookups: Arc<Semaphore>,
}

impl Server {
    /// Returns a server whose calls are cancelled with `ending`.
    pub fn new(host: Arc<dyn ToolHost>, ending: CancellationToken) -> Self {
        Self { calls: Calls::new(host, ending), lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }

    pub async fn idle(&self) {
        self.calls.idle().await;
    }

    /// Answers a call of the tool.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        listener: Option<&Listener>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Before the round begins, because that already asks the host.
        let permit = self.calls.permit(&context.ct).await?;
        // Only the protocol version without a handshake has rounds.
        let modern = context.protocol_version().is_some_and(|version| !version.has_initialize());
        let capabilities = context.client_capabilities().filter(|_| modern);
        let meta = context.meta.clone();
        let begun =
            move |host: &dyn ToolHost| Round::begin(host, request, &meta, capabilities.as_ref());
        let (round, sent) = self.ask(begun).await??;
        let reply = self.calls.answer(sent, permit, &context.ct, listener).await;
        match round {
            None => Ok(tool::result(reply).into()),
            Some(round) => Ok(self.ask(move |host| round.end(host, reply)).await??),
        }
    }

    /// Asks the host on a blocking thread.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn ToolHost) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let failed = |error: String| ErrorData::internal_error(error, None);
        let lookups = Arc::clone(&self.lookups);
        let lookup = lookups.acquire_owned().await.map_err(|error| failed(error.to_string()))?;
        let host = Arc::clone(self.calls.host());
        let asked = tokio::task::spawn_blocking(move || {
            // Released when the thread ends, because a thread cannot be cancelled with its request.
            let _lookup = lookup;
            question(host.as_ref())
        });
        asked.await.map_err(|error| failed(error.to_string()))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        let named = Implementation::new("raymond", env!("CARGO_PKG_VERSION")).with_title("Raymond");
        ServerConfig::new(capabilities).with_server_info(named).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListToolsResult::with_all_items(vec![tool::definition()]))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == tool::NAME).then(tool::definition)
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != tool::NAME {
            let message = format!(
                "there is no tool {:?}; the only one is {:?}",
                excerpt(&request.name, 100),
                tool::NAME
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        // Over HTTP the library has read an empty object: its reader would refuse arguments that
        // are too deep.
        if let Some(beside) = BodyArguments::of(&context.extensions) {
            request.arguments = Some(beside);
        }
        let token = context.meta.get_progress_token();
        let listener = token.map(|token| Listener::new(context.peer.clone(), token));
        calls::with_heartbeat(listener.as_ref(), self.call(request, &context, listener.as_ref()))
            .await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.ask(move |host| records::list(host, cursor.as_deref())).await?
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListResourceTemplatesResult::with_all_items(vec![records::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let record = self.ask(move |host| records::read(host, &request.uri)).await??;
        Ok(record.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        only_page(request.as_ref())?;
        Ok(ListPromptsResult::with_all_items(vec![prompt::definition()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompt::filled(&request)?.into())
    }

    /// Answers unknown methods, and known ones whose params could not be parsed.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&method.as_str()) {
            // The library passes a known method whose params have another shape as an unknown one.
            let message = format!("{method} takes other params: {}", params(&method));
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("there is no method {:?}", excerpt(&method, 100));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}

/// Refuses a cursor for a list of one page.
fn only_page(request: Option<&PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor.as_ref()) {
        None => Ok(()),
        Some(_) => Err(records::unknown_cursor()),
    }
}

/// Describes the params of a method, for an error message.
fn params(method: &str) -> &'static str {
    match method {
        "tools/call" => "`name`, a string, and `arguments`, an object",
        "prompts/get" => "`name`, a string, and perhaps `arguments`, an object",
        "resources/read" => "`uri`, a string",
        _ => "nothing, or `cursor`, a string",
    }
}

impl From<HandleRefusal> for ErrorData {
    fn from(refused: HandleRefusal) -> Self {
        let message = refused.to_string();
        match refused {
            HandleRefusal::Foreign(_)
            | HandleRefusal::Workflow(_)
            | HandleRefusal::Run(..)
            | HandleRefusal::Missing
            | HandleRefusal::Gone(_) => Self::invalid_params(message, None),
            HandleRefusal::Key(_) | HandleRefusal::Store(_) => Self::internal_error(message, None),
        }
    }
}
