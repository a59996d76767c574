//! The costs of runs, grouped by state, model, backend or workflow.
//!
//! Amounts are the charges of turns, which follow the vendors' list prices. Estimated amounts and
//! unpriced turns are counted separately and never mixed in silently. Scripts are free and not
//! counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::{Basis, Charge, Micros};
use crate::ids::{AgentId, BackendName, TurnId};
use crate::pairs;
use crate::run::{DiscardedCost, Settings};
use crate::time::Timestamp;

use super::attempt::{Attempt, End};
use super::backend_labels::BackendLabels;
use super::run_view::RunView;
use super::view_event::ViewEvent;

/// The grouping of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    State,
    Model,
    Backend,
    Workflow,
}

/// Counted turns and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    pub turns: u64,
    pub amount: Micros,
    /// The estimated part of the amount.
    pub estimated: Micros,
    /// The number of turns without a price.
    pub unpriced: u64,
}

/// The counted costs. Costs of rehearsals are kept apart, because they are not money.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs {
    pub money: CostTable,
    pub rehearsed: CostTable,
    /// The backends that the states of the runs may use.
    may_ask: BTreeSet<BackendName>,
}

/// A total, and the same total in groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostTable {
    pub total: Tally,
    pub rows: BTreeMap<CostRow, Tally>,
}

/// The costs of one run, in every dimension. They remain when the run is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunCosts {
    pub workflow: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    may_ask: BTreeSet<BackendName>,
    #[serde(with = "pairs")]
    entries: BTreeMap<CostEntry, Tally>,
}

/// The turns of one day with the same state, model and backend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct CostEntry {
    /// Days since 1970-01-01, in UTC.
    day: u64,
    state: String,
    model: Option<String>,
    /// `None` if the records of the turns were discarded.
    backend: Option<BackendName>,
    /// Whether replies from a file answered.
    #[serde(default)]
    rehearsed: bool,
}

/// The name of one group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostRow {
    /// The state, the model, the backend or the workflow.
    pub name: String,
    /// The backend that answered, for a state and a model.
    pub backend: Option<BackendName>,
}

/// The row of turns whose client did not report a model.
pub const NO_MODEL: &str = "unknown model";

/// The row of turns whose records a rewind discarded.
pub const DISCARDED: &str = "discarded";

/// Counts the costs of one run.
#[derive(Debug)]
pub struct Counter {
    since: Timestamp,
    costs: RunCosts,
    /// The last paid turn of each agent: several attempts are one turn.
    paid: BTreeMap<AgentId, TurnId>,
}

impl Counter {
    /// Returns a counter of costs from `since` on.
    pub fn new(since: Timestamp) -> Self {
        Self { since, costs: RunCosts::default(), paid: BTreeMap::new() }
    }

    /// Counts an event of this time. `view` contains it.
    pub fn note(&mut self, at: Timestamp, event: &ViewEvent, view: &RunView) {
        if let ViewEvent::RunStarted { workflow, backends } = event {
            self.costs.workflow.clone_from(workflow);
            self.costs.may_ask.clone_from(backends);
        } else if let ViewEvent::RunRewound { discarded, .. } = event
            && at >= self.since
            && !discarded.is_nothing()
        {
            // A rewind discards records but not the money: their costs get a row of their own.
            let DiscardedCost { amount, unpriced, .. } = *discarded;
            let state = DISCARDED.to_owned();
            // The backends of the discarded turns are not recorded either.
            let rehearsed = view.settings.rehearses(&view.settings.backend);
            let entry = CostEntry { day: day(at), state, model: None, backend: None, rehearsed };
            // The number of discarded turns is not recorded.
            self.add(entry, Tally { amount, unpriced, ..Tally::default() });
        } else if let ViewEvent::AttemptEnded(attempt) = event
            && let Some(end) = attempt.end.as_ref().filter(|end| end.at >= self.since)
        {
            // A turn belongs to the time at which it ended, because its charge is known only then.
            self.count(attempt, end, &view.settings);
        }
    }

    pub fn finish(self) -> RunCosts {
        self.costs
    }

    fn count(&mut self, attempt: &Attempt, end: &End, settings: &Settings) {
        // A prompt that was free never reached a model, so it does not count.
        let Some(backend) = attempt.backend().filter(|_| end.charge.basis != Basis::Free) else {
            return;
        };
        let entry = CostEntry {
            day: day(end.at),
            state: attempt.location.to_string(),
            model: end.model.clone(),
            backend: Some(backend.clone()),
            rehearsed: settings.rehearses(backend),
        };
        let turn = &attempt.turn;
        let before = self.paid.insert(turn.agent.clone(), turn.clone());
        let turns = u64::from(before.as_ref() != Some(turn));
        self.add(entry, Tally { turns, ..Tally::of(end.charge) });
    }

