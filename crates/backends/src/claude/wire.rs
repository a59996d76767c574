//! The fields of stream lines that Raymond uses.
//!
//! A line may have megabytes, so only these fields are kept. Every field may be missing or have an
//! unexpected type. Such a field counts as absent, and the rest of its line is still read. Names of
//! fields are those of the client; `line` chooses the type.

use std::collections::BTreeMap;
use std::fmt;

use raymond_core::text::excerpt_bytes;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The fields that determine the type of a line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) subtype: Option<String>,
}

/// `system/init`: the client begins a round.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Init {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "optional_name")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) mcp_servers: Vec<Server>,
}

/// An MCP server and its connection status.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Server {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
}

/// `assistant`: one block of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Assistant {
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Message,
    /// Set for messages of a subagent.
    #[serde(deserialize_with = "lenient")]
    pub(super) parent_tool_use_id: Option<String>,
    /// The kind of an API error, on the message that reports it.
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<String>,
    /// The specific name of the error, if the client knows it.
    #[serde(deserialize_with = "lenient")]
    pub(super) api_error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) api_error_params: ErrorDetails,
    /// When the message was written.
    #[serde(deserialize_with = "lenient")]
    pub(super) timestamp: Option<String>,
}

/// Further fields of the error response.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorDetails {
    #[serde(deserialize_with = "lenient")]
    pub(super) rate_limit_info: RateLimitInfo,
}

/// A message of the model. Several lines may share its id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(deserialize_with = "optional_name")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) content: Vec<Block>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Tokens,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(deserialize_with = "length")]
    pub(super) thinking: usize,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "tool_input")]
    pub(super) input: ToolInput,
}

impl Block {
    /// Whether the block stands for thinking that the client does not show.
    pub(super) fn hides_thinking(&self) -> bool {
        // `thinking` is a length with the two quotation marks of JSON.
        let is_empty = self.thinking <= r#""""#.len();
        self.kind == "redacted_thinking" || (self.kind == "thinking" && is_empty)
    }
}

/// `user`: tool results.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Answers,
    #[serde(rename = "tool_use_result", deserialize_with = "lenient")]
    pub(super) totals: Totals,
}

/// The usage of the last message of a finished subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    #[serde(rename = "totalTokens")]
    pub(super) tokens: Count,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Tokens,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answers {
    #[serde(deserialize_with = "lenient_list")]
    pub(super) content: Vec<ToolResult>,
}

/// A tool result; only its error text is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ToolResult {
    pub(super) kind: String,
    /// The id of the tool call.
    pub(super) call: Option<String>,
    /// The error text, if the tool failed.
    pub(super) error: Option<String>,
}

impl<'de> Deserialize<'de> for ToolResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Raw<'a> {
            #[serde(rename = "type", deserialize_with = "lenient")]
            kind: String,
            #[serde(rename = "tool_use_id", deserialize_with = "lenient")]
            call: Option<String>,
            #[serde(deserialize_with = "lenient")]
            is_error: bool,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        let Raw { kind, call, is_error, content } =
            serde_json::from_str(raw.get()).unwrap_or_default();
        // Only errors are shown to people, so other contents are not even parsed.
        let error = is_error.then(|| content.map(|content| joined_text(content.get())));
        Ok(Self { kind, call, error: error.map(Option::unwrap_or_default) })
    }
}

/// Returns the text of a content field, which is a text or a list of blocks.
fn joined_text(content: &str) -> String {
    if let Ok(text) = serde_json::from_str::<String>(content) {
        return text;
    }
    let blocks: Vec<Block> = serde_json::from_str(content).unwrap_or_default();
    blocks.into_iter().map(|block| block.text).collect::<Vec<_>>().join("\n")
}

/// The input of a tool call, as far as it describes the action.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolInput {
    #[serde(deserialize_with = "lenient")]
    pub(super) command: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) file_path: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) url: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) pattern: Option<String>,
    /// The length of the whole input in bytes.
    #[serde(skip)]
    pub(super) length: usize,
}

