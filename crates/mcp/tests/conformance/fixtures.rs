//! The tools, prompts and resources that the suite expects in addition to those of the product.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult,
    InputResponses, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestStateCodec,
    Resource, ResourceContents, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value as Json, json};

use raymond_mcp::Server;

/// A PNG of one pixel, and a WAV of silence.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const TOOLS: [&str; 18] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];
const PROMPTS: [&str; 5] = [
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
];

/// The product's server with the fixtures.
#[derive(Clone)]
pub(crate) struct Fixtures {
    server: Server,
    seal: RequestStateCodec,
}

type Called = Result<CallToolResponse, ErrorData>;
type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

fn contents(blocks: Json) -> Vec<ContentBlock> {
    serde_json::from_value(blocks).unwrap()
}

fn text(text: &str) -> Json {
    json!({ "type": "text", "text": text })
}

fn image() -> Json {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn embedded(uri: &str, mime: &str, text: &str) -> Json {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } })
}

fn done(said: &str) -> CallToolResponse {
    CallToolResult::success(contents(json!([text(said)]))).into()
}

/// Returns the input requests to a client, by key.
fn asked(inputs: Json) -> std::collections::BTreeMap<String, InputRequest> {
    serde_json::from_value(inputs).unwrap()
}

fn form(message: &str, field: &str, kind: &str) -> Json {
    json!({
        "method": "elicitation/create",
        "params": {
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { field: { "type": kind } },
                "required": [field],
            },
        },
    })
}

fn question() -> Json {
    let content = text("What is the capital of France?");
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 });
    json!({ "method": "sampling/createMessage", "params": params })
}

fn roots() -> Json {
    json!({ "method": "roots/list", "params": {} })
}

impl Fixtures {
    pub(crate) fn new(server: Server) -> Self {
        Self { server, seal: RequestStateCodec::try_new([7_u8; 32]).unwrap() }
    }

    fn ask(&self, inputs: Json, state: Option<&str>) -> CallToolResponse {
        let state = state.map(|state| self.seal.seal(state.as_bytes()));
        InputRequiredResult::new(Some(asked(inputs)), state).into()
    }

