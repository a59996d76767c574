//! All that a process left running: its group, what carries its marker, and their descendants.
//!
//! A look at the process table can miss a fork in flight. So the group is signalled as a whole where
//! that is safe, and every step looks again until nothing is found. What was seen once stays known,
//! even when it has shed its parent, group and environment since.

use std::collections::BTreeSet;
use std::time::Duration;

use raymond_core::ids::Nonce;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep_until};

use super::child::may_have_adopted;
use super::table::{self, Entry, Identity};
use super::{Grace, Marker};

/// A tree to be ended.
#[derive(Debug)]
pub(super) struct Tree {
    group: Option<Group>,
    markers: BTreeSet<Marker>,
    known: BTreeSet<Identity>,
    /// All below this process belong to it.
    below: Option<i32>,
    /// The runs that it is of: what was detached from them does not belong to it.
    runs: BTreeSet<Nonce>,
}

/// The group that a process of ours leads.
#[derive(Debug, Clone, Copy)]
struct Group {
    id: i32,
    /// None is that of this process.
    session: Option<i32>,
    leader: Leader,
}

/// A number is given away only when its process was reaped. After that, the group is known by its
/// session too, and its members are signalled one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    Unreaped,
    Reaped,
}

impl Tree {
    /// The tree of a child that leads the group `group`.
    pub(super) fn of_group(group: i32, marker: Marker) -> Self {
        let group = Group { id: group, session: None, leader: Leader::Unreaped };
        let found = Self::of_leftovers(BTreeSet::new(), BTreeSet::from([marker]));
        Self { group: Some(group), ..found }
    }

    /// The tree of a process that leads its group and is no child of ours: its number may be given
    /// away at any time.
    pub(super) fn of_adopted(leader: Entry, marker: Marker) -> Self {
        let Entry { identity, group, session, .. } = leader;
        let group = Group { id: group, session: Some(session), leader: Leader::Reaped };
        let found = Self::of_leftovers(BTreeSet::from([identity]), BTreeSet::from([marker]));
        Self { group: Some(group), ..found }
    }

    /// The tree of processes that were found.
    pub(super) fn of_leftovers(known: BTreeSet<Identity>, markers: BTreeSet<Marker>) -> Self {
        let runs = markers.iter().map(Marker::run).collect();
        Self { group: None, markers, known, below: None, runs }
    }

    /// And all that is below this process, which drives the run.
    pub(super) fn with_descendants_of(mut self, pid: i32, run: &Nonce) -> Self {
        self.runs.insert(run.clone());
        Self { below: Some(pid), ..self }
    }

    /// From now on the number of the leader may be given away.
    pub(super) fn note_leader_reaped(&mut self) {
        if let Some(group) = &mut self.group {
            group.leader = Leader::Reaped;
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
            living = self.signal_and_wait(signal, patience).await;
            if living.is_empty() {
                break;
            }
        }
        living.iter().map(|entry| entry.identity).collect()
    }

    /// Waits until nobody is seen; gives up at the deadline, and says whether nobody is. For a tree whose root has
    /// ended: mostly there is nobody, and a look costs more than a small process.
    pub(super) async fn wait_until_empty(&mut self, deadline: Instant) -> bool {
        let mut pause = Duration::from_millis(2);
        while may_have_adopted() && !self.living().is_empty() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        true
    }

    /// SIGKILL for all, where nobody can wait for their end; it blocks until there is nothing left to
    /// signal, and not for long.
    pub(super) fn kill_now(&mut self) {
        const LOOKS: u32 = 100;
        for _ in 0..LOOKS {
            let living = self.confirmed_living();
            if living.is_empty() {
                return;
            }
            self.signal(&living, Signal::KILL);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    async fn signal_and_wait(&mut self, signal: Signal, patience: Duration) -> Vec<Entry> {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_millis(2);
        let mut living = self.confirmed_living();
        self.signal(&living, signal);
        while !living.is_empty() && Instant::now() < deadline {
            sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
            living = self.confirmed_living();
            // A handler may start processes to clean up: polite signals are sent once.
            if signal == Signal::KILL {
                self.signal(&living, signal);
            }
        }
        living
    }

    fn signal(&self, living: &[Entry], signal: Signal) {
        let whole = self.group.filter(|group| group.leader == Leader::Unreaped);
        let whole = whole.and_then(|group| Pid::from_raw(group.id));
        if let Some(group) = whole {
            let _nobody_is_left_in_it = kill_process_group(group, signal);
        }
        for entry in living {
            // One may have left the group since it was looked at; a second SIGKILL does no harm.
            let told = whole.is_some() && whole == Pid::from_raw(entry.group);
            if !told || signal == Signal::KILL {
                table::signal(entry.identity, signal);
            }
        }
    }

    /// The table is read one process after the other, and one that keeps on forking can slip through
    /// a look: only several in a row that find nobody are believed.
    fn confirmed_living(&mut self) -> Vec<Entry> {
        const LOOKS: u32 = 4;
        (0..LOOKS).map(|_| self.living()).find(|living| !living.is_empty()).unwrap_or_default()
    }

    fn living(&mut self) -> Vec<Entry> {
        let table = table::snapshot(self.group.map(|group| group.id));
        let group =
            self.group.map(|group| (group.id, group.session.unwrap_or_else(table::session)));
        let living = with_descendants(&table, &self.runs, |entry| {
            group == Some((entry.group, entry.session)) || self.contains(entry)
        });
        self.known.extend(living.iter().map(|entry| entry.identity));
        living
    }

    fn contains(&self, entry: &Entry) -> bool {
        self.known.contains(&entry.identity)
            || self.below == Some(entry.parent)
            || table::marks(entry.identity).list().any(|marker| self.markers.contains(&marker))
    }
}

/// These processes of the table and all below them, but for what was detached from these runs.
pub(super) fn with_descendants(
    table: &[Entry],
    runs: &BTreeSet<Nonce>,
    is_root: impl Fn(&Entry) -> bool,
) -> Vec<Entry> {
    let added = |belongs: &dyn Fn(&Entry) -> bool| -> Vec<i32> {
        let found = table.iter().filter(|entry| belongs(entry));
        let found = found.filter(|entry| !table::marks(entry.identity).are_detached_from(runs));
        found.map(|entry| entry.identity.pid).collect()
    };
    let mut members: BTreeSet<i32> = added(&is_root).into_iter().collect();
    // Children may stand before their parents in the table.
    let mut before = 0;
    while before < members.len() {
        before = members.len();
        members.extend(added(&|entry| {
            members.contains(&entry.parent) && !members.contains(&entry.identity.pid)
        }));
    }
    let is_member = |entry: &&Entry| members.contains(&entry.identity.pid);
    table.iter().filter(is_member).copied().collect()
}
