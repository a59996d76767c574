//! The current activity of every agent: the rows of a live screen.
//!
//! A fold of a run's events, plus the progress reports of turns in flight. It contains live and failed
//! agents only, and the cost of an event does not grow with their number. It has no clock: a row
//! says when its activity began, and the screen computes the duration.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::{Agent, AgentStatus, Location};
use crate::budget::{Charge, Micros};
use crate::ids::{AgentId, BackendName, TurnId};
use crate::run::{Event, Phase, Run, Settings};
use crate::scheduler::Hold;
use crate::scheduler::{self, Lane, Prompt, Scheduler};
use crate::time::Timestamp;

use super::backend_labels::BackendLabels;
use super::ledger::{AgentSummary, Ledger};
use super::turns::{changed_agent, charged};

/// The agents of a run, with totals.
#[derive(Debug, Clone, Default)]
pub struct Live {
    pub spent: Micros,
    /// The budget cap; `None` is unlimited.
    pub cap: Option<Micros>,
    /// When the run was last started or resumed.
    pub since: Timestamp,
    pub course: Course,
    /// The backends that the states may use, and those that were used.
    backends: BTreeSet<BackendName>,
    agents: BTreeMap<AgentId, Row>,
    holds: BTreeMap<BackendName, Hold>,
    born: u64,
}

/// Whether a run continues or is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Course {
    /// It continues.
    #[default]
    Ahead,
    /// It ends on request.
    Stopping,
}

/// The row of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its number in the order of creation.
    pub born: u64,
    pub cwd: String,
    /// Its state or step, and the number of visits there.
    pub place: Option<(Location, u32)>,
    pub doing: Doing,
    /// When its activity began.
    pub since: Timestamp,
    pub spent: Micros,
    lane: Lane,
    prompt: Prompt,
}

/// The activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    Working(Work),
    Waiting(Wait),
    Queued,
    /// Its next event is about to be decided, or it failed.
    Nothing,
}

/// The known activity of a turn in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    Script,
    /// A client answers a prompt; its backend, if texts name backends.
    Prompt(Option<BackendName>),
    Reminder,
    /// The last progress that was seen.
    Seen(String),
}

/// The reason why an agent waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The next attempt at its turn.
    Retry(Timestamp),
    /// Other workers must end before it may fork.
    Workers,
    Answer,
    /// The usage limit of this backend.
    Quota(BackendName, Timestamp),
    /// A login to this backend.
    Login(BackendName),
    /// A missing resource of the machine, such as disk space.
    Environment,
}

/// The number of agents by activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub running: usize,
    pub queued: usize,
    pub waiting: usize,
}

impl Live {
    /// Returns the rows after all events so far, without replaying them.
    pub fn after(run: &Run, ledger: &Ledger) -> Self {
        let asking = run.scheduler.asks.keys().map(|ask| &ask.agent).collect();
        let row = |(id, agent): (&AgentId, &Agent)| {
            let summary = ledger.agents.get(id).cloned().unwrap_or_default();
            (id.clone(), Row::of(agent, summary, &run.scheduler, &asking))
        };
        Self {
            spent: run.spent,
            cap: run.settings.budget,
            since: ledger.driven_since,
            course: match run.phase {
                Phase::Stopping(_) => Course::Stopping,
                Phase::Unborn | Phase::Open | Phase::Ended(_) => Course::Ahead,
            },
            backends: ledger.known().cloned().collect(),
            agents: run.agents.iter().map(row).collect(),
            holds: run.scheduler.holds.clone(),
            born: run.born,
        }
    }

