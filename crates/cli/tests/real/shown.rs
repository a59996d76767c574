//! What the model was shown, as lines that a person can read.

use std::collections::BTreeMap;

use raymond_testkit::model::{Role, Said, Seen};

/// One line per request: `A | START, <goto>NEXT</goto>, NEXT`.
///
/// The letter is the session, by the order in which sessions first asked. Of a prompt its first line
/// is shown (`again X` after a notice), of a tool call its name.
pub(crate) fn lines(requests: &[Seen]) -> Vec<String> {
    let mut letters = Letters::default();
    let line = |seen: &Seen| {
        let letter = letters.of(session(seen));
        format!("{letter} | {}", conversation(&seen.conversation))
    };
    requests.iter().map(line).collect()
}

/// The same without sessions.
pub(crate) fn conversation(said: &[Said]) -> String {
    said.iter().map(entry).collect::<Vec<_>>().join(", ")
}

/// The id of the session that asked.
pub(crate) fn session(seen: &Seen) -> &str {
    seen.header("x-claude-code-session-id").unwrap_or_default()
}

fn entry(said: &Said) -> String {
    match said.role {
        Role::User => label(&said.text),
        Role::Assistant => said.text.clone(),
        Role::Call => said.text.split(' ').next().unwrap_or_default().to_owned(),
        Role::Outcome => "done".to_owned(),
    }
}

/// The first line of a prompt.
pub(crate) fn label(prompt: &str) -> String {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match prompt.split_once("\n\n") {
        Some((notice, body)) if notice.ends_with("then go on.") => format!("again {}", first(body)),
        _ => first(prompt),
    }
}

/// Sessions by the order in which they were first named: A, B, C …
#[derive(Default)]
struct Letters(BTreeMap<String, char>);

impl Letters {
    fn of(&mut self, session: &str) -> char {
        let next = char::from(b'A' + u8::try_from(self.0.len()).unwrap());
        *self.0.entry(session.to_owned()).or_insert(next)
    }
}
