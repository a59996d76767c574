//! The steps before the model: flags, prompt, session, and the script in the prompt.

use std::io::{Read as _, Write as _};

use rustix::process::getuid;

use super::arguments::{Arguments, Snapshot};
use super::directive::{Directive, prompt_lines};
use super::invocation::{Invocation, Message, Role};
use super::sessions::{Session, Sessions};
use super::stream;
use super::turn_state::{Ending, SharedTurnState};

/// Tokens of a message without `usage`: input and output. The real stream reports partial output
/// counts, so 1.
const DEFAULT_TOKENS: (u64, u64) = (100, 1);
const MODEL: &str = "claude-sonnet-4-5";

/// Why an invocation was refused before the model saw anything.
pub(super) enum Refusal {
    /// An error message on stderr, and no result.
    Stderr(String),
    /// A result with an error: the session does not exist.
    NoSession(String),
}

impl Refusal {
    pub(super) fn end(self, state: &SharedTurnState) -> u8 {
        match self {
            Self::Stderr(text) => print_error(&text),
            Self::NoSession(text) => {
                let mut state = state.lock();
                // The real program reports a new session id in this result, not the id that was
                // asked for.
                state.session = Some(Session::new(stream::uuid()));
                let (subtype, reason) = ("error_during_execution", "error");
                stream::emit(&state.result(Ending::Failed { subtype, reason, errors: vec![text] }));
                1
            }
        }
    }
}

pub(super) fn print_error(text: &str) -> u8 {
    writeln!(std::io::stderr(), "{text}").ok();
    1
}

/// Parses flags, prompt and session, and fills in `invocation` and `state`.
pub(super) fn prepare(
    sessions: &Sessions,
    invocation: &mut Invocation,
    state: &SharedTurnState,
) -> Result<(Vec<Directive>, Arguments), Refusal> {
    let arguments = Arguments::parse(&invocation.argv).map_err(Refusal::Stderr)?;
    let bypasses =
        arguments.skip_permissions || arguments.mode.as_deref() == Some("bypassPermissions");
    if bypasses && getuid().is_root() && std::env::var_os("IS_SANDBOX").is_none_or(|v| v != "1") {
        let why = "--dangerously-skip-permissions cannot be used with root/sudo privileges for \
                   security reasons";
        return Err(Refusal::Stderr(why.to_owned()));
    }
    // Also after a crash of the first client: so an interrupted turn must resume the session
    // instead of opening it again.
    if let Some(id) = arguments.session.as_ref().filter(|id| sessions.exists(id)) {
        return Err(Refusal::Stderr(format!("Error: Session ID {id} is already in use.")));
    }
    let mut prompt = Vec::new();
    std::io::stdin().read_to_end(&mut prompt).ok();
    let prompt = String::from_utf8_lossy(&prompt).into_owned();
    invocation.stdin = Some(prompt.clone());
    if prompt.trim().is_empty() {
        return Err(Refusal::Stderr(
            "Error: Input must be provided either through stdin or as a prompt argument when \
             using --print"
                .to_owned(),
        ));
    }
    let session = session(sessions, &arguments, prompt)?;
    let part = prompt_lines(&session.messages);
    invocation.session = Some(session.id.clone());
    invocation.history.clone_from(&session.messages);
    // With the snapshot off, the flag's prompt applies to this invocation only; the session keeps
    // its own.
    invocation.system_prompt = match arguments.snapshot {
        Snapshot::On => session.system_prompt.clone(),
        Snapshot::Off => arguments.append_system_prompt.clone(),
    };
    invocation.time = match part.reminder {
        Some(reminder) => reminder,
        None => sessions.count(&part.lines).unwrap_or_default(),
    };
    let script = part.script(invocation.time).map_err(Refusal::Stderr)?;
    let mut state = state.lock();
    state.hold = sessions.hold(&session.id);
    invocation.contended = state.hold.is_none();
    state.sessions = Some(sessions.clone());
    state.session = Some(session);
    state.model = arguments.model.clone().unwrap_or_else(|| MODEL.to_owned());
    state.mode = arguments.mode.clone().unwrap_or_else(|| "default".to_owned());
    state.cap = arguments.cap;
    state.tokens = DEFAULT_TOKENS;
    // The session exists from here on, before any output, so a client that dies now leaves a
    // session that can be continued.
    state.save();
    Ok((script, arguments))
}

/// Returns the conversation, with the prompt as its last message.
fn session(sessions: &Sessions, arguments: &Arguments, prompt: String) -> Result<Session, Refusal> {
    let mut session = match &arguments.resume {
        Some(id) => sessions.load(id).ok_or_else(|| {
            Refusal::NoSession(format!("No conversation found with session ID: {id}"))
        })?,
        None => Session::new(stream::uuid()),
    };
    match &arguments.session {
        Some(id) => session.id.clone_from(id),
        None if arguments.fork => session.id = stream::uuid(),
        None => {}
    }
    if arguments.resume.is_none() {
        session.system_prompt.clone_from(&arguments.append_system_prompt);
    }
    session.messages.push(Message { role: Role::User, text: prompt });
    Ok(session)
}
