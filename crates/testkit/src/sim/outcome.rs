//! The executor's report about a client that has ended.

use raymond_core::budget::{Cost, Micros};
use raymond_core::crayfish::Problem;
use raymond_core::crayfish::stored::Stored;
use raymond_core::crayfish::verdict::Verdict;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::protocol::TagReading;
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::stop::Interruption;
use raymond_core::time::Span;
use raymond_core::value::{Hash, Value};
use raymond_store::Blobs;
use serde_json::{Value as Json, json};

use super::clients::Client;
use super::random_workflow::DIRECTORIES;
use super::reply::{Reply, Valid};
use crate::step_trace::ProgramResult;

/// How long a client may be silent before the executor ends it.
pub const IDLE: Span = Span::minutes(30);

/// Returns the true cost of a client that ends now.
pub fn truth(client: &Client) -> Micros {
    match client.reply {
        Reply::Hangs => client.client_cost.interrupted,
        _ => client.client_cost.whole,
    }
}

/// Builds the report. A large text is stored first, which may fail.
pub fn outcome(client: &Client, blobs: &Blobs) -> Result<Outcome, String> {
    Ok(match &client.reply {
        Reply::Says(text, cost) => {
            Outcome::Finished(Box::new(finished(text, *cost, client, blobs)?))
        }
        Reply::Denied(text, cost) => {
            let mut finished = finished(text, *cost, client, blobs)?;
            finished.denied.push("Bash(rm)".to_owned());
            Outcome::Finished(Box::new(finished))
        }
        Reply::SaysCapped(text, cost) => {
            let finished = finished(text, *cost, client, blobs)?;
            Outcome::Finished(Box::new(Finished { capped: true, ..finished }))
        }
        Reply::Capped(cost) => Outcome::Capped {
            cost: *cost,
            progressed: client.progressed,
            denied: Vec::new(),
            session: None,
        },
        Reply::Fails(failure, cost) => Outcome::Failed {
            failure: failure.clone(),
            cost: *cost,
            denied: Vec::new(),
            session: None,
        },
        Reply::Ran(ran) => step(ran, blobs)?,
        Reply::Answers(answer, valid, cost) => {
            let stored = keep(json!({ "ok": true, "json": answer }), true, blobs)?;
            let wrong = || vec![Problem::of_value("/n", "as planned")];
            let verdict = Some(match valid {
                Valid::Yes => Verdict::Valid,
                Valid::No => Verdict::Invalid(wrong()),
            });
            let reply = ReadReply { read: stored.read, verdict, ..stored.value.into() };
            Outcome::Finished(Box::new(Finished::new(reply, *cost)))
        }
        Reply::Hangs if client.cancelled => {
            let (cost, progressed) = (client.client_cost.known, client.progressed);
            Outcome::Interrupted { by: Interruption::Stop, cost, progressed, session: None }
        }
        Reply::Hangs => Outcome::Failed {
            failure: TurnFailure::Timeout { clock: Clock::Idle, after: IDLE },
            cost: client.client_cost.known,
            denied: Vec::new(),
            session: None,
        },
    })
}

/// Builds the report about the program of a step.
fn step(ran: &ProgramResult, blobs: &Blobs) -> Result<Outcome, String> {
    let (left, again) = match ran {
        ProgramResult::Succeeded(left) => {
            let stored = keep(left.clone(), true, blobs)?;
            let reply = ReadReply { read: stored.read, ..stored.value.into() };
            return Ok(Outcome::Finished(Box::new(Finished::new(reply, Cost::Free))));
        }
        ProgramResult::Failed(left) => (left, true),
        ProgramResult::NotRun(left) => (left, false),
    };
    let result = keep(left.clone(), false, blobs)?;
    let failure = TurnFailure::Step { why: "as planned".to_owned(), result, again };
    Ok(Outcome::Failed { failure, cost: Cost::Free, denied: Vec::new(), session: None })
}

fn keep(json: Json, ok: bool, blobs: &Blobs) -> Result<Stored, String> {
    let mut put = |bytes: &[u8]| {
        let stored = blobs.put(bytes).map_err(|error| error.to_string())?;
        Ok::<_, String>(Hash::known(stored))
    };
    Stored::keep(json, ok, &mut put)
}

fn finished(text: &str, cost: Cost, client: &Client, blobs: &Blobs) -> Result<Finished, String> {
    let mut put = |bytes: &[u8]| {
        let stored = blobs.put(bytes).map_err(|error| error.to_string())?;
        let hash = Hash::of(bytes);
        if stored == hash.as_str() { Ok(hash) } else { Err("wrong hash".to_owned()) }
    };
    let reading = TagReading::of(text, client.source, &mut put)?;
    let exists = |cd: &str| {
        let found = absolute(&client.cwd, cd);
        DIRECTORIES.contains(&found.as_str()).then(|| (cd.to_owned(), found))
    };
    let directories = reading.tags.iter().filter_map(|tag| exists(tag.cd()?)).collect();
    let text = Value::keep(text, &mut put)?;
    Ok(Finished::new(ReadReply { reading, directories, ..text.into() }, cost))
}

/// Resolves `cd` from a directory.
fn absolute(cwd: &str, cd: &str) -> String {
    if cd.starts_with('/') {
        return cd.to_owned();
    }
    match cd {
        ".." => cwd.rsplit_once('/').map_or("/", |(above, _)| above).to_owned(),
        below => format!("{cwd}/{below}"),
    }
}
