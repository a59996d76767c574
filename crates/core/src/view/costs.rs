//! The costs of runs, grouped by state, model, backend or workflow.
//!
//! Amounts are the charges of turns, which follow the vendors' list prices. Estimated amounts and
//! unpriced turns are counted separately and never mixed in silently. Scripts are free and not
//! counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::{Basis, Charge, Micros};
use crate::ids::BackendName;
use crate::run::DiscardedCost;
use crate::time::Timestamp;

use super::attempt::{Attempt, End};
use super::backend_labels::BackendLabels;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub turns: u64,
    pub amount: Micros,
    /// The estimated part of the amount.
    pub estimated: Micros,
    /// The number of turns without a price.
    pub unpriced: u64,
}

/// The counted costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs {
    pub total: Tally,
    /// The total, grouped.
    pub rows: BTreeMap<Row, Tally>,
    /// The backends that the states of the runs may use.
    may_ask: BTreeSet<BackendName>,
}

/// The name of one group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
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
    by: By,
    since: Timestamp,
    workflow: String,
    costs: Costs,
}

impl Counter {
    /// Returns a counter of costs from `since` on.
    pub fn new(by: By, since: Timestamp) -> Self {
        Self { by, since, workflow: String::new(), costs: Costs::default() }
    }

    /// Counts an event of this time.
    pub fn note(&mut self, at: Timestamp, event: &ViewEvent) {
        if let ViewEvent::RunStarted { workflow, backends } = event {
            self.workflow.clone_from(workflow);
            self.costs.may_ask.clone_from(backends);
        } else if let ViewEvent::RunRewound { discarded, .. } = event
            && at >= self.since
            && !discarded.is_nothing()
        {
            // A rewind discards records but not the money: their costs get a row of their own.
            let DiscardedCost { amount, unpriced, .. } = *discarded;
            let name = if self.by == By::Workflow { &self.workflow } else { DISCARDED };
            let row = Row { name: name.to_owned(), backend: None };
            // The number of discarded turns is not recorded.
            self.add(row, Tally { amount, unpriced, ..Tally::default() });
        } else if let ViewEvent::AttemptEnded(attempt) = event
            && let Some(end) = attempt.end.as_ref().filter(|end| end.at >= self.since)
        {
            // A turn belongs to the time at which it ended, because its charge is known only then.
            self.count(attempt, end);
        }
    }

    pub fn finish(self) -> Costs {
        self.costs
    }

    fn count(&mut self, attempt: &Attempt, end: &End) {
        // A prompt that was free never reached a model, so it does not count.
        let Some(backend) = attempt.backend().filter(|_| end.charge.basis != Basis::Free) else {
            return;
        };
        let (name, backend) = match self.by {
            By::State => (attempt.location.to_string(), Some(backend.clone())),
            By::Model => {
                (end.model.as_deref().unwrap_or(NO_MODEL).to_owned(), Some(backend.clone()))
            }
            By::Backend => (backend.to_string(), None),
            By::Workflow => (self.workflow.clone(), None),
        };
        self.add(Row { name, backend }, Tally::of(end.charge));
    }

    fn add(&mut self, row: Row, tally: Tally) {
        self.costs.total.add(tally);
        self.costs.rows.entry(row).or_default().add(tally);
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

impl Costs {
    /// Adds the costs of another run.
    pub fn add(&mut self, other: Self) {
        self.total.add(other.total);
        self.may_ask.extend(other.may_ask);
        for (row, tally) in other.rows {
            self.rows.entry(row).or_default().add(tally);
        }
    }

    /// Returns the rows, the most expensive first.
    pub fn most_expensive_first(&self) -> Vec<(&Row, Tally)> {
        let mut rows: Vec<(&Row, Tally)> =
            self.rows.iter().map(|(row, tally)| (row, *tally)).collect();
        // Turns decide between equal amounts, such as rows that are unpriced.
        rows.sort_by_key(|(_, tally)| std::cmp::Reverse((tally.amount, tally.turns)));
        rows
    }

    /// Returns whether rows name the backend.
    pub fn naming(&self) -> BackendLabels {
        let asked = self.rows.keys().filter_map(|row| row.backend.as_ref());
        BackendLabels::among(self.may_ask.iter().chain(asked))
    }
}

impl Row {
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
    use crate::view::RunView;

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
        let mut counter = Counter::new(by, Timestamp(since));
        let mut view = RunView::default();
        for (at, event) in (0..).zip(&play.story) {
            if let Some(noted) = view.note(Timestamp(at), event) {
                counter.note(Timestamp(at), &noted);
            }
        }
        counter.finish()
    }

    fn counted(play: &Play, by: By, since: u64) -> Vec<String> {
        let costs = costs(play, by, since);
        let all = [("total".to_owned(), costs.total)];
        let titled = |(row, tally): (&Row, Tally)| (row.title(costs.naming()), tally);
        let rows = all.into_iter().chain(costs.most_expensive_first().into_iter().map(titled));
        rows.map(|(row, tally)| {
            let Tally { turns, amount, estimated, unpriced } = tally;
            let percent = tally.percent_of(costs.total.amount);
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
        let total = "total: 4, $1.00, $0.10 estimated, 1 unpriced, 100 %";
        let check = |by, expected: &[&str]| {
            let expected: Vec<&str> = [total].iter().chain(expected).copied().collect();
            assert_eq!(counted(&play(), by, 0), expected);
        };
        check(
            By::State,
            &[
                "A.md: 3, $0.90, $0.00 estimated, 1 unpriced, 90 %",
                "B.md: 1, $0.10, $0.10 estimated, 0 unpriced, 10 %",
            ],
        );
        check(
            By::Model,
            &[
                "unknown model: 2, $0.60, $0.00 estimated, 1 unpriced, 60 %",
                "opus: 1, $0.30, $0.00 estimated, 0 unpriced, 30 %",
                "haiku: 1, $0.10, $0.10 estimated, 0 unpriced, 10 %",
            ],
        );
        check(By::Backend, &["claude: 4, $1.00, $0.10 estimated, 1 unpriced, 100 %"]);
        check(By::Workflow, &["/flow: 4, $1.00, $0.10 estimated, 1 unpriced, 100 %"]);
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
        let total = "total: 4, $4.00, $0.10 estimated, 3 unpriced, 100 %";
        check(By::State, 0, [total, &format!("discarded: 0, {discarded}, 75 %")]);
        let flow = "/flow: 4, $4.00, $0.10 estimated, 3 unpriced, 100 %";
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
            let titles =
                rows.most_expensive_first().into_iter().map(|(row, _)| row.title(rows.naming()));
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
        let tally = |amount| Tally { turns: 1, amount: usd(amount), ..Tally::default() };
        let named = |name: &str| Row { name: name.to_owned(), backend: None };
        let one = |row: &str, amount| Costs {
            total: tally(amount),
            rows: [(named(row), tally(amount))].into(),
            ..Costs::default()
        };
        let mut costs = one("A", "1");
        costs.add(one("B", "2"));
        costs.add(one("A", "3"));
        let both = Tally { turns: 2, amount: usd("4"), ..Tally::default() };
        assert_eq!(costs.most_expensive_first(), [(&named("A"), both), (&named("B"), tally("2"))]);
        assert_eq!((costs.total.turns, costs.total.amount), (3, usd("6")));
    }
}
