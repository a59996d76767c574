//! The states or steps that an agent visited, short enough to read.
//!
//! It is folded visit by visit: repeated visits of one place are counted, a repeated cycle becomes
//! one part with a count, and so does a cycle of cycles. Folding loses nothing. Memory is bounded:
//! of a path without repetition the beginning and the end are kept, and the visits between are
//! counted.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::Location;

/// Parts kept at the beginning of a long path.
const BEGINNING: usize = 8;
/// Parts kept in all; bounds the memory of a run with many states.
const MOST_PARTS: usize = 48;
/// The longest recognised cycle, in parts.
const LONGEST_CYCLE: usize = 8;
/// The deepest recognised nesting of cycles.
const DEEPEST: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunPath {
    parts: Vec<Part>,
    /// The number of visits left out after the beginning.
    left_out: u64,
}

/// A state or a cycle, with its number of repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    what: What,
    times: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Visit(Location),
    Cycle(Vec<Part>),
}

/// States that an agent visited several times in the same order.
#[derive(Debug, PartialEq, Eq)]
pub struct Loop<'a> {
    /// `FIX → TEST`
    pub words: String,
    pub times: u64,
    pub locations: Vec<&'a Location>,
}

impl RunPath {
    /// Adds a visit.
    pub fn enter(&mut self, location: &Location) {
        self.parts.push(Part { what: What::Visit(location.clone()), times: 1 });
        // One fold can make another possible: a finished cycle may repeat the cycle before it.
        // Ends, because every fold leaves fewer parts.
        while self.fold() {}
        if self.parts.len() > MOST_PARTS {
            self.left_out += self.parts.remove(BEGINNING).visits();
        }
    }

    pub fn visits(&self) -> u64 {
        self.left_out + self.parts.iter().map(Part::visits).sum::<u64>()
    }

    pub fn last_loop(&self) -> Option<Loop<'_>> {
        let last = self.parts.iter().rev().find(|part| part.times > 1)?;
        let once = Part { what: last.what.clone(), times: 1 }.to_string();
        let words = once.trim_matches(['(', ')']).to_owned();
        Some(Loop { words, times: last.times, locations: last.locations() })
    }

    /// Returns the path as text. While `fits` refuses it, parts in the middle are left out; the
    /// last part always stays.
    pub fn fitted(&self, fits: impl Fn(&str) -> bool) -> String {
        let parts: Vec<String> = self.parts.iter().map(ToString::to_string).collect();
        let whole = match self.left_out {
            0 => parts.join(ARROW),
            _ => with_gap(&parts, BEGINNING, parts.len()),
        };
        if fits(&whole) {
            return whole;
        }
        let mut shortest = whole;
        for kept in (1..parts.len()).rev() {
            // The last part always stays, because the agent is there.
            shortest = with_gap(&parts, 2.min(kept - 1), kept);
            if fits(&shortest) {
                break;
            }
        }
        shortest
    }

    /// Folds the last parts into those before them or into a new cycle, and returns whether it
    /// could.
    fn fold(&mut self) -> bool {
        // Parts on both sides of the gap are not neighbours, so they must not be folded.
        let first = if self.left_out > 0 { BEGINNING } else { 0 };
        let count = self.parts.len() - first;
        let parts = &mut self.parts[first..];
        if let [.., before, last] = parts
            && before.what == last.what
        {
            before.times += last.times;
            self.parts.pop();
            return true;
        }
        for length in 2..=LONGEST_CYCLE.min(count) {
            let (before, last) = parts.split_at_mut(count - length);
            if let Some(Part { what: What::Cycle(cycle), times }) = before.last_mut()
                && cycle == last
            {
                *times += 1;
                self.parts.truncate(first + count - length);
                return true;
            }
            if before.ends_with(last) && last.iter().all(|part| part.depth() < DEEPEST) {
                let cycle = What::Cycle(last.to_vec());
                self.parts.truncate(first + count - 2 * length);
                self.parts.push(Part { what: cycle, times: 2 });
                return true;
            }
        }
        false
    }
}

impl Part {
    fn visits(&self) -> u64 {
        match &self.what {
            What::Visit(_) => self.times,
            What::Cycle(parts) => self.times * parts.iter().map(Self::visits).sum::<u64>(),
        }
    }

    fn locations(&self) -> Vec<&Location> {
        match &self.what {
            What::Visit(location) => vec![location],
            What::Cycle(parts) => parts.iter().flat_map(Self::locations).collect(),
        }
    }

    fn depth(&self) -> usize {
        match &self.what {
            What::Visit(_) => 0,
            What::Cycle(parts) => 1 + parts.iter().map(Self::depth).max().unwrap_or(0),
        }
    }
}

const ARROW: &str = " → ";

/// Joins `kept` parts, with a gap after the first `beginning` ones.
fn with_gap(parts: &[String], beginning: usize, kept: usize) -> String {
    let end = parts.len() - (kept - beginning);
    let gap = ["…".to_owned()];
    [&parts[..beginning], &gap, &parts[end..]].concat().join(ARROW)
}

