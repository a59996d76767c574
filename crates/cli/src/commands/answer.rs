//! `raymond answer`: lists the open questions, or answers one.
//!
//! A living owner continues the run. Without one, this command records the answer, and continues a
//! waiting run itself.

use std::fmt::Write as _;
use std::io::Read as _;

use jiff::tz::TimeZone;
use raymond_core::decide::Refusal;
use raymond_core::ids::{AgentId, RunId};
use raymond_core::run::{Event, Record};
use raymond_core::text::quoted;
use raymond_core::time::Timestamp;
use raymond_core::view::run_view::OpenQuestion;
use raymond_core::view::words::{options_words, preview};
use raymond_core::view::{OwnerState, Status, Waiting};
use raymond_engine::clock;
use raymond_engine::inspect::Inspection;
use raymond_engine::observe;
use raymond_engine::project::Project;
use raymond_engine::request::{self, AnswerRequest, RequestError};
use serde_json::json;

use crate::args::AnswerFlags;
use crate::config::Layer;
use crate::failure::{Failure, LOCKED};
use crate::local_time::time_at;
use crate::runs::Examined;
use crate::status_summary::StatusSummary;
use crate::{backends, json as shapes, next_command, runs, suspended_owner};

use super::resume::{self, ResumeOptions};
use super::{print_json, print_text};

pub(crate) fn answer(flags: &AnswerFlags) -> Result<u8, Failure> {
    let project = runs::project()?;
    let Some(wanted) = flags.background.detached_as.as_ref().or(flags.run.as_ref()) else {
        return list(&project, flags);
    };
    let run = runs::find(&project, wanted).map_err(|failure| match &flags.text {
        None => without_run(&project, wanted, failure),
        Some(_) => failure,
    })?;
    // The background process of this command only continues the run.
    if flags.background.detached_as.is_some() {
        return resume::resume_run(
            &project,
            &run,
            &ResumeOptions::from_answer(flags, &Layer::default()),
        );
    }
    let seen = runs::look(&project, &run)?;
    match &flags.text {
        Some(text) => give(&project, &run, &seen, &text_of(text)?, flags),
        None => print_questions(&project, &[seen], flags),
    }
}

