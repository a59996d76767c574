//! The activity of an agent in words, for the console and for `status`.

use jiff::tz::TimeZone;
use raymond_core::protocol::Question;
use raymond_core::run::Group;
use raymond_core::text::counted;
use raymond_core::time::Timestamp;
use raymond_core::view::run_view::{AgentActivity, AgentRow, TurnActivity, Wait};
use raymond_core::view::words::{options_words, preview};

use crate::local_time::{age, between, time_at};

/// Describes the activity of an agent.
pub(crate) fn describe(
    row: &AgentRow,
    activity: &AgentActivity,
    now: Timestamp,
    zone: &TimeZone,
) -> String {
    match activity {
        AgentActivity::Working(TurnActivity::Script) => "runs".to_owned(),
        AgentActivity::Working(TurnActivity::Prompt(Some(backend))) => format!("{backend} works"),
        AgentActivity::Working(TurnActivity::Prompt(None)) => "works".to_owned(),
        AgentActivity::Working(TurnActivity::Reminder) => "was reminded".to_owned(),
        // A path below the agent's directory needs only its name.
        AgentActivity::Working(TurnActivity::Seen(what)) => {
            what.replace(&format!("({}/", row.cwd), "(")
        }
        AgentActivity::Waiting(Wait::Retry(until)) => {
            format!("tries again in {}", age(between(now, *until)))
        }
        AgentActivity::Waiting(Wait::Workers) => "waits until workers end".to_owned(),
        AgentActivity::Waiting(Wait::Time { until, then }) => {
            format!("waits until {}, then {then}", time_at(*until, now, zone))
        }
        AgentActivity::Waiting(Wait::Join { then, .. }) => {
            let counts = row.group.as_ref().map(workers).unwrap_or_default();
            format!("waiting for {counts}, then {then}")
        }
        AgentActivity::Waiting(Wait::Budget) => "waits for a higher budget".to_owned(),
        AgentActivity::Waiting(Wait::Answer) if let Some(open) = &row.question => {
            let Question { text, options, .. } = &open.question;
            let due = open.due().map(|due| format!(" until {}", time_at(due, now, zone)));
            let (text, options) = (preview(text), options_words(options));
            format!("asking{}: {text}{options}", due.unwrap_or_default())
        }
        AgentActivity::Waiting(Wait::Answer) => "waits for an answer".to_owned(),
        AgentActivity::Waiting(Wait::Quota(backend, until)) => {
            format!("usage limit of {backend} until {}", time_at(*until, now, zone))
        }
        AgentActivity::Waiting(Wait::Environment) => {
            "waiting for disk space or another resource of the machine".to_owned()
        }
        AgentActivity::Waiting(Wait::Login(backend)) => format!("waits for a login to {backend}"),
        AgentActivity::Queued => "queued".to_owned(),
        AgentActivity::Interrupted => "interrupted".to_owned(),
        AgentActivity::Stopped => "stopped".to_owned(),
        AgentActivity::Nothing => String::new(),
    }
}

/// Counts the workers of a wait: `3 workers (1 ended, 1 failed)`.
fn workers(group: &Group) -> String {
    let all = counted(group.members.len() as u64, "worker");
    let counts = [(group.ended, "ended"), (group.failed, "failed")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    if counts.is_empty() { all } else { format!("{all} ({})", counts.join(", ")) }
}