// `FIX`, `FIX ×3`, `(FIX → TEST) ×5`
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Visit(location) => f.write_str(&location.stem())?,
            What::Cycle(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "({})", parts.join(ARROW))?;
            }
        }
        if self.times > 1 { write!(f, " ×{}", self.times) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::StateName;

    fn path<'s>(states: impl IntoIterator<Item = &'s str>) -> RunPath {
        let mut path = RunPath::default();
        for state in states {
            path.enter(&StateName::new(state).into());
        }
        path
    }

    #[test]
    fn repeats_and_cycles_are_counted() {
        let check = |visits: &str, expected: &str| {
            let path = path(visits.split(' '));
            assert_eq!(path.fitted(|_| true), expected, "{visits}");
            assert_eq!(path.visits(), visits.split(' ').count() as u64, "{visits}");
        };
        check("START.md", "START");
        check("START.md PLAN.md DONE.sh", "START → PLAN → DONE");
        check("A B B B C", "A → B ×3 → C");
        check("A F T F T F T D", "A → (F → T) ×3 → D");
        check("A F T F T F D", "A → (F → T) ×2 → F → D");
        check("F F T F F T F F T", "(F ×2 → T) ×3");
        check("A B A B C A B A B C D", "((A → B) ×2 → C) ×2 → D");
        check("A B C A B C A B C", "(A → B → C) ×3");
        check("A B A", "A → B → A");
        // Only two levels of cycles are recognised.
        let twice = "((A → B) ×2 → C) ×2 → D";
        check("A B A B C A B A B C D A B A B C A B A B C D", &format!("{twice} → {twice}"));
    }

    #[test]
    fn last_loop_is_counted() {
        let check = |visits: &str, expected: Option<(&str, u64)>| {
            let path = path(visits.split(' '));
            let found = path.last_loop();
            let found = found.as_ref().map(|found| (found.words.as_str(), found.times));
            assert_eq!(found, expected);
        };
        check("A B C", None);
        check("A F T F T F", Some(("F → T", 2)));
        check("A F F T F F T D D D", Some(("D", 3)));
        check("F F T F F T", Some(("F ×2 → T", 2)));
    }

    #[test]
    fn long_path_keeps_its_ends() {
        let check = |visits: &str, width: usize, expected: &str| {
            let shown = path(visits.split(' ')).fitted(|text| text.chars().count() <= width);
            assert_eq!(shown, expected);
        };
        check("A B C D E F", 25, "A → B → C → D → E → F");
        check("A B C D E F", 20, "A → B → … → E → F");
        check("A B C D E F", 16, "A → B → … → F");
        check("A B C D E F", 9, "A → … → F");
        check("A B C D E F", 5, "… → F");
        check("A B C D E F", 1, "… → F");
        check("ABC", 1, "ABC");
    }

    #[test]
    fn long_path_without_repetition_is_counted() {
        let names: Vec<String> = (0..60).map(|n| format!("S{n}")).collect();
        let mut path = RunPath::default();
        for (name, visits) in names.iter().zip(1..) {
            path.enter(&StateName::new(name.as_str()).into());
            assert_eq!((path.visits(), path.parts.len()), (visits as u64, MOST_PARTS.min(visits)));
        }
        let (beginning, end) = (names[..8].join(ARROW), names[20..].join(ARROW));
        assert_eq!(path.fitted(|_| true), format!("{beginning} → … → {end}"));
        // Later visits are folded as usual.
        for name in ["A", "B", "A", "B", "B"] {
            path.enter(&StateName::new(name).into());
        }
        let shown = path.fitted(|_| true);
        assert!(shown.ends_with(" → S59 → (A → B) ×2 → B"), "{shown}");
        assert_eq!(path.visits(), 65);
    }

    #[test]
    fn path_of_many_visits_stays_short() {
        let names: Vec<String> = (0..200).map(|n| format!("S{n}")).collect();
        let mut path = RunPath::default();
        for n in 0..100_000_u64 {
            // Squares modulo a prime have no short cycles.
            let at = usize::try_from(n * n % 199).unwrap_or(0);
            path.enter(&StateName::new(names[at].as_str()).into());
        }
        assert_eq!(path.parts.len(), MOST_PARTS);
        assert_eq!(path.visits(), 100_000);
        let shown = path.fitted(|text| text.chars().count() <= 80);
        assert!(shown.starts_with("S0 → ") && shown.contains(" → … → "), "{shown}");
    }

    fn unfolded(parts: &[Part]) -> Vec<Location> {
        let mut states = Vec::new();
        for Part { what, times } in parts {
            for _ in 0..*times {
                match what {
                    What::Visit(state) => states.push(state.clone()),
                    What::Cycle(parts) => states.extend(unfolded(parts)),
                }
            }
        }
        states
    }

    proptest! {
        #[test]
        fn folding_loses_nothing(visits in prop::collection::vec(0..3_usize, 0..60)) {
            let names = ["A", "B", "C"];
            let visits: Vec<Location> =
                visits.into_iter().map(|at| StateName::new(names[at]).into()).collect();
            let names: Vec<String> = visits.iter().map(Location::to_string).collect();
            let path = path(names.iter().map(String::as_str));
            prop_assume!(path.left_out == 0);
            prop_assert_eq!(unfolded(&path.parts), visits);
        }
    }
}