/// The tokens of a message so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens")]
    pub(super) input: Count,
    #[serde(rename = "output_tokens")]
    pub(super) output: Count,
    #[serde(rename = "cache_creation_input_tokens")]
    pub(super) cache_write: Count,
    #[serde(rename = "cache_read_input_tokens")]
    pub(super) cache_read: Count,
    /// The part of the cache writes that has another price.
    #[serde(rename = "cache_creation", deserialize_with = "lenient")]
    pub(super) cache_writes: CacheWrites,
    #[serde(rename = "server_tool_use", deserialize_with = "lenient")]
    pub(super) server_tools: ServerTools,
}

/// Cache writes by lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct CacheWrites {
    #[serde(rename = "ephemeral_1h_input_tokens")]
    pub(super) for_an_hour: Count,
}

/// Tools that the vendor runs and charges for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServerTools {
    pub(super) web_search_requests: Count,
}

/// A number of tokens. An unreadable count is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Count {
    #[default]
    Absent,
    Known(u64),
    /// The field is not a whole number: `1e6`, `"1000"`, `-1`.
    Unreadable,
}

impl Count {
    /// Returns the known tokens; an unknown number counts as zero.
    pub(super) const fn at_least(self) -> u64 {
        match self {
            Self::Known(tokens) => tokens,
            Self::Absent | Self::Unreadable => 0,
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(match serde_json::from_str::<Option<u64>>(raw.get()) {
            Ok(Some(tokens)) => Self::Known(tokens),
            Ok(None) => Self::Absent,
            Err(_) => Self::Unreadable,
        })
    }
}

/// `system/api_retry`: a request failed and is retried.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Retry {
    #[serde(deserialize_with = "lenient")]
    pub(super) attempt: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) max_retries: u64,
    #[serde(rename = "retry_delay_ms", deserialize_with = "lenient")]
    pub(super) delay: u64,
    #[serde(deserialize_with = "lenient")]
    pub(super) error_status: Option<u16>,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<String>,
}

/// `rate_limit_event`: the state of a usage limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimit {
    #[serde(rename = "rate_limit_info", deserialize_with = "lenient")]
    pub(super) info: RateLimitInfo,
}

/// The state of a usage limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitInfo {
    /// `allowed`, `allowed_warning` or `rejected`.
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
    /// In seconds since 1970.
    #[serde(rename = "resetsAt", deserialize_with = "lenient")]
    pub(super) resets_at: Option<u64>,
}

/// `system/task_started`, `task_updated` and `task_notification`: a background task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    #[serde(rename = "task_id", deserialize_with = "lenient")]
    pub(super) id: String,
    /// The id of the tool call that started the task.
    #[serde(rename = "tool_use_id", deserialize_with = "lenient")]
    pub(super) call: Option<String>,
    /// `local_agent`, `local_bash` and others.
    #[serde(rename = "task_type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_backgrounded: Option<bool>,
    /// Housekeeping of the client, for which nothing waits.
    #[serde(deserialize_with = "lenient")]
    pub(super) ambient: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) patch: Patch,
}

/// The changes of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Patch {
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_backgrounded: Option<bool>,
}

/// `system/background_tasks_changed`: the complete list of background tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tasks {
    #[serde(deserialize_with = "lenient_list")]
    pub(super) tasks: Vec<Task>,
}

/// `system/compact_boundary`: the conversation was compacted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Compaction {
    #[serde(rename = "compact_metadata", deserialize_with = "lenient")]
    pub(super) about: CompactionDetails,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactionDetails {
    /// The tokens before the compaction, which the request for the summary read.
    pub(super) pre_tokens: Count,
}

/// `system/model_refusal_no_fallback`: the model refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    #[serde(rename = "api_refusal_explanation", deserialize_with = "lenient")]
    pub(super) explanation: Option<String>,
}

