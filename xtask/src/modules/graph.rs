//! A directed graph of names, and its cycles.

use std::collections::{BTreeMap, BTreeSet};

/// Which module imports which.
#[derive(Debug, Default)]
pub(super) struct Graph(BTreeMap<String, BTreeSet<String>>);

impl Graph {
    pub(super) fn add(&mut self, from: &str, to: &str) {
        self.0.entry(from.to_owned()).or_default().insert(to.to_owned());
    }

    /// Returns the groups of modules in which each can reach every other one.
    pub(super) fn cycles(&self) -> Vec<Vec<String>> {
        let mut left: BTreeSet<&String> = self.0.keys().collect();
        let mut cycles = Vec::new();
        while let Some(name) = left.pop_first() {
            let mut cycle = vec![name.clone()];
            // Both directions: a graph of modules is small enough for that.
            cycle.extend(
                left.iter()
                    .filter(|other| self.reaches(name, other) && self.reaches(other, name))
                    .map(|other| (*other).clone()),
            );
            if cycle.len() > 1 {
                left.retain(|other| !cycle.contains(other));
                cycles.push(cycle);
            }
        }
        cycles
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(name) = waiting.pop() {
            for next in self.0.get(name).into_iter().flatten() {
                if next == to {
                    return true;
                }
                // A cycle that does not contain `to` would otherwise be followed for ever.
                if seen.insert(next) {
                    waiting.push(next);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_reach_each_other_are_a_cycle() {
        let mut graph = Graph::default();
        for (from, to) in [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("x", "y"), ("y", "x")] {
            graph.add(from, to);
        }
        assert_eq!(graph.cycles(), [["b", "c"], ["x", "y"]]);
    }
}
