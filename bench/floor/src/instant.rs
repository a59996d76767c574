//! A client that answers at once, in the format of `claude`, so that only its caller is measured.
//!
//! The prompt is `turn N of M`. The answer leads to STEP again, and the last answer is a result.
//! Each call adds a line to the file `turns`, so that the benchmark can count the calls.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["--version"] {
        // Raymond asks for the version before a run and refuses a program that reports none.
        return writeln!(io::stdout(), "2.1.325 (Claude Code)");
    }
    let value = |flag: &str| words.iter().find_map(|word| word.strip_prefix(flag));
    let session = value("--session-id=").or_else(|| value("--resume=")).unwrap_or("floor");
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let numbers: Vec<&str> =
        prompt.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).collect();
    let is_last = matches!(numbers.as_slice(), [n, of, ..] if n == of);
    let said = if is_last { "<result>done</result>" } else { "<goto>STEP</goto>" };
    // Before the answer: when the caller has read the answer, the call is counted.
    writeln!(OpenOptions::new().create(true).append(true).open("turns")?, "{session}")?;
    let model = "claude-sonnet-4-5";
    let stream = format!(
        r#"{{"type":"system","subtype":"init","cwd":".","session_id":"{session}","tools":[],"mcp_servers":[],"model":"{model}","permissionMode":"acceptEdits"}}
{{"type":"assistant","message":{{"id":"m","type":"message","role":"assistant","model":"{model}","content":[{{"type":"text","text":"{said}"}}],"stop_reason":null,"usage":{{"input_tokens":100,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}}},"parent_tool_use_id":null,"session_id":"{session}"}}
{{"type":"result","subtype":"success","is_error":false,"session_id":"{session}","num_turns":1,"result":"{said}","total_cost_usd":0.001,"usage":{{"input_tokens":100,"output_tokens":1}},"modelUsage":{{"{model}":{{"costUSD":0.001}}}},"model_usage_since_last_result":{{"{model}":{{"costUSD":0.001}}}},"permission_denials":[]}}
"#
    );
    io::stdout().write_all(stream.as_bytes())
}