    pub fn note(&mut self, at: Timestamp, event: &Event) {
        if let Some(agent) = changed_agent(event) {
            self.change(agent, |row| row.since = at);
        }
        match event {
            Event::RunStarted(start) => {
                self.backends.clone_from(&start.backends);
                self.govern(at, &start.settings);
            }
            Event::RunResumed { settings } => self.govern(at, settings),
            Event::StopRequested { .. } => self.course = Course::Stopping,
            Event::BackendHeld { backend, hold } => {
                self.holds.insert(backend.clone(), hold.clone());
            }
            Event::BackendReleased { backend } => drop(self.holds.remove(backend)),
            Event::CostAdjusted { spent, .. } => self.spent = *spent,
            // A rewind keeps the money of the discarded records spent.
            Event::RunRewound { discarded, .. } => self.spent = self.spent.plus(discarded.amount),
            Event::AgentSpawned { agent, cwd, .. } => self.spawn(at, agent, cwd),
            Event::AgentEnded { agent, .. } => drop(self.agents.remove(agent)),
            Event::VisitEntered { agent, location, count, .. } => {
                self.change(agent, |row| row.place = Some((location.clone(), *count)));
            }
            Event::Moved { agent, cwd: Some(cwd), .. } => {
                self.change(agent, |row| row.cwd.clone_from(cwd));
            }
            Event::AgentHeld { agent, .. } => self.does(agent, Doing::Waiting(Wait::Workers)),
            Event::AgentFailed { agent, .. } | Event::AgentRevived { agent } => {
                self.does(agent, Doing::Nothing);
            }
            Event::Asked { ask, .. } => self.does(&ask.agent, Doing::Waiting(Wait::Answer)),
            Event::AskAnswered { ask, .. } | Event::AskExpired { ask } => {
                self.does(&ask.agent, Doing::Nothing);
            }
            Event::DefinitionAdopted { .. }
            | Event::RunEnded { .. }
            | Event::Stepped { .. }
            | Event::SessionLost { .. }
            | Event::TurnRecalled { .. }
            | Event::Reminded { .. }
            | Event::Moved { cwd: None, .. }
            | Event::Warned { .. } => {}
            Event::TurnQueued { .. }
            | Event::TurnRequeued { .. }
            | Event::TurnStarted { .. }
            | Event::TurnSettled { .. }
            | Event::TurnContinues { .. }
            | Event::TurnFailed { .. }
            | Event::TurnInterrupted { .. }
            | Event::RetryAt { .. } => self.note_turn(event),
        }
    }

    fn govern(&mut self, at: Timestamp, settings: &Settings) {
        (self.cap, self.since) = (settings.budget, at);
        self.course = Course::Ahead;
    }

    fn note_turn(&mut self, event: &Event) {
        if let Event::TurnQueued { turn, lane, prompt, .. } = event {
            self.backends.extend(lane.backend().cloned());
            self.change(&turn.agent, |row| {
                (row.lane, row.prompt) = (lane.clone(), prompt.clone());
            });
            self.does(&turn.agent, Doing::Queued);
        } else if let Event::TurnRequeued { turn, .. } = event {
            self.does(&turn.agent, Doing::Queued);
        } else if let Event::TurnStarted { turn, .. } = event {
            let work = self.agents.get(&turn.agent).map_or(Work::Prompt(None), Row::work);
            self.does(&turn.agent, Doing::Working(work));
        } else if let Event::RetryAt { turn, until, .. } = event {
            self.does(&turn.agent, Doing::Waiting(Wait::Retry(*until)));
        } else if let Some((turn, charge)) = charged(event) {
            self.charge(turn, charge);
            self.does(&turn.agent, Doing::Nothing);
        }
    }

    /// Records progress of a turn in flight.
    pub fn see(&mut self, at: Timestamp, agent: &AgentId, what: &str) {
        self.change(agent, |row| {
            // Late progress of a turn that has ended must not replace the new activity.
            if matches!(row.doing, Doing::Working(_)) {
                (row.doing, row.since) = (Doing::Working(Work::Seen(what.to_owned())), at);
            }
        });
    }