/// Reads the answer of `-` from standard input.
fn text_of(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("could not read standard input: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lists the questions of all runs.
fn list(project: &Project, flags: &AnswerFlags) -> Result<u8, Failure> {
    print_questions(project, &asking(project)?, flags)
}

/// Returns the runs with open questions.
fn asking(project: &Project) -> Result<Vec<Inspection>, Failure> {
    let mut open = Vec::new();
    for run in project.runs()? {
        match runs::examine(project, &run) {
            Examined::Readable(seen) if !questions(&seen).is_empty() => open.push(*seen),
            Examined::Readable(_)
            | Examined::Unreadable(_)
            | Examined::Damaged(_)
            | Examined::NeverStarted
            | Examined::Lost => {}
        }
    }
    Ok(open)
}

/// Suggests the run that asks, if the only word is probably an answer.
fn without_run(project: &Project, answer: &str, failure: Failure) -> Failure {
    let asking = asking(project).unwrap_or_default();
    match asking.as_slice() {
        [only] => {
            let run = &only.head.run.id;
            failure.hint(format!("did you mean `raymond answer {run} {}`?", quoted(answer)))
        }
        _ => failure,
    }
}

/// Returns the open questions of a run, the oldest first.
fn questions(seen: &Inspection) -> Vec<(AgentId, OpenQuestion)> {
    // A run that was cancelled asks nothing any more.
    if !seen.status.is_unfinished() {
        return Vec::new();
    }
    let view = seen.head.view();
    let open = view.agents().filter_map(|(id, row)| Some((id.clone(), row.question.clone()?)));
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|(_, question)| question.at);
    open
}

fn print_questions(
    project: &Project,
    runs: &[Inspection],
    flags: &AnswerFlags,
) -> Result<u8, Failure> {
    if flags.output.json {
        let of_run = |seen: &Inspection| json!({ "run_id": seen.head.run.id, "questions": shapes::questions(&seen.head.view(), seen.status) });
        let runs: Vec<_> = runs.iter().map(of_run).collect();
        print_json(json!({ "version": shapes::VERSION, "runs": runs }))?;
        return Ok(0);
    }
    let (now, zone) = (clock::now(), TimeZone::system());
    let mut text = String::new();
    for seen in runs {
        let blobs = project.blobs(&project.paths(&seen.head.run.id));
        let all = questions(seen);
        let several = all.len() > 1;
        for (agent, open) in &all {
            let question = &open.question;
            let run = &seen.head.run.id;
            let is_over = open.due().is_some_and(|due| due < now);
            let until = open.due().map(|due| format!(" · until {}", time_at(due, now, &zone)));
            let until = if is_over { Some(" · its time is up".to_owned()) } else { until };
            let asked =
                observe::load(&blobs, &question.text).unwrap_or_else(|_| preview(&question.text));
            let options = options_words(&question.options);
            writeln!(text, "{run} · {agent}{}", until.unwrap_or_default()).ok();
            for line in asked.trim().lines() {
                writeln!(text, "  {line}").ok();
            }
            if !options.is_empty() {
                writeln!(text, " {options}").ok();
            }
            let answer = next_command::first_answer(&question.options);
            let which = if several { format!(" --agent {agent}") } else { String::new() };
            let next = if is_over {
                format!("resume {run}")
            } else {
                format!("answer {run} {answer}{which}")
            };
            writeln!(text, "  → raymond {next}").ok();
        }
    }
    if text.is_empty() {
        crate::say!("no question is open");
    }
    print_text(&text)?;
    Ok(0)
}

/// Answers a question, and continues the run if no process drives it.
fn give(
    project: &Project,
    run: &RunId,
    seen: &Inspection,
    text: &str,
    flags: &AnswerFlags,
) -> Result<u8, Failure> {
    let (agent, question) = chosen(run, seen, flags)?;
    let by = flags.by.clone().unwrap_or_else(super::login_name);
    let request = AnswerRequest { ask: &question.ask, text, by: &by };
    let runtime = crate::runtime::runtime()?;
    let answered = runtime.block_on(request::answer(project, run, request, &|settings| {
        backends::known(project, settings)
    }));
    let refused = answered.map_err(|error| match &error {
        RequestError::Suspended(owner) => {
            let owner = suspended_owner::describe(owner);
            Failure::environment(format!("could not answer {run}: {owner}")).code(LOCKED)
        }
        _ => Failure::from(error).naming_run(run),
    })?;
    drop(runtime);
    if let Some(refusal) = refused {
        // Another user may have answered meanwhile.
        return Err(earlier_answer(&runs::look(project, run)?, &agent)
            .unwrap_or_else(|| refused_answer(run, &refusal)));
    }
    let now = runs::look(project, run)?;
    let recorded = last_answer(&now, &agent).map_or_else(|| text.to_owned(), |last| last.text);
    crate::say!("{agent}: {recorded}");
    if now.owner.is_some() {
        return Ok(0);
    }
    // The status of now: the run may have gone to rest while the answer was delivered.
    match now.status {
        Status::Waiting(
            Waiting::Person | Waiting::Time(_) | Waiting::Retry(_) | Waiting::Quota(_),
            OwnerState::Gone,
        ) => {
            let unchanged = Layer::default();
            let options = ResumeOptions::from_answer(flags, &unchanged);
            match resume::resume_run(project, run, &options) {
                // Another process continues the run, with this answer.
                Err(failure) if failure.code == LOCKED => Ok(0),
                resumed => resumed,
            }
        }
        _ => {
            let summary = StatusSummary::seen(project, &now);
            crate::say!("to continue: {}", summary.advice());
            Ok(0)
        }
    }
}

fn refused_answer(run: &RunId, refusal: &Refusal) -> Failure {
    let failure = Failure::usage(refusal.to_string());
    match refusal {
        Refusal::QuestionExpired(_) => {
            failure.hint(format!("raymond resume {run} continues without an answer"))
        }
        _ => failure,
    }
}

/// Returns the question that is meant.
fn chosen(
    run: &RunId,
    seen: &Inspection,
    flags: &AnswerFlags,
) -> Result<(AgentId, OpenQuestion), Failure> {
    let mut open = questions(seen);
    if let Some(wanted) = &flags.agent {
        let found = open.into_iter().find(|(agent, _)| agent.as_str() == wanted);
        return found.ok_or_else(|| {
            let agent = AgentId::from(wanted.as_str());
            earlier_answer(seen, &agent).unwrap_or_else(|| {
                Failure::usage(format!("could not answer `{wanted}`: it asks no question"))
                    .hint(format!("raymond answer {run} lists the open questions"))
            })
        });
    }
    match open.len() {
        1 => Ok(open.remove(0)),
        0 => Err(earlier_answer(seen, &AgentId::main()).unwrap_or_else(|| {
            Failure::usage(format!("could not answer `{run}`: no question is open"))
        })),
        several => {
            open.sort_by(|one, other| one.0.cmp(&other.0));
            let names: Vec<&str> = open.iter().map(|(agent, _)| agent.as_str()).collect();
            let first = names.first().copied().unwrap_or_default();
            Err(Failure::usage(format!(
                "could not answer `{run}`: {several} questions are open ({}); choose one with \
                 `--agent {first}`",
                names.join(", ")
            )))
        }
    }
}

/// The last recorded answer of an agent.
struct LastAnswer {
    text: String,
    by: String,
    at: Timestamp,
}

/// Returns the failure that names the earlier answer, if there is one.
fn earlier_answer(seen: &Inspection, agent: &AgentId) -> Option<Failure> {
    let LastAnswer { text, by, at } = last_answer(seen, agent)?;
    let at = time_at(at, clock::now(), &TimeZone::system());
    Some(Failure::usage(format!(
        "could not answer `{agent}`: {by} already answered {text:?} at {at}"
    )))
}

fn last_answer(seen: &Inspection, agent: &AgentId) -> Option<LastAnswer> {
    let of_record = |record: Record| {
        let events = record.steps.into_iter().flat_map(|step| step.events);
        let answers = events.filter_map(|event| match event {
            Event::AskAnswered { ask, value, by, .. } if ask.agent == *agent => {
                Some(LastAnswer { text: preview(&value), by, at: record.at })
            }
            _ => None,
        });
        answers.last()
    };
    runs::records(seen).filter_map(Result::ok).filter_map(of_record).last()
}