/// `result`: a round has ended.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Conclusion {
    #[serde(deserialize_with = "lenient")]
    pub(super) subtype: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) is_error: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) result: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) api_error_status: Option<u16>,
    /// The reason of the end, such as `completed` or `aborted_tools`.
    #[serde(deserialize_with = "lenient")]
    pub(super) terminal_reason: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) permission_denials: Vec<Denial>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) errors: Vec<String>,
    /// By model. The fields beside it count the whole session.
    #[serde(deserialize_with = "lenient")]
    pub(super) model_usage_since_last_result: Option<Report>,
    /// The index among the results of the client.
    #[serde(deserialize_with = "lenient")]
    pub(super) result_index: Option<u64>,
    /// How the client determined the reported costs.
    #[serde(rename = "costBasis", deserialize_with = "lenient")]
    pub(super) cost_basis: CostBasis,
    /// Absent if the model never followed the schema.
    #[serde(deserialize_with = "lenient")]
    pub(super) structured_output: Option<serde_json::Value>,
}

impl Conclusion {
    /// Whether the client stopped in the middle of a round.
    pub(super) fn was_interrupted(&self) -> bool {
        self.subtype == "error_during_execution"
    }

    /// Whether the client stopped while a tool ran, so that it had no open request itself.
    pub(super) fn was_interrupted_in_tool(&self) -> bool {
        self.was_interrupted() && self.terminal_reason.as_deref() == Some("aborted_tools")
    }

    /// Whether the client stopped because its budget was used up.
    pub(super) fn was_capped(&self) -> bool {
        self.subtype == "error_max_budget_usd"
    }

    /// Whether the client does not know the session. The client has no typed field for this, only
    /// this text.
    pub(super) fn has_lost_session(&self) -> bool {
        const LOST: &str = "No conversation found";
        self.was_interrupted() && self.errors.iter().any(|error| error.starts_with(LOST))
    }
}

/// The usage and cost of each model.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Report(pub(super) BTreeMap<String, ModelUsage>);

/// A model that is listed twice has an unknown cost, because nothing shows which entry counts.
impl<'de> Deserialize<'de> for Report {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Models;

        impl<'de> Visitor<'de> for Models {
            type Value = Report;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("usage by model")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut models: M) -> Result<Report, M::Error> {
                let mut report = BTreeMap::new();
                while let Some((model, usage)) = models.next_entry::<String, ModelUsage>()? {
                    let known = report.entry(model);
                    // A duplicate key is not an error in JSON, so the map must be read by hand.
                    known.and_modify(|known| *known = ModelUsage::default()).or_insert(usage);
                }
                Ok(Report(report))
            }
        }

        deserializer.deserialize_map(Models)
    }
}

/// The usage and cost of one model.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    #[serde(rename = "costUSD", deserialize_with = "lenient")]
    pub(super) cost_usd: Option<f64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cost_basis: CostBasis,
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) web_search_requests: Count,
}

/// How the client determined a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CostBasis {
    /// From its own prices.
    #[default]
    Prices,
    /// Guessed, because the client does not know the model.
    Unknown,
}

impl<'de> Deserialize<'de> for CostBasis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name: String = lenient(deserializer)?;
        Ok(if name.eq_ignore_ascii_case("unknown") { Self::Unknown } else { Self::Prices })
    }
}

/// A denied tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Denial {
    #[serde(rename = "tool_name", deserialize_with = "lenient")]
    pub(super) tool: String,
    #[serde(rename = "tool_use_id", deserialize_with = "lenient")]
    pub(super) call: Option<String>,
    #[serde(rename = "tool_input", deserialize_with = "tool_input")]
    pub(super) input: ToolInput,
}

/// Reads a value, or the default if the value has another type.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    // The raw value is read first: a type error inside serde would reject the whole line.
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Reads a name.
fn optional_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    // It goes into the journal, so it must not be longer than names are.
    // In bytes.
    const LONGEST: usize = 200;
    let found: Option<String> = lenient(deserializer)?;
    let found = found.filter(|name| !name.is_empty());
    Ok(found.map(|name| excerpt_bytes(name, LONGEST).into_owned()))
}

/// Reads the items of a list that have the expected type.
fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    // Each item is parsed on its own, so that one damaged item does not cost the list.
    let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect())
}

/// Reads only the length of a value; a text counts with its quotation marks.
fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    Ok(<&RawValue>::deserialize(deserializer)?.get().len())
}

fn tool_input<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolInput, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    let known: ToolInput = serde_json::from_str(raw.get()).unwrap_or_default();
    Ok(ToolInput { length: raw.get().len(), ..known })
}
