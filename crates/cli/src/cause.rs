//! The cause of a run's status, with the commands and flags that help.
//!
//! `raymond_core::view` decides the cause and what helps; only this file knows the words for it.

use raymond_core::ids::RunId;
use raymond_core::run::Run;
use raymond_core::text::quoted;
use raymond_core::view::{self, Cause, Hint, Ledger, States, Status};

use crate::local_time::deadline;

/// Returns the cause of a status in one sentence without a full stop.
pub(crate) fn sentence(run: &Run, ledger: &Ledger, status: Status, states: States) -> String {
    let Cause { text, hint, rest, others } = view::why(run, ledger, status, deadline);
    let hint = hint.filter(|hint| is_open(hint, states));
    let hint = hint.map(|hint| format!(" ({})", hint_text(&hint, &run.id))).unwrap_or_default();
    format!("{text}{hint}{rest}{others}")
}

/// Returns the end of the sentence, which names at most ten other failed agents.
pub(crate) fn others(run: &Run, ledger: &Ledger, status: Status) -> String {
    view::why(run, ledger, status, deadline).others
}

/// Returns the edit without which a resume fails in the same way again.
pub(crate) fn needed_edit(run: &Run, status: Status, states: States) -> Option<String> {
    let hint = (status == Status::Failed).then(|| view::needed_edit(run)).flatten()?;
    is_open(&hint, states).then(|| hint_text(&hint, &run.id))
}

/// The user has probably made the edit if the states are not as they were.
fn is_open(hint: &Hint, states: States) -> bool {
    states == States::AsPinned || !hint.is_edit()
}

fn hint_text(hint: &Hint, run: &RunId) -> String {
    match hint {
        Hint::Output { agent: Some(agent), location } => {
            format!("its output: raymond logs {run} --agent {agent} --state {}", quoted(location))
        }
        Hint::Output { agent: None, location } => {
            format!("its output: raymond logs {run} --state {}", quoted(location))
        }
        Hint::MissingVariable { name } => {
            format!("pass the variable with --var {}", quoted(&format!("{name}=VALUE")))
        }
        Hint::ListVariable { name } => {
            format!("pass a list with --var {name}:='[\"a\", \"b\"]'")
        }
        Hint::RaiseMaxVisits { state } => {
            format!("first raise `max_visits` in {state}, or add `then`")
        }
        Hint::LimitLoop { state } => format!("`max_visits` in {state} limits the loop"),
        Hint::AnswerWith { backend, state } => format!("first let {backend} answer {state}"),
        Hint::RedirectThen { limited, backend } => format!(
            "first let `then` of {limited} name a state that {backend} answers, or raise its `max_visits`"
        ),
        Hint::FixReason { location } => {
            format!("fix the reason first; a resume only repeats {location}")
        }
        Hint::CheckScript { location } => {
            format!("check first what it did; a resume runs {location} again")
        }
        Hint::FixScript { state } => format!("first fix {state} or what it needs"),
        Hint::FixPrompt { state } => {
            format!("first correct {state}; a resume pays for another turn of it")
        }
        Hint::AllowAsk { state } => {
            format!("to let it ask, first add `ask` to the policy of {state}")
        }
        Hint::FixReply { state } => format!("first correct the reply for {state} in the replies"),
        Hint::FixStart => "first fix what could not start".to_owned(),
        Hint::RaiseStepBudget { step } => format!("first raise the `budget` of {step}"),
        Hint::FixDocument { document } => format!("first fix {document}"),
        Hint::RaiseVisitBudget => "first raise the `budget` of that state".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_commands_and_flags() {
        let check =
            |hint: &Hint, expected: &str| assert_eq!(hint_text(hint, &"r".into()), expected);
        let location = "A B".to_owned();
        let agent = Some("main".into());
        check(
            &Hint::Output { agent, location: location.clone() },
            "its output: raymond logs r --agent main --state 'A B'",
        );
        check(&Hint::Output { agent: None, location }, "its output: raymond logs r --state 'A B'");
        let name = "word".to_owned();
        check(
            &Hint::MissingVariable { name: name.clone() },
            "pass the variable with --var word=VALUE",
        );
        check(&Hint::ListVariable { name }, "pass a list with --var word:='[\"a\", \"b\"]'");
    }
}