    fn add(&mut self, entry: CostEntry, tally: Tally) {
        self.costs.entries.entry(entry).or_default().add(tally);
    }
}

/// Returns the day of a time, counted from 1970-01-01 in UTC.
const fn day(at: Timestamp) -> u64 {
    // Milliseconds.
    at.0 / 86_400_000
}

impl RunCosts {
    /// Returns the costs of whole days, from the day of `since` on.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.entries.retain(|entry, _| entry.day >= day(since));
        self
    }

    pub fn grouped(&self, by: By) -> Costs {
        let mut costs = Costs { may_ask: self.may_ask.clone(), ..Costs::default() };
        for (entry, tally) in &self.entries {
            let table = if entry.rehearsed { &mut costs.rehearsed } else { &mut costs.money };
            table.add(self.row(entry, by), *tally);
        }
        costs
    }

    fn row(&self, entry: &CostEntry, by: By) -> CostRow {
        let named = |name: &str| CostRow { name: name.to_owned(), backend: None };
        let backend = entry.backend.clone();
        match (by, &backend) {
            (By::Workflow, _) => named(&self.workflow),
            (_, None) => named(DISCARDED),
            (By::Backend, Some(backend)) => named(backend.as_str()),
            (By::State, Some(_)) => CostRow { name: entry.state.clone(), backend },
            (By::Model, Some(_)) => {
                let model = entry.model.as_deref().unwrap_or(NO_MODEL);
                CostRow { name: model.to_owned(), backend }
            }
        }
    }
}

impl Tally {
    fn of(Charge { amount, basis }: Charge) -> Self {
        Self {
            turns: 1,
            amount,
            estimated: if basis == Basis::Estimated { amount } else { Micros::ZERO },
            unpriced: u64::from(basis == Basis::Unpriced),
        }
    }

    fn add(&mut self, other: Self) {
        self.turns += other.turns;
        self.amount = self.amount.plus(other.amount);
        self.estimated = self.estimated.plus(other.estimated);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }

    /// Returns its share of `all`, in whole percent.
    pub fn percent_of(&self, all: Micros) -> u64 {
        percent(self.amount, all)
    }
}

impl CostTable {
    fn add(&mut self, row: CostRow, tally: Tally) {
        self.total.add(tally);
        self.rows.entry(row).or_default().add(tally);
    }

    /// Returns the rows, the most expensive first.
    pub fn most_expensive_first(&self) -> Vec<(&CostRow, Tally)> {
        let mut rows: Vec<(&CostRow, Tally)> =
            self.rows.iter().map(|(row, tally)| (row, *tally)).collect();
        // Turns decide between equal amounts, such as rows that are unpriced.
        rows.sort_by_key(|(_, tally)| std::cmp::Reverse((tally.amount, tally.turns)));
        rows
    }
}

impl Costs {
    /// Adds the costs of another run.
    pub fn add(&mut self, other: Self) {
        self.may_ask.extend(other.may_ask);
        for (row, tally) in other.money.rows {
            self.money.add(row, tally);
        }
        for (row, tally) in other.rehearsed.rows {
            self.rehearsed.add(row, tally);
        }
    }

    /// Returns whether rows name the backend.
    pub fn naming(&self) -> BackendLabels {
        let rows = self.money.rows.keys().chain(self.rehearsed.rows.keys());
        let asked = rows.filter_map(|row| row.backend.as_ref());
        BackendLabels::among(self.may_ask.iter().chain(asked))
    }
}

impl CostRow {
    /// Returns `REVIEW.md`, or `REVIEW.md (codex)` if rows name the backend.
    pub fn title(&self, naming: BackendLabels) -> String {
        format!("{}{}", self.name, naming.suffix(self.backend.as_ref()))
    }
}

