//! Where the money went: a fold of the same events, for the question that is asked.
//!
//! Amounts are those that turns were charged, which follow the list prices of their vendors. What was
//! estimated and what could not be priced is counted beside them, never mixed in silently. Scripts
//! cost nothing and are not counted.

use std::collections::BTreeMap;

use crate::budget::{Basis, Charge, Micros};
use crate::ids::{AgentId, StateName};
use crate::run::Event;
use crate::time::Timestamp;

/// By what money is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By the state in whose visit it was spent.
    State,
    /// By the model that answered.
    Model,
    /// By the workflow of the run.
    Workflow,
}

/// Turns that may cost something, and what they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many.
    pub turns: u64,
    /// How much.
    pub amount: Micros,
    /// How much of that was estimated.
    pub estimated: Micros,
    /// How many of them could not be priced.
    pub unpriced: u64,
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Costs {
    /// All of it.
    pub total: Tally,
    /// The same, by what was asked for.
    pub rows: BTreeMap<String, Tally>,
}

/// The row of turns whose client did not say which model answered.
pub const NO_MODEL: &str = "model not said";

/// Counts the costs of one run.
#[derive(Debug)]
pub struct Counter {
    by: By,
    since: Timestamp,
    workflow: String,
    places: BTreeMap<AgentId, StateName>,
    costs: Costs,
}

impl Counter {
    /// Counts what is spent from `since` on.
    pub fn new(by: By, since: Timestamp) -> Self {
        let (workflow, places, costs) = (String::new(), BTreeMap::new(), Costs::default());
        Self { by, since, workflow, places, costs }
    }

    /// Folds one event in.
    pub fn note(&mut self, at: Timestamp, event: &Event) {
        if let Event::RunStarted(start) = event {
            self.workflow.clone_from(&start.workflow);
        } else if let Event::VisitEntered { agent, state, .. } = event {
            self.places.insert(agent.clone(), state.clone());
        } else if let Event::AgentEnded { agent, .. } = event {
            self.places.remove(agent);
        } else if at < self.since {
            // What follows is money.
        } else if let Event::TurnSettled { turn, charge, model, .. } = event {
            self.count(&turn.agent, *charge, model.as_deref());
        } else if let Event::TurnContinues { turn, charge, .. }
        | Event::TurnFailed { turn, charge, .. }
        | Event::TurnInterrupted { turn, charge, .. } = event
        {
            self.count(&turn.agent, *charge, None);
        }
    }

    /// What was counted.
    pub fn finish(self) -> Costs {
        self.costs
    }

    fn count(&mut self, agent: &AgentId, charge: Charge, model: Option<&str>) {
        if charge.basis == Basis::Free {
            return;
        }
        let row = match self.by {
            By::State => self.places.get(agent).map_or("?", StateName::as_str),
            By::Model => model.unwrap_or(NO_MODEL),
            By::Workflow => &self.workflow,
        };
        let tally = Tally::of(charge);
        self.costs.total.add(tally);
        self.costs.rows.entry(row.to_owned()).or_default().add(tally);
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
        self.unpriced += other.unpriced;
    }

    /// Its part of `all`, in whole percent.
    pub fn percent_of(&self, all: Micros) -> u64 {
        percent(self.amount, all)
    }
}

impl Costs {
    /// Adds what another run cost.
    pub fn add(&mut self, other: Self) {
        self.total.add(other.total);
        for (row, tally) in other.rows {
            self.rows.entry(row).or_default().add(tally);
        }
    }

    /// The rows, the dearest first.
    pub fn dearest_first(&self) -> Vec<(&str, Tally)> {
        let rows = self.rows.iter().map(|(row, tally)| (row.as_str(), *tally));
        let mut rows: Vec<(&str, Tally)> = rows.collect();
        rows.sort_by_key(|(_, tally)| std::cmp::Reverse((tally.amount, tally.turns)));
        rows
    }
}

/// How much of `all` a part is, to the nearest whole percent; of nothing it is none.
pub fn percent(part: Micros, all: Micros) -> u64 {
    let all = u128::from(all.0.max(1));
    let percent = (u128::from(part.0) * 200 + all) / (2 * all);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Cost;
    use crate::run::tests::play::{Play, usd, workflow};

    /// Two paid states and a script; one turn is estimated and one cannot be priced.
    fn play() -> Play {
        let files = [("A.md", "text"), ("B.md", "text"), ("S.sh", "true")];
        let mut play = Play::new(workflow(&files)).started();
        // Before anything has a price, nothing can be estimated.
        play.costs(Cost::Unknown).stumbles("main");
        play.after(crate::time::Span::minutes(5));
        play.costs(Cost::Reported(usd("0.30")));
        play.says_so("main", "<goto>B</goto>", |said| said.model = Some("opus".into()));
        play.costs(Cost::Estimated(usd("0.10")));
        play.says_so("main", "<goto>S</goto>", |said| said.model = Some("haiku".into()));
        play.costs(Cost::Free).says("main", "<goto>A</goto>");
        play.costs(Cost::Reported(usd("0.60")));
        play.says("main", "<result>x</result>");
        play
    }

    /// The rows, with a millisecond between two events.
    fn counted(by: By, since: u64) -> Vec<String> {
        let mut counter = Counter::new(by, Timestamp(since));
        for (at, event) in (0..).zip(&play().story) {
            counter.note(Timestamp(at), event);
        }
        let costs = counter.finish();
        let all = [("total", costs.total)];
        let rows = all.into_iter().chain(costs.dearest_first());
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
    fn a_part_is_told_to_the_nearest_percent() {
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
    fn money_is_counted_by_state_by_model_or_by_workflow() {
        let total = "total: 4, $1.00, $0.10 estimated, 1 unpriced, 100 %";
        let check = |by, expected: &[&str]| {
            let expected: Vec<&str> = [total].iter().chain(expected).copied().collect();
            assert_eq!(counted(by, 0), expected);
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
                "model not said: 2, $0.60, $0.00 estimated, 1 unpriced, 60 %",
                "opus: 1, $0.30, $0.00 estimated, 0 unpriced, 30 %",
                "haiku: 1, $0.10, $0.10 estimated, 0 unpriced, 10 %",
            ],
        );
        check(By::Workflow, &["/flow: 4, $1.00, $0.10 estimated, 1 unpriced, 100 %"]);
    }

    #[test]
    fn what_was_spent_before_is_not_counted() {
        let last = u64::try_from(play().story.len()).unwrap();
        assert_eq!(counted(By::State, last), ["total: 0, $0.00, $0.00 estimated, 0 unpriced, 0 %"]);
        let settled = |event: &Event| matches!(event, Event::TurnSettled { .. });
        let third = play().story.iter().rposition(settled).unwrap();
        assert_eq!(
            counted(By::State, u64::try_from(third).unwrap())[1..],
            ["A.md: 1, $0.60, $0.00 estimated, 0 unpriced, 100 %"]
        );
    }

    #[test]
    fn runs_add_up() {
        let tally = |amount| Tally { turns: 1, amount: usd(amount), ..Tally::default() };
        let one = |row: &str, amount| Costs {
            total: tally(amount),
            rows: [(row.to_owned(), tally(amount))].into(),
        };
        let mut costs = one("A", "1");
        costs.add(one("B", "2"));
        costs.add(one("A", "3"));
        let both = Tally { turns: 2, amount: usd("4"), ..Tally::default() };
        assert_eq!(costs.dearest_first(), [("A", both), ("B", tally("2"))]);
        assert_eq!((costs.total.turns, costs.total.amount), (3, usd("6")));
    }
}