    /// Returns the working agents, then the waiting ones, each by age.
    pub fn busy(&self) -> Vec<(&AgentId, &Row, Doing)> {
        let agents = self.agents.iter().map(|(agent, row)| (agent, row, self.doing(row)));
        let is_busy = |doing: &Doing| matches!(doing, Doing::Working(_) | Doing::Waiting(_));
        let mut busy: Vec<_> = agents.filter(|(_, _, doing)| is_busy(doing)).collect();
        busy.sort_by_key(|(_, row, doing)| (matches!(doing, Doing::Waiting(_)), row.born));
        busy
    }

    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for row in self.agents.values() {
            match self.doing(row) {
                Doing::Working(_) => tally.running += 1,
                Doing::Waiting(_) => tally.waiting += 1,
                Doing::Queued => tally.queued += 1,
                Doing::Nothing => {}
            }
        }
        tally
    }

    /// Returns the activity of a row. A turn queued for a paused backend waits for more than a slot.
    fn doing(&self, row: &Row) -> Doing {
        match (&row.doing, &row.lane) {
            (Doing::Working(Work::Prompt(_)), lane) => {
                let named = BackendLabels::among(&self.backends).label(lane.backend());
                Doing::Working(Work::Prompt(named.cloned()))
            }
            (Doing::Queued, Lane::Prompt(backend)) => match self.holds.get(backend) {
                None => Doing::Queued,
                Some(Hold::Quota { until, .. }) => {
                    Doing::Waiting(Wait::Quota(backend.clone(), *until))
                }
                Some(Hold::Auth { .. }) => Doing::Waiting(Wait::Login(backend.clone())),
                Some(Hold::Environment { .. }) => Doing::Waiting(Wait::Environment),
            },
            (doing, _) => doing.clone(),
        }
    }

    fn spawn(&mut self, at: Timestamp, agent: &AgentId, cwd: &str) {
        let row = Row {
            born: self.born,
            cwd: cwd.to_owned(),
            place: None,
            doing: Doing::Nothing,
            since: at,
            spent: Micros::ZERO,
            lane: Lane::Script,
            prompt: Prompt::Body,
        };
        self.born += 1;
        self.agents.insert(agent.clone(), row);
    }

    fn change(&mut self, agent: &AgentId, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.agents.get_mut(agent) {
            change(row);
        }
    }

    fn does(&mut self, agent: &AgentId, doing: Doing) {
        self.change(agent, |row| row.doing = doing);
    }

    fn charge(&mut self, turn: &TurnId, charge: Charge) {
        self.spent = self.spent.plus(charge.amount);
        self.change(&turn.agent, |row| row.spent = row.spent.plus(charge.amount));
    }
}

impl Row {
    fn of(
        agent: &Agent,
        summary: AgentSummary,
        scheduler: &Scheduler,
        asking: &BTreeSet<&AgentId>,
    ) -> Self {
        let turn = scheduler.turns.get(&agent.id);
        let mut row = Self {
            born: agent.born,
            cwd: agent.cwd.clone(),
            place: summary.location.map(|location| (location, agent.visit_count())),
            doing: Doing::Nothing,
            since: summary.since,
            spent: summary.spent,
            // The scheduler forgets a turn that has ended, but the ledger knows its backend.
            lane: summary.asked.map_or(Lane::Script, Lane::Prompt),
            prompt: turn.map_or(Prompt::Body, |turn| turn.prompt.clone()),
        };
        row.doing = match (&agent.status, turn.map(|turn| &turn.phase)) {
            (AgentStatus::Held(_), _) => Doing::Waiting(Wait::Workers),
            (AgentStatus::Live, _) if asking.contains(&agent.id) => Doing::Waiting(Wait::Answer),
            (AgentStatus::Live, Some(scheduler::Phase::Queued)) => Doing::Queued,
            (AgentStatus::Live, Some(scheduler::Phase::Running { .. })) => {
                Doing::Working(row.work())
            }
            (AgentStatus::Live, Some(scheduler::Phase::Retrying { until })) => {
                Doing::Waiting(Wait::Retry(*until))
            }
            (AgentStatus::Live, Some(scheduler::Phase::Idle) | None)
            | (AgentStatus::Failed { .. }, _) => Doing::Nothing,
        };
        row
    }

