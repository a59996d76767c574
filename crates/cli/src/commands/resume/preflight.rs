//! Checks before a resume: the budget, the backends and the conversations.

use std::collections::BTreeSet;

use raymond_core::decide::{Refusal, backend_change};
use raymond_core::diagnostic::{Diagnostic, Severity};
use raymond_core::run::effect::in_flight;
use raymond_core::run::{Ending, Phase, Ralph, Requirements, Run, Settings};
use raymond_core::text::counted;
use raymond_core::view::Status;
use raymond_core::workflow::{Definition, Reachability};
use raymond_engine::driver::Head;
use raymond_engine::prepare::Prepared;
use raymond_engine::project::Project;

use crate::backends::{self, UsableBackends};
use crate::failure::{Failure, located};
use crate::sanitize::sanitized;
use crate::status_summary::StatusSummary;
use crate::{config, exit_code, strict_budget};

/// The states that a run started with, and the edited states that replace them.
#[derive(Clone, Copy)]
pub(super) struct Definitions<'a> {
    pub(super) pinned: &'a Definition,
    pub(super) adopted: Option<&'a Prepared>,
}

/// Checks that states and settings fit the conversations and the backends of the run. Returns only
/// warnings that are new since the start.
pub(super) fn check_requirements(
    project: &Project,
    run: &Run,
    settings: &Settings,
    Definitions { pinned, adopted }: Definitions<'_>,
) -> Result<Vec<Diagnostic>, Failure> {
    let definition = adopted.map_or(pinned, |current| &current.definition);
    // Without new states or another default backend, every conversation stays where it was.
    if adopted.is_some() || settings.backend != run.settings.backend {
        backend_change::check(run, definition, settings).map_err(|refusal| {
            let hint = conversation_hint(run, &refusal, adopted);
            Failure::usage(refusal.to_string()).hint(hint)
        })?;
    }
    let (config, catalog) = (config::load(project)?, backends::catalog());
    let reachable = Reachability::of(definition);
    let check = |settings: &Settings| {
        let requirements = Requirements { settings, catalog: &catalog };
        let found = match adopted {
            // Edited states were never checked, so all rules of a start apply to them.
            Some(_) => requirements.of_start(&reachable),
            None => requirements.of_resume(&reachable),
        };
        let strict = strict_budget::warnings(settings, &reachable);
        [found, backends::unsupported_options(settings, &reachable), strict].concat()
    };
    let found = check(settings);
    if found.iter().any(|found| found.severity == Severity::Error) {
        let failure = Failure::invalid("the run", found).within(run.workflow.as_ref());
        let pinned =
            || format!("or use the pinned states with `raymond resume {} --pinned`", run.id);
        return Err(if adopted.is_some() { failure.hint(pinned()) } else { failure });
    }
    // Warnings that the start of the run printed already are not repeated.
    let before = check(&backends::priced(run.settings.clone(), &config));
    let new = found.into_iter().filter(|found| !before.contains(found));
    let adopted = adopted.into_iter().flat_map(|current| current.warnings_since(pinned)).cloned();
    Ok(new.chain(adopted).map(|warning| located(warning, run.workflow.as_ref())).collect())
}

/// Returns the backends that the rest of the run needs; other clients may be missing by now.
pub(super) fn usable(
    project: &Project,
    run: &Run,
    settings: &Settings,
    Definitions { pinned, adopted }: Definitions<'_>,
) -> Result<UsableBackends, Failure> {
    let config = config::load(project)?;
    let definition = adopted.map_or(pinned, |current| &current.definition);
    // From the current places of the agents: a client that only earlier states used may be missing.
    let ahead = Reachability::from_states(definition, run.places());
    backends::usable(&config, settings, None, &ahead)
}

/// Returns the hint that keeps a conversation with its backend.
fn conversation_hint(run: &Run, refusal: &Refusal, adopted: Option<&Prepared>) -> String {
    match (adopted, refusal) {
        (Some(_), Refusal::OtherBackend { location, holds, .. }) => {
            let pinned = format!("`raymond resume {} --pinned`", run.id);
            format!("set the `backend` of {location} to {holds} again, or run {pinned}")
        }
        (Some(_), _) => format!("restore it, or run `raymond resume {} --pinned`", run.id),
        (None, _) => "a conversation stays with its backend: resume without --backend".to_owned(),
    }
}

/// Checks that an over-budget run gets a higher cap. A new cap below the costs is a mistake, too,
/// unless running turns are meant to be ended by it.
pub(super) fn check_budget_left(head: &Head, settings: &Settings) -> Result<(), Failure> {
    let is_over = head.run.phase == Phase::Ended(Ending::OverBudget);
    if is_over || in_flight(&head.run).next().is_none() {
        return check_cap(head, settings);
    }
    Ok(())
}

/// Checks that a new cap leaves something to spend. An unchanged cap may be used up, because
/// scripts cost nothing and can continue.
pub(super) fn check_cap(head: &Head, settings: &Settings) -> Result<(), Failure> {
    let run = &head.run;
    let is_over = run.phase == Phase::Ended(Ending::OverBudget);
    // The costs of a run may exceed an old cap slightly, because clients check it after spending.
    let is_new = settings.budget != run.settings.budget;
    match settings.budget {
        Some(cap) if (is_over || is_new) && cap <= run.spent => {
            let command = StatusSummary::of(head, Status::OverBudget).next_command;
            Err(Failure::usage(format!("{} is spent already, but the cap is {cap}", run.spent))
                // Exit code 5, as for a run that ends over budget.
                .code(exit_code::of_run(Status::OverBudget))
                .hint(format!("--budget is the new total: {command}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that a new limit on the iterations of a loop is not below the iterations that have begun.
pub(super) fn check_iterations(run: &Run, settings: &Settings) -> Result<(), Failure> {
    let begun = run.agents.values().map(Ralph::iterations).max().unwrap_or(0);
    let is_new = settings.max_iterations != run.settings.max_iterations;
    if run.program.ralph().is_none() || !is_new || settings.max_iterations >= begun {
        return Ok(());
    }
    let begun = counted(begun, "iteration");
    let limit = settings.max_iterations;
    Err(Failure::usage(format!("{begun} have begun already, but --max-iterations is {limit}"))
        .hint("--max-iterations is the new total"))
}

/// Returns a note if the prices of the configuration differ from those that the run used so far.
pub(super) fn price_change_note(
    project: &Project,
    run: &Run,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
    let now = backends::own_prices(&config::load(project)?);
    if settings.prices.as_ref() != Some(&now) {
        return Ok(Some(format!(
            "prices in the configuration changed since the run started; this run keeps its prices \
             (to use the new prices: raymond resume {} --current-prices)",
            run.id
        )));
    }
    // A journal without prices is older than this setting: there is nothing to compare.
    let Some(before) = &run.settings.prices else { return Ok(None) };
    let models: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed: Vec<String> = models
        .into_iter()
        .filter(|model| before.get(*model) != now.get(*model))
        .map(|model| sanitized(model))
        .collect();
    Ok((!changed.is_empty()).then(|| {
        format!("this run uses the current prices from now on; changed: {}", changed.join(", "))
    }))
}
