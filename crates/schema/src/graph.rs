//! The limits of a schema, checked before any value: it must end, and its depth and work are
//! bounded.
//!
//! Schemas about the same value form a graph. A cycle in it would never end. Its longest path
//! bounds the stack for one level of a value, and its number of paths bounds the work.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bundle::Bundle;
use crate::cost_bound::deepest;
use crate::keywords::{About, inner};
use crate::stack_bound::StackBound;
use crate::{FaultKind, SchemaFault};

/// The most schemas about one value that may be nested; bounds the stack.
// At this limit, `stack_bound::LEVELS_MAX` still allows a value of 31 levels.
const CHAIN_MAX: usize = 1000;

/// The most schemas that one value may be checked against; bounds the time.
// A schema may be small and have many paths: 30 definitions with two references each have a
// billion.
const WAYS_MAX: u64 = 1_000_000;

/// Returns the stack that a schema needs, or a fault if it exceeds a limit.
pub(crate) fn measure(bundle: &Bundle) -> Result<StackBound, Vec<SchemaFault>> {
    let graph = Graph::of(bundle);
    let measured = match graph.measure() {
        Ok(measured) => measured,
        Err(Circle { from, to }) => {
            let message = format!(
                "this leads back to #{to} without going into the value, so it would never end"
            );
            return Err(vec![bundle.fault(&from, FaultKind::Circular, message)]);
        }
    };
    let chain = measured.iter().map(|node| node.chain).max().unwrap_or(1);
    let ways = measured.iter().map(|node| node.ways).max().unwrap_or(1);
    let fault = |kind, message| Err(vec![SchemaFault::new("", kind, message)]);
    if chain > CHAIN_MAX {
        let message =
            format!("one value leads through {chain} schemas, and {CHAIN_MAX} are the most");
        return fault(FaultKind::TooDeep, message);
    }
    if ways > WAYS_MAX {
        let message = format!("one value is checked against more than {WAYS_MAX} schemas");
        return fault(FaultKind::TooLarge, message);
    }
    let numbers = graph.paths.iter().enumerate().map(|(number, path)| (path.as_str(), number));
    let deepest = deepest(bundle, &numbers.collect(), &graph.edges, &graph.order());
    Ok(StackBound { chain, nesting: bundle.nesting, deepest })
}

/// Schemas by number, with edges to the schemas about the same value.
struct Graph {
    paths: Vec<String>,
    edges: Vec<Vec<usize>>,
}

#[derive(Clone, Copy)]
struct Measured {
    chain: usize,
    ways: u64,
}

/// An edge that closes a cycle.
struct Circle {
    from: String,
    to: String,
}

impl Graph {
    fn of(bundle: &Bundle) -> Self {
        let mut paths = Vec::new();
        for document in &bundle.documents {
            let schemas = document.index.schemas.keys();
            paths.extend(schemas.map(|at| format!("{}{at}", document.place)));
        }
        let numbers: BTreeMap<&str, usize> =
            paths.iter().enumerate().map(|(number, path)| (path.as_str(), number)).collect();
        let mut edges = vec![Vec::new(); paths.len()];
        let mut add = |from: &str, to: &str| {
            if let (Some(from), Some(to)) = (numbers.get(from), numbers.get(to)) {
                edges[*from].push(*to);
            }
        };
        for document in &bundle.documents {
            for at in document.index.schemas.keys() {
                let Some(Value::Object(schema)) = document.value.pointer(at) else { continue };
                let from = format!("{}{at}", document.place);
                for inner in inner(&from, schema, bundle.dialect) {
                    // Only these can form an endless circle: every other schema goes into a part of
                    // the value, which is finite.
                    if inner.about == About::Same {
                        add(&from, &inner.path);
                    }
                }
            }
            for site in &document.index.sites {
                let from = format!("{}{}", document.place, site.at);
                add(&from, &bundle.target(document, &site.target));
            }
        }
        Self { paths, edges }
    }

    // Depth first, without recursion: a path may be as long as the schema is large.
    fn measure(&self) -> Result<Vec<Measured>, Circle> {
        let mut states = vec![State::New; self.paths.len()];
        for start in 0..self.paths.len() {
            let mut way = vec![(start, 0)];
            while let Some((node, next)) = way.pop() {
                let Some(&inside) = self.edges[node].get(next) else {
                    states[node] = State::Done(self.sum(node, &states));
                    continue;
                };
                // Reached before by another path: each node is measured once, so the time is linear
                // although the paths are not.
                if next == 0 && matches!(states[node], State::Done(_)) {
                    continue;
                }
                // A node that is open and reached again is on the current path: a cycle.
                states[node] = State::Open;
                way.push((node, next + 1));
                match states[inside] {
                    State::New => way.push((inside, 0)),
                    State::Open => return Err(self.circle(node, inside)),
                    State::Done(_) => {}
                }
            }
        }
        Ok(states.iter().map(|state| state.measured()).collect())
    }

    /// Returns the schemas so that each follows those about the same value; needs a graph without
    /// cycles.
    fn order(&self) -> Vec<usize> {
        let mut seen = vec![false; self.paths.len()];
        let mut order = Vec::with_capacity(self.paths.len());
        for start in 0..self.paths.len() {
            let mut way = vec![(start, 0)];
            while let Some((node, next)) = way.pop() {
                if next == 0 && std::mem::replace(&mut seen[node], true) {
                    continue;
                }
                match self.edges[node].get(next) {
                    Some(&inside) => way.extend([(node, next + 1), (inside, 0)]),
                    None => order.push(node),
                }
            }
        }
        order
    }

    fn sum(&self, node: usize, states: &[State]) -> Measured {
        let inside = self.edges[node].iter().map(|inside| states[*inside].measured());
        inside.fold(Measured { chain: 1, ways: 1 }, |sum, inside| Measured {
            chain: sum.chain.max(inside.chain + 1),
            // Saturating: the number of paths may exceed 64 bits, and any large number is refused
            // anyway.
            ways: sum.ways.saturating_add(inside.ways),
        })
    }

    fn circle(&self, from: usize, to: usize) -> Circle {
        Circle { from: self.paths[from].clone(), to: self.paths[to].clone() }
    }
}

#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    Done(Measured),
}

impl State {
    fn measured(self) -> Measured {
        match self {
            Self::Done(measured) => measured,
            Self::New | Self::Open => Measured { chain: 0, ways: 0 },
        }
    }
}