    fn work(&self) -> Work {
        match (&self.lane, &self.prompt) {
            (Lane::Script, _) => Work::Script,
            (Lane::Prompt(_), Prompt::Body) => Work::Prompt(None),
            (Lane::Prompt(_), Prompt::Reminder(_)) => Work::Reminder,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::budget::Cost;
    use crate::decide::tests::play::{Play, usd, workflow};
    use crate::failure::TurnFailure;
    use crate::ids::StateName;
    use crate::run::stop::StopMode;
    use crate::time::Span;

    use super::*;

    fn play() -> Play {
        let files = [("A.md", "text"), ("W.md", "text"), ("S.sh", "true")];
        Play::new(workflow(&files)).with(|settings| settings.max_parallel = 3).started()
    }

    /// Replays the story so far, with a second between two events.
    fn live(play: &Play) -> Live {
        let mut live = Live::default();
        for (at, event) in (0..).zip(&play.story) {
            live.note(Timestamp(0) + Span::seconds(at), event);
        }
        live
    }

    /// Returns rows such as `main A.md #1 Working(Prompt(None)) $0.00`.
    fn shown(live: &Live) -> Vec<String> {
        let row = |(agent, row, doing): (&AgentId, &Row, Doing)| {
            let (state, visit) =
                row.place.clone().unwrap_or_else(|| (StateName::new("?").into(), 0));
            format!("{agent} {state} #{visit} {doing:?} {}", row.spent)
        };
        live.busy().into_iter().map(row).collect()
    }

    fn tally(live: &Live) -> (usize, usize, usize) {
        let Tally { running, queued, waiting } = live.tally();
        (running, queued, waiting)
    }

    #[test]
    fn every_agent_is_shown_with_its_activity() {
        let mut play = play();
        assert_eq!(shown(&live(&play)), ["main A.md #1 Working(Prompt(None)) $0.00"]);
        play.says("main", "no tag");
        assert_eq!(shown(&live(&play)), ["main A.md #1 Working(Reminder) $0.10"]);
        play.says(
            "main",
            r#"<fork next="A">W</fork><fork next="A">S</fork><fork next="A">W</fork>"#,
        );
        let seen = live(&play);
        assert_eq!(
            shown(&seen),
            [
                "main A.md #2 Working(Prompt(None)) $0.20",
                "main_w1 W.md #1 Working(Prompt(None)) $0.00",
                "main_s2 S.sh #1 Working(Script) $0.00",
            ]
        );
        assert_eq!((tally(&seen), seen.spent, seen.cap), ((3, 1, 0), usd("0.20"), Some(usd("10"))));
        play.costs(Cost::Free).says("main_s2", "<result>x</result>");
        play.stumbles("main_w1");
        let seen = live(&play);
        let retry = "main_w1 W.md #1 Waiting(Retry(Timestamp(";
        assert!(shown(&seen).last().is_some_and(|row| row.starts_with(retry)), "{seen:?}");
        assert_eq!(tally(&seen), (2, 0, 1));
    }

    #[test]
    fn an_agent_is_at_something_since_that_began() {
        let mut play = play();
        let since = |play: &Play| live(play).busy()[0].1.since;
        let last = |play: &Play| Timestamp(0) + Span::seconds(play.story.len() as u64 - 1);
        assert_eq!(since(&play), last(&play));
        let begun = since(&play);
        play.stop(StopMode::AfterTurn);
        assert_eq!((since(&play), last(&play) > begun), (begun, true));
        let mut play = self::play();
        play.stumbles("main");
        assert_eq!(since(&play), last(&play));
    }

    #[test]
    fn progress_belongs_to_a_turn_in_flight() {
        let mut play = play();
        let mut seen = live(&play);
        seen.see(Timestamp(77), &AgentId::main(), "Bash(make)");
        assert_eq!(shown(&seen), [r#"main A.md #1 Working(Seen("Bash(make)")) $0.00"#]);
        assert_eq!(seen.busy()[0].1.since, Timestamp(77));
        play.stumbles("main");
        let mut late = live(&play);
        let before = shown(&late);
        late.see(Timestamp(78), &AgentId::main(), "Bash(make)");
        late.see(Timestamp(78), &"unknown".into(), "Bash(make)");
        assert_eq!(shown(&late), before);
    }

    #[test]
    fn queued_agent_waits_for_its_paused_backend() {
        let mut play = play();
        let until = Some(Timestamp(0) + Span::minutes(60));
        play.fails("main", TurnFailure::Quota { until, why: "noon".into() });
        let seen = live(&play);
        let quota = r#"Waiting(Quota("claude", Timestamp(3600000)))"#;
        assert_eq!(shown(&seen), [format!("main A.md #1 {quota} $0.10")]);
        assert_eq!(tally(&seen), (0, 0, 1));
    }

    #[test]
    fn ended_or_failed_agent_is_not_shown() {
        let mut play = play();
        play.says("main", r#"<fork next="A">W</fork>"#);
        play.fails("main_w1", TurnFailure::Task { why: "no".into() });
        assert_eq!(shown(&live(&play)), ["main A.md #2 Working(Prompt(None)) $0.10"]);
        play.stop(StopMode::AfterTurn);
        assert_eq!(live(&play).course, Course::Stopping);
        play.says("main", "<result>x</result>");
        let seen = live(&play);
        assert_eq!((shown(&seen), tally(&seen)), (vec![], (0, 0, 0)));
    }
}