    /// Returns the state that came back, and refuses a foreign one.
    fn state(&self, sealed: Option<&str>) -> Result<Option<String>, ErrorData> {
        let opened = sealed.map(|sealed| self.seal.open(sealed)).transpose();
        let opened = opened.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        Ok(opened.map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    fn round(&self, request: &CallToolRequestParams, can: Option<ClientCapabilities>) -> Called {
        let nothing = InputResponses::new();
        let given = request.input_responses.as_ref().unwrap_or(&nothing);
        let find = |key: &str, path: &str| given.get(key).and_then(|answer| answer.pointer(path));
        let state = self.state(request.request_state.as_deref())?;
        Ok(match request.name.strip_prefix("test_input_required_result_").unwrap_or_default() {
            "elicitation" => match find("user_name", "/content/name").and_then(Json::as_str) {
                Some(name) => done(&format!("Hello, {name}!")),
                None => {
                    self.ask(json!({ "user_name": form("Your name?", "name", "string") }), None)
                }
            },
            "sampling" => match find("capital_question", "/content/text").and_then(Json::as_str) {
                Some(said) => done(said),
                None => self.ask(json!({ "capital_question": question() }), None),
            },
            "list_roots" => match find("client_roots", "/roots") {
                Some(roots) => done(&roots.to_string()),
                None => self.ask(json!({ "client_roots": roots() }), None),
            },
            "request_state" | "tampered_state" => match (find("confirm", "/content/ok"), state) {
                (Some(_), Some(_)) => done("state-ok"),
                _ => self.ask(json!({ "confirm": form("Confirm", "ok", "boolean") }), Some("1")),
            },
            "multiple_inputs" if given.len() >= 3 && state.is_some() => done("all of it"),
            "multiple_inputs" => {
                let name = form("Your name?", "name", "string");
                let inputs =
                    json!({ "user_name": name, "greeting": question(), "client_roots": roots() });
                self.ask(inputs, Some("1"))
            }
            "multi_round" => match (state.as_deref(), given.len()) {
                (Some("1"), 1..) => {
                    self.ask(json!({ "step2": form("Your colour?", "color", "string") }), Some("2"))
                }
                (Some("2"), 1..) => done("three rounds"),
                _ => self.ask(json!({ "step1": form("Your name?", "name", "string") }), Some("1")),
            },
            "capabilities" => {
                let mut inputs = json!({});
                let can = can.unwrap_or_default();
                if can.sampling.is_some() {
                    inputs["question"] = question();
                }
                if can.elicitation.is_some() {
                    inputs["name"] = form("Your name?", "name", "string");
                }
                self.ask(inputs, None)
            }
            other => {
                return Err(ErrorData::invalid_params(format!("no tool {other:?}"), None));
            }
        })
    }

    async fn progress(context: &Context) -> CallToolResponse {
        for progress in [0.0, 50.0, 100.0] {
            if let Some(token) = context.meta.get_progress_token() {
                let told = ProgressNotificationParam::new(token, progress).with_total(100.0);
                context.peer.notify_progress(told).await.unwrap();
            }
        }
        done("there")
    }
}

fn messages(request: &GetPromptRequestParams) -> Json {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|given| given.get(name)).and_then(Json::as_str).unwrap_or_default()
    };
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => vec![text(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            embedded(argument("resourceUri"), "text/plain", "Embedded resource content."),
            text("Please process the embedded resource above."),
        ],
        _ => vec![image(), text("Please analyze the image above.")],
    };
    contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect()
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.server)
    }

    async fn list_tools(&self, page: Page, context: Context) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.server.list_tools(page, context).await?;
        let empty = json!({ "type": "object", "properties": {} }).as_object().unwrap().clone();
        listed.tools.extend(TOOLS.map(|name| Tool::new(name, "For tests.", empty.clone())));
        Ok(listed)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Called {
        match request.name.as_ref() {
            "test_simple_text" => Ok(done("This is a simple text response for testing.")),
            "test_logging_tool" => Ok(done("nothing is logged")),
            "test_image_content" => Ok(CallToolResult::success(contents(json!([image()]))).into()),
            "test_audio_content" => {
                let audio = json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" });
                Ok(CallToolResult::success(contents(json!([audio]))).into())
            }
            "test_embedded_resource" => {
                let inner = embedded("test://embedded-resource", "text/plain", "An embedded one.");
                Ok(CallToolResult::success(contents(json!([inner]))).into())
            }
            "test_multiple_content_types" => {
                let inner = embedded("test://mixed-content-resource", "application/json", "{}");
                let blocks = json!([text("Multiple content types test:"), image(), inner]);
                Ok(CallToolResult::success(contents(blocks)).into())
            }
            "test_error_handling" => {
                let said = text("This tool intentionally returns an error for testing");
                Ok(CallToolResult::error(contents(json!([said]))).into())
            }
            "test_tool_with_progress" => Ok(Self::progress(&context).await),
            "test_missing_capability" => {
                let wanted = serde_json::from_value(json!({ "sampling": {} })).unwrap();
                Err(ErrorData::missing_required_client_capability(wanted))
            }
            "test_streaming_elicitation" => {
                Ok(self.ask(json!({ "name": form("Your name?", "name", "string") }), None))
            }
            name if name.starts_with("test_") => {
                self.round(&request, context.client_capabilities())
            }
            _ => self.server.call_tool(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.server.list_prompts(page, context).await?;
        listed.prompts.extend(PROMPTS.map(|name| Prompt::new(name, Some("For tests."), None)));
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if !PROMPTS.contains(&request.name.as_str()) {
            return self.server.get_prompt(request, context).await;
        }
        if request.name == "test_input_required_result_prompt" && request.input_responses.is_none()
        {
            let inputs = json!({ "user_context": form("Which context?", "context", "string") });
            return Ok(InputRequiredResult::from_input_requests(asked(inputs)).into());
        }
        let messages: Vec<PromptMessage> = serde_json::from_value(messages(&request)).unwrap();
        Ok(GetPromptResult::new(messages).into())
    }

    async fn list_resources(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.server.list_resources(page, context).await?;
        let uris = ["test://static-text", "test://static-binary"];
        listed.resources.extend(uris.map(|uri| Resource::new(uri, uri)));
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        page: Page,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.server.list_resource_templates(page, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let content = match uri.as_str() {
            "test://static-text" => {
                ResourceContents::text("A static text.", uri).with_mime_type("text/plain")
            }
            "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
            "test://template/123/data" => {
                let data = json!({ "id": "123", "templateTest": true, "data": "Data for ID: 123" });
                ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
            }
            _ => return self.server.read_resource(request, context).await,
        };
        Ok(ReadResourceResult::new(vec![content]).into())
    }
}
