//! All that a process left running: its group, what carries its marker, and their descendants.
//!
//! A look at the process table can miss a fork in flight, so every step looks again until nothing
//! is found. What was seen once stays known, even when it has shed its parent, group and
//! environment since.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Signal, getsid};
use tokio::time::{Instant, sleep_until};

use super::table::{self, Entry, Identity};
use super::{Grace, Marker};

/// A tree to be ended.
#[derive(Debug)]
pub(super) struct Tree {
    group: Option<Group>,
    markers: BTreeSet<Marker>,
    known: BTreeSet<Identity>,
}

/// The group that a process of ours leads. When its leader was reaped, its number alone could be
/// that of a stranger's group; a stranger is in another session.
#[derive(Debug, Clone, Copy)]
struct Group {
    id: i32,
    session: i32,
}

impl Tree {
    /// The tree of a child that leads the group `group`.
    pub(super) fn of_group(group: i32, marker: Marker) -> Self {
        let session = getsid(None).map_or(0, |session| session.as_raw_nonzero().get());
        Self {
            group: Some(Group { id: group, session }),
            markers: BTreeSet::from([marker]),
            known: BTreeSet::new(),
        }
    }

    /// The tree of processes that were found.
    pub(super) fn of_found(known: BTreeSet<Identity>, markers: BTreeSet<Marker>) -> Self {
        Self {
            group: None,
            markers,
            known,
        }
    }

    /// SIGINT, SIGTERM, SIGKILL, each with its patience, until all are dead. Returns those that are
    /// not.
    pub(super) async fn end(&mut self, grace: &Grace) -> Vec<Identity> {
        let steps = [
            (Signal::INT, grace.interrupt),
            (Signal::TERM, grace.terminate),
            (Signal::KILL, grace.kill),
        ];
        let mut living = Vec::new();
        for (signal, patience) in steps {
            living = self.signal(signal, patience).await;
            if living.is_empty() {
                break;
            }
        }
        living
    }

    /// One SIGKILL for each, without waiting.
    pub(super) fn kill_now(&mut self) {
        for process in self.living() {
            table::signal(process, Signal::KILL);
        }
    }

    async fn signal(&mut self, signal: Signal, patience: Duration) -> Vec<Identity> {
        let deadline = Instant::now() + patience;
        let mut told = BTreeSet::new();
        let mut pause = Duration::from_millis(2);
        loop {
            let living = self.living();
            for process in &living {
                // A second SIGINT would mean "now": each process gets one.
                if told.insert(*process) || signal == Signal::KILL {
                    table::signal(*process, signal);
                }
            }
            if living.is_empty() || Instant::now() >= deadline {
                return living;
            }
            sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn living(&mut self) -> Vec<Identity> {
        let table = table::snapshot(self.group.map(|group| group.id));
        let mut members: BTreeSet<i32> = table
            .iter()
            .filter(|entry| self.holds(entry))
            .map(|entry| entry.identity.pid)
            .collect();
        // Children may stand before their parents in the table.
        let mut before = 0;
        while before < members.len() {
            before = members.len();
            let children = table.iter().filter(|entry| members.contains(&entry.parent));
            let children: Vec<_> = children.map(|entry| entry.identity.pid).collect();
            members.extend(children);
        }
        let living: Vec<_> = table
            .iter()
            .map(|entry| entry.identity)
            .filter(|identity| members.contains(&identity.pid))
            .collect();
        self.known.extend(&living);
        living
    }

    fn holds(&self, entry: &Entry) -> bool {
        let in_group = |group: Group| entry.group == group.id && entry.session == group.session;
        self.known.contains(&entry.identity)
            || self.group.is_some_and(in_group)
            || table::markers(entry.identity)
                .iter()
                .any(|marker| self.markers.contains(marker))
    }
}
