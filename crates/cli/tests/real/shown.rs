//! The input of the model in each session, as readable lines.

use std::collections::BTreeMap;

use raymond_testkit::model::{ConversationItem, RecordedRequest, Role};
use serde_json::Value;

/// One line per turn: `new A | START`, `resume A | START, <goto>NEXT</goto>, NEXT`,
/// `branch A to B | …`.
///
/// Before the bar is the recorded plan, behind it the conversation that the client sent in this
/// session. Both must match in every turn. A prompt is shown by its first line (`again X` after a
/// notice), a tool call by its name.
#[track_caller]
pub(crate) fn turn_contexts(plans: &[Value], requests: &[RecordedRequest]) -> Vec<String> {
    let opens = |seen: &&RecordedRequest| {
        seen.conversation.last().is_some_and(|said| said.role == Role::User)
    };
    let requests: Vec<&RecordedRequest> = requests.iter().filter(opens).collect();
    assert_eq!(plans.len(), requests.len(), "turns and what they asked first: {plans:#?}");
    let mut letters = Letters::default();
    let line = |(plan, seen): (&Value, &&RecordedRequest)| {
        let (session, plan) = letters.plan(plan);
        assert_eq!(session, self::session(seen), "the session that was chosen is not used");
        format!("{plan} | {}", conversation(&seen.conversation))
    };
    plans.iter().zip(&requests).map(line).collect()
}

/// Returns a conversation as one line.
pub(crate) fn conversation(said: &[ConversationItem]) -> String {
    let entry = |said: &ConversationItem| match said.role {
        Role::User => label(&said.text),
        Role::Assistant => said.text.clone(),
        Role::Call => said.text.split(' ').next().unwrap_or_default().to_owned(),
        Role::Outcome => "done".to_owned(),
    };
    said.iter().map(entry).collect::<Vec<_>>().join(", ")
}

/// The session id of a request.
pub(crate) fn session(seen: &RecordedRequest) -> &str {
    seen.header("x-claude-code-session-id").unwrap_or_default()
}

/// The prompt that is being answered.
pub(crate) fn prompt(seen: &RecordedRequest) -> String {
    let last = seen.conversation.iter().rfind(|said| said.role == Role::User);
    last.map(|said| label(&said.text)).unwrap_or_default()
}

/// The first line of a prompt.
fn label(prompt: &str) -> String {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match prompt.split_once("\n\n") {
        Some((notice, body)) if notice.ends_with("then continue.") => {
            format!("again {}", first(body))
        }
        _ => first(prompt),
    }
}

/// Sessions by the order in which they were first named: A, B, C …
#[derive(Default)]
struct Letters(BTreeMap<String, char>);

impl Letters {
    fn of(&mut self, session: &Value) -> char {
        let next = char::from(b'A' + u8::try_from(self.0.len()).unwrap());
        *self.0.entry(session.as_str().unwrap().to_owned()).or_insert(next)
    }

    /// The session that a plan leads to, and the plan in words.
    fn plan(&mut self, plan: &Value) -> (String, String) {
        let (kind, place) = plan.as_object().and_then(|plan| plan.iter().next()).unwrap();
        let (session, words) = match kind.as_str() {
            "fresh" => (place, format!("new {}", self.of(place))),
            "resume" => (place, format!("resume {}", self.of(place))),
            "branch" => {
                let (from, to) = (self.of(&place["from"]), self.of(&place["to"]));
                (&place["to"], format!("branch {from} to {to}"))
            }
            "continue" => {
                let session = &place["session"];
                (session, format!("continue {}", self.of(session)))
            }
            other => panic!("no such plan: {other}"),
        };
        (session.as_str().unwrap().to_owned(), words)
    }
}