/// Returns the share of `part` in `all`, rounded to whole percent; 0 if `all` is 0.
pub fn percent(part: Micros, all: Micros) -> u64 {
    let all = u128::from(all.0.max(1));
    // 128 bits, because 200 times an amount in millionths overflows 64 bits.
    let percent = (u128::from(part.0) * 200 + all) / (2 * all);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Cost;
    use crate::decide::tests::play::{Play, usd, workflow};
    use crate::run::Event;

    /// Plays two paid states and a script; one turn is estimated and one has no price.
    fn play() -> Play {
        let files = [("A.md", "text"), ("B.md", "text"), ("S.sh", "true")];
        let mut play = Play::new(workflow(&files)).started();
        // Nothing can be estimated before the first known price.
        play.costs(Cost::Unknown).stumbles("main");
        play.after(crate::time::Span::minutes(5));
        play.costs(Cost::Reported(usd("0.30")));
        play.says_so("main", "<goto>B</goto>", |finished| finished.model = Some("opus".into()));
        play.costs(Cost::Estimated(usd("0.10")));
        play.says_so("main", "<goto>S</goto>", |finished| finished.model = Some("haiku".into()));
        play.costs(Cost::Free).says("main", "<goto>A</goto>");
        play.costs(Cost::Reported(usd("0.60")));
        play.says("main", "<result>x</result>");
        play
    }

    /// Returns the rows, with a millisecond between two events.
    fn costs(play: &Play, by: By, since: u64) -> Costs {
        let mut counter = Counter::new(Timestamp(since));
        let mut view = RunView::default();
        for (at, event) in (0..).zip(&play.story) {
            if let Some(noted) = view.note(Timestamp(at), event) {
                counter.note(Timestamp(at), &noted, &view);
            }
        }
        counter.finish().grouped(by)
    }

    fn counted(play: &Play, by: By, since: u64) -> Vec<String> {
        let costs = costs(play, by, since);
        let all = [("total".to_owned(), costs.money.total)];
        let titled = |(row, tally): (&CostRow, Tally)| (row.title(costs.naming()), tally);
        let rows =
            all.into_iter().chain(costs.money.most_expensive_first().into_iter().map(titled));
        rows.map(|(row, tally)| {
            let Tally { turns, amount, estimated, unpriced } = tally;
            let percent = tally.percent_of(costs.money.total.amount);
            format!(
                "{row}: {turns}, {amount}, {estimated} estimated, {unpriced} unpriced, {percent} %"
            )
        })
        .collect()
    }

    #[test]
    fn part_is_rounded_to_percent() {
        let check = |part, all, expected| assert_eq!(percent(Micros(part), Micros(all)), expected);
        check(0, 0, 0);
        check(0, 7, 0);
        check(1, 3, 33);
        check(2, 3, 67);
        check(1, 200, 1);
        check(1, 201, 0);
        check(7, 7, 100);
        check(u64::MAX, u64::MAX, 100);
    }

    #[test]
    fn costs_are_grouped_by_each_dimension() {
        let total = "total: 3, $1.00, $0.10 estimated, 1 unpriced, 100 %";
        let check = |by, expected: &[&str]| {
            let expected: Vec<&str> = [total].iter().chain(expected).copied().collect();
            assert_eq!(counted(&play(), by, 0), expected);
        };
        check(
            By::State,
            &[
                "A.md: 2, $0.90, $0.00 estimated, 1 unpriced, 90 %",
                "B.md: 1, $0.10, $0.10 estimated, 0 unpriced, 10 %",
            ],
        );
        check(
            By::Model,
            &[
                "unknown model: 2, $0.60, $0.00 estimated, 1 unpriced, 60 %",
                "opus: 0, $0.30, $0.00 estimated, 0 unpriced, 30 %",
                "haiku: 1, $0.10, $0.10 estimated, 0 unpriced, 10 %",
            ],
        );
        check(By::Backend, &["claude: 3, $1.00, $0.10 estimated, 1 unpriced, 100 %"]);
        check(By::Workflow, &["/flow: 3, $1.00, $0.10 estimated, 1 unpriced, 100 %"]);
    }

    #[test]
    fn discarded_costs_are_a_separate_row() {
        let mut play = play();
        let rewound =
            |discarded| Event::RunRewound { kept: 1, nonce: "n".into(), discarded, governed: None };
        play.story.push(rewound(DiscardedCost {
            amount: usd("3"),
            unpriced: 2,
            ..DiscardedCost::default()
        }));
        play.story.push(rewound(DiscardedCost::default()));
        let check = |by, since, expected: [&str; 2]| {
            assert_eq!(counted(&play, by, since)[..2], expected);
        };
        let discarded = "$3.00, $0.00 estimated, 2 unpriced";
        let total = "total: 3, $4.00, $0.10 estimated, 3 unpriced, 100 %";
        check(By::State, 0, [total, &format!("discarded: 0, {discarded}, 75 %")]);
        let flow = "/flow: 3, $4.00, $0.10 estimated, 3 unpriced, 100 %";
        check(By::Workflow, 0, [total, flow]);
        let last = u64::try_from(play.story.len()).unwrap() - 2;
        let alone = [
            &format!("total: 0, {discarded}, 100 %"),
            &format!("discarded: 0, {discarded}, 100 %"),
        ];
        check(By::Model, last, alone.map(String::as_str));
        assert_eq!(counted(&play, By::Model, last + 1).len(), 1);
    }

    #[test]
    fn rows_name_who_answered_where_there_are_several() {
        let codex = "---\nbackend: codex\n---\ntext";
        let files = [("A.md", "text"), ("B.md", "text"), ("X.md", codex)];
        let mut play = Play::new(workflow(&files)).started();
        play.says_so("main", "<goto>B</goto>", |finished| finished.model = Some("opus".into()));
        play.costs(Cost::Reported(usd("0.20"))).says("main", "<reset>X</reset>");
        play.costs(Cost::Reported(usd("0.40"))).says("main", "<result>x</result>");
        let check = |by, expected: [&str; 3]| {
            let rows = costs(&play, by, 0);
            let titles = rows
                .money
                .most_expensive_first()
                .into_iter()
                .map(|(row, _)| row.title(rows.naming()));
            let titles: Vec<String> = titles.collect();
            assert_eq!(
                titles,
                expected.into_iter().filter(|row| !row.is_empty()).collect::<Vec<_>>()
            );
        };
        check(By::State, ["X.md (codex)", "B.md (claude)", "A.md (claude)"]);
        check(By::Model, ["unknown model (codex)", "unknown model (claude)", "opus (claude)"]);
        check(By::Backend, ["codex", "claude", ""]);
        check(By::Workflow, ["/flow", "", ""]);
        let both = counted(&play, By::Backend, 0);
        assert_eq!(
            both[1..],
            [
                "codex: 1, $0.40, $0.00 estimated, 0 unpriced, 57 %",
                "claude: 2, $0.30, $0.00 estimated, 0 unpriced, 43 %",
            ]
        );
    }

    #[test]
    fn costs_before_the_period_are_not_counted() {
        let last = u64::try_from(play().story.len()).unwrap();
        assert_eq!(
            counted(&play(), By::State, last),
            ["total: 0, $0.00, $0.00 estimated, 0 unpriced, 0 %"]
        );
        let settled = |event: &Event| matches!(event, Event::TurnSettled { .. });
        let third = play().story.iter().rposition(settled).unwrap();
        assert_eq!(
            counted(&play(), By::State, u64::try_from(third).unwrap())[1..],
            ["A.md: 1, $0.60, $0.00 estimated, 0 unpriced, 100 %"]
        );
    }

    #[test]
    fn runs_add_up() {
        let (mut costs, once) = (costs(&play(), By::State, 0), costs(&play(), By::State, 0));
        costs.add(once.clone());
        assert_eq!(costs.money.total.amount, usd("2"));
        let rows = costs.money.rows.values().map(|tally| tally.turns);
        let twice = once.money.rows.values().map(|tally| 2 * tally.turns);
        assert_eq!(rows.collect::<Vec<_>>(), twice.collect::<Vec<_>>());
    }

    #[test]
    fn rehearsals_are_not_money() {
        let mut play = Play::new(workflow(&[("A.md", "text")]));
        play.settings.backend = BackendName::SCRIPTED.into();
        play.start();
        play.costs(Cost::Reported(usd("0.30"))).says("main", "<result>x</result>");
        let costs = costs(&play, By::State, 0);
        assert_eq!(costs.money, CostTable::default());
        assert_eq!(costs.rehearsed.total.amount, usd("0.30"));
    }

    #[test]
    fn stored_costs_are_read_back() {
        let mut counter = Counter::new(Timestamp(0));
        let mut view = RunView::default();
        for event in &play().story {
            let noted = view.note(Timestamp(90_000_000), event);
            if let Some(noted) = noted {
                counter.note(Timestamp(90_000_000), &noted, &view);
            }
        }
        let costs = counter.finish();
        let stored = serde_json::to_string(&costs).unwrap();
        let read: RunCosts = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, costs);
        let total = |since| read.clone().since(Timestamp(since)).grouped(By::Model).money.total;
        assert_eq!(total(90_000_001).amount, usd("1"));
        assert_eq!(total(172_800_000).amount, usd("0"));
    }
}
