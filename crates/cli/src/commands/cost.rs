//! `raymond cost`: shows the costs of one run, or of all runs of this project.
//!
//! Costs are counted from the records and not from the totals of a run, because `--since` and
//! `--by` need the time, the state, the model and the backend of each turn. Amounts are list
//! prices.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use raymond_core::prices::PRICES_AS_OF;
use raymond_core::text::counted;
use raymond_core::time::{Span, Timestamp};
use raymond_core::view::costs::{By, CostTable, Counter, RunCosts, Tally};
use raymond_core::view::{BackendLabels, Costs, RunView};
use raymond_engine::clock;
use raymond_engine::inspect::Inspection;
use raymond_engine::project::Project;
use serde_json::json;

use crate::args::{CostBy, CostFlags};
use crate::deleted_costs::{self, DeletedCosts};
use crate::failure::Failure;
use crate::runs;
use crate::sanitize::sanitized;

use super::{print_json, print_text};

pub(crate) fn cost(flags: &CostFlags) -> Result<u8, Failure> {
    let project = runs::project()?;
    let query = CostQuery {
        by: match (flags.by, &flags.run) {
            (Some(CostBy::State), _) | (None, Some(_)) => By::State,
            (Some(CostBy::Model), _) => By::Model,
            (Some(CostBy::Backend), _) => By::Backend,
            (Some(CostBy::Workflow), _) | (None, None) => By::Workflow,
        },
        since: flags.since.map_or(Timestamp(0), |span| before(clock::now(), span)),
    };
    let (title, costs) = match &flags.run {
        Some(wanted) => one(&project, wanted, &query)?,
        None => all(&project, &query)?,
    };
    if flags.json {
        let spent = object(&costs, &query, flags.run.is_some().then_some(title.as_str()));
        print_json(spent)?;
    } else {
        let last = flags.since.map(|span| format!(" in the last {span}")).unwrap_or_default();
        print_text(&text(&format!("{title}{last}"), &costs))?;
    }
    Ok(0)
}

/// The filter and the grouping that the user asked for.
struct CostQuery {
    by: By,
    since: Timestamp,
}

fn before(now: Timestamp, span: Span) -> Timestamp {
    Timestamp(now.0.saturating_sub(span.0))
}

fn one(project: &Project, wanted: &str, query: &CostQuery) -> Result<(String, Costs), Failure> {
    let run = runs::find(project, wanted)?;
    let seen = runs::look(project, &run)?;
    Ok((run.to_string(), grouped(project, count(&seen, query.since)?, query)))
}

/// Sums up all runs, one after the other, because together they may not fit into memory. Deleted
/// runs are included.
fn all(project: &Project, query: &CostQuery) -> Result<(String, Costs), Failure> {
    let (mut costs, mut readable, mut known) = (Costs::default(), 0_u64, BTreeSet::new());
    for run in project.runs()? {
        // A run that never started has no costs and no journal to complain about.
        if !runs::is_started(project, &run) {
            continue;
        }
        let counted = runs::look(project, &run).and_then(|seen| {
            known.insert(seen.header.nonce.clone());
            count(&seen, query.since)
        });
        match counted {
            Ok(counted) => {
                readable += 1;
                costs.add(grouped(project, counted, query));
            }
            // One unreadable run must not hide the costs of all others.
            Err(_) => crate::say!("{run}: unreadable; see `raymond status {run}`"),
        }
    }
    let deleted = deleted_costs::read(project).into_iter();
    let deleted: Vec<DeletedCosts> = deleted.filter(|run| !known.contains(&run.nonce)).collect();
    let mut title = counted(readable, "run");
    if !deleted.is_empty() {
        write!(title, " and {}", counted(deleted.len() as u64, "deleted run")).ok();
    }
    for run in deleted {
        costs.add(grouped(project, run.costs.since(query.since), query));
    }
    Ok((title, costs))
}

/// Counts the costs of a run from `since` on.
pub(super) fn count(seen: &Inspection, since: Timestamp) -> Result<RunCosts, Failure> {
    // Even a damaged journal has costs, but the user must know that records are missing from the
    // sum.
    runs::report_damage(seen);
    let (mut view, mut counter) = (RunView::default(), Counter::new(since));
    // From the records and not from the folded run: only they have the time that `--since` needs.
    for record in runs::records(seen) {
        let record = record?;
        for event in record.steps.iter().flat_map(|step| &step.events) {
            if let Some(noted) = view.note(record.at, event) {
                counter.note(record.at, &noted, &view);
            }
        }
    }
    Ok(counter.finish())
}

fn grouped(project: &Project, mut costs: RunCosts, query: &CostQuery) -> Costs {
    // The journal contains absolute paths, which are too long for a table.
    costs.workflow = runs::relative_workflow(&costs.workflow, project.root.project());
    costs.grouped(query.by)
}

/// ```text
/// 3 runs: $9.87 (list prices), $0.40 of it estimated
/// flows/review                     12 turns     $6.02   61 %
/// ```
fn text(title: &str, costs: &Costs) -> String {
    let rehearsed = costs.rehearsed.total;
    let (money, naming) = (&costs.money, costs.naming());
    let is_rehearsed = rehearsed != Tally::default();
    match (is_rehearsed, money.total == Tally::default()) {
        (false, _) => {
            table(&format!("{title}: {} (list prices)", money.total.amount), money, naming)
        }
        (true, true) => {
            table(&format!("{title}: {} (rehearsal)", rehearsed.amount), &costs.rehearsed, naming)
        }
        (true, false) => {
            let paid =
                table(&format!("{title}: {} (list prices)", money.total.amount), money, naming);
            let title = format!("rehearsals, which cost no money: {}", rehearsed.amount);
            paid + &table(&title, &costs.rehearsed, naming)
        }
    }
}

fn table(title: &str, costs: &CostTable, naming: BackendLabels) -> String {
    let total = &costs.total;
    let mut text = format!("{title}{}\n", reserves(total, ", "));
    for (row, tally) in costs.most_expensive_first() {
        let row = sanitized(&row.title(naming));
        // Discarded turns have a cost, but no record that could be counted.
        let turns = match tally.turns {
            0 => String::new(),
            turns => counted(turns, "turn"),
        };
        let percent = tally.percent_of(total.amount);
        let reserves = reserves(&tally, "  ");
        let amount = tally.amount.to_string();
        writeln!(text, "{row:<32} {turns:>10} {amount:>10} {percent:>4} %{reserves}").ok();
    }
    text
}

/// Describes the uncertain part of the costs.
fn reserves(tally: &Tally, before: &str) -> String {
    let mut words = String::new();
    if tally.estimated.0 > 0 {
        write!(words, "{before}{} of it estimated", tally.estimated).ok();
    }
    match tally.unpriced {
        0 => {}
        1 => write!(words, "{before}1 attempt is unpriced").unwrap_or_default(),
        several => write!(words, "{before}{several} attempts are unpriced").unwrap_or_default(),
    }
    words
}

fn object(costs: &Costs, query: &CostQuery, run: Option<&str>) -> serde_json::Value {
    let by = match query.by {
        By::State => "state",
        By::Model => "model",
        By::Backend => "backend",
        By::Workflow => "workflow",
    };
    let tally = |tally: &Tally| {
        json!({
            "turns": tally.turns,
            "spent_usd": tally.amount.dollars(),
            "estimated_usd": tally.estimated.dollars(),
            "unpriced_attempts": tally.unpriced,
        })
    };
    let table = |costs: &CostTable| {
        let rows = costs.most_expensive_first().into_iter().map(|(row, spent)| {
            let mut object = tally(&spent);
            object["name"] = json!(row.name);
            object["backend"] = json!(row.backend);
            object
        });
        let mut object = tally(&costs.total);
        object["rows"] = rows.collect();
        object
    };
    let mut object = table(&costs.money);
    object["rehearsed"] = table(&costs.rehearsed);
    object["version"] = crate::json::VERSION.into();
    object["run_id"] = run.into();
    // Timestamp 0 means that no `--since` was given.
    object["since"] = (query.since > Timestamp(0)).then(|| query.since.to_string()).into();
    object["by"] = by.into();
    object["prices"] = "list".into();
    object["prices_as_of"] = PRICES_AS_OF.into();
    object
}
